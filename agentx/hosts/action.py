"""The normalised action of a host's hook: what happened, or is about to, in the same words for every host.

Loads nothing: each hook of a host is a new process.
"""

TYPE_CHECKING = False  # `typing` would be loaded for it
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

START, PROMPT, BEFORE, AFTER, ANSWER, STOP, SUBSTOP, COMPACT, COMPACTED, END = MOMENTS = (
    *("start", "prompt", "before", "after", "answer", "stop", "substop", "compact", "compacted", "end"),
)
"""When a hook is called: a session starts; a prompt was sent; before and after a tool; the agent answered,
stops, or a subagent stops; before and after compaction; the session ends.
"""

SUMMARY = "compaction summary"
"""The source of a subagent's answer that sums up a conversation: the host's words, nobody's answer."""

SHELL, READ, WRITE, EDIT, DELETE, WEB, TOOL = KINDS = (
    *("shell", "read", "write", "edit", "delete", "web", "tool"),
)
"""What a tool does. Of moments without a tool, the moment says it: prompt, answer, lifecycle."""

MOST_TEXT = 400_000
"""Characters kept of an output, an answer or a file's content; of a longer one, its head and its end."""

MOST_PROMPT = 1_000_000
"""Characters kept of a prompt."""

_FIELDS = (
    *("host", "event", "moment", "session", "agent", "cwd", "kind", "tool", "call", "text", "output"),
    *("sharing", "source", "transcript", "model"),
)


_FLAGS = ("failed", "mute", "refused", "settles", "stopping", "unasked")


class HostAction:
    """What a host's hook reports.

    Attributes:
        host: Name of the host.
        event: The host's name of the event.
        moment: One of :data:`MOMENTS`.
        session: The host's id of the session.
        agent: The host's id of the subagent; empty for the main agent.
        cwd: Working directory of the session.
        sharing: Project of the session, if the workspace is that of another one; empty otherwise.
        kind: One of :data:`KINDS`; empty without a tool.
        tool: The host's name of the tool.
        call: The host's id of the call.
        arguments: The tool's arguments; those of known tools by the same names for every host.
        text: The prompt, or the agent's answer.
        output: What the tool returned.
        failed: Whether the tool failed.
        exit_code: Exit status of the command; ``None`` if unknown.
        duration_ms: How long the tool ran, if the host says.
        source: Why the session started or ended: ``startup``, ``resume``, ``clear``, ``compact``, …
        asks: Whether the host can ask the user about this call.
        mute: Whether the host shows the model no text at this moment; it is kept for the next one.
        refused: Whether the host says that the call was not permitted.
        settles: Whether the agent has the tool ``settle`` of AgentX's MCP server.
        stopping: Whether the agent already goes on because a hook stopped it from ending.
        transcript: File with the host's transcript.
        model: The model of the session.
        unasked: Whether the server could not be asked when it happened.
    """

    __slots__ = (
        *_FIELDS,
        *_FLAGS,
        "arguments",
        "asks",
        "duration_ms",
        "exit_code",
    )
    host: str
    event: str
    moment: str
    session: str
    agent: str
    cwd: str
    sharing: str
    kind: str
    tool: str
    call: str
    text: str
    output: str
    source: str
    transcript: str
    model: str
    arguments: "dict[str, Any]"
    exit_code: "int | None"
    duration_ms: int
    asks: bool
    failed: bool
    mute: bool
    refused: bool
    settles: bool
    stopping: bool
    unasked: bool

    def __init__(self, **fields: "Any") -> None:
        for name in _FIELDS:
            setattr(self, name, fields.pop(name, "") or "")
        self.arguments = fields.pop("arguments", None) or {}
        self.exit_code = fields.pop("exit_code", None)
        self.duration_ms = fields.pop("duration_ms", 0)
        self.asks = fields.pop("asks", True)
        for name in _FLAGS:
            setattr(self, name, fields.pop(name, False))
        if fields:
            raise TypeError(f"Unknown fields: {', '.join(fields)}.")

    def as_dict(self) -> "dict[str, Any]":
        """Return the fields that are not as for an empty action, as JSON for the server."""
        found = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in found.items() if value or name in ("exit_code", "asks")}


class HostReply:
    """What a hook answers its host, before the host's own format.

    Attributes:
        decision: ``allow``, ``ask`` or ``deny`` before a tool; ``go_on`` to keep the agent from stopping.
        reason: One sentence for it.
        context: Text for the model.
        message: Text for the user.
    """

    __slots__ = ("context", "decision", "message", "reason")

    def __init__(self, decision: str = "", reason: str = "", context: str = "", message: str = "") -> None:
        self.decision = decision
        self.reason = reason
        self.context = context
        self.message = message

    @classmethod
    def of(cls, given: "Mapping[str, Any]") -> "HostReply":
        """Return the reply that the server sent; what is not text counts as empty."""
        found = (given.get(name, "") for name in ("decision", "reason", "context", "message"))
        return cls(*(value if isinstance(value, str) else "" for value in found))


def text_of(value: object) -> str:
    """Return a payload's value as text: a text as it is, the texts in a list joined, an object as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(one, dict) and "text" in one for one in value):
        return "\n".join(text_of(one["text"]) for one in value)
    if value is None or value in ({}, []):
        return ""
    return str(__import__("json").dumps(value, ensure_ascii=False))


def shortened(text: str, most: int = MOST_TEXT) -> str:
    r"""Return a text, or the head and the end of a longer one.

    >>> shortened("abcdefgh", 4)
    'ab\n[... 4 characters left out ...]\ngh'
    """
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"
