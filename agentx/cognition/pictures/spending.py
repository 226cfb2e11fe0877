"""Pictures of time, tokens, and judge scores."""

import math

from agentx.cognition.interactions import Interaction
from agentx.cognition.overview import MODULES, Overview, spread
from agentx.cognition.pictures.canvas import (
    LIGHT,
    MODULE_COLOURS,
    WIDTH,
    axes_at,
    figure_of,
    interaction_axis,
    parts_of,
    per_column,
    round_ticks,
    some_of,
    svg_of,
)

_DOTS = 300
_UNITS = ((1_000, "s"), (1, "ms"), (0.001, "µs"))
_SHORT = 10
_LATENCIES = {
    "recognizer": "recognizer_latency_ms",
    "decayer": "decayer_latency_ms",
    "activator": "activator_latency_ms",
    "response": "response_generation_latency_ms",
    "in all": "total_latency_ms",
}


def duration(ms: float) -> str:
    """Return a duration in readable form.

    >>> [duration(ms) for ms in (0.042, 1.82, 18.2, 950, 1234, 83_000)]
    ['42 µs', '1.8 ms', '18 ms', '950 ms', '1.2 s', '83 s']
    """
    size, unit = next((one for one in _UNITS if ms >= one[0]), _UNITS[-1])
    value = ms / size
    return f"{value:.2g} {unit}" if value < _SHORT else f"{value:,.0f} {unit}"


def latency_picture(seen: Overview) -> str:
    """Draw how long each module took when it ran: each time as a dot, the median as a line."""
    rows = [
        (name, [taken for one in seen.interactions if (taken := getattr(one.metrics, key)) > 0])
        for name, key in _LATENCIES.items()
    ]
    rows = [(name, values) for name, values in rows if values]
    if not rows:
        return ""
    figure = figure_of(WIDTH, 44 * len(rows) + 34)
    axes = axes_at(figure, 104, 4, WIDTH - 104 - 210, 44 * len(rows))
    everything = [value for _, values in rows for value in values]
    low, high = min(everything), max(everything)
    for number, (name, values) in enumerate(rows):
        colour = LIGHT[MODULE_COLOURS.get(name, "ink")]
        found, dots = spread(values), some_of(values, _DOTS)
        heights = [-number + 0.34 * ((index * 0.618) % 1 - 0.5) for index in range(len(dots))]
        axes.axhline(-number, color=LIGHT["line"], lw=1, zorder=0)
        axes.scatter(dots, heights, s=18, color=colour, alpha=0.38, lw=0, clip_on=False)
        axes.plot(
            [found.p50] * 2, [-number - 0.32, -number + 0.32], color=colour, lw=2.6, solid_capstyle="round"
        )
        axes.annotate(
            f"{duration(found.p50)} · 95 % under {duration(found.p95)}",
            (1.03, -number),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=11,
            color=LIGHT["ink"],
        )
    axes.set_yticks([-number for number in range(len(rows))], [name for name, _ in rows])
    axes.set_ylim(-len(rows) + 0.5, 0.5)
    axes.set_xscale("log")
    low, high = low / 1.15, high * 1.15
    ticks = [
        base * 10.0**power for power in range(-4, 9) for base in (1, 3) if low <= base * 10.0**power <= high
    ]
    axes.set_xticks(ticks, [duration(tick) for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlim(low, high)
    axes.spines[:].set_visible(False)
    return svg_of(figure, "latency", "How long each module took, whenever it ran")


def tokens_picture(seen: Overview) -> str:
    """Draw the tokens of each interaction, by module."""
    if not seen.collected.total_tokens:
        return ""
    figure = figure_of(WIDTH, 270)
    axes = axes_at(figure, 64, 12, WIDTH - 64 - 190, 218)
    count = len(seen.interactions)
    step = per_column(count, 80)
    places = [1 + step * (column + 0.5) - 0.5 for column in range(math.ceil(count / step))]
    floor = [0.0] * len(places)
    for module in MODULES:
        spent = [_spent(one, module) for one in seen.interactions]
        means = [sum(part) / len(part) for part in parts_of(spent, step)]
        axes.bar(places, means, bottom=floor, width=0.72 * step, color=LIGHT[MODULE_COLOURS[module]], lw=0)
        floor = [below + mean for below, mean in zip(floor, means, strict=True)]
    whole = seen.collected.total_tokens
    for number, module in enumerate(reversed(MODULES)):  # beside the bars, in stacking order
        total, top = seen.collected.tokens[module].total, 0.93 - 0.2 * number
        labels = (
            (module, top, 12, LIGHT[MODULE_COLOURS[module]]),
            (f"{total:,} · {total / whole:.0%}", top - 0.075, 11, LIGHT["soft"]),
        )
        for text, height, size, colour in labels:
            axes.annotate(
                text, (1.03, height), xycoords="axes fraction", va="center", fontsize=size, color=colour
            )
    ticks = [tick for tick in round_ticks(max(floor)) if tick]
    axes.set_yticks(ticks, [f"{tick:,.0f}" for tick in ticks])
    axes.grid(axis="y", color=LIGHT["line"], lw=1)
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)
    interaction_axis(axes, count)
    return svg_of(figure, "tokens", "Tokens that each interaction took, by module")


def _spent(one: Interaction, module: str) -> float:
    measured = one.metrics
    return float(
        getattr(measured, f"{module}_prompt_tokens") + getattr(measured, f"{module}_completion_tokens")
    )


def judge_picture(seen: Overview) -> str:
    """Draw the distribution of the judge scores."""
    bins = seen.collected.judge_distribution
    if not any(bins):
        return ""
    figure = figure_of(WIDTH, 190)
    axes = axes_at(figure, 20, 24, WIDTH - 40, 130)
    axes.bar([0.05 + number / 10 for number in range(10)], bins, width=0.088, color=LIGHT["violet"], lw=0)
    for number, count in enumerate(bins):
        if count:
            axes.text(0.05 + number / 10, count, f"{count}", ha="center", va="bottom", color=LIGHT["soft"])
    axes.set(xlim=(0, 1), yticks=[], ylim=(0, max(bins) * 1.1))
    axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.spines["left"].set_visible(False)
    return svg_of(figure, "judge", "How well answers rest on the buffer, from 0 to 1")
