"""Measure what the product promises, and print one table: ``python -m tests.bench [--scale small|default|full|year]``."""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from tests.figures import Figure, baseline, flat, keep_baseline, machine, show

from . import beside
from .scale import SCALES, Scale

MEASURES = {
    "append": "writes:append",
    "write_file": "writes:write_file",
    "crowd": "crowd:crowd",
    "reopened": "reopened:reopened",
    "history": "opened:long_history",
    "packed": "writes:packed",
    "context": "searched:context",
    "search": "searched:search",
    "embedding": "searched:embedding",
    "starts": "opened:starts",
    "day": "day:day",
    "commands": "commands:commands",
    "pipeline": "piped:pipeline",
    "cognition": "cognition:cognition",
    "year": "year:year",
    "peers": "rivals:peers",
    "orchestrators": "orchestrators:orchestrators",
}
"""Module and function of each measure; a module is imported when it is measured, because it uses parts of the product that
another revision may not have."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("measure", nargs="*", choices=[*MEASURES, []], help="which; all by default")
    parser.add_argument("--scale", choices=SCALES, default="default")
    parser.add_argument("--json", action="store_true", help="print an object instead of the table")
    parser.add_argument("--in", dest="place", type=Path, help="a directory on the disk to be measured")
    parser.add_argument("--keep", type=Path, help="a directory that keeps the year, to be used again")
    parser.add_argument("--beside", metavar="REV", help="measure the code of a Git revision too, by turns")
    parser.add_argument("--keep-baseline", action="store_true", help="print later runs beside these figures")
    parser.add_argument("--figures", action="store_true", help=argparse.SUPPRESS)  # see `beside`
    wanted = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # programs start as they do for a user
    names = wanted.measure or SCALES[wanted.scale].measures or list(MEASURES)
    place = wanted.place.absolute() if wanted.place else None
    wanted.keep = wanted.keep.absolute() if wanted.keep else None
    scratch = Path(tempfile.mkdtemp(prefix="agentx-bench-", dir=place))
    try:
        if wanted.beside:
            _compare(names, scratch, wanted)
        else:
            _measure(names, scratch, wanted)
    except beside.Unmeasurable as error:
        sys.exit(f"agentx: {error}")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _measure(names: list[str], scratch: Path, wanted: argparse.Namespace) -> None:
    figures: list[Figure] = []
    scale = replace(SCALES[wanted.scale], kept=wanted.keep)
    for name in names:
        start = time.monotonic()
        print(f"{name} …", end=" ", flush=True, file=sys.stderr)
        figures += measuring(name)(scratch, scale)
        print(f"{time.monotonic() - start:.0f} s", file=sys.stderr)
    if wanted.figures:
        print(beside.as_json(figures), flush=True)
    elif wanted.json:
        print(flat(figures, machine()), flush=True)
    else:
        if wanted.keep_baseline:
            keep_baseline(f"bench {wanted.scale}", figures)
        show(figures, machine(), baseline(f"bench {wanted.scale}"))


def _compare(names: list[str], scratch: Path, wanted: argparse.Namespace) -> None:
    code = beside.extract(wanted.beside, scratch / "code")
    kept = wanted.keep or scratch / "kept"  # one workspace for both codes
    arguments = ["--scale", wanted.scale, "--in", str(scratch), "--keep", str(kept)]
    compared, failures = beside.measure(names, {wanted.beside: code, beside.NOW: beside.HERE}, arguments)
    if wanted.json:
        print(beside.flat(compared, machine(), wanted.beside), flush=True)
    else:
        beside.show(compared, machine(), wanted.beside)
    if failures:
        sys.exit("\n".join(failures))


def measuring(name: str) -> Callable[[Path, Scale], Iterator[Figure]]:
    """Return the function of a measure."""
    module, _, function = MEASURES[name].partition(":")
    found: Callable[[Path, Scale], Iterator[Figure]] = getattr(
        import_module(f"tests.bench.{module}"), function
    )
    return found


if __name__ == "__main__":
    main()
