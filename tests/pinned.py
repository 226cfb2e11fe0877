"""What is pinned in ``requirements/``, and what of it the plain install brings."""

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OURS = "agentx-workspace"

_PIN = re.compile(r"^([\w.-]+)(?:\[[^\]]*\])?==(?:(?!^\S).*\n)*? {4}# via (.*)$", re.MULTILINE)


def project() -> dict[str, Any]:
    """The table ``project`` of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def names(requirements: list[str]) -> set[str]:
    """The packages that requirements name, without versions and extras."""
    return {re.split(r"[\[<>=!~; ]", one, maxsplit=1)[0] for one in requirements}


def pins(*files: str) -> set[str]:
    """The packages that files in ``requirements/`` pin."""
    return {name for file in files for name, _ in _read(file)}


def plain() -> set[str]:
    """The packages that `pip install agentx-workspace` brings, without extras."""
    return needed(names(project()["dependencies"]))


def needed(packages: set[str], file: str = "runtime") -> set[str]:
    """These packages of a file in ``requirements/`` and all that they need."""
    found, needed_by = set(packages), dict(_read(file))
    while more := {name for name, by in needed_by.items() if by & found and name not in found}:
        found |= more
    return found


def _read(file: str) -> list[tuple[str, set[str]]]:
    """Each package with those that need it."""
    text = (ROOT / "requirements" / f"{file}.txt").read_text("utf-8")
    return [(name, set(via.split(", "))) for name, via in _PIN.findall(text)]
