"""What only the LanceDB backend can do wrong: files, processes, crashes, growth."""

import os
import random
import signal
import subprocess
import sys
import time
from datetime import timedelta

import numpy as np
import pytest

from agentx.storage.errors import AgentXError
from agentx.storage.index import lance_table
from agentx.storage.index.filters import sql
from agentx.storage.index.lance import IndexDamaged, LanceIndex, open_index
from agentx.storage.index.memory_index import InMemoryIndex
from agentx.storage.index.port import OPEN, Chunk, Filter

ALL = Filter()


def chunks(first, last, **fields):
    return [
        Chunk(id=f"m{n}", text=f"word number{n}", **{"kind": "message", "seq": n, **fields})
        for n in range(first, last)
    ]


def ids(ranked):
    return [hit.chunk.id for hit in ranked]


def run(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, text=True
    )


def output(code, *arguments):
    with run(code, *arguments) as process:
        return process.stdout.read().split()


PUT = """
import sys, pathlib
from agentx.storage.index.lance import LanceIndex
from agentx.storage.index.port import Chunk
index = LanceIndex(pathlib.Path(sys.argv[1]), flush_rows=int(sys.argv[2]))
name = sys.argv[3]
for number in range(int(sys.argv[4])):
    index.put([Chunk(id=f"{name}{number}", kind="message", text=f"{name} number{number}", seq=number)])
    print(number, flush=True)
    index.maintain()
"""


def test_everything_is_there_after_reopening(directory, unit):
    first = LanceIndex(directory)
    first.put(chunks(0, 3), [unit(1, n) for n in range(3)])
    first.write_meta("watermark", "3")
    assert first.flush()
    first.put(chunks(3, 5), [unit(1, n) for n in range(3, 5)])
    first.write_meta("embedder", "x")
    first.close()
    again = LanceIndex(directory)
    assert (again.count(), again.read_meta("watermark"), again.read_meta("embedder")) == (5, "3", "x")
    assert ids(again.search_text("number1", 1, ALL)) == ["m1"]
    assert ids(again.search_vector(unit(1, 4), 2, ALL)) == ["m4", "m3"]


def test_a_small_index_is_put_and_searched_without_loading_lancedb(directory):
    code = """
import sys, pathlib
from agentx.storage.index.lance import LanceIndex
from agentx.storage.index.port import Chunk, Filter
index = LanceIndex(pathlib.Path(sys.argv[1]))
index.put([Chunk(id="a", kind="message", text="hello world")])
index.maintain()
index.close()
print(len(index.search_text("hello", 1, Filter())), {"lancedb", "pyarrow"} & {*sys.modules} or "light")
"""
    assert output(code, directory) == ["1", "light"]


def test_a_program_that_is_started_while_a_table_is_open_does_not_warn_the_user(directory):
    code = PUT + (
        "import subprocess\n"
        "assert 'lancedb' in sys.modules\n"
        "subprocess.run(['true'], preexec_fn=lambda: None)\n"
    )
    command = [sys.executable, "-c", code, str(directory), "2", "a", "6"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_two_handles_see_what_the_other_puts_closes_and_clears_at_once(directory, unit):
    one, other = LanceIndex(directory), LanceIndex(directory)
    one.put(chunks(0, 4, path="p"), [unit(1, n) for n in range(4)])
    assert other.count() == 4
    assert other.flush()
    assert ids(one.search_text("number2", 1, ALL)) == ["m2"]
    one.close_chunks(path="p", seq=9)
    assert other.count(ALL) == 0
    assert one.flush()
    assert other.count(ALL) == 0
    assert other.count(Filter(as_of=8)) == 4
    other.clear()
    assert one.count() == 0
    assert other.flush()
    one.put(chunks(7, 8), [unit(1, 2, 3)])
    assert one.flush()
    assert ids(other.search_vector(unit(1, 2, 3), 5, ALL)) == ["m7"]


def test_a_second_process_puts_and_finds_while_this_one_flushes(directory):
    index = LanceIndex(directory, flush_rows=4)
    with run(PUT, directory, 4, "theirs", 60) as other:
        for number in range(60):
            index.put([Chunk(id=f"ours{number}", kind="message", text=f"ours number{number}")])
            index.maintain()
            seen = other.stdout.readline().strip()
            assert ids(index.search_text(f"theirs number{seen}", 1, ALL)) == [f"theirs{seen}"]
    assert other.returncode == 0
    assert index.count() == 120
    assert index.flush()
    assert index.count() == 120
    assert ids(index.search_text("ours number31", 1, ALL)) == ["ours31"]
    assert index.search_text("theirs", 200, ALL)[-1].score > 0
    assert len(index.search_text("theirs", 200, ALL)) == 60


def test_what_was_put_survives_kill_9_at_any_moment(directory):
    dice = random.Random(7)
    put = {}
    for life in range(3):
        wanted = dice.randrange(5, 40)
        with run(PUT, directory, 3, f"life{life}x", 100_000) as process:
            for line in process.stdout:
                if int(line) >= wanted:
                    break
            time.sleep(dice.random() / 50)
            process.send_signal(signal.SIGKILL)
            put[life] = max([wanted, *map(int, process.stdout.read().split())])
        index = LanceIndex(directory)
        for earlier, last in put.items():
            for number in (0, last // 2, last):
                query = f"life{earlier}x number{number}"
                assert ids(index.search_text(query, 1, ALL)) == [f"life{earlier}x{number}"]
        assert index.count() >= sum(last + 1 for last in put.values())
        assert index.flush()
        docs = index._database.table(index._manifest.table).counts.totals()[0]
        assert docs == index.count()


def test_a_torn_line_is_skipped_and_the_next_put_is_whole(directory):
    index = LanceIndex(directory)
    index.put(chunks(0, 1))
    (segment,) = directory.glob("waiting-*.jsonl")
    with segment.open("ab") as stream:
        stream.write(b'\n{"type":"put","rows":[{"chunk":{"id":"torn')
    assert index.count() == 1
    index.put(chunks(1, 2))
    assert index.count() == LanceIndex(directory).count() == 2


@pytest.mark.parametrize("mode", ["single", "replace", "close", "embed", "meta"])
def test_two_thousand_single_writes_keep_files_bounded(directory, unit, mode, monkeypatch):
    monkeypatch.setattr(
        lance_table, "PRUNE_AFTER", timedelta(milliseconds=1)
    )  # the clock would hide what is kept
    index = LanceIndex(directory, flush_rows=16)
    index.put(chunks(0, 50, path="p"), [unit(1, n) for n in range(50)])
    for n in range(2_000):
        match mode:
            case "single":
                index.put(chunks(n, n + 1))
            case "replace":
                index.put(chunks(n % 50, n % 50 + 1))
            case "close":
                index.close_chunks(path=f"p{n}", seq=n)
            case "embed":
                index.embed([f"m{n % 50}"], [unit(n, 1)])
            case "meta":
                index.write_meta("watermark", str(n))
    index.maintain()
    table = directory / "lance" / f"{index._manifest.table}.lance"
    assert len(list((table / "data").glob("*"))) <= 80
    assert len(list((table / "_versions").glob("*"))) <= 80
    assert len(list(directory.glob("waiting-*"))) == 1
    assert sum(path.stat().st_size for path in directory.glob("waiting-*")) < 1 << 20
    assert index.count() == (2_000 if mode == "single" else 50)


@pytest.mark.parametrize("flushed", [0, 450, 900])
def test_ranking_agrees_with_the_reference_wherever_the_rows_are(directory, flushed):
    dice = np.random.default_rng(3)
    words = [f"w{int(n)}" for n in dice.zipf(1.3, 20_000) % 900]
    made = [
        Chunk(id=f"c{n}", kind="message", text=" ".join(words[n * 20 : n * 20 + int(dice.integers(5, 20))]))
        for n in range(900)
    ]
    vectors = list(dice.standard_normal((900, 16)).astype(np.float32))
    reference, index = InMemoryIndex(), LanceIndex(directory, flush_rows=1_000)
    for start in range(0, 900, 30):
        for backend in (reference, index):
            backend.put(made[start : start + 30], vectors[start : start + 30])
        if start + 30 == flushed:
            assert index.flush()
    assert index.count() == 900
    assert len(index._overlay.rows.by_id) == 900 - flushed
    for _ in range(40):
        query = " ".join(f"w{int(n)}" for n in dice.integers(1, 60, 4))
        assert index.search_text(query, 10, ALL) == reference.search_text(query, 10, ALL)
        vector = dice.standard_normal(16).astype(np.float32)
        assert index.search_vector(vector, 10, ALL) == reference.search_vector(vector, 10, ALL)


# --- damage ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format":99}', b"\xff\xfe", None])
def test_a_manifest_that_cannot_be_used_is_told_and_set_aside(directory, content):
    index = LanceIndex(directory)
    index.put(chunks(0, 3))
    assert index.flush()
    if content is None:
        (directory / "index.json").unlink()
    else:
        (directory / "index.json").write_bytes(content)
    with pytest.raises(IndexDamaged, match="rebuild"):
        LanceIndex(directory)
    again, notice = open_index(directory)
    assert again.count() == 0
    assert "moved to index.damaged" in notice
    again.put(chunks(0, 1))
    assert open_index(directory)[1] == ""


@pytest.mark.parametrize("damage", ["gone", "truncated", "garbage", "terms"])
def test_a_damaged_table_is_told_when_it_is_read(directory, damage, unit):
    index = LanceIndex(directory)
    index.put(chunks(0, 300), [unit(1, n) for n in range(300)])
    assert index.flush()
    for part in directory.glob("*.part"):
        part.unlink()
    (table,) = (directory / "lance").iterdir()
    for path in table.rglob("*") if damage != "terms" else directory.glob("*.terms"):
        if path.is_file():
            if damage == "gone":
                path.unlink()
            elif damage == "garbage":
                path.write_bytes(os.urandom(path.stat().st_size))
            else:
                os.truncate(path, path.stat().st_size // 2)
    again = LanceIndex(directory)
    for ask in (
        lambda: again.search_text("number7", 3, ALL),
        lambda: again.search_vector(unit(1, 2), 3, ALL),
        again.count,
        again.flush if damage != "truncated" else again.count,
    ):
        if ask == again.flush:
            again.put(chunks(0, 1))
        with pytest.raises(AgentXError, match="search index"):
            ask()


def test_a_directory_that_was_deleted_is_told(directory):
    index = LanceIndex(directory)
    for path in directory.iterdir():
        path.unlink()
    directory.rmdir()
    with pytest.raises(AgentXError, match="search index"):
        index.put(chunks(0, 1))
    index.close()


def test_an_index_made_in_place_of_a_deleted_one_gets_nothing_of_what_was_read_of_that(directory):
    stale, secret = LanceIndex(directory), LanceIndex(directory)
    secret.put(chunks(0, 3))
    assert stale.count() == 3
    (waiting,) = directory.glob("waiting-*.jsonl")
    manifest = directory / "index.json"
    manifest.unlink()
    waiting.rename(kept := directory / "kept")  # the next file may get the same inode
    LanceIndex(directory).put(chunks(5, 6))
    (fresh,) = directory.glob("waiting-*.jsonl")
    kept.write_bytes(fresh.read_bytes())
    kept.rename(fresh)
    assert stale.flush()
    assert stale.count() == 1
    assert LanceIndex(directory).count() == 1


def test_a_full_disk_is_told_and_what_was_put_before_stays(directory):
    code = """
import sys, pathlib, resource, signal
from agentx.storage.index.lance import LanceIndex
from agentx.storage.index.manifest import IndexUnavailable
from agentx.storage.index.port import Chunk, Filter
index = LanceIndex(pathlib.Path(sys.argv[1]))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
index.put([Chunk(id="a", kind="message", text="hello world")])
try:
    index.put([Chunk(id="b", kind="message", text="x" * 50_000)])
except IndexUnavailable as error:
    print("told")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
index.put([Chunk(id="c", kind="message", text="hello again")])
print(*sorted(index.get(["a", "b", "c"])))
"""
    assert output(code, directory) == ["told", "a", "c"]


def test_closed_rows_keep_their_end_through_a_flush_and_a_second_close(directory):
    index = LanceIndex(directory)
    index.put(chunks(1, 2, path="p"))
    index.flush()
    index.close_chunks(path="p", seq=5)
    index.flush()
    index.close_chunks(path="p", seq=9)
    index.flush()
    assert index.get(["m1"])["m1"].to_seq == 5
    assert OPEN not in {chunk.to_seq for chunk in index.get(["m1"]).values()}


def test_the_oldest_without_vectors_are_found_in_order_before_and_after_a_merge(directory, monkeypatch):
    monkeypatch.setattr(lance_table, "MAX_UNINDEXED", 50)
    index = LanceIndex(directory)
    for first in range(0, 600, 100):
        index.put(chunks(first, first + 100))
        index.flush()
        for merge in (lambda: None, index.maintain):
            merge()
            index._bare = ("", 0, False), 0, []
            found = [chunk.id for chunk in index.without_vectors(100_000)]
            assert found == [f"m{n}" for n in range(first + 100)]
            assert [chunk.id for chunk in index.without_vectors(65)] == found[:65]


@pytest.mark.parametrize("ended", [30, 70])
def test_what_ended_takes_no_place_of_what_stands_however_much_of_the_table_it_is(directory, ended):
    index, other = LanceIndex(directory), LanceIndex(directory)
    near, far = np.array([1, 0], np.float32), np.array([0.9, 0.1], np.float32)
    old = [Chunk(id=f"old{n:02}", kind="artifact", path="p", text="pay pay", seq=n) for n in range(ended)]
    new = [Chunk(id=f"new{n:02}", kind="artifact", path="q", text="pay later") for n in range(100 - ended)]
    index.put([*old, *new], [near] * len(old) + [far] * len(new))
    index.flush()
    for handle in (index, other):  # both have seen a table of which nothing has ended
        assert {hit.chunk.path for hit in handle.search_text("pay", 20, ALL)} == {"p"}
    index.close_chunks(path="p", seq=200)
    for _ in range(2):  # waiting, then in the table
        for handle in (index, other):
            for hits in (handle.search_text("pay", 20, ALL), handle.search_vector(near, 20, ALL)):
                assert [hit.chunk.path for hit in hits] == ["q"] * 20
            assert {hit.chunk.path for hit in handle.search_text("pay", 20, Filter(as_of=150))} == {"p"}
        index.flush()


@pytest.mark.parametrize(
    ("where", "looked_up"),
    [
        (Filter(kinds=("tool",)), "kind_idx"),
        (Filter(source="lib"), "source_idx"),
        (Filter(actor="agent:main"), "actor_idx"),
        (Filter(actor="agent:"), "actor_idx"),
        (Filter(path="src/api"), "path_idx"),
        (Filter(path="src/**/*.py"), "path_idx"),
        (Filter(since="2026-11-02"), "at_idx"),
        (Filter(before="2026-11-02"), "at_idx"),
        (Filter(), "to_seq_idx"),
        (Filter(as_of=3), "to_seq_idx"),
    ],
    ids=repr,
)
def test_a_filter_is_looked_up_in_the_index_of_its_column(directory, message, where, looked_up):
    index = LanceIndex(directory)
    index.put([message(f"m{n}", "words", path=f"src/api/f{n}.py", seq=n) for n in range(600)])
    assert index.flush()
    assert index.count() == 600
    handle = index._database.table(index._manifest.table)._handle
    handle.optimize()
    plan = handle.search().where(sql(where)).explain_plan(verbose=True)
    assert looked_up in plan
    index.close()


def test_one_old_version_that_is_as_large_as_the_table_is_dropped(directory, monkeypatch, unit):
    index = LanceIndex(directory)
    index.put(chunks(0, 900), [unit(*np.random.default_rng(n).normal(size=64)) for n in range(900)])
    assert index.flush()
    assert index.count() == 900
    table = index._database.table(index._manifest.table)
    table._handle.update(where="true", values={"source": "lib"})  # the rows are written again
    assert table._is_mostly_old()
    index.maintain()
    assert table._is_mostly_old()  # a reader may be in it
    monkeypatch.setattr(lance_table, "PRUNE_AFTER", timedelta(milliseconds=1))
    time.sleep(0.01)
    index.maintain()
    assert not table._is_mostly_old()
    assert index.count() == 900
