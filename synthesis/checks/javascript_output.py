"""Parsers for jest, vitest and mocha."""

import re

from agentx.synthesis.checks.check_report import (
    CheckReport,
    FailedCheck,
    critical,
    distinct,
    error_of,
    finding,
    names,
    suite_names,
)
from agentx.synthesis.checks.output import Output
from agentx.synthesis.memory.items import RunTally

_JEST_FILE = re.compile(r"^ ?(PASS|FAIL) +(?:.{1,40}? )?(\S+\.\w+)(?: \([\d.]+ ?m?s\))?$")
_JEST_TOTAL = re.compile(r"^Tests: +(.*\d+ total)$")
_JEST_SUITES = re.compile(r"^Test Suites:( .*)$")
_JEST_TITLE = re.compile(r"^ {1,2}● (\S.*)$")
_TICK = re.compile(r"^( +)([✓✔√✕✗×○✎]) (?:skipped |todo )?(\S.*?)(?: \(?[\d.]+ ?m?s\)?)?$")
_FRAME = re.compile(r"^ +at .{0,300}?\(?([^\s()]+\.[cm]?[jt]sx?):(\d+):\d+\)?$")
_VITEST_TOTAL = re.compile(r"^ +Tests +(.*\(\d+\))$")
_VITEST_FILES = re.compile(r"^ +Test Files +(.*\(\d+\))$")
_VITEST_ERRORS = re.compile(r"^(?: +Errors +\d+ errors?|⎯+ Unhandled Errors? ⎯+)$")
_VITEST_FAIL = re.compile(r"^ *FAIL +(?:\|.{1,40}?\| )?(\S+\.\w+)(?: \[ .*\])?(?: > (.+))?$")
_VITEST_FILE = re.compile(r"^ [✓❯×✗] (?:\|.{1,40}?\| )?(\S+\.\w+) \((\d+) tests?(?: \| .{1,80})?\)")
_VITEST_PLACE = re.compile(r"^ +❯ (\S+?):(\d+):\d+$")
_MOCHA = re.compile(r"^ +(\d+) (passing|failing|pending)(?: \(.{1,20}\))?$")
_MOCHA_TITLE = re.compile(r"^ {2}(\d+)\) (\S.*)$")
_MOCHA_MARK = re.compile(r"^ {2,}\d+\) \S")
"""A failing test among the passed ones; the list of the failures follows the totals."""

_COUNT = re.compile(r"(\d{1,9}) (failed|passed|skipped|todo|total)")
_CODE = re.compile(r"^ *(>? *\d+ )?\|")
MESSAGE_LINES = 3
_UNLOADED = "Test suite failed to run"


def parse_jest(output: Output) -> CheckReport | None:
    """Parse the output of jest; return ``None`` if there is none."""
    total = next((match[1] for line in reversed(output.lines) if (match := _JEST_TOTAL.match(line))), "")
    files = [(match[1], match[2]) for line in output.lines if (match := _JEST_FILE.match(line))]
    suites = next((match[1] for line in reversed(output.lines) if (match := _JEST_SUITES.match(line))), "")
    if not total and not suites:
        return None
    counts = {word: int(number) for number, word in _COUNT.findall(total)}
    failing = _jest_failing(output.lines, counts)
    passed, skipped = _ticked(output.lines, [name for _, name in files])
    failed_files = [name for status, name in files if status == "FAIL"]
    if not failing:
        failing = [finding(name, suite=name, path=name) for name in failed_files]
    unique = distinct(failing)
    bad = bool(counts.get("failed") or " failed" in suites or failed_files or unique)
    ran = counts.get("passed", 0) + counts.get("failed", 0)
    whole = output.selected.whole and not any(
        line.startswith("Ran all test suites ") and " matching " in line for line in output.lines
    )
    return CheckReport(
        runner="jest",
        outcome="failed"
        if bad or (output.status and not ran)
        else ("passed" if ran and (suites or output.status == 0) else "unknown"),
        failing=unique,
        passed=names(passed),
        skipped=names(skipped),
        suites=suite_names([name for _, name in files if not any(f.check == name for f in unique)]),
        tally=_tally(counts),
        collected=counts.get("total"),
        ran=ran,
        failed=counts.get("failed", 0),
        complete=whole and ran > 0,
        names_all_failing=len(unique) >= counts.get("failed", 0) and not output.cut,
        names_all_passed=len(passed) >= counts.get("passed", 0) > 0,
        error=error_of(unique),
    )


def _tally(counts: dict[str, int]) -> RunTally:
    """Return the tally; a test to do counts as skipped."""
    number = {word: counts.get(word, 0) for word in ("passed", "failed", "skipped", "todo")}
    return RunTally(number["passed"] + number["failed"], number["skipped"] + number["todo"])


def _jest_failing(lines: list[str], counts: dict[str, int]) -> list[FailedCheck]:
    """Return the failures from their sections; ``Summary of all failing tests`` repeats them at the end."""
    found: list[FailedCheck] = []
    suite = ""
    for index, line in enumerate(lines):
        if match := _JEST_FILE.match(line):
            suite = match[2] if match[1] == "FAIL" else ""
        elif suite and "●" in line and (match := _JEST_TITLE.match(line)):
            message, path, number = _jest_message(lines, index + 1)
            unloaded = match[1] == _UNLOADED
            found.append(
                finding(
                    suite if unloaded else match[1],
                    suite=suite,
                    path=suite if unloaded else path or suite,
                    line=number,
                    message=message,
                    priority="critical" if unloaded and not counts.get("passed") else "high",
                )
            )
    return found


def _jest_message(lines: list[str], start: int) -> tuple[str, str, str]:
    message: list[str] = []
    path = number = ""
    for line in lines[start : start + 200]:
        if _JEST_TITLE.match(line) or _JEST_FILE.match(line) or line.startswith(("Test Suites:", "Tests:")):
            break
        frame = _FRAME.match(line)
        if frame and not path and "node_modules" not in frame[1]:
            path, number = frame[1], frame[2]
        elif line.strip() and not frame and len(message) < MESSAGE_LINES and not _CODE.match(line):
            message.append(line.strip())
    return " ".join(message), path, number


def _ticked(lines: list[str], files: list[str]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the passed and the skipped tests of a verbose run, named with their enclosing blocks."""
    passed: list[tuple[str, str]] = []
    skipped: list[tuple[str, str]] = []
    blocks: list[tuple[int, str]] = []
    suite = ""
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if match := _JEST_FILE.match(line):
            suite, blocks = match[2], []
        elif match := _TICK.match(line):
            outer = [name for depth, name in blocks if depth < len(match[1])]
            name = " › ".join([*outer, match[3]])
            if match[2] in "✓✔√":
                passed.append((name, suite))
            elif match[2] in "○✎":
                skipped.append((name, suite))
        elif suite and indent and line.strip() and "●" not in line:
            blocks = [*[block for block in blocks if block[0] < indent], (indent, line.strip())][-20:]
        elif suite and line.strip():
            blocks = []
    return (passed, skipped) if files else ([], [])


def parse_vitest(output: Output) -> CheckReport | None:
    """Parse the output of vitest; return ``None`` if there is none."""
    lines = output.lines
    total = next((match[1] for line in reversed(lines) if (match := _VITEST_TOTAL.match(line))), "")
    files = next((match[1] for line in reversed(lines) if (match := _VITEST_FILES.match(line))), "")
    if not total and not files:
        return None
    counts = {word: int(number) for number, word in _COUNT.findall(total)}
    failing = [
        _vitest_failure(lines, index, match)
        for index, line in enumerate(lines)
        if (match := _VITEST_FAIL.match(line))
    ]
    if not counts.get("passed"):
        failing = [critical(item) if item.check == item.suite else item for item in failing]
    unique = distinct(failing)
    ran = counts.get("passed", 0) + counts.get("failed", 0)
    stray = any(_VITEST_ERRORS.match(line) for line in lines)
    bad = bool(counts.get("failed") or " failed" in files or stray or (unique and not (total and files)))
    unique = unique if bad else ()
    unloaded = {item.suite for item in unique if item.check == item.suite}
    ticks = [match for line in lines if (match := _TICK.match(line)) and match[2] in "✓✔√"]
    # The verbose reporter marks passed tests as `` ✓ path > block > test 1ms``.
    paths = [match[3].partition(" > ") for match in ticks]
    passed = [(name, path) for path, inside, name in paths if inside]
    ended = (match for line in lines if (match := _VITEST_FILE.match(line)) and match[1] not in unloaded)
    shown = [match[1] for match in ended if "skipped" not in match[0]]
    return CheckReport(
        runner="vitest",
        outcome="failed" if bad else ("passed" if ran and (files or output.status == 0) else "unknown"),
        failing=unique,
        passed=names(passed),
        suites=suite_names(shown),
        tally=_tally(counts),
        ran=ran,
        failed=counts.get("failed", 0),
        complete=output.selected.whole and ran > 0 and not counts.get("skipped"),
        names_all_failing=len(unique) >= counts.get("failed", 0) and not output.cut and not stray,
        error=error_of(unique, "an error outside of the tests" if stray else ""),
    )


def _vitest_failure(lines: list[str], index: int, match: re.Match[str]) -> FailedCheck:
    message, number = "", ""
    for line in lines[index + 1 : index + 100]:
        place = _VITEST_PLACE.match(line)
        if line.startswith("⎯") or place:
            number = place[2] if place and place[1].endswith(match[1]) else ""
            break
        if line.strip() and not message and not _VITEST_FAIL.match(line):
            message = line.strip()
    return finding(match[2] or match[1], suite=match[1], path=match[1], line=number, message=message)


def parse_mocha(output: Output) -> CheckReport | None:
    """Parse the output of mocha (reporters ``spec`` and ``dot``); return ``None`` if there is none."""
    lines = output.lines
    totals = [(index, match) for index, line in enumerate(lines) if (match := _MOCHA.match(line))]
    last = max((index for index, match in totals if match[2] == "passing"), default=None)
    if last is None:
        return None
    counts = {match[2]: int(match[1][:9]) for index, match in totals if index >= last}
    start = totals[-1][0]
    cut_off = "failing" not in counts and any(_MOCHA_MARK.match(line) for line in lines[:last])
    failing = distinct(_mocha_failing(lines, start)) if counts.get("failing") else ()
    ran = counts["passing"] + counts.get("failing", 0)
    return CheckReport(
        runner="mocha",
        outcome="failed" if counts.get("failing") or cut_off else ("passed" if ran else "unknown"),
        failing=failing,
        tally=RunTally(ran, counts.get("pending", 0)),
        ran=ran,
        failed=counts.get("failing", 0),
        complete=output.selected.whole and ran > 0 and not cut_off,
        names_all_failing=len(failing) >= counts.get("failing", 0) and not cut_off,
        error=error_of(failing),
    )


def _mocha_failing(lines: list[str], start: int) -> list[FailedCheck]:
    """Return the failures from the numbered sections after the totals.

    A section holds the blocks around a test, then its name with a colon, then the error.
    """
    found: list[FailedCheck] = []
    for index in range(start, len(lines)):
        match = _MOCHA_TITLE.match(lines[index])
        if not match:
            continue
        title, message, path, number = [match[2].rstrip(":")], "", "", ""
        named = match[2].endswith(":")
        for line in lines[index + 1 : index + 60]:
            frame = _FRAME.match(line)
            if _MOCHA_TITLE.match(line):
                break
            if not named and line.strip():
                title.append(line.strip().rstrip(":"))
                named = line.endswith(":")
            elif frame and not path and "node_modules" not in frame[1]:
                path, number = frame[1], frame[2]
            elif line.strip() and not message:
                message = line.strip()
        found.append(finding(" › ".join(title[:20]), path=path, line=number, message=message))
    return found
