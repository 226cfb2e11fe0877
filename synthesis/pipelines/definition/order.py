"""The order of a pipeline: which stages and loops wait for which, without cycles."""

from graphlib import CycleError, TopologicalSorter

import msgspec

from agentx.synthesis.pipelines.definition.faults import Faults, Place, hint
from agentx.synthesis.pipelines.definition.pipeline import Loop, Pipeline, Stage


class Flat(msgspec.Struct, frozen=True):
    """A stage, the loop that contains it, and its place in the file."""

    stage: Stage
    loop: Loop | None
    place: Place

    @property
    def for_each(self) -> str:
        """The kind of items that it is repeated for; empty for none."""
        return self.loop.for_each if self.loop else self.stage.for_each

    @property
    def inside(self) -> set[str]:
        """The stages of its loop."""
        return {one.id for one in self.loop.stages} if self.loop else set()


class Order:
    """The stages and loops of a pipeline.

    Attributes:
        stages: By name, including those in loops.
        loops: By name.
        places: The place of each stage and loop in the file.
    """

    def __init__(self, pipeline: Pipeline, faults: Faults) -> None:
        self.pipeline = pipeline
        self.add = faults.add
        self.stages: dict[str, Flat] = {}
        self.loops: dict[str, Loop] = {}
        self.places: dict[str, Place] = {}
        for number, entry in enumerate(pipeline.stages):
            self._enter(entry, ("stages", number))

    def each(self, name: str) -> str:
        """Return the kind of items that a stage or loop is repeated for; empty for none."""
        return self.loops[name].for_each if name in self.loops else self.stages[name].for_each

    def _enter(self, entry: Stage | Loop, place: Place) -> None:
        if isinstance(entry, Stage):
            self._enter_stage(entry, None, place)
            return
        self._enter_name(entry.loop, place)
        self.loops[entry.loop] = entry
        for number, stage in enumerate(entry.stages):
            inner: Place = (*place, "stages", number)
            for key in ("for_each", "after_previous"):
                if getattr(stage, key):
                    what = f"stage {stage.id} is part of loop {entry.loop}; set `{key}` on the loop"
                    self.add((*inner, key), what)
            self._enter_stage(stage, entry, inner)

    def _enter_stage(self, stage: Stage, loop: Loop | None, place: Place) -> None:
        self._enter_name(stage.id, place)
        if stage.role not in self.pipeline.roles:
            what = f"stage {stage.id} names the unknown role {stage.role!r}"
            self.add((*place, "role"), what + hint(stage.role, self.pipeline.roles))
        self.stages[stage.id] = Flat(stage, loop, place)

    def _enter_name(self, name: str, place: Place) -> None:
        if name in self.places:
            self.add(place, f"duplicate stage or loop {name!r}")
        self.places[name] = place

    def look(self) -> None:
        """Record faults in the dependencies, except cycles."""
        for name, loop in self.loops.items():
            self._look_at_end(name, loop)
            self._look_at_waits(f"loop {name}", loop, self.places[name])
        for name, flat in self.stages.items():
            self._look_at_waits(f"stage {name}", flat.stage, flat.place, flat)

    def _look_at_end(self, name: str, loop: Loop) -> None:
        file, place = loop.until.file, (*self.places[name], "until", "file")
        if file not in self.pipeline.files:
            what = f"loop {name} ends by the verdict in {file!r}, which is not defined under `files`"
            self.add(place, what + hint(file, self.pipeline.files))
            return
        writes = [(one.role, w) for one in loop.stages for w in self.pipeline.roles[one.role].writes]
        found = [(role, write) for role, write in writes if write.file == file]
        ends = f"loop {name} ends by the verdict in {file}"
        if len(found) != 1:
            which = " and ".join(f"role {role}" for role, _ in found) or "none of its stages"
            self.add(place, f"{ends}, but {which} writes it; exactly one stage of the loop must")
        elif not found[0][1].verdict:
            self.add(place, f"{ends}, but role {found[0][0]} writes none; set `verdict: true` on its pointer")
        elif found[0][1].only != "every":
            self.add(place, f"{ends}, but role {found[0][0]} writes it only for the {found[0][1].only} item")

    def _look_at_waits(self, who: str, given: Stage | Loop, place: Place, flat: Flat | None = None) -> None:
        for_each = flat.for_each if flat else given.for_each
        if given.for_each and given.for_each not in self.pipeline.items:
            what = f"{who} is repeated for each {given.for_each!r}, but there are no such items"
            self.add((*place, "for_each"), what + hint(given.for_each, self.pipeline.items))
            return
        loop = flat.loop if flat else None
        for key in ("after", "after_previous"):
            for name in getattr(given, key):
                why = self._objection(name, loop)
                if not why and key == "after_previous" and (not for_each or self.each(name) != for_each):
                    why = "but they are not both repeated for each of the same items"
                if why:
                    before = " of the previous item" if key == "after_previous" else ""
                    self.add((*place, key), f"{who} waits for {name!r}{before}, {why}")

    def _objection(self, name: str, loop: Loop | None) -> str:
        """Return why a stage or loop cannot wait for another; empty if it can."""
        if name not in self.places:
            return f"which is not a stage or loop{hint(name, self.places)}"
        other = self.stages[name].loop if name in self.stages else None
        if loop and (other is None or other.loop != loop.loop):
            return f"which is outside loop {loop.loop}; let the loop wait for it"
        if other and not loop:
            return f"which is part of loop {other.loop}; wait for the loop"
        return ""

    def look_for_circles(self) -> None:
        """Record dependency cycles."""
        for name, loop in self.loops.items():
            self._look_for_circle({one.id: one.after for one in loop.stages}, f" in loop {name}")
        graph = {name: loop.after for name, loop in self.loops.items()}
        graph |= {name: flat.stage.after for name, flat in self.stages.items() if flat.loop is None}
        self._look_for_circle(graph, "")

    def _look_for_circle(self, graph: dict[str, tuple[str, ...]], where: str) -> None:
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            circle: list[str] = error.args[1][::-1]
            line = " → ".join(f"{name} ({self._who(name)})" for name in circle)
            what = f"stages{where} wait for each other in a cycle: {line}. Remove one dependency"
            self.add((*self.places[circle[0]], "after"), what)

    def _who(self, name: str) -> str:
        return f"role {self.stages[name].stage.role}" if name in self.stages else "a loop"
