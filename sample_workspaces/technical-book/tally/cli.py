"""The command line: ``tally JOURNAL check``, ``balance`` or ``register ACCOUNT``."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tally.balance import OutOfBalance, prove
from tally.ledger import Ledger
from tally.parser import JournalError, read
from tally.report import balance_report, register


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say; the exit status is 0, or 1 where the journal is wrong."""
    asked = _parser().parse_args(arguments)
    try:
        ledger = load(asked.journal)
        for line in _lines(asked, ledger):
            sys.stdout.write(f"{line}\n")
    except (JournalError, OutOfBalance, OSError) as error:
        sys.stderr.write(f"{asked.journal}: {error}\n")
        return 1
    return 0


def load(path: Path) -> Ledger:
    """The ledger of a journal, proved.

    Raises:
        JournalError: It cannot be read.
        OutOfBalance: It does not come to zero.
        OSError: It is not there.
    """
    ledger = Ledger()
    with path.open(encoding="utf-8") as lines:
        for entry in read(lines):
            ledger.post(entry)
    prove(ledger)
    return ledger


def _lines(asked: argparse.Namespace, ledger: Ledger) -> Iterator[str]:
    if asked.command == "balance":
        yield from balance_report(ledger)
    elif asked.command == "register":
        yield from register(ledger, asked.account)
    else:
        yield f"{asked.journal}: {len(ledger.accounts())} accounts come to zero"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tally", description="Keeps books in a text file.")
    parser.add_argument("journal", type=Path, help="the file with the entries")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="read it, and say whether it adds up")
    commands.add_parser("balance", help="what stands on each account")
    commands.add_parser("register", help="the postings of an account").add_argument("account")
    return parser
