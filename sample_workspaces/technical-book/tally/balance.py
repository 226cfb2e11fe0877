"""Balances: what stands on each account, and whether the books agree with themselves."""

from collections import Counter

from tally.entry import Amount
from tally.ledger import Ledger


class OutOfBalance(Exception):
    """All accounts together do not come to zero, so the books are wrong."""


def balances(ledger: Ledger) -> dict[str, list[Amount]]:
    """Return the balance of each account, and of those above it.

    ``assets`` is the sum of ``assets:bank`` and ``assets:cash``. An account is followed by those below it.
    """
    sums: dict[str, Counter[str]] = {}
    for account in ledger.accounts():
        own = _sums(ledger, account)
        for name in _upwards(account):
            sums.setdefault(name, Counter()).update(own)
    return {name: _amounts(sums[name]) for name in sorted(sums, key=lambda name: name.split(":"))}


def prove(ledger: Ledger) -> None:
    """Add up every account, once.

    Raises:
        OutOfBalance: They do not come to zero.
    """
    total: Counter[str] = Counter()
    for account in ledger.accounts():
        total.update(_sums(ledger, account))
    left = [str(amount) for amount in _amounts(total) if amount.cents]
    if left:
        raise OutOfBalance(f"the accounts do not come to zero: {', '.join(left)} is left over")


def _sums(ledger: Ledger, account: str) -> Counter[str]:
    """The cents that were posted to an account itself, by currency."""
    cents: Counter[str] = Counter()
    for posting in ledger.postings(account):
        if posting.account == account:
            cents[posting.amount.currency] += posting.amount.cents
    return cents


def _upwards(account: str) -> list[str]:
    """An account and those above it.

    >>> _upwards("assets:bank:savings")
    ['assets', 'assets:bank', 'assets:bank:savings']
    """
    parts = account.split(":")
    return [":".join(parts[:depth]) for depth in range(1, len(parts) + 1)]


def _amounts(cents: Counter[str]) -> list[Amount]:
    return [Amount(cents[currency], currency) for currency in sorted(cents)]
