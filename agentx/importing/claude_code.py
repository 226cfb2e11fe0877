"""Transcripts of Claude Code: ``~/.claude/projects/PROJECT/SESSION.jsonl``, and those of its subagents.

The format is not documented by its makers. This reads what versions 2.1.29 to 2.1.37 wrote, and what is
publicly known of earlier and later ones. The user's words are only the text of records of the type ``user``
(or of a message that waited in the queue and was taken up) that the host did not write itself.
"""

import re
from collections import deque
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
from agentx.importing.host_text import unwrapped
from agentx.importing.lines import (
    Lines,
    TranscriptLine,
    amount_in,
    as_json,
    fields_in,
    number_in,
    parts_in,
    text_in,
)

HOST = "claude-code"

_INTERRUPT = re.compile(r"\[Request interrupted by user(?: for tool use)?\]")
_REFUSED = "The user doesn't want to "
"""How the host's answer to a refused call begins; no result of a built-in tool begins like this."""

_EXIT = re.compile(r"(?:Error: )?Exit code (\d{1,3})\b")
_FROM_SERVER = "mcp__"
"""Begins the names of tools of MCP servers, which choose every word of their results and of their errors."""


def read(lines: Lines) -> Generator[TranscriptEntry]:
    """Read a transcript; see :data:`agentx.importing.entries.Read`."""
    return _Reading(lines.name).entries(lines)


class _Reading:
    """The state of reading one transcript.

    Args:
        session: The session of records that name none.
    """

    def __init__(self, session: str) -> None:
        self._session = session
        self._root = ""
        self._tools: dict[str, tuple[str, dict[str, Any]]] = {}
        self._queued: deque[str] = deque()
        self._taken_up = ""

    def entries(self, lines: Lines) -> Generator[TranscriptEntry]:
        for line in lines:
            if line.value is None:
                yield HostAside(
                    id=f"{self._session} line {line.number}", sort="not JSON", text=line.text, known=False
                )
            else:
                yield from self._record(line, line.value)

    def _record(self, line: TranscriptLine, record: dict[str, Any]) -> Iterator[TranscriptEntry]:
        session = text_in(record.get("sessionId")) or self._session
        agent = text_in(record.get("agentId"))
        sub = record.get("isSidechain") is True or bool(agent)
        yield from self._moved(record, session)
        known: dict[str, Any] = {
            "id": text_in(record.get("uuid")) or f"{self._session} line {line.number}",
            "at": text_in(record.get("timestamp")),
            "session": f"{session}/{agent}" if agent else session,
            "sub": sub,
        }
        match record.get("type"):
            case "user":
                yield from self._user(record, known)
            case "assistant":
                yield from self._assistant(record, known)
            case "progress":
                yield from self._progress(record, known)
            case "queue-operation":
                yield from self._queue(record, known)
            case "attachment":
                yield from self._attachment(record, known)
            case "system":
                yield PassedOver(**known, sort=f"system {text_in(record.get('subtype'))}".strip())
            case "file-history-snapshot":
                yield PassedOver(**known, sort="file-history-snapshot")
            case other:
                sort = text_in(other) or "without a type"
                yield HostAside(**known, sort=sort, text=as_json(record), known=False)

    def _moved(self, record: dict[str, Any], session: str) -> Iterator[TranscriptEntry]:
        """Tell where the session works: the first directory that it names."""
        root = text_in(record.get("cwd"))
        if root and not self._root:
            self._root = root
            yield ProjectRoot(id=f"{session} place", session=session, root=root)

    # --- the user's side --------------------------------------------------------------------------

    def _user(self, record: dict[str, Any], known: dict[str, Any]) -> Iterator[TranscriptEntry]:
        content = fields_in(record.get("message")).get("content")
        blocks = parts_in(content) or [{"type": "text", "text": text_in(content)}]
        synthetic = ""
        if record.get("isCompactSummary") is True:
            synthetic = "compaction summary"
        elif record.get("isMeta") is True:
            synthetic = "host message"
        elif "planContent" in record:
            synthetic = "plan"
        elif (origin := _origin(record)) not in ("", "human"):
            synthetic = origin
        for number, block in enumerate(blocks):
            own: dict[str, Any] = {**known, "id": f"{known['id']}.{number}"}
            match block.get("type"):
                case "tool_result":
                    yield self._result(block, record, own)
                case "text" if synthetic:
                    yield HostAside(**own, sort=synthetic, text=text_in(block.get("text")))
                case "text":
                    yield self._said(text_in(block.get("text")), own)
                case "image" | "document":
                    yield HostAside(**own, sort=text_in(block.get("type")), text=_without_data(block))
                case other:
                    yield HostAside(**own, sort=f"user {other}", text=as_json(block), known=False)

    def _said(self, text: str, own: dict[str, Any]) -> TranscriptEntry:
        """Tell the user's words from what the host wrote into their place."""
        if own["sub"]:  # the agent speaks to its subagent
            return AgentWords(**own, text=text)
        if _INTERRUPT.fullmatch(text.strip()):
            return HostAside(**own, sort="interrupt", text=text)
        words, wrapped = unwrapped(text)
        if not wrapped:
            return UserWords(**own, text=text)
        said = wrapped.get("command-args", "").strip()
        if said and not words:
            return UserWords(**own, text=f"{wrapped.get('command-name', '').strip()} {said}".strip())
        return UserWords(**own, text=words) if words else HostAside(**own, sort="host message", text=text)

    def _queue(self, record: dict[str, Any], known: dict[str, Any]) -> Iterator[TranscriptEntry]:
        """Read what the user typed while the agent worked: taken up, or put back into the prompt."""
        operation, content = text_in(record.get("operation")), text_in(record.get("content"))
        own: dict[str, Any] = {**known, "id": f"{known['session']} queue {known['at']} {operation}"}
        if operation == "enqueue" and content:
            self._queued.append(content)
        elif operation == "remove" and self._queued:
            self._taken_up = self._queued.popleft()
            yield self._said(self._taken_up, own)
            return
        elif operation == "popAll":
            self._queued.clear()
        elif operation == "dequeue" and self._queued:
            self._queued.popleft()  # it becomes a record of the type `user`
        yield PassedOver(**own, sort=f"queue-operation {operation}".strip())

    def _attachment(self, record: dict[str, Any], known: dict[str, Any]) -> Iterator[TranscriptEntry]:
        attached = fields_in(record.get("attachment"))
        said, taken_up = text_in(attached.get("prompt")), self._taken_up
        typed = attached.get("type") == "queued_command" and attached.get("commandMode", "prompt") == "prompt"
        if typed and said and said == taken_up:
            self._taken_up = ""
            yield PassedOver(**known, sort="attachment queued_command")
        elif typed and said:
            yield self._said(said, known)
        else:
            yield HostAside(
                **known, sort=f"attachment {text_in(attached.get('type'))}", text=as_json(attached)
            )

    # --- the agent's side -------------------------------------------------------------------------

    def _assistant(self, record: dict[str, Any], known: dict[str, Any]) -> Iterator[TranscriptEntry]:
        message = fields_in(record.get("message"))
        model = text_in(message.get("model"))
        content = message.get("content")
        blocks = parts_in(content) or [{"type": "text", "text": text_in(content)}]
        for number, block in enumerate(blocks):
            own: dict[str, Any] = {**known, "id": f"{known['id']}.{number}"}
            match block.get("type"):
                case "text" if model == "<synthetic>" or record.get("isApiErrorMessage") is True:
                    yield HostAside(**own, sort="host message", text=text_in(block.get("text")))
                case "text":
                    yield AgentWords(**own, text=text_in(block.get("text")), model=model)
                case "thinking":
                    yield Thought(**own, text=text_in(block.get("thinking")), model=model)
                case "redacted_thinking":
                    yield PassedOver(**own, sort="assistant redacted_thinking")
                case "tool_use":
                    call, tool = text_in(block.get("id")), text_in(block.get("name"))
                    self._tools[call] = (tool, fields_in(block.get("input")))
                    yield RequestedCall(**own, call_id=call, tool=tool, arguments=self._tools[call][1])
                case other:
                    yield HostAside(**own, sort=f"assistant {other}", text=as_json(block), known=False)
        if (used := fields_in(message.get("usage"))) and model != "<synthetic>":
            yield _spent(known, text_in(message.get("id")), model, used, record.get("costUSD"))

    def _result(self, block: dict[str, Any], record: dict[str, Any], own: dict[str, Any]) -> TranscriptEntry:
        call = text_in(block.get("tool_use_id"))
        tool, arguments = self._tools.get(call, ("", {}))
        output, told = _text_of(block.get("content")), record.get("toolUseResult")
        failed = block.get("is_error") is True
        refused = (
            failed
            and not tool.startswith(_FROM_SERVER)
            and output.startswith(_REFUSED)
            and (told == "User rejected tool use" or text_in(told).startswith(f"Error: {_REFUSED}"))
        )
        command = text_in(arguments.get("command")) if tool in ("Bash", "BashOutput") else ""
        exited = _EXIT.match(output) if command and failed else None
        ran = isinstance(told, dict) and not told.get("interrupted") and not told.get("backgroundTaskId")
        return CallResult(
            **own,
            call_id=call,
            output=output,
            status="DENIED" if refused else "FAILED" if failed else "SUCCEEDED",
            command=command,
            exit_code=int(exited[1]) if exited else 0 if command and ran and not failed else None,
            steps=() if failed else tuple(_steps(tool, arguments, fields_in(told))),
            duration_ms=number_in(
                fields_in(told).get("durationMs") or fields_in(told).get("totalDurationMs")
            ),
        )

    def _progress(self, record: dict[str, Any], known: dict[str, Any]) -> Iterator[TranscriptEntry]:
        """Read what a subagent says and does, which early versions tell in the session itself."""
        data = fields_in(record.get("data"))
        message, agent = fields_in(data.get("message")), text_in(data.get("agentId"))
        if data.get("type") != "agent_progress" or not message:
            yield PassedOver(**known, sort=f"progress {text_in(data.get('type'))}".strip())
            return
        own: dict[str, Any] = {
            **known,
            "id": text_in(message.get("uuid")) or known["id"],
            "at": text_in(message.get("timestamp")) or known["at"],
            "session": f"{known['session']}/{agent}",
            "sub": True,
        }
        if message.get("type") == "assistant":
            yield from self._assistant(message, own)
        else:
            yield from self._user(message, own)


def _origin(record: dict[str, Any]) -> str:
    """Return who wrote a message, as far as the host says, such as ``human`` or ``system``."""
    kind = text_in(fields_in(record.get("origin")).get("kind"))
    return kind or ("system" if record.get("promptSource") == "system" else "")


def _spent(known: dict[str, Any], call: str, model: str, used: dict[str, Any], cost: Any) -> Spent:
    cached = number_in(used.get("cache_read_input_tokens"))
    written = number_in(used.get("cache_creation_input_tokens"))
    return Spent(
        **{**known, "id": f"{known['id']}.usage"},
        call=call or known["id"],
        model=model,
        prompt_tokens=number_in(used.get("input_tokens")) + cached + written,
        completion_tokens=number_in(used.get("output_tokens")),
        cached_tokens=cached,
        cost_usd=amount_in(cost),
    )


def _text_of(content: Any) -> str:
    """Return a tool's result as text; pictures are only named."""
    if isinstance(content, str):
        return content
    parts = [
        text_in(part.get("text")) if part.get("type") == "text" else _without_data(part)
        for part in parts_in(content)
    ]
    return "\n".join(parts)


def _without_data(block: dict[str, Any]) -> str:
    source = fields_in(block.get("source"))
    size = len(text_in(source.get("data")))
    return (
        f"[{text_in(block.get('type'))} {text_in(source.get('media_type'))}: {size:,} characters of base64]"
    )


def _steps(tool: str, arguments: dict[str, Any], told: dict[str, Any]) -> Iterator[FileStep]:
    """Yield what a successful call shows of a file, from the host's own structured result if it has one."""
    path = text_in(told.get("filePath")) or text_in(arguments.get("file_path"))
    base = told.get("originalFile")
    whole = base if isinstance(base, str) else None
    match tool:
        case "Read":
            shown = fields_in(told.get("file"))
            content, count = shown.get("content"), number_in(shown.get("totalLines"))
            whole_file = count > 0 and number_in(shown.get("numLines")) == count
            if isinstance(content, str) and whole_file and number_in(shown.get("startLine")) <= 1:
                yield FileStep(path=text_in(shown.get("filePath")) or path, how="seen", content=content)
        case "Write":
            content = told.get("content", arguments.get("content"))
            if path and isinstance(content, str):
                yield FileStep(path=path, how="written", content=content, base=whole)
        case "Edit":
            yield from _edits(path, [{**arguments, **_named(told)}], whole)
        case "MultiEdit":
            yield from _edits(path, parts_in(told.get("edits")) or parts_in(arguments.get("edits")), whole)


def _named(told: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an edit as its call names them."""
    names = {"oldString": "old_string", "newString": "new_string", "replaceAll": "replace_all"}
    return {name: told[key] for key, name in names.items() if key in told}


def _edits(path: str, edits: list[dict[str, Any]], base: str | None) -> Iterator[FileStep]:
    for edit in edits if path else ():
        old, new = edit.get("old_string"), edit.get("new_string")
        if isinstance(old, str) and isinstance(new, str):
            every = edit.get("replace_all") is True
            yield FileStep(path=path, how="edited", old=old, new=new, every=every, base=base)
            base = None
