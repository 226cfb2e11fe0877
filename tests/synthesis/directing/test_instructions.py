"""The user's instructions reach a prompt whole; what is left out of a very long talk is stated."""

import pytest

from agentx.synthesis.directing.instructions import (
    MAX_CHARACTERS,
    Instruction,
    fitted,
    is_thanks,
    missing,
    without,
)

BRIEF = (
    "Every morning order the parts on the list for Mrs. Weber. Wait for her word before you order anything. "
    "Spend at most 300 euros a day."
)


@pytest.mark.parametrize(
    "text",
    [
        "Thanks",
        "Thanks, looks good!",
        "Great, thank you so much.",
        "Perfect!",
        "Well done. I like it",
        "All good, cheers",
    ],
)
def test_thanks_and_praise_are_no_instruction(text):
    assert is_thanks(text)


@pytest.mark.parametrize(
    "text",
    [
        "Thanks, but skip Berlin.",
        "Thanks. Skip Berlin.",
        "Thank them.",
        "Looks good?",
        "No thanks",
        "That's not good.",
        "Great, 3 more",
        "Nice, do that daily",
        "yes",
        "Danke, alles gut",
        "👎",
        "",
        "thanks " * 3 + "for nothing",
    ],
)
def test_in_doubt_a_message_is_an_instruction(text):
    assert not is_thanks(text)


def test_real_briefs_are_never_cut():
    said = [Instruction(f"{number}: " + "x" * 4_000, "2026-01-02T08:00") for number in range(12)]
    assert fitted(said) == said


def test_the_first_brief_and_the_latest_words_are_kept_and_what_is_left_out_is_stated():
    said = [
        Instruction(f"{number}: " + "x" * 9_000, f"2026-01-{number + 1:02}T08:00") for number in range(10)
    ]
    kept = fitted(said)
    assert (kept[0], kept[2:]) == (said[0], said[5:])
    assert kept[1].text == (
        "(4 messages of 2026-01-02 to 2026-01-05 with 36,012 characters are left out here for length.)"
    )


def test_of_one_endless_message_both_ends_are_kept():
    [kept] = fitted([Instruction("begin " + "x" * 200_000 + " end")])
    assert kept.text.startswith("begin ")
    assert kept.text.endswith(" end")
    assert "characters are left out here" in kept.text
    assert len(kept.text) < MAX_CHARACTERS + 100


@pytest.mark.parametrize(
    ("prompt", "left_out"),
    [
        (BRIEF, ""),
        (("Order the parts on Mrs. Weber's list every morning. Before you order anything, wait for her word. "
         "You may spend at most 300 euros a day."), ""),
        ("Order the parts on the list for Mrs. Weber every morning. Spend at most 300 euros a day.",
         "Wait for her word before you order anything."),
        (("Every morning order the parts on the list for Mrs. Weber. Wait for her word before you order anything. "
         "Spend at most 500 euros a day."), "Spend at most 300 euros a day."),
        (("Every morning order the parts on the list for Mr. Maier. Wait for her word before you order anything. "
         "Spend at most 300 euros a day."), "Every morning order the parts on the list for Mrs. Weber."),
        (("Order the parts for Mrs. Weber on the list every morning. You need not wait for a word; order anything. "
         "Spend at most 300 euros a day."), "Wait for her word before you order anything."),
        (BRIEF.replace("Spend", "Never spend"), "Spend at most 300 euros a day."),
        ("", BRIEF),
    ],
)  # fmt: skip
def test_what_a_prompt_leaves_out_is_found_by_sentence(prompt, left_out):
    assert " ".join(one.text for one in missing([Instruction(BRIEF)], prompt)) == left_out


def test_thanks_in_a_message_are_not_missed():
    assert not list(missing([Instruction("Thanks! Mail me the news.")], "Mail me the news."))


def test_a_demand_that_is_appended_anyway_is_left_out_and_an_empty_rest_too():
    said = [Instruction("Mail me. Never use MySQL, because it broke."), Instruction("Never use MySQL.")]
    assert [one.text for one in without(said, ["Never use MySQL"])] == ["Mail me."]
