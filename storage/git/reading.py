"""Git objects read without trust: a loose one is inflated and hashed here, and libgit2 sees the packs alone.

For looking at a repository that may be damaged: libgit2 spins for ever on a loose object that is truncated. What is
missing and what is damaged is told apart, and named.
"""

import os
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

import pygit2

from agentx.storage import nofollow
from agentx.storage.git.objects import ObjectDamaged, read_loose
from agentx.storage.git.repository import CommitInfo, TreeEntry

_TYPES = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_TREE = 0o040000
_SUBMODULE = 0o160000
_ENTRY = re.compile(rb"([0-7]{5,6}) ([^\0]+)\0(.{20})", re.DOTALL)
_LOOSE_FOLDER = re.compile("[0-9a-f]{2}")
_LOOSE_NAME = re.compile("[0-9a-f]{38}")
_TREES_KEPT = 300  # the folders of history/blobs, and some
_COMMITS_KEPT = 16
_BLOBS_KEPT = 4

OnMissing = Callable[[str, str, ObjectDamaged], None]
"""Told path and id of what a tree names and cannot be read, and why; the path of a directory ends in a slash."""


class ObjectMissing(ObjectDamaged):
    """A Git object is not there."""


class ObjectReader:
    """Reads the objects of one repository.

    Args:
        git_dir: The ``.git`` directory.
    """

    def __init__(self, git_dir: Path) -> None:
        self.folders = [git_dir / "objects", *_alternates(git_dir / "objects")]
        self._cut = frozenset(_lines(git_dir / "shallow"))
        self._packs = pygit2.Odb()
        for folder in self.folders:
            if nofollow.is_directory(folder / "pack"):  # libgit2 takes no other
                self._packs.add_backend(pygit2.OdbBackendPack(str(folder)), 1)
        self.entries = lru_cache(_TREES_KEPT)(self._entries)
        self.commit = lru_cache(_COMMITS_KEPT)(self._commit)
        self.blob = lru_cache(_BLOBS_KEPT)(self._blob)

    def read(self, oid: str) -> tuple[str, bytes]:
        """Type and content of an object.

        Raises:
            ObjectMissing: It is nowhere.
            ObjectDamaged: It is not what its name says.
        """
        for _ in range(2):  # `git gc` may move it between the two looks
            for folder in self.folders:
                if (found := read_loose(_loose(folder, oid), oid)) is not None:
                    return found
            try:
                kind, content = self._packs.read(oid)
            except KeyError:
                continue
            except (pygit2.GitError, ValueError) as error:
                raise ObjectDamaged(f"The Git object {oid} is damaged in its pack: {error}.") from error
            return _TYPES.get(kind, "unknown"), bytes(content)
        raise ObjectMissing(f"The Git object {oid} is missing.")

    def exists(self, oid: str) -> bool:
        """Whether an object is there, whole or not."""
        return any(nofollow.exists(_loose(folder, oid)) for folder in self.folders) or self._is_packed(oid)

    def packed(self) -> Iterator[str]:
        """Id of every object in a pack."""
        return (str(oid) for oid in self._packs)

    def _is_packed(self, oid: str) -> bool:
        return bool(self._packs.exists(oid))

    def _blob(self, oid: str) -> bytes:
        """The content of a blob; see :meth:`read`."""
        return self._read_as("blob", oid)

    def _read_as(self, kind: str, oid: str) -> bytes:
        found, content = self.read(oid)
        if found != kind:
            raise ObjectDamaged(f"The Git object {oid} is a {found}, where a {kind} is named.")
        return content

    def _commit(self, oid: str) -> CommitInfo:
        """A commit, without parents that a shallow clone lacks; see :meth:`read`."""
        head, _, message = self._read_as("commit", oid).decode("utf-8", "replace").partition("\n\n")
        fields = [line.partition(" ")[::2] for line in head.splitlines()]
        named = dict(fields)
        committer = named.get("committer", "").rpartition("> ")
        if "tree" not in named:
            raise ObjectDamaged(f"The Git object {oid} is no commit that can be read.")
        return CommitInfo(
            id=oid,
            subject=message.partition("\n")[0],
            message=message,
            author=named.get("author", "").partition(" <")[0],
            committer=committer[0].rpartition("<")[2],
            at=int(committer[2].split(" ")[0] or 0),
            tree=named["tree"],
            parents=tuple(value for key, value in fields if key == "parent" and oid not in self._cut),
            trailers={
                key: value
                for key, separator, value in (line.partition(": ") for line in message.splitlines())
                if separator and key.startswith("AgentX-")
            },
        )

    def _entries(self, oid: str) -> dict[str, TreeEntry]:
        """Everything in a tree, by name."""
        return {
            name.decode("utf-8", "surrogateescape"): TreeEntry(raw.hex(), int(mode, 8))
            for mode, name, raw in _ENTRY.findall(self._read_as("tree", oid))
        }

    def entry(self, tree: str, path: str) -> TreeEntry | None:
        """What a tree says of a file or directory; see :meth:`read`."""
        found: TreeEntry | None = TreeEntry(tree, _TREE)
        for name in path.split("/"):
            if found is None or found.mode != _TREE:
                return None
            found = self.entries(found.oid).get(name)
        return found

    def compare(
        self, old: str, new: str, on_missing: OnMissing, prefix: str = ""
    ) -> Iterator[tuple[str, TreeEntry | None, TreeEntry | None]]:
        """Files that differ between two trees (empty for none), before and after; what they share is not read.

        Everything that is new is looked for: trees are read, of files it is asked whether they exist.
        """
        before = self._known(old)
        after = self._wanted(new, on_missing, prefix)
        if after is None:
            return
        gone, fresh = dict(before.items() - after.items()), dict(after.items() - before.items())
        for name in sorted(gone.keys() | fresh.keys()):
            yield from self._differing(prefix + name, gone.get(name), fresh.get(name), on_missing)

    def _differing(
        self, path: str, old: TreeEntry | None, new: TreeEntry | None, on_missing: OnMissing
    ) -> Iterator[tuple[str, TreeEntry | None, TreeEntry | None]]:
        old_tree = old.oid if old is not None and old.mode == _TREE else ""
        new_tree = new.oid if new is not None and new.mode == _TREE else ""
        if old_tree or new_tree:
            yield from self.compare(old_tree, new_tree, on_missing, f"{path}/")
        before, after = None if old_tree else old, None if new_tree else new
        if after is not None and after.mode != _SUBMODULE and not self.exists(after.oid):
            on_missing(path, after.oid, ObjectMissing(f"The Git object {after.oid} is missing."))
        if before is not None or after is not None:
            yield path, before, after

    def _known(self, tree: str) -> dict[str, TreeEntry]:
        """What was there before, as far as it can be read: what it lacks is told where it was new."""
        try:
            return self.entries(tree) if tree else {}
        except ObjectDamaged:
            return {}

    def _wanted(self, tree: str, on_missing: OnMissing, path: str) -> dict[str, TreeEntry] | None:
        try:
            return self.entries(tree) if tree else {}
        except ObjectDamaged as problem:
            on_missing(path, tree, problem)
            return None

    def files(self, tree: str, prefix: str = "") -> Iterator[tuple[str, TreeEntry]]:
        """Every file below a tree, with its path; see :meth:`read`."""
        for name, entry in sorted(self.entries(tree).items()) if tree else ():
            if entry.mode == _TREE:
                yield from self.files(entry.oid, f"{prefix}{name}/")
            else:
                yield prefix + name, entry


def _loose(folder: Path, oid: str) -> Path:
    return Path(f"{folder}/{oid[:2]}/{oid[2:]}")  # put together by `/` it would take as long as reading it


def loose_objects(objects: Path, since_ns: int = 0) -> Iterator[tuple[str, Path]]:
    """Id and path of every loose object in an objects directory.

    Args:
        objects: The directory.
        since_ns: Only of those whose files changed since then (st_ctime_ns, which no program can set back).
    """
    try:
        folders = nofollow.names(objects)
    except FileNotFoundError:
        return
    for folder in filter(_LOOSE_FOLDER.fullmatch, folders):
        try:
            with nofollow.entries(objects / folder) as found:
                names = [one.name for one in found if not since_ns or _changed_ns(one) >= since_ns]
        except (FileNotFoundError, NotADirectoryError):  # `git gc` removes directories that became empty
            continue
        for name in filter(_LOOSE_NAME.fullmatch, names):
            yield folder + name, objects / folder / name


def _changed_ns(found: os.DirEntry[str]) -> int:
    try:
        return found.stat(follow_symlinks=False).st_ctime_ns
    except FileNotFoundError:
        return 0


def _alternates(objects: Path) -> list[Path]:
    """Where else objects lie: of a clone that shares them (gitrepository-layout, objects/info/alternates)."""
    return [objects / line for line in _lines(objects / "info" / "alternates") if not line.startswith("#")]


def _lines(path: Path) -> list[str]:
    try:
        return [line for line in nofollow.read_text(path).splitlines() if line]
    except (OSError, UnicodeDecodeError):
        return []
