"""Finds the words of others in a message: those that it attributes to somebody, and those that it may paste.

An attribution opens a passage:

- With a colon ("the reviewer wrote: …", "I get this: …"), over the following sentences.
- Without one ("my colleague told me to …"), over the sentence, and over the next ones if it reports an order.
- After the words ("…, says the linter", "… — from the wiki"), over the text before it.

A passage ends where the user speaks again. It is certain if the message names the source; otherwise its words
are only in doubt. Words without an attribution are in doubt between a line that is not the user's own and a
question or a short remark. The deciding words are in :mod:`agentx.synthesis.demands.tables.sources`.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agentx.synthesis.demands.tables import endings, sources
from agentx.synthesis.language.sentences import Span, sentences

_LEAD = 200
"""Number of characters before a colon that are read as the introduction of the words after it."""

_ENDORSABLE = 300
"""Maximum length in characters of a report that a user can mean by "do that"."""

_SHORT = 16
"""Maximum number of words of a heading or a remark."""

_FAR = 2
"""Gap of a sentence after an empty line or a block."""


_DOCUMENT = 3
"""Minimum number of paragraphs, or of lines of one, in a pasted document without headings."""


class Passage(NamedTuple):
    """Words of somebody else, with their attribution; if not ``certain``, they may be the user's."""

    start: int
    end: int
    certain: bool


class _Unit(NamedTuple):
    """A sentence.

    Attributes:
        gap: 0 within a line, 1 after a line break, 2 after an empty line or a block.
        block: Whether a masked block precedes it.
        pasted: Whether it is a line of a log, a traceback or similar.
    """

    start: int
    end: int
    words: str
    gap: int
    block: bool
    pasted: bool


class _Cue(NamedTuple):
    """An attribution in a sentence.

    Attributes:
        end: Offset at which the attributed words begin.
        direct: Whether a colon marks them as literal words.
        opens: Whether they can continue after the sentence.
    """

    start: int
    end: int
    direct: bool
    certain: bool
    opens: bool


def is_own(words: str) -> bool:
    """Return whether a sentence is in the user's own voice, or a request to the agent."""
    return any(pattern.match(words) for pattern in (sources.RESUMES, sources.TASK)) or bool(
        sources.OWN_VOICE.search(words)
    )


def passages(text: str, original: str, pasted: Sequence[Span]) -> Iterator[Passage]:
    """Yield the words of others in a message.

    Args:
        text: The message, with quotes, code and blocks masked.
        original: The original message, of the same length.
        pasted: Lines that nobody writes as a sentence.
    """
    units = list(_units(text, original, pasted))
    yield from _unmarked(units)
    number = free = 0
    while number < len(units):
        unit = units[number]
        if (begins := _behind(units, number, free)) is not None:
            yield Passage(begins, unit.end, certain=True)
            number = free = number + 1
        elif cue := _cue(text, unit):
            end, number = _reach(text, units, number, cue)
            free = number
            yield Passage(cue.start, end, cue.certain)
            if number < len(units) and end > units[number].start:
                rest = units[number]
                units[number] = rest._replace(start=end, words=text[end : rest.end])
        else:
            number += 1


def reports(words: str) -> bool:
    """Return whether a sentence speaks of words or of a case, so that it ends no rule itself.

    It reports somebody's words, asks to write some, supposes something or is about another project.

    >>> reports("the docs say that pushing is allowed again"), reports("pushing is allowed again")
    (True, False)
    """
    if sources.MENTIONS.search(words):
        return True
    rest = [words[match.end() :] for match in sources.REPORT.finditer(words)]
    signs = (*(sign.pattern for sign in endings.SIGNS), endings.HAPPENED, endings.SHIFTED, endings.CHANGES)
    return any(sign.search(said) for said in rest for sign in signs)


def unclaimed(text: str) -> Iterator[Span]:
    """Yield the paragraphs that nothing shows to be the user's, although no attribution marks them.

    A document has headings, and its paragraphs are in nobody's voice. Between paragraphs in the user's voice,
    one counts as the user's.

    Args:
        text: The user's own words of a message, as far as they are known.
    """
    found = [Span(*match.span()) for match in sources.PARAGRAPH.finditer(text)]
    own = [any(is_own(text[one.start : one.end]) for one in _sentences_in(text, span)) for span in found]
    headed = [bool(sources.HEADING.search(text, span.start, span.end)) for span in found]
    for number, span in enumerate(found):
        before, after = own[:number][-1:], own[number + 1 :][:1]
        below = any(headed[: number + 1])
        lines = sources.PROSE_LINE.findall(text, span.start, span.end)
        pasted = len(found) > 1 and len(lines) >= _DOCUMENT
        between = len(found) >= _DOCUMENT and not all(before + after)
        if not own[number] and (below or pasted or between):
            yield span


def _sentences_in(text: str, span: Span) -> Iterator[Span]:
    for one in sentences(text[span.start : span.end]):
        yield Span(span.start + one.start, span.start + one.end)


def _units(text: str, original: str, pasted: Sequence[Span]) -> Iterator[_Unit]:
    lines = iter(pasted)
    line = next(lines, None)
    before = 0
    for span in sentences(text):
        while line and line.end <= span.start:
            line = next(lines, None)
        gap, masked = text[before : span.start], original[before : span.start]
        block = any(mine == "\n" and theirs not in "\r\n" for mine, theirs in zip(gap, masked, strict=True))
        far = (
            _FAR if block or not before or sources.EMPTY_LINE.search(gap) else int("\n" in gap or "\r" in gap)
        )
        inside = bool(line and line.start < span.end)
        yield _Unit(span.start, span.end, text[span.start : span.end], far, block, inside)
        before = span.end


# --- where the words of others begin --------------------------------------------------------------


def _cue(text: str, unit: _Unit) -> _Cue | None:
    """Return the first attribution in a sentence that is about the words after it."""
    if sources.ADDRESS.match(unit.words) or sources.ABOUT_WORDS.match(unit.words):
        return _Cue(unit.end, unit.end, direct=True, certain=False, opens=True)
    if between := sources.MIDDLE.search(unit.words):
        return _Cue(unit.start, unit.start + between.end(), direct=False, certain=True, opens=True)
    cues = [cue for cue in (_lead(text, unit), _report(unit)) if cue]
    return min(cues, key=lambda cue: (cue.start, not cue.direct), default=None)


def _lead(text: str, unit: _Unit) -> _Cue | None:
    """Return the attribution before a colon, unless the lead is the user's own."""
    begin = unit.start
    for colon in sources.COLON.finditer(text, unit.start, unit.end):
        start = max(begin, colon.start() - _LEAD)
        voice = sources.whose(text[start : colon.start()])
        if voice != "own":
            return _Cue(start, colon.end(), direct=True, certain=voice == "others", opens=True)
        begin = colon.end()
    return None


def _report(unit: _Unit) -> _Cue | None:
    """Return the attribution in a clause that tells what somebody says, without a colon."""
    if match := sources.REPORT.search(unit.words):
        said = unit.words[match.end() :]
        orders = bool(sources.DIRECTIVE.search(said))
        if said.strip(" .!?") and (orders or match["clear"] or match["heard"]):
            opens = orders and not match["self"]
            return _Cue(unit.start + match.start(), unit.start + match.end(), False, True, opens)
    if uttered := sources.UTTERED.match(unit.words):
        return _Cue(unit.start, unit.start + uttered.end(), direct=False, certain=False, opens=True)
    return None


# --- where they end -------------------------------------------------------------------------------


def _reach(text: str, units: Sequence[_Unit], number: int, cue: _Cue) -> tuple[int, int]:
    """Return where a passage ends, and the number of the sentence to read next."""
    unit = units[number]
    said = text[cue.end : unit.end]
    below = not said.strip()
    if not below:
        if quote := sources.QUOTED.match(said):
            end = cue.end + quote.end()
            return end, number if end < unit.end else number + 1
        if endorsed := _endorsed(text, cue):
            return endorsed, number + 1
        if not cue.direct and (turn := sources.TURN.search(said)):
            return cue.end + turn.end(), number + 1
    end, following = unit.end, number + 1
    if not cue.opens:
        return end, following
    pasted, announces = below or unit.pasted, below
    for other in units[following:]:
        if below and following == number + 1:
            if other.block and not other.pasted:
                break  # the block was what the colon announced
            pasted = other.pasted
        elif _speaks_again(other, cue, runs=(below and not pasted) or announces):
            break
        else:
            pasted = pasted and other.pasted
        announces = other.words.endswith(":")
        end, following = other.end, following + 1
    return end, following


def _speaks_again(unit: _Unit, cue: _Cue, *, runs: bool) -> bool:
    """Return whether the user speaks again with this sentence; otherwise it joins the passage.

    Args:
        unit: The sentence.
        cue: What opened the passage. The author of literal words can use "I" and "please", too.
        runs: Whether the passage can continue after an empty line.
    """
    if unit.gap == _FAR and not runs and not unit.pasted:
        return True
    if unit.pasted or (unit.gap == 0 and cue.direct and cue.certain):
        return False
    if unit.gap == 0 and cue.direct:
        return unit.words.endswith("?") and bool(sources.TASK.match(unit.words))
    return is_own(unit.words) and (unit.gap == _FAR or not sources.DEMANDS.search(unit.words))


def _endorsed(text: str, cue: _Cue) -> int:
    """Return where the words begin that the user adopts at the end of the paragraph, or 0."""
    end = sources.PARAGRAPH_END.search(text, cue.end).start()  # type: ignore[union-attr]
    if end - cue.end > _ENDORSABLE or not sources.ENDORSED.search(text, cue.end, end):
        return 0
    said = sources.LEADS_ON.match(text, cue.end)
    return said.end() if said else cue.end


# --- words before their source --------------------------------------------------------------------


def _behind(units: Sequence[_Unit], number: int, free: int) -> int | None:
    """Return where the words begin if a sentence names their author after them."""
    unit = units[number]
    after = units[number + 1] if number + 1 < len(units) else None
    last = not after or after.gap == _FAR or after.words.endswith("?")
    if number > free and (cites := sources.CITES.match(unit.words)) and (last or not cites["here"]):
        return _back(units, number, free)
    if match := sources.TRAILING.search(unit.words):
        alone = not unit.words[: match.start()].strip(" .,;:-–—(")
        if not alone or number > free:
            return _back(units, number, free, alone=alone) if alone or match["cites"] else unit.start
    return None


def _back(units: Sequence[_Unit], number: int, free: int, *, alone: bool = True) -> int:
    """Return the start of the paragraph to which a source refers.

    The paragraph is this sentence's own or, if the sentence is ``alone`` in it, the previous one.
    """
    first = number
    while first > free and not (units[first].gap == _FAR and (first < number or not alone)):
        if is_own(units[first - 1].words):
            break
        first -= 1
    return units[first].start


# --- words without an attribution -----------------------------------------------------------------


def _unmarked(units: Sequence[_Unit]) -> Iterator[Passage]:
    """Yield sentences below a line that is not the user's own and above a question or a remark."""
    remark = max((number for number in range(1, len(units)) if _remarks(units, number)), default=0)
    before = headed = False
    heading = 0
    for number, unit in enumerate(units):
        own = bool(sources.OWN_VOICE.search(unit.words))
        demands = bool(sources.DEMANDS.search(unit.words))
        voice = "own" if demands else _heads(units, number, remark)
        if headed and own and unit.gap == _FAR and number > heading + 1:
            headed = False
        if headed or (not own and number < remark and (before or voice in {"others", "doubtful"})):
            yield Passage(unit.start, unit.end, certain=False)
        if voice == "others" and not headed:
            headed, heading = True, number
        before = headed or (
            not own and (before or voice == "doubtful" or not (demands or voice or _works(unit)))
        )


def _heads(units: Sequence[_Unit], number: int, remark: int) -> sources.Voice | None:
    """Return whose words follow a line on its own, ``None`` for another sentence."""
    unit, below = units[number], units[number + 1 : number + 2]
    if unit.gap != _FAR or not (below and below[0].gap) or unit.pasted or below[0].block:
        return None
    line = unit.words.rstrip(".")
    if sources.POINTS_BELOW.match(line):
        return "others"
    if sources.COLON.search(line) or sources.NAME * 3 in line or len(line.split()) > _SHORT:
        return None
    voice = sources.whose(line)
    if voice == "own" or (remark > number + 1 and units[remark].gap == _FAR and number == 0):
        return voice if voice == "own" else "others"
    return "doubtful" if line != unit.words else voice


def _works(unit: _Unit) -> bool:
    return bool(sources.WORK.match(unit.words))


def _remarks(units: Sequence[_Unit], number: int) -> bool:
    """Return whether a sentence asks about the words before it, or ends the message with a remark."""
    words = units[number].words
    if sources.WORK.match(words):
        return False
    if words.endswith("?"):
        return True
    last = number + 1 == len(units) and len(words.split()) <= _SHORT and not sources.DEMANDS.search(words)
    about = units[number].gap == _FAR or sources.TASK.match(words)
    return bool(last and about and not sources.RESUMES.match(words))
