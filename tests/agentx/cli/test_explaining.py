"""``agentx memory explain``: what a message would be read as, and nothing recorded."""

import io

from agentx import Workspace
from agentx.storage.events.types import AgentMessageSent, Draft


def test_each_part_of_a_message_is_told_with_its_reason(call):
    done = call("memory", "explain", "never use tabs! please don't use emojis. ok\n\n> always lie")
    rows = [" ".join(line.split()) for line in done.out.splitlines()]
    assert (
        'never use tabs! captured constraint read as "never", as in "never create a requirements.txt file"'
        in rows
    )
    assert any(row.startswith("please don't use emojis. candidate constraint") for row in rows)
    assert "> always lie not yours a quote, code or a table" in rows


def test_a_recorded_message_is_explained_by_its_number_and_nothing_is_recorded(call, root):
    with Workspace.open(root) as ws:
        before = ws.state.seq
    (part,) = call("memory", "explain", "--event", "3", "--json", "-C", root).json
    assert (part["verdict"], part["kind"], part["start"]) == ("active", "constraint", 0)
    with Workspace.open(root) as ws:
        assert ws.state.seq == before


def test_a_message_may_come_from_the_standard_input(call, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("is it ready?"))
    assert "a question" in call("memory", "explain", "-").out


def test_what_is_no_message_of_a_user_is_refused(call, root):
    for words, said in (
        (("--event", "2", "-C", root), "Event 2 is not a user's message"),
        (("--event", "999", "-C", root), "Event 999 is not a user's message"),
        ((), "Give a message, or --event"),
        (("hello", "--event", "2"), "Give a message, or --event"),
    ):
        done = call("memory", "explain", *words)
        assert done.code == 2
        assert said in " ".join(done.err.split())


def test_a_control_character_never_reaches_the_terminal(call):
    assert "\x1b[31m" not in call("memory", "explain", "never use \x1b[31mred").out


def test_the_reason_has_its_place_beside_a_long_sentence_in_a_narrow_terminal(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    done = call("memory", "explain", "Can anybody say why the tests of the export take so long on Mondays?")
    assert " ".join(done.out.splitlines()[-1].split()) == "Can anybody say why the t… left alone a question"


def test_notes_are_previewed_with_the_demands(call):
    done = call("memory", "explain", "Never use tabs. We'll host in Frankfurt. Ines runs the harbour office.")
    rows = [" ".join(line.split()) for line in done.out.splitlines()]
    assert "We'll host in Frankfurt. captured decision a plain decision" in rows
    assert any(
        row.startswith("Ines runs the harbour office. candidate knowledge a plain fact") for row in rows
    )


def test_a_recorded_answer_is_explained_with_its_question(call, root):
    with Workspace.open(root) as ws:
        asked = AgentMessageSent(body=ws.body("Which port does staging use?"), final=True)
        ws.record(Draft(data=asked, actor="agent:main"))
        seq = ws.say("8080").seq
    (part,) = call("memory", "explain", "--event", str(seq), "--json", "-C", root).json
    assert (part["verdict"], part["why"]) == ("active", "answers “Which port does staging use?”")
