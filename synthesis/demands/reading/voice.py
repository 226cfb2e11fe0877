"""Finds sentences that may not be the user's own; a demand in them is at most a candidate.

Words of others are often pasted without a mark. Two signs together reveal them: a source that is named before
them, and, after them, a question about them or a request to do something with them. A sentence in the user's
own voice ("I", "please", "so never …") is not in doubt, nor is what follows it.
"""

from collections.abc import Iterator, Sequence

from agentx.synthesis.demands.reading.attribution import FAR, Unit, units_of
from agentx.synthesis.demands.tables import sources
from agentx.synthesis.language.sentences import Span

_PARTS = 3
"""A heading, the text below it, and a question about it."""

_SHORT = 12
"""Maximum number of words of a short remark."""


def doubtful(text: str, original: str, pasted: Sequence[Span]) -> Iterator[Span]:
    """Yield sentences that may be somebody else's, in order.

    Args:
        text: The message, with quotes, code and blocks masked.
        original: The original message, of the same length.
        pasted: Lines that nobody writes as a sentence.
    """
    units = units_of(text, original, pasted)
    words = [text[unit.start : unit.end] for unit in units]
    # The last sentence that asks about words, or asks to do something with them.
    asked = max(
        (
            number
            for number, said in enumerate(words)
            if not sources.WORK.search(said) and (said.endswith("?") or sources.ABOUT_WORDS.match(said))
        ),
        default=0,
    )
    end = _remark(units, words)
    named = False
    # The first line is apart, and is neither the user's demand nor an order.
    headed = (
        len(units) >= _PARTS
        and units[1].gap == FAR
        and not (sources.OWN_VOICE.search(words[0]) or sources.is_own_heading(words[0]))
    )
    for number, (unit, said) in enumerate(zip(units, words, strict=True)):
        own, names = bool(sources.OWN_VOICE.search(said)), bool(sources.MENTION.search(said))
        before = named or (names and bool(sources.LASTING.search(said)) and number < asked)
        below = headed and number < max(asked, end)
        if not own and ((before and number <= asked) or below):
            yield Span(unit.start, unit.end)
        if own and not names:
            named = headed = False
        named = named or names


def _remark(units: Sequence[Unit], words: Sequence[str]) -> int:
    """Return the number of the last sentence if it is apart and can be about the words above it, or 0."""
    last = len(units) - 1
    if last < _PARTS - 1 or units[last].gap != FAR:
        return 0
    apart = sources.DEMANDS.search(words[last]) or sources.ORDERS_WORK.match(words[last])
    return 0 if apart or len(words[last].split()) > _SHORT else last
