"""The addresses of resources and the names of prompts that a host is offered."""

from typing import Any

SCHEME = "agentx://"

PAGE_EVENTS = 100
PAGE_LINES = 1_000
PAGE_FILES = 100

TEMPLATES: tuple[dict[str, str], ...] = (
    {
        "uriTemplate": "agentx://history/{after}",
        "name": "history",
        "description": f"{PAGE_EVENTS} events after an event number, one line each.",
        "mimeType": "text/plain",
    },
    {
        "uriTemplate": "agentx://artifacts/{+path}",
        "name": "artifact",
        "description": f"A text file of the task; append ?start=LINE beyond {PAGE_LINES:,} lines.",
        "mimeType": "text/plain",
    },
    {
        "uriTemplate": "agentx://memory/{id}",
        "name": "memory item",
        "description": "A memory item, with the words that it rests on.",
        "mimeType": "text/plain",
    },
)
"""The addresses with a part to fill in, as MCP has them."""

PROMPTS: tuple[dict[str, Any], ...] = (
    {
        "name": "boot",
        "description": "Begin work: mission, rules, refusals, flows, lessons, and where the work stands.",
        "arguments": [{"name": "agent", "description": "The agent's role.", "required": False}],
    },
    {
        "name": "recovery",
        "description": "Continue after the conversation was cut: what must not be forgotten.",
    },
    {
        "name": "hand_over",
        "description": "Hand the work over to another agent or person: what to write, with the day's facts.",
    },
)
"""The prompts, as MCP has them."""
