"""``agentx memory review``: settle candidates, by one key each, by name, or by a model."""

import contextlib
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from agentx.cli.beside.proposals import review_together
from agentx.cli.memory.check_writing import show_written
from agentx.cli.memory.items import flow_rows, origin, show_items
from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal, counted, facts, panel, table
from agentx.engine import models
from agentx.memory.editing import find
from agentx.memory.model_extraction import Judged, combined, judge
from agentx.memory.note_taking import ScribeRun
from agentx.memory.settling import most_useful_first
from agentx.rule_files.places import RuleFileRefused, place_of
from agentx.rule_files.proposing import BETWEEN_MARKERS
from agentx.storage.errors import UsageError
from agentx.storage.events.types import UserMessageSent
from agentx.storage.log.blobs import BlobDamaged
from agentx.storage.text import encodable, one_line, plain
from agentx.synthesis.demands.explanation import explain
from agentx.synthesis.learning.merging import proposed_for
from agentx.synthesis.memory.items import Evidence, FlowDetail, MemoryItem, is_offered
from agentx.workspace import Workspace

_AROUND = 160
"""Characters of a message shown on either side of the words in question."""

_FRAMED = 5
"""Maximum number of settled items that are shown whole."""

_NAMED = 30
"""Maximum number of candidates that an error names."""

_KEYS = "y yes · n no · e in other words · s later · q stop"
_COLOURS = {"active": "green", "candidate": "yellow"}


def review(
    terminal: Terminal,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID", help="Accept this candidate, or all proposals from this file (repeatable)."
        ),
    ] = None,
    reject: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID", help="Reject this candidate, or all proposals from this file (repeatable)."
        ),
    ] = None,
    *,
    by_model: Annotated[bool, typer.Option("--model", help="Let the configured model decide.")] = False,
) -> None:
    """Accept or reject candidates: with one key each at a terminal, by option, or by the model."""
    chosen = {**dict.fromkeys(accept or [], True), **dict.fromkeys(reject or [], False)}
    if chosen and by_model:
        raise UsageError("--accept and --reject cannot be combined with --model.")
    with opened(terminal) as ws:
        if by_model:
            _ask_model(terminal, ws)
        elif chosen:
            _settle(terminal, ws, chosen)
        elif terminal.json:
            terminal.document(most_useful_first(ws.state))
        elif not (waiting := most_useful_first(ws.state)):
            terminal.show("There are no candidates to settle.")
        elif not terminal.interactive:
            names = ", ".join(item.id for item in waiting[:_NAMED]) + " …" * (len(waiting) > _NAMED)
            raise UsageError(
                f"Asking needs a terminal. Settle {names} with `--accept ID` and `--reject ID`, "
                "or with `--model`."
            )
        else:
            from_files = [item for item in waiting if is_offered(item)]
            if from_files:
                review_together(terminal, ws, from_files)
            if rest := [item for item in waiting if not is_offered(item)]:
                _walk(terminal, ws, rest)


def _settle(terminal: Terminal, ws: Workspace, named: dict[str, bool]) -> None:
    chosen = {item: good for name, good in named.items() for item in _named(terminal, ws, name)}
    for name in chosen:
        item = find(ws.engine, name)
        if (
            item.status != "candidate"
            and not item.perhaps_ended_by
            and not proposed_for(item, ws.state.items)
        ):
            raise UsageError(f"{name} is {item.status}, not a candidate; nothing was changed.")
    settled = [ws.review(name, accept=good) for name, good in chosen.items()]
    if len(settled) <= _FRAMED:
        show_items(terminal, settled)
        return
    rows = [
        (Text(one.id, "cyan"), Text(one.status, _COLOURS.get(one.status, "dim")), one_line(one.text))
        for one in settled
    ]
    terminal.result(settled, table("id", "is", "what", rows=rows))


def _named(terminal: Terminal, ws: Workspace, name: str) -> list[str]:
    """Return the item of an ID, or the proposals from a file, by its path or its name in the record."""
    if name in ws.state.items:
        return [name]
    base = terminal.caller.directory if terminal.caller else Path.cwd()
    with contextlib.suppress(RuleFileRefused):
        name = place_of(ws.engine, base / name).name if (base / name).is_file() else name
    files = (name, f"{name}{BETWEEN_MARKERS}")
    waiting = [item for item in ws.memory(status="candidate") if is_offered(item)]
    return [item.id for item in waiting if any(link.target in files for link in item.links)] or [name]


# --- by a model ---------------------------------------------------------------------------------------------


def _ask_model(terminal: Terminal, ws: Workspace) -> None:
    """Let the model read everything that no model has read, and settle what is left."""
    model = models.model(ws.engine)
    with terminal.progress() as progress:
        ran = ws.scribe.run(model, timeout_s=ws.config.limits.max_time_s, progress=progress)
    judged = list(ran.judged)
    if not judged:
        with terminal.busy(f"{model.name} reads the candidates …"):
            judged.append(judge(ws, model, all_candidates=True))
    whole = combined(judged)
    if terminal.json:
        terminal.document(whole)
        return
    show_judged(terminal, whole)
    show_written(terminal, ran.written)
    say_left(terminal, ran)
    left = len(ws.memory(status="candidate"))
    if not whole.items and not left:
        terminal.show("There are no candidates to settle.")
    elif left:
        terminal.note(f"{counted(left, 'candidate')} left: `agentx memory review`.")


def say_left(terminal: Terminal, ran: ScribeRun) -> None:
    """Note how many messages the model has not read, and why."""
    if ran.left and ran.stopped:
        terminal.note(
            f"{counted(ran.left, 'message')} not read: {ran.stopped} used up. "
            "`agentx memory scribe` continues there."
        )


def show_judged(terminal: Terminal, judged: Judged) -> None:
    """Show what a model decided and why, and how many of its claims were rejected."""
    rows = [
        (
            Text(item.id, "cyan"),
            Text(item.status, _COLOURS.get(item.status, "dim")),
            Text.assemble(one_line(item.text), "\n", (one_line(item.reason), "dim")),
        )
        for item in judged.items
    ]
    if rows:
        terminal.show(table("id", "becomes", "what, and why", rows=rows))
    if judged.refusals:
        first = judged.refused[0] if judged.refused else None
        example = f", as “{first.what}”: {first.why}" if first else "."
        terminal.note(f"Not accepted: {judged.refusals} of the model's answers{example}")


# --- by the user --------------------------------------------------------------------------------------------


def _walk(terminal: Terminal, ws: Workspace, waiting: list[MemoryItem]) -> None:
    """Ask about each candidate. Each key is recorded at once, so that nothing is lost on interruption."""
    settled = 0
    try:
        for number, item in enumerate(waiting, start=1):
            _show_candidate(terminal, ws, item, f"{number} of {len(waiting)}")
            question = _question(ws, item)
            key = _key(terminal, f"{question}  {_KEYS}  ")
            if key == "q":
                break
            if key == "s" or (key == "e" and not (words := _in_other_words(terminal, item))):
                continue
            try:
                if key == "e":
                    ws.edit_memory(item.id, words)
                done = ws.review(item.id, accept=key != "n")
            except UsageError as error:  # it was settled elsewhere meanwhile
                terminal.note(str(error))
                continue
            settled += 1
            terminal.show(Text(f"{done.id} is {done.status}.\n", _COLOURS.get(done.status, "dim")))
    except KeyboardInterrupt:
        terminal.show("")
    left = len(most_useful_first(ws.state))
    rest = ": `agentx memory review` continues." if left else "."
    terminal.show(Text(f"{settled} settled, {left} left{rest}", "dim"))


def _question(ws: Workspace, item: MemoryItem) -> str:
    if item.status == "candidate":
        return "Does it apply from now on?"
    if other := proposed_for(item, ws.state.items):
        return f"Does it say the same as {other.id}, so that the two are merged?"
    return "Does it still apply?"


def _show_candidate(terminal: Terminal, ws: Workspace, item: MemoryItem, place: str) -> None:
    title = Text.assemble((item.id, "bold cyan"), (f" {item.kind.replace('_', ' ')} · {place}", "dim"))
    rows: list[tuple[str, str | Text]] = [("", Text(plain(item.text), "bold"))]
    rows += flow_rows(item.detail, {}) if isinstance(item.detail, FlowDetail) else []
    if other := proposed_for(item, ws.state.items):
        rows.append((other.id, plain(other.text)))
    why = item.reason
    for evidence in item.evidence:
        message = _message(ws, evidence)
        if message is not None:
            rows.append((f"event {evidence.seq}", _excerpt(message, evidence)))
            parts = (part for part in explain(message) if part.verdict == "candidate")
            why = why or next((part.why for part in parts if part.start == evidence.start), "")
    lapses, days = "", ws.config.memory.lapse_days
    if days and item.changed_at and not item.pinned:
        end = datetime.fromisoformat(item.changed_at) + timedelta(days=days)
        lapses = f"{end:%Y-%m-%d}, unless settled"
    rows += [*origin(item), ("why", why)]
    rows += [
        ("topic", item.scope.topic),
        ("paths", ", ".join(item.scope.paths)),
        ("until", item.until),
        ("lapses", lapses),
    ]
    terminal.show(panel(facts(row for row in rows if row[1]), title=title, width=terminal.out.width))


def _message(ws: Workspace, evidence: Evidence) -> str | None:
    """Return the message that an item is based on; ``None`` if it is no longer readable."""
    event = next(iter(ws.events(evidence.seq - 1)), None)
    if event is None or event.seq != evidence.seq or not isinstance(event.data, UserMessageSent):
        return None
    with contextlib.suppress(BlobDamaged):
        return ws.read_body(event.data.body)
    return None


def _excerpt(message: str, evidence: Evidence) -> Text:
    """Return the words in question with some of their context."""
    before = one_line(message[max(0, evidence.start - _AROUND) : evidence.start])
    behind = one_line(message[evidence.end : evidence.end + _AROUND])
    return Text.assemble(
        ("… " * (evidence.start > _AROUND) + before + " " * bool(before), "dim"),
        (one_line(message[evidence.start : evidence.end]), "black on yellow"),
        (" " * bool(behind) + behind + " …" * (len(message) > evidence.end + _AROUND), "dim"),
    )


def _key(terminal: Terminal, question: str) -> str:
    """Read one key that is a valid answer; Escape and the end of the input stop."""
    terminal.out.print(Text(question, "bold"), end="")
    while True:
        try:
            typed = typer.getchar().lower()
        except EOFError:
            typed = "q"
        letters = "q" if typed == "\x1b" else "" if typed.startswith("\x1b") else typed
        for letter in letters:  # several, if typed faster than they are read
            if letter in ("y", "n", "e", "s", "q"):
                terminal.show(letter)
                return letter


def _in_other_words(terminal: Terminal, item: MemoryItem) -> str:
    """Let the user edit an item's text; empty if they abandon it."""
    with contextlib.ExitStack() as prefilled:
        # readline is not available everywhere, and some versions write to the terminal on import.
        with contextlib.suppress(ImportError):
            import readline  # noqa: PLC0415

            readline.set_startup_hook(lambda: readline.insert_text(one_line(item.text)))
            prefilled.callback(readline.set_startup_hook, None)
        try:
            return encodable(input("In your words: ")).strip()
        except EOFError:
            terminal.show("")
            return ""
