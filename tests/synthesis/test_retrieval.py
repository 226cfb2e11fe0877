"""Fusing what the index finds by words and by meaning."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentx.storage.index.memory_index import InMemoryIndex
from agentx.storage.index.port import Chunk, Filter, Ranked
from agentx.synthesis.recall.retrieval import (
    DEPTH,
    MEANING_GAIN,
    QUOTED_DEPTH,
    FusionWeights,
    balance,
    exact_needles,
    retrieve,
    to_embed,
)

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
    assert (hit.lexical_rank, hit.vector_rank, hit.score) == (1, 0, 1.0)


def test_what_both_rankings_have_comes_before_what_one_has():
    index = filled(["alpha one", "alpha two two", "beta"], [(0, 1), (1, 0), (0.9, 0.1)])
    hits = retrieve(index, "alpha", np.array([1, 0], dtype=np.float32), 3, ALL)
    assert ids(hits)[0] == "c1"
    assert {hit.id: hit.lexical_rank for hit in hits}["c2"] == 0


def test_the_score_is_the_weighted_sum_of_what_each_ranking_gives():
    index = filled(["alpha one", "alpha two two", "beta"], [(0, 1), (1, 0), (0.6, 0.8)])
    vector = np.array([1, 0], dtype=np.float32)
    hits = retrieve(index, "alpha", vector, 3, ALL, weights=FusionWeights(lexical=0.25, vector=0.75))
    best, second = (ranked.score for ranked in index.search_text("alpha", 5, ALL))
    wanted = {"c0": 0.25, "c1": 0.25 * second / best + 0.75, "c2": 0.75 * 0.6}
    assert {hit.id: hit.score for hit in hits} == pytest.approx(wanted, abs=1e-5)


def test_a_ranking_that_was_cut_ends_at_nothing_and_one_that_was_not_keeps_its_last():
    few, many = (filled(["alpha", *["alpha beta gamma"] * n]) for n in (4, 2 * DEPTH))
    assert 0 < retrieve(few, "alpha", None, 2, ALL)[-1].score < 1
    assert retrieve(many, "alpha", None, 2, ALL)[-1].score == 0


def ranking(*scores):
    return [Ranked(Chunk(id=f"c{n:03}", kind="message", text=""), score) for n, score in enumerate(scores)]


def test_words_that_tell_nothing_apart_leave_it_to_meaning():
    flat, steep = ranking(*[5.0] * 29, 4.9), ranking(9.0, *[2.0] * 29)
    cosines = ranking(0.8, *[0.6] * 29)
    assert balance(flat, cosines, 2.0).vector > 0.99
    assert balance(steep, cosines, 2.0).vector < 0.5 < balance(steep, cosines, 2.0).lexical


def test_meaning_that_tells_nothing_apart_leaves_it_to_words():
    words = ranking(6.0, *[4.0] * 29)
    assert balance(words, ranking(*[0.5] * 30), 2.0) == FusionWeights(1.0, 0.0)
    assert balance(words, ranking(0.9, *[0.3] * 29), 2.0).vector > 0.5


def test_a_cosine_that_falls_half_as_much_counts_as_much():
    both = balance(ranking(10.0, *[6.0] * 29), ranking(0.5, *[0.4] * 29), 2.0)
    assert (both.lexical, both.vector) == pytest.approx((0.5, 0.5))


def test_what_only_few_chunks_hold_is_found_by_its_words():
    cosines = ranking(0.6, *[0.5] * 29)
    assert balance(ranking(5.0, 5.0), cosines, 2.0).lexical > 0.8
    assert balance(ranking(*[5.0] * 25), cosines, 2.0).lexical == 0


@pytest.mark.parametrize(
    ("words", "cosines", "wanted"),
    [
        ((), (), FusionWeights(0.5, 0.5)),
        ((), (0.5, 0.4), FusionWeights(0.0, 1.0)),
        ((2.0,), (), FusionWeights(1.0, 0.0)),
        ((2.0,), (-0.1, -0.9), FusionWeights(1.0, 0.0)),
        ((0.0, 0.0), (0.0,), FusionWeights(0.5, 0.5)),
    ],
)
def test_where_a_ranking_says_nothing_the_other_decides(words, cosines, wanted):
    assert balance(ranking(*words), ranking(*cosines), 2.0) == wanted


def test_a_question_in_common_words_is_answered_by_meaning_and_a_name_by_words():
    texts = [f"how do I read the file number{n}" for n in range(40)]
    vectors = [(1, 0.9 + n / 100) for n in range(40)]
    index = filled([*texts, "load a document from disk", "Zebulon"], [*vectors, (1, 0), (0.2, 1)])
    vector = np.array([1, 0], dtype=np.float32)
    assert ids(retrieve(index, "file: how do I read one", vector, 3, ALL))[0] == "c40"
    assert ids(retrieve(index, "Zebulon", vector, 3, ALL))[0] == "c41"


def test_weights_decide_between_the_rankings():
    index = filled(["alpha", "beta"], [(0, 1), (1, 0)])
    vector = np.array([1, 0], dtype=np.float32)
    assert ids(retrieve(index, "alpha", vector, 2, ALL, weights=FusionWeights(vector=0.001)))[0] == "c0"
    assert ids(retrieve(index, "alpha", vector, 2, ALL, weights=FusionWeights(lexical=0.001)))[0] == "c1"


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


class Asked(InMemoryIndex):
    """Remembers how it was searched by words."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def search_text(self, query, k, where):
        self.asked.append((query, k))
        return super().search_text(query, k, where)


def test_what_is_quoted_is_searched_apart_only_where_the_query_did_not_find_it_and_a_long_line_no_deeper():
    index, line = Asked(), "the worker died of a signal that nobody had sent to it"
    index.put([Chunk(id="a", kind="message", text="connection reset by peer")])
    query = f'the "connection reset" or "no route"?\n{line}'
    assert ids(retrieve(index, query, None, 3, ALL)) == ["a"]
    assert index.asked == [
        (query, DEPTH),
        ("no route", QUOTED_DEPTH),
        ('the "connection reset" or "no route"?', QUOTED_DEPTH),
        (line, DEPTH),
    ]


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
    vector = {chunk.id: np.array([1, len(chunk.text)], dtype=np.float32) for chunk in chunks}
    one.put(chunks, [vector[chunk.id] for chunk in chunks])
    other.put(shuffled, [vector[chunk.id] for chunk in shuffled])
    for asked in (None, np.array([1, 2], dtype=np.float32)):
        hits = retrieve(one, "aa b ab", asked, 5, ALL)
        assert hits == retrieve(other, "aa b ab", asked, 5, ALL)
        assert all(0 <= hit.score <= 1 for hit in hits)


def test_meaning_counts_more_among_files_than_in_a_talk():
    vector = np.array([1, 0], dtype=np.float32)
    scores = {}
    for kind in MEANING_GAIN:
        texts = ["alpha beta", *["alpha gamma delta epsilon"] * 30, "omega"]
        index = filled(texts, [*[(0.5, 1)] * 31, (1, 0.1)], kind=kind)
        scores[kind] = {hit.id: hit.score for hit in retrieve(index, "alpha beta", vector, 40, ALL)}
    assert scores["artifact"]["c31"] == scores["source"]["c31"] > scores["message"]["c31"]
    assert (
        scores["artifact"]["c0"] < scores["message"]["c0"] == scores["tool"]["c0"] == scores["memory"]["c0"]
    )


def test_what_is_embedded_begins_with_what_is_said_and_by_whom():
    said = Chunk(id="a", kind="message", text="Two weeks.", context="Ann How long?", actor="user:Ann")
    assert to_embed(said) == "Ann: Two weeks.\nAnn How long?"
    part = Chunk(
        id="b",
        kind="artifact",
        text="return 1",
        context="1.py A.go",
        symbol="A.go",
        path="1.py",
        actor="agent:main",
    )
    assert to_embed(part) == "return 1\n1.py A.go"
    assert to_embed(Chunk(id="c", kind="message", text="Hi.")) == "Hi."


def test_path_and_symbol_are_embedded_in_front_of_a_passage_of_a_file_that_has_a_name():
    for kind in ("artifact", "source"):
        part = Chunk(
            id="a", kind=kind, text="def go(): ...", context="src/pay.py go", symbol="go", path="src/pay.py"
        )
        assert to_embed(part) == "src/pay.py go\ndef go(): ..."


def test_in_a_numbered_file_a_passage_that_holds_its_own_name_is_embedded_alone():
    for kind, symbol, text in (
        ("artifact", "A.go", "def go(self): ..."),
        ("source", "Aim > Cost", "## Cost\nLow."),
    ):
        numbered = Chunk(id="a", kind=kind, text=text, context="a/1.py", symbol=symbol, path="a/1.py")
        assert to_embed(numbered) == text
    remembered = Chunk(id="i", kind="memory", text="Ask c-1 first.", context="constraint", symbol="c-1")
    assert to_embed(remembered) == "Ask c-1 first.\nconstraint"


def test_the_beginning_of_a_long_message_comes_before_a_later_part_that_says_as_much():
    index = InMemoryIndex()
    parts = ("m:3:1", "m:3:12", "m:4:0", "m:10:0")
    index.put([
        Chunk(id=i, kind="message", text=f"The budget is ten thousand {i.replace(':', 'x')}") for i in parts
    ])  # fmt: skip
    assert ids(retrieve(index, "budget", None, 4, ALL)) == ["m:10:0", "m:4:0", "m:3:1", "m:3:12"]


def test_what_a_person_said_comes_before_an_agent_that_repeats_it():
    index = InMemoryIndex()
    told = {"a": "agent:main", "b": "user", "c": "user:Ann"}
    index.put([
        Chunk(id=i, kind="message", text=f"The budget is ten thousand {i}{i}", actor=actor) for i, actor in told.items()
    ])  # fmt: skip
    hits = retrieve(index, "budget", None, 3, ALL)
    assert ids(hits) == ["b", "c", "a"]
    assert hits[2].score == pytest.approx(0.9 * hits[0].score)


def files_of(*given):
    """Return an index of passages, each given as path, kind of file, text and symbol."""
    index = InMemoryIndex()
    index.put(
        [
            Chunk(
                id=f"a:1:{path}:{n}", kind="artifact", path=path, file_kind=kind, text=text, symbol=symbol,
                context=f"{path} {symbol}", start_line=n + 1, end_line=n + 1, content_id=path,
            )
            for n, (path, kind, text, symbol) in enumerate(given)
        ]
    )  # fmt: skip
    return index


def test_a_question_weighs_the_kinds_of_files():
    text = "payments are retried after a timeout"
    index = files_of(
        ("docs/pay.md", "docs", f"{text}: payments, retried", ""),
        ("tests/test_pay.py", "test", f"{text} and payments retried twice", ""),
        ("src/pay.py", "source", f"{text} of the bank, with a longer explanation of it", ""),
    )

    def first(query):
        return retrieve(index, query, None, 3, ALL)[0].path

    assert first("where are payments retried?") == "src/pay.py"
    assert first("which tests check that payments are retried?") == "tests/test_pay.py"
    assert first("how do I configure that payments are retried?") == "docs/pay.md"


def test_source_is_found_although_other_files_take_every_place():
    docs = [(f"docs/{n}.md", "docs", f"payments retried payments retried {n}", "") for n in range(2 * DEPTH)]
    index = files_of(*docs, ("src/pay.py", "source", "payments, which the bank declined, are retried", ""))
    hits = retrieve(index, "where are payments retried?", None, 3, ALL)
    assert hits[0].path == "src/pay.py"


def test_the_definition_of_a_name_comes_before_its_uses():
    index = files_of(
        ("src/use.py", "source", "retry_payment retry_payment retry_payment()", "run"),
        ("src/pay.py", "source", "def retry_payment(invoice): a long body that does much else", "Bank.retry_payment"),
    )  # fmt: skip
    for query in ("retry_payment", "where is retryPayment called?", "Bank.retry_payment()"):
        assert retrieve(index, query, None, 2, ALL)[0].path == "src/pay.py"


def test_the_passages_of_a_file_are_one_hit_when_grouped():
    index = files_of(
        ("src/pay.py", "source", "retry a payment retry", "retry"),
        ("src/pay.py", "source", "a payment that is due, sent with the retry of it", "send"),
        ("src/log.py", "source", "log one retry of anything at all", "log"),
    )
    hits = retrieve(index, "payment retry", None, 5, ALL, grouped=True)
    assert [(hit.path, hit.symbol, hit.also) for hit in hits] == [
        ("src/pay.py", "retry", ("2-2 send",)),
        ("src/log.py", "log", ()),
    ]
    assert [hit.path for hit in retrieve(index, "payment retry", None, 1, ALL, grouped=True)] == [
        "src/pay.py"
    ]


def test_a_definition_found_by_its_signature_is_shown_with_its_body():
    index = InMemoryIndex()
    both = {
        "kind": "artifact",
        "path": "pay.py",
        "symbol": "retry",
        "content_id": "b",
        "start_line": 1,
        "end_line": 9,
    }
    index.put([
        Chunk(id="a:1:pay.py:0", text="def retry(): a body of many more words than the name", **both),
        Chunk(id="a:1:pay.py:s0", text="def retry()", **both),
        Chunk(id="a:1:b.py:0", text="something else of the body", **(both | {"path": "b.py", "symbol": "x"})),
    ])  # fmt: skip
    hits = retrieve(index, "def retry", None, 5, ALL)
    assert ids(hits) == ["a:1:pay.py:0"]
    assert hits[0].score == 1.0


def test_a_filter_names_a_kind_of_files():
    index = files_of(("a.py", "source", "retry", ""), ("test_a.py", "test", "retry it", ""))
    assert [hit.path for hit in retrieve(index, "retry", None, 5, Filter(kinds=("test",)))] == ["test_a.py"]


def test_a_question_about_a_conversation_is_not_answered_by_whatever_file_there_is():
    said = [
        Chunk(id=f"m:{n}:0", kind="message", text=f"Ann went on a holiday in Rome, day {n}")
        for n in range(2 * DEPTH)
    ]
    file = Chunk(
        id="a:1:day.py:0",
        kind="artifact",
        path="day.py",
        file_kind="source",
        text="def day_of_week(n): return n",
    )
    question, vector = "where did Ann go on her holiday?", np.array([1, 0], dtype=np.float32)
    near, far = (np.array(v, dtype=np.float32) for v in ((0.9, 0.1), (0.2, 0.9)))
    alone, beside = InMemoryIndex(), InMemoryIndex()
    alone.put(said, [near] * len(said))
    beside.put([*said, file], [near] * len(said) + [far])
    hits = retrieve(beside, question, vector, 5, ALL)
    assert "a:1:day.py:0" not in ids(hits)
    assert ids(hits) == ids(retrieve(alone, question, vector, 5, ALL))


@given(st.lists(st.lists(st.sampled_from("abcdefghijklmnop"), max_size=40), max_size=12))
def test_of_texts_that_share_nine_tenths_of_their_words_the_first_is_kept(texts):
    hits = retrieve(filled([f"topic {' '.join(words)}" for words in texts]), "topic", None, 50, ALL)
    kept = []
    for words in (frozenset(hit.text.split()) for hit in hits):
        assert not any(
            min(len(words), len(other)) >= 8 and len(words & other) >= 0.9 * len(words | other)
            for other in kept
        )
        kept.append(words)
    lost = {frozenset(["topic", *words]) for words in texts} - set(kept)
    for words in lost:
        assert any(len(words & other) >= 0.9 * len(words | other) for other in kept)
