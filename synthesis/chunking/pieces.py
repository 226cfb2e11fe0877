"""Pieces, and how blocks of lines become them: whole where they fit, together where small, split where long.

Invariant: every line that is not blank stands in at least one piece, and two pieces share a line only where a long
block was split with a deliberate overlap. Sizes are bytes of UTF-8, because they follow tokens in every script far
better than characters do: 1,200 bytes are about 270 tokens of English and 300 of code.
"""

import re
from collections.abc import Iterator, Sequence

import msgspec

MAX_BYTES = 1_200
"""Most that a piece holds; MiniLM reads 256 tokens."""

SMALL_BYTES = 300
"""A block under this is too little to be found alone and joins its neighbour."""

JOINED_BYTES = 800
"""Most that blocks which were joined hold together."""

OVERLAP_LINES = 3
"""Most lines that one part of a split block repeats from the part before."""

OVERLAP_BYTES = 240
"""Most bytes that it repeats."""

MAX_SYMBOL = 120
"""Characters kept of a symbol."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+|\d+")


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A passage as it is cut from a text.

    Attributes:
        text: The lines themselves, joined by line feeds; a part of one line where the line alone is too long.
        start_line: First line, from 1; 0 for a turn of a conversation.
        end_line: Last line, inclusive.
        symbol: Definition or heading that it belongs to ("Client.fetch", "Results > Table 2"); several that were
            joined are separated by a comma.
        context: Words to put in front for ranking only.
    """

    text: str
    start_line: int = 0
    end_line: int = 0
    symbol: str = ""
    context: str = ""


class OutlineEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A definition or a section of a file.

    Attributes:
        symbol: Its name with that of what encloses it: ``Client.fetch``, ``Results > Table 2``.
        kind: ``function``, ``method``, ``class``, ``interface``, ``struct``, ``enum``, ``trait``, ``impl``, ``type``,
            ``module``, ``macro``, ``heading`` or ``section``.
        start_line: First line, from 1, with the comments and decorators that belong to it.
        end_line: Last line, inclusive.
        signature: What it says of itself before its body, on one line, at most 200 characters.
        doc: First line of its documentation, at most 160 characters.
    """

    symbol: str
    kind: str
    start_line: int
    end_line: int
    signature: str = ""
    doc: str = ""


class Block(msgspec.Struct, frozen=True):
    """Lines that belong together; indices from 0, ``end`` is one past the last."""

    start: int
    end: int
    symbol: str = ""


def blocks_of(entries: Sequence[OutlineEntry], lines: int) -> Iterator[Block]:
    """Part a file's lines by the innermost entry that holds each; entries come in order, outer before inner."""
    owners = [-1] * lines
    for index, entry in enumerate(entries):
        length = entry.end_line - entry.start_line + 1
        owners[entry.start_line - 1 : entry.end_line] = [index] * length
    start = 0
    for line in range(1, lines + 1):
        if line == lines or owners[line] != owners[start]:
            yield Block(start, line, entries[owners[start]].symbol if owners[start] >= 0 else "")
            start = line


def pack(lines: Sequence[str], blocks: Iterator[Block], *, overlap: bool, line_bytes: int) -> Iterator[Piece]:
    """Make pieces of blocks.

    Args:
        lines: All lines of the text.
        blocks: Blocks in the order of their lines, none sharing a line.
        overlap: Whether parts of a block that was split repeat a few lines.
        line_bytes: Most that is taken from one line; the rest of a longer one is left out.
    """
    sizes = [len(line.encode()) + 1 for line in lines]
    held: Block | None = None
    for block in (trimmed for b in blocks if (trimmed := _trim(lines, b)) is not None):
        if held is not None and (joined := _join(sizes, held, block)) is not None:
            held = joined
            continue
        if held is not None:
            yield from _cut(lines, sizes, held, overlap=overlap, line_bytes=line_bytes)
        held = block
    if held is not None:
        yield from _cut(lines, sizes, held, overlap=overlap, line_bytes=line_bytes)


def name_words(symbol: str) -> str:
    """The words of a name written in camel or snake case, each once, where they say more than the name itself.

    >>> name_words("HTTPClient.fetchOrders"), name_words("client.fetch")
    ('http client fetch orders', '')
    """
    words = [word.lower() for word in _WORD.findall(symbol)]
    return "" if words == re.split(r"\W+", symbol.lower()) else " ".join(dict.fromkeys(words))


def _trim(lines: Sequence[str], block: Block) -> Block | None:
    """The block without blank lines at its edges; ``None`` where nothing is left."""
    start, end = block.start, block.end
    while start < end and not lines[start].strip():
        start += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    return Block(start, end, block.symbol) if start < end else None


def _join(sizes: Sequence[int], first: Block, second: Block) -> Block | None:
    """Both as one, where one of them is small and they fit together; ``None`` where they stand apart."""
    before, after = sum(sizes[first.start : first.end]), sum(sizes[second.start : second.end])
    whole = sum(sizes[first.start : second.end])
    if whole > JOINED_BYTES or min(before, after) >= SMALL_BYTES:
        return None
    names = first.symbol.split(", ") if first.symbol else []
    if names and second.symbol.startswith((f"{names[-1]}.", f"{names[-1]} > ")):
        names.pop()
    if second.symbol and second.symbol not in names:
        names.append(second.symbol)
    return Block(first.start, second.end, ", ".join(names)[:MAX_SYMBOL])


def _cut(
    lines: Sequence[str], sizes: Sequence[int], block: Block, *, overlap: bool, line_bytes: int
) -> Iterator[Piece]:
    """One piece where the block fits, otherwise parts that end where the structure is loosest."""
    symbol, start = block.symbol[:MAX_SYMBOL], block.start
    while start < block.end:
        if sizes[start] > MAX_BYTES:
            for part in _slices(lines[start], line_bytes):
                yield Piece(text=part, start_line=start + 1, end_line=start + 1, symbol=symbol)
            start += 1
            continue
        end = _part_end(lines, sizes, start, block.end)
        if any(line.strip() for line in lines[start:end]):
            text = "\n".join(lines[start:end])
            yield Piece(text=text, start_line=start + 1, end_line=end, symbol=symbol)
        follows = overlap and end < block.end and sizes[end] <= MAX_BYTES
        start = _overlap_start(lines, sizes, start, end) if follows else end


def _part_end(lines: Sequence[str], sizes: Sequence[int], start: int, limit: int) -> int:
    """Where a part that begins at ``start`` ends (one past its last line): what fits, back to the loosest place."""
    end, size = start + 1, sizes[start]
    while end < limit and size + sizes[end] <= MAX_BYTES:
        size += sizes[end]
        end += 1
    if end == limit:
        return end
    places = range(max(start + 1, (start + end) // 2), end + 1)
    return max(places, key=lambda place: (not lines[place].strip(), -_indent(lines[place]), place))


def _overlap_start(lines: Sequence[str], sizes: Sequence[int], start: int, end: int) -> int:
    """Where the next part begins: some lines before ``end``, unless a blank line parts the two anyway."""
    if not lines[end].strip():
        return end
    first, size = end, 0
    while first - 1 > start and end - first < OVERLAP_LINES and size + sizes[first - 1] <= OVERLAP_BYTES:
        first -= 1
        size += sizes[first]
    return first if size + sizes[end] <= MAX_BYTES else end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _slices(line: str, line_bytes: int) -> Iterator[str]:
    """Parts of one long line, cut at a space where there is one, up to ``line_bytes`` in all."""
    start, left = 0, line_bytes
    while start < len(line) and left > 0:
        end = start + len(line[start : start + MAX_BYTES].encode()[:MAX_BYTES].decode(errors="ignore"))
        if end < len(line) and (space := line.rfind(" ", start + (end - start) // 2, end)) > 0:
            end = space + 1
        part = line[start:end]
        if part.strip():
            yield part
        left -= len(part.encode())
        start = end
