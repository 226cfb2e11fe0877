"""Compares an agent's sentence with the words that it rests on: negation, limits, numbers, names, subject.

What inverts the meaning is refused. What the words do not contain, or the sentence leaves out of them, makes
it an unproven reading: it is kept as the agent's, and the user's words remain the item's text.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from agentx.synthesis.language.words import (
    STOP_WORDS,
    content_words,
    stem,
    subject_words,
    vocabulary,
    words_of,
)

_NEGATORS = (
    r"not|never|no|none|nobody|nothing|nowhere|neither|nor|without|cannot|\w+n't|dont|doesnt|cant|wont|nope"
    r"|nah|stop(?:s|ped|ping)?|avoid(?:s|ed|ing)?|refrain|cease|quit|forbid(?:s|den|ding)?|prohibit(?:s|ed)?"
    r"|ban(?:s|ned)?|reject(?:s|ed|ing)?|refuse[sd]?|rul(?:e|es|ed|ing) out|exclud(?:e|es|ed|ing)"
    r"|instead of|rather than|off limits|out of the question|against|dislike[sd]?|hate[sd]?|skip|omit"
    r"|leave out|keep \w+ out of|free of|no longer"
)
NEGATION = re.compile(rf"\b(?:{_NEGATORS})\b", re.IGNORECASE)
"""Words that negate what follows them, as a class."""

_IDIOMS = re.compile(
    r"\bnot only\b|\b(?:do not|don't|never) forget\b|\bno (?:problem|worries|rush)\b|\bwhy not\b"
    r"|\bnot just\b|\b(?:does not|doesn't|do not|don't) matter\b|\bnever ?mind\b",
    re.IGNORECASE,
)
"""Phrases with a negator that negate nothing."""

_ANSWER = re.compile(r"\A\W*(?:no|nope|nah|not quite|not really)\b(?=\s*[,.;:!—–-])", re.IGNORECASE)
"""A negator that answers a question, and negates nothing of what follows it in the same message."""

_LIMIT = re.compile(
    r"\b(?:unless|except|excluding|only|until|till|as long as|if|for now|for the (?:moment|time being)"
    r"|(?:anything|everything|everyone|anyone|all) but)\b",
    re.IGNORECASE,
)
"""Words that limit a demand. A sentence without the limit would say more than the user."""

_CLAUSE = re.compile(r"[,;:.!?()]\s|\s[—–-]\s|\bbut\b|\band\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_NUMBER_WORDS = {
    word: str(value)
    for value, word in enumerate(
        ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"],
        start=2,
    )
}
_TOKEN = re.compile(r"[\w@#./+-]*\w")
_SUBJECT = re.compile(
    r"\s+(?:is|are|was|were|has|have|will|must|may|can|should|does|do|gets?|runs?|handles?|owns?)\b"
)

_NEUTRAL = vocabulary(
    """
    use keep give put write make set have run do add send show answer say call let take work stay apply
    follow provide create name store file user project code
    """
)
"""Words that a sentence may add to the user's: they say nothing that "do" does not say."""

_FILLER = (
    STOP_WORDS
    | vocabulary(
        """
        prefer like love please hey hi thanks thank thx fine yep yeah nope nah think guess want wish dear
        right great good perfect well sorry actually settle decide decided lets sounds rather start begin keep
        """
    )
) - vocabulary(
    """
    above after again all any before below between each every few from most more only once other over out off
    under until till up down when whenever where while if than with without might may could can much
    """
)
"""Words of the user that a sentence may leave out."""

_NOT = vocabulary(
    """
    not never no none nobody nothing nowhere neither nor without cannot dont doesnt cant wont stop stops
    stopped avoid avoids refrain cease quit forbid forbidden ban banned reject refuse rule ruled exclude skip
    omit hate dislike against instead rather out
    """
)
"""Negators, which are compared apart: "avoid" may become "do not use"."""

_REASON = re.compile(
    r"\b(?:because|since|so that|as (?:it|we|i|they|this|that))\b.*|[:,;–—]\s+(?:it|we|i|they|that|this"
    r"|(?:the|our|my|their|its) \w+ (?!(?:must|should|may|can|only)\b)\w+s?)\b.*",
    re.IGNORECASE | re.DOTALL,
)
_CONTRACTED = re.compile(r"\w+n't|(?:i|we|you|they|he|she|it|that|there|let)'(?:ll|d|re|ve|m|s)")
_LASTING = re.compile(r"\b(?:from (?:now|here) on|going forward|go (?=for\b|with\b))", re.IGNORECASE)
_DIRECTED = re.compile(
    r"\b(?:before|after|over|from|to|with|than|instead of|rather than|into|by|not|never)\b", re.IGNORECASE
)
"""Words whose two sides cannot be exchanged."""


class Comparison(msgspec.Struct, frozen=True):
    """What a comparison found.

    Attributes:
        refused: Why the sentence cannot be a reading of the words; empty if it can.
        foreign: What the sentence adds: numbers, names and other words that the words do not contain.
        covered: Whether every content word of the sentence is in the words.
    """

    refused: str = ""
    foreign: tuple[str, ...] = ()
    covered: bool = False


def compare(sentence: str, quote: str, answered: str = "") -> Comparison:
    """Compare a sentence with the user's words and with what they answer.

    >>> compare("Use tabs in Python files.", "never use tabs").refused
    'The user negates it (“never”), and the sentence does not.'
    >>> compare("Keep the pool at 50.", "nope, keep the pool at 20").foreign
    ('50',)
    >>> compare("Do not add retries.", "I'd rather not", "Shall I add retries?")
    Comparison(refused='', foreign=(), covered=True)
    """
    if why := _inverted(sentence, quote, answered):
        return Comparison(refused=why)
    sources = f"{quote}\n{answered}"
    words, known = subject_words(sentence), subject_words(sources) | content_words(sources)
    if words and not words & known:
        return Comparison(
            refused="The sentence shares no word with what the user said, or with what it answers."
        )
    foreign = list(_missing_numbers(sentence, sources)) + list(_missing_names(sentence, sources, known))
    dropped = sorted(_limits(quote) - _limits(sentence))
    if dropped:
        foreign.append(f"no “{dropped[0]}”")
    strange = sorted(words - known)
    neutral = {stem(word) for word in _NEUTRAL}
    if not foreign:
        foreign += [word for word in strange if word not in neutral]
    if not foreign:
        foreign += _left_out(sentence, quote, answered)
    return Comparison(foreign=tuple(dict.fromkeys(foreign)), covered=not strange and not foreign)


def _limits(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _LIMIT.findall(text))


def _left_out(sentence: str, quote: str, answered: str) -> list[str]:
    """Return what keeps a sentence of the user's words from saying the same as they do.

    A sentence says the same if it keeps every word that can change the meaning, in the same order, and
    negates as often. So no list of negators has to be complete.
    """
    said = "\n".join(
        _LASTING.sub(" ", reasonless if content_words(reasonless := _REASON.sub("", line)) else line)
        for line in quote.splitlines()
    )
    kept = _meaning(sentence)
    # With the question beside it, an answer's own words may be left out
    lost = [word for word in _meaning(said) if word not in kept and (not answered or word in _operators())]
    if lost:
        return [f"no “{lost[0]}”"]
    particle = _ANSWER.match(quote)
    if answered and particle and not NEGATION.search(sentence) and not set(kept) & set(_meaning(said)):
        return [f"no “{particle.group().strip().lower()}”"]
    odd = {_negations(line) % 2 for line in said.splitlines()}
    if not answered and _negations(sentence) % 2 not in odd:
        return ["another number of negations"]
    if said.rstrip().endswith("?") and not answered:
        return ["no question"]
    theirs = _meaning(said)
    shared = [word for word in kept if word in theirs and word not in _operators()]
    ordered = [word for word in theirs if word in shared]
    if _DIRECTED.search(said) and list(dict.fromkeys(shared)) != list(dict.fromkeys(ordered)):
        return ["another order"]
    return []


_OPERATORS = vocabulary(
    """
    above after before below between few fewer from less least most more only once over under until till
    up down when whenever while if than with provided rarely hardly seldom maybe perhaps might could
    except unless anything everything
    """
)
"""Words that say how, when or how much."""


@lru_cache(maxsize=1)
def _operators() -> frozenset[str]:
    return frozenset(map(stem, _OPERATORS))


def _meaning(text: str) -> list[str]:
    """Return the stems of the words that can change the meaning of a text, in order."""
    low = [word.casefold().replace("’", "'") for word in words_of(text)]
    return [
        stem(word)
        for word in low
        if word not in _FILLER | _NEUTRAL | _NOT and not _CONTRACTED.fullmatch(word)
    ]


def _negations(text: str) -> int:
    return len(NEGATION.findall(_IDIOMS.sub(" ", text)))


# --- negation -----------------------------------------------------------------------------------------------


def _inverted(sentence: str, quote: str, answered: str) -> str:
    """Return how a sentence negates what the user does not, or the reverse; empty if it does neither."""
    said, sentence = _IDIOMS.sub(" ", quote), _ANSWER.sub("", _IDIOMS.sub(" ", sentence))
    particle = _ANSWER.match(said)
    content = _ANSWER.sub("", said) if particle and content_words(_ANSWER.sub("", said)) else said
    ours, theirs = NEGATION.search(sentence), NEGATION.search(content)
    heard = NEGATION.search(_IDIOMS.sub(" ", answered)) or particle
    # "Yes, use tabs" says itself what it wants, whatever the question negates
    says_it = bool(subject_words(content) & subject_words(sentence))
    if ours and not theirs and (says_it or not heard):
        return f"The sentence negates (“{ours.group().lower()}”) what the user does not."
    if theirs and not ours:
        return f"The user negates it (“{theirs.group().lower()}”), and the sentence does not."
    if ours and theirs and _turned(sentence, content):
        return "The sentence negates another part than the user does."
    return ""


def _turned(sentence: str, quote: str) -> bool:
    """Return whether a sentence with a negation wants what the user negates, or the reverse."""
    wanted, unwanted = _parts(quote)
    ours, banned = _parts(sentence)
    bans_wanted, wants_banned = banned & (wanted - unwanted), ours & (unwanted - wanted)
    return bool(
        (bans_wanted and not banned & unwanted)
        or (wants_banned and not ours & wanted and not banned & unwanted)
        or (bans_wanted and wants_banned)
    )


def _parts(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the subject words that a text wants, and those behind a negator in the same clause."""
    wanted: set[str] = set()
    unwanted: set[str] = set()
    for clause in _CLAUSE.split(_IDIOMS.sub(" ", text)):
        found = NEGATION.search(clause)
        if found is None:
            wanted |= subject_words(clause)
            continue
        before, behind = subject_words(clause[: found.start()]), subject_words(clause[found.end() :])
        # "Pop-ups are ruled out", "tabs? No": the negator follows what it negates
        unwanted |= behind or before
        wanted |= before if behind else frozenset()
    return frozenset(wanted), frozenset(unwanted)


# --- numbers and names --------------------------------------------------------------------------------------


def _numbers(text: str) -> set[str]:
    spelt = {_NUMBER_WORDS[low] for word in words_of(text) if (low := word.casefold()) in _NUMBER_WORDS}
    return spelt | {match.group().replace(",", "") for match in _NUMBER.finditer(text)}


def _missing_numbers(sentence: str, sources: str) -> Iterable[str]:
    known = _numbers(sources)
    return (number for number in sorted(_numbers(sentence)) if number not in known)


def _missing_names(sentence: str, sources: str, known: frozenset[str]) -> Iterator[str]:
    """Yield the names of a sentence that the sources do not contain: capitals, identifiers, files."""
    heard = sources.casefold().replace("’", "'")
    starts = True
    for match in _TOKEN.finditer(sentence):
        word = match.group().strip(".")
        first, starts = starts, sentence[match.end() : match.end() + 1] in (".", "!", "?")
        bare = re.sub(r"'s\Z", "", word)
        if bare.isdigit() or not bare:
            continue
        if _is_name(bare, first=first) or (first and _is_subject(sentence, match, known)):
            low = bare.casefold()
            if not re.search(rf"(?<!\w){re.escape(low)}(?!\w)", heard) and stem(low) not in known:
                yield bare


def _is_name(word: str, *, first: bool) -> bool:
    inner = word[1:]
    marked = bool(re.search(r"[\d_@#/+]|\w\.\w", word)) or inner != inner.lower()
    return marked or (not first and word[:1].isupper() and word.casefold() not in (*STOP_WORDS, "i"))


def _is_subject(sentence: str, match: re.Match[str], known: frozenset[str]) -> bool:
    """Return whether the first word of a sentence is its subject and unknown: then it is taken for a name."""
    word = match.group().casefold()
    if word in STOP_WORDS or not _SUBJECT.match(sentence, match.end()):
        return False
    return not subject_words(word) & known
