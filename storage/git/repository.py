"""The repository: trees changed by path, commits, and the one branch, moved by compare-and-swap.

Nothing here runs the git program, reads the user's Git configuration, or touches the working files. libgit2
reads refs and configuration; objects are read by :mod:`agentx.storage.git.checked_reader`, within limits.
"""

import contextlib
import re
import threading
import time
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pygit2
from pygit2.enums import FileMode

from agentx.storage.errors import AgentXError, DiskRefused
from agentx.storage.files.durable import sync_directory, sync_file
from agentx.storage.git import local, objects, trees
from agentx.storage.git.branch import BRANCH, Branch, Move
from agentx.storage.git.checked_reader import CommitInfo, ObjectMissing, ObjectReader, TreeEntry
from agentx.storage.git.content_journal import LARGEST_BYTES, ContentJournal, write_back
from agentx.storage.git.growing_pack import GrowingPack, release_left

REGULAR = int(FileMode.BLOB)
EXECUTABLE = int(FileMode.BLOB_EXECUTABLE)
LINK = int(FileMode.LINK)
SUBMODULE = int(FileMode.COMMIT)

HOST = ".agentx.invalid"
"""End of every actor's mail address, and of nobody else's (RFC 2606 keeps ``.invalid`` free)."""

TREES_KEPT = 64
"""Number of trees kept in memory."""

UNWRITTEN_BYTES = 16 << 20
"""Objects beyond this much in memory are written at once."""

_TREE = int(FileMode.TREE)
_REVISION = re.compile(r"(.*?)((?:~\d{0,6}|\^\d?)*)", re.DOTALL)
_STEP = re.compile(r"([~^])(\d*)")
_OID = re.compile("[0-9a-f]{40}")

_NOT_IN_A_NAME = "<>\n\0"

_ENGINE = f"agentx <engine@engine{HOST}>"


class NotARepository(AgentXError):
    """The directory has no usable Git repository."""


class NotCommitted(DiskRefused):
    """Git's objects could not be written: a full disk, missing rights. The recorded events are kept."""


class GitRepository:
    """A workspace's repository.

    Args:
        root: The working directory that holds ``.git``.

    Attributes:
        deferring: Whether new commits stay in memory until :meth:`write_deferred`.

    Raises:
        NotARepository: There is none, or libgit2 refuses it.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        try:
            self._repo = pygit2.Repository(str(root / ".git"))
        except pygit2.GitError as error:
            raise NotARepository(_refusal(root, str(error))) from error
        self.git_dir = Path(self._repo.path)
        self.deferring = False
        self._unwritten: dict[str, tuple[str, bytes]] = {}
        self._packed: dict[str, bytes] = {}
        self._unwritten_bytes = 0
        self._moves: list[Move] = []
        self._reader = ObjectReader(self.git_dir, self._unwritten)
        self._branch = Branch(self.git_dir)
        self._unsynced: deque[str] = deque()
        self._syncing = threading.Lock()
        self._contents = ContentJournal(self.git_dir)
        self._synced_contents: set[str] = set()
        self._grown: list[GrowingPack] = []
        self._trees: dict[str, bytes] = {}
        self._tree_of: tuple[str, str] = ("", "")

    @classmethod
    def init(cls, root: Path) -> "GitRepository":
        """Create a repository with the branch ``main`` that keeps files byte for byte."""
        pygit2.init_repository(str(root), initial_head="main")
        local.set_up(root / ".git")
        objects.make_directories(root / ".git")
        return cls(root)

    def follow_packs(self) -> None:
        """Open new packs and close removed ones; while they are open, their disk space is not freed."""
        self._reader.follow()

    def close(self) -> None:
        """Release libgit2's handles, and close the packs."""
        self._contents.close()
        self._reader.close()
        self._repo.free()

    # --- the branch -----------------------------------------------------------------------------------------

    @property
    def head(self) -> str:
        """Id of the commit that the branch names; empty before the first."""
        return self._branch.read()

    @property
    def branch(self) -> str:
        """Full name of the branch that ``HEAD`` names; the commit id if it is detached."""
        return str(self._repo.lookup_reference("HEAD").target)

    def go_back(self) -> bool:
        """Point ``HEAD`` back at the engine's branch after it was switched to a new branch.

        Only done if the new branch is at the engine's latest commit or one of its parents.

        Returns:
            Whether ``HEAD`` was changed; the new branch itself stays.
        """
        main = self.head
        try:
            left = str(self._repo.head.target)
        except pygit2.GitError:
            return False
        if not main or left not in (main, *self.info(main).parents):
            return False
        self._repo.set_head(BRANCH)
        return True

    def move_ref(self, new: str, expected: str, note: str) -> None:
        """Move the branch from one commit to another by compare-and-swap.

        Args:
            new: The commit.
            expected: The commit that the branch must name now; empty for none.
            note: For the reflog, one line.

        Raises:
            WriterConflict: The branch names another commit than ``expected``.
            RefLocked: A git command holds the branch.
            NotCommitted: The branch could not be written.
        """
        with self._writing():
            self._branch.move([Move(expected, new, note)], _ENGINE)

    def move_ref_later(self, new: str, expected: str, note: str) -> None:
        """Leave a move of the branch to :meth:`write_deferred`."""
        self._moves.append(Move(expected, new, note))

    def break_lock(self) -> None:
        """Remove the branch's lock, whoever took it: the machine has restarted since."""
        self._branch.break_lock()

    # --- objects --------------------------------------------------------------------------------------------

    def write_blob(self, content: bytes) -> str:
        """Store a content durably; return its id in hex."""
        return objects.write_blob(self.git_dir, content)

    def stage_blob(self, content: bytes) -> str:
        """Store a content that an event will name; durable after :meth:`sync_contents`. Return its id in hex.

        Raises:
            OSError: It could not be written.
        """
        if len(content) > LARGEST_BYTES or self._contents.full:
            return self.write_blob(content)
        oid, packed = objects.blob_id(content), zlib.compress(content, 1)
        if self._defers(content):
            self._defer(oid, "blob", content)
            self._packed[oid] = packed
        else:
            self._unsynced.append(objects.write_unsynced(self.git_dir, "blob", content))
        self._contents.add(oid, len(content), packed)
        return oid

    def sync_contents(self) -> None:
        """Make durable the contents that were staged; under the workspace's lock.

        Raises:
            OSError: The disk refuses.
        """
        self._contents.sync()

    def write_blob_unsynced(self, content: bytes) -> str:
        """Store a content that can be rebuilt from a file already on disk."""
        with self._writing():
            return self._put("blob", content)

    def read_blob(self, oid: str) -> bytes:
        """Return the content of a blob.

        Raises:
            ObjectDamaged: It does not exist, or does not match its name.
        """
        with self._reading(oid):
            kind, content = self._reader.read(oid)
        if kind != "blob":
            raise objects.ObjectDamaged(f"The Git object {oid} is a {kind}, not a file content.")
        return content

    def has_blob(self, oid: str) -> bool:
        """Return whether a blob can be read intact."""
        try:
            self.read_blob(oid)
        except objects.ObjectDamaged:
            return False
        return True

    # --- trees ----------------------------------------------------------------------------------------------

    def update_tree(self, base: str, changes: Mapping[str, TreeEntry | None]) -> str:
        """Create a tree that differs from ``base`` in some paths; only the directories along them are read.

        Args:
            base: Tree id in hex; empty for the empty tree.
            changes: New entry by path; ``None`` removes it. A directory that becomes empty is removed too.
        """
        nested: _Nested = {}
        for path, entry in changes.items():
            *folders, name = path.split("/")
            level = nested
            for folder in folders:
                below = level.setdefault(folder, {})
                if not isinstance(below, dict):
                    below = level[folder] = {}
                level = below
            level[name] = entry
        with self._writing():
            return self._build(base, nested) or self._put("tree", b"")

    def _build(self, base: str, nested: "_Nested") -> str:
        """Return the new tree's id; empty if the tree is empty. A folder comes after those in it."""
        root = _Level(b"", base, nested)
        order, waiting = list[_Level](), [root]
        while waiting:
            level = waiting.pop()
            order.append(level)
            old = self._raw(level.base) if level.base else b""
            for name, entry in level.nested.items():
                if isinstance(entry, dict):
                    key = name.encode("utf-8", "surrogateescape")
                    found = trees.find(old, key)
                    oid = found.oid if found and found.mode == trees.DIRECTORY else ""
                    level.below[name] = made = _Level(key, oid, entry)
                    # A path below a file does not exist, so there nothing is to be removed.
                    made.is_file = found is not None and not oid
                    waiting.append(made)
        for level in reversed(order):
            level.new = self._built(level)
        return root.new

    def _built(self, level: "_Level") -> str:
        """Return the id of one folder whose own folders are built; empty if it is empty."""
        old = self._raw(level.base) if level.base else b""
        changes: dict[bytes, trees.RawTreeEntry | None] = {}
        for name, entry in level.nested.items():
            if made := level.below.get(name):
                if made.new or not made.is_file:
                    changes[made.name] = trees.RawTreeEntry(trees.DIRECTORY, made.new) if made.new else None
                continue
            assert not isinstance(entry, dict)
            changes[name.encode("utf-8", "surrogateescape")] = (
                trees.RawTreeEntry(b"%o" % entry.mode, entry.oid) if entry is not None else None
            )
        new = trees.edit(old, changes)
        if new == old:
            return level.base
        return self._keep(self._put("tree", new), new) if new else ""

    @contextlib.contextmanager
    def _reading(self, oid: str) -> Iterator[None]:
        try:
            yield
        except ObjectMissing as error:
            raise objects.ObjectDamaged(
                f"The Git object {oid}, or one that it names, is not in {self.root}; "
                "`agentx repair` may restore it."
            ) from error

    def entry(self, tree: str, path: str) -> TreeEntry | None:
        """Return a tree's entry for a file; ``None`` for a missing file."""
        folder, _, name = path.rpartition("/")
        tree = self.subtree(tree, folder)
        found = trees.find(self._raw(tree), name.encode("utf-8", "surrogateescape")) if tree else None
        if found is None or found.mode in (trees.DIRECTORY, trees.SUBMODULE):
            return None
        return TreeEntry(found.oid, int(found.mode, 8))

    def _raw(self, tree: str) -> bytes:
        """Return a tree as bytes; recent ones are cached, because the next write needs them again."""
        known = self._trees.get(tree)
        if known is None:
            with self._reading(tree):
                kind, known = self._reader.read(tree)
            if kind != "tree":
                raise objects.ObjectDamaged(f"The Git object {tree} is a {kind}, not a tree.")
            self._keep(tree, known)
        return known

    def _keep(self, tree: str, content: bytes) -> str:
        self._trees[tree] = content
        if len(self._trees) > TREES_KEPT:
            del self._trees[next(iter(self._trees))]
        return tree

    def subtree(self, tree: str, path: str) -> str:
        """Return the id of a directory in a tree; empty if there is none. ``""`` names the tree itself."""
        for name in path.split("/") if path else ():
            found = trees.find(self._raw(tree), name.encode("utf-8", "surrogateescape")) if tree else None
            tree = found.oid if found is not None and found.mode == trees.DIRECTORY else ""
        return tree

    def around(self, tree: str, path: str) -> tuple[tuple[str, TreeEntry] | None, str]:
        """Return what a tree has in the place of a file's directories, or of the file.

        Returns:
            The file that is recorded under the name of one of its directories, with that name, or ``None``;
            and the id of the directory that is recorded under its own name, or the empty string.
        """
        *folders, last = path.split("/")
        for depth, name in enumerate(folders, start=1):
            found = trees.find(self._raw(tree), name.encode("utf-8", "surrogateescape")) if tree else None
            if found is None or found.mode == trees.SUBMODULE:
                return None, ""
            if found.mode != trees.DIRECTORY:
                return ("/".join(folders[:depth]), TreeEntry(found.oid, int(found.mode, 8))), ""
            tree = found.oid
        return None, self.subtree(tree, last)

    def names(self, tree: str, path: str) -> list[str]:
        """Return the names in a directory of a tree; none for a missing directory."""
        found = self.subtree(tree, path)
        return list(self._reader.entries(found)) if found else []

    def files(self, tree: str, prefix: str = "") -> Iterator[tuple[str, TreeEntry]]:
        """Yield every file below a tree, with its path, in Git's order; no submodules."""
        if not tree:
            return
        with self._reading(tree):
            entries = self._reader.entries(tree)
        for name, entry in entries.items():
            if entry.mode == _TREE:
                yield from self.files(entry.oid, f"{prefix}{name}/")
            elif entry.mode != SUBMODULE:
                yield prefix + name, entry

    def diff(self, old: str, new: str) -> dict[str, tuple[TreeEntry | None, TreeEntry | None]]:
        """Return the files that differ between two trees: before and after, by path.

        Shared subtrees are not read.
        """
        if old == new:
            return {}
        with self._reading(new):
            return {path: (was, now) for path, was, now in self._reader.compare(old, new)}

    # --- commits --------------------------------------------------------------------------------------------

    def commit(self, tree: str, parent: str, message: str, author: tuple[str, str]) -> str:
        """Create a commit object; no ref moves.

        Args:
            tree: Its tree.
            parent: Its parent; empty for the first.
            message: Whole message.
            author: Name and address.
        """
        name, address = ("".join(c for c in part if c not in _NOT_IN_A_NAME) for part in author)
        who = f"{name} <{address}> {int(time.time())} +0000"
        above = f"parent {parent}\n" if parent else ""
        content = f"tree {tree}\n{above}author {who}\ncommitter {who}\n\n" + message.replace("\0", "")
        with self._writing():
            commit = self._put("commit", content.encode("utf-8", "replace"))
        self._tree_of = commit, tree
        return commit

    def _put(self, kind: str, content: bytes) -> str:
        """Write an object that :meth:`sync` makes durable later."""
        if self._defers(content):
            return self._defer(objects.object_id(kind, content), kind, content)
        oid = objects.write_unsynced(self.git_dir, kind, content)
        self._unsynced.append(oid)
        return oid

    def _defers(self, content: bytes) -> bool:
        return self.deferring and self._unwritten_bytes + len(content) <= UNWRITTEN_BYTES

    def _defer(self, oid: str, kind: str, content: bytes) -> str:
        if oid not in self._unwritten:
            self._unwritten[oid] = kind, content
            self._unwritten_bytes += len(content)
        return oid

    @property
    def deferred(self) -> bool:
        """Whether commits or other objects are in memory alone."""
        return bool(self._unwritten or self._moves)

    def write_deferred(self) -> None:
        """Write the commits that are in memory, several as one pack, and move the branch. Nothing is synced.

        Raises:
            WriterConflict: Another writer moved the branch: see :meth:`drop_moves`.
            RefLocked: A git command holds the branch.
            NotCommitted: The disk refuses; everything stays in memory.
        """
        with self._writing():
            # Contents whose event is in no commit yet are no part of a pack: `git repack -a` would drop them.
            pack = self._write_pack() if len(self._moves) > 1 else None
            if pack is None:
                for kind, content in self._unwritten.values():
                    self._unsynced.append(objects.write_unsynced(self.git_dir, kind, content))
            if self._moves:
                self._branch.move(self._moves, _ENGINE)
                self._moves.clear()
            if pack is not None:
                pack.release()
            self._unwritten.clear()
            self._packed.clear()
            self._unwritten_bytes = 0

    def _write_pack(self) -> GrowingPack:
        grown = self._grown
        long = not grown or grown[-1].is_long
        pack = GrowingPack(self.git_dir / "objects" / "pack") if long else grown[-1]
        for oid, (kind, content) in self._unwritten.items():
            pack.add(oid, kind, content, self._packed.get(oid, b""))
        pack.write()
        if pack not in self._grown:  # a new one, or one that another thread has begun to sync
            self._grown.append(pack)
        return pack

    def release_packs(self) -> None:
        """Let Git and the packer merge packs whose writer died; under the workspace's lock."""
        release_left(self.git_dir / "objects" / "pack")

    def drop_moves(self) -> None:
        """Forget the commits that are in memory alone; what they hold is committed again."""
        self._moves.clear()

    @property
    def settled(self) -> bool:
        """Whether every commit created here is written and synced."""
        return not (self._unsynced or self._grown or self.deferred)

    def sync(self) -> None:
        """Sync the commits since the last call: after a power cut they need not be rebuilt from the log.

        Needs no lock; commits made in the meantime are left to the next call.
        """
        with self._writing(), self._syncing:
            grown, self._grown = self._grown, []  # what was synced is not replaced any more
            oids = [self._unsynced.popleft() for _ in range(len(self._unsynced))]
            try:
                objects.sync_loose(self.git_dir, oids)
                _sync_packs(grown)
                self._branch.sync()
            except BaseException:
                self._unsynced.extendleft(oids)
                self._grown = grown + self._grown
                raise
            self._synced_contents.update(oids)
            for pack in grown:
                self._synced_contents.update(pack.oids)

    def write_contents_back(self, oids: Iterable[str]) -> None:
        """Write blobs that Git lacks from the content journal: their writer died before it wrote them."""
        if lacking := {oid for oid in oids if not self._reader.exists(oid)}:
            with self._writing():
                write_back(self.git_dir, lacking)

    def settle_contents(self) -> None:
        """Empty the content journal, after :meth:`sync`: its contents are durable as blobs.

        The caller holds the workspace's lock.
        """
        with self._writing(), self._syncing:
            self._contents.empty(self._synced_contents)
            self._synced_contents.clear()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except (pygit2.GitError, OSError) as error:
            raise NotCommitted(
                f"{self.git_dir} could not be written ({error}). "
                "What was recorded is kept, and is committed next time."
            ) from error

    def info(self, commit: str) -> CommitInfo:
        """Read a commit.

        Raises:
            ObjectDamaged: The commit does not exist.
        """
        try:
            return self._reader.commit(self._reader.peel(commit, "commit"))
        except ObjectMissing as error:
            raise objects.ObjectDamaged(f"The commit {commit} is missing in {self.root}.") from error

    def resolve(self, revision: str) -> str:
        """Resolve a revision given by the user to a commit id.

        A revision is an id or its beginning, or a ref, with an optional ``~2`` or ``^`` after it.

        Raises:
            ObjectDamaged: The commit does not exist.
        """
        name, steps = _REVISION.fullmatch(revision).groups()  # type: ignore[union-attr]  # matches any text
        oid = name if _OID.fullmatch(name) else ""
        if not oid and "\0" not in name:  # libgit2 would stop reading at the NUL
            with contextlib.suppress(KeyError, ValueError, pygit2.GitError):
                oid = str(self._repo.lookup_reference_dwim(name).resolve().target)
        oid = self._reader.peel(oid or self._reader.full_id(name), "commit")
        for kind, number in _STEP.findall(steps):
            for place in [1] * int(number or 1) if kind == "~" else [int(number or 1)]:
                parents = (oid, *self._reader.commit(oid).parents)
                if place >= len(parents):
                    raise objects.ObjectDamaged(f"The commit {revision} is missing in {self.root}.")
                oid = parents[place]
        return oid

    def has_commit(self, commit: str) -> bool:
        """Return whether a commit exists."""
        return self._reader.exists(commit)

    def log(self, start: str = "") -> Iterator[CommitInfo]:
        """Yield commits from the branch (or from ``start``) back, along first parents; read one by one."""
        commit = start or (self._moves[-1].new if self._moves else self.head)
        while commit:
            try:
                info = self._reader.commit(commit)
            except ObjectMissing:  # a shallow clone ends here
                return
            yield info
            commit = info.parents[0] if info.parents else ""

    def moves(self, limit: int) -> list[Move]:
        """Return the latest moves of the branch, newest first."""
        return self._branch.moves(limit)

    def descends(self, commit: str, ancestor: str) -> bool:
        """Return whether a commit descends from another; false if either is unknown."""
        return self._reader.descends(commit, ancestor)

    def stashes(self) -> list[str]:
        """Return the commits of ``git stash``, oldest first."""
        try:
            log = self._repo.references["refs/stash"].log()
        except KeyError:
            return []
        return [str(entry.oid_new) for entry in log][::-1]

    def tree_of(self, commit: str) -> str:
        """Return the tree of a commit; empty for no commit."""
        if commit and commit != self._tree_of[0]:
            with self._reading(commit):
                self._tree_of = commit, self._reader.peel(commit, "tree")
        return self._tree_of[1] if commit else ""


def _sync_packs(packs: Iterable[GrowingPack]) -> None:
    """Sync packs and their names; one that a longer one replaced meanwhile is left out."""
    folder = None
    for path in [pack.path for pack in packs if pack.path]:
        for name in (path, path.with_suffix(".idx")):
            with contextlib.suppress(FileNotFoundError):
                sync_file(name)
                folder = path.parent
    if folder is not None:
        sync_directory(folder)


_Nested = dict[str, "TreeEntry | _Nested | None"]


class _Level:
    """One folder of a tree that is built: its name, its tree before, what changes, and its tree after."""

    def __init__(self, name: bytes, base: str, nested: _Nested) -> None:
        self.name, self.base, self.nested = name, base, nested
        self.below: dict[str, _Level] = {}
        self.is_file = False
        self.new = ""


def _refusal(root: Path, reason: str) -> str:
    if "owner" in reason:
        return (
            f"{root} belongs to another user, so Git refuses it. Run as that user, or allow it with "
            f"`git config --global --add safe.directory {root}`."
        )
    return (
        f"{root} has no Git repository that can be opened: {reason}. "
        f"Undo the last change to {root}/.git, or clone a backup."
    )
