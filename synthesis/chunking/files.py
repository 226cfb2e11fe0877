"""Files in pieces: which structure a file has is told by its name, everything else by its lines."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath

import msgspec

from agentx.synthesis.chunking import headings
from agentx.synthesis.chunking.definitions import GRAMMARS, definitions
from agentx.synthesis.chunking.pieces import Block, OutlineEntry, Piece, blocks_of, name_words, pack

CODE_LIMIT = 500_000
"""Characters; a longer source file is generated, and is cut by its lines without being parsed."""

DATA_LINE_BYTES = 16_000
"""What is taken of one line that is no prose (minified code, a data dump); the rest of the line is left out."""

PROSE_LINE_BYTES = 4_000_000
"""What is taken of one line of prose, where a paragraph or a whole report can be a line."""

_PROSE = frozenset({"", ".md", ".markdown", ".mdx", ".rst", ".txt", ".text", ".adoc", ".org", ".tex", ".log"})
_HEADINGS: dict[str, tuple[Callable[[Sequence[str]], Iterator[headings.Heading]], str]] = {
    ".md": (headings.markdown_headings, "heading"),
    ".markdown": (headings.markdown_headings, "heading"),
    ".mdx": (headings.markdown_headings, "heading"),
    ".rst": (headings.underlined_headings, "heading"),
    ".txt": (headings.underlined_headings, "heading"),
    ".toml": (headings.table_headings, "section"),
    ".ini": (headings.table_headings, "section"),
    ".cfg": (headings.table_headings, "section"),
    ".yml": (headings.key_headings, "section"),
    ".yaml": (headings.key_headings, "section"),
}
_TABLES = frozenset({".csv", ".tsv"})


def chunk_file(path: str, text: str) -> list[Piece]:
    r"""Cut a file into pieces along its structure.

    Code is cut at its definitions, prose at its headings, everything else into windows of lines. Lines are what a line
    feed ends. A text that holds a NUL or what is not UTF-8 (a lone surrogate) is no text: it has no pieces.

    Args:
        path: Its path with forward slashes; the suffix tells the structure, and its words go into the context.
        text: Its whole content.

    Returns:
        Pieces in the order of their lines, which together hold every line that is not blank.

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


def outline(path: str, text: str) -> list[OutlineEntry]:
    r"""What a file defines, or its headings, in the order of its lines; empty where it has no such structure.

    >>> [(e.symbol, e.kind, e.signature) for e in outline("a.py", "def f(x: int) -> int:\n    return x\n")]
    [('f', 'function', 'def f(x: int) -> int')]
    """
    return _entries(_suffix(path), text, text.split("\n")) if _is_text(text) else []


def _entries(suffix: str, text: str, lines: Sequence[str]) -> list[OutlineEntry]:
    if suffix in GRAMMARS:
        return definitions(text, lines, GRAMMARS[suffix]) if len(text) <= CODE_LIMIT else []
    if suffix in _HEADINGS:
        find, kind = _HEADINGS[suffix]
        return headings.sections(list(find(lines)), lines, kind)
    return []


def _context(path: str, symbol: str, extra: str) -> str:
    """Words for ranking: the path, the symbol, and the words that their names are made of."""
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
