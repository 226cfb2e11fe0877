"""Workspaces that have grown: many files, a long history, many passages. Made through the store's own parts, but fast."""

import os
import random
import subprocess
from pathlib import Path

import numpy as np

from agentx import Workspace
from agentx.settings import Settings
from agentx.storage.events.codec import Codec
from agentx.storage.events.facts import FACTS
from agentx.storage.events.types import AgentThoughtProcess, Body, Draft, ToolCallExecuted
from agentx.storage.index.port import Chunk
from agentx.storage.log.history import HistoryWriter
from agentx.synthesis.memory.conclusions import CONCLUSIONS, Concluded

_TEXT = """
answer append blob budget cache chapter commit context decision delta digest draft durable engine event
figure file fold forecast hash history index item journal ledger line lock memory message model object
outlook pack page parse policy process query reader record redo report request response result revenue rule
run score search section segment session snapshot source state step store summary sync table task test token
tree trust turn vector writer
"""
WORDS = _TEXT.split()
GIT_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "bench@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}
_TYPES = FACTS | CONCLUSIONS
_BATCH = 100


def settings(scratch: Path) -> Settings:
    """Without a model: nothing here measures one."""
    return Settings(environ=dict(os.environ), cache_dir=scratch / "no-models", state_dir=scratch / "state")


def text(seed: int, size_bytes: int = 4_096) -> str:
    """Words, as many as make a size; each seed other ones."""
    words = random.Random(seed).choices(WORDS, k=size_bytes // 4)
    return " ".join(words)[: size_bytes - 1] + "\n"


def path_of(number: int) -> str:
    """Nested, with at most a hundred entries in each folder."""
    return f"d{number // 10_000 % 100:02}/d{number // 100 % 100:02}/f{number % 100:02}.txt"


def write_files(root: Path, count: int) -> None:
    for number in range(count):
        path = root / path_of(number)
        if number % 100 == 0:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"What file {number} holds.\n")


def with_files(scratch: Path, count: int, name: str = "files") -> Workspace:
    """A workspace of so many small files: a person's commit brings them, which costs no sync for each."""
    root = scratch / f"{name}-{count}"
    Workspace.create(root, settings=settings(scratch)).close()
    write_files(root / "artifacts", count)
    git(root, "add", "artifacts")
    git(root, "commit", "-q", "-m", "Bring in the files")
    git(root, "repack", "-a", "-d", "-q")
    ws = Workspace.open(root, settings=settings(scratch))
    ws.flush()
    return ws


def git(root: Path, *arguments: str) -> None:
    """Without syncing: what is measured begins later."""
    command = ["git", "-C", str(root), "-c", "core.fsync=none", *arguments]
    subprocess.run(command, check=True, env=os.environ | GIT_ENVIRONMENT)


def with_events(scratch: Path, count: int, files: int) -> Workspace:
    """A workspace of so many events, of 430 bytes or so each, most of them changes to a hundred files."""
    made = with_files(scratch, files, f"events-{count}-of")
    root = made.root
    made.close()
    writer = HistoryWriter(root, Codec(_TYPES))
    writer.catch_up()
    try:
        batch: list[Draft] = []
        for number in range(count - writer.seq - 1):
            batch.append(_draft(number))
            if len(batch) == _BATCH:
                writer.append(batch)
                batch.clear()
        end = Concluded(extractor="watermark", version=1, through=writer.seq + len(batch), changes=())
        writer.append([*batch, Draft(data=end, actor="engine:watermark")])
    finally:
        writer.close()
    opened = Workspace.open(root, settings=settings(scratch))
    opened.flush()
    return opened


def _draft(number: int) -> Draft:
    """In turn a thought, another one, and the call of a tool."""
    said = Body(" ".join(WORDS[(number + step * 7) % len(WORDS)] for step in range(30)))
    if number % 3:
        return Draft(data=AgentThoughtProcess(body=said), actor="agent:main", run="r-1")
    called = ToolCallExecuted(
        call_id=f"call-{number}",
        tool="read_file",
        status="SUCCEEDED",
        arguments={"path": path_of(number % 100)},
        output=said,
    )
    return Draft(data=called, actor="agent:main", run="r-1")


def chunks(count: int, first: int = 0) -> list[Chunk]:
    return [
        Chunk(id=f"bench-{number}", text=text(number, 500), kind="artifact", path=path_of(number), seq=1)
        for number in range(first, first + count)
    ]


def vectors(count: int, seed: int) -> np.ndarray:
    """Unit vectors of 384 dimensions around a few hundred centres, as embeddings of texts lie."""
    centres = np.random.default_rng(1).normal(size=(300, 384))
    rng = np.random.default_rng(seed)
    made = centres[rng.integers(0, 300, count)] + 0.6 * rng.normal(size=(count, 384))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


class Fixed:
    """An embedder that takes no time: the query's embedding is left out of the figures."""

    name, dimensions, batch = "fixed", 384, 64

    def __init__(self) -> None:
        self._ready = vectors(64, seed=9)
        self._asked = 0

    def embed_passages(self, texts):
        return list(vectors(len(texts), seed=len(texts)))

    def embed_query(self, _text):
        self._asked += 1
        return self._ready[self._asked % len(self._ready)]
