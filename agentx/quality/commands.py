"""Detect the commands that check a project, from its files."""

import json
import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

KINDS = ("tests", "lint", "build")
"""The three commands, by their names in ``agentx.toml``: ``[checks.tests]`` and so on."""

MAX_READ_BYTES = 1 << 20
TEST_FILES = 50
"""Maximum number of test files to read."""

NPM_PLACEHOLDER = "no test specified"
"""What ``npm init`` writes if there are no tests."""

LOCK_FILES = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}


def detect_commands(root: Path) -> dict[str, str]:
    """Suggest commands for a project from its files.

    ``agentx init --from`` writes them to the settings, for the user to change. For each kind, the first of
    Python, Node, Rust, Go and a makefile that suggests a command wins. Nothing is run.

    Returns:
        A command for each of ``tests``, ``lint`` and ``build`` that the files suggest.
    """
    found: dict[str, str] = {}
    for suggest in (_python, _node, _by_marker, _make):
        for kind, command in suggest(root):
            found.setdefault(kind, command)
    return {kind: found[kind] for kind in KINDS if kind in found}


def _python(root: Path) -> Iterator[tuple[str, str]]:
    project: dict[str, Any] = {}
    with suppress(ValueError, RecursionError):  # a broken file suggests nothing
        project = tomllib.loads(_text(root / "pyproject.toml"))
    tools = project.get("tool")
    tools = tools if isinstance(tools, dict) else {}
    ini = {name: _text(root / name) for name in ("setup.cfg", "tox.ini")}
    places = (root.glob("test_*.py"), *((root / name).rglob("test_*.py") for name in ("tests", "test")))
    if (
        "pytest" in tools
        or any(
            (root / name).is_file()
            for name in ("pytest.ini", ".pytest.ini", "conftest.py", "tests/conftest.py")
        )
        or "[tool:pytest]" in ini["setup.cfg"]
        or "[pytest]" in ini["tox.ini"]
        or "pytest" in json.dumps(project, default=str)
    ):
        yield "tests", "python -m pytest -q"
    elif tests := [path for place in places for path in islice(place, TEST_FILES)]:
        imports = re.compile(r"^\s*(?:import|from) (pytest|unittest)\b", re.MULTILINE)
        used = {name for test in tests for name in imports.findall(_text(test))}
        yield "tests", "python -m unittest" if used == {"unittest"} else "python -m pytest -q"
    linters = []
    if "ruff" in tools or any((root / name).is_file() for name in ("ruff.toml", ".ruff.toml")):
        linters.append("python -m ruff check .")
    elif "[flake8]" in ini["setup.cfg"] + ini["tox.ini"] or (root / ".flake8").is_file():
        linters.append("python -m flake8")
    if "mypy" in tools or (root / "mypy.ini").is_file() or "[mypy]" in ini["setup.cfg"]:
        linters.append("python -m mypy .")
    if linters:
        yield "lint", " && ".join(linters)


def _node(root: Path) -> Iterator[tuple[str, str]]:
    package: Any = None
    with suppress(ValueError, RecursionError):
        package = json.loads(_text(root / "package.json") or "null")
    scripts = package.get("scripts") if isinstance(package, dict) else None
    if not isinstance(scripts, dict):
        return
    runner = next((name for file, name in LOCK_FILES.items() if (root / file).is_file()), "npm")
    for kind, script in (("tests", "test"), ("lint", "lint"), ("build", "build")):
        if isinstance(scripts.get(script), str) and NPM_PLACEHOLDER not in scripts[script]:
            yield kind, f"{runner} run {script}"


def _by_marker(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the commands of Rust and Go, which a file in the root announces."""
    for marker, commands in (
        ("Cargo.toml", ("cargo test", "cargo clippy", "cargo build")),
        ("go.mod", ("go test ./...", "go vet ./...", "go build ./...")),
    ):
        if (root / marker).is_file():
            yield from zip(KINDS, commands, strict=True)


def _make(root: Path) -> Iterator[tuple[str, str]]:
    makefile = next(
        (text for name in ("GNUmakefile", "makefile", "Makefile") if (text := _text(root / name))), ""
    )
    targets = set(re.findall(r"^([\w-]+)\s*:(?!=)", makefile, re.MULTILINE))
    for kind, names in zip(KINDS, (("test", "tests", "check"), ("lint",), ("build", "all")), strict=True):
        if target := next((name for name in names if name in targets), None):
            yield kind, f"make {target}"


def _text(path: Path) -> str:
    """Return the start of a regular file, or an empty string if it is missing or unreadable."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(MAX_READ_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""
