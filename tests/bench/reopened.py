"""What a workspace costs that was opened again: the writes of the new process, its first context, and the open after a kill."""

import os
import shutil
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from agentx import Workspace
from tests.figures import Figure

from .clock import Taken, in_turns
from .grown import path_of, settings, text, with_files
from .peers import Peers
from .product import ROOT
from .scale import Scale
from .turns import hand_over

_ROUNDS = 5

_CONTEXT = """
import os, sys, time
from pathlib import Path
from agentx import Workspace
from tests.bench.grown import settings
ws = Workspace.open(Path(sys.argv[1]), settings=settings(Path(sys.argv[2])))
ws.say("Never create a requirements.txt file; use pyproject.toml instead.")
start = time.perf_counter()
made = ws.get_relevant_context("what does file 77 hold?")
first = time.perf_counter() - start
while made.late:
    made = ws.get_relevant_context("what does file 77 hold?")
print(first, time.perf_counter() - start, flush=True)
ws.close()
"""

_KILLED = """
import os, signal, sys
from pathlib import Path
from agentx import Workspace
from tests.bench.grown import path_of, settings, text
ws = Workspace.create(Path(sys.argv[1]), settings=settings(Path(sys.argv[2])))
number = 0
while ws.engine.log.state.seq < int(sys.argv[3]):
    ws.say(f"Message {number}: how are payments retried, and who looks at them?")
    ws.tools.write_file(path_of(number % 900), text(number, 300))
    number += 1
    if number % 50 == 0:
        ws.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""

_REOPEN = """
import sys, time
from pathlib import Path
from agentx import Workspace
from tests.bench.grown import settings
start, used = time.perf_counter(), time.thread_time()
ws = Workspace.open(Path(sys.argv[1]), settings=settings(Path(sys.argv[2])))
print(time.perf_counter() - start, time.thread_time() - used, flush=True)
ws.close()
"""


def _run(program: str, *arguments: object, status: int = 0) -> str:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    hand_over()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != status:
        raise RuntimeError(done.stderr)
    return done.stdout


def writes(scratch: Path, scale: Scale) -> Iterator[Figure]:
    """The first write after opening, and the later ones, in turns at each number of files; `git add` and `commit` beside."""
    roots = {}
    for size in scale.reopened_files:
        with with_files(scratch, size, "reopened") as ws:
            roots[size] = ws.root
    first: dict[str, Taken] = {str(size): Taken() for size in roots}
    for turn in range(_ROUNDS):
        for size, root in roots.items():
            with Workspace.open(root, settings=settings(scratch)) as ws:
                first[str(size)].run(lambda ws=ws, turn=turn: ws.tools.write_file(path_of(5), text(turn)))
    opened = {size: Workspace.open(root, settings=settings(scratch)) for size, root in roots.items()}
    work = {
        str(size): lambda turn, ws=ws, size=size: ws.tools.write_file(path_of(turn * 7919 % size), text(turn))
        for size, ws in opened.items()
    }
    rounds = dict.fromkeys(work, scale.writes)
    for size in roots:
        work[f"git {size}"] = Peers(scratch, size).all()["git"]
        rounds[f"git {size}"] = scale.peer_writes
    for ws in opened.values():
        ws.tools.write_file(path_of(9), "the first one")
    later = in_turns(work, rounds)
    for ws in opened.values():
        ws.close()
    for name, key, taken in (("first", "first_write", first), ("later", "later_write", later)):
        least = str(scale.reopened_files[0])
        for size in scale.reopened_files:
            ours, git = taken[str(size)], later[f"git {size}"]
            beside = f"processor {ours.processor_ms:.2f} ms; git add + commit {git.median_ms:.0f} ms"
            said = f"{name} write after reopening, p50, ms: {size:,} files"
            yield Figure(f"reopened_{key}_{size}_files_p50_ms", said, ours.median_ms, beside=beside)
        times = taken[str(scale.reopened_files[-1])].processor_ms / taken[least].processor_ms
        said = "  of the processor, at the most files times at the fewest"
        yield Figure(f"reopened_{key}_spread", said, times, 1.5, 1.2)


def first_context(scratch: Path, scale: Scale) -> Iterator[Figure]:
    """In a process of its own: with no caches at all, and with the index that another process filled."""
    size = scale.reopened_files[1]
    root = scratch / f"reopened-{size}"
    if not root.exists():
        with_files(scratch, size, "reopened").close()
    for name in ("cold", "warm"):
        if name == "cold":
            shutil.rmtree(root / ".agentx")
        first, full = map(float, _run(_CONTEXT, root, scratch).split())
        said = f"first context after opening, {name} index, {size:,} files, s"
        beside = f"one with nothing left out after {full:.1f} s"
        yield Figure(f"first_context_{name}_s", said, first, 1.05, 1.0, beside=beside)


def after_a_kill(scratch: Path, scale: Scale) -> Iterator[Figure]:
    """A session that ends with `kill -9`, opened again: alone, beside another busy process, and without caches."""
    root = scratch / "killed"
    _run(_KILLED, root, scratch, scale.killed_events, status=-signal.SIGKILL)
    for name, busy, caches in (
        ("", 0, True),
        (", beside busy processes", os.cpu_count() or 1, True),
        (", caches deleted", 0, False),
    ):
        load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
        try:
            taken = [_reopen(root, scratch, caches=caches) for _ in range(_ROUNDS)]
        finally:
            for one in load:
                one.kill()
                one.wait()
        clock, processor = (statistics.median(column) * 1e3 for column in zip(*taken, strict=True))
        said = f"open after a kill, {scale.killed_events:,} events{name}, p50, ms"
        key = f"reopen_killed{'_busy' * bool(busy)}{'_cold' * (not caches)}_p50_ms"
        yield Figure(key, said, clock, 300, 100, beside=f"processor {processor:.0f} ms")


def _reopen(root: Path, scratch: Path, *, caches: bool) -> tuple[float, float]:
    again = scratch / "killed-again"
    shutil.rmtree(again, ignore_errors=True)
    shutil.copytree(root, again, symlinks=True, ignore=None if caches else shutil.ignore_patterns(".agentx"))
    clock, processor = map(float, _run(_REOPEN, again, scratch).split())
    return clock, processor


def reopened(scratch: Path, scale: Scale) -> Iterator[Figure]:
    """All three."""
    yield from writes(scratch, scale)
    yield from first_context(scratch, scale)
    yield from after_a_kill(scratch, scale)
