"""The memory item: an envelope that all kinds share, and a small typed detail per kind.

Items are immutable values. A change to one is a :class:`Patch` in a ``Concluded`` event
(:mod:`agentx.synthesis.memory.conclusions`). A row of the policy table
(:mod:`agentx.synthesis.memory.policies`) defines what may create, show, fade and end each kind.
"""

from collections.abc import Container
from itertools import count
from typing import Literal

import msgspec

from agentx.storage.events.direction_events import CheckpointSort
from agentx.synthesis.memory.checks import Check

Kind = Literal[
    "constraint",
    "rejection",
    "hot_issue",
    "rule",
    "decision",
    "task",
    "situation",
    "knowledge",
    "episode",
    "flow",
    "north_star",
    "capability",
]

NoteSort = Literal["", "learning", "discovery", "topic", "context", "agent_state", "checkpoint"]
"""What a note is within its kind; empty for an ordinary one of its kind.

Of ``knowledge``: ``learning`` (a lesson from a mistake) and ``discovery`` (a finding). Of ``episode``:
``topic`` (what was talked about). Of ``situation``: ``context`` (hurry, priorities, mood), ``agent_state``
(what an agent did last) and ``checkpoint`` (a mark on the timeline).
"""

Status = Literal["candidate", "active", "dormant", "closed", "retired"]
"""The place of an item in its life cycle.

``candidate`` waits to be settled, ``active`` applies, and ``dormant`` is kept but not shown. ``closed`` is
over and may come back: a task that is done, a check that passes, a candidate that nobody settled. ``retired``
no longer applies. :func:`ending` distinguishes further.
"""

Trust = Literal["user", "engine", "agent", "reported", "material"]
"""The source that an item rests on.

The sources are the user's own words, a measurement by the engine, an agent, a model's report of what the user
said, and material (the output of a tool or the text of a file). :data:`TRUST_ORDER` orders them from most to
least trusted.
"""

TRUST_ORDER: tuple[Trust, ...] = ("user", "engine", "agent", "reported", "material")


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """A span of text that an item rests on.

    Attributes:
        seq: The event that holds the text.
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
        topic: Words of the subject that it is limited to ("Tesla's future"); lower-case, in the user's order.
        paths: Glob patterns relative to the artifacts root (``app/**``, ``*.py``, ``**/requirements.txt``).
        tools: Names of the tools that it is limited to.
    """

    topic: str = ""
    paths: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


class Link(msgspec.Struct, frozen=True):
    """A directed relation to another item.

    The relations are ``supersedes``, ``superseded_by``, ``recurs``, ``learned_from`` and ``differs_from``
    (the user declared them distinct), and those of proposals: :data:`WOULD_REWORD` and :data:`WOULD_END`.
    The target of ``said_by`` is a name, that of :data:`FOUND_IN` a file.
    """

    relation: str
    target: str


FOUND_IN = "found_in"
"""Relation of an item to the file of rules that states it."""

WOULD_REWORD, WOULD_END = "would_reword", "would_end"
"""Relations of a proposal to the item whose text it would become, or which it would end."""

FOLLOWED, CONTRARY = "followed", "contrary_to"
"""Relations of a followed rule: to its source, and to a rule here that says the contrary."""

FOLLOWED_SEPARATOR = ":"
"""Separates the name of a followed workspace from the id that an item has there."""


# --- details ------------------------------------------------------------------------------------------------


class ConstraintDetail(msgspec.Struct, frozen=True, tag="constraint", omit_defaults=True):
    """A demand of the user.

    Attributes:
        modality: ``must``, ``must_not`` or ``prefer``.
        duration: ``for_good``, or ``for_now`` if the user said that it is temporary.
        checks: The checks that enforce it; empty if it is only shown.
    """

    modality: Literal["must", "must_not", "prefer"] = "must"
    duration: Literal["for_good", "for_now"] = "for_good"
    checks: tuple[Check, ...] = ()


class RefusedCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool call that the user refused, as recorded: without secrets, with long arguments cut.

    Attributes:
        tool: Its tool.
        arguments: Its arguments as text; a command line is named ``command``, a file ``path``.
    """

    tool: str
    arguments: dict[str, str] = {}


class RejectionDetail(msgspec.Struct, frozen=True, tag="rejection", omit_defaults=True):
    """An idea that the user rejected, with the reason if one was given, and the checks that enforce it.

    Attributes:
        call: The call that was refused; ``None`` for words alone, and once such a call was approved.
    """

    idea: str
    reason: str = ""
    checks: tuple[Check, ...] = ()
    call: RefusedCall | None = None


Priority = Literal["critical", "high", "normal"]


class RunTally(msgspec.Struct, frozen=True, omit_defaults=True):
    """How many tests of a run were executed, and how many were not.

    Attributes:
        ran: Tests that passed or failed.
        skipped: Tests that were found and not run.
        expected: Tests that are marked as expected to fail, whatever they did.
        deselected: Tests that an option left out.
    """

    ran: int = 0
    skipped: int = 0
    expected: int = 0
    deselected: int = 0

    @property
    def total(self) -> int:
        """All tests except the deselected ones."""
        return self.ran + self.skipped + self.expected


Silenced = Literal[
    "", "skipped", "expected to fail", "unexpected pass", "deselected", "removed", "unproved", "fewer"
]
"""Why a check that no longer fails is not known to pass; ``fewer`` is about a whole run."""


_NOT_PASSED: dict[Silenced, str] = {
    "skipped": "not run any more: skipped",
    "expected to fail": "not required to pass any more: expected to fail",
    "unexpected pass": "passing now, but still marked as expected to fail",
    "deselected": "not run any more: deselected",
    "removed": "not run any more: removed, renamed or not collected",
    "unproved": "not known to pass: a later run passes, but does not show that it ran",
    "fewer": "not all run any more",
}


class HotIssueDetail(msgspec.Struct, frozen=True, tag="hot_issue", omit_defaults=True):
    """A failing check.

    Attributes:
        runner: The runner: ``pytest``, ``ruff``, …; ``exit`` if only the exit status is known.
        check: The check's name as its runner gives it (``tests/test_a.py::test_b``).
        path: File that the failure points to, relative to the artifacts root.
        line: Line in the file, from 1; 0 if unknown.
        message: Bounded extract of the failure, quoted material.
        priority: ``critical`` if nothing can be collected or built, ``high`` for a failing test, ``normal``
            for a lint finding.
        failures: Number of failures since it was opened.
        last_seq: The latest event in which it failed.
        ended: How it ended: ``passed``, ``gone``, or empty.
        suite: The test file, Go package or similar that holds the check, if the runner names it; else empty.
        command: The command whose run opened it, without the parts that only change how output is shown.
        tool: Our own tool that ran it (``run_tests``, ``run_lint``, ``run_build``, ``check_document``), or
            empty.
        silenced: Why it no longer fails, if no run shows that it passes; empty while it fails.
        note: How the run that no longer shows the failure differs from the one before; empty if unknown.
        tally: The counts of the run in which it last failed; ``None`` if the runner printed none.
        touched: Whether the file of the test, or a test configuration, changed since it last failed.
        shared: Whether another check of the same name passed when it failed, so that its passes show nothing.
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
    silenced: Silenced = ""
    note: str = ""
    tally: RunTally | None = None
    touched: bool = False
    shared: bool = False


def not_passed(detail: HotIssueDetail) -> str:
    """Describe why a check that no longer fails is not known to pass; empty while it fails.

    >>> not_passed(HotIssueDetail("pytest", "t.py::a", silenced="skipped", note="1 more skipped"))
    'not run any more: skipped (1 more skipped)'
    """
    why = _NOT_PASSED.get(detail.silenced, "")
    return f"{why} ({detail.note})" if why and detail.note else why


class RuleDetail(msgspec.Struct, frozen=True, tag="rule", omit_defaults=True):
    """A lesson that guides agents.

    Attributes:
        violations: Number of violations found after a task.
        enforced_by: The ``check``, ``flow`` or ``script``, with its name, that enforces the lesson; empty
            while it is only a rule in words.
        checks: The checks that enforce it; empty if it is only shown.
        passed_over: Number of tasks in a row in which its situation came up and it was not kept.
        reached: Number of tasks of the workspace at the maintenance that last saw its situation; 0 if none
            has counted since it was made or strengthened.
        arose: Number of tasks in which its situation came up.
    """

    violations: int = 0
    enforced_by: str = ""
    checks: tuple[Check, ...] = ()
    passed_over: int = 0
    reached: int = 0
    arose: int = 0


class FlowRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """How often the tasks that followed a version of a flow passed and failed."""

    version: int
    succeeded: int = 0
    failed: int = 0


class FlowDetail(msgspec.Struct, frozen=True, tag="flow", omit_defaults=True):
    """A procedure and its success so far.

    Attributes:
        steps: The steps, in order.
        triggers: Phrases for which it applies.
        needs_approval: Whether it needs approval before it begins.
        succeeded: Number of tasks that followed it and passed.
        failed: Number of tasks that followed it and failed.
        not_followed: Number of tasks that called for it, and whose runs did not follow it.
        steps_seen: In the last run that was measured, the number of its steps that were seen, and of those
            that calls can show.
        version: Number of the version; other steps are another one. The counters above are of this version.
        since: Time of the edit that made the version; empty for the first.
        earlier: The records of the earlier versions that were followed, oldest first.
    """

    steps: tuple[str, ...]
    triggers: tuple[str, ...] = ()
    needs_approval: bool = False
    succeeded: int = 0
    failed: int = 0
    not_followed: int = 0
    steps_seen: tuple[int, int] = (0, 0)
    version: int = 1
    since: str = ""
    earlier: tuple[FlowRecord, ...] = ()


class CapabilityDetail(msgspec.Struct, frozen=True, tag="capability", omit_defaults=True):
    """A tool or a credential that exists, and whether it works.

    Attributes:
        command: Command that checks it: exit status 0 means that it works.
        works: Result of the last run; ``None`` if it never ran.
        said: The first line that the command printed, quoted material.
        checked_at: Time of the last run, in the format of :attr:`agentx.storage.events.types.Event.at`.
    """

    command: str
    works: bool | None = None
    said: str = ""
    checked_at: str = ""


class CheckpointDetail(msgspec.Struct, frozen=True, tag="checkpoint", omit_defaults=True):
    """A mark on the timeline of the runs.

    Attributes:
        sort: ``milestone``, ``issue_resolved`` or ``strategy_change``.
        actionable: What to do when a similar case comes up again; empty for nothing.
        run: The latest run at the time of the mark.
        schedule: The schedule whose runs they are; empty for runs without one.
    """

    sort: CheckpointSort = "milestone"
    actionable: str = ""
    run: str = ""
    schedule: str = ""


class NoteDetail(msgspec.Struct, frozen=True, tag="note", omit_defaults=True):
    """The detail of kinds without fields of their own.

    Attributes:
        detail: Free text beside the item's text.
        sort: What the item is within its kind.
        valid_from: When a fact became true, if that is not when it was said: a date or time in ISO 8601.
        valid_to: When it ceased to be true; empty while it is true.
    """

    detail: str = ""
    sort: NoteSort = ""
    valid_from: str = ""
    valid_to: str = ""


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
    """One item of memory.

    Attributes:
        id: Derived from the event that it rests on, so that a replay gives the same id: ``c-12``, ``h-31.2``.
        kind: Its kind, which decides its policy.
        text: The full text, a sentence that an agent can act on.
        short: The text in at most 15 words.
        domain: Free grouping ("payments"); empty for the whole task.
        agent: Role of the agent that it is about ("writer"); empty for all.
        scope: Where it applies.
        score: Importance from 1 to 10.
        utility: How useful it proved, from 0 to 1.
        strength: Memory strength S of the decay formulas; grows with use.
        used_at: When it was last used, reinforced or repeated; empty if never.
        evidence: The spans of text that it rests on, oldest first.
        trust: Trust of the least trusted evidence.
        links: Relations to other items.
        answers: The agent's sentence that the user's words answer; ``None`` if they stand alone.
        worded_by: The actor whose words ``text`` is ("agent:main"); empty if it is the words of the evidence.
        until: What ends it, in the user's words; empty if the user did not say.
        perhaps_ended_by: The user's words that may end it. Until they are settled, it is not enforced.
        status: Its place in the life cycle.
        reason: Reason for the status if the user's own words do not give it: what a model found, or that the
            item lapsed. One line.
        pinned: Whether the user wants it always shown.
        by_hand: Whether the user made or changed it by hand; a model does not overturn that.
        created_seq: Event of the conclusion that created it.
        created_at: Time of that event.
        changed_seq: Event of the last conclusion that changed it.
        changed_at: Time of that event, in the format of :attr:`agentx.storage.events.types.Event.at`.
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
    answers: Evidence | None = None
    worded_by: str = ""
    until: str = ""
    perhaps_ended_by: tuple[Evidence, ...] = ()
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
    "situation": "n",
    "knowledge": "k",
    "episode": "e",
    "flow": "f",
    "north_star": "s",
    "capability": "b",
}


FormerKind = Literal["context", "agent_state", "checkpoint", "learning", "discovery", "topic"]

FORMER_KINDS: dict[str, tuple[Kind, NoteSort]] = {
    "context": ("situation", "context"),
    "agent_state": ("situation", "agent_state"),
    "checkpoint": ("situation", "checkpoint"),
    "learning": ("knowledge", "learning"),
    "discovery": ("knowledge", "discovery"),
    "topic": ("episode", "topic"),
}
"""The kinds of format 1 that are now part of another kind, with their sort."""

FORMER_PREFIXES: dict[str, FormerKind] = {
    "n": "context",
    "a": "agent_state",
    "m": "checkpoint",
    "l": "learning",
    "y": "discovery",
    "o": "topic",
}
"""First letters of ids that were given to items of these kinds."""


def item_id(kind: Kind, seq: int, ordinal: int = 0) -> str:
    """Name an item by the event that it rests on.

    Args:
        kind: The item's kind.
        seq: The event that it rests on.
        ordinal: Index among the items of that kind from that event, from 0.

    >>> item_id("constraint", 12), item_id("hot_issue", 31, 1)
    ('c-12', 'h-31.2')
    """
    return f"{PREFIXES[kind]}-{seq}" + (f".{ordinal + 1}" if ordinal else "")


def free_id(kind: Kind, seq: int, taken: Container[str]) -> str:
    """Return the first unused id for an item that rests on an event.

    >>> free_id("flow", 7, {"f-7"})
    'f-7.2'
    """
    return next(name for ordinal in count() if (name := item_id(kind, seq, ordinal)) not in taken)


def followed_id(workspace: str, name: str) -> str:
    """Name an item of a followed workspace.

    >>> followed_id("team-rules", "c-12")
    'team-rules:c-12'
    """
    return f"{workspace}{FOLLOWED_SEPARATOR}{name}"


def followed_from(item: MemoryItem) -> str:
    """Return the workspace, event and hash that a followed rule comes from; empty for an own item."""
    first = item.links[0] if item.links else None  # a merge adds its links behind it
    return first.target if first is not None and first.relation == FOLLOWED else ""


def sort_of(item: MemoryItem) -> str:
    """Return what an item is within its kind; its kind if it is an ordinary one.

    >>> lesson = MemoryItem(id="k-1", kind="knowledge", text="x", detail=NoteDetail(sort="learning"))
    >>> sort_of(lesson), sort_of(msgspec.structs.replace(lesson, detail=NoteDetail()))
    ('learning', 'knowledge')
    """
    detail = item.detail
    if isinstance(detail, CheckpointDetail):
        return "checkpoint"
    return (detail.sort if isinstance(detail, NoteDetail) else "") or item.kind


MAX_EVIDENCE = 8
"""Maximum number of evidence spans of an item: the first, and the latest of the others."""


def joined(*evidence: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    """Merge evidence: each place once, oldest first, at most :data:`MAX_EVIDENCE`."""
    places = {(one.seq, one.start): one for part in evidence for one in part}
    every = [places[place] for place in sorted(places)]
    return tuple(every[:1] + every[1:][-(MAX_EVIDENCE - 1) :])


def checks_of(item: MemoryItem) -> tuple[Check, ...]:
    """Return the checks of an item; none if it is only shown."""
    return (
        item.detail.checks if isinstance(item.detail, ConstraintDetail | RejectionDetail | RuleDetail) else ()
    )


def is_shown_only(item: MemoryItem) -> bool:
    """Return whether a rule has nothing that enforces it besides being shown.

    Rejections are compared with actions by the gate, so they are never only shown.
    """
    enforced = isinstance(item.detail, RuleDetail) and item.detail.enforced_by
    return item.kind in ("constraint", "rule") and not checks_of(item) and not enforced


def is_offered(item: "MemoryItem") -> bool:
    """Return whether an item is only what a file says: a proposal, which a person has not accepted."""
    return item.status == "candidate" and any(link.relation == FOUND_IN for link in item.links)


def would_change(item: "MemoryItem") -> Link | None:
    """Return the item that a proposal would reword or end, as a link; ``None`` if it would add one."""
    return next((link for link in item.links if link.relation in (WOULD_REWORD, WOULD_END)), None)


Ending = Literal["", "resolved", "lapsed", "superseded", "archived"]

LAPSED = "It lapsed"
"""First words of the reason of a candidate that nobody settled."""

ARCHIVED = "It was resolved"
"""First words of the reason of an item that was retired some days after it was closed."""


def superseded_by(item: MemoryItem) -> str:
    """Return the id of the item that replaced a retired one; empty if none did."""
    after = (link.target for link in reversed(item.links) if link.relation == "superseded_by")
    return next(after, "") if item.status == "retired" else ""


def ending(item: MemoryItem) -> Ending:
    """Return how an item ended; empty if it did not end, or if it was retired for another reason.

    ``resolved``: it is done. ``lapsed``: nobody settled the candidate. ``superseded``: another item replaced
    it. ``archived``: it had been resolved for some days.
    """
    if item.status == "closed":
        return "lapsed" if item.reason.startswith(LAPSED) else "resolved"
    if superseded_by(item):
        return "superseded"
    return "archived" if item.status == "retired" and item.reason.startswith(ARCHIVED) else ""


def status_in_words(item: MemoryItem) -> str:
    """Return the status of an item in one word, for display: its status, or how it ended."""
    how = ending(item)
    return item.status if how in ("", "archived") else how
