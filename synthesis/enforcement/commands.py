"""Checks of command lines: programs that may not be run, and flags that they must or may not have."""

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal, NamedTuple

from agentx.storage.matching import matcher
from agentx.synthesis.enforcement.breaches import Breach, undecided
from agentx.synthesis.enforcement.paths import matches
from agentx.synthesis.language.words import vocabulary
from agentx.synthesis.memory.checks import CommandCheck
from agentx.synthesis.shell.carriers import may_run, scripts_in
from agentx.synthesis.shell.command_line import ProgramCall, located

_FLAG = re.compile(r"--?[A-Za-z0-9][\w.-]*(?:=.*)?", re.DOTALL)
_MAX_BUNDLE = 5
_MAX_SCRIPTS = 2
_LEAST_OPTION = 4
_SPELT = re.compile(r"[\\'\"$`{*?\[]")
"""Signs with which a shell spells a word in another way."""

_ALIAS = re.compile(r"alias\.(?P<name>[\w-]+)=(?P<value>.*)", re.DOTALL)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PREFIXES = vocabulary("sudo doas env time nohup command exec nice")
_VERBS = {
    "npm": {"i": "install", "add": "install", "in": "install", "un": "uninstall", "rm": "uninstall"},
    "pnpm": {"i": "install", "rm": "remove"},
    "bun": {"i": "install", "a": "add"},
    "kubectl": {"rm": "delete"},
}
"""By program, other names of subcommands."""

_PACKAGES = {"npm": "install", "pnpm": "add", "yarn": "add", "bun": "add"}
"""The subcommand that adds packages, by package manager of JavaScript."""

_SAME_VERBS = frozenset(("run", "test", "start", "exec", "publish", "version", "init", "create", "install"))
"""Subcommands that all package managers of JavaScript have."""


class _Run(NamedTuple):
    """A program with its arguments, and where it runs."""

    program: str
    arguments: tuple[str, ...]
    folder: str
    carried: Literal["", "words", "script"] = ""
    """Whether it is run by another program: as words after that program's own, or as a script."""


def broken_commands(check: CommandCheck, command: str) -> Iterator[Breach]:
    """Yield a breach for each program of a command line that breaks a check."""
    plain = command.casefold()
    if not _SPELT.search(command) and not any(_first(entry) in plain for entry in check.programs):
        return  # so that most command lines are not parsed
    for call, folder in located(command):
        for run in (*_runs(call, folder), *_carried(call, folder, check.programs)):
            entry = next((entry for entry in check.programs if _is_run(entry, run)), "")
            if not entry:
                continue
            try:
                applies = _applies(check, run)
            except matcher.Undecided as why:
                if _reason(check, entry, run):
                    yield undecided(why, f"`{entry}`")
                continue
            if applies and (reason := _reason(check, entry, run)):
                instead = f" Use `{check.instead}` instead." if check.instead else ""
                correction = "" if run.carried else _corrected(check, entry, call, command)
                yield Breach(reason=reason + instead, correction=correction)
                break


def _first(entry: str) -> str:
    return re.sub(r"[*?].*", "", entry.partition(" ")[0])


def _runs(call: ProgramCall, folder: str) -> Iterator[_Run]:
    """Yield a call with and without the programs that only run another one."""
    words = list(call.words)
    if call.program.startswith("git-"):
        yield _Run("git", (call.program.removeprefix("git-"), *call.arguments), folder)
    if call.program:
        yield _Run(re.sub(r"^(pip|python)[\d.]+$", r"\1", call.program), call.arguments, folder)
    while words and (_ASSIGNMENT.match(words[0]) or words[0].startswith("-")):
        words.pop(0)
    while words:
        name = posixpath.basename(words[0])
        if name != call.program or tuple(words[1:]) != call.arguments:
            yield _Run(name, tuple(words[1:]), folder)
        if name not in _PREFIXES:
            return
        words.pop(0)
        while words and (_ASSIGNMENT.match(words[0]) or words[0].startswith("-")):
            words.pop(0)


def _carried(call: ProgramCall, folder: str, entries: Sequence[str], depth: int = 0) -> Iterator[_Run]:
    """Yield what a program may run that its arguments hold, and what Git runs by an alias of this line."""
    if call.program == "git":
        yield from _aliased(call.arguments, folder)
    if not may_run(call):
        return
    for number, word in enumerate(call.arguments):
        name = posixpath.basename(word)
        if "/" in word and not word.startswith("/"):
            continue  # a file of the project may have any name
        if any(fnmatchcase(_program(name), entry.partition(" ")[0]) for entry in entries):
            yield _Run(name, call.arguments[number + 1 :], folder, "words")
    for script in scripts_in(call) if depth < _MAX_SCRIPTS else ():
        for inner, place in located(script):
            within = posixpath.join(folder, place)
            yield from (run._replace(carried="script") for run in _runs(inner, within))
            yield from _carried(inner, within, entries, depth + 1)


def _aliased(arguments: tuple[str, ...], folder: str) -> Iterator[_Run]:
    """Yield what ``git -c alias.NAME=VALUE NAME`` runs."""
    for number, word in enumerate(arguments):
        found = _ALIAS.fullmatch(word)
        if not found or found["name"] not in arguments[number + 1 :]:
            continue
        after = arguments[arguments.index(found["name"], number + 1) + 1 :]
        if found["value"].startswith("!"):
            for inner, place in located(found["value"][1:]):
                yield from (
                    run._replace(carried="script") for run in _runs(inner, posixpath.join(folder, place))
                )
        else:
            yield _Run("git", (*found["value"].split(), *after), folder, "script")


def _is_run(entry: str, run: _Run) -> bool:
    """Return whether an entry (``git push``) names a program with its subcommands."""
    program, *wanted = entry.split()
    if run.carried == "words" and not wanted:
        return False  # "make" among words can be anything
    if not fnmatchcase(_program(run.program), program):
        return False
    words, after_flag = iter(run.arguments), False
    for name in wanted:
        for word in words:
            if word == name or _VERBS.get(program, {}).get(word) == name:
                after_flag = False
                break
            if not after_flag and not word.startswith(("-", "+")):
                return False
            after_flag = word.startswith("-") and "=" not in word
        else:
            return False
    return True


def _program(name: str) -> str:
    """Return a program's name as rules say it: some file systems take any case, and Windows an ending."""
    return name.casefold().removesuffix(".exe")


def _applies(check: CommandCheck, run: _Run) -> bool:
    if not all(matcher.matches_any(form, run.arguments) for form in check.arguments):
        return False
    if not check.paths and not check.exceptions:
        return True
    values = (word.partition("=")[2] if word.startswith("-") else word for word in run.arguments)
    named = [posixpath.join(run.folder, value) for value in values if value]
    named.append(posixpath.join(run.folder, "."))
    if check.paths and not any(matches(check.paths, path) for path in named):
        return False
    return not any(matches(check.exceptions, path, unread=False) for path in named)


def _reason(check: CommandCheck, entry: str, run: _Run) -> str:
    """Return what is wrong with a call; empty if nothing is."""
    for flag in check.forbidden_flags:
        if _has(flag, run.arguments) or _forces(flag, entry, run.arguments):
            return f"`{entry}` may not be run with {flag}."
    for forms in _groups(check.required_flags):
        if not any(_has(flag, run.arguments) for flag in forms):
            return f"`{entry}` must be run with {' or '.join(forms)}."
    return "" if check.forbidden_flags or check.required_flags else f"`{entry}` may not be run."


def _forces(flag: str, entry: str, arguments: Sequence[str]) -> bool:
    """Return whether a push is forced without the flag: by ``+`` before a branch, or as a mirror."""
    if entry != "git push" or flag not in {"-f", "--force"}:
        return False
    return any(re.match(r"\+\S|remote\..+=\+|--mir", word) for word in arguments)


@lru_cache(maxsize=512)
def _groups(flags: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return the required flags, the short and the long form of one together.

    >>> _groups(("-s", "--signoff", "-n|--dry-run"))
    (('-s', '--signoff'), ('-n', '--dry-run'))
    """
    groups: list[tuple[str, ...]] = []
    for flag in flags:
        if "|" in flag:
            groups.append(tuple(flag.split("|")))
            continue
        last = groups[-1] if groups else ()
        pair = sorted((*last, flag), key=len) if len(last) == 1 else []
        if pair and re.fullmatch(r"-\w", pair[0]) and pair[1].casefold().startswith(f"-{pair[0]}".casefold()):
            groups[-1] = (*last, flag)
        else:
            groups.append((flag,))
    return tuple(groups)


def _has(flag: str, arguments: Sequence[str]) -> bool:
    """Return whether arguments have a flag, alone, in a bundle, or with its value.

    >>> _has("-f", ("-rf",)), _has("--force", ("--force-with-lease",)), _has("--a=b", ("--a", "b"))
    (True, False, True)
    """
    name, sign, value = flag.partition("=")
    letters: set[str] = set()
    for number, word in enumerate(arguments):
        if word == "--":
            break
        if not _FLAG.fullmatch(word):
            continue
        given, joined, its = word.partition("=")
        if _is_short_for(given, name):
            return not sign or its == value
        if _bare(given) == _bare(name) and (len(name.lstrip("-")) > 1 or given == name):
            its = its if joined else "".join(arguments[number + 1 : number + 2])
            if not sign or its == value:
                return True
        if re.fullmatch(rf"-[A-Za-z]{{1,{_MAX_BUNDLE - 1}}}", given):
            letters |= set(given[1:])
    is_short = re.fullmatch(rf"-[A-Za-z]{{1,{_MAX_BUNDLE - 1}}}", flag)
    return bool(is_short) and set(flag[1:]) <= letters


def _is_short_for(given: str, name: str) -> bool:
    """Return whether an option is a long one cut within a word, as Git and many others take it.

    >>> _is_short_for("--har", "--hard"), _is_short_for("--save", "--save-dev")
    (True, False)
    """
    cut = len(given)
    return (
        given.startswith("--")
        and cut >= _LEAST_OPTION
        and name.startswith(given)
        and name[cut:][:1].isalpha()
    )


def _bare(flag: str) -> str:
    return flag.lstrip("-")


# --- corrections --------------------------------------------------------------------------------------------


def _corrected(check: CommandCheck, entry: str, call: ProgramCall, command: str) -> str:
    """Return the whole command line as it may be run; empty if that is not mechanical.

    The words of the call must be written in the command line exactly once, so that nothing else is changed.
    """
    old = shlex.join([call.program, *call.arguments])
    text = next((form for form in (old, " ".join([call.program, *call.arguments])) if form in command), "")
    if not text:
        text = _as_written(command, call)
    alone = rf"(?<![^\s;&|(]){re.escape(text)}(?=[ \t]*(?:$|[\n;&|)#]|\d*[<>]))"
    places = list(re.finditer(alone, command))
    if not text or len(places) != 1:
        return ""
    new = ""
    if check.required_flags and not check.forbidden_flags and not check.instead:
        missing = [
            forms[-1]
            for forms in _groups(check.required_flags)
            if not any(_has(flag, call.arguments) for flag in forms)
        ]
        count = len(entry.split())
        named = [call.program, *call.arguments][:count]
        head = " ".join(named)
        if text.startswith(head) and not any(flag in _VALUED for flag in missing):
            new = f"{head} {' '.join(missing)}{text[len(head) :]}"
    elif check.instead and not (check.forbidden_flags or check.required_flags):
        new = _substituted(check.instead, entry, call, text)
    return f"{command[: places[0].start()]}{new}{command[places[0].end() :]}" if new else ""


def _as_written(command: str, call: ProgramCall) -> str:
    """Return the text of a call with its quotes, if the command line has no other program of this name."""
    found = re.findall(rf"(?:^|(?<=&&)|(?<=[;|(\n]))\s*({re.escape(call.program)}\s[^;&|<>()\n]*)", command)
    if len(found) != 1:
        return ""
    try:
        same = shlex.split(found[0]) == [call.program, *call.arguments]
    except ValueError:
        return ""
    return found[0].strip() if same else ""


_VALUED = vocabulary("--context --namespace -n --profile --region --project --cluster --env --config --file")
"""Flags with a value, which only the user knows."""


def _substituted(instead: str, entry: str, call: ProgramCall, text: str) -> str:
    """Return a call with another program, and its subcommand translated."""
    program, *words = instead.split()
    old = entry.split()
    rest = text[len(call.program) :].strip()
    if words or len(instead.split()) == len(old) == 1:
        head = " ".join([call.program, *call.arguments][: len(old)])
        if call.program in _PACKAGES and program in _PACKAGES and not words:
            return _as_other_installer(call, program, rest)
        return f"{instead}{text[len(head) :]}" if text.startswith(head) and len(old) == len(words) + 1 else ""
    return _as_other_installer(call, program, rest) if {call.program, program} <= _PACKAGES.keys() else ""


def _as_other_installer(call: ProgramCall, program: str, rest: str) -> str:
    """Return a call of one package manager of JavaScript as one of another.

    Only its own words are translated, so a call with flags before the subcommand is left alone.
    """
    verb = call.arguments[0] if call.arguments else "install"
    named = _VERBS.get(call.program, {}).get(verb, verb)
    after = rest[len(verb) :].strip() if rest.startswith(verb) else ""
    adds = any(not word.startswith("-") for word in call.arguments[1:])
    if named in ("install", "add") and adds:
        return f"{program} {_PACKAGES[program]} {after}"
    if named in _SAME_VERBS:
        return f"{program} {named} {after}".strip()
    return ""
