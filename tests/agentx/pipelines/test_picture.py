"""The picture of a pipeline: what waits for what, and no text over another."""

import itertools
import re
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from agentx.pipelines.board import board_of
from agentx.pipelines.drawing.picture import picture
from agentx.synthesis.pipelines.definition.reading import parse
from agentx.synthesis.pipelines.definition.steps import resolve
from agentx.synthesis.pipelines.running.pipeline_progress import Progress, Proof, Sent

BUSY = """
pipeline: busy
title: Fish & <chips>
items: {part: 200}
files:
  a: {path: a.md}
  b: {path: "a/very/deep/folder/with/a/long/name/part-{{ part.id }}-and-some-more-of-it.md"}
  c: {path: c.md}
  d: {path: "d/{{ part.id }}.md"}
  e: {path: "e/{{ part.id }}.md"}
  f: {path: f.md}
  g: {path: g.md}
  h: {path: "h/{{ part.id }}.md"}
  log: {path: log.md, class: append-only}
roles:
  a: {title: WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW, writes: [{file: a}]}
  b: {title: 研究者, reads: [{file: a}], writes: [{file: b}]}
  c: {reads: [{file: a}], writes: [{file: c}]}
  d: {reads: [{file: a}, {file: b}], writes: [{file: d, verdict: true}]}
  e: {reads: [{file: d}], by: [python, e.py], writes: [{file: e}], appends: [{to: log, from: e}]}
  f: {reads: [{file: a}], writes: [{file: f}]}
  g: {reads: [{file: c}, {file: f}, {file: a}], writes: [{file: g}]}
  h: {reads: [{file: g}, {file: a}, {file: b}, {file: c}, {file: d}, {file: e}, {file: f}], writes: [{file: h}]}
stages:
  - {id: a, role: a}
  - {id: a-stage-whose-name-is-longer-than-any-box, role: c, after: a}
  - {id: b, role: b, for_each: part, after: a, after_previous: e}
  - loop: again
    for_each: part
    after: b
    after_previous: again
    until: {file: d}
    at_most: 5
    otherwise: go-on
    stages: [{id: d, role: d}]
  - {id: f, role: f, after: a}
  - {id: e, role: e, for_each: part, after: again}
  - {id: g, role: g, after: [a-stage-whose-name-is-longer-than-any-box, f]}
  - {id: h, role: h, for_each: part, after: [g, e, a]}
"""
SVG = "{http://www.w3.org/2000/svg}"
ROOT = Path(__file__).resolve().parents[3]
SAMPLE = ROOT / "sample_workspaces" / "technical-book" / "book.yaml"


class Seen:
    """A picture as it lies on the page: rectangles and texts in its own coordinates."""

    def __init__(self, svg):
        self.root = ET.fromstring(svg)
        self.cards, self.texts, self.lines, self.places = [], [], [], {}
        self._walk(self.root, 0.0, 0.0)

    def _walk(self, element, x, y):
        if moved := re.match(r"translate\(([\d.]+),([\d.]+)\)", element.get("transform", "")):
            x, y = x + float(moved[1]), y + float(moved[2])
        if element.tag == f"{SVG}rect" and element.get("class") in ("card", "frame dashed"):
            left, top = x + float(element.get("x")), y + float(element.get("y"))
            box = (left, top, left + float(element.get("width")), top + float(element.get("height")))
            self.cards.append(box)
        if element.tag == f"{SVG}text":
            self.texts.append((x + float(element.get("x")), y + float(element.get("y")), element.text))
        if element.tag == f"{SVG}path" and element.get("marker-end"):
            self.lines.append(element)
        if name := element.get("id"):
            self.places[name] = (x, y, element)
        for child in element:
            self._walk(child, x, y)

    def top(self, name):
        """Where the front card of a stage or loop begins."""
        _, y, element = self.places[name]
        return y + float([one for one in element if one.tag == f"{SVG}rect"][-1].get("y"))


@pytest.fixture(scope="module")
def busy():
    return Seen(picture(resolve(*parse(BUSY))))


def test_each_stage_stands_below_all_that_it_waits_for(busy):
    order = [("a", "b"), ("b", "again"), ("again", "e"), ("f", "g"), ("g", "h"), ("e", "h"), ("again", "d")]
    assert all(busy.top(one) < busy.top(other) for one, other in order)


def test_a_line_that_another_way_says_already_is_not_drawn(busy):
    # a→b, a→c, a→f, b→again, again→e, c→g, f→g, g→h, e→h and two to the item before; not a→h
    assert len(busy.lines) == 11
    assert sum("dashed" in line.get("class") for line in busy.lines) == 2


def test_no_text_stands_on_another_nor_off_the_page(busy):
    wide, high = float(busy.root.get("width")), float(busy.root.get("height"))
    for (x, y, text), (other_x, other_y, other) in itertools.combinations(busy.texts, 2):
        on_one_line = abs(y - other_y) < 11
        ends = x + 5.2 * len(text) if x <= other_x else other_x + 5.2 * len(other)
        assert not on_one_line or ends <= max(x, other_x), (text, other)
    for x, y, text in busy.texts:
        assert 0 <= x <= x + 5 * len(text) <= wide, text
        assert 0 <= y <= high - 5, text


def test_boxes_lie_beside_each_other_or_one_within_the_other(busy):
    cards = [card for card in busy.cards if card[3] - card[1] > 0]
    fronts = [card for card in cards if not _is_behind(card, cards)]
    for one, other in itertools.combinations(fronts, 2):
        apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
        assert apart or _within(one, other) or _within(other, one)


def _within(one, other):
    return one[0] >= other[0] and one[1] >= other[1] and one[2] <= other[2] and one[3] <= other[3]


def _is_behind(card, cards):
    """Whether it is a lower card of a stack: as high as another one, and a little below it."""
    return any(
        0 < card[1] - other[1] <= 12 and abs((card[3] - card[1]) - (other[3] - other[1])) < 0.1
        for other in cards
    )


def test_it_says_what_is_done_for_each_item_and_how_often_a_loop_runs(busy):
    said = [text for _, _, text in busy.texts]
    assert said[:2] == ["Fish & <chips>", "200 × part · 8 stages · 804 steps"]
    assert said.count("×200 part") == 4
    assert "↻ again · at most 5 rounds" in said
    assert "until d says PASS, otherwise it goes on" in said
    assert "+ log.md" in said
    assert "e · python" in said
    _, _, stage = busy.places["h"]
    assert len([one for one in stage if one.get("class") == "card"]) == 3  # a stack


def test_a_pipeline_that_was_started_is_drawn_as_it_stands():
    plan = resolve(*parse(BUSY))
    progress = Progress("busy", proved={"a": Proof(1, 1, "", ()), "b[001]": Proof(2, 1, "", ())})
    progress.running["r-1"] = Sent("busy", "b[002]", "b", 1, 0, "r-1", 3, "2026-01-01T12:00:00Z")
    seen = Seen(picture(plan, board_of(plan, progress)))
    said = {name: [one.text for one in seen.places[name][2].iter(f"{SVG}text")] for name in ("a", "b", "h")}
    assert "✓ 1 of 1" in said["a"]
    assert "✓ 1 of 200   ▶ 1" in said["b"]
    assert "✓ 0 of 200" in said["h"]
    front = {name: next(seen.places[name][2].iter(f"{SVG}rect")) for name in ("a", "b", "h")}
    assert [front[name].get("class") for name in "abh"] == ["card proved", "card running", "card waiting"]


def test_the_sample_is_drawn_with_all_of_its_stages():
    plan = resolve(*parse(SAMPLE.read_text("utf-8")))
    seen = Seen(picture(plan))
    assert {step.stage for step in plan.steps.values()} <= set(seen.places)


def test_the_picture_in_the_documentation_is_that_of_the_pipeline_to_begin_with():
    text = (files("agentx.pipelines") / "starter.yaml").read_text("utf-8")
    kept = (ROOT / "docs" / "images" / "pipeline.svg").read_text("utf-8")
    again = "agentx pipeline new essays; agentx pipeline graph essays.yaml --to docs/images/pipeline.svg"
    assert picture(resolve(*parse(text))) == kept, again
