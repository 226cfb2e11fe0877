"""Command lines that break a check: stopped, asked about, warned of or corrected before they run."""

import pytest

from agentx.synthesis.memory.checks import CommandCheck
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
