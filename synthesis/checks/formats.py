"""Parsers for TAP, JUnit XML, node's own runner, RSpec, Maven, Gradle, dotnet and PHPUnit.

JUnit XML is read with patterns, not with an XML parser. So a truncated report still names the failures, and
no entity is ever expanded.
"""

import re
from collections.abc import Iterable, Iterator
from html import unescape
from itertools import islice, takewhile, zip_longest
from typing import NamedTuple

import msgspec

from agentx.synthesis.checks.check_report import (
    CheckReport,
    FailedCheck,
    Outcome,
    distinct,
    error_of,
    finding,
    names,
)
from agentx.synthesis.checks.output import Output
from agentx.synthesis.memory.items import RunTally

_TAP = re.compile(
    r"^((?: {4})*)(not )?ok\b(?: (\d+))?(?: (?:- )?(.*?))?"
    r"(?:\s+# (SKIP|TODO|skip|todo)\b.*?)?(?: # time=[\d.]+m?s)?( \{)?$"
)
_TAP_FAILED = re.compile(r"^# (?:fail +[1-9]|failed [1-9]|\{ total: .*\bfail: [1-9])")
MAX_DEPTH = 20
"""Maximum number of names in the path of a nested test."""

_PLAN = re.compile(r"^1\.\.(\d+)(?:\s|$)")
_SUBTEST = re.compile(r"^( *)# Subtest: (.+)$")
_BAIL = re.compile(r"^Bail out!(.*)$")
_YAML = re.compile(r"^(\s+)(?:message|error): ['\"]?(.*?)['\"]?$")
_BLOCK = re.compile(r"^[|>][+-]?\d?$")
_STACK = re.compile(r"^ +at \S.*:\d+:\d+\)?$")
MAX_BLOCK = 8
"""Maximum number of lines of a failure's message."""

_CASE = re.compile(r"<testcase\b((?:[^<>\"']|\"[^<\"]*\"|'[^<']*')*)>")
_ATTRIBUTE = re.compile(r"([\w:-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_VERDICT = re.compile(r"<(failure|error|skipped)\b((?:[^<>\"']|\"[^<\"]*\"|'[^<']*')*)>([^<]{0,400})")

_NODE_TOTAL = re.compile(r"^ℹ (tests|suites|pass|fail|cancelled|skipped|todo) (\d+)$")
_NODE_TEST = re.compile(r"^ *([✔✖﹣]) (\S.*) \([\d.]+ms\)(?: # (SKIP|TODO)\b.*)?$")
_INSIDE = re.compile(r"^(?:  |$)(?!test at | *✖ )")
_NODE_FAIL = re.compile(r"^( *)✖ (\S.*?)(?: \([\d.]+ms\))?$")

_RSPEC = re.compile(
    r"^(\d+) examples?, (\d+) failures?(?:, (\d+) pending)?(?:, (\d+) errors? occurred outside of examples)?$"
)
_RSPEC_FAIL = re.compile(r"^rspec (\./\S+?):(\d+|'[^']*') # (.+)$|^rspec (\./\S+?)(\[[\d:]+\]) # (.+)$")
_SUREFIRE = re.compile(
    r"^(?:\[\w+\] +)?Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+)"
    r"(?P<own>, Time elapsed: .*?(?: in (?P<suite>\S+))?)?$"
)
_SUREFIRE_CLASS = re.compile(r"^(?:\[INFO\] +)?Running (\S+)$")
_SUREFIRE_FAIL = re.compile(
    r"^(?:\[ERROR\] +)?(?!Tests run: )(\S.*?)(?: --)? +Time elapsed: \S+ s(?:ec)? +<<< (?:FAILURE|ERROR)!$"
)
_JAVA_FRAME = re.compile(r"^\s+at (?:\S+/)?([\w.$]+)\.[\w$<>]+\((\w+\.\w+):(\d+)\)$")
_GRADLE_FAIL = re.compile(r"^(\S.*? > .*\S) FAILED$")
_GRADLE_TOTAL = re.compile(r"^(\d+) tests? completed, (\d+) failed(?:, (\d+) skipped)?$")
_GRADLE_RAN = re.compile(r"^> Task :(?:[\w.-]+:)*(?:\w*[a-z])?[tT]est$")
"""A test task that was executed; others end in ``UP-TO-DATE``, ``FROM-CACHE``, ``SKIPPED``, …"""

_GRADLE_PLACE = re.compile(r"^ {4}(\S.*?)(?: at (\w+\.\w+):(\d+))?$")
_DOTNET_FAIL = re.compile(r"^  Failed (\S.*?) \[.{1,30}\]$")
_DOTNET_LOGGED = re.compile(r"^ +(\S.*?) \([\d.]+ ?m?s\): Error Message: (.*)$")
_DOTNET_PLACE = re.compile(r"^\s+at .* in (\S.*?):line (\d+)$")
_DOTNET_TOTAL = re.compile(
    r"^(?:Failed|Passed|Skipped)! +- Failed: +(?P<failed>\d+), Passed: +(?P<passed>\d+), "
    r"Skipped: +(?P<skipped>\d+), Total: "
    r"|^Test summary: total: \d+, failed: (?P<failed2>\d+), succeeded: (?P<passed2>\d+), "
    r"skipped: (?P<skipped2>\d+)"
)
_PHPUNIT_TOTAL = re.compile(r"^(?:OK \((\d+) tests?, \d+ assertions?\)|Tests: (\d+), Assertions: \d+(.*)\.)$")
_PHPUNIT_COUNT = re.compile(r", (Errors|Failures|Skipped|Incomplete): (\d+)")
_PHPUNIT_SECTION = re.compile(r"^There (?:was|were) \d+ ([\w ]+):$")
_PHPUNIT_TITLE = re.compile(r"^\d+\) (\S+::\S.*?)(?: \(.*\))?$")
_PHPUNIT_PLACE = re.compile(r"^(/\S+\.php):(\d+)$")

_RSPEC_TITLE = re.compile(r"^  \d+\) (\S.*)$")


def parse_tap(output: Output) -> CheckReport | None:
    """Parse the Test Anything Protocol (12 to 14, with subtests); return ``None`` if there is none."""
    plan = next((int(match[1][:9]) for line in output.lines if (match := _PLAN.match(line))), None)
    if plan is None and not any(line.startswith("TAP version ") for line in output.lines):
        return None
    points = _tap_points(output.lines)
    passed, failing = points.passed, _leaves(points.failing)
    bail = next((match[1].strip() for line in output.lines if (match := _BAIL.match(line))), None)
    top = sum(bool((match := _TAP.match(line)) and not match[1]) for line in output.lines)
    short = plan is not None and top < plan
    unique = distinct(failing)
    told = any(_TAP_FAILED.match(line) for line in output.lines if line[:1] == "#")
    bad = unique or told or bail is not None or (short and not output.cut)
    outcome: Outcome = (
        "failed" if bad else ("passed" if passed and plan is not None and not short else "unknown")
    )
    return CheckReport(
        runner="tap",
        outcome=outcome,
        failing=unique,
        passed=names([(name, "") for name in passed]),
        skipped=names([(name, "") for name in points.skipped]),
        expected=names([(name, "") for name in points.expected]),
        unexpected=names([(name, "") for name in points.unexpected]),
        tally=RunTally(
            len(passed) + len(points.failing),
            len(points.skipped),
            len(points.expected) + len(points.unexpected),
        ),
        ran=len(passed) + len(unique),
        failed=len(unique),
        complete=output.selected.whole and not short and bail is None and bool(passed),
        names_all_failing=not short and bail is None and not output.cut and bool(unique or not told),
        names_all_passed=not output.cut,
        error=error_of(unique, bail or ("a test run shorter than its plan" if short else "")),
    )


class _Points(msgspec.Struct):
    """The test points of a TAP stream, named with their parents; the failing ones with a message."""

    passed: list[str] = msgspec.field(default_factory=list)
    skipped: list[str] = msgspec.field(default_factory=list)
    expected: list[str] = msgspec.field(default_factory=list)
    unexpected: list[str] = msgspec.field(default_factory=list)
    failing: dict[str, str] = msgspec.field(default_factory=dict)


def _tap_points(lines: list[str]) -> _Points:
    points = _Points()
    parents: list[str] = []
    for index, line in enumerate(lines):
        if "# Subtest: " in line and (match := _SUBTEST.match(line)):
            parents = [*parents[: len(match[1]) // 4], match[2]]
        elif (match := _TAP.match(line)) and (match[2] or line.lstrip().startswith("ok")):
            depth = len(match[1]) // 4
            own = match[4] or match[3] or ""
            name = " > ".join([*parents[:depth], own][-MAX_DEPTH:])
            if match[6]:  # its subtests follow in braces
                parents = [*parents[:depth], own]
            if (match[5] or "").upper() == "SKIP":
                points.skipped.append(name)
            elif match[5]:
                (points.expected if match[2] else points.unexpected).append(name)
            elif not match[2]:
                points.passed.append(name)
            else:
                points.failing.setdefault(name, _yaml_message(lines[index + 1 : index + 40]))
    return points


def _leaves(failing: dict[str, str]) -> list[FailedCheck]:
    """Return the failures without the parents that only repeat the failure of a subtest."""
    above = {name.rpartition(" > ")[0] for name in failing}
    return [finding(name, message=message) for name, message in failing.items() if name not in above]


def _yaml_message(lines: list[str]) -> str:
    """Return the message of a TAP diagnostic block, which may be a YAML block scalar of several lines."""
    for index, line in enumerate(lines):
        if line.strip() == "..." or _TAP.match(line):
            break
        match = _YAML.match(line)
        if match and not _BLOCK.match(match[2]):
            return match[2]
        if match:
            return _joined(_inner(lines[index + 1 :], len(match[1])))
    return ""


def _inner(lines: list[str], indent: int) -> Iterator[str]:
    """Yield the lines of a block: those that are indented more than its key, and empty ones."""
    for line in lines:
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            return
        yield line


def _joined(lines: Iterable[str]) -> str:
    """Join the lines of a message up to its stack."""
    told = (line.strip() for line in takewhile(lambda line: not _STACK.match(line), lines) if line.strip())
    return " ".join(islice(told, MAX_BLOCK))


def parse_junit(output: Output) -> CheckReport | None:
    """Parse JUnit XML; return ``None`` if there is none."""
    cases = list(junit_cases(output.text))
    if not cases or "<testsuite" not in output.text:
        return None
    passed: list[tuple[str, str]] = []
    skipped: list[tuple[str, str]] = []
    failing: list[FailedCheck] = []
    for case in cases:
        name, suite = case.values.get("name", ""), case.values.get("classname", "")
        if not case.verdict:
            passed.append((name, suite))
        elif case.verdict == "skipped":
            skipped.append((name, suite))
        else:
            path, line = case.values.get("file", ""), case.values.get("line", "")
            failing.append(finding(name, suite=suite, path=path, line=line, message=case.message))
    root = "testsuites" if "<testsuites" in output.text else "testsuite"
    whole = output.text.rfind(f"</{root}>") > output.text.rfind("<testcase")
    unique, shown = distinct(failing), whole and not output.cut
    bad = unique or not (whole or output.cut)
    return CheckReport(
        runner="junit",
        outcome="failed" if bad else "passed" if passed and shown else "unknown",
        failing=unique,
        passed=names(passed),
        skipped=names(skipped),
        collected=len(cases),
        ran=len(passed) + len(failing),
        failed=len(failing),
        complete=output.selected.whole and shown,
        names_all_failing=shown,
        names_all_passed=shown,
        error=error_of(unique),
    )


class JUnitCase(NamedTuple):
    """A test in JUnit XML.

    Attributes:
        values: The attributes of its element.
        verdict: ``failure``, ``error``, ``skipped``, or empty if it passed.
        kind: The verdict's type.
        message: The verdict's message.
    """

    values: dict[str, str]
    verdict: str = ""
    kind: str = ""
    message: str = ""


def junit_cases(text: str) -> Iterator[JUnitCase]:
    """Yield the tests in JUnit XML, which may be cut."""
    cases = list(_CASE.finditer(text))
    for case, following in zip_longest(cases, cases[1:]):
        values = attributes(case[1])
        end = following.start() if following else len(text)
        verdict = None if case[1].endswith("/") else _VERDICT.search(text, case.end(), end)
        if verdict is None:
            yield JUnitCase(values)
        else:
            told = attributes(verdict[2])
            yield JUnitCase(
                values, verdict[1], told.get("type", ""), told.get("message") or unescape(verdict[3])
            )


def attributes(text: str) -> dict[str, str]:
    """Return the attributes of an XML element."""
    return {match[1]: unescape(match[2] or match[3] or "") for match in _ATTRIBUTE.finditer(text)}


def parse_node(output: Output) -> CheckReport | None:
    """Parse the ``spec`` reporter of ``node --test``; return ``None`` if there is none."""
    counts = {match[1]: int(match[2][:9]) for line in output.lines if (match := _NODE_TOTAL.match(line))}
    if "pass" not in counts or "fail" not in counts:
        return None
    lines, found = output.lines, list[FailedCheck]()
    # The failures are listed at the end; each has its place above its name and its error below.
    titles = (index for index, line in enumerate(lines) if line.strip() == "✖ failing tests:")
    for index in range(next(titles, len(lines)) + 1, len(lines)):
        if match := _NODE_FAIL.match(lines[index]):
            place = re.match(r"^test at (\S+?):(\d+):\d+$", lines[index - 1])
            message = _joined(takewhile(_INSIDE.match, lines[index + 1 : index + 40]))
            path, number = (place[1], place[2]) if place else ("", "")
            found.append(finding(match[2], path=path, line=number, message=message))
    failing = distinct(found)
    failed = counts["fail"] + counts.get("cancelled", 0)
    tests = [match for match in map(_NODE_TEST.match, lines) if match]
    passed = [match[2] for match in tests if match[1] == "✔" and not match[3]]
    whole = counts["pass"] <= len(passed) <= counts["pass"] + counts.get("suites", 0) and not output.cut
    return CheckReport(
        runner="node",
        outcome="failed" if failed else ("passed" if counts["pass"] else "unknown"),
        failing=failing if failed else (),
        passed=names([(name, "") for name in passed]) if whole else (),
        skipped=names([(match[2], "") for match in tests if match[1] == "﹣" and whole]),
        expected=names([(match[2], "") for match in tests if match[3] == "TODO" and whole]),
        names_all_passed=whole,
        tally=RunTally(counts["pass"] + failed, counts.get("skipped", 0), counts.get("todo", 0)),
        ran=counts["pass"] + failed,
        failed=failed,
        complete=output.selected.whole,
        names_all_failing=len(failing) >= failed,
        error=error_of(failing if failed else ()),
    )


def parse_rspec(output: Output) -> CheckReport | None:
    """Parse the output of RSpec; return ``None`` if there is none."""
    total = next((match for line in reversed(output.lines) if (match := _RSPEC.match(line))), None)
    if total is None:
        return None
    ran, failed, outside = int(total[1][:9]), int(total[2][:9]), int((total[4] or "0")[:9])
    messages: dict[str, str] = {}
    failing = []
    for index, line in enumerate(output.lines):
        if match := _RSPEC_TITLE.match(line):
            near = (text.strip() for text in output.lines[index + 1 : index + 8])
            messages[match[1]] = next((text for text in near if text and text[:14] != "Failure/Error:"), "")
        elif match := _RSPEC_FAIL.match(line):
            path, number, name = (match[1], match[2], match[3]) if match[1] else (match[4], "", match[6])
            failing.append(finding(name, path=path, line=number, message=messages.get(name, "")))
    unique = distinct(failing) if failed or outside else ()
    return CheckReport(
        runner="rspec",
        outcome="failed" if failed or outside else ("passed" if ran else "unknown"),
        failing=unique,
        tally=RunTally(ran - int((total[3] or "0")[:9]), int((total[3] or "0")[:9])),
        ran=ran,
        failed=failed,
        complete=output.selected.whole and ran > 0 and not outside,
        names_all_failing=len(unique) >= failed and not outside,
        error=error_of(unique),
    )


def parse_maven(output: Output) -> CheckReport | None:
    """Parse the output of Surefire and Failsafe; return ``None`` if there is none."""
    totals, suites = [], list[str]()
    found, suite = list[FailedCheck](), ""
    for index, line in enumerate(output.lines):
        if match := _SUREFIRE.match(line):
            counts = [int(number[:9]) for number in match.groups()[:4]]
            suite = match["suite"] or suite
            if not match["own"]:
                totals.append(counts)
            elif not sum(counts[1:]):
                suites.append(suite)
        elif "<<< " in line and (match := _SUREFIRE_FAIL.match(line)):
            found.append(_surefire_failure(output.lines[index + 1 : index + 60], match[1], suite))
        elif match := _SUREFIRE_CLASS.match(line):
            suite = match[1]
    if not totals and not found:
        return None
    ran, failures, errors, skipped = (sum(counts[place] for counts in totals) for place in range(4))
    tally = RunTally(ran - skipped, skipped) if totals else None
    return _of_build("maven", output, found, failures + errors, tally, tuple(dict.fromkeys(suites)))


def _surefire_failure(lines: list[str], name: str, suite: str) -> FailedCheck:
    if name.endswith(f"({suite})"):
        name = name.removesuffix(f"({suite})")
    own = name if not suite or f"{name}.".startswith(f"{suite}.") else f"{suite}.{name}"
    path = number = ""
    for line in lines:
        if not line.strip():
            break
        if (match := _JAVA_FRAME.match(line)) and suite and match[1].startswith(suite):  # not a library
            path, number = match[2], match[3]
            break
    return finding(own, suite=suite, path=path, line=number, message=next(iter(lines), ""))


def parse_gradle(output: Output) -> CheckReport | None:
    """Parse the failures and counts that Gradle prints for tests; return ``None`` if there are none.

    Of tests that pass, it only prints that their task was executed.
    """
    if any(line.startswith("BUILD SUCCESSFUL") for line in output.lines):
        executed = any(map(_GRADLE_RAN.match, output.lines))
        whole = output.selected.whole
        return CheckReport(runner="gradle", outcome="passed", complete=whole) if executed else None
    found = []
    for index, line in enumerate(output.lines):
        if line.endswith(" FAILED") and not line.startswith(">") and (match := _GRADLE_FAIL.match(line)):
            first, _, rest = match[1].partition(" > ")
            suite = first.rpartition(".")[2]
            place = _GRADLE_PLACE.match((output.lines[index + 1 : index + 2] or [""])[0])
            message, path, number = place.groups() if place else ("", "", "")
            found.append(
                finding(f"{suite} > {rest}", suite=suite, path=path or "", line=number or 0, message=message)
            )
    totals = [match for line in output.lines if (match := _GRADLE_TOTAL.match(line))]
    if not totals and not (found and any("BUILD " in line for line in output.lines)):
        return None
    ran, failed, skipped = (sum(int((t[place] or "0")[:9]) for t in totals) for place in (1, 2, 3))
    return _of_build("gradle", output, found, failed, RunTally(ran - skipped, skipped) if totals else None)


def parse_dotnet(output: Output) -> CheckReport | None:
    """Parse the output of ``dotnet test``; return ``None`` if there is none."""
    lines, found = output.lines, list[FailedCheck]()
    for index, line in enumerate(lines):
        if match := _DOTNET_FAIL.match(line):
            below = lines[index + 1 : index + 40]
            told = takewhile(lambda line: line.strip() != "Stack Trace:", below)
            message = _joined(line for line in told if line.strip() != "Error Message:")
            place = next(filter(None, map(_DOTNET_PLACE.match, below)), None)
            path, number = (place[1], place[2]) if place else ("", "")
            found.append(finding(match[1], path=path, line=number, message=message))
        elif match := _DOTNET_LOGGED.match(line):
            found.append(finding(match[1], message=match[2]))
    totals = [match for line in lines if (match := _DOTNET_TOTAL.match(line))]
    if not totals:
        return None
    summary = [match for match in totals if match["failed2"]][-1:]  # it repeats the counts of each project
    number = "2" if summary else ""
    failed, passed, skipped = (
        sum(int(match[f"{word}{number}"][:9]) for match in summary or totals)
        for word in ("failed", "passed", "skipped")
    )
    return _of_build("dotnet", output, found, failed, RunTally(passed + failed, skipped))


def parse_phpunit(output: Output) -> CheckReport | None:
    """Parse the output of PHPUnit; return ``None`` if there is none."""
    total = next((match for line in reversed(output.lines) if (match := _PHPUNIT_TOTAL.match(line))), None)
    if total is None:
        return None
    found, section = list[FailedCheck](), ""
    for index, line in enumerate(output.lines):
        if match := _PHPUNIT_SECTION.match(line):
            section = match[1]
        elif section.startswith(("error", "failure")) and (match := _PHPUNIT_TITLE.match(line)):
            below = output.lines[index + 1 : index + 40]
            message = _joined(takewhile(lambda line: line.strip() and not _PHPUNIT_PLACE.match(line), below))
            place = next(filter(None, map(_PHPUNIT_PLACE.match, below)), None)
            path, number = (place[1], place[2]) if place else ("", "")
            suite = match[1].partition("::")[0]
            found.append(finding(match[1], suite=suite, path=path, line=number, message=message))
    counts = {word: int(number[:9]) for word, number in _PHPUNIT_COUNT.findall(total[3] or "")}
    ran, skipped = int((total[1] or total[2])[:9]), counts.get("Skipped", 0) + counts.get("Incomplete", 0)
    failed = counts.get("Errors", 0) + counts.get("Failures", 0)
    return _of_build("phpunit", output, found, failed, RunTally(ran - skipped, skipped))


def _of_build(
    runner: str,
    output: Output,
    found: list[FailedCheck],
    failed: int,
    tally: RunTally | None,
    suites: tuple[str, ...] = (),
) -> CheckReport:
    unique, ran = distinct(found), tally.ran if tally else 0
    return CheckReport(
        runner=runner,
        outcome="failed" if failed or unique else "passed" if ran else "unknown",
        failing=unique,
        suites=suites,
        tally=tally,
        ran=ran if tally else None,
        failed=failed if tally else None,
        complete=output.selected.whole and ran > 0,
        names_all_failing=tally is not None and len(unique) >= failed,
        error=error_of(unique),
    )
