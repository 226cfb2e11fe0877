"""A part: some rows of the index in a file that is mapped into memory and searched without LanceDB.

LanceDB needs 1.5 s to load and reads rows slowly. So each flush also writes its rows as columns: packed
chunks, postings by term, vectors and their signs. A part is never changed; :class:`Rows` of several parts
are merged into a new one. All arrays are little-endian and begin at a multiple of 64 bytes.

The file is not trusted: it may be cut off, hold other bytes, or be made by anybody. The header is checked
when it is opened, so that no array is longer than the file; each array, packed chunk, posting and vector when
it is first used, by a CRC-32 or by what must hold for it. Whatever fails raises :class:`PartDamaged`.

A term is stored by a digest of 64 bits. The postings of a term are row numbers and counts; a term of more
than an eighth of the rows has a byte for each row instead, which takes less room and is faster to add up.
"""

import mmap
import os
import secrets
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from hashlib import blake2b
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec

from agentx.storage.errors import AgentXError
from agentx.storage.files import nofollow
from agentx.storage.index.memory_index import IndexRow
from agentx.storage.index.port import Chunk

SUFFIX = ".part"
CODED = ("kind", "file_kind", "source", "actor", "path", "at")
"""Fields with few different values: a table of them, in order, and a number for each row."""

DENSE_SHARE = 8
MOST_OFTEN = 255
"""A term that a row has more often is not stored densely."""

_MAGIC = b"AGENTX part 2\n\0\0"
_ALIGNED = 64
_MOST_HEADER_BYTES = 1 << 16
_ROW_ARRAYS = {
    "row ends": "<i8",
    "chunk sums": "<u4",
    "lengths": "<i4",
    "seq": "<i8",
    "to_seq": "<i8",
    "embedded": "|b1",
    "ids": "<u8",
    "rows of ids": "<i4",
    **dict.fromkeys(CODED, "<i4"),
}
"""Arrays with an element for each row, and their types."""

_ARRAYS = {
    "chunks": "|u1",
    "vectors": "<f4",
    "signs": "<u8",
    "terms": "<u8",
    "term ends": "<i8",
    "posted rows": "<i4",
    "posted counts": "<u2",
    "dense terms": "<u8",
    "dense counts": "|u1",
    "dense sums": "<u4",
    **{f"{field} values": "|u1" for field in CODED},
}
"""The other arrays, and their types."""

_CHECKED_IN_PIECES = ("chunks", "vectors", "posted rows", "posted counts", "dense counts")
"""Arrays of which a search reads little, so that they have no checksum of their own."""

_UNIT = 1e-3
"""Difference of the squared length of a vector from 1 that rounding cannot explain."""

_COPIED_ROWS = 4_096
_encoder = msgspec.msgpack.Encoder()
_decode_chunk = msgspec.msgpack.Decoder(Chunk)
_decode_texts = msgspec.msgpack.Decoder(list[str])


class _PartHeader(msgspec.Struct, frozen=True):
    rows: int
    dimensions: int
    arrays: dict[str, tuple[str, int, int, int]]
    size: int


class PartDamaged(AgentXError, OSError):
    """A part is not what was written; it can be deleted, and is made again from the table."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"The part {name} of the search index cannot be used: {reason}.")


def digest(text: str) -> int:
    """Return the number that represents a term or an id."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


class Part:
    """A mapped file of rows.

    Attributes:
        name: Name of the file.
        count: Number of rows.
        dimensions: Length of the vectors; 0 if no row has one.

    Raises:
        OSError: The file is missing, or not a file; :class:`PartDamaged` if it is not a whole part. Every
            method raises the same.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.name
        with nofollow.open_file(path) as stream:
            if os.fstat(stream.fileno()).st_size < len(_MAGIC) + 8:
                raise PartDamaged(self.name, "it is cut off")
            self._mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        if self._mapped[: len(_MAGIC)] != _MAGIC:
            raise PartDamaged(self.name, "it is not a part, or of another version")
        start = len(_MAGIC) + 8
        length = int.from_bytes(self._mapped[len(_MAGIC) : start], "little")
        if length > _MOST_HEADER_BYTES:
            raise PartDamaged(self.name, "its header cannot be read")
        try:
            header = msgspec.msgpack.decode(self._mapped[start : start + length], type=_PartHeader)
        except (msgspec.DecodeError, RecursionError) as error:
            raise PartDamaged(self.name, "its header cannot be read") from error
        if header.size != len(self._mapped):
            raise PartDamaged(self.name, f"it has {len(self._mapped)} bytes and should have {header.size}")
        if reason := _reason(header):
            raise PartDamaged(self.name, reason)
        self._arrays = header.arrays
        self._read: dict[str, Any] = {}
        self._values: dict[str, list[str]] = {}
        self._dense_read: set[int] = set()
        self.count = header.rows
        self.dimensions = header.dimensions

    def array(self, name: str) -> Any:
        """Return an array of the file, which is read as it is used."""
        array = self._read.get(name)
        if array is None:
            import numpy as np  # noqa: PLC0415  (heavy: loaded with the index)

            kind, start, count, checksum = self._arrays[name]
            array = np.frombuffer(self._mapped, kind, count, start)
            if name not in _CHECKED_IN_PIECES:
                self.require(name, _crc32_of(0, array) == checksum)
            if name in ("row ends", "term ends"):
                held = self._arrays["chunks" if name == "row ends" else "posted rows"][2]
                # From 0 on, and never down
                self.require(name, not count or (array[0] >= 0 and array[-1] <= held))
                self.require(name, (array[1:] >= array[:-1]).all())
            elif name in CODED or name == "rows of ids":
                most = self.count if name == "rows of ids" else len(self.values(name))
                self.require(name, not count or (array.min() >= 0 and array.max() < most))
            self._read[name] = array
        return array

    def require(self, what: str, *facts: object) -> None:
        """Raise :class:`PartDamaged` unless all facts about some of the content are true."""
        if not all(facts):
            raise PartDamaged(self.name, f"its {what} are not what was written")

    def values(self, field: str) -> list[str]:
        """Return the different values of a field of :data:`CODED`, in order."""
        values = self._values.get(field)
        if values is None:
            try:
                values = _decode_texts.decode(self.array(f"{field} values").tobytes())
            except (msgspec.DecodeError, RecursionError) as error:
                raise PartDamaged(self.name, f"its {field} values cannot be read") from error
            self._values[field] = values
        return values

    def codes_of(self, field: str, wanted: Iterable[str]) -> list[int]:
        """Return the numbers of some values; those that no row has are left out."""
        values = self.values(field)
        places = [(bisect_left(values, value), value) for value in wanted]
        return [place for place, value in places if place < len(values) and values[place] == value]

    def packed(self, row: int) -> bytes:
        """Return a packed chunk."""
        ends = self.array("row ends")
        start = int(ends[row - 1]) if row else 0
        return bytes(self.array("chunks")[start : int(ends[row])])

    def chunks(self, rows: Any) -> list[Chunk]:
        """Return the chunks of some rows."""
        import numpy as np  # noqa: PLC0415

        ends, packed, decode = self.array("row ends"), memoryview(self.array("chunks")), _decode_chunk.decode
        numbers = np.asarray(rows, "<i8")
        begins = np.where(numbers > 0, ends[numbers - 1], 0).tolist()
        pieces = [packed[begin:end] for begin, end in zip(begins, ends[numbers].tolist(), strict=True)]
        self.require("chunks", list(map(crc32, pieces)) == self.array("chunk sums")[numbers].tolist())
        try:
            return list(map(decode, pieces))
        except (msgspec.DecodeError, RecursionError) as error:
            raise PartDamaged(self.name, "a chunk cannot be read") from error

    def require_unit(self, rows: Any) -> None:
        """Check that the vectors of some rows have unit length."""
        import numpy as np  # noqa: PLC0415

        with np.errstate(all="ignore"):
            vectors = self.vectors[rows]
            lengths = np.vecdot(vectors, vectors)
        self.require("vectors", (abs(lengths - 1) < _UNIT).all())

    @property
    def ids(self) -> Any:
        """The digest of the id of each row."""
        import numpy as np  # noqa: PLC0415

        ids = np.empty(self.count, "<u8")
        ids[self.array("rows of ids")] = self.array("ids")
        return ids

    def rows_of(self, ids: Any) -> Any:
        """Return the rows with some digests of ids, in no order."""
        known = self.array("ids")
        if not len(known):
            return self.array("rows of ids")
        places = known.searchsorted(ids)
        places[places == len(known)] = 0
        return self.array("rows of ids")[places[known[places] == ids]]

    @property
    def vectors(self) -> Any:
        """The vectors, one for each row; zero where a row has none."""
        return self.array("vectors").reshape(self.count, self.dimensions)

    @property
    def signs(self) -> Any:
        """The signs of the vectors, 64 to a number: the first number of all rows, then the second."""
        return self.array("signs").reshape(-1, self.count)

    def dense(self, place: int) -> Any:
        """Return how often each row contains one of the dense terms."""
        found = self.array("dense counts")[place * self.count : (place + 1) * self.count]
        if place not in self._dense_read:
            self.require("dense counts", crc32(found) == self.array("dense sums")[place])
            self._dense_read.add(place)
        return found

    def postings(self, term: int) -> tuple[Any, Any]:
        """Return the rows that contain a sparse term and how often, in order; empty for none."""
        terms, ends = self.array("terms"), self.array("term ends")
        place = int(terms.searchsorted(terms.dtype.type(term)))
        if place == len(terms) or int(terms[place]) != term:
            return self.array("posted rows")[:0], self.array("posted counts")[:0]
        start, end = int(ends[place - 1]) if place else 0, int(ends[place])
        rows = self.array("posted rows")[start:end]
        self.require("postings", not len(rows) or (rows[0] >= 0 and rows[-1] < self.count))
        self.require("postings", (rows[1:] > rows[:-1]).all())
        return rows, self.array("posted counts")[start:end]

    def dense_place(self, term: int) -> int:
        """Return the place of a dense term; -1 if it is not one."""
        terms = self.array("dense terms")
        place = int(terms.searchsorted(terms.dtype.type(term)))
        return place if place < len(terms) and int(terms[place]) == term else -1

    def all_postings(self) -> tuple[Any, Any, Any, Any]:
        """Return the terms, the number of postings of each, and the rows and counts of all."""
        import numpy as np  # noqa: PLC0415

        sparse = np.diff(self.array("term ends"), prepend=0)
        dense = [self.dense(place) for place in range(len(self.array("dense terms")))]
        terms = np.concatenate([self.array("terms"), self.array("dense terms")])
        of_dense = [np.flatnonzero(counts).astype("<i4") for counts in dense]
        sizes = np.concatenate([sparse, np.array([len(rows) for rows in of_dense], "<i8")])
        sparse_rows = self.array("posted rows")
        inside = not len(sparse_rows) or (sparse_rows.min() >= 0 and sparse_rows.max() < self.count)
        self.require("postings", inside, int(sparse.sum()) == len(sparse_rows))
        rows = np.concatenate([sparse_rows, *of_dense])
        counted = [counts[having].astype("<u2") for counts, having in zip(dense, of_dense, strict=True)]
        return terms, sizes, rows, np.concatenate([self.array("posted counts"), *counted])


class Columns(msgspec.Struct):
    """The arrays of a part in the making; each is written from the pieces that follow one another."""

    rows: int
    dimensions: int
    pieces: dict[str, list[Any]]

    def write(self, folder: Path) -> str:
        """Write the part to a new file and return its name."""
        name, at = f"{secrets.token_hex(6)}{SUFFIX}", 0
        arrays: dict[str, tuple[str, int, int, int]] = {}
        sizes = {name: sum(piece.nbytes for piece in pieces) for name, pieces in self.pieces.items()}
        sums = {
            name: 0 if name in _CHECKED_IN_PIECES else reduce(_crc32_of, pieces, 0)
            for name, pieces in self.pieces.items()
        }
        for _ in range(2):  # the first time to learn how long the header is
            header = _encoder.encode(_PartHeader(self.rows, self.dimensions, arrays, 2**40 + at))
            at = _aligned(len(_MAGIC) + 8 + len(header) + 64 * len(sizes))
            for array, pieces in self.pieces.items():
                arrays[array] = pieces[0].dtype.str, at, sum(piece.size for piece in pieces), sums[array]
                at = _aligned(at + sizes[array])
        header = _encoder.encode(_PartHeader(self.rows, self.dimensions, arrays, at))
        beside = folder / f"{name}.new"
        try:
            with nofollow.open_file(beside, "w") as stream:
                stream.write(_MAGIC + len(header).to_bytes(8, "little") + header)
                for array, pieces in self.pieces.items():
                    stream.seek(arrays[array][1])
                    for piece in pieces:
                        stream.write(memoryview(piece).cast("B") if piece.nbytes else b"")
                stream.truncate(at)
                stream.flush()
                os.fsync(stream.fileno())  # index.json must not name a part that a power cut emptied
        except BaseException:
            nofollow.remove(beside, missing_ok=True)
            raise
        beside.replace(folder / name)
        return name


def _reason(header: _PartHeader) -> str:
    """Return why the arrays that a header declares cannot be those of a part; empty if they can."""
    kinds = _ROW_ARRAYS | _ARRAYS
    arrays, rows = header.arrays, header.rows
    if arrays.keys() != kinds.keys() or any(arrays[name][0] != kind for name, kind in kinds.items()):
        return "it has other arrays"
    sizes = {name: count for name, (_, _, count, _) in arrays.items()}
    expected = {
        **dict.fromkeys(_ROW_ARRAYS, rows),
        "vectors": rows * header.dimensions,
        "signs": rows * -(-header.dimensions // 64),
        "term ends": sizes["terms"],
        "posted counts": sizes["posted rows"],
        "dense counts": sizes["dense terms"] * rows,
        "dense sums": sizes["dense terms"],
    }
    if rows < 1 or header.dimensions < 0 or any(sizes[name] != count for name, count in expected.items()):
        return "the sizes of its arrays contradict each other"
    for name, (kind, start, count, _) in arrays.items():
        if count < 0 or not 0 <= start <= start + count * int(kind[2:]) <= header.size:
            return f"its {name} would be beyond its end"
    return ""


def _crc32_of(before: int, piece: Any) -> int:
    return crc32(memoryview(piece).cast("B"), before) if piece.nbytes else before


def _aligned(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED


def from_rows(rows: Sequence[IndexRow], dimensions: int) -> Columns:
    """Return the columns of some rows; vectors of other dimensions are left out."""
    import numpy as np  # noqa: PLC0415

    chunks = [row.chunk for row in rows]
    counted = [Counter(row.tokens.split(" ") if row.tokens else ()) for row in rows]
    vectors = np.zeros((len(rows), dimensions), "<f4")
    embedded = np.zeros(len(rows), "?")
    for place, row in enumerate(rows):
        if row.vector and len(row.vector) == 4 * dimensions:
            vectors[place] = np.frombuffer(row.vector, "<f4")
            embedded[place] = True
    if not embedded.any():
        dimensions = 0
    packed = [_encoder.encode(chunk) for chunk in chunks]
    pieces: dict[str, list[Any]] = {
        "chunks": [np.frombuffer(b"".join(packed), "u1")],
        "row ends": [np.cumsum([len(one) for one in packed], dtype="<i8")],
        "chunk sums": [np.array(list(map(crc32, packed)), "<u4")],
        "lengths": [np.array([counts.total() for counts in counted], "<i4")],
        "seq": [np.array([chunk.seq for chunk in chunks], "<i8")],
        "to_seq": [np.array([chunk.to_seq for chunk in chunks], "<i8")],
        "embedded": [embedded],
        "vectors": [vectors[:, :dimensions]],
        "signs": [signs(vectors).reshape(-1) if dimensions else np.zeros(0, "<u8")],
    }
    for field in CODED:
        texts = [getattr(chunk, field) for chunk in chunks]
        values = sorted(set(texts))
        codes = {value: code for code, value in enumerate(values)}
        pieces[field] = [np.array([codes[text] for text in texts], "<i4")]
        pieces[f"{field} values"] = [np.frombuffer(_encoder.encode(values), "u1")]
    _add_ids(pieces, np.array([digest(chunk.id) for chunk in chunks], "<u8"))
    words: dict[str, int] = {}
    for counts in counted:
        for word in counts:
            words.setdefault(word, len(words))
    digests = np.array([digest(word) for word in words], "<u8")
    term = np.array([words[word] for counts in counted for word in counts], "<i8")
    often = np.array([number for counts in counted for number in counts.values()], "<i8")
    held = np.repeat(np.arange(len(rows), dtype="<i4"), [len(counts) for counts in counted])
    order = np.argsort(digests[term], kind="stable") if len(term) else term
    terms, sizes = np.unique(digests[term], return_counts=True)
    often = np.minimum(often, 2**16 - 1).astype("<u2")
    _add_postings(pieces, len(rows), (terms, sizes, held[order], often[order]))
    return Columns(len(rows), dimensions, pieces)


def signs(vectors: Any) -> Any:
    """Return the signs of vectors, 64 to a number, by number and row."""
    import numpy as np  # noqa: PLC0415

    packed = np.packbits(vectors > 0, axis=-1)
    packed = np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8)))
    return np.ascontiguousarray(packed.view("<u8").T)


def merged(parts: Sequence[Part], shown: Sequence[Any]) -> Columns:
    """Return the columns of several parts, the oldest first, with the rows of each that are shown.

    ``shown`` has for each part whether its rows are: one that a later part replaced is not.
    """
    import numpy as np  # noqa: PLC0415

    kept = [np.flatnonzero(some).astype("<i4") for some in shown]
    dimensions = max(part.dimensions for part in parts)
    sizes = [np.diff(part.array("row ends"), prepend=0)[rows] for part, rows in zip(parts, kept, strict=True)]
    pieces: dict[str, list[Any]] = {
        "chunks": [np.frombuffer(b"".join(_packed(parts, kept)), "u1")],
        "row ends": [np.cumsum(np.concatenate(sizes), dtype="<i8")],
    }
    _add_ids(pieces, np.concatenate([part.ids[rows] for part, rows in zip(parts, kept, strict=True)]))
    for name in ("chunk sums", "lengths", "seq", "to_seq", "embedded"):
        pieces[name] = [
            np.concatenate([part.array(name)[rows] for part, rows in zip(parts, kept, strict=True)])
        ]
    total = sum(map(len, kept))
    pieces["vectors"] = [
        part.vectors[rows[start : start + _COPIED_ROWS]]
        if part.dimensions
        else np.zeros((len(rows[start : start + _COPIED_ROWS]), dimensions), "<f4")
        for part, rows in zip(parts, kept, strict=True)
        for start in range(0, max(len(rows), 1), _COPIED_ROWS)
    ]
    words = -(-dimensions // 64)
    pieces["signs"] = [
        part.signs[word][rows] if part.dimensions else np.zeros(len(rows), "<u8")
        for word in range(words)
        for part, rows in zip(parts, kept, strict=True)
    ] or [np.zeros(0, "<u8")]
    for field in CODED:
        values = sorted(set().union(*(part.values(field) for part in parts)))
        places = [np.array([bisect_left(values, v) for v in part.values(field)], "<i4") for part in parts]
        codes = [place[part.array(field)[r]] for place, part, r in zip(places, parts, kept, strict=True)]
        pieces[field] = [np.concatenate(codes)]
        pieces[f"{field} values"] = [np.frombuffer(_encoder.encode(values), "u1")]
    _add_postings(pieces, total, _merged_postings(parts, shown, kept))
    return Columns(total, dimensions, pieces)


def _packed(parts: Sequence[Part], kept: Sequence[Any]) -> Iterator[bytes]:
    for part, rows in zip(parts, kept, strict=True):
        if len(rows) == part.count:
            yield part.array("chunks").tobytes()
        else:
            yield from (part.packed(int(row)) for row in rows)


def _merged_postings(
    parts: Sequence[Part], shown: Sequence[Any], kept: Sequence[Any]
) -> tuple[Any, Any, Any, Any]:
    import numpy as np  # noqa: PLC0415

    found: list[tuple[Any, Any, Any, Any]] = []
    first = 0
    for part, some, rows in zip(parts, shown, kept, strict=True):
        terms, sizes, posted, often = part.all_postings()
        which = np.repeat(np.arange(len(terms), dtype="<i4"), sizes)
        if len(rows) != part.count:
            visible = some[posted]
            which, posted, often = which[visible], posted[visible], often[visible]
            sizes = np.bincount(which, minlength=len(terms))
        number = np.cumsum(some, dtype="<i4") - 1 + first
        found.append((terms, sizes, number[posted].astype("<i4"), often))
        first += len(rows)
    every = np.unique(np.concatenate([terms for terms, *_ in found]))
    places = [np.searchsorted(every, terms) for terms, *_ in found]
    sizes = np.zeros(len(every), "<i8")
    for place, (_, mine, _, _) in zip(places, found, strict=True):
        sizes[place] += mine
    free = np.cumsum(sizes) - sizes
    rows_of = np.empty(int(sizes.sum()), "<i4")
    often_of = np.empty(len(rows_of), "<u2")
    for place, (_, mine, posted, often) in zip(places, found, strict=True):
        begin = np.cumsum(mine) - mine
        where = np.arange(len(posted)) + np.repeat(free[place] - begin, mine)
        rows_of[where], often_of[where] = posted, often
        free[place] += mine
    having = sizes > 0
    return every[having], sizes[having], rows_of, often_of


def _add_ids(pieces: dict[str, list[Any]], ids: Any) -> None:
    order = ids.argsort(kind="stable")
    pieces["ids"], pieces["rows of ids"] = [ids[order]], [order.astype("<i4")]


def _add_postings(pieces: dict[str, list[Any]], count: int, found: tuple[Any, Any, Any, Any]) -> None:
    """Add postings by term: of common terms a byte for each row, of others row numbers and counts."""
    import numpy as np  # noqa: PLC0415

    terms, sizes, rows, often = found
    ends = np.cumsum(sizes, dtype="<i8")
    begins = ends - sizes
    dense: list[int] = []
    counts: list[Any] = []
    sparse = np.ones(len(rows), "?")
    for place in np.flatnonzero(sizes * DENSE_SHARE > count):
        some = slice(int(begins[place]), int(ends[place]))
        if int(often[some].max()) > MOST_OFTEN:
            continue
        each = np.zeros(count, "u1")
        each[rows[some]] = often[some]
        sparse[some] = False
        dense.append(int(place))
        counts.append(each)
    few = np.ones(len(terms), "?")
    few[dense] = False
    pieces["terms"] = [np.ascontiguousarray(terms[few])]
    pieces["term ends"] = [np.cumsum(sizes[few], dtype="<i8")]
    pieces["posted rows"] = [rows[sparse]]
    pieces["posted counts"] = [often[sparse]]
    pieces["dense terms"] = [np.ascontiguousarray(terms[~few])]
    pieces["dense counts"] = counts or [np.zeros(0, "u1")]
    pieces["dense sums"] = [np.array(list(map(crc32, counts)), "<u4")]
