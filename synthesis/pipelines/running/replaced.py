"""Which lines of a file of the long-term memory hold no more: those that a later entry of the same stage came in place of.

Such a file only ever grows, so a stage that is done again adds what holds now behind the end, with a line that says which lines it
replaces. That line is a comment, which no text that the engine adds for an agent can forge: comments of theirs are no comments
there. Only who may write such a file themselves, a person or a role that has it among its writes, can write one.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from hashlib import blake2b
from itertools import chain, islice

import msgspec

from agentx.synthesis.chunking.headings import fenced
from agentx.synthesis.pipelines.proving.markdown import entries, lines_of

_SAYS = "<!-- In place of line"
_NOTE = re.compile(r"<!-- In place of lines? (\d{1,9})(?:-(\d{1,9}))? \(([0-9a-f]{8})\) -->")

_FENCE = re.compile(r"`{3}|~{3}")

_HEADING = re.compile(r"##?(?: |$)")
"""Of an item, or of the whole file."""


def note(lines: Sequence[str], place: range) -> str:
    """The line which says that what follows came in place of earlier lines.

    Args:
        lines: Of the file.
        place: Indices of those that hold no more, from 0.
    """
    return f"<!-- In place of {_named(place)} ({_digest(lines, place)}) -->"


@lru_cache(maxsize=16)
def in_force(text: str) -> str:
    r"""A file of the long-term memory without what holds no more; lines keep their numbers.

    >>> lines = ["- **posting**: a record"]
    >>> in_force("\n".join([*lines, note(lines, range(1)), "- **posting**: one side of an entry"])).splitlines()[0]
    '[line 1 was replaced: see below]'
    """
    if _SAYS not in text:
        return text
    lines = lines_of(text)
    for place in replaced(lines):
        lines[place.start : place.stop] = ["" for _ in place]
        if not (place.start and lines[place.start - 1].strip()):  # or it would go on with what stands there
            lines[place.start] = (
                f"[{_named(place)} {'was' if len(place) == 1 else 'were'} replaced: see below]"
            )
    return "\n".join(lines)


def replaced(lines: Sequence[str]) -> list[range]:
    """The lines of a file that hold no more, by their indices from 0."""
    places: list[range] = []
    if _SAYS not in "\n".join(lines):
        return places
    for number, (line, code) in enumerate(zip(lines, fenced(lines), strict=True)):
        if not code and (said := _NOTE.fullmatch(line.strip())):
            first = int(said[1]) - 1
            place = range(first, int(said[2] or said[1]))
            # a person who amended the file may have moved them
            moved = (range(n, n + len(place)) for n in range(number - len(place), -1, -1))
            found = (one for one in chain((place,), moved) if one and _digest(lines, one) == said[3])
            places += islice(found, 1)
    return places


class Added(msgspec.Struct, frozen=True):
    """A text that was added to a file, and the line that it went on from, by its index from 0."""

    line: int
    text: str


def places_of(lines: Sequence[str], added: Sequence[Added]) -> list[range]:
    """Where texts that were added to a file stand in it and still hold, by indices from 0; what a person changed is their own.

    Args:
        lines: Of the file.
        added: The texts, as they were added, in order.
    """
    gone = {n for place in replaced(lines) for n in place}
    found: list[range] = []
    for one in reversed(added):
        told = lines_of(one.text)
        whole = _stripped(told)
        begin = one.line + next((n for n, line in enumerate(told) if line.strip()), 0)
        place = range(begin, begin + len(whole))
        if list(lines[begin : place.stop]) != whole:  # a person who amended the file moved it
            place = _find(lines, whole, gone) or _find(lines, whole, frozenset())
        if place:  # or it was replaced before
            parts = [_headless(lines, _opened(lines, place), gone)] if gone.isdisjoint(place) else []
        else:
            parts = [
                _find(lines, entry.lines, gone)
                for entry in entries(whole)
                if not _HEADING.match(entry.lines[0])
            ]
        found += [part for part in parts if part]
        gone.update(n for part in parts for n in part)
    return sorted(found, key=lambda part: part.start)


def without(lines: Sequence[str], places: Collection[range]) -> list[str]:
    """Lines in which those of some places are blank."""
    kept = list(lines)
    for place in places:
        kept[place.start : place.stop] = [""] * len(place)
    return kept


def holds(lines: Sequence[str], places: Collection[range]) -> Iterator[str]:
    """The lines of some places that say something, notes aside."""
    return (lines[n] for place in places for n in place if lines[n].strip() and _SAYS not in lines[n])


def _find(lines: Sequence[str], wanted: Sequence[str], gone: AbstractSet[int]) -> range:
    """The last place where some lines stand; an empty range where they do not."""
    for start in range(len(lines) - len(wanted), -1, -1) if wanted else ():
        place = range(start, start + len(wanted))
        if (
            lines[start] == wanted[0]
            and list(lines[start : place.stop]) == list(wanted)
            and gone.isdisjoint(place)
        ):
            return place
    return range(0)


def open_at_end(lines: Sequence[str]) -> str:
    """The fence of a block of code that is open behind the last line; empty for none."""
    *_, fence = fenced([*lines, ""])
    return fence


def _opened(lines: Sequence[str], place: range) -> range:
    """A place without the fence that it begins with where that closed what stands before it, and has to stay."""
    if not (_FENCE.match(lines[place.start]) and open_at_end(lines[: place.start])):
        return place
    said = [n for n in place[1:] if lines[n].strip()]
    return range(said[0], place.stop) if said else range(0)


def _headless(lines: Sequence[str], place: range, gone: AbstractSet[int]) -> range:
    """A place without its heading where something that another stage added stands under that, too."""
    behind = (
        line for n, line in enumerate(lines[place.stop :], place.stop) if n not in gone and line.strip()
    )
    if not place or not _HEADING.match(lines[place.start]) or _HEADING.match(next(behind, "# ")):
        return place
    said = [n for n in place[1:] if lines[n].strip()]
    return range(said[0], place.stop) if said else range(0)


def _stripped(lines: Sequence[str]) -> list[str]:
    said = [n for n, line in enumerate(lines) if line.strip()]
    return list(lines[said[0] : said[-1] + 1]) if said else []


def _named(place: range) -> str:
    return f"line {place.start + 1}" if len(place) == 1 else f"lines {place.start + 1}-{place.stop}"


def _digest(lines: Sequence[str], place: range) -> str:
    return blake2b("\n".join(lines[place.start : place.stop]).encode(), digest_size=4).hexdigest()
