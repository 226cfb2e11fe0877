"""Parts of events, bounded and without secrets: an event fits into its line whatever a transcript holds."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from agentx.importing.lines import as_json
from agentx.storage.events.types import FileChange
from agentx.storage.secrets.redaction import clean, clean_value
from agentx.storage.text import plain

NAME = 120
"""Maximum bytes of a name: of a tool, a call, a session, a type of records."""

COMMAND_BYTES = 1_500
"""Maximum bytes of a command line in JSON."""

_LABEL = 80
_NESTED = 100
"""Maximum number of characters of a list or an object among the arguments; a longer one becomes text."""

_LARGE = 1 << 53
_ARGUMENT_BYTES, _ARGUMENTS_BYTES, _CHANGES_BYTES = 400, 3_000, 2_000
"""Bounds of the JSON of parts of an event, which with a body of 6,000 bytes fit into its line."""


def digest(text: str) -> str:
    """Return a short digest of a text."""
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def labelled(text: str) -> str:
    """Return a name as the event of a whole file holds it: many of them fit into its line."""
    return plain(clean(text))[:_LABEL]


def short(text: str) -> str:
    """Return a name as an event holds it: a long or odd one with a digest in place of its end."""
    if len(text) <= NAME and text.isprintable() and len(text.encode("utf-8", "replace")) <= NAME:
        return text
    return f"{cut(plain(clean(text)), NAME - 20)}…{digest(text)}"


def bounded(arguments: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return arguments as an event holds them, and whether anything of them was cut."""
    kept: dict[str, Any] = {}
    shortened, room = False, _ARGUMENTS_BYTES
    for name, value in arguments.items():
        held, less = _held(value)
        room -= len(msgspec.json.encode((short(clean(name)), held)))
        if room < 0:
            return kept, True
        kept[short(clean(name))] = held
        shortened = shortened or less or len(name) > NAME
    return kept, shortened


def _held(value: Any) -> tuple[Any, bool]:
    """Return an argument as an event holds it, and whether it was cut: what is long or odd becomes text."""
    if value is None or isinstance(value, bool):
        return value, False
    if isinstance(value, int | float):
        digits = "" if abs(value) < _LARGE else as_json(value)
        return (digits[:NAME], len(digits) > NAME) if digits else (value, False)
    text = clean(value if isinstance(value, str) else as_json(value))
    if not isinstance(value, str) and len(text) <= _NESTED:
        try:
            return msgspec.json.decode(msgspec.json.encode(value)), False
        except (ValueError, OverflowError):
            return text, False
    part = cut(text, _ARGUMENT_BYTES)
    return (text, False) if part == text else (f"{part}… ({len(text):,} characters)", True)


def cut(text: str, most: int) -> str:
    """Return the start of a text whose JSON has at most so many bytes."""
    part = text[:most]
    while part and (size := len(msgspec.json.encode(part))) > most:
        part = part[: len(part) * most // (size + 1)]
    return part


def whole(arguments: dict[str, Any]) -> str:
    """Return arguments as JSON, without secrets."""
    try:
        return as_json(clean_value(arguments))
    except RecursionError:
        return clean(as_json(arguments))


def fitting(changes: Sequence[FileChange]) -> int:
    """Return how many changes fit into the event of their call, at least one if there are any."""
    room = _CHANGES_BYTES
    for number, made in enumerate(changes):
        room -= len(msgspec.json.encode(made))
        if room < 0:
            return max(number, 1)
    return len(changes)
