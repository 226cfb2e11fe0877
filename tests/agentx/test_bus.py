"""Every message to every listener, in order, whatever one of them does."""

import threading

import pytest

from agentx.bus import Bus


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


def test_messages_of_many_threads_are_all_delivered_once(bus):
    heard = []
    bus.subscribe("x", heard.append)

    def send(start):
        for n in range(start, start + 100):
            bus.enqueue([("x", n)])
            bus.deliver()

    threads = [threading.Thread(target=send, args=(start,)) for start in range(0, 400, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(heard) == list(range(400))
