"""The names that an action would bring in: packages, programs, images, imports, and what new text uses.

Words of prose, comments and data are not names: they can be about anything. What was there before is not
brought in, and neither is what a command looks at or removes.
"""

import posixpath
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from agentx.synthesis.chunking.file_kinds import kind_of_file
from agentx.synthesis.enforcement.breaches import CheckedChange, Side
from agentx.synthesis.enforcement.imports import ECOSYSTEMS, imports_of
from agentx.synthesis.enforcement.packages.manifests import is_manifest, requirements_in
from agentx.synthesis.enforcement.syntax_trees import LANGUAGES, language_of
from agentx.synthesis.language.words import vocabulary
from agentx.synthesis.learning.past_runs import only_looks
from agentx.synthesis.shell.command_line import ProgramCall, steps
from agentx.synthesis.shell.wrappers import SHELLS

MAX_TEXT = 200_000
"""Maximum number of characters of a text that is read."""

Use = Literal["package", "used", "written", "label", "text"]
"""``package``: a package, image or program; ``used``: code calls it; ``written``: part of any other name;
``label``: a comment that is nothing but this name; ``text``: a sentence of a text.
"""


class AddedName(NamedTuple):
    """A name that an action brings in.

    Attributes:
        text: The name as written.
        use: How it is used.
        place: Where, in words.
    """

    text: str
    use: Use
    place: str


# --- commands -----------------------------------------------------------------------------------------------

_UNDOES = vocabulary(
    """
    uninstall remove rm purge down stop disable off revert delete del unlink un drop prune autoremove untap
    rmi kill unset teardown clean erase deactivate detach unregister destroy eject
    """
)
_LOOKS = vocabulary(
    """
    logs ps inspect search why ls outdated audit doctor explain describe history tree docs check lint test
    lint:check test:unit dependencies dependency:tree
    """
)
_LOOKING_FLAGS = vocabulary("-l --list --help -h --version -V -v version help --dry-run -n --check")
_NEUTRAL = vocabulary(
    """
    git gh glab hg svn pytest tox jest vitest mocha rspec phpunit ruff eslint mypy pylint black prettier ctest
    mkdir touch cp mv rm ln chmod chown tar zip unzip gzip rsync scp open
    xdg-open man less code vim nano rmdir
    unlink shred curl wget awk tee ssh cargo-test
    """
)
"""Programs whose words are paths, messages, branches or tests; what they write is read from their effects."""

_EDITORS = vocabulary("sed gsed perl")
_FETCHES = vocabulary("clone add submodule")
_INTERPRETER = re.compile(r"(?:python|pypy)[\d.]*|node|deno|bun|ruby|perl|php|Rscript")
_VERSION = re.compile(r"\s*(?:[<>~!=]=|[<>])\s*")
_URL = re.compile(r"[a-z][a-z+.-]*://[^\s'\"<>()]+")
_SUBSTITUTE = re.compile(
    r"s(?P<sign>[/|#,@!])(?:\\.|(?!(?P=sign)).)*(?P=sign)(?P<new>(?:\\.|(?!(?P=sign)).)*)(?P=sign)"
)
_PATH = re.compile(
    r"(?:\.{0,2}/|~).*|.*/[^/]*\.[A-Za-z]{1,5}|[^/@:]*\.(?:py|sh|js|ts|rb|md|txt|ya?ml|json|toml|lock|sql"
    r"|html|css|log|csv)"
)


def names_in_command(command: str) -> Iterator[AddedName]:
    """Yield the names that a command line brings in: packages, images, programs and what code on it uses.

    >>> [one.text for one in names_in_command("npm uninstall redux && npm i -D 'tailwindcss@3' && ls redux")]
    ['npm', 'i', 'tailwindcss@3']
    """
    calls = list(acting_calls(command))
    runs = any(call.program in SHELLS or call.inside for call in calls)
    for call in calls:
        yield from _of_call(call, runs=runs)


def acting_calls(command: str) -> Iterator[ProgramCall]:
    """Yield the programs of a command line that neither look nor take something away."""
    filtered = False
    for call in steps(command):
        if not (filtered or _undoes(call) or _only_shows(call)):
            yield call
        filtered = (filtered or _filters(call)) and call.follower == "|"


def _filters(call: ProgramCall) -> bool:
    """Return whether a program takes lines out of what it passes on."""
    takes_out = call.program in {"grep", "egrep", "rg"} and any(
        re.fullmatch(r"-[a-zA-Z]*v[a-zA-Z]*|--invert-match", word) for word in call.arguments
    )
    return takes_out or (call.program == "sed" and any(re.search(r"/d$", word) for word in call.arguments))


def _undoes(call: ProgramCall) -> bool:
    plain = [word.casefold() for word in call.arguments if not word.startswith("-")][:3]
    flags = {"-r", "--remove", "--delete"} & set(call.arguments)
    only_flags = bool(flags) and not plain
    return only_flags or any(bool(_UNDOES & {word, *re.split(r"[:.]", word)}) for word in plain)


def _only_shows(call: ProgramCall) -> bool:
    plain = [word for word in call.arguments if not word.startswith("-")]
    flags = bool(call.arguments) and set(call.arguments) <= _LOOKING_FLAGS
    acquires = call.program == "go" and "get" in plain[:1]
    acquires |= call.program in _EDITORS and any(
        word.startswith(("-i", "--in-place")) for word in call.arguments
    )
    looks = only_looks(call) and "@" not in call.program  # `npx create-vite@5` runs a package
    return flags or (not acquires and (looks or bool(_LOOKS & set(plain[:2]))))


def _of_call(call: ProgramCall, *, runs: bool) -> Iterator[AddedName]:
    """Yield the program and the words of a call that can name a thing, and what its code names.

    Args:
        call: The call.
        runs: Whether the command line runs what it fetches.
    """
    if _INTERPRETER.fullmatch(call.program):
        code = call.given or next(
            (
                after
                for flag, after in zip(call.arguments, call.arguments[1:], strict=False)
                if flag in ("-c", "-e")
            ),
            "",
        )
        language = {"node": ".js", "ruby": ".rb", "php": ".php"}.get(call.program, ".py")
        yield from names_in_change(CheckedChange(path=f"command{language}", after=code)) if code else ()
        return
    yield AddedName(call.program, "package", f"runs `{call.program}`")
    for given in call.arguments:
        word = _VERSION.split(given, maxsplit=1)[0]
        if re.search(r"\s", word):
            continue
        if found := _SUBSTITUTE.match(word):
            yield AddedName(found["new"], "package", f"writes {found['new']}")
        elif _URL.match(word):
            if runs or call.program not in _NEUTRAL or _FETCHES & set(call.arguments[:2]):
                yield AddedName(word, "package", f"fetches {word}")
        elif call.program not in _NEUTRAL:
            value = word.partition("=")[2] if word.startswith("-") else word
            if value and not _PATH.fullmatch(value):
                yield AddedName(value, "package", f"names {value}")


# --- files --------------------------------------------------------------------------------------------------

_IMPORTS = re.compile(
    r"^\s*[\"']?(?:@?import|from|use|using|require|require_once|library|include|gem|plugin|uses|alias|extern"
    r"|id|apply plugin:?|#include)\b[\s(\"'<:]*(?P<name>[@\w][\w@./:-]*)",
    re.MULTILINE,
)
_IMAGE = re.compile(
    r"^\s*(?:-\s*)?(?:image|FROM|uses|chart|repository|extends|driver|engine|provider|adapter"
    r"|backend)\b[\s:=\"']+(?P<name>[\w@][\w@./:-]*)",
    re.MULTILINE | re.IGNORECASE,
)
_STRING = re.compile(r"(?P<q>\"\"\"|'''|[\"'`])(?P<text>(?:\\.|(?!(?P=q)).){0,2000}?)(?P=q)", re.DOTALL)
_TECHNICAL = re.compile(r"[@:/]|\w\.\w")
_HASH_COMMENT = re.compile(r"(?<![\w$&'\"])#(?![!\w]*\{)[^\n]*")
_SLASH_COMMENT = re.compile(r"(?<![:\"'])//[^\n]*|/\*.*?\*/", re.DOTALL)
_MARKUP_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_DASH_COMMENT = re.compile(r"(?<!-)--\s[^\n]*")
_LABEL = re.compile(r"^[\s/*#<!;-]*(?P<label>[\w][\w .-]{1,38}?)[\s*/>.!-]*$")
_MARKUP_TEXT = re.compile(r"(?<=>)[^<>]+(?=<)")
_JSX_TEXT = re.compile(r"(?<=[^=]>)[^<>{}=;()]+(?=[<{])")
_SCRIPT = re.compile(r"<(?:script|style)\b[^>]*>(?P<code>.*?)</(?:script|style)>", re.DOTALL | re.IGNORECASE)
_IDENTIFIER = re.compile(
    r"(?P<before>(?:\bnew\s+|@|::|<)?)(?P<name>[A-Za-z_$][\w$-]*)(?P<after>\s*(?:[(\[]|\.(?=\w)|::|<))?"
)
_DEFINED = re.compile(r"\b(?:def|fn|func|function)\s+[a-z_]+\b")
_CONSTANT = re.compile(
    r"[A-Z][A-Z0-9]*_(?:\w+_)?(?:URL|URI|HOST|PORT|DSN|KEY|TOKEN|SECRET|ENDPOINT|BROKER|API|CONNECTION|ID)"
)
_HASH = vocabulary(
    """
    .py .pyi .rb .sh .bash .yml .yaml .toml .tf .ex .exs .nix .r .R .pl .conf .cfg .ini .env .properties .mk
    .cmake .graphql .ps1
    """
) | {""}
_MARKUP = vocabulary(".html .htm .xml .vue .svelte .svg .xhtml .hbs .erb .jinja .j2 .twig")
_DASHES = vocabulary(".sql .lua .hs .elm")


def names_in_change(change: CheckedChange) -> Iterator[AddedName]:
    r"""Yield the names that the change of a file brings in.

    >>> change = CheckedChange(path="app.py", before="", after="import redis  # no flask")
    >>> next((one.text, one.use) for one in names_in_change(change))
    ('redis', 'package')
    """
    if change.after is None or len(change.after) > MAX_TEXT:
        return
    kind = kind_of_file(change.path, change.after[:2_000])
    is_notebook = change.path.endswith(".ipynb")
    if change.before is None and (kind not in ("docs", "data") or is_notebook):
        yield from _of_path(change.path)
    elif change.before is None:
        yield AddedName(
            posixpath.splitext(change.path)[1].lstrip("."), "package", f"is the new file {change.path}"
        )
    old = set(_in_text(change, "before", kind)) if change.before else set[AddedName]()
    yield from (name for name in dict.fromkeys(_in_text(change, "after", kind)) if name not in old)


def _of_path(path: str) -> Iterator[AddedName]:
    """Yield the parts of a new file's path, each for itself."""
    *folders, name = path.split("/")
    stem, *endings = name.lstrip(".").split(".")
    place = f"is the new file {path}"
    does = [] if endings[-1:] in (["sh"], ["bash"]) else [stem]  # `bootstrap.sh` is named after what it does
    yield from (AddedName(part, "package", place) for part in (*does, *endings, *folders[-1:]) if part)


def _in_text(change: CheckedChange, side: Side, kind: str) -> Iterator[AddedName]:
    text = (change.before if side == "before" else change.after) or ""
    path = change.path
    if is_manifest(path) and (found := requirements_in(path, text)):
        yield from (AddedName(one.name, "package", f"adds {one.name} to {path}") for one in found)
    language = language_of(path)
    known = language in ECOSYSTEMS
    if known:
        modules = (module for module, _ in imports_of(change, side))
        yield from (AddedName(name, "package", f"imports {name} in {path}") for name in modules)
    if path.endswith(".ipynb"):
        text = text.replace('\\n", ', "\n").replace('\\"', '"')
    elif kind in ("docs", "data") and not path.endswith(".tex"):
        if kind == "data" and not path.endswith((".json", ".xml", ".yml", ".yaml")):
            return
        if kind == "docs" and not _is_code(path):
            yield from _of_prose(text, path)
            return
    place = f"is used in {path}"
    yield from _labels(text, path)
    plain = _without_comments(text, path)
    if kind == "data":
        yield from (AddedName(url, "used", place) for url in _URL.findall(plain))
        return
    for form in (_IMPORTS, _IMAGE) if not known else ():
        yield from (AddedName(one["name"], "package", place) for one in form.finditer(plain))
    if not known:
        yield from (AddedName(line, "written", place) for line in plain.splitlines() if " " in line)
    yield from _of_code(plain, place, strings=not known)


_ABOUT_WORK = vocabulary("docs doc adr adrs decisions notes meetings minutes wiki rfcs design")
_NAMED_PROSE = re.compile(
    r"(?:readme|changelog|contributing|todo|license|history|news|faq|agents|claude)\b.*", re.IGNORECASE
)
_SENTENCE = re.compile(r"[^.!?\n]+")
_DENIES = re.compile(
    r"\b(?:no|not|never|without|instead|none|nobody|neither|nor|reject\w*|remov\w*|replac\w*|ruled|against"
    r"|gone"
    r"|former\w*|old|avoid\w*|drop\w*|delet\w*|was|were|\w+n't|stop\w*|banned|forbidden|rather than"
    r"|(?:taken?|left|leave|keep|stays?) (?:\w+ )?out)\b",
    re.IGNORECASE,
)


def _of_prose(text: str, path: str) -> Iterator[AddedName]:
    """Yield the sentences of a text that is itself the work, and not about it."""
    *folders, name = path.casefold().split("/")
    if not _ABOUT_WORK.intersection(folders) and not _NAMED_PROSE.match(name):
        yield from (AddedName(one, "text", f"is in {path}") for one in _asserted(text))


def _asserted(text: str) -> Iterator[str]:
    return (
        one[0].strip() for one in _SENTENCE.finditer(text) if one[0].strip() and not _DENIES.search(one[0])
    )


def names_in_words(text: str) -> Iterator[AddedName]:
    """Yield the sentences of an action in words, without questions and what is looked at or undone."""
    for one in _asserted(text):
        words = [word.casefold() for word in re.findall(r"[\w-]+", one)]
        if not _UNDOES.intersection(words) and not _READS.intersection(words[:3]):
            yield AddedName(one, "package", "proposes it")


_READS = vocabulary(
    """
    read look show list open check see view find tell explain describe ask answer search grep count compare
    is are was were does did why what how which who where when whether document mention note
    """
)


def _is_code(path: str) -> bool:
    ending = posixpath.splitext(path)[1].casefold()
    return ending in LANGUAGES or ending in _MARKUP


def _without_comments(text: str, path: str) -> str:
    ending = posixpath.splitext(path)[1]
    if ending in _MARKUP:
        code = "\n".join(_SLASH_COMMENT.sub(" ", one["code"]) for one in _SCRIPT.finditer(text))
        tags = _MARKUP_TEXT.sub(" ", _MARKUP_COMMENT.sub(" ", _SCRIPT.sub(_head, text)))
        return f"{tags}\n{code}"
    if ending in _HASH:
        return _HASH_COMMENT.sub(" ", text)
    if ending in _DASHES:
        return _DASH_COMMENT.sub(" ", text)
    plain = _SLASH_COMMENT.sub(" ", text)
    return _JSX_TEXT.sub(" ", plain) if ending in (".jsx", ".tsx") else plain


def _head(script: re.Match[str]) -> str:
    return script[0].partition(">")[0] + ">"


def _labels(text: str, path: str) -> Iterator[AddedName]:
    """Yield the comments that are nothing but a name."""
    ending = posixpath.splitext(path)[1]
    form = _HASH_COMMENT if ending in _HASH else _DASH_COMMENT if ending in _DASHES else _SLASH_COMMENT
    for comment in form.finditer(text):
        if found := _LABEL.match(comment[0]):
            yield AddedName(found["label"], "label", f"is named in {path}")


def _of_code(text: str, place: str, *, strings: bool) -> Iterator[AddedName]:
    """Yield the identifiers of code and the strings that are technical: an address, a path, a constant."""
    for one in _STRING.finditer(text):
        said = one["text"]
        yield from (AddedName(url, "used", place) for url in _URL.findall(said))
        if (
            said
            and not re.search(r"\s", said)
            and (strings or _TECHNICAL.search(said) or _CONSTANT.fullmatch(said))
        ):
            yield AddedName(said, "used", place)
    bare = _DEFINED.sub(" ", _STRING.sub(" ", text))
    for one in _IDENTIFIER.finditer(bare):
        name = one["name"]
        snake = "_" in name.strip("_") and not name.isupper()
        used = (
            strings
            or one["before"]
            or one["after"]
            or re.search(r"[a-z][A-Z]", name)
            or _CONSTANT.fullmatch(name)
        )
        yield AddedName(name, "used" if used and (strings or not snake) else "written", place)
    yield from (AddedName(url, "used", place) for url in _URL.findall(bare))
