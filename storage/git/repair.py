"""After a crash: no object is trusted before it was inflated and hashed here, and the branch names a commit that is whole.

Trees, commits and the ref are not synced when they are written, for they can be made again from the log. So a power cut
may leave them truncated, and libgit2 spins for ever on reading such an object: what is damaged is unlinked before
libgit2 sees it, and the branch goes back to the last commit of its reflog that can be read whole.
"""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pygit2

from agentx.storage.durable import write_file
from agentx.storage.errors import AgentXError
from agentx.storage.git.branch import BRANCH
from agentx.storage.git.index_file import is_abandoned
from agentx.storage.git.objects import ObjectDamaged, loose_path, read_loose
from agentx.storage.lock import FileLock

_OID = re.compile(rb"[0-9a-f]{40}")


class RepositoryDamaged(AgentXError):
    """No commit of the branch can be read whole."""


def repair(root: Path) -> str:
    """Look at the repository of a workspace, and mend what a crash left of it.

    Args:
        root: The working directory that holds ``.git``.

    Returns:
        What was done, in one sentence; empty where all is well.

    Raises:
        RepositoryDamaged: No commit can be read whole.
    """
    git_dir = root / ".git"
    logged = _logged(git_dir)
    if not logged or not (is_abandoned(git_dir) or _is_damaged(git_dir, logged[0])):
        return ""
    with FileLock(git_dir / "agentx.lock").hold():
        return _mend(root, git_dir, logged)


def _mend(root: Path, git_dir: Path, logged: list[str]) -> str:
    removed = [oid for oid in _loose(git_dir) if _remove_damaged(git_dir, oid)]
    head = _ref(git_dir)
    if not removed and head:
        return ""
    repo = pygit2.Repository(str(git_dir))
    try:
        candidates = list(dict.fromkeys([*([head] if head else []), *logged]))
        good = next((oid for oid in candidates if _is_whole(repo, oid)), "")
    finally:
        repo.free()
    if not good:
        raise RepositoryDamaged(
            f"No commit in {root} can be read whole. Its history.jsonl and artifacts are untouched; fetch the objects from "
            "a clone (`git fetch`), or look at `git fsck`."
        )
    if good != head:
        write_file(git_dir / BRANCH, good.encode() + b"\n")
    _forget(git_dir, candidates[: candidates.index(good)])
    return f"A crash left {len(removed)} damaged Git objects; they were removed, and what they held is committed anew."


def _is_damaged(git_dir: Path, commit: str) -> bool:
    """Whether the branch, its latest commit or that commit's tree is damaged, without a look at the rest."""
    try:
        found = read_loose(loose_path(git_dir, commit), commit)
        if found is not None and (tree := _OID.search(found[1])):
            read_loose(loose_path(git_dir, tree.group().decode()), tree.group().decode())
    except ObjectDamaged:
        return True
    return not _ref(git_dir)


def _ref(git_dir: Path) -> str:
    """The commit that the branch names; empty where its file is damaged or missing."""
    with contextlib.suppress(OSError):
        content = (git_dir / BRANCH).read_bytes()
        return content[:40].decode() if _OID.fullmatch(content[:40]) and len(content.rstrip()) == 40 else ""  # noqa: PLR2004 - SHA-1
    with contextlib.suppress(OSError):
        for line in (git_dir / "packed-refs").read_bytes().splitlines():
            oid, _, name = line.partition(b" ")
            if name == BRANCH.encode() and _OID.fullmatch(oid):
                return oid.decode()
    return ""


def _logged(git_dir: Path) -> list[str]:
    """The commits that the branch named, newest first, by its reflog."""
    try:
        lines = (git_dir / "logs" / BRANCH).read_bytes().splitlines()
    except OSError:
        return []
    named = (line[41:81] for line in reversed(lines))
    return [oid.decode() for oid in named if _OID.fullmatch(oid) and oid.strip(b"0")]


def _loose(git_dir: Path) -> Iterator[str]:
    for folder in sorted((git_dir / "objects").glob("[0-9a-f][0-9a-f]")):
        for path in sorted(folder.iterdir()):
            if _OID.fullmatch((folder.name + path.name).encode()):
                yield folder.name + path.name


def _remove_damaged(git_dir: Path, oid: str) -> bool:
    try:
        read_loose(loose_path(git_dir, oid), oid)
    except ObjectDamaged:
        loose_path(git_dir, oid).unlink()
        return True
    return False


def _forget(git_dir: Path, commits: list[str]) -> None:
    """Remove commits that are not whole, and what the reflogs say of them; they are made anew."""
    lost = {commit.encode() for commit in commits}
    for commit in commits:
        loose_path(git_dir, commit).unlink(missing_ok=True)
    for log in (git_dir / "logs" / BRANCH, git_dir / "logs" / "HEAD"):
        if lost and log.exists():
            lines = log.read_bytes().splitlines(keepends=True)
            kept = [line for line in lines if not lost & {line[:40], line[41:81]}]
            write_file(log, b"".join(kept))


def _is_whole(repo: pygit2.Repository, commit: str) -> bool:
    """Whether everything that a commit names is there."""
    try:
        return _has_all(repo, repo[commit].peel(pygit2.Tree))
    except (KeyError, ValueError, pygit2.GitError):
        return False


def _has_all(repo: pygit2.Repository, tree: pygit2.Tree) -> bool:
    """Whether every file and directory below a tree is there."""
    return all(
        _has_all(repo, repo[entry.id].peel(pygit2.Tree)) if entry.type_str == "tree" else entry.id in repo
        for entry in tree
    )
