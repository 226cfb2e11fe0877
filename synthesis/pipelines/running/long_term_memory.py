"""Additions of a stage to the long-term memory: text appended to append-only files, and facts to remember.

Existing text is never rewritten. New text begins on its own line, under its own heading, and can neither
close nor forge anything before it.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from agentx.storage.events.direction_events import NewKnowledge
from agentx.storage.events.pipeline_events import (
    LEARNED_BYTES,
    SUPERSEDED_BYTES,
    FileAmended,
    StageProved,
    Superseded,
    fitting,
)
from agentx.storage.events.types import Event
from agentx.storage.text import one_line
from agentx.synthesis.chunking.headings import fenced, markdown_headings
from agentx.synthesis.memory.items import item_id
from agentx.synthesis.pipelines.proving.markdown import (
    MarkdownEntry,
    entries,
    is_plain,
    lines_of,
    sections,
    title_words,
)
from agentx.synthesis.pipelines.running.replaced import (
    Added,
    holds,
    in_force,
    note,
    open_at_end,
    places_of,
    replaced,
    without,
)
from agentx.synthesis.pipelines.templates import fill

if TYPE_CHECKING:  # a look at a workspace needs no definition of pipelines
    from agentx.synthesis.pipelines.definition.plan import AppendFile

LEVEL = 2
"""Level of an item's heading in a file of the long-term memory. The headings of its text are below it."""

MAX_FACT = 400
"""Maximum number of characters of a fact; the file has the rest."""

_LONGEST_TERM = 6
"""Maximum number of words before a colon that count as a term."""

_LOWEST = 6
_MARKER = re.compile(r"\s*<!--\s*[A-Z][A-Z0-9_]*\s*-->\s*")
_HTML = re.compile(r"<(?=!--)|^( {0,3})<(?=[?!]|(?:script|pre|style|textarea)\b)", re.IGNORECASE)
_NOTHING = re.compile(
    r"(?:(?:none|nothing|nil|n ?a|no (?:new|further|other|additional) \w+)"
    r"(?: (?:new|yet|here|so far|to \w+|in this \w+))*+)?"
)
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？]")


class Appending(msgspec.Struct, frozen=True):
    """An addition to a file of the long-term memory.

    Attributes:
        path: The file.
        text: The text to append. It begins on a new line and ends with a line break. Empty if the file says
            the same already.
        learned: The stage's facts in it.
    """

    path: str
    text: str
    learned: tuple[NewKnowledge, ...]


class _Taken(msgspec.Struct, frozen=True):
    """The content taken from a file, and the heading that it gets."""

    title: str
    body: tuple[str, ...] = ()
    learned: tuple[NewKnowledge, ...] = ()


def appending(
    appends: Sequence["AppendFile"],
    before: str,
    written: Mapping[str, str],
    values: Mapping[str, Any],
    earlier: Sequence[Added] = (),
) -> Appending | None:
    """Return what a stage adds to a file of the long-term memory.

    ``before`` has the contents of the target, which is one file, and ``written`` what the stage wrote, by
    path. All of ``earlier``, what the same stage added for the same item, is replaced, unless it says the
    same.

    Returns:
        ``None`` if the sections are missing or empty, say "none", or are in the file already, and there is
        nothing to replace.

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


def _taken(append: "AppendFile", known: str, written: str, values: Mapping[str, Any]) -> Iterator[_Taken]:
    blocks = list(_blocks(_section(written, fill(append.rule.section, values))))
    new = [one for one in blocks if isinstance(one, str) or "\n".join(["", *one.lines, ""]) not in known]
    said = [block for block in new if isinstance(block, MarkdownEntry)]
    if all(_says_nothing(entry.text) for entry in said):
        return
    topic = one_line(fill(append.rule.topic, values))
    facts = (
        NewKnowledge(topic, fact) for entry in said if topic and is_plain(entry) and (fact := _fact(entry))
    )
    yield _Taken(_title(append, values), tuple(_body(new)), tuple(facts))


def _title(append: "AppendFile", values: Mapping[str, Any]) -> str:
    """Return the heading of what is added; by default the name of the item, like ``Chapter 03``."""
    items = ((kind, one) for kind, one in values.items() if isinstance(one, Mapping) and "id" in one)
    name = next((f"{kind[:1].upper()}{kind[1:]} {one['id']}" for kind, one in items), "Notes")
    return one_line(fill(append.rule.under, values)).lstrip("# ") or name


def _said(lines: Iterable[str]) -> list[str]:
    """Return the lines without blank ones and item headings, so that equivalent texts are equal."""
    every = [line for line in lines if line.strip()]
    heads = {heading.line for heading in markdown_headings(["", *every]) if heading.level <= LEVEL}
    return [line for number, line in enumerate(every, 1) if number not in heads]


# --- taking from a file -------------------------------------------------------------------------------------


def _section(written: str, title: str) -> list[str]:
    """Return the lines of a section without its heading; without a title, those of the file.

    The file's first heading is left out too.
    """
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


def _blocks(lines: Sequence[str]) -> Iterator[MarkdownEntry | str]:
    """Yield the headings of a section, as Markdown, and its entries, without completion markers."""
    text = ["", *lines]  # a first line of dashes must not begin front matter here
    kept = [
        "" if not code and _MARKER.fullmatch(line) else line
        for line, code in zip(text, fenced(text), strict=True)
    ]
    for section in sections("\n".join(kept)):
        if section.line:
            yield f"{'#' * section.level} {section.title}"
        yield from entries(section.own, section.first)


def _says_nothing(text: str) -> bool:
    """Return whether an entry only says that there is nothing."""
    words = re.sub(r"[\W_]+", " ", text[: MAX_FACT + 1]).strip().casefold()
    return len(text) <= MAX_FACT and _NOTHING.fullmatch(words) is not None


def _fact(entry: MarkdownEntry) -> str:
    """Return an entry as one line without emphasis, cut after a sentence if it is long."""
    text = one_line(re.sub(r"\*\*|__|`", "", entry.text))
    if _says_nothing(text):
        return ""
    if len(text) <= MAX_FACT:
        return text
    ends = [found.end() for found in _SENTENCE_END.finditer(text, 0, MAX_FACT)]
    return text[: ends[-1]] if ends else f"{text[: MAX_FACT - 1].rpartition(' ')[0] or text[: MAX_FACT - 1]}…"


# --- appending to a file ------------------------------------------------------------------------------------


def _body(blocks: Sequence[MarkdownEntry | str]) -> list[str]:
    """Return the lines to append: headings below that of the item, no open fence, and no hidden text."""
    lines: list[str] = []
    last: MarkdownEntry | str = ""
    for block in blocks:
        tight = all(isinstance(one, MarkdownEntry) and one.listed for one in (block, last))
        lines += [] if tight else [""]
        lines += [block] if isinstance(block, str) else block.lines
        last = block
    lines = [
        line if code else _HTML.sub(r"\1&lt;", line) for line, code in zip(lines, fenced(lines), strict=True)
    ]
    headings = list(markdown_headings(["", *lines]))
    shift = LEVEL + 1 - min((heading.level for heading in headings), default=_LOWEST)
    for heading in headings:
        at = heading.line - 1
        if heading.height > 1:
            lines[at + 1] = ""
        title = re.sub(r"^ {0,3}#{1,6}(?=[ \t]|$)[ \t]*", "", lines[at])
        lines[at] = f"{'#' * min(max(heading.level + shift, LEVEL + 1), _LOWEST)} {title.strip()}".rstrip()
    open_fence = open_at_end(lines)
    return [*lines, open_fence] if open_fence else lines


def _behind(before: str, standing: str, title: str, body: list[str]) -> str:
    """Return the text to append: it closes an open fence, and repeats the item's heading only if needed.

    ``standing`` is the file without what no longer holds; it decides whether the heading is there.
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


# --- facts --------------------------------------------------------------------------------------------------


class Remembered(msgspec.Struct, frozen=True):
    """Everything a stage has added to the long-term memory for an item, and the facts that still hold.

    Attributes:
        added: The blobs of each file before and after each addition, by path.
        facts: By the id of their memory item.
    """

    added: dict[str, list[tuple[str, str]]]
    facts: dict[str, NewKnowledge]


def remembered(events: Iterable[Event]) -> Remembered:
    """Fold what the proofs of a step left in the long-term memory, and what people corrected in that.

    Other events are ignored.
    """
    made, ever = Remembered({}, {}), set[NewKnowledge]()
    for event in events:
        if isinstance(event.data, FileAmended):
            ours = {one.by - 1 for one in event.data.superseded if made.facts.pop(one.item, None)}
            for number, fact in enumerate(event.data.learned):
                if number in ours or fact in ever:
                    made.facts[item_id("knowledge", event.seq, number)] = fact
        if isinstance(event.data, StageProved):
            for change in event.data.changes:
                made.added.setdefault(change.path, []).append((change.before, change.after))
            for one in event.data.superseded:
                made.facts.pop(one.item, None)
            for number, fact in enumerate(event.data.learned):
                made.facts[item_id("knowledge", event.seq, number)] = fact
                ever.add(fact)
    return made


def superseded(
    before: Mapping[str, NewKnowledge], now: Collection[NewKnowledge], new: Sequence[NewKnowledge]
) -> Iterator[Superseded]:
    """Yield the earlier facts of a stage that no longer hold, with the new definition of the term, if any.

    ``now`` has its current facts, and ``new`` those of them that are new, as they are remembered.
    """
    of = {(fact.topic, _term(fact.text)): number for number, fact in reversed(list(enumerate(new, 1)))}
    for item, fact in before.items():
        if fact not in now:
            yield Superseded(item, of.get((fact.topic, _term(fact.text)), 0))


def facts_of(text: str) -> list[str]:
    """Return the entries of a long-term memory file as facts, without superseded ones."""
    every = (entry for section in sections(in_force(text)) for entry in entries(section.own, section.first))
    return list(dict.fromkeys(filter(None, (_fact(entry) for entry in every if is_plain(entry)))))


def corrected(
    facts: Mapping[str, NewKnowledge], topics: Mapping[str, str], before: str, after: str
) -> tuple[tuple[NewKnowledge, ...], tuple[Superseded, ...]]:
    """Return what a person's change of a long-term memory file changes in what is remembered.

    Args:
        facts: What is remembered now, by the id of its memory item.
        topics: Topics of all facts that were ever remembered, by their text.
        before: The file before the change.
        after: The file after the change.

    Returns:
        The facts to remember: those with another definition of their term, and those that came back. And the
        facts that the file no longer has.
    """
    was, now = facts_of(before), facts_of(after)
    ended = {item: fact for item, fact in facts.items() if fact.text in was and fact.text not in now}
    fresh = [text for text in now if text not in was]
    terms = {_term(text): text for text in fresh if _term(text)}
    changed = (
        NewKnowledge(fact.topic, terms[term])
        for fact in ended.values()
        if (term := _term(fact.text)) in terms
    )
    known = {fact.text for fact in facts.values()}
    back = (NewKnowledge(topics[text], text) for text in fresh if text in topics and text not in known)
    new = fitting(dict.fromkeys((*changed, *back)), LEARNED_BYTES)
    return new, fitting(superseded(ended, (), new), SUPERSEDED_BYTES)


def _term(fact: str) -> str:
    """Return the term that a fact defines, whose latest definition holds; empty for a sentence."""
    term, colon, _ = fact.partition(":")
    return term.casefold().strip() if colon and len(term.split()) <= _LONGEST_TERM else ""
