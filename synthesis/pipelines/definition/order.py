"""The order of a pipeline: which stages and loops wait for which, without cycles."""

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Any

import msgspec

from agentx.synthesis.pipelines.definition.faults import Faults, Place, hint
from agentx.synthesis.pipelines.definition.pipeline import FoundItems, Loop, Pipeline, Stage
from agentx.synthesis.pipelines.templates import TemplateInvalid, names_in


class Flat(msgspec.Struct, frozen=True):
    """A stage, the loop that contains it, and its place in the file."""

    stage: Stage
    loop: Loop | None
    place: Place

    @property
    def owner(self) -> Stage | Loop:
        """What is repeated and waits for others: its loop, or the stage itself."""
        return self.loop or self.stage

    @property
    def unit(self) -> str:
        """The name of its owner."""
        return self.owner.name

    @property
    def over(self) -> tuple[str, ...]:
        """The kinds of items that it is repeated for; empty for none."""
        return _over(self.owner)

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
        self._named: dict[str, set[str]] = {}
        for number, entry in enumerate(pipeline.stages):
            self._enter(entry, ("stages", number))

    def over(self, name: str) -> tuple[str, ...]:
        """Return the kinds of items that a stage or loop is repeated for; empty for none."""
        return _over(self.loops[name]) if name in self.loops else self.stages[name].over

    def unit(self, name: str) -> str:
        """Return the name of the loop that contains a stage, or the name itself."""
        return self.stages[name].unit if name in self.stages else name

    def writers(self, items: str) -> list[str]:
        """Return the stages that write the list of some items."""
        given = self.pipeline.items[items]
        return [
            name
            for name, flat in self.stages.items()
            for write in self.pipeline.roles[flat.stage.role].writes
            if isinstance(given, FoundItems) and write.file == given.listed
        ]

    def items_of(self, name: str) -> tuple[str, ...]:
        """Return the kinds of items that a stage needs: it is repeated for them, or names their list."""
        flat = self.stages[name]
        return tuple(dict.fromkeys((*flat.over, *self._named_items(flat.stage.role))))

    def _named_items(self, name: str) -> set[str]:
        """Return the kinds of items whose list a role's texts use, as in ``items.chapter``."""
        if name not in self._named:
            named = {
                pair for text in _texts(self.pipeline.roles[name].model_dump()) for pair in _names_in(text)
            }
            self._named[name] = {
                key for first, key in named if first == "items" and key in self.pipeline.items
            }
        return self._named[name]

    def _enter(self, entry: Stage | Loop, place: Place) -> None:
        if isinstance(entry, Stage):
            self._enter_stage(entry, None, place)
            return
        self._enter_name(entry.loop, place)
        self.loops[entry.loop] = entry
        for number, stage in enumerate(entry.stages):
            inner: Place = (*place, "stages", number)
            for key in ("for_each", "when", "after_previous"):
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
        for name in _over(given):
            if name not in self.pipeline.items:
                what = f"{who} is repeated for each {name!r}, but there are no such items"
                self.add((*place, "for_each"), what + hint(name, self.pipeline.items))
                return
        if len(set(_over(given))) < len(_over(given)):
            self.add((*place, "for_each"), f"{who} is repeated for each of the same items twice")
        loop = flat.loop if flat else None
        for name in given.after:
            if why := self._objection(name, loop):
                self.add((*place, "after"), f"{who} waits for {name!r}, {why}")
        if given.after_previous is not None and loop is None:
            self._look_at_previous(who, given, (*place, "after_previous"))

    def _look_at_previous(self, who: str, given: Stage | Loop, place: Place) -> None:
        previous, over = given.after_previous, _over(given)
        if not over:
            self.add(place, f"{who} waits for the previous item, but runs once; set `for_each`")
            return
        for name in previous.stages if previous else ():
            why = self._objection(name, None)
            if not why and set(self.over(name)) != set(over):
                why = "but they are not both repeated for each of the same items"
            if why:
                self.add(place, f"{who} waits for {name!r} of the previous item, {why}")
        for word in previous.by if previous else ():
            if word.partition(".")[0] not in over:
                what = f"{who} has a chain for each {word!r}, which is not among its items"
                self.add((*place, "by"), what + hint(word, over))

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
        self._look_at_lists()
        graph = {name: loop.after for name, loop in self.loops.items()}
        graph |= {name: flat.stage.after for name, flat in self.stages.items() if flat.loop is None}
        for name, flat in self.stages.items():
            listing = (self.unit(one) for items in self.items_of(name) for one in self.writers(items))
            graph[flat.unit] = (*graph[flat.unit], *listing)
        self._look_for_circle(graph, "")

    def _look_at_lists(self) -> None:
        """Check that each list of items is written by one stage that runs once."""
        for name, given in self.pipeline.items.items():
            writers = self.writers(name)
            listed = given.listed if isinstance(given, FoundItems) else ""
            if len(writers) > 1:
                what = f"items {name} come from {listed}, which {' and '.join(writers)} write; one stage must"
                self.add(("items", name, "from"), what)
            elif writers and self.over(writers[0]):
                what = f"items {name} come from {listed}, which stage {writers[0]} writes for each of its"
                self.add(("items", name, "from"), f"{what} items; a stage that runs once must")

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


def _over(owner: Stage | Loop) -> tuple[str, ...]:
    return owner.for_each.over if owner.for_each else ()


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in nested lists and maps."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def _names_in(text: str) -> frozenset[tuple[str, str]]:
    try:
        return names_in(text)
    except TemplateInvalid:  # reported where the template is filled in
        return frozenset()
