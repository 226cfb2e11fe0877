"""The model-based forms of the cognition modules, each as one question to a model.

None of them raises. If a model cannot be reached, or gives two unreadable answers, the result is a fault
without an answer, and the caller uses the module's deterministic form. Faults in an answer that is used are
reported, too.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

import msgspec

from agentx.storage.text import encodable, one_line
from agentx.synthesis.cognition import answers, prompts
from agentx.synthesis.cognition.answers import Assessment, Faults, Reflection
from agentx.synthesis.cognition.metrics import QueryNode
from agentx.synthesis.cognition.prompts import ShownMemory, Topic, fitting
from agentx.synthesis.cognition.recognizer import Recognition
from agentx.synthesis.model.port import ChatMessage, ModelClient, ModelError, Reply, Tempered, Usage
from agentx.synthesis.model.structured import MAX_CHARACTERS, ask, reply_of

FAULT_CHARACTERS = 300

T = TypeVar("T")


class Asked(msgspec.Struct, Generic[T], frozen=True):
    """The result of asking a model.

    Attributes:
        answer: The validated answer; ``None`` if the deterministic form must be used.
        faults: What was wrong, one sentence each, for :class:`agentx.synthesis.cognition.metrics.Metrics`.
    """

    answer: T | None
    usage: Usage = Usage()
    faults: Faults = ()


def recognize(
    model: ModelClient,
    said: str,
    buffer: Sequence[ShownMemory],
    topics: Sequence[Topic],
    *,
    response: str = "",
    deadline: float,
) -> Asked[Recognition]:
    """Ask a model for the type of a message and what to remember from it.

    Of the buffer, as many memories are shown as fit, those with the highest decay scores first. Topics are
    given oldest first; ``deadline`` is a value of ``time.monotonic()``.
    """
    topics = topics[-prompts.MAX_TOPICS :]
    return _ask(
        model,
        prompts.RECOGNIZE,
        buffer,
        lambda shown: prompts.recognize(said, shown, topics, response),
        lambda reply, shown: answers.recognition(reply, shown, said, {topic.id for topic in topics}),
        deadline,
    )


def assess(
    model: ModelClient, question: str, buffer: Sequence[ShownMemory], deadline: float
) -> Asked[Assessment]:
    """Ask a model whether the memories suffice for a question: the Decayer's first tier."""
    asked = partial(prompts.about, prompts.ASSESS, question)
    return _ask(model, prompts.ASSESS, buffer, asked, answers.assessment, deadline)


def expand(
    model: ModelClient, question: str, buffer: Sequence[ShownMemory], deadline: float
) -> Asked[tuple[QueryNode, ...]]:
    """Ask a model what to look up for a question; its sub-queries may need each other in a circle."""
    asked = partial(prompts.about, prompts.EXPAND, question)
    return _ask(model, prompts.EXPAND, buffer, asked, lambda reply, _: answers.expansion(reply), deadline)


def curate(
    model: ModelClient, question: str, memories: Sequence[ShownMemory], max_tokens: int, deadline: float
) -> Asked[tuple[str, ...]]:
    """Ask a model for the ids of the memories a question needs, most needed first, within a token budget."""
    asked = partial(prompts.about, prompts.CURATE, question, room=max_tokens)
    read = partial(answers.curation, max_tokens=max_tokens)
    return _ask(model, prompts.CURATE, memories, asked, read, deadline)


def reflect(
    model: ModelClient, question: str, answer: str, buffer: Sequence[ShownMemory], deadline: float
) -> Asked[Reflection]:
    """Ask a model what to learn from an answer: the second pass of the Recognizer."""
    asked = partial(prompts.about, prompts.REFLECT, question, answer=answer)
    return _ask(model, prompts.REFLECT, buffer, asked, answers.reflection, deadline)


def respond(
    model: ModelClient, question: str, prompt: str, temperature: float, deadline: float
) -> Asked[str]:
    """Ask a model to answer a message, at a temperature if the model supports it.

    The prompt comes from :func:`agentx.synthesis.cognition.prompts.response`.
    """
    asked = [ChatMessage("system", prompt), ChatMessage("user", question)]
    try:
        tempered = model.tempered(temperature) if isinstance(model, Tempered) else model
        reply = reply_of(tempered, asked, (), deadline)
    except ModelError as error:
        return Asked(None, error.usage, (_failed("respond", error),))
    text = encodable(reply.text[:MAX_CHARACTERS]).strip()
    if not text:
        return Asked(None, reply.usage, (f"{reply.model} answered with nothing.",))
    short = reply.cut_off or len(reply.text) > MAX_CHARACTERS
    faults = (f"The answer of {reply.model} was too long and is cut off.",) if short else ()
    return Asked(text, reply.usage, faults)


def _ask(
    model: ModelClient,
    what: str,
    buffer: Sequence[ShownMemory],
    asked: Callable[[Sequence[ShownMemory]], list[ChatMessage]],
    read: Callable[[Reply, Sequence[ShownMemory]], tuple[T, Faults]],
    deadline: float,
) -> Asked[T]:
    """Ask about the memories that fit."""
    shown, left_out = fitting(buffer)
    before = (left_out,) if left_out else ()
    try:
        (answer, faults), usage = ask(
            model,
            asked(shown),
            prompts.shape(what),
            lambda reply: read(reply, shown),
            prompts.repair(),
            deadline=deadline,
        )
    except ModelError as error:
        return Asked(None, error.usage, (*before, _failed(what, error)))
    return Asked(answer, usage, (*before, *faults))


def _failed(what: str, error: ModelError) -> str:
    """Return a sentence that says why the answer is missing."""
    why = one_line(str(error))
    return f"No model could {what}: {why[:FAULT_CHARACTERS]}{'…' if len(why) > FAULT_CHARACTERS else '.'}"
