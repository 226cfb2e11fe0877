"""Predict from its text what a command line does: the files it writes or removes, the ideas it carries out.

The command is split as a shell would split it, and never run. Effects known only at run time (a name that a
program generates, a script stored in a file) are not seen here. If the command runs in a copy, its result is
checked instead.
"""

import posixpath
import re
from collections.abc import Callable, Iterator
from itertools import pairwise

import msgspec

from agentx.synthesis.checks.command import MAX_COMMAND, ProgramCall, steps
from agentx.synthesis.language.words import stem, vocabulary
from agentx.synthesis.learning.past_runs import only_looks, subcommands
from agentx.synthesis.state.flows import terms


class Effect(msgspec.Struct, frozen=True, kw_only=True):
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

_HEREDOC = re.compile(
    r"(?<!<)<<-?[ \t]*(['\"]?)(\w+)\1(?P<rest>[^\n]*)\n(?P<body>.*?)(?:^[ \t]*\2[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_MARK = "\x01"
_REDIRECTS = re.compile(r"(?:&|(?<![\w.])\d)?>(>?)\|?(?![&>])")
_ASSIGNED = re.compile(r"(?:^|[\s;&|(])([A-Za-z_]\w{0,40})=(?:'([^']*)'|\"([^\"]*)\"|([^\s;&|)'\"]+))")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_BRACES = re.compile(r"([^{}]*)\{([^{}]*,[^{}]*)\}([^{}]*)")
_SIGNS = {">", ">>", "&>", ">&", "<"}

_SHELLS = vocabulary("bash sh zsh dash eval")
_INTERPRETERS = re.compile(r"(?:python|pypy)[\d.]*|node|deno|bun|ruby|perl|php")
_EACH = vocabulary("touch truncate tee")
_LAST = vocabulary("cp mv install ln rsync")
_REMOVE = vocabulary("rm unlink shred rmdir")
_EDITS = vocabulary("sed gsed perl")
_ONLY_MATCHING = vocabulary("grep egrep fgrep rg ls ps ssh git set")
"""Programs whose ``-o`` option does not name a file."""

_NAME = r"\s*(?P<q>['\"])(?P<path>[^'\"\n]{1,400})(?P=q)"
_CODE_WRITES = tuple(
    re.compile(form)
    for form in (
        rf"\bopen\({_NAME}\s*,\s*(?:mode\s*=\s*)?['\"][^'\"]*[wax+]",
        rf"\bPath\({_NAME}\s*\)\s*\.\s*(?:write_text|write_bytes|touch|open\(\s*['\"][wax])",
        (
            r"\b(?:writeFile|writeFileSync|appendFile|appendFileSync|createWriteStream|File\.write|IO\.write)"
            rf"\({_NAME}"
        ),
        rf"\b(?:copy|copy2|copyfile|move|rename|replace|renameSync|copyFileSync)\([^()\n]*,{_NAME}\s*\)",
    )
)
_CODE_REMOVES = tuple(
    re.compile(form)
    for form in (
        rf"\b(?:remove|unlink|rmtree|unlinkSync|rmSync|File\.delete|move|rename|renameSync)\({_NAME}",
        rf"\bPath\({_NAME}\s*\)\s*\.\s*(?:unlink|rmdir|rename|replace)\(",
    )
)


def effects(command: str, is_folder: IsFolder = lambda path: path.endswith("/")) -> tuple[Effect, ...]:
    """Return the files that a command line writes or removes, as far as it names them.

    Args:
        command: The command line, with its here-documents.
        is_folder: Returns whether a path is a directory; a file copied into one keeps its name.

    >>> [(one.path, one.text) for one in effects("cd docs && echo done >> log.md; rm -r 'old notes'")]
    [('docs/log.md', 'done'), ('docs/old notes', None)]
    """
    return tuple(dict.fromkeys(_effects(command[:MAX_COMMAND], is_folder, depth=0)))


def _effects(command: str, is_folder: IsFolder, depth: int) -> Iterator[Effect]:
    bodies: list[str] = []

    def take(found: re.Match[str]) -> str:
        bodies.append(found["body"])
        return f" {_MARK}{len(bodies) - 1} {found['rest']}\n"

    plain = _expanded(_HEREDOC.sub(take, command.replace(_MARK, ""))).replace("`", " ; ")
    folders: dict[tuple[int, ...], str] = {}
    piped = ""
    for step in steps(_REDIRECTS.sub(r" >\1 ", plain)):
        words, targets = _parted(step)
        # A subshell begins where its parent is; what it changes to is gone with it.
        within = (step.shells[:count] for count in range(len(step.shells), -1, -1))
        folder = next((folders[shells] for shells in within if shells in folders), "")
        marked = [word for word in words if word.startswith(_MARK)]
        body = bodies[int(marked[0].removeprefix(_MARK))] if marked else ""
        words = [word for word in words if not word.startswith(_MARK)]
        if step.program == "cd":
            if words:
                folders[step.shells] = posixpath.normpath(posixpath.join(folder, words[0]))
            continue
        said = (body or None) if step.program == "cat" else _said(step.program, words)
        found = [Effect(path=path, text=said, appends=sign == ">>") for sign, path in targets]
        if step.program in _SHELLS and depth < 3:  # noqa: PLR2004 - a shell in a shell in a shell
            found += _effects(body or " ".join(words), is_folder, depth + 1)
        elif _INTERPRETERS.fullmatch(step.program):
            found += _of_code("\n".join((*words, body)))
        found += _of_program(step.program, words, body or piped, folder, is_folder)
        yield from (msgspec.structs.replace(one, path=_in(folder, one.path)) for one in found if one.path)
        piped = (said or "") if step.follower == "|" else ""


def _expanded(command: str) -> str:
    """Expand the variables that a command sets itself."""
    known = {name: "".join(values) for name, *values in _ASSIGNED.findall(command)}
    return _VARIABLE.sub(lambda found: known.get(found[1] or found[2], found[0]), command)


def _in(folder: str, path: str) -> str:
    return posixpath.join(folder, path) if folder else path


def _parted(step: ProgramCall) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the words of a step, and its redirect targets, each with the preceding operator."""
    words: list[str] = []
    targets: list[tuple[str, str]] = []
    rest = iter((step.program, *step.arguments) if step.program in _SIGNS else step.arguments)
    for word in rest:
        if word not in _SIGNS:
            words.append(word)
        elif (target := next(rest, "")) and word != "<":
            targets.append((word, target))
    return words, targets


def _said(program: str, words: list[str]) -> str | None:
    """Return what a program prints, if its arguments contain it."""
    if program not in ("echo", "printf"):
        return None
    return " ".join(word for word in words if word not in ("-n", "-e", "-en", "-ne")).replace("\\n", "\n")


def _of_program(
    program: str, words: list[str], given: str, folder: str, is_folder: IsFolder
) -> Iterator[Effect]:
    """Yield the effects of a program that is known to change the files it is given."""
    if program == "git" and words[:1] in (["mv"], ["rm"]) and "--cached" not in words:
        program, words = words[0], words[1:]
    named = (word for word in words if not word.startswith("-") and not word.isdigit())
    names = [name for word in named for name in _spelled_out(word)]
    if program in _EACH:
        text = (given or None) if program == "tee" else None
        for name in names:
            yield Effect(path=name, text=text, appends=bool({"-a", "--append"} & set(words)))
    elif program in _REMOVE:
        yield from (Effect(path=name, removes=True) for name in names)
    elif program in _LAST and len(names) > 1:
        *sources, target = names
        for source in sources:
            inside = posixpath.join(target, posixpath.basename(source.rstrip("/")))
            yield Effect(path=inside if len(sources) > 1 or is_folder(_in(folder, target)) else target)
            if program == "mv":
                yield Effect(path=source, removes=True)
    elif program in _EDITS and any(re.match(r"-\w*i|--in-place", word) for word in words):
        scripts = {value for flag, value in pairwise(words) if re.match(r"-\w*e$|--expression$", flag)}
        yield from (Effect(path=name) for name in names[not scripts :] if name not in scripts)
    yield from _outputs(program, words)


def _spelled_out(word: str) -> list[str]:
    """Expand one pair of braces: ``{a,b}.txt``."""
    braces = _BRACES.fullmatch(word)
    return [f"{braces[1]}{part}{braces[3]}" for part in braces[2].split(",")] if braces else [word]


def _outputs(program: str, words: list[str]) -> Iterator[Effect]:
    """Yield the output files that options name."""
    if program == "dd":
        yield from (Effect(path=word[3:]) for word in words if word.startswith("of="))
    short = {"wget": "-O"}.get(program, "" if program in _ONLY_MATCHING else "-o")
    for flag, value in pairwise((*words, "")):
        if flag in (short, "--output", "--out", "--output-document"):
            yield Effect(path=value)
        elif flag.startswith(("--output=", "--out=", "--output-document=", "--output-file=")):
            yield Effect(path=flag.partition("=")[2])


def _of_code(code: str) -> Iterator[Effect]:
    """Yield the files that code on the command line writes or removes, if it names them."""
    for form in _CODE_WRITES:
        yield from (Effect(path=found["path"]) for found in form.finditer(code))
    for form in _CODE_REMOVES:
        yield from (Effect(path=found["path"], removes=True) for found in form.finditer(code))


# --- what it carries out ------------------------------------------------------------------------------------

_GETS = vocabulary("install add i get")
_UNDOES = vocabulary("uninstall remove rm purge down stop disable off revert")
_ASKS = frozenset(("--version", "-v", "-V", "--help", "-h", "version", "help"))
_SHORT = {("git", "-f"): "force"}
_WORD = re.compile(r"[A-Za-z]+")


def carries_out(idea: str, command: str) -> bool:
    """Return whether a command line certainly carries out an idea.

    Its program, subcommands and options must contain all words of the idea.

    >>> command = "cd app && git push --force origin main"
    >>> carries_out("force pushes", command), carries_out("yarn", "which yarn")
    (True, False)
    """
    wanted = frozenset(terms(idea))
    return bool(wanted) and any(_does(wanted, idea, step) for step in _inner(command))


def _inner(command: str, depth: int = 0) -> Iterator[ProgramCall]:
    for step in steps(command[:MAX_COMMAND]):
        if step.program == "eval" and depth < 3:  # noqa: PLR2004 - as above
            yield from _inner(" ".join(step.arguments), depth + 1)
        else:
            yield step


def _does(wanted: frozenset[str], idea: str, step: ProgramCall) -> bool:
    words = [word for word in step.arguments if word not in _SIGNS]
    if only_looks(step) or _UNDOES & set(words[:2]) or (words and set(words) <= _ASKS):
        return False
    said = subcommands(step)
    own = frozenset(terms(" ".join((step.program, *said))))
    named = frozenset(stem(word) for word in words if _WORD.fullmatch(word))
    options = frozenset(
        term
        for word in words
        for term in terms(_SHORT.get((step.program, word), word if word.startswith("--") else ""))
        if not word.startswith("--no-") or word in idea
    )
    verbatim = any(word in idea.split() for word in words if word.startswith("--"))
    gets = bool(_GETS & set(said)) and wanted <= named
    return gets or ((verbatim or bool(wanted & own)) and wanted <= own | named | options)


_LOOKS = vocabulary(
    """
    ls cat head tail grep egrep fgrep rg pwd echo printf cd wc which sort uniq cut tr jq stat file du df
    diff cmp true
    """
)
_GIT_LOOKS = vocabulary("status diff log show blame ls-files grep rev-parse")


def looks_only(command: str) -> bool:
    """Return whether a command line certainly changes nothing: all its programs only show something.

    >>> commands = ("cd app && git status | head -5", "ls | xargs rm", "echo x > a.txt")
    >>> tuple(looks_only(command) for command in commands)
    (True, False, False)
    """
    found = steps(command) if len(command) <= MAX_COMMAND else ()
    hidden = any(sign in command for sign in ("$(", "`", "<(", ">("))
    return bool(found) and not hidden and not effects(command) and all(map(_shows, found))


def _shows(step: ProgramCall) -> bool:
    return step.program in _LOOKS or (step.program == "git" and bool(_GIT_LOOKS & set(step.arguments[:1])))
