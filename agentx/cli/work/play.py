"""``agentx run --sample``: play a story step by step on a fresh copy, with the real commands.

Each step runs the real command in this process and opens the workspace again, so only what is on disk carries
over, not a conversation. Playing changes nothing in the commands, except that nobody is asked for approval at
the terminal: the story provides the answer.
"""

import shlex
import sys
import tempfile
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec
import typer
from rich.text import Text

from agentx.agents.turn import DueTime
from agentx.cli.app import execute
from agentx.cli.setup.config import flat
from agentx.cli.terminal import Terminal, counted, facts, panel, table
from agentx.cli.work.samples import (
    Directed,
    Sample,
    SampleInvalid,
    StoryStep,
    TalkMessage,
    find_sample,
    load_code,
    near,
    read_past,
    read_talk,
)
from agentx.cognition.agent import Answer, CognitiveAgent
from agentx.directing.directed_runs import DirectedRun, run_directed
from agentx.directing.executors import Command, outside_environ
from agentx.storage.clock import stamp
from agentx.storage.events.types import AgentMessageSent, ContextProvided, Draft, UserMessageSent
from agentx.storage.text import one_line
from agentx.synthesis.memory.items import FlowDetail, MemoryItem, checks_of
from agentx.synthesis.model.open import SCRIPT
from agentx.synthesis.scheduling.schedule_times import times
from agentx.synthesis.state.flows import told
from agentx.trust.trust import set_value
from agentx.workspace import Workspace

_CANNED = "The model is a script. Everything else is real: tools, checks, commits, memory."

_NO_MODEL = (
    "No model is used. Everything is real: the program that executes the prompts, its tools, commits, memory."
)

_NO_MODEL_TALKS = (
    "No model is used: code recognises, fetches and answers. Everything is real: messages, memories, commits."
)

_COMMITS = 40
"""Maximum number of commits shown, the latest ones."""

_WHOLE_LOG = 10_000_000
"""A token budget that fits any log."""

_INTERRUPTED = 130
"""Exit status of an interrupted run, as of the command."""

_ANSWER_CHARACTERS = 150
"""Characters shown of an answer."""

TableRow = dict[str, str | int]
"""A row of the table that ends a story: cells by their headings."""


def play(terminal: Terminal, name: str, into: Path | None) -> None:
    """Play a sample in a new or empty directory (by default a temporary one), and show the result.

    Raises:
        SampleInvalid: The sample does not exist, or it is not well-formed.
        typer.Exit: A step ended with another status than the story expects.
    """
    sample = find_sample(name)
    root = _made(terminal, sample, into)
    terminal.unattended = True
    for number, step in enumerate(sample.steps, start=1):
        status = _played(terminal, sample, step, root, number)
        if status != step.ends:
            terminal.fail(
                f"Step {number} of {name} ended with {status}, and not with {step.ends}: "
                "the story stops here."
            )
            raise typer.Exit(status or 1)
    with Workspace.open(root, settings=terminal.settings) as ws:
        _show_story(terminal, ws, sample)


def _made(terminal: Terminal, sample: Sample, into: Path | None) -> Path:
    """Create a fresh workspace for a sample, and introduce it on the screen."""
    place = into or Path(tempfile.mkdtemp(prefix=f"agentx-{Path(sample.folder).name}-"))
    start = Path(sample.folder) / sample.start if sample.start else None
    with Workspace.create(place, title=sample.title, from_dir=start, settings=terminal.settings) as made:
        root = made.root
    for name, value in flat(sample.config):
        set_value(root, terminal.settings, name, msgspec.json.encode(value).decode())
    with Workspace.open(root, settings=terminal.settings) as ws:
        ws.flush()
    if not terminal.json:
        about = _CANNED if any(step.script or SCRIPT in step.run for step in sample.steps) else _NO_MODEL
        about = _NO_MODEL_TALKS if any(step.talk for step in sample.steps) and about != _CANNED else about
        words = Text.assemble((about, "italic"), ("\nThe workspace: ", "dim"), str(root))
        title = Text(f"Sample: {one_line(sample.title)}", "bold cyan")
        terminal.show(panel(words, title=title, width=terminal.out.width, style="cyan"))
    return root


# --- the steps ----------------------------------------------------------------------------------------------


def _played(terminal: Terminal, sample: Sample, step: StoryStep, root: Path, number: int) -> int:
    """Play a step and return its exit status."""
    if terminal.json:
        terminal.line({"type": "SampleStep", "data": {"number": number} | msgspec.to_builtins(step)})
    else:
        place = f"\n{number} of {len(sample.steps)}"
        terminal.show(
            Text.assemble((place, "dim"), " · " * bool(step.title), (one_line(step.title), "bold cyan"))
        )
    if step.past:
        _record_past(terminal, sample, step, root)
        return 0
    if step.talk:
        _play_talk(terminal, sample, step, root)
        return 0
    if step.direct:
        return _play_runs(terminal, sample, step, root)
    if step.run and not terminal.json:
        terminal.show(Text.assemble(("$ ", "green"), (step.run, "bold"), "\n"))
    return execute(_words(terminal, sample, step, root), terminal)


def _words(terminal: Terminal, sample: Sample, step: StoryStep, root: Path) -> list[str]:
    """Return the command line of a step, on the copy."""
    shared = ["-C", str(root), *["--json"] * terminal.json]
    if step.run:
        return [*shared, *step.command[1:]]
    model = f"{SCRIPT}{near(Path(sample.folder) / step.script)}"
    pictures = ["--pictures", str(terminal.pictures)] if terminal.pictures else []
    message = ["--", step.say] if step.say else []
    return [*shared, "run", "--model", model, *["--yes"] * step.yes, *pictures, *message]


def _record_past(terminal: Terminal, sample: Sample, step: StoryStep, root: Path) -> None:
    """Record the messages of a past step one by one, as if they had just arrived."""
    count = 0
    with Workspace.open(root, settings=terminal.settings) as ws, terminal.busy("Time goes by"):
        with ws.bulk():
            for by, text in read_past(sample, step):
                body = ws.body(text)
                said, actor = (
                    (UserMessageSent(body=body), ws.settings.actor)
                    if by == "user"
                    else (AgentMessageSent(body=body, final=True), "agent:main")
                )
                ws.record(Draft(data=said, actor=actor))
                count += 1
        log = _log_tokens(ws)
    if terminal.json:
        terminal.line({"type": "PastRecorded", "data": {"messages": count, "log_tokens": log}})
        return
    cost = (" To read the log again would now take ", "dim"), (f"{log:,} tokens", "bold"), (".", "dim")
    terminal.show(Text.assemble(("Meanwhile ", "dim"), f"{count:,} messages were sent.", *cost))


def _log_tokens(ws: Workspace) -> int:
    """Return the tokens an agent would read if it were given the whole log and nothing else."""
    whole = ws.get_relevant_context("", tier=3, max_tokens=_WHOLE_LOG)
    return sum(item.tokens for item in whole.items if item.section == "log")


# --- the result ---------------------------------------------------------------------------------------------


def _show_story(terminal: Terminal, ws: Workspace, sample: Sample) -> None:
    """Show the commits, the active items, how much of the log an agent needed, and where to look."""
    ws.flush()
    repo = ws.engine.git.repo
    commits = [(info.id[:7], one_line(info.subject)) for info in repo.log()][::-1]
    log = _log_tokens(ws)
    shown = [event.data.tokens for event in ws.events() if isinstance(event.data, ContextProvided)]
    rows = _compared(sample.directed, Path(sample.folder), ws) if sample.directed else []
    if terminal.json:
        story = {
            "root": str(ws.root),
            "commits": commits,
            "rules": ws.memory("constraint"),
            "rejections": ws.memory("rejection"),
            "flows": ws.memory("flow"),
            "issues": ws.memory("hot_issue"),
            "context_tokens": shown,
            "log_tokens": log,
            "compared": rows,
            "state_digest": ws.status().digest,
        }
        terminal.line({"type": "SampleEnded", "data": story})
        return
    terminal.show(Text("\nThe story, from `git log --oneline --reverse`", "bold"))
    if len(commits) > _COMMITS:
        terminal.show(Text(f"  … {counted(len(commits) - _COMMITS, 'commit')} before", "dim"))
    for name, subject in commits[-_COMMITS:]:
        terminal.show(Text.assemble((f"  {name}  ", "yellow"), subject))
    terminal.show(Text("\nWhat applies now", "bold"), facts(list(_standing(ws)) or [("  rules", "none")]))
    if shown:
        costs = [
            ("  memory", f"{shown[-1]:,} tokens in the agent's last prompt"),
            ("  the log", f"{log:,} tokens"),
        ]
        terminal.show(Text("\nCost of that knowledge", "bold"), facts(costs))
    if rows:
        _show_rows(terminal, rows)
    where = shlex.quote(near(ws.root))
    commands = [
        (f"  agentx -C {where} status", "how it stands"),
        (f"  agentx -C {where} log", "all events"),
        (f"  agentx -C {where} context --explain", "what an agent would get next, and why"),
        (f"  git -C {where} log --stat", "the same as Git commits"),
    ]
    terminal.show(Text("\nLook around", "bold"), facts(commands))


def _standing(ws: Workspace) -> Iterator[tuple[str, Text]]:
    """Yield the items that bind the next agent, and the others that it sees."""
    for rule in ws.memory("constraint"):
        checked = Text("  checked", "green") if checks_of(rule) else Text()
        yield f"  rule {rule.id}", Text(one_line(rule.text), "yellow") + checked
    for item in ws.memory("rejection"):
        yield f"  ruled out {item.id}", Text(one_line(item.text), "red")
    for item in ws.memory("flow"):
        yield f"  flow {item.id}", Text(f"{one_line(item.text)}  {_record(item)}", "cyan")
    for issue in ws.memory("hot_issue"):
        yield f"  issue {issue.id}", Text(one_line(issue.text), "red")


def _record(item: MemoryItem) -> str:
    record = told(item.detail) if isinstance(item.detail, FlowDetail) else ""
    return record if record == "never used" else f"worked in {record}"


# --- directed runs ------------------------------------------------------------------------------------------


def _play_runs(terminal: Terminal, sample: Sample, step: StoryStep, root: Path) -> int:
    """Direct and carry out the runs of a step, until one does not complete.

    Returns:
        Exit status: 0 if all runs completed, 1 if one did not, 130 if one was interrupted and the story
        expects it.

    Raises:
        KeyboardInterrupt: A run was interrupted, and the story does not expect it.
        SampleInvalid: The tools cannot be imported, or there are none, or the schedule does not exist.
    """
    directed, folder, world = sample.directed, Path(sample.folder).resolve(), _world(root)
    assert directed is not None  # validated: a sample with such a step has it
    program = _program(terminal, directed, folder, root)
    code = load_code(folder / directed.tools, "tools")
    for _ in range(step.direct):
        with Workspace.open(root, settings=terminal.settings) as ws:
            number = ws.state.counts.get("RunStarted", 0) + 1
            due, run = _next_run(ws, directed, number)
            try:
                made = run_directed(ws.engine, program, code.tools(world, run), due=due)
            except KeyboardInterrupt:
                if step.ends != _INTERRUPTED:
                    raise
                return _INTERRUPTED
        assert made is not None  # None only for a due time that was already run
        _show_run(terminal, number, made)
        if made.outcome.status != "COMPLETED":
            return 1
    return 0


def _next_run(ws: Workspace, directed: Directed, number: int) -> tuple[DueTime, int | datetime]:
    """Return the due time of the next run, and what its tools are given: that time, or without one a number.

    Raises:
        SampleInvalid: No step has added the schedule.
    """
    if directed.since is None:
        return DueTime(), number
    state = ws.state
    known, last = state.schedules.get(directed.schedule), state.last_run
    if known is None:
        raise SampleInvalid(f"No step has added the schedule {directed.schedule!r}.")
    if last is not None and last.status == "INTERRUPTED":
        due = DueTime(directed.schedule, last.due, resumes=last.run)
    else:
        after = datetime.fromisoformat(known.settled) if known.settled else directed.since
        due = DueTime(directed.schedule, stamp(next(times(known.rule, after))))
    return due, datetime.fromisoformat(due.at).astimezone(ZoneInfo(known.rule.zone))


def _program(terminal: Terminal, directed: Directed, folder: Path, root: Path) -> Command:
    """Return the executor of a workspace."""
    path = folder / directed.executor
    words = (*(("sh",) if path.suffix == ".sh" else (sys.executable, "-I")), str(path))
    if directed.speaks == "text":
        return Command((*words, str(_world(root))), "text", outside_environ(terminal.settings.environ, root))
    return Command(words, "jsonl")


def _compared(directed: Directed, folder: Path, ws: Workspace) -> list[TableRow]:
    """Return the rows of the table that ends the story; none if the sample has no such table.

    Raises:
        SampleInvalid: The code cannot be imported, or returns something else.
    """
    if not directed.compare:
        return []
    path = folder.resolve() / directed.compare
    try:
        return msgspec.convert(load_code(path, "compare").compare(ws, _world(ws.root)), list[TableRow])
    except msgspec.ValidationError as error:
        raise SampleInvalid(f"{path} has no rows: {error}.") from error


def _show_rows(terminal: Terminal, rows: list[TableRow]) -> None:
    """Show the rows as a table; numbers are right-aligned."""
    headings = [name + ">" * isinstance(cell, int) for name, cell in rows[0].items()]
    cells = [[_cell(row.get(name, "")) for name in rows[0]] for row in rows]
    made = table(*headings, rows=cells, title="What it comes to")
    for column in made.columns:  # a truncated number would be wrong, so words wrap instead
        column.no_wrap = False
    terminal.show("", made)


def _cell(value: str | int) -> str:
    return f"{value:,}" if isinstance(value, int) else value


def _world(root: Path) -> Path:
    """Return the directory that represents the world outside the workspace.

    It is deleted with the copy, and no agent sees it.
    """
    world = root / ".agentx" / "world"
    world.mkdir(parents=True, exist_ok=True)
    return world


def _show_run(terminal: Terminal, number: int, made: DirectedRun) -> None:
    if terminal.json:
        terminal.line({"type": "DirectedRun", "data": made})
        return
    outcome, good = made.outcome, made.outcome.status == "COMPLETED"
    if made.failed:
        terminal.note(made.failed)
    if made.decision.direct:
        terminal.show(Text(f"        the director writes a prompt: {one_line(made.decision.why)}", "cyan"))
    terminal.show(
        Text.assemble(
            (f"run {number:3d}", "dim"),
            " ",
            one_line(outcome.summary)
            if good
            else (f"{outcome.status} {one_line(outcome.reason)}", "bold red"),
        )
    )


# --- a talk -------------------------------------------------------------------------------------------------


class TalkResult(msgspec.Struct, kw_only=True):
    """The result of a talk.

    Attributes:
        asked: Number of questions for which the sample states the expected content.
        held: Number of those whose answers held it.
        memories: Number of memories made from the messages, including topics.
        left: How often a memory left the buffer.
        came_back: How often a memory that had left came back with a question.
        in_buffer: Number of memories in the buffer at the end.
        missed: The questions answered without the expected content.
    """

    messages: int = 0
    asked: int = 0
    held: int = 0
    memories: int = 0
    left: int = 0
    came_back: int = 0
    in_buffer: int = 0
    missed: list[str] = []


def _play_talk(terminal: Terminal, sample: Sample, step: StoryStep, root: Path) -> None:
    """Say each message of a talk to a cognitive agent, and show the questions with their answers.

    Raises:
        SampleInvalid: A line of the talk is not a message.
    """
    talk, result = read_talk(sample, step), TalkResult()
    gone = set[str]()
    with Workspace.open(root, settings=terminal.settings) as ws:
        agent = CognitiveAgent(ws)
        for message in talk:
            before = agent.mind.buffer.keys()
            answer = agent.answer(message.say)
            back = (agent.mind.buffer.keys() - before) & gone
            gone = (gone - back) | set(answer.metrics.evicted_memory_ids)
            _count(result, message, answer, back)
            _show_answer(terminal, message, answer, len(back))
        result.in_buffer = len(agent.mind.buffer)
    if terminal.json:
        terminal.line({"type": "TalkEnded", "data": result})
        return
    rows = [
        ("  messages", f"{result.messages:,}"),
        ("  questions", f"{result.held:,} of {result.asked:,} answers hold what they should"),
        ("  memories", f"{result.memories:,} made, {result.in_buffer:,} at hand in the end"),
        ("  faded", f"{result.left:,} times one left the buffer, {result.came_back:,} times one came back"),
    ]
    terminal.show("", facts(rows))


def _holds(message: TalkMessage, answer: Answer) -> bool:
    return all(words.casefold() in answer.text.casefold() for words in message.holds)


def _count(result: TalkResult, message: TalkMessage, answer: Answer, back: AbstractSet[str]) -> None:
    result.messages += 1
    result.memories += len(answer.metrics.new_memories_stored)
    result.left += len(answer.metrics.evicted_memory_ids)
    result.came_back += len(back)
    if message.holds:
        result.asked += 1
        result.held += _holds(message, answer)
        result.missed += [] if _holds(message, answer) else [message.say]


def _show_answer(terminal: Terminal, message: TalkMessage, answer: Answer, back: int) -> None:
    """Show a question with its answer. Other messages are shown only as JSON."""
    if terminal.json:
        row = {
            "interaction": answer.interaction,
            "say": message.say,
            "answer": answer.text,
            "input_type": answer.metrics.input_type,
            "holds": _holds(message, answer) if message.holds else None,
            "left": len(answer.metrics.evicted_memory_ids),
            "came_back": back,
        }
        terminal.line({"type": "TalkAnswered", "data": row})
        return
    if answer.metrics.input_type != "question":
        return
    mark = ("  ", "") if not message.holds else ("✓ ", "green") if _holds(message, answer) else ("✗ ", "red")
    text = one_line(answer.text)
    terminal.show(
        Text.assemble((f"{answer.interaction:4d} ", "dim"), mark, (one_line(message.say), "bold")),
        Text.assemble(
            "       ",
            text if len(text) <= _ANSWER_CHARACTERS else f"{text[:_ANSWER_CHARACTERS].rstrip()}…",
            (f"  ({back:,} had faded and came back)" if back else "", "cyan"),
        ),
    )
