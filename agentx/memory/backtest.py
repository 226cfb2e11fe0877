"""Replay past runs: propose flows from repeated successes, and lessons from failures that later succeeded."""

from itertools import accumulate

import msgspec

from agentx.engine import moment_parser
from agentx.engine.engine import Engine
from agentx.synthesis.learning.backtest import propose
from agentx.synthesis.learning.past_runs import Outcome
from agentx.synthesis.memory.conclusions import Add
from agentx.synthesis.memory.items import MemoryItem, sort_of

EXTRACTOR = "backtest"

MAX_BYTES = 8_500
"""Maximum size of all proposals together: they are one line of the history."""


class Backtested(msgspec.Struct, frozen=True, kw_only=True):
    """The result of replaying past runs.

    Attributes:
        runs: Number of runs, by outcome.
        flows: The proposed flows, the best supported first.
        lessons: The proposed lessons.
        left: Number of proposals that did not fit; they follow when these are settled and the backtest runs
            again.
        recorded: The event that holds the proposals; 0 if nothing was recorded.
    """

    runs: dict[Outcome, int]
    flows: tuple[MemoryItem, ...] = ()
    lessons: tuple[MemoryItem, ...] = ()
    left: int = 0
    recorded: int = 0


def backtest(engine: Engine, *, since: int | str | None = None, dry_run: bool = False) -> Backtested:
    """Replay the runs that began after a moment, and propose what they teach; nothing is proposed twice.

    Raises:
        NoSuchMoment: The moment does not exist.
        ReadOnly: The workspace was written by a newer version.
    """
    after = 0 if since is None else moment_parser.resolve_moment(engine, since)
    runs = engine.past_runs.at(engine.snapshot(), after)
    counts: dict[Outcome, int] = {"passed": 0, "failed": 0, "unknown": 0}
    for run in runs:
        counts[run.outcome] += 1
    with engine.write_path.exclusive():
        proposals = propose(runs, engine.log.state)
        proposed = (*proposals.flows, *proposals.lessons)
        sizes = accumulate(len(msgspec.json.encode(Add(item))) for item in proposed)
        fitting = sum(size <= MAX_BYTES for size in sizes)
        kept = proposed[: max(fitting, 1)]
        recorded = 0
        if kept and not dry_run:
            recorded = engine.synthesizer.record([Add(item) for item in kept], EXTRACTOR)[-1].seq
            kept = tuple(engine.log.state.items[item.id] for item in kept)
    return Backtested(
        runs=counts,
        flows=tuple(item for item in kept if item.kind == "flow"),
        lessons=tuple(item for item in kept if sort_of(item) == "learning"),
        left=len(proposed) - len(kept),
        recorded=recorded,
    )
