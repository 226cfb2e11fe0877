"""Generated READMEs and the list of current decisions, read from files and memory, never written by a model.

Both are pure and deterministic: the same files and items give the same text.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import dropwhile, islice
from pathlib import PurePosixPath

import msgspec

from agentx.storage.text import shorten
from agentx.synthesis.chunking import outline
from agentx.synthesis.enforcement.paths import matches
from agentx.synthesis.language.tokens import count_tokens
from agentx.synthesis.memory.items import Kind, MemoryItem
from agentx.synthesis.state.state import Message

MAX_TOKENS = 700
"""Token budget of a directory summary."""

MAX_RULES = 20
"""Number of rules that a directory summary shows in full; the rest are counted."""

MAX_FILES = 12
"""Maximum number of files named in a directory summary."""

MAX_SYMBOLS = 6
"""Maximum number of definitions named for one file."""

READ_CHARACTERS = 200_000
"""Maximum number of characters of a file that are read to summarise it."""

_LISTED = 10
"""Maximum number of directories that a summary names."""

_README = re.compile(r"readme(?:\.(?:md|markdown|rst|txt))?$", re.IGNORECASE)
_ENTRY_POINTS = (
    *("__init__.py", "__main__.py", "main", "index", "app", "lib", "mod"),
    *("pyproject.toml", "package.json"),
)
_PACKAGE = re.compile(
    r"__init__\.pyi?|package-info\.java|(?:mod|lib)\.rs|doc\.go|package\.json|(?:pyproject|Cargo)\.toml|index\.\w+"
)
"""Files whose description is that of their directory."""

_DESCRIPTION = re.compile(r"""^\s*"?description"?\s*[:=]\s*"((?:[^"\\\n]|\\.)*)\"""", re.MULTILINE)
_DIRECTIVE = re.compile(r"""['"]use \w+['"];?$""")
_RULES: tuple[Kind, ...] = ("constraint", "rejection", "rule")
_NO_PROSE = re.compile(r"^(?:#|=|-{3}|\*{3}|```|~~~|\||>|<|!\[|\[!|\.\. |:|\[[^\]]*\]:|[-*+] )")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_QUOTES = re.compile(r"^\s*[rRuU]?(\"\"\"|''')(.*?)\1", re.DOTALL)
_NO_DESCRIPTION = re.compile(r"copyright|licen[sc]e|SPDX|eslint|@ts-|coding[:=]", re.IGNORECASE)
_DECISION = re.compile(
    r"\b(?:we(?:'ll| will| have|'ve)? (?:decided|agreed|chosen|settled)\b|(?:i|we)(?:'ve| have)? decided\b"
    r"|(?:let's|let us|we(?:'ll| will| should)|i(?:'ll| will)) "
    r"(?:go with|stick (?:with|to)|settle on|switch to)\b"
    r"|(?:the )?decision(?: is|:)|decided (?:to|on|against)\b|going with\b)",
    re.IGNORECASE,
)


class DirectorySummary(msgspec.Struct, frozen=True, kw_only=True):
    """The purpose of a directory, as far as its files state it.

    Attributes:
        path: The directory, relative to the artifacts root; empty for the root itself.
        text: A README in Markdown, within :data:`MAX_TOKENS` tokens.
        rules: Ids of the memory items that apply there, in the order shown.
    """

    path: str
    text: str
    files: int
    rules: tuple[str, ...] = ()


def directory_purpose(
    path: str,
    files: Mapping[str, str | None],
    rules: Sequence[MemoryItem] = (),
    describe: Callable[[str], str] | None = None,
) -> DirectorySummary:
    r"""Summarise a directory: its stated purpose, its contents, and the rules that apply there.

    Args:
        path: The directory, relative to the artifacts root with forward slashes; ``""`` or ``.`` for the
            root.
        files: Every file below it by path from the artifacts root, with its text; ``None`` if it is binary or
            too large to read.
        rules: Memory items that could apply. Those that are active and whose scope includes the directory are
            shown.
        describe: Called with an outline of the files if none of them states the purpose; may return nothing.

    >>> files = {"app/README.md": "# Billing\n\nPays invoices when they are due."}
    >>> print(directory_purpose("app", files).text)
    # app
    <BLANKLINE>
    Billing: Pays invoices when they are due.
    <BLANKLINE>
    1 file: 1 .md
    <BLANKLINE>
    ## Files
    - `README.md`: Billing
    """
    directory = "" if path in {"", "."} else path.strip("/")
    below = f"{directory}/" if directory else ""
    inside = {name.removeprefix(below): files[name] for name in sorted(files) if name.startswith(below)}
    applying = [rule for rule in rules if _applies(rule, directory, [below + name for name in inside])]
    shown_rules = ""
    if applying:
        lines = [_item_line(rule) for rule in applying[:MAX_RULES]]
        more = [f"- … and {len(applying) - MAX_RULES} more"] if len(applying) > MAX_RULES else []
        shown_rules = "\n".join(["## Rules that apply here", *lines, *more])
    lines = list(_file_lines(inside))
    purpose = _purpose(inside)
    if not purpose and inside and describe is not None:
        purpose = describe("\n".join([f"# {directory or '.'}", _counts(inside), *lines]))
    head = [f"# {directory or '.'}", purpose or _names(inside), shown_rules, _counts(inside)]
    text = _fit(head, lines, len(inside))
    ids = tuple(rule.id for rule in applying)
    return DirectorySummary(path=directory, text=text, files=len(inside), rules=ids)


def summarize_decisions(
    items: Iterable[MemoryItem], messages: Iterable[Message] = (), *, max_tokens: int = 1_500
) -> str:
    """Summarise the current demands, rejections, decisions and open tasks as Markdown, each with its events.

    Active items are listed, newest last. Sentences of the messages that announce a decision are listed as
    said, unless an item is based on the same event. To fit the budget, the oldest lines of the longest
    section are dropped first, and counted. If nothing is left to list, one sentence says so.
    """
    standing = [item for item in items if item.status == "active"]
    listed = {evidence.seq for item in standing for evidence in item.evidence}
    sections = {
        title: [_item_line(i) for i in standing if i.kind in kinds] for title, kinds in _STANDING.items()
    }
    sections["Said in the conversation"] = [
        f"- {_one_line(sentence)} (event {message.seq}, {message.actor})"
        for message in messages
        if message.seq not in listed
        for sentence in _decisions_in(message.text)
    ]
    return _bounded(sections, max_tokens) or "Nothing has been decided yet."


_STANDING: dict[str, tuple[Kind, ...]] = {
    "Demands": ("constraint",),
    "Ruled out": ("rejection",),
    "Decisions": ("decision",),
    "Lessons": ("rule",),
    "Open tasks": ("task",),
}


def _applies(rule: MemoryItem, directory: str, files: Iterable[str]) -> bool:
    """Return whether a rule applies to a directory.

    It does if it names no path, or matches a file there or one that could be created there.
    """
    patterns = rule.scope.paths
    if rule.status != "active" or rule.kind not in _RULES:
        return False
    if not patterns or any(_reaches(pattern, directory) for pattern in patterns):
        return True
    return any(matches(patterns, name) for name in files)


def _reaches(pattern: str, directory: str) -> bool:
    """Return whether a glob names the directory, a parent of it, or one file that could be in it."""
    *folders, name = pattern.strip("/").split("/")
    fixed: list[str] = []
    for folder in folders:
        if any(mark in folder for mark in "*?["):
            break
        fixed.append(folder)
    here = directory.split("/") if directory else []
    if fixed != here[: len(fixed)]:
        return False
    named = not any(mark in name for mark in "*?[")
    floating = len(fixed) < len(folders) or not folders
    return name == "**" or (named and (floating or fixed == here))


def _purpose(files: Mapping[str, str | None]) -> str:
    """Return what describes a directory best.

    That is the first paragraph of the README, or the description of the package or of the best file; empty if
    there is none.
    """
    own = {name: text for name, text in files.items() if text and "/" not in name}
    for name in sorted(filter(_README.match, own), key=lambda name: (len(name), name)):
        title, paragraph = _first_words(name, own[name][:READ_CHARACTERS])
        if title or paragraph:
            return ": ".join(part for part in (title, paragraph) if part)
    for name in sorted(own, key=lambda name: (not _PACKAGE.fullmatch(name), _prominence(name))):
        if words := _describe(name, own[name]):
            return words if _PACKAGE.fullmatch(name) else f"{name}: {words}"
    return ""


def _names(files: Iterable[str]) -> str:
    """Return the names of the files and directories of a directory that nothing describes."""
    parts = (PurePosixPath(name).parts[0].partition(".")[0] for name in files)
    names = [name[:60] for name in dict.fromkeys(parts) if name and not _PACKAGE.match(f"{name}.py")]
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"Nothing describes it; its parts are {', '.join(names[:_LISTED])}{more}." if names else ""


def _first_words(path: str, text: str) -> tuple[str, str]:
    """Return the title and first paragraph of a document."""
    headings = outline(path, text)
    # A heading further down is not the title.
    title = headings[0].symbol if headings and headings[0].start_line <= 40 else ""  # noqa: PLR2004
    for block in re.split(r"\n\s*\n", text[:20_000]):
        lines = (line.strip() for line in block.strip().split("\n"))
        prose = (line for line in lines if not _NO_PROSE.match(line) and line != title)
        words = " ".join(" ".join(prose).split())
        if len(words.split()) >= 4:  # noqa: PLR2004 (shorter is a badge or a rule of dashes)
            return title, _sentences(words, 400)
    return title, ""


def _describe(path: str, text: str) -> str:
    """Return one sentence about a file: its docstring, its first comment, or its title."""
    text = text[:READ_CHARACTERS]
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in {".md", ".markdown", ".rst", ".txt"}:
        title, paragraph = _first_words(path, text)
        return _sentences(title or paragraph, 160)
    if suffix in {".json", ".toml"}:
        found = _DESCRIPTION.search(text) if _PACKAGE.fullmatch(PurePosixPath(path).name) else None
        if found:
            return _sentences(found[1].replace('\\"', '"'), 160)
    if suffix in {".py", ".pyi"}:
        code = dropwhile(lambda line: not line.strip() or line.startswith("#"), text.split("\n"))
        if docstring := _QUOTES.match("\n".join(islice(code, 60))):
            return _sentences(" ".join(docstring[2].split("\n\n")[0].split()), 160)
    return _sentences(_leading_comment(text, suffix), 160)


def _leading_comment(text: str, suffix: str) -> str:
    """Return the words of a source file's leading comment, unless it is a licence or a directive."""
    hashed = suffix in {".py", ".sh", ".rb", ".toml", ".yml", ".yaml", ".cfg"}
    words: list[str] = []
    for line in text.split("\n")[:30]:
        bare = line.strip()
        if bare.startswith("#!") or (not words and (not bare or _DIRECTIVE.match(bare))):
            continue
        if not bare.startswith("#" if hashed else ("//", "/*", "*")):
            break
        words.append(bare.strip("/*#! "))
    found = " ".join(" ".join(words).split())
    return "" if _NO_DESCRIPTION.search(found) else found


def _prominence(name: str) -> tuple[int, int, str]:
    """Sort key that puts first what a reader opens first."""
    base = PurePosixPath(name).name
    known = next((n for n, e in enumerate(_ENTRY_POINTS) if base == e or PurePosixPath(base).stem == e), 99)
    return (name.count("/"), 0 if _README.match(base) else 1 + known, name)


def _counts(files: Iterable[str]) -> str:
    """Return how many files of each kind and in each directory there are."""
    paths = list(map(PurePosixPath, files))
    kinds = _by_count(path.suffix.lower() or "without a suffix" for path in paths)
    folders = _by_count(path.parts[0] for path in paths if len(path.parts) > 1)
    shown = ", ".join(f"{count} {kind}" for kind, count in kinds[:8])
    counts = f"{len(paths)} file{'s' * (len(paths) != 1)}" + (f": {shown}" if shown else "")
    listed = ", ".join(f"`{name}/` ({count})" for name, count in folders[:_LISTED])
    more = f" and {len(folders) - _LISTED} more" if len(folders) > _LISTED else ""
    return f"{counts}\nDirectories: {listed}{more}" if folders else counts


def _by_count(names: Iterable[str]) -> list[tuple[str, int]]:
    return sorted(Counter(names).items(), key=lambda pair: (-pair[1], pair[0]))


def _file_lines(files: Mapping[str, str | None]) -> Iterator[str]:
    """Yield a line for each notable file: what it is, and its top-level definitions.

    Private definitions are listed only if there are no others.
    """
    for name in sorted(files, key=_prominence)[:MAX_FILES]:
        text = files[name]
        if text is None:
            yield f"- `{name}` (not text, or too large to read)"
            continue
        entries = (one for one in outline(name, text[:READ_CHARACTERS]) if "." not in one.symbol)
        names = list(dict.fromkeys(e.symbol for e in entries if e.kind not in {"heading", "section"}))
        names = [one for one in names if not one.startswith("_")] or names
        symbols = ", ".join(f"`{one[:60]}`" for one in names[:MAX_SYMBOLS])
        more = f" and {len(names) - MAX_SYMBOLS} more" if len(names) > MAX_SYMBOLS else ""
        words = _describe(name, text)
        described = f"- `{name}`" + (f": {words}" if words else "")
        yield described + (f" Defines {symbols}{more}." if symbols else "")


def _fit(head: Sequence[str], entries: Sequence[str], files: int) -> str:
    """Join the parts, with as many files as fit in the budget; the rules are never dropped."""
    text = "\n\n".join(filter(None, head))
    for kept in range(len(entries), 0, -1):
        more = [f"- … {files - kept} more; see `list_directory`"] if files > kept else []
        whole = "\n\n".join([text, "\n".join(["## Files", *entries[:kept], *more])])
        if count_tokens(whole) <= MAX_TOKENS:
            return whole
    return text


def _item_line(item: MemoryItem) -> str:
    """Return a line for an item with its evidence."""
    seqs = ", ".join(str(seq) for seq in dict.fromkeys(e.seq for e in item.evidence))
    source = f", event {seqs}" if seqs else ""
    until = f"; until {_one_line(item.until)}" if item.until else ""
    scope = f"; in {', '.join(item.scope.paths)}" if item.scope.paths else ""
    return f"- {_one_line(item.text)}{scope}{until} ({item.id}{source})"


def _decisions_in(text: str) -> Iterator[str]:
    """Yield sentences that announce a decision, outside fenced and quoted parts. Questions do not count."""
    for line in re.sub(r"```.*?(?:```|\Z)", "\n", text, flags=re.DOTALL).split("\n"):
        if line.lstrip().startswith((">", "|", "    ")):
            continue
        for sentence in _SENTENCE.split(line):
            if _DECISION.search(sentence) and not sentence.rstrip().endswith("?"):
                yield sentence


def _bounded(sections: Mapping[str, list[str]], max_tokens: int) -> str:
    """Return sections as Markdown; drops the oldest lines of the longest section until the budget is met."""
    left = {title: lines for title, lines in sections.items() if lines}
    sizes = {title: [count_tokens(line) + 1 for line in lines] for title, lines in left.items()}
    dropped = dict.fromkeys(left, 0)
    room = max_tokens - sum(count_tokens(f"## {title}") + 16 for title in left)
    while sum(map(sum, sizes.values())) > room and any(sizes.values()):
        longest = max(sizes, key=lambda title: sum(sizes[title]))
        sizes[longest].pop(0)
        dropped[longest] += 1
    parts = []
    for title, lines in left.items():
        gone = dropped[title]
        more = [f"- … {gone} older left out"] if gone else []
        parts.append("\n".join([f"## {title}", *more, *lines[gone:]]))
    return "\n\n".join(parts)


def _one_line(text: str) -> str:
    return shorten(text, 60)[:500]


def _sentences(text: str, most: int) -> str:
    """Return as many whole sentences as fit, or at least the start of the first."""
    if len(text) <= most:
        return text
    kept = ""
    for sentence in _SENTENCE.split(text):
        if len(kept) + len(sentence) + 1 > most:
            break
        kept = f"{kept} {sentence}".strip()
    return kept or text[: most - 2].rsplit(" ", 1)[0] + " …"
