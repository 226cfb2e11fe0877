"""Samples: tasks that run offline, in a fresh copy, with a model whose words are read from a file.

A sample is a directory ``sample_workspaces/NAME`` with a ``sample.toml``::

    title = "Add a report endpoint"
    start = "start"                                     # becomes the artifacts
    [config]
    checks.tests.command = "python -m pytest -q"        # settings of agentx.toml
    [[turns]]
    say = "Add fetch_orders to services.py."            # the user's words
    script = "turns-1.jsonl"                            # the model's
"""

import contextlib
import os
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from rich.text import Text

from agentx.cli.configuring import flat
from agentx.cli.terminal import Terminal, facts, panel
from agentx.config import set_value
from agentx.storage.errors import UsageError
from agentx.storage.text import one_line
from agentx.synthesis.model.open import SCRIPT
from agentx.workspace import Workspace

FOLDER = "sample_workspaces"
FILE = "sample.toml"

_CANNED = "The words of the model are canned: they come from a file. Everything else is real: tools, checks, commits, memory."


class SampleInvalid(UsageError):
    """There is no such sample, or its ``sample.toml`` says something else than a sample."""


class SampleTurn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the user says, and the file with what the model does about it."""

    say: str
    script: str


class Sample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task that can be played.

    Attributes:
        turns: In order.
        start: Directory that becomes the artifacts, relative to the sample.
        config: Settings, nested as TOML nests them.
        folder: Where it lies.
    """

    title: str
    turns: tuple[SampleTurn, ...]
    start: str = "start"
    config: dict[str, Any] = {}
    folder: str = ""

    def model(self, turn: SampleTurn) -> str:
        """The name of the model that plays a turn."""
        return f"{SCRIPT}{_near(Path(self.folder) / turn.script)}"


def find_sample(name: str) -> Sample:
    """The sample of a name, in ``sample_workspaces`` at or above the current directory, or beside the package.

    Raises:
        SampleInvalid: There is none, or it is not well-formed.
    """
    here = Path.cwd()
    roots = [folder / FOLDER for folder in (here, *here.parents, Path(__file__).resolve().parents[2])]
    there = [root for root in roots if root.is_dir()]
    if not there:
        raise SampleInvalid(
            f"There is no {FOLDER}/ at or above {here}; go to the project's root, where the samples lie."
        )
    folder = there[0] / name
    if Path(name).name != name or not (folder / FILE).is_file():
        known = sorted(path.parent.name for path in there[0].glob(f"*/{FILE}"))
        raise SampleInvalid(
            f"There is no sample {name!r} in {there[0]}; there is {', '.join(known) or 'none'}."
        )
    return _read(folder)


def _read(folder: Path) -> Sample:
    path = folder / FILE
    try:
        sample = msgspec.convert(tomllib.loads(path.read_text("utf-8")), Sample)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise SampleInvalid(f"{path} is no sample: {error}.") from error
    missing = [
        name
        for name in (sample.start, *(turn.script for turn in sample.turns))
        if not (folder / name).exists()
    ]
    if missing or not sample.turns:
        raise SampleInvalid(f"{path} names {missing[0] + ', which is not there' if missing else 'no turns'}.")
    return msgspec.structs.replace(sample, folder=str(folder))


@contextlib.contextmanager
def make_workspace(terminal: Terminal, sample: Sample, into: Path | None) -> Iterator[Workspace]:
    """A fresh workspace of a sample, opened, and what it is said on the screen.

    Args:
        terminal: The screen.
        sample: The sample.
        into: A directory that is new or empty; a temporary one by default.
    """
    root = into or Path(tempfile.mkdtemp(prefix=f"agentx-{Path(sample.folder).name}-"))
    start = Path(sample.folder) / sample.start
    with Workspace.create(root, title=sample.title, from_dir=start, settings=terminal.settings) as made:
        root = made.root
    for name, value in flat(sample.config):
        set_value(root, name, msgspec.json.encode(value).decode())
    if not terminal.json:
        words = Text.assemble((_CANNED, "italic"), ("\nThe workspace: ", "dim"), str(root))
        title = Text(f"Sample: {one_line(sample.title)}", "bold cyan")
        terminal.show(panel(words, title=title, width=terminal.out.width, style="cyan"))
    with Workspace.open(root, settings=terminal.settings) as ws:
        ws.flush()
        yield ws


def show_story(terminal: Terminal, ws: Workspace) -> None:
    """Show what came of it: the commits from the first to the last, the rules that stand, and where to look."""
    ws.flush()
    repo = ws.engine.write_path.repo
    commits = [(info.id[:7], one_line(info.subject)) for info in repo.log()][::-1]
    rules, issues, digest = ws.memory("constraint"), ws.memory("hot_issue"), ws.status().digest
    if terminal.json:
        story = {
            "root": str(ws.root),
            "commits": commits,
            "rules": rules,
            "issues": issues,
            "state_digest": digest,
        }
        terminal.line({"type": "SampleEnded", "data": story})
        return
    terminal.show(Text("\nThe story, as `git log --oneline --reverse` tells it", "bold"))
    terminal.show(*(Text.assemble((f"  {name}  ", "yellow"), subject) for name, subject in commits))
    terminal.show(Text("\nWhat stands", "bold"))
    stands: list[tuple[str, str | Text]] = [
        (f"  rule {rule.id}", Text(one_line(rule.text), "yellow")) for rule in rules
    ]
    stands += [(f"  issue {issue.id}", Text(one_line(issue.text), "red")) for issue in issues]
    terminal.show(facts(stands or [("  rules", "none")]))
    terminal.show(Text("\nLook around", "bold"))
    where = _near(ws.root)
    told = (
        (f"agentx -C {where} status", "how it stands"),
        (f"agentx -C {where} log", "what happened, event by event"),
        (f"agentx -C {where} context --explain", "what an agent would be shown next, and why"),
        (f"git -C {where} log --stat", "the same in Git's words"),
    )
    terminal.show(facts([(f"  {command}", what) for command, what in told]))


def _near(path: Path) -> str:
    """A path as a person would type it from here: relative where it lies below."""
    here = Path.cwd()
    return os.path.relpath(path, here) if path.is_relative_to(here) else str(path)
