"""Make pieces from blocks of lines: small blocks are joined, long blocks are split.

Invariant: every line that is not blank is in at least one piece. Two pieces share a line only if a long
block was split with a deliberate overlap. Sizes are bytes of UTF-8: in every script, the number of tokens
follows bytes far better than characters. 1,200 bytes are about 270 tokens of English or 300 of code.
"""

import re
from collections.abc import Iterator, Sequence

import msgspec

MAX_BYTES = 1_200
"""Maximum size of a piece; MiniLM reads 256 tokens."""

SMALL_BYTES = 300
"""A smaller block is too short to be found alone and is joined to its neighbour."""

JOINED_BYTES = 800
"""Maximum total size of joined blocks."""

OVERLAP_LINES = 3
"""Maximum number of lines that a part of a split block repeats from the previous part."""

OVERLAP_BYTES = 240
"""Maximum number of bytes that a part repeats from the previous part."""

MAX_SYMBOL = 120
"""Maximum length of a symbol, in characters."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+|\d+")


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A passage of a text.

    Attributes:
        text: The lines, joined by line feeds; a part of one line if the line alone is too long.
        start_line: First line, from 1; 0 for a turn of a conversation.
        symbol: Definition or heading that it belongs to ("Client.fetch", "Results > Table 2"); several are
            separated by commas.
        context: Words to put in front, for ranking only.
    """

    text: str
    start_line: int = 0
    end_line: int = 0
    symbol: str = ""
    context: str = ""


class OutlineEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A definition or a section of a file.

    Attributes:
        symbol: Its name after the names of its enclosing entries: ``Client.fetch``, ``Results > Table 2``.
        kind: ``function``, ``method``, ``class``, ``interface``, ``struct``, ``enum``, ``trait``, ``impl``,
            ``type``, ``module``, ``macro``, ``heading`` or ``section``.
        start_line: First line, from 1, including its comments and decorators.
        signature: The text before its body, on one line, at most 200 characters.
        doc: First line of its documentation, at most 160 characters.
    """

    symbol: str
    kind: str
    start_line: int
    end_line: int
    signature: str = ""
    doc: str = ""


class Block(msgspec.Struct, frozen=True):
    """A range of lines that belong together; indices from 0, ``end`` is one past the last."""

    start: int
    end: int
    symbol: str = ""


def blocks_of(entries: Sequence[OutlineEntry], lines: int) -> Iterator[Block]:
    """Group a file's lines by their innermost entry; entries are in order, outer before inner."""
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
    """Make pieces from blocks.

    Blocks come in the order of their lines and share none. With ``overlap``, the parts of a split block
    repeat a few lines. Of one line, at most ``line_bytes`` are read.
    """
    sizes = [len(line.encode()) + 1 for line in lines]
    whole: list[Block] = []
    for block in blocks:
        # Leave out blank lines at the edges.
        full = [number for number in range(block.start, block.end) if lines[number].strip()]
        if not full:
            continue
        trimmed = Block(full[0], full[-1] + 1, block.symbol)
        if whole and (joined := _join(sizes, whole[-1], trimmed)):
            whole[-1] = joined
        else:
            whole.append(trimmed)
    for block in whole:
        yield from _cut(lines, sizes, block, overlap=overlap, line_bytes=line_bytes)


def name_words(symbol: str) -> str:
    """Split a name in camel or snake case into words, each once; empty if that adds nothing to the name.

    >>> name_words("HTTPClient.fetchOrders"), name_words("client.fetch")
    ('http client fetch orders', '')
    """
    words = [word.lower() for word in _WORD.findall(symbol)]
    return "" if words == re.split(r"\W+", symbol.lower()) else " ".join(dict.fromkeys(words))


def _join(sizes: Sequence[int], first: Block, second: Block) -> Block | None:
    """Join two blocks if one of them is small and both fit together; return ``None`` otherwise."""
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
    """Yield one piece if the block fits, otherwise parts that end where the structure allows it best."""
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
    """Return the end (one past the last line) of a part that begins at ``start``.

    Take the lines that fit, then go back to the best break: a blank line, else the least indented line.
    """
    end, size = start + 1, sizes[start]
    while end < limit and size + sizes[end] <= MAX_BYTES:
        size += sizes[end]
        end += 1
    if end == limit:
        return end

    def rank(place: int) -> tuple[bool, int, int]:
        line = lines[place]
        return not line.strip(), len(line.lstrip()) - len(line), place

    return max(range(max(start + 1, (start + end) // 2), end + 1), key=rank)


def _overlap_start(lines: Sequence[str], sizes: Sequence[int], start: int, end: int) -> int:
    """Return the start of the next part: a few lines before ``end``, or ``end`` if a blank line is there."""
    if not lines[end].strip():
        return end
    first, size = end, 0
    while first - 1 > start and end - first < OVERLAP_LINES and size + sizes[first - 1] <= OVERLAP_BYTES:
        first -= 1
        size += sizes[first]
    return first if size + sizes[end] <= MAX_BYTES else end


def _slices(line: str, line_bytes: int) -> Iterator[str]:
    """Yield parts of one long line, split at a space if possible, up to ``line_bytes`` in total."""
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
