"""Relates a new finding to the existing rules: the same, contrary or new."""

import re
from collections.abc import Iterable
from functools import lru_cache

from agentx.synthesis.demands.tables.choices import LANGUAGE, Wish, excludes
from agentx.synthesis.language.words import content_words, subject_words
from agentx.synthesis.memory.items import ConstraintDetail, MemoryItem

SAME = 0.74
"""Minimum share of common subject words (Jaccard) for two demands to count as the same."""

CONTRARY = 0.6
"""The same for a demand and its opposite, whose wording differs more."""

_WISH_WORDS = 3
"""Minimum number of subject words by which a wish is recognised in a longer one."""

_INSTEAD = re.compile(
    r"\s+(?:instead of|rather than|over|and not|not|,\s*not|in place of)\s+(?P<unwanted>[^,;.]{2,80})",
    re.IGNORECASE,
)
_INSTEAD_TAIL = re.compile(
    r";\s*(?:please )?(?:use|write|prefer|put)\s+(?P<wanted>[^,;.]{2,80})", re.IGNORECASE
)
_RULED_OUT = re.compile(
    r"\b(?:swap|replace|exchange)(?: out)? [^.,;!?]{2,40}? (?=(?:for|with|by)\b)|(?:,\s*)?\b(?:instead of"
    r"|rather than|over|no more|never|not|in place of|away from|without)\s+[^,;.]{2,80}?"
    r"(?=\s+(?:from now on|any ?more|everywhere|for|in)\b|[,;.]|$)",
    re.IGNORECASE,
)
_NAME_LIKE = re.compile(r"\d|_|\w\w/|/\w\w|\w\.\w")
_PLACES = re.compile(
    r"\b(?:in|inside|within|on|at|to|for|after|before|when|whenever|while|during)\s+[^,;.!?]{2,120}",
    re.IGNORECASE,
)
_BUT = re.compile(
    r"\s*(?:;|,\s*(?:use|it|because|since|as|we)\b|\buntil\b|\binstead\b).*$", re.IGNORECASE | re.DOTALL
)
_CALLED = re.compile(r"\b(?:address|call) me(?: as| by| with)? (?P<name>[^,;.!?]{2,60})", re.IGNORECASE)
_LEAVES_OUT = re.compile(
    r"^(?:for now|from now on|please|always|going forward|,|\s)*(?:skip|omit|leave out|drop|ignore|disable"
    r"|turn off)\b",
    re.IGNORECASE,
)
_AROUND = ".,;:!?()[]{}\"'`“”‘’*@"


def same_demand(text: str, modality: str, items: Iterable[MemoryItem]) -> MemoryItem | None:
    """Return the latest rule that says the same as a new demand in any wording, or ``None``."""
    words = subject_words(text) or content_words(text)
    best: MemoryItem | None = None
    for item in items:
        detail = item.detail
        former = detail.modality if isinstance(detail, ConstraintDetail) else modality
        # A demand after a wish is more than a repetition of the wish.
        if (former == "must_not") != (modality == "must_not") or (former == "prefer" and modality == "must"):
            continue
        others = subject_words(item.text) or content_words(item.text)
        wishes = former == modality == "prefer"
        less, more = sorted((words, others), key=len)
        # One of two wishes may be the other without its reason or its example.
        alike = _overlap(words, others) >= SAME or (wishes and len(less) >= _WISH_WORDS and less <= more)
        if alike and not _values_differ(text, item.text):
            best = item
    return best


def contrary_demands(text: str, modality: str, items: Iterable[MemoryItem]) -> tuple[MemoryItem, ...]:
    """Return the rules that a new demand contradicts.

    They have the same subject and scope, and want the opposite or another choice.
    """
    wish = Wish(wanted_part(text, modality), modality)
    wanted, unwanted = _will(text, modality)
    found = []
    for item in items:
        if not isinstance(item.detail, ConstraintDetail):
            continue
        former = item.detail.modality
        old, against = _will(item.text, former)
        if (
            excludes(wish, Wish(wanted_part(item.text, former), former))
            or _takes_back(text, modality, item.text, former)
            or _opposed(wanted, against)
            or _opposed(unwanted, old)
        ):
            found.append(item)
    return tuple(found)


@lru_cache(maxsize=2_048)
def wanted_part(text: str, modality: str) -> str:
    """Return a demand without the part that it rules out ("use spaces instead of tabs").

    A ban is returned unchanged.

    >>> wanted_part("use spaces instead of tabs", "must")
    'use spaces'
    """
    body = " ".join(text.split())
    return body if modality == "must_not" else _RULED_OUT.sub(" ", body).strip()


@lru_cache(maxsize=2_048)
def core(text: str) -> frozenset[str]:
    """Return what a demand is about, without the places and times in which it applies and without reasons.

    >>> sorted(core("Never use emojis in commit messages, it looks childish"))
    ['emoji']
    """
    rest = _PLACES.sub(" ", without_reason(text))
    return subject_words(rest) | names_in(rest)


def without_reason(text: str) -> str:
    """Return a demand up to its reason, its end, or what is wanted in the place of what it bans."""
    return _BUT.sub("", text)


@lru_cache(maxsize=2_048)
def names_in(text: str) -> frozenset[str]:
    """Return the names and numbers in a text, which must match exactly: ``a-1.txt``, ``v2``, ``max_age``."""
    tokens = (token.strip(_AROUND).casefold() for token in text.split())
    return frozenset(token for token in tokens if _NAME_LIKE.search(token))


def _takes_back(new: str, modality: str, old: str, former: str) -> bool:
    """Return whether a demand takes back another one.

    It gives the user another name, or forbids what the other one orders, in the same places or everywhere.
    """
    called, formerly = _CALLED.search(new), _CALLED.search(old)
    if called and formerly and subject_words(called["name"]) != subject_words(formerly["name"]):
        return True
    if _forbids(new, modality) == _forbids(old, former) or not core(new) or core(new) != core(old):
        return False
    places = _places(new)
    return not places or places == _places(old)


def _forbids(text: str, modality: str) -> bool:
    return modality == "must_not" or bool(_LEAVES_OUT.match(text))


def _places(text: str) -> frozenset[str]:
    return frozenset[str]().union(
        *(subject_words(match.group()) for match in _PLACES.finditer(_BUT.sub("", text)))
    )


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0


@lru_cache(maxsize=2_048)
def _will(text: str, modality: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return what a demand wants and what it does not want, as stems."""
    body = " ".join(text.split())
    wanted, unwanted = "", ""
    if tail := _INSTEAD_TAIL.search(body):
        wanted, body = tail["wanted"], body[: tail.start()]
    if instead := _INSTEAD.search(body):
        unwanted = instead["unwanted"]
        body = body[: instead.start()] + body[instead.end() :]
    if modality == "must_not":
        return content_words(wanted), content_words(f"{body} {unwanted}")
    return content_words(f"{body} {wanted}"), content_words(unwanted)


def _opposed(wanted: frozenset[str], unwanted: frozenset[str]) -> bool:
    """Return whether one wants what the other forbids: all of what is forbidden, or nearly the same words."""
    wishes = content_words("prefer prioritize want favour favor")
    one, other = wanted - wishes, unwanted - wishes
    if not one or not other:
        return False
    return _overlap(one, other) >= CONTRARY or (len(other) > 1 and other <= one)


def _values_differ(one: str, other: str) -> bool:
    names, others = names_in(one), names_in(other)
    if names and others and names != others:
        return True
    first, second = LANGUAGE.search(one), LANGUAGE.search(other)
    if first and second and first["language"].lower() != second["language"].lower():
        return True
    a, b = _INSTEAD.search(one), _INSTEAD.search(other)
    return bool(a and b and content_words(a["unwanted"]) != content_words(b["unwanted"]))
