"""The tools that a host's model may call, by profile: their arguments, and when to use each.

A schema is part of every prompt of the host, so the default profile is small; its size is tested.
"""

import functools
import json
from typing import Annotated, Any, Literal

import msgspec

Profile = Literal["default", "storage", "quality", "all"]

PROFILES: tuple[Profile, ...] = ("default", "storage", "quality", "all")

MOST_HISTORY, MOST_ITEMS, MOST_HITS = 100, 100, 20
"""Maximum number of events, memory items and passages in one answer."""

_Text = Annotated[str, msgspec.Meta(max_length=20_000)]
_Name = Annotated[str, msgspec.Meta(max_length=1_000)]


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the arguments of a tool: what a host's model may pass, and nothing else."""


def _about(text: str) -> msgspec.Meta:
    return msgspec.Meta(description=text)


class ContextWanted(Arguments, frozen=True):
    """Arguments of ``context``."""

    message: Annotated[_Text, _about("The user's request, or what you work on.")] = ""
    tier: Annotated[
        int, msgspec.Meta(ge=0, le=3), _about("0 after a compaction, 1 usual, 2 the day's recap, 3 the log.")
    ] = 1
    max_tokens: Annotated[int, msgspec.Meta(ge=100, le=20_000)] = 4_000


class SearchWanted(Arguments, frozen=True):
    """Arguments of ``search``."""

    query: Annotated[_Text, msgspec.Meta(min_length=1), _about("Words, symbols or exact text.")]
    k: Annotated[int, msgspec.Meta(ge=1, le=MOST_HITS)] = 5
    kind: Annotated[
        Literal["", "artifact", "message", "tool", "memory", "source", "test", "docs"], _about("Only these.")
    ] = ""
    path: Annotated[_Name, _about("Only below this directory, or a glob.")] = ""


class RememberWanted(Arguments, frozen=True):
    """Arguments of ``remember``."""

    text: Annotated[_Text, msgspec.Meta(min_length=1), _about("One sentence, clear on its own.")]
    quote: Annotated[
        _Text, _about("The user's exact words that it rests on; without them it is no rule.")
    ] = ""
    kind: Literal["constraint", "rejection", "decision", "task", "knowledge", "situation"] = "knowledge"


class SettleWanted(Arguments, frozen=True):
    """Arguments of ``settle``."""

    id: _Name
    verdict: Annotated[
        Literal["keep", "drop", "same", "ends", "replaces"], _about("same, ends, replaces: name `other`.")
    ]
    quote: Annotated[_Text, _about("The user's exact words; only drop may omit them.")] = ""
    text: Annotated[_Text, _about("keep: one clear sentence.")] = ""
    kind: Literal["", "constraint", "rejection", "decision", "task", "knowledge", "situation"] = ""
    other: _Name = ""
    reason: _Text = ""


class CheckWanted(Arguments, frozen=True):
    """Arguments of ``check``."""

    action: Annotated[_Text, _about("What you are about to do, in a sentence.")] = ""
    tool: Annotated[_Name, _about("Your tool, e.g. Bash or Write.")] = ""
    arguments: Annotated[dict[str, Any], _about("Its arguments: command, or path and content.")] = (
        msgspec.field(default_factory=dict)
    )


class TasksWanted(Arguments, frozen=True):
    """Arguments of ``tasks``."""

    done: Annotated[bool, _about("Also what is done.")] = False


class HistoryWanted(Arguments, frozen=True):
    """Arguments of ``history``."""

    after: Annotated[int, msgspec.Meta(ge=0), _about("Events after this number; default: the latest.")] = -1
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_HISTORY)] = 20
    type: Annotated[_Name, _about("Only this type, e.g. UserMessageSent.")] = ""
    seq: Annotated[int, msgspec.Meta(ge=0), _about("One event in full.")] = 0


class MemoryWanted(Arguments, frozen=True):
    """Arguments of ``read_memory``."""

    id: Annotated[_Name, _about("One item with its evidence, e.g. c-12.")] = ""
    kind: Annotated[_Name, _about("List this kind: constraint, rejection, decision, rule, knowledge, …")] = ""
    status: Literal["active", "candidate", "dormant", "closed", "retired", "all"] = "active"
    after: Annotated[_Name, _about("The last id of the page before.")] = ""


class RestoreWanted(Arguments, frozen=True):
    """Arguments of ``restore``."""

    path: Annotated[_Name, _about("File or directory.")]
    at: Annotated[str, msgspec.Meta(min_length=1, max_length=100), _about("Event number, time or commit.")]


class UndoWanted(Arguments, frozen=True):
    """Arguments of ``undo``."""


class DiffWanted(Arguments, frozen=True):
    """Arguments of ``diff``."""

    first: Annotated[_Name, _about("Event number, time or commit; default: the start of the turn.")] = ""
    last: Annotated[_Name, _about("Default: now.")] = ""


class GradeWanted(Arguments, frozen=True):
    """Arguments of ``grade``."""

    task: Annotated[_Text, msgspec.Meta(min_length=1), _about("What was done, in a sentence.")]
    passed: bool
    lesson: Annotated[_Text, _about("What was learned, in a sentence.")] = ""
    flow: Annotated[_Name, _about("The flow that was followed.")] = ""


class McpTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as it is offered.

    Attributes:
        about: What a model reads: what it does, and when to call it.
        arguments: Its arguments; ``None`` for a tool of the workspace, which has its own schema.
        profiles: The profiles besides ``all`` that have it.
        reads: Whether it changes nothing, so that it may run while changes wait.
        again: Whether it may be asked again if it is unknown whether it ran.
        programs: Whether it runs programs, so that it runs in the process of the host's server alone.
    """

    name: str
    about: str = ""
    arguments: type[Arguments] | None = None
    profiles: tuple[Profile, ...] = ()
    reads: bool = False
    again: bool = False
    programs: bool = False


DEFAULT: tuple[McpTool, ...] = (
    McpTool(
        name="context",
        about="What the user demands and ruled out, open problems, decisions and what is relevant to a "
        "message. Call it first in a session, after a compaction, and for each new request.",
        arguments=ContextWanted,
        reads=True,
        again=True,
    ),
    McpTool(
        name="search",
        about="Find passages in this project's files, past messages, tool output and memory. Call it before "
        "you ask the user something they may have said.",
        arguments=SearchWanted,
        reads=True,
        again=True,
    ),
    McpTool(
        name="remember",
        about="Keep what must outlive this session. Call it when the user states a rule, a refusal, a "
        "decision or a fact, with their exact words as quote.",
        arguments=RememberWanted,
        again=True,
    ),
    McpTool(
        name="settle",
        about="Settle a candidate or a rule that `context` lists under “To settle”.",
        arguments=SettleWanted,
        again=True,
    ),
    McpTool(
        name="check",
        about="Ask whether an action is allowed: allow, ask (the user must agree first) or deny, with the "
        "rule. Call it before you run a command, write a file or propose a tool or library.",
        arguments=CheckWanted,
        again=True,
    ),
    McpTool(
        name="tasks",
        about="Open tasks, failing checks and calls that wait for approval. Call it to see what to do next.",
        arguments=TasksWanted,
        reads=True,
        again=True,
    ),
    McpTool(
        name="history",
        about="What happened, event by event. Call it to find when or why something was done.",
        arguments=HistoryWanted,
        reads=True,
        again=True,
    ),
    McpTool(
        name="read_memory",
        about="Memory items by id or kind, with the sentence that each rests on.",
        arguments=MemoryWanted,
        reads=True,
        again=True,
    ),
)
"""The default profile; every other profile has these too."""

MORE: tuple[McpTool, ...] = (
    *(
        McpTool(name=name, profiles=("storage",), reads=name in {"read_file", "list_directory"}, again=again)
        for name, again in {
            "read_file": True,
            "list_directory": True,
            "write_file": False,
            "edit_file": False,
            "move_file": False,
            "delete_file": False,
        }.items()
    ),
    McpTool(
        name="diff",
        about="Which files and memory items changed between two moments.",
        arguments=DiffWanted,
        profiles=("storage",),
        reads=True,
        again=True,
    ),
    McpTool(
        name="restore",
        about="Bring a file or directory back as it was at a moment.",
        arguments=RestoreWanted,
        profiles=("storage",),
    ),
    McpTool(
        name="undo",
        about="Undo the latest change to the artifacts, if an agent made it.",
        arguments=UndoWanted,
        profiles=("storage",),
    ),
    *(
        McpTool(name=name, profiles=("quality",), programs=True)
        for name in ("run_tests", "run_lint", "run_build", "check_document", "run_command")
    ),
    McpTool(
        name="grade",
        about="Record how a task went and what was learned. Call it once at the end of a task.",
        arguments=GradeWanted,
        profiles=("quality",),
    ),
    McpTool(name="summarize_directory_purpose", again=True),
    McpTool(name="summarize_decisions", again=True),
)
"""What other profiles add."""

TOOLS = {tool.name: tool for tool in (*DEFAULT, *MORE)}


def tools_of(profile: Profile) -> tuple[McpTool, ...]:
    """Return the tools of a profile, in a stable order."""
    return (*DEFAULT, *(tool for tool in MORE if profile == "all" or profile in tool.profiles))


@functools.cache
def schema_of(arguments: type[Arguments]) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments, without what a model does not need."""
    (_,), parts = msgspec.json.schema_components((arguments,))
    whole: dict[str, Any] = parts[arguments.__name__]
    fields = {name: _lean(field) for name, field in whole["properties"].items()}
    required = {"required": whole["required"]} if whole.get("required") else {}
    return {"type": "object", "properties": fields, **required, "additionalProperties": False}


def _lean(field: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in field.items() if name not in {"default", "maxLength", "minLength"}}
    if "enum" in field:
        kept = {"type": "string", **kept}  # some hosts refuse an argument without a type
    if field.get("default") not in ("", -1, {}, None, False):
        kept["default"] = field["default"]
    return kept


def listed(tool: McpTool, own: dict[str, Any] | None = None, about: str = "") -> dict[str, Any]:
    """Return a tool as ``tools/list`` gives it.

    Args:
        tool: The tool.
        own: Its schema, if it is a tool of the workspace.
        about: Its description then.
    """
    return {
        "name": tool.name,
        "description": tool.about or about,
        "inputSchema": schema_of(tool.arguments) if tool.arguments else own,
        "annotations": {"readOnlyHint": True} if tool.reads else {"destructiveHint": False},
    }


def compact(tools: list[dict[str, Any]]) -> str:
    """Return the tools as a host puts them into a prompt, to count their tokens."""
    return json.dumps(tools, ensure_ascii=False, separators=(",", ":"))
