"""A director that fails: the last directive serves with the user's newer words, and the failure is said."""

import io
import json
import sys
from datetime import UTC, datetime, timedelta

import pytest

from agentx import Workspace
from agentx.cli.main import main
from agentx.scheduling.schedules import carry_out_due

WRITTEN = {
    "analysis_summary": "Nothing ran.",
    "strategy": "Mail.",
    "executor_system_prompt": "Mail ann the news of today.",
    "reuse_policy": {"valid_for_runs": 9},
}
DOWN = "! The director failed ("
SERVES = "): the last directive serves, with your newer words."


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    """Call the command line in this process, in a workspace whose director answers once and then never."""
    root, seen = tmp_path / "desk", tmp_path / "seen"
    turns = tmp_path / "turns.jsonl"
    turns.write_text(json.dumps({"answer": json.dumps(WRITTEN)}) + "\n", "utf-8")
    monkeypatch.setattr("sys.stdin", io.StringIO())

    def call(*words):
        code = main(["-C", str(root), *map(str, words)])
        return code, *capsys.readouterr()

    Workspace.create(root, title="Desk").close()
    keep = f"import sys; open({str(seen)!r}, 'w').write(sys.stdin.read()); print('Sent.')"
    call("config", "set", "director.model", f"script:{turns}")
    call("config", "set", "director.executor", json.dumps([sys.executable, "-c", keep]))
    call("say", "Mail ann the news of each day.")
    call.seen, call.root = seen, root
    return call


def _is_down(call):
    turns = call.seen.with_name("turns.jsonl")
    turns.write_text('{"answer": "no"}\n{"answer": "no"}\n' * 9, "utf-8")


@pytest.mark.parametrize(
    "words",
    [
        ["Mail bob from now on."],
        ["Mail bob from now on.", "Thanks!", "And in French, please."],
        ["Stop mailing anybody until {{run_number}} is 7."],
        ["Ab jetzt an Bob statt an Ann."],
        ["从现在起发给鲍勃"],
        ["Mail bob.\n\n- Also carl\n- not ann"],
        ["Is ann on holiday? Then mail bob."],
        ["bob, not ann"],
    ],
)
def test_words_newer_than_the_directive_reach_the_executor_and_the_failure_is_said(call, words):
    assert call("agent", "direct", "--run")[0] == 0
    assert "bob" not in call.seen.read_text()
    _is_down(call)
    for one in words:
        call("say", one)
    code, _, err = call("agent", "direct", "--run")
    assert code == 0
    assert DOWN in err
    assert SERVES in err
    told = call.seen.read_text("utf-8")
    assert "Mail ann the news of today." in told
    for one in words:
        assert (" ".join(one.split()) in told) == (one != "Thanks!")
    last = told.index("Mail ann the news of today.")
    assert all(told.rindex(" ".join(one.split())) > last for one in words if one != "Thanks!")


def test_they_reach_each_run_until_a_director_has_read_them(call):
    call("agent", "direct", "--run")
    _is_down(call)
    call("say", "Mail bob from now on.")
    for _ in range(2):
        assert SERVES in call("agent", "direct", "--run")[2]
        assert call.seen.read_text().count("Mail bob from now on.") == 1


def test_json_and_a_directive_that_is_asked_for_say_it_too(call):
    call("agent", "direct", "--run")
    _is_down(call)
    call("say", "Mail bob from now on.")
    _, out, err = call("agent", "direct", "--run", "--json")
    assert json.loads(out)["failed"] == err.removeprefix("! ").strip()
    assert SERVES in call("agent", "direct", "--now")[2]


def test_a_scheduled_run_says_it(call):
    call("schedule", "add", "0 7 * * *", "Mail ann the news.", "--id", "news", "--directed")
    with Workspace.open(call.root) as ws:
        tomorrow = datetime.now(tz=UTC) + timedelta(days=1)
        [first] = carry_out_due(ws, tomorrow)
        _is_down(call)
        ws.say("Mail bob from now on.")
        [then] = carry_out_due(ws, tomorrow + timedelta(days=1))
    assert (first.noted, SERVES in then.noted) == ("", True)
    assert "Mail bob from now on." in call.seen.read_text()
