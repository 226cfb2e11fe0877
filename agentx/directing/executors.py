"""Executors carry out a prompt. They get the prompt and tools, and nothing of the history."""

import math
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from agentx.agents.bounds import RAISE, RunLimiter, RunStops
from agentx.agents.run_types import Limits
from agentx.directing.executor_tools import Result
from agentx.directing.piped_program import Program
from agentx.storage.errors import AgentXError
from agentx.storage.events.types import RunStatus
from agentx.storage.text import one_line, shorten
from agentx.synthesis.model.port import ChatMessage, ModelClient, ModelError, Reply, ToolSchema, Usage

SUMMARY_CHARACTERS = 100_000
"""Characters kept of an executor's answer or output."""

_REASON_CHARACTERS = 500
_REASON_WORDS = 60

_MOST_CUTS = 8
"""Maximum number of times that an answer is continued after the provider's output limit cut it."""

_GO_ON = "Your answer was cut by the output limit. Go on exactly where it stopped, without a word before."
_CUT_CALL = "The call was cut by the output limit: write a long file in several smaller calls."


class Tools(Protocol):
    """The tools that an executor may call, and the record of its thoughts."""

    def schemas(self) -> list[ToolSchema]:
        """Return the schemas of the tools for a model."""
        ...

    def call(self, name: str, arguments: str | Mapping[str, Any]) -> Result:
        """Run a tool; errors are returned in the result, never raised."""
        ...

    def say(self, text: str) -> None:
        """Record what the executor writes between its calls."""
        ...


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of carrying out a prompt.

    Attributes:
        status: How it ended.
        summary: What was done, in the executor's own words.
        reason: Why it did not complete, for the user.
        steps: Number of model calls.
        usage: Their tokens and costs.
        unanswered: It did not complete because no model answered. That says nothing about the work.
        retryable: Whether a model may answer later.
    """

    status: RunStatus = "COMPLETED"
    summary: str = ""
    reason: str = ""
    steps: int = 0
    usage: Usage = Usage()
    unanswered: bool = False
    retryable: bool = False


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """All that an executor gets.

    Attributes:
        prompt: The task.
        tools: The tools that it may call.
        time_limit_s: Time limit in seconds; 0 for none.
        missing: Returns what a model's last answer lacks, as one reminder to it; empty for nothing.
    """

    prompt: str
    tools: Tools
    time_limit_s: float = 0.0
    missing: Callable[[str], str] = lambda _answer: ""


class Executor(Protocol):
    """Carries out a prompt."""

    @property
    def name(self) -> str:
        """Recorded as ``RunStarted.model``."""
        ...

    def execute(self, assignment: Assignment) -> Outcome:
        """Carry out an assignment; an exception ends the run as ``FAILED``."""
        ...


def carry_out(executor: Executor, assignment: Assignment) -> Outcome:
    """Have a prompt carried out, and return an outcome whatever the executor raises or returns.

    Raises:
        KeyboardInterrupt: The user interrupted it.
    """
    try:
        return _checked(executor.execute(assignment))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - an executor may be anything
        reason = f"{type(error).__name__}: {shorten(one_line(str(error)), _REASON_WORDS)}"
        is_model = isinstance(error, ModelError)
        return Outcome(
            status="FAILED",
            reason=reason,
            usage=error.usage if isinstance(error, ModelError) else Usage(),
            unanswered=is_model,
            retryable=isinstance(error, ModelError) and error.retryable,
        )


def _checked(outcome: Outcome) -> Outcome:
    """Validate an executor's outcome, which may be anything.

    Raises:
        ValueError: It is not an outcome, or has an invalid status or number.
    """
    checked = msgspec.convert(msgspec.to_builtins(outcome), Outcome)
    used = checked.usage
    if not 0 <= used.cost_usd < math.inf:
        raise ValueError(f"The executor reported an invalid cost: {used.cost_usd} USD.")
    if min(used.prompt_tokens, used.completion_tokens) < 0:
        raise ValueError("The executor reported a negative token count.")
    return checked


class Function(msgspec.Struct, frozen=True):
    """An executor that is a function of an assignment; it returns a summary or a whole outcome."""

    name: str
    run: Callable[[Assignment], str | Outcome | None]

    def execute(self, assignment: Assignment) -> Outcome:
        """Call the function."""
        returned = self.run(assignment)
        return returned if isinstance(returned, Outcome) else Outcome(summary=returned or "")


class ModelLoop(msgspec.Struct, frozen=True):
    """An executor that is a model in a loop: it is called until it calls no more tools.

    Attributes:
        advice: How the user raises a limit.
    """

    model: ModelClient
    limits: Limits = Limits()
    advice: str = RAISE

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.name

    def execute(self, assignment: Assignment) -> Outcome:
        """Call the model and its tools in turn.

        Raises:
            ModelError: The model failed.
        """
        limits = self.limits
        if assignment.time_limit_s:
            limits = msgspec.structs.replace(limits, max_time_s=assignment.time_limit_s)
        bounds = RunLimiter(limits, self.advice)
        chat = [ChatMessage("system", assignment.prompt), ChatMessage("user", "Begin.")]
        begun, cuts, reminded = "", 0, False
        try:
            while True:
                bounds.begin_step()
                parts = self.model.stream(chat, assignment.tools.schemas(), timeout_s=bounds.answer_time_s)
                reply = next((part for part in parts if isinstance(part, Reply)), None)
                if reply is None:
                    raise ExecutorFailed(f"{self.model.name} ended its stream without a reply.")
                bounds.spend(reply.usage)
                chat.append(ChatMessage("assistant", reply.text, reply.tool_calls))
                if not reply.tool_calls:
                    begun, cuts = begun + reply.text, cuts + reply.cut_off
                    if cuts > _MOST_CUTS:
                        raise ExecutorFailed(f"The answer was longer than {cuts} times the output limit.")
                    lacks = "" if reminded or reply.cut_off else assignment.missing(begun)
                    if not (reply.cut_off or lacks):
                        return Outcome(summary=begun, steps=bounds.steps, usage=bounds.usage)
                    chat.append(ChatMessage("user", lacks or _GO_ON))
                    begun, reminded = ("", True) if lacks else (begun, reminded)
                    continue
                if reply.text:
                    assignment.tools.say(reply.text)
                for call in reply.tool_calls:
                    bounds.check_repeats(call.name, call.arguments)
                    result = assignment.tools.call(call.name, call.arguments)
                    cut = f" {_CUT_CALL}" if reply.cut_off and result.status != "SUCCEEDED" else ""
                    chat.append(ChatMessage("tool", f"{result.output}{cut}", tool_call_id=call.id))
        except RunStops as stop:
            return Outcome(status=stop.status, reason=stop.reason, steps=bounds.steps, usage=bounds.usage)


class ExecutorFailed(AgentXError):
    """An executor could not be started, or broke the agreed protocol."""


class Command(msgspec.Struct, frozen=True):
    """An executor that is a program.

    It runs in its own empty directory, with an environment that names no workspace.

    As ``text``, it reads the prompt on stdin and gets no tools; its output is the summary. That fits any
    agent with a command line.

    As ``jsonl``, it speaks JSON Lines. It reads ``{"prompt": …, "tools": […]}``. For each tool call it writes
    ``{"call": {"tool": …, "arguments": {…}}}`` and reads ``{"result": {"status": …, "output": …}}``. It may
    write ``{"say": …}``, and ends with ``{"done": {"status": …, "summary": …, "reason": …}}``.

    Attributes:
        words: The program and its arguments.
        speaks: The protocol: ``text`` or ``jsonl``.
        environ: Its environment, as :func:`outside_environ` makes it from the caller's.
        setting: The setting that names the program, for error messages.
    """

    words: tuple[str, ...]
    speaks: Literal["text", "jsonl"] = "text"
    environ: Mapping[str, str] = {}
    setting: str = "director.executor in agentx.toml"

    @property
    def name(self) -> str:
        """The program's name."""
        return f"command:{Path(self.words[0]).name}"

    def execute(self, assignment: Assignment) -> Outcome:
        """Run the program; unless it reports its own status, its exit status decides whether it completed.

        Raises:
            ExecutorFailed: It could not be started, or broke the protocol.
        """
        with tempfile.TemporaryDirectory(prefix="agentx-executor-", ignore_cleanup_errors=True) as place:
            try:
                started = Program(self.words, self.environ, Path(place), assignment.time_limit_s)
            except (OSError, ValueError) as error:  # a word with a NUL is a ValueError
                problem = f"cannot be run: {getattr(error, 'strerror', None) or error}"
                raise ExecutorFailed(
                    f"The executor {self.words[0]!r} {problem}; check {self.setting}."
                ) from error
            with started as program:
                if self.speaks == "jsonl":
                    done = _converse(program, assignment)
                else:
                    output = program.rest(assignment.prompt.encode(), SUMMARY_CHARACTERS)
                    done = Outcome(summary=output.strip())
            if program.late:
                reason = f"It took longer than {assignment.time_limit_s:g} seconds and was ended."
                return msgspec.structs.replace(done, status="LIMIT_REACHED", reason=reason)
            if done.status == "COMPLETED" and self.speaks == "text" and program.exit_status:
                done = msgspec.structs.replace(done, status="FAILED")
            if done.status == "FAILED" and not done.reason:
                # The end of what it printed on stderr, without the marks of a traceback
                lines = (line for line in program.aside.text().splitlines() if line.strip(" ^~"))
                shown = one_line(" ".join(lines))
                if len(shown) > _REASON_CHARACTERS:
                    shown = "…" + shown[-_REASON_CHARACTERS:].split(" ", 1)[-1]
                reason = f"It ended with exit status {program.exit_status}{': ' if shown else '.'}{shown}"
                done = msgspec.structs.replace(done, reason=reason)
            return done


def _converse(program: Program, assignment: Assignment) -> Outcome:
    program.send(_line({"prompt": assignment.prompt, "tools": assignment.tools.schemas()}))
    while line := program.line():
        spoken = _heard(line)
        if spoken.done is not None:
            return spoken.done
        if spoken.say:
            assignment.tools.say(spoken.say)
        if spoken.call is not None:
            result = assignment.tools.call(spoken.call.tool, spoken.call.arguments)
            program.send(_line({"result": result}))
    program.rest(b"", _REASON_CHARACTERS)
    return Outcome(status="FAILED")


class _Call(msgspec.Struct):
    tool: str
    arguments: dict[str, Any] = {}


class _Spoken(msgspec.Struct):
    """A line of a program."""

    call: _Call | None = None
    say: str = ""
    done: Outcome | None = None


def _heard(line: bytes) -> _Spoken:
    try:
        spoken = msgspec.json.decode(line, type=_Spoken)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        shown = one_line(line[:200].decode("utf-8", "replace"))
        raise ExecutorFailed(
            f"The executor wrote {shown!r}, which is neither a call nor an end ({error})."
        ) from error
    if spoken == _Spoken():
        raise ExecutorFailed('The executor wrote a line with neither "call" nor "say" nor "done".')
    return spoken


def _line(value: object) -> bytes:
    return msgspec.json.encode(value) + b"\n"


def outside_environ(environ: Mapping[str, str], root: Path) -> dict[str, str]:
    """Return an environment that does not name a workspace.

    Variables of AgentX, Git and the shell's state are removed, and so is every path into the workspace.

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
