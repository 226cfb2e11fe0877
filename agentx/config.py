"""``agentx.toml``: the settings of a workspace, checked when they are read."""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from agentx.storage.errors import UsageError
from agentx.storage.files import nofollow
from agentx.storage.files.durable import write_file
from agentx.synthesis.cognition.config import ExecutorConfig
from agentx.synthesis.directing.acts import Window
from agentx.synthesis.memory.effects import Effect

FILE = "agentx.toml"


class ConfigInvalid(UsageError):
    """``agentx.toml`` cannot be read, or contains an unknown setting."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class WorkspaceSection(_Section):
    """Where the artifacts lie.

    ``artifacts``, or a directory outside (``..``) that is mirrored and whose own repository is never written.
    """

    artifacts: Annotated[str, Effect.READS] = "artifacts"


class ModelSection(_Section):
    """Which model answers: any name that litellm knows, or ``script:FILE``."""

    name: Annotated[str, Effect.CALLS] = ""
    api_base: Annotated[str, Effect.CALLS] = ""
    timeout_s: Annotated[float, Effect.HARMLESS] = Field(default=120.0, gt=0)


class EmbeddingsSection(_Section):
    """What turns text into vectors: ``minilm``, ``litellm:<model>`` or ``none``."""

    model: Annotated[str, Effect.CALLS] = "minilm"


class LimitsSection(_Section):
    """What a run may use, and how large a file may be."""

    max_steps: Annotated[int, Effect.LOOSENS] = Field(default=40, gt=0)
    max_tokens: Annotated[int, Effect.LOOSENS] = Field(default=400_000, gt=0)
    max_cost_usd: Annotated[float, Effect.LOOSENS] = Field(default=5.0, gt=0)
    max_time_s: Annotated[float, Effect.LOOSENS] = Field(default=1_800.0, gt=0)
    context_tokens: Annotated[int, Effect.HARMLESS] = Field(default=8_000, gt=0)
    max_file_bytes: Annotated[int, Effect.HARMLESS] = Field(default=20_000_000, gt=0)


class CheckSection(_Section):
    """A command that checks the work, run in a copy of the artifacts."""

    command: Annotated[str, Effect.RUNS] = ""
    timeout_s: Annotated[float, Effect.HARMLESS] = Field(default=300.0, gt=0)
    max_output_bytes: Annotated[int, Effect.HARMLESS] = Field(default=1_000_000, gt=0)


class ChecksSection(_Section):
    """The commands behind ``run_tests``, ``run_lint`` and ``run_build``.

    ``readable`` names directories that they may read, isolated, besides the system (a toolchain).
    """

    readable: Annotated[tuple[str, ...], Effect.READS] = ()

    tests: CheckSection = CheckSection()
    lint: CheckSection = CheckSection()
    build: CheckSection = CheckSection()


class ToolsSection(_Section):
    """Which tools exist and how they run.

    ``run_command`` is off by default. ``approve`` names tools whose calls need the user's approval. ``words``
    are spellings that ``check_document`` accepts. ``writes`` says by tool which of its arguments name files
    that it writes; ``[tools.NAME] writes = […]`` says the same.
    """

    run_command: Annotated[bool, Effect.RUNS] = False
    approve: Annotated[tuple[str, ...], Effect.LOOSENS] = ()
    isolation: Annotated[str, Effect.LOOSENS] = Field(
        default="auto", pattern="^(auto|bubblewrap|landlock|none)$"
    )
    words: Annotated[tuple[str, ...], Effect.HARMLESS] = ()
    writes: Annotated[dict[str, tuple[str, ...]], Effect.LOOSENS] = {}

    @model_validator(mode="before")
    @classmethod
    def _tables(cls, given: Any) -> Any:
        """Take the tables of single tools, such as ``[tools.export]``, as entries of ``writes``."""
        if not isinstance(given, dict):
            return given
        known = set(cls.model_fields)
        tables = {
            name: table["writes"]
            for name, table in given.items()
            if name not in known and isinstance(table, dict) and set(table) == {"writes"}
        }
        if not tables:
            return given
        rest = {name: value for name, value in given.items() if name not in tables}
        named = rest.get("writes", {})
        return {**rest, "writes": {**named, **tables}} if isinstance(named, dict) else rest


class MemorySection(_Section):
    """What settles candidates besides the user.

    ``settle``: agents settle the candidates that touch their work. ``judge``: after a run, the model that ran
    it also reads the user's messages. ``lapse_days``: days after which a candidate that nobody settled is
    closed; 0 for never. ``maintain``: decay rules, merge
    near-duplicates and promote lessons when work resumes after a night (``nightly``), or only on request
    (``off``).
    """

    settle: Annotated[bool, Effect.HARMLESS] = True
    judge: Annotated[bool, Effect.HARMLESS] = True
    lapse_days: Annotated[int, Effect.HARMLESS] = Field(default=14, ge=0, le=36_500)
    maintain: Annotated[str, Effect.HARMLESS] = Field(default="nightly", pattern="^(nightly|off)$")


class ScribeSection(_Section):
    """Automatic notes, automatic recall, and when a model reads along.

    ``auto_capture``: take notes of what happens. ``capture_assistant``: also of what agents say.
    ``auto_recall``: put up to ``auto_recall_top_k`` relevant memories before each message.
    ``session_strategy``: keep the lessons of an ended session as memories that decay (``memory``), or nothing
    (``none``). ``write_checks``: the model also writes checks of new rules that are only shown.
    ``active_hours``: the hours of the local day in which a model may be asked on schedule, at most every
    ``every_minutes``, each for at most ``timeout_s``.
    """

    auto_capture: Annotated[bool, Effect.HARMLESS] = True
    capture_assistant: Annotated[bool, Effect.HARMLESS] = True
    auto_recall: Annotated[bool, Effect.HARMLESS] = True
    auto_recall_top_k: Annotated[int, Effect.HARMLESS] = Field(default=5, ge=0, le=50)
    session_strategy: Annotated[str, Effect.HARMLESS] = Field(default="memory", pattern="^(memory|none)$")
    write_checks: Annotated[bool, Effect.HARMLESS] = True
    active_hours: Annotated[str, Effect.HARMLESS] = Field(
        default="8-24", pattern=r"^([01]?\d|2[0-4])-([01]?\d|2[0-4])$"
    )
    every_minutes: Annotated[float, Effect.HARMLESS] = Field(default=30.0, gt=0)
    timeout_s: Annotated[float, Effect.HARMLESS] = Field(default=60.0, gt=0)


JsonType = Literal["string", "integer", "number", "boolean", "array", "object"]


class ToolSource(_Section):
    """Where tools of executors come from: a module of functions, a program per call, or an MCP server.

    ``only`` names those of a module or a server that are offered; all by default. ``name``, ``description``
    and ``parameters`` (a type or a JSON schema each) describe the tool of a ``command``.
    """

    module: str = ""
    command: tuple[str, ...] = ()
    mcp: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    name: str = Field(default="", pattern=r"^([A-Za-z_][A-Za-z0-9_.-]{0,63})?$")
    description: str = ""
    parameters: dict[str, JsonType | dict[str, Any]] = {}
    timeout_s: float = Field(default=120.0, gt=0)

    @model_validator(mode="before")
    @classmethod
    def _module(cls, given: Any) -> Any:
        return {"module": given} if isinstance(given, str) else given

    @model_validator(mode="after")
    def _one(self) -> "ToolSource":
        if bool(self.module) + bool(self.command) + bool(self.mcp) != 1:
            raise PydanticCustomError("source", "name one of module, command and mcp")
        if bool(self.command) != bool(self.name):
            raise PydanticCustomError("source", "a command, and only a command, needs a name for its tool")
        return self


class ActSection(_Section):
    """What makes two calls of a tool, or two reports of a program, the same act; see docs/directing.md."""

    key: tuple[str, ...] = ()
    window: Window = "once"


class DirectorSection(_Section):
    """Who directs the runs of this workspace, and who carries them out.

    ``model``: the model that writes directives, ``none`` for code alone; that of ``[model]`` by default.
    ``executor``: a program and its arguments; without one, the model of ``[model]`` in a loop. ``speaks``:
    ``text`` (prompt on stdin, summary on stdout) or ``jsonl``. ``files``: whether it may read and change
    artifacts and run checks. ``time_limit_s``: time limit of a run. ``keys``: environment variables with keys
    that this program, its tools, and the programs of a pipeline's roles, are given. ``tools``: what it may
    call besides. ``acts``: what makes two calls of a tool, or two reports of a program, the same act, by
    name.
    """

    model: Annotated[str, Effect.CALLS] = ""
    executor: Annotated[tuple[str, ...], Effect.RUNS] = ()
    speaks: Annotated[str, Effect.LOOSENS] = Field(default="text", pattern="^(text|jsonl)$")
    files: Annotated[bool, Effect.LOOSENS] = True
    time_limit_s: Annotated[float, Effect.LOOSENS] = Field(default=1_800.0, gt=0)
    keys: Annotated[tuple[str, ...], Effect.LOOSENS] = ()
    tools: Annotated[tuple[ToolSource, ...], Effect.RUNS] = ()
    acts: Annotated[dict[str, ActSection], Effect.LOOSENS] = {}


class SecretsSection(_Section):
    """What to do about a likely secret in a file that an agent writes: ask the user, allow it, or deny it."""

    artifacts: Annotated[str, Effect.LOOSENS] = Field(default="confirm", pattern="^(confirm|allow|deny)$")


class SourceSection(_Section):
    """A pool of files outside the workspace, read-only, indexed in place."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")
    path: str
    include: tuple[str, ...] = ("**/*",)
    exclude: tuple[str, ...] = ()
    max_file_bytes: int = Field(default=5_000_000, gt=0)


class LinkSection(_Section):
    """Artifacts of another workspace, for agents to read; unchanged for ``max_age_hours``, they are stale."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{1,63}$")
    path: str
    paths: tuple[str, ...] = ("**/*",)
    max_age_hours: float = Field(default=24.0, gt=0)


UPSTREAM_NAME = r"[^\W_][\w.-]{1,63}"
"""Names of followed workspaces: letters of any script, digits, dots and dashes."""


class UpstreamSection(_Section):
    """A workspace whose rules hold here: a directory, a Git URL, or ``fleet:NAME``.

    ``workspace`` is the hash of its first event; another workspace in its place is not followed.
    """

    source: str = Field(min_length=1, max_length=2_000)
    workspace: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")

    @model_validator(mode="before")
    @classmethod
    def _source(cls, given: Any) -> Any:
        return {"source": given} if isinstance(given, str) else given


class FollowSection(_Section):
    """Which workspaces are followed, and after how many minutes a remote one is fetched again.

    Their users' constraints and rejections hold here, read through; see docs/fleet-memory.md.
    """

    upstreams: Annotated[
        dict[Annotated[str, Field(pattern=f"^{UPSTREAM_NAME}$")], UpstreamSection], Effect.READS
    ] = {}
    refresh_minutes: Annotated[float, Effect.READS] = Field(default=10.0, ge=0, le=10_080)


class ExportSection(_Section):
    """Files that follow the active rules, for other agents: paths in the artifacts, and their budget."""

    keep: Annotated[tuple[Annotated[str, Field(pattern=r"(^|/)[^/]+\.mdc?$")], ...], Effect.HARMLESS] = ()
    max_tokens: Annotated[int, Effect.HARMLESS] = Field(default=2_000, ge=100)


class ReportSection(_Section):
    """Where ``agentx schedule audit --deliver`` sends its report: a shell command that reads it on stdin."""

    command: Annotated[str, Effect.RUNS] = ""
    timeout_s: Annotated[float, Effect.HARMLESS] = Field(default=60.0, gt=0)


class Config(_Section):
    """Everything that ``agentx.toml`` can say; what it leaves out has these values."""

    workspace: WorkspaceSection = WorkspaceSection()
    model: ModelSection = ModelSection()
    embeddings: EmbeddingsSection = EmbeddingsSection()
    limits: LimitsSection = LimitsSection()
    checks: ChecksSection = ChecksSection()
    tools: ToolsSection = ToolsSection()
    director: DirectorSection = DirectorSection()
    memory: MemorySection = MemorySection()
    scribe: ScribeSection = ScribeSection()
    cognition: ExecutorConfig = ExecutorConfig()
    secrets: SecretsSection = SecretsSection()
    report: ReportSection = ReportSection()
    export: ExportSection = ExportSection()
    follow: FollowSection = FollowSection()
    sources: Annotated[tuple[SourceSection, ...], Effect.READS] = ()
    links: Annotated[tuple[LinkSection, ...], Effect.READS] = ()


def read_config(root: Path) -> Config:
    """Read the configuration of a workspace; a missing file is an empty one.

    Raises:
        ConfigInvalid: It is not TOML, or contains an unknown setting.
    """
    path = root / FILE
    try:
        text = nofollow.read_text(path)
    except FileNotFoundError:
        return Config()
    except ValueError as error:
        raise ConfigInvalid(f"{path} is not TOML: {error}.") from error
    except OSError as error:
        raise ConfigInvalid(f"{path} cannot be read: {error.strerror}.") from error
    return parse_config(text, path)


def parse_config(text: str, path: Path) -> Config:
    """The configuration that a text says.

    Args:
        text: TOML.
        path: Where it was read, for the error.

    Raises:
        ConfigInvalid: It is not TOML, or contains an unknown setting.
    """
    try:
        raw = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # of TOML, or of a number with too many digits
        raise ConfigInvalid(f"{path} is not TOML: {error}.") from error
    return _checked(raw, path)


# --- what a setting can do ----------------------------------------------------------------------------------


def effects(schema: type[BaseModel] | None = None, prefix: str = "") -> dict[str, Effect | None]:
    """Return what each setting can do beyond the workspace, by name; ``None`` if the schema does not say.

    Args:
        schema: A section; all of the configuration by default.
        prefix: Prepended to each name.
    """
    found: dict[str, Effect | None] = {}
    for name, field in (schema or Config).model_fields.items():
        mark = next((one for one in field.metadata if isinstance(one, Effect)), None)
        kind = field.annotation
        if mark is None and isinstance(kind, type) and issubclass(kind, BaseModel):
            found |= effects(kind, f"{prefix}{name}.")
        else:
            found[prefix + name] = mark  # a list of sections is marked as a whole
    return found


def executable(config: Config) -> dict[str, Any]:
    """Return the settings that trust is bound to: those that have an effect and differ from the default.

    Defaults are AgentX's own, so a setting that a later version adds does not end trust. A setting without a
    mark counts as one with an effect.
    """
    values, defaults = config.model_dump(mode="json"), _DEFAULTS.model_dump(mode="json")
    return {
        name: value
        for name, effect in effects().items()
        if effect is not Effect.HARMLESS and (value := _at(values, name)) != _at(defaults, name)
    }


def tightened(config: Config, approve: Iterable[str] = ()) -> Config:
    """A configuration for a workspace that is not trusted: no guard is loosened, what tightens one stays.

    Args:
        config: The configuration.
        approve: Tools that a person had to approve when the workspace was last trusted.
    """
    limits, own = config.limits, _DEFAULTS.limits
    least = {name: min(getattr(limits, name), getattr(own, name)) for name in _LIMITS}
    tools, secrets = config.tools, config.secrets
    return config.model_copy(
        update={
            "limits": limits.model_copy(update=least),
            "tools": tools.model_copy(
                update={
                    "approve": tuple(dict.fromkeys((*tools.approve, *approve))),
                    "isolation": "auto" if tools.isolation == "none" else tools.isolation,
                    "writes": {},
                }
            ),
            "secrets": secrets.model_copy(
                update={"artifacts": "confirm" if secrets.artifacts == "allow" else secrets.artifacts}
            ),
        }
    )


_DEFAULTS = Config()
_LIMITS = ("max_steps", "max_tokens", "max_cost_usd", "max_time_s")


def _at(values: Any, name: str) -> Any:
    for part in name.split("."):
        values = values[part]
    return values


# --- changing it --------------------------------------------------------------------------------------------


_IN_TOML = {
    "tuple_type": 'write a list, like ["claude", "-p"]',
    "bool_parsing": "write true or false",
    "int_parsing": "write a whole number",
    "float_parsing": "write a number",
}
"""What to write where a value is of the wrong type."""


def _checked(raw: Mapping[str, Any], path: Path) -> Config:
    try:
        return Config.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        said = _IN_TOML.get(first["type"], first["msg"])
        raise ConfigInvalid(f"{path}: {name}: {said}.") from error


def set_value(root: Path, name: str, value: str) -> Config:
    """Set one value (``model.name``) in ``agentx.toml``; the rest of the file keeps its bytes.

    Args:
        root: The workspace's directory.
        name: Section and key, with a dot between.
        value: As TOML writes it; a bare word counts as a string.

    Raises:
        ConfigInvalid: The setting is unknown, or the value is invalid.
    """
    return change_value(root, name, value)[1]


def change_value(root: Path, name: str, value: str) -> tuple[Config | None, Config]:
    """As :func:`set_value`; the configuration before and after, both from the very text that was changed.

    Returns:
        The first is ``None`` where the text was invalid before.
    """
    section, _, key = name.rpartition(".")
    if (
        not section
        or not re.fullmatch(r"[a-z_]+(\.[a-z_]+)?(\.[\w-]+)?", section)
        or not re.fullmatch(r"[a-z_]+", key)
    ):
        raise ConfigInvalid(f"Unknown setting {name!r}; write it as SECTION.KEY, for example model.name.")
    path = root / FILE
    text = nofollow.read_text(path) if nofollow.exists(path) else ""
    before: Config | None = None
    with suppress(ConfigInvalid):
        before = parse_config(text, path)
    literals = dict.fromkeys((_literal(value), json.dumps(value)))  # a command called `true` is a text
    errors: list[ConfigInvalid] = []
    for literal in literals:
        try:
            changed = _with_line(text, section, key, f"{key} = {literal}")
            after = parse_config(changed, path)
        except ConfigInvalid as error:
            errors.append(error)
        else:
            write_file(path, changed.encode())
            return before, after
    raise errors[0]


def _literal(value: str) -> str:
    try:
        alone = tomllib.loads(f"x = {value}").keys() == {
            "x"
        }  # a value with lines behind it would set more than this
    except (tomllib.TOMLDecodeError, RecursionError):
        alone = False
    return value if alone else json.dumps(value)


def _with_line(text: str, section: str, key: str, line: str) -> str:
    lines = text.splitlines()
    try:
        start = lines.index(f"[{section}]")
    except ValueError:
        return "\n".join([*lines, *([""] if lines else []), f"[{section}]", line]) + "\n"
    end = next((i for i in range(start + 1, len(lines)) if lines[i].startswith("[")), len(lines))
    for i in range(start + 1, end):
        if re.match(rf"\s*{key}\s*=", lines[i]):
            lines[i] = line
            break
    else:
        lines.insert(start + 1, line)
    return "\n".join(lines) + "\n"
