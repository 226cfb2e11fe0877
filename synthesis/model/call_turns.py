"""Wait before a call to a provider, where something outside this process limits the calls.

A process has one gate at most, because its calls share one account with the calls of other processes: a
worker's resident process asks its worker, which asks the fleet's database. Without a gate nothing waits.
"""

import time
from typing import Protocol


class CallGate(Protocol):
    """What limits the calls of this process."""

    def wait(self, model: str) -> None:
        """Return when a call to this model may begin; its turn is used up then."""
        ...

    def pause(self, model: str, seconds: float) -> None:
        """Note that the provider takes no calls for some time, whoever makes them."""
        ...


_gate: CallGate | None = None


def use_gate(gate: CallGate | None) -> None:
    """Have all calls of this process wait at a gate from now on; ``None`` for none."""
    global _gate  # noqa: PLW0603 - a process has one
    _gate = gate


def wait_for_turn(model: str) -> float:
    """Return when a call may begin.

    Returns:
        The time that it waited, in seconds.
    """
    if _gate is None:
        return 0.0
    began = time.monotonic()
    _gate.wait(model)
    return time.monotonic() - began


def pause(model: str, seconds: float) -> bool:
    """Report that the provider refused a call because there were too many.

    Args:
        model: The model.
        seconds: How long the provider asks to wait.

    Returns:
        Whether the next :func:`wait_for_turn` waits for it.
    """
    if _gate is None:
        return False
    _gate.pause(model, seconds)
    return True
