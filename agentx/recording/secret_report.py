"""What a person or an agent is told of secrets in files: where they stand and by which rule, never what they are."""

from collections.abc import Mapping

from agentx.recording.staging import Content
from agentx.storage.secrets.redaction import find
from agentx.storage.text import is_binary

SHOWN = 5
"""So many secrets are told one by one."""


def text_of(data: bytes) -> str:
    """What is searched of a content: its text; nothing where it is binary."""
    return "" if is_binary(data) else data.decode("utf-8", "replace")


def secrets_in(path: str, text: str, known: frozenset[str] = frozenset()) -> list[str]:
    """Where secrets stand in an artifact, never what they are: path, line and rule of each that is not known."""
    return [
        f"{path} line {text.count(chr(10), 0, found.start) + 1} ({found.rule})"
        for found in find(text)
        if text[found.start : found.end] not in known
    ]


def notes_on(contents: Mapping[str, Content | None]) -> list[str]:
    """What a person is told, once, whose own files hold secrets: they are kept as they are."""
    return note_on(
        [told for path, one in contents.items() if one for told in secrets_in(path, text_of(one.data))]
    )


def note_on(found: list[str]) -> list[str]:
    """What a person is told of the secrets that were found in files of theirs; nothing where there are none."""
    return [f"What looks like a secret is now in Git: {tell(found)}."] if found else []


def tell(found: list[str]) -> str:
    """Some secrets in a sentence's words."""
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"{', '.join(found[:SHOWN])}{more}"
