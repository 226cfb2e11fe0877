"""A clock that can be put forward: Python imports this by itself where this folder is on its path.

Everything that asks ``datetime`` or ``time`` for the present gets a later one, as if the machine's clock had gone on. So
days pass for a program, and nothing inside it is touched.
"""

import datetime as dt
import os
import time

LATER_S = "TESTS_CLOCK_LATER_S"
"""The variable with the seconds that the clock is ahead."""

_REAL = dt.datetime
_REAL_TIME = time.time
_AHEAD = {"seconds": float(os.environ.get(LATER_S, "0"))}


def put_forward(ahead_s: float) -> None:
    """Be so many seconds ahead of the real clock."""
    _AHEAD["seconds"] = ahead_s


class _Kind(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _REAL)


class _Later(_REAL, metaclass=_Kind):
    @classmethod
    def now(cls, tz=None):
        return _REAL.now(tz) + dt.timedelta(**_AHEAD)


if LATER_S in os.environ:
    dt.datetime = _Later  # type: ignore[misc]
    time.time = lambda: _REAL_TIME() + _AHEAD["seconds"]
