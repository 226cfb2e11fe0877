"""A history of each earlier format opens for ever: its lines stay as they are, and mean what they meant.

For each format, ``tests/workspaces/formats`` has a workspace, recorded by the last version that wrote this format, with
items of every kind and status of that time, and a list of these items.
"""

import json
import shutil
import tarfile
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.context.context_replay import replay
from agentx.recording import write_path
from agentx.storage.events.types import ContextProvided
from agentx.synthesis.memory.conclusions import Concluded

_FORMATS = Path(__file__).parents[1] / "workspaces" / "formats"

KINDS: dict[str, str] = {}
"""The kind that an item of an earlier kind has now."""

STATUSES: dict[str, str] = {}
"""The status that an item of an earlier status has now."""


@pytest.fixture(
    params=sorted(_FORMATS.glob("*.tar.gz")), ids=lambda path: f"format {path.name.partition('.')[0]}"
)
def archive(request):
    return request.param


@pytest.fixture
def task(archive, tmp_path):
    with tarfile.open(archive) as files:
        files.extractall(tmp_path / "task", filter="data")
    return tmp_path / "task"


@pytest.fixture
def ws(task, lexical):
    with Workspace.open(task, settings=lexical) as ws:
        yield ws


def lines(task):
    """The recorded lines, in order."""
    files = [*sorted((task / "history").rglob("*.jsonl")), task / "history.jsonl"]
    return [line for file in files for line in file.read_bytes().splitlines()]


def test_every_item_is_there_under_its_present_kind_and_status(ws, archive):
    recorded = json.loads(
        archive.with_name(archive.name.replace("tar.gz", "json")).read_text(encoding="utf-8")
    )
    expected = {
        name: (_kind(kind), _status(kind, status), text) for name, (kind, status, text) in recorded.items()
    }
    assert {item.id: (item.kind, item.status, item.text) for item in ws.memory(status=None)} == expected


def _kind(kind):
    return KINDS.get(kind, kind)


def _status(kind, status):
    return STATUSES.get((kind, status), STATUSES.get(status, status))


def test_its_chain_verifies_and_no_line_is_rewritten(task, lexical):
    before = lines(task)
    with Workspace.open(task, settings=lexical) as ws:
        status = ws.status()
        assert (status.damage, status.notes, status.outside, ws.state.unknown) == ((), (), (), 0)
        assert ws.verify().findings == ()
        said = ws.say("Never touch the deployment script.")
        ws.tools.write_file("a.md", "One more.\n")
        ws.retire(ws.memory("constraint")[-1].id)
        ws.flush()
        assert ws.verify().findings == ()
    after = lines(task)
    assert after[: len(before)] == before
    assert len(after) > len(before)
    with Workspace.open(task, settings=lexical) as ws:
        assert ws.memory("constraint", status="retired")[-1].evidence[0].seq == said.seq
        assert ws.verify().findings == ()


def test_a_rebuild_a_snapshot_and_a_fold_from_zero_give_the_same_digest(task, lexical, monkeypatch):
    with Workspace.open(task, settings=lexical) as ws:
        digest = ws.state.digest
        assert ws.rebuild().state_digest == digest
    monkeypatch.setattr(write_path, "SNAPSHOT_EVENTS", 1)
    with Workspace.open(task, settings=lexical) as ws:
        ws.say("Hello.")
        ws.flush()
        digest = ws.state.digest
    assert list((task / ".agentx" / "snapshots").glob("*.snapshot"))
    with Workspace.open(task, settings=lexical) as ws:
        assert ws.state.digest == digest
    shutil.rmtree(task / ".agentx")
    with Workspace.open(task, settings=lexical) as ws:
        assert ws.state.digest == digest
        assert ws.verify().findings == ()


def test_contexts_that_agents_were_shown_replay_byte_for_byte(ws):
    shown = [event for event in ws.events() if isinstance(event.data, ContextProvided)]
    assert len(shown) > 3
    assert all(replay(ws.engine, event).exact for event in shown)


def test_conclusions_are_read_as_events_of_the_present_version(ws):
    made = [event for event in ws.events() if isinstance(event.data, Concluded)]
    assert sum(len(event.data.changes) for event in made) > 200
    assert ws.resynthesize() == [] or ws.verify().findings == ()
