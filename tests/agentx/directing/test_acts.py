"""Acts that are done once: what is the same act, what is refused, and what the user says of an unknown outcome."""

import json
import os
import shutil
import signal
import subprocess
import sys
import unicodedata

import pytest

from agentx import Workspace, act
from agentx.agents.turn import DueTime
from agentx.cli.main import main
from agentx.directing.act_reports import ActReports
from agentx.directing.directed_runs import run_directed
from agentx.directing.executors import Command, Function
from agentx.policy.done_once import AlreadyDone, check, report, say_done
from agentx.policy.unknown_outcomes import settle, unknown
from agentx.storage.errors import UsageError
from agentx.storage.events.act_events import ActDone
from agentx.storage.events.schedule_events import ScheduleSet
from agentx.storage.events.types import Draft, ToolCallExecuted
from agentx.synthesis.directing.acts import Listed, Occasion, listing
from agentx.tools.functions import FunctionTools


class World:
    """What the functions of a test have done."""

    def __init__(self, ws):
        self.ws, self.done = ws, []

    def function(self, name="send", *, fails=(), **declared):
        def send(
            patient: str, appointment: int = 0, order: dict | None = None, titles: list[str] | None = None
        ) -> str:
            """Send."""
            call = (patient, appointment, order, titles)
            self.done.append(call)
            if len(self.done) in fails:
                raise ConnectionError("550 no such mailbox")
            return "sent"

        return {name: act(send, **declared) if declared else send}

    def run(self, functions, *calls, due=None):
        """Carry out a run that makes some calls; the status and output of each."""
        results = []

        def work(assignment):
            for name, arguments in calls:
                results.append(assignment.tools.call(name, arguments))
            return "done"

        run_directed(self.ws.engine, Function("f", work), functions, due=due or DueTime())
        return [(one.status, one.output) for one in results]

    def statuses(self, functions, *arguments, due=None):
        return [status for status, _ in self.run(functions, *(("send", one) for one in arguments), due=due)]


@pytest.fixture
def world(ws):
    return World(ws)


LIVE = "history.jsonl"
PAIR = ("patient", "appointment")
ANN = {"patient": "Ann", "appointment": 4711}


def test_a_repeat_is_refused_in_the_same_run_and_in_the_next_and_says_when_it_was_done(world):
    functions = world.function(key=PAIR)
    other = {"patient": "Ann", "appointment": 4712}
    assert world.statuses(functions, ANN, other, {**ANN, "titles": ["again"]}) == [
        "SUCCEEDED",
        "SUCCEEDED",
        "DENIED",
    ]
    [(status, output)] = world.run(functions, ("send", ANN))
    assert status == "DENIED"
    assert output.startswith('Already done: send patient="Ann", appointment=4711 on 20')
    assert output.endswith("(run r-1).")
    assert len(world.done) == 2


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ({"appointment": 1}, {"appointment": 1.0}, True),
        ({"patient": "1"}, {"patient": "2"}, False),
        (
            {"patient": unicodedata.normalize("NFC", "Zoë")},
            {"patient": unicodedata.normalize("NFD", "Zoë")},
            True,
        ),
        ({"order": {"id": 1, "sum": 2}}, {"order": {"sum": 2.0, "id": 1}}, True),
        ({"order": {"id": "1"}}, {"order": {"id": 1}}, False),
        ({}, {"appointment": 0}, True),
        ({"titles": ["a", "b"]}, {"titles": ["b", "a"]}, False),
        ({"order": {"id": True}}, {"order": {"id": 1}}, False),
    ],
)
def test_all_arguments_make_the_act_unless_it_has_a_key(world, first, second, same):
    functions = world.function(window="once")
    base = {"patient": "Ann"}
    assert world.statuses(functions, base | first, base | second) == [
        "SUCCEEDED",
        "DENIED" if same else "SUCCEEDED",
    ]


def test_a_key_may_be_a_path_into_an_object(world):
    functions = world.function(key=["order.id"])
    orders = [{"patient": "A", "order": {"id": 7, "n": n}} for n in (1, 2)]
    assert world.statuses(functions, *orders) == ["SUCCEEDED", "DENIED"]
    [(status, output)] = world.run(functions, ("send", {"patient": "A", "order": {"n": 1}}))
    assert (status, output) == ("FAILED", "send: the call has no order.id, which is part of its key.")


def executed(ws):
    return [event.data for event in ws.events() if isinstance(event.data, ToolCallExecuted)]


def test_of_a_list_whose_entries_are_acts_those_that_were_done_are_left_out(world):
    functions = world.function(key=["titles[]"])
    lists = (["x", "y"], ["z", "y", "x"], ["x", "y", "z"], ["z", "v", "v"])
    results = world.run(functions, *(("send", {"patient": "A", "titles": titles}) for titles in lists))
    assert [titles for *_, titles in world.done] == [["x", "y"], ["z"], ["v"]]
    assert [status for status, _ in results] == ["SUCCEEDED", "SUCCEEDED", "DENIED", "SUCCEEDED"]
    (_, plain), (_, partly), (_, refused), (_, twice) = results
    assert plain == "sent"
    assert partly.startswith("sent\nLeft out, done already: send titles=")
    assert partly.count("titles=") == 2
    assert refused.startswith("Already done: ")
    assert refused.count("titles=") == 3
    assert "The rest" not in refused
    assert twice.endswith("Left out, named twice: 1.")
    first, second, *_ = executed(world.ws)
    assert (first.noted, second.arguments["titles"]) == ("", ["z"])
    assert second.noted == partly.partition("\n")[2]
    assert world.ws.engine.read_body(second.output) == "sent"


def test_a_careless_executor_that_sends_the_whole_list_every_day_misses_nothing(world):
    functions = world.function(key=["order.titles[]"], window="once")
    for day in range(1, 6):
        order = {"id": day, "titles": [f"title {number}" for number in range(day * 2)]}
        assert world.statuses(functions, {"patient": "A", "order": order}) == ["SUCCEEDED"]
    assert [order["titles"] for *_, order, _ in world.done] == [
        [f"title {day * 2}", f"title {day * 2 + 1}"] for day in range(5)
    ]
    assert [order["id"] for *_, order, _ in world.done] == [1, 2, 3, 4, 5]


def test_what_another_process_does_after_the_check_is_left_out_too(ws):
    sent = []

    def send(titles: list[str]) -> str:
        sent.append(titles)
        return "sent"

    tools = FunctionTools(ws.engine, {"send": act(send, key=["titles[]"])}, run="r-1")
    before_call = tools.gates.before_call

    def meanwhile(*given, **named):
        report(ws.engine, "send", {"titles": "x"}, Occasion(), actor="user")
        return before_call(*given, **named)

    tools.gates.before_call = meanwhile
    result = tools.call("send", {"titles": ["x", "y"]})
    assert (result.status, sent) == ("SUCCEEDED", [["y"]])
    assert 'Left out, done already: send titles="x"' in result.output


def test_a_list_that_the_function_takes_whole_only_is_refused_with_advice(ws):
    sent = []

    def send(pair: tuple[str, str]) -> str:
        sent.append(pair)
        return "sent"

    world = World(ws)
    functions = {"send": act(send, key=["pair[]"])}
    _, (status, output) = world.run(
        functions, *(("send", {"pair": pair}) for pair in (["a", "b"], ["b", "c"]))
    )
    assert status == "DENIED"
    assert 'pair="b"' in output
    assert output.endswith("The rest was not done: make the call without these.")
    assert sent == [("a", "b")]


def test_of_a_call_that_needs_approval_the_user_sees_what_is_not_left_out(ws):
    ws.configure("tools.approve", '["send"]')
    with Workspace.open(ws.root) as again:
        world = World(again)
        functions = world.function(key=["titles[]"])
        report(again.engine, "send", {"titles": "x"}, Occasion(), actor="user")
        both = {"patient": "A", "titles": ["x", "y"]}
        assert world.statuses(functions, both, both) == ["DENIED", "DENIED"]
        [call] = again.state.pending.values()
        assert call.arguments["titles"] == ["y"]
        again.approve(call.call_id)
        assert world.statuses(functions, both) == ["SUCCEEDED"]
        assert [titles for *_, titles in world.done] == [["y"]]


LISTS = """
import os, signal, sys
from pathlib import Path
from agentx import Workspace, act
from agentx.directing.directed_runs import run_directed
from agentx.directing.executors import Function

@act(key=("titles[]",))
def send(titles: list[str]{parameter}) -> str:
    with open(sys.argv[2], "a") as file:
        file.write(f"{{','.join(titles)}} {value}\\n")
    if sys.argv[3] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    return "sent"

def work(assignment):
    result = assignment.tools.call("send", {{"titles": sys.argv[4].split(",")}})
    print(result.status, result.output, flush=True)

with Workspace.open(Path(sys.argv[1])) as ws:
    run_directed(ws.engine, Function("f", work), {{"send": send}})
"""


def sent_lists(ws, tmp_path, how, titles, *, key=False):
    code = LISTS.format(
        parameter=", *, idempotency_key: str" if key else "", value="{idempotency_key}" if key else ""
    )
    words = [sys.executable, "-c", code, ws.root, tmp_path / "sent", how, titles]
    made = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    return made.stdout.strip(), (tmp_path / "sent").read_text().splitlines()


def test_entries_without_a_result_are_left_out_and_asked_about(ws, tmp_path):
    sent_lists(ws, tmp_path, "go", "a")
    sent_lists(ws, tmp_path, "kill", "a,b,c")
    told, sent = sent_lists(ws, tmp_path, "go", "a,b,c,d")
    assert [line.strip() for line in sent] == ["a", "b,c", "d"]
    assert told.startswith('SUCCEEDED sent\nLeft out, done already: send titles="a" on ')
    assert 'Left out, begun before and without a result: send titles="b" on ' in told
    assert told.endswith("The user is asked.")
    refused, _ = sent_lists(ws, tmp_path, "go", "a,b,c,d")
    assert refused.startswith("DENIED This began and has no result")
    assert len(unknown(ws.engine)) == 1
    say_done(ws.engine, "send", ['["b","c"]'], Occasion(), done=False)
    told, sent = sent_lists(ws, tmp_path, "go", "a,b,c,d")
    assert sent[-1].strip() == "b,c"


def asked(ws, capsys):
    capsys.readouterr()
    assert main(["-C", str(ws.root), "status"]) == 0
    return capsys.readouterr().out


def test_each_entry_without_a_result_is_settled_by_itself(ws, tmp_path, capsys):
    sent_lists(ws, tmp_path, "kill", "a,b,c")
    sent_lists(ws, tmp_path, "go", "x")
    assert """agentx done send 'titles=["a", "b", "c"]'""" in asked(ws, capsys)
    done = ["-C", str(ws.root), "done"]
    assert main([*done, "--not", "send", "titles=b"]) == 0
    assert capsys.readouterr().out == 'Not done: send titles="b"\n'
    assert """agentx done send 'titles=["a", "c"]'""" in asked(ws, capsys)
    ws.engine.write_path.refresh()
    said, sent = sent_lists(ws, tmp_path, "go", "a,b,c")
    assert sent[-1].strip() == "b"
    assert 'begun before and without a result: send titles="a" on ' in said
    assert "(run r-1); send titles" in said
    assert main([*done, "send", "titles=a"]) == 0
    assert main([*done, "--check", "send", "titles=a"]) == 3
    assert main([*done, "--check", "send", "titles=c"]) == 1
    assert "agentx done send titles=c" in asked(ws, capsys)
    assert main([*done, "--not", "send", "c"]) == 0
    assert "was it done" not in asked(ws, capsys)
    assert main([*done, "--check", "send", "titles=c"]) == 0
    assert main([*done, "--check", "send", "titles=a"]) == 3
    _, sent = sent_lists(ws, tmp_path, "go", "a,b,c")
    assert sent[-1].strip() == "c"


def test_a_list_of_entries_settles_those_and_the_whole_call_can_be_settled_by_its_id(ws, tmp_path):
    sent_lists(ws, tmp_path, "kill", "a,b,c,d")
    sent_lists(ws, tmp_path, "go", "x")
    with pytest.raises(UsageError, match="Several acts fit, give all values of one, or of each in a list"):
        say_done(ws.engine, "send", [], Occasion(), done=True)
    with pytest.raises(UsageError, match='send titles="z" is neither on record'):
        say_done(ws.engine, "send", ['titles=["a","z"]'], Occasion(), done=False)
    said = say_done(ws.engine, "send", ['titles=["a","b","z"]'], Occasion(), done=True)
    assert said.act == 'send titles="a"; send titles="b"'
    [call] = unknown(ws.engine)
    assert [act.key["titles"] for act in ws.engine.acts.begun_by(call)] == ["c", "d"]
    settle(ws.engine, call.call_id, succeeded=False)
    _, sent = sent_lists(ws, tmp_path, "go", "a,b,c,d,z")
    assert sent[-1].strip() == "c,d"


def test_entries_of_a_call_that_may_be_made_again_are_not_left_out(ws, tmp_path):
    sent_lists(ws, tmp_path, "go", "a", key=True)
    sent_lists(ws, tmp_path, "kill", "b,c", key=True)
    _, sent = sent_lists(ws, tmp_path, "go", "a,b,c", key=True)
    assert len(sent) == 3
    assert sent[1] == sent[2]
    assert unknown(ws.engine) == []


def test_a_refused_repeat_is_described_as_one_and_gives_no_commit_its_subject(world):
    world.run(world.function(key=PAIR), ("send", ANN), ("send", ANN))
    *_, repeat = (one for one in world.ws.events() if isinstance(one.data, ToolCallExecuted))
    assert repeat.describe().startswith("Deny send: Already done: send patient=")
    assert not [info for info in world.ws.engine.git.repo.log() if info.subject.startswith("Deny")]


def test_a_failed_act_may_be_done_again(world):
    functions = world.function(key=PAIR, fails=[1])
    assert world.statuses(functions, ANN, ANN, ANN) == ["FAILED", "SUCCEEDED", "DENIED"]


def test_a_function_without_a_declaration_is_never_refused(world):
    assert world.statuses(world.function(), ANN, ANN) == ["SUCCEEDED", "SUCCEEDED"]


def test_a_function_that_only_looks_is_never_refused_announced_or_done(world):
    assert world.statuses(world.function(window="never"), ANN, ANN) == ["SUCCEEDED", "SUCCEEDED"]
    counts = world.ws.state.counts
    assert (counts.get("ActDone"), counts.get("ToolCallRequested")) == (None, None)


@pytest.mark.parametrize(
    ("declared", "match"),
    [
        (
            {"key": ["nobody"]},
            "'nobody', which is not one of its arguments: patient, appointment, order, titles",
        ),
        ({"window": "week"}, "an unknown window, 'week'. Windows: once, due, day, never"),
        ({"key": ["patient", "order."]}, "has an empty part"),
        ({"key": ["titles[]", "order[]"]}, "Only one part"),
        ({"key": ["titles[].sku"]}, "'titles[].sku': a path behind [] is not supported. With titles[], each"),
    ],
)
def test_a_declaration_that_cannot_be_used_fails_when_the_tools_are_made(ws, world, declared, match):
    with pytest.raises(UsageError, match=match.replace("[", r"\[").replace(".", r"\.")):
        FunctionTools(ws.engine, world.function(**declared))


def test_the_configuration_declares_acts_and_overrides_the_program(world):
    for name, value in (("key", '["patient"]'), ("window", "day")):
        assert main(["-C", str(world.ws.root), "config", "set", f"director.acts.send.{name}", value]) == 0
    with Workspace.open(world.ws.root) as again:
        world.ws = again
        functions = world.function(window="never")
        assert world.statuses(functions, ANN, {**ANN, "appointment": 2}) == ["SUCCEEDED", "DENIED"]
        assert again.state.counts["ActDone"] == 1


# --- windows ----------------------------------------------------------------------------------------------------------


def scheduled(world, zone):
    world.ws.record(
        Draft(data=ScheduleSet(id="soil", cron="0 8 * * *", task="x", zone=zone, directed=True), actor="user")
    )


def test_a_due_time_makes_the_act_new_and_a_second_run_of_the_same_does_not(world):
    scheduled(world, "Europe/Berlin")
    functions = world.function(window="due")
    first, second = (DueTime("soil", f"2026-03-0{day}T07:00:00.000000Z") for day in (2, 3))
    assert world.statuses(functions, ANN, ANN, due=first) == ["SUCCEEDED", "DENIED"]
    again = DueTime("soil", first.at, resumes="r-1")
    assert world.statuses(functions, ANN, due=again) == ["DENIED"]
    assert world.statuses(functions, ANN, due=second) == ["SUCCEEDED"]
    assert (
        world.statuses(functions, ANN) == world.statuses(functions, ANN) == ["SUCCEEDED"]
    )  # each run by itself


@pytest.mark.parametrize(
    ("zone", "dues", "statuses"),
    [
        # Berlin goes to summer time on 29 March 2026: 23:30 is 22:30 UTC the day before and 21:30 UTC on the day.
        ("Europe/Berlin", ["2026-03-28T22:30", "2026-03-28T23:30", "2026-03-29T21:59", "2026-03-29T22:01"],
         ["SUCCEEDED", "SUCCEEDED", "DENIED", "SUCCEEDED"]),
        # and back on 25 October, a day of 25 hours: from 22:00 UTC to 23:00 UTC.
        ("Europe/Berlin", ["2026-10-24T22:00", "2026-10-25T22:59", "2026-10-25T23:00"], ["SUCCEEDED", "DENIED", "SUCCEEDED"]),
        ("Pacific/Auckland", ["2026-03-01T10:59", "2026-03-01T11:00", "2026-03-02T10:59"], ["SUCCEEDED", "SUCCEEDED", "DENIED"]),
    ],
)  # fmt: skip
def test_a_day_is_one_of_the_schedules_time_zone(world, zone, dues, statuses):
    scheduled(world, zone)
    functions = world.function(key=["patient"], window="day")
    made = [
        status
        for due in dues
        for status in world.statuses(functions, ANN, due=DueTime("soil", f"{due}:00.000000Z"))
    ]
    assert made == statuses


# --- crashes and processes --------------------------------------------------------------------------------------------

CHILD = """
import os, signal, sys
from pathlib import Path
from agentx import Workspace, act
from agentx.directing.directed_runs import run_directed
from agentx.directing.executors import Command, Function

@act(key=("patient", "appointment"))
def send(patient: str, appointment: int{parameter}) -> str:
    with open(sys.argv[2], "a") as file:
        file.write(f"{{patient}} {{appointment}} {value}\\n")
    if len(sys.argv) > 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return "sent"

def work(assignment):
    for patient in ("Ann", "Bob"):
        result = assignment.tools.call("send", {{"patient": patient, "appointment": 4711}})
        print(result.status, result.output, flush=True)

with Workspace.open(Path(sys.argv[1])) as ws:
    run_directed(ws.engine, Function("f", work), {{"send": send}})
"""


def child(ws, tmp_path, *words, key=False):
    code = CHILD.format(
        parameter=", *, idempotency_key: str" if key else "", value="{idempotency_key}" if key else ""
    )
    program = tmp_path / "child.py"
    program.write_text(code)
    sent = tmp_path / "sent"
    made = subprocess.run(
        [sys.executable, program, ws.root, sent, *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return made, sent.read_text().splitlines()


def test_an_act_whose_process_was_killed_is_a_question_to_the_user_and_the_run_goes_on(ws, tmp_path):
    killed, sent = child(ws, tmp_path, "kill")
    assert (killed.returncode, len(sent)) == (-signal.SIGKILL, 1)
    made, sent = child(ws, tmp_path)
    ann, bob = made.stdout.splitlines()
    assert ann.startswith(
        "DENIED This began and has no result, so nobody knows whether it was done: send patient="
    )
    assert ann.endswith("(run r-1). The user is asked; go on with the rest.")
    assert bob == "SUCCEEDED sent"
    assert [line.split()[0] for line in sent] == ["Ann", "Bob"]
    [call] = unknown(ws.engine)
    assert say_done(ws.engine, "send", ["patient=Ann"], Occasion(), done=True).settled == call.call_id
    assert unknown(ws.engine) == []
    made, sent = child(ws, tmp_path)
    assert [line.split()[:2] for line in made.stdout.splitlines()] == [["DENIED", "Already"]] * 2
    assert len(sent) == 2


def test_the_user_says_that_it_was_not_done_and_it_is_done_again(ws, tmp_path):
    child(ws, tmp_path, "kill")
    child(ws, tmp_path)
    say_done(ws.engine, "send", ["Ann", "4711"], Occasion(), done=False)
    made, sent = child(ws, tmp_path)
    assert made.stdout.splitlines()[0] == "SUCCEEDED sent"
    assert sum(line.startswith("Ann") for line in sent) == 2  # the first one, and the one that the user wants


def test_a_function_with_an_idempotency_key_is_called_again_with_the_same_key(ws, tmp_path):
    child(ws, tmp_path, "kill", key=True)
    made, sent = child(ws, tmp_path, key=True)
    assert made.stdout.splitlines() == ["SUCCEEDED sent"] * 2
    assert sent[0] == sent[1]
    assert unknown(ws.engine) == []


@pytest.mark.parametrize(
    ("window", "asked"), [("once", [True, True]), ("day", [True, False]), ("due", [True, False])]
)
def test_a_prompt_names_an_act_without_result_as_long_as_its_window_is_open(ws, window, asked):
    def cut_off(patient: str) -> str:
        raise KeyboardInterrupt

    ws.record(Draft(data=ScheduleSet(id="s", cron="0 8 * * *", task="Send.", directed=True), actor="user"))
    declared = {"send": act(cut_off, key=["patient"], window=window)}
    send = Function("f", lambda one: one.tools.call("send", {"patient": "Ann"}).output)
    first, second = "2030-03-02T08:00:00.000000Z", "2030-03-03T08:00:00.000000Z"
    with pytest.raises(KeyboardInterrupt):
        run_directed(ws.engine, send, declared, due=DueTime("s", first))
    idle = Function("f", lambda one: "")
    again = run_directed(ws.engine, idle, declared, due=DueTime("s", first, resumes="r-1"))
    assert "The user is asked: leave them, and go on with the rest:\n- send(" in again.prompt
    assert "Look before you make one" not in again.prompt
    later = run_directed(ws.engine, idle, declared, due=DueTime("s", second))
    assert ["Nobody knows whether" in one.prompt for one in (again, later)] == asked


def test_a_call_that_may_be_made_again_is_to_be_looked_at_first(ws):
    def cut_off(patient: str, *, idempotency_key: str = "") -> str:
        raise KeyboardInterrupt

    functions = {"send": act(cut_off, key=["patient"]), "call": cut_off}
    for name in functions:
        work = Function("f", lambda one, name=name: one.tools.call(name, {"patient": "Ann"}).output)
        with pytest.raises(KeyboardInterrupt):
            run_directed(ws.engine, work, functions)
    prompt = run_directed(ws.engine, Function("f", lambda one: ""), functions).prompt
    assert "The user is asked" not in prompt
    assert all(
        f"\n- {name}(" in prompt.partition("Look before you make one of them")[2] for name in functions
    )


def test_of_two_processes_one_does_it(ws):
    declared = {"send": act(lambda patient: "sent", key=["patient"])}
    tools = [FunctionTools(ws.engine, declared, run=f"r-{number}") for number in (1, 2)]
    inner = []

    def send(patient: str) -> str:
        inner.append(tools[1].call("send", {"patient": patient}).output)  # meanwhile
        return "sent"

    first = FunctionTools(ws.engine, {"send": act(send, key=["patient"])}, run="r-1")
    assert first.call("send", {"patient": "Ann"}).status == "SUCCEEDED"
    assert inner[0].startswith("This began and has no result")
    assert tools[1].call("send", {"patient": "Ann"}).output.startswith("Already done")


@pytest.mark.parametrize("allowed", [True, False])
def test_an_act_that_needs_approval_waits_once_and_is_done_by_the_run_after_it(ws, allowed):
    ws.configure("tools.approve", '["send"]')
    with Workspace.open(ws.root) as again:
        world = World(again)
        functions = world.function(key=PAIR)
        assert world.statuses(functions, ANN, ANN) == ["DENIED", "DENIED"]
        assert world.statuses(functions, {**ANN, "titles": ["x"]}) == ["DENIED"]
        [call] = again.state.pending.values()
        again.approve(call.call_id, approved=allowed)
        assert world.statuses(functions, ANN, ANN) == (["SUCCEEDED", "DENIED"] if allowed else ["DENIED"] * 2)
        assert len(world.done) == allowed
        assert unknown(again.engine) == []


RIVAL = """
import sys
from pathlib import Path
from agentx import Workspace, act
from agentx.tools.functions import FunctionTools

@act
def send(number: int) -> str:
    with open(sys.argv[2], "a") as file:
        file.write(f"{number}\\n")
    return "sent"

with Workspace.open(Path(sys.argv[1])) as ws:
    tools = FunctionTools(ws.engine, {"send": send}, run=sys.argv[3])
    for number in range(25):
        tools.call("send", {"number": number})
"""


def test_of_processes_that_do_the_same_at_once_each_act_is_done_by_one(ws, tmp_path):
    program, sent = tmp_path / "rival.py", tmp_path / "sent"
    program.write_text(RIVAL)
    rivals = [
        subprocess.Popen([sys.executable, program, ws.root, sent, f"r-{number}"]) for number in (1, 2, 3)
    ]
    assert [rival.wait(timeout=120) for rival in rivals] == [0, 0, 0]
    assert sorted(map(int, sent.read_text().split())) == list(range(25))
    assert ws.state.counts["ActDone"] == 25
    assert unknown(ws.engine) == []


# --- reports, and the user's word -------------------------------------------------------------------------------------


def test_a_report_has_the_identity_of_a_call(world):
    functions = world.function(key=PAIR)
    occasion = Occasion(run="r-1")
    report(world.ws.engine, "send", ANN, occasion, actor="agent:executor")
    with pytest.raises(AlreadyDone):
        report(world.ws.engine, "send", dict(reversed(ANN.items())), occasion, actor="agent:executor")
    with pytest.raises(AlreadyDone):
        check(world.ws.engine, "send", ANN, occasion)
    assert world.statuses(functions, ANN) == ["DENIED"]


def test_the_user_takes_back_what_was_done_as_often_as_needed(world):
    functions = world.function(key=PAIR)
    for _ in range(3):
        assert world.statuses(functions, ANN, ANN) == ["SUCCEEDED", "DENIED"]
        say_done(world.ws.engine, "send", ["4711", "patient=Ann"], Occasion(), done=False)
    with pytest.raises(UsageError, match="neither on record as done"):
        say_done(world.ws.engine, "send", ["appointment=4711"], Occasion(), done=False)


def test_what_the_user_does_counts_for_today_whatever_the_last_run_was_due(world, capsys):
    scheduled(world, "Europe/Berlin")
    functions = world.function(key=["patient"], window="day")
    assert world.statuses(functions, ANN, due=DueTime("soil", "2026-03-02T07:00:00.000000Z")) == ["SUCCEEDED"]
    assert main(["-C", str(world.ws.root), "done", "send", "Ann"]) == 0
    assert main(["-C", str(world.ws.root), "done", "send", "Ann"]) == 3
    assert world.statuses(functions, ANN) == ["DENIED"]  # without a due time it is today, too
    capsys.readouterr()


def test_words_that_fit_several_acts_name_them(world):
    functions = world.function(key=PAIR)
    world.statuses(functions, ANN, {**ANN, "appointment": 2})
    with pytest.raises(UsageError, match=r"Several acts fit.*appointment=2.*appointment=4711"):
        say_done(world.ws.engine, "send", ["patient=Ann"], Occasion(), done=False)
    with pytest.raises(UsageError, match="send has no value for 'more'; its key is: patient, appointment"):
        say_done(world.ws.engine, "send", ["Ann", "1", "more"], Occasion(), done=True)


def test_the_user_gives_an_object_for_a_key_that_leads_into_it(world, capsys):
    config = '[director.acts.refund]\nkey = ["order.id", "order.at.line"]\n[director.acts.mail]\nkey = ["titles[]"]\n'
    (world.ws.root / "agentx.toml").write_text(config)
    call = ["-C", str(world.ws.root), "done"]
    assert main([*call, "refund", 'order={"id": 7, "at": {"line": 2}, "sum": 3}']) == 0
    assert capsys.readouterr().out == "Done: refund order.id=7, order.at.line=2\n"
    assert main([*call, "refund", "order.id=7", 'order.at={"line": 2.0}']) == 3
    assert main([*call, "refund", "order.id=7", "order.at=2"]) == 2
    assert "order.at has no line" in capsys.readouterr().err
    assert main([*call, "refund", "7", "2", "nope=3"]) == 2
    assert "refund has no value 'nope'" in capsys.readouterr().err
    for titles, status in (('["a", "b"]', 0), ('["b", "c"]', 0), ('["a", "c"]', 3), ("a", 3)):
        assert main([*call, "mail", f"titles={titles}"]) == status


def test_an_object_that_was_reported_before_the_first_run_is_the_act_of_the_code(world):
    """The command line does not know what the code declares: the run that does adopts the report."""
    functions = world.function(key=["order.id"])
    for number in (7, 8):
        say_done(world.ws.engine, "send", [f'order={{"id": {number}}}'], Occasion(), done=True)
    calls = [{"patient": "A", "order": {"id": number, "sum": 1}} for number in (7, 8, 9)]
    assert world.statuses(functions, *calls) == ["DENIED", "DENIED", "SUCCEEDED"]
    say_done(world.ws.engine, "send", ["order.id=7"], Occasion(), done=False)
    assert world.statuses(functions, *calls) == ["SUCCEEDED", "DENIED", "DENIED"]
    assert world.ws.state.counts["ActDone"] == 6  # two reports, both adopted, and two calls


def test_what_follows_an_equals_sign_in_a_bare_word_is_part_of_it(world):
    (world.ws.root / "agentx.toml").write_text('[director.acts.fetch]\nkey = ["url"]\n')
    with Workspace.open(world.ws.root) as again:
        said = say_done(again.engine, "fetch", ["https://example.org/?id=4"], Occasion(), done=True)
        assert said.act == 'fetch url="https://example.org/?id=4"'


def test_a_text_that_looks_like_a_number_stays_a_text(world):
    functions = world.function(key=["patient"])
    world.statuses(functions, {"patient": "12"})
    say_done(world.ws.engine, "send", ["34"], Occasion(), done=True)
    assert world.statuses(functions, {"patient": "34"}) == ["DENIED"]


def test_ids_of_mixed_form_are_done_once_each(ws, capsys):
    def done(*words):
        return main(["-C", str(ws.root), "done", *words])

    ids = ("4711", "A-12", "1e3", "1000", "007", "7", "1.5", "true", "-0", "9" * 16, "9" * 15)
    for words in (f"id={one}" for one in ids):
        assert done("--check", "offer", words) == 0
        assert done("offer", words) == 0
        assert done("offer", words) == 3
    for words in (f"id={one}" for one in ids):
        assert done("--check", "offer", words) == 3
        assert done("--check", "offer", words.removeprefix("id=").lstrip("-")) == 3
        assert done("--not", "offer", words) == 0
        assert done("--check", "offer", words) == 0
    keys = [json.loads(ws.engine.read_body(event.data.key))["id"] for event in read_again(ws)]
    assert keys == [4711, "A-12", "1e3", 1000, "007", 7, "1.5", "true", 0, "9" * 16, int("9" * 15)]


def read_again(ws):
    ws.engine.write_path.refresh()
    return [event for event in ws.events() if isinstance(event.data, ActDone)]


def test_a_word_is_the_number_or_the_text_that_is_on_record(ws):
    reports = ActReports(ws.engine, Occasion(run="r-1"), "agent:executor")
    reports.report("offer", {"id": "12"})
    reports.report("offer", {"id": 13})
    for word in ("id=12", "id=13", 'id="12"'):
        assert reports.report("offer", [word], only_check=True).status == "ALREADY_DONE"
    assert reports.report("offer", ['id="13"'], only_check=True).status == "NOT_DONE"
    reports.begin("offer", ['id="14"'])
    assert reports.report("offer", ["id=14"], only_check=True).status == "UNKNOWN"
    reports.report("offer", {"id": 12})
    said = say_done(ws.engine, "offer", ["id=12"], Occasion(), done=False)
    assert sorted(said.act.split("; ")) == ['offer id="12"', "offer id=12"]
    for one in ("12", 12):
        assert reports.report("offer", {"id": one}, only_check=True).status == "NOT_DONE"
    with pytest.raises(UsageError, match="too many of these values may be numbers or texts"):
        say_done(ws.engine, "many", [f"v{n}={n}" for n in range(7)], Occasion(), done=True)


def test_a_new_act_has_the_type_that_its_tool_declares(ws):
    tool = '[[director.tools]]\ncommand = ["true"]\nname = "mail"\nparameters = {id = "string", n = "integer", all = "boolean"}\n'
    (ws.root / "agentx.toml").write_text(tool)
    with Workspace.open(ws.root) as again:
        said = say_done(again.engine, "mail", ["id=7", "n=8", "all=true"], Occasion(), done=True)
        assert said.act == 'mail id="7", n=8, all=true'


@pytest.mark.parametrize(("torn_after", "known"), [(0, []), (1, ["a"]), (2, ["a", "b"])])
def test_a_write_that_is_torn_before_the_result_loses_no_act_and_does_none_twice(
    ws, tmp_path, torn_after, known
):
    """The acts of a call are recorded before its result: the write ends after some of them."""
    whole = ws.root / LIVE
    sent = []

    def send(titles: list[str]) -> str:
        sent.append(titles)
        return "sent"

    functions = {"send": act(send, key=["titles[]"])}
    FunctionTools(ws.engine, functions, run="r-1").call("send", {"titles": ["a", "b"]})
    lines = whole.read_bytes().splitlines(keepends=True)
    kinds = [json.loads(line)["type"] for line in lines]
    first = kinds.index("ActDone")
    assert kinds[first - 1 : first + 3] == ["ToolCallRequested", "ActDone", "ActDone", "ToolCallExecuted"]
    torn = tmp_path / "torn"
    shutil.copytree(ws.root, torn)
    (torn / LIVE).write_bytes(b"".join(lines[: first + torn_after]) + lines[first + torn_after][:40])
    with Workspace.open(torn) as again:
        tools = FunctionTools(again.engine, functions, run="r-2")
        result = tools.call("send", {"titles": ["a", "b", "c"]})
        assert (result.status, sent) == ("SUCCEEDED", [["a", "b"], ["c"]])
        assert result.output.count("Left out, done already:") == bool(known)
        assert result.output.count("begun before and without a result") == (len(known) < 2)
        assert len(unknown(again.engine)) == 1
        before = again.state.encode()
        again.rebuild()
        assert again.state.encode() == before
        said = Workspace.open(shutil.copytree(torn, tmp_path / "said"))
        with said:  # the user says that it was done
            say_done(said.engine, "send", ['["a","b"]'], Occasion(), done=True)
            told = FunctionTools(said.engine, functions, run="r-3").call("send", {"titles": ["a", "b"]})
            assert told.output.startswith("Already done: ")
        say_done(again.engine, "send", ['["a","b"]'], Occasion(), done=False)
        assert unknown(again.engine) == []
        tools.call("send", {"titles": ["a", "b", "c"]})
        assert sent == [["a", "b"], ["c"], ["a", "b"]]
        assert tools.call("send", {"titles": ["b", "a"]}).status == "DENIED"


# --- the record -------------------------------------------------------------------------------------------------------


def test_a_replay_gives_the_same_and_a_purge_keeps_the_refusal(world):
    ws, functions = world.ws, world.function(key=PAIR)
    world.statuses(functions, ANN)
    done = next(event for event in ws.events() if isinstance(event.data, ActDone))
    before = ws.state.encode()
    ws.rebuild()
    assert ws.state.encode() == before
    ws.purge(done.seq, also=True, reason="a name")
    assert world.statuses(functions, ANN) == ["DENIED"]
    with Workspace.open(ws.root) as again:
        assert World(again).statuses(functions, ANN) == ["DENIED"]


def test_a_refused_repeat_is_neither_a_tool_error_nor_a_failure_to_learn_from(world):
    from agentx.directing.director import Director

    functions = world.function(key=PAIR)
    for _ in range(2):
        world.statuses(functions, ANN)
    director = Director(world.ws.engine)
    assert not director.decide().direct
    assert [call.status for call in director.past().calls] == ["SUCCEEDED"]
    last = [event.data for event in world.ws.events() if isinstance(event.data, ToolCallExecuted)][-1]
    assert next(event for event in world.ws.events(after=last.repeats - 1)).type == "ActDone"


# --- what an executor is given ----------------------------------------------------------------------------------------


def assigned(world, functions, due=None, say=()):
    """The assignment of the next run."""
    given = []
    for text in say:
        world.ws.say(text)
    run_directed(world.ws.engine, Function("f", given.append), functions, due=due or DueTime())
    return given[0]


def test_an_assignment_gives_data_beside_the_prose(world):
    scheduled(world, "Europe/Berlin")
    functions = world.function(key=PAIR) | world.function("water", key=["patient"], window="day")
    due = DueTime("soil", "2026-03-02T07:00:00.000000Z")
    world.run(functions, ("send", ANN), ("water", {"patient": "Bed 1"}), due=due)
    same = assigned(world, functions, DueTime("soil", "2026-03-02T17:00:00.000000Z"))
    ((reminded,), (watered,)) = (same.done[name] for name in ("send", "water"))
    assert {name: value for name, value in reminded.items() if name != "at"} == ANN
    assert {name: value for name, value in watered.items() if name != "at"} == {"patient": "Bed 1"}
    assert (same.schedule, same.due) == ("soil", "2026-03-02T18:00:00+01:00")
    data = json.loads(json.dumps(same.data))
    assert [(tool["key"], tool["window"]) for tool in data["tools"][:2]] == [
        (list(PAIR), "once"),
        (["patient"], "day"),
    ]
    assert data["values"]["done"] == data["done"] == same.done
    assert 'send patient, appointment:\n- "Ann", 4711' in same.prompt
    assert 'water patient, today:\n- "Bed 1"' in same.prompt
    next_day = assigned(world, functions, DueTime("soil", "2026-03-03T07:00:00.000000Z"))
    assert list(next_day.done) == ["send"]


def test_the_values_in_a_prompt_are_exact_and_cannot_become_a_field_or_a_line(world):
    functions = world.function(key=["patient"])
    odd = ['Ann "the cat"\n- Bob', "{{done}}", "7", "é" * 400]
    world.statuses(functions, *({"patient": one} for one in odd))
    given = assigned(world, functions)
    assert [one["patient"] for one in given.done["send"]] == odd[::-1]
    lines = given.prompt.partition("send patient:\n")[2].splitlines()[:4]
    assert lines[1:] == ['- "7"', '- "{{done}}"', '- "Ann \\"the cat\\"\\n- Bob"']
    assert len(lines[0]) < 310


def test_a_tool_without_a_declaration_is_listed_with_all_its_arguments_and_a_cut_off_call_too(world):
    world.statuses(world.function(), ANN)
    given = assigned(world, world.function())
    assert given.done["send"][0].keys() == {"at", "patient", "appointment", "order", "titles"}
    assert (
        "Called before; call again only what the task makes new:\nsend patient, appointment" in given.prompt
    )


def test_a_list_is_bounded_and_the_gate_knows_more_than_it_shows(world):
    functions = world.function(key=["titles[]"])
    names = [f"A title that is rather long and has the number {number}" for number in range(900)]
    assert world.statuses(functions, {"patient": "A", "titles": names}) == ["SUCCEEDED"]
    given = assigned(world, functions)
    shown = given.prompt.partition("Done already; the engine refuses these:\n")[2]
    assert len(shown) <= 6_000
    listed = [line for line in shown.splitlines() if line.startswith("- ")]
    assert listed[0] == f'- "{names[-1]}"'
    assert len(listed) > 80
    assert shown.endswith(f"({900 - len(listed)} more are not shown)")
    assert len(given.done["send"]) == 900
    assert world.statuses(functions, {"patient": "A", "titles": names[:1]}) == ["DENIED"]
    assert world.statuses(functions, {"patient": "A", "titles": [f"{one} b" for one in names] * 2}) == [
        "SUCCEEDED"
    ]
    too_many = {"patient": "A", "titles": [str(number) for number in range(1001)]}
    [(status, output)] = world.run(functions, ("send", too_many))
    assert (status, output) == (
        "FAILED",
        "send would do 1,001 acts at once; make several calls, each of fewer.",
    )


def test_a_list_of_many_names_is_as_short_and_calls_that_nothing_refuses_are_listed_at_length():
    def acts(count, *, refused):
        return [
            Listed(name=f"act_{n % 200}", key={"x": "y" * 280}, at="2026-03-02", refused=refused)
            for n in range(count)
        ]

    told = listing(acts(1_000, refused=True))
    assert 2_000 < len(told) <= 6_000
    assert told.splitlines()[-1].endswith("more are not shown)")
    assert 8_000 < len(listing(acts(1_000, refused=False))) <= 30_000


def test_a_text_program_is_not_told_that_the_engine_refuses_what_it_cannot(world):
    functions = world.function(key=PAIR)
    world.statuses(functions, ANN)
    assert "Done already; the engine refuses these:" in assigned(world, functions).prompt
    world.ws.say("Go on.")
    words = ("sh", "-c", "cat")
    told = run_directed(
        world.ws.engine, Command(words, "text", {"PATH": os.environ["PATH"]}), functions
    ).prompt
    assert "Done already; do not do these again:\nsend patient, appointment:" in told
    assert "refuses" not in told


def test_what_was_done_before_a_tool_declared_its_acts_is_not_done_again(world):
    world.statuses(world.function(), ANN, {**ANN, "appointment": 2})
    functions = world.function(key=PAIR)
    assert world.statuses(functions, ANN, {**ANN, "appointment": 2}, {**ANN, "appointment": 3}) == [
        "DENIED",
        "DENIED",
        "SUCCEEDED",
    ]
    assert world.ws.state.counts["ActDone"] == 3


def test_a_hostile_executor_that_repeats_everything_has_every_effect_once(world):
    functions = world.function(key=PAIR)
    for _ in range(4):
        calls = [
            {"patient": patient, "appointment": number} for patient in "AB" for number in (1, 2.0, "3")
        ] * 3
        world.statuses(functions, *calls)
    assert sorted(call[:2] for call in world.done) == [(one, number) for one in "AB" for number in (1, 2, 3)]
    assert (
        world.ws.state.counts["DirectiveIssued"] == 2
    )  # after three runs, by its policy: no refusal asks the director


def test_a_text_program_finds_its_assignment_in_a_file(world, tmp_path):
    world.run(world.function(key=PAIR), ("send", ANN))
    code = "import os, sys; print(sys.stdin.read() and open(os.environ['AGENTX_ASSIGNMENT']).read())"
    made = run_directed(world.ws.engine, Command((sys.executable, "-c", code), "text", dict(os.environ)))
    given = json.loads(made.outcome.summary)
    assert given.keys() == {"prompt", "tools", "values", "done", "due", "schedule"}
    assert given["done"]["send"][0]["appointment"] == 4711
    assert given["prompt"] == made.prompt


def test_status_and_the_audit_ask_the_user_what_came_of_it(ws, tmp_path, capsys):
    child(ws, tmp_path, "kill")
    child(ws, tmp_path)
    assert main(["-C", str(ws.root), "status"]) == 0
    assert "was it done? agentx done send patient=Ann appointment=4711" in capsys.readouterr().out
    assert main(["-C", str(ws.root), "schedule", "audit"]) == 0
    assert "agentx done send patient=Ann appointment=4711" in " ".join(capsys.readouterr().out.split())
    assert main(["-C", str(ws.root), "done", "send", "patient=Ann", "appointment=4711"]) == 0
    assert main(["-C", str(ws.root), "done", "--check", "send", "Ann", "4711"]) == 3
    assert main(["-C", str(ws.root), "status"]) == 0
    assert "was it done" not in capsys.readouterr().out
