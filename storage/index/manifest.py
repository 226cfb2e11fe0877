"""``index.json``, and the errors of an index directory."""

from pathlib import Path

import msgspec

from agentx.storage.errors import AgentXError
from agentx.storage.files import nofollow

FORMAT = 5
"""Version of layout and text analysis; an index of another version is set aside and filled again."""

TABLE_LOCK = "index.lock"
"""File in an index directory that is locked while a process writes its table and parts."""


class IndexDamaged(AgentXError):
    """The index cannot be read, or another version made it; it is a cache and can be set aside.

    Attributes:
        path: Its directory.
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"The search index in {path} cannot be used: {reason}. "
            "It is only a cache: `agentx rebuild` makes it again."
        )
        self.path = path


class IndexUnavailable(AgentXError):
    """The index cannot be written now: the disk is full, or permissions are missing."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """``index.json``: the state of the table; replaced as a whole, so that it is always consistent.

    Attributes:
        format: :data:`FORMAT` of the version that wrote it.
        table: Name of the table, new after each clearing; empty if there is none.
        dimensions: Dimensions of the vectors in the table; 0 if there are none.
        meta: The small values.
        flushes: Number of flushes; what was read from a table is valid until this changes.
        parts: Files with the same rows as the table, the oldest first
            (:mod:`agentx.storage.index.part`); ``None`` if they have to be made from it.
        made: Random name of this index. What was read from a deleted index in the same directory is void.
    """

    format: int = FORMAT
    table: str = ""
    dimensions: int = 0
    meta: dict[str, str] = {}
    flushes: int = 0
    parts: tuple[str, ...] | None = None
    made: str = ""


def set_aside(path: Path) -> Path:
    """Move an unusable index out of the way, replacing one set aside earlier.

    Returns:
        Its new path.

    Raises:
        IndexUnavailable: It cannot be moved.
    """
    aside = path.with_name(path.name + ".damaged")
    try:
        nofollow.remove_tree(aside, ignore_errors=True)
        path.rename(aside)
    except OSError as error:
        raise IndexUnavailable(
            f"The damaged search index {path} cannot be moved away ({error.strerror}); delete it."
        ) from error
    return aside


def read_manifest(path: Path) -> Manifest:
    """Read the manifest of the index in a directory.

    Raises:
        IndexDamaged: It is missing, unreadable, or has another format.
    """
    try:
        manifest = msgspec.json.decode(nofollow.read(path / "index.json"), type=Manifest)
    except (OSError, msgspec.DecodeError) as error:
        raise IndexDamaged(path, f"index.json cannot be read ({reason_of(error)})") from error
    if manifest.format != FORMAT:
        raise IndexDamaged(path, f"it has format {manifest.format}, and this version writes {FORMAT}")
    return manifest


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Replace a manifest file atomically."""
    beside = path.with_name(path.name + ".new")
    nofollow.write(beside, msgspec.json.encode(manifest))
    beside.replace(path)


def reason_of(error: BaseException) -> str:
    """Return the first line of an error, bounded, for use in a sentence."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
