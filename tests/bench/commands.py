"""Whole commands in a workspace of 20,000 events, with a server and without, as multiples of `python -c pass` in the same run."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import agentx
from agentx import Workspace
from tests.figures import Figure

from .clock import Taken, in_turns
from .grown import settings
from .scale import Scale
from .worked import worked

PROGRAM = """\
import re
import sys
from agentx.cli.main import main
if __name__ == '__main__':
    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])
    sys.exit(main())
"""
"""What pip writes as the program `agentx`."""

_WARM: dict[str, tuple[float, float]] = {
    "status": (5, 3),
    "memory list": (5, 3),
    "say Hello": (5, 3),
    "log": (5, 3),
    "gate pre deploy": (5, 3),
    "context invoices": (8, 4),
    "search invoices": (8, 4),
}
"""Command lines, each with the multiple that is required with a server, and the one that is aimed at."""

_SETTLE_S = 300
_START_S = 30.0
_HOOK_PERCENT = 95


def commands(scratch: Path, scale: Scale) -> Iterator[Figure]:
    """Each command by the clock, by turns with `python -c pass`: cold, and warm where the code has a server."""
    root = worked(scratch, scale.day_events, "commands")
    with Workspace.open(root, settings=settings(scratch)) as ws:
        ws.settle(_SETTLE_S)
    program = scratch / "agentx"
    program.write_text(PROGRAM)
    environ = {
        **os.environ,
        "AGENTX_CACHE_DIR": str(scratch / "no-models"),
        "AGENTX_STATE_DIR": str(scratch / "state"),
        "PYTHONPATH": str(Path(agentx.__file__).parents[1]),  # the revision that is measured
    }
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    lines = ["--version", *_WARM]
    taken = _by_turns(program, root, {**environ, "AGENTX_NO_SERVER": "1"}, lines, scale.cold_rounds)
    for line in lines:
        promised = (3, 2) if line == "--version" else (None, None)
        yield _figure("cold", line, taken, *promised)
    if find_spec("agentx.client") is None:
        return
    with _server(program, root, environ) as served:
        taken = _by_turns(program, root, served, list(_WARM), scale.warm_rounds)
    for line, promised in _WARM.items():
        yield _figure("warm", line, taken, *promised)
    hook, floor = taken["gate pre deploy"], taken[_FLOOR]
    yield Figure(
        "commands_hook_p95_x",
        "gate pre as a hook, warm, p95, times python -c pass",
        hook.percentile_ms(_HOOK_PERCENT) / floor.median_ms,
        5,
        5,
        beside=f"{hook.percentile_ms(_HOOK_PERCENT):.1f} ms",
    )


_FLOOR = "python -c pass"


def _by_turns(
    program: Path, root: Path, environ: Mapping[str, str], lines: Sequence[str], rounds: int
) -> dict[str, Taken]:
    calls = {line: [sys.executable, str(program), *line.split()] for line in lines}
    calls[_FLOOR] = [sys.executable, "-c", "pass"]

    def call(line: str) -> None:
        subprocess.run(
            calls[line], cwd=root, env=environ, stdin=subprocess.DEVNULL, capture_output=True, check=True
        )

    for line in calls:
        call(line)  # once before it counts
    return in_turns({line: lambda _turn, line=line: call(line) for line in calls}, rounds)


def _figure(
    how: str, line: str, taken: Mapping[str, Taken], at_least: float | None, aim: float | None
) -> Figure:
    found, floor = taken[line], taken[_FLOOR]
    ratio = statistics.median(a / b for a, b in zip(found.clock, floor.clock, strict=True))
    name = line.strip("-").replace(" ", "_")
    return Figure(
        f"commands_{how}_{name}_x",
        f"agentx {line}, {how}, times python -c pass",
        ratio,
        at_least,
        aim,
        beside=f"{found.median_ms:.0f} ms; python -c pass {floor.median_ms:.1f} ms",
        processor=found.processor_ms / floor.processor_ms,
    )


@contextmanager
def _server(program: Path, root: Path, environ: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """Run a server; yield the environment with which commands use it."""
    with tempfile.TemporaryDirectory(prefix="agentx-rt-") as place:
        served = {**environ, "AGENTX_NO_SERVER": "", "AGENTX_RUNTIME_DIR": place}
        with subprocess.Popen([sys.executable, str(program), "serve"], cwd=root, env=served) as process:
            try:
                end = time.monotonic() + _START_S
                while not (Path(place) / "socket").exists() and time.monotonic() < end:
                    time.sleep(0.05)
                yield served
            finally:
                with suppress(ProcessLookupError):
                    process.terminate()
