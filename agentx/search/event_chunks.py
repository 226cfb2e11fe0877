"""Cut an event into searchable passages: its files, messages, output of checks and memory items."""

from collections.abc import Iterator, Mapping

from agentx.recording.write_path import WritePath
from agentx.storage.events.types import (
    AgentMessageSent,
    Event,
    FileChange,
    ToolCallExecuted,
    UserMessageSent,
    changes_of,
)
from agentx.storage.git.objects import ObjectDamaged
from agentx.storage.index.port import OPEN, Chunk
from agentx.storage.secrets.redaction import clean
from agentx.storage.text import decoded
from agentx.synthesis.chunking import chunk_message, kind_of_file, split_file
from agentx.synthesis.chunking.pieces import Piece
from agentx.synthesis.facts.validity import former
from agentx.synthesis.memory.conclusions import Add, Concluded
from agentx.synthesis.memory.items import MemoryItem, is_offered, sort_of
from agentx.synthesis.recall.retrieval import SearchHit
from agentx.synthesis.state.state import State

CHUNKING_VERSION = "5"
"""Raised when the same history would be cut or embedded differently; an index of another version is
refilled."""

MAX_TEXT_BYTES = 2_000_000
"""A larger artifact is not cut into chunks: it is data, and can be declared as a source."""

_ENDED = ("closed", "retired")
_REMEMBERED = ("knowledge", "episode")


def of_memory(state: State) -> Iterator[Chunk]:
    """Yield the passages of the state itself: lasting items and the latest messages; no index is needed."""
    for item in state.items.values():
        if _is_cut(item) and item.status not in _ENDED:
            yield _memory_chunk(item, state.items, item.created_seq, actor="", at=item.changed_at)
    for message in state.messages:
        for number, piece in enumerate(chunk_message(message.text, "", message.at, message.actor)):
            yield _message_chunk(piece, number, message.seq, message.actor, message.at)


def _is_cut(item: MemoryItem) -> bool:
    """Return whether an item has a passage. A candidate note has none: its message is found.

    What a file of rules says has none until a person accepts it.
    """
    note = item.kind in ("decision", "knowledge", "situation") and item.trust == "user"
    return item.kind != "hot_issue" and not (note and item.status == "candidate") and not is_offered(item)


def _memory_chunk(
    item: MemoryItem, items: Mapping[str, MemoryItem], seq: int, *, actor: str, at: str
) -> Chunk:
    """Return the passage of an item; a memory is found by the words of the one that it took the place of."""
    was = (one.text for one in former(item, items)) if sort_of(item) in _REMEMBERED else ()
    return Chunk(
        id=f"i:{item.id}",
        text=item.text,
        context=" ".join([f"{sort_of(item)} {item.domain} {item.scope.topic}".strip(), *was]),
        kind="memory",
        symbol=item.id,
        actor=actor,
        at=at,
        seq=item.created_seq,
        to_seq=seq if item.status in _ENDED else OPEN,
    )


def _message_chunk(piece: Piece, number: int, seq: int, actor: str, at: str) -> Chunk:
    return Chunk(
        id=f"m:{seq}:{number}",
        text=piece.text,
        context=piece.context,
        kind="message",
        actor=actor,
        at=at,
        seq=seq,
    )


class Passages:
    """Cuts the events of one history, in order: a message is cut with the previous one as its context.

    Args:
        write_path: The history and the contents that it names.
        after: The event after which it begins.

    Attributes:
        through: The latest event that was cut.
    """

    def __init__(self, write_path: WritePath, after: int) -> None:
        self._write_path = write_path
        self.through = after
        messages = list(write_path.log.state.messages)
        self._previous = next((m.text for m in reversed(messages) if m.seq <= after), "")

    def of(self, event: Event) -> Iterator[Chunk]:
        """Yield the passages of an event; a file whose blob cannot be read gives none."""
        self.through = event.seq
        data = event.data
        for made in changes_of(event):
            if made.after and not made.link and made.size_bytes <= MAX_TEXT_BYTES:
                yield from self._file_chunks(event, made)
        if isinstance(data, UserMessageSent | AgentMessageSent):
            text = self._write_path.log.blobs.text_left(data.body)  # one lost text must not end every search
            previous, self._previous = self._previous, text
            for number, piece in enumerate(chunk_message(text, previous, event.at, event.actor)):
                yield _message_chunk(piece, number, event.seq, event.actor, event.at)
        elif isinstance(data, ToolCallExecuted) and data.command and data.output.text:
            yield Chunk(
                id=f"t:{event.seq}",
                text=data.output.text[:2_000],
                context=f"{data.tool} {data.command} {data.status.lower()}",
                kind="tool",
                actor=event.actor,
                at=event.at,
                seq=event.seq,
            )
        elif isinstance(data, Concluded):
            for change in data.changes:
                items = self._write_path.log.state.items
                item = items.get(change.item.id if isinstance(change, Add) else change.id)
                if item is not None and _is_cut(item):
                    yield _memory_chunk(item, items, event.seq, actor=event.actor, at=event.at)

    def _file_chunks(self, event: Event, made: FileChange) -> Iterator[Chunk]:
        try:
            text = decoded(self._write_path.git.repo.read_blob(made.after)) or ""
        except ObjectDamaged:
            return
        kind = kind_of_file(made.path, text)
        for name, piece in split_file(made.path, clean(text, keep_lines=True)):
            yield Chunk(
                id=f"a:{event.seq}:{made.path}:{name}",
                text=piece.text,
                context=piece.context,
                kind="artifact",
                path=made.path,
                start_line=piece.start_line,
                end_line=piece.end_line,
                symbol=piece.symbol,
                content_id=made.after,
                actor=event.actor,
                at=event.at,
                seq=event.seq,
                file_kind=kind,
            )


def place(hit: SearchHit) -> str:
    """Return the location of a passage in one line: path and lines, or the event.

    Names come from files that anyone may have written, so a line break in a name becomes a space.
    """
    source = f"{hit.source}:" if hit.source else ""
    lines = f":{hit.start_line}-{hit.end_line}" if hit.start_line else ""
    symbol = f" ({hit.symbol})" if hit.symbol else ""
    what = f"memory {hit.symbol}" if hit.kind == "memory" else hit.actor
    where = f"{source}{hit.path}{lines}{symbol}" if hit.path else f"event {hit.seq}, {what}, {hit.at[:10]}"
    return " ".join(where.split())
