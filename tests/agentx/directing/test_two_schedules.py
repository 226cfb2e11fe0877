"""Two directed schedules in one workspace: nothing of one reaches the other, and each gets its whole brief."""

import shutil
from datetime import datetime, timedelta

import msgspec
import pytest

from agentx import Workspace
from agentx.agents.turn import DueTime
from agentx.directing.directed_runs import run_directed
from agentx.directing.director import Director
from agentx.directing.executors import Function, Outcome
from agentx.scheduling import schedules
from agentx.scheduling.schedules import Means, carry_out_due
from agentx.storage.events.schedule_events import ScheduleSet
from agentx.storage.events.types import Draft, UserMessageSent
from agentx.synthesis.directing import fields
from agentx.synthesis.directing.acts import Occasion
from agentx.synthesis.state.state import RECENT_RUNS
from tests.agentx.directing.test_director import Down, directive, events
from tests.agentx.test_judging import Model

SOIL = ScheduleSet(
    id="soil",
    cron="0 7 * * *",
    task="Measure the soil of all beds. Never water the cactus.",
    zone="America/New_York",
    directed=True,
    agent="gardener",
)
PARTS = ScheduleSet(
    id="parts",
    cron="0 * * * *",
    task="Order the missing parts. Always write the order in German.",
    zone="Europe/Berlin",
    directed=True,
)


@pytest.fixture
def two(ws):
    schedules.add(ws, SOIL)
    schedules.add(ws, PARTS)
    return ws


def run(ws, schedule, due="", model=None, work=lambda assignment: "Did it.", functions=None, files=False):
    made = run_directed(
        ws.engine, Function("f", work), functions, model=model, due=DueTime(schedule, due), files=files
    )
    return made.prompt


def test_words_and_demands_of_a_task_reach_its_own_runs_only(two):
    two.say("Write short sentences. Never mention prices.")
    soil, parts = run(two, "soil"), run(two, "parts")
    for own, other, prompt in ((SOIL, PARTS, soil), (PARTS, SOIL, parts)):
        assert own.task.partition(". ")[0] in prompt
        assert "Never mention prices" in prompt
        for sentence in other.task.split(". "):
            assert sentence.rstrip(".") not in prompt
    assert "Hold to this:\n- Never water the cactus" in soil
    shown = Director(two.engine, occasion=Occasion(schedule="parts")).question(two.state, "x")[1].content
    assert "cactus" not in shown
    assert "in German" in shown


def test_a_demand_of_one_task_does_not_end_or_bind_that_of_another(ws):
    schedules.add(ws, msgspec.structs.replace(SOIL, task="Look. Always use tabs."))
    schedules.add(ws, msgspec.structs.replace(PARTS, task="Look. Never use tabs."))
    assert "Always use tabs" in run(ws, "soil")
    prompt = run(ws, "parts")
    assert "Never use tabs" in prompt
    assert "Always use tabs" not in prompt


def test_runs_results_and_checkpoints_are_counted_for_the_own_schedule(two):
    told = directive(
        "{{run_number}} {{last_summary}} {{failures}}",
        valid_for_runs=3,
        policy={"dynamic_fields": {"last_summary": "last_summary(default=none)"}},
        checkpoints_to_create=[{"type": "milestone", "text": "Soil is wet."}],
    )
    model = Model(told)
    run(two, "soil", model=model)
    run(two, "parts", work=lambda _: Outcome(status="FAILED", reason="no net", summary="Parts failed."))
    assert run(two, "soil", model=model).startswith('2 "Did it." 0')
    state = two.state
    assert (state.directives["soil"].runs, state.directives["parts"].runs) == (2, 1)
    assert not Director(two.engine, occasion=Occasion(schedule="soil")).decide().direct
    assert (
        Director(two.engine, occasion=Occasion(schedule="parts")).decide().why.startswith("executor_failed")
    )
    assert (
        "Soil is wet"
        in Director(two.engine, occasion=Occasion(schedule="soil")).question(state, "x")[1].content
    )
    assert (
        "Soil is wet"
        not in Director(two.engine, occasion=Occasion(schedule="parts")).question(state, "x")[1].content
    )


def test_what_one_did_and_left_open_is_not_listed_for_the_other(two):
    def send(title: str) -> str:
        """Send it."""
        return "sent"

    def work(assignment):
        return assignment.tools.call("send", {"title": "Soil is dry"}).output

    run(two, "soil", work=work, functions={"send": send})
    assert "Soil is dry" in run(two, "soil", functions={"send": send})
    assert "Soil is dry" not in run(two, "parts", functions={"send": send})


def test_a_rare_schedule_keeps_its_runs_beside_a_frequent_one(two):
    run(two, "soil", work=lambda _: "Measured 7 beds.")
    for _ in range(RECENT_RUNS + 3):
        run(two, "parts")
    past = Director(two.engine, occasion=Occasion(schedule="soil")).past()
    assert [one.summary for one in past.runs] == ["Measured 7 beds."]
    assert len(Director(two.engine, occasion=Occasion(schedule="parts")).past().runs) == RECENT_RUNS


def test_the_prompt_states_the_due_time_in_the_zone_of_the_schedule(two):
    prompt = run(two, "soil", "2026-03-02T02:30:00.000000Z")
    assert "This run is due Sunday 2026-03-01 21:30 (America/New_York)." in prompt
    director = Director(two.engine, occasion=Occasion(schedule="soil", due="2026-03-02T02:30:00.000000Z"))
    past = msgspec.structs.replace(director.past(), at="2026-03-02T02:31:00.000000Z")
    assert fields.resolve(fields.parse("today"), past) == "2026-03-01"
    assert fields.resolve(fields.parse("due"), past) == "Sunday 2026-03-01 21:30 (America/New_York)"


def test_a_task_that_is_set_again_adds_nothing_and_another_one_replaces_it(two):
    schedules.add(two, msgspec.structs.replace(SOIL, jitter_s=5))
    assert len(events(two, UserMessageSent)) == 2
    run(two, "soil")
    schedules.add(two, msgspec.structs.replace(SOIL, task="Count the snails. Never step on one."))
    assert (
        Director(two.engine, occasion=Occasion(schedule="soil"))
        .decide()
        .why.startswith("user_instructions_changed")
    )
    assert (
        not Director(two.engine, occasion=Occasion(schedule="parts"))
        .decide()
        .why.startswith("user_instructions_changed")
    )
    prompt = run(two, "soil")
    assert "Count the snails" in prompt
    assert "Never step on one" in prompt
    assert "cactus" not in prompt
    assert "soil" not in prompt
    assert two.state.directives.keys() == {"soil"}
    schedules.remove(two, "soil")
    assert two.state.directives == {}
    schedules.add(two, SOIL)
    again = run(two, "soil")
    assert "snails" not in again
    assert "Never water the cactus" in again


def test_a_task_of_any_length_reaches_its_runs_whole(ws):
    task = "Order the parts. " + "The list is long. " * 3_000 + "Wait for her word before you order anything."
    for _ in range(2):
        schedules.add(ws, msgspec.structs.replace(PARTS, task=task))
    assert len(events(ws, UserMessageSent)) == 1
    assert "Wait for her word before you order anything." in run(ws, "parts")
    schedules.add(ws, msgspec.structs.replace(PARTS, task=task + " And for mine."))
    assert "And for mine." in run(ws, "parts")


def test_a_task_of_an_earlier_version_is_taken_for_its_schedule_alone(ws):
    for rule in (SOIL, PARTS):
        ws.record(Draft(data=rule, actor=ws.settings.actor))
        ws.say(rule.task)  # earlier versions named no schedule
    prompt = run(ws, "parts")
    assert "missing parts" in prompt
    assert "Measure the soil" not in prompt
    schedules.add(ws, SOIL)
    assert run(ws, "soil").count("Measure the soil") == 1


def test_a_replay_gives_the_same_state_and_decisions(two, lexical):
    run(two, "soil", model=Down())
    run(two, "parts")
    digest = two.status().digest
    decisions = [Director(two.engine, occasion=Occasion(schedule=one)).decide() for one in ("soil", "parts")]
    assert [one.direct for one in decisions] == [True, False]
    root = two.root
    two.close()
    shutil.rmtree(root / ".agentx")
    with Workspace.open(root, settings=lexical) as again:
        assert again.status().digest == digest
        assert [
            Director(again.engine, occasion=Occasion(schedule=one)).decide() for one in ("soil", "parts")
        ] == decisions


def test_the_scheduler_gives_each_due_time_its_own_prompt(two):
    prompts = []
    executor = Function("f", lambda assignment: prompts.append(assignment.prompt) or "ok")
    since = datetime.fromisoformat(two.state.schedules["soil"].since)
    carry_out_due(two, since + timedelta(days=1, minutes=1), means=Means(executor=executor))
    assert [("Measure the soil" in one, "missing parts" in one) for one in prompts] in (
        [(True, False), (False, True)],
        [(False, True), (True, False)],
    )


def test_a_demand_of_another_task_denies_no_call(ws):
    schedules.add(ws, msgspec.structs.replace(SOIL, task="Look. Never use Redis."))
    schedules.add(ws, PARTS)

    def shell(command: str) -> str:
        """Run it."""
        return "ran"

    def work(assignment):
        file = assignment.tools.call("write_file", {"path": "requirements.txt", "content": "redis==5\n"})
        return [assignment.tools.call("shell", {"command": "pip install redis"}).status, file.status]

    results = []
    for schedule in ("soil", "parts"):
        run(
            ws,
            schedule,
            work=lambda a: results.append(work(a)) or "ok",
            functions={"shell": shell},
            files=True,
        )
    assert results == [["DENIED", "DENIED"], ["SUCCEEDED", "SUCCEEDED"]]
