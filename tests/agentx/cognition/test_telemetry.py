"""Spans and metrics of an interaction, where OpenTelemetry is installed; nothing at all where it is not."""

import sys

from opentelemetry import metrics as otel_metrics
from opentelemetry import trace as otel_trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agentx.cognition import telemetry
from agentx.synthesis.cognition.metrics import Metrics

ASKED = Metrics(
    input_type="question",
    recognizer_latency_ms=10.0,
    recognizer_prompt_tokens=300,
    recognizer_completion_tokens=20,
    decayer_triggered=True,
    decayer_trigger_reason="question",
    decayer_latency_ms=5.0,
    activator_trigger_count=2,
    activator_latency_ms=25.0,
    dag_node_count=3,
    response_generation_latency_ms=50.0,
    total_latency_ms=100.0,
    faults=["broken JSON"],
)


def test_an_interaction_is_a_span_with_its_modules_below_it_and_counts():
    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    otel_trace.set_tracer_provider(provider)  # a process has one for ever; no other test looks at it
    otel_metrics.set_meter_provider(MeterProvider([reader]))
    for number, measured in enumerate((ASKED, Metrics(total_latency_ms=1.0)), 1):
        assert telemetry.emit(measured, session="s", interaction=number, ended="2026-03-01T10:00:00.000000Z")
    recognizer, decayer, activator, response, whole, *second = spans.get_finished_spans()
    assert [span.name.partition(".")[2] for span in second] == ["recognizer", "response", "interaction"]
    assert whole.name == "cognition.interaction"
    assert {span.parent.span_id for span in (recognizer, decayer, activator, response)} == {
        whole.context.span_id
    }
    assert (whole.end_time - whole.start_time, whole.end_time) == (100_000_000, 1_772_359_200_000_000_000)
    begins = [
        (span.start_time - whole.start_time) // 1_000_000
        for span in (recognizer, decayer, activator, response)
    ]
    assert begins == [0, 10, 15, 40]
    assert whole.attributes["gen_ai.conversation.id"] == "s"
    assert recognizer.attributes["gen_ai.usage.input_tokens"] == 300
    assert decayer.attributes["agentx.cognition.reason"] == "question"
    assert [event.attributes["agentx.cognition.fault"] for event in whole.events] == ["broken JSON"]
    found = {
        metric.name: list(metric.data.data_points)
        for resource in reader.get_metrics_data().resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert sum(point.value for point in found["agentx.cognition.interactions"]) == 2
    assert sum(point.value for point in found["agentx.cognition.activations"]) == 2
    assert sum(point.sum for point in found["gen_ai.client.token.usage"]) == 320
    total = [
        p for p in found["agentx.cognition.latency"] if p.attributes["agentx.cognition.module"] == "total"
    ]
    assert (total[0].count, total[0].sum) == (2, 101.0)


def test_without_it_nothing_happens(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)  # as it is where it is not installed
    assert not telemetry.emit(ASKED, session="s", interaction=1, ended="2026-03-01T10:00:00Z")
