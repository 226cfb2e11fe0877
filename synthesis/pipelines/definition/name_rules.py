"""Rules for the names in a pipeline's file: each is defined, has one meaning, and is used as allowed."""

import shutil
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from agentx.synthesis.pipelines.definition.checks import pattern_fault
from agentx.synthesis.pipelines.definition.faults import Faults, Place, hint
from agentx.synthesis.pipelines.definition.pipeline import (
    BY_ENGINE,
    BY_MODEL,
    BY_PERSON,
    Append,
    Check,
    FoundItems,
    Pipeline,
    Role,
)
from agentx.synthesis.pipelines.definition.plan import agent_types, is_by_engine, is_by_person, is_by_text
from agentx.synthesis.pipelines.templates import TemplateInvalid, names_in

OWN_NAMES = (
    *("title", "files", "range", "loop", "self", "true", "false", "none"),
    *("and", "or", "not", "in", "is", "if"),
)
"""Names that already have a meaning in every template."""

_MISTYPED = 0.75
"""Similarity (difflib, 1 is equal) from which a word is taken for a misspelling of another."""

IN_CONTENT = frozenset(("files", "round", "found"))
"""Names that the engine defines in the ``content`` of its roles."""

IN_PROMPTS = frozenset(
    (
        *("role", "name", "project", "item", "task", "reads", "left_out", "forbidden", "writes", "standards"),
        *(
            "held",
            "markers",
            "round",
            "found",
            "doubts",
            "tries",
            "reason",
            "rules",
            "wish",
            "part",
            "parts",
            "on_demand",
        ),
    )
)
"""Names that the engine defines in a role's own ``prompt``."""


def look_at_names(pipeline: Pipeline, faults: Faults) -> None:
    """Record faults in variables, items, files and roles."""
    rules = _Rules(pipeline, faults)
    rules.values()
    rules.files()
    for name, role in pipeline.roles.items():
        rules.role(name, role)


class _Rules:
    def __init__(self, pipeline: Pipeline, faults: Faults) -> None:
        self.pipeline = pipeline
        self.add = faults.add
        self.folder = Path(faults.source.path).parent

    def values(self) -> None:
        """Check that each name used in templates has one meaning."""
        pipeline = self.pipeline
        for part, names in (("variables", pipeline.variables), ("items", pipeline.items)):
            for name in names:
                if name in OWN_NAMES:
                    self.add((part, name), f"{name!r} is a reserved name in templates; choose another name")
        for name in pipeline.variables.keys() & pipeline.items.keys():
            self.add(("variables", name), f"{name!r} is also the name of items; choose another name")
        for name, given in pipeline.items.items():
            if not isinstance(given, FoundItems):
                continue
            if given.source and given.source not in pipeline.sources:
                what = f"the source {given.source!r} is not defined under `sources`"
                self.add(("items", name, "source"), what + hint(given.source, pipeline.sources))
            if given.listed and self.is_file(
                given.listed, ("items", name, "from"), f"items {name} come from"
            ):
                path = pipeline.files[given.listed].path.strip()
                if "{" in path or "*" in path or "\n" in path:
                    what = f"items {name} come from {given.listed}, which must be a single file, not {path}"
                    self.add(("items", name, "from"), what)

    def files(self) -> None:
        pipeline = self.pipeline
        for name, file in pipeline.files.items():
            if file.source and file.source not in pipeline.sources:
                what = f"file {name} is in the source {file.source!r}, which is not defined under `sources`"
                self.add(("files", name, "source"), what + hint(file.source, pipeline.sources))
        if pipeline.log and self.is_file(pipeline.log, ("log",), "the log is"):
            file = pipeline.files[pipeline.log]
            if file.sort != "append-only" or "{" in file.path:
                self.add(("log",), f"the log must be a single append-only file, and {pipeline.log} is not")

    def is_file(self, name: str, place: Place, who: str) -> bool:
        """Return whether a name is defined under ``files``; record a fault if not."""
        if name not in self.pipeline.files:
            what = f"{who} the file {name!r}, which is not defined under `files`"
            self.add(place, what + hint(name, self.pipeline.files))
        return name in self.pipeline.files

    def role(self, name: str, role: Role) -> None:
        place: Place = ("roles", name)
        types = agent_types(self.pipeline)
        if role.agent not in types:
            what = f"role {name} has the unknown agent type {role.agent!r}{hint(role.agent, types)}"
            self.add((*place, "agent"), what)
        elif types[role.agent].read_only and not is_by_engine(role):
            self.read_only(name, role)
        if not "".join(role.by).strip():
            self.add(
                (*place, "by"), f"role {name} has an empty `by`; use `model`, `engine`, `person` or a program"
            )
        elif meant := self.meant(role):
            what = f"role {name} is played by {role.by[0]!r}, which is not a known program"
            self.add((*place, "by"), f"{what}; did you mean {meant}?")
        elif is_by_text(role) and len(role.writes) > 1:
            what = f"role {name} is played by a program with plain text output and can write only one file"
            self.add((*place, "writes"), f"{what}; let it write one file, or use `jsonl`")
        who = f"role {name} names"
        found = [self.is_file(file, (*place, *where), who) for where, file in _named_files(role)]
        self.texts(name, role)
        if all(found):
            self.writes(name, role)
            self.reads(name, role)
            for number, append in enumerate(role.appends):
                self.append(name, role, append, (*place, "appends", number))

    def meant(self, role: Role) -> str:
        """Return the player if ``by`` is a misspelling of one and not a program; else empty."""
        word, players = role.by[0], (BY_MODEL, BY_ENGINE, BY_PERSON)
        near = get_close_matches(word.strip().casefold(), players, 1, _MISTYPED)
        if len(role.by) != 1 or word in players or not near:
            return ""
        return "" if shutil.which(word) or (self.folder / word).is_file() else near[0]

    def read_only(self, name: str, role: Role) -> None:
        files = self.pipeline.files
        sorts = [files[write.file].sort for write in role.writes if write.file in files]
        if len(role.writes) != 1 or sorts not in ([], ["overwritable"]):
            what = f"role {name} has the read-only agent type {role.agent}"
            must = "it must write exactly one overwritable file, its report"
            self.add(("roles", name, "writes"), f"{what}; {must}")

    def writes(self, name: str, role: Role) -> None:
        place: Place = ("roles", name, "writes")
        if not role.writes and not (is_by_person(role) and role.reads):
            what = "only a person approves what it reads" if role.reads else "it has nothing to do"
            self.add(place, f"role {name} writes nothing, and {what}; let it write a file")
        self.once(name, "writes", [write.file for write in role.writes])
        for number, write in enumerate(role.writes):
            if self.pipeline.files[write.file].source:
                what = f"role {name} writes {write.file}, which is in a source; sources are read-only"
                self.add((*place, number, "file"), what)
            if is_by_engine(role) and not write.content:
                what = f"role {name} is played by the engine, so {write.file} needs a template in `content`"
                self.add((*place, number), what)
            if write.content and not is_by_engine(role):
                what = f"`content` is only for roles played by the engine; set `by: engine` for role {name}"
                self.add((*place, number, "content"), what)

    def reads(self, name: str, role: Role) -> None:
        reads = [one.file for one in role.reads]
        self.once(name, "reads", reads)
        for number, one in enumerate(role.reads):
            if one.lazy and (is_by_text(role) or is_by_engine(role)):
                what = f"role {name} has no tool to read {one.file} with; remove `lazy`"
                self.add(("roles", name, "reads", number, "lazy"), what)
        for number, denied in enumerate(role.does_not_read):
            if denied.file in reads and "{" not in self.pipeline.files[denied.file].path:
                what = f"role {name} lists {denied.file} under both `reads` and `does_not_read`"
                self.add(("roles", name, "does_not_read", number), what)
        if role.split and role.split.over not in reads:
            what = f"role {name} is split over {role.split.over!r}, which it does not read"
            self.add(("roles", name, "split"), what + hint(role.split.over, reads))

    def once(self, name: str, part: str, files: Sequence[str]) -> None:
        for number, file in enumerate(files):
            if file in files[:number]:
                self.add(("roles", name, part, number), f"role {name} {part} {file} twice")

    def append(self, name: str, role: Role, append: Append, place: Place) -> None:
        sort = self.pipeline.files[append.to].sort
        if sort != "append-only":
            self.add((*place, "to"), f"role {name} appends to {append.to}, which is {sort}, not append-only")
        written = [write.file for write in role.writes]
        if append.source not in written:
            what = f"role {name} appends from {append.source}, which it does not write"
            self.add((*place, "from"), what + hint(append.source, written))

    def texts(self, name: str, role: Role) -> None:
        for place, check in checks_of(role):
            if check.matches and (fault := pattern_fault(check.matches)):
                self.add(("roles", name, *place, "matches"), f"role {name}: {fault}")
        if role.prompt:
            self.template(name, role.prompt, ("roles", name, "prompt"), IN_PROMPTS)
        reads = [one.file for one in role.reads]
        for number, write in enumerate(role.writes):
            place = ("roles", name, "writes", number, "content")
            for key in sorted(self.template(name, write.content, place, IN_CONTENT)):
                if key not in reads:
                    what = f"role {name} uses `files.{key}`, a file that it does not read"
                    self.add(place, what + hint(key, reads))

    def template(self, name: str, template: str, place: Place, given: frozenset[str]) -> set[str]:
        """Record undefined names in a template before it runs. Return the keys of ``files`` in it."""
        try:
            named = names_in(template)
        except TemplateInvalid as error:
            self.add(place, f"role {name}: {error}")
            return set()
        values = {"title", "items", "plan", *self.pipeline.variables, *self.pipeline.items}
        for one in sorted({first for first, _ in named}):
            if one not in given | values:
                what = f"role {name} uses the unknown value {one!r} in a template"
                self.add(place, what + hint(one, given | values))
            elif one in given & (values - {"title"}):
                self.add(place, f"{one!r} is a reserved name in this template; rename the variable or items")
        return {key for first, key in named if first == "files" and key}


def checks_of(role: Role) -> Iterator[tuple[Place, Check]]:
    """Yield the checks of a role, and their places in it."""
    for part in ("reads", "writes"):
        for number, pointer in enumerate(getattr(role, part)):
            for place, check in enumerate(pointer.checks):
                yield (part, number, "checks", place), check


def _named_files(role: Role) -> Iterator[tuple[Place, str]]:
    """Yield the files that a role names, and their places."""
    yield from ((("reads", n, "file"), one.file) for n, one in enumerate(role.reads))
    yield from ((("writes", n, "file"), one.file) for n, one in enumerate(role.writes))
    yield from ((("does_not_read", n), one.file) for n, one in enumerate(role.does_not_read))
    for n, append in enumerate(role.appends):
        yield ("appends", n, "to"), append.to
        yield ("appends", n, "from"), append.source
