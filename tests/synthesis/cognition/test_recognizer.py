"""The Recognizer without a model: what kind of message it is, what is kept of it, and which topic it belongs to."""

import pytest

from agentx.synthesis.cognition.recognizer import input_type, recognize, topic_of


def kept(text, *, answered=True):
    read = recognize(text, answered=answered, rule=False, buffer={}, topics={})
    return read.input_type, [one.text for one in read.memories]


@pytest.mark.parametrize(
    "text",
    [
        "Great news: the bakery gave me the job.",
        "No dogs are allowed in the new flat.",
        "Right now I live above a bakery.",
        "Nice weather in Porto all week.",
    ],
)
def test_a_message_that_begins_with_a_word_of_praise_or_blame_is_no_verdict(text):
    assert kept(text) == ("statement", [text])


@pytest.mark.parametrize(
    ("text", "reward"),
    [
        ("Great, thank you.", 1.0),
        ("Thanks a lot!", 1.0),
        ("Good answer.", 1.0),
        ("No, that's wrong.", -1.0),
        ("No that isn't it", -1.0),
        ("You forgot the milk.", -1.0),
    ],
)
def test_a_verdict_is_feedback_and_nothing_of_it_is_kept(text, reward):
    read = recognize(text, answered=True, rule=False, buffer={}, topics={})
    assert (read.input_type, read.reward, read.memories) == ("feedback", reward, ())


def test_what_a_verdict_sets_right_is_kept():
    said = "No, that's wrong. The signing is on the 19th of May."
    assert kept(said) == ("feedback", ["The signing is on the 19th of May."])
    read = recognize(said, answered=True, rule=False, buffer={}, topics={})
    assert "wrong" not in read.topic_summary


def test_there_is_nothing_to_judge_before_the_first_answer():
    assert input_type("Perfect.", answered=False) == "statement"


def test_a_name_says_which_topic_a_message_belongs_to():
    topics = {"o-1": "rent, flat, month", "o-2": "bruno, shelter, whippet"}
    action, topic, words = topic_of("Since Monday Bruno limps a little on his left hind leg.", topics)
    assert (action, topic) == ("update", "o-2")
    assert words.startswith("bruno, shelter, whippet, ")


def test_a_new_topic_begins_with_its_names():
    assert topic_of("My neighbour keeps canaries that sing for Ines.", {}) == (
        "create",
        "",
        "ines, neighbour, canaries, keeps, sing",
    )
