"""A pipeline with everything in it resolved: the steps of every item, and the loops that they stand in."""

from typing import Any

import msgspec

from agentx.synthesis.pipelines.definition.pipeline import (
    AGENTS,
    BY_ENGINE,
    BY_MODEL,
    AgentType,
    Append,
    NotRead,
    Pipeline,
    Read,
    Role,
    Write,
)


class Item(msgspec.Struct, frozen=True):
    """One of what stages are done for each of.

    Attributes:
        id: Its key.
        number: Its place, from 1.
        values: What templates are given of it; ``id``, ``number``, ``first`` and ``last`` too.
    """

    id: str
    number: int
    values: dict[str, Any]


class ReadFile(msgspec.Struct, frozen=True):
    """A file that a step reads: the pointer, and the paths that it comes to.

    Attributes:
        paths: Relative to the artifacts, or to the tree ``source``; names may hold ``*``.
    """

    rule: Read
    source: str
    paths: tuple[str, ...]


class WriteFile(msgspec.Struct, frozen=True):
    """A file that a step writes: the pointer, and its path."""

    rule: Write
    path: str
    sort: str


class AppendFile(msgspec.Struct, frozen=True):
    """A file of the long-term memory that grows when a step is done, and the file that it grows from."""

    rule: Append
    to: str
    source: str


class Step(msgspec.Struct, frozen=True):
    """A stage for one item: what an agent is sent to do.

    Attributes:
        key: Names it: ``write[03]``, or ``outline`` for a stage that is done once.
        needs: Keys of what is done before; of a loop, all of it.
        loop: Key of the loop that it stands in, ``revise[03]``; empty for none.
        inside: Keys of the steps of the same loop that are done before it in each round.
        values: What its templates are given.
        forbidden: What its role does not read: paths, and why.
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


class LoopStep(msgspec.Struct, frozen=True):
    """A loop for one item.

    Attributes:
        steps: Keys of its steps, each behind those that it needs.
        decides: Key of the step that writes the verdict.
        verdict: The path that it stands in.
    """

    key: str
    loop: str
    item: str
    at_most: int
    otherwise: str
    steps: tuple[str, ...]
    decides: str
    verdict: str


class Plan(msgspec.Struct, frozen=True):
    """A pipeline with everything in it resolved.

    Attributes:
        steps: By key, in an order in which each stands behind what it needs.
        loops: By key.
        paths: Every path of each file that roles name, by the file's name.
    """

    pipeline: Pipeline
    items: dict[str, tuple[Item, ...]]
    steps: dict[str, Step]
    loops: dict[str, LoopStep]
    paths: dict[str, tuple[str, ...]]

    def role(self, step: Step) -> Role:
        """The role that does a step."""
        return self.pipeline.roles[step.role]

    def agent(self, role: Role) -> AgentType:
        """The type of agent that plays a role."""
        return agent_types(self.pipeline)[role.agent]


def agent_types(pipeline: Pipeline) -> dict[str, AgentType]:
    """The types of agents that there are."""
    return AGENTS | pipeline.agents


def is_by_model(role: Role) -> bool:
    """Whether a model plays a role."""
    return role.by == (BY_MODEL,)


def is_by_engine(role: Role) -> bool:
    """Whether no agent plays a role."""
    return role.by == (BY_ENGINE,)


def is_by_text(role: Role) -> bool:
    """Whether a program without tools plays a role: what it prints is its file."""
    return role.speaks == "text" and not is_by_model(role) and not is_by_engine(role)
