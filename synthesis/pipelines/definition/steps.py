"""Resolve a pipeline's file to the steps of every item: their dependencies, reads and writes.

An invalid pipeline is rejected here: an undefined name, a cycle of stages, a file that two roles claim at the
same time. Each fault names the role, the file, the rule and the line.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Any

from agentx.storage.errors import AgentXError
from agentx.storage.events.pipeline_events import key_of
from agentx.storage.files.paths import PathRefused, check_path
from agentx.synthesis.pipelines.definition.checks import CheckInvalid, number_of_words
from agentx.synthesis.pipelines.definition.claims import look_at_claims
from agentx.synthesis.pipelines.definition.faults import Faults, Place, Source, hint
from agentx.synthesis.pipelines.definition.name_rules import checks_of, look_at_names
from agentx.synthesis.pipelines.definition.order import Flat, Order
from agentx.synthesis.pipelines.definition.pipeline import File, Pipeline, Role, Write
from agentx.synthesis.pipelines.definition.plan import (
    AppendFile,
    Item,
    LoopStep,
    Plan,
    ReadFile,
    Step,
    WriteFile,
)
from agentx.synthesis.pipelines.templates import TemplateInvalid, fill, names_in

_KEY = re.compile(r"[A-Za-z0-9][\w.-]{0,63}")

MAX_STEPS = 20_000
"""Maximum number of steps: a larger pipeline is not readable."""

_STAR = "\ue000"
"""Stands in for a star while a path is checked, so that a pattern is checked like a plain path."""

_WIDTH = 2
"""Minimum number of digits of item ids if only the number of items is given."""


def resolve(pipeline: Pipeline, source: Source) -> Plan:
    """Resolve a pipeline's file.

    Raises:
        PipelineInvalid: It is invalid. All of its faults are reported, except those that only follow from
            others.
    """
    return _Resolver(pipeline, Faults(source)).plan()


class _Resolver:
    def __init__(self, pipeline: Pipeline, faults: Faults) -> None:
        self.pipeline = pipeline
        self.faults = faults
        self.items: dict[str, tuple[Item, ...]] = {}
        self.refused: set[Place] = set()

    def plan(self) -> Plan:
        self.items = {name: tuple(self._items(name, given)) for name, given in self.pipeline.items.items()}
        self.order = Order(self.pipeline, self.faults)
        look_at_names(self.pipeline, self.faults)
        self.faults.stop()
        self.order.look()
        self.faults.stop()
        self.order.look_for_circles()
        self.faults.stop()
        steps = self._steps()
        self.faults.stop()
        ordered = {key: steps[key] for key in self._sorted(steps)}
        loops = {loop.key: loop for loop in self._loop_steps(ordered)}
        paths = {
            name: tuple(dict.fromkeys(self._paths_of(file))) for name, file in self.pipeline.files.items()
        }
        plan = Plan(self.pipeline, self.items, ordered, loops, paths)
        look_at_claims(plan, self.faults, self.order.places)
        self.faults.stop()
        return plan

    def _items(self, name: str, given: list[dict[str, Any]] | int) -> Iterator[Item]:
        if isinstance(given, int):
            width = max(_WIDTH, len(str(given)))
            given = [{"id": str(number).zfill(width)} for number in range(1, given + 1)]
        seen: set[str] = set()
        for number, values in enumerate(given, start=1):
            key = values.get("id", "")
            if not isinstance(key, str) or not _KEY.fullmatch(key):
                wrong = f"an `id` consists of letters, digits, dots, - and _; {key!r} does not"
                self.faults.add(("items", name, number - 1, "id"), wrong if key else "the item has no `id`")
                continue
            if key in seen:
                self.faults.add(("items", name, number - 1, "id"), f"duplicate item {key!r}")
            seen.add(key)
            own = {"number": number, "first": number == 1, "last": number == len(given), "of": len(given)}
            yield Item(key, number, values | own)

    def _steps(self) -> dict[str, Step]:
        made: dict[str, Step] = {}
        count = sum(len(self._over(flat.for_each)) for flat in self.order.stages.values())
        if count > MAX_STEPS:
            what = f"the pipeline has {count:,} steps; at most {MAX_STEPS:,} are allowed"
            self.faults.add(("stages",), what)
            return made
        for flat in self.order.stages.values():
            for item in self._over(flat.for_each):
                step = self._step(flat, item)
                if step is None:
                    break
                made[step.key] = step
        return made

    def _over(self, for_each: str) -> "tuple[Item | None, ...]":
        return self.items[for_each] if for_each else (None,)

    def _values(self, for_each: str, item: Item | None) -> dict[str, Any]:
        given = self.pipeline.variables | {"title": self.pipeline.title}
        return given | ({for_each: item.values} if item else {})

    def _step(self, flat: Flat, item: Item | None) -> Step | None:
        """Return the step of a stage for an item; ``None`` if it is invalid, which is recorded."""
        role = self.pipeline.roles[flat.stage.role]
        key, values = item.id if item else "", self._values(flat.for_each, item)
        filled = _Filled(self, flat, key, values)
        writes = tuple(
            filled.write(rule)
            for rule in role.writes
            if item is None or rule.only == "every" or item.values[rule.only]
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
        )
        filled.texts(role)
        if not writes and filled.sound:
            what = "has nothing to write; let it write a file for `every` item"
            filled.refuse(("roles", flat.stage.role, "writes"), what)
        return step if filled.sound else None

    def _needs(self, flat: Flat, item: Item | None) -> Iterator[str]:
        owner = flat.loop or flat.stage
        for name in owner.after:
            if item is not None and self.order.each(name) == flat.for_each:
                yield key_of(name, item.id)
            else:
                yield from (key_of(name, one.id if one else "") for one in self._over(self.order.each(name)))
        if item is not None and item.number > 1:
            before = self.items[flat.for_each][item.number - 2]
            yield from (key_of(name, before.id) for name in owner.after_previous)

    def _sorted(self, steps: Mapping[str, Step]) -> list[str]:
        graph = {key: set(step.inside) for key, step in steps.items()}
        for key, step in steps.items():
            for need in step.needs:
                name, _, rest = need.partition("[")
                loop = () if need in steps else self.order.loops[name].stages
                graph[key] |= {key_of(one.id, rest.removesuffix("]")) for one in loop} or {need}
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
            for item in self._over(loop.for_each):
                key = item.id if item else ""
                keys = tuple(key_of(stage, key) for stage in inner)
                decides, verdict = next(
                    (one, write.path)
                    for one in keys
                    for write in steps[one].writes
                    if write.rule.file == loop.until.file
                )
                yield LoopStep(
                    key_of(name, key), name, key, loop.at_most, loop.otherwise, keys, decides, verdict
                )

    def _paths_of(self, file: File) -> Iterator[str]:
        """Yield all paths of a file, over all items."""
        named = {name for name, _ in names_in(file.path)}
        each = [name for name in self.items if name in named] or [""]
        for for_each in each:
            for item in self._over(for_each):
                try:
                    yield from paths_of(file, self._values(for_each, item))
                except AgentXError:  # its path needs items of two kinds, and no step names it
                    return


class _Filled:
    """Fills in the templates of a step, and records faults."""

    def __init__(self, resolver: _Resolver, flat: Flat, item: str, values: dict[str, Any]) -> None:
        self.resolver = resolver
        self.pipeline = resolver.pipeline
        self.flat = flat
        self.values = values
        self.who = f"role {flat.stage.role} (stage {flat.stage.id}{f', item {item}' if item else ''})"
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
            for_each = self.flat.for_each
            done = f"is repeated for each {for_each}" if for_each else "runs once"
            what = f"{does}, which uses {{{{ {items[0]} }}}}, but the stage {done}"
            self.refuse(self.flat.place, f"{what}; set `for_each: {items[0]}`")
        elif others:
            what = f"{does}, which uses the unknown value {{{{ {others[0]} }}}}"
            self.refuse(place, what + hint(others[0], self.values))
        else:
            self.refuse(place, f"{does}: {error}")

    def paths(self, name: str, does: str) -> tuple[str, ...]:
        """Return the paths of a file; empty if its path cannot be filled in."""
        file, place = self.pipeline.files[name], ("files", name, "path")
        try:
            return paths_of(file, self.values)
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
