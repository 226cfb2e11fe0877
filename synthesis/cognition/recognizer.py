"""The Recognizer: what kind of message came in, and what is to be remembered of it. This is the form that needs no model.

It reads English and guesses little: a message asks, judges the answer before it, or states; what a sentence tells as
having happened is an episode, what else it states is known. A sentence that is only politeness is neither.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from agentx.storage.events.cognition_events import Extracted, InputType, Level, TopicAction
from agentx.storage.text import one_line
from agentx.synthesis.cognition.speakers import heading_length
from agentx.synthesis.demands.reading.material import own_words
from agentx.synthesis.language.sentences import Span, sentences
from agentx.synthesis.language.words import content_words, words_of

MOST_MEMORIES = 8
"""So many semantic memories are taken of one message."""

MOST_TEXT = 400
"""Characters of a memory."""

MEMORY_BYTES, UTILITY_BYTES = 8_500, 3_500
"""What memories and utilities may take of an event, as JSON."""

MOST_SUMMARY = 300
"""Characters of what a topic is about."""

_FEWEST_WORDS = 2
"""A sentence about less says nothing that is worth keeping."""

SAME_TOPIC = 0.25
"""Of the words of a message that are about something, so many stand in the topic that it belongs to."""

NAME_WEIGHT = 3
"""A name says as much of what a message is about as so many other words."""

TOPIC_WORDS = 6
"""So many words name a topic."""

_CAPITALISED = re.compile(r"\b[^\W\d_a-z][\w-]+")
_QUESTION = re.compile(
    r"^(?:(?:so|and|but|well|ok(?:ay)?|hey|hi|please)[,\s]+)*(?:who|whom|whose|what|when|where|why|how|which"
    r"|(?:do|does|did|is|are|was|were|can|could|will|would|should|shall|has|have|had|may|might)(?:n't)?\s+(?:i|you|we|he|she|it|they|this"
    r"|that|there|the|my|your|our|anyone|anybody|[A-Z]\w+)|tell me|remind me|do you (?:know|remember)|list|show me|any idea"
    r"|summari[sz]e|explain|describe|recap|give me|write|draft|find|look up|compare|help me|suggest|recommend)\b",
    re.IGNORECASE,
)
_OVER = r"(?=\s*(?:[,.;:!–—-]|$))"
"""What a word is followed by that stands for a whole verdict: "Great." is one, "Great news" is not."""

_PRAISE = re.compile(
    rf"^(?:thanks|thank you|(?:great|perfect|excellent|exactly|correct|right|good|nice|awesome|wonderful|yes|yep){_OVER}"
    rf"|that(?:'s| is| was) (?:right|correct|it|great|helpful|perfect){_OVER}|well done|(?:great|excellent|good|nice) (?:job|answer|work))\b",
    re.IGNORECASE,
)
_BLAME = re.compile(
    rf"^(?:(?:no|nope|wrong|incorrect){_OVER}|no,? (?:that|it|this|you)|not (?:quite|right|true|what)|that(?:'s| is) (?:not|wrong|incorrect|false)"
    r"|that isn't|that (?:does not|doesn't|did not|didn't) (?:help|answer)|you(?:'re| are) (?:wrong|mistaken)|you (?:forgot|missed|misunderstood)|bad answer|actually,? no)\b",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"^(?:hi|hello|hey|bye|thanks?|thank you|ok(?:ay)?|sure|great|nice|cool|wow|please|welcome|good (?:morning|evening|night)|see you"
    r"|talk (?:to you )?soon|take care|no problem|yes|no|haha+|lol)\b[\s\w,'’]{0,25}[.!]*$",
    re.IGNORECASE,
)
_HAPPENED = re.compile(
    r"\b(?:yesterday|today|tonight|ago|last (?:night|week|weekend|month|year|summer|winter|spring|autumn|fall|monday|tuesday|wednesday"
    r"|thursday|friday|saturday|sunday)|this (?:morning|week|weekend)|earlier|recently|just now|(?:19|20)\d\d|the other day"
    r"|on (?:mon|tues|wednes|thurs|fri|satur|sun)day)\b"
    r"|\b(?:i|we|he|she|they|it|you|[A-Z][a-z]+)(?:'d| had)? (?:\w+ed|went|got|took|made|saw|met|had|was|were|did|came|said|told|found|left"
    r"|bought|gave|ran|won|lost|felt|began|started|spent|built|broke|wrote|read|ate|drove|flew|sent|taught|thought|became)\b",
)


class Recognition(msgspec.Struct, frozen=True, kw_only=True):
    """What was recognised in a message; see :class:`agentx.storage.events.cognition_events.Recognized`."""

    input_type: InputType
    rule: bool = False
    memories: tuple[Extracted, ...] = ()
    utilities: dict[str, float] = {}
    reward: float = 0.0
    topic_action: TopicAction = "none"
    topic: str = ""
    topic_summary: str = ""


def input_type(text: str, *, answered: bool) -> InputType:
    """What kind of message it is.

    Args:
        text: The message.
        answered: Whether there is an answer that it may judge.

    >>> input_type("Where did Anna move to?", answered=True), input_type("No, that's wrong.", answered=True)
    ('question', 'feedback')
    """
    plain = text.strip()
    if answered and (_BLAME.match(plain) or (_PRAISE.match(plain) and "?" not in plain)):
        return "feedback"
    if plain.endswith("?") or _QUESTION.match(plain):
        return "question"
    return "statement"


def reward(text: str) -> float:
    """What feedback says of the answer before it, from -1 to 1."""
    if _BLAME.match(text.strip()):
        return -1.0
    return 1.0 if _PRAISE.match(text.strip()) else 0.0


def extract(text: str) -> tuple[Extracted, ...]:
    """The memories of a message: what it states, each sentence by itself, and one episode of all that it tells as having happened.

    >>> [(one.level, one.text) for one in extract("I went to Rome last week. My sister is a nurse. Thanks!")]
    [('L2', 'My sister is a nurse.'), ('L3', 'I went to Rome last week.')]
    """
    # The name at the head of a turn says who speaks; it does not make the turn somebody else's words.
    head = heading_length(text)
    plain = " " * head + own_words(text[head:])
    stated = [one for one in sentences(plain) if _states(plain[one.start : one.end])]
    happened = [one for one in stated if _HAPPENED.search(plain, one.start, one.end)]
    known = [one for one in stated if one not in happened][:MOST_MEMORIES]
    episode = [_as_one(text, happened)] if happened else []
    return tuple(_extracted("L2", text, one) for one in known) + tuple(episode)


def _states(sentence: str) -> bool:
    if sentence.endswith("?") or _POLITE.match(sentence):
        return False
    return len(content_words(sentence)) >= _FEWEST_WORDS


def _extracted(level: Level, text: str, span: Span) -> Extracted:
    end = min(span.end, span.start + MOST_TEXT)
    return Extracted(level, one_line(text[span.start : end]), span.start, end)


def _as_one(text: str, spans: Sequence[Span]) -> Extracted:
    """What happened, in its own words and order, as one memory."""
    told = one_line(" ".join(text[one.start : one.end] for one in spans))[:MOST_TEXT]
    return Extracted("L3", told, spans[0].start, min(spans[-1].end, spans[0].start + MOST_TEXT))


def utilities(text: str, buffer: Mapping[str, tuple[str, float]]) -> dict[str, float]:
    """How useful the memories of the buffer are after a message: those that it is about more, the others a little less.

    Args:
        text: The message.
        buffer: Text and utility of each memory, by id.

    Returns:
        The new utility of each that changed by at least a hundredth.
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
    """The topic that a message belongs to.

    Args:
        text: The message.
        topics: What each topic is about, by id.

    Returns:
        What becomes of a topic, its id where it is known, and its words from now on.
    """
    words, names = _telling(text), content_words(" ".join(_CAPITALISED.findall(text)))
    if len(words) < _FEWEST_WORDS:
        return "none", "", ""
    stems = content_words(" ".join(words))
    best, share = "", 0.0
    for name, about in topics.items():
        own = _weight(stems & content_words(about), names) / _weight(stems, names)
        if own > share:
            best, share = name, own
    if share < SAME_TOPIC:
        return "create", "", ", ".join(words[:TOPIC_WORDS])[:MOST_SUMMARY]
    known = topics[best].split(", ")
    fresh = [word for word in words if not content_words(word) <= content_words(topics[best])]
    if not fresh or len(known) >= 2 * TOPIC_WORDS:
        return "none", best, topics[best]
    return "update", best, ", ".join([*known, *fresh[:2]])[:MOST_SUMMARY]


def _weight(stems: AbstractSet[str], names: AbstractSet[str]) -> int:
    return len(stems) + (NAME_WEIGHT - 1) * len(stems & names)


def _telling(text: str) -> list[str]:
    """The words that a message is about: names, then the most frequent and longest, each in the form in which it first stands."""
    names = content_words(" ".join(_CAPITALISED.findall(text)))
    found: dict[str, str] = {}
    counted: Counter[str] = Counter()
    for word in words_of(text):
        for stem in content_words(word):
            found.setdefault(stem, word.casefold())
            counted[stem] += 1
    order = sorted(
        found, key=lambda stem: (stem not in names, -counted[stem], -len(found[stem]), found[stem])
    )
    return [found[stem] for stem in order]


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

    Args:
        text: The message.
        answered: Whether there is an answer before it.
        rule: Whether it states a rule of the user's.
        buffer: Text and utility of each memory in the buffer, by id.
        topics: What each topic is about, by id.
        known: Texts that are remembered already, and not made again.
    """
    sort = input_type(text, answered=answered)
    said = {_plain(one) for one in known}
    memories = tuple(
        one
        for one in extract(text)
        if _plain(one.text) not in said and not (sort == "feedback" and reward(one.text))
    )
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


def lesson(question: str, answer: str, said: str) -> Extracted | None:
    """What feedback teaches about answering, as a procedure; nothing where it does not blame.

    >>> lesson("Where is Anna?", "In Oslo.", "No, in Rome.").text
    'Asked “Where is Anna?”, do not answer “In Oslo.”: the user said “No, in Rome.”'
    """
    if reward(said) >= 0:
        return None
    shown = [" ".join(words.split())[: MOST_TEXT // 4] for words in (question, answer, said)]
    return Extracted("L1", "Asked “{}”, do not answer “{}”: the user said “{}”".format(*shown))


def bounded(read: Recognition, before: Mapping[str, float]) -> tuple[Recognition, tuple[str, ...]]:
    """What of a recognition has room in one event, and in a sentence what has not.

    Args:
        read: All of it.
        before: The utilities so far, by id; the largest changes go first.
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
    return " ".join(text.casefold().split()).rstrip(".!")
