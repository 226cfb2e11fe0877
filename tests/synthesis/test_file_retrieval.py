"""Which files a change is about: by several passages together, by their names, each file once."""

import numpy as np
import pytest

from agentx.storage.index.lance import LanceIndex
from agentx.storage.index.memory_index import InMemoryIndex
from agentx.storage.index.port import Chunk, Filter
from agentx.synthesis.chunking import chunk_file
from agentx.synthesis.recall.file_retrieval import retrieve_files


@pytest.fixture(params=["memory", "lance"])
def index(request, tmp_path):
    made = InMemoryIndex() if request.param == "memory" else LanceIndex(tmp_path / "index")
    yield made
    made.close()


def put(index, files, vectors=None, **fields):
    for number, (path, text) in enumerate(files.items()):
        chunks = [
            Chunk(
                id=f"{path}:{n}",
                text=piece.text,
                context=piece.context,
                **{"kind": "artifact", "path": path, **fields},
            )
            for n, piece in enumerate(chunk_file(path, text))
        ]
        index.put(chunks, vectors and [vectors[number]] * len(chunks))


def found(index, query, vector=None, k=9, **where):
    return [hit.path for hit in retrieve_files(index, query, vector, k, Filter(**where))]


def function(name, body):
    return f"def {name}():\n" + f"    {body}\n" * 40 + "\n\n"


def test_each_file_is_one_hit_with_the_passage_that_speaks_most_for_it(index):
    put(
        index,
        {"pay.py": function("retry", "wait(1)") + function("refund", "give(back)"), "log.py": "print(1)\n"},
    )
    (hit,) = retrieve_files(index, "refund: give the money back", None, 9, Filter())
    assert (hit.path, hit.text.splitlines()[0]) == ("pay.py", "def refund():")
    assert 0 < hit.score <= 1
    assert (hit.lexical_rank, hit.vector_rank) == (1, 0)


def test_several_passages_outweigh_one_that_says_a_little_more(index):
    several = "".join(function(name, "lock(queue)") for name in ("put", "take", "drain"))
    put(
        index,
        {"many.py": several, "one.py": function("other", "lock(queue); lock(queue)"), "none.py": "x = 1\n"},
    )
    assert found(index, "lock the queue") == ["many.py", "one.py"]


def test_a_file_that_the_query_names_comes_before_one_that_says_the_same(index):
    body = function("run", "connection.close()")
    put(index, {"a/worker.py": body, "b/session.py": body, "c/reader.py": body})
    assert found(index, "close the connection in session")[0] == "b/session.py"


def test_the_first_line_of_a_message_says_what_the_others_explain(index):
    put(
        index,
        {"cache.py": function("load", "expire(entry)"), "proxy.py": function("load", "forward(header)")},
    )
    message = "Let an entry expire\n\nBefore, a header was there; forward it no longer."
    assert found(index, message)[0] == "cache.py"


def test_what_a_file_means_counts_beside_its_words(index):
    near, far = np.array([1, 0], np.float32), np.array([0, 1], np.float32)
    put(index, {"a.py": "x = 1\n", "b.py": "x = 2\n"}, [far, near])
    assert found(index, "nothing of this is written", near) == ["b.py", "a.py"]
    assert found(index, "nothing of this is written") == []


def test_what_is_in_no_file_is_passed_over_and_the_filter_holds(index):
    put(
        index,
        {"src/a.py": function("walrus", "dive()"), "doc/a.md": "# A walrus\n\nIt dives.\n"},
        source="pool",
    )
    index.put([Chunk(id="m", kind="message", text="The walrus dives.")])
    assert sorted(found(index, "walrus")) == ["doc/a.md", "src/a.py"]
    assert found(index, "walrus", path="src") == ["src/a.py"]
    assert found(index, "walrus", source="") == []
    assert found(index, "walrus", k=1) == found(index, "walrus")[:1]
    assert found(index, "walrus", k=0) == found(index, "", None) == []


def test_two_files_of_one_path_in_two_sources_are_two(index):
    index.put([Chunk(id=s, kind="source", text="walrus", path="a.md", source=s) for s in ("one", "two")])
    assert [hit.source for hit in retrieve_files(index, "walrus", None, 9, Filter())] == ["one", "two"]
