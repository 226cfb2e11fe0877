"""Find the lines of a long-term memory file that were replaced by a later entry of the same stage.

Such a file is append-only. A stage that is done again appends its new text with a note that names the lines
it replaces. The note is a comment. The engine disables comments in the text it adds for an agent, so an agent
cannot forge a note. Only those who write the file themselves can: the user, or a role that has it among its
writes.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from hashlib import blake2b
from itertools import chain, islice

import msgspec

from agentx.synthesis.chunking.headings import fenced
from agentx.synthesis.pipelines.proving.markdown import entries, lines_of, stripped

_SAYS = "<!-- In place of line"
_NOTE = re.compile(r"<!-- In place of lines? (\d{1,9})(?:-(\d{1,9}))? \(([0-9a-f]{8})\) -->")

_FENCE = re.compile(r"`{3}|~{3}")

_HEADING = re.compile(r"##?(?: |$)")
"""Matches the heading of an item, or of the whole file."""


def note(lines: Sequence[str], place: range) -> str:
    """Return the note that the following text replaces earlier lines.

    The indices in ``place`` count from 0.
    """
    return f"<!-- In place of {_named(place)} ({_digest(lines, place)}) -->"


@lru_cache(maxsize=16)
def in_force(text: str) -> str:
    r"""Return a long-term memory file without replaced text; line numbers are unchanged.

    >>> lines = ["- **posting**: a record"]
    >>> later = [*lines, note(lines, range(1)), "- **posting**: one side of an entry"]
    >>> in_force("\n".join(later)).splitlines()[0]
    '[line 1 was replaced: see below]'
    """
    if _SAYS not in text:
        return text
    lines = lines_of(text)
    for place in replaced(lines):
        lines[place.start : place.stop] = ["" for _ in place]
        # otherwise the notice would continue the text before it
        if not (place.start and lines[place.start - 1].strip()):
            were = "was" if len(place) == 1 else "were"
            lines[place.start] = f"[{_named(place)} {were} replaced: see below]"
    return "\n".join(lines)


def replaced(lines: Sequence[str]) -> list[range]:
    """Return the replaced lines of a file, by their indices from 0."""
    places: list[range] = []
    if _SAYS not in "\n".join(lines):
        return places
    for number, (line, code) in enumerate(zip(lines, fenced(lines), strict=True)):
        if not code and (said := _NOTE.fullmatch(line.strip())):
            first = int(said[1]) - 1
            place = range(first, int(said[2] or said[1]))
            # the user may have moved them
            moved = (range(n, n + len(place)) for n in range(number - len(place), -1, -1))
            found = (one for one in chain((place,), moved) if one and _digest(lines, one) == said[3])
            places += islice(found, 1)
    return places


class Added(msgspec.Struct, frozen=True):
    """A text that was added to a file, and the index of the line where it began, from 0."""

    line: int
    text: str


def places_of(lines: Sequence[str], added: Sequence[Added]) -> list[range]:
    """Return the indices, from 0, of earlier additions that still hold.

    Lines that the user changed are theirs, and excluded.

    Args:
        lines: The lines of the file.
        added: The texts as they were added, in order.
    """
    gone = {n for place in replaced(lines) for n in place}
    found: list[range] = []
    for one in reversed(added):
        told = lines_of(one.text)
        whole = stripped(told)
        begin = one.line + next((n for n, line in enumerate(told) if line.strip()), 0)
        place = range(begin, begin + len(whole))
        if list(lines[begin : place.stop]) != whole:  # the user moved it
            place = _find(lines, whole, gone) or _find(lines, whole, frozenset())
        if place:  # otherwise it was replaced before
            parts = [_headless(lines, _opened(lines, place), gone)] if gone.isdisjoint(place) else []
        else:
            each = (entry.lines for entry in entries(whole) if not _HEADING.match(entry.lines[0]))
            parts = [_find(lines, own, gone) for own in each]
        found += [part for part in parts if part]
        gone.update(n for part in parts for n in part)
    return sorted(found, key=lambda part: part.start)


def without(lines: Sequence[str], places: Collection[range]) -> list[str]:
    """Return the lines, with those of some places blanked."""
    kept = list(lines)
    for place in places:
        kept[place.start : place.stop] = [""] * len(place)
    return kept


def holds(lines: Sequence[str], places: Collection[range]) -> Iterator[str]:
    """Return the non-blank lines of some places, without notes."""
    return (lines[n] for place in places for n in place if lines[n].strip() and _SAYS not in lines[n])


def _find(lines: Sequence[str], wanted: Sequence[str], gone: AbstractSet[int]) -> range:
    """Return the last place where some lines occur; an empty range if they do not."""
    for start in range(len(lines) - len(wanted), -1, -1) if wanted else ():
        place = range(start, start + len(wanted))
        same = lines[start] == wanted[0] and list(lines[start : place.stop]) == list(wanted)
        if same and gone.isdisjoint(place):
            return place
    return range(0)


def open_at_end(lines: Sequence[str]) -> str:
    """Return the fence of the code block that is open after the last line; empty for none."""
    *_, fence = fenced([*lines, ""])
    return fence


def _opened(lines: Sequence[str], place: range) -> range:
    """Return a place without its leading fence, if that closes a block before it and must stay."""
    closes = _FENCE.match(lines[place.start]) and open_at_end(lines[: place.start])
    return _without_first(lines, place) if closes else place


def _headless(lines: Sequence[str], place: range, gone: AbstractSet[int]) -> range:
    """Return a place without its heading, if another stage's addition is also under that heading."""
    behind = (
        line for n, line in enumerate(lines[place.stop :], place.stop) if n not in gone and line.strip()
    )
    if not place or not _HEADING.match(lines[place.start]) or _HEADING.match(next(behind, "# ")):
        return place
    return _without_first(lines, place)


def _without_first(lines: Sequence[str], place: range) -> range:
    return next((range(n, place.stop) for n in place[1:] if lines[n].strip()), range(0))


def _named(place: range) -> str:
    return f"line {place.start + 1}" if len(place) == 1 else f"lines {place.start + 1}-{place.stop}"


def _digest(lines: Sequence[str], place: range) -> str:
    return blake2b("\n".join(lines[place.start : place.stop]).encode(), digest_size=4).hexdigest()
