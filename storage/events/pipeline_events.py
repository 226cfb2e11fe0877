"""The facts of pipelines: what was set going, what each agent was sent to do, and what is proved to be done."""

from typing import Literal

import msgspec

from agentx.storage.events.direction_events import NewKnowledge
from agentx.storage.events.types import Body, ChangesFiles, FileChange, Payload

FileClass = Literal["static", "append-only"]
"""What may become of a file that is there: nothing without a person's word, or only more behind its end."""


class FileRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file whose class the workspace enforces, for every writer."""

    path: str
    sort: FileClass


class PipelineStarted(Payload, frozen=True):
    """A pipeline was set going, for the first time or again.

    Attributes:
        name: Its name.
        definition: Its file as it stood.
        digest: Hex blake2b-128 of that file.
        files: The files whose classes hold from now on, until the pipeline is started with others.
        retry: Whether what had failed as often as it may is tried again.
    """

    name: str
    definition: Body = Body("")
    digest: str = ""
    files: tuple[FileRule, ...] = ()
    retry: bool = False


class PipelineEnded(Payload, frozen=True):
    """A pipeline came to its end, or was stopped.

    Attributes:
        status: ``COMPLETED`` where all is proved; ``WAITING`` where a person's word is needed.
        reason: One sentence for a person.
    """

    name: str
    status: Literal["COMPLETED", "FAILED", "LIMIT_REACHED", "INTERRUPTED", "WAITING"]
    reason: str = ""


class GivenFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file that an agent was given to read.

    Attributes:
        path: Relative to the artifacts; ``NAME:path`` for a source tree.
        blob: Git blob id of the whole of it.
        tokens: How many tokens it was given of it.
        cut: What was left out of it, in words; empty where it is whole.
    """

    path: str
    blob: str = ""
    tokens: int = 0
    cut: str = ""


class Dispatched(Payload, frozen=True):
    """An agent without memory was sent to work on one stage, with these files and no others.

    From here until its run ends, or until ``until``, nobody else may write to ``writes``.

    Attributes:
        pipeline: Name of the pipeline.
        stage: Id of the stage.
        item: Key of the item that it works on; empty for a stage that is done once.
        round: Which time round the loop that the stage stands in, from 1.
        part: Which part of a task that was split, from 1; 0 for the whole.
        through: The last of the files that the task is split over that belongs to this part; those of the next part follow.
        holds: How many of these files belong to it.
        role: Name of the role.
        reads: What it was given.
        left_out: Files that it may read but was not given, for there was no room.
        writes: Files that are leased to it.
        until: When the lease expires, as UTC time in ISO 8601.
        digest: Hex blake2b-128 of the whole prompt, contents of files included.
    """

    pipeline: str
    stage: str
    role: str
    item: str = ""
    round: int = 1
    part: int = 0
    through: str = ""
    holds: int = 0
    reads: tuple[GivenFile, ...] = ()
    left_out: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    until: str = ""
    tokens: int = 0
    max_tokens: int = 0
    digest: str = ""


class ProvedFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file that exists, carries its marker and passes its checks."""

    path: str
    blob: str
    marker: str = ""


class Superseded(msgspec.Struct, frozen=True, omit_defaults=True):
    """A memory item that an earlier proof of a stage made, and that the stage does not bring any more.

    Attributes:
        item: Its id.
        by: Which fact of the same proof came in its place, from 1; 0 for none.
    """

    item: str
    by: int = 0


class StageProved(ChangesFiles, frozen=True):
    """A stage is done for an item: its files exist, carry their markers and pass their checks.

    What it adds to the long-term memory is written with the same event, so it is added once.

    Attributes:
        outputs: The files that prove it.
        checks: What was looked at, a few words for each.
        verdict: ``PASS`` or ``FAIL`` where one of the files gives one; empty for none.
        changes: Files that were appended to.
        learned: What was appended, as facts to remember.
        superseded: What earlier proofs of it had learned and holds no more.
        found: Whether the files were there already, and no agent of this pipeline made them.
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


class StageReopened(Payload, frozen=True):
    """A person wants a stage done again; what stood on it is done again as well.

    Attributes:
        item: Key of the item; empty for all.
    """

    pipeline: str
    stage: str
    item: str = ""
    reason: str = ""


class FileAmended(Payload, frozen=True):
    """By a person's word, a file of a class that forbids it is other than it was.

    Attributes:
        before: Blob id of what it was; empty where that is not known.
        after: Blob id of what it is; empty where it is gone.
        reason: Why, in that person's words.
        call_id: The call of an agent that they approved; empty for their own edit.
    """

    path: str
    before: str = ""
    after: str = ""
    reason: str = ""
    call_id: str = ""
