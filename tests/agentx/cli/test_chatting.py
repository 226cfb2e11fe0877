"""A conversation on the command line: in a pipe, as JSON, and on a terminal, which is a real one."""

import contextlib
import fcntl
import io
import json
import os
import pty
import subprocess
import sys
import termios
import threading
import time
from contextlib import contextmanager

import pytest

from agentx import Workspace
from agentx.storage.events.types import AgentMessageSent, RunStarted

TOLD = "My sister Anna is a nurse in Lisbon."
ASKED = "Where does Anna work as a nurse?"
REPLY = {"input_type": "question", "memories": [], "topic": ""}


@pytest.fixture
def piped(call, root, monkeypatch):
    """Talk through a pipe."""

    def piped(*lines, options=()):
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        return call("chat", "-C", root, *options)

    return piped


def test_each_line_of_a_pipe_is_a_message_and_a_dim_line_follows_its_answer(piped):
    done = piped(TOLD, "", ASKED)
    assert done.code == 0
    answers = [line for line in done.out.splitlines() if line]
    assert answers[0] == "Noted."
    assert answers[1] == "2 new, 2 memories at hand"
    assert "Anna is a nurse in Lisbon" in answers[2]
    assert answers[3].startswith("1 of ")
    assert len(answers) == 4


def test_in_json_each_answer_is_one_object(piped):
    told, asked, why, memory = piped(TOLD, ASKED, "/why", "/memory", options=["--json"]).lines
    assert {told["type"], asked["type"]} == {"Answered"}
    assert (told["data"]["answer"], told["data"]["input_type"]) == ("Noted.", "statement")
    assert asked["data"]["interaction"] == 2
    assert asked["data"]["used"] == [one["id"] for one in why["data"]]
    assert asked["data"]["calls"] == 0
    assert [one["text"] for one in why["data"]] == [TOLD]
    assert [one["text"] for one in memory["data"]] == [TOLD]
    assert all(one["at"] and one["at_hand"] for one in memory["data"])


def test_commands_show_what_is_remembered_with_dates_and_what_an_answer_used(piped, root):
    done = piped("/why", "/memory", TOLD, ASKED, "/why", "/memory", "/help", "/etc/hosts is a file of mine")
    assert "Nothing was asked yet." in done.out
    assert "Nothing is remembered yet." in done.out
    with Workspace.open(root) as ws:
        [item] = [one for one in ws.memory("knowledge") if one.text == TOLD]
        assert "/etc/hosts is a file of mine" in {one.text for one in ws.memory("knowledge")}
    row = f"{item.created_at[:10]}  {item.id}"
    assert done.out.count(row) == 2
    assert "which memories the last answer used" in done.out


def test_a_session_goes_on_where_it_was_left_and_others_have_a_buffer_of_their_own(piped, root):
    piped(TOLD, options=["--session", "diary"])
    piped(ASKED, options=["--session", "diary"])
    piped(ASKED, options=["--session", "other"])
    with Workspace.open(root) as ws:
        assert {name: mind.interactions for name, mind in ws.state.minds.items()} == {"diary": 2, "other": 1}
    assert piped(TOLD, options=["--session", ""]).code == 2


def test_what_is_said_is_no_task_and_no_run(piped, call, root):
    before = call("status", "--json", "-C", root).json
    call("say", "Please write the report for March.", "-C", root)
    call("say", "Revenue matters.", "-C", root)
    [asked] = call("memory", "list", "--kind", "task", "-C", root, "--json").json
    piped(TOLD, "I will paint the kitchen tomorrow.", "Please remind me to buy milk.", ASKED)
    done = call("run", "--agent", "cognitive", "The rent was raised to 1600.", "-C", root)
    assert (done.code, done.out.splitlines()[0]) == (0, "Noted.")
    with Workspace.open(root) as ws:
        assert [task.id for task in ws.memory("task", status=None)] == [asked["id"]]
        assert ws.memory("task")[0].text == "Write the report for March.", "a talk does no work"
        assert ws.memory("agent_state") == []
        assert RunStarted.__name__ not in ws.state.counts
        assert ws.state.last_run is None
    assert call("status", "--json", "-C", root).json["last_run"] == before["last_run"]
    assert call("schedule", "heartbeat", "-C", root, "--json").json["status"] == "HEARTBEAT_OK"


def test_what_left_the_buffer_and_what_came_back_is_said_after_the_answer(piped, root, trusted):
    with (root / "agentx.toml").open("a") as file:
        file.write("\n[cognition]\nbuffer_tokens = 120\n")
    trusted(root)
    lamps = [f"Lamp number {number} stands in the cellar of house {number}." for number in range(5)]
    done = piped(TOLD, *lamps, ASKED)
    assert "left: “" in done.out
    assert "came back: “" in done.out
    data = piped(*lamps, ASKED, options=["--json"]).lines[-1]["data"]
    assert data["left"]


def test_a_model_that_fails_is_told_and_costs_are_in_the_audit(piped, call, root, chat_server, use):
    use("openai/m", api_base=chat_server.base)
    chat_server.rule = lambda body: json.dumps({"answer": "In Lisbon.", **REPLY})
    done = piped(ASKED, options=["--json"]).lines[0]["data"]
    assert (done["answer"], done["calls"], done["usage"]["prompt_tokens"]) == ("In Lisbon.", 1, 11)
    chat_server.rule = None
    chat_server.will_fail(400, "no such thing")
    told = piped(TOLD)
    assert told.code == 0
    assert told.out.startswith("The model did not answer; the message was noted only.")
    assert "no such thing" in told.err
    chat_server.will_fail(400, "no such thing")
    assert call("run", "--agent", "cognitive", TOLD, "-C", root).code == 1
    [cost] = call("schedule", "audit", "-C", root, "--json").json["costs"]
    assert (cost["component"], cost["calls"], cost["prompt_tokens"]) == ("agent cognitive", 3, 11)


@contextmanager
def terminal(root, environment):
    """A chat on a terminal of its own: what is typed, and what is to be seen."""
    parent, child = pty.openpty()
    chat = subprocess.Popen(
        [sys.executable, "-m", "agentx", "chat", "-C", str(root)],
        stdin=child,
        stdout=child,
        stderr=child,
        env={**environment, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - Ctrl-C is a signal only there
    )
    os.close(child)
    shown = Screen(parent, chat)
    try:
        yield shown
    finally:
        chat.kill()
        chat.wait()
        os.close(parent)


class Screen:
    def __init__(self, parent, chat):
        self.parent, self.chat, self.text = parent, chat, ""
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        with contextlib.suppress(OSError):
            while data := os.read(self.parent, 4_096):
                self.text += data.decode(errors="replace")

    def type(self, text):
        os.write(self.parent, text.encode())

    def await_text(self, words, after=0):
        """Wait for words, and return the place behind them."""
        until = time.monotonic() + 60
        while (at := self.text.find(words, after)) < 0:
            assert time.monotonic() < until, self.text
            assert self.chat.poll() is None or words in self.text, self.text
            time.sleep(0.02)
        return at + len(words)


def test_on_a_terminal_an_answer_streams_ctrl_c_stops_it_alone_and_ctrl_d_ends(
    root, environment, chat_server, use
):
    use("openai/m", api_base=chat_server.base)
    chat_server.will_hang({"role": "assistant", "content": '{"answer": "Anna works in '}, {"content": "Lis"})
    with terminal(root, environment) as screen:
        at = screen.await_text("> ", screen.await_text("session main: new"))
        screen.type(f"{ASKED}\n")
        at = screen.await_text("Anna works in Lis", at)
        screen.type("\x03")
        at = screen.await_text("> ", screen.await_text("Stopped.", at))
        screen.type("half a line")
        at = screen.await_text("half a line", at)
        screen.type("\x03")
        at = screen.await_text("> ", at)
        raw = json.dumps({"answer": "She works in Lisbon.", **REPLY})
        chat_server.will_stream(
            *({"content": letter} for letter in raw), {"finish": "stop"}, {"usage": [11, 7]}
        )
        screen.type(f"{ASKED}\n")
        at = screen.await_text("She works in Lisbon.", at)
        at = screen.await_text("> ", screen.await_text("memories at hand were used", at))
        screen.type("/nonsense\n")
        at = screen.await_text("> ", screen.await_text("is not a command", at))
        screen.type("\x04")
        assert screen.chat.wait(60) == 0
    with Workspace.open(root) as ws:
        assert ws.state.minds["main"].interactions == 2
        said = [
            e.data.body.text for e in ws.engine.log.history.read(0) if isinstance(e.data, AgentMessageSent)
        ]
        assert said == ["Anna works in Lis", "She works in Lisbon."]


def test_two_chats_in_one_session_follow_each_other(root, program, environment):
    env = {**environment, "COLUMNS": "100"}
    started = [
        subprocess.Popen(
            [program, "chat", "--json", "-C", str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=env,
        )
        for _ in range(2)
    ]
    lines = [f"Lamp number {number} stands in the cellar.\n" for number in range(6)]
    for number, chat in enumerate(started):
        chat.stdin.write("".join(lines[number::2]).encode())
        chat.stdin.close()
    answers = []
    for chat in started:
        with chat.stdout as out:
            answers += [json.loads(line)["data"] for line in out.read().splitlines()]
    assert [chat.wait(60) for chat in started] == [0, 0]
    assert sorted(one["interaction"] for one in answers) == [1, 2, 3, 4, 5, 6]
    with Workspace.open(root) as ws:
        assert ws.state.minds["main"].interactions == 6
        assert ws.state_at(ws.state.seq).minds == ws.state.minds
