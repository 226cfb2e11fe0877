"""A pipeline as a self-contained SVG picture, in light or dark colours as the viewer prefers.

Stages are in layers, each below all that it waits for. A loop is a dashed frame around its stages. A stage
that is repeated for each item is a stack with the number of items. Lines run between boxes, and pass through
layers only where the layout left room, so no line crosses a text.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from agentx.pipelines.board import Board, BoardRow, Mark
from agentx.pipelines.drawing.layers import Box, Layout, arranged
from agentx.pipelines.drawing.text_width import text_width
from agentx.pipelines.matrix import all_stages, shown_path
from agentx.synthesis.pipelines.definition.pipeline import Loop, Pipeline, Role, Stage, StageOrLoop
from agentx.synthesis.pipelines.definition.plan import (
    Plan,
    agent_types,
    is_by_engine,
    is_by_model,
    is_by_person,
)

_PAD = 14
_MARGIN = 32
_STACK = 6
"""Offset in pixels between the cards of a stack."""

_NARROWEST, _WIDEST = 190, 290
_FILES_SHOWN = 4
_READ_LINES = 2
_STYLE = """
text { font-family: ui-sans-serif, system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #0f172a; }
.paper { fill: #ffffff; } .card { fill: #f8fafc; stroke: #94a3b8; } .frame { fill: #faf5ff; stroke: #8b5cf6; }
.dashed { stroke-dasharray: 6 4; } .title { font-size: 20px; font-weight: 700; } \
.name { font-size: 14px; font-weight: 650; }
.soft { font-size: 11.5px; fill: #475569; } \
.path { font: 11px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #334155; }
.loop { font-size: 12px; font-weight: 600; fill: #6d28d9; } \
.count { font-size: 11.5px; font-weight: 650; fill: #1e3a8a; } .pill { fill: #dbeafe; }
.stands { font-size: 11.5px; font-weight: 650; }
.card.proved { fill: #f0fdf4; stroke: #16a34a; } .card.running { fill: #eff6ff; stroke: #2563eb; } \
.card.failed { fill: #fef2f2; stroke: #dc2626; }
.card.asks { fill: #fffbeb; stroke: #d97706; }
.line { fill: none; stroke: #64748b; stroke-width: 1.4; } .tip { fill: #64748b; }
.model { fill: #2563eb; } .reader { fill: #0d9488; } .engine { fill: #64748b; } .program { fill: #d97706; }
@media (prefers-color-scheme: dark) {
text { fill: #f1f5f9; } .paper { fill: #0f172a; } .card { fill: #1e293b; stroke: #64748b; } \
.frame { fill: #1e1b4b; stroke: #a78bfa; }
.soft { fill: #cbd5e1; } .path { fill: #cbd5e1; } .loop { fill: #c4b5fd; } \
.count { fill: #dbeafe; } .pill { fill: #1e40af; }
.card.proved { fill: #052e16; } .card.running { fill: #172554; } \
.card.failed { fill: #450a0a; } .card.asks { fill: #451a03; }
.line { stroke: #94a3b8; } .tip { fill: #94a3b8; } .model { fill: #60a5fa; } .reader { fill: #2dd4bf; } \
.engine { fill: #94a3b8; } .program { fill: #fbbf24; }
}
"""

_SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" '
    'role="img" aria-label="{about}">'
)
_TIP = """\
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path class="tip" d="M0,0 L8,4 L0,8 z"/></marker></defs>"""


def picture(plan: Plan, board: Board | None = None) -> str:
    """Return the picture of a pipeline, as SVG.

    If the status is given, stages are coloured by it and show how many items have which one.
    """
    return _Picture(plan, board).svg()


class _Picture:
    def __init__(self, plan: Plan, board: Board | None) -> None:
        self.plan = plan
        self.rows = {row.stage: row for row in board.rows} if board else {}
        self.pipeline: Pipeline = plan.pipeline
        self.loops = {one.loop: one for one in self.pipeline.stages if isinstance(one, Loop)}
        self.stages = {stage.id: stage for stage in all_stages(self.pipeline)}
        self.owners = {stage.id: loop.loop for loop in self.loops.values() for stage in loop.stages}
        self.cards = {name: self._card(stage) for name, stage in self.stages.items()}
        widest = max(width for lines in self.cards.values() for width in map(_Line.needs, lines))
        self.width = min(max(widest + 2 * _PAD, _NARROWEST), _WIDEST)

    # --- sizes ----------------------------------------------------------------------------------------------

    def _card(self, stage: Stage) -> "list[_Line]":
        """Return the text lines of a stage's card."""
        role, files = self.pipeline.roles[stage.role], self.pipeline.files
        paths = [
            *(f"→ {shown_path(files[one.file])}" for one in role.writes),
            *(f"+ {shown_path(files[one.to])}" for one in role.appends),
        ]
        lines = [_Line(path, "path") for path in paths[:_FILES_SHOWN]]
        if len(paths) > _FILES_SHOWN:
            lines.append(_Line(f"  and {len(paths) - _FILES_SHOWN} more", "path"))
        if stage.id in self.rows:
            lines.append(_Line(_stands(self.rows[stage.id]), "stands"))
        return [_Line(stage.id, "name"), _Line(_who(stage.role, role), "soft"), *lines]

    def _is_many(self, entry: StageOrLoop) -> bool:
        """Return whether a stage or loop has several items, or items that are not known yet."""
        return entry.for_each is not None and len(self.plan.each.get(entry.name, "??")) > 1

    def _stack(self, entry: StageOrLoop) -> float:
        """Return the extra height of a stack's lower cards, in pixels."""
        return 2 * _STACK if self._is_many(entry) else 0

    def _stage_box(self, stage: Stage) -> Box:
        lines = len(self.cards[stage.id]) + len(self._reads(stage))
        return Box(stage.id, self.width, 2 * _PAD + 17 * lines, self._stack(stage))

    def _loop_box(self, loop: Loop) -> Box:
        inside = arranged(map(self._stage_box, loop.stages), {one.id: set(one.after) for one in loop.stages})
        head = max(text_width(text, 12) for text in _loop_lines(loop))
        count = text_width(self._counted(loop), 12) + 3 * _PAD if loop.for_each else 0
        width = max(inside.width + 2 * _PAD, head + count + 2 * _PAD)
        return Box(loop.loop, width, inside.height + 3 * _PAD + 34, self._stack(loop), inside)

    def _reads(self, stage: Stage) -> list[str]:
        """Return the names of the files that a stage reads, in at most two lines."""
        names = [read.file for read in self.pipeline.roles[stage.role].reads]
        lines = [""]
        for number, name in enumerate(names):
            rest = f" +{len(names) - number}"
            longer = f"{lines[-1]}, {name}" if lines[-1] else f"← {name}"
            if number == 0 or text_width(longer + rest, 11.5) <= self.width - 2 * _PAD:
                lines[-1] = longer
            elif len(lines) == _READ_LINES:
                lines[-1] += rest
                break
            else:
                lines[-1] += ","
                lines.append(f"   {name}")
        return [line for line in lines if line]

    # --- the whole picture ----------------------------------------------------------------------------------

    def svg(self) -> str:
        """Return the picture."""
        layout = self._outer()
        head = self._head()
        returns = list(self._returns())
        lanes = 18 * len(returns) + (10 if returns else 0)
        foot = ["← reads   → writes   + grows when the stage is done"]
        if any(map(self._is_many, self.pipeline.stages)):
            foot[0] += "   a stack: once for each item"
        foot += ["A dashed line: waits for the item before."] if returns else []
        texts = [text_width(text, size) for text, size, _ in [*head, *((text, 11.5, "") for text in foot)]]
        wide = max(layout.width + lanes, *texts) + 2 * _MARGIN
        top = _MARGIN + 66
        high = top + layout.height + 30 + 20 * len(foot) + _MARGIN
        parts = [
            _SVG.format(wide=round(wide), high=round(high), about=escape(self._title())),
            f"<style>{_STYLE}</style>",
            _TIP,
            f'<rect class="paper" width="{round(wide)}" height="{round(high)}"/>',
        ]
        for number, (text, _, sort) in enumerate(head):
            parts.append(_text(_MARGIN, _MARGIN + 18 + 22 * number, text, sort))
        left = _MARGIN + max(0, (wide - 2 * _MARGIN - lanes - layout.width) / 2)
        parts.append(f'<g transform="translate({left:.1f},{top:.1f})">')
        parts += [self._return(layout, one, number) for number, one in enumerate(returns)]
        parts += [*_lines(layout), *self._drawn(layout), "</g>"]
        for number, text in enumerate(foot):
            parts.append(_text(_MARGIN, high - _MARGIN - 20 * (len(foot) - 1 - number), text, "soft"))
        return "\n".join([*parts, "</svg>"]) + "\n"

    def _outer(self) -> Layout:
        boxes, waits = [], {}
        for entry in self.pipeline.stages:
            box = self._loop_box(entry) if isinstance(entry, Loop) else self._stage_box(entry)
            boxes.append(box)
            waits[box.name] = {self.owners.get(name, name) for name in entry.after}
        return arranged(boxes, waits)

    def _title(self) -> str:
        return self.pipeline.title or self.pipeline.pipeline

    def _head(self) -> list[tuple[str, float, str]]:
        items = [f"{len(found)} × {name}" for name, found in self.plan.items.items()]
        counts = (("stage", len(self.cards)), ("step", len(self.plan.steps)))
        told = [*items, *(f"{count} {word}{'s' * (count != 1)}" for word, count in counts)]
        return [(self._title(), 20, "title"), (" · ".join(told), 11.5, "soft")]

    # --- what is drawn --------------------------------------------------------------------------------------

    def _drawn(self, layout: Layout) -> Iterator[str]:
        for box in layout.boxes.values():
            if box.name in self.loops:
                yield from self._drawn_loop(box, self.loops[box.name])
            elif box.name in self.stages:  # skip dummy boxes
                yield from self._drawn_stage(box, self.stages[box.name])

    def _drawn_stage(self, box: Box, stage: Stage) -> Iterator[str]:
        role = self.pipeline.roles[stage.role]
        files = self.pipeline.files
        uses = [f"reads {shown_path(files[one.file])}" for one in role.reads]
        uses += [f"writes {shown_path(files[one.file])}" for one in role.writes]
        tooltip = "\n".join([f"{stage.id}: {_who(stage.role, role)}", *uses])
        yield f'<g id="{escape(stage.id)}"><title>{escape(tooltip)}</title>'
        marks = {cell.mark for cell in self.rows[stage.id].cells} if stage.id in self.rows else set()
        # The colour is that of the most urgent status among its items.
        if "not_passed" in marks:  # it has the colour of what asks for the user
            marks = marks - {"not_passed"} | {"asks"}
        colour = next((mark for mark in ("failed", "asks", "running") if mark in marks), "waiting")
        colour = " proved" if marks == {"proved"} else f" {colour}" if marks else ""
        yield from _cards(box, f"card{colour}")
        place = f'x="{box.x:.1f}" y="{box.y + 10:.1f}" width="4" height="{box.height - 20:.1f}"'
        yield f'<rect class="{self._kind(role)}" {place} rx="2"/>'
        y = box.y + _PAD + 12
        name, who, *paths = self.cards[stage.id]
        for line in (name, who, *(_Line(text, "soft") for text in self._reads(stage)), *paths):
            room = box.width - 2 * _PAD - (self._pill_width(stage) if line is name else 0)
            yield _text(box.x + _PAD, y, line.cut(room), line.sort)
            y += 17
        yield from self._pill(box, stage)
        yield "</g>"

    def _drawn_loop(self, box: Box, loop: Loop) -> Iterator[str]:
        yield f'<g id="{escape(loop.loop)}">'
        yield from _cards(box, "frame dashed")
        for number, text in enumerate(_loop_lines(loop)):
            yield _text(box.x + _PAD, box.y + _PAD + 12 + 17 * number, text, "soft" if number else "loop")
        yield from self._pill(box, loop)
        if box.inside is not None:
            left = box.x + (box.width - box.inside.width) / 2
            yield f'<g transform="translate({left:.1f},{box.y + 2 * _PAD + 34:.1f})">'
            yield from _lines(box.inside)
            yield from self._drawn(box.inside)
            yield "</g>"
        yield "</g>"

    def _counted(self, entry: StageOrLoop) -> str:
        items = self.plan.each.get(entry.name)
        count = f"×{len(items)}" if items else "for each"
        return f"{count} {entry.for_each.name}" if entry.for_each else ""

    def _pill_width(self, entry: StageOrLoop) -> float:
        return text_width(self._counted(entry), 11.5) + 22 if entry.for_each else 0

    def _pill(self, box: Box, entry: StageOrLoop) -> Iterator[str]:
        if entry.for_each:
            width = self._pill_width(entry) - 6
            x = box.x + box.width - width - 8
            place = f'x="{x:.1f}" y="{box.y + 9:.1f}" width="{width:.1f}" height="20"'
            yield f'<rect class="pill" {place} rx="10"/>'
            place = f'text-anchor="middle" x="{x + width / 2:.1f}" y="{box.y + 23:.1f}"'
            yield f'<text class="count" {place}>{escape(self._counted(entry))}</text>'

    def _kind(self, role: Role) -> str:
        if is_by_model(role):
            return "reader" if agent_types(self.pipeline)[role.agent].read_only else "model"
        return "engine" if is_by_engine(role) else "person" if is_by_person(role) else "program"

    def _returns(self) -> Iterator[tuple[str, str]]:
        """Yield for each entry that waits for the previous item: what it waits for, and its own name."""
        for entry in self.pipeline.stages:
            if entry.after_previous is not None:
                named = entry.after_previous.stages or (entry.name,)
                yield from ((self.owners.get(one, one), entry.name) for one in named)

    def _return(self, layout: Layout, ends: tuple[str, str], number: int) -> str:
        """Draw a dashed line that leaves below, runs up beside all boxes, and enters from above."""
        source, target = (layout.boxes[name] for name in ends)
        _, low = layout.bounds[layout.layer_of(source.name)]
        high, _ = layout.bounds[layout.layer_of(target.name)]
        lane, shift = layout.width + 20 + 18 * number, 10 + 5 * (number % 4)
        x_from, x_to = source.x + source.width * 0.75, target.x + target.width * 0.75
        up = f"M{x_from:.1f},{source.foot:.1f} V{low + shift:.1f} H{lane:.1f} V{high - shift - 8:.1f}"
        d = f"{up} H{x_to:.1f} V{target.y - 2:.1f}"
        return f'<path class="line dashed" d="{d}" marker-end="url(#tip)"/>'


@dataclass(frozen=True)
class _Line:
    """A line of text in a card."""

    text: str
    sort: str

    def needs(self) -> float:
        """Return its width in pixels, with room for an item count beside a name."""
        return self.text_width(self.text) + (90 if self.sort == "name" else 0)

    def text_width(self, text: str) -> float:
        if self.sort == "path":
            return text_width(text, 11, mono=True)
        return text_width(text, 14.5 if self.sort == "name" else 11.5)

    def cut(self, room: float) -> str:
        """Return the text, with its middle cut out where it is too long."""
        text, whole = self.text, self.text
        for keep in range(len(whole) - 1, 0, -1):
            if self.text_width(text) <= room:
                break
            text = f"{whole[: keep // 2]}…{whole[len(whole) - (keep - keep // 2) :]}"
        return text


def _who(name: str, role: Role) -> str:
    played = role.agent if is_by_model(role) else role.by[0]
    return f"{role.title or name} · {played}"


def _stands(row: BoardRow) -> str:
    """Return how many items have which status, in a line."""
    counted = Counter(cell.mark for cell in row.cells)
    told = [f"✓ {counted['proved'] + counted['not_passed']} of {len(row.cells)}"]
    marks: tuple[tuple[Mark, str], ...] = (
        ("running", "▶"),
        ("again", "↻"),
        ("asks", "?"),
        ("failed", "✗"),
        ("not_passed", "!"),
    )
    return "   ".join([*told, *(f"{sign} {counted[mark]}" for mark, sign in marks if counted[mark])])


def _loop_lines(loop: Loop) -> tuple[str, str]:
    rounds = f"at most {loop.at_most} round{'s' * (loop.at_most != 1)}"
    otherwise = "it fails" if loop.otherwise == "fail" else "it goes on"
    return (f"↻ {loop.loop} · {rounds}", f"until {loop.until.file} says PASS, otherwise {otherwise}")


def _text(x: float, y: float, text: str, sort: str) -> str:
    kept = ' xml:space="preserve"' if "  " in text else ""
    return f'<text class="{sort}" x="{x:.1f}" y="{y:.1f}"{kept}>{escape(text)}</text>'


def _cards(box: Box, sort: str) -> Iterator[str]:
    for number in range(round(box.below / _STACK), -1, -1):
        inset = 7 * number
        place = f'x="{box.x + inset:.1f}" y="{box.y + number * _STACK:.1f}"'
        size = f'width="{box.width - 2 * inset:.1f}" height="{box.height:.1f}"'
        yield f'<rect class="{sort}" {place} {size} rx="10"/>'


def _lines(layout: Layout) -> Iterator[str]:
    """Yield the lines of a layout: straight within layers, curved between them."""
    for chain in layout.chains:
        first = layout.boxes[chain[0]]
        x, layer = first.x + first.width / 2, layout.layer_of(chain[0])
        d = f"M{x:.1f},{first.foot:.1f} V{layout.bounds[layer][1]:.1f}"
        for name in chain[1:]:
            box, layer = layout.boxes[name], layer + 1
            (_, above), (top, low) = layout.bounds[layer - 1], layout.bounds[layer]
            to = box.x + box.width / 2
            end = top - 2 if name == chain[-1] else top
            middle = (above + top) / 2
            d += f" C{x:.1f},{middle:.1f} {to:.1f},{middle:.1f} {to:.1f},{end:.1f}"
            if name != chain[-1]:
                d += f" V{low:.1f}"
            x = to
        yield f'<path class="line" d="{d}" marker-end="url(#tip)"/>'
