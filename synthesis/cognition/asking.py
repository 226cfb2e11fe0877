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
from agentx.synthesis.cognition.answers import Conversed, Faults, Reflection
from agentx.synthesis.cognition.prompts import Shown, ShownMemory, fitting
from agentx.synthesis.model.port import (
    CallPart,
    ChatMessage,
    ModelClient,
    ModelError,
    Reply,
    Tempered,
    TextPart,
    ToolSchema,
    Usage,
)
from agentx.synthesis.model.structured import MAX_CHARACTERS, AnswerUnreadable, ask, reply_of

FAULT_CHARACTERS = 300

MAX_STREAMED = 20_000
"""Maximum characters of a reply that are passed on as they arrive; the rest comes with the whole answer."""

T = TypeVar("T")


class Asked(msgspec.Struct, Generic[T], frozen=True):
    """The result of asking a model.

    Attributes:
        answer: The validated answer; ``None`` if the deterministic form must be used.
        faults: What was wrong, one sentence each, for :class:`agentx.synthesis.cognition.metrics.Metrics`.
        calls: Number of calls.
    """

    answer: T | None
    usage: Usage = Usage()
    faults: Faults = ()
    calls: int = 1


Told = Callable[[str], None]
"""Called with an answer as far as it has arrived."""


def converse(
    model: ModelClient,
    asked: str,
    said: str,
    shown: Shown,
    *parts: str,
    deadline: float,
    temperature: float | None = None,
    told: Told | None = None,
) -> Asked[Conversed]:
    """Ask a model about a message, for an answer or a recognition, and for ``parts`` in the same reply.

    With :data:`~agentx.synthesis.cognition.prompts.ASSESSED` among the parts, ``told`` is called only for an
    answer of which nothing is missing. ``deadline`` is a value of ``time.monotonic()``.
    """
    shown = msgspec.structs.replace(shown, topics=shown.topics[-prompts.MAX_TOPICS :])
    return _ask(
        _tempered(model, temperature),
        asked,
        prompts.message(asked, said, shown, *parts),
        prompts.shape(asked, *parts),
        lambda reply: answers.conversed(reply, asked, parts, said, shown),
        deadline,
        _ArrivingAnswer(told, whole=prompts.ASSESSED in parts) if told else None,
    )


def reflect(
    model: ModelClient,
    question: str,
    answer: str,
    said: str,
    buffer: Sequence[ShownMemory],
    deadline: float,
) -> Asked[Reflection]:
    """Ask a model what to learn from an answer: the second pass of the Recognizer.

    ``said`` is what the user said of it; empty for nothing.
    """
    shown, left_out = fitting(buffer)
    asked = _ask(
        model,
        prompts.REFLECT,
        prompts.reflection(question, answer, said, shown),
        prompts.shape(prompts.REFLECT),
        lambda reply: answers.reflection(reply, shown),
        deadline,
    )
    return msgspec.structs.replace(asked, faults=(left_out, *asked.faults)) if left_out else asked


def respond(
    model: ModelClient,
    said: str,
    prompt: str,
    temperature: float,
    deadline: float,
    told: Told | None = None,
) -> Asked[str]:
    """Ask a model to answer a message in plain text, at a temperature if the model supports it.

    The prompt comes from :func:`agentx.synthesis.cognition.prompts.response`.
    """
    asked = [ChatMessage("system", prompt), ChatMessage("user", said)]
    arriving = _ArrivingAnswer(told, plain=True) if told else None
    try:
        reply = reply_of(_tempered(model, temperature), asked, (), deadline, arriving)
    except ModelError as error:
        return Asked(None, error.usage, (_failed("respond", error),))
    text = encodable(reply.text[:MAX_CHARACTERS]).strip()
    if not text:
        return Asked(None, reply.usage, (f"{reply.model} answered with nothing.",))
    short = reply.cut_off or len(reply.text) > MAX_CHARACTERS
    faults = (f"The answer of {reply.model} was too long and is cut off.",) if short else ()
    return Asked(text, reply.usage, faults)


class _ArrivingAnswer:
    """Passes on an answer as its parts arrive.

    Args:
        told: Called with the answer so far.
        plain: Whether the text is the answer; otherwise it is in an object.
        whole: Whether to wait until the object says that nothing is missing.
    """

    def __init__(self, told: Told, *, plain: bool = False, whole: bool = False) -> None:
        self._told, self._plain, self._whole = told, plain, whole
        self._raw = self._said = ""

    def __call__(self, part: TextPart | CallPart) -> None:
        self._raw += part.text if isinstance(part, TextPart) else part.arguments
        if len(self._raw) > MAX_STREAMED:
            return
        if not self._plain and (
            not answers.is_object(self._raw) or (self._whole and not answers.lacks_nothing(self._raw))
        ):
            return
        text = self._raw.strip() if self._plain else answers.answer_so_far(self._raw).text
        if len(text) > len(self._said):
            self._said = text
            self._told(text)


def _tempered(model: ModelClient, temperature: float | None) -> ModelClient:
    return model.tempered(temperature) if temperature is not None and isinstance(model, Tempered) else model


def _ask(
    model: ModelClient,
    what: str,
    asked: Sequence[ChatMessage],
    shape: ToolSchema,
    read: Callable[[Reply], tuple[T, Faults]],
    deadline: float,
    arrived: Callable[[TextPart | CallPart], None] | None = None,
) -> Asked[T]:
    """Ask, and once more if the answer cannot be read."""
    replies = 0

    def counted(reply: Reply) -> tuple[T, Faults]:
        nonlocal replies
        replies += 1
        return read(reply)

    try:
        (answer, faults), usage = ask(
            model, asked, shape, counted, prompts.repair(), deadline=deadline, arrived=arrived
        )
    except ModelError as error:
        unread = isinstance(error, AnswerUnreadable)
        return Asked(
            None,
            error.usage,
            (_failed(what, error),),
            calls=replies + (not unread),
        )
    return Asked(answer, usage, faults, calls=replies)


def _failed(what: str, error: ModelError) -> str:
    """Return a sentence that says why the answer is missing."""
    why = one_line(str(error))
    return f"No model could {what}: {why[:FAULT_CHARACTERS]}{'…' if len(why) > FAULT_CHARACTERS else '.'}"
