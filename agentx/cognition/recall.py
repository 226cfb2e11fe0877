"""Answer without a model: what was told about a question, in the original words."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import msgspec

from agentx.cognition.told import told
from agentx.cognition.turn import CognitiveTurn
from agentx.search.background_worker import SearchLate
from agentx.storage.text import one_line
from agentx.synthesis.cognition import recognizer
from agentx.synthesis.cognition.cognition_extractor import LEVELS
from agentx.synthesis.cognition.evidence import AnswerEvidence, Question, answering, present
from agentx.synthesis.cognition.prompts import ShownMemory
from agentx.synthesis.facts.validity import Period, asked_period, valid_at
from agentx.synthesis.language.dates import with_dates
from agentx.synthesis.memory.items import MemoryItem, sort_of

DECLINED = "I remember nothing of that."
"""The answer without a model where nothing that is remembered answers the question."""

UNSURE = "I was not told exactly that. The nearest that I remember:"
"""The beginning of an answer without a model where what is remembered may not be what is asked for."""

COMPARED_CHARACTERS = 40
"""A rejected answer is known by the beginning of a sentence, as a lesson has only that of an answer."""


class Recalled(msgspec.Struct, frozen=True):
    """An answer without a model.

    Attributes:
        used: Ids of the memories that it rests on, in the order of their telling.
        judge: How well it rests on them, from 0 to 1; negative where it was not judged.
    """

    text: str
    used: tuple[str, ...] = ()
    judge: float = -1.0


def recalled(turn: CognitiveTurn, shown: Sequence[ShownMemory], fetched: Sequence[str]) -> Recalled:
    """Answer a message from what is remembered.

    Args:
        turn: The interaction.
        shown: The memories that fit in the buffer.
        fetched: Ids of the memories that were fetched for the question.
    """
    metrics, items = turn.metrics, turn.state.items
    if metrics.input_type == "feedback":
        return Recalled("Thank you; I keep that in mind.")
    if metrics.input_type == "statement":
        return Recalled("Noted." if metrics.new_memories_stored else "I see.")
    question, period = Question(turn.message), asked_period(turn.message, turn.state.at)
    names = [*(one.id for one in shown), *fetched, *_searched(turn)]
    found = _evidence(turn, question, period, names)
    if not found:
        return Recalled(DECLINED)
    said = [one_line(with_dates(one.text, items[one.memory].created_at)) for one in found]
    if period.sort == "now":
        said = [present(text, question) for text in said]
    begin = "I remember:" if found[0].sure else UNSURE
    if len(said) == 1:
        text = f"{begin} {said[0]}"
    else:
        days = [items[one.memory].created_at[:10] for one in found]
        text = "\n".join([begin, *(f"- {day}: {one}" for day, one in zip(days, said, strict=True))])
    judge = round(max(one.support for one in found), 4)
    return Recalled(text, tuple(one.memory for one in found), judge)


def _evidence(
    turn: CognitiveTurn, question: Question, period: Period, names: Sequence[str]
) -> list[AnswerEvidence]:
    """Return the messages that answer the question; none if nothing that is remembered does."""
    items, lessons = turn.state.items, list(_lessons(turn, question, names))
    sentences = [
        one
        for one in told(names, turn.state, turn.tally)
        if turn.included(LEVELS.get(sort_of(items[one.memory]), "L2"))
        and not any(
            one.order < item.evidence[0].seq and one.text[:COMPARED_CHARACTERS] in lesson.answer
            for item, lesson in lessons
        )
    ]
    for item, lesson in lessons[-1:]:
        seq = item.evidence[0].seq
        if lesson.instead and all(one.order != seq for one in sentences):
            # The correction fits no memory, so its own words are the answer
            return [AnswerEvidence(f"“{lesson.instead}”", item.id, support=1.0, sure=True)]
    return answering(
        question,
        sentences,
        turn.ws.engine.meanings.of,
        past=period.sort in ("first", "before"),
        true=cache(lambda name: valid_at([name], items, period)),
    )


def _lessons(
    turn: CognitiveTurn, question: Question, names: Iterable[str]
) -> Iterator[tuple[MemoryItem, recognizer.FeedbackLesson]]:
    """Yield what the user said of earlier answers to the same question, in that order."""
    known = (turn.state.items.get(name) for name in dict.fromkeys(names))
    learned = [item for item in known if item is not None and sort_of(item) == "learning"]
    for item in sorted(learned, key=lambda item: item.evidence[0].seq if item.evidence else 0):
        lesson = recognizer.lesson_of(item.text) if item.evidence else None
        if lesson and Question(lesson.question).words.keys() == question.words.keys():
            yield item, lesson


def _searched(turn: CognitiveTurn) -> list[str]:
    """Return the ids of the items nearest to the question: what was fetched for its parts may lack them."""
    try:
        hits = turn.search(turn.message)
    except SearchLate as error:
        turn.metrics.faults.append(str(error))
        return []
    return [hit.symbol for hit in hits]
