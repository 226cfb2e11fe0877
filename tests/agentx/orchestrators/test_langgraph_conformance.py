"""AgentXSaver beside LangGraph's own suite for checkpointers."""

import asyncio

import pytest

conformance = pytest.importorskip(
    "langgraph.checkpoint.conformance", reason="langgraph-checkpoint-conformance is not installed"
)

from langgraph.checkpoint.conformance.capabilities import Capability
from langgraph.checkpoint.conformance.initializer import checkpointer_test
from langgraph.checkpoint.conformance.validate import validate

from agentx import Workspace
from agentx.orchestrators.langgraph import AgentXSaver


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    @checkpointer_test(name="AgentXSaver")
    async def made():
        with Workspace.create(tmp_path_factory.mktemp("saver") / "task") as ws:
            yield AgentXSaver(ws)

    return asyncio.run(validate(made))


@pytest.mark.parametrize("capability", [one.value for one in Capability])
def test_the_saver_conforms(report, capability):
    result = report.results[capability]
    assert (result.detected, result.tests_failed, result.failures) == (True, 0, [])
    assert result.tests_passed > 0
