"""The Recognizer without a model: the type of a message, and what to remember from it.

It reads English and guesses little. A message asks, judges the previous answer, or states. A statement about
something that happened is an episode; other statements are knowledge. A sentence that is only polite is
neither.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from agentx.storage.events.cognition_events import Extracted, InputType, Outdated, TopicAction
from agentx.storage.text import folded, one_line
from agentx.synthesis.attribution.material import REPORTED, material, own_words
from agentx.synthesis.cognition.speakers import heading_length
from agentx.synthesis.language.requests import PREPOSITIONS
from agentx.synthesis.language.sentences import Span, sentences
from agentx.synthesis.language.values import FITS, Wanted, names, types, values, wanted
from agentx.synthesis.language.words import STOP_WORDS, content_words, words_of

MOST_MEMORIES = 8
"""Maximum number of semantic memories per message."""

MOST_TEXT = 400
"""Maximum characters of a memory."""

MEMORY_BYTES, UTILITY_BYTES = 8_500, 3_500
"""Maximum JSON bytes of memories, and of utilities, in an event."""

MOST_SUMMARY = 300
"""Maximum characters of a topic's summary."""

_FEWEST_WORDS = 2
"""Minimum number of content words of a sentence that is worth keeping."""

_AUXILIARY = (
    r"(?:do|does|did|is|are|am|was|were|can|could|will|would|should|shall|has|have|had|may|might)(?:n['’]?t)?"
)
_QUESTION = re.compile(
    r"^(?:(?:so|and|but|well|ok(?:ay)?|hey|hi|please)[,\s]+)*(?:who|whom|whose|who['’]?s"
    r"|what['’]?s|what(?! (?:an?|i|we|you|he|she|it|they)\b)|which(?! (?:is|was|means|reminds)\b)"
    r"|(?:when|where|why|how)(?:['’]?s| (?:come"
    rf"|(?:(?:much|many|old|long|far|often|big|\w+ly)\b[\w ]{{0,30}}?)?{_AUXILIARY}))"
    rf"|(?!ha[ds]|have){_AUXILIARY}\s+"
    r"(?:i|you|we|he|she|it|they|this|that|there|the|my|your|our|anyone|anybody|(?-i:[A-Z])\w+)"
    r"|(?:have|has|had)(?:n['’]t)?\s+(?:i|you|we|he|she|it|they)"  # "Had the boiler mended" tells
    r"|(?:tell|remind) me(?! to\b)|do you (?:know|remember)|list|show me|any idea"
    r"|summari[sz]e|explain|describe|recap|give me|write|draft|find|look up|compare|help me"
    r"|suggest|recommend)\b",
    re.IGNORECASE,
)
_OVER = r"(?=\s*(?:[,.;:!–—-]|$))"
"""Must follow a word that is a verdict by itself: "Great." is one, "Great news" is not."""

_PRAISE = re.compile(
    r"^(?:thanks(?! to\b)|thank you(?! to\b)"
    rf"|(?:great|perfect|excellent|exactly|correct|right|good|nice|awesome|wonderful|yes|yep){_OVER}"
    rf"|that(?:'s| is| was) (?:right|correct|it|great|helpful|perfect){_OVER}"
    r"|well done|(?:great|excellent|good|nice) (?:job|answer|work))\b",
    re.IGNORECASE,
)
_BLAME = re.compile(
    rf"^(?:(?:no|nope|wrong|incorrect){_OVER}|no,? (?:that|it|this|you)|not (?:quite|right|true|what)"
    r"|that(?:'s| is) (?:not|wrong|incorrect|false)"
    r"|that isn't|that (?:does not|doesn't|did not|didn't) (?:help|answer)"
    r"|you(?:'re| are) (?:wrong|mistaken)|you (?:forgot|missed|misunderstood)|bad answer|actually,? no)\b",
    re.IGNORECASE,
)
_OF_THE_ANSWER = re.compile(r"(?:that|this|it|you|for|so much|a lot|very much|again)\b", re.IGNORECASE)
"""What follows a verdict that only goes on about the answer."""

_TOLD_TO_KEEP = re.compile(
    r"(?:please\s+)?(?:(?:remember|note|keep in mind|bear in mind|do(?:n['’]t| not) forget|for the record"
    r"|fyi)(?: (?:for|to) (?:my)?self)?(?:\s+that\b|\s*[:,–—-])\s*|remember\s+(?=[A-Z]|the|my|our)"
    r"|remind me to\s+)"
    r"|(?:yes|yep|no|nope|right|exactly|correct|great|perfect|good|wrong|incorrect|actually|not quite)\b"
    r"\s*[,;:–—-]\s*",
    re.IGNORECASE,
)
"""What introduces a fact without being part of it."""

_PRONOUN = re.compile(r"(?:its?|it['’]s|he|she|they|his|hers?|their|that|this|those|these)\b", re.IGNORECASE)
_POLITE = re.compile(
    r"^(?:hi|hello|hey|bye|thanks?|thank you|ok(?:ay)?|sure|great|nice|cool|wow|please|welcome"
    r"|good (?:morning|evening|night)|see you|talk (?:to you )?soon|take care|no problem|yes|no|haha+|lol)"
    r"\b[\s\w,'’]{0,25}[.!]*$",
    re.IGNORECASE,
)
_HAPPENED = re.compile(
    r"\b(?:yesterday|today|tonight|ago|last (?:night|week|weekend|month|year|summer|winter|spring|autumn"
    r"|fall|monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
    r"|this (?:morning|week|weekend)|earlier|recently|just now|(?:19|20)\d\d|the other day"
    r"|on (?:mon|tues|wednes|thurs|fri|satur|sun)day)\b"
    r"|\b(?:i|we|he|she|they|it|you|[A-Z][a-z]+)(?:'d| had)? "
    r"(?:\w+ed|went|got|took|made|saw|met|had|was|were|did|came|said|told|found|left"
    r"|bought|gave|ran|won|lost|felt|began|started|spent|built|broke|wrote|read|ate|drove|flew|sent|taught"
    r"|thought|became)\b"
)


_OWNED = re.compile(r"\b[A-ZÀ-Þ]\w+(?:['’]s|s['’]) [a-zà-ÿ][\w-]+")
_NAMED = re.compile(r"\bthe (?:[a-zà-ÿ]\w+ )?[A-ZÀ-Þ][\w-]+(?: [A-ZÀ-Þ][\w-]+)*")
_NUMBERED = re.compile(
    r"(?:^|(?i:the|my|our|your|his|her|their|an?|in|on|at|to|from|of|for|by|with) )"
    r"([A-Za-zÀ-ÿ]{3,} \d{1,4})(?=\s|['’.,]|$)"
)
_SMALL = STOP_WORDS | PREPOSITIONS
_NOUN = re.compile(r"\b(?:my|our|the|his|her|their|a|an) [a-zà-ÿ][\w-]+", re.IGNORECASE)


_LESSON = re.compile(r"Asked “(.*?)”, do not answer “(.*?)”: the user said “(.*)”$")


class Recognition(msgspec.Struct, frozen=True, kw_only=True):
    """What was recognised in a message; see :class:`agentx.storage.events.cognition_events.Recognized`."""

    input_type: InputType
    rule: bool = False
    memories: tuple[Extracted, ...] = ()
    outdated: tuple[Outdated, ...] = ()
    utilities: dict[str, float] = {}
    reward: float = 0.0
    topic_action: TopicAction = "none"
    topic: str = ""
    topic_summary: str = ""


def input_type(text: str, *, answered: bool) -> InputType:
    """Return the type of a message.

    ``answered`` says whether there is a previous answer that it may judge.

    >>> input_type("Where did Anna move to?", answered=True), input_type("No, that's wrong.", answered=True)
    ('question', 'feedback')
    """
    plain = text.strip()
    if answered and (_BLAME.match(plain) or (_praises(plain) and "?" not in plain)):
        return "feedback"
    return "question" if asks(plain) else "statement"


def asks(text: str) -> bool:
    """Return whether a text asks for something, by its form."""
    return text.endswith("?") or bool(_QUESTION.match(text))


def reward(text: str) -> float:
    """Return how feedback rates the previous answer, from -1 to 1."""
    if _BLAME.match(text.strip()):
        return -1.0
    return 1.0 if _praises(text.strip()) else 0.0


def _praises(text: str) -> bool:
    """Return whether a text is praise, not a fact after a confirmation: "Yes, I live in Rome."."""
    praise = _PRAISE.match(text)
    if praise is None:
        return False
    first = next(sentences(text[praise.end() :]), None)
    rest = text[praise.end() :][first.start : first.end].lstrip(" ,;:.!–—-") if first else ""
    beginning = text[praise.end() :].lstrip()[:1]
    return (
        beginning in ("", ".", "!")
        or bool(_OF_THE_ANSWER.match(rest))
        or len(content_words(rest)) < _FEWEST_WORDS
    )


def extract(text: str) -> tuple[Extracted, ...]:
    """Extract the memories of a message.

    Each stated sentence is one memory of knowledge; all sentences about what happened form one episode.

    >>> [(one.level, one.text) for one in extract("I went to Rome last week. My sister is a nurse. Thanks!")]
    [('L2', 'My sister is a nurse.'), ('L3', 'I went to Rome last week.')]
    """
    # The name at the head of a turn is the speaker's; the turn is still the sender's own words.
    head = heading_length(text)
    plain = " " * head + own_words(text[head:])
    reported = [(head + one.start, head + one.end) for one in material(text[head:]) if one.sort == REPORTED]
    for start, end in reported:  # not an order to follow, but told by the user all the same
        plain = plain[:start] + text[start:end] + plain[end:]
    stated: list[Span] = []
    before: Span | None = None
    for one in sentences(plain):
        words = plain[one.start : one.end]
        if _states(words):
            fact = _fact(plain, one)
            # "Egret is off. Its jobs run on bittern.": a pronoun needs what was said just before it
            leans = before is not None and _PRONOUN.match(plain, fact.start)
            stated.append(Span(before.start, fact.end) if leans and before is not None else fact)
            before = None
        elif stated and _adds(words):  # "So £1,600." belongs to what was told just before it
            stated[-1] = Span(stated[-1].start, one.end)
        elif content_words(words) and not (words.endswith("?") or _POLITE.match(words) or _judges(words)):
            before = before or one
    happened = [one for one in stated if _HAPPENED.search(plain, one.start, one.end)]
    known = [one for one in stated if one not in happened][:MOST_MEMORIES]
    memories = []
    for one in known:
        end = min(one.end, one.start + MOST_TEXT)
        memories.append(Extracted("L2", one_line(text[one.start : end]), one.start, end))
    if happened:
        start = happened[0].start
        episode = one_line(" ".join(text[one.start : one.end] for one in happened))[:MOST_TEXT]
        memories.append(Extracted("L3", episode, start, min(happened[-1].end, start + MOST_TEXT)))
    return tuple(memories)


def _states(sentence: str) -> bool:
    fact = sentence[_introduction(sentence) :]
    if asks(fact) or _judges(sentence):
        return False
    return not _POLITE.match(fact) and len(content_words(fact)) >= _FEWEST_WORDS


def _judges(sentence: str) -> bool:
    """Return whether a sentence says nothing but what an answer is worth."""
    rest = sentence[_introduction(sentence) :]
    return (
        bool(reward(sentence))
        and (rest == sentence or not _adds(rest))
        and bool(reward(rest) or rest == sentence)
    )


def _adds(sentence: str) -> bool:
    """Return whether a short sentence has a value: a number, a date, a name."""
    if sentence.endswith("?") or _POLITE.match(sentence):
        return False
    return any(values(sentence)) or any(one.start for one in names(sentence))


def _introduction(sentence: str) -> int:
    """Return the length of what introduces a fact: "Remember that", "Yes,"."""
    length = 0
    while found := _TOLD_TO_KEEP.match(sentence, length):
        length = found.end()
    return length


def _fact(plain: str, one: Span) -> Span:
    """Return a sentence without its introduction, where a fact remains."""
    start = one.start + _introduction(plain[one.start : one.end])
    return Span(start, one.end) if content_words(plain[start : one.end]) else one


def utilities(text: str, buffer: Mapping[str, tuple[str, float]]) -> dict[str, float]:
    """Update the utilities of the buffer after a message: raise those it concerns, lower the others slightly.

    The buffer has the text and utility of each memory by id. Changes below a hundredth are left out.
    """
    asked = content_words(text)
    if not asked:
        return {}
    often = Counter(word for said, _ in buffer.values() for word in content_words(said))
    told: dict[str, float] = {}
    for name, (said, utility) in buffer.items():
        shared = content_words(said) & asked
        weight = sum(1 / often[word] for word in shared)
        whole = sum(1 / max(often[word], 1) for word in asked)
        share = min(1.0, weight / whole) if whole else 0.0
        new = utility + 0.5 * (1 - utility) * share if share else utility * 0.97
        if round(abs(new - utility), 2) >= 0.01:  # noqa: PLR2004 - what nobody would see is not recorded
            told[name] = round(new, 3)
    return told


def topic_of(text: str, topics: Mapping[str, str]) -> tuple[TopicAction, str, str]:
    """Return the topic of a message: its subject, which keeps its name.

    Given the summary of each topic by id, return the action, the topic's id if it is known, and its summary.

    >>> topic_of("Marta's flat is on the third floor.", {})
    ('create', '', "Marta's flat")
    >>> topic_of("The Skoda needs new tyres.", {"e-1": "Marta's flat", "e-2": "the Skoda"})
    ('none', 'e-2', 'the Skoda')
    """
    stems = content_words(text)
    if len(stems) < _FEWEST_WORDS:
        return "none", "", ""
    best, size = "", 0
    for name, about in topics.items():
        own = content_words(about)
        if own and own <= stems and len(own) >= size:
            best, size = name, len(own)
    if best:
        return "none", best, topics[best]
    return "create", "", subject_of(text)[:MOST_SUMMARY]


def subject_of(text: str) -> str:
    """Return what a text is about: what somebody owns, a thing with a name, a name, or the first noun.

    Dates, amounts and prepositions are not a subject; of the rest, the first content word is one.

    >>> subject_of("I sold the Skoda to Ben."), subject_of("My landlord wants three months' notice.")
    ('the Skoda', 'my landlord')
    """
    first = next((text[one.start : one.end] for one in sentences(text)), text)
    for one in values(first):
        if one.kind not in ("label", "large"):
            first = first[: one.start] + " " * (one.end - one.start) + first[one.end :]
    for form in (_OWNED, _NAMED):
        if found := form.search(first):
            return one_line(found[0])
    for found in _NUMBERED.finditer(first):
        if found[1].split()[0].casefold() not in _SMALL:
            return found[1]
    if found_names := _spans("person", first, ""):
        return one_line(first[found_names[0].start : found_names[0].end])
    for found in _NOUN.finditer(first):
        words = found[0].split()
        if content_words(words[-1]) and not (types("date", words[-1]) or types("time", words[-1])):
            return f"{words[0].casefold()} {words[-1]}"
    left = [word for word in words_of(first) if len(word) > 1 and not word.isdigit()]
    told = left or words_of(text) or [text]
    return next((word for word in told if word.casefold() not in _SMALL), told[0]).casefold()


def recognize(
    text: str,
    *,
    answered: bool,
    rule: bool,
    buffer: Mapping[str, tuple[str, float]],
    topics: Mapping[str, str],
    known: Iterable[str] = (),
) -> Recognition:
    """Read a message without a model.

    The buffer has the text and utility of each memory, and ``topics`` the summary of each topic, by id. Texts
    in ``known`` are not added again.
    """
    sort = input_type(text, answered=answered)
    said = {_plain(one) for one in known}
    memories = tuple(one for one in extract(text) if _plain(one.text) not in said)
    action, topic, summary = topic_of(" ".join(one.text for one in memories), topics)
    return Recognition(
        input_type=sort,
        rule=rule,
        memories=memories,
        utilities=utilities(text, buffer),
        reward=reward(text) if sort == "feedback" else 0.0,
        topic_action=action,
        topic=topic,
        topic_summary=summary,
    )


def corrected(question: str, told: Mapping[str, str], said: str) -> tuple[Extracted, str] | None:
    """Return the memory that follows from a short correction, and the id of the one that it replaces.

    ``told`` has the memories that the answer rested on, by id. ``None`` where the correction and the memories
    do not have one value each of the type asked for.

    >>> corrected("Where does Anna live?", {"k-1": "Anna lives in Oslo."}, "No, in Rome.")[0].text
    'Anna lives in Rome.'
    """
    start = _introduction(said)
    if not start or reward(said) >= 0:
        return None
    end = next((start + one.end for one in sentences(said[start:])), start)
    kind = wanted(question)
    new = _spans(kind, said[start:end], "")
    old = {name: _spans(kind, text, question) for name, text in told.items()}
    valued = [(name, spans) for name, spans in old.items() if spans]
    if len(new) != 1 or len(valued) != 1 or len(valued[0][1]) != 1:
        return None  # of several, nobody says which one is corrected
    [(name, [span])] = valued
    value = said[start + new[0].start : start + new[0].end]
    text = f"{told[name][: span.start]}{value}{told[name][span.end :]}"
    return Extracted("L2", one_line(text)[:MOST_TEXT], start, end), name


def _spans(kind: Wanted, text: str, known: str) -> list[Span]:
    """Return where a text has values of a type, without those in ``known``."""
    low = known.casefold()
    if kind in FITS:
        fitting = [one for one in values(text) if one.kind in FITS[kind]]
        return [Span(one.start, one.end) for one in fitting if one.text.casefold() not in low]
    found: list[Span] = []
    alone = text.strip(" .!")
    for one in names(text) if " " in alone else names(f"{alone} is"):
        if one.text.casefold() in low:
            continue
        if found and one.start - found[-1].end == 1:  # "Doctor Kaya" is one name
            found[-1] = Span(found[-1].start, one.end)
        else:
            found.append(Span(one.start, one.end))
    return found


def lesson(question: str, answer: str, said: str) -> Extracted | None:
    """Return what negative feedback teaches about answering, as a procedure; ``None`` for other feedback.

    >>> lesson("Where is Anna?", "In Oslo.", "No, in Rome.").text
    'Asked “Where is Anna?”, do not answer “In Oslo.”: the user said “No, in Rome.”'
    """
    if reward(said) >= 0:
        return None
    shown = [" ".join(words.split())[: MOST_TEXT // 4] for words in (question, answer, said)]
    return Extracted("L1", "Asked “{}”, do not answer “{}”: the user said “{}”".format(*shown))


class FeedbackLesson(msgspec.Struct, frozen=True):
    """What negative feedback taught.

    Attributes:
        question: The question.
        answer: The answer that was found wrong; long ones are cut.
        said: What the user said of it.
    """

    question: str
    answer: str
    said: str

    @property
    def instead(self) -> str:
        """What the user said, if it tells more than that the answer is wrong."""
        rest = self.said
        while blame := _BLAME.match(rest):
            rest = rest[blame.end() :].lstrip(" ,;:.!–—-")
        return self.said if content_words(rest) and not reward(rest) else ""


def lesson_of(text: str) -> FeedbackLesson | None:
    """Return the lesson that a procedure holds; ``None`` for another procedure.

    >>> lesson_of(lesson("Where is Anna?", "In Oslo.", "No, in Rome.").text).instead
    'No, in Rome.'
    >>> lesson_of(lesson("Where is Anna?", "In Oslo.", "No, that's wrong.").text).instead
    ''
    """
    found = _LESSON.match(text)
    return FeedbackLesson(found[1], found[2], found[3]) if found else None


def bounded(read: Recognition, before: Mapping[str, float]) -> tuple[Recognition, tuple[str, ...]]:
    """Cut a recognition to the size of one event, and report omitted memories in a sentence.

    Utilities with the largest changes from ``before`` are kept first.
    """
    room, memories = MEMORY_BYTES, list[Extracted]()
    for one in read.memories:
        if (size := len(msgspec.json.encode(one))) <= room:
            room -= size
            memories.append(one)
    room, utilities = UTILITY_BYTES, dict[str, float]()
    changes = {name: abs(new - before.get(name, 0.0)) for name, new in read.utilities.items()}
    for name in sorted(changes, key=lambda name: -changes[name]):
        room -= len(msgspec.json.encode({name: read.utilities[name]}))
        if room < 0:
            break
        utilities[name] = read.utilities[name]
    out = len(read.memories) - len(memories)
    told = (f"The message holds more than one event does: {out:,} memories were left out.",) if out else ()
    return msgspec.structs.replace(read, memories=tuple(memories), utilities=utilities), told


def _plain(text: str) -> str:
    return folded(text).rstrip(".!")
