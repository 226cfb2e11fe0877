"""What check runs said: failing runs, names of failing tests, and issues that open and are resolved.

The exit status and the line ``Exit code N`` are hidden throughout: the output alone must tell.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from agentx.storage.events.types import Body, Event, Payload, ToolCallExecuted, ToolCallRequested
from agentx.synthesis.checks import CheckReport, parse_output
from agentx.synthesis.checks.hot_issue_extractor import HotIssues
from agentx.synthesis.memory.conclusions import Concluded
from agentx.synthesis.memory.items import HotIssueDetail
from agentx.synthesis.state.state import State
from tests.eval.data import Row, rows
from tests.eval.scores import Score
from tests.figures import Figure

Told = Callable[[str], None]

PATTERN = re.compile(r"FAILED|\bFAIL\b|ERROR\b|Error:")
"""The floor: words with which nearly every runner says that something failed."""

NAME_PATTERN = re.compile(
    r"^(?:FAILED|FAIL:|ERROR:?|\s*--- FAIL:) (\S.*?)(?: - .*| \([\d.]+s\))?$", re.MULTILINE
)
"""The floor for names: what stands behind such a word."""

_EXIT_LINE = re.compile(r"\AExit code \d+\n?")
_NO_MESSAGE = re.compile(r" \[<object object at 0x[0-9a-f]+>\]")
_ADDRESS = re.compile(r" at 0x[0-9a-f…]+")
_PACKAGE_NAMES = {
    "[build failed]": "[build failed]",
    "[setup failed]": "[setup failed]",
    "[failed]": "Failure",
}


def _share(right: int, of: int) -> float:
    return right / of if of else 0.0


def _detail(key: str, measure: str, score: Score) -> Iterator[Figure]:
    for name in ("precision", "recall"):
        yield Figure(f"{key}_{name}", f"{measure}: {name}", getattr(score, name), more_is_better=True)


# --- logs of test runs -----------------------------------------------------------------------------------------------


class _Log:
    """One log with what is known of it; ``names`` is ``None`` where the data does not name what failed."""

    def __init__(self, kind: str, row: Row, *, failed: bool, names: Iterable[str] | None) -> None:
        self.kind, self.failed = kind, failed
        self.names = None if names is None else {_plain(name) for name in names}
        self.text = str(row.get("output") or "")
        command = str(row.get("command") or row.get("test_cmd") or "")
        self.report: CheckReport = parse_output(self.text, command=command)

    @property
    def found_names(self) -> set[str]:
        return {_plain(item.check) for item in self.report.failing}


def _plain(name: str) -> str:
    """A name without memory addresses, which no two runs share; a Go package that failed as a whole as the gold names it."""
    name = _ADDRESS.sub("", _NO_MESSAGE.sub("", name))
    mark = name.rpartition(" ")[2]
    tail = " ".join(name.split(" ")[-2:])
    return _PACKAGE_NAMES.get(tail, _PACKAGE_NAMES.get(mark, name))


def _logs(data: Path) -> Iterator[_Log]:
    folder = data / "test_logs"
    for row in rows(folder / "swebench_lite.jsonl.gz"):
        if row.get("marker") in {"all_passed", "some_failed"} and row.get("output"):
            failed = row["marker"] == "some_failed"
            named = (row.get("summary_failed") or None) if failed else []
            yield _Log(str(row.get("framework")), row, failed=failed, names=named)
    for row in rows(folder / "quixbugs_pytest.jsonl.gz"):
        yield _Log("pytest_pairs", row, failed=_broke(row), names=row.get("failed"))
    for row in rows(folder / "go_test.jsonl.gz"):
        wrong = [
            test["name"] for test in row.get("gold_tests") or () if test.get("status") in {"fail", "error"}
        ]
        yield _Log(f"go_{row.get('format')}", row, failed=bool(row.get("gold_failed")), names=wrong)


def _broke(row: Row) -> bool:
    return bool(row.get("exit_code") or row.get("timed_out"))


def logs(data: Path, scratch: Path, told: Told) -> Iterator[Figure]:
    """Failing runs, names of failing tests and pairs of a buggy and a mended program, in logs of test runs."""
    del scratch
    read: list[_Log] = []
    for log in _logs(data):
        read.append(log)
        told(f"{len(read)} logs")
    if not read:
        return
    runs = _runs(read)
    floor = Score.of((bool(PATTERN.search(log.text)), log.failed) for log in read)
    yield Figure("test_logs.failing_f1", "Logs: failing runs, F1", runs.f1, at_least=0.98, aim=0.98, more_is_better=True,
                 beside=f"a pattern: {floor.f1:.3f}")  # fmt: skip
    yield from _detail("test_logs.failing", "Logs: failing runs", runs)
    yield Figure(
        "test_logs.pattern_failing_f1", "Logs: failing runs by a pattern, F1", floor.f1, more_is_better=True
    )
    yield from _name_figures(read)
    yield from _pairs(data, told)
    yield Figure("test_logs.runs", "Logs: runs", len(read), more_is_better=True)
    other = Counter(log.kind for log in read if log.report.runner == "exit")
    yield Figure("test_logs.unrecognised_runs", "Logs: runs whose runner is not recognised", other.total(), more_is_better=False,
                 beside=", ".join(f"{kind} {count}" for kind, count in other.most_common()))  # fmt: skip
    for kind in sorted({log.kind for log in read}):
        some = [log for log in read if log.kind == kind]
        named = _names(some)
        yield Figure(f"test_logs.{kind}_failing_f1", f"Logs, {kind}: failing runs, F1", _runs(some).f1, more_is_better=True,
                     beside=f"{len(some)} runs, {sum(log.failed for log in some)} failed; names F1 {named.f1:.3f} of {named.right + named.missed}")  # fmt: skip


def _runs(read: Iterable[_Log]) -> Score:
    return Score.of((log.report.outcome == "failed", log.failed) for log in read)


def _names(read: Iterable[_Log]) -> Score:
    return Score.of_names((log.found_names, log.names) for log in read if log.names is not None)


def _name_figures(read: list[_Log]) -> Iterator[Figure]:
    named = _names(read)
    floor = Score.of_names(
        ({_plain(name) for name in NAME_PATTERN.findall(log.text)}, log.names)
        for log in read
        if log.names is not None
    )
    yield Figure("test_logs.failing_names_f1", "Logs: names of failing tests, F1", named.f1, at_least=0.95, aim=0.95,
                 more_is_better=True, beside=f"a pattern: {floor.f1:.3f}")  # fmt: skip
    yield from _detail("test_logs.failing_names", "Logs: names of failing tests", named)


def _pairs(data: Path, told: Told) -> Iterator[Figure]:
    """A buggy program's run fails and the mended one's, told the same way, passes."""
    pairs: dict[tuple[str, str], dict[str, bool]] = defaultdict(dict)
    by_pattern: dict[tuple[str, str], dict[str, bool]] = defaultdict(dict)
    for row in rows(data / "test_logs" / "quixbugs_pytest.jsonl.gz"):
        text, wanted = str(row.get("output") or ""), "failed" if _broke(row) else "passed"
        key = (str(row.get("program")), str(row.get("style")))
        report = parse_output(text, command=str(row.get("command") or ""))
        pairs[key][str(row.get("version"))] = report.outcome == wanted
        by_pattern[key][str(row.get("version"))] = bool(PATTERN.search(text)) == _broke(row)
    whole = {key for key, right in pairs.items() if len(right) == 2}
    if whole:
        told(f"{len(whole)} pairs")
        floor = _share(sum(all(by_pattern[key].values()) for key in whole), len(whole))
        right = _share(sum(all(pairs[key].values()) for key in whole), len(whole))
        yield Figure("test_logs.pair_accuracy", "Logs: pairs of a buggy and a mended program, both right", right, at_least=0.95,
                     aim=0.98, more_is_better=True, beside=f"a pattern: {floor:.3f}")  # fmt: skip


# --- runs of a coding agent ------------------------------------------------------------------------------------------


def tool_runs(data: Path, scratch: Path, told: Told) -> Iterator[Figure]:
    """Failing runs among an agent's own, and whether issues open and are resolved where a command is run again."""
    del scratch
    sessions: dict[str, list[Row]] = defaultdict(list)
    for row in rows(data / "coding_transcripts" / "tool_runs.jsonl.gz"):
        sessions[str(row.get("session"))].append(row)
    checks = [row for session in sessions.values() for row in session if _is_run(row)]
    if not checks:
        return
    yield from _failing_runs(checks)
    yield from _repeats(sessions, told)


def _is_run(row: Row) -> bool:
    return bool(row.get("is_test_cmd") and row.get("command") and row.get("outcome") in {"ok", "error"})


def _is_known(row: Row) -> bool:
    """Whether the recorded outcome is that of the check, not of what stands behind it in a pipe."""
    return not row.get("exit_masked")


def _text(row: Row) -> str:
    return _EXIT_LINE.sub("", str(row.get("output") or ""))


def _failing_runs(checks: list[Row]) -> Iterator[Figure]:
    known: list[tuple[bool, bool]] = []
    plain: list[tuple[bool, bool]] = []
    behind: list[tuple[bool, bool]] = []
    runners: Counter[str] = Counter()
    for row in checks:
        report = parse_output(_text(row), command=str(row["command"]))
        failed = row["outcome"] == "error"
        if _is_known(row):
            known.append((report.outcome == "failed", failed))
            plain.append((bool(PATTERN.search(_text(row))), failed))
            runners[report.runner] += failed
        elif failed or row.get("go_failed_tests"):
            behind.append((report.outcome == "failed", True))
    runs, floor, masked = map(Score.of, (known, plain, behind))
    key, said = "coding_transcripts.failing", "An agent's runs: failing, exit status hidden"
    by_runner = ", ".join(f"{name} {count}" for name, count in runners.most_common(6) if count)
    yield Figure(f"{key}_f1", f"{said}, F1", runs.f1, at_least=0.96, aim=0.96, more_is_better=True,
                 beside=f"a pattern: {floor.f1:.3f}; of those that failed: {by_runner}")  # fmt: skip
    yield from _detail(key, said, runs)
    yield Figure(
        "coding_transcripts.pattern_failing_f1", f"{said}, by a pattern, F1", floor.f1, more_is_better=True
    )
    yield Figure("coding_transcripts.masked_failing_recall", "An agent's runs: failed behind a pipe, recall", masked.recall,
                 more_is_better=True, beside=f"{masked.right + masked.missed} that are known to have failed")  # fmt: skip


class _History:
    """A session's runs as events, folded, with the product's conclusions."""

    def __init__(self) -> None:
        self.state = State()
        self.extractor = HotIssues()

    def _fold(self, data: Payload) -> Event:
        name = type(data).__name__
        event = Event(
            seq=self.state.seq + 1,
            at="2026-01-01T00:00:00.000000Z",
            type=name,
            v=1,
            actor="agent:main",
            data=data,
        )
        self.state.apply(event)
        return event

    def run(self, row: Row) -> set[str]:
        """Record one run, its exit status hidden as a pipe hides it; the ids of the issues that it opened or renewed."""
        call, command = f"c-{self.state.seq}", f"( {row['command']} ) 2>&1 | cat"
        arguments = {"command": command}
        self._fold(ToolCallRequested(call_id=call, tool="Bash", arguments=arguments))
        executed = ToolCallExecuted(call_id=call, tool="Bash", arguments=arguments, status="SUCCEEDED", command=command,
                                    exit_code=0, output=Body(_text(row)))  # fmt: skip
        event = self._fold(executed)
        changes = tuple(self.extractor.conclude(event, self.state, lambda body: body.text))
        self._fold(Concluded(extractor="hot_issues", version=1, through=event.seq, changes=changes))
        return {
            item.id
            for item in self.state.active("hot_issue")
            if isinstance(item.detail, HotIssueDetail) and item.detail.last_seq == event.seq
        }

    @property
    def open(self) -> set[str]:
        return {item.id for item in self.state.active("hot_issue")}


class _Turn:
    """A run of a command that had the other outcome, or failed, when it was last run in the session."""

    def __init__(self, row: Row, *, right: bool, by_pattern: bool) -> None:
        self.row, self.right, self.by_pattern = row, right, by_pattern

    @property
    def opens(self) -> bool:
        return bool(self.row["outcome"] == "error")


def _repeats(sessions: dict[str, list[Row]], told: Told) -> Iterator[Figure]:
    turns: list[_Turn] = []
    for done, session in enumerate(sessions.values(), 1):
        turns += _turns([row for row in session if _is_run(row)])
        told(f"{done} of {len(sessions)} sessions")
    if not turns:
        return
    right, floor = sum(turn.right for turn in turns), sum(turn.by_pattern for turn in turns)
    opened = [turn for turn in turns if turn.opens]
    yield Figure("coding_transcripts.open_resolve_accuracy", "Repeats of a command: issue open after an error, resolved after a pass",
                 _share(right, len(turns)), at_least=0.95, aim=0.95, more_is_better=True,
                 beside=f"{len(turns)} runs; a pattern: {_share(floor, len(turns)):.3f}")  # fmt: skip
    yield Figure("coding_transcripts.open_accuracy", "Repeats of a command: open after an error",
                 _share(sum(turn.right for turn in opened), len(opened)), more_is_better=True, beside=f"{len(opened)} runs")  # fmt: skip
    yield Figure("coding_transcripts.resolve_accuracy", "Repeats of a command: resolved after a pass",
                 _share(right - sum(turn.right for turn in opened), len(turns) - len(opened)), more_is_better=True,
                 beside=f"{len(turns) - len(opened)} runs")  # fmt: skip


def _turns(session: list[Row]) -> Iterator[_Turn]:
    """The runs to judge: each error of a command that is run again, and each pass of it that comes next after an error."""
    again = Counter(str(row["command"]) for row in session if _is_known(row))
    history, failing = _History(), dict[str, set[str]]()
    for row in session:
        command, seen = str(row["command"]), history.run(row)
        if not _is_known(row) or again[command] < 2:
            continue
        says_failed = bool(PATTERN.search(_text(row)))
        if row["outcome"] == "error":
            failing[command] = seen
            yield _Turn(row, right=bool(seen), by_pattern=says_failed)
        elif command in failing:
            issues = failing.pop(command)
            yield _Turn(row, right=bool(issues) and not issues & history.open, by_pattern=not says_failed)
