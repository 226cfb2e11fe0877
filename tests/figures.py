"""The figures and the one table that they are shown in."""

import datetime as dt
import json
import os
import platform
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

_WIDTH = 170

BASELINE = Path(__file__).with_name("baseline.json")
"""Figures that were taken once, before parts are rebuilt: what later runs are printed beside."""


@dataclass(frozen=True)
class Figure:
    """One measured value.

    Attributes:
        key: Its name in the flat object; the unit comes last.
        measure: What a person reads.
        value: As measured.
        at_least: The worst value that is good enough; ``None`` where nothing is promised.
        aim: What is aimed at.
        more_is_better: As for a rate; otherwise less is better.
        beside: What was measured in the same run, to compare with.
        processor: The same by the processor's clock, where it was taken; steadier on a busy machine.
        comparable: Whether the ratio of two such values says anything; that of two exponents does not.
    """

    key: str
    measure: str
    value: float
    at_least: float | None = None
    aim: float | None = None
    more_is_better: bool = False
    beside: str = ""
    processor: float | None = None
    comparable: bool = True

    @property
    def verdict(self) -> str:
        if self.at_least is None or self.aim is None:
            return ""
        sign = -1 if self.more_is_better else 1
        if sign * self.value <= sign * self.aim:
            return "aim"
        return "good" if sign * self.value <= sign * self.at_least else "short"


COLOURS = {"aim": "green", "good": "yellow", "short": "red", "": ""}


def number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def machine() -> str:
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return (
        f"{dt.datetime.now(tz=dt.UTC).date()}, {os.cpu_count()} cores, {memory_gb:.0f} GB, "
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    )


def show(figures: Iterable[Figure], machine: str, before: dict[str, float] | None = None) -> None:
    """Print the table; with a column of the baseline, if it has any of the figures."""
    figures, before = list(figures), before or {}
    columns = {
        "measure": [figure.measure for figure in figures],
        "at least": [number(figure.at_least) for figure in figures],
        "aim": [number(figure.aim) for figure in figures],
        "measured": [number(figure.value) for figure in figures],
        "baseline": [number(before.get(figure.key)) for figure in figures],
        "verdict": [figure.verdict for figure in figures],
        "beside, in the same run": [figure.beside for figure in figures],
    }
    columns = {name: cells for name, cells in columns.items() if set(cells) - {"", number(None)}}
    table = Table(title=machine, title_justify="left")
    for name in columns:
        table.add_column(
            name, justify="right" if name in ("at least", "aim", "measured", "baseline") else "left"
        )
    for figure, *cells in zip(figures, *columns.values(), strict=True):
        table.add_row(*cells, style=COLOURS[figure.verdict])
    Console(width=None if sys.stdout.isatty() else _WIDTH).print(table)


def baseline(of: str) -> dict[str, float]:
    """Return the kept figures of ``house``, ``eval``, ``suite`` or ``bench SCALE``, by their keys."""
    kept = json.loads(BASELINE.read_text("utf-8")) if BASELINE.exists() else {}
    return dict(kept.get(of, {}).get("figures", {}))


def keep_baseline(of: str, figures: Iterable[Figure]) -> None:
    """Make these figures the baseline."""
    kept = json.loads(BASELINE.read_text("utf-8")) if BASELINE.exists() else {}
    kept[of] = {"machine": machine(), "figures": {figure.key: round(figure.value, 4) for figure in figures}}
    BASELINE.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", "utf-8")


def flat(figures: Iterable[Figure], machine: str) -> str:
    return json.dumps({"machine": machine} | {figure.key: figure.value for figure in figures}, indent=1)
