"""Steps that a person does: approve what was made, or write a file; asked once, as a call that waits.

``agentx approve ID`` decides. A refusal has the stages that wrote the files done again, with its reason.
"""

import json
from collections.abc import Callable

from agentx.engine.engine import Engine
from agentx.pipelines.pointing.pointed_files import Files
from agentx.pipelines.results import Came
from agentx.pipelines.step_proof import ACTOR, Examiner
from agentx.pipelines.tracked import pipelines
from agentx.policy import approvals
from agentx.storage.events.pipeline_events import APPROVE_STAGE, StageReopened
from agentx.storage.events.types import Draft, RunEnded, ToolCallExecuted, ToolCallRequested, ToolStatus
from agentx.storage.text import one_line
from agentx.synthesis.pipelines.definition.naming import path_pattern
from agentx.synthesis.pipelines.definition.plan import Plan, Step
from agentx.synthesis.pipelines.running.due_steps import Due
from agentx.synthesis.pipelines.templates import fill
from agentx.synthesis.state.state import PendingCall

_FILES_KEPT = 50
"""Maximum number of files that a request names."""

_CHANGED = "What was to be approved has changed since it was shown."


class PersonSteps:
    """Asks a person to do the steps of a pipeline that are theirs.

    ``start`` starts the run of a step and returns its ID.
    """

    def __init__(
        self, engine: Engine, plan: Plan, files: Files, examiner: Examiner, start: Callable[[Due], str]
    ) -> None:
        self._engine, self._plan, self._files, self._examiner = engine, plan, files, examiner
        self._start = start

    def do(self, due: Due, run: str) -> Came:
        """Ask for a step, or take the answer to what was asked in ``run``."""
        calls = [one for one in self._engine.snapshot().pending.values() if run and one.run == run]
        if not calls:
            return self._ask(due, run or self._start(due))
        (call,) = calls
        decided = approvals.decision(self._engine, call)
        if decided is not False and self._has_changed(due.step, call):
            # A person's yes is for what they were shown, not for what came later.
            self._settle(call, "FAILED", _CHANGED)
            return self._ask(due, run, _CHANGED if decided else "")
        if decided is None:
            return self._wait(due, call.call_id)
        if not decided:
            return self._refused(due, call)
        examined = self._examiner.examine(due.step)
        if examined.wrong:
            wrong = " ".join(examined.wrong)
            self._settle(call, "FAILED", wrong)
            return self._ask(due, run, wrong)
        self._settle(call, "SUCCEEDED", "A person approved it.")
        self._examiner.prove(
            due, examined, run=run, before=[RunEnded(status="COMPLETED", summary="Approved.")]
        )
        return Came("COMPLETED")

    def _has_changed(self, step: Step, call: PendingCall) -> bool:
        """Return whether a file that the step reads is another than when the person was asked."""
        shown = call.arguments.get("files")
        now = [file for read in step.reads for file in self._files.of(read)]
        return isinstance(shown, dict) and any(
            shown.get(one.path) != one.blob
            for one in now[: _FILES_KEPT if len(shown) >= _FILES_KEPT else None]
        )

    def _ask(self, due: Due, run: str, wrong: str = "") -> Came:
        step, state = due.step, self._engine.snapshot()
        asked = state.counts.get(ToolCallRequested.__name__, 0)
        call_id = f"{step.stage}{f'-{step.item}' if step.item else ''}-{asked + 1}"
        shown, left_out = self._blobs(step)
        # What a person is shown, whole: their approval is of exactly this.
        whole = {
            "stage": step.stage,
            "item": step.item,
            "question": self._question(step),
            "files": shown,
            "before": self._before(step, shown),
            "writes": [write.path for write in step.writes],
            "left_out": left_out,
        }
        request = ToolCallRequested(
            call_id=call_id,
            tool=APPROVE_STAGE,
            arguments={"stage": step.stage, "item": step.item, "files": shown},
            whole=self._engine.write_path.body(json.dumps(whole)),
            awaits_approval=True,
        )
        ended = RunEnded(status="WAITING", reason=one_line(wrong or call_id))
        drafts = [Draft(data=data, actor=ACTOR, run=run) for data in (request, ended)]
        self._engine.write_path.record(drafts)
        return self._wait(due, call_id, wrong)

    def _blobs(self, step: Step) -> tuple[dict[str, str], int]:
        """Return the content ids of the files that a person is shown, by path, and how many are left out."""
        shown = [file for read in step.reads for file in self._files.of(read)]
        own = (self._files.text(write.path) for write in step.writes)
        found = (*shown, *(file for file in own if file))
        return {one.path: one.blob for one in found[:_FILES_KEPT]}, len(found[_FILES_KEPT:])

    def _before(self, step: Step, shown: dict[str, str]) -> dict[str, str]:
        """Return the content ids of those files that a person decided on last."""
        seen = pipelines(self._engine).of(self._plan.pipeline.pipeline).seen.get(step.key, {})
        return {path: seen[path] for path in shown if path in seen}

    def _question(self, step: Step) -> str:
        """Return what a person is asked: the task of their role."""
        task = fill(self._plan.role(step).task, step.values).strip()
        return task if not task or task[-1] in ".?!" else f"{task}."

    def _wait(self, due: Due, call_id: str, wrong: str = "") -> Came:
        step = due.step
        if step.writes:
            what = f"Write {', '.join(write.path for write in step.writes)}, then `agentx approve {call_id}`"
        else:
            named = ", ".join(path for read in step.reads for path in read.paths)
            what = f"Look at {named}: `agentx approve {call_id}` (or `--deny --reason …`)"
        goes_on = f"{what}, and `agentx pipeline run FILE` goes on."
        parts = [wrong, self._question(step), goes_on]
        return Came("WAITING", one_line(" ".join(filter(None, parts))))

    def _refused(self, due: Due, call: PendingCall) -> Came:
        """Have the steps that wrote what was refused done again."""
        reason = one_line(call.reason) or "a person refused it"
        self._settle(call, "DENIED", f"A person refused it: {reason}")
        read = [path_pattern(path) for one in due.step.reads if not one.source for path in one.paths]
        writers = [
            step
            for step in self._plan.steps.values()
            if step.key != due.step.key
            and any(path.fullmatch(write.path) for path in read for write in step.writes)
        ]
        ended = RunEnded(status="INTERRUPTED", reason=reason)
        self._engine.write_path.record([Draft(data=ended, actor=ACTOR, run=call.run)])
        if not writers:
            again = "Change what it reads, and `agentx pipeline run FILE --retry` asks again."
            return Came("FAILED", f"You refused it: {reason.rstrip('.')}. {again}", final=True)
        name, actor = self._plan.pipeline.pipeline, self._engine.settings.actor
        self._engine.write_path.record(
            [
                Draft(
                    data=StageReopened(pipeline=name, stage=one.stage, item=one.item, reason=reason),
                    actor=actor,
                )
                for one in writers
            ]
        )
        return Came("INTERRUPTED", reason, reopened=True)

    def _settle(self, call: PendingCall, status: ToolStatus, output: str) -> None:
        done = ToolCallExecuted(
            call_id=call.call_id,
            tool=call.tool,
            status=status,
            arguments=call.arguments,
            output=self._engine.write_path.body(output),
        )
        self._engine.write_path.record([Draft(data=done, actor=ACTOR, run=call.run, cause=call.seq)])
