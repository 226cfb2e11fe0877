"""The report on a session: a message, pictures that stand alone, a page that holds all of it, and the command for it."""

import math
import re
import shutil
import xml.etree.ElementTree as ET
from itertools import pairwise

import matplotlib as mpl
import pytest

from agentx import Workspace
from agentx.cli.main import main
from agentx.cognition.overview import overview
from agentx.cognition.pictures import pictures
from agentx.cognition.pictures.canvas import LIGHT, wrapped
from agentx.cognition.pictures.decay_curves import PANELS, decay_line
from agentx.cognition.pictures.report import summary, write_report
from agentx.pipelines.drawing.text_width import text_width
from agentx.settings import Settings
from tests.agentx.cognition.histories import SAID, play

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def root(base):
    """A workspace with a session of many memories and a later, short one that asked no model."""
    settings = Settings(cache_dir=base / "no-models")
    with Workspace.create(base / "bakery", title="Bakery <& Sons>", settings=settings) as ws:
        play(ws, interactions=40)
        ws.say("\x1b[2J 今日は 🥐")
        play(ws, "short", interactions=2, seed=1, model=False)
    return base / "bakery"


@pytest.fixture(scope="module")
def seen(root, base):
    with Workspace.open(root, settings=Settings(cache_dir=base / "no-models")) as ws:
        return overview(ws.engine, "bakery")


@pytest.fixture(scope="module")
def report(seen, base):
    """The files of the report on the long session, by name, as text."""
    return {path.name: path.read_text("utf-8") for path in write_report(seen, base / "to" / "report")}


def texts(svg):
    return ["".join(text.itertext()) for text in ET.fromstring(svg).iter(f"{SVG}text")]


def test_the_message_says_how_many_how_often_and_what_it_cost(seen):
    fetched = sum(one.metrics.activator_trigger_count > 0 for one in seen.interactions)
    assert 0 < fetched < 40
    cost = f"{seen.collected.total_tokens:,} tokens for $0.08"
    assert str(summary(seen)) == f"40 interactions, memories fetched in {fetched} of them, {cost}."


def test_the_page_holds_the_message_and_every_picture_and_asks_nobody(report):
    page = report["index.html"]
    assert set(report) == {"index.html"} | {
        f"{name}.svg" for name in ("pulse", "decay", "memories", "triggers", "latency", "tokens", "judge")
    }
    assert page.count("<svg") == len(report) - 1
    assert "<title>Bakery &lt;&amp; Sons&gt; · bakery</title>" in page
    assert "40 interactions, " in re.sub("<[^>]+>", "", page)
    assert "<script" not in page
    outside = [
        place for place in re.findall(r"(?:src|href)=\"([^\"#]+)", page) if not place.startswith("data:")
    ]
    assert outside == []
    names = re.findall(r'\bid="([^"]+)"', page)
    assert len(names) == len(set(names))


def test_a_picture_stands_alone_in_light_and_in_dark(report):
    for name, svg in report.items():
        if name.endswith(".svg"):
            style, _, drawn = svg.partition("</style>")
            assert "prefers-color-scheme: dark" in style
            assert re.findall(r"#[0-9a-fA-F]{6}\b", drawn) == [], name
            assert set(re.findall(r"var\(--(\w+)\)", drawn)) <= set(LIGHT)
            assert ET.fromstring(svg).get("aria-label")


def test_the_curve_of_a_memory_bears_its_text_and_marks_its_uses(seen, report):
    shown = " ".join(" ".join(texts(report["decay.svg"])).split())
    assert "Prices rose by five cents ($0.05) in March & again in June." in shown
    assert "The health inspector came twice last year <without notice>." in shown
    assert "what is known what happened came before the agent" in shown
    assert {"var(--blue)", "var(--teal)"} <= set(re.findall(r"stroke: (var[^;\"]+)", report["decay.svg"]))
    titles = [title.text for title in ET.fromstring(report["decay.svg"]).iter(f"{SVG}title")]
    assert len(titles) == PANELS < len(seen.curves) == len(SAID)
    name, curve = next(iter(seen.curves.items()))
    used = sum(point.was_reinforced for point in curve)
    assert titles[0].startswith(f"{name}: {SAID[0]}")
    assert titles[0].endswith(f"used {used} times")


def test_the_line_falls_between_interactions_jumps_at_a_use_and_breaks_where_the_memory_was_gone(seen):
    for curve in seen.curves.values():
        line = list(decay_line(curve, 4))
        for point in curve:
            assert (point.interaction_id, point.decay_score) in line
        assert all(0 <= y <= 1 for _, y in line if not math.isnan(y))
    (gone, back), *_ = [
        (one, two) for curve in seen.curves.values() for one, two in pairwise(curve) if one.was_evicted
    ]
    line = list(decay_line((gone, back), 4))
    assert [math.isnan(y) for _, y in line] == [False, True, False]


def test_the_same_history_gives_the_same_pictures_whatever_a_person_has_set_up_for_their_own(seen, report):
    with mpl.rc_context({"backend": "pdf", "lines.linewidth": 9, "svg.fonttype": "path"}):
        again = pictures(seen)
        kept = [mpl.rcParams[name] for name in ("backend", "lines.linewidth", "svg.fonttype")]
    assert kept == ["pdf", 9, "path"]
    assert all(svg.partition(">")[2] in report[f"{name}.svg"] for name, svg in again.items())


def test_what_was_not_there_is_not_drawn(root, base, recwarn):
    with Workspace.open(root, settings=Settings(cache_dir=base / "no-models")) as ws:
        short = overview(ws.engine)
    assert (short.session, short.others) == ("short", {"bakery": 40})
    assert "no model asked" in str(summary(short))
    short.texts.update(dict.fromkeys(short.curves, "\x1b[2J 今日は 🥐 \x00 ends"))
    drawn = pictures(short)
    assert {"tokens", "memories"} & set(drawn) == set()
    assert "[2J 今日は 🥐 ends" in texts(drawn["decay"])
    assert not recwarn.list


@pytest.mark.parametrize(
    "text", ["", "word", "many words " * 40, "x" * 300, "一二三四五" * 40, "a " + "W" * 90]
)
def test_a_heading_keeps_to_its_room(text):
    lines = wrapped(text, 290, 11)
    assert 1 <= len(lines) <= 2
    assert all(text_width(line, 11) <= 290 for line in lines)
    cut = " ".join(lines) != " ".join(text.split())
    assert cut == lines[-1].endswith("…")


def test_the_command_draws_the_latest_session_or_another_one(root, tmp_path, capsys):
    copy = shutil.copytree(root, tmp_path / "copy", symlinks=True)
    assert main(["-C", str(copy), "agent", "cognition", "report"]) == 0
    shown = capsys.readouterr().out
    assert "2 interactions" in shown
    assert "bakery (40)" in shown
    page = copy / ".agentx" / "metrics" / "report" / "index.html"
    assert str(page) in shown
    assert "2 interactions" in re.sub("<[^>]+>", "", page.read_text("utf-8"))


def test_what_cannot_be_drawn_is_told_in_a_sentence(root, tmp_path, capsys):
    assert main(["-C", str(root), "agent", "cognition", "report", "--session", "baker"]) == 2
    assert "Unknown session 'baker'. Known: bakery, short." in capsys.readouterr().err
    (tmp_path / "file").write_text("in the way")
    assert main(["-C", str(root), "agent", "cognition", "report", "--to", str(tmp_path / "file" / "x")]) == 2
    assert "The report cannot be written to" in capsys.readouterr().err
