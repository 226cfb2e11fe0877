"""What the pages ask for.

Three parts: functions that fetch from the upstream, functions that sum up what was fetched, and whole pages. A page
calls the first two and never reads the upstream itself.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from api.cache import cached
from api.models import DailyPrice, Holding, Quote, Transaction, User
from api.transport import Client, FileTransport, UpstreamError

CENT = Decimal("0.01")
TENTH = Decimal("0.1")
ZERO = Decimal(0)

SYMBOLS = {"EUR": "€", "USD": "$", "GBP": "£"}

_client = Client(FileTransport())


class UnknownUser(LookupError):
    """There is no customer of this id."""


class UnknownSymbol(LookupError):
    """There is no share of this symbol."""


def connect(client: Client) -> None:
    """Read another upstream from now on."""
    global _client
    _client = client


def _read(path: str) -> Any:
    return _client.read(path)


# --- customers ---------------------------------------------------------------------------------------------------


def get_users() -> list[User]:
    """All customers, by name."""
    return sorted((User.of(row) for row in _read("/users")), key=lambda user: user.name)


def get_user(user_id: str) -> User:
    """One customer."""
    for user in get_users():
        if user.id == user_id:
            return user
    raise UnknownUser(user_id)


def find_users(text: str) -> list[User]:
    """Customers whose name or address contains a text, in whatever case."""
    wanted = text.casefold()
    return [user for user in get_users() if wanted in f"{user.name} {user.email}".casefold()]


def get_user_holdings(user_id: str) -> list[Holding]:
    """What a customer owns, by symbol."""
    get_user(user_id)
    rows = _read(f"/users/{user_id}/holdings")
    return sorted((Holding.of(row) for row in rows), key=lambda holding: holding.symbol)


def get_user_transactions(user_id: str, *, newest_first: bool = False) -> list[Transaction]:
    """What a customer bought, sold, paid in and was paid, oldest first or the other way round."""
    get_user(user_id)
    rows = _read(f"/users/{user_id}/transactions")
    if newest_first:
        rows.reverse()
    return [Transaction.of(row) for row in rows]


def get_user_watchlist(user_id: str) -> list[str]:
    """The symbols that a customer watches, in the customer's order; empty where nothing is watched."""
    get_user(user_id)
    try:
        return list(_read(f"/users/{user_id}/watchlist"))
    except UpstreamError:
        return []


def get_user_settings(user_id: str) -> dict[str, Any]:
    """How a customer wants to see the pages; what was never chosen has a default."""
    get_user(user_id)
    chosen = {"theme": "light", "weekly_mail": True, "rows": 25}
    try:
        chosen.update(_read(f"/users/{user_id}/settings"))
    except UpstreamError:
        pass
    return chosen


# --- the market --------------------------------------------------------------------------------------------------


def get_quotes() -> dict[str, Quote]:
    """What every share costs, by symbol."""
    return {row["symbol"]: Quote.of(row) for row in _read("/quotes")}


def get_quote(symbol: str) -> Quote:
    """What one share costs."""
    quotes = get_quotes()
    if symbol not in quotes:
        raise UnknownSymbol(symbol)
    return quotes[symbol]


def get_prices(symbol: str, days: int | None = None) -> list[DailyPrice]:
    """Return the closing prices of a share, oldest first; only the last `days` days if given."""
    get_quote(symbol)
    prices = sorted((DailyPrice.of(row) for row in _read(f"/prices/{symbol}")), key=lambda price: price.day)
    if days is None or not prices:
        return prices
    since = prices[-1].day - timedelta(days=days)
    return [price for price in prices if price.day > since]


def get_holidays(year: int) -> dict[date, str]:
    """The days of a year on which the market is closed, with their names."""
    days = {date.fromisoformat(day): name for day, name in _read("/calendar").items()}
    return {day: name for day, name in sorted(days.items()) if day.year == year}


def get_exchange_rates() -> dict[str, Decimal]:
    """What one euro costs in each currency."""
    return {currency: Decimal(rate) for currency, rate in _read("/rates").items()}


# --- sums: holdings ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Position:
    """A holding at today's price, in the share's own currency."""

    symbol: str
    name: str
    sector: str
    shares: Decimal
    cost: Decimal
    value: Decimal
    today: Decimal

    @property
    def gain(self) -> Decimal:
        """What it has won since it was bought; negative where it has lost."""
        return self.value - self.cost

    @property
    def gain_percent(self) -> Decimal:
        """The same, in percent of what it cost."""
        return percent(self.gain, self.cost)


def position(holding: Holding, quote: Quote) -> Position:
    """A holding at the price of a quote."""
    return Position(
        symbol=holding.symbol,
        name=quote.name,
        sector=quote.sector,
        shares=holding.shares,
        cost=cents(holding.shares * holding.cost),
        value=cents(holding.shares * quote.price),
        today=cents(holding.shares * (quote.price - quote.previous)),
    )


def positions(holdings: Iterable[Holding], quotes: dict[str, Quote]) -> list[Position]:
    """Holdings at today's prices, the most valuable first; one that has no quote is left out."""
    known = [position(holding, quotes[holding.symbol]) for holding in holdings if holding.symbol in quotes]
    return sorted(known, key=lambda one: (-one.value, one.symbol))


@dataclass(frozen=True)
class Total:
    """Many positions in one line."""

    cost: Decimal
    value: Decimal
    today: Decimal

    @property
    def gain(self) -> Decimal:
        """What they have won since they were bought."""
        return self.value - self.cost

    @property
    def gain_percent(self) -> Decimal:
        """The same, in percent of what they cost."""
        return percent(self.gain, self.cost)

    @property
    def today_percent(self) -> Decimal:
        """What they have won since the market closed last, in percent."""
        return percent(self.today, self.value - self.today)


def total(of: Iterable[Position]) -> Total:
    """Positions added up."""
    cost = value = today = ZERO
    for one in of:
        cost, value, today = cost + one.cost, value + one.value, today + one.today
    return Total(cost, value, today)


def allocation(of: Sequence[Position]) -> dict[str, Decimal]:
    """How the value spreads over sectors, in percent, the largest first."""
    by_sector: dict[str, Decimal] = defaultdict(Decimal)
    for one in of:
        by_sector[one.sector] += one.value
    whole = sum(by_sector.values(), ZERO)
    shares = {sector: percent(value, whole) for sector, value in by_sector.items()}
    return dict(sorted(shares.items(), key=lambda pair: (-pair[1], pair[0])))


def concentration(of: Sequence[Position], limit_percent: Decimal = Decimal(40)) -> list[str]:
    """The symbols that alone make more than a limit of the whole value."""
    whole = total(of).value
    return [one.symbol for one in of if percent(one.value, whole) > limit_percent]


# --- sums: prices ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Movement:
    """How far a price has moved."""

    symbol: str
    change: Decimal
    change_percent: Decimal


def movement(quote: Quote) -> Movement:
    """How far a share has moved since the market closed last."""
    change = quote.price - quote.previous
    return Movement(quote.symbol, change, percent(change, quote.previous))


def movers(quotes: Iterable[Quote], count: int = 3) -> tuple[list[Movement], list[Movement]]:
    """The shares that have risen most and those that have fallen most; one that has not moved is neither."""
    moved = sorted((movement(quote) for quote in quotes), key=lambda one: (one.change_percent, one.symbol))
    risen = [one for one in reversed(moved) if one.change > 0]
    fallen = [one for one in moved if one.change < 0]
    return risen[:count], fallen[:count]


def moving_average(prices: Sequence[DailyPrice], days: int) -> list[tuple[date, Decimal]]:
    """Return, for each day with enough days before it, the mean of the latest closing prices."""
    if days < 1:
        raise ValueError(f"an average needs at least one day, not {days}")
    averages = []
    for end in range(days, len(prices) + 1):
        window = prices[end - days : end]
        mean = sum((price.close for price in window), ZERO) / days
        averages.append((window[-1].day, cents(mean)))
    return averages


def highest_and_lowest(prices: Sequence[DailyPrice]) -> tuple[DailyPrice, DailyPrice] | None:
    """The days with the highest and the lowest price; nothing where there are no prices."""
    if not prices:
        return None
    return max(prices, key=lambda price: price.close), min(prices, key=lambda price: price.close)


def largest_fall(prices: Sequence[DailyPrice]) -> Decimal:
    """The deepest fall from a height to a later low, in percent of the height."""
    height, deepest = ZERO, ZERO
    for price in prices:
        height = max(height, price.close)
        if height:
            deepest = max(deepest, percent(height - price.close, height))
    return deepest


def next_trading_day(day: date, holidays: Iterable[date]) -> date:
    """The first day after a day on which the market is open."""
    closed = set(holidays)
    following = day + timedelta(days=1)
    while following.weekday() >= 5 or following in closed:
        following += timedelta(days=1)
    return following


# --- sums: payments ----------------------------------------------------------------------------------------------


def sums_by_kind(transactions: Iterable[Transaction]) -> dict[str, Decimal]:
    """What was paid, by kind of transaction."""
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for one in transactions:
        sums[one.kind] += one.amount
    return dict(sorted(sums.items()))


def sums_by_month(transactions: Iterable[Transaction]) -> dict[str, Decimal]:
    """What was paid, by month (`2026-03`), the earliest first."""
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for one in transactions:
        sums[f"{one.day:%Y-%m}"] += one.amount
    return dict(sorted(sums.items()))


def balance(transactions: Iterable[Transaction]) -> Decimal:
    """The cash that is left."""
    return sum((one.amount for one in transactions), ZERO)


def dividends_of(transactions: Iterable[Transaction], year: int) -> Decimal:
    """The dividends of a year."""
    return sum((one.amount for one in transactions if one.kind == "dividend" and one.day.year == year), ZERO)


# --- numbers and words -------------------------------------------------------------------------------------------


def cents(amount: Decimal) -> Decimal:
    """An amount, rounded to cents as banks do for customers: a half goes up."""
    return amount.quantize(CENT, ROUND_HALF_UP)


def percent(part: Decimal, whole: Decimal) -> Decimal:
    """A part of a whole in percent, to a tenth; nothing of nothing is 0."""
    return (part * 100 / whole).quantize(TENTH, ROUND_HALF_UP) if whole else ZERO


def convert(amount: Decimal, rates: dict[str, Decimal], to: str) -> Decimal:
    """Euros in another currency."""
    if to == "EUR":
        return cents(amount)
    if to not in rates:
        raise ValueError(f"no rate for {to}")
    return cents(amount * rates[to])


def money(amount: Decimal, currency: str = "EUR") -> str:
    """An amount for a person: `€1,204.50`, `-$3.00`."""
    sign = "-" if amount < 0 else ""
    return f"{sign}{SYMBOLS.get(currency, currency + ' ')}{abs(cents(amount)):,}"


def signed(value: Decimal, unit: str = "%") -> str:
    """A change for a person: `+1.2%`, `-0.4%`, `0%`."""
    return f"{value:+}{unit}" if value else f"0{unit}"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows as columns of even width; the first column to the left, the others to the right."""
    if not rows:
        return ""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        first, *others = (cell for cell in row)
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:]))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


# --- pages -------------------------------------------------------------------------------------------------------


def user_page(user_id: str) -> dict[str, Any]:
    """A customer's first page: what everything is worth, how it spreads, and the latest payments."""
    user = get_user(user_id)
    owned = positions(get_user_holdings(user_id), get_quotes())
    rates = get_exchange_rates()
    whole = total(owned)
    latest = get_user_transactions(user_id, newest_first=True)[:3]
    return {
        "name": user.name,
        "value": money(convert(whole.value, rates, user.currency), user.currency),
        "gain": signed(whole.gain_percent),
        "today": signed(whole.today_percent),
        "allocation": {sector: f"{share}%" for sector, share in allocation(owned).items()},
        "too_much_in": concentration(owned),
        "payments": [f"{one.day:%d %b %Y}  {one.kind}  {money(one.amount)}" for one in latest],
    }


def holdings_table(user_id: str) -> str:
    """What a customer owns, as text."""
    owned = positions(get_user_holdings(user_id), get_quotes())
    head = ("", "shares", "value", "gain")
    rows = [(one.symbol, f"{one.shares:f}", money(one.value), signed(one.gain_percent)) for one in owned]
    whole = total(owned)
    return table([head, *rows, ("total", "", money(whole.value), signed(whole.gain_percent))])


def watchlist_page(user_id: str) -> list[dict[str, str]]:
    """The shares that a customer watches, with price and movement; one that has no quote is left out."""
    quotes = get_quotes()
    watched = [quotes[symbol] for symbol in get_user_watchlist(user_id) if symbol in quotes]
    return [
        {
            "symbol": quote.symbol,
            "name": quote.name,
            "price": money(quote.price),
            "change": signed(movement(quote).change_percent),
        }
        for quote in watched
    ]


def payments_page(user_id: str) -> dict[str, Any]:
    """A customer's payments: the balance, and sums by kind and by month."""
    transactions = get_user_transactions(user_id)
    return {
        "balance": money(balance(transactions)),
        "by_kind": {kind: money(amount) for kind, amount in sums_by_kind(transactions).items()},
        "by_month": {month: money(amount) for month, amount in sums_by_month(transactions).items()},
    }


@cached(ttl_s=60)
def market_page(count: int = 3) -> dict[str, list[str]]:
    """The shares that have moved most today, for customers and visitors alike."""
    risen, fallen = movers(get_quotes().values(), count)
    return {
        "risen": [f"{one.symbol} {signed(one.change_percent)}" for one in risen],
        "fallen": [f"{one.symbol} {signed(one.change_percent)}" for one in fallen],
    }


@cached(ttl_s=3600)
def share_page(symbol: str, days: int = 30) -> dict[str, str]:
    """A share's page: price, movement, and what the last days were like."""
    quote, prices = get_quote(symbol), get_prices(symbol, days)
    page = {
        "name": quote.name,
        "price": money(quote.price),
        "change": signed(movement(quote).change_percent),
        "largest_fall": f"{largest_fall(prices)}%",
    }
    if ends := highest_and_lowest(prices):
        high, low = ends
        page["high"] = f"{money(high.close)} on {high.day:%d %b}"
        page["low"] = f"{money(low.close)} on {low.day:%d %b}"
    return page
