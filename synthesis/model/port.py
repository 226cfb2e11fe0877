"""The interface of a model client: it takes messages and tools and returns a stream of parts."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from agentx.storage.errors import AgentXError


class ModelError(AgentXError):
    """A model could not answer; the message says what to set or to try.

    Attributes:
        retryable: Whether the same call may succeed later.
        usage: Usage of the failed calls, as far as it is known.
        too_many_calls: Whether the provider refused the call because there were too many.
        retry_after_s: How long the provider asks to wait, in seconds; 0 if it did not say.
    """

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = False,
        too_many_calls: bool = False,
        retry_after_s: float = 0.0,
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.too_many_calls, self.retry_after_s = too_many_calls, retry_after_s
        self.usage = Usage()


class ToolCall(msgspec.Struct, frozen=True):
    """A tool call as the model made it; ``arguments`` is the raw text, which may not be JSON."""

    id: str
    name: str
    arguments: str


class ChatMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of a conversation with a model."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""


class ToolSchema(msgspec.Struct, frozen=True):
    """A tool as it is described to a model; ``parameters`` is the JSON schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]


class TextPart(msgspec.Struct, frozen=True):
    """A part of the answer's text, as it arrives."""

    text: str


class CallPart(msgspec.Struct, frozen=True):
    """A part of the arguments of a tool call, as it arrives."""

    arguments: str


class Usage(msgspec.Struct, frozen=True):
    """The tokens and the cost of a call; ``cost_usd`` is 0 if the price is not known."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cost_usd + other.cost_usd,
        )


class Reply(msgspec.Struct, frozen=True):
    """The whole answer, as the last part of every stream.

    Attributes:
        cut_off: Whether the provider's output limit truncated the answer.
    """

    text: str
    tool_calls: tuple[ToolCall, ...]
    usage: Usage
    model: str
    cut_off: bool = False


class ModelClient(Protocol):
    """A client that calls one model."""

    name: str

    def stream(
        self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = (), *, timeout_s: float = 120.0
    ) -> "Iterator[TextPart | CallPart | Reply]":
        """Call the model; yield parts as they arrive and end with exactly one :class:`Reply`.

        A client may leave out the parts of tool calls, which the reply has too.

        Args:
            messages: The conversation.
            tools: The tools that the model may call.
            timeout_s: Time limit of the call, in seconds.

        Raises:
            ModelError: The model could not be reached, refused, broke off, or gave an unreadable answer.
        """
        ...


@runtime_checkable
class Tempered(Protocol):
    """A model whose temperature can be set."""

    def tempered(self, temperature: float) -> ModelClient:
        """Return the same model at a temperature; 0 gives the least random answers."""
        ...
