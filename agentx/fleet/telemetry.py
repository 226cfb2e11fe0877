"""What a fleet reports to OpenTelemetry: one trace for each submission, and the metrics of the fleet.

The process of a run says when each part begins and ends, over the pipe to its worker, and the worker makes
the spans. So whatever ended is known to the worker when the process of a run is killed, and what was at work
ends there, as failed. Metrics have no name of a workspace, a submission or a tool: each value of an attribute
is a time series of its own for as long as the receiver keeps it. No text of a message, an answer, an argument
or an error is in an attribute, since any of these may hold a secret.
"""

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from agentx.agents.run_types import Observer
from agentx.fleet.place import Place
from agentx.fleet.submission import Submission
from agentx.scheduling.run_pool import RunPool, tell
from agentx.scheduling.shared_queue import QueueFailed, SharedQueue
from agentx.settings import Settings
from agentx.storage.text import clip
from agentx.synthesis.model.port import (
    CallPart,
    ChatMessage,
    ModelClient,
    Reply,
    TextPart,
    ToolCall,
    ToolSchema,
)
from agentx.telemetry import Attributes, Metric, Reading, Reporter, Tell, now_ns, reporting

if TYPE_CHECKING:
    from agentx.tools.toolset import ToolResult

SCOPE = "agentx.fleet"
SUBMIT_FLUSH_S = 2.0
"""How long `agentx fleet submit` waits for the receiver."""

TENANT, STATUS, PART = "agentx.fleet.tenant", "agentx.fleet.status", "agentx.fleet.part"
PROVIDER, MODEL, TOKENS = "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.token.type"

RUNS = Metric(
    name="agentx.fleet.runs",
    kind="counter",
    unit="{run}",
    about="Attempts that ended on a worker, by status.",
    attributes=(TENANT, STATUS),
)
RUN_TIME = Metric(
    name="agentx.fleet.run.duration",
    kind="histogram",
    unit="s",
    about="Time that a worker had a submission, by status.",
    attributes=(TENANT, STATUS),
)
PART_TIME = Metric(
    name="agentx.fleet.part.duration",
    kind="histogram",
    unit="s",
    about="Time of each part of an attempt: queue, fetch, open, run, push, wait, set_aside.",
    attributes=(TENANT, PART),
)
CALL_TIME = Metric(
    name="gen_ai.client.operation.duration",
    kind="histogram",
    unit="s",
    about="Time of each call of a model.",
    attributes=(TENANT, PROVIDER, MODEL),
)
USED = Metric(
    name="gen_ai.client.token.usage",
    kind="histogram",
    unit="{token}",
    about="Tokens of each call of a model, input and output.",
    attributes=(TENANT, PROVIDER, MODEL, TOKENS),
    bounds=(1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304),
)
COST = Metric(
    name="agentx.fleet.cost",
    kind="counter",
    unit="{USD}",
    about="Cost of the calls of models in US dollars, as far as prices are known.",
    attributes=(TENANT, PROVIDER, MODEL),
)
RETRIES = Metric(
    name="agentx.fleet.remote.retries",
    kind="counter",
    unit="{retry}",
    about="Times that a worker waited for a remote that it could not reach.",
    attributes=(TENANT,),
)
TAKEN_OVER = Metric(
    name="agentx.fleet.takeovers",
    kind="counter",
    unit="{submission}",
    about="Submissions that this worker returned to the queue, because theirs showed no sign of life.",
    attributes=(TENANT,),
)
QUEUED = Metric(
    name="agentx.fleet.queue.depth",
    kind="gauge",
    unit="{submission}",
    about="Submissions in the queue: queued, running. Each worker reports the whole fleet's.",
    attributes=(TENANT, STATUS),
)
WORKERS = Metric(
    name="agentx.fleet.workers",
    kind="gauge",
    unit="{worker}",
    about="Workers: alive, draining, lost. Each worker reports the whole fleet's.",
    attributes=(TENANT, STATUS),
)
STRANDED = Metric(
    name="agentx.fleet.stranded",
    kind="gauge",
    unit="{ref}",
    about="Histories that were set aside and nobody has removed. Each worker reports the whole fleet's.",
    attributes=(TENANT,),
)
RESIDENTS = Metric(
    name="agentx.fleet.residents",
    kind="gauge",
    unit="{process}",
    about="Resident processes of this worker.",
    attributes=(TENANT,),
)
MEMORY = Metric(
    name="agentx.fleet.residents.memory",
    kind="gauge",
    unit="By",
    about="Their resident memory together.",
    attributes=(TENANT,),
)
METRICS = (
    RUNS,
    RUN_TIME,
    PART_TIME,
    CALL_TIME,
    USED,
    COST,
    RETRIES,
    TAKEN_OVER,
    QUEUED,
    WORKERS,
    STRANDED,
    RESIDENTS,
    MEMORY,
)
"""All metrics."""

SPANS: Mapping[str, str] = {
    "fleet.submit": "`agentx fleet submit`: the workspace is pushed, the run is signed and queued",
    "fleet.queue": "from there until a worker has it",
    "fleet.carry_out": "an attempt of one worker; those below are its parts",
    "fleet.fetch": "fetch into the worker's copy, or clone",
    "fleet.open": "open the copy: read what is new in the history",
    "fleet.run": "signatures, then the agent's run",
    "invoke_agent": "the agent, with its role in the name",
    "chat": "a call of the model, with its name in the span's",
    "execute_tool": "a call of a tool, with its name in the span's",
    "fleet.push": "push to the remote",
    "fleet.wait": "a pause before the remote is tried again",
    "fleet.set_aside": "events whose place was taken are moved out of the way",
}
"""All spans, by the first word of their name."""

_COST = "agentx.fleet.cost_usd"
_NAME = re.compile(r"[A-Za-z0-9_.:/@+-]{1,80}")


# --- in the process of a run --------------------------------------------------------------------------------


class Began(msgspec.Struct, frozen=True):
    """A part began; one that begins before it has ended is a part of it."""

    name: str
    at_ns: int
    kind: str
    attributes: dict[str, str | int | float | bool]


class Ended(msgspec.Struct, frozen=True):
    """The last part of a name has ended, with those inside it that did not say so."""

    name: str
    at_ns: int
    error: str
    attributes: dict[str, str | int | float | bool]


class Parts:
    """The parts of an attempt: their seconds, and their spans if the worker reports.

    Args:
        report: Whether it does.

    Attributes:
        seconds: Seconds of each part so far, by name.
    """

    def __init__(self, *, report: bool) -> None:
        self.seconds: dict[str, float] = {}
        self._report = report

    @contextlib.contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Count the time of the body as a part of the attempt."""
        began = time.monotonic()
        try:
            with self.span(f"fleet.{name}"):
                yield
        finally:
            spent = time.monotonic() - began
            self.seconds[name] = round(self.seconds.get(name, 0.0) + spent, 4)

    @contextlib.contextmanager
    def span(self, name: str, attributes: Attributes | None = None) -> Iterator[None]:
        """Report the body as a span."""
        self.begin(name, attributes or {})
        try:
            yield
        except BaseException as error:
            self.end(name, type(error).__name__)
            raise
        self.end(name)

    def begin(self, name: str, attributes: Attributes, *, kind: str = "internal") -> None:
        """Report that a span begins."""
        if self._report:
            tell(Began(name, now_ns(), kind, dict(attributes)))

    def end(self, name: str, error: str = "", attributes: Attributes | None = None) -> None:
        """Report that the last span of a name has ended."""
        if self._report:
            tell(Ended(name, now_ns(), error, dict(attributes or {})))

    def agent(self, role: str) -> contextlib.AbstractContextManager[None]:
        """Report the body as the work of an agent."""
        about = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": _checked(role)}
        return self.span(f"invoke_agent {_checked(role)}", about)


class ReportedModel:
    """A model whose calls are reported as spans.

    Args:
        model: The model.
        parts: The parts of the attempt.
    """

    def __init__(self, model: ModelClient, parts: Parts) -> None:
        self.name, self._model, self._parts = model.name, model, parts

    def stream(
        self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = (), *, timeout_s: float = 120.0
    ) -> Iterator[TextPart | CallPart | Reply]:
        """Call the model."""
        provider, name = provider_and_model(self.name)
        span = f"chat {name}"
        self._parts.begin(
            span, {"gen_ai.operation.name": "chat", PROVIDER: provider, MODEL: name}, kind="client"
        )
        ended = False
        try:
            for part in self._model.stream(messages, tools, timeout_s=timeout_s):
                if isinstance(part, Reply):
                    ended = True
                    used = {
                        "gen_ai.usage.input_tokens": part.usage.prompt_tokens,
                        "gen_ai.usage.output_tokens": part.usage.completion_tokens,
                        _COST: part.usage.cost_usd,
                    }
                    self._parts.end(span, attributes=used)
                yield part
        except BaseException as error:
            if not ended:  # who has the reply closes the stream
                self._parts.end(span, type(error).__name__)
            raise


class ReportedTools(Observer):
    """Reports a run's calls of tools as spans.

    Args:
        parts: The parts of the attempt.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def tool_started(self, call: ToolCall) -> None:
        """A tool is about to run."""
        name = _checked(call.name)
        about = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
        self._parts.begin(f"execute_tool {name}", about)

    def tool_ended(self, call: ToolCall, result: "ToolResult") -> None:
        """A tool returned."""
        error = "" if result.status == "SUCCEEDED" else result.status
        self._parts.end(f"execute_tool {_checked(call.name)}", error)


def provider_and_model(name: str) -> tuple[str, str]:
    """Return the provider and the model of a name as the settings have it.

    >>> provider_and_model("anthropic/claude-sonnet"), provider_and_model("script:/home/me/turns.jsonl")
    (('anthropic', 'claude-sonnet'), ('script', 'script'))
    """
    if name.startswith("script:"):  # the path of a file is nobody's business
        return "script", "script"
    provider, slash, model = name.partition("/")
    return (_checked(provider), _checked(model)) if slash else ("unknown", _checked(name))


def _checked(name: str) -> str:
    """Return a name that others chose; one that could be a text is left out."""
    return name if _NAME.fullmatch(name) else "other"


# --- on the worker ------------------------------------------------------------------------------------------


class FleetTelemetry:
    """What one worker reports; nothing without a reporter.

    Args:
        reporter: Where to.
        tenant: The tenant.
        worker: Name of the worker.
    """

    def __init__(self, reporter: Reporter | None, tenant: str, worker: str) -> None:
        self._reporter, self._tenant, self._worker = reporter, tenant, worker

    def watch(self, queue: SharedQueue, pool: RunPool, lease_s: float) -> None:
        """Have the state of the fleet and of this worker's processes read at each export."""
        if self._reporter is None:
            return

        def by_status(counts: Mapping[str, int]) -> list[Reading]:
            return [(number, {TENANT: self._tenant, STATUS: status}) for status, number in counts.items()]

        def depth() -> Iterable[Reading]:
            counts = queue.counts()
            waiting = counts.get("ENQUEUED", 0) + counts.get("DELAYED", 0)
            return by_status({"queued": waiting, "running": counts.get("PENDING", 0)})

        def workers() -> Iterable[Reading]:
            counts = {"alive": 0, "draining": 0, "lost": 0}
            for one in queue.workers():
                counts["lost" if one.quiet_s > lease_s else "draining" if one.draining else "alive"] += 1
            return by_status(counts)

        own = {TENANT: self._tenant}
        for metric, read in (
            (QUEUED, depth),
            (WORKERS, workers),
            (STRANDED, lambda: [(len(queue.asides()), own)]),
            (RESIDENTS, lambda: [(len(pool.memory()), own)]),
            (MEMORY, lambda: [(sum(pool.memory()), own)]),
        ):
            self._reporter.observe(metric, _or_nothing(read))

    @contextlib.contextmanager
    def attempt(self, submission: Submission | None) -> Iterator["Attempt"]:
        """Report what is done for a submission in the body; ``None`` for one that cannot be read."""
        made = Attempt(self._reporter, self._tenant, self._worker, submission)
        try:
            yield made
        except BaseException as error:
            made.end(type(error).__name__)
            raise
        made.end("" if made.status in _IN_ORDER else made.status)

    def took_over(self, number: int) -> None:
        """Count submissions of workers that show no sign of life."""
        if self._reporter is not None and number:
            self._reporter.add(TAKEN_OVER, number, {TENANT: self._tenant})


_IN_ORDER = ("COMPLETED", "WAITING", "LIMIT_REACHED")


class Attempt:
    """One worker's attempt at a submission.

    Attributes:
        reports: Whether the process of the run is to say when its parts begin and end.
        status: How it ended; empty until it is known.
    """

    def __init__(
        self, reporter: Reporter | None, tenant: str, worker: str, submission: Submission | None
    ) -> None:
        self.reports, self.status = reporter is not None, ""
        self._reporter, self._own = reporter, {TENANT: tenant}
        self._began, self._open = now_ns(), list[tuple[Began, Any]]()
        if reporter is None:
            return
        about: dict[str, str] = {"agentx.fleet.worker": worker, **self._own}
        if submission is not None:
            about |= {
                "agentx.fleet.submission": submission.id,
                "agentx.fleet.workspace": submission.workspace,
            }
        parent = submission.traceparent if submission else ""
        self._whole = reporter.begin(
            "fleet.carry_out", parent=parent, at_ns=self._began, kind="consumer", attributes=about
        )
        asked = submission.submitted_ms * 1_000_000 if submission else 0
        if 0 < asked <= self._began:
            waited = reporter.begin(
                "fleet.queue", parent=parent or self._whole, at_ns=asked, attributes=about
            )
            reporter.end(waited, at_ns=self._began)
            self._measure("fleet.queue", self._began - asked)

    def last(self, said: Iterable[Any]) -> Any:
        """Take what the process of a run says; return the last other thing, ``None`` for nothing."""
        found = None
        for one in said:
            if isinstance(one, Began):
                self._begin(one)
            elif isinstance(one, Ended):
                while self._open and self._close(one):
                    """Those inside it, which did not say that they ended."""
            else:
                found = one
        self._abandon()
        return found

    def took(self, status: str, *, run: str, copy: str, already: bool) -> None:
        """Take how it ended, as a :class:`~agentx.fleet.carrying_out.Result` says."""
        self.status = status
        if self._reporter is not None:
            about = {"agentx.fleet.copy": copy, "agentx.fleet.run": run}
            self._whole.set_attributes({name: value for name, value in about.items() if value})
            self._whole.set_attribute("agentx.fleet.already", already)

    def end(self, error: str) -> None:
        """End it."""
        if self._reporter is None:
            return
        self._abandon()
        ended, about = now_ns(), {**self._own, STATUS: self.status or "AGAIN"}
        self._reporter.end(self._whole, at_ns=ended, error=error, attributes=about)
        self._reporter.add(RUNS, 1, about)
        self._reporter.add(RUN_TIME, (ended - self._began) / 1e9, about)

    def _begin(self, one: Began) -> None:
        if self._reporter is None:
            return
        around = self._open[-1][1] if self._open else self._whole
        kind: Any = one.kind
        span = self._reporter.begin(
            one.name, parent=around, at_ns=one.at_ns, kind=kind, attributes=one.attributes
        )
        self._open.append((one, span))
        if one.name == "fleet.wait":
            self._reporter.add(RETRIES, 1, self._own)

    def _abandon(self) -> None:
        """End what was at work in a process that died."""
        while self._open:
            self._close(Ended(self._open[-1][0].name, now_ns(), "process_died", {}))

    def _close(self, ended: Ended) -> bool:
        """End the innermost span; return whether it was another than the one that ended."""
        assert self._reporter is not None
        began, span = self._open.pop()
        other = began.name != ended.name
        error, more = ("abandoned", {}) if other else (ended.error, ended.attributes)
        spent = max(0, ended.at_ns - began.at_ns)
        self._reporter.end(span, at_ns=began.at_ns + spent, error=error, attributes=more)
        self._measure(began.name, spent)
        if began.name.startswith("chat "):
            model = {**self._own, PROVIDER: began.attributes[PROVIDER], MODEL: began.attributes[MODEL]}
            self._reporter.add(CALL_TIME, spent / 1e9, model)
            self._reporter.add(COST, float(more.get(_COST, 0.0)), model)
            for sort in ("input", "output"):
                if tokens := more.get(f"gen_ai.usage.{sort}_tokens"):
                    self._reporter.add(USED, int(tokens), model | {TOKENS: sort})
        return other

    def _measure(self, name: str, spent_ns: int) -> None:
        scope, _, part = name.partition(".")
        if scope == "fleet" and self._reporter is not None:
            self._reporter.add(PART_TIME, max(0, spent_ns) / 1e9, {**self._own, PART: part})


@contextlib.contextmanager
def reported(settings: Settings, place: Place, worker: str, told: Tell) -> Iterator[FleetTelemetry]:
    """Report what a worker does in the body, if a receiver is set."""
    with reporting(settings, SCOPE, instance=worker, told=told) as reporter:
        yield FleetTelemetry(reporter, place.tenant, worker)


@contextlib.contextmanager
def submitting(settings: Settings, place: Place, told: Tell) -> Iterator[str]:
    """Report the body as a submission, if a receiver is set; yield its ``traceparent``, empty without one.

    It is a part of the trace that ``TRACEPARENT`` names, of a build for example.
    """
    with reporting(settings, SCOPE, told=told, flush_s=SUBMIT_FLUSH_S) as reporter:
        if reporter is None:
            yield ""
            return
        span = reporter.begin(
            "fleet.submit",
            parent=clip(settings.environ.get("TRACEPARENT", ""), 80),
            kind="producer",
            attributes={TENANT: place.tenant},
        )
        error = ""
        try:
            yield reporter.traceparent(span)
        except BaseException as fault:
            error = type(fault).__name__
            raise
        finally:
            reporter.end(span, error=error)


def _or_nothing(read: Callable[[], Iterable[Reading]]) -> Callable[[], Iterable[Reading]]:
    """Return a reading that is empty while the database is away."""

    def tried() -> Iterable[Reading]:
        try:
            return read()
        except QueueFailed:
            return ()

    return tried
