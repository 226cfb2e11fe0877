"""AgentXStore beside LangGraph's InMemoryStore: the same operations give the same answers."""

import asyncio
import itertools
import multiprocessing
import shutil

import pytest

pytest.importorskip(
    "langgraph", reason="langgraph is not installed: pip install 'agentx-workspace[langgraph]'"
)

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import GetOp, PutOp
from langgraph.store.memory import InMemoryStore

from agentx import Workspace
from agentx.orchestrators.langgraph import AgentXStore
from agentx.storage.errors import UsageError


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "task"
    Workspace.create(path).close()
    return path


@pytest.fixture
def ws(made, tmp_path):
    shutil.copytree(made, tmp_path / "task", symlinks=True)
    with Workspace.open(tmp_path / "task") as workspace:
        yield workspace


def answers(item):
    """Return what a store answers, without times."""
    if isinstance(item, list):
        return [answers(one) for one in item]
    if item is None or isinstance(item, tuple):
        return item
    return (item.namespace, item.key, item.value, getattr(item, "score", None))


NAMESPACES = st.sampled_from([("a",), ("a", "b"), ("a", "c"), ("b",), ("b", "b", "b")])
KEYS = st.sampled_from(["k1", "k2", "k3"])
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.sampled_from(["x", "yes", ""]))
VALUES = st.dictionaries(
    st.sampled_from(["n", "text", "of"]),
    st.one_of(LEAVES, st.lists(LEAVES, max_size=2), st.dictionaries(st.just("in"), LEAVES)),
    max_size=3,
)
FILTERS = st.one_of(
    st.none(),
    st.dictionaries(st.sampled_from(["n", "text"]), LEAVES, max_size=2),
    st.builds(lambda how, what: {"n": {how: what}}, st.sampled_from(["$eq", "$ne"]), LEAVES),
    st.builds(lambda leaf: {"of": {"in": leaf}}, LEAVES),
)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), NAMESPACES, KEYS, VALUES),
        st.tuples(st.just("delete"), NAMESPACES, KEYS),
        st.tuples(st.just("get"), NAMESPACES, KEYS),
        st.tuples(st.just("search"), NAMESPACES | st.just(()), FILTERS, st.integers(1, 4), st.integers(0, 2)),
        st.tuples(
            st.just("list"),
            st.sampled_from([None, ("a",), ("*", "b")]),
            st.sampled_from([None, ("b",)]),
            st.sampled_from([None, 1, 2]),
        ),
    ),
    max_size=15,
)


def do(store, root, operation):
    """Do an operation below a namespace; return the answer."""
    match operation:
        case "put", namespace, key, value:
            return store.put((root, *namespace), key, value)
        case "delete", namespace, key:
            return store.delete((root, *namespace), key)
        case "get", namespace, key:
            return answers(store.get((root, *namespace), key))
        case "search", prefix, wanted, limit, offset:
            return answers(store.search((root, *prefix), filter=wanted, limit=limit, offset=offset))
        case "list", prefix, suffix, depth:
            deep = depth and depth + 1
            return store.list_namespaces(prefix=(root, *(prefix or ())), suffix=suffix, max_depth=deep)
    raise AssertionError(operation)


@pytest.fixture(scope="module")
def compared(made, tmp_path_factory):
    path = tmp_path_factory.mktemp("compared") / "task"
    shutil.copytree(made, path, symlinks=True)
    with Workspace.open(path) as ws:
        yield ws, AgentXStore(ws), InMemoryStore(), itertools.count()


@settings(max_examples=40, deadline=None)
@given(operations=OPERATIONS)
def test_the_same_operations_give_the_same_answers(compared, operations):
    ws, ours, reference, numbers = compared
    root = f"example {next(numbers)}"
    for operation in operations:
        for namespace in [one for one, items in reference._data.items() if not items]:
            del reference._data[
                namespace
            ]  # LangGraph's store lists what holds nothing, until its process ends
        assert do(ours, root, operation) == do(reference, root, operation), operation
    anew = AgentXStore(ws)
    assert answers(anew.search((root,), limit=100)) == answers(ours.search((root,), limit=100))


@pytest.mark.parametrize("how", ["$gt", "$gte", "$lt", "$lte", "$eq", "$ne"])
def test_numbers_are_compared_as_in_langgraphs_store(ws, how):
    stores = (AgentXStore(ws), InMemoryStore())
    for store in stores:
        for number in range(5):
            store.put(("n",), str(number), {"n": number})
    ours, reference = (answers(store.search(("n",), filter={"n": {how: 2}})) for store in stores)
    assert ours == reference
    assert ours


def test_an_item_is_found_after_the_workspace_was_closed(ws):
    AgentXStore(ws).put(("users", "anna"), "likes", {"text": "short answers"})
    ws.close()
    with Workspace.open(ws.root) as again:
        assert AgentXStore(again).get(("users", "anna"), "likes").value == {"text": "short answers"}


def test_an_item_keeps_when_it_was_first_put(ws):
    store = AgentXStore(ws)
    store.put(("a",), "k", {"n": 1})
    first = store.get(("a",), "k")
    store.put(("a",), "k", {"n": 2})
    second = store.get(("a",), "k")
    assert second.created_at == first.created_at < second.updated_at


def test_a_long_item_is_kept_beside_the_log(ws):
    value = {"text": "what the customer wrote " * 5_000}
    AgentXStore(ws).put(("a",), "k", value)
    assert AgentXStore(ws).get(("a",), "k").value == value
    assert ws.verify().sound


def test_what_another_store_puts_is_found(ws):
    one, other = AgentXStore(ws), AgentXStore(ws)
    assert one.get(("a",), "k") is None
    other.put(("a",), "k", {"n": 1})
    assert one.get(("a",), "k").value == {"n": 1}
    other.delete(("a",), "k")
    assert one.get(("a",), "k") is None


def put_ten(path, name):
    with Workspace.open(path) as ws:
        store = AgentXStore(ws)
        for number in range(10):
            store.put(("shared",), f"{name}{number}", {"n": number})


def test_processes_that_put_at_once_lose_nothing(ws):
    ws.flush()
    spawn = multiprocessing.get_context("spawn")
    both = [spawn.Process(target=put_ten, args=(ws.root, name)) for name in "ab"]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert len(AgentXStore(ws).search(("shared",), limit=50)) == 20


def test_items_are_awaited_the_same(ws):
    store = AgentXStore(ws)

    async def run():
        await store.aput(("a",), "k", {"n": 1})
        return await store.abatch([GetOp(("a",), "k"), PutOp(("a",), "k", {"n": 2}), GetOp(("a",), "k")])

    got, put, again = asyncio.run(run())
    assert (got.value, put, again.value) == ({"n": 1}, None, {"n": 1})
    assert store.get(("a",), "k").value == {"n": 2}


def test_a_query_ranks_by_meaning_where_there_is_a_model(ws):
    words = {"I like the sea": [1.0, 0.0], "tax is due in May": [0.0, 1.0], "swimming": [0.9, 0.1]}
    index = {"dims": 2, "embed": lambda texts: [words[text] for text in texts], "fields": ["text"]}
    stores = (AgentXStore(ws, index=index), InMemoryStore(index=index))
    for store in stores:
        store.put(("m",), "tax", {"text": "tax is due in May"})
        store.put(("m",), "sea", {"text": "I like the sea"})
        store.put(("m",), "unseen", {"text": "I like the sea"}, index=False)
    ours, reference = (answers(store.search(("m",), query="swimming")) for store in stores)
    assert ours == reference
    assert [key for _, key, _, _ in ours] == ["sea", "tax", "unseen"]


def test_a_query_ranks_with_the_workspaces_own_model(ws, monkeypatch):
    class Model:
        name, batch, dimensions = "by-length", 1, 2

        def embed_query(self, text):
            return np.array([1.0, 0.0] if "sea" in text or "swim" in text else [0.0, 1.0], dtype=np.float32)

    model = Model()
    monkeypatch.setattr(ws.engine.indexer, "embedder", lambda **_opened: model)
    store = AgentXStore(ws)
    store.put(("m",), "tax", {"text": "tax is due in May"})
    store.put(("m",), "sea", {"text": "I like the sea"})
    assert [item.key for item in store.search(("m",), query="swimming")] == ["sea", "tax"]


def test_a_secret_in_an_item_never_reaches_the_disk(ws):
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    AgentXStore(ws).put(("a",), "k", {"text": f"use {token}"})
    assert "[redacted:" in AgentXStore(ws).get(("a",), "k").value["text"]
    assert not any(token.encode() in file.read_bytes() for file in ws.root.rglob("*") if file.is_file())


def test_what_json_cannot_hold_is_refused(ws):
    with pytest.raises(UsageError, match="JSON"):
        AgentXStore(ws).put(("a",), "k", {"of": object()})
