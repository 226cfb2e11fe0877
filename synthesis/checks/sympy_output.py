"""Parser for SymPy's own test runner (``bin/test``)."""

import re

from agentx.synthesis.checks.check_report import (
    CheckReport,
    FailedCheck,
    Outcome,
    distinct,
    error_of,
    finding,
    names,
    suite_names,
)
from agentx.synthesis.checks.output import Output

_START = re.compile(r"^=+ test process starts =+$")
_END = re.compile(r"^=+ tests finished: (.{1,300}), in [\d.]+ seconds =+$")
_TITLE = re.compile(r"^_+ (\S+\.py):(\S+) _+$")
_FILE = re.compile(r"^(\S+\.py)\[(\d+|\?)\]")
_TEST = re.compile(r"^(test\w*) (ok|[EFfsTXwK])\b")


def parse_sympy(output: Output) -> CheckReport | None:
    """Parse the output of SymPy's runner; return ``None`` if there is none."""
    if not any(_START.match(line) for line in output.lines):
        return None
    end = next((match for line in reversed(output.lines) if (match := _END.match(line))), None)
    counts = {word: int(number) for number, word in re.findall(r"(\d{1,9}) ([a-z]+)", end[1])} if end else {}
    failed = counts.get("failed", 0) + counts.get("exceptions", 0)
    failing = distinct(_failing(output.lines))
    passed, suites = _passed(output.lines)
    outcome: Outcome = (
        "failed" if failed or failing or not (end or output.cut) else ("passed" if end else "unknown")
    )
    return CheckReport(
        runner="sympy",
        outcome=outcome,
        failing=failing,
        passed=names(passed),
        suites=suite_names(suites),
        ran=sum(counts.get(word, 0) for word in ("passed", "failed", "exceptions")) if end else None,
        failed=failed if end else None,
        complete=bool(end) and output.selected.whole,
        names_all_failing=bool(end) and len(failing) >= failed,
        names_all_passed=bool(passed) and len(passed) >= counts.get("passed", 0),
        error=error_of(failing),
    )


def _passed(lines: list[str]) -> tuple[list[tuple[str, str]], list[str]]:
    suite, passed, suites = "", [], []
    for line in lines:
        if match := _FILE.match(line):
            suite = match[1]
            suites.append(suite)
        elif (match := _TEST.match(line)) and match[2] == "ok":
            passed.append((f"{suite}:{match[1]}", suite))
    return passed, suites


def _failing(lines: list[str]) -> list[FailedCheck]:
    found: list[FailedCheck] = []
    for index, line in enumerate(lines):
        if line.startswith("___") and (match := _TITLE.match(line)):
            message = ""
            for following in lines[index + 1 : index + 300]:
                if following.startswith(("___", "====")):
                    break
                if following and not following.startswith((" ", "Traceback")):
                    message = following
            found.append(finding(f"{match[1]}:{match[2]}", suite=match[1], path=match[1], message=message))
    return found
