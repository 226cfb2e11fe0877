"""Hot issues: the checks that currently fail, opened and closed by the results of check runs.

One failing check is one issue, identified by its runner, its suite and its name. An issue is closed in these
cases:

- The same check passes (``passed``). The runner names it, or its suite ran completely, or the command's
  selection covers it, or the command that opened it passes.
- A full run of the same runner names what it ran, and the check is not among it (``gone``).
- The issue names no check, only the command of a built-in tool, and that tool passes a full run with another
  command, since the user has configured another one in ``agentx.toml`` (``gone``).
- It is a finding in a document, and the document is deleted or moved (``gone``).

A run that did not execute the check (a narrowed run, a skip, a collection error, a crash, a cut output)
leaves it open. If a run shows no names at all and nothing fails, a check that failed before counts as passed.
It may have been skipped silently, but no reader of that output could know.

A time-out opens an issue with priority ``high``, not ``critical``. It shows that the command did not finish,
not that nothing can be collected or built.
"""

import shlex
from collections.abc import Iterable, Sequence
from typing import ClassVar

import msgspec

from agentx.storage.events.types import ChangesFiles, Event, ToolCallExecuted, changes_of
from agentx.storage.text import shorten
from agentx.synthesis.checks.check_report import CheckReport, FailedCheck, finding, printable, printable_name
from agentx.synthesis.checks.command import Selection, is_check_command, normal_form, selection
from agentx.synthesis.checks.registry import not_runnable, parse_reports, timed_out
from agentx.synthesis.memory.conclusions import Add, Change, Patch
from agentx.synthesis.memory.items import Evidence, HotIssueDetail, Link, MemoryItem, item_id
from agentx.synthesis.state.extractor import ReadBody
from agentx.synthesis.state.state import State

CHECK_TOOLS = frozenset({"run_tests", "run_lint", "run_build", "check_document"})
"""Tools whose every call is a check run; for other tools the command decides."""

_DOCUMENTS = "check_document"
"""The tool that checks one file, and the runner name of its findings."""

_CONFIGURED = CHECK_TOOLS - {_DOCUMENTS}
"""Tools that run the command that the user configured for them."""

MAX_OPENED = 50
"""Maximum number of issues that one run opens; one more issue counts the rest."""

MAX_TEXT_MESSAGE = 200
"""Maximum characters of the failure message in an issue's text; the detail holds up to 400."""

_SCORES = {"critical": 9.0, "high": 7.0, "normal": 4.0}
_REST = "and more"
_Key = tuple[str, str, str]


class _CheckRun(msgspec.Struct, frozen=True):
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


class HotIssues:
    """Opens, renews and closes hot issues (an :class:`agentx.synthesis.state.extractor.Extractor`)."""

    name: ClassVar[str] = "hot_issues"
    version: ClassVar[int] = 3
    reads = (ChangesFiles,)

    def conclude(self, event: Event, state: State, read: ReadBody) -> Sequence[Change]:
        """Return changes to the issues that a check run affects, or whose document an event removes."""
        lost = _lost_documents(event, state)
        if not isinstance(event.data, ToolCallExecuted) or not is_check_run(event.data):
            return lost
        run = _read_run(event, event.data, read)
        if run is None:
            return lost
        issues = [item for item in state.items.values() if isinstance(item.detail, HotIssueDetail)]
        failing = _failing(run)
        opened = list(_opened(run, issues, failing, event.data.output.text))
        closed = {change.id for change in lost}
        known = [item for item in issues if item.status == "active" and item.id not in closed]
        overflowing = len(opened) > MAX_OPENED
        return [*lost, *_closed_or_renewed(run, known, failing, overflowing=overflowing), *opened]


def is_check_run(call: ToolCallExecuted) -> bool:
    """Return whether a tool's result is a check run: not if it was denied, and not if no program ran."""
    if call.status == "DENIED":
        return False
    command = _command(call)
    if call.status == "FAILED" and call.exit_code is None and not (call.output.text and command):
        return False
    return call.tool in CHECK_TOOLS or (bool(command) and is_check_command(command))


def _lost_documents(event: Event, state: State) -> tuple[Patch, ...]:
    """Close findings in documents that an event deleted or moved: nothing can check them again."""
    after = {made.path: made.after for made in changes_of(event)}
    gone = {path for path, blob in after.items() if not blob}
    if not gone:
        return ()
    names = {printable_name(path) for path in gone}
    commands = {
        normal_form(f"{_DOCUMENTS} {shlex.quote(path)}") for path in gone
    }  # Identifies the file if no finding does.
    return tuple(
        _end(item, item.detail, "gone")
        for item in state.active("hot_issue")
        if isinstance(item.detail, HotIssueDetail)
        and _DOCUMENTS in {item.detail.runner, item.detail.tool}
        and (item.detail.path in names if item.detail.path else item.detail.command in commands)
    )


def _end(issue: MemoryItem, detail: HotIssueDetail, how: str) -> Patch:
    return Patch(id=issue.id, status="closed", detail=msgspec.structs.replace(detail, ended=how))


def _command(call: ToolCallExecuted) -> str:
    argument = call.arguments.get("command", "")
    return call.command or (argument if isinstance(argument, str) else "")


def _read_run(event: Event, call: ToolCallExecuted, read: ReadBody) -> _CheckRun | None:
    command = _command(call) or (call.tool if call.tool in CHECK_TOOLS else "")
    text = read(call.output)
    exit_code = call.exit_code
    if exit_code is None and call.status == "SUCCEEDED" and call.tool != "check_document":
        exit_code = 0
    reports = parse_reports(text, command=command, exit_code=exit_code)
    if call.status == "FAILED" and (timed_out(text, call.exit_code) or _killed(call)):
        reports = (*(_broken_off(report) for report in reports), _time_out(command))
    if all(report.outcome == "unknown" for report in reports):
        return None
    failed = any(report.outcome == "failed" for report in reports)
    selected = selection(command) if _command(call) else Selection(whole=True)
    return _CheckRun(
        seq=event.seq,
        command=normal_form(command),
        selected=selected,
        reports=reports,
        passed=not failed,
        text=text,
        tool=call.tool if call.tool in CHECK_TOOLS else "",
        configured=_is_configured(call),
    )


def _is_configured(call: ToolCallExecuted) -> bool:
    """Return whether a built-in tool ran exactly as configured: no other command, nothing selected."""
    own = call.tool in _CONFIGURED and bool(call.command)
    return own and not call.arguments.get("select") and not call.arguments.get("command")


def _killed(call: ToolCallExecuted) -> bool:
    """Return whether a built-in tool killed the program: only then is there no exit status."""
    return call.tool in {*CHECK_TOOLS, "run_command"} and bool(call.command) and call.exit_code is None


def _broken_off(report: CheckReport) -> CheckReport:
    outcome = "failed" if report.failing else "unknown"
    return msgspec.structs.replace(report, outcome=outcome, complete=False, names_all_failing=False)


def _time_out(command: str) -> CheckReport:
    return CheckReport(
        runner="exit",
        outcome="failed",
        failing=(
            finding(
                normal_form(command), message="it was ended before it finished (time limit)", priority="high"
            ),
        ),
        names_all_failing=False,
    )


# --- what fails ---------------------------------------------------------------------------------------------


def _failing(run: _CheckRun) -> dict[_Key, FailedCheck]:
    """Return failing checks by key; a failing run that names none fails as a whole, under its command."""
    found: dict[_Key, FailedCheck] = {}
    named = any(report.failing for report in run.reports)
    for report in run.reports:
        for item in report.failing:
            found[report.runner, item.suite, item.check] = item
        if report.outcome == "failed" and not report.failing and not (named and report.runner == "exit"):
            whole = _whole_run(run, report)
            found[report.runner, "", whole.check] = whole
    return found


def _whole_run(run: _CheckRun, report: CheckReport) -> FailedCheck:
    blocked = not_runnable(report, None) or (report.ran == 0 and report.runner != "exit")
    return finding(run.command, message=report.error, priority="critical" if blocked else "high")


# --- what is open -------------------------------------------------------------------------------------------


def _closed_or_renewed(
    run: _CheckRun, open_issues: list[MemoryItem], failing: dict[_Key, FailedCheck], *, overflowing: bool
) -> Iterable[Change]:
    for issue in open_issues:
        detail = issue.detail
        assert isinstance(detail, HotIssueDetail)
        again = _same(detail, failing)
        if again is not None:
            yield _renewed(run, issue, detail, again)
        elif ended := _ended(run, detail, overflowing=overflowing):
            yield _end(issue, detail, ended)


def _same(detail: HotIssueDetail, failing: dict[_Key, FailedCheck]) -> FailedCheck | None:
    """Return the finding of an open issue; if the output lacks the suite's name, compare the check's name."""
    exact = failing.get((detail.runner, detail.suite, detail.check))
    if exact is not None:
        return exact
    for (runner, suite, check), item in failing.items():
        if runner == detail.runner and check == detail.check and not (suite and detail.suite):
            return item
    return None


def _renewed(run: _CheckRun, issue: MemoryItem, detail: HotIssueDetail, again: FailedCheck) -> Patch:
    message = again.message or detail.message
    renewed = msgspec.structs.replace(
        detail,
        failures=detail.failures + 1,
        last_seq=run.seq,
        message=message,
        path=again.path or detail.path,
        line=again.line or detail.line,
        priority=again.priority,
        suite=again.suite or detail.suite,
        tool=detail.tool or run.tool,
    )
    if message == detail.message and again.priority == detail.priority:
        return Patch(id=issue.id, detail=renewed)
    text = _sentence(renewed)
    return Patch(id=issue.id, detail=renewed, text=text, short=shorten(text), score=_SCORES[again.priority])


def _ended(run: _CheckRun, detail: HotIssueDetail, *, overflowing: bool) -> str:
    """Return how a run ends an issue that does not fail in it: ``passed`` or ``gone``; empty if not."""
    if run.passed and run.command == detail.command and not _skipped(run, detail):
        return "passed"
    same_runner = [report for report in run.reports if report.runner == detail.runner]
    if detail.check in {printable_name(detail.command), _rest_name(detail.command)}:
        return _whole_ended(run, detail, same_runner, overflowing=overflowing)
    return next((how for report in same_runner if (how := _ended_by(report, run.selected, detail))), "")


def _whole_ended(
    run: _CheckRun, detail: HotIssueDetail, reports: list[CheckReport], *, overflowing: bool
) -> str:
    """Return how an issue about a whole run ends.

    A full pass ends it, also a pass of the tool's current command. So does a run that names all its failures.
    """
    full_pass = any(report.outcome == "passed" and report.complete for report in reports)
    if full_pass and detail.runner != "exit":
        return "passed"
    if run.passed and run.configured and run.tool == detail.tool:
        return "gone"
    named = [report for report in run.reports if report.failing and report.names_all_failing]
    return "gone" if run.command == detail.command and named and not overflowing else ""


def _skipped(run: _CheckRun, detail: HotIssueDetail) -> bool:
    return any(skip.check == detail.check for report in run.reports for skip in report.skipped)


def _ended_by(report: CheckReport, selected: Selection, detail: HotIssueDetail) -> str:
    if any(skip.check == detail.check and skip.suite in {"", detail.suite} for skip in report.skipped):
        return ""
    if any(_names(name.check, name.suite, detail) for name in report.passed):
        return "passed"
    if not report.names_all_failing:
        return ""
    unbuilt = (
        detail.check.startswith((f"{detail.suite} [", f"{detail.suite}: ")) or detail.check == detail.suite
    )
    if unbuilt and detail.suite in report.suites:  # what could not be built or loaded was run
        return "passed"
    if report.names_all_passed:
        return "gone" if report.complete else ""
    if selected.names:
        named = _selects(selected, detail) and report.outcome == "passed" and not report.skipped
        return "passed" if named else ""
    return _ended_unnamed(report, selected, detail)


def _ended_unnamed(report: CheckReport, selected: Selection, detail: HotIssueDetail) -> str:
    """Decide by suites and paths, for a run that lists neither the passed checks nor a selection by name."""
    if detail.suite and detail.suite in report.suites:
        return "passed"
    if report.complete:
        return "gone" if report.suites and detail.suite and detail.suite not in report.suites else "passed"
    covered = detail.suite and any(_under(detail.suite, path) for path in selected.paths)
    return "passed" if covered else ""


def _names(name: str, suite: str, detail: HotIssueDetail) -> bool:
    """Return whether a passed name is that of an issue: the same check, or the test of its subtest."""
    same_suite = not suite or not detail.suite or suite == detail.suite
    return same_suite and (name == detail.check or detail.check.startswith((f"{name} (", f"{name} [")))


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


# --- what is new --------------------------------------------------------------------------------------------


def _opened(
    run: _CheckRun, issues: list[MemoryItem], failing: dict[_Key, FailedCheck], quoted: str
) -> Iterable[Change]:
    details = [(item, item.detail) for item in issues if isinstance(item.detail, HotIssueDetail)]
    active = [detail for item, detail in details if item.status == "active"]
    before = {(d.runner, d.suite, d.check): item.id for item, d in details if item.status != "active"}
    known: set[_Key] = set()
    for detail in active:
        known.add((detail.runner, detail.suite, detail.check))
        known.add((detail.runner, "", detail.check))
    new = [(key, item) for key, item in failing.items() if key not in known and not _known_bare(key, active)]
    for ordinal, (key, item) in enumerate(new[:MAX_OPENED]):
        yield Add(_issue(run, ordinal, key[0], item, before.get(key, ""), quoted))
    rest = len(new) - MAX_OPENED
    if rest > 0 and not any(detail.check == _rest_name(run.command) for detail in active):
        summary = finding(_rest_name(run.command), message=f"and {rest} more failing checks in the same run")
        yield Add(_issue(run, MAX_OPENED, new[0][0][0], summary, "", quoted))


def _known_bare(key: _Key, active: list[HotIssueDetail]) -> bool:
    """Return whether an open issue of that name has no suite yet."""
    return any(d.runner == key[0] and d.check == key[2] and not d.suite for d in active)


def _rest_name(command: str) -> str:
    return printable_name(f"{command} {_REST}")


def _issue(
    run: _CheckRun, ordinal: int, runner: str, item: FailedCheck, before: str, quoted: str
) -> MemoryItem:
    detail = HotIssueDetail(
        runner=runner,
        check=item.check,
        path=item.path,
        line=item.line,
        message=item.message,
        priority=item.priority,
        last_seq=run.seq,
        suite=item.suite,
        command=run.command,
        tool=run.tool,
    )
    text = _sentence(detail)
    return MemoryItem(
        id=item_id("hot_issue", run.seq, ordinal),
        kind="hot_issue",
        text=text,
        short=shorten(text),
        score=_SCORES[item.priority],
        evidence=(_evidence(run.seq, item, quoted),),
        trust="engine",
        links=(Link("recurs", before),) if before else (),
        detail=detail,
    )


def _sentence(detail: HotIssueDetail) -> str:
    """Describe the issue in a sentence.

    It states what fails and how; for a finding, what is wrong where, and which rule or tool reports it.
    """
    message = printable(detail.message, MAX_TEXT_MESSAGE)
    if detail.priority == "normal" and detail.path and message:
        source = detail.runner
        if source == _DOCUMENTS:  # its rules are one word, before the message
            rule, _, rest = message.partition(" ")
            source, message = (rule, rest) if rest else (source, message)
        return f"{detail.path}: {message} ({source})"
    told = f": {message}" if message and detail.message not in detail.check else ""
    return (
        f"{detail.check} fails{told}"
        if detail.runner == "exit"
        else f"{detail.runner}: {detail.check} fails{told}"
    )


def _evidence(seq: int, item: FailedCheck, text: str) -> Evidence:
    """Quote the part of the output that names the check, if the event contains it."""
    quote = item.check if item.check in text else item.message
    start = text.find(quote) if quote else -1
    return (
        Evidence(seq, start, start + len(quote), quote) if start >= 0 else Evidence(seq, 0, 0, item.message)
    )
