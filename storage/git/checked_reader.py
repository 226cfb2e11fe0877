"""Read Git objects without trusting them: each is inflated within its declared size, and its hash is checked.

libgit2 is not used to read objects: it loops for ever on a truncated loose object, and has no limit on the
inflated size. Missing and damaged objects raise different errors, and both name the object.
"""

import contextlib
import hashlib
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import zip_longest
from pathlib import Path

import msgspec

from agentx.storage import stopping
from agentx.storage.errors import AgentXError
from agentx.storage.files import nofollow
from agentx.storage.git.objects import ObjectDamaged, read_loose
from agentx.storage.git.pack_file import Pack, PackDamaged

_TREE = 0o040000
_SUBMODULE = 0o160000
_ENTRY = re.compile(rb"([0-7]{5,6}) ([^\0]+)\0(.{20})", re.DOTALL)
_TAGGED = re.compile(rb"object ([0-9a-f]{40})\n")
_OID = re.compile("[0-9a-f]{40}")
_SPAN = re.compile("([0-9]{1,18})(?:-([0-9]{1,18}))?")
_LOOSE_FOLDER = re.compile("[0-9a-f]{2}")
_LOOSE_NAME = re.compile("[0-9a-f]{38}")
_TREES_KEPT = 300  # enough for the folders of history/blobs and a few more
_COMMITS_KEPT = 16
_BLOBS_KEPT = 4
_TAGS_FOLLOWED = 10

_NAMES, _COPIES, _DEPTH = 20_000, 10, 520
"""Names that a walk meets at most, whatever is in the trees; how often each may be met beyond; and folders in
one another, of which no path that the engine takes has more."""

OnMissing = Callable[[str, str, ObjectDamaged], None]
"""Called with path, id and problem of each unreadable tree entry; a directory's path ends in a slash."""


class ObjectMissing(ObjectDamaged):
    """A Git object does not exist."""


class TreeTooLarge(AgentXError):
    """A tree names more files than a walk meets: its folders stand in it again and again, or too deep."""


class TreeEntry(msgspec.Struct, frozen=True):
    """A tree's entry for a path: blob id in hex, and Git's file mode (100644, 100755 or 120000, octal)."""

    oid: str
    mode: int


class CommitInfo(msgspec.Struct, frozen=True):
    """The parts of a commit that the user or the engine needs.

    Attributes:
        at: UTC, seconds since 1970.
        committer: Mail address of whoever made the commit object; `git commit --amend` changes it.
        trailers: ``AgentX-…`` trailers of its message.
    """

    id: str
    subject: str
    message: str
    author: str
    committer: str
    at: int
    tree: str
    parents: tuple[str, ...]
    trailers: dict[str, str]

    @property
    def span(self) -> tuple[int, int] | None:
        """First and last event that an engine's commit names; ``None`` for other commits."""
        found = _SPAN.fullmatch(self.trailers.get("AgentX-Event", ""))
        return (int(found[1]), int(found[2] or found[1])) if found else None


class ObjectReader:
    """Reads the objects of one repository.

    Args:
        git_dir: The ``.git`` directory.
        unwritten: Objects that are in no file yet: kind and content by id.
    """

    def __init__(self, git_dir: Path, unwritten: Mapping[str, tuple[str, bytes]] | None = None) -> None:
        self._git_dir = git_dir
        self._unwritten = {} if unwritten is None else unwritten
        objects = git_dir / "objects"
        # Of a shared clone (gitrepository-layout, objects/info/alternates).
        others = (line for line in _lines(objects / "info" / "alternates") if not line.startswith("#"))
        self.folders = [objects, *(objects / line for line in others)]
        self._packs: dict[Path, Pack] = {}
        self._seen: list[int] = []
        self._cut: frozenset[str] = frozenset()
        self.entries = lru_cache(_TREES_KEPT)(self._entries)
        self.commit = lru_cache(_COMMITS_KEPT)(self._commit)
        self.blob = lru_cache(_BLOBS_KEPT)(partial(self._read_as, "blob"))
        self.follow()

    def follow(self) -> bool:
        """Open new packs and close removed ones; return whether anything changed."""
        seen: list[int] = []
        for folder in self.folders:
            try:
                seen.append(nofollow.status(folder / "pack").st_mtime_ns)
            except FileNotFoundError:
                seen.append(0)
        if seen == self._seen:
            return False
        there: dict[Path, Pack] = {}
        for folder in self.folders:
            for path in nofollow.listed(folder / "pack", "pack-", ".idx"):
                with contextlib.suppress(PackDamaged):  # `verify` reports it
                    there[path] = self._packs.get(path) or Pack(path.with_suffix(".pack"))
        self._cut = frozenset(_lines(self._git_dir / "shallow"))
        self._packs, self._seen = there, seen
        for known in (self.entries, self.commit, self.blob):
            known.cache_clear()  # a purge may have removed the objects that they hold
        return True

    def close(self) -> None:
        """Close the packs; a later read opens them again."""
        # Without this they would stay open until the garbage collector finds the cycle with the caches.
        self._packs, self._seen = {}, []
        for known in (self.entries, self.commit, self.blob):
            known.cache_clear()

    def read(self, oid: str) -> tuple[str, bytes]:
        """Return type and content of an object.

        Raises:
            ObjectMissing: It does not exist.
            ObjectTooLarge: It, or the base of its delta, is over the limit for its kind.
            ObjectDamaged: Its content does not match its name.
        """
        if not _OID.fullmatch(oid):
            raise ObjectMissing(f"The Git object {oid!r} is missing.")
        if (unwritten := self._unwritten.get(oid)) is not None:
            return unwritten
        for _ in range(2):  # `git gc` may move it between the loose and the packed look-up
            for folder in self.folders:
                if (found := read_loose(_loose(folder, oid), oid)) is not None:
                    return found
            if (found := self._packed(oid)) is not None or (
                self.follow() and (found := self._packed(oid)) is not None
            ):
                return found
        raise ObjectMissing(f"The Git object {oid} is missing.")

    def _packed(self, oid: str) -> tuple[str, bytes] | None:
        """Return an object from the first pack that holds it intact; see :meth:`read`."""
        problem: ObjectDamaged | None = None
        for pack in list(self._packs.values()):
            try:
                if (found := pack.read(oid)) is None:
                    continue
            except ObjectDamaged as error:
                problem = error
                continue
            digest = hashlib.sha1(f"{found[0]} {len(found[1])}\0".encode(), usedforsecurity=False)
            digest.update(found[1])
            if digest.hexdigest() == oid:
                return found
            problem = ObjectDamaged(
                f"The Git object {oid} is damaged in {pack.path}; `agentx repair` may restore it."
            )
        if problem is not None:
            raise problem
        return None

    def exists(self, oid: str) -> bool:
        """Return whether an object exists, intact or not."""
        if not _OID.fullmatch(oid):
            return False
        if oid in self._unwritten:
            return True
        if any(nofollow.exists(_loose(folder, oid)) for folder in self.folders) or self._is_packed(oid):
            return True
        return self.follow() and self._is_packed(oid)

    def packed(self) -> Iterator[str]:
        """Yield the id of every packed object."""
        self.follow()
        return (oid for pack in list(self._packs.values()) for oid in pack.oids())

    def _is_packed(self, oid: str) -> bool:
        name = bytes.fromhex(oid)
        return any(name in pack for pack in list(self._packs.values()))

    def peel(self, oid: str, kind: str) -> str:
        """Follow tags and commits from an object to a commit or tree.

        Raises:
            ObjectDamaged: It does not lead to one.
        """
        for _ in range(_TAGS_FOLLOWED):
            found, content = self.read(oid)
            if found == kind:
                return oid
            if found == "commit":
                oid = self.commit(oid).tree
            elif found == "tag" and (named := _TAGGED.match(content)):
                oid = named[1].decode()
            else:
                break
        raise ObjectDamaged(f"The Git object {oid} is not a {kind}, and does not lead to one.")

    def full_id(self, prefix: str) -> str:
        """Return the only object whose id begins with a prefix.

        Args:
            prefix: Four hex digits or more.

        Raises:
            ObjectMissing: There is none, or there are several.
        """
        found: set[str] = set()
        if re.fullmatch("[0-9a-f]{4,40}", prefix):
            found |= {oid for oid in list(self._unwritten) if oid.startswith(prefix)}
            self.follow()
            for folder in self.folders:
                names = nofollow.listed(folder / prefix[:2], prefix[2:])
                found |= {prefix[:2] + path.name for path in names if _LOOSE_NAME.fullmatch(path.name)}
            for pack in list(self._packs.values()):
                found |= set(pack.beginning(prefix))
        if len(found) != 1:
            raise ObjectMissing(f"{len(found) or 'No'} Git objects have an id that begins with {prefix!r}.")
        return found.pop()

    def descends(self, commit: str, ancestor: str) -> bool:
        """Return whether a commit descends from another; false if either cannot be read.

        Searches back from both at once. For two commits that are close together this reads few commits, not
        the whole history, whichever is the later one.
        """
        for found, other in zip_longest(self._ancestors(commit), self._ancestors(ancestor)):
            if found == ancestor:
                return self.exists(ancestor)
            if found is None or other == commit:
                return False
        return False

    def _ancestors(self, commit: str) -> Iterator[str]:
        """Yield the ancestors of a commit, nearest first."""
        seen: set[str] = set()
        waiting = deque([commit])
        while waiting:
            try:
                parents = self.commit(waiting.popleft()).parents
            except ObjectDamaged:
                continue
            fresh = [oid for oid in parents if oid not in seen]
            seen.update(fresh)
            waiting.extend(fresh)
            yield from fresh

    def _read_as(self, kind: str, oid: str) -> bytes:
        found, content = self.read(oid)
        if found != kind:
            raise ObjectDamaged(f"The Git object {oid} is a {found}, where a {kind} is named.")
        return content

    def is_cut_off(self, oid: str) -> bool:
        """Return whether a shallow clone ends with a commit, so that its parents are not here."""
        return oid in self._cut

    def _commit(self, oid: str) -> CommitInfo:
        """Return a commit, without parents that a shallow clone lacks; see :meth:`read`."""
        head, _, message = self._read_as("commit", oid).decode("utf-8", "replace").partition("\n\n")
        fields = [line.partition(" ")[::2] for line in head.splitlines()]
        named = dict(fields)
        committer = named.get("committer", "").rpartition("> ")
        at = committer[2].split(" ")[0]
        if not _OID.fullmatch(named.get("tree", "")) or not re.fullmatch("[0-9]{0,18}", at):
            raise ObjectDamaged(f"The Git object {oid} is not a commit that can be read.")
        return CommitInfo(
            id=oid,
            subject=message.partition("\n")[0],
            message=message,
            author=named.get("author", "").partition(" <")[0],
            committer=committer[0].rpartition("<")[2],
            at=int(at or 0),
            tree=named["tree"],
            parents=tuple(value for key, value in fields if key == "parent" and oid not in self._cut),
            trailers={
                key: value
                for key, separator, value in (line.partition(": ") for line in message.splitlines())
                if separator and key.startswith("AgentX-")
            },
        )

    def _entries(self, oid: str) -> dict[str, TreeEntry]:
        """Return all entries of a tree, by name."""
        return {
            name.decode("utf-8", "surrogateescape"): TreeEntry(raw.hex(), int(mode, 8))
            for mode, name, raw in _ENTRY.findall(self._read_as("tree", oid))
        }

    def entry(self, tree: str, path: str) -> TreeEntry | None:
        """Return a tree's entry for a file or directory; see :meth:`read`."""
        found: TreeEntry | None = TreeEntry(tree, _TREE)
        for name in path.split("/"):
            if found is None or found.mode != _TREE:
                return None
            found = self.entries(found.oid).get(name)
        return found

    def compare(
        self, old: str, new: str, on_missing: OnMissing | None = None, prefix: str = ""
    ) -> Iterator[tuple[str, TreeEntry | None, TreeEntry | None]]:
        """Yield files that differ between two trees (empty for none), before and after.

        Shared subtrees are not read.

        Args:
            old: The tree before.
            new: The tree after.
            on_missing: Called with each new tree that cannot be read and each new file that does not exist;
                an old tree that cannot be read counts as empty. By default an unreadable tree raises, and
                files are not looked up.
            prefix: Path of both trees.
        """
        budget = _Budget()
        there: set[str] = set()
        waiting: list[tuple[str, TreeEntry | None, TreeEntry | None]] = [
            (prefix, TreeEntry(old, _TREE) if old else None, TreeEntry(new, _TREE) if new else None)
        ]
        while waiting:
            path, was, now = waiting.pop()
            old_tree = was.oid if was is not None and was.mode == _TREE else ""
            new_tree = now.oid if now is not None and now.mode == _TREE else ""
            if old_tree or new_tree:
                below = self._differing(old_tree, new_tree, on_missing, path)
                budget.spend(old_tree + new_tree, len(below), path)
                for name, one, other in reversed(below):
                    folder = any(entry is not None and entry.mode == _TREE for entry in (one, other))
                    waiting.append((f"{path}{name}/" if folder else path + name, one, other))
            was, now = None if old_tree else was, None if new_tree else now
            if was is None and now is None:
                continue
            path = path.removesuffix("/")
            if on_missing and now and now.mode != _SUBMODULE and now.oid not in there:
                if self.exists(now.oid):
                    there.add(now.oid)
                else:
                    on_missing(path, now.oid, ObjectMissing(f"The Git object {now.oid} is missing."))
            yield path, was, now

    def _differing(
        self, old: str, new: str, on_missing: OnMissing | None, prefix: str
    ) -> list[tuple[str, TreeEntry | None, TreeEntry | None]]:
        """Return the names that differ between two trees, sorted; see :meth:`compare`."""
        before: dict[str, TreeEntry] = {}
        try:
            before = self.entries(old) if old else {}
        except ObjectDamaged:  # what it lacks was reported when it was new
            if on_missing is None:
                raise
        try:
            after = self.entries(new) if new else {}
        except ObjectDamaged as problem:
            if on_missing is None:
                raise
            on_missing(prefix, new, problem)
            return []
        gone, fresh = dict(before.items() - after.items()), dict(after.items() - before.items())
        return [(name, gone.get(name), fresh.get(name)) for name in sorted(gone | fresh)]

    def files(self, tree: str, prefix: str = "") -> Iterator[tuple[str, TreeEntry]]:
        """Yield every file below a tree, with its path; see :meth:`read`.

        Raises:
            TreeTooLarge: It has too many names, or too long ones.
        """
        budget = _Budget()
        waiting = [(prefix, TreeEntry(tree, _TREE))] if tree else []
        while waiting:
            path, entry = waiting.pop()
            if entry.mode != _TREE:
                yield path, entry
                continue
            below = self.entries(entry.oid)
            budget.spend(entry.oid, len(below), path)
            waiting += [
                (f"{path}{name}/" if one.mode == _TREE else path + name, one)
                for name, one in sorted(below.items(), reverse=True)
            ]


class _Budget:
    """What one walk of a tree may meet: the same folders, named again and again, make any number of names."""

    def __init__(self) -> None:
        self._met = self._own = 0
        self._known: set[str] = set()

    def spend(self, tree: str, names: int, path: str) -> None:
        """Count the names of a folder.

        Raises:
            TreeTooLarge: They are too many, or its path is too long.
        """
        stopping.go_on()
        self._met += names
        if tree not in self._known:
            self._known.add(tree)
            self._own += names
        if self._met > _NAMES + _COPIES * self._own:
            raise TreeTooLarge(_REFUSED.format(f"has the same folders again and again, at {path[:60]!r}"))
        if path.count("/") > _DEPTH:
            raise TreeTooLarge(_REFUSED.format(f"is more than {_DEPTH} folders deep, at {path[:60]!r}…"))


_REFUSED = "A commit's tree {}: it is not read, for it would hold every reader up. Remove it with Git."


def _loose(folder: Path, oid: str) -> Path:
    return Path(f"{folder}/{oid[:2]}/{oid[2:]}")  # joining with `/` would take as long as reading the file


def loose_objects(objects: Path, since_ns: int = 0) -> Iterator[tuple[str, Path]]:
    """Yield id and path of every loose object in an objects directory.

    Args:
        objects: The directory.
        since_ns: Only objects whose files changed since then (st_ctime_ns, which no program can set back).
    """
    try:
        folders = nofollow.names(objects)
    except FileNotFoundError:
        return
    for folder in filter(_LOOSE_FOLDER.fullmatch, folders):
        path = f"{objects}/{folder}"  # joining with `/` would take as long as listing it
        try:
            with nofollow.entries(path) as found:
                names = []
                for one in found:
                    with contextlib.suppress(FileNotFoundError):
                        if not since_ns or one.stat(follow_symlinks=False).st_ctime_ns >= since_ns:
                            names.append(one.name)
        except (FileNotFoundError, NotADirectoryError):  # `git gc` removes directories that became empty
            continue
        for name in filter(_LOOSE_NAME.fullmatch, names):
            yield folder + name, Path(f"{path}/{name}")


def _lines(path: Path) -> list[str]:
    try:
        return [line for line in nofollow.read_text(path).splitlines() if line]
    except (OSError, UnicodeDecodeError):
        return []
