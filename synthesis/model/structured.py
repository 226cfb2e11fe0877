"""Asking a model for an answer of one shape: it is asked once more where the answer cannot be read, and then not again."""

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from agentx.synthesis.model.port import ChatMessage, ModelClient, ModelError, Reply, ToolSchema, Usage

MAX_CHARACTERS = 400_000
"""A longer answer is none."""

SHOWN_AGAIN = 8_000
"""So much of a wrong answer is shown to the model that is to mend it."""

T = TypeVar("T")


class AnswerUnreadable(ModelError):
    """A model's answer is not of the shape that it was asked for."""


def ask(
    model: ModelClient,
    asked: Sequence[ChatMessage],
    shape: ToolSchema,
    read: Callable[[Reply], T],
    repair: str,
    *,
    deadline: float,
) -> tuple[T, Usage]:
    """Ask, and once more where the answer cannot be read.

    Args:
        model: Who is asked.
        asked: The conversation.
        shape: The tool that it answers with; nothing runs when it is called.
        read: Reads a reply, and raises :class:`AnswerUnreadable` where it cannot.
        repair: What it is told then, with ``{error}`` for what was wrong.
        deadline: ``time.monotonic()`` by which the answer must be there.

    Returns:
        The answer, and what both calls used.

    Raises:
        AnswerUnreadable: Not even the second answer could be read.
        ModelError: The model could not be reached, or not in time. Both errors tell what was used.
    """
    first = reply_of(model, asked, [shape], deadline)
    try:
        return read(first), first.usage
    except AnswerUnreadable as error:
        told = repair.format(error=error)
    wrong = first.text or "\n".join(call.arguments for call in first.tool_calls)
    again = [
        *asked,
        ChatMessage("assistant", wrong[:SHOWN_AGAIN] or "(nothing)"),
        ChatMessage("user", told),
    ]
    used = first.usage
    try:
        second = reply_of(model, again, [shape], deadline)
        used += second.usage
        return read(second), used
    except ModelError as error:
        error.usage = used
        raise


def object_of(reply: Reply, tool: str) -> dict[str, Any]:
    """The JSON object of a reply: the arguments of the tool, or what stands in its text; prose and fences do not matter.

    Raises:
        AnswerUnreadable: There is none; the sentence can be shown to the model.
    """
    text = next((call.arguments for call in reply.tool_calls if call.name == tool), "") or reply.text
    if len(text) > MAX_CHARACTERS:
        raise AnswerUnreadable(
            f"the answer of {reply.model} has {len(text):,} characters; {MAX_CHARACTERS:,} are read"
        )
    piece = text[max(text.find("{"), 0) : text.rfind("}") + 1]
    try:
        decoded: dict[str, Any] = msgspec.json.decode(piece.encode("utf-8", "replace"), type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise AnswerUnreadable(f"the answer of {reply.model} is no JSON object ({error})") from error
    return decoded


def reply_of(
    model: ModelClient, asked: Sequence[ChatMessage], tools: Sequence[ToolSchema], deadline: float
) -> Reply:
    """What a model replies in time, whole.

    Args:
        model: Who is asked.
        asked: The conversation.
        tools: What it may call.
        deadline: ``time.monotonic()`` by which the reply must be there.

    Raises:
        ModelError: The model could not be reached, or not in time, or failed in any other way.
    """
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise ModelError(
            f"{model.name} did not answer in time; run again, or allow more time", retryable=True
        )
    try:
        for part in model.stream(asked, tools, timeout_s=left_s):
            if isinstance(part, Reply):
                return part
    except ModelError:
        raise
    except (
        Exception
    ) as error:  # a client of one's own may fail in any way, and whoever asks goes on without an answer
        raise ModelError(f"{model.name} failed: {type(error).__name__}: {error}") from error
    raise ModelError(f"{model.name} ended its stream without a reply")
