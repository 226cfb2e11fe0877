"""Find the earlier memories that a message makes untrue, without a model.

A fact has a subject, an attribute and a value: "Flat 3 costs 1,450." A later message gives it another value
("flat 3 goes up to 1,600"), corrects it ("No, I meant 1,550"), or ends it and names what takes its place
("Marta left, Jonas does the books now"). A wrong supersession hides what is true, so each needs evidence:

- the grammar of change in the message, unless both sentences are equal but for the value;
- the same type of value, or the former value itself;
- the same subject: words in common that few memories have, and no other person or thing of the kind;
- the same attribute: a similar meaning of both sentences without their values.

Plans, wishes and the past do not make anything untrue.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from agentx.storage.events.cognition_events import Extracted, Outdated
from agentx.storage.text import one_line
from agentx.synthesis.cognition.informative_sentences import Rarity, sentences, terms_of
from agentx.synthesis.cognition.values import RELATIVE, Value, names, values
from agentx.synthesis.language.dates import dates_in
from agentx.synthesis.language.words import content_words

Likeness = Callable[[str, str], float | None]
"""Returns how similar two sentences are in meaning, from -1 to 1; ``None`` without embeddings."""

LIKE_CHANGED, EQUAL, ALMOST_LIKE = 0.45, 0.95, 0.45

MOST_KNOWN = 2_000
"""Number of memories, the latest, that a message is compared with."""

CORRECTED = 3
"""A correction that names nothing is about one of this number of messages before it."""


class Known(msgspec.Struct, frozen=True):
    """An earlier memory.

    Attributes:
        said: Seq of its message.
        by: Who said it; empty for the user.
    """

    id: str
    text: str
    said: int
    by: str = ""


class Found(msgspec.Struct, frozen=True):
    """The memories of a message, with their wording completed, and the earlier ones that they outdate."""

    memories: tuple[Extracted, ...]
    outdated: tuple[Outdated, ...] = ()


# --- the grammar of change ----------------------------------------------------------------------------------


def _any(*forms: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(forms)})(?!\w)", re.IGNORECASE)


_CHANGES = _any(
    r"rais(?:e|ed|es|ing)|increas\w+|r[io]se[ns]?|bump\w*|hik(?:e|ed|es)|doubl\w+|tripl\w+|halv\w+|up(?:ped|s)? to",
    r"(?:put|puts|putting|go|goes|going|gone|went|come|comes|came|crept|mov\w+|push\w+|set|bring\w*|brought)"
    r" (?:\S+ ){0,4}?(?:up|down|back|forward|out|off)",
    r"(?:up|down|back|over) to|lower\w*|reduc\w+|cut|drop(?:s|ped|ping)?|slid\w*|slip\w*|shrunk|shrinks?|grew|grown",
    r"postpon\w+|delay\w+|reschedul\w+|rearrang\w+|mov(?:e|ed|es|ing)|shift\w*|extend\w*|shorten\w*",
    r"chang\w+|switch\w*|swap\w*|replac\w+|renam\w+|becom\w+|became|convert\w*|upgrad\w+|downgrad\w+|correct\w*",
)
_NOW = _any(
    r"now|nowadays|these days|from now on|by now|as of|starting|effective|new|newly|instead|rather|after all",
    r"in the end|turn(?:s|ed) out|actually|any ?more|no longer|this time|again|henceforth|lately|meanwhile",
    r"from (?:next|the|this|mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|\d)\w*",
)
_PLANS = _any(
    r"thinking (?:of|about)|think (?:i|we|she|he|they)|thinks|might|may(?= (?!\d|\d?$))(?<!in may)|could|maybe|perhaps",
    r"if|would|wish\w*|hop(?:e|es|ing)|want(?:s|ed)?|consider\w*|plan(?:s|ned|ning)? to|ask(?:s|ed|ing)?|offer\w*"
    r"|suggest\w*|advis\w*|reckon\w*|propos\w*|advertis\w*|quot(?:e|ed|es)|estimat\w*|expect\w*|option\w*|wonder\w*",
    r"should|probably|possibly|apparently|rumou?r\w*|supposedly|seems?|discuss\w*|talk(?:ed|ing)? (?:of|about)",
)
_PAST = _any(
    r"used to|back then|in those days|formerly|years? ago|months? ago|last (?:year|month|winter|summer|spring|autumn)",
    r"once (?:was|were|had)|when (?:i|we|he|she|they) (?:was|were)|as a (?:child|kid|girl|boy|student)|at the time",
)
_CORRECTS = re.compile(
    r"^(?:oh |sorry[,.]? |ah |oops[,.]? |wait[,.]? |hang on[,.]? |well[,.]? )*"
    r"(?:(?:no|nope|sorry|correction|wait|oops|actually|rather)\b[\s,:;.!–—-]*)+"
    r"(?:no\b[\s,]*)?(?:(?:i|it|that|we|he|she|they)(?:['’]?s|['’]re| is| was| are| were)?(?: actually)? )?"
    r"(?:mean[ts]?|said|should (?:be|have been|read|say)|make (?:it|that)|to be)?\b|^i meant\b|^make (?:it|that)\b"
    r"|^(?:that|it) should (?:be|have been)\b",
    re.IGNORECASE,
)
_FORMER = r"(?P<former>[^,.;:!?\n]{1,40}?)"
_LATER = r"(?P<later>[^,.;:!?\n]{1,40}?)"
_STOP = r"(?=\s*(?:[,.;:!?\n)–—]|$| (?:and|but|because|since|as|so|from|for|now|any ?more|who|which|that)\b))"
_CONTRASTS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"(?:(?:is|was|are|were)(?:n['’]?t| not)|['’]s not|\bnot)\s+(?:on |in |at )?(?:the |an? |my |in )?{_FORMER}"
        rf"(?: any ?more)?\s*(?:,|;|\.|but|–|—|-)+\s*(?:but |it(?:['’]?s| is| was) |they(?:['’]re| are) |rather )+"
        rf"(?:on |in |at )?(?:the |an? |my )?{_LATER}{_STOP}",
        rf"(?:^|[,.;:]\s*|\b(?:to|is|be|with|at|on|by|use|uses)\s+)(?:the |an? |my )?{_LATER} (?:instead of|rather than)"
        rf" (?:the |an? |my )?{_FORMER}{_STOP}",
        rf"\bfrom (?:the |an? |my )?{_FORMER} (?:back |up |down |over )?to (?:the |an? |my )?{_LATER}{_STOP}",
        rf"(?:^|[.;]\s*)(?:the |an? )?{_FORMER} (?:fell through|is off|was cancelled|is cancelled|got cancelled"
        rf"|cancelled|can['’]?t|is out|dropped out)[^,.;]{{0,20}},\s*(?:so |it(?:['’]s| is) )?{_LATER} instead\b",
    )
)
_ENDED = re.compile(
    r"\b(?:sold|s[eo]ll(?:ing)?|dropp(?:ed|ing)|ditch\w*|scrapp\w*|cancel\w*|stopp\w*|quit(?:ting)?|le(?:ft|aving|aves?)"
    r"|fired|sacked|dismissed|gave up|giv(?:en|ing) up|got rid of|getting rid of|replac(?:ed|ing)|swapped|mov(?:ed|ing)"
    r" (?:out of|away from|off)|switch(?:ed|ing) (?:away )?from|traded in|return(?:ed|ing)|retir(?:ed|es|ing)"
    r"|clos(?:ed|es|ing)|shut|resign\w*|passed away|died|broke down|broken down|bankrupt|renovated|stepp?(?:ed|ing)"
    r" down|hand(?:ed|ing) (?:in|over)|going (?:away|back|abroad)|gone|on (?:maternity |sick |parental )?leave|sabbatical"
    r"|no longer|any ?more)\b",
    re.IGNORECASE,
)
_BEGUN = _any(
    r"now|instead|new|from now on|as of|tak(?:es?|ing|en) (?:it |this |that )?over|took (?:it |this |that )?over",
    r"replac\w+|pass(?:es|ed) to|hand(?:ed|s) (?:\S+ )?(?:over )?to|will be|mov(?:ed?|es|ing) to|switch(?:ed|ing)? to",
    r"stand(?:s|ing)?-? ?in|fill(?:s|ing) in|steps? in|(?:and|so|,) \w+ (?:drives?|uses?|has|have|works?|does|takes?)",
    r"to have|on to|onto|sending|start(?:s|ed|ing)? (?:at|with|as)|join(?:s|ed|ing)|from",
)
_PRONOUN = _any(r"it|its|it['’]s|they|their|them|theirs|he|his|him|she|her|hers|this|that|those|these|then|there")
_CALENDAR = content_words(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august"
    " september october november december week month year day today tomorrow yesterday morning evening night"
    " afternoon time new now one two three four five six seven eight nine ten first last next hour minute"
)
_SEGMENT = re.compile(r"(?<!\d),\s+|,\s+(?!\d{3})|;\s+|\s+[–—-]+\s+|\s+(?:and|but|so|n)\s+|:\s+(?!\d)|\.{3}\s*|[.!?]\s+")
_DAYS = re.compile(r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?", re.IGNORECASE)
_DAY_OF_MONTH = re.compile(r"\d")
_BESIDE = re.compile(r"\b(?:from|until|till|since|in|by|before|after|during|as of|last|every|of)\s+(?:the\s+)?$", re.IGNORECASE)
_RATE = re.compile(r"\s?(?:€|£|\$|\w+)?,?\s?(?:a|an|per|each|every|/)\s?(month|week|year|day|night|hour|piece|head|person)\b", re.IGNORECASE)
_UNIT = re.compile(r"\s?(?:more |extra |other )?([^\W\d_]+)")
_NUMBER_WORDS = {
    word: number
    for number, word in enumerate(
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
        " eighteen nineteen twenty".split(" "),
        1,
    )
}


class Claim(msgspec.Struct, frozen=True):
    """A value in a sentence, with what is said around it.

    Attributes:
        value: The value, at its place in ``sentence``.
        kind: Its type; only values of the same type can take each other's place.
        segment: The part of the sentence between commas and conjunctions that contains it.
    """

    sentence: str
    value: Value
    kind: str
    segment: tuple[int, int]

    @property
    def masked(self) -> str:
        """The sentence without the value."""
        return f"{self.sentence[: self.value.start]}{self.kind.partition(' ')[0]}{self.sentence[self.value.end :]}"

    @property
    def part(self) -> str:
        """The segment without the value."""
        start, end = self.segment
        return f"{self.sentence[start : self.value.start]}{self.kind.partition(' ')[0]}{self.sentence[self.value.end : end]}"

    @property
    def key(self) -> str:
        """The value itself: equal for "1,450" and "1450", "six" and "6"."""
        text = self.value.text.casefold().replace(",", "").replace(" ", "")
        return str(_NUMBER_WORDS.get(text, text))


def claims(sentence: str) -> Iterator[Claim]:
    """Yield the values of a sentence that may be those of a fact.

    >>> [(one.key, one.kind) for one in claims("They pay 8,400 euros a month since May.")]
    [('8400', 'amount')]
    """
    for value in values(sentence):
        if kind := _kind(sentence, value):
            yield Claim(sentence, value, kind, _segment(sentence, value))


def _kind(sentence: str, value: Value) -> str:
    """Return the type of a value with its unit; empty for a time that only says since when or until when."""
    before, after = sentence[: value.start], sentence[value.end :]
    if value.kind == "date":
        if _BESIDE.search(before):
            return ""
        return "weekday" if _DAYS.search(value.text) else "date" if _DAY_OF_MONTH.search(value.text) else ""
    if value.kind in ("money", "large"):
        rate = _RATE.match(after)
        return f"amount {rate[1].casefold()}" if rate else "amount"
    unit = _UNIT.match(after)
    if value.kind in ("measure", "duration") and unit:
        return f"quantity {min(content_words(unit[1]), default=unit[1].casefold())}"
    if value.kind == "label":
        name = re.search(r"([^\W\d_]+)\s$", before)
        return f"label {name[1].casefold()}" if name else ""
    return value.kind


def _segment(sentence: str, value: Value) -> tuple[int, int]:
    ends = [(0, 0), *((one.start(), one.end()) for one in _SEGMENT.finditer(sentence)), (len(sentence),) * 2]
    start = max(end for begin, end in ends if end <= value.start)
    return start, min(begin for begin, _ in ends if begin >= value.end)


# --- what a message makes untrue ----------------------------------------------------------------------------


def outdated(memories: Sequence[Extracted], message: str, known: Sequence[Known], like: Likeness, said: str = "") -> Found:
    """Return what a message makes untrue, at its time in ISO 8601.

    Args:
        memories: What was extracted from the message.
        message: The message.
        known: What is true so far, oldest first.
        like: Compares meanings.
        said: The time of the message.
    """
    reader = _Reader(message, known[-MOST_KNOWN:], like, said)
    completed = reader.corrected(memories)
    if completed is not None:
        return completed
    found: dict[str, Outdated] = {}
    for number, one in enumerate(memories):
        for each in reader.of(number, one):
            found.setdefault(each.memory, each)
    return Found(tuple(memories), tuple(found.values()))


class _Reader:
    """Compares one message with what is known."""

    def __init__(self, message: str, known: Sequence[Known], like: Likeness, said: str) -> None:
        self.message, self.known, self.like, self.said = one_line(message), known, like, said
        self.around: dict[int, list[str]] = {}
        for one in known:
            self.around.setdefault(one.said, []).append(one.text)
        self.rarity = Rarity(one.text for one in known)
        often = Counter(term for one in known for term in terms_of(one.text))
        self.common = {term for term, count in often.items() if count > max(6, len(known) // 12)}
        self.before = " ".join(self.around[max(self.around)]) if self.around else ""
        self.lower = {word for one in known for word in one.text.split() if word.islower()}

    def of(self, number: int, memory: Extracted) -> Iterator[Outdated]:
        """Yield what one memory of the message outdates."""
        if _PAST.search(memory.text):
            return
        yield from self._contrasted(number, memory.text)
        yield from self._ended(number, memory.text)
        for sentence in sentences(memory.text):
            if not sentence.endswith("?"):
                yield from self._changed(number, sentence)

    def corrected(self, memories: Sequence[Extracted]) -> Found | None:
        """Return the former statement with the value of a message that only corrects it; ``None`` for others."""
        lead = _CORRECTS.match(self.message.strip())
        rest = self.message.strip()[lead.end() :] if lead else ""
        if lead is None or len(content_words(rest)) > 4 or not rest:  # noqa: PLR2004 - more words say what they are about
            return None
        latest = sorted({one.said for one in self.known})[-CORRECTED:]
        for one in reversed([one for one in self.known if one.said in latest]):
            for new in claims(rest):
                for old in claims(one.text):
                    if _same_kind(old.kind, new.kind) and old.key != new.key:
                        text = f"{one.text[: old.value.start]}{new.value.text}{one.text[old.value.end :]}"
                        level = memories[0].level if memories else "L2"
                        place = self.message.find(rest)
                        made = Extracted(level, text, max(place, 0), max(place, 0) + len(rest))
                        return Found((made,), (Outdated(one.id, 0),))
        return None

    def _contrasted(self, number: int, text: str) -> Iterator[Outdated]:
        """Yield what a message names as former beside what takes its place: "not A but B", "B instead of A"."""
        for form in _CONTRASTS:
            for match in form.finditer(text):
                former, later = match["former"].strip(), match["later"].strip()
                if not former or not later or former.casefold() == later.casefold():
                    continue
                old = self._named(former, text)
                if old is not None:
                    place = _found(former, old.text)
                    rest = _swapped(old.text, place, later) if place else ""
                    yield Outdated(old.id, number, self._since(text), rest)

    def _named(self, former: str, text: str) -> Known | None:
        """Return the latest memory that has these words, and shares more than them with the message."""
        around = self._subject(text) - terms_of(former)
        fit = [
            one
            for one in self.known
            if _found(former, one.text) and self._shared(around, one, terms_of(former))
        ]
        return fit[-1] if fit else None

    def _ended(self, number: int, text: str) -> Iterator[Outdated]:
        """Yield what ended, where the message also names what takes its place: "A left, B does it now"."""
        if _PLANS.search(text) or not _BEGUN.search(self.message):
            return
        for match in _ENDED.finditer(text):
            gone = self._gone(text, match)
            fresh = [one.text for one in names(self.message, self.lower) if one.text.casefold() not in gone]
            if not gone or not fresh:
                continue
            for one in self.known:
                if any(_found(word, one.text) for word in gone) and self._role(one, gone):
                    yield Outdated(one.id, number, self._since(text))
            return

    def _gone(self, text: str, match: re.Match[str]) -> set[str]:
        """Return the name that a verb of ending is about: that before it, or the words after it."""
        before = text[: match.start()]
        begin = max(before.rfind(mark) for mark in ".!?;\n") + 1
        after = re.split(r"[,.;:!?\n]| and | so ", text[match.end() :])[0]
        known = {one.text.casefold() for old in self.known for one in names(old.text, self.lower)}
        for part in (after, before[begin:]):
            words = [one.text.casefold() for one in names(part, self.lower)] or re.findall(r"\w+", part.casefold())
            if hit := [word for word in words if word in known and len(word) > 2]:  # noqa: PLR2004
                return set(hit[:1])
        return set()

    def _role(self, one: Known, gone: set[str]) -> bool:
        """Return whether a memory says what somebody or something that ended was or did."""
        own = terms_of(one.text) - {term for word in gone for term in terms_of(word)}
        shared = own & terms_of(self.message) - self.common - _CALENDAR
        if shared:
            return True
        like = self.like(self.message, one.text)
        return like is not None and like >= ALMOST_LIKE

    def _changed(self, number: int, sentence: str) -> Iterator[Outdated]:
        """Yield the facts whose value a sentence changes."""
        if _PLANS.search(sentence):
            return
        says = bool(_CHANGES.search(sentence) or _NOW.search(sentence))
        subject = self._subject(sentence)
        for new in claims(sentence):
            ranked = [
                (score, place, one, old)
                for place, one in enumerate(self.known)
                for text in sentences(one.text)
                for old in claims(text)
                if _same_kind(old.kind, new.kind) and old.key != new.key
                for score in [self._fit(new, old, one, subject, says=says)]
                if score
            ]
            if ranked:
                best = max(ranked, key=lambda row: (round(row[0], 1), row[1]))
                _, _, one, old = best
                yield Outdated(one.id, number, self._since(sentence), _without(one.text, old))

    def _fit(self, new: Claim, old: Claim, one: Known, subject: frozenset[str], *, says: bool) -> float:
        """Return how well an old claim is about the same subject and attribute as a new one; 0 if it is not."""
        shared = self._shared(subject, one, terms_of(old.value.text) | terms_of(new.value.text))
        if not shared or self._differ(new, old, one) or (not says and _PLANS.search(old.sentence)):
            return 0.0
        like = self._alike(new, old)
        named = {term for one in (new.sentence, old.sentence) for name in names(one, self.lower) for term in terms_of(name.text)}
        about = terms_of(new.sentence) & terms_of(old.sentence) & shared - named
        unit = " " in new.kind and new.kind == old.kind and not new.kind.startswith("label")
        evidence = like + 0.15 * min(len(about), 2) + 0.15 * unit
        if evidence < (LIKE_CHANGED if says else EQUAL):
            return 0.0
        part = terms_of(old.sentence[slice(*old.segment)]) & subject - _CALENDAR
        return 6 * evidence + self.rarity.of(shared) + 2 * bool(part)

    def _alike(self, new: Claim, old: Claim) -> float:
        """Return how similar two claims are without their values, as sentences or in part."""
        found = [
            like
            for one in dict.fromkeys((new.masked, new.part))
            for other in dict.fromkeys((old.masked, old.part))
            if (like := self.like(one, other)) is not None
        ]
        if found:
            return max(found)
        own, other = terms_of(new.masked), terms_of(old.masked)
        return len(own & other) / max(1, min(len(own), len(other)))

    def _subject(self, sentence: str) -> frozenset[str]:
        """Return the terms of a sentence and its message; of the one before, too, if a pronoun refers to it."""
        own = terms_of(self.message)
        first = sentences(self.message)[:1]
        refers = not any(True for _ in names(sentence, self.lower)) and first and _PRONOUN.search(first[0][:60])
        return frozenset(own | terms_of(self.before) if refers else own)

    def _shared(self, subject: frozenset[str], one: Known, values_: frozenset[str]) -> frozenset[str]:
        """Return the terms of a memory, and of its message, that a subject has and that few memories have."""
        own = terms_of(one.text)
        if _PRONOUN.search(one.text[:40]) or not own & subject:
            own |= terms_of(" ".join(self.around[one.said]))
        shared = (own & subject) - values_ - _CALENDAR - self.common
        return frozenset(term for term in shared if not term.isdigit())

    def _differ(self, new: Claim, old: Claim, one: Known) -> bool:
        """Return whether two claims are about different persons or things of a kind."""
        mine, theirs = self._entities(self.message, new.sentence), self._entities(" ".join(self.around[one.said]), old.sentence)
        for kind in (mine.keys() & theirs.keys()) - {new.kind, old.kind}:
            if not mine[kind] & theirs[kind]:
                return True
        return False

    def _entities(self, message: str, sentence: str) -> dict[str, set[str]]:
        """Return whom and what a sentence is about, by kind; of its message, where it names nobody itself."""
        for text in (sentence, message):
            found: dict[str, set[str]] = {}
            for name in names(text, self.lower):
                found.setdefault("name", set()).add(name.text.casefold())
            for relative in RELATIVE.finditer(text):
                found.setdefault("relative", set()).add(relative[0].casefold())
            for value in values(text):
                if (kind := _kind(text, value)).startswith("label"):
                    found.setdefault(kind, set()).add(value.text)
            if found:
                return found
        return {}

    def _since(self, text: str) -> str:
        """Return from when on a message says that something is so; empty for now."""
        for one in dates_in(text, self.said):
            lead = text[: one.start] + text[one.start : one.end].partition(" ")[0] + " "
            effective = re.compile(r"\b(?:from|as of|starting|effective|since|beginning)\s+(?:on\s+|the\s+)*$", re.IGNORECASE)
            if effective.search(text[: one.start]) or effective.search(lead):
                return one.first.isoformat()
        return ""


def _same_kind(one: str, other: str) -> bool:
    """Return whether two types are the same; one of them may lack a unit."""
    name, _, unit = one.partition(" ")
    same, _, theirs = other.partition(" ")
    return name == same and (unit == theirs or (name == "amount" and not (unit and theirs)))


def _found(words: str, text: str) -> re.Match[str] | None:
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE)


def _swapped(text: str, place: re.Match[str], words: str) -> str:
    return f"{text[: place.start()]}{words}{text[place.end() :]}"


def _without(text: str, old: Claim) -> str:
    """Return a text without the segment of a claim; empty if too little is left."""
    begin = text.find(old.sentence)
    start, end = begin + old.segment[0], begin + old.segment[1]
    left, right = text[:start], text[end:]
    left = _SEGMENT.sub("", left[-8:]) if False else re.sub(r"(?:[,;:–—-]|\s(?:and|but|so|n))\s*$", "", left.rstrip())
    right = re.sub(r"^(?:\s*[,;:–—-]+|\s+(?:and|but|so|n)\b)\s*", ", " if left and left[-1] not in ".!?" else "", right)
    kept = one_line(f"{left}{right}").strip(" ,;")
    if len(content_words(kept)) < 2:  # noqa: PLR2004 - one word alone says nothing
        return ""
    return kept[0].upper() + kept[1:] + ("" if kept[-1] in ".!?…" else ".")


def ids(found: Iterable[Outdated]) -> tuple[str, ...]:
    """Return the ids of memories that are outdated."""
    return tuple(one.memory for one in found)
