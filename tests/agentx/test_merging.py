"""Rules that say the same: merged by a person or at night, proposed where it is unsure, and separated again."""

import pytest

from agentx import Workspace
from agentx.storage.errors import UsageError
from agentx.synthesis.learning.merging import PROPOSED, proposed_for
from agentx.synthesis.memory.conclusions import Patch
from agentx.synthesis.memory.items import Link

ONE = "Salt the pasta water before it boils."
OTHER = "Put a spoon of salt into the water for the noodles."


@pytest.fixture
def two(ws):
    """The ids of two rules."""
    return [ws.remember("rule", text).id for text in (ONE, OTHER)]


@pytest.fixture
def asked(ws, two):
    """The same, and the second may be the first."""
    change = Patch(id=two[1], links=(Link(PROPOSED, two[0]),))
    ws.engine.synthesizer.record([change], "maintenance")
    return two


def texts(ws):
    return [item.text for item in ws.memory("rule")]


def test_a_person_merges_two_rules_and_separates_them_again(ws, two):
    kept = ws.merge(*two)
    assert (texts(ws), kept.score) == ([ONE], 5.5)
    assert ws.state.items[two[1]].reason == f"{two[0]} says the same."
    ws.merge(*two, undo=True)
    assert texts(ws) == [ONE, OTHER]
    ws.maintain()
    assert texts(ws) == [ONE, OTHER]


def test_a_merge_is_the_same_after_a_replay(ws, two):
    ws.merge(*two)
    before = dict(ws.state.items)
    with Workspace.open(ws.root, settings=ws.settings) as again:
        assert again.state_at(again.state.seq).items == before


def test_only_standing_items_of_one_kind_are_merged(ws, two):
    fact = ws.remember("knowledge", "Noodles are pasta.").id
    for other in (fact, two[0]):
        with pytest.raises(UsageError, match="Only two rules"):
            ws.merge(two[0], other)
    ws.retire(two[1])
    with pytest.raises(UsageError, match="is retired"):
        ws.merge(*two)
    with pytest.raises(UsageError, match="was not merged"):
        ws.merge(*two, undo=True)


def test_a_proposal_that_is_accepted_merges(ws, asked):
    ws.review(asked[1], accept=True)
    assert texts(ws) == [ONE]
    assert not any(link.relation == PROPOSED for item in ws.state.items.values() for link in item.links)


def test_a_proposal_that_is_refused_is_not_made_again(ws, asked):
    assert ws.review(asked[1], accept=False).status == "active"
    assert texts(ws) == [ONE, OTHER]
    assert proposed_for(ws.state.items[asked[1]], ws.state.items) is None


def test_a_proposal_ends_with_one_of_its_items(ws, asked):
    ws.retire(asked[0])
    assert proposed_for(ws.state.items[asked[1]], ws.state.items) is None
    with pytest.raises(UsageError, match="not a candidate"):
        ws.review(asked[1], accept=True)
