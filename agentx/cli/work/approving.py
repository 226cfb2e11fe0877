"""``agentx approve``: show the calls that wait for a person, and take the decision."""

from typing import Annotated

import typer
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from agentx.cli.opened import as_json, opened
from agentx.cli.terminal import Terminal, counted
from agentx.cli.work.say import noted, shown
from agentx.pipelines.tracked import pipelines
from agentx.policy import approvals
from agentx.policy.approval_view import ApprovalView, ShownText, approval_view, heading, pieces
from agentx.policy.unknown_outcomes import settle, unknown
from agentx.storage.errors import UsageError
from agentx.storage.events.pipeline_events import PipelineStarted
from agentx.storage.events.types import Event
from agentx.storage.text import encodable, one_line
from agentx.storage.visible import visible
from agentx.synthesis.state.state import PendingCall
from agentx.workspace import Workspace

_CALLS_NAMED = 6
"""Maximum number of pending calls that an error names."""

_DIFF_STYLES = {"+": "green", "-": "red"}


BAR = "│ "
"""Stands before each line of what an agent wrote, so that no line of it can look like one of ours."""


class _Barred:
    """A text that is wrapped within a bar at its left."""

    def __init__(self, text: Text) -> None:
        self.text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = max(options.max_width - len(BAR), 20)
        for line in console.render_lines(self.text, options.update(width=width), pad=False):
            yield Segment(BAR)
            yield from line
            yield Segment.line()


def rendered(view: ApprovalView, *, fold: bool = False, wrap: bool = True) -> list[RenderableType]:
    """Return a call with all that a person decides on.

    Args:
        view: The call.
        fold: Whether the middle of long texts is left out, with a mark that says so.
        wrap: Whether lines are wrapped; not where a program may read them.
    """
    asked = Text.assemble(
        ("? ", "bold yellow"), (visible(view.call_id), "bold"), "  ", visible(view.question)
    )
    return [asked, *_content(view, fold=fold, wrap=wrap)]


def _content(view: ApprovalView, *, fold: bool = False, wrap: bool) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for one in (*view.arguments, *view.files):
        parts.append(Text(heading(one), "dim"))
        if one.text:
            text = _text(view, one, fold=fold)
            parts.append(
                _Barred(text) if wrap else Text("\n").join(Text(BAR) + line for line in text.split("\n"))
            )
    if not parts:
        parts.append(Text("No arguments.", "dim"))
    return [*parts, *(Text(f"! {note}", "yellow") for note in view.notes)]


def _text(view: ApprovalView, one: ShownText, *, fold: bool) -> Text:
    made = Text(overflow="fold")
    is_diff = one.state == "changed"
    for text, is_mark in pieces(view, one, fold=fold):
        made.append(text, "reverse yellow" if is_mark else "" if is_diff else "cyan")
    start = 0
    for line in made.plain.split("\n") if is_diff else ():
        made.stylize(_DIFF_STYLES.get(line[:1], ""), start, start + len(line))
        start += len(line) + 1
    return made


def approve(
    terminal: Terminal,
    call_id: Annotated[
        str, typer.Argument(metavar="[CALL_ID]", help="The call; without it, those that wait are listed.")
    ] = "",
    reason: Annotated[str, typer.Option(help="The reason; the agent sees it, and memory keeps it.")] = "",
    digest: Annotated[
        str,
        typer.Option(
            metavar="DIGEST", help="Only if it is still what was shown: `digest` in `agentx status --json`."
        ),
    ] = "",
    *,
    deny: Annotated[bool, typer.Option("--deny", help="Deny it.")] = False,
) -> None:
    """Approve or deny a pending tool call; the next `agentx run` or `agentx pipeline run` continues with it.

    At a terminal you are shown all of it, and asked. If the outcome of a call is unknown because its process
    died, say whether it succeeded (--deny: no).
    """
    with opened(terminal) as ws:
        cut_off = [call for call in unknown(ws.engine) if call.call_id == call_id]
        if cut_off:
            event = settle(ws.engine, call_id, succeeded=not deny, reason=encodable(reason))
            _report(terminal, ws, cut_off[0], event, "It failed" if deny else "It went through", deny=deny)
            return
        waiting = approvals.waiting(ws.engine)
        if not waiting:
            raise UsageError("No tool call is pending.")
        asks = terminal.interactive and not terminal.json
        if not call_id:
            _list(terminal, ws, waiting, asks=asks, deny=deny)
            return
        call = _named(waiting, call_id)
        view = approval_view(ws.engine, call)
        if asks and not digest:
            terminal.show(*rendered(view, wrap=terminal.out.is_terminal))
            if not deny:
                _ask(terminal, ws, call, view)
                return
        _decide(terminal, ws, call, digest or view.digest, approved=not deny, reason=reason)


def _list(terminal: Terminal, ws: Workspace, waiting: list[PendingCall], *, asks: bool, deny: bool) -> None:
    """Show every call that waits, and ask about each.

    Raises:
        UsageError: Nobody can be asked, so nothing is decided.
    """
    views = [approval_view(ws.engine, call) for call in waiting]
    if not asks:
        if terminal.json:
            terminal.document(views)
        for view in [] if terminal.json else views:
            terminal.show(*rendered(view, wrap=terminal.out.is_terminal))
        name = visible(views[0].call_id) if len(views) == 1 else "ID"
        raise UsageError(
            f"{counted(len(views), 'call')} wait{'s' * (len(views) == 1)} for you, and nothing was decided: "
            f"type `agentx approve {name}`, or the same with `--deny --reason …`."
        )
    for number, (call, view) in enumerate(zip(waiting, views, strict=True), start=1):
        if len(views) > 1:
            terminal.show(Text(f"{number} of {len(views)}", "dim"))
        terminal.show(*rendered(view, wrap=terminal.out.is_terminal))
        _ask(terminal, ws, call, view, deny=deny)


def _ask(
    terminal: Terminal, ws: Workspace, call: PendingCall, view: ApprovalView, *, deny: bool = False
) -> None:
    """Ask about a call that is on the screen, and record the answer; no answer decides nothing."""
    yes = "" if deny else f"y = {view.accept.lower()}, "
    # The length stands beside the question, as the beginning may be out of sight.
    sizes = "; ".join(heading(one) for one in (*view.arguments, *view.files)[-1:])
    word = _typed(terminal, f"{sizes}\n{yes}n = {view.refuse.lower()}, Enter = later: ").lower()
    if word in {"y", "yes"} and not deny:
        _decide(terminal, ws, call, view.digest, approved=True, reason="", seen=True)
    elif word in {"n", "no"}:
        reason = _typed(terminal, "Reason: " if view.wants_reason else "Reason (Enter: none): ")
        if view.wants_reason and not reason:
            terminal.note("Nothing was decided: without a reason, nobody knows what to do again.")
            return
        _decide(terminal, ws, call, view.digest, approved=False, reason=reason, seen=True)
    else:
        terminal.note("Nothing was decided.")


def _typed(terminal: Terminal, prompt: str) -> str:
    terminal.err.print(Text(prompt, "bold"), end="")
    try:
        return encodable(input()).strip()
    except EOFError:
        return ""


def _decide(
    terminal: Terminal,
    ws: Workspace,
    call: PendingCall,
    digest: str,
    *,
    approved: bool,
    reason: str,
    seen: bool = False,
) -> None:
    event = ws.approve(call.call_id, approved=approved, reason=encodable(reason), shown=digest)
    _report(terminal, ws, call, event, "Approved" if approved else "Refused", deny=not approved, seen=seen)


def _report(
    terminal: Terminal,
    ws: Workspace,
    call: PendingCall,
    event: Event,
    word: str,
    *,
    deny: bool,
    seen: bool = False,
) -> None:
    news = [item for item in noted(ws, event) if item.status == "active"]
    known = pipelines(ws.engine).known if PipelineStarted.__name__ in ws.state.counts else {}
    in_pipeline = any(call.run in one.waiting.values() for one in known.values())
    mark, style = ("⊘", "yellow") if deny else ("✓", "green")
    command = "agentx pipeline run FILE" if in_pipeline else "agentx run"
    view = approval_view(ws.engine, call)
    terminal.result(
        as_json(event),
        Text.assemble((f"{mark} {word} ", style), f"{visible(call.call_id)}: {visible(view.what)}"),
        *([] if seen else _content(view, wrap=terminal.out.is_terminal)),
        f"Continue with `{command}`.",
        *map(shown, news),
    )


def _named(calls: list[PendingCall], call_id: str) -> PendingCall:
    for call in calls:
        if call.call_id == call_id:
            return call
    more = f"; and {len(calls) - _CALLS_NAMED:,} more" if len(calls) > _CALLS_NAMED else ""
    listed = (
        "; ".join(one_line(visible(f"{call.call_id} {call.tool}")) for call in calls[:_CALLS_NAMED]) + more
    )
    raise UsageError(f"No call {call_id!r} is pending. Pending: {listed}.")
