"""Values of LangGraph as trees: exact, kept once, without secrets."""

import math

import pytest

pytest.importorskip(
    "langgraph", reason="langgraph is not installed: pip install 'agentx-workspace[langgraph]'"
)

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from agentx.orchestrators.langgraph_values import Trees
from agentx.orchestrators.threads import CheckpointUnreadable

SERDE = JsonPlusSerializer(allowed_msgpack_modules=None)

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=20),
    st.text("ab ", min_size=150, max_size=300),
    st.binary(max_size=40),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.text(max_size=3), st.just("~"), st.integers(0, 3)), inner, max_size=3),
        st.sets(st.integers(-9, 9), max_size=3),
        st.text(max_size=30).map(HumanMessage),
    ),
    max_leaves=12,
)


def there_and_back(value):
    fresh = {}
    tree = Trees(lambda _name: False).tree(SERDE.dumps_typed(value), fresh)
    told = msgspec.json.decode(msgspec.json.encode([tree, fresh]))
    pieces = {name: msgspec.Raw(msgspec.json.encode(piece)) for name, piece in told[1].items()}
    return SERDE.loads_typed(Trees(lambda _name: False).serialized(told[0], pieces))


@settings(max_examples=100, deadline=None)
@given(value=VALUES)
def test_a_value_comes_back_as_it_was(value):
    assert there_and_back(value) == SERDE.loads_typed(SERDE.dumps_typed(value))


def test_what_is_no_number_comes_back():
    assert math.isnan(there_and_back([math.nan])[0])


@pytest.mark.parametrize("length", [1, 14, 15, 16, 300])
@pytest.mark.parametrize("more", [0, 1, 3])
def test_what_a_list_has_more_is_what_was_added(length, more):
    messages = [
        HumanMessage(f"message {number} {'of some length ' * 9}", id=str(number))
        for number in range(length + more)
    ]
    trees, fresh = Trees(lambda _name: False), {}
    before = SERDE.dumps_typed(messages[:length])
    after = SERDE.dumps_typed(messages)
    whole = trees.tree(before, fresh)
    added = trees.appended(after, before[1], fresh)
    assert [*whole, *added] == trees.tree(after, fresh)


def test_a_list_that_is_another_one_is_looked_at_as_a_whole():
    trees = Trees(lambda _name: False)
    one, other = (SERDE.dumps_typed([HumanMessage(text)]) for text in ("one", "other"))
    assert trees.appended(other, one[1], {}) is None
    assert trees.appended(SERDE.dumps_typed(["a", "b"]), SERDE.dumps_typed(["a"])[1], {}) is None
    assert trees.appended(SERDE.dumps_typed({"a": 1}), b"", {}) is None


def test_a_message_with_an_id_shares_its_text_with_the_one_without():
    trees, fresh = Trees(lambda _name: False), {}
    text = "what the customer wrote " * 20
    trees.tree(SERDE.dumps_typed([HumanMessage(text), HumanMessage(text, id="given")]), fresh)
    assert str(fresh).count(text) == 1


def test_a_tree_of_a_later_version_is_refused_by_name():
    with pytest.raises(CheckpointUnreadable, match="upgrade AgentX"):
        Trees(lambda _name: False).serialized({"~": ["later", 1]}, {})
