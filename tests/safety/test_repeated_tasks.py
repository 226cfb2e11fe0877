"""The task of a run that is started again is the same work again: it makes no rule."""

import io
import json
from datetime import datetime, timedelta

import pytest

from agentx import Workspace
from agentx.cli.main import main
from agentx.scheduling import schedules
from agentx.storage.events.schedule_events import ScheduleSet
from agentx.storage.events.types import Draft, RunEnded, RunStarted
from agentx.synthesis.model.scripted import ScriptedModel

TASK = "Translate the menu for each of our 3 restaurants."
"""A sentence with a sign that it lasts, so that it is a candidate; in the form of an order."""


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTX_NO_SERVER", "1")
    monkeypatch.setattr("sys.stdin", io.StringIO())
    Workspace.create(tmp_path / "menu").close()
    return tmp_path / "menu"


@pytest.fixture
def call(root, capsys):
    def call(*words):
        code = main(["-C", str(root), *map(str, words)])
        out, err = capsys.readouterr()
        assert code == 0, out + err
        return out

    return call


@pytest.fixture
def run(call, tmp_path):
    script = tmp_path / "turns.jsonl"

    def run(message, *words):
        script.write_text(json.dumps({"answer": "Done."}) + "\n")
        return call("run", "--model", f"script:{script}", *words, "--", message)

    return run


@pytest.fixture
def rules(call):
    """The texts of the rules and decisions with a status."""

    def rules(status):
        items = json.loads(call("--json", "memory", "list", "--all"))
        kinds = ("constraint", "rejection", "decision", "knowledge")
        return [
            one["text"] for one in items if one["kind"] in kinds and one.get("status", "active") == status
        ]

    return rules


@pytest.mark.parametrize(
    "task",
    [
        TASK,
        "Check every page of the menu for typing errors.",
        "please don't use emojis",
        "Don't add comments.\nKeep the functions short.",
        "We keep the prices in euros.",
    ],
)
@pytest.mark.parametrize("times", [2, 3])
def test_a_run_started_again_makes_no_rule(run, rules, task, times):
    for _ in range(times):
        run(task)
    assert rules("active") == []


@pytest.mark.parametrize("order", ["say run", "run say", "run say run", "run run say run"])
def test_the_task_of_a_run_is_no_repetition_of_what_was_said_once(call, run, rules, order):
    for how in order.split():
        run(TASK) if how == "run" else call("say", TASK)
    assert rules("active") == []
    assert rules("candidate") == [TASK]


@pytest.mark.parametrize("order", ["say say", "say run say", "run say run say"])
def test_an_order_that_is_said_twice_is_a_rule(call, run, rules, order):
    for how in order.split():
        run(TASK) if how == "run" else call("say", TASK)
    assert rules("active") == [TASK]


def test_an_explicit_rule_in_a_task_counts_at_once(run, rules):
    run("Translate the menu. From now on, never use emojis.")
    assert rules("active") == ["From now on, never use emojis."]


def test_a_candidate_that_a_person_dropped_is_not_brought_back_by_a_run(run, rules, root):
    run(TASK)
    with Workspace.open(root) as ws:
        (item,) = ws.memory(status="candidate")
        ws.review(item.id, accept=False)
    run(TASK)
    assert rules("active") == rules("candidate") == []


@pytest.mark.parametrize("directed", [False, True])
def test_the_task_of_a_schedule_is_repeated_as_work(root, rules, tmp_path, directed):
    script = tmp_path / "turns.jsonl"
    script.write_text("".join(json.dumps({"answer": "Done."}) + "\n" for _ in range(3)))
    with Workspace.open(root) as ws:
        for hour in range(2 if directed else 1):
            rule = ScheduleSet(
                id="menu", cron=f"{hour} * * * *", task=TASK if hour == 0 else f"{TASK} ", directed=directed
            )
            schedules.add(ws, rule)
        if not directed:
            (known,) = ws.state.schedules.values()
            for hour in (2, 4, 6):
                at = datetime.fromisoformat(known.since) + timedelta(hours=hour)
                schedules.carry_out_due(ws, at, means=schedules.Means(model=ScriptedModel(script)))
            assert len(ws.state.runs) == 3
    assert rules("active") == []


def test_in_histories_without_the_mark_a_run_names_its_task(call, rules, root):
    """Earlier versions recorded the message of a run like any other message."""
    with Workspace.open(root) as ws:
        said = ws.say(TASK)
        ws.record(
            Draft(
                data=RunStarted(task=ws.body(TASK), agent="main", model="m"),
                actor="agent:main",
                run="r-1",
                cause=said.seq,
            )
        )
        ws.record(Draft(data=RunEnded(status="COMPLETED"), actor="agent:main", run="r-1"))
    call("say", TASK)
    assert rules("active") == []
    call("say", TASK)
    assert rules("active") == [TASK]
