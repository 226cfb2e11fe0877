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
from agentx.synthesis.memory.items import RunTally

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


Place = tuple[str, str, str]
"""Path, line and message."""


class _Record(msgspec.Struct):
    """The results that have been read so far, and below them those of the package that is being read."""

    passed: list[tuple[str, str]] = msgspec.field(default_factory=list)
    skipped: list[tuple[str, str]] = msgspec.field(default_factory=list)
    failing: list[FailedCheck] = msgspec.field(default_factory=list)
    suites: list[str] = msgspec.field(default_factory=list)
    compile_errors: dict[str, Place] = msgspec.field(default_factory=dict)
    failed_packages: int = 0
    bare_fail: bool = False
    """Whether ``FAIL`` follows the last package's line. Earlier ones do not count: a test may print it."""

    bare_pass: bool = False
    verbose: bool = False
    """Whether the run lists each test."""

    broke_off: bool = False
    seen: bool = False

    tests: list[tuple[str, str]] = msgspec.field(default_factory=list)
    logs: dict[str, Place] = msgspec.field(default_factory=dict)
    panic: str = ""

    def close(self, result: str, package: str, rest: str) -> None:
        """Process a package's own line: either its tests are complete, or it could not be built."""
        failed = result == "FAIL"
        self.seen = True
        self.failed_packages += failed
        if failed and rest.startswith("["):
            path, line, message = self.compile_errors.get(package, ("", "", ""))
            name = f"{package} {rest.partition(']')[0]}]"
            self.failing.append(finding(name, suite=package, path=path, line=line, message=message))
        else:
            before = len(self.failing)
            self.settle(package)
            if failed and len(self.failing) == before:
                self.failing.append(finding(f"{package} [failed]", suite=package, message=self.panic))
                self.broke_off |= bool(self.panic)
            ran = "no tests to run" not in rest and "no test files" not in rest
            if not self.panic if failed else ran:
                self.suites.append(package)
        self.tests, self.logs, self.panic, self.bare_fail = [], {}, "", False

    def settle(self, package: str) -> None:
        """Assign the tests that were read to a package."""
        for status, name in self.tests:
            if status in {"PASS", "BENCH"}:
                self.passed.append((name, package))
            elif status == "SKIP":
                self.skipped.append((name, package))
            else:
                path, line, message = self.logs.get(name, ("", "", ""))
                self.failing.append(
                    finding(name, suite=package, path=path, line=line, message=message or self.panic)
                )


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
    # The last line of JSON output does not show whether a package failed that was cut off.
    last = next((line for line in reversed(output.lines) if line.strip()), "")
    cut_off = (output.cut and last.startswith("{")) or (output.gap and not _OK.match(last))
    shows_pass = bool(record.suites or record.bare_pass) and not cut_off
    return CheckReport(
        runner="go test",
        outcome="failed" if failed else "passed" if shows_pass else "unknown",
        failing=failing,
        passed=names(record.passed),
        skipped=names(record.skipped),
        suites=suite_names(record.suites),
        tally=RunTally(len(record.passed) + len(record.failing), len(record.skipped))
        if record.verbose
        else None,
        failed=sum(not item.check.endswith("]") for item in failing) if failed else 0,
        complete=output.selected.whole and not unfinished,
        names_all_failing=not failed or not unfinished,
        names_all_passed=record.verbose and not unfinished and not cut_off,
        error=error_of(failing, "go test failed" if failed else ""),
    )


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
        if package in ended and not any(_PACKAGE.match(line) for line in text.split("\n")[-6:]):
            yield f"{ended[package]}\t{package}\t0s"


def _read(lines: list[str], record: _Record) -> None:
    """Read all lines in one pass; the tests of a package come before the line that names it."""
    current = package = ""
    for line in lines:
        stripped = line.lstrip()
        if match := _RESULT.search(line):
            record.tests.append((match[1], match[2]))
            current = match[2] if match[1] == "FAIL" else ""
            record.seen = True
        elif line.startswith("===") and (match := _RUN.match(line)):
            current, record.seen, record.verbose = match[1], True, True
        elif match := _COMPILE.match(line):
            package = match[1]
        elif match := _LOG.match(line):
            known = record.logs.get(current, ("", "", ""))
            record.logs[current] = known if known[2] else (match[1], match[2], match[3])
        elif package and (match := _ERROR.match(line)):
            record.compile_errors.setdefault(package, (match[1], match[2], match[3]))
        elif _PANIC.match(line):
            record.panic = record.panic or line
        elif stripped in {"FAIL", "PASS"}:
            record.bare_fail |= stripped == "FAIL"
            record.bare_pass |= stripped == "PASS"
        elif (match := _PACKAGE.match(line)) and _names_package(match[1], match[3] or ""):
            record.close(match[1], match[2], match[3] or "")
    record.broke_off |= bool(record.panic)
    record.settle("")


def _names_package(result: str, rest: str) -> bool:
    timed = bool(_TIME.match(rest))
    return timed if result == "ok" else result == "FAIL" and (timed or rest.startswith("["))
