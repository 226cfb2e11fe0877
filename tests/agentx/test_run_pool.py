"""Resident processes: used again, replaced, interrupted, killed, and left by the process that called."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from agentx.scheduling import run_pool
from agentx.scheduling.run_pool import RunPool, ask
from agentx.settings import read_settings

WAIT_S = 60.0


def pid():
    yield os.getpid()


def grow(size):
    kept = bytearray(size)
    kept[::4096] = b"x" * len(kept[::4096])
    yield os.getpid()


def asks(questions):
    for one in questions:
        yield ask(one)


def asks_and_goes_on():
    try:
        yield ask("wait")
    except KeyboardInterrupt:
        yield "interrupted"
    yield ask("another")


def dies_after(said):
    yield said
    os.kill(os.getpid(), signal.SIGKILL)
    yield "never"


def waits(mark):
    try:
        Path(mark).write_text(str(os.getpid()))
        time.sleep(WAIT_S)
        yield "waited"
    except KeyboardInterrupt:
        yield "interrupted"


def there(path):
    until = time.monotonic() + WAIT_S
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < until
        time.sleep(0.02)
    return int(path.read_text())


def gone(number):
    until = time.monotonic() + WAIT_S
    while Path(f"/proc/{number}/stat").exists() and " Z " not in Path(f"/proc/{number}/stat").read_text():
        assert time.monotonic() < until
        time.sleep(0.02)
    return True


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pool")
    return read_settings({**os.environ, "AGENTX_CACHE_DIR": str(folder), "AGENTX_STATE_DIR": str(folder)})


@pytest.fixture
def pool(settings):
    made = RunPool(settings, ["tests.agentx.test_run_pool"])
    yield made
    made.close()


def test_a_process_is_used_again_and_ends_when_the_pool_is_closed(pool):
    first = list(pool.call(pid))
    assert first != [os.getpid()]
    assert list(pool.call(pid)) == first
    pool.close()
    assert gone(first[0])


def test_calls_at_the_same_time_have_processes_of_their_own(pool, tmp_path):
    found = []
    threads = [
        threading.Thread(target=lambda name=name: found.extend(pool.call(waits, str(tmp_path / name))))
        for name in ("a", "b")
    ]
    for one in threads:
        one.start()
    a, b = there(tmp_path / "a"), there(tmp_path / "b")
    assert a != b
    assert {one.pid for one in pool.busy()} == {a, b}
    for number in (a, b):
        os.kill(number, signal.SIGTERM)
    for one in threads:
        one.join()
    assert found == ["interrupted"] * 2
    assert not pool.busy()


def test_after_a_question_that_was_interrupted_no_call_gets_its_answer(pool):
    def answer(question):
        if question == "wait":
            [process] = pool.busy()
            os.kill(process.pid, signal.SIGTERM)
            if late:
                gone(process.pid)
        return f"for {question}"

    for late in (False, True):
        first = list(pool.call(pid))
        assert list(pool.call(asks_and_goes_on, answer=answer)) == ["interrupted", None]
        assert gone(first[0])
        assert list(pool.call(asks, ["x"], answer=answer)) == ["for x"]


def test_an_idle_process_that_does_not_end_is_killed(settings, monkeypatch):
    monkeypatch.setattr(run_pool, "END_S", 0.5)
    pool = RunPool(settings)
    [number] = pool.call(pid)
    os.kill(number, signal.SIGSTOP)
    pool._idle_s = 0.0
    pool.tidy()
    assert gone(number)
    pool.close()


def test_a_process_that_has_become_large_or_old_takes_no_further_call(settings):
    pool = RunPool(settings, most_bytes=2 * 1024**3, most_runs=2)
    assert len({*pool.call(pid), *pool.call(pid), *pool.call(pid)}) == 2
    pool.close()
    pool = RunPool(settings, most_bytes=1)
    first = list(pool.call(grow, 4096))
    assert gone(first[0])
    assert list(pool.call(pid)) != first
    pool.close()


def test_a_call_whose_process_dies_ends_early_and_the_next_has_another(pool):
    assert list(pool.call(dies_after, "first")) == ["first"]
    assert not pool.busy()
    assert len(list(pool.call(pid))) == 1


def test_a_process_that_died_between_two_calls_is_not_used(pool):
    (first,) = pool.call(pid)
    (idle,) = pool._idle
    os.kill(first, signal.SIGKILL)
    idle.process.join()  # known here, too: the process that forked it reports its end
    (second,) = pool.call(pid)
    assert second != first


def test_a_call_asks_the_process_that_called(pool):
    assert list(pool.call(asks, [1, 2, 3], answer=lambda number: number * number)) == [1, 4, 9]
    assert ask("outside of a call") is None


def test_processes_end_with_the_process_that_called_even_if_it_is_killed(tmp_path):
    program = (
        "import sys, os\nfrom agentx.scheduling.run_pool import RunPool\n"
        "from agentx.settings import read_settings\nfrom tests.agentx.test_run_pool import pid\n"
        "if __name__ == '__main__':\n"
        "    print(*RunPool(read_settings(os.environ)).call(pid), flush=True)\n    sys.stdin.read()\n"
    )
    path = tmp_path / "calls.py"
    path.write_text(program)
    root = Path(__file__).resolve().parents[2]
    process = subprocess.Popen(
        [sys.executable, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(root), "AGENTX_CACHE_DIR": str(tmp_path)},
    )
    with process:
        number = int(process.stdout.readline())
        process.kill()
    assert gone(number)


def test_idle_processes_end_after_a_while_and_while_memory_is_over_its_bound(settings, tmp_path):
    pool = RunPool(settings, ["tests.agentx.test_run_pool"], idle_s=WAIT_S)
    numbers = side_by_side(pool, tmp_path, 3)
    assert {*pool.call(pid)} <= numbers  # all three are kept
    pool._idle_s = 0.0
    pool.tidy()
    assert all(gone(one) for one in numbers)
    pool._idle_s, pool._total_bytes = WAIT_S, 1
    (one,) = pool.call(pid)
    assert gone(one)
    pool.close()


def test_no_process_starts_beyond_the_bound_on_memory_while_another_is_at_work(settings, tmp_path):
    pool = RunPool(settings, ["tests.agentx.test_run_pool"], total_bytes=1)
    found, mark = [], tmp_path / "first"
    threads = [
        threading.Thread(target=lambda: found.extend(pool.call(waits, str(mark)))),
        threading.Thread(target=lambda: found.extend(pool.call(pid))),
    ]
    threads[0].start()
    first = there(mark)
    assert not pool.has_room()
    threads[1].start()
    assert [one.pid for one in pool.busy()] == [first]
    os.kill(first, signal.SIGTERM)
    for one in threads:
        one.join()
    assert found[0] == "interrupted"
    assert found[1] != first
    pool.close()


def side_by_side(pool, folder, count):
    """Have so many processes at work at once; return their numbers."""
    threads = [
        threading.Thread(target=lambda n=n: list(pool.call(waits, str(folder / f"at-{n}"))))
        for n in range(count)
    ]
    for one in threads:
        one.start()
    numbers = {there(folder / f"at-{n}") for n in range(count)}
    for one in numbers:
        os.kill(one, signal.SIGTERM)
    for one in threads:
        one.join()
    return numbers
