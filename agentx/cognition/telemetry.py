"""OpenTelemetry spans and metrics of interactions; without OpenTelemetry installed, nothing happens.

The destination is set by the program that configures its SDK, or by ``opentelemetry-instrument`` and the
``OTEL_`` variables.
"""

from datetime import datetime
from typing import Any, NamedTuple

from agentx.synthesis.cognition.metrics import Metrics
from agentx.telemetry import Metric, Reporter, host_reporter

NAME = "agentx.cognition"

_NS_PER_MS = 1_000_000
_KIND, _MODULE, _TYPE = "agentx.cognition.input_type", "agentx.cognition.module", "gen_ai.token.type"

_INTERACTIONS, _ACTIVATIONS, _FAULTS = (
    Metric(name=f"{NAME}.{name}", kind="counter", unit="1", about=about, attributes=(_KIND,))
    for name, about in (
        ("interactions", "Interactions, by type of input."),
        ("activations", "Runs of the activator."),
        ("faults", "Faults of modules."),
    )
)
_LATENCY = Metric(
    name=f"{NAME}.latency",
    kind="histogram",
    unit="ms",
    about="Time of each module, and the total.",
    attributes=(_MODULE,),
    bounds=(5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000),
)
_USED = Metric(
    name="gen_ai.client.token.usage",
    kind="histogram",
    unit="{token}",
    about="Tokens of each module, input and output.",
    attributes=(_MODULE, _TYPE),
    bounds=(1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144),
)


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
    reporter = host_reporter(NAME)
    if reporter is None:
        return False
    end = int(datetime.fromisoformat(ended).timestamp() * 1e9)
    start = end - int(metrics.total_latency_ms * _NS_PER_MS)
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.conversation.id": session,
        "agentx.cognition.interaction": interaction,
        _KIND: metrics.input_type,
        "agentx.cognition.activations": metrics.activator_trigger_count,
        "agentx.cognition.memories_stored": len(metrics.new_memories_stored),
        "agentx.cognition.memories_evicted": len(metrics.evicted_memory_ids),
        "agentx.cognition.cost_usd": metrics.cost_usd,
    }
    whole = reporter.begin("cognition.interaction", at_ns=start, attributes=attributes)
    for fault in metrics.faults:
        whole.add_event("fault", {"agentx.cognition.fault": fault}, timestamp=end)
    at = start
    for part in _parts(metrics):
        span = reporter.begin(f"cognition.{part.name}", parent=whole, at_ns=at, attributes=part.attributes)
        at = min(at + int(part.ms * _NS_PER_MS), end)
        reporter.end(span, at_ns=at)
    reporter.end(whole, at_ns=end)
    _measure(reporter, metrics)
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


def _measure(reporter: Reporter, metrics: Metrics) -> None:
    kind = {_KIND: metrics.input_type}
    reporter.add(_INTERACTIONS, 1, kind)
    reporter.add(_ACTIVATIONS, metrics.activator_trigger_count, kind)
    reporter.add(_FAULTS, len(metrics.faults), kind)
    reporter.add(_LATENCY, metrics.total_latency_ms, {_MODULE: "total"})
    for part in _parts(metrics):
        module = {_MODULE: part.name}
        reporter.add(_LATENCY, part.ms, module)
        for sort in ("input", "output"):
            if tokens := part.attributes[f"gen_ai.usage.{sort}_tokens"]:
                reporter.add(_USED, tokens, module | {_TYPE: sort})
