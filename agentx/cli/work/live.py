"""The live view of a run: what the agent says and does, what is recorded, and how memory changes.

Everything goes into one scrolling log, with a gutter that names the speaker. On a terminal the words of the
model appear as they arrive. Elsewhere (a pipe, a file, a recording) each block is printed once it is
complete. Output of models, tools and files is printed as plain text: none of its markup or control characters
reach the terminal.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.padding import Padding
from rich.panel import Panel
from rich.segment import Segment
from rich.spinner import Spinner
from rich.text import Text

from agentx.agents.run_types import Approval, Observer, RunResult
from agentx.cli.work.approving import rendered
from agentx.core.event_bus import MEMORY_CHANGED, MemoryChanged
from agentx.policy.approval_view import ApprovalView, approval_view
from agentx.recording.commit_message import compose
from agentx.storage.events.types import Event, RunStatus, changes_of
from agentx.storage.text import encodable, plain, shorten
from agentx.synthesis.enforcement.evaluate import Violation
from agentx.synthesis.memory.items import (
    HotIssueDetail,
    MemoryItem,
    not_passed,
    sort_of,
    status_in_words,
)
from agentx.synthesis.model.port import Reply, ToolCall
from agentx.synthesis.state.state import PendingCall

if TYPE_CHECKING:
    from agentx.context.assembler import Context
    from agentx.tools.toolset import ToolResult
    from agentx.workspace import Workspace

GUTTER = 8
TAIL_LINES = 12
"""Number of lines shown of an answer while it grows."""

ARGUMENT = 50
"""Characters shown of one argument of a tool."""

_ARGUMENTS = 6
"""Number of arguments shown of a tool."""

ANSWER_WORDS = 40
"""Words shown of an answer that is not delivered."""

_KINDS = {
    "constraint": "rule",
    "rejection": "no to",
    "hot_issue": "issue",
    "decision": "agreed",
    "situation": "now",
    "agent_state": "state",
    "discovery": "found",
    "learning": "lesson",
    "knowledge": "known",
}
"""Gutter label of a kind or sort; there is room for six letters."""
_ENDINGS: dict[RunStatus, tuple[str, str]] = {
    "COMPLETED": ("✓ done", "green"),
    "WAITING": ("… waiting for you", "yellow"),
    "INTERRUPTED": ("‖ interrupted", "yellow"),
    "LIMIT_REACHED": ("‖ a limit was reached", "yellow"),
    "FAILED": ("✗ failed", "red"),
}
_ASCII = str.maketrans(
    {"✓": "v", "✗": "x", "⊘": "!", "…": "~", "‖": "=", "·": "-", "▸": ">", "“": '"', "”": '"'}
)


class LiveView(Observer):
    """Shows a run on a console.

    Args:
        console: Where to print; its recording, if it has one, can be exported as a picture.
        canned: Whether to mention that the model is a script; a story has done so already.

    >>> view = LiveView(Console(width=60, no_color=True))
    >>> view.run_started("r-1", "script:demo.jsonl", "Hello", resumed=False)
    r-1 · script:demo.jsonl ────────────────────────────────────
             The model is a script; everything else is real.
    <BLANKLINE>
         you Hello
    """

    def __init__(self, console: Console, *, canned: bool = True) -> None:
        self.console = console
        self._canned = canned
        self._moving = console.is_terminal and not console.record
        self._unicode = console.encoding.lower().startswith("utf")
        self._live: Live | None = None
        self._words = ""
        self._answer = ""
        # Hold rows back until the run has its heading, and while a tool runs: the tool's line comes first.
        self._holding = True
        self._held: list[RenderableType] = []
        self._commit: Callable[[], tuple[str, str]] | None = None
        self._view: Callable[[PendingCall], ApprovalView] | None = None
        self._lock = RLock()
        self._began = time.monotonic()
        self._commits = 0
        self._opened = 0
        self._closed = 0

    @contextmanager
    def watching(self, ws: "Workspace") -> Iterator["LiveView"]:
        """Show events of the workspace's bus during the body of a ``with``: commits, rules, issues."""
        repo, write_path = ws.engine.git.repo, ws.engine.write_path
        self._view = lambda call: approval_view(ws.engine, call)
        self._commit = lambda: (write_path.git.head[:7], repo.info(write_path.git.head).subject)
        ends: list[Callable[[], None]] = [
            ws.on("*", self.event_recorded),
            ws.on(MEMORY_CHANGED, self.memory_changed),
        ]
        try:
            yield self
        finally:
            for end in ends:
                end()
            self._stop_moving()
            self._release()

    # --- the run --------------------------------------------------------------------------------------------

    def run_started(self, run: str, model: str, message: str, *, resumed: bool) -> None:
        """Print the run, its model and the message."""
        self._began = time.monotonic()
        self.console.rule(Text(self._plain(plain(f"{run} · {model}")), "dim"), align="left", style="dim")
        if self._canned and model.startswith("script:"):
            self._row("", Text("The model is a script; everything else is real.", "dim italic"))
        if resumed:
            self._row("", Text("Resuming.", "dim italic"))
        self.console.print()
        self._row("you", Text(plain(message), "bold"), "bold cyan")
        self._release()

    def step_started(self, number: int, context: "Context") -> None:
        """Show that the model is being called."""
        self._words = ""
        self._move(Spinner("dots", Text(f" step {number}, {context.tokens:,} tokens of context", "dim")))

    def text_arrived(self, text: str) -> None:
        """Append the arriving text of the model."""
        self._words += plain(text)
        tail = self._words[-TAIL_LINES * self.console.width :].splitlines()[-TAIL_LINES:]
        self._move(Text("\n".join(tail), "italic"))

    def reply_ended(self, reply: Reply) -> None:
        """Print a thought permanently; an answer waits until it is delivered."""
        self._stop_moving()
        self._answer = reply.text.strip()
        if reply.tool_calls and reply.text.strip():
            self.console.print()
            self._row("agent", Text(plain(reply.text.strip()), "italic"), "magenta")

    def tool_started(self, call: ToolCall) -> None:
        """Show that a tool runs; bus events that arrive meanwhile are printed below its line."""
        self._holding = True
        self._move(Spinner("dots", _tool_line(call)))

    def tool_ended(self, call: ToolCall, result: "ToolResult") -> None:
        """Print the tool's line with its outcome, then the events held back."""
        self._stop_moving()
        mark, style = {"SUCCEEDED": ("✓", "green"), "FAILED": ("✗", "red"), "DENIED": ("⊘", "yellow")}[
            result.status
        ]
        line = _tool_line(call)
        first = next((line for line in plain(result.output).splitlines() if line.strip()), "")
        if result.status == "SUCCEEDED":
            line.append("  ").append(first, "dim")
            line.no_wrap, line.overflow = True, "ellipsis"
            outcome: RenderableType = line
        else:
            outcome = Group(line, Text(first, style))
        self._row(Text.assemble((mark, style), " ", ("tool", "dim")), outcome)
        self._release()

    def answer_sent_back(self, violations: Sequence[Violation], objection: str) -> None:
        """Show which rule an answer broke."""
        self.console.print()
        if self._answer:
            self._row("agent", Text(plain(shorten(self._answer, ANSWER_WORDS)), "dim italic"), "magenta")
        if not violations:
            self._row(
                Text.assemble(("⊘", "yellow"), " ", ("answer", "dim")), Text(plain(objection), "yellow")
            )
        for violation in violations:
            text = Text.assemble(
                ("sent back once: ", "yellow"),
                (plain(violation.reason), "yellow"),
                (f"\n{violation.item_id}  “{plain(violation.sentence)}”", "dim"),
            )
            self._row(Text.assemble(("⊘", "yellow"), " ", ("answer", "dim")), text)

    def run_ended(self, result: RunResult) -> None:
        """Print the answer, how the run ended and its usage."""
        self._stop_moving()
        title, color = _ENDINGS[result.status]
        parts: list[RenderableType] = []
        if result.answer.strip():
            parts.append(Markdown(plain(result.answer), hyperlinks=False))
        if result.waiting is not None:
            parts.append(self._asked(result.waiting, fold=True))
        if result.reason:
            parts.append(Text(plain(result.reason), "yellow" if result.status == "COMPLETED" else color))
        parts.append(Padding(Text(self._summary(result), "dim"), (1 if parts else 0, 0, 0, 0)))
        self.console.print()
        self.console.print(
            Panel(
                Group(*parts),
                title=Text(self._plain(title), f"bold {color}"),
                title_align="left",
                border_style=color,
            )
        )

    def ask(self, waiting: PendingCall) -> Approval:
        """Ask the user at the terminal to approve or deny a call, and for a reason. No answer means deny."""
        self._stop_moving()
        self._row("asks", self._asked(waiting), "yellow")
        word = self._typed("y = yes, n = no, or type a reason: ")
        if word.lower() in ("y", "yes"):
            return Approval(approved=True)
        reason = word if word.lower() not in ("", "n", "no") else self._typed("Reason? (Enter: none) ")
        return Approval(approved=False, reason=reason)

    def _asked(self, waiting: PendingCall, *, fold: bool = False) -> RenderableType:
        """Return a call that waits, with all that the user decides on; a panel folds what is long."""
        if self._view is None:
            return _tool_line(
                ToolCall(waiting.call_id, waiting.tool, msgspec.json.encode(waiting.arguments).decode())
            )
        view = self._view(waiting)
        return Group(*rendered(view, fold=fold))

    def _typed(self, prompt: str) -> str:
        """Return a line that the user types; empty at the end of the input."""
        try:
            return encodable(self.console.input(" " * (GUTTER + 1) + prompt, markup=False)).strip()
        except EOFError:
            return ""

    # --- the bus --------------------------------------------------------------------------------------------

    def event_recorded(self, event: Event) -> None:
        """Show the commit of a write, and edits from outside."""
        if changes_of(event):
            self._commits += 1
            head, subject = self._commit() if self._commit else ("", compose([event])[0].partition("\n")[0])
            self._hold(
                Text.assemble(("commit", "blue")),
                Text.assemble((head, "dim"), "  " if head else "", (plain(subject), "blue")),
            )

    def memory_changed(self, change: MemoryChanged) -> None:
        """Show what memory gained or lost."""
        item, before = change.item, change.before
        if before is not None and before.status == item.status:
            return
        came = item.status in ("active", "candidate")
        if item.kind == "hot_issue":
            self._opened += came
            self._closed += not came
        mark, style = ("+", "red" if item.kind == "hot_issue" else "yellow") if came else ("✓", "green")
        label = Text.assemble(
            (mark, style), " ", (_KINDS.get(sort := sort_of(item), sort)[: GUTTER - 2], style)
        )
        self._hold(label, _item_line(item, came=came))

    # --- layout ---------------------------------------------------------------------------------------------

    def _summary(self, result: RunResult) -> str:
        used = result.usage
        facts = [
            f"{result.steps} step{'s' * (result.steps != 1)}",
            f"{self._commits} commit{'s' * (self._commits != 1)}" if self._commits else "",
            f"issues: {self._opened} opened, {self._closed} closed" if self._opened or self._closed else "",
            f"{used.prompt_tokens + used.completion_tokens:,} tokens",
            f"${used.cost_usd:.4f}" if used.cost_usd else "",
            f"{time.monotonic() - self._began:.1f} s",
        ]
        return self._plain(" · ".join(fact for fact in facts if fact))

    def _hold(self, label: Text, body: RenderableType) -> None:
        with self._lock:
            self._held.append(self._grid(label, body))
            if not self._holding:
                self._release()

    def _release(self) -> None:
        with self._lock:
            self._holding = False
            for row in self._held:
                self.console.print(row)
            self._held.clear()

    def _row(self, label: str | Text, body: RenderableType, style: str = "dim") -> None:
        self.console.print(
            self._grid(Text.assemble((label, style)) if isinstance(label, str) else label, body)
        )

    def _grid(self, label: Text, body: RenderableType) -> "_Row":
        for text in (label, body):
            if isinstance(text, Text):
                text.plain = self._plain(text.plain)
        return _Row(label, body)

    def _plain(self, text: str) -> str:
        return text if self._unicode else text.translate(_ASCII)

    def _move(self, body: RenderableType) -> None:
        """Show changing content on the last lines of a terminal."""
        if not self._moving:
            return
        with self._lock:
            row = self._grid(Text(), body)
            if self._live is None:
                self._live = Live(row, console=self.console, transient=True, refresh_per_second=12)
                self._live.start()
            else:
                self._live.update(row)

    def _stop_moving(self) -> None:
        with self._lock:
            if self._live is not None:
                self._live.stop()
                self._live = None


class _Row:
    """Content with a label in the gutter beside its first line, without trailing blanks."""

    def __init__(self, label: Text, body: RenderableType) -> None:
        self.label = label
        self.body = body

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = max(options.max_width - GUTTER - 1, 20)
        label = self.label.copy()
        label.pad_left(max(GUTTER - label.cell_len, 0))
        for line in console.render_lines(self.body, options.update(width=width), pad=False):
            yield from label.append(" ").render(console)
            yield from line
            yield Segment.line()
            label = Text(" " * GUTTER)


def _tool_line(call: ToolCall) -> Text:
    """Return a call on one line: its name, and its arguments as far as they fit."""
    line = Text.assemble((plain(call.name)[:60], "bold"))
    try:
        arguments = msgspec.json.decode(
            call.arguments.encode("utf-8", "replace") or b"{}", type=dict[str, Any]
        )
    except msgspec.DecodeError:
        return line.append("  ").append("arguments that are not JSON", "red")
    for name, value in list(arguments.items())[:_ARGUMENTS]:
        text = plain(value if isinstance(value, str) else msgspec.json.encode(value).decode()).strip()
        lines = text.count("\n") + 1
        if lines > 1:
            text = f"{lines} lines"
        elif len(text) > ARGUMENT:
            text = f"{text[: ARGUMENT - 1]}…"
        line.append("  ").append("" if name == "path" else f"{plain(name)[:30]} ", "dim").append(text, "cyan")
    if len(arguments) > _ARGUMENTS:
        line.append(f"  … and {len(arguments) - _ARGUMENTS} more", "dim")
    return line


def _item_line(item: MemoryItem, *, came: bool) -> Text:
    detail = item.detail
    if isinstance(detail, HotIssueDetail):
        line = Text.assemble((f"{item.id}  ", "dim"), (plain(detail.check or detail.runner), "bold"))
        message = next((line for line in plain(detail.message).splitlines() if line.strip()), "")
        message = not_passed(detail) or message
        line.append("  ").append(
            message if came else detail.ended or status_in_words(item), "dim" if came else "green"
        )
        line.no_wrap, line.overflow = True, "ellipsis"
        return line
    text = plain(item.text if came else item.short or item.text)
    line = Text.assemble((f"{item.id}  ", "dim"), text)
    if item.status == "candidate":
        line.append("  ").append("(candidate: `agentx memory review`)", "dim")
    elif not came:
        line.append("  ").append(status_in_words(item), "green")
    return line
