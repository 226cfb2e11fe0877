"""Routing a request to a flow, an agent that can do it, and a command to type."""

from agentx.engine.engine import Engine
from agentx.memory.flows import called_for
from agentx.storage.errors import UsageError
from agentx.storage.text import one_line
from agentx.synthesis.scheduling import agent_routing
from agentx.synthesis.scheduling.agent_routing import Dispatch


def dispatch(engine: Engine, asked: str) -> Dispatch:
    """Choose who does a task; no language model is called, and nothing is started.

    Raises:
        UsageError: The task is empty.
    """
    asked = one_line(asked)
    if not asked:
        raise UsageError('Describe the task: `agentx agent dispatch "post the release notes"`.')
    state = engine.snapshot()
    return agent_routing.dispatch(state, asked, called_for(engine, state, asked))
