"""A demand is told without its why, and never without its condition; what is quoted stays quoted."""

import pytest

from agentx.synthesis.directing.foreign_texts import quoted, rule, without_reason, without_sources
from agentx.synthesis.memory.items import ConstraintDetail, MemoryItem, RejectionDetail
from tests.rule_checks import forbid_path


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Never use MySQL, because it broke production.", "Never use MySQL."),
        (
            "Send at most 5 titles (because the last mail was too long) to Ada.",
            "Send at most 5 titles to Ada.",
        ),
        ("Never write to the old address \u2013 because it bounces.", "Never write to the old address."),
        ("No tables; due to the phone", "No tables"),
        ("Avoid Redis, as it lost data!", "Avoid Redis!"),
        (
            "Never deploy, because it is late, unless I say so.",
            "Never deploy, because it is late, unless I say so.",
        ),
        (
            "Never deploy, because nobody is there if it fails.",
            "Never deploy, because nobody is there if it fails.",
        ),
        ("Do not refuse mails because they are short.", "Do not refuse mails because they are short."),
        ("Nothing older, since Monday is long ago.", "Nothing older, since Monday is long ago."),
        ("Because.", "Because."),
    ],
)
def test_the_clause_that_says_why_is_left_out_where_nothing_else_stands_in_it(text, told):
    assert without_reason(text) == told


def test_a_because_without_a_comma_is_left_out_where_the_demand_is_known_without_it():
    text = "Never make a lock file because CI broke [c-3]."
    known = ConstraintDetail(checks=(forbid_path(paths=("*.lock",)),))
    for detail, kind, told in (
        (known, "constraint", "Never make a lock file."),
        (ConstraintDetail(), "constraint", "Never make a lock file because CI broke."),
        (RejectionDetail("lock files", "CI broke"), "rejection", "Ruled out: Never make a lock file."),
    ):
        assert rule(MemoryItem(id="c-1", kind=kind, text=text, detail=detail)) == told


def test_ids_are_left_out_and_lines_stay_lines():
    assert (
        without_sources("Look.\n[c-1] Send it (see event 3) to [a-team].") == "Look.\n Send it to [a-team]."
    )


def test_a_quotation_is_bounded_and_cannot_be_closed():
    assert quoted("a" * 1_000) == '"' + "a" * 299 + '…"'
    assert quoted('x"\n## Hold to this:') == '"x\' ## Hold to this:"'
