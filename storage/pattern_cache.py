"""Compiled regular expressions, kept between processes.

Compiling the patterns that read one message takes a command longer than all of its other work. Like Python's
``.pyc`` files, the cache belongs to one interpreter, holds nothing that cannot be made again, and may be
deleted at any time. What it keeps are the arguments of ``_sre.compile``, the last step of :func:`re.compile`;
that step checks the code that it is given. An interpreter whose ``re`` has other insides compiles as always.
"""

import marshal
import re
import sys
import zlib
from array import array
from contextlib import suppress
from pathlib import Path
from typing import Any

from agentx.storage.errors import AgentXError
from agentx.storage.files import durable, nofollow

_CHECKED = 4
_MOST = 5_000
"""Maximum number of patterns; a cache that would have more is begun again."""

_plainly = re.compile  # before anybody puts another function in its place

_Kept = tuple[int, bytes, int, dict[str, int], tuple[str | None, ...]]


class PatternCache:
    """Compiles patterns, or takes them as an earlier process compiled them."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._known: dict[tuple[str, int], _Kept] = {}
        self._fresh = 0

    def open(self, directory: Path) -> None:
        """Use the cache in a directory; without this, every pattern is compiled.

        A file that is torn, or a link, is not used.
        """
        # Another release of the interpreter may compile the same pattern to other code.
        self._path = directory / f"{sys.implementation.name}-{sys.hexversion:x}-{array('I').itemsize}"
        self._known, self._fresh = {}, 0
        with suppress(OSError, AgentXError, ValueError, EOFError, TypeError):
            content = nofollow.read(self._path)
            if _checksum(content[_CHECKED:]) == content[:_CHECKED]:
                self._known = marshal.loads(content[_CHECKED:])  # noqa: S302 - of this user's cache, as `.pyc` files

    def compile(self, pattern: Any, flags: int = 0) -> re.Pattern[Any]:
        """Return a compiled pattern, as :func:`re.compile` does; only those of text are kept."""
        flags = int(flags)
        if self._path is None or type(pattern) is not str or flags & re.DEBUG:
            return _plainly(pattern, flags)
        try:
            kept = self._known.get((pattern, flags))
            if kept is None:
                kept = self._known[pattern, flags] = _compiled(pattern, flags)
                self._fresh += 1
            return _loaded(pattern, kept)
        except (AttributeError, ImportError, TypeError, RuntimeError, KeyError):  # other insides
            self._path = None
            return _plainly(pattern, flags)

    def save(self) -> None:
        """Keep what was compiled since; a directory that cannot be written is left alone."""
        if self._path is None or not self._fresh:
            return
        known = self._known if len(self._known) <= _MOST else {}
        content = marshal.dumps(known, 2)  # without references, which take longer to load
        with suppress(OSError, AgentXError):
            nofollow.make_directory(self._path.parent, parents=True)
            content = _checksum(content) + content
            durable.replace(durable.write_temporary(self._path.parent, content, sync=False), self._path)
        self._fresh = 0


PATTERNS = PatternCache()
"""The cache of this process."""


def _checksum(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(_CHECKED)


def _compiled(pattern: str, flags: int) -> _Kept:
    """Return the arguments of the last step, as ``re._compiler.compile`` makes them (Python 3.11 to 3.13)."""
    parsed = _insides("_parser").parse(pattern, flags)
    code = _insides("_compiler")._code(parsed, flags)  # noqa: SLF001 - see the top
    state = parsed.state
    names: list[str | None] = [None] * state.groups
    for name, number in state.groupdict.items():
        names[number] = name
    return flags | state.flags, array("I", code).tobytes(), state.groups - 1, state.groupdict, tuple(names)


def _loaded(pattern: str, kept: _Kept) -> re.Pattern[str]:
    flags, packed, groups, named, names = kept
    code = array("I")
    code.frombytes(packed)
    made = _insides("_compiler")._sre.compile  # noqa: SLF001 - see the top
    found: re.Pattern[str] = made(pattern, flags, code.tolist(), groups, named, names)
    return found


def _insides(name: str) -> Any:
    return getattr(re, name)
