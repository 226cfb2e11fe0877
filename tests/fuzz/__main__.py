"""Look for inputs that break what reads bytes from strangers: ``python -m tests.fuzz [--seconds N] [TARGET…]``.

Each target runs in a process of its own, for atheris ends the process where it finds something. What it found is kept in a
file, and ``--repeat FILE TARGET`` runs it again. Our modules are loaded by the process that looks, for atheris to follow.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_LONGEST_INPUT_S = 20
"""An input that takes longer hangs."""

_MEMORY_MB = 2_000


def main(arguments: Sequence[str]) -> int:
    """Run the targets; 1 where one of them was broken."""
    options = _parser().parse_args(arguments)
    if options.inside:
        _look(options.targets[0], options.inside, options.seconds)
        return 0
    from .targets import TARGETS

    for name in options.targets:
        if name not in TARGETS:
            sys.stderr.write(f"agentx: there is no target {name}; there are {', '.join(TARGETS)}.\n")
            return 2
    if options.repeat:
        _once(TARGETS[options.targets[0]], options.repeat.read_bytes())
        return 0
    return max([_run(name, options.seconds) for name in options.targets or TARGETS])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="all by default")
    parser.add_argument("--seconds", type=int, default=30, help="how long each target is tried (30)")
    parser.add_argument("--repeat", type=Path, metavar="FILE", help="run one target on the bytes of a file")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    return parser


def _run(name: str, seconds: int) -> int:
    from .seeds import seeds

    place = Path(tempfile.mkdtemp(prefix=f"agentx-fuzz-{name}-"))
    (place / "corpus").mkdir()
    for number, content in enumerate(seeds(name)):
        (place / "corpus" / str(number)).write_bytes(content)
    command = [sys.executable, "-m", "tests.fuzz", name, "--inside", str(place), "--seconds", str(seconds)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, errors="replace", check=False)
    tried = [line for line in done.stderr.splitlines() if line.startswith("stat::number_of_executed_units")]
    if done.returncode == 0:
        sys.stdout.write(f"{name:<10} {tried[0].split()[-1] if tried else '?':>9} inputs, nothing found\n")
        shutil.rmtree(place)
    else:
        sys.stdout.write(f"{name:<10} BROKEN; the input is in {place}:\n{done.stdout[-3_000:]}\n")
    sys.stdout.flush()
    return min(done.returncode, 1)


def _look(name: str, place: Path, seconds: int) -> None:
    """Let atheris look; it ends the process."""
    import atheris

    with atheris.instrument_imports(include=["agentx"]):
        from .targets import TARGETS
    limits = [f"-max_total_time={seconds}", f"-timeout={_LONGEST_INPUT_S}", f"-rss_limit_mb={_MEMORY_MB}"]
    kept = [f"-artifact_prefix={place}/", "-print_final_stats=1", "-max_len=20000", str(place / "corpus")]
    atheris.Setup([sys.argv[0], *limits, *kept], lambda content: _once(TARGETS[name], content))
    atheris.Fuzz()


def _once(target: Callable[[bytes, Path], None], content: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="agentx-fuzz-", dir=_scratch()) as folder:
        target(content, Path(folder))


def _scratch() -> str | None:
    """In memory, where that can be had: the targets write and sync many small files."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
