"""A directed run: check the policy, call the director if needed, and let an executor carry out the prompt."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from agentx.agents.turn import DueTime, alone
from agentx.directing.act_reports import ActReports, how_to_report
from agentx.directing.director import Director
from agentx.directing.executor_tools import Hands
from agentx.directing.executors import SUMMARY_CHARACTERS, Assignment, Executor, Outcome, carry_out
from agentx.engine.engine import Engine
from agentx.policy.done_once import adopt
from agentx.storage.errors import AgentXError
from agentx.storage.events.types import AgentMessageSent, Draft, Event, Payload, RunEnded, RunStarted
from agentx.storage.files.lock import WorkspaceBusy
from agentx.storage.secrets.redaction import clean
from agentx.storage.text import one_line, shorten
from agentx.synthesis.directing.acts import Occasion, data_of
from agentx.synthesis.directing.policy import Decision
from agentx.synthesis.model.port import ModelClient
from agentx.synthesis.state.state import RUN_TEXT, State

_REASON_WORDS = 60


class DirectedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A finished run.

    Attributes:
        decision: Whether the director was called, and why.
        directive: Seq of the directive that was carried out.
        prompt: All that the executor was given.
        outcome: The result.
        failed: A sentence on why the director failed, and what serves instead; empty if it did not.
    """

    run: str
    decision: Decision
    directive: int
    prompt: str
    outcome: Outcome
    failed: str = ""


def run_directed(
    engine: Engine,
    executor: Executor,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    *,
    model: ModelClient | None = None,
    agent: str = "executor",
    files: bool = False,
    due: DueTime = DueTime(),  # noqa: B008 - a value
    time_limit_s: float = 0.0,
) -> DirectedRun | None:
    """Direct and carry out one run.

    Args:
        engine: The workspace.
        executor: The executor that carries it out.
        functions: Its tools, by name.
        model: The model that directs; without one, code composes the directives.
        agent: The executor's role; its actor is ``agent:<role>``.
        files: Whether it may also read and change artifacts, and run the configured checks.
        due: The schedule and time that caused the run. A due time is never run twice.
        time_limit_s: Time limit of the executor in seconds; 0 for none.

    Returns:
        The run; ``None`` where its due time has been run already.

    Raises:
        FieldUnresolved: A field of the prompt has no value; this is recorded as a failed run.
        WorkspaceBusy: Another run is in progress in this workspace.
        Restricted: The workspace is not trusted, and its history would decide what is done.
    """
    engine.trust.require("directives", "a directive from the history would be carried out")
    with alone(engine):
        return _RunInProgress(engine, executor, functions or {}, model, agent, due, files=files).work(
            time_limit_s
        )


def occasion_of(state: State, run: str, due: DueTime) -> Occasion:
    """Return the schedule and due time of a run, with the schedule's time zone."""
    known = state.schedules.get(due.schedule)
    return Occasion(run=run, schedule=due.schedule, due=due.at, zone=known.rule.zone if known else "UTC")


class _RunInProgress:
    def __init__(
        self,
        engine: Engine,
        executor: Executor,
        functions: Mapping[str, Callable[..., Any]],
        model: ModelClient | None,
        agent: str,
        due: DueTime,
        *,
        files: bool,
    ) -> None:
        self.engine, self.executor, self.agent, self.due = engine, executor, agent, due
        self.actor = f"agent:{agent}"
        state = engine.snapshot()
        self.id = f"r-{state.counts.get('RunStarted', 0) + 1}"
        self.occasion = occasion_of(state, self.id, due)
        self.tools = Hands(
            engine, functions, actor=self.actor, run=self.id, files=files, occasion=self.occasion
        )
        self.director = Director(
            engine,
            model,
            self.tools.schemas(),
            outside=self.tools.outside,
            agent=agent,
            occasion=self.occasion,
            text_only=getattr(executor, "speaks", "") == "text",
            declarations=self.tools.declarations,
            repeatable=self.tools.repeatable,
        )

    def work(self, time_limit_s: float) -> DirectedRun | None:
        """Do the run from the decision to the end."""
        if self.due.is_settled(self.engine.snapshot()):
            return None
        adopt(self.engine, self.tools.declarations)
        decision = self.director.decide()
        if decision.direct:
            self.director.direct(decision.why)
        try:
            filled = self.director.fill()
        except AgentXError as error:
            if self.start("", 0):
                self.end(Outcome(status="FAILED", reason=str(error)))
            raise
        prompt = self.prompt(filled.text)
        if not self.start(prompt, filled.directive):
            return None
        due = self.occasion.due
        assignment = Assignment(
            prompt=prompt,
            tools=self.tools,
            acts=ActReports(self.engine, self.occasion, self.actor),
            time_limit_s=time_limit_s,
            values=filled.values,
            done=data_of(filled.done),
            due=self.occasion.local(due).isoformat() if due else "",
            schedule=self.occasion.schedule,
            declarations=self.tools.declarations,
        )
        try:
            with self.engine.serving(self.due.schedule):
                outcome = carry_out(self.executor, assignment)
        except KeyboardInterrupt:
            self.end(Outcome(status="INTERRUPTED", reason="It was interrupted."))
            raise
        self.end(outcome)
        return DirectedRun(
            run=self.id,
            decision=decision,
            directive=filled.directive,
            prompt=prompt,
            outcome=outcome,
            failed=self.director.failed,
        )

    def prompt(self, text: str) -> str:
        """Return the whole prompt: a program that only reads it is told how it reports acts."""
        if getattr(self.executor, "speaks", "") != "text":
            return text
        declared = self.engine.config.director.acts
        own = {name: one.key for name, one in declared.items() if name not in self.tools.declarations}
        return f"{text}\n\n{how_to_report(own)}"

    def start(self, prompt: str, directive: int) -> bool:
        """Record the start, which settles the due time; return whether it was not settled before."""
        started = RunStarted(
            task=self.engine.write_path.body(prompt),
            agent=self.agent,
            model=self.executor.name,
            directive=directive,
            resumes=self.due.resumes,
            schedule=self.due.schedule,
            due=self.due.at,
            followed=self.engine.following.refresh().records,
        )
        [event] = self.record(started, self.due.key)
        self.engine.write_path.flush()
        return event.run == self.id

    def end(self, outcome: Outcome) -> None:
        """Record the outcome."""
        if outcome.summary:
            body = self.engine.write_path.body(clean(outcome.summary)[:SUMMARY_CHARACTERS])
            self.record(AgentMessageSent(body=body, final=True, model=self.executor.name))
        self.record(
            RunEnded(
                status=outcome.status,
                reason=shorten(one_line(clean(outcome.reason)), _REASON_WORDS),
                summary=one_line(clean(outcome.summary))[:RUN_TEXT],
                steps=outcome.steps,
                **msgspec.structs.asdict(outcome.usage),
            )
        )
        with suppress(WorkspaceBusy):
            self.engine.write_path.flush()

    def record(self, payload: Payload, key: str = "") -> list[Event]:
        """Record an event of this run; return the earlier one where its key exists."""
        return self.engine.write_path.record([Draft(data=payload, actor=self.actor, run=self.id, key=key)])
