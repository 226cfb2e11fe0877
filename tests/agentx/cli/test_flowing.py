"""``agentx flow`` and ``agentx flow backtest``: what a person types, and what they see."""

import io
import re

import pytest

from agentx import Workspace
from agentx.storage.events.types import Draft, RunEnded, RunStarted, ToolCallExecuted
from agentx.synthesis.memory.conclusions import Patch
from agentx.synthesis.memory.items import FlowDetail

STEPS = ("--step", "Back up.", "--step", "Build.", "--step", "Ask QA.")


@pytest.fixture
def flow(call, root):
    """Write down a flow whose record is as given; its id."""

    def flow(name, *words, succeeded=0, failed=0):
        done = call("flow", "add", name, *(words or STEPS), "--json", "-C", root)
        item = done.json["item"]
        if succeeded + failed:
            steps, triggers = tuple(item["detail"]["steps"]), tuple(item["detail"].get("triggers", ()))
            detail = FlowDetail(steps, triggers, succeeded=succeeded, failed=failed)
            with Workspace.open(root) as ws:
                ws.engine.synthesizer.record([Patch(id=item["id"], detail=detail)], "test")
        return item["id"]

    return flow


def test_the_flow_that_is_called_for_is_shown_with_its_steps_its_record_and_why(call, root, flow):
    name = flow("deploy to production", *STEPS, "--trigger", "ship to prod", succeeded=32, failed=2)
    flow("deploy to staging")
    done = call("flow", "check", "Can you ship this to prod?", "-C", root)
    lines = [line.strip("│ ") for line in done.out.splitlines()]
    assert name in lines[0]
    assert lines[1:7] == [
        "deploy to production",
        "because   the words of “deploy to production” are in the message",
        "works     in 94% (32 of 34; 81–98%): proven",
        "step 1    Back up.",
        "step 2    Build.",
        "step 3    Ask QA.",
    ]
    document = call("flow", "check", "ship to prod", "-C", root, "--json").json
    assert document["flow"]["item"]["id"] == name
    assert document["flow"]["standing"] == "proven"
    assert document["flow"]["effectiveness"]["tries"] == 34
    assert (document["flow"]["by"], document["others"]) == ("words", [])


def test_a_lesson_is_shown_before_its_step(call, root, flow):
    name = flow("publish the pages", "--step", "Build the pages", "--step", "Upload them to the host")
    rule = call(
        "memory", "add", "Upload to the host after six only.", "--kind", "rule", "--json", "-C", root
    ).json[0]["id"]
    lines = [
        " ".join(line.strip("│ ").split()) for line in call("flow", "show", name, "-C", root).out.splitlines()
    ]
    at = lines.index("step 2 Upload them to the host")
    assert lines[at - 2 : at] == ["step 1 Build the pages", f"{rule} Upload to the host after six only."]
    assert call("flow", "show", name, "--json", "-C", root).json["lessons"] == {"2": [rule]}


def test_where_no_flow_is_for_it_that_is_said(call, root, flow):
    assert call("flow", "check", "sing", "-C", root).out == "No flow matches; 0 are known.\n"
    flow("deploy to production")
    done = call("flow", "check", "sing a song", "-C", root)
    assert (done.code, done.out) == (0, "No flow matches; 1 is known.\n")
    assert call("flow", "check", "sing", "-C", root, "--json").json == {
        "flow": None,
        "others": [],
        "nearest": None,
    }


def test_a_flow_that_is_broken_says_so_where_it_is_called_for(call, root, flow):
    flow("deploy to production", succeeded=4, failed=6)
    done = call("flow", "check", "deploy to production", "-C", root)
    assert "in 40% (4 of 10; 17–69%): broken" in done.out
    assert done.err == "! rewrite it: it works in 40% (4 of 10; 17–69%): change its steps.\n"


def test_the_list_begins_with_what_is_proven_and_says_what_to_do(call, root, flow):
    assert "There are no flows" in call("flow", "-C", root).out
    broken = flow("a broken thing", failed=5)
    unused = flow("an unused thing", *STEPS, "--approval")
    proven = flow("a proven thing", succeeded=20)
    ended = flow("an ended thing")
    call("flow", "retire", ended, "-C", root)
    done = call("flow", "-C", root)
    rows = [line.split()[:2] for line in done.out.splitlines()[1:]]
    assert rows == [[proven, "proven"], [unused, "unused"], [broken, "broken"]]
    assert "an unused thing  3 steps, asks for approval" in done.out
    assert done.err == f"! retire {broken}: it failed all 5 times.\n"
    assert f"{ended}  retired" in call("flow", "list", "--all", "-C", root).out


def test_steps_come_from_a_file_or_from_stdin_and_a_new_procedure_begins_a_new_record(
    call, root, flow, tmp_path, monkeypatch
):
    (tmp_path / "steps.md").write_text("# Deploy\n\n1. Back up\n2. Build,\n   with tests\n")
    name = flow("deploy", "--from", tmp_path / "steps.md", succeeded=3)
    assert "step 2 Build, with tests" in " ".join(call("flow", "show", name, "-C", root).out.split())
    monkeypatch.setattr("sys.stdin", io.StringIO("1. Only this\n"))
    done = call("flow", "edit", "deploy", "--from", "-", "--trigger", "go live", "-C", root)
    assert "step 1 Only this" in " ".join(done.out.split())
    assert done.err == (
        "! Its steps changed: this is version 2. Before, it worked in 100% (3 of 3; 44–100%).\n"
    )
    shown = " ".join(call("flow", "show", name, "-C", root).out.split())
    assert "works in 100% (3 of 3; 44–100%; all versions): unproven" in shown
    assert re.search(r"record version 2 since \d{4}-\d\d-\d\d: never used; all versions: 3 of 3", shown)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--from", "{missing}"], "cannot be read"),
        (["--from", "{binary}"], "cannot be read"),
        (["--from", "{binary}", "--step", "x"], "not both"),
        ([], "A flow needs steps"),
    ],
)
def test_steps_that_cannot_be_had_are_told(call, root, tmp_path, words, says):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    places = {"missing": tmp_path / "missing.md", "binary": tmp_path / "binary"}
    done = call("flow", "add", "x", *(word.format(**places) for word in words), "-C", root)
    assert done.code == 2
    assert says in done.err


RELEASE = ("make build", "pytest -q", "git push --tags")


def work(root, times, task="Cut the release.", lines=RELEASE):
    with Workspace.open(root) as ws:
        for number in range(times):
            run = f"w-{task}-{number}"
            done = [
                ToolCallExecuted(call_id=f"{run}{n}", tool="run_command", status="SUCCEEDED", command=line)
                for n, line in enumerate(lines)
            ]
            start = RunStarted(task=ws.body(task), agent="main", model="m")
            events = (start, *done, RunEnded(status="COMPLETED"))
            ws.record(*(Draft(data=data, actor="agent:main", run=run) for data in events))


def test_past_runs_propose_what_worked_and_a_person_settles_it(call, root):
    quiet = call("flow", "backtest", "-C", root)
    assert "nothing succeeded or failed often enough for a new candidate" in quiet.out
    work(root, 2)
    dry = call("flow", "backtest", "--dry-run", "-C", root)
    assert "3 past runs (2 passed, 1 unknown): 1 flow proposed; nothing was recorded." in dry.out
    done = call("flow", "backtest", "-C", root)
    assert "step 1 Run `make build`" in " ".join(done.out.split())
    assert "1 flow proposed; settle the candidates with `agentx memory review`." in done.out
    listed = call("flow", "-C", root)
    assert "1 candidate flow to settle" in listed.err
    near = call("flow", "check", "cut the release", "-C", root)
    assert near.out == "No flow matches; 0 are known.\n"
    assert "is only a candidate: `agentx memory review`" in near.err
    document = call("flow", "backtest", "-C", root, "--json").json
    assert (document["flows"], document["recorded"]) == ([], 0)


def test_many_proposals_are_a_table_with_the_steps_of_each(call, root):
    for thing in ("invoices", "backups", "photos", "tokens"):
        work(root, 2, f"Export the {thing}.", (f"dump {thing}", f"pack {thing}", "rsync out"))
    shown = call("flow", "backtest", "--dry-run", "-C", root).out
    for thing in ("invoices", "backups", "photos", "tokens"):
        assert f"export the {thing}" in shown
        assert f"Run `dump {thing}` → Run `pack {thing}` → Run `rsync out`" in shown
    assert "step 1" not in shown


def test_a_flow_that_is_not_there_is_told_as_one(call, root):
    done = call("flow", "show", "no such flow", "-C", root)
    assert (done.code, "Unknown flow 'no such flow'; `agentx flow list" in done.err) == (2, True)
