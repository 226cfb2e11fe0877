"""What the user says besides demands is noted where it is clearly said, and nowhere else."""

import pytest

from agentx.synthesis.scribe.statements import statements


def sorts(text, before=""):
    return [one.sort for one in statements(text, before)]


@pytest.mark.parametrize(
    ("text", "sort"),
    [
        ("ok, let's go with the second layout", "decision"),
        ("let's drop the legacy parser completely", "decision"),
        ("hmm, I'd go with option 2 then", "decision"),
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


@pytest.mark.parametrize(
    ("text", "question", "sort", "kept"),
    [
        (
            "yep do that",
            "I'd log rejected rows to stdout as JSON. Shall I?",
            "decision",
            "Log rejected rows to stdout as JSON.",
        ),
        ("go with 1 until then", "a cron job", "decision", "Go with 1 until then (asked: “a cron job”)"),
        (
            "COPY. but per month",
            "COPY or INSERT?",
            "decision",
            "COPY. but per month (asked: “COPY or INSERT?”)",
        ),
        ("1", "a cron job", "decision", "1 (asked: “a cron job”)"),
        ("both", "Should I export CSV or JSON?", "decision", "Both (asked: “Should I export CSV or JSON?”)"),
        (
            "neither",
            "Should I export CSV or JSON?",
            "decision",
            "Neither (asked: “Should I export CSV or JSON?”)",
        ),
        (
            "Thursday",
            "On which day is the fitting?",
            "decision",
            "Thursday (asked: “On which day is the fitting?”)",
        ),
        (
            "about 40, plus kids",
            "How many guests?",
            "knowledge",
            "About 40, plus kids (asked: “How many guests?”)",
        ),
        (
            "nope, 20 is what the DBA gives us",
            "Could we raise the pool to 50?",
            "decision",
            "Nope, 20 is what the DBA gives us (asked: “Could we raise the pool to 50?”)",
        ),
    ],
)
def test_an_answer_is_kept_with_its_question(text, question, sort, kept):
    (one,) = statements(text, question)
    assert (one.sort, one.text, one.sure, one.answers) == (sort, kept, True, True)


def test_the_reason_of_a_refusal_is_part_of_it():
    said = "I'd rather not. Every extra table is one more thing to migrate."
    (one,) = statements(said, "I could add a table for the rejects.")
    assert said in one.text


def test_an_answer_ends_where_a_question_or_an_order_begins():
    said = "Black and white inside, cover in colour. can you show me what that costs?"
    one, *others = statements(said, "How should the booklet be made: colour or black and white?")
    assert one.text.startswith("Black and white inside, cover in colour. (asked:")
    assert [other.sort for other in others] in ([], ["task"])


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("proceed", "Should I go on with the tests?"),
        ("yes", "Would you like me to proceed?"),
        ("yes, please do", ""),
        ("how long would it take?", "Shall I rebuild the index?"),
        ("add a header to the page", "Would you like me to run the tests?"),
        ("thank you!", "Is there anything else?"),
        ("list the allowed folders", "Would you like me to help you with the settings or the folders?"),
        ("the service is missing there", "Would you like me to add a test or to update the docs?"),
    ],
)
def test_going_on_asking_back_and_orders_answer_nothing(text, question):
    assert [one for one in statements(text, question) if one.sort != "task"] == []


@pytest.mark.parametrize(
    ("text", "sort", "sure"),
    [
        ("We'll host in Frankfurt because the data may not leave the EU.", "decision", True),
        ("We're going with Postgres for the archive.", "decision", True),
        ("I've booked the small hall for the 12th.", "decision", True),
        ("Friday it is.", "decision", True),
        ("The budget is 4,000.", "knowledge", True),
        ("prod is on 3.11", "knowledge", True),
        ("the DBA gives us 20 connections", "knowledge", True),
        ("Ines runs the harbour office", "knowledge", False),
        ("Legal says we have to keep raw scans 24 months", "knowledge", False),
        ("Tomorrow morning we go through the list with Palle", "decision", False),
    ],
)
def test_a_plain_decision_or_fact_is_noted_and_a_doubtful_one_is_a_candidate(text, sort, sure):
    (one,) = statements(text)
    assert (one.sort, one.sure) == (sort, sure)


@pytest.mark.parametrize(
    "text",
    [
        "it still fails with the same error",
        "I'm getting 3 errors now",
        "this looks good",
        "the log shows 3 warnings again",
        "you changed the wrong file",
        "run the tests in prod",
        "If the deadline is Friday, tell me",
        "Legal says: keep it for 24 months.\n> delete everything in 3 days",
    ],
)
def test_what_passes_is_not_noted(text):
    assert [one for one in statements(text) if one.sort in ("decision", "knowledge") and one.sure] == []


@pytest.mark.parametrize(
    "text",
    [
        "The README says that the budget is 4,000.",
        "> The budget is 4,000.",
        "<page>We'll host in Frankfurt because it is close.</page>",
        "Bob wrote:\nWe'll host in Frankfurt. The budget is 4,000.",
    ],
)
def test_words_of_others_are_never_certain(text):
    assert not any(one.sure for one in statements(text))


def test_a_sentence_that_points_back_is_kept_with_the_one_before():
    (one,) = statements("Aarhus has the bad wifi. They get new access points in week 49.")
    assert one.text == "Aarhus has the bad wifi. They get new access points in week 49."


def test_of_one_message_a_few_things_are_noted():
    many = " ".join(f"Let's use the layout number {number} of them." for number in range(9))
    assert len(statements(many)) == 3


def test_the_words_stand_where_the_span_says():
    text = "Well. So, let's use the *second* layout; fine?"
    for one in statements(text):
        assert text[one.span.start : one.span.end].lower().startswith(one.text[:8].lower())
