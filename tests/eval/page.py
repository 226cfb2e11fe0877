"""The figures as a page, with ten messages of the labelled data and what becomes of each."""

import html
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from string import Template

from agentx.storage.text import plain
from agentx.synthesis.demands.explanation import MessagePart, explain
from tests.eval.data import Row, rows
from tests.figures import Figure, machine, number

_SHOWN = 10
_GOOD_LENGTH, _LONG = 200, 600
_WORDS = {
    "active": "captured",
    "candidate": "candidate",
    "changes": "may change a rule",
    "ends": "may end a rule",
    "left": "left alone",
    "material": "not theirs",
}


def page(figures: Sequence[Figure], data: Path) -> str:
    """The page as HTML that stands alone."""
    template = Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
    messages = "\n".join(map(_article, _chosen(rows(data / "coding_transcripts" / "labels.jsonl.gz"))))
    return template.substitute(
        machine=html.escape(machine()),
        rows="\n".join(map(_row, figures)),
        messages=messages or "<p>There are no labelled messages in this data.</p>",
    )


def _row(figure: Figure) -> str:
    verdict = {"aim": "good", "good": "good", "short": "short"}.get(figure.verdict, "")
    cells = (
        html.escape(figure.measure),
        number(figure.value),
        number(figure.at_least) if figure.at_least is not None else "",
    )
    return (
        f'<tr><td>{cells[0]}<td class="n {verdict}">{cells[1]}<td class="n">{cells[2]}'
        f'<td class="{verdict}">{ {"good": "✓", "short": "short"}.get(verdict, "") }<td class="beside">{html.escape(figure.beside)}</tr>'
    )


def _chosen(messages: Iterable[Row]) -> list[Row]:
    """Ten messages as unlike each other as can be: of each pair of labels and verdict in turn, long enough to be worth it."""
    fitting = [row for row in messages if 0 < len(row["text"].strip()) <= _LONG]
    fitting.sort(key=lambda row: (_pair(row), abs(len(row["text"]) - _GOOD_LENGTH)))
    piles = [list(pile) for _, pile in groupby(fitting, key=_pair)]
    chosen: list[Row] = []
    while piles and len(chosen) < _SHOWN:
        chosen += [pile.pop(0) for pile in piles][: _SHOWN - len(chosen)]
        piles = [pile for pile in piles if pile]
    return chosen


def _pair(row: Row) -> tuple[str, ...]:
    rank = ("active", "candidate", "changes", "ends", "material", "left")
    verdict = min((part.verdict for part in explain(row["text"])), key=rank.index, default="left")
    return ("-".join(sorted(row.get("labels") or ["none"])).replace("none", "~"), str(rank.index(verdict)))


def _article(row: Row) -> str:
    text = plain(row["text"])
    parts = explain(text)
    said = ", ".join(row.get("labels") or ["none"]) + (
        " (one reader of two)" if row.get("weak_labels") else ""
    )
    reasons = "".join(
        f"<li><b>{_words(part)}</b> “{html.escape(_short(text, part))}” <span class=why>{html.escape(part.why)}</span>"
        for part in parts
    )
    return f'<article><div class="labels">its readers say: {html.escape(said)}</div><blockquote>{_marked(text, parts)}</blockquote><ul>{reasons}</ul></article>'


def _words(part: MessagePart) -> str:
    return f"{_WORDS[part.verdict]} {part.kind}".strip()


def _short(text: str, part: MessagePart) -> str:
    words = " ".join(text[part.start : part.end].split())
    return words if len(words) < 80 else words[:79] + "…"


def _marked(text: str, parts: Sequence[MessagePart]) -> str:
    pieces, at = [], 0
    for part in parts:
        start = max(part.start, at)
        if part.end > start:
            pieces += [
                html.escape(text[at:start]),
                f'<mark class="{part.verdict}">{html.escape(text[start : part.end])}</mark>',
            ]
            at = part.end
    return "".join(pieces) + html.escape(text[at:])
