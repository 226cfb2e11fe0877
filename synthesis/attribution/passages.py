"""Finds the words of others in a message: those that it attributes to somebody, and those that it may paste.

An attribution opens a passage:

- With a colon ("the reviewer wrote: …", "I get this: …"), over the following sentences.
- Without one ("my colleague told me to …"), over the sentence, and over the next ones if it reports an order.
- After the words ("…, says the linter", "… — from the wiki"), over the text before it.

A passage ends where the user speaks again. It is certain if the message names the source; otherwise its words
are only in doubt. Words without an attribution are in doubt between a line that is not the user's own and a
question or a short remark. The deciding words are in :mod:`agentx.synthesis.attribution.sources`.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agentx.synthesis.attribution import sources
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


class ForeignPassage(NamedTuple):
    """Words of somebody else, with their attribution; if not ``certain``, they may be the user's."""

    start: int
    end: int
    certain: bool


class _Unit(NamedTuple):
    """A sentence; ``pasted`` if it is a line of a log or similar, ``block`` if a masked block precedes it."""

    start: int
    end: int
    words: str
    gap: int
    """0 within a line, 1 after a line break, 2 after an empty line or a block."""
    block: bool
    pasted: bool


class _Cue(NamedTuple):
    """An attribution in a sentence, up to the attributed words."""

    start: int
    end: int
    direct: bool
    """Whether a colon marks the words as literal."""
    certain: bool
    opens: bool = True
    """Whether they can continue after the sentence."""


def is_own(words: str) -> bool:
    """Return whether a sentence is in the user's own voice, or a request to the agent."""
    return bool(sources.TASK.match(words) or sources.OWN_VOICE.search(words))


def passages(text: str, original: str, bare: str) -> Iterator[ForeignPassage]:
    """Yield the words of others in a message.

    Args:
        text: The message, with quotes, code and blocks masked.
        original: The original message, of the same length.
        bare: The masked message without lines that nobody writes as a sentence.
    """
    units = list(_units(text, original, bare))
    yield from _unmarked(units)
    number = free = 0
    while number < len(units):
        unit = units[number]
        if (begins := _behind(units, number, free)) is not None:
            yield ForeignPassage(begins, unit.end, certain=True)
            number = free = number + 1
        elif cue := _cue(text, unit):
            end, number = _reach(text, units, number, cue)
            free = number
            yield ForeignPassage(cue.start, end, cue.certain)
            if number < len(units) and end > units[number].start:
                rest = units[number]
                units[number] = rest._replace(start=end, words=text[end : rest.end])
        else:
            number += 1


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


def _units(text: str, original: str, bare: str) -> Iterator[_Unit]:
    before = 0
    for span in sentences(text):
        between, masked = text[before : span.start], original[before : span.start]
        block = any(
            mine == "\n" != theirs and theirs != "\r" for mine, theirs in zip(between, masked, strict=True)
        )
        far = block or not before or sources.EMPTY_LINE.search(between)
        gap = _FAR if far else int("\n" in between or "\r" in between)
        words, before = text[span.start : span.end], span.end
        yield _Unit(span.start, span.end, words, gap, block, pasted=words != bare[span.start : span.end])


def _cue(text: str, unit: _Unit) -> _Cue | None:
    """Return the first attribution in a sentence that is about the words after it."""
    if sources.ABOUT_WORDS.match(unit.words):
        return _Cue(unit.end, unit.end, direct=True, certain=False, opens=True)
    cues = []
    begin = unit.start
    for colon in sources.COLON.finditer(text, unit.start, unit.end):
        start = max(begin, colon.start() - _LEAD)
        begin = colon.end()
        if (voice := sources.whose(text[start : colon.start()])) != "own":
            cues.append(_Cue(start, begin, direct=True, certain=voice == "others"))
            break
    match = sources.REPORT.search(unit.words)
    said = unit.words[match.end() :] if match else ""
    orders = bool(sources.DIRECTIVE.search(said))
    if match and said.strip(" .!?") and (orders or match["clear"] or match["heard"]):
        start, end = match.span()
        cues.append(_Cue(unit.start + start, unit.start + end, direct=False, certain=True, opens=orders))
    elif match := sources.UTTERED.match(unit.words):
        cues.append(_Cue(unit.start, unit.start + match.end(), direct=False, certain=False))
    return min(cues, key=lambda cue: (cue.start, not cue.direct), default=None)


def _reach(text: str, units: Sequence[_Unit], number: int, cue: _Cue) -> tuple[int, int]:
    """Return where a passage ends, and the number of the sentence to read next."""
    unit = units[number]
    said = text[cue.end : unit.end]
    end, following = unit.end, number + 1
    below = not said.strip()
    if not below:
        if quote := sources.QUOTED.match(said):
            end = cue.end + quote.end()
            return end, number + (end == unit.end)
        if endorsed := _endorsed(text, cue):
            return endorsed, following
        if not cue.direct and (turn := sources.TURN.search(said)):
            return cue.end + turn.end(), following
    pasted, announces = below or unit.pasted, below
    for other in units[following:] if cue.opens else ():
        if below and following == number + 1:
            if other.block and not other.pasted:
                break  # the block was what the colon announced
            pasted = other.pasted
        elif _speaks_again(other, cue, runs=(below and not pasted) or announces):
            break
        announces = other.words.endswith(":")
        pasted = pasted and other.pasted
        end, following = other.end, following + 1
    return end, following


def _speaks_again(unit: _Unit, cue: _Cue, *, runs: bool) -> bool:
    """Return whether the user speaks again with this sentence; otherwise it joins the passage.

    The author of literal words can use "I" and "please", too. A passage that ``runs`` can continue after an
    empty line.
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
    adopted = end - cue.end <= _ENDORSABLE and sources.ENDORSED.search(text, cue.end, end)
    return sources.LEADS_ON.match(text, cue.end).end() if adopted else 0  # type: ignore[union-attr]


def _behind(units: Sequence[_Unit], number: int, free: int) -> int | None:
    """Return where the words begin if a sentence names their author after them.

    They begin with the paragraph of this sentence or, if the source is alone in it, the previous paragraph.
    """
    unit = units[number]
    match = sources.TRAILING.search(unit.words)
    alone = match and not unit.words[: match.start()].strip(" .,;:-–—(")
    if not match or (alone and number <= free):
        return None
    first = number
    if alone or match["cites"]:
        while first > free and not (units[first].gap == _FAR and (first < number or not alone)):
            if is_own(units[first - 1].words):
                break
            first -= 1
    return units[first].start


def _unmarked(units: Sequence[_Unit]) -> Iterator[ForeignPassage]:
    """Yield sentences below a line that is not the user's own and above a question or a remark."""
    remark = max((number for number in range(1, len(units)) if _remarks(units, number)), default=0)
    before = False
    heading = None
    for number, unit in enumerate(units):
        own = bool(sources.OWN_VOICE.search(unit.words))
        demands = bool(sources.DEMANDS.search(unit.words))
        voice = "own" if demands else _heads(units, number, remark)
        if heading is not None and own and unit.gap == _FAR and number > heading + 1:
            heading = None
        if heading is not None or (
            not own and number < remark and (before or voice in {"others", "doubtful"})
        ):
            yield ForeignPassage(unit.start, unit.end, certain=False)
        if voice == "others" and heading is None:
            heading = number
        others = before or voice == "doubtful" or not (demands or voice or sources.WORK.match(unit.words))
        before = heading is not None or (not own and others)


def _heads(units: Sequence[_Unit], number: int, remark: int) -> sources.Voice | None:
    """Return whose words follow a line on its own, ``None`` for another sentence."""
    unit, below = units[number], units[number + 1 : number + 2]
    if unit.gap != _FAR or unit.pasted or not below or not below[0].gap or below[0].block:
        return None
    line = unit.words.rstrip(".")
    if sources.POINTS_BELOW.match(line):
        return "others"
    if sources.COLON.search(line) or sources.NAME * 3 in line or len(line.split()) > _SHORT:
        return None
    voice = sources.whose(line)
    if voice != "own" and number == 0 and remark > 1 and units[remark].gap == _FAR:
        return "others"
    return voice if voice == "own" or line == unit.words else "doubtful"


def _remarks(units: Sequence[_Unit], number: int) -> bool:
    """Return whether a sentence asks about the words before it, or ends the message with a remark."""
    unit = units[number]
    if sources.WORK.match(unit.words) or unit.words.endswith("?"):
        return not sources.WORK.match(unit.words)
    about = unit.gap == _FAR or sources.TASK.match(unit.words)
    brief = len(unit.words.split()) <= _SHORT and not sources.DEMANDS.search(unit.words)
    return bool(about and brief and number + 1 == len(units))
