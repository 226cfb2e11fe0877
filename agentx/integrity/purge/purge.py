"""``agentx purge``: remove events with every copy of them. The only command that rewrites history.

A plan shows what would be removed, and changes nothing. The purge makes the plan again under the workspace
lock, writes it to a journal, and carries it out (:mod:`agentx.recording.purge_journal`).
"""

import contextlib
import json
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agentx.engine.engine import Engine
from agentx.integrity.purge import quoting
from agentx.integrity.purge.copies import Closure, PurgeRefused, follow
from agentx.integrity.purge.quoting import QuotedText, Quoting
from agentx.recording import commit_message
from agentx.recording.purge_journal import Journal, begin, finish, mark, survey
from agentx.storage.events.types import Event
from agentx.storage.files import nofollow
from agentx.storage.git.checking import find_faults
from agentx.storage.git.objects import ObjectDamaged
from agentx.storage.git.packs.prune import other_refs, remotes_of, why_not
from agentx.storage.git.repository import HOST
from agentx.storage.log.blobs import blob_path
from agentx.storage.log.history import ORPHANS, told_already
from agentx.storage.progress import Progress
from agentx.storage.secrets.redaction import clean

if TYPE_CHECKING:
    from agentx.recording.write_path import WritePath

REASON_CHARACTERS = 1_000
"""Maximum length of a reason; a longer one is cut."""


class Falling(msgspec.Struct, frozen=True):
    """An event that would be purged.

    Attributes:
        seq: Its seq.
        type: The type of its payload.
        told: Its content, in one line.
    """

    seq: int
    type: str
    told: str


class PurgePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a purge would do.

    Attributes:
        events: The events that would be purged, oldest first.
        purged: Requested events that are already purged.
        items: Memory items that would be removed.
        conclusions: Conclusions among the events that also hold unrelated items; those are concluded again if
            a fact still supports them.
        contents: Number of long texts and file contents that would be removed.
        files: Files that the events wrote and that still exist with another content, which is not searched.
        commits: Number of commits that would be rewritten.
        first_commit: The oldest of them.
        refs: Tags, stashes and other branches that would be removed, because they hold it.
        remotes: Remotes that still have it. They would be forgotten, because the next fetch would bring
            everything back.
        also: Events that would stay although they partly repeat it, character by character.
    """

    events: tuple[Falling, ...]
    purged: tuple[int, ...]
    items: tuple[str, ...]
    conclusions: tuple[int, ...]
    contents: int
    files: tuple[str, ...]
    commits: int
    first_commit: str
    refs: tuple[str, ...]
    remotes: tuple[str, ...]
    also: tuple[Quoting, ...]


class PurgeReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a purge.

    Attributes:
        plan: The plan that was carried out.
        seq: The event that records the purge.
        commit: The latest commit, rewritten.
        backup: Path of the copy made before the purge; empty for none.
    """

    plan: PurgePlan
    seq: int
    commit: str
    backup: str


def plan(engine: Engine, events: Sequence[int], *, also: bool = False) -> PurgePlan:
    """Return what a purge would do; unrecorded edits are recorded first.

    With ``also``, the events that repeat the content are purged too.

    Raises:
        PurgeRefused: The purge is not possible; the message says why.
    """
    with engine.write_path.exclusive():
        return _Look(engine, events, also=also).plan()


def purge(
    engine: Engine,
    events: Sequence[int],
    *,
    also: bool = False,
    reason: str = "",
    backup: Path | None = None,
    agreed: PurgePlan | None = None,
    progress: Progress | None = None,
) -> PurgeReport:
    """Purge events, with every copy of them in the workspace.

    Args:
        engine: The workspace.
        events: Seqs of the events to purge.
        also: Include the events that repeat the content.
        reason: The reason, which stays in the history.
        backup: Copy the current workspace to this new directory first.
        agreed: The plan that the user confirmed; refuse if it would be different now.
        progress: Receives progress.

    Raises:
        PurgeRefused: The purge is not possible; nothing was changed.
        WriteFailed: The disk refuses a write; the rest is done when the workspace is used again.
    """
    write_path = engine.write_path
    with write_path.exclusive():
        look = _Look(engine, events, also=also)
        made = look.plan()
        if agreed is not None and (made.events, made.refs) != (agreed.events, agreed.refs):
            raise PurgeRefused(
                "The content to purge has changed in the meantime; review it again. Nothing was purged."
            )
        if not made.events:
            raise PurgeRefused("The selected content is already purged.")
        if backup is not None:
            _back_up(engine.root, backup.absolute())
        write_path.git.hold()
        begin(write_path.git.repo.git_dir, look.journal(made, engine.settings.actor, reason))
        finish(engine.root, write_path.git.repo.git_dir, progress)
        engine.summaries.clear()
    write_path.refresh()
    engine.synthesizer.catch_up()
    write_path.flush()
    return PurgeReport(
        plan=made,
        seq=write_path.log.state.seq,
        commit=write_path.git.head,
        backup=str(backup.absolute()) if backup else "",
    )


def _back_up(root: Path, target: Path) -> None:
    if nofollow.exists(target) or target.is_relative_to(root):
        raise PurgeRefused(
            f"{target} already exists or is inside the workspace; choose a new directory for the backup."
        )
    try:
        shutil.copytree(root, target, symlinks=True)
    except (OSError, shutil.Error) as error:
        raise PurgeRefused(
            f"The backup could not be written to {target}: {error}. Nothing was purged."
        ) from error


class _Look:
    """Finds everything that holds what is to be purged. Runs under the workspace lock."""

    def __init__(self, engine: Engine, events: Sequence[int], *, also: bool) -> None:
        self._engine = engine
        self._write_path: WritePath = engine.write_path
        self._git_dir = engine.git.repo.git_dir
        self._check_ground()
        self._write_path.edits.scan()
        self._write_path.flush()
        self._closure = follow(self._events, events)
        falling = (event for event in self._events() if event.seq in self._closure.events)
        texts = [text for event in falling for text in quoting.all_texts(event, self._read)]
        manifest = self._write_path.git.manifest()
        usual = (self._read(manifest[path].oid) for path in self._closure.paths if path in manifest)
        self._words = QuotedText(texts, usual)
        self._also = self._left()
        seeds = set(events)
        while also and self._also:
            seeds |= {one.seq for one in self._also}
            self._closure = follow(self._events, seeds)
            self._also = self._left()
        self._refuse_current()

    def _check_ground(self) -> None:
        self._write_path.require_writable()
        if why := why_not(self._git_dir):
            raise PurgeRefused(f"Nothing can be purged from this repository: {why}, and try again.")
        faults = [f".git/{fault.path} {fault.what}" for fault in find_faults(self._git_dir, lambda *_: None)]
        if faults or self._write_path.log.damage or self._write_path.health.unsound:
            what = faults[0] if faults else "a line of the history cannot be read"
            raise PurgeRefused(f"The workspace is damaged ({what}); run `agentx repair`, and try again.")

    def _events(self) -> Iterator[Event]:
        return self._write_path.log.history.read(on_damage=told_already)

    def _read(self, oid: str) -> str:
        """Return a long text, or the text of a file's content; empty if it is not text."""
        path = self._engine.root / blob_path(oid)
        try:
            data = nofollow.read(path) if nofollow.exists(path) else self._write_path.git.repo.read_blob(oid)
        except ObjectDamaged:
            return ""
        return "" if b"\0" in data else data.decode("utf-8", "replace")

    # --- who else says it -----------------------------------------------------------------------------------

    def _left(self) -> list[Quoting]:
        """Return the events that repeat the content and are not purged."""
        if not self._words:
            return []
        staying = (event for event in self._events() if event.seq not in self._closure.events)
        return quoting.find(self._words, staying, self._read)

    def _refuse_current(self) -> None:
        """Refuse to purge the current content of a file, which only its owner may change."""
        for path, entry in sorted(self._write_path.git.manifest().items()):
            if entry.oid in self._closure.contents:
                raise PurgeRefused(
                    f"{path!r} still has the content that event {self._closure.contents[entry.oid]} added. "
                    "Change or delete the file first, and try again. Nothing was purged."
                )

    # --- what is to be done ---------------------------------------------------------------------------------

    def plan(self) -> PurgePlan:
        """Return the plan."""
        closure = self._closure
        falling = (event for event in self._events() if event.seq in closure.events)
        told = tuple(Falling(event.seq, event.type, event.describe()) for event in falling)
        commits, first = self._commits(min(closure.events, default=0))
        manifest, all_refs = self._write_path.git.manifest(), other_refs(self._git_dir)
        refs = tuple(all_refs)  # those that lead to what is purged
        if tips := sorted({commit for commit in all_refs.values() if commit}):
            rewritten = survey(self._engine.root, self._journal((), "", ""), tips)
            refs = tuple(name for name, commit in all_refs.items() if not commit or rewritten[commit])
        return PurgePlan(
            events=told,
            purged=closure.purged,
            items=closure.items,
            conclusions=closure.conclusions,
            contents=len(closure.contents),
            files=tuple(sorted(path for path in closure.paths if path in manifest)),
            commits=commits,
            first_commit=first,
            refs=refs,
            remotes=tuple(remotes_of(refs)),
            also=tuple(self._also),
        )

    def _commits(self, first: int) -> tuple[int, str]:
        """Return the number of commits that hold a purged event or follow it, and the first of them."""
        count, oldest = 0, ""
        for commit in self._write_path.git.repo.log() if first else ():
            through = commit_message.through(commit.trailers)
            if 0 < through < first:
                break
            count, oldest = count + 1, commit.id
        return count, oldest

    def journal(self, made: PurgePlan, actor: str, reason: str) -> Journal:
        """Return the plan in the form of a journal."""
        return self._journal(made.refs, actor, clean(" ".join(reason.split()))[:REASON_CHARACTERS])

    def _journal(self, refs: tuple[str, ...], actor: str, reason: str) -> Journal:
        closure: Closure = self._closure
        return Journal(
            events={seq: own_hash for seq, (_, own_hash) in closure.events.items()},
            contents=closure.contents,
            orphans=tuple(self._orphans()),
            refs=refs,
            after=self._write_path.log.state.seq,
            hash=self._write_path.log.state.hash,
            actor=actor,
            reason=reason,
            who=f"agentx <engine@engine{HOST}> {int(time.time())} +0000",
        )

    def _orphans(self) -> Iterator[str]:
        """Yield marks of lines that were set aside and name an event's hash or repeat the content."""
        try:
            lines = nofollow.read(self._engine.root / ORPHANS).splitlines()
        except FileNotFoundError:
            return
        hashes = {own_hash for _, own_hash in self._closure.events.values()}
        for line in lines:
            if any(self._words.find(text) or text in hashes for text in _texts(line)):
                yield mark(line)


def _texts(line: bytes) -> Iterator[str]:
    """Yield the log line in an entry of ``history/orphans.jsonl``, and the strings in that line."""
    try:
        content = str(json.loads(line)["content"])
    except (ValueError, KeyError, TypeError):
        content = line.decode("utf-8", "replace")
    yield content
    with contextlib.suppress(ValueError):
        yield from quoting.strings(json.loads(content))
