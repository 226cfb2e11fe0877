"""A fleet: each submission is run once, in a linear history, whichever worker dies, freezes or is cut off."""

import os
import signal
import time

import pytest

from agentx import Workspace
from agentx.fleet import place as places
from agentx.fleet.submission import submit
from tests.agentx.fleet.fleets import LEASE_S, Link, head, wait_for

slow = pytest.mark.skipif(
    not os.environ.get("FLEET_POSTGRES"), reason="waits for a lease: make fleet-test runs it"
)
"""Faults of which a like one is among those that always run."""


def test_submissions_of_several_workspaces_are_run_once_each_by_two_workers(fleet):
    ids = {name: fleet.submit(name, "Do this.", "Do that.") for name in ("one", "two")}
    for name in ("a", "b"):
        fleet.worker(name).start()
    found = wait_for(fleet.all_ended)
    assert found.statuses == {"COMPLETED": 4}
    assert found.stranded == []
    for name, submitted in ids.items():
        assert fleet.runs(name) == dict.fromkeys(submitted, (1, "COMPLETED"))


@pytest.mark.parametrize(
    "where",
    [
        pytest.param("before-clone", marks=slow),
        pytest.param("model", marks=slow),
        pytest.param("before-push", marks=slow),
        "after-push",
    ],
)
def test_a_worker_that_is_killed_anywhere_loses_its_run_to_another_and_the_run_is_done_once(fleet, where):
    first, second = fleet.worker("a"), fleet.worker("b")
    first.holds(where)
    [submitted] = fleet.submit("task", "Do this.")
    first.start()
    first.reached(where)
    first.slay()
    second.start()
    found = wait_for(fleet.all_ended)
    assert found.statuses == {"COMPLETED": 1}
    assert fleet.runs("task") == {submitted: (1, "COMPLETED")}
    assert found.runs[0].worker == name_of(second)


@slow
@pytest.mark.parametrize("where", ["model", "before-push"])
def test_a_killed_worker_that_comes_back_first_goes_on_with_its_run(fleet, where):
    worker = fleet.worker("a")
    worker.holds(where)
    [submitted] = fleet.submit("task", "Do this.")
    worker.start()
    worker.reached(where)
    worker.slay()
    worker.lets_go(where)
    worker.start("--once")
    assert worker.process.wait() == 0
    assert fleet.runs("task") == {submitted: (1, "COMPLETED")}
    assert fleet.side_refs("task") == []


@slow
def test_a_worker_that_ends_finishes_its_run_and_leaves_to_others_what_waits(fleet):
    worker = fleet.worker("a")
    worker.holds("model")
    [submitted] = fleet.submit("task", "Do this.")
    worker.start()
    worker.reached("model")
    worker.process.send_signal(signal.SIGTERM)
    time.sleep(1)
    fleet.submit("other", "Do that.")
    time.sleep(1)
    found = fleet.status()
    assert (found.running, found.queued) == (1, 1)
    worker.lets_go("model")
    assert worker.process.wait() == 0
    assert fleet.runs("task") == {submitted: (1, "COMPLETED")}
    assert fleet.status().queued == 1


@pytest.mark.parametrize("where", [pytest.param("model", marks=slow), "before-push"])
def test_a_frozen_worker_cannot_overwrite_what_another_did_and_its_events_are_set_aside_and_reported(
    fleet, where
):
    first, second = fleet.worker("a"), fleet.worker("b")
    first.holds(where)
    [submitted] = fleet.submit("task", "Do this.")
    first.start()
    first.reached(where)
    first.signal(signal.SIGSTOP)
    second.start()
    wait_for(fleet.all_ended)
    before = fleet.runs("task")
    first.lets_go(where)
    first.signal(signal.SIGCONT)
    [aside] = wait_for(lambda: [one for one in fleet.status().stranded if one.pushed])
    assert fleet.runs("task") == before == {submitted: (1, "COMPLETED")}
    assert fleet.side_refs("task") == [aside.ref]
    assert aside.workspace == "task"
    assert aside.submission == submitted
    assert aside.worker == name_of(first)


@slow
def test_a_killed_worker_whose_run_another_did_sets_its_events_aside_when_it_comes_back(fleet):
    first, second = fleet.worker("a"), fleet.worker("b")
    first.holds("before-push")
    [submitted] = fleet.submit("task", "Do this.")
    first.start()
    first.reached("before-push")
    first.slay()
    second.start()
    wait_for(fleet.all_ended)
    first.lets_go("before-push")
    first.start()
    [aside] = wait_for(lambda: [one for one in fleet.status().stranded if one.pushed])
    assert fleet.side_refs("task") == [aside.ref]
    assert fleet.runs("task") == {submitted: (1, "COMPLETED")}
    wait_for(lambda: not list(first.home.glob("records/*.json")))  # and it asks the remote no more


@slow
def test_a_frozen_worker_that_resumes_first_keeps_its_run_and_the_others_events_are_set_aside(fleet):
    first, second = fleet.worker("a"), fleet.worker("b")
    first.holds("model")
    second.holds("before-push")
    [submitted] = fleet.submit("task", "Do this.")
    first.start()
    first.reached("model")
    first.signal(signal.SIGSTOP)
    second.start()
    second.reached("before-push")
    first.lets_go("model")
    first.signal(signal.SIGCONT)
    before = head(fleet.git, fleet.root / "mine" / "task")
    wait_for(lambda: head(fleet.git, fleet.root / "remotes" / "task.git") != before)
    second.lets_go("before-push")
    found = wait_for(lambda: fleet.all_ended() if fleet.status().stranded else None)
    [aside] = wait_for(lambda: [one for one in fleet.status().stranded if one.pushed])
    assert found.statuses == {"COMPLETED": 1}
    assert fleet.runs("task") == {submitted: (1, "COMPLETED")}
    assert fleet.side_refs("task") == [aside.ref]
    assert aside.worker == name_of(second)


@slow
def test_a_push_whose_reply_is_lost_is_found_done(fleet):
    worker = fleet.worker("a")
    worker.holds("lost-push")
    [submitted] = fleet.submit("task", "Do this.")
    worker.start()
    worker.reached("lost-push")
    found = wait_for(fleet.all_ended)
    assert found.statuses == {"COMPLETED": 1}
    assert fleet.runs("task") == {submitted: (1, "COMPLETED")}
    assert fleet.side_refs("task") == []


@slow
def test_a_run_that_a_full_disk_cut_off_is_resumed_once_there_is_room(fleet):
    worker = fleet.worker("a")
    worker.holds("model")
    [submitted] = fleet.submit("task", "Do this.")
    worker.start()
    worker.reached("model")
    worker.holds("full")
    worker.lets_go("model")
    worker.reached("full")
    time.sleep(2 * LEASE_S)
    assert fleet.status().running == 1
    worker.lets_go("full")
    found = wait_for(fleet.all_ended)
    assert found.statuses == {"COMPLETED": 1}
    assert fleet.runs("task") == {submitted: (1, "COMPLETED")}
    assert "is tried again: " in worker.said.read_text()


@slow
def test_a_worker_that_is_cut_off_from_the_database_in_its_run_loses_it_to_another_and_goes_on(
    fleet, postgres
):
    link = Link(postgres.url)
    first, second = fleet.worker("a", link.url), fleet.worker("b")
    first.holds("model")
    [submitted] = fleet.submit("task", "Do this.")
    first.start()
    first.reached("model")
    link.cut()
    second.start()
    wait_for(fleet.all_ended)
    first.lets_go("model")
    wait_for(lambda: list(first.home.glob("stranded/*")))
    link.mend()
    [aside] = wait_for(lambda: [one for one in fleet.status().stranded if one.pushed])
    assert aside.worker == name_of(first)
    assert fleet.side_refs("task") == [aside.ref]
    fleet.submit("other", "Do that.")
    second.slay()
    wait_for(lambda: fleet.status().ended == 2)
    assert fleet.runs("task") == {submitted: (1, "COMPLETED")}
    link.close()


@slow
def test_a_remote_that_is_away_for_a_while_is_waited_for(fleet):
    worker = fleet.worker("a")
    worker.holds("before-push")
    [submitted] = fleet.submit("task", "Do this.")
    worker.start()
    worker.reached("before-push")
    worker.holds("cut")
    remotes = fleet.root / "remotes"
    remotes.rename(fleet.root / "away")
    worker.lets_go("before-push")
    with pytest.raises(TimeoutError):
        wait_for(fleet.all_ended, 2 * LEASE_S)
    (fleet.root / "away").rename(remotes)
    worker.lets_go("cut")
    found = wait_for(fleet.all_ended)
    assert found.statuses == {"COMPLETED": 1}
    assert fleet.runs("task") == {submitted: (1, "COMPLETED")}


def test_a_database_that_is_restarted_in_the_middle_loses_nothing(fleet, postgres):
    worker = fleet.worker("a")
    worker.holds("model")
    submitted = fleet.submit("task", "Do this.", "Do that.")
    worker.start()
    worker.reached("model")
    postgres.stop()
    worker.lets_go("model")
    time.sleep(2 * LEASE_S)
    postgres.start()
    wait_for(lambda: fleet.status().ended == 2)
    assert fleet.status().statuses == {"COMPLETED": 2}
    assert fleet.runs("task") == dict.fromkeys(submitted, (1, "COMPLETED"))


def name_of(worker):
    return (worker.home / "name").read_text()


@slow
def test_a_submission_that_was_pruned_and_is_submitted_again_is_not_run_twice(fleet):
    (submission,) = fleet.submit("w", "Do it.")
    fleet.worker("one").start("--once")
    wait_for(fleet.all_ended)
    with places.opened(fleet.place) as queue:
        wait_for(lambda: queue.prune(-1) == 1)
        assert queue.counts() == {}
        with Workspace.open(fleet.root / "mine" / "w", settings=fleet.settings) as ws:
            submit(ws, fleet.place, queue, "Do it.", submission=submission)
    fleet.worker("two").start("--once")
    wait_for(fleet.all_ended)
    assert fleet.runs("w") == {submission: (1, "COMPLETED")}
    assert [one.status for one in fleet.status().runs] == ["COMPLETED"]
