"""Every example in README.md and docs/ runs, and the command line is described in full.

In one file all examples share a directory, and the Python ones their names, from the first to the last:

- ``python`` blocks are executed;
- ``console`` blocks that call agentx are run, line by line: what follows ``$ `` is the command (``> `` continues it),
  other lines are the output that is expected, with ``…`` for whatever may stand there; no lines, no comparison;
- ``<!-- not run: reason -->`` just before a block lets it be, ``<!-- exit: 2 -->`` expects its last command to fail so;
- ``<!-- needs: MODULE -->`` leaves it out where Python has no such module, and a test is skipped that says so;
- a file whose console blocks do not begin with ``agentx init`` begins in a fresh workspace;
- tutorials and ``failures.md`` begin in an empty directory, all of their console blocks are run, and each command shows its
  output: one that shows none must print none.

Nothing reaches the network: a model is played from a script.
"""

import doctest
import os
import re
import subprocess
import tomllib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from agentx import Workspace
from agentx.cli.commands import find
from agentx.cli.commands import line as own_words
from agentx.storage.extras import EXTRAS

ROOT = Path(__file__).resolve().parent.parent
PAGES = [p for p in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if p.exists()]
WHOLE = [ROOT / "docs" / "failures.md", *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
"""Pages whose examples are run and shown in whole."""

TIME_LIMIT_S = 100


@dataclass(frozen=True)
class Block:
    """A fenced example: its language, text and first line in the page; ``note`` is the comment before it."""

    language: str
    text: str
    line: int
    note: str


@dataclass(frozen=True)
class Command:
    """One command of a console block, and the output shown for it."""

    line: str
    shown: str


def blocks(page: str) -> list[Block]:
    """Every fenced example of a page that is to be run."""
    found, note = [], ""
    for token in MarkdownIt("commonmark").parse(page):
        if token.type == "fence" and token.info and not note.startswith("not run:"):
            found.append(Block(token.info.split()[0], token.content, (token.map or [0])[0] + 1, note))
        comment = (
            re.fullmatch(r"<!--\s*(.*?)\s*-->\s*", token.content) if token.type == "html_block" else None
        )
        note = comment[1] if comment else ""
    return found


def needed(block: Block) -> str:
    """The module that a block needs, beyond those that are always there; empty for none."""
    found = re.search(r"needs: ([\w.]+)", block.note)
    return found[1] if found else ""


def is_there(module: str) -> bool:
    """Whether Python finds a module, and the packages that it is in."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def commands(text: str) -> list[Command]:
    """The commands of a console block."""
    found: list[Command] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:], ""))
        elif found and (line == ">" or line.startswith("> ")) and not found[-1].shown:
            found[-1] = Command(f"{found[-1].line}\n{line[2:]}", "")
        elif found:
            found[-1] = Command(found[-1].line, f"{found[-1].shown}{line}\n")
    return found


def agrees(shown: str, got: str, *, whole: bool = False) -> bool:
    """Whether the output is what the page shows, white space aside, with ``…`` for anything at all.

    Showing nothing agrees with any output, unless the ``whole`` output is to be shown.
    """
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    wanted = shown.replace("…", "...").strip()
    return (not wanted and not whole) or doctest.OutputChecker().check_output(
        f"{wanted}\n", f"{got.strip()}\n", flags
    )


class Terminal:
    """Runs commands one after another in one directory, as a reader would; ``cd`` holds for those that follow."""

    def __init__(self, directory: Path, aside: Path, programs: Path) -> None:
        self.directory = directory
        self.stood = aside / "pwd"
        self.environ = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "100",
            "STOOD": str(self.stood),
        }

    def run(self, line: str) -> tuple[int, str]:
        """Exit status and output."""
        done = subprocess.run(
            ["bash", "-c", f"trap 'pwd >\"$STOOD\"' EXIT\n{line}"],
            cwd=self.directory,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
            check=False,
        )
        self.directory = Path(self.stood.read_text().rstrip("\n"))
        return done.returncode, done.stdout + done.stderr


def run_console(block: Block, terminal: Terminal, page: Path, *, whole: bool = False) -> list[str]:
    """Runs a block's commands; returns those that end or print other than the page shows."""
    lines, wrong = commands(block.text), []
    wanted = int(status[1]) if (status := re.search(r"exit: (\d+)", block.note)) else 0
    for command in lines:
        ended, got = terminal.run(command.line)
        where = f"{page.name}:{block.line} $ {command.line}\n{got}"
        if ended != (wanted if command is lines[-1] else 0):
            wrong.append(f"exit status {ended}: {where}")
        elif not agrees(command.shown, got, whole=whole):
            wrong.append(f"the page shows otherwise: {where}")
    return wrong


def run_python(block: Block, names: dict[str, object], page: Path) -> None:
    source = "\n" * block.line + block.text  # so that a traceback gives the page's own line
    exec(compile(source, str(page), "exec"), names)


def run_examples(page: Path, task: Path, aside: Path, programs: Path) -> list[str]:
    """Run a page's examples in a directory; returns those that are wrong. Wrong Python raises."""
    found = [b for b in blocks(page.read_text("utf-8")) if b.language in {"python", "console"}]
    found = [b for b in found if not needed(b) or is_there(needed(b))]
    whole = page in WHOLE
    found = [b for b in found if whole or b.language == "python" or "$ agentx" in b.text]
    terminal, names, wrong = Terminal(task, aside, programs), {"__name__": "__main__"}, []
    consoles = [block.text for block in found if block.language == "console"]
    if consoles and not whole and not consoles[0].startswith("$ agentx init"):
        status, said = terminal.run("agentx init")
        assert status == 0, said
    try:
        for block in found:
            if block.language == "python":
                run_python(block, names, page)
            else:
                wrong += run_console(block, terminal, page, whole=whole)
    finally:
        for workspace in [value for value in names.values() if isinstance(value, Workspace)]:
            workspace.close()
    return wrong


@pytest.fixture
def places(tmp_path_factory, monkeypatch, programs) -> tuple[Path, Path, Path]:
    """A directory to run examples in, one for what they must not see, and one of programs. Their paths are short: some
    commands print them in columns."""
    folder = tmp_path_factory.mktemp("page")
    task, aside = folder / "task", folder / "aside"
    task.mkdir()
    aside.mkdir()
    monkeypatch.chdir(task)
    monkeypatch.setenv(
        "HOME", str(aside)
    )  # of its own: a page may install into the settings of another agent
    return task, aside, programs


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_examples_of_a_page_run(page, places):
    assert run_examples(page, *places) == []


NEEDED = sorted({(p.name, needed(b)) for p in PAGES for b in blocks(p.read_text("utf-8")) if needed(b)})


@pytest.mark.parametrize(("page", "module"), NEEDED)
def test_what_an_example_needs_comes_with_an_extra(page, module):
    packages = {name.replace("-", "_") for extra in EXTRAS for name in extra.packages}
    assert module.partition(".")[0] in packages
    if not is_there(module):
        pytest.skip(f"{module} is missing, so its examples in {page} were not run")


def test_a_block_that_needs_a_module_is_left_out_without_it(places):
    task, aside, programs = places
    (page := aside / "page.md").write_text(
        "<!-- needs: no_such_package.module -->\n```python\n1 / 0\n```\n\n"
        "<!-- needs: json.decoder; exit: 3 -->\n```console\n$ agentx --version; exit 3\n```\n"
    )
    assert run_examples(page, task, aside, programs) == []
    assert not is_there("no_such_package.module")


def test_a_page_is_cut_into_its_examples():
    page = """
```python
1
```
<!-- not run: needs a key -->

```python
2
```

- in a list

  <!-- exit: 2 -->
  ```console
  $ x
  ```
"""
    assert [(b.language, b.text, b.line, b.note) for b in blocks(page)] == [
        ("python", "1\n", 2, ""),
        ("console", "$ x\n", 14, "exit: 2"),
    ]


def test_a_console_block_is_cut_into_commands_and_their_output():
    assert commands("$ say \\\n>\n>   hello\nsaid\n> quoted\n\n$ next\n") == [
        Command("say \\\n\n  hello", "said\n> quoted\n\n"),
        Command("next", ""),
    ]


def test_a_tutorial_shows_the_whole_output_of_each_command(places):
    task, aside, programs = places
    page, terminal = aside / "page.md", Terminal(task, aside, programs)
    assert run_console(Block("console", "$ true\n$ echo one\none", 1, ""), terminal, page, whole=True) == []
    (wrong,) = run_console(Block("console", "$ echo one", 1, ""), terminal, page, whole=True)
    assert "shows otherwise" in wrong


@pytest.mark.parametrize(
    ("shown", "got", "same"),
    [
        ("", "anything", True),
        ("1 event", "1   event\n", True),
        ("…\nseq …", "first\nsecond\nseq 12\n", True),
        ("seq 12", "seq 13", False),
        ("seq … ok", "seq 12", False),
    ],
)
def test_shown_output_is_compared_with_an_ellipsis_for_anything(shown, got, same):
    assert agrees(shown, got) is same


def test_a_command_that_fails_or_shows_something_else_fails_its_page(places):
    task, aside, programs = places
    page = aside / "page.md"
    terminal = Terminal(task, aside, programs)
    for text, sentence in [("$ false", "exit status 1"), ("$ echo one\ntwo", "shows otherwise")]:
        (wrong,) = run_console(Block("console", text, 1, ""), terminal, page)
        assert sentence in wrong
    assert run_console(Block("console", "$ mkdir a\n$ cd a\n$ false", 1, "exit: 1"), terminal, page) == []
    assert terminal.directory == task / "a"


def test_python_examples_share_their_names_and_an_error_gives_the_pages_line(places):
    task, aside, programs = places
    page = aside / "page.md"
    page.write_text("# Page\n\n```python\nx = 1\n```\n\n```python\nx += 1\nassert x == 3\n```\n")
    with pytest.raises(AssertionError) as failure:
        run_examples(page, task, aside, programs)
    assert failure.traceback[-1].lineno + 1 == 9


# --- the command line is described -----------------------------------------------------------------------------------


def test_every_command_that_a_page_names_exists():
    called = {
        (page.name, command.line)
        for page in PAGES
        for block in blocks(page.read_text("utf-8"))
        if block.language == "console"
        for command in commands(block.text)
        if command.line.startswith("agentx ")
    }
    unknown = {(page, line) for page, line in called if not find(own_words(line.split()[1:]))}
    # Hosts call `hook`; `main` answers it before the command line is read.
    beside = {"--help", "--version", "hook"}
    assert unknown <= {(page, line) for page, line in unknown if line.split()[1] in beside}


# --- every dependency is explained -----------------------------------------------------------------------------------


def test_each_dependency_has_its_lines_in_the_decisions():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    groups, extras = project["dependency-groups"], project["project"]["optional-dependencies"]
    wanted = [one for name, extra in extras.items() if name != "all" for one in extra]
    wanted += [*project["project"]["dependencies"], *groups["dev"], *groups["docs"], *groups["fuzz"]]
    names = {re.split(r"[<>=!~\[; ]", line)[0] for line in wanted}
    page = (ROOT / "docs" / "decisions" / "0002-dependencies.md").read_text("utf-8")
    assert set(re.findall(r"\*\*([\w-]+)\*\*", page)) == names
