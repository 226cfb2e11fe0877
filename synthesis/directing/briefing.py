"""What a director is shown: the whole history of the task, as far as it matters for the next runs, in bounded sections."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from agentx.storage.events.direction_events import DirectiveFailed, DirectiveIssued
from agentx.storage.events.types import Event
from agentx.storage.text import one_line
from agentx.synthesis.directing.answer import TOOL
from agentx.synthesis.directing.fields import signatures
from agentx.synthesis.directing.past import Call, Past
from agentx.synthesis.directing.policy import CONDITIONS
from agentx.synthesis.memory.items import CheckpointDetail, MemoryItem, shorten
from agentx.synthesis.memory.vitality import vitality
from agentx.synthesis.model.port import ChatMessage, ToolSchema
from agentx.synthesis.model.prompts import parameters, prompt
from agentx.synthesis.state.state import State

RUNS = 50
"""So many runs are shown: the latest five with their calls, the others in a line."""

IN_FULL = 5
EARLIER = 5
"""So many earlier directives are shown."""

SHOWN = 30
"""Of each kind of memory, so many at most: the latest, of knowledge the most alive."""

FAILED = 10
"""So many failed approaches are shown."""

CALLS = 20
"""Of the calls of one run, so many are shown with their arguments."""

MAX_CHARACTERS = 120_000
"""All that it is shown, some 30,000 tokens; where there is more, each line is cut shorter."""

_LINES = (2_000, 600, 200)
_WORDS = 60
_ARGUMENTS = 300


def question(
    state: State,
    past: Past,
    earlier: Sequence[Event],
    instructions: Sequence[str],
    why: str,
    tools: Sequence[ToolSchema],
) -> list[ChatMessage]:
    """The conversation that a director is asked to answer.

    Args:
        state: What is concluded.
        past: The latest runs.
        earlier: Its directives and failures so far, oldest first.
        instructions: What the user said, in full, oldest first.
        why: Why it is asked.
        tools: What the executor will have.
    """
    resolvers = "; ".join(f"`{one}`" for one in signatures())
    system = prompt("direct.md").format(
        conditions=", ".join(f"`{name}`" for name in sorted(CONDITIONS)), resolvers=resolvers
    )
    parts: list[tuple[str, Iterable[str]]] = [
        ("Why you are asked", [why]),
        ("Now", [past.at]),
        ("The mission", _texts(state.active("north_star"))),
        ("What the user said", instructions),
        ("What the user demands and ruled out", _texts(state.active("constraint", "rejection"))),
        ("Open problems", _texts(state.active("hot_issue"))),
        ("Tools of the executor", [f"{tool.name}: {tool.description}" for tool in tools]),
        ("How tools were used", _usage(past)[:SHOWN]),
        ("What failed", failed(past)),
        ("Checkpoints", map(_checkpoint, list(state.active("checkpoint"))[-SHOWN:])),
        ("Knowledge", [f"{item.domain}: {item.text}" for item in _alive(state)]),
        ("Your directives so far", filter(None, map(_directive, earlier[-EARLIER:]))),
        ("Runs", runs(past)),
    ]
    return [ChatMessage("system", system), ChatMessage("user", _bounded(parts))]


def _bounded(parts: Iterable[tuple[str, Iterable[str]]]) -> str:
    """The sections, an entry a line; all lines shorter where they are too much."""
    whole = [(title, [one_line(line) for line in lines]) for title, lines in parts]
    told = ""
    for most in _LINES:
        told = "\n\n".join(
            "\n- ".join(
                (f"## {title}", *(line if len(line) <= most else f"{line[:most]}…" for line in lines))
            )
            for title, lines in whole
            if lines
        )
        if len(told) <= MAX_CHARACTERS:
            break
    return told


def _texts(items: Iterable[MemoryItem]) -> list[str]:
    return [item.text for item in items][-SHOWN:]


def _alive(state: State) -> list[MemoryItem]:
    known = state.active("knowledge", "learning", "discovery")
    return sorted(known, key=lambda item: -vitality(item, state.at))[:SHOWN]


def _checkpoint(item: MemoryItem) -> str:
    if not isinstance(item.detail, CheckpointDetail):
        return one_line(item.text)
    then = f" Actionable: {item.detail.actionable}" if item.detail.actionable else ""
    return f"{item.detail.run or 'before any run'} [{item.detail.sort}] {one_line(item.text)}{then}"


def _directive(event: Event) -> str:
    match event.data:
        case DirectiveIssued() as issued:
            return shorten(
                f"{event.at[:16]}, because {issued.why}: {issued.summary} Strategy: {issued.strategy} "
                f"Reflection: {issued.reflection} Served up to {issued.policy.valid_for_runs} runs.",
                2 * _WORDS,
            )
        case DirectiveFailed() as failure:
            return shorten(f"{event.at[:16]}: you could not be asked: {failure.error}", _WORDS)
    return ""


def _usage(past: Past) -> list[str]:
    """How often each tool succeeded and failed."""
    tries = Counter(
        (call.tool, call.status == "SUCCEEDED") for call in past.calls if call.status != "UNKNOWN"
    )
    return [
        f"{tool}: {tries[tool, True]} succeeded, {tries[tool, False]} failed"
        for tool in sorted({tool for tool, _ in tries})
    ]


def failed(past: Past) -> list[str]:
    """What did not work, the latest first, each once: the tool, what it was called with, what it said."""
    told: dict[str, None] = {}
    for call in reversed(past.calls):
        if call.status != "SUCCEEDED":
            told.setdefault(f"{called(call)}: {shorten(one_line(call.output.text), _WORDS)}")
    for run in reversed(past.runs):
        if run.status not in ("COMPLETED", "WAITING") and run.reason:
            told.setdefault(f"{run.run} {run.status}: {shorten(one_line(run.reason), _WORDS)}")
    return list(told)[:FAILED]


def called(call: Call) -> str:
    """A call in a line."""
    arguments = ", ".join(f"{key}={one_line(str(value))}" for key, value in call.arguments.items())
    shown = arguments if len(arguments) <= _ARGUMENTS else arguments[: _ARGUMENTS - 1] + "…"
    return f"{call.tool}({shown})"


def runs(past: Past) -> Iterator[str]:
    """The latest runs, oldest first, each in a line."""
    shown = past.latest(RUNS)
    for place, run in enumerate(shown):
        said = shorten(one_line(run.summary or run.reason), _WORDS)
        calls = [call for call in past.calls if call.run == run.run]
        line = f"{run.run}, {run.at[:16]}: {run.status}"
        told = ", ".join(f"{tool} {times}" for tool, times in Counter(call.tool for call in calls).items())
        if place >= len(shown) - IN_FULL:
            told = ": ".join((told, "; ".join(f"{called(call)} {call.status}" for call in calls[:CALLS])))
        yield ". ".join(part for part in (line, said, told) if part)


def shape() -> ToolSchema:
    """The shape of a director's answer, as a tool."""
    return ToolSchema(
        TOOL, "Write the executor's prompt and say how long it serves.", parameters("direct.json")
    )
