"""Payloads of orchestrators that keep their state in a workspace: checkpoints of threads, items of a store.

Content is kept once. A checkpoint holds only the values that changed. What is long in them is a *piece*,
named by its content, which later events name again. What a value is made of is JSON; see
:mod:`agentx.orchestrators.langgraph_values`.
"""

from typing import Any

import msgspec

from agentx.storage.events.types import WORDS, Body, Event, Payload
from agentx.storage.text import shorten


class KeepsPieces(Payload, frozen=True, kw_only=True):
    """Base of the payloads that hold values of a thread.

    Attributes:
        thread: Id of the thread.
        checkpoint: Id of the checkpoint.
        namespace: Namespace of a subgraph; empty for the graph itself.
        record: What this event says, as its orchestrator's adapter writes it.
        pieces: Pieces that no earlier event holds, by id.
        more: What would make the line too long, as a blob with JSON: further ``pieces``, or the ``record``.
    """

    thread: str
    checkpoint: str
    namespace: str = ""
    record: dict[str, Any] = msgspec.field(default_factory=dict)
    pieces: dict[str, Any] = msgspec.field(default_factory=dict)
    more: Body = Body("")

    def _rank(self, _event: Event, /) -> int:
        return 1


class CheckpointSaved(KeepsPieces, frozen=True, kw_only=True):
    """An orchestrator saved the state of a thread.

    Attributes:
        parent: Id of the checkpoint before it; empty for none.
    """

    parent: str = ""

    def _line(self, _event: Event, /) -> str:
        return f"Checkpoint of thread {shorten(self.thread, WORDS)}"


class CheckpointWritesSaved(KeepsPieces, frozen=True, kw_only=True):
    """A task of a thread ended; its results are to become part of the next checkpoint.

    Attributes:
        task: Id of the task.
        path: Path of the task within its graph.
    """

    task: str
    path: str = ""


class ThreadsDeleted(Payload, frozen=True):
    """Checkpoints are no longer to be returned; the history still holds them.

    Attributes:
        threads: The threads whose checkpoints these are.
        keep_latest: Whether the latest checkpoint of each namespace stays.
        runs: Runs whose checkpoints these are, in any thread.
    """

    threads: tuple[str, ...] = ()
    keep_latest: bool = False
    runs: tuple[str, ...] = ()

    def _line(self, _event: Event, /) -> str:
        what = f"threads {', '.join(self.threads)}" if self.threads else f"runs {', '.join(self.runs)}"
        kept = " but the latest" if self.keep_latest else ""
        return f"Delete the checkpoints of {shorten(what, WORDS)}{kept}"


class ThreadCopied(Payload, frozen=True):
    """All checkpoints of a thread are those of another thread, too."""

    source: str
    target: str

    def _line(self, _event: Event, /) -> str:
        return f"Copy thread {self.source} to {self.target}"


class StoreItemSet(Payload, frozen=True):
    """An item of an orchestrator's store was set.

    Attributes:
        namespace: Its place.
        key: Its name there.
        value: Its value, if it is short.
        more: Its value as a blob with JSON, if it is long.
        index: Which parts a search compares: ``None`` for the store's setting, ``False`` for none.
    """

    namespace: tuple[str, ...]
    key: str
    value: dict[str, Any] = msgspec.field(default_factory=dict)
    more: Body = Body("")
    index: list[str] | bool | None = None

    def _line(self, _event: Event, /) -> str:
        return f"Store {'/'.join((*self.namespace, self.key))}"


class StoreItemDeleted(Payload, frozen=True):
    """An item of an orchestrator's store is no longer to be returned; the history still holds it."""

    namespace: tuple[str, ...]
    key: str

    def _line(self, _event: Event, /) -> str:
        return f"Remove {'/'.join((*self.namespace, self.key))} from the store"
