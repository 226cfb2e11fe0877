"""The facts of pipelines: what was started and dispatched, and which stages are proved done."""

from collections.abc import Iterable
from itertools import accumulate
from typing import Literal, TypeVar

import msgspec

from agentx.storage.events.direction_events import NewKnowledge
from agentx.storage.events.types import WORDS, Body, ChangesFiles, Event, FileChange, Payload
from agentx.storage.text import shorten

Part = TypeVar("Part")

REASON_WORDS = 20
"""Maximum number of words of a reason that a line about a pipeline quotes."""

LOOK_AT = "look at "
"""Prefix of a check's result that leaves a doubt, among the results of a stage."""

LEARNED_BYTES = 7_000
"""Bytes of new facts in an event, so that they fit into one; the files hold all of them."""

SUPERSEDED_BYTES = 1_500
"""Bytes of superseded facts in an event; the rest are superseded when the step is repeated."""
APPROVE_STAGE = "approve_stage"
"""The tool in whose name a pipeline asks a person to approve or do a stage."""

FileClass = Literal["static", "append-only"]
"""How an existing file may change: only with the user's approval, or only by appending at its end."""


class FileRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file whose class the workspace enforces, for every writer."""

    path: str
    sort: FileClass


def fitting(parts: Iterable[Part], most: int) -> tuple[Part, ...]:
    """Return the first parts that fit into ``most`` bytes as JSON in an event."""
    every = tuple(parts)
    sizes = accumulate(len(msgspec.json.encode(one)) for one in every)
    return tuple(one for one, size in zip(every, sizes, strict=True) if size <= most)


def key_of(stage: str, item: str) -> str:
    """Return the key of a stage for an item.

    >>> key_of("write", "03"), key_of("outline", "")
    ('write[03]', 'outline')
    """
    return f"{stage}[{item}]" if item else stage


def _round_of(stage: str, item: str, number: int) -> str:
    return f"{key_of(stage, item)}{f', round {number}' if number > 1 else ''}"


class PipelineStarted(Payload, frozen=True):
    """A pipeline was started, for the first time or again.

    Attributes:
        name: Name of the pipeline.
        definition: Content of its definition file at that time.
        digest: Hex blake2b-128 of that file.
        files: Files whose classes are enforced from now on, until the pipeline is started with others.
        retry: Whether items that used up their retries are tried again.
        paths: Patterns of the paths of its files; a change of one from outside is reported.
        variables: Values that replace those of the definition, by name.
        file: Path of its definition file, relative to the workspace.
    """

    name: str
    definition: Body = Body("")
    digest: str = ""
    files: tuple[FileRule, ...] = ()
    retry: bool = False
    paths: tuple[str, ...] = ()
    variables: dict[str, str] = msgspec.field(default_factory=dict)
    file: str = ""

    def _line(self, _event: Event, /) -> str:
        return f"Start pipeline {self.name}"


class ItemsFound(Payload, frozen=True):
    """The items of a pipeline that its definition does not list were found, for the first time or changed.

    Attributes:
        pipeline: Name of the pipeline.
        items: All of them, as JSON: a list of maps for each name.
        counts: Their number, by name.
        files: As for a start; in place of the files named there.
    """

    pipeline: str
    items: Body = Body("")
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    files: tuple[FileRule, ...] = ()

    def _line(self, _event: Event, /) -> str:
        found = ", ".join(f"{count:,} × {name}" for name, count in self.counts.items())
        return f"Find the items of pipeline {self.pipeline}: {found}"


class PipelineEnded(Payload, frozen=True):
    """A pipeline ended, or was stopped.

    Attributes:
        status: ``COMPLETED`` if everything is proved; ``PARTIAL`` if all is proved that was asked for;
            ``WAITING`` if the user's decision is needed.
        reason: One sentence for a human reader.
    """

    name: str
    status: Literal["COMPLETED", "PARTIAL", "FAILED", "LIMIT_REACHED", "INTERRUPTED", "WAITING"]
    reason: str = ""

    def _line(self, _event: Event, /) -> str:
        reason = f": {shorten(self.reason, REASON_WORDS)}" if self.reason else ""
        return f"Pipeline {self.name} ends: {self.status}{reason}"

    def _rank(self, _event: Event, /) -> int:
        return 6


class GivenFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file that an agent was given to read.

    Attributes:
        path: Relative to the artifacts; ``NAME:path`` for a source tree.
        blob: Git blob id of the complete file.
        tokens: Number of tokens of it that were given.
        cut: What was left out of it, in words; empty if it is complete.
    """

    path: str
    blob: str = ""
    tokens: int = 0
    cut: str = ""


class Basis(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a step rests on beside the contents of its inputs; each digest is hex blake2b-64.

    Attributes:
        prompt: Digest of the role's texts, and of the values that they use. Empty where nothing is known.
        checks: Digest of the markers and checks.
        by: The program that played the role, with a digest of its arguments and files; empty for a model.
    """

    prompt: str = ""
    checks: str = ""
    by: str = ""


class Dispatched(Payload, frozen=True):
    """An agent without memory was dispatched to one stage, with these files and no others.

    From this event until its run ends, or until ``until``, nobody else may write to ``writes``.

    Attributes:
        pipeline: Name of the pipeline.
        stage: Id of the stage.
        item: Key of the item to work on; empty for a stage that is done once.
        round: Iteration of the loop that contains the stage, from 1.
        part: Number of the part of a split task, from 1; 0 for an undivided task.
        through: The last file of this part, among the files over which the task is split; the next part
            follows after it.
        holds: Number of these files in the part.
        joins: Whether it joins the parts of a split task.
        role: Name of the role.
        reads: Files that it was given.
        left_out: Files that it may read but was not given for lack of space.
        writes: Files that are leased to it.
        until: When the lease expires, as UTC time in ISO 8601.
        digest: Hex blake2b-128 of the complete prompt, including file contents.
        inputs: All files that its role reads, as lines of a Git blob id and a path.
        basis: What else the step rests on.
    """

    pipeline: str
    stage: str
    role: str
    item: str = ""
    round: int = 1
    part: int = 0
    through: str = ""
    holds: int = 0
    joins: bool = False
    reads: tuple[GivenFile, ...] = ()
    left_out: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    until: str = ""
    tokens: int = 0
    max_tokens: int = 0
    digest: str = ""
    inputs: Body = Body("")
    basis: Basis = Basis()

    def _line(self, _event: Event, /) -> str:
        part = f", part {self.part}" if self.part else ""
        return f"Send {self.role} to {_round_of(self.stage, self.item, self.round)}{part}: {self._given()}"

    def _given(self) -> str:
        if not self.max_tokens:
            return "no agent is needed"
        files = f"{len(self.reads)} file{'s' * (len(self.reads) != 1)}"
        cut = sum(bool(one.cut) for one in self.reads) + len(self.left_out)
        return f"{files}, {self.tokens:,} of {self.max_tokens:,} tokens" + (f", {cut} cut" if cut else "")


class ProvedFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file that exists, carries its marker and passes its checks."""

    path: str
    blob: str
    marker: str = ""


class Superseded(msgspec.Struct, frozen=True, omit_defaults=True):
    """A memory item that an earlier proof of a stage added and that the stage no longer yields.

    Attributes:
        item: Id of the item.
        by: Number of the fact in the same proof that replaces it, from 1; 0 for none.
    """

    item: str
    by: int = 0


class StageProved(ChangesFiles, frozen=True):
    """A stage is done for an item: its files exist, carry their markers and pass their checks.

    Its additions to the long-term memory are written with the same event, so they are added once.

    Attributes:
        outputs: The files that prove it.
        checks: What was checked, a few words for each.
        verdict: ``PASS`` or ``FAIL`` if one of the files states it; empty for none.
        changes: Files that were appended to.
        learned: The appended content, as facts to remember.
        superseded: Items learned from its earlier proofs that are no longer valid.
        found: Whether the files existed already, not made by an agent of this pipeline.
        inputs: As in a dispatch, where the step was proved without one.
        basis: The same.
    """

    pipeline: str
    stage: str
    item: str = ""
    round: int = 1
    outputs: tuple[ProvedFile, ...] = ()
    checks: tuple[str, ...] = ()
    verdict: str = ""
    changes: tuple[FileChange, ...] = ()
    learned: tuple[NewKnowledge, ...] = ()
    superseded: tuple[Superseded, ...] = ()
    found: bool = False
    inputs: Body = Body("")
    basis: Basis = Basis()

    def _line(self, _event: Event, /) -> str:
        outputs = ", ".join(file.path for file in self.outputs)
        verdict = f", verdict {self.verdict}" if self.verdict else ""
        added = f"; add to {', '.join(made.path for made in self.changes)}" if self.changes else ""
        doubts = "".join(f"; {one}" for one in self.checks if one.startswith(LOOK_AT))
        return f"Prove {_round_of(self.stage, self.item, self.round)}: {outputs}{verdict}{added}{doubts}"

    def _rank(self, _event: Event, /) -> int:
        return 8 if self.changes else 3


class StageKept(Payload, frozen=True):
    """A step that was to be done again if its inputs had changed: they had not, so its proof stands.

    Attributes:
        round: Round of its loop, from 1.
    """

    pipeline: str
    stage: str
    item: str = ""
    round: int = 1

    def _line(self, _event: Event, /) -> str:
        return f"Keep {_round_of(self.stage, self.item, self.round)}: its inputs are the same"


class StageReopened(Payload, frozen=True):
    """The user wants a stage done again; the stages that depend on it are done again as well.

    Attributes:
        item: Key of the item; empty for all.
        if_changed: Whether it and what depends on it are done again only where their inputs have changed.
    """

    pipeline: str
    stage: str
    item: str = ""
    reason: str = ""
    if_changed: bool = False

    def _line(self, _event: Event, /) -> str:
        if self.if_changed:
            return f"Bring {key_of(self.stage, self.item)} up to date: {shorten(self.reason, REASON_WORDS)}"
        return f"Do {key_of(self.stage, self.item)} again: {shorten(self.reason, REASON_WORDS)}"


class FileAmended(Payload, frozen=True):
    """With the user's approval, a file was changed although its class forbids it.

    Attributes:
        before: Blob id before the change; empty if not known.
        after: Blob id after the change; empty if the file is gone.
        reason: The reason, in the words of who approved it.
        call_id: The agent's call that was approved; empty for the user's own edit.
        kept: What the accepted version was given besides the user's edit; empty for nothing.
        learned: Facts of a long-term memory file that the change brought, to remember.
        superseded: Items learned from that file that are no longer valid.
    """

    path: str
    before: str = ""
    after: str = ""
    reason: str = ""
    call_id: str = ""
    kept: str = ""
    learned: tuple[NewKnowledge, ...] = ()
    superseded: tuple[Superseded, ...] = ()

    def _line(self, _event: Event, /) -> str:
        return f"Amend {self.path}: {shorten(self.reason, WORDS)}"
