"""``make eval MODEL=…``: capture is scored once more with a model that is asked over HTTP."""

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

HABIT = "Reviewers choke on one-letter names."
"""A demand that no pattern sees."""

OTHER = "Have a look at the build, please."


@pytest.fixture
def data(tmp_path):
    """Two folders of labelled data, as small as can be."""
    texts = [(HABIT, True), (OTHER, False), ("x" * 5 + " is done.", False)]
    beam = [
        {"chat": "1", "role": "user", "content": text}
        | ({"label": "user_instruction", "gold_statement": text} if wanted else {})
        for text, wanted in texts
    ]
    labelled = [
        {
            "session": "1",
            "text": text,
            "labels": ["demand"] if wanted else [],
            "spans": {"demand": text} if wanted else {},
        }
        for text, wanted in texts
    ]
    for path, rows in (("beam/messages", beam), ("coding_transcripts/labels", labelled)):
        file = tmp_path / "data" / f"{path}.jsonl.gz"
        file.parent.mkdir(parents=True)
        file.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    return tmp_path / "data"


def _by_rule(request):
    """A model that takes every sentence about reviewers, and makes one up."""
    shown = request["messages"][1]["content"]
    found = [
        {
            "message": int(seq),
            "quote": quote,
            "kind": "constraint",
            "lasting": "yes",
            "reason": "It is a habit.",
        }
        for seq, said in re.findall(r"^## Message (\d+)\n(.*?)(?=^## |\Z)", shown, re.MULTILINE | re.DOTALL)
        for quote in ["burn it all", *re.findall(r"Reviewers[^.]*", said)]
    ]
    return json.dumps({"found": found, "verdicts": []})


def evaluate(data, out, *words, **environ):
    return subprocess.run(
        [sys.executable, "-m", "tests.eval", "--data", str(data), "--out", str(out), *words],
        cwd=ROOT, env={**os.environ, **environ}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_capture_is_scored_with_and_without_the_model(data, tmp_path, chat_server):
    chat_server.rule = _by_rule
    out = tmp_path / "eval.json"
    done = evaluate(
        data, out, "--model", "openai/judge", "beam", "coding_transcripts",
        AGENTX_API_BASE=chat_server.base, AGENTX_API_KEY="sk-test",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    figures = json.loads(out.read_text())
    assert (figures["beam.instruction_f1"], figures["beam.model_instruction_f1"]) == (0, 1)
    assert figures["coding_transcripts.demand_recall"] == 0
    assert figures["coding_transcripts.model_demand_recall"] == 1
    assert figures["coding_transcripts.model_false_constraints_per_100"] == 0
    assert figures["beam.model_refusals_per_100"] == 100
    assert figures["beam.model_tokens_per_message"] == 18
    assert figures["beam.model_failed_calls"] == 0
    assert len(chat_server.requests) == 6


def test_a_model_that_cannot_be_had_ends_its_part_and_leaves_the_others(data, tmp_path, chat_server):
    chat_server.rule = lambda _request: "I would rather not."
    out = tmp_path / "eval.json"
    done = evaluate(
        data, out, "--model", "openai/judge", "beam", AGENTX_API_BASE=chat_server.base, AGENTX_API_KEY="sk-test"
    )  # fmt: skip
    assert done.returncode == 1
    assert "no JSON object" in done.stderr
    assert json.loads(out.read_text())["beam.instruction_f1"] == 0
