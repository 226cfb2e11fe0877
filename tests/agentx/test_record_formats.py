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
from agentx.core.layout import FORMAT
from agentx.recording import recorded_log
from agentx.recording.write_path import ReadOnly
from agentx.storage.events.codec import DamagedLine
from agentx.storage.events.types import ContextProvided, WorkspaceCreated
from agentx.synthesis.memory.conclusions import Concluded
from agentx.synthesis.memory.items import FORMER_KINDS, ending, sort_of
from agentx.synthesis.memory.record_codec import record_codec

_FORMATS = Path(__file__).parents[1] / "workspaces" / "formats"

KINDS = {name: kind for name, (kind, _) in FORMER_KINDS.items()}
"""The kind that an item of an earlier kind has now."""

STATUSES = {
    "resolved": {"closed"},
    "superseded": {"retired"},
    "archived": {"closed", "retired"},
    "proposed": {"candidate"},
}
"""The statuses that an item of an earlier status may have now."""

ENDINGS = {"resolved": "resolved", "superseded": "superseded", "lapsed": "archived", "archived": "archived"}
"""The earlier status of an item that ended so."""


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


@pytest.fixture
def recorded(archive):
    """The items of the history by id, as its version showed them: kind, status and text."""
    listed = archive.with_name(archive.name.replace("tar.gz", "json"))
    return json.loads(listed.read_text(encoding="utf-8"))


def test_every_item_is_there_under_its_present_kind_and_status(ws, recorded):
    items = {item.id: item for item in ws.memory(status=None)}
    assert list(items) == list(recorded)
    for name, (kind, status, text) in recorded.items():
        item = items[name]
        assert (item.kind, item.text) == (KINDS.get(kind, kind), text)
        assert item.status in STATUSES.get(status, {status})


def test_what_ended_is_still_told_apart(ws, recorded):
    """Only a person's retirement of what had been superseded before is not."""
    items = {item.id: item for item in ws.memory(status=None)}
    if not {"resolved", "superseded"} & {status for _, status, _ in recorded.values()}:
        pytest.skip("this format has the present statuses")
    former = {name: ENDINGS.get(ending(item), item.status) for name, item in items.items()}
    former = {name: "proposed" if status == "candidate" else status for name, status in former.items()}
    differing = {name for name, (_, status, _) in recorded.items() if former[name] != status}
    assert all(items[name].by_hand and ending(items[name]) == "superseded" for name in differing)
    assert len(differing) <= 1


def test_what_was_a_kind_of_its_own_is_still_told_apart(ws, recorded):
    assert {item.id: sort_of(item) for item in ws.memory(status=None)} == {
        name: kind for name, (kind, _, _) in recorded.items()
    }
    for former in FORMER_KINDS:
        named = [item.id for item in ws.memory(former, status=None)]
        assert named == [name for name, (kind, _, _) in recorded.items() if kind == former]


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
    monkeypatch.setattr(recorded_log, "SNAPSHOT_EVENTS", 1)
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


def test_contexts_that_agents_were_shown_replay_with_the_same_items(ws):
    """Their sections may look different now, and ``exact`` says so."""
    shown = [event for event in ws.events() if isinstance(event.data, ContextProvided)]
    assert len(shown) > 3
    for event in shown:
        again = replay(ws.engine, event)
        assert {item.id for item in again.items} & {*ws.state.items} >= {*event.data.items} & {
            *ws.state.items
        }


def test_conclusions_are_read_as_events_of_the_present_version(ws):
    made = [event for event in ws.events() if isinstance(event.data, Concluded)]
    assert sum(len(event.data.changes) for event in made) > 200
    assert ws.resynthesize() == [] or ws.verify().findings == ()


def test_the_first_write_raises_the_format_so_that_the_earlier_version_only_reads(task, lexical, monkeypatch):
    with Workspace.open(task, settings=lexical) as ws:
        before = ws.state
        assert before.format < FORMAT
        item = ws.remember("decision", "Invoices are kept in PostgreSQL.")
        ws.say("Never deploy on a Friday.")
        raised = [event for event in ws.events(before.seq) if isinstance(event.data, WorkspaceCreated)]
        assert [event.seq for event in raised] == [before.seq + 1]
        assert item.evidence[0].seq == item.created_seq == before.seq + 2
        assert (ws.state.format, ws.state.title) == (FORMAT, before.title)
    monkeypatch.setattr("agentx.factory.FORMAT", before.format)
    with Workspace.open(task, settings=lexical) as ws:
        (note,) = ws.status().notes
        assert f"was written by a newer version (format {FORMAT}" in note
        with pytest.raises(ReadOnly):
            ws.say("Hello.")


def test_reading_alone_changes_nothing(task, lexical):
    before = lines(task)
    with Workspace.open(task, settings=lexical) as ws:
        assert ws.memory()
        assert ws.get_relevant_context("the harbour").text
        assert list(ws.events())
    assert lines(task) == before


@pytest.mark.parametrize(
    "changes",
    [
        '{"type":"add"}',
        '{"type":"add","item":{"id":"l-2","kind":["learning"],"text":"x"}}',
        '{"type":"add","item":{"id":"l-2","kind":"wisdom","text":"x"}}',
        '{"type":"patch","id":""}',
        '{"type":"patch","id":"l-2","detail":[]}',
        '{"type":"patch","id":"l-2","status":"archived","reason":7}',
        '{"type":"patch","id":"l-2","status":"asleep"}',
        "7",
    ],
)
def test_an_earlier_conclusion_of_another_shape_is_a_damaged_line(changes):
    data = f'{{"extractor":"scribe","version":1,"through":1,"changes":[{changes}]}}'
    header = '{"seq":2,"at":"2026-01-01T00:00:00.000000Z","type":"Concluded","v":1,"actor":"engine:scribe"'
    line = f'{header},"data":{data},"salt":"{"0" * 32}","hash":"{"0" * 64}"}}\n'.encode()
    with pytest.raises(DamagedLine):
        record_codec().decode(line)
