"""What a host can read without calling a tool: state, history, artifacts and memory, page by page."""

import os
import urllib.parse
from collections.abc import Iterator
from itertools import islice
from typing import Any

from agentx.mcp.memory_calls import line_of, shown
from agentx.mcp.messages import McpAnswer
from agentx.mcp.offers import PAGE_EVENTS, PAGE_FILES, PAGE_LINES, SCHEME
from agentx.memory import editing
from agentx.storage.errors import AgentXError
from agentx.storage.files.paths import check_path
from agentx.storage.text import encodable
from agentx.workspace import Workspace

_LINE_DIGITS = 16
"""Longer numbers are no lines and no events."""


class NoSuchResource(AgentXError):
    """No resource has this address."""


def listed(ws: Workspace, cursor: str) -> McpAnswer:
    """Return a page of the resources: state and history, then the artifacts by path.

    Raises:
        NoSuchResource: The cursor is not one of ours.
    """
    if cursor and not cursor.isdecimal():
        raise NoSuchResource("The cursor is not one that this server gave.")
    begin = int(cursor or 0)
    names = sorted(ws.engine.git.manifest())
    page = names[begin : begin + PAGE_FILES]
    found = [] if begin else list(_fixed())
    found += [
        {
            "uri": f"{SCHEME}artifacts/{urllib.parse.quote(os.fsencode(name))}",
            "name": encodable(name),
            "mimeType": "text/plain",
        }
        for name in page
    ]
    end = begin + len(page)
    return McpAnswer(listed=found, next_cursor=str(end) if end < len(names) else "")


def _fixed() -> Iterator[dict[str, Any]]:
    yield {
        "uri": f"{SCHEME}state",
        "name": "state",
        "description": "What stands now: demands, rejections, open problems, decisions and tasks.",
        "mimeType": "text/markdown",
    }
    yield {
        "uri": f"{SCHEME}history/0",
        "name": "history",
        "description": "The history from its first event; each page names the next.",
        "mimeType": "text/plain",
    }


def read(ws: Workspace, uri: str) -> McpAnswer:
    """Return the text of a resource.

    Raises:
        NoSuchResource: Nothing has this address.
        AgentXError: It cannot be read: the file is binary, or its path leads out of the artifacts.
    """
    if not uri.startswith(SCHEME):
        raise NoSuchResource(f"The address of a resource begins with {SCHEME}.")
    whole, _, query = uri.removeprefix(SCHEME).partition("?")
    sort, _, name = whole.partition("/")
    name = urllib.parse.unquote(name, errors="strict")
    match sort:
        case "state" if not name:
            return McpAnswer(text=ws.get_relevant_context("", tier=0).text)
        case "history" if name.isdecimal() and len(name) < _LINE_DIGITS:
            return _history(ws, int(name))
        case "memory" if name:
            return McpAnswer(text=shown(editing.find(ws.engine, name, ws.told)), mime="text/plain")
        case "artifacts" if name:
            return _artifact(ws, name, query)
    raise NoSuchResource("No resource has this address; list the resources and their templates.")


def _history(ws: Workspace, after: int) -> McpAnswer:
    found = list(islice(ws.events(after), PAGE_EVENTS))
    lines = [line_of(event) for event in found] or ["No later event."]
    if len(found) == PAGE_EVENTS:
        lines.append(f"[More: {SCHEME}history/{found[-1].seq}]")
    return McpAnswer(text="\n".join(lines), mime="text/plain")


def _artifact(ws: Workspace, path: str, query: str) -> McpAnswer:
    given = dict(urllib.parse.parse_qsl(query)).get("start", "")
    start = max(1, int(given)) if given.isdecimal() and len(given) < _LINE_DIGITS else 1
    read_file = ws.tools.body("read_file")
    found = read_file(
        ws.tools, None, path=check_path(path), start_line=start, end_line=start + PAGE_LINES - 1
    )
    left = found.total_lines - found.end_line
    rest = f"{SCHEME}artifacts/{urllib.parse.quote(path)}?start={found.end_line + 1}"
    more = [f"[{left} more lines: {rest}]"] if left > 0 and found.text else []
    return McpAnswer(text="\n".join([found.text, *more]), mime="text/plain")
