"""What a stage adds to the long-term memory: text behind the end of an append-only file, and facts to remember.

What is there is never rewritten: text begins on a line of its own, under a heading of its own, and can neither close nor forge
anything that stands before it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from agentx.storage.direction_events import NewKnowledge
from agentx.storage.events import Event
from agentx.storage.pipeline_events import StageProved
from agentx.storage.text import one_line
from agentx.synthesis.chunking.headings import fenced, markdown_headings
from agentx.synthesis.conclusions import Add, Change
from agentx.synthesis.extractor import ReadBody
from agentx.synthesis.items import Evidence, MemoryItem, item_id, shorten
from agentx.synthesis.pipelines.markdown import Entry, entries, is_plain, lines_of, sections, title_words
from agentx.synthesis.pipelines.plan import AppendFile
from agentx.synthesis.pipelines.templates import fill
from agentx.synthesis.state import State

LEVEL = 2
"""Of the heading that an item gets in a file of the long-term memory; the headings of its text are below that."""

MAX_FACT = 400
"""Characters of one fact; the file has the rest."""

_LOWEST = 6
_MARKER = re.compile(r"\s*<!--\s*[A-Z][A-Z0-9_]*\s*-->\s*")
_HTML = re.compile(r"<(?=!--)|^( {0,3})<(?=[?!]|(?:script|pre|style|textarea)\b)", re.IGNORECASE)
_NOTHING = re.compile(
    r"(?:(?:none|nothing|nil|n ?a|no (?:new|further|other|additional) \w+)(?: (?:new|yet|here|so far|to \w+|in this \w+))*+)?"
)
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？]")


class Appending(msgspec.Struct, frozen=True):
    """What is added to a file of the long-term memory.

    Attributes:
        path: The file.
        text: What comes behind what is there; it begins on a fresh line and ends with a line break.
        learned: What is new in it, as facts.
    """

    path: str
    text: str
    learned: tuple[NewKnowledge, ...]


def appending(append: AppendFile, before: str, written: str, values: Mapping[str, Any]) -> Appending | None:
    """What a stage adds to a file of the long-term memory.

    Args:
        append: Where to, and from which section of which file.
        before: What the file holds; empty where it is not there yet.
        written: What the stage wrote.
        values: For the templates of ``section``, ``under`` and ``topic``.

    Returns:
        ``None`` where the section is missing or empty, says "none", or stands there already.

    Raises:
        TemplateInvalid: A template cannot be filled.
    """
    rule = append.rule
    known = "\n".join(["", *lines_of(before), ""])
    blocks = list(_blocks(_section(written, fill(rule.section, values))))
    new = [block for block in blocks if isinstance(block, str) or not _stands_in(block, known)]
    said = [block for block in new if isinstance(block, Entry)]
    if all(_says_nothing(entry.text) for entry in said):
        return None
    topic = one_line(fill(rule.topic, values))
    facts = (
        NewKnowledge(topic, fact) for entry in said if topic and is_plain(entry) and (fact := _fact(entry))
    )
    title = one_line(fill(rule.under, values)).lstrip("# ") or _name(values)
    return Appending(append.to, _behind(before, title, _body(new)), tuple(facts))


# --- what is taken from a file ----------------------------------------------------------------------------------------


def _section(written: str, title: str) -> list[str]:
    """The lines of a section without its heading; of the whole file without its first heading, where no section is named."""
    every = list(sections(written))
    if title:
        wanted = title_words(title)
        found = [one for one in every if one.line and title_words(one.title)[: len(wanted)] == wanted]
        exact = [one for one in found if title_words(one.title) == wanted]
        return list((exact or found)[0].whole) if found else []
    lines = lines_of(written)
    if len(every) > 1 and not any(line.strip() for line in every[0].own):
        lines = lines[every[1].first - 1 :]
    return lines


def _blocks(lines: Sequence[str]) -> Iterator[Entry | str]:
    """The headings of a section, as Markdown, and its entries; completion markers left out."""
    text = ["", *lines]  # a first line of dashes begins no front matter here
    kept = [
        "" if not code and _MARKER.fullmatch(line) else line
        for line, code in zip(text, fenced(text), strict=True)
    ]
    for section in sections("\n".join(kept)):
        if section.line:
            yield f"{'#' * section.level} {section.title}"
        yield from entries(section.own, section.first)


def _stands_in(entry: Entry, known: str) -> bool:
    return "\n".join(["", *entry.lines, ""]) in known


def _says_nothing(text: str) -> bool:
    """Whether an entry only says that there is none."""
    words = re.sub(r"[\W_]+", " ", text[: MAX_FACT + 1]).strip().casefold()
    return len(text) <= MAX_FACT and _NOTHING.fullmatch(words) is not None


def _fact(entry: Entry) -> str:
    """An entry as a sentence: in one line, without emphasis, and cut behind a sentence where it is long."""
    text = one_line(re.sub(r"\*\*|__|`", "", entry.text))
    if _says_nothing(text):
        return ""
    if len(text) <= MAX_FACT:
        return text
    ends = [found.end() for found in _SENTENCE_END.finditer(text, 0, MAX_FACT)]
    return text[: ends[-1]] if ends else f"{text[: MAX_FACT - 1].rpartition(' ')[0] or text[: MAX_FACT - 1]}…"


# --- what is added to a file ------------------------------------------------------------------------------------------


def _body(blocks: Sequence[Entry | str]) -> list[str]:
    """The lines that are added: every heading below that of the item, no fence left open, and nothing hidden."""
    lines: list[str] = []
    last: Entry | str = ""
    for block in blocks:
        tight = isinstance(block, Entry) and isinstance(last, Entry) and block.listed and last.listed
        lines += [] if tight else [""]
        lines += [block] if isinstance(block, str) else block.lines
        last = block
    lines = [
        line if code else _HTML.sub(r"\1&lt;", line) for line, code in zip(lines, fenced(lines), strict=True)
    ]
    return _demoted(lines) + [mark for *_, mark in [tuple(fenced([*lines, ""]))] if mark]


def _demoted(lines: list[str]) -> list[str]:
    headings = list(markdown_headings(["", *lines]))
    shift = LEVEL + 1 - min((heading.level for heading in headings), default=_LOWEST)
    for heading in headings:
        at = heading.line - 1
        if heading.height > 1:
            lines[at + 1] = ""
        title = re.sub(r"^ {0,3}#{1,6}(?=[ \t]|$)[ \t]*", "", lines[at])
        lines[at] = f"{'#' * min(max(heading.level + shift, LEVEL + 1), _LOWEST)} {title.strip()}".rstrip()
    return lines


def _behind(before: str, title: str, body: list[str]) -> str:
    """What comes behind a file's end: a fence that is open there is closed, and the item's heading stands once at a time."""
    lines = lines_of(before)
    begin = "" if not before or before.endswith(("\n", "\r")) else "\n"
    *_, open_fence = fenced([*lines, ""])
    if open_fence:
        begin += f"{open_fence}\n"
    own = f"{'#' * LEVEL} {title}"
    heads = [] if f"\n{own}" in f"\n{before}" else [own]
    if not heads:
        last = [heading for heading in markdown_headings(lines) if heading.level <= LEVEL][-1:]
        heads = [] if last and lines[last[0].line].strip() == own and not open_fence else [own]
    text = "\n".join([*heads, *body] if heads else body).strip("\n")
    return f"{begin}{chr(10) if before.strip() else ''}{text}\n"


def _name(values: Mapping[str, Any]) -> str:
    """What an item is called where nothing else is said: ``Chapter 03``."""
    items = ((kind, one) for kind, one in values.items() if isinstance(one, Mapping) and "id" in one)
    return next((f"{kind[:1].upper()}{kind[1:]} {one['id']}" for kind, one in items), "Notes")


# --- what is remembered of it -----------------------------------------------------------------------------------------


class Learned:
    """Makes a memory item of each fact that a stage was proved with (an :class:`agentx.synthesis.extractor.Extractor`).

    What a file holds already is not added to it again, so a fact comes once: none is compared with those before it.
    """

    name: ClassVar[str] = "pipeline"
    version: ClassVar[int] = 1

    def conclude(self, event: Event, state: State, read: ReadBody) -> Sequence[Change]:
        """An item of knowledge for each fact of a stage; nothing for other events."""
        del state, read
        if not isinstance(event.data, StageProved):
            return ()
        start, made = 0, list[Change]()
        for ordinal, fact in enumerate(event.data.learned):
            end = start + len(fact.text)
            made.append(
                Add(
                    MemoryItem(
                        id=item_id("knowledge", event.seq, ordinal),
                        kind="knowledge",
                        text=fact.text,
                        short=shorten(fact.text),
                        domain=fact.topic,
                        evidence=(Evidence(event.seq, start, end, fact.text),),
                        trust="agent",
                    )
                )
            )
            start = end + 1
        return made
