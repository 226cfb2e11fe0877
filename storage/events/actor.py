"""Who did what an event records: a role and, mostly, a name."""

import re
from typing import NamedTuple, Self

_RUN = re.compile(r"r-\d+")


def is_own_run(run: str) -> bool:
    """Return whether an event's run is a run of AgentX, not a session of another host, or none.

    >>> is_own_run("r-7"), is_own_run("00ef13bd-99a1-4001-a829-09985a069ab2"), is_own_run("")
    (True, False, False)
    """
    return _RUN.fullmatch(run) is not None


class Actor(NamedTuple):
    """An actor, written ``role:name`` or only ``role``: ``user:ann``, ``agent:main``, ``external``."""

    role: str
    name: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an actor as events carry it.

        >>> Actor.parse("agent:main")
        Actor(role='agent', name='main')
        """
        role, _, name = text.partition(":")
        return cls(role, name)

    @property
    def is_user(self) -> bool:
        """Whether the user acted."""
        return self.role == "user"
