"""Secrets in tables: the header of a column says that its cells are secrets.

Tables of Markdown, of ``psql`` and ``mysql``, CSV, TSV, columns aligned by blanks, HTML, and the lists of an
SQL ``INSERT``. Each line is read at most twice, as a row and as a header, so the work grows with the text.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from agentx.storage.secrets.secret_contexts import is_secret_name
from agentx.storage.secrets.secret_values import PASSWORD_LENGTH, Places, Span, finds, is_made_up, is_sure

_LONGEST_LINE = 4_000
_LONGEST_NAME = 60
_LONGEST_TAIL = 20_000
_MOST_ODD = 2
"""Lines in a row without the table's columns that do not end it: rules between rows, comments."""

_WORDS = re.compile(r"[\"'`*\s]*[A-Za-z_]\w{0,40}(?:[ /.-]{1,2}\w{1,30}){0,4}[?#:]?[\"'`*\s]*")
_RULE = re.compile(r"[\s|+:=-]*")
_EXPRESSION = re.compile(r"[()\[\]{}]|\w=[\w\"']|^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$")
_MARKS = " \t\r\"'`*"
_CSV_CELL = re.compile(r"(?:[ ]?\"(?:[^\"]|\"\"){0,4000}\"|[^,;\"]*)(?=[,;]|$)")
_ALIGNED = re.compile(r"\S+(?:[ ]\S+){0,20}")

Cells = list[Span]


def in_tables(text: str, lowered: str, places: Places) -> Iterator[Span]:
    """Yield the cells of columns whose header is the name of a secret."""
    done = 0
    for at, _ in places:
        if at < done:
            continue
        start, end = _line(text, at)
        done = end + 1
        if end - start > _LONGEST_LINE:
            continue
        for sign in ("|", "\t", ",", ";", "  "):
            if sign not in text[start:end]:
                continue
            cells = _cells(text, start, end, sign)
            if len(cells) > 1 and (columns := _secret_columns(text, cells, sign)):
                done, found = _rows(text, end + 1, sign, cells, columns)
                yield from found
                break
    if "<th" in lowered and places:
        yield from _in_html(text, lowered)
    if "values" in lowered and places:
        yield from _in_inserts(text, lowered)


def _line(text: str, at: int) -> Span:
    end = text.find("\n", at)
    return text.rfind("\n", 0, at) + 1, len(text) if end < 0 else end


def _cells(text: str, start: int, end: int, sign: str) -> Cells:
    """Return the cells of a line."""
    if sign == "  ":
        return [match.span() for match in _ALIGNED.finditer(text, start, end)]
    if sign in ",;" and '"' in text[start:end]:
        found, at = [], start
        while at <= end and (match := _CSV_CELL.match(text, at, end)):
            found.append(match.span())
            at = match.end() + 1
        return found
    edges = [start - 1, *(at for at in _at(text, sign, start, end)), end]
    return [(first + 1, last) for first, last in pairwise(edges)]


def _at(text: str, sign: str, start: int, end: int) -> Iterator[int]:
    at = text.find(sign, start, end)
    while at >= 0:
        yield at
        at = text.find(sign, at + 1, end)


def _secret_columns(text: str, cells: Cells, sign: str) -> list[int]:
    """Return the columns of secrets; none unless every cell is a name."""
    names = [text[first:last] for first, last in cells]
    # A list in code is indented, or ends with a comma.
    if sign in ",;" and (not all(map(str.strip, names)) or names[0][:1].isspace()):
        return []
    if not all(len(name) <= _LONGEST_NAME and (not name.strip() or _WORDS.fullmatch(name)) for name in names):
        return []
    return [number for number, name in enumerate(names) if is_secret_name(name.strip(_MARKS))]


def _rows(text: str, at: int, sign: str, header: Cells, columns: list[int]) -> tuple[int, list[Span]]:
    """Read the rows of a table; return where it ends, and the secrets in it."""
    found: list[Span] = []
    odd = 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        cells = _cells(text, at, end, sign) if end - at <= _LONGEST_LINE else []
        if _RULE.fullmatch(text, at, end):
            if end == at and sign != ",":
                break
        elif len(cells) != len(header):
            odd += 1
            if odd > _MOST_ODD:
                break
        else:
            odd = 0
            if _secret_columns(text, cells, sign):
                return at, found  # the next table
            found += [span for column in columns if (span := _secret(text, cells[column]))]
        at = end + 1
    return at, found


def _secret(text: str, cell: Span) -> Span | None:
    """Return the value of a cell, without its marks, if it is a secret."""
    start, end = cell
    while start < end and text[start] in _MARKS:
        start += 1
    while start < end and text[end - 1] in _MARKS:
        end -= 1
    value = text[start:end]
    if not is_made_up(value, PASSWORD_LENGTH) or _EXPRESSION.search(value):
        return None
    return start, end


# --- HTML and SQL -------------------------------------------------------------------------------------------

_CELL = re.compile(
    r"<t(?P<kind>[hd])\b[^<>]{0,200}>(?:<\w{1,10}>){0,3}(?P<value>[^<>]{0,400})<", re.IGNORECASE
)


def _in_html(text: str, lowered: str) -> Iterator[Span]:
    """Read the tables of HTML: rows start with ``<tr``, whose cells are ``<th`` or ``<td``."""
    rows = [*finds(lowered, "<tr"), len(text)]
    columns: list[int] = []
    for start, end in pairwise(rows):
        cells = list(_CELL.finditer(text, start, end))
        if any(cell["kind"] in "hH" for cell in cells) and len(cells) > 1:
            columns = [number for number, cell in enumerate(cells) if is_secret_name(cell["value"].strip())]
        for column in columns:
            if column < len(cells) and (span := _secret(text, cells[column].span("value"))):
                yield span
        if "</table" in lowered[start:end]:
            columns = []


_INSERT = re.compile(r"\((?P<names>[\w\s,\"`\[\].]{3,2000})\)\s{0,40}$")
_LITERAL = re.compile(r"\s*(?:[nNeE]?'(?P<value>(?:[^'\n]|''){0,2000})'|[^,()'\"]{0,400})\s*(?P<end>[,)])")


def _in_inserts(text: str, lowered: str) -> Iterator[Span]:
    """Read the rows of SQL's ``INSERT INTO t (name, password) VALUES ('bob', '…')``."""
    for at in finds(lowered, "values"):
        named = _INSERT.search(text, max(0, at - 2_100), at)
        if not named:
            continue
        columns = [is_secret_name(name.strip(' \n\t\r"`[]')) for name in named["names"].split(",")]
        if not any(columns):
            continue
        place, stop, number = at + len("values"), min(len(text), at + _LONGEST_TAIL), -1
        while place < stop:
            if number < 0:
                opening = text.find("(", place, stop)
                if opening < 0 or text[place:opening].strip(" ,\r\n\t"):
                    break
                place, number = opening + 1, 0
            literal = _LITERAL.match(text, place, stop)
            if not literal:
                break
            if literal["value"] and number < len(columns) and columns[number]:
                value = literal["value"]
                if is_made_up(value, PASSWORD_LENGTH) or is_sure(value):
                    yield literal.span("value")
            place, number = literal.end(), number + 1 if literal["end"] == "," else -1
