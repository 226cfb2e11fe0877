"""Memory items for display: a frame for each, with the words that it is based on."""

from collections.abc import Sequence

from rich.panel import Panel
from rich.text import Text

from agentx.cli.terminal import Terminal, counted, facts, minute, panel
from agentx.storage.text import plain
from agentx.synthesis.memory.checks import in_words
from agentx.synthesis.memory.items import (
    FOLLOWED,
    ConstraintDetail,
    FlowDetail,
    HotIssueDetail,
    MemoryItem,
    RejectionDetail,
    RuleDetail,
    checks_of,
    ending,
    followed_from,
    is_shown_only,
    not_passed,
    sort_of,
    superseded_by,
)
from agentx.synthesis.state.flow_lessons import Lessons
from agentx.synthesis.state.flows import standing, told, versions_told
from agentx.synthesis.state.rule_lifecycle import is_critical


def show_items(terminal: Terminal, items: list[MemoryItem]) -> None:
    """Show items one by one, or as JSON."""
    terminal.result(items, *(framed(terminal, item) for item in items))


def marks(item: MemoryItem) -> str:
    """Return the special marks of an item, in a few words."""
    detail = item.detail
    checked, sort = checks_of(item), sort_of(item)
    passing = isinstance(detail, ConstraintDetail) and detail.duration == "for_now"
    return " ".join(
        word
        for word, holds in (
            (sort.replace("_", " "), sort != item.kind),
            ("pinned", item.pinned),
            ("checked", checked),
            ("shown only", item.status == "active" and is_shown_only(item)),
            ("for now", passing),
        )
        if holds
    )


def ended_how(item: MemoryItem) -> str:
    """Return how an item ended, in a few words; empty if it did not end, or was simply retired."""
    how = ending(item)
    if how == "superseded":
        return f"superseded by {superseded_by(item)}"
    return "resolved" if how == "archived" else how


def framed(
    terminal: Terminal, item: MemoryItem, *also: tuple[str, str | Text], lessons: Lessons | None = None
) -> Panel:
    """Return one item in a frame, with additional rows after its text, and a flow's lessons by step."""
    how = f" ({ended})" if (ended := ended_how(item)) else ""
    sort = f" ({sort_of(item)})" if sort_of(item) != item.kind else ""
    about = f" {item.kind}{sort} · {item.status}{how}".replace("_", " ")
    title = Text.assemble((item.id, "bold cyan"), (about, "dim"))
    return panel(facts(_facts(item, also, lessons or {})), title=title, width=terminal.out.width)


STANDING_COLOURS = {"proven": "green", "broken": "red", "unproven": "yellow", "unused": "dim"}


def flow_rows(detail: FlowDetail, lessons: Lessons) -> list[tuple[str, str | Text]]:
    """Return a flow's record and steps as rows, each step after the lessons that concern it."""
    how = standing(detail)
    record = told(detail) if how == "unused" else f"in {told(detail)}: {how}"
    rows: list[tuple[str, str | Text]] = [
        ("works", Text(record, STANDING_COLOURS[how])),
        ("record", versions_told(detail)),
    ]
    seen, shown = detail.steps_seen
    if shown:
        rows.append(("last run", f"steps seen {seen} of {shown}"))
    if detail.not_followed:
        rows.append(("not followed", f"matched {counted(detail.not_followed, 'more task')}"))
    rows += [("approval", "needs approval before it starts")] if detail.needs_approval else []
    for number, step in enumerate(detail.steps, start=1):
        rows += [(one.id, Text(plain(one.text), "yellow")) for one in lessons.get(number, ())]
        rows.append((f"step {number}", plain(step)))
    return [*rows, ("triggers", plain(" · ".join(detail.triggers)))]


def origin(item: MemoryItem) -> list[tuple[str, str | Text]]:
    """Return as rows what an item answers, whose words its text is, and what may have ended it."""
    rows: list[tuple[str, str | Text]] = []
    if item.answers is not None:
        rows.append(("answers", f"“{plain(item.answers.quote)}”"))
    if item.worded_by:
        rows.append(("worded by", item.worded_by))
    rows += [("perhaps ended", f"“{plain(one.quote)}” (event {one.seq})") for one in item.perhaps_ended_by]
    return rows


def _score(item: MemoryItem) -> str:
    score = f"{item.score:g}{', critical' * is_critical(item)}"
    if isinstance(item.detail, RuleDetail):
        broken, over = item.detail.violations, item.detail.passed_over
        score += f", broken {counted(broken, 'time')}" if broken else ""
        score += f", passed over by the last {counted(over, 'task')}" if over else ""
    return score


def _facts(
    item: MemoryItem, also: Sequence[tuple[str, str | Text]], lessons: Lessons
) -> list[tuple[str, str | Text]]:
    detail = item.detail
    rows: list[tuple[str, str | Text]] = [("", Text(plain(item.text), "bold")), *also]
    if source := followed_from(item):
        rows.append(("followed", plain(source)))
    rows += flow_rows(detail, lessons) if isinstance(detail, FlowDetail) else []
    quoted = (one for one in item.evidence if one.quote and (item.kind != "flow" or one.quote != item.text))
    rows += [(f"event {one.seq}", f"“{plain(one.quote)}”") for one in quoted]
    rows += origin(item)
    rows += [("checked", in_words(check)) for check in checks_of(item)]
    rows += [("checked", "no: shown only")] if is_shown_only(item) else []
    if isinstance(detail, RejectionDetail) and detail.reason:
        rows.append(("because", detail.reason))
    if isinstance(detail, HotIssueDetail):
        place = f"{detail.path}:{detail.line}" if detail.line else detail.path
        rows += [("check", f"{detail.runner}: {detail.check}"), ("where", place), ("said", detail.message)]
        rows += [
            ("priority", detail.priority),
            ("failed", f"{detail.failures} times"),
            ("state", not_passed(detail)),
            ("ended", detail.ended),
        ]
    if item.kind == "rule":
        rows.append(("score", _score(item)))
    rows += [
        ("topic", item.scope.topic),
        ("paths", ", ".join(item.scope.paths)),
        ("until", item.until or ("revoked" if "for now" in marks(item) else "")),
        (
            "links",
            ", ".join(f"{one.relation} {one.target}" for one in item.links if one.relation != FOLLOWED),
        ),
        ("why", item.reason),
        ("pinned", "always shown" if item.pinned else ""),
        ("trust", item.trust),
        (
            "since",
            (f"{minute(item.created_at)}, " if item.created_at else "")
            + f"event {item.created_seq}"
            + (f", changed in {item.changed_seq}" if item.changed_seq != item.created_seq else ""),
        ),
    ]
    return [(label, value) for label, value in rows if value]
