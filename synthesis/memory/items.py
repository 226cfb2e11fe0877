"""The one entity of memory: an envelope that every kind of item shares, and a small typed detail per kind.

Items are values. A change to one is a :class:`Patch` in a ``Concluded`` event (:mod:`agentx.synthesis.memory.conclusions`);
what may create, show, fade and end each kind is a row of the policy table (:mod:`agentx.synthesis.memory.policies`).
"""

from collections.abc import Container
from itertools import count
from typing import Literal

import msgspec

from agentx.storage.events.direction_events import CheckpointSort

Kind = Literal[
    "constraint",
    "rejection",
    "hot_issue",
    "rule",
    "decision",
    "task",
    "agent_state",
    "context",
    "knowledge",
    "discovery",
    "learning",
    "episode",
    "topic",
    "checkpoint",
    "flow",
    "north_star",
    "capability",
]

Status = Literal["proposed", "active", "dormant", "resolved", "superseded", "archived", "retired"]

Trust = Literal["user", "engine", "agent", "reported", "material"]
"""Whose word an item rests on: the user's own, the engine's own measurement, an agent's, a model's report of what the
user said, or material (what a tool printed or a file says). Ordered from most to least by :data:`TRUST_ORDER`."""

TRUST_ORDER: tuple[Trust, ...] = ("user", "engine", "agent", "reported", "material")


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """The words that an item rests on.

    Attributes:
        seq: The event that holds them.
        start: First character of the span in the event's text, from 0.
        end: One past its last character.
        quote: The span itself, at most 400 characters.
    """

    seq: int
    start: int = 0
    end: int = 0
    quote: str = ""


class Scope(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where an item applies; an empty scope applies everywhere.

    Attributes:
        topic: Words of the subject it is limited to ("Tesla's future"); lower-case, in the user's order.
        paths: Glob patterns relative to the artifacts root (``app/**``, ``*.py``, ``**/requirements.txt``).
        tools: Names of tools it is limited to.
    """

    topic: str = ""
    paths: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


class Link(msgspec.Struct, frozen=True):
    """A directed relation to another item.

    ``supersedes``, ``superseded_by``, ``recurs``, ``learned_from``, ``differs_from`` (a person told them apart); ``said_by`` has a name for target.
    """

    relation: str
    target: str


# --- compiled checks: the part of a constraint that code can enforce -------------------------------------------------


class ForbidPath(msgspec.Struct, frozen=True, tag="forbid_path", omit_defaults=True):
    """No file may be created or written whose path matches one of these globs.

    Attributes:
        globs: What the paths are compared with.
        frozen: Whether such a file may not be deleted or moved either.
    """

    globs: tuple[str, ...]
    frozen: bool = False


class ForbidText(msgspec.Struct, frozen=True, tag="forbid_text", omit_defaults=True):
    """None of these literal phrases may stand in a written file or an answer (case-insensitive, whole words).

    Attributes:
        phrases: What must not be said or written.
        topic: Only where the text, the file's path or the user's message is about this; empty for everywhere.
        globs: Only in files that match; empty for every file.
        answers: Whether it holds for final answers.
        files: Whether it holds for written files.
    """

    phrases: tuple[str, ...]
    topic: str = ""
    globs: tuple[str, ...] = ()
    answers: bool = True
    files: bool = True


class RequireDecorator(msgspec.Struct, frozen=True, tag="require_decorator", omit_defaults=True):
    """Functions that are new in a write and match must carry a decorator.

    Attributes:
        decorator: Dotted name without the ``@``.
        functions: What kind of function in the user's words ("data-fetching"); empty for all functions.
        globs: Only in files that match.
    """

    decorator: str
    functions: str = ""
    globs: tuple[str, ...] = ("**/*.py",)


class RequireImport(msgspec.Struct, frozen=True, tag="require_import", omit_defaults=True):
    """Written files that match must import a module (``forbidden=False``), or must not (``forbidden=True``)."""

    module: str
    forbidden: bool = False
    globs: tuple[str, ...] = ("**/*.py",)


Check = ForbidPath | ForbidText | RequireDecorator | RequireImport


# --- details ---------------------------------------------------------------------------------------------------------


class ConstraintDetail(msgspec.Struct, frozen=True, tag="constraint", omit_defaults=True):
    """What the user demands.

    Attributes:
        modality: ``must``, ``must_not`` or ``prefer``.
        duration: ``for_good``, or ``for_now`` where the user said that it is temporary.
        check: The compiled check, where code can enforce it.
    """

    modality: Literal["must", "must_not", "prefer"] = "must"
    duration: Literal["for_good", "for_now"] = "for_good"
    check: Check | None = None


class RejectionDetail(msgspec.Struct, frozen=True, tag="rejection", omit_defaults=True):
    """An idea that the user ruled out, and why where they said so."""

    idea: str
    reason: str = ""
    check: Check | None = None


Priority = Literal["critical", "high", "normal"]


class HotIssueDetail(msgspec.Struct, frozen=True, tag="hot_issue", omit_defaults=True):
    """A failing check.

    Attributes:
        runner: What ran: ``pytest``, ``ruff``, ``exit`` where nothing but the exit status is known, ….
        check: The check's name as its runner gives it (``tests/test_a.py::test_b``).
        path: File that the failure points to, relative to the artifacts root.
        line: Line in it, from 1; 0 for unknown.
        message: Bounded extract of the failure, quoted material.
        priority: ``critical`` blocks everything (nothing can be collected or built), ``high`` a failing test,
            ``normal`` a lint finding.
        failures: How often it has failed since it opened.
        last_seq: The latest event in which it failed.
        ended: How it ended: ``passed``, ``gone``, or empty.
        suite: What the check belongs to where its runner tells it apart: a test file, a Go package; else empty.
        command: The command whose run opened it, without what only changes how its output is shown.
        tool: Our own tool that ran it: ``run_tests``, ``run_lint``, ``run_build``, ``check_document``; else empty.
    """

    runner: str
    check: str
    path: str = ""
    line: int = 0
    message: str = ""
    priority: Priority = "high"
    failures: int = 1
    last_seq: int = 0
    ended: str = ""
    suite: str = ""
    command: str = ""
    tool: str = ""


class RuleDetail(msgspec.Struct, frozen=True, tag="rule", omit_defaults=True):
    """A lesson that steers what agents do.

    Attributes:
        violations: How often it was found broken after a task.
        enforced_by: What the lesson was made into besides words: ``check``, ``flow`` or ``script`` with its name;
            empty while it is only a rule.
    """

    violations: int = 0
    enforced_by: str = ""


class FlowDetail(msgspec.Struct, frozen=True, tag="flow", omit_defaults=True):
    """A procedure, and how it has gone so far.

    Attributes:
        steps: What to do, in order.
        triggers: Phrases that call for it.
        needs_approval: Whether a person's word is needed before it begins.
        succeeded: How often a task that followed it passed.
        failed: How often one failed.
    """

    steps: tuple[str, ...]
    triggers: tuple[str, ...] = ()
    needs_approval: bool = False
    succeeded: int = 0
    failed: int = 0


class CapabilityDetail(msgspec.Struct, frozen=True, tag="capability", omit_defaults=True):
    """A tool or a credential that exists, and whether it works.

    Attributes:
        command: Is run to find out: exit status 0 means that it works.
        works: What the last run said; ``None`` where none ran.
        said: The first line that it printed, quoted material.
        checked_at: When it ran, as :attr:`agentx.storage.events.types.Event.at` has it.
    """

    command: str
    works: bool | None = None
    said: str = ""
    checked_at: str = ""


class CheckpointDetail(msgspec.Struct, frozen=True, tag="checkpoint", omit_defaults=True):
    """A mark on the timeline of the runs.

    Attributes:
        sort: ``milestone``, ``issue_resolved`` or ``strategy_change``.
        actionable: What to do when the like comes up again; empty for nothing.
        run: The latest run when it was left.
    """

    sort: CheckpointSort = "milestone"
    actionable: str = ""
    run: str = ""


class NoteDetail(msgspec.Struct, frozen=True, tag="note", omit_defaults=True):
    """The detail of kinds that need none: free words beside the text."""

    detail: str = ""


Detail = (
    ConstraintDetail
    | RejectionDetail
    | HotIssueDetail
    | RuleDetail
    | FlowDetail
    | CapabilityDetail
    | CheckpointDetail
    | NoteDetail
)


class MemoryItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that is remembered.

    Attributes:
        id: Made from the event that it rests on, so that a replay gives the same: ``c-12``, ``h-31.2``.
        kind: What it is; decides its policy.
        text: It, in full, as a sentence that an agent can act on.
        short: The same in at most 15 words.
        domain: Free grouping ("payments"); empty for the whole task.
        agent: Role of the agent that it is about ("writer"); empty for all.
        scope: Where it applies.
        score: Importance from 1 to 10.
        utility: How useful it proved, from 0 to 1.
        strength: Memory strength S of the decay formulas; grows with use.
        used_at: When it was last used, reinforced or said again; empty where it never was.
        evidence: The words that it rests on, oldest first.
        trust: The least trusted of its evidence.
        links: Relations to other items.
        until: What ends it, in the user's words; empty where nothing was said.
        status: Where it stands in its life.
        reason: Why, where the user's own words do not say it: what a model found, or that it lapsed. One line.
        pinned: A person said: always show this.
        by_hand: A person made or changed it by hand; no model overturns that.
        created_seq: Event of the conclusion that made it.
        created_at: When that was recorded.
        changed_seq: Event of the last conclusion that changed it.
        changed_at: When that was recorded, as :attr:`agentx.storage.events.types.Event.at` has it.
    """

    id: str
    kind: Kind
    text: str
    short: str = ""
    domain: str = ""
    agent: str = ""
    scope: Scope = Scope()
    score: float = 5.0
    utility: float = 0.0
    strength: float = 1.0
    used_at: str = ""
    evidence: tuple[Evidence, ...] = ()
    trust: Trust = "material"
    links: tuple[Link, ...] = ()
    until: str = ""
    status: Status = "active"
    reason: str = ""
    pinned: bool = False
    by_hand: bool = False
    detail: Detail = NoteDetail()
    created_seq: int = 0
    created_at: str = ""
    changed_seq: int = 0
    changed_at: str = ""


PREFIXES: dict[Kind, str] = {
    "constraint": "c",
    "rejection": "x",
    "hot_issue": "h",
    "rule": "r",
    "decision": "d",
    "task": "t",
    "agent_state": "a",
    "context": "n",
    "knowledge": "k",
    "discovery": "y",
    "learning": "l",
    "episode": "e",
    "topic": "o",
    "checkpoint": "m",
    "flow": "f",
    "north_star": "s",
    "capability": "b",
}


def item_id(kind: Kind, seq: int, ordinal: int = 0) -> str:
    """Name an item by the event that it rests on.

    Args:
        kind: The item's kind.
        seq: The event whose words gave rise to it.
        ordinal: Which of several items of that kind from that event, from 0.

    >>> item_id("constraint", 12), item_id("hot_issue", 31, 1)
    ('c-12', 'h-31.2')
    """
    return f"{PREFIXES[kind]}-{seq}" + (f".{ordinal + 1}" if ordinal else "")


def free_id(kind: Kind, seq: int, taken: Container[str]) -> str:
    """The first name for an item that rests on an event which no other item has.

    >>> free_id("flow", 7, {"f-7"})
    'f-7.2'
    """
    return next(name for ordinal in count() if (name := item_id(kind, seq, ordinal)) not in taken)


MAX_EVIDENCE = 8
"""Of what says the same: the first, and the latest of the others."""


def joined(*evidence: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    """The words that several rest on, each place once, oldest first; :data:`MAX_EVIDENCE` at most."""
    places = {(one.seq, one.start): one for part in evidence for one in part}
    every = [places[place] for place in sorted(places)]
    return tuple(every[:1] + every[1:][-(MAX_EVIDENCE - 1) :])


def is_checked(item: MemoryItem) -> bool:
    """Whether code enforces an item: it holds a compiled check."""
    return isinstance(item.detail, ConstraintDetail | RejectionDetail) and item.detail.check is not None


_BYTES_A_WORD = 20
"""What a word of a short form may take on average: a text without spaces is no single word of any length."""


def shorten(text: str, max_words: int = 15) -> str:
    """Cut a text to its first words, with an ellipsis where something was cut.

    >>> shorten("one two three", max_words=2)
    'one two …'
    """
    words = text.split()
    whole, kept = " ".join(words), " ".join(words[:max_words])
    most = max_words * _BYTES_A_WORD
    kept = kept.encode(errors="replace")[:most].decode(errors="ignore").rstrip()
    return kept if kept == whole else f"{kept} …"
