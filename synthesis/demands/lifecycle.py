"""Relates a new finding to the existing rules: the same, contrary or new."""

import re
from collections.abc import Iterable
from functools import lru_cache

from agentx.synthesis.demands.tables import choices
from agentx.synthesis.language.words import content_words, subject_words
from agentx.synthesis.memory.items import ConstraintDetail, MemoryItem

SAME = 0.74
"""Minimum share of common subject words (Jaccard) for two demands to count as the same."""

CONTRARY = 0.6
"""The same for what one demand wants and another one rules out."""

_WISH_WORDS = 3
"""Minimum number of subject words by which a wish is recognised in a longer one."""

_RULED_OUT = re.compile(
    r"\b(?:swap|replace|exchange)(?: out)? [^.,;!?]{2,40}? (?=(?:for|with|by)\b)|(?:,\s*)?\b(?:and )?"
    r"(?:instead of|rather than|over|no more|never|not|in place of|away from|without)\s+"
    r"(?P<gone>[^,;.]{2,80}?)(?=\s+(?:from now on|any ?more|everywhere|for|in)\b|[,;.]|$)",
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
_LEAVES_OUT = re.compile(
    r"^(?:for now|from now on|please|always|going forward|,|\s)*(?:skip|omit|leave out|drop|ignore|disable"
    r"|turn off)\b",
    re.IGNORECASE,
)


@lru_cache(maxsize=1)
def _wishes() -> frozenset[str]:
    return content_words("prefer prioritize want favour favor")


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
        less, more = sorted((words, others), key=len)
        # One of two wishes may be the other without its reason or its example.
        longer = former == modality == "prefer" and len(less) >= _WISH_WORDS and less <= more
        named, known = names_in(text), names_in(item.text)
        differs = (named and known and named != known) or replaces(text, modality, item)
        if (longer or _overlap(words, others) >= SAME) and not differs:
            best = item
    return best


def contrary_demands(text: str, modality: str, items: Iterable[MemoryItem]) -> tuple[MemoryItem, ...]:
    """Return the rules that a new demand contradicts.

    They have the same subject and scope, and want the opposite or another choice.
    """
    return tuple(item for item in items if replaces(text, modality, item) or _opposes(text, modality, item))


def marks(text: str, modality: str) -> frozenset[str]:
    """Return marks of a demand; contrary demands share at least one, so that few of many are compared."""
    wanted, unwanted = _will(text, modality)
    return wanted | unwanted | core(text) | choices.marks(wanted_part(text, modality))


def replaces(text: str, modality: str, item: MemoryItem) -> bool:
    """Return whether a demand wants another alternative or another number than a rule."""
    if not isinstance(item.detail, ConstraintDetail):
        return False
    former = item.detail.modality
    new, old = wanted_part(text, modality), wanted_part(item.text, former)
    return choices.excludes(new, old, only_numbers="must_not" in {modality, former})


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


def _opposes(text: str, modality: str, item: MemoryItem) -> bool:
    """Return whether a demand wants what a rule rules out, or the reverse, in its places."""
    if not isinstance(item.detail, ConstraintDetail):
        return False
    (wanted, unwanted), (old, against) = _will(text, modality), _will(item.text, item.detail.modality)
    if _overlap(wanted, against) >= CONTRARY or _overlap(unwanted, old) >= CONTRARY:
        return True
    bans = (_forbids(text, modality), _forbids(item.text, item.detail.modality))
    return (
        bans[0] != bans[1]
        and core(text) == core(item.text) != frozenset()
        and _places(text) <= _places(item.text)
    )


@lru_cache(maxsize=2_048)
def _forbids(text: str, modality: str) -> bool:
    return modality == "must_not" or bool(_LEAVES_OUT.match(text))


@lru_cache(maxsize=2_048)
def _places(text: str) -> frozenset[str]:
    places = (match.group() for match in _PLACES.finditer(without_reason(text)))
    return frozenset[str]().union(*map(subject_words, places))


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0


@lru_cache(maxsize=2_048)
def _will(text: str, modality: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return what a demand wants and what it rules out, as stems."""
    wanted, gone = (
        wanted_part(text, modality),
        " ".join(one["gone"] or "" for one in _RULED_OUT.finditer(text)),
    )
    if modality == "must_not":
        return frozenset(), content_words(without_reason(wanted)) - _wishes()
    return content_words(wanted) - _wishes(), content_words(gone) - _wishes()
