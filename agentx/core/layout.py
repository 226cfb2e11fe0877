"""Locates a workspace and checks its files before a library opens one of them by path.

libgit2, SQLite and LanceDB follow symbolic links, and a clone or a copied directory may contain them. So none
of the engine's own files may be a link, a FIFO or a device. The repository may not send Git elsewhere (a
gitfile, ``commondir``, ``core.worktree``, objects of other repositories). No commit that is taken over may
put a link in such a place.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from agentx.config import FILE as CONFIG
from agentx.core import worktrees
from agentx.core.beside import BESIDE
from agentx.core.cache_dir import CACHE
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.events.types import is_inside
from agentx.storage.files import nofollow
from agentx.storage.files.nofollow import LinkRefused, NotAFile
from agentx.storage.git import local
from agentx.storage.git.checked_reader import ObjectReader
from agentx.storage.git.recovery.git_repair import read_ref
from agentx.storage.git.repository import EXECUTABLE, REGULAR, GitRepository
from agentx.storage.log.blobs import FOLDER as BLOBS
from agentx.storage.log.history import LIVE, ORPHANS, SEGMENTS

ARTIFACTS = "artifacts"
"""Default directory of the artifacts."""

FORMAT = 4
"""Number of the record's format; a workspace with a higher one opens read-only.

Format 2 has fewer statuses of memory items, and format 4 has checks of more kinds. An older one is read
through the upcasters of :mod:`agentx.synthesis.memory.record_codec`, and the first write raises its number.
"""

_DIRECTORIES = (
    ".git",
    ".git/objects",
    ".git/objects/info",
    ".git/objects/pack",
    ".git/info",
    ".git/refs",
    ".git/logs",
    ".git/refs/heads",
    ".git/agentx-swept",
    ARTIFACTS,
    CACHE,
    SEGMENTS,
    BLOBS,
)
_FILES = (
    LIVE,
    CONFIG,
    ORPHANS,
    ".git/HEAD",
    ".git/config",
    ".git/index",
    ".git/index.lock",
    ".git/packed-refs",
    ".git/refs/heads/main",
    ".git/logs/refs/heads/main",
    ".git/info/attributes",
    ".git/info/exclude",
)
"""Besides these, everything in `.git` whose name begins with `agentx` and is not a directory above."""

_LISTED = (".git", ".git/objects", ".git/objects/info", ".git/objects/pack", ".git/info", CACHE, SEGMENTS)
"""Directories whose entries are checked, one level deep."""

_WALKED = (".git/refs", ".git/logs")
"""Directories that are checked recursively."""

_INCLUDE = re.compile(rb"\[\s*include", re.IGNORECASE)
"""Matches anywhere: a section may follow another one, or a byte order mark, on its line."""

_RESERVED = {name.casefold() for name in (ARTIFACTS, CONFIG, CACHE, LIVE, SEGMENTS, ".git")}


class NotAWorkspace(UsageError):
    """A directory is not a workspace."""


class LayoutRefused(AgentXError):
    """A workspace sends the engine to files outside itself."""


def find_root(start: Path) -> Path:
    """Return the workspace at or above a directory, as git finds a repository; or one beside a project there.

    All work trees of a project's repository have the memory that one of them has.

    Raises:
        NotAWorkspace: No workspace was found.
    """
    start = nofollow.canonical(start)
    for folder in (start, *start.parents):
        if is_workspace(folder):
            return folder
        if found := _beside(folder):
            return found
        for other in worktrees.elsewhere(str(start), str(folder)) if nofollow.exists(folder / ".git") else ():
            if found := Path(other) if is_workspace(Path(other)) else _beside(Path(other)):
                return found
    if nofollow.is_directory(start / "objects") and _holds_log(start):
        raise NotAWorkspace(
            f"{start} is a bare repository, such as a backup. Create a workspace from it with "
            f"`git clone {start} DIR`."
        )
    if _holds_log(start / ".git"):
        raise NotAWorkspace(
            f"{start} is a workspace whose files are not checked out. Run "
            f"`git -C {start} checkout main -- .`."
        )
    if nofollow.is_file(start / LIVE):
        raise NotAWorkspace(
            f"{start} contains a {LIVE} but no Git repository. Restore its .git directory from a backup, "
            "or clone the backup."
        )
    raise NotAWorkspace(
        f"{start} is not in a workspace. Create one with `agentx init`, or select one with -C DIR."
    )


def _beside(folder: Path) -> Path | None:
    found = folder / BESIDE
    return found if nofollow.is_directory(found) and is_workspace(found) else None


def _holds_log(git_dir: Path) -> bool:
    """Return whether the branch of a repository holds a log."""
    with contextlib.suppress(AgentXError, OSError):
        reader, head = ObjectReader(git_dir), read_ref(git_dir)
        return bool(head) and reader.entry(reader.commit(head).tree, LIVE) is not None
    return False


def is_workspace(folder: Path) -> bool:
    """Return whether a directory is a workspace.

    It is one if it has a repository and a log; or, if the log was lost, the engine's lock.
    """
    return (nofollow.exists(folder / LIVE) and nofollow.exists(folder / ".git")) or nofollow.is_file(
        folder / ".git" / "agentx.lock"
    )


def artifacts_root(root: Path, artifacts: str) -> Path:
    """Return the directory of a workspace's artifacts.

    Raises:
        UsageError: ``artifacts`` is neither the default nor a directory that contains the workspace.
    """
    if artifacts == ARTIFACTS:
        return root / ARTIFACTS
    place = Path(os.path.normpath(root.absolute() / artifacts))
    if place not in root.absolute().parents:
        raise UsageError(
            "workspace.artifacts must be 'artifacts' or a directory above the workspace such as '..', "
            f"not {artifacts!r}."
        )
    return place


def check(root: Path) -> None:
    """Refuse a workspace in which the engine would work on files outside its own directory.

    The cost does not depend on the number of files and events.

    Args:
        root: Its directory, canonical.

    Raises:
        LinkRefused: One of the engine's files or directories is a symbolic link.
        NotAFile: One of them is a FIFO, a device or a socket.
        LayoutRefused: Its repository, or the repository's objects or working files, are elsewhere.
    """
    if nofollow.is_file(root / ".git"):
        raise LayoutRefused(
            f"{root}/.git is a file that points to another repository (a linked worktree or a submodule). "
            "A workspace needs its own repository; create one with `git clone`."
        )
    own = {f".git/{path.name}" for path in nofollow.listed(root / ".git", "agentx")}
    for name in (*_FILES, *sorted(own.difference(_DIRECTORIES))):
        _require_kind(root / name, directory=False)
    for name in _DIRECTORIES:
        _require_kind(root / name, directory=True)
    for name in _LISTED:
        _check_entries(root / name)
    for name in _WALKED:
        nofollow.require_plain_tree(root / name)
    _check_git(root)


def _require_kind(path: Path, *, directory: bool) -> None:
    """Refuse a link, and a file in place of a directory or the reverse; a missing path is accepted."""
    nofollow.require_plain(path)
    if nofollow.is_file(path) if directory else nofollow.is_directory(path):
        kinds = ("file", "directory") if directory else ("directory", "file")
        raise LayoutRefused(
            f"{path} is a {kinds[0]}, but must be a {kinds[1]}. Move it away, and run `agentx repair`."
        )


def _check_entries(folder: Path) -> None:
    try:
        with nofollow.entries(folder) as found:
            for entry in found:
                if not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)):
                    path = folder / entry.name
                    raise LinkRefused(path) if entry.is_symlink() else NotAFile(path)
    except FileNotFoundError:
        return


def _check_git(root: Path) -> None:
    git_dir = root / ".git"
    if nofollow.exists(git_dir / "commondir"):
        raise LayoutRefused(f"{git_dir}/commondir redirects Git to another repository. Delete that file.")
    for path in (git_dir / "config", git_dir / "config.worktree"):
        _check_config(root, path)
    for place in _outside_alternates(git_dir):
        raise LayoutRefused(
            f"{git_dir}/objects/info/alternates borrows Git objects from {place}, outside the workspace. "
            f"Copy them with `git -C {root} repack -a -d` and delete that file."
        )


def _check_config(root: Path, path: Path) -> None:
    """Refuse a configuration that reads other files, which may be FIFOs, or names other working files."""
    try:
        content = nofollow.read(path)
    except FileNotFoundError:
        return
    if _INCLUDE.search(content):
        raise LayoutRefused(
            f"{path} includes another file. Copy the settings you need into it, and delete its include "
            "sections."
        )
    if why := local.problem(path):
        raise LayoutRefused(f"Git cannot read {path}: {why}. Correct that line, and try again.")
    elsewhere = local.setting(path, "core.worktree")
    if elsewhere and Path(os.path.realpath(path.parent / elsewhere)) != root:
        raise LayoutRefused(
            f"In {path}, core.worktree sets the working tree to {elsewhere!r}. Remove it with "
            f"`git config --file {path} --unset core.worktree`."
        )


def _outside_alternates(git_dir: Path) -> Iterator[str]:
    """Yield directories outside a repository from which it takes objects.

    See gitrepository-layout, ``objects/info/alternates``.
    """
    objects = git_dir / "objects"
    try:
        lines = nofollow.read_text(objects / "info" / "alternates", "replace").splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        place = os.path.realpath(objects / line) if line and not line.startswith("#") else ""
        if place and not Path(place).is_relative_to(git_dir.parent):
            yield place


def check_commit(repo: GitRepository, commit: str, since: str = "") -> None:
    """Refuse a commit in which a path of the engine's is not a plain file or directory.

    Links are for artifacts only.

    Args:
        repo: The repository.
        commit: A commit that somebody else made: cloned, pulled, or made with Git in the workspace.
        since: A commit that was checked; only differences from it are examined.

    Raises:
        LayoutRefused: It contains such a path.
        ObjectDamaged: It cannot be read.
    """
    for path, (_, entry) in repo.diff(repo.tree_of(since), repo.tree_of(commit)).items():
        if entry is not None and (reason := _objection(path, entry.mode)):
            raise LayoutRefused(
                f"Commit {commit[:12]} cannot be used: {path!r} in it {reason}. Undo that commit with "
                "`git revert` or `git reset`, or delete this clone."
            )


def _objection(path: str, mode: int) -> str:
    """Return why a file of a commit is refused; empty if it is accepted."""
    if not is_inside(path):
        return "points outside its directory"
    top, _, below = path.partition("/")
    if top.casefold() in _RESERVED and top not in (ARTIFACTS, CONFIG, LIVE, SEGMENTS):
        return "has a name that is reserved for the engine's caches or for Git"
    if top in (ARTIFACTS, SEGMENTS) and not below:
        return "is not a directory"
    if top in (CONFIG, LIVE) and below:
        return "is in a directory that has the name of a reserved file"
    return "" if top == ARTIFACTS or mode in (REGULAR, EXECUTABLE) else "is a link or a submodule"
