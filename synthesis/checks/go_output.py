"""Parser for ``go test``, as text and as ``-json``, and for the compiler errors in its output."""

import re
from collections.abc import Iterator

import msgspec

from agentx.synthesis.checks.check_report import (
    CheckReport,
    FailedCheck,
    critical,
    distinct,
    error_of,
    finding,
    names,
    suite_names,
)
from agentx.synthesis.checks.output import Output

_RESULT = re.compile(r"--- (PASS|FAIL|SKIP|BENCH): (\S+)(?: \([\d.]+ ?s(?:econds)?\))?\s*$")
_RUN = re.compile(r"^=== (?:RUN|CONT|NAME)\s+(\S+)")
_PACKAGE = re.compile(r"^(?:\[[\w:-]+\] )?(ok|FAIL|---|\?)\s+(\S+)(?:\s+(.*))?$")
_OK = re.compile(r"^(?:\[[\w:-]+\] )?(?:ok\s|\?\s|PASS$)")
"""The last line of a run in which no package failed; after a failure it is ``FAIL``."""

_COMPILE = re.compile(r"^(?:\[[\w:-]+\] )?# (\S+)(?: \[(\S+)\])?$")
_ERROR = re.compile(r"^(?:\[[\w:-]+\] )?(?:vet: )?(\S+?\.go):(\d+)(?::\d+)?: (.+)$")
_LOG = re.compile(r"^\s+(?:\S+: )?(\S+_test\.go):(\d+): (.*)$")
_UNBUILT = ("[build failed]", "[setup failed]")
_PANIC = re.compile(r"^(panic: .*|fatal error: .*|\s*testing: .*race detected.*)$")
_TIME = re.compile(r"^(?:[\d.]+s|\(cached\)|\[no test)")


_VERDICTS = {"pass": "PASS", "fail": "FAIL", "skip": "SKIP"}
MAX_APART = 4
"""Maximum number of outputs between a test's result as text and as JSON."""


class _Record(msgspec.Struct):
    """The results that have been read so far."""

    passed: list[tuple[str, str]] = msgspec.field(default_factory=list)
    skipped: list[tuple[str, str]] = msgspec.field(default_factory=list)
    failing: list[FailedCheck] = msgspec.field(default_factory=list)
    suites: list[str] = msgspec.field(default_factory=list)
    failed_packages: int = 0
    bare_fail: bool = False
    """Whether ``FAIL`` follows the last package's line. Earlier ones do not count: a test may print it."""

    bare_pass: bool = False
    broke_off: bool = False
    seen: bool = False


class _JsonLine(msgspec.Struct):
    Action: str = ""
    Package: str = ""
    ImportPath: str = ""
    Test: str = ""
    Output: str = ""


def parse_go(output: Output) -> CheckReport | None:
    """Parse the output of ``go test``; return ``None`` if there is none."""
    record = _Record()
    _read(list(_plain(output.lines)), record)
    if not record.seen:
        return None
    failing = distinct(record.failing)
    failed = bool(failing or record.failed_packages or record.bare_fail)
    unbuilt = all(item.check.endswith(_UNBUILT) for item in failing)
    if unbuilt and not record.suites and not record.passed:
        failing = tuple(critical(item) for item in failing)
    unfinished = record.broke_off or output.cut
    return CheckReport(
        runner="go test",
        outcome="failed" if failed else ("passed" if _shows_a_pass(record, output) else "unknown"),
        failing=failing,
        passed=names(record.passed),
        skipped=names(record.skipped),
        suites=suite_names(record.suites),
        failed=sum(not item.check.endswith("]") for item in failing) if failed else 0,
        complete=output.selected.whole and not unfinished,
        names_all_failing=not failed or not unfinished,
        names_all_passed=False,
        error=error_of(failing, "go test failed" if failed else ""),
    )


def _shows_a_pass(record: _Record, output: Output) -> bool:
    """Return whether packages passed and no failed one can have been cut off.

    The last line of JSON output does not show whether a package failed.
    """
    if not (record.suites or record.bare_pass):
        return False
    last = next((line for line in reversed(output.lines) if line.strip()), "")
    return not (output.cut and last.startswith("{")) and (not output.gap or bool(_OK.match(last)))


def _plain(lines: list[str]) -> Iterator[str]:
    """Yield the lines of the text format; packages that interleave in the JSON format are separated."""
    decoder = msgspec.json.Decoder(_JsonLine)
    outputs: dict[str, list[str]] = {}
    ended: dict[str, str] = {}
    for line in lines:
        if not line.startswith('{"'):
            yield line
            continue
        try:
            item = decoder.decode(line)
        except msgspec.MsgspecError:
            continue
        pieces = outputs.setdefault(item.Package or item.ImportPath, [])
        pieces.append(item.Output)
        if item.Action in _VERDICTS and item.Test and f"{item.Test} (" not in "".join(pieces[-MAX_APART:]):
            pieces.append(f"\n--- {_VERDICTS[item.Action]}: {item.Test} (0.00s)\n")
        elif item.Action in _VERDICTS and not item.Test:
            ended[item.Package] = "FAIL" if item.Action == "fail" else "ok"
    for package, pieces in outputs.items():
        text = "".join(pieces)
        yield from text.split("\n")
        if package in ended and not _ends(text):
            yield f"{ended[package]}\t{package}\t0s"


def _ends(text: str) -> bool:
    return any(_PACKAGE.match(line) for line in text.split("\n")[-6:])


def _read(lines: list[str], record: _Record) -> None:
    """Read all lines in one pass; the tests of a package come before the line that names it."""
    tests: list[tuple[str, str]] = []
    logs: dict[str, tuple[str, str, str]] = {}
    compile_errors: dict[str, tuple[str, str, str]] = {}
    current = package = panic = ""
    for line in lines:
        stripped = line.lstrip()
        if match := _RESULT.search(line):
            tests.append((match[1], match[2]))
            current = match[2] if match[1] == "FAIL" else ""
            record.seen = True
        elif line.startswith("===") and (match := _RUN.match(line)):
            current, record.seen = match[1], True
        elif match := _COMPILE.match(line):
            package = match[1]
        elif match := _LOG.match(line):
            logs[current] = (
                (match[1], match[2], match[3])
                if current not in logs or not logs[current][2]
                else logs[current]
            )
        elif package and (match := _ERROR.match(line)):
            compile_errors.setdefault(package, (match[1], match[2], match[3]))
        elif _PANIC.match(line):
            panic = panic or line
        elif stripped in {"FAIL", "PASS"}:
            record.bare_fail |= stripped == "FAIL"
            record.bare_pass |= stripped == "PASS"
        elif (match := _PACKAGE.match(line)) and _names_package(match):
            record.seen = True
            _close(record, match, tests, logs, compile_errors, panic)
            tests, logs, panic, record.bare_fail = [], {}, "", False
    record.broke_off |= bool(panic)
    _settle(record, tests, logs, "", panic)


def _names_package(match: re.Match[str]) -> bool:
    rest = match[3] or ""
    if match[1] == "ok":
        return bool(_TIME.match(rest))
    return match[1] == "FAIL" and (bool(_TIME.match(rest)) or rest.startswith("["))


def _close(
    record: _Record,
    match: re.Match[str],
    tests: list[tuple[str, str]],
    logs: dict[str, tuple[str, str, str]],
    compile_errors: dict[str, tuple[str, str, str]],
    panic: str,
) -> None:
    """Process a package's own line: either its tests are complete, or it could not be built."""
    package, rest = match[2], match[3] or ""
    if rest.startswith("[") and match[1] == "FAIL":
        path, line, message = compile_errors.get(package, ("", "", ""))
        name = f"{package} {rest.split(']')[0]}]"
        record.failing.append(finding(name, suite=package, path=path, line=line, message=message))
        record.failed_packages += 1
        return
    before = len(record.failing)
    _settle(record, tests, logs, package, panic)
    if match[1] == "FAIL":
        record.failed_packages += 1
        if len(record.failing) == before:
            record.failing.append(finding(f"{package} [failed]", suite=package, message=panic))
            record.broke_off |= bool(panic)
    elif "no tests to run" not in rest and "no test files" not in rest:
        record.suites.append(package)
    if match[1] == "FAIL" and not panic:
        record.suites.append(package)


def _settle(
    record: _Record,
    tests: list[tuple[str, str]],
    logs: dict[str, tuple[str, str, str]],
    package: str,
    panic: str,
) -> None:
    for status, name in tests:
        if status in {"PASS", "BENCH"}:
            record.passed.append((name, package))
        elif status == "SKIP":
            record.skipped.append((name, package))
        else:
            path, line, message = logs.get(name, ("", "", ""))
            record.failing.append(
                finding(name, suite=package, path=path, line=line, message=message or panic)
            )
