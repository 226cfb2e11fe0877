"""Taking times: what is compared is measured in turns, for a machine is never as fast as a minute ago.

Beside the time on the clock stands the processor's: on a machine that others use too, it is the steadier of the two.
"""

import resource
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .turns import hand_over


@dataclass
class Taken:
    """Seconds of each round: on the clock, and of the processor (this thread's and its child processes').

    With ``whole``, the processor's time is that of all threads.
    """

    clock: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    whole: bool = False

    def run(self, do: Callable[[], object]) -> None:
        hand_over()
        used, start = self._processor_s(), time.perf_counter()
        do()
        self.clock.append(time.perf_counter() - start)
        self.processor.append(self._processor_s() - used)

    def _processor_s(self) -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        ours = time.process_time() if self.whole else time.thread_time()
        return ours + children.ru_utime + children.ru_stime

    @property
    def median_ms(self) -> float:
        return statistics.median(self.clock) * 1e3

    @property
    def processor_ms(self) -> float:
        return statistics.median(self.processor) * 1e3

    def percentile_ms(self, percent: int) -> float:
        return sorted(self.clock)[min(len(self.clock) - 1, len(self.clock) * percent // 100)] * 1e3


def in_turns(
    work: Mapping[str, Callable[[int], object]], rounds: int | Mapping[str, int]
) -> dict[str, Taken]:
    """What each took, by name; every one gets its round number, and one with fewer rounds sits the rest out."""
    taken = {name: Taken() for name in work}
    limits = {name: rounds if isinstance(rounds, int) else rounds[name] for name in work}
    for turn in range(max(limits.values(), default=0)):
        for name, do in work.items():
            if turn < limits[name]:
                taken[name].run(lambda do=do, turn=turn: do(turn))
    return taken
