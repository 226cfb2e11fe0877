"""Split files and conversation turns into pieces, each with the context that search needs to find it.

The suffix of a file decides which structure to look for.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import PurePosixPath

import msgspec

from agentx.storage.text import encodable
from agentx.synthesis.chunking import headings
from agentx.synthesis.chunking.definitions import GRAMMARS, definitions, why_none
from agentx.synthesis.chunking.file_kinds import kind_of_file
from agentx.synthesis.chunking.pieces import (
    MAX_SYMBOL,
    Block,
    OutlineEntry,
    Piece,
    blocks_of,
    name_words,
    pack,
)

CODE_LIMIT = 500_000
"""Maximum characters of a parsed source file. A longer one is probably generated and is split by lines."""

DATA_LINE_BYTES = 16_000
"""Bytes that are read of a line that is not prose (minified code, a data dump); the rest is left out."""

PROSE_LINE_BYTES = 4_000_000
"""Bytes that are read of a line of prose or a message, where a whole report can be one line."""

PREVIOUS_CHARACTERS = 240
"""Maximum characters of the previous turn's questions; their end is kept."""

READ_BEFORE_CHARACTERS = 4_000
"""Number of last characters of the previous turn that are searched for questions."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")

# The words of the C locale: strftime would use the machine's locale, but the same history must give the same
# pieces everywhere.
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)

_PROSE = frozenset({"", ".md", ".markdown", ".mdx", ".rst", ".txt", ".text", ".adoc", ".org", ".tex", ".log"})
_HEADINGS: dict[str, tuple[Callable[[Sequence[str]], Iterator[headings.Heading]], str]] = {
    **dict.fromkeys((".md", ".markdown", ".mdx"), (headings.markdown_headings, "heading")),
    **dict.fromkeys((".rst", ".txt"), (headings.underlined_headings, "heading")),
    **dict.fromkeys((".toml", ".ini", ".cfg"), (headings.table_headings, "section")),
    **dict.fromkeys((".yml", ".yaml"), (headings.key_headings, "section")),
}
_TABLES = frozenset({".csv", ".tsv"})


def chunk_file(path: str, text: str) -> list[Piece]:
    r"""Split a file into pieces along its structure.

    Code is split at its definitions, prose at its headings, and everything else into windows of lines. A line
    ends at a line feed. A text with a NUL or a lone surrogate (not UTF-8) is binary and has no pieces. The
    path has forward slashes; its words go into the context of each piece. The pieces come in the order of
    their lines and together contain every line that is not blank.

    >>> [(p.symbol, p.start_line, p.end_line) for p in chunk_file("a.md", "# Aim\n\nShort.\n")]
    [('Aim', 1, 3)]
    """
    if not _is_text(text):
        return []
    lines, suffix = text.split("\n"), _suffix(path)
    entries = _entries(suffix, text, lines)
    blocks = blocks_of(entries, len(lines)) if entries else iter([Block(0, len(lines))])
    line_bytes = PROSE_LINE_BYTES if suffix in _PROSE else DATA_LINE_BYTES
    pieces = pack(lines, blocks, overlap=suffix in GRAMMARS, line_bytes=line_bytes)
    extra = lines[0][:200].strip() if suffix in _TABLES else ""
    return [msgspec.structs.replace(piece, context=_context(path, piece.symbol, extra)) for piece in pieces]


def split_file(path: str, text: str) -> list[tuple[str, Piece]]:
    r"""Split a file as :func:`chunk_file` does, and add a piece for each definition inside a piece of code.

    Only for source code, and not for a definition with which a piece begins.

    Returns:
        Each piece with a name that is unique in the file: its number, or ``s`` and a number for a definition,
        which has the signature and the first line of the documentation.

    >>> text = "def f(x):\n    return x\n\ndef g(x):\n    return x\n"
    >>> [(name, p.start_line, p.text) for name, p in split_file("a.py", text) if name != "0"]
    [('s1', 4, 'def g(x)')]
    """
    named = [(str(number), piece) for number, piece in enumerate(chunk_file(path, text))]
    if _suffix(path) not in GRAMMARS or not named or kind_of_file(path, text) != "source":
        return named
    begun = {piece.start_line for _, piece in named}
    for number, entry in enumerate(outline(path, text)):
        if entry.start_line in begun:
            continue
        symbol = entry.symbol[:MAX_SYMBOL]
        piece = Piece(
            text=f"{entry.signature}\n{entry.doc}".strip(),
            start_line=entry.start_line,
            end_line=entry.end_line,
            symbol=symbol,
            context=_context(path, symbol, ""),
        )
        named.append((f"s{number}", piece))
    return named


def outline(path: str, text: str) -> list[OutlineEntry]:
    r"""Return the definitions or headings of a file in the order of its lines; empty if it has none.

    >>> [(e.symbol, e.kind, e.signature) for e in outline("a.py", "def f(x: int) -> int:\n    return x\n")]
    [('f', 'function', 'def f(x: int) -> int')]
    """
    return _entries(_suffix(path), text, text.split("\n")) if _is_text(text) else []


def why_no_outline(path: str) -> str:
    """Return why source code has no outline in this installation; empty if it can have one.

    >>> why_no_outline("a.py"), why_no_outline("a.txt")
    ('', '')
    """
    suffix = _suffix(path)
    return why_none(GRAMMARS[suffix]) if suffix in GRAMMARS else ""


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
    pieces = list(pack(lines, iter([Block(0, len(lines))]), overlap=False, line_bytes=PROSE_LINE_BYTES))
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


def _entries(suffix: str, text: str, lines: Sequence[str]) -> list[OutlineEntry]:
    if suffix in GRAMMARS:
        return definitions(text, lines, GRAMMARS[suffix]) if len(text) <= CODE_LIMIT else []
    if suffix in _HEADINGS:
        find, kind = _HEADINGS[suffix]
        return headings.sections(list(find(lines)), lines, kind)
    return []


def _context(path: str, symbol: str, extra: str) -> str:
    """Return words for ranking: the path, the symbol, and the single words in their names."""
    words = name_words(f"{PurePosixPath(path).stem} {symbol}".strip())
    return " ".join(part for part in (path, symbol, words, extra) if part)


def _is_text(text: str) -> bool:
    if "\0" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _suffix(path: str) -> str:
    return PurePosixPath(path).suffix.lower()
