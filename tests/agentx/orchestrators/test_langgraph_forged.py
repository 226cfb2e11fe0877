"""Checkpoints that an attacker wrote into a history: nothing of them runs, and none holds a reader up."""

import base64
import json
import pickle
from pathlib import Path

import pytest

pytest.importorskip(
    "langgraph", reason="langgraph is not installed: pip install 'agentx-workspace[langgraph]'"
)

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from agentx import Workspace
from agentx.orchestrators.langgraph import AgentXSaver
from agentx.orchestrators.threads import CheckpointUnreadable
from agentx.storage.events.checkpoint_events import CheckpointSaved
from agentx.storage.events.types import Draft

CONFIG = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


@pytest.fixture
def ws(tmp_path):
    with Workspace.create(tmp_path / "task") as workspace:
        yield workspace


@pytest.fixture
def foreign(ws, monkeypatch):
    """A workspace that came from elsewhere."""
    monkeypatch.setattr(type(ws.engine.trust), "why_restricted", lambda _self: "It came from elsewhere.")
    return ws


def forge(ws, value, *, pieces=None, base="", version="1", parent="", name="c1"):
    """Record a checkpoint with a value that LangGraph's serializer never made."""
    told = {"v": 4, "id": name, "ts": "2026-01-01", "versions_seen": {}, "updated_channels": None}
    record = {
        "checkpoint": told,
        "metadata": {"source": "loop", "step": 1, "parents": {}},
        "versions": {"x": version},
        "values": [["x", version, [value, base, 0, 0]]],
    }
    saved = CheckpointSaved(thread="t", checkpoint=name, parent=parent, record=record, pieces=pieces or {})
    ws.record(Draft(data=saved, actor="engine:langgraph"))


def loaded(ws, **more):
    return AgentXSaver(ws, **more).get_tuple(CONFIG).checkpoint["channel_values"]["x"]


def typed(kind, data):
    return {"~": ["typed", kind, base64.b64encode(data).decode()]}


class Runs:
    """An object whose pickle writes a file."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (Path(self.marker),)


@pytest.mark.parametrize("wrapped", [False, True])
def test_no_extension_type_calls_anything(foreign, tmp_path, wrapped):
    marker = str(tmp_path / "ran")
    calls = [
        ["ext", 0, ["os", "mkdir", marker]],
        ["ext", 1, ["os", "mkdir", [marker]]],
        ["ext", 1, ["builtins", "exec", [f"open({marker!r}, 'w')"]]],
        ["ext", 2, ["subprocess", "Popen", {"args": ["touch", marker]}]],
        ["ext", 3, ["pathlib", "Path", marker, "touch"]],
        ["ext", 4, ["subprocess", "run", {"args": ["touch", marker]}]],
        ["ext", 5, ["subprocess", "run", {"args": ["touch", marker]}, "model_validate_json"]],
        ["ext", 6, ["|O", [1], "C", {"~": ["bytes", "AAAAAAAAAAA="]}]],
    ]
    forge(
        foreign,
        [{"~": ["ext", 0, ["builtins", "set", [{"~": call}]]]} if wrapped else {"~": call} for call in calls],
    )
    loaded(foreign)
    assert not Path(marker).exists()


def test_what_langgraphs_serializer_does_not_write_is_not_read(foreign, tmp_path):
    marker = str(tmp_path / "ran")
    template = {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain_core", "prompts", "image", "ImagePromptTemplate"],
    }
    forged = [
        typed("pickle", pickle.dumps(Runs(marker))),
        typed("json", json.dumps({**template, "kwargs": {"template": {"path": "/etc/passwd"}}}).encode()),
        typed(
            "json",
            json.dumps({"lc": 2, "type": "constructor", "id": ["os", "mkdir"], "args": [marker]}).encode(),
        ),
        typed("json", b"1"),
        typed(["json"], b"1"),
    ]
    for number, value in enumerate(forged):
        forge(foreign, value, version=str(number), name=f"c{number}")
        with pytest.raises(CheckpointUnreadable):
            loaded(foreign)
    assert not Path(marker).exists()


def test_a_trusted_workspace_is_read_by_the_serializer_that_is_passed(ws):
    forge(ws, typed("json", b'{"a": 1}'))
    assert loaded(ws, serde=JsonPlusSerializer()) == {"a": 1}
    with pytest.raises(CheckpointUnreadable, match="serde"):
        loaded(ws)


def test_pieces_that_hold_one_another_many_times_are_refused(foreign):
    lists = {f"p{n}": [{"~": f"p{n + 1}"}] * 8 for n in range(20)} | {"p20": "end"}
    packed = {f"q{n}": {"~": ["ext", 9, [{"~": f"q{n + 1}"}] * 8]} for n in range(20)} | {"q20": "end"}
    for number, name in enumerate(("p0", "q0")):
        forge(
            foreign,
            {"~": name},
            pieces=lists if name == "p0" else packed,
            version=str(number),
            name=f"c{number}",
        )
        with pytest.raises(CheckpointUnreadable, match="agentx trust"):
            loaded(foreign)


@pytest.mark.parametrize(
    "value",
    [
        {"~": "p0"}, {"~": []}, {"~": ["typed", "msgpack"]}, {"~": ["bytes", 5]}, {"~": ["float", "x"]},
        {"~": ["int", "9" * 5_000]}, {"~": ["ext", 1_000, 1]}, {"~": ["map", [[1]]]}, {"~": ["map", [[[1], 2]]]},
    ],
)  # fmt: skip
def test_what_is_no_value_is_refused_with_a_sentence(ws, value):
    forge(ws, value, pieces={"p0": [{"~": "p1"}], "p1": [{"~": "p0"}]})
    with pytest.raises(CheckpointUnreadable):
        loaded(ws)


@pytest.mark.parametrize("base", ["1", "elsewhere"])
def test_a_value_that_is_told_by_itself_or_by_nothing_is_refused(ws, base):
    forge(ws, [1], base=base)
    with pytest.raises(CheckpointUnreadable, match="rests on one"):
        loaded(ws)


def test_checkpoints_that_follow_one_another_in_a_ring_are_walked_once(ws):
    forge(ws, 1, name="c1", parent="c2")
    forge(ws, 1, name="c2", parent="c1")
    found = AgentXSaver(ws).get_delta_channel_history(config=CONFIG, channels=["y"])
    assert found["y"] == {"writes": []}
