"""Records the entries of transcripts as events, in batches: each event once, at its own time."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

import msgspec

from agentx.engine.engine import Engine
from agentx.importing.entries import (
    AgentWords,
    CallResult,
    FileStep,
    HostAside,
    PassedOver,
    ProjectRoot,
    Read,
    RequestedCall,
    Spent,
    Thought,
    TranscriptEntry,
    UserWords,
)
from agentx.importing.event_parts import (
    COMMAND_BYTES,
    NAME,
    bounded,
    cut,
    digest,
    fitting,
    labelled,
    short,
    whole,
)
from agentx.importing.imported_files import ImportedFiles, inside, name_of
from agentx.importing.lines import Lines, as_json
from agentx.recording.external_edits import chunks
from agentx.recording.staging import Content, WriteFailed
from agentx.storage.events.transcript_events import HostRecordKept, ModelUsage, TranscriptImported
from agentx.storage.events.types import (
    AgentMessageSent,
    AgentThoughtProcess,
    ArtifactChanged,
    Body,
    Draft,
    FileChange,
    Payload,
    ToolCallExecuted,
    ToolCallRequested,
    UserMessageSent,
    changes_of,
)
from agentx.storage.log.history import told_already
from agentx.storage.secrets.redaction import clean, clean_draft, clean_struct
from agentx.storage.text import plain
from agentx.synthesis.attribution.host_words import typed
from agentx.synthesis.model.prices import cost

KEY = "import:"
"""Begins the key of every event of an import."""

BATCH_ENTRIES = 400
"""Entries that are recorded together, durable all at once."""

BATCH_CHARACTERS = 2_000_000
PROJECT = "project"
"""Sort of the record that says where a session worked."""

_PLAIN = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:\.\d+)?")
"""A universally unique id, which needs no search for secrets."""

_TYPES, _SESSIONS, _SHOWN = 15, 10, 500
"""Bounds of the event of a whole file: types of records, sessions and models, characters of its name."""

_Planned = tuple[TranscriptEntry, str, datetime]


class Imported(msgspec.Struct):
    """What an import did.

    Attributes:
        files: Transcripts that were read.
        unchanged: Transcripts that were imported before and have not grown.
        events: Events that were added.
        counted: What the records of the files that were read are, by name.
        passed: Records of them that were only counted, by type.
        unknown: Records of them of unknown types, which are kept, by type.
        unapplied: Edits that could not be applied to an artifact.
        torn: Files whose last line is incomplete.
        problems: Files that could not be read, each with the reason.
    """

    files: int = 0
    unchanged: int = 0
    events: int = 0
    counted: dict[str, int] = msgspec.field(default_factory=dict)
    passed: dict[str, int] = msgspec.field(default_factory=dict)
    unknown: dict[str, int] = msgspec.field(default_factory=dict)
    unapplied: int = 0
    torn: int = 0
    problems: list[str] = msgspec.field(default_factory=list)

    def add(self, told: TranscriptImported) -> None:
        """Add the figures of a file."""
        self.files += 1
        self.unapplied += told.unapplied
        for mine, its in (
            (self.counted, told.counted),
            (self.passed, told.passed),
            (self.unknown, told.unknown),
        ):
            for name, count in its.items():
                mine[name] = mine.get(name, 0) + count


class TranscriptRecorder:
    """Records transcripts of one host in one workspace.

    Args:
        engine: The workspace.
        host: The host's name.
        version: Version of its reader; files are read again after it was raised.
        actor: The user.
        done: Called with the bytes read of a file.
    """

    def __init__(
        self, engine: Engine, host: str, version: int, actor: str, done: Callable[[int], None]
    ) -> None:
        self._engine = engine
        self._host = host
        self._version = version
        self._user = actor
        self._done = done
        self._owned, self._first_project = _history(engine)
        self._writes = not engine.state.artifacts.startswith("..")
        self.report = Imported()

    def record(self, path: Path, read: Read, shown: str, began: str) -> None:
        """Record what is new in a transcript.

        Args:
            path: The file.
            read: The reader of its format.
            shown: The file's name in the record.
            began: The first time in it; empty if it has none.
        """
        key = f"{KEY}{self._host}:file:{digest(shown)}:{self._version}:"
        if self._engine.log.has_key(f"{key}{Lines(path).scan()}"):
            self.report.unchanged += 1
            return
        lines = Lines(path)
        file = _File(self._host, _time(began) or datetime.fromtimestamp(max(os.stat(path).st_mtime, 0), UTC))
        waiting: list[_Planned] = []
        size = 0
        try:
            for entry in file.follow(read(lines)):
                waiting.append((entry, _key(self._host, entry), file.at(entry)))
                size += _size(entry)
                if len(waiting) >= BATCH_ENTRIES or size >= BATCH_CHARACTERS:
                    self._write(waiting, file)
                    waiting, size = [], 0
                    self._done(lines.read_bytes)
        finally:  # what could be read of a damaged file is kept
            self._write(waiting, file)
        self.report.torn += lines.torn
        told = file.told(shown, lines)
        draft = Draft(data=told, actor=f"import:{self._host}", key=f"{key}{lines.digest}", at=file.last)
        if not self._engine.log.has_key(draft.key):
            self.report.events += len(
                self._engine.write_path.write_in_turn(lambda: ([clean_draft(draft)], {}))
            )
        self.report.add(told)

    # --- one batch --------------------------------------------------------------------------------

    def _write(self, waiting: Sequence[_Planned], file: "_File") -> None:
        if not waiting:
            return
        for writes in (self._writes, False):
            known = file.unapplied
            try:
                events = self._engine.write_path.write_in_turn(
                    lambda writes=writes: self._plan(waiting, file, writes=writes)  # type: ignore[misc]
                )
            except WriteFailed:  # as where a file's name is a directory's: keep the history at least
                if not writes:
                    raise
                file.unapplied = known
                self._owned, _ = _history(self._engine)
            else:
                self.report.events += len(events)
                return

    def _plan(
        self, waiting: Sequence[_Planned], file: "_File", *, writes: bool
    ) -> tuple[Sequence[Draft], Mapping[str, Content | None]]:
        nothing = UserMessageSent(body=Body(""))
        asked = [Draft(data=nothing, actor="", key=key) for _, key, _ in waiting]
        known = set(self._engine.log.find(asked))
        fresh: dict[str, tuple[TranscriptEntry, datetime]] = {}
        for entry, key, at in waiting:
            if key not in known:
                fresh.setdefault(key, (entry, at))
        places = {
            id(step): self._place(step, file) if writes else ""
            for entry, _ in fresh.values()
            if isinstance(entry, CallResult)
            for step in entry.steps
        }
        touched = sorted({path for path in places.values() if path})
        if touched:
            before = self._engine.git.tracked_all(touched)
            after = self._engine.edits.record(touched, noticed="import")
            self._owned |= {path: False for path in touched if after[path] != before[path]}
        files = ImportedFiles(self._engine, self._owned)
        drafts = [
            draft
            for key, (entry, at) in fresh.items()
            for draft in self._drafts(entry, key, at, file, files, places)
        ]
        file.unapplied += files.unapplied
        beside = self._engine.log.find([one for one in drafts if one.key not in fresh])
        return [one for one in drafts if one.key not in beside], files.last

    def _place(self, step: FileStep, file: "_File") -> str:
        """Return where a file is among the artifacts; empty if it is not, or may not be there."""
        path = inside(step.path, file.root)
        project = name_of(file.root)
        self._first_project = self._first_project or project
        if path and project != self._first_project:
            path = inside(f"{project}/{path}", "")
        try:
            self._engine.artifacts.identify(path) if path else None
        except Exception:  # noqa: BLE001 - refused for whatever reason: it is left out
            return ""
        return path

    def _drafts(
        self,
        entry: TranscriptEntry,
        key: str,
        at: datetime,
        file: "_File",
        files: ImportedFiles,
        places: Mapping[int, str],
    ) -> Iterator[Draft]:
        agent = f"agent:{self._host}{'-subagent' * entry.sub}"

        def draft(data: Payload, actor: str = agent, suffix: str = "") -> Draft:
            run = short(clean(entry.session))
            return _cleaned(Draft(data=data, actor=actor, run=run, key=f"{key}{suffix}", at=at))

        body, imported = self._engine.write_path.body, f"import:{self._host}"
        match entry:
            case UserWords(text=text):
                yield draft(UserMessageSent(body=body(text)), self._user)
            case AgentWords(text=text, model=model):
                yield draft(
                    AgentMessageSent(body=body(text), final=file.is_final(entry), model=short(clean(model)))
                )
            case Thought(text=text, model=model):
                yield draft(AgentThoughtProcess(body=body(text), model=short(clean(model))))
            case HostAside(sort=sort, text=text, known=known):
                kept = HostRecordKept(host=self._host, sort=short(sort), body=body(text), known=known)
                yield draft(kept, imported)
            case ProjectRoot(root=root):
                kept = HostRecordKept(host=self._host, sort=PROJECT, body=body(root))
                yield draft(kept, imported)
            case RequestedCall():
                arguments, _ = bounded(entry.arguments)
                yield draft(
                    ToolCallRequested(
                        call_id=short(entry.call_id),
                        tool=short(entry.tool) or "unknown",
                        arguments=arguments,
                        whole=body(whole(entry.arguments)),
                    )
                )
            case CallResult():
                yield from self._done_call(entry, draft, files, places)

    def _done_call(
        self,
        entry: CallResult,
        draft: Callable[..., Draft],
        files: ImportedFiles,
        places: Mapping[int, str],
    ) -> Iterator[Draft]:
        call = entry.call
        arguments, shortened = bounded(call.arguments if call else {})
        before: list[FileChange] = []
        changes: dict[str, FileChange] = {}
        unapplied = files.unapplied
        for step in entry.steps:
            earlier, made = files.apply(places[id(step)], step)
            before += [earlier] if earlier and earlier.path not in changes else []
            for one in (earlier, made):
                if one is not None and (one is made or one.path in changes):
                    first = changes.get(one.path, one).before
                    changes[one.path] = msgspec.structs.replace(one, before=first)
        for number, group in enumerate(chunks(before) if before else ()):
            seen = ArtifactChanged(changes=group, noticed="import")
            yield draft(seen, f"import:{self._host}", f".before {number}")
        made_by = tuple(one for one in changes.values() if one.before != one.after)
        own = fitting(made_by)
        # The call itself comes last: where its key is recorded, all of it is.
        for number, group in enumerate(chunks(made_by[own:]) if made_by[own:] else ()):
            yield draft(ArtifactChanged(changes=group, noticed="import"), suffix=f".changes {number}")
        if shortened and call and not (changes and files.unapplied == unapplied):
            # Where the arguments are long and no artifact holds them.
            text = self._engine.write_path.body(whole(call.arguments))
            kept = HostRecordKept(host=self._host, sort="arguments", body=text)
            yield draft(kept, f"import:{self._host}", ".arguments")
        yield draft(
            ToolCallExecuted(
                call_id=short(entry.call_id),
                tool=short(call.tool if call else "") or "unknown",
                status=entry.status,
                arguments=arguments,
                output=self._engine.write_path.body(entry.output),
                changes=made_by[:own],
                command=cut(clean(entry.command), COMMAND_BYTES),
                exit_code=entry.exit_code,
                duration_ms=entry.duration_ms,
            )
        )


class _File:
    """What is known of a transcript while it is read.

    Attributes:
        root: Directory of its project.
        last: Time of its latest entry with one.
        unapplied: Steps that could not be applied to an artifact.
    """

    def __init__(self, host: str, began: datetime) -> None:
        self.root = ""
        self.last = began
        self.unapplied = 0
        self._host = host
        self._open: dict[str, RequestedCall] = {}
        self._final: set[str] = set()
        self._counted: Counter[str] = Counter()
        self._passed: Counter[str] = Counter()
        self._unknown: Counter[str] = Counter()
        self._spent: dict[str, Spent] = {}
        self._sessions: dict[str, str] = {}
        self._began = self._ended = ""

    def follow(self, entries: Iterator[TranscriptEntry]) -> Iterator[TranscriptEntry]:
        """Yield the entries that become events, in order, once it is known what each is."""
        held: dict[str, AgentWords] = {}
        calls: dict[str, RequestedCall] = {}
        for entry in map(_own_words, entries):
            self._note(entry)
            if isinstance(entry, PassedOver | Spent):
                continue
            if isinstance(entry, RequestedCall):
                calls[entry.call_id] = self._open[entry.call_id] = entry
            if not isinstance(entry, HostAside | ProjectRoot) and (words := held.pop(entry.session, None)):
                if isinstance(entry, UserWords):
                    self._final.add(words.id)
                yield words
            if isinstance(entry, AgentWords) and not entry.sub:
                held[entry.session] = entry
            elif isinstance(entry, CallResult):
                self._open.pop(entry.call_id, None)
                yield msgspec.structs.replace(entry, call=calls.get(entry.call_id))
            elif not isinstance(entry, RequestedCall):
                yield entry
        for words in held.values():
            self._final.add(words.id)
            yield words
        yield from self._open.values()

    def is_final(self, words: AgentWords) -> bool:
        """Return whether an agent's words end its turn: the user speaks next, or nobody."""
        return words.id in self._final

    def at(self, entry: TranscriptEntry) -> datetime:
        """Return the time of an entry; that of the one before it if it has none."""
        self.last = _time(entry.at) or self.last
        return self.last

    def _note(self, entry: TranscriptEntry) -> None:
        """Count an entry."""
        if entry.session not in self._sessions and entry.session:
            self._sessions[entry.session] = labelled(entry.session)
        if entry.at:
            self._began = self._began or entry.at[:40]
            self._ended = entry.at[:40]
        match entry:
            case ProjectRoot(root=root):
                self.root = self.root or root
            case PassedOver(sort=sort):
                self._passed[labelled(sort)] += 1
            case HostAside(sort=sort, known=False):
                self._unknown[labelled(sort)] += 1
            case Spent(call=call):
                self._spent[call] = entry
            case CallResult(status="DENIED"):
                self._counted["refused calls"] += 1
                self._counted["results"] += 1
            case _:
                self._counted[_COUNTED[type(entry)]] += 1

    def told(self, shown: str, lines: Lines) -> TranscriptImported:
        """Return what the file holds, after its last entry."""
        counted = dict(self._counted)
        if self._open:
            counted["calls without a result"] = len(self._open)
        faults = {"lines over the limit": lines.too_long, "lines not in UTF-8": lines.invalid}
        counted |= {name: count for name, count in faults.items() if count}
        return TranscriptImported(
            host=self._host,
            file=plain(shown)[-_SHOWN:],
            digest=lines.digest,
            sessions=tuple(self._sessions.values())[:_SESSIONS],
            project=labelled(name_of(self.root)),
            began=self._began,
            ended=self._ended,
            size_bytes=lines.read_bytes,
            records=lines.records,
            counted=counted,
            passed=_most(self._passed),
            unknown=_most(self._unknown),
            unapplied=self.unapplied,
            usage=tuple(self._usage()),
        )

    def _usage(self) -> Iterator[ModelUsage]:
        by_model: dict[str, list[Spent]] = {}
        for one in self._spent.values():
            by_model.setdefault(labelled(one.model), []).append(one)
        for model, calls in list(by_model.items())[:_SESSIONS]:
            yield ModelUsage(
                model,
                sum(one.prompt_tokens for one in calls),
                sum(one.completion_tokens for one in calls),
                sum(_cost(one) for one in calls),
            )


_COUNTED: dict[type[TranscriptEntry], str] = {
    UserWords: "user messages",
    AgentWords: "agent messages",
    Thought: "thoughts",
    RequestedCall: "calls",
    CallResult: "results",
    HostAside: "host records",
    ProjectRoot: "projects",
}


def _own_words(entry: TranscriptEntry) -> TranscriptEntry:
    """Return what a reader takes for the user's words without what the host wrote in their place."""
    if not isinstance(entry, UserWords) or (own := typed(entry.text)) == entry.text:
        return entry
    if own:
        return msgspec.structs.replace(entry, text=own)
    about = {"id": entry.id, "at": entry.at, "session": entry.session, "sub": entry.sub}
    return HostAside(**about, sort="host message", text=entry.text)  # type: ignore[arg-type]


def _time(text: str) -> datetime | None:
    """Return an ISO time, without a zone that of this machine; ``None`` if it is none."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC) if text else None
    except (ValueError, OverflowError):
        return None


def _cost(one: Spent) -> float:
    if one.cost_usd is not None:
        return one.cost_usd
    return cost(one.model, one.prompt_tokens, one.completion_tokens, one.cached_tokens)


def _most(counts: Counter[str]) -> dict[str, int]:
    """Return the most frequent names, the rest together, so that the event stays small."""
    first = dict(counts.most_common(_TYPES))
    rest = counts.total() - sum(first.values())
    return first | ({"others": rest} if rest else {})


def _history(engine: Engine) -> tuple[dict[str, bool], str]:
    """Return whether an import wrote each file last, and the first project that was imported."""
    owned: dict[str, bool] = {}
    project = ""
    for event in engine.log.history.read(on_damage=told_already):
        for made in changes_of(event):
            owned[made.path] = event.key.startswith(KEY)
        if not project and isinstance(event.data, HostRecordKept) and event.data.sort == PROJECT:
            project = name_of(event.data.body.text)
    return owned, project


def _key(host: str, entry: TranscriptEntry) -> str:
    """Return the identity of an entry: its record, and what it says, whatever file it is found in."""
    told = entry if isinstance(entry, ProjectRoot) else msgspec.structs.replace(entry, session="", at="")
    if host == "codex":  # its reader did not tell subagents apart at first: what was imported keeps its key
        told = msgspec.structs.replace(told, sub=False)
    if isinstance(told, CallResult):
        told = msgspec.structs.replace(told, steps=(), call=None)
    said = blake2b(f"{type(entry).__name__} {as_json(told)}".encode("utf-8", "replace"), digest_size=6)
    record = entry.id if len(entry.id) <= NAME else digest(entry.id)
    plainly = record if _PLAIN.fullmatch(record) else clean(record)
    return f"{KEY}{host}:{plainly}:{said.hexdigest()}"


def _cleaned(draft: Draft) -> Draft:
    """Clean a draft without searching its bodies again: those were cleaned before they were cut."""
    if isinstance(draft.data, UserMessageSent | AgentMessageSent | AgentThoughtProcess):
        return draft  # its other texts are names of models, which are clean
    fields = ((name, getattr(draft.data, name)) for name in draft.data.__struct_fields__)
    bodies = {name: value for name, value in fields if isinstance(value, Body)}
    data = clean_struct(msgspec.structs.replace(draft.data, **dict.fromkeys(bodies, Body(""))))
    return msgspec.structs.replace(draft, data=msgspec.structs.replace(data, **bodies))


def _size(entry: TranscriptEntry) -> int:
    return len(getattr(entry, "text", "")) + len(getattr(entry, "output", ""))
