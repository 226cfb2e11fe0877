"""Many writers on one workspace: eight threads, and eight processes, beside one writer.

A process of its own does the writing: ``python -m tests.bench.crowd ROOT KIND THREADS``. It waits for a line with the
seconds to write for, and answers with the number of writes that were acknowledged.
"""

import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from agentx import Workspace
from agentx.storage.events.types import AgentThoughtProcess, Body, Draft
from tests.figures import Figure

from .grown import settings, text
from .scale import Scale

_WRITERS = 8
_KINDS = ("record", "say", "write_file")
_CROWDS = {"one": (1, 1), "threads": (1, _WRITERS), "processes": (_WRITERS, 1)}
"""Processes, and threads of each."""


def crowd(scratch: Path, scale: Scale) -> Iterator[Figure]:
    for kind in _KINDS:
        root = scratch / f"crowd-{kind}"
        Workspace.create(root, settings=settings(scratch)).close()
        rates: dict[str, list[float]] = {name: [] for name in _CROWDS}
        for _ in range(scale.crowd_rounds):
            for name, (processes, threads) in _CROWDS.items():
                rates[name].append(_rate(root, kind, processes, threads, scale.crowd_s))
        alone = statistics.median(rates["one"])
        for name in ("threads", "processes"):
            rate = statistics.median(rates[name])
            yield Figure(
                f"crowd_{kind}_{name}_ratio",
                f"{kind}: {_WRITERS} {name} write so many times as much as one writer",
                rate / alone,
                2,
                4,
                more_is_better=True,
                beside=f"{rate:,.0f} a second in all; one writer {alone:,.0f}",
            )


def _rate(root: Path, kind: str, processes: int, threads: int, seconds: float) -> float:
    """How many writes a second some processes acknowledge in all."""
    command = [sys.executable, "-m", "tests.bench.crowd", str(root), kind, str(threads)]
    pipe = subprocess.PIPE
    writers = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(processes)]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.stdin.write(f"{seconds}\n")
        writer.stdin.flush()
    done = [writer.communicate()[0] for writer in writers]
    return sum(map(int, done)) / seconds


def _write(ws: Workspace, kind: str, name: str, seconds: float, done: list[int]) -> None:
    thought = Draft(data=AgentThoughtProcess(body=Body(text(1, 250))), actor="agent:main", run="r-1")
    number, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        if kind == "record":
            ws.record(thought)
        elif kind == "say":
            ws.say(f"The table of {name} has row {number} by now, and another column.")
        else:
            ws.tools.write_file(f"{name}/{number % 50}.txt", text(number))
        number += 1
    done.append(number)


def _main(root: str, kind: str, threads: str) -> None:
    with Workspace.open(Path(root), settings=settings(Path(root).parent)) as ws:
        _write(ws, kind, f"w{os.getpid()}", 0.1, [])
        print("ready", flush=True)
        seconds, done = float(sys.stdin.readline()), []
        crowd = [
            threading.Thread(target=_write, args=(ws, kind, f"w{os.getpid()}-{number}", seconds, done))
            for number in range(int(threads))
        ]
        for thread in crowd:
            thread.start()
        for thread in crowd:
            thread.join()
        print(sum(done), flush=True)


if __name__ == "__main__":
    _main(*sys.argv[1:])
