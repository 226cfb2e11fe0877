"""`make eval` as a whole, over a handful of rows of our own in the layout of the labelled data."""

import gzip
import json
import os
import subprocess
import sys
from hashlib import sha1
from pathlib import Path

import pytest

from tests.eval import standing
from tests.eval.refusals import refusals

_ROOT = Path(__file__).parents[2]
_SOURCE = "def total(prices):\n    return sum(prices)\n"
_TREE = {"shop/cart.py": _SOURCE, "shop/mail.py": "def send(letter):\n    print(letter)\n"}
_BLOBS = {path: sha1(text.encode()).hexdigest() for path, text in _TREE.items()}
_REASON = "We don't use Redis here."
_TURNED_DOWN = (
    "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n"
)
_RUN = {"session": "s", "tool": "Bash", "command": "pytest -q", "is_test_cmd": True, "exit_masked": None}

DATA = {
    "beam/messages": [
        {"chat": "a", "id": 0, "role": "user", "label": "user_instruction", "content": "Always cite the page number.", "gold_statement": "Always cite the page number."},
        {"chat": "a", "id": 1, "role": "assistant", "label": None, "content": "I will."},
        {"chat": "a", "id": 2, "role": "user", "label": "user_instruction", "content": "From now on, use metric units.", "gold_statement": "Use metric units."},
        {"chat": "a", "id": 3, "role": "user", "label": "preference", "content": "I prefer tables over long paragraphs.", "gold_statement": "I prefer tables over long paragraphs."},
        {"chat": "a", "id": 4, "role": "user", "label": "other", "content": "The bridge opens in May."},
    ],
    "beam/queries": [
        {"chat": "a", "type": "instruction_following", "question": "Where is the bridge told of?", "instruction": "Always cite the page number.", "evidence": [0]},
        {"chat": "a", "type": "information_extraction", "question": "When does the bridge open?", "evidence": [4]},
    ],
    "coding_transcripts/labels": [
        {"id": 0, "session": "s", "text": "Never push to main.", "labels": ["demand"], "weak_labels": [], "spans": {}},
        {"id": 1, "session": "s", "text": "the second cache is redundant", "labels": ["rejection"], "weak_labels": [], "spans": {}},
        {"id": 2, "session": "s", "text": "run the tests", "labels": ["none"], "weak_labels": [], "spans": {}},
    ],
    "coding_transcripts/user_messages": [{"session": "s", "ts": "1", "text": "Install what you need."}],
    "coding_transcripts/rejections": [
        {"session": "s", "ts": "2", "tool": "Bash", "command": "pip install redis", "input": {}, "reason": _REASON, "raw": f"{_TURNED_DOWN}{_REASON}"},
        {"session": "s", "ts": "3", "tool": "Bash", "command": "git push", "input": {}, "reason": "", "raw": "The user rejected this call."},
    ],
    "coding_transcripts/decisions": [
        {"session": "s", "ts": "4", "kind": "answer", "question_input": {"question": "Which port?"}, "result": 'The user has answered: "Which port?"="9000".'},
    ],
    "coding_transcripts/tool_runs": [
        _RUN | {"n": 1, "output": "Exit code 1\nFAILED test_a.py::test_b - assert 1 == 2\n1 failed in 0.1s", "is_error": True, "exit_code": 1, "outcome": "error"},
        _RUN | {"n": 2, "output": "1 passed in 0.1s", "is_error": False, "exit_code": 0, "outcome": "ok"},
    ],
    "test_logs/swebench_lite": [
        {"framework": "pytest", "marker": "some_failed", "summary_failed": ["test_a.py::test_b"], "output": "FAILED test_a.py::test_b - x\n1 failed in 0.1s"},
        {"framework": "pytest", "marker": "all_passed", "summary_failed": [], "output": "2 passed in 0.1s"},
    ],
    "test_logs/quixbugs_pytest": [
        {"program": "gcd", "version": version, "style": "default", "command": "pytest", "exit_code": code, "output": output}
        for version, code, output in (("buggy", 1, "FAILED test_gcd.py::test_gcd - x\n1 failed in 0.1s"), ("fixed", 0, "1 passed in 0.1s"))
    ],
    "test_logs/go_test": [
        {"file": "a.txt", "format": "text", "output": "--- FAIL: TestSum (0.00s)\nFAIL\nFAIL\tshop\t0.01s\n", "gold_tests": [{"suite": "shop", "name": "TestSum", "status": "fail"}], "gold_failed": True},
    ],
    "locomo/turns": [
        {"conv": "c", "session": 1, "date_time": "1:56 pm on 8 May, 2023", "dia_id": f"D1:{n}", "speaker": who, "text": text}
        for n, (who, text) in enumerate([("Ann", "I adopted a greyhound."), ("Ben", "How fast is it?"), ("Ann", "We moved to Porto.")], 1)
    ],
    "locomo/queries": [
        {"conv": "c", "category": 4, "question": "Which dog did Ann adopt?", "evidence": ["D1:1"]},
        {"conv": "c", "category": 1, "question": "What did Ann do about a dog and a city?", "evidence": ["D1:1", "D1:3"]},
    ],
    "prefeval/preferences": [{"topic": "trips", "preference": "I prefer trains over planes.", "question": "How do I get to Oslo?"}],
    "prefeval/ordinary": [{"text": "What is 2 + 2?"}],
    "cosqa/corpus": [{"id": 1, "code": _SOURCE}, {"id": 2, "code": "def shout(word):\n    return word.upper()\n"}],
    "cosqa/queries": [{"qid": "q", "query": "python sum of prices", "gold": 1}],
    "commit_localisation/queries": [
        {"qid": "q", "repo": "us/shop", "query": "Round the total of the cart", "gold_files": ["shop/cart.py"], "tree": _BLOBS}
    ],
    "commit_localisation/blobs": [{"sha": _BLOBS[path], "text": text} for path, text in _TREE.items()],
}  # fmt: skip

KEYS = {
    "beam": {
        "beam.instruction_f1", "beam.instruction_not_always_recall", "beam.preference_f1", "beam.demand_f1",
        "beam.captured_token_f1", "beam.instruction_in_context",
    },
    "coding_transcripts": {
        f"coding_transcripts.{name}"
        for name in ("false_constraints_per_100", "candidates_per_100", "demand_recall", "rejection_recall")
    },
    "refusals": {
        "refusals.captured", "refusals.reason_f1", "refusals.bare_reasons_kept",
        "refusals.standing_unlabelled", "refusals.answer_recorded",
    },
    "prefeval": {"prefeval.f1", "prefeval.recall_or_candidate"},
    "tool_runs": {"coding_transcripts.failing_f1", "coding_transcripts.open_resolve_accuracy"},
    "test_logs": {"test_logs.failing_f1", "test_logs.failing_names_f1", "test_logs.pair_accuracy"},
    "locomo": {"locomo.recall_at_5", "locomo.recall_at_10", "locomo.mrr", "locomo.multi_hop_recall_at_5"},
    "beam_recall": {"beam.recall_at_10"},
    "survival": {
        "survival.said", "survival.captured", "survival.survived_of_said", "survival.false", "survival.ids_in_context", "survival.words_in_context",
        "survival.tokens", "survival.ids_in_context_after_maintain", "survival.words_in_context_after_rebuild",
    },
    "evidence": {f"evidence.{name}_at_{budget}" for name in ("locomo", "beam") for budget in (2_000, 4_000, 8_000)},
    "cognition": {
        f"cognition.{hops}{way}_{tokens}.{measure}"
        for hops in ("", "multi_hop_")
        for way in ("bm25", "search", "curated", "loop")
        for tokens in (250, 500, 1_000)
        for measure in ("recall", "tokens")
    },
    "cosqa": {"cosqa.mrr"},
    "commit_localisation": {"commit_localisation.all_at_5", "commit_localisation.mrr"},
    "source_files": {f"source_files.{name}" for name in ("first", "mrr", "files_first", "files_mrr")},
}  # fmt: skip
"""What each section must give; ``search`` fills an index of 100,000 passages and is left to `make eval` itself."""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labelled")
    for name, several in DATA.items():
        path = folder / f"{name}.jsonl.gz"
        path.parent.mkdir(exist_ok=True)
        with gzip.open(path, "wt", encoding="utf-8") as lines:
            lines.writelines(json.dumps(row) + "\n" for row in several)
    for path, text in _TREE.items():
        (folder / "source_files" / "shop" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "source_files" / "shop" / path).write_text(text)
    asked = {"question": "Where is the total of the prices summed up?", "files": ["shop/cart.py"]}
    (folder / "source_files" / "shop.jsonl").write_text(json.dumps(asked) + "\n")
    return folder


def _evaluate(data, out, *sections):
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-m", "tests.eval", "--data", data, "--out", out, *sections]
    return subprocess.run(command, cwd=_ROOT, env=environ, capture_output=True, text=True, check=False)


def test_every_section_gives_its_figures_as_numbers_and_a_page(data, tmp_path):
    done = _evaluate(data, tmp_path / "eval.json", *KEYS)
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "eval.json").read_text())
    assert not {key for keys in KEYS.values() for key in keys} - set(figures)
    assert all(isinstance(value, int | float) and value == value for value in figures.values())  # noqa: PLR0124 - no NaN
    assert figures["beam.instruction_f1"] == figures["test_logs.failing_f1"] == figures["cosqa.mrr"] == 1
    assert figures["source_files.first"] == figures["source_files.files_mrr"] == 1
    counts = [figures[f"survival.{name}"] for name in ("said", "active", "captured", "false")]
    assert counts == [4, 3 / 4, 1, 0]
    assert figures["survival.survived_of_said"] == figures["survival.survived_of_captured"] == 1
    assert [figures[f"survival.rejection_survived_{name}"] for name in ("of_said", "unaided")] == [1, 0]
    assert figures["survival.ids_in_context"] == figures["survival.words_in_context_after_rebuild"] == 1
    assert figures["evidence.locomo_at_2000"] == figures["evidence.beam_at_8000"] == 1
    assert figures["cognition.multi_hop_loop_250.ratio"] == figures["cognition.loop_250.recall"] == 1
    assert 0 < figures["cognition.loop_250.tokens"] <= 250
    page = (tmp_path / "eval.html").read_text()
    assert "Never push to main." in page
    assert "Ten messages" in page


def test_a_folder_that_is_missing_gives_no_figures_and_one_of_nothing_is_told(data, tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "test_logs").symlink_to(data / "test_logs")
    done = _evaluate(tmp_path / "part", tmp_path / "eval.json", "test_logs", "cosqa")
    assert done.returncode == 0, done.stderr
    assert set(json.loads((tmp_path / "eval.json").read_text())) >= KEYS["test_logs"]
    (tmp_path / "none").mkdir()
    nothing = _evaluate(tmp_path / "none", tmp_path / "none.json", "cosqa", "locomo")
    assert nothing.returncode == 1
    assert "no folder that is known" in nothing.stderr
    wrong = _evaluate(tmp_path / "nowhere", tmp_path / "none.json")
    assert wrong.returncode == 2
    assert "is not a folder" in " ".join(wrong.stderr.split())


def test_the_page_marks_what_becomes_of_each_part(data):
    from tests.eval.page import page

    shown = page([], data)
    assert '<mark class="active">Never push to main.</mark>' in shown
    assert "run the tests" in shown


def test_ideas_that_stand_are_right_where_the_labels_say_so(data, tmp_path, monkeypatch):
    labels = tmp_path / "labels.csv"
    labels.write_text(f"place,label\n{standing.place('s', _REASON)},stands\n")
    monkeypatch.setattr(standing, "LABELS", labels)
    made = {figure.key: figure.value for figure in refusals(data, tmp_path, lambda _: None)}
    assert made["refusals.standing_precision"] == made["refusals.standing_recall"] == 1
    assert "refusals.standing_unlabelled" not in made
    assert made["refusals.captured"] == made["refusals.reasons_kept"] == 1
