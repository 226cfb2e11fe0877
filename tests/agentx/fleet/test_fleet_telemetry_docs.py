"""The page on watching a fleet, its dashboard and its alerts name what the code reports."""

import json
import re
from itertools import combinations
from pathlib import Path

from agentx.fleet.telemetry import METRICS, SPANS
from tests.draw_fleet_dashboard import PLACE, text

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "fleet-observability.md").read_text("utf-8")
NAMES = {
    one.prometheus + suffix
    for one in METRICS
    for suffix in (("_bucket", "_sum", "_count") if one.kind == "histogram" else ("",))
}
LABELS = {name.replace(".", "_") for one in METRICS for name in one.attributes}
OURS = re.compile(r"\b(?:agentx|gen_ai)_[a-z_]+")


def rows(header):
    table = PAGE.partition(header)[2].partition("\n\n")[0]
    return [line for line in table.splitlines() if line.startswith("| `")]


def test_the_tables_of_spans_and_metrics_are_those_of_the_code():
    assert rows("| span | what |") == [f"| `{name}` | {about} |" for name, about in SPANS.items()]
    assert rows("| metric | Prometheus |") == [
        f"| `{one.name}` ({one.unit}) | `{one.prometheus}` | {one.kind} | "
        f"{', '.join(f'`{name}`' for name in one.attributes)} | {one.about} |"
        for one in METRICS
    ]


def test_the_dashboard_is_what_its_program_writes_its_metrics_exist_and_no_panels_overlap():
    assert PLACE.read_text("utf-8") == text(), "Run `python -m tests.draw_fleet_dashboard`."
    found = json.loads(text())
    queries = [target["expr"] for panel in found["panels"] for target in panel["targets"]]
    queries += [one["query"]["query"] for one in found["templating"]["list"] if one["type"] == "query"]
    named = {name for query in queries for name in OURS.findall(query)}
    assert named <= NAMES | LABELS
    shown = {one.name for one in METRICS if any(name.startswith(one.prometheus) for name in named)}
    assert shown == {one.name for one in METRICS}
    assert len({panel["id"] for panel in found["panels"]}) == len(found["panels"])
    places = [panel["gridPos"] for panel in found["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for one, other in combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        assert beside or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]


def test_the_alerts_name_metrics_and_labels_that_exist():
    rules = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[1]
    named = set(OURS.findall(rules))
    assert len(named) > 6
    assert named <= NAMES | LABELS
