"""``agentx memory``: list, add, correct, end and settle what is remembered."""

from collections.abc import Sequence
from typing import Annotated, cast, get_args

import typer
from rich.text import Text

from agentx.cli.memory.checks import read_checks, show_trial
from agentx.cli.memory.items import ended_how, framed, marks, show_items
from agentx.cli.opened import MOMENT, opened
from agentx.cli.terminal import Terminal, counted, panel, table
from agentx.memory.editing import find, proposed
from agentx.storage.errors import UsageError
from agentx.storage.events.types import UserMessageSent
from agentx.storage.text import encodable, one_line, plain
from agentx.synthesis.demands.explanation import Verdict
from agentx.synthesis.learning.merging import wordings
from agentx.synthesis.memory.items import (
    FORMER_KINDS,
    Ending,
    FormerKind,
    Kind,
    MemoryItem,
    Scope,
    Status,
    ending,
)
from agentx.synthesis.scribe.explaining import explained
from agentx.synthesis.state.answered import answered

_STATUS_COLOURS = {"active": "green", "candidate": "yellow"}

_FORMER_STATUSES: dict[str, tuple[str, tuple[Ending, ...]]] = {
    "resolved": ("closed", ("resolved",)),
    "superseded": ("retired", ("superseded",)),
    "archived": ("closed or retired", ("lapsed", "archived")),
    "proposed": ("candidate", ()),
}
"""Former statuses that ``--status`` still accepts: what they are now, and how their items ended."""

_VERDICT_COLOURS: dict[Verdict, str] = {
    "active": "bold green",
    "candidate": "bold yellow",
    "changes": "bold red",
    "ends": "bold red",
    "left": "",
    "material": "dim",
}
_VERDICTS: dict[Verdict, str] = {
    "active": "captured",
    "candidate": "candidate",
    "changes": "may change a rule",
    "ends": "may end a rule",
    "left": "left alone",
    "material": "not yours",
}

PART_CHARACTERS = 60
"""Maximum length of a part of a message in a table."""

LONG = 40
"""A memory with more items is listed kind by kind, the most binding kinds first."""

MOST = 8
"""Items shown of each kind then: the rules with the highest scores, the latest of the other kinds."""

ONE_CALL = "one call"
"""Marks a rejection that concerned one call and rules out nothing else."""

Name = Annotated[
    str, typer.Argument(metavar="ID", show_default=False, help="Its ID, from `agentx memory list`.")
]

AsOf = Annotated[str, typer.Option(metavar="MOMENT", help=f"As of {MOMENT}.")]


def list_items(
    terminal: Terminal,
    kind: Annotated[str, typer.Option(help=f"Only of this kind: {', '.join(get_args(Kind))}.")] = "",
    status: Annotated[
        str,
        typer.Option(
            help=f"Only with this status: {', '.join(get_args(Status))}; active by default.",
            show_default=False,
        ),
    ] = "",
    as_of: AsOf = "",
    *,
    everything: Annotated[bool, typer.Option("--all", help="Items of any status.")] = False,
) -> None:
    """List memory items; by default the active ones.

    A long memory is shown by kind, constraints first, a few of each; --kind, --all and --json show all.
    """
    wanted_kind = _kind(terminal, kind) if kind else None
    refusals = kind == "rejection" and not status and not everything
    status = status or "active"
    now, endings = _FORMER_STATUSES.get(status, ("", ()))
    if now:
        terminal.note(f"The status {status!r} is now {now}; its name is accepted until the next release.")
    wanted_status = (
        None
        if everything or refusals or endings
        else cast("Status", _known(now if now == "candidate" else status, get_args(Status), "status"))
    )
    with opened(terminal) as ws:
        when = encodable(as_of) or None
        items = ws.memory(wanted_kind, status=wanted_status, as_of=when)
        if refusals:
            items = [item for item in items if item.status != "retired"]
        if endings and not everything:
            items = [item for item in items if ending(item) in endings]
        candidates = 0 if when else len(ws.memory(status="candidate"))
    if terminal.json:
        terminal.document(items)
        return
    if refusals:  # active ones first
        items = sorted(items, key=lambda item: item.status != "active")
    whole = bool(wanted_kind or when) or wanted_status != "active" or len(items) <= LONG
    rows = [_row(item) for item in items] if whole else _overview(items)
    if rows:
        terminal.show(table("id", "kind", "status", "", "since", "what", rows=rows))
    else:
        terminal.show(
            f"There is nothing {'' if everything else status + ' '}in memory{' of that kind' * bool(kind)}."
        )
    if candidates and status == "active" and not everything:
        terminal.note(f"{counted(candidates, 'candidate')} to settle: `agentx memory review`.")


def _row(item: MemoryItem) -> tuple[str | Text, ...]:
    return (
        Text(item.id, "cyan"),
        item.kind.replace("_", " "),
        Text(item.status, _STATUS_COLOURS.get(item.status, "dim")),
        _marks(item),
        Text(item.created_at[:10], "dim"),
        one_line(item.text),
    )


def _marks(item: MemoryItem) -> str:
    one_call = item.kind == "rejection" and item.status == "dormant"
    return " · ".join(filter(None, (marks(item), ended_how(item), ONE_CALL * one_call)))


def _overview(items: Sequence[MemoryItem]) -> list[tuple[str | Text, ...]]:
    """Return the first items of each kind, and how to see the others."""
    rows: list[tuple[str | Text, ...]] = []
    for kind in get_args(Kind):
        of_it = [item for item in reversed(items) if item.kind == kind]
        of_it.sort(key=lambda item: (not item.pinned, -item.score if item.kind == "rule" else 0))
        rows += [_row(item) for item in of_it[:MOST]]
        if (more := len(of_it) - MOST) > 0:
            rest = Text(f"and {more} more: agentx memory list --kind {kind}", "dim")
            rows.append(("", Text(kind.replace("_", " "), "dim"), "", "", "", rest))
    return rows


def _kind(terminal: Terminal, name: str) -> Kind | FormerKind:
    """Return a kind, with a notice if it is a former one."""
    if name in FORMER_KINDS:
        kind, _ = FORMER_KINDS[name]
        terminal.note(
            f"The kind {name!r} is now part of {kind}; its name is accepted until the next release."
        )
        return cast("FormerKind", name)
    return cast("Kind", _known(name, get_args(Kind), "kind"))


def _known(name: str, names: tuple[str, ...], what: str) -> str:
    if name not in names:
        raise UsageError(f"Unknown {what} {name!r}. Choose from {', '.join(names)}.")
    return name


def show(terminal: Terminal, name: Name, as_of: AsOf = "") -> None:
    """Show one item with the words that it is based on."""
    with opened(terminal) as ws:
        state = ws.state_at(encodable(as_of)) if as_of else ws.told
        item = find(ws.engine, name, state)
    also = [("also worded", f"{one.text} ({one.id})") for one in wordings(item, state.items)]
    terminal.result(item, framed(terminal, item, *also))


def add(  # noqa: PLR0913 - one parameter for each option
    terminal: Terminal,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", show_default=False, help="A sentence that an agent can act on.")
    ],
    kind: Annotated[
        str,
        typer.Option(help="constraint, rejection, rule, decision, task, situation, knowledge or north_star."),
    ] = "constraint",
    topic: Annotated[str, typer.Option(help="The topic that it is limited to.")] = "",
    path: Annotated[
        list[str] | None, typer.Option(metavar="GLOB", help="Files that it is limited to (repeatable).")
    ] = None,
    until: Annotated[str, typer.Option(help="Until when, in your words.")] = "",
    score: Annotated[float, typer.Option(min=1, max=10, help="Importance.")] = 5.0,
    check: Annotated[
        str, typer.Option(metavar="FILE", help="YAML file of the checks that enforce it; '-' reads stdin.")
    ] = "",
    *,
    trial: Annotated[
        bool,
        typer.Option("--try", help="Show what its checks would have stopped so far; add nothing."),
    ] = False,
) -> None:
    """Add an item in your own words; a constraint that code can check is checked from now on."""
    scope = Scope(topic=encodable(topic).lower(), paths=tuple(path or ()))
    wanted, words = _kind(terminal, kind), encodable(text)
    checks = read_checks(check) if check else None
    with opened(terminal, look=trial) as ws:
        if trial:
            show_trial(terminal, ws, proposed(wanted, words, scope, checks))
            return
        item = ws.remember(wanted, words, scope=scope, until=encodable(until), score=score, checks=checks)
    show_items(terminal, [item])


def edit(
    terminal: Terminal,
    name: Name,
    text: Annotated[str, typer.Argument(metavar="TEXT", show_default=False, help="The new text.")],
) -> None:
    """Change the text of an item; its compiled checks are compiled again."""
    with opened(terminal) as ws:
        item = ws.edit_memory(name, encodable(text))
    show_items(terminal, [item])


Names = Annotated[
    list[str], typer.Argument(metavar="ID...", show_default=False, help="IDs, from `agentx memory list`.")
]


def retire(
    terminal: Terminal,
    names: Names,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why, in a line; kept with the items.")] = "",
) -> None:
    """Retire items: they no longer apply, and stay in the history."""
    with opened(terminal) as ws:
        for name in names:  # if one does not exist, none is changed
            find(ws.engine, name)
        items = [ws.retire(name, reason=reason) for name in names]
    show_items(terminal, items)


def pin(
    terminal: Terminal,
    names: Names,
    *,
    off: Annotated[bool, typer.Option("--off", help="Unpin them.")] = False,
) -> None:
    """Pin items, so that every context includes them."""
    with opened(terminal) as ws:
        for name in names:
            find(ws.engine, name)
        items = [ws.pin(name, pinned=not off) for name in names]
    show_items(terminal, items)


def merge(
    terminal: Terminal,
    name: Name,
    other: Annotated[
        str, typer.Argument(metavar="OTHER", show_default=False, help="The item to merge into it.")
    ],
    *,
    back: Annotated[bool, typer.Option("--undo", help="Separate two merged items for good.")] = False,
) -> None:
    """Merge a rule into another that says the same; its wording stays on record."""
    with opened(terminal) as ws:
        item = ws.merge(name, other, undo=back)
    show_items(terminal, [item])


def explain_message(
    terminal: Terminal,
    text: Annotated[
        str, typer.Argument(metavar="MESSAGE", show_default=False, help="Any message; '-' reads stdin.")
    ] = "",
    event: Annotated[int, typer.Option(metavar="SEQ", help="Event number of a recorded message.")] = 0,
) -> None:
    """Show what a message would give: kept, a candidate, or left alone, and why; records nothing."""
    if bool(text) == bool(event):
        raise UsageError("Give a message, or --event with its number; `agentx log` shows the numbers.")
    message, question = encodable(terminal.stdin.read() if text == "-" else text), None
    if event:
        with opened(terminal) as ws:
            found = next(iter(ws.events(event - 1)), None) if event > 0 else None
            if found is None or found.seq != event or not isinstance(found.data, UserMessageSent):
                raise UsageError(f"Event {event} is not a user's message; see `agentx log`.")
            message = ws.read_body(found.data.body)
            question = answered(ws.state_at(event), message, event)
    parts = explained(message, question.quote if question else "")
    if terminal.json:
        terminal.document(parts)
        return
    whole = Text(plain(message).rstrip())
    if len(whole) == len(message.rstrip()):  # nothing was stripped, so the offsets still match
        for part in parts:
            whole.stylize(_VERDICT_COLOURS[part.verdict], part.start, part.end)
    title = Text(f"event {event}" if event else "the message", "dim")
    terminal.show(panel(whole, title=title, width=terminal.out.width))
    room = min(PART_CHARACTERS, terminal.out.width // 3)  # leave room for the reason
    rows = []
    for part in parts:
        words = one_line(message[part.start : part.end])
        shown = words if len(words) <= room else words[: room - 1] + "…"
        verdict = Text(_VERDICTS[part.verdict], _VERDICT_COLOURS[part.verdict])
        rows.append((shown, verdict, part.kind, one_line(part.why)))
    terminal.show(table("what", "becomes", "", "why", rows=rows) if rows else "The message is empty.")
