"""Active rules are exported between markers; what a person edits there comes back as proposals."""

import subprocess

import pytest

from agentx import Workspace
from agentx.storage.errors import UsageError

MINE = "# My project\r\n\r\nHand-written.  \r\n\xa0\n"


@pytest.fixture
def agents_md(ws):
    ws.say("Never use tabs.")
    ws.say("Never push to main.")
    ws.remember("rule", "Run the smoke tests before each deploy.")
    path = ws.artifacts / "AGENTS.md"
    path.write_bytes(MINE.encode())
    assert ws.export_rules("agents-md").written
    return path


def texts(items):
    return [item.text for item in items]


def edit(path, before, after):
    text = path.read_bytes().decode()
    assert before in text
    path.write_bytes(text.replace(before, after).encode())


def test_an_export_keeps_what_was_there_and_a_second_one_changes_nothing(ws, agents_md):
    text = agents_md.read_bytes()
    assert text.startswith(MINE.encode())
    assert b"- Never use tabs.\r\n- Never push to main.\r\n- Run the smoke tests" in text
    before = ws.state.seq
    assert not ws.export_rules("agents-md").written
    assert (agents_md.read_bytes(), ws.state.seq) == (text, before)


def test_a_change_of_memory_makes_a_file_stale_and_check_changes_nothing(ws, agents_md):
    assert not ws.export_rules("agents-md", check=True).written
    ws.say("Never use globals.")
    text, before = agents_md.read_bytes(), ws.state.seq
    assert ws.export_rules("agents-md", check=True).written
    assert (agents_md.read_bytes(), ws.state.seq) == (text, before)


def test_edits_between_the_markers_become_proposals_and_apply_only_if_accepted(ws, agents_md):
    edit(agents_md, "- Never use tabs.", "- Never use tabs or form feeds.\r\n- Always ask first.")
    edit(agents_md, "- Run the smoke tests before each deploy.\r\n", "")
    before = texts(ws.memory())
    done = ws.export_rules("agents-md")
    added, reworded, removed = done.proposals
    assert (added.text, added.status, added.trust) == ("Always ask first.", "candidate", "material")
    assert (reworded.text, reworded.links[-1].relation) == ("Never use tabs or form feeds.", "would_reword")
    assert (removed.text, removed.links[-1].relation) == (
        "Run the smoke tests before each deploy.",
        "would_end",
    )
    assert texts(ws.memory()) == before
    assert b"form feeds" not in agents_md.read_bytes()  # what nobody accepted is no rule
    assert not ws.export_rules("agents-md").proposals
    for item in done.proposals:
        ws.review(item.id, accept=True)
    ws.export_rules("agents-md")
    assert (
        b"- Never use tabs or form feeds.\r\n- Never push to main.\r\n- Always ask first.\r\n<!--"
        in agents_md.read_bytes()
    )


def test_an_earlier_version_of_the_block_is_no_edit(ws, agents_md):
    old = agents_md.read_bytes()
    ws.say("Never use globals.")
    ws.export_rules("agents-md")
    agents_md.write_bytes(old)  # as a `git switch` does
    assert ws.export_rules("agents-md").proposals == ()
    assert b"globals" in agents_md.read_bytes()


def test_a_line_of_unknown_origin_is_proposed_and_nothing_is_ended(ws, agents_md):
    edit(agents_md, "- Never use tabs.", "- Always ask first.")
    text = agents_md.read_bytes().decode()
    mark = text[text.index("agentx:rules ") + 13 :][:16]
    agents_md.write_bytes(text.replace(mark, "0" * 16).encode())
    assert texts(ws.export_rules("agents-md").proposals) == ["Always ask first."]


def test_broken_markers_stop_an_export_before_it_writes(ws, agents_md):
    edit(agents_md, "<!-- agentx:end -->", "")
    text = agents_md.read_bytes()
    with pytest.raises(UsageError, match="do not match"):
        ws.export_rules("agents-md")
    assert agents_md.read_bytes() == text


def test_rules_that_the_file_states_itself_are_not_repeated(ws):
    path = ws.artifacts / "CLAUDE.md"
    path.write_text("- Never use tabs.\n")
    (item,) = ws.import_rules(path).proposals
    ws.review(item.id, accept=True)
    ws.say("Never push to main.")
    assert ws.export_rules("claude-md").rules == 1
    assert path.read_text().count("Never use tabs.") == 1
    assert ws.import_rules(path).proposals == ()


def test_a_cursor_rule_begins_with_its_front_matter(ws):
    ws.say("Never use tabs.")
    ws.export_rules("cursor-rules")
    lines = (ws.artifacts / ".cursor/rules/agentx.mdc").read_text().splitlines()
    assert lines[:4] == ["---", "description: Rules of this project", "alwaysApply: true", "---"]


def test_a_link_stays_a_link(ws, agents_md):
    (ws.artifacts / "CLAUDE.md").symlink_to("AGENTS.md")
    ws.say("Never use globals.")
    assert ws.export_rules("claude-md").path == "AGENTS.md"
    assert (ws.artifacts / "CLAUDE.md").is_symlink()
    assert b"globals" in agents_md.read_bytes()


def test_a_file_outside_the_artifacts_is_written_too(ws, tmp_path):
    ws.say("Never use tabs.")
    assert ws.export_rules("agents-md", tmp_path / "AGENTS.md").written
    assert not ws.export_rules("agents-md", tmp_path / "AGENTS.md").written
    edit(tmp_path / "AGENTS.md", "- Never use tabs.", "- Never use tabs at all, please.")
    assert texts(ws.export_rules("agents-md", tmp_path / "AGENTS.md").proposals) == [
        "Never use tabs at all, please."
    ]


def test_undo_passes_over_an_export(ws, agents_md):
    ws.tools.write_file("a.md", "one\n")
    ws.say("Never use globals.")
    ws.export_rules("agents-md")
    ws.undo()
    assert not (ws.artifacts / "a.md").exists()
    assert b"globals" in agents_md.read_bytes()


# --- files that are kept up to date -------------------------------------------------------------------------

KEEP = '\n[export]\nkeep = ["AGENTS.md"]\n'


def test_a_kept_file_follows_memory_and_edits_come_back_by_themselves(configured):
    ws = configured(KEEP)
    path = ws.artifacts / "AGENTS.md"
    said = ws.say("Never use tabs.")
    assert "- Never use tabs." in path.read_text()
    edit(path, "- Never use tabs.", "- Never use tabs.\n- Always ask first.")
    ws.status()  # records the edit
    (item,) = ws.memory(status="candidate")
    assert item.text == "Always ask first."
    assert any("AGENTS.md was edited" in note for note in ws.engine.write_path.notes)
    ws.review(item.id, accept=True)
    assert "- Always ask first." in path.read_text()
    ws.retire(f"c-{said.seq}")
    assert "Never use tabs" not in path.read_text()
    assert ws.rebuild().state_digest == ws.state.digest


def test_what_another_process_concludes_is_exported_once(configured, elsewhere):
    ws = configured(KEEP)
    elsewhere(ws, "ws.say('Never use tabs.')")
    ws.engine.write_path.refresh()
    assert "- Never use tabs." in (ws.artifacts / "AGENTS.md").read_text()
    assert [event.type for event in ws.events()].count("RulesExported") == 1


def test_broken_markers_are_noted_and_stop_no_work(configured):
    ws = configured(KEEP)
    (ws.artifacts / "AGENTS.md").write_text("<!-- agentx:end -->\n")
    ws.say("Never use tabs.")
    assert ws.memory("constraint")
    assert any("not up to date" in note for note in ws.engine.write_path.notes)
    assert (ws.artifacts / "AGENTS.md").read_text() == "<!-- agentx:end -->\n"


def test_a_restricted_workspace_keeps_no_file(configured, lexical):
    ws = configured(KEEP)
    clone = ws.root.with_name("clone")
    ws.flush()
    subprocess.run(["git", "clone", "-q", ws.root, clone], check=True)
    with Workspace.open(clone, settings=lexical) as copy:
        assert copy.restricted
        copy.say("Never use tabs.")
        assert not (copy.artifacts / "AGENTS.md").exists()
