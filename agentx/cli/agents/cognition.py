"""``agentx agent cognition``: how a cognitive agent remembers, retrieves and spends."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal, facts
from agentx.cognition.logs import FOLDER
from agentx.cognition.overview import Overview, overview
from agentx.cognition.pictures.report import summary, write_report
from agentx.cognition.pictures.spending import duration
from agentx.storage.text import plain


def report(
    terminal: Terminal,
    session: Annotated[
        str, typer.Option(metavar="NAME", show_default=False, help="The session; the latest by default.")
    ] = "",
    to: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", show_default=False, help=f"Where to; {FOLDER}/report in the workspace by default."
        ),
    ] = None,
) -> None:
    """Draw a session: decay and use of each memory, fetches, time and cost."""
    with opened(terminal) as ws:
        seen = overview(ws.engine, session)
        if seen is None:
            nothing = "No cognitive agent has answered here. Start one with "
            terminal.result(
                {"sessions": []}, Text(f"{nothing}`agentx run --agent cognitive MESSAGE`.", "dim")
            )
            return
        with terminal.busy("Drawing"):
            page, *pictures = map(str, write_report(seen, to or ws.root / FOLDER / "report"))
    headline = str(summary(seen))
    document = {
        "session": seen.session,
        "message": headline,
        "page": page,
        "pictures": pictures,
        "collected": seen.collected,
        "triggers": seen.triggers,
    }
    terminal.result(document, Text(plain(headline), "bold"), facts(_rows(seen, page)))


def _rows(seen: Overview, page: str) -> Iterator[tuple[str, str | Text]]:
    yield "session", seen.session
    yield "memories", f"{len(seen.curves):,}, {len(seen.held):,} of them held"
    if (taken := seen.collected.metrics.get("total_latency_ms")) is not None:
        yield "latency", f"median {duration(taken.p50)}, 95 % under {duration(taken.p95)}"
    if (judged := seen.collected.metrics.get("judge_score")) is not None:
        yield "judged", f"{judged.mean:.2f} on average"
    if faults := sum(seen.collected.faults.values()):
        yield "faults", Text(f"{faults:,}", "yellow")
    if seen.others:
        yield "others", ", ".join(f"{name} ({count:,})" for name, count in seen.others.items())
    yield "page", Text(plain(page), "cyan")
