"""The parts beside the table: files that answer without LanceDB, can be deleted, and say what the reference says."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from agentx.storage.index import part_store, parts
from agentx.storage.index.lance import LanceIndex
from agentx.storage.index.manifest import IndexUnavailable
from agentx.storage.index.memory_index import InMemoryIndex
from agentx.storage.index.part import Part, from_rows
from agentx.storage.index.parts import IndexParts
from agentx.storage.index.port import Chunk, Filter
from agentx.storage.index.table_rows import TableRows

ALL = Filter()
KINDS = ("message", "artifact", "tool")


def chunks(first, last, **fields):
    return [
        Chunk(
            id=f"m{n:05}",
            text=f"word number{n} " + " ".join(f"w{n * step % 97}" for step in range(1, 2 + n % 20)),
            **{"kind": KINDS[n % 3], "seq": n, "path": f"src/f{n % 50}.py", **fields},
        )
        for n in range(first, last)
    ]


def vectors(first, last, size=64):
    centres = np.random.default_rng(1).standard_normal((40, size))
    dice = np.random.default_rng(first)
    spread = dice.standard_normal((last - first, size))
    return list((centres[dice.integers(0, 40, last - first)] + spread).astype(np.float32))


def ids(ranked):
    return [hit.chunk.id for hit in ranked]


def names(directory):
    return {path.name for path in directory.glob("*.part")}


def listed(directory):
    return set(json.loads((directory / "index.json").read_bytes())["parts"])


def agree(index, reference):
    assert index.count() == reference.count()
    for n in range(12):
        for where in (ALL, Filter(kinds=("tool",)), Filter(path="src/f1*.py"), Filter(as_of=200)):
            query = f"number{n * 7} w{n} w{n * 3 % 97}"
            assert index.search_text(query, 10, where) == reference.search_text(query, 10, where)
            near = vectors(90_000 + n, 90_001 + n)[0]
            assert ids(index.search_vector(near, 10, where)) == ids(reference.search_vector(near, 10, where))
    assert index.without_vectors(9) == reference.without_vectors(9)


@pytest.fixture
def both(directory):
    """An index in a few parts, and the reference with the same rows."""
    made = LanceIndex(directory), InMemoryIndex()
    for first in range(0, 900, 300):
        for index in made:
            index.put(chunks(first, first + 300), vectors(first, first + 300))
            index.close_chunks(path="src/f7.py", seq=first + 300)
            index.put(chunks(first, first + 20, context="said again"))
        assert made[0].flush()
    return made


SEARCHED = """
import sys, pathlib, json
import numpy as np
from agentx.storage.index.lance import LanceIndex
from agentx.storage.index.manifest import IndexUnavailable
from agentx.storage.index.port import Filter
index = LanceIndex(pathlib.Path(sys.argv[1]))
index.close_chunks(path="src/f9.py", seq=5_000)
near = np.array(json.loads(sys.argv[2]), np.float32)
found = [hit.chunk.id for hit in (*index.search_text("number33", 1, Filter()), *index.search_vector(near, 1, Filter()))]
print(*found, index.count(Filter(path="src/f9.py")), len(index.get(["m00001"])), "lancedb" in sys.modules)
"""


def test_a_process_that_only_searches_does_not_load_lancedb(both, directory):
    near = vectors(600, 900)[5]
    said = subprocess.run(
        [sys.executable, "-c", SEARCHED, directory, json.dumps(near.tolist())],
        check=True,
        capture_output=True,
        text=True,
    )
    assert said.stdout.split() == ["m00033", *ids(both[1].search_vector(near, 1, ALL)), "0", "1", "False"]


def test_answers_are_those_of_the_reference_before_and_after_merging(both, directory):
    index, reference = both
    assert isinstance(index._catch_up(), IndexParts)
    assert len(names(directory)) == 3
    agree(index, reference)
    index.maintain()
    agree(index, reference)
    assert len(names(directory)) == 1
    assert names(directory) == listed(directory)
    reader = LanceIndex(directory)
    agree(reader, reference)


@pytest.mark.parametrize("damage", ["deleted", "empty", "truncated", "header"])
def test_without_a_part_the_table_answers_and_the_background_makes_it_again(both, directory, damage):
    index, reference = both
    victim = min(directory.glob("*.part"))
    match damage:
        case "deleted":
            victim.unlink()
        case "empty":
            victim.write_bytes(b"")
        case "truncated":
            os.truncate(victim, victim.stat().st_size // 2)
        case "header":
            victim.write_bytes(os.urandom(victim.stat().st_size))
    again = LanceIndex(directory)
    assert ids(again.search_text("number33", 1, ALL)) == ["m00033"]
    agree(again, reference)
    assert isinstance(again._catch_up(), TableRows)
    again.maintain()
    assert isinstance(again._catch_up(), IndexParts)
    agree(again, reference)
    assert names(directory) == listed(directory)
    agree(index, reference)


def test_parts_are_made_for_an_index_of_a_version_without_them(both, directory):
    manifest = json.loads((directory / "index.json").read_bytes())
    del manifest["parts"]
    (directory / "index.json").write_text(json.dumps(manifest))
    again = LanceIndex(directory)
    agree(again, both[1])
    assert isinstance(again._catch_up(), TableRows)
    again.put(chunks(900, 901))
    assert again.flush()
    assert isinstance(again._catch_up(), TableRows)
    again.maintain()
    assert isinstance(again._catch_up(), IndexParts)
    both[1].put(chunks(900, 901))
    agree(again, both[1])


def test_a_reader_follows_what_another_handle_flushes_and_merges(both, directory):
    writer, reference = both
    reader = LanceIndex(directory)
    for first in range(900, 1_200, 50):
        for index in (writer, reference):
            index.put(chunks(first, first + 50), vectors(first, first + 50))
        assert writer.flush()
        assert ids(reader.search_text(f"number{first + 3}", 1, ALL)) == [f"m{first + 3:05}"]
        writer.maintain()
        assert ids(reader.search_text(f"number{first + 4}", 1, ALL)) == [f"m{first + 4:05}"]
    agree(reader, reference)
    assert len(names(directory)) <= 4


def test_their_number_is_bounded_where_nothing_maintains_them(directory, monkeypatch):
    monkeypatch.setattr(part_store, "MAX_PARTS", 5)
    index = LanceIndex(directory)
    for n in range(40):
        index.put(chunks(n, n + 1))
        assert index.flush()
        assert len(names(directory)) <= 6
    assert index.count() == 40
    assert ids(index.search_text("number17", 1, ALL)) == ["m00017"]


def test_what_a_killed_writer_left_is_deleted(both, directory):
    (directory / "abc.part").write_bytes(b"left")
    (directory / "def.part.new").write_bytes(b"left")
    both[0].put(chunks(900, 901))
    assert both[0].flush()
    assert not {"abc.part", "def.part.new"} & {path.name for path in directory.iterdir()}


def test_dropping_vectors_makes_parts_without_them(both, directory):
    index, _ = both
    index.forget_vectors()
    assert index.flush()
    index.maintain()
    assert isinstance(index._catch_up(), IndexParts)
    assert index.search_vector(vectors(0, 1)[0], 5, ALL) == []
    assert len(index.without_vectors(1_000)) == index.count(ALL)
    index.clear()
    assert index.flush()
    assert names(directory) == set()


def test_among_many_rows_the_signs_find_nearly_all_of_the_nearest(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "EXACT_ROWS", 100)
    reference = InMemoryIndex()
    reference.put(chunks(0, 4_000), vectors(0, 4_000, 384))
    part = Part(tmp_path / from_rows(list(reference._rows.by_id.values()), 384).write(tmp_path))
    found = 0
    for query in vectors(7_000, 7_040, 384):
        exact = {hit.chunk.id: hit.score for hit in reference.search_vector(query, 10, ALL)}
        near = {chunk.id: score for score, chunk in IndexParts([part]).nearest(query, 10, ALL, frozenset())}
        found += len(exact.keys() & near.keys())
        assert all(abs(near[name] - score) < 1e-5 for name, score in exact.items() if name in near)
    assert found >= 0.95 * 400


def test_a_word_said_very_often_in_one_passage_is_counted(directory):
    index, reference = LanceIndex(directory), InMemoryIndex()
    for each in (index, reference):
        each.put([Chunk(id="much", kind="message", text="filler " * 600), *chunks(0, 20, context="filler")])
    assert index.flush()
    assert index.search_text("filler w3", 9, ALL) == reference.search_text("filler w3", 9, ALL)


def test_a_disk_that_is_full_keeps_nothing_of_a_part(both, directory, monkeypatch):
    index, reference = both
    for name in names(directory):
        (directory / name).unlink()
    agree(index, reference)

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(IndexUnavailable):
        index.maintain()
    assert names(directory) == {path.name for path in directory.glob("*.new")} == set()
    agree(index, reference)
    monkeypatch.undo()
    index.maintain()
    assert names(directory) == listed(directory)
    agree(index, reference)
