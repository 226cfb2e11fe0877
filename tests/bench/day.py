"""A person's day in a workspace of 20,000 events: what each command costs in a running process, and from a cold start."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from agentx import Workspace
from agentx.storage.events.types import Event
from agentx.synthesis.demands.explanation import explain
from tests.figures import Figure

from .clock import Taken
from .grown import settings
from .product import ROOT
from .scale import Scale
from .worked import worked

HEAVY = (
    "lancedb",
    "pyarrow",
    "pandas",
    "litellm",
    "onnxruntime",
    "tiktoken",
    "tree_sitter",
    "sklearn",
    "numpy",
)
_ROUNDS, _COLD_ROUNDS = 5, 3
_SETTLE_S = 300
_ACTION = "deploy to production"
_MESSAGE = "From now on never deploy on Fridays, and please mend the invoice page of billing."

_LOADED = """
import json, sys
from agentx.cli.main import main
main(sys.argv[2:])
json.dump([name for name in sys.argv[1].split(",") if name in sys.modules] + [len(sys.modules)], sys.stderr)
"""


def day(scratch: Path, scale: Scale) -> Iterator[Figure]:
    """Each command in a running process, worst of five, and as a program of its own, beside the same in an empty workspace."""
    start = time.perf_counter()
    root = worked(scratch, scale.day_events)
    yield Figure(
        "day_made_s", f"a workspace of {scale.day_events:,} events is made, s", time.perf_counter() - start
    )
    empty = scratch / "empty"
    Workspace.create(empty, settings=settings(scratch)).close()
    again = scratch / "worked-cold"
    shutil.copytree(root, again, symlinks=True)
    yield from _running(scratch, root)
    yield from _cold(scratch, again, empty)


def _running(scratch: Path, root: Path) -> Iterator[Figure]:
    with Workspace.open(root, settings=settings(scratch)) as ws:
        start = time.perf_counter()
        ws.settle(_SETTLE_S)
        yield Figure("day_settle_s", "it is indexed for the first time, s", time.perf_counter() - start)
        for name, do in _calls(ws).items():
            taken = Taken()
            for _ in range(_ROUNDS):
                taken.run(do)
            worst = max(taken.clock) * 1e3
            promised = _PROMISED.get(name, (1_000, 200))
            beside = f"p50 {taken.median_ms:.1f} ms; processor {taken.processor_ms:.1f} ms"
            yield Figure(
                f"day_{_key(name.split())}_ms",
                f"{name}, running, worst of {_ROUNDS}, ms",
                worst,
                *promised,
                beside=beside,
            )
        yield from _gated(ws)


def _gated(ws: Workspace) -> Iterator[Figure]:
    """The gate before different calls: words, command lines, and writes of code and of manifests."""
    for said in ("Redis is off the table.", "We're done with Webpack for good.", "no more cron jobs in here"):
        ws.say(said)
    packages = ("httpx", "left-pad", "lodash", "polars", "structlog", "zod")
    ws.gates.before(_ACTION)
    for name, call in {
        "words": lambda n: ("", {"action": f"deploy service {n} to production"}),
        "a command": lambda n: (
            "Bash",
            {"command": f"cd app{n} && npm i -D {packages[n % 6]}@{n} && make build-{n}"},
        ),
        "a write": lambda n: (
            "Write",
            {"file_path": f"src/part{n}.py", "content": f"import {packages[n % 6]}\n\nrate = {n}\n" * 40},
        ),
    }.items():
        taken = Taken()
        for number in range(_GATED):
            tool, given = call(number)
            words = str(given.pop("action", ""))
            taken.run(
                lambda words=words, tool=tool, given=given: ws.gates.before(words, tool=tool, arguments=given)
            )
        yield Figure(
            f"day_gate_{_key(name.split())}_p95_ms",
            f"gate pre before {name}, running, p95 of {_GATED}, ms",
            taken.percentile_ms(95),
            20,
            10,
            beside=f"p50 {taken.median_ms:.1f} ms; processor {taken.processor_ms:.1f} ms",
        )


_GATED = 200
_PROMISED = {"flow check": (50, 20), "gate pre": (1_000, 20)}


def _calls(ws: Workspace) -> dict[str, Callable[[], object]]:
    return {
        "maintain --dry-run": lambda: ws.maintain(dry_run=True),
        "maintain": ws.maintain,
        "memory list": ws.memory,
        "memory --kind rejection": lambda: ws.memory("rejection", status=None),
        "memory explain": lambda: explain(_MESSAGE),
        "flow list": ws.flows.all,
        "flow check": lambda: ws.flows.check(_ACTION),
        "gate pre": lambda: ws.gates.before(_ACTION),
        "gate post": lambda: ws.gates.after(
            "Deployed billing", passed=True, lesson="Watch the totals after it."
        ),
        "boot": ws.boot,
        **{
            f"context --tier {tier}": lambda tier=tier: ws.get_relevant_context(_MESSAGE, tier=tier)
            for tier in range(4)
        },
        "scribe --pending": ws.scribe.pending,
        "backtest": ws.backtest,
        "status": ws.status,
        "log": lambda: _latest(ws),
    }


def _latest(ws: Workspace) -> list[Event]:
    return list(ws.events(max(0, ws.state.seq - 20)))


def _cold(scratch: Path, root: Path, empty: Path) -> Iterator[Figure]:
    """Each as a program of its own: its start, the same where nothing is kept, and what it loads."""
    floor, _ = _timed(scratch, empty, ("--version",))
    bare, _ = _timed(scratch, empty, ("memory", "list"))
    beside = (
        f"processor {floor.processor_ms:.0f} ms; memory list in an empty workspace {bare.processor_ms:.0f} ms"
    )
    yield Figure("day_cold_version_ms", "agentx --version, cold, ms", floor.median_ms, beside=beside)
    for words in _COMMANDS:
        taken, (*heavy, modules) = _timed(scratch, root, words)
        beside = (
            f"processor {taken.processor_ms:.0f} ms, {taken.processor_ms / floor.processor_ms:.1f} times --version; the first time {taken.clock[0] * 1e3:.0f} ms; "
            f"{modules} modules, {', '.join(map(str, heavy)) or 'none of them heavy'}"
        )
        said = " ".join(word if " " not in word else f'"{word[:24]}…"' for word in words)
        yield Figure(f"day_cold_{_key(words)}_ms", f"agentx {said}, cold, ms", taken.median_ms, beside=beside)


_COMMANDS: tuple[tuple[str, ...], ...] = (
    ("memory", "maintain", "--dry-run"),
    ("memory", "maintain"),
    ("memory", "list"),
    ("memory", "--kind", "rejection"),
    ("memory", "explain", _MESSAGE),
    ("flow", "list"),
    ("flow", "check", _ACTION),
    ("gate", "pre", _ACTION),
    ("gate", "post", "Deployed billing", "--pass"),
    ("agent", "boot"),
    *(("context", _MESSAGE, "--tier", str(tier)) for tier in range(4)),
    ("memory", "scribe", "--pending"),
    ("flow", "backtest"),
    ("status",),
    ("log",),
)


def _key(words: Sequence[str]) -> str:
    return "_".join(word.strip("-") for word in words if " " not in word)


def _timed(scratch: Path, root: Path, words: tuple[str, ...]) -> tuple[Taken, list[str | int]]:
    """What a command took as a program of its own, and the heavy modules that it loaded, with the count of all."""
    taken, said = Taken(), [""]
    for _ in range(_COLD_ROUNDS):
        taken.run(lambda: said.append(_agentx(scratch, root, *words)))
    found: list[str | int] = json.loads(said[-1][said[-1].rindex("[") :])
    return taken, found


def _agentx(scratch: Path, root: Path, *words: str) -> str:
    """Run a command in a workspace; what it said on stderr."""
    environ: Mapping[str, str] = {
        **os.environ,
        "AGENTX_CACHE_DIR": str(scratch / "no-models"),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-c", _LOADED, ",".join(HEAVY), *words]
    done = subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stderr
