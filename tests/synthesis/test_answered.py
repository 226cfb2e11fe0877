"""Which sentence of an agent a message of the user answers."""

import pytest

from agentx.storage.events.types import AgentMessageSent, Body, Event, UserMessageSent
from agentx.synthesis.state.answered import MAX_QUOTE, answered
from agentx.synthesis.state.state import State


def conversation(*said):
    """Return the state after messages of the agent (``A: …``) and of the user (``U: …``)."""
    state = State()
    for text in said:
        who, _, words = text.partition(": ")
        body = Body(words)
        data = UserMessageSent(body=body) if who == "U" else AgentMessageSent(body=body, final=True)
        actor = "user" if who == "U" else "agent:main"
        at = "2026-01-01T00:00:00.000000Z"
        state.apply(Event(seq=state.seq + 1, at=at, type=type(data).__name__, v=1, actor=actor, data=data))
    return state


def quoted(text, *said):
    state = conversation(*said)
    found = answered(state, text, state.seq + 1)
    return found.quote if found else None


@pytest.mark.parametrize(
    ("said", "text", "quote"),
    [
        ("It's done. Should I move the cache to disk?", "yes", "Should I move the cache to disk?"),
        (
            "I looked. I'd log rejected rows to stdout. Shall I?",
            "yep",
            "I'd log rejected rows to stdout. Shall I?",
        ),
        ("I could ack before the write.", "no. We'd lose rows", "I could ack before the write."),
        ("How many guests? And on which day?", "40, Thursday", "How many guests? And on which day?"),
        (
            "The rows stay stale after a rename. Your call.",
            "ok",
            "The rows stay stale after a rename. Your call.",
        ),
        ("Shall I use Redis now?\n```\nis this code?\n```", "no", "Shall I use Redis now?"),
        ("cut = off\n```\nShall I use Redis now?", "no", "Shall I use Redis now?"),
    ],
)
def test_an_answer_goes_to_the_question_or_proposal_at_the_end(said, text, quote):
    assert quoted(text, f"A: {said}").strip() == quote


LISTED = (
    "A: Two ways:\n1. a cron job\n2. a **systemd** timer, with a unit\n3. a loop. It costs more.\nWhich one?"
)
LETTERS = "A: We could do Option A: keep the table, or Option B: split it by month. Which do you prefer?"
HEADED = (
    "A: **Option 1: drop it**\nIt is gone.\n\n**Option 2: keep both**. It has benefits:\n"
    "1. It is fast.\n2. It is known.\n\nI recommend Option 2. Would you like to go with Option 2?"
)


@pytest.mark.parametrize(
    ("text", "said", "quote"),
    [
        ("go with 1 until then", LISTED, "a cron job"),
        ("2", LISTED, "a **systemd** timer, with a unit"),
        ("2, but without the unit", LISTED, "a **systemd** timer, with a unit"),
        ("the third one please", LISTED, "a loop."),
        ("the last", LISTED, "a loop."),
        ("1 and 2", LISTED, "a cron job\n2. a **systemd** timer, with a unit"),
        ("option B", LETTERS, "Option B: split it by month."),
        ("let's go with option 2", HEADED, "Option 2: keep both**."),
        ("B. but later", LETTERS, "split it by month."),
        ("the first one", LETTERS, "keep the table"),
    ],
)
def test_a_named_option_is_what_is_answered(text, said, quote):
    assert quoted(text, said) == quote


@pytest.mark.parametrize("text", ["neither", "both", "go with 6"])
def test_an_answer_that_names_no_option_answers_the_question(text):
    assert "Which do you prefer?" in quoted(text, LETTERS)


def test_a_short_answer_may_take_up_a_sentence():
    said = "A: The slip has a name, a number and a signature. It is one page."
    assert quoted("signature? out with it", said) == "The slip has a name, a number and a signature."


def test_a_question_stays_open_while_the_user_asks_back():
    talk = (
        "A: Shall we keep the old rows for N hours?",
        "U: how late can they be?",
        "A: At most six hours, as far as I see.",
    )
    assert quoted("then keep them for 7", *talk) == "Shall we keep the old rows for N hours?"


@pytest.mark.parametrize(
    "said",
    [
        (),
        ("A: I moved it. All tests pass.",),
        ("A: Should I move it?", "U: wait"),
        ("A: Should I? I moved it. I looked. It is done. Nothing is left.",),
    ],
)
def test_without_an_open_question_nothing_is_answered(said):
    assert quoted("yes, please do", *said) is None


def test_the_span_is_in_the_agents_message_and_short():
    state = conversation("A: Done. " + "Should I change the layout of all pages too? " * 30)
    found = answered(state, "yes", state.seq + 1)
    assert found.seq == 1
    assert found.quote == state.messages[0].text[found.start : found.end]
    assert len(found.quote) <= MAX_QUOTE


@pytest.mark.parametrize("length", [2_500, 5_000])
def test_a_long_message_asks_at_its_end(length):
    text = "It is long. " * (length // 12) + "Should I move the cache to disk?"
    state = conversation(f"A: {text}")
    found = answered(state, "yes", 2)
    assert found.quote.endswith("Should I move the cache to disk?")
    assert text[found.start : found.end] == found.quote
    assert len(state.messages[0].text) == 2_000


def test_the_position_in_an_extract_is_not_known():
    state = conversation()
    body = Body("It is long. " * 200 + "Should I move the cache to disk?", blob="ab" * 20, size_bytes=90_000)
    at = "2026-01-01T00:00:00.000000Z"
    data = AgentMessageSent(body=body, final=True)
    state.apply(Event(seq=1, at=at, type="AgentMessageSent", v=1, actor="agent:main", data=data))
    found = answered(state, "yes", 2)
    assert (found.start, found.end) == (0, 0)
    assert found.quote.endswith("Should I move the cache to disk?")
