"""Pictures of memory decay: a curve for each of the most used memories, and an overview of all."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from agentx.cognition.interactions import DecayPoint
from agentx.cognition.overview import Overview
from agentx.cognition.pictures.canvas import (
    COLUMNS,
    LIGHT,
    WIDTH,
    Tip,
    axes_at,
    figure_of,
    interaction_axis,
    mark_size,
    parts_of,
    per_column,
    some_of,
    svg_of,
    wrapped,
)
from agentx.storage.events.cognition_events import Level

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = 15
"""Maximum number of memories with their own curve."""

ROWS = 300
"""Maximum number of rows in the picture of all memories."""

_LEVELS: dict[Level, tuple[str, str]] = {
    "L1": ("violet", "topics and procedures"),
    "L2": ("blue", "what is known"),
    "L3": ("teal", "what happened"),
}
"""The colour of each level, and its meaning."""

_ACROSS = 3
_MARKS = 150
_STEPS = 4
_ACROSS_PIXELS = 280  # width of one panel: finer steps would look the same
_NAMED, _PARTED = 12, 6
"""Minimum row height in pixels to label rows with their memory, and to draw a line between them."""


def decay_picture(seen: Overview) -> str:
    """Draw the decay of the most used memories, each in a small panel."""
    names = _most_used(seen.curves, PANELS)
    if not names:
        return ""
    rows = math.ceil(len(names) / _ACROSS)
    wide, high, gap = (WIDTH - 2 * 24) / _ACROSS, 128, 24
    figure = figure_of(WIDTH, 34 + rows * high + 22)
    last, tips, levels = len(seen.interactions), [], seen.levels
    _decay_legend(figure, sorted(set(levels.values())))
    for number, name in enumerate(names):
        row, column = divmod(number, _ACROSS)
        axes = axes_at(figure, column * (wide + gap) + 4, 34 + row * high + 38, wide - 12, high - 56)
        axes.patch.set_gid(part := f"memory-{number}")
        curve = seen.curves[name]
        accessed, used = sum(p.was_accessed for p in curve), sum(p.was_reinforced for p in curve)
        span = f"interactions {curve[0].interaction_id} to {curve[-1].interaction_id}"
        uses = f"{span}, shown {accessed} times, used {used} times"
        tips.append(Tip(part, f"{name}: {seen.text(name)}\n{uses}"))
        _fading(axes, curve, last, LIGHT[_LEVELS[levels.get(name, "L2")][0]])
        heading = "\n".join(wrapped(seen.text(name), wide - 12, 11))
        axes.set_title(heading, loc="left", fontsize=11, pad=7, linespacing=1.25, color=LIGHT["ink"])
        below = number + _ACROSS >= len(names)
        interaction_axis(axes, last, shown=below, few=True)
        axes.set_ylim(0, 1.12)
        axes.set_yticks([])
    return svg_of(figure, "decay", "How memories fade, and what use makes of them", tips)


def _fading(axes: "Axes", curve: Sequence[DecayPoint], last: int, colour: str) -> None:
    xs: list[float] = []
    ys: list[float] = []
    for x, y in _thinned(
        list(decay_line(curve, max(1, min(_STEPS, _ACROSS_PIXELS // last)))), per_column(last, COLUMNS)
    ):
        if not (xs and x == xs[-1] and math.isclose(y, ys[-1], abs_tol=1e-6)):  # one point, drawn once
            xs.append(x)
            ys.append(y)
    width = max(0.7, min(1.6, 2 * COLUMNS / last))
    axes.fill_between(xs, ys, color=colour, alpha=0.13, lw=0)
    axes.plot(xs, ys, color=colour, lw=width, solid_joinstyle="round")
    size = mark_size(last)
    shown: list[tuple[Iterable[DecayPoint], dict[str, Any]]] = [
        ((p for p in curve[-1:] if not p.was_evicted), {"s": 16, "color": colour, "lw": 0}),
        (_came_up(curve), {"s": size, "fc": LIGHT["paper"], "ec": colour, "lw": 1.3}),
        (
            (p for p in curve if p.was_reinforced),
            {"s": size, "fc": LIGHT["amber"], "ec": LIGHT["paper"], "lw": 1.3},
        ),
        ((p for p in curve if p.was_evicted), {"s": 34, "marker": "x", "lw": 1.8, "color": LIGHT["red"]}),
    ]
    for points, style in shown:
        places = some_of([(point.interaction_id, point.decay_score) for point in points], _MARKS)
        axes.scatter([x for x, _ in places], [y for _, y in places], zorder=3, clip_on=False, **style)


def _thinned(line: Sequence[tuple[float, float]], size: int) -> Iterator[tuple[float, float]]:
    """Reduce each part of a line to its lowest and highest point: more cannot be distinguished."""
    if size == 1:
        yield from line
        return
    for part in parts_of(line, size):
        held = [point for point in part if not math.isnan(point[1])] or part
        ends = {min(held, key=itemgetter(1)), max(held, key=itemgetter(1))}
        yield from sorted(ends)


def _came_up(curve: Sequence[DecayPoint]) -> Iterator[DecayPoint]:
    """Yield the points at which a memory came up: it is in this prompt, and was not in the one before."""
    shown = 0
    for point in curve:
        if point.was_accessed:
            if shown != point.interaction_id - 1 and not point.was_reinforced:
                yield point
            shown = point.interaction_id


def decay_line(curve: Sequence[DecayPoint], steps: int) -> Iterator[tuple[float, float]]:
    """Yield the curve along the exponential; with a gap where the memory was out of the buffer."""
    before: DecayPoint | None = None
    for point in curve:
        if before is not None:
            if before.was_evicted or point.interaction_id - before.interaction_id > 1:
                yield (point.interaction_id, math.nan)
            else:
                for step in range(1, steps + 1):
                    t = step / steps
                    yield (
                        before.interaction_id + t,
                        before.decay_score * math.exp(-t / max(before.stability, 1e-9)),
                    )
        yield (point.interaction_id, point.decay_score)
        before = point


def _decay_legend(figure: "Figure", levels: Sequence[Level]) -> None:
    from matplotlib.lines import Line2D  # noqa: PLC0415

    def mark(**style: Any) -> Line2D:
        return Line2D([], [], ls="", **style)

    lines = [(Line2D([], [], color=LIGHT[_LEVELS[one][0]], lw=1.8), _LEVELS[one][1]) for one in levels]
    marks = [
        (mark(marker="o", ms=5.5, mfc=LIGHT["paper"], mec=LIGHT["soft"], mew=1.3), "came before the agent"),
        (
            mark(marker="o", ms=6, mfc=LIGHT["amber"], mec=LIGHT["amber"]),
            "used by the answer, and so stronger",
        ),
        (mark(marker="x", ms=6, color=LIGHT["red"], mew=1.8), "left the buffer"),
    ]
    shown = [*lines, *marks]
    figure.legend(
        [one for one, _ in shown],
        [name for _, name in shown],
        loc="upper left",
        bbox_to_anchor=(0, 1),
        borderaxespad=0,
        borderpad=0.2,
        ncols=len(shown),
        frameon=False,
        handletextpad=0.4,
        handlelength=1.1,
        columnspacing=1.6,
        labelcolor=LIGHT["soft"],
        fontsize=11,
    )


def _most_used(curves: Mapping[str, Sequence[DecayPoint]], most: int) -> list[str]:
    """Return the memories that answers used most, in the order of their first appearance."""

    def used(name: str) -> tuple[int, int, int]:
        curve = curves[name]
        return (sum(p.was_reinforced for p in curve), sum(p.was_accessed for p in curve), len(curve))

    chosen = set(sorted(curves, key=used, reverse=True)[:most])
    return [name for name in curves if name in chosen]


def memories_picture(seen: Overview) -> str:
    """Draw all memories, one row each, darker if fresher; only where not all have their own curve."""
    if len(seen.curves) <= PANELS:
        return ""
    import numpy as np  # noqa: PLC0415
    from matplotlib.colors import to_rgb  # noqa: PLC0415

    names = _most_used(seen.curves, ROWS)
    last = len(seen.interactions)
    step = per_column(last, 2 * COLUMNS)
    cells = np.zeros((len(names), math.ceil(last / step), 4))
    xs: list[float] = []
    ys: list[float] = []
    levels = seen.levels
    for row, name in enumerate(names):
        cells[row, :, :3] = to_rgb(LIGHT[_LEVELS[levels.get(name, "L2")][0]])
        for point in seen.curves[name]:
            cells[row, (point.interaction_id - 1) // step, 3] = 0.08 + 0.92 * point.decay_score
            if point.was_reinforced:
                xs.append(point.interaction_id)
                ys.append(row)
    tall = max(2.0, min(16.0, 620 / len(names)))
    named = tall >= _NAMED
    left = 300 if named else 4
    figure = figure_of(WIDTH, round(tall * len(names) + 40))
    axes = axes_at(figure, left, 8, WIDTH - left - 16, tall * len(names))
    axes.imshow(
        cells, aspect="auto", interpolation="nearest", extent=(0.5, last + 0.5, len(names) - 0.5, -0.5)
    )
    if tall >= _PARTED:
        axes.hlines([row + 0.5 for row in range(len(names))], 0.5, last + 0.5, color=LIGHT["paper"], lw=1.4)
    axes.scatter(xs, ys, s=max(2.0, tall * 0.9), color=LIGHT["paper"], lw=0)
    axes.set_yticks([])
    if named:
        axes.set_yticks(range(len(names)), [wrapped(seen.text(n), left - 12, 10, lines=1)[0] for n in names])
        axes.tick_params(axis="y", labelsize=10, pad=6)
    axes.spines[:].set_visible(False)
    interaction_axis(axes, last)
    return svg_of(figure, "memories", "All memories: the fresher, the darker")
