"""What a check looks at, and what it finds."""

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import msgspec

from agentx.storage.matching.matcher import Undecided

Side = Literal["before", "after"]

_T = TypeVar("_T")


class Breach(msgspec.Struct, frozen=True, kw_only=True):
    """A place where a check is broken.

    Attributes:
        reason: One sentence: what breaks it, and where.
        line: Line in the new text, from 1; 0 if none applies.
        doubt: Why it is uncertain whether this breaks the check; empty if it is certain.
        correction: The whole text or command line that would not break it; empty if none is mechanical.
    """

    reason: str
    line: int = 0
    doubt: str = ""
    correction: str = ""


def undecided(why: Undecided, what: str) -> Breach:
    """Return a breach that a person must decide, of a check that could not be made."""
    return Breach(reason=f"Whether {what} breaks this rule was not decided.", doubt=str(why))


class CheckedChange(msgspec.Struct, kw_only=True):
    """A change of one file.

    Attributes:
        path: Path relative to the artifacts root.
        before: The text before; ``None`` if the file does not exist or is binary.
        after: The text after; ``None`` if the file is deleted or moved away, or its new content is binary.
        removes: Whether the file is deleted or moved away.
        actor: Who makes the change; empty if unknown.
        message: The user's message that the agent works on, which may name the topic.
        parsed: What is read from its texts, so that each is read once for all checks.
    """

    path: str
    before: str | None = None
    after: str | None = None
    removes: bool = False
    actor: str = ""
    message: str = ""
    parsed: dict[Any, Any] = msgspec.field(default_factory=dict)

    def text(self, side: Side) -> str:
        """Return the text of one side; empty if there is none."""
        return (self.before if side == "before" else self.after) or ""

    def once(self, key: tuple[str, ...], read: Callable[[], _T]) -> _T:
        """Return what was read from its texts under a key; the first call reads it."""
        if key not in self.parsed:
            self.parsed[key] = read()
        found: _T = self.parsed[key]
        return found
