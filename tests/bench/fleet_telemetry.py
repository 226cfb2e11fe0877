"""What OpenTelemetry costs a run of a fleet: processor time of a worker and all that it started, with and without.

    python -m tests.bench.fleet_telemetry

Both workers have the same runs in turns, so that the machine's other work meets both. A receiver in this process
decodes nothing and answers at once.
"""

import argparse
import json
import os
import statistics
import tempfile
from contextlib import suppress
from pathlib import Path

from tests.agentx.fleet.fleets import Fleet, wait_for
from tests.agentx.fleet.receiver import Receiver

TICKS = os.sysconf("SC_CLK_TCK")


def spent(worker):
    """Return the processor seconds of a worker, and of everything that it started, so far."""
    mark, ticks = f"FLEET_HOLD={worker.hold}".encode(), 0
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (place / "environ").read_bytes().split(b"\0"):
                fields = (place / "stat").read_text().rpartition(")")[2].split()
                ticks += sum(map(int, fields[11:15]))  # its own, and of the children that it waited for
    return ticks / TICKS


def measure(rounds, runs):
    receiver, found = Receiver(), {"without": [], "with": []}
    with tempfile.TemporaryDirectory(prefix="agentx-fleet-", ignore_cleanup_errors=True) as folder:
        fleets = {}
        for kind in found:
            root = Path(folder) / kind
            root.mkdir()
            fleet = fleets[kind] = Fleet(root)
            worker = fleet.worker("worker")
            if kind == "with":
                worker.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = receiver.url
            worker.start()
            fleet.submit("task", "Do this first.")
            wait_for(fleet.all_ended)
        try:
            for _ in range(rounds):
                for kind, fleet in fleets.items():
                    before = spent(fleet.workers[0])
                    fleet.submit("task", *(f"Do this for the {number}th time." for number in range(runs)))
                    wait_for(fleet.all_ended)
                    found[kind].append(1000 * (spent(fleet.workers[0]) - before) / runs)
        finally:
            for fleet in fleets.values():
                fleet.workers[0].end()
            spans = len(receiver.spans)
            receiver.close()
    print(
        json.dumps(
            {
                **{f"{kind}_ms": [round(one) for one in times] for kind, times in found.items()},
                "ratio_of_medians": round(statistics.median(found["with"]) / statistics.median(found["without"]), 3),
                "ratio_of_least": round(min(found["with"]) / min(found["without"]), 3),
                "spans": spans,
            }
        )
    )  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=12)
    given = parser.parse_args()
    measure(given.rounds, given.runs)
