"""What the sections of a text hold that grows behind its end: of each text only what is new in it is read.

A file of the long-term memory grows by a section with every item and is looked at for each, so the work for an item would grow with
the number of those before it.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

import msgspec

from agentx.synthesis.pipelines.proving.markdown import Section, sections

_KEPT = 16
"""Texts that are remembered: those of several pipelines, and versions that threads still look at."""

T = TypeVar("T")


class _Settled(msgspec.Struct, Generic[T], frozen=True):
    """A text up to its last heading, that too: nothing that comes behind it makes it mean anything else.

    Attributes:
        start: Where the heading begins, in characters, and ``lines`` the lines before it.
        found: What the sections before it hold.
        above: The headings that it stands under, as lines.
    """

    text: str
    start: int
    lines: int
    found: tuple[T, ...]
    above: tuple[str, ...]


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a section holds.

    Attributes:
        line: Of its section; as :func:`placed` gives it, of the whole text.
        under: The headings that it stands under.
    """

    line: int
    under: tuple[str, ...] = ()


_Placed = TypeVar("_Placed", bound=Placed)


def placed(found: Iterable[_Placed], section: Section) -> Iterator[_Placed]:
    """What a section holds, where it stands in the whole text."""
    for one in found:
        yield msgspec.structs.replace(one, line=section.first + one.line, under=section.above)


class Growing(Generic[T]):
    """Reads texts section by section; safe to share between threads.

    Args:
        read: What one section holds.
    """

    def __init__(self, read: Callable[[Section], Iterable[T]]) -> None:
        self._read = read
        self._known: deque[_Settled[T]] = deque(maxlen=_KEPT)
        self._lock = threading.Lock()

    def of(self, text: str) -> tuple[T, ...]:
        """What all sections of a text hold, in order."""
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
    """Whether the last heading stays one whatever comes behind: it is a line of its own that has ended, in no front matter."""
    plain = "\r" not in text and not text.startswith(("---", "\ufeff"))
    return plain and last.line > 0 and last.first == last.line + 1 and bool(last.own)


def _above(made: Iterable[Section]) -> tuple[str, ...]:
    """The headings that the last section stands under."""
    found: list[Section] = []
    for section in made:
        found = [one for one in found if 0 < one.level < section.level] + [section]
    return tuple(f"{'#' * one.level} {one.title} #\n" for one in found[:-1])
