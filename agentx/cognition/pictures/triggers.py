"""Pictures of the messages, and of when memories were fetched."""

from itertools import accumulate
from typing import TYPE_CHECKING

from agentx.cognition.overview import Overview
from agentx.cognition.pictures.canvas import (
    COLUMNS,
    LIGHT,
    WIDTH,
    axes_at,
    figure_of,
    interaction_axis,
    mark_size,
    parts_of,
    per_column,
    some_of,
    svg_of,
    title_of,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LOOKS = 1_200
_RIGHT = 506
_TOPICS = 3


def pulse_picture(seen: Overview) -> str:
    """Draw the session message by message: the type of each, and when memories were fetched."""
    kinds = [one.metrics.input_type for one in seen.interactions]
    rows = [
        ("told", "teal", [float(kind == "statement") for kind in kinds]),
        ("asked", "blue", [float(kind == "question") for kind in kinds]),
        ("feedback", "violet", [float(kind == "feedback") for kind in kinds]),
        ("fetched", "amber", [min(one.metrics.activator_trigger_count, 2) / 2 for one in seen.interactions]),
    ]
    faults = [float(bool(one.metrics.faults)) for one in seen.interactions]
    if any(faults):
        rows.append(("faults", "red", faults))
    figure = figure_of(WIDTH, 28 * len(rows) + 34)
    axes = axes_at(figure, 74, 10, WIDTH - 74 - 16, 28 * len(rows))
    step = per_column(len(kinds), COLUMNS)
    for number, (_, colour, marks) in enumerate(rows):
        shares = [sum(part) / len(part) for part in parts_of(marks, step)]
        places = [1 + step * (column + 0.5) - 0.5 for column in range(len(shares))]
        axes.axhline(-number - 0.5, color=LIGHT["line"], lw=1)
        bars = [(place, 0.74 * share) for place, share in zip(places, shares, strict=True) if share]
        axes.bar(
            [place for place, _ in bars],
            [height for _, height in bars],
            bottom=-number - 0.5,
            width=min(step * 0.6, 16 * len(kinds) / WIDTH),
            color=LIGHT[colour],
            lw=0,
        )
    axes.set_yticks([-number - 0.13 for number in range(len(rows))], [name for name, *_ in rows])
    axes.set_ylim(-len(rows) + 0.45, 0.45)
    interaction_axis(axes, len(kinds))
    return svg_of(figure, "pulse", "What was said in each interaction, and when memories were fetched")


def triggers_picture(seen: Overview) -> str:
    """Draw the uncertainty of each assessment, the activation rate, and the topics that triggered it."""
    looks = seen.triggers.uncertainty
    if not looks:
        return ""
    figure = figure_of(WIDTH, 350)
    axes = axes_at(figure, 52, 34, 380, 262)
    fetched = [look for look in looks if look.requires_activation]
    if fetched:
        low = min(look.model_uncertainty for look in fetched) - 0.015
        floor = min(look.cosine_uncertainty for look in fetched) - 0.015
        axes.fill_between([low, 1.03], floor, 1.03, color=LIGHT["amber"], alpha=0.1, lw=0)
    for chosen, face, edge in (
        ([look for look in looks if not look.requires_activation], "paper", "soft"),
        (fetched, "amber", "paper"),
    ):
        shown = some_of(chosen, _LOOKS)
        axes.scatter(
            [look.model_uncertainty for look in shown],
            [look.cosine_uncertainty for look in shown],
            s=mark_size(len(looks), 44),
            lw=1.1,
            fc=LIGHT[face],
            ec=LIGHT[edge],
            zorder=3,
            clip_on=False,
        )
    axes.set(xlim=(0, 1.03), ylim=(0, 1.03))
    axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.set_yticks([0.5, 1], ["0.5", "1"])
    axes.set_xlabel("what the model says", labelpad=6)
    axes.set_ylabel("what the cosine says", labelpad=6)
    title_of(axes, "uncertainty of each look")
    axes.text(1.03, 1.07, "● fetched", color=LIGHT["amber"], ha="right", va="bottom", fontsize=11)
    _rate(figure, seen)
    _topics(figure, seen)
    return svg_of(figure, "triggers", "When memories were fetched: where both tiers are uncertain")


def _rate(figure: "Figure", seen: Overview) -> None:
    """Draw the moving share of interactions that fetched memories."""
    count = len(seen.interactions)
    window = max(5, count // 8)
    fetched = [one.metrics.activator_trigger_count > 0 for one in seen.interactions]
    sums = [0, *accumulate(fetched)]
    rates = [(sums[end] - sums[max(0, end - window)]) / min(end, window) for end in range(1, count + 1)]
    axes = axes_at(figure, _RIGHT, 34, WIDTH - _RIGHT - 104, 92)
    places = range(1, count + 1)
    axes.fill_between(places, rates, color=LIGHT["amber"], alpha=0.13, lw=0)
    axes.plot(places, rates, color=LIGHT["amber"], lw=1.6)
    axes.axhline(seen.triggers.rate, color=LIGHT["soft"], lw=1, ls=(0, (3, 3)))
    axes.annotate(
        f"{seen.triggers.rate:.0%} in all",
        (1.02, seen.triggers.rate),
        xycoords=("axes fraction", "data"),
        va="center",
        color=LIGHT["soft"],
    )
    axes.set_ylim(0, 1)
    axes.set_yticks([0, 1], ["0", "100 %"])
    title_of(axes, f"interactions that fetched, of the latest {window}")
    interaction_axis(axes, count)


def _topics(figure: "Figure", seen: Overview) -> None:
    """Draw the topics that triggered most: how often, and out of how many assessments."""
    rows = seen.triggers.clusters[:_TOPICS]
    if not rows:
        return
    axes = axes_at(figure, _RIGHT, 190, WIDTH - _RIGHT - 104, 44 * len(rows))
    most = max(one.assessed for one in rows)
    title_of(axes, "looks that fetched, by the topic that was looked at")
    for number, one in enumerate(rows):
        axes.barh(-number - 0.24, one.assessed, height=0.22, color=LIGHT["line"], lw=0)
        axes.barh(-number - 0.24, one.triggered, height=0.22, color=LIGHT["amber"], lw=0)
        (line,) = wrapped(seen.text(one.topic), WIDTH - _RIGHT - 20, 11, lines=1)
        axes.text(0, -number - 0.02, line, va="bottom", fontsize=11)
        share = f"{one.triggered:,} of {one.assessed:,}"
        axes.text(one.assessed + most * 0.03, -number - 0.25, share, va="center", color=LIGHT["soft"])
    axes.set(xlim=(0, most), ylim=(-len(rows) + 0.45, 0.5))
    axes.axis("off")
