"""Reports of secrets in files: their place and rule, never their value."""

from collections.abc import Mapping

from agentx.recording.staging import Content
from agentx.storage.secrets.redaction import find
from agentx.storage.text import text_of

SHOWN = 5
"""Maximum number of secrets listed one by one."""


def secrets_in(path: str, text: str, known: frozenset[str] = frozenset()) -> list[str]:
    """Return path, line and rule of each secret in an artifact that is not known; never its value."""
    return [
        f"{path} line {text.count(chr(10), 0, found.start) + 1} ({found.rule})"
        for found in find(text)
        if text[found.start : found.end] not in known
    ]


def notes_on(contents: Mapping[str, Content | None]) -> list[str]:
    """Return one-time warnings about secrets in the user's files; the files are kept as they are."""
    return note_on(
        [told for path, one in contents.items() if one for told in secrets_in(path, text_of(one.data))]
    )


def note_on(found: list[str]) -> list[str]:
    """Return a warning about secrets found in the user's files; empty if there are none."""
    return [f"A possible secret is now in Git: {tell(found)}."] if found else []


def tell(found: list[str]) -> str:
    """List some secrets for use in a sentence."""
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"{', '.join(found[:SHOWN])}{more}"
