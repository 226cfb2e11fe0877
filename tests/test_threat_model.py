"""The threat model: each line of its tables names a test, and that test exists."""

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "threat-model.md"

TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def lines():
    """Every line of a table with its number, without heads and rules."""
    text = PAGE.read_text("utf-8").splitlines()
    for number, line in enumerate(text):
        above_rule = number + 1 < len(text) and text[number + 1].startswith("|---")
        if line.startswith("|") and not line.startswith("|---") and not above_rule:
            yield number + 1, line


@functools.cache
def _named_in(path):
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(
    ("number", "line"), list(lines()), ids=lambda value: value if isinstance(value, int) else ""
)
def test_each_line_names_a_test_that_exists(number, line):
    found = TEST.findall(line)
    assert found, f"docs/threat-model.md, line {number}, names no test"
    for path, name in found:
        assert name in _named_in(path), f"docs/threat-model.md, line {number}: there is no {path}::{name}"


def test_the_page_has_lines():
    assert len(list(lines())) > 40
