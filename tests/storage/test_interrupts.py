"""Ctrl-C at any bytecode of the main thread: it is heard, and no lock is left held."""

import signal
import threading
import time

import pytest

from agentx.storage.files import interrupts
from agentx.storage.files.interrupts import PutOff
from agentx.storage.files.lock import FileLock
from tests.interrupting import interrupted_at


def _every_bytecode(work, look):
    """Interrupt some work at each of its bytecodes in turn, and look around while the interrupt is on its way."""
    number = heard = 0
    came = True
    while came:
        number += 1
        try:
            came = interrupted_at(number, work)
        except KeyboardInterrupt:
            heard += 1
            look(on_its_way=True)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        look(on_its_way=False)
    return number, heard


@pytest.fixture(autouse=True)
def _handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _in_a_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@pytest.mark.parametrize("brief", [True, False])
def test_a_lock_is_let_go_wherever_ctrl_c_comes(tmp_path, brief):
    lock = FileLock(tmp_path / "lock", 0.2, brief=brief)
    free = []

    def work():
        with lock.hold(), lock.hold():
            len("held")

    def take():
        with lock.hold():
            free.append(lock.depth)

    def look(*, on_its_way):
        if brief or not on_its_way:
            _in_a_thread(take)
            assert free.pop() == 1
            assert lock.depth == 0

    number, heard = _every_bytecode(work, look)
    assert heard > number / 2


@pytest.mark.parametrize("holder", ["another thread", "another object"])
def test_who_waits_for_a_lock_hears_ctrl_c(tmp_path, holder):
    lock, held, done = FileLock(tmp_path / "lock", 30, brief=True), threading.Event(), threading.Event()
    theirs = lock if holder == "another thread" else FileLock(tmp_path / "lock")

    def hold():
        with theirs.hold():
            held.set()
            done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(30)
    threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt), lock.hold():
        pass
    assert thread.is_alive()
    done.set()
    thread.join()
    with lock.hold():
        assert lock.depth == 1


def test_ctrl_c_is_heard_when_the_lock_is_let_go(tmp_path):
    lock, reached = FileLock(tmp_path / "lock", brief=True), []

    def work():
        with lock.hold():
            signal.raise_signal(signal.SIGINT)
            reached.append(lock.held)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert reached == [True]
    assert not lock.held


def test_each_ctrl_c_comes_to_the_handler_of_its_turn(tmp_path):
    heard = []

    def second(*_):
        heard.append("second")

    def first(*_):
        heard.append("first")
        signal.signal(signal.SIGINT, second)

    signal.signal(signal.SIGINT, first)
    with FileLock(tmp_path / "lock", brief=True).hold():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        assert heard == []
    assert heard == ["first", "second"]
    assert signal.getsignal(signal.SIGINT) is second


def test_who_presses_again_after_a_while_is_heard_at_once(monkeypatch):
    monkeypatch.setattr(interrupts, "PATIENCE_S", 0.01)
    reached = []

    def work():
        with PutOff():
            signal.raise_signal(signal.SIGINT)
            time.sleep(0.02)
            reached.append("first")
            signal.raise_signal(signal.SIGINT)
            reached.append("second")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert reached == ["first"]


def test_other_threads_and_handlers_that_are_none_are_left_alone():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with PutOff():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def work():
        with PutOff():
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    _in_a_thread(work)
