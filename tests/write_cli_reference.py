"""Writes docs/cli.md from the commands themselves: their docstrings, arguments, options and examples.

``python -m tests.write_cli_reference`` writes it; a test compares it with the page.
"""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from agentx.cli.app import build
from agentx.cli.commands import COMMANDS, GROUPS, MOVED, TOP

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"

_HEAD = """\
# The command line

*Reference: every command, written from the program's own help by `python -m tests.write_cli_reference`.*
`agentx` and `python -m agentx` are the same. For every command:

- **`-C DIR`**, before or after the command, says where to look for the workspace: in that directory or above it, like
  git. The default is the current directory. Other paths are relative to where you are.
- **`--json`**, before or after the command, prints one JSON document on stdout; `log` and `run` print one JSON object
  per line. Arguments after `--` are not options.
- Results go to stdout; notes, progress and errors go to stderr. In a pipe, or with `NO_COLOR`, output is plain.
- An error is one sentence with what to do. The exit status is 0 for success, 1 for a failure, 2 for wrong use, 130
  after Ctrl-C, 141 if the reader of a pipe is gone. `gate pre` ends with 3 for ask and 4 for deny,
  `pipeline run` with 3 if all is proved and a last verdict is FAIL.
  `AGENTX_DEBUG=1` prints tracebacks.
- Text of models, tools and files is printed without control characters, so that it cannot steer your terminal.
- A **moment** is an event number, a commit, a date or time ([moments](moments.md)).
"""


def written() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *_commands(), *_moved()])


def _commands() -> Iterator[str]:
    for title, rows in TOP.items():
        yield f"## {title}\n"
        for word, line in rows.items():
            if word not in COMMANDS:
                yield f"### {word}\n\n{line}\n"
            group = ""
            for name in (one for one in COMMANDS if one.split()[0] == word):
                inner = name.rpartition(" ")[0]
                if inner in GROUPS and inner != group:
                    yield f"**{inner}**: {GROUPS[inner]}\n"
                group = inner
                yield from _command(name)


def _command(name: str) -> Iterator[str]:
    command: Any = typer.main.get_command(build(name.split()))
    for word in name.split():
        command = command.commands[word]
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option"]
    usage = " ".join([name, *(_shape(one) for one in arguments)])
    yield f"{'###' if name.count(' ') == 0 else '####'} `agentx {usage}`\n"
    yield inspect.cleandoc(command.help or "") + "\n"
    rows = [(f"`{_shape(one)}`", _text(one)) for one in arguments if _text(one)]
    rows += [(_spelled(one), _text(one)) for one in options]
    if rows:
        yield "".join(f"- {left}: {right}\n" for left, right in rows)
    yield f"```sh\nagentx {COMMANDS[name].example}\n```\n"


def _shape(argument: Any) -> str:
    name = (argument.metavar or argument.name.upper()).strip("[].")
    many = "…" if argument.nargs == -1 else ""
    return f"{name}{many}" if argument.required else f"[{name}{many}]"


def _spelled(option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    shape = "" if option.is_flag else f" `{option.metavar or option.name.upper()}`"
    return names + shape


def _text(param: Any) -> str:
    text = re.sub(r"\s+", " ", getattr(param, "help", "") or "").strip()
    default = param.default
    plain = isinstance(default, str | int | float) and not isinstance(default, bool) and default != ""
    return f"{text} Default: {default}." if plain and getattr(param, "show_default", False) else text


def _moved() -> Iterator[str]:
    yield "## Old spellings\n"
    yield "These work for one release, with a note.\n"
    yield "| old | new |\n|---|---|"
    yield "".join(f"| `agentx {old}` | `agentx {new}` |\n" for old, new in MOVED.items())


if __name__ == "__main__":
    PAGE.write_text(written(), "utf-8")
