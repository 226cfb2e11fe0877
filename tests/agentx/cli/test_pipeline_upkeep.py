"""``agentx pipeline status --stale``, ``redo --stale`` and ``verify`` as a user sees them."""

import json

import pytest

PIPELINE = """\
pipeline: weekly
title: The week
items: {team: [{id: a}, {id: b}]}
files:
  inbox: {path: "inbox/{{ team.id }}.md"}
  note: {path: "notes/{{ team.id }}.md"}
  notes: {path: "notes/*.md"}
  report: {path: report.md}
roles:
  reporter:
    by: engine
    reads: [{file: inbox}]
    writes: [{file: note, marker: NOTE, content: "{{ files.inbox.body }}"}]
  editor:
    by: engine
    reads: [{file: notes}]
    writes: [{file: report, marker: REPORT, content: "## All\\n\\n{{ files.notes.body }}", checks: [{sections: [All]}]}]
stages:
  - {id: gather, role: reporter, for_each: team}
  - {id: edit, role: editor, after: gather}
"""


@pytest.fixture
def weekly(call, root, trusted, tmp_path):
    """A pipeline's file, run once."""
    trusted(root)
    path = tmp_path / "weekly.yaml"
    path.write_text(PIPELINE, "utf-8")
    (root / "artifacts" / "inbox").mkdir()
    for item in "ab":
        (root / "artifacts" / "inbox" / f"{item}.md").write_text(f"All is well in {item}.\n", "utf-8")
    assert call("pipeline", "run", path, "-C", root).code == 0
    return path


def test_what_is_out_of_date_is_told_marked_and_done(call, root, weekly):
    stale = ("pipeline", "status", "--stale", "-C", root)
    assert call(*stale).out.endswith("Nothing is out of date: 3 proved steps.\n")
    (root / "artifacts" / "inbox" / "a.md").write_text("All is new.\n", "utf-8")
    rows = [line.split(maxsplit=2) for line in call(*stale).out.splitlines() if line[:2] in ("↻ ", "· ")]
    assert [row[:2] for row in rows] == [["↻", "gather[a]"], ["·", "edit"]]
    assert rows[0][2].startswith("inbox/a.md changed (")
    assert rows[1][2] == "after gather[a], it may come out the same"
    found = call(*stale, "--json").json
    (reason,) = found["steps"][0]["reasons"]
    assert f", by hand in event {reason['event']}, " in reason["text"]
    assert f" {reason['event']}  " in call("log", "-C", root).out
    planned = call("pipeline", "plan", weekly, "-C", root)
    assert "What is out of date" in planned.out
    assert call("pipeline", "plan", weekly, "-C", root, "--json").json["stale"] == found
    assert call("pipeline", "redo", "--stale", "-C", root, "--json").json["steps"] == found["steps"]
    assert call("pipeline", "status", "-C", root).out.splitlines()[0].startswith("The week  REOPENED")
    assert call("pipeline", "run", weekly, "-C", root).code == 0
    assert "All is new." in (root / "artifacts" / "report.md").read_text("utf-8")
    assert call(*stale).out.endswith("Nothing is out of date: 3 proved steps.\n")
    assert call("pipeline", "redo", "--stale", "-C", root).out == "Nothing is out of date: 3 proved steps.\n"


def test_a_stage_is_named_or_all_that_is_out_of_date(call, root, weekly):
    done = call("pipeline", "redo", "-C", root)
    assert (done.code, "Name a STAGE, or use `--stale`" in done.err) == (2, True)
    assert "Unknown stage 'gathr'" in call("pipeline", "redo", "gathr", "--stale", "-C", root).err


def test_many_steps_with_one_reason_are_one_row(call, root, weekly):
    weekly.write_text(
        weekly.read_text("utf-8").replace("{{ files.inbox.body }}", "New: {{ files.inbox.body }}")
    )
    out = call("pipeline", "status", "--stale", "-C", root).out
    assert "2 of 3 proved steps out of date, 1 after such steps" in out
    assert "↻ gather: a, b  the texts of its role, or the values in them, changed\n" in out


def test_steps_that_follow_are_one_row_too(call, root, weekly):
    text = weekly.read_text("utf-8")
    again = "  - {id: again, role: copier, for_each: team, after: gather}\n"
    role = "  copier:\n    by: engine\n    reads: [{file: note}]\n    writes: [{file: copy, content: c}]\n"
    text = (
        text.replace("roles:\n", f'  copy: {{path: "copies/{{{{ team.id }}}}.md"}}\nroles:\n{role}') + again
    )
    weekly.write_text(text, "utf-8")
    assert call("pipeline", "run", weekly, "-C", root).code == 0
    for item in "ab":
        (root / "artifacts" / "inbox" / f"{item}.md").write_text("All is new.\n", "utf-8")
    out = call("pipeline", "status", "--stale", "-C", root).out
    assert "· again: a, b  after steps of gather, they may come out the same\n" in out


def test_the_run_says_that_something_is_out_of_date(call, root, weekly):
    (root / "artifacts" / "inbox" / "a.md").write_text("All is new.\n", "utf-8")
    told = call("pipeline", "run", weekly, "-C", root).err
    assert "Out of date: 2 proved steps; `agentx pipeline status --stale` says why." in told


def test_a_file_that_was_moved_is_named(call, root, weekly, tmp_path):
    moved = weekly.rename(tmp_path / "moved.yaml")
    done = call("pipeline", "status", "--stale", "-C", root)
    assert (done.code, f"was not found at {weekly}" in done.err, "--file FILE" in done.err) == (2, True, True)
    assert call("pipeline", "status", "--stale", "--file", moved, "-C", root).code == 0
    assert call("pipeline", "verify", "--file", moved, "-C", root).code == 0


def test_all_that_was_proved_is_held_against_the_checks_of_now(call, root, weekly):
    done = call("pipeline", "verify", "-C", root)
    assert done.code == 0
    assert [line.split() for line in done.out.splitlines()[1:]] == [
        ["stage", "proved", "in", "order", "not"],
        ["gather", "2", "2"],
        ["edit", "1", "1"],
    ]
    (root / "artifacts" / "notes" / "b.md").write_text("No marker.\n", "utf-8")
    check = '{sections: [All]}, {command: [sh, -c, "! grep -q well $0"]}'
    weekly.write_text(weekly.read_text("utf-8").replace("{sections: [All]}", check), "utf-8")
    before = (root / "history.jsonl").read_text("utf-8").count('"StageProved"')
    done = call("pipeline", "verify", "-C", root, "--json")
    assert (done.code, done.json["checked"], done.json["failed"]) == (1, 3, 2)
    faults = {one["step"]: one.get("faults", []) for one in done.json["steps"]}
    assert faults["gather[a]"] == []
    assert "notes/b.md is unfinished" in faults["gather[b]"][0]
    assert "ended with 1" in faults["edit"][0]
    assert "✗ edit" in call("pipeline", "verify", "-C", root).out
    assert (root / "history.jsonl").read_text("utf-8").count('"StageProved"') == before


def test_json_of_a_workspace_without_a_pipeline(call, root):
    assert json.loads(call("pipeline", "verify", "--json", "-C", root).out) == {"pipelines": []}
