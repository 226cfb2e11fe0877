"""The world of this sample: a board of job offers over 20 days, as a file with a line for each."""

import json
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

OFFERS = json.loads((Path(__file__).parent / "offers.json").read_text("utf-8"))
"""Each with its number on the board, and the days on which it is ``shown``: first and last, several times."""


def tools(world: Path, run: int) -> dict[str, Callable[..., Any]]:
    """Put up the board of a day. The program reads it as a file, so it needs no tools.

    Args:
        world: The directory of the board.
        run: The day, from 1.
    """
    lines = ("\t".join(map(str, (one["number"], *columns(one)))) + "\n" for one in shown(run))
    (world / "board.tsv").write_text("".join(lines), "utf-8")
    return {}


def shown(day: int) -> list[dict[str, Any]]:
    """The offers on the board on a day."""
    return [one for one in OFFERS if any(first <= day <= last for first, last in one["shown"])]


def columns(offer: dict[str, Any]) -> tuple[str, str, str]:
    """Who offers what, and from when."""
    return offer["company"], offer["title"], offer["starts"]


def line(offer: dict[str, Any]) -> str:
    """An offer as the program prints it, without its number; equal for the same offer."""
    company, title, starts = columns(offer)
    return unicodedata.normalize("NFC", f"{company}: {title}, from {starts}")
