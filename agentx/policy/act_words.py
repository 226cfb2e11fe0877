"""The words of a command that name an act: ``id=4711``, or bare values in the order of the key.

A word such as ``4711`` may mean a number or a text. Which of the two an act on record has is not known from
the word, so both are looked up.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

import msgspec

from agentx.engine.engine import Engine
from agentx.engine.moment_parser import event_at
from agentx.storage.errors import UsageError
from agentx.synthesis.directing.acts import ActRecord, Declaration
from agentx.synthesis.learning.auditing import unsettled

BY_COMMAND = "act-"
"""Prefix of the ids of calls that commands make."""

_NAME = re.compile(r"[^\W\d][\w.-]*")
"""A word before ``=`` that names a value; in ``https://example.org?id=4`` there is none."""

_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})", re.ASCII)
"""A word that may be a number: an integer that every JSON reader keeps exact."""

_JSON = ('"', "[", "{")
"""How a word begins that is JSON."""

_READINGS = 64
"""Maximum number of readings of one command."""

_LOOKED_AT = 20
"""Number of latest acts that show the type of a value."""


def declared_in(engine: Engine, name: str) -> Declaration | None:
    """Return what ``agentx.toml`` declares about a tool or act; ``None`` if it says nothing."""
    section = engine.config.director.acts.get(name)
    if section is None:
        return None
    declared = Declaration(section.key, section.window)
    declared.check(name)
    return declared


def readings(engine: Engine, name: str, words: Sequence[str]) -> list[dict[str, Any]]:
    """Parse the words of a command into the values of a key, in each way to read them, the likeliest first.

    Bare words are values in the order of the key: as declared, as in the latest act of this name, or else
    they are called ``1``, ``2`` and so on. An object, a list and a quoted string are JSON. An integer is a
    number or a text, any other word a text. An object (``order={"id": 7}``) gives the paths of the key that
    lead into it.

    Raises:
        UsageError: The key has no value of a name, there are more bare words than it has values, or the
            words can be read in too many ways.
    """
    declared = declared_in(engine, name)
    names = list(declared.names) if declared and declared.key else list(_latest_key(engine, name))
    given: dict[str, tuple[Any, ...]] = {}
    bare: list[str] = []
    for word in words:
        key, equals, value = word.partition("=")
        inside = [path for path in names if path.startswith(f"{key}.")]
        if equals and inside and key not in names:
            given |= {path: (_inside(name, _read(value, "")[0], key, path),) for path in inside}
        elif equals and key and (not names or key in names):
            given[key] = _read(value, _type(engine, name, key))
        elif equals and _NAME.fullmatch(key):
            raise UsageError(
                f"{name} has no value {key!r} that makes it the same act; its key is: {', '.join(names)}."
            )
        else:
            bare.append(word)
    free = [one for one in names if one not in given] if names else [str(n + 1) for n in range(len(bare))]
    if len(bare) > len(free):
        raise UsageError(f"{name} has no value for {bare[len(free)]!r}; its key is: {', '.join(names)}.")
    given |= {key: _read(word, _type(engine, name, key)) for key, word in zip(free, bare, strict=False)}
    if math.prod(map(len, given.values())) > _READINGS:
        raise UsageError(f"{name}: too many of these values may be numbers or texts; quote texts: '\"12\"'.")
    return [dict(zip(given, one, strict=True)) for one in product(*given.values())]


def _inside(name: str, value: Any, key: str, path: str) -> Any:
    """Return what a path leads to in the value of its beginning, ``key``."""
    for part in path.removeprefix(f"{key}.").split("."):
        if not isinstance(value, Mapping) or part not in value:
            raise UsageError(f"{name}: {key} has no {path.removeprefix(f'{key}.')}; its key has {path}.")
        value = value[part]
    return value


def _read(word: str, kind: str) -> tuple[Any, ...]:
    """Return the values that a word may mean, the likelier first.

    Args:
        word: The word.
        kind: The JSON type of the value; empty if it is not known.

    >>> _read("7", ""), _read("7", "string"), _read("1e3", ""), _read("007", ""), _read('"7"', "")
    ((7, '7'), ('7', 7), ('1e3',), ('007',), ('7',))
    """
    try:
        value = msgspec.json.decode(word)
    except ValueError:
        return (word,)
    if word.startswith(_JSON):
        return (value,)
    if _NUMBER.fullmatch(word):
        return (word, value) if kind == "string" else (value, word)
    if json.dumps(value) != word:
        return (word,)
    # Such as 1.5 and true: a text, but a tool may have been called with the value.
    return (word, value) if kind in ("", "string") else (value, word)


def _type(engine: Engine, name: str, key: str) -> str:
    """Return the JSON type of a value of a key; empty if it is not known.

    It is declared with a tool, or seen in the latest acts: a text in a call of a tool, and a text that could
    be a number, show that the value is a text.
    """
    for source in engine.config.director.tools:
        if source.name == name and (declared := source.parameters.get(key)):
            kind = declared if isinstance(declared, str) else declared.get("type")
            return kind if isinstance(kind, str) else ""
    for value, by_tool in _seen(engine, name, key):
        if isinstance(value, int | float):
            return ""
        if isinstance(value, str) and (by_tool or _NUMBER.fullmatch(value)):
            return "string"
    return ""


def _seen(engine: Engine, name: str, key: str) -> Iterator[tuple[Any, bool]]:
    """Yield the values of a key in the latest acts of a name, and whether a tool was called with each."""
    for call in unsettled(engine.log.state):
        if call.tool == name:
            for act in engine.acts.begun_by(call)[:1]:
                yield act.key.get(key), not call.call_id.startswith(BY_COMMAND)
    latest: list[ActRecord] = engine.acts.read(
        engine.log.state,
        lambda acts: list(islice(acts.within(name, acts.names.get(name, {})), _LOOKED_AT)),
    )
    for one in latest:
        event = event_at(engine.log, one.seq)
        call_id = getattr(event.data, "call_id", "") if event is not None else ""
        yield engine.acts.key(one.key).get(key), bool(call_id) and not call_id.startswith(BY_COMMAND)


def _latest_key(engine: Engine, name: str) -> dict[str, Any]:
    """Return the key of a call with unknown outcome, or of the latest act, of a name."""
    for call in unsettled(engine.log.state):
        if call.tool == name and (begun := engine.acts.begun_by(call)):
            return begun[0].key
    found: tuple[str, ActRecord] | None = engine.acts.read(engine.log.state, lambda acts: acts.latest(name))
    return engine.acts.key(found[1].key) if found else {}
