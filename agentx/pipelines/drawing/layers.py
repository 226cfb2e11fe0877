"""Layered graph layout: place each box below all that it waits for, and route lines between boxes.

This is the layered drawing of graphs after Sugiyama, Tagawa and Toda (1981): layers by the longest path,
dummy boxes for lines that pass through a layer, and boxes ordered by the positions of their neighbours.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from itertools import pairwise

GAP_X, GAP_Y = 28, 46
"""Pixels between boxes, and between layers."""

_BETWEEN = 20
"""Width in pixels that a line needs where it passes through a layer."""


@dataclass
class Box:
    """A box with a size, which the layout gives a position; all in pixels.

    Attributes:
        below: Height needed below the box, for a stack.
        inside: A nested layout, with positions relative to the box.
    """

    name: str
    width: float
    height: float
    below: float = 0
    inside: "Layout | None" = None
    x: float = 0
    y: float = 0

    @property
    def foot(self) -> float:
        """The y coordinate where lines leave it."""
        return self.y + self.height + self.below


@dataclass
class Layout:
    """Boxes in layers, and the lines between them.

    Attributes:
        boxes: By name. A name with ``>`` is a dummy box, for a line that passes through a layer.
        layers: Names, from left to right.
        bounds: Upper and lower edge of each layer.
        chains: For each line, the boxes that it passes through.
    """

    boxes: dict[str, Box]
    layers: list[list[str]] = field(default_factory=list)
    bounds: list[tuple[float, float]] = field(default_factory=list)
    chains: list[list[str]] = field(default_factory=list)
    width: float = 0
    height: float = 0

    def layer_of(self, name: str) -> int:
        """Return the number of the layer that contains a box, from 0."""
        return next(number for number, layer in enumerate(self.layers) if name in layer)


def arranged(boxes: Iterable[Box], waits: Mapping[str, set[str]]) -> Layout:
    """Arrange boxes in layers, each below what it waits for.

    ``waits`` has for each name the names that it waits for.
    """
    made = Layout({box.name: box for box in boxes})
    needed = _without_shortcuts(waits)
    depth: dict[str, int] = {}
    for name in TopologicalSorter(waits).static_order():
        depth[name] = 1 + max((depth[one] for one in waits.get(name, ())), default=-1)
    made.layers = [[] for _ in range(max(depth.values()) + 1)]
    for name in made.boxes:
        made.layers[depth[name]].append(name)
    for name, before in needed.items():
        for one in sorted(before):
            chain = [one]
            for layer in range(depth[one] + 1, depth[name]):
                room = f"{one}>{name}>{layer}"
                made.boxes[room] = Box(room, _BETWEEN, 0)
                made.layers[layer].append(room)
                chain.append(room)
            made.chains.append([*chain, name])
    _untangle(made)
    _place(made)
    return made


def _without_shortcuts(waits: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Remove indirect dependencies (transitive reduction): keep only what no other dependency waits for."""
    above: dict[str, set[str]] = {}
    for name in TopologicalSorter(waits).static_order():
        own = waits.get(name, set())
        above[name] = set().union(own, *(above[one] for one in own))
    return {
        name: {one for one in own if not any(one in above[other] for other in own)}
        for name, own in waits.items()
    }


def _untangle(layout: Layout) -> None:
    """Order the boxes of each layer by the positions of their neighbours, so that few lines cross."""
    above: dict[str, list[str]] = {}
    below: dict[str, list[str]] = {}
    for chain in layout.chains:
        for one, other in pairwise(chain):
            below.setdefault(one, []).append(other)
            above.setdefault(other, []).append(one)
    down, up = (above, layout.layers), (below, layout.layers[::-1])
    for neighbours, layers in (down, up, down, up, down):
        place: dict[str, float] = {}
        for layer in layers:
            near = {name: [place[one] for one in neighbours.get(name, ()) if one in place] for name in layer}
            at = {
                name: sum(near[name]) / len(near[name]) if near[name] else number / max(len(layer), 1)
                for number, name in enumerate(layer)
            }
            layer.sort(key=lambda name: at[name])
            place |= {name: (number + 0.5) / len(layer) for number, name in enumerate(layer)}


def _place(layout: Layout) -> None:
    """Assign coordinates: layers from top to bottom, each centred."""
    boxes = layout.boxes
    wide = [sum(boxes[name].width + GAP_X for name in layer) - GAP_X for layer in layout.layers]
    layout.width = max(wide)
    y = 0.0
    for layer, width in zip(layout.layers, wide, strict=True):
        x = (layout.width - width) / 2
        high = max(boxes[name].height + boxes[name].below for name in layer)
        for name in layer:
            boxes[name].x, boxes[name].y = x, y
            x += boxes[name].width + GAP_X
            if ">" in name:
                boxes[name].height = high
        layout.bounds.append((y, y + high))
        y += high + GAP_Y
    layout.height = y - GAP_Y
