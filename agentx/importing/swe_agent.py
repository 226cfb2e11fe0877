"""Trajectories of SWE-agent (``*.traj``), versions 0.6 to 1.1, and of mini-swe-agent (``*.traj.json``).

After swe-agent.com/latest/usage/trajectories and the code of both. Nobody types in a run: the task comes
from an issue through a template, and what has the role ``user`` is that, or the output of commands. So
nothing in them is the user's word.
"""

import re
import shlex
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from agentx.importing.entries import (
    AgentWords,
    CallResult,
    FileStep,
    HostAside,
    ProjectRoot,
    RequestedCall,
    Spent,
    Thought,
    TranscriptEntry,
)
from agentx.importing.lines import Lines, amount_in, as_json, fields_in, number_in, parts_in, text_in

if TYPE_CHECKING:
    from agentx.storage.events.types import ToolStatus

_BASH = re.compile(r"```(?:bash|mswea_bash_command)\s*\n(.*?)\n```", re.DOTALL)
_RETURNED = re.compile(r"<returncode>(-?\d{1,3})</returncode>")


def read(lines: Lines) -> Generator[TranscriptEntry]:
    """Read a trajectory; see :data:`agentx.importing.entries.Read`."""
    document = fields_in(lines.document())
    session = lines.name.removesuffix(".traj")
    steps, messages = document.get("trajectory"), document.get("messages")
    if isinstance(steps, list):
        lines.records = len(steps)
        root = next(filter(None, map(_directory, parts_in(steps))), "")
        if root:
            yield ProjectRoot(id=f"{session} place", session=session, root=root)
        yield from _task(parts_in(document.get("history")), session)
        for number, step in enumerate(parts_in(steps), 1):
            yield from _step(step, {"id": f"{session} step {number}", "session": session})
    elif isinstance(messages, list):
        lines.records = len(messages)
        yield from _mini(parts_in(messages), session)
    else:
        lines.records = 1
        yield HostAside(id=f"{session} file", sort="not a trajectory", text="", known=False)
        return
    yield from _end(fields_in(document.get("info")), session)


def _task(history: list[dict[str, Any]], session: str) -> Iterator[TranscriptEntry]:
    """Yield what the model was told before its first answer."""
    for number, message in enumerate(history):
        if message.get("role") == "assistant" and not message.get("is_demo"):
            return
        own: dict[str, Any] = {"id": f"{session} history {number}", "session": session}
        sort = "demonstration" if message.get("is_demo") else f"{text_in(message.get('role'))} message"
        yield HostAside(**own, sort=sort, text=_text(message.get("content")))


def _step(step: dict[str, Any], own: dict[str, Any]) -> Iterator[TranscriptEntry]:
    thought, action = text_in(step.get("thought")), text_in(step.get("action")).strip()
    said = thought or text_in(step.get("response"))
    if said:
        yield Thought(**{**own, "id": f"{own['id']} thought"}, text=said)
    if not action:
        return
    name = own["id"]
    tool = action.split(maxsplit=1)[0]
    yield RequestedCall(
        **own, call_id=name, tool=tool if tool in _EDITORS else "bash", arguments={"command": action}
    )
    yield CallResult(
        **{**own, "id": f"{own['id']} result"},
        call_id=name,
        output=text_in(step.get("observation")),
        command="" if tool in _EDITORS else action,
        steps=tuple(_edits(action, text_in(step.get("observation")))) if tool == "str_replace_editor" else (),
        duration_ms=int((amount_in(step.get("execution_time")) or 0) * 1_000),
    )


def _directory(step: dict[str, Any]) -> str:
    state = step.get("state")
    if isinstance(state, str):
        try:
            state = msgspec.json.decode(state)
        except (ValueError, RecursionError):
            return ""
    return text_in(fields_in(state).get("working_dir"))


def _edits(action: str, answer: str) -> Iterator[FileStep]:
    """Yield what a call of ``str_replace_editor`` did, if the answer says that it did it."""
    try:
        words = shlex.split(action)
    except ValueError:
        return
    options = {words[at]: words[at + 1] for at in range(3, len(words) - 1, 2)}
    how, path = [*words[1:3], "", ""][:2]
    if how == "create" and answer.startswith("File created successfully"):
        yield FileStep(path=path, how="written", content=options.get("--file_text", ""))
    elif how == "str_replace" and answer.startswith(f"The file {path} has been edited"):
        old, new = options.get("--old_str", ""), options.get("--new_str", "")
        yield FileStep(path=path, how="edited", old=old, new=new)


_EDITORS = frozenset(
    {"str_replace_editor", "edit", "open", "create", "goto", "scroll_down", "scroll_up", "submit"}
)
"""Commands of its own tools, which no shell has."""


def _mini(messages: list[dict[str, Any]], session: str) -> Iterator[TranscriptEntry]:
    """Read the messages of mini-swe-agent: each answer holds one command, the next message its output."""
    asked = ""
    for number, message in enumerate(messages):
        own: dict[str, Any] = {"id": f"{session} message {number}", "session": session}
        text = _text(message.get("content"))
        calls = parts_in(message.get("tool_calls"))
        if message.get("role") == "assistant":
            command = _BASH.search(text)
            line = command[1] if command else ""
            if calls:
                line = as_json(fields_in(calls[0].get("function")).get("arguments"))
            yield AgentWords(**own, text=text) if not line else Thought(**own, text=text)
            asked = own["id"] if line else ""
            if asked:
                yield RequestedCall(
                    **{**own, "id": f"{asked} call"}, call_id=asked, tool="bash", arguments={"command": line}
                )
        elif asked:
            code = _RETURNED.search(text[:200])
            status: ToolStatus = "FAILED" if code and code[1] != "0" else "SUCCEEDED"
            yield CallResult(
                **own, call_id=asked, output=text, status=status, exit_code=int(code[1]) if code else None
            )
            asked = ""
        else:
            yield HostAside(**own, sort=f"{text_in(message.get('role'))} message", text=text)


def _end(info: dict[str, Any], session: str) -> Iterator[TranscriptEntry]:
    own: dict[str, Any] = {"id": f"{session} info", "session": session}
    told = {
        name: value for name, value in info.items() if name in ("exit_status", "submission", "mini_version")
    }
    if told:
        yield HostAside(**own, sort="result", text=as_json(told))
    stats = fields_in(info.get("model_stats"))
    if stats:
        model = text_in(fields_in(fields_in(info.get("config")).get("model")).get("model_name"))
        yield Spent(
            **{**own, "id": f"{session} usage"},
            call=session,
            model=model,
            prompt_tokens=number_in(stats.get("tokens_sent")),
            completion_tokens=number_in(stats.get("tokens_received")),
            cost_usd=amount_in(stats.get("instance_cost")),
        )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text_in(part.get("text")) for part in parts_in(content))
