"""Parser for pytest: short summary, verbose lines and progress lines.

A test of pytest itself, or of a plugin, prints whole sessions. So the last summary is that of the run.
"""

import re

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
from agentx.synthesis.shell.command_line import steps

_COUNTS = re.compile(
    r"^(?:=+ )?(?P<counts>\d+ [a-z]+(?: [a-z]+)?(?:, \d+ [a-z]+(?: [a-z]+)?)*"
    r"|no tests ran|no tests collected[^=]{0,40})"
    r" in \d[\d.]*\s?s(?:econds)?(?: \([\d:]+\))?(?: =+)?$"
)
_SUMMARY = re.compile(r"^=+ short test summary info =+$")
_SESSION = re.compile(r"^=+ test session starts =+$")
_RESULT = re.compile(r"^(PASSED|(?:SUB)?FAILED|ERROR|SKIPPED|XFAIL|XPASS)(?:[(\[].{0,200}?[)\]])? (\S.*)$")
_VERBOSE = re.compile(
    r"^(?:\[gw\d+\] \[ *\d+%\] (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) )?(\S+\.\w+::\S.*?)"
    r"(?: (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)(?: \(.{0,200}\))?)? *(?:\[ *\d+%\])?$"
)
_PROGRESS = re.compile(r"^(\S+\.\w+) ([.FEsxXRrpu,-]+) *(?:\[ *\d+%\])?$")
_DOTS = re.compile(r"^[.FEsxXu,-]+ *\[ *\d+%\]$")
_BAD_DOTS = re.compile(r"(?:^| )[.sxXRrp,-]*[FEu][.FEsxXRrpu,-]* *\[")
_QUIET = re.compile(r"^-q+$")
_BARE_DOTS = re.compile(r"^[.FEsxX]+$")
_SECTION = re.compile(
    r"^=+ (?:FAILURES|ERRORS|PASSES|XFAILURES|warnings summary|short test summary info)[ (\w)]* =+$"
)
_BAD_SECTION = re.compile(r"^=+ (?:FAILURES|ERRORS) =+$")
_COLLECTED = re.compile(r"^collect(?:ed|ing \.\.\. collected) (\d+) items?(?: / (.*))?$")
_HEADER = re.compile(r"^_{3,} (?:ERROR (?:at \w+ of|collecting) )?(\S.*?) _{3,}$")
_LOCATION = re.compile(r"^(\S+?):(\d+): (?:\S.*)?$")
_CONFTEST = re.compile(r"^ImportError while loading conftest '(.{1,500})'\.?$")
_USAGE = re.compile(
    r"^(?:ERROR: (?:usage: |file or directory not found|not found: |found no collectors).*"
    r"|\S*pytest: error: .*)$"
)
_BROKEN = (
    "!!! Interrupted:",
    "INTERNALERROR>",
    "!!! KeyboardInterrupt",
    "(to show a full traceback on KeyboardInterrupt",
    "!!! _pytest.outcomes.Exit",
    "!!! stopping after",
)
MAX_AFTER_BREAK = 8
"""Maximum distance, in lines, between the mark of a stopped session and its last line."""


def parse_pytest(output: Output) -> CheckReport | None:
    """Parse the output of pytest; return ``None`` if there is none."""
    lines = output.lines
    ends = [i for i, line in enumerate(lines) if line[:1] in "=0123456789n" and _COUNTS.match(line)]
    conftest = next((match[1] for line in lines if (match := _CONFTEST.match(line))), "")
    usage = next((line for line in lines if _USAGE.match(line)), "")
    dots = _BARE_DOTS if "pytest" in output.command else _DOTS
    begun = any(_SESSION.match(line) or _DOTS.match(line) or dots.match(line) for line in lines)
    if not (ends or conftest or usage or begun):
        return None
    if not (conftest or (usage and (not ends or "no tests ran" in lines[ends[-1]]))):
        return _session(output, ends[-1] if ends else None)
    error = next((line[1:].strip() for line in lines if line.startswith("E  ")), usage)
    failing = (finding(conftest, path=conftest, message=error, priority="critical"),) if conftest else ()
    return CheckReport(
        runner="pytest",
        outcome="failed",
        failing=failing,
        ran=0,
        names_all_failing=False,
        error=error_of((), error or usage),
    )


def _session(output: Output, end: int | None) -> CheckReport:
    lines = output.lines if end is None else output.lines[: end + 1]
    match = _COUNTS.match(lines[-1]) if end is not None else None
    counts = _counts(match["counts"]) if match else {}
    results, suites = _results(lines)
    failing = [
        _failing(name, status, message) for status, name, message in results if status in {"FAILED", "ERROR"}
    ]
    failed = counts.get("failed", 0) + counts.get("errors", 0) + counts.get("error", 0)
    if match and not failed:
        failing = []
    named = {
        status: [(name, _file(name)) for word, name, _ in results if word == status and "::" in name]
        for status in ("PASSED", "SKIPPED", "XFAIL", "XPASS")
    }
    passed = named["PASSED"]
    failing = _explained(lines, failing)
    if len(failing) < failed:
        failing += _in_sections(lines, {item.check for item in failing})
    broken = end is None or any(mark in line for line in lines for mark in _BROKEN if line[:1] in "!I")
    found = (_COLLECTED.match(line) for line in reversed(lines) if line.startswith("collect"))
    collected = next(filter(None, found), None)
    deselected = " deselected" in lines[-1] if collected is None else "deselected" in (collected[2] or "")
    ran = failed + sum(counts.get(word, 0) for word in ("passed", "xfailed", "xpassed"))
    if match and not counts.get("passed") and broken:
        failing = [critical(item) if "::" not in item.check else item for item in failing]
    unique = distinct(failing)
    all_named = bool(passed) and len(set(passed)) >= counts.get("passed", 0)
    # If a subtest fails, pytest still reports the test itself as passed.
    failed_names = {item.check for item in unique}
    passed = [pair for pair in passed if pair[0] not in failed_names]
    stopped = any(mark in line for line in lines[-MAX_AFTER_BREAK:] for mark in _BROKEN if line[:1] in "!I(")
    bad = bool(failed or unique or stopped)
    tally = _tally(counts) if match and not broken else None
    empty = tally is not None and not tally.total and not bad
    outcome = "unknown" if empty else _outcome(output, counts, bad=bad, ended=end is not None)
    marked = (line for line in lines if line.startswith(("E  ", "INTERNALERROR>", "!!!")))
    error = next(marked, "the test session did not come to its end")
    return CheckReport(
        runner="pytest",
        outcome=outcome,
        failing=unique,
        passed=names(passed),
        skipped=names(named["SKIPPED"]),
        expected=names(named["XFAIL"]),
        unexpected=names(named["XPASS"]),
        suites=suite_names([*suites, *(_file(name) for _, name, _ in results if "::" in name)]),
        tally=tally,
        collected=int(collected[1][:9]) if collected else None,
        ran=ran if match else None,
        failed=failed if match else None,
        complete=output.selected.whole and not broken and not deselected and ran > 0,
        names_all_failing=not broken and len(unique) >= failed,
        names_all_passed=all_named,
        error=error_of(unique, error) if outcome == "failed" else "",
        warning=NO_TESTS if empty else "",
    )


def _tally(counts: dict[str, int]) -> RunTally:
    return RunTally(
        ran=sum(counts.get(word, 0) for word in ("passed", "failed", "error", "errors")),
        skipped=counts.get("skipped", 0),
        expected=counts.get("xfailed", 0) + counts.get("xpassed", 0),
        deselected=counts.get("deselected", 0),
    )


def _outcome(output: Output, counts: dict[str, int], *, bad: bool, ended: bool) -> Outcome:
    """Return the outcome; a session without its last line failed, unless a pipe cut that line off."""
    if bad:
        return "failed"
    if not ended:
        if output.cut:
            return "unknown"
        words = [word for step in steps(output.command) for word in step.arguments]
        quiet = sum(len(word) - 1 for word in words if _QUIET.match(word)) + words.count("--quiet")
        return "passed" if quiet > 1 and _all_dots(output.lines) else "failed"  # `-qq` has no last line
    if sum(counts.get(word, 0) for word in ("passed", "xfailed", "xpassed")):
        return "passed"
    if output.status:
        return "failed"
    return "passed" if counts.get("skipped") and output.status == 0 else "unknown"


def _all_dots(lines: list[str]) -> bool:
    """Return whether the progress lines reach 100% and show no failure."""
    shown = [line for line in lines if _DOTS.match(line) or _PROGRESS.match(line)]
    whole = bool(shown) and shown[-1].endswith("[100%]")
    bad = any(" error" in line for line in lines if line.startswith("collect"))
    bad |= any(_BAD_SECTION.match(line) for line in lines if line.startswith("=="))
    return whole and not bad and not any(_BAD_DOTS.search(line) for line in shown)


def _counts(text: str) -> dict[str, int]:
    pairs = (part.partition(" ") for part in text.split(", "))
    return {pair[2]: int(pair[0][:9]) for pair in pairs if pair[0].isdecimal()}


def _results(lines: list[str]) -> tuple[list[tuple[str, str, str]], list[str]]:
    """Return the result of each named check as (status, name, message), and the files with progress lines."""
    start = max((i for i, line in enumerate(lines) if _SUMMARY.match(line)), default=None)
    results: list[tuple[str, str, str]] = []
    suites: list[str] = []
    body = next(
        (i for i, line in enumerate(lines) if line.startswith("==") and _SECTION.match(line)), len(lines)
    )
    for line in lines[:body]:  # text that a section quotes may itself look like results
        if start is None and (match := _RESULT.match(line)):  # the title of the summary was cut off
            name, message = _split_result(match[2])
            results.append((match[1].removeprefix("SUB"), name, message))
        elif "::" in line and (match := _VERBOSE.match(line)) and (match[1] or match[3]):
            results.append((match[1] or match[3], match[2], ""))
        elif (match := _PROGRESS.match(line)) and not set(match[2]) & set("sxX"):
            suites.append(match[1])
    for line in lines[start:] if start is not None else ():
        if match := _RESULT.match(line):
            name, message = _split_result(match[2])
            results.append((match[1].removeprefix("SUB"), name, message))
    return results, suites


def _split_result(rest: str) -> tuple[str, str]:
    """Split ``name - message``; the brackets of a parametrised test may hold the separator."""
    bracket, dash = rest.find("["), rest.find(" - ")
    if "::" in rest and bracket >= 0 and (dash < 0 or bracket < dash):
        close = rest.find("] - ", bracket)
        if close >= 0:
            return rest[: close + 1], rest[close + 4 :]
        return (rest, "") if rest.endswith("]") or dash < 0 else (rest[:dash], rest[dash + 3 :])
    return (rest, "") if dash < 0 else (rest[:dash], rest[dash + 3 :])


def _file(name: str) -> str:
    return name.split("::", 1)[0]


def _failing(name: str, status: str, message: str) -> FailedCheck:
    if status == "ERROR" and "::" not in name:  # the file could not be collected
        return finding(name, suite=name, path=name, message=message)
    return finding(name, suite=_file(name), path=_file(name), message=message)


def _explained(lines: list[str], failing: list[FailedCheck]) -> list[FailedCheck]:
    """Add the whole message and the place from each failure's section, because the summary cuts its lines."""
    sections: dict[str, tuple[str, int]] = {}
    title, message, place = "", "", 0
    for line in [*lines, "___ end ___"]:
        if line.startswith(("___", "===")):
            if title and title not in sections:
                sections[title] = (message, place)
            match = _HEADER.match(line)
            title, message, place = (match[1] if match else ""), "", 0
        elif title and not message and line.startswith("E  "):
            message = line[1:].strip()
        elif title and (match := _LOCATION.match(line)):
            place = int(match[2][:9])
    explained = []
    for item in failing:
        full, place = sections.get(item.check.split("::", 1)[-1].replace("::", "."), ("", 0))
        full, place = full or item.message, place or item.line
        explained.append(finding(item.check, suite=item.suite, path=item.path, line=place, message=full))
    return explained


def _in_sections(lines: list[str], known: set[str]) -> list[FailedCheck]:
    """Return the failures that no summary names, from their sections: the title and the first quoted file."""
    found: list[FailedCheck] = []
    title, message = "", ""
    for line in lines:
        if line.startswith("___"):
            match = _HEADER.match(line)
            title, message = (match[1] if match else ""), ""
        elif title and not message and line.startswith("E  "):
            message = line[1:].strip()
        elif title and (match := _LOCATION.match(line)):
            name = f"{match[1]}::{title.replace('.', '::', title.partition('[')[0].count('.'))}"
            if name not in known:
                found.append(finding(name, suite=match[1], path=match[1], line=match[2], message=message))
            title = ""
    return found
