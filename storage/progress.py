"""How long work reports its progress."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with the current step, the amount done, and the total."""
