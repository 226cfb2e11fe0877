"""Dispatching: send an agent without memory with its files, then check what it wrote.

Each dispatch is a run in the history. Its events name the files that the agent was given and what was cut. It
ends with a proof of the step, or with the reason why there is none.
"""

import contextlib
import re
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from difflib import unified_diff
from functools import partial
from hashlib import blake2b
from itertools import count, takewhile
from pathlib import Path

import msgspec

from agentx.agents.run_types import Limits
from agentx.config import FILE as CONFIG
from agentx.directing.configured import program_environ
from agentx.directing.executors import (
    SUMMARY_CHARACTERS,
    Assignment,
    Command,
    Executor,
    ModelLoop,
    Outcome,
    carry_out,
)
from agentx.engine.engine import Engine
from agentx.pipelines.allowance import Allowance
from agentx.pipelines.costs import price_in
from agentx.pipelines.person_steps import PersonSteps
from agentx.pipelines.pointing.inputs import player, rests_on
from agentx.pipelines.pointing.pointed_files import PYTHON, Files, PointedText
from agentx.pipelines.pointing.pointers import PointerHands, Pointers, PointerTools
from agentx.pipelines.results import Came
from agentx.pipelines.step_proof import ACTOR, Examiner
from agentx.policy.approvals import decision
from agentx.policy.file_policy import rulings_on, take
from agentx.policy.workspace_gates import Gates
from agentx.quality.sandbox import isolation_for
from agentx.recording.staging import Content
from agentx.storage.artifacts import entry_after
from agentx.storage.clock import stamp
from agentx.storage.errors import AgentXError
from agentx.storage.events.pipeline_events import Basis, Dispatched, FileClass, GivenFile, fitting
from agentx.storage.events.types import (
    ApprovalDecided,
    ArtifactChanged,
    Body,
    Draft,
    FileChange,
    RunEnded,
    RunStarted,
    RunStatus,
    ToolCallExecuted,
    changes_of,
)
from agentx.storage.files import nofollow
from agentx.storage.git.checked_reader import TreeEntry
from agentx.storage.git.objects import ObjectDamaged
from agentx.storage.git.repository import EXECUTABLE, LINK
from agentx.storage.secrets.redaction import clean
from agentx.storage.text import one_line
from agentx.synthesis.directing.foreign_texts import rule
from agentx.synthesis.language.tokens import count_tokens
from agentx.synthesis.model.port import ModelClient
from agentx.synthesis.pipelines.definition.checks import (
    body_of,
    has_marker,
    marker_line,
    verdict_of,
)
from agentx.synthesis.pipelines.definition.pipeline import BY_PERSON, AgentType, Read, Role
from agentx.synthesis.pipelines.definition.plan import (
    Plan,
    Step,
    WriteFile,
    is_by_engine,
    is_by_model,
    is_by_person,
    is_by_text,
)
from agentx.synthesis.pipelines.dispatching.budget import Candidate, Fitted, fit, item_of, task_words
from agentx.synthesis.pipelines.dispatching.prompt import Sending, on_demand, tell
from agentx.synthesis.pipelines.proving.markdown import sections
from agentx.synthesis.pipelines.running.due_steps import Due
from agentx.synthesis.pipelines.running.pipeline_progress import TaskPart
from agentx.synthesis.pipelines.templates import fill
from agentx.synthesis.state.state import RUN_TEXT
from agentx.tools.quality_tools import sandbox_policy

ADVICE = "`agents` in the pipeline's file or `limits` in agentx.toml allow more"
"""How to raise the limits of one agent."""

_TIME = "`max_time_s` of its type, under `agents` in the pipeline's file, allows more"

LEASE_MARGIN_S = 60.0
"""A lease outlives its agent's time limit by this margin."""

REASON_CHARACTERS = 1_500
"""Characters kept of a failure's reason, which the next agent reads."""

_CHARACTERS_PER_TOKEN = 3

_NAMED = 6
"""Maximum number of changed files that a reason names."""

_AT_END = "program"
"""What noticed a change that is found when a program without a sandbox has ended."""

_FIRST_PAUSE_S = 1.0
"""Wait before a model that could not be reached is tried again; it doubles each time."""

_LISTED_BYTES, _LEFT_OUT_BYTES = 8_000, 2_000
"""Bytes in the event for the list of files that an agent was given, and for those left out."""


_OWN_DRAFT = "what was last written here: change it as asked"

_DIFF_LINES = 200
"""Maximum number of lines of changes that a reviewer is shown."""

_BLOCK = re.compile(r"(`{3,}|~{3,})[^\n]*\n(.*)\n\1[ \t]*", re.DOTALL)
"""A text that is one block of code, as some models wrap a file."""

_FENCES = re.compile(r"^(?:`{3,}|~{3,})(.*)$", re.MULTILINE)


class TaskShare(msgspec.Struct, frozen=True):
    """Which share of a step's task an agent gets.

    Attributes:
        part: Number of the part, out of ``parts``; 0 for a whole task.
        paths: The files of the part, of those that the task is split over.
        joins: Whether it joins the parts.
    """

    part: int = 0
    parts: int = 0
    paths: tuple[str, ...] = ()
    joins: bool = False


WHOLE = TaskShare()


class DispatchView:
    """A file as a template of the engine sees it.

    Attributes:
        text: The whole text.
        body: The text without its marker.
        verdict: ``PASS``, ``FAIL``, or empty.
        sections: The text below each heading, by heading.
    """

    def __init__(self, text: str, body: str) -> None:
        self.text, self.body, self.verdict = text, body, verdict_of(text)
        self.sections = {one.title: "\n".join(one.whole).strip() for one in sections(body)}


class Dispatcher:
    """Sends agents for the steps of one pipeline; thread-safe.

    Programs are looked up in the folder of ``files``, that of the pipeline's file. ``models`` returns the
    model with a name; for an empty name, the configured one. ``look`` returns what is wrong with the text of
    a file, by its name, beyond its checks.
    """

    def __init__(
        self,
        engine: Engine,
        plan: Plan,
        files: Files,
        models: Callable[[str], ModelClient],
        allowance: Allowance,
        look: Callable[[str, str], list[str]],
    ) -> None:
        self.files, self._folder = files, files.folder
        self.examiner = Examiner(engine, plan, files, look)
        self._engine, self._plan = engine, plan
        self._people = PersonSteps(engine, plan, files, self.examiner, self._start_for_person)
        self._models, self._allowance, self._gates = models, allowance, Gates(engine)
        self._checking = threading.Lock()
        # Programs without a sandbox: those that run now, and all that were started
        self._running = self._programs = 0

    def do(self, due: Due, made: Collection[str] = (), parts: Mapping[int, TaskPart] | None = None) -> Came:
        """Do a step: prepare, send, examine, prove.

        ``made`` are the paths that agents already wrote for it in this round. Finished parts of a split task,
        ``parts`` by number, are not sent again.

        Raises:
            AgentXError: Not dispatched: what the step needs is missing or does not fit.
        """
        role, found = self._plan.role(due.step), self.examiner.findings(due.step)
        if is_by_person(role):
            return self._people.do(due, "")
        if not is_by_engine(role):
            return self._send(due, role, found, self._done_parts(due.step, made, parts or {}))
        came = self._fill_in(due, found)
        return msgspec.structs.replace(came, final=True)  # a retry would fill it in with the same result

    def prove_found(self, due: Due, *, own: bool, again: bool = False) -> bool:
        """Prove a step whose files already exist, marked and in order; return whether it is proved.

        ``own`` says whether agents of this pipeline wrote them, in this round; ``again``, whether they proved
        the step before.
        """
        known = own or again or all(write.rule.marker for write in due.step.writes)
        if not (due.step.writes and known):
            return False
        try:
            found = self.examiner.findings(due.step)
            examined = self.examiner.examine(due.step, found)
        except AgentXError:  # an input is missing: the dispatch that follows reports it
            return False
        if examined.wrong:
            return False
        self.examiner.prove(due, examined, run="", found=not own)
        return True

    def take_amended(self, due: Due, paths: Sequence[str], run: str = "") -> Came | None:
        """Accept static files that the user changed as the result of a step that was to be repeated.

        No agent is sent, because it would overwrite the user's changes.

        ``run`` is one that waits for approval of other contents of the files; it is empty for none.

        Returns:
            ``None`` where these files are in order and other files of the step are not, so an agent must be
            sent.

        Raises:
            AgentXError: An input of the step is missing.
        """
        step, named = due.step, ", ".join(paths)
        name = " ".join(filter(None, (step.stage, step.item)))
        again = f"`agentx pipeline redo {name} --reason …` has it written again"
        examined = self.examiner.examine(step, self.examiner.findings(step))
        if wrong := [said for said in examined.wrong if any(path in said for path in paths)]:
            why = f"You changed {named}, so nobody is sent to write over it, but it is not in order:"
            return Came("FAILED", f"{why} {' '.join(wrong)} Mend it, or {again}.", final=True)
        if examined.wrong:
            return None
        done = f"{step.key} is done by what you made of {named}; {again}."
        if run:
            self._withdraw(due, run, done)
        self.examiner.prove(due, examined, run="", found=True)
        return Came("COMPLETED", done)

    def _withdraw(self, due: Due, run: str, why: str) -> None:
        """End a run that waits for approval, because the user decided otherwise."""
        own = {write.path: write for write in due.step.writes}
        hands = self._hands(due, run, {}, own, f"agent:{due.step.role}")
        for call in [one for one in self._engine.snapshot().pending.values() if one.run == run]:
            refused = ApprovalDecided(call_id=call.call_id, approved=False, reason=why)
            self._engine.write_path.record([Draft(data=refused, actor=ACTOR, run=run, cause=call.seq)])
            hands.settle(call.tool, call.call_id)
        self._end(run, "INTERRUPTED", why, Outcome(), due.step.role)

    def resume(self, due: Due, run: str) -> Came | None:
        """Resume a run that waited for approval.

        Returns:
            ``None`` where the run waits for no approval, so the step must be repeated.
        """
        if is_by_person(self._plan.role(due.step)):
            return self._people.do(due, run)
        pending = self._engine.snapshot().pending.values()
        calls = [one for one in pending if one.run == run and one.awaits_approval]
        if not calls:
            return None
        if undecided := [one.call_id for one in calls if decision(self._engine, one) is None]:
            return Came("WAITING", _asks(undecided))
        own = {write.path: write for write in due.step.writes}
        hands = self._hands(due, run, {}, own, f"agent:{due.step.role}")
        answers = [hands.settle(call.tool, call.call_id) for call in calls]
        refused = [answer.output for answer in answers if answer.status != "SUCCEEDED"]
        outcome = Outcome(status="FAILED" if refused else "COMPLETED", reason=" ".join(refused))
        return self._close(due, run, hands, outcome, self.examiner.findings(due.step))

    # --- steps of the engine --------------------------------------------------------------------------------

    def _fill_in(self, due: Due, found: Sequence[str]) -> Came:
        """Fill in files from other files; no agent is needed."""
        step = due.step
        own = {write.path: write for write in step.writes}
        views: dict[str, DispatchView] = {}
        given: list[PointedText] = []
        for read in step.reads:
            files = self.files.of(read, own)
            given += files
            bodies = [self.examiner.body(file.path, file.text) for file in files]
            views[read.rule.file] = DispatchView(
                "\n\n".join(file.text for file in files), "\n\n".join(bodies)
            )
        values = step.values | {"files": views, "round": due.round, "found": list(found)}
        texts = {write.path: _marked(fill(write.rule.content, values), write) for write in step.writes}
        rests = rests_on(self._engine.write_path, self._plan, step, given)
        sent = self._sent(due, rests, writes=tuple(texts))
        run = self._take(f"Fill in {', '.join(texts)}.", "engine", sent, ACTOR)
        hands = self._hands(due, run, {}, own, ACTOR)
        return self._write(due, run, hands, texts, found)

    def _write(
        self, due: Due, run: str, hands: PointerHands, texts: Mapping[str, str], found: Sequence[str]
    ) -> Came:
        for path, text in texts.items():
            hands.call("write_file", {"path": path, "content": text})
        return self._close(due, run, hands, Outcome(), found, untouched=hands.untouched)

    # --- steps of agents ------------------------------------------------------------------------------------

    def _send(self, due: Due, role: Role, found: Sequence[str], done: Sequence[tuple[str, int]]) -> Came:
        step, agent = due.step, self._plan.agent(role)
        writes = {write.path for write in step.writes}
        pointed = [(read, file) for read in step.reads for file in self.files.of(read, writes)]
        files = [(read, file) for read, file in pointed if not read.rule.lazy]
        own = self._own_draft(due, {file.path for _, file in files})
        sending = Sending(
            step=step,
            round=due.round,
            found=tuple(found),
            tries=due.tries,
            reason=due.reason,
            wish=due.wish,
            rules=tuple(rule(item) for item in self._engine.demands()),
            on_demand=tuple(
                on_demand(file.path, read.rule.purpose, file.text) for read, file in pointed if read.rule.lazy
            ),
            changes=self._changes(due, [file for _, file in files]),
        )
        fitted = fit(
            [*own, *(Candidate(read.rule, file.path, file.text, file.blob) for read, file in files)],
            agent,
            prompt_tokens=count_tokens(tell(self._plan, sending).bare)
            + sum(map(count_tokens, sending.changes.values())),
            about=task_words(role, step),
            split=role.split.over if role.split else "",
            item=item_of(step),
            done=done,
        )
        whole = {file.path: file.text for _, file in pointed} | {one.path: one.text for one in own}
        by = player(role, self._folder)
        rests = rests_on(self._engine.write_path, self._plan, step, (file for _, file in pointed), by)
        if not fitted.parts:
            return self._send_one(due, role, sending, fitted, whole, rests=rests)
        for number, paths in list(enumerate(fitted.parts, 1))[fitted.done :]:
            share = TaskShare(number, len(fitted.parts), tuple(paths))
            came = self._send_one(due, role, sending, fitted.part(number), whole, share, rests)
            if came.status != "COMPLETED":
                return came
        if role.split and role.split.join:
            return self._have_joined(due, role, sending, len(fitted.parts))
        return self._join(due, len(fitted.parts), found)

    def _own_draft(self, due: Due, given: Collection[str]) -> list[Candidate]:
        """Return what was last written for a step that is done again, for the agent that writes it anew."""
        if not (due.round > 1 or due.tries or due.wish) or not is_by_model(self._plan.role(due.step)):
            return []
        made = [file for write in due.step.writes if (file := self.files.text(write.path)) is not None]
        names = {write.path: write.rule.file for write in due.step.writes}
        return [
            Candidate(
                Read(file=names[file.path], purpose=_OWN_DRAFT, if_room=True), file.path, file.text, file.blob
            )
            for file in made
            if file.path not in given
        ]

    def _changes(self, due: Due, files: Sequence[PointedText]) -> dict[str, str]:
        """Return what changed in the files that a step judges since its last verdict, by path."""
        found: dict[str, str] = {}
        for file in files:
            before = due.judged.get(file.path, file.blob)
            if before == file.blob:
                continue
            with contextlib.suppress(ObjectDamaged):  # purged
                old = self._engine.git.repo.read_blob(before).decode(errors="replace")
                lines = list(unified_diff(old.splitlines(), file.text.splitlines(), n=1, lineterm=""))[2:]
                if len(lines) <= _DIFF_LINES:  # otherwise it is another text
                    found[file.path] = "\n".join(lines)
        return found

    def _have_joined(self, due: Due, role: Role, sending: Sending, parts: int) -> Came:
        """Send an agent that joins the parts that others wrote."""
        step, agent = due.step, self._plan.agent(role)
        task = fill(role.split.join, step.values) if role.split else ""
        sending = msgspec.structs.replace(sending, task=task)
        paths = [_part_of(write.path, number) for write in step.writes for number in range(1, parts + 1)]
        files = [file for path in paths if (file := self.files.text(path)) is not None]
        rule = Read(file=step.writes[0].rule.file, purpose="a part to join")
        fitted = fit(
            [Candidate(rule, file.path, file.text, file.blob) for file in files],
            agent,
            prompt_tokens=count_tokens(tell(self._plan, sending).bare),
            about=task,
            item=item_of(step),
        )
        return self._send_one(
            due, role, sending, fitted, {file.path: file.text for file in files}, TaskShare(joins=True)
        )

    def _send_one(
        self,
        due: Due,
        role: Role,
        sending: Sending,
        fitted: Fitted,
        whole: Mapping[str, str],
        share: TaskShare = WHOLE,
        rests: tuple[Body, Basis] = (Body(""), Basis()),
    ) -> Came:
        step, agent = due.step, self._plan.agent(role)
        writes = {write.path: _part_of(write.path, share.part) for write in step.writes} if share.part else {}
        told = tell(
            self._plan,
            msgspec.structs.replace(
                sending,
                given=fitted.given,
                left_out=fitted.left_out,
                writes=writes,
                part=share.part,
                parts=share.parts,
            ),
        )
        prompt = clean(told.whole)  # the model's provider must not see secrets of the files
        executor = self._executor(step.role, agent)
        own = {writes.get(write.path, write.path): write for write in step.writes}
        tokens = fitted.prompt_tokens + fitted.reads_tokens
        model = executor.name if is_by_model(role) else ""
        with self._allowance.one_more(step, tokens, model) as leave:
            if leave.refused:
                return Came("LIMIT_REACHED", leave.refused, unsent=True)
            sent = msgspec.structs.replace(
                self._sent(due, rests, writes=tuple(own), agent=agent),
                part=share.part,
                joins=share.joins,
                through=share.paths[-1] if share.paths else "",
                holds=len(share.paths),
                reads=fitting(
                    (GivenFile(one.path, one.blob, one.tokens, one.cut) for one in fitted.given),
                    _LISTED_BYTES,
                ),
                left_out=fitting((path for path, _ in fitted.left_out), _LEFT_OUT_BYTES),
                tokens=tokens,
                max_tokens=fitted.max_tokens,
                digest=blake2b(prompt.encode(), digest_size=16).hexdigest(),
            )
            run = self._take(told.text, executor.name, sent, f"agent:{step.role}")
            leave.sent = True
            room = max(0, fitted.max_tokens - tokens) * _CHARACTERS_PER_TOKEN
            hands = self._hands(due, run, whole, own, f"agent:{step.role}", room)

            assignment = Assignment(
                prompt=prompt,
                tools=hands,
                time_limit_s=agent.max_time_s,
                missing=partial(_missing, hands, own),
            )
            outcome = self._priced(self._carried_out(executor, assignment, hands), model)
            if outcome.unanswered:  # no fault of the work, so it is not counted as a try
                return self._end(run, "INTERRUPTED", one_line(clean(outcome.reason)), outcome, step.role)
            if hands.stopped:
                return self._failed(run, outcome, (hands.stopped,), step.role, final=True)
            if outcome.status != "COMPLETED" and is_by_text(role):
                return self._failed(run, outcome, (), step.role)
            _take_answer(role, hands, outcome, own)
            if share.part:
                return self._close_part(due, run, hands, outcome, own)
            return self._close(due, run, hands, outcome, sending.found, untouched=hands.untouched)

    def _carried_out(self, executor: Executor, assignment: Assignment, hands: PointerHands) -> Outcome:
        """Have a role played; a program that is not isolated fails where other files changed meanwhile."""
        if not isinstance(executor, Command):
            return self._carry_out(executor, assignment)
        outcome = self._programmed(executor, assignment, hands)
        if outcome.status == "LIMIT_REACHED":
            reason = f"{outcome.reason.rstrip('.')}; {_TIME}."
            return msgspec.structs.replace(outcome, reason=reason)
        return outcome

    def _programmed(self, executor: Command, assignment: Assignment, hands: PointerHands) -> Outcome:
        if executor.sandbox and isolation_for(executor.sandbox)[0] != "none":
            return carry_out(executor, assignment)
        engine, own = self._engine, hands.writable
        with self._checking:  # otherwise another one's changes, not yet put back, would be taken as given
            engine.edits.scan()
            since, before, config = engine.log.state.seq, dict(engine.git.manifest()), self._config()
            self._programs += 1
            self._running += 1
            number, alone = self._programs, self._running == 1
        try:
            outcome = carry_out(executor, assignment)
        except BaseException:
            with self._checking:
                self._running -= 1
            raise
        with self._checking:
            self._running -= 1
            engine.edits.scan(noticed=_AT_END)
            changed, is_sure = self._strayed(since, before, own)
            has_new_config = self._config() != config
            if not (changed or has_new_config):
                return outcome
            until, is_sure = engine.log.state.seq, is_sure and alone and self._programs == number
            if is_sure:
                self._roll_back(changed, before)
                if has_new_config:
                    self._put_config_back(config)
        said = _told_of(changed, set(own), since, until, has_new_config=has_new_config, is_back=is_sure)
        if not is_sure:
            hands.stop(said)
        reason = f"{outcome.reason} {said}".strip()
        return msgspec.structs.replace(outcome, status="FAILED", reason=reason if is_sure else outcome.reason)

    def _strayed(
        self, since: int, before: dict[str, TreeEntry], own: Collection[str]
    ) -> tuple[list[str], bool]:
        """Return the files that a program changed and may not, and whether nobody else can have done it.

        What others wrote through the engine meanwhile is added to ``before``.
        """
        sort_of = {one.path: one.sort for one in rulings_on(self._engine.log.state, own)}
        changed, is_sure = set[str](), True
        for event in self._engine.log.history.read(since):
            for made in changes_of(event):
                path = made.path
                if not isinstance(event.data, ArtifactChanged):
                    is_sure = is_sure and path not in changed
                    if entry := entry_after(made):
                        before[path] = entry
                    else:
                        before.pop(path, None)
                elif path not in own or (path in before and self._is_forbidden(made, sort_of.get(path))):
                    changed.add(path)
                    # Where a person's command recorded it, it may be the person's
                    is_sure = is_sure and event.data.noticed in (_AT_END, "watch")
        return sorted(changed), is_sure

    def _is_forbidden(self, made: FileChange, sort: FileClass | None) -> bool:
        if sort != "append-only":
            return sort == "static"
        read = self._engine.git.repo.read_blob
        return not (made.after and read(made.after).startswith(read(made.before) if made.before else b""))

    def _roll_back(self, paths: Sequence[str], before: Mapping[str, TreeEntry]) -> None:
        """Give files the contents that they had before a rejected attempt.

        Otherwise the next attempt would write the same bytes, change nothing, and be accepted.
        """
        repo = self._engine.git.repo
        contents: dict[str, Content | None] = {path: None for path in paths if path not in before}
        for path in paths:
            if entry := before.get(path):
                data = repo.read_blob(entry.oid)
                contents[path] = Content(data, entry.mode == EXECUTABLE, entry.mode == LINK)
        call = f"roll-back-{self._engine.log.state.seq + 1}"

        def payload(changes: tuple[FileChange, ...]) -> ToolCallExecuted:
            output = self._engine.write_path.body("Rolled back what a rejected attempt changed.")
            return ToolCallExecuted(
                call_id=call, tool="roll_back", status="SUCCEEDED", output=output, changes=changes
            )

        # What is gone first: a file may stand where a folder was, and the reverse.
        gone: dict[str, Content | None] = {path: None for path, one in contents.items() if one is None}
        kept = {path: one for path, one in contents.items() if one is not None}
        for some in (gone, kept):
            if some:
                self._engine.write_path.write(some, payload, actor=ACTOR)

    def _put_config_back(self, config: bytes) -> None:
        place = self._engine.root / CONFIG
        if nofollow.exists(place) and not nofollow.is_file(place):
            nofollow.remove_tree(place)
        if config:
            nofollow.write(place, config)
        else:
            nofollow.remove(place, missing_ok=True)
        self._engine.edits.scan()

    def _config(self) -> bytes:
        place = self._engine.root / CONFIG
        return nofollow.read(place) if nofollow.is_file(place) else b""

    def _carry_out(self, executor: Executor, assignment: Assignment) -> Outcome:
        """Have a prompt carried out; if the model cannot be reached, try again for a while."""
        limit_s, pause_s = self._plan.pipeline.limits.model_wait_s, _FIRST_PAUSE_S
        while True:
            outcome = carry_out(executor, assignment)
            if not outcome.retryable or limit_s <= 0 or self._allowance.rest(min(pause_s, limit_s)):
                return outcome
            limit_s -= pause_s
            pause_s *= 2

    def _priced(self, outcome: Outcome, model: str) -> Outcome:
        """Return an outcome with its cost by the pipeline's price, if the model's provider gave none."""
        used = outcome.usage
        price = price_in(self._plan, model) if model and not used.cost_usd else None
        if price is None or not (used.prompt_tokens or used.completion_tokens):
            return outcome
        cost = price.of(used.prompt_tokens, used.completion_tokens)
        return msgspec.structs.replace(outcome, usage=msgspec.structs.replace(used, cost_usd=cost))

    def _executor(self, name: str, agent: AgentType) -> Executor:
        role = self._plan.pipeline.roles[name]
        if not is_by_model(role):
            self._engine.trust.require("by", f"a role would be carried out by the program {role.by[0]}")
            words: list[str] = []
            beside: list[Path] = []
            # `python` is this interpreter; other words may name files beside the pipeline's file
            for word in role.by:
                place = (self._folder / word).resolve()
                is_ours = word != PYTHON and place.is_file() and place.is_relative_to(self._folder)
                words.append(sys.executable if word == PYTHON else str(place) if is_ours else word)
                beside += [place] if is_ours else []
            policy = sandbox_policy(self._engine, "by")
            return Command(
                tuple(words),
                role.speaks,
                program_environ(self._engine),
                f"`by` of role {name} in the pipeline's file",
                role.output,
                f"`output` of role {name} in the pipeline's file",
                replace(policy, readable=[*policy.readable, *beside]) if role.sandbox else None,
            )
        limits = msgspec.structs.replace(
            Limits.of(self._engine.config), max_steps=agent.max_steps, max_time_s=agent.max_time_s
        )
        model = self._models(role.model)
        limited = getattr(model, "limited", None)  # scripted models have no limit
        return ModelLoop(limited(agent.output) if limited else model, limits, ADVICE)

    # --- beginning and ending a run -------------------------------------------------------------------------

    def _sent(
        self,
        due: Due,
        rests: tuple[Body, Basis] = (Body(""), Basis()),
        *,
        writes: tuple[str, ...],
        agent: AgentType | None = None,
    ) -> Dispatched:
        lasts = timedelta(seconds=(agent.max_time_s if agent else 0.0) + LEASE_MARGIN_S)
        return Dispatched(
            pipeline=self._plan.pipeline.pipeline,
            stage=due.step.stage,
            role=due.step.role,
            item=due.step.item,
            round=due.round,
            writes=writes,
            until=stamp(datetime.now(UTC) + lasts, timespec="seconds"),
            inputs=rests[0],
            basis=rests[1],
        )

    def _start_for_person(self, due: Due) -> str:
        task = fill(self._plan.role(due.step).task, due.step.values) or due.step.key
        return self._take(task, BY_PERSON, self._sent(due, writes=()), ACTOR)

    def _take(self, task: str, model: str, sent: Dispatched, actor: str) -> str:
        started = RunStarted(
            task=self._engine.write_path.body(task),
            agent=sent.role,
            model=model,
            pipeline=sent.pipeline,
            followed=self._engine.following.current().records,
        )
        return take(self._engine, started, sent, actor=actor, wait_s=self._plan.pipeline.lease_wait_s)

    def _hands(
        self,
        due: Due,
        run: str,
        readable: Mapping[str, str],
        own: Mapping[str, WriteFile],
        actor: str,
        room: int = 0,
    ) -> PointerHands:
        step = due.step

        def review(path: str, text: str) -> list[str]:
            return self.examiner.faults(step, own[path], text, path)

        pointers = Pointers(
            role=step.role,
            stage=step.key,
            readable=readable,
            writable=tuple(own),
            why_not={path: one.why for one in step.forbidden for path in self._plan.paths[one.file]},
            review=review,
            room=room,
        )
        return PointerHands(PointerTools(self._engine, pointers, actor=actor, run=run, gates=self._gates))

    def _close(
        self,
        due: Due,
        run: str,
        hands: PointerHands,
        outcome: Outcome,
        found: Sequence[str],
        untouched: Sequence[str] = (),
    ) -> Came:
        """Examine what was written; record the end of the run, and the proof if the step is done.

        Files in ``untouched`` were left unchanged. They prove nothing for this agent, because an earlier one
        wrote them.
        """
        role = due.step.role
        if hands.waiting and not untouched:
            return self._end(run, "WAITING", _asks(hands.waiting), outcome, role)
        try:
            examined = self.examiner.examine(due.step, found)
        except AgentXError as error:  # an input of a check is unreadable
            return self._failed(run, outcome, (str(error), *hands.unmet), role)
        wrong = dict.fromkeys((*map(_unwritten, untouched), *examined.wrong))
        if outcome.status != "COMPLETED" or wrong:
            return self._failed(run, outcome, (*wrong, *hands.unmet), role)
        ended = _ended("COMPLETED", one_line(clean(outcome.noted))[:REASON_CHARACTERS], outcome)
        self.examiner.prove(due, examined, run=run, before=[ended])
        return Came("COMPLETED")

    def _close_part(
        self, due: Due, run: str, hands: PointerHands, outcome: Outcome, own: Mapping[str, WriteFile]
    ) -> Came:
        wrong = [_unwritten(path) for path in hands.untouched]
        if hands.waiting:
            wrong.append("A part of a task that was split cannot wait for approval.")
        texts = {path: file.text for path in own if (file := self.files.text(path)) is not None}
        for path, text in texts.items():
            wrong += self.examiner.faults(due.step, own[path], text, path)
        if outcome.status != "COMPLETED" or wrong:
            return self._failed(run, outcome, (*wrong, *hands.unmet), hands.role)
        noted = one_line(clean(outcome.noted))[:REASON_CHARACTERS]
        return self._end(run, "COMPLETED", noted, outcome, hands.role)

    def _failed(
        self, run: str, outcome: Outcome, wrong: Sequence[str], role: str, *, final: bool = False
    ) -> Came:
        status: RunStatus = "LIMIT_REACHED" if outcome.status == "LIMIT_REACHED" else "FAILED"
        reason = " ".join([*([f"{outcome.reason.rstrip('.')}."] if outcome.reason else []), *wrong])
        came = self._end(run, status, one_line(clean(reason))[:REASON_CHARACTERS], outcome, role)
        return msgspec.structs.replace(came, final=final)

    def _end(self, run: str, status: RunStatus, reason: str, outcome: Outcome, role: str) -> Came:
        ended = _ended(status, reason, outcome)
        self._engine.write_path.record([Draft(data=ended, actor=f"agent:{role}", run=run)])
        return Came(status, reason)

    # --- a task that was split ------------------------------------------------------------------------------

    def _done_parts(
        self, step: Step, made: Collection[str], parts: Mapping[int, TaskPart]
    ) -> list[tuple[str, int]]:
        """Return the last file and the file count of each part before the first unfinished one."""

        def is_written(number: int) -> bool:
            return number in parts and all(
                (path := _part_of(write.path, number)) in made
                and (file := self.files.text(path)) is not None
                and has_marker(file.text, write.rule.marker, write.path)
                for write in step.writes
            )

        return [(parts[number].through, parts[number].holds) for number in takewhile(is_written, count(1))]

    def _join(self, due: Due, parts: int, found: Sequence[str]) -> Came:
        """Join the parts that several agents wrote into one file."""
        step, texts, own = due.step, dict[str, str](), dict[str, WriteFile]()
        for write in step.writes:
            files = [self.files.text(_part_of(write.path, n)) for n in range(1, parts + 1)]
            bodies = [body_of(file.text, write.rule.marker, write.path) for file in files if file]
            texts[write.path], own[write.path] = _marked("\n\n".join(bodies), write), write
        sent = self._sent(due, writes=tuple(texts))  # its parts rest on what they were given
        run = self._take(f"Join {parts} parts into {', '.join(texts)}.", "engine", sent, ACTOR)
        hands = self._hands(due, run, {}, own, ACTOR)
        return self._write(due, run, hands, texts, found)


def _told_of(
    changed: Sequence[str],
    own: set[str],
    since: int,
    until: int,
    *,
    has_new_config: bool,
    is_back: bool,
) -> str:
    """Return what a program without a sandbox changed and may not, and what became of it."""
    said = []
    if changed:
        more = f" and {len(changed) - _NAMED} more" if changed[_NAMED:] else ""
        why = "whose class forbids it" if set(changed) <= own else "which its role does not write"
        path = changed[0] if len(changed) == 1 else "PATH"
        said.append(f"While it ran without a sandbox, {', '.join(changed[:_NAMED])}{more} changed, {why}")
        said[-1] += (
            f", and was put back: `agentx diff {since}..{until}` shows the change, "
            f"`agentx restore {path} --at {until}` makes it again."
            if is_back
            else "; nothing was put back and nobody is sent again, for somebody else may have done it: "
            f"`agentx diff {since}` shows how, `agentx restore {path} --at {since}` takes it back."
        )
    if has_new_config:
        back = ", and was put back" if is_back else ""
        said.append(
            f"While it ran without a sandbox, {CONFIG} changed{back}: `git log -p {CONFIG}` shows how."
        )
    return " ".join(said)


def _asks(calls: Sequence[str]) -> str:
    words = ", ".join(f"`agentx approve {call_id}`" for call_id in calls)
    return f"Approval is needed: {words} (or `--deny`), then `agentx pipeline run FILE` goes on."


def _unwritten(path: str) -> str:
    return f"{path} was not written."


def _missing(hands: PointerHands, own: Mapping[str, WriteFile], answer: str) -> str:
    """Return what a model that stops without its files is reminded of."""
    left = hands.untouched
    if hands.stopped or hands.waiting or not left:
        return ""
    if len(own) == 1 and _file_in(answer, own[left[0]], left[0], strict=True, made=hands.made):
        return ""
    whole = "or answer with its whole text alone, " if len(own) == 1 else ""
    return f"{', '.join(left)} was not written. Use write_file, {whole}up to the last line."


def _take_answer(role: Role, hands: PointerHands, outcome: Outcome, own: Mapping[str, WriteFile]) -> None:
    """Write the answer of an agent without tools, or one that did not use them, if it is the file itself."""
    if outcome.status == "COMPLETED" and len(own) == 1 and hands.untouched:
        ((path, write),) = own.items()
        if text := _file_in(outcome.summary, write, path, strict=is_by_model(role), made=hands.made):
            hands.call("write_file", {"path": path, "content": text.rstrip() + "\n"})


def _file_in(answer: str, write: WriteFile, path: str, *, strict: bool, made: int) -> str:
    """Return the file that an answer is; empty if it is none.

    Where a marker says so, "Done." is not a file and must not replace one. A file in a code block is taken
    out of it.

    Args:
        answer: The answer.
        write: The file that is missing.
        path: Its path.
        strict: Whether the marker decides, if there is one.
        made: Number of tool calls; after one, an answer without a marker is not a file.
    """
    text = answer
    if block := _BLOCK.fullmatch(answer.strip()):
        inner = _FENCES.findall(block[2])
        # otherwise the answer begins with one block and ends with another
        text = block[2].strip() if not inner or (len(inner) % 2 == 0 and inner[0].strip()) else text
    if strict and write.rule.marker:
        return text if has_marker(text, write.rule.marker, path) else ""
    return text if text.strip() and not made else ""


def _part_of(path: str, number: int) -> str:
    """Return the path of a part of a file.

    >>> _part_of("research/ch03.md", 2)
    'research/ch03.part-2.md'
    """
    place = Path(path)
    return place.with_name(f"{place.stem}.part-{number}{place.suffix}").as_posix()


def _marked(text: str, write: WriteFile) -> str:
    text = text.rstrip() + "\n"
    return f"{text}\n{marker_line(write.rule.marker, write.path)}\n" if write.rule.marker else text


def _ended(status: RunStatus, reason: str, outcome: Outcome) -> RunEnded:
    return RunEnded(
        status=status,
        reason=reason,
        # Redact before cutting: half a secret is not recognised
        summary=one_line(clean(outcome.summary[:SUMMARY_CHARACTERS]))[:RUN_TEXT],
        steps=outcome.steps,
        **msgspec.structs.asdict(outcome.usage),
    )
