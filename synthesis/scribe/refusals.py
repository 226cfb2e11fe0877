"""Refusals: calls that the user denied, with the reason they gave.

A refusal is always recorded. Usually it concerns that one call, so it is ``dormant``: kept and searchable,
but not shown by itself. If its words forbid an idea beyond the call, it is active like any other rejection
until the user takes it back.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from agentx.storage.text import one_line
from agentx.synthesis.attribution.material import own_words, straighten
from agentx.synthesis.demands.book import Book
from agentx.synthesis.demands.classify import as_sentence, readings
from agentx.synthesis.demands.lifecycle import same_demand
from agentx.synthesis.language.sentences import sentences
from agentx.synthesis.language.words import content_words
from agentx.synthesis.memory.conclusions import Add, Change, Patch
from agentx.synthesis.memory.items import (
    ConstraintDetail,
    Evidence,
    MemoryItem,
    RefusedCall,
    RejectionDetail,
    Scope,
    item_id,
)
from agentx.synthesis.scribe.calls import call_scope
from agentx.synthesis.scribe.ledger import Ledger, Note
from agentx.synthesis.scribe.refused_calls import repeats_call
from agentx.synthesis.state.state import State

ONE_CALL = "It was about this one call; it is kept and found by a search, not shown by itself."

_MAX_REASON = 4_000
_RULED_OUT = re.compile(
    r"\b(?:we|i|this (?:project|team|repo|company)) (?:(?:really|just|generally|usually|simply) )?"
    r"(?:don't|do not|doesn't|does not|never|no longer|can't|cannot|won't) "
    r"(?:ever |actually |really |want to )?"
    r"(?P<verb>want|use|do|like|allow|write|add|ship|accept|commit|deploy|mock|hardcode|tolerate|release"
    r"|merge|push|suggest|install|import|depend on|rely on|call|touch|edit)"
    r"(?: to (?:see|have|use))? (?P<idea>[^,.;:!?()\n]{2,90})",
    re.IGNORECASE,
)
"""What the speaker never does, as a habit: "we don't use global state"."""

_EVERYWHERE = re.compile(
    r"\s+(?:here|anywhere|at all|any ?more|in (?:this|our|the) "
    r"(?:project|repo|repository|code ?base|team|company|house))\b.*$",
    re.IGNORECASE,
)
_REASON = re.compile(r"\s+(?:because|since|as|so|and|but)\s.*$", re.IGNORECASE)
_CONDITION = re.compile(r"\s+(?:if|when|unless)\s.*$", re.IGNORECASE)
_PLACE = re.compile(r"(?:on|in|at|to|from|with|for|by)\b", re.IGNORECASE)
_AT_HAND = re.compile(r"\b(?:this|that|these|those|it|here|the|my|your|you|just)\b|\d", re.IGNORECASE)
"""Words in an idea that refer to the specific case."""

_FOR_NOW = re.compile(r"\b(?:for now|right now|yet|today|at the moment|this time)\b", re.IGNORECASE)


class Refusal(NamedTuple):
    """A refused call.

    Attributes:
        call: A short description of the call.
        reason: What the user said; empty for nothing.
        start: Position of the reason in the event's text.
        by_person: Whether it is certain that a person spoke, so that their words may become a rule.
        made: The call as it is compared with later ones; ``None`` if it is unknown.
    """

    call: str
    tool: str
    arguments: Mapping[str, Any]
    reason: str
    start: int
    by_person: bool
    made: RefusedCall | None = None


def record(ledger: Ledger, state: State, refusal: Refusal) -> None:
    """Record a refusal, and what its reason demands beyond the call."""
    reason = refusal.reason[:_MAX_REASON]
    # Evidence positions refer to the event's text. Pad with line ends, which add no words.
    text = "\n" * refusal.start + reason
    whole = ledger.evidence(text, refusal.start)
    rejections = (item for item in state.items.values() if item.kind == "rejection")
    if any(place.seq == whole.seq for item in rejections for place in item.evidence):
        return
    found = refusal.by_person and _rule_out(ledger, refusal, text, whole)
    # The changes that the words would cause as a message of the user.
    book = Book(ledger.event.seq, text, state)
    for reading in readings(text) if refusal.by_person else ():
        book.enter(reading)
    for change in book.changes:
        kept = _kept(change, refusal, whole)
        if kept is not None and not (found and _forbids(kept)):
            found = _enter(ledger, kept, whole) or found
    if not found or (refusal.made and not _is_kept(ledger, refusal.made)):
        _rest(ledger, refusal, whole)


def _is_kept(ledger: Ledger, made: RefusedCall) -> bool:
    """Return whether a rejection keeps the call."""
    standing = (*ledger.standing("rejection"), *ledger.standing("rejection", status="dormant"))
    return any(isinstance(one.detail, RejectionDetail) and one.detail.call == made for one in standing)


def end_refusals(ledger: Ledger, tool: str, arguments: Mapping[str, Any]) -> None:
    """End the refusals of calls like one that the user approved: such a call no longer asks."""
    for item in [*ledger.standing("rejection"), *ledger.standing("rejection", status="dormant")]:
        detail = item.detail
        if isinstance(detail, RejectionDetail) and detail.call and repeats_call(detail.call, tool, arguments):
            ledger.patch(Patch(id=item.id, detail=msgspec.structs.replace(detail, call=None)))


def _kept(change: Change, refusal: Refusal, whole: Evidence) -> Change | None:
    """Return a change as it applies to a refusal; ``None`` for a tentative rejection.

    What must not be done from now on becomes a rejection.
    """
    if not isinstance(change, Add):
        return change
    item, detail = change.item, change.item.detail
    if isinstance(detail, RejectionDetail):
        if item.status != "active":
            return None
        idea, checks = detail.idea, detail.checks
    elif (
        isinstance(detail, ConstraintDetail)
        and detail.modality == "must_not"
        and item.status == "active"
        and not (item.until or item.links)
    ):
        idea, checks = item.text, detail.checks
    else:
        return change
    rejected = RejectionDetail(idea=idea, reason=_more(refusal, item.text), checks=checks, call=refusal.made)
    number = int(item.id.partition(".")[2] or 1)  # among the items of one event
    name = item_id("rejection", whole.seq, number - 1)
    return Add(msgspec.structs.replace(item, id=name, kind="rejection", evidence=(whole,), detail=rejected))


def _more(refusal: Refusal, text: str) -> str:
    """Return the full reason if a rule covers only a part of it."""
    whole = one_line(refusal.reason)
    return whole if len(text) + 2 < len(whole) else ""


def _rule_out(ledger: Ledger, refusal: Refusal, text: str, whole: Evidence) -> bool:
    """Record an idea that the reason rejects in general. Return whether one was found."""
    plain, original = own_words(text), straighten(text)
    for sentence in sentences(plain):
        words = plain[sentence.start : sentence.end]
        match = _RULED_OUT.search(words)
        idea = general(match, words) if match and not words.endswith("?") else ""
        if not match or not idea:
            continue
        if same := _known(ledger, idea):
            ledger.again(same, whole)
            return True
        start = sentence.start + match.start()
        said = original[start : start + len(_REASON.sub("", match.group()))]
        detail = RejectionDetail(idea=idea, reason=_more(refusal, said), call=refusal.made)
        text = as_sentence(said)
        ledger.add(Note(kind="rejection", text=text, evidence=whole, trust="user", detail=detail))
        return True
    return False


def general(match: re.Match[str], words: str) -> str:
    """Return the idea that a sentence rejects in general; empty if it is about a specific case.

    >>> sentence = "We don't use global state here"
    >>> general(_RULED_OUT.search(sentence), sentence)
    'global state'
    >>> general(_RULED_OUT.search("we don't want the second test"), "")
    ''
    """
    idea = _EVERYWHERE.sub("", _CONDITION.sub("", _REASON.sub("", match["idea"]))).strip()
    if _PLACE.match(idea):
        idea = f"{match['verb']} {idea}"
    at_hand = _AT_HAND.search(idea) or _FOR_NOW.search(words)
    return "" if at_hand or not content_words(idea) else idea


def _forbids(change: Change) -> bool:
    """Return whether a change adds a ban or a rejection."""
    detail = change.item.detail if isinstance(change, Add) else None
    bans = isinstance(detail, ConstraintDetail) and detail.modality == "must_not"
    return bans or isinstance(detail, RejectionDetail)


def _enter(ledger: Ledger, change: Change, whole: Evidence) -> bool:
    """Apply a change. Return whether it rejects an idea, for the first time or again."""
    if isinstance(change, Patch):
        return ledger.patch(change).kind == "rejection"
    if not isinstance(change, Add) or change.item.kind != "rejection":
        ledger.take((change,))
        return False
    if same := _known(ledger, change.item.text):
        ledger.again(same, whole)
    else:
        ledger.take((change,))
    return True


def _known(ledger: Ledger, idea: str) -> MemoryItem | None:
    """Return the existing rejection of an idea."""
    standing = {item.id: item for item in ledger.standing("rejection")}
    ideas = [
        msgspec.structs.replace(item, text=item.detail.idea)
        for item in standing.values()
        if isinstance(item.detail, RejectionDetail)
    ]
    same = same_demand(idea, "rejection", ideas)
    return standing[same.id] if same else None


def _rest(ledger: Ledger, refusal: Refusal, whole: Evidence) -> None:
    """Record a refusal of one call. The same call refused for the same reason is one item."""
    reason = one_line(refusal.reason)
    text = f"{refusal.call}: {reason}" if reason else f"{refusal.call}: refused, and no reason was given"
    detail = RejectionDetail(idea=refusal.call, reason=reason, call=refusal.made)
    for item in ledger.standing("rejection", status="dormant"):
        if item.detail == detail:
            ledger.again(item, whole)
            return
    scope = call_scope(refusal.tool, refusal.arguments) if refusal.tool else Scope()
    ledger.add(
        Note(
            kind="rejection",
            text=text,
            evidence=whole,
            trust="user",
            scope=scope,
            status="dormant",
            reason=ONE_CALL,
            detail=detail,
        )
    )
