"""Regular expressions that are compiled on first use.

There are hundreds of them, and a process that reads no message needs none. One that reads many searches them
only in texts that have the :mod:`words <agentx.synthesis.language.required_words>` which each of them needs.
"""

import re
from typing import Any, cast

from agentx.storage.pattern_cache import PATTERNS
from agentx.synthesis.language.required_words import filtered

_FILTERED_FROM = 200
"""Searches of a pattern before it is worth while to find out the words that it needs: 0.3 ms each."""

_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split")


class _Pattern:
    """Proxy of a pattern: compiles it on first use, then has the pattern's own methods."""

    def __init__(self, pattern: str, flags: re.RegexFlag) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        compiled = PATTERNS.compile(self.pattern, self._flags)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        self._searches_left, self._compiled = _FILTERED_FROM, compiled
        self.search = self._search
        return getattr(self, name) if name == "search" else getattr(compiled, name)

    def _search(self, text: str, *span: int) -> re.Match[str] | None:
        self._searches_left -= 1
        if not self._searches_left:
            self.search = filtered(self._compiled)
        return self._compiled.search(text, *span)


def on_use(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Return a pattern that is compiled on first use.

    Functions of :mod:`re` that take a pattern do not accept it.

    >>> on_use("b+").sub("-", "abba")
    'a-a'
    """
    return cast("re.Pattern[str]", _Pattern(pattern, flags))
