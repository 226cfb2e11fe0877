"""The table of parsers, and :func:`parse_output`, which selects among them.

A new runner needs one function and one row: see ``docs/check-parsers.md``.
"""

import re
from collections.abc import Callable

import msgspec

from agentx.synthesis.checks.cargo_output import parse_cargo
from agentx.synthesis.checks.check_report import NO_TESTS, CheckReport, Outcome, printable
from agentx.synthesis.checks.command import normal_form
from agentx.synthesis.checks.diagnostics import parse_diagnostics, parse_generic
from agentx.synthesis.checks.formats import (
    parse_dotnet,
    parse_gradle,
    parse_junit,
    parse_maven,
    parse_node,
    parse_phpunit,
    parse_rspec,
    parse_tap,
)
from agentx.synthesis.checks.fragments import parse_fragments
from agentx.synthesis.checks.go_output import parse_go
from agentx.synthesis.checks.javascript_output import parse_jest, parse_mocha, parse_vitest
from agentx.synthesis.checks.output import Output, read_output
from agentx.synthesis.checks.pytest_output import parse_pytest
from agentx.synthesis.checks.runner_reports import with_reports
from agentx.synthesis.checks.unittest_output import parse_unittest
from agentx.synthesis.shell.command_line import steps


class Parser(msgspec.Struct, frozen=True):
    """A row of the table.

    Attributes:
        name: The runner.
        hints: Every output of the runner contains one of these; without a hint, the parser is not called.
        parse: Returns the report, or ``None`` if the output is not from this runner.
    """

    name: str
    hints: tuple[str, ...]
    parse: Callable[[Output], CheckReport | None]


PARSERS: tuple[Parser, ...] = (
    Parser("junit", ("<testsuite",), parse_junit),
    Parser(
        "pytest", (" in ", "test session starts", "conftest '", "ERROR: ", ": error: ", "%]"), parse_pytest
    ),
    Parser(
        "django and unittest",
        ("Ran ", "Testing against Django", "Found ", "test database", " ... "),
        parse_unittest,
    ),
    Parser("go test", ("--- ", "\t", "FAIL", "=== RUN", '"Action"', "ok "), parse_go),
    Parser("cargo", ("test result: ", "could not compile", "tests run: "), parse_cargo),
    Parser("jest", ("Tests: ", "Test Suites: "), parse_jest),
    Parser("vitest", (" Tests ", " Test Files "), parse_vitest),
    Parser("mocha", (" passing",), parse_mocha),
    Parser("rspec", (" example",), parse_rspec),
    Parser("node", ("ℹ pass ",), parse_node),
    Parser("maven", ("Tests run: ",), parse_maven),
    Parser("gradle", (" FAILED", " completed, ", "BUILD SUCCESSFUL"), parse_gradle),
    Parser("dotnet", ("! ", "Test summary: "), parse_dotnet),
    Parser("phpunit", ("Assertions: ", " assertion"), parse_phpunit),
    Parser("tap", ("1..", "TAP version "), parse_tap),
)
"""Test runners. Linters and compilers are rows of :data:`agentx.synthesis.checks.diagnostics.LINTERS`."""

_SUMS_UP_LAST = frozenset({"pytest", "unittest", "django"})
"""Runners whose last line gives the result of the whole run."""

_SUMS_UP = _SUMS_UP_LAST | {"jest", "vitest", "rspec", "go test"}
"""Runners whose last lines give the result of the whole run."""

_ECHOES: dict[str, frozenset[str]] = {
    "tap": frozenset({"node"}),
    "unittest": frozenset({"pytest", "go test", "cargo"}),
    "junit": frozenset({"pytest", "unittest", "django", "go test", "cargo", "jest", "vitest", "mocha"}),
}
"""Formats that a test may print itself: ignored if the output also contains one of these runners."""

# Messages by which a shell, a task runner or an interpreter reports a failed program. They are used where
# the exit status is unknown.
_STOPPED = (
    r"make(?:\[\d+\])?: \*\*\* .*(?:Error \d+|Stop\.|Killed|Terminated|Segmentation fault)"
    r"|npm (?:ERR!|error) |ERR_PNPM_|\s?ELIFECYCLE\b"
    r"|error Command failed |mise ERROR |.{0,60}ERROR task failed$|error: Recipe |task: Failed to run task "
    r"|(?:##\[error\])?(?:Error: )?(?:Process completed|.{0,60}\bexit(?:ing|ed)?) with "
    r"(?:exit )?(?:code|status) [1-9]\d*\b"
    r"|error: test failed|error: \d+ targets? failed"
    r"|FAIL Required test coverage |ERROR: Coverage for |Coverage failure: "
    r"|Jest: .*(?:threshold|Coverage)"
)
"""Messages that mean a failure even if a runner reports that its tests passed."""

_TASK_FAILED = re.compile(rf"^(?:{_STOPPED})")
_FAILURE = re.compile(
    rf"^(?:{_STOPPED}|make(?:\[\d+\])?: \*\*\* "
    r"|(?:\w*sh|\(eval\))(?::| ).{0,200}"
    r"(?:command not found|[Nn]o such file or directory|[Pp]ermission denied)"
    r"|.{0,100}: command not found$|fatal: |Segmentation fault|Killed$"
    r"|error(?:\[\w+\])?: |Error: |ERROR:? |panic: "
    r"|[Ee]xit (?:code|status) [1-9]\d*$|(?:\w+\.)*\w*(?:Error|Exception): "
    r"|\[ERROR\] |[\w.+-]{1,40}: (?:fatal )?error: "
    r"|\s?Exception during run: |Oops! Something went wrong!|error TS\d+: "
    r"|go: (?!downloading |finding |extracting |found |added |upgraded |warning)|pattern \S+: directory "
    r"|.{0,100}(?:build failed|BUILD FAILED|BUILD FAILURE|FAILURE: Build failed|Build FAILED))"
)
_NO_TESTS = re.compile(
    r"^ ?(?:(?:Error: )?No tests? (?:files? )?found(?:, exiting with code|: )|No tests executed!"
    r"|No test is available in |error: no tests to run"
    r"|\[ERROR\] .*No tests (?:matching pattern .* )?were executed)"
)
"""What jest, vitest, mocha, PHPUnit, dotnet, nextest and Surefire print, which fail if they find no tests."""

_SOUNDS_BAD = re.compile(r"[Ff]ail|FAIL|[Ee]rror|ERROR|would be")
_NOT_RUNNABLE = re.compile(
    r"(?:command not found|No module named|[Cc]annot find module|[Nn]o such file or directory)"
)
_TIMED_OUT = re.compile(r"\btim(?:ed|e) ?-?out\b|\btime limit\b", re.IGNORECASE)
TIMEOUT_STATUS = 124


def parse_reports(text: str, *, command: str = "", exit_code: int | None = None) -> tuple[CheckReport, ...]:
    """Return a report for each runner in an output; one command line may run several runners.

    If no runner is recognised, the exit status decides, and the report's runner is ``exit``.

    Args:
        text: Output of the command: any length, any content.
        command: The command line; shows which checks it selects and whether a pipe hides the exit status.
        exit_code: The exit status, if known.
    """
    output = read_output(text, command, exit_code)
    read = [
        report
        for row in PARSERS
        if (row.name in output.command or any(hint in output.text for hint in row.hints))
        and (report := row.parse(output)) is not None
    ]
    runners = {report.runner for report in read}
    kept = [report for report in read if not (_ECHOES.get(report.runner, frozenset()) & runners)]
    reports = [report for report in kept if report.outcome != "unknown"] or kept
    tested = bool(reports)
    reports += [
        report
        for report in parse_diagnostics(output)
        if not (tested and _belongs_to_tests(report, output))
        and report.runner not in {known.runner for known in reports}
    ]
    reports = [_warned(_doubted(report, output), output) for report in reports]
    if not any(report.outcome != "unknown" for report in reports):
        reports = _optional(parse_fragments(output)) or reports
    if not reports:
        reports = _optional(parse_generic(output))
    if not any(report.outcome == "failed" or report.warning for report in reports):
        reports += _optional(_by_status(output, reports))
    return tuple(_explained(report, output) for report in reports)


def parse_output(
    text: str, *, command: str = "", exit_code: int | None = None, recorded: str = ""
) -> CheckReport:
    r"""Return one report for a check run; the reports of several runners are merged.

    ``recorded`` holds the runners' own reports, from :mod:`agentx.synthesis.checks.runner_reports`.

    >>> output = "FAILED tests/test_a.py::test_b - assert 1 == 2\n1 failed in 0.12s"
    >>> report = parse_output(output, command="pytest -q | tail -2")
    >>> report.runner, report.outcome, report.failing[0].check
    ('pytest', 'failed', 'tests/test_a.py::test_b')
    """
    reports = with_reports(parse_reports(text, command=command, exit_code=exit_code), recorded)
    if len(reports) == 1:
        return reports[0]
    if not reports:
        return CheckReport(runner="exit", outcome="unknown")
    failed = [report for report in reports if report.outcome == "failed"]
    first = (failed or list(reports))[0]
    known = [report.outcome for report in reports]
    outcome = "failed" if failed else ("passed" if "passed" in known else "unknown")
    return msgspec.structs.replace(
        first,
        outcome=outcome,
        failing=tuple(item for report in reports for item in report.failing),
        passed=tuple(item for report in reports for item in report.passed),
        skipped=tuple(item for report in reports for item in report.skipped),
        suites=tuple(item for report in reports for item in report.suites),
        failed=sum(report.failed or 0 for report in reports),
        complete=all(report.complete for report in reports),
        names_all_failing=all(report.names_all_failing for report in reports),
        names_all_passed=all(report.names_all_passed for report in reports),
    )


def _optional(report: CheckReport | None) -> list[CheckReport]:
    return [] if report is None else [report]


def _belongs_to_tests(report: CheckReport, output: Output) -> bool:
    """Return whether a test printed what looks like a linter's finding.

    That is assumed if nothing in the command names the linter.
    """
    names = " ".join(" ".join((step.program, *step.arguments)) for step in steps(output.command))
    words = {"golangci-lint": "lint", "go build": "build", "gcc": "build", "tsc": "t"}
    if report.runner in {"rustc", "go build"}:
        return report.runner == "go build"
    own = (report.runner, words.get(report.runner, report.runner), "lint")
    return not any(word in names for word in own)


def _doubted(report: CheckReport, output: Output) -> CheckReport:
    """Change a pass to ``unknown`` if the missing part of the output may have reported a failure."""
    certain = _SUMS_UP_LAST if output.end_cut else _SUMS_UP
    missing = output.status is None and (output.gap or output.end_cut) and report.runner not in certain
    if report.outcome != "passed" or not missing:
        return report
    return msgspec.structs.replace(report, outcome="unknown", complete=False)


def _warned(report: CheckReport, output: Output) -> CheckReport:
    """Return the report with a warning if the runner's own counts say that no test ran."""
    none = report.outcome == "unknown" and report.tally is not None and not report.tally.ran
    return msgspec.structs.replace(report, warning=NO_TESTS) if none and not output.cut else report


def _explained(report: CheckReport, output: Output) -> CheckReport:
    """Return the report with an error text, taken from the output if a failed report has none."""
    if report.outcome != "failed" or report.error:
        return report
    line = next((line for line in output.lines if _SOUNDS_BAD.search(line)), "") or _last_line(output)
    return msgspec.structs.replace(report, error=printable(line or f"{report.runner} failed", 400))


def _by_status(output: Output, reports: list[CheckReport]) -> CheckReport | None:
    """Return a report from the exit status; if it is hidden, from the messages of shells and task runners."""
    if output.status != 0 and any(_NO_TESTS.match(line) for line in output.lines):
        return CheckReport(runner="exit", outcome="unknown", warning=NO_TESTS)
    name = printable(normal_form(output.command), 200)
    sign = _TASK_FAILED if reports and output.status is None else _FAILURE
    error = next((line for line in output.lines if sign.match(line)), "")
    if output.status == 0 or (output.status is None and not error):
        outcome: Outcome = "passed" if output.status == 0 else "unknown"
        whole = output.status == 0 and output.selected.whole
        return None if reports else CheckReport(runner="exit", outcome=outcome, complete=whole)
    error = error or _last_line(output)
    return CheckReport(
        runner="exit", outcome="failed", names_all_failing=False, error=printable(error or name, 400)
    )


def timed_out(text: str, exit_code: int | None) -> bool:
    """Return whether a time limit ended a run.

    The sign is status 124 (timeout(1)). Without an exit status, it is a message at either end of the output.
    """
    return exit_code == TIMEOUT_STATUS or (
        exit_code is None and bool(_TIMED_OUT.search(text[-500:]) or _TIMED_OUT.search(text[:500]))
    )


def not_runnable(report: CheckReport, exit_code: int | None) -> bool:
    """Return whether nothing could be run because a program or a module is missing."""
    return report.runner == "exit" and (exit_code in {126, 127} or bool(_NOT_RUNNABLE.search(report.error)))


def _last_line(output: Output) -> str:
    return next((line for line in reversed(output.lines) if line.strip()), "")
