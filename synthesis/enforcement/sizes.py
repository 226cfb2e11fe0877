"""Checks of size: files, functions, lines and answers that are too long."""

from collections.abc import Iterator

from agentx.synthesis.enforcement.breaches import Breach, CheckedChange
from agentx.synthesis.enforcement.functions import functions_of
from agentx.synthesis.memory.checks import SizeCheck, Unit


def too_large(check: SizeCheck, change: CheckedChange) -> Iterator[Breach]:
    """Yield a breach for a file, function or line that is new or has grown, and is over the limit."""
    if change.after is None:
        return
    match check.of:
        case "file":
            size, was = _size(change.after, check.unit), _size(change.before or "", check.unit)
            if size > max(check.at_most, was):
                yield Breach(reason=f"{change.path} has {_over(size, check)}.")
        case "function":
            earlier = {one.qualified: one.lines for one in functions_of(change, "before")}
            for one in functions_of(change):
                if one.lines > max(check.at_most, earlier.get(one.qualified, 0)):
                    reason = (
                        f"{one.qualified} at line {one.line} of {change.path} has {_over(one.lines, check)}."
                    )
                    yield Breach(reason=reason, line=one.line)
        case "line":
            known = set((change.before or "").splitlines())
            for number, line in enumerate(change.after.splitlines(), start=1):
                if (size := _size(line, check.unit)) > check.at_most and line not in known:
                    reason = f"Line {number} of {change.path} has {_over(size, check)}."
                    yield Breach(reason=reason, line=number)
                    return


def too_long_answer(check: SizeCheck, text: str) -> Iterator[Breach]:
    """Yield a breach if an answer is over the limit."""
    if check.of == "answer" and (size := _size(text, check.unit)) > check.at_most:
        yield Breach(reason=f"The answer has {_over(size, check)}.")


def _over(size: int, check: SizeCheck) -> str:
    return f"{size:,} {check.unit}; at most {check.at_most:,} are allowed"


def _size(text: str, unit: Unit) -> int:
    match unit:
        case "lines":
            return len(text.splitlines())
        case "words":
            return len(text.split())
        case "characters":
            return len(text)
