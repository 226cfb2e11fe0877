"""The section ``talks`` on a conversation of a few lines."""

import json

import pytest

from agentx import Workspace
from agentx.cognition.recall import DECLINED
from tests.eval.talks import Answered, Line, at, occurs, read_lines, talks

_LINES = [
    {"say": "My sister Anna lives in Lisbon.", "at": "2026-01-05T08:00:00Z"},
    {
        "say": "Where does my sister Anna live?",
        "at": "2026-01-06T08:00:00Z",
        "holds": ["Lisbon"],
        "without": ["Oslo"],
    },
    {"say": "Zymurgy?", "at": "2026-01-07T08:00:00Z", "untold": True},
]


@pytest.fixture
def data(tmp_path):
    (tmp_path / "talks").mkdir()
    lines = "".join(f"{json.dumps(line)}\n" for line in _LINES)
    (tmp_path / "talks" / "one.jsonl").write_text(lines)
    return tmp_path


def test_a_conversation_is_played_with_and_without_embeddings(data):
    found = {figure.key: figure for figure in talks(data, data, lambda _: None)}
    for key in ("minilm", "none"):
        assert found[f"talks.{key}.right"].value == 1
        assert found[f"talks.{key}.outdated"].value == found[f"talks.{key}.untold"].value == 0
    assert "where 1 of 1" in found["talks.none.right"].beside


def test_a_line_is_recorded_at_its_own_time(data, tmp_path):
    first = read_lines(data / "talks" / "one.jsonl")[0]
    with Workspace.create(tmp_path / "w") as ws:
        with at(first.at):
            event = ws.say(first.say)
        assert event.at == "2026-01-05T08:00:00.000000Z"
        assert ws.say("Hello.").at > "2026-01-06"


def test_an_answer_is_right_with_all_that_it_should_hold_and_nothing_outdated():
    line = Line("What is the rent?", "", holds=("1600|1,600", "April"), without=("1,450",))
    assert Answered(line, "From April it is 1,600.").right
    assert not Answered(line, "It is 1,600.").right
    assert not Answered(line, "From April it is 1,600, and it was 1,450.").right
    assert not Answered(line, DECLINED).right
    assert Answered(Line("Who?", "", untold=True), DECLINED).right


@pytest.mark.parametrize(
    ("alternatives", "answer", "there"),
    [
        ("inherit|aunt", "You inherited it.", True),
        ("450", "It is 1,450.", False),
        ("240", "It is worth 240,000.", True),
        ("10", "on the 10th", True),
        ("720", "It is 7200.", False),
        ("not", "I remember nothing.", False),
    ],
)
def test_words_occur_as_words_and_numbers_as_numbers(alternatives, answer, there):
    assert occurs(alternatives, answer) == there


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("And how old is Yvonne?", "how much"),
        ("Who's got the key?", "who"),
        ("Is Tobias there?", "yes or no"),
        ("From what time may I phone?", "what"),
        ("Remind me of the rent.", "other"),
    ],
)
def test_a_question_is_counted_by_what_it_asks_for(question, kind):
    assert Line(question, "").kind == kind
