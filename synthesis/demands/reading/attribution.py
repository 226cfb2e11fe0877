"""Finds what a message attributes to somebody else: where such words begin, and where they end.

An attribution names a source (a person, a tool, a text, an address) and says that words come from it. It
opens a span:

- With a colon ("the reviewer wrote: …", "Ticket: …", "I get this: …"), over the following sentences.
- Without one ("my colleague told me to …"), over the sentence, and over the next ones if it reports an order.
- After the words ("…, says the linter", "… — from the wiki", "That's what the handbook says."), over the text
  before it.

A span ends where the user speaks again: at a blank line, a change of person or a request to the agent, as far
as these cannot be the source's own. Words in quotation marks and blocks are masked before; an attribution of
such words ends with them. The deciding words are in :mod:`agentx.synthesis.demands.tables.sources`.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agentx.synthesis.demands.tables import sources
from agentx.synthesis.language.sentences import Span, sentences

NAME = sources.NAME

_LEAD = 200
"""Number of characters before a colon that are read as the introduction of the words after it."""

_ENDORSABLE = 300
"""Maximum length in characters of a report that a user can mean by "do that"."""

_CLAUSE = 2
"""Minimum number of words of a clause."""

FAR = 2
"""Gap of a sentence after an empty line or a block."""


def is_own(words: str) -> bool:
    """Return whether a sentence is in the user's own voice.

    Signs are the first person, a request to the agent, or a turn to something else.
    """
    return bool(
        sources.FIRST_PERSON.search(words) or sources.RESUMES.match(words) or sources.TASK.match(words)
    )


class Unit(NamedTuple):
    """A sentence, and what separates it from the previous one.

    Attributes:
        start: Its start offset in the message.
        end: Its end offset.
        gap: 0 within a line, 1 after a line break, 2 after an empty line or a block.
        block: Whether a masked block precedes it.
        pasted: Whether it is a line of a log, a traceback or similar.
    """

    start: int
    end: int
    gap: int
    block: bool
    pasted: bool


class _Cue(NamedTuple):
    """An attribution in a sentence.

    Attributes:
        start: Its start offset.
        end: Offset at which the attributed words begin.
        direct: Whether a colon marks them as literal words.
        source: Whose words they are.
        opens: Whether they can continue after the sentence.
    """

    start: int
    end: int
    direct: bool
    source: sources.Source
    opens: bool


def attributed(text: str, original: str, pasted: Sequence[Span]) -> Iterator[Span]:
    """Yield the parts of a message that it attributes to somebody else, with the attributions, in order.

    Args:
        text: The message, with quotes, code and blocks masked.
        original: The original message, of the same length.
        pasted: Lines that nobody writes as a sentence.
    """
    units = units_of(text, original, pasted)
    number = free = 0
    after = False
    while number < len(units):
        unit = units[number]
        if (begins := _behind(text, units, number, free)) is not None:
            yield Span(begins, unit.end)
            number = free = number + 1
            continue
        cue = _cue(text, unit, units[number + 1] if number + 1 < len(units) else None, after=after)
        if cue is None:
            after = after or NAME * 3 in text[unit.start : unit.end]
            number += 1
            continue
        end, following = _reach(text, units, number, cue)
        yield Span(cue.start, end)
        after = True
        number = free = following
        if following < len(units) and end > units[following].start:
            units[following] = units[following]._replace(start=end)


def units_of(text: str, original: str, pasted: Sequence[Span]) -> list[Unit]:
    """Return the sentences of a message with what separates them; arguments as in :func:`attributed`."""
    units: list[Unit] = []
    lines = iter(pasted)
    line = next(lines, None)
    before = 0
    for span in sentences(text):
        while line and line.end <= span.start:
            line = next(lines, None)
        gap, masked = text[before : span.start], original[before : span.start]
        block = any(mine == "\n" and theirs not in "\r\n" for mine, theirs in zip(gap, masked, strict=True))
        breaks = len(sources.LINE_BREAK.findall(gap))
        far = FAR if block or sources.EMPTY_LINE.search(gap) else min(breaks, 1)
        units.append(
            Unit(span.start, span.end, far if units else FAR, block, bool(line and line.start < span.end))
        )
        before = span.end
    return units


# --- where the words of others begin --------------------------------------------------------------


def _cue(text: str, unit: Unit, behind: Unit | None, *, after: bool) -> _Cue | None:
    """Return the first attribution in a sentence that is about the words after it."""
    words = text[unit.start : unit.end]
    if behind and behind.gap:
        if _points_below(words, text[behind.start : behind.end], behind.gap):
            return _Cue(unit.end, unit.end, True, "text", True)
        # The line begins a paragraph and is neither a list item nor a Markdown heading.
        line = text[text.rfind("\n", 0, unit.start) + 1 : unit.start]
        above = unit.gap == FAR and not (unit.pasted or line.strip()) and text[unit.start] != "#"
        if above and (source := sources.heads(words)):
            return _Cue(unit.start, unit.end, True, source, True)
    if between := sources.MIDDLE.search(words):
        return _Cue(unit.start, unit.start + between.end(), False, sources.source_of(between.group()), True)
    cues = [cue for cue in (_heading(text, unit, after=after), _report(text, unit)) if cue]
    return min(cues, key=lambda cue: (cue.start, not cue.direct), default=None)


def _points_below(words: str, following: str, gap: int) -> bool:
    """Return whether a line is about a text below it: a question about it, or an address on its own."""
    asked = sources.ASKS_ABOUT.match(words)
    if asked and (gap < FAR or sources.PROSE.search(asked.group())):
        return True
    return bool(sources.ADDRESS_ALONE.match(words)) and not is_own(following)


def _heading(text: str, unit: Unit, *, after: bool) -> _Cue | None:
    """Return the attribution before a colon, if it names a source."""
    begin = unit.start
    for colon in sources.COLON.finditer(text, unit.start, unit.end):
        lead = text[max(begin, colon.start() - _LEAD) : colon.start()]
        inline = bool(text[colon.end() : unit.end].strip())
        found = sources.introduces(lead, inline=inline, after=after)
        if found:
            return _Cue(colon.start() - len(lead) + found.at, colon.end(), True, found.source, True)
        begin = colon.end()
    return None


def _report(text: str, unit: Unit) -> _Cue | None:
    """Return the attribution in a clause that tells what somebody says, without a colon."""
    words = text[unit.start : unit.end]
    if uttered := sources.UTTERANCE.match(words) or sources.UTTERED.match(words):
        return _Cue(
            unit.start, unit.start + uttered.start("said"), False, sources.source_of(uttered.group()), True
        )
    position = unit.start
    while match := sources.REPORT.search(text, position, unit.end):
        before = text[max(unit.start, match.start() - 24) : match.start()]
        position = match.end()
        if sources.SUBORDINATE.search(before):
            continue
        source = sources.source_of(match.group())
        said = text[match.end() : unit.end]
        if match["lists"]:
            return _Cue(match.start(), unit.end, True, source, True)
        if not said.strip(" .!?"):
            continue
        relative = bool(sources.RELATIVE.search(match.group()))
        indirect = bool(sources.INDIRECT.match(said)) or source == "person"
        opens = not relative and not match["self"] and (not indirect or bool(sources.DIRECTIVE.search(said)))
        return _Cue(match.start(), match.end(), False, source, opens)
    return None


# --- where they end -------------------------------------------------------------------------------


def _reach(text: str, units: Sequence[Unit], number: int, cue: _Cue) -> tuple[int, int]:
    """Return where a span ends, and the number of the sentence to read next."""
    unit = units[number]
    said = text[cue.end : unit.end]
    below = not said.strip()
    if (quote := sources.QUOTED.match(said)) and not below:
        return cue.end + quote.end(), number if cue.end + quote.end() < unit.end else number + 1
    if not below:
        if endorsed := _endorsed(text, cue):
            return endorsed, number + 1
        if not cue.direct and (turn := sources.TURN.search(said)):
            return cue.end + turn.start(), number + 1
        if not cue.direct and (turn := sources.CONCLUDES.search(said)):
            reported = said[: turn.start()]
            # Not an order, and long enough to conclude something from.
            if len(reported.split()) >= _CLAUSE and not sources.DIRECTIVE.search(
                sources.LACKS.sub(" ", reported)
            ):
                return cue.end + turn.end(), number + 1
    end, following = unit.end, number + 1
    if not cue.opens:
        return end, following
    state = _Open(cue, below=below)
    state.pasted = not below and unit.pasted
    while following < len(units) and not state.closes(text, units[following]):
        end = units[following].end
        following += 1
    return end, following


def _endorsed(text: str, cue: _Cue) -> int:
    """Return where the words begin that the user adopts at the end of the paragraph, or 0."""
    end = sources.paragraph_end(text, cue.end)
    if end - cue.end > _ENDORSABLE or not sources.ENDORSED.search(text, cue.end, end):
        return 0
    said = sources.SAID.match(text, cue.end)
    return said.end() if said else cue.end


class _Open:
    """An open span, which takes sentence after sentence."""

    def __init__(self, cue: _Cue, *, below: bool) -> None:
        self._cue = cue
        self._below = below
        self._empty = below
        self._announces = False
        self.pasted = True

    def closes(self, text: str, unit: Unit) -> bool:
        """Return whether the user speaks again with this sentence; otherwise it joins the span."""
        words = text[unit.start : unit.end]
        if self._empty:
            if unit.block and not unit.pasted:
                return True  # the block was what the colon announced
            self._empty = False
            self.pasted = unit.pasted
            return False
        if self._ends(words, unit):
            return True
        self.pasted = self.pasted and unit.pasted
        self._announces = words.endswith(":")
        return False

    def _ends(self, words: str, unit: Unit) -> bool:
        if unit.gap == FAR and (not self._below or self.pasted) and not (unit.pasted or self._announces):
            return True
        lasts = bool(sources.LASTING.search(words))
        if unit.gap == FAR or (unit.gap and not self._below):
            if sources.FIRST_PERSON.search(words) or sources.RESUMES.match(words):
                return True
            return bool(sources.TASK.match(words)) and (not lasts or self._cue.source == "tool")
        if self._cue.direct and self._cue.source == "person":
            return False
        if sources.FIRST_PERSON.search(words) and not unit.pasted:
            return True
        return bool(sources.MEANS_IT.match(words)) and not lasts


# --- words before their source --------------------------------------------------------------------


def _behind(text: str, units: Sequence[Unit], number: int, free: int) -> int | None:
    """Return where the words begin if a sentence names their author after them."""
    unit = units[number]
    words = text[unit.start : unit.end]
    last = number + 1 == len(units) or units[number + 1].gap == FAR
    if sources.CITES.match(words) and number > free and (last or not sources.CITES_HERE.match(words)):
        return units[_back(text, units, number, free)].start
    if match := sources.MARKED.search(words):
        alone = not words[: match.start()].strip()
        if not alone or number > free:
            return units[_back(text, units, number, free, alone=alone) if number > free else number].start
    if match := sources.TRAILING.search(words):
        if sources.SUBORDINATE.search(words[max(0, match.start() - 24) : match.start()]):
            return None
        alone = not words[: match.start()].strip(" .,;:-–—(")
        if alone and number <= free:
            return None
        reaches = alone or bool(match["cites"])
        first = _back(text, units, number, free, alone=alone) if reaches and number > free else number
        return units[first].start
    return None


def _back(text: str, units: Sequence[Unit], number: int, free: int, *, alone: bool = True) -> int:
    """Return the first sentence of the paragraph to which a source refers.

    The paragraph is this sentence's own or, if the sentence is ``alone`` in it, the previous one.
    """
    first = number
    while first > free:
        if units[first].gap == FAR and (first < number or not alone):
            break
        before = text[units[first - 1].start : units[first - 1].end]
        if sources.FIRST_PERSON.search(before) or sources.TASK.match(before):
            break
        first -= 1
    return first


def merged(spans: Sequence[Span]) -> list[Span]:
    """Return spans in order, with touching ones joined."""
    joined: list[Span] = []
    for span in sorted(spans, key=lambda one: one.start):
        if joined and span.start <= joined[-1].end:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, span.end))
        else:
            joined.append(span)
    return joined
