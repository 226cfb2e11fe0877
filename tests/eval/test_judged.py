"""``make eval MODEL=…``: capture is scored once more with a model that is asked over HTTP."""

import gzip
import json
import re

import pytest

from tests.eval.__main__ import main

HABIT = "Somebody choked on a one-letter name yesterday."
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
        for quote in ["burn it all", *re.findall(r"Somebody[^.]*", said)]
    ]
    return json.dumps({"found": found, "verdicts": []})


@pytest.fixture
def evaluate(data, tmp_path, chat_server, monkeypatch, capsys):
    """Score with the model of this machine's server; the figures, and why it broke off and what it told."""

    def evaluate(*sections):
        out = tmp_path / "eval.json"
        words = ["--data", str(data), "--out", str(out), "--model", "openai/judge", *sections]
        monkeypatch.setattr("sys.argv", ["eval", *words])
        monkeypatch.setenv("AGENTX_API_BASE", chat_server.base)
        monkeypatch.setenv("AGENTX_API_KEY", "sk-test")
        try:
            main()
            broke_off = ""
        except SystemExit as ended:
            broke_off = ended.code
        return json.loads(out.read_text()), broke_off, capsys.readouterr().err

    return evaluate


def test_capture_is_scored_with_and_without_the_model(evaluate, chat_server):
    chat_server.rule = _by_rule
    figures, broke_off, told = evaluate("beam", "coding_transcripts")
    assert not broke_off, told
    assert (figures["beam.instruction_f1"], figures["beam.model_instruction_f1"]) == (0, 1)
    assert figures["coding_transcripts.demand_recall"] == 0
    assert figures["coding_transcripts.model_demand_recall"] == 1
    assert figures["coding_transcripts.model_false_constraints_per_100"] == 0
    assert figures["beam.model_refusals_per_100"] == 100
    assert figures["beam.model_tokens_per_message"] == 18
    assert figures["beam.model_failed_calls"] == 0
    assert len(chat_server.requests) == 6


def test_a_model_that_cannot_be_had_ends_its_part_and_leaves_the_others(evaluate, chat_server):
    chat_server.rule = lambda _request: "I would rather not."
    figures, broke_off, told = evaluate("beam")
    assert broke_off.startswith("make eval: beam broke off")
    assert "not a JSON object" in told
    assert figures["beam.instruction_f1"] == 0
