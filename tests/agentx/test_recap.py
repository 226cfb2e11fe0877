"""The recap of the day: told turn by turn, kept up with what is new, and the same as when it is told anew."""

import shutil
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentx import Workspace
from agentx.core.layout import FORMAT
from agentx.engine.daily_recap import Day, Recaps, Told, day_at, log_at
from agentx.storage.events.types import (
    AgentMessageSent,
    ApprovalDecided,
    ArtifactChanged,
    Body,
    Draft,
    FileChange,
    ToolCallExecuted,
    UserMessageSent,
    WorkspaceCreated,
)
from agentx.storage.log.history import SEGMENT_BYTES, History, segment_path
from agentx.synthesis.memory.record_codec import record_codec
from agentx.synthesis.state.state import State

CODEC = record_codec()


class Log:
    """A log of sealed segments and a live one, with events at given times."""

    def __init__(self, root):
        self.root = root
        self.history = History(root, CODEC)
        self.state = State()
        self.segment, self.size = 1, 0

    def add(self, time, data, actor="user"):
        at = datetime.fromisoformat(time).replace(tzinfo=UTC)
        draft = Draft(data=data, actor=actor)
        previous = self.state.hash or "0" * 64
        line, event = CODEC.encode(draft, seq=self.state.seq + 1, previous=previous, at=at)
        if self.size + len(line) > SEGMENT_BYTES:
            self.seal()
        with (self.root / "history.jsonl").open("ab") as file:
            file.write(line)
        self.size += len(line)
        self.state.apply(event)
        return event

    def seal(self):
        sealed = self.root / segment_path(self.segment)
        sealed.parent.mkdir(parents=True, exist_ok=True)
        (self.root / "history.jsonl").rename(sealed)
        self.segment, self.size = self.segment + 1, 0

    def say(self, time, text="Go on."):
        return self.add(time, UserMessageSent(body=Body(text)))


def ran(tool, status="SUCCEEDED", **fields):
    return ToolCallExecuted(call_id="c", tool=tool, status=status, **fields)


def texts(told):
    return [one.text for one in told]


@pytest.fixture
def log(tmp_path):
    return Log(tmp_path)


def test_a_turn_is_one_line_with_what_was_said_done_checked_and_answered(log):
    log.say("2026-11-20T09:31", "Draft the\noutlook.")
    for _ in range(3):
        log.add("2026-11-20T09:32", ran("write_file", changes=(FileChange("report.md"),)), "agent:main")
    log.add("2026-11-20T09:32", ArtifactChanged(changes=(FileChange("notes.md"),), noticed="watch"), "watch")
    log.add("2026-11-20T09:33", ran("run_tests", "FAILED", exit_code=1), "agent:main")
    log.add("2026-11-20T09:34", ran("run_tests", exit_code=0), "agent:main")
    log.add("2026-11-20T09:34", ran("run_lint", exit_code=0), "agent:main")
    log.add("2026-11-20T09:35", ran("search"), "agent:main")
    log.add("2026-11-20T09:35", ApprovalDecided(call_id="call_9", approved=False))
    log.add("2026-11-20T09:36", AgentMessageSent(body=Body("It is drafted."), final=True), "agent:main")
    assert list(day_at(log.history, log.state).told()) == [
        Told(
            "2026-11-20 09:31 user: “Draft the outlook.”; user refused call_9; changed report.md (3×), notes.md; "
            "run_tests failed 1 of 2×, passed at last; run_lint passed; agent:main: “It is drafted.”; 1 other call",
            1,
            11,
        )
    ]


def test_a_day_is_the_24_hours_before_the_last_event_in_any_time_zone(log):
    log.say("2026-11-19T08:59", "Too old.")
    log.say("2026-11-19T10:00", "Just young enough.")
    log.say("2026-11-20T00:10", "After midnight.")
    log.say("2026-11-20T09:30", "Now.")
    assert [text.split("“")[1] for text in texts(day_at(log.history, log.state).told())] == [
        "Now.”",
        "After midnight.”",
        "Just young enough.”",
    ]


def test_a_long_turn_is_told_hour_by_hour(log):
    log.say("2026-11-20T09:31", "Port it all.")
    for hour in range(9, 13):
        log.add(
            f"2026-11-20T{hour:02}:40", ran("write_file", changes=(FileChange(f"{hour}.py"),)), "agent:main"
        )
    assert texts(day_at(log.history, log.state).told()) == [
        "2026-11-20 12:40 changed 12.py",
        "2026-11-20 11:40 changed 11.py",
        "2026-11-20 10:40 changed 10.py",
        "2026-11-20 09:31 user: “Port it all.”; changed 9.py",
    ]


def test_what_a_turn_holds_is_bounded(log):
    log.say("2026-11-20T09:31", "word " * 500)
    for number in range(500):
        log.add("2026-11-20T09:32", ran("write_file", changes=(FileChange(f"f{number}.md"),)), "agent:main")
        log.add("2026-11-20T09:32", ran("x", "DENIED", output=Body("Denied. " + "no " * 99)), "agent:main")
    (told,) = day_at(log.history, log.state).told()
    assert "and 496 more" in told.text
    assert "and 496 more of these" in told.text
    assert len(told.text) < 2_000


def test_where_nothing_was_done_there_is_nothing_to_tell(log):
    log.add("2026-11-20T09:31", ran("search"), "agent:main")
    assert texts(day_at(log.history, log.state).told()) == []
    assert texts(day_at(log.history, State()).told()) == []


@given(
    st.lists(
        st.tuples(
            st.sampled_from([-2_000_000, -90_000, -3_600, 0, 0, 60, 600, 3_600, 40_000, 90_000, 2_000_000]),
            st.integers(0, 3),
        ),
        min_size=1,
        max_size=40,
    ),
    st.sets(st.integers(0, 40)),
    st.sets(st.integers(0, 40)),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_kept_up_it_is_the_same_as_told_anew_whatever_the_clock_did(tmp_path, steps, looks, seals):
    shutil.rmtree(tmp_path / "run", ignore_errors=True)
    (tmp_path / "run").mkdir()
    log = Log(tmp_path / "run")
    kept = Recaps(log.history, log.root / "recap")
    clock = datetime(2026, 11, 20, 9, 30, tzinfo=UTC).timestamp()
    facts = (
        lambda: (UserMessageSent(body=Body("Go on.")), "user"),
        lambda: (AgentMessageSent(body=Body("Done.")), "agent:main"),
        lambda: (ran("write_file", changes=(FileChange("a.md"),)), "agent:main"),
        lambda: (WorkspaceCreated(title="x", format=FORMAT), "user"),
    )
    for number, (step, fact) in enumerate(steps):
        clock += step
        log.add(datetime.fromtimestamp(clock, UTC).isoformat()[:19], *facts[fact]())
        if number in seals:
            log.seal()
            (log.root / "history.jsonl").touch()
        if number in looks or number == len(steps) - 1:
            whole = Day()
            for event in log.history.read():
                whole.apply(event)
            anew = list(day_at(log.history, log.state).told())
            assert anew == kept.at(log.state) == list(whole.told())


def test_only_what_is_new_is_read(log):
    for number in range(2_000):
        log.say("2026-11-20T09:31", f"Sentence {number}. " + "word " * 30)
    kept = Recaps(log.history, log.root / "recap")
    before = kept.at(log.state)
    assert log.segment > 3
    log.say("2026-11-20T09:40", "The latest word.")
    gone = log.root / segment_path(1)
    shutil.move(gone, log.root / "elsewhere")
    again = Recaps(log.history, log.root / "recap")  # as another process finds it
    for recaps in (kept, again):
        told = recaps.at(log.state)
        assert "The latest word." in told[0].text
        assert told[1:] == before[: len(told) - 1]


def test_a_log_that_was_set_back_is_told_anew(log):
    log.say("2026-11-20T09:31", "First.")
    then, state = (log.root / "history.jsonl").read_bytes(), log.state.copy()
    log.say("2026-11-20T09:32", "Taken back.")
    kept = Recaps(log.history, log.root / "recap")
    assert len(kept.at(log.state)) == 2
    (log.root / "history.jsonl").write_bytes(then)
    log.state = state
    log.say("2026-11-20T09:33", "Second.")
    assert [text.split("“")[1] for text in texts(kept.at(log.state))] == ["Second.”", "First.”"]


def test_the_log_is_told_from_its_end_with_messages_in_full(log):
    log.say("2026-11-20T09:31", "first " * 300)
    log.seal()
    log.add("2026-11-20T09:32", ran("search"), "agent:main")
    log.say("2026-11-20T09:33", "Second.")
    told = list(log_at(log.history, log.state, lambda body: body.text))
    assert [one.first for one in told] == [3, 2, 1]
    assert texts(told)[0] == "2026-11-20 09:33 user: Second."
    assert texts(told)[2].count("first") == 300


def test_what_was_purged_is_told_no_longer(tmp_path, lexical):
    with Workspace.create(tmp_path / "task", title="Task", settings=lexical) as ws:
        secret = ws.say("The safe opens with the yellow walrus.")
        ws.say("Go on.")
        assert "yellow walrus" in ws.get_relevant_context("x", tier=2).text
        ws.purge(secret.seq)
        assert "yellow walrus" not in ws.get_relevant_context("x", tier=2).text


def test_a_rebuild_tells_it_anew(tmp_path, lexical):
    with Workspace.create(tmp_path / "task", title="Task", settings=lexical) as ws:
        ws.say("From now on, never create a requirements.txt file.")
        before = ws.get_relevant_context("x", tier=2)
        assert "”; constraint c-2" in before.text
        ws.rebuild()
        assert ws.get_relevant_context("x", tier=2) == before
