"""What a stage adds to the long-term memory: text behind the end of an append-only file, and facts to remember.

What is there is never rewritten: text begins on a line of its own, under a heading of its own, and can neither close nor forge
anything that stands before it.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from agentx.storage.events.direction_events import NewKnowledge
from agentx.storage.events.pipeline_events import StageProved, Superseded
from agentx.storage.events.types import Event
from agentx.storage.text import one_line
from agentx.synthesis.chunking.headings import fenced, markdown_headings
from agentx.synthesis.memory.items import item_id
from agentx.synthesis.pipelines.definition.plan import AppendFile
from agentx.synthesis.pipelines.proving.markdown import (
    Entry,
    entries,
    is_plain,
    lines_of,
    sections,
    title_words,
)
from agentx.synthesis.pipelines.running.replaced import (
    Added,
    holds,
    note,
    open_at_end,
    places_of,
    replaced,
    without,
)
from agentx.synthesis.pipelines.templates import fill

LEVEL = 2
"""Of the heading that an item gets in a file of the long-term memory; the headings of its text are below that."""

MAX_FACT = 400
"""Characters of one fact; the file has the rest."""

_LONGEST_TERM = 6
"""Words before a colon that are still a term."""

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
        text: What comes behind what is there; it begins on a fresh line and ends with a line break. Empty where what stands
            there says the same already.
        learned: What the stage has to say in it, as facts.
    """

    path: str
    text: str
    learned: tuple[NewKnowledge, ...]


class _Taken(msgspec.Struct, frozen=True):
    """What is taken from a file, and the heading that it gets."""

    title: str
    body: tuple[str, ...] = ()
    learned: tuple[NewKnowledge, ...] = ()


def appending(
    appends: Sequence[AppendFile],
    before: str,
    written: Mapping[str, str],
    values: Mapping[str, Any],
    earlier: Sequence[Added] = (),
) -> Appending | None:
    """What a stage adds to a file of the long-term memory.

    Args:
        appends: Where to, which is one file, and from which sections of which files.
        before: What the file holds; empty where it is not there yet.
        written: What the stage wrote, by path.
        values: For the templates of ``section``, ``under`` and ``topic``.
        earlier: What the same stage added to it for the same item before: all of it is replaced, unless it says the same.

    Returns:
        ``None`` where the sections are missing or empty, say "none", or stand there already, and there is nothing to replace.

    Raises:
        TemplateInvalid: A template cannot be filled.
    """
    lines = lines_of(before)
    own = places_of(lines, earlier)
    standing = "\n".join(without(lines, [*own, *replaced(lines)]))
    taken: list[_Taken] = []
    for append in appends:
        known = "\n".join(["", standing, *(line for one in taken for line in one.body), ""])
        taken += _taken(append, known, written[append.source], values)
    if not taken and not own:
        return None
    text = ""
    if _said(line for one in taken for line in one.body) != _said(holds(lines, own)):
        notes = ["", *(note(lines, place) for place in own)] if own else []
        for one in taken or [_Taken(_title(appends[0], values))]:
            text += _behind(before + text, standing + text, one.title, [*notes, *one.body])
            notes = []
    return Appending(appends[0].to, text, tuple(fact for one in taken for fact in one.learned))


def _taken(append: AppendFile, known: str, written: str, values: Mapping[str, Any]) -> Iterator[_Taken]:
    blocks = list(_blocks(_section(written, fill(append.rule.section, values))))
    new = [block for block in blocks if isinstance(block, str) or not _stands_in(block, known)]
    said = [block for block in new if isinstance(block, Entry)]
    if all(_says_nothing(entry.text) for entry in said):
        return
    topic = one_line(fill(append.rule.topic, values))
    facts = (
        NewKnowledge(topic, fact) for entry in said if topic and is_plain(entry) and (fact := _fact(entry))
    )
    yield _Taken(_title(append, values), tuple(_body(new)), tuple(facts))


def _title(append: AppendFile, values: Mapping[str, Any]) -> str:
    return one_line(fill(append.rule.under, values)).lstrip("# ") or _name(values)


def _said(lines: Iterable[str]) -> list[str]:
    """What lines say under the headings of items, whatever those are: two texts that say the same are equal in it."""
    every = [line for line in lines if line.strip()]
    heads = {heading.line for heading in markdown_headings(["", *every]) if heading.level <= LEVEL}
    return [line for number, line in enumerate(every, 1) if number not in heads]


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


def _behind(before: str, standing: str, title: str, body: list[str]) -> str:
    """What comes behind a file's end: a fence that is open there is closed, and the item's heading stands once at a time.

    Whether the heading stands there, ``standing`` says: the file without what holds no more.
    """
    begin = "" if not before or before.endswith(("\n", "\r")) else "\n"
    open_fence = open_at_end(lines_of(before)) if "```" in before or "~~~" in before else ""
    if open_fence:
        begin += f"{open_fence}\n"
    own = f"{'#' * LEVEL} {title}"
    heads = [] if f"\n{own}" in f"\n{standing}" else [own]
    if not heads:
        lines = lines_of(standing)
        last = [heading for heading in markdown_headings(lines) if heading.level <= LEVEL][-1:]
        heads = [] if last and lines[last[0].line].strip() == own and not open_fence else [own]
    text = "\n".join([*heads, *body] if heads else body).strip("\n")
    return f"{begin}{chr(10) if before else ''}{text}\n"


def _name(values: Mapping[str, Any]) -> str:
    """What an item is called where nothing else is said: ``Chapter 03``."""
    items = ((kind, one) for kind, one in values.items() if isinstance(one, Mapping) and "id" in one)
    return next((f"{kind[:1].upper()}{kind[1:]} {one['id']}" for kind, one in items), "Notes")


# --- what is remembered of it -----------------------------------------------------------------------------------------


class Remembered(msgspec.Struct, frozen=True):
    """What a stage added to the long-term memory for an item so far, and what holds of it.

    Attributes:
        added: The blobs of each file before and after it was added to, by path.
        facts: By the id of their memory item.
    """

    added: dict[str, list[tuple[str, str]]]
    facts: dict[str, NewKnowledge]


def remembered(events: Iterable[Event]) -> Remembered:
    """What the proofs of a step left in the long-term memory; other events say nothing of it."""
    made = Remembered({}, {})
    for event in events:
        if isinstance(event.data, StageProved):
            for change in event.data.changes:
                made.added.setdefault(change.path, []).append((change.before, change.after))
            for one in event.data.superseded:
                made.facts.pop(one.item, None)
            for number, fact in enumerate(event.data.learned):
                made.facts[item_id("knowledge", event.seq, number)] = fact
    return made


def superseded(
    before: Mapping[str, NewKnowledge], now: Collection[NewKnowledge], new: Sequence[NewKnowledge]
) -> Iterator[Superseded]:
    """What holds no more of what a stage said before: another definition of a term came in its place, or nothing did.

    Args:
        before: What it said, by memory item.
        now: What it says.
        new: What of that it did not say before, as it is remembered.
    """
    of = {(fact.topic, _term(fact.text)): number for number, fact in reversed(list(enumerate(new, 1)))}
    for item, fact in before.items():
        if fact not in now:
            yield Superseded(item, of.get((fact.topic, _term(fact.text)), 0))


def _term(fact: str) -> str:
    """What a fact defines, for the latest definition of it to hold; empty for a sentence."""
    term, colon, _ = fact.partition(":")
    return term.casefold().strip() if colon and len(term.split()) <= _LONGEST_TERM else ""
