"""The scribe at work: notes are taken beside the agent, always, and the agent has no say in whether.

Its deterministic form runs on each fact as it is recorded. Its model form reads the messages on from where it last read,
so a run that failed, or three of them, is made up for by the next: after a turn, on request, and on a schedule while a
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
from agentx.memory.model_extraction import Judged, judge_in, unread
from agentx.storage.errors import AgentXError
from agentx.storage.log.history import told_already
from agentx.synthesis.memory.items import MemoryItem
from agentx.synthesis.model.open import SCRIPT
from agentx.synthesis.model.port import ModelClient, Usage
from agentx.synthesis.state.state import State

_LOG = logging.getLogger("agentx.memory.note_taking")

LOOK_S = 30.0
"""So often a process that keeps a workspace open looks whether a run is due."""

MOST_COUNTED = 1_000
"""So many unread messages are counted one by one."""


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """How far the scribe lags behind.

    Attributes:
        events: Facts that were recorded and not read by the deterministic form; 0 but for a fault.
        messages: Messages that no model has read, at most :data:`MOST_COUNTED`.
        since: When the first of them was said; empty for none.
        last_read: When a model last read; empty for never.
        model: The model that would read; empty where none is configured.
        active: Whether it is within the active hours.
        due: Whether a run by schedule would ask the model now.
    """

    events: int
    messages: int
    since: str
    last_read: str
    model: str
    active: bool
    due: bool


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """What a run did.

    Attributes:
        items: What it noted or changed, as it is now.
        messages: How many messages a model read.
        judged: What each asking gave; empty where no model was asked.
        usage: What they used in all.
        left: Messages that are still unread: there was no model, or no time.
    """

    items: tuple[MemoryItem, ...] = ()
    messages: int = 0
    judged: tuple[Judged, ...] = ()
    usage: Usage = Usage()
    left: int = 0


class Scribe:
    """Takes the notes of one workspace.

    Args:
        engine: The workspace's parts.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._tried: datetime | None = None

    @property
    def model(self) -> str:
        """The model that reads along: that of ``agentx.toml`` or the environment, where it may be used."""
        name = models.model_name(self._engine)
        return "" if name.startswith(SCRIPT) or not self._engine.config.scribe.auto_capture else name

    def pending(self, now: datetime | None = None) -> Pending:
        """What is unread, by code and by a model.

        Args:
            now: The time to decide by; the present by default. Active hours are those of its zone.
        """
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
            last_read=last.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
            if last
            else "",
            model=self.model,
            active=active,
            due=bool(batch and self.model and active and waited),
        )

    def flush(self) -> None:
        """Note everything that is recorded, without a model; what a conversation drops afterwards is not lost."""
        if not self._engine.write_path.read_only:
            self._engine.write_path.refresh()
            self._engine.synthesizer.flush()

    def run(self, model: ModelClient | None = None) -> Ran:
        """Read on from where the scribe last read, by code and then by a model where there is one.

        Args:
            model: Who reads; the configured one by default.

        Raises:
            ModelError: It could not be reached, or its answer not be read; the next run reads the same again.
            WorkspaceBusy: Another process has a model read just now.
        """
        self.flush()
        if model is None and self.model:
            model = models.model(self._engine)
        self._tried = datetime.now(tz=UTC)  # one that fails is not tried at once again
        end = time.monotonic() + self._engine.config.scribe.timeout_s
        judged: list[Judged] = []
        while model is not None and (left_s := end - time.monotonic()) > 0:
            one = judge_in(self._engine, model, timeout_s=left_s)
            if not one.messages:
                break
            judged.append(one)
        batch = unread(self._engine, self._engine.snapshot(), MOST_COUNTED)
        return Ran(
            items=tuple({item.id: item for one in judged for item in one.items}.values()),
            messages=sum(len(one.messages) for one in judged),
            judged=tuple(judged),
            usage=sum((one.usage for one in judged), Usage()),
            left=len(batch.said) + len(batch.heard),
        )

    def run_when_due(self, now: datetime | None = None) -> Ran | None:
        """Run if a run is due; ``None`` if none is."""
        return self.run() if self.pending(now).due else None

    @contextlib.contextmanager
    def keeping(self, look_s: float = LOOK_S) -> Iterator[None]:
        """Run whenever it is due, beside the body of the ``with``; what fails is made up for by the next run."""
        stopping = threading.Event()

        def work() -> None:
            while True:
                try:
                    self.run_when_due()
                except AgentXError as error:
                    _LOG.warning("The scribe's run failed, and the next makes up for it: %s", error)
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
        """When the message was said up to which a model has read."""
        if not state.judged:
            return None
        event = next(iter(self._engine.write_path.history.read(state.judged - 1, told_already)), None)
        with contextlib.suppress(ValueError):
            return datetime.fromisoformat(event.at) if event else None
        return None


def is_active(hours: str, now: datetime) -> bool:
    """Whether an hour is within active hours.

    >>> is_active("8-24", datetime(2026, 1, 1, 23, 30)), is_active("22-6", datetime(2026, 1, 1, 7, 0))
    (True, False)
    """
    first, last = map(int, hours.split("-"))
    return first <= now.hour < last if first < last else now.hour >= first or now.hour < last
