"""Decide what a check run shows about an open issue: that its check passes, or why it merely no longer fails.

A test that no longer fails passes only if a run shows it. The evidence, best first:

- The run names the test: as passed, skipped, or expected to fail.
- The run names every test, covers the place of this one, and does not name it: it was removed.
- The run names no test, but its counts compare with those of the failing run of the same command. If it has
  fewer tests or more skipped ones, nothing is shown.
- There are no counts to compare: nothing is shown if the test's own file, or a test configuration, changed
  since the failure.

A finding of a linter or compiler has no such states: a run over its file that does not report it solves it.
"""

import re
from fnmatch import fnmatchcase
from hashlib import blake2b
from pathlib import PurePosixPath

import msgspec

from agentx.synthesis.checks.check_report import CheckName, CheckReport, compared, printable_name
from agentx.synthesis.checks.command import Selection
from agentx.synthesis.memory.items import HotIssueDetail, RunTally, Silenced

TEST_RUNNERS = frozenset(
    {
        *("pytest", "unittest", "django", "go test", "cargo", "jest", "vitest", "mocha", "rspec", "node"),
        *("tap", "junit", "maven", "gradle", "dotnet", "phpunit"),
    }
)
_ALIKE = ({"tap", "node"},)
"""Names of the same tests in different formats."""

_REST = "and more"
_CONFIGURATIONS = (
    *("conftest.py", "pytest.ini", "pytest.toml", ".pytest.ini", ".pytest.toml", "tox.ini", "setup.cfg"),
    *("pyproject.toml", "load_tests.py", "__init__.py", "Cargo.toml", "nextest.toml", "package.json"),
    *("jest.config.*", "vitest.config.*", "vite.config.*", "karma.conf*", ".mocharc*", "phpunit.xml*"),
    *("pom.xml", "build.gradle", "build.gradle.kts", ".rspec", "spec_helper.rb", "*.runsettings"),
    *("Makefile", "makefile", "justfile"),
)
"""Files that may decide which tests run."""

_TEST_FILE = re.compile(r"(?:^|[/_.-])(?:[Tt]ests?|[Ss]pecs?)(?:[/_.-]|$)|(?:Tests?|Spec)\.\w+$")


class CheckRun(msgspec.Struct, frozen=True):
    """A parsed check run."""

    seq: int
    command: str
    selected: Selection
    reports: tuple[CheckReport, ...]
    passed: bool
    text: str
    tool: str
    configured: bool
    """Whether it ran the tool's configured command without narrowing."""


class Verdict(msgspec.Struct, frozen=True):
    """What a run shows about an issue that does not fail in it.

    Attributes:
        ended: ``passed`` or ``gone`` if it ends the issue.
        silenced: Otherwise, why its check no longer fails.
        note: How the run differs from the one before, in words.
    """

    ended: str = ""
    silenced: Silenced = ""
    note: str = ""


_PASSED = Verdict(ended="passed")


def rest_name(command: str) -> str:
    """Return the check's name in the issue that counts the failures beyond the maximum."""
    return printable_name(f"{command} {_REST}")


def counts_key(runner: str, command: str) -> str:
    """Return the name under which the counts of a command's tests are kept: a digest, which shows no text."""
    return blake2b(f"{runner} {command}".encode(), digest_size=8).hexdigest()


def comparable(report: CheckReport, selected: Selection) -> RunTally | None:
    """Return the counts of a run if those of the next run of the same command should not be lower.

    They need not be for a run that was cut or broken off, or one of those tests only that failed before.
    """
    ended = report.outcome == "passed" or report.warning or (report.failing and report.names_all_failing)
    return report.tally if ended and report.runner in TEST_RUNNERS and not selected.narrowed else None


def is_same_runner(one: str, other: str) -> bool:
    """Return whether two runners name the same tests."""
    return one == other or any({one, other} <= names for names in _ALIKE)


def judge(run: CheckRun, detail: HotIssueDetail, *, overflowing: bool) -> Verdict | None:
    """Return what a run shows about an issue that does not fail in it; ``None`` if nothing.

    Args:
        run: The run.
        detail: The issue.
        overflowing: Whether the run had more failures than it opened issues.
    """
    if detail.silenced == "fewer":  # it is about counts, see HotIssues
        return None
    same = [report for report in run.reports if is_same_runner(report.runner, detail.runner)]
    if detail.check in {printable_name(detail.command), rest_name(detail.command)}:
        return _of_whole_run(run, detail, same, overflowing=overflowing)
    for report in same:
        if verdict := _of_report(run, report, detail):
            return verdict
    if same or not run.passed or run.command != detail.command:
        return None
    return Verdict(silenced="unproved") if detail.runner in TEST_RUNNERS else _PASSED


def _of_whole_run(
    run: CheckRun, detail: HotIssueDetail, reports: list[CheckReport], *, overflowing: bool
) -> Verdict | None:
    """Judge an issue about a whole run.

    A full pass ends it, also a pass of the tool's current command. So does a run that names all its failures.
    """
    if (
        run.passed
        and run.command == detail.command
        and any(report.outcome == "passed" for report in run.reports)
    ):
        return _compare(reports[0], detail) if reports else _PASSED
    if any(report.outcome == "passed" and report.complete for report in reports) and detail.runner != "exit":
        return _PASSED
    if run.passed and run.configured and run.tool == detail.tool:
        return Verdict(ended="gone")
    named = [report for report in run.reports if report.failing and report.names_all_failing]
    return Verdict(ended="gone") if run.command == detail.command and named and not overflowing else None


def _of_report(run: CheckRun, report: CheckReport, detail: HotIssueDetail) -> Verdict | None:
    if named := _named(report, detail):
        return named
    if not report.names_all_failing:
        return None
    unbuilt = (
        detail.check.startswith((f"{detail.suite} [", f"{detail.suite}: ")) or detail.check == detail.suite
    )
    if unbuilt and detail.suite in report.suites:  # what could not be built or loaded was run
        return _PASSED
    if detail.runner not in TEST_RUNNERS:
        covered = (
            report.complete or _covers(run.selected, detail) or (run.passed and run.command == detail.command)
        )
        return _PASSED if covered or detail.suite in report.suites else None
    if report.names_all_passed and not detail.shared:
        same = run.command == detail.command and not run.selected.narrowed
        whole = report.complete or same or _covers(run.selected, detail)
        deselected = report.tally is not None and report.tally.deselected > 0
        missing: Silenced = "deselected" if deselected else "removed"
        return Verdict(silenced=missing, note=_note(run, report, detail)) if whole else None
    if not _may_have_run(run, report, detail):
        return None
    if run.command == detail.command and report.tally and detail.tally:
        return _compare(report, detail)
    if report.suites and report.complete and detail.suite and detail.suite not in report.suites:
        return Verdict(silenced="removed")
    if report.tally and not report.tally.ran:
        return Verdict(silenced=_difference(report.tally, RunTally()))
    return Verdict(silenced="unproved") if detail.touched else _PASSED


def _note(run: CheckRun, report: CheckReport, detail: HotIssueDetail) -> str:
    comparable = run.command == detail.command and report.tally and detail.tally
    return compared(report.tally, detail.tally) if comparable and report.tally and detail.tally else ""


def _compare(report: CheckReport, detail: HotIssueDetail) -> Verdict:
    """Judge by the counts of a run, and those of the run of the same command in which the check failed."""
    now, before = report.tally, detail.tally
    if now is None or before is None:
        return _PASSED
    return (
        Verdict(silenced=_difference(now, before), note=compared(now, before))
        if compared(now, before)
        else _PASSED
    )


def _difference(now: RunTally, before: RunTally) -> Silenced:
    if now.skipped > before.skipped:
        return "skipped"
    if now.expected > before.expected:
        return "expected to fail"
    return "deselected" if now.deselected > before.deselected else "removed"


def _named(report: CheckReport, detail: HotIssueDetail) -> Verdict | None:
    """Judge by the names of the tests; ``None`` if the report does not name this one."""
    if any(_is(name, detail) for name in report.unexpected):
        return Verdict(silenced="unexpected pass")
    if any(_is(name, detail) for name in report.expected):
        return Verdict(silenced="expected to fail")
    if any(_is(name, detail) or _encloses(name, detail) for name in report.skipped):
        return Verdict(silenced="skipped")
    suites = {*(name.suite for name in report.passed), *(name.suite for name in report.failing)}
    passes = any(_is(name, detail) for name in report.passed) and not detail.shared
    return _PASSED if passes or _is_loaded(suites, detail) else None


def _is(name: CheckName, detail: HotIssueDetail) -> bool:
    """Return whether a name is that of an issue: the same check, or the test of its subtest."""
    same_suite = not name.suite or f"/{name.suite}".endswith(f"/{detail.suite}") or not detail.suite
    return same_suite and (
        name.check == detail.check or detail.check.startswith((f"{name.check} (", f"{name.check} ["))
    )


def _encloses(skip: CheckName, detail: HotIssueDetail) -> bool:
    """Return whether a skipped name is the file, the class or the parent of an issue's test."""
    if skip.check == detail.suite or detail.check.startswith(
        tuple(f"{skip.check}{separator}" for separator in ("/", " > ", " › ", "::"))
    ):
        return True
    name, _, place = skip.check.partition(" (")
    outer = place.rstrip(")") if name.startswith("setUp") else name
    return bool(outer) and "." in f"{detail.suite}." and f"{detail.suite}.".startswith(f"{outer}.")


def _is_loaded(suites: set[str], detail: HotIssueDetail) -> bool:
    """Return whether a file that could not be loaded ran: one of its tests is named."""
    if "unittest.loader" in detail.check:
        module = detail.check.partition(" (")[0]
        return any(f"{suite}.".startswith(f"{module}.") for suite in suites)
    return detail.check == detail.suite and detail.suite in suites


def _may_have_run(run: CheckRun, report: CheckReport, detail: HotIssueDetail) -> bool:
    """Return whether a run that names no test may have run the one of an issue."""
    if run.selected.names:
        clean = report.outcome == "passed" and not report.skipped
        return run.command == detail.command or (_selects(run.selected, detail) and clean)
    same = (run.passed or report.warning) and run.command == detail.command
    return bool(same) or report.complete or detail.suite in report.suites or _covers(run.selected, detail)


def _covers(selected: Selection, detail: HotIssueDetail) -> bool:
    """Return whether a run's selection contains every test at the place of an issue."""
    if selected.names or selected.narrowed or not detail.suite:
        return False
    return any(_under(detail.suite, path) for path in selected.paths)


def _selects(selected: Selection, detail: HotIssueDetail) -> bool:
    """Return whether the names that narrow a run select a check.

    A name may be the whole check, the check without parameters, or one alternative of ``a|b``.
    """
    base = detail.check.partition("[")[0] if "::" in detail.check else detail.check.partition("/")[0]
    for name in selected.names:
        parts = {part.strip("^$() ") for part in name.replace(" or ", "|").split("|")}
        last = {base, detail.check, base.rpartition("::")[2], base.partition(" (")[0]}
        if parts & last:
            return True
    return False


def _under(suite: str, path: str) -> bool:
    """Return whether a suite lies at or under a path of the command.

    Such a path is ``./cli/...``, ``tests/test_a.py`` or ``app.tests``.
    """
    wanted = path.removeprefix("./").removesuffix("...").rstrip("/")
    if not wanted:
        return True
    starts = suite == wanted or suite.startswith((f"{wanted}/", f"{wanted}."))
    return starts or (path.startswith("./") and (suite.endswith(f"/{wanted}") or f"/{wanted}/" in suite))


def concerns(path: str, detail: HotIssueDetail) -> bool:
    """Return whether a change of a file may have taken a test out of its runs.

    >>> detail = HotIssueDetail(runner="pytest", check="tests/test_a.py::test_b", path="tests/test_a.py")
    >>> [concerns(path, detail) for path in ("tests/test_a.py", "pyproject.toml", "app/a.py")]
    [True, True, False]
    """
    if detail.runner not in TEST_RUNNERS:
        return False
    if any(fnmatchcase(PurePosixPath(path).name, name) for name in _CONFIGURATIONS):
        return True
    known = [place for place in (detail.path, detail.suite) if "/" in place or "." in place]
    if any(path == place or place.endswith(f"/{path}") or path.endswith(f"/{place}") for place in known):
        return True
    if PurePosixPath(path).stem in detail.suite.split("."):
        return True
    unknown = not known or detail.runner == "go test"
    return unknown and bool(_TEST_FILE.search(path))
