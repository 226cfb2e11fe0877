"""Finds the existing rules that a user's words mean.

A rule is found only if it fits best: if several fit equally well, mostly none is returned.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec

from agentx.synthesis.demands.lifecycle import core, wanted_part
from agentx.synthesis.demands.reversals import Amendment, Permission, Retraction
from agentx.synthesis.demands.tables.choices import Wish, excludes
from agentx.synthesis.demands.tables.endings import BANNED, CUES, RULE_WORDS, STATUS_WORDS
from agentx.synthesis.language.words import content_words, subject_words, vocabulary
from agentx.synthesis.memory.items import ConstraintDetail, MemoryItem, RejectionDetail

MEANT = 0.6
"""Minimum share of a retraction's subject words that the rule it ends must contain."""

_NAMED = re.compile(r"(?:[A-Z][\w+#-]*|\.?[\w-]+(?:\.[\w-]+)+|[\w-]*[\d_][\w-]*)")
"""A name in one word: ``Redis``, ``requirements.txt``, ``max_age``."""
_ARTICLES = re.compile(r"^(?:(?:a|an|the|any|new|using|creating|adding)\s+)+|\s+files?$", re.IGNORECASE)
_AROUND = ".,;:!?()[]{}\"'`“”‘’*"
_AND = re.compile(r",|\band\b|\bor\b", re.IGNORECASE)
_COMPLETED = vocabulary("done finish complet over out through now final")
_CHOSEN = r"\b(?:use|using|prefer|with|in|as|via|by|to|only|be)\s+(?:[\w-]+\s+){0,2}?"


def retracted_by(said: Retraction, items: Sequence[MemoryItem]) -> tuple[MemoryItem, ...]:
    """Return the rules that a retraction means: one, or all if it says so; none if it is ambiguous."""
    if said.several and len(each := [piece for piece in _AND.split(said.what) if piece.strip()]) > 1:
        named = [retracted_by(msgspec.structs.replace(said, what=piece), items) for piece in each]
        return tuple({item.id: item for found in named for item in found}.values())
    meant = subject_words(said.what) - RULE_WORDS or content_words(said.what) - RULE_WORDS
    if not meant:
        return ()
    scored = [
        (len(meant & _subject(item)) / len(meant), item)
        for item in items
        if _is_of(item, said.of) and (said.sure or _is_temporary(item))
    ]
    if said.several:
        return tuple(item for score, item in scored if score == 1)
    best = max((score for score, _ in scored), default=0.0)
    found = [item for score, item in scored if score == best]
    if not said.alone and (best < 1 or not _core(found[0]) <= meant):
        return ()
    return tuple(found) if best >= MEANT and len(found) == 1 else ()


def allowed_by(said: Permission, items: Iterable[MemoryItem]) -> tuple[MemoryItem, ...]:
    """Return the bans that end because what they rule out is allowed: exactly that and nothing else.

    An act ("you can push now") may be allowed only once, so it ends only a temporary ban.
    """
    bans = [item for item in items if _is_of(item, "must_not")]
    meant = subject_words(said.what)
    if said.act:
        found = [item for item in bans if _is_temporary(item) and meant and meant <= _subject(item)]
        return tuple(found) if len(found) == 1 else ()
    named = _ARTICLES.sub("", said.what).strip(_AROUND.replace(".", "") + " ")
    if _NAMED.fullmatch(named):
        return tuple(item for item in bans if _banned(item) == named.casefold())
    if not meant or meant <= STATUS_WORDS:
        return ()
    return tuple(item for item in bans if _core(item) == meant)


def fulfilled_by(what: str, statement: str, items: Iterable[MemoryItem]) -> tuple[MemoryItem, ...]:
    """Return the rules whose end condition a statement fulfils.

    All content words of the condition must be in the statement.
    """
    said = subject_words(what) | subject_words(statement)
    return tuple(
        item
        for item in items
        if (end := subject_words(item.until) - _COMPLETED)
        and end <= said
        and (len(end) > 1 or end == subject_words(what) - _COMPLETED)
    )


def revised_by(text: str, unwanted: str, items: Iterable[MemoryItem]) -> MemoryItem | None:
    """Return the one rule whose choice a sentence changes.

    The sentence wants an excluding alternative, or names the old choice as unwanted.

    Args:
        text: What the user wants now.
        unwanted: What it names as no longer wanted; may be empty.
        items: The existing rules.
    """
    wanted = wanted_part(CUES.sub(" ", text), "must")
    found = [
        item
        for item in items
        if isinstance(item.detail, ConstraintDetail)
        and (
            excludes(
                Wish(wanted, "must"), Wish(wanted_part(item.text, item.detail.modality), item.detail.modality)
            )
            or _chose(item, unwanted, wanted)
        )
    ]
    return found[0] if len(found) == 1 else None


def amended_by(said: Amendment, items: Sequence[MemoryItem]) -> MemoryItem | None:
    """Return the one rule to which a sentence makes an exception by naming its subject."""
    meant = subject_words(said.what) - RULE_WORDS
    if not meant:
        return None
    fits = [
        item
        for item in items
        if _is_of(item, said.of) and meant <= _subject(item) and (said.only or _core(item) <= meant)
    ]
    return fits[0] if len(fits) == 1 else None


def _is_of(item: MemoryItem, sort: str) -> bool:
    detail = item.detail
    forbids = isinstance(detail, RejectionDetail) or (
        isinstance(detail, ConstraintDetail) and detail.modality == "must_not"
    )
    return not sort or forbids == (sort == "must_not")


def _is_temporary(item: MemoryItem) -> bool:
    return isinstance(item.detail, ConstraintDetail) and item.detail.duration == "for_now"


def _subject(item: MemoryItem) -> frozenset[str]:
    return subject_words(item.text) | content_words(item.text) | subject_words(item.scope.topic)


def _core(item: MemoryItem) -> frozenset[str]:
    return core(item.detail.idea if isinstance(item.detail, RejectionDetail) else item.text)


def _banned(item: MemoryItem) -> str:
    detail = item.detail
    if isinstance(detail, RejectionDetail):
        return detail.idea.strip(_AROUND + " ").casefold()
    match = BANNED.search(" ".join(item.text.split()))
    return match["name"].casefold() if match else ""


def _chose(item: MemoryItem, unwanted: str, wanted: str) -> bool:
    bare = unwanted.strip(_AROUND + " ")
    if not isinstance(item.detail, ConstraintDetail) or item.detail.modality == "must_not" or not bare:
        return False
    return bool(
        subject_words(wanted) - subject_words(bare)
        and re.search(_CHOSEN + re.escape(bare) + r"\b", item.text, re.IGNORECASE)
    )
