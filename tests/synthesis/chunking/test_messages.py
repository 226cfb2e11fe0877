"""A turn is found by its words, the question that it answers, its speaker and its date."""

from hypothesis import given
from hypothesis import strategies as st

from agentx.synthesis.chunking import chunk_message
from agentx.synthesis.chunking.passages import PREVIOUS_CHARACTERS
from agentx.synthesis.chunking.pieces import MAX_BYTES


def test_the_context_is_the_date_in_words_the_speaker_and_the_question_before():
    (piece,) = chunk_message(
        "Two weeks.",
        "Rome is lovely. How long  were you there? Tell me!",
        "2026-11-20T09:31:05.123456Z",
        "user:Ann",
    )
    assert piece.text == "Two weeks."
    assert piece.context == "Friday, 20 November 2026 Ann How long were you there?"
    assert (piece.start_line, piece.end_line, piece.symbol) == (0, 0, "")


def test_what_is_not_known_is_left_out():
    assert chunk_message("x")[0].context == ""
    assert chunk_message("x", at="yesterday", actor="user")[0].context == "user"


def test_every_question_of_the_turn_before_counts_and_nothing_else_of_it():
    before = "I was in Rome.\nWere you ever there? It rained! And is it far?\nThe bread is good"
    assert chunk_message("Yes.", before)[0].context == "Were you ever there? And is it far?"
    assert chunk_message("Yes.", "The bread is good.")[0].context == ""


def test_of_long_questions_the_end_is_kept():
    context = chunk_message("yes", "Is it " * 5_000 + "far? And what, " + "then " * 60 + "shall I bring?")[
        0
    ].context
    assert context.endswith("shall I bring?")
    assert len(context) <= PREVIOUS_CHARACTERS


def test_a_long_turn_is_split_and_speaks_for_itself():
    pieces = chunk_message("One sentence. " * 1_000, "How was it?", "2026-11-20T09:31:05Z", "agent:writer")
    assert len(pieces) > 5
    assert {p.context for p in pieces} == {"Friday, 20 November 2026 writer"}


@given(st.text(max_size=3_000), st.text(max_size=50), st.text(max_size=10))
def test_any_turn_is_cut_into_bounded_text_that_can_be_stored(text, previous, at):
    for piece in chunk_message(text, previous, at, "user"):
        assert len(piece.text.encode()) <= MAX_BYTES
        piece.context.encode()
        assert "\0" not in piece.text


def test_an_empty_turn_has_no_pieces():
    assert chunk_message(" \n ") == []
