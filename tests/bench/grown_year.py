"""A year of a busy workspace, made in minutes and the same each time: for each 100 events ten files, 20 passages, half an item.

The events are appended by the store's own writer, with a clock that runs through the year. Git's `fast-import` makes a
commit for each 100 of them, with their files. The passages go to the index with vectors that cost nothing, because the
embedding is measured elsewhere. Without the last two it would take hours.
"""

import hashlib
import json
import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec

from agentx import Workspace
from agentx.storage.events.codec import Codec
from agentx.storage.events.facts import FACTS
from agentx.storage.events.types import (
    AgentMessageSent,
    AgentThoughtProcess,
    ArtifactChanged,
    Body,
    Draft,
    FileChange,
    Payload,
    RunEnded,
    RunStarted,
    ToolCallExecuted,
    UserMessageSent,
)
from agentx.storage.index.port import Chunk
from agentx.storage.log.history import LIVE, HistoryWriter, segment_path
from agentx.synthesis.memory.conclusions import CONCLUSIONS, PERSON, Add, Concluded
from agentx.synthesis.memory.items import MemoryItem, item_id

from .grown import GIT_ENVIRONMENT, WORDS, Fixed, git, path_of, settings, vectors

TURN = 100
"""Events of a turn, which ends with a commit."""

FILES, IMPORTED, MESSAGES, READ = 10, 5, 3, 20
"""Of each turn: files, those of them that one event brings, messages of each side, and calls that read a file."""

_VERSION = 1
"""Raised when another workspace would be made; one that was kept is then made again."""

_DAYS = 365
_BATCH = 50_000
_BEGIN = datetime(2025, 11, 1, 8, tzinfo=UTC)
_ENGINE, _AGENT = "agentx <engine@engine.agentx.invalid>", "agent:main <main@agent.agentx.invalid>"


def year(place: Path, events: int) -> Path:
    """Return a workspace of at least so many events, made in a directory unless one is there."""
    root, mark = place / f"year-{events}", place / f"year-{events}.json"
    if mark.exists() and json.loads(mark.read_text())["version"] == _VERSION:
        return root
    place.mkdir(parents=True, exist_ok=True)
    mark.unlink(missing_ok=True)
    shutil.rmtree(root, ignore_errors=True)
    start = time.perf_counter()
    with _clock(events):
        items = _items(place, events // 200)
        Workspace.create(root, title="A busy year", settings=settings(place)).close()
        chunks = _Year(root, items).live(events)
    _index(root, place, chunks)
    seconds = time.perf_counter() - start
    mark.write_text(json.dumps({"version": _VERSION, "seconds": seconds}))
    return root


def taken_s(place: Path, events: int) -> float:
    """Return how long it took to make that workspace."""
    seconds: float = json.loads((place / f"year-{events}.json").read_text())["seconds"]
    return seconds


@contextmanager
def _clock(events: int) -> Iterator[None]:
    """Let the year pass with the events, and end when it is over."""
    step, now = timedelta(days=_DAYS) / events, _BEGIN

    class Clock:
        @staticmethod
        def now(_zone: object = UTC) -> datetime:
            nonlocal now
            now += step
            return now

    with mock.patch("agentx.storage.clock.datetime", Clock):
        yield


def _items(place: Path, count: int) -> list[MemoryItem]:
    """Return items as a person adds them, of all kinds that are added by hand."""
    root = place / "items"
    shutil.rmtree(root, ignore_errors=True)
    with Workspace.create(root, settings=settings(place)) as ws, ws.bulk():
        made = [ws.remember(*_item(number)) for number in range(count)]
    shutil.rmtree(root)
    return made


def _item(number: int) -> tuple[Any, str]:
    one, other = WORDS[number % len(WORDS)], WORDS[number * 7 % len(WORDS)]
    if number % 100 == 0:
        return "constraint", f"Never create {one}_{number}.txt in the {other} folder."
    if number % 100 == 1:
        return "rejection", f"We do not use {one}{number} for the {other}."
    if number % 20 == 2:
        return "rule", f"Always {one} the {other} {number} before release."
    if number % 10 == 3:
        return "decision", f"We decided to keep the {one} of {other} in file {number}."
    return "knowledge", " ".join(random.Random(number).choices(WORDS, k=18))


class _Year:
    """Appends the events, and commits them with their files."""

    def __init__(self, root: Path, items: list[MemoryItem]) -> None:
        self._root = root
        self._items = items[::-1]
        self._rng = random.Random(7)
        self._files = 0
        self._contents: dict[str, bytes] = {}
        self._chunks: list[Chunk] = []
        self._planned: list[Draft] = []
        self._seq = 0

    def live(self, events: int) -> list[Chunk]:
        """Live through it; return the passages of what happened, as the index holds them."""
        command = ["git", "-C", str(self._root), "-c", "core.compression=1", "fast-import", "--quiet"]
        environ = os.environ | GIT_ENVIRONMENT
        writer = HistoryWriter(self._root, Codec(FACTS | CONCLUSIONS))
        writer.catch_up()
        importer = subprocess.Popen(command, stdin=subprocess.PIPE, env=environ)
        assert importer.stdin
        head = "refs/heads/main^0"
        try:
            while writer.seq < events:
                first, sealed = writer.seq + 1, writer.segments
                self._plan(writer.seq)
                writer.append(self._planned)
                new = [segment_path(number) for number in range(sealed + 1, writer.segments + 1)]
                files = {f"artifacts/{path}": content for path, content in self._contents.items()}
                files |= {name: (self._root / name).read_bytes() for name in (*new, LIVE)}
                importer.stdin.writelines(_commit(files, first, writer.seq, head))
                head = ""
        finally:
            writer.close()
            importer.stdin.close()
            status = importer.wait()
        if status:
            raise RuntimeError(f"git fast-import failed with {status}")
        git(self._root, "reset", "-q")
        return self._chunks

    def _plan(self, seq: int) -> None:
        """Plan a turn, after the event ``seq``, and write its files."""
        self._contents, self._planned, self._seq = {}, [], seq
        turn, run = seq // TURN, f"r-{seq // TURN}"
        for _ in range(MESSAGES):
            self._say(UserMessageSent(body=Body(self._words(20))), "user")
        self._add(RunStarted(task=Body(self._words(20)), agent="main", model="some/model"), run)
        self._add(ArtifactChanged(changes=tuple(self._change() for _ in range(IMPORTED)), noticed="scan"), "")
        for number in range(FILES - IMPORTED):
            self._call(f"c-{turn}-{number}", "write_file", run, change=self._change())
        for number in range(READ):
            path = path_of(self._rng.randrange(self._files))
            self._call(f"r-{turn}-{number}", "read_file", run, path=path)
        for number in range(3 + turn % 2):
            self._call(f"t-{turn}-{number}", "run_command", run, command=f"make {self._words(2)}")
        if turn % 2 and self._items:
            self._remember(self._items.pop())
        for _ in range(MESSAGES):
            self._say(AgentMessageSent(body=Body(self._words(30)), final=True), "agent:main", run)
        self._add(RunEnded(status="COMPLETED", steps=5), run)
        while len(self._planned) < TURN - 1:
            self._add(AgentThoughtProcess(body=Body(self._words(30))), run)
        through = seq + len(self._planned)
        self._add(Concluded(extractor="watermark", version=1, through=through), "", "engine:watermark")

    def _words(self, count: int) -> str:
        return " ".join(self._rng.choices(WORDS, k=count))

    def _add(self, data: Payload, run: str, actor: str = "agent:main") -> int:
        """Plan an event; return its seq."""
        self._planned.append(Draft(data=data, actor=actor, run=run))
        return self._seq + len(self._planned)

    def _say(self, data: UserMessageSent | AgentMessageSent, actor: str, run: str = "") -> None:
        seq = self._add(data, run, actor)
        self._chunks.append(Chunk(id=f"m:{seq}:0", text=data.body.text, kind="message", actor=actor, seq=seq))

    def _change(self) -> FileChange:
        """Write the next file; its change."""
        path, content = path_of(self._files), self._words(60).encode() + b"\n"
        self._files += 1
        place = self._root / "artifacts" / path
        if self._files % 100 == 1:
            place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        self._contents[path] = content
        oid = hashlib.sha1(b"blob %d\0%b" % (len(content), content), usedforsecurity=False).hexdigest()
        seq = self._seq + len(self._planned) + 1
        named = {"path": path, "start_line": 1, "end_line": 1, "content_id": oid, "file_kind": "docs"}
        text = content.decode().strip()
        self._chunks.append(Chunk(id=f"a:{seq}:{path}:0", text=text, kind="artifact", seq=seq, **named))
        return FileChange(path=path, after=oid, size_bytes=len(content))

    def _call(self, call: str, tool: str, run: str, **named: Any) -> None:
        change, command = named.pop("change", None), named.get("command", "")
        said = Body(self._words(10 if tool == "write_file" else 30))
        seq = self._add(
            ToolCallExecuted(
                call_id=call,
                tool=tool,
                status="SUCCEEDED",
                arguments={"path": change.path} if change else named,
                output=said,
                changes=(change,) if change else (),
                command=command,
                exit_code=0 if command else None,
            ),
            run,
        )
        if command:
            self._chunks.append(
                Chunk(
                    id=f"t:{seq}", text=said.text, context=command, kind="tool", actor="agent:main", seq=seq
                )
            )

    def _remember(self, item: MemoryItem) -> None:
        name = item_id(item.kind, self._seq + len(self._planned) + 1)
        evidence = tuple(
            msgspec.structs.replace(one, seq=self._seq + len(self._planned) + 1) for one in item.evidence
        )
        made = msgspec.structs.replace(item, id=name, evidence=evidence)
        seq = self._add(Concluded(extractor=PERSON, version=1, through=0, changes=(Add(made),)), "", "user")
        chunk = Chunk(id=f"i:{name}", text=item.text, context=item.kind, kind="memory", symbol=name, seq=seq)
        self._chunks.append(chunk)


def _commit(files: dict[str, bytes], first: int, last: int, parent: str) -> Iterator[bytes]:
    """Yield a commit in the form of `git fast-import`, as the engine would have made it."""
    at = int(_BEGIN.timestamp()) + last
    message = f"Record {last - first + 1} events\n\nAgentX-Event: {first}-{last}\nAgentX-Actor: agent:main\n"
    head = f"commit refs/heads/main\nauthor {_AGENT} {at} +0000\ncommitter {_ENGINE} {at} +0000\n"
    yield f"{head}data {len(message)}\n{message}".encode()
    if parent:
        yield f"from {parent}\n".encode()
    for name, content in files.items():
        yield b"M 100644 inline %b\ndata %d\n%b\n" % (name.encode(), len(content), content)


def _index(root: Path, place: Path, chunks: list[Chunk]) -> None:
    """Open it for the first time, and fill the index."""
    with Workspace.open(root, settings=settings(place)) as ws:
        ws.status()
        ws.engine.indexer._open_embedder = lambda: (Fixed(), "")
        index, state = ws.engine.indexer.index, ws.state
        for first in range(0, len(chunks), _BATCH):
            some = chunks[first : first + _BATCH]
            index.put(some, list(vectors(len(some), seed=first)))
        index.write_meta("seq", f"{state.seq} {state.hash}")
        index.maintain()
        ws.settle(300)
