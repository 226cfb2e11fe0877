"""What the user says besides demands is noted where it is clearly said, and nowhere else."""

import pytest

from agentx.synthesis.scribe.statements import last_proposal, statements


def sorts(text, before=""):
    return [one.sort for one in statements(text, before)]


@pytest.mark.parametrize(
    ("text", "sort"),
    [
        ("ok, let's go with the second layout", "decision"),
        ("let's drop the legacy parser completely", "decision"),
        ("hmm, I'd go with option 2 then", "decision"),
        ("I think B) is the better one.", "decision"),
        ("we've decided to ship without the wizard", "decision"),
        ("2 is the right approach", "decision"),
        ("it turns out the cache is never written", "discovery"),
        ("the root cause is a stale lock file", "discovery"),
        ("I noticed that the export drops empty rows", "discovery"),
        ("Lesson learned: migrate the staging database first.", "learning"),
        ("no, that's not correct, the importer skips hidden files", "learning"),
        ("we're in a hurry today", "context"),
        ("the demo is on Friday", "context"),
        ("my top priority now is the billing page", "context"),
        ("I'm really tired, so keep it brief", "context"),
        ("can you please add a retry to the uploader?", "task"),
        ("Fix the flaky login test", "task"),
    ],
)
def test_a_statement_is_known_by_how_it_is_said(text, sort):
    assert sorts(text) == [sort]


@pytest.mark.parametrize(
    "text",
    [
        "let's see what the tests say",
        "let's talk about the layout first",
        "should we go with option 2?",
        "is the root cause a stale lock?",
        "what does the exporter do with empty rows?",
        "I found time for a walk",
        "thanks, that is all",
        "No, that's wrong.",
        "```\nlet's go with the second layout\n```",
        "> the root cause is a stale lock file",
        'The mail says "we have decided to ship".',
    ],
)
def test_looking_asking_and_quoting_decide_nothing(text):
    assert sorts(text) == []


def test_a_yes_decides_what_the_agent_proposed():
    (one,) = statements("yes, please do", "Both work. Should I move the cache to disk?")
    assert one.text == "yes, please do (to: “Should I move the cache to disk?”)"
    assert sorts("yes, please do", "I moved it. All tests pass.") == []
    assert sorts("yes, please do") == []


def test_the_last_of_an_answer_is_what_was_proposed():
    assert last_proposal("Should I? I moved it. I looked. It is done. Nothing is left.") == ""


def test_of_one_message_a_few_things_are_noted():
    many = " ".join(f"Let's use the layout number {number} of them." for number in range(9))
    assert len(statements(many)) == 3


def test_the_words_stand_where_the_span_says():
    text = "Well. So, let's use the *second* layout; fine?"
    for one in statements(text):
        assert text[one.span.start : one.span.end].lower().startswith(one.text[:8].lower())
