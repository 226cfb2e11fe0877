"""Followed workspaces: the rules of their users hold here, read through as last committed.

Nothing of them enters this workspace's history but their names, commits and hashes, so its replay does not
need them. They are data: nothing in them is run, and their settings are not used. What was last read stays in
force, whatever becomes of its source; what cannot be read is said, to the user and to the agent.
"""

import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from agentx.config import FILE as CONFIG_FILE
from agentx.config import FollowSection, UpstreamSection, parse_config, read_config
from agentx.core import layout
from agentx.settings import Settings
from agentx.storage.clock import stamp
from agentx.storage.errors import AgentXError
from agentx.storage.events.actor import Actor
from agentx.storage.events.types import Followed
from agentx.storage.files import nofollow
from agentx.storage.files.durable import write_file
from agentx.storage.files.lock import FileLock
from agentx.storage.git.branch import Branch
from agentx.storage.git.exchange.remotes import Remote
from agentx.storage.git.repository import GitRepository
from agentx.storage.log.committed_log import CommittedLog
from agentx.storage.log.history import LIVE, HistoryDamaged
from agentx.storage.text import one_line
from agentx.synthesis.demands.followed import InForce, Merger, marks_of, named, nearest, stated
from agentx.synthesis.memory.items import MemoryItem, followed_id
from agentx.synthesis.memory.record_codec import record_codec
from agentx.synthesis.state.state import FOLD_VERSION, State
from agentx.trust.digests import digest
from agentx.trust.fleet_remotes import DEFAULT_TENANT, remote_of
from agentx.trust.trust import Trust

FLEET = "fleet:"
"""Before the name of a workspace of a fleet, or its tenant, a slash, and its name."""

SUB = "/"
"""Separates the name of a followed workspace from that of one which it follows itself."""

MOST_DEPTH = 3
"""How far a chain is read: this workspace follows one, which follows another."""

MOST_WORKSPACES = 16
MOST_ITEMS = 5_000
MOST_LOG_BYTES = 64_000_000
MOST_FETCHED_BYTES = 512_000_000
MOST_KEPT = 64
"""Limits: workspaces in all, rules of one, bytes of its log and of a fetched repository, and kept copies."""

SILENT_S = 15.0
"""How long a remote may be silent while it is fetched."""

RETRY_S = 60.0
"""Seconds until a remote of which nothing is known is tried again."""

WITHIN_REACH = "It is within reach of this workspace's agents, who could write its rules."

_KNOWN, _TRIED, _REPOSITORY, _LOCK = "known.json", "tried.json", "repository", "lock"
_VERSION = f"2-{FOLD_VERSION}"
_WHY_CHARACTERS = 400
_HOUR_S, _DAY_H = 3600, 48
_URL = re.compile(r"[^/]+:")


class FollowFailed(AgentXError):
    """A followed workspace cannot be read."""


class Known(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was read of another workspace at a commit.

    Attributes:
        version: Of this format and the fold; a copy of another version is read again.
        title: Its title.
        first: The hash of its first event.
        commit: The commit; ``seq`` and ``hash`` are of its last event.
        items: The rules of its user, without a name before their ids.
        marks: The marks of each demand among them, by id.
        follows: The sources of the workspaces that it follows, by name.
        read_at: When the commit was last seen to be its latest.
    """

    version: str
    title: str
    first: str
    commit: str
    seq: int
    hash: str
    items: tuple[MemoryItem, ...] = ()
    marks: dict[str, tuple[str, ...]] = {}
    follows: dict[str, str] = {}
    read_at: str = ""


class _Tried(msgspec.Struct, frozen=True):
    """The latest try to fetch a remote: when, the commit of its branch, or why it failed."""

    at: float
    commit: str = ""
    failed: str = ""


class Place(msgspec.Struct, frozen=True):
    """Where a followed workspace is: in a directory, or at a remote that is fetched into a copy."""

    directory: str = ""
    url: str = ""

    @property
    def key(self) -> str:
        """Name of what is kept of it."""
        return digest(self.directory or self.url)[:32]


class Upstream(msgspec.Struct, frozen=True, kw_only=True):
    """A followed workspace as it was last read.

    Attributes:
        name: Its name here; behind a slash, that of one that it follows itself.
        source: Where it is, as the settings say.
        place: Where it was found; ``None`` if the source cannot be used.
        known: What was read; ``None`` for nothing.
        items: Its rules, named.
        why: Why it could not be read now; empty if it was.
        note: The same for an agent, with what that means.
    """

    name: str
    source: str
    place: Place | None = None
    known: Known | None = None
    items: tuple[MemoryItem, ...] = ()
    why: str = ""
    note: str = ""

    @property
    def directory(self) -> str:
        """Its directory; empty if it is at a remote, or was not found."""
        return self.place.directory if self.place else ""

    @property
    def record(self) -> Followed:
        """How far it was read, for the history."""
        known = self.known
        if known is None:
            return Followed(name=self.name, note=self.note)
        return Followed(name=self.name, commit=known.commit, seq=known.seq, hash=known.hash, note=self.note)


class Upstreams:
    """The followed workspaces at one moment.

    Args:
        each: Them, the nearest first.
    """

    def __init__(self, each: Iterable[Upstream] = ()) -> None:
        self.each = tuple(each)
        marked = {
            followed_id(one.name, name): marks
            for one in self.each
            if one.known is not None
            for name, marks in one.known.marks.items()
        }
        self._merger = Merger(nearest(one.items for one in self.each), marked)

    @property
    def records(self) -> tuple[Followed, ...]:
        """How far each was read, for the history."""
        return tuple(one.record for one in self.each)

    def merged(self, state: State) -> InForce:
        """Return a state with the followed rules that hold beside its own."""
        return self._merger.merged(state)

    def told(self, state: State) -> State:
        """Return a state as an agent is shown it: with the followed rules, and the notes on them."""
        return with_notes(self.merged(state).state, self.records)


def with_notes(state: State, records: Iterable[Followed]) -> State:
    """Return a state with the notes on followed workspaces among what is always shown."""
    notes = {
        name: MemoryItem(
            id=name, kind="situation", text=one.note, short=one.note, trust="engine", pinned=True
        )
        for one in records
        if one.note and (name := followed_id(one.name, "unread"))
    }
    return msgspec.structs.replace(state, items=notes | state.items) if notes else state


class Following:
    """Reads the workspaces that one workspace follows.

    Args:
        root: Its directory.
        section: Its settings.
        settings: Settings from the environment.
        trust: Whether it may read outside itself.
        holds: Whether its history has an event, by number and hash.
        artifacts: Directory of its artifacts, where its agents write.
        fetches: Whether remotes are fetched; otherwise only what was fetched before is read.
    """

    def __init__(
        self,
        root: Path,
        section: FollowSection,
        settings: Settings,
        trust: Trust,
        holds: Callable[[int, str], bool],
        artifacts: Path,
        *,
        fetches: bool = True,
    ) -> None:
        self._root, self._section, self._settings, self._trust = root, section, settings, trust
        self._holds, self._artifacts, self._fetches = holds, artifacts, fetches
        self._lock = threading.Lock()
        self._known: dict[str, Known] = {}
        self._heads: dict[str, str] = {}
        self._now: Upstreams | None = None if section.upstreams else Upstreams()

    @property
    def any(self) -> bool:
        """Whether a workspace is followed."""
        return bool(self._section.upstreams)

    @property
    def ready(self) -> bool:
        """Whether :meth:`current` waits for no remote."""
        return self._now is not None

    def kept(self) -> Upstreams:
        """Return the followed workspaces as last read or fetched, without waiting for a remote."""
        now = self._now
        if now is None:
            parts = (self._root, self._section, self._settings, self._trust, self._holds, self._artifacts)
            now = Following(*parts, fetches=False).current()
        return now

    def current(self) -> Upstreams:
        """Return the followed workspaces; those in directories as last committed, others as last fetched.

        The first call of a process fetches remotes that are due. The same object is returned until something
        changes.
        """
        if not self.any:
            return self._now or Upstreams()
        with self._lock:
            if self._now is None or any(_head(Path(path)) != head for path, head in self._heads.items()):
                self._now = self._read_all()
            return self._now

    def refresh(self) -> Upstreams:
        """Do the same, and fetch remotes that are due now, too."""
        if self.any:
            with self._lock:
                self._now = self._read_all(before=self._now)
        return self.current()

    def at(self, records: Iterable[Followed]) -> Upstreams:
        """Return followed workspaces as they were at recorded commits; those that are gone have no rules."""
        now = {one.name: one for one in self.current().each}
        return Upstreams(
            Upstream(name=one.name, source="", known=known, items=_named(known, one.name))
            for one in records
            for known in [self._known_at(now.get(one.name), one)]
        )

    def _known_at(self, upstream: Upstream | None, record: Followed) -> Known | None:
        if upstream is None or upstream.place is None or not record.commit:
            return None
        known = upstream.known
        if known is None or known.commit != record.commit:
            with suppress(AgentXError, OSError), closing(self._opened(upstream.place)) as repository:
                known = read_rules(repository, record.commit)
        return known if known and (known.seq, known.hash) == (record.seq, record.hash) else None

    # --- all of them --------------------------------------------------------------------------------

    def _read_all(self, before: Upstreams | None = None) -> Upstreams:
        """Read every followed workspace, the nearest first, each once."""
        self._heads = {}
        restricted = self._trust.why_restricted()
        waiting = deque(
            (name, section, self._root, 1) for name, section in sorted(self._section.upstreams.items())
        )
        seen = {str(self._root)}
        found: list[Upstream] = []
        while waiting and len(found) < MOST_WORKSPACES:
            name, section, base, depth = waiting.popleft()
            try:
                if restricted:
                    raise FollowFailed(f"This workspace is not trusted ({restricted}).")
                place = find_place(section.source, base, self._settings)
            except AgentXError as error:
                found.append(_unread(name, section.source, None, error))
                continue
            if (place.directory or place.url) in seen:
                continue
            seen.add(place.directory or place.url)
            if self._is_within_reach(place):
                found.append(_unread(name, section.source, place, FollowFailed(WITHIN_REACH)))
                continue
            one = self._read_one(name, section, place)
            if one.known and one.known.first == self._trust.identity and self._is_own(one.known):
                continue
            found.append(one)
            following = list(self._followed_by(one, depth))
            found += (sub for sub in following if isinstance(sub, Upstream))
            waiting += (sub for sub in following if not isinstance(sub, Upstream))
        for name, section, *_ in waiting:
            why = f"More than {MOST_WORKSPACES} workspaces are followed in all."
            found.append(_unread(name, section.source, None, FollowFailed(why)))
        made = Upstreams(found)
        # What was compared with the same rules need not be compared again
        return before if before is not None and before.each == made.each else made

    def _is_within_reach(self, place: Place) -> bool:
        """Return whether the agents of this workspace can write a place, and so make rules there."""
        path = Path(place.directory or place.url)
        return any(reach in (path, *path.parents) for reach in (self._root, self._artifacts))

    def _is_own(self, known: Known) -> bool:
        """Return whether a workspace is a copy of this one, or an earlier state of it."""
        return self._holds(known.seq, known.hash)

    def _followed_by(
        self, upstream: Upstream, depth: int
    ) -> Iterator[Upstream | tuple[str, UpstreamSection, Path, int]]:
        """Yield what a followed workspace follows: to be read, or with the reason why it is not.

        Its settings would choose what is read here. So those of a directory need the user's trust, and of a
        fleet only workspaces of the same tenant are read.
        """
        known, place = upstream.known, upstream.place
        if known is None or place is None:
            return
        own: Mapping[str, UpstreamSection] = {}
        base = Path(place.directory or "/")
        why = "it is fetched, so what it follows is not"
        if place.directory and known.follows:
            with suppress(AgentXError, OSError):
                why = Trust.read(base, self._settings).why_restricted()
                own = {} if why else read_config(base).follow.upstreams
            why = f"its settings are not trusted here: {why}" if why else "it does not follow it any more"
        elif upstream.source.startswith(FLEET):
            tenant = upstream.source.removeprefix(FLEET).rpartition(SUB)[0]
            own = {
                name: UpstreamSection(source=_in_tenant(source, tenant))
                for name, source in known.follows.items()
                if source.startswith(FLEET)
            }
        for name, source in known.follows.items():
            full = f"{upstream.name}{SUB}{name}"
            if depth == MOST_DEPTH:
                error = f"A chain of followed workspaces is read to a depth of {MOST_DEPTH}."
            elif name in own:
                yield full, own[name], base, depth + 1
                continue
            else:
                error = f"{upstream.name} follows it, and {why}. Follow it here: `agentx follow {source}`."
            yield _unread(full, source, None, FollowFailed(error))

    # --- one of them --------------------------------------------------------------------------------

    def _read_one(self, name: str, section: UpstreamSection, place: Place) -> Upstream:
        folder = self._folder(place)
        known = self._known.get(place.key) or _load(folder, _KNOWN, Known)
        if known and known.version != _VERSION:
            known = msgspec.structs.replace(known, commit="")  # read again, and not forgotten until then
        if known and section.workspace not in ("", known.first):
            known = None
        try:
            head = self._latest(place, known)
            if known is None or known.commit != head:
                with closing(self._opened(place)) as repository:
                    found = read_rules(repository, head, known)
                if section.workspace not in ("", found.first):
                    raise FollowFailed(
                        "Another workspace is in its place. If that is right, follow it again: "
                        f"`agentx follow {section.source} --name {name}`."
                    )
                known = found
                self._keep(folder, known)
        except (AgentXError, OSError) as error:
            self._known |= {place.key: known} if known else {}
            return _unread(name, section.source, place, error, known)
        self._known[place.key] = known
        return Upstream(name=name, source=section.source, place=place, known=known, items=_named(known, name))

    def _latest(self, place: Place, known: Known | None) -> str:
        """Return the latest commit of a workspace, fetching it if that is due.

        Raises:
            FollowFailed: It has none, or could not be fetched.
        """
        if place.directory:
            head = self._heads[place.directory] = _head(Path(place.directory))
            if not head:
                raise FollowFailed(f"{place.directory} is not a workspace.")
            return head
        folder = self._folder(place)
        wait_s = self._section.refresh_minutes * 60
        wait_s = wait_s if known else min(wait_s, RETRY_S)
        tried = _load(folder, _TRIED, _Tried)
        if self._fetches and (tried is None or not 0 <= time.time() - tried.at < wait_s):
            tried = self._fetch(place, folder)
        if tried is None:
            raise FollowFailed("It was not fetched yet.")
        if tried.failed:
            raise FollowFailed(tried.failed)
        return tried.commit

    def _fetch(self, place: Place, folder: Path | None) -> _Tried:
        if folder is None:
            return _Tried(
                time.time(), failed="It cannot be fetched without a state directory (AGENTX_STATE_DIR)."
            )
        nofollow.make_directory(folder, parents=True)
        with FileLock(folder / _LOCK, timeout_s=SILENT_S).hold():
            try:
                commit = self._fetched(place, folder)
                tried = _Tried(time.time(), commit=commit)
            except (AgentXError, OSError) as error:
                tried = _Tried(time.time(), failed=_sentence(error))
            write_file(folder / _TRIED, msgspec.json.encode(tried), 0o600)
        _forget_oldest(folder.parent)
        return tried

    def _fetched(self, place: Place, folder: Path) -> str:
        copy = folder / _REPOSITORY
        if not nofollow.is_directory(copy / ".git"):
            GitRepository.init(copy).close()
        settings = self._settings
        environ = {**settings.environ, **settings.keys} if settings.keys else None
        commit = Remote.find(copy, url=place.url, environ=environ).fetch(silent_s=SILENT_S)
        size = sum(nofollow.status(path).st_size for path in nofollow.tree(copy / ".git"))
        if size > MOST_FETCHED_BYTES:
            nofollow.remove_tree(copy)
            raise FollowFailed(
                f"Its repository has {size:,} bytes, over the limit of {MOST_FETCHED_BYTES:,}."
            )
        if not commit:
            raise FollowFailed("It has no branch main yet.")
        return commit

    def _opened(self, place: Place) -> GitRepository:
        """Open the repository of a workspace, for reading.

        Raises:
            AgentXError: It cannot be opened safely.
        """
        if place.directory:
            layout.check(Path(place.directory))
            return GitRepository(Path(place.directory))
        folder = self._folder(place)
        if folder is None:
            raise FollowFailed("Its copy cannot be read without a state directory (AGENTX_STATE_DIR).")
        return GitRepository(folder / _REPOSITORY)

    def _folder(self, place: Place) -> Path | None:
        """Return the directory for what is kept of a workspace, in the user's state directory."""
        state_dir = self._settings.state_dir
        return nofollow.canonical(state_dir) / "followed" / place.key if state_dir.is_absolute() else None

    def _keep(self, folder: Path | None, known: Known) -> None:
        if folder is not None:
            with suppress(OSError):  # then it is read again the next time
                nofollow.make_directory(folder, parents=True)
                write_file(folder / _KNOWN, msgspec.json.encode(known), 0o600)

    def accept(self, name: str, section: UpstreamSection) -> Upstream:
        """Read a workspace that the user follows from now on, whatever was read in its place before.

        Raises:
            FollowFailed: It cannot be read, or is this workspace.
            AgentXError: It is damaged, or its source cannot be used.
        """
        place = find_place(section.source, self._root, self._settings)
        if place.directory == str(self._root):
            raise FollowFailed("A workspace cannot follow itself.")
        if self._is_within_reach(place):
            raise FollowFailed(WITHIN_REACH)
        folder = self._folder(place)
        if place.url:
            tried = self._fetch(place, folder)
            if tried.failed:
                raise FollowFailed(tried.failed)
            head = tried.commit
        else:
            head = self._latest(place, None)
        with closing(self._opened(place)) as repository:
            known = read_rules(repository, head)
        if known.first == self._trust.identity and self._is_own(known):
            raise FollowFailed("It is a copy of this workspace, which cannot follow itself.")
        self._keep(folder, known)
        return Upstream(name=name, source=section.source, place=place, known=known, items=_named(known, name))


# --- reading --------------------------------------------------------------------------------------------


def find_place(source: str, base: Path, settings: Settings) -> Place:
    """Return where a source is.

    Args:
        source: A directory, a Git URL, or ``fleet:NAME``.
        base: The directory that a relative path is relative to.
        settings: Settings from the environment.

    Raises:
        UsageError: No fleet of this name is known here, or the name is not allowed.
        FollowFailed: A worker of a fleet reads workspaces of its tenant only.
    """
    if source.startswith(FLEET):
        tenant, _, name = source.removeprefix(FLEET).rpartition(SUB)
        return Place(url=remote_of(settings, tenant or settings.fleet_tenant or DEFAULT_TENANT, name))
    if settings.fleet_remote:
        raise FollowFailed(
            "On a worker of a fleet only workspaces of its tenant are followed, by name: "
            "`agentx follow NAME` after `agentx fleet init`."
        )
    if is_url(source):
        return Place(url=source)
    directory = (base / source).resolve()
    bare = nofollow.is_directory(directory / "objects") and not nofollow.exists(directory / LIVE)
    return Place(url=str(directory)) if bare else Place(directory=str(directory))


def is_url(source: str) -> bool:
    """Return whether a source is a URL, or has the form ``host:path`` of ssh."""
    return "://" in source or (len(source.partition(":")[0]) > 1 and bool(_URL.match(source)))


def read_rules(repository: GitRepository, commit: str, before: Known | None = None) -> Known:
    """Read the rules of a workspace's user from a commit, whose hash chain must be whole.

    Args:
        repository: Its repository.
        commit: The commit.
        before: What was read before; its last event must still be there.

    Raises:
        HistoryDamaged: The history is damaged, or its chain is broken.
        FollowFailed: It is too large, newer than this version, or was replaced by another history.
    """
    log = CommittedLog(repository, commit, record_codec())
    size = 0
    for path in log.files:
        size += len(log.content(path))
        if size > MOST_LOG_BYTES:
            raise FollowFailed(f"Its history has more than {MOST_LOG_BYTES:,} bytes.")
    state, hashes, users = _folded(log)
    if state.format > layout.FORMAT:
        raise FollowFailed(
            f"It was written by a newer version (format {state.format}; this one knows {layout.FORMAT})."
        )
    if before is not None and hashes.get(before.seq) != before.hash:
        raise FollowFailed(
            "Its history was rewound or replaced: it lacks an event that was read before. If that is right, "
            "follow it again: `agentx follow SOURCE`."
        )
    items = tuple(stated(state, {seq: hashes[seq] for seq in users}))
    if len(items) > MOST_ITEMS:
        raise FollowFailed(f"It has {len(items):,} rules, over the limit of {MOST_ITEMS:,}.")
    return Known(
        version=_VERSION,
        title=one_line(state.title),
        first=hashes[1],
        commit=commit,
        seq=state.seq,
        hash=state.hash,
        items=items,
        marks=marks_of(items),
        follows=_follows(repository, commit),
        read_at=stamp(timespec="seconds"),
    )


def _folded(log: CommittedLog) -> tuple[State, dict[int, str], list[int]]:
    """Return the state of a log, the hash of each event, and which events are by a user.

    Raises:
        HistoryDamaged: It is empty or damaged, or its chain is broken.
    """
    state, hashes, users = State(), dict[int, str](), list[int]()
    try:
        for event in log.events():
            state.apply(event)
            hashes[event.seq] = event.hash
            if Actor.parse(event.actor).is_user:
                users.append(event.seq)
        last = log.last
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise HistoryDamaged(f"Event {state.seq} of its history cannot be used: {error}.") from error
    if last is None or last.seq != state.seq:
        raise HistoryDamaged(
            f"Its hash chain ends at event {state.seq}, its log at event {last.seq if last else 0}: it is "
            "damaged or forged."
        )
    return state, hashes, users


def _follows(repository: GitRepository, commit: str) -> dict[str, str]:
    """Return what a workspace's committed settings say that it follows; nothing if they cannot be read."""
    entry = repository.entry(repository.tree_of(commit), CONFIG_FILE)
    if entry is None:
        return {}
    with suppress(AgentXError, ValueError):
        config = parse_config(repository.read_blob(entry.oid).decode(), Path(CONFIG_FILE))
        return {name: one.source for name, one in config.follow.upstreams.items()}
    return {}


def _head(directory: Path) -> str:
    """Return the commit of a workspace's branch; empty if there is none."""
    with suppress(AgentXError, OSError):
        return Branch(directory / ".git").read()
    return ""


def _named(known: Known | None, name: str) -> tuple[MemoryItem, ...]:
    return tuple(named(item, name) for item in known.items) if known else ()


def _in_tenant(source: str, tenant: str) -> str:
    """Return a source in a fleet as one of a tenant, whatever tenant it names."""
    return FLEET + SUB.join(filter(None, (tenant, source.removeprefix(FLEET).rpartition(SUB)[2])))


_Kept = TypeVar("_Kept", Known, _Tried)


def _load(folder: Path | None, name: str, kind: type[_Kept]) -> _Kept | None:
    if folder is None:
        return None
    try:
        return msgspec.json.decode(nofollow.read(folder / name), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None


def _forget_oldest(folder: Path) -> None:
    """Remove the copies that were not fetched for the longest time, beyond :data:`MOST_KEPT`."""
    with suppress(OSError):
        kept = sorted(nofollow.listed(folder), key=lambda path: nofollow.status(path).st_mtime)
        for path in kept[:-MOST_KEPT]:
            nofollow.remove_tree(path, ignore_errors=True)


def _sentence(error: Exception) -> str:
    return one_line(str(error))[:_WHY_CHARACTERS]


def _unread(
    name: str, source: str, place: Place | None, error: Exception, known: Known | None = None
) -> Upstream:
    """Return a workspace that could not be read now, with the rules that were last read."""
    why = _sentence(error)
    if known is None:
        note = (
            f"The rules of the followed workspace {name} are missing here. {why} Ask the user before you do "
            "what they may forbid."
        )
    else:
        at = known.read_at[:16].replace("T", " ")
        held = f"its rules of {at} UTC ({age(known)}) hold"
        note = f"The followed workspace {name} could not be read: {held}. {why}"
    items = _named(known, name)
    return Upstream(name=name, source=source, place=place, known=known, items=items, why=why, note=note)


def age(known: Known) -> str:
    """Return how old what was read of a workspace is, in whole hours or days."""
    read = datetime.fromisoformat(known.read_at) if known.read_at else datetime.now(UTC)
    hours = max(0, int((datetime.now(UTC) - read).total_seconds() // _HOUR_S))
    if not hours:
        return "less than an hour old"
    return f"{hours} hour{'s' * (hours != 1)} old" if hours < _DAY_H else f"{hours // 24} days old"
