"""Which tasks wake a dormant rule: those of its situation, in whatever trade, and not those that share its common words."""

import pytest

from agentx.synthesis.gates.action_relevance import Action, MemoryBoard
from agentx.synthesis.gates.situations import woken
from agentx.synthesis.memory.items import MemoryItem, RuleDetail
from agentx.synthesis.state.state import State

CASES = (
    ("Lesson learned: rehearse the restore on a copy before migrating the ledger.", "Migrate the ledger."),
    (
        "Lesson learned: when the client changes the menu, reprint the cards.",
        "The customer altered the menu.",
    ),
    ("Before each inspection, empty the grease traps.", "Get the kitchen ready for the inspection."),
    ("Warm up the kiln for an hour before firing porcelain.", "Fire the porcelain bowls tonight."),
    ("Ask the notary before changing a deed.", "Amend the deed of the house in Elm Street."),
    ("Freeze the translations two days before a release.", "Prepare release 4.2."),
    ("Calibrate the meter at the start of each sampling trip.", "Plan the sampling trip to the lake."),
    ("In the loyalty module, round points down.", "Add birthday points to the loyalty module."),
    ("Once the contract is signed, archive the drafts.", "The contract with Ortega was signed today."),
    ("On every shipment, note the lot number.", "Pack the shipment for Oslo."),
    ("Upon a refund, tell the bookkeeper.", "Issue a refund for order 7781."),
    ("Prior to a rehearsal, tune the harpsichord.", "Set up the hall for the rehearsal."),
    ("Each time a sensor is swapped, reset its counter.", "Swap the sensor on pump 3."),
    ("While the crane moves, nobody stays below.", "Move the crane to the north side."),
)
OTHERS = (
    "What did we learn from the last lesson?",
    "Write a lesson plan for grade five.",
    "Note the phone number of the plumber.",
    "Fix the typo on the start page.",
    "Send the invoice to the client.",
    "Change the colour of the button.",
    "Book a room for the meeting on Monday.",
    "Keep the tests short.",
    "Update the dependencies of the app.",
    "Tell the story of the house.",
)


@pytest.fixture(scope="module")
def board():
    """All these rules, dormant."""
    rules = (
        MemoryItem(id=f"r-{n}", kind="rule", text=text, status="dormant", detail=RuleDetail())
        for n, (text, _) in enumerate(CASES)
    )
    return MemoryBoard(State(items={rule.id: rule for rule in rules}))


@pytest.mark.parametrize(("rule", "task"), CASES)
def test_a_task_wakes_the_rule_of_its_situation_and_no_other(board, rule, task):
    assert [item.text for item in woken(board, Action(text=task))] == [rule]


@pytest.mark.parametrize("task", OTHERS)
def test_common_words_wake_nothing(board, task):
    assert woken(board, Action(text=task)) == []
