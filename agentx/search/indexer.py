"""Feed the memory index from the history, and query it.

The index is a cache that follows the log: its own watermark is the last event that it has read. A search
first reads what is new, so a fresh write is found at once. Vectors follow in the background, in one process
at a time (:mod:`agentx.search.background_worker`). A process that reads history into the index holds a lock
for one batch, so that one process cannot bring back a passage that another has already ended. Nobody else
waits.
"""

import atexit
import contextlib
import functools
import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar
from weakref import WeakSet

from agentx.recording.write_path import WorkspaceClosed, WritePath
from agentx.search.background_worker import WORKERS, Background, Ownership, SearchLate
from agentx.search.event_chunks import CHUNKING_VERSION, Passages
from agentx.search.kept_vectors import KeptVectors
from agentx.storage.errors import AgentXError
from agentx.storage.events.types import Event, changes_of
from agentx.storage.files import nofollow
from agentx.storage.index.manifest import IndexDamaged, IndexUnavailable, set_aside
from agentx.storage.index.memory_index import IndexRow, InMemoryIndex
from agentx.storage.index.pending_writes import locked
from agentx.storage.index.port import Chunk, Filter, MemoryIndex, Vector
from agentx.storage.log.history import told_already
from agentx.storage.progress import Progress
from agentx.synthesis.embedding.port import READ_CHARACTERS, Embedder
from agentx.synthesis.recall.file_retrieval import retrieve_files
from agentx.synthesis.recall.retrieval import SearchHit, retrieve, to_embed

BEHIND = 64
"""If more passages than this lack a vector, a search uses words alone."""

UNREAD = 64
"""If more changed files than this are unread, a search does not wait for them."""

_BATCH_CHUNKS = 256
_BATCH_EVENTS = 2_000
_EMBED_BATCH = 64
_EMBED_AHEAD = 4
"""Batches fetched from the index in one query, because each query scans all its rows."""

_VECTORS_KEPT = 4_096
"""Number of latest vectors kept, by embedded text: 6 MB. When a file is edited, most of its passages do not
change."""

_QUERIES_KEPT = 64
"""Number of latest queries whose vectors are kept: 0.1 MB, and the queries."""

_KEPT = "vectors"
"""File beside the index with all vectors by embedded text."""

_DELETED_S = 0.3
"""How long to wait before a deleted index is made again, in seconds: the whole workspace may be going."""

_CLOSE_S = 30.0
"""Longest wait of :meth:`Indexer.close` for a search, in seconds."""

T = TypeVar("T")
_Find = Callable[[MemoryIndex, str, Vector | None, int, Filter], list[SearchHit]]


class Watching:
    """The background worker's view of the writing, and of searches: it yields to both."""

    def __init__(self, write_path: WritePath) -> None:
        self._write_path = write_path
        self.searches = 0

    @property
    def writing(self) -> bool:
        """Whether a write or a search by words is in progress in this process."""
        return self._write_path.lock.held or self.searches > 0

    @property
    def last_write(self) -> float:
        """``time.monotonic()`` of the latest write."""
        return self._write_path.log.last_write


_IN_USE: "WeakSet[Indexer]" = WeakSet()
"""Indexers that may have a thread inside LanceDB."""


@atexit.register
def _close_all() -> None:
    """Stop before Python ends: a thread inside LanceDB would abort a program that closed no workspace."""
    for one in list(_IN_USE):
        one.close()


class Indexer:
    """Keeps one index in step with one history.

    Args:
        write_path: The history and the contents that it names.
        place: The backend's directory; a damaged one is moved aside.
        open_index: Opens the backend on first use (LanceDB takes 1.5 s to load).
        open_embedder: Returns the embedder, or the reason why there is none.

    Attributes:
        place: The backend's directory.
        why_lexical: Why no embedder is used; empty if one is.
        behind: Whether the latest search used words alone, because most passages had no vector yet.
        unread: Whether the latest search did not wait until many changed files, as of an import, were read.
        abandons: Whether :meth:`close` does not wait for a backend that is still loading; for a process that
            ends without waiting for its threads (``os._exit``).
    """

    def __init__(
        self,
        write_path: WritePath,
        place: Path,
        open_index: Callable[[], MemoryIndex],
        open_embedder: Callable[[], tuple[Embedder | None, str]],
    ) -> None:
        self._write_path = write_path
        self.place = place
        self._open_index = open_index
        self._open_embedder = open_embedder
        self._in_memory = bool(write_path.read_only)
        self._index: MemoryIndex | None = None
        self._embedder: Embedder | None = None
        self._reading = threading.RLock()
        self._embedding = threading.Lock()
        self._vectors: dict[bytes, Vector] = {}
        self._vector_of_query = functools.lru_cache(_QUERIES_KEPT)(_call)
        self._kept: KeptVectors | None = None
        self._idle = threading.Condition()
        self._searches = 0
        self._closing = False
        self._passages: Passages | None = None
        self._watching = Watching(write_path)
        self._background = Background(
            WORKERS[0],
            lambda: self._mending(self._turn),
            self._watching,
            Ownership(place.with_name(f"{place.name}.owner"), lambda: write_path.is_there),
        )
        self.why_lexical = ""
        self.behind = self.unread = False
        self.abandons = False

    @property
    def index(self) -> MemoryIndex:
        """The backend; opened on first use."""
        self._require_there()
        index = self._index
        if index is None:
            with self._reading:
                index = self._index
                if index is None:
                    index = InMemoryIndex() if self._in_memory else self._open_index()
                    self.embedder()
                    self._match_versions(index)
                    self._index = index
                    _IN_USE.add(self)
        return index

    def _require_there(self) -> None:
        """Refuse to write a cache for a workspace that was deleted, or into another one in its place."""
        if not self._in_memory and not self._write_path.is_there:
            raise WorkspaceClosed(f"The workspace {self._write_path.root} was deleted or replaced.")

    def embedder(self, *, opened: bool = False) -> Embedder | None:
        """Return the embedder without opening the index; ``None`` if there is none.

        With ``opened``, return it only if it is open already; this never waits for the index.
        """
        if opened:
            return self._embedder
        with self._reading:
            if self._embedder is None:
                self._embedder, self.why_lexical = self._open_embedder()
            return self._embedder

    def _match_versions(self, index: MemoryIndex) -> None:
        if index.read_meta("chunking") != CHUNKING_VERSION:
            _empty(index)
        name = self._embedder.name if self._embedder else ""
        if name and index.read_meta("embedder") != name:
            index.forget_vectors()
            index.write_meta("embedder", name)

    # --- reading the history --------------------------------------------------------------------------------

    @property
    def watermark(self) -> int:
        """The last event that the index has read; 0 for none."""
        return _watermark(self.index)[0]

    def catch_up(
        self, progress: Progress | None = None, *, deadline: float | None = None, until: int | None = None
    ) -> int:
        """Read what any process recorded since the index's watermark, as far as it is folded.

        Args:
            progress: Called after each batch.
            deadline: ``time.monotonic()`` after which no further batch begins; ``None`` for no deadline.
            until: The last event to read; ``None`` for all.

        Returns:
            Number of events left.
        """
        with self._write_path.exclusive():
            last = self._write_path.log.state.seq
        until = last if until is None else min(last, until)
        first = self.watermark if progress else 0
        while self._read_batch(until):
            if progress:
                progress("index", max(self.watermark - first, 0), until - first)
            if self._closing or (deadline is not None and time.monotonic() > deadline):
                return max(until - self.watermark, 0)
        return 0

    def _read_batch(self, until: int) -> bool:
        """Read one batch of history into the index, up to a folded event; return whether there is more.

        Nothing is read while the log is damaged: the index would permanently lack what is restored later.
        """
        if self._write_path.health.unsound:
            return False
        with self._reading:
            index = self.index
            if self._closing:
                return False
            seq, known = _watermark(index)
            state = self._write_path.log.state
            if seq >= until and known == state.hash:
                return False
            with self._feeding():
                return self._feed(index, until)

    @contextlib.contextmanager
    def _feeding(self) -> Iterator[None]:
        """Keep other processes from reading the history into the index, for one batch."""
        if self._in_memory:
            yield
            return
        self._require_there()
        with locked(self.place.with_name(f"{self.place.name}.feeding")):
            yield

    def _feed(self, index: MemoryIndex, until: int) -> bool:
        seq, known = _watermark(index)
        events = self._write_path.log.history.read(max(seq - 1, 0), told_already)
        if seq:  # the event at the watermark shows whether this is the same history
            at = next(events, None)
            if at is None or at.seq != seq or at.hash != known:
                _empty(index)
                return True
        if self._passages is None or self._passages.through != seq:
            self._passages = Passages(self._write_path, seq)
        batch: list[Chunk] = []
        last: Event | None = None
        cut = 0
        for number, event in enumerate(events):
            if event.seq > until or cut >= _BATCH_CHUNKS or number >= _BATCH_EVENTS:
                break  # the conclusions of an event beyond the fold are not in the state yet
            cut += self._cut(index, self._passages, event, batch)
            last = event
        if last is None:
            return False
        index.put(batch)
        index.write_meta("seq", f"{last.seq} {last.hash}")
        return last.seq < until

    def _cut(self, index: MemoryIndex, passages: Passages, event: Event, batch: list[Chunk]) -> int:
        """Add the passages of an event to a batch, storing what is too much; return their number."""
        cut = 0
        if paths := dict.fromkeys(made.path for made in changes_of(event)):
            # What the event replaced ends, after what was cut before it is stored
            index.put(batch)
            batch.clear()
            for path in paths:
                index.close_chunks(path=path, seq=event.seq)
        for chunk in passages.of(event):
            batch.append(chunk)
            cut += 1
            if len(batch) >= _BATCH_CHUNKS:  # an import is one event; searches find what is there
                index.put(batch)
                batch.clear()
            self._background.step()
        return cut

    def rebuild(self, progress: Progress | None = None) -> None:
        """Drop everything and read the history from its beginning."""

        def clear() -> None:
            with self._reading, self._feeding():
                self.index.clear()
                self._kept = None  # read again, with what was added since
                self._match_versions(self.index)

        self._mending(clear)
        self._mending(lambda: self.catch_up(progress))

    # --- vectors --------------------------------------------------------------------------------------------

    def embed(self, *, deadline_s: float | None = None, progress: Progress | None = None) -> int:
        """Give vectors to chunks that have none, oldest first; return their number.

        Args:
            deadline_s: Stop after this many seconds; ``None`` for no limit.
            progress: Called after each batch.
        """
        end = None if deadline_s is None else time.monotonic() + deadline_s
        done = 0
        _ = self.index  # the embedder is opened with it
        while self._embedder is not None and not self._is_over(end) and not self._write_path.health.unsound:
            waiting = self.index.without_vectors(_EMBED_BATCH * _EMBED_AHEAD)
            for start in range(0, len(waiting), _EMBED_BATCH):
                if self._is_over(end):
                    break
                some = waiting[start : start + _EMBED_BATCH]
                self._embed_batch(self._embedder, some)
                done += len(some)
                if progress:
                    progress("embed", done, done)
                self._background.give_way()
            if not waiting:
                break
        return done

    def _is_over(self, end: float | None) -> bool:
        return self._background.stopping or (end is not None and time.monotonic() >= end)

    def _embed_batch(self, embedder: Embedder, chunks: Sequence[Chunk]) -> None:
        texts = {_digest(text): text for text in map(to_embed, chunks)}
        with self._embedding:
            missing = self._take_kept(embedder, [name for name in texts if name not in self._vectors])
            for start in range(0, len(missing), embedder.batch):
                some = missing[start : start + embedder.batch]
                made = embedder.embed_passages([texts[name] for name in some])
                self._vectors.update(zip(some, made, strict=True))
                self._background.step()
            # Least recently used first: what was used now moves to the end, and the oldest are dropped.
            self._vectors |= {name: self._vectors.pop(name) for name in texts}
            vectors = [self._vectors[_digest(to_embed(chunk))] for chunk in chunks]
            index = self.index
            with self._feeding():  # a purge empties the caches meanwhile, or before
                index.embed([chunk.id for chunk in chunks], vectors)
                if missing and not self._in_memory and nofollow.exists(self.place):
                    kept = self._kept_vectors(embedder, len(vectors[0]))
                    kept.add({name: self._vectors[name] for name in missing})
            for name in list(self._vectors)[:-_VECTORS_KEPT]:
                del self._vectors[name]

    @property
    def keeps_vectors(self) -> bool:
        """Whether vectors of an earlier index are kept beside this one."""
        return nofollow.exists(self.place.with_name(_KEPT))

    def take_vectors(self, rows: Iterable[IndexRow], name: str) -> int:
        """Keep vectors that were made on another machine, for passages that this history has or will have.

        Args:
            rows: Passages with their vectors.
            name: Name of the embedder that made them; those of another are not taken.

        Returns:
            Number of vectors that are new here.
        """
        embedder = self.embedder()
        if embedder is None or embedder.name != name or self._in_memory:
            return 0
        import numpy as np  # noqa: PLC0415  (heavy, and needed with vectors alone)

        taken = 0
        with self._embedding:
            for some in _batches(rows, _VECTORS_KEPT):
                vectors = {_digest(to_embed(one.chunk)): np.frombuffer(one.vector, "<f4") for one in some}
                size = len(next(iter(vectors.values())))
                kept = self._kept_vectors(embedder, embedder.dimensions or size)
                new = {digest: v for digest, v in vectors.items() if kept.get(digest) is None}
                with self._feeding():
                    kept.add(new)
                taken += len(new)
            self._kept = None  # read again, with what was added
        return taken

    def _take_kept(self, embedder: Embedder, names: list[bytes]) -> list[bytes]:
        """Take vectors from the file beside the index; return the names of those that it lacks."""
        if names and embedder.dimensions:
            kept = self._kept_vectors(embedder, embedder.dimensions)
            self._vectors |= {name: vector for name in names if (vector := kept.get(name)) is not None}
        return [name for name in names if name not in self._vectors]

    def _kept_vectors(self, embedder: Embedder, dimensions: int) -> KeptVectors:
        kept = self._kept
        if kept is None:
            kept = self._kept = KeptVectors(self.place.with_name(_KEPT), embedder.name, dimensions)
        return kept

    # --- in the background ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Index, embed and maintain in the background until :meth:`close`, in the process that owns it."""
        if not self._in_memory:
            self._background.start()

    def _turn(self) -> bool:
        """Do one piece of background work; return whether there is more."""
        if not self._write_path.is_there:
            return False
        # Not under the workspace lock, which writes need; its holder folds what other processes write.
        until = self._write_path.log.state.seq
        if self._write_path.lock.held:  # or that event may be half folded
            return True
        if self._read_batch(until) or self.embed(deadline_s=2.0):
            return True
        self.index.maintain()
        return False

    def close(self) -> None:
        """Stop background work, wait for searches that outlived their deadline, and release the index."""
        self._closing = True
        _IN_USE.discard(self)
        wait = not (self.abandons and self._index is None)
        self._background.stop(wait=wait)
        with self._idle:  # a thread inside a library when Python ends would crash the process
            self._idle.wait_for(lambda: not (wait and self._searches), timeout=_CLOSE_S)
        if self._index is not None and (self._in_memory or self._write_path.held.is_there):
            self._index.close()

    # --- asking ---------------------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        k: int,
        where: Filter,
        *,
        embed_s: float = 1.0,
        files: bool = False,
        grouped: bool = False,
        deadline: float | None = None,
    ) -> list[SearchHit]:
        """Return the ``k`` best passages, including what was recorded a moment ago.

        An index that turns out to be damaged is set aside and refilled from the history.

        Args:
            query: Words in any form.
            k: Number of hits.
            where: Filter of the passages.
            embed_s: How long to embed passages without a vector before searching, in seconds; the rest is
                found by words.
            files: Return one hit per file.
            grouped: Return the passages of a file as one hit; its ``also`` names the others.
            deadline: ``time.monotonic()`` after which no more history is read, and the existing index is
                searched.

        Raises:
            SearchLate: Part of the history was not read in time; the error holds the hits in the rest.
        """
        find = retrieve_files if files else functools.partial(retrieve, grouped=grouped)
        with self._idle:
            self._searches += 1
        try:
            return self._anyhow(lambda: self._search(query, k, where, embed_s, deadline, find))
        finally:
            with self._idle:
                self._searches -= 1
                self._idle.notify_all()

    def _search(
        self, query: str, k: int, where: Filter, embed_s: float, deadline: float | None, find: _Find
    ) -> list[SearchHit]:
        vector, unread = self._asked(query, embed_s, deadline)
        with self._first():
            hits = find(self.index, query, vector, k, where)
        if unread:
            raise SearchLate(
                f"The deadline left no time to index the last {unread:,} events, so only earlier ones were "
                "searched. Indexing continues in the background; try again in a moment, or allow more time.",
                hits,
            )
        return hits

    def asked(self, query: str, *, embed_s: float = 1.0) -> Vector | None:
        """Bring the index up to date for a search; return the vector of the query, ``None`` for words alone.

        The caller searches :attr:`index`, together with others.
        """
        return self._anyhow(lambda: self._asked(query, embed_s, None)[0])

    def _asked(self, query: str, embed_s: float, deadline: float | None) -> tuple[Vector | None, int]:
        """Read what is new; return the vector of a query and how many events were left."""
        self.unread = deadline is None and self._much_unread()
        unread = 0 if self.unread else self.catch_up(deadline=deadline)
        self.start()
        # If most passages have no vector yet, the few that have one would rank before all others.
        with self._first():
            self.behind = self._embedder is not None and len(self.index.without_vectors(BEHIND + 1)) > BEHIND
        if embed_s > 0 and not unread and not self.unread and (self._in_memory or not self.behind):
            self.embed(deadline_s=embed_s)  # more than a few are left to the background
            self.behind = self.behind and len(self.index.without_vectors(BEHIND + 1)) > BEHIND
        vector = None
        if self._embedder is not None and query.strip() and not self.behind:
            # No embedder reads more, and a long message is not to be kept whole.
            asked = query.strip()[:READ_CHARACTERS]
            vector = self._vector_of_query(self._embedder.embed_query, asked)
        return vector, unread

    def _much_unread(self) -> bool:
        """Return whether many changed files are unread, so that the background worker should read them."""
        if self._in_memory or self._write_path.health.unsound:
            return False
        read = self.watermark
        if read >= self._write_path.log.state.seq:
            return False
        events = self._write_path.log.history.read(read, told_already)
        return sum(sum(1 for _ in changes_of(event)) for event in events) > UNREAD

    @contextlib.contextmanager
    def _first(self) -> Iterator[None]:
        """Let the background yield meanwhile."""
        with self._idle:
            self._watching.searches += 1
        try:
            yield
        finally:
            with self._idle:
                self._watching.searches -= 1

    def _mending(self, work: Callable[[], T]) -> T:
        """Do something with the index; if it turns out to be damaged or deleted, retry with a new one."""
        try:
            return work()
        except IndexDamaged as damage:
            self._start_again(damage)
        except IndexUnavailable as trouble:
            if nofollow.exists(self.place):  # a full disk: another index would not help
                raise
            self._start_again(trouble)
        return work()

    def _anyhow(self, work: Callable[[], T]) -> T:
        """Do something with the index; if it cannot be written, use one in memory until closed."""
        try:
            return self._mending(work)
        except IndexUnavailable as trouble:
            with self._reading:
                self._write_path.notes.append(f"{trouble} Until then the index is built in memory each time.")
                if self._index is not None:
                    with contextlib.suppress(IndexUnavailable):
                        self._index.close()
                self._index, self._passages, self._in_memory = None, None, True
        return work()

    def _start_again(self, damage: AgentXError) -> None:
        """Set a damaged index aside; the next access fills a new one."""
        if not nofollow.exists(self.place):
            time.sleep(_DELETED_S)
        self._require_there()
        with self._reading:
            self._write_path.notes.append(
                f"{damage} The index was set aside and is rebuilt from the history."
            )
            if self._index is not None:
                self._index.close()
            if nofollow.exists(self.place):
                set_aside(self.place)
            self._index = self._kept = None

    def start_over(self) -> None:
        """Close what was open after the caches were deleted, so that the next access fills a new index."""
        with self._embedding:
            self._vectors.clear()
            self._vector_of_query.cache_clear()
            self._kept = None
        with self._reading:
            if self._index is not None:
                self._index.close()
            self._index = self._passages = None

    def settle(self, deadline: float, progress: Progress | None = None) -> bool:
        """Read and embed everything that is recorded; return whether it was done in time."""

        def work() -> bool:
            self.catch_up(progress)
            self.embed(deadline_s=max(0.0, deadline - time.monotonic()), progress=progress)
            return self.settled

        return self._anyhow(work)

    @property
    def settled(self) -> bool:
        """Whether everything that is recorded is indexed and has its vector."""
        if self.watermark < self._write_path.log.state.seq:
            return False
        return self._embedder is None or not self.index.without_vectors(1)


def _digest(text: str) -> bytes:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()


def _batches(rows: Iterable[T], size: int) -> Iterator[list[T]]:
    waiting = iter(rows)
    while some := list(itertools.islice(waiting, size)):
        yield some


def _call(embed: Callable[[str], Vector], query: str) -> Vector:
    return embed(query)


def _empty(index: MemoryIndex) -> None:
    index.clear()
    index.write_meta("chunking", CHUNKING_VERSION)


def _watermark(index: MemoryIndex) -> tuple[int, str]:
    """Return the last event that an index has read, and its hash, which identifies the history."""
    seq, _, known = index.read_meta("seq").partition(" ")
    return int(seq or 0), known
