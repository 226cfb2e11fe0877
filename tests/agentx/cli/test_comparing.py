"""``agentx diff``, ``bisect`` and the options that take a moment: what is said of them, and what is refused."""

import re

import pytest

from agentx import Workspace


def lines(text):
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def test_diff_is_a_picture_of_files_and_memory(call, root):
    with Workspace.open(root) as ws:
        ws.tools.move_file("outlook.md", "docs/outlook.md")
        (ws.artifacts / "logo.png").write_bytes(b"\0" * 1200)
        ws.retire("c-3")
        ws.edit_memory("c-5", "Don't use emojis anywhere.")
    shown = lines(call("diff", "4", "-C", root).out)
    assert re.fullmatch(r"event 4 → \d+ 20\d\d-\d\d-\d\d [\d:]+ to 20\d\d-\d\d-\d\d [\d:]+ \+1 −1", shown[0])
    assert shown[1:] == [
        "artifacts lines",
        "→ outlook.md → docs/outlook.md +1 −1 +−",
        "+ logo.png binary, 0 → 1,200 bytes",
        "memory kind what",
        "－ c-3 constraint From now on, never create a requirements.txt file. retired",
        "+ c-5 constraint Don't use emojis anywhere. candidate",
    ]


def test_diff_shows_what_was_and_what_is(call, root):
    with Workspace.open(root) as ws:
        then = ws.state.seq
        ws.edit_memory("c-3", "Never create a setup.py file.")
    shown = lines(call("diff", then, "-C", root).out)
    assert shown[-1] == (
        "text: From now on, never create a requirements.txt file. → Never create a setup.py file."
    )
    assert "No difference between event 3 and event 3." in call("diff", "3", "3", "-C", root).out


def test_diff_with_patch_shows_the_lines(call, root):
    out = call("diff", "2", "--patch", "-C", root).out
    assert "--- a/outlook.md\n+++ b/outlook.md\n@@" in out
    assert "-Revenue grows.\n+Revenue shrinks.\n" in out
    assert "-Revenue" not in call("diff", "2", "-C", root).out
    (file,) = call("diff", "2", "--json", "-C", root).json["files"]
    assert (file["added"], file["removed"]) == (1, 1)
    assert "+Revenue shrinks." in file["patch"]


def test_diff_puts_what_lies_there_on_record_first(call, root):
    (root / "artifacts" / "new.md").write_text("by hand\n")
    assert "new.md" in call("diff", "-C", root).out


def test_bisect_is_a_tree_up_to_what_the_user_said(call, root):
    call("memory", "retire", "c-3", "-C", root)
    done = call("bisect", "--item", "c-3", "--all", "-C", root)
    shown = lines(done.out)
    assert shown[:2] == ["c-3 constraint · retired", "From now on, never create a requirements.txt file."]
    assert "made by event 4" in shown[2]
    assert "because event 3" in shown[3]
    assert "said “From now on, never create a requirements.txt file.”" in shown[3]
    assert "changed by event" in shown[4]
    assert shown[5] == "status: active → retired"
    done = call("bisect", "--item", "c-3", "-C", root)
    assert "made by" not in done.out
    assert "The last of 2 changes" in done.err


def test_bisect_of_a_file_names_the_event_and_its_commit(call, root):
    with Workspace.open(root) as ws:
        commit = next(info for info in ws.engine.git.repo.log() if info.subject == "Edit outlook.md")
    out = call("bisect", "--path", "outlook.md", "-C", root).out
    assert "Edit outlook.md" in out
    assert commit.id[:7] in out
    assert call("bisect", "--path", "outlook.md", "--all", "--json", "-C", root).json["changes"] == 2


@pytest.mark.parametrize(
    "words",
    [
        ("diff", "nonsense"),
        ("diff", "3", "2"),
        ("bisect",),
        ("bisect", "--item", "c-3", "--path", "outlook.md"),
        ("bisect", "--path", "never.md"),
        ("context", "--as-of", "yesterday"),
        ("search", "x", "--as-of", "2001-01-01"),
        ("memory", "list", "--as-of", "999"),
        ("memory", "show", "c-3", "--as-of", "1"),
        ("restore", "outlook.md", "--at", "abc"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(call, root, words):
    done = call(*words, "-C", root)
    assert done.code in (1, 2)
    assert re.fullmatch(r"agentx: [^\n]+\n", done.err)


def test_a_moment_is_taken_by_every_option_in_every_form(call, root):
    with Workspace.open(root) as ws:
        first = next(info.id for info in ws.engine.git.repo.log() if info.subject == "Create outlook.md")
        ws.retire("c-3")
    assert "c-3" not in call("memory", "list", "-C", root).out
    assert "c-3" in call("memory", "list", "--as-of", "4", "-C", root).out
    assert "active" in call("memory", "show", "c-3", "--as-of", "4", "-C", root).out
    assert "grows" in call("search", "revenue", "--as-of", first[:8], "-C", root).out
    assert "grows" in call("context", "revenue", "--as-of", "2", "--no-deadline", "-C", root).out
    assert call("restore", "outlook.md", "--at", first, "-C", root).code == 0
    assert "grows" in (root / "artifacts" / "outlook.md").read_text()


def test_a_context_that_was_shown_is_said_to_be_that(call, root, script):
    call("run", "What is in it?", "--model", script({"answer": "An outlook."}), "-C", root)
    with Workspace.open(root) as ws:
        (shown,) = [event for event in ws.events() if event.type == "ContextProvided"]
    done = call("context", "--as-of", shown.seq, "-C", root)
    assert f"As an agent was shown it in event {shown.seq}, to the byte." in done.err
    assert call("context", "--as-of", shown.seq, "--json", "-C", root).json["exact"] is True


def test_a_restore_tells_of_every_file_where_a_directory_takes_the_place_of_a_file(call, root):
    with Workspace.open(root) as ws:
        ws.tools.write_file("notes/one.md", "1")
        then = ws.state.seq
        ws.tools.delete_file("notes")
        ws.tools.write_file("notes", "a file")
    out = call("restore", ".", "--at", then, "-C", root).out
    assert "removed  notes\n" in out
    assert "brought back  notes/one.md" in out
