"""Heals a damaged log: rebuilds it from the commits and other copies, verified by its hash chain.

Works on the files alone, under the workspace's lock. Each step can be repeated, so after a crash the next
attempt completes the rest. Foreign lines are set aside first, then damaged files are copied to
``.agentx/repaired``, then each file is replaced atomically, the live log last.
"""

import contextlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from agentx.recording.recovery import find_recorded
from agentx.storage.events.codec import Codec, DamagedLine
from agentx.storage.files import nofollow
from agentx.storage.files.durable import write_file
from agentx.storage.git.checked_reader import CommitInfo, ObjectReader
from agentx.storage.git.objects import ObjectDamaged, blob_id
from agentx.storage.git.recovery.git_repair import Aside, Mended, read_ref
from agentx.storage.git.recovery.log_search import log_sources
from agentx.storage.log.blobs import blob_path
from agentx.storage.log.chain import next_event
from agentx.storage.log.history import LIVE, ORPHANS, SEGMENTS, HistoryDamaged, HistoryWriteFailed
from agentx.storage.log.orphans import Orphans
from agentx.storage.log.proven_log import THIS_PROCESS, Rebuilding, RebuiltLog


def rebuild(
    root: Path,
    codec: Codec,
    *,
    head: str = "",
    known: bytes = b"",
    through: int = 0,
    everywhere: bool = False,
    accept_loss: bool = False,
) -> RebuiltLog:
    """Work out what the log of a workspace should be; changes nothing.

    Args:
        root: The workspace's directory.
        codec: Knows the event types.
        head: The commit to begin with; by default the one that the branch names.
        known: The content of the live log as this process knows it.
        through: The last event that this process knows.
        everywhere: Search every Git object here and in remotes that are directories on this machine.
        accept_loss: Keep the place of events that cannot be found anywhere.
    """
    reader = ObjectReader(root / ".git")
    head = head or read_ref(root / ".git")

    def read(oid: str) -> CommitInfo | None:
        with contextlib.suppress(ObjectDamaged):
            return reader.commit(oid)
        return None

    recorded = find_recorded(read, head)
    tree = reader.commit(recorded.latest).tree if recorded.latest else ""
    folder = reader.entry(tree, SEGMENTS) if tree else None
    held = dict(reader.files(folder.oid, f"{SEGMENTS}/")) if folder else {}
    if tree and (live := reader.entry(tree, LIVE)):
        held[LIVE] = live

    def committed(path: str) -> bytes | None:
        with contextlib.suppress(ObjectDamaged):
            return reader.blob(held[path].oid) if path in held else None
        return None

    name = f"commit {recorded.latest[:12]}"
    segments = sum(path[len(SEGMENTS) + 1 :][:3].isdigit() for path in held)
    sources = chain([(known, THIS_PROCESS)], log_sources(root, reader, head, everywhere=everywhere))
    rebuilt = Rebuilding(
        root, codec, committed, (segments, max(recorded.seq, through), name), sources, accept_loss=accept_loss
    ).run()
    for path, entry in held.items():
        if path == blob_path(entry.oid) and not _holds(root / path, entry.oid):
            with contextlib.suppress(ObjectDamaged):
                rebuilt.files[path], rebuilt.sources[path] = reader.blob(entry.oid), name
    return rebuilt


def _holds(path: Path, oid: str) -> bool:
    with contextlib.suppress(OSError):
        return blob_id(nofollow.read(path)) == oid
    return False


def put_in_place(root: Path, rebuilt: RebuiltLog, aside: Aside) -> Iterator[Mended]:
    """Write the files of a rebuilt log.

    Raises:
        HistoryWriteFailed: The disk refuses; the next attempt writes the remaining files.
    """
    try:
        if rebuilt.foreign:
            Orphans(root / ORPHANS).keep(rebuilt.foreign)
        for path in rebuilt.files:
            aside.copy(root / path)
        for path, content in sorted(rebuilt.files.items(), key=lambda item: item[0] == LIVE):
            write_file(root / path, content)
            source = rebuilt.sources.get(path)
            how = (
                f"was restored from {source}"
                if source
                else f"was cleared of invalid lines, which were moved to {ORPHANS}"
            )
            yield Mended(path, how)
    except OSError as error:
        raise HistoryWriteFailed(
            f"The damaged history of {root} could not be restored: {error.strerror}. Nothing is lost; "
            "free disk space or fix the permissions, then try again."
        ) from error


def require_whole(root: Path, rebuilt: RebuiltLog) -> None:
    """Refuse to continue if events cannot be found anywhere.

    Raises:
        HistoryDamaged: Some events are lost.
    """
    for lost in rebuilt.lost:
        raise HistoryDamaged(
            f"{root / lost.path}, line {lost.line}: {lost.events} cannot be read and no commit contains "
            "it. Recording is blocked until it is restored: run `agentx repair`."
        )


def drops(codec: Codec, committed: bytes, kept: bytes, seq: int, own_hash: str) -> bool:
    """Return whether a log omits an event that a committed log provably holds.

    Args:
        codec: Knows the event types.
        committed: The lines of the commit, which may be damaged.
        kept: The lines of the log, each of which follows from the one before.
        seq: The event before these lines.
        own_hash: Hash of that event.
    """
    lines = kept.splitlines(keepends=True)
    hashes = [own_hash, *(line[-67:-3].decode() for line in lines)]
    known = set(lines)
    for line in committed.splitlines(keepends=True):
        try:
            event = codec.decode(line)
        except DamagedLine:
            continue
        place = event.seq - seq - 1
        if (
            line not in known
            and 0 <= place < len(lines)
            and next_event(codec, line, event.seq, hashes[place])
        ):
            return True
    return False
