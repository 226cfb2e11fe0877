"""Entries: what every transcript is read into, whatever its host; the recorder records them."""

from collections.abc import Callable, Generator
from typing import Any, Literal

import msgspec

from agentx.importing.lines import Lines
from agentx.storage.events.types import ToolStatus


class TranscriptEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a transcript tells.

    Attributes:
        id: Id of the record and the place within it; the same whenever the transcript is read.
        at: ISO time with a zone; empty if the record has none.
        session: Id of the session, or of the subagent's session.
        sub: Whether a subagent is at work: then nothing in it is the user's word.
    """

    id: str
    at: str = ""
    session: str = ""
    sub: bool = False


class UserWords(TranscriptEntry, frozen=True):
    """What the user typed."""

    text: str


class AgentWords(TranscriptEntry, frozen=True):
    """What an agent said to the user, or to another agent."""

    text: str
    model: str = ""


class Thought(TranscriptEntry, frozen=True):
    """Reasoning of an agent."""

    text: str
    model: str = ""


class RequestedCall(TranscriptEntry, frozen=True):
    """A tool call, as the agent asked for it."""

    call_id: str
    tool: str
    arguments: dict[str, Any]


class FileStep(msgspec.Struct, frozen=True, kw_only=True):
    """What a call shows of a file, or did to it.

    Attributes:
        path: The path as the host has it, absolute or relative to the project.
        how: ``seen``: ``content`` is the whole file. ``written``: it is from now on. ``edited``: ``old``
            became ``new``. ``removed``: it is gone.
        base: The whole content before; ``None`` if the transcript does not show it.
        every: Whether each occurrence of ``old`` was replaced, not only the first.
    """

    path: str
    how: Literal["seen", "written", "edited", "removed"]
    content: str = ""
    old: str = ""
    new: str = ""
    every: bool = False
    base: str | None = None


class CallResult(TranscriptEntry, frozen=True):
    """The result of a tool call.

    Attributes:
        call_id: The call.
        output: What the agent was given.
        status: ``DENIED`` only where the host itself says that it did not run.
        command: The command line that ran; empty for none.
        exit_code: Its exit status; ``None`` if it is not known.
        steps: What it shows of files.
        duration_ms: How long it took; 0 if it is not known.
        call: The call itself, which the recorder adds; ``None`` if the transcript does not have it.
    """

    call_id: str
    output: str
    status: ToolStatus = "SUCCEEDED"
    command: str = ""
    exit_code: int | None = None
    steps: tuple[FileStep, ...] = ()
    duration_ms: int = 0
    call: RequestedCall | None = None


class HostAside(TranscriptEntry, frozen=True):
    """A record that is nobody's word, or of an unknown type: kept as it is."""

    sort: str
    text: str
    known: bool = True


class PassedOver(TranscriptEntry, frozen=True):
    """A record of a known type without content of its own: only counted."""

    sort: str


class Spent(TranscriptEntry, frozen=True):
    """Tokens of a model call; a later entry with the same ``call`` replaces an earlier one.

    Attributes:
        prompt_tokens: All tokens of the input, those from the cache included.
        cached_tokens: Those of them that were read from the cache.
        cost_usd: The cost as the host states it; ``None`` if it does not.
    """

    call: str
    model: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None


class ProjectRoot(TranscriptEntry, frozen=True):
    """Where the session works from here on: the project's directory."""

    root: str


Read = Callable[[Lines], Generator[TranscriptEntry]]
"""Reads a transcript; malformed content never raises."""
