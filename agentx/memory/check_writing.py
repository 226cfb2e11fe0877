"""Let a model write the checks of rules that are only shown.

The checks are tried on the present files and the history, and kept in mode ``observe``: only the user lets
them stop anything. The model is asked while no lock of the workspace is held, and what it wrote is recorded
with what the call used, so that a rebuild asks no model.
"""

import time
from collections.abc import Sequence

import msgspec

from agentx.engine.engine import Engine
from agentx.memory.editing import CHECKED_KINDS, find, with_checks
from agentx.memory.rule_checks import Trial, try_checks
from agentx.storage.errors import UsageError
from agentx.synthesis.compiling.by_model import CheckAnswer, checks_by
from agentx.synthesis.memory.checks import Check
from agentx.synthesis.memory.conclusions import CHECK_WRITER, Patch, fits
from agentx.synthesis.memory.items import ConstraintDetail, MemoryItem, checks_of, is_shown_only
from agentx.synthesis.model.port import ModelClient, Usage
from agentx.synthesis.model.structured import AnswerUnreadable
from agentx.synthesis.state.state import State

TIMEOUT_S = 60.0
"""Longest time for the checks of one rule."""


class WrittenChecks(msgspec.Struct, frozen=True, kw_only=True):
    """What a model wrote for a rule.

    Attributes:
        id: The rule's ID.
        text: The rule.
        model: The model's name.
        checks: Its checks, in mode ``observe``; empty if the rule is still only shown.
        trial: What they would have done in mode ``deny``; ``None`` without checks.
        warning: Why they are perhaps wrong; empty if nothing shows it.
        why_not: Why the rule has no checks; empty if it has.
        usage: What the calls used.
    """

    id: str
    text: str
    model: str
    checks: tuple[Check, ...] = ()
    trial: Trial | None = None
    warning: str = ""
    why_not: str = ""
    usage: Usage = Usage()


def unchecked(state: State) -> list[MemoryItem]:
    """Return the active rules that are only shown, oldest first; wishes are not meant to be enforced."""
    return [
        item
        for item in state.items.values()
        if item.status == "active"
        and is_shown_only(item)
        and not (isinstance(item.detail, ConstraintDetail) and item.detail.modality == "prefer")
    ]


def write_checks(
    engine: Engine, model: ModelClient, name: str, *, timeout_s: float = TIMEOUT_S
) -> WrittenChecks:
    """Let a model write the checks of a rule that has none.

    Args:
        engine: The workspace's engine.
        model: The model.
        name: The rule's ID.
        timeout_s: Limit for all calls, in seconds.

    Raises:
        NoSuchItem: The rule does not exist.
        UsageError: It is not active, has checks, or is of a kind that cannot have any.
        ModelError: The model could not be reached; nothing was recorded.
        ReadOnly: The workspace cannot be written.
    """
    engine.write_path.require_writable()  # before anything is paid for
    item = find(engine, name)
    require_unchecked(item)
    answer, usage = _ask(engine, model, item, timeout_s)
    bare = WrittenChecks(id=name, text=item.text, model=model.name, usage=usage)
    written = msgspec.structs.replace(bare, why_not=answer.why_not)
    if answer.checks:
        trial = try_checks(engine, _having(item, [_in_mode_deny(check) for check in answer.checks]))
        written = msgspec.structs.replace(written, checks=answer.checks, trial=trial, warning=_warning(trial))
    with engine.write_path.exclusive():
        now = find(engine, name)
        changes = [Patch(id=name, detail=_having(now, answer.checks).detail)] if answer.checks else []
        if not all(map(fits, changes)):
            written, changes = msgspec.structs.replace(bare, why_not="The checks are too long."), []
        elif (now.text, now.status, checks_of(now)) != (item.text, "active", ()):
            why = "The rule changed while the model was asked."
            written, changes = msgspec.structs.replace(bare, why_not=why), []
        engine.synthesizer.record(changes, CHECK_WRITER, asked=model.name, usage=usage)
    return written


def _ask(engine: Engine, model: ModelClient, item: MemoryItem, timeout_s: float) -> tuple[CheckAnswer, Usage]:
    """Ask for the checks; an answer that cannot be used even after its correction has none."""
    try:
        return checks_by(model, item, engine.git.manifest(), time.monotonic() + timeout_s)
    except AnswerUnreadable as error:
        return CheckAnswer(why_not=f"The answer of {model.name} could not be used: {error}"), error.usage


def require_unchecked(item: MemoryItem) -> None:
    """Require that an item is active, can have checks, and has none.

    Raises:
        UsageError: It is not so.
    """
    if item.kind not in CHECKED_KINDS:
        raise UsageError(f"A {item.kind} cannot have checks; what can: {', '.join(CHECKED_KINDS)}.")
    if item.status != "active":
        raise UsageError(f"{item.id} is {item.status}; checks are written for active rules.")
    if checks_of(item):
        raise UsageError(
            f"{item.id} has checks already; `agentx memory check {item.id} --none` removes them."
        )


def _having(item: MemoryItem, checks: Sequence[Check]) -> MemoryItem:
    return msgspec.structs.replace(item, detail=with_checks(item.kind, item.detail, checks))


def _in_mode_deny(check: Check) -> Check:
    return msgspec.structs.replace(check, mode="deny")


def _warning(trial: Trial) -> str:
    """Return a warning about checks that most of the present files break."""
    if 2 * trial.broken["file"] > trial.tried["file"]:
        return "Most of the present files break it, so it perhaps checks something else than the rule."
    return ""
