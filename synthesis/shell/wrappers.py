"""Programs that run others: wrappers such as ``timeout 60``, shells, ``find -exec`` and ``xargs``."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

_WRAPPERS: dict[str, int] = {
    "sudo": 0, "time": 0, "nice": 0, "env": 0, "exec": 0, "command": 0, "nohup": 0, "stdbuf": 0,
    "xvfb-run": 0, "timeout": 1, "gtimeout": 1, "npx": 0, "bunx": 0, "pnpx": 0, "doas": 0, "setsid": 0,
}  # fmt: skip
"""Programs that run another program, with the number of their own arguments that come first."""

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
"""Programs whose subcommand ``run`` or ``exec`` runs another program."""

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

SHELLS = {"bash", "sh", "zsh", "dash", "ksh"}
_SHELL = re.compile(r"[a-z]{0,4}sh")
_NO_SHELLS = {"ssh", "rsh", "mosh", "push", "hash"}
_SHELL_WORDS = {"test", "true", "false", "time"}
_SCRIPT_FLAG = re.compile(r"-\w*c")
_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=")
_XARGS_VALUES = {"-n", "-P", "-L", "-d", "-s", "-a", "-E", "-I", "--max-args", "--max-procs", "--delimiter"}


def is_shell(program: str) -> bool:
    """Return whether a program is a shell, by its name: that of all but a few ends in ``sh``.

    >>> is_shell("fish"), is_shell("pwsh"), is_shell("ssh")
    (True, True, False)
    """
    return program in SHELLS or (bool(_SHELL.fullmatch(program)) and program not in _NO_SHELLS)


def script_of(program: str, arguments: Sequence[str], given: str) -> str | None:
    """Return the script that a shell runs, now or later; ``None`` if it is no shell, or reads a file."""
    if program == "eval":
        return " ".join(arguments)
    if program == "trap":
        named = [word for word in arguments if word != "--"]
        return named[0] if len(named) > 1 and not named[0].startswith("-") else None
    if not is_shell(program):
        return None
    for number, word in enumerate(arguments):
        if _SCRIPT_FLAG.fullmatch(word):
            rest = [later for later in arguments[number + 1 :] if not re.match(r"[-+]", later)]
            return (rest[0] if program in SHELLS else " ".join(rest)) if rest else ""
        if not word.startswith(("-", "+")) and arguments[number - 1] not in {"-o", "+o", "-O", "+O"}:
            return None
    return given or None


def carried(program: str, arguments: Sequence[str]) -> list[list[str]]:
    """Return the commands that ``find -exec`` and ``xargs`` run, with ``{}`` for the names that they add."""
    if program == "find":
        found: list[list[str]] = []
        words = iter(arguments)
        for word in words:
            if word in {"-exec", "-execdir", "-ok", "-okdir"}:
                found.append([])
                for part in words:
                    if part == ";" or (part == "+" and found[-1][-1:] == ["{}"]):
                        break
                    found[-1].append(part)
        return found
    if program != "xargs":
        return []
    rest, mark = list(arguments), ""
    while rest and rest[0].startswith("-"):
        if rest[0].startswith(("-I", "-i", "--replace")):
            mark = (
                rest[1] if rest[0] == "-I" and len(rest) > 1 else rest[0][2:] if rest[0][:2] == "-I" else "{}"
            )
        rest = rest[2:] if rest[0] in _XARGS_VALUES else rest[1:]
    if not rest:
        return []
    return [[word.replace(mark, "{}") for word in rest] if mark else [*rest, "{}"]]


_PLAIN_WRAPPERS = re.compile(r"sudo|time|timeout|gtimeout|command|exec|nice|\d+(?:\.\d+)?[smhd]?")


def runs_as_written(words: Sequence[str], named: Sequence[str]) -> bool:
    """Return whether a command runs the program of this name, with wrappers that change only time or user."""
    before = words[: len(words) - len(named) + 1]
    path = before[-1] if before else ""
    plain = path == (named[0] if named else "") or path.startswith(("/bin/", "/usr/bin/"))
    return plain and all(map(_PLAIN_WRAPPERS.fullmatch, before[:-1]))


def unwrapped(words: Sequence[str]) -> list[str]:
    """Remove environment assignments and programs that only run another program."""
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
    """Return the command that a wrapper runs; ``None`` if the program is not a wrapper."""
    if name == "command" and rest[:1] in (["-v"], ["-V"]):
        return None
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
