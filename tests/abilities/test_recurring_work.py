"""Work by the clock and work on several machines: schedules, the heartbeat, the morning audit and a fleet."""

import itertools
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agentx import Workspace
from tests.abilities.conftest import CommandLine


@pytest.fixture
def scheduled(agentx, script, monkeypatch):
    """A workspace with a task for every hour; runs what is due at a time."""
    from agentx.scheduling.schedules import carry_out_due

    agentx("config", "set", "model.name", script({"when": [], "answer": "Two titles."}))
    monkeypatch.setenv("AGENTX_STATE_DIR", agentx.environ["AGENTX_STATE_DIR"])
    monkeypatch.setenv("AGENTX_CACHE_DIR", agentx.environ["AGENTX_CACHE_DIR"])

    def at(now):
        with Workspace.open(agentx.cwd) as ws:
            return carry_out_due(ws, now)

    agentx.run_at = at
    return agentx


def add(agentx, *options):
    return agentx.json("schedule", "add", "0 * * * *", "Look for news.", "--id", "news", *options)


def first_due(added):
    return datetime.fromisoformat(added["next"])


def test_due_times_are_shown_before_they_come(agentx):
    """``schedule next`` shows the coming due times of a task, by its cron line."""
    agentx("schedule", "add", "0 */6 * * *", "Look for news.", "--id", "news")
    found = [datetime.fromisoformat(one["due"]) for one in agentx.json("schedule", "next", "--most", "4")]
    assert [due.minute for due in found] == [0, 0, 0, 0]
    assert {after - before for before, after in itertools.pairwise(found)} == {timedelta(hours=6)}
    assert found[0] > datetime.now(UTC)


def test_a_schedule_has_a_time_zone(agentx):
    """The cron line counts in the time zone that is named."""
    agentx("schedule", "add", "30 8 * * *", "Read the mail.", "--id", "mail", "--zone", "Asia/Kolkata")
    (due, *_) = agentx.json("schedule", "next")
    found = datetime.fromisoformat(due["due"]).astimezone(UTC)
    assert (found.hour, found.minute) == (3, 0)


@pytest.mark.parametrize("cron", ["61 * * * *", "every morning", "* * * *"])
def test_a_cron_line_that_cannot_be_read_is_refused(agentx, cron):
    """A schedule that could never run is refused when it is set."""
    assert agentx("schedule", "add", cron, "Read the mail.", ok=False).code in {1, 2}
    assert agentx.json("schedule", "list") == []


def test_nothing_runs_before_it_is_due(scheduled):
    """``schedule run-due`` runs nothing that is not due yet, and says when the next is."""
    add(scheduled)
    found = scheduled.json("schedule", "run-due")
    assert found["carried"] == []
    assert datetime.fromisoformat(found["next"]) > datetime.now(UTC)


def test_a_due_task_is_run_once(scheduled):
    """A due time is carried out once, however often one looks."""
    due = first_due(add(scheduled))
    assert len(scheduled.run_at(due)) == 1
    assert scheduled.run_at(due) == []
    (ended,) = scheduled.events("RunEnded")
    assert ended["data"]["status"] == "COMPLETED"


@pytest.mark.parametrize(("policy", "runs"), [("once", 1), ("all", 4), ("none", 0)])
def test_missed_due_times_are_caught_up_as_was_asked(scheduled, policy, runs):
    """After a pause, ``--catch-up`` runs the latest due time, all, or none; what is passed over is recorded."""
    due = first_due(add(scheduled, "--catch-up", policy))
    found = scheduled.run_at(due + timedelta(hours=3, minutes=15))
    assert len(found) == runs
    (standing,) = scheduled.json("schedule", "list")
    assert standing["passed"] + runs == 4
    assert len(scheduled.events("RunEnded")) == runs


def test_a_schedule_is_removed_and_its_past_stays(scheduled):
    """A removed schedule runs no more; what it did stays in the history."""
    due = first_due(add(scheduled))
    scheduled.run_at(due)
    scheduled("schedule", "remove", "news")
    assert scheduled.json("schedule", "list") == []
    assert scheduled.run_at(due + timedelta(hours=4)) == []
    assert len(scheduled.events("RunEnded")) == 1


def test_the_heartbeat_starts_nothing(scheduled):
    """Without an unfinished run the heartbeat asks no model."""
    assert scheduled.json("schedule", "heartbeat")["status"] == "HEARTBEAT_OK"
    assert scheduled.events("RunStarted") == []


def test_the_heartbeat_resumes_a_run_that_failed(scheduled, script):
    """A run that was cut off is resumed with its conversation by the next heartbeat."""
    scheduled("run", "Draft the outlook.", "--model", script(name="none.jsonl"), ok=False)
    assert scheduled.events("RunEnded")[-1]["data"]["status"] == "FAILED"
    assert scheduled.json("schedule", "heartbeat")["status"] == "CONTINUED"
    assert scheduled.events("RunEnded")[-1]["data"]["status"] == "COMPLETED"
    assert len({event["run"] for event in scheduled.events("RunStarted")}) == 1
    assert scheduled.json("schedule", "heartbeat")["status"] == "HEARTBEAT_OK"


def test_the_audit_tells_what_ran_failed_and_was_learned(scheduled, script):
    """The morning audit reports runs, failures, what was learned and what to do, without a model."""
    scheduled("run", "Draft the outlook.", "--model", script({"answer": "Done."}, name="good.jsonl"))
    scheduled("run", "Draft another.", "--model", script(name="none.jsonl"), ok=False)
    scheduled("memory", "add", "Never create a requirements.txt file.", "--kind", "constraint")
    (found,) = scheduled.json("schedule", "audit", "--since", "today")["workspaces"]
    assert "COMPLETED" in json.dumps(found["ran"])
    assert found["failed"]
    assert "requirements.txt" in json.dumps(found["learned"])


def test_the_audit_is_delivered(scheduled):
    """The report is handed to a command of one's own, such as a mailer."""
    target = scheduled.cwd.parent / "report.txt"
    scheduled("config", "set", "report.command", f"cat > {target}")
    scheduled("schedule", "audit", "--deliver")
    assert target.read_text().strip()


# --- a fleet on one machine, whose queue is a SQLite file -----------------------------------------------


@pytest.fixture(scope="module")
def fleet(programs, tmp_path_factory):
    """Three workspaces, five submissions, and one worker that carries them out."""
    folder = tmp_path_factory.mktemp("fleet")
    turns = folder / "turns.jsonl"
    turns.write_text('{"answer": "It is done."}\n')
    environ = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        "AGENTX_CACHE_DIR": str(folder / "no-models"),
        "AGENTX_STATE_DIR": str(folder / "state"),
        "AGENTX_MODEL": f"script:{turns}",
    }
    shell = CommandLine(programs / "agentx", folder, environ)
    shell("fleet", "init", "--remote", f"{folder}/remotes/{{workspace}}.git")
    for name in ("report", "letter"):
        shell("init", name)
        shell("-C", name, "fleet", "submit", f"Write the {name}.")
    for _ in range(2):
        shell("-C", "report", "fleet", "submit", "Once more.", "--id", "the-same-id")
    shell.queued = shell.json("fleet", "status")
    shell.worked = shell("fleet", "worker", "--once", "--home", folder / "worker")
    shell.status = shell.json("fleet", "status")
    return shell


def test_a_queue_holds_what_is_to_be_run(fleet):
    """Submissions wait in the queue until a worker takes them; the same id is queued once."""
    assert (fleet.queued["queued"], fleet.queued["ended"]) == (3, 0)


def test_any_worker_carries_out_what_was_submitted(fleet):
    """A worker fetches each workspace, runs what was submitted, and ends when the queue is empty."""
    assert (fleet.status["queued"], fleet.status["running"], fleet.status["ended"]) == (0, 0, 3)
    assert fleet.status["statuses"] == {"COMPLETED": 3}
    assert sorted(run["workspace"] for run in fleet.status["runs"]) == ["letter", "report", "report"]


def test_what_a_worker_did_is_pulled(fleet):
    """The work is on the remote: ``pull`` brings the runs, in a history that verifies."""
    fleet("-C", "letter", "pull", "fleet")
    letter = fleet.at(fleet.cwd / "letter")
    (ended,) = letter.events("RunEnded")
    assert ended["data"]["status"] == "COMPLETED"
    assert letter("verify").code == 0


def test_the_same_submission_is_done_once(fleet):
    """Two submissions with one id are one run in the history."""
    fleet("-C", "report", "pull", "fleet")
    report = fleet.at(fleet.cwd / "report")
    assert "Once more." in json.dumps(report.events("UserMessageSent"))
    assert len(report.events("RunEnded")) == 2
