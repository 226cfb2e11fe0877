"""Two caches, and the way past both.

The upstream is slow and is paid by the call, so its answers are kept for five minutes (`ResponseCache`), and what is
costly to compute is kept by function (`@cached`). `@disable_cache` leads past both.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

RESPONSE_TTL_S = 300.0
MAX_RESPONSES = 512

_disabled: ContextVar[bool] = ContextVar("disabled", default=False)
_function_caches: list["TTLCache"] = []


class TTLCache:
    """Keeps values for a time, and not more than so many: the one used longest ago goes first."""

    def __init__(self, ttl_s: float, max_entries: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.ttl_s = ttl_s
        self.max_entries = max_entries
        self._clock = clock
        self._entries: OrderedDict[Hashable, tuple[float, Any]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> Any | None:
        """The value kept under a key; `None` where there is none, or it is too old."""
        if key not in self._entries:
            return None
        stored_at, value = self._entries[key]
        if self._clock() - stored_at > self.ttl_s:
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return value

    def put(self, key: Hashable, value: Any) -> None:
        """Keep a value under a key."""
        self._entries[key] = (self._clock(), value)
        self._entries.move_to_end(key)
        while len(self._entries) > self.max_entries:
            self._entries.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()


class ResponseCache(TTLCache):
    """The upstream's answers by path and parameters."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(RESPONSE_TTL_S, MAX_RESPONSES, clock)


def cached(ttl_s: float, max_entries: int = 256) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Keep what a function returns, by its arguments."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        kept = TTLCache(ttl_s, max_entries)
        _function_caches.append(kept)

        @wraps(function)
        def look_first(*args: P.args, **kwargs: P.kwargs) -> R:
            if is_disabled():
                return function(*args, **kwargs)
            key = (args, tuple(sorted(kwargs.items())))
            value = kept.get(key)
            if value is None:
                value = function(*args, **kwargs)
                kept.put(key, value)
            return value

        return look_first

    return decorate


def disable_cache(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function, and all that it calls, go past every cache: nothing is taken from one, nothing is left in one."""

    @wraps(function)
    def go_past(*args: P.args, **kwargs: P.kwargs) -> R:
        token = _disabled.set(True)
        try:
            return function(*args, **kwargs)
        finally:
            _disabled.reset(token)

    return go_past


def is_disabled() -> bool:
    """Whether the caches are to be passed by, here and now."""
    return _disabled.get()


def clear_function_caches() -> None:
    """Forget what functions returned."""
    for kept in _function_caches:
        kept.clear()
