"""The garbage of a process that stays: collected early, while a command collects hardly ever."""

import gc

_COLLECT_EACH = (2_000, 10, 10)
"""New objects between two collections of the youngest, and how many of these make one of the older."""


def collect_garbage() -> None:
    """Collect garbage from now on as a process needs that runs for days, except what is loaded by now."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_EACH)
