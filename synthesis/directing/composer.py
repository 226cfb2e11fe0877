"""The deterministic director: composes a prompt from instructions, memory, completed work and failures.

It works offline, and serves as the fallback if a model cannot be reached and no directive was ever issued. It
never invents sentences about the task: it passes on the user's, and states what was measured about tools.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from agentx.storage.events.direction_events import NewCheckpoint, NewKnowledge, ReusePolicy
from agentx.storage.text import one_line, shorten
from agentx.synthesis.directing.acts import Declaration
from agentx.synthesis.directing.director_answer import Directive
from agentx.synthesis.directing.foreign_texts import quoted, without_fields, without_sources
from agentx.synthesis.directing.instructions import Instruction, without
from agentx.synthesis.directing.instructions import parts as parts_of
from agentx.synthesis.directing.past import Call, Past
from agentx.synthesis.memory.items import CheckpointDetail, MemoryItem, sort_of
from agentx.synthesis.model.port import ToolSchema
from agentx.synthesis.state.state import State

STABLE_RUNS, UNSURE_RUNS = 10, 3
"""How many runs a directive serves: after completed runs, and after a failure or at the beginning."""

LOOKED_AT = 5
"""Number of latest runs that decide whether the task is stable, and whose failures are reported."""

PATTERN_RUNS = 10
"""Number of consecutive completed runs after which one milestone is recorded."""

MAX_LINES = 20
"""Maximum number of facts, and of failures."""

DONE = ("done", "done()", "Done already; do not do these again:")
REFUSED = (*DONE[:2], "Done already; the engine refuses these:")
CALLED = ("called", "called()", "Called before; call again only what the task makes new:")
REPORTED = (
    *("reported", "summaries(runs=10)"),
    "What the last runs reported; this run carries out the task anew:",
)
"""Fields that say what was done, each with its heading: acts of programs or of tools, calls of tools without
a declaration, and, if no tool acts, what executors wrote."""

MAX_TOPIC = 60
"""Maximum length of a fact's topic, in characters."""

NOTES_BYTES = 2_500
"""Maximum bytes of checkpoints, and of facts, in one directive; the next directive adds the rest."""

_WORDS = 40
_LINE_WORDS = 400
"""Maximum number of words of a known fact."""

SHORT = 2
"""Maximum length of a text that stands in an error by chance, as a number does."""

_PASSING = re.compile(
    r"tempor|timed? ?-?out|try (?:it )?(?:again|later)|retry|rate limit|too many|unavailable|unreachable"
    r"|connection|network",
    re.IGNORECASE,
)
"""Words of an error that may pass by itself, in English."""

_CONDITIONS = (
    *("executor_failed", "user_instructions_changed", "tool_error"),
    *("hot_issue_opened", "constraint_changed"),
)

N = TypeVar("N", NewCheckpoint, NewKnowledge)


class ArgumentLesson(msgspec.Struct, frozen=True):
    """A tool argument that made calls fail, and the value that succeeded afterwards.

    Attributes:
        works: Empty if no call has succeeded since.
    """

    tool: str
    argument: str
    fails: str
    works: str = ""

    @property
    def order(self) -> str:
        """The instruction for an executor."""
        instead = f"; use {self.works}" if self.works else ""
        return f"Do not call {self.tool} with {self.argument} {self.fails}{instead}."


def compose(
    state: State,
    past: Past,
    instructions: Sequence[str],
    why: str,
    tools: Sequence[ToolSchema] = (),
    declarations: Mapping[str, Declaration] = MappingProxyType({}),
) -> Directive:
    """Write a directive without a model.

    The user's instructions come in full, oldest first. ``tools`` are the executor's tools with effects
    outside the workspace, and ``declarations`` what makes two calls of them the same act.
    """
    latest = past.latest(LOOKED_AT)
    completed = sum(run.status == "COMPLETED" for run in latest)
    stable = len(latest) == LOOKED_AT == completed
    learned = lessons(past)
    shown = list(_done(tools, declarations))
    if stable:
        strategy = "Go on as before."
        serves = "The last runs completed, so the prompt serves for long."
    else:
        strategy = "Carry out what the user asked for, and keep away from what failed."
        serves = "Not known to be stable, so the prompt serves for few runs."
    ran = f"{past.ran} run{'s' * (past.ran != 1)} so far; of the last {len(latest)}, {completed} completed."
    return Directive(
        summary=ran if latest else "Nothing ran yet.",
        strategy=strategy,
        reflection=f"Asked because {why}. {serves} What was done already is looked up before each run. "
        "Composed without a model: nothing weighs what the user said.",
        prompt=_prompt(state, instructions, learned, shown),
        policy=ReusePolicy(
            STABLE_RUNS if stable else UNSURE_RUNS, _CONDITIONS, {name: call for name, call, _ in shown}
        ),
        checkpoints=_few(_checkpoints(state, past, instructions, learned, why)),
        knowledge=_few(_learned(state, learned)),
    )


def _prompt(
    state: State,
    instructions: Sequence[str],
    learned: Sequence[ArgumentLesson],
    shown: Sequence[tuple[str, str, str]],
) -> str:
    mission = [one_line(item.text) for item in state.active("north_star")]
    avoided = [one.order for one in learned[-MAX_LINES:]]
    asked = list(_asked(state, instructions))
    stated = {*avoided, *(line for text in (*asked, *instructions) for line in parts_of(text))}
    facts = [one_line(item.text) for item in _facts(state) if not stated.issuperset(parts_of(item.text))]
    known = [shorten(text, _LINE_WORDS) for text in facts if text not in avoided][-MAX_LINES:]
    parts = (
        ("Your mission:", mission),
        ("Carry this out now, the later words before the earlier where they differ:", asked),
        ("What is known:", known),
        ("Keep away from:", avoided),
    )
    text = "\n\n".join("\n- ".join((title, *lines)) for title, lines in parts if lines)
    done = (f"{title}\n{{{{{name}}}}}" for name, _, title in shown)
    return "\n\n".join((without_fields(without_sources(text)), *done)).strip()


def _done(
    tools: Sequence[ToolSchema], declarations: Mapping[str, Declaration]
) -> Iterator[tuple[str, str, str]]:
    """Yield the fields that say what was done. They list items; none forbids the task itself."""
    acts = [tool for tool in tools if tool.name in declarations and declarations[tool.name].window != "never"]
    yield REFUSED if acts else DONE
    undeclared = [tool for tool in tools if tool.name not in declarations]
    if undeclared:
        yield CALLED
    elif not acts:
        yield REPORTED


def _asked(state: State, instructions: Sequence[str]) -> Iterator[str]:
    """Yield the user's messages without the sentences that are already known as demands.

    Demands are appended to every prompt anyway, there without their reasons.
    """
    demanded = [item.text for item in state.active("constraint", "rejection")]
    return (one_line(one.text) for one in without(map(Instruction, instructions), demanded))


def lessons(past: Past) -> list[ArgumentLesson]:
    """Return the argument values that make calls of a tool fail, latest last.

    A value is to blame if calls with it failed, none has succeeded since, and nothing else explains the
    failures: no other argument was the same in all of them that was not seen to work beside another value.
    One failure is enough only if its error names the value; other failures must be two. An argument that
    merely differs from successful calls is never blamed.

    If the same work succeeded later with another value, the lesson is permanent and names that value.
    Otherwise the failure is reported for some runs, then the value may be tried again.
    """
    recent = {run.run for run in past.latest(LOOKED_AT)}
    found: dict[tuple[str, str, str], ArgumentLesson] = {}
    for call in past.calls:
        if call.may_be_done:
            continue
        same = [one for one in past.calls if one.tool == call.tool]
        for key, value in call.arguments.items():
            if not isinstance(value, str | int) or isinstance(value, bool) or value == "":
                continue
            held = [one for one in same if one.arguments.get(key) == value]
            worked = max((one.seq for one in held if one.status == "SUCCEEDED"), default=0)
            failures = [one for one in held if not one.may_be_done and one.seq > worked]
            successes = [one for one in same if one.status == "SUCCEEDED"]
            if not failures:
                continue
            if not _is_to_blame(key, value, failures, successes):
                continue
            works = _works_instead(key, value, failures, successes)
            if works or failures[-1].run in recent:
                found[call.tool, key, str(value)] = ArgumentLesson(call.tool, key, _shown(value), works)
    return list(found.values())


def _is_to_blame(key: str, value: str | int, failures: Sequence[Call], successes: Sequence[Call]) -> bool:
    """Return whether the errors name a value, or comparison with the other calls leaves nothing else."""
    texts = [one_line(call.output.text) for call in failures]
    others = {name for name in failures[-1].arguments if name != key}
    if all(_is_clear(text, key, value) for text in texts):
        named = [name for name in others if _names(texts[-1], failures[-1].arguments[name])]
        rivals = [name for name in named if not _is_cleared(name, key, failures, successes)]
        # Where an error names several values, the one whose argument it names is meant.
        return not rivals or (_names(texts[-1], key) and not any(_names(texts[-1], name) for name in rivals))
    if len(failures) == 1:
        return False
    first = failures[0].arguments
    constant = [
        name for name in others if all(one.arguments.get(name) == first.get(name) for one in failures)
    ]
    return all(_is_cleared(name, key, failures, successes) for name in constant)


def _is_cleared(name: str, key: str, failures: Sequence[Call], successes: Sequence[Call]) -> bool:
    """Return whether a call succeeded with the value of another argument, beside another value of ``key``."""
    given = failures[-1].arguments
    return any(
        one.arguments.get(name) == given.get(name) and one.arguments.get(key) != given[key]
        for one in successes
    )


def _is_clear(text: str, key: str, value: str | int) -> bool:
    """Return whether an error names a value, and may not pass by itself."""
    exact = isinstance(value, str) and len(value) > SHORT
    return _names(text, value) and (exact or _names(text, key)) and not _PASSING.search(text)


def _names(text: str, value: Any) -> bool:
    """Return whether a text contains a value as a whole word."""
    shown = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    return bool(shown) and bool(re.search(rf"(?<!\w){re.escape(shown)}(?!\w)", text, re.IGNORECASE))


def _works_instead(key: str, value: str | int, failures: Sequence[Call], successes: Sequence[Call]) -> str:
    """Return the value that replaced a failing one; empty if none is known to do the same work.

    Either the same call succeeded with it, or it followed the failing one: that was used for many things
    until it failed, and this one for many things since, never in turns.
    """
    later = [one for one in successes if one.seq > failures[0].seq and one.arguments.get(key) is not None]

    def rest(call: Call) -> dict[str, Any]:
        return {name: one for name, one in call.arguments.items() if name != key}

    same_work = [one for one in later if any(rest(one) == rest(failed) for failed in failures)]
    if same_work:
        return _shown(same_work[-1].arguments[key])
    before = [one for one in successes if one.seq < failures[0].seq]
    followed = [value for value, _ in groupby(one.arguments[key] for one in later)]
    if not followed or followed.count(new := followed[-1]) > 1:
        return ""
    if any(one.arguments.get(key) == new for one in before):
        return ""
    later = [one for one in later if one.arguments[key] == new]
    old_calls = [*failures, *(one for one in before if one.arguments.get(key) == value)]
    differing = {
        name for one in later for name in rest(one) if one.arguments[name] != rest(failures[-1]).get(name)
    }
    varied = all(_values(old_calls, name) > 1 and _values(later, name) > 1 for name in differing)
    return _shown(new) if varied else ""


def _values(calls: Sequence[Call], name: str) -> int:
    """Return how many different values an argument had."""
    return len({msgspec.json.encode(call.arguments.get(name), order="sorted") for call in calls})


def _shown(value: Any) -> str:
    return quoted(value) if isinstance(value, str) else str(value)


def _learned(state: State, learned: Sequence[ArgumentLesson]) -> Iterator[NewKnowledge]:
    """Yield new facts about what works instead of what failed; they outlive the runs that showed it."""
    known = {item.text for item in _facts(state)}
    for one in learned:
        if one.works and one.order not in known:
            yield NewKnowledge(f"{one.tool} {one.fails}"[:MAX_TOPIC], one.order)


def _facts(state: State) -> Iterator[MemoryItem]:
    """Yield what is known, without lessons and discoveries."""
    return (item for item in state.active("knowledge") if sort_of(item) == "knowledge")


def _few(notes: Iterable[N]) -> tuple[N, ...]:
    """Return the first notes, as many as fit in one event."""
    kept: list[N] = []
    for note in notes:
        if len(msgspec.json.encode([*kept, note])) > NOTES_BYTES:
            break
        kept.append(note)
    return tuple(kept)


def _checkpoints(
    state: State, past: Past, instructions: Sequence[str], learned: Sequence[ArgumentLesson], why: str
) -> Iterator[NewCheckpoint]:
    details = ((item.text, item.detail) for item in state.active("situation"))
    left = {text: detail.sort for text, detail in details if isinstance(detail, CheckpointDetail)}
    last = past.latest(PATTERN_RUNS)
    steady = len(last) == PATTERN_RUNS and all(run.status == "COMPLETED" for run in last)
    if steady and "milestone" not in left.values():
        tools = sorted({call.tool for call in past.calls if call.status == "SUCCEEDED"})
        text = f"{PATTERN_RUNS} runs in a row completed, with {', '.join(tools[:MAX_LINES]) or 'no tools'}."
        yield NewCheckpoint("milestone", text, "If runs fail later, look at what changed since.")
    for one in learned:
        text = f"{one.tool} failed with {one.argument} {one.fails} and works with {one.works}."
        if one.works and text not in left:
            look = f"look at its {one.argument} first, and at what the user said of it."
            yield NewCheckpoint("issue_resolved", text, f"If {one.tool} fails again, {look}")
    if why.startswith("user_instructions_changed") and past.runs:
        text = "The user said something new."
        if instructions:
            text = f"The user said: {shorten(one_line(instructions[-1]), _WORDS)}"
        yield NewCheckpoint("strategy_change", text, "If the next runs fail, look at this change first.")
