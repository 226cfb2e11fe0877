"""Git objects from one repository into another, as one pack, synced: what is reachable and not there already."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pygit2
from pygit2.enums import DeltaStatus, ObjectType, SortMode

from agentx.storage.durable import sync_directory
from agentx.storage.git.objects import ObjectDamaged


def reachable(git_dir: Path, commit: str, known: str = "") -> list[str]:
    """Every object that a commit leads to and another does not, each once.

    Args:
        git_dir: The repository.
        commit: Where to begin.
        known: A commit of the same repository whose objects are left out; empty for none.

    Returns:
        Ids in hex. Some that ``known`` leads to may be among them.

    Raises:
        ObjectDamaged: Something that is reachable is not there.
    """
    repo = pygit2.Repository(str(git_dir))
    found: dict[str, None] = {}
    try:
        walk = repo.walk(pygit2.Oid(hex=commit), SortMode.TOPOLOGICAL | SortMode.REVERSE)
        if known:
            walk.hide(pygit2.Oid(hex=known))
        for one in walk:
            found[str(one.id)] = None
            found |= dict.fromkeys(_fresh(one, found))
        missing = next((oid for oid in found if oid not in repo), "")
    except (KeyError, ValueError, pygit2.GitError) as error:
        raise ObjectDamaged(
            f"{git_dir} does not hold all that the commit {commit} leads to: {error}."
        ) from error
    finally:
        repo.free()
    if missing:
        raise ObjectDamaged(
            f"{git_dir} does not hold the object {missing}, which the commit {commit} leads to."
        )
    return list(found)


def _fresh(commit: pygit2.Commit, found: Iterable[str]) -> Iterator[str]:
    """The trees and blobs of a commit that its first parent has not."""
    tree = commit.tree
    if not commit.parents:
        yield from _whole(tree)
        return
    folders: set[str] = {""}
    for change in tree.diff_to_tree(commit.parents[0].tree, context_lines=0, swap=True).deltas:
        path = change.new_file.path or change.old_file.path
        folders |= {path[:end] for end, letter in enumerate(path) if letter == "/"}
        if change.status != DeltaStatus.DELETED:
            yield str(change.new_file.id)
    for folder in folders:
        try:
            below = tree[folder] if folder else tree
        except KeyError:
            continue  # it went with its last file
        if below.type == ObjectType.TREE and str(below.id) not in found:
            yield str(below.id)


def _whole(tree: pygit2.Tree) -> Iterator[str]:
    yield str(tree.id)
    for entry in tree:
        if isinstance(entry, pygit2.Tree):
            yield from _whole(entry)
        elif entry.type == ObjectType.BLOB:
            yield str(entry.id)


def copy(source: Path, target: Path, objects: Iterable[str]) -> None:
    """Write objects of one repository into another, as one pack that has reached the disk.

    Args:
        source: Git directory that has them.
        target: Git directory that is to have them.
        objects: Ids in hex.

    Raises:
        ObjectDamaged: One cannot be read.
        OSError: The pack could not be written.
    """
    wanted = list(objects)
    if not wanted:
        return
    folder = target / "objects" / "pack"
    folder.mkdir(parents=True, exist_ok=True)
    before = set(os.listdir(folder))
    repo = pygit2.Repository(str(source))
    try:
        builder = pygit2.PackBuilder(repo)
        for oid in wanted:
            builder.add(pygit2.Oid(hex=oid))
        builder.write(str(folder))
    except (KeyError, ValueError, pygit2.GitError) as error:
        raise ObjectDamaged(f"The objects of {source} could not be copied: {error}.") from error
    finally:
        repo.free()
    for name in sorted(set(os.listdir(folder)) - before):
        _sync(folder / name)
    sync_directory(folder)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
