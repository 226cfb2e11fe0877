"""An act is done once: the gate that refuses a repeat, and reports of acts by programs and by the user.

A check and the announcement that follows it run under the workspace's lock, so that of two processes one is
refused. The identity of an act is that of :mod:`agentx.synthesis.directing.acts`, whoever does it.
"""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from agentx.engine.engine import Engine
from agentx.policy.act_words import BY_COMMAND, declared_in, readings
from agentx.policy.unknown_outcomes import announcement, end_call, settle_acts
from agentx.storage.clock import stamp
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.events.act_events import ActRetracted
from agentx.storage.events.actor import Actor
from agentx.storage.events.types import Body, Draft, Event, ToolCallRequested
from agentx.storage.secrets.redaction import clean_value
from agentx.synthesis.directing.acts import (
    ActRecord,
    Declaration,
    DoneActs,
    KeyedAct,
    Listed,
    Occasion,
    canonical,
    clipped,
    declared_before,
    described,
    identity,
)
from agentx.synthesis.learning.auditing import unsettled
from agentx.synthesis.state.state import PendingCall, State

MAX_ACTS = 1_000
"""Maximum number of acts of one call."""

_NAMED = 10
"""Maximum number of acts that an error names."""


class AlreadyDone(AgentXError):
    """Acts that were done before.

    Args:
        acts: Those that were done.
        rest: Whether the call would do others, too.

    Attributes:
        seq: The event that did the first of them.
    """

    def __init__(self, acts: Sequence[tuple[str, Event]], *, rest: bool = False) -> None:
        advice = " The rest was not done: make the call without these." if rest else ""
        super().__init__(f"Already done: {_listed(acts)}.{advice}")
        self.seq = acts[0][1].seq


class OutcomeUnknown(AgentXError):
    """Acts that were begun, and nobody knows whether they were done.

    Attributes:
        seq: The event that announced the first of them.
    """

    def __init__(self, acts: Sequence[tuple[str, Event]]) -> None:
        super().__init__(
            f"This began and has no result, so nobody knows whether it was done: {_listed(acts)}. "
            "The user is asked; go on with the rest."
        )
        self.seq = acts[0][1].seq


def _listed(acts: Sequence[tuple[str, Event]]) -> str:
    lines = [
        f"{act} on {event.at[:16].replace('T', ' ')}{f' (run {event.run})' if event.run else ''}"
        for act, event in acts[:_NAMED]
    ]
    more = len(acts) - len(lines)
    return "; ".join([*lines, *([f"and {more} more"] if more else ())])


def acts_of(
    name: str, declared: Declaration, arguments: Mapping[str, Any], occasion: Occasion
) -> tuple[KeyedAct, ...]:
    """Return what a call does, each act once.

    Raises:
        UsageError: A path of the key leads nowhere, or the arguments are not JSON.
    """
    if declared.window == "never":
        return ()
    window = occasion.window(declared.window, stamp())
    found: dict[str, KeyedAct] = {}
    for key in declared.keys(name, arguments):
        try:
            own = identity(name, key, window)
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(f"{name}: the key of the act is not JSON: {error}.") from error
        found.setdefault(own, KeyedAct(own, key, window))
    if len(found) > MAX_ACTS:
        raise UsageError(f"{name} would do {len(found):,} acts at once; make several calls, each of fewer.")
    return tuple(found.values())


class ActStanding(msgspec.Struct, frozen=True):
    """What is known of the acts of a call, each with the event that did or announced it.

    Attributes:
        name: Name of the tool or act.
        done: Those that were done.
        unknown: Those that were begun and have no result.
        new: The others.
    """

    name: str
    done: tuple[tuple[KeyedAct, Event], ...]
    unknown: tuple[tuple[KeyedAct, Event], ...]
    new: tuple[KeyedAct, ...]

    def refuse(self) -> None:
        """Refuse all of them if one was done, or was begun and has no result.

        Raises:
            AlreadyDone: One of the acts was done.
            OutcomeUnknown: One of them was begun, and has no result.
        """
        if self.done and (self.new or not self.unknown):
            raise AlreadyDone(self._told(self.done), rest=bool(self.new))
        if self.unknown:
            raise OutcomeUnknown(self._told(self.unknown))

    @property
    def left_out(self) -> str:
        """What a call leaves out that does the new ones only; empty for nothing."""
        parts = (
            (self.done, "Left out, done already: {}."),
            (self.unknown, "Left out, begun before and without a result: {}. The user is asked."),
        )
        return " ".join(words.format(_listed(self._told(acts))) for acts, words in parts if acts)

    def _told(self, acts: Sequence[tuple[KeyedAct, Event]]) -> list[tuple[str, Event]]:
        return [(described(self.name, clean_value(act.key)), event) for act, event in acts]


def standing(engine: Engine, name: str, acts: Iterable[KeyedAct], *, call_id: str = "") -> ActStanding:
    """Return which acts were done, and which were begun and have no result.

    Args:
        engine: The workspace.
        name: Name of the tool or act.
        acts: What a call does.
        call_id: The call itself, which may be announced already.
    """
    with engine.write_path.exclusive():
        done: list[tuple[KeyedAct, Event]] = []
        unknown: list[tuple[KeyedAct, Event]] = []
        new: list[KeyedAct] = []
        begun = _begun(engine, call_id)
        for act in acts:
            before, _ = engine.acts.find(act.id)
            if before is not None:
                done.append((act, before))
            elif act.id in begun and (asked := announcement(engine, begun[act.id])) is not None:
                unknown.append((act, asked))
            else:
                new.append(act)
        return ActStanding(name, tuple(done), tuple(unknown), tuple(new))


def refuse_repeat(engine: Engine, name: str, acts: Iterable[KeyedAct], *, call_id: str = "") -> None:
    """Refuse a call whose act was done, or was begun and has no result; see :meth:`ActStanding.refuse`."""
    standing(engine, name, acts, call_id=call_id).refuse()


def _begun(engine: Engine, call_id: str) -> dict[str, PendingCall]:
    """Return the calls that were started and have no result, by the acts that they do."""
    return {
        act.id: call
        for call in engine.log.state.pending.values()
        if call.call_id != call_id and not call.awaits_approval
        for act in engine.acts.begun_by(call)
    }


def _named(engine: Engine, name: str, key: Body) -> str:
    return described(name, engine.acts.key(key))


# --- lists -----------------------------------------------------------------------------------------------


def listed(
    engine: Engine, state: State, occasion: Occasion, declarations: Mapping[str, Declaration]
) -> tuple[Listed, ...]:
    """Return the acts done within the windows that are open, by any run, the latest first.

    Calls of tools without a declaration are listed with all their arguments, if they belong to the same
    schedule, and are not refused.

    Args:
        engine: The workspace.
        state: The state up to which acts count.
        occasion: The schedule and due time of the run.
        declarations: What the executor's tools declare.
    """

    def read(acts: DoneActs) -> list[tuple[str, str, bool, ActRecord]]:
        found = []
        for name in acts.names:
            before = acts.latest(name)
            declared = declarations.get(name) or declared_in(engine, name)
            if declared is None and before is not None and before[1].id:
                declared = declared_before((), before[0])
            window = occasion.window(declared.window, stamp()) if declared else ""
            if declared is None or declared.window != "never":
                known = acts.within(name, [window])
                refused = declared is not None
                found += [
                    (name, window, refused, one)
                    for one in known
                    if bool(one.id) == refused and (refused or one.schedule == occasion.schedule)
                ]
        return found

    done = sorted(engine.acts.read(state, read), key=lambda one: -one[3].seq)
    # Nobody knows whether these went through, and nothing refuses them: they count as called.
    schedules = {run.run: run.schedule for run in state.runs}
    undeclared = [
        Listed(name=call.tool, key=engine.acts.key(call.whole), at=state.at, run=call.run, refused=False)
        for call in unsettled(state)
        if call.whole.text
        and not call.acts.text
        and call.tool not in declarations
        and schedules.get(call.run, "") == occasion.schedule
    ]
    return (
        *undeclared,
        *(
            Listed(
                name=name,
                key=engine.acts.key(one.key),
                at=one.at,
                run=one.run,
                refused=refused,
                window=window,
            )
            for name, window, refused, one in done
        ),
    )


def adopt(engine: Engine, declarations: Mapping[str, Declaration]) -> None:
    """Record what was done before a tool declared its acts as it does now, so that it is not done again.

    That is, calls before its first declared act, and reports whose values are not those of its key, such as
    ``order={"id": 7}`` for the key ``order.id``. Only acts that are done once for ever are adopted.
    """
    once = {name: declared for name, declared in declarations.items() if declared.window == "once"}

    def read(acts: DoneActs) -> list[tuple[str, ActRecord]]:
        known = {name: list(acts.within(name, [""]))[::-1] for name in once}
        return [
            (name, one)
            for name, before in known.items()
            for is_new in [not any(one.id for one in before)]
            for one in before
            if is_new or (one.id and once[name].key)
        ]

    with engine.write_path.exclusive():
        drafts: list[Draft] = []
        for name, one in engine.acts.read(engine.log.state, read):
            key = engine.acts.key(one.key)
            if one.id and key.keys() == set(once[name].names):
                continue
            with suppress(UsageError):
                acts = acts_of(name, once[name], key, Occasion())
                # What the user took back is not adopted again.
                new = [act for act in acts if engine.acts.find(act.id) == (None, f"act:{act.id}")]
                drafts += engine.acts.drafts(name, new, actor="engine:acts", run=one.run)
        if drafts:
            engine.write_path.record(drafts)


# --- reports ------------------------------------------------------------------------------------------------


def report(
    engine: Engine, name: str, key: Mapping[str, Any], occasion: Occasion, *, actor: str
) -> tuple[Event, ...]:
    """Record that an act was done, as a program or the user says; it is durable on return.

    Of several, those that are not on record yet are recorded.

    Args:
        engine: The workspace.
        name: Name of the act; ``[director.acts.NAME]`` of ``agentx.toml`` may declare it.
        key: The values that make it this act.
        occasion: The run that it belongs to.
        actor: Who says so; set by the channel.

    Raises:
        AlreadyDone: It is on record already.
        OutcomeUnknown: A call that does the same has no result.
        UsageError: The act is declared, and the key lacks one of its values.
    """
    with engine.write_path.exclusive():
        acts = _reported(engine, name, key, occasion)
        found = standing(engine, name, acts)
        drafts = engine.acts.drafts(name, found.new, actor=actor, run=_run_of(actor, occasion))
        events = engine.write_path.record(drafts) if drafts else []
        if found.unknown or not events:
            msgspec.structs.replace(found, new=()).refuse()
    return tuple(events)


def _reported(engine: Engine, name: str, key: Mapping[str, Any], occasion: Occasion) -> tuple[KeyedAct, ...]:
    acts = acts_of(name, known(engine, name), key, occasion)
    if not acts:
        raise UsageError(f'{name} only looks (window = "never"), so there is nothing to report.')
    return acts


def _run_of(actor: str, occasion: Occasion) -> str:
    return "" if Actor.parse(actor).is_user else occasion.run


def begin(engine: Engine, name: str, key: Mapping[str, Any], occasion: Occasion, *, actor: str) -> str:
    """Announce what a command is about to do; it is durable on return.

    Until :func:`end`, and for ever if that never comes, the act counts as begun and without a result.

    Returns:
        The id of the call.

    Raises:
        AlreadyDone: An act is on record already.
        OutcomeUnknown: A call that does the same has no result.
        UsageError: The act is declared, and the key lacks one of its values.
    """
    with engine.write_path.exclusive():
        acts = _reported(engine, name, key, occasion)
        refuse_repeat(engine, name, acts)
        values = clean_value(dict(key))
        request = ToolCallRequested(
            call_id=f"{BY_COMMAND}{uuid.uuid4().hex[:12]}",
            tool=name,
            arguments={one: clipped(value) for one, value in values.items()},
            whole=engine.write_path.body(json.dumps(values)),
            acts=engine.acts.announced(acts),
        )
        engine.write_path.record([Draft(data=request, actor=actor, run=_run_of(actor, occasion))])
    return request.call_id


def end(
    engine: Engine,
    call_id: str,
    exit_status: int,
    name: str,
    key: Mapping[str, Any],
    occasion: Occasion,
    *,
    actor: str,
) -> None:
    """Record how a command ended that :func:`begin` announced: its act is done if it ended with 0.

    If the user has said meanwhile what came of it, nothing but a success is recorded.

    Raises:
        UsageError: The call is of another kind, or of another run.
    """
    with engine.write_path.exclusive():
        call = engine.log.state.pending.get(call_id)
        if call is None:
            if exit_status == 0:
                with suppress(AlreadyDone):
                    report(engine, name, key, occasion, actor=actor)
            return
        if not call_id.startswith(BY_COMMAND) or call.run != _run_of(actor, occasion):
            raise UsageError(f"The call {call_id} was not begun here.")
        said = f"It ended with exit status {exit_status}."
        end_call(engine, call, said, succeeded=exit_status == 0, actor=actor)


def check(engine: Engine, name: str, key: Mapping[str, Any], occasion: Occasion) -> None:
    """Raise what :func:`report` would raise, and record nothing."""
    with engine.write_path.exclusive():
        refuse_repeat(engine, name, acts_of(name, known(engine, name), key, occasion))


def known(engine: Engine, name: str) -> Declaration:
    """Return what is known of an act's declaration: from ``agentx.toml``, else as the latest one was made."""
    found: tuple[str, ActRecord] | None = engine.acts.read(engine.log.state, lambda acts: acts.latest(name))
    before = declared_before(engine.acts.key(found[1].key), found[0]) if found and found[1].id else None
    return declared_in(engine, name) or before or Declaration()


# --- the user's word ----------------------------------------------------------------------------------------


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What the user's word on an act came to.

    Attributes:
        act: The act in one line.
        settled: The call whose outcome was unknown, the first of several; empty if there was none.
    """

    event: Event
    act: str
    settled: str = ""


def meant(engine: Engine, name: str, words: Sequence[str], occasion: Occasion) -> dict[str, Any]:
    """Return the values that the words of a command mean: those of an act that is known, else the likeliest.

    An act on record as done comes before one without a result. The caller holds the workspace's lock until
    it has used them.

    Raises:
        UsageError: The words do not fit the key.
    """

    def rank(given: Mapping[str, Any]) -> int:
        found = standing(engine, name, acts_of(name, known(engine, name), given, occasion))
        return 2 if found.done else bool(found.unknown)

    said = readings(engine, name, words)
    return max(said, key=rank) if len(said) > 1 else said[0]


def say_done(
    engine: Engine, name: str, words: Sequence[str], occasion: Occasion, *, done: bool, reason: str = ""
) -> Said:
    """Record the user's word that an act was done, or was not.

    Acts without a result that the words fit are settled; the other acts of the same call stay unknown. If
    there are none, an act is recorded as done, or one that was done is taken back.

    Args:
        engine: The workspace.
        name: Name of the tool or act.
        words: ``KEY=VALUE`` each, or values in the order of the key; see :func:`readings`. A list names
            several acts of a call.
        occasion: The run whose window is meant.
        done: Whether it was done.
        reason: The reason, in the user's words.

    Raises:
        AlreadyDone: It is on record already.
        UsageError: The words fit several calls or acts, or none that could be taken back.
    """
    with engine.write_path.exclusive():
        open_acts = [
            (call, act)
            for call in unsettled(engine.log.state)
            if call.tool == name
            for act in engine.acts.begun_by(call)
        ]
        said = readings(engine, name, words)
        entries = list(zip(*(_entries(engine, name, given, open_acts) for given in said), strict=True))
        found = [_open(name, entry, open_acts) for entry in entries]
        rest = [entry for entry, hits in zip(entries, found, strict=True) if not hits]
        if len(rest) == len(entries):
            if not done:
                return _take_back(engine, name, [_fitting(engine, name, entry) for entry in rest], reason)
            values = meant(engine, name, words, occasion)
            (event, *_) = report(engine, name, values, occasion, actor=engine.settings.actor)
            return Said(event=event, act=described(name, values))
        taken = [] if done else [_fitting(engine, name, entry) for entry in rest]
        settled = _settle(engine, name, [hit for hits in found for hit in hits], done=done, reason=reason)
        if taken:
            _take_back(engine, name, taken, reason)
        for entry in rest if done else ():
            with suppress(AlreadyDone):
                report(engine, name, entry[0], occasion, actor=engine.settings.actor)
        return settled


_Open = Sequence[tuple[PendingCall, KeyedAct]]
"""Acts without a result, each with its call."""


def _entries(engine: Engine, name: str, given: dict[str, Any], open_acts: _Open) -> list[dict[str, Any]]:
    """Return the acts that are given: one each for the entries of a list."""
    declared = declared_in(engine, name)
    each = [declared.each] if declared and declared.key else list(given)
    lists = [key for key in each if isinstance(given.get(key), list)]
    if len(lists) != 1 or any(_fits(act.key, given) for _, act in open_acts):
        return [given]
    (key,) = lists
    entries = [given | {key: one} for one in given[key]]
    is_list_of_acts = bool(declared and declared.each) or any(
        _fits(act.key, one) for one in entries for _, act in open_acts
    )
    return entries if entries and is_list_of_acts else [given]


def _open(name: str, entry: Sequence[Mapping[str, Any]], open_acts: _Open) -> _Open:
    """Return the acts without a result that an entry fits: one for each way to read it.

    Raises:
        UsageError: It fits several.
    """
    hits = [[one for one in open_acts if _fits(one[1].key, given)] for given in entry]
    several = next((found for found in hits if len(found) > 1), None)
    if several:
        listed = "; ".join(described(name, act.key) for _, act in several[:_NAMED])
        more = f"; and {len(several) - _NAMED} more" if len(several) > _NAMED else ""
        raise UsageError(f"Several acts fit, give all values of one, or of each in a list: {listed}{more}.")
    return [one for found in hits for one in found]


def _settle(engine: Engine, name: str, hits: _Open, *, done: bool, reason: str) -> Said:
    """Settle acts without a result, call by call."""
    calls = {call.call_id: call for call, _ in hits}
    events = [
        settle_acts(
            engine,
            call,
            [act for other, act in hits if other.call_id == call_id],
            succeeded=done,
            reason=reason,
        )
        for call_id, call in calls.items()
    ]
    acts = "; ".join(dict.fromkeys(described(name, act.key) for _, act in hits))
    return Said(event=events[0], act=acts, settled=next(iter(calls)))


def _fitting(engine: Engine, name: str, entry: Sequence[Mapping[str, Any]]) -> list[ActRecord]:
    """Return the acts on record that an entry fits: one for each way to read it.

    Raises:
        UsageError: It fits several, or none.
    """
    listed = engine.acts.read(
        engine.log.state, lambda acts: list(acts.within(name, acts.names.get(name, {})))
    )
    known_keys = [(one, engine.acts.key(one.key)) for one in listed if one.id]
    hits = [[one for one, key in known_keys if _fits(key, given)] for given in entry]
    several = next((found for found in hits if len(found) > 1), None)
    if several:
        shown = "; ".join(_named(engine, name, one.key) for one in several[:_NAMED])
        raise UsageError(f"Several acts fit, give all values of one: {shown}.")
    found = [one for found in hits for one in found]
    if not found:
        raise UsageError(f"{described(name, entry[0])} is neither on record as done nor without a result.")
    return found


def _take_back(engine: Engine, name: str, found: Sequence[Sequence[ActRecord]], reason: str) -> Said:
    acts = list({one.seq: one for some in found for one in some}.values())
    drafts = [
        Draft(
            data=ActRetracted(name=name, done=one.seq, reason=reason),
            actor=engine.settings.actor,
            cause=one.seq,
            key=f"{one.id}:not",
        )
        for one in acts
    ]
    (event, *_) = engine.write_path.record(drafts)
    return Said(event=event, act="; ".join(_named(engine, name, one.key) for one in acts))


def _fits(key: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    return all(name in key and canonical(key[name]) == canonical(value) for name, value in given.items())
