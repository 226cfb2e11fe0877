"""Rebuild missing Git objects: a blob from a file of the same content, a tree from its commit's events.

Nothing is trusted: a rebuilt object must have the id of the missing one.
"""

import contextlib
import os
from collections.abc import Iterator
from functools import cached_property
from itertools import islice, takewhile
from pathlib import Path

from agentx.storage.artifacts import entry_after
from agentx.storage.events.codec import Codec
from agentx.storage.events.facts import FACTS
from agentx.storage.events.types import WriteReverted, changes_of
from agentx.storage.files import nofollow
from agentx.storage.git.checked_reader import CommitInfo, ObjectReader, TreeEntry
from agentx.storage.git.objects import ObjectDamaged, blob_id, write_blob
from agentx.storage.git.repository import REGULAR, GitRepository
from agentx.storage.log.blobs import blob_path, named_blobs
from agentx.storage.log.history import (
    LIVE,
    ORPHANS,
    SEGMENTS,
    History,
    count_segments,
    segment_path,
    told_already,
)

_ARTIFACTS = "artifacts/"
_NEAR = 100
"""Number of recent commits that must exist; if one is missing, the branch goes back.

Pruning beside a writer deletes only recent commits.
"""
_CONFIG = "agentx.toml"


class Remaking:
    """Rebuilds the missing objects of some commits.

    Args:
        root: The workspace's directory.
        reader: Its objects.

    Attributes:
        made: Id of each rebuilt object, and its source.
    """

    def __init__(self, root: Path, reader: ObjectReader) -> None:
        self._root = root
        self._reader = reader
        self.made: list[tuple[str, str]] = []

    def make(self, commit: str, since: str, *, each: bool) -> bool:
        """Rebuild missing objects of a commit and its ancestors; return whether it is then usable.

        Args:
            commit: The commit.
            since: An intact ancestor to stop at; empty for all.
            each: As for :meth:`is_usable`.
        """
        lacking = [
            (one, parent) for one, parent in self._back(commit, since) if self._missing(parent, one.tree)
        ]
        for one, parent in reversed(lacking):  # oldest first: a tree is rebuilt from the one before it
            self._make(one, parent)
        return self.is_usable(commit, since, each=each)

    def is_usable(self, commit: str, since: str, *, each: bool) -> bool:
        """Return whether a commit's tree is complete, and its recent ancestors exist.

        Args:
            commit: The commit.
            since: An intact ancestor; empty for none.
            each: Whether the trees of the commits between must be complete too. Objects lost in a power cut
                can be committed again. Old objects removed by pruning cannot, and must not make later commits
                unusable.
        """
        try:
            tree = self._reader.commit(commit).tree
            known = self._reader.commit(since).tree if since else ""
        except ObjectDamaged:
            return False
        back = list(islice(self._back(commit, since), None if each else _NEAR))
        # The list is empty if the commit is the intact ancestor itself.
        chained = not back or all(map(self._reader.exists, back[-1][0].parents))
        steps = [(known, tree), *((parent, one.tree) for one, parent in back if each)]
        return chained and not any(self._missing(*step) for step in steps)

    def _back(self, commit: str, since: str) -> Iterator[tuple[CommitInfo, str]]:
        """Yield a commit and its readable ancestors, newest first, each with the tree of its parent."""
        with contextlib.suppress(ObjectDamaged):
            here: CommitInfo | None = self._reader.commit(commit)
            while here is not None and here.id != since:
                parent = None
                with contextlib.suppress(ObjectDamaged):
                    parent = self._reader.commit(here.parents[0]) if here.parents else None
                yield here, parent.tree if parent else ""
                here = parent

    def _missing(self, known: str, tree: str) -> dict[str, str]:
        """Return the missing objects of a tree beyond another: ids by path.

        The path of a directory ends in a slash; that of the root tree is empty.
        """
        missing: dict[str, str] = {}

        def tell(path: str, oid: str, _problem: ObjectDamaged) -> None:
            missing[path] = oid

        for _ in self._reader.compare(known, tree, tell):
            pass
        return missing

    def _make(self, commit: CommitInfo, parent_tree: str) -> None:
        missing = self._missing(parent_tree, commit.tree)
        trees = {path: oid for path, oid in missing.items() if path == "" or path.endswith("/")}
        if trees and (span := commit.span) and self._make_tree(commit, parent_tree, span):
            missing = self._missing(parent_tree, commit.tree)
            source = f"event {span[0]}" if span[0] == span[1] else f"events {span[0]} to {span[1]}"
            self.made += [(oid, source) for oid in trees.values() if oid not in missing.values()]
        for path, oid in missing.items():
            if path and not path.endswith("/"):
                content, source = self._find(path, oid, commit)
                if content is not None:
                    self._write(content)
                    self.made.append((oid, source))

    def _find(self, path: str, oid: str, commit: CommitInfo) -> tuple[bytes | None, str]:
        """Find a content by its id: in the file of that name, in the log, or in any other file.

        The log is searched up to the commit.
        """
        if path == LIVE and commit.span is not None:
            content = self._log_through(commit.span[1])[1]
            if blob_id(content) == oid:
                return content, LIVE
        for name in (path, self._by_content.get(oid, "")):
            held = _content(self._root / name) if name else None
            if held is not None and blob_id(held) == oid:
                return held, name
        return None, ""

    @cached_property
    def _by_content(self) -> dict[str, str]:
        """Path of every file in the workspace, by the id of its content; computed on first use."""
        found: dict[str, str] = {}
        for name in nofollow.names(self._root):
            place = self._root / name
            below = nofollow.tree(place) if nofollow.is_directory(place) else (place,)
            for path in below if name not in {".git", ".agentx"} else ():
                if (content := _content(path)) is not None:
                    found[blob_id(content)] = path.relative_to(self._root).as_posix()
        return found

    # --- trees ----------------------------------------------------------------------------------------------

    def _make_tree(self, commit: CommitInfo, parent_tree: str, span: tuple[int, int]) -> bool:
        """Build the tree of an engine's commit like the write path: from its parent's tree and its events."""
        repo = GitRepository(self._root)
        try:
            entries = self._entries(span, parent_tree)
            return any(
                repo.update_tree(parent_tree, entries | more) == commit.tree for more in self._beside()
            )
        except ObjectDamaged:
            return False
        finally:
            repo.sync()  # the engine's next sync does not cover these trees
            repo.close()

    def _entries(self, span: tuple[int, int], parent_tree: str) -> dict[str, TreeEntry | None]:
        """Return the tree entries that a commit of some events changed."""
        read = History(self._root, Codec(FACTS)).read(span[0] - 1, told_already)
        events = list(takewhile(lambda event: event.seq <= span[1], read))
        reverted = {(e.data.event, e.data.path) for e in events if isinstance(e.data, WriteReverted)}
        entries: dict[str, TreeEntry | None] = {
            _ARTIFACTS + made.path: entry_after(made)
            for event in events
            for made in changes_of(event)
            if (event.seq, made.path) not in reverted
        }
        segment, live = self._log_through(span[1])
        known = self._reader.entry(parent_tree, SEGMENTS) if parent_tree else None
        held = {path for path, _ in self._reader.files(known.oid, f"{SEGMENTS}/")} if known else set()
        names = [segment_path(number) for number in range(1, segment)]
        names += [blob_path(oid) for event in events for oid in named_blobs(event.data)]
        for name in names:
            content = _content(self._root / name)
            if name not in held and content is not None:
                entries[name] = TreeEntry(self._write(content), REGULAR)
        return entries | {LIVE: TreeEntry(self._write(live), REGULAR)}

    def _beside(self) -> Iterator[dict[str, TreeEntry | None]]:
        """Yield further entries that may have been in the commit, from files that still exist."""
        more: dict[str, TreeEntry | None] = {}
        yield more
        for name in (_CONFIG, ORPHANS):
            content = _content(self._root / name)
            if content is not None:
                more = more | {name: TreeEntry(self._write(content), REGULAR)}
                yield more

    def _write(self, content: bytes) -> str:
        return write_blob(self._root / ".git", content)

    def _log_through(self, seq: int) -> tuple[int, bytes]:
        """Return the live log as it was after an event, and the number of its segment, sealed or not."""
        sealed = count_segments(self._root)
        names = [(sealed + 1, LIVE), *((number, segment_path(number)) for number in range(sealed, 0, -1))]
        for number, name in names:
            content = _content(self._root / name) or b""
            at = (b"\n" + content).find(b'\n{"seq":%d,' % seq)
            if at >= 0:
                return number, content[: content.find(b"\n", at) + 1]
        return 1, b""


def _content(path: Path) -> bytes | None:
    """Return the content that Git stores for a file: its bytes, or a link's target."""
    try:
        return os.fsencode(nofollow.read_link(path)) if nofollow.is_link(path) else nofollow.read(path)
    except OSError:
        return None
