"""Checks of decorators and annotations: functions that must have one."""

import re
from collections.abc import Iterator

from agentx.synthesis.enforcement.breaches import Breach, CheckedChange
from agentx.synthesis.enforcement.functions import Function, functions_of, is_meant, parses
from agentx.synthesis.memory.checks import DecoratorCheck


def missing_decorators(check: DecoratorCheck, change: CheckedChange) -> Iterator[Breach]:
    """Yield a breach for each new function of the kind without the decorator."""
    if change.after is None:
        return
    known = {function.qualified for function in functions_of(change, "before")}
    kind = f"{check.functions} " if check.functions else ""
    for function in functions_of(change):
        if function.qualified in known or _carries(function, check.decorator):
            continue
        meant = is_meant(function, check.functions)
        if meant != "no" and parses(function):
            reason = (
                f"{function.qualified} at line {function.line} of {change.path} is a new {kind}function "
                f"without @{check.decorator}."
            )
            doubt = f"It is uncertain whether it is a {kind}function." if meant == "perhaps" else ""
            yield Breach(reason=reason, line=function.line, doubt=doubt)


def _carries(function: Function, decorator: str) -> bool:
    """Return whether a function has the decorator, or is the decorator itself."""
    wanted = re.split(r"\.|::", decorator)[-1]
    return function.name == wanted or any(
        name == decorator
        or re.split(r"\.|::", name)[-1] == decorator
        or (name == wanted and wanted != decorator)
        for name in function.decorators
    )
