"""Command lines that break a check: stopped, asked about, warned of or corrected before they run."""

import pytest

from agentx.synthesis.memory.checks import CommandCheck, ContentCheck
from agentx.tools.toolbox import Toolbox

ON = "\n[tools]\nrun_command = true\n"


def forbid(ws, mode, **fields):
    check = CommandCheck(programs=("echo old",), mode=mode, **fields)
    return ws.remember("constraint", "Say it the new way.", checks=(check,))


@pytest.mark.parametrize(("mode", "verdict"), [("deny", "deny"), ("ask", "ask"), ("warn", "allow")])
def test_the_gate_evaluates_the_command_of_a_call(ws, mode, verdict):
    forbid(ws, mode, instead="echo new")
    found = ws.gates.before("", tool="run_command", arguments={"command": "true && echo old a"})
    assert found.verdict.startswith(verdict)
    assert found.corrected == "true && echo new a"
    assert "Corrected: `true && echo new a`" in found.text
    kept = ws.gates.before("", tool="run_command", arguments={"command": "echo fresh"})
    assert (kept.verdict.startswith("allow"), kept.corrected) == (True, "")


def test_a_denied_command_is_not_run_and_names_its_rule(configured):
    ws = configured(ON)
    rule = forbid(ws, "deny")
    result = Toolbox(ws.engine).call("run_command", {"command": "echo old > a.txt"})
    assert (result.status, result.denied_by) == ("DENIED", (rule.id,))


def test_in_mode_fix_the_corrected_command_is_run_and_told(configured):
    ws = configured(ON)
    rule = forbid(ws, "fix", instead="echo new")
    result = Toolbox(ws.engine).call("run_command", {"command": "echo old a"})
    assert "new a" in result.output
    assert f"[Corrected by rule {rule.id}: `echo old a` → `echo new a`]" in result.output


def two_rules(ws, *modes):
    new = CommandCheck(programs=("echo old",), mode=modes[0], instead="echo new")
    loud = CommandCheck(programs=("ls",), mode=modes[1], required_flags=("-a",))
    return [
        ws.remember("constraint", text, checks=(check,)) for text, check in (("New.", new), ("Loud.", loud))
    ]


def test_all_that_is_wrong_with_a_command_is_corrected(ws):
    two_rules(ws, "deny", "deny")
    command = {"command": "echo old a && echo old b && ls"}
    found = ws.gates.before("", tool="run_command", arguments=command)
    assert found.verdict == "deny"
    assert found.corrected == "echo new a && echo new b && ls -a"
    ws.remember("constraint", "No true.", checks=(CommandCheck(programs=("true",)),))
    found = ws.gates.before("", tool="run_command", arguments={"command": "echo old a && true"})
    assert found.corrected == "", "a part of it cannot be corrected"


def test_a_command_is_corrected_in_our_loop_only_where_every_broken_rule_says_so(configured):
    ws = configured(ON)
    rules = two_rules(ws, "fix", "fix")
    result = Toolbox(ws.engine).call("run_command", {"command": "echo old a && ls"})
    assert result.status == "SUCCEEDED"
    assert f"[Corrected by rules {rules[0].id}, {rules[1].id}: " in result.output
    two_rules(ws, "fix", "deny")
    result = Toolbox(ws.engine).call("run_command", {"command": "echo old a && ls"})
    assert result.status == "DENIED"


def test_a_reason_is_said_once_and_a_long_correction_in_the_data_alone(ws):
    header = ContentCheck(header="Copyright ACME", mode="fix")
    ws.remember("constraint", "Files have a header.", checks=(header,))
    short = ws.gates.before("", tool="Write", arguments={"path": "a.py", "content": "x = 1\n"})
    assert "```\n# Copyright ACME\n" in short.text
    long = ws.gates.before("", tool="Write", arguments={"path": "a.py", "content": "x = 1\n" * 500})
    assert "x = 1" not in long.text
    assert long.corrected.startswith("# Copyright ACME\n")
    forbid(ws, "deny")
    twice = ws.gates.before("", tool="run_command", arguments={"command": "echo old a; echo old b"})
    assert twice.reason.count("may not be run") == 1
