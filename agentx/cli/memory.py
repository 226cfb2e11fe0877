"""``agentx memory``: what is remembered, and the way to add, correct, end and settle it."""

from typing import Annotated, cast, get_args

import typer
from rich.text import Text

from agentx.cli.explaining import explain_message
from agentx.cli.opened import MOMENT, opened
from agentx.cli.terminal import Terminal, facts, panel, table
from agentx.curation import find
from agentx.storage.errors import UsageError
from agentx.storage.text import encodable, one_line, plain
from agentx.synthesis.items import (
    Check,
    ConstraintDetail,
    HotIssueDetail,
    Kind,
    MemoryItem,
    RejectionDetail,
    Scope,
    Status,
    is_checked,
)
from agentx.workspace import Workspace

_STATUS_COLOURS = {"active": "green", "proposed": "yellow"}

Name = Annotated[
    str, typer.Argument(metavar="ID", show_default=False, help="As `agentx memory list` shows it.")
]

AsOf = Annotated[str, typer.Option(metavar="MOMENT", help=f"As it was then: {MOMENT}.")]


def list_items(
    ctx: typer.Context,
    kind: Annotated[str, typer.Option(help=f"Only of this kind: {', '.join(get_args(Kind))}.")] = "",
    status: Annotated[
        str, typer.Option(help=f"Only with this status: {', '.join(get_args(Status))}.")
    ] = "active",
    as_of: AsOf = "",
    *,
    everything: Annotated[bool, typer.Option("--all", help="Whatever their status.")] = False,
) -> None:
    """List memory items, those that stand by default."""
    terminal: Terminal = ctx.obj
    wanted_kind = cast("Kind", _known(kind, get_args(Kind), "kind")) if kind else None
    wanted_status = None if everything else cast("Status", _known(status, get_args(Status), "status"))
    with opened(terminal) as ws:
        when = encodable(as_of) or None
        items = ws.memory(wanted_kind, status=wanted_status, as_of=when)
        proposed = 0 if when else len(ws.memory(status="proposed"))
    if terminal.json:
        terminal.document(items)
        return
    rows = [
        (
            Text(item.id, "cyan"),
            item.kind.replace("_", " "),
            Text(item.status, _STATUS_COLOURS.get(item.status, "dim")),
            _marks(item),
            one_line(item.text),
        )
        for item in items
    ]
    if rows:
        terminal.show(table("id", "kind", "status", "", "what", rows=rows))
    else:
        terminal.show(
            f"There is nothing {'' if everything else status + ' '}in memory{' of that kind' * bool(kind)}."
        )
    if proposed and wanted_status == "active":
        terminal.note(f"{proposed} proposal{'s' * (proposed != 1)} to settle: `agentx memory review`.")


def _known(name: str, names: tuple[str, ...], what: str) -> str:
    if name not in names:
        raise UsageError(f"There is no {what} {name!r}; it is one of {', '.join(names)}.")
    return name


def _marks(item: MemoryItem) -> str:
    detail = item.detail
    checked = is_checked(item)
    passing = isinstance(detail, ConstraintDetail) and detail.duration == "for_now"
    return " ".join(
        word for word, holds in (("pinned", item.pinned), ("checked", checked), ("for now", passing)) if holds
    )


def show(ctx: typer.Context, name: Name, as_of: AsOf = "") -> None:
    """Show one item with the words that it rests on."""
    terminal: Terminal = ctx.obj
    with opened(terminal) as ws:
        item = find(ws.engine, name, ws.state_at(encodable(as_of)) if as_of else None)
    if terminal.json:
        terminal.document(item)
    else:
        _panel(terminal, item)


def _panel(terminal: Terminal, item: MemoryItem) -> None:
    title = Text.assemble((item.id, "bold cyan"), (f" {item.kind.replace('_', ' ')} · {item.status}", "dim"))
    terminal.show(panel(facts(_facts(item)), title=title, width=terminal.out.width))


def _facts(item: MemoryItem) -> list[tuple[str, str | Text]]:
    rows: list[tuple[str, str | Text]] = [("", Text(plain(item.text), "bold"))]
    rows += [(f"event {one.seq}", f"“{plain(one.quote)}”") for one in item.evidence if one.quote]
    detail = item.detail
    if isinstance(detail, ConstraintDetail | RejectionDetail) and detail.check is not None:
        rows.append(("checked", _check(detail.check)))
    if isinstance(detail, RejectionDetail) and detail.reason:
        rows.append(("because", detail.reason))
    if isinstance(detail, HotIssueDetail):
        place = f"{detail.path}:{detail.line}" if detail.line else detail.path
        rows += [("check", f"{detail.runner}: {detail.check}"), ("where", place), ("said", detail.message)]
        rows += [
            ("priority", detail.priority),
            ("failed", f"{detail.failures} times"),
            ("ended", detail.ended),
        ]
    rows += [
        ("topic", item.scope.topic),
        ("paths", ", ".join(item.scope.paths)),
        ("until", item.until or ("told otherwise" if "for now" in _marks(item) else "")),
        ("links", ", ".join(f"{link.relation} {link.target}" for link in item.links)),
        ("pinned", "always shown" if item.pinned else ""),
        ("trust", item.trust),
        (
            "since",
            f"event {item.created_seq}"
            + (f", changed in {item.changed_seq}" if item.changed_seq != item.created_seq else ""),
        ),
    ]
    return [(label, value) for label, value in rows if value]


def _check(check: Check) -> str:
    """A compiled check in words."""
    settings = {name: getattr(check, name) for name in check.__struct_fields__}
    words = [
        f"{name} {', '.join(map(str, value)) if isinstance(value, tuple) else value}"
        for name, value in settings.items()
        if value
    ]
    return f"{type(check).__struct_config__.tag}: {'; '.join(words)}".replace("_", " ")


def add(
    ctx: typer.Context,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", show_default=False, help="A sentence that an agent can act on.")
    ],
    kind: Annotated[
        str,
        typer.Option(
            help="constraint, rejection, rule, decision, task, context, knowledge, checkpoint or north_star."
        ),
    ] = "constraint",
    topic: Annotated[str, typer.Option(help="The subject that it is limited to.")] = "",
    path: Annotated[
        list[str] | None, typer.Option(metavar="GLOB", help="Files that it is limited to (may be repeated).")
    ] = None,
    until: Annotated[str, typer.Option(help="What ends it, in your words.")] = "",
    score: Annotated[float, typer.Option(min=1, max=10, help="How important it is.")] = 5.0,
) -> None:
    """Remember something in your own words; a constraint that code can check is checked from now on."""
    terminal: Terminal = ctx.obj
    scope = Scope(topic=encodable(topic).lower(), paths=tuple(path or ()))
    wanted = cast("Kind", _known(kind, get_args(Kind), "kind"))
    with opened(terminal) as ws:
        item = ws.remember(wanted, encodable(text), scope=scope, until=encodable(until), score=score)
    _tell(terminal, [item])


def edit(
    ctx: typer.Context,
    name: Name,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", show_default=False, help="What it says from now on.")
    ],
) -> None:
    """Say an item in other words; its check is made anew."""
    terminal: Terminal = ctx.obj
    with opened(terminal) as ws:
        item = ws.edit_memory(name, encodable(text))
    _tell(terminal, [item])


Names = Annotated[
    list[str], typer.Argument(metavar="ID...", show_default=False, help="As `agentx memory list` shows them.")
]


def retire(ctx: typer.Context, names: Names) -> None:
    """End items: they bind nobody any more, and stay in the history."""
    terminal: Terminal = ctx.obj
    with opened(terminal) as ws:
        for name in names:
            find(ws.engine, name)
        items = [ws.retire(name) for name in names]
    _tell(terminal, items)


def pin(
    ctx: typer.Context,
    names: Names,
    *,
    off: Annotated[bool, typer.Option("--off", help="No longer.")] = False,
) -> None:
    """Show items in every context, whatever it is about."""
    terminal: Terminal = ctx.obj
    with opened(terminal) as ws:
        for name in names:
            find(ws.engine, name)
        items = [ws.pin(name, pinned=not off) for name in names]
    _tell(terminal, items)


def _tell(terminal: Terminal, items: list[MemoryItem]) -> None:
    if terminal.json:
        terminal.document(items)
    else:
        for item in items:
            _panel(terminal, item)


def review(
    ctx: typer.Context,
    accept: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Make this proposal stand (may be repeated).")
    ] = None,
    reject: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="End this proposal (may be repeated).")
    ] = None,
) -> None:
    """Settle what is only proposed: one key each at a terminal, or --accept and --reject."""
    terminal: Terminal = ctx.obj
    chosen = {**dict.fromkeys(accept or [], True), **dict.fromkeys(reject or [], False)}
    with opened(terminal) as ws:
        if chosen:
            _settle(terminal, ws, chosen)
            return
        waiting = ws.memory(status="proposed")
        if terminal.json:
            terminal.document(waiting)
        elif not waiting:
            terminal.show("There is nothing to settle: no item is only proposed.")
        elif not terminal.interactive:
            names = ", ".join(item.id for item in waiting)
            raise UsageError(
                f"There is no terminal to ask at; settle {names} with `--accept ID` and `--reject ID`."
            )
        else:
            _walk(terminal, ws, waiting)


def _settle(terminal: Terminal, ws: Workspace, chosen: dict[str, bool]) -> None:
    for name in chosen:
        if find(ws.engine, name).status != "proposed":
            raise UsageError(f"{name} is {find(ws.engine, name).status}, no proposal; nothing was changed.")
    _tell(terminal, [ws.review(name, accept=good) for name, good in chosen.items()])


def _walk(terminal: Terminal, ws: Workspace, waiting: list[MemoryItem]) -> None:
    for number, item in enumerate(waiting, start=1):
        _panel(terminal, item)
        question = f"{number} of {len(waiting)}: does it hold?  y yes · n no · s later · q stop "
        key = _key(terminal, question)
        if key == "q":
            return
        if key in "yn":
            settled = ws.review(item.id, accept=key == "y")
            terminal.show(Text(f"{item.id} is {settled.status}\n", "green" if key == "y" else "yellow"))


def _key(terminal: Terminal, question: str) -> str:
    """One key that is among the answers; Escape and the end of the input stop."""
    terminal.out.print(Text(question, "bold"), end="")
    while True:
        try:
            typed = typer.getchar().lower()
        except EOFError:
            typed = "q"
        letters = "q" if typed == "\x1b" else "" if typed.startswith("\x1b") else typed
        for letter in letters:  # several, where they were typed faster than they are read
            if letter in ("y", "n", "s", "q"):
                terminal.show(letter)
                return letter


COMMANDS = {
    "memory": {
        "list": list_items,
        "show": show,
        "add": add,
        "edit": edit,
        "retire": retire,
        "pin": pin,
        "review": review,
        "explain": explain_message,
    }
}
