"""The director: it decides from the history whether a new directive is needed, and has it written.

A model writes it, or code without a model. The decision and the field values are pure code over history
(:mod:`agentx.synthesis.directing`). What a model writes is recorded, so a replay calls none. If the model
cannot be reached or understood, the last good directive stays in force; if there is none, a deterministic one
is composed.
"""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from agentx.engine.engine import Engine
from agentx.engine.moment_parser import event_at
from agentx.policy.done_once import listed
from agentx.storage.clock import stamp
from agentx.storage.errors import UsageError
from agentx.storage.events.direction_events import (
    DirectiveFailed,
    DirectiveIssued,
    FieldExplained,
    ReusePolicy,
)
from agentx.storage.events.schedule_events import ScheduleSet
from agentx.storage.events.types import (
    Draft,
    Event,
    Payload,
    RunEnded,
    RunStarted,
    ToolCallExecuted,
    UserMessageSent,
)
from agentx.storage.log.blobs import BlobDamaged
from agentx.storage.log.history import told_already
from agentx.storage.text import one_line
from agentx.synthesis.directing import briefing, explaining, fields
from agentx.synthesis.directing.acts import WINDOWS, Declaration, Listed, Occasion
from agentx.synthesis.directing.composer import compose
from agentx.synthesis.directing.director_answer import Directive, read
from agentx.synthesis.directing.field_check import checker
from agentx.synthesis.directing.foreign_texts import rule, without_fields, without_sources
from agentx.synthesis.directing.instructions import Instruction, fitted, is_thanks, missing, without
from agentx.synthesis.directing.past import Past, begin, gather, readable
from agentx.synthesis.directing.policy import Decision, decide
from agentx.synthesis.learning.auditing import arguments_of, unsettled
from agentx.synthesis.memory.conclusions import Add, Concluded, Counted
from agentx.synthesis.model.port import ChatMessage, ModelClient, ModelError, ToolSchema, Usage
from agentx.synthesis.model.structured import ask, prompt
from agentx.synthesis.state.missions import seen_by
from agentx.synthesis.state.schedule_items import concerns, of_schedule
from agentx.synthesis.state.state import RECENT_INSTRUCTIONS, PendingCall, State, is_instruction

ACTOR = "agent:director"
DETERMINISTIC = "deterministic"
EXECUTOR = "executor"
"""The default role of executors."""

LOOK_FIRST = (
    "Nobody knows whether these calls went through. "
    "Look before you make one of them again, and make it with the same arguments:"
)
ASKED = "Nobody knows whether these were done. The user is asked: leave them, and go on with the rest:"
CUT_OFF = 10
"""Maximum number of calls of each kind without a result in a prompt; the latest are kept."""

TIMEOUT_S = 120.0

ERROR_CHARACTERS = 1_000
"""Maximum length of a recorded error, in characters."""

LEFT_OUT = "The user's own words, the later ones before the earlier where they differ:"
NEWER = "The user said this after all that stands above, so it counts where they differ:"


class Filled(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt as an executor gets it.

    Attributes:
        directive: Seq of the directive.
        text: The prompt with its fields filled in, followed by what the user demands and has ruled out.
        values: Value of each field, as JSON.
        done: The acts that were done within the windows that are open.
    """

    directive: int
    text: str
    values: dict[str, Any]
    done: tuple[Listed, ...] = ()


class Director:
    """Directs the runs of one schedule of a workspace, or those without a schedule.

    Args:
        engine: The workspace.
        model: The model that writes directives; without one, code composes them.
        tools: The tools that executors will have.
        outside: Those of them with effects outside the workspace.
        agent: The role of the executors. Its missions count as well as those of everybody.
        occasion: The schedule of the next run and its due time; each schedule has its own directive.
        text_only: Whether the executor reads text and has no tools.
        declarations: What makes two calls of a tool the same act, by name.
        repeatable: Tools of which a call without a result may be made again. Of others, a declared act is
            refused until the user says what came of it.

    Attributes:
        failed: A sentence on why the model last failed, and what serves instead; empty if it did not.
    """

    def __init__(  # noqa: PLR0913 - each is a part of what is directed
        self,
        engine: Engine,
        model: ModelClient | None = None,
        tools: Sequence[ToolSchema] = (),
        *,
        outside: Sequence[ToolSchema] = (),
        agent: str = EXECUTOR,
        occasion: Occasion = Occasion(),  # noqa: B008 - a value
        text_only: bool = False,
        declarations: Mapping[str, Declaration] | None = None,
        repeatable: Collection[str] = (),
    ) -> None:
        self._repeatable = repeatable
        self._outside = () if text_only else outside
        self._agent = agent
        self._engine = engine
        self._model = model
        self._tools = () if text_only else tools
        self._occasion = occasion
        self._schedule = occasion.schedule
        self._text_only = text_only
        self._declarations = declarations or {}
        self.failed = ""

    def decide(self) -> Decision:
        """Decide whether a new directive is needed before the next run, and why.

        The same history always gives the same decision.
        """
        state = self._engine.snapshot()
        serving = state.directives.get(self._schedule)
        after = serving.through if serving else 0
        events = self._engine.log.history.read(after, told_already) if serving else ()
        return decide(serving, self._own(events, state))

    def direct(self, why: str) -> Event:
        """Have a directive written, and record it.

        Returns:
            The ``DirectiveIssued``, or the ``DirectiveFailed`` where the model failed and the last good one
            stays in force.
        """
        if self._model is None:
            return self._compose(why)
        state = self._engine.snapshot()
        serving = state.directives.get(self._schedule)
        check = checker(lambda runs: self.past(runs, state), self._tools, text_only=self._text_only)
        try:
            directive, usage = ask(
                self._model,
                self.question(state, why),
                briefing.shape(),
                lambda reply: read(reply, check),
                prompt("direct_repair.md"),
                deadline=time.monotonic() + TIMEOUT_S,
            )
        except ModelError as error:
            failed = DirectiveFailed(
                why=why,
                error=one_line(str(error))[:ERROR_CHARACTERS],
                serves=serving.seq if serving else 0,
                model=self._model.name,
                schedule=self._schedule,
                **msgspec.structs.asdict(error.usage),
            )
            [event] = self._engine.write_path.record([Draft(data=failed, actor=ACTOR, cause=state.seq)])
            serves = "the last directive serves, with your newer words" if serving else "code composed one"
            self.failed = f"The director failed ({failed.error.rstrip('.')}): {serves}."
            # What is composed read no further than before the failure, so the model is asked again.
            return event if serving else self._compose(why, state)
        return self._issue(self._completed(directive, state), why, state.seq, self._model.name, usage)

    def question(self, state: State, why: str) -> list[ChatMessage]:
        """Return the messages for a model that is to write a directive, as of a state."""
        return briefing.question(
            self._seen(state),
            self.past(state=state),
            self._events(state.directed.get(self._schedule, ())),
            [one.dated for one in self._instructions(state)],
            why,
            self._tools,
            text_only=self._text_only,
        )

    def fill(self) -> Filled:
        """Return the prompt of the current directive, ready for an executor.

        Raises:
            FieldUnresolved: A field has no value; the prompt must not be given to an executor.
        """
        directive, issued, template = self._serving()
        lookups = {name: self._lookup(directive, name, issued.policy) for name in fields.names(template)}
        resolvers = [one for one in lookups.values() if isinstance(one, fields.Lookup)]
        past = self.past(fields.runs_needed(resolvers))
        values: dict[str, fields.Value] = {}
        for name, lookup in lookups.items():
            try:
                values[name] = lookup if isinstance(lookup, str) else fields.answer(lookup, past)
            except UsageError as error:
                raise fields.FieldUnresolved(name, str(error)) from error
        state = self._seen(self._engine.snapshot())
        held = hold_to(state, self._cut_off(state), self._repeatable)
        shown = {
            name: str(value) if isinstance(lookups[name], str) else fields.shown(value)
            for name, value in values.items()
        }
        newer = self._newer(issued.through, state)
        text = "\n\n".join(filter(None, (fields.fill(template, shown), newer, self._times(past), held)))
        data = {name: fields.as_data(value) for name, value in values.items()}
        return Filled(directive=directive, text=text, values=data, done=past.done)

    def values(self, policy: ReusePolicy) -> dict[str, str]:
        """Return what each field of a directive gives now, or why it gives nothing. No model is asked."""
        found = {}
        for name, words in policy.dynamic_fields.items():
            lookup = fields.parse(words) or fields.parse(name)
            if lookup is None:
                found[name] = "(described in words: a model is asked before the run)"
                continue
            try:
                found[name] = fields.resolve(lookup, self.past(fields.runs_needed([lookup])))
            except UsageError as error:
                found[name] = f"({error})"
        return found

    def past(self, runs: int = briefing.RUNS, state: State | None = None) -> Past:
        """Return what happened in the latest runs (0: in all), as of a state or of now."""
        state = state or self._engine.snapshot()
        events = self._engine.log.history.read(begin(state, runs, self._schedule), told_already)
        read_body = self._engine.read_body
        past = gather(events, state, read_body, stamp(), schedule=self._schedule, due=self._occasion.due)
        done = listed(self._engine, state, self._occasion, self._declarations)
        return msgspec.structs.replace(past, done=done)

    # --- reading --------------------------------------------------------------------------------------------

    def _seen(self, state: State) -> State:
        """Return the state with the memory that concerns these runs, and followed rules."""
        return self._engine.told(of_schedule(seen_by(state, self._agent), self._schedule))

    def _cut_off(self, state: State) -> list[PendingCall]:
        """Return the calls without a result whose acts could be done again now: their windows are open."""
        now = stamp()
        opened = {self._occasion.window(kind, now) for kind in WINDOWS}
        return [
            call
            for call in unsettled(state)
            if not (acts := self._engine.acts.begun_by(call)) or any(one.window in opened for one in acts)
        ]

    def _times(self, past: Past) -> str:
        """Return the present and the due time of a schedule's run, for its executor."""
        if not self._schedule:
            return ""
        due = f" This run is due {past.moment(past.due)}." if past.due else ""
        return f"It is {past.moment(past.at)}.{due}"

    def _own(self, events: Iterable[Event], state: State) -> Iterator[Event]:
        """Yield the events that concern these runs, without conclusions about other schedules."""
        schedules = {run.run: run.schedule for run in state.runs}
        for event in events:
            match event.data:
                case RunStarted() as run:
                    schedules[event.run] = run.schedule
                case RunEnded() | ToolCallExecuted() if schedules.get(event.run, "") != self._schedule:
                    continue
                case UserMessageSent(schedule=of) if of not in ("", self._schedule):
                    continue
                case DirectiveFailed(schedule=of) if of != self._schedule:
                    continue
                case Concluded(changes=changes) as concluded:
                    own = []
                    for change in changes:
                        if isinstance(change, Counted):
                            continue
                        item = change.item if isinstance(change, Add) else state.items.get(change.id)
                        if item is None or concerns(state, item, self._schedule):
                            own.append(change)
                    data = msgspec.structs.replace(concluded, changes=tuple(own))
                    yield msgspec.structs.replace(event, data=data)
                    continue
            yield event

    def _instructions(self, state: State, after: int = 0) -> list[Instruction]:
        """Return the user's messages that these runs serve, oldest first, as long as a prompt may be.

        Only those behind the event ``after``.

        The task of another schedule, a task that was replaced or removed, and thanks are left out.
        """
        found = []
        for event, before in self._messages(state):
            assert isinstance(event.data, UserMessageSent)
            text = readable(event.data.body, self._engine.read_body)
            of, known = event.data.schedule, state.schedules.get(self._schedule)
            counts = not of or (known is not None and event.seq == known.told)
            # Earlier versions recorded a schedule's task as a message for all, right behind the schedule.
            if not of and isinstance(before, ScheduleSet) and before.directed and before.task == text:
                counts = (
                    known is not None
                    and (before.id, known.rule.task) == (self._schedule, text)
                    and not known.told
                )
            if counts and event.seq > after and not is_thanks(text):
                found.append(Instruction(text, event.at))
        return fitted(found)

    def _newer(self, through: int, state: State) -> str:
        """Return the user's words that a directive which read the history up to ``through`` cannot know.

        Its director failed since, or they came while it wrote. What every prompt is held to is left out.
        """
        rules = [item.text for item in state.active("constraint", "rejection")]
        said = [f"- {one_line(one.text)}" for one in without(self._instructions(state, through), rules)]
        return without_sources("\n".join([NEWER, *said])) if said else ""

    def _messages(self, state: State) -> Iterator[tuple[Event, Payload | None]]:
        """Yield the user's messages up to a state, oldest first, each with what was recorded before it."""
        if len(state.said) < RECENT_INSTRUCTIONS:
            for event in self._events(state.said):
                before = event_at(self._engine.log, event.seq - 1)
                yield event, before.data if before else None
            return
        before_it: Payload | None = None
        for event in self._engine.log.history.read(0, told_already):
            if event.seq > state.seq:
                return
            if is_instruction(event):
                yield event, before_it
            before_it = event.data

    def _events(self, seqs: Sequence[int]) -> list[Event]:
        """Return the events with these seqs; damaged and purged ones are skipped."""
        return [event for seq in seqs if (event := event_at(self._engine.log, seq)) is not None]

    def _serving(self) -> tuple[int, DirectiveIssued, str]:
        """Return the seq of the current directive, the directive, and its prompt.

        A directive is composed where there is none that can be read.
        """
        for again in (True, False):
            serving = self._engine.snapshot().directives.get(self._schedule)
            event = event_at(self._engine.log, serving.seq) if serving else None
            if event is not None and isinstance(event.data, DirectiveIssued):
                with suppress(BlobDamaged):
                    return event.seq, event.data, self._engine.read_body(event.data.prompt)
            if again:
                self._compose("the directive cannot be read" if serving else "there is no directive yet")
        raise AssertionError("a directive that was just issued was not found")

    def _lookup(self, directive: int, name: str, policy: ReusePolicy) -> fields.Lookup | str:
        """Return the resolver of a field, or the value that a model gave."""
        words = policy.dynamic_fields.get(name, name)
        lookup = fields.parse(words) or fields.parse(name)
        if lookup is not None:
            return lookup
        explained = self._explained(directive, name) or self._explain(directive, name, words)
        found = fields.parse(explained.resolver) or explained.value
        if not found:
            raise fields.FieldUnresolved(name, f"unknown resolver {explained.resolver!r}")
        return found

    def _explained(self, directive: int, name: str) -> FieldExplained | None:
        """Return a model's earlier explanation of a field.

        A resolver stays valid; a value is valid only for the run that it was asked for.
        """
        found: FieldExplained | None = None
        for event in self._engine.log.history.read(directive, told_already):
            match event.data:
                case FieldExplained(directive=of, field=field) as answer if (of, field) == (directive, name):
                    found = answer
                case RunStarted() if found is not None and found.value:
                    found = None
        return found

    def _explain(self, directive: int, name: str, words: str) -> FieldExplained:
        """Ask a model how to fill a field, and record its answer."""
        if self._model is None:
            raise fields.FieldUnresolved(
                name, f"the resolver {words!r} is unknown, and no model is configured to interpret it"
            )
        past = self.past()
        try:
            answer, usage = ask(
                self._model,
                explaining.question(name, words, past),
                explaining.shape(),
                explaining.reader(past),
                prompt("direct_repair.md"),
                deadline=time.monotonic() + TIMEOUT_S,
            )
        except ModelError as error:
            raise fields.FieldUnresolved(
                name, f"its description ({words!r}) could not be resolved: {error}"
            ) from error
        explained = FieldExplained(
            directive=directive,
            field=name,
            words=words,
            resolver=answer.resolver,
            value=answer.value,
            through=self._engine.snapshot().seq,
            model=self._model.name,
            **msgspec.structs.asdict(usage),
        )
        self._engine.write_path.record([Draft(data=explained, actor=ACTOR, cause=directive)])
        return explained

    # --- writing --------------------------------------------------------------------------------------------

    def _completed(self, directive: Directive, state: State) -> Directive:
        """Return a model's directive with the user's sentences that its prompt leaves out."""
        rules = list(self._seen(state).active("constraint", "rejection"))
        said = without(self._instructions(state), [item.text for item in rules])
        stated = "\n".join([directive.prompt, *map(rule, rules)])
        left_out = [f"- {one_line(one.text)}" for one in missing(said, stated)]
        if not left_out:
            return directive
        added = without_fields(without_sources("\n".join([LEFT_OUT, *left_out])))
        return msgspec.structs.replace(directive, prompt=f"{directive.prompt}\n\n{added}")

    def _issue(self, directive: Directive, why: str, through: int, model: str, usage: Usage) -> Event:
        issued = DirectiveIssued(
            why=why,
            summary=directive.summary,
            strategy=directive.strategy,
            reflection=directive.reflection,
            prompt=self._engine.write_path.body(directive.prompt),
            policy=directive.policy,
            checkpoints=directive.checkpoints,
            knowledge=directive.knowledge,
            through=through,
            model=model,
            schedule=self._schedule,
            **msgspec.structs.asdict(usage),
        )
        [event] = self._engine.write_path.record([Draft(data=issued, actor=ACTOR, cause=through)])
        return event

    def _compose(self, why: str, state: State | None = None) -> Event:
        """Compose a directive without a model, as of a state or of now."""
        state = state or self._engine.snapshot()
        said = [one.text for one in self._instructions(state)]
        past = self.past(state=state)
        directive = compose(self._seen(state), past, said, why, self._outside, self._declarations)
        return self._issue(directive, why, state.seq, DETERMINISTIC, Usage())


def hold_to(state: State, calls: Sequence[PendingCall], repeatable: Collection[str]) -> str:
    """Return what the user demands and has ruled out, and the calls that were cut off, for an executor.

    Ids, sources and reasons are left out. This text follows every prompt, whatever a director wrote. So a
    rule holds even where the directive is older.
    """
    demands = list(dict.fromkeys(rule(item) for item in state.active("constraint", "rejection")))
    asked: list[str] = []
    cut_off: list[str] = []
    for call in calls:
        is_refused = call.acts.text and call.tool not in repeatable
        (asked if is_refused else cut_off).append(f"{call.tool}({arguments_of(call)})")
    parts = (("Hold to this:", demands), (LOOK_FIRST, cut_off[-CUT_OFF:]), (ASKED, asked[-CUT_OFF:]))
    return "\n\n".join(
        "\n".join([title, *(f"- {line}" for line in lines)]) for title, lines in parts if lines
    )
