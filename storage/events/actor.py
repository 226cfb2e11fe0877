"""Who did what an event records: a role and, mostly, a name."""

from typing import NamedTuple, Self


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
