"""Repair a repository after a crash, a power cut or `git gc --prune=now`.

Afterwards the branch names an intact commit.

Trees, commits and the branch are not synced when they are written, because they can be rebuilt from the log.
So a power cut may leave them truncated, and libgit2 loops for ever on reading such an object. Also, new
objects are not reachable yet, so a concurrent prune may delete them.

No object is trusted here before it was inflated and hashed. Damaged objects are set aside. Missing objects
are rebuilt if their content exists elsewhere (:mod:`agentx.storage.git.recovery.reconstruction`). Otherwise
the branch goes back to the last intact commit of its reflog, and the log is committed again.
"""

import contextlib
import functools
import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from agentx.storage.errors import AgentXError
from agentx.storage.files import nofollow
from agentx.storage.files.durable import write_file
from agentx.storage.files.lock import FileLock
from agentx.storage.git import content_journal
from agentx.storage.git.branch import BRANCH
from agentx.storage.git.checked_reader import CommitInfo, ObjectReader, loose_objects
from agentx.storage.git.checking import (
    STALE_S,
    ObjectFault,
    index_faults,
    loose_fault,
    pack_faults,
    ref_faults,
    stale_locks,
)
from agentx.storage.git.index_file import Mark, is_abandoned, read_mark, this_boot
from agentx.storage.git.objects import ObjectDamaged, ObjectTooLarge, loose_path, read_loose
from agentx.storage.git.packs.salvage import salvage
from agentx.storage.git.recovery.reconstruction import Remaking
from agentx.storage.git.trees import SUBMODULE, entries

WHOLE = "agentx-whole"
"""File with the latest commit found intact, and the state of Git's own housekeeping at that time.

Earlier commits are not checked again. Written at each open and at each end of a turn, so that an open after a
crash checks only one turn.
"""

_CLOCK_NS = 2_000_000_000
"""A file older than the note by at most this counts as newer: the coarsest file system clock (FAT)."""

_OID = re.compile(rb"[0-9a-f]{40}")
_NAMED = re.compile(rb"^(?:tree|parent) ([0-9a-f]{40})$", re.MULTILINE)
_LOG_BYTES = 256 * 1024
"""Bytes to read from the reflog's end: some thousand moves of the branch."""

_TRACES = ("packed-refs", "objects/info/packs")
"""Files that `git gc` writes and the engine does not."""


class RepositoryDamaged(AgentXError):
    """The branch has no commit that can be read completely."""


class Aside:
    """The folder for damaged files.

    Args:
        root: The workspace's directory.

    Attributes:
        used: Whether anything was put there.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self.used = False
        self.folder = root / ".agentx" / "repaired" / time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime())

    def keep(self, path: Path) -> None:
        """Move a file there, if it exists."""
        target = self._target(path)
        with contextlib.suppress(FileNotFoundError):
            nofollow.replace(path, target)
            self.used = True

    def copy(self, path: Path) -> None:
        """Copy a file there that must never be missing, if it exists."""
        with contextlib.suppress(FileNotFoundError):
            content = nofollow.read(path)
            write_file(self._target(path), content)
            self.used = True

    def _target(self, path: Path) -> Path:
        target = self.folder / path.relative_to(self._root)
        while nofollow.exists(target):
            target = target.with_name(f"{target.name}.1")
        nofollow.make_directory(target.parent, parents=True)
        return target


class Mended(msgspec.Struct, frozen=True):
    """One repair.

    Attributes:
        what: The file or object.
        how: The action taken, to follow it in a sentence.
    """

    what: str
    how: str


def repair(root: Path) -> str:
    """Check a workspace's repository before it is opened, and repair damage by a crash or Git's pruning.

    The cost depends only on what was committed since the last check, if all is well.

    Args:
        root: The working directory that holds ``.git``.

    Returns:
        The repairs in one sentence; empty if all is well.

    Raises:
        RepositoryDamaged: No commit can be read completely.
    """
    git_dir = root / ".git"
    if not nofollow.is_directory(git_dir / "objects"):
        return ""
    _write_contents_back(git_dir)
    suspicious = is_abandoned(git_dir) or any(ref_faults(git_dir))
    with contextlib.suppress(FileNotFoundError), nofollow.open_file(git_dir / "index") as file:
        suspicious = suspicious or file.read(4) != b"DIRC"  # a crash left it empty, or without its beginning
    locked = any(stale_locks(git_dir)) or any(_stale_index_lock(git_dir))
    if not suspicious and not locked and _is_whole_since(git_dir):
        return ""
    with FileLock(git_dir / "agentx.lock", brief=True).hold():
        mended = mend(root, Aside(root))
    if not mended:
        return ""
    told = "; ".join(f"{one.what} {one.how}" for one in mended[:3])
    more = f"; and {len(mended) - 3} more" if len(mended) > 3 else ""  # noqa: PLR2004 - as above
    return f"A crash or Git's maintenance damaged the repository; it was repaired: {told}{more}."


def _write_contents_back(git_dir: Path) -> None:
    """Write contents that a crash left in the content journal as blobs."""
    if not content_journal.is_used(git_dir):
        return
    with FileLock(git_dir / "agentx.lock", brief=True).hold():
        mark = read_mark(git_dir)
        if mark is None or mark.is_left:  # a live process still needs it, and empties it
            content_journal.write_back(git_dir)
            content_journal.clear(git_dir)


def require_whole(root: Path) -> None:
    """Check a repository that cannot be repaired, because libgit2 hangs on a damaged object.

    Raises:
        RepositoryDamaged: Something that its latest commit needs is damaged or missing.
    """
    git_dir = root / ".git"
    whole = not any(ref_faults(git_dir)) and _is_whole_since(git_dir)
    if whole and (mark := read_mark(git_dir)) is not None and mark.rebooted:
        missing: list[str] = []
        try:
            _look_at_each(
                ObjectReader(git_dir), read_ref(git_dir), "", lambda _path, oid, _: missing.append(oid)
            )
            whole = not missing
        except ObjectDamaged:
            whole = False
    if not whole:
        raise RepositoryDamaged(
            f"The repository in {root} is damaged, and cannot be repaired because it is read-only. "
            "Copy the whole directory to a writable place, for example with `cp -a`, "
            "and run `agentx repair` there."
        )


def mend(root: Path, aside: Aside, *, thorough: bool = False) -> list[Mended]:
    """Repair the repository; runs under the workspace's lock.

    Args:
        root: The working directory that holds ``.git``.
        aside: Receives damaged files.
        thorough: Check packs and every commit, not only what is new since the last check.

    Raises:
        RepositoryDamaged: No commit can be read completely.
    """
    git_dir = root / ".git"
    mark = read_mark(git_dir)
    power_cut = mark is not None and mark.rebooted
    # The kernel's cache keeps what a killed process wrote, so only its last turn is checked.
    killed = mark is not None and not power_cut and not thorough
    mended = [*_remove(git_dir, aside, [*stale_locks(git_dir), *_stale_index_lock(git_dir)], "was removed")]
    if thorough or power_cut:
        mended += _salvage_packs(git_dir, aside, new_only=not thorough)
    damaged = list(_damaged_objects(git_dir, new_only=killed))
    mended += _remove(git_dir, aside, damaged, "was damaged and was moved away")
    mended += _mend_refs(git_dir, aside, _LOG_BYTES if killed else None)
    logged = _logged(git_dir)
    head = read_ref(git_dir)
    if not head and not logged:
        return mended
    reader = ObjectReader(git_dir)
    remaking = Remaking(root, reader)
    good = head if not (thorough or power_cut or damaged) and _is_whole_since(git_dir) else ""
    # The reflog first: if the branch's file is behind it, its last move did not reach the disk.
    candidates = [oid for oid in dict.fromkeys([*logged, head]) if oid]
    if not good:
        since = "" if thorough or damaged else _known_whole(git_dir, reader)
        if mark is not None and power_cut and not thorough:
            since = _settled(reader, candidates, mark.seq)
            # A commit can be incomplete although it was synced: then each is checked.
            since = since if not damaged or remaking.is_usable(since, "", each=False) else ""
        good = next((oid for oid in candidates if remaking.make(oid, since, each=power_cut)), "")
    mended += [Mended(f"Git object {oid}", f"was restored from {source}") for oid, source in remaking.made]
    if not good:
        raise RepositoryDamaged(
            f"No commit in {root} can be read completely. Its history.jsonl and artifacts are untouched; "
            "fetch the objects from a clone (`git fetch`), or inspect them with `git fsck`."
        )
    if good != head:
        write_file(git_dir / BRANCH, good.encode() + b"\n")
        _forget(git_dir, aside, candidates[: candidates.index(good)])
        mended.append(
            Mended(f"The branch {BRANCH}", f"was set back to commit {good[:12]}, the last complete one")
        )
    if power_cut:
        mended += _remove(git_dir, aside, _broken(git_dir), "refers to a missing object and was moved away")
    if mended or not killed:
        # Reflogs that name missing commits, and Git's index file; a kill alone damages neither.
        exists = functools.cache(ObjectReader(git_dir).exists)
        _drop_moves(
            git_dir, aside, lambda oid: bool(oid.strip(b"0")) and not exists(oid.decode("ascii", "replace"))
        )
        mended += _remove(git_dir, aside, list(index_faults(git_dir)), "was damaged and will be rebuilt")
    if mended:
        _leave_index_behind(git_dir, reader.commit(good))
    _note_whole(git_dir, good)
    return mended


def _damaged_objects(git_dir: Path, *, new_only: bool) -> Iterator[ObjectFault]:
    since_ns = _noted_ns(git_dir) if new_only else 0
    for oid, path in loose_objects(git_dir / "objects", since_ns):
        fault = loose_fault(git_dir, oid, path)
        if fault and not fault.whole:
            yield fault


def _noted_ns(git_dir: Path) -> int:
    """Return when a commit was last found intact, by the clock of the file system; 0 if unknown."""
    with contextlib.suppress(FileNotFoundError):
        return nofollow.status(git_dir / WHOLE).st_mtime_ns - _CLOCK_NS
    return 0


def read_ref(git_dir: Path) -> str:
    """Return the commit that the branch names; empty if its file is damaged or missing."""
    with contextlib.suppress(OSError):
        content = nofollow.read(git_dir / BRANCH)
        return content[:40].decode() if _OID.fullmatch(content.rstrip()) else ""
    with contextlib.suppress(OSError):
        for line in nofollow.read(git_dir / "packed-refs").splitlines():
            oid, _, name = line.partition(b" ")
            if name == BRANCH.encode() and _OID.fullmatch(oid):
                return oid.decode()
    return ""


# --- quick check --------------------------------------------------------------------------------------------


def _is_whole_since(git_dir: Path) -> bool:
    """Return whether the new part of the latest commit is intact.

    If ``git gc`` ran since the last check, each new commit is checked.
    """
    head, reader = read_ref(git_dir), ObjectReader(git_dir)
    if not head:
        return True
    since = _known_whole(git_dir, reader)
    missing: list[str] = []

    def tell(_path: str, oid: str, _problem: ObjectDamaged) -> None:
        missing.append(oid)

    try:
        known = reader.commit(since).tree if since else ""
        tree = reader.commit(head).tree
        reader.entries(tree)
        if since == head:
            return True
        for _ in reader.compare(known, tree, tell):
            pass
        if since and not missing and _noted(git_dir)[1:] != _traces(git_dir):
            _look_at_each(reader, head, since, tell)
    except ObjectDamaged:
        return False
    return not missing


def note_whole(root: Path, head: str) -> None:
    """Record a commit that :func:`repair` found intact, so that the next check begins with it."""
    git_dir = root / ".git"
    if head and _noted(git_dir) != [head, *_traces(git_dir)]:
        _note_whole(git_dir, head)


def note_settled(root: Path) -> None:
    """Check the latest commit as at an open, and record it. Call once everything up to it is synced."""
    if _is_whole_since(root / ".git"):
        note_whole(root, read_ref(root / ".git"))


def _look_at_each(
    reader: ObjectReader, head: str, since: str, tell: Callable[[str, str, ObjectDamaged], None]
) -> None:
    commit = reader.commit(head)
    while commit.id != since:
        parent = reader.commit(commit.parents[0]) if commit.parents else None
        for _ in reader.compare(parent.tree if parent else "", commit.tree, tell):
            pass
        if parent is None:
            return
        commit = parent


def _noted(git_dir: Path) -> list[str]:
    try:
        return nofollow.read_text(git_dir / WHOLE).split()
    except (OSError, UnicodeDecodeError):
        return []


def _known_whole(git_dir: Path, reader: ObjectReader) -> str:
    """Return the latest commit that was found intact; empty if there is none, or it no longer exists."""
    found = "".join(_noted(git_dir)[:1])
    return found if _OID.fullmatch(found.encode()) and reader.exists(found) else ""


def _note_whole(git_dir: Path, commit: str) -> None:
    beside = git_dir / f"{WHOLE}.new"
    with contextlib.suppress(OSError):  # a read-only repository is checked in full each time
        nofollow.write(beside, (" ".join([commit, *_traces(git_dir)]) + "\n").encode())
        nofollow.replace(beside, git_dir / WHOLE)


def _traces(git_dir: Path) -> list[str]:
    """Return the state of Git's own housekeeping."""
    found: list[str] = []
    for name in _TRACES:
        try:
            found.append(str(nofollow.status(git_dir / name).st_mtime_ns))
        except FileNotFoundError:
            found.append("0")
    return found


# --- repairs ------------------------------------------------------------------------------------------------


def _remove(git_dir: Path, aside: Aside, faults: list[ObjectFault], how: str) -> Iterator[Mended]:
    for fault in faults:
        aside.keep(git_dir / fault.path)
        yield Mended(f".git/{fault.path}", how)


def _stale_index_lock(git_dir: Path) -> Iterator[ObjectFault]:
    """Yield an old lock of the index that is neither the engine's nor a running git program's.

    Git holds it while the user writes a commit message, so age alone is not enough.
    """
    lock = git_dir / "index.lock"
    with contextlib.suppress(OSError):
        if (
            nofollow.read(lock).startswith(b"agentx")
            or time.time() - nofollow.status(lock).st_mtime < STALE_S
        ):
            return
        if not _git_at_work(git_dir.parent):
            yield ObjectFault("index.lock", "was left by a process that died")


def _git_at_work(root: Path) -> bool:
    """Return whether a git program runs inside a directory or names a path inside it; true if unknown."""
    root = root.resolve()
    processes = list(Path("/proc").glob("[0-9]*"))
    return not processes or any(_is_git_in(process, root) for process in processes)


def _is_git_in(process: Path, root: Path) -> bool:
    """Return whether a process of ``/proc`` is Git and works inside ``root``.

    Its directory, its arguments and its ``GIT_…`` variables are checked.
    """
    try:
        if not (process / "comm").read_bytes().startswith(b"git"):
            return False
        directory = (process / "cwd").resolve()
        named = (process / "cmdline").read_bytes().split(b"\0")
        named += [
            word for word in (process / "environ").read_bytes().split(b"\0") if word.startswith(b"GIT_")
        ]
    except OSError:  # it ended, or belongs to somebody else
        return False
    for value in (b"", *(value for word in named for value in (word, word.partition(b"=")[2]))):
        with contextlib.suppress(OSError):  # an argument that is not a path
            if (directory / os.fsdecode(value)).resolve().is_relative_to(root):
                return True
    return False


def _salvage_packs(git_dir: Path, aside: Aside, *, new_only: bool) -> Iterator[Mended]:
    """Turn the readable objects of damaged packs into loose objects."""
    since_ns = _noted_ns(git_dir) if new_only else 0
    for name in sorted({Path(fault.path).with_suffix("") for fault in pack_faults(git_dir, since_ns)}):
        saved, lost = salvage(git_dir, git_dir / name.with_suffix(".pack"))
        for path in nofollow.listed(git_dir / name.parent, f"{name.name}."):
            aside.keep(path)
        yield Mended(
            f".git/{name}.pack",
            f"was damaged and was unpacked: {saved:,} objects were saved, {lost:,} were lost",
        )


def _mend_refs(git_dir: Path, aside: Aside, tail_bytes: int | None) -> Iterator[Mended]:
    """Repair refs and reflogs; only the last bytes of reflogs are checked, ``None`` for all."""
    for fault in list(ref_faults(git_dir)):
        path = git_dir / fault.path
        content = nofollow.read(path) if nofollow.exists(path) else b""
        aside.keep(path)
        if fault.path == "HEAD":
            write_file(path, b"ref: " + BRANCH.encode() + b"\n")
        elif fault.path == "packed-refs":
            lines = [
                line for line in content.splitlines() if re.fullmatch(rb"[0-9a-f]{40} refs/[^\0 ]+", line)
            ]
            write_file(path, b"".join(line + b"\n" for line in lines))
        yield Mended(f".git/{fault.path}", f"{fault.what}, and was repaired")
    for log in (git_dir / "logs" / BRANCH, git_dir / "logs" / "HEAD"):
        if garbled := _garbled(log, tail_bytes):
            _drop_lines(log, aside, garbled)
            yield Mended(
                f".git/{log.relative_to(git_dir)}", f"had {len(garbled)} unreadable lines, and was repaired"
            )


def _settled(reader: ObjectReader, candidates: list[str], seq: int) -> str:
    """Return the latest commit that was certainly synced before the power cut; empty if unknown."""
    for candidate in candidates:
        with contextlib.suppress(ObjectDamaged):
            commit: CommitInfo | None = reader.commit(candidate)
            while commit is not None:
                if commit.span is not None and commit.span[1] <= seq:
                    return commit.id
                commit = reader.commit(commit.parents[0]) if commit.parents else None
    return ""


def _garbled(log: Path, tail_bytes: int | None) -> set[bytes]:
    """Return lines of a reflog that a crash truncated or filled with zeros.

    One such line makes libgit2 reject the whole reflog.
    """
    with contextlib.suppress(FileNotFoundError):
        return {
            line
            for line in _last_lines(log, tail_bytes)
            if not re.match(rb"[0-9a-f]{40} [0-9a-f]{40} [^\0]*> \d+ [+-]\d{4}(\t[^\0]*)?\n\Z", line)
        }
    return set()


def _last_lines(log: Path, tail_bytes: int | None) -> list[bytes]:
    """Return the complete lines, with their ends, in the last bytes of a file; ``None`` for all of it."""
    with nofollow.open_file(log) as file:
        start = max(0, os.fstat(file.fileno()).st_size - tail_bytes) if tail_bytes else 0
        file.seek(max(0, start - 1))
        if start:
            file.readline()  # the end of a line, or the line break before the next
        return file.read().splitlines(keepends=True)


def _logged(git_dir: Path) -> list[str]:
    """Return the commits that the branch named recently, newest first, by its reflog."""
    try:
        lines = _last_lines(git_dir / "logs" / BRANCH, _LOG_BYTES)
    except OSError:
        return []
    named = (oid for line in reversed(lines) if _OID.fullmatch(line[:40]) for oid in (line[41:81], line[:40]))
    return [oid.decode() for oid in named if _OID.fullmatch(oid) and oid.strip(b"0")]


def _forget(git_dir: Path, aside: Aside, commits: list[str]) -> None:
    """Remove incomplete commits and their reflog entries; they are committed again."""
    lost = {commit.encode() for commit in commits}
    for commit in commits:
        aside.keep(loose_path(git_dir, commit))
    _drop_moves(git_dir, aside, lost.__contains__)


def _broken(git_dir: Path) -> list[ObjectFault]:
    """Return loose commits and trees that name missing objects; after a power cut these are unreachable."""
    reader = ObjectReader(git_dir)
    links: dict[str, list[str]] = {}
    paths: dict[str, Path] = {}
    for oid, path in loose_objects(git_dir / "objects"):
        try:
            kind, content = read_loose(path, oid, ("commit", "tree")) or ("", b"")
        except ObjectTooLarge:
            continue
        if kind == "commit":
            links[oid] = [found.decode() for found in _NAMED.findall(content.partition(b"\n\n")[0])]
        elif kind == "tree":
            links[oid] = [entry.oid for entry in entries(content) if entry.mode != SUBMODULE]
        paths[oid] = path
    named_by: defaultdict[str, list[str]] = defaultdict(list)
    for oid, named in links.items():
        for one in named:
            named_by[one].append(oid)
    broken: set[str] = set()
    ahead = [one for one in named_by if one not in paths and not reader.exists(one)]
    while ahead:
        fresh = set(named_by[ahead.pop()]) - broken
        broken |= fresh
        ahead += fresh
    return [
        ObjectFault(str(paths[oid].relative_to(git_dir)), "refers to a missing object")
        for oid in sorted(broken)
    ]


def _drop_moves(git_dir: Path, aside: Aside, is_gone: Callable[[bytes], bool]) -> None:
    """Drop reflog entries of some commits."""
    for log in (git_dir / "logs" / BRANCH, git_dir / "logs" / "HEAD"):
        with contextlib.suppress(FileNotFoundError):
            lines = set(nofollow.read(log).splitlines(keepends=True))
            if gone := {line for line in lines if any(map(is_gone, (line[:40], line[41:81])))}:
                _drop_lines(log, aside, gone)


def _drop_lines(log: Path, aside: Aside, lines: set[bytes]) -> None:
    kept = [line for line in nofollow.read(log).splitlines(keepends=True) if line not in lines]
    aside.keep(log)
    write_file(log, b"".join(kept))


def _leave_index_behind(git_dir: Path, commit: CommitInfo) -> None:
    """Leave the engine's lock as a dead engine would, so that the next open updates the index file."""
    mark = Mark(pid=0, seq=commit.span[1] if commit.span else 0, boot=this_boot())
    with contextlib.suppress(FileExistsError):
        fd = nofollow.open_descriptor(git_dir / "index.lock", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        os.write(fd, mark.encode())
        os.close(fd)
