"""A breaker for a stage: when its first items fail for the same reason, the rest is not tried."""

import re
from collections.abc import Mapping

ITEMS = 3
"""Number of items of a stage that fail the same way before it stops."""

_SAME_CHARACTERS = 200

_VARIES = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\S*[/\\.]\S+|\S*\d\S*")
"""What differs between the items of one failure: quotations, paths and numbers."""


class Breaker:
    """Notes which items of a stage failed, and why."""

    def __init__(self) -> None:
        self._alike: dict[str, tuple[str, list[str]]] = {}
        self._works: set[str] = set()

    def failed(self, stage: str, item: str, reason: str) -> None:
        """Note that an item failed for good."""
        same = _same(reason, item)
        before, items = self._alike.get(stage, ("", []))
        self._alike[stage] = (same, [*items, item] if same == before else [item])

    def done(self, stage: str) -> None:
        """Note that an item of a stage was done, so the stage can be done."""
        self._works.add(stage)

    def stops(self, stage: str, reasons: Mapping[str, str]) -> str:
        """Return why no further items of a stage are tried; empty if they are.

        ``reasons`` are the full reasons, by item.
        """
        _, items = self._alike.get(stage, ("", []))
        if stage in self._works or len(items) < ITEMS:
            return ""
        first = reasons.get(items[0], "")
        return f"Not tried: {', '.join(items[:ITEMS])} failed the same way: {first}"


def _same(reason: str, item: str) -> str:
    """Return what a failure has in common with that of another item."""
    return " ".join(_VARIES.sub("…", reason.replace(item, "…")).split())[:_SAME_CHARACTERS]
