"""``python -m tests.faults``: bring every kind of fault about, and count what was lost; it must be nothing.

python -m tests.faults                    all of it, as `make faults` does
python -m tests.faults --n 50             a tenth of it
python -m tests.faults power locks        some sections
python -m tests.faults queue:0:16x300:1   16 writers for 300 seconds
python -m tests.faults cut:75::75         one run, by the name that stands beside a finding; its workspace is kept
"""

import argparse
import dataclasses
import json
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from . import plan, runs
from .runs import Job, Outcome

SHOWN = 12
"""So many findings are told in full."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the faults; 1 where something is not as it must be."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "what", nargs="*", help=f"sections ({', '.join(plan.SECTIONS)}) or runs; all by default"
    )
    parser.add_argument("--n", type=int, default=plan.WHOLE, help=f"how much; {plan.WHOLE} is all (default)")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is left to chance")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.what if ":" not in name and name not in plan.SECTIONS]
    if unknown:
        parser.error(f"there is no section {unknown[0]!r}; there are {', '.join(plan.SECTIONS)}")
    outcomes = _run(given.what, given.n, given.seed)
    if given.json:
        print(json.dumps(_document(outcomes), indent=2))
    else:
        _show(outcomes)
    return int(any(one.findings for one in outcomes))


def _run(what: Sequence[str], n: int, seed: int) -> list[Outcome]:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description:30}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    named = [_named(name) for name in what if ":" in name]
    with (
        tempfile.TemporaryDirectory(prefix="agentx-faults-", dir=runs.fast_place()) as folder,
        ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool,
        Progress(*columns, console=console) as progress,
    ):
        template = Path(folder)
        pool.submit(runs.make_template, template).result()
        outcomes: list[Outcome] = []
        work = {"runs by name": named} if named else {}
        for name, (title, _) in plan.SECTIONS.items():
            if name in what or not what:
                work[title] = pool.submit(plan.jobs, name, n, seed, template).result()
        done = partial(plan.do, template=template, keep=bool(named))
        for title, jobs in work.items():
            running = [pool.submit(done, job) for job in jobs]
            for finished in progress.track(as_completed(running), len(jobs), description=title):
                outcome, place = finished.result()
                outcomes.append(outcome)
                if named:
                    console.print(f"{outcome.job}: at {outcome.step!r}; kept in {place}")
    return outcomes


def _named(name: str) -> Job:
    kind, at, detail, seed = name.split(":")
    return Job(kind, int(at), detail, int(seed))


def _document(outcomes: Sequence[Outcome]) -> dict[str, object]:
    return {
        "sections": {name: dataclasses.asdict(total) for name, total in plan.sums(outcomes).items()},
        "notes": [note for one in outcomes for note in one.notes],
        "findings": [
            {"run": str(one.job), "step": one.step, "finding": finding} for one in outcomes for finding in one.findings
        ],
    }  # fmt: skip


def _show(outcomes: Sequence[Outcome]) -> None:
    console = Console()
    found = [(one, finding) for one in outcomes for finding in one.findings]
    for one, finding in found[:SHOWN]:
        console.print(f"[red]{one.job}[/red] [dim]{one.step}[/dim] {escape(finding)}")
    if len(found) > SHOWN:
        console.print(f"[red]and {len(found) - SHOWN} more; --json lists them all[/red]")
    table = Table(box=None, header_style="dim", pad_edge=False)
    for title in ("survived", "", "torn", "acknowledged", "lost", "findings"):
        table.add_column(title, justify="left" if not title else "right")
    totals = list(plan.sums(outcomes).values())
    for total in totals:
        table.add_row(*_cells(total))
    if len(totals) > 1:
        table.add_section()
        table.add_row(
            *_cells(plan.Sum("in all", *(sum(column) for column in zip(*map(_figures, totals), strict=True))))
        )
    console.print(table)
    for one in outcomes:
        for note in one.notes:
            console.print(f"[dim]{note}[/dim]")


def _figures(total: plan.Sum) -> tuple[int, ...]:
    return dataclasses.astuple(total)[1:]


def _cells(total: plan.Sum) -> list[str]:
    def bad(figure: int) -> str:
        return f"[bold red]{figure:,}[/bold red]" if figure else "[green]0[/green]"

    return [
        f"{total.survived:,}", total.what, f"{total.torn:,}", f"{total.acknowledged:,}", bad(total.lost), bad(total.findings),
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
