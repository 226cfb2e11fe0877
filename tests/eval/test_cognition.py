"""The section ``cognition`` on a talk of our own, from which much is missing that the labelled data has."""

import gzip
import json

import pytest

from tests.eval.cognition import BUFFERS, WAYS, cognition

_BIRDS = ("herons", "swifts", "owls", "larks", "crows", "terns", "finches", "gulls")
_PLACES = ("harbour", "orchard", "mill", "quarry", "chapel")
_FILLERS = [
    f"On a walk to the {place} we counted {bird} again, and it rained before we came home for tea."
    for place in _PLACES
    for bird in _BIRDS
]
_ANSWER = "Hello there! How was the market? I planted quinces behind the barn. Well, see you on Sunday then, take care!"
_TURNS = [
    *({"conv": "c", "dia_id": f"D1:{n}", "speaker": "Ann", "text": text} for n, text in enumerate(_FILLERS)),
    {"conv": "c", "dia_id": "D2:1", "speaker": "Ann", "date_time": "someday", "text": _ANSWER},
    {"conv": "c", "dia_id": "D2:2", "text": None, "image_caption": "a barn"},
    {"conv": "empty", "dia_id": "D1:1", "text": ""},
]  # fmt: skip
_QUERIES = [
    {
        "conv": "c",
        "question": "Where did Ann plant quinces?",
        "evidence": ["D2:1"],
        "answer": "behind the barn",
    },
    {"conv": "c", "question": "What did nobody say?"},
]


@pytest.fixture
def found(tmp_path):
    (tmp_path / "locomo").mkdir()
    for name, rows in (("turns", _TURNS), ("queries", _QUERIES)):
        with gzip.open(tmp_path / f"locomo/{name}.jsonl.gz", "wt") as lines:
            lines.writelines(f"{json.dumps(row)}\n" for row in rows)
    return {figure.key: figure for figure in cognition(tmp_path, tmp_path, lambda _: None)}


def test_every_way_finds_the_turn_in_no_more_tokens_than_it_has(found):
    for way in WAYS:
        for tokens in BUFFERS:
            assert found[f"cognition.{way}_{tokens}.recall"].value == 1
            assert tokens / 2 < found[f"cognition.{way}_{tokens}.tokens"].value <= tokens
    assert not [key for key in found if "multi_hop" in key]  # nothing is asked that needs several turns


def test_what_is_cut_of_a_turn_is_said_and_its_answer_stays(found):
    assert "of the answers' words 1.000, of all 1.000" in found["cognition.search_250.recall"].beside
    cut = found["cognition.loop_250.recall"].beside
    assert "of the answers' words 1.000, of all 0." in cut
