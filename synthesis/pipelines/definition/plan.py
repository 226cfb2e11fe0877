"""A fully resolved pipeline: the steps of every item, and their loops."""

from typing import Any

import msgspec

from agentx.synthesis.pipelines.definition.pipeline import (
    AGENTS,
    BY_ENGINE,
    BY_MODEL,
    BY_PERSON,
    AgentType,
    Append,
    NotRead,
    Pipeline,
    Read,
    Role,
    Write,
)


class Item(msgspec.Struct, frozen=True):
    """An item that stages are repeated for, or a combination of items.

    Attributes:
        id: Its key; of a combination, the keys of its parts with commas between them.
        number: Its place, from 1.
        parts: Its values for templates by the name of the items, including ``id``, ``number``, ``first`` and
            ``last``. A single item has one part.
        first: Whether it is the first of its items. ``last`` says the same of the last.
    """

    id: str
    number: int
    parts: dict[str, dict[str, Any]]
    first: bool = False
    last: bool = False

    def matches(self, word: str) -> bool:
        """Return whether a word names it: its key, or the key of one of its parts."""
        return word == self.id or any(part["id"] == word for part in self.parts.values())


class ReadFile(msgspec.Struct, frozen=True):
    """A file that a step reads: the pointer, and the resolved paths.

    Attributes:
        paths: Relative to the artifacts, or to the tree ``source``; names may contain ``*``.
    """

    rule: Read
    source: str
    paths: tuple[str, ...]


class WriteFile(msgspec.Struct, frozen=True):
    """A file that a step writes: the pointer, its path, and its class."""

    rule: Write
    path: str
    sort: str


class AppendFile(msgspec.Struct, frozen=True):
    """A file of the long-term memory that a finished step appends to, and the file it appends from."""

    rule: Append
    to: str
    source: str


class Step(msgspec.Struct, frozen=True):
    """A stage for one item: one task for an agent.

    Attributes:
        key: Its key: ``write[03]``, or ``outline`` for a stage that is done once.
        needs: Keys of the steps and loops that must be done before.
        loop: Key of the loop that contains it, ``revise[03]``; empty for none.
        inside: Keys of the steps of the same loop that are done before it in each round.
        values: Values for its templates.
        of: Its item; ``None`` for a stage that is done once.
        forbidden: Files that its role must not read, and why.
    """

    key: str
    stage: str
    role: str
    item: str
    loop: str
    needs: tuple[str, ...]
    inside: tuple[str, ...]
    reads: tuple[ReadFile, ...]
    writes: tuple[WriteFile, ...]
    appends: tuple[AppendFile, ...]
    values: dict[str, Any]
    forbidden: tuple[NotRead, ...] = ()
    of: Item | None = None


class LoopStep(msgspec.Struct, frozen=True):
    """A loop for one item.

    Attributes:
        steps: Keys of its steps, in topological order.
        decides: Key of the step that writes the verdict.
        verdict: Path of the file with the verdict.
    """

    key: str
    loop: str
    item: str
    at_most: int
    otherwise: str
    steps: tuple[str, ...]
    decides: str
    verdict: str


class OpenStage(msgspec.Struct, frozen=True):
    """A stage or loop whose steps are not known yet.

    Attributes:
        items: Name of the items that are missing.
        needs: Keys of the steps and loops that must be done before; ``write[*]`` is all of an open stage.
    """

    items: str
    needs: tuple[str, ...]


class Plan(msgspec.Struct, frozen=True):
    """A fully resolved pipeline.

    Attributes:
        items: The known items, by name.
        steps: By key, in topological order.
        loops: By key.
        paths: All paths of each file that roles name, by the file's name.
        each: For each stage and loop, the items that it is repeated for; (``None``,) where it runs once.
        open: The stages and loops whose steps are not known yet, by name.
    """

    pipeline: Pipeline
    items: dict[str, tuple[Item, ...]]
    steps: dict[str, Step]
    loops: dict[str, LoopStep]
    paths: dict[str, tuple[str, ...]]
    each: dict[str, tuple[Item | None, ...]] = {}
    open: dict[str, OpenStage] = {}

    def role(self, step: Step) -> Role:
        """Return the role of a step."""
        return self.pipeline.roles[step.role]

    def agent(self, role: Role) -> AgentType:
        """Return the agent type of a role."""
        return agent_types(self.pipeline)[role.agent]


def agent_types(pipeline: Pipeline) -> dict[str, AgentType]:
    """Return all agent types, built-in and declared."""
    return AGENTS | pipeline.agents


def is_by_model(role: Role) -> bool:
    """Return whether a model plays a role."""
    return role.by == (BY_MODEL,)


def is_by_engine(role: Role) -> bool:
    """Return whether the engine plays a role, without an agent."""
    return role.by == (BY_ENGINE,)


def is_by_person(role: Role) -> bool:
    """Return whether a person plays a role."""
    return role.by == (BY_PERSON,)


def is_by_program(role: Role) -> bool:
    """Return whether a program plays a role."""
    return not (is_by_model(role) or is_by_engine(role) or is_by_person(role))


def is_by_text(role: Role) -> bool:
    """Return whether a program without tools plays a role: its output is its file."""
    return role.speaks == "text" and is_by_program(role)
