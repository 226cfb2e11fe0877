"""The part files of one index directory: opened, added with each flush, merged, and made again if missing.

``index.json`` names the parts that have the rows of the table, so both change together. Parts can be deleted
at any time: searches then use LanceDB, and the background writes the parts again from the table.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from agentx.storage.files import nofollow
from agentx.storage.index.manifest import Manifest
from agentx.storage.index.memory_index import IndexRow
from agentx.storage.index.part import SUFFIX, Part, PartDamaged, from_rows, merged
from agentx.storage.index.parts import IndexParts

MAX_PARTS = 32
"""Parts from which a flush merges, too; otherwise the background does."""

_TAKEN_ROWS = 4_096
"""Rows of a table that become one part when the parts are made again."""


class PartStore:
    """The parts in a directory; the caller ensures that one process at a time writes.

    Args:
        path: The directory of the index.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: dict[str, Part] = {}
        self._together: IndexParts | None = None
        self._distrusted: tuple[str, ...] | None = None

    def opened(self, names: Sequence[str] | None) -> IndexParts | None:
        """Return the parts of these names; ``None`` if there are none or one cannot be used."""
        if not names or tuple(names) == self._distrusted:
            return None
        try:
            self._open = {name: self._open.get(name) or Part(self._path / name) for name in names}
            self._together = IndexParts(list(self._open.values()), self._together)
        except OSError:
            self.distrust(names)
            for name in names:  # a link, a FIFO or a directory in its place; LanceDB would refuse the tree
                if not nofollow.is_file(self._path / name):
                    nofollow.remove_tree(self._path / name, ignore_errors=True)
        return self._together

    def distrust(self, names: Sequence[str] | None) -> None:
        """Do not use these parts again: one of them cannot be read."""
        self._distrusted = None if names is None else tuple(names)
        self._open, self._together = {}, None

    def add(self, names: Sequence[str], rows: Sequence[IndexRow], dimensions: int) -> tuple[str, ...] | None:
        """Write rows to a new part, which replace those of the same id; return the names of all parts.

        ``None`` means that an earlier one cannot be read.
        """
        if not rows:
            return tuple(names)
        added = (*names, from_rows(rows, dimensions).write(self._path))
        return self.merge(added) if len(added) > MAX_PARTS else added

    def merge(self, names: Sequence[str]) -> tuple[str, ...] | None:
        """Merge the latest parts, as far back as a part is not larger than twice all later ones.

        Returns:
            The names of all parts; ``None`` if one cannot be read.
        """
        try:
            known = [self._open.get(name) or Part(self._path / name) for name in names]
        except OSError:
            return None
        later, first = 0, len(known)
        for place in range(len(known) - 1, -1, -1):
            if known[place].count <= 2 * later:
                first = place
            later += known[place].count
        if first == len(known):
            return tuple(names)
        try:
            together = IndexParts(known)
            made = merged(together.parts[first:], together.shown[first:]).write(self._path)
        except PartDamaged:
            return None
        return (*names[:first], made)

    def rebuild(self, rows: Iterable[IndexRow], dimensions: int) -> tuple[str, ...] | None:
        """Write parts of all rows of a table and return their names."""
        names: tuple[str, ...] | None = ()
        rest = iter(rows)
        try:
            while names is not None and (some := list(islice(rest, _TAKEN_ROWS))):
                names = self.add(names, some, dimensions)
                names = names and self.merge(names)
                self.drop_others(names)
        except BaseException:  # on a full disk nothing of it must stay
            self.drop_others(())
            raise
        self._distrusted = None
        return names

    def missing(self, manifest: Manifest) -> bool:
        """Return whether the parts of a table have to be made again."""
        names = manifest.parts
        if not manifest.table:
            return False
        return (
            names is None
            or names == self._distrusted
            or not all(nofollow.is_file(self._path / name) for name in names)
        )

    def drop_others(self, names: Sequence[str] | None) -> None:
        """Delete all parts but some, and those whose writing was interrupted."""
        for suffix in (SUFFIX, f"{SUFFIX}.new"):
            for file in nofollow.listed(self._path, suffix=suffix):
                if file.name not in (names or ()):
                    nofollow.remove_tree(file, ignore_errors=True)  # a directory may be in its place
