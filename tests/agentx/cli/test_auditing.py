"""The audit on the command line: several workspaces, the zone of whoever asks, and what to type."""

import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from agentx import Workspace
from agentx.history.audit import begin
from agentx.storage.errors import UsageError
from agentx.storage.events.types import Draft, RunEnded, RunStarted, ToolCallRequested

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("since", "at"),
    [
        ("today", "2026-03-29T22:00:00.000000Z"),
        ("yesterday", "2026-03-28T23:00:00.000000Z"),  # clocks were set forward in between
        ("2026-03-28", "2026-03-27T23:00:00.000000Z"),
        ("2026-03-30T08:00", "2026-03-30T06:00:00.000000Z"),
        ("2026-03-30T08:00Z", "2026-03-30T08:00:00.000000Z"),
    ],
)
def test_a_day_begins_at_midnight_of_the_zone(since, at):
    assert begin(since, datetime(2026, 3, 30, 5, tzinfo=UTC), BERLIN) == at


def test_what_is_no_moment_is_refused():
    with pytest.raises(UsageError, match="use yesterday, today"):
        begin("last week", datetime.now(UTC))


def test_several_workspaces_are_told_together_and_each_command_names_its_own(
    call, root, tmp_path, monkeypatch
):
    with Workspace.create(tmp_path / "mail", title="Mail") as ws:
        for data in (
            RunStarted(task=ws.body("x"), agent="executor", model="m"),
            ToolCallRequested(call_id="c1", tool="send_email", arguments={"to": "pat"}),
            RunEnded(status="INTERRUPTED", reason="It was cut off.", prompt_tokens=10, cost_usd=0.5),
        ):
            ws.record(Draft(data=data, actor="agent:executor", run="r-1"))
    monkeypatch.chdir(tmp_path)
    done = call("schedule", "audit", "report", "mail", "elsewhere")
    assert done.code == 0
    assert "elsewhere is left out" in done.err
    for told in (
        "1 interrupted",
        "send_email(to=pat) in r-1: no result",
        "$0.5000",
        "agentx -C mail approve c1",
        "agentx -C mail run",
        "agentx -C report memory review",
    ):
        assert told in done.out
    assert call("-C", "mail", "approve", "c1", "--deny").out.startswith("⊘ It failed")
    found = call("schedule", "audit", "mail", "--json").json
    assert (found["workspaces"][0]["unknown"], [one["command"] for one in found["todo"]]) == (
        [],
        ["agentx run"],
    )
    assert call("schedule", "audit", "elsewhere").code == 2


def test_a_task_that_was_graded_failed_is_shown(call, root):
    call("gate", "post", "Deploy the blog", "--fail", "--lesson", "Upload the index last.", "-C", root)
    assert "graded failed" in (shown := call("schedule", "audit", "-C", root).out)
    assert "Deploy the blog: Upload the index last." in " ".join(shown.split())


@pytest.fixture
def configure(call, root):
    def configure(command, **more):
        for name, value in ({"command": command} | more).items():
            assert call("config", "set", f"report.{name}", str(value), "-C", root).code == 0

    return configure


def test_the_report_is_delivered_to_a_command_on_stdin(call, root, tmp_path, configure):
    configure(f"cat > {tmp_path}/told; pwd > {tmp_path}/place")
    call("gate", "post", "Deploy the blog", "--fail", "-C", root)
    done = call("schedule", "audit", "--deliver", "-C", root)
    assert (done.code, done.out, done.err) == (0, "", "! The report was delivered to report.command.\n")
    report = (tmp_path / "told").read_text()
    assert report.startswith("What happened since ")
    assert "Deploy the blog" in report
    assert "\x1b" not in report
    assert str(root) not in (tmp_path / "place").read_text()
    assert call("schedule", "audit", "--deliver", "--json", "-C", root).code == 0
    assert json.loads((tmp_path / "told").read_text())["workspaces"][0]["failed_tasks"][0]["by"]


@pytest.mark.parametrize(
    ("command", "timeout_s", "says"),
    [
        ("echo no such address >&2; exit 67", 60, "exit status 67: no such address"),
        ("exit 3", 60, "ended with exit status 3."),
        ("sleep 30", 0.2, "took longer than 0.2 seconds and was ended"),
    ],
)
def test_a_report_that_is_not_delivered_is_an_error(call, root, configure, command, timeout_s, says):
    configure(command, timeout_s=timeout_s)
    done = call("schedule", "audit", "--deliver", "-C", root)
    assert (done.code, says in " ".join(done.err.split())) == (1, True)


def test_without_a_command_or_inside_a_run_nothing_is_delivered(call, root, configure, monkeypatch):
    done = call("schedule", "audit", "--deliver", "-C", root)
    assert (done.code, "agentx config set report.command" in done.err) == (2, True)
    configure("cat")
    monkeypatch.setenv("AGENTX_RUN", "r-1")
    done = call("schedule", "audit", "--deliver", "-C", root)
    assert (done.code, "inside an agent's run" in done.err) == (2, True)
