"""Parsers for linters, type checkers and compilers, which print one or a few lines per finding.

Their outputs differ in one pattern, so they are rows of a table. A finding is named ``path: rule message``.
The line number is left out because it changes with every edit above it.
"""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec

from agentx.synthesis.checks.cargo_output import compile_errors
from agentx.synthesis.checks.check_report import CheckReport, FailedCheck, distinct, finding, printable
from agentx.synthesis.checks.output import Output
from agentx.synthesis.memory.items import Priority
from agentx.synthesis.shell.command_line import ProgramCall, steps


class Linter(msgspec.Struct, frozen=True):
    """How one program prints its findings.

    Attributes:
        runner: Its name.
        line: Pattern of a finding, with groups ``path``, ``line``, ``message`` and optionally ``rule``.
        programs: Its names in a command line. They decide between programs with similar output.
        blocks: Reads findings that take several lines each; used if no line matched ``line``.
        failed: Pattern of the summary line after findings; proves that this program ran.
        passed: Pattern of the line that reports success.
        priority: Priority of its findings.
        silent: Whether it prints nothing on success, so that exit status 0 means that it passed.
        certain: Whether the pattern of a finding is unmistakable by itself.
    """

    runner: str
    line: re.Pattern[str] | None
    programs: tuple[str, ...]
    failed: re.Pattern[str] | None = None
    passed: re.Pattern[str] | None = None
    priority: Priority = "normal"
    certain: bool = False
    silent: bool = False
    blocks: Callable[[list[str]], list[FailedCheck]] | None = None


_RUFF_RULE = re.compile(
    r"^(?P<rule>[A-Z]{1,5}\d{1,4}|invalid-syntax)(?: \[\*\])?:? (?:\[\*\] )?(?P<message>\S.*)$"
)
_ARROW = re.compile(r"^ *--> (?P<path>\S.*?):(?P<line>\d{1,7}):\d+$")
_ESLINT = re.compile(
    r"^ +(?P<line>\d{1,7}):\d+ +(?P<level>error|warning) +(?P<message>\S.*?)(?:  +(?P<rule>[@\w][@\w/-]*))?$"
)
_PATH = re.compile(r"^(?:/|\.{0,2}/|[A-Za-z]:\\)?[^\s:][^:\n]{0,300}\.\w{1,6}$")


def _ruff_blocks(lines: list[str]) -> list[FailedCheck]:
    """Read Ruff's full format: the rule on one line, an arrow to the place on the next."""
    found: list[FailedCheck] = []
    for line, following in pairwise(lines):
        arrow = _ARROW.match(following)
        rule = _RUFF_RULE.match(line) if arrow else None
        if arrow and rule:
            found.append(_block(arrow["path"], arrow["line"], f"{rule['rule']} {rule['message']}"))
    return found


def _eslint_blocks(lines: list[str]) -> list[FailedCheck]:
    """Read ESLint's ``stylish`` format: a path, then its findings, indented. Warnings are not findings."""
    found: list[FailedCheck] = []
    path = ""
    for line in lines:
        match = _ESLINT.match(line)
        if match and match["level"] == "error" and path:
            label = " ".join(part for part in (match["rule"], match["message"]) if part)
            found.append(_block(path, match["line"], label))
        elif not line.startswith(" ") and _PATH.match(line):
            path = line
    return found


def _block(path: str, line: str, label: str) -> FailedCheck:
    return finding(f"{path}: {label}", suite=path, path=path, line=line, message=label, priority="normal")


_PREFIX = r"^(?:\[[\w:.-]{1,40}\] )?"
_PLACE = r"(?P<path>[^\s:()\"'][^:()\"']{0,300}?):(?P<line>\d{1,7})"

LINTERS: tuple[Linter, ...] = (
    Linter(
        "mypy",
        re.compile(
            rf"^{_PLACE}(?::\d+)?(?::\d+:\d+)?: error: (?P<message>.*?)(?:  \[(?P<rule>[a-z][a-z0-9-]*)\])?$"
        ),
        ("mypy", "dmypy"),
        re.compile(r"^Found \d+ errors? in \d+ files?"),
        re.compile(r"^Success: no issues found in "),
    ),
    Linter(
        "pyright",
        re.compile(rf"^ *{_PLACE}:\d+ - error: (?P<message>.*?)(?: \((?P<rule>report\w+)\))?$"),
        ("pyright", "basedpyright"),
        re.compile(r"^[1-9]\d* errors?, \d+ warnings?, \d+ informations?"),
        re.compile(r"^0 errors, \d+ warnings?, \d+ informations?"),
    ),
    Linter(
        "tsc",
        re.compile(
            r"^(?P<path>[^\s:()][^:()]{0,300}?)(?:\((?P<line>\d{1,7}),\d+\): |:(?P<line2>\d{1,7}):\d+ - )"
            r"error (?P<rule>TS\d+): (?P<message>.*)$"
        ),
        ("tsc", "vue-tsc"),
        re.compile(r"^Found \d+ errors?(?: in .*)?\.?$"),
        None,
        "high",
        certain=True,
        silent=True,
    ),
    Linter(
        "golangci-lint",
        re.compile(_PREFIX + rf"{_PLACE}(?::\d+)?: (?P<message>.*) \((?P<rule>[a-z][a-z0-9_-]{{1,30}})\)$"),
        ("golangci-lint",),
        re.compile(_PREFIX + r"(?:[1-9]\d* issues:|\* [a-z][\w-]*: \d+)$"),
        re.compile(_PREFIX + r"0 issues\.?$"),
    ),
    Linter(
        "ruff",
        re.compile(
            rf"^{_PLACE}:\d+: (?P<rule>[A-Z]{{1,5}}\d{{1,4}}|invalid-syntax|SyntaxError):? "
            r"(?:\[\*\] )?(?P<message>.*)$"
        ),
        ("ruff",),
        re.compile(
            r"^(?:Found \d+ errors?(?: \(.*\))?\.|Would fix \d+ errors?\.?.*"
            r"|\d+ files? would be reformatted.*|ruff failed)$"
        ),
        re.compile(r"^(?:All checks passed!|\d+ files? already formatted)$"),
        silent=True,
        blocks=_ruff_blocks,
    ),
    Linter(
        "flake8",
        re.compile(rf"^{_PLACE}:\d+: (?P<rule>[A-Z]{{1,3}}\d{{1,4}}) (?P<message>.*)$"),
        ("flake8", "pycodestyle", "pyflakes"),
        silent=True,
    ),
    Linter(
        "pylint",
        re.compile(rf"^{_PLACE}:\d+: (?P<rule>[CRWEF]\d{{4}}): (?P<message>.*)$"),
        ("pylint",),
        re.compile(r"^\*{9,} Module \S+$"),
        re.compile(r"^Your code has been rated at 10\.00/10"),
    ),
    Linter(
        "gcc",
        re.compile(rf"^{_PLACE}(?::\d+)?: (?:fatal )?error: (?P<message>.*)$"),
        ("gcc", "g++", "cc", "c++", "clang", "clang++", "make", "gmake", "ninja", "cmake"),
        re.compile(
            r"^(?:\d+ errors? generated\.|compilation terminated\.|\S*(?:ld|collect2)\S*: .*error.*"
            r"|\S*(?:clang|gcc|g\+\+)\S*: (?:fatal )?error: .*)$"
        ),
        None,
        "high",
        silent=True,
    ),
    Linter(
        "go build",
        re.compile(
            _PREFIX + r"(?:vet: )?(?P<path>[^\s:]{1,300}\.go):(?P<line>\d{1,7})(?::\d+)?: (?P<message>.*)$"
        ),
        ("go",),
        re.compile(_PREFIX + r"# \S+/\S+(?: \[\S+\])?$"),
        None,
        "high",
        silent=True,
    ),
    Linter(
        "shellcheck",
        re.compile(rf"^{_PLACE}:\d+: (?:error|warning|note): (?P<message>.*) \[(?P<rule>SC\d+)\]$"),
        ("shellcheck",),
        certain=True,
        silent=True,
    ),
    Linter(
        "eslint",
        None,
        ("eslint",),
        re.compile(r"^(?:✖ \d+ problems? \([1-9]\d* errors?, .*|ESLint found too many warnings .*)$"),
        re.compile(r"^✖ \d+ problems? \(0 errors, \d+ warnings?\)$"),
        silent=True,
        blocks=_eslint_blocks,
    ),
    Linter(
        "rustc",
        None,
        ("rustc", "cargo"),
        None,
        # A finished build of tests does not mean that they passed. But if a test ran, all was built.
        re.compile(r"^(?: +Finished (?!`?test\b)[`\[\w].* target\(s\) in |  Executable |test result: )"),
        "high",
        certain=True,
        silent=True,
        blocks=lambda lines: [item for item in compile_errors(lines) if item.path],
    ),
    Linter(
        "rustfmt",
        re.compile(r"^Diff in (?P<path>\S.{0,300}?)(?::| at line )(?P<line>\d{1,7}):(?P<message>)$"),
        ("rustfmt",),
        certain=True,
    ),
    Linter(
        "annotation",
        re.compile(
            r"^::error [^:]*?\bfile=(?P<path>[^,:]{1,300})(?:[^:]*?,line=(?P<line>\d{1,7}))?[^:]*::"
            r"(?P<message>.*)$"
        ),
        (),
        certain=True,
    ),
    Linter(
        "check_document",
        re.compile(r"^(?P<path>[^:]{1,300}):(?P<line>\d{1,7}): (?P<message>\S.*) \[(?P<rule>\w+)\]$"),
        ("check_document",),
    ),
)

_BUILDERS = {"make", "gmake", "ninja", "cmake"}
_BUILDING = {"go": {"build", "vet", "install"}, "cargo": {"build", "b", "check", "c", "clippy"}}
"""Subcommands that build without running anything."""

_GENERIC = re.compile(rf"^{_PLACE}(?::\d+)?: (?P<message>\S.*?)(?: \[(?P<rule>[\w./-]{{1,60}})\])?$")
_VARIABLE = re.compile(r"(?<![\w.])\d+(?:-\d+)?(?![\w.])")


def parse_diagnostics(output: Output, linters: Sequence[Linter] = LINTERS) -> list[CheckReport]:
    """Return the reports of all linters, type checkers and compilers found, in the order of the table.

    A line belongs to the first row that matches it, so that two programs with similar output do not both
    claim it.
    """
    ran = steps(output.command)
    programs = {step.program for step in ran if _compiles(step)}
    reports: list[CheckReport] = []
    claimed: set[int] = set()
    for linter in linters:
        named = bool(programs & set(linter.programs))
        report = _read(linter, output, claimed, named=named)
        silent = linter.silent and output.silent_success and programs & (set(linter.programs) - _BUILDERS)
        if report is None and silent:
            report = _passed(linter.runner, output)
        if report is not None:
            reports.append(report)
    return reports


def _compiles(step: ProgramCall) -> bool:
    """Return whether a step may run a compiler or a linter.

    For a program that also runs tests, only a subcommand that builds without running tests counts.
    """
    wanted = _BUILDING.get(step.program)
    builds_test = (step.program, step.arguments[:2]) == ("go", ("test", "-c"))
    return wanted is None or builds_test or bool(wanted & set(step.arguments[:1]))


def _read(linter: Linter, output: Output, claimed: set[int], *, named: bool) -> CheckReport | None:
    summed = linter.failed is not None and any(linter.failed.match(line) for line in output.lines if line)
    clean = linter.passed is not None and any(linter.passed.match(line) for line in output.lines if line)
    found: list[FailedCheck] = []
    lines: list[int] = []
    for index, line in enumerate(output.lines if linter.line else ()):
        if linter.line and ":" in line and index not in claimed and (match := linter.line.match(line)):
            found.append(_finding(match, linter.priority))
            lines.append(index)
    if linter.blocks and not found:
        found = linter.blocks(output.lines)
    spoke = (found and (named or summed or linter.certain)) or (named and summed) or clean
    if not spoke:
        return None
    claimed.update(lines)
    if found or summed:
        return _failed(linter.runner, output, found)
    return _passed(linter.runner, output) if clean else None


def _finding(match: re.Match[str], priority: Priority) -> FailedCheck:
    groups = match.groupdict()
    path = groups["path"].removeprefix("./")
    label = " ".join(part for part in (groups.get("rule"), groups["message"]) if part)
    return finding(
        f"{path}: {_VARIABLE.sub('#', label)}",
        suite=path,
        path=path,
        line=groups["line"] or groups.get("line2") or 0,
        message=label,
        priority=priority,
    )


def _passed(runner: str, output: Output) -> CheckReport:
    whole = output.selected.whole and not output.status
    return CheckReport(
        runner=runner, outcome="passed", complete=whole, suites=output.selected.paths, failed=0
    )


def _failed(runner: str, output: Output, found: list[FailedCheck]) -> CheckReport:
    unique = distinct(found)
    return CheckReport(
        runner=runner,
        outcome="failed",
        failing=unique,
        failed=len(unique) or None,
        complete=output.selected.whole,
        names_all_failing=bool(unique) and not output.cut,
        error=printable(unique[0].check, 400) if unique else "",
    )


def parse_generic(output: Output) -> CheckReport | None:
    """Read ``path:line: message [rule]``, the form that nearly every other checker can print.

    A line without a rule in brackets counts only if the exit status reports a failure.
    """
    found: list[FailedCheck] = []
    lines = (line for line in output.lines if ":" in line) if output.status != 0 else ()
    for match in filter(None, map(_GENERIC.match, lines)):
        doubtful = output.status is None and match["message"].startswith(("warning:", "note:"))
        is_path = "." in match["path"] or "/" in match["path"]
        if is_path and not doubtful and (match["rule"] or output.status):
            error = match["message"].startswith(("error:", "fatal error:"))
            found.append(_finding(match, "high" if error else "normal"))
    if not found:
        return None
    return _failed(next((step.program for step in steps(output.command)), "") or "check", output, found)
