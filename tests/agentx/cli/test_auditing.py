"""The audit on the command line: several workspaces, the zone of whoever asks, and what to type."""

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
