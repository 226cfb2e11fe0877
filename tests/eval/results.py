"""The kept results of the evaluation, and the tables that ``docs/evaluation.md`` shows of them.

The page is the only place of these figures, and its tables are made from the kept file: so no figure is stated twice
or stays behind when it is measured again. ``tests/eval/test_results.py`` checks both.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.figures import Figure, machine

RESULTS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).parents[2] / "docs" / "evaluation.md"

_BLOCK = re.compile(r"(<!-- eval: ([a-z_]+) -->\n).*?(<!-- end -->)", re.DOTALL)

Results = dict[str, Any]
"""By section: when and where it was run, how long that took, and its figures."""


def read(path: Path = RESULTS) -> Results:
    """The kept results."""
    kept: Results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return kept


def keep(section: str, figures: Sequence[Figure], seconds: float, path: Path = RESULTS) -> None:
    """Replace the results of one section."""
    made = {"machine": machine(), "seconds": round(seconds), "figures": [asdict(one) for one in figures]}
    kept = dict(sorted((read(path) | {section: made}).items()))
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def tables(page: str, results: Results) -> str:
    """A page with the tables between its marks made anew."""
    return _BLOCK.sub(lambda block: f"{block[1]}{_table(results.get(block[2]))}{block[3]}", page)


def shown(page: str) -> list[str]:
    """The sections that a page has a table of."""
    return [block[2] for block in _BLOCK.finditer(page)]


def _table(section: Mapping[str, Any] | None) -> str:
    if section is None:
        return "Not measured yet.\n"
    lines = ["| | measured | aim | beside, in the same run |", "|---|---|---|---|"]
    lines += [_row(Figure(**one)) for one in section["figures"]]
    taken = f"; {section['seconds']:,} s" if section["seconds"] else ""
    return "\n".join([*lines, "", f"{section['machine']}{taken}.", ""])


def _row(figure: Figure) -> str:
    aim = "" if figure.aim is None else number(figure.aim)
    if figure.verdict in {"good", "short"}:
        aim = f"**{aim}, missed**"
    cells = (figure.measure, number(figure.value), aim, figure.beside)
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def number(value: float) -> str:
    """A count as it is, a share with three decimals."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}"
