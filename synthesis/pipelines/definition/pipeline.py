"""The format of a pipeline's file: files, roles, stages.

These classes define the file format, its JSON schema for editors, and the objects the engine works with.
Editors show the docstring below each key. All text is kept as written; a ``{{ template }}`` in it is filled
for each item (:mod:`agentx.synthesis.pipelines.templates`).
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

MAX_ITEMS = 10_000

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
"""A name of a part of the pipeline: letters, digits, ``-`` and ``_``."""

Word = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")]
"""A name that templates can use: letters, digits and ``_``."""

BY_MODEL = "model"
"""``by`` of a role played by a model."""

BY_ENGINE = "engine"
"""``by`` of a role played by the engine: its files are filled from what it reads, without an agent."""


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) and value else value


Names = Annotated[tuple[Name, ...], BeforeValidator(_listed, json_schema_input_type=Name | tuple[Name, ...])]
Texts = Annotated[tuple[str, ...], BeforeValidator(_listed, json_schema_input_type=str | tuple[str, ...])]
"""One text, or a list of texts."""


class PipelinePart(BaseModel):
    """Base of the parts of a pipeline: a key that is not known is an error."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )


class AgentType(PipelinePart):
    """What kind of agent plays a role, and how much it takes."""

    window: int = Field(default=128_000, gt=0)
    """Tokens of its context."""
    system: int = Field(default=2_000, ge=0)
    """Of the window, the tokens that the provider's own prompt takes."""
    output: int = Field(default=8_000, gt=0)
    """Of the window, the tokens that are kept free for its answer."""
    max_files: int = Field(default=20, gt=0)
    """How many files it is given at most."""
    max_steps: int = Field(default=20, gt=0)
    """How often a model is asked in one dispatch."""
    max_time_s: float = Field(default=900.0, gt=0)
    """How many seconds one dispatch may take."""
    read_only: bool = False
    """It makes nothing but one report of its own."""

    @model_validator(mode="after")
    def _has_room(self) -> "AgentType":
        if self.system + self.output >= self.window:
            raise ValueError(
                f"system ({self.system:,}) and output ({self.output:,}) leave no room in a window of "
                f"{self.window:,} tokens"
            )
        return self


AGENTS: dict[str, AgentType] = {
    "explore": AgentType(window=64_000, output=4_000, max_files=100, max_steps=40, read_only=True),
    "general-purpose": AgentType(),
}
"""The built-in agent types."""


class File(PipelinePart):
    """A file, or one for each item where its path says so."""

    path: str = Field(min_length=1)
    """Relative to the artifacts, or to its source; each line is a file, and `*` and `**` match names."""
    sort: Literal["static", "append-only", "overwritable"] = Field(default="overwritable", alias="class")
    """`static` is written once, `append-only` only ever grows, `overwritable` is free."""
    source: str = ""
    """The tree outside the artifacts that holds it, a name under `sources`; read-only."""
    about: str = ""
    """What it is, for those who read the pipeline."""


class Length(PipelinePart):
    """How many words a file has."""

    words: str = Field(min_length=1)
    """The number of words; a template may say it."""
    within: float = Field(default=0.2, ge=0, lt=1)
    """How far from it is still right, as a share: 0.2 is 20% more or less."""


class Check(PipelinePart):
    """Something that has to hold of a file; exactly one of these."""

    length: Length | None = None
    """How many words it has."""
    sections: Texts = ()
    """Headings that it has, each with text below."""
    terms: str = ""
    """The file of a glossary: a draft uses its terms, avoids its forbidden words, and redefines no term."""
    uses: str = ""
    """With `terms`: terms that have to stand in it, with commas between them; a template may say them."""
    unused: str = ""
    """The file of a registry: no entry of other items stands in it again."""
    absent: Texts = ()
    """Words that may not stand in it."""
    matches: str = ""
    """A regular expression that is found in it."""
    command: Texts = ()
    """A program and its arguments, run with the file's path in a copy of the artifacts; must exit with 0."""

    @model_validator(mode="after")
    def _is_one(self) -> "Check":
        given = [name for name in type(self).model_fields if name != "uses" and getattr(self, name)]
        if len(given) != 1:
            raise ValueError(f"a check must have exactly one key, not {' and '.join(given) or 'none'}")
        if self.uses and not self.terms:
            raise ValueError("`uses` requires `terms`, the glossary that defines the terms")
        return self


class Read(PipelinePart):
    """A file that a role reads."""

    file: Name
    """Its name under `files`."""
    purpose: str = ""
    """What it is read for; the agent is told."""
    fit: Literal["whole", "recent", "sections"] = "whole"
    """If too long: its `recent` sections, the relevant `sections`, or `whole`: nothing is dispatched."""
    keep: int = Field(default=3, ge=0)
    """With `fit: recent`: how many of the latest sections are given whole."""
    if_room: bool = False
    """It is given only if there is room."""
    optional: bool = False
    """It may not be there yet, and the role does not wait for it."""
    checks: tuple[Check, ...] = ()
    """What the engine checks in it for the role; against its findings the verdict cannot be PASS."""


class Write(PipelinePart):
    """A file that a role writes."""

    file: Name
    """Its name under `files`."""
    format: str = ""
    """What is asked of it, in words; the agent is told."""
    marker: str = Field(default="", pattern=r"^([A-Z][A-Z0-9_]*)?$")
    """The completion marker that its last line carries: `<!-- MARKER -->` in Markdown and HTML."""
    only: Literal["every", "first", "last"] = "every"
    """For which item it is written."""
    verdict: bool = False
    """It has a line `Verdict: PASS` or `Verdict: FAIL`."""
    checks: tuple[Check, ...] = ()
    """What has to hold of it before the stage is done."""
    content: str = ""
    """For a role of the engine: the template that it is filled from."""


class Append(PipelinePart):
    """What the engine adds to the long-term memory when a stage is done."""

    to: Name
    """An append-only file, by its name under `files`."""
    source: Name = Field(alias="from")
    """The file that the role wrote, by its name under `files`."""
    section: str = ""
    """The heading in that file whose text is added; without one, all of it."""
    under: str = ""
    """The heading that it gets; a template may say it."""
    topic: str = ""
    """The topic under which each entry becomes a memory item too; none where it is empty."""


class NotRead(PipelinePart):
    """A file that a role does not read; of a file for each item, those of other items."""

    file: Name
    """Its name under `files`."""
    why: str = ""
    """Why not; the agent is told."""


def _with_file(value: Any) -> Any:
    return {"file": value} if isinstance(value, str) and value else value


Denied = Annotated[NotRead, BeforeValidator(_with_file, json_schema_input_type=Name | NotRead)]
AllDenied = Annotated[
    tuple[Denied, ...], BeforeValidator(_listed, json_schema_input_type=Name | tuple[Denied, ...])
]


class Role(PipelinePart):
    """Who does something: what it is told, what it reads, what it writes."""

    title: str = ""
    """What it is called: "You are …"."""
    duty: str = ""
    """What it is responsible for."""
    agent: str = "general-purpose"
    """The type of agent that plays it: `explore`, `general-purpose`, or one under `agents`."""
    by: Texts = (BY_MODEL,)
    """Who plays it: `model`, `engine` (fills files from templates), or a program with its arguments."""
    speaks: Literal["text", "jsonl"] = "text"
    """The program's protocol: `text` (prompt on stdin, file on stdout) or `jsonl` (the agent protocol)."""
    model: str = ""
    """The model that plays it, where it is not the workspace's own."""
    task: str = ""
    """What it is to do now, beyond its duty."""
    prompt: str = ""
    """A template in place of the prompt that every role has."""
    reads: tuple[Read, ...] = ()
    """The files that it sees; it sees no others."""
    does_not_read: AllDenied = ()
    """Files that it is told it does not read: names, or maps with `file` and `why`."""
    writes: tuple[Write, ...] = Field(min_length=1)
    """The files that it writes; it writes no others."""
    appends: tuple[Append, ...] = ()
    """What the engine adds to long-term memory from what it wrote."""
    standards: Texts = ()
    """Standards of quality that it is told."""
    attempts: int = Field(default=3, ge=1, le=20)
    """How often an agent is sent at most, until what it wrote is in order."""
    split: str = ""
    """A file of many that the task may be split over where there is not room for all."""


class Stage(PipelinePart):
    """One step: a role at work, once or for each item."""

    id: Name
    """Its name."""
    role: Name
    """Who does it, a name under `roles`."""
    for_each: str = ""
    """It is done for each of these items."""
    after: Names = ()
    """Stages to finish before: for the same item if both are done for each item, otherwise for all items."""
    after_previous: Names = ()
    """Stages that are done before for the item before this one."""


class Until(PipelinePart):
    """The end of a loop."""

    file: Name
    """The file whose verdict is PASS then; one stage of the loop writes it."""


class Loop(PipelinePart):
    """Stages that are done again and again, until a verdict is PASS."""

    loop: Name
    """Its name; other stages come `after` it."""
    until: Until
    """When it ends."""
    at_most: int = Field(default=3, ge=1, le=50)
    """How many rounds there are at most."""
    otherwise: Literal["fail", "go-on"] = "fail"
    """What comes after the last round without a PASS: `fail`, or `go-on` with what there is."""
    for_each: str = ""
    """It is done for each of these items."""
    after: Names = ()
    """Stages to finish before: for the same item if both are done for each item, otherwise for all items."""
    after_previous: Names = ()
    """Stages that are done before for the item before this one."""
    stages: tuple[Stage, ...] = Field(min_length=1)
    """The stages of each round; `after` names stages of the same loop."""


class Bounds(PipelinePart):
    """What the whole pipeline may use, over all of its runs; 0 is no limit."""

    max_tokens: int = Field(default=0, ge=0)
    """Tokens of models; 0 is no limit, here and below."""
    max_cost_usd: float = Field(default=0.0, ge=0)
    """US dollars."""
    max_dispatches: int = Field(default=0, ge=0)
    """How often agents are sent."""


class Price(PipelinePart):
    """What a million tokens cost in US dollars, for the plan, where the price of the model is not known."""

    prompt: float = Field(default=0.0, ge=0)
    """US dollars for a million tokens that models are shown."""
    output: float = Field(default=0.0, ge=0)
    """US dollars for a million tokens that they write."""


def _kind(value: Any) -> str:
    return "Loop" if isinstance(value, Loop) or (isinstance(value, dict) and "loop" in value) else "Stage"


def _counted(value: Any) -> str:
    return "number" if isinstance(value, str | int) and value != "" else "list"


StageOrLoop = Annotated[Annotated[Loop, Tag("Loop")] | Annotated[Stage, Tag("Stage")], Discriminator(_kind)]
Items = Annotated[
    Annotated[Annotated[list[dict[Word, Any]], Field(min_length=1, max_length=MAX_ITEMS)], Tag("list")]
    | Annotated[Annotated[int, Field(ge=1, le=MAX_ITEMS)], Tag("number")],
    Discriminator(_counted),
]


def _with_ours(value: Any) -> Any:
    """Complete a redeclared built-in type with its default values."""
    if not isinstance(value, dict):
        return value
    ours = {name: AGENTS[name].model_dump() for name in value.keys() & AGENTS.keys()}
    return {
        name: ours[name] | given if name in ours and isinstance(given, dict) else given
        for name, given in value.items()
    }


class Pipeline(PipelinePart):
    """A pipeline of agents without memory, which remember through files."""

    pipeline: Name
    """Its name."""
    title: str = ""
    """What is made; templates say `{{ title }}`."""
    variables: dict[Word, Any] = {}
    """Values for templates."""
    sources: dict[Name, str] = {}
    """Trees outside the artifacts that are read, by name: a path relative to this file."""
    items: dict[Word, Items] = {}
    """Items that stages are done for, such as chapters: a list of maps with an `id`, or a number."""
    agents: Annotated[dict[Name, AgentType], BeforeValidator(_with_ours)] = {}
    """Types of agents besides `explore` and `general-purpose`, or other figures for these."""
    files: dict[Name, File]
    """The files that roles read and write, by name."""
    roles: dict[Name, Role]
    """Who there is, by name."""
    stages: tuple[StageOrLoop, ...] = Field(min_length=1)
    """What is done: stages and loops. Those that do not wait for each other run at the same time."""
    limits: Bounds = Bounds()
    """What all of it may use."""
    price: Price | None = None
    """What tokens cost, where the model's price is not known."""
    lease_wait_s: float = Field(default=60.0, ge=0)
    """How many seconds to wait for a file that another run is writing."""
    log: str = ""
    """An append-only file in which the engine notes what went wrong."""
