"""Valid paths of artifacts: inside the artifacts directory, and storable on every system."""

import os
import re
import stat
from pathlib import Path

from agentx.storage.errors import AgentXError
from agentx.storage.files import nofollow
from agentx.storage.files.durable import TEMPORARY_PREFIX
from agentx.storage.files.nofollow import LinkRefused
from agentx.storage.secrets.redaction import redact

MAX_PATH_BYTES = 1_024
MAX_NAME_BYTES = 255

_RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])(\..*)?", re.IGNORECASE)
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\]')
_GIT = re.compile(r"\.git[ .]*|git~[0-9]+", re.IGNORECASE)
# Characters that HFS+ ignores in names, so that ".g\u200cit" is ".git" there (git: verify_path).
_IGNORED = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")


class PathRefused(AgentXError):
    """A path leads out of the artifacts, or another system could not store it.

    Attributes:
        path: The path as it was given.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"The path {path[:200]!r} is refused: {reason}")
        self.path = path


def check_path(path: str) -> str:
    """Normalise a path that an agent or a person gave to the form that the record uses.

    Args:
        path: Relative to the artifacts root, with forward slashes; a leading ``./`` and a trailing slash are
            dropped.

    Returns:
        The path without empty and ``.`` components.

    Raises:
        PathRefused: It is absolute, contains ``..`` or ``.git``, or a name that some system cannot hold.

    >>> check_path("./src//main.py")
    'src/main.py'
    >>> check_path("../secrets")
    Traceback (most recent call last):
    agentx.storage.files.paths.PathRefused: The path '../secrets' is refused: it leads out of the artifacts.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or (parts and re.match(r"~|[A-Za-z]:", parts[0])):
        raise PathRefused(path, "it is absolute; give it relative to the artifacts, like 'src/main.py'.")
    if not parts:
        raise PathRefused(path, "it names no file.")
    for part in parts:
        reason = _objection(part)
        if reason:
            raise PathRefused(path, reason)
    clean = "/".join(parts)
    if len(_bytes(clean, path)) > MAX_PATH_BYTES:
        raise PathRefused(path, f"it is longer than {MAX_PATH_BYTES} bytes.")
    if (told := redact(clean)) != clean:
        raise PathRefused(told, "it contains a possible secret, and paths are recorded.")
    return clean


def check_folder(path: str) -> str:
    """Like :func:`check_path`, for a directory.

    The empty string and ``.`` name the root of the artifacts; it is returned as the empty string.

    Raises:
        PathRefused: It leads out of the artifacts, or is not a name that every system can store.

    >>> check_folder("./"), check_folder("src/")
    ('', 'src')
    """
    inside = path in ("", ".") or (path.startswith("./") and not path.strip("./") and ".." not in path)
    return "" if inside else check_path(path)


def _objection(name: str) -> str:
    """Return why a component of a path is refused; empty if it is not."""
    if name == "..":
        return "it leads out of the artifacts."
    if _GIT.fullmatch(_IGNORED.sub("", name)):
        return "'.git' belongs to Git."
    if name.startswith(TEMPORARY_PREFIX):
        return "that name is reserved for temporary files."
    if found := _FORBIDDEN.search(name):
        return f"{found.group()!r} is not allowed in file names on every system."
    if _RESERVED.fullmatch(name):
        return f"{name!r} is a device on Windows."
    if name != name.rstrip(" ."):
        return "a name that ends in a dot or a space is lost on Windows."
    if len(_bytes(name, name)) > MAX_NAME_BYTES:
        return f"a name in it is longer than {MAX_NAME_BYTES} bytes."
    return ""


def _bytes(text: str, path: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise PathRefused(path, "it is not valid Unicode.") from None


def resolve_inside(root: Path, path: str) -> Path:
    """Return the working file for a checked path, refusing links on the way to it.

    The last component may be a link: operations then apply to the link itself.

    Args:
        root: The artifacts directory, canonical.
        path: As :func:`check_path` returns it.

    Raises:
        PathRefused: A directory on the way is a link (the record knows each file by one path only), or a
            file.
        LinkRefused: ``root`` itself is reached through a link.
    """
    target = Path(f"{root}/{path}")
    try:
        nofollow.require_directory(os.path.dirname(f"{root}/{path}"))
    except FileNotFoundError:  # a directory on the way is missing, or is a file
        pass
    except LinkRefused:
        nofollow.require_directory(root)
    else:
        return target
    folder = str(root)
    for name in path.split("/")[:-1]:
        folder = f"{folder}/{name}"
        try:
            mode = nofollow.status(folder).st_mode
        except FileNotFoundError:
            break
        if not stat.S_ISDIR(mode):
            raise PathRefused(path, _why_not(root, path, name, is_link=stat.S_ISLNK(mode)))
    return target


def _why_not(root: Path, path: str, name: str, *, is_link: bool) -> str:
    if not is_link:
        return f"{name!r} on the way is a file, not a directory."
    parent = os.path.realpath((root / path).parent)
    if not _lies_in(parent, root):
        return "a link on the way leads out of the artifacts."
    direct = os.path.relpath(os.path.join(parent, os.path.basename(path)), root)
    return f"a directory on the way is a link; the file's own path is {direct!r}."


def resolve_file(root: Path, path: str) -> Path:
    """Like :meth:`resolve_inside`, but follow a link in the last component, which must stay inside.

    Returns:
        The path of the file itself, without links.

    Raises:
        PathRefused: A link leads out of ``root``.
    """
    target = resolve_inside(root, path)
    real = os.path.realpath(target) if nofollow.is_link(target) else str(target)
    if not _lies_in(real, root):
        raise PathRefused(path, "it is a link that leads out of the artifacts.")
    return Path(real)


def _lies_in(path: str, root: Path) -> bool:
    return path == str(root) or path.startswith(f"{root}{os.sep}")
