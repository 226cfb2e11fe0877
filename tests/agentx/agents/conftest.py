"""A workspace, and scripts for the model."""

import json

import pytest

from agentx import Workspace
from agentx.synthesis.model.scripted import ScriptedModel


@pytest.fixture
def ws(tmp_path):
    with Workspace.create(tmp_path / "task", title="A task") as ws:
        yield ws


@pytest.fixture
def script(tmp_path):
    """A model that plays these turns; a turn given as text is an answer, as a tuple a call of a tool."""

    def script(*turns):
        path = tmp_path / f"turns-{len(list(tmp_path.iterdir()))}.jsonl"
        path.write_text("\n".join(json.dumps(_turn(turn)) for turn in turns))
        return ScriptedModel(path)

    return script


def _turn(turn):
    if isinstance(turn, str):
        return {"answer": turn}
    if isinstance(turn, tuple):
        return {"tool_calls": [{"name": turn[0], "arguments": turn[1]}]}
    return turn
