"""The parts of a command line whose effect cannot be read: script files, substitutions, unknown names."""

import re
from functools import lru_cache

from agentx.synthesis.language.words import vocabulary
from agentx.synthesis.shell.carriers import INTERPRETER
from agentx.synthesis.shell.command_line import ProgramCall, read_command
from agentx.synthesis.shell.effects import looks_only
from agentx.synthesis.shell.wrappers import is_shell

MOST = 5
"""Maximum number of parts that are named."""

_RUNS_A_TASK = vocabulary("make just task rake invoke nox gulp grunt source .")
_SYSTEM = re.compile(r"/(?:usr/(?:local/)?)?s?bin/[^/]+")
_SCRIPT = re.compile(r"\.(?:py|[cm]?[jt]s|rb|sh|bash|pl|php|R)$")
_TELLS = re.compile(r"--version|--help|-V")
_CODE = re.compile(r"-\w*[ce]")
_VARIABLE = re.compile(r"\$\{?\w")
_SUBSTITUTED = re.compile(r"\$\((?!\(|pwd\))|`|[<>]\(")
_LENGTH = 60


@lru_cache(maxsize=256)
def unread(command: str) -> tuple[str, ...]:
    """Return the parts of a command line that were not analysed; empty if all of it was read.

    >>> unread("npm test && bash deploy.sh"), unread("rm $(cat list)"), unread("cd app && rm notes.md")
    (('bash deploy.sh',), ('rm $(cat list)',), ())
    """
    if not command.strip() or looks_only(command):
        return ()
    line = read_command(command)
    if not line.understood:
        return (_short(command),)
    hides = any(call.inside for call in line.calls)
    parts = (_short(" ".join(call.words)) for call in line.calls if _is_unread(call, hides=hides))
    return tuple(dict.fromkeys(filter(None, parts)))[:MOST]


def _is_unread(call: ProgramCall, *, hides: bool) -> bool:
    file = any(not word.startswith("-") for word in call.arguments)
    if is_shell(call.program) or INTERPRETER.fullmatch(call.program):
        told = any(map(_TELLS.fullmatch, call.arguments)) or any(map(_CODE.fullmatch, call.arguments))
        return not told and (file or not call.given) and bool(call.words)
    if (
        _SCRIPT.search(call.program)
        or call.program in _RUNS_A_TASK
        or (call.program in {"npm", "pnpm", "yarn"} and call.arguments[:1] == ("run",))
    ):
        return True
    if call.words and "/" in call.words[0] and not _SYSTEM.fullmatch(call.words[0]):
        return True
    words = (call.program, *call.arguments, *(path for _, path in call.writes))
    return any(_VARIABLE.search(word) or (hides and _SUBSTITUTED.search(word)) for word in words)


def named(call: ProgramCall) -> str:
    """Return a call as it is named, shortened."""
    return _short(" ".join((*call.words, *(() if call.words else (call.program, *call.arguments)))))


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _LENGTH else f"{plain[: _LENGTH - 1]}…"
