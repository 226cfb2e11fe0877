"""Find the speaker of a message: from its actor, or from the name at the head of an imported turn.

A question about a person is judged by who said what (:mod:`~agentx.synthesis.cognition.curation`), so a
memory keeps the name as a link.
"""

import re
from collections.abc import Iterable

from agentx.storage.events.actor import Actor
from agentx.synthesis.memory.items import Link

SAID_BY = "said_by"
"""Relation from a memory to its speaker's name."""

_HEAD = re.compile(r"\s*((?:[^\W\d_][\w'’-]*\.?)(?: [^\W\d_][\w'’-]*\.?){0,2}):[ \t]+\S")
_LABEL = re.compile(
    r"(?:again|also|answer|background|but|caution|context|correction"
    r"|edit|error|example|fact|goal|hint|however|idea|important|info|instead"
    r"|issue|notes?|no|ok|problem|ps|question|reason"
    r"|reminder|result|rule|so|solution|step|still|subject|summary|then"
    r"|tip|title|to-?do|update|warning|yes)\b",
    re.IGNORECASE,
)
"""Words that head a message but are not names."""


def speaker(actor: str, text: str) -> str:
    """Return the name of a message's speaker; empty if nobody is named.

    >>> speaker("user:Ann", "I moved here from Lisbon."), speaker("user", "Ben: I moved, too.")
    ('Ann', 'Ben')
    >>> speaker("user", "Note: the shop is closed."), speaker("user", "the plan: we move")
    ('', '')
    """
    return Actor.parse(actor).name or _heading(text)


def heading_length(text: str) -> int:
    """Return the length of the name at the head of a turn, with its colon; 0 if there is none.

    >>> heading_length("Ben: I moved, too."), heading_length("Note: the shop is closed.")
    (4, 0)
    """
    name = _heading(text)
    return text.index(":") + 1 if name else 0


def _heading(text: str) -> str:
    head = _HEAD.match(text)
    named = head and all(word[0].isupper() for word in head[1].split()) and not _LABEL.match(head[1])
    return head[1] if head and named else ""


def said_by(links: Iterable[Link]) -> str:
    """Return the speaker's name from a memory's links; empty for none."""
    return next((link.target for link in links if link.relation == SAID_BY), "")
