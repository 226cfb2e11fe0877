"""Histories of every subsystem, and what killed writers left: their lines, chain and items hold for ever."""

import hashlib
import json

import pytest

from agentx import Workspace
from agentx.synthesis.state.state import FOLD_VERSION
from tests import old_histories

KILLED = [path for path in old_histories.archives() if path.parent.name == "killed"]
DESCRIBED = [path for path in old_histories.archives() if path.parent.name in {"killed", "subsystems"}]


@pytest.fixture
def task(request, tmp_path):
    return old_histories.unpacked(
        request.param, tmp_path / "project" / "beside" / "task"
    )  # one has its artifacts above it


@pytest.fixture
def ws(task, tmp_path):
    with Workspace.open(task, settings=old_histories.settings(tmp_path)) as ws:
        yield ws


def told(request):
    return json.loads(
        request.node.callspec.params["task"]
        .with_name(f"{name(request).rpartition('/')[2]}.json")
        .read_text("utf-8")
    )


def name(request):
    return old_histories.name_of(request.node.callspec.params["task"])


def of(archives):
    return pytest.mark.parametrize("task", archives, ids=old_histories.name_of, indirect=True)


@of(DESCRIBED)
def test_its_lines_and_items_are_what_they_were(request, ws):
    expected = told(request)
    lines = old_histories.lines_of(ws.root).splitlines(keepends=True)[: expected["events"]]
    assert hashlib.sha256(b"".join(lines)).hexdigest() == expected["lines"]
    found = {item["id"]: item for item in old_histories.described(ws)["items"]}
    assert {item["id"]: found.get(item["id"]) for item in expected["items"]} == {
        item["id"]: item for item in expected["items"]
    }


@of(DESCRIBED)
def test_its_chain_is_whole_and_a_rebuild_gives_the_same_state(ws):
    assert ws.verify().findings == ()
    before = ws.status().digest
    assert ws.rebuild().state_digest == before


@of(old_histories.archives())
def test_each_version_of_the_fold_gives_it_one_digest(request, task, ws):
    pinned = old_histories.digests().get(str(FOLD_VERSION), {})
    assert name(request) in pinned, "run python -m tests.old_histories digests"
    last = old_histories.last_described(request.node.callspec.params["task"], task)
    assert ws.state_at(last).digest == pinned[name(request)]


@of(KILLED)
def test_nothing_that_was_acknowledged_before_the_kill_is_lost(request, task, ws):
    expected = told(request)
    lines = old_histories.lines_of(task).splitlines(keepends=True)[: expected["acknowledged"]]
    if not name(request).startswith("killed/purge"):  # a purge replaces one of these lines on purpose
        assert hashlib.sha256(b"".join(lines)).hexdigest() == expected["before"]
    for number in range(4):
        assert (ws.artifacts / f"notes/{number}.md").is_file()


@of(KILLED)
def test_it_goes_on_where_the_killed_writer_stopped(ws):
    events = ws.state.seq
    ws.tools.write_file("after.md", "Written after the kill.\n")
    ws.flush()
    assert ws.state.seq > events
    assert ws.verify().findings == ()
