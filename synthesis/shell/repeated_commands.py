"""Compare a command line with one that the user refused: the same call, or one with the same effect.

Both are read, never run. Wrappers, quoting, the order of words, long and short flags and the place in a chain
do not matter. A weaker form (``git push`` after ``git push --force``) and what only shows something are not
repeats.
"""

import posixpath
import re
from functools import lru_cache
from itertools import pairwise

import msgspec

from agentx.synthesis.language.words import vocabulary
from agentx.synthesis.shell.command_line import ProgramCall, read_command
from agentx.synthesis.shell.effects import effects, looks_only
from agentx.synthesis.shell.wrappers import SHELLS

_DESTROYS = vocabulary(
    """
    rm rmdir unlink shred del remove delete destroy drop purge prune wipe erase truncate flush flushall
    flushdb
    clean uninstall stop kill killall pkill terminate shutdown poweroff reboot halt restart disable revoke
    mkfs dd format fresh nuke teardown down evict drain cancel reset
    """
)
"""Words of a command whose effect is lost data or a stopped service, whatever its target."""

_LEAVES = vocabulary(
    """
    publish push deploy release apply send upload promote rollout sendmail mail submit transfer pay merge
    login
    """
)
"""Words of a command whose effect leaves the machine, or cannot be taken back, whatever its target."""

_MILD = {"git": frozenset(("reset", "push")), "npm": frozenset(("restart",))}
"""Words that are harmless for a program without a strong flag."""

_STRONG_FLAGS = vocabulary(
    """
    force hard recursive all delete purge prune mirror privileged no-verify force-with-lease force-yes yolo
    no-preserve-root skip-checks allow-unrelated-histories overwrite
    """
)
_SHORT_STRONG = {
    "git push": {"f": "force", "d": "delete"},
    "git checkout": {"f": "force"},
    "git branch": {"D": "delete", "M": "force"},
    "git commit": {"n": "no-verify"},
    "git tag": {"d": "delete", "f": "force"},
    "git add": {"f": "force", "A": "all"},
    **{name: {"r": "recursive", "R": "recursive"} for name in ("rm", "chmod", "chown", "chgrp", "cp", "scp")},
    "kill": {"9": "force"},
}
"""Strong flags by their short names, by program and subcommand."""

_DRY = re.compile(r"--(?:dry-?run|help|version|check|diff|noop|no-act|simulate|whatif|list|plan)(?:=.*)?$")
_DRY_SHORT = {
    **dict.fromkeys(("git clean", "git push", "git add", "git rm", "rsync", "make", "git mv"), "n"),
    "apt": "s",
    "apt-get": "s",
    "ansible-playbook": "C",
}
_SHOWS = vocabulary(
    """
    get list ls show describe status info log logs diff view search find help version plan inspect config
    whoami top ps df outdated audit explain history check validate lint env cat head tail
    """
)
"""Words of a command that only shows something."""

_OBJECTS = vocabulary("release deploy mail submit transfer")
"""Words that are the object of a command if a verb follows: ``gh release view``."""

_MODE = re.compile(r"0?[0-7]{2}[2367]|(?:[ugo]*[oa][ugo]*)?\+[rx]*w[rwx]*")
"""A mode that lets everybody write."""

_SAME_VERB = {"i": "install", "un": "uninstall", "ci": "install", "rmi": "rm", "remove": "rm", "del": "rm"}
_TWO_WORDS = {"docker-compose": ("docker", "compose"), "podman-compose": ("podman", "compose")}

_FLAG = re.compile(r"-{1,2}[A-Za-z0-9]")
_CLUSTER = re.compile(r"-[A-Za-z]{2,4}")
_PARTS = re.compile(r"[:_\-/.\s;]+")
_SCRIPT = re.compile(r"[A-Za-z]+\(?[\w.(]*\s")
_VALUE = re.compile(r"\$\{(\w+)\}")
_FETCHES = vocabulary("curl wget fetch")
_WEAKER_TARGETS = vocabulary("recursive")


class _Step(msgspec.Struct, frozen=True):
    """One program of a command line, without what does not matter.

    Attributes:
        program: The program; ``sh`` for every shell.
        before: Its words before the verb, such as the group of a subcommand.
        verb: The word that says what is done.
        words: Its words without flags: verb, targets, and the values of flags.
        strong: Strong effects by name.
        lasting: Whether the verb alone has a lasting effect.
    """

    program: str
    before: frozenset[str]
    verb: str
    words: frozenset[str]
    strong: frozenset[str]
    lasting: bool

    @property
    def targets(self) -> frozenset[str]:
        """The words other than the verb."""
        return self.words - {self.verb}


def repeats_command(refused: str, command: str, root: str = "") -> bool:
    """Return whether a command line does again what a refused one would have done, or more.

    Args:
        refused: The command line that the user refused.
        command: The command line that is about to run.
        root: The directory that it runs in; absolute paths below it are relative ones.

    >>> forced = "git push --force origin main"
    >>> repeats_command(forced, "cd app && sudo git push origin main -f")
    True
    >>> repeats_command(forced, "git push origin main"), repeats_command(forced, "git push -f origin docs")
    (False, True)
    """
    refused, command = (_local(line, root) for line in (refused, command))
    if " ".join(refused.split()) == " ".join(command.split()):
        return True
    if looks_only(command):
        return False
    former, now = _steps(refused), _steps(command)
    key = [one for one in former if one.lasting or one.strong] or former
    if len(key) > 1 and not any(one.lasting or one.strong for one in key):
        return all(any(_repeats(one, step) for step in now) for one in key)
    return any(_repeats(one, step) for one in key for step in now) or _removes_again(refused, command)


def _repeats(former: _Step, now: _Step) -> bool:
    """Return whether one step does again what another did."""
    if former.program != now.program or former.verb != now.verb:
        return False
    if former.words == now.words and former.strong <= now.strong:
        return True
    if former.lasting:
        same = former.targets <= now.targets or bool(former.targets & now.targets - former.before)
        weaker = (former.strong & _WEAKER_TARGETS) - now.strong
        return same or (former.before <= now.before | now.targets and not weaker)
    if former.strong:
        return former.strong <= now.strong
    if not now.targets or not former.targets:  # `git push` alone does what its defaults say
        return former.verb == "push" and not now.targets
    return former.targets <= now.targets


def _removes_again(refused: str, command: str) -> bool:
    """Return whether a command removes a file that a refused one would have removed, by any program."""
    gone = removed_by(refused)
    going = removed_by(command) if gone else frozenset[str]()
    return any(
        one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")
        for one in gone
        for other in going
    )


@lru_cache(maxsize=512)
def removed_by(command: str) -> frozenset[str]:
    """Return the paths that a command line removes or moves away, normalised."""
    return frozenset(posixpath.normpath(one.path) for one in effects(command) if one.removes)


def _local(command: str, root: str) -> str:
    return command.replace(f"{root}/", "") if root else command


@lru_cache(maxsize=512)
def _steps(command: str) -> tuple[_Step, ...]:
    """Return the steps of a command line that do something."""
    calls = [call for call in read_command(command).calls if call.program]
    fetched = any(call.program in _FETCHES for call in calls)
    found = []
    for number, call in enumerate(calls):
        piped = number > 0 and calls[number - 1].follower in {"|", "|&"}
        step = _step(call, piped=piped or fetched)
        if step is not None:
            found.append(step)
    return tuple(found)


def _step(call: ProgramCall, *, piped: bool) -> _Step | None:
    program, arguments = call.program, list(call.arguments)
    if program in SHELLS:
        files = [word for word in arguments if not word.startswith("-")]
        if piped:  # whatever was fetched is run
            return _Step("sh", frozenset(), "", frozenset(), frozenset(("fetched",)), lasting=False)
        if not files:
            return None
        program, arguments = posixpath.basename(files[0]), arguments[arguments.index(files[0]) + 1 :]
    if program in {"cd", "pushd", "popd", "export", "set", "source", "."}:
        return None
    program, *first = _TWO_WORDS.get(program, (program,))
    if program == "git" and arguments[:1] in (["-C"], ["-c"]):
        arguments = arguments[2:]
    words, flags = _words([*first, *arguments])
    verb = _verb(program, words)
    values = {_word(value) for flag, value in pairwise(arguments) if _FLAG.match(flag)}
    before = frozenset(words[: words.index(verb)]) - values if verb in words else frozenset()
    name = f"{program} {verb}" if verb else program
    if _shows(program, name, verb, call.arguments, flags) or looks_only(_plain(call)):
        return None
    strong = _strong(program, name, words, flags)
    acts = {*_PARTS.split(verb.casefold()), *_PARTS.split(program.casefold())}
    lasting = bool(acts & (_DESTROYS | _LEAVES)) and not acts & _MILD.get(program, frozenset())
    spelled = _SAME_VERB.get(verb.casefold(), verb.casefold())
    same = frozenset(spelled if word == verb else word for word in words)
    return _Step(program, before, spelled, same, strong, lasting)


def _plain(call: ProgramCall) -> str:
    return " ".join(
        (call.program, *(word for word in call.arguments if not re.search(r"[\s'\"$;|&<>()]", word)))
    )


def _words(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Return the words of a program, normalised, and its flags without dashes."""
    words: list[str] = []
    flags: list[str] = []
    for word in arguments:
        if _FLAG.match(word):
            name, _, value = word.partition("=")
            short = _CLUSTER.fullmatch(name) and not value
            flags += list(name[1:]) if short else [name.lstrip("-")]
            words += [_word(value)] if value else []
        elif word not in {"-", "--", ""}:
            words.append(_word(word))
    return words, flags


def _word(word: str) -> str:
    """Return a word without spelling: paths and statements are normalised."""
    word = _VALUE.sub(r"$\1", word)
    if _SCRIPT.match(word):
        return " ".join(word.casefold().rstrip("; \n").split())
    return (word.removeprefix("./").rstrip("/") or word) if "://" not in word else word.rstrip("/")


def _verb(program: str, words: list[str]) -> str:
    """Return the word that says what a program does: one with a lasting effect, else the first."""
    plain = [word for word in words if re.fullmatch(r"[A-Za-z][\w:.-]*", word)]
    if plain[0:1] and plain[0] in _OBJECTS and set(plain[1:2]) & (_SHOWS | _DESTROYS | _LEAVES):
        return plain[1]
    if program in _DESTROYS | _LEAVES | {"chmod", "chown", "cp", "mv"}:
        return ""
    known = (word for word in plain if set(_PARTS.split(word.casefold())) & (_DESTROYS | _LEAVES))
    first = plain[0] if plain else ""
    return first if first in {"push", "commit", "install", "add"} else next(known, first)


def _shows(program: str, name: str, verb: str, arguments: tuple[str, ...], flags: list[str]) -> bool:
    """Return whether a step only shows something, or only says what it would do."""
    if any(map(_DRY.match, arguments)) or arguments in {("-h",), ("-V",), ("help",)}:
        return True
    dry = _DRY_SHORT.get(name) or _DRY_SHORT.get(program)
    return bool(dry and dry in flags) or verb.rpartition(":")[2] in _SHOWS


def _strong(program: str, name: str, words: list[str], flags: list[str]) -> frozenset[str]:
    """Return the strong effects of a step."""
    short = _SHORT_STRONG.get(name) or _SHORT_STRONG.get(program, {})
    found = {short.get(flag, flag) for flag in flags}
    strong = {flag.removesuffix("-with-lease") for flag in found if flag in _STRONG_FLAGS}
    if name == "git push":
        strong |= {"force" for word in words if word.startswith("+")}
        strong |= {"delete" for word in words if word.startswith(":")}
    if program == "chmod" and any(map(_MODE.fullmatch, words)):
        strong.add("open to all")
    scripts = (word for word in words if _SCRIPT.match(word) or word.casefold() in _DESTROYS)
    strong |= {part for word in scripts for part in _PARTS.split(word.casefold()) if part in _DESTROYS}
    return frozenset(strong - {name.partition(" ")[2].casefold()})
