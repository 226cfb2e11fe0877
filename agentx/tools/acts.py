"""The declaration of what makes two calls of a function the same act.

As in::

    from agentx import act

    @act(key=("patient", "appointment"))
    def send_reminder(patient: str, appointment: int, text: str) -> str: ...

The engine then refuses a second call with the same patient and appointment, whatever its text is.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from agentx.storage.errors import UsageError
from agentx.synthesis.directing.acts import Declaration, Window

P = ParamSpec("P")
R = TypeVar("R")

_MARK = "__agentx_act__"


@overload
def act(function: Callable[P, R], *, key: Sequence[str] = (), window: Window = "once") -> Callable[P, R]: ...
@overload
def act(
    function: None = None, *, key: Sequence[str] = (), window: Window = "once"
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def act(
    function: Callable[..., Any] | None = None, *, key: Sequence[str] = (), window: Window = "once"
) -> Any:
    """Declare what makes two calls of a function the same act; the engine refuses to do it again.

    Usable as ``@act``, as ``@act(key=…)`` and as ``act(function, key=…)``.

    Args:
        function: The function.
        key: Arguments that make it the same act, or paths into them (``order.id``); all arguments by default.
            With ``[]`` behind one (``titles[]``), each entry of the list is an act by itself.
        window: Within what it is done once: for ever (``once``), each due time of the schedule (``due``),
            each calendar day in the schedule's time zone (``day``). ``never`` is for a function that only
            looks: it is not refused, and not listed as done.
    """

    def declare(declared: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(declared)
        def call(*args: Any, **kwargs: Any) -> Any:
            return declared(*args, **kwargs)

        if isinstance(key, str):
            raise UsageError(f"The key of an act is a list of names; write key=({key!r},).")
        setattr(call, _MARK, Declaration(tuple(key), window))
        return call

    return declare if function is None else declare(function)


def declaration(function: Callable[..., Any]) -> Declaration | None:
    """Return what was declared about a function; ``None`` for nothing."""
    found = getattr(function, _MARK, None)
    return found if isinstance(found, Declaration) else None
