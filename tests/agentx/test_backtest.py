"""Past runs of a workspace replayed: what is proposed is recorded once, and settled like any proposal."""

import pytest

from agentx.moments import NoSuchMoment
from agentx.storage.events import Draft, RunEnded, RunStarted, ToolCallExecuted

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
