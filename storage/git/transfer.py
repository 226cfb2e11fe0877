"""Git objects from one repository into another, as one pack, synced: what is reachable and not there already.

Every loose object is inflated and hashed first, and libgit2 sees the packs alone. What stands as a delta in a pack is
copied as it stands there where its base comes along; a base that does not is no part of the copy.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from agentx.storage.git.objects import ObjectDamaged
from agentx.storage.git.pack_file import (
    KINDS,
    NAMED_DELTA,
    OFFSET_DELTA,
    Pack,
    PackDamaged,
    PackWriter,
)
from agentx.storage.git.packing import Composer, Entries, heights
from agentx.storage.git.reading import ObjectMissing, ObjectReader
from agentx.storage.git.repository import CommitInfo, TreeEntry

Progress = Callable[[str, int, int], None]
"""Is told what is being done, how much of it is done, and how much there is."""

_TREE, _SUBMODULE = 0o040000, 0o160000
_OID_BYTES = 20
_MOSTLY_OTHERS = 4
"""A pack with so many times more objects than are wanted is not gone through: they are looked up."""

_TOLD_EVERY = 100


def reachable(git_dir: Path, commit: str, known: str = "", progress: Progress | None = None) -> list[str]:
    """Every object that a commit leads to and another does not, each once, those of the newest commit first.

    Args:
        git_dir: The repository.
        commit: Where to begin.
        known: A commit of the same repository whose objects are left out; empty for none.
        progress: Told how far it is.

    Returns:
        Ids in hex. Some that ``known`` leads to may be among them.

    Raises:
        ObjectDamaged: Something that is reachable is not there, or is a commit or a tree that cannot be read.
    """
    walk = _Walk(ObjectReader(git_dir))
    try:
        for number, one in enumerate(walk.commits(commit, known), start=1):
            walk.take(one)
            if progress and not number % _TOLD_EVERY:
                progress("Counting commits", number, number)
    except ObjectDamaged as error:
        raise ObjectDamaged(
            f"{git_dir} does not hold all that the commit {commit} leads to: {error}"
        ) from error
    return list(walk.found)


class _Walk:
    """Finds what commits lead to."""

    def __init__(self, reader: ObjectReader) -> None:
        self._reader = reader
        self.found: dict[str, None] = {}

    def commits(self, tip: str, known: str) -> Iterator[CommitInfo]:
        """The commits from one back to another; where histories were merged, without all that led to the other."""
        hidden = {known}
        seen: set[str] = set()
        ahead = [tip]
        while ahead:
            oid = ahead.pop()
            if oid in seen or oid in hidden:
                continue
            seen.add(oid)
            one = self._reader.commit(oid)
            if known and len(one.parents) > 1 and len(hidden) == 1:
                hidden |= {before.id for before in self.commits(known, "")}
            yield one
            ahead += reversed(one.parents)

    def take(self, commit: CommitInfo) -> None:
        """Add a commit, and what its tree has that the tree of its first parent has not."""
        self.found[commit.id] = None
        before = self._reader.commit(commit.parents[0]).tree if commit.parents else ""
        self._tree(before, commit.tree)

    def _tree(self, before: str, after: str) -> None:
        if after == before or after in self.found:
            return
        self.found[after] = None
        old = self._reader.entries(before) if before else {}
        for name, entry in self._reader.entries(after).items():
            known = old.get(name)
            if entry.mode == _TREE:
                self._tree(known.oid if known is not None and known.mode == _TREE else "", entry.oid)
            elif entry != known and entry.mode != _SUBMODULE:
                self._file(entry)

    def _file(self, entry: TreeEntry) -> None:
        if entry.oid not in self.found and not self._reader.exists(entry.oid):
            raise ObjectMissing(f"The Git object {entry.oid} is missing.")
        self.found[entry.oid] = None


def check(git_dir: Path, objects: Sequence[str], progress: Progress | None = None) -> None:
    """Read objects of a repository, so that libgit2, which hangs on a damaged one, may read them.

    Raises:
        ObjectDamaged: One is missing or damaged.
    """
    reader = ObjectReader(git_dir)
    with _named(git_dir):
        for number, oid in enumerate(objects, start=1):
            reader.read(oid)
            if progress and not number % _TOLD_EVERY:
                progress("Checking objects", number, len(objects))


def copy(source: Path, target: Path, objects: Iterable[str], progress: Progress | None = None) -> None:
    """Write objects of one repository into another, as one pack that has reached the disk.

    Args:
        source: Git directory that has them.
        target: Git directory that is to have them.
        objects: Ids in hex; small deltas come of it where later versions come before earlier ones.
        progress: Told how far it is.

    Raises:
        ObjectDamaged: One is missing or damaged; nothing was written.
        OSError: The pack could not be written.
    """
    wanted = dict.fromkeys(map(bytes.fromhex, objects))
    if not wanted:
        return
    folder = target / "objects" / "pack"
    folder.mkdir(parents=True, exist_ok=True)
    composer = Composer(PackWriter(folder))
    try:
        with contextlib.ExitStack() as opened, _named(source):
            _compose(composer, ObjectReader(source), wanted, opened, progress)
        composer.writer.finish()
    except BaseException:
        composer.writer.discard()
        raise


def _compose(
    composer: Composer,
    reader: ObjectReader,
    wanted: dict[bytes, None],
    opened: contextlib.ExitStack,
    progress: Progress | None,
) -> None:
    """Put objects into a new pack: first what is read, then what stands whole in packs, then the deltas upon it all."""
    written = composer.writer.offsets
    packs = {pack: _wanted_of(pack, wanted) for pack in _packs(reader, len(wanted), opened)}
    packed = {oid for entries in packs.values() for oid, _ in entries}
    standing = {oid: height for pack, entries in packs.items() for oid, height in _apart(pack, entries)}
    for oid in wanted:
        if oid not in packed or oid in standing:
            kind, content = reader.read(oid.hex())
            composer.whole(oid, KINDS[kind], content, standing.get(oid, 0))
            if progress and not len(written) % _TOLD_EVERY:
                progress("Copying objects", len(written), len(wanted))
    for put in (composer.wholes, composer.deltas):
        for pack, entries in packs.items():
            put(pack, entries)
        if progress:
            progress("Copying objects", len(written), len(wanted))


def _packs(reader: ObjectReader, wanted: int, opened: contextlib.ExitStack) -> Iterator[Pack]:
    """The packs that are worth going through; what stands in others, or in a damaged one, is looked up."""
    for folder in reader.folders:
        for path in sorted((folder / "pack").glob("pack-*.pack")):
            with contextlib.suppress(PackDamaged):
                pack = opened.enter_context(Pack(path))
                if pack.count <= _MOSTLY_OTHERS * wanted:
                    yield pack


def _wanted_of(pack: Pack, wanted: dict[bytes, None]) -> Entries:
    try:
        return [(oid, entry) for oid, entry in pack.entries() if oid in wanted]
    except PackDamaged:
        return []


def _apart(pack: Pack, entries: Entries) -> Iterator[tuple[bytes, int]]:
    """The deltas whose base is not wanted, and how many deltas stand on each of them."""
    places, names, above = {entry.at for _, entry in entries}, {oid for oid, _ in entries}, heights(entries)
    for oid, entry in entries:
        apart = {
            OFFSET_DELTA: entry.base not in places,
            NAMED_DELTA: pack.raw(entry.body, entry.body + _OID_BYTES) not in names,
        }
        if apart.get(entry.kind):
            yield oid, above[entry.at]


@contextlib.contextmanager
def _named(git_dir: Path) -> Iterator[None]:
    """Say which repository it is that an object cannot be read from."""
    try:
        yield
    except ObjectDamaged as error:
        raise ObjectDamaged(f"Not all of {git_dir} can be copied: {error}") from error
