"""The facts of directed runs: the directives of a director, and the values of their dynamic fields."""

from typing import Literal

import msgspec

from agentx.storage.events.types import WORDS, Body, Event, Payload
from agentx.storage.text import shorten


class ReusePolicy(msgspec.Struct, frozen=True, omit_defaults=True):
    """How long a directive is reused before the director is asked again.

    Attributes:
        valid_for_runs: Number of runs it is valid for.
        invalidate_on: Names of conditions that invalidate it at once, like ``executor_failed`` or
            ``tool_error:send_email``.
        dynamic_fields: The source of each ``{{name}}`` in the prompt: a resolver like
            ``values(tool=send_email, path=titles[*], runs=5)``, or a description in words.
    """

    valid_for_runs: int = 1
    invalidate_on: tuple[str, ...] = ()
    dynamic_fields: dict[str, str] = {}


CheckpointSort = Literal["milestone", "issue_resolved", "strategy_change"]


class NewCheckpoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """A checkpoint on the timeline: what happened, and what to do about it next time."""

    sort: CheckpointSort
    text: str
    actionable: str = ""


class NewKnowledge(msgspec.Struct, frozen=True, omit_defaults=True):
    """A fact that is valid across runs, by topic."""

    topic: str
    text: str


class DirectiveIssued(Payload, frozen=True):
    """A director read the history and wrote the prompt for executors from now on.

    Attributes:
        why: Why the director was asked.
        summary: Its summary of the history.
        strategy: The strategy it chose.
        reflection: Its assessment of this directive.
        prompt: The executor's system prompt, with ``{{fields}}`` that are filled before each run.
        policy: How long the directive is reused.
        checkpoints: Checkpoints that it adds to the timeline.
        knowledge: Facts that it learned.
        through: The last event that it read.
        model: Name of the directing model; ``deterministic`` if no model was used.
        schedule: Id of the schedule whose runs it directs; empty for runs without a schedule.
    """

    why: str
    summary: str
    strategy: str
    prompt: Body
    policy: ReusePolicy = ReusePolicy()
    reflection: str = ""
    checkpoints: tuple[NewCheckpoint, ...] = ()
    knowledge: tuple[NewKnowledge, ...] = ()
    through: int = 0
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    schedule: str = ""

    def _line(self, _event: Event, /) -> str:
        return f"Direct: {shorten(self.summary, WORDS)}"


class DirectiveFailed(Payload, frozen=True):
    """A director could not be reached, or two of its answers could not be parsed.

    Attributes:
        why: Why the director was asked.
        error: What went wrong, for a human reader.
        serves: Seq of the directive that stays in use; 0 if there is none.
        model: Name of the model that was asked.
        schedule: Id of the schedule whose runs it directs; empty for runs without a schedule.
    """

    why: str
    error: str
    serves: int = 0
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    schedule: str = ""

    def _line(self, _event: Event, /) -> str:
        return f"The director failed: {shorten(self.error, WORDS)}"


class FieldExplained(Payload, frozen=True):
    """A model resolved a dynamic field that was only described in words; it is not asked again.

    Attributes:
        directive: Seq of the directive that the field belongs to.
        field: Name of the field.
        words: The description.
        resolver: The resolver that gives its value from now on; empty if no resolver can.
        value: The value itself, if no resolver can give it; valid for one run.
        through: The last event that the value is based on.
        model: Name of the model.
    """

    directive: int
    field: str
    words: str
    resolver: str = ""
    value: str = ""
    through: int = 0
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0

    def _line(self, _event: Event, /) -> str:
        return f"Explain the field {self.field}: {shorten(self.resolver or self.value, WORDS)}"
