"""Transcripts of Codex: ``~/.codex/sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl``.

After the schema of openai/codex (``codex-rs/protocol``: ``RolloutLine``, ``ResponseItem``, ``EventMsg``),
versions 0.40 to 0.171. In these, the items of the role ``user`` hold what the host tells the model, too, so
the user's words are only the events ``user_message``, and later the completed items ``UserMessage``. In a
file with a parent they are an agent's, who speaks to its subagent. Files of earlier versions have bare items;
there the items count that are not wrapped in the host's tags.
"""

import shlex
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

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
from agentx.importing.lines import Lines, amount_in, as_json, fields_in, number_in, parts_in, text_in

if TYPE_CHECKING:
    from agentx.storage.events.types import ToolStatus

_REFUSED = ("exec command rejected by user", "patch rejected by user")
"""What the host answers to a call that the user denied; the output of a command stands behind a heading."""

_ADD, _DELETE, _UPDATE, _MOVE = "*** Add File: ", "*** Delete File: ", "*** Update File: ", "*** Move to: "
_SHELLS = frozenset(
    {"shell", "shell_command", "exec_command", "container.exec", "local_shell", "unified_exec"}
)
_REPEATED = frozenset({"agent_message", "agent_reasoning", "agent_reasoning_raw_content", "user_message"})
"""Events that repeat an item."""


def read(lines: Lines) -> Generator[TranscriptEntry]:
    """Read a transcript; see :data:`agentx.importing.entries.Read`."""
    return _Reading(lines.name).entries(lines)


class _Reading:
    """The state of reading one transcript.

    Args:
        name: Id of a session that names none.
    """

    def __init__(self, name: str) -> None:
        self._thread = self._session = name
        self._model = ""
        self._placed = False
        self._bare = True
        self._sub = False
        self._told_by = ""
        self._calls: dict[str, tuple[str, dict[str, Any], str]] = {}

    def entries(self, lines: Lines) -> Generator[TranscriptEntry]:  # noqa: C901 - one branch for each type
        for line in lines:
            known: dict[str, Any] = {"id": f"{self._thread} line {line.number}", "session": self._session}
            known["sub"] = self._sub
            if line.value is None:
                yield HostAside(**known, sort="not JSON", text=line.text, known=False)
                continue
            record, at = line.value, text_in(line.value.get("timestamp"))
            known["at"] = at
            payload = fields_in(record.get("payload"))
            match record.get("type"):
                case "session_meta":
                    yield from self._begin(payload, known)
                case "turn_context":
                    self._model = text_in(payload.get("model")) or self._model
                    yield from self._place(text_in(payload.get("cwd")), known)
                    yield PassedOver(**known, sort="turn_context")
                case "response_item":
                    yield from self._item(payload, known)
                case "event_msg":
                    yield from self._event(payload, known)
                case "compacted":
                    yield HostAside(**known, sort="compaction summary", text=text_in(payload.get("message")))
                case None if "instructions" in record and "id" in record:
                    yield from self._begin({**record, "cli_version": ""}, known)
                case None if record.get("record_type") == "state":
                    yield PassedOver(**known, sort="state")
                case _ if not payload and self._bare:
                    yield from self._item(record, known)
                case other:
                    yield HostAside(**known, sort=str(other), text=as_json(record), known=False)

    def _begin(self, meta: dict[str, Any], known: dict[str, Any]) -> Iterator[TranscriptEntry]:
        self._thread = self._session = text_in(meta.get("id")) or self._session
        self._bare = not meta.get("cli_version")
        if parent := _parent(meta):
            self._sub = known["sub"] = True
            self._session = f"{parent}/{self._thread}"
        known["session"] = self._session
        yield from self._place(text_in(meta.get("cwd")), known)
        yield PassedOver(**known, sort="session_meta")

    def _place(self, root: str, known: dict[str, Any]) -> Iterator[TranscriptEntry]:
        if root and not self._placed:
            self._placed = True
            yield ProjectRoot(**{**known, "id": f"{self._thread} place"}, root=root)

    # --- items: what the model was given and said -------------------------------------------------

    def _item(self, item: dict[str, Any], known: dict[str, Any]) -> Iterator[TranscriptEntry]:
        match item.get("type"):
            case "message":
                yield from self._message(item, known)
            case "reasoning":
                parts = [*parts_in(item.get("summary")), *parts_in(item.get("content"))]
                text = "\n".join(text_in(part.get("text")) for part in parts)
                if text:
                    yield Thought(**known, text=text, model=self._model)
                else:
                    yield PassedOver(**known, sort="reasoning encrypted")
            case "function_call" | "custom_tool_call" | "local_shell_call":
                yield self._call(item, known)
            case "function_call_output" | "custom_tool_call_output":
                yield self._result(item, known)
            case "web_search_call":
                name = text_in(item.get("id")) or known["id"]
                yield RequestedCall(
                    **known, call_id=name, tool="web_search", arguments=fields_in(item.get("action"))
                )
                status: ToolStatus = "SUCCEEDED" if item.get("status") == "completed" else "FAILED"
                yield CallResult(
                    **{**known, "id": f"{known['id']} result"}, call_id=name, output="", status=status
                )
            case "ghost_snapshot" | "compaction" | "compaction_summary":
                yield PassedOver(**known, sort=text_in(item.get("type")))
            case other:
                yield HostAside(**known, sort=f"item {other}", text=as_json(item), known=False)

    def _message(self, item: dict[str, Any], known: dict[str, Any]) -> Iterator[TranscriptEntry]:
        role = item.get("role")
        for number, part in enumerate(parts_in(item.get("content"))):
            own: dict[str, Any] = {**known, "id": f"{known['id']}.{number}"}
            text = text_in(part.get("text"))
            if not text:
                yield HostAside(**own, sort=text_in(part.get("type")) or "part", text="[no text]")
            elif role == "assistant":
                yield AgentWords(**own, text=text, model=self._model)
            elif role != "user":
                yield HostAside(**own, sort=f"{text_in(role)} message", text=text)
            elif self._bare and (words := unwrapped(text)[0]):
                yield AgentWords(**own, text=text) if self._sub else UserWords(**own, text=words)
            else:
                yield HostAside(**own, sort="model input", text=text)

    def _call(self, item: dict[str, Any], known: dict[str, Any]) -> TranscriptEntry:
        name = text_in(item.get("call_id")) or text_in(item.get("id")) or known["id"]
        tool = text_in(item.get("name")) or text_in(item.get("type")).removesuffix("_call")
        arguments = fields_in(item.get("action"))
        raw = text_in(item.get("arguments"))
        if raw:
            arguments = _decoded(raw) or {"arguments": raw}
        elif item.get("type") == "custom_tool_call":
            arguments = {"input": text_in(item.get("input"))}
        command = _command(arguments) if tool in _SHELLS else ""
        self._calls[name] = (tool, arguments, command)
        return RequestedCall(**known, call_id=name, tool=tool, arguments=arguments)

    def _result(self, item: dict[str, Any], known: dict[str, Any]) -> TranscriptEntry:
        name, told = text_in(item.get("call_id")), item.get("output")
        tool, arguments, command = self._calls.get(name, ("", {}, ""))
        success = fields_in(told).get("success")
        output = told if isinstance(told, str) else text_in(fields_in(told).get("content"))
        if not output and isinstance(told, list):
            output = "\n".join(text_in(part.get("text")) for part in parts_in(told))
        packed = _decoded(output) if output.startswith("{") and command else {}
        meta = fields_in(packed.get("metadata"))
        code = meta.get("exit_code") if isinstance(meta.get("exit_code"), int) else exit_code_in(output)
        output = text_in(packed.get("output")) if meta else output
        refused = output in _REFUSED and not tool.startswith("mcp__")
        patch = _patch(tool, arguments)
        failed = success is False or bool(code) or (patch and not code and _failed_patch(output))
        status: ToolStatus = "DENIED" if refused else "FAILED" if failed else "SUCCEEDED"
        steps: tuple[FileStep, ...] = tuple(steps_of(patch)) if status == "SUCCEEDED" and patch else ()
        return CallResult(
            **known,
            call_id=name,
            output=output,
            status=status,
            command=command,
            exit_code=code if command else None,
            steps=steps,
            duration_ms=int((amount_in(meta.get("duration_seconds")) or 0) * 1_000),
        )

    # --- events: what the host showed -------------------------------------------------------------

    def _event(self, event: dict[str, Any], known: dict[str, Any]) -> Iterator[TranscriptEntry]:
        sort = text_in(event.get("type"))
        typed = text_in(event.get("message")) if sort == "user_message" and not self._bare else _typed(event)
        if typed and self._told_by in ("", sort):  # a version may write both
            self._told_by = sort
            yield self._said(typed, known)
        elif sort == "token_count":
            used = fields_in(fields_in(event.get("info")).get("last_token_usage"))
            if used:
                yield self._spent(used, known)
            yield PassedOver(**known, sort="event token_count")
        elif sort == "turn_aborted":
            yield HostAside(**known, sort="interrupt", text=text_in(event.get("reason")))
        elif sort in _REPEATED or sort.endswith(
            ("_begin", "_end", "_delta", "_started", "_complete", "_completed")
        ):
            yield PassedOver(**known, sort=f"event {sort}")
        else:
            yield HostAside(**known, sort=f"event {sort}", text=as_json(event), known=False)

    def _said(self, text: str, known: dict[str, Any]) -> TranscriptEntry:
        if self._sub:  # an agent speaks to its subagent
            return AgentWords(**known, text=text)
        words, wrapped = unwrapped(text)
        if wrapped and not words:
            return HostAside(**known, sort="model input", text=text)
        return UserWords(**known, text=words if wrapped else text)

    def _spent(self, used: dict[str, Any], known: dict[str, Any]) -> Spent:
        return Spent(
            **{**known, "id": f"{known['id']} usage"},
            call=known["id"],
            model=self._model,
            prompt_tokens=number_in(used.get("input_tokens")),
            completion_tokens=number_in(used.get("output_tokens")),
            cached_tokens=number_in(used.get("cached_input_tokens")),
        )


def _parent(meta: dict[str, Any]) -> str:
    """Return the session whose agent started this one: ``agent`` if it has no name, empty if the user did."""
    source = fields_in(fields_in(meta.get("source")).get("subagent"))
    by = text_in(meta.get("thread_source"))
    named = text_in(meta.get("parent_thread_id")) or text_in(
        fields_in(source.get("thread_spawn")).get("parent_thread_id")
    )
    started = bool(fields_in(meta.get("source")).get("subagent")) or by not in ("", "user")
    return named or ("agent" if started else "")


def _typed(event: dict[str, Any]) -> str:
    """Return what the user typed, as later versions tell it: in an item that is completed."""
    item = fields_in(event.get("item"))
    if event.get("type") != "item_completed" or item.get("type") != "UserMessage":
        return ""
    return "\n".join(filter(None, (text_in(part.get("text")) for part in parts_in(item.get("content")))))


def _decoded(text: str) -> dict[str, Any]:
    try:
        return fields_in(msgspec.json.decode(text))
    except (ValueError, RecursionError):
        return {}


def _command(arguments: dict[str, Any]) -> str:
    """Return a command line: that which a shell was given, where one was called for it."""
    given = arguments.get("command", arguments.get("cmd", ""))
    if isinstance(given, list):
        words = [str(word) for word in given]
        through = len(words) > 2 and words[1] in ("-c", "-lc", "-ic")  # noqa: PLR2004 - bash -lc COMMAND
        return words[2] if through else shlex.join(words)
    return text_in(given)


def _patch(tool: str, arguments: dict[str, Any]) -> str:
    """Return the patch that a call applies; empty if it applies none."""
    if tool == "apply_patch":
        return text_in(arguments.get("input")) or text_in(arguments.get("patch"))
    command = arguments.get("command")
    if isinstance(command, list) and len(command) == 2 and command[0] == "apply_patch":  # noqa: PLR2004
        return text_in(command[1])
    line = _command(arguments)
    if line.lstrip().startswith("apply_patch"):
        begin, end = line.find("*** Begin Patch"), line.rfind("*** End Patch")
        return line[begin:end] if 0 <= begin < end else ""
    return ""


def _failed_patch(output: str) -> bool:
    return "verification failed" in output[:200] or output.startswith("Failed")


def steps_of(patch: str) -> Iterator[FileStep]:
    r"""Yield what a patch does to files; a moved file is only edited under its former name.

    >>> patch = "*** Begin Patch\n*** Update File: a.py\n@@\n x = 1\n-y = 2\n+y = 3\n*** End Patch"
    >>> [(step.path, step.old, step.new) for step in steps_of(patch)]
    [('a.py', 'x = 1\ny = 2\n', 'x = 1\ny = 3\n')]
    """
    path, how = "", ""
    lines: list[str] = []
    for line in [*patch.splitlines(), "*** End Patch"]:
        if not line.startswith("*** ") and line != "***" and not (how == "edited" and line.startswith("@@")):
            lines.append(line)
            continue
        if line.startswith("*** End of File"):
            continue
        yield from _step(path, how, lines)
        lines = []
        for start, which in ((_ADD, "written"), (_DELETE, "removed"), (_UPDATE, "edited")):
            if line.startswith(start):
                path, how = line[len(start) :].strip(), which
                break
        else:
            if not line.startswith(("@@", _MOVE)):
                path = how = ""
        if how == "removed":
            yield FileStep(path=path, how="removed")
            path = how = ""


def _step(path: str, how: str, lines: list[str]) -> Iterator[FileStep]:
    if not path or (how == "edited" and not lines):
        return
    if how == "written":
        content = "".join(f"{line[1:]}\n" for line in lines if line.startswith("+"))
        yield FileStep(path=path, how="written", content=content)
    elif how == "edited":
        old = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("+"))
        new = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("-"))
        if old != new:
            yield FileStep(path=path, how="edited", old=old, new=new)
