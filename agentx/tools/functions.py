"""Tools brought by a program: its own functions, called through the same gate and record as all tools."""

import inspect
import json
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from agentx.engine.engine import Engine
from agentx.policy.workspace_gates import Gates
from agentx.storage.errors import AgentXError
from agentx.storage.secrets.redaction import clean_value
from agentx.synthesis.learning.auditing import unsettled
from agentx.synthesis.state.state import PendingCall
from agentx.tools.toolset import IDEMPOTENCY_KEY, Job, OutcomeUnknown, ToolSet


class ToolFailed(AgentXError):
    """A function that a program provided as a tool raised an exception."""


class Answered(msgspec.Struct, frozen=True):
    """The return value of a function."""

    value: Any

    def render(self) -> str:
        """Return text unchanged, and anything else as JSON."""
        return self.value if isinstance(self.value, str) else json.dumps(self.value, default=str)


class FunctionTools(ToolSet):
    """Runs functions for one actor.

    Each call is announced with all of its arguments before it runs, so a crash leaves a call with unknown
    outcome. If a function has a parameter ``idempotency_key``, it gets a key that is the same for the same
    call, so that it can distinguish a retry from a second order. A call with the same arguments as one whose
    outcome is unknown counts as that call, in whatever run it is retried.

    Args:
        engine: The workspace's engine.
        functions: By the name of the tool. The types of the parameters become its schema, the docstring the
            description that an agent sees.
        actor: The caller; set by the channel.
        run: Run that the calls belong to.
        gates: Checks before each call; by default a separate set for this object.
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
        """Return the same tools for another actor or run."""
        made = FunctionTools(self.engine, self._functions, actor, run, self.gates)
        made._announced = self._announced
        return made

    def names(self) -> list[str]:
        """Return the tools, in the order in which they were given."""
        return list(self._functions)

    def declared(self, name: str) -> Callable[..., Any]:
        """Return the function."""
        return self._functions[name]

    def body(self, name: str) -> Callable[..., Any]:
        """Return code that announces the call and calls the function."""
        function = self._functions[name]

        def run(_tools: ToolSet, job: Job, **arguments: Any) -> Answered:
            whole = json.dumps(clean_value(arguments), default=str)
            began = self._cut_off(name, whole)
            if began is not None:
                # The same call: its result settles the earlier one, whose outcome was unknown.
                job.call_id = began.call_id
            job.announce(whole)
            self._announced.add(job.call_id)
            if IDEMPOTENCY_KEY in inspect.signature(function).parameters:
                arguments[IDEMPOTENCY_KEY] = key_of(began.run if began else self.run, job.call_id, name)
            try:
                answered = Answered(function(**arguments))
                job.printed = answered.render()
            except OutcomeUnknown:
                self._announced.discard(job.call_id)  # the next one with these arguments is the same call
                raise
            except Exception as error:
                raise ToolFailed(f"{name} failed: {error}") from error
            return answered

        return run

    def _cut_off(self, name: str, whole: str) -> PendingCall | None:
        """Find an unfinished call of the same tool with the same arguments that another process began.

        Its outcome is unknown.
        """
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
    """Return the key of a call, 32 hexadecimal digits: the same for every retry of the call."""
    return blake2b(f"{run}\0{call_id}\0{tool}".encode(), digest_size=16).hexdigest()
