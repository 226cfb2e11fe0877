"""The ledger: what happened, sorted by account."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from tally.entry import Amount, Entry


@dataclass(frozen=True)
class Posting:
    """What an entry leaves on one account."""

    day: date
    payee: str
    account: str
    amount: Amount


class Ledger:
    """Postings by account. Nothing is ever taken out of it."""

    def __init__(self) -> None:
        self._postings: defaultdict[str, list[Posting]] = defaultdict(list)

    def post(self, entry: Entry) -> None:
        """Put each leg of an entry where it belongs."""
        for leg in entry.legs:
            posting = Posting(entry.day, entry.payee, leg.account, leg.amount)
            self._postings[leg.account].append(posting)

    def accounts(self) -> list[str]:
        """The accounts that anything was posted to, by name."""
        return sorted(self._postings)

    def postings(self, account: str) -> Iterator[Posting]:
        """The postings of an account and of those below it, by day.

        ``assets`` covers ``assets:bank`` and ``assets:cash``, and not ``assets-of-others``. Those of one day
        come in the order in which they were posted.
        """
        inside = [name for name in self._postings if name == account or name.startswith(f"{account}:")]
        found = [posting for name in inside for posting in self._postings[name]]
        yield from sorted(found, key=lambda posting: posting.day)
