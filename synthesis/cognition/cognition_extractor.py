"""The extractor ``cognition``: turns what a cognitive agent recognised into memory items.

Knowledge and episodes are linked both ways, within a message and, on the same topic, across messages.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import msgspec

from agentx.storage.events.actor import Actor
from agentx.storage.events.cognition_events import Interacted, Level, Recognized
from agentx.storage.events.types import Event
from agentx.storage.text import folded, shorten
from agentx.synthesis.cognition.speakers import SAID_BY, speaker
from agentx.synthesis.memory.conclusions import Change, Patch
from agentx.synthesis.memory.items import (
    TRUST_ORDER,
    Evidence,
    Kind,
    Link,
    MemoryItem,
    NoteDetail,
    NoteSort,
    Trust,
    sort_of,
)
from agentx.synthesis.scribe.ledger import MAX_QUOTE, Ledger, Note
from agentx.synthesis.state.extractor import ReadBody
from agentx.synthesis.state.state import State

KINDS: dict[Level, tuple[Kind, NoteSort]] = {
    "L1": ("knowledge", "learning"),
    "L2": ("knowledge", ""),
    "L3": ("episode", ""),
}
"""The kind of memory item for each level, and its sort within the kind; topics are L1, too."""

LEVELS: dict[str, Level] = {"topic": "L1", "learning": "L1", "knowledge": "L2", "episode": "L3"}
"""The level of each sort of memory that a buffer may contain."""

OF_TOPIC, HAPPENED, TELLS_OF = "of_topic", "happened_in", "tells_of"
"""Relations: from a memory to its topic, from knowledge to its episode, and from an episode to knowledge."""

_STANDING = ("active", "dormant")
_NOTES = ("knowledge", "episode", "decision", "situation")

ACROSS_MESSAGES, LOOKED_THROUGH = 3, 300
"""Maximum number of memories of earlier messages on the same topic that a new one is linked to, and of the
latest items among which they are."""

MOST_LINKS = 24
"""Maximum number of links between an item and the items of the same message."""


class Cognition:
    """Draws conclusions from what cognitive agents recognise and use."""

    name = "cognition"
    version = 3
    reads = (Recognized, Interacted)

    def conclude(self, event: Event, state: State, read: ReadBody) -> Sequence[Change]:
        """Return a message's memories or an interaction's changes to the buffer; nothing for other events."""
        del read
        match event.data:
            case Recognized() as recognized:
                return _remember(event, state, recognized)
            case Interacted() as done:
                return _used(event, state, done)
        return ()


def _remember(event: Event, state: State, read: Recognized) -> Sequence[Change]:
    ledger = Ledger(event, state)
    said = next((one for one in reversed(state.messages) if one.seq == read.message), None)
    sender: Trust = "reported"
    if said is not None:
        sender = "user" if Actor.parse(said.actor).is_user and not read.second else "agent"
    by = speaker(said.actor, said.text) if said is not None and not read.second else ""
    topic = _topic(ledger, read, _trust(sender, "reported" if read.model else ""))
    ended = _ended(state, event, read, sender)
    made: list[MemoryItem] = []
    for number, one in enumerate(read.memories):
        quote = (one.quote or one.text)[:MAX_QUOTE] if one.end else ""
        place = Evidence(read.message, one.start, min(one.end, one.start + MAX_QUOTE), quote)
        trust = _trust(sender, one.trust)
        kind, sort = KINDS[one.level]
        since = min((when for by, when, _, _ in ended if by == number and when > event.at), default="")
        detail = NoteDetail(sort=sort, valid_from=since)
        note = Note(kind=kind, text=one.text, evidence=place, trust=trust, detail=detail)
        former = _former(ledger, note) if read.again else []
        same = [item for item in former if folded(item.text) == folded(one.text)]
        made.append(same[0] if same else ledger.add(note, former))
    known = [item for item in made if sort_of(item) == "knowledge"]
    happened = [item for item in made if item.kind == "episode"]
    for number, item in enumerate(made):
        links = [Link(OF_TOPIC, topic)] if topic else []
        links += [Link(SAID_BY, by)] if by else []
        if read.linked and item in known:
            links += [Link(HAPPENED, other.id) for other in happened][:MOST_LINKS]
        elif read.linked and item.kind == "episode":
            links += [Link(TELLS_OF, other.id) for other in known][:MOST_LINKS]
        links += [Link("supersedes", old.id) for at, _, old, _ in ended if at == number]
        if read.linked and topic:
            links += _across(ledger, state, item, topic)
        if fresh := [link for link in links if link not in item.links]:
            ledger.patch(Patch(id=item.id, links=(*item.links, *fresh)))
    for number, when, old, rest in ended:
        _supersede(ledger, old, made[number], when, rest)
    return tuple(ledger.changes)


def _across(ledger: Ledger, state: State, item: MemoryItem, topic: str) -> list[Link]:
    """Link what is known and what happened in other messages on the same topic, the latest, both ways.

    Returns:
        The links of the new item.
    """
    other, there, back = (
        ("knowledge", TELLS_OF, HAPPENED) if item.kind == "episode" else ("episode", HAPPENED, TELLS_OF)
    )
    found = (
        old
        for old in islice(reversed(state.items.values()), LOOKED_THROUGH)
        if sort_of(old) == other
        and old.status in ("active", "dormant")
        and Link(OF_TOPIC, topic) in old.links
    )
    links = []
    for old in islice(found, ACROSS_MESSAGES):
        now = ledger.state.items.get(old.id, old)
        if len(now.links) < MOST_LINKS:
            ledger.patch(Patch(id=old.id, links=(*now.links, Link(back, item.id))))
            links.append(Link(there, old.id))
    return links


def _former(ledger: Ledger, note: Note) -> list[MemoryItem]:
    """Return the memories of an earlier reading of the same words, which a note replaces."""
    place, known = note.evidence, ledger.standing("knowledge", "episode")
    return [
        item
        for item in (*known, *ledger.standing("knowledge", "episode", status="dormant"))
        if sort_of(item) in ("knowledge", "episode") and item.created_seq and not item.by_hand
        for one in item.evidence[:1]
        if one.seq == place.seq and one.start < place.end and place.start < one.end
    ]


def _ended(
    state: State, event: Event, read: Recognized, sender: Trust
) -> list[tuple[int, str, MemoryItem, str]]:
    """Return what a message supersedes: the place of the new memory, the time, the old one, and its rest.

    What users said is superseded by users alone, and never by material. What was changed by hand stays.
    """
    found: dict[str, tuple[int, str, MemoryItem, str]] = {}
    for one in read.outdated:
        old = state.items.get(one.memory)
        if old is None or sort_of(old) not in LEVELS or old.status not in _STANDING or not old.evidence:
            continue
        if not 0 <= one.by < len(read.memories) or old.by_hand or old.id in found:
            continue
        trust = _trust(sender, read.memories[one.by].trust)
        theirs = old.trust in ("agent", "material")
        if (theirs or sender == "user") and (trust != "material" or old.trust == "material"):
            when = one.since or event.at
            found[old.id] = (one.by, when, old, one.rest)
            found |= {same.id: (one.by, when, same, "") for same in _repeated(state, old)}
    return list(found.values())


def _repeated(state: State, old: MemoryItem) -> Iterator[MemoryItem]:
    """Yield the notes that another extractor took of the same words."""
    text, seq = folded(old.text), old.evidence[0].seq
    for item in state.items.values():
        here = item.id != old.id and [place.seq for place in item.evidence[:1]] == [seq]
        stands = item.status in (*_STANDING, "candidate") and not item.by_hand
        if here and stands and item.kind in _NOTES and folded(item.text) == text:
            yield item


def _supersede(ledger: Ledger, old: MemoryItem, new: MemoryItem, when: str, rest: str) -> None:
    """End a memory, and keep what is still true of it as one with the same evidence."""
    kept = tuple(link for link in old.links if link.relation not in ("supersedes", "superseded_by"))
    links, detail = old.links, old.detail
    if rest:
        since = detail.valid_from if isinstance(detail, NoteDetail) else ""
        still = NoteDetail(
            sort=detail.sort if isinstance(detail, NoteDetail) else "", valid_from=since or old.created_at
        )
        note = Note(kind=old.kind, text=rest, evidence=old.evidence[0], trust=old.trust, detail=still)
        part = ledger.add(note)
        ledger.patch(Patch(id=part.id, links=(*kept, Link("supersedes", old.id))))
        links = (*links, Link("superseded_by", part.id))
    links = (*links, Link("superseded_by", new.id))
    if isinstance(detail, NoteDetail):
        detail = msgspec.structs.replace(detail, valid_to=when)
    ledger.patch(Patch(id=old.id, status="retired", links=links, detail=detail))


def _topic(ledger: Ledger, read: Recognized, trust: Trust) -> str:
    """Create or update the topic of a message; return its id."""
    place = Evidence(read.message)
    if read.topic_action == "create":
        detail = NoteDetail(sort="topic")
        note = Note(kind="episode", text=read.topic_summary, evidence=place, trust=trust, detail=detail)
        return ledger.add(note).id
    known = ledger.state.items.get(read.topic)
    if known is None or sort_of(known) != "topic":
        return ""
    if read.topic_action == "update":
        ledger.patch(Patch(id=known.id, text=read.topic_summary, short=shorten(read.topic_summary)))
    return known.id


def _trust(sender: Trust, most: str) -> Trust:
    """Return the sender's trust, or less if ``most`` allows only less."""
    due: Trust = next((trust for trust in TRUST_ORDER if trust == most), "material") if most else sender
    return max(due, sender, key=TRUST_ORDER.index)


def _used(event: Event, state: State, done: Interacted) -> Sequence[Change]:
    """Strengthen memories that an answer used, put evicted ones to sleep, and wake those that returned."""
    ledger = Ledger(event, state)

    def known(names: Iterable[str]) -> Iterator[MemoryItem]:
        """Yield the memories that a buffer may contain."""
        return (item for name in names if (item := state.items.get(name)) and sort_of(item) in LEVELS)

    for item in known(done.reinforced):
        ledger.patch(Patch(id=item.id, strength=round(item.strength + done.boost, 6), used_at=event.at))
    for item in known(done.entered):
        if item.status == "dormant":
            ledger.patch(Patch(id=item.id, status="active"))
    for item in known(done.evicted):
        if item.status == "active" and not item.pinned:
            ledger.patch(Patch(id=item.id, status="dormant"))
    return tuple(ledger.changes)
