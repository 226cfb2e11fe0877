"""Transcripts of Gemini CLI: ``~/.gemini/tmp/PROJECT/chats/session-*.json`` and ``.jsonl``, and checkpoints.

After the schema of google-gemini/gemini-cli (``packages/core/src/services/chatRecordingTypes.ts``). A
message is written again when it grew, so the last form of each counts. What was rewound stays in the
record.
"""

from collections.abc import Generator, Iterator
from typing import Any

from agentx.importing.entries import (
    AgentWords,
    CallResult,
    FileStep,
    HostAside,
    PassedOver,
    ProjectRoot,
    RequestedCall,
    Spent,
    Thought,
    TranscriptEntry,
    UserWords,
)
from agentx.importing.host_text import exit_code_in, unwrapped
from agentx.importing.lines import Lines, as_json, fields_in, number_in, parts_in, text_in

_FINISHED = {"success": "SUCCEEDED", "error": "FAILED", "cancelled": "DENIED"}


def read(lines: Lines) -> Generator[TranscriptEntry]:
    """Read a transcript; see :data:`agentx.importing.entries.Read`."""
    if lines.path.name.removesuffix(".gz").endswith(".jsonl"):
        yield from _Conversation(lines.name).entries(lines)
        return
    document = lines.document()
    lines.records = 1
    turns = document if isinstance(document, list) else fields_in(document).get("history")
    if isinstance(turns, list):
        yield from _checkpoint(lines.name, parts_in(turns))
    elif isinstance(document, dict):
        chat = _Conversation(lines.name)
        chat.take(document)
        lines.records = max(len(chat.messages), 1)
        yield from chat.told()
    else:
        yield HostAside(id=f"{lines.name} file", sort="not a transcript", text="", known=False)


class _Conversation:
    """A conversation, as its file tells it bit by bit.

    Attributes:
        messages: The last form of each message, in order.
    """

    def __init__(self, name: str) -> None:
        self.messages: dict[str, dict[str, Any]] = {}
        self._about: dict[str, Any] = {}
        self._name = name

    def entries(self, lines: Lines) -> Generator[TranscriptEntry]:
        asides = []
        for line in lines:
            record = line.value
            if record is None:
                asides.append(
                    HostAside(
                        id=f"{self._name} line {line.number}", sort="not JSON", text=line.text, known=False
                    )
                )
            elif "$rewindTo" in record:
                asides.append(
                    HostAside(
                        id=f"{self._name} line {line.number}",
                        sort="rewind",
                        text=text_in(record["$rewindTo"]),
                    )
                )
            elif isinstance(record.get("$set"), dict):
                self.take(record["$set"])
            elif "id" in record:
                self.messages[text_in(record["id"])] = record
            elif "sessionId" in record:
                self.take(record)
            else:
                asides.append(
                    HostAside(
                        id=f"{self._name} line {line.number}",
                        sort="record",
                        text=as_json(record),
                        known=False,
                    )
                )
        yield from self.told()
        yield from asides

    def take(self, about: dict[str, Any]) -> None:
        """Take in what is said of the conversation as a whole."""
        self._about |= {name: value for name, value in about.items() if name != "messages"}
        said = {_text(one.get("content")) for one in self.messages.values() if one.get("type") == "user"}
        for number, message in enumerate(parts_in(about.get("messages"))):
            name = text_in(message.get("id")) or f"message {number}"
            again = name not in self.messages and _text(message.get("content")) in said
            if not (again and message.get("type") == "user"):  # a compression gives what it keeps new ids
                self.messages[name] = message

    def told(self) -> Iterator[TranscriptEntry]:
        """Yield the entries of the messages."""
        session = text_in(self._about.get("sessionId")) or self._name
        sub = self._about.get("kind", "main") != "main"
        listed = self._about.get("directories")
        directories = (
            [place for place in listed if isinstance(place, str)] if isinstance(listed, list) else []
        )
        if directories:
            yield ProjectRoot(id=f"{session} place", session=session, root=directories[0])
        for name, message in self.messages.items():
            own: dict[str, Any] = {
                "id": name if len(name) > 8 else f"{session} {name}",  # noqa: PLR2004 - no universal id
                "at": text_in(message.get("timestamp")),
                "session": session,
                "sub": sub,
            }
            yield from _message(message, own)


def _message(message: dict[str, Any], own: dict[str, Any]) -> Iterator[TranscriptEntry]:
    sort = text_in(message.get("type"))
    text = _text(message.get("content"))
    if sort == "user":
        shown = message.get("displayContent")
        typed, wrapped = unwrapped(_text(shown) if shown is not None else text)
        if own["sub"]:
            yield AgentWords(**own, text=text)
        elif typed:
            yield UserWords(**own, text=typed if wrapped or shown is not None else text)
        if wrapped or (shown is not None and text != typed):
            yield HostAside(**{**own, "id": f"{own['id']} input"}, sort="model input", text=text)
        elif not typed:
            yield PassedOver(**own, sort="user without text")
    elif sort == "gemini":
        yield from _answer(message, text, own)
    elif sort in ("info", "error", "warning"):
        yield HostAside(**own, sort=f"host {sort}", text=text)
    else:
        yield HostAside(**own, sort=sort or "without a type", text=as_json(message), known=False)


def _answer(message: dict[str, Any], text: str, own: dict[str, Any]) -> Iterator[TranscriptEntry]:
    model = text_in(message.get("model"))
    for number, thought in enumerate(parts_in(message.get("thoughts"))):
        said = f"{text_in(thought.get('subject'))}: {text_in(thought.get('description'))}"
        at = text_in(thought.get("timestamp")) or own["at"]
        yield Thought(**{**own, "id": f"{own['id']} thought {number}", "at": at}, text=said, model=model)
    if text:
        yield AgentWords(**{**own, "id": f"{own['id']} text"}, text=text, model=model)
    for number, call in enumerate(parts_in(message.get("toolCalls"))):
        yield from _call(call, number, own)
    if used := fields_in(message.get("tokens")):
        yield Spent(
            **{**own, "id": f"{own['id']} usage"},
            call=own["id"],
            model=model,
            prompt_tokens=number_in(used.get("input")) + number_in(used.get("tool")),
            completion_tokens=number_in(used.get("output")) + number_in(used.get("thoughts")),
            cached_tokens=number_in(used.get("cached")),
        )


def _call(call: dict[str, Any], number: int, own: dict[str, Any]) -> Iterator[TranscriptEntry]:
    name = text_in(call.get("id")) or f"{own['id']} call {number}"
    tool, arguments = text_in(call.get("name")), fields_in(call.get("args"))
    at = text_in(call.get("timestamp")) or own["at"]
    known: dict[str, Any] = {**own, "at": at}
    yield RequestedCall(
        **{**known, "id": f"{own['id']} call {name}"}, call_id=name, tool=tool, arguments=arguments
    )
    status = _FINISHED.get(text_in(call.get("status")))
    if status is None:
        return  # the message is written again when it has ended
    output = _result(call.get("result")) or _text(call.get("resultDisplay"))
    command = text_in(arguments.get("command")) if tool == "run_shell_command" else ""
    code = exit_code_in(output) if command else None
    failed = status == "SUCCEEDED" and bool(code)
    yield CallResult(
        **{**known, "id": f"{own['id']} result {name}"},
        call_id=name,
        output=output,
        status="FAILED" if failed else status,  # type: ignore[arg-type]
        command=command,
        exit_code=code,
        steps=tuple(_steps(tool, arguments)) if status == "SUCCEEDED" else (),
    )


def _steps(tool: str, arguments: dict[str, Any]) -> Iterator[FileStep]:
    path = text_in(arguments.get("file_path")) or text_in(arguments.get("absolute_path"))
    if tool == "write_file" and path:
        yield FileStep(path=path, how="written", content=text_in(arguments.get("content")))
    elif tool == "replace" and path:
        old, new = text_in(arguments.get("old_string")), text_in(arguments.get("new_string"))
        every = (
            number_in(arguments.get("expected_replacements")) > 1 or arguments.get("allow_multiple") is True
        )
        yield FileStep(path=path, how="edited", old=old, new=new, every=every)


def _text(content: Any) -> str:
    """Return the text of a list of parts, or of one."""
    if isinstance(content, str):
        return content
    parts = parts_in(content) or ([content] if isinstance(content, dict) else [])
    loose = [part for part in content if isinstance(part, str)] if isinstance(content, list) else []
    return "".join([*loose, *(text_in(part.get("text")) for part in parts)])


def _result(content: Any) -> str:
    """Return what a tool answered: the output in its function responses, or their text."""
    said = []
    for part in parts_in(content):
        response = fields_in(fields_in(part.get("functionResponse")).get("response"))
        told = response.get("output", response.get("error"))
        said.append(
            told if isinstance(told, str) else as_json(response) if response else text_in(part.get("text"))
        )
    return "\n".join(said) if said else _text(content)


def _checkpoint(name: str, turns: list[dict[str, Any]]) -> Iterator[TranscriptEntry]:
    """Read a saved history: turns of parts, without times and ids."""
    waiting: dict[str, list[str]] = {}
    for number, turn in enumerate(turns):
        for place, part in enumerate(parts_in(turn.get("parts"))):
            own: dict[str, Any] = {"id": f"{name} turn {number}.{place}", "session": name}
            called, answered = fields_in(part.get("functionCall")), fields_in(part.get("functionResponse"))
            if called:
                tool = text_in(called.get("name"))
                call = text_in(called.get("id")) or own["id"]
                waiting.setdefault(tool, []).append(call)
                yield RequestedCall(**own, call_id=call, tool=tool, arguments=fields_in(called.get("args")))
            elif answered:
                queue = waiting.get(text_in(answered.get("name")), [])
                call = text_in(answered.get("id")) or (queue.pop(0) if queue else own["id"])
                yield CallResult(**own, call_id=call, output=_result([part]))
            elif turn.get("role") == "model":
                kind = Thought if part.get("thought") is True else AgentWords
                yield kind(**own, text=text_in(part.get("text")))
            elif words := unwrapped(text_in(part.get("text")))[0]:
                # The first turn is the host's own: it describes the directory and the day.
                yield (
                    HostAside(**own, sort="model input", text=words)
                    if number == 0
                    else UserWords(**own, text=words)
                )
            else:
                yield HostAside(**own, sort="model input", text=as_json(part))
