"""How often terms occur in the table: the statistics of BM25 for what LanceDB holds, in a file that is mapped.

LanceDB ranks by the statistics of whatever state its own index is in, and tells them to nobody. So that rows in the
table and rows that wait beside it are scored alike, and both as the reference scores them, the owner of the table
keeps the number of open rows that hold each term. Terms share :data:`SLOTS` counters by hash: a rare collision makes a
term look a little more frequent, and changes an idf in its second digit at most.
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
        OSError: The file is not there, or is not of :data:`SIZE_BYTES`.
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
        """Make an empty file, sparse where the file system can."""
        with nofollow.open_file(path, "w") as stream:
            stream.truncate(SIZE_BYTES)

    def totals(self) -> tuple[int, int]:
        """How many rows there are, and how many terms in all of them."""
        return max(int(self._totals[0]), 0), max(int(self._totals[1]), 0)

    def frequency(self, term: str) -> int:
        """How many rows hold a term, or one of the few that share its counter."""
        return max(int(self._counts[_slot(term)]), 0)

    def add(self, rows: Iterable[str], sign: int = 1) -> None:
        """Count rows in (``sign`` 1) or out (-1); each is its terms joined by spaces."""
        for tokens in rows:
            terms = tokens.split(" ") if tokens else []
            self._totals += (sign, sign * len(terms))
            self._counts[_slots(terms)] += sign

    def reset(self) -> None:
        """Forget all counts."""
        self._totals[:] = 0
        self._counts[:] = 0


def _slot(term: str) -> int:
    return zlib.crc32(term.encode()) % SLOTS


def _slots(terms: list[str]) -> list[int]:
    return list({_slot(term) for term in terms})
