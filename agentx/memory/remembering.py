"""What an agent says is to be remembered: the user's, if a recorded message of the user proves it.

The agent names the user's words. They are looked for in the messages of the user, and nowhere else: not in
files, outputs or what agents say. Without them it is knowledge that somebody reported, which is recalled as
material and never becomes a rule.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from agentx.storage.errors import UsageError
from agentx.storage.events.actor import Actor
from agentx.storage.events.types import UserMessageSent
from agentx.storage.index.port import Filter
from agentx.storage.log.blobs import BlobDamaged
from agentx.storage.log.history import told_already
from agentx.storage.secrets.redaction import clean
from agentx.storage.text import one_line, shorten
from agentx.synthesis.judgement.book import NotBelieved
from agentx.synthesis.judgement.quotes import MAX_QUOTE, OwnWords
from agentx.synthesis.judgement.remembering import Remembered, check_remembered
from agentx.synthesis.judgement.settling import KINDS
from agentx.synthesis.memory.conclusions import AGENT, Add, fits
from agentx.synthesis.memory.items import Evidence, MemoryItem, NoteDetail, free_id

if TYPE_CHECKING:
    from agentx.engine.engine import Engine

_FOUND = 20
"""Maximum number of older messages in which a quote is looked for."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What became of something that an agent wants remembered.

    Attributes:
        item: The item that holds it.
        unproven: Why it does not have the user's trust; empty if it has.
    """

    item: MemoryItem
    unproven: str = ""

    def render(self) -> str:
        """Return one line for the agent."""
        item = self.item
        line = f"{item.id} ({item.kind}, {item.status}, trust {item.trust}): {one_line(item.text)}"
        return f"{line}\n{self.unproven}" if self.unproven else line


def remember(engine: "Engine", kind: str, text: str, quote: str = "", *, by: str = "agent:main") -> Kept:
    """Remember something for an agent.

    Args:
        engine: The workspace.
        kind: What it is: one of :data:`KINDS`.
        text: A sentence that can be understood alone.
        quote: The user's words that it rests on, copied exactly; empty if the user did not say it.
        by: The agent's actor.

    Raises:
        UsageError: The text is empty or too long, the kind is unknown, or ``by`` is not an agent.
        ReadOnly: The workspace was written by a newer version.
    """
    if Actor.parse(by).role != "agent":
        raise UsageError(f"An agent remembers by this (agent:main), not {by!r}.")
    if kind not in KINDS:
        raise UsageError(f"Unknown kind {kind!r}; use one of: {', '.join(KINDS)}.")
    text, quote = one_line(clean(text)), clean(quote).strip()
    if not text:
        raise UsageError("Give the text that is to be remembered.")
    engine.heard.read_ahead(engine.log.copy_state())
    with engine.write_path.exclusive():
        seq, message = _message_with(engine, quote)
        if not seq:
            return _reported(engine, kind, text, by, _why_unproven(quote))
        given = Remembered(kind=kind, quote=quote, text=text, seq=seq)
        try:
            state = engine.log.state
            checked = check_remembered(given, {seq: message}, state, by, engine.heard.doubts(state))
        except NotBelieved as error:
            raise UsageError(f"Not remembered: {error}") from error
        if checked.changes:
            engine.synthesizer.record(checked.changes, AGENT, actor=by)
        return Kept(item=engine.log.state.items[checked.items[-1].id])


def is_proven(engine: "Engine", quote: str) -> bool:
    """Return whether a quote stands in the user's own words of a recorded message."""
    engine.write_path.refresh()
    return bool(_message_with(engine, clean(quote).strip())[0])


def _why_unproven(quote: str) -> str:
    cause = (
        "its quote does not stand in the user's own words of any recorded message"
        if quote
        else "it has no quote of the user"
    )
    return (
        f"Kept as reported, because {cause}. It is recalled when relevant, and is never a rule. To make it "
        "one, give the user's exact words as quote, or ask the user to say it: `agentx say`."
    )


def _message_with(engine: "Engine", quote: str) -> tuple[int, str]:
    """Return the user's latest message that has a quote in the user's own words; 0 and no text for none."""
    if not quote or len(quote) > MAX_QUOTE:
        return 0, ""
    seen: set[int] = set()
    for seq in _places(engine, quote):
        if seq in seen:
            continue
        seen.add(seq)
        event = next(iter(engine.log.history.read(seq - 1, told_already)), None)
        if event is None or event.seq != seq or not isinstance(event.data, UserMessageSent):
            continue
        if Actor.parse(event.actor).is_user:
            with suppress(BlobDamaged):  # its text is lost
                message = engine.heard.own_words(engine.log.state, engine.read_body(event.data.body))
                if OwnWords(message).find(quote):
                    return seq, message
    return 0, ""


def _places(engine: "Engine", quote: str) -> Iterator[int]:
    """Yield the events that may hold a quote: the latest messages, then older ones that a search finds."""
    yield from (one.seq for one in reversed(engine.log.state.messages) if Actor.parse(one.actor).is_user)
    hits = engine.search(quote, _FOUND, Filter(kinds=("message",)))
    yield from sorted((hit.seq for hit in hits if Actor.parse(hit.actor).is_user), reverse=True)


def _reported(engine: "Engine", kind: str, text: str, by: str, why: str) -> Kept:
    """Keep a statement that nobody proved as knowledge."""
    for item in engine.log.state.active("knowledge"):
        if item.trust == "reported" and item.text == text:
            return Kept(item=item, unproven=why)
    engine.write_path.raise_format()  # otherwise its event would follow
    state = engine.log.state
    seq = state.seq + 1
    item = MemoryItem(
        id=free_id("knowledge", seq, state.items),
        kind="knowledge",
        text=text,
        short=shorten(text),
        evidence=(Evidence(seq, 0, len(text), text[:MAX_QUOTE]),),
        trust="reported",
        worded_by=by,
        reason=f"{by} reported it as a {kind}",
        detail=NoteDetail(),
    )
    made = Add(item)
    if not fits(made):
        raise UsageError("The text is too long: an item holds at most 12,000 bytes. Write it to a file.")
    engine.synthesizer.record((made,), AGENT, actor=by)
    return Kept(item=engine.log.state.items[item.id], unproven=why)
