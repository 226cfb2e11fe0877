"""Limits on the calls to model providers, which all workers of a fleet share."""

import itertools
import os
import threading
import time
import uuid

import pytest

from agentx.scheduling import call_limits
from agentx.scheduling.call_limits import AskingGate, AskTurn, CallLimits, TellPause, Turn, parse
from agentx.scheduling.shared_queue import SharedQueue
from agentx.storage.errors import UsageError
from tests.agentx.fleet.fleets import Fleet, wait_for
from tests.chat_server import serving

slow = pytest.mark.skipif(
    not os.environ.get("FLEET_POSTGRES"), reason="waits for several periods: make fleet-test runs it"
)


@pytest.fixture
def queue(tmp_path, request):
    if os.environ.get("FLEET_POSTGRES"):
        database = request.getfixturevalue("postgres").url
    else:
        database = f"sqlite:///{tmp_path}/queue.sqlite"
    with SharedQueue.opened(database, f"agentx_t{uuid.uuid4().hex[:12]}") as made:
        if os.environ.get("FLEET_POSTGRES"):
            made.create()  # the schema
        yield made


def test_calls_beyond_the_limit_wait_for_their_turn_in_all_workers(queue):
    CallLimits(queue).create([parse("openai=3/min"), parse("openai/small=1/h")])
    workers = CallLimits(queue), CallLimits(queue)
    waits = [one.answer(AskTurn("openai/large")).wait_s for _ in range(4) for one in workers]
    assert waits[:3] == [0, 0, 0]
    assert [round(one / 60) for one in waits[3:]] == [1, 1, 1, 2, 2]
    (limit,) = [one for one in workers[0].all() if one.name == "openai"]
    assert limit.waiting == 3
    assert 100 < limit.next_s <= 180
    assert workers[0].answer(AskTurn("openai/small")).wait_s == 0
    assert workers[1].answer(AskTurn("openai/small")).wait_s > 3000
    assert workers[0].answer(AskTurn("anthropic/any")) == Turn(0, taken=True)


def test_a_limit_can_be_changed_and_ended_and_the_others_stay(queue):
    limits = CallLimits(queue)
    limits.create([parse("openai=5/min"), parse("anthropic=50/min")])
    for _ in range(7):
        limits.answer(AskTurn("openai/large"))
    limits.create([parse("openai=2/min")])
    assert [(one.name, one.calls) for one in limits.all()] == [("anthropic", 50), ("openai", 2)]
    assert limits.answer(AskTurn("openai/large")).wait_s > 0
    limits.create([parse("openai=none")])
    assert [one.name for one in limits.all()] == ["anthropic"]
    assert limits.answer(AskTurn("openai/large")).wait_s == 0


def test_a_pause_that_a_provider_asked_for_holds_for_all_workers_and_takes_no_turn(queue, monkeypatch):
    CallLimits(queue).create([parse("openai=2/min")])
    one, other = CallLimits(queue), CallLimits(queue)
    monkeypatch.setattr(call_limits, "KNOWN_S", 0.0)
    one.answer(TellPause("openai/large", 30.0))
    one.answer(TellPause("local/small", 20.0))
    one.answer(TellPause("openai/large", 1.0))
    for model, most in (("openai/large", 30), ("local/other", 20)):
        found = other.answer(AskTurn(model))
        assert not found.taken
        assert most - 10 < found.wait_s <= most
    assert other.answer(AskTurn("openai/large", taken=True)).wait_s > 20
    assert {one.name: one.paused_s > 0 for one in other.all()} == {"openai": True, "local": True}
    queue._execute(f"UPDATE {queue.table('fleet_limits')} SET paused_until = 0")
    assert [other.answer(AskTurn("openai/large")).wait_s for _ in range(2)] == [0, 0]


def test_without_a_limit_a_call_asks_the_database_at_most_once_a_second(queue, monkeypatch):
    limits = CallLimits(queue)
    limits.create()
    statements = itertools.count()
    transaction = queue.transaction
    monkeypatch.setattr(queue, "transaction", lambda: (next(statements), transaction())[1])
    monkeypatch.setattr(call_limits, "KNOWN_S", 3600.0)
    limits._looked_at = -3600.0
    for _ in range(1000):
        assert limits.answer(AskTurn("openai/large")) == Turn(0, taken=True)
    assert next(statements) == 1


def test_a_call_with_a_limit_waits_while_the_database_is_away_and_one_without_does_not(queue):
    limits = CallLimits(queue)
    limits.create([parse("openai=9/min")])
    assert limits.answer(AskTurn("openai/large")).wait_s == 0
    queue._execute(f"ALTER TABLE {queue.table('fleet_limits')} RENAME TO away")
    assert limits.answer(AskTurn("openai/large")) == Turn(call_limits.AGAIN_S, taken=False)
    assert limits.answer(AskTurn("local/small")).wait_s == 0


def test_the_gate_of_a_process_asks_until_its_turn_has_come_and_nobody_pauses(monkeypatch):
    slept, asked = [], []
    answers = iter(
        [Turn(2.0, taken=False), Turn(3.0, taken=True), Turn(1.0, taken=False), Turn(0.0, taken=True)]
    )
    monkeypatch.setattr(call_limits.time, "sleep", slept.append)
    AskingGate(lambda question: (asked.append(question.taken), next(answers))[1]).wait("openai/large")
    assert slept == [2.0, 3.0, 1.0]
    assert asked == [False, False, True, False]  # the pause took its turn away
    AskingGate(lambda _: None).wait("openai/large")  # nobody answers outside of a call


@pytest.mark.parametrize("wait_s", [float("inf"), float("nan"), 1e300])
def test_a_forged_row_neither_fails_a_call_nor_holds_it_for_ever(monkeypatch, wait_s):
    slept, answers = [], iter([Turn(wait_s, taken=True), Turn(0.0, taken=True)])
    monkeypatch.setattr(call_limits.time, "sleep", slept.append)
    AskingGate(lambda _: next(answers)).wait("openai/large")
    assert all(one <= call_limits.LONGEST_WAIT_S for one in slept)


@pytest.mark.parametrize("text", ["openai", "openai=5", "openai=0/min", "openai=5/day", "=5/min", "a b=5/s", "openai=5/0s", "openai=999999/s"])  # fmt: skip
def test_what_is_not_a_limit_is_refused_with_an_example(text):
    with pytest.raises(UsageError, match="anthropic=50/min"):
        parse(text)


@slow
def test_two_workers_keep_a_limit_together_and_pause_when_the_provider_says_so(tmp_path, request):
    database = request.getfixturevalue("postgres").url if os.environ.get("FLEET_POSTGRES") else ""
    fleet = Fleet(tmp_path, database, f"t{uuid.uuid4().hex[:12]}" if database else "default")
    arrived, both = [], threading.Barrier(2)
    with serving() as server:

        def first(handler):  # so that both processes have loaded what the first call needs
            both.wait(120)
            say(handler)

        def say(handler):
            handler.stream(({"content": "Done."}, {"finish": "stop"}, {"usage": [1, 1]}), done=True)

        def note(handler):
            arrived.append(time.monotonic())
            say(handler)

        def refuse(handler):
            arrived.append(time.monotonic())
            body = b'{"error": {"message": "too many"}}'
            handler.send_response(429)
            for name, value in (("retry-after", "6"), ("content-length", str(len(body)))):
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(body)

        server.answers = [first, first, *[note] * 6, refuse, *[note] * 20]
        for name in ("one", "two"):
            one = fleet.worker(name)
            one.environ |= {
                "AGENTX_MODEL": "openai/test",
                "AGENTX_API_BASE": server.base,
                "OPENAI_API_KEY": "sk-test",
            }
            one.start("--slots", "1")
        try:
            for n in range(2):
                fleet.submit(f"w{n}", "Do it.")
            wait_for(fleet.all_ended)
            with SharedQueue.opened(fleet.place.database, fleet.place.schema) as queue:
                CallLimits(queue).create([parse("openai=3/4s")])
            time.sleep(2 * call_limits.KNOWN_S)
            for n in range(10):
                fleet.submit(f"w{n}", "Do it again.")
            shown = wait_for(lambda: [one for one in fleet.status().limits if one.waiting])
            assert shown[0].name == "openai"
            wait_for(lambda: [one for one in fleet.status().limits if one.paused_s])
            wait_for(fleet.all_ended)
        finally:
            for one in fleet.workers:
                one.slay()
    assert {one.status for one in fleet.status().runs} == {"COMPLETED"}
    assert len({one.worker for one in fleet.status().runs}) == 2
    # Each period has at most so many calls; a second is allowed for their way to the server.
    for earlier, beyond in zip(arrived, arrived[3:], strict=False):
        assert beyond - earlier > 3.0
    # After the refusal nobody called for as long as the provider had asked, but for a call under way.
    assert not [at for at in arrived[7:] if 1.0 < at - arrived[6] < 5.5]
    assert len(arrived) == 11
