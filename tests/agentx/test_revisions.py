"""Undo and restore see what a crash made of a write."""

from agentx import Workspace
from agentx.storage.events import Draft, WriteReverted


def test_a_write_that_was_cut_off_is_neither_undone_nor_restored(tmp_path):
    with Workspace.create(tmp_path / "task") as ws:
        ws.tools.write_file("a.md", "first\n")
        ws.tools.write_file("b.md", "kept\n")
        cut_off = ws.tools.write_file("a.md", "second\n").seq
        # As the recovery after a crash leaves it: the announced write is not on the disk.
        ws.engine.write_path.record(
            [Draft(data=WriteReverted(event=cut_off, path="a.md", reason="lost"), actor="engine:recovery")]
        )
        ws.restore("a.md", at=ws.state.seq)
        assert (ws.artifacts / "a.md").read_text() == "first\n"
        ws.undo()  # the restore itself
        undone = ws.undo()
        assert [made.path for made in undone.data.changes] == ["b.md"]
