"""Schedules over real workspaces: once for each due time, whoever dies; what is passed over, resumed, and failed."""

import multiprocessing
import os
from datetime import datetime, timedelta

import pytest

from agentx import Workspace
from agentx.agents.loop import run_task
from agentx.directing.executors import Function
from agentx.scheduling import schedules
from agentx.scheduling.schedules import Means, NoSuchSchedule, begins, carry_out_due
from agentx.storage.errors import UsageError
from agentx.storage.events.schedule_events import DuePassed, ScheduleSet
from agentx.storage.events.types import RunStarted, UserMessageSent
from agentx.storage.files.lock import FileLock, WorkspaceBusy
from agentx.synthesis.model.port import ModelError
from agentx.synthesis.scheduling.schedule_times import ScheduleInvalid
from tests.simulate_year import DIRECTED, MEANS, settings, simulate

HOURLY = ScheduleSet(id="hourly", cron="0 * * * *", task="Look for news.")


@pytest.fixture
def lexical(tmp_path):
    """The same environment as that of the processes which come and die: they trust what was made in it."""
    return settings(tmp_path / "task")


def later(ws, hours, minutes=0):
    """A due time, so many hours behind the schedule's beginning, and ``minutes`` behind it."""
    [known] = ws.state.schedules.values()
    since = datetime.fromisoformat(known.since)
    return since.replace(minute=0, second=0, microsecond=0) + timedelta(hours=hours, minutes=minutes)


def events(ws, payload):
    return [event for event in ws.events() if isinstance(event.data, payload)]


class Down:
    name = "down/model"

    def stream(self, messages, tools=(), *, timeout_s=120.0):
        raise ModelError("down/model cannot be reached; try later", retryable=False)
        yield


def directed(**more):
    return ScheduleSet(id="hourly", cron="0 * * * *", task="Mail me the news.", directed=True, **more)


def test_a_due_time_is_run_once_and_the_run_says_what_it_was_due_by(ws):
    schedules.add(ws, HOURLY)
    assert carry_out_due(ws, later(ws, 1, -1), means=MEANS) == []
    [carried] = carry_out_due(ws, later(ws, 1), means=MEANS)
    assert (carried.schedule, carried.run, carried.status) == ("hourly", "r-1", "COMPLETED")
    for now in (later(ws, 1), later(ws, 1, 30), later(ws, -5)):  # the clock may be set back, too
        assert carry_out_due(ws, now, means=MEANS) == []
    [started] = events(ws, RunStarted)
    assert (started.data.schedule, started.data.due, started.key) == (
        "hourly",
        carried.due,
        f"due:hourly:{carried.due}",
    )
    assert events(ws, UserMessageSent)[0].data.body.text == "Look for news."


def test_what_nobody_was_there_for_is_passed_over_on_record_and_told(ws):
    schedules.add(ws, HOURLY)
    [carried] = carry_out_due(ws, later(ws, 5, 20), means=MEANS)
    [passed] = events(ws, DuePassed)
    assert passed.data.times == 4
    assert passed.data.due < carried.due
    [stands] = schedules.standing(ws, later(ws, 5, 20))
    assert (stands.passed, stands.last.status, "nobody was there" in stands.passed_why) == (
        4,
        "COMPLETED",
        True,
    )
    assert stands.next == f"{later(ws, 6):%Y-%m-%dT%H:%M:%S}.000000Z"


def test_each_missed_time_is_run_where_the_policy_says_all_and_no_more_than_is_asked_for(ws):
    schedules.add(ws, directed(catch_up="all"))
    assert len(carry_out_due(ws, later(ws, 3), means=DIRECTED, most=2)) == 2
    assert [one.due for one in carry_out_due(ws, later(ws, 3), means=DIRECTED)] == [ws.state.last_run.due]
    assert (len(events(ws, RunStarted)), events(ws, DuePassed)) == (3, [])


def test_what_a_directed_schedule_is_to_do_reaches_the_prompt_and_is_said_once(ws):
    schedules.add(ws, directed())
    schedules.add(ws, directed(jitter_s=1))
    prompts = []
    executor = Function("f", lambda assignment: prompts.append(assignment.prompt) or "ok")
    carry_out_due(ws, later(ws, 1, 1), means=Means(executor=executor))
    assert "Mail me the news." in prompts[0]
    assert len(events(ws, UserMessageSent)) == 1
    schedules.add(ws, ScheduleSet(id="hourly", cron="0 * * * *", task="Reddit, too.", directed=True))
    carry_out_due(ws, later(ws, 2, 1), means=Means(executor=executor))
    assert "Reddit, too." in prompts[1]


def die_in_it(root, now):
    """Carry out what is due, and be killed in the middle of the first run."""
    with Workspace.open(root, settings=settings(root)) as ws:
        carry_out_due(ws, now, means=Means(executor=Function("own", lambda assignment: os._exit(9))))


def in_a_process(work, *arguments, times=1):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.simulate_year"])
    processes = [context.Process(target=work, args=arguments) for _ in range(times)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return [process.exitcode for process in processes]


@pytest.mark.parametrize("resume", [True, False])
def test_a_run_that_was_killed_is_interrupted_on_record_and_gone_on_with_by_policy(ws, resume):
    schedules.add(ws, directed(resume=resume))
    assert in_a_process(die_in_it, ws.root, later(ws, 1)) == [9]
    assert ws.state.last_run.status == "RUNNING"
    carried = carry_out_due(ws, later(ws, 1, 10), means=DIRECTED)
    assert [run.status for run in ws.state.runs] == ["INTERRUPTED", "COMPLETED"][: 1 + resume]
    assert [(one.resumed, one.status) for one in carried] == [(True, "COMPLETED")] * resume
    firsts = [event for event in events(ws, RunStarted) if not event.data.resumes]
    assert len(firsts) == 1


def test_what_kills_its_process_each_time_is_not_tried_for_ever(ws):
    schedules.add(ws, directed())
    assert [in_a_process(die_in_it, ws.root, later(ws, 1))[0] for _ in range(5)] == [9, 9, 9, 9, 0]
    assert carry_out_due(ws, later(ws, 1, 5), means=DIRECTED) == []
    assert len(carry_out_due(ws, later(ws, 2), means=DIRECTED)) == 1


def carry(root, now):
    with Workspace.open(root, settings=settings(root)) as ws:
        try:
            carry_out_due(ws, now, means=DIRECTED)
        except WorkspaceBusy:
            return


def test_of_processes_that_come_at_the_same_moment_one_runs_it(ws):
    schedules.add(ws, directed())
    ws.flush()
    assert in_a_process(carry, ws.root, later(ws, 1), times=4) == [0] * 4
    assert [run.status for run in ws.state.runs] == ["COMPLETED"]


def test_a_run_that_cannot_even_start_is_on_record_as_failed_and_its_time_is_settled(ws):
    schedules.add(ws, HOURLY)
    [carried] = carry_out_due(ws, later(ws, 1))
    assert carried.status == "FAILED"
    assert "no model is set" in carried.reason
    assert carry_out_due(ws, later(ws, 1, 5)) == []


def test_a_heartbeat_goes_on_with_what_was_cut_off_and_asks_nobody_where_nothing_was(ws):
    schedules.add(ws, ScheduleSet(id="pulse", cron="0 * * * *", sort="heartbeat"))
    before = ws.state.seq
    for hour in range(1, 50):
        assert carry_out_due(ws, later(ws, hour)) == []  # no model is there to be asked
    assert ws.state.seq == before
    assert begins(ws.state, later(ws, 50))[0] > later(ws, 50).isoformat()
    assert run_task(ws, "Look.", Down()).status == "FAILED"
    assert carry_out_due(ws, later(ws, 2, 30), means=MEANS) == []  # between two pulses
    [carried] = carry_out_due(ws, later(ws, 2), means=MEANS)
    assert (carried.run, carried.status, carried.resumed) == ("r-1", "COMPLETED", True)
    assert carry_out_due(ws, later(ws, 2), means=MEANS) == []


def test_while_another_run_goes_on_nothing_is_started(ws):
    schedules.add(ws, HOURLY)
    with FileLock(ws.root / ".git" / "agentx-run.lock").hold(), pytest.raises(WorkspaceBusy):
        carry_out_due(ws, later(ws, 1), means=MEANS)
    assert ws.state.runs == []


def test_a_schedule_that_is_set_anew_or_taken_away_is_due_no_more_as_it_was(ws):
    schedules.add(ws, HOURLY)
    schedules.add(ws, ScheduleSet(id="hourly", cron="30 * * * *", task="Look."))
    [carried] = carry_out_due(ws, later(ws, 1, 30), means=MEANS)
    assert carried.due.endswith(":30:00.000000Z")
    end = later(ws, 9)
    schedules.remove(ws, "hourly")
    assert carry_out_due(ws, end, means=MEANS) == []
    with pytest.raises(NoSuchSchedule, match="there are none"):
        schedules.remove(ws, "hourly")


def test_what_cannot_be_a_schedule_is_refused_and_nothing_is_recorded(ws):
    before = ws.state.seq
    for rule, error in (
        (ScheduleSet(id="a", cron="0 0 31 2 *", task="x"), ScheduleInvalid),
        (ScheduleSet(id="a b", cron="0 0 * * *", task="x"), UsageError),
        (ScheduleSet(id="a", cron="0 0 * * *", task=" "), UsageError),
    ):
        with pytest.raises(error):
            schedules.add(ws, rule)
    assert ws.state.seq == before


def test_some_days_with_crashes_at_random_leave_no_due_time_missed_or_doubled(tmp_path):
    lived = simulate(tmp_path, agents=3, days=3, crashes=4)
    assert (lived.missed, lived.doubled, lived.replays_that_differ) == (0, 0, 0)
    assert lived.crashes
    assert lived.started > 5
