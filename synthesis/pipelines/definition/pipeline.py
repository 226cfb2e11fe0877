"""The format of a pipeline's file: files, roles, stages.

These classes define the file format, its JSON schema for editors, and the objects the engine works with.
Editors show the docstring below each key. All text is kept as written; a ``{{ template }}`` in it is filled
for each item (:mod:`agentx.synthesis.pipelines.templates`).
"""

import re
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

MAX_ITEMS = 10_000

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
"""A name of a part of the pipeline: letters, digits, ``-`` and ``_``."""

Word = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")]
"""A name that templates can use: letters, digits and ``_``."""

_SIZE = re.compile(r"(\d{1,12}(?:\.\d{1,3})?)\s*(|B|kB|KB|MB|GB)", re.ASCII)
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}

BY_MODEL = "model"
"""``by`` of a role played by a model."""

BY_ENGINE = "engine"
"""``by`` of a role played by the engine: its files are filled from what it reads, without an agent."""

BY_PERSON = "person"
"""``by`` of a role that a person plays: approves what it reads, or writes its files."""


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) and value else value


def _bytes(value: Any) -> Any:
    """Convert a size like ``10 MB`` to bytes."""
    found = _SIZE.fullmatch(str(value).strip())
    if found is None:
        raise ValueError("a size is a number of bytes, kB, MB or GB, such as 10 MB")
    return round(float(found[1]) * _UNITS[found[2].upper()])


Size = Annotated[int, BeforeValidator(_bytes, json_schema_input_type=str), Field(gt=0)]
"""A number of bytes, such as ``10 MB``."""

Names = Annotated[tuple[Name, ...], BeforeValidator(_listed, json_schema_input_type=Name | tuple[Name, ...])]
Words = Annotated[tuple[Word, ...], BeforeValidator(_listed, json_schema_input_type=Word | tuple[Word, ...])]
Texts = Annotated[tuple[str, ...], BeforeValidator(_listed, json_schema_input_type=str | tuple[str, ...])]
"""One text, or a list of texts."""


class PipelinePart(BaseModel):
    """Base of the parts of a pipeline: a key that is not known is an error."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class AgentType(PipelinePart):
    """What kind of agent plays a role, and how much it takes."""

    window: int = Field(default=128_000, gt=0)
    """Tokens of the context."""
    system: int = Field(default=2_000, ge=0)
    """Of these, for the provider's prompt."""
    output: int = Field(default=8_000, gt=0)
    """Of these, for the answer."""
    max_files: int = Field(default=20, gt=0)
    """Maximum number of files."""
    max_steps: int = Field(default=20, gt=0)
    """Model calls per dispatch."""
    max_time_s: float = Field(default=900.0, gt=0)
    """Seconds per dispatch."""
    read_only: bool = False
    """It writes only one report."""

    @model_validator(mode="after")
    def _has_room(self) -> "AgentType":
        if self.system + self.output >= self.window:
            both = f"system ({self.system:,}) and output ({self.output:,})"
            raise ValueError(f"{both} leave no room in a window of {self.window:,} tokens")
        return self


AGENTS: dict[str, AgentType] = {
    "explore": AgentType(window=64_000, output=4_000, max_files=100, max_steps=40, read_only=True),
    "general-purpose": AgentType(),
}
"""The built-in agent types."""


class File(PipelinePart):
    """A file, or one for each item where its path says so."""

    path: str = Field(min_length=1)
    """Relative to the artifacts or its source; one per line; `*` and `**` match names."""
    sort: Literal["static", "append-only", "overwritable"] = Field(default="overwritable", alias="class")
    """`static` (written once), `append-only` or `overwritable`."""
    source: str = ""
    """A name under `sources`, for a file outside the artifacts."""
    about: str = ""
    """Description."""


class Length(PipelinePart):
    """How many words a file has."""

    words: str = Field(min_length=1)
    """The number."""
    within: float = Field(default=0.2, ge=0, lt=1)
    """Tolerance: 0.2 is 20% more or less."""


class Check(PipelinePart):
    """Something that has to hold of a file; exactly one of these."""

    length: Length | None = None
    """Number of words."""
    sections: Texts = ()
    """Headings, each with text below."""
    uses: Texts = ()
    """Required terms; one text may hold several, with commas between them."""
    absent: Texts = ()
    """Forbidden words."""
    matches: str = ""
    """A regular expression that a line matches."""
    command: Texts = ()
    """A program and arguments, run with the file's path in a copy of the artifacts; must exit with 0."""

    @model_validator(mode="after")
    def _is_one(self) -> "Check":
        given = [name for name in type(self).model_fields if getattr(self, name)]
        if len(given) != 1:
            raise ValueError(f"a check must have exactly one key, not {' and '.join(given) or 'none'}")
        return self


class Read(PipelinePart):
    """A file that a role reads."""

    file: Name
    """Name under `files`."""
    purpose: str = ""
    """What it is read for."""
    fit: Literal["whole", "recent", "sections"] = "whole"
    """If too long: its `recent` sections, the relevant `sections`, or `whole`: an error."""
    keep: int = Field(default=3, ge=0)
    """With `fit: recent`: number of whole sections."""
    if_room: bool = False
    """Given only if there is room."""
    lazy: bool = False
    """Named with its size and first heading; the agent reads it with a tool when it needs it."""
    optional: bool = False
    """It may not exist yet."""
    checks: tuple[Check, ...] = ()
    """Checks; with a finding the verdict cannot be PASS."""


class Write(PipelinePart):
    """A file that a role writes."""

    file: Name
    """Name under `files`."""
    format: str = ""
    """Its format, in words."""
    marker: str = Field(default="", pattern=r"^([A-Z][A-Z0-9_]*)?$")
    """The completion marker of its last line."""
    only: Literal["every", "first", "last"] = "every"
    """Items that it is written for: `every`, `first` or `last`."""
    verdict: bool = False
    """It has a line `Verdict: PASS` or `Verdict: FAIL`."""
    checks: tuple[Check, ...] = ()
    """Checks before the stage is done."""
    content: str = ""
    """For `by: engine`: its template."""


class Append(PipelinePart):
    """What the engine adds to the long-term memory when a stage is done."""

    to: Name
    """An append-only file, by name."""
    source: Name = Field(alias="from")
    """The file that the role wrote, by name."""
    section: str = ""
    """Heading whose text is added; without one, all of it."""
    under: str = ""
    """Its new heading."""
    topic: str = ""
    """Topic under which each entry becomes a memory item too."""


class NotRead(PipelinePart):
    """A file that a role does not read; of a file for each item, those of other items."""

    file: Name
    """Name under `files`."""
    why: str = ""
    """Reason, shown to the agent."""


def _with_file(value: Any) -> Any:
    return {"file": value} if isinstance(value, str) and value else value


Denied = Annotated[NotRead, BeforeValidator(_with_file, json_schema_input_type=Name | NotRead)]
AllDenied = Annotated[
    tuple[Denied, ...], BeforeValidator(_listed, json_schema_input_type=Name | tuple[Denied, ...])
]


class Split(PipelinePart):
    """How the task of a role is split, if what it reads does not fit."""

    over: Name
    """A file of many, among those that it reads; each part gets some of them."""
    join: str = ""
    """The task of an agent that joins the parts; without one, they are put one after the other."""


def _split(value: Any) -> Any:
    return {"over": value} if isinstance(value, str) and value else value


class Role(PipelinePart):
    """An agent's part in a pipeline: its instructions, what it reads, what it writes."""

    title: str = ""
    """Title: "You are …"."""
    duty: str = ""
    """Responsibility."""
    agent: str = "general-purpose"
    """Agent type: `explore`, `general-purpose`, or one under `agents`."""
    by: Texts = (BY_MODEL,)
    """`model`, `engine` (fills templates), `person`, or a program with arguments."""
    speaks: Literal["text", "jsonl"] = "text"
    """The program's protocol: `text` (stdin, stdout) or `jsonl`."""
    model: str = ""
    """Model, if not the workspace's."""
    task: str = ""
    """What to do now."""
    prompt: str = ""
    """A template in place of the standard prompt."""
    reads: tuple[Read, ...] = ()
    """The only files that it sees."""
    does_not_read: AllDenied = ()
    """Files that its prompt forbids."""
    writes: tuple[Write, ...] = ()
    """The only files that it writes; none only for `by: person`, who then approves what it reads."""
    appends: tuple[Append, ...] = ()
    """What the engine adds to long-term memory."""
    standards: Texts = ()
    """Standards of quality."""
    attempts: int = Field(default=3, ge=1, le=20)
    """Maximum number of dispatches for a step."""
    sandbox: bool = True
    """Its program runs isolated, where the system can: no network, no files but its own."""
    output: Size = Field(default=cast("int", "10 MB"), validate_default=True)
    """Maximum size of what its program prints; with `jsonl`, in one line and by `say`."""
    split: Annotated[Split | None, BeforeValidator(_split, json_schema_input_type=Name | Split)] = None
    """A file of many that the task may be split over."""


class ForEach(PipelinePart):
    """The items that a stage is repeated for: one kind, or every combination of several kinds."""

    over: Words = Field(min_length=1)
    """Names under `items`."""
    exclude: tuple[dict[Word, Texts], ...] = ()
    """Combinations to leave out: ids by name; a name that is missing means all of its items."""
    include: tuple[dict[Word, Texts], ...] = ()
    """Of these, combinations to keep."""

    @property
    def name(self) -> str:
        """Its items in words: ``doc × lang``."""
        return " × ".join(self.over)


def _over(value: Any) -> Any:
    return {"over": value} if value and isinstance(value, str | list | tuple) else value


Each = Annotated[
    ForEach | None, BeforeValidator(_over, json_schema_input_type=Word | tuple[Word, ...] | ForEach)
]


class Previous(PipelinePart):
    """What a stage waits for, of the item before."""

    stages: Names = ()
    """Stages to wait for; by default, the stage itself."""
    by: Texts = ()
    """A chain for each of these items (`lang`) or values of items (`chapter.part`)."""


def _stages(value: Any) -> Any:
    return {"stages": value} if value and isinstance(value, str | list | tuple) else value


AfterPrevious = Annotated[
    Previous | None, BeforeValidator(_stages, json_schema_input_type=Name | tuple[Name, ...] | Previous)
]


class Stage(PipelinePart):
    """One step: a role at work, once or for each item."""

    id: Name
    """Name."""
    role: Name
    """Name under `roles`."""
    for_each: Each = None
    """Run for each of these items."""
    when: str = ""
    """A template; the stage is left out where it is empty, `false`, `no` or `0`."""
    after: Names = ()
    """Stages to wait for."""
    after_previous: AfterPrevious = None
    """Stages to wait for, for the previous item."""
    jobs: int = Field(default=0, ge=0, le=64)
    """Maximum number of its agents at once; 0 means as many as the run allows."""

    @property
    def name(self) -> str:
        """Its name, for `after` of others."""
        return self.id


class Until(PipelinePart):
    """The end of a loop."""

    file: Name
    """The file with the verdict; one stage of the loop writes it."""


class Loop(PipelinePart):
    """Stages that are done again and again, until a verdict is PASS."""

    loop: Name
    """Name, for `after` of other stages."""
    until: Until
    """When it ends."""
    at_most: int = Field(default=3, ge=1, le=50)
    """Maximum number of rounds."""
    otherwise: Literal["fail", "go-on"] = "fail"
    """After the last round without a PASS: `fail` or `go-on`."""
    for_each: Each = None
    """Run for each of these items."""
    when: str = ""
    """A template; the loop is left out where it is empty, `false`, `no` or `0`."""
    after: Names = ()
    """Stages to wait for."""
    after_previous: AfterPrevious = None
    """Stages to wait for, for the previous item."""
    stages: tuple[Stage, ...] = Field(min_length=1)
    """The stages of each round."""

    @property
    def name(self) -> str:
        """Its name, for `after` of others."""
        return self.loop


class Bounds(PipelinePart):
    """What the whole pipeline may use, over all of its runs; 0 means unlimited."""

    max_tokens: int = Field(default=0, ge=0)
    """Tokens; 0 means unlimited, here and below."""
    max_cost_usd: float = Field(default=0.0, ge=0)
    """US dollars."""
    max_dispatches: int = Field(default=0, ge=0)
    """Dispatches."""
    model_wait_s: float = Field(default=60.0, ge=0)
    """Seconds to try again when a model cannot be reached."""


class Price(PipelinePart):
    """What a million tokens cost in US dollars, for the plan, where the price of the model is not known."""

    prompt: float = Field(default=0.0, ge=0)
    """US dollars per million input tokens."""
    output: float = Field(default=0.0, ge=0)
    """US dollars per million output tokens."""


def _kind(value: Any) -> str:
    return "Loop" if isinstance(value, Loop) or (isinstance(value, dict) and "loop" in value) else "Stage"


class FoundItems(PipelinePart):
    """Items that are found in the workspace: files, or what a file lists."""

    glob: str = ""
    """A pattern of paths; each file that it matches is an item."""
    source: str = ""
    """With `glob`: a name under `sources`, for files outside the artifacts."""
    listed: str = Field(default="", alias="from")
    """A file that lists them, by name: JSON, YAML, CSV or a list in Markdown. A stage may write it."""
    section: str = ""
    """With `from`: the heading of the list, in a Markdown file."""

    @model_validator(mode="after")
    def _is_one(self) -> "FoundItems":
        if bool(self.glob) == bool(self.listed):
            raise ValueError("give either `glob` or `from`")
        if (self.source and not self.glob) or (self.section and not self.listed):
            raise ValueError("`source` belongs to `glob`, and `section` to `from`")
        return self


def _counted(value: Any) -> str:
    if isinstance(value, dict | FoundItems):
        return "found"
    return "number" if isinstance(value, str | int) and value != "" else "list"


def _with_id(value: Any) -> Any:
    return {"id": value} if isinstance(value, str) and value else value


ItemValues = Annotated[
    dict[Word, Any], BeforeValidator(_with_id, json_schema_input_type=str | dict[Word, Any])
]
"""An item: its `id`, and values for templates."""


StageOrLoop = Annotated[Annotated[Loop, Tag("Loop")] | Annotated[Stage, Tag("Stage")], Discriminator(_kind)]
Items = Annotated[
    Annotated[Annotated[list[ItemValues], Field(min_length=1, max_length=MAX_ITEMS)], Tag("list")]
    | Annotated[Annotated[int, Field(ge=1, le=MAX_ITEMS)], Tag("number")]
    | Annotated[FoundItems, Tag("found")],
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
    """Name."""
    title: str = ""
    """What is made."""
    variables: dict[Word, Any] = {}
    """Values for templates."""
    sources: dict[Name, str] = {}
    """Read-only trees outside the artifacts: paths relative to this file."""
    items: dict[Word, Items] = {}
    """Items that stages run for, such as chapters: a list, a number, or where they are found."""
    agents: Annotated[dict[Name, AgentType], BeforeValidator(_with_ours)] = {}
    """Agent types, added or overridden."""
    files: dict[Name, File]
    """Files by name."""
    roles: dict[Name, Role]
    """Roles by name."""
    stages: tuple[StageOrLoop, ...] = Field(min_length=1)
    """Stages and loops."""
    limits: Bounds = Bounds()
    """Limits for the whole pipeline."""
    price: Price | None = None
    """Price of tokens, if the model's is unknown."""
    lease_wait_s: float = Field(default=60.0, ge=0)
    """Seconds to wait for a leased file."""
    log: str = ""
    """An append-only file for the engine's error notes."""
