"""What another product takes to append a message and to recall some: ``python peer_memory.py NAME FOLDER HELD APPENDS RECALLS``.

Runs with the interpreter of the peers' own environment, so it imports nothing of this project but for our own two. Each peer is used in the
fastest way that its documentation shows, in one process, warmed, with embeddings that cost nothing. Prints JSON.
"""

import json
import os
import random
import resource
import sys
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

DIMENSIONS = 384
WORDS = [
    "answer",
    "append",
    "blob",
    "budget",
    "cache",
    "chapter",
    "commit",
    "context",
    "decision",
    "delta",
    "draft",
    "durable",
    "engine",
    "event",
    "figure",
    "file",
    "fold",
    "forecast",
    "history",
    "index",
    "item",
    "journal",
    "ledger",
    "line",
    "memory",
    "message",
    "model",
    "page",
    "parse",
    "policy",
    "query",
    "record",
    "report",
    "result",
    "revenue",
    "rule",
    "run",
    "score",
    "search",
    "segment",
    "session",
    "source",
    "state",
    "store",
    "summary",
    "table",
    "task",
    "token",
    "turn",
    "vector",
    "writer",
]

Append, Recall = Callable[[str, Sequence[float]], object], Callable[[str, Sequence[float]], object]


def text(seed: int, words: int = 40) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=words))


def vector(seed: int) -> list[float]:
    rng = random.Random(seed)
    made = [rng.gauss(0, 1) for _ in range(DIMENSIONS)]
    length = sum(value * value for value in made) ** 0.5
    return [value / length for value in made]


def sqlite(folder: str) -> tuple[Append, Recall]:
    """SQLite with a write-ahead log that is synced at each commit, and its full-text search."""
    import sqlite3

    db = sqlite3.connect(f"{folder}/plain.db", isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.execute("CREATE VIRTUAL TABLE messages USING fts5(text)")

    def recall(asked: str, _vector: Sequence[float]) -> object:
        words = " OR ".join(set(asked.split()))
        query = "SELECT text FROM messages WHERE messages MATCH ? ORDER BY rank LIMIT 10"
        return db.execute(query, (words,)).fetchall()

    return lambda said, _vector: db.execute("INSERT INTO messages VALUES (?)", (said,)), recall


def sqlite_utils(folder: str) -> tuple[Append, Recall]:
    from sqlite_utils import Database

    db = Database(f"{folder}/utils.db")
    db.enable_wal()
    table = db["messages"]
    table.insert({"text": "first"})
    table.enable_fts(["text"], create_triggers=True)

    def recall(asked: str, _vector: Sequence[float]) -> object:
        return list(table.search(" OR ".join(set(asked.split())), limit=10))

    return lambda said, _vector: table.insert({"text": said}), recall


def eventsourcing(folder: str) -> tuple[Append, Recall]:
    from eventsourcing.application import Application
    from eventsourcing.domain import Aggregate, event

    class Conversation(Aggregate):
        @event("Said")
        def say(self, said: str) -> None:
            self.last = said

    class Conversations(Application):
        pass

    environ = {"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": f"{folder}/events.db"}
    app = Conversations(env=environ)
    conversation = Conversation()
    app.save(conversation)

    def append(said: str, _vector: Sequence[float]) -> None:
        conversation.say(said)
        app.save(conversation)

    def recall(_asked: str, _vector: Sequence[float]) -> object:
        log = app.notification_log
        return log.select(start=max(1, conversation.version - 10), limit=10)

    return append, recall


def langgraph(folder: str) -> tuple[Append, Recall]:
    import sqlite3

    from langgraph.store.sqlite import SqliteStore

    # Without vectors, because many builds of Python cannot load the extension for them
    store = SqliteStore(sqlite3.connect(f"{folder}/store.db", check_same_thread=False, isolation_level=None))
    store.setup()

    def append(said: str, _vector: Sequence[float]) -> None:
        store.put(("memories",), str(time.monotonic_ns()), {"text": said})

    return append, lambda _asked, _vector: store.search(("memories",), limit=10)


def chroma(folder: str) -> tuple[Append, Recall]:
    import chromadb
    from chromadb.config import Settings

    client = chromadb.PersistentClient(f"{folder}/chroma", Settings(anonymized_telemetry=False))
    held = client.create_collection("memories", embedding_function=None)

    def append(said: str, its: Sequence[float]) -> None:
        held.add(ids=[str(time.monotonic_ns())], documents=[said], embeddings=[list(its)])

    return append, lambda _asked, its: held.query(query_embeddings=[list(its)], n_results=10)


def mem0(folder: str) -> tuple[Append, Recall]:
    os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=f"{folder}/mem0")
    from mem0 import Memory

    key = {"api_key": "none"}  # the model is never asked: `infer=False`
    store = {"path": f"{folder}/qdrant", "embedding_model_dims": DIMENSIONS, "on_disk": True}
    memory = Memory.from_config(
        {
            "llm": {"provider": "openai", "config": key},
            "embedder": {"provider": "openai", "config": {**key, "embedding_dims": DIMENSIONS}},
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": f"{folder}/history.db",
        }
    )
    current: list[Sequence[float]] = []

    class Fixed:
        """Hands out the embedding that came with the text."""

        def embed(self, _text: str, _action: str | None = None) -> list[float]:
            return list(current[-1])

        def embed_batch(self, texts: Sequence[str], _action: str | None = None) -> list[list[float]]:
            return [list(current[-1]) for _ in texts]

    memory.embedding_model = Fixed()

    def append(said: str, its: Sequence[float]) -> None:
        current[:] = [its]
        memory.add([{"role": "user", "content": said}], user_id="user", infer=False)

    def recall(asked: str, its: Sequence[float]) -> object:
        current[:] = [its]
        return memory.search(asked, filters={"user_id": "user"}, top_k=10)

    return append, recall


def agno(folder: str) -> tuple[Append, Recall]:
    from agno.db.schemas.memory import UserMemory
    from agno.db.sqlite import SqliteDb

    db = SqliteDb(db_file=f"{folder}/agno.db")

    def append(said: str, _vector: Sequence[float]) -> None:
        db.upsert_user_memory(UserMemory(memory=said, memory_id=str(time.monotonic_ns()), user_id="user"))

    def recall(asked: str, _vector: Sequence[float]) -> object:
        return db.get_user_memories(user_id="user", search_content=asked.split(maxsplit=1)[0], limit=10)

    return append, recall


def lancedb(folder: str) -> tuple[Append, Recall]:
    import lancedb
    import pyarrow as pa

    fields = [pa.field("text", pa.string())]
    fields.append(pa.field("vector", pa.list_(pa.float32(), DIMENSIONS)))
    table = lancedb.connect(f"{folder}/lance").create_table("memories", schema=pa.schema(fields))

    def append(said: str, its: Sequence[float]) -> None:
        table.add([{"text": said, "vector": list(its)}])

    return append, lambda _asked, its: table.search(list(its)).limit(10).to_list()


def git(folder: str) -> tuple[Append, Recall]:
    import subprocess

    def run(*arguments: str) -> None:
        identity = ["-c", "user.name=b", "-c", "user.email=b@x"]
        subprocess.run(["git", "-C", folder, *identity, *arguments], check=False, stdout=subprocess.DEVNULL)

    run("init", "-q")

    def append(said: str, _vector: Sequence[float]) -> None:
        _add_line(folder, said)
        run("add", "messages.txt")
        run("commit", "-q", "-m", "message")

    return append, lambda asked, _vector: run("grep", "-F", "-m", "10", asked.split()[0])


def gitpython(folder: str) -> tuple[Append, Recall]:
    import git

    repo = git.Repo.init(folder)

    def append(said: str, _vector: Sequence[float]) -> None:
        _add_line(folder, said)
        repo.index.add(["messages.txt"])
        repo.index.commit("message")

    def recall(_asked: str, _vector: Sequence[float]) -> object:
        return [one.message for one in repo.iter_commits(max_count=10)]

    return append, recall


def dulwich(folder: str) -> tuple[Append, Recall]:
    from dulwich import porcelain
    from dulwich.repo import Repo

    repo = Repo.init(folder)

    def append(said: str, _vector: Sequence[float]) -> None:
        _add_line(folder, said)
        porcelain.add(repo, paths=[f"{folder}/messages.txt"])
        porcelain.commit(repo, message=b"message", author=b"b <b@x>", committer=b"b <b@x>")

    def recall(_asked: str, _vector: Sequence[float]) -> object:
        return [one.commit.message for one in repo.get_walker(max_entries=10)]

    return append, recall


def _add_line(folder: str, said: str) -> None:
    with open(f"{folder}/messages.txt", "a") as file:
        file.write(f"{said}\n")


def agentx_said(folder: str) -> tuple[Append, Recall]:
    """Our own: a message, and what follows from it."""
    ws = _workspace(folder)
    return lambda said, _vector: ws.say(said), lambda asked, _vector: ws.search(asked)


def agentx_recorded(folder: str) -> tuple[Append, Recall]:
    """Our own: an event that nothing follows from."""
    from agentx.storage.events.types import AgentMessageSent, Body, Draft

    ws = _workspace(folder)

    def append(said: str, _vector: Sequence[float]) -> None:
        ws.record(Draft(data=AgentMessageSent(body=Body(said)), actor="agent:main", run="r-1"))

    return append, lambda asked, _vector: ws.search(asked)


def _workspace(folder: str) -> Any:
    from pathlib import Path

    from agentx import Workspace
    from tests.bench.grown import Fixed, settings

    ws = Workspace.create(f"{folder}/ws", settings=settings(Path(folder)))
    ws.engine.indexer._open_embedder = lambda: (Fixed(), "")
    return ws


PEERS: dict[str, tuple[str, Callable[[str], tuple[Append, Recall]]]] = {
    "AgentX, say": ("agentx-workspace", agentx_said),
    "AgentX, record": ("agentx-workspace", agentx_recorded),
    "git": ("", git),
    "GitPython": ("gitpython", gitpython),
    "dulwich": ("dulwich", dulwich),
    "SQLite": ("", sqlite),
    "lancedb": ("lancedb", lancedb),
    "sqlite-utils": ("sqlite-utils", sqlite_utils),
    "eventsourcing": ("eventsourcing", eventsourcing),
    "langgraph-checkpoint-sqlite": ("langgraph-checkpoint-sqlite", langgraph),
    "agno": ("agno", agno),
    "chromadb": ("chromadb", chroma),
    "mem0ai": ("mem0ai", mem0),
}
"""Each with the distribution whose version is shown."""


def timed(do: Callable[[int], object], rounds: int) -> list[tuple[float, float]]:
    taken = []
    for turn in range(rounds):
        start, used = time.perf_counter(), processor_s()
        do(turn)
        taken.append((time.perf_counter() - start, processor_s() - used))
    return taken


def processor_s() -> float:
    """Return the processor's time of this process and of the programs that it ran."""
    programs = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + programs.ru_utime + programs.ru_stime


def main() -> None:
    name, folder = sys.argv[1:3]
    held, appends, recalls = map(int, sys.argv[3:])
    distribution, opened = PEERS[name]
    append, recall = opened(folder)
    for number in range(held):
        append(text(number), vector(number))
    made = [(text(held + number), vector(held + number)) for number in range(appends)]
    asked = [(text(-1 - number, 8), vector(-1 - number)) for number in range(recalls + 3)]
    for one in asked[recalls:]:
        recall(*one)
    os.getpriority(os.PRIO_PROCESS, 0)  # a mark for strace: the appends begin and end here
    appended = timed(lambda turn: append(*made[turn]), appends)
    os.getpriority(os.PRIO_PROCESS, 0)
    recalled = timed(lambda turn: recall(*asked[turn]), recalls)
    version = metadata.version(distribution) if distribution else ""
    print(json.dumps({"version": version, "append": appended, "recall": recalled}))
    sys.stdout.flush()
    os._exit(0)  # some leave threads behind


if __name__ == "__main__":
    main()
