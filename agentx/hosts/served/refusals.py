"""Calls that the user refused in the host: no hook tells of them, but the host's transcript does."""

import json
import os
from collections.abc import Collection
from typing import Any

from agentx.hosts.action import text_of
from agentx.synthesis.scribe.harness import refused

_READ_BYTES = 1 << 20
"""How much of the end of a transcript is read."""


def refused_calls(host: str, transcript: str, calls: Collection[str]) -> dict[str, str]:
    """Return which calls the user refused, each with the host's sentence that has the user's words.

    Args:
        host: The host; only Claude Code's transcripts are read.
        transcript: Its file.
        calls: Ids of calls without a result.
    """
    if host != "claude-code" or not calls or not transcript:
        return {}
    found: dict[str, str] = {}
    for line in _last_lines(transcript):
        if b'"is_error"' not in line or not any(call.encode() in line for call in calls):
            continue
        for part in _results(line):
            call, text = str(part.get("tool_use_id")), text_of(part.get("content"))
            told = refused(text) if call in calls and part.get("is_error") is True else None
            if told is not None and told.by_person:
                found[call] = text
    return found


def _last_lines(path: str) -> list[bytes]:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(file, "rb") as opened:
            size = os.fstat(file).st_size
            opened.seek(max(0, size - _READ_BYTES))
            return opened.read(_READ_BYTES).split(b"\n")
    except OSError:
        return []


def _results(line: bytes) -> list[dict[str, Any]]:
    try:
        record = json.loads(line)
        content = record["message"]["content"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []
    parts = content if isinstance(content, list) else []
    return [part for part in parts if isinstance(part, dict) and part.get("type") == "tool_result"]
