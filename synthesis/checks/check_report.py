"""The report of a check run, one type for all runners.

All content comes from an untrusted program. So names, paths and messages are made printable and bounded
before they enter a report: no control characters, newlines or invisible characters, and limited length.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Literal

import msgspec

from agentx.storage.text import one_line
from agentx.synthesis.memory.items import Priority, RunTally

MAX_NAME = 200
"""Maximum length of the name of a check, suite or path, in characters."""

MAX_MESSAGE = 400
"""Maximum length of a finding's message, in characters."""

MAX_LINE_DIGITS = 9

MAX_NAMES = 20_000
"""Maximum number of names of one sort (failing, passed, skipped, suites) in a report."""

NO_TESTS = "no tests ran"
"""The warning of a run that found nothing to run."""

Outcome = Literal["passed", "failed", "unknown"]


class FailedCheck(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One check that failed.

    Attributes:
        check: Its name as the runner gives it; for a linter or compiler ``path: rule message``.
        suite: The test file, Go package or similar that holds the check, if the runner names it; else empty.
        path: File that the failure points to, as the runner prints it.
        line: Line in the file, from 1; 0 if unknown.
        message: First line of the failure, at most 400 characters.
        priority: ``critical`` if nothing could be collected or built, ``high`` for a failing test or a
            compile error, ``normal`` for a lint finding.
    """

    check: str
    suite: str = ""
    path: str = ""
    line: int = 0
    message: str = ""
    priority: Priority = "high"


class CheckName(msgspec.Struct, frozen=True, omit_defaults=True):
    """The name and the suite of a check that did not fail."""

    check: str
    suite: str = ""


class CheckReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of one runner in one run.

    Attributes:
        runner: The runner (``pytest``, ``go test``, ``ruff``, …); ``exit`` if only the exit status is known.
        outcome: ``unknown`` if neither the output nor the exit status decides.
        failing: The checks that failed, in the runner's order.
        passed: The checks that passed, if the runner names them.
        skipped: The checks that were collected and not run, if the runner names them.
        expected: The checks that failed and are marked as expected to fail, if the runner names them.
        unexpected: The checks that passed although they are marked as expected to fail, if it names them.
        suites: Suites that ran to their end, whether or not all of their checks passed.
        tally: The runner's own counts; ``None`` if it prints none.
        collected: Number of checks that the run found.
        ran: Number of checks that it executed.
        failed: Number of checks that failed, by the runner's own count.
        complete: Whether this was a full run: neither the command nor the output restricted it to a
            selection, and it reached its end.
        names_all_failing: Whether ``failing`` holds every check that failed; false for an interrupted run
            and for a truncated output.
        names_all_passed: Whether ``passed`` holds every check that passed.
        error: The first line that names the failure, bounded; empty if nothing failed.
        warning: Why a run that did not fail shows nothing: no tests ran.
    """

    runner: str
    outcome: Outcome
    failing: tuple[FailedCheck, ...] = ()
    passed: tuple[CheckName, ...] = ()
    skipped: tuple[CheckName, ...] = ()
    expected: tuple[CheckName, ...] = ()
    unexpected: tuple[CheckName, ...] = ()
    suites: tuple[str, ...] = ()
    tally: RunTally | None = None
    collected: int | None = None
    ran: int | None = None
    failed: int | None = None
    complete: bool = False
    names_all_failing: bool = True
    names_all_passed: bool = False
    error: str = ""
    warning: str = ""


def printable(text: str, limit: int) -> str:
    r"""Turn untrusted text into one bounded line of visible characters.

    >>> printable("a\x1b[31m\nb\u202e", 10)
    'a[31m b'
    """
    head = one_line(text[: 4 * limit])
    return head if len(head) <= limit else head[: limit - 1].rstrip() + "…"


def printable_name(text: str) -> str:
    """Make a name printable; a name that is too long is cut and ends in a digest of the whole.

    The digest keeps long names with the same beginning distinct.

    >>> printable_name("tests/test_a.py::test_b[1]")
    'tests/test_a.py::test_b[1]'
    """
    name = printable(text, MAX_NAME)
    if len(name) < MAX_NAME:
        return name
    digest = blake2b(text.encode("utf-8", "replace"), digest_size=4).hexdigest()
    return f"{name[: MAX_NAME - 10].rstrip()}…{digest}"


def finding(
    check: str,
    *,
    suite: str = "",
    path: str = "",
    line: int | str = 0,
    message: str = "",
    priority: Priority = "high",
) -> FailedCheck:
    """Build a finding from what a runner printed, with all texts printable and bounded."""
    digits = str(line)
    number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= MAX_LINE_DIGITS else 0
    return FailedCheck(
        check=printable_name(check),
        suite=printable_name(suite),
        path=printable_name(path),
        line=number,
        message=printable(message, MAX_MESSAGE),
        priority=priority,
    )


def compared(now: RunTally, before: RunTally) -> str:
    """Describe what a run left out that an earlier run of the same command ran; empty for nothing.

    >>> compared(RunTally(ran=40, skipped=1), RunTally(ran=44))
    '41 tests, 3 fewer than before; 1 more skipped'
    """
    parts = []
    if (fewer := before.total - now.total) > 0:
        parts.append(f"{now.total} test{'s' * (now.total != 1)}, {fewer} fewer than before")
    more = {
        "skipped": now.skipped - before.skipped,
        "expected to fail": now.expected - before.expected,
        "deselected": now.deselected - before.deselected,
    }
    parts += [f"{number} more {what}" for what, number in more.items() if number > 0]
    return "; ".join(parts)


def critical(item: FailedCheck) -> FailedCheck:
    """Return a finding with the highest priority: a whole file or suite that could not run."""
    return msgspec.structs.replace(item, priority="critical")


def error_of(failing: Sequence[FailedCheck], otherwise: str = "") -> str:
    """Return why a run failed, in one line: the first failing check with its message, or ``otherwise``."""
    return printable(f"{failing[0].check}: {failing[0].message}" if failing else otherwise, MAX_MESSAGE)


def distinct(findings: list[FailedCheck]) -> tuple[FailedCheck, ...]:
    """Remove findings without a name and repeats of the same check; bound the number."""
    seen: dict[tuple[str, str], FailedCheck] = {}
    for item in findings:
        if item.check:
            known = seen.setdefault((item.suite, item.check), item)
            if not known.message and item.message:
                seen[item.suite, item.check] = item
    return tuple(seen.values())[:MAX_NAMES]


def names(pairs: list[tuple[str, str]]) -> tuple[CheckName, ...]:
    """Build check names from ``(name, suite)`` pairs, without duplicates, bounded."""
    unique = dict.fromkeys(pairs[: 2 * MAX_NAMES])
    return tuple(CheckName(printable_name(name), printable_name(suite)) for name, suite in unique)[:MAX_NAMES]


def suite_names(suites: list[str]) -> tuple[str, ...]:
    """Make suite names printable, without duplicates, bounded."""
    return tuple(printable_name(suite) for suite in dict.fromkeys(suites))[:MAX_NAMES]
