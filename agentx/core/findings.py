"""What a look at a workspace finds: one sentence for each thing that is not as it should be."""

from collections.abc import Callable

import msgspec

REPAIR = "agentx repair"

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""


class Finding(msgspec.Struct, frozen=True):
    """Something that is not as it should be.

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
