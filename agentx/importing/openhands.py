"""Trajectories of OpenHands: exported JSON, and directories of one JSON file for each event.

After the events of OpenHands 0.x (``openhands/events``: ``action`` and ``observation``) and of its SDK 1.x
(``openhands-sdk/openhands/sdk/event``: ``kind``).
"""

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
from agentx.importing.lines import Lines, amount_in, as_json, fields_in, number_in, parts_in, text_in

if TYPE_CHECKING:
    from agentx.storage.events.types import ToolStatus

_SILENT = frozenset(
    {"change_agent_state", "agent_state_changed", "null", "recall", "system", "condensation", "think"}
)
"""Actions and observations of version 0 that say nothing of the work."""


def read(lines: Lines) -> Generator[TranscriptEntry]:
    """Read a trajectory; see :data:`agentx.importing.entries.Read`."""
    session = lines.path.parent.name if lines.path.is_dir() else lines.name
    if lines.path.is_dir():
        events = lines.parts()
    else:
        document = lines.document()
        listed = (
            document
            if isinstance(document, list)
            else fields_in(document).get("history") or fields_in(document).get("trajectory")
        )
        lines.records = len(parts_in(listed))
        events = iter(parts_in(listed))
        if not isinstance(listed, list):
            lines.records = 1
            yield HostAside(id=f"{session} file", sort="not a trajectory", text="", known=False)
    told = list(events)
    root = next(filter(None, map(_directory, told)), "/workspace")
    yield ProjectRoot(id=f"{session} place", session=session, root=root)
    spent: dict[str, Any] = {}
    handed: list[str] = []
    for number, event in enumerate(told):
        handed += _handed_over(event)
        name = event.get("id", number)
        own: dict[str, Any] = {
            "id": f"{session} {name}",
            "at": text_in(event.get("timestamp")),
            "session": session,
        }
        for entry in _of_sdk(event, own) if "kind" in event else _of_first(event, own):
            an_agents = isinstance(entry, UserWords) and (
                text_in(event.get("sender")) or any(task in entry.text for task in handed)
            )
            yield AgentWords(**{**own, "sub": True}, text=entry.text) if an_agents else entry  # type: ignore[attr-defined]
        spent = fields_in(event.get("llm_metrics")) or spent
    yield from _spent(spent, session)


def _handed_over(event: dict[str, Any]) -> list[str]:
    """Return the texts that an agent hands over to another one, which the host repeats as the user's."""
    if event.get("action") != "delegate":
        return []
    inputs = fields_in(fields_in(event.get("args")).get("inputs"))
    return [text for text in map(text_in, inputs.values()) if text.strip()]


def _directory(event: dict[str, Any]) -> str:
    """Return the directory in which a command of an event ran; empty for none."""
    observed = fields_in(event.get("observation")) or fields_in(event.get("extras"))
    return text_in(fields_in(observed.get("metadata")).get("working_dir"))


# --- version 0 --------------------------------------------------------------------------------------------


def _of_first(event: dict[str, Any], own: dict[str, Any]) -> Iterator[TranscriptEntry]:
    action, observation = text_in(event.get("action")), text_in(event.get("observation"))
    arguments, extras = fields_in(event.get("args")), fields_in(event.get("extras"))
    if action == "message":
        text = text_in(arguments.get("content"))
        yield UserWords(**own, text=text) if event.get("source") == "user" else AgentWords(**own, text=text)
    elif action == "finish":
        yield AgentWords(**own, text=text_in(arguments.get("final_thought")) or text_in(event.get("message")))
    elif action and action not in _SILENT:
        if thought := text_in(arguments.get("thought")):
            yield Thought(**{**own, "id": f"{own['id']} thought"}, text=thought)
        asked = {name: value for name, value in arguments.items() if name != "thought"}
        yield RequestedCall(**own, call_id=own["id"], tool=action, arguments=asked)
    elif observation and observation not in _SILENT and event.get("cause") is not None:
        yield _observed(event, observation, extras, own)
    elif action == "think":
        yield Thought(**own, text=text_in(arguments.get("thought")))
    elif action == "system":
        yield HostAside(**own, sort="system message", text=text_in(arguments.get("content")))
    elif observation in ("error", "recall"):
        yield HostAside(**own, sort=f"observation {observation}", text=text_in(event.get("content")))
    elif action in _SILENT or observation in _SILENT:
        yield PassedOver(**own, sort=f"{'action' if action else 'observation'} {action or observation}")
    else:
        yield HostAside(**own, sort="event", text=as_json(event), known=False)


def _observed(
    event: dict[str, Any], sort: str, extras: dict[str, Any], own: dict[str, Any]
) -> TranscriptEntry:
    session = own["session"]
    code = fields_in(extras.get("metadata")).get("exit_code", extras.get("exit_code"))
    code = code if isinstance(code, int) and not isinstance(code, bool) else None
    command = text_in(extras.get("command")) if sort == "run" else ""
    status: ToolStatus = "SUCCEEDED"
    if sort in ("error", "user_rejected") or (command and code):
        status = "DENIED" if sort == "user_rejected" else "FAILED"
    path, content = text_in(extras.get("path")), text_in(event.get("content"))
    step = None
    if sort == "edit" and isinstance(extras.get("new_content"), str):
        old = extras.get("old_content")
        base = old if isinstance(old, str) and extras.get("prev_exist") else None
        step = FileStep(path=path, how="written", content=extras["new_content"], base=base)
    return CallResult(
        **own,
        call_id=f"{session} {event.get('cause')}",
        output=_refused(content) if status == "DENIED" else content,
        status=status,
        command=command,
        exit_code=code if command else None,
        steps=(step,) if step and path else (),
    )


# --- the SDK ----------------------------------------------------------------------------------------------


def _of_sdk(event: dict[str, Any], own: dict[str, Any]) -> Iterator[TranscriptEntry]:  # noqa: C901 - one branch for each kind
    match event.get("kind"):
        case "MessageEvent":
            text = _text(fields_in(event.get("llm_message")).get("content"))
            user = event.get("source") == "user"
            yield UserWords(**own, text=text) if user else AgentWords(**own, text=text)
            if added := _text(event.get("extended_content")):
                yield HostAside(**{**own, "id": f"{own['id']} added"}, sort="model input", text=added)
        case "ActionEvent":
            if thought := _text(event.get("thought")) or text_in(event.get("reasoning_content")):
                yield Thought(**{**own, "id": f"{own['id']} thought"}, text=thought)
            tool, action = text_in(event.get("tool_name")), fields_in(event.get("action"))
            if tool == "finish":
                yield AgentWords(**{**own, "id": f"{own['id']} words"}, text=text_in(action.get("message")))
            asked = {name: value for name, value in action.items() if name != "kind"}
            raw = text_in(fields_in(event.get("tool_call")).get("arguments"))
            yield RequestedCall(
                **own, call_id=text_in(event.get("tool_call_id")), tool=tool, arguments=asked or _decoded(raw)
            )
        case "ObservationEvent":
            yield _observation(event, own)
        case "UserRejectObservation":
            by_user = event.get("rejection_source", "user") == "user"
            reason = text_in(event.get("rejection_reason"))
            said = _refused(reason) if by_user else f"Blocked by a hook: {reason}"
            yield CallResult(**own, call_id=text_in(event.get("tool_call_id")), output=said, status="DENIED")
        case "AgentErrorEvent":
            told = text_in(event.get("error"))
            yield CallResult(**own, call_id=text_in(event.get("tool_call_id")), output=told, status="FAILED")
        case "SystemPromptEvent":
            yield HostAside(
                **own, sort="system message", text=text_in(fields_in(event.get("system_prompt")).get("text"))
            )
        case "Condensation":
            yield HostAside(**own, sort="compaction summary", text=text_in(event.get("summary")))
        case "ConversationStateUpdateEvent" | "PauseEvent" | "CondensationRequest" | "TokenEvent":
            yield PassedOver(**own, sort=str(event["kind"]))
        case other:
            yield HostAside(**own, sort=str(other), text=as_json(event), known=False)


def _observation(event: dict[str, Any], own: dict[str, Any]) -> TranscriptEntry:
    told = fields_in(event.get("observation"))
    output = _text(told.get("content")) or text_in(told.get("output"))
    code = told.get("exit_code", fields_in(told.get("metadata")).get("exit_code"))
    code = code if isinstance(code, int) and not isinstance(code, bool) else None
    command = text_in(told.get("command")) if code is not None else ""
    failed = told.get("is_error") is True or bool(code) or bool(told.get("error"))
    path, new, old = text_in(told.get("path")), told.get("new_content"), told.get("old_content")
    step = None
    if path and isinstance(new, str) and told.get("command") != "view":
        base = old if isinstance(old, str) and told.get("prev_exist") else None
        step = FileStep(path=path, how="written", content=new, base=base)
    return CallResult(
        **own,
        call_id=text_in(event.get("tool_call_id")),
        output=output,
        status="FAILED" if failed else "SUCCEEDED",
        command=command,
        exit_code=code if command else None,
        steps=(step,) if step and not failed else (),
    )


def _refused(reason: str) -> str:
    """Return the host's field for the user's reason in one sentence, as other hosts give it."""
    return (
        f"The user rejected this action. The user said: {reason}"
        if reason
        else "The user rejected this action."
    )


def _spent(metrics: dict[str, Any], session: str) -> Iterator[TranscriptEntry]:
    used = fields_in(metrics.get("accumulated_token_usage"))
    cost = metrics.get("accumulated_cost")
    if used or cost:
        yield Spent(
            id=f"{session} usage",
            session=session,
            call=session,
            model=text_in(used.get("model")),
            prompt_tokens=number_in(used.get("prompt_tokens")),
            completion_tokens=number_in(used.get("completion_tokens")),
            cached_tokens=number_in(used.get("cache_read_tokens")),
            cost_usd=amount_in(cost),
        )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text_in(part.get("text")) for part in parts_in(content) if part.get("type") != "image")


def _decoded(text: str) -> dict[str, Any]:
    try:
        return fields_in(msgspec.json.decode(text))
    except (ValueError, RecursionError):
        return {}
