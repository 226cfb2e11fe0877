"""Find quotes of purged text elsewhere: runs of at least twenty characters that are not common.

The text is cut into pieces of ten characters. In another text, every tenth piece is looked up. So no run of
twenty is missed, and a long history costs little. Text in the current content of a file that a purged event
wrote counts as common, because the user has already removed from that file what must go.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from agentx.storage.events.types import Event, changes_of
from agentx.storage.log.blobs import named_blobs

RUN = 20
"""Minimum length of a quote, in characters."""

USUAL = 100
"""A quote in more events than this is common."""

LONGEST = 1 << 20
"""Maximum number of characters searched per text."""

_PIECE = RUN // 2
_STRUCTURE = {"tool", "call_id", "model", "agent", "path", "blob", "before", "after", "noticed", "status"}
_STRUCTURE |= {"extractor", "id", "kind", "trust", "links", "denied_by", "digest", "manifest_hash", "source"}
"""Fields that hold names, not content."""

ReadBlob = Callable[[str], str]
"""Returns the text of a blob of the log or of a file; empty if it is not text."""


class Quoting(msgspec.Struct, frozen=True):
    """An event that repeats purged text.

    Attributes:
        seq: The event.
        type: The type of its payload.
        quote: The repeated part.
    """

    seq: int
    type: str
    quote: str


class QuotedText:
    """The text to purge, indexed by pieces, without the pieces that are usual."""

    def __init__(self, texts: Iterable[str], usual: Iterable[str]) -> None:
        self._pieces = {piece for text in texts for piece in _pieces(text)}
        for text in usual:
            self._pieces.difference_update(_pieces(text))

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def find(self, text: str) -> str:
        """Return the first quote in a text; empty if there is none."""
        pieces, text = self._pieces, text[:LONGEST]
        for start in range(0, len(text) - _PIECE + 1, _PIECE):
            if text[start : start + _PIECE] not in pieces:
                continue
            first, last = start, start + _PIECE
            while first > 0 and text[first - 1 : first - 1 + _PIECE] in pieces:
                first -= 1
            while last < len(text) and text[last + 1 - _PIECE : last + 1] in pieces:
                last += 1
            if last - first >= RUN:
                return text[first:last]
        return ""


def _pieces(text: str) -> Iterator[str]:
    text = text[:LONGEST]
    return (
        piece
        for start in range(len(text) - _PIECE + 1)
        if len(set(piece := text[start : start + _PIECE])) > 3  # noqa: PLR2004 - a ruler, an indent
    )


def strings(value: Any) -> Iterator[str]:
    """Yield the strings in a JSON value, without names."""
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
    """Yield the content of an event, including the long texts and files that it names."""
    yield from strings(msgspec.to_builtins(event.data))
    for oid in named_blobs(event.data):
        yield read(oid)
    for change in changes_of(event):
        if change.after and change.size_bytes <= LONGEST:
            yield read(change.after)


def find(words: QuotedText, events: Iterable[Event], read: ReadBlob) -> list[Quoting]:
    """Return the events that repeat the text, oldest first; quotes in very many events are left out."""
    found: dict[str, list[Quoting]] = {}
    looked: dict[str, str] = {}

    def once(oid: str) -> str:
        """Search each blob once; the quote found in it is used in place of its text."""
        if oid not in looked:
            looked[oid] = words.find(read(oid))
        return looked[oid]

    for event in events:
        quote = next(filter(None, map(words.find, all_texts(event, once))), "")
        if quote:
            found.setdefault(quote, []).append(Quoting(event.seq, event.type, quote[:200]))
    rare = [one for some in found.values() if len(some) <= USUAL for one in some]
    return sorted(rare, key=lambda one: one.seq)
