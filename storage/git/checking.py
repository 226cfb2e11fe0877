"""Integrity checks on a workspace's repository, like ``git fsck``: refs, index, loose objects and packs.

No object is passed to libgit2 here. A pack is checked by its checksum; its objects are looked at only if that
is wrong.
"""

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from agentx.storage.files import nofollow
from agentx.storage.git.branch import BRANCH
from agentx.storage.git.checked_reader import loose_objects
from agentx.storage.git.objects import ObjectDamaged, ObjectTooLarge, read_loose

STALE_S = 10.0
"""Git holds a ref lock for milliseconds; a lock of this age was left by a process that died."""

_PAUSE_S = 0.05
_DIGEST_BYTES = 20
_READ_BYTES = 1 << 20
_HEAD = re.compile(rb"ref: refs/[^\0\n ]+\n?|[0-9a-f]{40}\n?")
_OID = re.compile(rb"[0-9a-f]{40}\n?")
_PACKED = re.compile(rb"#.*|\^[0-9a-f]{40}|[0-9a-f]{40} refs/[^\0 ]+")

Told = Callable[[int, int], None]
"""Called with the number of checks done and the total."""


class ObjectFault(msgspec.Struct, frozen=True):
    """A problem found in ``.git``.

    Attributes:
        path: Relative to ``.git``.
        what: What is wrong with it, to follow the path in a sentence.
        oid: Its id if it is an object; empty for other files.
        whole: Whether it may be intact: it is over a size limit, so it was not read.
    """

    path: str
    what: str
    oid: str = ""
    whole: bool = False


def find_faults(git_dir: Path, told: Told) -> Iterator[ObjectFault]:
    """Yield all problems of refs, index, locks and objects."""
    yield from ref_faults(git_dir)
    yield from index_faults(git_dir)
    yield from stale_locks(git_dir)
    loose, packs = list(loose_objects(git_dir / "objects")), _packs(git_dir)
    total = len(loose) + len(packs)
    for number, (oid, path) in enumerate(loose, start=1):
        if fault := loose_fault(git_dir, oid, path):
            yield fault
        told(number, total)
    for number, path in enumerate(packs, start=len(loose) + 1):
        if fault := _pack_fault(git_dir, path):
            yield fault
        told(number, total)


def pack_faults(git_dir: Path, since_ns: int = 0) -> Iterator[ObjectFault]:
    """Yield damaged packs and pack indexes.

    Args:
        git_dir: The ``.git`` directory.
        since_ns: Only of packs of which a file changed since then (st_ctime_ns).
    """
    paths = _packs(git_dir)
    fresh = {path.stem for path in paths if not since_ns or nofollow.status(path).st_ctime_ns >= since_ns}
    return (fault for path in paths if path.stem in fresh and (fault := _pack_fault(git_dir, path)))


def _packs(git_dir: Path) -> list[Path]:
    return nofollow.listed(git_dir / "objects" / "pack", "pack-")


def ref_faults(git_dir: Path) -> Iterator[ObjectFault]:
    """Yield problems of ``HEAD``, the branch and the packed refs."""
    if not _HEAD.fullmatch(_content(git_dir / "HEAD")):
        yield ObjectFault("HEAD", "does not name the branch")
    packed = _content(git_dir / "packed-refs")
    lines = packed.split(b"\n")
    if packed and (lines[-1] or not all(map(_PACKED.fullmatch, lines[:-1]))):
        yield ObjectFault("packed-refs", "contains a line that is not a ref")
    if nofollow.exists(git_dir / BRANCH):
        if not _OID.fullmatch(_content(git_dir / BRANCH)):
            yield ObjectFault(BRANCH, "does not name a commit")
    elif not any(line.endswith(b" " + BRANCH.encode()) for line in lines) and _content(
        git_dir / "logs" / BRANCH
    ):
        yield ObjectFault(BRANCH, "is missing")


def index_faults(git_dir: Path) -> Iterator[ObjectFault]:
    """Check Git's index file against its own checksum (gitformat-index)."""
    content = _content(git_dir / "index")
    if not nofollow.exists(git_dir / "index"):
        return
    body, checksum = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    unchecked = not any(checksum)  # `index.skipHash`
    if not body.startswith(b"DIRC") or not (
        unchecked or hashlib.sha1(body).digest() == checksum  # noqa: S324 - Git's format
    ):
        yield ObjectFault("index", "does not match its checksum")


def stale_locks(git_dir: Path) -> Iterator[ObjectFault]:
    """Yield ref locks left by processes that died."""
    for name in (f"{BRANCH}.lock", "HEAD.lock", "packed-refs.lock"):
        with contextlib.suppress(FileNotFoundError):
            age_s = time.time() - nofollow.status(git_dir / name).st_mtime
            if age_s > STALE_S:
                yield ObjectFault(name, f"was left {age_s:,.0f} seconds ago by a process that died")


def release_lock(lock: Path) -> None:
    """Wait until Git releases a lock file; remove a lock left by a process that died."""
    latest = time.monotonic() + STALE_S  # bounds the wait even if the file's time is wrong
    with contextlib.suppress(FileNotFoundError):
        while time.time() - nofollow.status(lock).st_mtime <= STALE_S and time.monotonic() < latest:
            time.sleep(_PAUSE_S)
        nofollow.remove(lock)


def loose_fault(git_dir: Path, oid: str, path: Path) -> ObjectFault | None:
    """Return the problem of a loose object; ``None`` if it is intact, or was packed in the meantime."""
    name = path.relative_to(git_dir).as_posix()
    try:
        read_loose(path, oid)
    except ObjectTooLarge:
        return ObjectFault(name, "is over the size limit for its kind, so it is not read", oid, whole=True)
    except ObjectDamaged:
        return ObjectFault(name, "is damaged", oid)
    except OSError as error:
        return ObjectFault(name, f"cannot be read: {error.strerror}", oid)
    return None


def _pack_fault(git_dir: Path, path: Path) -> ObjectFault | None:
    """Return the problem of a pack or its index; other files beside them are only caches."""
    if path.suffix not in {".pack", ".idx"}:
        return None
    wrong, other = "", path.with_suffix(".idx" if path.suffix == ".pack" else ".pack")
    try:
        if not nofollow.exists(other) and time.time() - nofollow.status(path).st_mtime > STALE_S:
            wrong = f"has no {other.suffix[1:]} file"
        else:
            with nofollow.open_file(path) as file:
                left = os.fstat(file.fileno()).st_size - _DIGEST_BYTES
                digest = hashlib.sha1(usedforsecurity=False)
                while left > 0 and (content := file.read(min(left, _READ_BYTES))):
                    digest.update(content)
                    left -= len(content)
                if digest.digest() != file.read(_DIGEST_BYTES):
                    wrong = "does not match its checksum"
    except FileNotFoundError:
        return None  # `git gc` replaced it
    except OSError as error:
        wrong = f"cannot be read: {error.strerror}"
    return (
        ObjectFault(path.relative_to(git_dir).as_posix(), wrong) if wrong and nofollow.exists(path) else None
    )


def _content(path: Path) -> bytes:
    """Return the content of a small file; empty if there is none."""
    try:
        return nofollow.read(path)
    except OSError:
        return b""
