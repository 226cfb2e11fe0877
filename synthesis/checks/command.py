"""Recognise checks in a command line: whether it runs any, and which tests it selects.

A wrong guess does little harm: an issue stays open a while longer.
"""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

import msgspec

from agentx.synthesis.shell.command_line import ProgramCall, steps


class Selection(msgspec.Struct, frozen=True):
    """The checks that a command selects.

    Attributes:
        whole: Whether the command runs everything.
        paths: Selected files, directories, packages or modules; empty for all.
        names: Selected names, parts of names or patterns of checks; empty for all.
        narrowed: Whether an option leaves out checks without naming the selected ones.
    """

    whole: bool
    paths: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    narrowed: bool = False


_TASK = re.compile(
    r"(?:^|[:_.\-/])(?:unit|e2e|integration)?"
    r"(?:tests?|specs?|lint|check|checks|build|compile|fmt|format|vet|typecheck"
    r"|type-check|types|tsc|ci|verify|validate|dup|clippy|mypy|ruff|eslint|pytest|jest|vitest|coverage)"
    r"(?:$|[:_.\-\d])"
)
_SCRIPT = re.compile(
    r"^(?:run[-_]?)?(?:tests?|lint|checks?|build|ci)(?:\.\w+)?$"
    r"|^run[-_]?tests?[-_.]|^test_\w+\.py$|[-_](?:tests?|lint)\.\w+$"
)

_ALWAYS = {
    "pytest", "py.test", "unittest", "tox", "nox", "mypy", "pyright", "basedpyright", "flake8", "pylint",
    "pyflakes", "bandit", "doctest", "compileall", "py_compile", "jest", "vitest", "mocha", "ava", "tap",
    "eslint", "tsc", "vue-tsc", "biome", "gcc", "g++", "cc", "c++", "clang", "clang++", "rustc", "javac",
    "kotlinc", "ctest", "ninja", "rspec", "rubocop", "minitest", "phpunit", "phpstan", "shellcheck",
    "golangci-lint", "staticcheck", "gofmt", "goimports", "gotestsum", "codespell", "typos", "vulture",
    "markdownlint", "stylelint", "hadolint", "runtests.py", "check_document", "trial", "nose2", "clang-tidy",
    "cppcheck", "yamllint", "prettier", "black", "isort",
}  # fmt: skip
"""Programs of which every run is a check."""

_SUBCOMMANDS: dict[str, frozenset[str]] = {
    "go": frozenset({"test", "build", "vet", "fmt", "install"}),
    "cargo": frozenset({"test", "t", "build", "b", "check", "c", "clippy", "nextest", "fmt", "bench"}),
    "ruff": frozenset({"check", "format"}),
    "deno": frozenset({"test", "lint", "check", "fmt"}),
    "bun": frozenset({"test", "build"}),
    "dotnet": frozenset({"test", "build"}),
    "swift": frozenset({"test", "build"}),
    "zig": frozenset({"test", "build"}),
    "bazel": frozenset({"test", "build"}),
    "mvn": frozenset({"test", "verify", "compile", "package", "install"}),
    "manage.py": frozenset({"test", "check"}),
    "pre-commit": frozenset({"run"}),
    "cmake": frozenset({"--build"}),
    "next": frozenset({"build", "lint"}),
    "vite": frozenset({"build"}),
    "docker": frozenset({"build"}),
}  # fmt: skip
"""Programs of which some subcommands are checks."""

_TASK_RUNNERS = {
    "make", "gmake", "just", "task", "rake", "gradle", "gradlew", "mise", "npm", "pnpm", "yarn", "bun",
    "turbo", "nx", "invoke", "composer", "mage", "lerna", "hatch", "pdm", "poe", "ant", "mix",
}  # fmt: skip
"""Programs whose argument names a task of the project. The task's name decides whether it is a check."""

_NAME_FLAGS = {
    "-k", "-m", "-run", "--run", "-t", "--testNamePattern", "--test-name-pattern", "-g", "--grep", "-f",
    "--fgrep", "--filter", "-test.run", "--test", "-e", "--example", "-bench",
}  # fmt: skip
"""Flags whose value selects checks by name."""

_NARROWING_FLAGS = {
    "--lf", "--last-failed", "--sw", "--stepwise", "--onlyChanged", "--onlyFailures", "--changed",
    "--findRelatedTests", "--deselect", "--ignore", "--tag", "--only-failures", "--shard", "--lib",
    "--doc", "-short", "--related", "--bail-early", "--skip", "--diff",
}  # fmt: skip

_VALUE_FLAGS = {
    "-p", "-n", "-c", "-o", "-W", "-j", "-C", "-r", "-tags", "-timeout", "-count", "-parallel",
    "-coverprofile", "-covermode", "-cover", "-coverpkg", "-cpu", "-ldflags", "-mod", "--maxfail", "--tb",
    "--config", "--config-file", "--ext", "--max-warnings", "--features", "--rootdir", "--cov", "--durations",
    "--color", "--select", "--jobs", "--settings", "--verbosity", "--reporter", "--manifest-path", "--target",
    "--timeout", "--numprocesses", "--dist", "--format", "-E", "--output-format", "--exclude", "--project",
    "--package", "--parallel", "--target-dir", "-I", "-D", "-L", "-std", "-s", "--cache-dir", "-x",
}  # fmt: skip
"""Flags whose value is the next word and selects nothing.

One set serves all runners; a clash between two of them is harmless.
"""

_COMPILERS = ("gcc", "g++", "cc", "c++", "clang", "clang++")
_PLAIN_FLAGS = {("--test", "node"), ("-e", "tox"), *(("-c", compiler) for compiler in _COMPILERS)}
"""Flags that take no value for this program, although the same flag of another program takes one."""

_SCRIPT_ENDS = (".py", ".sh", ".js", ".ts", ".rb")
_EVERYTHING = {
    ".",
    "./",
    "...",
    "./...",
    "all",
    "tests",
    "tests/",
    "test",
    "test/",
    "src",
    "--",
    "*",
    "spec",
    "spec/",
}
_CUTTERS = {"tail", "head", "grep", "rg", "egrep", "sed", "awk", "sort", "uniq", "wc", "less", "cut", "jq"}
_UNSEEN = _CUTTERS | {"cd", "tee", "cat", "echo", "true", "set"}
_LIMIT = re.compile(r"^(?:-n?|--lines=)?(\d{1,9})$")
DEFAULT_LINES = 10
"""Number of lines that ``head`` and ``tail`` show by default."""

_STATUS_SIGN = re.compile(r"\$\?|\$\{PIPESTATUS\[0\]\}|\$\{pipestatus\[1\]\}")
_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=")


def is_check_command(command: str) -> bool:
    """Return whether a command line runs tests, a linter or a build.

    >>> is_check_command("cd app && python -m pytest -q 2>&1 | tail -3")
    True
    >>> is_check_command("git commit -m 'run pytest'")
    False
    """
    return any(_is_check(step) for step in steps(command))


def _is_check(step: ProgramCall) -> bool:
    program, arguments = step.program, step.arguments
    if {"--version", "--help"} & set(arguments[-1:]) or arguments[:1] == ("install",):
        return False
    if program in _ALWAYS:
        return True
    words = [word for word in arguments if not word.startswith("-") and not _ASSIGNMENT.match(word)]
    if program in _SUBCOMMANDS and _SUBCOMMANDS[program] & set(arguments[:3]):
        return True
    if program in _TASK_RUNNERS:
        return _is_task(program, words)
    if program == "node":
        return "--test" in arguments
    if program in {"bash", "sh"} and words:
        program = words[0]
    is_script = "/" in program or program in {"lint", "runtests"} or program.endswith(_SCRIPT_ENDS)
    return is_script and bool(_SCRIPT.search(PurePosixPath(program).name))


def _is_task(program: str, words: list[str]) -> bool:
    if not words:
        return program in {"make", "gmake"}
    names = [word for word in words if word not in {"run", "r", "run-script", "x", "exec"}]
    if program in {"npm", "pnpm", "yarn"} and words[0] in {"t", "tst"}:
        return True
    if program in {"npm", "pnpm", "yarn", "bun", "mise", "task", "just"}:
        names = names[:1]
    return any(_TASK.search(word) for word in names)


def normal_form(command: str) -> str:
    """Remove the parts of a command that only change how its output is shown.

    Two runs of the same command then compare equal.

    >>> normal_form("cd app && pytest -q  2>&1 | tail -20") == normal_form("pytest -q")
    True
    """
    kept = [
        step
        for step in steps(command)
        if step.program not in _UNSEEN and (not step.inside or _is_check(step))
    ]
    shown = [" ".join((step.program, *step.arguments)) for step in kept]
    return " && ".join(shown) or " ".join(command.split())


def masks_exit_status(command: str) -> bool:
    """Return whether the exit status is not that of the checks: a pipe, ``|| true``, ``; echo``."""
    found = steps(command)
    if "pipefail" in command:
        return False
    checks = [step for step in found if _is_check(step)] or [step for step in found if step.follower != ";"]
    return any({step.follower, step.group_follower} - {"", "&&"} for step in checks if step is not found[-1])


def echoed_status(command: str) -> re.Pattern[str] | None:
    """Return a pattern for the line in which a command prints the exit status of its checks.

    The status is the pattern's first group. The result is ``None`` if the command prints no such line.

    >>> bool(echoed_status('pytest -q; echo "exit: $?"').match("exit: 1"))
    True
    """
    for before, step in _neighbours(command):
        text = " ".join(step.arguments)
        sign = _STATUS_SIGN.search(text)
        direct = before.follower == ";" or bool(sign and "{" in sign[0])
        if step.program == "echo" and sign and direct and (_is_check(before) or "{" in sign[0]):
            return re.compile(
                f"^{re.escape(text[: sign.start()])}(\\d{{1,3}}){re.escape(text[sign.end() :])}$"
            )
    return None


def cuts_output(command: str, shown: int | None = None) -> bool:
    """Return whether a command line shows only part of what its checks print.

    Args:
        command: The command line.
        shown: Number of lines that were shown. ``head`` and ``tail`` cut nothing if their limit is higher.
    """
    return bool(_cutters(command, shown))


def cuts_end(command: str, shown: int) -> bool:
    """Return whether a command line cuts off the end of what its checks print, which ``head`` does."""
    return "head" in _cutters(command, shown)


def _cutters(command: str, shown: int | None) -> set[str]:
    return {
        b.program
        for a, b in _neighbours(command)
        if a.follower in {"|", "|&"} and b.program in _CUTTERS and not _all_through(b, shown)
    }


def _all_through(step: ProgramCall, shown: int | None) -> bool:
    """Return whether ``head -20`` or ``tail -n 20`` cut nothing: fewer lines than its limit were shown."""
    if step.program not in {"head", "tail"} or shown is None:
        return False
    words = [word for word in step.arguments if word not in {"-n", "--lines"}]
    limits = [match[1] for word in words if (match := _LIMIT.match(word))]
    return len(limits) == len(words) <= 1 and shown < int([*limits, DEFAULT_LINES][0])


def filters_output(command: str) -> bool:
    """Return whether a command line may drop every line that its checks print.

    ``grep`` may; ``head``, ``tail`` and ``tee`` do not.
    """
    shown = {"head", "tail", "tee", "cat"}
    return any(a.follower == "|" and b.program not in shown for a, b in _neighbours(command))


def _neighbours(command: str) -> Iterator[tuple[ProgramCall, ProgramCall]]:
    """Yield each program with the next one; the programs of a substitution are not next to one outside."""
    found = steps(command)
    for number, step in enumerate(found, start=1):
        after = next((later for later in found[number:] if later.inside <= step.inside), None)
        if after is not None:
            yield step, after


def selection(command: str) -> Selection:
    """Return which checks a command line selects; an empty (unknown) command does not count as a full run.

    >>> selection("pytest -q"), selection("go test -run TestA ./cli/...").names
    (Selection(whole=True, paths=(), names=(), narrowed=False), ('TestA',))
    """
    checks = [step for step in steps(command) if _is_check(step)] or list(steps(command)[-1:])
    paths: list[str] = []
    names: list[str] = []
    narrowed = not command.strip()
    for step in checks:
        narrowed |= _narrow(step, paths, names)
    whole = not narrowed and not paths and not names
    return Selection(whole, tuple(paths), tuple(names), narrowed)


def _narrow(step: ProgramCall, paths: list[str], names: list[str]) -> bool:
    """Collect what a step selects; return whether a flag narrows the run without naming anything."""
    narrowed = False
    arguments = iter(_own_arguments(step))
    for word in arguments:
        flag, _, value = word.partition("=")
        if word.startswith("-") and word != "--":
            if (flag, step.program) in _PLAIN_FLAGS:
                continue
            if flag in _NAME_FLAGS:
                names.append(value or next(arguments, ""))
            elif flag in _NARROWING_FLAGS:
                narrowed = True
            elif flag in _VALUE_FLAGS and not value:
                next(arguments, "")
        elif "::" in word or (step.program == "cargo" and word not in _EVERYTHING):
            names.append(word)
        elif word not in _EVERYTHING and not word.isdigit() and not _ASSIGNMENT.match(word):
            paths.append(word)
    return narrowed


def _own_arguments(step: ProgramCall) -> list[str]:
    """Return a step's arguments without its subcommand or the name of its task."""
    words = list(step.arguments)
    if step.program in _TASK_RUNNERS and step.program not in _SUBCOMMANDS:
        return words[words.index("--") + 1 :] if "--" in words else [w for w in words if "::" in w]
    if step.program in _SUBCOMMANDS or step.program in {"golangci-lint", "biome", "vitest"}:
        return words[1:] if words and not words[0].startswith("-") else words
    return words[1:] if words[:1] == ["discover"] else words
