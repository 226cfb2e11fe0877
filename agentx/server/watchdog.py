"""A server that answers nobody ends itself, so that the next command starts another one.

The kernel ends it: an alarm is set, and its loop puts it off again and again. No thread of this process could
do that while another one, in a library, keeps Python's lock.
"""

import asyncio
import signal
from collections.abc import Coroutine

LIMIT_S = 60.0
"""How long the loop may stand still."""

_BEATS = 20
"""How often the alarm is put off in that time."""


async def watched(serving: Coroutine[None, None, None]) -> None:
    """Serve; end this process if its loop stands still for :data:`LIMIT_S`. In the main thread."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    beating = asyncio.ensure_future(_beats())
    try:
        await serving
    finally:
        beating.cancel()
        signal.setitimer(signal.ITIMER_REAL, 0)


async def _beats() -> None:
    while True:
        signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
        await asyncio.sleep(LIMIT_S / _BEATS)
