"""Build the prompt of a director: the task's history in bounded sections.

It includes the whole history as far as it matters for the next runs.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from agentx.storage.events.direction_events import DirectiveFailed, DirectiveIssued
from agentx.storage.events.types import Event
from agentx.storage.text import one_line, shorten
from agentx.synthesis.directing.director_answer import TOOL
from agentx.synthesis.directing.fields import signatures
from agentx.synthesis.directing.past import Call, Past
from agentx.synthesis.directing.policy import CONDITIONS
from agentx.synthesis.memory.items import CheckpointDetail, MemoryItem, sort_of
from agentx.synthesis.memory.vitality import vitality
from agentx.synthesis.model.port import ChatMessage, ToolSchema
from agentx.synthesis.model.prompt_files import parameters, prompt
from agentx.synthesis.state.state import State

RUNS = 50
"""Number of runs shown: the latest five with their calls, the others in one line each."""

IN_FULL = 5
EARLIER = 5
"""Number of earlier directives shown."""

SHOWN = 30
"""Maximum number of items shown per kind of memory: the latest ones; for knowledge, those of highest
vitality."""

FAILED = 10
"""Number of failed approaches shown."""

CALLS = 20
"""Number of calls per run shown with their arguments."""

MAX_CHARACTERS = 120_000
"""Maximum length of the whole prompt, about 30,000 tokens; if it is exceeded, every line is cut shorter."""

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
    """Build the conversation that asks a director for a directive.

    Args:
        state: The current state.
        past: The latest runs.
        earlier: Previous directives and failures of the director, oldest first.
        instructions: The user's messages, in full, oldest first.
        why: Why the director is asked.
        tools: Tools that the executor will have.
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
        ("Checkpoints", map(_checkpoint, _checkpoints(state)[-SHOWN:])),
        ("Knowledge", [f"{item.domain}: {item.text}" for item in _alive(state)]),
        ("Your directives so far", filter(None, map(_directive, earlier[-EARLIER:]))),
        ("Runs", runs(past)),
    ]
    return [ChatMessage("system", system), ChatMessage("user", _bounded(parts))]


def _bounded(parts: Iterable[tuple[str, Iterable[str]]]) -> str:
    """Render the sections, one entry per line; shorten all lines if the text is too long."""
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
    known = state.active("knowledge")
    return sorted(known, key=lambda item: -vitality(item, state.at))[:SHOWN]


def _checkpoints(state: State) -> list[MemoryItem]:
    return [item for item in state.active("situation") if sort_of(item) == "checkpoint"]


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
    """Count successes and failures per tool."""
    tries = Counter(
        (call.tool, call.status == "SUCCEEDED") for call in past.calls if call.status != "UNKNOWN"
    )
    return [
        f"{tool}: {tries[tool, True]} succeeded, {tries[tool, False]} failed"
        for tool in sorted({tool for tool, _ in tries})
    ]


def failed(past: Past) -> list[str]:
    """List distinct failures, latest first: the tool, its arguments and its output; then runs that failed."""
    told: dict[str, None] = {}
    for call in reversed(past.calls):
        if call.status != "SUCCEEDED":
            told.setdefault(f"{called(call)}: {shorten(one_line(call.output.text), _WORDS)}")
    for run in reversed(past.runs):
        if run.status not in ("COMPLETED", "WAITING") and run.reason:
            told.setdefault(f"{run.run} {run.status}: {shorten(one_line(run.reason), _WORDS)}")
    return list(told)[:FAILED]


def called(call: Call) -> str:
    """Render a call in one line."""
    arguments = ", ".join(f"{key}={one_line(str(value))}" for key, value in call.arguments.items())
    shown = arguments if len(arguments) <= _ARGUMENTS else arguments[: _ARGUMENTS - 1] + "…"
    return f"{call.tool}({shown})"


def runs(past: Past) -> Iterator[str]:
    """Yield the latest runs, oldest first, one line each."""
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
    """Return the schema of a director's answer, as a tool."""
    return ToolSchema(
        TOOL, "Write the executor's prompt and say how long it serves.", parameters("direct.json")
    )
