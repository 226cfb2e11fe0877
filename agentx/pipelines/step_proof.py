"""Proof of a step: its files exist, carry their markers and pass their checks; an event records this.

A marker is the only proof. A file without it is unfinished, whatever its size.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from agentx.engine.engine import Engine
from agentx.engine.moment_parser import event_at
from agentx.pipelines.pointing.inputs import inputs_of, rests_on
from agentx.pipelines.pointing.pointed_files import Files
from agentx.policy import file_policy
from agentx.quality.sandbox import run_in_copy
from agentx.recording.staging import Content
from agentx.storage.errors import AgentXError
from agentx.storage.events.pipeline_events import (
    LEARNED_BYTES,
    SUPERSEDED_BYTES,
    Basis,
    ProvedFile,
    StageProved,
    fitting,
)
from agentx.storage.events.types import Body, Draft, Event, FileChange, Payload
from agentx.storage.git.objects import ObjectDamaged
from agentx.storage.secrets.redaction import clean
from agentx.storage.text import one_line
from agentx.synthesis.pipelines.definition.checks import (
    body_of,
    has_marker,
    look,
    marker_fault,
    verdict_of,
    wrapping_fault,
)
from agentx.synthesis.pipelines.definition.pipeline import Check
from agentx.synthesis.pipelines.definition.plan import Plan, Step, WriteFile, is_by_person
from agentx.synthesis.pipelines.dispatching.prompt import in_words
from agentx.synthesis.pipelines.proving.markdown import lines_of
from agentx.synthesis.pipelines.running.due_steps import Due
from agentx.synthesis.pipelines.running.long_term_memory import Appending, appending, remembered, superseded
from agentx.synthesis.pipelines.running.replaced import Added
from agentx.tools.quality_tools import sandbox_policy

ACTOR = "engine:pipeline"

HELD_BYTES = 3_000
"""Bytes of the passed checks in that event."""

_COMMAND_TIME_S = 120.0
_COMMAND_OUTPUT = 20_000
_SHOWN_OUTPUT = 600


class Examined(msgspec.Struct, frozen=True):
    """The result of examining a step.

    Attributes:
        outputs: The files of the step that exist.
        texts: Their texts, by path.
        held: The checks that passed, a few words each.
        wrong: The faults, one sentence each; empty where the step is done.
        verdict: The verdict of the file that gives one.
    """

    outputs: tuple[ProvedFile, ...]
    texts: Mapping[str, str]
    held: tuple[str, ...]
    wrong: tuple[str, ...]
    verdict: str = ""


class Examiner:
    """Checks what was written."""

    def __init__(
        self, engine: Engine, plan: Plan, files: Files, look: Callable[[str, str], list[str]]
    ) -> None:
        self._engine, self._plan, self._files, self._look = engine, plan, files, look
        self._markers = {one.path: one.rule.marker for step in plan.steps.values() for one in step.writes}

    def examine(self, step: Step, found: Sequence[str] = ()) -> Examined:
        """Check whether a step is done.

        A verdict of PASS contradicts ``found``, the faults that the engine found in what the role reads.
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
            if not faults:
                passed = [in_words(check, step.values).rstrip(".") for check in write.rule.checks]
                marker = f"marker {write.rule.marker}" if write.rule.marker else ""
                held += [f"{write.path}: {said}" for said in (marker, *passed) if said]
            if write.rule.verdict:
                verdict = verdict_of(file.text)
                if found and verdict == "PASS":
                    against = f"{write.path} says PASS against what was found for certain"
                    wrong.append(f"{against}: {' '.join(found)} Say FAIL.")
        return Examined(tuple(outputs), texts, tuple(held), tuple(wrong), verdict)

    def faults(self, step: Step, write: WriteFile, text: str, path: str = "") -> list[str]:
        """Return what is wrong with a file of a step, without running commands.

        A ``path`` other than that of ``write`` is a part of the file; only its marker and content are
        checked.
        """
        path = path or write.path
        body = body_of(text, write.rule.marker, path)
        if wrapped := wrapping_fault(body, path):
            return [wrapped]
        if unfinished := marker_fault(text, write.rule.marker, path):
            return [f"Role {step.role}: {path} is unfinished. {unfinished}"]
        if "\0" in text:
            line = text.count("\n", 0, text.index("\0")) + 1
            return [f"{path} has a NUL in line {line}, so it is not text."]
        if not body.strip():
            return [f"{path} is empty but for its marker."]
        if path != write.path:
            return []
        found = [said for check in write.rule.checks for said in self.look(step, check, body, path)]
        found += [
            one_line(said if path in said else f"{path}: {said}")
            for said in self._look(write.rule.file, text)
        ]
        if write.rule.verdict and not verdict_of(text):
            found.append(f"{path} gives no verdict: it needs one line `Verdict: PASS` or `Verdict: FAIL`.")
        return found

    def look(self, step: Step, check: Check, body: str, path: str) -> list[str]:
        """Return what a check finds in a text; each sentence names the file."""
        if check.command:
            return []
        found = look(check, body, step.values)
        return [one_line(said if path in said else f"{path}: {said}") for said in found]

    def findings(self, step: Step) -> list[str]:
        """Return the faults that the engine finds in what a step's role reads."""
        found: list[str] = []
        for read in step.reads:
            for check in read.rule.checks:
                for file in self._files.of(read):
                    found += self.look(step, check, self.body(file.path, file.text), file.path)
                    if said := self._command(check, file.path):
                        found.append(said)
        return found

    def body(self, path: str, text: str) -> str:
        """Return the text of a pipeline's file without its marker."""
        return body_of(text, self._markers.get(path, ""), path)

    def _command(self, check: Check, path: str) -> str:
        """Return what a command finds wrong with a file; empty where it exits with 0."""
        if not check.command:
            return ""
        line = shlex.join([*check.command, path])
        result = run_in_copy(
            self._engine.artifacts.root,
            line,
            timeout_s=_COMMAND_TIME_S,
            max_output_bytes=_COMMAND_OUTPUT,
            policy=sandbox_policy(self._engine, "command of a check"),
        )
        if result.exit_code == 0:
            return ""
        late = f"took longer than {_COMMAND_TIME_S:g} s"
        ended = late if result.timed_out else f"ended with {result.exit_code}"
        return f"{path}: `{line}` {ended}: {one_line(clean(result.output))[-_SHOWN_OUTPUT:]}"

    def prove(
        self, due: Due, examined: Examined, *, run: str, before: Sequence[Payload] = (), found: bool = False
    ) -> list[Event]:
        """Record in one event that a step is done, and what it adds to the long-term memory.

        ``before`` is recorded before it; in the same append where the step adds nothing to files. ``found``
        says whether the files existed before.
        """
        step, path = due.step, self._engine.write_path
        inputs, basis = Body(""), Basis()
        if found or is_by_person(self._plan.role(step)):  # no agent was given its inputs
            inputs, basis = rests_on(path, self._plan, step, inputs_of(self._files, step))
        proved = StageProved(
            pipeline=self._plan.pipeline.pipeline,
            stage=step.stage,
            item=step.item,
            round=due.round,
            outputs=examined.outputs,
            checks=fitting(examined.held, HELD_BYTES),
            verdict=examined.verdict,
            found=found,
            inputs=inputs,
            basis=basis,
        )
        agent = f"agent:{step.role}" if run else ACTOR
        drafts = [Draft(data=data, actor=agent, run=run) for data in before]
        if not step.appends:
            return path.record([*drafts, Draft(data=proved, actor=ACTOR, run=run)])
        with path.exclusive():
            events = path.record(drafts)
            contents, proved = self._appended(due, examined, proved)

            def payload(changes: tuple[FileChange, ...]) -> StageProved:
                return msgspec.structs.replace(proved, changes=changes)

            if not contents:
                return [*events, *path.record([Draft(data=proved, actor=ACTOR, run=run)])]
            require = partial(file_policy.require, self._engine, contents, actor=ACTOR, run=run)
            return [*events, *path.write(contents, payload, actor=ACTOR, run=run, check=require)]

    def _appended(
        self, due: Due, examined: Examined, proved: StageProved
    ) -> tuple[dict[str, Content | None], StageProved]:
        """Return the new contents of the long-term memory files, and the proof with the facts of them."""
        before = remembered(filter(None, (event_at(self._engine.log, seq) for seq in due.remembered)))
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
        """Return what was added to a file, and where; empty where that content was purged."""
        read = self._engine.git.repo.read_blob
        try:
            old, new = (read(blob) if blob else b"" for blob in (before, after))
        except ObjectDamaged:
            return Added(0, "")
        line = len(lines_of(old.decode(errors="replace"))) - 1
        return Added(line, new.removeprefix(old).decode(errors="replace"))

    def still_stands(self, step: Step, outputs: Sequence[ProvedFile], known: Mapping[str, str]) -> list[str]:
        """Return what no longer holds of a proof.

        ``known`` has the blob id of each existing file, by path.
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
