"""User edits that the class of a file forbids: detected from the history, and settled by the user."""

import msgspec

from agentx.engine.engine import Engine
from agentx.policy.appended import additions, joined, memory_of, missing, told
from agentx.policy.file_policy import FileRuling, first_difference, is_person, rulings_on, sorter
from agentx.recording.staging import Content
from agentx.storage.errors import UsageError
from agentx.storage.events.pipeline_events import FileAmended, FileClass, ItemsFound, PipelineStarted
from agentx.storage.events.types import (
    ApprovalDecided,
    Draft,
    Event,
    FileChange,
    ToolCallExecuted,
    WriteReverted,
    changes_of,
)
from agentx.storage.files.paths import check_path
from agentx.storage.git.objects import ObjectDamaged, blob_id
from agentx.storage.git.repository import EXECUTABLE, LINK
from agentx.storage.log.history import told_already


class ForbiddenEdit(msgspec.Struct, frozen=True, kw_only=True):
    """A user edit that the class of a file forbids and that nobody has confirmed.

    Attributes:
        before: Blob ID before the edit; ``after`` is the ID after it, empty if the file was removed.
        seq: The event that changed it.
        sentence: What is wrong, and what to do.
    """

    path: str
    sort: FileClass
    before: str
    after: str
    seq: int
    sentence: str


def breaches(engine: Engine, name: str) -> list[ForbiddenEdit]:
    """Return the user edits of a pipeline's files that their classes forbid, since it was first started.

    A static file differs from what an agent left, or from its first content. An append-only file does not
    begin with its previous content. Edits that were amended or reverted since are not listed.

    Args:
        engine: The workspace; unrecorded edits of its files are recorded first.
        name: Name of the pipeline.
    """
    with engine.write_path.exclusive():
        if not engine.log.state.files.get(name):
            return []
        engine.edits.scan()
        watched = _Watched(engine, name)
        for event in engine.log.history.read(on_damage=told_already):
            watched.take(event)
        # A power cut can tear the last line off an append: the write is then recorded, but not its amendment.
        if watched.unsaid:
            engine.write_path.record(list(watched.unsaid.values()))
        return [watched.breach(path) for path in sorted(watched.broken)]


def amend(engine: Engine, path: str, reason: str, *, actor: str, as_is: bool = False) -> Event:
    """Record the user's confirmation that a file is to stay as it is now, whatever its class says.

    An append-only file is first given the additions that the user's version lacks whole, unless it is to stay
    ``as_is``. Facts that it no longer has are no longer remembered.

    Raises:
        UsageError: The reason is empty, no pipeline gives the file a class, or the file complies with its
            class.
        PathRefused: It is not the path of an artifact.
    """
    path, reason = check_path(path), reason.strip()
    if not reason:
        raise UsageError(f"Give a reason for accepting this version of {path}: --reason.")
    with engine.write_path.exclusive():
        files = engine.log.state.files
        rulings = rulings_on(engine.log.state, [path])
        if not rulings:
            raise UsageError(
                f"No pipeline declares {path} static or append-only, so it needs no amendment. "
                f"Pipelines that have been run: {', '.join(files) or 'none'}."
            )
        found = [one for ruling in rulings for one in breaches(engine, ruling.pipeline) if one.path == path]
        if not found:
            raise UsageError(
                f"Nothing to amend: {path} complies with its class ({rulings[0]}). Edit it first."
            )
        amended = FileAmended(path=path, before=found[0].before, after=found[0].after, reason=reason)
        if any(one.sort == "append-only" for one in found):
            amended = _completed(engine, amended, actor, found[0].seq, as_is=as_is)
        (event,) = engine.write_path.record([Draft(data=amended, actor=actor, cause=found[0].seq)])
    return event


def _completed(engine: Engine, amended: FileAmended, actor: str, began: int, *, as_is: bool) -> FileAmended:
    """Append what an accepted version lacks, and complete its amendment with what is remembered from it.

    The event ``began`` is the first edit that the class forbids.
    """
    path, read = amended.path, engine.git.repo.read_blob
    before, now = (read(blob) if blob else b"" for blob in (amended.before, amended.after))
    before = joined(before, additions(engine, path, began))
    entry = engine.git.tracked_all([path])[path]
    mode = entry.mode if entry else LINK  # nothing is appended to a file that is gone
    lacks = [] if as_is or mode == LINK else missing(engine, path, before, now)
    said = told(path, lacks, "To leave that out, remove it again and amend the file with `--as-is`.")
    if lacks:
        now = joined(now, lacks)
        engine.write_path.write(
            {path: Content(now, executable=mode == EXECUTABLE)},
            lambda changes: ToolCallExecuted(
                call_id=f"amend-{engine.log.state.seq + 1}",
                tool="amend",
                status="SUCCEEDED",
                changes=changes,
                noted=said,
            ),
            actor=actor,
        )
    learned, superseded = memory_of(engine, before, now)
    return msgspec.structs.replace(
        amended,
        after=blob_id(now) if amended.after else "",
        kept=said,
        learned=learned,
        superseded=superseded,
    )


class _Watched:
    """The files of a pipeline compared with what their classes allow, event by event.

    Attributes:
        broken: Files that violate their class: the event that began it, and the current blob.
        unsaid: Amendments of calls that the user approved and that lack their event, by call and path.
    """

    def __init__(self, engine: Engine, name: str) -> None:
        self.repo, self.name = engine.git.repo, name
        self.sort_of = sorter(())
        self.last: dict[str, str] = {}
        self.broken: dict[str, tuple[int, str]] = {}
        self.reasons: dict[str, str] = {}
        self.unsaid: dict[tuple[str, str], Draft] = {}

    def take(self, event: Event) -> None:
        """Fold one event."""
        data = event.data
        named = data.name if isinstance(data, PipelineStarted) else ""
        named = data.pipeline if isinstance(data, ItemsFound) else named
        if isinstance(data, PipelineStarted | ItemsFound) and named == self.name:
            self.sort_of = sorter(data.files)
            for known in (self.last, self.broken):
                for path in [path for path in known if not self.sort_of(path)]:
                    del known[path]
        elif isinstance(data, ApprovalDecided) and data.approved:
            self.reasons[data.call_id] = data.reason
        elif isinstance(data, FileAmended) and data.call_id:
            self.unsaid.pop((data.call_id, data.path), None)
        elif isinstance(data, FileAmended):
            self._accept(data.path, data.after)
        elif isinstance(data, WriteReverted) and data.path not in self.broken:
            self.last.pop(data.path, None)  # the next change names its previous content
        for made in changes_of(event):
            if sort := self.sort_of(made.path):
                self._change(event, made, sort)

    def _change(self, event: Event, made: FileChange, sort: FileClass) -> None:
        path, by_agent = made.path, not is_person(event.actor)
        last = self.last.setdefault(path, made.before)
        call = event.data.call_id if isinstance(event.data, ToolCallExecuted) else ""
        if by_agent and sort == "static" and made.before and call in self.reasons:
            amended = FileAmended(
                path=path, before=made.before, after=made.after, reason=self.reasons[call], call_id=call
            )
            self.unsaid[call, path] = Draft(data=amended, actor=event.actor, run=event.run, cause=event.seq)
        gated = by_agent and (sort == "static" or path not in self.broken)
        if (
            not last
            or gated
            or made.after == last
            or (sort == "append-only" and made.after and self._read(made.after).startswith(self._read(last)))
        ):
            self._accept(path, made.after)
        else:
            first, _ = self.broken.get(path, (event.seq, ""))
            self.broken[path] = first, made.after

    def _accept(self, path: str, blob: str) -> None:
        self.last[path] = blob
        self.broken.pop(path, None)

    def _read(self, blob: str) -> bytes:
        try:
            return self.repo.read_blob(blob)
        except ObjectDamaged:  # it was purged, so it no longer constrains anybody
            return b""

    def breach(self, path: str) -> ForbiddenEdit:
        """Return the breach of a file, with an explanation."""
        (seq, after), sort = self.broken[path], self.sort_of(path)
        assert sort is not None  # only such files are watched
        ruling = FileRuling(path, sort, self.name)
        line, keeps = "", ""
        if sort == "append-only":
            keeps = ". Both keep what was appended since"
        if sort == "append-only" and after:
            line = f" in line {first_difference(self._read(self.last[path]), self._read(after))}"
        return ForbiddenEdit(
            path=path,
            sort=sort,
            before=self.last[path],
            after=after,
            seq=seq,
            sentence=f"{path} is {ruling}. Event {seq} {'changed' if after else 'removed'} it{line}. "
            f"To accept the change, run `agentx pipeline amend {path} --reason …`; "
            f"to undo it, `agentx restore {path} --at {seq - 1}`{keeps}.",
        )
