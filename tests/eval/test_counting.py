"""How the evaluation counts what is said again and what was never captured."""

import gzip
import json

import pytest

from agentx import Workspace
from tests.eval.capture import capture
from tests.eval.linked import linked
from tests.eval.preferences import preferences
from tests.eval.survival import survival

RULE = "Always cite the page number."
AGAIN = "Please remember: always cite the page number."
UNSEEN = "Somebody choked on a one-letter name yesterday."
"""A demand that no pattern sees."""


def _write(folder, name, several):
    path = folder / f"{name}.jsonl.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps(one) + "\n" for one in several)


def _beam(folder, *messages):
    _write(folder, "beam/messages", [
        {"chat": "a", "id": n, "role": "user", "content": text, "label": label, "gold_statement": text}
        for n, (text, label) in enumerate(messages)
    ])  # fmt: skip


def _figures(section, data, scratch):
    return {figure.key: figure for figure in section(data, scratch, lambda _: None)}


def _statuses(ws, seq):
    return [item.status for item in linked(ws.events()).get(seq, {}).values()]


@pytest.fixture
def ws(tmp_path):
    with Workspace.create(tmp_path / "task") as ws:
        yield ws


def test_a_demand_that_is_said_again_came_of_both_messages(ws):
    """The second message is evidence of the same item, and needs no likeness of words."""
    first, other, second = (ws.say(text).seq for text in (RULE, "How long is the bridge?", AGAIN))
    found = linked(ws.events())
    assert list(found[first]) == list(found[second])
    assert _statuses(ws, second) == ["active"]
    assert other not in found


def test_a_proposal_that_is_said_again_was_proposed_first_and_active_then(ws):
    """Each message counts by what stood right after it, not by what came of it later."""
    first, second = (ws.say(text).seq for text in ("keep your answers short", "Keep your answers short!"))
    assert (_statuses(ws, first), _statuses(ws, second)) == (["candidate"], ["active"])


def test_a_message_that_ends_a_rule_gives_no_demand(ws):
    """Its words are evidence of the item that they retire."""
    ws.say("Always add the decorator @cached.")
    ended = ws.say("You can drop the decorator again.").seq
    assert set(_statuses(ws, ended)) <= {"retired"}


def test_messages_in_bulk_are_linked_as_one_by_one(tmp_path):
    """The sections say their data in bulk, which must not move a status to another message."""
    said = (RULE, "keep your answers short", AGAIN, "Keep your answers short!", "Never push to main.")
    statuses = []
    for name in ("single", "bulk"):
        with Workspace.create(tmp_path / name) as ws:
            if name == "bulk":
                with ws.bulk():
                    seqs = [ws.say(text).seq for text in said]
            else:
                seqs = [ws.say(text).seq for text in said]
            statuses.append([_statuses(ws, seq) for seq in seqs])
    assert statuses[0] == statuses[1] == [["active"], ["candidate"], ["active"], ["active"], ["active"]]


def test_a_repeat_is_right_where_it_is_labelled_and_wrong_where_it_is_not(tmp_path):
    """Counted alike, so that precision pays for what recall gains."""
    _beam(
        tmp_path,
        (RULE, "user_instruction"),
        (AGAIN, "user_instruction"),
        (RULE, "other"),
        ("Thanks.", "other"),
    )
    beside = _figures(capture, tmp_path, tmp_path / "scratch")["beam.instruction_f1"].beside
    assert "right 2, wrong 1, missed 0; of these said again: 1 right, 1 wrong" in beside


def test_captured_words_count_what_was_missed_as_nothing(tmp_path):
    """The figure over all labelled messages stands beside the one over what was captured."""
    _beam(tmp_path, (RULE, "user_instruction"), (UNSEEN, "user_instruction"))
    found = _figures(capture, tmp_path, tmp_path / "scratch")
    assert found["beam.captured_token_f1"].value == 1
    assert found["beam.captured_token_f1_missed_as_zero"].value == 0.5


def test_what_was_never_captured_has_not_survived(tmp_path):
    """Of what was said, of each kind, and with nobody to accept a candidate."""
    _beam(tmp_path, (RULE, "user_instruction"), (AGAIN, "user_instruction"), (UNSEEN, "user_instruction"), ("Thanks.", "other"))  # fmt: skip
    _write(tmp_path, "coding_transcripts/labels", [
        {"session": "s", "text": "the second cache is redundant", "labels": ["rejection"], "weak_labels": []},
        {"session": "s", "text": "hmm, the third too", "labels": ["rejection"], "weak_labels": ["rejection"]},
    ])  # fmt: skip
    found = {key: figure.value for key, figure in _figures(survival, tmp_path, tmp_path / "scratch").items()}
    shares = ("said", "active", "captured", "survived_of_said", "survived_unaided", "survived_of_captured")
    assert [found[f"survival.instruction_{name}"] for name in shares] == [3, 2 / 3, 2 / 3, 2 / 3, 2 / 3, 1]
    assert [found[f"survival.rejection_{name}"] for name in shares] == [1, 0, 1, 1, 0, 1]
    assert found["survival.survived_of_said"] == 3 / 4


def test_preferences_are_found_by_the_items_that_rest_on_them(tmp_path):
    """A question or an ordinary message that something came of is wrong."""
    _write(tmp_path, "prefeval/preferences", [
        {"topic": "trips", "preference": "I prefer trains over planes.", "question": "How do I get to Oslo?"},
        {"topic": "food", "preference": "The seeds get stuck.", "question": "I prefer soup over salad. Why?"},
    ])  # fmt: skip
    _write(tmp_path, "prefeval/ordinary", [{"text": "What is 2 + 2?"}])
    beside = _figures(preferences, tmp_path, tmp_path / "scratch")["prefeval.f1"].beside
    assert "right 1, wrong 1, missed 1; 5 messages" in beside
