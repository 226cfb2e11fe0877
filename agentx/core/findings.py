"""The findings of an integrity check: one sentence for each problem."""

from collections.abc import Callable

import msgspec

REPAIR = "agentx repair"


class Finding(msgspec.Struct, frozen=True):
    """A problem that a check found.

    Attributes:
        check: Which check found it.
        where: File, event or commit.
        what: What is wrong with it, to follow ``where`` in a sentence.
        todo: What to do: a command, or a sentence.
    """

    check: str
    where: str
    what: str
    todo: str = REPAIR


Found = Callable[[Finding], None]
