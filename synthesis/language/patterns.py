"""Regular expressions that are compiled on first use.

There are hundreds of them, and a process that reads no message needs none.
"""

import re
from typing import Any, cast

_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split")


class _Pattern:
    """Proxy of a pattern: compiles it on first use, then has the pattern's own methods."""

    def __init__(self, pattern: str, flags: re.RegexFlag) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self._flags)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def on_use(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Return a pattern that is compiled on first use.

    Functions of :mod:`re` that take a pattern do not accept it.

    >>> on_use("b+").sub("-", "abba")
    'a-a'
    """
    return cast("re.Pattern[str]", _Pattern(pattern, flags))
