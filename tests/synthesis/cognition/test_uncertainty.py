"""Whether a buffer is enough: only if its words and its meaning are both far from the question is more looked for."""

import numpy as np

from agentx.synthesis.cognition.uncertainty import (
    MEANING_THRESHOLD,
    WORDS_THRESHOLD,
    BufferUncertainty,
    assess,
    missing,
)

ASKED = "Which instruments are played at home?"
ABOUT = [
    "The violin and other instruments are played at home.",
    "At home we played instruments.",
    "Instruments played at home.",
]
VECTOR = np.array([1, 0], np.float32)


def test_an_empty_buffer_is_wholly_uncertain_and_so_is_one_about_something_else():
    assert assess(ASKED, []) == BufferUncertainty(1.0, 1.0)
    assert assess(ASKED, ["Lunch is at noon."]).words == 1.0
    assert assess("Why?", ["Lunch is at noon."]).words == 1.0, "what names nothing is answered by no words"


def test_several_memories_that_hold_the_words_make_certain_and_one_alone_does_not():
    assert assess(ASKED, ABOUT).words < 0.01
    assert assess(ASKED, [ABOUT[0], "Lunch?", "Dinner?"]).words > 0.5
    assert assess(ASKED, ABOUT[:1]).words > 0.5


def test_meaning_is_the_distance_to_the_nearest_memory_and_unknown_without_vectors():
    near, far = np.array([0.8, 0.6], np.float32), np.array([-1, 0], np.float32)
    assert abs(assess(ASKED, ABOUT, VECTOR, [far, near]).meaning - 0.2) < 1e-6
    assert assess(ASKED, ABOUT, VECTOR, [far]).meaning == 1.0
    assert assess(ASKED, ABOUT, None, [near]).meaning == 1.0


def test_the_measured_boundary_of_each_tier_is_half_the_scale():
    assert BufferUncertainty(WORDS_THRESHOLD, MEANING_THRESHOLD).scaled == (0.5, 0.5)
    assert BufferUncertainty(1.0, 1.0).scaled == (1.0, 1.0)
    assert BufferUncertainty(0.0, 0.0).scaled == (0.0, 0.0)


def test_what_is_missing_is_what_no_memory_has():
    assert missing("Which violin is played at home?", ABOUT) == ()
    assert missing("Which drum is played at home on Mondays?", ABOUT) == ("drum Mondays",)
    assert missing("Which drum?", []) == ("drum",)
