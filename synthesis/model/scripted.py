"""A model whose words are read from a file: what it says is canned, and everything else of a run is real.

A script is JSON Lines (or one JSON array): one entry for each turn of the model, in order. ::

    {"thought": "I look first.", "tool_calls": [{"name": "read_file", "arguments": {"path": "a.py"}}]}
    {"expect": ["never mention Elon Musk"], "answer": "The outlook is in report.md."}

``expect`` names phrases that must stand in what the model is shown for its turn to be played. So a recorded run cannot
claim that memory put something before the model when it did not.

A turn with ``when`` or ``folder`` stands outside of that order: it is played whenever all phrases of its ``when`` stand in
what the model is shown, whatever was played before, so any number of agents may be asked at once. ::

    {"when": ["You are the Writer"], "folder": "words"}

``folder`` holds files, and the turn writes those that the agent may write. So the words of many agents lie where a person reads
them, one file for each that they make.
"""

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from agentx.synthesis.model.port import ChatMessage, ModelError, Reply, TextPart, ToolCall, ToolSchema, Usage

WRITES = "write_file"
"""The tool that a ``folder`` is played with; the ``enum`` of its ``path`` names what the agent may write."""

_WORDS = re.compile(r"\S+\s*|\s+")
_ROUND = re.compile(r"\bRound (\d+)")
_ATTEMPT = re.compile(r"\bAttempt (\d+)")


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
        when: Phrases, as in ``expect``: the turn is played whenever all of them are shown, and the first such turn wins.
        folder: Directory, relative to the script, of the files that it writes, as they lie among the artifacts. The words for
            the second round of ``a/b.md`` are those of ``a/b~2.md``, for the second attempt of the first round ``a/b~1.2.md``:
            the latest that there are. When its calls were answered it says that it is done.
    """

    thought: str = ""
    tool_calls: tuple[ScriptedCall, ...] = ()
    answer: str = ""
    expect: tuple[str, ...] = ()
    when: tuple[str, ...] = ()
    folder: str = ""

    def __post_init__(self) -> None:
        """Refuse a turn that is two things: an answer ends the model's turn, and a folder is all of it.

        Raises:
            ValueError: It is.
        """
        if self.answer and (self.thought or self.tool_calls):
            raise ValueError("an `answer` stands alone; words before a tool call are a `thought`")
        if self.folder and (self.answer or self.thought or self.tool_calls):
            raise ValueError("a `folder` stands alone, with what it is played `when`")

    @property
    def is_free(self) -> bool:
        """Whether it stands outside of the order."""
        return bool(self.when or self.folder)


class ScriptedModel:
    """A model that plays the turns of a script, one for each call.

    The first turn to be played is the one after those that the conversation already holds, so that a run which goes
    on in another process goes on in its script. Turns outside of the order may be played by many threads at once.

    Args:
        path: The script.

    Raises:
        ModelError: The file cannot be read, or is no script; the sentence names the entry.
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

        Tokens are counted as four characters each, and cost nothing.

        Raises:
            ModelError: The script has run out, or what the turn expects is not in ``messages``, or a folder lacks a file.
        """
        del timeout_s  # nothing is waited for
        shown = _plain(
            "\n".join([*(message.content for message in messages), *(tool.name for tool in tools)])
        )
        place, turn, mark = self._choose(messages, shown)
        for phrase in turn.expect:
            if _plain(phrase) not in shown:
                raise ModelError(
                    f"{self.name} stops at turn {place}: it expects the model to be shown “{phrase}”, "
                    "and that stands nowhere in its messages"
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
        """The turn to play, its place, and where it stands outside of the order a mark for its calls."""
        for place, turn in self._free:
            if all(_plain(phrase) in shown for phrase in turn.when):
                return place, turn, blake2b(shown.encode(), digest_size=6).hexdigest()
        answered = sum(message.role == "assistant" for message in messages)
        place = max(self._played, answered) + 1
        if place > len(self._turns):
            raise ModelError(
                f"{self.name} has run out: it has {len(self._turns)} turns and the run is not at its end; "
                "add a turn with an `answer`, or use a real model"
                + " (no `when` of the script stands in what the model is shown)"
                * bool(self._free)
            )
        return place, self._turns[place - 1], ""

    def _from_folder(
        self, folder: Path, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema]
    ) -> ScriptedTurn:
        """The turn that writes the files of a folder, or the one that ends the run when they are written."""
        if any(message.role == "assistant" for message in messages):
            return ScriptedTurn(answer="Done.")
        paths = next((_paths_of(tool) for tool in tools if tool.name == WRITES), ())
        if not paths:
            raise ModelError(
                f"{self.name} plays the folder {folder}, and the agent has no tool {WRITES} with an `enum` of paths; "
                "play it with a pipeline, or write the calls as `tool_calls`"
            )
        asked = "\n".join(message.content for message in messages)
        version = (_number(_ROUND, asked), _number(_ATTEMPT, asked))
        calls = [
            ScriptedCall(WRITES, {"path": path, "content": _words_for(folder / path, version)})
            for path in paths
        ]
        return ScriptedTurn(tool_calls=tuple(calls))


def _paths_of(tool: ToolSchema) -> Sequence[str]:
    paths: Sequence[str] = tool.parameters.get("properties", {}).get("path", {}).get("enum", ())
    return paths


def _number(pattern: re.Pattern[str], text: str) -> int:
    """The number that the prompt names first; 1 where it names none."""
    found = pattern.search(text)
    return int(found[1]) if found else 1


def _words_for(path: Path, version: tuple[int, int]) -> str:
    """The words for a file in a round and an attempt: the latest version of them that is not later than that.

    Raises:
        ModelError: There is none.
    """
    there: dict[tuple[int, int], Path] = {}
    for file in (path, *path.parent.glob(f"{path.stem}~*{path.suffix}")):
        number, _, attempt = file.stem.removeprefix(path.stem).removeprefix("~").partition(".")
        if file.is_file() and (number or "1").isdecimal() and (attempt or "1").isdecimal():
            there[int(number or 1), int(attempt or 1)] = file
    known = [one for one in there if one <= version]
    if not known:
        raise ModelError(f"there are no words for {path.name}: put them into {path}")
    try:
        return there[max(known)].read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"the words in {there[max(known)]} cannot be read: {error}") from error


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
            'write {"thought": …, "tool_calls": [{"name": …, "arguments": {…}}]}, {"answer": …} or {"folder": …}'
        ) from error


def _raw(arguments: dict[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
