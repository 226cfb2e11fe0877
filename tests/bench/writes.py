"""What a change costs: one event, one file, ten thousand files."""

import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from agentx import Workspace
from agentx.storage.events.types import AgentThoughtProcess, Body, Draft
from agentx.storage.git.packs.packing import Packer
from tests.figures import Figure

from .clock import Taken, in_turns
from .grown import path_of, settings, text, with_events, with_files
from .peers import SLOW, Peers
from .scale import Scale

_LINE = b"x" * 400 + b"\n"
_WARM_UP = 5


def append(scratch: Path, scale: Scale) -> Iterator[Figure]:
    thought = Draft(data=AgentThoughtProcess(body=Body(text(1, 250))), actor="agent:main", run="r-1")
    raw = os.open(scratch / "raw", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def sync(_turn: int) -> None:
        os.write(raw, _LINE)
        os.fdatasync(raw)

    with Workspace.create(scratch / "append", settings=settings(scratch)) as ws:
        taken = in_turns({"ours": lambda _turn: ws.record(thought), "raw": sync}, 4 * scale.writes)
    os.close(raw)
    ours, floor = taken["ours"].median_ms, taken["raw"].median_ms
    yield Figure(
        "append_event_p50_ms",
        "append one event, durable, p50, ms",
        ours,
        0.6,
        0.3,
        beside=f"a line and fdatasync {floor:.2f} ms: {ours / floor:.1f} times",
        processor=taken["ours"].processor_ms,
    )


def write_file(scratch: Path, scale: Scale) -> Iterator[Figure]:
    """At few files and few events, at many files, and at many events; the peers at few and at many files."""
    sizes = (scale.few_files, scale.many_files)
    grown = {
        "few": with_events(scratch, scale.few_events, scale.few_files),
        "files": with_files(scratch, scale.many_files),
        "events": with_events(scratch, scale.many_events, scale.few_files),
    }
    files = {"few": scale.few_files, "files": scale.many_files, "events": scale.few_files}
    work = {name: _writer(ws, files[name]) for name, ws in grown.items()}
    rounds = dict.fromkeys(work, scale.writes)
    for size in sizes:
        for name, change in Peers(scratch, size).all().items():
            work[f"{name} {size}"] = change
            rounds[f"{name} {size}"] = scale.slow_peer_writes if name in SLOW else scale.peer_writes
    for ws in grown.values():
        ws.settle(0)
    for turn in range(_WARM_UP):
        for name in grown:
            work[name](-1 - turn)
    taken = in_turns(work, rounds)
    for ws in grown.values():
        ws.close()
    yield from _written(scale, taken)


def _writer(ws: Workspace, files: int):
    def write(turn: int) -> None:
        ws.tools.write_file(path_of(turn * 7919 % files), text(turn))

    return write


def _written(scale: Scale, taken: dict[str, Taken]) -> Iterator[Figure]:
    few, many, long = (taken[name].median_ms for name in ("few", "files", "events"))
    for key, name, said in (
        ("write_file_p50_ms", "few", f"{scale.few_files:,} files, {scale.few_events:,} events"),
        ("write_file_many_files_p50_ms", "files", f"{scale.many_files:,} files"),
        ("write_file_many_events_p50_ms", "events", f"{scale.many_events:,} events"),
    ):
        beside = f"processor {taken[name].processor_ms:.2f} ms; p95 {taken[name].percentile_ms(95):.1f} ms"
        measure = f"write_file of 4 KB, p50, ms: {said}"
        processor = taken[name].processor_ms
        yield Figure(key, measure, taken[name].median_ms, 3, 1.5, beside=beside, processor=processor)
    spread = max(few, many, long) / min(few, many, long)
    yield Figure("write_file_spread", "  the slowest of these, times the fastest", spread, 1.5, 1.2)
    for size, name, at_least, aim in ((scale.few_files, "few", 4, 10), (scale.many_files, "files", 80, 150)):
        ours = taken[name]
        promised = (at_least, aim) if size in (100, 100_000) else (None, None)
        others = {name.split()[0]: value for name, value in taken.items() if name.endswith(f" {size}")}
        times = {name: value.median_ms / ours.median_ms for name, value in others.items()}
        beside = ", ".join(
            f"{name} {others[name].median_ms:,.0f} ms = {ratio:,.0f}" for name, ratio in times.items()
        )
        beside += f"; git's processor {others['git'].processor_ms / ours.processor_ms:,.1f}"
        said = f"  git add + git commit takes so many times as long: {size:,} files"
        yield Figure(
            f"git_ratio_{size}_files", said, times["git"], *promised, more_is_better=True, beside=beside
        )


def packed(scratch: Path, scale: Scale) -> Iterator[Figure]:
    """Many small writes: what they leave on the disk, and what the work in the background does to them."""
    root = scratch / "packed"
    times: dict[tuple[bool, bool], list[float]] = {}
    most_loose = 0
    with Workspace.create(root, settings=settings(scratch)) as ws:
        keeper = ws._keeper
        for number in range(scale.packed_writes):
            indexing = number >= scale.packed_writes // 2
            if indexing:
                ws.engine.indexer.start()
            packing = keeper._packing is not None
            start = time.perf_counter()
            ws.tools.write_file(path_of(number % 1_000), text(number, 250))
            times.setdefault((packing, indexing), []).append(time.perf_counter() - start)
            if number % 200 == 0:
                most_loose = max(most_loose, _loose(root))
    while (done := Packer(root / ".git").run()).packed or done.busy:  # the keeper's may be at work still
        time.sleep(0.1)
    size = sum(path.lstat().st_blocks for path in (root / ".git").rglob("*")) * 512 / 1e6
    beside = f"at most {most_loose:,} loose objects, {len(list(root.glob('.git/objects/pack/*.pack')))} packs"
    said = f"disk after {scale.packed_writes:,} small writes, packed, MB"
    promised = (25, 12) if scale.packed_writes == 10_000 else (None, None)
    yield Figure("disk_packed_mb", said, size, *promised, beside=beside)
    alone = times.get((False, False), [])
    for key, said, while_at_work in (
        ("packing_delay_p50_ms", "packing", times.get((True, False))),
        ("indexing_delay_p50_ms", "indexing", times.get((False, True))),
    ):
        if alone and while_at_work:
            delay = (statistics.median(while_at_work) - statistics.median(alone)) * 1e3
            beside = f"{len(while_at_work):,} writes during it, {len(alone):,} alone at {statistics.median(alone) * 1e3:.2f} ms"
            yield Figure(
                key, f"{said} in the background delays a write by, p50, ms", delay, 1, 0.3, beside=beside
            )


def _loose(root: Path) -> int:
    return sum(len(os.listdir(folder)) for folder in root.glob(".git/objects/??"))
