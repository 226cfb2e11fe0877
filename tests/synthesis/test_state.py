"""State is a fold: the same events give the same bytes, and each kind of event moves what it should."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.storage.events.codec import GENESIS
from agentx.storage.events.direction_events import DirectiveIssued
from agentx.storage.events.schedule_events import DuePassed, ScheduleRemoved, ScheduleSet
from agentx.storage.events.types import (
    AgentMessageSent,
    ApprovalDecided,
    Body,
    Event,
    RunEnded,
    RunStarted,
    ToolCallExecuted,
    ToolCallRequested,
    Unknown,
    UserMessageSent,
    WorkspaceCreated,
)
from agentx.storage.log.history import Position
from agentx.synthesis.memory.conclusions import Add, Concluded, Patch
from agentx.synthesis.memory.items import Evidence, MemoryItem
from agentx.synthesis.state.state import RECENT_MESSAGES, RECENT_TEXT, State, gather


def _item(item_id, text="Never do it."):
    return MemoryItem(id=item_id, kind="constraint", text=text, evidence=(Evidence(seq=1, quote=text),))


def _events(*payloads, run="r-1"):
    return [
        Event(
            seq=n, at=f"2026-11-20T09:31:{n % 60:02}.000000Z", type=type(data).__name__, v=1, actor="user",
            run=run, data=data, hash=f"{n:064x}",
        )
        for n, data in enumerate(payloads, start=1)
    ]  # fmt: skip


def _fold(*payloads):
    return State().apply_all(_events(*payloads))


def _concluded(*changes, through=0):
    return Concluded(extractor="x", version=1, through=through, changes=changes)


_IDS = st.sampled_from(["a", "b", "c"])
_PAYLOADS = st.lists(
    st.one_of(
        st.builds(UserMessageSent, st.builds(Body, st.text(max_size=20))),
        st.builds(AgentMessageSent, st.builds(Body, st.text(max_size=20)), st.booleans()),
        st.builds(ToolCallRequested, call_id=_IDS, tool=_IDS, awaits_approval=st.booleans()),
        st.builds(ApprovalDecided, call_id=_IDS, approved=st.booleans()),
        st.builds(ToolCallExecuted, call_id=_IDS, tool=_IDS, status=st.just("SUCCEEDED")),
        st.builds(RunStarted, task=st.just(Body("t")), agent=_IDS, model=_IDS, schedule=_IDS),
        st.builds(UserMessageSent, st.just(Body("t")), _IDS),
        st.builds(ScheduleSet, _IDS, st.just("0 * * * *"), _IDS, directed=st.booleans()),
        st.builds(ScheduleRemoved, _IDS),
        st.builds(
            DirectiveIssued,
            why=_IDS,
            summary=_IDS,
            strategy=_IDS,
            prompt=st.just(Body("t")),
            schedule=_IDS,
        ),
        st.builds(RunEnded, status=st.just("COMPLETED")),
        st.builds(lambda i, n: _concluded(Add(_item(i)), through=n), _IDS, st.integers(0, 50)),
        st.builds(lambda i: _concluded(Patch(id=i, status="retired")), _IDS),
        st.just(Unknown(raw='{"x":1}')),
    ),
    max_size=30,
)


@given(_PAYLOADS, st.integers(0, 30), st.integers(0, 30))
def test_a_state_that_passes_over_events_is_as_if_each_had_been_folded(payloads, first, second):
    events = [None, *_events(*payloads)]
    lines = [(event, b"%d" % event.seq) for event in events[1:]]
    state, start = State(), Position()
    for part in (lines[:first], lines[first:][:second], lines[first:][second:]):
        stretch = gather(start, part)
        assert (stretch.after, len(stretch.messages) <= RECENT_MESSAGES) == (start.hash, True)
        state.pass_over(stretch, lambda line: events[int(line)])
        start = Position(state.seq, state.hash)
    by_line = State(hash=GENESIS).apply_all(events[1:])
    assert state.dump() == by_line.dump()


@given(_PAYLOADS, st.integers(0, 30))
def test_the_same_events_give_the_same_bytes_however_they_are_cut(payloads, cut):
    events = _events(*payloads)
    once = State().apply_all(events)
    twice = State().apply_all(events[:cut]).apply_all(events[cut:])
    assert once.encode() == twice.encode()
    assert once.digest == twice.digest
    assert once.seq == len(events)


@given(_PAYLOADS)
def test_a_state_that_was_encoded_reads_back_as_it_was(payloads):
    state = _fold(*payloads)
    assert State.decode(state.encode()).digest == State.decode(state.dump()).digest == state.digest


def test_a_state_that_was_dumped_keeps_the_order_of_its_items():
    state = _fold(_concluded(Add(_item("z")), Add(_item("a"))), _concluded(Add(_item("m"))))
    again = State.decode(state.dump())
    assert again == state
    assert list(again.items) == ["z", "a", "m"]


@pytest.mark.parametrize("content", [b"", b"[]", b'{"seq":"one"}', b"\xff"])
def test_what_is_no_state_is_a_value_error(content):
    with pytest.raises(ValueError):
        State.decode(content)


@given(_PAYLOADS)
def test_a_copy_is_not_moved_by_what_comes_after(payloads):
    state = _fold(*payloads)
    copy = state.copy()
    before = copy.encode()
    for event in _events(*payloads, _concluded(Add(_item("new"))), UserMessageSent(Body("later"))):
        state.apply(event)
    assert copy.encode() == before


def test_the_first_event_names_the_task():
    state = _fold(WorkspaceCreated(title="Report", format=1, artifacts=".."))
    assert (state.title, state.format, state.artifacts) == ("Report", 1, "..")


def test_a_new_item_knows_the_event_that_made_it_and_a_change_the_event_that_changed_it():
    state = _fold(
        _concluded(Add(_item("c1"))), UserMessageSent(Body("x")), _concluded(Patch(id="c1", text="Better"))
    )
    item = state.items["c1"]
    assert (item.text, item.status, item.created_seq, item.changed_seq) == ("Better", "active", 1, 3)


def test_a_change_to_an_item_that_is_not_there_changes_nothing():
    assert _fold(_concluded(Patch(id="ghost", status="retired"))).items == {}


def test_the_watermark_only_rises():
    assert _fold(_concluded(through=5), _concluded(through=3)).watermark == 5


def test_the_items_of_a_kind_come_in_the_order_of_their_creation():
    state = _fold(_concluded(Add(_item("b")), Add(_item("a"))), _concluded(Patch(id="b", status="retired")))
    assert [item.id for item in state.active("constraint")] == ["a"]
    assert [item.id for item in state.active(status="retired")] == ["b"]
    assert list(state.active("hot_issue")) == []


def test_the_latest_messages_are_kept_and_long_ones_cut():
    state = _fold(*(UserMessageSent(Body(f"{n} " + "x" * 5_000)) for n in range(RECENT_MESSAGES + 5)))
    assert [message.seq for message in state.messages] == list(range(6, RECENT_MESSAGES + 6))
    assert {len(message.text) for message in state.messages} == {RECENT_TEXT}


@pytest.mark.parametrize("approved", [True, False])
def test_a_call_waits_until_it_is_decided_and_executed(approved):
    asked = ToolCallRequested(call_id="1", tool="deploy", arguments={"to": "prod"}, awaits_approval=True)
    decided = ApprovalDecided(call_id="1", approved=approved, reason="because")
    waiting = _fold(asked, decided).pending["1"]
    assert (waiting.tool, waiting.arguments, waiting.approved, waiting.reason) == (
        "deploy",
        {"to": "prod"},
        approved,
        "because",
    )
    done = ToolCallExecuted(call_id="1", tool="deploy", status="SUCCEEDED")
    assert _fold(asked, decided, done).pending == {}
    assert _fold(decided).pending == {}


def test_a_run_is_open_until_its_own_end():
    started = RunStarted(task=Body("do it"), agent="main", model="m")
    assert _fold(started).last_run.status == "RUNNING"
    ended = State().apply_all(_events(started) + _events(started, RunEnded(status="FAILED"), run="r-2")[1:])
    assert ended.last_run.status == "RUNNING"
    own = _fold(started, RunEnded(status="FAILED", reason="no"))
    assert (own.last_run.status, own.last_run.reason, own.last_run.ended_seq) == ("FAILED", "no", 2)


def test_the_latest_fifty_runs_are_kept_and_each_is_ended_by_its_own_end():
    started = [_events(RunStarted(task=Body("x"), agent="a", model="m"), run=f"r-{n}")[0] for n in range(60)]
    state = State().apply_all(started)
    assert [run.run for run in state.runs] == [f"r-{n}" for n in range(10, 60)]
    ended = _events(RunEnded(status="COMPLETED", summary="sent two"), run="r-20")
    assert [(run.run, run.summary) for run in state.apply_all(ended).runs if run.ended_at] == [
        ("r-20", "sent two")
    ]


def test_a_directive_counts_the_runs_that_it_served_and_a_later_one_takes_its_place():
    issued = DirectiveIssued(why="w", summary="s", strategy="t", prompt=Body("Do it."))
    served = RunStarted(task=Body("Do it."), agent="a", model="m", directive=1)
    state = _fold(issued, served, served, RunStarted(task=Body("other"), agent="a", model="m"))
    assert (state.directives[""].seq, state.directives[""].runs) == (1, 2)
    assert _fold(issued, served, issued).directives[""].runs == 0


def test_due_times_are_settled_by_a_run_or_passed_over_and_never_go_back():
    hourly = ScheduleSet(id="news", cron="0 * * * *", task="Look for news.")
    ran = RunStarted(task=Body("x"), agent="a", model="m", schedule="news", due="2026-01-01T03:00:00Z")
    late = DuePassed(schedule="news", due="2026-01-01T02:00:00Z")
    assert _fold(hourly, ran, late).schedules["news"].settled == "2026-01-01T03:00:00Z"
    assert _fold(hourly, ran, hourly).schedules["news"].settled == "2026-01-01T03:00:00Z"
    assert _fold(hourly, ScheduleRemoved(id="news")).schedules == {}


def test_an_event_of_an_unknown_type_is_counted_and_moves_nothing_else():
    state = _fold(Unknown(raw="{}"))
    assert (state.unknown, state.counts, state.items) == (1, {"Unknown": 1}, {})
