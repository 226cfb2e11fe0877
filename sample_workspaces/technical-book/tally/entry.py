"""An entry: what happened on one day, and what it moved between accounts."""

import re
from dataclasses import dataclass
from datetime import date

_AMOUNT = re.compile(r"(-?)(\d{1,3}(?:,\d{3})*|\d+)\.(\d\d) ([A-Z]{3})")


class EntryError(ValueError):
    """An entry, or a part of one, is not what it has to be; the sentence says why."""


@dataclass(frozen=True)
class Amount:
    """So many cents of a currency. Cents are whole, so sums are exact."""

    cents: int
    currency: str

    @classmethod
    def parse(cls, text: str) -> "Amount":
        """Read an amount as people write it.

        Raises:
            EntryError: It is none.

        >>> Amount.parse("-1,200.50 EUR")
        Amount(cents=-120050, currency='EUR')
        """
        found = _AMOUNT.fullmatch(text)
        if found is None:
            raise EntryError(f"{text!r} is no amount; write it like 1,200.50 EUR")
        sign, whole, cents, currency = found.groups()
        size = int(whole.replace(",", "")) * 100 + int(cents)
        return cls(-size if sign else size, currency)

    def __add__(self, other: "Amount") -> "Amount":
        if self.currency != other.currency:
            raise EntryError(f"{self.currency} and {other.currency} do not add up")
        return Amount(self.cents + other.cents, self.currency)

    def __neg__(self) -> "Amount":
        return Amount(-self.cents, self.currency)

    def __str__(self) -> str:
        whole, cents = divmod(abs(self.cents), 100)
        return f"{'-' * (self.cents < 0)}{whole:,}.{cents:02} {self.currency}"


@dataclass(frozen=True)
class Leg:
    """One account of an entry, and by how much it changes."""

    account: str
    amount: Amount


@dataclass(frozen=True)
class Entry:
    """What happened on one day. Its legs come to zero in each currency, or there is no entry."""

    day: date
    payee: str
    legs: tuple[Leg, ...]

    def __post_init__(self) -> None:
        """Refuse an entry that makes money out of nothing, or loses it.

        Raises:
            EntryError: It has fewer than two legs, or they do not come to zero.
        """
        if len(self.legs) < 2:  # noqa: PLR2004 - money comes from somewhere and goes somewhere
            raise EntryError("an entry needs two legs: where money comes from, and where it goes")
        for left in totals(self.legs):
            if left.cents:
                raise EntryError(f"the legs do not come to zero: {left} is left over")


def totals(legs: tuple[Leg, ...]) -> list[Amount]:
    """What legs come to, an amount for each currency, in the order in which currencies appear."""
    sums: dict[str, Amount] = {}
    for leg in legs:
        currency = leg.amount.currency
        sums[currency] = sums[currency] + leg.amount if currency in sums else leg.amount
    return list(sums.values())
