"""The application, built for the command that is called.

Only the module of that command is imported. For the others, their line in the help is enough.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from typer.main import get_command
from typer.models import ArgumentInfo

from agentx import __version__
from agentx.cli.commands import COMMANDS, MOVED, TOP, Entry, below, find, front, line, spoken
from agentx.cli.deferred_patterns import deferred_patterns
from agentx.settings import ACTS
from agentx.storage.errors import AgentXError, UsageError

if TYPE_CHECKING:
    from agentx.cli.terminal import Terminal

EPILOG = "-C DIR and --json work with every command, before or after it."

_HELP = (
    "Durable work for AI agents, with a memory that you can trust: every task is a directory that is a Git "
    "repository, with its artifacts, its whole history, and what was learned from it."
)
_HELP_OPTIONS = ("-h", "--help")


class InsideRun(AgentXError):
    """A command for the user alone was called from inside an agent's run."""


def execute(arguments: Sequence[str], terminal: "Terminal") -> int:
    """Run a command line on a terminal. Return the exit status.

    Raises:
        InsideRun: Called inside an agent's run, the command would act as the user or change something.
    """
    words = front(arguments)
    own = line(words)
    if own and (new := MOVED.get(own[0])):
        terminal.note(f"`agentx {own[0]}` is now `agentx {new}`. The next release drops the old spelling.")
        words[len(words) - len(own) :] = own = [*new.split(), *own[1:]]
    with_command = own[:1] == ["done"] and "--" in words
    helped = _asks_for_help(words[: words.index("--")] if with_command else words)
    asked = words if own or helped or "--version" in words else [*words, "--help"]
    place = terminal.settings.environ.get(ACTS)
    if place and own[:1] == ["done"] and not helped and "-C" not in words[: len(words) - len(own)]:
        return int(import_module("agentx.cli.agents.reported").report(terminal, place, own[1:]))
    if terminal.settings.inside_run and own:
        if helped:
            # Nothing but help: an option takes a word like --help as its value, and the command would run.
            asked = [*find(own).split(), "--help"]
        elif acts := [name for name in spoken(own) if name in COMMANDS and not COMMANDS[name].reads]:
            raise InsideRun(
                f"`agentx {acts[0]}` acts as you or changes the workspace, so it is refused inside an "
                "agent's run: call it in a terminal of your own."
            )
    if with_command and "--" in asked:
        asked.insert(asked.index("--"), "--")  # the parser takes one, and the command gets the other
    command = _parser(find(own), tuple(own[:1]), listed=_asks_for_help(own))
    status = command.main(args=asked, prog_name="agentx", standalone_mode=False, obj=terminal)
    return status if isinstance(status, int) else 0


@functools.lru_cache
def _parser(name: str, first: tuple[str, ...], *, listed: bool) -> Any:
    """Return the parser of a command or group; the server builds it once.

    Args:
        name: The command or group, as :func:`find` returns it; empty for none.
        first: The first word of the line, which may name nothing.
        listed: Whether the line asks for help.
    """
    return get_command(build([*(name.split() or first), *_HELP_OPTIONS[:listed]]))


def _asks_for_help(arguments: Sequence[str]) -> bool:
    return any(option in arguments for option in _HELP_OPTIONS)


def build(own: Sequence[str]) -> typer.Typer:
    """Build the application with the command that a line calls; the others appear only in the help.

    Args:
        own: The arguments from the command's first word on; empty for none.
    """
    app = typer.Typer(
        help=_HELP,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": list(_HELP_OPTIONS)},
        rich_markup_mode="rich",
    )
    app.callback()(_shared)
    for title, rows in TOP.items():
        for word, text in rows.items():
            if own[:1] == [word]:
                _register(app, word, text, own, title)
            else:
                app.command(word, help=text, rich_help_panel=title)(_not_called)
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


def _register(app: typer.Typer, name: str, text: str, own: Sequence[str], title: str | None = None) -> None:
    """Register a command, or a group with the command below it that is called.

    ``name`` is all its words, ``own`` are those that the user typed; ``text`` is the help of a group.
    """
    word = name.rpartition(" ")[2]
    if name in COMMANDS:
        app.command(word, epilog=_epilog(name), rich_help_panel=title)(load(COMMANDS[name]))
        return
    words = below(name)
    wanted = find(own).removeprefix(name).split()[:1]
    group = typer.Typer(help=text, rich_markup_mode="rich", epilog=_epilog(spoken(name.split())[0]))
    group.callback(invoke_without_command=True)(_alone(name))
    listed = _asks_for_help(own) and not wanted  # each is loaded, for its own line
    for each in words:
        if listed or each in wanted:
            _register(group, f"{name} {each}", words[each], own)
        else:
            group.command(each)(_not_called)
    app.add_typer(group, name=word, rich_help_panel=title)


def load(entry: Entry) -> Callable[..., None]:
    """Import a command's function, in the form that Typer calls: with a context that has the terminal."""
    module, name = entry.function.split(":")
    with deferred_patterns():
        function = getattr(import_module(f"agentx.cli.{module}"), name)

    def command(ctx: typer.Context, **options: Any) -> None:
        function(ctx.obj, **options)

    functools.update_wrapper(command, function, assigned=("__name__", "__doc__"))
    terminal, *options = inspect.signature(function).parameters.values()
    context = terminal.replace(name="ctx", annotation=typer.Context)
    command.__signature__ = inspect.Signature([context, *options])  # type: ignore[attr-defined]
    return command


def _alone(group: str) -> Callable[..., None]:
    """Return what a group does when it is called without a subcommand: what its first command does.

    It takes the options of that command, and no arguments: a word is the name of a subcommand.
    """
    first = spoken(group.split())[0]
    default = load(COMMANDS[first])

    def alone(ctx: typer.Context, **options: object) -> None:
        if ctx.invoked_subcommand is None:
            default(ctx, **options)
            return
        for name in options:
            source = ctx.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE":
                option = f"--{name.replace('_', '-')}"
                raise UsageError(f"{option} belongs after the command: `agentx {first} {option} …`.")

    functools.update_wrapper(alone, default)
    signature = inspect.signature(default)
    options = [one for one in signature.parameters.values() if not _is_argument(one)]
    alone.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
    return alone


def _is_argument(parameter: inspect.Parameter) -> bool:
    marks = getattr(parameter.annotation, "__metadata__", ())
    return any(isinstance(mark, ArgumentInfo) for mark in marks)


def _epilog(name: str) -> str:
    return f"Example: agentx {escape(COMMANDS[name].example)}\n\n{EPILOG}"
