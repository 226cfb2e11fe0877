"""A worker's copies of workspaces: cloned, brought up to date, or set aside when their place was taken.

A copy that has events which the remote lacks is never deleted: it is moved aside with a rename, its last
commit is pushed to a ref outside the branches, and only then it goes.
"""

import contextlib
import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec

from agentx.fleet import remote_cache
from agentx.fleet.submission import Submission
from agentx.fleet.telemetry import Parts
from agentx.settings import Settings
from agentx.storage.errors import AgentXError
from agentx.storage.files import nofollow
from agentx.storage.files.durable import TEMPORARY_PREFIX, sync_directory, write_file, write_temporary
from agentx.storage.files.lock import FileLock, WorkspaceBusy
from agentx.storage.git.exchange.remotes import Remote, RemoteFailed
from agentx.transfer.push_pull import HistoriesDiverged, pull
from agentx.workspace import Workspace

STRANDED = "refs/agentx/stranded/"
"""Where the remote keeps events whose place in the history was taken."""

LOCK_S = 3600.0
"""How long a copy is waited for: its holder is a run of an earlier worker that is still at work."""

LEAST_FREE = 0.05
"""Share of the disk that a worker leaves free: below it, copies that nobody needs are removed."""

_ABOUT = ".json"
_GONE = ".gone"


class Stranded(msgspec.Struct, frozen=True, kw_only=True):
    """A copy that was set aside.

    Attributes:
        workspace: The workspace.
        submission: The submission that the worker had; empty if it is not known.
        url: The workspace's remote.
        why: Why it was set aside.
    """

    workspace: str
    submission: str
    url: str
    why: str


class Home:
    """The directory of one worker; no two workers share one.

    Args:
        root: The directory.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.copies, self.stranded = root / "workspaces", root / "stranded"
        self._locks, self._records = root / "locks", root / "records"
        self._offers, self._unpublished = root / "offers", root / "unpublished"
        for folder in (
            *(self.copies, self.stranded, self._locks, self._records),
            *(self._offers, self._unpublished),
        ):
            nofollow.make_directory(folder, parents=True)

    @contextlib.contextmanager
    def alone(self, workspace: str, wait_s: float = LOCK_S) -> Iterator[Path]:
        """Hold a workspace's copy, so that no other process of this worker changes it; yield its directory.

        Raises:
            WorkspaceBusy: Another process of this worker has it for that long.
        """
        with FileLock(self._locks / f"{workspace}.lock", timeout_s=wait_s).hold():
            yield self.copies / workspace

    def keep_records(self, url: str, submission: Submission) -> Path:
        """Note that a submission is at work, and return a private file with its signed records."""
        path = self.records_of(submission.workspace)
        records = write_temporary(self._records, submission.records.encode(), 0o600, sync=False)
        nofollow.replace(records, path)  # not synced: it is written again before the next run
        write_file(path.with_suffix(".json"), msgspec.json.encode((url, submission)), 0o600)
        return path

    def finished(self, workspace: str) -> None:
        """Note that the remote has all that was recorded in a workspace's copy."""
        nofollow.remove(self._records / f"{workspace}.json", missing_ok=True)

    def unfinished(self) -> list[tuple[str, Submission]]:
        """Return each submission whose events the remote may lack, with the URL of the remote."""
        found = []
        for path in nofollow.listed(self._records, suffix=".json"):
            with contextlib.suppress(FileNotFoundError):
                found.append(msgspec.json.decode(nofollow.read(path), type=tuple[str, Submission]))
        return found

    def offer_caches(self, workspace: str, url: str) -> None:
        """Note that a workspace's caches are worth being kept beside its remote."""
        made = write_temporary(self._offers, url.encode(), 0o600, sync=False)
        nofollow.replace(made, self._offers / workspace)

    def offers(self) -> list[tuple[str, str]]:
        """Return the workspaces whose caches are to be pushed, with the URLs of their remotes."""
        found = []
        for path in _named(self._offers):
            with contextlib.suppress(FileNotFoundError):
                found.append((path.name, nofollow.read_text(path)))
        return found

    def offered(self, workspace: str) -> None:
        """Note that a workspace's caches were pushed, or need not be."""
        nofollow.remove(self._offers / workspace, missing_ok=True)

    def make_room(self, least_free: float = LEAST_FREE) -> list[str]:
        """Remove copies until a share of the disk is free, those first whose last run is longest ago.

        A copy is removed only if the remote has all of it and it is not in use. The next run clones it.

        Args:
            least_free: The share, from 0 to 1.

        Returns:
            Names of the workspaces whose copies were removed.
        """
        removed: list[str] = []
        if self._is_free(least_free):
            return removed
        needed = {one.workspace for _, one in self.unfinished()} | {name for name, _ in self.offers()}
        needed.update(self.unpublished())
        for copy in sorted(nofollow.listed(self.copies), key=self._last_used):
            if copy.name in needed:
                continue
            with contextlib.suppress(WorkspaceBusy), self.alone(copy.name, wait_s=0):
                if nofollow.is_file(self._records / f"{copy.name}.json"):
                    continue  # a run began meanwhile
                gone = (self.stranded / uuid.uuid4().hex).with_suffix(_GONE)
                nofollow.replace(copy, gone)
                nofollow.remove_tree(gone, ignore_errors=True)
                removed.append(copy.name)
            if self._is_free(least_free):
                break
        return removed

    def _is_free(self, share: float) -> bool:
        disk = shutil.disk_usage(self.root)
        return disk.free >= share * disk.total

    def _last_used(self, copy: Path) -> float:
        with contextlib.suppress(FileNotFoundError):
            return nofollow.status(self.records_of(copy.name)).st_mtime
        return 0.0

    def records_of(self, workspace: str) -> Path:
        """Return the file with the signed records of the latest submission to a workspace."""
        return self._records / f"{workspace}.trust"

    def to_publish(self, workspace: str) -> None:
        """Note that the published index of a workspace is behind its remote."""
        write_file(self._unpublished / workspace, uuid.uuid4().hex.encode(), 0o600)

    def unpublished(self) -> list[str]:
        """Return the workspaces whose published index is behind."""
        return [path.name for path in _named(self._unpublished)]

    def noted(self, workspace: str) -> str:
        """Return a mark of the latest :meth:`to_publish`."""
        return nofollow.read_text(self._unpublished / workspace)

    def published(self, workspace: str) -> None:
        """Note that the published index has what the remote has."""
        nofollow.remove(self._unpublished / workspace, missing_ok=True)

    def set_aside(self, copy: Path, about: Stranded) -> None:
        """Move a copy out of the way, with all that it has.

        What is known of it is written first, then one rename moves it: a sweep meanwhile sees all or nothing.
        """
        made = self.stranded / uuid.uuid4().hex
        write_file(made.with_suffix(_ABOUT), msgspec.json.encode(about), 0o600)
        nofollow.replace(copy, made)
        for folder in (self.copies, self.stranded):
            sync_directory(folder)

    def waiting(self) -> list[tuple[Path, Stranded]]:
        """Return what was set aside here and is not known to be on the remote yet."""
        for gone in nofollow.listed(self.stranded, suffix=_GONE):
            nofollow.remove_tree(gone, ignore_errors=True)  # a crash came while it was removed
        found = []
        for about in nofollow.listed(self.stranded, suffix=_ABOUT):
            folder = about.with_suffix("")
            if nofollow.is_directory(folder):
                found.append((folder, msgspec.json.decode(nofollow.read(about), type=Stranded)))
        return found

    def delivered(self, folder: Path) -> None:
        """Remove what was set aside; the remote has it."""
        gone = folder.with_suffix(_GONE)
        with contextlib.suppress(OSError):  # then it is delivered again
            nofollow.replace(folder, gone)
            nofollow.remove(folder.with_suffix(_ABOUT), missing_ok=True)
            nofollow.remove_tree(gone, ignore_errors=True)


def _named(folder: Path) -> list[Path]:
    """Return the files in a directory that are named after workspaces; others are being written."""
    return [path for path in nofollow.listed(folder) if not path.name.startswith(TEMPORARY_PREFIX)]


def bring(
    home: Home, copy: Path, url: str, submission: Submission, settings: Settings, parts: Parts
) -> tuple[Workspace, str, str]:
    """Open the copy of a workspace at the commit of its remote, or ahead of it by an earlier attempt.

    Args:
        home: The worker's directory; its lock on the copy is held.
        copy: Directory of the copy.
        url: The workspace's remote.
        submission: The submission, for the report of what is set aside.
        settings: Settings, with the submission's records.
        parts: Takes the time of its parts.

    Returns:
        The open workspace, the commit of the remote, and ``warm`` or ``cold``.

    Raises:
        RemoteFailed: The remote cannot be reached.
    """
    if nofollow.is_directory(copy):
        ws = None
        try:
            with parts.timed("open"):
                ws = Workspace.open(copy, settings=settings)
            with parts.timed("fetch"):
                fetched = pull(ws.engine, remote=remote_of(copy, url, settings)).commit
        except RemoteFailed:
            if ws is not None:
                ws.close()
            raise
        except AgentXError as error:
            if ws is not None:
                ws.close()
            if disk_is_full(error):  # nothing is wrong with the copy
                raise
            if isinstance(error, HistoriesDiverged) and error.common == error.ours[0]:
                # The remote has every event of the copy: it was purged, and a copy set aside is pushed.
                nofollow.remove_tree(copy)
            else:
                about = Stranded(
                    workspace=submission.workspace, submission=submission.id, url=url, why=str(error)[:500]
                )
                with parts.timed("set_aside"):
                    home.set_aside(copy, about)
        else:
            return ws, fetched, "warm"
    with parts.timed("fetch"):
        fetched = Remote.clone(url, copy, _environ(settings))
        remote_cache.adopt(copy, remote_of(copy, url, settings), settings)
    with parts.timed("open"):
        return Workspace.open(copy, settings=settings), fetched, "cold"


def remote_of(copy: Path, url: str, settings: Settings) -> Remote:
    """Return the remote of a copy: at the URL of the fleet, whatever the copy's configuration names.

    Git's credential helpers get the keys of the worker's environment there.
    """
    return Remote(copy, "origin", url, _environ(settings))


def _environ(settings: Settings) -> dict[str, str]:
    return {**settings.environ, **settings.keys}


def disk_is_full(error: BaseException | None) -> bool:
    """Whether a full disk, or a full quota, caused an error."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        if os.strerror(errno.ENOSPC) in str(error):  # of git, and of libraries that keep no number
            return True
        error = error.__cause__ or error.__context__
    return False


def deliver(folder: Path, about: Stranded, settings: Settings) -> Iterator[tuple[str, str, bool]]:
    """Push the last commit of a copy that was set aside to its own ref.

    The ref's name contains the commit, so a second delivery finds it there.

    Yields:
        The ref, the commit, and whether the remote has it: once before the push and once after. An empty ref
        if the branch of the remote has the commit, so that nothing was lost.

    Raises:
        RemoteFailed: The remote cannot be reached, or refuses the ref.
        AgentXError: The copy cannot be read; it stays where it is.
    """
    with Workspace.open(folder, settings=settings) as ws:
        head = ws.engine.settle()[0]
        ref = f"{STRANDED}{about.submission}-{head[:12]}"
        remote, repo = remote_of(ws.root, about.url, settings), ws.engine.git.repo
        try:
            theirs = remote.fetch()
        except RemoteFailed:
            yield ref, head, False
            raise
        if theirs and (theirs == head or repo.descends(theirs, head)):
            yield "", head, True
            return
        yield ref, head, False
        remote.put_aside(head, ref)
    yield ref, head, True
