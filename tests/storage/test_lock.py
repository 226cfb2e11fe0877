"""One writer at a time, across threads and processes, in order of arrival; a dead or stopped one stops nobody."""

import contextlib
import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from agentx.storage.files import lock as locks
from agentx.storage.files.lock import FileLock, LockNotTaken, WorkspaceBusy

_HOLDER = """
import sys, time
from pathlib import Path
from agentx.storage.files.lock import FileLock
with FileLock(Path(sys.argv[1])).hold():
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lock"


def test_a_thread_may_take_it_again_inside(path):
    lock = FileLock(path)
    with lock.hold(), lock.hold():
        assert (lock.held, lock.depth) == (True, 2)
    assert (lock.held, lock.depth) == (False, 0)


def test_another_thread_waits(path):
    lock = FileLock(path)
    order = []

    def other():
        with lock.hold():
            order.append("other")

    with lock.hold():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(0.1)
        order.append("first")
    thread.join()
    assert order == ["first", "other"]


def test_a_holder_in_another_process_keeps_us_out_until_it_dies(path):
    holder = subprocess.Popen([sys.executable, "-c", _HOLDER, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    with (
        pytest.raises(WorkspaceBusy, match=r"Process \d+ \(python\S*\) has held .* try again"),
        FileLock(path, 0.1).hold(),
    ):
        pass
    holder.kill()
    holder.wait()
    holder.stdout.close()
    with FileLock(path, 5).hold():
        assert path.exists()


def test_a_thread_that_holds_it_too_long_is_told_of(path):
    lock = FileLock(path, 0.05)
    refused = []

    def other():
        try:
            with lock.hold():
                pass
        except WorkspaceBusy as error:
            refused.append(str(error))

    with lock.hold():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert "Another thread of this process has held" in refused[0]


def test_an_error_inside_frees_it(path):
    lock = FileLock(path)
    with pytest.raises(ZeroDivisionError), lock.hold():
        raise ZeroDivisionError
    with FileLock(path, 0.1).hold():
        assert not lock.held


def test_no_file_descriptor_is_left(path):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        with FileLock(path).hold():
            pass
    assert len(os.listdir("/proc/self/fd")) == before


# --- the queue -----------------------------------------------------------------------------------------------------------

_WAITER = """
import sys
from pathlib import Path
from agentx.storage.files.lock import FileLock
print("up", flush=True)
sys.stdin.readline()
with FileLock(Path(sys.argv[1])).hold():
    with open(sys.argv[2], "a") as file:
        file.write(sys.argv[3])
"""


class _Waiters:
    """Threads and processes that wait for a lock, one behind the other, and write their names when they have it."""

    def __init__(self, path, order):
        self._path, self._order = path, order
        self._fd = os.open(path, os.O_RDONLY)
        self.started = []

    def process(self, name):
        command = [sys.executable, "-c", _WAITER, str(self._path), str(self._order), name]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.started.append(child)
        assert child.stdout.readline() == "up\n"
        self._queued(lambda: child.stdin.write("\n") and child.stdin.flush())
        return child

    def thread(self, name, lock=None):
        def work():
            with (lock or FileLock(self._path)).hold(), self._order.open("a") as file:
                file.write(name)

        thread = threading.Thread(target=work)
        self.started.append(thread)
        if lock is None:
            self._queued(thread.start)
            return
        before = len(lock._gate._queue)
        thread.start()
        while len(lock._gate._queue) == before:
            time.sleep(0.001)

    def _queued(self, act):
        """Do what makes somebody wait; return when the place in the queue is taken."""
        last = -1
        while (taken := locks._first(self._fd, last + 1, locks._HOLDERS)) >= 0:
            last = taken
        act()
        while locks._first(self._fd, last + 1, locks._HOLDERS) < 0:
            time.sleep(0.001)

    def end(self):
        for one in self.started:
            if isinstance(one, threading.Thread):
                one.join()
            else:
                one.communicate()
        os.close(self._fd)
        return self._order.read_text()


@pytest.fixture
def waiters(path, tmp_path):
    path.touch()
    (tmp_path / "order").touch()
    return _Waiters(path, tmp_path / "order")


def test_threads_and_processes_are_served_in_order_of_arrival(path, waiters):
    with FileLock(path).hold():
        for number, name in enumerate("abcdef"):
            (waiters.thread if number % 2 else waiters.process)(name)
    assert waiters.end() == "abcdef"
    assert path.stat().st_size == 0


@pytest.mark.parametrize(("turn_s", "order"), [(3600, "beacdf"), (0, "acdfbe")])
def test_threads_that_share_it_pass_it_on_until_the_turn_is_over(path, waiters, monkeypatch, turn_s, order):
    monkeypatch.setattr(locks, "_TURN_S", turn_s)
    lock = FileLock(path)
    with lock.hold():
        for name in "abcdef":
            if name in "be":
                waiters.thread(name, lock)
            else:
                waiters.process(name)
    assert waiters.end() == order


def test_who_gets_it_from_another_thread_knows_so(path):
    lock, passed = FileLock(path), []

    def work():
        with lock.hold():
            passed.append(lock.passed_on)

    with lock.hold():
        assert not lock.passed_on
        thread = threading.Thread(target=work)
        thread.start()
        while not lock._gate.waiting:
            time.sleep(0.001)
    thread.join()
    with lock.hold():
        passed.append(lock.passed_on)
    assert passed == [True, False]


def test_a_thread_that_gives_up_while_it_waits_hinders_nobody(path, monkeypatch):
    lock, order = FileLock(path), []

    class Ended(Exception):
        pass

    def work(name):
        with contextlib.suppress(Ended), lock.hold():
            order.append(name)

    waiting = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    patience = lock._patience

    def ended(interrupts):
        check = patience(interrupts)

        def give_up():
            if threading.current_thread() is waiting[1]:
                raise Ended
            check()

        return give_up

    monkeypatch.setattr(lock, "_patience", ended)
    with lock.hold():
        for number, thread in enumerate(waiting, 1):
            thread.start()
            while len(lock._gate._queue) < number - (not waiting[1].is_alive() and number > 2):
                time.sleep(0.001)
        waiting[1].join()
    for thread in waiting:
        thread.join()
    assert order == ["a", "c"]
    assert not lock.held
    with lock.hold():
        pass


def test_a_waiter_that_is_killed_leaves_no_gap(path, waiters):
    with FileLock(path).hold():
        first = waiters.process("a")
        waiters.thread("b")
        third = waiters.process("c")
        waiters.thread("d")
        first.kill()
        third.kill()
    assert waiters.end() == "bd"


def test_a_waiter_that_is_stopped_is_skipped_and_served_when_it_goes_on(path, waiters, monkeypatch):
    monkeypatch.setattr(locks, "_SKIP_S", 0.1)
    with FileLock(path).hold():
        first = waiters.process("a")
        waiters.thread("b")
        waiters.thread("c")
        first.send_signal(signal.SIGSTOP)
    for thread in waiters.started[1:]:
        thread.join()
    first.send_signal(signal.SIGCONT)
    assert sorted(waiters.end()[:2]) == ["b", "c"]
    assert waiters._order.read_text()[2:] == "a"


def test_who_releases_it_may_take_it_again_for_the_rest_of_its_turn_only(path, waiters, monkeypatch):
    monkeypatch.setattr(locks, "_TURN_S", 3600)
    lock = FileLock(path)
    with lock.hold():
        waiter = waiters.process("b")
        waiter.send_signal(signal.SIGSTOP)
    with lock.hold():
        assert waiters._order.read_text() == ""
        waiter.send_signal(signal.SIGCONT)
        lock._turn_ends = 0.0
    with lock.hold():
        assert waiters._order.read_text() == "b"
    waiters.end()


def test_the_owner_of_a_turn_who_does_not_come_back_keeps_nobody_waiting(path, waiters, monkeypatch):
    monkeypatch.setattr(locks, "_TURN_S", 3600)
    with FileLock(path).hold():
        waiters.thread("b")
    assert waiters.end() == "b"


class _Clock:
    """Time that passes by sleeping alone; while somebody sleeps, something happens."""

    def __init__(self, happens):
        self.now = 1000.0
        self._happens = happens

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        self._happens(self.now - 1000.0)


@pytest.mark.parametrize("moves", [True, False])
def test_a_waiter_is_refused_only_if_the_queue_does_not_move(path, monkeypatch, moves):
    path.touch()
    holder = os.open(path, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    locks._set(holder, fcntl.F_RDLCK, locks._HOLDERS)
    turns = []

    def happens(passed):
        if moves and passed // 20 > len(turns):  # every 20 seconds another one has it
            locks._set(holder, fcntl.F_UNLCK, locks._HOLDERS + len(turns))
            turns.append(passed)
            locks._set(holder, fcntl.F_RDLCK, locks._HOLDERS + len(turns))
        if len(turns) == 10:
            locks._release(holder)
            turns.append(passed)

    monkeypatch.setattr(locks, "time", _Clock(happens))
    lock = FileLock(path, 30)
    if moves:
        with lock.hold():
            assert turns[-1] > 200
    else:
        with pytest.raises(WorkspaceBusy, match=r"has held .* for 30 s"), lock.hold():
            pass
        assert locks.time.now < 1031
        locks._release(holder)


def test_a_waiter_whom_others_pass_queues_anew_behind_them(path, monkeypatch):
    path.touch()
    holder, other = os.open(path, os.O_RDONLY), os.open(path, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    turns, places = [0], []
    locks._set(holder, fcntl.F_RDLCK, locks._HOLDERS)

    def happens(passed):
        locks._set(other, fcntl.F_RDLCK, 1)
        places.append(locks._first(other, 0, locks._HOLDERS))
        if places[-1] > 1 or passed > 20:
            locks._release(holder)
            locks._set(other, fcntl.F_UNLCK, 1)
        elif passed > 0.3 * len(turns):
            locks._set(holder, fcntl.F_UNLCK, locks._HOLDERS + turns[-1])
            turns.append(turns[-1] + 1)
            locks._set(holder, fcntl.F_RDLCK, locks._HOLDERS + turns[-1])

    monkeypatch.setattr(locks, "time", _Clock(happens))
    with FileLock(path).hold():
        assert set(places) == {0, 2}
    os.close(other)


def test_a_timeout_of_zero_does_not_wait_for_those_who_wait(path, waiters):
    with FileLock(path).hold():
        waiter = waiters.process("b")
        waiter.send_signal(signal.SIGSTOP)
        with pytest.raises(WorkspaceBusy), FileLock(path, 0).hold():
            pass
    with FileLock(path, 0).hold():
        waiter.send_signal(signal.SIGCONT)
    assert waiters.end() == "b"


def test_ctrl_c_of_a_waiter_lets_those_behind_it_pass(path, waiters):
    with FileLock(path).hold():
        first = waiters.process("a")
        waiters.thread("b")
        first.send_signal(signal.SIGINT)
        first.stderr = None
        first.wait()
    assert waiters.end() == "b"


def test_a_process_forked_meanwhile_does_not_keep_it(path):
    lock = FileLock(path)
    with lock.hold():
        child = subprocess.Popen(
            [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[lock._fd]
        )
    with FileLock(path, 0).hold():
        assert child.poll() is None
    child.communicate(b"\n")
    assert child.returncode == 0


def test_it_is_as_safe_where_there_are_no_byte_locks(path, monkeypatch):
    monkeypatch.setattr(locks, "_byte_lock", lambda *_: (fcntl.F_UNLCK, 0, -1, 0, 0))
    lock, inside, most = FileLock(path), [], []

    def work():
        for _ in range(20):
            with lock.hold():
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 80
    assert set(most) == {1}


def test_a_file_system_without_locks_is_told_of(path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(LockNotTaken, match="could not be locked: No locks available"), FileLock(path).hold():
        pass


def test_a_file_system_whose_locks_do_nothing_gives_no_lock(path, monkeypatch):
    lock = FileLock(path)
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    for _ in range(2):
        with (
            pytest.raises(LockNotTaken, match="two writers could overwrite each other"),
            lock.hold(),
        ):
            pass
    monkeypatch.undo()
    with lock.hold():
        assert lock.held


def test_where_there_is_no_file_threads_still_exclude_each_other(path):
    lock = FileLock(path / "of/a/directory/that/is/missing", needed=False)
    depths = []

    def work():
        for _ in range(50):
            with lock.hold():
                time.sleep(0)  # another thread's turn
                with lock.hold():
                    depths.append(lock.depth)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert depths == [2] * 200
    assert not lock.held
