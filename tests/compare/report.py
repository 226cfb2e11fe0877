"""The tables of a comparison: for a terminal, and as Markdown for the documentation."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.compare.runs import NOT_RUN
from tests.figures import number

Made = dict[str, Any]
_NOT, _OURS, _FLOORS = "not its purpose", "agentx", ("sqlite", "jsonl")
_BLOCK = re.compile(r"(<!-- compare -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        title: What a reader sees.
        operation: Which operation it is read from.
        cell: Its text, from the result and from the result of the floor that was measured right before.
        value: A number, the larger the better, to say who is better; ``None`` where there is nothing to rank.
    """

    title: str
    operation: str
    cell: Callable[[Made, Made], str]
    value: Callable[[Made, Made], float] | None = None


@dataclass(frozen=True)
class Section:
    """A table with a heading, and which results beside it a reader must know."""

    title: str
    columns: tuple[Column, ...]
    remarks: tuple[str, ...] = ()


def _yes(key: str) -> Callable[[Made, Made], str]:
    return lambda one, _floor: {True: "yes", False: "no"}.get(one[key], str(one[key]))


def _flag(key: str) -> Callable[[Made, Made], float]:
    return lambda one, _floor: float(one[key] is True or one[key] == "yes")


def _cut(one: Made, _floor: Made) -> str:
    cut = one["cut"]
    said = "refused" if not cut["opened"] else f"{cut['lost']} lost" if cut["lost"] else "nothing lost"
    return said + _repaired(cut.get("lost_after_repair")) + _told(cut)


def _cut_value(one: Made, _floor: Made) -> float:
    """As it is opened, before any repair."""
    cut = one["cut"]
    return -float(cut["lost"] + (0 if cut["told"] or not cut["lost"] else 100))


def _flips_value(one: Made, _floor: Made) -> float:
    return -float(100 * one["flips_silent"] + one["flips_lost"] + one["flips"] - one["flips_opened"])


def _told(cut: Made) -> str:
    return "" if not cut["opened"] or not cut["lost"] else ", told" if cut["told"] else ", **not told**"


def _repaired(lost: int | None) -> str:
    return "" if lost is None else f", {lost} after its repair"


def _flips(one: Made, _floor: Made) -> str:
    refused = one["flips"] - one["flips_opened"]
    parts = [f"{refused} refused"] if refused else []
    parts.append(f"records lost or changed: {one['flips_lost']}")
    parts.append(f"{one['flips_silent']} of {one['flips']} **not told**" if one["flips_silent"] else "")
    return ", ".join(filter(None, parts)) + _repaired(one.get("flips_lost_after_repair"))


def _kept_rate(one: Made, floor: Made) -> float:
    """What is lost was not written."""
    kept = (one["acknowledged"] - one["lost"]) / max(1, one["acknowledged"])
    return round(kept * one["per_s"] / floor["per_s"], 2) if floor else 1.0


_POISON = {"absent": 2.0, "material": 2.0, "memory": 1.0, "instruction": 0.0}

SECTIONS = (
    Section(
        "Kills, and syncs",
        (
            Column("kills", "kills", lambda one, _: str(one["kills"])),
            Column("acknowledged", "kills", lambda one, _: f"{one['acknowledged']:,}"),
            Column(
                "lost",
                "kills",
                lambda one, _: str(one.get("lost", "unreadable")),
                lambda one, _: -one.get("lost", 1e9),
            ),
            Column("syncs of an append", "syncs", lambda one, _: f"{one['syncs_per_append']:.2g}"),
            Column(
                "on the disk when acknowledged",
                "syncs",
                lambda one, _: f"{one['synced']} of {one['acknowledged']}",
                lambda one, _: float(one["synced"]),
            ),
            Column(
                "written and not synced, kB", "syncs", lambda one, _: f"{one['unsynced_bytes'] / 1e3:.1f}"
            ),
        ),
        ("append",),
    ),
    Section(
        "A damaged file",
        (
            Column("last 37 bytes cut off", "damage", _cut, _cut_value),
            Column("one flipped bit, five times", "damage", _flips, _flips_value),
            Column("in which file", "damage", lambda one, _: f"`{one['file'].rpartition('/')[2]}`"),
        ),
    ),
    Section(
        "Eight processes write at once",
        (
            Column(
                "acknowledged",
                "crowd",
                lambda one, _: f"{one['acknowledged']} of {one['wanted']}",
                lambda one, _: float(one["acknowledged"]),
            ),
            Column(
                "of these missing",
                "crowd",
                lambda one, _: str(one["lost"]),
                lambda one, _: -float(one["lost"]),
            ),
            Column("errors", "crowd", lambda one, _: str(one["errors"])),
            Column(
                "each writer's order", "crowd", lambda one, _: "kept" if one["in_order"] else "**changed**"
            ),
            Column(
                "records a second, SQLite = 1",
                "crowd",
                lambda one, floor: _ratio(one["per_s"], floor, "per_s"),
                _kept_rate,
            ),
        ),
        ("crowd",),
    ),
    Section(
        "Secrets, and what a page says",
        (
            Column(
                "secrets on the disk",
                "secrets",
                lambda one, _: f"{one['on_disk']} of {one['secrets']}",
                lambda one, _: -float(one["on_disk"]),
            ),
            Column(
                "a sentence of a page, for the next question",
                "poison",
                lambda one, _: one["page"],
                lambda one, _: _POISON[one["page"]],
            ),
            Column(
                "the same, repeated by the agent",
                "poison",
                lambda one, _: one["repeated"],
                lambda one, _: _POISON[one["repeated"]],
            ),
        ),
        ("secrets", "poison"),
    ),
    Section(
        "Replay",
        (
            Column("state again from the history alone", "replay", _yes("rebuilt"), _flag("rebuilt")),
            Column("the same bytes in the next process", "replay", _yes("twice"), _flag("twice")),
            Column("state of an earlier moment", "replay", _yes("earlier"), _flag("earlier")),
        ),
        ("replay",),
    ),
    Section(
        "Recall, and rules after a thousand messages",
        (
            Column(
                "LoCoMo, recall@10",
                "recall",
                lambda one, _: f"{one['recall_at_10']:.3f}" + _part(one),
                lambda one, _: round(one["recall_at_10"], 3),
            ),
            Column(
                "the rule, before a message about nothing", "compaction", _yes("neutral"), _flag("neutral")
            ),
            Column("before one that it touches", "compaction", _yes("related"), _flag("related")),
        ),
        ("recall", "compaction"),
    ),
    Section(
        "Size, and the latest thirty messages",
        (
            Column(
                "400 turns: bytes on the disk, text = 1",
                "size",
                lambda one, _: f"{one['ratio']:.2f}" + _part(one, "messages"),
                lambda one, _: -round(one["ratio"], 2),
            ),
            Column("records", "load", lambda one, _: f"{one['records']:,}"),
            Column(
                "open and read 30: processor, SQLite = 1",
                "load",
                lambda one, floor: _ratio(one["processor_ms"], floor, "processor_ms"),
                lambda one, floor: -_over(one, floor),
            ),
            Column("ms", "load", lambda one, _: number(one["processor_ms"])),
            Column("the right ones", "load", _yes("right")),
        ),
        ("size", "load"),
    ),
)


def _over(one: Made, floor: Made) -> float:
    return round(one["processor_ms"] / floor["processor_ms"], 1) if floor else 1.0


def _ratio(value: float, floor: Made, key: str) -> str:
    return (
        "1"
        if not floor
        else f"{value / floor[key]:.2g}"
        if value < 100 * floor[key]
        else f"{value / floor[key]:.0f}"
    )


def _part(one: Made, key: str = "conversations") -> str:
    return "" if one[key] == one["of"] else f" ({one[key]} of {one['of']} {key})"


def cell(column: Column, peer: Made) -> str:
    """Return what stands in a cell: a figure, or why there is none."""
    answer = peer["results"].get(column.operation, {"error": NOT_RUN})
    if answer.get("not_its_purpose"):
        return _NOT
    if "error" in answer:
        return NOT_RUN if answer["error"] == NOT_RUN else "failed"
    result = answer["result"]
    if "skipped" in result:
        return "skipped"
    return column.cell(result, answer.get("floor") or {})


def better(made: Made) -> list[str]:
    """Return, for each column that ranks, the products that are better there than AgentX."""
    ours = next((peer for peer in made["peers"] if peer["key"] == _OURS and "results" in peer), None)
    found = []
    for section in SECTIONS if ours else ():
        for column in section.columns:
            base = _value(column, ours)
            if base is None:
                continue
            ahead = [(_value(column, peer), peer) for peer in _measured(made) if peer is not ours]
            ahead = sorted(
                ((value, peer) for value, peer in ahead if value is not None and value > base),
                key=lambda one: -one[0],
            )
            if ahead:
                said = ", ".join(f"{peer['name']} {cell(column, peer)}" for _, peer in ahead)
                found.append(
                    f"{section.title}, {column.title.replace(': ', ', ')}: AgentX {cell(column, ours)}; {said}"
                )
    return found


def _value(column: Column, peer: Made) -> float | None:
    answer = peer["results"].get(column.operation, {})
    if column.value is None or "result" not in answer or "skipped" in answer["result"]:
        return None
    if _NOT in column.cell(answer["result"], answer.get("floor") or {}):
        return None
    return column.value(answer["result"], answer.get("floor") or {})


def _sections(made: Made) -> list[Section]:
    """Return those of which something was run."""
    run = {name for peer in _measured(made) for name in peer["results"]}
    return [one for one in SECTIONS if run & {column.operation for column in one.columns}]


def _measured(made: Made) -> list[Made]:
    return [peer for peer in made["peers"] if "results" in peer]


def markdown(made: Made) -> str:
    """Return everything that was measured, the better ones first."""
    lines = ["### Where others are better", ""]
    lines += [f"- **{line.partition(': ')[0]}**: {line.partition(': ')[2]}." for line in better(made)] or [
        "Nothing was found."
    ]
    for section in _sections(made):
        lines += ["", f"### {section.title}", "", *_table(section, made), *_remarks(section, made)]
    lines += ["", "### Versions and configurations", "", *_versions(made)]
    lines += [
        "",
        f"{made['machine']}; at most {made['n']} kills each; an operation ended after {made['limit_s']:.0f} s with what it had.",
        "",
    ]
    return "\n".join(lines)


def _table(section: Section, made: Made) -> Iterable[str]:
    yield _row(["product", *(column.title for column in section.columns)])
    yield "|" + "---|" * (len(section.columns) + 1)
    for peer in _ordered(made):
        yield _row([_named(peer), *(cell(column, peer) for column in section.columns)])


def _ordered(made: Made) -> list[Made]:
    places = {_OURS: 0, **dict.fromkeys(_FLOORS, 2)}
    return sorted(_measured(made), key=lambda peer: places.get(peer["key"], 1))


def _named(peer: Made) -> str:
    return f"*{peer['name']}*" if peer["key"] in _FLOORS else peer["name"]


def _remarks(section: Section, made: Made) -> Iterable[str]:
    operations = {column.operation for column in section.columns}
    said = [
        f"- {peer['name']}: {peer['remarks'][key]}."
        for peer in _ordered(made)
        for key in section.remarks
        if key in peer.get("remarks", {})
    ]
    said += [
        f"- {peer['name']}: `{answer['error']}`."
        for peer in _ordered(made)
        for name, answer in peer["results"].items()
        if name in operations and answer.get("error", NOT_RUN) != NOT_RUN
    ]
    said += [
        f"- {peer['name']}, of its errors: `{_without_paths(answer['result']['first_error'])}`."
        for peer in _ordered(made)
        for name, answer in peer["results"].items()
        if name in operations and answer.get("result", {}).get("first_error")
    ]
    return ["", *said] if said else []


def _without_paths(text: str) -> str:
    return re.sub(r"(?<!\w)/[\w./+-]{12,}", "…", text)


def _versions(made: Made) -> Iterable[str]:
    yield _row(["product", "package", "what it is", "configuration"])
    yield "|---|---|---|---|"
    for peer in _ordered(made):
        package = f"`{peer['package']}` {peer['version']}" if peer["package"] else "–"
        yield _row([peer["name"], package, peer["kind"], peer["durability"]])
    for peer in made["peers"]:
        if "failed" in peer:
            packages = ", ".join(f"`{one.replace('==', '` ')}" for one in peer["packages"])
            yield _row(
                [peer["key"], packages, "could not be measured", f"`{_without_paths(peer['failed'])}`"]
            )


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def terminal(made: Made) -> None:
    """Print the same for a terminal."""
    console = Console()
    for section in _sections(made):
        table = Table(title=section.title, title_justify="left")
        for title in ("product", *(column.title for column in section.columns)):
            table.add_column(title)
        for peer in _ordered(made):
            cells = (cell(column, peer).replace("**", "") for column in section.columns)
            table.add_row(peer["name"], *cells, style="bold" if peer["key"] == _OURS else "")
        console.print(table)
    for line in better(made):
        console.print(f"better: {line}", highlight=False, markup=False)
    for peer in made["peers"]:
        if "failed" in peer:
            console.print(f"not measured: {peer['key']}: {peer['failed']}", highlight=False, markup=False)


def write_page(page: Path, text: str) -> None:
    """Put the tables into a page, between its two marks.

    Raises:
        ValueError: If the page has no such marks.
    """
    old = page.read_text("utf-8")
    new, count = _BLOCK.subn(lambda found: found[1] + text + found[2], old)
    if count != 1:
        raise ValueError(f"{page} has {count} blocks between <!-- compare --> and <!-- end -->, not one")
    page.write_text(new, "utf-8")
