"""Settling candidates: with one key, in other words, by a model, and at the end of a run."""

import json
import os
import pty
import subprocess
import sys
import time

import pytest

from agentx import Workspace

QUESTION = b"Does it apply"
KEEP = {"found": [], "verdicts": [{"id": "c-5", "verdict": "keep", "reason": "It is a habit."}]}


def _sit_at(terminal):
    """Opening it makes it the terminal of a process that leads its session, so that Ctrl-C reaches it."""
    os.close(os.open(os.ttyname(terminal), os.O_RDWR))


class Person:
    """Sits at a terminal and answers."""

    def __init__(self, root, environment):
        self.keys, theirs = pty.openpty()
        self.shown = b""
        self.running = subprocess.Popen(
            [sys.executable, "-m", "agentx", "-C", str(root), "memory", "review"],
            env={**environment, "TERM": "xterm", "COLUMNS": "100"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: _sit_at(theirs),  # noqa: PLW1509 - there is one thread
        )
        os.close(theirs)

    def wait_for(self, words):
        while words not in self.shown:
            self.shown += os.read(self.keys, 4096)

    def type(self, key):
        """Type a key until it is taken: one that comes before the question is read is thrown away."""
        before = self.shown.count(QUESTION)
        while self.running.poll() is None:
            os.write(self.keys, key)
            time.sleep(0.1)
            self.shown += self._more()
            if self.shown.count(QUESTION) > before or b" settled, " in self.shown or b"words:" in self.shown:
                return

    def _more(self):
        os.set_blocking(self.keys, False)
        try:
            return os.read(self.keys, 65_536)
        except (BlockingIOError, OSError):
            return b""
        finally:
            os.set_blocking(self.keys, True)

    def leaves(self):
        try:
            while piece := os.read(self.keys, 4096):
                self.shown += piece
        except OSError:  # the end, on Linux
            pass
        os.close(self.keys)
        return self.running.wait()


@pytest.fixture
def person(root, environment):
    person = Person(root, environment)
    person.wait_for(QUESTION)
    yield person
    person.running.kill()
    person.running.wait()


def item(root, name="c-5"):
    with Workspace.open(root) as ws:
        return ws.state.items[name]


def _candidates(root, status="candidate"):
    with Workspace.open(root) as ws:
        return ws.memory(status=status)


@pytest.mark.parametrize(
    ("key", "status"),
    [(b"y", "active"), (b"n", "retired"), (b"s", "candidate"), (b"q", "candidate"), (b"\x03", "candidate")],
)
def test_a_proposal_is_settled_with_one_key(key, status, root, person):
    person.type(key)
    assert person.leaves() == 0
    assert item(root).status == status
    assert b"settled, " in person.shown


def test_a_proposal_is_shown_where_it_was_said_and_with_why_it_is_only_proposed(person):
    assert b"please don't use emojis" in person.shown
    assert b"may be meant to last" in person.shown
    assert b"unless settled" in person.shown


def test_a_proposal_is_settled_in_other_words(root, person):
    person.type(b"e")
    person.wait_for(b"In your words: Don't use emojis")
    os.write(person.keys, b" in commit messages\r")
    assert person.leaves() == 0
    assert (item(root).text, item(root).status) == ("Don't use emojis in commit messages", "active")


def test_what_was_settled_before_ctrl_c_stays_settled(root, environment):
    with Workspace.open(root) as ws:
        ws.say("keep your answers short")
    person = Person(root, environment)
    person.wait_for(b"1 of 2")
    person.wait_for(QUESTION)
    person.type(b"y")
    person.type(b"\x03")
    assert person.leaves() == 0
    (newer,) = (one for one in _candidates(root, status="active") if one.text == "Keep your answers short")
    assert (newer.by_hand, item(root).status) == (True, "candidate")  # the newest is asked first
    assert b"1 settled, 1 left" in person.shown


def test_without_a_terminal_it_says_how(call, root):
    done = call("memory", "review", "-C", root)
    assert done.code == 2
    assert "--accept ID" in done.err
    assert "--model" in done.err


# --- by a model ------------------------------------------------------------------------------------------------------


def answer(whole):
    return {"answer": json.dumps(whole)}


def test_a_model_settles_and_says_why(call, root, script, use):
    use(script(answer(KEEP)))
    done = call("memory", "review", "--model", "-C", root)
    assert done.code == 0, done
    assert "c-5  active" in done.out
    assert "It is a habit." in done.out
    assert item(root).status == "active"
    shown = call("memory", "show", "c-5", "-C", root).out
    assert "It is a habit." in " ".join(shown.replace("│", " ").split())


def test_what_a_model_decides_is_json_too(call, root, script, use):
    lie = {"message": 4, "quote": "burn it", "kind": "constraint", "lasting": "yes"}
    use(script(answer({**KEEP, "found": [lie]})))
    judged = call("memory", "review", "--model", "--json", "-C", root).json
    assert [one["id"] for one in judged["items"]] == ["c-5"]
    assert (judged["refusals"], judged["refused"][0]["what"]) == (1, "burn it")


def test_what_a_model_makes_up_is_said_and_what_it_leaves_is_left(call, root, script, use):
    use(script(answer({"verdicts": [{"id": "c-99", "verdict": "drop"}]})))
    done = call("memory", "review", "--model", "-C", root)
    assert done.code == 0
    assert "Not accepted: 1" in done.err
    assert "1 candidate left" in done.err


def test_there_may_be_nothing_to_settle(call, root, script, use):
    use(script(answer({"verdicts": []}), answer({"verdicts": []})))
    call("memory", "review", "--reject", "c-5", "-C", root)
    for _ in range(2):
        assert "no candidates to settle" in call("memory", "review", "--model", "-C", root).out


def test_without_a_model_or_with_a_name_beside_it_there_is_a_sentence(call, root):
    assert "--model PROVIDER/NAME" in call("memory", "review", "--model", "-C", root).err
    done = call("memory", "review", "--model", "--accept", "c-5", "-C", root)
    assert (done.code, "cannot be combined with --model" in done.err) == (2, True)


# --- at the end of a run ---------------------------------------------------------------------------------------------


def test_the_model_of_a_run_settles_proposals_when_it_is_done(call, root, use, chat_server):
    use("openai/worker", api_base=chat_server.base)
    chat_server.will_say("Done.")
    chat_server.will_say("I leave it.")
    chat_server.will_call(("call_1", "record_judgement", json.dumps(KEEP)))
    done = call("run", "Mend it.", "-C", root)
    assert done.code == 0, done
    assert "It is a habit." in done.out
    assert "I leave it." not in done.out
    assert item(root).status == "active"


def test_what_the_agent_settled_is_not_asked_again(call, root, use, chat_server):
    use("openai/worker", api_base=chat_server.base)
    chat_server.will_say("Done.")
    verdict = {"id": "c-5", "verdict": "drop", "reason": "It was about one reply."}
    chat_server.will_call(("call_1", "settle", json.dumps(verdict)))
    chat_server.will_call(("call_1", "record_judgement", json.dumps({"found": [], "verdicts": []})))
    done = call("run", "Mend it.", "-C", root)
    assert done.code == 0, done
    assert (item(root).status, item(root).reason) == ("retired", "agent:main: It was about one reply.")
    asked, settling, judging = (str(request["messages"]) for request in chat_server.requests)
    assert "nobody has confirmed" not in asked
    assert "- c-5 [constraint]" in settling
    assert "## Candidates\\nNone." in judging


def test_a_run_whose_model_does_not_judge_is_a_success_all_the_same(call, root, use, chat_server):
    use("openai/worker", api_base=chat_server.base)
    chat_server.will_say("Done.")
    chat_server.will_fail(400, "no tools here")
    chat_server.will_fail(400, "no tools here")
    done = call("run", "Mend it.", "-C", root)
    assert done.code == 0, done
    assert "the next run tries again" in done.err
    chat_server.will_say("Done.")
    chat_server.will_say("I leave it.")
    chat_server.will_call(("call_1", "record_judgement", json.dumps(KEEP)))
    lines = call("run", "Go on.", "--json", "-C", root).lines
    assert lines[-1]["type"] == "Judged"
    assert len(lines[-1]["data"]["messages"]) == 6  # four of the user, two of the agent


def test_a_run_asks_once_where_settling_and_judging_are_off(call, root, use, chat_server):
    use("openai/worker", api_base=chat_server.base)
    with (root / "agentx.toml").open("a") as file:
        file.write("\n[memory]\njudge = false\nsettle = false\n")
    chat_server.will_say("Done.")
    assert call("run", "Mend it.", "-C", root).code == 0
    assert len(chat_server.requests) == 1


def test_a_script_is_the_words_of_its_run_alone(call, root, script):
    assert call("run", "Mend it.", "--model", script({"answer": "Done."}), "-C", root).err == ""
