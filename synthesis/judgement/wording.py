"""Compares an agent's sentence with the words that it rests on: negation, limits, numbers, names, subject.

What changes the meaning is refused. What the words do not contain makes the sentence an unproven reading of
them: it is kept as the agent's, and the user's words remain the item's text.
"""

import re
from collections.abc import Iterable, Iterator

import msgspec

from agentx.synthesis.language.words import STOP_WORDS, content_words, stem, subject_words, words_of

_NEGATORS = (
    r"not|never|no|none|nobody|nothing|nowhere|neither|nor|without|cannot|\w+n't|dont|doesnt|cant|wont|nope|nah"
    r"|stop(?:s|ped|ping)?|avoid(?:s|ed|ing)?|refrain|cease|quit|forbid(?:s|den|ding)?|prohibit(?:s|ed)?"
    r"|ban(?:s|ned)?|reject(?:s|ed|ing)?|refuse[sd]?|rul(?:e|es|ed|ing) out|exclud(?:e|es|ed|ing)"
    r"|instead of|rather than|off limits|out of the question|against|dislike[sd]?|hate[sd]?|skip|omit"
    r"|leave out|keep \w+ out of|free of|no longer"
)
NEGATION = re.compile(rf"\b(?:{_NEGATORS})\b", re.IGNORECASE)
"""Words that negate what follows them, as a class."""

_IDIOMS = re.compile(
    r"\bnot only\b|\b(?:do not|don't|never) forget to\b|\bno (?:problem|worries|rush)\b|\bwhy not\b"
    r"|\bnot just\b|\b(?:does not|doesn't|do not|don't) matter\b|\bnever ?mind\b",
    re.IGNORECASE,
)
"""Phrases with a negator that negate nothing."""

_ANSWER = re.compile(r"\A\W*(?:no|nope|nah|not quite|not really)\b(?=\s*[,.;:!—–-])", re.IGNORECASE)
"""A negator that answers a question, and negates nothing of what follows it in the same message."""

_LIMIT = re.compile(r"\b(?:unless|except|excluding|only|until|till|as long as|if)\b", re.IGNORECASE)
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

_MOSTLY = 0.5
"""Least share of the sentence's content words that the words must contain."""


class Read(msgspec.Struct, frozen=True):
    """What a comparison found.

    Attributes:
        refused: Why the sentence cannot be a reading of the words; empty if it can.
        foreign: What the sentence adds: numbers, names and other words that the words do not contain.
        covered: Whether every content word of the sentence is in the words.
    """

    refused: str = ""
    foreign: tuple[str, ...] = ()
    covered: bool = False


def compare(sentence: str, quote: str, answered: str = "") -> Read:
    """Compare a sentence with the user's words and with what they answer.

    >>> compare("Use tabs in Python files.", "never use tabs").refused
    'The user negates it (“never”), and the sentence does not.'
    >>> compare("Keep the pool at 50.", "nope, keep the pool at 20").foreign
    ('50',)
    >>> compare("Do not add retries.", "I'd rather not", "Shall I add retries?")
    Read(refused='', foreign=(), covered=True)
    """
    if why := _inverted(sentence, quote, answered):
        return Read(refused=why)
    sources = f"{quote}\n{answered}"
    words, known = subject_words(sentence), subject_words(sources) | content_words(sources)
    if words and not words & known:
        return Read(refused="The sentence shares no word with what the user said, or with what it answers.")
    foreign = list(_missing_numbers(sentence, sources)) + list(_missing_names(sentence, sources, known))
    dropped = sorted(_limits(quote) - _limits(sentence))
    if dropped:
        foreign.append(f"no “{dropped[0]}”")
    strange = sorted(words - known)
    if not foreign and words and len(words & known) < _MOSTLY * len(words):
        foreign += strange
    return Read(foreign=tuple(dict.fromkeys(foreign)), covered=not strange and not foreign)


def _limits(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _LIMIT.findall(text))


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
