"""File claims: check that no two roles write one file at the same time, and that none reads a file too early.

Two steps may run at once unless one waits for the other. So of any two steps that write a file, one must wait
for the other, and a step that reads a file must wait for the step that writes it. The engine itself appends
to the long-term memory, one step at a time, so roles that run at once may append to one file. A role that
writes such a file itself must not run at the same time.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise

from agentx.storage.events.pipeline_events import FileRule
from agentx.synthesis.pipelines.definition.ancestors import ancestors
from agentx.synthesis.pipelines.definition.faults import Faults, Place
from agentx.synthesis.pipelines.definition.naming import path_pattern
from agentx.synthesis.pipelines.definition.plan import Plan, Step, is_by_person


def rules_of(plan: Plan) -> Iterator[FileRule]:
    """Yield the file rules that the workspace enforces for a pipeline.

    Many paths are one pattern, with ``*`` for what differs between items, if it matches all of them and no
    file of another class.
    """
    own = {name: file for name, file in plan.pipeline.files.items() if not file.source}
    for name, file in own.items():
        if file.sort != "overwritable":
            others = {
                path for key, other in own.items() if other.sort != file.sort for path in plan.paths[key]
            }
            yield from (FileRule(path, file.sort) for path in _patterns(plan, name, others))


def patterns_of(plan: Plan) -> Iterator[str]:
    """Yield the paths and patterns of the artifacts that only agents and the engine write, except its log."""
    roles = plan.pipeline.roles.values()
    others = {write.file for role in roles if is_by_person(role) for write in role.writes}
    for name, file in plan.pipeline.files.items():
        if not file.source and name not in {*others, plan.pipeline.log}:
            # Items that are found later have no paths yet
            yield from _patterns(plan, name) or (_pattern(file.path),)


def _pattern(path: str) -> str:
    return re.sub(r"\{\{.*?\}\}", "*", path.strip(), flags=re.DOTALL)


def _patterns(plan: Plan, name: str, others: Collection[str] = ()) -> tuple[str, ...]:
    """Return one pattern for the many paths of a file; the paths where it would match one of ``others``."""
    paths = plan.paths[name]
    pattern = _pattern(plan.pipeline.files[name].path)
    matches = path_pattern(pattern).fullmatch
    fits = len(paths) > 1 and all(map(matches, paths)) and not any(map(matches, others))
    return (pattern,) if fits else paths


def look_at_claims(plan: Plan, faults: Faults, places: Mapping[str, Place]) -> None:
    """Record faults in the claims of a plan, once for each file and each pair of stages.

    ``places`` has the place of each stage in the file.
    """
    claims = _Claims(plan, faults, places)
    claims.of_classes()
    claims.of_writers()
    claims.of_readers()


class _Claims:
    def __init__(self, plan: Plan, faults: Faults, places: Mapping[str, Place]) -> None:
        self.plan, self.faults, self.places = plan, faults, places
        self.steps = list(plan.steps.values())
        self.number = {key: n for n, key in enumerate(plan.steps)}
        self.before = ancestors(plan)
        self.writers: defaultdict[str, list[Step]] = defaultdict(list)
        self.appenders: defaultdict[str, list[Step]] = defaultdict(list)
        for step in self.steps:
            for path in dict.fromkeys(write.path for write in step.writes):
                self.writers[path].append(step)
            for path in dict.fromkeys(append.to for append in step.appends):
                self.appenders[path].append(step)
        self.refused: set[str] = set()
        self.said: set[tuple[str, ...]] = set()

    def _waits(self, late: Step, early: Step) -> bool:
        return bool(self.before[late.key] >> self.number[early.key] & 1)

    def _refuse(self, path: str, stages: tuple[str, ...], what: str) -> None:
        """Record a fault of a path, once for the same stages.

        Further faults of the path would only follow from it.
        """
        self.refused.add(path)
        if stages not in self.said:
            self.said.add(stages)
            self.faults.add(self.places[stages[0]], what)

    def of_classes(self) -> None:
        """Check that each path has one class, and that static files are written once."""
        named: dict[str, str] = {}
        files = self.plan.pipeline.files
        for name, paths in self.plan.paths.items():
            for path in paths if not files[name].source else ():
                other = named.setdefault(path, name)
                if files[other].sort != files[name].sort:
                    self.refused.add(path)
                    what = f"{path} is {files[name].sort} here but {files[other].sort} as {other}"
                    self.faults.add(("files", name), f"{what}; a path can have only one class")
                    break
        for path, steps in self.writers.items():
            if path in self.refused or next(w.sort for w in steps[0].writes if w.path == path) != "static":
                continue
            rule, first = f"{path} is static and can be written only once", steps[0]
            if len(steps) > 1:
                what = f"{rule}, but {_both(*steps[:2])} write it"
                self._refuse(path, (steps[1].stage, first.stage, "static"), what)
            elif first.loop:
                loop = self.plan.loops[first.loop].loop
                what = f"{rule}, but {_named(first)} is part of loop {loop} and may write it again"
                self._refuse(path, (first.stage, "static"), what)

    def of_writers(self) -> None:
        """Check that each file has one writer at any time."""
        for path, steps in self.writers.items():
            if path in self.refused:
                continue
            clash = next(((a, b) for a, b in pairwise(steps) if not self._waits(b, a)), None)
            # A step may write a file itself while the engine appends to it for another.
            clash = clash or next(
                (
                    (writer, other)
                    for writer in steps
                    for other in self.appenders.get(path, ())
                    if other.key != writer.key
                    and not self._waits(writer, other)
                    and not self._waits(other, writer)
                ),
                None,
            )
            if clash is not None:
                one, other = clash
                what = f"{_both(one, other)} may write {path} at the same time; a file can have only one"
                way_out = f"writer at a time: {_way_out(one, other)}"
                self._refuse(path, (other.stage, one.stage, "writes"), f"{what} {way_out}")

    def of_readers(self) -> None:
        """Check that each reader of a file comes after its writer; later steps may rewrite the file."""
        masks = {
            path: sum(1 << self.number[step.key] for step in steps) for path, steps in self.writers.items()
        }
        matching: dict[str, list[str]] = {}
        for step in self.steps:
            for read in step.reads:
                if read.rule.optional or read.source:
                    continue
                for named in read.paths:
                    if "*" not in named:
                        matching[named] = [named]
                    elif named not in matching:
                        pattern = path_pattern(named)
                        matching[named] = [path for path in masks if pattern.fullmatch(path)]
                    for path in matching[named]:
                        self._look_at_read(step, path, masks.get(path, 0), many="*" in named)

    def _look_at_read(self, step: Step, path: str, writers: int, *, many: bool) -> None:
        late = writers & ~self.before[step.key] & ~(1 << self.number[step.key])
        if not late or path in self.refused:
            return
        writer = self.steps[(late & -late).bit_length() - 1]
        if not self._waits(writer, step):
            when = "but does not wait for it"
        elif not many and not writers & self.before[step.key]:
            when = "which runs later"
        else:
            return  # the writers of the file wait for each other, so if the first one waits, all do
        if (step.stage, writer.stage, "reads") not in self.said:
            self.said.add((step.stage, writer.stage, "reads"))
            what = f"{_named(step)} reads {path}, which {_named(writer)} writes, {when}"
            self.faults.add(self.places[step.stage], f"{what}. {self._order(step, writer)}")

    def _order(self, step: Step, writer: Step) -> str:
        """Return advice for a reader that does not wait for a writer."""
        if self._waits(writer, step):
            return "Mark the pointer `optional`, or reverse their order"
        if writer.stage == step.stage:
            return "Let it read the file of its own item, or mark the pointer `optional`"
        same = writer.loop and writer.loop == step.loop
        behind = writer.stage if same or not writer.loop else self.plan.loops[writer.loop].loop
        return f"Let it wait for {behind}, or mark the pointer `optional`"


def _named(step: Step) -> str:
    item = f", item {step.item}" if step.item else ""
    return f"role {step.role} (stage {step.stage}{item})"


def _both(one: Step, other: Step) -> str:
    if one.stage == other.stage:
        return f"role {one.role} (stage {one.stage}, items {one.item} and {other.item})"
    return f"{_named(one)} and {_named(other)}"


def _way_out(one: Step, other: Step) -> str:
    if one.stage == other.stage:
        owner = "its loop" if one.loop else "the stage"
        return f"use a separate file for each item, or set `after_previous` on {owner}"
    if one.item != other.item and one.item and other.item:
        return f"use a separate file for each item, or let {other.stage} wait for all of {one.stage}"
    return f"let {other.stage} wait for {one.stage}, or use separate files"
