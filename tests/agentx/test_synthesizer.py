"""What a failing disk kept from being concluded is concluded by the next fact."""

from agentx import Workspace
from agentx.storage.history import HistoryWriteFailed


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
