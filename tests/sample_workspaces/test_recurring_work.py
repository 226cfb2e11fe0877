"""Three kinds of recurring work: no act is done twice and none is missed, and the same programs alone do both."""

import json
import unicodedata
from contextlib import redirect_stdout
from datetime import datetime
from io import StringIO
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.cli.main import main
from agentx.cli.work.samples import load_code
from agentx.storage.events.types import RunEnded, RunStarted, ToolCallExecuted

SHARES_WORKSPACES = True
SAMPLES = Path(__file__).parents[2] / "sample_workspaces"
NAMES = ("appointment-reminders", "job-offers", "garden")


class Story:
    """A sample that was played: its workspace, its world and the table that ends it."""

    def __init__(self, name, root, lines):
        self.folder, self.ws, self.world = SAMPLES / name, Workspace.open(root), root / ".agentx" / "world"
        self.table = lines[-1]["data"]["compared"]
        self.runs = [line["data"] for line in lines if line.get("type") == "DirectedRun"]

    def facts(self, payload):
        return [event for event in self.ws.events() if isinstance(event.data, payload)]

    def refused(self, tool):
        calls = self.facts(ToolCallExecuted)
        return [one for one in calls if (one.data.tool, one.data.status) == (tool, "DENIED")]


@pytest.fixture(scope="module")
def play(tmp_path_factory):
    """Play a sample by the command line, each once."""
    played = {}

    def play(name):
        if name not in played:
            root, out = tmp_path_factory.mktemp("recurring") / "copy", StringIO()
            with redirect_stdout(out), pytest.MonkeyPatch.context() as patch:
                patch.chdir(SAMPLES)
                status = main(["run", "--sample", name, "--into", str(root), "--json"])
            assert status == 0, out.getvalue()[-2_000:]
            played[name] = Story(name, root, [json.loads(line) for line in out.getvalue().splitlines()])
        return played[name]

    yield play
    for story in played.values():
        story.ws.close()


# --- all of them -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_with_a_director_nothing_is_done_twice_or_missed_and_the_same_program_alone_does_both(play, name):
    directed, *alone = play(name).table
    twice = next(heading for heading in directed if heading.endswith("twice"))
    assert (directed[twice], directed["missed"]) == (0, 0)
    assert sum(row[twice] for row in alone) > 30
    assert sum(row["missed"] for row in alone) > 1
    assert all(row[twice] or row["missed"] for row in alone)


@pytest.mark.parametrize("name", NAMES)
def test_the_readme_has_the_table_of_the_story(play, name):
    story = play(name)
    page = story.folder.joinpath("README.md").read_text("utf-8")
    lines = [line.split() for line in page.partition("```text\n")[2].partition("```")[0].splitlines()]
    rows = [" ".join(map(str, row.values())).split() for row in story.table]
    assert lines == [" ".join(story.table[0]).split(), *rows]


@pytest.mark.parametrize("name", NAMES)
def test_replay_gives_the_same_state(play, name):
    ws = play(name).ws
    assert ws.state_at(ws.state.seq).encode() == ws.state.encode()


# --- reminders -------------------------------------------------------------------------------------------------------


def test_an_act_is_the_patient_the_number_and_the_time(play):
    story = play("appointment-reminders")
    practice = load_code(story.folder / "practice.py")
    made = [(one["patient"], one["appointment"], one["at"]) for one in practice.reminders(story.world)]
    moved = [one for one in made if one[:2] == ("Ann Doyle", 2)]
    assert moved == [("Ann Doyle", 2, "2026-03-10 09:00"), ("Ann Doyle", 2, "2026-03-12 16:30")]
    taken = [one[0] for one in made if one[2] == "2026-03-18 11:00"]
    assert taken == ["Clara Dunne", "Ivo Marin"]
    assert len([one for one in made if one[:2] == ("Farid Haddad", 2)]) == 1  # deleted, and entered again
    assert len(story.refused("send_reminder")) > len(made)


def test_a_number_out_of_service_fails_one_run_and_the_patient_is_called_at_the_next_one(play):
    story = play("appointment-reminders")
    practice = load_code(story.folder / "practice.py")
    ends = [event.data for event in story.facts(RunEnded)]
    assert [number for number, end in enumerate(ends, 1) if end.status != "COMPLETED"] == [6]
    assert "is not in service" in ends[5].reason
    calls = [one for one in practice.reminders(story.world) if one["patient"] == "Tomas Berg"]
    assert {one["phone"] for one in calls} == {"+353 1 555 0175"}
    assert [(one["appointment"], one["day"]) for one in calls] == [(1, "2026-03-13"), (2, "2026-03-23")]


def test_the_director_blames_the_number_and_not_the_patient(play):
    story = play("appointment-reminders")
    prompts = [story.ws.read_body(event.data.task) for event in story.facts(RunStarted)]
    assert all('Do not call send_reminder with phone "+353 1 555 0148"' in text for text in prompts[6:9])
    assert not [text for text in prompts if 'with patient "' in text or 'with at "' in text]


# --- job offers ------------------------------------------------------------------------------------------------------


def test_an_offer_under_another_number_is_printed_once_and_a_number_used_again_is_another_offer(play):
    story = play("job-offers")
    printed = [line for run in story.runs for line in run["outcome"]["summary"].splitlines()]
    assert len([line for line in printed if line.startswith("Lumen Press: Editor")]) == 1
    night = [line for line in printed if unicodedata.normalize("NFC", line).startswith("Café Nord")]
    assert len(night) == 1
    assert len([line for line in printed if line.endswith("(no. 108)")]) == 2
    assert len([line for line in printed if line.startswith("Harbour Lab: Data engineer")]) == 2
    assert "$(touch hacked): `rm` expert = wanted, from 2026-06 (no. 142)" in printed


def test_what_the_user_rules_out_reaches_the_script(play):
    story = play("job-offers")
    summaries = [run["outcome"]["summary"] for run in story.runs]
    assert any("Brightcorp" in text for text in summaries[:12])
    assert not any("Brightcorp" in text for text in summaries[12:])


# --- the garden ------------------------------------------------------------------------------------------------------


def test_a_duty_is_new_at_each_due_time_and_the_hour_that_does_not_exist_is_made_up_for(play):
    story = play("garden")
    plot = load_code(story.folder / "plot.py")
    measured = [one["at"] for one in plot.book(story.world) if one["did"] == "measure"]
    assert len(measured) == 28 * len(plot.BEDS)
    assert {measured.count(at) for at in measured} == {len(plot.BEDS)}
    assert "2026-03-29T03:00:00+02:00" in measured
    assert sum(one["did"] == "prune" for one in plot.book(story.world)) == 1
    assert len(story.refused("prune")) == 27


def test_a_bed_is_watered_once_a_day_although_the_probe_is_dry_in_the_evening(play):
    story = play("garden")
    plot = load_code(story.folder / "plot.py")
    days = [(one["what"], plot.day(one)) for one in plot.book(story.world) if one["did"] == "water"]
    assert len(days) == len(set(days)) > 10
    assert len(story.refused("water")) > 5


def test_an_interrupted_due_time_is_run_again_and_goes_on_behind_what_was_done(play):
    story = play("garden")
    plot = load_code(story.folder / "plot.py")
    starts, ends = story.facts(RunStarted), story.facts(RunEnded)
    cut = next(event.run for event in ends if event.data.status == "INTERRUPTED")
    again = next(event for event in starts if event.data.resumes == cut)
    assert again.data.due == next(event.data.due for event in starts if event.run == cut)
    due = datetime.fromisoformat(again.data.due)
    at_once = [one for one in plot.book(story.world) if datetime.fromisoformat(one["at"]) == due]
    assert [one["what"] for one in at_once if one["did"] == "water"] == ["beans", "herbs"]
    outcomes = [event.data.output.text for event in story.refused("water") if event.run == again.run]
    assert len(outcomes) == 1
    assert "nobody knows whether it was done" in outcomes[0]
