"""The quiet thread: commits after idleness, lets a person's Git in, and hears what others write."""

import logging
import subprocess
import threading
import time

from agentx import Workspace


def git(ws, *arguments):
    done = subprocess.run(
        ["git", "-c", "user.name=P", "-c", "user.email=p@example.org", *arguments],
        cwd=ws.root,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip()


def until(condition, limit_s=30.0):
    """Wait until something holds; a test that waits in vain fails by its own assertion."""
    end = time.monotonic() + limit_s
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def test_what_was_said_is_committed_after_a_moment_of_idleness_and_git_status_is_clean(ws):
    ws.say("Always write in British English.")
    assert (ws.root / ".git" / "index.lock").exists()
    assert until(lambda: not (ws.root / ".git" / "index.lock").exists())
    assert git(ws, "status", "--short") == ""
    assert "British English" in git(ws, "log", "-1", "--format=%B")
    (ws.artifacts / "mine.txt").write_text("by hand")
    assert git(ws, "status", "--short", "-uall") == "?? artifacts/mine.txt"
    git(ws, "add", "-A")
    git(ws, "commit", "-qm", "by hand")
    assert git(ws, "log", "-1", "--format=%s") == "by hand"
    assert ws.status().files == 1
    ws.flush()
    assert git(ws, "status", "--short") == ""


def test_git_stash_between_two_writes_loses_nothing(ws):
    ws.tools.write_file("a.txt", "agent\n")
    ws.flush()
    (ws.artifacts / "a.txt").write_text("person\n")
    git(ws, "stash")
    assert (ws.artifacts / "a.txt").read_text() == "agent\n"
    ws.status()
    held = [event for event in ws.events() if event.type == "ArtifactChanged"]
    assert held
    ws.flush()
    git(ws, "stash", "pop")
    ws.status()
    assert (ws.artifacts / "a.txt").read_text() == "person\n"
    assert ws.rebuild().state_digest == ws.state.digest


def test_events_of_others_are_heard_without_being_asked_for(ws, elsewhere):
    heard = []
    ws.on("UserMessageSent", lambda event: heard.append(event.data.body.text))
    elsewhere(ws, "ws.say('Hello from elsewhere.')")
    assert until(lambda: heard == ["Hello from elsewhere."])


def test_a_watched_workspace_records_an_edit_a_moment_after_it_was_made(ws):
    with ws.watching():
        (ws.artifacts / "mine.txt").write_text("by hand")
        assert until(lambda: "ArtifactChanged" in [event.type for event in ws.events()])
    assert ws.tools.read_file("mine.txt").text == "by hand"


def test_closing_leaves_no_thread_no_lock_and_nothing_pending(tmp_path, lexical):
    before = set(threading.enumerate())
    ws = Workspace.create(tmp_path / "t", settings=lexical)
    ws.say("Hello.")
    ws.search("hello")
    ws.close()
    assert not ws._keeper._thread.is_alive()
    assert not [thread for thread in set(threading.enumerate()) - before if thread.name.startswith("agentx")]
    assert not (ws.root / ".git" / "index.lock").exists()
    assert git(ws, "status", "--short") == ""


def test_a_workspace_that_vanishes_is_a_warning_and_not_an_end(ws, caplog):
    (ws.root / "history.jsonl").rename(ws.root / "away")
    assert until(lambda: "will be retried" in caplog.text)
    (ws.root / "away").rename(ws.root / "history.jsonl")
    ws.say("Still here.")
    assert ws.state.messages[-1].text == "Still here."


def test_what_watches_the_files_says_nothing_of_its_own_while_it_is_stopped(ws, capfd, caplog):
    with ws.watching():
        logging.getLogger("watchdog.observers.inotify").error("called when the thread is inactive")
    assert (capfd.readouterr().err, caplog.messages) == ("", [])
