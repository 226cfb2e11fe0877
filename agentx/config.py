"""``agentx.toml``: what a workspace is told to do, checked when it is read."""

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentx.storage.durable import write_file
from agentx.storage.errors import UsageError
from agentx.synthesis.cognition.config import ExecutorConfig

FILE = "agentx.toml"


class ConfigInvalid(UsageError):
    """``agentx.toml`` cannot be read, or says something that is no setting."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class WorkspaceSection(_Section):
    """Where the artifacts lie.

    ``artifacts``, or a directory outside (``..``) that is mirrored and whose own repository is never written.
    """

    artifacts: str = "artifacts"


class ModelSection(_Section):
    """Which model answers: any name that litellm knows, or ``script:FILE``."""

    name: str = ""
    api_base: str = ""
    timeout_s: float = Field(default=120.0, gt=0)


class EmbeddingsSection(_Section):
    """What turns text into vectors: ``minilm``, ``litellm:<model>`` or ``none``."""

    model: str = "minilm"


class LimitsSection(_Section):
    """What a run may use, and how large a file may be."""

    max_steps: int = Field(default=40, gt=0)
    max_tokens: int = Field(default=400_000, gt=0)
    max_cost_usd: float = Field(default=5.0, gt=0)
    max_time_s: float = Field(default=1_800.0, gt=0)
    context_tokens: int = Field(default=8_000, gt=0)
    max_file_bytes: int = Field(default=20_000_000, gt=0)


class CheckSection(_Section):
    """A command that checks the work, run in a copy of the artifacts."""

    command: str = ""
    timeout_s: float = Field(default=300.0, gt=0)
    max_output_bytes: int = Field(default=1_000_000, gt=0)


class ChecksSection(_Section):
    """The commands behind ``run_tests``, ``run_lint`` and ``run_build``.

    ``readable`` names directories that they may read, isolated, besides the system (a toolchain).
    """

    readable: tuple[str, ...] = ()

    tests: CheckSection = CheckSection()
    lint: CheckSection = CheckSection()
    build: CheckSection = CheckSection()


class ToolsSection(_Section):
    """Which tools exist and how they run.

    ``run_command`` is off until it is allowed; ``approve`` names tools that need a person's word; ``words`` are
    spellings that ``check_document`` accepts.
    """

    run_command: bool = False
    approve: tuple[str, ...] = ()
    isolation: str = Field(default="auto", pattern="^(auto|bubblewrap|landlock|none)$")
    words: tuple[str, ...] = ()


class MemorySection(_Section):
    """What settles a proposal beside a person.

    ``judge``: after a run, the model that ran it reads what the user said, too. ``lapse_days``: a proposal that nobody
    settled is laid aside after so long; 0 for never. ``maintain``: rules fade, near-duplicates are merged and lessons promoted
    when work goes on after a night, or only when a person says so (``off``).
    """

    judge: bool = True
    lapse_days: int = Field(default=14, ge=0, le=36_500)
    maintain: str = Field(default="nightly", pattern="^(nightly|off)$")


class ScribeSection(_Section):
    """What is noted without being asked for, what comes back by itself, and when a model reads along.

    ``auto_capture``: notes are taken of what happens. ``capture_assistant``: of what agents say, too. ``auto_recall``: up
    to ``auto_recall_top_k`` relevant memories stand before each message. ``session_strategy``: what becomes of a session
    when it ends, ``memory`` (its lessons are kept as memories that fade) or ``none``. ``active_hours``: from and to which
    hour of the local day a model may be asked on schedule, every ``every_minutes`` at most, for ``timeout_s`` at most.
    """

    auto_capture: bool = True
    capture_assistant: bool = True
    auto_recall: bool = True
    auto_recall_top_k: int = Field(default=5, ge=0, le=50)
    session_strategy: str = Field(default="memory", pattern="^(memory|none)$")
    active_hours: str = Field(default="8-24", pattern=r"^([01]?\d|2[0-4])-([01]?\d|2[0-4])$")
    every_minutes: float = Field(default=30.0, gt=0)
    timeout_s: float = Field(default=60.0, gt=0)


class DirectorSection(_Section):
    """Who directs the runs of this workspace, and who carries them out.

    ``model``: who writes directives, ``none`` for code alone; that of ``[model]`` by default. ``executor``: a program and its arguments;
    without one, the model of ``[model]`` in a loop. ``speaks``: ``text`` (prompt on stdin, summary on stdout) or ``jsonl``. ``files``: whether it
    may read and change artifacts and run checks. ``time_limit_s``: how long a run may take. ``keys``: variables that hold keys
    and that this program, and the programs of a pipeline's roles, find in their environment.
    """

    model: str = ""
    executor: tuple[str, ...] = ()
    speaks: str = Field(default="text", pattern="^(text|jsonl)$")
    files: bool = True
    time_limit_s: float = Field(default=1_800.0, gt=0)
    keys: tuple[str, ...] = ()


class SecretsSection(_Section):
    """What looks like a secret in a file that an agent would write: ask a person, let it through, or refuse it."""

    artifacts: str = Field(default="confirm", pattern="^(confirm|allow|deny)$")


class SourceSection(_Section):
    """A pool of files outside the workspace, read-only, indexed in place."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")
    path: str
    include: tuple[str, ...] = ("**/*",)
    exclude: tuple[str, ...] = ()
    max_file_bytes: int = Field(default=5_000_000, gt=0)


class LinkSection(_Section):
    """Artifacts of another workspace that agents of this one may read, and after how many hours without a change they are stale."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{1,63}$")
    path: str
    paths: tuple[str, ...] = ("**/*",)
    max_age_hours: float = Field(default=24.0, gt=0)


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
    sources: tuple[SourceSection, ...] = ()
    links: tuple[LinkSection, ...] = ()


def read_config(root: Path) -> Config:
    """Read the configuration of a workspace; a missing file is an empty one.

    Raises:
        ConfigInvalid: It is not TOML, or holds something that is no setting.
    """
    path = root / FILE
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return Config()
    except (ValueError, RecursionError) as error:  # of TOML, of UTF-8, of a number with too many digits
        raise ConfigInvalid(f"{path} is not TOML: {error}.") from error
    except OSError as error:
        raise ConfigInvalid(f"{path} cannot be read: {error.strerror}.") from error
    return _checked(raw, path)


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
    """Set one value (``model.name``) in ``agentx.toml``, leaving the rest of the file, comments too, as it is.

    Args:
        root: The workspace's directory.
        name: Section and key, with a dot between.
        value: As TOML writes it; a bare word counts as a string.

    Raises:
        ConfigInvalid: There is no such setting, or the value is none that it can have.
    """
    section, _, key = name.rpartition(".")
    if not section or not re.fullmatch(r"[a-z_]+(\.[a-z_]+)?", section) or not re.fullmatch(r"[a-z_]+", key):
        raise ConfigInvalid(f"{name!r} names no setting; write it as SECTION.KEY, like model.name.")
    literals = dict.fromkeys((_literal(value), json.dumps(value)))  # a command called `true` is a text
    errors: list[ConfigInvalid] = []
    for literal in literals:
        try:
            return _set(root, section, key, literal)
        except ConfigInvalid as error:
            errors.append(error)
    raise errors[0]


def _set(root: Path, section: str, key: str, literal: str) -> Config:
    path = root / FILE
    text = path.read_text("utf-8") if path.exists() else ""
    changed = _with_line(text, section, key, f"{key} = {literal}")
    try:
        raw = tomllib.loads(changed)
    except tomllib.TOMLDecodeError as error:
        raise ConfigInvalid(f"{literal} is no TOML value for {section}.{key}: {error}.") from error
    config = _checked(raw, path)
    write_file(path, changed.encode())
    return config


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
