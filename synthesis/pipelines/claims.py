"""Who may write and read a file when: what would let two roles write one file at a time, or read what is not there yet.

Two steps that neither waits for the other may run at once. So each file has, of any two steps that write it, one that
waits for the other, and whoever reads a file that a step writes waits for that step.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from agentx.synthesis.pipelines.plan import Plan, Step
from agentx.synthesis.pipelines.reading import Fault, Place, Source


def faults_of(plan: Plan, source: Source, places: Mapping[str, Place]) -> list[Fault]:
    """What is wrong with the claims of a plan, each pair of stages once.

    Args:
        plan: Its steps stand behind what they need.
        source: The file, for lines.
        places: Where each stage stands in it.
    """
    claims = _Claims(plan)
    found: dict[str, Fault] = {}
    for stage, what in (*claims.of_static(), *claims.of_writers(), *claims.of_readers()):
        found.setdefault(f"{stage} {what.partition(' of item')[0]}", source.fault(places[stage], what))
    return list(found.values())


class _Claims:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.number = {key: n for n, key in enumerate(plan.steps)}
        self.before = self._ancestors()
        self.writers: defaultdict[str, list[Step]] = defaultdict(list)
        for step in plan.steps.values():
            for path in {write.path for write in step.writes}:
                self.writers[path].append(step)

    def _ancestors(self) -> dict[str, int]:
        """For each step, a bit for each that is done before it."""
        before: dict[str, int] = {}
        for key, step in self.plan.steps.items():
            bits = 0
            for need in (*step.inside, *step.needs):
                for one in self.plan.loops[need].steps if need in self.plan.loops else (need,):
                    bits |= before[one] | (1 << self.number[one])
            before[key] = bits
        return before

    def _waits(self, one: Step, other: Step) -> bool:
        """Whether one of two steps is done before the other."""
        return bool(
            self.before[one.key] >> self.number[other.key] & 1
            or self.before[other.key] >> self.number[one.key] & 1
        )

    def of_static(self) -> Iterator[tuple[str, str]]:
        """A static file is written once."""
        for path, steps in self.writers.items():
            sort = next(write.sort for write in steps[0].writes if write.path == path)
            if sort != "static":
                continue
            if len(steps) > 1:
                yield (
                    steps[1].stage,
                    f"{path} is static, so it is written once, and {_named(steps[0])} and {_named(steps[1])} both write it.",
                )
            elif steps[0].loop:
                yield (
                    steps[0].stage,
                    f"{path} is static, so it is written once, and {_named(steps[0])} stands in a loop.",
                )

    def of_writers(self) -> Iterator[tuple[str, str]]:
        """At any moment a file has one writer."""
        for path, steps in self.writers.items():
            for place, one in enumerate(steps):
                clash = next((other for other in steps[place + 1 :] if not self._waits(one, other)), None)
                if clash is not None:
                    what = (
                        f"{_named(one)} and {_named(clash)} may both write {path} at the same time. At any moment a "
                        f"file has one writer: let {clash.stage} come after {one.stage}, or give each a file of its own."
                    )
                    yield clash.stage, what
                    break

    def of_readers(self) -> Iterator[tuple[str, str]]:
        """Whoever reads a file waits for who writes it."""
        for step in self.plan.steps.values():
            for read in step.reads:
                if read.rule.optional or read.source:
                    continue
                for path in read.paths:
                    late = [
                        w
                        for w in self.writers.get(path, ())
                        if not self.before[step.key] >> self.number[w.key] & 1
                    ]
                    if late and late[0].key != step.key:
                        what = (
                            f"{_named(step)} reads {path}, which {_named(late[0])} writes, and does not wait for it. "
                            f"Let it come after {late[0].stage}, or mark the pointer `optional`."
                        )
                        yield step.stage, what


def _named(step: Step) -> str:
    item = f" of item {step.item}" if step.item else ""
    return f"role {step.role} (stage {step.stage}{item})"
