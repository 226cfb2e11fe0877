"""Checks of paths: files that may not be created, changed or deleted, and the form of their names."""

import posixpath
import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from pathspec import GitIgnoreSpec

from agentx.storage.matching import globs as linear
from agentx.storage.matching import matcher
from agentx.synthesis.enforcement.breaches import Breach, CheckedChange
from agentx.synthesis.memory.checks import PathCheck

if TYPE_CHECKING:
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
"""Characters that nobody sees, and that must not hide a name or a word."""


def forbidden_paths(check: PathCheck, change: CheckedChange) -> Iterator[Breach]:
    """Yield a breach if the check forbids this change of this path."""
    action = "delete" if change.removes else "create" if change.before is None else "change"
    if change.actor in check.allowed:
        return
    name = posixpath.basename(change.path)
    if check.name:
        if action == "create" and not matcher.matches_whole(check.name, name):
            yield Breach(reason=f"The name {name} of {change.path} has not the form `{check.name}`.")
    elif action in check.actions:
        moved = f"{change.path} may not be deleted or moved."
        yield Breach(reason=moved if change.removes else f"No file may be written at {change.path}.")


def matches(globs: tuple[str, ...], path: str, *, unread: bool = True) -> bool:
    """Return whether a path matches one of the globs (gitignore rules), compared leniently.

    Case, Unicode composition, dots and spaces at the end of a name and backslashes make no difference, as on
    lenient file systems.


    >>> matches(("**/requirements.txt",), "API/Requirements.txt. ")
    True

    Args:
        globs: The globs.
        path: The path.
        unread: What a glob that cannot be read says.
    """
    if not globs:
        return False
    spec, all_read = _spec(globs)
    return spec.match_file(_plain(path)) or (unread and not all_read)


@lru_cache(maxsize=512)
def _plain(path: str) -> str:
    """Return the form of a path that globs are matched with; each write compares one path with every rule."""
    visible = INVISIBLE.sub("", unicodedata.normalize("NFKC", path)).casefold().replace("\\", "/")
    names = [name if name in {".", ".."} else name.rstrip(". ").lstrip(" ") for name in visible.split("/")]
    return posixpath.normpath("/".join(name for name in names if name)).lstrip("/")


@lru_cache(maxsize=512)
def _spec(globs: tuple[str, ...]) -> tuple[GitIgnoreSpec, bool]:
    """Return the globs that can be read, and whether all can."""
    found: list[GitIgnoreSpecPattern] = []
    for glob in globs:
        with suppress(matcher.Undecided):
            found.append(linear.pattern(unicodedata.normalize("NFKC", glob).casefold()))
    return GitIgnoreSpec(found, backend="simple"), len(found) == len(globs)
