"""A fleet on paper: a simulation of events whose servers take the times that were measured.

Each host is a number of cores before which work waits in order of arrival. A run takes a slot on a worker, then the
stages of :func:`stages` one after another, as a real one does.
"""

import functools
import heapq
import itertools
import math
import random
from bisect import bisect
from collections import OrderedDict, deque
from dataclasses import dataclass, field


class Cores:
    """A host's processor: work waits for the first core that is free."""

    def __init__(self, count):
        self._free = [0.0] * count
        self.count, self.busy_s = count, 0.0

    def serve(self, now, seconds):
        """Do work of so many processor seconds; return when it is done."""
        start = max(now, heapq.heappop(self._free))
        heapq.heappush(self._free, start + seconds)
        self.busy_s += seconds
        return start + seconds


class Machine:
    """A worker: its cores, its slots, and the copies that its disk has room for."""

    def __init__(self, cores, slots, copies):
        self.cores, self.free, self._most, self._copies = cores, slots, copies, OrderedDict()
        self._slots, self._processes = slots, 0

    def takes(self):
        """Take a slot; return whether that needs a process more than there were."""
        self.free -= 1
        first = self._slots - self.free > self._processes
        self._processes += first
        return first

    def has(self, workspace):
        """Whether it has a copy of a workspace; from now on it does."""
        warm = workspace in self._copies
        self._copies[workspace] = None
        self._copies.move_to_end(workspace)
        if len(self._copies) > self._most:
            self._copies.popitem(last=False)
        return warm


@dataclass
class Costs:
    """What a run costs, in processor seconds on each host; what differs between a warm and a cold copy comes twice.

    Attributes:
        fetch, run, push: On the worker.
        git_fetch, git_push: On the Git host.
        database: On the database, for taking the run and for its result.
        first: On the worker, more for the first run of each of its processes.
        look_s: Mean time until a free worker finds a run in the queue, in seconds.
        poll: On the database, per second, of each worker that looks into the queue.
        idle: On each worker, per second, beside its runs.
    """

    fetch: tuple
    run: tuple
    push: tuple
    git_fetch: tuple
    git_push: float
    database: float
    first: float
    look_s: float
    poll: float
    idle: float

    @property
    def worker(self):
        """On the worker, for a warm run."""
        return self.fetch[0] + self.run[0] + self.push[0]

    @property
    def git(self):
        """On the Git host, for a warm run."""
        return self.git_fetch[0] + self.git_push


@dataclass
class Day:
    """What came of a simulation; times in seconds.

    Attributes:
        runs: Number of runs.
        cold: Number of those that found no copy.
        waits: For each, when it was submitted, how long it waited for a worker, and before that for its workspace.
        overheads: For each, its time on the worker without the model's.
        seconds: When the last one ended.
    """

    runs: int = 0
    cold: int = 0
    waits: list = field(default_factory=list)
    overheads: list = field(default_factory=list)
    seconds: float = 0.0


def stages(costs, warm, machine, git, database, calls, model_s, first):
    """The stages of a run: the cores that each needs, or none for a model, and its seconds."""
    kind = 0 if warm else 1
    yield database, costs.database / 2
    yield git, costs.git_fetch[kind]
    yield machine.cores, costs.fetch[kind] + first * costs.first
    if model_s:
        for _ in range(calls):
            yield None, model_s
            yield machine.cores, costs.run[kind] / calls
    else:
        yield machine.cores, costs.run[kind]
    yield machine.cores, costs.push[kind]
    yield git, costs.git_push
    yield database, costs.database / 2


def simulate(arrivals, costs, machines, git, database, *, calls, model_s, seed=1):
    """Run a fleet through arrivals, pairs of a time in seconds and a workspace in the order of time; return a :class:`Day`."""
    chance, day = random.Random(seed), Day()
    waiting, active, ready = {}, set(), deque()
    free = [machine for machine in machines if machine.free]
    events, number = [], itertools.count()
    arriving = iter(arrivals)

    def push(at, what, *about):
        heapq.heappush(events, (at, next(number), what, about))

    def start(now):
        """Give ready runs to free workers, each to whichever looks first."""
        while ready and free:
            asked, could, workspace = ready.popleft()
            place = chance.randrange(len(free))
            machine = free[place]
            first = machine.takes()
            if not machine.free:
                free[place] = free[-1]
                free.pop()
            warm = machine.has(workspace)
            day.cold += not warm
            begun = now + chance.expovariate(1 / costs.look_s)
            day.waits.append((asked, begun - could, could - asked))
            steps = stages(costs, warm, machine, git, database, calls, model_s, first)
            push(begun, "stage", steps, machine, workspace, begun)

    def arrive():
        for at, workspace in arriving:
            push(at, "arrives", workspace)
            return

    arrive()
    while events:
        now, _, what, about = heapq.heappop(events)
        if what == "arrives":
            [workspace] = about
            if workspace in active:
                waiting.setdefault(workspace, deque()).append(now)
            else:
                active.add(workspace)
                ready.append((now, now, workspace))
            arrive()
            start(now)
            continue
        steps, machine, workspace, begun = about
        step = next(steps, None)
        if step is not None:
            cores, seconds = step
            push(cores.serve(now, seconds) if cores else now + seconds, "stage", *about)
            continue
        day.runs += 1
        day.seconds = now
        day.overheads.append(now - begun - calls * model_s)
        if not machine.free:
            free.append(machine)
        machine.free += 1
        if queue := waiting.get(workspace):
            ready.append((queue.popleft(), now, workspace))
        else:
            active.discard(workspace)
        start(now)
    return day


def a_day(workspaces, runs, peak, skew, *, hours=(0, 24), seed=1):
    """Arrivals over some hours of a day: a sine wave whose busiest hour has ``peak`` times the mean, workspaces by Zipf."""
    chance = random.Random(seed)
    weights = list(itertools.accumulate(1 / rank**skew for rank in range(1, workspaces + 1)))
    mean, at = runs / 86_400, hours[0] * 3600.0
    most = mean * peak
    while (at := at + chance.expovariate(most)) < hours[1] * 3600:
        if chance.random() * most < mean * shape(at / 3600, peak):
            yield at, bisect(weights, chance.random() * weights[-1])


def shape(hour, peak):
    """The load at an hour, against the mean: a power of a sine wave, whose mean is 1 and whose top is ``peak``."""
    power = exponent(peak)
    return peak * ((1 - math.cos(math.pi * hour / 12)) / 2) ** power


@functools.cache
def exponent(peak):
    """The power at which the mean of the wave is 1 and its top is ``peak``."""
    low, high = 0.0, 200.0
    for _ in range(60):
        middle = (low + high) / 2
        mean = sum(((1 - math.cos(math.pi * hour / 120)) / 2) ** middle for hour in range(240)) / 240
        low, high = (middle, high) if peak * mean > 1 else (low, middle)
    return low
