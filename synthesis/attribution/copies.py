"""Tells which sentences of a message others wrote first, so that words pasted back are not the user's.

Words are compared without case, punctuation, emphasis and white space. Two or more sentences that follow
each other there as here were copied, and so was one sentence with the marks of a list, a heading or an
emphasis: that is a quotation. A single sentence may be chance, so it is only doubtful. What the user said
first stays the user's, however often others repeat it.

Nothing is kept of a text but hashes, and of those only the recent ones: of its sentences, of neighbouring
sentences, and of each :data:`RUN` words in a row, by which a part of a longer sentence is found.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from typing import NamedTuple

import msgspec

from agentx.synthesis.attribution.material import MAX_CHARACTERS
from agentx.synthesis.language.patterns import on_use
from agentx.synthesis.language.sentences import Span

RUN = 6
"""Words in a row that two texts do not share by chance."""

MOSTLY = 0.75
"""Share of a sentence that must be copied: the user's own words before or behind it may be the rest."""

_NEAR = 3
"""Words on either side of the place where two sentences meet."""

_WRAPS = 60
"""A line with fewer characters is not broken by its width."""

_PROSE = 0.6
"""Share of letters and spaces in a line of a tool's output that somebody may paste as a sentence."""

_WORD = on_use(
    # Scripts without spaces: each letter is a word. Otherwise a word keeps its emphasis and its apostrophes.
    r"(?P<skipped>\]\([^)\s]*\)|\\[nrt]|</?[a-zA-Z][^<>\n]{0,200}>)"
    r"|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"
    r"|(?:[^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"
    r"|[*_`~'’\u00ad\u0300-\u036f\u200b-\u200f\u2060\ufeff])+"
)
_LINE_LEAD = on_use(
    r"^[ \t]*(?:(?:[>│|]|(?:[-*•+◦▪‣⁃–]|#{1,6}|\[[ xX]\]|\(?\d{1,3}[.)])(?=[ \t])"
    r"|\d{1,6}(?:→|\t|[:|](?=[ \t])))[ \t]*)+",
    re.MULTILINE,
)
"""What a list, a quote, a heading or a listing of lines puts before a line."""

_SENTENCE_END = on_use(r"[.!?…][\"'”’»)\]*_`~]*\s|[。！？]")
_PART_END = on_use(r"[:;—–]|\s-\s")
_MARKS = on_use(r"\*\*|__|(?<![\w*_])[*_](?=[\w`])|^(?:[-*•+◦▪‣⁃–]|#{1,6}|\[[ xX]\]|\(?\d{1,3}[.)]) ")


class Copied(NamedTuple):
    """What others wrote first in a message.

    Attributes:
        quotations: Stretches that were certainly copied.
        doubtful: Sentences that may have been copied.
    """

    quotations: tuple[Span, ...] = ()
    doubtful: tuple[Span, ...] = ()

    def masked(self, text: str) -> str:
        """Return a message with line breaks in the place of its quotations; the length stays the same."""
        return _blanked(text, self.quotations)

    def own(self, text: str) -> str:
        """Return a message with line breaks in the place of all that may have been copied."""
        return _blanked(text, (*self.quotations, *self.doubtful))

    def doubts(self, start: int, end: int) -> bool:
        """Return whether a part of the message may have been copied."""
        return any(one.start < end and start < one.end for one in self.doubtful)


def _blanked(text: str, spans: Sequence[Span]) -> str:
    for one in spans:
        text = text[: one.start] + "\n" * (one.end - one.start) + text[one.end :]
    return text


class _Word(NamedTuple):
    """A word: as it is compared, where it is, and what stands before it.

    Attributes:
        after: A space within a sentence, ``n`` for the end of a line, ``.`` for the end of a sentence.
        part: Whether a colon, a semicolon or a dash stands before it.
    """

    said: str
    start: int
    end: int
    after: str
    part: bool


_Unit = tuple[int, int]
"""A sentence or a part of one: its first word, and the word behind its last."""


RECENT = 200_000
"""Hashes after which a generation ends, about as many words. Two are known: memory and cache have a bound."""


class Recent(msgspec.Struct):
    """A set of hashes that forgets what was not added for a long time.

    What it forgets depends on what was added alone, so each replay forgets the same.

    Attributes:
        newer: Hashes of the generation that grows.
        older: Hashes of the one before it; those before that are forgotten.
    """

    newer: set[int] = msgspec.field(default_factory=set)
    older: set[int] = msgspec.field(default_factory=set)

    def __contains__(self, one: int) -> bool:
        return one in self.newer or one in self.older

    def __bool__(self) -> bool:
        return bool(self.newer or self.older)

    def update(self, hashes: Iterable[int]) -> None:
        """Add hashes; they are the newest."""
        self.newer.update(hashes)
        if len(self.newer) > RECENT:
            self.older, self.newer = self.newer, set()

    def unknown(self, hashes: Iterable[int]) -> list[int]:
        """Return the hashes that are not in it, in order."""
        return [one for one in hashes if one not in self.newer and one not in self.older]

    def has_any(self, hashes: Iterable[int]) -> bool:
        """Return whether one of the hashes is in it."""
        return any(one in self.newer or one in self.older for one in hashes)


class Heard(msgspec.Struct):
    """Who wrote a sentence first, for each sentence of the recent history.

    Attributes:
        others: Hashes of what agents, tools and others wrote first.
        own: Hashes of what the user wrote first.
        read: Hashes of the texts of others that were read, and of their stretches, so that what a tool
            repeats is read once: to read it again would change nothing.
        tasks: Sequence numbers of the messages that are no more than the task of a run.
    """

    others: Recent = msgspec.field(default_factory=Recent)
    own: Recent = msgspec.field(default_factory=Recent)
    read: Recent = msgspec.field(default_factory=Recent)
    tasks: set[int] = msgspec.field(default_factory=set)

    def hear(self, text: str) -> None:
        """Read a message of the user: what in it nobody wrote before is from now on the user's.

        Args:
            text: The message; its first :data:`MAX_CHARACTERS` are read.
        """
        text = text[:MAX_CHARACTERS]
        words = _words(text)
        self.own.update(self.others.unknown(_runs(words)))
        copied = [place for unit in self._copied(words) for place in range(*unit)]
        for unit in _sentences(words):
            if copied and not set(copied).isdisjoint(range(*unit)):
                continue
            self.own.update(self.others.unknown((_sentence(words, unit), *_marked(text, words, unit))))

    def hear_others(self, text: str, *, output: bool = False) -> None:
        """Read what somebody else wrote: what in it nobody wrote before is from now on theirs.

        Args:
            text: The text; its first :data:`MAX_CHARACTERS` are read.
            output: Whether a tool printed it; then only lines that read like sentences count.
        """
        text = text[:MAX_CHARACTERS]
        whole = _hash(text)
        if whole in self.read:
            return
        self.read.update((whole,))
        own, others = self.own, self.others
        for part in _prose(text) if output else (text,):
            if output and (told := _hash(f"stretch {part}")) in self.read:
                continue
            if output:
                self.read.update((told,))
            words = _words(part)
            runs = list(_runs(words))
            others.update(own.unknown(runs))
            marked = _may_be_marked(part)
            for unit in _sentences(words):
                inner = runs[unit[0] : unit[1] - RUN + 1]
                if not inner or own.unknown(inner):
                    others.update(own.unknown((_sentence(words, unit),)))
                    if marked:
                        others.update(own.unknown(_marked(part, words, unit)))
            for before, unit in pairwise(_units(words, ".")):
                others.update(_meeting(words, before, unit))

    def copied(self, text: str) -> Copied:
        """Return what others wrote first in a message of the user."""
        text = text[:MAX_CHARACTERS]
        words = _words(text) if self.others else []
        quotations: list[Span] = []
        doubtful: list[Span] = []
        units, last = self._copied(words), -1
        for number, unit in enumerate(units):
            if number <= last:
                continue
            follows, last = False, number
            while last + 1 < len(units) and (link := self._link(words, units[last], units[last + 1])):
                follows, last = follows or link == ".", last + 1
            units_there = units[number : last + 1]
            formatted = any(self.others.has_any(_marked(text, words, one)) for one in units_there)
            span = Span(words[unit[0]].start, words[units[last][1] - 1].end)
            (quotations if follows or formatted else doubtful).append(span)
        return Copied(tuple(quotations), tuple(doubtful))

    def is_spoken(self, seq: int, quote: str) -> bool:
        """Return whether the user said something of their own accord, in words that nobody wrote before."""
        return seq not in self.tasks and not any(self.copied(quote))

    def _copied(self, words: Sequence[_Word]) -> list[_Unit]:
        """Return the sentences, or lines of one, that others wrote first."""
        theirs, mine = [False] * len(words), [False] * len(words)
        for unit in _sentences(words):
            said = _sentence(words, unit)
            for known, hit in ((self.others, theirs), (self.own, mine)):
                if said in known:
                    hit[slice(*unit)] = [True] * (unit[1] - unit[0])
        for first, run in enumerate(_runs(words)):
            if run in self.others:
                theirs[first : first + RUN] = [True] * RUN
        return [
            (first, last)
            for first, last in _units(words, "n.")
            if sum(theirs[first:last]) >= MOSTLY * (last - first) and not all(mine[first:last])
        ]

    def _link(self, words: Sequence[_Word], before: _Unit, unit: _Unit) -> str:
        """Return how two neighbours were neighbours there: as sentences, as lines of one, or not at all."""
        first = unit[0]
        if before[1] != first:
            return ""
        if self.others.has_any(_meeting(words, before, unit)):
            return "."
        across = range(max(0, first - RUN + 1), min(first, len(words) - RUN + 1))
        near = any(run in self.others for one in across for run in _runs(words[one : one + RUN]))
        return "n" if near else ""


def _prose(text: str) -> Iterator[str]:
    """Yield the stretches of lines that read like sentences."""
    kept: list[str] = []
    for line in (*text.replace("\\n", "\n").splitlines(), ""):
        letters = sum(map(str.isalpha, line)) + line.count(" ")
        if " " in line.strip() and letters >= _PROSE * len(line):
            kept.append(line)
        elif kept:
            yield "\n".join(kept)
            kept = []


def _words(text: str) -> list[_Word]:
    """Return the words of a text, as they are compared."""
    # What stands before a line is no word of it: a list that is copied may come without its numbers.
    leads = [match.span() for match in _LINE_LEAD.finditer(text)]
    leads.append((len(text), len(text)))
    found: list[_Word] = []
    behind = lead = 0
    for match in _WORD.finditer(text):
        start, end = match.span()
        while lead < len(leads) - 1 and leads[lead][1] <= start:
            lead += 1
        if match.lastgroup or leads[lead][0] <= start:
            continue
        said = _said(match.group())
        if said:
            gap = text[behind:start]
            if gap == " ":  # between most words
                found.append(_Word(said, start, end, " ", False))  # a keyword takes as long as the rest
            else:
                after, part = _ended(gap)
                found.append(_Word(said, start, end, after or _line_end(text, behind, start), part))
            behind = end
    return found


@lru_cache(maxsize=20_000)
def _said(word: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", word).casefold()))


@lru_cache(maxsize=20_000)
def _ended(gap: str) -> tuple[str, bool]:
    """Return what ends between two words, empty if its line says it, and whether a part of one does."""
    after = "." if _SENTENCE_END.search(gap) else "" if "\n" in gap else " "
    return after, bool(_PART_END.search(gap))


def _line_end(text: str, start: int, end: int) -> str:
    """Return what ends between two words with a line between them: a line, or a sentence."""
    lines = text.count("\n", start, end)
    wide = start - (text.rfind("\n", 0, start) + 1) >= _WRAPS
    listed = _LINE_LEAD.match(text, text.rfind("\n", start, end) + 1)
    return "n" if lines == 1 and not listed and (wide or not text[end].isupper()) else "."


def _units(words: Sequence[_Word], ends: str, *, parts: bool = False) -> Iterator[_Unit]:
    """Yield the sentences, divided at some sorts of breaks; ``parts``: also at colons and dashes."""
    first = 0
    for number in range(1, len(words) + 1):
        if number == len(words) or words[number].after in ends or (parts and words[number].part):
            yield first, number
            first = number


def _sentences(words: Sequence[_Word]) -> list[_Unit]:
    """Return whatever may be a sentence, whether its lines are wrapped or not; none of a single word."""
    every = {*_units(words, "n."), *_units(words, "."), *_units(words, "n.", parts=True)}
    return sorted(one for one in every if one[1] - one[0] > 1)


def _runs(words: Sequence[_Word]) -> Iterator[int]:
    said = [_hash_of_word(word.said) for word in words]
    # Of each word's hash, so that a text of n words is hashed n times and not once more for each run
    return (
        (a + 3 * b + 5 * c + 7 * d + 11 * e + 13 * f) & _52_BITS
        for a, b, c, d, e, f in zip(said, said[1:], said[2:], said[3:], said[4:], said[5:], strict=False)
    )


def _sentence(words: Sequence[_Word], unit: _Unit) -> int:
    return _hash(f"{_joined(words, unit)}.")


def _meeting(words: Sequence[_Word], before: _Unit, unit: _Unit) -> Iterator[int]:
    """Yield the hashes of the place where one sentence ends and the next begins.

    By the nearest words of the two sentences and, since lines may be wrapped otherwise, by the nearest words.
    """
    at = unit[0]
    near = (max(before[0], at - _NEAR), min(unit[1], at + _NEAR))
    for first, last in {near, (at - _NEAR, at + _NEAR)}:
        if first >= 0 and last <= len(words):
            yield _hash(f"{_joined(words, (first, at))}. {_joined(words, (at, last))}")


def _may_be_marked(text: str) -> bool:
    """Return whether anything in a text can be a mark of a list, a heading or an emphasis."""
    return "*" in text or "_" in text or bool(_LINE_LEAD.search(text))


def _marked(text: str, words: Sequence[_Word], unit: _Unit) -> Iterator[int]:
    """Yield the hashes of a sentence with its marks of a list, a heading or an emphasis, if it has any."""
    start, end = words[unit[0]].start, words[unit[1] - 1].end
    lead = _LINE_LEAD.match(text, text.rfind("\n", 0, start) + 1)
    for first in {start, lead.start() if lead and lead.end() >= start else start}:
        raw = " ".join(text[first:end].split())
        if _MARKS.search(raw):
            yield _hash(f"marked {raw}")


def _joined(words: Sequence[_Word], unit: _Unit) -> str:
    return " ".join([word.said for word in words[slice(*unit)]])


_52_BITS = (1 << 52) - 1


def _hash(text: str) -> int:
    # 52 bits, so that every reader of JSON keeps the number
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()) >> 12


_hash_of_word = lru_cache(maxsize=50_000)(_hash)
