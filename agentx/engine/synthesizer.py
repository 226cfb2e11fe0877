"""The synthesis engine: draws conclusions from each fact and records them.

A fact is concluded from by whoever holds the workspace's lock when it becomes known, so no two processes draw
the same conclusion. The watermark in the log and a mark in the cache say how far facts were read.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

import msgspec

from agentx.recording.write_path import WritePath
from agentx.storage.events.types import Draft, Event, Payload, UserMessageSent
from agentx.storage.files import nofollow
from agentx.storage.log.blobs import BlobDamaged
from agentx.storage.log.history import History, told_already
from agentx.synthesis.memory.conclusions import PERSON, Add, Change, Concluded, fits
from agentx.synthesis.memory.items import MemoryItem, sort_of
from agentx.synthesis.memory.policies import may_be_made
from agentx.synthesis.model.port import Usage
from agentx.synthesis.state.extractor import Extractor, ReadsAhead
from agentx.synthesis.state.schedule_items import stated_by
from agentx.synthesis.state.state import State

_LINE_BYTES = 9_000
_MARK_BYTES = 200
_WATERMARK_LAG = 200
"""Maximum number of facts that are read again after the caches are lost."""


class Synthesizer:
    """Runs the extractors over facts, in order, each fact once.

    Whoever holds the workspace's lock concludes from what is new before it lets go: first from what a process
    that died left unread, at the end from its own facts. What others concluded is not concluded again.

    Args:
        write_path: Source of the facts and target of the conclusions.
        extractors: The extractors, in the order in which they run.
        settings: Settings of the extractors. If they change, facts that led to no conclusion are read again.
    """

    def __init__(self, write_path: WritePath, extractors: Sequence[Extractor], *, settings: str = "") -> None:
        self._write_path = write_path
        self._extractors = extractors
        self._ahead = [one.read_ahead for one in extractors if isinstance(one, ReadsAhead)]
        versions = [f"{one.name} {one.version}" for one in extractors]
        version = blake2b("\n".join([*versions, settings]).encode(), digest_size=16).hexdigest()
        self._mark = _ReadMark(write_path.cache / "read-through", version)
        self._taken = write_path.log.state.watermark
        self._damaged = False
        write_path.reader = self

    def catch_up(self) -> None:
        """Conclude from facts recorded before this process opened and not yet read by another process."""
        if self._write_path.health.unsound:
            return  # the first use of the lock after healing concludes from them
        self._taken = max(self._taken, self._mark.load(self._write_path.log.history))
        log = self._write_path.log
        for event in log.after(self._taken) if self._taken < log.state.seq else ():
            self._read_ahead(event.data, event.actor)
        self.flush()

    @property
    def through(self) -> int:
        """The last fact that was read."""
        return self._taken

    def flush(self) -> None:
        """Conclude from recorded facts that were not read yet."""
        if self._taken < self._write_path.log.state.seq:
            self._write_path.refresh()

    def rewind(self, seq: int) -> None:
        """The facts after ``seq`` were taken back: read those that get their numbers."""
        self._taken = min(self._taken, seq)

    def prepare(self, drafts: Sequence[Draft]) -> None:
        """Read what does not depend on the state, so that :meth:`conclude` holds the lock for less time."""
        for draft in drafts:
            self._read_ahead(draft.data, draft.actor)

    def _read_ahead(self, data: Payload, actor: str) -> None:
        for read_ahead in self._ahead:
            with contextlib.suppress(BlobDamaged):
                read_ahead(data, actor, self._write_path.log.blobs.text)

    def conclude(self) -> Iterator[Sequence[Draft]]:
        """Yield the conclusions from each fact not read yet; append them before asking for the next.

        The caller holds the workspace's lock and has folded everything.
        """
        log = self._write_path.log
        while self._taken < log.state.seq:
            fresh = self._unread()
            for event in fresh:
                if not isinstance(event.data, Concluded) and (drafts := self._conclude(event)):
                    yield _read_with_the_last(drafts)
                self._taken = event.seq
            if self._taken - log.state.watermark > _WATERMARK_LAG:
                yield _drafts((), "watermark", 1, self._taken, None)
            elif not fresh:
                self._taken = log.state.seq  # read by another process, or damaged
        if not (self._damaged or log.damage or self._write_path.health.unsound):
            # Facts that could not be read may be restored, and are read then.
            self._mark.save(log.state.seq, log.state.hash)

    def read_mark(self) -> list[Draft]:
        """Return what puts on record that all facts so far were read; empty if that is on record."""
        if self._taken <= self._write_path.log.state.watermark:
            return []
        return _drafts((), "watermark", 1, self._taken, None)

    def _unread(self) -> list[Event]:
        """Return the facts that no process has read."""
        log, (seq, own_hash) = self._write_path.log, self._mark.last
        if (seq, own_hash) == (log.state.seq, log.state.hash):
            return []
        events = log.after(self._taken)
        known = any(one.seq == seq and one.hash == own_hash for one in events)
        return [one for one in events if one.seq > seq] if known else events

    def _conclude(self, event: Event) -> list[Draft]:
        """Return the drafts that a fact leads to; empty if it was read already."""
        state = self._write_path.log.state
        drafts: list[Draft] = []
        if event.seq <= state.watermark:
            return []
        task_of = event.data.schedule if isinstance(event.data, UserMessageSent) else ""
        try:
            for extractor in self._readers_of(event):
                known = stated_by(state, task_of) if task_of else state
                if changes := _admitted(extractor.conclude(event, known, self._write_path.log.blobs.text)):
                    made = _drafts(changes, extractor.name, extractor.version, event.seq, event)
                    # A copy that the next extractor sees; the real state is folded later.
                    state = state if drafts else state.copy()
                    state.apply_all(msgspec.structs.replace(event, data=draft.data) for draft in made)
                    drafts += made
        except BlobDamaged:  # its text is lost; it must not block the facts after it
            self._damaged = True
            return []
        return drafts

    def _readers_of(self, event: Event) -> Iterator[Extractor]:
        return (extractor for extractor in self._extractors if isinstance(event.data, extractor.reads))

    def record(
        self,
        changes: Sequence[Change],
        extractor: str,
        *,
        actor: str = "",
        through: int = 0,
        asked: str = "",
        usage: Usage | None = None,
    ) -> list[Event]:
        """Record changes to memory that no single fact led to: by the user, a model or a later reading.

        Args:
            changes: In the order in which they apply.
            extractor: What drew the conclusion.
            actor: Who is responsible, if not the extractor.
            through: The last fact that was read; 0 if reading did not continue from the watermark.
            asked: The model that was asked.
            usage: What the model call used; it is recorded in the last line.
        """
        drafts = _read_with_the_last(_drafts(changes, extractor, 1, through, None))
        if usage is not None:
            spent = msgspec.structs.replace(drafts[-1].data, model=asked, **msgspec.structs.asdict(usage))
            drafts[-1] = msgspec.structs.replace(drafts[-1], data=spent)
        return self._write_path.record(
            [msgspec.structs.replace(draft, actor=actor or draft.actor) for draft in drafts]
        )

    def advance_watermark(self) -> None:
        """Record how far facts were read if nothing was concluded for long.

        An open without caches then reads few facts again.
        """
        if self._write_path.read_only or self._write_path.health.unsound:
            return
        with self._write_path.exclusive():
            if self._taken - self._write_path.log.state.watermark > _WATERMARK_LAG:
                self._write_path.record(_drafts((), "watermark", 1, self._taken, None))

    def close(self) -> None:
        """Release the file that stores how far facts were read."""
        self._mark.close()

    def resynthesize(self) -> list[Event]:
        """Read the raw facts again with the current extractors and record their new conclusions.

        The user's decisions are kept: an item that exists, in whatever status, is not changed.
        """
        scratch = State()
        for event in self._write_path.log.history.read(on_damage=told_already):
            if isinstance(event.data, Concluded) and event.data.extractor != PERSON:
                continue
            scratch.apply(event)
            for extractor in self._readers_of(event):
                for change in _admitted(extractor.conclude(event, scratch, self._write_path.log.blobs.text)):
                    made = Concluded(
                        extractor=extractor.name, version=extractor.version, through=0, changes=(change,)
                    )
                    scratch.apply(msgspec.structs.replace(event, data=made))
        with self._write_path.exclusive():
            known = self._write_path.log.state.items
            fresh = [item for item in scratch.items.values() if not _stands_in(item, known)]
            return self.record([Add(item) for item in fresh], "resynthesize") if fresh else []


class _ReadMark:
    """The last fact that was read, in a file overwritten in place, so that it survives a killed process.

    It is a cache: it is not synced, and counts only if the log holds that event. Every process that writes it
    has read all facts up to there, and holds the workspace's lock.

    Args:
        path: The file.
        version: Version of everything that the conclusions depend on, except the facts.
    """

    def __init__(self, path: Path, version: str) -> None:
        self._path = path
        self._version = version
        self._fd = -1

    def load(self, history: History) -> int:
        """Return the seq of that fact; 0 if nothing is known."""
        try:
            seq, own_hash = self._parse(nofollow.read_text(self._path))
            return seq if history.locate(seq, own_hash) is not None else 0
        except (OSError, ValueError):
            return 0

    @property
    def last(self) -> tuple[int, str]:
        """The seq and the hash of that fact as the file names it; 0 if it names none."""
        try:
            return self._parse(os.pread(self._open(), _MARK_BYTES, 0).decode())
        except (OSError, ValueError):
            return 0, ""

    def save(self, seq: int, own_hash: str) -> None:
        """Overwrite the file; every content has the same length."""
        with contextlib.suppress(OSError):
            os.pwrite(self._open(), f"{self._version} {seq:018} {own_hash}\n".encode(), 0)

    def _parse(self, content: str) -> tuple[int, str]:
        version, seq, own_hash = content.split()
        return (int(seq), own_hash) if version == self._version else (0, "")

    def _open(self) -> int:
        if self._fd < 0:
            self._fd = nofollow.open_descriptor(self._path, os.O_RDWR | os.O_CREAT)
        return self._fd

    def close(self) -> None:
        """Release the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _stands_in(item: MemoryItem, known: dict[str, MemoryItem]) -> bool:
    spans = {(e.seq, e.start) for e in item.evidence}
    return item.id in known or any(
        sort_of(other) == sort_of(item) and spans & {(e.seq, e.start) for e in other.evidence}
        for other in known.values()
    )


def _drafts(
    changes: Sequence[Change], extractor: str, version: int, through: int, event: Event | None
) -> list[Draft]:
    return [
        Draft(
            data=Concluded(extractor=extractor, version=version, through=through, changes=tuple(group)),
            actor=f"engine:{extractor}",
            run=event.run if event else "",
            cause=event.seq if event else 0,
        )
        for group in _groups(changes)
    ]


def _read_with_the_last(drafts: Sequence[Draft]) -> list[Draft]:
    """Keep the watermark in the last line only: after a crash before it, the facts are read again."""
    early = [
        msgspec.structs.replace(draft, data=msgspec.structs.replace(draft.data, through=0))
        for draft in drafts[:-1]
    ]
    return [*early, *drafts[-1:]]


def _admitted(changes: Sequence[Change]) -> list[Change]:
    """Return the changes that the policy of each kind allows.

    A change too long for a line is dropped, so that it does not block what follows.
    """
    return [
        change
        for change in changes
        if fits(change) and (not isinstance(change, Add) or may_be_made(change.item))
    ]


def _groups(changes: Sequence[Change]) -> Sequence[Sequence[Change]]:
    """Split changes into groups that fit into one line each; at least one group."""
    groups: list[list[Change]] = [[]]
    size = 0
    for change in changes:
        length = len(msgspec.json.encode(change))
        if groups[-1] and size + length > _LINE_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(change)
        size += length
    return groups
