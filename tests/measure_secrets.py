"""``python -m tests.measure_secrets [DIR...]``: how many secrets are found, and what is taken for one that is none.

Without a directory, the standard library is read. Each finding there is printed with its place, to be looked at by eye.
"""

import gzip
import os
import statistics
import sys
import sysconfig
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from agentx.storage.secrets.redaction import find, redact

from .storage.secret_samples import HARMLESS, hashes, samples
from .storage.wrapped_samples import innocent, missed, wrapped

SKIPPED = {"__pycache__", "site-packages", "test", "tests", ".git"}
TEXT_BYTES = 500


def main(arguments: Sequence[str]) -> None:
    """Print recall, false findings and cost."""
    every = list(samples())
    found = sum(sample.secret not in redact(sample.text) for sample in every)
    print(f"recall      {found} of {len(every)} generated secrets ({100 * found / len(every):.1f}%)")
    for name, hidden in (("wrapped", wrapped(each=6)), ("places", missed(each=4))):
        found = sum(
            sample.secret not in (told := redact(sample.text)) and told != sample.text for sample in hidden
        )
        print(f"{name:11} {found} of {len(hidden)}")
    machine = list(hashes(2_000))
    for name, texts in (("harmless", HARMLESS), ("innocent", list(innocent())), ("hashes", machine)):
        print(f"{name:11} {sum(bool(find(text)) for text in texts)} false findings in {len(texts):,} texts")
    pieces: list[str] = []
    for place in arguments or [sysconfig.get_path("stdlib")]:
        size = count = 0
        for path, text in _texts(Path(place), top=Path(place)):
            size += len(text)
            pieces += [
                text[at : at + TEXT_BYTES] for at in range(0, min(len(text), 20 * TEXT_BYTES), TEXT_BYTES)
            ]
            for one in find(text):
                count += 1
                line = text.count("\n", 0, one.start) + 1
                print(
                    f"  {path}:{line}: {one.rule}: {redact(text[max(0, one.start - 60) : one.end])[-90:]!r}"
                )
        print(f"{place}: {count} findings in {size / 1e6:.1f} MB")
    print(f"cost        {_median_us(pieces[:20_000]):.1f} µs for {TEXT_BYTES} characters, median")


def _texts(place: Path, top: Path) -> Iterator[tuple[Path, str]]:
    for entry in sorted(os.scandir(place), key=lambda entry: entry.name):
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            if entry.name not in SKIPPED:
                yield from _texts(path, top)
        elif entry.is_file():
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            if b"\0" not in data[:8_000]:
                yield path.relative_to(top), data.decode("utf-8", "replace")


def _median_us(texts: Sequence[str]) -> float:
    taken = []
    for text in texts:
        started = time.perf_counter()
        find(text)
        taken.append(time.perf_counter() - started)
    return statistics.median(taken) * 1e6


if __name__ == "__main__":
    main(sys.argv[1:])
