"""Split conversation turns into pieces that are found by their words, the question before, and the date."""

import re
from contextlib import suppress
from datetime import datetime

import msgspec

from agentx.storage.text import encodable
from agentx.synthesis.chunking.pieces import Block, Piece, pack

PREVIOUS_CHARACTERS = 240
"""Maximum characters of the previous turn's questions; their end is kept."""

READ_BEFORE_CHARACTERS = 4_000
"""Number of last characters of the previous turn that are searched for questions."""

MESSAGE_LINE_BYTES = 4_000_000
"""Bytes that are read of one line of a message."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


def chunk_message(text: str, previous: str = "", at: str = "", actor: str = "") -> list[Piece]:
    """Split a turn into pieces, each with the context that search needs to find it.

    Only the questions of the previous turn go into the context. "Two weeks." means little without them, while
    the rest of that turn is found in its own pieces. A turn of several pieces gets no questions: it is clear
    without them, and the questions would make all of its pieces look like the previous turn.

    Args:
        text: The turn.
        previous: The previous turn; empty for the first turn.
        at: Time of the turn, ISO 8601; left out if it cannot be parsed.
        actor: The author: ``user``, ``user:Ann``, ``agent:writer``.

    >>> asked = "How long were you in Rome?"
    >>> chunk_message("Two weeks.", asked, "2026-11-20T09:31:05Z", "user:Ann")[0].context
    'Friday, 20 November 2026 Ann How long were you in Rome?'
    """
    lines = encodable(text).replace("\0", "\ufffd").split("\n")
    pieces = list(pack(lines, iter([Block(0, len(lines))]), overlap=False, line_bytes=MESSAGE_LINE_BYTES))
    asked = ""
    if len(pieces) == 1:
        before = _SENTENCE_END.split(encodable(previous[-READ_BEFORE_CHARACTERS:]))
        sentences = (" ".join(sentence.split()) for sentence in before)
        questions = " ".join(sentence for sentence in sentences if sentence.endswith("?"))
        asked = questions[-PREVIOUS_CHARACTERS:].strip()
    date = ""
    with suppress(ValueError):
        moment = datetime.fromisoformat(at)
        date = f"{_DAYS[moment.weekday()]}, {moment.day} {_MONTHS[moment.month - 1]} {moment.year}"
    context = " ".join(part for part in (date, actor.rpartition(":")[2], asked) if part)
    return [msgspec.structs.replace(p, context=context, start_line=0, end_line=0) for p in pieces]


# The words of the C locale: strftime would use the machine's locale, but the same history must give the same
# pieces everywhere.
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
