"""Logs and figures of a session: computed from history, written where they are asked for, and never in the way."""

import json
import math

import msgspec
import pytest

from agentx import Workspace
from agentx.cognition.interactions import UNREADABLE, interactions, sessions
from agentx.cognition.logs import FOLDER, Logs
from agentx.cognition.overview import ActivatorTracker, MetricsCollector, overview
from agentx.storage.events.cognition_events import Interacted
from agentx.storage.events.types import Body, Draft
from agentx.synthesis.cognition.config import ExecutorConfig
from agentx.synthesis.cognition.metrics import (
    ClusterAssessment,
    DecayerSnapshot,
    Metrics,
    Snapshot,
)
from tests.agentx.cognition.histories import play

ALL = ExecutorConfig(log_intermediate_data=True, log_decay_curves=True, log_activator_triggers=True)


def interacted(ws, number, session="s", metrics=None, snapshot=None, **fields):
    """Record that an interaction is over."""
    done = Interacted(
        session=session,
        interaction=number,
        message=0,
        metrics=Body(msgspec.json.encode(metrics or Metrics()).decode()),
        snapshot=Body(msgspec.json.encode(snapshot or Snapshot()).decode()),
        **fields,
    )
    (event,) = ws.record(Draft(data=done, actor="engine:cognition"))
    return event


def followed(ws, follower, session="s"):
    for one in interactions(ws.events(), session, ws.read_body):
        follower.take(one)
    return follower


def test_a_memory_fades_along_the_curve_and_comes_back_stronger(ws):
    interacted(ws, 1, entered=("m",), temperature=4.0)
    interacted(ws, 2, temperature=4.0)
    interacted(ws, 3, accessed=("m",), reinforced=("m",), boost=1.0, temperature=4.0)
    interacted(ws, 4, temperature=4.0)
    interacted(ws, 5, evicted=("m",), temperature=4.0)
    interacted(ws, 6, temperature=4.0)
    interacted(ws, 7, entered=("other",), session="elsewhere")
    (curve,) = overview(ws.engine, "s").curves.values()
    assert [(p.interaction_id, p.was_accessed, p.was_reinforced, p.was_evicted) for p in curve] == [
        (1, False, False, False),
        (2, False, False, False),
        (3, True, True, False),
        (4, False, False, False),
        (5, False, False, True),
    ]
    wanted = [1.0, math.exp(-1 / 4), 1.0, math.exp(-1 / 8), math.exp(-2 / 8)]
    assert [p.decay_score for p in curve] == pytest.approx(wanted)
    assert [p.stability for p in curve] == [4.0, 4.0, 8.0, 8.0, 8.0]


def test_what_triggers_the_activator_is_counted_by_reason_and_by_topic(ws):
    def look(topics, *, fetches):
        return DecayerSnapshot(
            model_uncertainty=0.8 if fetches else 0.2,
            cosine_uncertainty=0.7,
            requires_activation=fetches,
            clusters=tuple(ClusterAssessment(topic, 1, cover, 0.5) for topic, cover in topics.items()),
        )

    asked = {"decayer_triggered": True, "decayer_trigger_reason": "question", "input_type": "question"}
    interacted(ws, 1, metrics=Metrics())
    interacted(
        ws,
        2,
        metrics=Metrics(**asked, activator_trigger_count=2),
        snapshot=Snapshot(decayer=(look({"t": 0.1}, fetches=True), look({"t": 0.3, "u": 0}, fetches=True))),
    )
    interacted(ws, 3, metrics=Metrics(**asked), snapshot=Snapshot(decayer=(look({"t": 0.8}, fetches=False),)))
    interacted(
        ws,
        4,
        metrics=Metrics(decayer_triggered=True, decayer_trigger_reason="rule_statement"),
        snapshot=Snapshot(decayer=(look({"u": 1.0}, fetches=False),)),
    )
    found = followed(ws, ActivatorTracker()).triggers
    assert (found.interactions, found.asked, found.triggered, found.activations) == (4, 3, 1, 2)
    assert (found.rate, found.rate_when_asked, found.at) == (0.25, 1 / 3, (2,))
    assert (found.reasons, found.fetched) == ({"question": 2, "rule_statement": 1}, {"question": 1})
    assert [(u.interaction_id, u.iteration, u.model_uncertainty) for u in found.uncertainty] == [
        (2, 1, 0.8),
        (2, 2, 0.8),
        (3, 1, 0.2),
        (4, 1, 0.2),
    ]
    assert [(c.topic, c.assessed, c.triggered, round(c.coverage, 3)) for c in found.clusters] == [
        ("t", 3, 2, 0.4),
        ("u", 2, 1, 0.5),
    ]


def test_figures_of_a_session_are_those_of_its_interactions(ws):
    for number, latency in enumerate((10.0, 20.0, 30.0, 40.0), 1):
        metrics = Metrics(
            total_latency_ms=latency,
            recognizer_prompt_tokens=100,
            response_completion_tokens=number,
            activator_trigger_count=number % 2,
            memory_link_stats={"created": number, "total": 9},
            faults=["broken JSON"] if number < 3 else [],
            cost_usd=0.25,
        )
        interacted(ws, number, metrics=metrics, judge=(-1.0, 1.0, 0.95, 0.0)[number - 1])
    found = followed(ws, MetricsCollector()).collected
    latency = found.metrics["total_latency_ms"]
    assert (latency.mean, latency.min, latency.max, latency.p50) == (25.0, 10.0, 40.0, 25.0)
    assert (latency.std, latency.p95) == pytest.approx((math.sqrt(125), 38.5))
    assert found.metrics["memory_link_stats.created"].max == 4
    assert "decayer_triggered" not in found.metrics
    assert (found.tokens["recognizer"].prompt, found.tokens["response"].completion) == (400, 10)
    assert (found.total_tokens, found.cost_usd, found.activator_trigger_rate) == (410, 1.0, 0.5)
    assert found.judge_distribution == (1, 0, 0, 0, 0, 0, 0, 0, 0, 2)
    assert (found.metrics["judge_score"].count, found.faults) == (3, {"broken JSON": 2})


def test_every_metric_of_the_source_that_is_a_number_is_in_the_figures(ws):
    interacted(ws, 1)
    numbers = {n for n, value in msgspec.structs.asdict(Metrics()).items() if type(value) in (int, float)}
    assert numbers <= set(followed(ws, MetricsCollector()).collected.metrics)


def test_nothing_is_written_where_nothing_is_asked_for(ws):
    interacted(ws, 1)
    assert Logs(ws.engine, "s", ExecutorConfig()).write() == []
    assert not (ws.root / FOLDER).exists()


def test_the_files_hold_the_session_and_go_on_with_it(ws):
    play(ws, "a/b", interactions=6)
    logs = Logs(ws.engine, "a/b", ALL)
    written = logs.write()
    assert [path.relative_to(ws.root).as_posix() for path in written] == [
        f"{FOLDER}/{name}_a-b.json" for name in ("metrics", "intermediate", "decay", "activator")
    ]
    interacted(ws, 7, "a/b", judge=0.5)
    logs.write()
    first = {path.name: path.read_bytes() for path in written}
    again = Logs(ws.engine, "a/b", ALL).write()
    assert {path.name: path.read_bytes() for path in again} == first
    metrics, intermediate, decay, activator = (json.loads(first[path.name]) for path in written)
    assert (intermediate["run_id"], metrics["interactions"], activator["interactions"]) == ("a/b", 7, 7)
    *_, sixth, seventh = intermediate["interactions"]
    assert seventh["judge_score"] == 0.5
    assert set(sixth) >= {"decayer", "activator", "buffer_before", "buffer_after", "metrics"}
    assert set(sixth["metrics"]) == set(Metrics.__struct_fields__)
    memories = sixth["buffer_after"]["memories"]
    assert sixth["buffer_after"]["tokens"] == 14 * len(memories) > 0
    assert {"decay", "utility", "reward"} <= set(memories[0])
    assert {"memory_id", "interaction_id", "decay_score", "was_accessed", "was_reinforced"} <= set(
        decay["points"][0]
    )
    assert not [path for path in (ws.root / FOLDER).iterdir() if path.suffix != ".json"]


def test_only_what_is_asked_for_is_written(ws):
    interacted(ws, 1)
    written = Logs(ws.engine, "s", ExecutorConfig(log_decay_curves=True)).write()
    assert [path.name for path in written] == ["metrics_s.json", "decay_s.json"]


def test_a_disk_that_refuses_is_one_note_and_no_error(ws):
    (ws.root / FOLDER).parent.mkdir(exist_ok=True)
    (ws.root / FOLDER).write_text("in the way")
    interacted(ws, 1)
    logs = Logs(ws.engine, "s", ExecutorConfig(log_decay_curves=True))
    assert (logs.write(), logs.write()) == ([], [])
    assert [note.partition(" cannot be written")[0] for note in ws.engine.write_path.notes] == [
        f"{FOLDER}/metrics_s.json",
        f"{FOLDER}/decay_s.json",
    ]


def test_what_cannot_be_read_of_an_interaction_is_a_fault_and_the_others_count(ws):
    interacted(ws, 1, metrics=Metrics(total_latency_ms=3.0))
    broken = Interacted(session="s", interaction=2, message=0, metrics=Body('{"faults": 3'))
    ws.record(Draft(data=broken, actor="engine:cognition"))
    found = followed(ws, MetricsCollector()).collected
    assert (found.interactions, found.faults) == (2, {UNREADABLE: 1})


def test_the_session_that_was_spoken_in_last_comes_last(tmp_path, lexical):
    with Workspace.create(tmp_path / "two", settings=lexical) as ws:
        for session in ("a", "b", "a"):
            interacted(ws, 1, session)
        assert list(sessions(ws.events()).items()) == [("b", 1), ("a", 2)]
