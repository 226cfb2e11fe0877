"""The tools of an executor, which reveal nothing of history, memory, or the reasons of a denial."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from agentx.engine.engine import Engine
from agentx.policy.workspace_gates import Gates
from agentx.storage.events.types import AgentThoughtProcess, Draft, ToolStatus
from agentx.storage.secrets.redaction import clean
from agentx.synthesis.directing.acts import Declaration, Occasion
from agentx.synthesis.directing.foreign_texts import rule
from agentx.synthesis.model.port import ToolSchema
from agentx.tools.functions import FunctionTools
from agentx.tools.quality_tools import CheckResult, QualityTools
from agentx.tools.toolset import ToolResult, ToolSet

_NOT_FOR_EXECUTORS = frozenset(("run_command",))
"""A shell would see more than the artifacts."""


class Result(msgspec.Struct, frozen=True):
    """The answer to an executor's call."""

    status: ToolStatus
    output: str


class Hands:
    """The tools that an executor may call: the program's functions and, optionally, files and checks.

    Args:
        engine: The workspace.
        functions: The program's functions, by name.
        actor: The caller; set by the channel.
        run: The run that the calls belong to.
        files: Whether it may read and change artifacts, and run the configured checks.
        occasion: The schedule and due time of the run, for acts that are done once in a window.
    """

    def __init__(
        self,
        engine: Engine,
        functions: Mapping[str, Callable[..., Any]],
        *,
        actor: str,
        run: str,
        files: bool = False,
        occasion: Occasion | None = None,
    ) -> None:
        self._engine = engine
        self._actor = actor
        self._run = run
        self._made = 0
        gates = Gates(engine)
        self._functions = FunctionTools(engine, functions, actor, run, gates, occasion)
        sets: list[ToolSet] = [self._functions]
        if files:
            sets.append(QualityTools(engine, actor, run, gates))
        self._sets: dict[str, ToolSet] = {
            name: tools
            for tools in reversed(sets)
            for name in tools.names()
            if name not in _NOT_FOR_EXECUTORS
        }

    @property
    def outside(self) -> list[ToolSchema]:
        """The program's functions, which have effects outside the workspace."""
        return [schema for schema in self.schemas() if isinstance(self._sets[schema.name], FunctionTools)]

    @property
    def declarations(self) -> Mapping[str, Declaration]:
        """What makes two calls of a function the same act, by name; functions that declare it only."""
        return self._functions.declarations

    @property
    def repeatable(self) -> list[str]:
        """The functions of which a call without a result may be made again."""
        return self._functions.repeatable

    def schemas(self) -> list[ToolSchema]:
        """Return the schemas of the tools for a model."""
        return [
            schema
            for tools in dict.fromkeys(self._sets.values())
            for schema in tools.schemas()
            if self._sets.get(schema.name) is tools
        ]

    def call(self, name: str, arguments: str | Mapping[str, Any]) -> Result:
        """Run a tool and record the call; errors are returned in the result, never raised."""
        self._made += 1
        tools = self._sets.get(name)
        if tools is None:
            known = ", ".join(self._sets)
            return Result("FAILED", f"Unknown tool {name[:64]!r}. The tools are: {known}.")
        result = tools.call(name, arguments, call_id=f"{self._run}-{self._made}")
        return Result(result.status, self._plain(result))

    def say(self, text: str) -> None:
        """Record what the executor writes between its calls."""
        thought = AgentThoughtProcess(body=self._engine.write_path.body(text))
        self._engine.write_path.record([Draft(data=thought, actor=self._actor, run=self._run)])

    def _plain(self, result: ToolResult) -> str:
        """Return an answer without the gate's additions.

        A denial states what is ruled out, but not by whom, when and why.
        """
        value = result.value
        if isinstance(value, CheckResult):  # after its first sentence, a note quotes the broken rule
            value = msgspec.structs.replace(
                value, notes=tuple(note.partition(". ")[0] for note in value.notes)
            )
        if value is not None:
            return "\n".join(filter(None, (clean(str(value.render())), result.left_out)))
        if result.approval_needed:
            return "Denied. This call is waiting for approval."
        if not result.denied_by:
            return result.output
        state = self._engine.told(self._engine.snapshot())
        rules = [rule(state.items[name]) for name in result.denied_by if name in state.items]
        return "Denied. " + " ".join(rules)
