"""Taking times: what is compared is measured in turns, for a machine is never as fast as a minute ago."""

import statistics
import time
from collections.abc import Callable, Mapping


def in_turns(
    work: Mapping[str, Callable[[int], object]], rounds: int | Mapping[str, int]
) -> dict[str, list[float]]:
    """Seconds that each took, by name; every one gets its round number, and one with fewer rounds sits the rest out."""
    taken: dict[str, list[float]] = {name: [] for name in work}
    limits = {name: rounds if isinstance(rounds, int) else rounds[name] for name in work}
    for turn in range(max(limits.values(), default=0)):
        for name, do in work.items():
            if turn < limits[name]:
                start = time.perf_counter()
                do(turn)
                taken[name].append(time.perf_counter() - start)
    return taken


def median_ms(taken: list[float]) -> float:
    return statistics.median(taken) * 1e3


def percentile_ms(taken: list[float], percent: int) -> float:
    return sorted(taken)[min(len(taken) - 1, len(taken) * percent // 100)] * 1e3
