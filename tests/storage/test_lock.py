"""One writer at a time, across threads and processes; a dead one stops nobody."""

import os
import subprocess
import sys
import threading

import pytest

from agentx.storage.lock import FileLock, WorkspaceBusy

_HOLDER = """
import sys, time
from pathlib import Path
from agentx.storage.lock import FileLock
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
        pytest.raises(WorkspaceBusy, match=r"Another process has held .* try again"),
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
    assert "Another thread has held" in refused[0]


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
