"""Checks of decorators: functions that must have one."""

import ast
from collections.abc import Iterator

from agentx.synthesis.enforcement.breaches import Breach, CheckedChange
from agentx.synthesis.enforcement.python_functions import (
    PythonFunction,
    functions_of,
    is_meant,
    names_defined,
    parse_python,
)
from agentx.synthesis.memory.checks import DecoratorCheck


def missing_decorators(check: DecoratorCheck, change: CheckedChange) -> Iterator[Breach]:
    """Yield a breach for each new function of the kind without the decorator."""
    tree = parse_python(change.after) if change.after is not None else ""
    if not isinstance(tree, ast.Module):
        return
    known = names_defined(change.before or "")
    kind = f"{check.functions} " if check.functions else ""
    for function in functions_of(tree):
        if (
            function.name not in known
            and is_meant(function, check.functions)
            and not _carries(function, check.decorator)
        ):
            reason = (
                f"{function.name} at line {function.line} of {change.path} is a new {kind}function "
                f"without @{check.decorator}."
            )
            yield Breach(reason=reason, line=function.line)


def _carries(function: PythonFunction, decorator: str) -> bool:
    """Return whether a function has the decorator, or is the decorator itself."""
    wanted = decorator.rpartition(".")[2]
    return function.node.name == wanted or any(
        name == decorator or name.rpartition(".")[2] == decorator or (name == wanted and "." in decorator)
        for name in function.decorators
    )
