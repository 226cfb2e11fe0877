"""What proves a file finished: the marker in its last line, its verdict, and checks that tell a writer what to mend."""

import pytest

from agentx.synthesis.pipelines.definition.checks import (
    CheckInvalid,
    body_of,
    count_words,
    doubts,
    has_marker,
    look,
    marker_fault,
    marker_line,
    pattern_fault,
    verdict_of,
)
from agentx.synthesis.pipelines.definition.pipeline import Check
from agentx.synthesis.pipelines.proving.glossary import read_glossary

MARK = "<!-- DRAFT_COMPLETE -->"
FENCE = "```"

GLOSSARY = """\
# Glossary

## Chapter 02

- **posting**: one side of an entry (not: record, line item)
- **data store** — where files lie. Not: repository.

## Chapter 12

* **ledger**: what holds the postings (not: book)
* **balance**: what the amounts of an account come to (not: state, total)
* **stage**: what a recipe has several of (not: step, point)
"""

REGISTRY = """\
## Chapter 02

- conveyor belt: how events move (chapter 02)
- **river**: the flow of postings
- a librarian who files cards in drawers: the index
"""


def found(text, values=None, *, item="05", glossary=GLOSSARY, **check):
    """What a check finds in a text."""
    files = {"glossary": glossary, "metaphors": REGISTRY}
    return look(Check.model_validate(check), text, values or {}, lambda name: files.get(name, ""), item)


def doubtful(text):
    """What a check of terms leaves to be looked at."""
    return doubts(Check(terms="glossary"), text, lambda name: GLOSSARY)


# --- markers and verdicts


@pytest.mark.parametrize(
    "text",
    [
        f"Text\n{MARK}",
        f"Text\r\n{MARK}\r\n",
        f"\ufeff{MARK}\n \n\t\n",
        f"{FENCE}\n{MARK}\n{FENCE}\n{MARK}\n",
        "Text\n  <!--DRAFT_COMPLETE-->  ",
    ],
)
def test_a_file_is_finished_when_its_last_line_is_its_marker(text):
    assert has_marker(text, "DRAFT_COMPLETE", "drafts/ch01.md")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "write the rest"),
        ("Text", "write the rest"),
        (f"Text {MARK}", "write the rest"),
        ("<!-- DRAFT_COMPLETED -->", "write the rest"),
        (f"{MARK}\nText\n", "line 1, and more follows up to line 2"),
        (f"{FENCE}\n{MARK}\n{FENCE}\n", "line 2, and more follows up to line 3"),
        (f"{FENCE}\ncut off\n{MARK}\n", "a block of code that is never closed"),
    ],
)
def test_without_its_marker_as_the_last_line_a_file_is_unfinished_and_its_writer_is_told_why(text, said):
    assert not has_marker(text, "DRAFT_COMPLETE", "ch01.md")
    assert said in marker_fault(text, "DRAFT_COMPLETE", "ch01.md")


def test_where_no_marker_is_asked_for_nothing_is_said_of_one():
    assert marker_fault("It sells shirts.\n", "", "note.md") == ""


def test_a_marker_is_a_comment_of_its_file_and_no_part_of_what_it_says():
    assert marker_line("CODE_DONE", "app/main.py") == "# CODE_DONE"
    assert marker_line("STYLE_DONE", "publish/style.css") == "/* STYLE_DONE */"
    assert has_marker("anything", "", "a.md")
    assert (
        body_of(f"\ufeff\r\n\n    code\r\nend \r\n\n{MARK}\n\n", "DRAFT_COMPLETE", "a.md") == "    code\nend"
    )
    assert body_of(f"Text\n{MARK}", "", "a.md") == f"Text\n{MARK}"
    assert body_of(MARK, "DRAFT_COMPLETE", "a.md") == ""


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Verdict: PASS", "PASS"),
        ("# Review\r\n\r\n## **Verdict:** pass\r\n", "PASS"),
        ("1. **Verdict: FAIL** - two terms are off", "FAIL"),
        ("- `Verdict: FAILED`.", "FAIL"),
        ("| Verdict | PASS |", "PASS"),
        ("Verdict: PASS ✅\n\nVerdict: PASS", "PASS"),
        ("Verdict: PASS\n\nVerdict: FAIL", ""),
        ("Verdict: PASS if line 3 is mended", ""),
        ("Verdict: PASS / FAIL", ""),
        ("Verdict: FAIL or PASS", ""),
        ("Verdict: PASSABLE", ""),
        ("The line is Verdict: PASS", ""),
        ("> Verdict: PASS", ""),
        (f"{FENCE}\nVerdict: PASS\n{FENCE}", ""),
        (f"{FENCE}\nVerdict: PASS\n{FENCE}\nVerdict: FAIL", "FAIL"),
        ("<!--\nVerdict: PASS\n-->", ""),
        ("", ""),
    ],
)
def test_a_verdict_is_a_line_of_its_own_without_conditions_and_not_a_quoted_one(text, verdict):
    assert verdict_of(text) == verdict


# --- length, sections, words, patterns


def test_words_are_those_that_are_read_and_a_character_is_one_where_no_spaces_are_written():
    assert count_words("It's a well-known fact: 3.14 is `pi`.") == 7
    assert count_words("Straße, naïve, e\u0301tude") == 3
    assert count_words("读文件。ファイル") == 7
    assert (
        count_words(
            f"one\n{FENCE}\nnot read\n{FENCE}\n<!-- nor\nthis -->\n[two](http://a.b/c d) <b>three</b>"
        )
        == 3
    )


def test_a_text_too_long_or_short_is_told_by_how_much():
    length = {"words": "{{ words }}", "within": 0.2}
    assert not found("word " * 8, {"words": "10"}, length=length)
    assert not found("word " * 12, {"words": "10"}, length=length)
    assert found("word " * 13, {"words": "10"}, length=length) == [
        "It has 13 words, and 8 to 12 are asked for (blocks of code are not counted): cut at least 1."
    ]
    assert "add at least 8." in found("", {"words": "10"}, length=length)[0]
    with pytest.raises(CheckInvalid, match="must be a number greater than 0"):
        found("", {"words": "many"}, length=length)


def test_a_section_has_a_heading_of_any_level_and_number_and_text_below_it():
    text = (
        "# 1. Module overview (what it is for)\n\nIt sums.\n\nCore **data** structures\n----\n\n### A table\n\n| a |\n|---|\n"
        f"{FENCE}\n## Hidden\n\ntext\n{FENCE}\n## Execution flow\n\n## Design decisions\n\nTODO\n"
    )
    named = ["Module Overview", "Core data structure", "Execution flow", "Design decisions", "Hidden"]
    assert found(text, sections=named) == [
        "Line 17: there is no text below the heading 'Execution flow': write it.",
        "Line 19: there is no text below the heading 'Design decisions': write it.",
        "There is no section 'Hidden': write `## Hidden`, and its text below.",
    ]


def test_words_that_may_not_stand_in_a_text_are_found_in_their_forms_and_not_in_code():
    text = "We whitelisted it.\n\nIt is obvious; a `dummy` is dummies' friend.\nThe DUMMY\n"
    assert found(text, absent=["whitelist", "obviously", "dummy"]) == [
        "Line 1: 'whitelist' may not stand here: say it in other words.",
        "Lines 3 and 4: 'dummy' may not stand here: say it in other words.",
    ]
    assert found("Wait — what?!", absent="?!") == ["Line 1: '?!' may not stand here: take it out."]


def test_a_pattern_is_looked_for_at_every_line_and_none_can_take_for_ever():
    assert not found("a\n## Decision\n", matches="^## D")
    assert "`^## X`" in found("a\n## Decision\n", matches="^## X")[0]
    assert found("a" * 50_000 + "!", matches="(a+)+$")
    assert "look-ahead" in pattern_fault("(?=a)")
    with pytest.raises(CheckInvalid, match="not a valid regular expression"):
        found("a", matches="[")


# --- terms and metaphors


@pytest.mark.parametrize(
    "sentence",
    [
        "A report lists each record of a month.",
        "Records are sorted by date.",
        "The ledger records are sorted.",
        "The parser hands the first record of an entry on.",
        "## Records in a report",
        "It sums the line-items, then\nprints them.",
        "Each **line\nitem** has a date.",
        "They lie in a repository.",
        "Open the book of postings at its last page.",
        "The state of an account is its last amount; print that state.",
    ],
)
def test_a_word_that_the_glossary_avoids_is_found_where_it_stands_for_the_concept(sentence):
    (told,) = found(f"# Reports\n\n{sentence}\n", terms="glossary")
    assert told.startswith("Line 3: ")
    assert "(glossary, line " in told
    assert "write '" in told


@pytest.mark.parametrize(
    "sentence",
    [
        "We record each payment, and it records the sum.",
        "The ledger records every posting; the ledger records postings at night.",
        "Recording a payment is quick; payments are recorded.",
        "A posting is not a record.",
        "What others call a record is a posting here.",
        'The word "record" is not used.',
        "Call `record()`, or ledger.record(), or see record.py and record_id.",
        f"{FENCE}\nfor record in records:\n{FENCE}",
        "- **posting**: one side of an entry (not: record, line item)",
        "This is a record-breaking month, and this book is about it.",
        "See [the page](https://example.org/record-store).",
    ],
)
def test_the_same_word_as_a_verb_in_code_or_spoken_of_is_no_fault(sentence):
    assert found(sentence, terms="glossary", item="02") == []


@pytest.mark.parametrize(
    "sentence",
    [
        "The next step is to read on.",
        "At this point, take a step back.",
        "It is a matter of record, in total as in part; for the record, it is off the record.",
        "The point is that the account is late.",
        "The United States has no such law.",
    ],
)
def test_a_word_in_a_fixed_phrase_or_a_name_has_another_sense(sentence):
    assert found(sentence, terms="glossary") == doubtful(sentence) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "She broke the record for the mile.",
        "The book on her desk was heavy.",
        "The program was in a poor state.",
    ],
)
def test_a_word_that_may_have_another_sense_is_a_doubt_and_no_fault(sentence):
    assert found(sentence, terms="glossary") == []
    (told,) = doubtful(sentence)
    assert told.startswith("Line 1: if '")


def test_a_word_has_one_sense_in_a_text():
    alone, told = "Print the record.", "A posting has a side, and the record has two.\n\nPrint the record."
    assert (len(found(alone, terms="glossary")), len(doubtful(alone))) == (0, 1)
    assert [one[:14] for one in found(told, terms="glossary")] == ["Lines 1 and 3:"]
    assert doubtful(told) == []


def test_a_word_that_is_said_again_and_again_names_a_thing():
    told = "An account has a state.\n\n" + "Print the point. " * 4
    assert [one[:6] for one in found(f"Of a recipe.\n\n{told}", terms="glossary")] == ["Line 5"]
    assert found(told, terms="glossary") == []


TABLE = """\
## Words

| NOT to be said | What it means \\| says | Term |
|:--|---|--:|
| record; line item | one side of an `entry` | **posting** |
| – | what holds postings (not: tome) | ledger |

Say | Avoid
--- | ---
voucher | coupon, code

| File | Size |
|---|---|
| records | 12 |

```
| Term | Not |
|---|---|
| hidden | anything |
```
"""

DEFINITIONS = """\
Some words first.

posting
: one side of an entry
: Not: record, line item

ledger

:   what holds the postings,
    all of them
    (not: tome)

voucher
~ what lowers a price (avoid: coupon, code)
"""


@pytest.mark.parametrize("glossary", [TABLE, TABLE.replace("\n", "\r\n"), DEFINITIONS])
def test_a_glossary_may_be_a_table_or_a_list_of_definitions(glossary):
    terms = read_glossary(glossary)
    assert {one.term: [word for word, _ in one.avoided] for one in terms} == {
        "posting": ["record", "line item"],
        "ledger": ["tome"],
        "voucher": ["coupon", "code"],
    }
    assert all(one.term in glossary.splitlines()[one.line - 1] for one in terms)
    (told,) = found("Line items have a date.", glossary=glossary, terms="glossary")
    assert f"(glossary, line {terms[0].line}) calls 'posting'" in told


def test_a_glossary_of_whatever_shape_is_read_in_time_that_grows_with_its_length():
    wide = " " * 100_000
    for line in (
        f"-{wide}x",
        f"|{'-|' * 50_000}x",
        f"- **a**: b{wide}c (not:{wide}d)",
        f": {wide}",
        f"a\n:{wide}b",
    ):
        assert len(read_glossary(f"| Term | Not |\n{line}\n|{line}|\n")) <= 2


def test_a_term_of_another_item_is_not_defined_anew():
    text = "- **Posting**: a line of text\n\nA **posting** is bold here.\n\n**ledger** is a list\n"
    told = found(text, terms="glossary")
    assert [one[:7] for one in told] == ["Line 1:", "Line 5:"]
    assert "(glossary, line 5) defines it already" in told[0]
    assert len(found(text, terms="glossary", item="02")) == 1
    assert not found("- **posting**: one side of an entry (not: record, line item)", terms="glossary")


def test_an_entry_is_of_the_item_that_its_heading_names_by_key_number_or_title():
    text, values = "- **posting**: anew", {"chapter": {"id": "b", "title": "The ledger"}}
    for heading, item in [("Chapter 2", "02"), ("02 · 12 ways", "02"), ("The ledger", "b"), ("Part b", "b")]:
        glossary = f"## {heading}\n\n### Terms\n\n- **posting**: one side\n"
        assert not found(text, values, glossary=glossary, terms="glossary", item=item), heading
        assert found(text, values, glossary=glossary, terms="glossary", item="07"), heading


def test_terms_that_are_asked_for_stand_in_the_text_and_in_the_glossary_or_are_introduced():
    uses = {"terms": "glossary", "uses": "{{ own }}"}
    assert not found("Postings lie in data stores.", {"own": "posting, data store"}, **uses)
    assert not found("Nothing.", {"own": ""}, **uses)
    (told,) = found("It is posted.", {"own": "posting"}, **uses)
    assert "'posting' stands nowhere" in told
    (told,) = found("An accrual is late.", {"own": "accrual"}, **uses)
    assert "'accrual' stands in no entry" in told
    assert not found("An **accrual** is late.", {"own": "accrual"}, **uses)
    assert not found("An **accrual** is late.", {"own": "accrual"}, glossary="", **uses)


@pytest.mark.parametrize(
    "sentence",
    [
        "Events travel on conveyor belts.",
        "Think of a conveyor-\nbelt in a bakery.",
        "Postings flow like a river.",
        "The river of postings never ends.",
        "Like a librarian filing cards into a drawer, it sorts.",
    ],
)
def test_a_metaphor_of_another_item_may_not_come_twice(sentence):
    (told,) = found(f"\n{sentence}\n", unused="metaphors", item="04")
    assert told.startswith("Line 2: ")
    assert "a metaphor of 'Chapter 02' (metaphors, line " in told
    assert not found(sentence, unused="metaphors", item="02")


@pytest.mark.parametrize(
    "sentence",
    [
        "The conveyor stops. Belts are not used.",
        "The belt is fastened before the conveyor starts.",
        "`conveyor belt`",
        "Rivers have a class of their own.",
        "A card is filed by a clerk; the drawer holds cards.",
    ],
)
def test_the_words_of_a_metaphor_in_another_order_or_sense_are_none(sentence):
    assert found(sentence, unused="metaphors", item="04") == []
