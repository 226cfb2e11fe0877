"""Ask a model for an answer of a given shape, with one retry if the answer cannot be read.

The prompts and the shapes of answers are files in ``synthesis/prompts``.
"""

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any, TypeVar

import msgspec

from agentx.synthesis.model.port import (
    CallPart,
    ChatMessage,
    ModelClient,
    ModelError,
    Reply,
    TextPart,
    ToolSchema,
    Usage,
)

MAX_CHARACTERS = 400_000
"""Maximum length of an answer; a longer one counts as unreadable."""

SHOWN_AGAIN = 8_000
"""Maximum characters of a wrong answer that the model is shown when it must correct it."""

T = TypeVar("T")


class AnswerUnreadable(ModelError):
    """A model's answer does not have the requested shape."""


def ask(
    model: ModelClient,
    asked: Sequence[ChatMessage],
    shape: ToolSchema,
    read: Callable[[Reply], T],
    repair: str,
    *,
    deadline: float,
    arrived: Callable[[TextPart | CallPart], None] | None = None,
) -> tuple[T, Usage]:
    """Ask a model, and retry once if the answer cannot be read.

    Args:
        model: The model.
        asked: The conversation.
        shape: The tool with which it answers; calling it runs nothing.
        read: Parses a reply; raises :class:`AnswerUnreadable` if it cannot.
        repair: The message before the retry, with ``{error}`` for the error.
        deadline: Value of ``time.monotonic()`` by which the answer must have arrived.
        arrived: Called with each part of the first answer as it arrives.

    Returns:
        The answer, and the total usage of the calls.

    Raises:
        AnswerUnreadable: The second answer could not be read either.
        ModelError: The model could not be reached, or not in time. Both errors carry the usage.
    """
    first = reply_of(model, asked, [shape], deadline, arrived)
    try:
        return read(first), first.usage
    except AnswerUnreadable as error:
        correction = ChatMessage("user", repair.format(error=error))
    wrong = first.text or "\n".join(call.arguments for call in first.tool_calls)
    again = [*asked, ChatMessage("assistant", wrong[:SHOWN_AGAIN] or "(nothing)"), correction]
    used = first.usage
    try:
        second = reply_of(model, again, [shape], deadline)
        used += second.usage
        return read(second), used
    except ModelError as error:
        error.usage = used
        raise


def object_of(reply: Reply, tool: str) -> dict[str, Any]:
    """Return the JSON object of a reply: the arguments of the tool, else the object in its text.

    Prose and code fences around the object are ignored. Raises :class:`AnswerUnreadable`, with a sentence for
    the model, if it has no object.
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
        raise AnswerUnreadable(f"the answer of {reply.model} is not a JSON object ({error})") from error
    return decoded


def reply_of(
    model: ModelClient,
    asked: Sequence[ChatMessage],
    tools: Sequence[ToolSchema],
    deadline: float,
    arrived: Callable[[TextPart | CallPart], None] | None = None,
) -> Reply:
    """Return the complete reply of a model, by ``deadline`` on the clock of ``time.monotonic()``.

    ``arrived`` is called with each part before it. Raises :class:`ModelError` if the model was too late or
    failed in any way.
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
            if arrived is not None:
                arrived(part)
    except ModelError:
        raise
    # A client from elsewhere may raise any exception; the caller must be able to continue without an answer.
    except Exception as error:
        raise ModelError(f"{model.name} failed: {type(error).__name__}: {error}") from error
    raise ModelError(f"{model.name} ended its stream without a reply")


@lru_cache
def prompt(name: str) -> str:
    """Return the text of a file in ``synthesis/prompts``."""
    return (files("agentx.synthesis") / "prompts" / name).read_text("utf-8")


def parameters(name: str) -> dict[str, Any]:
    """Return a JSON schema from a file in ``synthesis/prompts``, which defines the shape of an answer."""
    return msgspec.json.decode(prompt(name), type=dict[str, Any])
