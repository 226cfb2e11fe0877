"""Build the prompt of a director: the task's history in bounded sections.

It includes the whole history as far as it matters for the next runs.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from agentx.storage.events.direction_events import DirectiveFailed, DirectiveIssued
from agentx.storage.events.types import Event
from agentx.storage.text import clip, one_line, shorten
from agentx.synthesis.directing.director_answer import TOOL
from agentx.synthesis.directing.fields import signatures
from agentx.synthesis.directing.past import Call, Past
from agentx.synthesis.directing.policy import CONDITIONS
from agentx.synthesis.memory.items import CheckpointDetail, MemoryItem, sort_of
from agentx.synthesis.memory.vitality import vitality
from agentx.synthesis.model.port import ChatMessage, ToolSchema
from agentx.synthesis.model.structured import parameters, prompt
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

    ``earlier`` holds previous directives and failures of the director; it and the user's instructions come
    oldest first. ``tools`` are those that the executor will have.
    """
    resolvers = "; ".join(f"`{one}`" for one in signatures())
    system = prompt("direct.md").format(
        conditions=", ".join(f"`{name}`" for name in sorted(CONDITIONS)), resolvers=resolvers
    )
    tries = Counter(
        (call.tool, call.status == "SUCCEEDED") for call in past.calls if call.status != "UNKNOWN"
    )
    used = [
        f"{tool}: {tries[tool, True]} succeeded, {tries[tool, False]} failed"
        for tool in sorted({tool for tool, _ in tries})
    ]
    marks = []
    for item in state.active("situation"):
        if sort_of(item) != "checkpoint":
            continue
        marks.append(one_line(item.text))
        if isinstance(item.detail, CheckpointDetail):
            then = f" Actionable: {item.detail.actionable}" if item.detail.actionable else ""
            marks[-1] = f"{item.detail.run or 'before any run'} [{item.detail.sort}] {marks[-1]}{then}"
    known = state.active("knowledge")
    alive = sorted(known, key=lambda item: -vitality(item, state.at))[:SHOWN]
    parts: list[tuple[str, Iterable[str]]] = [
        ("Why you are asked", [why]),
        ("Now", [past.at]),
        ("The mission", _texts(state.active("north_star"))),
        ("What the user said", instructions),
        ("What the user demands and ruled out", _texts(state.active("constraint", "rejection"))),
        ("Open problems", _texts(state.active("hot_issue"))),
        ("Tools of the executor", [f"{tool.name}: {tool.description}" for tool in tools]),
        ("How tools were used", used[:SHOWN]),
        ("What failed", failed(past)),
        ("Checkpoints", marks[-SHOWN:]),
        ("Knowledge", [f"{item.domain}: {item.text}" for item in alive]),
        ("Your directives so far", filter(None, map(_directive, earlier[-EARLIER:]))),
        ("Runs", runs(past)),
    ]
    return [ChatMessage("system", system), ChatMessage("user", _bounded(parts))]


def _bounded(parts: Iterable[tuple[str, Iterable[str]]]) -> str:
    """Render the sections, one entry per line; shorten all lines if the text is too long."""
    whole = [(title, [one_line(line) for line in lines]) for title, lines in parts]
    text = ""
    for most in _LINES:
        cut = [
            (title, [f"{line[:most]}{'…' * (len(line) > most)}" for line in lines]) for title, lines in whole
        ]
        text = "\n\n".join("\n- ".join((f"## {title}", *lines)) for title, lines in cut if lines)
        if len(text) <= MAX_CHARACTERS:
            break
    return text


def _texts(items: Iterable[MemoryItem]) -> list[str]:
    return [item.text for item in items][-SHOWN:]


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


def failed(past: Past) -> list[str]:
    """List distinct failures, latest first: the tool, its arguments and its output; then runs that failed."""
    lines = [
        f"{called(call)}: {shorten(one_line(call.output.text), _WORDS)}"
        for call in reversed(past.calls)
        if call.status != "SUCCEEDED"
    ] + [
        f"{run.run} {run.status}: {shorten(one_line(run.reason), _WORDS)}"
        for run in reversed(past.runs)
        if run.status not in ("COMPLETED", "WAITING") and run.reason
    ]
    return list(dict.fromkeys(lines))[:FAILED]


def called(call: Call) -> str:
    """Render a call in one line."""
    arguments = ", ".join(f"{key}={one_line(str(value))}" for key, value in call.arguments.items())
    return f"{call.tool}({clip(arguments, _ARGUMENTS)})"


def runs(past: Past) -> Iterator[str]:
    """Yield the latest runs, oldest first, one line each."""
    shown = past.latest(RUNS)
    for place, run in enumerate(shown):
        outcome = shorten(one_line(run.summary or run.reason), _WORDS)
        calls = [call for call in past.calls if call.run == run.run]
        line = f"{run.run}, {run.at[:16]}: {run.status}"
        used = ", ".join(f"{tool} {times}" for tool, times in Counter(call.tool for call in calls).items())
        if place >= len(shown) - IN_FULL:
            used = ": ".join((used, "; ".join(f"{called(call)} {call.status}" for call in calls[:CALLS])))
        yield ". ".join(part for part in (line, outcome, used) if part)


def shape() -> ToolSchema:
    """Return the schema of a director's answer, as a tool."""
    about = "Write the executor's prompt and say how long it serves."
    return ToolSchema(TOOL, about, parameters("direct.json"))
