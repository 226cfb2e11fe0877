"""Verify that the check, flow or script claimed for a lesson exists."""

from collections.abc import Iterator

from agentx.engine.engine import Engine
from agentx.memory.flows import Flows
from agentx.recording.recorded_log import RecordedLog
from agentx.storage.errors import UsageError
from agentx.storage.files import nofollow
from agentx.storage.files.paths import PathRefused, check_path
from agentx.synthesis.learning.grading import MADE
from agentx.synthesis.learning.proposing import propose
from agentx.synthesis.memory.items import FlowDetail, MemoryItem, checks_of
from agentx.synthesis.similarity.near_duplicates import likeness

_COMMANDS = ("tests", "lint", "build")


def look_for(engine: Engine, made: str, lesson: str) -> tuple[str, str]:
    """Return what a lesson was made into, with its name; or nothing, and a sentence that says why.

    Args:
        engine: The workspace.
        made: The claim: ``check:c-12``, ``flow:f-3``, ``script:scripts/deploy.sh`` or ``rule``. Without a
            name, it is searched by the words of the lesson.
        lesson: The lesson.

    Raises:
        UsageError: The kind is none of these.
    """
    kind, _, name = made.partition(":")
    if kind not in MADE:
        raise UsageError(f"A lesson can become a {', '.join(MADE[:-1])} or {MADE[-1]}, not {made[:40]!r}.")
    if kind == "rule":
        return kind, ""
    names = {"check": _checks, "flow": _flows, "script": _scripts}[kind](engine, name.strip(), lesson)
    if there := next(names, ""):
        return f"{kind}:{there}", ""
    if name:
        return "", f"The {kind} {name[:100]!r} does not exist here, so nothing checks the lesson yet."
    return "", (
        f"No {kind} for this lesson was found, so nothing checks it yet; name one with `--made {kind}:NAME`."
    )


def _checks(engine: Engine, name: str, lesson: str) -> Iterator[str]:
    """Yield rules with an automated check, by ID or by the lesson's words, and check commands by name."""
    if name in _COMMANDS and getattr(engine.config.checks, name).command:
        yield name
    wanted = propose(lesson).checks
    for item in _active(engine.log):
        same = likeness(item.text, lesson) or (wanted and checks_of(item) == wanted)
        if checks_of(item) and (item.id == name if name else same):
            yield item.id


def _flows(engine: Engine, name: str, lesson: str) -> Iterator[str]:
    """Yield flows by ID or name, or those with a step that repeats the lesson."""
    called = Flows(engine).named(name)
    for item in _active(engine.log):
        if isinstance(item.detail, FlowDetail):
            says = any(likeness(step, lesson) for step in item.detail.steps)
            if (item == called or item.id == name) if name else says:
                yield item.id


def _scripts(engine: Engine, name: str, lesson: str) -> Iterator[str]:
    """Yield an artifact by its path; without a path, the one that was proposed."""
    try:
        path = check_path(name or propose(lesson).path)
        if nofollow.is_file(engine.artifacts.locate(path, follow=True)):
            yield path
    except PathRefused:
        return


def _active(log: RecordedLog) -> list[MemoryItem]:
    return [item for item in log.state.items.values() if item.status == "active"]
