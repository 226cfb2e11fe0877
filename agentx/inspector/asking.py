"""What a request asks for: its parameters, checked and bounded, and how long texts are cut."""

from collections.abc import Mapping
from typing import Any

from agentx.inspector.access import InspectorError

MOST_ROWS, ROWS = 500, 100
"""Maximum number of rows of a page, and the default."""

MOST_CHARACTERS = 20_000
"""A longer text is cut."""

_WORDS = 400
"""Maximum length of a query."""

_LARGEST = 1 << 40
_DIGITS = len(str(_LARGEST))


class Asked:
    """The parameters of a request."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given

    def text(self, name: str, most: int = _WORDS) -> str:
        """Return a text; empty if it is not given.

        Raises:
            InspectorError: It is too long.
        """
        value = self._given.get(name, "")
        if len(value) > most:
            raise InspectorError(400, f"`{name}` has more than {most:,} characters.")
        return value

    def names(self, name: str) -> set[str]:
        """Return the words of a list with commas."""
        return {part for part in self.text(name).split(",") if part}

    def number(self, name: str, default: int = 0, *, least: int = 0, most: int = _LARGEST) -> int:
        """Return a whole number.

        Raises:
            InspectorError: It is none, or outside the bounds.
        """
        value = self.text(name)
        if not value:
            return default
        if not (value.isascii() and value.isdigit()) or len(value) > _DIGITS:
            raise InspectorError(400, f"`{name}` is a whole number, not {value[:40]!r}.")
        if not least <= int(value) <= most:
            raise InspectorError(400, f"`{name}` is from {least} to {most}, not {value}.")
        return int(value)

    def given(self, name: str) -> bool:
        """Return whether a parameter is given and not empty."""
        return bool(self._given.get(name))

    @property
    def limit(self) -> int:
        """The number of rows of a page."""
        return self.number("limit", ROWS, least=1, most=MOST_ROWS)

    def page(self, rows: list[Any]) -> list[Any]:
        """Return the rows from ``offset`` on, at most ``limit``."""
        offset = self.number("offset")
        return rows[offset : offset + self.limit]


def cut(text: str) -> dict[str, Any]:
    """Return a text that may be long: its beginning, and whether something was cut."""
    return {"text": text[:MOST_CHARACTERS], "cut": len(text) > MOST_CHARACTERS}
