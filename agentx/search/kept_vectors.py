"""Vectors by the text that was embedded, in a file beside the index, so that a rebuild embeds nothing again.

The file is a cache that is only appended to: a header, then records of the digest of a text and its vector. A
purge deletes it with the other caches.
"""

import contextlib
import fcntl
import mmap
import os
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

from agentx.storage.files import nofollow
from agentx.storage.files.durable import write_all
from agentx.storage.index.port import Vector

MAX_BYTES = 256 << 20
"""Size from which the file is begun again: 160,000 vectors of 384 dimensions."""

_DIGEST = 16
_HEADER = 32


class KeptVectors:
    """The file of vectors of one embedder, as it is when this object is made; used by one thread at a time.

    Args:
        place: The file; another embedder's is replaced.
        name: Name of the embedder.
        dimensions: Length of its vectors.
    """

    def __init__(self, place: Path, name: str, dimensions: int) -> None:
        self._place = place
        self._header = blake2b(f"{name} {dimensions}".encode(), digest_size=_HEADER).digest()
        self._size = _DIGEST + 4 * dimensions
        self._dimensions = dimensions
        self._rows: mmap.mmap | bytes = b""
        self._known: dict[bytes, int] = {}
        with contextlib.suppress(OSError, ValueError):  # missing or empty: the vectors are made again
            self._read()

    def get(self, digest: bytes) -> Vector | None:
        """Return the vector of a text, given its digest."""
        import numpy as np  # noqa: PLC0415  (heavy, and needed with vectors alone)

        start = self._known.get(digest)
        if start is None:
            return None
        vector: Vector = np.frombuffer(self._rows, np.float32, self._dimensions, start + _DIGEST).copy()
        return vector if abs(float(vector @ vector) - 1.0) < 0.01 else None  # noqa: PLR2004 - else damaged

    def add(self, vectors: Mapping[bytes, Vector]) -> None:
        """Append vectors by the digest of their text; a file that cannot be written is skipped."""
        import numpy as np  # noqa: PLC0415  (as above)

        rows = b"".join(digest + np.asarray(v, np.float32).tobytes() for digest, v in vectors.items())
        with contextlib.suppress(OSError):
            if not self._fits():  # removed, not truncated: a process may have mapped it
                nofollow.remove(self._place, missing_ok=True)
            descriptor = nofollow.open_descriptor(self._place, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                size = os.fstat(descriptor).st_size
                if size:  # without the half record of a process that was killed
                    os.ftruncate(descriptor, size - (size - _HEADER) % self._size)
                write_all(descriptor, rows if size else self._header + rows)
            finally:
                os.close(descriptor)

    def _fits(self) -> bool:
        with contextlib.suppress(OSError), nofollow.open_file(self._place) as stream:
            return stream.read(_HEADER) == self._header and os.fstat(stream.fileno()).st_size < MAX_BYTES
        return False

    def _read(self) -> None:
        with nofollow.open_file(self._place) as stream:
            if stream.read(_HEADER) != self._header:
                return
            self._rows = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        last = len(self._rows) - self._size
        self._known = {self._rows[at : at + _DIGEST]: at for at in range(_HEADER, last + 1, self._size)}
