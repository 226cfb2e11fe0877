"""Parse texts that grow at their end section by section, reading only the new part.

A file of the long-term memory grows by a section with every item, and is checked for each. Without this, the
work for an item would grow with the number of items before it.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

import msgspec

from agentx.synthesis.pipelines.proving.markdown import Section, sections

_KEPT = 16
"""Number of cached texts: those of several pipelines, and versions that threads are still reading."""

T = TypeVar("T")


class _Settled(msgspec.Struct, Generic[T], frozen=True):
    """A text up to and including its last heading. Nothing appended later can change its meaning.

    Attributes:
        start: Where the heading begins, in characters. ``lines`` is the number of lines before it.
        found: The contents of the sections before it.
        above: The enclosing headings, as lines.
    """

    text: str
    start: int
    lines: int
    found: tuple[T, ...]
    above: tuple[str, ...]


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """An element of a section.

    Attributes:
        line: Line in its section; after :func:`placed`, in the complete text.
        under: The enclosing headings.
    """

    line: int
    under: tuple[str, ...] = ()


_Placed = TypeVar("_Placed", bound=Placed)


def placed(found: Iterable[_Placed], section: Section) -> Iterator[_Placed]:
    """Yield the elements of a section, with their lines in the complete text."""
    for one in found:
        yield msgspec.structs.replace(one, line=section.first + one.line, under=section.above)


class Growing(Generic[T]):
    """Parses texts section by section; thread-safe.

    Args:
        read: Returns the elements of one section.
    """

    def __init__(self, read: Callable[[Section], Iterable[T]]) -> None:
        self._read = read
        self._known: deque[_Settled[T]] = deque(maxlen=_KEPT)
        self._lock = threading.Lock()

    def of(self, text: str) -> tuple[T, ...]:
        """Return the elements of all sections of a text, in order."""
        with self._lock:
            known = [one for one in self._known if text.startswith(one.text)]
        before = max(known, key=lambda one: one.lines, default=None)
        above, start, lines = (before.above, before.start, before.lines) if before else ((), 0, 0)
        behind = "".join(above) + text[start:]
        made = list(sections(behind))
        fresh = [_moved(one, lines - len(above)) for one in made[len(above) + 1 if before else 0 :]]
        found = list(before.found) if before else []
        for section in fresh[:-1]:
            found += self._read(section)
        if _is_settled(fresh[-1], text):
            *_, heading, rest = behind.split("\n", made[-1].line)
            end = len(text) - len(rest)
            start = end - len(heading) - 1
            with self._lock:
                self._known.append(
                    _Settled(text[:end], start, fresh[-1].line - 1, tuple(found), _above(made))
                )
        return (*found, *self._read(fresh[-1]))


def _moved(section: Section, lines: int) -> Section:
    return msgspec.structs.replace(section, line=section.line + lines, first=section.first + lines)


def _is_settled(last: Section, text: str) -> bool:
    """Return whether the last heading remains one, whatever follows.

    It must be on its own, finished line, outside front matter.
    """
    plain = "\r" not in text and not text.startswith(("---", "\ufeff"))
    return plain and last.line > 0 and last.first == last.line + 1 and bool(last.own)


def _above(made: Iterable[Section]) -> tuple[str, ...]:
    """Return the headings that enclose the last section."""
    found: list[Section] = []
    for section in made:
        found = [one for one in found if 0 < one.level < section.level] + [section]
    return tuple(f"{'#' * one.level} {one.title} #\n" for one in found[:-1])
