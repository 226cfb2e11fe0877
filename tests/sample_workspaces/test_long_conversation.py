"""The long conversation, played once by the command line: what was told is known when it is asked for, however faded it was."""

import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.cli.main import main
from agentx.cli.work.samples import SampleInvalid, find_sample, read_talk
from agentx.storage.events.cognition_events import Interacted

SAMPLE = Path(__file__).parents[2] / "sample_workspaces" / "long-conversation"
KNOWN = 50
"""Of 52 questions, so many answers hold what they should, at least; words find words, and no model is asked."""


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """The workspace after the sample, and what its steps printed."""
    root, out = tmp_path_factory.mktemp("talk") / "year", StringIO()
    with redirect_stdout(out), pytest.MonkeyPatch.context() as patch:
        patch.chdir(SAMPLE.parent)
        assert main(["run", "--sample", SAMPLE.name, "--into", str(root), "--json"]) == 0, out.getvalue()[
            -2_000:
        ]
    with Workspace.open(root) as ws:
        yield ws, [json.loads(line) for line in out.getvalue().splitlines()]


def answers(played):
    return [line["data"] for line in played[1] if line.get("type") == "TalkAnswered"]


def ended(played):
    (told,) = (line["data"] for line in played[1] if line.get("type") == "TalkEnded")
    return told


def interactions(ws):
    return [event.data for event in ws.events() if isinstance(event.data, Interacted)]


def test_most_answers_hold_what_was_told_and_what_none_holds_is_said(played):
    told = ended(played)
    asked = [one for one in answers(played) if one["holds"] is not None]
    assert (told["messages"], told["asked"]) == (155, len(asked)) == (155, 52)
    assert told["held"] == sum(one["holds"] for one in asked) >= KNOWN
    assert told["missed"] == [one["say"] for one in asked if not one["holds"]]


def test_a_fact_that_changed_is_told_as_it_is_now_and_what_feedback_sets_right_is_kept(played):
    said = {one["say"]: one["answer"] for one in answers(played)}
    assert "19th of May" in said["When does the notary sign the contract?"]
    assert "875 euros" in said["What is the rent with heating?"]
    vet = said["Who is Bruno's vet in Porto?"]
    assert "Salgado" in vet
    assert "Kaya" not in vet


def test_memories_fade_leave_and_come_back_with_a_question(played):
    ws, told = played[0], ended(played)
    assert told["left"] > 100
    assert told["came_back"] > 50
    done = interactions(ws)
    mind = ws.state.minds["main"]
    assert sum(len(one.evicted) for one in done) == told["left"] == mind.evicted
    (account,) = (item.id for item in ws.memory("knowledge") if "31,000 euros" in item.text)
    came = [one.interaction for one in done if account in one.entered]
    went = [one.interaction for one in done if account in one.evicted]
    assert came[0] < went[0] < came[1]  # told in the beginning, gone, and there when it is asked for
    after = next(one for one in answers(played) if "savings account before" in one["say"])
    assert came[-1] <= after["interaction"]
    assert after["holds"]


def test_all_of_it_can_be_had_again_from_history(played):
    ws = played[0]
    assert ws.verify().findings == ()
    digest, mind = ws.status().digest, ws.state.minds["main"]
    assert ws.rebuild().state_digest == digest
    assert ws.state.minds["main"] == mind


def test_the_report_draws_the_year(played):
    (report,) = (line for line in played[1] if "pictures" in line)
    assert report["collected"]["interactions"] == 155
    assert report["collected"]["faults"] == {}
    drawn = {Path(path).stem: Path(path).read_text() for path in report["pictures"]}
    assert drawn.keys() == {"pulse", "decay", "memories", "triggers", "latency", "judge"}
    assert "His vet is Doctor Aylin Kaya" in drawn["decay"]


def test_the_readme_says_how_to_play_it():
    code = (SAMPLE / "README.md").read_text().partition("```console\n")[2].splitlines()
    assert code[0] == "$ agentx run --sample long-conversation"


def test_a_line_that_is_no_message_is_refused_before_anything_is_said(tmp_path, monkeypatch):
    folder = tmp_path / "sample_workspaces" / "broken"
    folder.mkdir(parents=True)
    (folder / "sample.toml").write_text('title = "t"\n[[steps]]\ntalk = "talk.jsonl"\n')
    (folder / "talk.jsonl").write_text('{"say": "I live in Graz."}\n{"says": "?"}\n')
    monkeypatch.chdir(tmp_path)
    sample = find_sample("broken")
    with pytest.raises(SampleInvalid, match=r"talk\.jsonl, line 2, is not a valid message"):
        read_talk(sample, sample.steps[0])
