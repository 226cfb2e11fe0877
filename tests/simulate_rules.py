"""A year of nine agents whose lessons come in every day, kept by the very functions that keep a workspace's rules.

``python -m tests.simulate_rules`` prints how many rules stand at the end of each quarter, for some rates of lessons, and
draws ``docs/images/rules-year.svg``. What is made up is the world: an agent's work brings up situations, a few of them
often and most of them seldom (Zipf), and a share of its lessons are about what never comes again. A lesson is worded in
one of several ways; a task whose situation has a rule keeps it, or breaks it now and then; one whose rule has faded
breaks it more often, for nobody was told. What happens to memory is real: events, the fold, and a maintenance each night.
"""

import argparse
import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from agentx.storage.events.types import Event
from agentx.synthesis.learning.maintenance_plan import upkeep
from agentx.synthesis.memory.conclusions import MAINTENANCE, Add, Change, Concluded
from agentx.synthesis.memory.items import Evidence, MemoryItem, NoteDetail, item_id, superseded_by
from agentx.synthesis.state.rule_lifecycle import has_faded, reinforced, violated
from agentx.synthesis.state.state import State
from tests.line_plot import Line, line_plot

IMAGE = Path(__file__).resolve().parent.parent / "docs" / "images" / "rules-year.svg"
RATES = (25, 50, 100)
"""Lessons of one agent in a week."""

AGENTS = 9
DAYS = 365
SITUATIONS = 2_000
"""That come up again and again, the n-th most frequent 1/n as often as the first."""

TASKS = 6
"""Of an agent in a day."""

ONE_OFF = 0.3
"""Share of the lessons that are about what never comes again."""

HEARSAY = 0.3
"""Share of the lessons that only an agent says; they never become rules."""

BREAKS, BREAKS_UNTOLD = 0.05, 0.3
"""How often a task breaks the rule of its situation: where the rule stands, and where it has faded."""

_WORDS = {
    "verb": "check record rotate encrypt validate archive compress schedule mirror throttle sanitize translate",
    "object": "invoice token header backup password schema index photo ledger cookie queue report shipment voucher contract "
    "thumbnail webhook certificate calendar playlist receipt sensor manifest transcript coupon",
    "place": "billing checkout onboarding warehouse payroll newsletter telemetry catalogue helpdesk mobile kiosk staging "
    "vault analytics marketplace firmware booking library inventory gateway scheduler storefront portal registry dashboard",
}
"""A situation is one of each; so two of them share two words of three at most."""

_WORDINGS = (
    "{verb} the {object} in {place}.",
    "In {place}, always {verb} the {object}.",
    "Please make sure to {verb} every {object} of the {place}!",
)

Situation = tuple[str, str, str]


class Agent:
    """One agent with a memory of its own.

    Args:
        rate: Lessons in a week.
        seed: Of everything that happens to it.
    """

    def __init__(self, rate: float, seed: int) -> None:
        self._random = random.Random(seed)
        self._rate = rate
        combined: list[Situation] = list(itertools.product(*(words.split() for words in _WORDS.values())))  # type: ignore[arg-type]
        self._random.shuffle(combined)
        self._often = combined[:SITUATIONS]
        self._seldom = iter(combined[SITUATIONS:])
        self._weights = list(itertools.accumulate(1 / n for n in range(1, SITUATIONS + 1)))
        self._told: dict[Situation, list[str]] = {}
        self.lessons = 0
        self.state = State()

    def live(self, day: int) -> None:
        """A day's lessons and tasks, and the night after it."""
        noon = datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(days=day)
        for _ in range(self._count(self._rate / 7)):
            self._learn(_at(noon))
        for _ in range(TASKS):
            self._work(_at(noon))
        midnight = _at(noon + timedelta(hours=12))
        self._conclude(upkeep(self.state, midnight).changes, midnight, MAINTENANCE)

    def _learn(self, at: str) -> None:
        new = self._random.random() < ONE_OFF
        situation = next(self._seldom) if new else self._situation()
        verb, thing, place = situation
        text = self._random.choice(_WORDINGS).format(verb=verb, object=thing, place=place).capitalize()
        trust = "agent" if self._random.random() < HEARSAY else "user"
        seq = self.state.seq + 1
        item = MemoryItem(
            id=item_id("knowledge", seq),
            kind="knowledge",
            detail=NoteDetail(sort="learning"),
            text=text,
            trust=trust,
            evidence=(Evidence(seq, quote=text),),
        )
        self._conclude([Add(item)], at, "lesson")
        self._told.setdefault(situation, []).append(item.id)
        self.lessons += 1

    def _work(self, at: str) -> None:
        rule = self._rule(self._situation())
        if rule is None:
            return
        told = rule.status == "active"
        breaks = self._random.random() < (BREAKS if told else BREAKS_UNTOLD)
        if breaks:
            self._conclude([violated(rule, at)], at, "grading")
        elif told:
            self._conclude([reinforced(rule, at)], at, "grading")

    def _rule(self, situation: Situation) -> MemoryItem | None:
        """The rule about a situation, standing or faded."""
        for name in self._told.get(situation, ()):
            item = self.state.items[name]
            while after := superseded_by(item):
                item = self.state.items[after]
            if item.kind == "rule" and (item.status in ("active", "dormant") or has_faded(item)):
                return item
        return None

    def _situation(self) -> Situation:
        return self._random.choices(self._often, cum_weights=self._weights)[0]

    def _count(self, mean: float) -> int:
        """A number that is the mean on average."""
        return int(mean) + (self._random.random() < mean % 1)

    def _conclude(self, changes: Sequence[Change], at: str, extractor: str) -> None:
        seq = self.state.seq + 1
        data = Concluded(extractor=extractor, version=1, through=seq - 1, changes=tuple(changes))
        self.state.apply(Event(seq=seq, at=at, type="Concluded", v=1, actor=f"engine:{extractor}", data=data))

    @property
    def standing(self) -> tuple[int, int]:
        """How many rules are active, and how many sleep."""
        rules = [item.status for item in self.state.items.values() if item.kind == "rule"]
        return rules.count("active"), rules.count("dormant")


def _at(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Day(NamedTuple):
    """After a day, on average over the agents: rules that are active and asleep, and all lessons so far."""

    active: float
    asleep: float
    lessons: float


def year(rate: float, agents: int = AGENTS, days: int = DAYS) -> Iterator[Day]:
    """Day after day of some agents with the same rate of lessons."""
    lives = [Agent(rate, seed) for seed in range(1, agents + 1)]
    for day in range(days):
        for agent in lives:
            agent.live(day)
        standing = [agent.standing for agent in lives]
        yield Day(
            sum(active for active, _ in standing) / agents,
            sum(asleep for _, asleep in standing) / agents,
            sum(agent.lessons for agent in lives) / agents,
        )


# --- what is shown ---------------------------------------------------------------------------------------------------

_STEP = 20
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()  # noqa: SIM905 - read by people


def plot(years: Mapping[int, Sequence[Day]]) -> str:
    """The active rules over the year, as SVG: a line for each rate."""
    days = max(map(len, years.values()))
    lines = [
        Line(
            [(0, 0), *((number, day.active) for number, day in enumerate(lived, 1))],
            f"{rate} lessons a week",
            f"{lived[-1].lessons:,.0f} in all",
        )
        for rate, lived in years.items()
    ]
    return line_plot(
        "Active rules of one agent over a year, for three rates of lessons",
        "Active rules of one agent over a year",
        f"Mean of {AGENTS} agents; each line a number of lessons in a week",
        lines,
        [(days * (number + 0.5) / len(_MONTHS), month) for number, month in enumerate(_MONTHS)],
        _STEP,
    )


def main() -> None:
    """Print the table, and draw the picture."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--image", type=Path, default=IMAGE, help="where the picture goes")
    image = arguments.parse_args().image
    print("| lessons a week | lessons in the year | active after 1, 3, 6, 9, 12 months | asleep |")
    print("|---|---|---|---|")
    years: dict[int, list[Day]] = {}
    for rate in RATES:
        years[rate] = lived = list(year(rate))
        active = ", ".join(f"{lived[day - 1].active:.0f}" for day in (30, 91, 182, 273, 365))
        print(f"| {rate} | {lived[-1].lessons:,.0f} | {active} | {lived[-1].asleep:.0f} |", flush=True)
    image.write_text(plot(years), "utf-8")


if __name__ == "__main__":
    main()
