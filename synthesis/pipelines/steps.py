"""What follows from a pipeline's file: every step of every item, what it waits for, what it reads and writes.

Resolving is where a pipeline is refused: a name that there is not, a circle of stages, a file that two roles claim at the same
time. Each fault names the role, the file and the rule, and the line that it stands in.
"""

import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

import msgspec

from agentx.storage.errors import AgentXError
from agentx.storage.paths import check_path
from agentx.synthesis.pipelines.claims import faults_of
from agentx.synthesis.pipelines.definition import Append, File, Loop, Pipeline, Read, Role, Stage, Write
from agentx.synthesis.pipelines.plan import (
    AppendFile,
    Item,
    LoopStep,
    Plan,
    ReadFile,
    Step,
    WriteFile,
    agent_types,
    is_by_engine,
    key_of,
)
from agentx.synthesis.pipelines.reading import Fault, PipelineInvalid, Place, Source
from agentx.synthesis.pipelines.templates import TemplateInvalid, fill

_KEY = re.compile(r"[A-Za-z0-9][\w.-]{0,63}")

MAX_STEPS = 50_000
"""More than this is no pipeline that anyone reads."""


def resolve(pipeline: Pipeline, source: Source) -> Plan:
    """Everything that follows from a pipeline's file.

    Raises:
        PipelineInvalid: It says what cannot be; all of its faults are told.
    """
    return _Resolver(pipeline, source).plan()


class _Flat(msgspec.Struct, frozen=True):
    """A stage with the loop that it stands in, and where the file says it."""

    stage: Stage
    loop: Loop | None
    place: Place

    @property
    def for_each(self) -> str:
        return self.loop.for_each if self.loop else self.stage.for_each


class _Resolver:
    def __init__(self, pipeline: Pipeline, source: Source) -> None:
        self.pipeline = pipeline
        self.source = source
        self.faults: list[Fault] = []
        self.items: dict[str, tuple[Item, ...]] = {}
        self.flat: dict[str, _Flat] = {}
        self.loops: dict[str, Loop] = {}
        self.order: dict[str, dict[str, Any]] = {}
        self.places: dict[str, Place] = {}

    def fault(self, place: Place, what: str) -> None:
        """Note a fault."""
        self.faults.append(self.source.fault(place, what))

    def stop_at_faults(self) -> None:
        """Refuse the pipeline where anything is wrong so far."""
        if self.faults:
            raise PipelineInvalid(self.source.path, self.faults)

    def plan(self) -> Plan:
        self.items = {name: tuple(self._items(name, given)) for name, given in self.pipeline.items.items()}
        self._flatten()
        self._check_roles()
        self.stop_at_faults()
        self._check_stages()
        self.stop_at_faults()
        steps = self._steps()
        self.stop_at_faults()
        ordered = {key: steps[key] for key in self._sorted(steps)}
        loops = {loop.key: loop for loop in self._loop_steps(ordered)}
        paths = {name: tuple(self._paths_of(name)) for name in self.pipeline.files}
        markers = {one.path: one.rule.marker for step in ordered.values() for one in step.writes}
        plan = Plan(self.pipeline, self.items, ordered, loops, paths, markers)
        self.faults += faults_of(plan, self.source, self.places)
        self.stop_at_faults()
        return plan

    # --- items and stages --------------------------------------------------------------------------------------------

    def _items(self, name: str, given: list[dict[str, Any]] | int) -> Iterator[Item]:
        if isinstance(given, int):
            width = max(2, len(str(given)))
            given = [{"id": str(number).zfill(width)} for number in range(1, given + 1)]
        seen: set[str] = set()
        for number, values in enumerate(given, start=1):
            place = ("items", name, number - 1)
            key = str(values.get("id", ""))
            if not _KEY.fullmatch(key):
                self.fault(
                    place, f"an item needs an `id` of letters, digits, dots, - and _; {key!r} is none."
                )
            elif key in seen:
                self.fault(place, f"there are two items {key!r}.")
            seen.add(key)
            first, last = number == 1, number == len(given)
            yield Item(
                key, number, values | {"number": number, "first": first, "last": last, "of": len(given)}
            )
        if not given:
            self.fault(("items", name), "there are no items.")

    def _flatten(self) -> None:
        for number, entry in enumerate(self.pipeline.stages):
            place: Place = ("stages", number)
            if isinstance(entry, Stage):
                self._enter(entry, None, place)
                continue
            if entry.loop in self.loops or entry.loop in self.flat:
                self.fault(place, f"there are two stages or loops {entry.loop!r}.")
            self.loops[entry.loop] = entry
            self.places[entry.loop] = place
            for inner, stage in enumerate(entry.stages):
                if stage.for_each or stage.after_previous:
                    self.fault(
                        (*place, "stages", inner), "`for_each` and `after_previous` belong to its loop."
                    )
                self._enter(stage, entry, (*place, "stages", inner))

    def _enter(self, stage: Stage, loop: Loop | None, place: Place) -> None:
        if stage.id in self.flat or stage.id in self.loops:
            self.fault(place, f"there are two stages or loops {stage.id!r}.")
        if stage.role not in self.pipeline.roles:
            self.fault(
                (*place, "role"), f"stage {stage.id} is for role {stage.role!r}, and there is no such role."
            )
        self.flat[stage.id] = _Flat(stage, loop, place)
        self.places[stage.id] = place

    def _check_roles(self) -> None:
        types = agent_types(self.pipeline)
        for name, role in self.pipeline.roles.items():
            place: Place = ("roles", name)
            if role.agent not in types:
                self.fault(
                    (*place, "agent"),
                    f"there is no type of agent {role.agent!r}; there is {', '.join(types)}.",
                )
            self._check_pointers(name, role, place)
            if is_by_engine(role) and any(not write.content for write in role.writes):
                self.fault(
                    place, f"role {name} is the engine's, so each file that it writes needs `content`."
                )
            if role.agent in types and types[role.agent].read_only and not is_by_engine(role):
                self._check_read_only(name, role, place)

    def _check_read_only(self, name: str, role: Role, place: Place) -> None:
        sorts = [
            self.pipeline.files[write.file].sort for write in role.writes if write.file in self.pipeline.files
        ]
        if len(role.writes) != 1 or sorts != ["overwritable"]:
            what = f"role {name} is played by {role.agent}, which is read-only: it writes one overwritable file, its report."
            self.fault((*place, "writes"), what)

    def _check_pointers(self, name: str, role: Role, place: Place) -> None:
        files = self.pipeline.files
        unknown = False
        for where, file in _named_files(role):
            if file not in files:
                unknown = True
                what = f"role {name} names the file {file!r}, which stands nowhere under `files`."
                self.fault((*place, *where), what)
        if unknown:
            return
        for n, write in enumerate(role.writes):
            if files[write.file].source:
                what = f"role {name} writes {write.file}, which lies in a source tree: those are only read."
                self.fault((*place, "writes", n), what)
        for n, append in enumerate(role.appends):
            if files[append.to].sort != "append-only":
                what = (
                    f"role {name} appends to {append.to}, which is {files[append.to].sort}, not append-only."
                )
                self.fault((*place, "appends", n, "to"), what)
            if append.source not in {write.file for write in role.writes}:
                what = f"role {name} appends from {append.source}, which it does not write."
                self.fault((*place, "appends", n, "from"), what)
        self._check_lists(name, role, place)

    def _check_lists(self, name: str, role: Role, place: Place) -> None:
        reads = {one.file for one in role.reads}
        for n, denied in enumerate(role.does_not_read):
            if denied.file in reads and "{" not in self.pipeline.files[denied.file].path:
                what = f"role {name} both reads {denied.file} and does not read it."
                self.fault((*place, "does_not_read", n), what)
        if role.split and role.split not in reads:
            self.fault(
                (*place, "split"), f"role {name} is split over {role.split!r}, which it does not read."
            )

    # --- order -------------------------------------------------------------------------------------------------------

    def _check_stages(self) -> None:
        for name, loop in self.loops.items():
            place = self.places[name]
            self._check_waits(f"loop {name}", loop.for_each, loop.after, loop.after_previous, place)
            writers = [
                s.id
                for s in loop.stages
                if loop.until.file in {w.file for w in self.pipeline.roles[s.role].writes}
            ]
            if len(writers) != 1:
                self.fault(
                    (*place, "until"),
                    f"loop {name} ends by the verdict in {loop.until.file!r}, and no one stage of it writes that.",
                )
        for name, flat in self.flat.items():
            inside = {one.id for one in flat.loop.stages} if flat.loop else set()
            waits = tuple(one for one in flat.stage.after if one not in inside)
            if flat.loop and waits:
                self.fault(
                    (*flat.place, "after"),
                    f"stage {name} waits for {waits[0]!r} outside of its loop; let the loop wait for that.",
                )
            self._check_waits(
                f"stage {name}", flat.for_each, flat.stage.after, flat.stage.after_previous, flat.place
            )
        if not self.faults:
            self._check_circles()

    def _check_waits(
        self, who: str, for_each: str, after: tuple[str, ...], previous: tuple[str, ...], place: Place
    ) -> None:
        if for_each and for_each not in self.items:
            self.fault((*place, "for_each"), f"{who} is for each {for_each!r}, and there are no such items.")
        for key, names in (("after", after), ("after_previous", previous)):
            for name in names:
                if name not in self.flat and name not in self.loops:
                    self.fault((*place, key), f"{who} comes after {name!r}, and there is no such stage.")
                elif key == "after_previous" and (not for_each or self._each(name) != for_each):
                    self.fault(
                        (*place, key),
                        f"{who} comes after {name} of the item before, and not both are done for each item.",
                    )

    def _each(self, name: str) -> str:
        return self.loops[name].for_each if name in self.loops else self.flat[name].for_each

    def _check_circles(self) -> None:
        graph: dict[str, set[str]] = {name: set(loop.after) for name, loop in self.loops.items()}
        for name, flat in self.flat.items():
            graph[name] = set(flat.stage.after) | ({f"loop {flat.loop.loop}"} if flat.loop else set())
            if flat.loop:
                graph.setdefault(f"loop {flat.loop.loop}", set(flat.loop.after))
                graph[flat.loop.loop].add(name)
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            circle = [name for name in error.args[1][::-1] if not name.startswith("loop ")]
            roles = [
                f"{name} ({self.flat[name].stage.role})" if name in self.flat else name for name in circle
            ]
            self.fault(
                (*self.places[circle[0]], "after"),
                f"these stages wait for each other in a circle: {' → '.join(roles)}. A pipeline is a graph without circles.",
            )

    def _sorted(self, steps: Mapping[str, Step]) -> list[str]:
        graph = {key: {*step.inside, *self._steps_behind(step.needs, steps)} for key, step in steps.items()}
        try:
            return list(TopologicalSorter(graph).static_order())
        except CycleError as error:
            circle = " → ".join(error.args[1][::-1])
            self.fault(
                self.places[steps[error.args[1][0]].stage],
                f"these steps wait for each other in a circle: {circle}.",
            )
            self.stop_at_faults()
            raise

    def _steps_behind(self, needs: tuple[str, ...], steps: Mapping[str, Step]) -> Iterator[str]:
        for need in needs:
            if need in steps:
                yield need
            else:
                name, _, rest = need.partition("[")
                yield from (key_of(stage.id, rest.removesuffix("]")) for stage in self.loops[name].stages)

    # --- steps -------------------------------------------------------------------------------------------------------

    def _steps(self) -> dict[str, Step]:
        made: dict[str, Step] = {}
        count = sum(len(self.items.get(flat.for_each, ((),))) for flat in self.flat.values())
        if count > MAX_STEPS:
            self.fault(("stages",), f"it comes to {count:,} steps, more than {MAX_STEPS:,}.")
            return made
        for flat in self.flat.values():
            for item in self._over(flat.for_each):
                try:
                    step = self._step(flat, item)
                except (TemplateInvalid, AgentXError) as error:
                    self.fault(("roles", flat.stage.role), f"{error}".rstrip(".") + ".")
                    break
                made[step.key] = step
        return made

    def _over(self, for_each: str) -> "tuple[Item | None, ...]":
        return self.items[for_each] if for_each else (None,)

    def _values(self, for_each: str, item: Item | None) -> dict[str, Any]:
        return (
            self.pipeline.variables
            | {"title": self.pipeline.title}
            | ({for_each: item.values} if item else {})
        )

    def _step(self, flat: _Flat, item: Item | None) -> Step:
        role = self.pipeline.roles[flat.stage.role]
        values, key = self._values(flat.for_each, item), item.id if item else ""
        owner = flat.loop or flat.stage
        inside = {one.id for one in flat.loop.stages} if flat.loop else set()
        return Step(
            key=key_of(flat.stage.id, key),
            stage=flat.stage.id,
            role=flat.stage.role,
            item=key,
            loop=key_of(flat.loop.loop, key) if flat.loop else "",
            needs=tuple(self._needs(owner.after, owner.after_previous, flat.for_each, item)),
            inside=tuple(key_of(name, key) for name in flat.stage.after if name in inside),
            reads=tuple(self._read(one, values) for one in role.reads),
            writes=tuple(self._write(one, values) for one in role.writes if _is_for(one, item)),
            appends=tuple(self._append(one, values) for one in role.appends),
            values=values,
            forbidden=role.does_not_read,
        )

    def _needs(
        self, after: tuple[str, ...], previous: tuple[str, ...], for_each: str, item: Item | None
    ) -> Iterator[str]:
        for name in after:
            if item is not None and self._each(name) == for_each:
                yield key_of(name, item.id)
            else:
                yield from (key_of(name, one.id if one else "") for one in self._over(self._each(name)))
        if item is not None and item.number > 1:
            before = self.items[for_each][item.number - 2]
            yield from (key_of(name, before.id) for name in previous)

    def _read(self, rule: Read, values: Mapping[str, Any]) -> ReadFile:
        file = self.pipeline.files[rule.file]
        return ReadFile(rule, file.source, paths_of(file, values))

    def _write(self, rule: Write, values: Mapping[str, Any]) -> WriteFile:
        file = self.pipeline.files[rule.file]
        return WriteFile(rule, _one_path(rule.file, file, values), file.sort)

    def _append(self, rule: Append, values: Mapping[str, Any]) -> AppendFile:
        files = self.pipeline.files
        return AppendFile(
            rule,
            _one_path(rule.to, files[rule.to], values),
            _one_path(rule.source, files[rule.source], values),
        )

    def _loop_steps(self, steps: Mapping[str, Step]) -> Iterator[LoopStep]:
        for name, loop in self.loops.items():
            inner = tuple(TopologicalSorter({one.id: set(one.after) for one in loop.stages}).static_order())
            for item in self._over(loop.for_each):
                key = item.id if item else ""
                own = key_of(name, key)
                keys = tuple(key_of(stage, key) for stage in inner)
                decides = next(k for k in keys for w in steps[k].writes if w.rule.file == loop.until.file)
                verdict = next(w.path for w in steps[decides].writes if w.rule.file == loop.until.file)
                yield LoopStep(own, name, key, loop.at_most, loop.otherwise, keys, decides, verdict)

    def _paths_of(self, name: str) -> Iterator[str]:
        """Every path that a file comes to, over all items."""
        file = self.pipeline.files[name]
        if "{" not in file.path:
            yield from paths_of(file, self.pipeline.variables)
            return
        for for_each in (*self.items, ""):
            for item in self._over(for_each):
                try:
                    yield from paths_of(file, self._values(for_each, item))
                except AgentXError:  # it is for other items
                    break


def _named_files(role: Role) -> Iterator[tuple[Place, str]]:
    """The files that a role names, and where."""
    yield from ((("reads", n, "file"), one.file) for n, one in enumerate(role.reads))
    yield from ((("writes", n, "file"), one.file) for n, one in enumerate(role.writes))
    yield from ((("does_not_read", n), one.file) for n, one in enumerate(role.does_not_read))
    for n, append in enumerate(role.appends):
        yield ("appends", n, "to"), append.to
        yield ("appends", n, "from"), append.source


def _is_for(rule: Write, item: Item | None) -> bool:
    if item is None or rule.only == "every":
        return True
    return bool(item.values[rule.only])


def paths_of(file: File, values: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths that a file comes to: each line of its path, filled in.

    Raises:
        TemplateInvalid: Its path cannot be filled in.
        PathRefused: It leads out of the artifacts.
    """
    lines = [line.strip() for line in fill(file.path, values).splitlines() if line.strip()]
    for line in lines:
        check_path(line.replace("*", "x"))  # a pattern leads nowhere that its letters would not
    return tuple(lines)


def _one_path(name: str, file: File, values: Mapping[str, Any]) -> str:
    paths = paths_of(file, values)
    if len(paths) != 1 or "*" in paths[0]:
        raise TemplateInvalid(
            f"the file {name} is written, so its path is one path, and not {', '.join(paths) or 'none'}"
        )
    return paths[0]
