"""What ``make eval`` counts as taken, missed and wrongly taken from labelled messages."""

import gzip
import json
from pathlib import Path

import pytest

from tests.eval.labels import labels

MESSAGES = [
    {"session": "a", "text": "Never push to main.", "labels": ["demand"], "spans": {"demand": "Never push to main"}},
    {"session": "a", "text": "the second cache is redundant", "labels": ["rejection"], "weak_labels": []},
    {"session": "b", "text": "is the plugin loader used?", "labels": ["rejection"], "weak_labels": []},
    {"session": "b", "text": "we don't need the plugin loader", "labels": ["rejection"], "weak_labels": ["rejection"]},
    {"session": "b", "text": "Stop suggesting the plugin loader.", "labels": ["none"]},
    {"session": "b", "text": "Always sort the imports.", "labels": ["none"]},
    {"session": "c", "text": ""},
    {"session": "c", "text": "run the tests"},
]  # fmt: skip


@pytest.fixture
def figures(tmp_path):
    folder = tmp_path / "coding_transcripts"
    folder.mkdir()
    with gzip.open(folder / "labels.jsonl.gz", "wt") as lines:
        lines.writelines(json.dumps(message) + "\n" for message in MESSAGES)
    told: list[str] = []
    found = {figure.key: figure.value for figure in labels(tmp_path, tmp_path / "scratch", told.append)}
    assert told
    return {key.removeprefix("coding_transcripts."): value for key, value in found.items()}


def test_a_rule_from_a_message_without_a_demand_is_false(figures):
    assert figures["false_constraints_per_100"] == pytest.approx(100 / 8)
    assert figures["false_rejections_per_100"] == pytest.approx(100 / 8)


def test_only_what_is_new_counts_as_a_proposal(figures):
    assert figures["candidates_per_100"] == pytest.approx(200 / 8)


def test_recall_is_that_of_the_clear_labels_and_the_weak_ones_stand_apart(figures):
    assert figures["demand_recall"] == 1
    assert figures["rejection_recall"] == 0.5
    assert figures["rejection_candidate_weak_recall"] == 1


def test_precision_is_shown_for_each_step(figures):
    assert figures["demand_active_precision"] == 0.5
    assert figures["rejection_active_precision"] == 0  # where the label sees nothing
    assert figures["rejection_candidate_precision"] == pytest.approx(2 / 3)


def test_weak_labels_are_wrong_in_the_strict_precision_and_left_out_of_f1(figures):
    assert figures["rejection_candidate_strict_precision"] == pytest.approx(1 / 3)
    assert figures["rejection_candidate_f1"] == pytest.approx(2 / 4)


def test_what_is_taken_of_other_words_than_the_labelled_ones_is_wrong_and_missed(tmp_path):
    folder = tmp_path / "coding_transcripts"
    folder.mkdir()
    text = "Never push to main. Reviewers choke on one-letter names."
    row = {
        "session": "a",
        "text": text,
        "labels": ["demand"],
        "spans": {"demand": "Reviewers choke on one-letter names"},
    }
    with gzip.open(folder / "labels.jsonl.gz", "wt") as lines:
        lines.write(json.dumps(row) + "\n")
    found = {figure.key: figure.value for figure in labels(tmp_path, tmp_path / "scratch", lambda _: None)}
    names = ("demand_recall", "demand_active_precision", "demand_active_f1")
    assert [found[f"coding_transcripts.{name}"] for name in names] == [0, 0, 0]


def test_what_nothing_was_taken_of_has_no_precision(tmp_path):
    folder = tmp_path / "coding_transcripts"
    folder.mkdir()
    with gzip.open(folder / "labels.jsonl.gz", "wt") as lines:
        lines.write(json.dumps({"session": "a", "text": "Thanks.", "labels": ["none"]}) + "\n")
    found = {figure.key for figure in labels(tmp_path, tmp_path / "scratch", lambda _: None)}
    assert "coding_transcripts.demand_active_f1" in found
    assert not [key for key in found if "precision" in key]


def test_a_span_is_compared_by_its_words(figures):
    assert figures["demand_span_f1"] == 1


def test_without_its_folder_there_are_no_figures(tmp_path: Path):
    assert list(labels(tmp_path, tmp_path, print)) == []
