"""The morning audit is pure code over the history."""

from agentx.storage.events.direction_events import DirectiveFailed, DirectiveIssued, FieldExplained
from agentx.storage.events.schedule_events import DuePassed, ScheduleSet
from agentx.storage.events.types import (
    AgentMessageSent,
    ApprovalDecided,
    Body,
    Event,
    RunEnded,
    RunStarted,
    TaskGraded,
    ToolCallExecuted,
    ToolCallRequested,
    WorkspaceCreated,
)
from agentx.synthesis.learning.auditing import audit
from agentx.synthesis.memory.conclusions import MAINTENANCE, MODEL, Add, Concluded, Patch
from agentx.synthesis.memory.items import CapabilityDetail, HotIssueDetail, Link, MemoryItem
from tests.kinds import fields_of

BEFORE, SINCE, TODAY = "2026-11-20T09", "2026-11-21T00:00:00.000000Z", "2026-11-21T09"


def history(*facts):
    """Events of triples: hour, run, payload; each a minute later."""
    return [
        Event(
            seq=seq,
            at=f"{hour}:{seq:02}:00.000000Z",
            type=type(data).__name__,
            v=1,
            actor="x",
            run=run,
            data=data,
        )
        for seq, (hour, run, data) in enumerate(
            [(BEFORE, "", WorkspaceCreated(title="News", format=1)), *facts], 1
        )
    ]


def item(name, kind, **fields):
    return MemoryItem(id=name, text=f"The text of {name}.", trust="user", **fields_of(kind) | fields)


def added(*items, **fields):
    return Concluded(
        **{"extractor": "test", "version": 1, "through": 1} | fields, changes=tuple(map(Add, items))
    )


def run(agent="writer", **fields):
    return RunStarted(task=Body("Watch the news"), agent=agent, model="m", **fields)


def a_day():
    """What happened before and on a day, one of each that the audit tells."""
    failing = HotIssueDetail("pytest", "tests/test_a.py::test_b")
    return history(
        (
            BEFORE,
            "",
            added(item("r-1", "rule", score=6.0), item("r-2", "rule"), item("k-1", "knowledge")),
        ),
        (BEFORE, "r-1", run()),
        (BEFORE, "r-1", ToolCallRequested(call_id="c1", tool="send_email", arguments={"to": "a@b"})),
        (BEFORE, "r-1", ToolCallRequested(call_id="c2", tool="deploy", awaits_approval=True)),
        (
            TODAY,
            "r-1",
            RunEnded(status="INTERRUPTED", reason="Its process ended.", steps=2, prompt_tokens=50),
        ),
        (TODAY, "", DuePassed(schedule="s-1", due=TODAY, times=2, reason="nobody was there")),
        (TODAY, "", DuePassed(schedule="s-1", due=TODAY, times=3, reason="nobody was there")),
        (TODAY, "", ScheduleSet(id="s-1", cron="0 * * * *", task="Watch")),
        (TODAY, "", ScheduleSet(id="s-2", cron="*/5 * * * *", sort="heartbeat")),
        (TODAY, "r-2", run("reader", directive=9)),
        (TODAY, "r-2", ToolCallExecuted(call_id="c3", tool="fetch", status="FAILED", output=Body("404"))),
        (TODAY, "r-2", ToolCallExecuted(call_id="c4", tool="fetch", status="FAILED", output=Body("405"))),
        (TODAY, "r-2", AgentMessageSent(body=Body("done"), final=True)),
        (
            TODAY,
            "r-2",
            RunEnded(status="COMPLETED", steps=3, prompt_tokens=100, completion_tokens=7, cost_usd=0.5),
        ),
        (TODAY, "", added(item("l-1", "learning"), item("k-2", "knowledge"), item("t-1", "task"))),
        (TODAY, "", added(item("h-1", "hot_issue", detail=failing))),
        (TODAY, "", added(item("b-1", "capability", detail=CapabilityDetail("true", works=False)))),
        (TODAY, "", added(item("c-9", "constraint", status="candidate"))),
        (
            TODAY,
            "",
            Concluded(
                extractor=MAINTENANCE,
                version=1,
                through=2,
                changes=(
                    Patch(id="r-1", score=5.5),
                    Patch(id="k-2", status="retired", links=(Link("superseded_by", "k-3"),)),
                ),
            ),
        ),
        (
            TODAY,
            "",
            Concluded(extractor=MAINTENANCE, version=1, through=2, changes=(Patch(id="r-1", score=5.0),)),
        ),
    )


def test_what_happened_since_is_told_and_what_happened_before_only_where_it_still_stands():
    told = audit(a_day(), SINCE, "/news")
    assert (told.title, told.root) == ("News", "/news")
    assert {ran.agent: ran.ended for ran in told.ran} == {
        "reader": {"COMPLETED": 1},
        "writer": {"INTERRUPTED": 1},
    }
    assert [(one.what, one.why, one.times) for one in told.failed] == [
        ("r-1 INTERRUPTED", "Its process ended.", 1),
        ("fetch FAILED", "405", 2),
    ]
    assert [one.id for one in told.learned] == ["l-1"]
    assert [(one.item.id, one.what, one.score, one.item.score) for one in told.decayed] == [
        ("r-1", "faded", 6.0, 5.0),
        ("k-2", "merged", 5.0, 5.0),
    ]
    assert [(one.schedule, one.times) for one in told.passed] == [("s-1", 5)]
    assert [(one.call_id, one.run, one.arguments) for one in told.unknown] == [("c1", "r-1", "to=a@b")]
    assert ([one.id for one in told.open], told.candidates) == (["h-1"], 1)
    assert [todo.command for todo in told.todo] == [
        "agentx approve c2",
        "agentx approve c1",
        "agentx run 'Fix tests/test_a.py::test_b (h-1)'",
        "agentx agent capability check b-1",
        "agentx memory review",
        "agentx schedule list",
    ]


def test_each_component_has_its_cost_and_a_director_that_failed_last_is_to_be_asked_again():
    used = {"prompt_tokens": 10, "completion_tokens": 1, "cost_usd": 0.25}
    issued = DirectiveIssued(
        why="w", summary="s", strategy="Go on.", reflection="Is it so?", prompt=Body("p")
    )
    events = history(
        (BEFORE, "", DirectiveFailed(why="w", error="down", **used)),
        (TODAY, "", DirectiveFailed(why="w", error="down", **used)),
        (TODAY, "", type(issued)(why="w", summary="s", strategy="Go on.", prompt=Body("p"), **used)),
        (TODAY, "", FieldExplained(directive=3, field="f", words="x", **used)),
        (TODAY, "", added(extractor=MODEL, model="m", **used)),
        (TODAY, "r-1", run("reader", directive=4)),
        (TODAY, "r-1", RunEnded(status="FAILED", reason="It broke.", steps=4, **used)),
        (TODAY, "", issued),
    )
    told = audit(events, SINCE)
    assert {cost.component: (cost.calls, cost.prompt_tokens, cost.usd) for cost in told.costs} == {
        "director": (2, 20, 0.5),
        "fields": (1, 10, 0.25),
        "scribe": (1, 10, 0.25),
        "agent reader": (4, 10, 0.25),
    }
    assert [said.reflection for said in told.reflections] == ["", "Is it so?"]
    assert told.todo == ()
    again = audit([*events, *history(*[(TODAY, "", DirectiveFailed(why="w", error="down"))] * 9)[9:]], SINCE)
    assert [todo.command for todo in again.todo] == ["agentx agent direct --now"]
    failed = (TODAY, "r-1", RunEnded(status="FAILED", reason="550 no such address"))
    [todo] = audit(history((TODAY, "r-1", run(directive=9)), failed), SINCE).todo
    assert (todo.command, todo.text) == ("agentx agent direct --why", "r-1 FAILED: 550 no such address")


def test_a_call_of_a_run_that_goes_on_is_not_unknown():
    asked = ToolCallRequested(call_id="c1", tool="send_email")
    going = history((TODAY, "r-1", run()), (TODAY, "r-1", asked))
    assert audit(going, SINCE).unknown == ()
    assert audit(going, SINCE).ran[0].ended == {"RUNNING": 1}
    over = history(
        (TODAY, "r-1", run()), (TODAY, "r-1", asked), (TODAY, "r-1", RunEnded(status="INTERRUPTED"))
    )
    assert [call.call_id for call in audit(over, SINCE).unknown] == ["c1"]


def test_a_call_that_a_person_allowed_is_unknown_only_where_its_run_went_on_with_it():
    asked = ToolCallRequested(call_id="c1", tool="deploy", awaits_approval=True)
    waits = [(TODAY, "r-1", run()), (TODAY, "r-1", asked), (TODAY, "r-1", RunEnded(status="WAITING"))]
    allowed = [*waits, (TODAY, "", ApprovalDecided(call_id="c1", approved=True))]
    cut_off = [*allowed, (TODAY, "r-1", run(resumes="r-1")), (TODAY, "r-1", RunEnded(status="INTERRUPTED"))]
    told = [
        [call.call_id for call in audit(history(*facts), SINCE).unknown]
        for facts in (waits, allowed, cut_off)
    ]
    assert told == [[], [], ["c1"]]
    commands = [
        [todo.command for todo in audit(history(*facts), SINCE).todo] for facts in (waits, allowed, cut_off)
    ]
    assert commands == [["agentx approve c1"], ["agentx run"], ["agentx approve c1", "agentx run"]]


def test_tasks_graded_failed_are_listed_until_they_are_graded_passed():
    told = audit(
        history(
            (BEFORE, "r-1", TaskGraded(task="Deploy the blog", passed=False)),
            (TODAY, "r-2", TaskGraded(task="Send the letter", passed=False)),
            (
                TODAY,
                "r-3",
                TaskGraded(task="Close the month", passed=False, flow="f-1", lesson="Lock first."),
            ),
            (TODAY, "r-4", TaskGraded(task="Print it", passed=False, flow="f-2", followed=False)),
            (TODAY, "", TaskGraded(task="send the letter.", passed=True)),
        ),
        SINCE,
    )
    assert [(one.task, one.run, one.flow, one.lesson, one.by) for one in told.failed_tasks] == [
        ("Close the month", "r-3", "f-1", "Lock first.", "x"),
        ("Print it", "r-4", "", "", "x"),
    ]


def test_a_silenced_test_is_to_be_run_again():
    silenced = HotIssueDetail("pytest", "tests/test_a.py::test_b", silenced="skipped")
    told = audit(history((SINCE, "", added(item("h-1", "hot_issue", detail=silenced)))), SINCE, "/news")
    assert [todo.text for todo in told.todo] == ["Run tests/test_a.py::test_b again."]


def test_a_repeat_that_was_refused_is_not_a_failure():
    calls = [ToolCallExecuted(call_id=f"c-{n}", tool="send", status="DENIED", repeats=n) for n in (0, 1)]
    told = audit(history(*((TODAY, "r-1", call) for call in calls)), SINCE)
    assert [(one.what, one.times) for one in told.failed] == [("send DENIED", 1)]
