"""What ``make eval`` counts as found when turns of conversations and functions are ranked."""

import gzip
import json
from pathlib import Path

import pytest

from tests.eval import ranked
from tests.eval.conversations import beam_collections, beam_recall, locomo, locomo_collections
from tests.eval.cosqa import cosqa, cosqa_collection

TALK = (
    ("D1:1", "Ann", "I am back from the lake."),
    ("D1:2", "Bo", "Which boat did you sail?"),
    ("D1:3", "Ann", "The old wooden one."),
    ("D1:4", "Bo", "My garden is full of tomatoes."),
)


def write(path: Path, lines: list[dict]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        stream.writelines(json.dumps(line) + "\n" for line in lines)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(ranked, "embedder", lambda: None)
    turns = [
        {
            "conv": "c",
            "session": 1,
            "date_time": "1:56 pm on 8 May, 2023",
            "dia_id": i,
            "speaker": who,
            "text": text,
        }
        for i, who, text in TALK
    ]
    write(tmp_path / "locomo/turns.jsonl.gz", turns)
    asked = [
        ("Which boat did Ann sail?", 1, ["D1:3", "D1:2"]),
        ("What grows in the garden?", 4, ["D1:4"]),
        ("What is not told of?", 5, []),
        ("What stands in another file?", 5, ["D9:9"]),
    ]
    queries = [{"conv": "c", "question": q, "category": c, "evidence": e} for q, c, e in asked]
    write(tmp_path / "locomo/queries.jsonl.gz", queries)
    said = [
        ("user", "March-15-2024", "My budget is ten thousand."),
        ("assistant", None, "Noted. " + "Here is a plan for it. " * 200),
        ("user", None, "Thanks, the deadline is in June."),
    ]
    messages = [
        {"chat": "x", "id": n, "role": role, "time_anchor": day, "content": text}
        for n, (role, day, text) in enumerate(said)
    ]
    write(tmp_path / "beam/messages.jsonl.gz", messages)
    write(
        tmp_path / "beam/queries.jsonl.gz",
        [{"chat": "x", "type": "t", "question": "deadline?", "evidence": [2]}],
    )
    functions = ["def add(a, b):\n    return a + b\n", 'def read_lines(path):\n    """Lines of a file."""\n']
    write(tmp_path / "cosqa/corpus.jsonl.gz", [{"id": n, "code": code} for n, code in enumerate(functions)])
    write(tmp_path / "cosqa/queries.jsonl.gz", [{"qid": "q", "query": "python lines of file", "gold": 1}])
    return tmp_path


def figures(section, data: Path) -> dict:
    return {figure.key: figure for figure in section(data, data, lambda _: None)}


def test_a_turn_is_found_by_the_question_that_it_answers(data: Path):
    found = figures(locomo, data)
    assert {key: round(figure.value, 3) for key, figure in found.items()} == {
        "locomo.recall_at_5": 1.0,
        "locomo.recall_at_10": 1.0,
        "locomo.mrr": 1.0,
        "locomo.multi_hop_recall_at_5": 1.0,
    }
    assert (
        "BM25 1.000; BM25 with what stands around 1.000; over 2 questions"
        in found["locomo.recall_at_5"].beside
    )


def test_questions_without_evidence_that_is_there_are_passed_over(data: Path):
    (talk,) = locomo_collections(data)
    assert [question.text for question in talk.questions] == [
        "Which boat did Ann sail?",
        "What grows in the garden?",
    ]
    assert talk.chunks[2].context == "Monday, 8 May 2023 Ann Which boat did you sail?"


def test_all_passages_of_a_long_message_name_that_message(data: Path):
    (chat,) = beam_collections(data)
    assert len(chat.chunks) > 3
    assert {chunk.content_id for chunk in chat.chunks} == {"0", "1", "2"}
    assert {chunk.at for chunk in chat.chunks} == {"2024-03-15T00:00:00.000000Z"}
    assert figures(beam_recall, data)["beam.recall_at_10"].value == 1.0


def test_a_function_is_found_by_what_its_words_say(data: Path):
    assert figures(cosqa, data)["cosqa.mrr"].value == 1.0
    assert [chunk.symbol for chunk in cosqa_collection(data).chunks] == ["add", "read_lines"]


@pytest.mark.parametrize("section", [locomo, beam_recall, cosqa])
def test_without_its_folder_there_are_no_figures(section, tmp_path: Path):
    assert figures(section, tmp_path) == {}


def test_a_rank_counts_from_the_first_that_answers():
    assert ranked.reciprocal_rank(["a", "b", "c"], frozenset("bc")) == 0.5
    assert ranked.reciprocal_rank(["a"], frozenset("b")) == 0
    assert ranked.recall(["a", "b", "c"], frozenset("cd"), 3) == 0.5
    assert ranked.recall(["a", "b", "c"], frozenset("cd"), 2) == 0
