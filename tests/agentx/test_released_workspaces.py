"""Workspaces that released versions wrote, one archive each, open for ever: everything in them is read as it was meant.

With each release one is added: a workspace with rules, a denial, edits by hand, an undo, a long message, sealed segments.
"""

import tarfile
from pathlib import Path

import pytest

from agentx import Workspace

_ARCHIVES = sorted((Path(__file__).parents[1] / "workspaces").glob("*.tar.gz"))


@pytest.fixture(params=_ARCHIVES, ids=lambda path: path.name.removesuffix(".tar.gz"))
def ws(request, tmp_path, lexical):
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path / "task", filter="data")
    with Workspace.open(tmp_path / "task", settings=lexical) as ws:
        yield ws


def test_there_is_one_of_the_first_release():
    assert "0.1.0.tar.gz" in [path.name for path in _ARCHIVES]


def test_everything_in_it_is_read_as_it_was_meant(ws):
    status = ws.status()
    assert (status.damage, status.notes, status.outside) == ((), (), ())
    assert {item.text for item in ws.memory("constraint")} >= {
        "Never touch requirements.txt.",
        "Always answer in British English.",
    }
    assert [item.text for item in ws.memory("knowledge")] == ["The build takes five minutes."]
    assert (ws.artifacts / "src/app.py").read_text() == "def main():\n    return 2\n"
    assert (ws.artifacts / "by-hand.txt").read_text() == "by hand\n"
    assert ws.state_at(4).digest != ws.state.digest
    long = next(event for event in ws.events() if getattr(getattr(event.data, "body", None), "blob", ""))
    assert ws.read_body(long.data.body).startswith("A long message. word")


def test_it_is_sound_and_goes_on(ws):
    assert ws.verify().findings == ()
    events = ws.state.seq
    ws.tools.write_file("src/app.py", "def main():\n    return 3\n")
    ws.flush()
    assert ws.state.seq > events
    assert ws.verify().findings == ()
    before = ws.state.digest
    assert ws.rebuild().state_digest == before
