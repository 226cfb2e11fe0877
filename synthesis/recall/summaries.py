"""Virtual READMEs and the list of what stands: read from files and memory, never made up by a model.

Both are pure and deterministic: the same files and the same items give the same words.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

import msgspec

from agentx.synthesis.chunking import OutlineEntry, outline
from agentx.synthesis.gates.enforcement import matches
from agentx.synthesis.language.tokens import count_tokens
from agentx.synthesis.memory.items import Kind, MemoryItem, shorten
from agentx.synthesis.state.state import Message

MAX_TOKENS = 700
"""What a summary of a directory takes at most."""

MAX_RULES = 20
"""Rules that a summary of a directory shows in full; the rest are counted."""

MAX_FILES = 12
"""Files that a summary of a directory names."""

MAX_SYMBOLS = 6
"""Definitions named for one file."""

READ_CHARACTERS = 200_000
"""What is read of one file to summarise it."""

_README = re.compile(r"readme(?:\.(?:md|markdown|rst|txt))?$", re.IGNORECASE)
_ENTRY_POINTS = (
    "__init__.py",
    "__main__.py",
    "main",
    "index",
    "app",
    "lib",
    "mod",
    "pyproject.toml",
    "package.json",
)
_RULES: tuple[Kind, ...] = ("constraint", "rejection", "rule")
_NO_PROSE = re.compile(r"^(?:#|=|-{3}|\*{3}|```|~~~|\||>|<|!\[|\[!|\.\. |:|\[[^\]]*\]:|[-*+] )")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_QUOTES = re.compile(r"^\s*[rRuU]?(\"\"\"|''')(.*?)\1", re.DOTALL)
_DECISION = re.compile(
    r"\b(?:we(?:'ll| will| have|'ve)? (?:decided|agreed|chosen|settled)\b|(?:i|we)(?:'ve| have)? decided\b"
    r"|(?:let's|let us|we(?:'ll| will| should)|i(?:'ll| will)) (?:go with|stick (?:with|to)|settle on|switch to)\b"
    r"|(?:the )?decision(?: is|:)|decided (?:to|on|against)\b|going with\b)",
    re.IGNORECASE,
)


class DirectorySummary(msgspec.Struct, frozen=True, kw_only=True):
    """What a directory is for, as far as its files say it.

    Attributes:
        path: The directory, relative to the artifacts root; empty for the root itself.
        text: A README in Markdown, within :data:`MAX_TOKENS` tokens.
        files: How many files stand below it.
        rules: Ids of the memory items that apply there, in the order in which they are shown.
    """

    path: str
    text: str
    files: int
    rules: tuple[str, ...] = ()


def directory_purpose(
    path: str,
    files: Mapping[str, str | None],
    rules: Sequence[MemoryItem] = (),
    *,
    max_tokens: int = MAX_TOKENS,
) -> DirectorySummary:
    r"""Summarise a directory: its purpose in its own words, what lies in it, and the rules that apply there.

    Args:
        path: The directory, relative to the artifacts root with forward slashes; ``""`` or ``.`` for the root.
        files: Every file below it by path from the artifacts root, with its text; ``None`` where it is binary or too
            large to read.
        rules: Memory items that could apply; those that are active and whose scope reaches the directory are shown.
        max_tokens: What the text may take; what does not fit is left out from the end, never the rules.

    >>> print(directory_purpose("app", {"app/README.md": "# Billing\n\nPays invoices when they are due."}).text)
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
    inside = {
        name: files[name] for name in sorted(files) if not directory or name.startswith(f"{directory}/")
    }
    applying = [rule for rule in rules if _applies(rule, directory, inside)]
    head = f"# {directory or '.'}"
    sections = [_rules_section(applying), _counts(directory, inside)]
    purpose = _purpose(directory, inside)
    entries = list(_file_lines(directory, inside))
    text = _fit(head, purpose, sections, entries, len(inside), max_tokens)
    return DirectorySummary(
        path=directory, text=text, files=len(inside), rules=tuple(rule.id for rule in applying)
    )


def summarize_decisions(
    items: Iterable[MemoryItem], messages: Iterable[Message] = (), *, max_tokens: int = 1_500
) -> str:
    """What stands now, as Markdown: demands, what was ruled out, decisions and open tasks, each with its events.

    Args:
        items: Memory items; those that are active are listed, newest last.
        messages: Recent messages; sentences in them that announce a decision are listed as said, where no item rests
            on the same event.
        max_tokens: What the text may take; the oldest lines of the longest section are left out first, and counted.

    Returns:
        Markdown, or one sentence where nothing stands.
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


# --- rules of a place ------------------------------------------------------------------------------------------------


def _applies(rule: MemoryItem, directory: str, files: Mapping[str, str | None]) -> bool:
    """Whether a rule reaches a directory: it names no path, matches a file there, or one that could be made there."""
    if rule.status != "active" or rule.kind not in _RULES:
        return False
    patterns = rule.scope.paths
    return (
        not patterns
        or any(_reaches(p, directory) for p in patterns)
        or any(matches(patterns, name) for name in files)
    )


def _reaches(pattern: str, directory: str) -> bool:
    """Whether a glob names a place at or above the directory, or one file that could stand in it."""
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


def _rules_section(rules: Sequence[MemoryItem]) -> str:
    if not rules:
        return ""
    lines = [_item_line(rule) for rule in rules[:MAX_RULES]]
    more = [f"- … and {len(rules) - MAX_RULES} more"] if len(rules) > MAX_RULES else []
    return "\n".join(["## Rules that apply here", *lines, *more])


# --- what a directory says of itself ---------------------------------------------------------------------------------


def _purpose(directory: str, files: Mapping[str, str | None]) -> str:
    """The first paragraph of its README, otherwise the docstring of its package, otherwise of the best file."""
    own = {_relative(directory, name): text for name, text in files.items() if text}
    for name in sorted((n for n in own if "/" not in n and _README.match(n)), key=lambda n: (len(n), n)):
        title, paragraph = _first_words(name, own[name][:READ_CHARACTERS])
        if title or paragraph:
            return ": ".join(part for part in (title, paragraph) if part)
    for name in sorted((n for n in own if "/" not in n), key=_prominence):
        if words := _describe(name, own[name]):
            return f"{name}: {words}" if name != "__init__.py" else words
    return ""


def _first_words(path: str, text: str) -> tuple[str, str]:
    """Title and first paragraph of a document."""
    headings = outline(path, text)
    title = headings[0].symbol if headings and headings[0].start_line <= 40 else ""  # noqa: PLR2004 (near the top)
    for block in re.split(r"\n\s*\n", text[:20_000]):
        lines = [
            line
            for line in block.strip().split("\n")
            if not _NO_PROSE.match(line.strip()) and line.strip() != title
        ]
        words = " ".join(" ".join(lines).split())
        if len(words.split()) >= 4:  # noqa: PLR2004 (shorter is a badge or a rule of dashes)
            return title, _sentences(words, 400)
    return title, ""


def _describe(path: str, text: str) -> str:
    """One sentence of what a file is: its docstring, its first comment, its title."""
    text = text[:READ_CHARACTERS]
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in {".md", ".markdown", ".rst", ".txt"}:
        title, paragraph = _first_words(path, text)
        return _sentences(title or paragraph, 160)
    if suffix in {".py", ".pyi"} and (docstring := _QUOTES.match(_after_comments(text))):
        return _sentences(" ".join(docstring[2].split("\n\n")[0].split()), 160)
    return _sentences(_leading_comment(text, suffix), 160)


def _after_comments(text: str) -> str:
    lines = text.split("\n")
    start = next((n for n, line in enumerate(lines) if line.strip() and not line.startswith("#")), len(lines))
    return "\n".join(lines[start : start + 60])


def _leading_comment(text: str, suffix: str) -> str:
    """The words of the comment that a source file opens with, unless they are a licence or a directive."""
    mark = (
        {"//", "/*", "*"} if suffix not in {".py", ".sh", ".rb", ".toml", ".yml", ".yaml", ".cfg"} else {"#"}
    )
    words: list[str] = []
    for line in text.split("\n")[:30]:
        bare = line.strip()
        if bare.startswith("#!") or (not bare and not words):
            continue
        if not bare.startswith(tuple(mark)):
            break
        words.append(bare.strip("/*#! "))
    found = " ".join(" ".join(words).split())
    return (
        "" if re.search(r"copyright|licen[sc]e|SPDX|eslint|@ts-|coding[:=]", found, re.IGNORECASE) else found
    )


def _prominence(name: str) -> tuple[int, int, str]:
    """Sorts what a reader opens first to the front."""
    base = PurePosixPath(name).name
    known = next((n for n, e in enumerate(_ENTRY_POINTS) if base == e or PurePosixPath(base).stem == e), 99)
    return (name.count("/"), 0 if _README.match(base) else 1 + known, name)


# --- what lies in it -------------------------------------------------------------------------------------------------


def _counts(directory: str, files: Mapping[str, str | None]) -> str:
    kinds = Counter(PurePosixPath(name).suffix.lower() or "without a suffix" for name in files)
    shown = ", ".join(
        f"{count} {kind}" for kind, count in sorted(kinds.items(), key=lambda k: (-k[1], k[0]))[:8]
    )
    folders = Counter(rest.split("/")[0] for name in files if "/" in (rest := _relative(directory, name)))
    lines = [f"{len(files)} file{'s' * (len(files) != 1)}" + (f": {shown}" if shown else "")]
    if folders:
        names = sorted(folders.items(), key=lambda f: (-f[1], f[0]))
        listed = ", ".join(f"`{name}/` ({count})" for name, count in names[:10])
        lines.append(f"Directories: {listed}" + (f" and {len(names) - 10} more" if len(names) > 10 else ""))  # noqa: PLR2004
    return "\n".join(lines)


def _file_lines(directory: str, files: Mapping[str, str | None]) -> Iterator[str]:
    """A line for each notable file: what it is, and what it defines."""
    relative = {_relative(directory, name): text for name, text in files.items()}
    for name in sorted(relative, key=_prominence)[:MAX_FILES]:
        text = relative[name]
        if text is None:
            yield f"- `{name}` (not text, or too large to read)"
            continue
        words, symbols = _describe(name, text), _symbols(outline(name, text[:READ_CHARACTERS]))
        yield f"- `{name}`" + (f": {words}" if words else "") + (f" Defines {symbols}." if symbols else "")


def _symbols(entries: Sequence[OutlineEntry]) -> str:
    """The outermost definitions of a file, private ones last."""
    names = [e.symbol for e in entries if e.kind not in {"heading", "section"} and "." not in e.symbol]
    names = [n for n in dict.fromkeys(names) if not n.startswith("_")] or list(dict.fromkeys(names))
    more = f" and {len(names) - MAX_SYMBOLS} more" if len(names) > MAX_SYMBOLS else ""
    return ", ".join(f"`{name[:60]}`" for name in names[:MAX_SYMBOLS]) + more


def _fit(
    head: str, purpose: str, sections: Sequence[str], entries: Sequence[str], files: int, max_tokens: int
) -> str:
    """Put the parts together, with as many files as the budget holds."""
    rules, counts = sections
    for kept in range(len(entries), -1, -1):
        more = f"- … {files - kept} more; see `list_directory`" if files > kept else ""
        listed = "\n".join(["## Files", *entries[:kept], *([more] if more else [])]) if kept else ""
        text = "\n\n".join(part for part in (head, purpose, rules, counts, listed) if part)
        if count_tokens(text) <= max_tokens or kept == 0:
            return text
    raise AssertionError("the loop ends at no files")


# --- lines -----------------------------------------------------------------------------------------------------------


def _item_line(item: MemoryItem) -> str:
    """An item with what it rests on; only a user's own words are quoted as such."""
    seqs = ", ".join(str(seq) for seq in dict.fromkeys(e.seq for e in item.evidence))
    source = f", event {seqs}" if seqs else ""
    until = f"; until {_one_line(item.until)}" if item.until else ""
    scope = f"; in {', '.join(item.scope.paths)}" if item.scope.paths else ""
    return f"- {_one_line(item.text)}{scope}{until} ({item.id}{source})"


def _decisions_in(text: str) -> Iterator[str]:
    """Sentences that announce a decision, outside fenced and quoted parts; questions are none."""
    for line in re.sub(r"```.*?(?:```|\Z)", "\n", text, flags=re.DOTALL).split("\n"):
        if line.lstrip().startswith((">", "|", "    ")):
            continue
        for sentence in _SENTENCE.split(line):
            if _DECISION.search(sentence) and not sentence.rstrip().endswith("?"):
                yield sentence


def _bounded(sections: Mapping[str, list[str]], max_tokens: int) -> str:
    """Sections as Markdown; the oldest lines of the longest one give way until it fits."""
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
    """As many whole sentences as fit, at least the start of the first."""
    if len(text) <= most:
        return text
    kept = ""
    for sentence in _SENTENCE.split(text):
        if len(kept) + len(sentence) + 1 > most:
            break
        kept = f"{kept} {sentence}".strip()
    return kept or text[: most - 2].rsplit(" ", 1)[0] + " …"


def _relative(directory: str, name: str) -> str:
    return name.removeprefix(f"{directory}/") if directory else name
