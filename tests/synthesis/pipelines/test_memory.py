"""Long-term memory grows behind its end, by what is new, each item under its own heading; and its facts are found by search."""

import pytest

from agentx import Workspace
from agentx.storage.direction_events import NewKnowledge
from agentx.storage.events import Draft, Event
from agentx.storage.pipeline_events import StageProved
from agentx.synthesis.chunking.headings import fenced, markdown_headings
from agentx.synthesis.conclusions import Add
from agentx.synthesis.pipelines.checks import look
from agentx.synthesis.pipelines.definition import Append, Check
from agentx.synthesis.pipelines.markdown import entries
from agentx.synthesis.pipelines.memory import MAX_FACT, Learned, appending
from agentx.synthesis.pipelines.plan import AppendFile

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


def appended(written, before="", *, item="02", **rule):
    """What comes behind ``before``; nothing is rewritten."""
    rule = {"section": "New terms", "under": "Chapter {{ chapter.id }}", "topic": "terms"} | rule
    pointer = AppendFile(Append.model_validate({"to": "g", "from": "n", **rule}), "meta/g.md", "notes.md")
    made = appending(pointer, before, written, {"chapter": {"id": item}})
    if made is None:
        return "", []
    assert made.path == "meta/g.md"
    assert made.text.endswith("\n")
    return made.text, [fact.text for fact in made.learned]


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
    second, _ = appended("## New terms\n\n- **ledger**: two (not: book)\n", first, item="03")
    whole = first + second
    assert [title for level, title in headings(whole) if level <= 2] == ["Chapter 02", "Chapter 03"]
    assert not [*fenced([*whole.split("\n"), ""])][-1]
    assert "<!--" not in whole
    assert "<pre" not in whole
    assert look(Check(terms="g"), "Open the book.\n", {}, lambda _: whole, "05")


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


def test_a_fact_is_not_compared_with_those_before_it_so_the_thousandth_costs_what_the_first_did():
    event = Event(
        seq=7,
        at="2026-01-01T00:00:00.000000Z",
        actor="engine:pipeline",
        type="StageProved",
        v=1,
        data=proved(("t", "a"), ("t", "b")),
    )
    made = Learned().conclude(event, None, None)
    assert [type(change) for change in made] == [Add, Add]
    assert [change.item.id for change in made] == ["k-7", "k-7.2"]


def test_a_number_at_the_begin_of_a_wrapped_line_begins_no_entry():
    wrapped = ["- it brings together chapters 02, 03 and", "04. It is short.", "- second"]
    assert [one.text for one in entries(wrapped)] == [
        "it brings together chapters 02, 03 and 04. It is short.",
        "second",
    ]
    assert [one.text for one in entries(["1. first", "2. second"])] == ["first", "second"]
