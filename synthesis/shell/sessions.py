"""Programs that read commands from a person: what is typed there later passes no gate."""

import re
from itertools import takewhile

from agentx.synthesis.language.words import vocabulary
from agentx.synthesis.shell.carriers import may_run, scripts_in
from agentx.synthesis.shell.command_line import ProgramCall, read_command
from agentx.synthesis.shell.wrappers import is_shell, unwrapped

_TELLS = re.compile(r"--(?:version|help|usage|list\S*)|-[VhH]|-VV|-ls|-\?")
"""Options with which a program only says something."""

_INTERPRETER = re.compile(r"(?:python|pypy)[\d.]*|node(?:js)?|php|ruby|perl|lua(?:jit)?|julia|tclsh|R|deno")
_ASKED = re.compile(r"(?:python|pypy)[\d.]*|node(?:js)?|ipython")
_STARTS = re.compile(r"-[iqubBEIsSOal]+|--(?:interactive|no-\w+|quiet|login)")
_PROMPTS = vocabulary(
    "irb pry iex ghci jshell ipython bpython ptpython scala erl octave gdb lldb mongosh mongo redis-cli bc dc"
    " ed tmux screen nix-shell script"
)
"""Programs that have a prompt if they are given nothing to do."""

_DATABASES = vocabulary("psql mysql mariadb sqlite3 sqlcmd cqlsh clickhouse-client duckdb")
_QUERIES = re.compile(
    r"-[a-zA-Z]*[cfeQl]|--(?:command|file|execute|query|list|init|queries-file)(?:=.*)?|-cmd|-[kK]"
)
_SSH_VALUES = re.compile(r"-[46AaCfGgKkMNnqsTtVvXxYy]*[BbcDEeFIiJLlmOopQRSWw]")
_SSH_SILENT = re.compile(r"-[a-zA-Z]*[NfVOQG]")
_TERMINAL = re.compile(r"-(?:it|ti)|--tty")
_CONTAINERS = vocabulary("docker podman nerdctl kubectl oc")
_SHELL_VALUES = {"-o", "+o", "-O", "+O", "--rcfile", "--init-file"}


def sessions(command: str) -> tuple[ProgramCall, ...]:
    """Return the programs of a command line that wait for commands from somebody who types.

    >>> [call.words for call in sessions("cd app && bash -i")]
    [('bash', '-i')]
    >>> sessions("bash -c 'ls'"), sessions("ls | bash"), sessions("python --version")
    ((), (), ())
    """
    return tuple(call for call in read_command(command).calls if _is_session(call))


def _is_session(call: ProgramCall) -> bool:
    words, program = call.arguments, call.program
    if call.fed or any(map(_TELLS.fullmatch, words)):
        return False
    if "--" in words[:-1] and may_run(call):
        rest = unwrapped(words[words.index("--") + 1 :])
        return bool(rest) and _is_session(ProgramCall(rest[0], tuple(rest[1:])))
    if is_shell(program):
        return _is_bare_shell(words)
    if _INTERPRETER.fullmatch(program):
        return all(map(_STARTS.fullmatch, words))
    scripts = any(sessions(script) for script in scripts_in(call))
    return scripts or _stays_open(call.words) or _is_bare(program, words)


def _is_bare(program: str, words: tuple[str, ...]) -> bool:
    """Return whether a program that is neither a shell nor an interpreter is given nothing to run."""
    operands = [word for word in words if not word.startswith("-")]
    if program in {"sudo", "doas"}:
        return bool({"-i", "-s", "--login", "--shell"} & set(words))
    if program in {"ssh", "mosh"}:
        return _is_login(words)
    if program == "su":
        return not any(re.fullmatch(r"-\w*c|--command(?:=.*)?", word) for word in words)
    if program in _CONTAINERS:
        verbs = {"run", "exec", "attach", "debug"} & set(words[:3])
        return bool(verbs) and any(map(_TERMINAL.fullmatch, words))
    if any(map(_QUERIES.fullmatch, words)):
        return False
    if program in _DATABASES:
        return program not in {"sqlite3", "duckdb"} or len(operands) < 2  # noqa: PLR2004 - file, statement
    return program in _PROMPTS and not operands


def _stays_open(words: tuple[str, ...]) -> bool:
    """Return whether an interpreter is asked for its prompt after what it runs: ``python -i x.py``."""
    number = next((n for n, word in enumerate(words) if _ASKED.fullmatch(word.rpartition("/")[2])), None)
    if number is None:
        return False
    flags = takewhile(lambda word: word.startswith("-"), words[number + 1 :])
    return any(re.fullmatch(r"-[a-zA-Z]*i|--interactive", flag) for flag in flags)


def _is_bare_shell(words: tuple[str, ...]) -> bool:
    """Return whether a shell is given neither a script nor a file."""
    if any(re.fullmatch(r"-\w*s", word) for word in words):
        return True
    pairs = zip(("", *words), words, strict=False)
    return not any(
        re.fullmatch(r"-\w*c|-Command|-File|-EncodedCommand", word)
        or (not word.startswith(("-", "+")) and before not in _SHELL_VALUES)
        for before, word in pairs
    )


def _is_login(words: tuple[str, ...]) -> bool:
    """Return whether ``ssh`` is given a host and no command."""
    if any(word.startswith("git@") for word in words):
        return False  # a Git server gives no shell
    operands, rest = 0, iter(words)
    for word in rest:
        if word.startswith("-"):
            if _SSH_SILENT.fullmatch(word):
                return False
            if _SSH_VALUES.fullmatch(word):
                next(rest, "")
        else:
            operands += 1
    return operands == 1
