"""Commits made anew without some content: the one place where history is rewritten, for a purge and nothing else.

Every commit is looked at, parents first; one in which nothing changes keeps its id, and what descends from one that was
made anew is made anew. Author, committer and times stay. What stands in many trees is looked at once.
"""

import hashlib
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from agentx.storage.git import trees
from agentx.storage.git.checked_reader import ObjectReader
from agentx.storage.git.objects import ObjectDamaged
from agentx.storage.git.pack_file import KINDS, PackWriter

EditFile = Callable[[str, str, Callable[[], bytes]], bytes | str]
"""Given path and id of a file, and a function that reads it: its new content, its id where it stays, or ``""`` where it goes.

What it says depends on nothing but the id and the first two folders of the path.
"""

EditMessage = Callable[[bytes], bytes]
"""Given a commit's message: the new one, or the same."""

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""

_ROW = re.compile(rb"([0-7]+) ([^\0]+)\0(.{20})", re.DOTALL)
_SIGNATURES = re.compile(rb"\n(?:gpgsig|gpgsig-sha256|mergetag) [^\n]*(?:\n [^\n]*)*")
_PARENT = re.compile(rb"(?<=\nparent )[0-9a-f]{40}")
_TREE = re.compile(rb"^tree [0-9a-f]{40}")
_SUBMODULE = b"160000"

_Row = tuple[bytes, bytes, bytes]


class Rewriter:
    """Makes commits of one repository anew.

    Args:
        git_dir: The ``.git`` directory.
        edit_file: What becomes of each file.
        edit_message: What becomes of each message.
        write: Whether the new objects are written; without it, it only shows which commits would be made anew.
    """

    def __init__(
        self, git_dir: Path, edit_file: EditFile, edit_message: EditMessage, *, write: bool = True
    ) -> None:
        self._git_dir = git_dir
        self._reader = ObjectReader(git_dir)
        self._edit_file = edit_file
        self._edit_message = edit_message
        self._folder = git_dir / "objects" / "pack"
        self._writer: PackWriter | None = None
        self._writes = write
        self._commits: dict[str, str] = {}
        self._trees: dict[tuple[str, str], str] = {}
        self._files: dict[tuple[str, str], str] = {}
        self._clean: dict[str, set[_Row]] = {}

    def rewrite(self, tips: Sequence[str], progress: Progress) -> dict[str, str]:
        """Make everything that some commits lead to anew.

        Args:
            tips: Ids in hex.
            progress: Told how far it is.

        Returns:
            The new commit by each of them; the same where nothing in it changes.

        Raises:
            ObjectDamaged: Something cannot be read.
            OSError: The disk refuses; nothing is visible of what was written.
        """
        try:
            for tip in tips:
                self._rewrite(tip, progress)
            if self._writer is not None:
                self._writer.finish()
        except ObjectDamaged as error:
            self._discard()
            raise ObjectDamaged(f"The commits of {self._git_dir} cannot all be read: {error}") from error
        except BaseException:
            self._discard()
            raise
        return {tip: self._commits[tip] for tip in tips}

    def _discard(self) -> None:
        if self._writer is not None:
            self._writer.discard()

    def _rewrite(self, tip: str, progress: Progress) -> None:
        ahead = list(self._parents_first(tip))
        for number, oid in enumerate(ahead, start=1):
            self._commits[oid] = self._commit(oid)
            if not number % 100 or number == len(ahead):
                progress("Making commits anew", number, len(ahead))

    def _parents_first(self, tip: str) -> Iterator[str]:
        """Every commit that was not made anew yet, behind its parents."""
        waiting, entered, done = [tip], set[str](), set(self._commits)
        while waiting:
            oid = waiting[-1]
            if oid in done or oid in entered:
                waiting.pop()
                if oid not in done:
                    done.add(oid)
                    yield oid
                continue
            entered.add(oid)
            waiting += (parent for parent in self._reader.commit(oid).parents if parent not in done)

    def _commit(self, oid: str) -> str:
        old = self._read(oid)
        head, _, message = old.partition(b"\n\n")
        tree = self._tree(head[5:45].decode(), "") or self._put("tree", b"")
        made = _TREE.sub(b"tree " + tree.encode(), head)
        made = _PARENT.sub(lambda found: self._commits[found[0].decode()].encode(), made)
        told = self._edit_message(message)
        if made == head and told == message:
            return oid
        return self._put("commit", _SIGNATURES.sub(b"", made) + b"\n\n" + told)

    def _tree(self, oid: str, folder: str) -> str:
        """The tree's new id; empty where nothing is left in it."""
        zone = "/".join(folder.split("/")[:2])
        known = self._trees.get((zone, oid))
        if known is not None:
            return known
        old, clean = self._read(oid), self._clean.setdefault(zone, set())
        changes: dict[bytes, trees.Entry | None] = {}
        rows: list[_Row] = _ROW.findall(old)
        for row in rows:
            if row in clean:
                continue
            mode, name, raw = row
            new = self._entry(mode, folder + name.decode("utf-8", "surrogateescape"), raw.hex())
            if new == raw.hex():
                clean.add(row)
            else:
                changes[name] = trees.Entry(mode, new) if new else None
        made = oid
        if changes:
            content = trees.edit(old, changes)
            made = self._put("tree", content) if content else ""
        self._trees[zone, oid] = made
        return made

    def _entry(self, mode: bytes, path: str, oid: str) -> str:
        if mode == _SUBMODULE:
            return oid
        if mode == trees.DIRECTORY:
            return self._tree(oid, path + "/")
        zone = path if "/" not in path else "/".join(path.split("/")[:2])
        known = self._files.get((zone, oid))
        if known is None:
            made = self._edit_file(path, oid, lambda: self._read(oid))
            known = self._files[zone, oid] = made if isinstance(made, str) else self._put("blob", made)
        return known

    def _read(self, oid: str) -> bytes:
        return self._reader.read(oid)[1]

    def _put(self, kind: str, content: bytes) -> str:
        name = hashlib.sha1(b"%s %d\0" % (kind.encode(), len(content)) + content, usedforsecurity=False)
        if self._writes:
            if self._writer is None:
                self._writer = PackWriter(self._folder)
            if name.digest() not in self._writer.offsets:
                self._writer.add(name.digest(), KINDS[kind], len(content), zlib.compress(content, 1))
        return name.hexdigest()
