"""``agentx memory maintain``: told so that a person sees what became of each rule and why, and taken back by one word."""

import pytest

from agentx import Workspace
from agentx.synthesis.memory.conclusions import Add
from agentx.synthesis.memory.items import FlowDetail, MemoryItem, RuleDetail


@pytest.fixture
def ruled(call, root):
    """A workspace with two rules that say the same, and another."""
    for text in (
        "Run the unit tests before each deploy.",
        "Before every deploy, run the tests.",
        "Use ruff.",
    ):
        assert call("memory", "add", text, "--kind", "rule", "-C", root).code == 0
    return root


@pytest.fixture
def broken_rule(ruled):
    """A critical rule that was broken twice; its id."""
    detail = RuleDetail(violations=2)
    item = MemoryItem(id="r-90", kind="rule", text="Read first.", score=9.5, trust="user", detail=detail)
    with Workspace.open(ruled) as ws:
        ws.engine.synthesizer.record([Add(item)], "test")
    return item.id


def test_it_tells_what_became_of_each_item_and_why(call, ruled):
    done = call("memory", "maintain", "-C", ruled)
    assert done.code == 0
    assert "1 stronger, 1 merged." in done.out
    assert "5 → 5.5" in done.out
    assert "says the same." in done.out
    assert "Rules: 2 active. Event " in done.out
    assert "nothing to change" in call("memory", "maintain", "-C", ruled).out


def test_a_dry_run_changes_nothing(call, ruled):
    assert "dry run: nothing was changed" in call("memory", "maintain", "--dry-run", "-C", ruled).out
    rules = call("memory", "list", "--kind", "rule", "--json", "-C", ruled).json
    assert [rule.get("status", "active") for rule in rules] == ["active"] * 3


def test_it_is_taken_back_and_then_there_is_nothing_left(call, ruled):
    assert call("memory", "maintain", "--undo", "-C", ruled).code == 2
    call("memory", "maintain", "-C", ruled)
    done = call("memory", "maintain", "--undo", "-C", ruled)
    assert done.code == 0
    assert "was taken back." in done.out
    assert len(call("memory", "list", "--kind", "rule", "--json", "-C", ruled).json) == 3
    assert (
        "No maintenance has changes that are still in effect"
        in call("memory", "maintain", "--undo", "-C", ruled).err
    )


def test_programs_are_told_all_of_it(call, ruled):
    told = call("memory", "maintain", "--json", "-C", ruled).json
    assert told["dry_run"] is False
    assert [one["what"] for one in told["maintained"]["upkeep"]["done"]] == ["stronger", "merged"]
    assert told["maintained"]["active"] == 2
    items = call("memory", "maintain", "--undo", "--json", "-C", ruled).json
    assert {item["kind"] for item in items} == {"rule"}


def test_a_rule_shows_its_score_and_how_often_it_was_broken(call, ruled, broken_rule):
    shown = call("memory", "show", broken_rule, "-C", ruled).out
    assert "9.5, critical, broken 2 times" in shown


def test_a_rule_shows_how_many_tasks_in_a_row_passed_it_over(call, ruled):
    call("memory", "maintain", "-C", ruled)
    rules = call("memory", "list", "--kind", "rule", "--json", "-C", ruled).json
    (rule,) = (one["id"] for one in rules if "deploy" in one["text"])
    for _ in range(2):
        assert call("gate", "post", "Deployed it to production.", "--pass", "-C", ruled).code == 0
    assert "1 passed over" in call("memory", "maintain", "-C", ruled).out.replace("\n", " ")
    assert "passed over by the last 2 tasks" in call("memory", "show", rule, "-C", ruled).out


def test_flows_that_do_not_work_are_told(call, ruled):
    detail = FlowDetail(("Copy it.",), failed=12)
    item = MemoryItem(id="f-91", kind="flow", text="deploy", trust="user", detail=detail)
    with Workspace.open(ruled) as ws:
        ws.engine.synthesizer.record([Add(item)], "test")
    assert (
        "Flow f-91: retire it, it failed all 12 times."
        in call("memory", "maintain", "--dry-run", "-C", ruled).out
    )


def test_a_merged_wording_is_shown_with_the_rule(call, ruled):
    call("memory", "maintain", "-C", ruled)
    rules = call("memory", "list", "--kind", "rule", "--json", "-C", ruled).json
    shown = call("memory", "show", rules[0]["id"], "-C", ruled).out
    assert "also worded" in shown
    assert "Before every deploy, run the tests." in shown
