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
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache

import msgspec

from agentx.storage.events.cognition_events import Extracted, Outdated
from agentx.storage.text import one_line
from agentx.synthesis.cognition.informative_sentences import Rarity, sentences, terms_of
from agentx.synthesis.facts.change_words import (
    BEGUN,
    CHANGES,
    CONTRASTS,
    CORRECTS,
    DID,
    EFFECTIVE,
    ENDED,
    FOLLOWS,
    INSTEAD,
    KEEPS,
    NOW,
    OTHERS,
    PAST,
    PLANS,
    PRONOUN,
    REPORTS,
    SEGMENT,
    VERB,
    no_subject,
)
from agentx.synthesis.language.dates import dates_in
from agentx.synthesis.language.values import RELATIVE, Value, names, values
from agentx.synthesis.language.words import STOP_WORDS, content_words

Likeness = Callable[[str, str], float | None]
"""Returns how similar two sentences are in meaning, from -1 to 1; ``None`` without embeddings."""

LIKE_CHANGED, RESTATED, EQUAL, ALMOST_LIKE = 0.45, 0.6, 0.9, 0.45

MOST_KNOWN = 2_000
"""Number of memories, the latest, that a message is compared with."""

CORRECTED = 3
"""A correction that names nothing is about one of this number of messages before it."""

MOST_CORRECTING = 4
"""A correction of more content words than this says itself what it is about."""


class Known(msgspec.Struct, frozen=True):
    """An earlier memory.

    Attributes:
        said: Seq of its message.
        by: Who said it; empty for the user.
        over: Whether it is outdated; then it only tells what its message was about.
    """

    id: str
    text: str
    said: int
    by: str = ""
    over: bool = False


class Superseding(msgspec.Struct, frozen=True):
    """The memories of a message, with their wording completed, and the earlier ones that they outdate."""

    memories: tuple[Extracted, ...]
    outdated: tuple[Outdated, ...] = ()


_LASTING = ("date", "time", "weekdays", "phone", "amount ")
"""Types of values of which most things have one at a time: when, on which days, the price a month."""
_SELF = re.compile(r"(?:i|we|you)\b", re.IGNORECASE)
_NUMBERED = re.compile(r"\s*(?:(?:the|my|our|in|for)\s)*([^\W\d_]{3,})\s", re.IGNORECASE)
"""What comes before a number that names a thing at the head of a clause: "Flat" of "Flat 3 costs 900"."""
_OWNER = re.compile(r"([^\W\d_]+)(?:['’]s|s['’])\s")
_TITLED = re.compile(r"\b(?:dr|prof|doctor|professor|nurse|sister|mr|mrs|ms|miss)\.? $", re.IGNORECASE)
_DAYS = re.compile(r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
_CLOCK = re.compile(r"[:.]\d\d|[ap]\.?m\b|clock|half|quarter|noon|midnight", re.IGNORECASE)
_BESIDE = re.compile(
    r"(?:^|\b)(?:from|since|in|before|after|during|as of|last|of|starting)\s+(?:the\s+)?(?:$|(?=\w))",
    re.IGNORECASE,
)
_RATE = re.compile(
    r"\s?(?:€|£|\$|\w+)?,?\s?(?:a|an|per|each|/)\s?(month|week|year|day|night|hour|piece|head|person)\b",
    re.IGNORECASE,
)
_UNIT = re.compile(r"\s?(?:more |extra |other )?([^\W\d_]+)")
_NUMBERS = (
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
_NUMBER_WORDS = {word: number for number, word in enumerate(_NUMBERS, 1)}


class FactValue(msgspec.Struct, frozen=True):
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
        return self._masked(0, len(self.sentence))

    @property
    def part(self) -> str:
        """The segment without the value."""
        return self._masked(*self.segment)

    def _masked(self, start: int, end: int) -> str:
        name = self.kind.partition(" ")[0]
        return f"{self.sentence[start : self.value.start]}{name}{self.sentence[self.value.end : end]}"

    @property
    def key(self) -> str:
        """The value itself: equal for "1,450" and "1450", "six" and "6"."""
        text = re.sub(r"^(?:at|after|before|until|till|by|on|the) |[, ]", "", self.value.text.casefold())
        return str(_NUMBER_WORDS.get(text, text))


@lru_cache(maxsize=1 << 14)
def claims(sentence: str) -> tuple[FactValue, ...]:
    """Return the values of a sentence that may be those of a fact; cached, as memories recur.

    >>> [(one.key, one.kind) for one in claims("They pay 8,400 euros a month since May.")]
    [('8400', 'amount month')]
    """
    found = [
        FactValue(sentence, value, kind, _segment(sentence, value))
        for value in values(sentence)
        if (kind := _kind(sentence, value))
    ]
    # A number that names a thing is not the value where there is another: "flat 3 costs 900"
    valued = {one.segment for one in found if not one.kind.startswith("label")}
    return tuple(one for one in found if not one.kind.startswith("label") or one.segment not in valued)


def _kind(sentence: str, value: Value) -> str:
    """Return the type of a value with its unit; empty for a time that only says since when or until when."""
    before, after = sentence[: value.start], sentence[value.end :]
    if value.kind == "date":
        return _kind_of_date(value.text, before)
    if re.search(r"[-:.]$|\bby\s$", before) or re.match(r":\d|\s[A-ZÀ-Þ]\w", after):
        return ""
    if value.kind == "count" and (head := _NUMBERED.fullmatch(before)) and not VERB.match(head[1]):
        return f"label {head[1].casefold()}"
    rate, unit, clock = _RATE.match(after), _UNIT.match(after), _CLOCK.search(value.text)
    if rate and value.kind not in ("duration", "measure") and (not clock or clock[0][0] == "."):
        return f"amount {rate[1].casefold()}"
    if value.kind in ("money", "large"):
        return "amount"
    if unit and (value.kind in ("measure", "duration") or unit[1].casefold() not in STOP_WORDS):
        of = min(content_words(unit[1]), default=unit[1].casefold())
        if value.kind in ("measure", "duration", "count"):
            return f"count {of}" if value.kind == "count" else f"quantity {of}"
    name = re.search(r"([^\W\d_]+)\s$", before) if value.kind == "label" else None
    if name and name[1].casefold() not in STOP_WORDS:
        return f"label {name[1].casefold()}"
    clear = value.kind == "time" and clock and clock[0][0] != "."  # "8.30" may be a price, too
    return "time" if clear else "phone" if value.kind == "phone" else "bare"


def _kind_of_date(text: str, before: str) -> str:
    if re.search(rf"{_BESIDE.pattern}$", before, re.IGNORECASE) or _BESIDE.match(text):
        return ""
    if day := _DAYS.search(text):
        return "weekdays" if day[0].endswith("s") or re.search(r"\bevery\s$", before) else "weekday"
    return "date" if _DIGIT.search(text) else ""


def _segment(sentence: str, value: Value) -> tuple[int, int]:
    ends = [(0, 0), *((one.start(), one.end()) for one in SEGMENT.finditer(sentence)), (len(sentence),) * 2]
    start = max(end for begin, end in ends if end <= value.start)
    return start, min(begin for begin, _ in ends if begin >= value.end)


# --- what a message makes untrue ----------------------------------------------------------------------------


def outdated(
    memories: Sequence[Extracted], message: str, known: Sequence[Known], like: Likeness, said: str = ""
) -> Superseding:
    """Return what a message makes untrue, at its time in ISO 8601.

    Args:
        memories: What was extracted from the message.
        message: The message.
        known: What is true so far, oldest first, at most :data:`MOST_KNOWN`.
        like: Compares meanings.
        said: The time of the message.
    """
    reader = _MessageReader(message, known, like, said)
    completed = reader.corrected(memories)
    if completed is not None:
        return completed
    found: dict[str, Outdated] = {}
    for number, one in enumerate(memories):
        for each in reader.of(number, one):
            found.setdefault(each.memory, each)
    return Superseding(tuple(memories), tuple(found.values()))


@lru_cache(maxsize=1 << 14)
def _lower_words(text: str) -> frozenset[str]:
    return frozenset(word for word in text.split() if word.islower())


class _MessageReader:
    """Compares one message with what is known."""

    def __init__(self, message: str, known: Sequence[Known], like: Likeness, said: str) -> None:
        self.message, self.like, self.said = one_line(message), like, said
        self.all = known
        self.known = [one for one in known if not one.over]
        self.settled = set[str]()

    # Only a message that changes something needs these, and they cost more than all the rest

    @cached_property
    def texts(self) -> list[str]:
        """The texts of all memories."""
        return [one.text for one in self.all]

    @cached_property
    def around(self) -> dict[int, list[str]]:
        """The texts of the memories of each message."""
        found: dict[int, list[str]] = {}
        for one in self.all:
            found.setdefault(one.said, []).append(one.text)
        return found

    @cached_property
    def before(self) -> str:
        """What the message before this one told."""
        return " ".join(self.around[max(self.around)]) if self.around else ""

    @cached_property
    def rarity(self) -> Rarity:
        """How rare words are in what is known."""
        return Rarity(self.texts)

    @cached_property
    def common(self) -> frozenset[str]:
        """The words that many memories have."""
        often = Counter(term for text in self.texts for term in terms_of(text))
        return frozenset(term for term, count in often.items() if count > max(6, len(self.texts) // 12))

    @cached_property
    def lower(self) -> frozenset[str]:
        """The words that are known in lower case, which are no names."""
        return frozenset[str]().union(*map(_lower_words, self.texts))

    def of(self, number: int, memory: Extracted) -> Iterator[Outdated]:
        """Yield what one memory of the message outdates."""
        if PAST.search(memory.text):
            return
        contrasted = list(self._contrasted(number, memory.text))
        yield from contrasted
        yield from self._ended(number, memory.text)
        for sentence in sentences(memory.text):
            if not contrasted and not sentence.endswith("?"):
                yield from self._changed(number, sentence)

    def corrected(self, memories: Sequence[Extracted]) -> Superseding | None:
        """Return the former statement with the value of a message that only corrects it, if it does."""
        lead = CORRECTS.match(self.message.strip())
        rest = self.message.strip()[lead.end() :] if lead else ""
        if lead is None or len(content_words(rest)) > MOST_CORRECTING or not rest:
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
                        return Superseding((made,), (Outdated(one.id, 0),))
        return None

    def _contrasted(self, number: int, text: str) -> Iterator[Outdated]:
        """Yield what a message names as former beside what takes its place: "B instead of A"."""
        for form in CONTRASTS:
            for match in form.finditer(text):
                former, later = match["former"].strip(), match["later"].strip()
                if form is INSTEAD:  # as many of the words before it
                    later = " ".join(later.split()[-len(former.split()) :])
                old = self._named(former, text) if former.casefold() != later.casefold() else None
                if old is not None:
                    yield Outdated(old.id, number, self._since(text), _swapped(old.text, former, later))

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
        if PLANS.search(text) or not BEGUN.search(self.message):
            return
        for match in ENDED.finditer(text):
            gone = self._gone(text, match)
            fresh = [one.text for one in names(self.message, self.lower) if one.text.casefold() not in gone]
            if not gone or not fresh:
                continue
            for one in self.known:
                place = next(filter(None, (_found(word, one.text) for word in gone)), None)
                if place and self._role(one, gone):
                    yield Outdated(one.id, number, self._since(text), _cut(one.text, [place.span()]))
            return

    def _gone(self, text: str, match: re.Match[str]) -> set[str]:
        """Return the name that a verb of ending is about: that before it, or the words after it."""
        before = text[: match.start()]
        begin = max(before.rfind(mark) for mark in ".!?;\n") + 1
        words_before = " ".join(before[begin:].split()[-4:])
        after = re.split(r"[,.;:!?\n]| and | so ", text[match.end() :])[0]
        known = {one.text.casefold() for old in self.known for one in names(old.text, self.lower)}
        for part in (after, words_before):
            words = [one.text.casefold() for one in names(part, self.lower)] or re.findall(
                r"\w+", part.casefold()
            )
            if hit := [word for word in words if word in known and len(word) > 2]:  # noqa: PLR2004
                return set(hit[:1])
        return set()

    def _role(self, one: Known, gone: set[str]) -> bool:
        """Return whether a memory says what somebody or something that ended was or did."""
        own = terms_of(one.text) - {term for word in gone for term in terms_of(word)}
        shared = own & terms_of(self.message) - self.common - no_subject()
        if shared:
            return True
        like = self.like(self.message, one.text)
        return like is not None and like >= ALMOST_LIKE

    def _changed(self, number: int, sentence: str) -> Iterator[Outdated]:
        """Yield the facts whose values a sentence changes."""
        if not claims(sentence):
            return
        subject = self._subject(sentence)
        gone: dict[str, list[FactValue]] = {}
        for new in claims(sentence):
            part = sentence[slice(*new.segment)]
            if (PLANS.search(part) and not NOW.search(part)) or PAST.search(part) or KEEPS.search(part):
                continue
            says = any(form.search(self._cue(new)) for form in (CHANGES, NOW))
            ranked = [
                (score, place, old)
                for place, one in enumerate(self.known)
                for text in sentences(one.text)
                for old in claims(text)
                if _same_kind(old.kind, new.kind) and old.key != new.key
                for score in [self._fit(new, old, one, subject, says=says)]
                if score
            ]
            if ranked and not (FOLLOWS.match(sentence) and new.kind.split()[0] in self.settled):
                self.settled.add(new.kind.split()[0])
                _, place, old = max(ranked, key=lambda row: (round(row[0], 1), row[1]))
                gone.setdefault(self.known[place].id, []).append(old)
        for one in self.known:
            if one.id in gone:
                yield Outdated(one.id, number, self._since(sentence), _without(one.text, gone[one.id]))

    def _cue(self, new: FactValue) -> str:
        """Return the words that may say that a value is new: its segment, or what a fragment continues."""
        start, end = new.segment
        part = new.sentence[start:end]
        if FOLLOWS.match(part.lstrip()) or FOLLOWS.search(new.sentence[max(0, start - 4) : start]):
            return self.message
        return part if terms_of(part) - terms_of(new.value.text) - no_subject() else new.sentence

    def _fit(
        self, new: FactValue, old: FactValue, one: Known, subject: frozenset[str], *, says: bool
    ) -> float:
        """Return how well an old claim is about the subject and attribute of a new one; 0 if it is not."""
        shared = self._shared(subject, one, terms_of(old.value.text) | terms_of(new.value.text))
        if (
            not shared
            or self._differ(new, old, one)
            or PAST.search(old.sentence)
            or (not says and PLANS.search(old.sentence[slice(*old.segment)]))
        ):
            return 0.0
        like = self._alike(new, old)
        named = {
            term
            for one in (new.sentence, old.sentence)
            for name in names(one, self.lower)
            for term in terms_of(name.text)
        }
        about = terms_of(new.sentence) & terms_of(old.sentence) & shared - named
        unit = " " in new.kind and new.kind == old.kind and not new.kind.startswith("label")
        evidence = like + 0.15 * min(len(about), 2) + 0.15 * unit
        if evidence < LIKE_CHANGED or not (says or (about and self._restated(new, old, like))):
            return 0.0
        part = terms_of(old.sentence[slice(*old.segment)]) & subject - no_subject()
        return 6 * evidence + self.rarity.of(shared) + 2 * bool(part)

    def _restated(self, new: FactValue, old: FactValue, like: float) -> bool:
        """Return whether a sentence without words of change still gives another value."""
        lasting = new.kind.startswith(_LASTING) and not DID.search(new.sentence[slice(*new.segment)])
        return new.kind == old.kind and (like >= EQUAL or (lasting and like >= RESTATED))

    def _alike(self, new: FactValue, old: FactValue) -> float:
        """Return how similar two claims are without their values, as sentences or in part."""
        found = [
            like
            for one in _worded(new.masked, new.part)
            for other in _worded(old.masked, old.part)
            if (like := self.like(one, other)) is not None
        ]
        if found:
            return max(found)
        own, other = terms_of(new.masked), terms_of(old.masked)
        return len(own & other) / max(1, min(len(own), len(other)))

    def _subject(self, sentence: str) -> frozenset[str]:
        """Return the terms of a sentence and its message, and of the one before if a pronoun refers to it."""
        own = terms_of(self.message)
        return frozenset(own | terms_of(self.before) if self._refers(sentence) else own)

    def _refers(self, sentence: str) -> bool:
        """Return whether a sentence is about what the message before it told."""
        first = sentences(self.message)[:1]
        return not any(True for _ in names(sentence, self.lower)) and bool(first) and _leans(first[0])

    def _shared(self, subject: frozenset[str], one: Known, values_: frozenset[str]) -> frozenset[str]:
        """Return the terms of a memory, and of its message, that a subject has and that few memories have."""
        own = terms_of(one.text)
        if _leans(one.text):
            own |= terms_of(" ".join(self.around[one.said]))
        shared = (own & subject) - values_ - no_subject() - self.common
        return frozenset(term for term in shared if not term.isdigit())

    def _differ(self, new: FactValue, old: FactValue, one: Known) -> bool:
        """Return whether two claims are about different persons or things of a kind."""
        around = f"{self.before} {self.message}" if self._refers(new.sentence) else self.message
        mine = self._entities(around, new)
        theirs = self._entities(" ".join(self.around[one.said]), old)
        parts = (one.sentence[one.segment[0] : one.value.start] for one in (new, old))
        if len({bool(OTHERS.search(part)) for part in parts}) > 1:
            return True
        subject, owners = self._head(new)
        subject -= no_subject()
        told = terms_of(" ".join(self.around[one.said]))
        if (subject and not subject & told) or owners - told:
            return True
        both = (mine.keys() & theirs.keys()) - {new.kind, old.kind}
        apart = {kind for kind in both if not mine[kind] & theirs[kind]}
        return bool(apart) and (apart == both or any(kind.startswith("label") for kind in apart))

    def _head(self, claim: FactValue) -> tuple[frozenset[str], frozenset[str]]:
        """Return the terms of the subject of the clause with a value, and those of the persons in it.

        Both are empty if it is a pronoun or unclear.
        """
        start, end = claim.segment
        for whole in (claim.sentence[start:end], claim.sentence):
            text = whole[said.end() :] if (said := REPORTS.search(whole)) else whole
            text = _undated(text).strip()
            if PRONOUN.match(text) or _SELF.match(text):
                break
            verb = VERB.search(text)
            if verb and verb.start():
                head = text[: verb.start()]
                owners = [match[1] for match in _OWNER.finditer(head)]
                owners += [match[0] for match in RELATIVE.finditer(head)]
                return terms_of(head), terms_of(" ".join(owners))
        return frozenset(), frozenset()

    def _entities(self, message: str, claim: FactValue) -> dict[str, set[str]]:
        """Return whom and what a claim is about, by kind: in its segment, before it, or in the message."""
        start, end = claim.segment
        texts = [claim.sentence[start:end], claim.sentence[:start]]
        for text in [*texts, *([message] if _leans(claim.sentence) else [])]:
            found: dict[str, set[str]] = {}
            for name in names(text, self.lower):
                if not _TITLED.search(text[: name.start]) and not _TITLED.match(f"{name.text} "):
                    found.setdefault("who", set()).update(terms_of(name.text))
            for relative in RELATIVE.finditer(text):
                found.setdefault("who", set()).update(terms_of(relative[0]))
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
            if EFFECTIVE.search(text[: one.start]) or EFFECTIVE.search(lead):
                return one.first.isoformat()
        return ""


def _undated(text: str) -> str:
    """Return a text without its dates."""
    for one in reversed(values(text)):
        text = f"{text[: one.start]}{text[one.end :]}" if one.kind == "date" else text
    return text


def _worded(*texts: str) -> Sequence[str]:
    """Return the distinct texts that say something beside a value, or the first."""
    return [one for one in dict.fromkeys(texts) if len(terms_of(one)) > 1] or texts[:1]


def _leans(sentence: str) -> bool:
    """Return whether a sentence is about what was told before: by a pronoun, or as a fragment."""
    return bool(PRONOUN.search(sentence[:40])) or len(terms_of(sentence)) < 4  # noqa: PLR2004


def _same_kind(one: str, other: str) -> bool:
    """Return whether two types are the same; one of them may lack a unit, or say nothing but a number."""
    name, _, unit = one.partition(" ")
    same, _, theirs = other.partition(" ")
    if "bare" in (name, same):
        return name != same and {name, same} <= {"bare", "count", "time", "amount"}
    return name == same and (unit == theirs or (name == "amount" and not (unit and theirs)))


def _found(words: str, text: str) -> re.Match[str] | None:
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE)


def _swapped(text: str, former: str, later: str) -> str:
    """Return a text with other words in place of the former ones, of which the last may be left unsaid.

    >>> _swapped("A cataract in the right eye.", "right eye", "left")
    'A cataract in the left eye.'
    """
    place = _found(former, text)
    kinds = [{one.kind for one in values(words)} for words in (former, later)]
    if place is None or bool(kinds[0]) != bool(kinds[1]):
        return ""
    words = " ".join([later, *former.split()[len(later.split()) :]])
    return f"{text[: place.start()]}{words}{text[place.end() :]}"


def _without(text: str, old: Sequence[FactValue]) -> str:
    """Return a text without the segments of claims; empty if too little is left."""
    return _cut(text, [(text.find(one.sentence) + one.value.start,) * 2 for one in old])


def _cut(text: str, places: Sequence[tuple[int, int]]) -> str:
    """Return a text without the segments at some places; empty if too little is left."""
    marks = [(one.start(), one.end()) for one in SEGMENT.finditer(text)]
    spans = {
        (max([0, *(e for b, e in marks if e <= start)]), min([len(text), *(b for b, _ in marks if b >= end)]))
        for start, end in places
    }
    for start, end in sorted(spans, reverse=True):
        left = re.sub(r"(?:[,;:–—-]|\s(?:and|but|so|n))\s*$", "", text[:start].rstrip())
        joint = ", " if left and left[-1] not in ".!?" else " "
        text = left + re.sub(r"^(?:\s*[,;:–—-]+|\s+(?:and|but|so|n)\b)\s*|^\s+", joint, text[end:])
    kept = one_line(text).strip(" ,;")
    if len(content_words(kept)) < 2:  # noqa: PLR2004 - one word alone says nothing
        return ""
    kept = re.sub(r"^(?:and|but|so|then)\s+", "", kept, flags=re.IGNORECASE)
    return kept[0].upper() + kept[1:] + ("" if kept[-1] in ".!?…" else ".")


def remaining(old: str, new: str) -> str:
    """Return what stays true of a memory that another one replaces; empty if that cannot be told.

    It is what stands beside the values that have another value of their type in the new memory.

    >>> remaining("They have two sons and pay 950 a month.", "They pay 980 a month.")
    'They have two sons.'
    """
    now = [claim for sentence in sentences(new) for claim in claims(sentence)]
    gone = [
        claim
        for sentence in sentences(old)
        for claim in claims(sentence)
        if any(_same_kind(claim.kind, one.kind) and claim.key != one.key for one in now)
    ]
    return _without(old, gone) if gone else ""
