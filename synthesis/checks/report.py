"""What a run of a check said, in one shape for every runner.

Everything here comes out of the mouth of an untrusted program. So names, paths and messages are made printable and
bounded before they enter a report: no control character, no newline, no invisible character, no endless text.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Literal

import msgspec

from agentx.storage.text import one_line
from agentx.synthesis.memory.items import Priority

MAX_NAME = 200
"""Characters of a check's, suite's or path's name."""

MAX_MESSAGE = 400
"""Characters of a finding's message."""

MAX_LINE_DIGITS = 9

MAX_NAMES = 20_000
"""Names of one sort (failing, passed, skipped, suites) that a report holds."""

Outcome = Literal["passed", "failed", "unknown"]


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One check that failed.

    Attributes:
        check: Its name as the runner gives it; for a linter or compiler ``path: rule message``.
        suite: What the check belongs to where the runner tells it apart: a test file, a Go package; else empty.
        path: File that the failure points to, as the runner prints it.
        line: Line in it, from 1; 0 for unknown.
        message: First line of the failure, at most 400 characters.
        priority: ``critical`` where nothing could be collected or built, ``high`` for a failing test or compile
            error, ``normal`` for a lint finding.
    """

    check: str
    suite: str = ""
    path: str = ""
    line: int = 0
    message: str = ""
    priority: Priority = "high"


class CheckName(msgspec.Struct, frozen=True, omit_defaults=True):
    """A check that was seen, by name and by what it belongs to."""

    check: str
    suite: str = ""


class CheckReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one runner said in one run.

    Attributes:
        runner: What ran (``pytest``, ``go test``, ``ruff``, …); ``exit`` where only the exit status is known.
        outcome: ``unknown`` where neither the output nor the exit status tells.
        failing: The checks that failed, in the order in which the runner names them.
        passed: The checks that passed, where the runner names them.
        skipped: The checks that were collected and not run, where the runner names them.
        suites: Suites that ran to their end, whether or not all of their checks passed.
        collected: Checks that the run found.
        ran: Checks that it executed.
        failed: Checks that failed, by the runner's own count.
        complete: Whether this was a full run: nothing in the command or the output narrowed it to a selection, and it
            came to its end.
        names_all_failing: Whether every check that failed is in ``failing``: false for a run that broke off and for an
            output that was cut.
        names_all_passed: Whether every check that passed is in ``passed``.
        error: The first line that tells what went wrong, bounded; empty where nothing did.
    """

    runner: str
    outcome: Outcome
    failing: tuple[Finding, ...] = ()
    passed: tuple[CheckName, ...] = ()
    skipped: tuple[CheckName, ...] = ()
    suites: tuple[str, ...] = ()
    collected: int | None = None
    ran: int | None = None
    failed: int | None = None
    complete: bool = False
    names_all_failing: bool = True
    names_all_passed: bool = False
    error: str = ""


def printable(text: str, limit: int) -> str:
    r"""Make a stranger's text one bounded line of visible characters.

    >>> printable("a\x1b[31m\nb\u202e", 10)
    'a[31m b'
    """
    head = one_line(text[: 4 * limit])
    return head if len(head) <= limit else head[: limit - 1].rstrip() + "…"


def printable_name(text: str) -> str:
    """Make a name printable; one that is too long is cut and keeps apart from others by a digest of the whole.

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
) -> Finding:
    """Make a finding of what a runner printed: everything is made printable and bounded."""
    digits = str(line)
    number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= MAX_LINE_DIGITS else 0
    return Finding(
        check=printable_name(check),
        suite=printable_name(suite),
        path=printable_name(path),
        line=number,
        message=printable(message, MAX_MESSAGE),
        priority=priority,
    )


def error_of(failing: Sequence[Finding], otherwise: str = "") -> str:
    """What a run failed by, in one line: its first failing check with its message, or else what is said."""
    return printable(f"{failing[0].check}: {failing[0].message}" if failing else otherwise, MAX_MESSAGE)


def distinct(findings: list[Finding]) -> tuple[Finding, ...]:
    """The findings without those without a name and without repeats of the same check, bounded."""
    seen: dict[tuple[str, str], Finding] = {}
    for item in findings:
        if item.check:
            known = seen.setdefault((item.suite, item.check), item)
            if not known.message and item.message:
                seen[item.suite, item.check] = item
    return tuple(seen.values())[:MAX_NAMES]


def names(pairs: list[tuple[str, str]]) -> tuple[CheckName, ...]:
    """Make checks of ``(name, suite)`` pairs, without repeats, bounded."""
    unique = dict.fromkeys(pairs[: 2 * MAX_NAMES])
    return tuple(CheckName(printable_name(name), printable_name(suite)) for name, suite in unique)[:MAX_NAMES]


def suite_names(suites: list[str]) -> tuple[str, ...]:
    """Make suites printable, without repeats, bounded."""
    return tuple(printable_name(suite) for suite in dict.fromkeys(suites))[:MAX_NAMES]
