"""An act is done once: the gate that refuses a repeat, and reports of acts by programs and by the user.

A check and the announcement that follows it run under the workspace's lock, so that of two processes one is
refused. The identity of an act is that of :mod:`agentx.synthesis.directing.acts`, whoever does it.
"""

import json
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from agentx.engine.engine import Engine
from agentx.engine.moment_parser import event_at
from agentx.policy.unknown_outcomes import end_call, settle
from agentx.storage.clock import stamp
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.events.act_events import ActRetracted
from agentx.storage.events.actor import Actor
from agentx.storage.events.types import Body, Draft, Event, ToolCallRequested
from agentx.storage.secrets.redaction import clean_value
from agentx.synthesis.directing.acts import (
    Act,
    Declaration,
    Done,
    DoneActs,
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

_NAME = re.compile(r"[^\W\d][\w.-]*")
"""A word before ``=`` that names a value; in ``https://example.org?id=4`` there is none."""

_BY_COMMAND = "act-"
"""How the ids of calls begin that commands make."""

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
) -> tuple[Act, ...]:
    """Return what a call does, each act once.

    Raises:
        UsageError: A path of the key leads nowhere, or the arguments are not JSON.
    """
    if declared.window == "never":
        return ()
    window = occasion.window(declared.window, stamp())
    found: dict[str, Act] = {}
    for key in declared.keys(name, arguments):
        try:
            own = identity(name, key, window)
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(f"{name}: the key of the act is not JSON: {error}.") from error
        found.setdefault(own, Act(own, key, window))
    if len(found) > MAX_ACTS:
        raise UsageError(f"{name} would do {len(found):,} acts at once; make several calls, each of fewer.")
    return tuple(found.values())


class Standing(msgspec.Struct, frozen=True):
    """What is known of the acts of a call, each with the event that did or announced it.

    Attributes:
        name: Name of the tool or act.
        done: Those that were done.
        unknown: Those that were begun and have no result.
        new: The others.
    """

    name: str
    done: tuple[tuple[Act, Event], ...]
    unknown: tuple[tuple[Act, Event], ...]
    new: tuple[Act, ...]

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

    def _told(self, acts: Sequence[tuple[Act, Event]]) -> list[tuple[str, Event]]:
        return [(described(self.name, clean_value(act.key)), event) for act, event in acts]


def standing(engine: Engine, name: str, acts: Iterable[Act], *, call_id: str = "") -> Standing:
    """Return which acts were done, and which were begun and have no result.

    Args:
        engine: The workspace.
        name: Name of the tool or act.
        acts: What a call does.
        call_id: The call itself, which may be announced already.
    """
    with engine.write_path.exclusive():
        done: list[tuple[Act, Event]] = []
        unknown: list[tuple[Act, Event]] = []
        new: list[Act] = []
        begun = _begun(engine, call_id)
        for act in acts:
            before, _ = engine.acts.find(act.id)
            if before is not None:
                done.append((act, before))
            elif act.id in begun and (asked := event_at(engine.log, begun[act.id].seq)) is not None:
                unknown.append((act, asked))
            else:
                new.append(act)
        return Standing(name, tuple(done), tuple(unknown), tuple(new))


def refuse_repeat(engine: Engine, name: str, acts: Iterable[Act], *, call_id: str = "") -> None:
    """Refuse a call whose act was done, or was begun and has no result; see :meth:`Standing.refuse`."""
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

    def read(acts: DoneActs) -> list[tuple[str, str, bool, Done]]:
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

    def read(acts: DoneActs) -> list[tuple[str, Done]]:
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


def _reported(engine: Engine, name: str, key: Mapping[str, Any], occasion: Occasion) -> tuple[Act, ...]:
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
            call_id=f"{_BY_COMMAND}{uuid.uuid4().hex[:12]}",
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
        if not call_id.startswith(_BY_COMMAND) or call.run != _run_of(actor, occasion):
            raise UsageError(f"The call {call_id} was not begun here.")
        said = f"It ended with exit status {exit_status}."
        end_call(engine, call, said, succeeded=exit_status == 0, actor=actor)


def check(engine: Engine, name: str, key: Mapping[str, Any], occasion: Occasion) -> None:
    """Raise what :func:`report` would raise, and record nothing."""
    with engine.write_path.exclusive():
        refuse_repeat(engine, name, acts_of(name, known(engine, name), key, occasion))


def declared_in(engine: Engine, name: str) -> Declaration | None:
    """Return what ``agentx.toml`` declares about a tool or act; ``None`` if it says nothing."""
    section = engine.config.director.acts.get(name)
    if section is None:
        return None
    declared = Declaration(section.key, section.window)
    declared.check(name)
    return declared


def known(engine: Engine, name: str) -> Declaration:
    """Return what is known of an act's declaration: from ``agentx.toml``, else as the latest one was made."""
    found: tuple[str, Done] | None = engine.acts.read(engine.log.state, lambda acts: acts.latest(name))
    before = declared_before(engine.acts.key(found[1].key), found[0]) if found and found[1].id else None
    return declared_in(engine, name) or before or Declaration()


# --- the user's word ----------------------------------------------------------------------------------------


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What the user's word on an act came to.

    Attributes:
        act: The act in one line.
        settled: The call whose outcome was unknown; empty if there was none.
    """

    event: Event
    act: str
    settled: str = ""


def say_done(
    engine: Engine, name: str, words: Sequence[str], occasion: Occasion, *, done: bool, reason: str = ""
) -> Said:
    """Record the user's word that an act was done, or was not.

    A call with unknown outcome is settled if the words fit one. Otherwise an act is recorded as done, or one
    that was done is taken back.

    Args:
        engine: The workspace.
        name: Name of the tool or act.
        words: ``KEY=VALUE`` each, or values in the order of the key. A value is JSON, else a text.
        occasion: The run whose window is meant.
        done: Whether it was done.
        reason: The reason, in the user's words.

    Raises:
        AlreadyDone: It is on record already.
        UsageError: The words fit several calls or acts, or none that could be taken back.
    """
    with engine.write_path.exclusive():
        given = values_of(engine, name, words)
        calls = [
            call
            for call in unsettled(engine.log.state)
            if call.tool == name and any(_fits(act.key, given) for act in engine.acts.begun_by(call))
        ]
        if len(calls) > 1:
            acts = [act for call in calls for act in engine.acts.begun_by(call)][:_NAMED]
            listed = "; ".join(described(name, act.key) for act in acts)
            raise UsageError(f"Several calls fit, give all values of one: {listed}.")
        if calls:
            event = settle(engine, calls[0].call_id, succeeded=done, reason=reason)
            return Said(event=event, act=described(name, given), settled=calls[0].call_id)
        if not done:
            return _take_back(engine, name, given, reason)
        (event, *_) = report(engine, name, given, occasion, actor=engine.settings.actor)
        return Said(event=event, act=described(name, given))


def _take_back(engine: Engine, name: str, given: Mapping[str, Any], reason: str) -> Said:
    listed = engine.acts.read(
        engine.log.state, lambda acts: list(acts.within(name, acts.names.get(name, {})))
    )
    fitting = [one for one in listed if one.id and _fits(engine.acts.key(one.key), given)]
    if len(fitting) != 1:
        shown = "; ".join(_named(engine, name, one.key) for one in fitting[:_NAMED])
        several = f"Several acts fit, give all values of one: {shown}."
        none = f"{described(name, given)} is neither on record as done nor without a result."
        raise UsageError(several if fitting else none)
    (one,) = fitting
    data = ActRetracted(name=name, done=one.seq, reason=reason)
    draft = Draft(data=data, actor=engine.settings.actor, cause=one.seq, key=f"{one.id}:not")
    (event,) = engine.write_path.record([draft])
    return Said(event=event, act=_named(engine, name, one.key))


def values_of(engine: Engine, name: str, words: Sequence[str]) -> dict[str, Any]:
    """Parse the words of a command into the values of a key.

    Bare words are values in the order of the key: as declared, as in the latest act of this name, or else
    they are called ``1``, ``2`` and so on. A value that is not JSON is a text; so is one whose value in the
    latest act was a text. An object (``order={"id": 7}``) gives the paths of the key that lead into it.

    Raises:
        UsageError: The key has no value of a name, or there are more bare words than it has values.
    """
    declared = declared_in(engine, name)
    before = _looks_like(engine, name)
    names = list(declared.names) if declared and declared.key else list(before)
    each = declared.each if declared else ""
    given: dict[str, Any] = {}
    bare: list[str] = []
    for word in words:
        key, equals, value = word.partition("=")
        inside = [path for path in names if path.startswith(f"{key}.")]
        if equals and inside and key not in names:
            given |= {path: _inside(name, _value(value, None), key, path) for path in inside}
        elif equals and key and (not names or key in names):
            is_list = key == each and value.startswith("[")
            given[key] = _value(value, None if is_list else before.get(key))
        elif equals and _NAME.fullmatch(key):
            raise UsageError(
                f"{name} has no value {key!r} that makes it the same act; its key is: {', '.join(names)}."
            )
        else:
            bare.append(word)
    free = [one for one in names if one not in given] if names else [str(n + 1) for n in range(len(bare))]
    if len(bare) > len(free):
        raise UsageError(f"{name} has no value for {bare[len(free)]!r}; its key is: {', '.join(names)}.")
    return given | {key: _value(word, before.get(key)) for key, word in zip(free, bare, strict=False)}


def _inside(name: str, value: Any, key: str, path: str) -> Any:
    """Return what a path leads to in the value of its beginning, ``key``."""
    for part in path.removeprefix(f"{key}.").split("."):
        if not isinstance(value, Mapping) or part not in value:
            raise UsageError(f"{name}: {key} has no {path.removeprefix(f'{key}.')}; its key has {path}.")
        value = value[part]
    return value


def _looks_like(engine: Engine, name: str) -> dict[str, Any]:
    """Return the key of a call with unknown outcome, or of the latest act, of a name."""
    for call in unsettled(engine.log.state):
        if call.tool == name and (begun := engine.acts.begun_by(call)):
            return begun[0].key
    found: tuple[str, Done] | None = engine.acts.read(engine.log.state, lambda acts: acts.latest(name))
    return engine.acts.key(found[1].key) if found else {}


def _value(word: str, before: Any) -> Any:
    if isinstance(before, str) and not word.startswith('"'):
        return word
    try:
        return msgspec.json.decode(word)
    except ValueError:
        return word


def _fits(key: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    return all(name in key and canonical(key[name]) == canonical(value) for name, value in given.items())
