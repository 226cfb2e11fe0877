"""Parser for ``cargo test`` and nextest, and for the compiler errors if the build failed."""

import re

from agentx.synthesis.checks.check_report import (
    CheckReport,
    FailedCheck,
    distinct,
    error_of,
    finding,
    names,
    printable,
    suite_names,
)
from agentx.synthesis.checks.output import Output
from agentx.synthesis.memory.items import Priority, RunTally

_PANICS = " - should panic"
"""Part of a test's name, so that a test that is marked so later is another one."""

_TEST = re.compile(r"^test (\S.*?) \.\.\. (ok|FAILED|ignored\b.*|bench:.*)$")
_NEXTEST = re.compile(
    r"^ +(PASS|FAIL|SKIP|TIMEOUT|SIGABRT|SIGSEGV) \[ *[\d.]+s\] (?:\( *\d+/\d+\) )?(\S+) (\S.*)$"
)
_RESULT = re.compile(
    r"^test result: (ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored; \d+ measured; (\d+) filtered out"
)
_NEXTEST_RESULT = re.compile(
    r"^ +Summary \[ *[\d.]+s\] (\d+)(?:/\d+)? tests? run: (\d+) passed(?:.*?, (\d+) failed)?"
)
_SKIPPED = re.compile(r", (\d+) skipped$")
_SUITE = re.compile(r"^ +(?:Running (?:unittests )?(\S+)|Doc-tests (\S+))")
_SECTION = re.compile(r"^---- (\S.*?) (?:stdout|stderr) ----$")
_LISTED = re.compile(r"^ {4}(\S.*)$")
_PANIC = re.compile(r"^thread '.{0,200}?'(?: \(\d+\))? panicked at (?:'(.*)', )?(\S+?):(\d+)(?::\d+)?:?$")
_UNBUILT = re.compile(r"^error: could not compile `([^`]{1,200})`(?: \((.{1,200}?)\))?")
_DIAGNOSTIC = re.compile(r"^error(?:\[(E\d+)\])?: (.+)$")
_ARROW = re.compile(r"^ *--> (\S.*?):(\d+):(\d+)$")


def parse_cargo(output: Output) -> CheckReport | None:
    """Parse the output of cargo; return ``None`` if there is none."""
    lines = output.lines
    results = [match for line in lines if (match := _RESULT.match(line) or _NEXTEST_RESULT.match(line))]
    if results:
        return _tested(output, results)
    if not any(_UNBUILT.match(line) for line in lines):
        return None
    testing = " test" in output.command or "nextest" in output.command
    failing = distinct(compile_errors(lines, "critical" if testing else "high"))
    return CheckReport(
        runner="rustc",
        outcome="failed",
        failing=failing,
        names_all_failing=False,
        error=printable(failing[0].check if failing else "could not compile", 400),
    )


def compile_errors(lines: list[str], priority: Priority = "high") -> list[FailedCheck]:
    """Return the errors of rustc; each is a message, then an arrow to its place."""
    errors: list[FailedCheck] = []
    for index, line in enumerate(lines):
        match = _DIAGNOSTIC.match(line)
        ends = ("test failed", "aborting due", "process didn't")
        if not match or _UNBUILT.match(line) or match[2].startswith(ends):
            continue
        near = lines[index + 1 : index + 6]
        arrow = next((found for following in near if (found := _ARROW.match(following))), None)
        path, number = (arrow[1], arrow[2]) if arrow else ("", 0)
        label = " ".join(part for part in (match[1] or "", match[2]) if part)
        check = f"{path}: {label}" if path else label
        errors.append(finding(check, suite=path, path=path, line=number, message=label, priority=priority))
    return errors


def _tested(output: Output, results: list[re.Match[str]]) -> CheckReport:
    verdicts, suites = _verdicts(output.lines)
    explained = _sections(output.lines)
    failing: list[FailedCheck] = []
    for status, name, suite in verdicts:
        if status in {"FAILED", "FAIL", "TIMEOUT", "SIGABRT", "SIGSEGV"}:
            message, path, line = explained.get(name.removesuffix(_PANICS), ("", "", ""))
            failing.append(finding(name, suite=suite, path=path, line=line, message=message))
    told = {item.check.removesuffix(_PANICS) for item in failing}
    for name in dict.fromkeys([*explained, *_listed(output.lines)]):
        if name not in told:
            message, path, line = explained.get(name, ("", "", ""))
            failing.append(finding(name, path=path, line=line, message=message))
    nextest = "test result" not in results[0][0]
    failed = sum(int((match[3] or "0")[:9]) for match in results)
    passed = sum(int(match[2][:9]) for match in results)
    filtered = not nextest and any(int(match[5][:9]) for match in results)
    unique, skips = distinct(failing) if failed else (), ("ignored", "SKIP")
    return CheckReport(
        runner="cargo",
        outcome="failed" if failed or output.status else ("passed" if passed else "unknown"),
        failing=unique,
        passed=names([(name, suite) for status, name, suite in verdicts if status in {"ok", "PASS"}]),
        skipped=names([(name, suite) for status, name, suite in verdicts if status.startswith(skips)]),
        expected=names(
            [(name.removesuffix(_PANICS), suite) for _, name, suite in verdicts if _PANICS in name]
        ),
        suites=suite_names(suites),
        tally=_tally(results, passed + failed, nextest=nextest),
        ran=passed + failed,
        failed=failed,
        # Not complete after a failure: cargo stops at the first target that fails.
        complete=output.selected.whole and not filtered and not failed,
        names_all_failing=len(unique) >= failed and not output.cut,
        names_all_passed=sum(status in {"ok", "PASS"} for status, _, _ in verdicts) >= passed > 0,
        error=error_of(unique),
    )


def _tally(results: list[re.Match[str]], ran: int, *, nextest: bool) -> RunTally:
    if nextest:
        found = _SKIPPED.search(results[-1].string)
        return RunTally(ran=ran, skipped=int(found[1][:9]) if found else 0)
    ignored, filtered = (sum(int(match[group][:9]) for match in results) for group in (4, 5))
    return RunTally(ran=ran, skipped=ignored, deselected=filtered)


def _verdicts(lines: list[str]) -> tuple[list[tuple[str, str, str]], list[str]]:
    suite, verdicts, suites = "", [], []
    for line in lines:
        if match := _TEST.match(line):
            verdicts.append((match[2], match[1], suite))
        elif line.startswith(" ") and (match := _NEXTEST.match(line)):
            verdicts.append((match[1], match[3], match[2]))
        elif line.startswith(" ") and (match := _SUITE.match(line)):
            suite = match[1] or match[2]
        elif suite and line.startswith("test result:"):
            suites.append(suite)
    return verdicts, suites


def _listed(lines: list[str]) -> list[str]:
    """Return the names under ``failures:``, at the end of a target's tests."""
    found: list[str] = []
    listing = False
    for line in lines:
        listing = line == "failures:" or (listing and (not line or line.startswith("    ")))
        if listing and (match := _LISTED.match(line)):
            found.append(match[1])
    return found


def _sections(lines: list[str]) -> dict[str, tuple[str, str, str]]:
    """Return the message, path and line of each failed test's panic."""
    found: dict[str, tuple[str, str, str]] = {}
    title = ""
    for index, line in enumerate(lines):
        if line.startswith("---- ") and (match := _SECTION.match(line)):
            title = match[1]
            found.setdefault(title, ("", "", ""))
        elif title and not found[title][0] and line.startswith("thread '") and (match := _PANIC.match(line)):
            following = lines[index + 1] if index + 1 < len(lines) else ""
            found[title] = (match[1] or following, match[2], match[3])
    return found
