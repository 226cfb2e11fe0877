"""The hosts whose transcripts can be imported: their reader, their files, and where these usually are."""

from typing import NamedTuple

from agentx.importing import claude_code
from agentx.importing.entries import Read


class TranscriptFormat(NamedTuple):
    """The transcripts of one host.

    Attributes:
        read: Reads one file.
        version: Version of the reader; raised when it reads something differently.
        endings: How the names of its files end, without ``.gz``; a file that is named itself may have any name.
        places: Directories in which the host keeps them, relative to the home directory.
    """

    read: Read
    version: int
    endings: tuple[str, ...]
    places: tuple[str, ...] = ()


FORMATS: dict[str, TranscriptFormat] = {
    "claude-code": TranscriptFormat(claude_code.read, 1, (".jsonl",), (".claude/projects",)),
}
