"""What two weeks of a garden come to, beside the same program started by a timer with the user's words."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from agentx import Workspace
from agentx.cli.work.samples import load_code
from agentx.storage.events.types import RunStarted, UserMessageSent

HERE = Path(__file__).parent
plot, gardener = load_code(HERE / "plot.py"), load_code(HERE / "gardener.py")

TIMES = (time(2, 30), time(19, 30))


def compare(ws: Workspace, world: Path) -> list[dict[str, str | int]]:
    """Compare the directed runs with the same program, started by a timer with what the user said."""
    zone = ZoneInfo(ws.state.schedules["garden"].rule.zone)
    begun = [event.data.due for event in ws.events() if isinstance(event.data, RunStarted)]
    due = [datetime.fromisoformat(one).astimezone(zone) for one in dict.fromkeys(begun)]
    said = [event.data.body for event in ws.events() if isinstance(event.data, UserMessageSent)]
    alone = world / "alone"
    alone.mkdir(exist_ok=True)
    (alone / "book.jsonl").unlink(missing_ok=True)
    (alone / "power-cut").unlink(missing_ok=True)
    cut = sum(_alone(alone, ws.read_body(said[0]), due))
    interrupted = sum(run.status == "INTERRUPTED" for run in ws.state.runs)
    return [_row("with a director", world, due, interrupted), _row("a timer", alone, due, cut)]


def _alone(world: Path, prompt: str, due: list[datetime]) -> Iterator[bool]:
    """Run the program when the clock on the wall shows one of the times; whether each run was cut off."""
    for moment in _on_the_wall(due):
        try:
            gardener.work(prompt, _caller(plot.tools(world, moment)))
            yield False
        except KeyboardInterrupt:
            yield True


def _on_the_wall(due: list[datetime]) -> Iterator[datetime]:
    """The moments at which a clock shows one of the times; one that is skipped in spring is never shown."""
    day, zone = due[0].date(), due[0].tzinfo
    while day <= due[-1].date():
        for shown in TIMES:
            moment = datetime.combine(day, shown, zone)
            if moment.astimezone(UTC).astimezone(zone).time() == shown:
                yield moment
        day += timedelta(days=1)


def _caller(functions: dict[str, Callable[..., Any]]) -> Callable[..., dict[str, str]]:
    def call(tool: str, arguments: dict[str, Any]) -> dict[str, str]:
        return {"status": "SUCCEEDED", "output": msgspec.json.encode(functions[tool](**arguments)).decode()}

    return call


def _row(name: str, world: Path, due: list[datetime], interrupted: int) -> dict[str, str | int]:
    """Count duties: each bed is measured each time, a dry one watered that day, the vine pruned once."""
    acts: Counter[tuple[str, ...]] = Counter()
    for one in plot.book(world):
        within = {"measure": one["at"], "water": str(plot.day(one)), "prune": ""}
        acts[one["did"], one["what"], within[one["did"]]] += 1
    wanted = {("measure", bed, moment.isoformat()) for bed in plot.BEDS for moment in due}
    wanted |= {
        ("water", bed, str(moment.date()))
        for bed in plot.BEDS
        for moment in due
        if plot.moisture(world, bed, moment) < plot.DRY
    }
    wanted.add(("prune", "vine", ""))
    done: Counter[str] = Counter(act[0] for act in acts.elements())
    return {
        f"{len(due)} due times": name,
        "measured": done["measure"],
        "watered": done["water"],
        "pruned": done["prune"],
        "done twice": sum(times - 1 for times in acts.values()),
        "missed": len(wanted - acts.keys()),
        "runs cut off": interrupted,
    }
