"""The tools of ``director.tools``: a module's functions, a program per call, an MCP server, called by executors of any kind."""

import json
import sys
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.config import ConfigInvalid, parse_config
from agentx.directing.configured_tools import ToolsUnusable, configured_tools
from agentx.directing.directed_runs import run_directed
from agentx.directing.executors import Function
from agentx.storage.events.types import ToolCallExecuted, ToolCallRequested
from agentx.trust.trust import Trust

SERVER = Path(__file__).with_name("mcp_server.py")

MODULE = '''
"""Tools of a surgery."""

from __future__ import annotations

import json
from dataclasses import dataclass

print("a line of the module")


@dataclass
class Patient:
    name: str


def send_reminder(patient: str, appointment: int, text: str = "Please come.") -> str:
    """Send a reminder."""
    print("a line of the function")
    return json.dumps([patient, appointment, text])


def _private(patient: str) -> str:
    return patient


def untyped(x):
    return x


def broken() -> str:
    raise ValueError("no such patient")
'''


@pytest.fixture
def tools(tmp_path):
    """Return a function that calls tools which a configuration names; it returns results and recorded calls."""
    with Workspace.create(tmp_path / "task") as ws:
        root = ws.root
        (root / "tools.py").write_text(MODULE)

    def call(toml, *calls):
        (root / "agentx.toml").write_text(toml)
        with Workspace.open(root) as ws:
            Trust.read(root, ws.engine.settings).grant("trusted")
        with Workspace.open(root) as ws, configured_tools(ws.engine) as functions:
            found = []

            def work(assignment):
                found.extend(assignment.tools.schemas())
                return json.dumps([(r.status, r.output) for r in (assignment.tools.call(*c) for c in calls)])

            run = run_directed(ws.engine, Function("f", work), functions)
            assert run.outcome.status == "COMPLETED", run.outcome
            answers = [tuple(one) for one in json.loads(run.outcome.summary)]
            recorded = [event.data for event in ws.events() if isinstance(event.data, ToolCallExecuted)]
            return answers, {one.name: one for one in found}, recorded

    call.root = root
    return call


def test_a_module_gives_its_public_typed_functions(tools, capsys):
    good = ("send_reminder", {"patient": "Ann", "appointment": 4711})
    wrong = ("send_reminder", {"patient": "Ann", "appointment": "soon"})
    answers, schemas, recorded = tools("[director]\ntools = ['tools.py']\n", good, wrong, ("broken", {}))
    assert list(schemas) == ["send_reminder", "broken"]
    assert schemas["send_reminder"].description == "Send a reminder."
    assert answers[0] == ("SUCCEEDED", '["Ann", 4711, "Please come."]')
    assert answers[1][0] == answers[2][0] == "FAILED"
    assert "no such patient" in answers[2][1]
    assert [call.tool for call in recorded] == ["send_reminder", "send_reminder", "broken"]
    shown = capsys.readouterr()
    assert "a line of the" not in shown.out
    assert "a line of the function" in shown.err


def test_a_package_beside_the_configuration_gives_its_functions_and_nothing_hides_another_module(tools):
    package = tools.root / "surgery"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "acts.py").write_text(
        "from surgery.words import hello\n\ndef greet() -> str:\n    return hello()\n"
    )
    (package / "words.py").write_text("def hello():\n    return 'hello'\n")
    (tools.root / "json.py").write_text("raise SystemExit('hidden')\n")
    before = list(sys.path)
    answers, schemas, _ = tools("[director]\ntools = ['surgery.acts']\n", ("greet", {}))
    assert (answers, list(schemas)) == ([("SUCCEEDED", "hello")], ["greet"])
    assert sys.path == before


COMMAND = """
[[director.tools]]
command = ["sh", "-c", "cat; echo; pwd"]
name = "send"
description = "Send a text."
parameters = {{ to = "string", order = {{ type = "object", description = "What." }}, count = {{ type = "integer", default = 1 }}{more} }}
timeout_s = 1
"""


def test_a_program_gets_its_arguments_as_json_and_what_it_prints_is_the_result(tools):
    given = {"to": "Bo", "order": {"id": 7, "note": "ö"}}
    answers, schemas, _ = tools(COMMAND.format(more=""), ("send", given), ("send", {"order": {}}))
    printed, place = answers[0][1].splitlines()
    assert json.loads(printed) == given | {"count": 1}
    assert place == str(tools.root.resolve())
    assert answers[1][0] == "FAILED"
    assert "to: Field required" in answers[1][1]
    assert schemas["send"].parameters["properties"]["order"]["description"] == "What."
    assert schemas["send"].parameters["required"] == ["to", "order"]


def test_a_program_with_a_parameter_for_it_gets_the_key_of_the_call_which_no_model_sees(tools):
    more = ', idempotency_key = "string"'
    answers, schemas, _ = tools(COMMAND.format(more=more), ("send", {"to": "Bo", "order": {}}))
    assert len(json.loads(answers[0][1].splitlines()[0])["idempotency_key"]) == 32
    assert "idempotency_key" not in json.dumps(schemas["send"].parameters)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ('["sh", "-c", "echo no paper >&2; exit 4"]', "exit status 4: no paper"),
        ('["no-such-program"]', "cannot be run: No such file"),
    ],
)
def test_a_program_that_fails_is_a_failed_call_with_the_reason(tools, command, told):
    toml = f'[[director.tools]]\ncommand = {command}\nname = "send"\n'
    [(status, output)], _, [recorded] = tools(toml, ("send", {}))
    assert (status, recorded.status) == ("FAILED", "FAILED")
    assert told in output


@pytest.mark.parametrize("command", ['["sleep", "60"]', '["sh", "-c", "kill -9 $$"]'])
def test_a_program_that_was_ended_in_the_middle_leaves_a_call_with_unknown_outcome(tools, command):
    toml = f'[[director.tools]]\ncommand = {command}\nname = "send"\ntimeout_s = 0.5\n'
    [(status, output)], _, recorded = tools(toml, ("send", {}))
    assert status == "FAILED"
    assert "unknown" in output
    assert recorded == []
    with Workspace.open(tools.root) as ws:
        assert [call.tool for call in ws.state.pending.values()] == ["send"]


def server(**options):
    words = json.dumps([sys.executable, str(SERVER)])
    more = "".join(f"{name} = {json.dumps(value)}\n" for name, value in options.items())
    return f"[[director.tools]]\nmcp = {words}\n{more}"


def test_a_server_gives_its_tools_page_by_page_with_their_own_schemas(tools):
    book = ("book", {"slot-id": "7", "job": {"a": [1]}})
    answers, schemas, recorded = tools(server(), book, ("slots", {}), ("refuse", {}), ("book", {}))
    assert list(schemas) == ["book", "slots", "hang", "die", "refuse"]
    assert schemas["book"].parameters["$defs"] == {"Job": {"type": "object"}}
    assert answers[0] == ("SUCCEEDED", '["book", {"from": "Ann", "job": {"a": [1]}, "slot-id": 7}]')
    assert answers[1] == ("SUCCEEDED", '["slots", {}]')
    assert answers[2] == ("FAILED", "refuse failed: no such slot")
    assert answers[3][0] == "FAILED"
    assert "slot-id" in answers[3][1]
    assert [call.status for call in recorded] == ["SUCCEEDED", "SUCCEEDED", "FAILED", "FAILED"]


def test_a_tool_of_a_server_that_only_reads_is_neither_announced_nor_an_act(tools):
    acts = '[director.acts.book]\nkey = ["slot_id"]\n'
    once, looks = ("book", {"slot-id": 7}), ("slots", {})
    answers, _, _ = tools(server() + acts, once, looks, looks, ("book", {"slot-id": "7", "from": "Bo"}))
    assert [status for status, _ in answers] == ["SUCCEEDED", "SUCCEEDED", "SUCCEEDED", "DENIED"]
    assert "Already done: book slot_id=7" in answers[3][1]
    with Workspace.open(tools.root) as ws:
        announced = [e.data.tool for e in ws.events() if isinstance(e.data, ToolCallRequested)]
    assert announced == ["book"]


def test_a_declared_act_of_a_program_that_was_cut_off_is_not_repeated_until_the_user_says_what_came_of_it(
    tools,
):
    toml = (
        '[[director.tools]]\ncommand = ["sleep", "60"]\nname = "send"\ntimeout_s = 0.5\n'
        'parameters = { to = "string" }\n[director.acts.send]\nkey = ["to"]\n'
    )
    call = ("send", {"to": "Bo"})
    answers, _, _ = tools(toml, call, call)
    assert [status for status, _ in answers] == ["FAILED", "DENIED"]
    assert "nobody knows whether it was done" in answers[1][1]


@pytest.mark.parametrize("how", ["hang", "die"])
def test_a_server_that_falls_silent_leaves_the_call_unknown_and_serves_the_next(tools, how):
    answers, _, recorded = tools(server(timeout_s=1.0), (how, {}), ("slots", {}))
    assert answers[0][0] == "FAILED"
    assert "MCP server" in answers[0][1]
    assert answers[1][0] == "SUCCEEDED"
    assert [call.tool for call in recorded] == ["slots"]


@pytest.mark.parametrize(
    "schema",
    [{"properties": ["a"]}, {"properties": {"a": 1}, "required": 7}, {"properties": {"a": {"type": [{}]}}}],
)
def test_a_server_with_a_schema_that_is_none_is_told_and_its_other_tools_can_be_used(tools, schema):
    odd = (
        f"[[director.tools]]\nmcp = {json.dumps([sys.executable, str(SERVER), 'odd', json.dumps(schema)])}\n"
    )
    with pytest.raises(ToolsUnusable, match="not a JSON schema"):
        tools(odd)
    answers, _, _ = tools(odd + 'only = ["slots"]\n', ("slots", {}))
    assert answers[0][0] == "SUCCEEDED"


def test_a_schema_may_name_anything_and_leave_types_open(tools):
    names = ["from", "model_x", "copy", "_own", "1st", "user-id", "user_id", "self", "job", "ö"]
    shapes = [{"type": ["string", "null"]}, {"anyOf": [{"type": "integer"}]}, {}, True, {"enum": [1]}]
    schema = {"properties": {name: shapes[n % 5] for n, name in enumerate(names)}, "required": names[:1]}
    toml = (
        f"[[director.tools]]\nmcp = {json.dumps([sys.executable, str(SERVER), 'odd', json.dumps(schema)])}\n"
    )
    given = dict.fromkeys(names, "x")
    answers, schemas, _ = tools(toml, ("refuse", given), ("refuse", {"from": None}))
    assert list(schemas["refuse"].parameters["properties"]) == names
    assert {output for _, output in answers} == {"refuse failed: no such slot"}


def test_an_act_that_a_module_declares_is_refused_as_a_repeat(tools):
    (tools.root / "surgery.py").write_text(
        "from agentx import act\n\n@act(key=('patient',))\ndef remind(patient, text='come'):\n    return text\n"
    )
    calls = [("remind", {"patient": "Ann"}), ("remind", {"patient": "Ann", "text": "please"})]
    answers, _, _ = tools("[director]\ntools = ['surgery.py']\n", *calls)
    assert [status for status, _ in answers] == ["SUCCEEDED", "DENIED"]


def test_only_the_named_tools_are_offered(tools):
    _, schemas, _ = tools(server(only=["slots"]))
    assert list(schemas) == ["slots"]


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ("[director]\ntools = ['absent.py']", "absent.py cannot be imported: FileNotFoundError"),
        ("[director]\ntools = ['no_such_module']", "cannot be imported: ModuleNotFoundError"),
        ("[director]\ntools = ['fails.py']", "cannot be imported: SystemExit: enough"),
        ("[director]\ntools = ['empty.py']", "empty.py has no tools"),
        ("[director]\ntools = ['waits.py']", "wait of waits.py is async"),
        ("[director]\ntools = ['artifacts/made.py']", "lies in the artifacts"),
        ("[director]\ntools = ['artifacts.made']", "lies in the artifacts"),
        ("[director]\ntools = ['tools.py', 'tools.py']", "two tools have the name 'send_reminder'"),
        (server(only=["fly"]), "has no fly; it has book, slots"),
        ('[[director.tools]]\nmcp = ["no-such-server"]', "'no-such-server' cannot be run"),
        (
            '[[director.tools]]\nmcp = ["sh", "-c", "echo bye >&2"]',
            "ended before it answered initialize: bye",
        ),
    ],
)
def test_tools_that_cannot_be_made_are_told_before_anything_runs(tools, toml, told):
    (tools.root / "fails.py").write_text("raise SystemExit('enough')\n")
    (tools.root / "empty.py").write_text("def _hidden() -> None: ...\n")
    (tools.root / "waits.py").write_text("async def wait() -> None: ...\n")
    (tools.root / "artifacts" / "made.py").write_text("def made() -> str: ...\n")
    with pytest.raises(ToolsUnusable) as error:
        tools(toml)
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("{}", "name one of module, command and mcp"),
        ('{ module = "a.py", mcp = ["b"] }', "name one of module, command and mcp"),
        ('{ command = ["b"] }', "a command, and only a command, needs a name"),
        ('{ command = ["b"], name = "b", parameters = { x = "str" } }', "director.tools.0.parameters.x"),
    ],
)
def test_a_source_that_says_too_little_or_too_much_is_no_configuration(source, told):
    with pytest.raises(ConfigInvalid, match=told):
        parse_config(f"[director]\ntools = [{source}]\n", Path("agentx.toml"))
