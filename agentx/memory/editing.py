"""Edit memory by hand: add, edit, retire, pin, review. Each change is recorded with its author."""

from typing import Any, get_args

import msgspec

from agentx.engine.engine import Engine
from agentx.storage.errors import UsageError
from agentx.storage.text import one_line, shorten
from agentx.synthesis.compiling.compile import compile_checks
from agentx.synthesis.memory.conclusions import MAX_ITEM_BYTES, PERSON, Add, Change, Patch, fits
from agentx.synthesis.memory.items import (
    FORMER_KINDS,
    ConstraintDetail,
    Detail,
    Evidence,
    Kind,
    MemoryItem,
    NoteDetail,
    NoteSort,
    RejectionDetail,
    Scope,
    Status,
    item_id,
    joined,
    sort_of,
)
from agentx.synthesis.memory.policies import POLICIES
from agentx.synthesis.state.rule_lifecycle import standing_as
from agentx.synthesis.state.state import State

BY_HAND: tuple[Kind, ...] = tuple(kind for kind, policy in POLICIES.items() if policy.by_hand)
"""Kinds that the user may add; the others are measured."""


class NoSuchItem(UsageError):
    """No memory item has that ID."""


def listed(state: State, kind: str | None, status: Status | None) -> list[MemoryItem]:
    """Return the items of a kind and a status (``None`` for all), oldest first.

    Args:
        state: The state.
        kind: The kind, or one of format 1 that is now part of another: then only the items of its sort.
        status: The status.

    Raises:
        UsageError: The kind or status does not exist.
    """
    if kind in FORMER_KINDS:
        present, sort = FORMER_KINDS[kind]
        return [item for item in listed(state, present, status) if sort_of(item) == (sort or present)]
    for given, known in ((kind, get_args(Kind)), (status, get_args(Status))):
        if given is not None and given not in known:
            raise UsageError(f"Unknown value {given!r}; use one of: {', '.join(known)}.")
    return [
        item for item in state.items.values() if kind in (None, item.kind) and status in (None, item.status)
    ]


def find(engine: Engine, name: str, state: State | None = None) -> MemoryItem:
    """Return the item of an ID, in the current or an earlier state.

    Raises:
        NoSuchItem: The item does not exist.
    """
    item = (state or engine.log.state).items.get(name)
    if item is None:
        raise NoSuchItem(f"Unknown memory item {name!r}; `agentx memory list --all` lists all items.")
    return item


def add(
    engine: Engine, kind: str, text: str, *, scope: Scope, until: str, score: float, actor: str
) -> MemoryItem:
    """Add an item in the user's words; a constraint is compiled to a check if possible.

    Raises:
        UsageError: The kind cannot be added by hand, the text is empty or too long, or the score is out of
            range.
    """
    text = one_line(text)
    sort: NoteSort = ""
    if kind in FORMER_KINDS:
        kind, sort = FORMER_KINDS[kind]
    if kind not in BY_HAND or sort == "agent_state":
        raise UsageError(f"A {kind} cannot be added by hand; what can: {', '.join(BY_HAND)}.")
    if not text:
        raise UsageError("A memory item needs text.")
    if not 1.0 <= score <= 10.0:  # noqa: PLR2004
        raise UsageError(f"A score must be from 1 to 10, not {score:g}.")
    with engine.write_path.exclusive():
        status = standing_as(score) if kind == "rule" else "active"
        detail = _detail(kind, text, scope, until, sort)
        return write_down(
            engine, kind, text, detail, actor, scope=scope, score=score, until=until, status=status
        )


def write_down(
    engine: Engine, kind: Kind, text: str, detail: Detail, actor: str, **fields: Any
) -> MemoryItem:
    """Record a new item in the user's words; the caller holds the write path."""
    engine.write_path.raise_format()  # otherwise its event would follow
    seq = engine.log.state.seq + 1
    item = MemoryItem(
        id=item_id(kind, seq),
        kind=kind,
        text=text,
        short=shorten(text),
        evidence=(Evidence(seq, 0, len(text), text[:400]),),
        trust="user",
        detail=detail,
        **fields,
    )
    return _record(engine, item.id, Add(item), actor)


def _detail(kind: str, text: str, scope: Scope, until: str, sort: NoteSort) -> Detail:
    if kind == "rejection":
        return RejectionDetail(idea=text)
    if kind != "constraint":
        return NoteDetail(sort=sort)
    first = text.lower().split()[0].strip(",.")
    modality = (
        "must_not"
        if first in ("never", "no", "don't", "not", "avoid") or " never " in text.lower()
        else "must"
    )
    return ConstraintDetail(
        modality=modality,  # type: ignore[arg-type]
        duration="for_now" if until else "for_good",
        checks=compile_checks(text, modality, scope),  # type: ignore[arg-type]
    )


def edit(engine: Engine, name: str, text: str, actor: str) -> MemoryItem:
    """Replace an item's text; its check is compiled again."""
    text = one_line(text)
    if not text:
        raise UsageError("A memory item needs text; to end the item, use `agentx memory retire`.")
    with engine.write_path.exclusive():
        item = find(engine, name)
        detail = item.detail
        if isinstance(detail, ConstraintDetail):
            detail = msgspec.structs.replace(detail, checks=compile_checks(text, detail.modality, item.scope))
        elif isinstance(detail, RejectionDetail):
            detail = msgspec.structs.replace(detail, idea=text, checks=())
        return _patch(
            engine, Patch(id=name, text=text, short=shorten(text), detail=detail, worded_by=""), actor
        )


def retire(engine: Engine, name: str, actor: str) -> MemoryItem:
    """Retire an item; it stays in the history."""
    return _patch(engine, Patch(id=name, status="retired"), actor)


def pin(engine: Engine, name: str, actor: str, *, pinned: bool) -> MemoryItem:
    """Show an item in every context, or stop doing so."""
    return _patch(engine, Patch(id=name, pinned=pinned), actor)


def review(engine: Engine, name: str, actor: str, *, accept: bool) -> MemoryItem:
    """Settle a candidate, or a rule that is perhaps ended: activate it, or retire it.

    Raises:
        UsageError: It is not a candidate, and nothing may have ended it.
    """
    with engine.write_path.exclusive():
        item = find(engine, name)
        ended = item.status == "active" and item.perhaps_ended_by
        if item.status != "candidate" and not ended:
            raise UsageError(f"{name} is {item.status}, not a candidate.")
        patch = Patch(id=name, status="active" if accept else "retired", trust="user")
        if ended:
            evidence = item.evidence if accept else joined(item.evidence, item.perhaps_ended_by)
            patch = Patch(id=name, status=patch.status, evidence=evidence, perhaps_ended_by=())
        return _patch(engine, patch, actor)


def _patch(engine: Engine, patch: Patch, actor: str) -> MemoryItem:
    with engine.write_path.exclusive():  # includes what other processes recorded
        find(engine, patch.id)
        return _record(engine, patch.id, patch, actor)


def _record(engine: Engine, name: str, change: Change, actor: str) -> MemoryItem:
    if not fits(change):
        raise UsageError(
            f"The text is too long: an item holds at most {MAX_ITEM_BYTES:,} bytes. Shorten it, or write "
            "it to a file."
        )
    engine.synthesizer.record((change,), PERSON, actor=actor)
    return find(engine, name)
