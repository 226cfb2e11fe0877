"""What an agent can send as a call, and what it gets: a result each time, and an event."""

import json

import pytest

from agentx import Workspace
from agentx.policy.approvals import ApprovalNeeded, NotApproved
from agentx.storage.errors import UsageError
from agentx.storage.events.types import ToolCallExecuted, ToolCallRequested


def deep(levels):
    return '{"path": ' + "[" * levels + "]" * levels + "}"


MALFORMED = {
    "no JSON": ("write_file", '{"path": "a.txt", '),
    "a list": ("write_file", "[1, 2]"),
    "null": ("write_file", "null"),
    "nothing": ("write_file", ""),
    "a missing argument": ("write_file", '{"path": "a.txt"}'),
    "an argument too many": ("write_file", '{"path": "a.txt", "content": "x", "mode": "w"}'),
    "wrong types": ("write_file", '{"path": 5, "content": {"a": [1]}}'),
    "deep JSON": ("write_file", deep(900)),
    "JSON without end": ("write_file", deep(200_000)),
    "a lone surrogate in a path": ("write_file", r'{"path": "a\ud800", "content": "x"}'),
    "a lone surrogate in a content": ("write_file", r'{"path": "a.txt", "content": "\udfff"}'),
    "a lone surrogate in a name": ("write_file", r'{"\ud800": "a.txt"}'),
    "a lone surrogate in a query": ("search_memory", r'{"query": "\ud800 x"}'),
    "a NUL": ("write_file", r'{"path": "a\u0000", "content": "x"}'),
    "no number": ("read_file", '{"path": "a", "start_line": NaN}'),
    "a number without end": ("search_memory", '{"query": "x", "k": 1e999}'),
    "a number of many digits": ("read_file", '{"path": "a", "start_line": ' + "9" * 4000 + "}"),
    "a number out of range": ("search_memory", '{"query": "x", "k": 0}'),
    "an unknown tool": ("rm_rf", "{}"),
    "a tool with a long name": ("t" * 1_000_000, "{}"),
    "a tool that is none of the tools": ("__init__", "{}"),
    "a tool that is off": ("run_command", '{"command": "id"}'),
    "long names of arguments": ("write_file", json.dumps({"k" * 1_000_000: "v"})),
    "many long arguments": (
        "write_file",
        json.dumps({f"{n}" + "\x01" * 300: "\x01" * 400 for n in range(40)}),
    ),
    "20 MB and more": ("write_file", json.dumps({"path": "a.txt", "content": "x " * 10_000_001})),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_call_that_cannot_run_is_a_short_failure_and_an_event(ws, name):
    tool, arguments = MALFORMED[name]
    seq = ws.state.seq
    result = ws.tools.call(tool, arguments, call_id="call-1")
    assert (result.status, result.call_id) == ("FAILED", "call-1")
    assert result.output
    assert len(result.output) < 6_000
    (event,) = ws.events(after=seq)
    assert (event.data.status, event.data.call_id) == ("FAILED", "call-1")
    assert not list(ws.artifacts.iterdir())
    assert ws.tools.call("write_file", {"path": "a.txt", "content": "x"}).status == "SUCCEEDED"


def test_arguments_that_hold_themselves_are_a_failure(ws):
    arguments = {"path": "a.txt"}
    arguments["content"] = [arguments]
    assert ws.tools.call("write_file", arguments).status == "FAILED"


def test_an_odd_call_id_is_kept_in_the_result_and_bounded_in_the_record(ws):
    name = "x\n" * 50_000
    assert ws.tools.call("list_directory", {}, call_id=name).call_id == name
    assert len(list(ws.events())[-1].data.call_id) == 200


def test_ten_megabytes_are_written_and_the_record_of_it_is_short(ws):
    content = "0123456789\n" * 950_000
    assert ws.tools.call("write_file", {"path": "big.txt", "content": content}).status == "SUCCEEDED"
    assert (ws.artifacts / "big.txt").read_text() == content
    assert (ws.root / "history.jsonl").stat().st_size < 10_000


def test_an_answer_that_can_be_made_again_is_cut_in_the_record_only(ws):
    ws.tools.write_file("a.txt", "line\n" * 900)
    result = ws.tools.call("read_file", {"path": "a.txt", "start_line": 1, "end_line": 900})
    assert result.output.count("line\n") > 890
    assert len(list(ws.events())[-1].data.output.text) < 1_600


def test_the_schemas_are_json_schemas_of_the_signatures(ws):
    schemas = {schema.name: schema for schema in ws.tools.schemas()}
    assert list(schemas) == ws.tools.names()
    assert "run_command" not in schemas
    json.dumps([schema.parameters for schema in schemas.values()])
    for schema in schemas.values():
        assert schema.description.endswith(".")
        assert "\n" not in schema.description
        assert schema.parameters["type"] == "object"
        assert schema.parameters["additionalProperties"] is False
        assert "job" not in schema.parameters["properties"]
    write = schemas["write_file"].parameters
    assert write["required"] == ["path", "content"]
    assert write["properties"]["path"]["type"] == "string"
    assert write["properties"]["path"]["description"]
    assert schemas["read_file"].parameters["required"] == ["path"]


def test_run_command_stands_among_the_tools_once_it_is_allowed(configured):
    ws = configured("\n[tools]\nrun_command = true\n")
    assert "run_command" in {schema.name for schema in ws.tools.schemas()}


def test_an_actor_is_set_by_the_channel_and_never_by_an_argument(ws):
    ws.tools.call("write_file", {"path": "a.txt", "content": "x"}, actor="agent:writer", run="r-1")
    assert ws.tools.call("write_file", {"path": "b.txt", "content": "x", "actor": "user"}).status == "FAILED"
    events = [event for event in ws.events() if isinstance(event.data, ToolCallExecuted)]
    assert [(event.actor, event.run) for event in events] == [("agent:writer", "r-1"), ("agent:main", "")]


# --- a person's word ------------------------------------------------------------------------------------------------

ASKS = '\n[tools]\napprove = ["write_file", "delete_file"]\n'


def ask(ws, call_id="call-1", **arguments):
    arguments = {"path": "a.txt", "content": "x"} | arguments
    return ws.tools.call("write_file", arguments, call_id=call_id)


def test_a_call_waits_until_a_person_approves_and_runs_as_it_was_seen(configured):
    ws = configured(ASKS)
    waiting = ask(ws)
    assert (waiting.status, waiting.approval_needed) == ("DENIED", True)
    assert "agentx approve call-1" in waiting.output
    assert ask(ws).approval_needed
    assert ws.status().pending == ("call-1",)
    assert sum(isinstance(event.data, ToolCallRequested) for event in ws.events()) == 1
    ws.approve("call-1")
    done = ask(ws, path="other.txt", content="something else")
    assert done.status == "SUCCEEDED"
    assert ws.tools.read_file("a.txt").text == "x"
    assert not (ws.artifacts / "other.txt").exists()
    assert ws.status().pending == ()
    assert ask(ws, path="b.txt").approval_needed


def test_a_call_that_a_person_refused_tells_why(configured):
    ws = configured(ASKS)
    ask(ws)
    ws.approve("call-1", approved=False, reason="not today")
    refused = ask(ws)
    assert (refused.status, refused.approval_needed) == ("DENIED", False)
    assert "not today" in refused.output
    assert not list(ws.artifacts.iterdir())
    with pytest.raises(UsageError, match="No call 'call-1' is waiting for approval"):
        ws.approve("call-1")


def test_from_python_the_same_raises_our_errors(configured):
    ws = configured(ASKS)
    with pytest.raises(ApprovalNeeded) as needed:
        ws.tools.write_file("a.txt", "x")
    ws.approve(needed.value.call_id, approved=False)
    with pytest.raises(NotApproved):
        ws.tools.run_tool("write_file", {"path": "a.txt", "content": "x"}, needed.value.call_id)


def test_an_approved_call_is_run_by_another_process_with_all_of_its_arguments(configured, lexical):
    ws = configured(ASKS)
    content = 'TOKEN=q7RkZw91LmXc4TbN"\n' + 'a long line with "quotes" and \\ and \u00e9\n' * 5_000
    ask(ws, content=content)
    assert next(event.data.whole.blob for event in ws.events() if isinstance(event.data, ToolCallRequested))
    ws.approve("call-1")
    ws.close()
    with Workspace.open(ws.root, settings=lexical) as again:
        assert again.tools.call("write_file", {}, call_id="call-1").status == "SUCCEEDED"
        written = (again.artifacts / "a.txt").read_text()
        kept = list((again.root / ".agentx" / "waiting").iterdir())
    assert written == content, "a person approved this very call"
    assert not kept


def test_an_approval_of_one_tool_is_none_of_another(configured):
    ws = configured(ASKS)
    ask(ws)
    ws.approve("call-1")
    other = ws.tools.call("delete_file", {"path": "a.txt"}, call_id="call-1")
    assert other.status == "FAILED"
    assert "not to delete_file" in other.output


def test_a_call_that_could_not_run_asks_nobody(configured):
    ws = configured(ASKS)
    assert ws.tools.call("write_file", {"path": "a.txt"}).status == "FAILED"
    assert not ws.state.pending


def test_the_gate_holds_for_an_approved_call_too(configured):
    ws = configured(ASKS)
    ws.say("Never create a requirements.txt file.")
    ask(ws, path="requirements.txt")
    ws.approve("call-1")
    assert ask(ws).status == "DENIED"
    assert not list(ws.artifacts.iterdir())
