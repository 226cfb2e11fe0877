"""The reports that test runners write on request: JUnit XML, JSON of jest and vitest, TRX of dotnet.

Such a report names each test with its result. The printed output still decides whether the run came to its
end and what it left out, so the two are merged, and a report whose counts differ from the printed ones is
ignored: it may be that of another run in the same command.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import zip_longest

import msgspec

from agentx.synthesis.checks.check_report import (
    MAX_NAMES,
    CheckReport,
    FailedCheck,
    distinct,
    error_of,
    finding,
    names,
)
from agentx.synthesis.checks.formats import JUnitCase, attributes, junit_cases
from agentx.synthesis.memory.items import RunTally

_CDATA = re.compile(r"<!\[CDATA\[.*?\]\]>", re.DOTALL)
_CLASS = re.compile(r"\.(?=[A-Z])")
_TRX_TEST = re.compile(r"<UnitTestResult\b((?:[^<>\"']|\"[^<\"]*\"|'[^<']*')*)>")
_TRX_MESSAGE = re.compile(r"<Message>([^<]{0,2000})")


class _Tests(msgspec.Struct):
    """The tests of a report by their result, each as (name, suite)."""

    passed: list[tuple[str, str]] = msgspec.field(default_factory=list)
    skipped: list[tuple[str, str]] = msgspec.field(default_factory=list)
    expected: list[tuple[str, str]] = msgspec.field(default_factory=list)
    failing: list[FailedCheck] = msgspec.field(default_factory=list)
    inverted: int = 0
    """Number of the expected failures that the runner counts as passed."""

    def add(self, other: "_Tests") -> None:
        self.passed += other.passed
        self.skipped += other.skipped
        self.expected += other.expected
        self.failing += other.failing
        self.inverted += other.inverted

    def report(self, runner: str) -> CheckReport:
        failing = distinct(self.failing)
        failed = {(item.check, item.suite) for item in failing}
        ran = len(self.passed) + len(self.failing) + self.inverted
        return CheckReport(
            runner=runner,
            outcome="failed" if failing else "passed" if self.passed else "unknown",
            failing=failing,
            passed=names([pair for pair in self.passed if pair not in failed]),
            skipped=names(self.skipped),
            expected=names(self.expected),
            tally=RunTally(ran, len(self.skipped), len(self.expected) - self.inverted),
            ran=ran,
            failed=len(self.failing),
            names_all_passed=len(self.passed) < MAX_NAMES,
            error=error_of(failing),
        )


class _JsonTest(msgspec.Struct, rename="camel"):
    title: str
    status: str
    failing: bool = False
    ancestor_titles: list[str] = []
    failure_messages: list[str] = []


class _JsonFile(msgspec.Struct, rename="camel"):
    name: str
    assertion_results: list[_JsonTest] = []


class _JsonReport(msgspec.Struct, rename="camel"):
    test_results: list[_JsonFile]


def recorded_form(reports: Iterable[tuple[str, str]]) -> str:
    """Return runners' own reports as the record keeps them; empty if there is none that can be read.

    Args:
        reports: The name of each runner, with the text of its report.
    """
    found: dict[str, _Tests] = {}
    for runner, text in reports:
        read = _READERS.get(runner)
        tests = read(text) if read else None
        if tests is not None:
            found.setdefault(runner, _Tests()).add(tests)
    own = [tests.report(runner) for runner, tests in found.items()]
    return msgspec.json.encode(own).decode() if own else ""


def with_reports(parsed: tuple[CheckReport, ...], recorded: str) -> tuple[CheckReport, ...]:
    """Add to what was read from an output the names of the tests in the runners' own reports.

    Args:
        parsed: The reports that were read from the output.
        recorded: The runners' own reports, in their recorded form; empty for none.
    """
    if not recorded:
        return parsed
    try:
        own = {report.runner: report for report in msgspec.json.decode(recorded, type=list[CheckReport])}
    except msgspec.MsgspecError:
        return parsed
    merged = tuple(_merged(report, own.pop(report.runner, None)) for report in parsed)
    return (*merged, *own.values())


def _merged(printed: CheckReport, own: CheckReport | None) -> CheckReport:
    if own is None or own.tally is None:
        return printed
    counts = printed.tally
    if counts is not None and msgspec.structs.replace(counts, deselected=0) != own.tally:
        return printed
    whole = printed.names_all_failing
    return msgspec.structs.replace(
        printed,
        failing=printed.failing if whole else distinct([*printed.failing, *own.failing]),
        passed=own.passed,
        skipped=own.skipped,
        expected=own.expected,
        names_all_passed=own.names_all_passed and whole,
    )


# --- the formats --------------------------------------------------------------------------------------------


def _read_pytest(text: str) -> _Tests | None:
    return _read_junit(text, _pytest_name)


def _pytest_name(values: Mapping[str, str]) -> tuple[str, str]:
    """Return the node ID and the file of a test; the file that pytest names may be that of a base class."""
    place, name, path = values.get("classname", ""), values.get("name", ""), values.get("file", "")
    if not place:  # a file that was skipped or could not be collected
        path = f"{name.replace('.', '/')}.py"
        return path, path
    module = path.removesuffix(".py").replace("/", ".")
    if f"{place}.".startswith(f"{module}."):
        classes = place[len(module) + 1 :].split(".")
    else:
        head, *classes = _CLASS.split(place)
        path = f"{head.replace('.', '/')}.py"
    return "::".join(filter(None, (path, *classes, name))), path


def _read_surefire(text: str) -> _Tests | None:
    def named(values: Mapping[str, str]) -> tuple[str, str]:
        suite = values.get("classname", "")
        return f"{suite}.{values.get('name', '')}", suite

    return _read_junit(text, named)


def _read_gradle(text: str) -> _Tests | None:
    def named(values: Mapping[str, str]) -> tuple[str, str]:
        suite, *inner = values.get("classname", "").rpartition(".")[2].split("$")
        return " > ".join([suite, *inner, values.get("name", "")]), suite

    return _read_junit(text, named)


def _read_phpunit(text: str) -> _Tests | None:
    def named(values: Mapping[str, str]) -> tuple[str, str]:
        suite = values.get("class", "")
        return f"{suite}::{values.get('name', '')}", suite

    return _read_junit(text, named)


def _read_junit(text: str, named: Callable[[Mapping[str, str]], tuple[str, str]]) -> _Tests | None:
    """Read JUnit XML; ``None`` if it is not complete."""
    if not text.rstrip().endswith(("</testsuites>", "</testsuite>")):
        return None
    tests = _Tests()
    for case in junit_cases(_CDATA.sub("", text)):  # a test may have printed anything
        name, suite = named(case.values)
        if not case.verdict:
            tests.passed.append((name, suite))
        elif case.verdict != "skipped":
            tests.failing.append(_failed(case, name, suite))
        elif case.kind == "pytest.xfail":
            tests.expected.append((name, suite))
        else:
            tests.skipped.append((name, suite))
    return tests


def _failed(case: JUnitCase, name: str, suite: str) -> FailedCheck:
    path, line = case.values.get("file", ""), case.values.get("line", "")
    return finding(name, suite=suite, path=path, line=line, message=case.message)


def _read_jest(text: str) -> _Tests | None:
    return _read_json(text, " › ", root="./")  # as jest prints the name of a file in the root


def _read_vitest(text: str) -> _Tests | None:
    return _read_json(text, " > ")


def _read_json(text: str, separator: str, root: str = "") -> _Tests | None:
    """Read the JSON report of jest, which vitest writes too; ``None`` if it is not one."""
    try:
        files = msgspec.json.decode(text, type=_JsonReport).test_results
    except msgspec.MsgspecError:
        return None
    tests = _Tests()
    for file in files:
        suite = f"{'' if '/' in file.name else root}{file.name}"
        for test in file.assertion_results:
            pair = separator.join([*test.ancestor_titles, test.title]), suite
            if test.failing and test.status == "passed":
                tests.expected.append(pair)
                tests.inverted += 1
            elif test.status == "passed":
                tests.passed.append(pair)
            elif test.status == "failed":
                message = "".join(test.failure_messages[:1])
                tests.failing.append(finding(pair[0], suite=suite, path=suite, message=message))
            else:
                tests.skipped.append(pair)
    return tests


def _read_trx(text: str) -> _Tests | None:
    """Read the report of ``dotnet test``; ``None`` if it is not complete."""
    if not text.rstrip().endswith("</TestRun>"):
        return None
    tests = _Tests()
    found = list(_TRX_TEST.finditer(text))
    for test, following in zip_longest(found, found[1:]):
        values = attributes(test[1])
        name, outcome = values.get("testName", ""), values.get("outcome", "")
        if outcome == "Passed":
            tests.passed.append((name, ""))
        elif outcome == "NotExecuted":
            tests.skipped.append((name, ""))
        else:
            message = _TRX_MESSAGE.search(text, test.end(), following.start() if following else len(text))
            tests.failing.append(finding(name, message=message[1] if message else ""))
    return tests


_READERS: dict[str, Callable[[str], _Tests | None]] = {
    "pytest": _read_pytest,
    "jest": _read_jest,
    "vitest": _read_vitest,
    "maven": _read_surefire,
    "gradle": _read_gradle,
    "dotnet": _read_trx,
    "phpunit": _read_phpunit,
}
"""Readers by runner."""
