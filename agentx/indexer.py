"""Feeds the memory index from the history, and asks it.

The index is a cache that follows the log: its own watermark says how far it has read. A search reads what is new
first, so that a fresh write is found at once; vectors come behind, in the background.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from agentx.storage.errors import AgentXError
from agentx.storage.events import (
    AgentMessageSent,
    Body,
    Event,
    FileChange,
    ToolCallExecuted,
    UserMessageSent,
    changes_of,
)
from agentx.storage.git.objects import ObjectDamaged
from agentx.storage.history import told_already
from agentx.storage.index.manifest import IndexDamaged, IndexUnavailable, set_aside
from agentx.storage.index.port import OPEN, Chunk, Filter, MemoryIndex, Vector
from agentx.synthesis.chunking.files import chunk_file
from agentx.synthesis.chunking.messages import chunk_message
from agentx.synthesis.conclusions import Add, Concluded
from agentx.synthesis.embedding.port import Embedder
from agentx.synthesis.retrieval import SearchHit, retrieve
from agentx.write_path import WritePath

_LOG = logging.getLogger("agentx.indexer")

CHUNKING_VERSION = "1"
"""Raised when the same history would be cut into other chunks; an index of another version is filled again."""

MAX_TEXT_BYTES = 2_000_000
"""A larger artifact is not cut into chunks; it is data, and can be declared as a source."""

BEHIND = 64
"""While more passages than this have no vector, a search goes by words alone."""

_BATCH_CHUNKS = 256
_EMBED_BATCH = 32
_PAUSE_S = 0.5
_ENDED = ("resolved", "superseded", "archived", "retired")

T = TypeVar("T")

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""


class Indexer:
    """Keeps one index in step with one history.

    Args:
        write_path: The history and the contents that it names.
        place: The backend's directory; a damaged one is moved aside.
        open_index: Opens the backend when it is first needed (LanceDB takes 1.5 s to load).
        open_embedder: Gives the embedder, or a reason why there is none.
    """

    def __init__(
        self,
        write_path: WritePath,
        place: Path,
        open_index: Callable[[], MemoryIndex],
        open_embedder: Callable[[], tuple[Embedder | None, str]],
    ) -> None:
        self._write_path = write_path
        self._place = place
        self._open_index = open_index
        self._open_embedder = open_embedder
        self._index: MemoryIndex | None = None
        self._embedder: Embedder | None = None
        self._reading = threading.RLock()
        self._embedding = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._previous = ""
        self._thread: threading.Thread | None = None
        self.why_lexical = ""
        self.behind = False

    @property
    def index(self) -> MemoryIndex:
        """The backend, opened when it is first asked for."""
        with self._reading:
            if self._index is None:
                self._index = self._open_index()
                self._embedder, self.why_lexical = self._open_embedder()
                self._match_versions(self._index)
            return self._index

    def _match_versions(self, index: MemoryIndex) -> None:
        if index.read_meta("chunking") != CHUNKING_VERSION:
            index.clear()
            index.write_meta("chunking", CHUNKING_VERSION)
        name = self._embedder.name if self._embedder else ""
        if name and index.read_meta("embedder") != name:
            index.forget_vectors()
            index.write_meta("embedder", name)

    # --- reading the history -------------------------------------------------------------------------------------

    def catch_up(self, progress: Progress | None = None) -> None:
        """Read what was recorded since the index's watermark, by whichever process, as far as it is folded."""
        self._write_path.refresh()
        with self._reading:
            index = self.index
            after = int(index.read_meta("seq") or 0)
            if after > self._write_path.state.seq:  # the history is another one
                index.clear()
                index.write_meta("chunking", CHUNKING_VERSION)
                after = 0
            until = self._write_path.state.seq
            if after == until:
                return
            batch: list[Chunk] = []
            seq = after
            self._previous = next(
                (m.text for m in reversed(self._write_path.state.messages) if m.seq <= after), ""
            )
            for event in self._write_path.history.read(after, told_already):
                if event.seq > until:  # what it concludes is not in the state yet
                    break
                seq = event.seq
                for path in dict.fromkeys(made.path for made in changes_of(event)):
                    batch = self._put(index, batch)
                    index.close_chunks(path=path, seq=event.seq)
                batch += self._chunks(event)
                if len(batch) >= _BATCH_CHUNKS:
                    batch = self._put(index, batch)
                if progress:
                    progress("index", seq - after, max(until - after, seq - after))
            self._put(index, batch)
            index.write_meta("seq", str(seq))

    def _put(self, index: MemoryIndex, batch: list[Chunk]) -> list[Chunk]:
        if batch:
            index.put(batch)
        return []

    def _chunks(self, event: Event) -> Iterator[Chunk]:
        data = event.data
        for made in changes_of(event):
            if made.after and not made.link and made.size_bytes <= MAX_TEXT_BYTES:
                yield from self._file_chunks(event, made)
        if isinstance(data, UserMessageSent | AgentMessageSent):
            yield from self._message_chunks(event, data.body)
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
            yield from self._memory_chunks(event, data)

    def _file_chunks(self, event: Event, made: FileChange) -> Iterator[Chunk]:
        try:
            text = self._write_path.repo.read_blob(made.after).decode()
        except (ObjectDamaged, UnicodeDecodeError):
            return
        if "\0" in text:
            return
        for number, piece in enumerate(chunk_file(made.path, text)):
            yield Chunk(
                id=f"a:{event.seq}:{made.path}:{number}",
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
            )

    def _message_chunks(self, event: Event, body: Body) -> Iterator[Chunk]:
        text = self._write_path.blobs.text(body)
        previous, self._previous = self._previous, text
        for number, piece in enumerate(chunk_message(text, previous, event.at, event.actor)):
            yield Chunk(
                id=f"m:{event.seq}:{number}",
                text=piece.text,
                context=piece.context,
                kind="message",
                actor=event.actor,
                at=event.at,
                seq=event.seq,
            )

    def _memory_chunks(self, event: Event, concluded: Concluded) -> Iterator[Chunk]:
        for change in concluded.changes:
            name = change.item.id if isinstance(change, Add) else change.id
            item = self._write_path.state.items.get(name)
            if item is None or item.kind == "hot_issue":
                continue
            yield Chunk(
                id=f"i:{item.id}",
                text=item.text,
                context=f"{item.kind} {item.domain} {item.scope.topic}".strip(),
                kind="memory",
                symbol=item.id,
                actor=event.actor,
                at=event.at,
                seq=item.created_seq,
                to_seq=event.seq if item.status in _ENDED else OPEN,
            )

    def rebuild(self, progress: Progress | None = None) -> None:
        """Drop everything and read the history from its beginning."""
        self._mending(self._clear)
        self._mending(lambda: self.catch_up(progress))

    def _clear(self) -> None:
        with self._reading:
            self.index.clear()
            self._match_versions(self.index)

    # --- vectors -------------------------------------------------------------------------------------------------

    def embed(self, *, deadline_s: float | None = None, progress: Progress | None = None) -> int:
        """Give vectors to chunks that have none, oldest first; how many are done.

        Args:
            deadline_s: Stop after this long; ``None`` goes on to the end.
            progress: Told after each batch.
        """
        index = self.index
        if self._embedder is None:
            return 0
        end = None if deadline_s is None else time.monotonic() + deadline_s
        done = 0
        while not self._stopping and (end is None or time.monotonic() < end):
            with self._embedding:
                batch = index.without_vectors(_EMBED_BATCH)
                if not batch:
                    break
                vectors = self._embedder.embed_passages([f"{chunk.context}\n{chunk.text}" for chunk in batch])
                index.embed([chunk.id for chunk in batch], vectors)
            done += len(batch)
            if progress:
                progress("embed", done, done)
        return done

    def start(self) -> None:
        """Index and embed in the background until :meth:`close`."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="agentx-indexer", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while not self._stopping:
            try:
                self._mending(self._turn)
            except Exception:  # noqa: BLE001 - the index is a cache: whatever befalls it must not end the work on it
                _LOG.exception("Indexing failed; search goes on with what is indexed.")
                self._wake.wait(_PAUSE_S * 10)

    def _turn(self) -> None:
        self.catch_up()
        if self.embed(deadline_s=2.0) == 0:
            self.index.maintain()
            self._wake.wait(_PAUSE_S)
            self._wake.clear()

    def close(self) -> None:
        """Stop the background work and release the index."""
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout=30)
        if self._index is not None:
            self._index.close()

    # --- asking --------------------------------------------------------------------------------------------------

    def search(self, query: str, k: int, where: Filter, *, embed_s: float = 1.0) -> list[SearchHit]:
        """The ``k`` best passages, what was recorded a moment ago included.

        An index that turns out to be damaged is set aside and filled again from the history.

        Args:
            query: Words in any form.
            k: How many.
            where: What to look at.
            embed_s: How long to embed what has no vector yet, before searching; the rest is found by its words.
        """
        return self._mending(lambda: self._search(query, k, where, embed_s))

    def _search(self, query: str, k: int, where: Filter, embed_s: float) -> list[SearchHit]:
        self.catch_up()
        if embed_s > 0:
            self.embed(deadline_s=embed_s)
        self.start()
        # Where most passages have no vector yet, the few that have one would stand before all others.
        self.behind = self._embedder is not None and len(self.index.without_vectors(BEHIND + 1)) > BEHIND
        vector = None if self.behind else self._query_vector(query)
        return retrieve(self.index, query, vector, k, where)

    def _mending(self, work: Callable[[], T]) -> T:
        """Do something with the index; where it turns out to be damaged, or was deleted, once more with a new one."""
        try:
            return work()
        except IndexDamaged as damage:
            self._start_again(damage)
        except IndexUnavailable as trouble:
            if self._place.exists():  # a full disk: another index would not help
                raise
            self._start_again(trouble)
        return work()

    def _start_again(self, damage: AgentXError) -> None:
        """Set a damaged index aside; the next look fills a new one."""
        with self._reading:
            self._write_path.notes.append(
                f"{damage} The index was set aside and is made again from the history."
            )
            if self._index is not None:
                self._index.close()
            if self._place.exists():
                set_aside(self._place)
            self._index = None

    def _query_vector(self, query: str) -> Vector | None:
        return self._embedder.embed_query(query) if self._embedder is not None and query.strip() else None

    def settle(self, deadline: float, progress: Progress | None = None) -> bool:
        """Read and embed everything that is recorded; whether it was done by ``deadline`` (``time.monotonic()``)."""

        def work() -> bool:
            self.catch_up(progress)
            self.embed(deadline_s=max(0.0, deadline - time.monotonic()), progress=progress)
            return self.settled

        return self._mending(work)

    @property
    def settled(self) -> bool:
        """Whether everything that is recorded is indexed and has its vector."""
        index = self.index
        if int(index.read_meta("seq") or 0) < self._write_path.state.seq:
            return False
        return self._embedder is None or not index.without_vectors(1)
