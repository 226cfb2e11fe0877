"""A rule that the user may have ended is not enforced: it is shown and asked about."""

import pytest

from agentx import Workspace
from tests.rule_checks import check_write


@pytest.fixture
def ws(tmp_path):
    with Workspace.create(tmp_path / "task") as opened:
        opened.say("Never create a file in vendor/.")
        opened.say("Never create a requirements.txt file.")
        opened.say("a requirements.txt is fine with me")
        yield opened


def _doubtful(ws):
    return [item for item in ws.memory("constraint") if item.perhaps_ended_by]


def test_a_write_that_would_break_it_is_not_denied_and_needs_approval(ws):
    (item,) = _doubtful(ws)
    assert [violation.mode for violation in check_write([item], "requirements.txt", None, "flask")] == ["ask"]
    arguments = {"path": "requirements.txt", "content": "flask\n"}
    result = ws.tools.call("write_file", arguments, actor="agent:main", run="r-1")
    assert result.approval_needed
    assert item.id in result.output
    assert "perhaps ended by" in result.output


def test_the_gate_asks_where_it_would_deny(ws):
    (item,) = _doubtful(ws)
    arguments = {"path": "requirements.txt", "content": "flask\n"}
    verdict = ws.gates.before("write the file", tool="write_file", arguments=arguments)
    assert verdict.verdict == "ask"
    assert item.id in verdict.reason
