"""The deterministic director: a prompt from what the user said, what holds, what was done already and what failed.

It works offline, and stands in where a model cannot be reached and no directive was ever issued. It never writes sentences of
its own about the task: it passes on the user's, and says of tools what was measured.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

import msgspec

from agentx.storage.events.direction_events import NewCheckpoint, NewKnowledge, ReusePolicy
from agentx.storage.text import one_line
from agentx.synthesis.directing.answer import Directive
from agentx.synthesis.directing.past import Call, Past
from agentx.synthesis.directing.wording import quoted, without_fields, without_reason, without_sources
from agentx.synthesis.memory.items import CheckpointDetail, shorten
from agentx.synthesis.model.port import ToolSchema
from agentx.synthesis.state.state import State

STABLE_RUNS, UNSURE_RUNS = 10, 3
"""How many runs a directive serves where the last ones completed, and after a failure or at the beginning."""

LOOKED_AT = 5
"""The runs that decide whether all is stable, and whose failures are told."""

PATTERN_RUNS = 10
"""After so many runs that completed in a row, a milestone is left once."""

MAX_LINES = 20
"""Of facts and failures, so many."""

REPORTED = "summaries(runs=10)"
"""What was done, where no tool of its own shows it: what executors said of their runs."""

MAX_TOPIC = 60
"""Characters of what a fact is about."""

NOTES_BYTES = 2_500
"""Of checkpoints, and of facts learned, so much stands in one directive; what is left out is learned by the next."""

MAX_FIELDS = 30
"""Tools of which it is looked up what they did."""

_WORDS = 40
_LINE_WORDS = 400
_LOOKING = re.compile(
    r"(?:^|_)(?:search|read|list|get|fetch|find|look|check|query|show|describe|view|browse)(?:_|$)|search$"
)
_NAMING = (
    "title",
    "titles",
    "subject",
    "id",
    "ids",
    "url",
    "urls",
    "link",
    "links",
    "name",
    "names",
    "key",
    "keys",
    "path",
)
_ADDRESSES = (re.compile(r"[\w.+-]+@[\w.-]*\w"), re.compile(r"https?://[^\s\"'<>)]*[^\s\"'<>).,;]"))
_ANY_NAME = f"$..[{','.join(map(repr, _NAMING))}]"
"""The JSONPath of whatever names a thing, however deep."""

_CONDITIONS = (
    "executor_failed",
    "user_instructions_changed",
    "tool_error",
    "hot_issue_opened",
    "constraint_changed",
)


N = TypeVar("N", NewCheckpoint, NewKnowledge)


class Lesson(msgspec.Struct, frozen=True):
    """An argument of a tool with which it failed, and the one with which it succeeded afterwards.

    Attributes:
        works: Empty where it has not succeeded since.
    """

    tool: str
    argument: str
    fails: str
    works: str = ""

    @property
    def order(self) -> str:
        """What an executor is told."""
        instead = f"; use {self.works}" if self.works else ""
        return f"Do not call {self.tool} with {self.argument} {self.fails}{instead}."


def compose(
    state: State, past: Past, instructions: Sequence[str], why: str, tools: Sequence[ToolSchema] = ()
) -> Directive:
    """Write a directive without a model.

    Args:
        state: What is concluded.
        past: The latest runs.
        instructions: What the user said, in full, oldest first.
        why: Why a directive is wanted.
        tools: What the executor will have with effects outside the workspace.
    """
    latest = past.latest(LOOKED_AT)
    completed = sum(run.status == "COMPLETED" for run in latest)
    stable = len(latest) == LOOKED_AT == completed
    learned = lessons(past, instructions)
    fields = dict(islice(_done(past, tools), MAX_FIELDS)) or {"done": REPORTED}
    return Directive(
        summary=f"{past.ran} run{'s' * (past.ran != 1)} so far; of the last {len(latest)}, {completed} completed."
        if latest
        else "Nothing ran yet.",
        strategy="Go on as before."
        if stable
        else "Carry out what the user asked for, and keep away from what failed.",
        reflection=_reflection(why, stable=stable),
        prompt=_prompt(state, instructions, learned, fields),
        policy=ReusePolicy(STABLE_RUNS if stable else UNSURE_RUNS, _CONDITIONS, fields),
        checkpoints=_few(_checkpoints(state, past, instructions, learned, why)),
        knowledge=_few(_learned(state, learned)),
    )


def _prompt(
    state: State, instructions: Sequence[str], learned: Sequence[Lesson], fields: dict[str, str]
) -> str:
    mission = [one_line(item.text) for item in state.active("north_star")]
    avoided = [one.order for one in learned[-MAX_LINES:]]
    known = [one_line(item.text) for item in state.active("knowledge")]
    facts = [text for text in known if text not in avoided][-MAX_LINES:]
    parts = (
        ("Your mission:", mission),
        (
            "Carry this out now, the later words before the earlier where they differ:",
            list(_asked(state, instructions)),
        ),
        ("What is known:", facts),
        ("Keep away from:", avoided),
    )
    text = "\n\n".join(
        "\n- ".join((title, *(shorten(line, _LINE_WORDS) for line in lines)))
        for title, lines in parts
        if lines
    )
    done = "\n".join(f"{{{{{name}}}}}" for name in fields)
    return f"{without_fields(without_sources(text))}\n\nDone already, never do it again:\n{done}".strip()


def _asked(state: State, instructions: Sequence[str]) -> Iterator[str]:
    """What the user said, but for the sentences that stand behind every prompt as demands anyway, there without their why."""
    demanded = {_bare(item.text) for item in state.active("constraint", "rejection")}
    for text in instructions:
        sentences = re.split(r"(?<=[.!?])\s+", one_line(text))
        if kept := " ".join(sentence for sentence in sentences if _bare(sentence) not in demanded):
            yield kept


def _bare(sentence: str) -> str:
    return without_reason(sentence, sure=True).rstrip(".! ").casefold()


# --- what was done already -------------------------------------------------------------------------------------------


def _done(past: Past, tools: Sequence[ToolSchema]) -> Iterator[tuple[str, str]]:
    """A field for each tool that changes something outside: what it was given, in all runs."""
    calls: dict[str, list[Call]] = {tool.name: [] for tool in tools}
    for call in past.calls:
        if call.may_be_done and call.outside:
            calls.setdefault(call.tool, []).append(call)
    declared = {tool.name: tool.parameters for tool in tools}
    for tool, made in sorted(calls.items()):
        path = "" if _LOOKING.search(tool) else _telling(made) or _naming(declared.get(tool, {}))
        if path:
            name = re.sub(r"\W", "_", tool)
            yield f"done_{name}", f'values(tool={tool}, path="{path}", runs=0)'


def _naming(parameters: Mapping[str, Any]) -> str:
    """The JSONPath of the argument by whose name one call is told from another, where none was made yet; else empty."""
    for name in _NAMING:
        shape = parameters.get("properties", {}).get(name)
        if shape is not None:
            return f"{name}[*]" if shape.get("type") == "array" else name
    kinds = {shape.get("type") for shape in parameters.get("properties", {}).values()}
    return _ANY_NAME if kinds & {"array", "object"} else ""


def _telling(calls: Sequence[Call]) -> str:
    """The JSONPath of the argument that tells one call of a tool from another; empty where there is none."""
    found: Counter[str] = Counter()
    for call in calls:
        for key, value in call.arguments.items():
            found.update(_paths(key, value))
    telling = [path for path in found if _names_things(path) or len(_at(path, calls)) > 1 or len(calls) == 1]
    return max(telling, key=lambda path: (_names_things(path), "[*]" in path, found[path], path), default="")


def _paths(key: str, value: Any) -> Iterator[str]:
    if not key.isidentifier():
        return
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        yield f"{key}[*]"
    elif isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        yield from (
            f"{key}[*].{name}" for name in _NAMING if all(isinstance(one.get(name), str) for one in value)
        )
    elif isinstance(value, str) and value:
        yield key


def _at(path: str, calls: Sequence[Call]) -> set[str]:
    """The different values of an argument."""
    key = re.split(r"\W", path, maxsplit=1)[0]
    return {str(call.arguments.get(key)) for call in calls}


def _names_things(path: str) -> bool:
    return bool(set(re.split(r"\W+", path)) & set(_NAMING))


# --- what failed -----------------------------------------------------------------------------------------------------


def lessons(past: Past, instructions: Sequence[str] = ()) -> list[Lesson]:
    """What distinguishes the calls of a tool that failed from those that succeeded, the latest last.

    Only where one argument explains it: a value that never succeeded since it failed, of an argument that is mostly the same.
    What works instead is known for good. Where nothing is known to work, a failure is told for some runs, and then tried again;
    and one failure may pass by itself, so it is told only where the user names another address of that kind.
    """
    recent = {run.run for run in past.latest(LOOKED_AT)}
    found: dict[tuple[str, str, str], Lesson] = {}
    failed: set[tuple[str, str, str]] = set()
    for place, call in enumerate(past.calls):
        if call.may_be_done:
            continue
        later = [
            one for one in past.calls[place + 1 :] if one.tool == call.tool and one.status == "SUCCEEDED"
        ]
        if not later and call.run not in recent:
            continue
        for key, value in call.arguments.items():
            if not isinstance(value, str) or not value or _names_things(key):
                continue
            held = [str(one.arguments.get(key)) for one in later]
            if value in held or len({*held}) > max(1, len(held) // 2):
                continue
            name = (call.tool, key, value)
            if held or name in failed or _another(value, instructions):
                found[name] = Lesson(call.tool, key, quoted(value), quoted(held[-1]) if held else "")
            failed.add(name)
    return list(found.values())


def _another(value: str, instructions: Sequence[str]) -> bool:
    """Whether the user names another mail address or another page than this one."""
    return any(
        kind.fullmatch(value) and any({*kind.findall(text)} - {value} for text in instructions)
        for kind in _ADDRESSES
    )


def _learned(state: State, learned: Sequence[Lesson]) -> Iterator[NewKnowledge]:
    """What works instead of what failed, where that is not known yet: it is to be known when the runs are long gone."""
    known = {item.text for item in state.active("knowledge")}
    for one in learned:
        if one.works and one.order not in known:
            yield NewKnowledge(f"{one.tool} {one.fails}"[:MAX_TOPIC], one.order)


def _few(notes: Iterable[N]) -> tuple[N, ...]:
    """The first of them, as many as one event holds."""
    kept: list[N] = []
    for note in notes:
        if len(msgspec.json.encode([*kept, note])) > NOTES_BYTES:
            break
        kept.append(note)
    return tuple(kept)


# --- marks on the timeline -------------------------------------------------------------------------------------------


def _checkpoints(
    state: State, past: Past, instructions: Sequence[str], learned: Sequence[Lesson], why: str
) -> Iterator[NewCheckpoint]:
    left = [item for item in state.active("checkpoint") if isinstance(item.detail, CheckpointDetail)]
    last = past.latest(PATTERN_RUNS)
    if len(last) == PATTERN_RUNS and all(run.status == "COMPLETED" for run in last):
        tools = sorted({call.tool for call in past.calls if call.status == "SUCCEEDED"})
        if not any(
            isinstance(one.detail, CheckpointDetail) and one.detail.sort == "milestone" for one in left
        ):
            yield NewCheckpoint(
                "milestone",
                f"{PATTERN_RUNS} runs in a row completed, with {', '.join(tools[:MAX_LINES]) or 'no tools'}.",
                "If runs fail later, look at what changed since.",
            )
    for one in learned:
        text = f"{one.tool} failed with {one.argument} {one.fails} and works with {one.works}."
        if one.works and not any(item.text == text for item in left):
            yield NewCheckpoint(
                "issue_resolved",
                text,
                f"If {one.tool} fails again, look at its {one.argument} first, and at what the user said of it.",
            )
    if why.startswith("user_instructions_changed") and past.runs:
        yield NewCheckpoint(
            "strategy_change",
            f"The user said: {shorten(one_line(instructions[-1]), _WORDS)}"
            if instructions
            else "The user said something new.",
            "If the next runs fail, look at this change first.",
        )


def _reflection(why: str, *, stable: bool) -> str:
    return " ".join(
        (
            f"Asked because {why}.",
            "The last runs completed, so the prompt serves for long."
            if stable
            else "Not known to be stable, so the prompt serves for few runs.",
            "What was done already is looked up before each run.",
            "Composed without a model: nothing weighs what the user said.",
        )
    )
