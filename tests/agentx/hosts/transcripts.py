"""Derives the payloads of Claude Code's hooks from one of its transcripts, in the order in which they were called."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def payloads(
    transcript: Path, records: list[dict[str, Any]], cwd: str
) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield each payload, with the records that the transcript has by then.

    Paths of the session's own directory are replaced by those of ``cwd``.
    """
    session = next((one["sessionId"] for one in records if one.get("sessionId")), "session")
    place = next((one["cwd"] for one in records if one.get("cwd")), "")
    base = {"session_id": session, "transcript_path": str(transcript), "cwd": cwd}
    seen: list[dict[str, Any]] = []
    asked: dict[str, tuple[str, Any]] = {}
    said = ""
    yield {**base, "hook_event_name": "SessionStart", "source": "startup"}, list(seen)
    for raw in records:
        record = json.loads(json.dumps(raw).replace(json.dumps(place)[1:-1], cwd)) if place else raw
        seen.append(record)
        if record.get("isSidechain") or record.get("isMeta"):
            continue
        if record.get("type") == "system" and record.get("subtype") == "compact_boundary":
            yield {**base, "hook_event_name": "PreCompact", "trigger": "auto"}, list(seen)
            yield {**base, "hook_event_name": "SessionStart", "source": "compact"}, list(seen)
            continue
        content = record.get("message", {}).get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        for block in blocks:
            match record.get("type"), block.get("type"):
                case "user", "text" if not record.get("isCompactSummary"):
                    if said:
                        stop = {"stop_hook_active": False, "last_assistant_message": said}
                        yield {**base, "hook_event_name": "Stop", **stop}, list(seen)
                        said = ""
                    yield {**base, "hook_event_name": "UserPromptSubmit", "prompt": block["text"]}, list(seen)
                case "assistant", "text":
                    said = block["text"]
                case "assistant", "tool_use":
                    asked[block["id"]] = block["name"], block["input"]
                    call = {
                        "tool_name": block["name"],
                        "tool_input": block["input"],
                        "tool_use_id": block["id"],
                    }
                    yield {**base, "hook_event_name": "PreToolUse", **call}, list(seen)
                case "user", "tool_result" if block["tool_use_id"] in asked:
                    yield from _result(base, block, record, asked[block["tool_use_id"]], seen)
    if said:
        stop = {"stop_hook_active": False, "last_assistant_message": said}
        yield {**base, "hook_event_name": "Stop", **stop}, list(seen)
    yield {**base, "hook_event_name": "SessionEnd", "reason": "prompt_input_exit"}, list(seen)


def _result(base, block, record, call, seen):
    text = block.get("content")
    text = text if isinstance(text, str) else "\n".join(one.get("text", "") for one in text or ())
    if "doesn't want to proceed" in text or "tool use was rejected" in text:
        return  # no hook is called for what the user refuses
    found = {"tool_name": call[0], "tool_input": call[1], "tool_use_id": block["tool_use_id"]}
    if block.get("is_error"):
        yield {**base, "hook_event_name": "PostToolUseFailure", **found, "error": text}, list(seen)
    else:
        result = record.get("toolUseResult") or text
        yield {**base, "hook_event_name": "PostToolUse", **found, "tool_response": result}, list(seen)
