"""Running a pipeline: dispatch agents in parallel, each when its inputs are proved; resume after a stop.

The history alone says what is done. A killed run leaves three things: proofs, marked files without a proof,
and dispatches without an end. The next run keeps the first, proves the second, and repeats the third.
"""

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from math import inf
from pathlib import Path
from typing import Literal

import msgspec

from agentx.agents.turn import alone
from agentx.engine.engine import Engine
from agentx.engine.models import named_models
from agentx.pipelines.allowance import Allowance
from agentx.pipelines.costs import model_faults
from agentx.pipelines.dispatcher import Dispatcher
from agentx.pipelines.found_items import as_body, find_items, read_list
from agentx.pipelines.pointing.changes import ChangeWords, present_of
from agentx.pipelines.pointing.inputs import missing
from agentx.pipelines.pointing.pointed_files import Files
from agentx.pipelines.results import Came
from agentx.pipelines.selection import StepSelection
from agentx.pipelines.step_proof import ACTOR
from agentx.pipelines.tracked import Tracker, pipelines
from agentx.pipelines.work_queue import WorkQueue
from agentx.pipelines.worker_pool import Crew
from agentx.policy import file_policy
from agentx.policy.amendments import ForbiddenEdit, amend, breaches
from agentx.quality.sandbox import isolation_for
from agentx.recording.staging import Content
from agentx.storage.errors import AgentXError
from agentx.storage.events.pipeline_events import (
    Dispatched,
    FileRule,
    ItemsFound,
    PipelineEnded,
    PipelineStarted,
    StageKept,
    StageReopened,
    fitting,
)
from agentx.storage.events.types import Draft, FileChange, ToolCallExecuted
from agentx.storage.log.history import told_already
from agentx.storage.text import one_line
from agentx.synthesis.model.port import ModelClient, Usage
from agentx.synthesis.pipelines.definition.claims import patterns_of, rules_of
from agentx.synthesis.pipelines.definition.faults import PipelineInvalid
from agentx.synthesis.pipelines.definition.item_lists import ListInvalid
from agentx.synthesis.pipelines.definition.pipeline import FoundItems
from agentx.synthesis.pipelines.definition.plan import Plan, Step, is_by_model, is_by_person, is_by_program
from agentx.synthesis.pipelines.definition.reading import read, with_variables
from agentx.synthesis.pipelines.definition.steps import resolve
from agentx.synthesis.pipelines.running.due_steps import Due, Schedule
from agentx.synthesis.pipelines.running.pipeline_progress import Progress, Proof, TaskPart
from agentx.synthesis.pipelines.running.staleness import Stale, Staleness
from agentx.tools.quality_tools import sandbox_policy

Models = Callable[[str], ModelClient]
"""Returns the model with a name; for an empty name, the configured one."""

Status = Literal["COMPLETED", "PARTIAL", "FAILED", "LIMIT_REACHED", "INTERRUPTED", "WAITING"]


_TOLD = 5
"""Maximum number of failures that the reason of an end lists."""

_PATHS_BYTES = 4_000
"""Bytes of the patterns of its files in the event of a start."""

_REASON_CHARACTERS = 3_000
"""Characters of that reason kept in its event, which is one line."""


class PipelineStopped(AgentXError):
    """A pipeline cannot go on until the user has settled something."""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a pipeline's run ended.

    Attributes:
        status: ``COMPLETED`` where all is proved, also with the verdict FAIL in a loop that goes on;
            ``PARTIAL`` where all is proved that was asked for.
        reason: One sentence for the user.
        proved: Number of proved steps, out of ``steps``.
        failed: Reasons, by step.
        not_passed: Proved steps whose last verdict is FAIL, with a sentence each.
        waiting: Calls that wait for approval, by step.
        incidents: What the user should look at, of this run: changes from outside, denied calls, processes
            that programs left.
        dispatches: Number of agents sent, in all runs of the pipeline.
        usage: What they used.
    """

    pipeline: str
    status: Status
    reason: str
    proved: int
    steps: int
    failed: dict[str, str] = {}
    not_passed: dict[str, str] = {}
    waiting: dict[str, str] = {}
    incidents: tuple[str, ...] = ()
    dispatches: int = 0
    usage: Usage = Usage()


class Runner:
    """Runs one pipeline in one workspace.

    Args:
        engine: The workspace.
        path: The pipeline's file.
        models: Returns models by name; by default, those that are configured.
        jobs: Maximum number of agents that work at once.
        note: Called with messages for the user during the run.
        variables: Values in place of those of the file; those of the last start remain.

    Attributes:
        plan: The resolved content of the file, with the items that are known.
        files: Reads the files that roles are pointed to.
        variables: Values in place of those of the file, given now or at the last start.

    Raises:
        PipelineInvalid: The file does not define a valid pipeline.
    """

    def __init__(
        self,
        engine: Engine,
        path: Path,
        models: Models | None = None,
        *,
        jobs: int = 1,
        note: Callable[[str], object] = str,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        pipeline, self._source = read(path)
        self.name = pipeline.pipeline
        self._engine, self._path = engine, path.resolve()
        progress = pipelines(engine).of(self.name)
        kept = {name: value for name, value in progress.variables.items() if name in pipeline.variables}
        self.variables = kept | dict(variables or {})
        self._pipeline = with_variables(pipeline, self._source, self.variables)
        self.files = Files(engine.artifacts, self._pipeline, self._path.parent, engine.trust)
        self._found = find_items(self._pipeline, self.files, progress.proved)
        self.plan: Plan = resolve(self._pipeline, self._source, self._found.known)
        self._jobs, self._note = max(1, jobs), note
        self._models = models or named_models(engine, "model of a role")
        self._waiting: dict[str, str] = {}
        self._meddled: list[str] = []
        self._limit = self._unanswered = ""
        self._incidents = 0
        self._stopped = False
        self._staleness: Staleness | None = None
        self._allowance = Allowance(self.plan, lambda: self._stopped or bool(self._unanswered))
        self._dispatcher = self._new_dispatcher()

    def _new_dispatcher(self) -> Dispatcher:
        return Dispatcher(
            self._engine, self.plan, self.files, self._models, self._allowance, self._list_faults
        )

    def run(self, *, retry: bool = False, only: Collection[str] = (), until: Collection[str] = ()) -> Ended:
        """Run the pipeline until all is proved, or nothing more can be done.

        ``retry`` gives another chance to steps that have used up their tries. ``only`` names stages and
        loops, each as ``STAGE`` or ``STAGE:ITEM``, beyond which nothing is done. ``until`` names stages and
        loops that are done with what they wait for.

        Raises:
            UsageError: A stage or item in ``only`` or ``until`` is unknown.
            ModelError: No model is set for a role, or it cannot be used.
            PipelineStopped: A file was changed against its class; the user has to settle that first.
            WorkspaceBusy: Another run is in progress in this workspace.
            Restricted: The workspace is not trusted.
        """
        self._engine.trust.require(
            "pipeline", f"the pipeline {self.name!r} and the programs it names would run"
        )
        with alone(self._engine):
            wanted = StepSelection(only, until)
            wanted.steps(self.plan)  # an unknown stage is refused before anything is recorded
            self._start(retry=retry)
            tracker = Tracker(self._engine, self.name)
            self._staleness = None
            try:
                self._incidents = len(tracker.progress.incidents)
                self._allowance.begin(tracker.progress)
                self._reopen(tracker.progress)
                self._write_log(tracker.progress)
                with tracker.lock:
                    queue = WorkQueue(self.plan, tracker.progress, wanted, self._jobs)
                self._work(queue, tracker)
                return self._end(queue.schedule, tracker.progress)
            except KeyboardInterrupt:
                self._record_end(
                    "INTERRUPTED", "It was cut off; `agentx pipeline run FILE` goes on where it was."
                )
                raise
            except Exception as error:
                self._record_end(
                    "FAILED", f"A fault of the engine stopped it: {type(error).__name__}: {error}"
                )
                raise
            finally:
                tracker.close()
                self._engine.write_path.flush()

    # --- beginning ------------------------------------------------------------------------------------------

    def _start(self, *, retry: bool) -> None:
        """Record the start, after reporting what would stop the pipeline before any dispatch.

        That is an unusable model, a change that people made to a file with a class, or a missing input that
        no role will write.
        """
        roles = [role for role in self.plan.pipeline.roles.values() if is_by_model(role)]
        names = {name: self._models(name).name for name in {role.model for role in roles}}
        self._engine.edits.scan()
        if broken := _settle(self._engine, self.name, self._free()):
            raise PipelineStopped(" ".join(broken))
        done = pipelines(self._engine).of(self.name).proved
        absent = missing(self.plan, self.files, done)
        if missed := [
            *self._found.missing,
            *absent,
            *model_faults(self.plan, lambda role: names[role.model]),
        ]:
            more = f" … and {len(missed) - _TOLD} more" if len(missed) > _TOLD else ""
            raise PipelineStopped("\n".join(missed[:_TOLD]) + more)
        self._warn()
        definition = self._source.text
        started = PipelineStarted(
            name=self.name,
            definition=self._engine.write_path.body(definition),
            digest=blake2b(definition.encode(), digest_size=16).hexdigest(),
            files=self._file_rules(),
            retry=retry,
            variables=self.variables,
            file=self._place(),
            paths=fitting(patterns_of(self.plan), _PATHS_BYTES),
        )
        drafts = [Draft(data=started, actor=self._engine.settings.actor)]
        if self._found.known:
            drafts.append(Draft(data=self._items_found(), actor=ACTOR))
        self._engine.write_path.record(drafts)

    def _place(self) -> str:
        """Return the path of the pipeline's file, relative to the workspace where that is possible."""
        try:
            return Path(os.path.relpath(self._path, self._engine.root)).as_posix()
        except ValueError:  # another drive
            return self._path.as_posix()

    def _items_found(self) -> ItemsFound:
        known = self._found.known
        return ItemsFound(
            pipeline=self.name,
            items=as_body(self._engine, known),
            counts={name: len(items) for name, items in known.items()},
            files=self._file_rules(),
        )

    def _file_rules(self) -> tuple[FileRule, ...]:
        return (*rules_of(self.plan), *self._own_rules())

    def _warn(self) -> None:
        """Tell the user, once, that programs run without the sandbox because this system has none."""
        roles = self.plan.pipeline.roles.items()
        free = [name for name, role in roles if is_by_program(role) and role.sandbox]
        isolation, notes = isolation_for(sandbox_policy(self._engine, "by")) if free else ("none", ())
        if free and isolation == "none" and notes:
            names = ", ".join(free[:_TOLD]) + (" …" if free[_TOLD:] else "")
            why = notes[0].removeprefix("ran without isolation: ")
            self._note(
                f"The programs of {names} run as you, for there is no sandbox here ({why}). "
                "Install bubblewrap, or run the pipeline in a container."
            )

    def _free(self) -> set[str]:
        """Return the roles whose programs run without a sandbox."""
        programs = [(name, role) for name, role in self.plan.pipeline.roles.items() if is_by_program(role)]
        if not programs:
            return set()
        bare = isolation_for(sandbox_policy(self._engine, "by"))[0] == "none"
        return {name for name, role in programs if bare or not role.sandbox}

    def _meddled_with(self) -> list[str]:
        """Return what is wrong with static files that changed while programs ran without a sandbox."""
        free = self._free()
        if not free:
            return []
        found = [one for one in breaches(self._engine, self.name) if one.sort == "static"]
        spans = _spans(self._engine, self.name, free) if found else []
        return [_doubt(one) for one in found if _is_within(one, spans)]

    def _own_rules(self) -> Iterator[FileRule]:
        """Yield rules for files that only the user may change.

        These are the pipeline's file and the programs beside it, where they lie within the agents' reach.
        """
        root = self._engine.artifacts.root.resolve()
        words = (word for role in self.plan.pipeline.roles.values() for word in role.by)
        for path in dict.fromkeys((self._path, *((self._path.parent / word).resolve() for word in words))):
            if path.is_file() and path.is_relative_to(root):
                yield FileRule(path.relative_to(root).as_posix(), "static")

    def _reopen(self, progress: Progress) -> None:
        """Reopen steps whose proof no longer holds.

        That is so where a file of the step is gone, has lost its marker, or is not one that the step was
        proved with.
        """
        known = {path: entry.oid for path, entry in self._engine.git.manifest().items()}
        mine, others = _written(self.plan, progress)
        reopened = []
        for key, proof in progress.proved.items():
            step = self.plan.steps.get(key)
            if step is None or max(progress.reopened.get(one, 0) for one in (key, step.stage)) > proof.seq:
                continue
            # Another step may have written one of the files since
            own = {output.path for output in proof.outputs}
            if all(one.path in own and (one.path, known.get(one.path)) in mine for one in step.writes):
                continue
            wrong = self._dispatcher.examiner.still_stands(step, proof.outputs, known) or [
                f"{one.path} is of {others[made]}, which does not write it any more."
                for one in step.writes
                if (made := (one.path, known.get(one.path, ""))) in others and made not in mine
            ]
            if wrong:
                # What depends on a file that is gone is done again only if it comes out otherwise
                is_gone = own.issuperset(one.path for one in step.writes) and not any(
                    known.get(one.path, one.blob) != one.blob for one in proof.outputs
                )
                gone = StageReopened(
                    pipeline=self.name,
                    stage=step.stage,
                    item=step.item,
                    reason=" ".join(wrong),
                    if_changed=is_gone,
                )
                reopened.append(Draft(data=gone, actor=ACTOR))
        if reopened:
            self._engine.write_path.record(reopened)

    # --- working --------------------------------------------------------------------------------------------

    def _work(self, queue: WorkQueue, tracker: Tracker) -> None:
        with (
            Crew(self._jobs, lambda due: self._do(due, queue.schedule, tracker)) as crew,
            self._stoppable(crew),
        ):
            while True:
                with tracker.lock:
                    while due := queue.next():
                        self._limit = self._allowance.reached()
                        if self._stopped or self._limit or self._unanswered:
                            queue.give_back(due)
                            break
                        crew.give(due)
                if queue.is_idle:
                    return
                if (done := crew.next()) is None:
                    self._note(
                        "Stopping when the running agents are done; press Ctrl-C again to interrupt them."
                    )
                    continue
                due, came = done
                with tracker.lock:
                    if came.unsent:
                        queue.give_back(due)
                        continue
                    self._take(due, came)
                    queue.over(due, came)
                    proved = frozenset(tracker.progress.proved)
                # Recorded without the lock: a thread that records waits for it to tell the tracker
                if came.status == "COMPLETED" and self._finds_items(due.step, proved):
                    with tracker.lock:
                        queue.follow(self.plan)
                if came.status != "COMPLETED" or tracker.progress.anomalies:
                    self._write_log(tracker.progress)

    def _compared(self, tracker: Tracker) -> Staleness:
        if self._staleness is None or self._staleness.plan is not self.plan:
            present = present_of(self._engine, self.files, tracker.changed)
            self._staleness = Staleness(self.plan, tracker.progress, present)
        return self._staleness

    def _finds_items(self, step: Step, proved: Collection[str]) -> bool:
        """Read the lists of items that a step wrote; return whether the plan is another one now."""
        lists = {given.listed for given in self._pipeline.items.values() if isinstance(given, FoundItems)}
        # a person may have changed what they approve
        touched = step.writes or (step.reads if is_by_person(self.plan.role(step)) else ())
        if lists.isdisjoint(one.rule.file for one in touched):
            return False
        found = find_items(self._pipeline, self.files, proved, before=self._found.known)
        if found.known == self._found.known:
            return False
        self._found = found
        self.plan = resolve(self._pipeline, self._source, found.known)
        self._allowance.follow(self.plan)
        self._dispatcher = self._new_dispatcher()
        self._engine.write_path.record([Draft(data=self._items_found(), actor=ACTOR)])
        return True

    def _list_faults(self, file: str, text: str) -> list[str]:
        """Return why the pipeline cannot use a text as a list of items; empty where it can, or is not one."""
        faults: list[str] = []
        for name, given in self._pipeline.items.items():
            if isinstance(given, FoundItems) and given.listed == file:
                try:
                    items = read_list(self._pipeline, self.files, given, text)
                    resolve(self._pipeline, self._source, self._found.known | {name: items})
                except PipelineInvalid as error:
                    faults.append(f"The pipeline cannot use its items: {error}")
                except ListInvalid as error:
                    faults.append(str(error))
        return faults

    @contextmanager
    def _stoppable(self, crew: Crew) -> Iterator[None]:
        """Let working agents finish on the first Ctrl-C; a second one has its usual effect.

        If the first raised KeyboardInterrupt, the result of an agent that returns at that moment would be
        lost.
        """
        before = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or not callable(before):
            yield  # no signal comes here
            return

        def stop(_number: int, _frame: object) -> None:
            signal.signal(signal.SIGINT, before)
            self._stopped = True
            crew.wake()

        signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _do(self, due: Due, schedule: Schedule, tracker: Tracker) -> Came:
        """Do a step in a worker thread; files that exist already are proved instead of written again."""
        with tracker.lock:
            key, progress = due.step.key, tracker.progress
            floor = max(schedule.floor[key], schedule.doubt[key])
            written = progress.written.get(key)
            own, made, parts = False, set[str](), dict[int, TaskPart]()
            if written is not None and written.round == due.round and written.seq > floor:
                made = {path for path, blob in written.blobs.items() if blob}
                parts = {number: part for number, part in written.parts.items() if part.seq > floor}
                own = written.accepted or made.issuperset(write.path for write in due.step.writes)
            untouched = written is None and due.round == 1 and not floor and key not in progress.proved
            waits, amended = progress.waiting.get(key, ""), schedule.amended(key)
            proof = progress.proved.get(key)
            is_sent = written is not None and written.seq > floor
            in_doubt = schedule.in_doubt(key) and not (waits or is_sent)
        send = self._dispatcher
        try:
            if in_doubt and proof:
                return self._bring_up_to_date(due, proof, tracker)
            came = send.take_amended(due, amended, waits) if amended else None
            came = send.resume(due, waits) if waits and came is None else came
            if came is None and (own or untouched) and send.prove_found(due, own=own):
                came = Came("COMPLETED")
            return came or send.do(due, made, parts)
        except AgentXError as error:  # not dispatched: an input is missing or does not fit
            who = f"role {due.step.role} (stage {due.step.key})"
            return Came("FAILED", f"{who}: {one_line(str(error))}", final=True)

    def _bring_up_to_date(self, due: Due, proof: Proof, tracker: Tracker) -> Came:
        """Do a proved step again only if its inputs have changed.

        Its own files count as its result if they were changed, and are not written again.
        """
        step, send = due.step, self._dispatcher
        with tracker.lock:
            causes = tuple(self._compared(tracker).causes(step, proof, unknown=True))
            why = ChangeWords(tracker.changed, self.files).told(Stale(step, causes)).why
        if not causes:
            kept = StageKept(pipeline=self.name, stage=step.stage, item=step.item, round=due.round)
            self._engine.write_path.record([Draft(data=kept, actor=ACTOR)])
            return Came("COMPLETED")
        if changed := [cause.path for cause in causes if cause.kind == "output" and cause.after]:
            if came := send.take_amended(due, changed):
                return came
        elif {cause.kind for cause in causes} == {"checks"} and send.prove_found(due, own=False, again=True):
            return Came("COMPLETED")
        return send.do(msgspec.structs.replace(due, wish=due.wish or why))

    def _take(self, due: Due, came: Came) -> None:
        if came.status == "COMPLETED" and came.reason:
            self._note(came.reason)
        elif came.status == "WAITING":
            self._waiting[due.step.key] = came.reason
        elif came.status == "INTERRUPTED" and not came.reopened:
            self._unanswered = came.reason

    # --- ending ---------------------------------------------------------------------------------------------

    def _end(self, schedule: Schedule, progress: Progress) -> Ended:
        self._engine.edits.scan()
        sources = tuple(self._dispatcher.files.changed_sources())
        self._write_log(progress, sources)
        self._meddled = self._meddled_with()
        incidents = (*progress.incidents[self._incidents :], *sources)
        # Only where something happened, for this reads the whole history
        broken = breaches(self._engine, self.name) if incidents else []
        status, reason = self._outcome(schedule)
        self._record_end(status, reason)
        return Ended(
            pipeline=self.name,
            status=status,
            reason=reason,
            proved=sum(schedule.standing.get(key) == "done" for key in self.plan.steps),
            steps=len(self.plan.steps),
            failed={key: why for key, why in schedule.failed.items() if key not in self._waiting},
            not_passed=schedule.not_passed(),
            waiting=self._waiting,
            incidents=(*incidents, *(one.sentence for one in broken if one.sort == "append-only")),
            dispatches=progress.dispatches,
            usage=progress.usage,
        )

    def _record_end(self, status: Status, reason: str) -> None:
        ended = PipelineEnded(name=self.name, status=status, reason=one_line(reason)[:_REASON_CHARACTERS])
        self._engine.write_path.record([Draft(data=ended, actor=ACTOR)])

    def _outcome(self, schedule: Schedule) -> tuple[Status, str]:
        if self._meddled:
            return "FAILED", " ".join(self._meddled)
        if schedule.is_done:
            return "COMPLETED", _listed(schedule.not_passed())
        if schedule.is_done_so_far:
            proved = sum(schedule.standing.get(key) == "done" for key in self.plan.steps)
            return (
                "PARTIAL",
                f"All that was asked for is proved; {proved:,} of {len(self.plan.steps):,} steps in all.",
            )
        if self._stopped:
            return "INTERRUPTED", "It was interrupted; `agentx pipeline run FILE` goes on where it was."
        if self._limit:
            why = f"It has used its {self._limit}; `limits` in the pipeline's file allows more"
            return "LIMIT_REACHED", f"{why}, and `agentx pipeline run FILE` goes on."
        if self._unanswered:
            why = f"No model answered ({self._unanswered.rstrip('.')}), so nobody else was sent"
            goes_on = "`agentx pipeline run FILE` goes on when it does."
            return "FAILED", f"{why}, and no try was counted. {goes_on}"
        failed = {key: why for key, why in schedule.failed.items() if key not in self._waiting}
        if self._waiting and not failed:
            return "WAITING", " ".join(self._waiting.values())
        if not failed and (waits := schedule.waits_for()):
            return "FAILED", f"Nothing could be done: {waits}."
        return "FAILED", _listed(failed)

    # --- the log --------------------------------------------------------------------------------------------

    def _write_log(self, progress: Progress, more: Sequence[str] = ()) -> None:
        """Append unexpected events to the pipeline's log file, each once."""
        if not self.plan.pipeline.log:
            return
        (path,) = self.plan.paths[self.plan.pipeline.log]
        with self._engine.write_path.exclusive():
            file = self._dispatcher.files.text(path)
            text = file.text if file else "# What went otherwise than planned\n\n"
            known = Counter(text.splitlines())  # people may have added their own lines
            noted = Counter(f"- {one}" for one in (*progress.anomalies, *more))
            missing = list((noted - known).elements())
            if not missing:
                return
            text += "\n" * (not text.endswith("\n")) + "".join(f"{line}\n" for line in missing)

            def payload(changes: tuple[FileChange, ...]) -> ToolCallExecuted:
                call = f"log-{len(progress.anomalies)}"
                said = self._engine.write_path.body(f"Noted {len(missing)} in {path}.")
                return ToolCallExecuted(
                    call_id=call, tool="append_log", status="SUCCEEDED", output=said, changes=changes
                )

            contents = {path: Content(text.encode())}
            self._engine.write_path.write(
                contents,
                payload,
                actor=ACTOR,
                check=lambda: file_policy.require(self._engine, contents, actor=ACTOR),
            )


def _listed(reasons: Mapping[str, str]) -> str:
    """Return the first reasons, each with its step, and the number of the others."""
    told = [f"{key}: {why.rstrip('.')}." for key, why in list(reasons.items())[:_TOLD]]
    more = f" … and {len(reasons) - _TOLD} more" if len(reasons) > _TOLD else ""
    return " ".join(told) + more


def _written(plan: Plan, progress: Progress) -> tuple[set[tuple[str, str]], dict[tuple[str, str], str]]:
    """Split proved files and blobs: those that still belong to their step, and others with their step."""
    mine, others = set[tuple[str, str]](), dict[tuple[str, str], str]()
    stages = {step.stage for step in plan.steps.values()}
    for key, proof in progress.proved.items():
        step = plan.steps.get(key)
        renamed = step is None and key.partition("[")[0] not in stages
        writes = {one.path for one in step.writes} if step else set[str]()
        for output in proof.outputs:
            if renamed or output.path in writes:
                mine.add((output.path, output.blob))
            else:
                others[output.path, output.blob] = key
    return mine, others


def _settle(engine: Engine, name: str, free: Collection[str]) -> list[str]:
    """Accept what people changed in a pipeline's static files; return all other breaches of classes.

    What changed while a role of ``free`` had run without a sandbox is not known to be a person's: a process
    that it left behind may have written it.
    """
    broken, spans = [], None
    for breach in breaches(engine, name):
        if breach.sort != "static":
            broken.append(breach.sentence)
            continue
        spans = _spans(engine, name, free) if spans is None else spans
        if _is_within(breach, spans):
            broken.append(_doubt(breach))
        else:
            amend(engine, breach.path, reason=f"edited by hand in event {breach.seq}", actor="watch")
    return broken


def _spans(engine: Engine, name: str, free: Collection[str]) -> list[tuple[int, float]]:
    """Return from which event on a program ran without a sandbox, and the end of the pipeline's run then."""
    spans: list[tuple[int, float]] = []
    for event in engine.log.history.read(on_damage=told_already) if free else ():
        data, is_open = event.data, bool(spans) and spans[-1][1] == inf
        if isinstance(data, Dispatched) and data.pipeline == name and data.role in free and not is_open:
            spans.append((event.seq, inf))
        elif isinstance(data, PipelineStarted | PipelineEnded) and data.name == name and is_open:
            spans[-1] = spans[-1][0], event.seq
    return spans


def _is_within(breach: ForbiddenEdit, spans: Sequence[tuple[int, float]]) -> bool:
    return any(first < breach.seq < last for first, last in spans)


def _doubt(breach: ForbiddenEdit) -> str:
    return (
        f"{breach.path} is static and changed in event {breach.seq}, after a program was started "
        "without a sandbox, so it may be the program's. "
        f"`agentx restore {breach.path} --at {breach.seq - 1}` "
        f"takes it back, `agentx pipeline amend {breach.path} --reason …` accepts it."
    )


def redo(engine: Engine, plan: Plan, stage: str, item: str, reason: str) -> list[Step]:
    """Reopen a stage at the user's request; steps that depend on it are repeated in the next run.

    An empty ``item`` is all items.

    Returns:
        The reopened steps, without those that depend on them.

    Raises:
        PipelineStopped: The stage or item is unknown.
        WorkspaceBusy: The pipeline is running. A step proved meanwhile would count although its input is to
            be redone.
    """
    steps = named_steps(plan, stage, item)
    reopened = StageReopened(pipeline=plan.pipeline.pipeline, stage=stage, item=item, reason=reason)
    with alone(engine):
        free = {
            name for name, role in plan.pipeline.roles.items() if is_by_program(role) and not role.sandbox
        }
        _settle(engine, plan.pipeline.pipeline, free)  # earlier edits are not a response to this request
        engine.write_path.record([Draft(data=reopened, actor=engine.settings.actor)])
    return steps


def named_steps(plan: Plan, stage: str, item: str) -> list[Step]:
    """Return the steps of a stage; an empty ``item`` is all items.

    Raises:
        PipelineStopped: The stage or item is unknown.
    """
    steps = [step for step in plan.steps.values() if step.stage == stage and item in ("", step.item)]
    if not steps:
        known = ", ".join(dict.fromkeys(step.stage for step in plan.steps.values()))
        items = ", ".join(step.item for step in plan.steps.values() if step.stage == stage and step.item)
        if not any(step.stage == stage for step in plan.steps.values()):
            raise PipelineStopped(f"Unknown stage {stage!r}; the stages are {known}.")
        what = f"its items are {items}." if items else "it runs once, without items."
        raise PipelineStopped(f"Stage {stage!r} has no item {item!r}; {what}")
    return steps
