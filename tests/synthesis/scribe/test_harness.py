"""A harness's own sentences are told from the words that a person typed."""

import pytest

from agentx.synthesis.scribe.harness import answers, approved, refused, title_of

WHOLE = "keep the old names, they are in the docs"

REFUSED = [
    (
        "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, nothing"
        " was written). To tell you how to proceed, the user said:\n{}"
    ),
    "The user denied this operation and provided the following feedback:\n<feedback>\n{}\n</feedback>",
    "User rejected the action. Reason: {}",
    "This command was rejected by the user with the comment: {}",
    "The person refused this call. {}",
    (
        "The user doesn't want to take this action right now. The user provided the following reason for the rejection: {}"
        "\n\nNote: The user's next message may contain a correction."
    ),
]


@pytest.mark.parametrize("text", REFUSED)
def test_the_reason_is_what_the_person_said_and_nothing_of_the_harness(text):
    told = refused(text.format(WHOLE))
    assert told.by_person
    assert text.format(WHOLE)[told.reason.start : told.reason.end] == WHOLE


@pytest.mark.parametrize(
    "text",
    [
        (
            "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. x). STOP what you are doing"
            " and wait for the user to tell you how to proceed."
        ),
        "The user rejected this action.",
        "Exit code 137\n[Request interrupted by user for tool use]\nok  pkg/cache 0.4s",
        "",
    ],
)
def test_where_nothing_was_said_there_is_no_reason(text):
    assert refused(text).reason is None


def test_a_reason_alone_is_kept_whole_and_does_not_say_who_spoke():
    told = refused(f"  {WHOLE}\n")
    assert (told.reason.start, told.by_person) == (2, False)


@pytest.mark.parametrize(
    "text",
    [
        "PreToolUse hook denied this call: never touch vendored files",
        "Permission to use Bash with command rm -rf / has been denied.",
        "Blocked by the sandbox policy.",
    ],
)
def test_what_a_machine_s_own_rule_denied_no_person_refused(text):
    assert refused(text) is None


def test_pairs_of_questions_and_answers_are_read_with_quotes_inside():
    text = (
        'User has answered your questions: "Which "slot" first?"="The second, \nthen the first", "Add a lock?"="Yes (Recommended)"'
        ". You can now continue with the user's answers in mind."
    )
    assert [(one.question, one.answer) for one in answers(text)] == [
        ('Which "slot" first?', "The second, then the first"),
        ("Add a lock?", "Yes"),
    ]


def test_an_answer_alone_belongs_to_the_question_of_the_call():
    (one,) = answers("<answer>\nthe blue one\n</answer>", "Which one?")
    assert (one.question, one.answer, one.asks_back) == ("Which one?", "the blue one", False)
    assert list(answers("the blue one")) == []


def test_an_answer_that_begins_with_a_question_asks_back():
    (one,) = answers("hm...what becomes of the old rows? (they are many)", "Drop the table?")
    assert one.asks_back


def test_a_plan_is_called_by_its_heading():
    assert title_of("\n## Plan: Move the queue\n# Later") == "Move the queue"
    assert title_of("") == ""
    assert approved("User has approved your plan.")
    assert not approved("The plan file was written.")
