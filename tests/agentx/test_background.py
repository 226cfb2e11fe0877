"""Background work steps back from writes, and one process at a time does it."""

import subprocess
import sys
import threading
import time

import pytest

from agentx.search import background_worker
from agentx.search.background_worker import Background, Ownership

OWN = """
import pathlib, sys
from agentx.search.background_worker import Ownership
mine = Ownership(pathlib.Path(sys.argv[1]))
for line in sys.stdin:
    print(mine.take(), flush=True)
"""


class Writes:
    writing = False
    last_write = -1e9


@pytest.fixture
def writes():
    return Writes()


@pytest.fixture
def worker(tmp_path, writes):
    made = []

    def make(turn):
        made.append(Background("test", turn, writes, Ownership(tmp_path / "owner")))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def test_a_turn_is_not_begun_while_a_write_is_under_way_and_is_once_it_is_done(worker, writes, monkeypatch):
    monkeypatch.setattr(background_worker, "PATIENCE_S", 60.0)
    turns = threading.Event()
    writes.writing = True
    worker(lambda: turns.set() or False).start()
    assert not turns.wait(0.2)
    writes.writing = False
    assert turns.wait(30)


def test_after_a_write_it_is_quiet_for_a_moment_before_a_turn_is_begun(worker, writes, monkeypatch):
    monkeypatch.setattr(background_worker, "PATIENCE_S", 60.0)
    monkeypatch.setattr(background_worker, "QUIET_S", 0.3)
    begun = []
    done = threading.Event()
    writes.last_write = time.monotonic()
    worker(lambda: begun.append(time.monotonic()) or done.set() or False).start()
    assert done.wait(30)
    assert begun[0] - writes.last_write >= 0.3


def test_where_writing_never_ends_a_turn_is_done_all_the_same(worker, writes, monkeypatch):
    monkeypatch.setattr(background_worker, "PATIENCE_S", 0.05)
    writes.writing = True
    turns = threading.Event()
    worker(lambda: turns.set() or False).start()
    assert turns.wait(30)


def test_between_two_pieces_a_write_that_came_is_let_pass_and_no_other_thread_is_held(
    worker, writes, monkeypatch
):
    monkeypatch.setattr(background_worker, "STEP_S", 60.0)
    between, after = threading.Event(), threading.Event()

    def turn():
        writes.writing = True
        between.set()
        one.step()
        after.set()
        return False

    one = worker(turn)
    one.start()
    assert between.wait(30)
    assert not after.wait(0.2)
    one.step()
    one.give_way()
    writes.writing = False
    assert after.wait(30)


def test_a_turn_that_fails_is_told_and_the_work_goes_on(worker, monkeypatch, caplog):
    monkeypatch.setattr(background_worker, "TROUBLE_S", 0.01)
    twice = threading.Event()
    turns = []

    def turn():
        turns.append(1)
        if len(turns) > 1:
            twice.set()
        raise RuntimeError("the disk is gone")

    worker(turn).start()
    assert twice.wait(30)
    assert "will be retried" in caplog.text


def test_one_of_three_processes_owns_the_work_and_a_killed_one_is_followed(tmp_path):
    path = tmp_path / "owner"
    others = [
        subprocess.Popen(
            [sys.executable, "-c", OWN, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]

    def owns(process):
        process.stdin.write("\n")
        process.stdin.flush()
        return process.stdout.readline().strip() == "True"

    try:
        assert [owns(one) for one in others] == [True, False, False]
        others[0].kill()
        others[0].wait()
        assert [owns(one) for one in others[1:]] == [True, False]
        path.unlink()  # the cache was deleted
        assert owns(others[2])
        assert not owns(others[1])
    finally:
        for one in others:
            one.kill()
            one.communicate()
