"""Finds the existing rules that a user's words end, and those that they may end.

Words end a rule only if they fit it best and clearly. If several rules fit equally well, or the words fit
only in part, the rules may be meant: they are asked about.
"""

import re
from collections.abc import Iterable, Sequence

from agentx.synthesis.demands.lifecycle import core, names_in, replaces, wanted_part, without_reason
from agentx.synthesis.demands.reversals import Fulfilment, Occurrence, Permission, Retraction
from agentx.synthesis.demands.tables import endings
from agentx.synthesis.language.words import content_words, subject_words, vocabulary
from agentx.synthesis.memory.items import ConstraintDetail, MemoryItem, RejectionDetail

MEANT = 0.6
"""Minimum share of the subject words of an ending that the rule it ends must contain."""

TOUCHED = 0.3
"""The same for a rule that the words may end; or the share of the rule's core that they name."""

MOST_ASKED = 3
"""Maximum number of rules that one sentence raises a question about."""

_ROOT = 4
_COMPLETED = vocabulary("done finish complet over out through now final last back end lift")
_CHOSEN = r"\b(?:use|using|prefer|with|in|as|via|by|to|only|be)\s+(?:[\w-]+\s+){0,2}?"
_AROUND = ".,;:!?()[]{}\"'`“”‘’* "


def ended_by(said: Retraction, items: Sequence[MemoryItem]) -> tuple[MemoryItem, ...]:
    """Return the rules that words end: one, or all if they say so; none if it is not clear."""
    meant = _meant(said.what)
    if not meant or (isinstance(said, Permission) and meant <= endings.STATUS_WORDS):
        return ()
    fits = [item for item in items if _is_of(item, said.of) and not _limits(said, item)]
    if isinstance(said, Permission) and not endings.AGAIN.search(said.what):
        # "You can push now" may permit it once: only exactly what was ruled out, or a temporary ban.
        found = [item for item in fits if said.sure and _core(item) == meant]
        found = found or [item for item in fits if is_temporary(item) and meant <= _subject(item)]
        return tuple(found) if len(found) == 1 else ()
    scored = [
        (len(meant & _subject(item)) / len(meant), item) for item in fits if said.sure or is_temporary(item)
    ]
    best = max((score for score, _ in scored), default=0.0)
    found = [item for score, item in scored if score == best]
    if best < MEANT or len(found) != 1:
        return ()
    exact = _core(found[0]) <= meant or names_in(said.what) & names_in(found[0].text)
    return tuple(found) if said.alone or (best == 1 and exact) else ()


def perhaps_ended_by(said: Retraction, items: Sequence[MemoryItem]) -> tuple[MemoryItem, ...]:
    """Return the rules that words may end: those that share most with them, at most a few."""
    permits = isinstance(said, Permission)
    pool = [
        item
        for item in items
        if said.sure
        or (permits and (_is_of(item, "must_not") or endings.RESTRICTS.search(item.text)))
        or not (permits or isinstance(item.detail, RejectionDetail))
    ]
    if endings.FORBIDS.search(said.what):  # "emojis are not allowed any more" repeats a ban
        pool = [item for item in pool if _is_of(item, "must")]
    if said.sure and not permits and not _meant(said.what):  # "you can stop doing that now"
        return tuple(pool) if len(pool) == 1 else ()
    near = _touched(_meant(said.what), pool) or (permits and _touched(_meant(said.what), items, least=2))
    return near or _touched(_meant(said.wide), pool, least=2)


def fulfilled_by(said: Fulfilment, items: Iterable[MemoryItem]) -> tuple[MemoryItem, ...]:
    """Return the rules whose end condition a statement fulfils: it names all of the condition."""
    words = subject_words(said.what)
    return tuple(
        item
        for item in items
        if (end := subject_words(item.until) - _COMPLETED)
        and end <= words
        and (len(end) > 1 or len(words - _COMPLETED) <= len(end) + 1)
        and names_in(item.until) <= names_in(said.what)
    )


def perhaps_fulfilled_by(
    said: Fulfilment | Occurrence, items: Iterable[MemoryItem]
) -> tuple[MemoryItem, ...]:
    """Return the rules whose end condition a statement may fulfil: it names most of it."""
    words = subject_words(said.what)
    found = [
        item
        for item in items
        if (end := _condition(item))
        and 2 * len(_shared(end, words)) >= len(end)
        and names_in(item.until) <= names_in(said.what)
    ]
    if not found and (other := revised_by(said.what, "", items)):
        found = [other]
    return tuple(found) if len(found) <= MOST_ASKED else ()


def revised_by(text: str, unwanted: str, items: Iterable[MemoryItem]) -> MemoryItem | None:
    """Return the one rule whose choice a sentence changes.

    The sentence wants an excluding alternative, or names the old choice as unwanted.

    Args:
        text: What the user wants now.
        unwanted: What it names as no longer wanted; may be empty.
        items: The existing rules.
    """
    wanted = wanted_part(text, "must")
    found = [
        item
        for item in items
        if isinstance(item.detail, ConstraintDetail)
        and (replaces(text, "must", item) or _chose(item, unwanted, wanted))
    ]
    return found[0] if len(found) == 1 else None


def perhaps_revised_by(text: str, items: Sequence[MemoryItem]) -> tuple[MemoryItem, ...]:
    """Return the rules in whose place a sentence may put another choice: those whose subject it names."""
    return _touched(_meant(text), items)


def is_temporary(item: MemoryItem) -> bool:
    """Return whether the user limited a rule in time."""
    return isinstance(item.detail, ConstraintDetail) and item.detail.duration == "for_now"


def _touched(meant: frozenset[str], items: Sequence[MemoryItem], *, least: int = 1) -> tuple[MemoryItem, ...]:
    scored = []
    for item in items:
        core, shared = _core(item), _shared(meant, _about(item))
        share = max(len(shared) / len(meant) if meant else 0, len(meant & core) / len(core) if core else 0)
        if (
            (share >= TOUCHED or len(shared) > 1)
            and len(shared) >= least
            and not meant <= endings.STATUS_WORDS
        ):
            scored.append((share, item))
    best = max((share for share, _ in scored), default=0.0)
    found = tuple(item for share, item in scored if share == best)
    return found if len(found) <= MOST_ASKED else ()


def _shared(meant: frozenset[str], words: frozenset[str]) -> frozenset[str]:
    """Return the words that also occur in another form: "signature" and "sign", "PRs" and "pr"."""
    long = tuple(word for word in words if len(word) >= _ROOT)
    return frozenset(
        word
        for word in meant
        if word in words
        or word.removesuffix("s") in words
        or word.startswith(long)
        or (len(word) >= _ROOT and any(one.startswith(word) for one in long))
    )


def _meant(text: str) -> frozenset[str]:
    return (subject_words(text) or content_words(text)) - endings.RULE_WORDS | names_in(text)


def _limits(said: Retraction, item: MemoryItem) -> bool:
    """Return whether words speak only of a place that the rule does not name: an exception."""
    return bool(subject_words(said.place) - endings.RULE_WORDS - _about(item))


def _is_of(item: MemoryItem, sort: str) -> bool:
    detail = item.detail
    forbids = isinstance(detail, RejectionDetail) or (
        isinstance(detail, ConstraintDetail) and detail.modality == "must_not"
    )
    return not sort or forbids == (sort == "must_not")


def _subject(item: MemoryItem) -> frozenset[str]:
    text = item.detail.idea if isinstance(item.detail, RejectionDetail) else without_reason(item.text)
    words = subject_words(text) | content_words(text) | subject_words(item.scope.topic)
    return words | names_in(text) if words else subject_words(item.text)


def _about(item: MemoryItem) -> frozenset[str]:
    quote = _quote(item)
    return _subject(item) | subject_words(item.text) | subject_words(quote) | subject_words(item.until)


def _core(item: MemoryItem) -> frozenset[str]:
    text = item.detail.idea if isinstance(item.detail, RejectionDetail) else item.text
    return core(text) - endings.RULE_WORDS


def _condition(item: MemoryItem) -> frozenset[str]:
    match = endings.CONDITION.search(_quote(item))
    return subject_words(item.until or (match["end"] if match else "")) - _COMPLETED


def _quote(item: MemoryItem) -> str:
    return item.evidence[0].quote if item.evidence else item.text


def _chose(item: MemoryItem, unwanted: str, wanted: str) -> bool:
    bare = unwanted.strip(_AROUND)
    if not isinstance(item.detail, ConstraintDetail) or item.detail.modality == "must_not" or not bare:
        return False
    return bool(
        subject_words(wanted) - subject_words(bare)
        and re.search(_CHOSEN + re.escape(bare) + r"\b", item.text, re.IGNORECASE)
    )
