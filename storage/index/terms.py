"""Term counts of the table: the BM25 statistics of the rows in LanceDB, in a memory-mapped file.

LanceDB ranks by the statistics of its own index, whatever its state, and does not expose them. Rows in the
table and rows waiting beside it must be scored alike, and both as the reference scores them, so the owner of
the table counts the open rows that contain each term. Terms share :data:`SLOTS` counters by hash: a rare
collision makes a term look slightly more frequent, and changes an idf in its second digit at most.
"""

import mmap
import os
import zlib
from collections.abc import Iterable
from pathlib import Path

from agentx.storage.files import nofollow

SLOTS = 1 << 19
_HEADER_BYTES = 16
SIZE_BYTES = _HEADER_BYTES + 4 * SLOTS


class TermCounts:
    """The counts in one file; one process at a time may write, any number may read meanwhile.

    Raises:
        OSError: The file is missing, or its size is not :data:`SIZE_BYTES`.
    """

    def __init__(self, path: Path) -> None:
        with nofollow.open_file(path, "r+") as stream:
            if os.fstat(stream.fileno()).st_size != SIZE_BYTES:
                raise OSError(f"{path} is not {SIZE_BYTES} bytes long")
            mapped = mmap.mmap(stream.fileno(), SIZE_BYTES, access=mmap.ACCESS_WRITE)
        import numpy as np  # noqa: PLC0415  (heavy: loaded with the index)

        self._totals = np.frombuffer(mapped, dtype="<i8", count=2)
        self._counts = np.frombuffer(mapped, dtype="<i4", offset=_HEADER_BYTES)

    @staticmethod
    def create(path: Path) -> None:
        """Create an empty file, sparse if the file system supports it."""
        with nofollow.open_file(path, "w") as stream:
            stream.truncate(SIZE_BYTES)

    def totals(self) -> tuple[int, int]:
        """Return the number of rows, and the total number of their terms."""
        return max(int(self._totals[0]), 0), max(int(self._totals[1]), 0)

    def frequency(self, term: str) -> int:
        """Return how many rows contain a term, or one of the few that share its counter."""
        return max(int(self._counts[slot_of(term)]), 0)

    def add(self, rows: Iterable[str], sign: int = 1) -> None:
        """Count rows (``sign`` 1) or uncount them (-1); each row is given as its terms joined by spaces."""
        for tokens in rows:
            terms = tokens.split(" ") if tokens else []
            self._totals += (sign, sign * len(terms))
            self._counts[list({slot_of(term) for term in terms})] += sign

    def reset(self) -> None:
        """Reset all counts to zero."""
        self._totals[:] = 0
        self._counts[:] = 0


def slot_of(term: str) -> int:
    """Return the counter of a term."""
    return zlib.crc32(term.encode()) % SLOTS
