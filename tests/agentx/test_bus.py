"""Every message to every listener, in order, whatever one of them does."""

import threading
import time

import pytest

from agentx.core.event_bus import Bus


@pytest.fixture
def bus():
    return Bus()


def test_messages_come_in_order_to_listeners_in_the_order_of_subscription(bus):
    heard = []
    bus.subscribe("x", lambda message: heard.append(("first", message)))
    bus.subscribe("x", lambda message: heard.append(("second", message)))
    bus.subscribe("y", lambda message: heard.append(("other", message)))
    bus.enqueue([("x", 1), ("x", 2)])
    assert heard == []
    bus.deliver()
    assert heard == [("first", 1), ("second", 1), ("first", 2), ("second", 2)]


def test_a_listener_is_held_strongly_until_it_ends_its_subscription(bus):
    heard = []
    end = bus.subscribe("x", heard.append)
    bus.enqueue([("x", 1)])
    bus.deliver()
    end()
    end()
    bus.enqueue([("x", 2)])
    bus.deliver()
    assert heard == [1]


def test_a_listener_that_raises_is_reported_and_stops_nothing(bus, caplog):
    heard = []
    bus.subscribe("x", lambda _: 1 / 0)
    bus.subscribe("x", heard.append)
    bus.enqueue([("x", 1), ("x", 2)])
    bus.deliver()
    assert heard == [1, 2]
    assert caplog.text.count("A subscriber of x failed") == 2


def test_what_a_listener_causes_is_served_behind_what_stands_in_line(bus):
    heard = []

    def receive(message):
        heard.append(message)
        if message == 1:
            bus.enqueue([("x", 3)])
            bus.deliver()

    bus.subscribe("x", receive)
    bus.enqueue([("x", 1), ("x", 2)])
    bus.deliver()
    assert heard == [1, 2, 3]


def test_messages_of_many_threads_are_delivered_once_in_order_one_at_a_time(bus):
    heard, receiving, late = [], [], []

    def receive(message):
        receiving.append(message)
        time.sleep(0)  # another thread's turn
        heard.append((message, len(receiving)))
        receiving.pop()

    bus.subscribe("x", receive)

    def send(start):
        for n in range(start, start + 100):
            bus.enqueue([("x", n)])
            bus.deliver()
            if (n, 1) not in heard:
                late.append(n)

    threads = [threading.Thread(target=send, args=(start,)) for start in range(0, 400, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(heard) == [(n, 1) for n in range(400)]
    assert late == []
    for start in range(0, 400, 100):
        mine = [n for n, _ in heard if start <= n < start + 100]
        assert mine == list(range(start, start + 100))
