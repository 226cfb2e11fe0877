"""A context is there by its deadline, says what the deadline cut off, and holds what must not be forgotten all the same."""

import subprocess
import sys
import threading
import time

import pytest

from agentx.context import service
from agentx.context.assembler import provided
from agentx.search.background_worker import SearchLate
from agentx.storage.events.types import Draft
from agentx.storage.index.port import Filter

RULE = "Never create a requirements.txt file; use pyproject.toml instead."
HURRIED_MS = 300


@pytest.fixture
def held_up(ws, monkeypatch):
    """The index is being loaded until this is set."""
    go, open_index = threading.Event(), ws.engine.indexer._open_index
    monkeypatch.setattr(ws.engine.indexer, "_open_index", lambda: go.wait(60) and open_index())
    yield go
    go.set()


def test_the_default_is_a_second():
    """Whoever wants to wait says so."""
    assert service.DEADLINE_MS == 1_000
    assert service.relevant_context.__kwdefaults__["deadline_ms"] == 1_000


def test_it_bounds_the_first_load_of_the_index(ws, held_up):
    """The load goes on in the background, and what must not be forgotten is whole."""
    ws.say(RULE)
    ws.tools.write_file("walrus.md", "The walrus counts.\n")
    made = ws.get_relevant_context("Where is the walrus?", deadline_ms=HURRIED_MS)
    assert not held_up.is_set()
    assert made.late == ("search",)
    assert RULE in made.text
    assert made.text.count("The search for more was cut short by a deadline") == 1
    assert [one.kind for one in made.omitted if "deadline" in one.reason] == ["search"]
    held_up.set()
    full = ws.get_relevant_context("Where is the walrus?")
    assert full.late == ()
    assert "The walrus counts." in full.text


def test_what_the_background_loads_serves_the_next_context(ws, held_up):
    """Nobody has to ask without a deadline first."""
    ws.tools.write_file("walrus.md", "The walrus counts.\n")
    assert ws.get_relevant_context("walrus", deadline_ms=HURRIED_MS).late
    held_up.set()
    while not ws.engine.indexer._index or ws.engine.indexer.watermark < ws.state.seq:
        time.sleep(0.01)
    assert "The walrus counts." in ws.get_relevant_context("walrus", deadline_ms=60_000).text


def test_without_the_index_memory_is_found_by_its_words(ws, held_up):
    """Items and the latest messages are in the state, so neither LanceDB nor a model is needed."""
    item = ws.remember("knowledge", "Payments are retried by the worker.")
    ws.remember("knowledge", "Lunch is at noon.")
    made = ws.get_relevant_context("payments", deadline_ms=HURRIED_MS)
    assert made.late == ("search",)
    assert made.recalled[0] == f"i:{item.id}"


def test_a_part_of_the_history_is_searched_where_there_is_no_time_for_all(ws, monkeypatch):
    """The first batch is searched; how much is missing is told."""
    monkeypatch.setattr("agentx.search.indexer._BATCH_EVENTS", 2)
    for number in range(6):
        ws.tools.write_file(f"f{number}.md", "walrus\n")
    with pytest.raises(SearchLate, match="no time to index the last") as late:
        ws.engine.indexer.search("walrus", 10, Filter(), deadline=time.monotonic() - 1)
    assert [hit.path for hit in late.value.found] == ["f0.md"]


def test_it_bounds_the_wait_for_the_lock(ws):
    """The log has changed; the state is that of what this process has read."""
    ws.say(RULE)
    code = (
        "import fcntl, os, sys; f = os.open(sys.argv[1], os.O_RDONLY); fcntl.flock(f, fcntl.LOCK_EX); "
        "os.utime(sys.argv[2]); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(ws.root / ".git/agentx.lock"), str(ws.root / "history.jsonl")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout.readline() == b"held\n"
        made = ws.get_relevant_context("set up the project", deadline_ms=HURRIED_MS)
        assert other.poll() is None
        other.communicate()
    assert "lock" in made.late
    assert RULE in made.text
    assert "the workspace was locked until the deadline" in made.text


def test_it_bounds_the_recap_of_the_day(ws, monkeypatch):
    """Made anew, it reads the log of a day."""
    ws.say(RULE)
    go = threading.Event()
    monkeypatch.setattr(ws.engine.recaps, "at", lambda _state: go.wait(60) or [])
    made = ws.get_relevant_context("set up", tier=2, deadline_ms=HURRIED_MS)
    assert not go.is_set()
    go.set()
    assert "recap" in made.late
    assert "The recap of the day is left out" in made.text


def test_it_bounds_the_reading_of_the_log(ws, monkeypatch):
    """Newest first, as far as there is time."""
    for number in range(10):
        ws.say(f"Message {number}.")
    over = iter([False, False, True])
    monkeypatch.setattr(service._Clock, "is_over", lambda *_: next(over))
    made = ws.get_relevant_context("set up", tier=3, max_tokens=5_000, deadline_ms=60_000)
    assert made.late == ("log:2",)
    assert "Message 9." in made.text
    assert "Message 5." not in made.text
    assert "The log was not read further back" in made.text


def test_what_was_cut_off_is_shown_again_to_the_byte(ws, held_up):
    """The record of a context says what the deadline cut off."""
    ws.say(RULE)
    ws.remember("knowledge", "Payments are retried by the worker.")
    ws.say("Retry the payments.")
    made = ws.get_relevant_context("", deadline_ms=HURRIED_MS)
    assert made.late == ("search",)
    (shown,) = ws.record(Draft(data=provided(made), actor="agent:main"))
    again = ws.get_relevant_context(as_of=shown.seq)
    assert again.exact
    assert again.text == made.text


@pytest.mark.parametrize(("tier", "late"), [(2, ("recap",)), (3, ("log:2",))])
def test_a_log_or_recap_that_was_cut_off_is_shown_again_to_the_byte(ws, monkeypatch, tier, late):
    """As many lines of it as were read then."""
    for number in range(10):
        ws.say(f"Message {number}.")
    with monkeypatch.context() as patch:
        over = iter([False, False, True])
        patch.setattr(service._Clock, "is_over", lambda *_: next(over))

        def late_recap(_state):
            raise SearchLate("It was late.")

        patch.setattr(ws.engine.recaps, "at", late_recap)
        made = ws.get_relevant_context("", tier=tier, max_tokens=5_000, deadline_ms=60_000)
    assert made.late == late
    (shown,) = ws.record(Draft(data=provided(made), actor="agent:main"))
    again = ws.get_relevant_context(as_of=shown.seq)
    assert again.exact


def test_closing_waits_for_a_search_that_was_left_behind(ws, held_up):
    """A thread inside of a library when Python ends would take the process down."""
    deadline_ms = 50
    while not ws.engine.indexer._searches:  # on a busy machine the deadline may pass before the search begins
        assert ws.get_relevant_context("walrus", deadline_ms=deadline_ms).late
        deadline_ms *= 2
    threading.Timer(0.2, held_up.set).start()
    ws.close()
    assert held_up.is_set()
    assert ws.engine.indexer._searches == 0


def test_flows_do_not_wait_for_the_index(ws, held_up):
    """The embedder is asked only where it is loaded; looking for it takes no lock."""
    ws.engine.indexer.start()
    while ws.engine.indexer._reading.acquire(blocking=False):  # until the background holds it
        ws.engine.indexer._reading.release()
        time.sleep(0.01)
    assert ws.engine.indexer.embedder(opened=True) is None
    assert not held_up.is_set()
