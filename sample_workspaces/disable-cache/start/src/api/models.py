"""The records of the upstream, as it documents them. Money is a `Decimal`, never a float."""

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any


@dataclass(frozen=True)
class User:
    """A customer."""

    id: str
    name: str
    email: str
    currency: str
    joined: date

    @classmethod
    def of(cls, row: dict[str, Any]) -> "User":
        return cls(row["id"], row["name"], row["email"], row["currency"], date.fromisoformat(row["joined"]))


@dataclass(frozen=True)
class Holding:
    """So many shares, bought at an average price."""

    symbol: str
    shares: Decimal
    cost: Decimal

    @classmethod
    def of(cls, row: dict[str, Any]) -> "Holding":
        return cls(row["symbol"], Decimal(row["shares"]), Decimal(row["cost"]))


@dataclass(frozen=True)
class Quote:
    """What a share costs now, and what it cost when the market closed last."""

    symbol: str
    name: str
    sector: str
    price: Decimal
    previous: Decimal

    @classmethod
    def of(cls, row: dict[str, Any]) -> "Quote":
        return cls(row["symbol"], row["name"], row["sector"], Decimal(row["price"]), Decimal(row["previous"]))


@dataclass(frozen=True)
class DailyPrice:
    """The price at the end of a day."""

    day: date
    close: Decimal

    @classmethod
    def of(cls, row: dict[str, Any]) -> "DailyPrice":
        return cls(date.fromisoformat(row["day"]), Decimal(row["close"]))


@dataclass(frozen=True)
class Transaction:
    """A purchase, a sale, a deposit or a dividend; money going out is negative."""

    id: str
    day: date
    kind: str
    symbol: str
    amount: Decimal

    @classmethod
    def of(cls, row: dict[str, Any]) -> "Transaction":
        return cls(
            row["id"], date.fromisoformat(row["day"]), row["kind"], row["symbol"], Decimal(row["amount"])
        )


@dataclass(frozen=True)
class Alert:
    """Something that a customer asked to be told of."""

    id: str
    at: datetime
    text: str
    urgent: bool
    read: bool

    @classmethod
    def of(cls, row: dict[str, Any]) -> "Alert":
        return cls(row["id"], datetime.fromisoformat(row["at"]), row["text"], row["urgent"], row["read"])
