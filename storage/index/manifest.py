"""``index.json`` and what can be wrong with the directory of an index."""

from pathlib import Path

import msgspec

from agentx.storage.errors import AgentXError
from agentx.storage.files import nofollow

FORMAT = 4
"""Number of the layout and of the text analysis; an index of another number is set aside and filled again."""


class IndexDamaged(AgentXError):
    """The index cannot be read, or was made by another version; it is a cache and can be set aside.

    Attributes:
        path: Its directory.
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"The search index in {path} cannot be used: {reason}. It is only a cache: `agentx rebuild` makes it again."
        )
        self.path = path


class IndexUnavailable(AgentXError):
    """The index cannot be written now: the disk is full, or rights are missing."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """``index.json``: what the table holds; replaced as a whole, so that it is always one state.

    Attributes:
        format: :data:`FORMAT` of the version that made it.
        table: Name of the table, new after each clearing; empty while there is none.
        dimensions: Of the vectors in the table; 0 while there are none.
        meta: The small values.
        flushes: How often it was written: what was read of a table holds until this changes.
    """

    format: int = FORMAT
    table: str = ""
    dimensions: int = 0
    meta: dict[str, str] = {}
    flushes: int = 0


def set_aside(path: Path) -> Path:
    """Move an index that cannot be used out of the way, in place of an earlier such one.

    Returns:
        Where it lies now.

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
        IndexDamaged: It is missing, cannot be read, or is of another format.
    """
    try:
        manifest = msgspec.json.decode(nofollow.read(path / "index.json"), type=Manifest)
    except (OSError, msgspec.DecodeError) as error:
        raise IndexDamaged(path, f"index.json cannot be read ({reason_of(error)})") from error
    if manifest.format != FORMAT:
        raise IndexDamaged(path, f"it has format {manifest.format}, and this version writes {FORMAT}")
    return manifest


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Replace a manifest file as a whole."""
    beside = path.with_name(path.name + ".new")
    nofollow.write(beside, msgspec.json.encode(manifest))
    beside.replace(path)


def reason_of(error: BaseException) -> str:
    """The first line of an error, bounded, to stand in a sentence."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
