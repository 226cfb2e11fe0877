"""The measurements behind docs/capacity.md run with the fleet as it is now, and the page can be computed from them."""

import json
import subprocess
import sys

from tests.agentx.fleet.fleets import ROOT
from tests.agentx.fleet.test_fleet import slow
from tests.bench.capacity.__main__ import costs_of


@slow
def test_a_fleet_is_measured_and_its_costs_follow(tmp_path):
    to = tmp_path / "measured.json"
    command = [sys.executable, "-m", "tests.bench.capacity.measure", "--to", str(to)]
    subprocess.run(
        [*command, "--workspaces", "3", "--runs", "2", "--backlogs", "5"], cwd=ROOT, check=True, timeout=110
    )
    measured = json.loads(to.read_text())
    assert [row["workers"] for row in measured["throughput"]] == [1, 2, 3]
    costs = costs_of(measured, 10)
    assert min(*costs.fetch, *costs.run, *costs.push, costs.database) > 0
