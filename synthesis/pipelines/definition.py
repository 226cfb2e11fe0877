"""What a pipeline is, as its file says it: files, roles, stages.

The shapes here are the format of the file, its JSON schema for editors, and what the engine works with. Everything in
them is text as it was written; a ``{{ template }}`` in it is filled for each item (:mod:`agentx.synthesis.pipelines.templates`).
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
"""A name of ours: letters, digits, ``-`` and ``_``."""

BY_ENGINE = "engine"
"""``by`` of a role that no agent plays: what it writes is filled in from what it reads."""


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Names = Annotated[tuple[Name, ...], BeforeValidator(_listed)]


class Part(BaseModel):
    """Base of the parts of a pipeline: a key that is not known is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class AgentType(Part):
    """What kind of agent plays a role, and how much it takes.

    ``window``: tokens of its context. ``system``: of them, what the provider's own prompt takes. ``output``: what is kept free for
    its answer. ``max_files``: how many files it is given at most. ``read_only``: it makes nothing but one report of its own.
    """

    window: int = Field(default=128_000, gt=0)
    system: int = Field(default=2_000, ge=0)
    output: int = Field(default=8_000, gt=0)
    max_files: int = Field(default=20, gt=0)
    max_steps: int = Field(default=20, gt=0)
    max_time_s: float = Field(default=900.0, gt=0)
    read_only: bool = False


AGENTS: dict[str, AgentType] = {
    "explore": AgentType(window=64_000, output=4_000, max_files=100, max_steps=40, read_only=True),
    "general-purpose": AgentType(),
}
"""The types that exist without being declared."""


class File(Part):
    """A file, or one for each item where its path says so.

    ``path``: relative to the artifacts; each line of it is a file, and ``*`` and ``**`` match names. ``class``: ``static`` is written once,
    ``append-only`` only ever grows, ``overwritable`` is free. ``source``: a tree outside the artifacts, which is read and never written.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    path: str = Field(min_length=1)
    sort: Literal["static", "append-only", "overwritable"] = Field(default="overwritable", alias="class")
    source: str = ""
    about: str = ""


class Length(Part):
    """How many words a file has: ``words`` more or less ``within`` of them."""

    words: str = Field(min_length=1)
    within: float = Field(default=0.2, ge=0, lt=1)


class Check(Part):
    """Something that has to hold of a file; exactly one of these.

    ``length``: its words. ``sections``: headings that it has, each with text below. ``terms``: the file of a glossary; a draft uses its
    terms and none of the words that it says to avoid, and defines none anew; ``uses`` names terms that have to stand in it. ``unused``: the
    file of a registry; no entry of other items stands in it again. ``absent``: words that may not stand in it. ``matches``: a regular expression that is found in
    it. ``command``: a program that ends with 0; it runs in a copy of the artifacts and is given the path of the file.
    """

    length: Length | None = None
    sections: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()
    terms: str = ""
    uses: str = ""
    unused: str = ""
    absent: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()
    matches: str = ""
    command: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()

    @model_validator(mode="after")
    def _is_one(self) -> "Check":
        given = [name for name in type(self).model_fields if name != "uses" and getattr(self, name)]
        if len(given) != 1:
            raise ValueError(f"a check is one thing, and this one says {' and '.join(given) or 'nothing'}")
        if self.uses and not self.terms:
            raise ValueError("`uses` goes with `terms`, the glossary that the terms stand in")
        return self


class Read(Part):
    """A file that a role reads.

    ``purpose``: what for. ``fit``: what is given of it where there is not room for all: ``recent`` (the latest ``keep`` sections whole, of older ones a
    sentence), ``sections`` (those that matter for the task), ``whole`` (all of it, or the agent is not sent). ``if_room``: it is given only if there is room. ``optional``: it may not
    be there yet. ``checks``: what the engine looks at in it for the role, which is told what was found; a verdict cannot be PASS against it.
    """

    file: Name
    purpose: str = ""
    fit: Literal["whole", "recent", "sections"] = "whole"
    keep: int = Field(default=3, ge=0)
    if_room: bool = False
    optional: bool = False
    checks: tuple[Check, ...] = ()


class Write(Part):
    """A file that a role writes.

    ``format``: what is asked of it, in words. ``marker``: the completion marker that its last line carries, ``<!-- MARKER -->`` in Markdown and HTML. ``comment``: how
    a comment is written in it, where its name does not say. ``only``: for which item. ``verdict``: it has a line ``Verdict: PASS`` or ``Verdict: FAIL``. ``content``: for a role of the engine, the
    template that it is filled from.
    """

    file: Name
    format: str = ""
    marker: str = Field(default="", pattern=r"^([A-Z][A-Z0-9_]*)?$")
    only: Literal["every", "first", "last"] = "every"
    verdict: bool = False
    checks: tuple[Check, ...] = ()
    content: str = ""


class Append(Part):
    """What the engine adds to the long-term memory when a stage is done.

    ``to``: an append-only file. ``from``: a file that the role wrote. ``section``: the heading in it whose text is added. ``under``: the heading that it gets there. ``topic``: the
    topic under which each entry becomes a memory item; none where it is empty.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    to: Name
    source: Name = Field(alias="from")
    section: str = ""
    under: str = ""
    topic: str = ""


class NotRead(Part):
    """A file that a role does not read, and why; of a file for each item, those of other items."""

    file: Name
    why: str = ""


def _not_read(value: Any) -> Any:
    return (
        [{"file": one} if isinstance(one, str) else one for one in value]
        if isinstance(value, list)
        else value
    )


class Role(Part):
    """Who does something: what it is told, what it reads, what it writes.

    ``by``: ``model``, ``engine`` (its files are filled from templates), or a program and its arguments. ``speaks``: what such a program speaks, ``text``
    (the prompt on stdin, the file on stdout) or ``jsonl``. ``prompt``: a template in place of the one that every role has. ``attempts``: how often an agent is sent at
    most, until what it wrote is in order. ``split``: a file of many that the task may be split over where there is not room for all.
    """

    title: str = ""
    duty: str = ""
    agent: str = "general-purpose"
    by: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ("model",)
    speaks: Literal["text", "jsonl"] = "text"
    model: str = ""
    task: str = ""
    prompt: str = ""
    reads: tuple[Read, ...] = ()
    does_not_read: Annotated[tuple[NotRead, ...], BeforeValidator(_not_read)] = ()
    writes: tuple[Write, ...] = Field(min_length=1)
    appends: tuple[Append, ...] = ()
    standards: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()
    attempts: int = Field(default=3, ge=1, le=20)
    split: str = ""


class Stage(Part):
    """One step: a role at work, once or for each item.

    ``after``: stages that are done before, for the same item where both are done for each. ``after_previous``: stages that are done before for the item
    before this one.
    """

    id: Name
    role: Name
    for_each: str = ""
    after: Names = ()
    after_previous: Names = ()


class Until(Part):
    """The end of a loop: the verdict in this file is PASS."""

    file: Name


class Loop(Part):
    """Stages that are done again and again, until a verdict is PASS.

    ``at_most``: how many times. ``otherwise``: what comes then: ``fail``, or ``go-on`` with what there is.
    """

    loop: Name
    until: Until
    at_most: int = Field(default=3, ge=1, le=50)
    otherwise: Literal["fail", "go-on"] = "fail"
    for_each: str = ""
    after: Names = ()
    after_previous: Names = ()
    stages: tuple[Stage, ...] = Field(min_length=1)


class Bounds(Part):
    """What the whole pipeline may use, over all of its runs."""

    max_tokens: int = Field(default=0, ge=0)
    max_cost_usd: float = Field(default=0.0, ge=0)
    max_dispatches: int = Field(default=0, ge=0)


class Price(Part):
    """What a million tokens cost, for the plan, where litellm does not know the model."""

    prompt: float = Field(default=0.0, ge=0)
    output: float = Field(default=0.0, ge=0)


def _sort(value: Any) -> str:
    return "loop" if isinstance(value, Loop) or (isinstance(value, dict) and "loop" in value) else "stage"


StageOrLoop = Annotated[Annotated[Loop, Tag("loop")] | Annotated[Stage, Tag("stage")], Discriminator(_sort)]


class Pipeline(Part):
    """A pipeline of agents without memory, which remember through files.

    ``variables``: values for templates. ``sources``: trees outside the artifacts, by name, relative to this file. ``items``: what stages are done for each of: a list
    of maps with an ``id``, or a number of them. ``log``: an append-only file in which the engine notes what went wrong.
    """

    pipeline: Name
    title: str = ""
    variables: dict[str, Any] = {}
    sources: dict[Name, str] = {}
    items: dict[Name, list[dict[str, Any]] | int] = {}
    agents: dict[str, AgentType] = {}
    files: dict[Name, File]
    roles: dict[Name, Role]
    stages: tuple[StageOrLoop, ...] = Field(min_length=1)
    limits: Bounds = Bounds()
    price: Price | None = None
    lease_wait_s: float = Field(default=60.0, ge=0)
    log: str = ""
