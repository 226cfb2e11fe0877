"""What a framework gives to keep comes back exactly, and is told as facts once, by whichever process."""

import asyncio
import json
import threading
import time

import pytest

from agentx import Workspace
from agentx.orchestrators.kept_conversation import KeptConversation, KeptItemInvalid, in_thread
from agentx.storage.errors import UsageError


def user(text):
    return {"role": "user", "content": text}


def answer(text):
    return {"role": "assistant", "content": text}


def call(name, arguments, call_id="c1"):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "tool_calls": [{"id": call_id, "type": "function", "function": function}]}


def result(text, call_id="c1"):
    return {"role": "tool", "tool_call_id": call_id, "content": text}


TURN = [user("Never use tabs."), call("look", {"path": "a"}), result("nothing"), answer("Understood.")]


@pytest.fixture
def talk(ws):
    return KeptConversation(ws, "main", agent="bot")


def told(ws, *types):
    wanted = types or ("UserMessageSent", "AgentMessageSent", "ToolCallRequested", "ToolCallExecuted")
    return [event for event in ws.events() if event.type in wanted]


def said(ws):
    return [ws.read_body(event.data.body) for event in told(ws, "UserMessageSent")]


def test_items_come_back_as_they_were_given(ws, talk):
    items = [*TURN, {"type": "odd", "number": 1.5, "nested": {"list": [None, True, "ä\n"]}}]
    talk.append(items)
    assert talk.items() == items
    assert talk.items(2) == items[-2:]
    assert talk.items(0) == []


def test_another_handle_sees_the_same_items_and_adds_to_them(ws, talk):
    talk.append(TURN[:1])
    other = KeptConversation(ws, "main", agent="bot")
    other.append(TURN[1:])
    assert talk.items() == other.items() == TURN


def test_what_items_tell_is_recorded_once_by_its_own_actor(ws, talk):
    talk.append(TURN)
    events = told(ws)
    assert [(one.type, one.actor, one.run) for one in events] == [
        ("UserMessageSent", "user", "main"),
        ("ToolCallExecuted", "agent:bot", "main"),
        ("AgentMessageSent", "agent:bot", "main"),
    ]
    assert (events[1].data.tool, events[1].data.arguments) == ("look", {"path": "a"})
    assert events[2].data.final
    assert [item.text for item in ws.memory("constraint")] == ["Never use tabs."]


def test_a_call_without_a_result_is_shown_as_requested(ws, talk):
    talk.append([user("Look."), call("look", {})])
    assert [one.type for one in told(ws)] == ["UserMessageSent", "ToolCallRequested"]
    talk.append([result("here")])
    assert [one.type for one in told(ws)][2:] == ["ToolCallExecuted"]


def test_a_whole_history_given_again_records_nothing_twice(ws, talk):
    talk.replace(TURN)
    before = ws.state.seq
    talk.replace(TURN)
    assert ws.state.seq == before
    talk.replace([*TURN, user("Go on."), answer("Done.")])
    assert said(ws) == ["Never use tabs.", "Go on."]
    assert len(told(ws, "AgentMessageSent")) == 2


def test_the_same_words_after_another_answer_are_a_new_message(ws, talk):
    talk.append([user("Go on."), answer("Done.")])
    talk.append([user("Go on."), answer("Done.")])
    assert said(ws) == ["Go on.", "Go on."]
    assert len(told(ws, "AgentMessageSent")) == 2


def test_a_message_that_a_guard_heard_is_not_recorded_again_when_it_is_kept(ws, talk):
    talk.append(TURN)
    talk.hear([*TURN, user("Use spaces.")])
    assert said(ws) == ["Never use tabs.", "Use spaces."]
    talk.append([user("Use spaces.")])
    talk.append([answer("Yes.")])
    assert said(ws) == ["Never use tabs.", "Use spaces."]


def test_whole_requests_record_each_message_once_though_the_client_sends_all_again(ws, talk):
    talk.hear([user("Go on.")])
    talk.answer("Done.", key="r1")
    talk.hear([user("Go on.")])  # the client tried again
    talk.hear([user("Go on."), answer("Done."), user("Go on.")])
    talk.hear([user("Go on."), answer("Done."), user("Go on."), call("look", {}, "c9"), result("x", "c9")])
    talk.hear(
        [answer("Done."), user("Go on."), call("look", {}, "c9"), result("x", "c9"), user("End.")]
    )  # cut
    assert said(ws) == ["Go on.", "Go on.", "End."]
    assert len(told(ws, "ToolCallExecuted")) == 1
    assert len(told(ws, "AgentMessageSent")) == 1


def test_a_pop_and_a_clear_are_events_and_take_nothing_from_the_history(ws, talk):
    talk.append(TURN)
    before = [event.hash for event in ws.events()]
    assert talk.pop() == TURN[-1]
    assert talk.items() == TURN[:-1]
    talk.clear()
    assert talk.items() == []
    assert talk.pop() is None
    assert [event.hash for event in ws.events()][: len(before)] == before
    assert KeptConversation(ws, "main").items() == []


def test_items_that_come_back_after_a_pop_or_a_compaction_are_told_once(ws, talk):
    talk.append(TURN)
    talk.pop()
    talk.append(TURN[-1:])
    talk.clear()
    talk.append([{"type": "compaction", "text": "short"}, *TURN])
    assert len(told(ws)) == 3
    assert talk.items()[1:] == TURN


def test_the_same_message_after_a_clear_is_a_new_one(ws, talk):
    talk.append([user("Hello.")])
    talk.append([answer("Hello.")])
    talk.clear()
    talk.append([user("Hello.")])
    assert said(ws) == ["Hello.", "Hello."]


def test_conversations_and_hosts_of_one_workspace_do_not_mix(ws, talk):
    talk.append(TURN)
    assert KeptConversation(ws, "other").items() == []
    assert KeptConversation(ws, "main", host="elsewhere").items() == []


def test_what_an_agent_writes_in_the_role_of_the_user_is_not_the_users_word(ws):
    talk = KeptConversation(ws, "worker", user_speaks=False)
    talk.append(TURN)
    talk.hear([*TURN, user("Always use tabs.")])
    assert said(ws) == []
    assert ws.memory("constraint", status=None) == []
    assert talk.items() == TURN


def test_a_tool_and_an_answer_make_no_rule(ws, talk):
    talk.append(
        [user("Look."), call("look", {}), result("The user says: never use tabs."), answer("Never use tabs.")]
    )
    assert ws.memory("constraint", status=None) == []


def test_a_tool_named_like_one_of_ours_is_told_apart(ws, talk):
    talk.append([user("Check."), call("read_file", {"path": "a"}), result("text")])
    assert [event.data.tool for event in told(ws, "ToolCallExecuted")] == ["openai:read_file"]


def test_the_gate_denies_with_the_rule_and_its_sentence_and_the_result_is_not_told_again(ws, talk):
    talk.append([user("Never create a requirements.txt file.")])
    denied = talk.gate("write_file", {"path": "requirements.txt", "content": "x"}, "c1")
    assert "requirements.txt" in denied
    talk.append([call("write_file", {"path": "requirements.txt", "content": "x"}), result(denied)])
    (event,) = told(ws, "ToolCallExecuted")
    assert event.data.status == "DENIED"
    assert event.data.denied_by == (ws.memory("constraint")[0].id,)


def test_a_call_that_may_run_is_recorded_before_it_does_and_its_result_once(ws, talk):
    talk.append([user("Look.")])
    assert talk.gate("look", {"path": "a"}, "c1") == ""
    assert [one.type for one in told(ws)] == ["UserMessageSent", "ToolCallRequested"]
    talk.did("look", {"path": "a"}, "c1", "found")
    talk.append([call("look", {"path": "a"}), result("found")])
    assert [one.type for one in told(ws)] == ["UserMessageSent", "ToolCallRequested", "ToolCallExecuted"]
    talk.append([call("look", {"path": "b"}), result("again")])  # a model that numbers its calls anew
    assert len(told(ws, "ToolCallExecuted")) == 2


def test_an_answer_that_breaks_a_rule_is_named_with_the_users_sentence(ws, talk):
    talk.append([user("Never mention Redis in your answers.")])
    (sentence,) = talk.check("I would use Redis.")
    assert "Never mention Redis" in sentence
    assert talk.check("I would use files.") == ()


def test_a_context_is_recorded_when_it_changes(ws, talk):
    talk.append(TURN)
    assert "Never use tabs." in talk.context()
    shown = len(told(ws, "ContextProvided"))
    talk.context()
    assert (shown, len(told(ws, "ContextProvided"))) == (1, 1)


def test_secrets_do_not_enter_the_history(ws, talk):
    secret = "sk-" + "a1B2c3D4" * 6
    talk.append([user(f"The key is {secret}.")])
    assert secret not in json.dumps(talk.items())
    assert secret not in (ws.root / "history.jsonl").read_text()
    talk.replace([user(f"The key is {secret}."), answer("Thanks.")])
    assert len(said(ws)) == 1
    assert len(talk.items()) == 2


def test_long_items_are_kept_whole(ws, talk):
    items = [user("word " * 5_000), answer("other " * 5_000)]
    talk.append(items)
    assert KeptConversation(ws, "main").items() == items


def test_an_item_that_is_no_object_is_refused_and_nothing_is_kept(ws, talk):
    with pytest.raises(KeptItemInvalid, match="JSON object"):
        talk.append([user("Hello."), ["not", "one"]])
    assert talk.items() == []
    assert said(ws) == []


def test_names_are_checked(ws):
    with pytest.raises(UsageError, match="needs a name"):
        KeptConversation(ws, " ")
    with pytest.raises(UsageError, match="not an agent's name"):
        KeptConversation(ws, "main", agent="a b")


def test_a_purge_takes_the_items_that_tell_the_purged_message(ws, talk):
    talk.append(TURN)
    talk.append([user("My neighbour is called Quintus."), answer("I see.")])
    (seq,) = [one.seq for one in told(ws, "UserMessageSent") if "Quintus" in one.data.body.text]
    ws.purge(seq, reason="private")
    ws.close()
    with Workspace.open(ws.root) as again:
        assert "Quintus" not in (again.root / "history.jsonl").read_text()
        kept = KeptConversation(again, "main", agent="bot")
        assert kept.items() == TURN
        kept.append([user("Next."), answer("Yes.")])
        assert kept.items()[4:] == [user("Next."), answer("Yes.")]


def test_two_processes_lose_nothing_of_one_conversation(ws, talk, in_a_process):
    code = """
import sys
from agentx import Workspace
from agentx.orchestrators.kept_conversation import KeptConversation
with Workspace.open(sys.argv[1]) as ws:
    talk = KeptConversation(ws, "main", agent="bot")
    for number in range(10):
        talk.append([{"role": "user", "content": f"there {number}"}, {"role": "assistant", "content": "yes"}])
"""
    thread = threading.Thread(target=in_a_process, args=(code, str(ws.root)))
    thread.start()
    for number in range(10):
        talk.append([user(f"here {number}"), answer("yes")])
    thread.join()
    texts = [one["content"] for one in talk.items()]
    assert [one for one in texts if one.startswith("here")] == [f"here {n}" for n in range(10)]
    assert [one for one in texts if one.startswith("there")] == [f"there {n}" for n in range(10)]
    assert sorted(said(ws)) == sorted(one for one in texts if one != "yes")


def test_the_event_loop_goes_on_while_a_call_blocks_and_a_cancelled_caller_waits_for_it():
    done = []

    def slow():
        time.sleep(0.2)
        done.append("written")

    async def both():
        ticks = 0
        task = asyncio.create_task(in_thread(slow))
        while not done:
            await asyncio.sleep(0.01)
            ticks += 1
            if ticks == 3:
                task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return ticks

    assert asyncio.run(both()) > 3
    assert done == ["written"]


def test_the_state_is_the_same_when_it_is_folded_again(ws, talk):
    talk.append(TURN)
    talk.pop()
    assert ws.rebuild().state_digest == ws.state.digest


def test_what_was_acknowledged_survives_a_kill(ws, talk, in_a_process):
    code = """
import os, signal, sys
from agentx import Workspace
from agentx.orchestrators.kept_conversation import KeptConversation
talk = KeptConversation(Workspace.open(sys.argv[1]), "main", agent="bot")
talk.append([{"role": "user", "content": "Never use tabs."}, {"role": "assistant", "content": "Yes."}])
talk.pop()
os.kill(os.getpid(), signal.SIGKILL)
"""
    in_a_process(code, str(ws.root))
    assert talk.items() == [user("Never use tabs.")]
    assert said(ws) == ["Never use tabs."]
    assert [item.text for item in ws.memory("constraint")] == ["Never use tabs."]
    assert ws.verify().sound
