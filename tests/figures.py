"""The figures and the one table that they are shown in."""

import datetime as dt
import json
import os
import platform
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

_WIDTH = 170


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


def show(figures: Iterable[Figure], machine: str) -> None:
    table = Table(title=machine, title_justify="left")
    for name in ("measure", "at least", "aim", "measured", "verdict", "beside, in the same run"):
        table.add_column(name, justify="right" if name in ("at least", "aim", "measured") else "left")
    for figure in figures:
        colour = COLOURS[figure.verdict]
        cells = (number(figure.at_least), number(figure.aim), number(figure.value), figure.verdict)
        table.add_row(figure.measure, *cells, figure.beside, style=colour)
    Console(width=None if sys.stdout.isatty() else _WIDTH).print(table)


def flat(figures: Iterable[Figure], machine: str) -> str:
    return json.dumps({"machine": machine} | {figure.key: figure.value for figure in figures}, indent=1)
