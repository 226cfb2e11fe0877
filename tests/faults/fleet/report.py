"""What came of the faults: for each kind, how often, and how the runs went on that it hit."""

import msgspec
from rich.console import Console
from rich.table import Table

from .chaos import KINDS


def outcomes(faults, rows, resumed, asides):
    """Return a row for each kind of fault.

    Args:
        faults: The faults.
        rows: The queue's row of each submission, by id.
        resumed: How often the run of a submission was resumed, by id.
        asides: Ids of submissions of which events were set aside.

    A run that was hit several times counts for each of the faults.
    """
    found = {}
    for fault in faults:
        row = found.setdefault(
            fault.kind,
            {"fault": KINDS[fault.kind], "times": 0, "runs": 0, "resumed": 0, "found_done": 0, "repeated": 0, "went_on": 0, "set_aside": 0},
        )  # fmt: skip
        row["times"] += 1
        row["runs"] += len(fault.runs)
        for one in fault.runs:
            queued, result = rows[one]
            row["set_aside"] += one in asides
            if resumed.get(one):
                row["resumed"] += 1
            elif result.get("already"):
                row["found_done"] += 1
            elif one in asides or queued.started_ms > fault.ended_ms or queued.worker not in fault.workers:
                row["repeated"] += 1
            else:
                row["went_on"] += 1
    return [found[kind] for kind in KINDS if kind in found]


def result_of(queued):
    return msgspec.json.decode(queued.result) if queued.result else {}


def markdown(document):
    """The outcomes and the figures, for ``docs/fleet.md``."""
    figures, given = document["figures"], document["given"]
    lines = [
        "| fault | times | runs hit | went on | resumed | repeated by another | found done | events set aside |",
        "|" + "---|" * 8,
    ]
    for row in document["outcomes"]:
        keys = ("times", "runs", "went_on", "resumed", "repeated", "found_done", "set_aside")
        lines.append("| " + " | ".join([row["fault"], *(str(row[key]) for key in keys)]) + " |")
    said = (
        f"With `N={given['workspaces']} RUNS={given['runs']} SEED={given['seed']}` on two cores (load average "
        f"{figures['load average'][1]:.0f}), a lease of {given['lease']:g} seconds and a fault every {given['gap']:g}: "
        f"{figures['runs']:,} runs, {figures['faults']} faults, {figures['runs a second']} runs a second, "
        f"{figures['seconds in all'] / 60:.0f} minutes with all checks; {figures['events witnessed']:,} events recorded by "
        f"workers, {figures['side refs']} side refs; {len(document['findings'])} findings."
    )
    return "\n".join([said, "", *lines])


def show(document, console=None):
    """Print the findings, the table of faults and outcomes, and the figures."""
    console = console or Console(width=150)
    table = Table("fault", "times", "runs hit", "went on", "resumed", "repeated", "found done", "events set aside", title="Faults and outcomes")  # fmt: skip
    for row in document["outcomes"]:
        keys = ("times", "runs", "went_on", "resumed", "repeated", "found_done", "set_aside")
        table.add_row(row["fault"], *(str(row[key]) for key in keys))
    console.print(table)
    for name, value in document["figures"].items():
        console.print(f"{name}: {value}")
    for one in document["left_out"]:
        console.print(f"left out: {one}")
    for one in document["findings"][:40]:
        console.print(f"[red]finding:[/] {one}", highlight=False, soft_wrap=True)
    wrong = len(document["findings"])
    console.print(f"{wrong} finding{'s' * (wrong != 1)}." if wrong else "All is as it must be.")
