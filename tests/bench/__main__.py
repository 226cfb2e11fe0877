"""Measure what the issue of a database promises, and print one table: ``python -m tests.bench [--scale small|default|full]``."""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.figures import Figure, flat, machine, show

from .cognition import cognition
from .day import day
from .opened import long_history, starts
from .piped import pipeline
from .reopened import reopened
from .scale import SCALES, Scale
from .searched import context, embedding, search
from .writes import append, packed, write_file

MEASURES: dict[str, Callable[[Path, Scale], Iterator[Figure]]] = {
    "append": append,
    "write_file": write_file,
    "reopened": reopened,
    "history": long_history,
    "packed": packed,
    "context": context,
    "search": search,
    "embedding": embedding,
    "starts": starts,
    "day": day,
    "pipeline": pipeline,
    "cognition": cognition,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("measure", nargs="*", choices=[*MEASURES, []], help="which; all by default")
    parser.add_argument("--scale", choices=SCALES, default="default")
    parser.add_argument("--json", action="store_true", help="a flat object in place of the table")
    parser.add_argument("--in", dest="place", type=Path, help="a directory on the disk to be measured")
    wanted = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="agentx-bench-", dir=wanted.place))
    figures: list[Figure] = []
    try:
        for name in wanted.measure or MEASURES:
            start = time.monotonic()
            print(f"{name} …", end=" ", flush=True, file=sys.stderr)
            figures += MEASURES[name](scratch, SCALES[wanted.scale])
            print(f"{time.monotonic() - start:.0f} s", file=sys.stderr)
        if wanted.json:
            print(flat(figures, machine()), flush=True)
        else:
            show(figures, machine())
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
