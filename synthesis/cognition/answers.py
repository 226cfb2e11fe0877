"""Parse a model's answers in the cognition loop: keep what is usable; drop, count and report the rest.

Unverifiable parts are not trusted. An id counts only if it was shown, a score only within its bounds, and a
memory only with words that occur in the message. So a model's report never rests on more than the message.

Every function raises :class:`~agentx.synthesis.model.structured.AnswerUnreadable` if the reply lacks the
requested form; the sentence can be shown to the model.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal, get_args

import msgspec

from agentx.storage.events.cognition_events import Extracted, InputType, TopicAction
from agentx.storage.text import clip, one_line
from agentx.synthesis.cognition import prompts
from agentx.synthesis.cognition.grounds import located
from agentx.synthesis.cognition.metrics import ClusterAssessment, QueryNode
from agentx.synthesis.cognition.prompts import ShownMemory
from agentx.synthesis.cognition.recognizer import Recognition
from agentx.synthesis.model.port import Reply
from agentx.synthesis.model.structured import AnswerUnreadable, object_of

MAX_MEMORIES = 12
"""Maximum number of memories per message."""

MAX_QUERIES = 8
MAX_NEEDS = 8
MAX_MISSING = 8
MAX_PROCEDURES = 5
MAX_IDS = 500
MAX_SCORES = 100
MAX_BYTES = 6_000
"""Maximum UTF-8 size of the memories of one message; they are stored in one event."""

TEXT_CHARACTERS = 400
ID_CHARACTERS = 120

Faults = tuple[str, ...]
"""What was wrong with an answer that was used all the same, one sentence each."""

_INPUT_TYPES: dict[str, InputType] = {name: name for name in get_args(InputType)}
_ACTIONS: dict[str, TopicAction] = {name: name for name in get_args(TopicAction)}
_FOUND: dict[str, Literal["L2", "L3"]] = {"L2": "L2", "L3": "L3"}

_UNKNOWN_TYPE = "an unknown input type; it counts as a statement"
_OUT_OF_BOUNDS = "a score out of its bounds; it was brought within them"
_NO_NUMBER = "a score that is not a number; it does not count"
_NOT_SHOWN = "an id that it was not shown; it was left out"
_NOT_SAID = "a memory of words that the message does not have; it was left out"
_NO_ENTRY = "an invalid entry; it was left out"
_TOO_MANY = "an entry beyond those that are read; it was left out"
_NO_QUERY = "a sub-query that needs an unknown one; the need was left out"
_NO_ROOM = "a memory to keep that does not fit; it was left out"


class Assessment(msgspec.Struct, frozen=True):
    """The Decayer's first tier: a model's uncertainty (0 to 1), what is missing, and what each topic covers.

    The similarity of a cluster is 0, as a model does not know cosines.
    """

    uncertainty: float
    missing: tuple[str, ...] = ()
    clusters: tuple[ClusterAssessment, ...] = ()


class Reflection(msgspec.Struct, frozen=True):
    """What was learned from an answer; ``judge`` is -1 if the model gave no valid score."""

    procedures: tuple[str, ...] = ()
    utilities: dict[str, float] = {}
    judge: float = -1.0


def recognition(
    reply: Reply, shown: Sequence[ShownMemory], said: str, topics: Collection[str]
) -> tuple[Recognition, Faults]:
    """Parse what a model recognised in a message, when it was shown these memories and ids of topics."""
    answer = _ReplyObject(reply, prompts.RECOGNIZE, "input_type")
    kind = _INPUT_TYPES.get(answer.words(answer.raw["input_type"]).lower())
    if kind is None:
        answer.amiss[_UNKNOWN_TYPE] += 1
    action, topic, summary = _topic(answer, topics)
    read = Recognition(
        input_type=kind or "statement",
        rule=answer.raw.get("rule") is True,
        memories=_memories(answer, said),
        utilities=answer.utilities(shown),
        reward=answer.score(answer.raw.get("reward", 0), lowest=-1.0) or 0.0,
        topic_action=action,
        topic=topic,
        topic_summary=summary,
    )
    return read, answer.faults()


def assessment(reply: Reply, buffer: Sequence[ShownMemory]) -> tuple[Assessment, Faults]:
    """Parse how uncertain a model is."""
    answer = _ReplyObject(reply, prompts.ASSESS, "uncertainty")
    uncertainty = answer.score(answer.raw["uncertainty"])
    if uncertainty is None:
        raise AnswerUnreadable(f"the `uncertainty` of {reply.model} is not a number from 0 to 1")
    held = Counter(memory.topic for memory in buffer)
    clusters: dict[str, ClusterAssessment] = {}
    for row in answer.objects("clusters", MAX_IDS):
        topic = answer.id(row.get("topic", ""))
        coverage = answer.score(row.get("coverage"))
        if topic not in held:
            answer.amiss[_NOT_SHOWN] += 1
        elif coverage is not None:
            clusters.setdefault(topic, ClusterAssessment(topic, held[topic], coverage, 0.0))
    missing = answer.texts("missing", MAX_MISSING)
    return Assessment(uncertainty, missing, tuple(clusters.values())), answer.faults()


def expansion(reply: Reply) -> tuple[tuple[QueryNode, ...], Faults]:
    """Parse sub-queries; their needs refer only to existing sub-queries, and may be circular."""
    answer = _ReplyObject(reply, prompts.EXPAND, "queries")
    found: dict[str, QueryNode] = {}
    for place, row in enumerate(answer.objects("queries", MAX_QUERIES), start=1):
        text = answer.words(row.get("text"))
        name = answer.id(row.get("id")) or f"q{place}"
        if not text or name in found:
            answer.amiss[_NO_ENTRY] += 1
            continue
        needs = row.get("needs") or []
        needs = needs[:MAX_NEEDS] if isinstance(needs, list) else [needs]
        found[name] = QueryNode(name, text, tuple(dict.fromkeys(map(answer.id, needs))))
    if not found:
        raise AnswerUnreadable(f"the `queries` of {reply.model} hold nothing to search for")
    for name, node in found.items():
        known = tuple(need for need in node.needs if need in found)
        answer.amiss[_NO_QUERY] += len(node.needs) - len(known)
        found[name] = msgspec.structs.replace(node, needs=known)
    return tuple(found.values()), answer.faults()


def curation(
    reply: Reply, memories: Sequence[ShownMemory], max_tokens: int
) -> tuple[tuple[str, ...], Faults]:
    """Parse which memories to keep, in order, as far as the token budget allows."""
    answer = _ReplyObject(reply, prompts.CURATE, "keep")
    shown = {memory.id: memory for memory in memories}
    named = dict.fromkeys(answer.id(row) for row in answer.rows("keep", MAX_IDS))
    known = [name for name in named if name in shown]
    if (named or answer.faults()) and not known:
        raise AnswerUnreadable(f"{reply.model} keeps nothing that it was shown")
    answer.amiss[_NOT_SHOWN] += len(named) - len(known)
    kept: list[str] = []
    left = max_tokens
    for name in known:
        if (size := prompts.tokens_of(shown[name])) <= left:
            kept.append(name)
            left -= size
    answer.amiss[_NO_ROOM] += len(known) - len(kept)
    return tuple(kept), answer.faults()


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


def _memories(answer: "_ReplyObject", said: str) -> tuple[Extracted, ...]:
    found: dict[str, Extracted] = {}
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
        found.setdefault(text.casefold(), Extracted(level, text, span.start, span.end))
    return tuple(found.values())


def _topic(answer: "_ReplyObject", topics: Collection[str]) -> tuple[TopicAction, str, str]:
    """Return action, id and summary of a topic; no action if they do not fit together."""
    raw = answer.raw.get("topic") or {}
    if not isinstance(raw, dict):
        answer.amiss[_NO_ENTRY] += 1
        return "none", "", ""
    action = _ACTIONS.get(answer.words(raw.get("action", "none")).lower())
    summary = answer.words(raw.get("summary"), prompts.SUMMARY_CHARACTERS)
    name = answer.id(raw.get("id", ""))
    if action == "create" and summary:
        return action, "", summary
    if name and name not in topics:
        answer.amiss[_NOT_SHOWN] += 1
        return "none", "", ""
    if action == "update" and name and summary:
        return action, name, summary
    answer.amiss[_NO_ENTRY] += action != "none"
    return "none", name, ""


class _ReplyObject:
    """The object in a reply, with counts of the faults found so far."""

    def __init__(self, reply: Reply, tool: str, *parts: str) -> None:
        self.raw = object_of(reply, tool)
        self.amiss: Counter[str] = Counter()
        self._model = reply.model
        if not self.raw.keys() & set(parts):
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
        found = self.raw.get(part) or []
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

    def score(self, raw: object, lowest: float = 0.0) -> float | None:
        """Clamp a number to its bounds; return ``None`` if it is not a number."""
        try:
            number = math.nan if isinstance(raw, bool) else float(raw)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if math.isnan(number):
            self.amiss[_NO_NUMBER] += 1
            return None
        bounded = max(lowest, min(1.0, number))
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
