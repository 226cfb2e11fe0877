"""Checks of dependencies: packages in manifests, commands and imports."""

import ast
from collections.abc import Iterator

from agentx.synthesis.enforcement.breaches import Breach, CheckedChange
from agentx.synthesis.enforcement.python_functions import parse_python
from agentx.synthesis.memory.checks import DependencyCheck


def broken_dependencies(check: DependencyCheck, change: CheckedChange) -> Iterator[Breach]:
    """Yield a breach for each package that is added, or that is missing though it is required."""
    if change.after is None or "imports" not in check.places:
        return
    tree = parse_python(change.after)
    if not isinstance(tree, ast.Module):
        return
    for package in check.packages:
        yield from _imports(check, package, change, tree)


def _imports(
    check: DependencyCheck, package: str, change: CheckedChange, tree: ast.Module
) -> Iterator[Breach]:
    lines = _import_lines(tree, package)
    if not check.required:
        earlier = parse_python(change.before or "")
        known = isinstance(earlier, ast.Module) and len(_import_lines(earlier, package)) >= len(lines)
        if lines and not known:
            yield Breach(reason=f"Line {lines[0]} of {change.path} imports {package}.", line=lines[0])
    elif not lines and not all(
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in tree.body
    ):  # a file with only a docstring needs no import
        yield Breach(reason=f"{change.path} does not import {package}.", line=1)


def _import_lines(tree: ast.Module, module: str) -> list[int]:
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        if any(name == module or name.startswith(f"{module}.") for name in names):
            lines.append(node.lineno)
    return sorted(lines)
