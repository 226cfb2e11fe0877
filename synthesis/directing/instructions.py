"""The user's instructions: which messages are some, how many fit, and what a prompt lacks of them."""

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from agentx.storage.text import one_line
from agentx.synthesis.directing.foreign_texts import without_reason
from agentx.synthesis.language.sentences import sentences
from agentx.synthesis.language.words import content_words, words_of

MAX_CHARACTERS = 60_000
"""Maximum length of all instructions in a prompt, about 15,000 tokens; a model's window has several times as
much."""

COVERED = 0.8
"""Share of a sentence's words from which a prompt is taken to state it."""

_THANKS = (
    r"(?:many |big )?(?:thanks?|thx|ty|cheers)(?: you)?(?: all)?"
    r"(?: (?:so|very) much| a lot| again| for (?:this|that|it))*"
)
_GOOD = (
    r"(?:good|great|nice|perfect|excellent|awesome|wonderful|lovely|amazing|brilliant|fantastic|superb|cool"
    r"|fine|super)"
)
_SUBJECT = r"(?:this|that|it|all|everything)(?: all)?"
_PRAISE = (
    rf"(?:(?:{_SUBJECT} ?(?:'s|is|was|looks|works|worked|are|were)? |looks |sounds )?"
    rf"(?:(?:all|very|really|so|just|absolutely) )*{_GOOD}(?: (?:work|job|stuff|one))?(?: to me)?"
    rf"|well done|(?:i )?(?:really )?(?:love|like|appreciate) (?:it|this|that))"
)
_ASIDE = r"(?:ok|okay|yes|yeah|wow|oh|ah|hi|hey|hello|and|so)"
_ONLY_THANKS = re.compile(
    rf"(?:{_ASIDE}[,!. ]+)*(?:{_THANKS}|{_PRAISE})"
    rf"(?:[\s,.;:!–-]+(?:{_ASIDE}[\s,.!]+)*(?:{_THANKS}|{_PRAISE}))*",
    re.IGNORECASE,
)
_EXACT = re.compile(r"\d+(?:[.,:]\d+)*|\b[A-Z]\w+")
_LIMITS = re.compile(
    r"\b(?:not|never|no|none|only|unless|until|till|before|after|except|without|instead|nor|neither)\b|n't\b",
    re.IGNORECASE,
)

_HARMLESS = frozenset(("only", "unless", "until", "till", "before", "after", "except", "without", "instead"))
"""Limits that a prompt may add to a sentence; a "not" would turn it round."""


class Instruction(msgspec.Struct, frozen=True):
    """A message of the user, whole.

    Attributes:
        at: When it was sent, as UTC time in ISO 8601.
    """

    text: str
    at: str = ""

    @property
    def dated(self) -> str:
        """The message behind its date and time."""
        return f"{self.at[:16].replace('T', ' ')}: {one_line(self.text)}" if self.at else one_line(self.text)


def is_thanks(text: str) -> bool:
    """Return whether a message only thanks or praises. In doubt it is an instruction; English only.

    >>> is_thanks("Thanks, looks good!"), is_thanks("Thanks, but skip Berlin."), is_thanks("Looks good?")
    (True, False, False)
    """
    words = one_line(text).replace("’", "'").strip(" .!")
    return _ONLY_THANKS.fullmatch(words) is not None


def fitted(instructions: Sequence[Instruction], most: int = MAX_CHARACTERS) -> list[Instruction]:
    """Return the instructions within a length, oldest first; what is left out is stated in its place.

    The first one and the latest are kept. If these alone are too long, the middle of each is left out.
    """
    kept = list(instructions)
    size = sum(len(one.text) for one in kept)
    if size <= most:
        return kept
    if len(kept) > 2 and len(kept[0].text) + len(kept[-1].text) <= most:  # noqa: PLR2004 - both ends
        place = 1
        while size > most:
            size -= len(kept[place].text)
            place += 1
        return [kept[0], _gap(kept[1:place]), *kept[place:]]
    ends = kept[:1] + kept[1:][-1:]
    cut = [msgspec.structs.replace(one, text=_without_middle(one.text, most // len(ends))) for one in ends]
    gap = [_gap(kept[1:-1])] if len(kept) > 2 else []  # noqa: PLR2004 - both ends
    return cut[:1] + gap + cut[1:]


def _gap(left_out: Sequence[Instruction]) -> Instruction:
    number, size = len(left_out), sum(len(one.text) for one in left_out)
    dates = list(dict.fromkeys((left_out[0].at[:10], left_out[-1].at[:10])))
    sent = f" of {' to '.join(dates)}" if dates[0] else ""
    what = f"{number} message{'s' * (number != 1)}{sent} with {size:,} characters"
    return Instruction(f"({what} {'are' if number != 1 else 'is'} left out here for length.)")


def _without_middle(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    half = most // 2
    left_out = f" ({len(text) - 2 * half:,} characters are left out here for length.) "
    return text[:half] + left_out + text[-half:]


def parts(text: str) -> Iterator[str]:
    """Yield the sentences of a message, each on one line."""
    for span in sentences(text):
        if line := one_line(text[span.start : span.end]):
            yield line


def bare(sentence: str) -> str:
    """Return a sentence for comparison: without its reason and its end."""
    return without_reason(sentence, sure=True).rstrip(".! ").casefold()


def without(instructions: Iterable[Instruction], demanded: Iterable[str]) -> Iterator[Instruction]:
    """Yield the instructions without the sentences that are among the demands appended to every prompt."""
    known = set(map(bare, demanded))
    for one in instructions:
        said = list(parts(one.text))
        kept = [sentence for sentence in said if bare(sentence) not in known]
        if kept:
            yield one if len(kept) == len(said) else msgspec.structs.replace(one, text=" ".join(kept))


def missing(instructions: Iterable[Instruction], prompt: str) -> Iterator[Instruction]:
    """Yield what a prompt leaves out of the instructions, sentence by sentence.

    A sentence is covered if the prompt has most of its words, all of its numbers and names, and in one
    sentence its limits ("not", "until", "only") without another "not". In doubt it is missing: stating it
    twice does less harm than losing it.
    """
    lines = [(content_words(line), _limits(line)) for line in parts(prompt)]
    everything = frozenset[str]().union(*(words for words, _ in lines))
    exact, verbatim = _exact(prompt), set(map(bare, parts(prompt)))

    def covers(sentence: str) -> bool:
        if bare(sentence) in verbatim or is_thanks(sentence):
            return True
        words, limits = content_words(sentence), _limits(sentence)
        if not words or not _exact(sentence) <= exact or _share(words, everything) < COVERED:
            return False
        near = [had for line, had in lines if _share(words, line) >= COVERED]
        return any(limits <= had and had - limits <= _HARMLESS for had in near) if near else not limits

    for one in instructions:
        if left := [sentence for sentence in parts(one.text) if not covers(sentence)]:
            yield msgspec.structs.replace(one, text=" ".join(left))


def _share(words: frozenset[str], others: frozenset[str]) -> float:
    return len(words & others) / len(words)


def _exact(text: str) -> set[str]:
    """Return the numbers and names of a text; a word that only begins a sentence is not a name."""
    found = set(_EXACT.findall(text))
    firsts = {next(iter(words_of(part)), "") for piece in text.splitlines() for part in parts(piece)}
    return {one.casefold() for one in found if one[0].isdigit() or one not in firsts}


def _limits(text: str) -> set[str]:
    found = {one.casefold() for one in _LIMITS.findall(text.replace("’", "'"))}
    return {"not" if one in ("n't", "never", "no", "none", "nor", "neither") else one for one in found}
