"""The progress of a workspace's pipelines, updated as events arrive."""

import threading

import msgspec

from agentx.core.cached_projection import Kept
from agentx.core.event_bus import ALL
from agentx.engine.engine import Engine
from agentx.storage.events.types import Event
from agentx.storage.log.history import told_already
from agentx.synthesis.pipelines.running.pipeline_progress import VERSION, Pipelines, Progress
from agentx.synthesis.state.state import State


def pipelines(engine: Engine) -> Pipelines:
    """Return a copy of the progress of all pipelines, including events of other processes."""
    history = engine.log.history

    def anew(state: State) -> Pipelines:
        made = Pipelines()
        for event in history.read(on_damage=told_already):
            if event.seq <= state.seq:
                made.take(event)
        return made

    kept = Kept(history, engine.write_path.cache / "pipelines", str(VERSION), anew, Pipelines.take, Pipelines)
    return kept.at(
        engine.snapshot(), lambda made: msgspec.json.decode(msgspec.json.encode(made), type=Pipelines)
    )


class Tracker:
    """The progress of one running pipeline.

    It is fed by the event bus, so each event is included when its append returns.
    """

    def __init__(self, engine: Engine, name: str) -> None:
        self.lock = threading.RLock()
        with engine.write_path.exclusive():
            self._all = pipelines(engine)
            self._seq = engine.log.state.seq
            self.close = engine.bus.subscribe(ALL, self._take)
        self.progress: Progress = self._all.of(name)
        self.changed = self._all.changed

    def _take(self, event: Event) -> None:
        with self.lock:
            if event.seq > self._seq:
                self._seq = event.seq
                self._all.take(event)
