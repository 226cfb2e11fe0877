"""Patterns that are compiled when they are first used: there are hundreds, and a process that reads no message needs none."""

import re
from typing import Any, cast

_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split")


class _Pattern:
    """Stands for a pattern until something is asked of it; from then on its methods are the pattern's own."""

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
    """A pattern that is compiled when it is first used; functions of :mod:`re` that take a pattern do not take it.

    >>> on_use("b+").sub("-", "abba")
    'a-a'
    """
    return cast("re.Pattern[str]", _Pattern(pattern, flags))
