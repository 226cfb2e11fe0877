"""The status of a pipeline for display: each stage and item, and what became of it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from agentx.storage.events.pipeline_events import key_of
from agentx.synthesis.pipelines.definition.pipeline import Loop
from agentx.synthesis.pipelines.definition.plan import Plan, Step
from agentx.synthesis.pipelines.running.due_steps import Schedule
from agentx.synthesis.pipelines.running.pipeline_progress import Progress, Sent

_REOPENED = "Some steps must be repeated: run `agentx pipeline run FILE`."

Mark = Literal["waiting", "running", "proved", "not_passed", "again", "asks", "failed", "left-out"]
"""``not_passed``: proved, with the verdict FAIL; ``again``: must be repeated; ``asks``: waits for approval;
``left-out``: there is no such step.
"""


class Cell(msgspec.Struct, frozen=True, omit_defaults=True, rename={"key": "step"}):
    """A stage for one item.

    Attributes:
        round: Round of its loop, from 1.
        role: The role that works on it, or would.
        since: Start of the current work, as UTC time in ISO 8601.
        reason: Why it failed, or what it asks.
        calls: The calls that wait for approval: the arguments of ``agentx approve``.
        shown: Content ids of the files that a person is asked to approve, by path.
        before: Content ids of those that they decided on before.
    """

    key: str
    mark: Mark
    round: int = 1
    role: str = ""
    since: str = ""
    reason: str = ""
    calls: tuple[str, ...] = ()
    shown: dict[str, str] = {}
    before: dict[str, str] = {}


class BoardRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stage.

    Attributes:
        for_each: The items that it is repeated for; empty where it runs once.
        loop: The loop that contains it.
        cells: In the order of the items.
        open: The name of its items where they are not known yet.
    """

    stage: str
    for_each: str
    loop: str
    cells: tuple[Cell, ...]
    open: str = ""


class Board(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a pipeline at one moment.

    Attributes:
        status: How its last run ended; ``RUNNING`` while it runs, empty where it was never started.
            ``REOPENED`` where it was completed and a step must now be repeated.
        items: Keys of the items of each name, or of each combination of names.
        proved: Number of proved steps, out of ``steps``.
        not_passed: Number of them whose last verdict is FAIL.
        found: Number of proved steps whose files were there already, or which a person made.
        dispatches: Number of agents sent, in all runs.
        retries: Number of dispatches whose work was not accepted.
        tokens: Tokens that they used.
        incidents: What the user should look at, of all runs: changes from outside, denied calls, processes
            that programs left.
    """

    pipeline: str
    title: str
    status: str
    reason: str
    started_at: str
    ended_at: str
    rows: tuple[BoardRow, ...]
    items: dict[str, tuple[str, ...]]
    proved: int
    not_passed: int
    steps: int
    found: int = 0
    dispatches: int
    retries: int
    tokens: int
    cost_usd: float
    incidents: tuple[str, ...] = ()


def board_of(plan: Plan, progress: Progress) -> Board:
    """Return the status of a pipeline."""
    rows = tuple(_rows(plan, progress))
    used = progress.usage
    marks = Counter(cell.mark for row in rows for cell in row.cells)
    proved = marks["proved"] + marks["not_passed"]
    reopened = progress.status == "COMPLETED" and proved < len(plan.steps)
    return Board(
        pipeline=plan.pipeline.pipeline,
        title=plan.pipeline.title,
        status="REOPENED" if reopened else progress.status,
        reason=_REOPENED if reopened else progress.reason,
        started_at=progress.started_at,
        ended_at=progress.ended_at,
        rows=rows,
        items=_columns(plan),
        proved=proved,
        not_passed=marks["not_passed"],
        steps=len(plan.steps),
        found=sum(
            cell.mark == "proved" and progress.proved[cell.key].found
            for row in rows
            for cell in row.cells
            if cell.key in progress.proved
        ),
        dispatches=progress.dispatches,
        retries=progress.retries,
        tokens=used.prompt_tokens + used.completion_tokens,
        cost_usd=used.cost_usd,
        incidents=tuple(progress.incidents),
    )


def _rows(plan: Plan, progress: Progress) -> Iterator[BoardRow]:
    schedule = Schedule(plan, progress)
    not_passed = schedule.not_passed()
    sent = {one.key: one for one in progress.running.values()}
    columns = _columns(plan)
    for entry in plan.pipeline.stages:
        loop = entry.loop if isinstance(entry, Loop) else ""
        name = entry.for_each.name if entry.for_each else ""
        for stage in entry.stages if isinstance(entry, Loop) else (entry,):
            if stage.id in plan.open:
                yield BoardRow(stage.id, name, loop, (), plan.open[stage.id].items)
                continue
            keys = [key_of(stage.id, item) for item in columns.get(name, ("",))]
            steps = ((key, plan.steps.get(key)) for key in keys)
            cells = tuple(
                _cell(step, schedule, sent.get(key), not_passed) if step else Cell(key, "left-out")
                for key, step in steps
            )
            yield BoardRow(stage.id, name, loop, cells)


def _columns(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Return the keys of the known items by name, and of the combinations that stages are repeated for."""
    found = {name: dict.fromkeys(item.id for item in items) for name, items in plan.items.items()}
    for entry in plan.pipeline.stages:
        if entry.for_each and entry.name in plan.each:
            keys = dict.fromkeys(item.id for item in plan.each[entry.name] if item)
            found[entry.for_each.name] = found.get(entry.for_each.name, {}) | keys
    return {name: tuple(keys) for name, keys in found.items()}


def _cell(step: Step, schedule: Schedule, sent: Sent | None, not_passed: Mapping[str, str]) -> Cell:
    key, role, progress = step.key, step.role, schedule.progress
    number = schedule.rounds.get(key, 1)
    if key in not_passed:
        return Cell(key, "not_passed", number, role, reason=not_passed[key])
    if schedule.standing.get(key) == "done":
        return Cell(key, "proved", number, role)
    if key in progress.waiting:
        waits = progress.running.get(progress.waiting[key])
        asks, shown = (waits.asks, waits.shown) if waits else ([], {})
        told = f"waiting for you: agentx approve {asks[0]}" if asks else "approved: run the pipeline"
        before = progress.seen.get(key, {})
        return Cell(key, "asks", number, role, reason=told, calls=tuple(asks), shown=shown, before=before)
    if sent is not None:
        return Cell(key, "running", sent.round, role, sent.at)
    loop = schedule.plan.loops.get(step.loop)
    why = schedule.failed.get(key) or (schedule.failed.get(loop.key) if loop and loop.decides == key else "")
    if why:
        return Cell(key, "failed", number, role, reason=why)
    tries, reason = schedule.tries(key) if key in schedule.rounds else (0, "")
    again = number > 1 or tries or key in progress.proved
    return Cell(key, "again" if again else "waiting", number, role, reason=reason)
