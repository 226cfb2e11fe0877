"""``agentx say`` answers what it made of a message, in one line."""

import pytest


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("Good morning!", "Kept as conversation only."),
        ("We'll host in Frankfurt.", "Active: d-{seq}."),
        ("Ines runs the harbour office.", "Candidate: k-{seq}."),
        ("Never use tabs. Ines runs the harbour office.", "Active: c-{seq}. Candidate: k-{seq}."),
    ],
)
def test_it_is_answered_in_one_line(call, root, text, made):
    done = call("say", text, "-C", root)
    seq, answer = done.out.splitlines()[0].split(maxsplit=1)
    assert answer == made.format(seq=seq)


def test_a_program_reads_the_same(call, root):
    done = call("say", "We'll host in Frankfurt.", "--json", "-C", root).json
    (item,) = done["memory"]
    assert done["made"] == f"Active: {item['id']}."


def test_the_end_of_a_rule_is_named(call, root):
    call("say", "Always use tabs for indentation.", "-C", root)
    done = call("say", "From now on, use spaces for indentation.", "--json", "-C", root).json
    assert "Ended: c-" in done["made"]
