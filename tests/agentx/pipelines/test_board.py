"""How a pipeline that runs stands: what became of every stage and item, for 3 items and for 99."""

from datetime import UTC, datetime

import msgspec
import pytest
from rich.console import Console

from agentx.cli.pipeline.board import shown
from agentx.pipelines.board import board_of
from agentx.synthesis.model.port import Usage
from agentx.synthesis.pipelines.definition.reading import parse
from agentx.synthesis.pipelines.definition.steps import resolve
from agentx.synthesis.pipelines.running.pipeline_progress import Failure, Progress, Proof, RoundVerdict, Sent

PIPELINE = """
pipeline: notes
title: Notes
items: {{part: {parts}}}
files:
  plan: {{path: plan.md}}
  text: {{path: "texts/{{{{ part.id }}}}.md"}}
  look: {{path: "looks/{{{{ part.id }}}}.md"}}
roles:
  planner: {{writes: [{{file: plan}}]}}
  writer: {{reads: [{{file: plan}}], writes: [{{file: text}}], attempts: 2}}
  looker: {{reads: [{{file: text}}], writes: [{{file: look, verdict: true}}], attempts: 2}}
stages:
  - {{id: plan, role: planner}}
  - loop: revise
    for_each: part
    after: plan
    until: {{file: look}}
    at_most: 2
    stages: [{{id: write, role: writer}}, {{id: look, role: looker, after: write}}]
"""
NOW = datetime(2026, 1, 1, 12, 2, tzinfo=UTC)


def notes(parts):
    plan = resolve(*parse(PIPELINE.format(parts=parts)))
    progress = Progress("notes", status="RUNNING", started_at="2026-01-01T12:00:00Z", dispatches=9, retries=4)
    progress.usage = Usage(1_000, 234, 0.05)
    progress.proved["plan"] = Proof(1, 1, "", ())
    _judged(progress, "01", 10, "PASS")
    _judged(progress, "02", 20, "FAIL")
    progress.running["r-9"] = Sent("notes", "write[02]", "writer", 2, 0, "r-9", 23, "2026-01-01T12:01:48Z")
    progress.failures["write[03]"] = [
        Failure(30, 1, "It is [b]too[/b] short."),
        Failure(31, 1, "It is empty."),
    ]
    return plan, progress


def _judged(progress, item, seq, verdict):
    progress.proved[f"write[{item}]"] = Proof(seq, 1, "", ())
    progress.proved[f"look[{item}]"] = Proof(seq + 1, 1, verdict, ())
    progress.verdicts[f"look[{item}]"] = [RoundVerdict(seq + 1, 1, verdict == "PASS")]


def text_of(board, width):
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(shown(board, width, NOW))
    return [line.rstrip() for line in captured.get().splitlines()]


def test_every_stage_and_item_has_its_mark():
    board = board_of(*notes(3))
    marks = {cell.key: (cell.mark, cell.round) for row in board.rows for cell in row.cells}
    assert marks == {
        "plan": ("proved", 1),
        "write[01]": ("proved", 1),
        "look[01]": ("proved", 1),
        "write[02]": ("running", 2),
        "look[02]": ("again", 2),
        "write[03]": ("failed", 1),
        "look[03]": ("waiting", 1),
    }
    assert (board.proved, board.steps, board.tokens) == (3, 7, 1_234)


def test_what_a_person_has_to_say_yes_to_asks():
    plan, progress = notes(4)
    progress.waiting["write[04]"] = "r-12"
    cells = {cell.key: cell.mark for row in board_of(plan, progress).rows for cell in row.cells}
    assert cells["write[04]"] == "asks"


def test_where_there_is_room_it_is_a_table_of_stages_and_items():
    lines = text_of(board_of(*notes(3)), 80)
    assert lines[0] == "Notes  RUNNING"
    assert lines[2] == "3 of 7 proved · 9 dispatches · 4 not accepted · 1,234 tokens · $0.0500 · 2m"
    assert [line.split() for line in lines[4:8]] == [
        ["plan", "✓"],
        ["part", "01", "02", "03"],
        ["write", "✓", "▶12s", "✗"],
        ["look", "✓", "↻2", "·"],
    ]
    board = board_of(*notes(3))
    rows = [msgspec.structs.replace(row, for_each=row.for_each and "participant") for row in board.rows]
    named = msgspec.structs.replace(board, rows=tuple(rows), items={"participant": board.items["part"]})
    assert text_of(named, 80)[5].split() == ["participant", "01", "02", "03"]
    assert "write[02]  ▶ writer, round 2  12s" in lines
    assert "write[03]  ✗ writer: It is empty." in lines


@pytest.mark.parametrize("width", [80, 120])
def test_where_there_is_none_each_stage_is_counted(width):
    assert "write[02]  ▶ writer, round 2  12s" in text_of(board_of(*notes(99)), width)
    lines = text_of(board_of(*notes(99)), width)
    assert all(len(line) <= width for line in lines)
    [write] = [line.split() for line in lines if line.startswith("write ")]
    assert write[2:] == ["1", "▶", "1", "✗", "1"]
    assert len(lines) < 20


@pytest.mark.parametrize(("otherwise", "mark"), [("go-on", "not_passed"), ("fail", "failed")])
def test_a_last_verdict_of_fail_has_its_own_mark_where_the_pipeline_goes_on(otherwise, mark):
    text = PIPELINE.format(parts=2).replace("at_most: 2", f"at_most: 1\n    otherwise: {otherwise}")
    plan, progress = resolve(*parse(text)), notes(2)[1]
    progress.running.clear()
    progress.status = "COMPLETED" if mark == "not_passed" else "FAILED"
    board = board_of(plan, progress)
    cells = {cell.key: cell for row in board.rows for cell in row.cells}
    assert (cells["look[01]"].mark, cells["look[02]"].mark) == ("proved", mark)
    lines = text_of(board, 80)
    if mark == "not_passed":
        assert (board.proved, board.not_passed, board.status) == (5, 1, "COMPLETED")
        assert lines[2].startswith("5 of 5 proved · 1 with the verdict FAIL · ")
        assert "look[02]  ! looker: the verdict in looks/02.md is FAIL" in lines
    else:
        assert (board.proved, board.not_passed) == (3, 0)


MANY = """
pipeline: many
items: {part: 125}
files: {a: {path: "a/{{ part.id }}.md"}, b: {path: "b/{{ part.id }}.md"}, c: {path: "c/{{ part.id }}.md"}}
roles:
  a: {writes: [{file: a}]}
  chief: {by: person, reads: [{file: a}]}
  b: {reads: [{file: a}], writes: [{file: b}], attempts: 1}
  c: {reads: [{file: a}], writes: [{file: c}]}
stages:
  - {id: a, role: a, for_each: part}
  - {id: accept, role: chief, for_each: part, after: a}
  - {id: b, role: b, for_each: part, after: a}
  - {id: c, role: c, for_each: part, after: accept}
"""


def test_500_steps_fit_a_screen_with_approvals_first():
    plan = resolve(*parse(MANY))
    progress = Progress("many", status="FAILED", started_at="2026-01-01T12:00:00Z", dispatches=250)
    for number in range(1, 126):
        item, run = f"{number:03}", f"r-{number}"
        progress.proved[f"a[{item}]"] = Proof(number, 1, "", ())
        sent = Sent("many", f"accept[{item}]", "chief", 1, 0, run, 200 + number, "2026-01-01T12:01:48Z")
        sent.asks, sent.shown = [f"accept-{item}-1"], {f"a/{item}.md": "blob", f"a/{item}-2.md": "blob"}
        progress.running[run], progress.waiting[sent.key] = sent, run
        progress.failures[f"b[{item}]"] = [Failure(500, 1, f"It failed. {'Words and words. ' * 30}")]
    console = Console(width=80, color_system=None)
    with console.capture() as captured:
        console.print(shown(board_of(plan, progress), 80, NOW, lambda _blob: "A line.\n\nMore.\n" * 40))
    lines = captured.get().splitlines()
    assert len(lines) <= 24
    approvals = [number for number, line in enumerate(lines) if "agentx approve accept-" in line]
    assert approvals[0] < next(number for number, line in enumerate(lines) if line.startswith("part"))
    assert any("122 more wait for you" in line for line in lines)
    assert any(line.lstrip().startswith("and 123 more") for line in lines)
    assert any(line.startswith("b[001]") for line in lines)
