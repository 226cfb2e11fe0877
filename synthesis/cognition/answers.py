"""Parse a model's answers in the cognition loop: keep what is usable; drop, count and report the rest.

Unverifiable parts are not trusted. An id counts only if it was shown, a score only within its bounds, and a
memory only with words that occur in the message. So a model's report never rests on more than the message.

Every function raises :class:`~agentx.synthesis.model.structured.AnswerUnreadable` if the reply lacks the
requested form; the sentence can be shown to the model.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal

import msgspec

from agentx.storage.events.cognition_events import Extracted, InputType, Outdated, TopicAction
from agentx.storage.text import clip, encodable, one_line
from agentx.synthesis.cognition import prompts
from agentx.synthesis.cognition.grounds import located
from agentx.synthesis.cognition.prompts import Shown, ShownMemory, Topic
from agentx.synthesis.cognition.recognizer import Recognition
from agentx.synthesis.model.port import Reply
from agentx.synthesis.model.structured import MAX_CHARACTERS, AnswerUnreadable, object_of

MAX_MEMORIES = 12
"""Maximum number of memories per message."""

MAX_REPLACED = 8
MAX_MISSING = 8
MAX_PROCEDURES = 5
MAX_SCORES = 100
MAX_BYTES = 6_000
"""Maximum UTF-8 size of the memories of one message; they are stored in one event."""

TEXT_CHARACTERS = 400
ID_CHARACTERS = 120

Faults = tuple[str, ...]
"""What was wrong with an answer that was used all the same, one sentence each."""

_INPUT_TYPES: dict[str, tuple[InputType, float]] = {
    "statement": ("statement", 0.0),
    "question": ("question", 0.0),
    "feedback": ("feedback", 0.0),
    "praise": ("feedback", 1.0),
    "blame": ("feedback", -1.0),
}
"""The type of a message and its reward, by what a model says."""

_FOUND: dict[str, Literal["L2", "L3"]] = {"L2": "L2", "L3": "L3"}

_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?)?")
_ID = re.compile(r"[a-z]-\d[\d.]*")
_NOTHING_MISSING = re.compile(r'"missing"\s*:\s*\[\s*\]')
_SPOKEN = re.compile(r'"answer"\s*:\s*"((?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)(")?')

_UNKNOWN_TYPE = "an unknown input type; it counts as a statement"
_OUT_OF_BOUNDS = "a score out of its bounds; it was brought within them"
_NO_NUMBER = "a score that is not a number; it does not count"
_NOT_SHOWN = "an id that it was not shown; it was left out"
_NOT_SAID = "a memory of words that the message does not have; it was left out"
_NO_ENTRY = "an invalid entry; it was left out"
_TOO_MANY = "an entry beyond those that are read; it was left out"
_NO_RECORD = "an answer without its record; code recognised the message"


class Conversed(msgspec.Struct, frozen=True):
    """What a model said about a message.

    Attributes:
        answer: Its answer; empty if it was not asked for one.
        recognition: What it recognised; ``None`` if code must do so.
        uncertainty: How uncertain it is of the answer, from 0 to 1: the Decayer's first tier.
        missing: What is to be looked up.
    """

    answer: str = ""
    recognition: Recognition | None = None
    uncertainty: float = 0.0
    missing: tuple[str, ...] = ()


class Reflection(msgspec.Struct, frozen=True):
    """What was learned from an answer; ``judge`` is -1 if the model gave no valid score."""

    procedures: tuple[str, ...] = ()
    utilities: dict[str, float] = {}
    judge: float = -1.0


def conversed(
    reply: Reply, asked: str, parts: Collection[str], said: str, shown: Shown
) -> tuple[Conversed, Faults]:
    """Parse an answer to :func:`~agentx.synthesis.cognition.prompts.message`.

    An answer in plain text is accepted, and one of a broken object if it is whole; they lack the other parts.
    """
    try:
        answer = _ReplyObject(reply, asked)
    except AnswerUnreadable:
        plain = spoken(reply)
        if asked != prompts.ANSWER or not plain.whole:
            raise
        lacks = (f"{reply.model} gave {_NO_RECORD}.",) if prompts.RECOGNIZED in parts else ()
        return Conversed(plain.text), lacks
    text = answer.raw.get(prompts.ANSWER)
    if not isinstance(text, str) or not text.strip():
        text = reply.text if reply.tool_calls or not is_object(reply.text) else ""
    text = encodable(text[:MAX_CHARACTERS])
    if asked == prompts.ANSWER and not text.strip():
        raise AnswerUnreadable(f"the answer of {reply.model} lacks `answer`")
    recognition = None
    if prompts.RECOGNIZED in parts:
        if "input_type" in answer.raw:
            recognition = _recognition(answer, said, shown)
        elif asked == prompts.ANSWER:
            answer.amiss[_NO_RECORD] += 1
        else:
            raise AnswerUnreadable(f"the answer of {reply.model} lacks `input_type`")
    missing, uncertainty = tuple[str, ...](), 0.0
    if prompts.ASSESSED in parts:
        missing = answer.texts("missing", MAX_MISSING)
        uncertainty = answer.score(answer.raw.get("uncertainty", 1.0 if missing else 0.0)) or 0.0
    read = Conversed(text.strip(), recognition, uncertainty, missing)
    return read, answer.faults()


class Spoken(msgspec.Struct, frozen=True):
    """The text of an answer as far as it has arrived, and whether it is whole."""

    text: str
    whole: bool = False


def spoken(reply: Reply) -> Spoken:
    """Return the text of an answer that is not a readable object: plain text, or what its text tells."""
    raw = next((call.arguments for call in reply.tool_calls if call.name == prompts.ANSWER), "") or reply.text
    if is_object(raw):
        return answer_so_far(raw)
    text = encodable(raw[:MAX_CHARACTERS]).strip()
    return Spoken(text, bool(text))


def is_object(raw: str) -> bool:
    """Return whether a text begins like a JSON object, perhaps in a code fence."""
    return raw.lstrip()[:1] in {"{", "[", "`"}


def lacks_nothing(raw: str) -> bool:
    """Return whether the start of an object says that nothing is missing."""
    return bool(_NOTHING_MISSING.search(raw))


def answer_so_far(raw: str) -> Spoken:
    r"""Return the value of ``answer`` in a JSON object of which only the start has arrived.

    >>> answer_so_far('{"missing": [], "answer": "It is \\u00e9t\\')
    Spoken(text='It is ét', whole=False)
    """
    found = _SPOKEN.search(raw)
    if found is None:
        return Spoken("")
    text: str = json.loads(f'"{found[1]}"', strict=False)
    return Spoken(encodable(text.rstrip("".join(map(chr, range(0xD800, 0xDC00))))), bool(found[2]))


def reflection(reply: Reply, shown: Sequence[ShownMemory]) -> tuple[Reflection, Faults]:
    """Parse what was learned from an answer."""
    answer = _ReplyObject(reply, prompts.REFLECT, "procedures", "utilities", "judge")
    judge = answer.score(answer.raw["judge"]) if "judge" in answer.raw else None
    read = Reflection(
        procedures=answer.texts("procedures", MAX_PROCEDURES),
        utilities=answer.utilities(shown),
        judge=-1.0 if judge is None else judge,
    )
    return read, answer.faults()


def _recognition(answer: "_ReplyObject", said: str, shown: Shown) -> Recognition:
    """Parse what a model recognised in a message."""
    kind = _INPUT_TYPES.get(answer.words(answer.raw["input_type"]).lower())
    if kind is None:
        answer.amiss[_UNKNOWN_TYPE] += 1
    sort, reward = kind or _INPUT_TYPES["statement"]
    action, topic, summary = _topic(answer, shown.topics)
    memories, outdated = _memories(answer, said, {one.id for one in shown.memories})
    return Recognition(
        input_type=sort,
        memories=memories,
        outdated=outdated,
        reward=reward,
        topic_action=action,
        topic=topic,
        topic_summary=summary,
    )


def _memories(
    answer: "_ReplyObject", said: str, shown: Collection[str]
) -> tuple[tuple[Extracted, ...], tuple[Outdated, ...]]:
    """Parse the memories of a message, and which of the ``shown`` ones they make untrue."""
    found: dict[str, Extracted] = {}
    outdated: dict[str, Outdated] = {}
    room = MAX_BYTES
    for row in answer.objects("memories", MAX_MEMORIES):
        text, quote = answer.words(row.get("text")), row.get("quote")
        level = _FOUND.get(answer.words(row.get("level")))
        if not text or level is None:
            answer.amiss[_NO_ENTRY] += 1
            continue
        span = located(said, quote if isinstance(quote, str) and quote.strip() else text)
        if span is None:
            answer.amiss[_NOT_SAID] += 1
            continue
        if (room := room - len(text.encode())) < 0:
            answer.amiss[_TOO_MANY] += 1
            continue
        if text.casefold() in found:
            continue
        since = answer.words(row.get("since"), ID_CHARACTERS)
        for name in map(answer.id, answer.listed(row.get("replaces"), MAX_REPLACED)):
            if name in shown:
                outdated.setdefault(name, Outdated(name, len(found), since if _DATE.fullmatch(since) else ""))
            else:
                answer.amiss[_NOT_SHOWN] += 1
        found[text.casefold()] = Extracted(level, text, span.start, span.end)
    return tuple(found.values()), tuple(outdated.values())


def _topic(answer: "_ReplyObject", topics: Collection[Topic]) -> tuple[TopicAction, str, str]:
    """Return action, id and summary of a topic; a text that is not a known topic names a new one."""
    text = answer.words(answer.raw.get("topic", ""), prompts.SUMMARY_CHARACTERS).strip("[] ")
    for known in topics:
        if text and text.casefold() in {known.id.casefold(), one_line(known.summary).casefold()}:
            return "none", known.id, known.summary
    if not text:
        return "none", "", ""
    if _ID.fullmatch(text):
        answer.amiss[_NOT_SHOWN] += 1
        return "none", "", ""
    return "create", "", text


class _ReplyObject:
    """The object in a reply, with counts of the faults found so far."""

    def __init__(self, reply: Reply, tool: str, *parts: str) -> None:
        self.raw = object_of(reply, tool)
        self.amiss: Counter[str] = Counter()
        self._model = reply.model
        if parts and not self.raw.keys() & set(parts):
            raise AnswerUnreadable(f"the answer of {reply.model} lacks `{'`, `'.join(parts)}`")

    def faults(self) -> Faults:
        """Return each kind of fault in a sentence."""
        return tuple(
            f"{self._model} gave {what}{f' ({times:,} times)' if times > 1 else ''}."
            for what, times in self.amiss.items()
            if times
        )

    def rows(self, part: str, most: int) -> list[Any]:
        """Return the entries of a list, at most ``most``."""
        return self.listed(self.raw.get(part), most)

    def listed(self, found: object, most: int) -> list[Any]:
        """Return the entries of what may be a list, at most ``most``."""
        found = found or []
        if not isinstance(found, list):
            self.amiss[_NO_ENTRY] += 1
            return []
        self.amiss[_TOO_MANY] += max(0, len(found) - most)
        return found[:most]

    def objects(self, part: str, most: int) -> Iterator[dict[str, Any]]:
        """Yield the entries of a list that are objects."""
        for row in self.rows(part, most):
            if isinstance(row, dict):
                yield row
            else:
                self.amiss[_NO_ENTRY] += 1

    def texts(self, part: str, most: int) -> tuple[str, ...]:
        """Return the distinct texts of a list."""
        found = [self.words(row) for row in self.rows(part, most)]
        self.amiss[_NO_ENTRY] += found.count("")
        return tuple(dict.fromkeys(filter(None, found)))

    def words(self, raw: object, most: int = TEXT_CHARACTERS) -> str:
        """Return a text as one bounded line; empty if it is not a text."""
        return clip(one_line(raw[: 4 * most]), most) if isinstance(raw, str) else ""

    def id(self, raw: object) -> str:
        """Return an id as it was shown, without brackets."""
        text = str(raw) if isinstance(raw, int) else raw
        return self.words(text, ID_CHARACTERS).strip("[] ")

    def score(self, raw: object) -> float | None:
        """Clamp a number to 0 and 1; return ``None`` if it is not a number."""
        try:
            number = math.nan if isinstance(raw, bool) else float(raw)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if math.isnan(number):
            self.amiss[_NO_NUMBER] += 1
            return None
        bounded = max(0.0, min(1.0, number))
        self.amiss[_OUT_OF_BOUNDS] += bounded != number
        return bounded

    def utilities(self, shown: Sequence[ShownMemory]) -> dict[str, float]:
        """Return scores by id, from a list or an object; the last score of an id counts."""
        found = self.raw.get("utilities")
        if isinstance(found, dict):
            self.raw["utilities"] = [{"id": name, "score": score} for name, score in found.items()]
        ids = {memory.id for memory in shown}
        scores: dict[str, float] = {}
        for row in self.objects("utilities", MAX_SCORES):
            name = self.id(row.get("id"))
            score = self.score(row.get("score"))
            if name not in ids:
                self.amiss[_NOT_SHOWN] += 1
            elif score is not None:
                scores[name] = score
        return scores
