"""A run as a picture: what the terminal showed, as an SVG that stands alone."""

import re
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

from agentx.storage.errors import UsageError

_FONT_FACE = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""rich asks a server for its font; a picture that stands alone uses the reader's own."""


def start(console: Console) -> None:
    """Remember from now on what a console shows."""
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
