"""The published index of a fleet: are the right workspace and turn found, what publishing costs, and a cold machine.

``python -m tests.bench.fleet_index --data DIR`` ranks the questions of the LoCoMo conversations, one workspace each (``DIR`` holds
``locomo/``). ``--passages N`` publishes one workspace of N passages, and searches it from a machine that has nothing. Nothing is
written outside a temporary directory. Both need MiniLM.
"""

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from agentx import Workspace
from agentx.fleet.published_index import publish, search, take_from
from agentx.fleet.submission import bring_up
from agentx.settings import read_settings
from agentx.storage.index.memory_index import InMemoryIndex
from agentx.storage.index.port import Filter, Vector
from agentx.storage.index.published import Changes, PublishedIndexes
from agentx.synthesis.recall.across import Across
from agentx.synthesis.recall.retrieval import SearchHit, retrieve, to_embed
from tests.eval.conversations import locomo_collections
from tests.eval.ranked import Question, embed, filled

K = 10
Found = list[tuple[int, str]]
"""Number of the workspace and id of the turn of each hit, best first."""


class Apart(Across):
    """Several indexes, each ranked with its own statistics."""

    def search_text(self, query, k, where, statistics=None):
        return self._merged(k, lambda one: one.search_text(query, k, where))


def ranking(data: Path, most: int) -> None:
    """Print how often the right workspace and turn are found, by how several indexes are searched."""
    collections = locomo_collections(data)
    indexes = [filled(one, _told) for one in collections]
    questions = [(number, one) for number, each in enumerate(collections) for one in each.questions]
    questions = questions[:: max(1, len(questions) // most)]
    vectors = embed([one.text for _, one in questions], _told)
    assert vectors is not None, "MiniLM is not installed"
    named = {str(number): index for number, index in enumerate(indexes)}
    with tempfile.TemporaryDirectory() as folder:
        published = _published(folder, [one.chunks for one in collections])

        def of(across: Across) -> Callable[[Question, Vector, int], Found]:
            def ask(question: Question, vector: Vector, _: int) -> Found:
                hits = retrieve(across, question.text, vector, K, Filter())
                return [(int(name), hit.content_id) for name, hit in map(across.named, hits)]

            return ask

        ways = {
            "its own workspace alone": lambda q, v, n: [
                (n, hit.content_id) for hit in retrieve(indexes[n], q.text, v, K, Filter())
            ],
            "all, one after another, by score": lambda q, v, _: _by_score(indexes, q, v),
            "all, with each workspace's statistics": of(Apart(named)),
            "all, as one": of(Across(named)),
            "all, as one, published": of(Across(published)),
        }
        print(
            f"{len(questions)} questions, {len(indexes)} workspaces, {sum(len(one.chunks) for one in collections):,} passages"
        )
        answers: dict[str, list[Found]] = {}
        for name, way in ways.items():
            began = time.perf_counter()
            answers[name] = [
                way(one, vector, number) for (number, one), vector in zip(questions, vectors, strict=True)
            ]
            each = (time.perf_counter() - began) / len(questions)
            right = [
                bool(found) and found[0][0] == number
                for found, (number, _) in zip(answers[name], questions, strict=True)
            ]
            recalls = [
                len({turn for at, turn in found if at == number} & one.gold) / len(one.gold)
                for found, (number, one) in zip(answers[name], questions, strict=True)
            ]
            print(
                f"{name}: first hit in the right workspace {statistics.fmean(right):.3f}, "
                f"recall@{K} of turns {statistics.fmean(recalls):.3f}, {1000 * each:.0f} ms"
            )
        pairs = list(zip(answers["all, as one"], answers["all, as one, published"], strict=True))
        print(f"overlap of the published with the reference: {statistics.fmean(len(set(a) & set(b)) / len(set(a)) for a, b in pairs):.4f}, same order {statistics.fmean(a == b for a, b in pairs):.3f}")  # fmt: skip


def _published(folder: str, chunks: Sequence) -> dict:
    indexes = PublishedIndexes(folder, {})
    for number, some in enumerate(chunks):
        index = indexes.made(str(number))
        changes = Changes({})
        changes.put(some, embed(map(to_embed, some), _told))
        changes.write_meta("seq", "1 made")
        index.commit(changes, "2026-01-01T00:00:00Z")
    return {str(number): indexes.open(str(number)) for number in range(len(chunks))}


def _by_score(indexes: Sequence[InMemoryIndex], question: Question, vector: Vector) -> Found:
    hits: list[tuple[float, int, SearchHit]] = [
        (-hit.score, number, hit)
        for number, index in enumerate(indexes)
        for hit in retrieve(index, question.text, vector, K, Filter())
    ]
    return [(number, hit.content_id) for _, number, hit in sorted(hits, key=lambda one: one[:2])[:K]]


def cold(passages: int, data: Path) -> None:
    """Print what publishing costs, and the time to the first useful search where there is nothing."""
    turns = [chunk.text for one in locomo_collections(data) for chunk in one.chunks]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        settings = read_settings({**os.environ, "AGENTX_STATE_DIR": str(root / "state")})
        ws = Workspace.create(root / "ws", settings=settings)
        for start in range(0, passages, 100):
            lines = turns[start % len(turns) :][:100]
            ws.tools.write_file(
                f"notes/{start:06}.md",
                "\n\n".join(f"# {start + n}\n\n{line}" for n, line in enumerate(lines)),
            )
        bring_up(ws, str(root / "remote.git"))
        began = time.perf_counter()
        ws.settle(3_000)
        print(f"embedding everything once: {time.perf_counter() - began:.1f} s")
        began = time.perf_counter()
        indexes = PublishedIndexes(str(root / "published"), {})
        made = publish(indexes, "ws", ws.engine)
        print(
            f"first publication of {made.passages:,} passages, with LanceDB's import: {time.perf_counter() - began:.2f} s"
        )
        for _ in range(5):
            ws.say("Please sum the orders of the region.")
            bring_up(ws, str(root / "remote.git"))
            began = time.perf_counter()
            publish(indexes, "ws", ws.engine)
            print(f"one more message: {1000 * (time.perf_counter() - began):.0f} ms")
        ws.close()
        began = time.perf_counter()
        found = search(indexes, settings, "Where does Caroline work?", K, Filter())
        print(
            f"search of the published index, in this process: {1000 * (time.perf_counter() - began):.0f} ms, {len(found.hits)} hits"
        )
        for travels in (True, False):
            clone = root / f"clone-{travels}"
            subprocess.run(["git", "clone", "-q", str(root / "remote.git"), str(clone)], check=True)
            began = time.perf_counter()
            with Workspace.open(clone, settings=settings) as fresh:
                embedder = fresh.engine.indexer.embedder()
                assert embedder is not None
                embedded = 0
                embed_passages = embedder.embed_passages

                def counted(texts: Sequence[str]) -> list[Vector]:
                    nonlocal embedded
                    embedded += len(texts)
                    return embed_passages(texts)

                embedder.embed_passages = counted  # type: ignore[method-assign]
                taken = take_from(indexes, "ws", fresh.engine) if travels else 0
                at = time.perf_counter() - began
                fresh.search("Where does Caroline work?", K)
                first = time.perf_counter() - began
                while not fresh.settle(600):
                    pass
                hits = fresh.search("Where does Caroline work?", K)
                whole = time.perf_counter() - began
            print(
                f"fresh clone, vectors {'travel' if travels else 'do not travel'}: {taken:,} taken in {at:.2f} s, first search "
                f"(of words, if vectors are missing) after {first:.2f} s, with all vectors after {whole:.2f} s, {embedded:,} embedded, "
                f"by meaning: {any(hit.vector_rank for hit in hits)}"
            )


def _told(_: str) -> None:
    pass


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--passages", type=int, default=0)
    wanted = parser.parse_args()
    if wanted.passages:
        cold(wanted.passages, wanted.data)
    else:
        ranking(wanted.data, wanted.questions)
