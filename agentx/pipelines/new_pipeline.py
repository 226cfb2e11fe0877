"""A new pipeline's file, written from a few answers: its items, its roles, a review, a person's approval."""

import json
from collections.abc import Iterator

import msgspec

from agentx.storage.errors import UsageError

REVIEWER = "reviewer"
_PLANNER, _PERSON = "planner", "approver"
_ITEM = "part"


class NewPipeline(msgspec.Struct, frozen=True):
    """What a new pipeline is to be.

    Attributes:
        items: A pattern of paths, a number, or ids with commas between them.
        items_from: In place of ``items``: a file that the first role writes and that lists them.
        roles: Roles by name; each works on the file of the one before.
        review: Whether a reviewer judges the last file, until it passes.
        approval: Whether a person approves: the list of items, else the last file of each.
    """

    items: str = ""
    items_from: str = ""
    roles: tuple[str, ...] = ("writer",)
    review: bool = False
    approval: bool = False


def new_pipeline(name: str, wanted: NewPipeline) -> str:
    """Return the text of a pipeline's file.

    Raises:
        UsageError: There are no items, or two kinds of them, or a role that is not one.
    """
    if bool(wanted.items) == bool(wanted.items_from):
        raise UsageError("Give either `--items` (a pattern, a number, or ids) or `--items-from`.")
    roles = tuple(role for role in wanted.roles if role != REVIEWER)
    if not roles:
        raise UsageError("Give a role that writes: `--roles writer`, or `--roles writer,editor`.")
    if taken := {_PLANNER, _PERSON, "source", "review", wanted.items_from}.intersection(roles):
        raise UsageError(f"Choose another name for the role {min(taken)}: the new file has it already.")
    return "\n".join(_Text(name, msgspec.structs.replace(wanted, roles=roles)).lines()) + "\n"


class _Text:
    def __init__(self, name: str, wanted: NewPipeline) -> None:
        self.name, self.wanted, self.roles = name, wanted, wanted.roles
        self.listed = wanted.items_from
        self.globbed = "*" in wanted.items
        self.item = "doc" if self.globbed else _ITEM

    def lines(self) -> Iterator[str]:
        yield f"# agentx pipeline plan {self.name}.yaml    who reads and writes what, and what it costs"
        yield f"# agentx pipeline run {self.name}.yaml     until all is proved; stopped anywhere, it resumes"
        yield f"pipeline: {self.name}"
        yield "items:"
        yield f"  {self.item}: {self._items()}"
        yield "files:"
        yield from (f'  {name}: {{path: "{path}"}}' for name, path in self._files())
        yield "roles:"
        yield from self._roles()
        yield "stages:"
        yield from self._stages()

    def _items(self) -> str:
        given = self.wanted.items
        if self.listed:
            return f"{{from: {self.listed}}}"
        if self.globbed:
            return f"{{glob: {json.dumps(given)}}}"
        return given if given.isdecimal() else f"[{', '.join(map(json.dumps, _words(given)))}]"

    def _files(self) -> Iterator[tuple[str, str]]:
        key = f"{{{{ {self.item}.id }}}}"
        if self.listed:
            yield self.listed, f"{self.listed}.md"
        if self.globbed:
            yield "source", "{{ doc.path }}"
        for role in self.roles:
            yield role, f"{role}/{key}.md"
        if self.wanted.review:
            yield "review", f"reviews/{key}.md"

    def _roles(self) -> Iterator[str]:
        if self.listed:
            yield f"  {_PLANNER}:"
            yield "    task: List the parts of the work."
            yield f"    writes: [{{file: {self.listed}, marker: LIST_COMPLETE}}]"
        before = "source" if self.globbed else self.listed
        for role in self.roles:
            last = role == self.roles[-1]
            reads = [f"{{file: {before}}}"] if before else []
            reads += ["{file: review, optional: true}"] if last and self.wanted.review else []
            yield f"  {role}:"
            yield "    # say in `task` what to do"
            yield f'    task: "Do the work of the {role} for {{{{ {self.item}.id }}}}."'
            yield from (f"    reads: [{', '.join(reads)}]",) if reads else ()
            yield f"    writes: [{{file: {role}, marker: {_marker(role)}}}]"
            before = role
        if self.wanted.review:
            yield f"  {REVIEWER}:"
            yield "    agent: explore"
            yield "    task: Say what is wrong with it, and whether it can stay.  # say here what matters"
            yield f"    reads: [{{file: {self.roles[-1]}}}]"
            yield "    writes: [{file: review, marker: REVIEW_COMPLETE, verdict: true}]"
        if self.wanted.approval:
            yield f"  {_PERSON}:"
            yield "    by: person"
            yield f"    reads: [{{file: {self.listed or self.roles[-1]}}}]"

    def _stages(self) -> Iterator[str]:
        each, after = f", for_each: {self.item}", ""
        if self.listed:
            yield f"  - {{id: plan, role: {_PLANNER}}}"
            after = ", after: plan"
            if self.wanted.approval:
                yield f"  - {{id: approve, role: {_PERSON}, after: plan}}"
                after = ", after: approve"
        for role in self.roles[:-1] if self.wanted.review else self.roles:
            yield f"  - {{id: {role}, role: {role}{each}{after}}}"
            after = f", after: {role}"
        if self.wanted.review:
            role = self.roles[-1]
            yield "  - loop: revise"
            yield f"    for_each: {self.item}"
            yield from (f"    {after.removeprefix(', ')}",) if after else ()
            yield "    until: {file: review}"
            yield "    stages:"
            yield f"      - {{id: {role}, role: {role}}}"
            yield f"      - {{id: {REVIEWER}, role: {REVIEWER}, after: {role}}}"
            after = ", after: revise"
        if self.wanted.approval and not self.listed:
            yield f"  - {{id: approve, role: {_PERSON}{each}{after}}}"


def _words(given: str) -> list[str]:
    return [word.strip() for word in given.split(",") if word.strip()]


def _marker(role: str) -> str:
    return f"{''.join(one if one.isalnum() else '_' for one in role.upper())}_COMPLETE"
