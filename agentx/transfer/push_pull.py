"""Push and pull: a workspace is a branch on any Git remote, and only moves forward.

Content of a remote is not trusted. Before anything is taken over, its log must continue ours, event by event
along the hash chain, and its files must match its events. If both sides have new events, neither is
overwritten.
"""

import tomllib
from collections.abc import Iterable
from itertools import takewhile

import msgspec

from agentx.config import FILE as CONFIG_FILE
from agentx.config import Config
from agentx.core import layout
from agentx.core.cache_dir import CACHE
from agentx.core.layout import ARTIFACTS
from agentx.engine.engine import Engine
from agentx.recording import fast_forward, recovery
from agentx.storage.artifacts import entry_after
from agentx.storage.errors import AgentXError
from agentx.storage.events.types import Event, WorkspaceForked, WriteReverted, changes_of, strays_of
from agentx.storage.files.paths import check_path
from agentx.storage.git.checked_reader import TreeEntry
from agentx.storage.git.exchange.remotes import PushRefused, Remote, RemoteFailed
from agentx.storage.git.repository import GitRepository
from agentx.storage.log.blobs import blob_path, named_blobs
from agentx.storage.log.committed_log import CommittedLog
from agentx.storage.log.history import ORPHANS, HistoryDamaged
from agentx.storage.progress import Progress
from agentx.synthesis.memory.record_codec import record_codec

_CODEC = record_codec()
_SHOWN = 12
"""Number of characters of a hash in messages."""


class HistoriesDiverged(AgentXError):
    """Both sides have events that the other lacks; nothing was changed on either.

    Attributes:
        common: The last common event; 0 for none.
        ours: Seq and hash of the last event here.
        theirs: Seq and hash of the last event at the remote.
    """

    def __init__(self, sentence: str, common: int, ours: tuple[int, str], theirs: tuple[int, str]) -> None:
        super().__init__(sentence)
        self.common = common
        self.ours = ours
        self.theirs = theirs


class RemoteAhead(AgentXError):
    """The remote has events that are missing here."""


class RemoteRefused(AgentXError):
    """The remote does not hold a valid continuation of this history; nothing was taken over."""


class Exchanged(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a push or a pull.

    Attributes:
        remote: Name of the remote.
        url: Its URL, without a password.
        events: Number of events transferred.
        commits: Number of commits transferred.
        from_seq: The receiving side's last event before; 0 for none.
        to_seq: The receiving side's last event now.
        commit: The commit that both sides have now.
        settings: Whether ``agentx.toml`` changed.
        restored: Number of earlier objects that the remote had lost and that were sent again.
    """

    remote: str
    url: str
    events: int
    commits: int
    from_seq: int
    to_seq: int
    commit: str
    settings: bool = False
    restored: int = 0


def _remote(engine: Engine, name: str, url: str) -> Remote:
    """Return the remote.

    Keys of the environment reach Git's credential helpers only from a trusted workspace.
    """
    settings = engine.settings
    environ = {**settings.environ, **settings.keys} if settings.keys and engine.trust.trusted else None
    return Remote.find(engine.root, name, url, environ)


# --- push ---------------------------------------------------------------------------------------------------


def push(
    engine: Engine,
    name: str = "",
    url: str = "",
    progress: Progress | None = None,
    *,
    remote: Remote | None = None,
    fetched: str | None = None,
) -> Exchanged:
    """Push this workspace to a remote; unrecorded edits are recorded first.

    Args:
        engine: The workspace.
        name: Name of the remote; by default the only one, or ``origin``.
        url: URL of a new remote.
        progress: Receives progress.
        remote: The remote itself, instead of a name and a URL.
        fetched: The commit that was fetched or cloned from it a moment ago; by default it is fetched. If the
            remote has another one by now, it refuses the push. A remote in a directory is then treated like a
            server: what others pushed into it is not checked again.

    Raises:
        NoRemote: The remote does not exist.
        RemoteFailed: It cannot be reached.
        RemoteAhead: It has events that are missing here.
        HistoriesDiverged: Both sides have new events, or this is a fork of what the remote holds.
        HistoryDamaged: The history here is damaged, in the log or in the commit; nothing was sent.
    """
    remote = remote or _remote(engine, name, url)
    head = engine.settle()[0]
    _check_ours(engine.git.repo, head)
    theirs = remote.fetch(progress) if fetched is None else fetched
    engine.git.refuse_damaged(recovery.last_recorded(engine.git.repo, theirs).seq)
    _check_push(engine.git.repo, remote, head, theirs)
    restored = remote.complete(theirs, progress) if fetched is None else 0
    if theirs != head:
        try:
            remote.push(head, theirs, progress)
            if fetched is None:
                remote.note_complete(head)
        except PushRefused:
            now = remote.fetch(progress)
            if now != theirs:
                _check_push(engine.git.repo, remote, head, now)
            raise
    done = _exchanged(engine.git.repo, remote, theirs, head)
    return msgspec.structs.replace(done, restored=restored)


def _check_ours(repo: GitRepository, head: str) -> None:
    """Refuse to push a damaged history, before anything is sent.

    Raises:
        HistoryDamaged: The log does not end with the last event of its commits.
    """
    named, last = recovery.last_recorded(repo, head).seq, CommittedLog(repo, head, _CODEC).last
    if last is None or last.seq != named:
        raise HistoryDamaged(
            f"The log ends at event {last.seq if last else 0} but its commits end at event {named}, so "
            "nothing was pushed. Run `agentx verify`, then `agentx repair`."
        )


def _check_push(repo: GitRepository, remote: Remote, head: str, theirs: str) -> None:
    """Refuse to push unless the remote's branch only moves forward."""
    if theirs in ("", head):
        return
    if repo.descends(theirs, head):
        seq = recovery.last_recorded(repo, theirs).seq
        raise RemoteAhead(
            f"{remote.name} ({remote.shown}) has events up to {seq} that are missing here. Run "
            f"`agentx pull {remote.name}` first."
        )
    if not repo.descends(head, theirs):
        raise _diverged(repo, remote, head, theirs)
    had = recovery.last_recorded(repo, theirs).seq
    _refuse_fork(CommittedLog(repo, head, _CODEC).events(had), repo, remote, head, theirs)


def _refuse_fork(
    events: Iterable[Event], repo: GitRepository, remote: Remote, head: str, theirs: str
) -> None:
    """Refuse a fork: it must never replace the history from which it was made."""
    if any(isinstance(event.data, WorkspaceForked) for event in events):
        raise _diverged(repo, remote, head, theirs)


# --- pull ---------------------------------------------------------------------------------------------------


def pull(
    engine: Engine,
    name: str = "",
    url: str = "",
    progress: Progress | None = None,
    *,
    remote: Remote | None = None,
) -> Exchanged:
    """Update this workspace from a remote, given as for :func:`push`; unrecorded edits are recorded first.

    Raises:
        NoRemote: The remote does not exist.
        RemoteFailed: It cannot be reached, or has no branch ``main``.
        HistoriesDiverged: Both sides have new events.
        RemoteRefused: Its content is damaged, or forged.
    """
    write_path = engine.write_path
    repo = write_path.git.repo
    remote = remote or _remote(engine, name, url)
    theirs = remote.fetch(progress)
    if not theirs:
        raise RemoteFailed(
            f"{remote.name} ({remote.shown}) has no branch main yet; `agentx push` creates it."
        )
    with write_path.exclusive():
        head = engine.settle()[0]
        if repo.descends(head, theirs) or head == theirs:
            return _exchanged(repo, remote, theirs, theirs)
        if not repo.descends(theirs, head):
            raise _diverged(repo, remote, head, theirs)
        _check_pull(engine, remote, head, theirs)
        write_path.git.hold()
        fast_forward.take_over(engine.root, repo, write_path.artifacts.root, theirs)
    write_path.refresh()
    write_path.flush()
    return _exchanged(repo, remote, head, theirs)


def _check_pull(engine: Engine, remote: Remote, head: str, theirs: str) -> None:
    """Refuse a commit that is not a valid continuation of ours.

    Raises:
        RemoteRefused: It is not.
        HistoriesDiverged: It belongs to a fork.
    """
    repo, state = engine.git.repo, engine.log.state
    try:
        layout.check_commit(repo, theirs, head)
        ours, log = CommittedLog(repo, head, _CODEC), CommittedLog(repo, theirs, _CODEC)
        _check_kept(ours, log)
        events = list(log.events(state.seq, state.hash))
        _refuse_fork(events, repo, remote, head, theirs)
        _check_events(repo, log, events, state.seq, theirs)
        _check_files(repo, events, head, theirs)
        _check_settings(engine, theirs)
    except HistoriesDiverged:
        raise
    except AgentXError as error:
        raise _refused(remote, str(error)) from error


def _refused(remote: Remote, why: str) -> RemoteRefused:
    return RemoteRefused(
        f"The history of {remote.name} ({remote.shown}) does not continue this one, so nothing was "
        f"pulled: {why}"
    )


def _check_kept(ours: CommittedLog, log: CommittedLog) -> None:
    """Check that history files other than the live log are unchanged, and that the live log only grew."""
    *sealed, live = ours.files
    for path, entry in ours.entries.items():
        if path not in (live, ORPHANS) and log.entries.get(path) != entry:
            raise HistoryDamaged(f"{path} differs from the local version.")
    if not log.content(log.files[len(sealed)]).startswith(ours.content(live)):
        raise HistoryDamaged("It lacks events of the local history.")
    for path, entry in log.entries.items():
        if path not in (*log.files, ORPHANS) and path != blob_path(entry.oid):
            raise HistoryDamaged(f"{path} does not belong to a history.")


def _check_events(repo: GitRepository, log: CommittedLog, events: list[Event], seq: int, theirs: str) -> None:
    """Check that the chain ends where the commits say, and that everything the events name exists."""
    last, named = events[-1].seq if events else seq, recovery.last_recorded(repo, theirs).seq
    if last != named:
        raise HistoryDamaged(f"The hash chain ends at event {last}, but its commits end at event {named}.")
    for event in events:
        for change in strays_of(event):
            raise HistoryDamaged(
                f"Event {event.seq} names {change.path[:200]!r}, which is outside the artifacts."
            )
        for path in map(blob_path, named_blobs(event.data)):
            if path not in log.entries:
                raise HistoryDamaged(f"Event {event.seq} names {path}, which is missing.")


def _check_files(repo: GitRepository, events: list[Event], head: str, theirs: str) -> None:
    """Check that the artifacts match the events, and that every path can be written."""
    known = _artifacts(repo, head)
    lost = {(e.data.event, e.data.path) for e in events if isinstance(e.data, WriteReverted)}
    for event in events:
        for change in changes_of(event):
            if (event.seq, change.path) not in lost:
                known[change.path] = entry_after(change)
    found = _artifacts(repo, recovery.last_recorded(repo, theirs).commit)
    if wrong := sorted(path for path in known.keys() | found.keys() if known.get(path) != found.get(path)):
        raise HistoryDamaged(f"{wrong[0]!r} does not match its events.")
    for path in repo.diff(repo.tree_of(head), repo.tree_of(theirs)):
        check_path(path)
        if path.startswith(f"{CACHE}/"):
            raise HistoryDamaged(f"{path!r} is a cache file, which must not be committed.")


def _artifacts(repo: GitRepository, commit: str) -> dict[str, TreeEntry | None]:
    return dict(repo.files(repo.subtree(repo.tree_of(commit), ARTIFACTS)))


def _check_settings(engine: Engine, theirs: str) -> None:
    """Check that ``agentx.toml`` can be read, and does not move the artifacts."""
    repo = engine.git.repo
    entry = repo.entry(repo.tree_of(theirs), CONFIG_FILE)
    try:
        text = repo.read_blob(entry.oid).decode() if entry else ""
        config = Config.model_validate(tomllib.loads(text))
    except ValueError as error:
        raise HistoryDamaged(f"Its {CONFIG_FILE} cannot be read.") from error
    if config.workspace.artifacts != engine.config.workspace.artifacts:
        raise HistoryDamaged(f"Its {CONFIG_FILE} puts the artifacts elsewhere.")


# --- messages -----------------------------------------------------------------------------------------------


def _diverged(repo: GitRepository, remote: Remote, head: str, theirs: str) -> AgentXError:
    """Return an error that says where two histories part, and what to do."""
    ours = CommittedLog(repo, head, _CODEC)
    try:
        log = CommittedLog(repo, theirs, _CODEC)
        ends = [_end(ours), _end(log)]
    except HistoryDamaged as error:
        return _refused(remote, str(error))
    common = _common(ours, log)
    if not common:
        sentence = f"{remote.name} ({remote.shown}) is the history of another workspace."
    else:
        sentence = (
            f"The two histories diverge after event {common}: the local one ends at event {ends[0][0]} "
            f"({ends[0][1][:_SHOWN]}…), {remote.name} ({remote.shown}) at event {ends[1][0]} "
            f"({ends[1][1][:_SHOWN]}…)."
        )
    return HistoriesDiverged(
        f"{sentence} Neither was changed. To keep both, get theirs with "
        f"`git clone {remote.shown} NEW`; give yours its own remote with "
        "`agentx push NAME --url URL`, or its own workspace with `agentx fork NEW`.",
        common,
        ends[0],
        ends[1],
    )


def _end(log: CommittedLog) -> tuple[int, str]:
    last = log.last
    return (last.seq, last.hash) if last else (0, "")


def _common(ours: CommittedLog, theirs: CommittedLog) -> int:
    """Return the last event that two logs have in common; identical files are not read."""
    identical = takewhile(
        lambda pair: ours.entries[pair[0]].oid == theirs.entries[pair[1]].oid,
        zip(ours.files[:-1], theirs.files[:-1], strict=False),
    )
    same = sum(1 for _ in identical)
    common = min(ours.begins(same), theirs.begins(same)) - 1
    for one, other in zip(ours.events(common), theirs.events(common), strict=False):
        if one.hash != other.hash:
            break
        common = one.seq
    return common


def _exchanged(repo: GitRepository, remote: Remote, before: str, after: str) -> Exchanged:
    had = recovery.last_recorded(repo, before).seq if before else 0
    has = recovery.last_recorded(repo, after).seq
    commits = sum(1 for _ in takewhile(lambda commit: commit.id != before, repo.log(after)))
    old = repo.entry(repo.tree_of(before), CONFIG_FILE) if before else None
    return Exchanged(
        remote=remote.name,
        url=remote.shown,
        events=has - had,
        commits=commits,
        from_seq=had,
        to_seq=has,
        commit=after,
        settings=bool(before) and old != repo.entry(repo.tree_of(after), CONFIG_FILE),
    )
