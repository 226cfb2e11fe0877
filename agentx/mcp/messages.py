"""What passes between the process that speaks MCP and the one that has the workspace open; plain data."""

import re
from typing import Any, Literal

import msgspec

from agentx.mcp.catalogue import Profile

MOST_CHARACTERS = 40_000
"""Maximum length of one answer; what is cut says how to get the rest."""

_ROLE = re.compile(r"[^a-z0-9]+")
_ROLE_CHARACTERS = 40


class McpRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One question of a host.

    Attributes:
        kind: What is asked: call a tool, list tools or resources, read a resource, make a prompt.
        name: The tool, the resource's address, or the prompt.
        arguments: The arguments; for lists, ``cursor``.
        profile: The tools that are offered.
        agent: The host's name, which becomes the agent's.
        may_ask: Whether the host can ask its user: then what needs the user is not done yet.
        call_id: The call that the user has decided on.
    """

    kind: Literal["call", "tools", "resources", "read", "prompt"]
    name: str = ""
    arguments: dict[str, Any] = {}
    profile: Profile = "default"
    agent: str = ""
    may_ask: bool = False
    call_id: str = ""


class UserQuestion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the host is to ask its user.

    Attributes:
        text: The question.
        call_id: The call that waits for approval; empty if words are to be confirmed.
        shown: Digest of the call as the question shows it.
        remember: The kind and the text that are to be remembered as the user's.
    """

    text: str
    call_id: str = ""
    shown: str = ""
    remember: tuple[str, str] | None = None

    def decision(self, asked: str, *, approved: bool) -> tuple[str, dict[str, Any]]:
        """Return the method of the workspace that records the user's answer, and its parameters.

        Args:
            asked: How the user was asked.
            approved: Whether the user agreed.
        """
        if self.remember is not None:
            kind, text = self.remember
            return "remember", {"kind": kind, "text": text, "asked": asked}
        return "approve", {
            "call_id": self.call_id,
            "approved": approved,
            "asked": asked,
            "shown": self.shown,
        }


class McpAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a question of a host.

    Attributes:
        text: What its model reads.
        failed: Whether the call failed; the text says what to do.
        ask: What the user is to be asked first.
        listed: The tools, resources or messages of a prompt, as MCP has them.
        next_cursor: Where the next page of a list begins; empty for none.
        mime: The type of a resource's text.
    """

    text: str = ""
    failed: bool = False
    ask: UserQuestion | None = None
    listed: list[dict[str, Any]] = []
    next_cursor: str = ""
    mime: str = "text/markdown"


def role_of(client: str) -> str:
    """Return the name of the agent that a host runs, from the name that the host gives itself.

    >>> role_of("Claude Code"), role_of(""), role_of("user:ann")
    ('claude-code', 'main', 'user-ann')
    """
    return _ROLE.sub("-", client.lower()).strip("-")[:_ROLE_CHARACTERS] or "main"


def bounded(text: str, rest: str) -> str:
    """Cut a text to :data:`MOST_CHARACTERS`, and say how to get the rest.

    >>> bounded("short", "…")
    'short'
    """
    if len(text) <= MOST_CHARACTERS:
        return text
    left = len(text) - MOST_CHARACTERS
    return f"{text[:MOST_CHARACTERS]}\n[{left:,} characters left out: {rest}]"
