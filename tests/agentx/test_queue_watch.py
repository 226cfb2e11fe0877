"""When a worker looks into the queue: soon after a message, seldom without one, and never too often."""

import threading
from contextlib import contextmanager

import pytest

from agentx.scheduling import queue_watch
from agentx.scheduling.queue_watch import IDLE_S, LOOK_S, QueueWatch


@pytest.fixture
def watch(monkeypatch):
    """A watch that hears, has just looked, and never looks again by itself."""
    monkeypatch.setattr(queue_watch, "IDLE_S", 3600.0)
    monkeypatch.setattr(queue_watch, "AWAKE_S", 0.0)
    made = QueueWatch()
    made._set_hears(hears=True)
    assert made.wait()
    return made


@contextmanager
def waiting(watch):
    """A thread that waits; what it was told at the end of the block."""
    looks = []
    thread = threading.Thread(target=lambda: looks.append(watch.wait()))
    thread.start()
    yield looks
    thread.join(60)


def test_a_watch_that_hears_waits_for_a_message(watch):
    with waiting(watch) as looks:
        threading.Event().wait(3 * LOOK_S)
        assert not looks
        watch.tell()
    assert looks == [True]


def test_a_watch_that_no_longer_hears_looks_on_its_own(watch):
    with waiting(watch) as looks:
        watch._set_hears(hears=False)
    assert looks == [True]


def test_many_messages_make_no_more_looks_than_one(watch):
    for _ in range(10):
        watch.tell()
    assert watch._next_look(watch._looked_at) == watch._looked_at + LOOK_S
    assert watch.wait()
    assert watch._next_look(watch._looked_at) == watch._looked_at + 3600.0


def test_a_message_about_what_comes_soon_does_not_delay_another(watch):
    watch.tell(60.0)
    later = watch._next_look(watch._told_at)
    watch.tell()
    sooner = watch._next_look(watch._told_at)
    watch.tell(60.0)
    assert watch._next_look(watch._told_at) == sooner < later


def test_after_a_message_a_watch_looks_often_for_a_while_and_then_seldom():
    watch = QueueWatch()
    watch._set_hears(hears=True)
    watch.tell()
    assert watch.wait()
    assert watch._next_look(watch._looked_at) == watch._looked_at + LOOK_S
    assert watch._next_look(watch._looked_at + 2 * queue_watch.AWAKE_S) == watch._looked_at + IDLE_S


def test_the_end_ends_every_wait(watch):
    with waiting(watch) as looks:
        watch.end()
    assert looks == [False]
    assert not watch.wait()
