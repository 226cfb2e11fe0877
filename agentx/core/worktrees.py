"""The work trees of a Git repository, and which place of one is which of another.

A work tree names its repository in a file `.git`, and anybody can write such a file, or a repository that
lists the directories of others. So a work tree belongs to a repository only if each names the other. No link
leads to a work tree, and what a repository says about where it belongs (``commondir``) is not read: it is
where its directory is. See gitrepository-layout, ``worktrees``.

Loads nothing, because each hook of a host reads it.
"""

import os

TYPE_CHECKING = False  # `typing` would be loaded for it
if TYPE_CHECKING:
    from collections.abc import Iterator

_KIND, _REGULAR, _DIRECTORY = 0o170000, 0o100000, 0o040000
_MOST = 8_192
"""Bytes of a file that names a directory."""

_MOST_TREES = 1_000
_GITDIR = b"gitdir: "


def is_file(path: str) -> bool:
    """Return whether a path is a regular file and no link; the directories above it are not looked at."""
    return _kind(path) == _REGULAR


def is_directory(path: str) -> bool:
    """Return whether a path is a directory and no link; those above it are not looked at."""
    return _kind(path) == _DIRECTORY


def repository_of(folder: str) -> str:
    """Return the directory of the repository whose work tree a directory is; empty if it is none.

    Args:
        folder: The directory, absolute and without links.
    """
    own = f"{folder}/.git"
    if is_directory(own):
        return own
    entry = _entry_of(folder)
    if not (entry and is_directory(entry)) or _named(f"{entry}/gitdir", entry) != own:
        return ""
    return os.path.dirname(os.path.dirname(entry))


def work_trees(repository: str) -> "list[str]":
    """Return the work trees of a repository, the main one first.

    Args:
        repository: As :func:`repository_of` returns it.
    """
    above, name = os.path.split(repository)
    found = [above] if name == ".git" and is_directory(repository) else []
    if not is_directory(f"{repository}/worktrees"):
        return found
    try:
        names = sorted(os.listdir(f"{repository}/worktrees"))[:_MOST_TREES]
    except OSError:
        return found
    for one in names:
        entry = f"{repository}/worktrees/{one}"
        tree, end = os.path.split(_named(f"{entry}/gitdir", entry)) if is_directory(entry) else ("", "")
        if tree and end == ".git" and _entry_of(tree) == entry:
            found.append(tree)
    return found


def elsewhere(start: str, top: str) -> "Iterator[str]":
    """Yield where a memory may be in the other work trees: at the same place, and in those above it.

    Args:
        start: A directory, absolute and without links.
        top: The work tree that it is in.
    """
    repository = repository_of(top)
    for tree in work_trees(repository) if repository else ():
        folder = tree + start[len(top) :]
        while tree != top:
            if os.path.realpath(folder) == folder:  # a link in it would lead to another project
                yield folder
            if folder == tree:
                break
            folder = os.path.dirname(folder)


def top_of(path: str) -> str:
    """Return the work tree that a path is in; empty if it is in none."""
    while True:
        if os.path.lexists(f"{path}/.git"):
            return path
        above = os.path.dirname(path)
        if above == path:
            return ""
        path = above


def moved(path: str, home: str) -> str:
    """Return the same place in the work tree of a directory, for a path in another one of its repository.

    Args:
        path: Absolute and normalised; it need not exist.
        home: The directory, absolute and without links.

    Returns:
        The place, or an empty text if the path is in the same work tree or in none of that repository.
    """
    top = top_of(home)
    repository = repository_of(top) if top else ""
    if not repository or not is_directory(f"{repository}/worktrees"):
        return ""
    for place in dict.fromkeys((path, os.path.realpath(path))):
        tree = top_of(place)
        while tree and tree != top:  # one in it may be another repository, which says nothing about it
            if repository_of(tree) == repository:
                return top + place[len(tree) :]
            above = os.path.dirname(tree)
            tree = top_of(above) if above != tree else ""
    return ""


def _entry_of(folder: str) -> str:
    """Return the directory that a work tree's file `.git` names among those of a repository; else empty."""
    entry = _named(f"{folder}/.git", folder, _GITDIR)
    return entry if entry and os.path.basename(os.path.dirname(entry)) == "worktrees" else ""


def _named(file: str, folder: str, begin: bytes = b"") -> str:
    """Return the path in a file, absolute and with the links above its last name resolved; or empty."""
    try:
        opened = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return ""
    try:
        if os.fstat(opened).st_mode & _KIND != _REGULAR:
            return ""
        content = os.read(opened, _MOST)
    except OSError:
        return ""
    finally:
        os.close(opened)
    named = content[len(begin) :].rstrip(b"\r\n")
    if not content.startswith(begin) or not named or b"\0" in named or len(content) == _MOST:
        return ""
    above, name = os.path.split(os.path.normpath(os.path.join(folder, os.fsdecode(named))))
    return os.path.join(os.path.realpath(above), name)


def _kind(path: str) -> int:
    try:
        return os.lstat(path).st_mode & _KIND
    except (OSError, ValueError):
        return 0
