"""What a command line says about a run: whether it is a check at all, and what it was narrowed to.

A command line is read as a shell would split it, never run. What cannot be split (an open quote) is split at white
space: a guess about a command may cost an issue that stays open a while longer, nothing else.
"""

import re
import shlex
from functools import lru_cache
from itertools import pairwise
from pathlib import PurePosixPath

import msgspec

MAX_COMMAND = 10_000


class Step(msgspec.Struct, frozen=True):
    """One program of a command line, without what wraps it (``timeout 60``, ``uv run``, ``python -m``).

    Attributes:
        program: Base name of the program.
        arguments: Its arguments, subcommand included.
        follower: What joins it to the next step: ``|``, ``&&``, ``||``, ``;``, ``&`` or nothing.
        group_follower: What stands behind the brackets around it: of ``(a && b) | c``, a's is ``|``.
    """

    program: str
    arguments: tuple[str, ...] = ()
    follower: str = ""
    group_follower: str = ""


class Selection(msgspec.Struct, frozen=True):
    """What a command narrows a run to.

    Attributes:
        whole: Nothing narrows it.
        paths: Files, directories, packages or modules that it is narrowed to; empty for all of them.
        names: Names, parts of names or patterns of checks that it is narrowed to; empty for all of them.
    """

    whole: bool
    paths: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


_TASK = re.compile(
    r"(?:^|[:_.\-/])(?:unit|e2e|integration)?(?:tests?|specs?|lint|check|checks|build|compile|fmt|format|vet|typecheck"
    r"|type-check|types|tsc|ci|verify|validate|dup|clippy|mypy|ruff|eslint|pytest|jest|vitest|coverage)(?:$|[:_.\-\d])"
)
_SCRIPT = re.compile(
    r"^(?:run[-_]?)?(?:tests?|lint|checks?|build|ci)(?:\.\w+)?$|^run[-_]?tests?[-_.]|^test_\w+\.py$|[-_](?:tests?|lint)\.\w+$"
)

_WRAPPERS: dict[str, int] = {
    "sudo": 0, "time": 0, "nice": 0, "env": 0, "exec": 0, "command": 0, "nohup": 0, "stdbuf": 0, "xvfb-run": 0,
    "timeout": 1, "gtimeout": 1, "npx": 0, "bunx": 0, "pnpx": 0, "then": 0, "do": 0, "if": 0, "!": 0, "{": 0, "(": 0,
}  # fmt: skip
"""Programs that run another one, and how many arguments of their own come first."""

_RUN_WRAPPERS = {
    "uv",
    "poetry",
    "pipenv",
    "pdm",
    "hatch",
    "rye",
    "conda",
    "mamba",
    "micromamba",
    "bundle",
    "pixi",
}
"""Programs whose ``run`` or ``exec`` runs another one."""

_WRAPPER_VALUES = {
    "-n",
    "--name",
    "-p",
    "--prefix",
    "--with",
    "--extra",
    "--group",
    "--python",
    "-s",
    "-k",
    "-u",
    "-e",
    "-w",
}

_ALWAYS = {
    "pytest", "py.test", "unittest", "tox", "nox", "mypy", "pyright", "basedpyright", "flake8", "pylint", "pyflakes",
    "bandit", "doctest", "compileall", "py_compile", "jest", "vitest", "mocha", "ava", "tap", "eslint", "tsc", "vue-tsc",
    "biome", "gcc", "g++", "cc", "c++", "clang", "clang++", "rustc", "javac", "kotlinc", "ctest", "ninja", "rspec",
    "rubocop", "minitest", "phpunit", "phpstan", "shellcheck", "golangci-lint", "staticcheck", "gofmt", "goimports",
    "gotestsum", "codespell", "typos", "vulture", "markdownlint", "stylelint", "hadolint", "runtests.py",
    "check_document", "trial", "nose2", "clang-tidy", "cppcheck", "yamllint", "prettier", "black", "isort",
}  # fmt: skip
"""Programs whose every run is a check."""

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

_TASK_RUNNERS = {"make", "gmake", "just", "task", "rake", "gradle", "gradlew", "mise", "npm", "pnpm", "yarn", "bun",
                 "turbo", "nx", "invoke", "composer", "mage", "lerna", "hatch", "pdm", "poe", "ant", "mix"}  # fmt: skip
"""Programs whose argument names a task of the project: a check where that name says so."""

_NAME_FLAGS = {"-k", "-m", "-run", "--run", "-t", "--testNamePattern", "--test-name-pattern", "-g", "--grep", "-f",
               "--fgrep", "--filter", "-test.run", "--test", "-e", "--example", "-bench"}  # fmt: skip
"""Flags whose value narrows a run to names."""

_NARROWING_FLAGS = {"--lf", "--last-failed", "--sw", "--stepwise", "--onlyChanged", "--onlyFailures", "--changed",
                    "--findRelatedTests", "--deselect", "--ignore", "--tag", "--only-failures", "--shard", "--lib",
                    "--doc", "-short", "--related", "--bail-early", "--skip", "--diff"}  # fmt: skip

_VALUE_FLAGS = {
    "-p", "-n", "-c", "-o", "-W", "-j", "-C", "-r", "-tags", "-timeout", "-count", "-parallel", "-coverprofile", "-covermode",
    "-cover", "-coverpkg", "-cpu", "-ldflags", "-mod", "--maxfail", "--tb", "--config", "--config-file", "--ext",
    "--max-warnings", "--features", "--rootdir", "--cov", "--durations", "--color", "--select", "--jobs", "--settings",
    "--verbosity", "--reporter", "--manifest-path", "--target", "--timeout", "--numprocesses", "--dist", "--format", "-E",
    "--output-format", "--exclude", "--project", "--package", "--parallel", "--target-dir", "-I", "-D", "-L", "-std", "-s", "--cache-dir", "-x",
}  # fmt: skip
"""Flags whose value is the next word and narrows nothing (the lists of the runners are joined: a clash is harmless)."""

_COMPILERS = ("gcc", "g++", "cc", "c++", "clang", "clang++")
_PLAIN_FLAGS = {("--test", "node"), ("-e", "tox"), *(("-c", compiler) for compiler in _COMPILERS)}
"""Flags without a value where another program's have one."""

_SCRIPT_ENDS = (".py", ".sh", ".js", ".ts", ".rb")
_SHELLS = {"bash", "sh", "zsh", "dash"}
_SHELL_COMMAND = re.compile(r"^-\w*c$")
_SHELL_WORDS = {"test", "true", "false", "time"}
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
_OPERATOR = re.compile(r"^[|&;()<>]+$")
_GLUED = re.compile(r"[()]|[^()]+")
_LIMIT = re.compile(r"^(?:-n?|--lines=)?(\d{1,9})$")
DEFAULT_LINES = 10
"""Lines that ``head`` and ``tail`` show where nothing else is said."""

_STATUS_SIGN = re.compile(r"\$\?|\$\{PIPESTATUS\[0\]\}|\$\{pipestatus\[1\]\}")
_OPENING = {"(", "{"}
_REDIRECTIONS = {"<", ">", ">>", ">&", "&>"}
_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=")
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)")


@lru_cache(maxsize=256)
def steps(command: str) -> tuple[Step, ...]:
    """Split a command line into the programs that it runs, each without what wraps it.

    >>> [step.program for step in steps("cd app && timeout 60 uv run pytest -q 2>&1 | tail -5")]
    ['cd', 'pytest', 'tail']
    """
    found: list[Step] = []
    words: list[str] = []
    groups: list[int] = []
    closed: int | None = None
    for sign in _tokens(command[:MAX_COMMAND]):
        if sign in _OPENING and (sign == "(" or not words):
            found += _step(words, sign)
            words, closed = [], None
            groups.append(len(found))
        elif sign == ")" or (sign == "}" and not words):
            found += _step(words, "")
            words, closed = [], groups.pop() if groups else None
        elif not _OPERATOR.match(sign) or sign in _REDIRECTIONS:
            words.append(sign)
        else:
            found += _step(words, sign)
            if closed is not None and not words:
                found[closed:] = _in_group(found[closed:], sign)
            words, closed = [], None
    found += _step(words, "")
    if found:
        found[-1] = msgspec.structs.replace(found[-1], follower="", group_follower="")
    return tuple(found)


def _step(words: list[str], follower: str) -> list[Step]:
    """The step of these words; of ``bash -c "a && b"`` those that the shell runs."""
    match _unwrap(words):
        case [shell, flag, script, *_] if shell in _SHELLS and _SHELL_COMMAND.match(flag):
            inner = list(steps(script))
            return _in_group(inner, follower) if follower else inner
        case [program, *arguments]:
            return [Step(program, tuple(arguments), follower)]
        case _:
            return []


def _in_group(inner: list[Step], follower: str) -> list[Step]:
    """The steps of a group with what stands behind its bracket; to its last step that is next."""
    inner = [msgspec.structs.replace(step, group_follower=follower) for step in inner]
    return [*inner[:-1], *(msgspec.structs.replace(step, follower=follower) for step in inner[-1:])]


def _tokens(command: str) -> list[str]:
    heredoc = _HEREDOC.search(command)
    if heredoc:  # what follows is a program's input, not commands
        command = command[: heredoc.start()]
    command = re.sub(r"\\\n", " ", command)
    command = re.sub(r"\d?>&\d|&>\s*/dev/null|\d?>\s*/dev/null", " ", command).replace("\n", " ; ")
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        lexer.commenters = ""
        return [
            part for token in lexer for part in (_GLUED.findall(token) if _OPERATOR.match(token) else [token])
        ]
    except ValueError:
        return command.split()


def _unwrap(words: list[str]) -> list[str]:
    """Drop environment assignments and programs that only run another one."""
    words = list(words)
    for _ in range(8):
        while words and (_ASSIGNMENT.match(words[0]) or words[0].startswith("-")):
            words = words[1:]
        if not words:
            return []
        name = PurePosixPath(words[0].strip("()")).name or words[0]
        inner = _inner(name, words[1:])
        if inner is None:  # a project's own bin/test is not the shell's test
            return [words[0] if name in _SHELL_WORDS and "/" in words[0] else name, *words[1:]]
        words = inner
    return words


def _inner(name: str, rest: list[str]) -> list[str] | None:
    """What a wrapper runs; ``None`` where the program is no wrapper."""
    if name in _WRAPPERS:
        rest = _without_flags(rest)
        return rest[_WRAPPERS[name] :] or None
    if name in _RUN_WRAPPERS and rest and rest[0] in {"run", "exec"} and len(rest) > 1:
        return _without_flags(rest[1:]) or None
    if name in {"npm", "pnpm", "yarn"} and rest[:1] == ["exec"]:
        return _without_flags(rest[1:]) or None
    if name in {"docker", "docker-compose", "podman"} and (place := {"exec", "run"} & set(rest[:3])):
        return _without_flags(rest[rest.index(place.pop()) + 1 :])[1:] or None
    if re.fullmatch(r"(python|pypy)[\d.]*", name):
        return _python(rest)
    return None


def _python(rest: list[str]) -> list[str] | None:
    while rest and rest[0].startswith("-") and rest[0] not in {"-m", "-c"}:
        rest = rest[2:] if rest[0] in {"-W", "-X"} else rest[1:]
    if rest[:1] == ["-m"] and len(rest) > 1:
        return rest[1:]
    return rest if rest and rest[0].endswith(".py") else None


def _without_flags(words: list[str]) -> list[str]:
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] in _WRAPPER_VALUES else words[1:]
    return words


def is_check_command(command: str) -> bool:
    """Whether a command line runs tests, a linter or a build.

    >>> is_check_command("cd app && python -m pytest -q 2>&1 | tail -3"), is_check_command("git commit -m 'run pytest'")
    (True, False)
    """
    return any(_is_check(step) for step in steps(command))


def _is_check(step: Step) -> bool:
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
    """A command without what only changes how its output is shown, so that two runs of it can be told the same.

    >>> normal_form("cd app && pytest -q  2>&1 | tail -20") == normal_form("pytest -q")
    True
    """
    kept = [
        step
        for step in steps(command)
        if step.program not in _CUTTERS | {"cd", "tee", "cat", "echo", "true", "set"}
    ]
    shown = [" ".join((step.program, *step.arguments)) for step in kept]
    return " && ".join(shown) or " ".join(command.split())


def masks_exit_status(command: str) -> bool:
    """Whether the exit status of a command line is not that of its checks: a pipe, ``|| true``, ``; echo``."""
    found = steps(command)
    if "pipefail" in command:
        return False
    checks = [step for step in found if _is_check(step)] or [step for step in found if step.follower != ";"]
    return any({step.follower, step.group_follower} - {"", "&&"} for step in checks if step is not found[-1])


def echoed_status(command: str) -> re.Pattern[str] | None:
    """The line by which a command line prints the exit status of its checks, as the first group; ``None`` where none does.

    >>> bool(echoed_status('pytest -q; echo "exit: $?"').match("exit: 1"))
    True
    """
    for before, step in pairwise(steps(command)):
        text = " ".join(step.arguments)
        sign = _STATUS_SIGN.search(text)
        direct = before.follower == ";" or bool(sign and "{" in sign[0])
        if step.program == "echo" and sign and direct and (_is_check(before) or "{" in sign[0]):
            return re.compile(
                f"^{re.escape(text[: sign.start()])}(\\d{{1,3}}){re.escape(text[sign.end() :])}$"
            )
    return None


def cuts_output(command: str, shown: int | None = None) -> bool:
    """Whether a command line shows only part of what its checks print.

    Args:
        command: The command line.
        shown: Lines that were shown: ``head`` and ``tail`` cut nothing where they let more through.
    """
    return bool(_cutters(command, shown))


def cuts_end(command: str, shown: int) -> bool:
    """Whether a command line cuts off the end of what its checks print: by ``head``, that is."""
    return "head" in _cutters(command, shown)


def _cutters(command: str, shown: int | None) -> set[str]:
    return {
        b.program
        for a, b in pairwise(steps(command))
        if a.follower in {"|", "|&"} and b.program in _CUTTERS and not _all_through(b, shown)
    }


def _all_through(step: Step, shown: int | None) -> bool:
    """Whether ``head -20`` or ``tail -n 20`` let all through: fewer lines came out of it."""
    if step.program not in {"head", "tail"} or shown is None:
        return False
    words = [word for word in step.arguments if word not in {"-n", "--lines"}]
    limits = [match[1] for word in words if (match := _LIMIT.match(word))]
    return len(limits) == len(words) <= 1 and shown < int([*limits, DEFAULT_LINES][0])


def filters_output(command: str) -> bool:
    """Whether a command line may drop every line that its checks print (``grep``), unlike ``head``, ``tail`` and ``tee``."""
    found = steps(command)
    return any(
        a.follower == "|" and b.program not in {"head", "tail", "tee", "cat"} for a, b in pairwise(found)
    )


def selection(command: str) -> Selection:
    """What a command line narrows its checks to; an unknown command (empty) is not taken for a full run.

    >>> selection("pytest -q"), selection("go test -run TestA ./cli/...").names
    (Selection(whole=True, paths=(), names=()), ('TestA',))
    """
    checks = [step for step in steps(command) if _is_check(step)] or list(steps(command)[-1:])
    paths: list[str] = []
    names: list[str] = []
    narrowed = not command.strip()
    for step in checks:
        narrowed |= _narrow(step, paths, names)
    whole = not narrowed and not paths and not names
    return Selection(whole, tuple(paths), tuple(names))


def _narrow(step: Step, paths: list[str], names: list[str]) -> bool:
    """Collect what a step selects; true where a flag narrows it in a way that names nothing."""
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


def _own_arguments(step: Step) -> list[str]:
    """A step's arguments without its subcommand or the name of its task."""
    words = list(step.arguments)
    if ">" in words or ">>" in words:
        words = words[: min(words.index(sign) for sign in (">", ">>") if sign in words)]
    if step.program in _TASK_RUNNERS and step.program not in _SUBCOMMANDS:
        return words[words.index("--") + 1 :] if "--" in words else [w for w in words if "::" in w]
    if step.program in _SUBCOMMANDS or step.program in {"golangci-lint", "biome", "vitest"}:
        return words[1:] if words and not words[0].startswith("-") else words
    return words[1:] if words[:1] == ["discover"] else words
