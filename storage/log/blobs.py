"""Long content beside the log: ``history/blobs/ab/cdef…``, named by its Git blob id, tracked by Git.

Content that an event names must be in a commit's tree, or ``git gc`` and a clone would lose it.
"""

import re
from pathlib import Path

import msgspec

from agentx.storage.errors import AgentXError, DiskRefused
from agentx.storage.events.types import Body, Payload
from agentx.storage.files import nofollow
from agentx.storage.files.durable import write_file
from agentx.storage.git.objects import blob_id

FOLDER = "history/blobs"

_OID = re.compile("[0-9a-f]{40}")

WHOLE_BYTES = 6_000
"""A text whose JSON is not longer is stored in the event itself."""

_LONGEST_ESCAPE = 6
"""Maximum number of bytes for one character in JSON: a control character, or half of one beyond the BMP."""

_HEAD_BYTES, _TAIL_BYTES = 2_500, 1_500


class BlobDamaged(AgentXError):
    """A blob is missing, or does not match its name."""


class BlobNotKept(DiskRefused):
    """A long content could not be written: a full disk, missing rights."""


class BlobStore:
    """The blobs of one workspace."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @staticmethod
    def is_long(text: str, whole_bytes: int = WHOLE_BYTES) -> bool:
        """Return whether a text is stored as a blob because its JSON is longer than the limit."""
        return len(text) > whole_bytes // _LONGEST_ESCAPE and len(msgspec.json.encode(text)) > whole_bytes

    def body(self, text: str, whole_bytes: int = WHOLE_BYTES) -> Body:
        """Store a text in the body itself if it is short, otherwise as a blob.

        The body of a blob holds an extract of its head and tail.
        """
        if not self.is_long(text, whole_bytes):
            return Body(text)
        data = text.encode()
        head, tail = _fit(text, _HEAD_BYTES), _fit(text[::-1], _TAIL_BYTES)[::-1]
        left_out = len(text) - len(head) - len(tail)
        extract = f"{head}\n[… {left_out:,} characters left out …]\n{tail}"
        return Body(extract, self.put(data), len(data))

    def text(self, body: Body) -> str:
        """Return the whole text of a body.

        Raises:
            BlobDamaged: Its blob is missing or damaged.
        """
        return self.get(body.blob).decode("utf-8", "replace") if body.blob else body.text

    def text_left(self, body: Body) -> str:
        """Return the whole text of a body, or what the event itself holds of it if its blob is lost."""
        try:
            return self.text(body)
        except BlobDamaged:
            return body.text

    def put(self, data: bytes) -> str:
        """Store a content durably; return its id.

        Raises:
            BlobNotKept: It could not be written.
        """
        oid = blob_id(data)
        path = self._root / blob_path(oid)
        if not (nofollow.exists(path) and blob_id(nofollow.read(path)) == oid):
            try:
                write_file(path, data)
            except OSError as error:
                raise BlobNotKept(
                    f"{blob_path(oid)} could not be written: {error.strerror}. "
                    "Nothing was recorded; free disk space or fix the permissions."
                ) from error
        return oid

    def get(self, oid: str) -> bytes:
        """Return the content of a blob.

        Raises:
            BlobDamaged: It is missing, or does not match its name.
        """
        path = self._root / blob_path(oid)
        try:
            data = nofollow.read(path)
        except OSError as error:
            raise BlobDamaged(
                f"{blob_path(oid)} cannot be read: {error.strerror}. "
                f"`git checkout -- {FOLDER}` may restore it."
            ) from error
        if blob_id(data) != oid:
            raise BlobDamaged(f"{blob_path(oid)} is damaged. `git checkout -- {FOLDER}` may restore it.")
        return data


def blob_path(oid: str) -> str:
    """Return the path of a blob, relative to the workspace.

    >>> blob_path("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391")
    'history/blobs/e6/9de29bb2d1d6434b8b29ae775ad8c2e48c5391'

    Raises:
        BlobDamaged: It is not an id. A history from elsewhere may contain a path in its place.
    """
    if not _OID.fullmatch(oid):
        raise BlobDamaged(f"{oid[:80]!r} is not a blob id.")
    return f"{FOLDER}/{oid[:2]}/{oid[2:]}"


def named_blobs(payload: Payload) -> list[str]:
    """Return the ids of the blobs that a payload names."""
    values = (getattr(payload, name) for name in payload.__struct_fields__)
    return [value.blob for value in values if isinstance(value, Body) and _OID.fullmatch(value.blob)]


def _fit(text: str, limit_bytes: int) -> str:
    """Return the longest prefix whose JSON fits the limit (an escaped control character takes six bytes)."""
    part = text[:limit_bytes]
    while part and len(msgspec.json.encode(part)) > limit_bytes:
        part = part[: len(part) * limit_bytes // (len(msgspec.json.encode(part)) + 1)]
    return part
