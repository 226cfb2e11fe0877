"""Search Git objects for lines of the log, most promising first; for :mod:`agentx.storage.log.proven_log`.

Objects are read without trusting them, and unreadable ones are skipped: a line proves itself by its hash.
"""

import contextlib
import json
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from agentx.storage.files import nofollow
from agentx.storage.git import local
from agentx.storage.git.checked_reader import ObjectReader, loose_objects
from agentx.storage.git.objects import ObjectDamaged
from agentx.storage.log.history import LIVE, ORPHANS, SEGMENTS
from agentx.storage.log.proven_log import Source

_OID = re.compile(rb"\b[0-9a-f]{40}\b")
_LINE = re.compile(rb'\{"seq":[1-9][0-9]*,"at":"')
_KEPT = "repaired"


def log_sources(root: Path, reader: ObjectReader, head: str, *, everywhere: bool) -> Iterator[Source]:
    """Yield contents that may hold lines of a workspace's log.

    Args:
        root: The workspace's directory.
        reader: Its Git objects.
        head: The commit to begin with.
        everywhere: Also search unreachable objects, and remotes that are directories on this machine.
    """
    git_dir = root / ".git"
    seen: set[str] = set()
    yield from _of_commits(reader, [head], seen)
    yield from _beside(root)
    yield from _of_commits(reader, _named(git_dir), seen)
    if not everywhere:
        return
    yield from _of_objects(reader, seen, "a Git object that no branch refers to")
    for name, remote in _remotes(git_dir):
        other = ObjectReader(remote)
        yield from _of_commits(other, _named(remote), seen, f"the remote {name}, ")
        yield from _of_objects(other, seen, f"an object of the remote {name}")


def _of_commits(reader: ObjectReader, starts: list[str], seen: set[str], where: str = "") -> Iterator[Source]:
    """Yield the logs of some commits and their ancestors, newest first; each content once."""
    waiting = deque(dict.fromkeys(starts))
    while waiting:
        oid = waiting.popleft()
        if not oid or oid in seen:
            continue
        seen.add(oid)
        try:
            commit = reader.commit(oid)
            waiting.extend(commit.parents)
            entries = reader.entries(commit.tree)
            names = [(entries[LIVE].oid, "")] if LIVE in entries else []
            if SEGMENTS in entries:
                names += [(entries[SEGMENTS].oid, f"{SEGMENTS}/")]
        except ObjectDamaged:
            continue
        for blob, prefix in names:
            with contextlib.suppress(ObjectDamaged):
                yield from _of_entry(reader, blob, prefix, seen, f"{where}commit {oid[:12]}")


def _of_entry(reader: ObjectReader, oid: str, prefix: str, seen: set[str], source: str) -> Iterator[Source]:
    if oid in seen:
        return
    seen.add(oid)
    if not prefix:
        yield reader.blob(oid), source
        return
    for name, entry in reader.entries(oid).items():
        if name == "blobs" or (prefix + name) == ORPHANS:
            continue
        with contextlib.suppress(ObjectDamaged):
            yield from _of_entry(
                reader, entry.oid, "" if name.endswith(".jsonl") else f"{prefix}{name}/", seen, source
            )


def _beside(root: Path) -> Iterator[Source]:
    """Yield contents that were set aside: damaged files, and lines that were taken for foreign."""
    kept = [path for path in nofollow.tree(root / ".agentx" / _KEPT) if ".jsonl" in path.name]
    for path in sorted(kept, reverse=True):
        with contextlib.suppress(OSError):
            yield nofollow.read(path), path.relative_to(root).as_posix()
    with contextlib.suppress(OSError):
        for entry in nofollow.read(root / ORPHANS).splitlines():
            with contextlib.suppress(ValueError, AttributeError):
                content = json.loads(entry).get("content")
                yield f"{content}\n".encode("utf-8", "surrogateescape"), ORPHANS


def _named(git_dir: Path) -> list[str]:
    """Return every commit that a ref, a reflog, a stash or Git's own bookkeeping names."""
    found: dict[str, None] = {}
    files = [git_dir / "packed-refs", *nofollow.listed(git_dir, suffix="_HEAD")]
    files += [path for folder in ("refs", "logs") for path in sorted(nofollow.tree(git_dir / folder))]
    for path in files:
        with contextlib.suppress(OSError):
            found |= dict.fromkeys(oid.decode() for oid in reversed(_OID.findall(nofollow.read(path))))
    return list(found)


def _of_objects(reader: ObjectReader, seen: set[str], source: str) -> Iterator[Source]:
    """Yield every blob that may hold log lines, reachable or not."""
    for oid in _all(reader):
        if oid in seen:
            continue
        with contextlib.suppress(ObjectDamaged, OSError):
            kind, content = reader.read(oid)
            if kind == "blob" and _LINE.search(content):
                yield content, source


def _all(reader: ObjectReader) -> Iterator[str]:
    for folder in reader.folders:
        yield from (oid for oid, _ in loose_objects(folder))
    yield from reader.packed()


def _remotes(git_dir: Path) -> Iterator[tuple[str, Path]]:
    """Yield name and Git directory of each remote that is a directory on this machine."""
    for name, url in local.remotes(git_dir).items():
        with contextlib.suppress(OSError, ValueError):
            place = (git_dir.parent / url.removeprefix("file://")).resolve()
            for folder in (place / ".git", place):
                if nofollow.is_directory(folder / "objects"):
                    yield name, folder
                    break
