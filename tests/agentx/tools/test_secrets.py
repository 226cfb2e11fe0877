"""A secret gets into an artifact only with a person's word, and to a model, the log and the index not at all."""

import os
import subprocess
import time

import pytest

from agentx import Workspace
from agentx.policy.approvals import ApprovalNeeded
from agentx.storage.errors import UsageError
from agentx.storage.events.types import ToolCallExecuted

SECRET = "ghp_" + "a1B2" * 9
ENV = f"DEBUG=1\nGITHUB_TOKEN={SECRET}\n"


def call(ws, tool="write_file", call_id="call-1", **arguments):
    return ws.tools.call(tool, arguments, call_id=call_id)


def everything(root):
    """Every byte that the workspace keeps, but for the artifacts themselves."""
    names = [
        p
        for p in root.rglob("*")
        if p.is_file() and not {"artifacts", ".git"} & set(p.relative_to(root).parts)
    ]
    log = subprocess.run(
        ["git", "-C", str(root), "log", "--format=%B"], capture_output=True, check=True
    ).stdout
    return b"".join(p.read_bytes() for p in names) + log


def test_a_write_that_brings_a_secret_waits_for_a_persons_word(ws):
    asked = call(ws, path=".env", content=ENV)
    assert (asked.status, asked.approval_needed) == ("DENIED", True)
    assert "The write would put a possible secret into .env line 2 (github token)." in asked.output
    assert "agentx approve call-1" in asked.output
    assert not (ws.artifacts / ".env").exists()
    assert SECRET not in asked.output
    assert SECRET.encode() not in everything(ws.root)


def test_once_approved_exactly_that_call_writes_the_secret_itself(ws, lexical):
    call(ws, path=".env", content=ENV)
    ws.approve("call-1")
    ws.close()
    with Workspace.open(ws.root, settings=lexical) as again:
        other = call(again, path="other.txt", content="x")
        assert (other.status, (again.artifacts / ".env").read_text()) == ("SUCCEEDED", ENV)
        assert not (again.artifacts / "other.txt").exists(), "what was approved is what runs"
        assert not list((again.root / ".agentx" / "waiting").iterdir())
        assert call(again, path="b.env", content=ENV, call_id="call-2").approval_needed, (
            "one word is for one call"
        )
        again.flush()
        assert SECRET.encode() not in everything(again.root)


def test_a_refused_call_writes_nothing_and_its_arguments_are_gone(ws):
    call(ws, path=".env", content=ENV)
    ws.approve("call-1", approved=False, reason="use the environment")
    assert not list((ws.root / ".agentx" / "waiting").iterdir()), (
        "they go with the refusal, not with the next call"
    )
    assert "use the environment" in call(ws, path=".env", content=ENV).output
    assert not (ws.artifacts / ".env").exists()
    assert not list((ws.root / ".agentx" / "waiting").iterdir())


def test_arguments_of_calls_that_wait_no_more_are_removed_with_the_next_that_waits(ws):
    """A refusal that came from another machine, or a crash before the call was recorded, leaves them behind."""
    call(ws, path=".env", content=ENV)
    folder = ws.root / ".agentx" / "waiting"
    for name, age_s in (("left-behind", 7_200), ("of-another-process", 10)):
        (folder / name).write_text("x")
        os.utime(folder / name, times=(time.time() - age_s,) * 2)
    call(ws, path="b.env", content=ENV, call_id="call-2")
    kept = {place.name for place in folder.iterdir()}
    assert "left-behind" not in kept
    assert len(kept) == 3


def test_arguments_that_are_not_those_that_were_shown_are_not_run(ws):
    call(ws, path=".env", content=ENV)
    ws.approve("call-1")
    (kept,) = (ws.root / ".agentx" / "waiting").iterdir()
    assert kept.stat().st_mode & 0o077 == 0
    kept.write_text('{"path": "evil.txt", "content": "x"}')
    refused = call(ws)
    assert (refused.status, refused.approval_needed) == ("DENIED", True)
    assert not (ws.artifacts / ".env").exists()
    assert not (ws.artifacts / "evil.txt").exists()


def test_from_python_the_same_is_an_error(ws):
    with pytest.raises(ApprovalNeeded, match="github token"):
        ws.tools.write_file(".env", ENV)


def test_a_setting_lets_secrets_through_or_refuses_them(configured):
    ws = configured('[secrets]\nartifacts = "allow"\n')
    assert call(ws, path=".env", content=ENV).status == "SUCCEEDED"
    ws.close()
    ws = configured('[secrets]\nartifacts = "deny"\n', "another")
    refused = call(ws, path="b.env", content=ENV)
    assert (refused.status, refused.approval_needed) == ("DENIED", False)
    assert "b.env line 2 (github token)" in refused.output
    assert [e.data.status for e in ws.events() if isinstance(e.data, ToolCallExecuted)][-1] == "DENIED"


def test_a_secret_that_a_file_holds_already_asks_nobody(ws):
    (ws.artifacts / ".env").write_text(ENV)
    assert call(ws, "edit_file", path=".env", old="DEBUG=1", new="DEBUG=0").status == "SUCCEEDED"
    assert call(ws, "move_file", path=".env", to="prod.env").status == "SUCCEEDED"
    more = call(ws, "edit_file", path="prod.env", old="DEBUG=0", new="DB_PASSWORD=hunter2hunter2")
    assert "prod.env line 1 (secret)" in more.output
    assert "line 2" not in more.output


def test_what_a_model_reads_of_a_file_is_redacted_and_cannot_take_its_place(ws):
    (ws.artifacts / ".env").write_text(ENV)
    read = call(ws, "read_file", path=".env")
    assert SECRET not in read.output
    assert "GITHUB_TOKEN=[redacted: github token]" in read.output
    back = call(ws, path=".env", content=ENV.replace(SECRET, "[redacted: github token]"))
    assert (back.status, "would replace the secret" in back.output) == ("FAILED", True)
    assert (ws.artifacts / ".env").read_text() == ENV
    with pytest.raises(UsageError, match="edit_file"):
        ws.tools.write_file(".env", "GITHUB_TOKEN=[redacted: github token]\n")


def test_what_a_command_prints_is_the_same_to_the_model_and_in_the_record(configured):
    ws = configured("[tools]\nrun_command = true\n")
    command = f"yes line | head -c 1990; printf 'ghp_a1B2%s\\n' {SECRET[8:]}; yes more | head -c 9000"
    printed = call(ws, "run_command", command=command)
    assert printed.value.exit_code == 0
    assert SECRET[:12] not in printed.output, "a cut does not save half of it"
    event = next(e for e in ws.events() if isinstance(e.data, ToolCallExecuted) and e.data.command)
    kept = ws.read_body(event.data.output)
    assert SECRET not in kept
    assert printed.value.output == kept


def test_what_a_command_writes_is_left_out_where_it_holds_a_secret(configured):
    ws = configured("[tools]\nrun_command = true\n")
    left = call(
        ws, "run_command", command=f"printf 'TOKEN=ghp_a1B2%s' {SECRET[8:]} > .env; echo x > other.txt"
    )
    assert "A possible secret is in .env line 1 (github token)." in left.output
    assert not (ws.artifacts / ".env").exists()


def test_names_and_ids_of_calls_are_redacted_before_they_are_cut(ws):
    ws.tools.call(
        "x" * 40 + " " + SECRET,
        {SECRET: "y" * 400, "z" * 290 + " " + SECRET: 1},
        call_id="i" * 180 + " " + SECRET,
    )
    ws.flush()
    assert SECRET[:10].encode() not in everything(ws.root)


def test_the_index_holds_no_secret_and_every_line_keeps_its_number(ws):
    key = (
        "-----BEGIN PRIVATE KEY-----\n"
        + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 8
        + "-----END PRIVATE KEY-----\n"
    )
    (ws.artifacts / "notes.md").write_text(f"# Keys\n\n{key}\n# Zebra\n\nThe zebra token is {SECRET}.\n")
    ws.status()
    hits = ws.search("zebra")
    assert hits
    assert all(SECRET not in hit.text and "MIIEvQ" not in hit.text for hit in hits)
    assert max(hit.end_line for hit in hits) == 16


def test_what_a_person_brings_is_kept_as_it_is_and_told_once(ws, tmp_path):
    (tmp_path / "mine.env").write_text(ENV)
    ws.add([tmp_path / "mine.env"])
    ws.add([tmp_path / "mine.env"])
    assert (ws.artifacts / "mine.env").read_text() == ENV
    told = [note for note in ws.status().notes if "secret" in note]
    assert told == ["A possible secret is now in Git: mine.env line 2 (github token)."]


def test_a_secret_in_a_file_that_a_person_wrote_is_noted_once(ws):
    (ws.artifacts / ".env").write_text("DB_PASSWORD=x7Kp2mQ9vT\n")
    ws.status()
    (note,) = [note for note in ws.status().notes if "secret" in note]
    assert ".env line 1" in note
    assert "x7Kp2mQ9vT" not in note
