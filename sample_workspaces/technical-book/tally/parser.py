"""Reads a journal: a text file of entries that people write by hand."""

import re
from collections.abc import Iterable, Iterator
from datetime import date

from tally.entry import Amount, Entry, EntryError, Leg, totals

_LEG = re.compile(r"(?P<account>[\w:-]+)(?:\s{2,}(?P<amount>\S.*))?")


class JournalError(Exception):
    """A journal cannot be read; the sentence names the line."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")
        self.line = line


def read(lines: Iterable[str]) -> Iterator[Entry]:
    """The entries of a journal, one after the other.

    An entry is a line with a day and a payee, and below it an indented line for each leg. A line that begins
    with ``;`` is a remark. An empty line ends an entry.

    Raises:
        JournalError: A line is not what it has to be.
    """
    block: list[tuple[int, str]] = []
    for number, line in enumerate(lines, start=1):
        if line.lstrip().startswith(";"):
            continue
        if block and not line.startswith((" ", "\t")):
            yield _entry(block)
            block = []
        if line.strip():
            block.append((number, line.rstrip()))
    if block:
        yield _entry(block)


def _entry(block: list[tuple[int, str]]) -> Entry:
    number, head = block[0]
    day, _, payee = head.partition(" ")
    try:
        when = date.fromisoformat(day)
    except ValueError as error:
        raise JournalError(number, f"{day!r} is no day; write it like 2026-03-01") from error
    legs = _legs(block[1:])
    try:
        return Entry(when, payee.strip(), legs)
    except EntryError as error:
        raise JournalError(number, str(error)) from error


def _legs(lines: list[tuple[int, str]]) -> tuple[Leg, ...]:
    """The legs of an entry; the one leg without an amount takes what is left over."""
    legs: list[Leg] = []
    open_account = ""
    for number, line in lines:
        found = _LEG.fullmatch(line.strip())
        if found is None:
            raise JournalError(number, f"{line.strip()!r} is no leg; put two spaces before the amount")
        if found["amount"]:
            try:
                legs.append(Leg(found["account"], Amount.parse(found["amount"])))
            except EntryError as error:
                raise JournalError(number, str(error)) from error
        elif open_account:
            raise JournalError(number, "only one leg of an entry may leave its amount out")
        else:
            open_account = found["account"]
    if open_account:
        legs += [Leg(open_account, -left) for left in totals(tuple(legs)) if left.cents]
    return tuple(legs)
