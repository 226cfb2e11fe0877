"""The facts of directed runs: the directives that a director issues, and what its fields stand for."""

from typing import Literal

import msgspec

from agentx.storage.events.types import Body, Payload


class ReusePolicy(msgspec.Struct, frozen=True, omit_defaults=True):
    """How long a directive serves before the director is asked again.

    Attributes:
        valid_for_runs: So many runs.
        invalidate_on: Names of conditions that end it at once, like ``executor_failed`` or ``tool_error:send_email``.
        dynamic_fields: What stands for each ``{{name}}`` of the prompt: a resolver like
            ``values(tool=send_email, path=titles[*], runs=5)``, or a description in words.
    """

    valid_for_runs: int = 1
    invalidate_on: tuple[str, ...] = ()
    dynamic_fields: dict[str, str] = {}


CheckpointSort = Literal["milestone", "issue_resolved", "strategy_change"]


class NewCheckpoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """A mark on the timeline: what happened, and what to do about it another time."""

    sort: CheckpointSort
    text: str
    actionable: str = ""


class NewKnowledge(msgspec.Struct, frozen=True, omit_defaults=True):
    """A fact that holds across runs, by topic."""

    topic: str
    text: str


class DirectiveIssued(Payload, frozen=True):
    """A director read the history and wrote the prompt that executors carry out from now on.

    Attributes:
        why: Why it was asked.
        summary: What it makes of the history.
        strategy: What it goes for.
        reflection: What it thinks of its own directive.
        prompt: The executor's system prompt, with ``{{fields}}`` that are filled before each run.
        policy: How long that serves.
        checkpoints: Marks on the timeline that it leaves.
        knowledge: Facts that it learned.
        through: The last event that it read.
        model: Who directed; ``deterministic`` where it was no model.
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


class DirectiveFailed(Payload, frozen=True):
    """A director could not be reached, or its answer not be read twice.

    Attributes:
        why: Why it was asked.
        error: What went wrong, for a person.
        serves: Seq of the directive that serves on; 0 where there is none.
        model: Who was asked.
    """

    why: str
    error: str
    serves: int = 0
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0


class FieldExplained(Payload, frozen=True):
    """A model said what a dynamic field stands for that was only described in words; it is not asked again.

    Attributes:
        directive: Seq of the directive whose field it is.
        field: Its name.
        words: The description.
        resolver: The resolver that gives its value from now on; empty where no resolver can.
        value: The value itself where no resolver can give it; holds for one run.
        through: The last event that the value rests on.
        model: Who said so.
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
