"""Check the log in one read, from a commit or from its beginning: its chain, its references, and its fold."""

import contextlib
import json
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path

from agentx.core.findings import Finding, Found
from agentx.core.layout import ARTIFACTS
from agentx.integrity.check_commits import Logged
from agentx.storage.artifacts import entry_after
from agentx.storage.events.codec import GENESIS, Codec
from agentx.storage.events.types import Event, Purged, WriteReverted, changes_of, strays_of
from agentx.storage.files import nofollow
from agentx.storage.git.checked_reader import ObjectReader, TreeEntry
from agentx.storage.git.objects import ObjectDamaged, blob_id
from agentx.storage.git.repository import SUBMODULE
from agentx.storage.log.blobs import BlobDamaged, BlobStore, blob_path, named_blobs
from agentx.storage.log.chain_proof import ChainProof, log_lines
from agentx.storage.log.history import LIVE, ORPHANS, SEGMENTS, segment_number, segment_path
from agentx.storage.progress import Progress
from agentx.synthesis.state.state import State

_REVERTS_KEPT = 10_000
"""Number of latest changes in which a reverted write is looked up; the revert directly follows the write."""

Changes = dict[int, list[tuple[str, TreeEntry | None]]]


class LogLook:
    """Checks the log of one workspace.

    Attributes:
        seq: The last event that was read.
        events: Number of events read.
        blobs: Number of references to long texts.
        damaged: Whether the log itself is damaged.
        purged: Events whose content was purged: seq and type.
        files: The artifacts after the last event.
    """

    def __init__(
        self, root: Path, reader: ObjectReader, codec: Codec, found: Found, purged_changes: Changes
    ) -> None:
        self._root = root
        self._reader = reader
        self._codec = codec
        self._found = found
        self._purged_changes = purged_changes
        self._blobs = BlobStore(root)
        self._reported: set[str] = set()
        self._before: OrderedDict[tuple[int, str], tuple[TreeEntry | None, TreeEntry | None]] = OrderedDict()
        self._damaged_files: set[str] = set()
        self._folded: list[tuple[State, str]] = []
        self._whole = True
        self.seq = 0
        self.events = 0
        self.blobs = 0
        self.damaged = False
        self.purged: list[tuple[int, str]] = []
        self.files: dict[str, TreeEntry] = {}

    def run(self, start: Logged, end: Logged, states: Sequence[State], progress: Progress) -> str:
        """Read and check the log.

        Args:
            start: Where to begin: a commit whose log is trusted; empty for the first event.
            end: The end of the latest commit's log.
            states: States in use, to compare with the fold.
            progress: Receives progress.

        Returns:
            What was checked, in a sentence.
        """
        self._whole = not start.seq
        state, at_seq = State(), {one.seq: one for one in states}
        self.files = self.files_of(start.tree) if start.tree else {}

        def damaged(place: str, what: str) -> None:
            self._damaged_files.add(place.partition(":")[0])
            self._tell(place, what)

        proof = ChainProof(self._codec, damaged, self._is_aside, start.seq, start.hash or GENESIS)
        self.seq = start.seq
        # The segment that was the live log when the commit was made
        folder = self._reader.entry(start.tree, SEGMENTS) if start.tree else None
        sealed = self._reader.files(folder.oid) if folder else ()
        first = 1 + sum(path[:3].isdigit() for path, _ in sealed)
        committed: tuple[Event, dict[str, TreeEntry]] | None = None
        for event, _ in proof.follow(log_lines(self._root, first)):
            self._take(event, end)
            if self._whole:
                state.apply(event)
                if event.seq in at_seq:
                    self._folded.append((at_seq[event.seq], state.digest))
            if event.seq == end.seq:
                committed = (event, dict(self.files))
            if not self.events % 100:
                progress("Reading the history", event.seq, max(end.seq, event.seq))
        self.damaged = bool(proof.faults)
        if committed is not None and not self.damaged:
            self._compare_with_commit(*committed, end)
        self._check_sealed(end)
        if self.seq < end.seq and not self.damaged:
            commit = f"commit {end.commit[:12]} goes up to event {end.seq}"
            self._tell(LIVE, f"ends with event {self.seq}; {commit}")
        return (
            f"{self.events:,} event{'s' * (self.events != 1)}"
            f"{'' if self.damaged else ', each in its place'}; "
            f"{self.blobs:,} long text{'s' * (self.blobs != 1)}"
        )

    def _take(self, event: Event, end: Logged) -> None:
        self.seq = event.seq
        self.events += 1
        self._fold(event, self.files)
        if isinstance(event.data, Purged):
            self.purged.append((event.seq, event.type))
        for oid in named_blobs(event.data):
            self.blobs += 1
            self._check_blob(oid, event.seq, end)

    # --- files ----------------------------------------------------------------------------------------------

    def files_of(self, tree: str) -> dict[str, TreeEntry]:
        """Return the artifacts of a commit's tree, without submodules, which are not recorded.

        Raises:
            ObjectDamaged: The tree cannot be read.
        """
        folder = self._reader.entry(tree, ARTIFACTS)
        found = self._reader.files(folder.oid) if folder else ()
        return {path: entry for path, entry in found if entry.mode != SUBMODULE}

    def go_on(self, events: Iterable[Event], files: dict[str, TreeEntry]) -> None:
        """Fold newer events into a set of artifacts."""
        for event in events:
            self._fold(event, files)

    def _fold(self, event: Event, files: dict[str, TreeEntry]) -> None:
        for stray in strays_of(event):
            self._tell(f"event {event.seq}", f"names {stray.path[:200]!r}, which is outside the artifacts")
        recorded = [(change.path, entry_after(change)) for change in changes_of(event)]
        for path, entry in recorded or self._purged_changes.get(event.seq, []):
            self._before[event.seq, path] = (files.get(path), entry)
            _put(files, path, entry)
        while len(self._before) > _REVERTS_KEPT:
            self._before.popitem(last=False)
        if isinstance(event.data, WriteReverted):
            before, after = self._before.pop((event.data.event, event.data.path), (None, None))
            if files.get(event.data.path) == after:
                _put(files, event.data.path, before)

    def _compare_with_commit(self, event: Event, files: dict[str, TreeEntry], end: Logged) -> None:
        """Compare the artifacts that the events lead to with those of their commit."""
        if end.hash and event.hash != end.hash:
            self._tell(f"event {event.seq}", f"is not the one in commit {end.commit[:12]}")
            return
        try:
            held = self.files_of(end.tree)
        except ObjectDamaged:
            return  # reported by the check of the commits
        for path in sorted(held.keys() | files.keys()):
            if held.get(path) != files.get(path):
                self._tell(
                    f"{ARTIFACTS}/{path}",
                    f"is not in commit {end.commit[:12]} as the events say",
                    "Open the workspace and compare `git log -p` with `agentx log`.",
                )

    # --- long texts and segments ----------------------------------------------------------------------------

    def _check_blob(self, oid: str, seq: int, end: Logged) -> None:
        if oid in self._reported:
            return
        try:
            self._blobs.get(oid)
        except BlobDamaged:
            there = nofollow.exists(self._root / blob_path(oid))
            self._reported.add(oid)
            self._tell(blob_path(oid), f"{'is damaged' if there else 'is missing'}; event {seq} names it")
        with contextlib.suppress(ObjectDamaged):  # reported by the check of the commits
            entry = self._reader.entry(end.tree, blob_path(oid)) if seq <= end.seq else None
            if seq <= end.seq and (entry is None or entry.oid != oid):
                self._reported.add(oid)
                self._tell(blob_path(oid), f"is in no commit, but event {seq} names it")

    def _check_sealed(self, end: Logged) -> None:
        """Compare sealed segments with the commit, byte by byte."""
        try:
            folder = self._reader.entry(end.tree, SEGMENTS) if end.tree else None
            sealed = dict(self._reader.files(folder.oid, f"{SEGMENTS}/")) if folder else {}
        except ObjectDamaged:
            return  # reported by the check of the commits
        self._check_live(end, sealed)
        for path, entry in sealed.items():
            if not path[len(SEGMENTS) + 1 :][:3].isdigit() or path in self._damaged_files:
                continue
            try:
                same = blob_id(nofollow.read(self._root / path)) == entry.oid
            except OSError:
                self._tell(path, "is missing")
                continue
            if not same:
                self._tell(path, "differs from the commits")

    def _check_live(self, end: Logged, sealed: Iterable[str]) -> None:
        """Check that the live log, or the segment sealed since, begins with that of the commit."""
        behind = segment_path(1 + sum(map(bool, map(segment_number, sealed))))
        path = behind if nofollow.exists(self._root / behind) else LIVE
        try:
            entry = self._reader.entry(end.tree, LIVE) if end.tree else None
            committed = self._reader.blob(entry.oid) if entry else b""
            content = nofollow.read(self._root / path)
        except (ObjectDamaged, OSError):
            return  # reported by the check of the commits, or of the lines
        if path not in self._damaged_files and not content.startswith(committed):
            self._tell(path, f"does not begin with the content of commit {end.commit[:12]}")

    def _is_aside(self, line: bytes) -> bool:
        """Return whether the engine has already set a line aside."""
        text = line.decode("utf-8", "backslashreplace").rstrip("\n")
        try:
            with nofollow.open_file(self._root / ORPHANS) as file:
                return any(_holds(entry, text) for entry in file)
        except OSError:
            return False

    # --- state ----------------------------------------------------------------------------------------------

    def check_states(self) -> str:
        """Compare the states in use with the fold; return the result in a sentence."""
        if not self._whole:
            return "not compared: this requires the history from its beginning"
        if self.damaged:
            return "not compared: the history is damaged"
        if not self._folded:
            return f"no snapshot yet; all {self.events:,} events can be folded"
        for state, digest in self._folded:
            if state.digest != digest:
                where = f"The state after event {state.seq}"
                self._found(Finding("state", where, "does not match the events", "agentx rebuild"))
        return f"same as a fold of all {self.events:,} events"

    def _tell(self, where: str, what: str, todo: str = "") -> None:
        self._found(Finding("history", where, what, *([todo] if todo else [])))


def _put(files: dict[str, TreeEntry], path: str, entry: TreeEntry | None) -> None:
    if entry is None:
        files.pop(path, None)
    else:
        files[path] = entry


def _holds(entry: bytes, text: str) -> bool:
    try:
        return bool(json.loads(entry).get("content") == text)
    except ValueError:
        return False
