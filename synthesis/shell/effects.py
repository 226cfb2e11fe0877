"""Predict from its text what a command line does: the files that it writes or removes, or nothing at all.

Nothing is run. Effects known only at run time (a name that a program generates, a script stored in a file)
are not seen here. If the command runs in a copy, its result is checked instead.
"""

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

import msgspec

from agentx.synthesis.language.words import vocabulary
from agentx.synthesis.shell.command_line import NOWHERE, ProgramCall, located, read_command
from agentx.synthesis.shell.wrappers import SHELLS


class CommandEffect(msgspec.Struct, frozen=True, kw_only=True):
    """What a command does to one file.

    Attributes:
        path: As the command names it, resolved against the directory of a preceding ``cd``.
        text: The text written, if the command contains it; ``None`` if unknown.
        appends: Whether the text is appended to the file.
        removes: Whether the file, or the directory with its content, is removed or moved away.
    """

    path: str
    text: str | None = None
    appends: bool = False
    removes: bool = False


IsFolder = Callable[[str], bool]

_INTERPRETERS = re.compile(r"(?:python|pypy)[\d.]*|node|deno|bun|ruby|perl|php")
_EACH = vocabulary("touch truncate tee")
_LAST = vocabulary("cp mv install ln rsync")
_REMOVE = vocabulary("rm unlink shred")
_EDITS = vocabulary("sed gsed perl")
_IN_PLACE = re.compile(r"-(?![-MI])[A-Za-z0-9]*i|--in-place")
_ONLY_MATCHING = vocabulary(
    """
    grep egrep fgrep rg ls ps ssh scp rsync git set find test tar unzip kubectl helm aws az gh apt-get mount
    xargs
    """
)
"""Programs whose ``-o`` option does not name a file."""

_GLUED = vocabulary("sort gcc g++ cc c++ clang clang++ curl ld")
"""Programs whose option may be joined with the file: ``-oFILE``."""

_VALUES = {
    "truncate": vocabulary("-s -r --size --reference"),
    "touch": vocabulary("-d -r -t --date --reference"),
    "install": vocabulary("-g -m -o --group --mode --owner -S"),
    "shred": vocabulary("-n -s --iterations --size"),
    "rsync": vocabulary("-e -f -B --rsh --exclude --include --filter"),
    **dict.fromkeys(("cp", "mv", "ln"), vocabulary("-S --suffix")),
}
"""Options whose value is the next word, and not a file that the program changes."""

_NAME = r"\s*(?P<q>['\"])(?P<path>[^'\"\n]{1,400})(?P=q)"
_OWNER = r"(?:(?<![\w.])|\b(?:os|shutil|fs|promises|File|FileUtils|require\([^()]*\))\.)"
_CODE_WRITES = tuple(
    re.compile(form)
    for form in (
        rf"\bopen\({_NAME}\s*,\s*(?:mode\s*=\s*)?['\"][^'\"]*[wax+]",
        rf"\bPath\({_NAME}\s*\)\s*\.\s*(?:write_text|write_bytes|touch|open\(\s*['\"][wax])",
        (
            r"\b(?:writeFile|writeFileSync|appendFile|appendFileSync|createWriteStream|File\.write|IO\.write)"
            rf"\({_NAME}"
        ),
        rf"{_OWNER}(?:copy|copy2|copyfile|move|rename|renameSync|copyFileSync)\([^()\n]*,{_NAME}\s*\)",
        rf"\bos\.replace\([^()\n]*,{_NAME}\s*\)",
    )
)
_CODE_REMOVES = tuple(
    re.compile(form)
    for form in (
        rf"{_OWNER}(?:remove|unlink|rmtree|unlinkSync|rmSync|delete|move|rename|renameSync)\({_NAME}",
        rf"\bPath\({_NAME}\s*\)\s*\.\s*(?:unlink|rmdir|rename|replace)\(",
    )
)


def effects(command: str, is_folder: IsFolder = lambda path: path.endswith("/")) -> tuple[CommandEffect, ...]:
    """Return the files that a command line writes or removes, as far as it names them.

    Args:
        command: The command line, with its here-documents.
        is_folder: Returns whether a path is a directory; a file copied into one keeps its name.

    >>> [(one.path, one.text) for one in effects("cd docs && echo done >> log.md; rm -r 'old notes'")]
    [('docs/log.md', 'done'), ('docs/old notes', None)]
    """
    return tuple(dict.fromkeys(_effects(command, is_folder)))


def _effects(command: str, is_folder: IsFolder) -> Iterator[CommandEffect]:
    piped, names = "", list[str]()
    for call, folder in located(command):
        words = [
            word.replace("{}", name)
            for word in call.arguments
            for name in (names if names and "{}" in word else ["{}"])
        ]
        if call.program in {"cd", "pushd"}:
            continue
        given = call.given or piped
        printed = (call.given or None) if call.program == "cat" else _printed(call.program, words)
        found = [CommandEffect(path=path, text=printed, appends=sign == ">>") for sign, path in call.writes]
        if call.program in SHELLS and not words:
            found += _effects(piped, is_folder)
        elif _INTERPRETERS.fullmatch(call.program):
            found += _of_code("\n".join((*words, call.given)))
        found += _of_program(call.program, words, given, folder, is_folder)
        known = (one for one in found if one.path not in ("", "-") and "{}" not in one.path)
        yield from (
            msgspec.structs.replace(one, path=_in(folder, one.path))
            for one in known
            if not NOWHERE.fullmatch(one.path)
        )
        piped = (printed or "") if call.follower == "|" else ""
        names = _listed(call, names)


def _in(folder: str, path: str) -> str:
    return posixpath.join(folder, path) if folder else path


def _printed(program: str, words: Sequence[str]) -> str | None:
    """Return what a program prints, if its arguments contain it."""
    if program not in ("echo", "printf"):
        return None
    return " ".join(word for word in words if word not in ("-n", "-e", "-en", "-ne")).replace("\\n", "\n")


def _listed(call: ProgramCall, names: list[str]) -> list[str]:
    """Return the names that ``{}`` means in the next call: those that this one finds, lists or passes on."""
    if call.program == "find":
        return _found(call.arguments)
    if call.program in {"ls", "echo"} and call.follower == "|":
        return _operands(call.program, call.arguments)
    passes = call.program in {"xargs", "sort", "uniq"} or "{}" in call.arguments
    return names if passes else []


_MOST_FOUND = 64
_FIND_PLAIN = vocabulary("-print -print0 -o -or -delete ( ) , -depth")
_FIND_VALUES = vocabulary("-name -iname -type")


def _found(arguments: Sequence[str]) -> list[str]:
    """Return patterns for exactly the names that ``find`` finds; none if a condition is not understood."""
    starts: list[str] = []
    patterns: list[str] = []
    words = iter(arguments)
    for word in words:
        if word in _FIND_VALUES:
            value = next(words, "")
            patterns += [value] if word != "-type" else []
        elif word in {"-exec", "-execdir", "-ok", "-okdir"}:
            break
        elif not patterns and not word.startswith(("-", "(", "!")):
            starts.append(word)
        elif word not in _FIND_PLAIN:
            return []
    folders = ["" if start in {".", "./"} else f"{start.rstrip('/')}/" for start in starts or ["."]]
    if len(folders) * len(patterns) > _MOST_FOUND:
        return []
    ways = [
        f"{way}{pattern}"
        for pattern in patterns or ["*"]
        for way in (("",) if pattern.startswith("*") else ("", "*/"))
    ]
    return [f"{folder}{way}" for folder in folders for way in ways]


def _of_program(
    program: str, words: list[str], given: str, folder: str, is_folder: IsFolder
) -> Iterator[CommandEffect]:
    """Yield the effects of a program that is known to change the files it is given."""
    if program == "git":
        program, words = _git(words)
    names = _operands(program, words)
    if program in _EACH:
        text = (given or None) if program == "tee" else None
        for name in names:
            yield CommandEffect(path=name, text=text, appends=bool({"-a", "--append"} & set(words)))
    elif program in _REMOVE:
        yield from (CommandEffect(path=name, removes=True) for name in names)
    elif program in _LAST and not (program == "install" and {"-d", "--directory"} & set(words)):
        yield from _copied(program, words, names, lambda path: is_folder(_in(folder, path)))
    elif program in _EDITS and any(map(_IN_PLACE.match, words)):
        scripts = {value for flag, value in pairwise(words) if re.match(r"-\w*e$|--expression$", flag)}
        yield from (CommandEffect(path=name) for name in names[not scripts :] if name not in scripts)
    elif program == "find" and "-delete" in words:
        yield from (CommandEffect(path=name, removes=True) for name in _found(words))
    yield from _outputs(program, words)


def _git(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the program that changes files in the same way as a command of Git; ``git`` if none does."""
    match words:
        case ["mv", *rest]:
            return "mv", rest
        case ["rm", *rest] if "--cached" not in rest:
            return "rm", rest
        case ["checkout", *rest] if "--" in rest:
            return "touch", rest[rest.index("--") :]
        case ["restore", *rest] if not {"-S", "--staged"} & set(rest) or {"-W", "--worktree"} & set(rest):
            return "touch", [word for flag, word in pairwise(["", *rest]) if flag not in {"-s", "--source"}]
        case _:
            return "git", list(words)


def _operands(program: str, words: Sequence[str]) -> list[str]:
    """Return the words that are neither options nor their values."""
    names: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            return [*names, *rest]
        if word in _VALUES.get(program, ()):
            next(rest, "")
        elif word and not word.startswith("-"):
            names.append(word)
    return names


def _copied(
    program: str, words: Sequence[str], names: list[str], is_folder: IsFolder
) -> Iterator[CommandEffect]:
    """Yield what a program that copies, moves or links writes at its target, and moves away."""
    given = (word.partition("=")[2] for word in words if word.startswith("--target-directory="))
    after = (value for flag, value in pairwise(words) if flag in {"-t", "--target-directory"})
    into = next(iter((*given, *after)), "")
    if into:
        names = [*(name for name in names if name != into), into]
    elif program == "ln" and len(names) == 1:
        names = [*names, "."]
    *sources, target = names or [""]
    inner = bool(into) or len(sources) > 1 or target == "." or is_folder(target)
    for source in sources:
        inside = posixpath.normpath(posixpath.join(target, posixpath.basename(source.rstrip("/"))))
        yield CommandEffect(path=inside if inner else target)
        if program == "mv":
            yield CommandEffect(path=source, removes=True)


def _outputs(program: str, words: Sequence[str]) -> Iterator[CommandEffect]:
    """Yield the output files that options name."""
    if program == "dd":
        yield from (CommandEffect(path=word[3:]) for word in words if word.startswith("of="))
    short = {"wget": "-O"}.get(program, "" if program in _ONLY_MATCHING else "-o")
    for flag, value in pairwise((*words, "")):
        if flag in (short, "--output", "--out", "--output-document") and not value.startswith("-"):
            yield CommandEffect(path=value)
        elif flag.startswith(("--output=", "--out=", "--output-document=", "--output-file=")):
            yield CommandEffect(path=flag.partition("=")[2])
        elif program in _GLUED and flag.startswith("-o") and flag != "-o":
            yield CommandEffect(path=flag[2:])
    if program == "uniq" and len(names := _operands(program, words)) > 1:
        yield CommandEffect(path=names[1])
    if program == "tar" and words and re.match(r"-?\w*[cru]\w*f$", words[0]):
        yield from (CommandEffect(path=name) for name in words[1:2])


def _of_code(code: str) -> Iterator[CommandEffect]:
    """Yield the files that code on the command line writes or removes, if it names them."""
    for form in _CODE_WRITES:
        yield from (CommandEffect(path=found["path"]) for found in form.finditer(code))
    for form in _CODE_REMOVES:
        yield from (CommandEffect(path=found["path"], removes=True) for found in form.finditer(code))


# --- whether it changes anything ----------------------------------------------------------------------------

_LOOKS = vocabulary(
    """
    ls cat head tail grep egrep fgrep rg pwd echo printf cd wc which sort uniq cut tr jq stat file du df
    diff cmp true false test [ [[ basename dirname realpath readlink seq od strings sleep nl rev tac comm
    paste fold md5sum sha1sum sha256sum cksum whoami printenv find xargs command
    """
)
"""Programs that change nothing; what ``find -exec`` and ``xargs`` run is a program of the line, too."""

_GIT_LOOKS = vocabulary("status diff log show blame ls-files grep rev-parse")
_CHANGES = {
    "find": vocabulary("-delete -fprint -fprint0 -fprintf -fls -ok -okdir"),
    "file": vocabulary("-C --compile"),
    "git": vocabulary("--open-files-in-pager --ext-diff --textconv --output"),
    "printf": vocabulary("-v"),
    "rg": vocabulary("--pre"),
    "sort": vocabulary("--compress-program"),
    **dict.fromkeys(("test", "[", "[["), vocabulary("-v -R -eq -ne -lt -le -gt -ge")),
}
"""Options with which a program that otherwise only shows something writes, removes or runs something."""

_PRINTS_LINES = re.compile(r"\d*(?:,(?:\d+|\$))?p")
_STEERS = re.compile(r"PATH|ENV|BASH_ENV|IFS|CDPATH|LD_\w+|GIT_\w+|LESS\w*|\w*PAGER|\w*EDITOR")
"""Variables with which a program that otherwise only shows something may run another."""

_ANY_OPTION = re.compile(r"\{\}|\$[\w{@*]")
"""A name from ``xargs`` or an unknown variable, which may be any option."""

_HIDES = re.compile(r"\$[(\[]|`|[<>]\(|\$\{(?!\w+\})")
"""Expansions that run something, or may evaluate a text that does."""


@lru_cache(maxsize=512)
def looks_only(command: str) -> bool:
    """Return whether a command line certainly changes nothing: all its programs only show something.

    >>> commands = ("cd app && git status | head -5", "ls | xargs rm", "echo x > a.txt")
    >>> tuple(looks_only(command) for command in commands)
    (True, False, False)
    """
    line = read_command(command)
    shown = [call for call in line.calls if call.program or call.writes]
    steered = any(_STEERS.fullmatch(name) for call in line.calls for name in call.sets)
    certain = line.understood and not steered and not _HIDES.search(command)
    return certain and bool(shown) and not effects(command) and all(map(shows_only, shown))


def shows_only(step: ProgramCall) -> bool:
    """Return whether a program certainly only shows something, however it is fed."""
    if step.writes or not step.as_written:
        return False
    match step.program, step.arguments:
        case "git", [first, *rest] if first not in _GIT_LOOKS or any(word.startswith("-O") for word in rest):
            return False
        case "sed", ["-n", script, *names]:
            optional = any(name.startswith("-") or _ANY_OPTION.search(name) for name in names)
            return bool(_PRINTS_LINES.fullmatch(script)) and not optional
        case program, words:
            options = {word.partition("=")[0] for word in words}
            unknown = program in {*_CHANGES, "uniq"} and any(map(_ANY_OPTION.search, words))
            spread = program == "find" and any(
                word[:1] in {"*", "?", "["} and not before.startswith("-")
                for before, word in pairwise(("", *words))
            )
            changes = spread or unknown or options & _CHANGES.get(program, frozenset())
            return program in {*_LOOKS, "git"} and not changes
