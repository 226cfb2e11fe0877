"""Turns of a conversation in pieces: a turn is found by its own words, by the question it answers, and by its date."""

import re
from datetime import datetime

import msgspec

from agentx.storage.text import encodable
from agentx.synthesis.chunking.pieces import Block, Piece, pack

PREVIOUS_CHARACTERS = 240
"""What is kept of the questions of the turn before: their end."""

READ_BEFORE_CHARACTERS = 4_000
"""What is looked through of the turn before, from its end."""

MESSAGE_LINE_BYTES = 4_000_000
"""What is taken of one line of a message."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


def chunk_message(text: str, previous: str = "", at: str = "", actor: str = "") -> list[Piece]:
    """Cut a turn into pieces, each with the context that it needs to be found.

    Of the turn before, only its questions: "Two weeks." says little without them, while what else was said there is
    found where it was said. A turn of several pieces speaks for itself, and the question would make all of them look
    like the turn that asked it.

    Args:
        text: What was said.
        previous: What was said just before; empty for the first turn.
        at: When, ISO 8601; left out where it cannot be read.
        actor: Who said it: ``user``, ``user:Ann``, ``agent:writer``.

    >>> chunk_message("Two weeks.", "How long were you in Rome?", "2026-11-20T09:31:05Z", "user:Ann")[0].context
    'Friday, 20 November 2026 Ann How long were you in Rome?'
    """
    lines = encodable(text).replace("\0", "\ufffd").split("\n")
    pieces = list(pack(lines, iter([Block(0, len(lines))]), overlap=False, line_bytes=MESSAGE_LINE_BYTES))
    asked = _questions(encodable(previous[-READ_BEFORE_CHARACTERS:])) if len(pieces) == 1 else ""
    context = " ".join(part for part in (_date_words(at), actor.rpartition(":")[2], asked) if part)
    return [msgspec.structs.replace(p, context=context, start_line=0, end_line=0) for p in pieces]


def _questions(text: str) -> str:
    sentences = (" ".join(sentence.split()) for sentence in _SENTENCE_END.split(text))
    return " ".join(sentence for sentence in sentences if sentence.endswith("?"))[
        -PREVIOUS_CHARACTERS:
    ].strip()


def _date_words(at: str) -> str:
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return ""
    return f"{_DAYS[moment.weekday()]}, {moment.day} {_MONTHS[moment.month - 1]} {moment.year}"


# The C locale's words: strftime would give those of the machine, and the same history must give the same pieces.
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
