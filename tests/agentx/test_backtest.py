"""Past runs of a workspace replayed: what is proposed is recorded once, and settled like any proposal."""

import pytest

from agentx.engine.moment_parser import NoSuchMoment
from agentx.engine.past_runs import PastRuns
from agentx.storage.events.types import (
    AgentThoughtProcess,
    Body,
    Draft,
    RunEnded,
    RunStarted,
    TaskGraded,
    ToolCallExecuted,
)
from agentx.storage.log.history import segment_path
from agentx.synthesis.learning.past_runs import read_runs

COMMANDS = ("make build", "python -m pytest -q", "git push --tags")


def work(ws, task, run, *commands, prefix=""):
    """A run that worked."""
    actor = "agent:main"
    done = [
        ToolCallExecuted(
            call_id=f"{run}-{number}", tool="run_command", status="SUCCEEDED", command=command, exit_code=0
        )
        for number, command in enumerate(commands)
    ]
    start = RunStarted(task=ws.body(task), agent="main", model="m")
    ws.record(
        *(Draft(data=data, actor=actor, run=run) for data in (start, *done, RunEnded(status="COMPLETED")))
    )


@pytest.fixture
def worked(ws):
    for number in (1, 2):
        work(ws, f"Cut release 1.{number}", f"r-{number}", *COMMANDS)
    return ws


def test_what_is_proposed_is_one_event_and_is_never_proposed_twice(worked):
    dry = worked.backtest(dry_run=True)
    before = worked.state.seq
    found = worked.backtest()
    assert [item.text for item in dry.flows] == [item.text for item in found.flows] == ["cut release"]
    assert (found.runs, found.recorded, found.left) == (
        {"passed": 2, "failed": 0, "unknown": 0},
        before + 1,
        0,
    )
    (event,) = worked.events(before)
    assert (event.type, event.actor, event.data.extractor) == ("Concluded", "engine:backtest", "backtest")
    again = worked.backtest()
    assert (again.flows, again.lessons, again.recorded) == ((), (), 0)
    assert worked.state.seq == before + 1
    assert worked.rebuild().state_digest == worked.state.digest


def test_a_proposal_is_followed_only_once_a_person_took_it(worked):
    (flow,) = worked.backtest().flows
    assert worked.flows.check("cut release 1.3") == []
    worked.review(flow.id, accept=True)
    (found,) = worked.flows.check("cut release 1.3")
    assert found.item.detail.steps == ("Run `make build`", "Run `pytest -q`", "Run `git push --tags`")
    assert (found.item.detail.succeeded, found.item.trust) == (2, "user")


def test_runs_before_a_moment_are_left_out(worked):
    half = next(event.seq for event in worked.events() if event.type == "RunEnded")
    assert worked.backtest(half, dry_run=True).runs["passed"] == 1
    with pytest.raises(NoSuchMoment):
        worked.backtest("never", dry_run=True)


def test_more_than_one_event_holds_comes_the_next_time(ws):
    for kind in range(12):
        commands = [f"tool{kind}-{number} --{'x' * 50}={number}" for number in range(12)]
        for number in (1, 2):
            work(ws, f"operate gadget {'abcdefghijkl'[kind] * 5}", f"r-{kind}-{number}", *commands)
    first = ws.backtest()
    assert first.left > 0
    assert len(first.flows) + first.left == 12
    second = ws.backtest()
    assert not {item.text for item in first.flows} & {item.text for item in second.flows}
    assert len(second.flows) + second.left == first.left


def test_a_history_without_runs_proposes_nothing(ws):
    assert ws.backtest().recorded == 0


def think(ws, count):
    """As much of what no run is made of."""
    thought = AgentThoughtProcess(body=Body("x" * 300))
    ws.record(*(Draft(data=thought, actor="agent:main") for _ in range(count)))


def test_runs_kept_up_and_between_processes_are_the_same_as_read_anew(ws):
    for number in range(3):
        ws.say(f"Look at {number}, please.")
        work(ws, f"Cut release 1.{number}", f"r-{number}", *COMMANDS)
        think(ws, 300)
        graded = TaskGraded(task="Cut it", passed=bool(number % 2))
        ws.record(Draft(data=graded, actor="user", run=f"r-{number}"))
        anew = read_runs(ws.events(), ws.read_body)
        other = PastRuns(ws.engine.log.history, ws.root / ".agentx" / "runs", ws.read_body)
        assert ws.engine.past_runs.at(ws.state) == other.at(ws.state) == anew
    assert [run.outcome for run in anew] == ["failed", "passed", "failed"]


def test_a_backtest_in_another_process_reads_only_what_is_new(ws):
    work(ws, "Cut release 1.1", "r-1", *COMMANDS)
    think(ws, 600)
    assert ws.backtest().runs["passed"] == 1
    gone = (ws.root / segment_path(1)).rename(ws.root / "elsewhere")
    work(ws, "Cut release 1.2", "r-2", *COMMANDS)
    other = PastRuns(ws.engine.log.history, ws.root / ".agentx" / "runs", ws.read_body)
    assert len(other.at(ws.state)) == ws.backtest().runs["passed"] == 2
    gone.rename(ws.root / segment_path(1))


def test_what_was_purged_is_in_no_run(ws):
    secret = ws.say("Feed the yellow walrus.")
    ws.record(
        Draft(data=ToolCallExecuted(call_id="c", tool="run_tests", status="SUCCEEDED"), actor="agent:main")
    )
    think(ws, 600)
    assert [run.task for run in ws.engine.past_runs.at(ws.state)] == ["Feed the yellow walrus."]
    ws.purge(secret.seq)
    assert ws.engine.past_runs.at(ws.state) == []
    assert not any(b"walrus" in path.read_bytes() for path in (ws.root / ".agentx").rglob("*.snapshot"))
