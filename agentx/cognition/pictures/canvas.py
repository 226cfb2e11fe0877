"""Shared parts of the pictures: colours for light and dark themes, axes placed by pixel, and SVG output.

Every drawn colour is one of :data:`LIGHT`. In the SVG it becomes a CSS variable, for which :data:`COLOURS`
has a light and a dark value. Text stays text, in the reader's own font; nothing is fetched from anywhere.
"""

import io
import logging
import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from agentx.cognition.overview import MODULES
from agentx.pipelines.drawing.text_width import text_width
from agentx.storage.extras import REPORT, needs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LIGHT = {
    "paper": "#fffffe",
    "ink": "#0f172a",
    "soft": "#55637a",
    "line": "#e2e8f0",
    "blue": "#2563eb",
    "teal": "#0d9488",
    "amber": "#d97706",
    "violet": "#7c3aed",
    "red": "#dc2626",
}
_DARK = {
    "paper": "#0f172a",
    "ink": "#f1f5f9",
    "soft": "#a3b1c6",
    "line": "#2b3950",
    "blue": "#60a5fa",
    "teal": "#2dd4bf",
    "amber": "#fbbf24",
    "violet": "#a78bfa",
    "red": "#f87171",
}


def _values(colours: Mapping[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in colours.items())


COLOURS = (
    f":root {{ color-scheme: light dark; {_values(LIGHT)} }}\n"
    f"@media (prefers-color-scheme: dark) {{ :root {{ {_values(_DARK)} }} }}"
)
"""The colours as CSS."""

FONT = "ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"

WIDTH = 920
"""Width of each picture, in pixels."""

COLUMNS = 230
"""Maximum number of columns in a picture; in longer sessions, each represents several interactions."""

MODULE_COLOURS = dict(zip(MODULES, ("teal", "blue", "amber", "violet"), strict=True))

_Value = TypeVar("_Value")


_STYLE: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 11,
    "text.parse_math": False,
    "text.color": LIGHT["ink"],
    "axes.edgecolor": LIGHT["line"],
    "axes.facecolor": "none",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.dpi": 72,
    "svg.fonttype": "none",
    "svg.hashsalt": "agentx",
    "xtick.color": LIGHT["soft"],
    "xtick.major.size": 0,
    "ytick.color": LIGHT["soft"],
    "ytick.major.size": 0,
    "axes.labelcolor": LIGHT["soft"],
}


class Tip(NamedTuple):
    """A tooltip for a part of a picture."""

    part: str
    text: str


@contextmanager
def styled() -> Iterator[None]:
    """Set the style of these pictures for the body of the ``with``.

    The user's own matplotlib settings are ignored, and left unchanged.

    Raises:
        ExtraMissing: matplotlib is not installed.
    """
    logger = logging.getLogger("matplotlib")
    level = logger.level
    logger.setLevel(logging.ERROR)  # it logs about its font cache and the user's own settings
    try:
        with needs(REPORT):
            import matplotlib as mpl  # noqa: PLC0415 - an extra, and heavy: loads when something is drawn

        defaults: Any = mpl.rcParamsDefault
        style = {**defaults, **_STYLE}
        del style["backend"]  # it belongs to the process; no figure here has a window
        with warnings.catch_warnings(), mpl.rc_context():
            # Glyphs missing from matplotlib's font; the reader's own font is used
            warnings.simplefilter("ignore")
            mpl.rcParams.update(style)
            yield
    finally:
        logger.setLevel(level)


def figure_of(width: float, height: float) -> "Figure":
    """Return a figure of this size in pixels."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    return Figure(figsize=(width / 72, height / 72), dpi=72, facecolor=LIGHT["paper"])


def axes_at(figure: "Figure", left: float, top: float, width: float, height: float) -> "Axes":
    """Return axes at a position in pixels from the upper left corner."""
    wide, high = figure.get_size_inches() * 72
    return figure.add_axes((left / wide, 1 - (top + height) / high, width / wide, height / high))


def interaction_axis(axes: "Axes", last: int, *, shown: bool = True, few: bool = False) -> None:
    """Set up an axis of interactions from the first to the last, with a few round numbers."""
    steps = [] if few else round_ticks(last)
    between = [tick for tick in steps if 1 + 0.04 * last < tick < 0.96 * last]
    ticks = sorted({1, *between, last})
    axes.set_xlim(0.4, max(last, 2) + 0.6)
    axes.set_xticks(ticks if shown else [], [f"{tick:,.0f}" for tick in ticks] if shown else [])
    axes.spines["left"].set_visible(False)
    if few and shown:
        first, *_, end = axes.get_xticklabels()[:1] + axes.get_xticklabels()
        first.set_horizontalalignment("left")
        end.set_horizontalalignment("right")


def title_of(axes: "Axes", text: str) -> None:
    """Set a quiet title above a part of a picture."""
    axes.set_title(text, loc="left", fontsize=11, pad=10, color=LIGHT["soft"])


def round_ticks(top: float) -> list[float]:
    """Return four to eight round numbers up to ``top``."""
    if top <= 0:
        return []
    raw = top / 5
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(base * power for base in (1, 2, 5, 10) if base * power >= raw)
    step = max(step, 1.0)
    return [step * number for number in range(math.floor(top / step) + 1)]


def mark_size(count: int, most: float = 36.0) -> float:
    """Return the area of a mark, in square pixels, for this number of marks side by side."""
    return max(8.0, min(most, 100 * most / max(count, 1)))


def per_column(count: int, most: int) -> int:
    """Return how many of ``count`` values share a column, with at most ``most`` columns."""
    return max(1, math.ceil(count / most))


def parts_of(values: Sequence[_Value], size: int) -> Iterator[Sequence[_Value]]:
    """Split values into parts of a size; the last may be shorter."""
    return (values[begin : begin + size] for begin in range(0, len(values), size))


def some_of(values: Sequence[_Value], most: int) -> Sequence[_Value]:
    """Return at most ``most`` of the values, evenly spaced."""
    return values if len(values) <= most else [values[len(values) * n // most] for n in range(most)]


def wrapped(text: str, width: float, size: float, *, lines: int = 2) -> list[str]:
    """Wrap a text to a width in pixels.

    Returns:
        At least one and at most ``lines`` lines; an ellipsis marks a cut.
    """
    found = [""]
    for word in text.split():
        longer = f"{found[-1]} {word}".strip()
        if text_width(longer, size) <= width:
            found[-1] = longer
        elif len(found) < lines and found[-1]:
            found.append(word)
        else:
            found[-1] = longer
            break
    cut = " ".join(found) != " ".join(text.split())
    while text_width(found[-1], size) + 0.8 * size * cut > width and len(found[-1]) > 1:
        found[-1], cut = found[-1][:-1].rstrip(), True
    return [*found[:-1], found[-1] + "…" * cut]


def svg_of(figure: "Figure", name: str, about: str, tips: Sequence[Tip] = ()) -> str:
    """Return a figure as SVG that can be embedded in a page.

    Its colours become CSS variables, its fonts the reader's, and its ids unique on the page.
    """
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = out.getvalue()
    wide, high = (round(side * 72) for side in figure.get_size_inches())
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text[text.index("<svg") :], flags=re.DOTALL)
    for colour, value in LIGHT.items():
        text = text.replace(value, f"var(--{colour})")
    text = re.sub(r"<style type=.*?</style>", "", text, flags=re.DOTALL)  # it would apply to the whole page
    # the coordinates of paths: hundredths of a pixel, on one line
    text = re.sub(r'(?<= )d="[^"]*"', lambda d: " ".join(re.sub(r"(\.\d\d)\d+", r"\1", d[0]).split()), text)
    text = text.replace("font-family: 'DejaVu Sans'", f"font-family: {FONT}")
    text = re.sub(r"(\bid=\"|url\(#|href=\"#)", rf"\g<1>{name}-", text)
    for tip in tips:
        group = f'<g id="{name}-{tip.part}">'
        text = text.replace(group, f"{group}<title>{escape(tip.text)}</title>", 1)
    head = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" '
        f'stroke-linejoin="round" role="img" aria-label="{escape(about)}">'
    )
    return re.sub(r"<svg[^>]*>", lambda _: head, text, count=1)


def alone(svg: str) -> str:
    """Return a picture that works outside the page, with its colours included."""
    end = svg.index(">") + 1
    return f"{svg[:end]}<style>{COLOURS}</style>{svg[end:]}"
