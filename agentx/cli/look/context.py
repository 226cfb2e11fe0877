"""``agentx context``, ``agentx agent boot``, ``agentx search``: an agent's context, and search."""

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.padding import Padding
from rich.text import Text

from agentx.cli.hits import check_query, show_answer, show_hits
from agentx.cli.opened import MOMENT, opened, scan_sources
from agentx.cli.terminal import Terminal
from agentx.context.assembler import TITLES, Context
from agentx.context.rendering import unmarked
from agentx.context.service import DEADLINE_MS, why_lexical
from agentx.context.startup import BUDGET as BOOT_BUDGET
from agentx.context.startup import TITLES as BOOT_TITLES
from agentx.context.startup import boot as start
from agentx.search.across import Answer, search_here
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.index.port import Filter, SearchKind
from agentx.storage.text import encodable, one_line, plain
from agentx.synthesis.memory.policies import Section
from agentx.workspace import Workspace

AsOf = Annotated[str, typer.Option(metavar="MOMENT", help=f"As of {MOMENT}.")]
Explain = Annotated[
    bool, typer.Option("--explain", help="Show why each item is included, and what was left out.")
]


def context(
    terminal: Terminal,
    message: Annotated[
        str,
        typer.Argument(
            metavar="[MESSAGE]", help="What the agent will work on; the user's last message by default."
        ),
    ] = "",
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Maximum tokens of the text; the tier's by default.")
    ] = None,
    tier: Annotated[
        int,
        typer.Option(
            min=0,
            max=3,
            help="How much of the conversation: 0 none, 1 the last 30 messages, 2 a recap of the day too, "
            "3 the whole log (before an agent has answered that day, or with --max-tokens).",
        ),
    ] = 1,
    as_of: AsOf = "",
    deadline: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="Seconds to answer in; what is not ready by then is left out and listed.",
        ),
    ] = DEADLINE_MS / 1000,
    *,
    no_deadline: Annotated[bool, typer.Option("--no-deadline", help="Wait for the complete search.")] = False,
    explain: Explain = False,
) -> None:
    """Print the context that an agent would get now: the user's rules first, then what is relevant."""
    with opened(terminal, look=not as_of) as ws:
        then = encodable(as_of) or None

        with terminal.busy("Recalling"):
            made = ws.get_relevant_context(
                encodable(message),
                max_tokens=max_tokens,
                tier=tier,
                as_of=then,
                deadline_ms=None if no_deadline else deadline * 1000,
            )
        lexical = "" if "search" in made.late else why_lexical(ws.engine)
        ws.engine.indexer.abandons = terminal.caller is None
        _show_context(terminal, made, TITLES, explain=explain, lexical=lexical)


def boot(
    terminal: Terminal,
    agent: Annotated[
        str, typer.Option(metavar="ROLE", help="The agent's role; also include what is for that role only.")
    ] = "",
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Maximum tokens of the text.", show_default=f"{BOOT_BUDGET:,}")
    ] = None,
    as_of: AsOf = "",
    *,
    explain: Explain = False,
) -> None:
    """Print what an agent is given at its start: rules, flows, capabilities, lessons, current work."""
    with opened(terminal, look=not as_of) as ws:
        seq = ws.moment(encodable(as_of)) if as_of else None
        made = start(ws.engine, encodable(agent), max_tokens=max_tokens or BOOT_BUDGET, seq=seq)
    empty = "Memory has nothing yet that an agent needs at its start."
    _show_context(terminal, made, BOOT_TITLES, explain=explain, empty=empty)


def _show_context(
    terminal: Terminal,
    made: Context,
    titles: Mapping[Section, str],
    *,
    explain: bool,
    empty: str = "",
    lexical: str = "",
) -> None:
    """Print an agent's context, or each of its items with the reason.

    ``empty`` replaces the text of an empty context; ``lexical`` says why the search used words alone.
    """
    if terminal.json:
        terminal.document(made)
        return
    if explain:
        _explain(terminal, made, titles)
    else:
        terminal.show(empty if empty and not made.items else plain(made.text.rstrip("\n")))
    if made.replays:
        same = "to the byte" if made.exact else "except what was purged or no longer exists"
        terminal.note(f"As an agent was shown it in event {made.replays}, {same}.", "·")
    left_out = f", {len(made.omitted)} left out" if made.omitted else ""
    terminal.note(
        f"{made.tokens:,} of {made.max_tokens:,} tokens, {len(made.items)} items{left_out}, "
        f"after event {made.seq}.",
        "·",
    )
    if lexical:
        terminal.note(lexical)


def _explain(terminal: Terminal, made: Context, titles: Mapping[Section, str]) -> None:
    for section, title in titles.items():
        items = [item for item in made.items if item.section == section]
        if items:
            terminal.show(Text(title.partition(" (")[0], "bold"))
        for item in items:
            _entry(terminal, item.id, item.text, f"{item.why} · {item.source} · {item.tokens} tokens")
        if items:
            terminal.show("")
    if not made.items:
        terminal.show("It is empty.")
    if made.omitted:
        terminal.show(Text("Left out", "bold"))
    for one in made.omitted:
        _entry(terminal, one.id, one.text, f"{one.reason} · {one.kind}")


def _entry(terminal: Terminal, name: str, text: str, why: str) -> None:
    """Print an item, and below it why it was included or left out."""
    head = Text.assemble("  ", (one_line(name), "cyan"), "  ", unmarked(text))
    head.truncate(terminal.out.width, overflow="ellipsis")
    terminal.show(head, Padding(Text(one_line(why), "dim"), (0, 0, 0, 6)))


def search(  # noqa: PLR0913, PLR0917 - each narrows the search
    terminal: Terminal,
    query: Annotated[
        str,
        typer.Argument(
            metavar="QUERY", show_default=False, help='Words in any form; "quoted" words exactly.'
        ),
    ],
    k: Annotated[int, typer.Option("-k", min=1, max=1_000, help="How many.")] = 10,
    kind: Annotated[
        str, typer.Option(help="source, test, docs, config, data, artifact, message, tool or memory.")
    ] = "",
    path: Annotated[str, typer.Option(help="Directory or glob.")] = "",
    source: Annotated[str | None, typer.Option(help="One source; '' for the workspace.")] = None,
    actor: Annotated[str, typer.Option(help="An actor, or a class (agent:).")] = "",
    since: Annotated[str, typer.Option(metavar="DATE", help="From this ISO date or time.")] = "",
    before: Annotated[str, typer.Option(metavar="DATE", help="Before this date or time.")] = "",
    as_of: AsOf = "",
    *,
    files: Annotated[bool, typer.Option("--files", help="One hit per file.")] = False,
    group: Annotated[
        bool, typer.Option("--group/--no-group", help="Show the passages of a file as one hit.")
    ] = True,
    scan: Annotated[
        bool, typer.Option("--scan/--no-scan", help="Scan the sources for changes first.")
    ] = True,
    across: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", show_default=False, help="Also search this workspace; may be repeated."),
    ] = None,
) -> None:
    """Search files, messages, tool output, memory and the read-only sources."""
    check_query(query, kind)
    if across:
        if as_of or files:
            raise UsageError("--across cannot be combined with --as-of or --files.")
        kinds = (cast("SearchKind", kind),) if kind else ()
        where = Filter(kinds=kinds, path=path, source=source, actor=actor, since=since, before=before)
        with opened(terminal, look=True) as ws:
            if scan and source != "":
                scan_sources(terminal, ws)
            found = _search_across(terminal, ws, across, encodable(query), k, where, grouped=group)
        show_answer(terminal, encodable(query), found)
        return
    with opened(terminal, look=not as_of) as ws:
        if scan and not as_of and source != "":
            scan_sources(terminal, ws)
        with terminal.progress() as progress:
            ws.settle(0.0, progress)
        with terminal.busy("Searching"):
            hits = ws.search(
                encodable(query),
                k,
                kind=cast("SearchKind", kind) if kind else None,
                path=path,
                source=source,
                actor=actor,
                since=since,
                before=before,
                as_of=encodable(as_of) or None,
                files=files,
                grouped=group,
            )
        lexical = why_lexical(ws.engine)
    if terminal.json:
        terminal.document({"query": encodable(query), "hits": hits, "note": lexical})
        return
    show_hits(terminal, [("", hit) for hit in hits])
    if lexical:
        terminal.note(lexical)


def _search_across(
    terminal: Terminal,
    ws: Workspace,
    others: Sequence[Path],
    query: str,
    k: int,
    where: Filter,
    *,
    grouped: bool,
) -> Answer:
    """Search this workspace and others; one that cannot be opened is named in the answer."""
    indexers, failed = {ws.root.name: ws.engine.indexer}, {}
    with contextlib.ExitStack() as stack, terminal.busy("Searching"):
        for folder in others:
            name = str(folder)
            try:
                other = stack.enter_context(
                    Workspace.find(terminal.folder / folder, settings=terminal.settings)
                )
            except AgentXError as error:
                failed[name] = one_line(str(error))
            else:
                if other.root != ws.root:
                    indexers[name] = other.engine.indexer
        return search_here(indexers, query, k, where, failed=failed, grouped=grouped)
