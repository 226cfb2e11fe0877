"""A year of agents that work by the clock, with a daemon that is killed at random, in seconds of real time.

    python tests/simulate_year.py [--agents 9] [--days 365] [--crashes 100] [--seed 1]

Each agent is a workspace with a schedule of its own; a process passes over them as a daemon does, with a clock that runs ahead.
It is killed without a word before or behind an event that it records, the next one starts some hours later, and so on to the
end of the year. Then every due time must have been run once or passed over once, as its policy has it, and each state must be what a replay of
its history gives.
"""

import argparse
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path

from agentx import Workspace
from agentx.directing.executors import Function
from agentx.scheduling import schedules
from agentx.scheduling.schedules import Means, begins, carry_out_due
from agentx.settings import Settings
from agentx.storage.events.schedule_events import DuePassed, ScheduleSet
from agentx.storage.events.types import RunEnded, RunStarted
from agentx.synthesis.memory.record_codec import record_codec
from agentx.synthesis.model.port import Reply, Usage
from agentx.synthesis.scheduling.schedule_times import times
from agentx.synthesis.state.parallel_fold import fold

RULES = (
    ScheduleSet(id="news", cron="0 */12 * * *", task="Look for news.", catch_up="once"),
    ScheduleSet(id="mail", cron="30 7 * * *", zone="Europe/Berlin", task="Sort the mail.", catch_up="all"),
    ScheduleSet(
        id="stand", cron="0 9 * * 1-5", zone="America/New_York", task="Say how it stands.", catch_up="none"
    ),
    ScheduleSet(
        id="report", cron="0 8 * * 1", task="Write the report.", directed=True, catch_up="all", jitter_s=600
    ),
    ScheduleSet(
        id="feed", cron="15 2 * * *", zone="Europe/Berlin", task="Read the feed.", directed=True, resume=False
    ),
    ScheduleSet(id="books", cron="0 0 L * *", task="Close the books.", directed=True, catch_up="all"),
)
KILLED = 9


class Model:
    """Answers at once, always the same."""

    name = "own/model"

    def stream(self, messages, tools=(), *, timeout_s=120.0):
        """One answer without a call."""
        yield Reply(text="Done.", tool_calls=(), usage=Usage(), model=self.name)


MEANS = Means(model=Model(), executor=Function("own", lambda assignment: "Done."))
DIRECTED = Means(executor=MEANS.executor)


@dataclass
class Year:
    """What came of it."""

    agents: int = 0
    days: int = 0
    due: int = 0
    started: int = 0
    passed: int = 0
    missed: int = 0
    doubled: int = 0
    crashes: int = 0
    cut_off: int = 0
    gone_on: int = 0
    replays_that_differ: int = 0
    seconds: float = 0.0


def settings(root):
    """An environment without a model for meaning, so that nothing heavy is loaded."""
    return Settings(
        environ=dict(os.environ),
        cache_dir=Path(root) / "no-models",
        state_dir=Path(root).absolute().parent / "state",
    )


def live(roots, start, end, die_at, before, clock):
    """Be a daemon from one moment to another; be gone at an event that is recorded.

    Args:
        roots: The workspaces.
        start: Seconds since the epoch; so is ``end``.
        die_at: How many times something is recorded until it dies; 0 for never.
        before: Whether it dies before that is recorded, or behind it.
        clock: A file that says what time it is.
    """
    opened = [Workspace.open(root, settings=settings(root)) for root in roots]
    left = [die_at]
    for ws in opened:
        _mine(ws, left, before)
    now = datetime.fromtimestamp(start, tz=UTC)
    last = datetime.fromtimestamp(end, tz=UTC)
    while True:
        Path(clock).write_text(str(now.timestamp()))
        nexts = []
        for ws in opened:
            directed = any(one.rule.directed for one in ws.state.schedules.values())
            carry_out_due(ws, now, means=DIRECTED if directed else MEANS)
            nexts += filter(None, begins(ws.state, now)[:1])
        if now >= last:
            break
        now = min(max(datetime.fromisoformat(min(nexts)), now + timedelta(seconds=1)), last)
    for ws in opened:
        ws.close()


def _mine(ws, left, before):
    """Lay the mine: the process is gone when it goes off, as with kill -9."""
    path = ws.engine.write_path
    record = path.record

    def recorded(drafts):
        left[0] -= 1
        ends = left[0] == 0  # looked at now: what is recorded may be concluded from, which is recorded, too
        if ends and before:
            os._exit(KILLED)
        events = record(drafts)
        if ends:
            os._exit(KILLED)
        return events

    path.record = recorded


def simulate(folder, agents=9, days=365, crashes=100, seed=1, told=lambda _: None):
    """Live through it and look; what came of it."""
    began, chance, result = time.monotonic(), random.Random(seed), Year(agents=agents, days=days)
    roots = []
    for number in range(agents):
        root = Path(folder) / f"agent-{number + 1}"
        with Workspace.create(root, settings=settings(root)) as ws:
            schedules.add(ws, RULES[number % len(RULES)])
        roots.append(str(root))
    start = datetime.now(tz=UTC)
    end = start + timedelta(days=days)
    clock = Path(folder) / "clock"
    clock.write_text(str(start.timestamp()))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.simulate_year"])
    events = agents * days * 6  # about so many are recorded
    code = KILLED
    while code == KILLED:
        now = min(float(clock.read_text()), end.timestamp())
        die_at = chance.randint(1, 2 * events // crashes) if result.crashes < crashes else 0
        work = (roots, now, end.timestamp(), die_at, chance.random() < 0.5, str(clock))
        process = context.Process(target=live, args=work)
        process.start()
        process.join()
        code = process.exitcode
        if code == KILLED:
            result.crashes += 1
            down = chance.choice([0, 60, 3_600, 6 * 3_600, 3 * 86_400])
            clock.write_text(str(float(clock.read_text()) + down))
        elif code:
            raise SystemExit(f"the process ended with {code}")
        told(f"{result.crashes} crashes, {(float(clock.read_text()) - start.timestamp()) / 86_400:.0f} days")
    for root in roots:
        _look(root, end, result)
    result.seconds = time.monotonic() - began
    return result


def _look(root, end, result):
    """Compare what the history of a workspace says with what was due."""
    with Workspace.open(root, settings=settings(root)) as ws:
        carry = ws.state
        [known] = carry.schedules.values()
        events = list(ws.events())
        started = Counter(e.data.due for e in events if isinstance(e.data, RunStarted) and not e.data.resumes)
        passed = sum(e.data.times for e in events if isinstance(e.data, DuePassed))
        since = datetime.fromisoformat(known.since)
        due = [
            moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
            for moment in takewhile(lambda moment: moment <= end, times(known.rule, since))
        ]
        if known.rule.jitter_s:  # the last may be to come yet
            due = [one for one in due if one <= known.settled]
        result.due += len(due)
        result.started += len(started)
        result.passed += passed
        result.missed += len(due) - len(started) - passed
        result.doubled += sum(times - 1 for times in started.values()) + len(started.keys() - set(due))
        result.cut_off += sum(isinstance(e.data, RunEnded) and e.data.status == "INTERRUPTED" for e in events)
        result.gone_on += sum(isinstance(e.data, RunStarted) and bool(e.data.resumes) for e in events)
        assert known.rule.catch_up != "all" or not passed
        replayed = fold(ws.root, record_codec(), lambda damage: None)
        result.replays_that_differ += replayed.encode() != ws.state.encode()


def main():
    """Live through a year, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("agents", 9), ("days", 365), ("crashes", 100), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = simulate(folder, **vars(given), told=lambda line: print(line, file=sys.stderr))
    print(json.dumps(asdict(result), indent=1))
    return bool(result.missed or result.doubled or result.replays_that_differ)


if __name__ == "__main__":
    from tests.simulate_year import main as run  # under its own name, so that a child finds it

    sys.exit(run())
