"""The world of this sample: the calendar of a practice, and a telephone whose calls are noted in a file."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from agentx import act

CALENDAR = json.loads((Path(__file__).parent / "calendar.json").read_text("utf-8"))
"""The entries. Each is in the calendar ``from`` a morning on, ``until`` another."""

AHEAD = timedelta(days=5)
OUT_OF_SERVICE = "+353 1 555 0148"


def tools(world: Path, due: datetime) -> dict[str, Callable[..., Any]]:
    """The tools of a run.

    Args:
        world: A directory that is kept from run to run; the calls made are noted in it.
        due: The morning.
    """

    @act(window="never")
    def coming() -> list[dict[str, Any]]:
        """List the appointments of the next five days."""
        shown = ("patient", "appointment", "at", "phone")
        return [{name: entry[name] for name in shown} for entry in listed(due)]

    @act(key=("patient", "appointment", "at"))
    def send_reminder(patient: str, appointment: int, at: str, phone: str) -> str:
        """Call a patient, and read out when the appointment is."""
        if phone == OUT_OF_SERVICE:
            raise ConnectionError(f"{phone} is not in service")
        made = {"day": f"{due:%Y-%m-%d}", "patient": patient, "appointment": appointment, "at": at}
        with (world / "calls.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(made | {"phone": phone}) + "\n")
        return f"called {phone}"

    return {"coming": coming, "send_reminder": send_reminder}


def listed(due: datetime) -> list[dict[str, Any]]:
    """The entries that the calendar shows on a morning."""
    now, day = due.replace(tzinfo=None), f"{due:%Y-%m-%d}"
    return [
        entry
        for entry in CALENDAR
        if entry.get("from", day) <= day < entry.get("until", "9999")
        and now < datetime.fromisoformat(entry["at"]) <= now + AHEAD
    ]


def reminders(world: Path) -> list[dict[str, Any]]:
    """Every call that was made: ``day``, ``patient``, ``appointment``, ``at``, ``phone``."""
    path = world / "calls.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []
