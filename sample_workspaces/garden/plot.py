"""The world of this sample: five beds, and a book in which everything that was done to them is noted."""

import json
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

from agentx import act

BEDS = {"roses": 5, "beans": 9, "herbs": 8, "lettuce": 12, "vine": 3}
"""Percent of moisture that the soil loses each day."""

WET, DRY, EVENING, NOON = 60, 30, 2, 12
RAIN = (date(2026, 3, 19), date(2026, 3, 27))
POWER_CUT = "2026-03-23 02:30"


def tools(world: Path, due: datetime) -> dict[str, Callable[..., Any]]:
    """The tools of a run.

    Args:
        world: A directory that is kept from run to run; the book lies in it.
        due: The due time, in the garden's time zone.
    """

    def note(did: str, what: str, value: int = 0) -> None:
        line = {"at": due.isoformat(), "did": did, "what": what, "value": value}
        with (world / "book.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    @act(window="never")
    def beds() -> list[str]:
        """List the beds."""
        return list(BEDS)

    @act(window="never")
    def measured(bed: str) -> int:
        """Look up the last value of a bed in the book."""
        values = [one["value"] for one in book(world) if (one["did"], one["what"]) == ("measure", bed)]
        return values[-1]

    @act(key=("bed",), window="due")
    def measure(bed: str) -> str:
        """Measure the soil of a bed, and note it in the book."""
        note("measure", bed, moisture(world, bed, due))
        return "noted"

    @act(key=("bed",), window="day")
    def water(bed: str, litres: int) -> str:
        """Water a bed."""
        note("water", bed, litres)
        cut = world / "power-cut"
        if f"{due:%Y-%m-%d %H:%M}" == POWER_CUT and not cut.exists():
            cut.touch()
            raise KeyboardInterrupt  # the process ends here: nobody learns that the water ran
        return "watered"

    @act
    def prune(plant: str) -> str:
        """Prune a plant."""
        note("prune", plant)
        return "pruned"

    return {one.__name__: one for one in (beds, measured, measure, water, prune)}


def moisture(world: Path, bed: str, due: datetime) -> int:
    """The moisture of a bed in percent, deep in the soil: water is seen there on the next day."""
    today = due.date()
    watered = [day(one) for one in book(world) if (one["did"], one["what"]) == ("water", bed)]
    soaked = max(one for one in (*RAIN, *watered) if one < today)
    return WET - BEDS[bed] * (today - soaked).days - EVENING * (due.hour >= NOON)


def book(world: Path) -> list[dict[str, Any]]:
    """What was done: ``at``, ``did``, ``what``, ``value``."""
    path = world / "book.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def day(line: dict[str, Any]) -> date:
    """The day of a line of the book."""
    return datetime.fromisoformat(line["at"]).date()
