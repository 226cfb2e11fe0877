"""Rewrite commits without some content.

This is the only place where history is rewritten, and only for a purge.

Every commit is visited, parents first. A commit in which nothing changes keeps its id; descendants of a
rewritten commit are rewritten. Author, committer and times stay. Objects shared by many trees are processed
once.
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
from agentx.storage.progress import Progress

EditFile = Callable[[str, str, Callable[[], bytes]], bytes | str]
"""Called with path and id of a file, and a function that reads it.

Returns the new content, the id if the file stays, or ``""`` to remove it. The result may depend only on the
id and the first two folders of the path.
"""

EditMessage = Callable[[bytes], bytes]
"""Called with a commit's message; returns the new one, or the same."""

_ROW = re.compile(rb"([0-7]+) ([^\0]+)\0(.{20})", re.DOTALL)
_SIGNATURES = re.compile(rb"\n(?:gpgsig|gpgsig-sha256|mergetag) [^\n]*(?:\n [^\n]*)*")
_PARENT = re.compile(rb"(?<=\nparent )[0-9a-f]{40}")
_TREE = re.compile(rb"^tree [0-9a-f]{40}")
_SUBMODULE = b"160000"

_Row = tuple[bytes, bytes, bytes]


class Rewriter:
    """Rewrites commits of one repository.

    Args:
        git_dir: The ``.git`` directory.
        edit_file: Edits each file.
        edit_message: Edits each message.
        write: Whether to write the new objects; otherwise a dry run shows which commits would be rewritten.
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
        """Rewrite everything reachable from some commits.

        Args:
            tips: Ids in hex.
            progress: Called with the progress.

        Returns:
            The new commit for each of them; the same if nothing in it changes.

        Raises:
            ObjectDamaged: Something cannot be read.
            OSError: The new objects could not be written; none of them is visible.
        """
        try:
            for tip in tips:
                ahead = list(self._parents_first(tip))
                for number, oid in enumerate(ahead, start=1):
                    self._commits[oid] = self._commit(oid)
                    if not number % 100 or number == len(ahead):
                        progress("Rewriting commits", number, len(ahead))
            if self._writer is not None:
                self._writer.finish()
        except BaseException as error:
            if self._writer is not None:
                self._writer.discard()
            if isinstance(error, ObjectDamaged):
                raise ObjectDamaged(f"The commits of {self._git_dir} cannot all be read: {error}") from error
            raise
        return {tip: self._commits[tip] for tip in tips}

    def _parents_first(self, tip: str) -> Iterator[str]:
        """Yield every commit that was not rewritten yet, after its parents."""
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
        old = self._reader.read(oid)[1]
        head, _, message = old.partition(b"\n\n")
        tree = self._tree(head[5:45].decode(), "") or self._put("tree", b"")
        made = _TREE.sub(b"tree " + tree.encode(), head)
        made = _PARENT.sub(lambda found: self._commits[found[0].decode()].encode(), made)
        told = self._edit_message(message)
        if made == head and told == message:
            return oid
        return self._put("commit", _SIGNATURES.sub(b"", made) + b"\n\n" + told)

    def _tree(self, oid: str, folder: str) -> str:
        """Return the tree's new id; empty if the tree is empty."""
        zone = "/".join(folder.split("/")[:2])
        known = self._trees.get((zone, oid))
        if known is not None:
            return known
        old, clean = self._reader.read(oid)[1], self._clean.setdefault(zone, set())
        changes: dict[bytes, trees.RawTreeEntry | None] = {}
        rows: list[_Row] = _ROW.findall(old)
        for row in rows:
            if row in clean:
                continue
            mode, name, raw = row
            new = self._entry(mode, folder + name.decode("utf-8", "surrogateescape"), raw.hex())
            if new == raw.hex():
                clean.add(row)
            else:
                changes[name] = trees.RawTreeEntry(mode, new) if new else None
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
            made = self._edit_file(path, oid, lambda: self._reader.read(oid)[1])
            known = self._files[zone, oid] = made if isinstance(made, str) else self._put("blob", made)
        return known

    def _put(self, kind: str, content: bytes) -> str:
        name = hashlib.sha1(b"%s %d\0" % (kind.encode(), len(content)) + content, usedforsecurity=False)
        if self._writes:
            if self._writer is None:
                self._writer = PackWriter(self._folder)
            if name.digest() not in self._writer.offsets:
                self._writer.add(name.digest(), KINDS[kind], len(content), zlib.compress(content, 1))
        return name.hexdigest()
