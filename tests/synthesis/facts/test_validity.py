"""What was true when: the time that a question asks about, and the memories of that time."""

import msgspec
import pytest

from agentx.synthesis.facts.validity import asked_period, is_true, valid_at
from agentx.synthesis.memory.items import Link, MemoryItem, NoteDetail

NOW = "2026-06-02T09:00:00Z"


def item(name, since, until="", links=()):
    return MemoryItem(
        id=name,
        kind="knowledge",
        text=name,
        status="retired" if until else "active",
        created_at=since,
        links=tuple(Link(*link) for link in links),
        detail=NoteDetail(valid_to=until),
    )


CHAIN = {
    one.id: one
    for one in (
        item("first", "2026-01-05T08:00:00Z", "2026-02-03T09:00:00Z", [("superseded_by", "second")]),
        item(
            "second",
            "2026-02-03T09:00:00Z",
            "2026-05-11T20:00:00Z",
            [("supersedes", "first"), ("superseded_by", "third")],
        ),
        item("third", "2026-05-11T20:00:00Z", "", [("supersedes", "second")]),
        item("other", "2026-01-01T08:00:00Z"),
    )
}


@pytest.mark.parametrize(
    ("question", "true"),
    [
        ("What time is the stand-up?", "third"),
        ("What time was the stand-up before?", "second"),
        ("What time did the stand-up use to be?", "second"),
        ("What time was the stand-up originally?", "first"),
        ("What time was the stand-up in March?", "second"),
        ("What time was the stand-up on 10 January?", "first"),
        ("What time was the stand-up until May?", "second"),
        ("What time was the stand-up until February?", "first"),
        ("What time will the stand-up be?", "third"),
        ("What time is the stand-up from next week?", "third"),
    ],
)
@pytest.mark.parametrize("found", ["first", "second", "third"])
def test_whichever_memory_is_found_the_one_of_the_time_that_is_asked_for_is_given(question, true, found):
    assert valid_at([found, "other"], CHAIN, asked_period(question, NOW)) == [true, "other"]


def test_a_change_that_is_to_come_does_not_hold_yet():
    items = {
        "old": item("old", "2026-01-05T08:00:00Z", "2026-10-01", [("superseded_by", "new")]),
        "new": item("new", "2026-10-01", "", [("supersedes", "old")]),
    }
    assert valid_at(["new"], items, asked_period("What do they pay?", NOW)) == ["old"]
    assert valid_at(["old"], items, asked_period("What will they pay from October?", NOW)) == ["new"]
    assert is_true(items["old"], NOW)
    assert not is_true(items["old"], "2026-10-02T00:00:00Z")


def test_a_memory_that_was_merged_into_another_is_not_what_was_true_earlier():
    merged = item("merged", "2026-01-05T08:00:00Z", "x", [("superseded_by", "kept")])
    items = {
        "merged": msgspec.structs.replace(merged, detail=NoteDetail()),
        "kept": item("kept", "2026-01-05T08:00:00Z", "", [("supersedes", "merged")]),
    }
    for question in ("What is it?", "What was it before?"):
        assert valid_at(["kept"], items, asked_period(question, NOW)) == ["kept"]


def test_ids_that_are_not_known_are_left_out_and_no_link_runs_in_a_circle_for_ever():
    items = {
        "a": item("a", "2026-01-01", "", [("supersedes", "a"), ("superseded_by", "gone")]),
    }
    assert valid_at(["a", "nothing", "a"], items, asked_period("What is it?", NOW)) == ["a"]
