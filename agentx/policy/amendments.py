"""What people did to files whose class forbids it: noticed from the history, and settled by their word."""

import msgspec

from agentx.engine.engine import Engine
from agentx.policy.file_policy import Ruling, first_difference, is_person, rulings_on, sorter
from agentx.storage.errors import UsageError
from agentx.storage.events.pipeline_events import FileAmended, FileClass, PipelineStarted
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
from agentx.storage.git.objects import ObjectDamaged
from agentx.storage.log.history import told_already


class Breach(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a person made other than its class allows, and of which nobody has said that it is to be so.

    Attributes:
        before: Blob id of what it was; ``after`` of what it is, empty where it is gone.
        seq: The event that changed it.
        sentence: What is wrong, and what to do.
    """

    path: str
    sort: FileClass
    before: str
    after: str
    seq: int
    sentence: str


def breaches(engine: Engine, name: str) -> list[Breach]:
    """What people did to the files of a pipeline that their classes forbid, since it was first set going.

    A static file is other than an agent left it, or than it was first written; an append-only file does not begin with
    what it last was. What was amended since, or restored, is none.

    Args:
        engine: The workspace; what lies in its files now is put on record first.
        name: The pipeline.
    """
    with engine.write_path.exclusive():
        if not engine.write_path.state.files.get(name):
            return []
        engine.write_path.scan()
        watched = _Watched(engine, name)
        for event in engine.write_path.history.read(on_damage=told_already):
            watched.take(event)
        # A power cut can tear the last line off an append: the write stands then, and what was said to it is lost.
        if watched.unsaid:
            engine.write_path.record(list(watched.unsaid.values()))
        return [watched.breach(path) for path in sorted(watched.broken)]


def amend(engine: Engine, path: str, reason: str, *, actor: str) -> Event:
    """Put a person's word on record that a file is to be as it is now, whatever its class says.

    Raises:
        UsageError: There is no reason, no pipeline gives the file a class, or it is as that allows.
        PathRefused: It is no path of an artifact.
    """
    path, reason = check_path(path), reason.strip()
    if not reason:
        raise UsageError(f"Say why {path} is to be as it is: --reason.")
    with engine.write_path.exclusive():
        files = engine.write_path.state.files
        rulings = rulings_on(engine.write_path.state, [path])
        if not rulings:
            raise UsageError(
                f"No pipeline says that {path} is static or append-only, so it needs no amendment. Pipelines that were "
                f"set going: {', '.join(files) or 'none'}."
            )
        found = [one for ruling in rulings for one in breaches(engine, ruling.pipeline) if one.path == path]
        if not found:
            raise UsageError(
                f"There is nothing to amend: {path} is {rulings[0]}, and that holds. Edit it first."
            )
        amended = FileAmended(path=path, before=found[0].before, after=found[0].after, reason=reason)
        (event,) = engine.write_path.record([Draft(data=amended, actor=actor, cause=found[0].seq)])
    return event


class _Watched:
    """The files of a pipeline, as their classes allow them to be, from one event to the next.

    Attributes:
        broken: Files that are otherwise: the event that made them so, and the blob that they are now.
        unsaid: Amendments that a person allowed a call to make and that lack their own event, by call and path.
    """

    def __init__(self, engine: Engine, name: str) -> None:
        self.repo, self.name = engine.write_path.repo, name
        self.sort_of = sorter(())
        self.last: dict[str, str] = {}
        self.broken: dict[str, tuple[int, str]] = {}
        self.reasons: dict[str, str] = {}
        self.unsaid: dict[tuple[str, str], Draft] = {}

    def take(self, event: Event) -> None:
        """Fold one event in."""
        data = event.data
        if isinstance(data, PipelineStarted) and data.name == self.name:
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
            self.last.pop(data.path, None)  # the next change says what it was
        for made in changes_of(event):
            if sort := self.sort_of(made.path):
                self._change(event, made, sort)

    def _change(self, event: Event, made: FileChange, sort: FileClass) -> None:
        path, by_agent = made.path, not is_person(event.actor)
        last = self.last.setdefault(path, made.before)
        call = event.data.call_id if isinstance(event.data, ToolCallExecuted) else ""
        if by_agent and sort == "static" and made.before and call in self.reasons:
            self.unsaid[call, path] = _amendment(event, made, call, self.reasons[call])
        gated = by_agent and (sort == "static" or path not in self.broken)
        if not last or gated or made.after == last or (sort == "append-only" and self._grew(last, made)):
            self._accept(path, made.after)
        else:
            first, _ = self.broken.get(path, (event.seq, ""))
            self.broken[path] = first, made.after

    def _accept(self, path: str, blob: str) -> None:
        self.last[path] = blob
        self.broken.pop(path, None)

    def _grew(self, last: str, made: FileChange) -> bool:
        return bool(made.after) and self._read(made.after).startswith(self._read(last))

    def _read(self, blob: str) -> bytes:
        try:
            return self.repo.read_blob(blob)
        except ObjectDamaged:  # it was purged, so it binds nobody any more
            return b""

    def breach(self, path: str) -> Breach:
        """What a person did to a file, in words."""
        (seq, after), sort = self.broken[path], self.sort_of(path)
        assert sort is not None  # only such files are watched
        ruling = Ruling(path, sort, self.name)
        line = ""
        if sort == "append-only" and after:
            line = f" in line {first_difference(self._read(self.last[path]), self._read(after))}"
        return Breach(
            path=path,
            sort=sort,
            before=self.last[path],
            after=after,
            seq=seq,
            sentence=f"{path} is {ruling}. Event {seq} {'changed' if after else 'removed'} it{line}. If that is to be so, say "
            f"`agentx pipeline amend {path} --reason …`; if not, `agentx restore {path} --at {seq - 1}`.",
        )


def _amendment(event: Event, made: FileChange, call_id: str, reason: str) -> Draft:
    amended = FileAmended(
        path=made.path, before=made.before, after=made.after, reason=reason, call_id=call_id
    )
    return Draft(data=amended, actor=event.actor, run=event.run, cause=event.seq)
