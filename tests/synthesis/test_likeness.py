"""Items that say the same in other words, and those that only look so."""

from pathlib import Path

import pytest

from agentx.synthesis.memory.items import MemoryItem, Scope
from agentx.synthesis.similarity.near_duplicates import likeness, near_duplicates

ALIKE = [
    ("Run the unit tests before each deploy.", "Before every deploy, run the tests."),
    (
        "Check the keychain for credentials before you ask.",
        "Before asking, always check the keychain for credentials!",
    ),
    (
        "Back up the database before a migration.",
        "Before migrations: database backups, always. Back the db up.",
    ),
    (
        "Never hold a position overnight without a stop loss.",
        "Don't hold positions overnight without a stop loss",
    ),
    ("Read the whole file before you edit it: notes.md", "Always read the whole of notes.md before editing"),
    ("Keep the answers short.", "Please give brief replies."),
]
APART = [
    ("Deploy on Fridays.", "Never deploy on Fridays."),
    ("Clear the cache before a deploy.", "Clear the cache after a deploy."),
    ("Enable retries for the billing client.", "Disable retries for the billing client."),
    ("Set the timeout of the client to 30 seconds.", "Set the timeout of the client to 60 seconds."),
    ("Check the invoice totals of the billing export.", "Check the invoice totals of the payroll export."),
    ("Format src/app.py with black.", "Format src/api.py with black."),
    ("Use v1.2 of the schema.", "Use v1.3 of the schema."),
    ("Run the smoke tests.", "Run the smoke tests of the billing service in the staging cluster."),
    (
        "Before you release the billing service to customers, verify its invoices, taxes and refunds.",
        "Before you release the payroll service to customers, verify its invoices, taxes and refunds.",
    ),
    ("Never deploy on a Friday afternoon.", "Never deploy on a Monday morning."),
    ("Write the docs in British English.", "Write the docs in American English."),
    ("Send the invoice to the customer by mail.", "Send the reminder to the customer by mail."),
    ("Keep commits small.", "Keep functions small."),
    ("Restart the worker when the queue is full.", "Restart the worker when the disk is full."),
    ("Use tabs, not spaces.", "Use spaces, not tabs."),
    ("Prefer Postgres over MySQL.", "Prefer MySQL over Postgres."),
    ("Copy the data from staging to production.", "Copy the data from production to staging."),
    ("Use ruff instead of flake8.", "Use flake8 instead of ruff."),
    ("Ask Anna before you ask Ben.", "Ask Ben before you ask Anna."),
    ("Run the migrations, then restart the workers.", "Restart the workers, then run the migrations."),
    ("Logs go to stderr, results to stdout.", "Logs go to stdout, results to stderr."),
    ("If the tests fail, deploy.", "If you deploy, the tests fail."),
    ("All tests must pass.", "Some tests must pass."),
    ("Ask", "???"),
]


def item(name, text, **fields):
    return MemoryItem(id=name, kind="rule", text=text, **fields)


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_other_words_for_the_same_are_known(one, other):
    assert likeness(one, other)
    assert near_duplicates([item("r-1", one), item("r-2", other)], {"r-1"}).same.keys() == {"r-1", "r-2"}


@pytest.mark.parametrize(("one", "other"), APART)
def test_what_turns_a_sentence_round_or_names_another_thing_is_not_the_same(one, other):
    assert not likeness(one, other)
    assert near_duplicates([item("r-1", one), item("r-2", other)], {"r-1", "r-2"}).same == {}


@pytest.mark.parametrize(
    "fields", [{"domain": "pay"}, {"agent": "writer"}, {"scope": Scope(paths=("a/**",))}]
)
def test_what_applies_elsewhere_is_not_the_same(fields):
    text = "Run the unit tests before each deploy."
    assert near_duplicates([item("r-1", text), item("r-2", text, **fields)], {"r-1", "r-2"}).same == {}


def test_only_pairs_with_something_fresh_are_looked_for():
    text = "Run the unit tests before each deploy."
    items = [item(f"r-{n}", text) for n in range(3)]
    assert near_duplicates(items, {"r-2"}).same == {"r-0": {"r-2"}, "r-1": {"r-2"}, "r-2": {"r-0", "r-1"}}


# --- many trades -----------------------------------------------------------------------------------------------------

LINES = (Path(__file__).parent / "rewordings.txt").read_text("utf-8").splitlines()
GROUPS, NEAR = ([line[1:].split("|") for line in LINES if line.startswith(sign)] for sign in "=!")


def merged(texts):
    """Whether merging leaves one of some wordings."""
    found = near_duplicates(
        [item(f"r-{n}", text) for n, text in enumerate(texts)], {"r-0", "r-1", "r-2"}
    ).same
    return set(range(len(texts))) == {0} | {int(name[2:]) for name in found}


def test_most_rewordings_in_many_trades_are_merged():
    assert len(GROUPS) >= 60
    assert sum(map(merged, GROUPS)) >= 0.8 * len(GROUPS)


@pytest.mark.parametrize(("one", "other"), NEAR)
def test_near_pairs_of_many_trades_stay_apart(one, other):
    assert not likeness(one, other)


def test_a_heading_does_not_make_another_rule():
    assert likeness("Lesson learned: rotate the keys after a leak.", "Rotate the keys after a leak.")


@pytest.mark.parametrize(
    "one",
    ["Merge only after the review.", "Never merge before the review.", "Don't merge without reviewing."],
)
def test_the_order_of_two_steps_is_known_in_each_of_its_forms(one):
    assert likeness(one, "Review before you merge.")
    assert not likeness(one, "Merge before you review.")
