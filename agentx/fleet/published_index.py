"""The published index of a fleet: searched from any machine, without a clone, while runs write.

A worker brings the index of a workspace up to date after it pushed a run, beside its other work. What it
publishes is what the remote has: no event that was not pushed. It holds its copy of the workspace while it
reads the new events, not while it talks to the store, so that a slow store keeps no run waiting.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from agentx.engine.engine import Engine
from agentx.fleet.local_copy import Home
from agentx.fleet.place import LOCAL, Place
from agentx.fleet.submission import REMOTE
from agentx.recording import recovery
from agentx.scheduling.ending import end_processes
from agentx.scheduling.run_pool import RunPool
from agentx.search.across import Answer, Searched, search_indexes
from agentx.search.indexer import Indexer
from agentx.settings import Settings
from agentx.storage.clock import stamp
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.events.types import EventsPurged
from agentx.storage.files import nofollow
from agentx.storage.files.lock import WorkspaceBusy
from agentx.storage.index.lance_table import PublishedByAnother
from agentx.storage.index.port import Filter
from agentx.storage.index.published import Changes, Mark, PublishedIndex, PublishedIndexes
from agentx.storage.log.history import told_already
from agentx.storage.text import one_line
from agentx.synthesis.embedding.choose import open_embedder
from agentx.synthesis.embedding.port import READ_CHARACTERS, Embedder, ModelUnavailable
from agentx.synthesis.recall.across import AT_ONCE
from agentx.trust.fleet_remotes import check_name
from agentx.workspace import Workspace

READ_S = 5.0
EMBED_S = 5.0
"""How long a worker reads events of a workspace, and embeds passages, before it commits, in seconds; then it
goes on."""

_BARE = 512
_LOOK_S, _BUSY_S, _IDLE_S = 0.25, 2.0, 600.0
_PATIENT_S, _PATIENCE_S = 30.0, 60.0
"""After so many seconds without a free copy it is waited for, so long."""
END_S = 30.0
"""Seconds that publishing in progress may still take when the worker ends."""

_PAUSE_S, _LONGEST_PAUSE_S = 5.0, 300.0
"""Pauses after a failure; each is twice the one before, up to the longest."""
_OF_STORE = {"timeout": "8s", "connect_timeout": "4s"}
"""LanceDB tries each request several times: a store that takes requests and never answers is given up after
three minutes, measured."""


class Published(Searched, frozen=True, kw_only=True):
    """How far the published index of a workspace is.

    Attributes:
        more: Whether events or vectors are left for the next time.
    """

    more: bool = False


# --- the place --------------------------------------------------------------------------------------------


def opened(place: Place, settings: Settings) -> PublishedIndexes:
    """Open a tenant's published indexes.

    Raises:
        UsageError: The fleet has none.
        PublishFailed: They cannot be reached.
    """
    if place.index == LOCAL:
        raise UsageError(
            "This fleet publishes no index: each worker keeps its own. `agentx fleet init --index "
            "s3://bucket/prefix` (or a directory that all share), with the other arguments as before, does."
        )
    return PublishedIndexes(f"{place.index}/{place.tenant}", _options(settings))


def _options(settings: Settings) -> Mapping[str, str]:
    """Return the options of the object store: the user's ``AWS_*`` variables.

    The keys among them are held where no library finds them by itself, so they are passed on.
    """
    given = {**settings.environ, **settings.keys}
    own = {name.lower(): value for name, value in given.items() if name.startswith("AWS_") and value}
    return {**_OF_STORE, **own}


# --- publishing ---------------------------------------------------------------------------------------------


def publish(indexes: PublishedIndexes, name: str, engine: Engine, remote: str = REMOTE) -> Published:
    """Bring the published index of an open workspace up to date with its remote.

    Args:
        indexes: The tenant's indexes.
        name: Name of the workspace in the fleet.
        engine: The workspace.
        remote: Name of the fleet's remote in it.

    Raises:
        PublishedByAnother: Another machine was first.
        PublishFailed: The place cannot be reached.
    """
    made = Published(workspace=name, more=True)
    before = -1
    while made.more and made.seq > before:
        before = made.seq
        made = bring_up(indexes, name, lambda: contextlib.nullcontext(engine), remote)
    return made


def _read(engine: Engine, changes: Changes, until: int) -> bool:
    """Read what a published index lacks; return whether events or passages without a vector are left."""
    indexer = Indexer(
        engine.write_path,
        engine.indexer.place,
        open_index=lambda: changes,
        open_embedder=lambda: (engine.indexer.embedder(), engine.indexer.why_lexical),
    )
    left = indexer.catch_up(deadline=time.monotonic() + READ_S, until=until)
    indexer.embed(deadline_s=EMBED_S)
    return left > 0 or (indexer.embedder() is not None and bool(changes.without_vectors(1)))


def bring_up(
    indexes: PublishedIndexes,
    name: str,
    opening: Callable[[], contextlib.AbstractContextManager[Engine | None]],
    remote: str,
) -> Published:
    """Bring the published index of a workspace up to date.

    A local index that keeps no vectors, as in a new clone, first takes those that are published.

    Args:
        indexes: The tenant's indexes.
        name: The workspace.
        opening: Opens the workspace, for as short as possible; ``None`` if it is not here.
        remote: Name of the fleet's remote in it.

    Raises:
        PublishedByAnother: Another machine was first.
        PublishFailed: The place cannot be reached.
    """
    index = indexes.made(name)
    bare = index.without_vectors(_BARE) if index.mark.meta.get("embedder") else []
    changes = Changes(index.mark.meta, bare)
    purge = more = False
    with opening() as engine:
        if engine is None:
            return _about(name, index.mark)
        if not engine.indexer.keeps_vectors:
            take_vectors(engine, index)
        until = _pushed(engine, remote)
        purge = _purged_since(engine, index.mark.seq)
        if purge:
            changes.clear()
        if index.mark.seq <= until or purge:  # else this copy is late: others have published more
            more = _read(engine, changes, until)
    if not changes.records:
        return _about(name, index.mark, more=more)
    return _about(name, index.commit(changes, stamp(), purge=purge), more=more)


def _pushed(engine: Engine, remote: str) -> int:
    """Return the last event that the remote has, as far as this copy knows; 0 for none."""
    repo = engine.git.repo
    try:
        commit = repo.resolve(f"refs/remotes/{remote}/main")
    except AgentXError:
        return 0
    return recovery.last_recorded(repo, commit).seq


def _purged_since(engine: Engine, seq: int) -> bool:
    """Return whether events that the index contains were purged after it was published."""
    events = engine.log.history.read(seq, told_already) if seq else ()
    return any(isinstance(event.data, EventsPurged) for event in events)


def _about(name: str, mark: Mark, *, more: bool = False) -> Published:
    return Published(workspace=name, seq=mark.seq, at=mark.at, passages=mark.docs, more=more)


def in_process(
    root: Path, name: str, place: Place, settings: Settings, wait_s: float
) -> Iterator[Published | str]:
    """Publish a worker's copy; yield how far it is, or why that failed: an empty text if the copy is busy."""
    home = Home(root)
    own = msgspec.structs.replace(settings, trust_record=str(home.records_of(name)))

    @contextlib.contextmanager
    def opening() -> Iterator[Engine | None]:
        with home.alone(name, wait_s=wait_s) as copy:
            if not nofollow.is_directory(copy):
                yield None
                return
            with Workspace.open(copy, settings=own) as ws:
                yield ws.engine

    try:
        indexes = opened(place, settings)
        yield bring_up(indexes, name, opening, "origin")
    except WorkspaceBusy:
        yield ""
    except KeyboardInterrupt:
        return
    except PublishedByAnother:
        yield Published(workspace=name, more=True)
    except (AgentXError, OSError) as error:
        yield one_line(str(error))


class Publisher:
    """Brings published indexes up to date in a thread of a worker, and in one process of its own.

    What is still to be published is noted in the worker's directory, so that the next worker there goes on.

    Args:
        place: Where the fleet is.
        home: The worker's directory.
        settings: The worker's settings.
        on_fault: Called with a sentence when publishing fails; it is tried again.
    """

    def __init__(self, place: Place, home: Home, settings: Settings, on_fault: Callable[[str], None]) -> None:
        self._place, self._home, self._settings, self._on_fault = place, home, settings, on_fault
        self._off = place.index == LOCAL
        self._stop, self._woken, self._over = threading.Event(), threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._pool = RunPool(settings, ["agentx.fleet.published_index"])
        self._first: dict[str, float] = {}
        self._pauses: dict[str, float] = {}
        self._not_before: dict[str, float] = {}

    def note(self, name: str) -> None:
        """Note that a workspace was pushed; returns at once."""
        if not self._off:
            with self._lock:
                self._home.to_publish(name)
            self._woken.set()

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """Publish until the end, and then once more what is left, for at most :data:`END_S`."""
        if self._off:
            yield
            return
        thread = threading.Thread(target=self._work, name="fleet-publish", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._woken.set()
            thread.join(END_S)
            self._over.set()
            end_processes(self._pool.busy, 0.0, END_S)
            thread.join()
            self._pool.close()

    def _work(self) -> None:
        while not self._stop.is_set():
            try:
                waits = self._round()
            except OSError as error:  # its notes cannot be read now
                self._on_fault(f"No index is published for a while: {one_line(str(error))}")
                waits = True
                self._stop.wait(_PAUSE_S)
            self._woken.wait(_LOOK_S if waits else _IDLE_S)
            self._woken.clear()
        self._round()

    def _round(self) -> bool:
        """Publish once what is to be published; return whether something is left."""
        left = False
        for name in self._home.unpublished():
            if self._over.is_set():
                return True
            waits_for_copy = name not in self._pauses
            if time.monotonic() < self._not_before.get(name, 0.0) and not (
                waits_for_copy and self._stop.is_set()
            ):
                left = True
                continue
            since = self._first.setdefault(name, time.monotonic())
            waits = self._stop.is_set() or time.monotonic() - since > _PATIENT_S
            try:
                left |= not self._publish(name, _PATIENCE_S if waits else 0.0)
            except (AgentXError, OSError) as error:  # no process can be started now, say
                left = True
                self._failed(name, one_line(str(error)))
        return left

    def _publish(self, name: str, wait_s: float) -> bool:
        """Publish a workspace; return whether nothing is left of it."""
        noted = self._home.noted(name)
        given = self._home.root, name, self._place, self._settings, wait_s
        said: list[Published | str] = list(self._pool.call(in_process, *given))
        found = said[0] if said else "its process ended without a result"
        if isinstance(found, Published):
            self._pauses.pop(name, None)
            self._not_before.pop(name, None)
            with self._lock:
                if found.more or self._home.noted(name) != noted:
                    return False
                self._home.published(name)
                self._first.pop(name, None)
            return True
        if not found:
            self._not_before[name] = time.monotonic() + _BUSY_S
        elif not self._over.is_set():
            self._failed(name, found)
        return False

    def _failed(self, name: str, why: str) -> None:
        pause = min(self._pauses.get(name, _PAUSE_S / 2) * 2, _LONGEST_PAUSE_S)
        self._pauses[name], self._not_before[name] = pause, time.monotonic() + pause
        self._on_fault(f"The index of {name} was not published and will be tried again: {why}")


# --- searching ----------------------------------------------------------------------------------------------


def search(
    indexes: PublishedIndexes,
    settings: Settings,
    query: str,
    k: int,
    where: Filter,
    workspaces: Sequence[str] = (),
    *,
    grouped: bool = False,
) -> Answer:
    """Search published indexes, each in the version that is the newest now.

    Args:
        indexes: The tenant's indexes.
        settings: The settings; the embedding model that is installed here is used.
        query: Words in any form.
        k: Number of hits.
        where: Restricts the search.
        workspaces: Names of the workspaces; all by default.
        grouped: Return the passages of a file as one hit.

    Raises:
        PublishFailed: The place cannot be reached.
    """
    failed: dict[str, str] = {}
    found: dict[str, PublishedIndex] = {}
    names = list(dict.fromkeys(workspaces)) or indexes.names()
    for name, index in zip(names, _each(indexes.open, names), strict=True):
        if isinstance(index, PublishedIndex) and index.mark.seq:
            found[name] = index
        elif isinstance(index, AgentXError):
            failed[name] = one_line(str(index))
        elif workspaces:
            failed[name] = "nothing is published of it"
    embedder, note = _embedder(settings)
    of_others = frozenset(
        name
        for name, index in found.items()
        if embedder is not None and index.mark.meta.get("embedder") != embedder.name
    )
    vector = None
    if embedder is not None and query.strip() and len(of_others) < len(found):
        vector = embedder.embed_query(query.strip()[:READ_CHARACTERS])
    if of_others:
        note = f"{len(of_others)} of {len(found)} indexes have no vectors of {embedder and embedder.name}."
    return search_indexes(
        {name: (index, _about(name, index.mark)) for name, index in found.items()},
        query,
        vector,
        k,
        where,
        by_words=of_others,
        failed=failed,
        note=note,
        grouped=grouped,
    )


def take_vectors(engine: Engine, index: PublishedIndex) -> int:
    """Take the vectors of a published index into a workspace's local one; return how many were new.

    Raises:
        PublishFailed: It cannot be read.
    """
    return engine.indexer.take_vectors(index.vectors(), index.mark.meta.get("embedder", ""))


def take_from(indexes: PublishedIndexes, name: str, engine: Engine) -> int:
    """Take the published vectors of a workspace into its local index; return how many were new.

    Raises:
        PublishFailed: The place cannot be reached.
    """
    index = indexes.open(name)
    return 0 if index is None else take_vectors(engine, index)


def stand(indexes: PublishedIndexes) -> tuple[list[Published], dict[str, str]]:
    """Return how far each published index is, and why others cannot be read.

    Raises:
        PublishFailed: The place cannot be reached.
    """
    names, failed = indexes.names(), {}
    found = []
    for name, index in zip(names, _each(indexes.open, names), strict=True):
        if isinstance(index, AgentXError):
            failed[name] = one_line(str(index))
        elif index is not None and index.mark.seq:
            found.append(_about(name, index.mark))
    return found, failed


def _each(
    opening: Callable[[str], PublishedIndex | None], names: Sequence[str]
) -> list[PublishedIndex | AgentXError | None]:
    """Open several indexes at once; an error takes the place of one that cannot be opened."""

    def one(name: str) -> PublishedIndex | AgentXError | None:
        try:
            check_name(name)
            return opening(name)
        except AgentXError as error:
            return error

    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(one, names))


def _embedder(settings: Settings) -> tuple[Embedder | None, str]:
    """Return the embedding model of this machine, or why there is none. A hosted one is not asked."""
    try:
        return open_embedder("minilm", settings.cache_dir), ""
    except ModelUnavailable as error:
        return None, str(error)
