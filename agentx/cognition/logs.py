"""The internals of a session, as files under ``.agentx/metrics/``, where its configuration asks for them.

They are exports: the history holds all the data, and the same files can be made again at any time. So each is
replaced atomically, but not synced. A full disk or an unwritable directory leads to a note, not an error.
"""

import contextlib
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from agentx.cognition.interactions import Interaction, SessionReplay
from agentx.cognition.overview import ActivatorTracker, MetricsCollector
from agentx.core.cache_dir import CACHE
from agentx.engine.engine import Engine
from agentx.storage.events.cognition_events import InputType
from agentx.storage.files import nofollow
from agentx.storage.files.durable import write_temporary
from agentx.storage.log.history import told_already
from agentx.synthesis.cognition.config import ExecutorConfig
from agentx.synthesis.cognition.metrics import ActivatorSnapshot, BufferedMemory, DecayerSnapshot, Metrics

FOLDER = f"{CACHE}/metrics"
"""Directory of the files, relative to the workspace."""


class BufferSnapshot(msgspec.Struct, frozen=True):
    """The buffer at one moment; ``tokens`` is the sum of its memories."""

    memories: tuple[BufferedMemory, ...]
    tokens: int


class LoggedInteraction(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of an interaction.

    Attributes:
        interaction_id: Its number in the session, from 1.
        decayer: Results of the Decayer in each iteration of the thinking loop.
        activator: What the Activator did in each iteration that fetched memories.
        judge_score: From 0 to 1; ``None`` where the answer was not judged.
    """

    interaction_id: int
    at: str
    message: int
    answer: int
    input_type: InputType
    decayer: tuple[DecayerSnapshot, ...]
    activator: tuple[ActivatorSnapshot, ...]
    buffer_before: BufferSnapshot
    buffer_after: BufferSnapshot
    judge_score: float | None
    metrics: Metrics

    @classmethod
    def of(cls, one: Interaction) -> "LoggedInteraction":
        """Return an interaction as it is logged."""
        before, after = (
            BufferSnapshot(memories, sum(memory.tokens for memory in memories))
            for memories in (one.snapshot.before, one.snapshot.after)
        )
        return cls(
            interaction_id=one.interaction_id,
            at=one.at,
            message=one.message,
            answer=one.answer,
            input_type=one.metrics.input_type,
            decayer=one.snapshot.decayer,
            activator=one.snapshot.activator,
            buffer_before=before,
            buffer_after=after,
            judge_score=one.judge_score,
            metrics=one.metrics,
        )


class Logs:
    """Follows one session, and writes the files that its configuration asks for."""

    def __init__(self, engine: Engine, session: str, config: ExecutorConfig) -> None:
        self._engine = engine
        self._config = config
        self._replay = SessionReplay(session, engine.read_body)
        self._seen = 0
        self._session = session
        # Encoded once, however often the files are written
        self._interactions: list[bytes] = []
        self._points: list[bytes] = []
        self._activator, self._metrics = ActivatorTracker(), MetricsCollector()

    def write(self) -> list[Path]:
        """Read the events since the last call, write the files again, and return those written.

        Nothing is read or written where no file is asked for.
        """
        config = self._config
        if not (config.log_intermediate_data or config.log_decay_curves or config.log_activator_triggers):
            return []
        for event in self._engine.log.history.read(self._seen, on_damage=told_already):
            self._seen = event.seq
            if one := self._replay.take(event):
                self._take(one)
        folder, written = self._engine.root / FOLDER, []
        for name, content in self._files().items():
            try:
                put(folder / name, content)
            except OSError as error:
                trouble = f"{FOLDER}/{name} cannot be written: {error.strerror or error}."
                note = f"{trouble} The history holds all of it."
                if note not in self._engine.write_path.notes:
                    self._engine.write_path.notes.append(note)
            else:
                written.append(folder / name)
        return written

    def _take(self, one: Interaction) -> None:
        self._metrics.take(one)
        if self._config.log_intermediate_data:
            self._interactions.append(msgspec.json.encode(LoggedInteraction.of(one)))
        if self._config.log_decay_curves:
            self._points += map(msgspec.json.encode, one.points)
        if self._config.log_activator_triggers:
            self._activator.take(one)

    def _files(self) -> dict[str, bytes]:
        name = re.sub(r"[^\w.-]+", "-", self._session)[:100]
        files = {f"metrics_{name}.json": _indented(self._metrics.collected)}
        if self._config.log_intermediate_data:
            files[f"intermediate_{name}.json"] = self._listed("interactions", self._interactions)
        if self._config.log_decay_curves:
            files[f"decay_{name}.json"] = self._listed("points", self._points)
        if self._config.log_activator_triggers:
            files[f"activator_{name}.json"] = _indented(self._activator.triggers)
        return files

    def _listed(self, name: str, lines: Sequence[bytes]) -> bytes:
        """Return a JSON object with a list; each entry is on its own line."""
        head = msgspec.json.encode({"run_id": self._session, name: []}).removesuffix(b"]}")
        return b"\n".join((head, b",\n".join(lines), b"]}\n"))


def _indented(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def put(path: Path, content: bytes) -> None:
    """Replace a file atomically.

    Raises:
        OSError: It cannot be written; the earlier file is unchanged.
    """
    nofollow.make_directory(path.parent, parents=True)
    temporary = write_temporary(path.parent, content, sync=False)
    try:
        nofollow.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            nofollow.remove(temporary)
        raise
