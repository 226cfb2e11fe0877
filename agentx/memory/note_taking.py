"""The scribe: takes notes beside the agent, always; the agent cannot prevent it.

Its deterministic part runs on each event as it is recorded. Its model part reads the messages since its last
run, so the next run makes up for failed ones. It runs after a turn, on request, and on a schedule while a
process keeps the workspace open.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec

from agentx.engine import models
from agentx.engine.engine import Engine
from agentx.memory.check_writing import TIMEOUT_S, WrittenChecks, unchecked, write_checks
from agentx.memory.model_extraction import Judged, combined, judge_in, unread
from agentx.storage.clock import stamp
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.log.history import told_already
from agentx.storage.progress import Progress
from agentx.synthesis.memory.items import MemoryItem
from agentx.synthesis.model.open import SCRIPT
from agentx.synthesis.model.port import ModelClient, ModelError, Usage
from agentx.synthesis.state.state import State

_LOG = logging.getLogger("agentx.memory.note_taking")

LOOK_S = 30.0
"""Seconds between two checks whether a run is due, in a process that keeps a workspace open."""

MOST_COUNTED = 1_000
"""Maximum number of unread messages that are counted one by one."""


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """The backlog of the scribe.

    Attributes:
        events: Number of recorded events that the deterministic part has not read; 0 unless there is a fault.
        messages: Number of messages that no model has read, at most :data:`MOST_COUNTED`.
        since: Time of the first of them; empty for none.
        last_read: Time of the last read by a model; empty for never.
        model: The configured model; empty if there is none.
        active: Whether the time is within the active hours.
        due: Whether a scheduled run would ask the model now.
    """

    events: int
    messages: int
    since: str
    last_read: str
    model: str
    active: bool
    due: bool


class ScribeRun(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run.

    Attributes:
        items: The items that were added or changed, with their current content.
        messages: Number of messages that a model read.
        judged: Result of each model call; empty if no model was asked.
        written: What a model wrote to check the rules in what it read.
        usage: Token usage of all calls.
        left: Number of messages still unread, for lack of a model, of time or of tokens.
        stopped: The limit that was reached before everything was read; empty if none was.
    """

    items: tuple[MemoryItem, ...] = ()
    messages: int = 0
    judged: tuple[Judged, ...] = ()
    written: tuple[WrittenChecks, ...] = ()
    usage: Usage = Usage()
    left: int = 0
    stopped: str = ""


class Scribe:
    """Takes the notes of one workspace."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._tried: datetime | None = None

    @property
    def model(self) -> str:
        """The model of the scribe: that of ``agentx.toml`` or the environment, if it may be used."""
        name = models.model_name(self._engine)
        return "" if name.startswith(SCRIPT) or not self._engine.config.scribe.auto_capture else name

    def pending(self, now: datetime | None = None) -> Pending:
        """Return the backlog of code and of the model at a time, in whose zone the active hours are."""
        now = now or datetime.now().astimezone()
        engine = self._engine
        state = engine.snapshot()
        batch = unread(engine, state, MOST_COUNTED)
        last = self._last_read(state)
        latest = max(filter(None, (last, self._tried)), default=None)
        active = is_active(engine.config.scribe.active_hours, now)
        waited = not latest or now - latest >= timedelta(minutes=engine.config.scribe.every_minutes)
        return Pending(
            events=max(state.seq - max(engine.synthesizer.through, state.watermark), 0),
            messages=len(batch.said) + len(batch.heard),
            since=batch.since,
            last_read=stamp(last, timespec="seconds") if last else "",
            model=self.model,
            active=active,
            due=bool(batch and self.model and active and waited),
        )

    def flush(self) -> None:
        """Process all recorded events without a model, so that a conversation can drop them safely."""
        if not self._engine.write_path.read_only:
            self._engine.write_path.refresh()
            self._engine.synthesizer.flush()

    def run(
        self,
        model: ModelClient | None = None,
        *,
        timeout_s: float | None = None,
        progress: Progress | None = None,
    ) -> ScribeRun:
        """Process the backlog, with code and then with a model: the given or the configured one, if any.

        The model reads everything that no model has read, in batches of 30 messages, oldest first, within
        ``limits.max_tokens`` and ``limits.max_cost_usd``. The next run continues where this one stops.

        Args:
            model: The model to use.
            timeout_s: Limit for all calls, in seconds; ``scribe.timeout_s`` by default.
            progress: Called after each batch with the number of messages read and the total.

        Raises:
            ModelError: The model could not be reached, or its answer could not be read; the next run reads
                the same again.
            WorkspaceBusy: A model is already reading for another process.
        """
        self.flush()
        if model is None and self.model:
            model = models.model(self._engine)
        self._tried = datetime.now(tz=UTC)  # a failed run is not retried at once
        time_s = self._engine.config.scribe.timeout_s if timeout_s is None else timeout_s
        end = time.monotonic() + time_s
        judged: list[Judged] = []
        left, stopped = self._unread(), ""
        total = left
        while model is not None and left:
            stopped = limit_reached(self._engine, combined(judged).usage, end)
            if stopped:
                break
            one = judge_in(self._engine, model, timeout_s=end - time.monotonic())
            if not one.messages:
                break
            judged.append(one)
            left = self._unread()
            if progress is not None:
                progress("messages", max(total - left, 0), total)
        whole = combined(judged)
        left_s = end - time.monotonic()
        written = self.write_checks(model, whole, timeout_s=left_s) if model is not None else ()
        return ScribeRun(
            items=whole.items,
            messages=len(whole.messages),
            judged=tuple(judged),
            written=written,
            usage=sum((one.usage for one in written), whole.usage),
            left=left,
            stopped=stopped,
        )

    def write_checks(
        self, model: ModelClient, read: Judged, *, timeout_s: float = TIMEOUT_S
    ) -> tuple[WrittenChecks, ...]:
        """Let a model write the checks of the rules in what it just read, once for each rule.

        Does nothing if ``scribe.write_checks`` is off. If the model fails, the other rules stay shown only.

        Args:
            model: The model.
            read: What it read.
            timeout_s: Limit for all calls, in seconds.
        """
        engine, used, end = self._engine, read.usage, time.monotonic() + timeout_s
        messages, changed = set(read.messages), {item.id for item in read.items}
        written: list[WrittenChecks] = []
        for item in unchecked(engine.snapshot()) if engine.config.scribe.write_checks else ():
            if item.id not in changed and messages.isdisjoint(one.seq for one in item.evidence):
                continue
            if limit_reached(engine, used, end):
                break
            try:
                written.append(write_checks(engine, model, item.id, timeout_s=end - time.monotonic()))
            except (ModelError, UsageError) as error:  # what it read is recorded, and counts
                _LOG.info("No checks were written for %s: %s", item.id, error)
                break
            used += written[-1].usage
        return tuple(written)

    def _unread(self) -> int:
        """Return the number of messages that no model has read, at most :data:`MOST_COUNTED`."""
        batch = unread(self._engine, self._engine.snapshot(), MOST_COUNTED)
        return len(batch.said) + len(batch.heard)

    def run_when_due(self, now: datetime | None = None) -> ScribeRun | None:
        """Run if a run is due; otherwise return ``None``."""
        return self.run() if self.model and self.pending(now).due else None

    @contextlib.contextmanager
    def keeping(self, look_s: float = LOOK_S) -> Iterator[None]:
        """Run whenever a run is due, in a thread beside the ``with`` body.

        The next run makes up for a failed one.
        """
        stopping = threading.Event()

        def work() -> None:
            while True:
                try:
                    self.run_when_due()
                except AgentXError as error:
                    _LOG.warning("The scribe's run failed; the next run will catch up: %s", error)
                if stopping.wait(look_s):
                    return

        thread = threading.Thread(target=work, name="agentx-scribe", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join(timeout=self._engine.config.scribe.timeout_s)

    def _last_read(self, state: State) -> datetime | None:
        """Return the time of the last message that a model has read."""
        if not state.judged:
            return None
        event = next(iter(self._engine.log.history.read(state.judged - 1, told_already)), None)
        with contextlib.suppress(ValueError):
            return datetime.fromisoformat(event.at) if event else None
        return None


def limit_reached(engine: Engine, used: Usage, end: float) -> str:
    """Return which limit keeps a model from going on after what it used; empty for none.

    Args:
        engine: The workspace's engine.
        used: What its calls used so far.
        end: ``time.monotonic()`` by which it must end.
    """
    limits = engine.config.limits
    if time.monotonic() >= end:
        return "the time"
    if used.prompt_tokens + used.completion_tokens >= limits.max_tokens:
        return f"{limits.max_tokens:,} tokens (limits.max_tokens)"
    if used.cost_usd >= limits.max_cost_usd:
        return f"{limits.max_cost_usd:g} USD (limits.max_cost_usd)"
    return ""


def is_active(hours: str, now: datetime) -> bool:
    """Return whether a time is within active hours.

    >>> is_active("8-24", datetime(2026, 1, 1, 23, 30)), is_active("22-6", datetime(2026, 1, 1, 7, 0))
    (True, False)
    """
    first, last = map(int, hours.split("-"))
    return first <= now.hour < last if first < last else now.hour >= first or now.hour < last
