"""Which tasks are opportunities of a rule, and what they did with it."""

import pytest

from agentx.storage.events.types import (
    AgentMessageSent,
    Body,
    Event,
    FileChange,
    RunEnded,
    RunStarted,
    TaskGraded,
    ToolCallExecuted,
    UserMessageSent,
)
from agentx.synthesis.gates.opportunities import outcomes
from agentx.synthesis.memory.items import MemoryItem, RuleDetail, Scope
from agentx.synthesis.state.state import State

SMOKE = "Lesson learned: run the smoke tests before each deploy."


def rules(*texts, **fields):
    items = [
        MemoryItem(id=f"r-{n}", kind="rule", text=text, detail=RuleDetail(), **fields)
        for n, text in enumerate(texts, 1)
    ]
    return State(items={item.id: item for item in items})


def said(text):
    return UserMessageSent(body=Body(text))


def ran(command, **fields):
    return ToolCallExecuted(call_id="c", tool="run_command", status="SUCCEEDED", command=command, **fields)


def wrote(path, **fields):
    change = FileChange(path=path, before="a", after="b")
    return ToolCallExecuted(call_id="c", tool="write_file", status="SUCCEEDED", changes=(change,), **fields)


def counted(state, *facts):
    """What each task did with each rule: kept, broke or passed it over."""
    events = []
    for seq, fact in enumerate(facts, 1):
        run, data = fact if isinstance(fact, tuple) else ("", fact)
        actor = "user" if isinstance(data, UserMessageSent) else "agent:main"
        kind = type(data).__name__
        events.append(
            Event(seq=seq, at=f"2026-01-01T00:00:{seq:02}Z", type=kind, v=1, actor=actor, run=run, data=data)
        )
    words = {(True, False): "kept", (False, True): "broke", (False, False): "over"}
    found = outcomes(state, events)
    return [(one.rule, "unknown" if one.unknown else words[one.kept, one.broke]) for one in found]


@pytest.mark.parametrize(
    ("rule", "task"),
    [
        (SMOKE, "Deploy version 3 to the shop."),
        ("When changing the schema, write a migration.", "Change the schema of the invoices."),
        ("Use UTC in all timestamps.", "Add timestamps to the export."),
        ("For the newsletter, ask Kim first.", "Send the newsletter."),
        ("Verify the invoice twice.", "Verify the invoice of May."),
    ],
)
def test_a_task_with_a_rules_clause_or_half_its_words_is_an_opportunity(rule, task):
    assert counted(rules(rule), said(task), ran("./go.sh")) == [("r-1", "over")]


@pytest.mark.parametrize(
    ("rule", "task"),
    [
        (SMOKE, "Run the linter."),
        ("When changing the schema, write a migration.", "Change the colour of the button."),
        ("Use UTC in all timestamps.", "Use a smaller font."),
        ("Lesson learned: verify the invoice twice.", "Tell me about the lesson that we learned."),
    ],
)
def test_another_task_is_not(rule, task):
    assert counted(rules(rule), said(task), ran("./go.sh")) == []


def test_a_task_counts_once_and_a_message_without_actions_does_not():
    state = rules(SMOKE)
    assert counted(state, said("Deploy it."), ran("./deploy.sh"), ran("./deploy.sh --again")) == [
        ("r-1", "over")
    ]
    assert counted(state, said("Why did the deploy fail?"), ran("git log")) == []
    run = [("x", RunStarted(task=Body("Deploy it."), agent="main", model="m")), ("x", ran("./deploy.sh"))]
    assert counted(state, said("Deploy it."), *run, ("x", RunEnded(status="COMPLETED"))) == [("r-1", "over")]


def test_its_words_in_what_was_done_keep_it():
    task = (said("Deploy it."), ran("make smoke-tests"), ran("./deploy.sh"))
    assert counted(rules(SMOKE), *task) == [("r-1", "kept")]
    graded = TaskGraded(task="Deployed after the smoke tests.", passed=True)
    assert counted(rules(SMOKE), said("Deploy it."), ran("./deploy.sh"), graded) == [("r-1", "kept")]
    never = "Never run the smoke tests before a deploy."
    assert counted(rules(never), *task) == [("r-1", "over")]


def test_a_check_that_ran_is_an_opportunity_and_its_last_result_counts():
    state = rules("Paint the shed.")
    assert counted(state, said("Go on."), wrote("a.py", kept=("r-1",))) == [("r-1", "kept")]
    assert counted(state, said("Go on."), wrote("a.py", broke=("r-1",))) == [("r-1", "broke")]
    denied = ToolCallExecuted(call_id="c", tool="write_file", status="DENIED", denied_by=("r-1",))
    assert counted(state, said("Go on."), denied) == [("r-1", "broke")]
    assert counted(state, said("Go on."), denied, wrote("a.py", kept=("r-1",))) == [("r-1", "kept")]


def test_what_was_not_done_shows_nothing_of_a_prohibition():
    never = rules("Never deploy the shop on a Friday.")
    assert counted(never, said("Deploy the shop."), ran("./go.sh")) == [("r-1", "unknown")]
    done = ran("./deploy.sh shop --day friday")
    assert counted(never, said("Deploy the shop."), done) == [("r-1", "over")]


def test_the_condition_of_a_prohibition_is_what_it_asks_for():
    never = rules("Never deploy the shop without a backup of the ledger.")
    task = said("Deploy the shop, then look at the ledger.")
    assert counted(never, task, ran("./deploy.sh shop")) == [("r-1", "unknown")]
    assert counted(never, task, ran("./backup.sh ledger")) == [("r-1", "kept")]


def test_the_check_of_an_answer_counts():
    state = rules("Paint the shed.")
    for fields, outcome in (({"kept": ("r-1",)}, "kept"), ({"broke": ("r-1",)}, "broke")):
        answer = AgentMessageSent(body=Body("Done."), final=True, **fields)
        assert counted(state, said("Go on."), ran("./go.sh"), answer) == [("r-1", outcome)]


def test_a_denied_call_keeps_no_rule():
    denied = ToolCallExecuted(
        call_id="c", tool="write_file", status="DENIED", denied_by=("r-2",), kept=("r-1",)
    )
    assert counted(rules("Paint the shed.", "Oil the gate."), said("Go on."), denied) == [("r-2", "broke")]


def test_a_grade_decides():
    state = rules("Paint the shed.")
    kept, broke = (TaskGraded(task="Done.", passed=True, **{name: ("r-1",)}) for name in ("kept", "broke"))
    assert counted(state, said("Go on."), ran("./go.sh"), kept) == [("r-1", "kept")]
    assert counted(state, kept, broke) == [("r-1", "kept"), ("r-1", "broke")]


def test_a_scope_is_a_situation_and_limits_it():
    scoped = rules(SMOKE, scope=Scope(paths=("web/**",)))
    assert counted(scoped, said("Go on."), wrote("web/a.html")) == [("r-1", "over")]
    assert counted(scoped, said("Go on."), wrote("docs/deploy.md")) == []


def test_a_rule_has_no_opportunity_before_it_was_made():
    assert counted(rules(SMOKE, created_seq=9), said("Deploy it."), ran("./deploy.sh")) == []
