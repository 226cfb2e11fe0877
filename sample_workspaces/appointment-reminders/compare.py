"""What 20 mornings come to, beside the same program started by cron, with other memories and with none."""

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from agentx import Workspace
from agentx.cli.work.samples import load_code
from agentx.storage.events.types import RunStarted, UserMessageSent

HERE = Path(__file__).parent
practice, secretary = load_code(HERE / "practice.py"), load_code(HERE / "secretary.py")

MEMORIES: dict[str, tuple[str, ...]] = {
    "cron, no memory": (),
    "cron, a list of patients": ("patient",),
    "cron, a list of patients and numbers": ("patient", "appointment"),
}
"""What a list of those already reminded would hold."""


def compare(ws: Workspace, world: Path) -> list[dict[str, str | int]]:
    """Compare the directed runs with the same program, given what the user had said so far."""
    mornings = [due for due, _ in said(ws)]
    failed = sum(run.status != "COMPLETED" for run in ws.state.runs)
    rows = [_row("with a director", mornings, world, failed)]
    for name, fields in MEMORIES.items():
        place = world / name
        place.mkdir(exist_ok=True)
        (place / "calls.jsonl").unlink(missing_ok=True)
        rows.append(_row(name, mornings, place, sum(_alone(ws, place, fields))))
    return rows


def said(ws: Workspace) -> Iterator[tuple[datetime, str]]:
    """Each morning, and what the user had said until then."""
    prompt = ""
    for event in ws.events():
        match event.data:
            case UserMessageSent(body=body):
                prompt += ws.read_body(body) + "\n"
            case RunStarted(due=due, resumes=""):
                zone = ZoneInfo(ws.state.schedules["reminders"].rule.zone)
                yield datetime.fromisoformat(due).astimezone(zone), prompt


def _alone(ws: Workspace, world: Path, fields: tuple[str, ...]) -> Iterator[bool]:
    """Run the program each morning without a director; whether each run failed."""
    reminded: set[tuple[Any, ...]] = set()
    for due, prompt in said(ws):
        call = _caller(practice.tools(world, due), fields, reminded)
        yield secretary.work(prompt, call)["status"] != "COMPLETED"


def _caller(
    functions: dict[str, Callable[..., Any]], fields: tuple[str, ...], reminded: set[tuple[Any, ...]]
) -> Callable[..., dict[str, str]]:
    def call(tool: str, arguments: dict[str, Any]) -> dict[str, str]:
        who = tuple(arguments[name] for name in fields if arguments)
        if who and who in reminded:
            return {"status": "DENIED", "output": "on the list already"}
        try:
            output = msgspec.json.encode(functions[tool](**arguments)).decode()
        except ConnectionError as error:
            return {"status": "FAILED", "output": str(error)}
        if who:
            reminded.add(who)
        return {"status": "SUCCEEDED", "output": output}

    return call


def _row(name: str, mornings: list[datetime], world: Path, failed: int) -> dict[str, str | int]:
    made = [(one["patient"], one["appointment"], one["at"]) for one in practice.reminders(world)]
    wanted = {
        (entry["patient"], entry["appointment"], entry["at"])
        for due in mornings
        for entry in practice.listed(due)
        if "until" not in entry
    }
    return {
        f"{len(mornings)} mornings": name,
        "reminders": len(made),
        "done twice": len(made) - len(set(made)),
        "missed": len(wanted - set(made)),
        "failed runs": failed,
    }
