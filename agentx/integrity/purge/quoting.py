"""Where else the words of what is purged stand: a run of twenty characters or more that is nothing usual.

The words are cut into pieces of ten characters, and of another text every tenth piece is looked up, so that a run of
twenty is not missed and a long history costs little. What also stands in a file that one of the purged events wrote,
as it is now, is usual: whoever purges has taken out of it what must go.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from agentx.storage.events.types import Event, Payload, changes_of
from agentx.storage.log.blobs import named_blobs

RUN = 20
"""Characters."""

USUAL = 100
"""What stands in more events than so many is usual."""

LONGEST = 1 << 20
"""Characters of one text that are looked at."""

_PIECE = RUN // 2
_STRUCTURE = {"tool", "call_id", "model", "agent", "path", "blob", "before", "after", "noticed", "status"}
_STRUCTURE |= {"extractor", "id", "kind", "trust", "links", "denied_by", "digest", "manifest_hash", "source"}
"""Fields that name things."""

ReadBlob = Callable[[str], str]
"""The text of a blob of the log or of a file; empty where it is none."""


class Quoting(msgspec.Struct, frozen=True):
    """An event that says what is purged, too.

    Attributes:
        seq: The event.
        type: Of its payload.
        quote: What it says, in part.
    """

    seq: int
    type: str
    quote: str


class Words:
    """The words of what is purged.

    Args:
        texts: They.
        usual: Texts whose words are usual.
    """

    def __init__(self, texts: Iterable[str], usual: Iterable[str]) -> None:
        self._pieces = {piece for text in texts for piece in _pieces(text)}
        for text in usual:
            self._pieces.difference_update(_pieces(text))

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def find(self, text: str) -> str:
        """The first run of them in a text; empty where there is none."""
        pieces, text = self._pieces, text[:LONGEST]
        for start in range(0, len(text) - _PIECE + 1, _PIECE):
            if text[start : start + _PIECE] in pieces:
                first, last = self._grow(text, start)
                if last - first >= RUN:
                    return text[first:last]
        return ""

    def _grow(self, text: str, start: int) -> tuple[int, int]:
        pieces, first, last = self._pieces, start, start + _PIECE
        while first > 0 and text[first - 1 : first - 1 + _PIECE] in pieces:
            first -= 1
        while last < len(text) and text[last + 1 - _PIECE : last + 1] in pieces:
            last += 1
        return first, last


def _pieces(text: str) -> Iterator[str]:
    text = text[:LONGEST]
    return (
        piece
        for start in range(len(text) - _PIECE + 1)
        if len(set(piece := text[start : start + _PIECE])) > 3  # noqa: PLR2004 - a ruler, an indent
    )


def texts_of(payload: Payload) -> Iterator[str]:
    """What a payload says, without what it names."""
    yield from strings(msgspec.to_builtins(payload))


def strings(value: Any) -> Iterator[str]:
    """The texts in a value of JSON, but for those that name things."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name not in _STRUCTURE:
                yield from strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from strings(inner)


def all_texts(event: Event, read: ReadBlob) -> Iterator[str]:
    """What an event says, the long texts and contents that it names included."""
    yield from texts_of(event.data)
    for oid in named_blobs(event.data):
        yield read(oid)
    for made in changes_of(event):
        if made.after and made.size_bytes <= LONGEST:
            yield read(made.after)


def find(words: Words, events: Iterable[Event], read: ReadBlob) -> list[Quoting]:
    """The events that say the same, oldest first; what very many say is left out."""
    found: dict[str, list[Quoting]] = {}
    looked: dict[str, str] = {}

    def once(oid: str) -> str:
        """A blob is looked through once; what is found in it stands for it."""
        if oid not in looked:
            looked[oid] = words.find(read(oid))
        return looked[oid]

    for event in events:
        quote = next(filter(None, map(words.find, all_texts(event, once))), "")
        if quote:
            found.setdefault(quote, []).append(Quoting(event.seq, event.type, quote[:200]))
    rare = [one for some in found.values() if len(some) <= USUAL for one in some]
    return sorted(rare, key=lambda one: one.seq)
