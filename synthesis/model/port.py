"""The port of a model: messages and tools go in, a stream of parts comes out."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from agentx.storage.errors import AgentXError


class ModelError(AgentXError):
    """A model could not answer; the sentence says what to set or to try.

    Attributes:
        retryable: Whether the same call may go through later.
        usage: What asking in vain used, as far as that is known.
    """

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable
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
    """A tool as a model is told of it; ``parameters`` is a JSON schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]


class TextPart(msgspec.Struct, frozen=True):
    """Some text of the answer, as it arrives."""

    text: str


class Usage(msgspec.Struct, frozen=True):
    """What a call used; ``cost_usd`` is 0 where the price is not known."""

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
        cut_off: Whether the provider's limit on output ended it in the middle.
    """

    text: str
    tool_calls: tuple[ToolCall, ...]
    usage: Usage
    model: str
    cut_off: bool = False


class ModelClient(Protocol):
    """A model that can be asked."""

    name: str

    def stream(
        self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = (), *, timeout_s: float = 120.0
    ) -> Iterator[TextPart | Reply]:
        """Ask; yields text as it comes and ends with exactly one :class:`Reply`.

        Raises:
            ModelError: The model could not be reached, refused, or answered in no form that can be read.
        """
        ...


@runtime_checkable
class Tempered(Protocol):
    """A model that can be told how freely to answer."""

    def tempered(self, temperature: float) -> ModelClient:
        """The same model at a temperature; 0 is the least free."""
        ...
