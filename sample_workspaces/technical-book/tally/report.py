"""Reports: the ledger as lines of text that a person reads."""

from collections import Counter
from collections.abc import Iterator

from tally.balance import balances
from tally.entry import Amount
from tally.ledger import Ledger


def balance_report(ledger: Ledger) -> Iterator[str]:
    """A line for each account and currency, those below an account indented below it."""
    for account, amounts in balances(ledger).items():
        *above, name = account.split(":")
        label = "  " * len(above) + name
        for amount in amounts:
            yield f"{label:<28}{amount!s:>16}"
            label = ""


def register(ledger: Ledger, account: str) -> Iterator[str]:
    """A line for each posting of an account, with what the account comes to after it."""
    cents: Counter[str] = Counter()
    for posting in ledger.postings(account):
        amount = posting.amount
        cents[amount.currency] += amount.cents
        after = Amount(cents[amount.currency], amount.currency)
        yield f"{posting.day}  {posting.payee:<20.20}{amount!s:>16}{after!s:>16}"
