"""Whether somebody still waits for what a thread does: long walks and searches look here as they go on.

Whoever starts the work says how to find that out (:func:`while_wanted`); a walk deep below calls
:func:`go_on`. Work that must not stop halfway is put under :func:`finishing`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


def _always() -> bool:
    return True


_WANTED: ContextVar[Callable[[], bool]] = ContextVar("_WANTED", default=_always)


@contextmanager
def while_wanted(wanted: Callable[[], bool]) -> Iterator[None]:
    """Stop the walks in the body of the ``with``, in this thread, once a function says no.

    >>> with while_wanted(lambda: False):
    ...     try:
    ...         go_on()
    ...     except KeyboardInterrupt:
    ...         print("stopped")
    stopped
    """
    before = _WANTED.set(wanted)
    try:
        yield
    finally:
        _WANTED.reset(before)


@contextmanager
def finishing() -> Iterator[None]:
    """Let everything in the body of the ``with``, or in a function that this decorates, come to its end."""
    with while_wanted(_always):
        yield


def go_on() -> None:
    """Return, unless nobody waits any more.

    Raises:
        KeyboardInterrupt: Nobody does. It is as if the user had pressed Ctrl-C, so nothing on its way
            takes it for damage that it reads around.
    """
    if not _WANTED.get()():
        raise KeyboardInterrupt
