"""The report on a session: one page with a summary at its top and pictures below."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import NamedTuple

from agentx.cognition.logs import put
from agentx.cognition.overview import Overview, Spread
from agentx.cognition.pictures import pictures
from agentx.cognition.pictures.canvas import COLOURS, FONT, alone
from agentx.cognition.pictures.decay_curves import PANELS, ROWS
from agentx.cognition.pictures.spending import duration
from agentx.storage.errors import UsageError
from agentx.storage.text import one_line, shorten

PAGE = "index.html"

_WORDS = 9
_CENT = 0.01
_LARGE = 100
_MANY = 20
_SPELLED = 2


class ReportSummary(NamedTuple):
    """The summary of the report: number of interactions, how many fetched memories, and costs."""

    interactions: str
    fetched: str
    cost: str

    def __str__(self) -> str:
        """Return all in one sentence."""
        return f"{self.interactions}, {self.fetched}, {self.cost}."


def summary(seen: Overview) -> ReportSummary:
    """Return the summary at the top of the report."""
    times, spent = seen.triggers.triggered, seen.collected
    fetched = f"memories fetched in {times:,} of them" if times else "no memories fetched"
    cost = f"{spent.total_tokens:,} tokens" if spent.total_tokens else "no model asked"
    if usd := spent.cost_usd:
        cost += f" for ${usd:,.2f}" if usd >= _CENT else f" for ${usd:.4f}"
    return ReportSummary(_many(len(seen.interactions), "interaction"), fetched, cost)


def write_report(seen: Overview, folder: Path) -> list[Path]:
    """Write the page and its pictures; return the paths, with the page first.

    Raises:
        ExtraMissing: matplotlib is not installed.
        UsageError: They cannot be written.
    """
    drawn = pictures(seen)
    contents = {PAGE: page(seen, drawn)} | {f"{name}.svg": alone(svg) for name, svg in drawn.items()}
    for name, content in contents.items():
        try:
            put(folder / name, content.encode())
        except OSError as error:
            raise UsageError(f"The report cannot be written to {folder}: {error.strerror}.") from error
    return [folder / name for name in contents]


def page(seen: Overview, drawn: Mapping[str, str]) -> str:
    """Return the self-contained page."""
    template = Template((files("agentx.cognition.pictures") / "report.html").read_text("utf-8"))
    top = summary(seen)
    return template.substitute(
        title=escape(f"{seen.title} · {seen.session}"),
        colours=COLOURS,
        font=FONT,
        what=escape(" · ".join(_where(seen))),
        interactions=escape(top.interactions),
        fetched=escape(top.fetched),
        cost=escape(top.cost),
        sections="\n".join(
            f'<section id="{name}"><h2>{escape(heading)}</h2><p>{escape(note)}</p>{drawn[name]}</section>'
            for name, heading, note in sections(seen)
            if name in drawn
        ),
        faults="".join(
            f"<li>{escape(one_line(fault))}{f' <b>{count:,}×</b>' if count > 1 else ''}</li>"
            for fault, count in sorted(seen.collected.faults.items(), key=lambda found: -found[1])
        )
        or "<li>None.</li>",
        rows="\n".join(_row(name, found) for name, found in seen.collected.metrics.items() if found.max),
    )


def _where(seen: Overview) -> Iterator[str]:
    yield seen.title
    yield f"session {seen.session}"
    begin, end = (_local(one.at) for one in (seen.interactions[0], seen.interactions[-1]))
    yield begin if begin == end else f"{begin} to {end}"


def _local(at: str) -> str:
    return f"{datetime.fromisoformat(at).astimezone():%d %B %Y}".lstrip("0")


def sections(seen: Overview) -> Iterator[tuple[str, str, str]]:
    """Yield the parts of the page: a picture's name, a heading with its finding, and how to read it."""
    yield (
        "pulse",
        _pulse(seen),
        (
            "Each mark is an interaction, from left to right. "
            "A mark of full height under fetched: more than once."
        ),
    )
    more = len(seen.curves) > PANELS
    yield (
        "decay",
        _remembered(seen),
        "R = exp(-t / S T): each memory fades with every interaction t, and comes back when it is used; "
        + (f"the {PANELS} that answers used most." if more else "each use lets it fade more slowly."),
    )
    most = f"the {ROWS} that were used most" if len(seen.curves) > ROWS else "each in a row"
    yield (
        "memories",
        f"All {len(seen.curves):,} memories at a glance",
        (
            f"{most.capitalize()}, in the order in which they came: the fresher, the darker, "
            "in the colour of their level. Dots: an answer used it."
        ),
    )
    yield (
        "triggers",
        _unsure(seen),
        "A look at the buffer fetches only where both tiers are uncertain: in the upper right.",
    )
    yield "latency", _waited(seen), "Each dot is one time that a module ran; the bar is its median."
    yield "tokens", _spent(seen), "Messages to and from models, by module."
    judged = seen.collected.metrics.get("judge_score")
    mean = f"Answers rest on the buffer by {judged.mean:.2f} on average" if judged else ""
    yield "judge", mean, "How many answers the judge gave which score, from 0 to 1."


def _pulse(seen: Overview) -> str:
    found = seen.triggers
    if not found.asked:
        return "Nothing was asked that needed a look at the buffer"
    asked = _many(found.asked, "look")
    if not found.triggered:
        return f"{asked} at the buffer, and each time it was enough"
    enough = found.asked - found.triggered
    times = ("never", "once", "twice")[enough] if enough <= _SPELLED else f"{enough:,} times"
    return f"The buffer was enough {times} out of {_many(found.asked, 'time')}"


def _remembered(seen: Overview) -> str:
    held, count = len(seen.held), len(seen.curves)
    still = (
        f"{held:,} of them still held" if held < count else "still held" if count == 1 else "all still held"
    )
    heading = f"{_many(count, 'memory', 'memories')}, {still}"
    used = {name: sum(p.was_reinforced for p in curve) for name, curve in seen.curves.items()}
    if used and (times := max(used.values())) > 1:
        favourite = shorten(seen.text(max(used, key=used.__getitem__)), _WORDS)
        heading += f"; used most, {times:,} times: “{favourite}”"
    return heading


def _unsure(seen: Overview) -> str:
    looks = seen.triggers.uncertainty
    both = sum(look.requires_activation for look in looks)
    if not both:
        return f"{_many(len(looks), 'look')}, and never were both tiers uncertain"
    return f"Both tiers were uncertain in {both:,} of {_many(len(looks), 'look')}"


def _waited(seen: Overview) -> str:
    found = seen.collected.metrics.get("total_latency_ms")
    if found is None:
        return ""
    if found.count == 1:
        return f"It took {duration(found.p50)}"
    half = f"Half of all interactions took less than {duration(found.p50)}"
    return half + (f", and 1 in 20 more than {duration(found.p95)}" if found.count >= _MANY else "")


def _spent(seen: Overview) -> str:
    spent = seen.collected
    if not spent.total_tokens:
        return ""
    module, tokens = max(spent.tokens.items(), key=lambda found: found[1].total)
    each = spent.total_tokens / max(spent.interactions, 1)
    return (
        f"{each:,.0f} tokens an interaction, {tokens.total / spent.total_tokens:.0%} of them for the {module}"
    )


def _row(name: str, found: Spread) -> str:
    values = (found.mean, found.std, found.min, found.p50, found.p95, found.max)
    numbers = (f"{one:,.0f}" if one == int(one) or abs(one) >= _LARGE else f"{one:,.3g}" for one in values)
    return f"<tr><th>{escape(name)}</th>{''.join(f'<td>{number}</td>' for number in numbers)}</tr>"


def _many(count: int, one: str, more: str = "") -> str:
    return f"{count:,} {one if count == 1 else more or one + 's'}"
