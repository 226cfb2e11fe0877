"""Parsers for TAP, JUnit XML, node's own runner and RSpec.

JUnit XML is read with patterns, not with an XML parser. So a truncated report still names the failures, and
no entity is ever expanded.
"""

import re
from html import unescape

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
_YAML = re.compile(r"^\s+(?:message|error): ['\"]?(.*?)['\"]?$")

_CASE = re.compile(r"<testcase\b([^<>]{0,4000}?)(/?)>")
_ATTRIBUTE = re.compile(r"([\w:-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_VERDICT = re.compile(r"<(failure|error|skipped)\b([^<>]{0,4000})>([^<]{0,400})")

_NODE_TOTAL = re.compile(r"^ℹ (tests|pass|fail|cancelled|skipped) (\d+)$")
_NODE_FAIL = re.compile(r"^( *)✖ (\S.*?)(?: \([\d.]+ms\))?$")

_RSPEC = re.compile(
    r"^(\d+) examples?, (\d+) failures?(?:, (\d+) pending)?(?:, (\d+) errors? occurred outside of examples)?$"
)
_RSPEC_FAIL = re.compile(r"^rspec (\./\S+?):(\d+|'[^']*') # (.+)$|^rspec (\./\S+?)(\[[\d:]+\]) # (.+)$")
_RSPEC_TITLE = re.compile(r"^  \d+\) (\S.*)$")


def parse_tap(output: Output) -> CheckReport | None:
    """Parse the Test Anything Protocol (12 to 14, with subtests); return ``None`` if there is none."""
    plan = next((int(match[1][:9]) for line in output.lines if (match := _PLAN.match(line))), None)
    if plan is None and not any(line.startswith("TAP version ") for line in output.lines):
        return None
    passed, skipped, failing = _tap_points(output.lines)
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
        skipped=names([(name, "") for name in skipped]),
        ran=len(passed) + len(unique),
        failed=len(unique),
        complete=output.selected.whole and not short and bail is None and bool(passed),
        names_all_failing=not short and bail is None and not output.cut and bool(unique or not told),
        names_all_passed=not output.cut,
        error=error_of(unique, bail or ("a test run shorter than its plan" if short else "")),
    )


def _tap_points(lines: list[str]) -> tuple[list[str], list[str], list[FailedCheck]]:
    """Return the test points as passed, skipped and failing, named with the names of their parents.

    A parent that only repeats the failure of its subtests is left out.
    """
    passed: list[str] = []
    skipped: list[str] = []
    failing: dict[str, str] = {}
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
            if match[5]:
                skipped.append(name)
            elif not match[2]:
                passed.append(name)
            else:
                near = (found[1] for after in lines[index + 1 : index + 12] if (found := _YAML.match(after)))
                failing.setdefault(name, next(near, ""))
    above = {name.rpartition(" > ")[0] for name in failing}
    return (
        passed,
        skipped,
        [finding(name, message=message) for name, message in failing.items() if name not in above],
    )


def parse_junit(output: Output) -> CheckReport | None:
    """Parse JUnit XML; return ``None`` if there is none."""
    cases = list(_CASE.finditer(output.text))
    if not cases or "<testsuite" not in output.text:
        return None
    passed: list[tuple[str, str]] = []
    skipped: list[tuple[str, str]] = []
    failing: list[FailedCheck] = []
    for case, following in zip(cases, [*cases[1:], None], strict=True):
        values = _attributes(case[1])
        name, suite = values.get("name", ""), values.get("classname", "")
        end = following.start() if following else case.end() + 20_000
        verdict = None if case[2] else _VERDICT.search(output.text, case.end(), end)
        if verdict is None:
            passed.append((name, suite))
        elif verdict[1] == "skipped":
            skipped.append((name, suite))
        else:
            message = _attributes(verdict[2]).get("message") or unescape(verdict[3])
            path, line = values.get("file", ""), values.get("line", "")
            failing.append(finding(name, suite=suite, path=path, line=line, message=message))
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


def _attributes(text: str) -> dict[str, str]:
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
            message = next((line.strip() for line in lines[index + 1 : index + 4] if line.strip()), "")
            path, number = (place[1], place[2]) if place else ("", "")
            found.append(finding(match[2], path=path, line=number, message=message))
    failing = distinct(found)
    failed = counts["fail"] + counts.get("cancelled", 0)
    return CheckReport(
        runner="node",
        outcome="failed" if failed else ("passed" if counts["pass"] else "unknown"),
        failing=failing if failed else (),
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
        ran=ran,
        failed=failed,
        complete=output.selected.whole and ran > 0 and not outside,
        names_all_failing=len(unique) >= failed and not outside,
        error=error_of(unique),
    )
