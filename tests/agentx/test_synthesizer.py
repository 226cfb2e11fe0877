"""What a failing disk kept from being concluded is concluded by the next fact."""

import os
import shutil

import pytest

from agentx import Workspace
from agentx.engine.synthesizer import Synthesizer
from agentx.storage.files.lock import FileLock
from agentx.storage.log import history
from agentx.storage.log.history import HistoryWriteFailed
from agentx.synthesis.demands.demand_extractor import DemandExtractor


def test_a_demand_whose_conclusion_failed_is_concluded_with_the_next_message(tmp_path, monkeypatch):
    with Workspace.create(tmp_path / "task") as ws:
        append, failing = ws.engine.write_path._append, [True]

        def refused(drafts, **how):
            if failing and drafts[0].actor == "engine:demands":
                failing.clear()
                raise HistoryWriteFailed("The disk is full.")
            return append(drafts, **how)

        monkeypatch.setattr(ws.engine.write_path, "_append", refused)
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


@pytest.mark.parametrize("said", ["Thank you.", "Never use the word synergy."])
def test_a_fact_and_its_conclusions_take_one_turn_of_the_lock_and_one_sync(tmp_path, monkeypatch, said):
    with Workspace.create(tmp_path / "task") as ws:
        ws._keeper.stop()
        ws.say("Hello.")
        taken, synced = [], []
        acquire, sync = FileLock._acquire, os.fdatasync
        monkeypatch.setattr(FileLock, "_acquire", lambda *args: taken.append(1) or acquire(*args))
        monkeypatch.setattr(history.os, "fdatasync", lambda fd: synced.append(1) or sync(fd))
        ws.say(said)
        assert (len(taken), len(synced)) == (1, 1)


def test_what_another_process_concluded_is_not_concluded_again(tmp_path, monkeypatch):
    read = []
    conclude = Synthesizer._conclude
    monkeypatch.setattr(
        Synthesizer, "_conclude", lambda self, event: read.append((self, event.seq)) or conclude(self, event)
    )
    with Workspace.create(tmp_path / "task") as ws, Workspace.open(tmp_path / "task") as other:
        read.clear()
        said = [ws.say("Never use the word synergy.").seq, ws.say("What is the time?").seq]
        own = other.say("Thank you.").seq
        assert [seq for who, seq in read if who is other.engine.synthesizer] == [own]
        assert [seq for who, seq in read if who is ws.engine.synthesizer] == said
        ws.engine.write_path.refresh()
        assert [seq for who, seq in read if who is ws.engine.synthesizer] == said
        assert ws.state.digest == other.state.digest == ws.rebuild().state_digest


def test_what_a_process_recorded_before_it_was_killed_is_concluded_by_the_next_writer_first(tmp_path):
    """It dies between its line and its conclusions: the fact is in the log, and no mark names it."""
    with Workspace.create(tmp_path / "task") as ws, Workspace.open(tmp_path / "task") as dying:
        ws.say("Hello.")
        dying.engine.write_path.reader = None
        first = dying.say("Never use the word synergy.").seq
        last = ws.say("What is the time?").seq
        (made,) = [event for event in ws.events(first) if event.type == "Concluded" and event.data.changes]
        assert (made.cause, made.seq) == (first, first + 1)
        assert made.seq < last
        assert [item.text for item in ws.memory("constraint")] == ["Never use the word synergy."]
        assert ws.state.digest == ws.rebuild().state_digest


def test_a_fact_whose_sync_failed_leaves_its_number_to_one_that_is_concluded_from(tmp_path, monkeypatch):
    with Workspace.create(tmp_path / "task") as ws:
        ws._keeper.stop()
        ws.say("Hello.")
        sync, failing = os.fdatasync, [True]

        def refused(fd):
            if failing and failing.pop():
                raise OSError(5, "Input/output error")
            sync(fd)

        monkeypatch.setattr(history.os, "fdatasync", refused)
        with pytest.raises(HistoryWriteFailed):
            ws.say("What is the time?")
        ws.say("Never use the word synergy.")
        assert [item.text for item in ws.memory("constraint")] == ["Never use the word synergy."]
        assert ws.state.digest == ws.rebuild().state_digest


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
