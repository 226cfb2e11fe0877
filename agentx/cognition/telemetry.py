"""OpenTelemetry spans and metrics of interactions; without OpenTelemetry installed, nothing happens.

Only its API is used. The destination is set by the program that configures its SDK, or by
``opentelemetry-instrument`` and the ``OTEL_`` variables.
"""

from datetime import datetime
from typing import Any, NamedTuple

from agentx.storage.extras import TELEMETRY, ExtraMissing, needs
from agentx.synthesis.cognition.metrics import Metrics

NAME = "agentx.cognition"

_NS_PER_MS = 1_000_000


class _ChildSpan(NamedTuple):
    """A child span of the interaction's span."""

    name: str
    ms: float
    attributes: dict[str, Any]


def emit(metrics: Metrics, *, session: str, interaction: int, ended: str) -> bool:
    """Report one interaction to OpenTelemetry; its parts become consecutive spans up to a time in ISO 8601.

    Returns:
        Whether OpenTelemetry is installed.
    """
    try:
        with needs(TELEMETRY):
            import opentelemetry.sdk  # noqa: F401, PLC0415 - the API alone, which mcp brings, reports nothing
            from opentelemetry import metrics as meters  # noqa: PLC0415 - an extra
            from opentelemetry import trace  # noqa: PLC0415
    except ExtraMissing:
        return False
    end = int(datetime.fromisoformat(ended).timestamp() * 1e9)
    start = end - int(metrics.total_latency_ms * _NS_PER_MS)
    tracer = trace.get_tracer(NAME)
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.conversation.id": session,
        "agentx.cognition.interaction": interaction,
        "agentx.cognition.input_type": metrics.input_type,
        "agentx.cognition.activations": metrics.activator_trigger_count,
        "agentx.cognition.memories_stored": len(metrics.new_memories_stored),
        "agentx.cognition.memories_evicted": len(metrics.evicted_memory_ids),
        "agentx.cognition.cost_usd": metrics.cost_usd,
    }
    whole = tracer.start_span("cognition.interaction", start_time=start, attributes=attributes)
    for fault in metrics.faults:
        whole.add_event("fault", {"agentx.cognition.fault": fault}, timestamp=end)
    inside, at = trace.set_span_in_context(whole), start
    for part in _parts(metrics):
        span = tracer.start_span(
            f"cognition.{part.name}", context=inside, start_time=at, attributes=part.attributes
        )
        at = min(at + int(part.ms * _NS_PER_MS), end)
        span.end(end_time=at)
    whole.end(end_time=end)
    _measure(meters.get_meter(NAME), metrics)
    return True


def _parts(metrics: Metrics) -> list[_ChildSpan]:
    """Return the modules that ran."""
    found = [_ChildSpan("recognizer", metrics.recognizer_latency_ms, _tokens(metrics, "recognizer"))]
    if metrics.decayer_triggered:
        reason = {"agentx.cognition.reason": metrics.decayer_trigger_reason}
        found.append(_ChildSpan("decayer", metrics.decayer_latency_ms, reason | _tokens(metrics, "decayer")))
    if metrics.activator_trigger_count:
        graph = {
            "agentx.cognition.sub_queries": metrics.dag_node_count,
            "agentx.cognition.sub_query_edges": metrics.dag_edge_count,
        }
        found.append(
            _ChildSpan("activator", metrics.activator_latency_ms, graph | _tokens(metrics, "activator"))
        )
    found.append(_ChildSpan("response", metrics.response_generation_latency_ms, _tokens(metrics, "response")))
    return found


def _tokens(metrics: Metrics, module: str) -> dict[str, Any]:
    return {
        "gen_ai.usage.input_tokens": getattr(metrics, f"{module}_prompt_tokens"),
        "gen_ai.usage.output_tokens": getattr(metrics, f"{module}_completion_tokens"),
    }


def _measure(meter: Any, metrics: Metrics) -> None:
    kind = {"agentx.cognition.input_type": metrics.input_type}
    meter.create_counter("agentx.cognition.interactions").add(1, kind)
    meter.create_counter("agentx.cognition.activations").add(metrics.activator_trigger_count, kind)
    meter.create_counter("agentx.cognition.faults").add(len(metrics.faults), kind)
    latency = meter.create_histogram("agentx.cognition.latency", unit="ms")
    latency.record(metrics.total_latency_ms, {"agentx.cognition.module": "total"})
    used = meter.create_histogram("gen_ai.client.token.usage", unit="{token}")
    for part in _parts(metrics):
        module = {"agentx.cognition.module": part.name}
        latency.record(part.ms, module)
        for sort in ("input", "output"):
            tokens = part.attributes[f"gen_ai.usage.{sort}_tokens"]
            if tokens:
                used.record(tokens, module | {"gen_ai.token.type": sort})
