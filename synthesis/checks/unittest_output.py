"""Parser for unittest, and for Django's test runner, which prints the same after its own preamble."""

import re

import msgspec

from agentx.synthesis.checks.check_report import (
    NO_TESTS,
    CheckReport,
    FailedCheck,
    Outcome,
    critical,
    distinct,
    error_of,
    finding,
    names,
    suite_names,
)
from agentx.synthesis.checks.output import Output
from agentx.synthesis.memory.items import RunTally

_TITLE = re.compile(r"^(FAIL|ERROR|UNEXPECTED SUCCESS): (\S.*)$")
_NAME = re.compile(r"^([A-Za-z_]\w* \([\w.<>]+\))")
_STATUS = re.compile(r"\.\.\. *(ok|FAIL|ERROR|skipped\b.*|expected failure|unexpected success)$")
_BARE = re.compile(r"^(ok|FAIL|ERROR|skipped\b.*|expected failure|unexpected success)$")
_RAN = re.compile(r"^Ran (\d+) tests? in \d")
_END = re.compile(r"^(OK|FAILED|NO TESTS RAN)(?: \((.*)\))?$")
_DJANGO = re.compile(
    r"^(Testing against Django installed in |Creating test database for alias "
    r"|Found \d+ test\(s\)|System check identified )"
)
_PLACE = re.compile(r'^  File "([^"]{1,500})", line (\d+)')
_NO_MESSAGE = re.compile(r" \[<object object at 0x[0-9a-f]{4,16}>\]")
_ADDRESS = re.compile(r" at 0x[0-9a-f]{4,16}")
_LOADER = ("unittest.loader._FailedTest", "unittest.loader.ModuleImportFailure")


def parse_unittest(output: Output) -> CheckReport | None:
    """Parse the output of unittest or Django's runner; return ``None`` if there is none."""
    lines = output.lines
    ran_at = max(
        (i for i, line in enumerate(lines) if line.startswith("Ran ") and _RAN.match(line)), default=None
    )
    django = any(_DJANGO.match(line) for line in lines)
    runner = "django" if django else "unittest"
    verbose = _verbose(lines)
    if ran_at is not None:
        return _finished(output, runner, verbose, ran_at)
    if not django and sum(status == "ok" for _, status in verbose) < 2:  # noqa: PLR2004 - one may be quoted
        return None
    # It broke off before the first test (nothing could be imported) or between tests.
    error = _last_error(lines)
    return CheckReport(
        runner=runner,
        outcome="failed" if error or not output.cut else "unknown",
        failing=distinct(_failing(lines, cut=output.cut)),
        passed=names([(name, _suite(name)) for name, status in verbose if status == "ok"]),
        ran=len(verbose),
        names_all_failing=False,
        error=error_of((), error or "the tests did not come to their end"),
    )


def _finished(output: Output, runner: str, verbose: list[tuple[str, str]], ran_at: int) -> CheckReport:
    lines = output.lines
    match = _RAN.match(lines[ran_at])
    ran = int(match[1][:9]) if match else 0
    end = next((found for line in lines[ran_at:] if (found := _END.match(line))), None)
    failing = distinct(_failing(lines[: ran_at + 1], cut=output.cut))
    bad = {"failures", "errors", "unexpected successes"}
    pairs = (part.partition("=") for part in (end[2] or "").split(", ")) if end else ()
    counts = {word: int(count[:9]) for word, _, count in pairs if count.isdecimal()}
    failed = sum(count for word, count in counts.items() if word in bad)
    failed = failed if end else len(failing)
    if end and end[1] == "OK":
        failing = ()
    if failing and all(item.priority == "critical" for item in failing) and ran > len(failing):
        failing = tuple(msgspec.structs.replace(item, priority="high") for item in failing)
    outcome: Outcome = "failed" if failing or (end and end[1] == "FAILED") else "passed" if end else "unknown"
    if (end and end[1] == "NO TESTS RAN") or (ran == 0 and outcome == "passed"):
        outcome = "unknown"
    named = {
        word: [(name, _suite(name)) for name, status in verbose if status.startswith(word)]
        for word in ("ok", "skipped", "expected failure", "unexpected success")
    }
    passed, skipped = named["ok"], named["skipped"]
    marked = counts.get("expected failures", 0) + counts.get("unexpected successes", 0)
    return CheckReport(
        runner=runner,
        outcome=outcome,
        failing=failing,
        passed=names(passed),
        skipped=names(skipped),
        expected=names(named["expected failure"]),
        unexpected=names(named["unexpected success"]),
        suites=suite_names([_suite(name) for name, _ in verbose]),
        tally=RunTally(max(ran - counts.get("skipped", 0) - marked, 0), counts.get("skipped", 0), marked)
        if end
        else None,
        ran=ran,
        failed=failed,
        complete=output.selected.whole and ran > 0,
        names_all_failing=len(failing) >= failed,
        names_all_passed=bool(passed) and sum(map(len, map(set, named.values()))) + len(failing) >= ran,
        error=error_of(failing),
        warning=NO_TESTS if outcome == "unknown" and not ran else "",
    )


def _verbose(lines: list[str]) -> list[tuple[str, str]]:
    """Return (name, status) of each test of a verbose run; a docstring or log line may separate the two."""
    results: list[tuple[str, str]] = []
    pending = ""
    for line in lines:
        name = match[1] if (match := _NAME.match(line)) else ""
        pending = name or pending
        status = _STATUS.search(line) if line.find("... ") >= 0 or line.endswith("...") else None
        status = status or _BARE.match(line)
        if pending and status:
            results.append((pending, status[1]))
            pending = ""
        elif line.startswith("======"):
            pending = ""
    return results


def _failing(lines: list[str], *, cut: bool) -> list[FailedCheck]:
    """Return the failures from their sections: a title between two rules, then a traceback.

    If the output was cut, the first rule may be missing.
    """
    found: list[FailedCheck] = []
    for index, line in enumerate(lines):
        match = _TITLE.match(line)
        ruled = index > 0 and lines[index - 1].startswith("=====")
        if not match or not (ruled or (cut and _NAME.match(match[2]))):
            continue
        # Without this, the names of a subtest would differ between two runs.
        name = _ADDRESS.sub(" at 0x…", _NO_MESSAGE.sub("", match[2]))
        path, number, message = _traceback(lines, index + 1)
        item = finding(name, suite=_suite(name), path=path, line=number, message=message)
        found.append(critical(item) if any(mark in name for mark in _LOADER) else item)
    return found


def _traceback(lines: list[str], start: int) -> tuple[str, int, str]:
    """Return the place and message of a failure.

    The place is the outermost frame outside a library, the message the unindented line after the frames.
    """
    path, number, message = "", 0, ""
    for line in lines[start : start + 400]:
        if line.startswith(("======", "Ran ")) or (line.startswith("-----") and message):
            break
        frame = _PLACE.match(line)
        if frame and not path and "/lib/python" not in frame[1] and "/unittest/" not in frame[1]:
            path, number = frame[1], int(frame[2][:9])
        elif (
            not message
            and ":" in line
            and (path or not frame)
            and not line.startswith((" ", "-", "Traceback"))
        ):
            message = line
    return path, number, message


def _suite(name: str) -> str:
    match = _NAME.match(name)
    method, _, place = match[1].partition(" (") if match else ("", "", "")
    # Since Python 3.11 the place ends with the method.
    return place.rstrip(")").removesuffix(f".{method}")


def _last_error(lines: list[str]) -> str:
    """Return the error line of the last traceback, or of Django's system check, in the output."""
    for index in range(len(lines) - 1, -1, -1):
        if lines[index].startswith(("Traceback (most recent call last):", "django.core.")):
            tail = [
                line
                for line in lines[index + 1 : index + 500]
                if line and not line.startswith((" ", "During", "The above"))
            ]
            return tail[0] if tail else lines[index]
    return ""
