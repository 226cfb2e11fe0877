"""The index of the vectors: made in the background, never in the way of what is fresh, and bounded in its parts."""

import random
import signal
import subprocess
import sys
import time
from datetime import timedelta

import numpy as np
import pytest

from agentx.storage.index import lance_table
from agentx.storage.index.lance import LanceIndex
from agentx.storage.index.memory_index import InMemoryIndex
from agentx.storage.index.port import Chunk, Filter

ALL = Filter()
DIMENSIONS = 384


def chunks(first, last, **fields):
    return [
        Chunk(id=f"m{n:05}", text=f"word number{n}", **{"kind": "message", "seq": n, **fields})
        for n in range(first, last)
    ]


def vectors(first, last):
    """Vectors around forty centres, as those of texts about forty topics."""
    dice = np.random.default_rng(first)
    centres = np.random.default_rng(1).standard_normal((40, DIMENSIONS))
    spread = dice.standard_normal((last - first, DIMENSIONS))
    return list((centres[dice.integers(0, 40, last - first)] + spread).astype(np.float32))


@pytest.fixture
def filled(directory, monkeypatch):
    """An index whose 2,000 vectors have an index of their own."""
    monkeypatch.setattr(lance_table, "VECTORS_FOR_INDEX", 1_500)
    index = LanceIndex(directory)
    index.put(chunks(0, 2_000), vectors(0, 2_000))
    index.flush()
    index.maintain()
    yield index
    index.close()


def table(index):
    return index._database.table(index._manifest.table)


def test_few_vectors_are_scanned_and_many_get_an_index_once(directory, monkeypatch):
    monkeypatch.setattr(lance_table, "VECTORS_FOR_INDEX", 1_500)
    index = LanceIndex(directory)
    index.put(chunks(0, 1_000), vectors(0, 1_000))
    index.flush()
    index.maintain()
    assert table(index)._parts() == 0
    index.put(chunks(1_000, 2_000), vectors(1_000, 2_000))
    index.flush()
    index.maintain()
    assert table(index)._parts() == 1
    before = table(index)._handle.version
    for _ in range(3):
        index.maintain()
    assert table(index)._handle.version == before


def test_nearly_all_of_the_nearest_ten_are_found_and_their_scores_are_exact(filled):
    reference = InMemoryIndex()
    reference.put(chunks(0, 2_000), vectors(0, 2_000))
    both = 0
    for query in vectors(7_000, 7_040):
        exact = {hit.chunk.id: hit.score for hit in reference.search_vector(query, 10, ALL)}
        found = {hit.chunk.id: hit.score for hit in filled.search_vector(query, 10, ALL)}
        both += len(exact.keys() & found.keys())
        assert all(abs(found[name] - score) < 1e-5 for name, score in exact.items() if name in found)
    assert both >= 0.98 * 400


def test_what_the_index_of_the_vectors_lacks_is_found_and_what_ended_is_not(filled):
    fresh = vectors(9_000, 9_003)
    filled.put(chunks(9_000, 9_003, path="p"), fresh)
    for _ in range(2):  # waiting, then in the table
        assert [filled.search_vector(one, 1, ALL)[0].chunk.id for one in fresh] == [
            "m09000",
            "m09001",
            "m09002",
        ]
        filled.flush()
    filled.close_chunks(path="p", seq=9_500)
    for _ in range(2):
        assert "m09001" not in {hit.chunk.id for hit in filled.search_vector(fresh[1], 20, ALL)}
        assert filled.search_vector(fresh[1], 1, Filter(as_of=9_400))[0].chunk.id == "m09001"
        filled.flush()


def test_single_rows_are_brought_to_the_indexes_many_at_a_time(filled):
    merged = []
    for n in range(3_000, 3_060):
        filled.put(chunks(n, n + 1), vectors(n, n + 1))
        filled.flush()
        filled.maintain()
        merged.append(table(filled)._handle.index_stats("vector_idx").num_unindexed_rows)
    assert merged.count(0) <= 60 // (4 * lance_table.MAX_PARTS) + 1  # where the fragments had become too many
    assert filled.count() == 2_060


@pytest.mark.parametrize(
    ("mode", "rounds"), [("single", 40), ("burst", 30), ("close", 60), ("delete and put", 40)]
)
@pytest.mark.timeout(400)
def test_fragments_parts_and_versions_stay_bounded_under_any_pattern(filled, monkeypatch, mode, rounds):
    monkeypatch.setattr(lance_table, "PRUNE_AFTER", timedelta(milliseconds=1))
    monkeypatch.setattr(lance_table, "MAX_UNINDEXED", 50)
    monkeypatch.setattr(lance_table, "MAX_PARTS", 3)
    seen = []
    for n in range(3_000, 3_000 + rounds):
        match mode:
            case "single":
                filled.put(chunks(n, n + 1), vectors(n, n + 1))
            case "burst":
                filled.put(chunks(n * 60, n * 60 + 60), vectors(n * 60, n * 60 + 60))
            case "close":
                filled.put(chunks(n, n + 3, path=f"p{n}"), vectors(n, n + 3))
                filled.close_chunks(path=f"p{n - 1}", seq=n)
            case _:
                first = (n - 3_000) * 15
                filled.close_chunks(path="", seq=n)
                filled.put(chunks(first, first + 20), vectors(first, first + 20))
        filled.flush()
        filled.maintain()
        handle = table(filled)._handle
        fragments = handle.stats()["fragment_stats"]["num_fragments"]
        seen.append((fragments, table(filled)._parts(), len(handle.list_versions())))
    most = [max(column) for column in zip(*seen, strict=True)]
    assert most[0] <= lance_table.MAX_FRAGMENTS + 4 * 3 + 1
    assert most[1] <= 3 + 2
    assert most[2] <= 2 * lance_table.MAX_VERSIONS


MAINTAIN = """
import pathlib, sys
from agentx.storage.index import lance_table
from agentx.storage.index.lance import LanceIndex
lance_table.VECTORS_FOR_INDEX = 1_500
index = LanceIndex(pathlib.Path(sys.argv[1]))
index.count()
print("ready", flush=True)
index.maintain()
"""


def test_an_owner_that_is_killed_while_it_makes_the_index_is_followed_by_the_next(directory, monkeypatch):
    index = LanceIndex(directory)
    index.put(chunks(0, 2_000), vectors(0, 2_000))
    index.flush()
    dice = random.Random(5)
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", MAINTAIN, str(directory)], stdout=subprocess.PIPE, text=True
        )
        process.stdout.readline()
        time.sleep(dice.random() / 5)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        (query,) = vectors(8_000, 8_001)
        assert len(index.search_vector(query, 10, ALL)) == 10
    monkeypatch.setattr(lance_table, "VECTORS_FOR_INDEX", 1_500)
    index.maintain()
    assert table(index)._parts() == 1
