"""What a new finding does to the rules that stand: the same again, its contrary, its end, or something new."""

import re
from collections.abc import Iterable

import msgspec

from agentx.synthesis.demands.endings import BANNED, RULE_WORDS
from agentx.synthesis.demands.words import content_words, stem, words_of
from agentx.synthesis.items import ConstraintDetail, MemoryItem, RejectionDetail

SAME = 0.74
"""Share of common content words (Jaccard) from which two demands are the same one."""

CONTRARY = 0.6
"""The same for a demand and its opposite, whose wording differs more."""

_WISHES = frozenset(stem(verb) for verb in ("prefer", "prioritize", "want", "favour", "favor"))

MEANT = 0.6
"""Share of a retraction's content words that the rule which it ends must have."""

_CHOICE = re.compile(
    r"\b(?P<verb>use|answer|reply|respond|write|speak|talk|format|indent|name|call|prefer|spell|address|keep|document|put|place|store|deploy|run|express|give|state)\b",
    re.IGNORECASE,
)
"""Verbs of which there can be only one object at a time for the same purpose: "use tabs", "answer in German"."""

_INSTEAD = re.compile(
    r"\s+(?:instead of|rather than|over|and not|not|,\s*not|in place of)\s+(?P<unwanted>[^,;.]{2,80})",
    re.IGNORECASE,
)
_INSTEAD_TAIL = re.compile(
    r";\s*(?:please )?(?:use|write|prefer|put)\s+(?P<wanted>[^,;.]{2,80}?)\s*(?:instead)?[.!]?$",
    re.IGNORECASE,
)
_PURPOSE = re.compile(
    r"\s(?:for|in|when|whenever|on|about|to|with|as)\s+(?P<purpose>.+)$", re.IGNORECASE | re.DOTALL
)
_LANGUAGE_VERBS = frozenset({"answer", "reply", "respond", "speak", "talk", "write"})
_LANGUAGE = re.compile(
    r"\bin (?P<language>(?:\w+ )?(?:english|german|french|spanish|italian|portuguese|dutch|polish|russian|ukrainian|turkish|arabic|hindi|chinese|japanese|korean|swedish"
    r"|norwegian|danish|finnish|greek|czech|hungarian|romanian|hebrew))\b",
    re.IGNORECASE,
)


_NAME_LIKE = re.compile(r"\d|_|/|\w\.\w")
_NAMED = re.compile(r"(?:[A-Z][\w+#-]*|\.?[\w-]+(?:\.[\w-]+)+|[\w-]*[\d_][\w-]*)")
"""A name in one word: ``Redis``, ``requirements.txt``, ``max_age``."""
_ARTICLES = re.compile(r"^(?:(?:a|an|the|any|new|using|creating|adding)\s+)+|\s+files?$", re.IGNORECASE)
_AROUND = ".,;:!?()[]{}\"'`“”‘’*"


class _Will(msgspec.Struct, frozen=True):
    """What a demand wants and does not want, as stems; and, for a choice, between what and for which purpose."""

    wanted: frozenset[str]
    unwanted: frozenset[str]
    verb: str
    value: frozenset[str]
    purpose: frozenset[str]


def same_demand(text: str, modality: str, items: Iterable[MemoryItem]) -> MemoryItem | None:
    """The rule that says the same as a new demand, whatever its wording; the latest where there are several."""
    words = content_words(text)
    best: MemoryItem | None = None
    for item in items:
        detail = item.detail
        if isinstance(detail, ConstraintDetail) and (detail.modality == "must_not") != (
            modality == "must_not"
        ):
            continue
        if _overlap(words, content_words(item.text)) >= SAME and not _values_differ(text, item.text):
            best = item
    return best


def contrary_demands(text: str, modality: str, items: Iterable[MemoryItem]) -> tuple[MemoryItem, ...]:
    """The rules that a new demand contradicts: same subject and scope, opposite will or another choice."""
    new = _will(text, modality)
    found = []
    for item in items:
        if not isinstance(item.detail, ConstraintDetail):
            continue
        if _contradicts(new, _will(item.text, item.detail.modality)):
            found.append(item)
    return tuple(found)


def ended_by(what: str, items: Iterable[MemoryItem], *, sure: bool) -> MemoryItem | None:
    """The one rule that a retraction means, or ``None`` where it may mean none or several.

    Args:
        what: The words that say which ("the decorator").
        items: The rules that stand.
        sure: Whether the words can only end a rule; otherwise only a temporary one may be meant.
    """
    meant = content_words(what) - RULE_WORDS
    if not meant:
        return None
    scored = [
        (len(meant & (content_words(item.text) | content_words(item.scope.topic))) / len(meant), item)
        for item in items
        if sure or (isinstance(item.detail, ConstraintDetail) and item.detail.duration == "for_now")
    ]
    best = max((score for score, _ in scored), default=0.0)
    candidates = [item for score, item in scored if score == best]
    return candidates[0] if best >= MEANT and len(candidates) == 1 else None


def allowed_by(what: str, items: Iterable[MemoryItem]) -> tuple[MemoryItem, ...]:
    """The bans that end as what they rule out is allowed by its name: the same name, and nothing else in the ban.

    Args:
        what: What is allowed: a name ("Redis", "a requirements.txt"); of anything else nothing ends.
        items: The rules that stand.
    """
    named = _ARTICLES.sub("", what).strip(_AROUND.replace(".", "") + " ")
    if not _NAMED.fullmatch(named):
        return ()
    return tuple(item for item in items if _banned(item) == named.casefold())


def _banned(item: MemoryItem) -> str:
    detail = item.detail
    if isinstance(detail, RejectionDetail):
        return detail.idea.strip(_AROUND + " ").casefold()
    if not isinstance(detail, ConstraintDetail) or detail.modality != "must_not":
        return ""
    match = BANNED.search(" ".join(item.text.split()))
    return match["name"].casefold() if match else ""


def fulfilled_by(what: str, statement: str, items: Iterable[MemoryItem]) -> tuple[MemoryItem, ...]:
    """The rules that were to last until what a statement now says: all content words of their end are in it."""
    said = content_words(what) | content_words(statement)
    return tuple(
        item for item in items if (end := content_words(item.until)) and len(end) > 1 and end <= said
    )


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0


def _will(text: str, modality: str) -> _Will:
    body = " ".join(text.split())
    wanted, unwanted = "", ""
    if tail := _INSTEAD_TAIL.search(body):
        wanted, body = tail["wanted"], body[: tail.start()]
    if instead := _INSTEAD.search(body):
        unwanted = instead["unwanted"]
        body = body[: instead.start()] + body[instead.end() :]
    if modality == "must_not":
        unwanted = f"{body} {unwanted}"
    else:
        wanted = f"{body} {wanted}"
    verb, value, purpose = (
        _choice(body) if modality != "must_not" else ("", frozenset[str](), frozenset[str]())
    )
    return _Will(content_words(wanted), content_words(unwanted), verb, value, purpose)


def _choice(body: str) -> tuple[str, frozenset[str], frozenset[str]]:
    """Verb, value and purpose of a choice: ("use", {tab}, {indent}) of "use tabs for indentation"."""
    if (language := _LANGUAGE.search(body)) and _LANGUAGE_VERBS & {word.lower() for word in words_of(body)}:
        rest = body[: language.start()] + body[language.end() :]
        return (
            "answer",
            content_words(language["language"]),
            content_words(rest) - {stem(verb) for verb in _LANGUAGE_VERBS} - {"question"},
        )
    match = _CHOICE.search(body)
    if not match:
        return "", frozenset(), frozenset()
    rest = body[match.end() :]
    if purpose := _PURPOSE.search(rest):
        return (
            match["verb"].lower(),
            content_words(rest[: purpose.start()]),
            content_words(purpose["purpose"]),
        )
    return match["verb"].lower(), content_words(rest), frozenset()


def _contradicts(new: _Will, old: _Will) -> bool:
    if _opposed(new.wanted, old.unwanted) or _opposed(new.unwanted, old.wanted):
        return True
    return bool(
        new.verb
        and new.verb == old.verb
        and new.value
        and old.value
        and not new.value <= old.value
        and not old.value <= new.value
        and new.purpose == old.purpose
        and (new.purpose or new.verb == "answer")
    )


def _opposed(wanted: frozenset[str], unwanted: frozenset[str]) -> bool:
    """Whether one wants what the other forbids: all of what is forbidden, or nearly the same words."""
    one, other = wanted - _WISHES, unwanted - _WISHES
    if not one or not other:
        return False
    return _overlap(one, other) >= CONTRARY or (len(other) > 1 and other <= one)


def _names(text: str) -> frozenset[str]:
    """Names and numbers in a text, which mean what they are to the last character: ``a-1.txt``, ``v2``, ``max_age``."""
    tokens = (token.strip(_AROUND).casefold() for token in text.split())
    return frozenset(token for token in tokens if _NAME_LIKE.search(token))


def _values_differ(one: str, other: str) -> bool:
    names, others = _names(one), _names(other)
    if names and others and names != others:
        return True
    first, second = _LANGUAGE.search(one), _LANGUAGE.search(other)
    if first and second and first["language"].lower() != second["language"].lower():
        return True
    a, b = _INSTEAD.search(one), _INSTEAD.search(other)
    return bool(a and b and content_words(a["unwanted"]) != content_words(b["unwanted"]))
