"""What tally promises: ``python -m pytest tally``."""

import re
from pathlib import Path

import pytest

from tally.balance import balances
from tally.cli import main
from tally.entry import Amount
from tally.ledger import Ledger
from tally.parser import JournalError, read

JOURNAL = """\
; March
2026-03-01 Opening
    assets:bank  1,200.00 EUR
    equity:opening

2026-03-03 Baker
    expenses:food  3.40 EUR
    assets:cash

2026-03-02 Cash machine
    assets:cash  50.00 EUR
    assets:bank
"""


def ledger_of(text: str) -> Ledger:
    """The ledger of a journal's text."""
    ledger = Ledger()
    for entry in read(text.splitlines()):
        ledger.post(entry)
    return ledger


def test_an_account_holds_what_those_below_it_hold() -> None:
    """Parents are sums, and the whole comes to zero."""
    held = {name: amounts[0].cents for name, amounts in balances(ledger_of(JOURNAL)).items()}
    assert held["assets"] == held["assets:bank"] + held["assets:cash"]
    assert held["assets"] + held["equity"] + held["expenses"] == 0


def test_a_register_is_by_day() -> None:
    """Postings come by day, whatever the order in the journal."""
    payees = [posting.payee for posting in ledger_of(JOURNAL).postings("assets")]
    assert payees == ["Opening", "Cash machine", "Cash machine", "Baker"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("1 March\n", 1),
        ("2026-03-01 A\n  a  1 EUR\n", 2),
        ("\n2026-03-01 A\n  a  1.00 EUR\n  b  2.00 EUR\n", 2),
    ],
)
def test_an_error_names_its_line(text: str, line: int) -> None:
    """Each kind of mistake is reported with its line."""
    with pytest.raises(JournalError) as caught:
        list(read(text.splitlines()))
    assert caught.value.line == line


@pytest.mark.parametrize("text", ["0.05 EUR", "-1,234,567.80 USD", "12.00 CHF"])
def test_amounts_are_read_as_they_are_written(text: str) -> None:
    """Text, cents, and the same text again."""
    assert str(Amount.parse(text)) == text


def test_the_command_line_ends_with_1_where_the_journal_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it prints goes to the right place, too."""
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_text(JOURNAL)
    bad.write_text(JOURNAL.replace("1,200.00", "1200,00"))
    assert [main([str(good), "register", "assets"]), main([str(bad), "check"])] == [0, 1]
    out, err = capsys.readouterr()
    assert re.search(r"2026-03-03  Baker +-3\.40 EUR +1,196\.60 EUR\n$", out)
    assert "line 3: '1200,00 EUR' is no amount" in err
