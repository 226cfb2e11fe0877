"""What a model is shown of its own work: messages, tool calls and their results, in the form that providers accept.

A run that was interrupted, or that waited for a person, goes on in another process: its conversation is a fold over
the history. A running one is kept with the same verbs, from what the model really said.

The invariant that every provider insists on: a tool call is followed by its result before anything else is said.
"""

from collections.abc import Callable
from typing import Any

import msgspec

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
"""The name under which an answer that was sent back is recorded, as if it were a tool that was denied."""

UNKNOWN_OUTCOME = (
    "The outcome of this call is unknown: the process ended while it ran. Look before you call it again."
)


KEPT = 300
"""Characters kept of a long result or argument when a conversation is shortened."""


class Conversation:
    """The conversation of one task, which may span several runs.

    Args:
        start: Seq of the user's message that opened it.
        read_body: Gives the whole text of a body.

    Attributes:
        start: As given.
        message: What the user said last.
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
        """The messages so far; what the user said while tools ran stands behind their results."""
        return [*self._closed, *self._open_step()]

    def belongs(self, run: str) -> bool:
        """Whether a run is part of this conversation."""
        return run in self._runs

    def has_call(self, call_id: str) -> bool:
        """Whether a call of this id stands in the conversation already."""
        return call_id in self._calls or any(message.tool_call_id == call_id for message in self._closed)

    # --- the verbs of a running conversation ----------------------------------------------------------------

    def begin_step(self) -> None:
        """The model is about to be asked: what it said before is complete."""
        self._closed = self.messages
        self._text, self._calls, self._results, self._heard = "", {}, {}, []

    def shrink(self, max_characters: int, before: Callable[[], object] = str) -> None:
        """Shorten the oldest results and arguments where the conversation has grown too long for a model.

        Args:
            max_characters: How long it may be.
            before: Is called before anything is left out, to note what must not be lost.

        It goes down to half of the limit at once: each change to what was said before costs a provider's prompt cache.
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
        """The user said something."""
        self.message = text
        self._heard.append(text)

    def think(self, text: str) -> None:
        """The model said something beside its tool calls."""
        self._text = f"{self._text}\n{text}" if self._text else text

    def call(self, call: ToolCall) -> None:
        """The model called a tool."""
        self._calls[call.id] = call

    def result(self, call_id: str, output: str) -> None:
        """A tool answered."""
        self._results[call_id] = output

    def answer(self, text: str, objection: str = "") -> None:
        """The model answered; with an objection, the answer was sent back to it."""
        self.begin_step()
        self._closed.append(ChatMessage("assistant", text))
        if objection:
            self._closed.append(ChatMessage("user", objection))

    def _open_step(self) -> list[ChatMessage]:
        heard = [ChatMessage("user", text) for text in self._heard]
        if (
            not self._calls
        ):  # words alone were never acted upon: the process ended before their calls were recorded
            return heard
        return [
            ChatMessage("assistant", self._text, tuple(self._calls.values())),
            *(
                ChatMessage("tool", self._results.get(call_id, UNKNOWN_OUTCOME), tool_call_id=call_id)
                for call_id in self._calls
            ),
            *heard,
        ]

    # --- the same, from history -----------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        """Fold an event in; those of other runs, and those before the conversation began, leave it as it is."""
        if event.seq < self.start:
            return
        match event.data:
            case UserMessageSent(body=body) if event.actor.partition(":")[0] == "user":
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
                answered = self._read_body(done.output)
                self.result(call_id, f"{answered}\n{done.noted}" if done.noted else answered)


def _size(message: ChatMessage) -> int:
    return len(message.content) + sum(len(call.arguments) for call in message.tool_calls)


def _shortened(message: ChatMessage) -> ChatMessage:
    if message.role == "tool":
        return msgspec.structs.replace(message, content=_extract(message.content))
    calls = tuple(
        msgspec.structs.replace(call, arguments=_short_arguments(call.arguments))
        for call in message.tool_calls
    )
    return msgspec.structs.replace(message, tool_calls=calls)


def _short_arguments(arguments: str) -> str:
    if len(arguments) <= 2 * KEPT:
        return arguments
    try:
        values = msgspec.json.decode(arguments.encode("utf-8", "replace"), type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return "{}"
    short = {name: _extract(value) if isinstance(value, str) else value for name, value in values.items()}
    return msgspec.json.encode(short).decode()


def _extract(text: str) -> str:
    if len(text) <= 2 * KEPT:
        return text
    return f"{text[:KEPT]}\n[{len(text) - KEPT:,} characters more are left out here; call a tool again if you need them]"
