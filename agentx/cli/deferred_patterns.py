"""Defer the compilation of regular expressions until they are used.

The modules that a command imports compile more than six hundred, of which it uses a few dozen: that took a
fifth of the time of a short command.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from agentx.storage.pattern_cache import PATTERNS


@contextmanager
def deferred_patterns() -> Iterator[None]:
    """Let the modules of this package that are imported meanwhile compile their patterns at first use.

    Those of other packages take theirs from the cache.
    """
    compiles = re.compile

    def compile(pattern: Any, flags: int = 0) -> Any:  # noqa: A001 - it takes the place of `re.compile`
        caller = sys._getframe(1)  # noqa: SLF001 - documented
        if caller.f_code.co_name == "<module>" and caller.f_globals["__name__"].startswith("agentx."):
            return _Deferred(pattern, flags)
        return PATTERNS.compile(pattern, flags)

    re.compile = compile
    try:
        yield
    finally:
        re.compile = compiles


class _Deferred:
    """A pattern that is compiled when a method is first looked up; then it has the methods of the pattern."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self._source = pattern, flags

    def __getattr__(self, name: str) -> Any:
        found = PATTERNS.compile(*self._source)
        for method in _METHODS:
            self.__dict__[method] = getattr(found, method)
        return getattr(found, name)


_METHODS = [name for name in dir(re.Pattern) if not name.startswith("_")]
