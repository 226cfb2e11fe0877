"""A run as a picture: the terminal output as a self-contained SVG."""

import re
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

from agentx.storage.errors import UsageError

_FONT_FACE = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Rich loads its font from a server; a self-contained picture uses the reader's font instead."""


def start(console: Console) -> None:
    """Start recording what a console shows."""
    console.record = True


def save(console: Console, path: Path, title: str) -> None:
    """Write what a console has shown since :func:`start`, or since the last picture.

    Raises:
        UsageError: The file cannot be written.
    """
    svg = _FONT_FACE.sub("", console.export_svg(title=title, theme=MONOKAI, clear=True))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(svg, "utf-8")
    except OSError as error:
        raise UsageError(f"The picture {path} cannot be written: {error.strerror}.") from error
