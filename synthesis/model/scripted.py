"""A model whose words are read from a file: what it says is canned, and everything else of a run is real.

A script is JSON Lines (or one JSON array): one entry for each turn of the model, in order. ::

    {"thought": "I look first.", "tool_calls": [{"name": "read_file", "arguments": {"path": "a.py"}}]}
    {"expect": ["never mention Elon Musk"], "answer": "The outlook is in report.md."}

``expect`` names phrases that must stand in what the model is shown for its turn to be played. So a recorded run cannot
claim that memory put something before the model when it did not.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from agentx.synthesis.model.port import ChatMessage, ModelError, Reply, TextPart, ToolCall, ToolSchema, Usage

_WORDS = re.compile(r"\S+\s*|\s+")


class ScriptedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call of a script; ``arguments`` as text stands for what a model wrote, well-formed or not."""

    name: str
    arguments: dict[str, Any] | str = {}


class ScriptedTurn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One turn of the model.

    Attributes:
        thought: What it says before its tool calls.
        tool_calls: The tools that it calls.
        answer: What it says to the user; ends its turn.
        expect: Phrases that must stand in the messages (or in the tools' names) that it is shown; the case
            of letters and the kind of white space do not matter.
    """

    thought: str = ""
    tool_calls: tuple[ScriptedCall, ...] = ()
    answer: str = ""
    expect: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a turn that is both: an answer ends the model's turn."""
        if self.answer and (self.thought or self.tool_calls):
            raise ValueError("an `answer` stands alone; words before a tool call are a `thought`")


class ScriptedModel:
    """A model that plays the turns of a script, one for each call.

    The first turn to be played is the one after those that the conversation already holds, so that a run which goes
    on in another process goes on in its script.

    Args:
        path: The script.

    Raises:
        ModelError: The file cannot be read, or is no script; the sentence names the entry.
    """

    def __init__(self, path: str | Path) -> None:
        self.name = f"script:{path}"
        self._turns = _read_turns(Path(path))
        self._played = 0

    def stream(
        self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = (), *, timeout_s: float = 120.0
    ) -> Iterator[TextPart | Reply]:
        """Play the next turn, word by word.

        Tokens are counted as four characters each, and cost nothing.

        Raises:
            ModelError: The script has run out, or what the turn expects is not in ``messages``.
        """
        del timeout_s  # nothing is waited for
        answered = sum(message.role == "assistant" for message in messages)
        place = max(self._played, answered) + 1
        if place > len(self._turns):
            raise ModelError(
                f"{self.name} has run out: it has {len(self._turns)} turns and the run is not at its end; "
                "add a turn with an `answer`, or use a real model"
            )
        turn = self._turns[place - 1]
        shown = _plain(
            "\n".join([*(message.content for message in messages), *(tool.name for tool in tools)])
        )
        for phrase in turn.expect:
            if _plain(phrase) not in shown:
                raise ModelError(
                    f"{self.name} stops at turn {place}: it expects the model to be shown “{phrase}”, "
                    "and that stands nowhere in its messages"
                )
        self._played = place
        text = turn.answer or turn.thought
        for word in _WORDS.findall(text):
            yield TextPart(word)
        calls = tuple(
            ToolCall(f"call_{place}_{number}", call.name, _raw(call.arguments))
            for number, call in enumerate(turn.tool_calls, start=1)
        )
        written = len(text) + sum(len(call.arguments) for call in calls)
        yield Reply(text, calls, Usage(len(shown) // 4, written // 4), self.name)


def _read_turns(path: Path) -> list[ScriptedTurn]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelError(f"the script {path} cannot be read: {error.strerror}; check the path") from error
    if data.lstrip().startswith(b"["):
        turns: list[ScriptedTurn] = _decode(data, list[ScriptedTurn], f"the script {path}")
        return turns
    return [
        _decode(line, ScriptedTurn, f"line {number} of the script {path}")
        for number, line in enumerate(data.splitlines(), start=1)
        if line.strip()
    ]


def _decode(data: bytes, shape: Any, where: str) -> Any:
    try:
        return msgspec.json.decode(data, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ModelError(
            f"{where} is no turn of a model ({error}); "
            'write {"thought": …, "tool_calls": [{"name": …, "arguments": {…}}]} or {"answer": …}'
        ) from error


def _raw(arguments: dict[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
