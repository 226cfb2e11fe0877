"""Whether a step is done: its files exist, carry their markers and pass their checks; and the event that says so.

A marker is the only proof. A file without it is unfinished, whatever its size.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TypeVar

import msgspec

from agentx.engine.engine import Engine
from agentx.engine.moment_parser import event_at
from agentx.pipelines.files import Files, FileText
from agentx.policy import file_policy
from agentx.quality.sandbox import run_in_copy
from agentx.recording.pipeline_messages import LOOK_AT
from agentx.recording.staging import Content
from agentx.storage.errors import AgentXError
from agentx.storage.events.pipeline_events import ProvedFile, StageProved
from agentx.storage.events.types import Draft, Event, FileChange, Payload
from agentx.storage.git.objects import ObjectDamaged
from agentx.storage.secrets.redaction import clean
from agentx.storage.text import one_line
from agentx.synthesis.pipelines.definition.checks import (
    body_of,
    doubts,
    has_marker,
    look,
    marker_fault,
    verdict_of,
)
from agentx.synthesis.pipelines.definition.pipeline import Check
from agentx.synthesis.pipelines.definition.plan import Plan, Step, WriteFile
from agentx.synthesis.pipelines.dispatching.prompt import in_words
from agentx.synthesis.pipelines.proving.markdown import lines_of
from agentx.synthesis.pipelines.running.memory import Appending, appending, remembered, superseded
from agentx.synthesis.pipelines.running.replaced import Added, in_force
from agentx.synthesis.pipelines.running.schedule import Due
from agentx.tools.quality_tools import sandbox_policy

ACTOR = "engine:pipeline"

Part = TypeVar("Part")

LEARNED_BYTES = 7_000
"""What is remembered of one step fits into one event; the files hold all of it."""

SUPERSEDED_BYTES = 1_500
"""The same of what holds no more; the rest ends when the step is done again."""

HELD_BYTES = 3_000
"""So much of what was looked at stands in that event."""

_COMMAND_TIME_S = 120.0
_COMMAND_OUTPUT = 20_000
_SHOWN_OUTPUT = 600


class Examined(msgspec.Struct, frozen=True):
    """What was looked at, and what is wrong.

    Attributes:
        outputs: The files of the step that are there.
        texts: Their texts, by path.
        held: What holds, a few words for each check, and what somebody may look at.
        wrong: What does not, a sentence each; none where the step is done.
        verdict: Of the file that gives one.
    """

    outputs: tuple[ProvedFile, ...]
    texts: Mapping[str, str]
    held: tuple[str, ...]
    wrong: tuple[str, ...]
    verdict: str = ""


class Examiner:
    """Looks at what was written.

    Args:
        engine: The workspace.
        plan: The pipeline.
        files: Reads its files.
    """

    def __init__(self, engine: Engine, plan: Plan, files: Files) -> None:
        self._engine = engine
        self._plan = plan
        self._files = files
        self._markers = {one.path: one.rule.marker for step in plan.steps.values() for one in step.writes}

    def examine(self, step: Step, found: Sequence[str] = ()) -> Examined:
        """Whether a step is done.

        Args:
            step: The step.
            found: What the engine found wrong in what its role reads: a verdict cannot be PASS against it.
        """
        outputs: list[ProvedFile] = []
        texts: dict[str, str] = {}
        held: list[str] = []
        wrong: list[str] = []
        verdict = ""
        for write in step.writes:
            file = self._files.text(write.path)
            if file is None:
                wrong.append(f"{write.path} was not written.")
                continue
            faults = self.faults(step, write, file.text)
            if not faults:
                faults = [said for check in write.rule.checks if (said := self._command(check, write.path))]
            wrong += faults
            texts[write.path] = file.text
            outputs.append(ProvedFile(write.path, file.blob, write.rule.marker))
            held += [] if faults else [f"{write.path}: marker {write.rule.marker}"] * bool(write.rule.marker)
            held += [] if faults else [f"{write.path}: {said}" for said in _held(write, step)]
            held += [f"{LOOK_AT}{said}" for said in self._doubts(step, write.rule.checks, file)]
            if write.rule.verdict:
                verdict = verdict_of(file.text)
                if found and verdict == "PASS":
                    wrong.append(
                        f"{write.path} says PASS against what was found for certain: {' '.join(found)} Say FAIL."
                    )
        return Examined(tuple(outputs), texts, tuple(held), tuple(wrong), verdict)

    def faults(self, step: Step, write: WriteFile, text: str, path: str = "") -> list[str]:
        """What is wrong with a file of a step, commands aside; of a part of it under another path, with its marker."""
        path = path or write.path
        if unfinished := marker_fault(text, write.rule.marker, path):
            return [f"Role {step.role}: {path} is unfinished. {unfinished}"]
        body = body_of(text, write.rule.marker, path)
        if not body.strip():
            return [f"{path} is empty but for its marker."]
        if path != write.path:
            return []
        found = [said for check in write.rule.checks for said in self.look(step, check, body, path)]
        if write.rule.verdict and not verdict_of(text):
            found.append(f"{path} gives no verdict: it needs one line `Verdict: PASS` or `Verdict: FAIL`.")
        return found

    def look(self, step: Step, check: Check, body: str, path: str) -> list[str]:
        """What a check finds in a text; each sentence names the file."""
        if check.command:
            return []
        return [
            one_line(said if path in said else f"{path}: {said}")
            for said in look(check, body, step.values, lambda alias: self._text_of(step, alias), step.item)
        ]

    def findings(self, step: Step) -> list[str]:
        """What the engine finds wrong in what a step's role reads."""
        found: list[str] = []
        for read in step.reads:
            for check in read.rule.checks:
                for file in self._files.of(read):
                    found += self.look(step, check, self.body(file.path, file.text), file.path)
                    if said := self._command(check, file.path):
                        found.append(said)
        return found

    def doubts(self, step: Step) -> list[str]:
        """What in a step's reads may be wrong, for its role to look at."""
        return [
            said
            for read in step.reads
            if read.rule.checks
            for file in self._files.of(read)
            for said in self._doubts(step, read.rule.checks, file)
        ]

    def _doubts(self, step: Step, checks: Iterable[Check], file: FileText) -> list[str]:
        body = self.body(file.path, file.text)
        found = (
            said for one in checks for said in doubts(one, body, lambda alias: self._text_of(step, alias))
        )
        return [one_line(f"{file.path}: {said}") for said in found]

    def body(self, path: str, text: str) -> str:
        """A file of the pipeline without its marker."""
        return body_of(text, self._markers.get(path, ""), path)

    def _text_of(self, step: Step, alias: str) -> str:
        """The text of a file of the pipeline, for a check; empty where it is not there yet."""
        paths = self._plan.paths.get(alias, ())
        own = next((read.paths for read in step.reads if read.rule.file == alias), paths)
        source = self._plan.pipeline.files[alias].source
        files = (self._files.text(path, source) for path in own if "*" not in path)
        texts = [in_force(file.text) for file in files if file]
        return "\n".join(texts)

    def _command(self, check: Check, path: str) -> str:
        """What a command finds wrong with a file; empty where it ends with 0."""
        if not check.command:
            return ""
        line = shlex.join([*check.command, path])
        result = run_in_copy(
            self._engine.write_path.artifacts.root,
            line,
            timeout_s=_COMMAND_TIME_S,
            max_output_bytes=_COMMAND_OUTPUT,
            policy=sandbox_policy(self._engine, "command of a check"),
        )
        if result.exit_code == 0:
            return ""
        ended = (
            f"took longer than {_COMMAND_TIME_S:g} s"
            if result.timed_out
            else f"ended with {result.exit_code}"
        )
        return f"{path}: `{line}` {ended}: {one_line(clean(result.output))[-_SHOWN_OUTPUT:]}"

    # --- proving --------------------------------------------------------------------------------------------

    def prove(
        self,
        due: Due,
        examined: Examined,
        *,
        run: str,
        before: Sequence[Payload] = (),
        found: bool = False,
    ) -> list[Event]:
        """Put on record that a step is done, with what it adds to the long-term memory, in one event.

        Args:
            due: The step, with its round.
            examined: What was looked at.
            run: The run that did it; empty for none.
            before: Payloads that are recorded before it, in the same breath where nothing is appended.
            found: Whether the files were there already.
        """
        step = due.step
        proved = StageProved(
            pipeline=self._plan.pipeline.pipeline,
            stage=step.stage,
            item=step.item,
            round=due.round,
            outputs=examined.outputs,
            checks=fitting(examined.held, HELD_BYTES),
            verdict=examined.verdict,
            found=found,
        )
        path = self._engine.write_path
        agent = f"agent:{step.role}" if run else ACTOR
        drafts = [Draft(data=data, actor=agent, run=run) for data in before]
        if not step.appends:
            return path.record([*drafts, Draft(data=proved, actor=ACTOR, run=run)])
        with path.exclusive():
            events = path.record(drafts)
            contents, proved = self._appended(due, examined, proved)

            def payload(changes: tuple[FileChange, ...]) -> StageProved:
                return msgspec.structs.replace(proved, changes=changes)

            def check() -> None:
                file_policy.require(self._engine, contents, actor=ACTOR, run=run)

            if contents:
                return [*events, *path.write(contents, payload, actor=ACTOR, run=run, check=check)]
            return [*events, *path.record([Draft(data=proved, actor=ACTOR, run=run)])]

    def _appended(
        self, due: Due, examined: Examined, proved: StageProved
    ) -> tuple[dict[str, Content | None], StageProved]:
        """What the files of the long-term memory hold then, and the proof with what is remembered of it."""
        before = remembered(filter(None, (event_at(self._engine, seq) for seq in due.remembered)))
        texts: dict[str, str] = {}
        made: list[Appending] = []
        for path in dict.fromkeys(append.to for append in due.step.appends):
            appends = [append for append in due.step.appends if append.to == path]
            file = self._files.text(path)
            earlier = [self._added(*blobs) for blobs in before.added.get(path, ())]
            held = file.text if file else ""
            if one := appending(appends, held, examined.texts, due.step.values, earlier):
                texts |= {path: held + one.text} if one.text else {}
                made.append(one)
        learned = [fact for one in made for fact in one.learned]
        new = fitting((fact for fact in learned if fact not in before.facts.values()), LEARNED_BYTES)
        ended = fitting(superseded(before.facts, learned, new), SUPERSEDED_BYTES)
        contents: dict[str, Content | None] = {path: Content(text.encode()) for path, text in texts.items()}
        return contents, msgspec.structs.replace(proved, learned=new, superseded=ended)

    def _added(self, before: str, after: str) -> Added:
        """What was added to a file, and where; nothing where that was purged."""
        try:
            old, new = (
                self._engine.write_path.repo.read_blob(blob) if blob else b"" for blob in (before, after)
            )
        except ObjectDamaged:
            return Added(0, "")
        line = len(lines_of(old.decode(errors="replace"))) - 1
        return Added(line, new.removeprefix(old).decode(errors="replace"))

    def still_stands(self, step: Step, outputs: Sequence[ProvedFile], known: Mapping[str, str]) -> list[str]:
        """What of a proof holds no more.

        Args:
            step: The step.
            outputs: The files that proved it.
            known: Blob id of each file that is there, by path.
        """
        proved = {output.path: output.blob for output in outputs}
        return [
            said
            for write in step.writes
            if (said := self._doubt(write, proved.get(write.path, ""), known.get(write.path, "")))
        ]

    def _doubt(self, write: WriteFile, proved: str, now: str) -> str:
        if not proved:
            return f"{write.path} was not among its files when it was proved."
        if not now:
            return f"{write.path} is gone."
        if now == proved:
            return ""
        try:
            file = self._files.text(write.path)
        except AgentXError as error:
            return str(error)
        marked = file is not None and has_marker(file.text, write.rule.marker, write.path)
        return "" if marked else f"{write.path} was changed and lost its marker."


def _held(write: WriteFile, step: Step) -> list[str]:
    return [said.rstrip(".") for check in write.rule.checks if (said := in_words(check, step.values))]


def fitting(parts: Iterable[Part], most: int) -> tuple[Part, ...]:
    """The first of some parts, as many as take so many bytes in an event, which is one line."""
    every = tuple(parts)
    sizes = accumulate(len(msgspec.json.encode(one)) for one in every)
    return tuple(one for one, size in zip(every, sizes, strict=True) if size <= most)
