"""A plot of lines as SVG, in the manner of all of ours: quiet, with what each line is written at its end."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 860, 430, 56, 190, 64, 48
_COLOURS = ("#7f9c3b", "#2b7bba", "#c2571a")


class Line(NamedTuple):
    """A line: its points, what it is, and what stands below that; ``marks`` are places on it that are dotted."""

    points: Sequence[tuple[float, float]]
    label: str
    below: str
    marks: Sequence[int] = ()


def line_plot(
    title: str, name: str, about: str, lines: Sequence[Line], ticks: Iterable[tuple[float, str]], step: int
) -> str:
    """Draw it.

    Args:
        title: What a reader that sees no picture is told.
        name: What stands above it; ``about`` below that.
        about: How it is to be read.
        lines: At most three.
        ticks: Where words stand below it.
        step: How far two of its horizontal lines are apart.
    """
    width = max(x for line in lines for x, _ in line.points)
    top = step * math.ceil(max(y for line in lines for _, y in line.points) / step)

    def across(place: float) -> float:
        return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * place / width, 1)

    def up(value: float) -> float:
        return round(_HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * value / top, 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        '<g font-family="system-ui, sans-serif" font-size="13" fill="#444">',
        f"<title>{title}</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        f'<text x="{_LEFT}" y="26" font-size="17" fill="#111">{name}</text>',
        f'<text x="{_LEFT}" y="46">{about}</text>',
    ]
    for value in range(0, top + 1, step):
        parts.append(f'<path d="M{_LEFT} {up(value)}H{_WIDTH - _RIGHT}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="{_LEFT - 10}" y="{up(value) + 4}" text-anchor="end">{value:,}</text>')
    for place, words in ticks:
        parts.append(f'<text x="{across(place)}" y="{_HEIGHT - 20}" text-anchor="middle">{words}</text>')
    for line, colour in zip(lines, _COLOURS, strict=False):
        drawn = " ".join(f"{across(x)},{up(y)}" for x, y in line.points)
        parts.append(
            f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round"/>'
        )
        for x, y in (line.points[mark] for mark in line.marks):
            parts.append(f'<circle cx="{across(x)}" cy="{up(y)}" r="3.5" fill="{colour}"/>')
        end = up(line.points[-1][1])
        beside = f'<text x="{across(width) + 10}" fill="{colour}"'
        parts.append(f'{beside} y="{end}" font-weight="600">{line.label}</text>')
        parts.append(f'{beside} y="{end + 17}">{line.below}</text>')
    return "\n".join([*parts, "</g>", "</svg>"]) + "\n"
