r"""Regular expressions of Python, written for RE2, which needs time in proportion to the text.

A pattern is read by Python's own parser, so that it keeps its meaning, and written again. A class of
characters is written as those characters that Python's engine finds in it: RE2's ``\w`` is ASCII only, and
its folding of case another one. What RE2 has not (look-around, back-references, possessive and atomic groups,
a word boundary beside other letters than those of ASCII) can be left out on purpose: then the result also
matches more, never less, and says for sure only that a text does *not* match.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from agentx.storage.errors import AgentXError

MOST_CHARS = 10_000
"""Characters of a pattern; what is longer is not used."""

_MOST_REPEATS = 1000
"""RE2 repeats no part more often."""

_CATEGORIES = {
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
}
_NOTHING = r"[^\x00-\x{10ffff}]"
_KEPT_FLAGS = re.IGNORECASE | re.ASCII


class NotWritten(AgentXError):
    """RE2 has no such pattern."""


def parsed(pattern: str, *, multiline: bool) -> Any:
    """Return the syntax tree of a pattern, as :mod:`re` has it (Python 3.11 to 3.13).

    Raises:
        ValueError: It is not a regular expression, or longer than :data:`MOST_CHARS`.
    """
    if len(pattern) > MOST_CHARS:
        raise ValueError(f"it has more than {MOST_CHARS} characters")
    try:
        return _insides("_parser").parse(pattern, re.MULTILINE if multiline else 0)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(
            "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        ) from error


def written(
    tree: Any, *, ascii_only: bool = False, loose: bool = False, group: str = "", repeats: bool = True
) -> str:
    """Return a pattern for RE2.

    Args:
        tree: The syntax tree.
        ascii_only: Whether it is for texts of ASCII alone.
        loose: Whether to leave out what RE2 has not, so that it may match more.
        group: The name of a group to keep; the others only bracket.
        repeats: Whether to say how often something is repeated; otherwise at least once, or any number.

    Raises:
        NotWritten: It cannot be said in RE2.
    """
    try:
        kept = tree.state.groupdict.get(group)
        writer = _Writer(ascii_only=ascii_only, loose=loose, kept=kept, repeats=repeats)
        return writer.sequence(tree, tree.state.flags)
    except RecursionError as error:
        raise NotWritten from error


class _Writer:
    def __init__(self, *, ascii_only: bool, loose: bool, kept: int | None, repeats: bool) -> None:
        self._ascii, self._loose, self._kept, self._repeats = ascii_only, loose, kept, repeats

    def sequence(self, nodes: Any, flags: int) -> str:
        return "".join(self._node(str(kind), value, flags) for kind, value in nodes)

    def _node(self, kind: str, value: Any, flags: int) -> str:
        match kind:
            case "LITERAL" | "NOT_LITERAL":
                if kind == "LITERAL" and not flags & re.IGNORECASE:
                    return _char(value)
                return self._class([("LITERAL", value)], flags, negated=kind == "NOT_LITERAL")
            case "ANY":
                return "(?s:.)" if flags & re.DOTALL else r"[^\n]"
            case "IN":
                negated = bool(value) and str(value[0][0]) == "NEGATE"
                return self._class(value[negated:], flags, negated=negated)
            case "AT":
                return self._place(str(value), flags)
            case "BRANCH":
                return f"(?:{'|'.join(self.sequence(one, flags) for one in value[1])})"
            case "SUBPATTERN":
                number, added, removed, inner = value
                opens = "(" if number is not None and number == self._kept else "(?:"
                return f"{opens}{self.sequence(inner, (flags | added) & ~removed)})"
            case "MAX_REPEAT" | "MIN_REPEAT":
                return self._repeated(value, flags, "?" * (kind == "MIN_REPEAT"))
            case "FAILURE":
                return _NOTHING
        return self._more(kind, value, flags)

    def _more(self, kind: str, value: Any, flags: int) -> str:
        """Return what matches at least what RE2 has not."""
        if not self._loose:
            raise NotWritten(kind)
        match kind:
            case "POSSESSIVE_REPEAT":
                return self._repeated(value, flags, "")
            case "ATOMIC_GROUP":
                return f"(?:{self.sequence(value, flags)})"
            case "ASSERT" | "ASSERT_NOT":
                return ""
            case "GROUPREF_EXISTS":
                _, yes, no = value
                return f"(?:{self.sequence(yes, flags)}|{self.sequence(no or (), flags)})"
            case "GROUPREF":
                return "(?s:.*)"
        raise NotWritten(kind)

    def _repeated(self, value: Any, flags: int, lazy: str) -> str:
        least, most, inner = value
        if not self._repeats:
            return f"(?:{self.sequence(inner, flags)}){'+' if least else '*'}"
        unbounded = most == _insides("_constants").MAXREPEAT
        if not unbounded and most > _MOST_REPEATS and self._loose:
            unbounded = True
        if least > _MOST_REPEATS and self._loose:
            least = _MOST_REPEATS
        if least > _MOST_REPEATS or not (unbounded or most <= _MOST_REPEATS):
            raise NotWritten("repeats")
        bounds = f"{{{least},{'' if unbounded else most}}}"
        return f"(?:{self.sequence(inner, flags)}){bounds}{lazy}"

    def _place(self, name: str, flags: int) -> str:
        lines = flags & re.MULTILINE
        match name:
            case "AT_BEGINNING":
                return "(?m:^)" if lines else r"\A"
            case "AT_BEGINNING_STRING":
                return r"\A"
            case "AT_END_STRING":
                return r"\z"
            case "AT_END":  # without lines it also matches before a line break that ends the text
                return "(?m:$)" if lines or self._loose else r"\z"
        if self._loose:
            return ""
        if self._ascii:
            return r"\b" if name == "AT_BOUNDARY" else r"\B"
        raise NotWritten(name)

    def _class(self, items: Iterable[Any], flags: int, *, negated: bool) -> str:
        source = "".join(self._item(str(kind), value) for kind, value in items)
        return _ranges(f"[{'^' * negated}{source}]", flags & _KEPT_FLAGS, self._ascii)

    @staticmethod
    def _item(kind: str, value: Any) -> str:
        match kind:
            case "LITERAL":
                return f"\\U{value:08x}"
            case "RANGE":
                return f"\\U{value[0]:08x}-\\U{value[1]:08x}"
        return _CATEGORIES[str(value)]


def needs_whole_end(tree: Any) -> bool:
    """Return whether a pattern has a ``$`` that, without lines, also matches before the last line break."""
    return _ends(tree, tree.state.flags)


def _ends(nodes: Any, flags: int) -> bool:
    for kind, value in nodes:
        match str(kind):
            case "BRANCH":
                inner, below = value[1], flags
            case "SUBPATTERN":
                inner, below = [value[3]], (flags | value[1]) & ~value[2]
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                inner, below = [value[2]], flags
            case _:
                inner, below = [], flags
        found = str(kind) == "AT" and str(value) == "AT_END" and not flags & re.MULTILINE
        if found or any(_ends(one, below) for one in inner):
            return True
    return False


def _char(code: int) -> str:
    return f"\\x{{{code:x}}}"


@lru_cache(maxsize=256)
def _ranges(source: str, flags: int, ascii_only: bool) -> str:  # noqa: FBT001 - for the cache
    """Return a class of Python as one of RE2, with exactly its characters."""
    finds = re.compile(f"{source}+", flags)
    found = [match.span() for match in finds.finditer(_characters(ascii_only))]
    if not ascii_only:  # the two halves around the surrogates, which no text has that is encoded
        found = [(_beyond(start), _beyond(end - 1) + 1) for start, end in _apart(found)]
    if not found:
        return _NOTHING
    return f"[{''.join(f'{_char(start)}-{_char(end - 1)}' for start, end in found)}]"


_SURROGATES, _BEHIND = 0xD800, 0xE000


@lru_cache(maxsize=1)
def _ascii() -> str:
    return "".join(map(chr, range(128)))


def _characters(ascii_only: bool) -> str:  # noqa: FBT001 - its only argument
    if ascii_only:
        return _ascii()
    return "".join(map(chr, [*range(_SURROGATES), *range(_BEHIND, 0x110000)]))


def _apart(spans: Iterable[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    for start, end in spans:
        if start < _SURROGATES < end:
            yield start, _SURROGATES
            yield _SURROGATES, end
        else:
            yield start, end


def _beyond(place: int) -> int:
    return place if place < _SURROGATES else place + _BEHIND - _SURROGATES


def _insides(name: str) -> Any:
    return getattr(re, name)
