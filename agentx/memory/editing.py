"""Edit memory by hand: add, edit, retire, pin, merge, review. Each change is recorded with its author."""

import shlex
from collections.abc import Sequence
from typing import Any, cast, get_args

import msgspec

from agentx.engine.engine import Engine
from agentx.storage.errors import UsageError
from agentx.storage.text import one_line, shorten
from agentx.synthesis.compiling.compile import compile_checks
from agentx.synthesis.demands.reading.scope import reach_of
from agentx.synthesis.learning.maintenance_plan import PATCHED
from agentx.synthesis.learning.merging import MERGED, STANDING, merged, proposed_for, rank, separated
from agentx.synthesis.memory.checks import Check
from agentx.synthesis.memory.conclusions import MAX_ITEM_BYTES, PERSON, Add, Change, Patch, fits
from agentx.synthesis.memory.items import (
    FOLLOWED_SEPARATOR,
    FORMER_KINDS,
    WOULD_REWORD,
    ConstraintDetail,
    Detail,
    Evidence,
    Kind,
    Link,
    MemoryItem,
    NoteDetail,
    NoteSort,
    RejectionDetail,
    RuleDetail,
    Scope,
    Status,
    checks_of,
    item_id,
    joined,
    sort_of,
    superseded_by,
    would_change,
)
from agentx.synthesis.memory.policies import POLICIES
from agentx.synthesis.state.rule_lifecycle import standing_as
from agentx.synthesis.state.state import State

BY_HAND: tuple[Kind, ...] = tuple(kind for kind, policy in POLICIES.items() if policy.by_hand)
"""Kinds that the user may add; the others are measured."""


CHECKED_KINDS: tuple[Kind, ...] = ("constraint", "rejection", "rule")
"""Kinds whose items can have checks."""


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
        UsageError: It is one of a followed workspace, and none is searched for in a given state.
    """
    item = (state or engine.log.state).items.get(name)
    if item is None and state is None and (workspace := name.rpartition(FOLLOWED_SEPARATOR)[0]):
        followed = next((one for one in engine.following.current().each if one.name == workspace), None)
        if followed is not None:
            raise UsageError(
                f"{name} is followed from {workspace} ({followed.source}) and can only be changed there: "
                f"`agentx -C {shlex.quote(followed.directory or 'A-COPY-OF-IT')} memory …`. `agentx follow "
                f"--stop {workspace.partition('/')[0]}` ends that its rules hold here."
            )
    if item is None:
        raise NoSuchItem(f"Unknown memory item {name!r}; `agentx memory list --all` lists all items.")
    return item


def add(  # noqa: PLR0913 - each is a part of the item
    engine: Engine,
    kind: str,
    text: str,
    *,
    scope: Scope,
    until: str,
    score: float,
    actor: str,
    checks: Sequence[Check] | None = None,
    reason: str = "",
) -> MemoryItem:
    """Add an item in the user's words; a constraint is compiled to a check if possible.

    Args:
        engine: The workspace's engine.
        kind: The kind.
        text: The words.
        scope: Where it applies; by default what the words of a constraint name.
        until: What ends it.
        score: Importance from 1 to 10.
        actor: Who adds it.
        checks: The checks that enforce it; ``None`` to compile the words.
        reason: Why, in a line.

    Raises:
        UsageError: The kind cannot be added by hand or cannot have checks, the text is empty or too long, or
            the score is out of range.
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
    scope = _scope(kind, text, scope)
    with engine.write_path.exclusive():
        status = standing_as(score) if kind == "rule" else "active"
        detail = detail_of(kind, text, scope, until, sort)
        if checks is not None:
            by_hand = [msgspec.structs.replace(check, by_hand=True) for check in checks]
            detail = with_checks(kind, detail, by_hand)
        return write_down(
            engine,
            kind,
            text,
            detail,
            actor,
            scope=scope,
            score=score,
            until=until,
            status=status,
            reason=reason,
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


def proposed(kind: str, text: str, scope: Scope, checks: Sequence[Check] | None) -> MemoryItem:
    """Return an item as :func:`add` would make it, without recording it.

    Raises:
        UsageError: Items of this kind cannot have checks.
    """
    text = one_line(text)
    scope = _scope(kind, text, scope)
    detail = detail_of(kind, text, scope)
    if checks is not None or kind not in CHECKED_KINDS:
        detail = with_checks(kind, detail, checks or ())
    return MemoryItem(id="", kind=cast("Kind", kind), text=text, scope=scope, detail=detail)


def _scope(kind: str, text: str, given: Scope) -> Scope:
    return reach_of(text).scope if kind == "constraint" and given == Scope() else given


def with_checks(kind: str, detail: Detail, checks: Sequence[Check]) -> Detail:
    """Return the detail of an item with other checks.

    Raises:
        UsageError: Items of this kind cannot have checks.
    """
    if kind not in CHECKED_KINDS:
        raise UsageError(f"A {kind} cannot have checks; what can: {', '.join(CHECKED_KINDS)}.")
    if not isinstance(detail, ConstraintDetail | RejectionDetail):
        detail = detail if isinstance(detail, RuleDetail) else RuleDetail()
    return msgspec.structs.replace(detail, checks=tuple(checks))


def detail_of(kind: str, text: str, scope: Scope, until: str = "", sort: NoteSort = "") -> Detail:
    """Return the detail of a new item, with the checks that its words compile to."""
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
    """Replace an item's text; its compiled checks, and the scope that its words name, follow it."""
    text = one_line(text)
    if not text:
        raise UsageError("A memory item needs text; to end the item, use `agentx memory retire`.")
    with engine.write_path.exclusive():
        item = find(engine, name)
        detail, former = item.detail, checks_of(item)
        checks, scope = tuple(check for check in former if check.by_hand), item.scope
        if isinstance(detail, ConstraintDetail):
            named = reach_of(item.text).scope == scope
            scope = reach_of(text).scope if named else scope
            checks = checks or in_mode(former, compile_checks(text, detail.modality, scope))
            detail = msgspec.structs.replace(detail, checks=checks)
        elif isinstance(detail, RejectionDetail):
            detail = msgspec.structs.replace(detail, idea=text, checks=checks)
        return change(
            engine,
            Patch(id=name, text=text, short=shorten(text), scope=scope, detail=detail, worded_by=""),
            actor,
        )


def in_mode(former: Sequence[Check], checks: Sequence[Check]) -> tuple[Check, ...]:
    """Return checks in the mode of the former ones if those had one mode."""
    modes = {check.mode for check in former}
    if len(modes) != 1:
        return tuple(checks)
    return tuple(msgspec.structs.replace(check, mode=former[0].mode) for check in checks)


def retire(engine: Engine, name: str, actor: str, reason: str = "") -> MemoryItem:
    """Retire an item, with the user's reason if there is one; it stays in the history."""
    if reason := one_line(reason):
        return change(engine, Patch(id=name, status="retired", reason=reason), actor)
    return change(engine, Patch(id=name, status="retired"), actor)


def pin(engine: Engine, name: str, actor: str, *, pinned: bool) -> MemoryItem:
    """Show an item in every context, or stop doing so."""
    return change(engine, Patch(id=name, pinned=pinned), actor)


def review(engine: Engine, name: str, actor: str, *, accept: bool) -> MemoryItem:
    """Settle a candidate, or a rule that is perhaps ended: activate it, or retire it.

    A proposed merge is done, or never proposed again. A proposal from a file to reword or end an item is
    carried out, and the item returned.

    Raises:
        UsageError: It is not a candidate, and nothing may have ended it or is perhaps the same.
    """
    with engine.write_path.exclusive():
        item = find(engine, name)
        if item.status == "candidate" and (about := would_change(item)):
            return _carry_out(engine, item, about, actor) if accept else retire(engine, name, actor)
        ended = item.status == "active" and item.perhaps_ended_by
        other = None if ended else proposed_for(item, engine.log.state.items)
        if other and accept:
            better, worse = sorted((item, other), key=rank)
            return merge(engine, better.id, worse.id, actor)
        if other:
            return change(engine, Patch(id=name, links=separated(item, other.id)), actor)
        if item.status != "candidate" and not ended:
            raise UsageError(f"{name} is {item.status}, not a candidate.")
        patch = Patch(id=name, status="active" if accept else "retired", trust="user")
        if ended:
            evidence = item.evidence if accept else joined(item.evidence, item.perhaps_ended_by)
            patch = Patch(id=name, status=patch.status, evidence=evidence, perhaps_ended_by=())
        return change(engine, patch, actor)


def _carry_out(engine: Engine, item: MemoryItem, about: Link, actor: str) -> MemoryItem:
    """Do what a proposal says about another item; return that item.

    Raises:
        UsageError: That item no longer stands.
    """
    target = find(engine, about.target)
    if target.status not in STANDING:
        raise UsageError(f"{target.id} is {target.status} meanwhile; reject {item.id}.")
    if about.relation == WOULD_REWORD:
        edit(engine, target.id, item.text, actor)
        links = (*item.links, Link("superseded_by", target.id))
        change(engine, Patch(id=item.id, status="retired", links=links), actor)
    else:
        retire(engine, target.id, actor)
        change(
            engine, Patch(id=item.id, status="retired", reason=f"{target.id} was ended, as proposed."), actor
        )
    return find(engine, target.id)


def merge(engine: Engine, kept: str, other: str, actor: str) -> MemoryItem:
    """Merge one item into another that says the same; the wordings of both stay, linked both ways.

    Raises:
        UsageError: They are of different kinds, of a kind that is not merged, or no longer stand.
    """
    with engine.write_path.exclusive():
        item, taken = find(engine, kept), find(engine, other)
        if kept == other or item.kind != taken.kind or item.kind not in MERGED:
            raise UsageError("Only two rules, or two items of knowledge, can be merged.")
        for one in (item, taken):
            if one.status not in STANDING:
                raise UsageError(f"{one.id} is {one.status}, so it cannot be merged.")
        return _replace(engine, merged(item, [taken]), actor)


def unmerge(engine: Engine, kept: str, other: str, actor: str) -> MemoryItem:
    """Take a merge back: the other item stands again, and the two are never merged again.

    Raises:
        UsageError: The second was not merged into the first.
    """
    with engine.write_path.exclusive():
        item, taken = find(engine, kept), find(engine, other)
        if superseded_by(taken) != kept or taken.status != "retired":
            raise UsageError(f"{other} was not merged into {kept}.")
        reason = f"It was separated from {kept}."
        again = msgspec.structs.replace(
            taken, status=standing_as(taken.score), links=separated(taken, kept), reason=reason
        )
        alone = msgspec.structs.replace(item, links=separated(item, other), reason="")
        return _replace(engine, [again, alone], actor)


def _replace(engine: Engine, items: Sequence[MemoryItem], actor: str) -> MemoryItem:
    """Record new versions of items; return the first of them."""
    patches = []
    for new in items:
        old = find(engine, new.id)
        fields = {name: getattr(new, name) for name in PATCHED if getattr(new, name) != getattr(old, name)}
        patches.append(Patch(id=new.id, **fields))
    engine.synthesizer.record(patches, PERSON, actor=actor)
    return find(engine, items[0].id)


def change(engine: Engine, patch: Patch, actor: str) -> MemoryItem:
    """Record a change of an item.

    Raises:
        NoSuchItem: The item does not exist.
        UsageError: The new text or checks are too long.
    """
    with engine.write_path.exclusive():  # includes what other processes recorded
        item = find(engine, patch.id)
        detail = item.detail if isinstance(patch.detail, msgspec.UnsetType) else patch.detail
        if isinstance(detail, RuleDetail) and detail.passed_over:
            detail = msgspec.structs.replace(detail, passed_over=0, reached=0)
            patch = msgspec.structs.replace(patch, detail=detail)
        return _record(engine, patch.id, patch, actor)


def _record(engine: Engine, name: str, made: Change, actor: str) -> MemoryItem:
    if not fits(made):
        raise UsageError(
            f"The text is too long: an item holds at most {MAX_ITEM_BYTES:,} bytes. Shorten it, or write "
            "it to a file."
        )
    engine.synthesizer.record((made,), PERSON, actor=actor)
    return find(engine, name)
