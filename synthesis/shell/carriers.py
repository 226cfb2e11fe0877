"""Commands that a program may run although its own name does not say so: those that its arguments hold.

No table of wrappers is complete. So a program that is not known to leave its arguments alone counts as one
that may run each command in them: ``flock /tmp/lock git push``, ``su -c "git push"``.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from agentx.synthesis.language.words import vocabulary
from agentx.synthesis.shell.command_line import ProgramCall
from agentx.synthesis.shell.effects import shows_only
from agentx.synthesis.shell.wrappers import is_shell

INTERPRETER = re.compile(
    r"(?:python|pypy)[\d.]*|node(?:js)?|deno|bun|ruby|perl|php|Rscript|lua(?:jit)?|[gmn]?awk|osascript|julia|tclsh"
)
"""Programs that run code in a language other than a shell's."""

_LEAVE_ALONE = vocabulary(
    """
    : true false alias bg cd chgrp chmod chown cp declare dirs echo exit export false fg getopts hash help
    info jobs kill let ln local man mkdir mkfifo mv popd printf pushd pwd read readonly return rm rmdir
    set shift shred tee tldr touch truncate typeset ulimit umask unalias unlink unset wait whatis apropos
    which ack ag ugrep zgrep find xargs
    """
)
"""Programs of the shell and of POSIX that never run what their arguments say, and others that only look up.

What ``find -exec`` and ``xargs`` run is a call of its own.
"""

_SED_RUNS = re.compile(r"(?:^|[\d$/;}])\s*e(?:\s|$)|/\w*e\w*$")
_AWK_RUNS = re.compile(r"system|getline|[|>@]")
_DATABASES = vocabulary("psql mysql mariadb sqlite3 sqlcmd cqlsh clickhouse-client duckdb")
_DATABASE_RUNS = re.compile(r"\\|program|system|^\.|\n\.|outfile", re.IGNORECASE)

_TEXT_OPTIONS = re.compile(r"-[a-zA-Z]*m|--(?:message|title|body|description|subject|notes?|grep|author)")
"""Options whose value is a text for people."""

_SCRIPT_OPTIONS = re.compile(r"-[a-zA-Z]{0,3}c|--?(?:command|cmd|exec|execute|run|shell-command)")
"""Options whose value is a command line, in nearly all programs that have them."""

_CODE_OPTIONS = re.compile(r"-[a-zA-Z]{0,3}[ceErp]|--(?:eval|expression|print|command|execute|code|run)")
_STEERED = re.compile(r"[\s('\"]")


def may_run(call: ProgramCall) -> bool:
    """Return whether a program may run commands that its arguments hold.

    >>> [may_run(ProgramCall(name, ("git", "push"))) for name in ("nice2", "echo")]
    [True, False]
    """
    if call.program in {"sed", "gsed"}:
        return any(map(_SED_RUNS.search, call.arguments))
    if call.program == "man" and any(word.startswith(("-P", "--pager")) for word in call.arguments):
        return True
    looks = shows_only(msgspec.structs.replace(call, writes=()))
    return bool(call.program) and call.program not in _LEAVE_ALONE and not looks


def scripts_in(call: ProgramCall) -> Iterator[str]:
    """Yield the command lines in a program's options: ``-c``, ``--run``."""
    words = call.arguments
    for flag, value in pairwise(words):
        if _SCRIPT_OPTIONS.fullmatch(flag) and not INTERPRETER.fullmatch(call.program):
            yield value
    for word in words:
        name, sign, value = word.partition("=")
        if sign and _SCRIPT_OPTIONS.fullmatch(name) and name.startswith("--"):
            yield value


def text_of(words: Sequence[str], *, plain: bool = True) -> str:
    """Return a program's words as one text, without those that are only for people.

    Args:
        words: The words.
        plain: Whether a word without spaces and ``=`` counts.
    """
    return " ".join(
        word
        for flag, word in pairwise(("", *words))
        if not _TEXT_OPTIONS.fullmatch(flag)
        and not _TEXT_OPTIONS.fullmatch(word.partition("=")[0])
        and (plain or re.search(r"[\s=]", word))
    )


def code_in(call: ProgramCall) -> bool:
    """Return whether a program runs code on the command line: ``python -c``, ``awk``; shells are read."""
    words = call.arguments
    if INTERPRETER.fullmatch(call.program):
        if call.program.endswith("awk"):
            return any(map(_AWK_RUNS.search, words))
        return bool(call.given) or any(map(_CODE_OPTIONS.fullmatch, words))
    if call.program in _DATABASES:
        return any(map(_DATABASE_RUNS.search, (*words, call.given)))
    if is_shell(call.program) or not may_run(call) or call.program in {"git", "sed", "tar", "curl", "docker"}:
        return False
    return any(_CODE_OPTIONS.fullmatch(flag) and _STEERED.search(value) for flag, value in pairwise(words))
