"""The kept results of the evaluation, and the tables that ``docs/evaluation.md`` shows of them.

The page is the only place of these figures, and its tables are made from the kept file: so no figure is stated twice
or stays behind when it is measured again. ``tests/eval/test_results.py`` checks both. A table shows the figures that
have an aim, and those that its mark names: ``<!-- eval: beam; also beam.f1, beam.recall -->``; ``without`` names those
that are not shown. Where none has an aim, it shows all. The kept file has every figure, also for each half of the data.
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

_BLOCK = re.compile(
    r"(<!-- eval: ([a-z_]+)(?:; also ([\w., ]+?))?(?:; without ([\w., ]+?))? -->\n).*?(<!-- end -->)",
    re.DOTALL,
)

_LEFT_OUT = ("halves ", "odd and even ", "of these said again", "of those that failed", "over ")
"""How the parts of ``Figure.beside`` begin that only the kept file has: on a part of the data, or in another unit."""

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
    return _BLOCK.sub(
        lambda block: (
            f"{block[1]}{_table(results.get(block[2]), _keys(block[3]), _keys(block[4]))}{block[5]}"
        ),
        page,
    )


def shown(page: str) -> list[str]:
    """The sections that a page has a table of."""
    return [block[2] for block in _BLOCK.finditer(page)]


def also(page: str) -> set[str]:
    """The keys of the figures that the marks of a page name, to show them or to leave them out."""
    return {key for block in _BLOCK.finditer(page) for key in _keys(block[3]) | _keys(block[4])}


def _keys(listed: str | None) -> set[str]:
    return set(listed.split(", ")) if listed else set()


def _table(section: Mapping[str, Any] | None, named: set[str], left_out: set[str]) -> str:
    if section is None:
        return "Not measured yet.\n"
    figures = [Figure(**one) for one in section["figures"] if one["key"] not in left_out]
    chosen = [one for one in figures if one.aim is not None or one.key in named]
    lines = ["| | measured | aim | beside |", "|---|---|---|---|", *map(_row, chosen or figures)]
    when_and_where = ", ".join(section["machine"].split(", ")[:2])
    return "\n".join([*lines, "", f"{when_and_where}.", ""])


def _row(figure: Figure) -> str:
    aim = "" if figure.aim is None else number(figure.aim)
    if figure.verdict in {"good", "short"}:
        aim = f"**{aim}, missed**"
    beside = "; ".join(part for part in figure.beside.split("; ") if not part.startswith(_LEFT_OUT))
    cells = (figure.measure, number(figure.value), aim, beside)
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def number(value: float) -> str:
    """A count as it is, a share with three decimals."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}"
