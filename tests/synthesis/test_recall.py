"""Which memories come back first: the nearest and most alive, each once, before all else that was found."""

from agentx.synthesis.memory.items import MemoryItem
from agentx.synthesis.recall.recall import recollect
from agentx.synthesis.recall.retrieval import SearchHit
from agentx.synthesis.state.state import State
from tests.kinds import fields_of

NOW = "2026-06-01T00:00:00.000000Z"
FRESH = "2026-05-30T00:00:00.000000Z"
OLD = "2026-01-01T00:00:00.000000Z"


def item(name, text, kind="knowledge", created_at=FRESH, **fields):
    return MemoryItem(id=name, text=text, created_at=created_at, **fields_of(kind), **fields)


def memory(one, score=1.0):
    return SearchHit(id=f"i:{one.id}", text=one.text, kind="memory", symbol=one.id, score=score)


def message(seq, text, score=1.0):
    return SearchHit(id=f"m:{seq}:0", text=text, kind="message", seq=seq, score=score)


def file(number, score=1.0):
    return SearchHit(id=f"a:{number}", text=f"def f{number}(): ...", kind="artifact", score=score)


def recalled(hits, *items, most=5, shown=(), most_tokens=350):
    state = State(at=NOW, items={one.id: one for one in items})
    return recollect(hits, state, most, dict(shown), most_tokens)


def ids(found):
    return [hit.id for hit in found.hits]


def test_the_memories_stand_before_files_items_before_messages_and_the_rest_as_it_was_found():
    known = item("k-1", "The staging database is pg-3.")
    hits = [
        file(1, 0.9),
        message(7, "Staging went down on Monday.", 0.8),
        file(2, 0.7),
        memory(known, 0.6),
        message(9, "Lunch?", 0.5),
    ]
    assert ids(recalled(hits, known)) == ["i:k-1", "m:7:0", "m:9:0", "a:1", "a:2"]
    assert ids(recalled(hits, known, most=1)) == ["m:7:0", "a:1", "a:2", "i:k-1", "m:9:0"]
    assert ids(recalled(hits, known, most=0)) == [hit.id for hit in hits]


def test_of_two_memories_that_are_as_near_the_one_that_is_more_alive_comes_first():
    old, fresh = (
        item("k-1", "Deploys go through pg-3.", created_at=OLD),
        item("k-2", "Deploys go through pg-4."),
    )
    used = item("k-3", "Deploys go through pg-5.", created_at=OLD, used_at=FRESH)
    assert ids(recalled([memory(old), memory(fresh)], old, fresh, most=1))[0] == "i:k-2"
    assert ids(recalled([memory(old), memory(used)], old, used, most=1))[0] == "i:k-3"
    assert ids(recalled([memory(old), message(9, "Lunch?", 0.4)], old, most=1))[0] == "i:k-1", (
        "it still comes back"
    )


def test_what_a_search_puts_first_for_its_exact_words_stays_first():
    known = item("k-1", "The error was E1234.")
    hits = [memory(known, 0.1), message(9, "An error was seen.", 0.9)]
    assert ids(recalled(hits, known, most=1))[0] == "i:k-1"


def test_what_is_told_already_is_left_out_with_what_tells_it():
    first = item("k-1", "Run the unit tests before each deploy.")
    again = item("k-2", "Before every deploy, run the tests.")
    contrary = item("k-3", "Never run the unit tests before each deploy.")
    rule = {"r-4": "Never push to main."}
    hits = [
        memory(first, 0.9),
        memory(again, 0.8),
        memory(contrary, 0.7),
        message(7, "never push to main!", 0.6),
        message(8, "I said: never push to main, and nobody listened to a word of it.", 0.5),
    ]
    found = recalled(hits, first, again, contrary, shown=rule)
    assert ids(found) == ["i:k-1", "i:k-3", "m:8:0"]
    assert [(hit.id, same) for hit, same in found.repeated] == [("i:k-2", "k-1"), ("m:7:0", "r-4")]


def test_an_item_that_a_message_says_in_full_is_left_out_only_where_those_words_are_shown():
    noted = item("y-1", "The root cause was a stale lock file.", "discovery")
    said = "I looked at the queue for a while. " * 20 + noted.text
    hits = [message(7, said, 0.9), memory(noted, 0.5)]
    whole, cut = recalled(hits, noted), recalled(hits, noted, most_tokens=80)
    assert ids(whole) == ["m:7:0"]
    assert ids(cut) == ["i:y-1", "m:7:0"]


def test_what_is_only_proposed_takes_no_memory_s_place():
    proposed = item("c-1", "Perhaps use tabs.", status="candidate")
    hits = [memory(proposed, 0.9), message(7, "Tabs or spaces?", 0.5)]
    assert ids(recalled(hits, proposed, most=1)) == ["m:7:0", "i:c-1"]
