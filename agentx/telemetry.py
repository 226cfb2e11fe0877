"""OpenTelemetry: the one place that knows it. Without the extra, or without a destination, nothing happens.

Traces and metrics go where the standard variables ``OTEL_`` say, by OTLP over HTTP; or to the SDK that the
program around us configured. The exporters work in threads of their own: a receiver that is away, slow or
broken costs what it did not get, and no run waits for it.
"""

import contextlib
import io
import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec

from agentx.settings import Settings
from agentx.storage.extras import TELEMETRY, ExtraMissing, needs
from agentx.storage.secrets.redaction import clean
from agentx.storage.text import clip, one_line

Attributes: TypeAlias = Mapping[str, str | int | float | bool]
Tell: TypeAlias = Callable[[str], None]
Reading: TypeAlias = tuple[float, Attributes]
"""A value that is read when metrics are exported, and its attributes."""

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800)
"""Bounds of a histogram of durations, in seconds."""

FLUSH_S = 5.0
"""How long the end of a program waits for the receiver."""

_ENDPOINTS = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
)
_CREDENTIALS = re.compile(r"OTEL_PYTHON_EXPORTER_OTLP_HTTP_\w*CREDENTIAL_PROVIDER")
_REASON = 200
_MOST_ANSWER = 1 << 16
"""Maximum number of bytes read of a receiver's answer; the exporters would read it whole."""


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric.

    Attributes:
        name: Its name.
        kind: What its values are: ``gauge`` is read when it is exported.
        unit: Its unit, in the notation of UCUM.
        about: What it measures.
        attributes: Names of its attributes.
        bounds: Bounds of a histogram.
    """

    name: str
    kind: Literal["counter", "histogram", "gauge"]
    unit: str
    about: str
    attributes: tuple[str, ...] = ()
    bounds: tuple[float, ...] = SECONDS

    @property
    def prometheus(self) -> str:
        """Its name in Prometheus, as OpenTelemetry's specification has it; a histogram's without suffix.

        >>> Metric(name="agentx.fleet.runs", kind="counter", unit="{run}", about="Runs.").prometheus
        'agentx_fleet_runs_total'
        """
        unit = {"s": "_seconds", "ms": "_milliseconds", "By": "_bytes"}.get(self.unit, "")
        return self.name.replace(".", "_") + unit + ("_total" if self.kind == "counter" else "")


class Reporter:
    """Makes spans and measures, under one name of a scope.

    Args:
        scope: The name.
        tracers: A provider of tracers of OpenTelemetry.
        meters: A provider of meters.
    """

    def __init__(self, scope: str, tracers: Any, meters: Any) -> None:
        self._tracer, self._meter = tracers.get_tracer(scope), meters.get_meter(scope)
        self._instruments: dict[str, Any] = {}
        self._lock = threading.Lock()

    def begin(
        self,
        name: str,
        *,
        parent: Any = None,
        at_ns: int | None = None,
        kind: Literal["internal", "client", "producer", "consumer"] = "internal",
        attributes: Attributes | None = None,
    ) -> Any:
        """Begin a span, to be ended by :meth:`end`.

        Args:
            name: Its name.
            parent: The span that it is a part of, or a ``traceparent`` of another process; empty for none,
                and one that cannot be read begins a new trace.
            at_ns: When it began, in nanoseconds since 1970; now by default.
            kind: Its kind.
            attributes: Its attributes.
        """
        with needs(TELEMETRY):
            from opentelemetry import context, trace  # noqa: PLC0415 - an extra
            from opentelemetry.trace.propagation import tracecontext  # noqa: PLC0415

        around = context.Context()
        if isinstance(parent, str):
            carrier = {"traceparent": parent}
            around = tracecontext.TraceContextTextMapPropagator().extract(carrier, around)
        elif parent is not None:
            around = trace.set_span_in_context(parent, around)
        return self._tracer.start_span(
            name,
            context=around,
            kind=trace.SpanKind[kind.upper()],
            start_time=at_ns,
            attributes=dict(attributes or {}),
        )

    def end(
        self, span: Any, *, at_ns: int | None = None, error: str = "", attributes: Attributes | None = None
    ) -> None:
        """End a span.

        Args:
            span: The span.
            at_ns: When it ended, in nanoseconds since 1970; now by default.
            error: Type of the error that ended it, a word; empty for none.
            attributes: More attributes.
        """
        with needs(TELEMETRY):
            from opentelemetry import trace  # noqa: PLC0415 - an extra

        span.set_attributes(dict(attributes or {}))
        if error:
            span.set_attribute("error.type", error)
            span.set_status(trace.StatusCode.ERROR)
        span.end(end_time=at_ns)

    def traceparent(self, span: Any) -> str:
        """Return what another process needs to make its spans parts of this one."""
        found = span.get_span_context()
        return f"00-{found.trace_id:032x}-{found.span_id:016x}-{int(found.trace_flags):02x}"

    def add(self, metric: Metric, value: float, attributes: Attributes | None = None) -> None:
        """Add to a counter, or record in a histogram."""
        with self._lock:
            if metric.name not in self._instruments:
                self._instruments[metric.name] = self._created(metric)
        instrument = self._instruments[metric.name]
        record = instrument.add if metric.kind == "counter" else instrument.record
        record(value, dict(attributes or {}))

    def observe(self, metric: Metric, read: Callable[[], Iterable[Reading]]) -> None:
        """Have a gauge read at each export, in a thread of the exporter."""
        with needs(TELEMETRY):
            from opentelemetry import metrics  # noqa: PLC0415 - an extra

        def called(_: Any) -> list[Any]:
            return [metrics.Observation(value, dict(attributes)) for value, attributes in read()]

        self._meter.create_observable_gauge(metric.name, [called], metric.unit, metric.about)

    def _created(self, metric: Metric) -> Any:
        if metric.kind == "counter":
            return self._meter.create_counter(metric.name, metric.unit, metric.about)
        return self._meter.create_histogram(
            metric.name, metric.unit, metric.about, explicit_bucket_boundaries_advisory=metric.bounds
        )


def host_reporter(scope: str) -> Reporter | None:
    """Return a reporter to the SDK that the program around us configures; ``None`` without the extra."""
    try:
        with needs(TELEMETRY):
            import opentelemetry.sdk  # noqa: F401, PLC0415 - the API alone, which mcp brings, reports nothing
            from opentelemetry import metrics, trace  # noqa: PLC0415 - an extra
    except ExtraMissing:
        return None
    return Reporter(scope, trace.get_tracer_provider(), metrics.get_meter_provider())


@contextlib.contextmanager
def reporting(
    settings: Settings, scope: str, *, instance: str = "", told: Tell, flush_s: float = FLUSH_S
) -> Iterator[Reporter | None]:
    """Report while the body of the ``with`` runs, then deliver what is left.

    Args:
        settings: Settings from the environment.
        scope: Name of what reports.
        instance: Name of this process among those of its service.
        told: Called with a sentence, once, if nothing can be delivered.
        flush_s: How long the receiver is waited for at the end, in seconds.

    Yields:
        The reporter; ``None`` if no destination is set, or the extra is not installed.
    """
    variables = {**settings.environ, **settings.keys}
    endpoint = next((variables[name] for name in _ENDPOINTS if variables.get(name)), "")
    if variables.get("OTEL_SDK_DISABLED", "").lower() == "true":
        endpoint = ""
    try:
        with needs(TELEMETRY):
            from opentelemetry import metrics, trace  # noqa: PLC0415 - an extra
            from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    except ExtraMissing as missing:
        if endpoint:
            told(str(missing))
        yield None
        return
    if isinstance(trace.get_tracer_provider(), TracerProvider):  # the program around us decides
        yield Reporter(scope, trace.get_tracer_provider(), metrics.get_meter_provider())
        return
    if not endpoint:
        yield None
        return
    protocol = variables.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    if protocol != "http/protobuf":
        told(f"OTEL_EXPORTER_OTLP_PROTOCOL is {clip(one_line(protocol), 20)}; http/protobuf is used instead.")
    loudness = _ToldOnce(endpoint, told)
    with loudness.instead_of_logging():
        tracers, meters = _providers(variables, instance)
        try:
            yield Reporter(scope, tracers, meters)
        finally:
            _shut_down(tracers, meters, flush_s)


def now_ns() -> int:
    """Return the time in nanoseconds since 1970."""
    return time.time_ns()


def _providers(variables: Mapping[str, str], instance: str) -> tuple[Any, Any]:
    """Return providers that export by OTLP; their other settings come from the standard variables."""
    with needs(TELEMETRY):
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    about = {"service.instance.id": instance} if instance else {}
    if not variables.get("OTEL_SERVICE_NAME"):
        about["service.name"] = "agentx"
    resource = Resource.create(about)
    tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
    if variables.get("OTEL_TRACES_EXPORTER") != "none":
        exporter = OTLPSpanExporter(session=_session(variables))
        tracers.add_span_processor(BatchSpanProcessor(exporter))
    readers = []
    if variables.get("OTEL_METRICS_EXPORTER") != "none":
        exporting = OTLPMetricExporter(session=_session(variables))
        readers.append(PeriodicExportingMetricReader(exporting))
    return tracers, MeterProvider(readers, resource=resource, shutdown_on_exit=False)


def _session(variables: Mapping[str, str]) -> Any:
    """Return a session that reads only the beginning of each answer; ``None`` where the user names one."""
    if any(_CREDENTIALS.fullmatch(name) for name in variables):
        return None
    with needs(TELEMETRY):
        import requests  # noqa: PLC0415 - comes with the exporters
        from requests.adapters import HTTPAdapter  # noqa: PLC0415

    class Bounded(HTTPAdapter):
        """Reads at most :data:`_MOST_ANSWER` bytes of an answer."""

        def send(self, request: Any, **options: Any) -> Any:  # type: ignore[override]
            response = super().send(request, **{**options, "stream": True})
            whole = response.raw
            response.raw = io.BytesIO(whole.read(_MOST_ANSWER, decode_content=True))
            whole.close()
            return response

    made = requests.Session()
    for scheme in ("http://", "https://"):
        made.mount(scheme, Bounded())
    return made


def _shut_down(tracers: Any, meters: Any, flush_s: float) -> None:
    """Deliver what is left; a receiver that does not answer is left alone after a while."""

    def end(provider: Any) -> None:
        with contextlib.suppress(Exception):  # a vendor's thread: nothing may come of what it was
            provider.shutdown()

    threads = [threading.Thread(target=end, args=(one,), daemon=True) for one in (tracers, meters)]
    for thread in threads:
        thread.start()
    until = time.monotonic() + flush_s
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))


class _ToldOnce(logging.Handler):
    """Says the first fault of the exporters, in place of their log."""

    def __init__(self, endpoint: str, told: Tell) -> None:
        super().__init__(logging.WARNING)
        self._where, self._told = urlsplit(endpoint).hostname or "its receiver", told
        self._said = False

    @contextlib.contextmanager
    def instead_of_logging(self) -> Iterator[None]:
        logger = logging.getLogger("opentelemetry")
        handlers, propagates = logger.handlers, logger.propagate
        logger.handlers, logger.propagate = [self], False
        try:
            yield
        finally:
            logger.handlers, logger.propagate = handlers, propagates

    def emit(self, record: logging.LogRecord) -> None:
        """Say it, unless something was said already."""
        if not self._said:
            self._said = True
            why = clip(one_line(clean(record.getMessage())), _REASON)
            self._told(f"Telemetry is not delivered to {self._where}, and runs go on without it: {why}")
