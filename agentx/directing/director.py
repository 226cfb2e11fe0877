"""The director: it decides from the history whether a new directive is needed, and has it written.

A model writes it, or code without a model. The decision and the field values are pure code over history
(:mod:`agentx.synthesis.directing`). What a model writes is recorded, so a replay calls none. If the model
cannot be reached or understood, the last good directive stays in force; if there is none, a deterministic one
is composed.
"""

import time
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from agentx.engine.engine import Engine
from agentx.engine.moment_parser import event_at
from agentx.storage.clock import stamp
from agentx.storage.errors import UsageError
from agentx.storage.events.direction_events import (
    DirectiveFailed,
    DirectiveIssued,
    FieldExplained,
    ReusePolicy,
)
from agentx.storage.events.types import Draft, Event, RunStarted, UserMessageSent
from agentx.storage.log.blobs import BlobDamaged
from agentx.storage.log.history import told_already
from agentx.storage.text import one_line
from agentx.synthesis.directing import briefing, explaining, fields
from agentx.synthesis.directing.composer import compose
from agentx.synthesis.directing.director_answer import Directive, read
from agentx.synthesis.directing.foreign_texts import rule
from agentx.synthesis.directing.past import Past, begin, gather, readable
from agentx.synthesis.directing.policy import Decision, decide
from agentx.synthesis.learning.auditing import arguments_of, unsettled
from agentx.synthesis.model.port import ChatMessage, ModelClient, ModelError, ToolSchema, Usage
from agentx.synthesis.model.structured import ask, prompt
from agentx.synthesis.state.missions import seen_by
from agentx.synthesis.state.state import RECENT_INSTRUCTIONS, State, is_instruction

ACTOR = "agent:director"
DETERMINISTIC = "deterministic"
EXECUTOR = "executor"
"""The default role of executors."""

LOOK_FIRST = (
    "Nobody knows whether these calls went through. "
    "Look before you make one of them again, and make it with the same arguments:"
)
CUT_OFF = 10
"""Maximum number of such calls in a prompt; the latest are kept."""

TIMEOUT_S = 120.0

INSTRUCTION_CHARACTERS = 2_000

ERROR_CHARACTERS = 1_000
"""Maximum length of a recorded error, in characters."""


class Filled(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt as an executor gets it.

    Attributes:
        directive: Seq of the directive.
        text: The prompt with its fields filled in, followed by what the user demands and has ruled out.
        values: Value of each field.
    """

    directive: int
    text: str
    values: dict[str, str]


class Director:
    """Directs the runs of one workspace.

    Args:
        engine: The workspace.
        model: The model that writes directives; without one, code composes them.
        tools: The tools that executors will have.
        outside: Those of them with effects outside the workspace.
        agent: The role of the executors. Its missions count as well as those of everybody.
    """

    def __init__(
        self,
        engine: Engine,
        model: ModelClient | None = None,
        tools: Sequence[ToolSchema] = (),
        *,
        outside: Sequence[ToolSchema] = (),
        agent: str = EXECUTOR,
    ) -> None:
        self._outside = outside
        self._agent = agent
        self._engine = engine
        self._model = model
        self._tools = tools

    def decide(self) -> Decision:
        """Decide whether a new directive is needed before the next run, and why.

        The same history always gives the same decision.
        """
        serving = self._engine.snapshot().directive
        after = serving.through if serving else 0
        return decide(serving, self._engine.log.history.read(after, told_already) if serving else ())

    def direct(self, why: str) -> Event:
        """Have a directive written, and record it.

        Returns:
            The ``DirectiveIssued``, or the ``DirectiveFailed`` where the model failed and the last good one
            stays in force.
        """
        if self._model is None:
            return self._compose(why)
        state = self._engine.snapshot()
        try:
            directive, usage = ask(
                self._model,
                self.question(state, why),
                briefing.shape(),
                read,
                prompt("direct_repair.md"),
                deadline=time.monotonic() + TIMEOUT_S,
            )
        except ModelError as error:
            failed = DirectiveFailed(
                why=why,
                error=one_line(str(error))[:ERROR_CHARACTERS],
                serves=state.directive.seq if state.directive else 0,
                model=self._model.name,
                **msgspec.structs.asdict(error.usage),
            )
            [event] = self._engine.write_path.record([Draft(data=failed, actor=ACTOR, cause=state.seq)])
            return event if state.directive else self._compose(why)
        return self._issue(directive, why, state.seq, self._model.name, usage)

    def question(self, state: State, why: str) -> list[ChatMessage]:
        """Return the messages for a model that is to write a directive, as of a state."""
        earlier, instructions = self._events(state.directed), self._instructions(state)
        own = seen_by(state, self._agent)
        return briefing.question(own, self.past(state=state), earlier, instructions, why, self._tools)

    def fill(self) -> Filled:
        """Return the prompt of the current directive, ready for an executor.

        Raises:
            FieldUnresolved: A field has no value; the prompt must not be given to an executor.
        """
        directive, issued, template = self._serving()
        lookups = {name: self._lookup(directive, name, issued.policy) for name in fields.names(template)}
        resolvers = [one for one in lookups.values() if isinstance(one, fields.Lookup)]
        past = self.past(fields.runs_needed(resolvers))
        values: dict[str, str] = {}
        for name, lookup in lookups.items():
            try:
                values[name] = lookup if isinstance(lookup, str) else fields.resolve(lookup, past)
            except UsageError as error:
                raise fields.FieldUnresolved(name, str(error)) from error
        text = fields.fill(template, values)
        held = hold_to(self._engine.snapshot())
        return Filled(directive=directive, text=f"{text}\n\n{held}" if held else text, values=values)

    def past(self, runs: int = briefing.RUNS, state: State | None = None) -> Past:
        """Return what happened in the latest runs (0: in all), as of a state or of now."""
        state = state or self._engine.snapshot()
        events = self._engine.log.history.read(begin(state, runs), told_already)
        return gather(events, state, self._engine.read_body, stamp())

    # --- reading --------------------------------------------------------------------------------------------

    def _instructions(self, state: State) -> list[str]:
        """Return the user's messages, oldest first.

        These are the first one, which states the overall goal, and the latest ones.
        """
        seqs = list(state.said)
        if len(seqs) == RECENT_INSTRUCTIONS:
            facts = self._engine.log.history.read(0, told_already)
            seqs.insert(0, next((event.seq for event in facts if is_instruction(event)), seqs[0]))
        messages = self._events(list(dict.fromkeys(seqs)))
        bodies = [event.data.body for event in messages if isinstance(event.data, UserMessageSent)]
        return [readable(body, self._engine.read_body)[:INSTRUCTION_CHARACTERS] for body in bodies]

    def _events(self, seqs: Sequence[int]) -> list[Event]:
        """Return the events with these seqs; damaged and purged ones are skipped."""
        return [event for seq in seqs if (event := event_at(self._engine.log, seq)) is not None]

    def _serving(self) -> tuple[int, DirectiveIssued, str]:
        """Return the seq of the current directive, the directive, and its prompt.

        A directive is composed where there is none that can be read.
        """
        for again in (True, False):
            serving = self._engine.snapshot().directive
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
            **msgspec.structs.asdict(usage),
        )
        [event] = self._engine.write_path.record([Draft(data=issued, actor=ACTOR, cause=through)])
        return event

    def _compose(self, why: str) -> Event:
        """Compose a directive without a model."""
        state = seen_by(self._engine.snapshot(), self._agent)
        directive = compose(state, self.past(), self._instructions(state), why, self._outside)
        return self._issue(directive, why, state.seq, DETERMINISTIC, Usage())


def hold_to(state: State) -> str:
    """Return what the user demands and has ruled out, and the calls that were cut off, for an executor.

    Ids, sources and reasons are left out. This text follows every prompt, whatever a director wrote. So a
    rule holds even where the directive is older.
    """
    demands = [rule(item) for item in state.active("constraint", "rejection")]
    cut_off = [f"{call.tool}({arguments_of(call)})" for call in unsettled(state)][-CUT_OFF:]
    parts = (("Hold to this:", demands), (LOOK_FIRST, cut_off))
    return "\n\n".join(
        "\n".join([title, *(f"- {line}" for line in lines)]) for title, lines in parts if lines
    )
