"""What every backend of the memory index does."""

import threading

import pytest

from agentx.storage.errors import UsageError
from agentx.storage.index.port import OPEN, Filter

ALL = Filter()

HOSTILE = [
    "it's",
    'a "quoted" name',
    "100%_done",
    "back\\slash",
    "nul\x00byte",
    "line\nbreak",
    "'; DROP TABLE chunks; --",
    "naïve/日本語/ñ.py",
    "lone\ud800surrogate",
    "[brackets]{braces}(parens)|^$.+",
    "-- comment",
    "/* comment */",
    "${x}`y`",
]


def ids(ranked):
    return [hit.chunk.id for hit in ranked]


def test_a_put_chunk_is_found_by_its_words_with_every_field_as_it_was(index, settle, message):
    chunk = message(
        "a", "Retry payments three times.", context="src/pay.py retry", path="src/pay.py", start_line=3, end_line=9,
        symbol="retry", source="reports", content_id="abc", actor="agent:main", at="2026-11-20T09:31:05.123456Z", seq=7,
        to_seq=OPEN,
    )  # fmt: skip
    index.put([chunk, message("b", "Lunch is at noon.")])
    settle()
    (hit,) = index.search_text("payment retries", 5, ALL)
    assert hit.chunk == chunk
    assert hit.score > 0


def test_one_chunk_alone_is_found(index, settle, message):
    index.put([message("a", "alone")])
    settle()
    assert ids(index.search_text("alone", 5, ALL)) == ["a"]


def test_the_context_is_ranked_and_not_shown(index, settle, message):
    index.put([message("a", "Yes, on Friday.", context="Shall we ship the parser?")])
    settle()
    (hit,) = index.search_text("ship the parser", 5, ALL)
    assert hit.chunk.text == "Yes, on Friday."


def test_more_and_rarer_words_rank_higher(index, settle, message):
    index.put([
        message("one", "the parser is slow today"),
        message("both", "the parser leaks memory today"),
        message("none", "nothing of the kind"),
        message("common", "today is another day"),
    ])  # fmt: skip
    settle()
    assert ids(index.search_text("parser memory", 5, ALL)) == ["both", "one"]


def test_a_word_that_the_query_says_again_weighs_more(index, settle, message):
    index.put([message("a", "the gate opened"), message("b", "the lock opened"), message("c", "nothing")])
    settle()
    assert ids(index.search_text("gate lock", 5, ALL)) == ["a", "b"]
    assert ids(index.search_text("lock: a gate that the lock holds", 5, ALL)) == ["b", "a"]


def test_equal_scores_go_by_id(index, settle, message):
    index.put([message(i, "same words here") for i in ("c", "a", "b")])
    settle()
    assert ids(index.search_text("same words", 2, ALL)) == ["a", "b"]


def test_no_more_than_k_hits_come_back(index, settle, message, unit):
    index.put([message(f"m{n}", f"word {n}") for n in range(9)], [unit(1, n) for n in range(9)])
    settle()
    assert len(index.search_text("word", 4, ALL)) == 4
    assert len(index.search_vector(unit(1, 1), 4, ALL)) == 4
    assert index.search_text("word", 0, ALL) == index.search_text("word", -1, ALL) == []
    assert index.search_vector(unit(1, 1), 0, ALL) == []


@pytest.mark.parametrize(
    "query",
    ["user", "name", "getUserName", "getusername", "src/app/users.py", "users.py", "app.users", "NullPointerException",
     "3f2a91c", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "cafe", "retries"],
)  # fmt: skip
def test_names_are_found_whole_and_by_their_parts(index, settle, message, query):
    index.put([
        message("other", "nothing to see here"),
        message("wanted", "getUserName in src/app/users.py (app.users) raised NullPointerException at 3f2a91c, "
                          "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855, in the Café, retrying"),
    ])  # fmt: skip
    settle()
    assert ids(index.search_text(query, 5, ALL)) == ["wanted"]


def test_a_hash_that_differs_in_its_last_letter_is_not_found(index, settle, message):
    index.put([message("a", "commit " + "0a" * 32), message("long", "blob " + "0b" * 60 + "c")])
    settle()
    assert index.search_text("0a" * 31 + "0c", 5, ALL) == []
    assert index.search_text("0b" * 60 + "d", 5, ALL) == []
    assert ids(index.search_text("0b" * 60 + "c", 5, ALL)) == ["long"]


@pytest.mark.parametrize(
    "query",
    [
        "parser AND memory",
        'title:"parser"',
        "parser~2 +leak -slow",
        "(parser OR",
        '"parser',
        "parser*",
        "parser'; --",
    ],
)
def test_a_query_is_never_parsed_as_a_query_language(index, settle, message, query):
    index.put([message("a", "the parser is slow"), message("b", "lunch")])
    settle()
    assert "a" in ids(index.search_text(query, 5, ALL))


@pytest.mark.parametrize("query", ["", "   ", "the of and", "\x00", "\ud800", "🙂", "!?%'\"\\"])
def test_a_query_without_words_finds_nothing(index, settle, message, query):
    index.put([message("a", "some text")])
    settle()
    assert index.search_text(query, 5, ALL) == []


def test_a_very_long_query_is_answered_by_its_rarest_words(index, settle, message):
    index.put([message(f"m{n}", f"common words number{n}") for n in range(60)])
    settle()
    query = "number7 " + " ".join(f"absent{n} common words" for n in range(40)) + " filler" * 20_000
    assert ids(index.search_text(query, 1, ALL)) == ["m7"]


def test_text_of_any_kind_is_kept_and_found(index, settle, message):
    index.put(
        [message("nul", "with\x00nul marker"), message("odd", "lone \ud800 surrogate"), message("empty", "")]
    )
    index.put([message("huge", "filler " * 60_000 + "end")])
    settle()
    assert ids(index.search_text("marker", 5, ALL)) == ["nul"]
    assert index.search_text("surrogate", 5, ALL)[0].chunk.text == "lone \ufffd surrogate"
    assert ids(index.search_text("filler", 5, ALL)) == ["huge"]
    assert index.get(["empty"])["empty"].text == ""


def test_scripts_without_spaces_are_found_by_a_part(index, settle, message):
    index.put([message("ja", "毎日東京で寿司を食べる"), message("ru", "Привет, мир")])
    settle()
    assert ids(index.search_text("寿司", 5, ALL)) == ["ja"]
    assert ids(index.search_text("мир", 5, ALL)) == ["ru"]


# --- replacing, closing, time ----------------------------------------------------------------------------------------


def test_a_chunk_of_the_same_id_replaces_the_earlier_one(index, settle, message, unit):
    index.put([message("a", "old words")], [unit(1, 0)])
    settle()
    index.put([message("a", "new text")])
    settle()
    assert index.count() == 1
    assert index.search_text("old", 5, ALL) == []
    assert ids(index.search_text("new", 5, ALL)) == ["a"]
    assert index.search_vector(unit(1, 0), 5, ALL) == []


def test_of_one_id_twice_in_a_batch_the_last_counts(index, settle, message):
    index.put([message("a", "first"), message("a", "second")])
    settle()
    assert index.count() == 1
    assert index.get(["a"])["a"].text == "second"


def test_closed_chunks_are_seen_only_as_of_their_time(index, settle, message):
    index.put([message("v1", "parser version", path="p.py", seq=3, kind="artifact")])
    settle()
    index.close_chunks(path="p.py", seq=8)
    index.put([message("v2", "parser version", path="p.py", seq=8, kind="artifact")])
    settle()
    assert ids(index.search_text("parser", 5, ALL)) == ["v2"]
    assert ids(index.search_text("parser", 5, Filter(as_of=8))) == ["v2"]
    assert ids(index.search_text("parser", 5, Filter(as_of=7))) == ["v1"]
    assert index.search_text("parser", 5, Filter(as_of=2)) == []
    assert index.count() == 2
    assert index.count(ALL) == 1
    assert index.get(["v1"])["v1"].to_seq == 8


def test_old_versions_do_not_make_the_words_of_a_file_look_common(index, settle, message):
    for version in range(1, 9):
        index.close_chunks(path="p.py", seq=version)
        settle()
        index.put([message(f"v{version}", f"parser {version}", path="p.py", seq=version)])
        settle()
    index.put([message(f"m{number}", "the lexer") for number in range(3)])
    settle()
    assert ids(index.search_text("lexer or parser", 5, ALL)) == ["v8", "m0", "m1", "m2"]


def test_closing_ends_open_chunks_of_that_file_and_source_only(index, settle, message):
    index.put([
        message("mine", "x", path="p.py", seq=1),
        message("source", "x", path="p.py", source="lib", seq=1),
        message("sibling", "x", path="p.pyc", seq=1),
        message("ended", "x", path="p.py", seq=1, to_seq=2),
    ])  # fmt: skip
    settle()
    index.close_chunks(path="p.py", seq=5)
    settle()
    index.close_chunks(path="p.py", seq=9)
    settle()
    ends = {i: chunk.to_seq for i, chunk in index.get(["mine", "source", "sibling", "ended"]).items()}
    assert ends == {"mine": 5, "source": OPEN, "sibling": OPEN, "ended": 2}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_only_names(index, settle, message, name):
    index.put(
        [
            message(f"id {name}", "some words", path=name, source=name, actor=name, seq=1),
            message("b", "other"),
        ]
    )
    settle()
    assert len(index.search_text("words", 5, Filter(path=name, source=name, actor=name))) == 1
    assert index.count(Filter(path=name + "x")) == 0
    index.close_chunks(path=name, source=name, seq=4)
    settle()
    (chunk,) = index.get([f"id {name}", "absent'"]).values()
    assert chunk.to_seq == 4
    assert index.count() == 2
    index.write_meta(name, name)
    settle()
    assert index.read_meta(name) == name.replace("\ud800", "\ufffd")


# --- filters ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def library(index, settle, message):
    index.put([
        message("art", "common", kind="artifact", path="src/api/client.py", seq=1, actor="agent:writer",
                at="2026-11-01T10:00:00.000000Z"),
        message("deep", "common", kind="artifact", path="src/api/v2/main.ts", seq=2, actor="agent:tester",
                at="2026-11-02T10:00:00.000000Z"),
        message("top", "common", kind="artifact", path="src/apiary.py", seq=3, actor="user:ann",
                at="2026-11-03T10:00:00.000000Z"),
        message("talk", "common", seq=4, actor="user", at="2026-11-04T10:00:00.500000Z"),
        message("pool", "common", kind="source", path="src/api/report.md", source="reports", seq=5, actor="agent",
                at=""),
    ])  # fmt: skip
    settle()
    return index


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (Filter(), "art deep pool talk top"),
        (Filter(kinds=("message",)), "talk"),
        (Filter(kinds=("message", "source")), "pool talk"),
        (Filter(path="src/api"), "art deep pool"),
        (Filter(path="./src/api/"), "art deep pool"),
        (Filter(path="src/api/client.py"), "art"),
        (Filter(path="."), "art deep pool talk top"),
        (Filter(path="**/*.py"), "art top"),
        (Filter(path="*.py"), "art top"),
        (Filter(path="src/*.py"), "top"),
        (Filter(path="src/api/**"), "art deep pool"),
        (Filter(path="src/**/main.??"), "deep"),
        (Filter(path="src/[a]pi/*"), ""),
        (Filter(source=""), "art deep talk top"),
        (Filter(source="reports"), "pool"),
        (Filter(source="none"), ""),
        (Filter(actor="agent:"), "art deep"),
        (Filter(actor="agent:writer"), "art"),
        (Filter(actor="agent"), "pool"),
        (Filter(actor="user"), "talk"),
        (Filter(since="2026-11-03"), "talk top"),
        (Filter(before="2026-11-03"), "art deep"),
        (Filter(since="2026-11-02T10:00:00Z", before="2026-11-03T10:00:00Z"), "deep"),
        (Filter(since="2026-11-04T12:00:00.4+02:00"), "talk"),
        (Filter(since="2026-11-04T12:00:00.6+02:00"), ""),
        (Filter(as_of=2), "art deep"),
        (Filter(as_of=0), ""),
        (Filter(kinds=("artifact",), path="src/api", actor="agent:", since="2026-11-02", as_of=9), "deep"),
    ],
    ids=repr,
)
def test_every_given_filter_must_match_in_each_kind_of_search(library, settle, unit, where, expected):
    wanted = expected.split()
    assert sorted(ids(library.search_text("common", 9, where))) == wanted
    assert library.count(where) == len(wanted)
    library.embed(["art", "deep", "top", "talk", "pool"], [unit(1, n) for n in range(5)])
    settle()
    assert sorted(ids(library.search_vector(unit(1, 1), 9, where))) == wanted


@pytest.mark.parametrize(
    "where", [Filter(since="yesterday"), Filter(before="2026-13-40T00"), Filter(path="a" * 1001)]
)
def test_a_filter_that_cannot_be_meant_is_refused_with_a_sentence(library, unit, where):
    for ask in (
        lambda: library.search_text("common", 5, where),
        lambda: library.search_vector(unit(1, 0), 5, where),
        lambda: library.count(where),
    ):
        with pytest.raises(UsageError, match=r"ISO date|characters long"):
            ask()


# --- vectors ---------------------------------------------------------------------------------------------------------


def test_the_nearest_vectors_come_first_with_their_cosine(index, settle, message, unit):
    index.put(
        [message("x", "x"), message("y", "y"), message("xy", "xy")], [unit(1, 0), unit(0, 1), unit(1, 1)]
    )
    index.put([message("without", "z")])
    settle()
    hits = index.search_vector(unit(1, 0), 5, ALL)
    assert ids(hits) == ["x", "xy", "y"]
    assert [hit.score for hit in hits] == pytest.approx([1.0, 0.707107, 0.0], abs=1e-6)


def test_vectors_can_come_later_and_unknown_ids_are_passed_over(index, settle, message, unit):
    index.put([message("b", "second", seq=2), message("a", "first", seq=1), message("c", "third", seq=3)])
    settle()
    assert [chunk.id for chunk in index.without_vectors(2)] == ["a", "b"]
    assert index.search_vector(unit(1, 0), 5, ALL) == []
    index.embed(["b", "gone"], [unit(1, 0), unit(0, 1)])
    settle()
    assert [chunk.id for chunk in index.without_vectors(5)] == ["a", "c"]
    assert ids(index.search_vector(unit(1, 0), 5, ALL)) == ["b"]
    assert index.count() == 3
    assert ids(index.search_text("second", 5, ALL)) == ["b"]
    assert index.without_vectors(0) == []


def test_closed_chunks_need_no_vector(index, settle, message):
    index.put([message("a", "x", path="p", seq=1), message("b", "y", path="q", seq=2)])
    index.close_chunks(path="p", seq=3)
    settle()
    assert [chunk.id for chunk in index.without_vectors(5)] == ["b"]


def test_forgetting_vectors_leaves_text_and_lets_other_dimensions_in(index, settle, message, unit):
    index.put([message("a", "words", seq=1)], [unit(1, 0)])
    settle()
    index.forget_vectors()
    assert index.search_vector(unit(1, 0), 5, ALL) == []
    assert [chunk.id for chunk in index.without_vectors(5)] == ["a"]
    settle()
    assert index.search_vector(unit(1, 0), 5, ALL) == []
    assert ids(index.search_text("words", 5, ALL)) == ["a"]
    index.embed(["a"], [unit(0, 0, 1)])
    assert ids(index.search_vector(unit(0, 0, 1), 5, ALL)) == ["a"]
    settle()
    assert ids(index.search_vector(unit(0, 0, 1), 5, ALL)) == ["a"]
    assert index.search_vector(unit(1, 0), 5, ALL) == []
    assert index.without_vectors(5) == []


def test_vectors_that_do_not_fit_are_refused_and_nothing_is_kept(index, settle, message, unit):
    index.put([message("a", "x")], [unit(1, 0)])
    settle()
    for vectors in ([unit(1, 0, 0)], [unit(1, 0), unit(0, 1)], [], [[float("nan"), 1]], [[0.0, 0.0]]):
        with pytest.raises(UsageError):
            index.put([message("b", "y")], vectors)
        with pytest.raises(UsageError):
            index.embed(["a"], vectors)
    assert index.count() == 1


# --- the rest of the port --------------------------------------------------------------------------------------------


def test_get_answers_what_is_there(index, settle, message):
    index.put([message("a", "x")])
    settle()
    index.put([message("b", "y")])
    assert {i: chunk.text for i, chunk in index.get(["b", "nope", "a", "a"]).items()} == {"a": "x", "b": "y"}
    assert index.get([]) == {}


def test_meta_is_kept_until_it_is_written_again(index, settle):
    assert index.read_meta("watermark") == ""
    index.write_meta("watermark", "12")
    settle()
    assert index.read_meta("watermark") == "12"
    index.write_meta("watermark", "13")
    index.write_meta("embedder", "minilm")
    assert index.read_meta("watermark") == "13"
    settle()
    assert (index.read_meta("watermark"), index.read_meta("embedder")) == ("13", "minilm")


def test_clearing_drops_everything_and_the_index_goes_on(index, settle, message, unit):
    index.put([message("a", "old words", path="p")], [unit(1, 0)])
    index.write_meta("watermark", "1")
    settle()
    index.clear()
    index.embed(["a"], [unit(1, 0, 0)])
    index.close_chunks(path="p", seq=3)
    assert (index.count(), index.read_meta("watermark"), index.search_text("old", 5, ALL)) == (0, "", [])
    settle()
    assert (index.count(), index.read_meta("watermark"), index.search_text("old", 5, ALL)) == (0, "", [])
    index.put([message("b", "new words")], [unit(1, 0, 0)])
    settle()
    assert ids(index.search_text("words", 5, ALL)) == ids(index.search_vector(unit(1, 0, 0), 5, ALL)) == ["b"]


def test_an_empty_index_answers_everything(index, settle, unit):
    index.maintain()
    settle()
    index.put([])
    index.embed([], [])
    index.close_chunks(path="p", seq=1)
    settle()
    assert (index.count(), index.count(ALL), index.get(["a"]), index.without_vectors(5)) == (0, 0, {}, [])
    assert index.search_text("word", 5, ALL) == index.search_vector(unit(1, 0), 5, ALL) == []


def test_one_thread_searches_while_another_puts(index, message):
    failures = []

    def put() -> None:
        try:
            for number in range(150):
                index.put([message(f"m{number}", f"word number{number}")])
                found = index.search_text(f"number{number}", 1, ALL)
                assert ids(found) == [f"m{number}"]
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=put)
    thread.start()
    while thread.is_alive():
        index.search_text("word", 3, ALL)
        index.maintain()
    thread.join()
    assert not failures
    assert index.count() == 150
