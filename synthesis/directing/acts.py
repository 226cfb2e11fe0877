"""What makes two calls the same act, and the fold of all acts that were done.

Pure: the identity of an act depends on the tool, the values of its key, and the window in which it is done
once. It is the same for a call of a function, a report of a program and a word of the user.
"""

import copy
import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import accumulate
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from agentx.storage.errors import UsageError
from agentx.storage.events.act_events import ActDone, ActRetracted
from agentx.storage.events.types import Body, Event, RunEnded, RunStarted, ToolCallExecuted, ToolCallRequested
from agentx.storage.text import clip

Window = Literal["once", "due", "day", "never"]
WINDOWS: tuple[Window, ...] = ("once", "due", "day", "never")

KEPT_ACTS = 2_000
"""Number of latest acts of one name and window that the fold keeps for lists; the gate knows all of them."""

KEPT_WINDOWS = 8
"""Number of latest windows of one name that the fold keeps."""

SHOWN_CHARACTERS = 300
"""Longer values of an act are cut where it is shown."""

LISTED_CHARACTERS = 6_000
"""Maximum length of a list of acts in a prompt; all of them are in the data, and the gate knows them."""

CALLED_CHARACTERS = 30_000
"""The same for calls that nothing refuses."""

_EACH = "[]"
_MORE = "({:,} more are not shown)"
_MORE_CHARACTERS = 40
_GROUP_CHARACTERS = 2 * SHOWN_CHARACTERS


class Declaration(msgspec.Struct, frozen=True):
    """What makes two calls of a tool the same act.

    Attributes:
        key: Arguments, or paths into them (``order.id``); all arguments if empty. With ``[]`` behind it, each
            entry of a list is an act by itself.
        window: Within what the act is done once: for ever (``once``), a due time (``due``), a calendar day
            (``day``); ``never`` for a tool that only looks.
    """

    key: tuple[str, ...] = ()
    window: Window = "once"

    def check(self, tool: str, arguments: Sequence[str] = ()) -> None:
        """Refuse a declaration that cannot be used.

        Args:
            tool: Name of the tool.
            arguments: Its arguments; empty where they are not known.

        Raises:
            UsageError: The window is unknown, the key names no argument, two parts of it end in ``[]``, or a
                path goes on behind ``[]``.
        """
        if self.window not in WINDOWS:
            raise UsageError(
                f"The act {tool} has an unknown window, {self.window!r}. Windows: {', '.join(WINDOWS)}."
            )
        behind = next((path for path in self.key if _EACH in path.removesuffix(_EACH)), None)
        if behind is not None:
            raise UsageError(
                f"The key of the act {tool} has the path {behind!r}: a path behind {_EACH} is not supported. "
                f"With {behind[: behind.index(_EACH)]}{_EACH}, each whole entry is an act."
            )
        unknown = [path for path in self.key if arguments and _parts(path)[0] not in arguments]
        if unknown:
            raise UsageError(
                f"The key of the act {tool} names {unknown[0]!r}, which is not one of its arguments: "
                f"{', '.join(arguments)}."
            )
        if not all(all(_parts(path)) for path in self.key):
            raise UsageError(f"The key of the act {tool} has an empty part.")
        if sum(path.endswith(_EACH) for path in self.key) > 1:
            raise UsageError(f"Only one part of the key of the act {tool} may end in {_EACH}.")

    def keys(self, tool: str, arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the key of each act that a call does.

        Raises:
            UsageError: A path leads nowhere.
        """
        values = {path.removesuffix(_EACH): _at(tool, path, arguments) for path in self.key or arguments}
        each = self.each
        if not each:
            return [values]
        entries = values[each] if isinstance(values[each], list) else [values[each]]
        return [values | {each: one} for one in entries]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the values in a key of such an act."""
        return tuple(path.removesuffix(_EACH) for path in self.key)

    @property
    def each(self) -> str:
        """The path to the list of which each entry is an act by itself; empty for none."""
        return next((path.removesuffix(_EACH) for path in self.key if path.endswith(_EACH)), "")

    def only(
        self, tool: str, arguments: Mapping[str, Any], kept: Callable[[dict[str, Any]], bool]
    ) -> dict[str, Any]:
        """Return the argument that holds the list of acts, with some entries of it.

        Args:
            tool: Name of the tool.
            arguments: The whole arguments of a call, as JSON values.
            kept: Whether to keep the entry with this key.
        """
        entries = [key[self.each] for key in self.keys(tool, arguments) if kept(key)]
        first, *path = _parts(self.each)
        changed = copy.deepcopy({first: arguments[first]})
        within, last = changed, first
        for part in path:
            within, last = within[last], part
        within[last] = entries
        return changed


def _parts(path: str) -> list[str]:
    return path.removesuffix(_EACH).split(".")


def _at(tool: str, path: str, arguments: Mapping[str, Any]) -> Any:
    whole = path.removesuffix(_EACH)
    if whole in arguments:  # a report names a path as it is declared
        return arguments[whole]
    value: Any = arguments
    for part in _parts(path):
        if not isinstance(value, Mapping) or part not in value:
            raise UsageError(f"{tool}: the call has no {whole}, which is part of its key.")
        value = value[part]
    return value


class KeyedAct(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a call does, such that another call with the same identity does the same again.

    Attributes:
        id: The identity, 32 hexadecimal digits.
        key: The values that make it this act.
        window: Within what it is done once, as recorded; empty for ever.
    """

    id: str
    key: dict[str, Any]
    window: str = ""


class Occasion(msgspec.Struct, frozen=True, kw_only=True):
    """When and for what a run takes place.

    Attributes:
        run: The run.
        schedule: The schedule that caused it, and ``due`` its due time in UTC; empty without one.
        zone: IANA name of the schedule's time zone.
        by_clock: Whether the day is that of the clock, as for what the user does.
    """

    run: str = ""
    schedule: str = ""
    due: str = ""
    zone: str = "UTC"
    by_clock: bool = False

    def local(self, at: str) -> datetime:
        """Return a moment in the time zone; in UTC if this machine does not know the zone."""
        moment = datetime.fromisoformat(at)
        try:
            return moment.astimezone(ZoneInfo(self.zone))
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return moment.astimezone(UTC)

    def window(self, kind: Window, at: str) -> str:
        """Return the window that is open, as it is recorded.

        The day is that of the due time, so that a run that is late still does the work of its own day.

        Args:
            kind: The kind of window.
            at: The present moment, for a run without a due time.
        """
        if kind == "day":
            return f"day {self.local(at if self.by_clock else self.due or at).date().isoformat()}"
        if kind == "due":
            return f"due {self.schedule} {self.due}" if self.due else f"run {self.run}"
        return ""


def declared_before(key: Iterable[str], window: str) -> Declaration:
    """Return the declaration that an act on record was made by.

    >>> declared_before(["bed"], "day 2026-03-02")
    Declaration(key=('bed',), window='day')
    """
    kind = {"day": "day", "due": "due", "run": "due"}.get(window.partition(" ")[0], "once")
    return Declaration(tuple(key), kind)  # type: ignore[arg-type]


def canonical(value: Any) -> str:
    """Return the canonical JSON of a value: equal values give the same text.

    >>> canonical({"b": 1.0, "a": "x"}) == canonical({"a": "x", "b": 1}), canonical("1") == canonical(1)
    (True, False)
    """
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"))


def plain(value: Any) -> Any:
    """Return a JSON value with one form for equal values: NFC for texts, whole numbers without decimals."""
    match value:
        case str():
            return unicodedata.normalize("NFC", value)
        case float() if value.is_integer():
            return int(value)
        case Mapping():
            return {plain(str(name)): plain(one) for name, one in value.items()}
        case list() | tuple():
            return [plain(one) for one in value]
    return value


def identity(name: str, key: Mapping[str, Any], window: str = "") -> str:
    """Return the identity of an act, 32 hexadecimal digits."""
    return blake2b(canonical([name, key, window]).encode(), digest_size=16).hexdigest()


def described(name: str, key: Mapping[str, Any]) -> str:
    """Return an act in one line, its values as JSON.

    >>> described("send_reminder", {"patient": "Ann", "appointment": 4711})
    'send_reminder patient="Ann", appointment=4711'
    """
    values = (f"{one}={_shown(value)}" for one, value in key.items())
    return f"{name} {', '.join(values)}".rstrip()


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return clip(text, SHOWN_CHARACTERS)


def clipped(value: Any) -> Any:
    """Return a value; a long one as the beginning of its JSON."""
    shown = _shown(value)
    return value if len(shown) < SHOWN_CHARACTERS else shown


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """An act that was done, as an executor is shown it.

    Attributes:
        refused: Whether the engine refuses to do it again; it does not if the tool has no declaration.
        window: Within what it was done, as recorded.
    """

    name: str
    key: dict[str, Any]
    at: str
    run: str = ""
    refused: bool = True
    window: str = ""

    @property
    def data(self) -> dict[str, Any]:
        """The values of its key, and ``at``, when it was done."""
        return {"at": self.at, **self.key}


def listing(acts: Sequence[Listed]) -> str:
    r"""Return acts for a prompt: by name, the latest first, the values of each as JSON on one line.

    >>> print(listing([Listed(name="remind", key={"patient": "Ann", "visit": 7}, at="2026-03-02")]))
    remind patient, visit:
    - "Ann", 7
    """
    groups: dict[tuple[str, ...], list[Listed]] = {}
    for act in acts:
        groups.setdefault((act.name, act.window, *act.key), []).append(act)
    left = LISTED_CHARACTERS if all(act.refused for act in acts) else CALLED_CHARACTERS
    parts: list[str] = []
    shown_groups = list(groups.items())[: left // _GROUP_CHARACTERS]
    hidden = sum(map(len, list(groups.values())[len(shown_groups) :]))
    left -= _MORE_CHARACTERS
    for number, ((name, window, *names), same) in enumerate(shown_groups):
        within = {"day": ", today", "due": ", for this due time", "run": ", in this run"}
        title = f"{name} {', '.join(names)}".rstrip() + f"{within.get(window.partition(' ')[0], '')}:"
        title = clip(title, SHOWN_CHARACTERS)
        room = left // (len(shown_groups) - number) - len(title) - _MORE_CHARACTERS
        lines = list(dict.fromkeys(_line(act) for act in same))
        sizes = accumulate(len(line) + 1 for line in lines)
        shown = lines[: sum(size <= room for size in sizes)]
        more = len(lines) - len(shown)
        parts.append("\n".join([title, *shown, *([_MORE.format(more)] if more else ())]))
        left -= len(parts[-1]) + 1
    return "\n".join([*parts, *([_MORE.format(hidden)] if hidden else ())]) or "(none)"


def _line(act: Listed) -> str:
    values = ", ".join(_shown(value) for value in act.key.values())
    return f"- {values or act.at[:16].replace('T', ' ')}"


def data_of(acts: Iterable[Listed]) -> dict[str, list[dict[str, Any]]]:
    """Return acts as data, by name, the latest first."""
    found: dict[str, list[dict[str, Any]]] = {}
    for act in acts:
        found.setdefault(act.name, []).append(act.data)
    return found


class ActRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """An act that was done, as the fold keeps it.

    Attributes:
        key: The values of its key, as a JSON object.
        id: Its identity; empty for a call of a tool without a declaration, which is never refused.
        schedule: The schedule of such a call's run.
    """

    seq: int
    at: str
    run: str
    key: Body
    id: str = ""
    schedule: str = ""


class DoneActs(msgspec.Struct):
    """The acts that were done, by name and window; lists are bounded.

    Attributes:
        names: The latest acts, oldest first.
        open: Calls without a declaration that have no result yet: their arguments, by call id.
        runs: The schedules of runs that have not ended.
    """

    names: dict[str, dict[str, list[ActRecord]]] = msgspec.field(default_factory=dict)
    open: dict[str, Body] = msgspec.field(default_factory=dict)
    runs: dict[str, str] = msgspec.field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Fold an event in."""
        match event.data:
            case ActDone() as act:
                done = ActRecord(event.seq, event.at, event.run, act.key, event.key)
                self._add(act.name, act.window, done)
            case ActRetracted(name=name, done=seq):
                for acts in self.names.get(name, {}).values():
                    acts[:] = [one for one in acts if one.seq != seq]
            case RunStarted() as run:
                self.runs[event.run] = run.schedule
            case RunEnded():
                self.runs.pop(event.run, None)
            case ToolCallRequested() as call if call.whole.text and not call.acts.text:
                self.open[call.call_id] = call.whole
            case ToolCallExecuted() as call if (whole := self.open.pop(call.call_id, None)) is not None:
                if call.status == "SUCCEEDED":
                    schedule = self.runs.get(event.run, "")
                    self._add(
                        call.tool, "", ActRecord(event.seq, event.at, event.run, whole, schedule=schedule)
                    )

    def _add(self, name: str, window: str, done: ActRecord) -> None:
        windows = self.names.setdefault(name, {})
        acts = windows.pop(window, [])
        windows[window] = acts  # the latest window comes last
        acts.append(done)
        del acts[:-KEPT_ACTS]
        limited = [one for one in windows if one]
        for old in limited[:-KEPT_WINDOWS]:
            del windows[old]

    def within(self, name: str, windows: Iterable[str]) -> Iterator[ActRecord]:
        """Yield the acts of a name in some windows, latest first."""
        known = self.names.get(name, {})
        found = [one for window in windows for one in known.get(window, ())]
        return iter(sorted(found, key=lambda one: -one.seq))

    def latest(self, name: str) -> tuple[str, ActRecord] | None:
        """Return the latest act of a name with its window: it shows how its key looks."""
        windows = self.names.get(name, {})
        return next(((window, acts[-1]) for window, acts in reversed(windows.items()) if acts), None)
