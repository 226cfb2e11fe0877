"""How large the house is, and how many files an operation passes through: ``python -m tests.house``, beside the baseline.

Lines of code are those without blanks, comments, docstrings and imports, so that no reason is left out to save a line.
"""

import ast
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import agentx
from agentx import Workspace
from agentx.settings import Settings
from tests.figures import Figure, baseline, keep_baseline, machine, show

ROOT = Path(__file__).resolve().parents[1]

PARTS = {
    "reading": "attribution demands language similarity facts judgement scribe rule_files reading notes",
    "rules": "compiling enforcement rules",
    "runners": "checks runners",
    "gates": "gates gate shell policy secrets trust quality sandbox tools",
    "search": "index search recall chunking embedding context",
    "memory": "state memory learning",
    "agents": "directing director cognition pipelines agents model",
    "edges": "cli hosts importing mcp orchestrators inspector server client",
    "fleet": "fleet scheduling schedule",
}
"""Folders of each part, in whichever of the three that they lie; the store is all the rest."""

TOPS = ("agentx", "synthesis", "storage")


def main() -> None:
    """Print the figures; with ``--keep`` they become the baseline."""
    figures = [*_code(), *_passes()]
    if "--keep" in sys.argv:
        keep_baseline("house", figures)
    show(figures, machine(), baseline("house"))


def _code() -> Iterator[Figure]:
    """Yield lines of code by part, and of the tests and the docs."""
    found: dict[str, int] = dict.fromkeys([*PARTS, "store"], 0)
    part_of = {folder: part for part, folders in PARTS.items() for folder in folders.split()}
    for top in TOPS:
        for module in (ROOT / top).rglob("*.py"):
            inner = module.relative_to(ROOT / top)
            if not inner.is_relative_to("storage") and not inner.is_relative_to("synthesis"):
                found[part_of.get(inner.parts[0], "store")] += lines_of_code(module.read_text("utf-8"))
    for part, lines in found.items():
        yield Figure(f"house.{part}_lines", f"lines of code: {part}", lines)
    yield Figure("house.all_lines", "lines of code: all", sum(found.values()))
    tests = sum(len(file.read_text("utf-8").splitlines()) for file in (ROOT / "tests").rglob("*.py"))
    yield Figure("house.test_lines", "lines of tests and tools", tests)
    words = sum(len(file.read_text("utf-8").split()) for file in (ROOT / "docs").rglob("*.md"))
    yield Figure("house.docs_words", "words of docs", words)


def lines_of_code(text: str) -> int:
    """Return how many lines are code.

    >>> lines_of_code('import os\\n\\n# why\\ndef f():\\n    "What."\\n    return os\\n')
    2
    """
    out: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            out |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        body = getattr(node, "body", None)
        for child in body if isinstance(body, list) else []:
            if isinstance(child, ast.Expr) and isinstance(getattr(child.value, "value", None), str):
                out |= set(range(child.lineno, (child.end_lineno or child.lineno) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(1 for number, line in lines if line.strip() and line.lstrip()[0] != "#" and number not in out)


def _passes() -> Iterator[Figure]:
    """Yield how many files of ours each of three operations passes through."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = Settings(
            environ=dict(os.environ), cache_dir=folder / "no-models", state_dir=folder / "state"
        )
        with Workspace.create(folder / "task", title="T", settings=settings) as ws:
            ws.tools.write_file("a.md", "# One\n")
            ws.say("Hello there.")
            ws.get_relevant_context("x")
            rule = "Never create a requirements.txt file; use pyproject.toml instead."
            operations: dict[str, Callable[[], object]] = {
                "write_file": lambda: ws.tools.write_file("b.md", "# Two\ntext\n"),
                "say": lambda: ws.say(rule),
                "context": lambda: ws.get_relevant_context("b.md", max_tokens=1000),
            }
            for key, operation in operations.items():
                yield Figure(f"house.{key}_files", f"files passed by {key}", len(_passed(operation)))


def _passed(operation: Callable[[], object]) -> set[str]:
    base, seen = os.path.realpath(Path(agentx.__file__).parents[1]) + os.sep, set[str]()

    def profile(frame: object, event: str, _argument: object) -> None:
        name = os.path.realpath(frame.f_code.co_filename)  # type: ignore[attr-defined]
        if event == "call" and name.startswith(base) and f"{os.sep}.venv{os.sep}" not in name:
            seen.add(name)

    sys.setprofile(profile)
    try:
        operation()
    finally:
        sys.setprofile(None)
    return seen - {os.path.realpath(__file__)}


if __name__ == "__main__":
    main()
