"""Collect the notes of one fact.

A repetition updates an item, its opposite replaces it, anything else is new.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import islice

import msgspec

from agentx.storage.events.types import Event
from agentx.storage.text import clip, shorten
from agentx.synthesis.attribution.copies import Heard
from agentx.synthesis.demands.lifecycle import contrary_demands, same_demand
from agentx.synthesis.language.words import content_words
from agentx.synthesis.memory.conclusions import Add, Change, Patch
from agentx.synthesis.memory.items import (
    ConstraintDetail,
    Detail,
    Evidence,
    Kind,
    Link,
    MemoryItem,
    NoteDetail,
    Scope,
    Status,
    Trust,
    free_id,
    joined,
    sort_of,
)
from agentx.synthesis.state.state import State

MAX_TEXT = 400
"""Maximum number of characters of one note."""

MAX_QUOTE = 400
"""Maximum number of characters quoted as evidence."""

_COMPARED = 100
"""Number of items of one kind, the latest, that a new note is compared with."""


_SETTLED_TOGETHER: dict[Status, tuple[Status, ...]] = {
    "active": ("active", "candidate"),
    "candidate": ("active", "candidate"),
}
"""The statuses of items that a note with a status may repeat."""

_CHOSEN = re.compile(
    r"\b(?:let'?s )?(?:go|stick|went) (?:with|for|to)\b|\b(?:opt|settle) (?:for|on)\b|\b(?:choose|pick)\b",
    re.IGNORECASE,
)


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A note to be entered.

    Attributes:
        evidence: Where it was said.
        choice: Whether only one such item holds at a time for the same purpose, so that an opposite one
            replaces it.
        answers: The agent's sentence that the user's words answer.
        worded_by: The agent whose words the text is; empty for the words of the evidence.
        confirms: Whether it makes a candidate that says the same active: the user says it again.
    """

    kind: Kind
    text: str
    evidence: Evidence
    trust: Trust
    domain: str = ""
    agent: str = ""
    scope: Scope = Scope()
    status: Status = "active"
    reason: str = ""
    detail: Detail = NoteDetail()
    choice: bool = False
    answers: Evidence | None = None
    worded_by: str = ""
    confirms: bool = True

    @property
    def sort(self) -> str:
        """What the item is within its kind, as :func:`agentx.synthesis.memory.items.sort_of` gives it."""
        return (self.detail.sort if isinstance(self.detail, NoteDetail) else "") or self.kind


class Ledger:
    """The items while one fact is read, and the changes so far.

    Args:
        event: The fact.
        state: The state after it.
        heard: Returns who wrote what first, up to the fact.
    """

    def __init__(self, event: Event, state: State, heard: Callable[[], Heard] = Heard) -> None:
        self.heard = heard
        self.changes: list[Change] = []
        self.event = event
        self.state = state

    @cached_property
    def _items(self) -> dict[str, MemoryItem]:
        """The items with the changes applied. Copied only when needed: most facts cause no note."""
        return dict(self.state.items)

    def standing(self, *kinds: Kind, status: Status = "active") -> Iterator[MemoryItem]:
        """Return the items of some kinds that have a status, latest first."""
        return (i for i in reversed(self._items.values()) if i.kind in kinds and i.status == status)

    def evidence(self, text: str, start: int = 0, end: int | None = None) -> Evidence:
        """Return a quotation of the event's text as evidence."""
        end = min(len(text) if end is None else end, start + MAX_QUOTE)
        return Evidence(self.event.seq, start, end, text[start:end])

    def enter(self, note: Note, over: str = "", *, answer: bool = False) -> MemoryItem | None:
        """Enter a note. Return the item that holds it, or ``None`` if these words are noted already.

        Of a choice, ``over`` is the former choice; items that chose it are replaced. An ``answer`` replaces
        the former answer to the same question.
        """
        place = note.evidence
        if any(
            sort_of(item) == note.sort
            and one.seq == place.seq
            and one.start < place.end
            and place.start < one.end
            for item in self._items.values()
            for one in item.evidence
        ):
            return None
        alike = (
            one
            for status in _SETTLED_TOGETHER.get(note.status, (note.status,))
            for one in self.standing(note.kind, status=status)
            if one.domain == note.domain and sort_of(one) == note.sort
        )
        known = list(islice(alike, _COMPARED))
        if answer and note.answers:
            return self._answer(note, note.answers, known)
        # Each is compared as a choice, with another choice.
        plain = ConstraintDetail()
        compared = {
            item.id: msgspec.structs.replace(item, text=_choice(item.text), detail=plain) for item in known
        }
        contrary = contrary_demands(_choice(note.text), "must", compared.values()) if note.choice else ()
        replaced = [self._items[item.id] for item in contrary]
        replaced += [item for item in known if over and item not in replaced and _chose(item, over)]
        if not replaced and (same := same_demand(note.text, "must", reversed(compared.values()))):
            former = self._items[same.id]
            again = self.again(former, note.evidence)
            # A candidate that is said again, in another message, is confirmed.
            confirmed = (
                note.confirms
                and former.status == "candidate"
                and former.evidence[-1].seq != note.evidence.seq
                and any(self.heard().is_spoken(one.seq, one.quote) for one in former.evidence)
            )
            return self.patch(Patch(id=again.id, status="active")) if confirmed else again
        return self.add(note, replaced)

    def _answer(self, note: Note, asked: Evidence, known: Sequence[MemoryItem]) -> MemoryItem:
        """Enter an answer. It replaces the former answer to the same question."""
        former = [
            one for one in known if one.answers and one.answers.quote == asked.quote and not one.by_hand
        ]
        if former and former[0].text == note.text:
            return self.again(former[0], note.evidence)
        return self.add(note, former)

    def again(self, item: MemoryItem, evidence: Evidence) -> MemoryItem:
        """Add evidence to an item that is repeated or continued."""
        places = joined(item.evidence, (evidence,))
        return self.patch(Patch(id=item.id, evidence=places, used_at=self.event.at, status=item.status))

    def restate(self, item: MemoryItem, text: str, evidence: Evidence) -> MemoryItem:
        """Replace an item's text, with new evidence."""
        return self.patch(Patch(id=item.id, text=text, short=shorten(text), evidence=(evidence,)))

    def add(self, note: Note, replaced: Sequence[MemoryItem] = ()) -> MemoryItem:
        """Add an item that replaces others, if any are given."""
        identity = free_id(note.kind, note.evidence.seq, self._items)
        for old in replaced:
            links = (*old.links, Link("superseded_by", identity))
            self.patch(Patch(id=old.id, status="retired", links=links))
        text = clip(note.text, MAX_TEXT)
        item = MemoryItem(
            id=identity,
            kind=note.kind,
            text=text,
            short=shorten(text),
            domain=note.domain or next((old.domain for old in replaced if old.domain), ""),
            agent=note.agent,
            scope=note.scope,
            evidence=(note.evidence,),
            trust=note.trust,
            status=note.status,
            reason=note.reason,
            answers=note.answers,
            worded_by=note.worded_by,
            links=tuple(Link("supersedes", old.id) for old in replaced),
            detail=note.detail,
        )
        self._items[identity] = item
        self.changes.append(Add(item))
        return item

    def patch(self, patch: Patch) -> MemoryItem:
        """Change an item."""
        self._items[patch.id] = msgspec.structs.replace(self._items[patch.id], **patch.fields())
        self.changes.append(patch)
        return self._items[patch.id]

    def take(self, changes: Sequence[Change]) -> None:
        """Apply changes from another reading of the same fact."""
        for change in changes:
            if isinstance(change, Patch):
                self.patch(change)
            elif isinstance(change, Add):
                self._items[change.item.id] = change.item
                self.changes.append(change)


def _chose(item: MemoryItem, over: str) -> bool:
    """Return whether an item chose what is now given up.

    Its words must be in the choice itself, not in the part that names the rejected alternative.
    """
    words, text = content_words(over), item.text.partition(" instead of ")[0].partition(" rather than ")[0]
    return bool(words) and words <= content_words(text)


def _choice(text: str) -> str:
    """Reword a decision the way a demand would say it."""
    return _CHOSEN.sub("use", text)
