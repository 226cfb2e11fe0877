"""The hosts whose transcripts can be imported: their reader, their files, and where these usually are."""

from typing import NamedTuple

from agentx.importing import aider, claude_code, codex, gemini, openai_chat, openhands, swe_agent
from agentx.importing.entries import Read


class TranscriptFormat(NamedTuple):
    """The transcripts of one host.

    Attributes:
        read: Reads one file.
        version: Version of the reader; raised when it reads something differently.
        endings: How the names of its files end, without ``.gz``; a file that is named may have any name.
        places: Directories in which the host keeps them, relative to the home directory.
        within: Name of the directory right above a file in such a place; empty for any.
        folder: Name of directories that are one transcript each, with a file for each event; empty for none.
    """

    read: Read
    version: int
    endings: tuple[str, ...]
    places: tuple[str, ...] = ()
    within: str = ""
    folder: str = ""


FORMATS: dict[str, TranscriptFormat] = {
    "claude-code": TranscriptFormat(claude_code.read, 2, (".jsonl",), (".claude/projects",)),
    "codex": TranscriptFormat(codex.read, 2, (".jsonl",), (".codex/sessions", ".codex/archived_sessions")),
    "gemini": TranscriptFormat(gemini.read, 2, (".json", ".jsonl"), (".gemini/tmp",), within="chats"),
    "openhands": TranscriptFormat(
        openhands.read,
        2,
        (".json",),
        (".openhands/conversations", ".openhands/sessions", ".openhands-state/sessions"),
        folder="events",
    ),
    "swe-agent": TranscriptFormat(swe_agent.read, 1, (".traj", ".traj.json")),
    "openai": TranscriptFormat(openai_chat.read, 2, (".json", ".jsonl")),
    "aider": TranscriptFormat(aider.read, 1, (".aider.chat.history.md",)),
}
