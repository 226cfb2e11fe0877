"""Faults in a pipeline's file, with their line numbers."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import islice

import msgspec

from agentx.storage.errors import UsageError

Place = tuple[str | int, ...]
"""A place in the file: keys, and indexes in lists."""

_MOST = 20
"""Maximum number of faults shown; further ones are counted."""

_LISTED = 12


class Fault(msgspec.Struct, frozen=True):
    """A fault in a pipeline's file.

    Attributes:
        line: From 1; 0 if it has no single line.
        place: The keys down to it, like ``roles.writer.reads[0]``.
        what: What is wrong, and what to do.
    """

    line: int
    place: str
    what: str


class PipelineInvalid(UsageError):
    """A pipeline's file cannot be read, or does not describe a valid pipeline.

    Attributes:
        faults: All faults found, in the order of their lines.
    """

    def __init__(self, path: str, faults: Sequence[Fault]) -> None:
        self.faults = tuple(sorted(faults, key=lambda fault: fault.line))
        lines: list[str] = []
        for fault in self.faults[:_MOST]:
            where = f"{path}, line {fault.line}: " if fault.line else f"{path}: "
            lines.append(f"{where}{f'{fault.place}: ' if fault.place else ''}{fault.what}")
        more = len(self.faults) - _MOST
        super().__init__("\n".join(lines) + (f"\n{path}: … and {more:,} more." if more > 0 else ""))


class Source(msgspec.Struct, frozen=True):
    """A pipeline's file as it was read.

    Attributes:
        path: The path as the user gave it.
        text: The contents.
        lines: The line of each place.
    """

    path: str
    text: str
    lines: dict[Place, int]

    def fault(self, place: Place, what: str) -> Fault:
        """Return a fault at a place, with the line of the place or its nearest ancestor in the file."""
        at = place
        while at and at not in self.lines:
            at = at[:-1]
        return Fault(self.lines.get(at, 0), told(place), what)


class Faults:
    """Collects faults, without duplicates."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.found: list[Fault] = []
        self._said: set[tuple[int, str]] = set()

    def add(self, place: Place, what: str, line: int = 0) -> None:
        """Record a fault at a place, or at a given line."""
        fault = self.source.fault(place, what if what.endswith("?") else f"{what.rstrip('.')}.")
        fault = msgspec.structs.replace(fault, line=line or fault.line)
        if (fault.line, fault.what) not in self._said:
            self._said.add((fault.line, fault.what))
            self.found.append(fault)

    def stop(self) -> None:
        """Reject the pipeline if there are faults so far.

        Raises:
            PipelineInvalid: There are.
        """
        if self.found:
            raise PipelineInvalid(self.source.path, self.found)


def told(place: Place) -> str:
    """Format a place.

    >>> told(("roles", "writer", "reads", 0))
    'roles.writer.reads[0]'
    """
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")


def hint(name: str, known: Iterable[str]) -> str:
    """Return suggestions for an unknown name, as the end of a sentence.

    >>> hint("writr", ["researcher", "writer"]), hint("x", ["a", "b"])
    ('; did you mean writer?', '; known: a, b')
    """
    names = list(dict.fromkeys(known))
    if near := get_close_matches(name, names, 1):
        return f"; did you mean {near[0]}?"
    more = ", …" if len(names) > _LISTED else ""
    return f"; known: {', '.join(islice(names, _LISTED))}{more}" if names else ""
