"""A question of where something is done is answered by a file: by its passages together, and by its tests."""

import numpy as np
import pytest

from agentx.storage.index.memory_index import InMemoryIndex
from agentx.storage.index.port import Chunk, Filter
from agentx.synthesis.recall.file_evidence import paired_name, spoken_for, subject_of
from agentx.synthesis.recall.file_prior import prior_of
from agentx.synthesis.recall.retrieval import retrieve


def chunk(path, number, text, kind="source"):
    return Chunk(
        id=f"a:1:{path}:{number}", kind="artifact", path=path, file_kind=kind, text=text, content_id=path,
        start_line=number + 1, end_line=number + 1,
    )  # fmt: skip


@pytest.mark.parametrize(
    "question",
    [
        "What stops a letter from being sent twice?",
        "When the bank is closed, what decides how long to wait?",
        "Who picks the colour of a line in the report?",
        "Code that joins two ledgers",
        "I need the place which rounds the amounts.",
        "How can I read a letter twice - where is its text kept?",
        "How come the prices are read anew each time?",
        "How do I find the function that rounds the amounts?",
        "which piece writes the totals?",
    ],
)
def test_a_question_of_what_does_something_asks_for_source(question):
    assert prior_of(question).first == "source"


@pytest.mark.parametrize(
    "query",
    [
        "What settings are there for the printer?",
        "what steps do I follow to install it?",
        "What is the price of a letter?",
        "Fix the code that rounds amounts",
        "Implement rounding of amounts",
        "Who was in Rome?",
    ],
)
def test_other_queries_do_not(query):
    assert prior_of(query).first is None


def test_what_is_quoted_stays_in_the_subject_of_a_question():
    assert subject_of('where is "no such code" raised?').split() == ['"no', "such", 'code"', "raised?"]
    assert subject_of("where is it done?") == "where is it done?"


def test_tests_and_files_are_paired_by_name():
    pairs = {
        "src/pay/retry.py": "tests/pay/test_retry.py",
        "web/cart/index.ts": "web/cart/index.test.ts",
        "lib/ledger.rb": "spec/ledger_spec.rb",
        "queue.go": "queue_test.go",
    }
    assert all(paired_name(file) == paired_name(test) for file, test in pairs.items())
    assert len(set(map(paired_name, pairs))) == len(pairs)


def test_of_namesakes_the_nearest_to_the_tests_is_meant():
    files = [("", "shop/cart/state.py"), ("", "shop/bank/state.py"), ("pool", "shop/bank/state.py")]
    assert spoken_for({("", "tests/bank/test_state.py"): 0.5}, files) == {("", "shop/bank/state.py"): 0.5}


def test_the_passages_of_a_file_count_together():
    index = InMemoryIndex()
    index.put([
        chunk("a.py", 0, "round the amounts of a ledger"),
        chunk("a.py", 1, "the amounts are round"),
        chunk("b.py", 0, "round the amounts"),
        chunk("c.py", 0, "letters"),
    ])  # fmt: skip
    hits = retrieve(index, "where are the amounts made round?", None, 5, Filter())
    assert [hit.path for hit in hits] == ["a.py", "b.py", "a.py"]
    assert hits[0].score == 1.0
    assert hits[0].score > hits[1].score > hits[2].score


def test_the_tests_of_a_file_speak_for_it():
    question = np.array([1, 0, 0], dtype=np.float32)

    def vector(near, side):
        return np.array([near, side, 0.5], dtype=np.float32)

    passages = [chunk("bank.py", 0, "def post(): pass"), chunk("clerk.py", 0, "def send(): pass")]
    vectors = [vector(0.50, 0.5), vector(0.52, 0.5)]
    others = [chunk(f"z{n}.py", 0, f"def z{n}(): pass") for n in range(5)]
    far = [vector(0.1, 1.0)] * 5
    test = chunk("tests/test_bank.py", 0, "def test_a_letter_is_not_posted_twice(): pass", "test")
    alone, beside = InMemoryIndex(), InMemoryIndex()
    alone.put([*passages, *others], [*vectors, *far])
    beside.put([*passages, *others, test], [*vectors, *far, vector(0.9, 0.1)])
    query = "What stops mail from going out again?"
    assert retrieve(alone, query, question, 3, Filter())[0].path == "clerk.py"
    assert retrieve(beside, query, question, 3, Filter())[0].path == "bank.py"


def test_where_there_is_no_source_a_question_is_one_like_any_other():
    index = InMemoryIndex()
    index.put([
        chunk("docs/price.md", 0, "the weight decides the price of a letter", "docs"),
        chunk("rows.csv", 0, "price, letter", "data"),
    ])  # fmt: skip
    hit = retrieve(index, "What decides the price of a letter?", None, 2, Filter())[0]
    assert (hit.path, hit.score) == ("docs/price.md", pytest.approx(0.95))


def test_where_source_is_about_something_else_a_question_is_one_like_any_other():
    index, question = InMemoryIndex(), np.array([1, 0], dtype=np.float32)
    docs, near, far = (np.array(v, dtype=np.float32) for v in ((0.9, 0.1), (0.6, 0.5), (0.2, 0.9)))
    passages = [chunk("docs/price.md", 0, "the weight decides the price", "docs"), chunk("a.py", 0, "price")]
    query = "What decides the price of a letter?"
    index.put(passages, [docs, far])
    assert retrieve(index, query, question, 2, Filter())[0].path == "docs/price.md"
    index.put(passages, [docs, near])
    assert retrieve(index, query, question, 2, Filter())[0].path == "a.py"
