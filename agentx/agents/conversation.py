"""The conversation that a model sees: messages, tool calls and results, in the form that providers accept.

A run that was interrupted, or that waited for approval, resumes in another process: its conversation is a
fold over the history. A running one is built by the same methods, from what the model really wrote.

All providers require this invariant: a tool call is followed by its result before any other message.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from agentx.storage.events.actor import Actor
from agentx.storage.events.types import (
    AgentMessageSent,
    AgentThoughtProcess,
    Body,
    ContextProvided,
    Event,
    RunStarted,
    ToolCallExecuted,
    ToolCallRequested,
    UserMessageSent,
)
from agentx.synthesis.model.port import ChatMessage, ToolCall

ANSWER = "answer"
"""The name under which a rejected answer is recorded, as if it were a denied tool call."""

UNKNOWN_OUTCOME = (
    "The outcome of this call is unknown: the process ended while it ran. Look before you call it again."
)


KEPT = 300
"""Characters kept of a long result or argument when a conversation is shortened."""


class Conversation:
    """The conversation of one task, which may span several runs.

    Args:
        start: Seq of the user's message that opened it.
        read_body: Returns the whole text of a body.

    Attributes:
        start: As given.
        message: The user's latest message.
    """

    def __init__(self, start: int, read_body: Callable[[Body], str]) -> None:
        self.start = start
        self.message = ""
        self._read_body = read_body
        self._runs: set[str] = set()
        self._closed: list[ChatMessage] = []
        self._text = ""
        self._calls: dict[str, ToolCall] = {}
        self._results: dict[str, str] = {}
        self._heard: list[str] = []

    @property
    def messages(self) -> list[ChatMessage]:
        """The messages so far; what the user wrote while tools ran follows their results."""
        heard = [ChatMessage("user", text) for text in self._heard]
        # Text without calls was never acted upon: the process ended before the calls were recorded
        if not self._calls:
            return [*self._closed, *heard]
        results = (
            ChatMessage("tool", self._results.get(call_id, UNKNOWN_OUTCOME), tool_call_id=call_id)
            for call_id in self._calls
        )
        called = ChatMessage("assistant", self._text, tuple(self._calls.values()))
        return [*self._closed, called, *results, *heard]

    def belongs(self, run: str) -> bool:
        """Return whether a run is part of this conversation."""
        return run in self._runs

    def has_call(self, call_id: str) -> bool:
        """Return whether the conversation already contains a call with this id."""
        return call_id in self._calls or any(message.tool_call_id == call_id for message in self._closed)

    # --- methods of a running conversation ------------------------------------------------------------------

    def begin_step(self) -> None:
        """Close the previous step, because the model is about to be called again."""
        self._closed = self.messages
        self._text, self._calls, self._results, self._heard = "", {}, {}, []

    def shrink(self, max_characters: int, before: Callable[[], object] = str) -> None:
        """Shorten the oldest results and arguments where the conversation has grown too long for a model.

        It shrinks to half of the limit at once, because each change to earlier messages invalidates a
        provider's prompt cache. ``before`` is called first, to note what must not be lost.
        """
        size = sum(map(_size, self._closed))
        if size <= max_characters:
            return
        before()
        for place, message in enumerate(self._closed):
            if size <= max_characters // 2:
                break
            self._closed[place] = _shortened(message)
            size += _size(self._closed[place]) - _size(message)

    def hear(self, text: str) -> None:
        """Add a message of the user."""
        self.message = text
        self._heard.append(text)

    def think(self, text: str) -> None:
        """Add text that the model wrote beside its tool calls."""
        self._text = f"{self._text}\n{text}" if self._text else text

    def call(self, call: ToolCall) -> None:
        """Add a tool call of the model."""
        self._calls[call.id] = call

    def result(self, call_id: str, output: str) -> None:
        """Add the result of a tool."""
        self._results[call_id] = output

    def answer(self, text: str, objection: str = "") -> None:
        """Add the model's answer; with an objection, it was sent back to the model."""
        self.begin_step()
        self._closed.append(ChatMessage("assistant", text))
        if objection:
            self._closed.append(ChatMessage("user", objection))

    # --- the same from history ------------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        """Fold an event in; events of other runs, and those before the start, change nothing."""
        if event.seq < self.start:
            return
        match event.data:
            case UserMessageSent(body=body) if Actor.parse(event.actor).is_user:
                self.hear(self._read_body(body))
            case RunStarted() if event.cause == self.start:
                self._runs.add(event.run)
            case _ if event.run in self._runs:
                self._apply_own(event)

    def _apply_own(self, event: Event) -> None:
        match event.data:
            case ContextProvided():
                self.begin_step()
            case AgentThoughtProcess(body=body):
                self.think(self._read_body(body))
            case AgentMessageSent(body=body):
                self.answer(self._read_body(body))
            case ToolCallRequested(call_id=call_id, tool=tool, arguments=arguments):
                self.call(ToolCall(call_id, tool, msgspec.json.encode(arguments).decode()))
            case ToolCallExecuted(tool=tool, arguments=arguments, output=output) if tool == ANSWER:
                self.answer(str(arguments.get("text", "")), self._read_body(output))
            case ToolCallExecuted(call_id=call_id, tool=tool, arguments=arguments) as done:
                if call_id not in self._calls:
                    self.call(ToolCall(call_id, tool, msgspec.json.encode(arguments).decode()))
                result = self._read_body(done.output)
                self.result(call_id, f"{result}\n{done.noted}" if done.noted else result)


def _size(message: ChatMessage) -> int:
    return len(message.content) + sum(len(call.arguments) for call in message.tool_calls)


def _shortened(message: ChatMessage) -> ChatMessage:
    if message.role == "tool":
        return msgspec.structs.replace(message, content=_extract(message.content))
    calls: list[ToolCall] = []
    for call in message.tool_calls:
        arguments = call.arguments
        if len(arguments) > 2 * KEPT:
            values: dict[str, Any] = {}
            with suppress(msgspec.DecodeError, RecursionError):
                values = msgspec.json.decode(arguments.encode("utf-8", "replace"), type=dict[str, Any])
            short = {name: _extract(one) if isinstance(one, str) else one for name, one in values.items()}
            arguments = msgspec.json.encode(short).decode()
        calls.append(msgspec.structs.replace(call, arguments=arguments))
    return msgspec.structs.replace(message, tool_calls=tuple(calls))


def _extract(text: str) -> str:
    if len(text) <= 2 * KEPT:
        return text
    return (
        f"{text[:KEPT]}\n"
        f"[{len(text) - KEPT:,} characters more are left out here; call a tool again if you need them]"
    )
