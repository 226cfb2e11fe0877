"""Executors: whoever carries out a prompt. They get the prompt and tools, and nothing of the history."""

import math
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from agentx.agents.bounds import RAISE, Bounds, RunStops
from agentx.agents.port import Limits
from agentx.directing.executor_tools import Result
from agentx.directing.program import Program
from agentx.storage.errors import AgentXError
from agentx.storage.events.types import RunStatus
from agentx.storage.text import one_line
from agentx.synthesis.memory.items import shorten
from agentx.synthesis.model.port import ChatMessage, ModelClient, ModelError, Reply, ToolSchema, Usage

SUMMARY_CHARACTERS = 100_000
"""So much of what an executor says or prints is kept."""

_REASON_CHARACTERS = 500
_REASON_WORDS = 60


class Tools(Protocol):
    """What an executor may call, and where it thinks aloud."""

    def schemas(self) -> list[ToolSchema]:
        """The tools as a model is told of them."""
        ...

    def call(self, name: str, arguments: str | Mapping[str, Any]) -> Result:
        """Run a tool; whatever goes wrong is told in the result, never raised."""
        ...

    def say(self, text: str) -> None:
        """Put on record what the executor thinks aloud on its way."""
        ...


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of carrying out a prompt.

    Attributes:
        status: How it ended.
        summary: What was done, in the executor's own words.
        reason: Why it did not complete, for a person.
        steps: How often a model was asked.
        usage: What that used.
        unanswered: It did not complete because no model answered: that says nothing of the work.
    """

    status: RunStatus = "COMPLETED"
    summary: str = ""
    reason: str = ""
    steps: int = 0
    usage: Usage = Usage()
    unanswered: bool = False


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """All that an executor gets.

    Attributes:
        prompt: What to do.
        tools: What it may call.
        time_limit_s: How long it may take; 0 for no limit.
    """

    prompt: str
    tools: Tools
    time_limit_s: float = 0.0


class Executor(Protocol):
    """Carries out a prompt."""

    @property
    def name(self) -> str:
        """Stands in ``RunStarted.model``."""
        ...

    def execute(self, assignment: Assignment) -> Outcome:
        """Carry it out; what it raises ends the run ``FAILED``."""
        ...


def carry_out(executor: Executor, assignment: Assignment) -> Outcome:
    """Have a prompt carried out; whatever an executor raises or gives back, an outcome comes of it.

    Raises:
        KeyboardInterrupt: A person ended it.
    """
    try:
        return _checked(executor.execute(assignment))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - an executor may be anything
        told = f"{type(error).__name__}: {shorten(one_line(str(error)), _REASON_WORDS)}"
        return Outcome(status="FAILED", reason=told, unanswered=isinstance(error, ModelError))


def _checked(outcome: Outcome) -> Outcome:
    """What an executor gave, which may be anything.

    Raises:
        ValueError: It is no outcome, or has a status or a number that is none.
    """
    checked = msgspec.convert(msgspec.to_builtins(outcome), Outcome)
    used = checked.usage
    if not 0 <= used.cost_usd < math.inf:
        raise ValueError(f"The executor says that it cost {used.cost_usd} USD.")
    if min(used.prompt_tokens, used.completion_tokens) < 0:
        raise ValueError("The executor says that it used fewer tokens than none.")
    return checked


class Function(msgspec.Struct, frozen=True):
    """An executor that is a function of an assignment; what it returns is its summary, or its whole outcome."""

    name: str
    run: Callable[[Assignment], str | Outcome | None]

    def execute(self, assignment: Assignment) -> Outcome:
        """Call it."""
        said = self.run(assignment)
        return said if isinstance(said, Outcome) else Outcome(summary=said or "")


class Loop(msgspec.Struct, frozen=True):
    """An executor that is a model in a loop: it is asked until it calls no more tools.

    Attributes:
        advice: How a person raises a limit.
    """

    model: ModelClient
    limits: Limits = Limits()
    advice: str = RAISE

    @property
    def name(self) -> str:
        """The model's."""
        return self.model.name

    def execute(self, assignment: Assignment) -> Outcome:
        """Ask and act, in turn.

        Raises:
            ModelError: The model failed.
        """
        limits = self.limits
        if assignment.time_limit_s:
            limits = msgspec.structs.replace(limits, max_time_s=assignment.time_limit_s)
        bounds = Bounds(limits, self.advice)
        said = [ChatMessage("system", assignment.prompt), ChatMessage("user", "Begin.")]
        try:
            while True:
                bounds.begin_step()
                reply = self._ask(said, assignment.tools, bounds)
                said.append(ChatMessage("assistant", reply.text, reply.tool_calls))
                if not reply.tool_calls:
                    return Outcome(summary=reply.text, steps=bounds.steps, usage=bounds.usage)
                if reply.text:
                    assignment.tools.say(reply.text)
                for call in reply.tool_calls:
                    bounds.check_repeats(call.name, call.arguments)
                    result = assignment.tools.call(call.name, call.arguments)
                    said.append(ChatMessage("tool", result.output, tool_call_id=call.id))
        except RunStops as stop:
            return Outcome(status=stop.status, reason=stop.reason, steps=bounds.steps, usage=bounds.usage)

    def _ask(self, said: list[ChatMessage], tools: Tools, bounds: Bounds) -> Reply:
        for part in self.model.stream(said, tools.schemas(), timeout_s=bounds.answer_time_s):
            if isinstance(part, Reply):
                bounds.spend(part.usage)
                return part
        raise ExecutorFailed(f"{self.model.name} ended its stream without a reply.")


class ExecutorFailed(AgentXError):
    """An executor could not be started, or did not speak the protocol that was agreed."""


class Command(msgspec.Struct, frozen=True):
    """An executor that is a program.

    It runs in an empty directory of its own, with an environment that names no workspace. As ``text`` it reads the prompt on stdin,
    has no tools of ours, and what it prints is its summary: that fits any agent with a command line. As ``jsonl`` it speaks JSON
    Lines: it reads ``{"prompt": …, "tools": […]}``, writes ``{"call": {"tool": …, "arguments": {…}}}`` for each tool and reads
    ``{"result": {"status": …, "output": …}}``, may write ``{"say": …}``, and ends with ``{"done": {"status": …, "summary": …, "reason": …}}``.

    Attributes:
        words: The program and its arguments.
        speaks: Which of the two.
        environ: What it finds in its environment, as :func:`outside_environ` makes it of one's own.
        setting: Where a person says which program it is.
    """

    words: tuple[str, ...]
    speaks: Literal["text", "jsonl"] = "text"
    environ: Mapping[str, str] = {}
    setting: str = "director.executor in agentx.toml"

    @property
    def name(self) -> str:
        """The program's."""
        return f"command:{Path(self.words[0]).name}"

    def execute(self, assignment: Assignment) -> Outcome:
        """Run the program; its exit status says whether it completed where it does not say so itself.

        Raises:
            ExecutorFailed: It could not be started, or says what is no part of the protocol.
        """
        with tempfile.TemporaryDirectory(prefix="agentx-executor-", ignore_cleanup_errors=True) as place:
            with self._start(Path(place), assignment.time_limit_s) as program:
                done = (_converse if self.speaks == "jsonl" else _tell)(program, assignment)
            if program.late:
                reason = f"It took longer than {assignment.time_limit_s:g} seconds and was ended."
                return msgspec.structs.replace(done, status="LIMIT_REACHED", reason=reason)
            if done.status == "COMPLETED" and self.speaks == "text" and program.exit_status:
                done = msgspec.structs.replace(done, status="FAILED")
            if done.status == "FAILED" and not done.reason:
                done = msgspec.structs.replace(done, reason=_ended(program))
            return done

    def _start(self, place: Path, time_limit_s: float) -> Program:
        try:
            return Program(self.words, self.environ, place, time_limit_s)
        except (OSError, ValueError) as error:  # a word with a NUL is a ValueError
            told = getattr(error, "strerror", None) or error
            raise ExecutorFailed(
                f"The executor {self.words[0]!r} cannot be run: {told}; check {self.setting}."
            ) from error


def _tell(program: Program, assignment: Assignment) -> Outcome:
    return Outcome(summary=program.rest(assignment.prompt.encode(), SUMMARY_CHARACTERS).strip())


def _converse(program: Program, assignment: Assignment) -> Outcome:
    program.send(_line({"prompt": assignment.prompt, "tools": assignment.tools.schemas()}))
    while line := program.line():
        said = _heard(line)
        if said.done is not None:
            return said.done
        if said.say:
            assignment.tools.say(said.say)
        if said.call is not None:
            result = assignment.tools.call(said.call.tool, said.call.arguments)
            program.send(_line({"result": result}))
    program.rest(b"", _REASON_CHARACTERS)
    return Outcome(status="FAILED")


class _Call(msgspec.Struct):
    tool: str
    arguments: dict[str, Any] = {}


class _Said(msgspec.Struct):
    """A line of a program."""

    call: _Call | None = None
    say: str = ""
    done: Outcome | None = None


def _heard(line: bytes) -> _Said:
    try:
        said = msgspec.json.decode(line, type=_Said)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        shown = one_line(line[:200].decode("utf-8", "replace"))
        raise ExecutorFailed(
            f"The executor wrote {shown!r}, which is no call and no end ({error})."
        ) from error
    if said == _Said():
        raise ExecutorFailed('The executor wrote a line with neither "call" nor "say" nor "done".')
    return said


def _line(value: object) -> bytes:
    return msgspec.json.encode(value) + b"\n"


def _ended(program: Program) -> str:
    """How a program ended that did not say so itself, with the last of what it printed beside its results."""
    lines = program.aside.text().splitlines()
    told = one_line(" ".join(line for line in lines if line.strip(" ^~")))  # no marks of a traceback
    if len(told) > _REASON_CHARACTERS:
        told = "…" + told[-_REASON_CHARACTERS:].split(" ", 1)[-1]
    return f"It ended with exit status {program.exit_status}{': ' if told else '.'}{told}"


def outside_environ(environ: Mapping[str, str], root: Path) -> dict[str, str]:
    """An environment that does not name a workspace: without AgentX's own, Git's, what a shell left, and every path to it.

    >>> outside_environ({"PATH": "/w/bin:/bin", "PWD": "/w", "HOME": "/root"}, Path("/w"))
    {'PATH': '/bin', 'HOME': '/root'}
    """
    places = "|".join(re.escape(one) for one in {str(root), str(root.resolve())})
    named = re.compile(rf"(?:{places})(?![\w.-])")
    kept: dict[str, str] = {}
    for name, value in environ.items():
        if name.startswith(("AGENTX_", "GIT_")) or name in ("PWD", "OLDPWD", "_"):
            continue
        if not named.search(value):
            kept[name] = value
        elif name.endswith("PATH"):  # its other entries are needed
            kept[name] = os.pathsep.join(part for part in value.split(os.pathsep) if not named.search(part))
    return kept
