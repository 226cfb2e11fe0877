"""What strace saw: which records were on the disk for certain when they were acknowledged."""

import re
from collections.abc import Iterable
from typing import Any

TRACED = "trace=getpriority,write,pwrite64,writev,pwritev,fsync,fdatasync,sync_file_range,msync,syncfs,sync"
COMMAND = ("strace", "-f", "-qq", "-y", "-s", "200000", "-e", "signal=none", "-e", TRACED, "-o")

_CALL = re.compile(r"^(\d+)\s+(?:<\.\.\. )?(\w+)(?: resumed>)?")
_PATH = re.compile(r"\(\d+<([^>]+)>")
_MARK = re.compile(r"record-8-(\d+)-")
_SYNCS = ("fsync", "fdatasync", "sync_file_range", "msync", "syncfs", "sync")


def synced(lines: Iterable[str], folder: str) -> dict[str, Any]:
    """Return syncs for each append, and how many records were synced before they were acknowledged.

    A record is synced when a file that its text was written to is synced afterwards. Bytes that were written to files of the
    folder and not synced by the last acknowledgement are what a power cut may take.
    """
    begun, syncs, at_acknowledgement, acknowledged = False, 0, 0, 0
    seen: set[int] = set()
    certain: set[int] = set()
    waiting: dict[str, set[int]] = {}
    dirty: dict[str, int] = {}
    going: dict[str, str] = {}
    for line in lines:
        if not (call := _CALL.match(line)):
            continue
        pid, name = call[1], call[2]
        resumed = "resumed>" in line[:60]
        if name == "getpriority":
            if resumed:  # it was counted when it began
                continue
            if begun:
                at_acknowledgement += acknowledged in certain
                acknowledged += 1
            begun = True
            continue
        path = going.pop(pid, "") if resumed else (found[1] if (found := _PATH.search(line[:4_000])) else "")
        if name in _SYNCS:
            if "<unfinished" in line:
                going[pid] = path
                continue
            syncs += begun
            certain |= waiting.pop(path, set())
            dirty.pop(path, None)
        elif not resumed and path.startswith(folder) and begun:
            marks = {int(number) for number in _MARK.findall(line)}
            seen |= marks
            waiting.setdefault(path, set()).update(marks)
            dirty[path] = dirty.get(path, 0) + _written(line)
    return {
        "syncs_per_append": syncs / max(1, acknowledged),
        "acknowledged": acknowledged,
        "synced": at_acknowledgement,
        "seen": len(seen),
        "unsynced_bytes": sum(size for path, size in dirty.items() if not path.endswith("-shm")),
    }


def _written(line: str) -> int:
    found = re.search(r"= (\d+)$", line.rstrip())
    return int(found[1]) if found else 0
