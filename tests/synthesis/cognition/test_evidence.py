"""What was told that answers a question: the nearest messages, and of those that are alike the latest."""

import numpy as np
import pytest

from agentx.synthesis.cognition import evidence
from agentx.synthesis.cognition.evidence import Question, Sentence, answering

RENT = Question("What is the rent of flat 3?")


def told(*texts):
    return [Sentence(text=text, memory=f"k-{place}", order=place) for place, text in enumerate(texts)]


def no_vectors(_texts):
    return {}


def by_words(texts):
    """Vectors of unit length whose cosine is the share of common words."""
    found = {}
    for text in texts:
        vector = np.zeros(512, dtype=np.float32)
        for word in text.casefold().replace("?", "").replace(".", "").split():
            vector[hash_of(word)] += 1
        found[text] = vector / np.linalg.norm(vector)
    return found


def hash_of(word):
    return sum((place + 1) * ord(letter) for place, letter in enumerate(word)) % 512


def texts(found):
    return [one.text for one in found]


@pytest.mark.parametrize("embed", [no_vectors, by_words])
def test_of_messages_that_are_alike_the_latest_is_taken(embed):
    found = answering(
        RENT, told("The rent of flat 3 is 900.", "It rains in Graz.", "The rent of flat 3 is 950."), embed
    )
    assert texts(found) == ["The rent of flat 3 is 950."]


def test_where_the_past_is_asked_for_the_earlier_ones_are_kept():
    both = ("The rent of flat 3 is 900.", "The rent of flat 3 is 950.")
    assert texts(answering(RENT, told(*both), by_words, past=True)) == list(both)


def test_what_is_known_to_be_untrue_is_left_out():
    found = answering(
        RENT,
        told("The rent of flat 3 is 950.", "The rent of flat 3 was 2."),
        by_words,
        true=lambda name: {"k-0"},
    )
    assert texts(found) == ["The rent of flat 3 is 950."]


def test_a_name_or_number_that_was_never_told_is_declined():
    assert (
        answering(Question("What is the rent of flat 7?"), told("The rent of flat 3 is 900."), by_words) == []
    )


def test_a_later_message_on_somebody_else_replaces_nothing():
    dennis = "Dennis pays rent of 880 a month."
    found = answering(
        Question("What does Dennis pay?"), told(dennis, "Hannah pays rent of 900 a month."), by_words
    )
    assert dennis in texts(found)


def test_nothing_told_is_nothing_answered():
    assert answering(RENT, [], by_words) == []


def test_what_is_far_from_the_question_is_left_out_beside_a_good_answer():
    found = answering(RENT, told("The rent of flat 3 is 900.", "Paul sings."), by_words)
    assert texts(found) == ["The rent of flat 3 is 900."]


def test_an_answer_is_sure_where_it_is_near_and_has_a_value_of_the_type_asked_for():
    [sure] = answering(RENT, told("The rent of flat 3 is 900."), by_words)
    [unsure] = answering(
        Question("How old is the cellar of flat 3?"), told("The cellar of flat 3 is dry."), by_words
    )
    assert (sure.sure, unsure.sure) == (True, False)


def test_a_long_message_is_told_around_its_best_sentence():
    many = [
        Sentence(text=f"Sentence number {n} is about the garden.", memory="k-1", order=1) for n in range(40)
    ]
    many[20] = Sentence(text="The rent of flat 3 is 900.", memory="k-1", order=1)
    [found] = answering(RENT, many, by_words)
    assert "The rent of flat 3 is 900." in found.text
    assert len(found.text) <= evidence.MOST_TEXT
