"""What is wrong with a pipeline's file, and the line that it stands in."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import islice

import msgspec

from agentx.storage.errors import UsageError

Place = tuple[str | int, ...]
"""Where something stands in the file: keys, and numbers in lists."""

_MOST = 20
"""More faults than this are counted, not told."""

_LISTED = 12


class Fault(msgspec.Struct, frozen=True):
    """Something that is wrong with a pipeline's file.

    Attributes:
        line: From 1; 0 where it is no one line.
        place: The keys down to it, like ``roles.writer.reads[0]``.
        what: What is wrong, and what to do.
    """

    line: int
    place: str
    what: str


class PipelineInvalid(UsageError):
    """A pipeline's file cannot be read, or says what no pipeline can be.

    Attributes:
        faults: All that were found, in the order of their lines.
    """

    def __init__(self, path: str, faults: Sequence[Fault]) -> None:
        self.faults = tuple(sorted(faults, key=lambda fault: fault.line))
        lines = [
            f"{path}{f', line {fault.line}' if fault.line else ''}: {f'{fault.place}: ' if fault.place else ''}{fault.what}"
            for fault in self.faults[:_MOST]
        ]
        more = len(self.faults) - _MOST
        super().__init__("\n".join(lines) + (f"\n{path}: … and {more:,} more." if more > 0 else ""))


class Source(msgspec.Struct, frozen=True):
    """A pipeline's file as it was read.

    Attributes:
        path: As the user named it.
        text: What it says.
        lines: The line of each place.
    """

    path: str
    text: str
    lines: dict[Place, int]

    def fault(self, place: Place, what: str) -> Fault:
        """A fault at a place, in the line of the nearest one above it that the file has."""
        at = place
        while at and at not in self.lines:
            at = at[:-1]
        return Fault(self.lines.get(at, 0), told(place), what)


class Faults:
    """Gathers what is wrong, each thing once."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.found: list[Fault] = []
        self._said: set[tuple[int, str]] = set()

    def add(self, place: Place, what: str, line: int = 0) -> None:
        """Note a fault at a place, or in a line of its own."""
        fault = self.source.fault(place, what if what.endswith("?") else f"{what.rstrip('.')}.")
        fault = msgspec.structs.replace(fault, line=line or fault.line)
        if (fault.line, fault.what) not in self._said:
            self._said.add((fault.line, fault.what))
            self.found.append(fault)

    def stop(self) -> None:
        """Refuse the pipeline where anything is wrong so far.

        Raises:
            PipelineInvalid: Something is.
        """
        if self.found:
            raise PipelineInvalid(self.source.path, self.found)


def told(place: Place) -> str:
    """A place in words.

    >>> told(("roles", "writer", "reads", 0))
    'roles.writer.reads[0]'
    """
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")


def hint(name: str, known: Iterable[str]) -> str:
    """What may have been meant by a name that there is not, as the end of a sentence.

    >>> hint("writr", ["researcher", "writer"]), hint("x", ["a", "b"])
    ('; is it writer?', '; there is a, b')
    """
    names = list(dict.fromkeys(known))
    if near := get_close_matches(name, names, 1):
        return f"; is it {near[0]}?"
    more = ", …" if len(names) > _LISTED else ""
    return f"; there is {', '.join(islice(names, _LISTED))}{more}" if names else ""
