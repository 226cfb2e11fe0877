"""Draw the pictures of docs/samples.md: the telling lines of each sample, as a terminal showed them.

``python -m tests.draw_gallery [NAME…]`` plays the samples, offline, and writes ``docs/images/samples/NAME.svg``. Nothing but the cut is
made: each picture consists of lines of the run, with ``⋯`` where lines are left out.
"""

import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from agentx.cli.work.run import _FONT_FACE

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "images" / "samples"
WIDTH = 96
"""Columns."""

MOMENTS: dict[str, tuple[tuple[str, str], ...]] = {
    "disable-cache": (
        ("3 of 3 ·", "Then in pyproject.toml, as you said."),
        ("edit_file  pyproject.toml", "commit "),
    ),
    "rejected-idea": (("5 of 6 ·", "r-3 ·"), ("The form is there already.", "commit ")),
    "settled": (("1 of 5 ·", "last agency leave us?"), ("settle  id c-3", "No item c-99")),
    "deploy-flow": (
        ("3 of 10 ·", "r-1 ·"),
        ("I know how this goes", "begin with the first step."),
        ("The first step, then.", "╰─"),
    ),
    "lesson-to-check": (("5 of 6 ·", "r-2 ·"), ("A word, at random.", "run_tests passed")),
    "recovery": (("3 of 5 ·", "paid routing service"), ("## Open problems", "(1, 1, 10)")),
    "news-monitor": (
        ("run  30 FAILED", "run  31"),
        ("issue resolved", 'use "ines@quill.example".'),
        ("60 runs ", "prompt   "),
    ),
    "appointment-reminders": (("8 of 8 ·", "(run r-6)."), ("20 mornings", "patients and numbers")),
    "job-offers": (("3 of 5 ·", "run  14"), ("5 of 5 ·", "(run r-1)."), ("20 days", "list of numbers")),
    "garden": (("3 of 7 ·", "Done: water"), ("28 due times", "a timer")),
    "long-conversation": (
        ("148 ✓", "What do I do for a living?"),
        ("150 ✓", "and came back)"),
        ("messages   155", "faded  "),
    ),
    "technical-book": (("Tally, from the inside  COMPLETED", "typeset  "),),
    "fables": (("9 of 10", "Continue with"), ("Fables in two languages  COMPLETED", "index  ")),
}
"""The lines that a picture shows: from the first that has a text to the next one that has another."""


def play(name: str) -> str:
    """Play a sample; what it prints, with its colours."""
    with tempfile.TemporaryDirectory(prefix="agentx-gallery-") as folder:
        environ = {
            **os.environ, "AGENTX_NO_SERVER": "1", "HOME": folder, "FORCE_COLOR": "1", "TTY_INTERACTIVE": "0",
            "COLUMNS": str(WIDTH),
        }  # fmt: skip
        command = [
            sys.executable,
            "-P",
            "-m",
            "agentx",
            "run",
            "--sample",
            name,
            "--into",
            f"{folder}/{name}",
        ]
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environ,
            capture_output=True,
            text=True,
            check=True,
            stdin=subprocess.DEVNULL,
        )
        return done.stdout


def cut(lines: Sequence[Text], moments: Sequence[tuple[str, str]]) -> Iterator[Text]:
    """Yield the lines of some moments, in order.

    Raises:
        ValueError: The run has no such lines.
    """
    at = 0
    for number, (first, last) in enumerate(moments):
        begin = next((n for n in range(at, len(lines)) if first in lines[n].plain), -1)
        end = next((n for n in range(begin, len(lines)) if last in lines[n].plain), -1)
        if begin < 0 or end < 0:
            raise ValueError(f"No lines from {first!r} to {last!r}.")
        if number and begin > at:
            yield Text("⋯", style="dim")
        yield from lines[begin : end + 1]
        at = end + 1


def drawn(name: str, printed: str) -> str:
    """Return the picture of a sample as SVG."""
    console = Console(
        record=True,
        width=WIDTH,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        highlight=False,
    )
    lines = [Text.from_ansi(line) for line in printed.splitlines()]
    for line in cut(lines, MOMENTS[name]):
        line.rstrip()
        console.print(line, soft_wrap=True)
    return _FONT_FACE.sub("", console.export_svg(title=f"agentx run --sample {name}", theme=MONOKAI))


def main() -> None:
    """Play and draw the samples that are named, or all."""
    PICTURES.mkdir(exist_ok=True)
    for name in sys.argv[1:] or MOMENTS:
        (PICTURES / f"{name}.svg").write_text(drawn(name, play(name)), "utf-8")
        print(name)


if __name__ == "__main__":
    main()
