"""Traces and metrics of a fleet, as a receiver that speaks OTLP gets them from real workers."""

import os
import signal
import subprocess
import sys
from collections import Counter

import pytest

from agentx import Workspace
from agentx.fleet.telemetry import METRICS, SPANS
from tests.agentx.fleet.fleets import ROOT, wait_for
from tests.agentx.fleet.receiver import Receiver
from tests.agentx.fleet.test_fleet import slow

SECRET = "sk-proj-4f9aQ81xLmZ07TbVnC3eR5uYwKdHs2"
TURNS = (
    '{"thought": "Writing.", "tool_calls": [{"name": "write_file", "arguments": '
    '{"path": "note.md", "content": "Of pomegranates."}}]}\n'
    '{"answer": "It is done, with pomegranates."}\n'
)


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.close()


def reporting(worker, receiver, **more):
    worker.environ |= {
        "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
        "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{SECRET}",
        "OTEL_BSP_SCHEDULE_DELAY": "200",
        **more,
    }
    return worker


def submitted(fleet, receiver, name, message):
    """Submit by the command, as a user does who reports."""
    with Workspace.create(fleet.root / "mine" / name, settings=fleet.settings):
        pass
    fleet.expected[name] += 1
    environ = {
        **dict(fleet.settings.environ),
        "AGENTX_NO_SERVER": "1",
        "PYTHONPATH": str(ROOT),
        "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
    }
    words = [sys.executable, "-m", "agentx", "-C", str(fleet.root / "mine" / name), "fleet", "submit"]
    subprocess.run([*words, message, "--tenant", fleet.tenant], env=environ, check=True)


def test_a_submission_is_one_trace_from_its_command_to_the_push_and_the_metrics_are_what_the_fleet_says(
    fleet, receiver
):
    fleet.script.write_text(TURNS)
    submitted(fleet, receiver, "notes", f"Write pomegranates, {SECRET}.")
    worker = reporting(fleet.worker("a"), receiver).start("--once")
    assert worker.process.wait() == 0
    found = fleet.status()
    assert found.statuses == {"COMPLETED": 1}

    spans = {}
    for one in receiver.spans:
        spans.setdefault(one.name, []).append(one)
    by_id = {one.id: one for one in receiver.spans}
    assert len({one.trace for one in by_id.values()}) == 1
    around = {
        name: {by_id[one.parent].name if one.parent else "" for one in group} for name, group in spans.items()
    }
    assert around == {
        "fleet.submit": {""},
        "fleet.queue": {"fleet.submit"},
        "fleet.carry_out": {"fleet.submit"},
        "fleet.fetch": {"fleet.carry_out"},
        "fleet.open": {"fleet.carry_out"},
        "fleet.run": {"fleet.carry_out"},
        "invoke_agent main": {"fleet.run"},
        "chat script": {"invoke_agent main"},
        "execute_tool write_file": {"invoke_agent main"},
        "fleet.push": {"fleet.carry_out"},
    }
    assert len(spans["chat script"]) == 2
    for one in by_id.values():
        assert one.start <= one.end
        if one.parent and by_id[one.parent].name != "fleet.submit":
            assert by_id[one.parent].start <= one.start <= one.end <= by_id[one.parent].end, one.name
    order = ["fleet.queue", "fleet.fetch", "fleet.open", "fleet.run", "fleet.push"]
    assert order == sorted(order, key=lambda name: spans[name][0].start)
    [whole] = spans["fleet.carry_out"]
    assert whole.attributes["agentx.fleet.submission"] == found.runs[0].submission
    assert whole.attributes["agentx.fleet.status"] == "COMPLETED"
    assert not whole.failed
    assert whole.resource["service.instance.id"] == found.runs[0].worker

    for _, body in receiver.raw:
        for text in (SECRET, "pomegranates", "note.md"):
            assert text.encode() not in body
    assert [headers for _, headers in receiver.requests if SECRET in headers.get("authorization", "")]

    metrics = receiver.metrics
    assert set(metrics) >= {one.name for one in METRICS if one.kind == "gauge"}

    def of(name, **about):
        series = {
            tuple(sorted((key.rpartition(".")[2], text) for key, text in attributes if key != "agentx.fleet.tenant")): value
            for (_, attributes), value in metrics[name].items()
        }  # fmt: skip
        return series[tuple(sorted(about.items()))] if about else series

    assert of("agentx.fleet.runs") == {(("status", "COMPLETED"),): 1}
    assert of("agentx.fleet.run.duration", status="COMPLETED")[0] == 1
    assert of("agentx.fleet.queue.depth", status="queued") == found.queued == 0
    assert of("agentx.fleet.queue.depth", status="running") == found.running == 0
    assert of("agentx.fleet.stranded") == {(): len(found.stranded)}
    assert of("agentx.fleet.workers", status="alive") == len(found.workers) == 0  # it has left
    parts = {about[0][1]: value for about, value in of("agentx.fleet.part.duration").items()}
    assert {name: count for name, (count, _) in parts.items()} == dict.fromkeys(
        ("queue", "fetch", "open", "run", "push"), 1
    )
    [(calls, _)] = metrics["gen_ai.client.operation.duration"].values()
    assert calls == 2
    assert not [
        name for name, series in metrics.items() for _, about in series if "notes" in dict(about).values()
    ]


@pytest.mark.parametrize(
    "how", ["away", pytest.param("broken", marks=slow), pytest.param("silent", marks=slow)]
)
def test_a_receiver_that_is_away_broken_or_silent_costs_no_run_and_is_said_once(fleet, receiver, how):
    worker = reporting(fleet.worker("a"), receiver, OTEL_EXPORTER_OTLP_TIMEOUT="1")
    if how == "away":
        worker.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = "http://127.0.0.1:9"
    elif how == "broken":
        receiver.status = 500
    else:
        receiver.silent.set()
    fleet.submit("notes", "Do this.", "Do that.")
    worker.start("--once")
    assert worker.process.wait() == 0
    assert fleet.status().statuses == {"COMPLETED": 2}
    said = worker.said.read_text()
    assert said.count("Telemetry is not delivered to 127.0.0.1") == 1
    assert "Traceback" not in said
    assert SECRET not in said


def test_an_endless_answer_of_a_receiver_is_not_read(fleet, receiver):
    receiver.endless = True
    submitted(fleet, receiver, "notes", "Do this.")
    assert "fleet.submit" in {one.name for one in receiver.spans}
    assert receiver.sent < 32 << 20


def test_what_was_at_work_in_a_process_that_dies_ends_as_failed_in_the_same_trace(fleet, receiver):
    worker = reporting(fleet.worker("a"), receiver)
    worker.holds("model")
    fleet.submit("notes", "Do this.")
    worker.start("--once")
    worker.reached("model")
    resident = int(wait_for((worker.hold / "at-model").read_text))
    worker.lets_go("model")
    os.kill(resident, signal.SIGKILL)
    assert worker.process.wait() == 0
    assert fleet.status().statuses == {"COMPLETED": 1}
    died = {one.name for one in receiver.spans if one.attributes.get("error.type") == "process_died"}
    assert died == {"chat script", "invoke_agent main", "fleet.run"}
    counts = Counter(one.name for one in receiver.spans)
    assert counts["fleet.carry_out"] == 1
    assert counts["fleet.run"] == 2
    assert len({one.trace for one in receiver.spans}) == 1


def test_without_a_destination_nothing_is_reported_and_the_result_has_its_parts(fleet, receiver):
    fleet.submit("notes", "Do this.")
    worker = fleet.worker("a").start("--once")
    assert worker.process.wait() == 0
    [run] = fleet.status().runs
    assert set(run.seconds) == {"fetch", "open", "run", "push"}
    assert receiver.requests == []


@slow
def test_a_trace_goes_on_at_the_worker_that_takes_a_submission_over(fleet, receiver):
    first, second = (
        reporting(fleet.worker(name), receiver, OTEL_METRIC_EXPORT_INTERVAL="500") for name in "ab"
    )
    first.holds("before-push")
    submitted(fleet, receiver, "notes", "Do this.")
    first.start()
    first.reached("before-push")
    wait_for(lambda: [one for one in receiver.spans if one.name == "chat script"])
    first.slay()
    second.start()
    wait_for(fleet.all_ended)
    second.end()
    assert len({one.trace for one in receiver.spans}) == 1
    assert Counter(one.name for one in receiver.spans)["chat script"] == 2
    assert sum(receiver.metrics["agentx.fleet.takeovers"].values()) == 1


def test_every_span_that_workers_make_is_in_the_table():
    assert {"fleet.submit", "fleet.queue", "fleet.carry_out", "chat", "execute_tool", "invoke_agent"} < set(
        SPANS
    )
