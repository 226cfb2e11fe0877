"""Fusing what the index finds by words and by meaning."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentx.storage.index.memory import InMemoryIndex
from agentx.storage.index.port import Chunk, Filter
from agentx.synthesis.retrieval import K, Weights, exact_needles, retrieve

ALL = Filter()


def filled(texts, vectors=None, **fields):
    index = InMemoryIndex()
    chunks = [Chunk(id=f"c{n}", text=text, **{"kind": "message", **fields}) for n, text in enumerate(texts)]
    index.put(chunks, None if vectors is None else [np.array(v, dtype=np.float32) for v in vectors])
    return index


def ids(hits):
    return [hit.id for hit in hits]


def test_a_hit_carries_where_it_comes_from():
    index = filled(
        ["Retry payments."], kind="artifact", path="pay.py", start_line=3, end_line=4, symbol="retry", source="lib",
        seq=7, at="2026-11-20T10:00:00Z", actor="agent:main", content_id="abc",
    )  # fmt: skip
    (hit,) = retrieve(index, "payment retries", None, 5, ALL)
    assert (hit.path, hit.start_line, hit.end_line, hit.symbol, hit.source) == (
        "pay.py",
        3,
        4,
        "retry",
        "lib",
    )
    assert (hit.kind, hit.seq, hit.at, hit.actor, hit.content_id) == (
        "artifact", 7, "2026-11-20T10:00:00Z", "agent:main", "abc",
    )  # fmt: skip
    assert (hit.lexical_rank, hit.vector_rank, hit.score) == (1, 0, 1 / (K + 1))


def test_what_both_rankings_have_comes_before_what_one_has():
    index = filled(["alpha one", "alpha two two", "beta"], [(0, 1), (1, 0), (0.9, 0.1)])
    hits = retrieve(index, "alpha", np.array([1, 0], dtype=np.float32), 3, ALL)
    assert ids(hits)[0] == "c1"
    assert hits[0].score == pytest.approx(1 / (K + hits[0].lexical_rank) + 1 / (K + hits[0].vector_rank))
    assert {hit.id: hit.lexical_rank for hit in hits}["c2"] == 0


def test_weights_decide_between_the_rankings():
    index = filled(["alpha", "beta"], [(0, 1), (1, 0)])
    vector = np.array([1, 0], dtype=np.float32)
    assert ids(retrieve(index, "alpha", vector, 2, ALL, weights=Weights(vector=0.001)))[0] == "c0"
    assert ids(retrieve(index, "alpha", vector, 2, ALL, weights=Weights(lexical=0.001)))[0] == "c1"


def test_a_quoted_phrase_comes_first_however_common_its_words_are():
    filler = [f"the time of reset and the connection number{n} connection reset time" for n in range(200)]
    index = filled(
        [*filler, "in the middle of much other text that dilutes it: reset the connection, and then go on"]
    )
    hits = retrieve(index, 'connection time number7 "reset the connection"', None, 3, ALL)
    assert ids(hits)[0] == "c200"


@pytest.mark.parametrize(
    "query",
    [
        "TypeError: 'NoneType' object is not subscriptable",
        "what about 3f2a91c9 here",
        "`retry_budget = 3` please",
    ],
)
def test_what_a_query_pastes_comes_first(query):
    index = filled([
        "TypeError object NoneType subscriptable TypeError NoneType is not what about here please retry budget",
        "worker died: TypeError: 'NoneType' object is not subscriptable (line 40), built from 3f2a91c9, retry_budget = 3",
        "please retry with another budget about here what",
    ])  # fmt: skip
    assert ids(retrieve(index, query, None, 3, ALL))[0] == "c1"


def test_needles_are_bounded():
    assert len(exact_needles('"abc" ' * 5_000 + "\n" + "long line of words " * 5_000)) <= 4
    assert exact_needles("") == exact_needles("two words") == []


def test_passages_that_say_the_same_are_shown_once():
    text = "one two three four five six seven eight nine ten eleven twelve"
    index = filled(
        [text, text.upper(), text + " ", "Nine  " + text, "one two three and something else entirely"]
    )
    assert ids(retrieve(index, "one two three", None, 5, ALL)) in (
        ["c0", "c4"],
        ["c4", "c0"],
        ["c3", "c4"],
        ["c4", "c3"],
    )


def test_filters_hold_for_every_part_of_the_search():
    index = filled(['the "secret phrase" of them', "another secret phrase"], [(1, 0), (0, 1)])
    index.put(
        [Chunk(id="x", kind="tool", text="a secret phrase of a tool")], [np.array([1, 1], dtype=np.float32)]
    )
    vector = np.array([1, 1], dtype=np.float32)
    assert ids(retrieve(index, '"secret phrase"', vector, 5, Filter(kinds=("tool",)))) == ["x"]


@pytest.mark.parametrize("k", [0, -3])
def test_nothing_is_asked_for_and_nothing_comes(k):
    assert retrieve(filled(["alpha"]), "alpha", None, k, ALL) == []


def test_a_hostile_query_is_answered():
    index = filled(["alpha beta", "gamma"])
    for query in ('"' * 20_000, "'a" * 9_000, "`\n" * 9_000, "a" * 20_000, "\x00\ud800", "f1" * 9_000):
        assert retrieve(index, query + " alpha", None, 3, ALL) is not None


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text("ab ", min_size=1, max_size=6), min_size=1, max_size=12), st.randoms())
def test_the_order_depends_on_no_order_of_arrival(texts, dice):
    chunks = [Chunk(id=f"c{n}", kind="message", text=text) for n, text in enumerate(texts)]
    shuffled = dice.sample(chunks, len(chunks))
    one, other = InMemoryIndex(), InMemoryIndex()
    one.put(chunks)
    other.put(shuffled)
    assert retrieve(one, "aa b ab", None, 5, ALL) == retrieve(other, "aa b ab", None, 5, ALL)
