"""The work in a workspace: runs and what directed them, pipelines, and the minds of cognitive agents."""

import math
from typing import Any

import msgspec

from agentx.agents.turn import is_anyone_at_work
from agentx.cognition.interactions import DecayPoint, interactions
from agentx.engine.event_index import RunSummary
from agentx.engine.moment_parser import event_at, events_at
from agentx.inspector.access import InspectorError
from agentx.inspector.asking import Asked, cut
from agentx.pipelines.board import board_of
from agentx.pipelines.pointing.changes import OutOfDate
from agentx.pipelines.upkeep.out_of_date import overview
from agentx.pipelines.upkeep.started import plan_of, present, started
from agentx.policy import approvals
from agentx.storage.errors import AgentXError
from agentx.storage.events.cognition_events import Interacted
from agentx.storage.events.direction_events import DirectiveFailed, DirectiveIssued
from agentx.storage.events.types import (
    AgentMessageSent,
    AgentThoughtProcess,
    Event,
    RunStarted,
    ToolCallExecuted,
    ToolCallRequested,
)
from agentx.storage.log.history import told_already
from agentx.storage.text import one_line
from agentx.synthesis.memory.vitality import days_between
from agentx.synthesis.pipelines.definition.pipeline import Loop, Role
from agentx.synthesis.pipelines.definition.plan import is_by_engine, is_by_model, is_by_person
from agentx.synthesis.state.state import State
from agentx.trust.trust import restricted
from agentx.workspace import Workspace

MOST_STEPS = 500
"""Maximum number of steps of one run that are shown at once."""

DECIDED = "DECIDED"
"""Status of a run, or a call, that waited for a person who has decided, and that was not resumed since."""

MOST_READ = 5_000
"""Maximum number of events that are read for them at once."""

MOST_SESSIONS = 5
"""Maximum number of sessions of cognitive agents that are shown: the latest ones."""

MOST_INTERACTIONS = 200
"""Maximum number of points of one curve: the latest ones."""

_SECONDS_A_DAY = 86_400


# --- runs ---------------------------------------------------------------------------------------------------


def runs(ws: Workspace, asked: Asked) -> dict[str, Any]:
    """Return the runs, and the sessions of other hosts, the latest first."""
    state = ws.engine.snapshot()
    before, limit = asked.number("before", state.seq + 1), asked.limit

    def latest(every: dict[str, RunSummary]) -> tuple[list[RunSummary], int]:
        found = [run for run in reversed(every.values()) if run.record.seq < before]
        found.sort(key=lambda run: -run.record.seq)
        return found[: limit + 1], len(every)

    found, total = ws.engine.links.at(state, lambda index: latest(index.runs))
    directives = _directives(ws, found[:limit])
    return {
        "runs": [_run(ws, run, directives.get(run.record.directive)) for run in found[:limit]],
        "next": found[limit - 1].record.seq if len(found) > limit else None,
        "total": total,
    }


def _directives(ws: Workspace, found: list[RunSummary]) -> dict[int, Event]:
    wanted = {run.record.directive for run in found}
    return {event.seq: event for event in events_at(ws.engine.log, wanted)}


def _run(ws: Workspace, run: RunSummary, directive: Event | None) -> dict[str, Any]:
    record = run.record
    status = record.status
    if status == "WAITING" and all(call.run != record.run for call in approvals.waiting(ws.engine)):
        status = DECIDED
    end = {"seq": record.ended_seq, "at": record.ended_at, "outcome": status, "reason": record.reason}
    lasted = days_between(record.at, record.ended_at or run.last_at) * _SECONDS_A_DAY
    return {
        "id": record.run,
        "agent": record.agent,
        "model": record.model,
        "task": record.task,
        "summary": record.summary,
        "status": status or "session",
        "started": {"seq": record.seq, "at": record.at, "cause": record.cause},
        "ended": end if record.ended_seq else None,
        "last": {"seq": run.last, "at": run.last_at},
        "steps": run.steps or sum(run.tools.values()),
        "tools": run.tools,
        "failed": run.failed,
        "tokens": {"in": run.prompt_tokens, "out": run.completion_tokens},
        "cost": run.cost_usd,
        "duration_s": round(lasted, 3),
        "resumed": record.resumed,
        "schedule": record.schedule,
        "directed": _directive(directive) if directive else None,
    }


def _directive(event: Event) -> dict[str, Any]:
    """Return why a director was asked, and what it wrote."""
    match event.data:
        case DirectiveIssued() as issued:
            return {
                "seq": event.seq,
                "at": event.at,
                "reason": issued.why,
                "summary": issued.summary,
                "strategy": issued.strategy,
                "reflection": issued.reflection,
                "prompt": issued.prompt.text,
                "policy": msgspec.to_builtins(issued.policy),
                "model": issued.model,
            }
        case DirectiveFailed() as failed:
            return {"seq": event.seq, "at": event.at, "reason": failed.why, "error": failed.error}
    return {"seq": event.seq, "at": event.at, "reason": ""}


def run_detail(ws: Workspace, asked: Asked) -> dict[str, Any]:
    """Return one run with its steps; ``after`` goes on behind a step.

    Raises:
        InspectorError: It does not exist.
    """
    state, name = ws.engine.snapshot(), asked.text("id")
    run = ws.engine.links.at(state, lambda index: index.runs.get(name))
    if run is None:
        raise InspectorError(404, f"There is no run {name!r}.")
    shown = _run(ws, run, _directives(ws, [run]).get(run.record.directive))
    steps: list[dict[str, Any]] = []
    directives = []
    after = max(asked.number("after"), run.record.seq - 1)
    end = after
    for event in ws.engine.log.history.read(after, told_already):
        if event.seq > run.last or event.seq > after + MOST_READ or len(steps) >= MOST_STEPS:
            break
        end = event.seq
        if isinstance(event.data, DirectiveIssued | DirectiveFailed):
            directives.append(_directive(event))
        if event.run == name and (step := _step(event) or _asked_step(ws, event, state)):
            steps.append(step)
    first = event_at(ws.engine.log, run.record.seq)
    task = first.data.task if first and isinstance(first.data, RunStarted) else None
    return {
        **shown,
        "step_count": shown["steps"],
        "steps": steps,
        "next": end if end < run.last else None,
        "prompt": cut(ws.read_body(task)) if task else cut(run.record.task),
        "directives": directives,
    }


def _asked_step(ws: Workspace, event: Event, state: State) -> dict[str, Any] | None:
    """Return a call that has no result yet because a person must decide on it, or just did."""
    call = state.pending.get(event.data.call_id) if isinstance(event.data, ToolCallRequested) else None
    if call is None or call.seq != event.seq or not call.awaits_approval:
        return None
    decided = approvals.decision(ws.engine, call)
    text, status = {
        None: (f"{call.tool} waits for you", "WAITING"),
        True: (f"{call.tool} was approved: `agentx run` goes on", DECIDED),
        False: (f"{call.tool} was refused: {call.reason or 'no reason was given'}", "DENIED"),
    }[decided]
    return {
        "seq": event.seq,
        "at": event.at,
        "actor": event.actor,
        "type": event.type,
        "text": one_line(text),
        "tool": call.tool,
        "ok": False,
        "status": status,
        "duration_s": 0.0,
        "exit_code": None,
    }


def _step(event: Event) -> dict[str, Any] | None:
    """Return what an agent did or said in an event of its run; ``None`` for the engine's own notes."""
    text = one_line(event.describe() or event.type)
    common = {"seq": event.seq, "at": event.at, "actor": event.actor, "type": event.type, "text": text}
    match event.data:
        case ToolCallExecuted() as call:
            return common | {
                "tool": call.tool,
                "ok": call.status == "SUCCEEDED",
                "status": call.status,
                "duration_s": call.duration_ms / 1_000,
                "exit_code": call.exit_code,
            }
        case AgentMessageSent() | AgentThoughtProcess():
            return common | {"tool": "", "ok": True, "status": "", "duration_s": 0.0, "exit_code": None}
    return None


# --- pipelines ----------------------------------------------------------------------------------------------


def pipelines(ws: Workspace, _asked: Asked) -> dict[str, Any]:
    """Return the pipelines that were started, the latest first."""
    found = [
        {
            "name": one.name,
            "status": one.status,
            "reason": one.reason,
            "started_at": one.started_at,
            "ended_at": one.ended_at,
            "proved": len(one.proved),
            "running": len(one.running),
            "waiting": len(one.waiting),
            "dispatches": one.dispatches,
            "retries": one.retries,
        }
        for one in reversed(started(ws.engine))
    ]
    return {"pipelines": found}


def pipeline(ws: Workspace, asked: Asked) -> dict[str, Any]:
    """Return the steps of a pipeline with what became of each.

    Raises:
        InspectorError: It was never started here.
    """
    known = started(ws.engine, asked.text("name"))
    if not known:
        raise InspectorError(404, f"No pipeline {asked.text('name')!r} was started here.")
    progress = known[-1]
    plan = plan_of(ws.engine, progress)
    board = board_of(plan, progress)
    cells = {cell.key: cell for line in board.rows for cell in line.cells}
    late, unknown = _out_of_date(ws, progress.name)
    cut_off = progress.status == "RUNNING" and not is_anyone_at_work(ws.engine)
    steps: list[dict[str, Any]] = []
    for key, step in plan.steps.items():
        cell, proof = cells.get(key), progress.proved.get(key)
        steps.append(
            {
                "id": key,
                "title": step.stage,
                "item": step.item,
                "role": step.role,
                "loop": step.loop,
                "status": cell.mark if cell else "waiting",
                "round": cell.round if cell else 1,
                "reason": cell.reason if cell else "",
                "calls": cell.calls if cell else (),
                "by": _played_by(plan.pipeline.roles[step.role]),
                **_staleness(late.get(key)),
                "needs": [*step.needs, *step.inside],
                "artifacts": [*(file.path for file in step.writes), *(file.to for file in step.appends)],
                "at": cell.since if cell and cell.since else "",
                "seq": proof.seq if proof else 0,
            }
        )
    levels = _levels({step["id"]: step["needs"] for step in steps}, {s["id"]: s["loop"] for s in steps})
    for shown in steps:
        shown["level"] = levels[shown["id"]]
    return {
        **msgspec.to_builtins(board),
        "name": progress.name,
        "status": "INTERRUPTED" if cut_off else board.status,
        "loops": [
            {"name": one.loop, "at_most": one.at_most}
            for one in plan.pipeline.stages
            if isinstance(one, Loop)
        ],
        "step_count": board.steps,
        "steps": steps,
        "stale_unknown": unknown,
    }


def _staleness(found: OutOfDate | None) -> dict[str, Any]:
    """Return whether a step is out of date, why, and the event of the first change that it has."""
    if found is None:
        return {"stale": "", "why": "", "why_seq": 0}
    event = next((reason.event for reason in found.reasons if reason.event), 0)
    return {"stale": found.state, "why": found.why, "why_seq": event}


def _played_by(role: Role) -> str:
    """Return who plays a role: ``model``, ``person``, ``engine`` or ``program``."""
    if is_by_model(role):
        return "model"
    return "person" if is_by_person(role) else "engine" if is_by_engine(role) else "program"


def _out_of_date(ws: Workspace, name: str) -> tuple[dict[str, OutOfDate], str]:
    """Return how each step is out of date, or why that is not known: reading its file may take trust."""
    if ws.restricted:
        return {}, f"{restricted(ws.restricted)}."
    try:
        runner = present(ws.engine, name)
        found = overview(ws.engine, runner.plan, runner.files)
    except AgentXError as error:
        return {}, str(error)
    return {one.step: one for one in found.steps}, ""


def _levels(needs: dict[str, list[str]], loops: dict[str, str]) -> dict[str, int]:
    """Return how many steps must be done before each, along the longest way; the order is topological."""
    levels: dict[str, int] = {}
    ends: dict[str, int] = {}
    for key, wanted in needs.items():
        before = [levels.get(need, ends.get(need, -1)) for need in wanted]
        levels[key] = max(before, default=-1) + 1
        if loop := loops[key]:
            ends[loop] = max(ends.get(loop, 0), levels[key])
    return levels


# --- cognition ----------------------------------------------------------------------------------------------


def cognition(ws: Workspace, asked: Asked) -> dict[str, Any]:
    """Return the memory buffer of each cognitive agent, and how its memories fade."""
    state, wanted = ws.engine.snapshot(), asked.text("agent")
    minds = ws.engine.links.at(state, lambda index: {name: list(seqs) for name, seqs in index.minds.items()})
    sessions = sorted(minds, key=lambda name: -minds[name][-1])
    shown = [name for name in sessions if wanted in {"", name}][:MOST_SESSIONS]
    return {"agents": [_mind(ws, name, minds[name]) for name in shown], "sessions": sessions}


def _mind(ws: Workspace, session: str, seqs: list[int]) -> dict[str, Any]:
    state, config = ws.engine.snapshot(), ws.config.cognition
    threshold = config.purge_decay_threshold
    curves: dict[str, list[DecayPoint]] = {}
    times: dict[int, str] = {}
    events = list(events_at(ws.engine.log, seqs))
    for one in interactions(events, session, ws.engine.read_body):
        times[one.interaction_id] = one.at
        for point in one.points:
            curves.setdefault(point.memory_id, []).append(point)
    mind = state.minds.get(session)
    items: list[dict[str, Any]] = []
    for name, points in curves.items():
        last, item = points[-1], state.items.get(name)
        slot = mind.buffer.get(name) if mind else None
        # R falls to the threshold after stability * ln(R / threshold) further interactions
        left = last.stability * math.log(max(last.decay_score, threshold) / threshold) if threshold else 0.0
        items.append(
            {
                "id": name,
                "text": item.text if item else "",
                "activation": round(last.decay_score, 4),
                "strength": slot.strength if slot else 0.0,
                "utility": slot.utility if slot else 0.0,
                "held": slot is not None,
                "curve": [
                    [point.interaction_id, round(point.decay_score, 4), point.was_reinforced]
                    for point in points[-MOST_INTERACTIONS:]
                ],
                "entered": points[0].interaction_id,
                "fades_at": last.interaction_id + math.ceil(left) if slot else None,
            }
        )
    items.sort(key=lambda one: (not one["held"], -one["activation"]))
    done = [event for event in events if isinstance(event.data, Interacted)]
    return {
        "agent": session,
        "at": done[-1].at if done else "",
        "interactions": mind.interactions if mind else len(times),
        "threshold": threshold,
        "temperature": config.decay_temperature,
        "evicted": mind.evicted if mind else 0,
        "times": times,
        "items": items,
    }
