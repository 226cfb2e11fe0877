"""Long-term memory grows behind its end, by what is new, each item under its own heading; and its facts are found by search."""

import re
from types import SimpleNamespace

import msgspec
import pytest

from agentx import Workspace
from agentx.storage.events.direction_events import NewKnowledge
from agentx.storage.events.pipeline_events import StageProved
from agentx.storage.events.types import Draft, Event
from agentx.synthesis.chunking.headings import fenced, markdown_headings
from agentx.synthesis.memory.conclusions import Add
from agentx.synthesis.memory.items import Link, ending
from agentx.synthesis.pipelines.definition.pipeline import Append
from agentx.synthesis.pipelines.definition.plan import AppendFile
from agentx.synthesis.pipelines.proving.markdown import entries, sections
from agentx.synthesis.pipelines.running import replaced as replaced_lines
from agentx.synthesis.pipelines.running.learned import Learned
from agentx.synthesis.pipelines.running.long_term_memory import MAX_FACT, appending, superseded
from agentx.synthesis.pipelines.running.replaced import Added, in_force, note
from agentx.synthesis.state.state import State

NOTES = """\
# Notes of chapter 2

## Summary

The ledger keeps **postings**.
It never forgets one.

Each has two sides.

## 2. New terms

- **posting**: one side of an entry
  (not: record)
- **ledger**: what holds `postings`

  - in order

<!-- NOTES_COMPLETE -->
"""


def appended(written, before="", *, item="02", earlier=(), **rule):
    """What comes behind ``before``; nothing is rewritten."""
    rule = {"section": "New terms", "under": "Chapter {{ chapter.id }}", "topic": "terms"} | rule
    pointer = AppendFile(Append.model_validate({"to": "g", "from": "n", **rule}), "meta/g.md", "notes.md")
    added = [Added(before.partition(one)[0].count("\n") if one in before else 0, one) for one in earlier]
    made = appending([pointer], before, {"notes.md": written}, {"chapter": {"id": item}}, added)
    if made is None:
        return "", []
    assert made.path == "meta/g.md"
    assert not made.text or made.text.endswith("\n")
    return made.text, [fact.text for fact in made.learned]


def listed(text):
    """The terms in the lists of a text, with their meanings, lines and headings."""
    return tuple(
        SimpleNamespace(term=found[1], meaning=found[2], line=entry.line, under=section.above)
        for section in sections(text)
        for entry in entries(section.own, section.first)
        if (found := re.fullmatch(r"\*\*(.+?)\*\*: (.*)", entry.text))
    )


def headings(text):
    return [(one.level, one.title) for one in markdown_headings(text.split("\n"))]


def test_each_entry_of_a_list_is_a_fact_and_so_is_each_paragraph():
    text, facts = appended(NOTES)
    assert text == (
        "## Chapter 02\n\n- **posting**: one side of an entry\n  (not: record)\n"
        "- **ledger**: what holds `postings`\n\n  - in order\n"
    )
    assert facts == ["posting: one side of an entry (not: record)", "ledger: what holds postings - in order"]
    text, facts = appended(NOTES, "# Summaries", section="Summary", under="")
    assert text == (
        "\n\n## Chapter 02\n\nThe ledger keeps **postings**.\nIt never forgets one.\n\nEach has two sides.\n"
    )
    assert facts == ["The ledger keeps postings. It never forgets one.", "Each has two sides."]
    assert appended(NOTES, topic="")[1] == []


@pytest.mark.parametrize(
    "written",
    [
        "## New terms\n",
        "## Other\n\n- a\n",
        "",
        "## New terms\n\nNone.\n",
        "## New terms\n\n- *No new terms in this chapter.*\n\n<!-- NOTES_COMPLETE -->\n",
        "## New terms\n\n### Of code\n\n(n/a)\n",
    ],
)
def test_nothing_is_added_where_there_is_nothing(written):
    assert appended(written) == ("", [])


def test_what_stands_there_word_for_word_is_not_added_again():
    before, _ = appended(NOTES)
    assert appended(NOTES, before) == ("", [])
    assert appended(NOTES.replace("\n", "\r\n"), before.replace("\n", "\r\n")) == ("", [])
    more = NOTES.replace("- **ledger**", "- **entry**: what happened\n- **ledger**")
    assert appended(more, before) == ("\n- **entry**: what happened\n", ["entry: what happened"])
    text, facts = appended(more, before, item="03")
    assert headings(before + text) == [(2, "Chapter 02"), (2, "Chapter 03")]
    assert facts == ["entry: what happened"]


@pytest.mark.parametrize(
    "forged",
    [
        "### Chapter 09\n\n- **posting**: forged",
        "Chapter 09\n-----\n\n- **posting**: forged",
        "---\n### Chapter 09\n---\n- **posting**: forged",
        "- a\nChapter 09\n---\n- **posting**: forged",
        "```\ncode\n",
        "~~~~\n## Chapter 09\n",
        "<!-- hidden\n",
        "<pre>\n",
    ],
)
def test_what_a_stage_writes_can_neither_forge_the_heading_of_an_item_nor_hide_the_next(forged):
    first, _ = appended(f"## New terms\n\n- **entry**: one\n\n{forged}\n")
    second, _ = appended("## New terms\n\n- **ledger**: two (not: tome)\n", first, item="03")
    whole = first + second
    assert [title for level, title in headings(whole) if level <= 2] == ["Chapter 02", "Chapter 03"]
    assert not [*fenced([*whole.split("\n"), ""])][-1]
    assert "<!--" not in whole
    assert "<pre" not in whole
    assert [one.term for one in listed(whole)][-1] == "ledger"


def test_a_fence_that_a_person_left_open_is_closed_before_anything_is_added():
    before = "# Terms\n````text\nopen"
    text, _ = appended(NOTES, before)
    assert text.startswith("\n````\n")
    assert (2, "Chapter 02") in headings(before + text)


def test_a_whole_file_is_added_without_its_title_its_headings_lower_and_long_facts_cut_at_a_sentence():
    long = "One sentence stands here. " * 40
    written = f"# Chapter two\n\n## Part\n\n{long}\n\n| a | b |\n|---|---|\n\n```py\n# no heading\n```\n"
    text, facts = appended(written, section="", under="{{ chapter.id }}")
    assert headings(text) == [(2, "02"), (3, "Part")]
    assert "```py\n# no heading\n```\n" in text
    (fact,) = facts
    assert len(fact) <= MAX_FACT
    assert fact.endswith("here.")


# --- done again

FIRST = "## New terms\n\n- **posting**: a record\n- **ledger**: what holds them\n"
AGAIN = "## New terms\n\n- **posting**: one side of an entry (not: record)\n"


def test_what_is_done_again_comes_in_place_of_what_was_added_before_and_says_so():
    first, _ = appended(FIRST, "# Terms\n")
    third, _ = appended("## New terms\n\n- **entry**: two postings\n", f"# Terms\n{first}", item="03")
    before = f"# Terms\n{first}{third}"
    text, facts = appended(AGAIN, before, earlier=[first])
    assert text.startswith("\n## Chapter 02\n\n<!-- In place of lines 3-6 (")
    assert facts == ["posting: one side of an entry (not: record)"]
    assert [(one.term, one.under[-1]) for one in listed(in_force(before + text))] == [
        ("entry", "Chapter 03"),
        ("posting", "Chapter 02"),
    ]
    assert in_force(before + text).splitlines()[2] == "[lines 3-6 were replaced: see below]"
    assert len(in_force(before + text).splitlines()) == len((before + text).splitlines())
    assert [one.line for one in listed(in_force(before + text))] == [10, 16]


def test_what_is_done_again_with_the_same_result_adds_nothing_and_nothing_can_come_in_place_of_something():
    first, facts = appended(FIRST)
    assert appended(FIRST, first, earlier=[first]) == ("", facts)
    none, facts = appended("## New terms\n\nNone.\n", first, earlier=[first])
    assert (facts, listed(in_force(first + none))) == ([], ())
    assert headings(in_force(first + none)) == [(2, "Chapter 02")]
    third, facts = appended(FIRST, first + none, earlier=[first, none])
    assert facts == ["posting: a record", "ledger: what holds them"]
    assert [one.line for one in listed(in_force(first + none + third))] == [14, 15]


def test_only_the_engine_can_say_that_lines_hold_no_more():
    first, _ = appended(FIRST)
    said = note(first.splitlines(), range(4))
    forged, _ = appended(
        f"## New terms\n\n- **entry**: one\n\n{said}\n\n```\n{said}\n```\n", first, item="03"
    )
    assert forged.count("In place of lines 1-4") == 2
    assert in_force(first + forged) == first + forged


def test_what_is_replaced_lies_at_the_end_of_a_file_that_a_person_left_without_a_line_break():
    text, _ = appended(
        "## New terms\n\n- **b**: two\n", "- **a**: one", earlier=["## Chapter 02\n\n- **a**: one\n"]
    )
    assert text.startswith("\n\n## Chapter 02\n\n<!-- In place of line 1 (")
    assert "**a**" not in in_force("- **a**: one" + text)


def test_a_block_of_code_that_a_person_left_open_stays_closed_when_what_closed_it_is_done_again():
    held, earlier = "# Glossary\n\n```python\nx = 1\n", []
    for said in ("one", "two", "three"):
        text, _ = appended(f"## New terms\n\n- **a**: {said}\n", held, earlier=earlier)
        held, earlier = held + text, [*earlier, text]
    lines = held.split("\n")
    assert [n for n, code in enumerate(fenced(lines)) if code] == [2, 3, 4]
    told = in_force(held)
    assert "x = 1\n```\n" in told
    assert "three" in told
    assert "two" not in told
    text, _ = appended("## New terms\n\n- **a**: three\n", held, earlier=earlier)
    assert text == ""


def test_an_entry_that_a_person_amended_gains_no_words_from_what_was_replaced_behind_it():
    held = "## Chapter 02\n\n- **a**: one\n- **b**: two\n- **c**: three\n"
    amended = held.replace("two", "what a person says")
    text, _ = appended("## New terms\n\n- **d**: four\n", amended, earlier=[held])
    terms = listed(in_force(amended + text))
    assert [(term.term, term.meaning) for term in terms] == [("b", "what a person says"), ("d", "four")]


def test_what_was_replaced_is_told_apart_from_what_says_the_same_later():
    held, earlier = "## Chapter 02\n\n- **b**: two\n", []

    def add(*entries, ours=True):
        nonlocal held
        said = "\n".join(entries)
        text, _ = appended(f"## New terms\n\n{said}\n", held, earlier=earlier if ours else [])
        held += text
        earlier.extend([text] if ours else [])
        return [term.term for term in listed(in_force(held))]

    assert add("- **a**: one") == ["b", "a"]
    assert add("- **a**: one", "- **c**: three") == ["b", "a", "c"]
    assert add("- **d**: four") == ["b", "d"]
    assert add("- **a**: one", ours=False) == ["b", "d", "a"]  # by another stage
    assert add("- **e**: five") == ["b", "a", "e"]


def test_lines_that_hold_no_more_are_looked_for_where_they_were_before_anywhere_else(monkeypatch):
    lines = [line for n in range(50) for line in (f"## Chapter {n}", "", f"- **a{n}**: one", "")]
    for n in range(50):
        lines += [f"## Chapter {n}", "", note(lines, range(4 * n, 4 * n + 3)), "", f"- **a{n}**: two", ""]
    looked: list[range] = []
    digest = replaced_lines._digest
    monkeypatch.setattr(
        replaced_lines, "_digest", lambda lines, place: looked.append(place) or digest(lines, place)
    )
    assert replaced_lines.replaced(lines) == looked == [range(4 * n, 4 * n + 3) for n in range(50)]


def test_what_others_say_under_the_same_heading_stays_and_so_does_what_a_person_amended():
    mine, _ = appended(FIRST, under="Terms")
    others, _ = appended("## New terms\n\n- **entry**: two postings\n", mine, item="03", under="Terms")
    text, _ = appended(AGAIN, mine + others, under="Terms", earlier=[mine])
    terms = listed(in_force(mine + others + text))
    assert [(one.term, one.under) for one in terms] == [("entry", ("Terms",)), ("posting", ("Terms",))]
    amended = (mine + others).replace("what holds them", "a book, says the editor")
    text, _ = appended(AGAIN, amended, under="Terms", earlier=[mine])
    terms = [one.meaning for one in listed(in_force(f"# Terms\n\n{amended}{text}"))]  # lines moved
    assert terms == ["a book, says the editor", "two postings", "one side of an entry (not: record)"]


# --- as memory


def proved(*facts):
    learned = tuple(NewKnowledge(topic, text) for topic, text in facts)
    return StageProved(pipeline="book", stage="memory", item="02", learned=learned)


def test_what_a_stage_learned_is_found_by_search_and_a_rebuild_gives_the_same(tmp_path):
    with Workspace.create(tmp_path / "ws") as ws:
        fact = "posting: one side of an entry (not: record)"
        ws.engine.write_path.record(
            [Draft(data=proved(("terms", fact), ("terms", "ledger: holds them")), actor="engine:pipeline")]
        )
        hit = ws.search("which side of an entry is a posting", kind="memory")[0]
        assert hit.text == fact
        items = [item for item in ws.state.items.values() if item.kind == "knowledge"]
        assert [(item.domain, item.trust, item.status) for item in items] == [
            ("terms", "agent", "active")
        ] * 2
        assert {item.evidence[0].seq for item in items} == {items[0].created_seq - 1}
        digest = ws.state.digest
        ws.rebuild()
        assert ws.state.digest == digest


def test_a_fact_that_another_came_in_place_of_is_superseded_and_one_that_is_gone_is_retired(tmp_path):
    with Workspace.create(tmp_path / "ws") as ws:
        first = proved(
            ("terms", "posting: a record"), ("terms", "ledger: holds them"), ("chapters", "It begins.")
        )
        ws.engine.write_path.record([Draft(data=first, actor="engine:pipeline")])
        posting, ledger, summary = [item for item in ws.state.items.values() if item.kind == "knowledge"]
        before = {one.id: NewKnowledge(one.domain, one.text) for one in (posting, ledger, summary)}
        now = [NewKnowledge("terms", "Posting: one side"), NewKnowledge("chapters", "It ends.")]
        again = msgspec.structs.replace(
            proved(), learned=tuple(now), superseded=tuple(superseded(before, now, now))
        )
        ws.engine.write_path.record([Draft(data=again, actor="engine:pipeline")])
        items = ws.state.items
        (new,) = [one for one in items.values() if one.text == "Posting: one side"]
        assert items[posting.id].status == items[summary.id].status == "retired"
        assert ending(items[posting.id]) == ending(items[summary.id]) == "superseded"
        assert items[posting.id].links == (Link("superseded_by", new.id),)
        assert new.links == (Link("supersedes", posting.id),)
        assert (items[ledger.id].status, items[ledger.id].links) == ("retired", ())
        assert "memory[02] was done again" in items[ledger.id].reason
        assert all(hit.text != "ledger: holds them" for hit in ws.search("ledger: holds them", kind="memory"))
        digest = ws.state.digest
        ws.rebuild()
        assert ws.state.digest == digest


def test_a_fact_is_not_compared_with_those_before_it_so_the_thousandth_costs_what_the_first_did():
    event = Event(
        seq=7,
        at="2026-01-01T00:00:00.000000Z",
        actor="engine:pipeline",
        type="StageProved",
        v=1,
        data=proved(("t", "a"), ("t", "b")),
    )
    made = Learned().conclude(event, State(), None)
    assert [type(change) for change in made] == [Add, Add]
    assert [change.item.id for change in made] == ["k-7", "k-7.2"]


def test_a_number_at_the_begin_of_a_wrapped_line_begins_no_entry():
    wrapped = ["- it brings together chapters 02, 03 and", "04. It is short.", "- second"]
    assert [one.text for one in entries(wrapped)] == [
        "it brings together chapters 02, 03 and 04. It is short.",
        "second",
    ]
    assert [one.text for one in entries(["1. first", "2. second"])] == ["first", "second"]
