"""Hot issues: the checks that currently fail, opened and closed by the results of check runs.

One failing check is one issue, identified by its runner, its suite and its name. An issue is closed in these
cases:

- A run shows that the same check passes (``passed``): see :mod:`agentx.synthesis.checks.issue_endings`.
- The issue names no check, only the command of a built-in tool, and that tool passes a full run with another
  command, since the user has configured another one in ``agentx.toml`` (``gone``).
- It is a finding in a document, and the document is deleted or moved (``gone``).

A test that no longer fails without a run that shows it passing stays open, and its text says why: it is
skipped, deselected, expected to fail, or not found any more. Only a run in which it passes, or the user, ends
such an issue. A run that did not execute the check changes nothing: a narrowed run, a collection error, a
crash, a cut output.

If a run has fewer tests or more skipped ones than the run of the same command before it, and no open issue
says so, that is an issue too. It ends when the tests are back, or when the command runs again after the
user's next message.

A time-out opens an issue with priority ``high``, not ``critical``. It shows that the command did not finish,
not that nothing can be collected or built.
"""

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import ClassVar

import msgspec

from agentx.storage.events.types import ChangesFiles, Event, ToolCallExecuted, changes_of
from agentx.storage.text import shorten
from agentx.synthesis.checks.check_report import (
    CheckName,
    CheckReport,
    FailedCheck,
    compared,
    finding,
    printable,
    printable_name,
)
from agentx.synthesis.checks.command import Selection, is_check_command, normal_form, selection
from agentx.synthesis.checks.issue_endings import (
    TEST_RUNNERS,
    CheckRun,
    Verdict,
    comparable,
    concerns,
    counts_key,
    is_same_runner,
    judge,
    rest_name,
)
from agentx.synthesis.checks.registry import not_runnable, parse_reports, timed_out
from agentx.synthesis.checks.runner_reports import with_reports
from agentx.synthesis.memory.conclusions import Add, Change, Counted, Patch
from agentx.synthesis.memory.items import (
    Evidence,
    HotIssueDetail,
    Link,
    MemoryItem,
    RunTally,
    item_id,
    not_passed,
)
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

SHORT_WORDS = 24
"""Maximum words of the short form of an issue that is not known to pass: the reason must be in it."""

_SCORES = {"critical": 9.0, "high": 7.0, "normal": 4.0}
_Key = tuple[str, str, str]


class HotIssues:
    """Opens, renews and closes hot issues (an :class:`agentx.synthesis.state.extractor.Extractor`)."""

    name: ClassVar[str] = "hot_issues"
    version: ClassVar[int] = 5
    reads = (ChangesFiles,)

    def conclude(self, event: Event, state: State, read: ReadBody) -> Sequence[Change]:
        """Return changes to the issues that a check run affects, or whose document an event removes."""
        lost, touched = _lost_documents(event, state), _touched(event, state)
        if not isinstance(event.data, ToolCallExecuted) or not is_check_run(event.data):
            return (*lost, *touched.values())
        run = _read_run(event, event.data, read)
        if run is None:
            return (*lost, *touched.values())
        issues = [item for item in state.items.values() if isinstance(item.detail, HotIssueDetail)]
        failing = _failing(run)
        opened = list(_opened(run, issues, failing, event.data.output.text))
        closed = {change.id for change in lost}
        known = [item for item in issues if item.status == "active" and item.id not in closed]
        changed = {
            change.id: change
            for change in _closed_or_renewed(run, known, failing, overflowing=len(opened) > MAX_OPENED)
        }
        after = [
            msgspec.structs.replace(item, **changed[item.id].fields()) if item.id in changed else item
            for item in known
        ]
        counted = _counted(run, after, state, len(opened))
        return (*lost, *{**touched, **changed}.values(), *opened, *counted)


def is_check_run(call: ToolCallExecuted) -> bool:
    """Return whether a tool's result is a check run: not if it was denied, and not if no program ran."""
    if call.status == "DENIED":
        return False
    command = call.command_line
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


def _touched(event: Event, state: State) -> dict[str, Patch]:
    """Mark the issues of the tests whose own file, or whose configuration, an event changes."""
    paths = [made.path for made in changes_of(event)]
    found: dict[str, Patch] = {}
    for item in state.active("hot_issue") if paths else ():
        detail = item.detail
        if not isinstance(detail, HotIssueDetail) or detail.touched or detail.silenced == "fewer":
            continue
        if any(concerns(path, detail) for path in paths):
            found[item.id] = Patch(id=item.id, detail=msgspec.structs.replace(detail, touched=True))
    return found


def _end(issue: MemoryItem, detail: HotIssueDetail, how: str) -> Patch:
    return Patch(id=issue.id, status="closed", detail=msgspec.structs.replace(detail, ended=how))


def _read_run(event: Event, call: ToolCallExecuted, read: ReadBody) -> CheckRun | None:
    command = call.command_line or (call.tool if call.tool in CHECK_TOOLS else "")
    text = read(call.output)
    exit_code = call.exit_code
    if exit_code is None and call.status == "SUCCEEDED" and call.tool != "check_document":
        exit_code = 0
    reports = with_reports(parse_reports(text, command=command, exit_code=exit_code), read(call.report))
    if call.status == "FAILED" and (timed_out(text, call.exit_code) or _killed(call)):
        reports = (*(_broken_off(report) for report in reports), _time_out(command))
    if all(report.outcome == "unknown" and not report.warning for report in reports):
        return None
    failed = any(report.outcome == "failed" for report in reports)
    selected = selection(command) if call.command_line else Selection(whole=True)
    return CheckRun(
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


def _failing(run: CheckRun) -> dict[_Key, FailedCheck]:
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


def _whole_run(run: CheckRun, report: CheckReport) -> FailedCheck:
    blocked = not_runnable(report, None) or (report.ran == 0 and report.runner != "exit")
    return finding(run.command, message=report.error, priority="critical" if blocked else "high")


# --- what is open -------------------------------------------------------------------------------------------


def _closed_or_renewed(
    run: CheckRun, open_issues: list[MemoryItem], failing: dict[_Key, FailedCheck], *, overflowing: bool
) -> Iterable[Patch]:
    for issue in open_issues:
        detail = issue.detail
        assert isinstance(detail, HotIssueDetail)
        again = _same(detail, failing)
        if again is not None:
            yield _renewed(run, issue, detail, again)
        elif (verdict := judge(run, detail, overflowing=overflowing)) is None:
            continue
        elif verdict.ended:
            yield _end(issue, msgspec.structs.replace(detail, silenced="", note=""), verdict.ended)
        elif (verdict.silenced, verdict.note) != (detail.silenced, detail.note):
            yield _silenced(issue, detail, verdict)


def _same(detail: HotIssueDetail, failing: dict[_Key, FailedCheck]) -> FailedCheck | None:
    """Return the finding of an open issue; if the output lacks the suite's name, compare the check's name."""
    exact = failing.get((detail.runner, detail.suite, detail.check))
    if exact is not None:
        return exact
    for (runner, suite, check), item in failing.items():
        if is_same_runner(runner, detail.runner) and check == detail.check and not (suite and detail.suite):
            return item
    return None


def _renewed(run: CheckRun, issue: MemoryItem, detail: HotIssueDetail, again: FailedCheck) -> Patch:
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
        silenced="",
        note="",
        touched=False,
        shared=_is_shared(run, detail.runner, again),
        tally=_tally(run, detail.runner) if run.command == detail.command else detail.tally,
    )
    if message == detail.message and again.priority == detail.priority and not detail.silenced:
        return Patch(id=issue.id, detail=renewed)
    text = _sentence(renewed)
    return Patch(id=issue.id, detail=renewed, text=text, short=shorten(text), score=_SCORES[again.priority])


def _silenced(issue: MemoryItem, detail: HotIssueDetail, verdict: Verdict) -> Patch:
    """Keep an issue open whose check no longer fails without having passed, and say why."""
    after = msgspec.structs.replace(detail, silenced=verdict.silenced, note=verdict.note)
    text = _sentence(after)
    return Patch(id=issue.id, detail=after, text=text, short=shorten(text, SHORT_WORDS))


def _is_shared(run: CheckRun, runner: str, item: FailedCheck) -> bool:
    """Return whether a check of the same name passed in the run in which one failed."""
    name = CheckName(item.check, item.suite)
    return any(name in report.passed for report in run.reports if is_same_runner(report.runner, runner))


def _tally(run: CheckRun, runner: str) -> RunTally | None:
    if runner not in TEST_RUNNERS:
        return None
    return next((report.tally for report in run.reports if is_same_runner(report.runner, runner)), None)


# --- how many tests ran -------------------------------------------------------------------------------------


def _counted(run: CheckRun, known: list[MemoryItem], state: State, ordinal: int) -> Iterable[Change]:
    """Compare the counts of a run with those of the run of the same command before it, and keep them."""
    runners = Counter(report.runner for report in run.reports)
    for report in run.reports:
        now = comparable(report, run.selected)
        if now is None or runners[report.runner] > 1:
            continue
        key = counts_key(report.runner, run.command)
        before = state.tallies.get(key)
        if now != before:
            yield Counted(key, now, run.seq)
        mine = [
            (item, item.detail)
            for item in known
            if isinstance(item.detail, HotIssueDetail)
            and (item.status, item.detail.command, item.detail.runner)
            == ("active", run.command, report.runner)
        ]
        issue = next((one for one in mine if one[1].silenced == "fewer"), None)
        if issue is not None:
            yield from _counted_again(*issue, now, state)
        elif before and (fewer := compared(now, before)) and not any(one.silenced for _, one in mine):
            yield Add(_fewer(run, ordinal, report.runner, before, fewer))
            ordinal += 1


def _counted_again(issue: MemoryItem, detail: HotIssueDetail, now: RunTally, state: State) -> Iterable[Patch]:
    fewer = compared(now, detail.tally) if detail.tally else ""
    if not fewer or any(seq > detail.last_seq for seq in state.said):
        yield _end(issue, detail, "passed" if not fewer else "gone")
    elif fewer != detail.note:
        after = msgspec.structs.replace(detail, note=fewer)
        text = _sentence(after)
        yield Patch(id=issue.id, detail=after, text=text, short=shorten(text, SHORT_WORDS))


def _fewer(run: CheckRun, ordinal: int, runner: str, before: RunTally, note: str) -> MemoryItem:
    check = finding(f"tests of {run.command}", priority="normal")
    item = _issue(run, ordinal, runner, check, "", "")
    assert isinstance(item.detail, HotIssueDetail)
    detail = msgspec.structs.replace(item.detail, silenced="fewer", note=note, tally=before)
    text = _sentence(detail)
    return msgspec.structs.replace(item, text=text, short=shorten(text, SHORT_WORDS), detail=detail)


# --- what is new --------------------------------------------------------------------------------------------


def _opened(
    run: CheckRun, issues: list[MemoryItem], failing: dict[_Key, FailedCheck], quoted: str
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
    if rest > 0 and not any(detail.check == rest_name(run.command) for detail in active):
        summary = finding(rest_name(run.command), message=f"and {rest} more failing checks in the same run")
        yield Add(_issue(run, MAX_OPENED, new[0][0][0], summary, "", quoted))


def _known_bare(key: _Key, active: list[HotIssueDetail]) -> bool:
    """Return whether an open issue of that name has no suite yet."""
    return any(d.runner == key[0] and d.check == key[2] and not d.suite for d in active)


def _issue(
    run: CheckRun, ordinal: int, runner: str, item: FailedCheck, before: str, quoted: str
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
        tally=_tally(run, runner),
        shared=_is_shared(run, runner, item),
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
    if detail.priority == "normal" and detail.path and message and not detail.silenced:
        source = detail.runner
        if source == _DOCUMENTS:  # its rules are one word, before the message
            rule, _, rest = message.partition(" ")
            source, message = (rule, rest) if rest else (source, message)
        return f"{detail.path}: {message} ({source})"
    if detail.silenced == "fewer":
        return f"{detail.runner}: the {detail.check} are {not_passed(detail)}"
    told = message if message and detail.message not in detail.check else ""
    name = detail.check if detail.runner == "exit" else f"{detail.runner}: {detail.check}"
    if detail.silenced:
        return f"{name} failed, and is {not_passed(detail)}{f'; it failed with: {told}' if told else ''}"
    return f"{name} fails{f': {told}' if told else ''}"


def _evidence(seq: int, item: FailedCheck, text: str) -> Evidence:
    """Quote the part of the output that names the check, if the event contains it."""
    quote = item.check if item.check in text else item.message
    start = text.find(quote) if quote else -1
    return (
        Evidence(seq, start, start + len(quote), quote) if start >= 0 else Evidence(seq, 0, 0, item.message)
    )
