"""A year of agents whose rules are kept by the very functions that keep a workspace's rules.

``python -m tests.simulate_rules`` prints what becomes of rules whose occasion comes up daily, weekly, monthly, quarterly
or never, of prohibitions, and of wrong rules, and draws ``docs/images/rules-year.svg``.

What is made up is the world: occasions come at known rates among other tasks that share their words. A task that is
shown its rule mostly keeps it, one that is not shown it keeps it less often, and half of those that keep it can be seen
to. Nobody grades. What happens to memory is real: events, the fold, the gate that wakes rules, and a maintenance each
night.
"""

import argparse
import itertools
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from agentx.storage.events.types import Body, Event, Payload, RunStarted, ToolCallExecuted
from agentx.synthesis.gates.action_relevance import Action, MemoryBoard
from agentx.synthesis.gates.opportunities import outcomes
from agentx.synthesis.gates.situations import woken
from agentx.synthesis.learning.maintenance_plan import upkeep
from agentx.synthesis.memory.conclusions import MAINTENANCE, Add, Change, Concluded
from agentx.synthesis.memory.items import MemoryItem, RuleDetail
from agentx.synthesis.state.rule_lifecycle import triggered
from agentx.synthesis.state.state import State
from tests.line_plot import Line, line_plot

IMAGE = Path(__file__).resolve().parent.parent / "docs" / "images" / "rules-year.svg"
AGENTS = 9
DAYS = 365

USES = {
    "daily": 1.0,
    "weekly": 1 / 7,
    "monthly": 1 / 30,
    "quarterly": 1 / 91,
    "prohibition": 1 / 7,
    "never": 0.0,
    "wrong, ignored": 1 / 7,
    "wrong, denies": 1 / 7,
    "wrong prohibition": 1 / 7,
}
"""Occasions of a rule in a day."""

NUMBERS = {
    "daily": 2,
    "weekly": 8,
    "monthly": 16,
    "quarterly": 8,
    "prohibition": 8,
    "never": 8,
    "wrong, ignored": 4,
    "wrong, denies": 4,
    "wrong prohibition": 4,
}
"""Rules of one agent."""

TASKS = 10
"""Of such an agent in a day, of which most are about something else."""

SEEN = 0.5
"""How often a task that did what a rule names shows it by the words of its commands."""

UNHEARD = 0.1
"""Share of the occasions that a request words so that no word of the rule is in it."""

LAST_DAYS = 90
"""Days at the end of the year over which the occasions are counted."""

_OCCASIONS = "release audit import migration handover inspection".split()  # noqa: SIM905 - read by people
_RULES = (
    "{verb} the {object} before each {place} {occasion}.",
    "Lesson learned: when you prepare the {place} {occasion}, {verb} the {object}.",
    "After every {place} {occasion}, {verb} the {object}.",
    "For the {place} {occasion}, always {verb} the {object}.",
)

_PROHIBITIONS = (
    "Never {verb} the {object} during the {place} {occasion}.",
    "When you prepare the {place} {occasion}, don't {verb} the {object}.",
)

BREAKS, BREAKS_UNTOLD = 0.05, 0.3
"""How often a task does not do what its rule says: where it was shown the rule, and where it was not."""

_WORDS = {
    "verb": "check record rotate encrypt validate archive compress schedule mirror throttle sanitize translate",
    "object": "invoice token header backup password schema index photo ledger cookie queue report shipment voucher contract "
    "thumbnail webhook certificate calendar playlist receipt sensor manifest transcript coupon",
    "place": "billing checkout onboarding warehouse payroll newsletter telemetry catalogue helpdesk mobile kiosk staging "
    "vault analytics marketplace firmware booking library inventory gateway scheduler storefront portal registry dashboard",
}


def _noon(day: int) -> datetime:
    return datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(days=day)


def _at(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Memory:
    """The memory of one agent: its state, and the events since the last night."""

    def __init__(self) -> None:
        self.state = State()
        self._today: list[Event] = []
        self._board = MemoryBoard(self.state)

    def begin_day(self) -> None:
        """Index the rules as they are in the morning."""
        rules = {item.id: item for item in self.state.items.values() if item.kind == "rule"}
        self._board = MemoryBoard(State(items=rules))

    def work(self, text: str, at: str) -> None:
        """Begin a task; the gate wakes the rules whose situation it is."""
        run = f"run-{self.state.seq + 1}"
        self._record(RunStarted(task=Body(text), agent="main", model="m"), at, "agent:main", run)
        asleep = [self.state.items[item.id] for item in woken(self._board, Action(text=text))]
        if patches := [triggered(item, at) for item in asleep if item.status != "active"]:
            self.conclude(patches, at, "gates")

    def act(self, command: str, at: str, denied_by: str = "") -> None:
        """Do something in the task that was begun last, or be denied."""
        run = self._today[-1].run or next(event.run for event in reversed(self._today) if event.run)
        denied = (denied_by,) if denied_by else ()
        call = ToolCallExecuted(
            call_id="c",
            tool="run_command",
            status="DENIED" if denied else "SUCCEEDED",
            command=command,
            denied_by=denied,
        )
        self._record(call, at, "agent:main", run)

    def sleep(self, midnight: str) -> None:
        """Maintain the memory."""
        done = outcomes(self.state, self._today)
        self.conclude(upkeep(self.state, midnight, outcomes=done).changes, midnight, MAINTENANCE)
        self._today.clear()

    def conclude(self, changes: Sequence[Change], at: str, extractor: str) -> None:
        """Record changes of memory."""
        data = Concluded(extractor=extractor, version=1, through=self.state.seq, changes=tuple(changes))
        self._record(data, at, f"engine:{extractor}")

    def _record(self, data: Payload, at: str, actor: str, run: str = "") -> None:
        seq = self.state.seq + 1
        event = Event(seq=seq, at=at, type=type(data).__name__, v=1, actor=actor, run=run, data=data)
        self.state.apply(event)
        self._today.append(event)


class Used(NamedTuple):
    """What became of the rules of one sort: their number, how many are active and retired at the end of the year, how
    many occasions there were in the last days, and at how many of them the rule was active."""

    rules: int
    active: int
    retired: int
    occasions: int
    shown: int


class User(Memory):
    """One agent with rules made from lessons, whose occasions come up at known rates.

    Args:
        seed: Of everything that happens to it.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = random.Random(seed)
        verbs, things, places = (words.split() for words in _WORDS.values())
        combined = list(itertools.product(places, _OCCASIONS))
        self._random.shuffle(combined)
        self._background = list(itertools.product(things, places))
        self.rules: dict[str, tuple[str, str, str, str, str]] = {}
        sorts = [sort for sort, number in NUMBERS.items() for _ in range(number)]
        items = []
        for number, (sort, (place, occasion)) in enumerate(zip(sorts, combined, strict=False), 1):
            verb, thing = self._random.choice(verbs), self._random.choice(things)
            wording = self._random.choice(_PROHIBITIONS if "prohibition" in sort else _RULES)
            text = wording.format(verb=verb, object=thing, place=place, occasion=occasion).capitalize()
            item = MemoryItem(id=f"r-{number}", kind="rule", text=text, trust="user", detail=RuleDetail())
            self.rules[item.id] = sort, verb, thing, place, occasion
            items.append(item)
        self.conclude(list(map(Add, items)), _at(_noon(0)), "lesson")
        self.occasions: dict[str, list[bool]] = {sort: [] for sort in USES}

    def live(self, day: int) -> None:
        """A day's tasks, and the night after it."""
        noon = _noon(day)
        at = _at(noon)
        self.begin_day()
        due = [name for name, (sort, *_) in self.rules.items() if self._random.random() < USES[sort]]
        for name in due:
            self._occasion(name, at, late=day >= DAYS - LAST_DAYS)
        for _ in range(TASKS - len(due)):
            thing, place = self._random.choice(self._background)
            self.work(f"Fix the {thing} of the {place}.", at)
            self.act(f"finish {thing} {place}", at)
        self.sleep(_at(noon + timedelta(hours=12)))

    def _occasion(self, name: str, at: str, *, late: bool) -> None:
        sort, verb, thing, place, occasion = self.rules[name]
        unheard = self._random.random() < UNHEARD
        self.work(
            "Get it ready for Friday." if unheard else f"Prepare the {place} {occasion} of this week.", at
        )
        active = self.state.items[name].status == "active"
        if late:
            self.occasions[sort].append(active)
        if sort == "wrong, denies" and active:
            self.act(f"finish {place}", at, denied_by=name)
        keeps = not sort.startswith("wrong") and self._random.random() >= (
            BREAKS if active else BREAKS_UNTOLD
        )
        does = keeps != ("prohibition" in sort)  # what a prohibition names is done where it is not kept
        seen = does and self._random.random() < SEEN
        self.act(f"{verb} {thing}" if seen else f"finish {place} {occasion}", at)

    def used(self, sort: str) -> Used:
        """What became of the rules of one sort."""
        mine = [self.state.items[name].status for name, (own, *_) in self.rules.items() if own == sort]
        seen = self.occasions[sort]
        return Used(len(mine), mine.count("active"), mine.count("retired"), len(seen), sum(seen))

    def active(self, sort: str) -> int:
        """How many rules of one sort are active."""
        mine = (name for name, (own, *_) in self.rules.items() if own == sort)
        return sum(self.state.items[name].status == "active" for name in mine)


class Year(NamedTuple):
    """By sort of rule: what became of it, and for each day the share of the rules that is active, in percent."""

    used: dict[str, Used]
    active: dict[str, list[float]]


def year(agents: int = AGENTS, days: int = DAYS, first: int = 1) -> Year:
    """A year of some agents, the first one with this seed."""
    lives = [User(seed) for seed in range(first, first + agents)]
    active: dict[str, list[float]] = {sort: [] for sort in USES}
    for day in range(days):
        for agent in lives:
            agent.live(day)
        for sort, shares in active.items():
            shares.append(100 * sum(agent.active(sort) for agent in lives) / (NUMBERS[sort] * agents))
    used = {sort: Used(*map(sum, zip(*(one.used(sort) for one in lives), strict=True))) for sort in USES}
    return Year(used, active)


# --- what is shown ---------------------------------------------------------------------------------------------------

_SHOWN = ("weekly", "monthly", "wrong, ignored")
_STEP = 20
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()  # noqa: SIM905 - read by people


def plot(lived: Year) -> str:
    """The share of active rules over the year, as SVG: a line for each of three sorts."""
    days = max(map(len, lived.active.values()))
    lines = []
    for sort in _SHOWN:
        used = lived.used[sort]
        shown = 100 * used.shown / max(used.occasions, 1)
        points = [(0.0, 100.0), *((float(day), share) for day, share in enumerate(lived.active[sort], 1))]
        lines.append(Line(points, sort, f"{shown:.0f}% at its occasions"))
    return line_plot(
        "Share of rules that are active over a year, for rules used weekly, monthly, and wrong ones",
        "Active rules over a year, in percent",
        f"{AGENTS} agents; until its first occasion a rule may sleep, and its occasion wakes it",
        lines,
        [(days * (number + 0.5) / len(_MONTHS), month) for number, month in enumerate(_MONTHS)],
        _STEP,
    )


def main() -> None:
    """Print the table, and draw the picture."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--image", type=Path, default=IMAGE, help="where the picture goes")
    arguments.add_argument("--seed", type=int, default=1, help="of the first agent")
    given = arguments.parse_args()
    lived = year(first=given.seed)
    print("| rule | rules | active after a year | retired | active at its occasions, last 90 days |")
    print("|---|---|---|---|---|")
    for sort, used in lived.used.items():
        shown = f"{used.shown / used.occasions:.1%} of {used.occasions:,}" if used.occasions else "–"
        print(f"| {sort} | {used.rules} | {used.active / used.rules:.1%} | {used.retired} | {shown} |")
    given.image.write_text(plot(lived), "utf-8")


if __name__ == "__main__":
    main()
