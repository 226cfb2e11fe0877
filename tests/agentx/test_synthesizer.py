"""What a failing disk kept from being concluded is concluded by the next fact."""

import shutil

import pytest

from agentx import Workspace
from agentx.storage.files.lock import FileLock, WorkspaceBusy
from agentx.storage.log.history import HistoryWriteFailed
from agentx.synthesis.demands.demand_extractor import DemandExtractor


def test_a_demand_whose_conclusion_failed_is_concluded_with_the_next_message(tmp_path, monkeypatch):
    with Workspace.create(tmp_path / "task") as ws:
        record, failing = ws.engine.write_path.record, [True]

        def refused(drafts):
            if failing and drafts[0].actor == "engine:demands":
                failing.clear()
                raise HistoryWriteFailed("The disk is full.")
            return record(drafts)

        monkeypatch.setattr(ws.engine.write_path, "record", refused)
        ws.say("Never use the word synergy.")
        assert ws.memory("constraint") == []
        ws.say("Never use the word leverage.")
        assert sorted(item.text for item in ws.memory("constraint")) == [
            "Never use the word leverage.",
            "Never use the word synergy.",
        ]


def test_a_demand_too_long_for_a_line_does_not_hold_up_what_is_said_after_it(tmp_path):
    with Workspace.create(tmp_path / "task") as ws:
        ws.say(f"Never use {'𠀀𠀁' * 2_000} in an answer.")
        ws.say("Never use the word leverage.")
        assert ws.memory("constraint")[-1].text == "Never use the word leverage."


def test_demands_without_spaces_leave_room_in_the_smallest_context(tmp_path):
    with Workspace.create(tmp_path / "task") as ws:
        for number in range(5):
            ws.remember("constraint", f"{'部署之前先运行测试' * 30}{number}")
        assert ws.get_relevant_context("部署", tier=0).tokens <= 1_000


def test_a_fact_that_leads_to_nothing_does_not_wait_for_other_processes(tmp_path):
    """A lock without waiting stands for it: taking the workspace's lock would be refused."""
    with Workspace.create(tmp_path / "task") as ws:
        ws._keeper.stop()
        said = ws.say("Thank you.")
        ws.engine.write_path.lock._timeout_s = 0
        with FileLock(ws.root / ".git/agentx.lock").hold():
            with pytest.raises(WorkspaceBusy):
                ws.engine.write_path.refresh()
            ws.engine.synthesizer._take(said)
        ws.engine.write_path.lock._timeout_s = 30
        assert [event.type for event in ws.events(said.seq)] == []


def test_what_led_to_nothing_is_not_read_again_by_the_next_process(tmp_path, monkeypatch):
    read = []
    conclude = DemandExtractor.conclude

    def seen(self, event, state, body):
        read.append(event.seq)
        return conclude(self, event, state, body)

    monkeypatch.setattr(DemandExtractor, "conclude", seen)
    with Workspace.create(tmp_path / "task") as ws:
        ws.say("Never use the word synergy.")
        last = ws.say("What is the time?").seq
        digest = ws.state.digest
    read.clear()
    with Workspace.open(tmp_path / "task") as ws:
        assert read == []
        assert ws.state.digest == digest

    # Where the cache is gone, or the extractors are told something else, it is read again.
    shutil.rmtree(tmp_path / "task" / ".agentx")
    Workspace.open(tmp_path / "task").close()
    assert last in read
    read.clear()
    with (tmp_path / "task" / "agentx.toml").open("a") as file:
        file.write("\n[scribe]\nauto_capture = false\n")
    Workspace.open(tmp_path / "task").close()
    assert last in read


def test_a_demand_whose_words_were_damaged_is_concluded_when_they_are_put_back(tmp_path, monkeypatch):
    with Workspace.create(tmp_path / "task") as ws:
        with monkeypatch.context() as patch:  # as where the process dies before it concludes
            patch.setattr(DemandExtractor, "conclude", lambda *_: ())
            ws.say(f"Never use the word synergy. {'It is a long story. ' * 1_000}")
        watermark = ws.state.watermark
    (blob,) = [path for path in (tmp_path / "task/history/blobs").rglob("*") if path.is_file()]
    words = blob.read_bytes()
    shutil.rmtree(tmp_path / "task" / ".agentx")
    blob.chmod(0o644)
    blob.write_bytes(b"x" * len(words))
    with Workspace.open(tmp_path / "task") as ws:
        assert ws.state.watermark == watermark
    blob.write_bytes(words)
    with Workspace.open(tmp_path / "task") as ws:
        assert [item.text for item in ws.state.items.values() if "synergy" in item.text]
