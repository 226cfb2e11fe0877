"""Resolve a pipeline's file to the steps of every item: their dependencies, reads and writes.

An invalid pipeline is rejected here: an undefined name, a cycle of stages, a file that two roles claim at the
same time. Each fault names the role, the file, the rule and the line.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from itertools import product
from typing import Any

import msgspec

from agentx.storage.errors import AgentXError
from agentx.storage.events.pipeline_events import key_of
from agentx.storage.files.paths import PathRefused, check_path
from agentx.synthesis.pipelines.definition.checks import CheckInvalid, number_of_words
from agentx.synthesis.pipelines.definition.claims import look_at_claims
from agentx.synthesis.pipelines.definition.faults import Faults, Place, Source, hint
from agentx.synthesis.pipelines.definition.items import Agreeing, Found, Items, before
from agentx.synthesis.pipelines.definition.name_rules import checks_of, look_at_names
from agentx.synthesis.pipelines.definition.order import Flat, Order
from agentx.synthesis.pipelines.definition.pipeline import File, Pipeline, Previous, Role, Write
from agentx.synthesis.pipelines.definition.plan import (
    AppendFile,
    Item,
    LoopStep,
    OpenStage,
    Plan,
    ReadFile,
    Step,
    WriteFile,
)
from agentx.synthesis.pipelines.templates import TemplateInvalid, fill, names_in

MAX_STEPS = 20_000
"""Maximum number of steps: a larger pipeline is not readable."""

_STAR = "\ue000"
"""Stands in for a star while a path is checked, so that a pattern is checked like a plain path."""

_LEFT_OUT = ("", "false", "no", "0", "none")
"""Values of ``when``, in lower case, that leave a stage out."""

EVERY = "*"
"""In the place of an item, in the needs of a step: all items of a stage whose items are not known yet."""


def resolve(pipeline: Pipeline, source: Source, found: Found | None = None) -> Plan:
    """Resolve a pipeline's file.

    ``found`` has the items that were found in the workspace, by name. Stages whose items are not known yet
    are ``open`` in the plan.

    Raises:
        PipelineInvalid: It is invalid. All of its faults are reported, except those that only follow from
            others.
    """
    return _Resolver(pipeline, Faults(source), found or {}).plan()


class _Resolver:
    def __init__(self, pipeline: Pipeline, faults: Faults, found: Found) -> None:
        self.pipeline = pipeline
        self.faults = faults
        self.found = found
        self.refused: set[Place] = set()
        self.open: dict[str, str] = {}  # the missing items, by stage or loop
        self.each: dict[str, tuple[Item | None, ...]] = {}
        self.agreeing: dict[str, Agreeing] = {}
        self.previous: dict[tuple[str, str], dict[str, str]] = {}
        self.filled: dict[tuple[str, int], tuple[str, ...]] = {}
        self.skipped: dict[str, tuple[str, ...]] = {}
        self.told: list[dict[str, Any]] = []

    def plan(self) -> Plan:
        self.items = Items(self.pipeline, self.found, self.faults)
        self.order = Order(self.pipeline, self.faults)
        look_at_names(self.pipeline, self.faults)
        self.faults.stop()
        self.order.look()
        self.faults.stop()
        self.order.look_for_circles()
        self.faults.stop()
        self._repeat()
        self.faults.stop()
        steps = self._steps()
        self.faults.stop()
        ordered = {key: steps[key] for key in self._sorted(steps)}
        loops = {loop.key: loop for loop in self._loop_steps(ordered)}
        paths = {
            name: tuple(dict.fromkeys(self._paths_of(name, file)))
            for name, file in self.pipeline.files.items()
        }
        plan = Plan(self.pipeline, self.items.known, ordered, loops, paths, self.each, self._open_stages())
        look_at_claims(plan, self.faults, self.order.places)
        self.faults.stop()
        return plan

    def _repeat(self) -> None:
        """Find the items of each stage and loop, or that they are not known yet."""
        count = 0
        for name, flat in self.order.stages.items():
            missing = next((one for one in self.order.items_of(name) if one in self.items.open), "")
            if missing:
                self.open.setdefault(flat.unit, missing)
            else:
                count += self.items.count(flat.owner.for_each)
        if count > MAX_STEPS:
            what = f"the pipeline has {count:,} steps; at most {MAX_STEPS:,} are allowed"
            self.faults.add(("stages",), what)
            return
        for name, flat in self.order.stages.items():
            if flat.unit in self.open:
                self.open[name] = self.open[flat.unit]
            else:
                place = (*self.order.places[flat.unit], "for_each")
                self.each[name] = self.each.get(flat.unit) or self.items.over(flat.owner.for_each, place)
                self.each[flat.unit] = self.each[name]
        self.agreeing = {name: Agreeing(items) for name, items in self.each.items()}

    def _steps(self) -> dict[str, Step]:
        made: dict[str, Step] = {}
        self.base = {"title": self.pipeline.title, "items": self.items.values, "plan": self.told}
        self.base |= self.pipeline.variables
        for name, flat in self.order.stages.items():
            for item in self.each.get(name, ()):
                step = self._step(flat, item)
                if step is None:
                    break
                if not self._is_wanted(flat, step):
                    self.skipped[step.key] = step.needs
                    self.skipped[key_of(flat.unit, step.item)] = step.needs
                    continue
                made[step.key] = step
                self.told.append(_told(step))
        if self.skipped:
            made = {
                key: msgspec.structs.replace(step, needs=tuple(dict.fromkeys(self._kept(step.needs))))
                for key, step in made.items()
            }
        return made

    def _is_wanted(self, flat: Flat, step: Step) -> bool:
        """Return whether a stage is to be done for an item, by its ``when``."""
        when = flat.owner.when
        if not when:
            return True
        try:
            return fill(when, step.values).strip().lower() not in _LEFT_OUT
        except TemplateInvalid as error:
            place = (*self.order.places[flat.unit], "when")
            if place not in self.refused:
                self.refused.add(place)
                self.faults.add(place, f"{flat.unit} cannot be decided on: {error}")
            return True

    def _kept(self, needs: Iterable[str]) -> Iterator[str]:
        """Yield needs, those that are left out replaced by what they would wait for."""
        for need in needs:
            if need in self.skipped:
                yield from self._kept(self.skipped[need])
            else:
                yield need

    def _step(self, flat: Flat, item: Item | None) -> Step | None:
        """Return the step of a stage for an item; ``None`` if it is invalid, which is recorded."""
        role = self.pipeline.roles[flat.stage.role]
        key, values = item.id if item else "", self.base | (item.parts if item else {})
        filled = _Filled(self, flat, item, values)
        writes = tuple(
            filled.write(rule)
            for rule in role.writes
            if item is None or rule.only == "every" or (item.first if rule.only == "first" else item.last)
        )
        sources = {write.rule.file for write in writes}
        step = Step(
            key=key_of(flat.stage.id, key),
            stage=flat.stage.id,
            role=flat.stage.role,
            item=key,
            loop=key_of(flat.loop.loop, key) if flat.loop else "",
            needs=tuple(dict.fromkeys(self._needs(flat, item))),
            inside=tuple(key_of(name, key) for name in flat.stage.after if flat.loop),
            reads=tuple(
                ReadFile(rule, self.pipeline.files[rule.file].source, filled.paths(rule.file, "reads"))
                for rule in role.reads
            ),
            writes=writes,
            appends=tuple(
                AppendFile(rule, filled.path(rule.to, "appends to"), filled.path(rule.source, "writes"))
                for rule in role.appends
                if rule.source in sources
            ),
            values=values,
            forbidden=role.does_not_read,
            of=item,
        )
        filled.texts(role)
        if role.writes and not writes and filled.sound:
            what = "has nothing to write; let it write a file for `every` item"
            filled.refuse(("roles", flat.stage.role, "writes"), what)
        return step if filled.sound else None

    def _open_stages(self) -> dict[str, OpenStage]:
        stages = {name: flat for name, flat in self.order.stages.items() if name in self.open}
        made = {
            name: OpenStage(self.open[name], tuple(self._needs(flat, None))) for name, flat in stages.items()
        }
        return made | {flat.unit: made[name] for name, flat in stages.items()}

    def _needs(self, flat: Flat, item: Item | None) -> Iterator[str]:
        lists = (one for name in self.order.items_of(flat.stage.id) for one in self.order.writers(name))
        for name in (*flat.owner.after, *(self.order.unit(one) for one in lists)):
            if name in self.open:
                yield key_of(name, EVERY)
            else:
                yield from (key_of(name, one) for one in self.agreeing[name].of(item))
        previous = flat.owner.after_previous
        if item is None or previous is None:
            return
        for name in previous.stages or (flat.unit,):
            if before := self._before(flat, name, previous).get(item.id):
                yield key_of(name, before)

    def _before(self, flat: Flat, name: str, previous: Previous) -> dict[str, str]:
        """Return for each item of a stage the item before it, of those that another stage has."""
        if (flat.unit, name) not in self.previous:
            present = {item.id for item in self.each.get(name, ()) if item}
            try:
                made = before(self.each[flat.unit], previous, present)
            except KeyError as error:
                place = (*self.order.places[flat.unit], "after_previous", "by")
                self.faults.add(place, f"an item of {flat.unit} has no value {error.args[0]!r}")
                made = {}
            self.previous[flat.unit, name] = made
        return self.previous[flat.unit, name]

    def _sorted(self, steps: Mapping[str, Step]) -> list[str]:
        graph = {key: set(step.inside) for key, step in steps.items()}
        for key, step in steps.items():
            for need in step.needs:
                name, _, rest = need.partition("[")
                if need in steps:
                    graph[key].add(need)
                elif name not in self.open:
                    loop = self.order.loops[name].stages
                    graph[key] |= {key_of(one.id, rest.removesuffix("]")) for one in loop}
        try:
            return list(TopologicalSorter(graph).static_order())
        except CycleError as error:
            circle: list[str] = error.args[1][::-1]
            line = " → ".join(f"{key} (role {steps[key].role})" for key in circle)
            what = f"steps wait for each other in a cycle: {line}. Remove one dependency"
            self.faults.add(self.order.places[steps[circle[0]].stage], what)
            self.faults.stop()
            raise

    def _loop_steps(self, steps: Mapping[str, Step]) -> Iterator[LoopStep]:
        for name, loop in self.order.loops.items():
            inner = tuple(TopologicalSorter({one.id: set(one.after) for one in loop.stages}).static_order())
            for item in self.each.get(name, ()):
                key = item.id if item else ""
                keys = tuple(key_of(stage, key) for stage in inner)
                if keys[0] not in steps:  # left out by its `when`
                    continue
                decides, verdict = next(
                    (one, write.path)
                    for one in keys
                    for write in steps[one].writes
                    if write.rule.file == loop.until.file
                )
                yield LoopStep(
                    key_of(name, key), name, key, loop.at_most, loop.otherwise, keys, decides, verdict
                )

    def _paths_of(self, name: str, file: File) -> Iterator[str]:
        """Yield all paths of a file, over all items."""
        named = {name for name, _ in names_in(file.path)} & self.pipeline.items.keys()
        if named & set(self.items.open):
            return
        rows = product(*(self.items.known[one] for one in sorted(named)))
        for row in rows:
            known = self.filled.get((name, id(row[0]))) if len(row) == 1 else None
            if known is None:
                values = {key: part for item in row for key, part in item.parts.items()}
                try:
                    known = paths_of(file, self.base | values)
                except AgentXError:  # a step that names it reports it
                    return
            yield from known


def _told(step: Step) -> dict[str, Any]:
    """Return a step as templates see it in ``plan``."""
    return {
        "step": step.key,
        "stage": step.stage,
        "item": step.item,
        "role": step.role,
        "reads": [path for read in step.reads for path in read.paths],
        "writes": [write.path for write in step.writes],
    }


class _Filled:
    """Fills in the templates of a step, and records faults."""

    def __init__(self, resolver: _Resolver, flat: Flat, item: Item | None, values: dict[str, Any]) -> None:
        self.resolver = resolver
        self.pipeline = resolver.pipeline
        self.flat = flat
        self.values = values
        self.item = item
        self.who = f"role {flat.stage.role} (stage {flat.stage.id}{f', item {item.id}' if item else ''})"
        self.sound = True

    def refuse(self, place: Place, what: str) -> None:
        """Record a fault, one for each place."""
        self.sound = False
        if place not in self.resolver.refused:
            self.resolver.refused.add(place)
            self.resolver.faults.add(place, f"{self.who} {what}")

    def text(self, template: str, place: Place, what: str) -> str:
        """Fill in a template; empty if it cannot be filled."""
        if "{" not in template:
            return template
        try:
            return fill(template, self.values)
        except TemplateInvalid as error:
            self.unfilled(template, place, what, error)
            return ""

    def unfilled(self, template: str, place: Place, does: str, error: TemplateInvalid) -> None:
        """Record a template that cannot be filled.

        The fault is at the stage if the template names items that the stage is not repeated for.
        """
        try:
            named = {name for name, _ in names_in(template)}
        except TemplateInvalid:
            named = set()
        items = sorted(named & self.pipeline.items.keys() - self.values.keys())
        others = sorted(named - self.pipeline.items.keys() - self.values.keys())
        if items:
            over = " and ".join(self.flat.over)
            done = f"is repeated for each {over}" if over else "runs once"
            what = f"{does}, which uses {{{{ {items[0]} }}}}, but the stage {done}"
            every = [*self.flat.over, *items]
            each = f"[{', '.join(every)}]" if len(every) > 1 else every[0]
            self.refuse(self.flat.place, f"{what}; set `for_each: {each}`")
        elif others:
            what = f"{does}, which uses the unknown value {{{{ {others[0]} }}}}"
            self.refuse(place, what + hint(others[0], self.values))
        else:
            self.refuse(place, f"{does}: {error}")

    def paths(self, name: str, does: str) -> tuple[str, ...]:
        """Return the paths of a file; empty if its path cannot be filled in."""
        file, place = self.pipeline.files[name], ("files", name, "path")
        key = (name, id(self.item))  # items live as long as the resolver
        try:
            if key not in self.resolver.filled:
                self.resolver.filled[key] = paths_of(file, self.values)
            return self.resolver.filled[key]
        except TemplateInvalid as error:
            self.unfilled(file.path, place, f"{does} {name}", error)
        except PathRefused as error:
            self.refuse(place, f"{does} {name}: {error}")
        return ()

    def path(self, name: str, does: str) -> str:
        """Return the single path of a file that is written."""
        paths = self.paths(name, does)
        if self.sound and (len(paths) != 1 or "*" in paths[0]):
            what = f"{does} {name}, so it must have exactly one path, not {', '.join(paths) or 'none'}"
            self.refuse(("files", name, "path"), what)
        return paths[0] if paths else ""

    def write(self, rule: Write) -> WriteFile:
        return WriteFile(rule, self.path(rule.file, "writes"), self.pipeline.files[rule.file].sort)

    def texts(self, role: Role) -> None:
        """Check that all texts for the role can be filled in."""
        place: Place = ("roles", self.flat.stage.role)
        for key in ("title", "duty", "task"):
            self.text(getattr(role, key), (*place, key), f"cannot be given its {key}")
        self.text(role.split.join if role.split else "", (*place, "split", "join"), "cannot join its parts")
        for number, one in enumerate(role.standards):
            self.text(one, (*place, "standards", number), "cannot be given a standard")
        for number, write in enumerate(role.writes):
            what = f"cannot be given the format of {write.file}"
            self.text(write.format, (*place, "writes", number, "format"), what)
        for number, append in enumerate(role.appends):
            for key in ("section", "under", "topic"):
                self.text(getattr(append, key), (*place, "appends", number, key), f"appends to {append.to}")
        for inner, check in checks_of(role):
            for key in ("sections", "uses", "absent"):
                for number, one in enumerate(getattr(check, key)):
                    self.text(one, (*place, *inner, key, number), f"is checked for `{key}`")
            if check.length is not None:
                self.length(check.length.words, (*place, *inner, "length", "words"))

    def length(self, words: str, place: Place) -> None:
        """Check that a length is a number of words."""
        filled = self.text(words, place, "is checked for its length")
        try:
            number_of_words(filled if self.sound else "1")
        except CheckInvalid as error:
            self.refuse(place, f"cannot be checked: {error}")


def paths_of(file: File, values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the paths of a file: each line of its path, filled in.

    Raises:
        TemplateInvalid: Its path cannot be filled in.
        PathRefused: It leads out of the artifacts.
    """
    lines = [line.strip() for line in fill(file.path, values).splitlines() if line.strip()]
    return tuple(_checked(line) for line in lines)


@lru_cache(maxsize=MAX_STEPS)
def _checked(path: str) -> str:
    return check_path(path.replace("*", _STAR)).replace(_STAR, "*")
