"""Pack objects in the background, without the git program or the workspace's lock.

History is never rewritten.

There are about seven loose objects for each commit, with 4 KB of disk each. Once there are many, they are
merged into one pack, together with the packs that are small compared with it. Each remaining pack has twice
as many objects as all smaller ones together. So there are few packs, and an object is copied a logarithmic
number of times.

Other processes can work at the same time, because:

- A loose object is packed only if a ref reaches it, or after an hour. What a writer has made and not yet
  committed stays loose: ``git repack -a -d`` drops unreachable packed objects, and keeps loose ones.
- An object is inflated and hashed first. A damaged one stays where it is and is reported.
- A loose object is removed only once its pack is on disk. A reader that misses it then looks for new packs.
- Only one packer works at a time. A killed packer leaves a temporary file, or an object in two places.
"""

import contextlib
import re
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from agentx.storage.errors import AgentXError
from agentx.storage.files import nofollow
from agentx.storage.files.lock import FileLock, WorkspaceBusy
from agentx.storage.git.branch import BRANCH
from agentx.storage.git.delta import LARGEST_BYTES, Base, Bases
from agentx.storage.git.objects import ObjectDamaged, read_loose
from agentx.storage.git.pack_file import (
    KINDS,
    NAMED_DELTA,
    OFFSET_DELTA,
    TEMPORARY,
    Pack,
    PackDamaged,
    PackEntry,
    PackWriter,
)

LOOSE_OBJECTS = 2_000
"""Number of loose objects that makes packing worthwhile."""

MOST_PACKS = 50
"""More packs than this are merged."""

MOST_OBJECTS = 20_000
"""Maximum number of loose objects in one pack; the rest waits for the next run."""

MOST_MERGED = 500_000
"""A pack with more objects is never merged."""

_LARGEST_LOOSE_BYTES = 16 << 20
_FLIGHT_NS = 3_600 * 10**9
_COLLECTION_S = 12 * 3_600
"""Git ignores a ``gc.pid`` older than this; a younger one means that ``git gc`` is running."""

_SAMPLE = ("17", "5b", "a3", "e8")
_OID = re.compile(r"[0-9a-f]{40}")
_ENTRY = re.compile(rb"[0-7]+ [^\0]+\0(.{20})", re.DOTALL)
_NAMED = re.compile(rb"^(?:tree|parent|object) ([0-9a-f]{40})$", re.MULTILINE)
_KEPT = (".keep", ".promisor", ".mtimes", ".bitmap")

_RUN = """
import sys
sys.path.insert(0, sys.argv[1])
from agentx.storage.git.packs.packing import run_apart
sys.exit(run_apart(sys.argv[2]))
"""

_Entries = list[tuple[bytes, PackEntry]]
"""Objects of one pack by name (20 bytes), in the order of the file."""


class PackingFailed(AgentXError):
    """Loose objects could not be packed: a full disk, missing rights. None was lost."""


class PackReport(msgspec.Struct, frozen=True):
    """The result of one run of the packer.

    Attributes:
        packed: Number of loose objects that are now in a pack.
        merged: Number of packs merged into the new one.
        packs: Number of packs after the run.
        damaged: Damaged loose objects and packs; they were left alone.
        busy: Another packer, or ``git gc``, was running; nothing was done.
    """

    packed: int = 0
    merged: int = 0
    packs: int = 0
    damaged: tuple[str, ...] = ()
    busy: bool = False


class _Loose(msgspec.Struct, frozen=True):
    oid: str
    path: str
    mtime_ns: int


class Running:
    """A packer running in a separate process."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def poll(self) -> PackReport | None:
        """Return its report; ``None`` while it is running.

        Raises:
            PackingFailed: Packing failed.
        """
        if self._process.poll() is None:
            return None
        said, problem = self._process.communicate()
        if self._process.returncode:
            raise PackingFailed(problem.decode("utf-8", "replace").strip() or "The packer was ended.")
        return msgspec.json.decode(said, type=PackReport)

    def stop(self) -> None:
        """End the process; the next run continues its work."""
        self._process.terminate()
        self._process.communicate()


def run_apart(git_dir: str) -> int:
    """Run a packer and report on the standard streams; return the exit status.

    This is the process that :meth:`Packer.start` starts.
    """
    try:
        report = Packer(Path(git_dir)).run()
    except PackingFailed as error:
        sys.stderr.write(str(error))
        return 1
    shown = msgspec.structs.replace(report, damaged=report.damaged[:100])
    sys.stdout.write(msgspec.json.encode(shown).decode())
    return 0


class Packer:
    """Packs the objects of one repository.

    Args:
        git_dir: Its ``.git`` directory.
    """

    def __init__(self, git_dir: Path) -> None:
        self._git_dir = git_dir
        self._objects = git_dir / "objects"
        self._folder = git_dir / "objects" / "pack"

    def due(self) -> bool:
        """Return whether there are many packs, or many loose objects by a sample of their directories."""
        with contextlib.suppress(FileNotFoundError):
            names = nofollow.names(self._folder)
            kept = {Path(name).stem for name in names if name.endswith(_KEPT)}
            packs = {Path(name).stem for name in names if name.endswith(".idx")} - kept
            if len(packs) > MOST_PACKS and "multi-pack-index" not in names:
                return True
        found = 0
        for name in _SAMPLE:
            with contextlib.suppress(FileNotFoundError):
                found += len(nofollow.names(self._objects / name))
        return found * 256 >= LOOSE_OBJECTS * len(_SAMPLE)

    def start(self) -> "Running":
        """Run in a separate process: a thread would slow down this process's writes."""
        pipe = subprocess.PIPE
        return Running(subprocess.Popen(self._command(), stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe))

    def start_detached(self) -> None:
        """Run in a process that outlives this one, like ``git gc --auto``; its result is ignored."""
        null = subprocess.DEVNULL
        started = subprocess.Popen(
            self._command(), stdin=null, stdout=null, stderr=null, cwd="/", start_new_session=True
        )
        started.returncode = 0  # nobody waits for it: prevents a ResourceWarning

    def _command(self) -> list[str]:
        root = str(Path(__file__).parents[4])
        return [sys.executable, "-I", "-c", _RUN, root, str(self._git_dir)]

    def run(self) -> PackReport:
        """Pack loose objects, and merge small packs with them.

        Raises:
            PackingFailed: The pack could not be written. Nothing is lost; a temporary file may stay until the
                next run.
        """
        try:
            with FileLock(self._git_dir / "agentx-pack.lock", timeout_s=0).hold():
                with contextlib.suppress(FileNotFoundError):
                    if time.time() - nofollow.status(self._git_dir / "gc.pid").st_mtime < _COLLECTION_S:
                        return PackReport(busy=True)
                return self._run()
        except WorkspaceBusy:
            return PackReport(busy=True)
        except OSError as error:
            raise PackingFailed(
                f"The objects in {self._objects} could not be packed: {error.strerror}. Nothing is lost; "
                "packing is retried later."
            ) from error

    def _run(self) -> PackReport:
        for leftover in nofollow.listed(self._folder, TEMPORARY):
            nofollow.remove(leftover)
        damaged: list[str] = []
        loose = self._settled()
        with contextlib.ExitStack() as opened:
            packs = [opened.enter_context(pack) for pack in self._packs(damaged)]
            fresh = [one for one in loose if not any(bytes.fromhex(one.oid) in pack for pack in packs)]
            many = len(packs) > MOST_PACKS
            small = self._small(packs, len(fresh), damaged) if fresh or many else {}
            written = self._write(fresh, small, damaged) if fresh or many else Path()
        merged = [pack.path for pack in small if pack.path != written]
        for one in loose:
            if one.oid not in damaged:
                with contextlib.suppress(FileNotFoundError):
                    nofollow.remove(one.path)
        for path in merged:
            for suffix in (".idx", ".pack", ".rev"):
                nofollow.remove(path.with_suffix(suffix), missing_ok=True)
        left = len(nofollow.listed(self._folder, suffix=".idx"))
        return PackReport(len(loose), len(merged), left, tuple(dict.fromkeys(damaged)))

    # --- selecting ------------------------------------------------------------------------------------------

    def _settled(self) -> list[_Loose]:
        """Return the loose objects that no writer is about to commit, each after the objects that it names.

        So the objects that stay loose, here or if a packer is killed, are still reachable from a ref through
        loose objects.
        """
        tips = list(self._refs())  # before the objects are listed, so that the tips are among them
        loose = {one.oid: one for one in self._loose()}
        reached: dict[str, None] = {}
        entered: set[str] = set()
        ahead = [oid for oid in tips if oid in loose]
        while ahead:
            oid = ahead[-1]
            if oid in entered:
                reached[ahead.pop()] = None
                continue
            entered.add(oid)
            ahead += (below for below in _names(loose[oid]) if below in loose and below not in entered)
        past_ns = time.time_ns() - _FLIGHT_NS
        forgotten = (oid for oid, one in loose.items() if oid not in reached and one.mtime_ns < past_ns)
        return [loose[oid] for oid in [*forgotten, *reached][:MOST_OBJECTS]]

    def _loose(self) -> Iterator[_Loose]:
        for first in range(256):
            folder = f"{self._objects}/{first:02x}"
            with contextlib.suppress(FileNotFoundError), nofollow.entries(folder) as found:
                for entry in found:
                    oid = f"{first:02x}{entry.name}"
                    if _OID.fullmatch(oid):
                        info = entry.stat(follow_symlinks=False)
                        if info.st_size <= _LARGEST_LOOSE_BYTES:
                            yield _Loose(oid, f"{folder}/{entry.name}", info.st_mtime_ns)

    def _refs(self) -> Iterator[str]:
        """Yield what refs name, and what the branch named: a packed commit hides the loose ones behind it."""
        files = nofollow.tree(self._git_dir / "refs")
        for path in (
            *files,
            self._git_dir / "logs" / BRANCH,
            self._git_dir / "packed-refs",
            self._git_dir / "HEAD",
        ):
            with contextlib.suppress(FileNotFoundError):
                yield from _OID.findall(nofollow.read_text(path, "replace"))

    def _packs(self, damaged: list[str]) -> Iterator[Pack]:
        ages: dict[Path, int] = {}
        for path in nofollow.listed(self._folder, "pack-", ".pack"):
            with contextlib.suppress(FileNotFoundError):  # `git gc` replaced it
                ages[path] = nofollow.status(path).st_mtime_ns
        for path in sorted(ages, key=ages.__getitem__, reverse=True):
            try:
                yield Pack(path)
            except PackDamaged as error:
                damaged.append(str(error))

    def _small(self, packs: Sequence[Pack], fresh: int, damaged: list[str]) -> dict[Pack, _Entries]:
        """Return the packs to merge into the new one, with their entries, the newest pack first.

        They are those that are small compared with it, and so many that few are left.
        """
        if nofollow.exists(self._folder / "multi-pack-index"):
            return {}
        total, chosen = fresh, {}
        for place, pack in enumerate(sorted(packs, key=lambda pack: pack.count)):
            if place < len(packs) - MOST_PACKS // 2:
                pass  # however many objects they have
            elif pack.count > 2 * total or pack.count > MOST_MERGED:
                break
            if not any(nofollow.exists(pack.path.with_suffix(suffix)) for suffix in _KEPT):
                try:
                    chosen[pack] = list(pack.entries())
                except PackDamaged as error:
                    damaged.append(str(error))
                    continue
                total += pack.count
        return {pack: chosen[pack] for pack in packs if pack in chosen}

    # --- writing --------------------------------------------------------------------------------------------

    def _write(self, fresh: Sequence[_Loose], packs: dict[Pack, _Entries], damaged: list[str]) -> Path:
        """Write the new pack: whole objects first, so that every delta comes after its base."""
        composer = _Composer(PackWriter(self._folder))
        try:
            for one in reversed(fresh):  # the newest becomes a whole object, older ones become deltas
                try:
                    found = read_loose(Path(one.path), one.oid)
                except ObjectDamaged:
                    damaged.append(one.oid)
                    continue
                if found is not None:
                    composer.whole(bytes.fromhex(one.oid), KINDS[found[0]], found[1])
            for pack, entries in list(packs.items()):
                try:
                    composer.wholes(pack, entries)
                except PackDamaged as error:
                    damaged.append(str(error))
                    del packs[pack]  # keep this pack file
            for pack, entries in packs.items():
                composer.deltas(pack, entries)
            return composer.writer.finish()
        except BaseException:
            composer.writer.discard()
            raise


class _Composer:
    """Adds objects to a new pack, as deltas if they resemble others.

    Args:
        writer: Writes the new pack.
    """

    def __init__(self, writer: PackWriter) -> None:
        self.writer = writer
        self._bases = {kind: Bases() for kind in KINDS.values()}

    def whole(self, oid: bytes, kind: int, content: bytes, height: int = 0, body: bytes = b"") -> None:
        """Add an object whose content is known.

        Args:
            oid: Its name, 20 bytes.
            kind: Git's number of its kind.
            content: Inflated.
            height: Length of the delta chain that depends on it.
            body: Its compressed content, if known.
        """
        if oid in self.writer.offsets:
            return
        bases = self._bases[kind]
        found = bases.best(content, height) if len(content) <= LARGEST_BYTES else None
        if found is not None:
            base, delta = found
            short = zlib.compress(delta)
            body = body or (zlib.compress(content) if 4 * len(delta) > len(content) else b"")
            if not body or len(short) + 2 < len(body):
                at = self.writer.add(oid, OFFSET_DELTA, len(delta), short, base.at)
                bases.add(Base(at, base.depth + 1, content, base.root or base), content)
                return
        at = self.writer.add(oid, kind, len(content), body or zlib.compress(content))
        if len(content) <= LARGEST_BYTES:
            bases.add(Base(at, 0, content), content)

    def wholes(self, pack: Pack, entries: _Entries) -> None:
        """Add the objects of another pack that are not deltas."""
        standing = _heights(entries)
        for oid, entry in entries:
            if entry.kind in self._bases and oid not in self.writer.offsets:
                body = pack.raw(entry.body, entry.end)
                if entry.size <= LARGEST_BYTES:
                    content = pack.content(entry)
                    self.whole(oid, entry.kind, content, standing[entry.at], body)
                else:
                    self.writer.add(oid, entry.kind, entry.size, body)

    def deltas(self, pack: Pack, entries: _Entries) -> None:
        """Copy the deltas of another pack; their bases were added before."""
        names = {entry.at: oid for oid, entry in entries}
        for oid, entry in entries:
            if entry.kind in (OFFSET_DELTA, NAMED_DELTA) and oid not in self.writer.offsets:
                base = self.writer.offsets[names[entry.base]] if entry.kind == OFFSET_DELTA else 0
                self.writer.add(oid, entry.kind, entry.size, pack.raw(entry.body, entry.end), base)


def _heights(entries: _Entries) -> dict[int, int]:
    """Return the length of the delta chains on each root, by its offset.

    A root is a whole object, or one whose base is not among the entries.
    """
    roots: dict[int, tuple[int, int]] = {}
    found: dict[int, int] = {}
    for _, entry in entries:
        root, depth = roots.get(entry.base, (entry.at, -1))
        roots[entry.at] = root, depth + 1
        found[root] = max(found.get(root, 0), depth + 1)
    return found


def _names(one: _Loose) -> list[str]:
    """Return the objects that a loose commit, tree or tag names; none for a blob, or if it is unreadable."""
    try:
        kind, content = read_loose(Path(one.path), one.oid, ("commit", "tree", "tag")) or ("", b"")
    except ObjectDamaged:
        return []
    if kind == "tree":
        return [oid.hex() for oid in _ENTRY.findall(content)]
    return [oid.decode() for oid in _NAMED.findall(content)]
