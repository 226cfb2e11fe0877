"""A year of a busy workspace: what everything costs, and how it grew from a tenth of that size.

A cost that grows like n ** e has the exponent e: 0 for what is flat, 1 for what is linear. Exponents are those of processor
time, which other work on the machine disturbs least.
"""

import json
import math
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.figures import Figure, number

from .clock import Taken
from .grown_year import FILES, TURN, taken_s
from .grown_year import year as made
from .product import ROOT
from .scale import Scale
from .turns import Child, take_turns

FLAT, LINEAR = 0.1, 1.05
TENTH = 10
_LEAST_MS = 0.05
"""A cost below this is mostly that of the measuring; its growth says nothing."""


@dataclass(frozen=True)
class Operation:
    """What is measured.

    Attributes:
        said: What a person reads.
        limit: The exponent that is promised.
        at_least: The worst time that is good enough, ms by the clock, at a million events; ``None`` for none.
        aim: What is aimed at.
    """

    said: str
    limit: float
    at_least: float | None = None
    aim: float | None = None


OPERATIONS = {
    "append": Operation("append one event", FLAT, 0.35, 0.25),
    "write_file": Operation("write_file of 4 KB", FLAT, 2.0, 1.2),
    "say": Operation("say, no demand", FLAT, 3, 2),
    "say_demand": Operation("say, with a demand", FLAT, 6, 4),
    "log": Operation("the last 20 events", FLAT),
    "gate": Operation("gate before an action", LINEAR),
    "memory_list": Operation("memory list", LINEAR),
    "boot": Operation("boot", LINEAR),
    "status": Operation("status", LINEAR),
    "context": Operation("get_relevant_context", LINEAR),
    "search": Operation("search", LINEAR),
    "maintain": Operation("maintain, the first time", LINEAR),
    "maintain_again": Operation("maintain, again", LINEAR),
    "open": Operation("open, with a snapshot", LINEAR),
    "rebuild": Operation("rebuild: parse, check the chain, fold", LINEAR),
    "verify": Operation("verify", LINEAR),
}
_MEMORY = {
    "opened": "a process that did all but rebuild and verify",
    "rebuilt": "a rebuild",
    "verified": "a verify",
}
_REBUILT_PER_S = (400_000, 400_000)


def exponent(small: float, large: float, times: float = TENTH) -> float:
    """Return e, where a cost grew like n ** e while n grew so many times.

    >>> exponent(2.0, 20.0), exponent(5.0, 5.0), round(exponent(1.0, 2.0), 2)
    (1.0, 0.0, 0.3)
    """
    return math.log(large / small) / math.log(times)


def year(scratch: Path, scale: Scale) -> Iterator[Figure]:
    """Make both workspaces, or take them where they were kept, and measure copies of them by turns."""
    sizes = {"tenth": scale.year_events // TENTH, "whole": scale.year_events}
    kept = scale.kept or scratch
    roots = {name: made(kept, events) for name, events in sizes.items()}
    said = f"{_size(scale.year_events)} are made, s"
    yield Figure("year_made_s", said, taken_s(kept, scale.year_events), comparable=False)
    copies = {name: _copy(root, scratch / f"lived-{name}") for name, root in roots.items()}
    found = {part: _lived(part, copies, scratch, scale) for part in ("rebuilt", "verified", "opened")}
    small, large = (_parts(found, name) for name in sizes)
    yield from times(small, large, promised=scale.year_events >= 1_000_000)
    events, seconds = scale.year_events, min(large["rebuild"].clock)
    yield Figure(
        "year_rebuilt_per_s",
        "rebuild, events/s",
        events / seconds,
        *(_REBUILT_PER_S if events >= 1_000_000 else (None, None)),
        more_is_better=True,
        processor=statistics.median(large["rebuild"].processor),
        beside=f"{events / min(large['rebuild'].processor):,.0f} for each second of processor",
    )
    checks = {name.removeprefix("verify_"): one for name, one in large.items() if name.startswith("verify_")}
    seconds_of = ", ".join(f"{name} {number(one.clock[0])}" for name, one in checks.items())
    yield Figure("year_verified_s", "verify, s", large["verify"].clock[0], beside=seconds_of)
    for part, said in _MEMORY.items():
        few, many = (found[part][name]["mb"] for name in ("tenth", "whole"))
        yield Figure(
            f"year_memory_{part}_mb", f"memory at most of {said}, MB", many, beside=f"a tenth {few:,.0f}"
        )
        yield growth(f"year_memory_{part}_exponent", exponent(few, many), LINEAR)
    for copy in copies.values():
        shutil.rmtree(copy)


def times(small: Mapping[str, Taken], large: Mapping[str, Taken], *, promised: bool) -> Iterator[Figure]:
    """Return the figures of each operation at both sizes: what it takes, and how that grew."""
    for name, operation in OPERATIONS.items():
        few, many = small[name], large[name]
        used = {"t": few.processor_ms, "w": many.processor_ms}
        limits = (operation.at_least, operation.aim) if promised else (None, None)
        beside = f"processor {number(used['w'])} ms, a tenth {number(used['t'])}; p95 {number(many.percentile_ms(95))}"
        said = f"{operation.said}, p50, ms"
        yield Figure(f"year_{name}_p50_ms", said, many.median_ms, *limits, beside=beside, processor=used["w"])
        if min(used.values()) >= _LEAST_MS:
            yield growth(f"year_{name}_exponent", exponent(used["t"], used["w"]), operation.limit)


def growth(key: str, value: float, limit: float) -> Figure:
    """Return the figure of an exponent, beside its limit."""
    kind = "flat" if limit == FLAT else "linear"
    said = f"    exponent of its growth from a tenth; {kind}"
    return Figure(key, said, value, limit, limit, comparable=False)


def _size(events: int) -> str:
    files, items = events // TURN * FILES, events // 200
    return f"{events:,} events, {files:,} files, {files * 2:,} passages, {items:,} items"


def _copy(root: Path, place: Path) -> Path:
    subprocess.run(["cp", "-a", "--reflink=auto", root, place], check=True)
    return place


def _lived(part: str, roots: Mapping[str, Path], scratch: Path, scale: Scale) -> dict[str, dict]:
    """Measure a part in a process for each size, by turns."""
    program, rounds = (
        [sys.executable, "-m", "tests.bench.lived", part],
        [scale.year_rounds, scale.year_writes],
    )
    children = {
        name: Child([*program, str(root), str(scratch), *map(str, rounds)], ROOT, os.environ)
        for name, root in roots.items()
    }
    take_turns(list(children.values()))
    found = {}
    for name, child in children.items():
        status, output, errors = child.result()
        if status:
            raise RuntimeError(f"{part} {name}: {errors}")
        found[name] = json.loads(output.splitlines()[-1])
    return found


def _parts(found: Mapping[str, Mapping[str, dict]], size: str) -> dict[str, Taken]:
    return {name: Taken(**taken) for part in found.values() for name, taken in part[size]["parts"].items()}
