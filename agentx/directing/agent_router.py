"""Dispatch: from what is asked to the flow, the agent that can do it, and what to type."""

from agentx.engine.engine import Engine
from agentx.memory.flows import called_for
from agentx.storage.errors import UsageError
from agentx.storage.text import one_line
from agentx.synthesis.scheduling import agent_routing
from agentx.synthesis.scheduling.agent_routing import Dispatch


def dispatch(engine: Engine, asked: str) -> Dispatch:
    """Who is to do something; no model of language is asked, and nothing is started.

    Args:
        engine: The workspace.
        asked: What is to be done, in any words.

    Raises:
        UsageError: Nothing is asked.
    """
    asked = one_line(asked)
    if not asked:
        raise UsageError('Say what is to be done: `agentx dispatch "post the release notes"`.')
    state = engine.snapshot()
    return agent_routing.dispatch(state, asked, called_for(engine, state, asked))
