"""What proves a file finished: the marker in its last line, its verdict, and checks that tell a writer what to mend."""

import pytest

from agentx.synthesis.pipelines.definition.checks import (
    CheckInvalid,
    body_of,
    count_words,
    has_marker,
    look,
    marker_fault,
    marker_line,
    pattern_fault,
    verdict_of,
)
from agentx.synthesis.pipelines.definition.pipeline import Check

MARK = "<!-- DRAFT_COMPLETE -->"
FENCE = "```"


def found(text, values=None, **check):
    """What a check finds in a text."""
    return look(Check.model_validate(check), text, values or {})


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
        (f"{MARK}\nText\n", "line 1, but more text follows up to line 2"),
        (f"{FENCE}\n{MARK}\n{FENCE}\n", "line 2, but more text follows up to line 3"),
        (f"{FENCE}\ncut off\n{MARK}\n", "a code block that is never closed"),
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
        "Line 17: no text follows the heading 'Execution flow': write it.",
        "Line 19: no text follows the heading 'Design decisions': write it.",
        "Section 'Hidden' is missing: write `## Hidden`, and its text below.",
    ]


def test_words_that_may_not_stand_in_a_text_are_found_in_their_forms_and_not_in_code():
    text = "We whitelisted it.\n\nIt is obvious; a `dummy` is dummies' friend.\nThe DUMMY\n"
    assert found(text, absent=["whitelist", "obviously", "dummy"]) == [
        "Line 1: 'whitelist' must not be used: use other words.",
        "Lines 3 and 4: 'dummy' must not be used: use other words.",
    ]
    assert found("Wait — what?!", absent="?!") == ["Line 1: '?!' must not be used: remove it."]


def test_a_pattern_is_looked_for_at_every_line_and_none_can_take_for_ever():
    assert not found("a\n## Decision\n", matches="^## D")
    assert "`^## X`" in found("a\n## Decision\n", matches="^## X")[0]
    assert found("a" * 50_000 + "!", matches="(a+)+$")
    assert "look-ahead" in pattern_fault("(?=a)")
    with pytest.raises(CheckInvalid, match="not a valid regular expression"):
        found("a", matches="[")


# --- exact terms


@pytest.mark.parametrize("uses", ["{{ own }}", ["{{ own }}"], ["posting", "data store"]])
def test_required_terms_are_found_in_the_singular_and_plural_and_in_code(uses):
    values = {"own": "posting, data store"}
    assert not found("Postings lie in\ndata stores.", values, uses=uses)
    assert not found("A posting lies in a `data store`.", values, uses=uses)
    (told,) = found("It is posted in a data store.", values, uses=uses)
    assert told == "The term 'posting' does not occur in it: use it."
    assert len(found(f"{FENCE}\nposting, data store\n{FENCE}", values, uses=uses)) == 2


def test_an_empty_list_of_terms_asks_for_nothing():
    assert not found("Nothing.", {"own": ""}, uses="{{ own }}")
    assert not found("Nothing.", {"own": ""}, absent="{{ own }}")
