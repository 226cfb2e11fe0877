"""Remove all objects that no ref reaches: after a purge, no removed byte may be found.

Git itself keeps unreachable objects for weeks, in packs, reflogs and other files. All reachable objects are
copied into one new pack, which is on disk before anything is removed. So this can be interrupted at any point
and repeated.
"""

import contextlib
import errno
from collections.abc import Iterable, Sequence
from pathlib import Path

import pygit2

from agentx.storage import stopping
from agentx.storage.files import nofollow
from agentx.storage.files.durable import sync_directory, write_file
from agentx.storage.git.branch import BRANCH
from agentx.storage.git.checked_reader import ObjectReader
from agentx.storage.git.exchange import transfer
from agentx.storage.git.exchange.git_program import GitFailed
from agentx.storage.git.objects import ObjectDamaged
from agentx.storage.progress import Progress

_NEW = "agentx-swept"
_NONE = "0" * 40
_KEPT_LOCKS = {"agentx.lock", "agentx-run.lock", "agentx-pack.lock"}
_LEFT = (
    *("ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "CHERRY_PICK_HEAD", "REVERT_HEAD"),
    *("SQUASH_MSG", "COMMIT_EDITMSG", "TAG_EDITMSG", "NOTES_EDITMSG", "AUTO_MERGE", "MERGE_AUTOSTASH"),
    *("MERGE_RR", "BISECT_LOG", "BISECT_NAMES", "BISECT_START", "BISECT_TERMS", "BISECT_EXPECTED_REV"),
    *("index", "shallow.lock", "gitk.cache"),
)
"""Files of Git that name or quote earlier content. None is needed, and the index file is rebuilt."""

_LEFT_FOLDERS = ("rebase-merge", "rebase-apply", "sequencer", "rr-cache", "lost-found", _NEW)


def why_not(git_dir: Path) -> str:
    """Return why removed content would remain in a repository; empty if it would not."""
    if nofollow.exists(git_dir / "objects" / "info" / "alternates"):
        return (
            "it shares objects with another repository (objects/info/alternates); "
            "run `git repack -a -d` and delete that file"
        )

    if nofollow.exists(git_dir / "shallow"):
        return "it is a shallow clone; run `git fetch --unshallow`"
    with contextlib.suppress(FileNotFoundError):
        if names := (nofollow.names(git_dir / "worktrees")):
            return f"other work trees depend on it ({', '.join(names)}); run `git worktree remove` on each"
    return ""


def other_refs(git_dir: Path) -> dict[str, str]:
    """Return the commit of every ref except the branch, in hex; empty for a ref without a commit."""
    repo, reader = pygit2.Repository(str(git_dir)), ObjectReader(git_dir)
    found: dict[str, str] = {}
    try:
        for name in sorted(set(repo.references) - {BRANCH}):
            try:
                found[name] = reader.peel(_target(repo, name), "commit")
            except ObjectDamaged:
                found[name] = ""
    finally:
        repo.free()
    return found


def remotes_of(refs: Iterable[str]) -> list[str]:
    """Return the remotes that some remote-tracking refs belong to.

    >>> remotes_of(["refs/remotes/origin/main", "refs/remotes/origin/HEAD", "refs/tags/v1"])
    ['origin']
    """
    return sorted({name.split("/")[2] for name in refs if name.startswith("refs/remotes/")})


def set_refs(git_dir: Path, head: str, drop: Sequence[str], who: str) -> None:
    """Point the branch at a commit, remove some other refs, and clear the reflogs of earlier positions.

    Remotes of removed remote-tracking refs are removed too: the next fetch would bring everything back.

    Args:
        git_dir: The ``.git`` directory.
        head: The commit.
        drop: Names of refs to remove.
        who: For the reflog: ``name <address> time zone``.
    """
    write_file(git_dir / BRANCH, head.encode() + b"\n")
    repo = pygit2.Repository(str(git_dir))
    for name in [name for name in drop if name in set(repo.references)]:
        with contextlib.suppress(KeyError):
            repo.references.delete(name)
    for name in set(remotes_of(drop)) & set(repo.remotes.names()):
        repo.remotes.delete(name)
    left = {name: _target(repo, name) for name in repo.references} | {"HEAD": head}
    repo.free()
    _pack_refs(git_dir)
    logs = git_dir / "logs"
    for log in list(nofollow.tree(logs)):
        name = log.relative_to(logs).as_posix()
        if left.get(name):
            write_file(log, f"{_NONE} {left[name]} {who}\tagentx: purge\n".encode())
        else:
            nofollow.remove(log)


def _target(repo: pygit2.Repository, name: str) -> str:
    """Return the object that a ref names; empty if it names another ref that does not exist."""
    try:
        return str(repo.references[name].resolve().target)
    except (KeyError, ValueError, pygit2.GitError):
        return ""


def _pack_refs(git_dir: Path) -> None:
    """Remove the branch from the packed refs: it has its own file."""
    path = git_dir / "packed-refs"
    with contextlib.suppress(FileNotFoundError):
        lines = nofollow.read(path).splitlines(keepends=True)
        write_file(path, b"".join(line for line in lines if not line.endswith(f" {BRANCH}\n".encode())))


@stopping.finishing()
def sweep(git_dir: Path, progress: Progress) -> None:
    """Remove every unreachable object, and the files that Git keeps beside them.

    Args:
        git_dir: The ``.git`` directory; nobody else may write to it at the same time.
        progress: Called with the progress.

    Raises:
        ObjectDamaged: A reachable object cannot be read; nothing was removed.
        OSError: A file could not be written or removed; all reachable objects are still there.
    """
    objects, fresh = git_dir / "objects", git_dir / _NEW
    repo = pygit2.Repository(str(git_dir))
    try:
        tips = [target for name in repo.references if (target := _target(repo, name))]
    finally:
        repo.free()
    nofollow.remove_tree(fresh, ignore_errors=True)
    old = list(nofollow.tree(objects))
    nofollow.make_directory(fresh / "objects", parents=True)
    try:
        transfer.copy(git_dir, fresh, tips, progress)
    except GitFailed as error:
        raise OSError(errno.EIO, str(error)) from error
    kept = _take_in(fresh / "objects" / "pack", objects / "pack")
    for path in old:
        if path not in kept:
            nofollow.remove(path, missing_ok=True)
    for folder in (objects / name for name in nofollow.names(objects)):
        if nofollow.is_directory(folder):
            sync_directory(folder)
    _remove_traces(git_dir)


def _take_in(fresh: Path, folder: Path) -> set[Path]:
    """Move a new pack to its place; return its files there.

    A pack of the same name holds the same objects.
    """
    names = (nofollow.names(fresh)) if nofollow.is_directory(fresh) else []
    kept = {folder / name for name in names}
    if not all(nofollow.exists(path) for path in kept):
        # The index makes a pack visible, so it comes last.
        for name in sorted(names, key=lambda name: name.endswith(".idx")):
            nofollow.replace(fresh / name, folder / name)
    sync_directory(folder)
    return kept


def _remove_traces(git_dir: Path) -> None:
    for name in _LEFT_FOLDERS:
        nofollow.remove_tree(git_dir / name, ignore_errors=True)
    for name in _LEFT:
        nofollow.remove(git_dir / name, missing_ok=True)
    sync_directory(git_dir)


def remove_scratch(git_dir: Path, keep: Iterable[str]) -> None:
    """Remove the engine's own files beside Git's."""
    for name in nofollow.names(git_dir):
        path = git_dir / name
        if name.startswith("agentx-") and nofollow.is_file(path) and name not in {*_KEPT_LOCKS, *keep}:
            nofollow.remove(path, missing_ok=True)
