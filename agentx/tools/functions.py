"""Tools that a program brings: its own functions, called by agents and executors through the same gate and record."""

import inspect
import json
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from agentx.engine.engine import Engine
from agentx.policy.action_gate import Gates
from agentx.storage.errors import AgentXError
from agentx.storage.secrets.redaction import clean_value
from agentx.synthesis.learning.auditing import unsettled
from agentx.synthesis.state.state import PendingCall
from agentx.tools.toolset import IDEMPOTENCY_KEY, Job, ToolSet


class ToolFailed(AgentXError):
    """A function that a program brought as a tool raised."""


class Answered(msgspec.Struct, frozen=True):
    """What a function returned."""

    value: Any

    def render(self) -> str:
        """Text as it is, all else as JSON."""
        return self.value if isinstance(self.value, str) else json.dumps(self.value, default=str)


class FunctionTools(ToolSet):
    """Runs functions for one actor.

    Each call is announced with all of its arguments before it runs; so a crash in it leaves an outcome that is unknown. A
    function with a parameter ``idempotency_key`` is given one: the same for the same call, so that it can tell a second try
    from a second order. A call with the arguments of one whose outcome is unknown is that call, in whatever run it is tried again.

    Args:
        engine: The workspace's engine.
        functions: By the name of the tool. Types of parameters become its schema, the docstring what an agent is told.
        actor: Who calls; set by the channel.
        run: Run that the calls belong to.
        gates: What is looked at before each call; of its own by default.
    """

    def __init__(
        self,
        engine: Engine,
        functions: Mapping[str, Callable[..., Any]],
        actor: str = "agent:main",
        run: str = "",
        gates: Gates | None = None,
    ) -> None:
        super().__init__(engine, actor, run, gates)
        self._functions = functions
        self._announced: set[str] = set()

    def acting(self, actor: str, run: str) -> "FunctionTools":
        """The same tools for another actor or run."""
        made = FunctionTools(self.engine, self._functions, actor, run, self.gates)
        made._announced = self._announced
        return made

    def names(self) -> list[str]:
        """The tools, in the order in which they were given."""
        return list(self._functions)

    def declared(self, name: str) -> Callable[..., Any]:
        """The function."""
        return self._functions[name]

    def body(self, name: str) -> Callable[..., Any]:
        """Announces the call, and calls the function."""
        function = self._functions[name]

        def run(_tools: ToolSet, job: Job, **arguments: Any) -> Answered:
            whole = json.dumps(clean_value(arguments), default=str)
            began = self._cut_off(name, whole)
            if began is not None:
                job.call_id = (
                    began.call_id
                )  # the same call: its result settles the one whose outcome was unknown
            job.announce(whole)
            self._announced.add(job.call_id)
            if IDEMPOTENCY_KEY in inspect.signature(function).parameters:
                arguments[IDEMPOTENCY_KEY] = key_of(began.run if began else self.run, job.call_id, name)
            try:
                answered = Answered(function(**arguments))
                job.printed = answered.render()
            except Exception as error:
                raise ToolFailed(f"{name} failed: {error}") from error
            return answered

        return run

    def _cut_off(self, name: str, whole: str) -> PendingCall | None:
        """A call of the same tool with the same arguments that another process began, and of which nobody knows what came."""
        return next(
            (
                call
                for call in unsettled(self.engine.snapshot(), self.run)
                if call.tool == name
                and call.call_id not in self._announced
                and self.engine.read_body(call.whole) == whole
            ),
            None,
        )


def key_of(run: str, call_id: str, tool: str) -> str:
    """The key of a call, 32 hexadecimal digits: the same wherever the call is tried again."""
    return blake2b(f"{run}\0{call_id}\0{tool}".encode(), digest_size=16).hexdigest()
