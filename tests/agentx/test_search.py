"""Search over what was written, said and printed: fresh, narrowed, and as it was at any moment."""

import os
import shutil
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from agentx import Workspace
from agentx.search import indexer
from agentx.search.background_worker import SearchLate, done_by
from agentx.search.event_chunks import Passages
from agentx.search.kept_vectors import KeptVectors
from agentx.settings import Settings, read_settings
from agentx.storage.errors import UsageError
from agentx.synthesis.embedding.choose import open_embedder
from agentx.synthesis.embedding.port import ModelUnavailable


def paths(hits):
    return {hit.path for hit in hits}


def test_a_fresh_write_is_found_at_once_and_what_it_replaced_is_not(ws):
    ws.tools.write_file("a.md", "The walrus sleeps.\n")
    assert paths(ws.search("walrus")) == {"a.md"}
    ws.tools.write_file("a.md", "The otter swims.\n")
    assert paths(ws.search("walrus", kind="artifact")) == set()
    assert paths(ws.search("otter")) == {"a.md"}


def test_a_search_does_not_wait_until_an_import_is_read_and_says_so(ws, tmp_path, monkeypatch):
    """The background worker reads it; what was there before is found."""
    monkeypatch.setattr(ws.engine.indexer, "start", lambda: None)
    ws.tools.write_file("old.md", "The walrus sleeps.\n")
    assert ws.search("walrus")
    (tmp_path / "tree").mkdir()
    for number in range(indexer.UNREAD + 1):
        (tmp_path / "tree" / f"{number}.md").write_text(f"Walrus {number} swims.\n")
    ws.import_project(tmp_path / "tree")
    found = ws.tools.search_memory(query="walrus")
    assert {hit.path for hit in found.hits} == {"old.md"}
    assert "still being read" in found.note
    assert ws.engine.indexer.unread
    assert ws.settle()
    assert len(paths(ws.search("walrus", k=100, kind="artifact"))) == indexer.UNREAD + 2
    assert not ws.engine.indexer.unread


def test_an_import_is_found_in_parts_while_it_is_read(ws, tmp_path, monkeypatch):
    monkeypatch.setattr(indexer, "_BATCH_CHUNKS", 2)
    (tmp_path / "tree").mkdir()
    for number in range(9):
        (tmp_path / "tree" / f"{number}.md").write_text(f"Walrus {number} swims.\n")
    ws.import_project(tmp_path / "tree")
    seen, of = [], Passages.of

    def watched(self, event):
        for chunk in of(self, event):
            seen.append(ws.engine.indexer.index.count())
            yield chunk

    monkeypatch.setattr(Passages, "of", watched)
    ws.engine.indexer.catch_up()
    assert seen[0] < seen[4] < seen[8]


def test_a_hit_names_the_commit_that_brought_it(ws):
    ws.tools.write_file("a.md", "The walrus sleeps.\n")
    (hit,) = ws.search("walrus")
    assert hit.commit == ws.status().commit


def test_after_move_delete_and_undo_only_what_stands_is_found_and_the_past_with_as_of(ws):
    ws.tools.write_file("a.md", "The walrus sleeps.\n")
    written = ws.state.seq
    ws.tools.move_file("a.md", "b.md")
    moved = ws.state.seq
    assert paths(ws.search("walrus", kind="artifact")) == {"b.md"}
    ws.tools.delete_file("b.md")
    assert paths(ws.search("walrus", kind="artifact")) == set()
    ws.undo()
    assert paths(ws.search("walrus", kind="artifact")) == {"b.md"}
    ws.undo()
    assert paths(ws.search("walrus", kind="artifact")) == {"a.md"}
    assert paths(ws.search("walrus", kind="artifact", as_of=written)) == {"a.md"}
    assert paths(ws.search("walrus", kind="artifact", as_of=moved)) == {"b.md"}
    assert ws.search("walrus", as_of=1) == []


def test_a_persons_edit_is_found_once_it_is_on_record(ws):
    (ws.artifacts / "theirs.md").write_text("The walrus sleeps.\n")
    ws.status()
    (hit,) = ws.search("walrus")
    assert (hit.path, hit.actor) == ("theirs.md", "watch")


def test_each_filter_narrows(ws):
    ws.tools.write_file("src/a.py", "def walrus():\n    return 1\n")
    ws.tools.write_file("doc/a.md", "# A walrus\n")
    ws.say("I saw a walrus.")
    today = ws.search("walrus")[0].at[:10]
    assert paths(ws.search("walrus", path="src")) == {"src/a.py"}
    assert paths(ws.search("walrus", path="**/*.md")) == {"doc/a.md"}
    assert {hit.kind for hit in ws.search("walrus", kind="message")} == {"message"}
    assert {hit.actor for hit in ws.search("walrus", actor="user")} == {"user"}
    assert {hit.actor for hit in ws.search("walrus", actor="agent:")} == {"agent:main"}
    assert ws.search("walrus", since="2999-01-01") == ws.search("walrus", before="2000-01-01") == []
    assert len(ws.search("walrus", since=today)) == len(ws.search("walrus")) == 3
    assert len(ws.search("walrus", k=1)) == 1
    assert ws.search("walrus", k=0) == []
    with pytest.raises(UsageError, match="not an ISO date"):
        ws.search("walrus", since="lately")


def test_files_are_found_one_hit_for_each_now_and_as_it_was(ws):
    ws.tools.write_file("src/walrus.py", "def dive(depth):\n    return depth\n")
    then = ws.state.seq
    ws.tools.write_file("src/otter.py", "def swim():\n    return 1  # as a walrus does\n")
    ws.say("Let the walrus dive deeper.")
    hits = ws.search("walrus: dive deeper", files=True)
    assert [hit.path for hit in hits] == ["src/walrus.py", "src/otter.py"]
    assert all(len(hit.commit) == 40 for hit in hits)
    assert paths(ws.search("walrus: dive deeper", files=True, as_of=then)) == {"src/walrus.py"}
    assert paths(ws.search("walrus: dive deeper", files=True, path="**/otter.py")) == {"src/otter.py"}


@pytest.mark.parametrize(
    "query", ["", "   ", '"', "walrus OR (", "a:b^2~", "*" * 500, "\x00", "\ud800", "x" * 100_000, "漢字"]
)
def test_any_query_is_words_and_none_is_an_error(ws, query):
    ws.tools.write_file("a.md", "The walrus sleeps.\n")
    assert isinstance(ws.search(query), list)


def test_a_definition_is_found_with_its_lines_and_name(ws):
    ws.tools.write_file("a.py", "import os\n\n\ndef fetch_prices(day):\n    return os.environ[day]\n")
    hit = ws.search("fetch prices")[0]
    assert (hit.path, hit.symbol) == ("a.py", "fetch_prices")
    assert hit.end_line == 5


def test_what_a_check_printed_is_found(configured):
    ws = configured(
        '\n[tools]\nisolation = "none"\n[checks.tests]\ncommand = "echo the walrus is missing; exit 1"\n'
    )
    ws.tools.run_tests()
    assert "tool" in {hit.kind for hit in ws.search("walrus")}


def test_a_binary_file_is_passed_over_and_its_name_does_no_harm(ws):
    (ws.artifacts / "a.bin").write_bytes(b"walrus\x00" * 100)
    (ws.artifacts / "latin.txt").write_bytes(b"walrus caf\xe9")
    ws.status()
    assert "a.bin" not in paths(ws.search("walrus"))


def test_a_damaged_index_is_set_aside_and_filled_again(ws, lexical):
    ws.tools.write_file("a.md", "The walrus sleeps.\n")
    ws.search("walrus")
    ws.close()
    for file in (ws.root / ".agentx").rglob("*.json*"):
        file.write_bytes(b"\x00garbage")
    for call in (lambda ws: ws.search("walrus"), Workspace.settle, Workspace.rebuild):
        with Workspace.open(ws.root, settings=lexical) as again:
            assert call(again)
            assert paths(again.search("walrus")) == {"a.md"}
            assert any("index" in note for note in again.status().notes)
        for file in (ws.root / ".agentx").rglob("*.json*"):
            file.write_bytes(b"\x00garbage")


def test_without_a_model_search_is_lexical_and_says_what_to_do(ws):
    ws.tools.write_file("a.md", "The walrus sleeps.\n")
    (hit,) = ws.search("walrus")
    assert hit.lexical_rank == 1
    assert hit.vector_rank == 0
    assert "agentx models install" in ws.engine.indexer.why_lexical


def test_embeddings_that_are_turned_off_say_so(configured):
    ws = configured('\n[embeddings]\nmodel = "none"\n')
    ws.tools.write_file("a.md", "The walrus sleeps.\n")
    assert ws.search("walrus")
    assert "off" in ws.engine.indexer.why_lexical


def test_with_the_installed_model_a_passage_is_found_by_its_meaning_and_another_model_embeds_again(tmp_path):
    cache = read_settings().cache_dir
    try:
        open_embedder("minilm", cache, lambda _: None)
    except ModelUnavailable as error:
        pytest.skip(str(error))
    settings = Settings(environ=dict(os.environ), cache_dir=cache)
    with Workspace.create(tmp_path / "task", settings=settings) as ws:
        ws.tools.write_file("a.md", "The physician treated the sick child.\n")
        ws.tools.write_file("b.md", "Quarterly revenue rose by a tenth.\n")
        assert ws.settle()
        best = ws.search("doctor who heals a kid", kind="artifact")[0]
        assert (best.path, best.vector_rank) == ("a.md", 1)
        assert best.lexical_rank == 0
        index = ws.engine.indexer.index
        index.write_meta("embedder", "another model")
        ws.configure("model.name", "script:none")
    with Workspace.open(tmp_path / "task", settings=settings) as ws:
        assert ws.engine.indexer.index.without_vectors(1)
        assert ws.settle()
        assert not ws.engine.indexer.index.without_vectors(1)
        assert ws.search("doctor who heals a kid", kind="artifact")[0].path == "a.md"


def test_while_most_passages_have_no_vector_a_search_goes_by_words_alone(tmp_path):
    from agentx.storage.index.port import Filter

    with Workspace.create(tmp_path / "task") as ws:
        indexer = ws.engine.indexer
        _ = indexer.index
        if indexer.why_lexical:
            pytest.skip(indexer.why_lexical)
        functions = "\n\n\n".join(f"def part_{n}():\n" + f"    value = {n}\n" * 40 for n in range(120))
        ws.tools.write_file("many.py", functions)
        hits = indexer.search("part_7 value", 5, Filter(), embed_s=0)
        assert indexer.behind
        assert all(hit.lexical_rank and not hit.vector_rank for hit in hits)
        assert ws.settle(timeout_s=60)
        assert indexer.search("part_7 value", 5, Filter())
        assert not indexer.behind


class Counting:
    """An embedder that counts what it is given."""

    name, dimensions, batch = "counting", 8, 1

    def __init__(self):
        self.given, self.asked = [], []

    def embed_query(self, text):
        self.asked.append(text)
        return np.eye(8, dtype=np.float32)[len(text) % 8]

    def embed_passages(self, texts):
        self.given += texts
        return [np.eye(8, dtype=np.float32)[len(text) % 8] for text in texts]


def test_a_query_that_is_asked_again_is_not_embedded_again(ws):
    ws.tools.write_file("a.py", "def part():\n    return 1\n")
    ws.engine.indexer._embedder = embedder = Counting()
    assert ws.settle()
    first = ws.search("part")
    assert ws.search("part") == first
    ws.get_relevant_context("part")
    assert embedder.asked == ["part"]
    ws.search("other")
    ws.search("x" * 100_000)
    assert [len(text) for text in embedder.asked] == [4, 5, 8_000]


def test_the_vectors_of_queries_are_not_kept_after_a_purge(ws):
    said = ws.say("Where is the yellow house?")
    ws.engine.indexer._embedder = embedder = Counting()
    assert ws.settle()
    ws.search("yellow house")
    ws.purge(said.seq)
    ws.say("Another message.")
    assert ws.settle()
    ws.search("yellow house")
    assert embedder.asked == ["yellow house"] * 2


def test_of_a_file_that_is_edited_only_the_passages_that_changed_are_embedded_again(ws):
    functions = [f"def part_{n}():\n" + f"    value = {n}\n" * 60 for n in range(4)]
    ws.tools.write_file("many.py", "\n\n".join(functions))
    ws.engine.indexer._embedder = embedder = Counting()
    assert ws.settle()
    first = len(embedder.given)
    functions[2] = functions[2].replace("value", "other")
    ws.tools.write_file("many.py", "\n\n".join(functions))
    assert ws.settle()
    again = embedder.given[first:]
    assert len(again) < first
    assert all("other" in text for text in again)
    assert all(hit.vector_rank for hit in ws.search("part", kind="artifact"))


def test_by_its_deadline_a_search_answers_or_is_told_to_be_late_and_goes_on():
    assert done_by(time.monotonic() + 60, lambda: "found") == "found"
    go, done = threading.Event(), threading.Event()
    with pytest.raises(SearchLate, match="continues in the background"):
        done_by(time.monotonic() + 0.05, lambda: go.wait(60) and done.set())
    go.set()
    assert done.wait(30)
    with pytest.raises(UsageError, match="so it is"):
        done_by(time.monotonic() + 60, lambda: (_ for _ in ()).throw(UsageError("so it is")))


def test_while_another_fills_the_index_a_context_is_there_by_its_deadline_and_says_what_is_missing(ws):
    ws.tools.write_file("a.md", "The walrus sleeps.\n")
    with ws.engine.indexer._feeding():  # another process is reading the history into the index
        hurried = ws.get_relevant_context("walrus", deadline_ms=200)
    assert not hurried.recalled
    assert hurried.omitted
    assert all("deadline" in one.reason for one in hurried.omitted)
    assert ws.get_relevant_context("walrus", deadline_ms=60_000).recalled


def test_another_history_of_the_same_length_is_told_apart_by_its_hash(ws, lexical, tmp_path):
    ws.tools.write_file("a.md", "The walrus sleeps.\n")
    assert ws.search("walrus")
    ws.close()
    with Workspace.create(tmp_path / "other", title="Another", settings=lexical) as other:
        other.tools.write_file("b.md", "The otter swims.\n")
        other.flush()
        if other.state.seq < ws.engine.indexer.watermark:
            other.say("One more.")
    shutil.rmtree(other.root / ".agentx")
    shutil.copytree(ws.root / ".agentx", other.root / ".agentx")
    with Workspace.open(other.root, settings=lexical) as again:
        assert again.state.seq >= again.engine.indexer.watermark
        assert again.search("walrus") == []
        assert paths(again.search("otter")) == {"b.md"}


def test_the_passages_of_a_history_are_the_same_however_it_is_cut_into_batches(ws, monkeypatch):
    for number in range(40):
        ws.say(f"Message number {number} about walrus {number % 7}.")
    ws.search("walrus")
    index = ws.engine.indexer.index
    whole = index.get([f"m:{seq}:0" for seq in range(ws.state.seq + 1)])
    assert len(whole) == 40
    monkeypatch.setattr(indexer, "_BATCH_EVENTS", 3)
    ws.engine.indexer.rebuild()
    assert index.get(whole) == whole


AT_ONCE = """for number in range(8):
    ws.tools.write_file(f"WORD{number}.md", f"WORD number{number}")
    assert f"WORD{number}.md" in {hit.path for hit in ws.search(f"WORD number{number}")}
    assert not [hit for hit in ws.search("walrus") if hit.path == "gone.md"]
"""


def test_three_processes_write_and_search_at_once_and_each_finds_everything(ws, elsewhere):
    ws.tools.write_file("gone.md", "walrus\n")
    ws.tools.write_file("gone.md", "otter\n")
    others = [
        threading.Thread(target=elsewhere, args=(ws, AT_ONCE.replace("WORD", word).replace("\n", "\n    ")))
        for word in ("alpha", "beta")
    ]
    for other in others:
        other.start()
    for number in range(8):
        ws.tools.write_file(f"mine{number}.md", f"gamma number{number}\n")
        assert f"mine{number}.md" in paths(ws.search(f"gamma number{number}"))
    for other in others:
        other.join()
    for word in ("alpha", "beta"):
        assert {f"{word}{number}.md" for number in range(8)} <= paths(ws.search(word, k=50))
    assert sum(hit.kind == "artifact" for hit in ws.search("number3", k=50)) == 3
    assert "gone.md" not in paths(ws.search("walrus", k=50))
    assert ws.engine.indexer.index.count() == 2 + 3 * 8


def test_a_rebuild_embeds_nothing_again_nor_does_a_new_index(ws):
    ws.tools.write_file("many.py", "\n\n".join(f"def part_{n}():\n    return {n}\n" for n in range(9)))
    ws.engine.indexer._embedder = embedder = Counting()
    assert ws.settle()
    embedder.given.clear()
    ws.rebuild()
    assert ws.settle()
    assert ws.search("part", kind="artifact")[0].vector_rank
    ws.close()
    shutil.rmtree(ws.root / ".agentx" / "index")
    with Workspace.open(ws.root) as again:
        again.engine.indexer._embedder = embedder
        assert again.settle()
        assert again.search("part", kind="artifact")[0].vector_rank
        assert embedder.given == []


def test_vectors_that_were_kept_are_read_again_after_a_torn_write_or_by_another_model(tmp_path):
    place, rows = tmp_path / "vectors", np.eye(8, dtype=np.float32)
    KeptVectors(place, "one", 8).add({b"a" * 16: rows[0]})
    with place.open("ab") as file:
        file.write(b"half a record")
    kept = KeptVectors(place, "one", 8)
    assert (kept.get(b"a" * 16) == rows[0]).all()
    kept.add({b"b" * 16: rows[1]})
    assert (KeptVectors(place, "one", 8).get(b"b" * 16) == rows[1]).all()
    assert KeptVectors(place, "two", 8).get(b"b" * 16) is None
    KeptVectors(place, "two", 8).add({b"c" * 16: rows[2], b"d" * 16: rows[3] * 5})
    assert (kept.get(b"a" * 16) == rows[0]).all()
    again = KeptVectors(place, "two", 8)
    assert (again.get(b"c" * 16) == rows[2]).all()
    assert again.get(b"d" * 16) is None
    assert again.get(b"a" * 16) is None


def test_a_search_leaves_many_passages_without_a_vector_to_the_background(ws, monkeypatch):
    indexer = ws.engine.indexer
    indexer._embedder = embedder = Counting()
    monkeypatch.setattr(indexer, "start", lambda: None)
    ws.tools.write_file("many.py", "\n\n".join(f"def part_{n}():\n    return {n}\n" for n in range(90)))
    assert ws.search("part_7")[0].path == "many.py"
    assert indexer.behind
    assert embedder.given == []
    assert "not embedded yet" in ws.tools.call("search_memory", {"query": "part_7"}).output
    assert ws.settle()
    assert ws.search("part_7")
    assert "not embedded yet" not in ws.tools.call("search_memory", {"query": "part_7"}).output
    assert not indexer.behind


def test_the_background_yields_to_a_search(ws, monkeypatch):
    ws.tools.write_file("a.md", "Walruses.\n")
    watching, seen = ws.engine.indexer._watching, []
    index = ws.engine.indexer.index
    found = index.search_text
    monkeypatch.setattr(index, "search_text", lambda *asked: seen.append(watching.writing) or found(*asked))
    assert ws.search("walrus")
    assert seen
    assert all(seen)
    assert not watching.writing


NOT_CLOSED = """
import sys
from pathlib import Path
from agentx import Workspace
ws = Workspace.create(Path(sys.argv[1]))
with ws.bulk():
    for number in range(220):
        ws.tools.write_file(f"outlook-{number}.md", f"The outlook on payments, part {number}.\\n")
assert ws.search("the outlook on payments")
"""


def test_a_program_that_closes_no_workspace_ends_as_any_other(tmp_path):
    for number in range(4):  # without care, a thread inside LanceDB aborts every second one
        done = subprocess.run(
            [sys.executable, "-c", NOT_CLOSED, str(tmp_path / f"{number}")],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
