"""A model that plays recorded turns from a file; everything else in the run is real.

A script is JSON Lines (or one JSON array), with one entry for each turn of the model, in order. ::

    {"thought": "I look first.", "tool_calls": [{"name": "read_file", "arguments": {"path": "a.py"}}]}
    {"expect": ["never mention Elon Musk"], "answer": "The outlook is in report.md."}

``expect`` lists phrases that the messages to the model must contain for the turn to be played. So a recorded
run cannot claim that memory showed something to the model when it did not.

A turn with ``when`` or ``folder`` is not part of this order. It is played whenever the messages contain all
phrases of its ``when``, whatever was played before. So any number of agents may call the model at once. ::

    {"when": ["You are the Writer"], "folder": "words"}

``folder`` names a directory of files; the turn writes those that the agent may write. So the texts of many
agents are readable files, one for each file that an agent writes.
"""

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from agentx.storage.text import folded
from agentx.synthesis.model.port import ChatMessage, ModelError, Reply, TextPart, ToolCall, ToolSchema, Usage

WRITES = "write_file"
"""The tool that a ``folder`` turn calls; the ``enum`` of its ``path`` lists what the agent may write."""

_WORDS = re.compile(r"\S+\s*|\s+")
_ROUND = re.compile(r"\bRound (\d+)")
_ATTEMPT = re.compile(r"\bAttempt (\d+)")


class ScriptedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call of a script; ``arguments`` as text are passed on unchanged, well-formed JSON or not."""

    name: str
    arguments: dict[str, Any] | str = {}


class ScriptedTurn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One turn of the model.

    Attributes:
        thought: Text before its tool calls.
        tool_calls: The tools that it calls.
        answer: Text for the user; ends its turn.
        expect: Phrases that its messages (or the names of its tools) must contain; letter case and the kind
            of white space are ignored.
        when: Phrases, as in ``expect``. The turn is played whenever all of them are shown; the first such
            turn wins.
        folder: Directory, relative to the script, of the files that it writes, with the same paths as among
            the artifacts. For ``a/b.md``, the text of the second round is in ``a/b~2.md``, that of the second
            attempt of the first round in ``a/b~1.2.md``. If a version is missing, the latest earlier one is
            used. After its calls were answered, it answers that it is done.
    """

    thought: str = ""
    tool_calls: tuple[ScriptedCall, ...] = ()
    answer: str = ""
    expect: tuple[str, ...] = ()
    when: tuple[str, ...] = ()
    folder: str = ""

    def __post_init__(self) -> None:
        """Refuse a turn that combines an answer or a folder with other content."""
        if self.answer and (self.thought or self.tool_calls):
            raise ValueError(
                "an `answer` cannot be combined with other keys; text before a tool call is a `thought`"
            )
        if self.folder and (self.answer or self.thought or self.tool_calls):
            raise ValueError("a `folder` can only be combined with `when`")

    @property
    def is_free(self) -> bool:
        """Whether it may be played at any time, outside the order."""
        return bool(self.when or self.folder)


class ScriptedModel:
    """A model that plays the turns of a script, one for each call.

    It starts after the turns that the conversation already contains, so that a run resumed in another process
    continues its script. Several threads may play turns outside the order at once. Raises
    :class:`ModelError`, which names the entry, if the file cannot be read or is not a script.
    """

    def __init__(self, path: str | Path) -> None:
        self.name = f"script:{path}"
        self._home = Path(path).parent
        turns = _read_turns(Path(path))
        self._turns = [turn for turn in turns if not turn.is_free]
        self._free = [(place, turn) for place, turn in enumerate(turns, start=1) if turn.is_free]
        self._played = 0

    def stream(
        self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = (), *, timeout_s: float = 120.0
    ) -> Iterator[TextPart | Reply]:
        """Play the next turn, word by word.

        A token counts as four characters and costs nothing.

        Raises:
            ModelError: The script has run out, an expected phrase is missing from ``messages``, or a folder
                lacks a file.
        """
        del timeout_s  # a script answers at once
        shown = folded("\n".join([*(one.content for one in messages), *(tool.name for tool in tools)]))
        place, turn, mark = self._choose(messages, shown)
        for phrase in turn.expect:
            if folded(phrase) not in shown:
                raise ModelError(
                    f"{self.name} stops at turn {place}: it expects “{phrase}” in the messages to the "
                    "model, and they do not contain it"
                )
        if turn.folder:
            turn = self._from_folder(self._home / turn.folder, messages, tools)
        if not mark:
            self._played, mark = place, str(place)
        text = turn.answer or turn.thought
        for word in _WORDS.findall(text):
            yield TextPart(word)
        calls = tuple(
            ToolCall(f"call_{mark}_{number}", call.name, _raw(call.arguments))
            for number, call in enumerate(turn.tool_calls, start=1)
        )
        written = len(text) + sum(len(call.arguments) for call in calls)
        yield Reply(text, calls, Usage(len(shown) // 4, written // 4), self.name)

    def _choose(self, messages: Sequence[ChatMessage], shown: str) -> tuple[int, ScriptedTurn, str]:
        """Return the place of the turn to play, the turn, and a mark for its calls (empty if in order)."""
        for place, turn in self._free:
            if all(folded(phrase) in shown for phrase in turn.when):
                return place, turn, blake2b(shown.encode(), digest_size=6).hexdigest()
        answered = sum(message.role == "assistant" for message in messages)
        place = max(self._played, answered) + 1
        if place > len(self._turns):
            unmatched = " (no `when` of the script matches the messages)" if self._free else ""
            raise ModelError(
                f"{self.name} has run out: it has {len(self._turns)} turn{'s' * (len(self._turns) != 1)}, "
                "and the run is not finished; "
                f"add a turn with an `answer`, or use a real model{unmatched}"
            )
        return place, self._turns[place - 1], ""

    def _from_folder(
        self, folder: Path, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema]
    ) -> ScriptedTurn:
        """Return the turn that writes the files of a folder, or the final turn once they are written."""
        if any(message.role == "assistant" for message in messages):
            return ScriptedTurn(answer="Done.")
        schema = next((tool.parameters for tool in tools if tool.name == WRITES), {})
        paths: Sequence[str] = schema.get("properties", {}).get("path", {}).get("enum", ())
        if not paths:
            raise ModelError(
                f"{self.name} plays the folder {folder}, "
                f"and the agent has no tool {WRITES} with an `enum` of paths; "
                "play it with a pipeline, or write the calls as `tool_calls`"
            )
        asked = "\n".join(message.content for message in messages)
        matches = (pattern.search(asked) for pattern in (_ROUND, _ATTEMPT))
        number, attempt = (int(match[1]) if match else 1 for match in matches)
        texts = {path: _words_for(folder / path, (number, attempt)) for path in paths}
        calls = (ScriptedCall(WRITES, {"path": path, "content": text}) for path, text in texts.items())
        return ScriptedTurn(tool_calls=tuple(calls))


def _words_for(path: Path, version: tuple[int, int]) -> str:
    """Return the text for a file in a round and an attempt: its latest version up to that point."""
    there: dict[tuple[int, int], Path] = {}
    for file in (path, *path.parent.glob(f"{path.stem}~*{path.suffix}")):
        number, _, attempt = file.stem.removeprefix(path.stem).removeprefix("~").partition(".")
        if file.is_file() and (number or "1").isdecimal() and (attempt or "1").isdecimal():
            there[int(number or 1), int(attempt or 1)] = file
    known = [one for one in there if one <= version]
    if not known:
        raise ModelError(f"no text was found for {path.name}: write it to {path}")
    try:
        return there[max(known)].read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"the text in {there[max(known)]} cannot be read: {error}") from error


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
            f"{where} is not a turn of a model ({error}); "
            'write {"thought": …, "tool_calls": [{"name": …, "arguments": {…}}]}, '
            '{"answer": …} or {"folder": …}'
        ) from error


def _raw(arguments: dict[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
