"""All commands in one table, and the application built for the command that is called.

Only the module of that command is imported. For the others, their line in the help is enough.
"""

import functools
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from agentx import __version__
from agentx.storage.errors import AgentXError, UsageError

if TYPE_CHECKING:
    from agentx.cli.terminal import Terminal

EPILOG = "-C DIR (where to look for the workspace) and --json work with every command, before or after it."

_HELP = (
    "Durable work for AI agents, and a memory that can be trusted: every task is a directory that is a Git "
    "repository, with its artifacts, its whole history, and what was learned from it."
)
_WORK, _LOOK, _KEEP, _SETUP = "Work", "Look", "Take back and keep", "Set up"


class Entry(NamedTuple):
    """A command: its name, the module in this package that implements it, and its line in the help."""

    name: str
    module: str
    panel: str
    help: str

    @property
    def found(self) -> Callable[..., None] | dict[str, Callable[..., None]]:
        """The command's function, or its subcommands by name, the default one first."""
        module = import_module(f"agentx.cli.{self.module}")
        commands: Callable[..., None] | dict[str, Callable[..., None]] = module.COMMANDS[self.name]
        return commands


ENTRIES = (
    Entry("init", "work.init", _WORK, "Make a workspace, empty or from an existing project."),
    Entry("add", "work.init", _WORK, "Bring files and directories into the task."),
    Entry("run", "work.run", _WORK, "Let an agent work on a message, and watch it."),
    Entry("say", "work.run", _WORK, "Say something to the agents without starting a run."),
    Entry("direct", "agents.direct", _WORK, "Direct runs that come again and again, and carry one out."),
    Entry(
        "schedule", "agents.schedule", _WORK, "What runs by the clock: set it, see it, carry out what is due."
    ),
    Entry(
        "daemon", "agents.schedule", _WORK, "Run what is due in many workspaces, until it is told to stop."
    ),
    Entry(
        "heartbeat", "agents.heartbeat", _WORK, "A pulse: go on with a run that was cut off, or do nothing."
    ),
    Entry(
        "pipeline", "pipeline.pipeline", _WORK, "Work in many steps, by agents that remember through files."
    ),
    Entry("approve", "work.run", _WORK, "Give your word on a tool call that waits for it, or refuse it."),
    Entry("status", "look.status", _LOOK, "How the workspace stands."),
    Entry("context", "look.context", _LOOK, "What an agent would be shown, and why."),
    Entry("boot", "look.context", _LOOK, "What every agent needs at its start."),
    Entry("search", "look.context", _LOOK, "Find passages in files, messages, memory and sources."),
    Entry("log", "look.status", _LOOK, "What happened, event by event."),
    Entry("audit", "look.audit", _LOOK, "The morning audit: what ran and failed, what it cost, what to do."),
    Entry("diff", "look.diff", _LOOK, "What changed between two moments, in files and memory."),
    Entry("bisect", "look.diff", _LOOK, "Which event made an item or a file what it is, and why."),
    Entry(
        "dispatch",
        "agents.mission",
        _LOOK,
        "Which agent can do something, by which flow, and whether it is able.",
    ),
    Entry("mission", "agents.mission", _LOOK, "What each agent is there for."),
    Entry("memory", "memory.memory", _LOOK, "List, add, correct, end and review what is remembered."),
    Entry(
        "scribe",
        "memory.scribe",
        _LOOK,
        "Take the notes that are still to be taken, and say how far they lag behind.",
    ),
    Entry("flow", "memory.flow", _LOOK, "Write down procedures, and find the one that is called for."),
    Entry("backtest", "memory.flow", _LOOK, "Replay past runs, and propose flows and lessons."),
    Entry("cognition", "agents.cognition", _LOOK, "How a cognitive agent remembers, fetches and spends."),
    Entry(
        "maintain",
        "memory.maintain",
        _KEEP,
        "Let rules fade, merge duplicates and promote lessons, as each night does.",
    ),
    Entry(
        "gate",
        "agents.gate",
        _LOOK,
        "Look before an action, grade a task after it, and see what is only words.",
    ),
    Entry("capability", "agents.gate", _LOOK, "Which tools and credentials exist, and whether they work."),
    Entry("undo", "work.undo", _KEEP, "Take back the latest change to the artifacts."),
    Entry("restore", "work.undo", _KEEP, "Bring a file or directory back to an earlier moment."),
    Entry("fork", "keep.push", _KEEP, "Make a new workspace with the history up to a moment."),
    Entry("push", "keep.push", _KEEP, "Bring a Git remote up to this workspace."),
    Entry("pull", "keep.push", _KEEP, "Bring this workspace up to a Git remote."),
    Entry("rebuild", "work.undo", _KEEP, "Make state and index again from the history."),
    Entry("verify", "keep.verify", _KEEP, "Check that everything that is kept is what it should be."),
    Entry("repair", "keep.verify", _KEEP, "Restore what is damaged or missing."),
    Entry("purge", "keep.purge", _KEEP, "Drop what should never have been kept; this rewrites history."),
    Entry("models", "setup.models", _SETUP, "Which models are used, and install the embedding model."),
    Entry("trust", "keep.trust", _SETUP, "See what a workspace would run, call and read, and allow it."),
    Entry("config", "setup.config", _SETUP, "Show and change the settings of a workspace."),
    Entry("doctor", "setup.doctor", _SETUP, "Check that all is well, and say what to do where it is not."),
)
"""Every command, in the order of the help."""


READING = frozenset(
    {
        *(
            "status",
            "context",
            "boot",
            "search",
            "log",
            "audit",
            "diff",
            "bisect",
            "dispatch",
            "mission list",
        ),
        *("memory list", "memory show", "memory explain", "flow list", "flow show", "gate lessons"),
        *("capability list", "schedule list", "schedule next", "pipeline status", "pipeline plan"),
        *(
            "pipeline matrix",
            "pipeline graph",
            "pipeline schema",
            "cognition report",
            "verify",
            "models list",
        ),
        *("config show", "config get", "trust list", "doctor"),
    }
)
"""Read-only commands that do not speak for the user.

An agent's own command or program may call them.
"""


class InsideRun(AgentXError):
    """A command for the user alone was called from inside an agent's run."""


def front(arguments: Sequence[str]) -> list[str]:
    """Move ``-C DIR`` and ``--json`` to the front, where the application itself accepts them.

    Arguments after ``--`` keep their place.

    Raises:
        UsageError: No directory follows ``-C``.

    >>> front(["say", "hello", "-C", "tasks/report", "--json"])
    ['-C', 'tasks/report', '--json', 'say', 'hello']
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    shared: list[str] = []
    own: list[str] = []
    words = iter(arguments[:end])
    for word in words:
        if word == "-C":
            directory = next(words, "")
            if not directory:
                raise UsageError("-C needs a directory: `-C DIR`.")
            shared += [word, directory]
        elif word == "--json":
            shared.append(word)
        else:
            own.append(word)
    return [*shared, *own, *arguments[end:]]


def called(arguments: Sequence[str]) -> str:
    """Return the command in arguments from :func:`front`; empty for none.

    >>> called(["-C", "tasks/report", "--json", "say", "hello"])
    'say'
    """
    words = iter(arguments)
    for word in words:
        if word == "-C":
            next(words, None)
        elif not word.startswith("-"):
            return word
    return ""


def execute(arguments: Sequence[str], terminal: "Terminal") -> int:
    """Run a command line on a terminal. Return the exit status.

    Args:
        arguments: The arguments after the program's name.
        terminal: Where to print; ``-C`` and ``--json`` are set on it.

    Raises:
        InsideRun: Called inside an agent's run, the command would act as the user or change something.
    """
    words = front(arguments)
    name = called(words)
    whole = name or {"-h", "--help", "--version"} & set(words)
    asked = words if whole else [*words, "--help"]
    if terminal.settings.inside_run and not {"-h", "--help"} & set(words):
        _refuse_to_act(name, words)
    status = build(name)(args=asked, prog_name="agentx", standalone_mode=False, obj=terminal)
    return status if isinstance(status, int) else 0


def _refuse_to_act(name: str, words: Sequence[str]) -> None:
    entry = next((one for one in ENTRIES if one.name == name), None)
    if entry is None:
        return
    spoken = [name]
    # Any word that names a subcommand counts as one, whatever precedes it.
    if isinstance(found := entry.found, dict):
        spoken = [f"{name} {word}" for word in words if word in found] or [f"{name} {next(iter(found))}"]
    if refused := [one for one in spoken if one not in READING]:
        raise InsideRun(
            f"`agentx {refused[0]}` acts as you or changes the workspace, so it is refused inside an agent's "
            "run: call it in a terminal of your own."
        )


def build(name: str) -> typer.Typer:
    """Build the application with one callable command; the others appear only in its help."""
    app = typer.Typer(
        help=_HELP,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode="rich",
    )
    app.callback()(_shared)
    for entry in ENTRIES:
        if entry.name == name:
            _register(app, entry)
        else:
            app.command(entry.name, help=entry.help, rich_help_panel=entry.panel)(_not_called)
    return app


def _shared(
    ctx: typer.Context,
    directory: Annotated[
        Path,
        typer.Option(
            "-C", metavar="DIR", show_default=False, help="Where to look for the workspace: there, or above."
        ),
    ] = Path(),
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            is_eager=True,
            callback=lambda wanted: _version(wanted=wanted),
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    del version  # handled by its callback
    terminal: Terminal = ctx.obj
    terminal.directory, terminal.json = directory, as_json


def _version(*, wanted: bool) -> None:
    if wanted:
        print(f"agentx {__version__}")
        raise typer.Exit


def _not_called() -> None:
    """Placeholder for a command that appears only in the help."""


def _is_given(ctx: typer.Context, option: str) -> bool:
    source = ctx.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def _register(app: typer.Typer, entry: Entry) -> None:
    found = entry.found
    if not isinstance(found, dict):
        app.command(entry.name, epilog=EPILOG, rich_help_panel=entry.panel)(found)
        return
    default, *_ = found.values()
    first = next(iter(found))

    @functools.wraps(default)
    def alone(ctx: typer.Context, **options: object) -> None:
        if ctx.invoked_subcommand is None:
            default(ctx, **options)
        elif given := [one for one in options if _is_given(ctx, one)]:
            option = f"--{given[0].replace('_', '-')}"
            raise UsageError(
                f"{option} belongs behind the command: `agentx {entry.name} {first} {option} …`."
            )

    below = typer.Typer(help=entry.help, rich_markup_mode="rich", epilog=EPILOG)
    below.callback(invoke_without_command=True)(alone)
    for name, function in found.items():
        below.command(name, epilog=EPILOG)(function)
    app.add_typer(below, name=entry.name, rich_help_panel=entry.panel)


def command_names() -> list[str]:
    """Return every command as the user types it: ``status``, ``memory list``, …."""
    names: list[str] = []
    for entry in ENTRIES:
        found: Any = entry.found
        names += [f"{entry.name} {name}" for name in found] if isinstance(found, dict) else [entry.name]
    return names
