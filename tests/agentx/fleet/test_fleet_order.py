"""The order in which a fleet's queue starts submissions: by turn, one at a time for each workspace."""

import os
import threading
import time
import uuid

import pytest
import sqlalchemy

from agentx.scheduling import queue_watch, shared_queue
from agentx.scheduling.shared_queue import QueueFailed, SetAside, SharedQueue, Slots
from tests.agentx.fleet.fleets import wait_for


@pytest.fixture
def queue(tmp_path, request):
    if os.environ.get("FLEET_POSTGRES"):
        database = request.getfixturevalue("postgres").url
    else:
        database = f"sqlite:///{tmp_path}/queue.sqlite"
    with SharedQueue.opened(database, f"agentx_t{uuid.uuid4().hex[:12]}") as made:
        made.create()
        yield made


class Work:
    """Work that waits until the test lets it end, and notes the order of the starts."""

    def __init__(self):
        self.started, self.gates, self.open = [], {}, False

    def __call__(self, payload):
        gate = self.gates.setdefault(payload, threading.Event())
        self.started.append(payload)
        if not self.open:
            assert gate.wait(60)
        return '"done"'

    def ends(self, payload):
        self.gates.setdefault(payload, threading.Event()).set()

    def let_go(self):
        self.open = True
        for gate in list(self.gates.values()):
            gate.set()


@pytest.fixture
def told(queue, request, monkeypatch):
    """A queue on Postgres whose workers look into it only when they are told to."""
    request.getfixturevalue("postgres")
    monkeypatch.setattr(queue_watch, "IDLE_S", 3600.0)
    return queue


def wait_until_quiet(queue):
    """Wait until a worker hears the database's messages, and would not look into the queue without one."""
    watch = queue._watch
    wait_for(lambda: watch._hears and watch._next_look(time.monotonic()) > time.monotonic() + 60)


def _no_database():
    raise ConnectionError


def add(queue, workspace, count=1, priority=100):
    names = [f"{workspace}-{n}" for n in range(count)]
    for name in names:
        queue.enqueue(f"{name}-{uuid.uuid4().hex}", workspace, name, priority)
    return names


def ended(queue, count):
    return wait_for(lambda: queue.counts().get("SUCCESS", 0) >= count)


def test_a_workspace_with_many_runs_keeps_anothers_single_run_waiting_for_one_run(queue):
    work = Work()
    add(queue, "many", 8)
    with queue.working("w", work, Slots(1)):
        wait_for(lambda: work.started)
        add(queue, "single")
        work.let_go()
        ended(queue, 9)
    # The second of the many had its turn before the single one came in.
    assert work.started.index("single-0") <= 2
    assert [one for one in work.started if one != "single-0"] == [f"many-{n}" for n in range(8)]


def test_a_run_of_higher_priority_starts_before_a_backlog_in_other_workspaces_and_in_its_own(queue):
    work = Work()
    for n in range(3):
        add(queue, f"low{n}", 2, priority=200)
    with queue.working("w", work, Slots(1)):
        wait_for(lambda: work.started)
        add(queue, "high", 2, priority=10)
        mine = work.started[0].partition("-")[0]
        queue.enqueue(f"urgent-{uuid.uuid4().hex}", mine, "urgent", 10)
        work.let_go()
        ended(queue, 9)
    assert set(work.started[1:4]) == {"high-0", "high-1", "urgent"}


def test_a_run_of_low_priority_that_has_waited_long_enough_starts_before_a_newer_one_of_higher_priority(
    queue,
):
    work = Work()
    add(queue, "old", priority=101)
    shift(queue, "old", 11)
    add(queue, "new", priority=100)
    work.let_go()
    with queue.working("w", work, Slots(1)):
        ended(queue, 2)
    assert work.started == ["old-0", "new-0"]


def test_two_workers_have_as_many_runs_as_slots_and_one_for_each_workspace(queue):
    work = Work()
    add(queue, "a", 3)
    for name in "bcdef":
        add(queue, name)
    with queue.working("w", work, Slots(4)):
        wait_for(lambda: len(work.started) == 4)
        assert len({one.partition("-")[0] for one in work.started}) == 4
        assert sum(queue.counts()[one] for one in ("PENDING",)) == 4
        work.let_go()
        ended(queue, 8)
    assert sorted(work.started) == sorted(["a-0", "a-1", "a-2", *(f"{name}-0" for name in "bcdef")])


def test_a_submission_whose_submitter_died_before_its_turn_was_given_gets_it_later(queue):
    add(queue, "lost")
    shift(queue, "lost", -2_000_000_000)
    assert queue._in_turn(10) == []
    queue.take_over(60)
    assert queue._in_turn(10) == ["lost"]


def test_a_worker_that_takes_no_more_leaves_to_others_what_waits(queue):
    work = Work()
    add(queue, "a")
    with queue.working("w", work, Slots(2)):
        wait_for(lambda: work.started)
        queue.take_no_more()
        add(queue, "b")
        work.let_go()
        ended(queue, 1)
    assert queue.counts() == {"SUCCESS": 1, "ENQUEUED": 1}


def test_postgres_tells_an_idle_worker_what_came_in_and_what_can_start_after_another(told):
    work = Work()
    with told.working("w", work, Slots(1)):
        wait_until_quiet(told)
        add(told, "a", 2)
        add(told, "b")
        work.let_go()
        ended(told, 3)


def test_a_worker_whose_connection_is_cut_looks_on_its_own_and_then_listens_again(told, monkeypatch):
    monkeypatch.setattr(queue_watch, "_AGAIN_S", 3.0)
    work = Work()
    work.let_go()
    with told.working("w", work, Slots(1)):
        wait_until_quiet(told)
        listening = f"query = 'LISTEN \"{told._schema}\"'"
        assert told._rows(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {listening}")
        wait_for(lambda: not told._watch._hears)
        add(told, "a")
        ended(told, 1)
        wait_until_quiet(told)
        add(told, "b")
        ended(told, 2)


def test_what_ended_long_ago_is_deleted_and_what_waits_is_kept(queue):
    work = Work()
    work.let_go()
    add(queue, "a", 3)
    with queue.working("w", work, Slots(4)):
        ended(queue, 3)
    add(queue, "b", 2)
    assert queue.prune(3600) == 0
    assert queue.prune(-1) == 3
    assert queue.counts() == {"ENQUEUED": 2}


def test_a_version_of_dbos_without_the_method_that_is_replaced_is_refused(queue, monkeypatch):
    from dbos._sys_db import SystemDatabase

    monkeypatch.delattr(SystemDatabase, "start_queued_partitioned_workflows")
    with pytest.raises(QueueFailed, match="another version of DBOS"), queue.working("w", str, Slots(1)):
        pass


def test_what_was_claimed_and_could_not_be_started_is_started_later(queue, monkeypatch):
    from dbos import _queue as dbos_queue

    start, failed = dbos_queue.execute_dequeued_workflow, []

    def fails_once(*arguments):
        if not failed:
            failed.append(1)
            raise ConnectionError
        return start(*arguments)

    monkeypatch.setattr(dbos_queue, "execute_dequeued_workflow", fails_once)
    monkeypatch.setattr(shared_queue, "UNSTARTED_S", 0.0)
    work = Work()
    work.let_go()
    add(queue, "a")
    queue.beat("w", 1, 0)
    with queue.working("w", work, Slots(1)):
        wait_for(lambda: failed and queue._claimed)
        with monkeypatch.context() as away:
            away.setattr(queue._engine, "begin", _no_database)
            with pytest.raises(QueueFailed):
                queue._return_unstarted()
        queue.take_over(60)
        ended(queue, 1)
    assert work.started == ["a-0"]


def test_a_role_of_one_tenant_can_use_no_other_tenants_schema(request):
    database = request.getfixturevalue("postgres").url
    a, b = (f"t{uuid.uuid4().hex[:12]}" for _ in range(2))
    owner = sqlalchemy.create_engine(database.replace("://", "+psycopg://"))
    with owner.begin() as run:
        for one in (a, b):
            run.exec_driver_sql(f"CREATE ROLE {one} LOGIN; CREATE SCHEMA agentx_{one} AUTHORIZATION {one}")
    owner.dispose()
    urls = {one: database.replace("fleet@", f"{one}@") for one in (a, b)}
    with SharedQueue.opened(urls[a], f"agentx_{a}") as mine:
        mine.create()
        mine.enqueue("submission-of-a", "w", "{}", 100)
        assert mine.counts() == {"ENQUEUED": 1}
    with SharedQueue.opened(urls[b], f"agentx_{a}") as theirs:
        with pytest.raises(QueueFailed, match=f"belongs to the role {a}, and this is {b}"):
            theirs.create()
        with pytest.raises(QueueFailed, match="may not use the tenant's schema"):
            theirs.counts()
        with pytest.raises(QueueFailed, match="may not use the tenant's schema"):
            theirs.enqueue("submission-of-b", "w", "{}", 100)
    with (
        SharedQueue.opened(urls[b], "agentx_other") as other,
        pytest.raises(QueueFailed, match=f"CREATE SCHEMA agentx_other AUTHORIZATION {b}"),
    ):
        other.create()


def shift(queue, workspace, seconds):
    """Move the turns of a workspace, as if so many seconds had passed."""
    queue._execute(
        f"UPDATE {queue._prefix}workflow_status SET priority = priority - :by WHERE queue_partition_key = :of",
        by=seconds,
        of=workspace,
    )


def test_what_was_set_aside_is_listed_until_somebody_looked_and_only_if_the_remote_has_it(queue):
    one = {"workspace": "w", "submission": "s", "commit": "c", "worker": "a"}
    for ref, pushed in (("refs/agentx/stranded/x", True), ("refs/agentx/stranded/y", False)):
        queue.report(SetAside(ref=ref, pushed=pushed, **one))
    assert not queue.forget("refs/agentx/stranded/y")
    assert queue.forget("refs/agentx/stranded/x")
    assert not queue.forget("refs/agentx/stranded/x")
    assert [aside.ref for aside in queue.asides()] == ["refs/agentx/stranded/y"]
