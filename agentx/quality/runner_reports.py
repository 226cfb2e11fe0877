"""Ask the test runners that a command starts for their machine-readable report, and read what they wrote.

A report names each test with its result, which the printed output of most runners does not. pytest is asked
by an environment variable, through any task runner. jest, vitest, dotnet and PHPUnit need an option: they
are asked if the command, or the script of ``package.json`` that it runs, is only that runner. Maven and
Gradle write their reports into their build folders without being asked. Nothing is asked for if the user's
command or configuration already asks for a report.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from agentx.storage.files import nofollow
from agentx.synthesis.shell.command_line import ProgramCall, steps

FOLDER = "agentx-runner-reports"
"""Name of the folder for the reports; runners mention it, some by a relative path."""

MAX_REPORT_BYTES = 32 << 20
MAX_REPORTS = 2_000
TICK_NS = 20_000_000
"""File times are as coarse as a kernel tick."""

_PYTEST_CONFIGURATIONS = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
_VITEST_CONFIGURATIONS = tuple(
    f"{name}.config.{end}" for name in ("vitest", "vite") for end in ("ts", "js", "mts", "mjs", "cts", "cjs")
)
_SYNTAX = re.compile(r"[;&|<>()`$#\n\\]")
"""What makes a command line more than one program with its arguments."""

_BUILD_FILES = {
    "maven": ("pom.xml",),
    "gradle": ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"),
}
_BUILD_REPORTS = {
    "maven": re.compile(r"(?:^|/)target/(?:surefire|failsafe)-reports/TEST-[^/]+\.xml$"),
    "gradle": re.compile(r"(?:^|/)build/test-results/[^/]+/TEST-[^/]+\.xml$"),
}
_OPTIONS = {
    "jest": (" --json --outputFile={}/jest.json", re.compile(r"--json\b|--outputFile\b|--watch|--listTests")),
    "vitest": (
        " --reporter=default --reporter=json --outputFile.json={}/vitest.json",
        re.compile(r"--reporter|--outputFile|--watch|(?:^|\s)(?:watch|bench|list|init|typecheck)\b"),
    ),
    "dotnet": (
        " --logger trx --results-directory {}/dotnet",
        re.compile(r"--logger|-l\b|--results-directory|-r\b|\s--\s|--list-tests|-t\b"),
    ),
    "phpunit": (" --log-junit {}/phpunit.xml", re.compile(r"--log-junit|--list-")),
}
"""The options that ask a runner for its report, and the words with which they are not given."""


class RunnerReport(NamedTuple):
    """A report as a runner wrote it.

    Attributes:
        runner: ``pytest``, ``jest``, ``vitest``, ``maven``, ``gradle``, ``dotnet`` or ``phpunit``.
        text: Its content; paths in the tree are relative to the tree.
    """

    runner: str
    text: str


def with_options(command: str, root: Path, folder: Path) -> str:
    """Return the command with the options that ask its runner for a report in ``folder``."""
    step = _only_step(command)
    if step is None:
        return command
    between = ""
    script = _script(step, root)
    if script:
        inner = _only_step(script)
        between = " --" if step.program == "npm" and "--" not in step.arguments else ""
        step = inner or step
    runner = "phpunit" if step.program == "phpunit.phar" else step.program
    if runner not in _OPTIONS or (runner == "dotnet" and step.arguments[:1] != ("test",)):
        return command
    options, never = _OPTIONS[runner]
    configured = runner == "vitest" and _mentions(root, _VITEST_CONFIGURATIONS, "reporters")
    if configured or never.search(f"{command} {script}"):
        return command
    return f"{command}{between}{options.format(shlex.quote(str(folder)))}"


def variables(command: str, root: Path, folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that ask runners for a report in ``folder``."""
    given = environ.get("PYTEST_ADDOPTS", "")
    if "junit" in command + given or _mentions(root, _PYTEST_CONFIGURATIONS, "junit"):
        return {}
    option = shlex.quote(f"--junitxml={folder}/pytest.xml")
    return {"PYTEST_ADDOPTS": f"{given} {option} -o junit_family=xunit1".strip()}


def without_mentions(output: str) -> str:
    """Return an output without the lines in which a runner mentions the report that it was asked for."""
    if f"{FOLDER}/" not in output:
        return output
    return "".join(line for line in output.splitlines(keepends=True) if f"{FOLDER}/" not in line)


def collect(folder: Path, tree: Path, started_ns: int) -> tuple[RunnerReport, ...]:
    """Return the reports in ``folder``, and those that a build wrote in the tree since the start."""
    found: list[RunnerReport] = []
    places: list[tuple[str, Path]] = []
    for written in (_asked_for(folder), _of_builds(tree, started_ns)):
        with suppress(OSError, RecursionError):  # a command may nest directories without end
            places += islice(written, MAX_REPORTS)
    for runner, path in places:
        with suppress(OSError):
            if nofollow.status(path).st_size <= MAX_REPORT_BYTES:
                text = nofollow.read_text(path, errors="replace")
                found.append(RunnerReport(runner, text.replace(f"{tree}/", "")))
    return tuple(found)


def _asked_for(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in nofollow.tree(folder):
        name = path.relative_to(folder).parts[0]
        yield name.partition(".")[0], path


def _of_builds(tree: Path, started_ns: int) -> Iterator[tuple[str, Path]]:
    for runner, files in _BUILD_FILES.items():
        if not any(nofollow.is_file(tree / name) for name in files):
            continue
        for path in nofollow.tree(tree):
            written = _BUILD_REPORTS[runner].search(path.relative_to(tree).as_posix())
            if written and nofollow.status(path).st_mtime_ns >= started_ns - TICK_NS:
                yield runner, path


def _only_step(command: str) -> ProgramCall | None:
    """Return the program of a command that runs only one."""
    found = steps(command)
    return found[0] if len(found) == 1 and not _SYNTAX.search(command) else None


def _script(step: ProgramCall, root: Path) -> str:
    """Return the script of ``package.json`` that a step runs; empty if none."""
    words = [word for word in step.arguments if not word.startswith("-") and word != "run"]
    if step.program not in {"npm", "pnpm", "yarn"} or not words:
        return ""
    with suppress(OSError, ValueError, RecursionError):
        package = json.loads(nofollow.read_text(root / "package.json"))
        scripts = package.get("scripts") if isinstance(package, dict) else None
        script = scripts.get({"t": "test"}.get(words[0], words[0])) if isinstance(scripts, dict) else None
        return script if isinstance(script, str) else ""
    return ""


def _mentions(root: Path, names: tuple[str, ...], word: str) -> bool:
    for name in names:
        with suppress(OSError):
            if word in nofollow.read_text(root / name, errors="replace"):
                return True
    return False
