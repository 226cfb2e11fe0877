"""Fold the whole log, on several processors if it is long.

Sealed segments never change, and the last line of each holds the hash that the next one continues from. So
worker processes follow the chain through stretches of segments, and return the few parts of each stretch that
a state needs. This process folds the stretches in order, as long as each continues the one before.

Damage, a lost segment or a killed worker are handled in one place: from there on, this process reads the log
line by line, as it reads a short log from its beginning.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import IO

import msgspec

from agentx.storage.errors import AgentXError
from agentx.storage.events.codec import GENESIS, Codec
from agentx.storage.log.history import History, OnDamage, Position, count_segments
from agentx.synthesis.memory.record_codec import record_codec
from agentx.synthesis.state.state import State, Stretch, gather

STRETCH_SEGMENTS = 32
"""Number of segments (2 MB) in one stretch."""

SHORT_SEGMENTS = 100
"""A log with fewer segments is folded before worker processes would have started."""

MOST_WORKERS = 4
_AHEAD_BYTES = 1 << 20
"""Pipe buffer for output not read yet, so that no worker waits for another."""

_RUN = """
import sys
sys.path.insert(0, sys.argv[1])
from agentx.synthesis.state.parallel_fold import work
work(*sys.argv[2:])
"""


def fold(
    root: Path, codec: Codec, on_damage: OnDamage | None = None, told: Callable[[int], None] | None = None
) -> State:
    """Return the state of a workspace's whole log. Takes no lock; memory use does not grow with the log.

    Args:
        root: The workspace's directory.
        codec: Knows the event types.
        on_damage: Called with each line that is not the expected event.
        told: Called now and then with the number of the last folded event.

    Raises:
        HistoryDamaged: A line is damaged and ``on_damage`` was not given.
    """
    told = told or (lambda _: None)
    state, segment = State(), 1
    with contextlib.closing(_stretches(root, codec)) as stretches:
        for stretch, behind in stretches:
            if stretch.after != (state.hash or GENESIS):
                break
            state.pass_over(stretch, codec.decode)
            segment = behind
            told(state.seq)
    place = Position(state.seq, state.hash or GENESIS, segment)
    for event in History(root, codec).read(place, on_damage):
        state.apply(event)
        if not event.seq % 1_000:
            told(event.seq)
    return state


def _stretches(root: Path, codec: Codec) -> Generator[tuple[Stretch, int], None, None]:
    """Yield the stretches of a long log up to the first damaged one, each with the next segment's number."""
    segments, count = count_segments(root), min(_processors(), MOST_WORKERS)
    if segments < SHORT_SEGMENTS or count == 1:
        return
    decode = msgspec.json.Decoder(Stretch).decode
    with contextlib.ExitStack() as running, contextlib.suppress(OSError, msgspec.MsgspecError):
        pipes = [
            running.enter_context(_worker(root, codec, segments, number, count)) for number in range(count)
        ]
        for number, first in enumerate(range(1, segments + 1, STRETCH_SEGMENTS)):
            pipe = pipes[number % count]
            yield decode(pipe.readline()), min(first + STRETCH_SEGMENTS, segments + 1)


@contextlib.contextmanager
def _worker(root: Path, codec: Codec, segments: int, number: int, count: int) -> Iterator[IO[bytes]]:
    """Start a worker that reads every ``count``-th stretch, and yield the pipe with its results."""
    here, words = str(Path(__file__).parents[3]), (segments, number, count)
    command = [sys.executable, "-I", "-c", _RUN, here, str(root), codec.fingerprint, *map(str, words)]
    null = subprocess.DEVNULL
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=null, stdout=pipe, stderr=null, pipesize=_AHEAD_BYTES) as process:
        assert process.stdout is not None
        try:
            yield process.stdout
        finally:
            process.kill()


def work(root: str, fingerprint: str, segments: str, number: str, count: str) -> None:
    """Read stretches and write each one to the standard output, up to the first damaged one."""
    codec = record_codec()
    if codec.fingerprint != fingerprint:
        return
    history, step = History(Path(root), codec), int(count) * STRETCH_SEGMENTS
    with contextlib.suppress(AgentXError, OSError):
        for first in range(1 + int(number) * STRETCH_SEGMENTS, int(segments) + 1, step):
            start, last = history.start_of(first), min(first + STRETCH_SEGMENTS - 1, int(segments))
            stretch = gather(start, history.read_whole(start, last))
            sys.stdout.buffer.write(msgspec.json.encode(stretch) + b"\n")
            sys.stdout.buffer.flush()


def _processors() -> int:
    """Return the number of processors available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
