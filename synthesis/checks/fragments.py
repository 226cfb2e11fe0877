"""Parser for incomplete runs: the summary was cut off by a pipe, or the run was killed before it.

A runner's parser needs the lines with which the runner announces itself and summarises. Without them, a line
that only a failing run prints still shows that the run failed, and often what failed. This module is a table
of such lines. None of them shows that a run passed.
"""

import re

import msgspec

from agentx.synthesis.checks.check_report import CheckReport, FailedCheck, distinct, error_of, finding
from agentx.synthesis.checks.output import Output
from agentx.synthesis.shell.command_line import steps


class Fragment(msgspec.Struct, frozen=True):
    """A line that only a failing run of a runner prints.

    Attributes:
        runner: The runner.
        line: Pattern of the line, with groups ``check``, ``suite`` and ``message`` if it names them.
        programs: If not empty, the command must contain one of these, since others print such lines too.
    """

    runner: str
    line: re.Pattern[str]
    programs: tuple[str, ...] = ()


FRAGMENTS: tuple[Fragment, ...] = (
    Fragment(
        "pytest",
        re.compile(r"^(?:FAILED|ERROR) (?P<check>(?P<suite>\S+\.py)(?:::\S.*?)?)(?: - (?P<message>.*))?$"),
    ),
    Fragment(
        "pytest", re.compile(r"^(?P<check>(?P<suite>\S+\.py)::\S.*?) (?:FAILED|ERROR) *(?:\[ *\d+%\])?$")
    ),
    Fragment(
        "pytest", re.compile(r"^\[gw\d+\] \[ *\d+%\] (?:FAILED|ERROR) (?P<check>(?P<suite>\S+\.py)::\S.*)$")
    ),
    Fragment("pytest", re.compile(r"^=+ (?:FAILURES|ERRORS) =+$")),
    Fragment("pytest", re.compile(r"^\S+\.py [.sxX,-]*[FEu][.FEsxXu,-]* *(?:\[ *\d+%\])?$")),
    Fragment("pytest", re.compile(r"^[.sxX]*[FE][.FEsxX]* *(?:\[ *\d+%\])?$"), ("pytest", "py.test")),
    Fragment("unittest", re.compile(r"^(?:FAIL|ERROR): (?P<check>[A-Za-z_]\w* \((?P<suite>[\w.]+)\).*)$")),
    Fragment(
        "unittest",
        re.compile(
            r"^FAILED \((?:(?:failures|errors|unexpected successes|skipped|expected failures)=\d+(?:, )?)+\)$"
        ),
    ),
    Fragment(
        "unittest", re.compile(r"^[.sxu]*[FE][.FEsxu]*$"), ("unittest", "manage.py", "runtests.py", "trial")
    ),
    Fragment("jest", re.compile(r"^ ?FAIL +(?P<check>(?P<suite>\S+\.[cm]?[jt]sx?))(?: \([\d.]+ m?s\))?$")),
    Fragment("jest", re.compile(r"^ {0,2}●  ?(?!Console$)(?P<message>\S.*)$"), ("jest",)),
    Fragment("vitest", re.compile(r"^ *FAIL  (?P<suite>\S+\.\w+) > (?P<check>\S.*)$")),
    Fragment("vitest", re.compile(r"^ ❯ \S+\.\w+ \(\d+ tests? \| \d+ failed\b.*$")),
    Fragment("mocha", re.compile(r"^ +[1-9]\d* failing$")),
    Fragment("mocha", re.compile(r"^ {2,}\d+\) \S.*$"), ("mocha",)),
    Fragment("cargo", re.compile(r"^test (?P<check>\S.*?) \.\.\. FAILED$")),
    Fragment("cargo", re.compile(r"^test result: FAILED\.")),
    Fragment("rspec", re.compile(r"^rspec (?P<suite>\./\S+?):\d+ # (?P<check>\S.*)$")),
    Fragment("rspec", re.compile(r"^(?:Failed examples:|[.*]*F[.F*]*)$"), ("rspec",)),
    Fragment(
        "tap",
        re.compile(
            r"^ *not ok \d+(?: -)? (?P<check>(?!.*# (?:TODO|SKIP)\b)\S.*?)(?: # time=\S+)?$", re.IGNORECASE
        ),
    ),
    Fragment("node", re.compile(r"^✖ (?P<check>\S.*?) \([\d.]+ms\)$")),
    Fragment("node", re.compile(r"^(?:✖ failing tests:|ℹ (?:fail|cancelled) [1-9]\d*)$")),
    Fragment(
        "gradle",
        re.compile(r"^(?:\w+\.)*(?P<check>(?P<suite>\w+) > \S.*) FAILED$"),
        ("gradle", "gradlew"),
    ),
    Fragment("dotnet", re.compile(r"^  Failed (?P<check>\S.*?) \[.{1,30}\]$"), ("dotnet",)),
    Fragment("phpunit", re.compile(r"^(?:FAILURES|ERRORS)!$"), ("phpunit",)),
    Fragment("junit", re.compile(r"^\s*<(?:failure|error)\b")),
)


def parse_fragments(output: Output) -> CheckReport | None:
    """Parse an incomplete failing run; return ``None`` if no line matches or the exit status is 0."""
    if output.status == 0:
        return None
    programs = {step.program for step in steps(output.command)}
    seen: dict[str, list[FailedCheck]] = {}
    for line in output.lines:
        for row in FRAGMENTS if line else ():
            match = row.line.match(line)
            if match and (not row.programs or programs & set(row.programs)):
                seen.setdefault(row.runner, []).append(_finding(match))
    if not seen:
        return None
    runner, found = next(iter(seen.items()))
    failing = distinct(found)
    message = next((item.message for item in found if item.message), "the run failed; its summary is missing")
    return CheckReport(
        runner=runner,
        outcome="failed",
        failing=failing,
        names_all_failing=False,
        error=error_of(failing, message),
    )


def _finding(match: re.Match[str]) -> FailedCheck:
    groups = match.groupdict()
    check, suite = groups.get("check") or "", groups.get("suite") or ""
    return finding(
        check,
        suite=suite,
        path=suite if "/" in suite or suite.endswith(".py") else "",
        message=groups.get("message") or "",
    )
