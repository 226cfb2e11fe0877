"""The model-based forms of the cognition modules, each as one question to a model.

None of them raises. If a model cannot be reached, or gives two unreadable answers, the result is a fault
without an answer, and the caller uses the module's deterministic form. Faults in an answer that is used are
reported, too.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec

from agentx.storage.text import encodable, one_line
from agentx.synthesis.cognition import answers, prompts
from agentx.synthesis.cognition.answers import Assessment, Faults, Reflection
from agentx.synthesis.cognition.metrics import QueryNode
from agentx.synthesis.cognition.prompts import Remembered, Topic, fitting
from agentx.synthesis.cognition.recognizer import Recognition
from agentx.synthesis.model.port import ChatMessage, ModelClient, ModelError, Reply, Tempered, Usage
from agentx.synthesis.model.structured import MAX_CHARACTERS, ask, reply_of

FAULT_CHARACTERS = 300

T = TypeVar("T")


class Asked(msgspec.Struct, Generic[T], frozen=True):
    """The result of asking a model.

    Attributes:
        answer: The validated answer; ``None`` if the deterministic form must be used.
        usage: The usage of all calls together.
        faults: What was wrong, one sentence each, for :class:`agentx.synthesis.cognition.metrics.Metrics`.
    """

    answer: T | None
    usage: Usage = Usage()
    faults: Faults = ()


def recognize(
    model: ModelClient,
    said: str,
    buffer: Sequence[Remembered],
    topics: Sequence[Topic],
    *,
    response: str = "",
    deadline: float,
) -> Asked[Recognition]:
    """Ask a model for the type of a message and what to remember from it.

    Args:
        model: The model.
        said: The message.
        buffer: The memories in the buffer; as many are shown as fit, those with the highest decay scores
            first.
        topics: The topics so far, oldest first.
        response: The agent's last answer; empty if there is none.
        deadline: ``time.monotonic()`` by which the answer must arrive.
    """
    topics = topics[-prompts.MAX_TOPICS :]
    names = {topic.id for topic in topics}
    shown, told = fitting(buffer)
    ids = {memory.id for memory in shown}
    asked = prompts.recognize(said, shown, topics, response)
    return _ask(
        model,
        prompts.RECOGNIZE,
        asked,
        lambda reply: answers.recognition(reply, said, ids, names),
        told,
        deadline,
    )


def assess(
    model: ModelClient, question: str, buffer: Sequence[Remembered], deadline: float
) -> Asked[Assessment]:
    """Ask a model whether the memories suffice for a question: the Decayer's first tier."""
    shown, told = fitting(buffer)
    asked = prompts.assess(question, shown)
    return _ask(model, prompts.ASSESS, asked, lambda reply: answers.assessment(reply, shown), told, deadline)


def expand(
    model: ModelClient, question: str, buffer: Sequence[Remembered], deadline: float
) -> Asked[tuple[QueryNode, ...]]:
    """Ask a model what to look up for a question; its sub-queries may need each other in a circle."""
    shown, told = fitting(buffer)
    asked = prompts.expand(question, shown)
    return _ask(model, prompts.EXPAND, asked, answers.expansion, told, deadline)


def curate(
    model: ModelClient, question: str, memories: Sequence[Remembered], max_tokens: int, deadline: float
) -> Asked[tuple[str, ...]]:
    """Ask a model for the ids of the memories a question needs, most needed first, within a token budget."""
    shown, told = fitting(memories)
    asked = prompts.curate(question, shown, max_tokens)
    return _ask(
        model,
        prompts.CURATE,
        asked,
        lambda reply: answers.curation(reply, shown, max_tokens),
        told,
        deadline,
    )


def reflect(
    model: ModelClient, question: str, answer: str, buffer: Sequence[Remembered], deadline: float
) -> Asked[Reflection]:
    """Ask a model what to learn from an answer: the second pass of the Recognizer."""
    shown, told = fitting(buffer)
    ids = {memory.id for memory in shown}
    asked = prompts.reflect(question, answer, shown)
    return _ask(model, prompts.REFLECT, asked, lambda reply: answers.reflection(reply, ids), told, deadline)


def respond(
    model: ModelClient, question: str, prompt: str, temperature: float, deadline: float
) -> Asked[str]:
    """Ask a model to answer a message.

    Args:
        model: The model.
        question: The message.
        prompt: The prompt from :func:`agentx.synthesis.cognition.prompts.response`.
        temperature: Sampling temperature, if the model supports it.
        deadline: ``time.monotonic()`` by which the answer must arrive.
    """
    asked = [ChatMessage("system", prompt), ChatMessage("user", question)]
    try:
        told = model.tempered(temperature) if isinstance(model, Tempered) else model
        reply = reply_of(told, asked, (), deadline)
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
    asked: Sequence[ChatMessage],
    read: Callable[[Reply], tuple[T, Faults]],
    left_out: str,
    deadline: float,
) -> Asked[T]:
    before = (left_out,) if left_out else ()
    try:
        (answer, faults), usage = ask(
            model, asked, prompts.shape(what), read, prompts.repair(), deadline=deadline
        )
    except ModelError as error:
        return Asked(None, error.usage, (*before, _failed(what, error)))
    return Asked(answer, usage, (*before, *faults))


def _failed(what: str, error: ModelError) -> str:
    """Return a sentence that says why there is no answer."""
    why = one_line(str(error))
    return f"No model could {what}: {why[:FAULT_CHARACTERS]}{'…' if len(why) > FAULT_CHARACTERS else '.'}"
