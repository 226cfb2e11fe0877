"""Executors carry out a prompt. They get the prompt and tools, and nothing of the history."""

import math
import os
import re
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from agentx.agents.bounds import RAISE, RunLimiter, RunStops
from agentx.agents.run_types import Limits
from agentx.directing.act_reports import ActReports, Reported
from agentx.directing.act_socket import listening, with_acts
from agentx.directing.executor_tools import Result
from agentx.directing.piped_program import OutputTooLong, Program
from agentx.quality import confine
from agentx.quality.sandbox import ConfinedProgram, Isolation, SandboxPolicy, confined
from agentx.storage.errors import AgentXError
from agentx.storage.events.types import RunStatus
from agentx.storage.text import one_line, shorten
from agentx.synthesis.directing.acts import Declaration
from agentx.synthesis.model.port import ChatMessage, ModelClient, ModelError, Reply, ToolSchema, Usage

SUMMARY_CHARACTERS = 10_000_000
"""Characters kept of an executor's answer or output."""

_NEWLINE = b"\n"
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
        noted: What the user should know although it completed.
        steps: Number of model calls.
        usage: Their tokens and costs.
        unanswered: It did not complete because no model answered. That says nothing about the work.
        retryable: Whether a model may answer later.
    """

    status: RunStatus = "COMPLETED"
    summary: str = ""
    reason: str = ""
    noted: str = ""
    steps: int = 0
    usage: Usage = Usage()
    unanswered: bool = False
    retryable: bool = False


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """All that an executor gets.

    Attributes:
        prompt: The task.
        tools: The tools that it may call.
        acts: Records what it reports to have done; ``None`` where nothing is recorded.
        time_limit_s: Time limit in seconds; 0 for none.
        missing: Returns what a model's last answer lacks, as one reminder to it; empty for nothing.
        values: The value of each field of the directive, so that nothing has to be read out of the prompt.
        done: Acts that were done within the windows that are open, by name, the latest first: the values of
            the key, or all arguments of a tool without a declaration, and ``at``. The engine refuses those
            of tools with a declaration.
        due: When the run was due, as ISO 8601 with the offset of the schedule's zone; empty without one.
        schedule: Id of the schedule; empty without one.
        declarations: What makes two calls of a tool the same act, by name.
    """

    prompt: str
    tools: Tools
    acts: ActReports | None = None
    time_limit_s: float = 0.0
    missing: Callable[[str], str] = lambda _answer: ""
    values: Mapping[str, Any] = {}
    done: Mapping[str, list[dict[str, Any]]] = {}
    due: str = ""
    schedule: str = ""
    declarations: Mapping[str, Declaration] = {}

    @property
    def data(self) -> dict[str, Any]:
        """All of it as JSON values, as a program gets it."""
        told = {name: msgspec.to_builtins(declared) for name, declared in self.declarations.items()}
        return {
            "prompt": self.prompt,
            "tools": [msgspec.to_builtins(one) | told.get(one.name, {}) for one in self.tools.schemas()],
            "values": self.values,
            "done": self.done,
            "due": self.due,
            "schedule": self.schedule,
        }


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
        name = "" if isinstance(error, AgentXError) else f"{type(error).__name__}: "
        reason = f"{name}{shorten(one_line(str(error)), _REASON_WORDS)}"
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
    agent with a command line. With a limit ``max_bytes`` the summary is the output as it was printed: a
    longer one, and one that is not text or may lack its end, is a failure. Otherwise its middle may be cut.

    As ``jsonl``, it speaks JSON Lines. It reads ``{"prompt": …, "tools": […]}``. For each tool call it writes
    ``{"call": {"tool": …, "arguments": {…}}}`` and reads ``{"result": {"status": …, "output": …}}``; so it
    does after ``{"act": {"name": …, "key": {…}}}``, by which it reports what it has done itself. It may
    write ``{"say": …}``, and ends with ``{"done": {"status": …, "summary": …, "reason": …}}``.

    Attributes:
        words: The program and its arguments.
        speaks: The protocol: ``text`` or ``jsonl``.
        environ: Its environment, as :func:`outside_environ` makes it from the caller's.
        setting: The setting that names the program, for error messages.
        max_bytes: Maximum number of bytes of its output; for ``jsonl``, of a line, and of all that it says. 0
            for the default.
        limit: The setting of ``max_bytes``, for error messages.
        sandbox: What it may see in the sandbox; ``None`` runs it as the user.
    """

    words: tuple[str, ...]
    speaks: Literal["text", "jsonl"] = "text"
    environ: Mapping[str, str] = {}
    setting: str = "director.executor in agentx.toml"
    max_bytes: int = 0
    limit: str = ""
    sandbox: SandboxPolicy | None = None

    @property
    def name(self) -> str:
        """The program's name."""
        return f"command:{Path(self.words[0]).name}"

    def execute(self, assignment: Assignment) -> Outcome:
        """Run the program; unless it reports its own status, its exit status decides whether it completed.

        Raises:
            ExecutorFailed: It could not be started, or broke the protocol.
        """
        with ExitStack() as stack:
            try:
                ours = stack.enter_context(self._prepared())
                acts, environ = None, ours.environ
                if assignment.acts is not None:
                    reports = assignment.acts
                    acts, place = stack.enter_context(
                        listening(reports.answer, reports.about, _line(assignment.data))
                    )
                    environ = with_acts(environ, place)
                started = Program(
                    ours.argv, environ, ours.place, assignment.time_limit_s, self.max_bytes, acts
                )
            except (OSError, ValueError) as error:  # a word with a NUL is a ValueError
                problem = f"cannot be run: {getattr(error, 'strerror', None) or error}"
                raise ExecutorFailed(
                    f"The executor {self.words[0]!r} {problem}; check {self.setting}."
                ) from error
            with started as program:
                done = self._listen(program, assignment)
        if program.late:
            reason = f"It took longer than {assignment.time_limit_s:g} seconds and was ended."
            return msgspec.structs.replace(done, status="LIMIT_REACHED", reason=reason)
        if done.status == "COMPLETED" and self.speaks == "text" and program.exit_status:
            done = msgspec.structs.replace(done, status="FAILED", reason="")
        if done.status == "FAILED" and not done.reason:
            done = msgspec.structs.replace(done, reason=_why(program, ours.isolation))
        aside = program.aside.text()
        outlived, open_ended = program.outlived, program.open_ended
        if ours.isolation != "none":  # what holds the pipes there may be the sandbox itself
            outlived, open_ended = confine.LEFT in aside, confine.LEFT_WRITING in aside
        if done.status == "COMPLETED" and outlived:
            if open_ended and self.speaks == "text" and self.max_bytes:
                return msgspec.structs.replace(done, status="FAILED", reason=_OPEN_ENDED)
            done = msgspec.structs.replace(done, noted=_OUTLIVED)
        return done

    @contextmanager
    def _prepared(self) -> Iterator[ConfinedProgram]:
        if self.sandbox is not None:
            with confined(self.words, self.environ, self.sandbox) as ours:
                yield ours
            return
        with tempfile.TemporaryDirectory(prefix="agentx-executor-", ignore_cleanup_errors=True) as place:
            yield ConfinedProgram(self.words, Path(place), self.environ, "none")

    def _listen(self, program: Program, assignment: Assignment) -> Outcome:
        """Send the prompt, and return what the program makes of it, as far as it says so itself."""
        try:
            if self.speaks == "jsonl":
                return _converse(program, assignment)
            if not self.max_bytes:
                output = program.rest(assignment.prompt.encode(), SUMMARY_CHARACTERS)
                return Outcome(summary=output.strip())
            printed = program.whole(assignment.prompt.encode())
        except OutputTooLong as error:
            where = " in one line, or in all that it says" if self.speaks == "jsonl" else ""
            more = f"; {self.limit} allows more" if self.limit else ""
            return Outcome(status="FAILED", reason=f"{error}{where}, so it was ended{more}.")
        wrong = _why_no_text(printed)
        if wrong:
            return Outcome(status="FAILED", reason=f"It printed {wrong}, but its file is UTF-8 text.")
        if not printed.strip():
            return Outcome(reason="It printed nothing.")
        return Outcome(summary=printed.decode())


_CLOSED = re.compile(
    r"not permitted|permission denied|PermissionError|read-only file|no such file|not found|No module named"
    r"|name or service|name resolution|resolve|ENOTFOUND|EAI_AGAIN|getaddrinfo|unreachable|refused|offline",
    re.IGNORECASE,
)
_IN_SANDBOX = (
    "It ran in the sandbox, without network, home and other files: set `sandbox: false` for the role, or "
    "list what it reads under `checks.readable` in agentx.toml."
)
_TRACEBACK = "Traceback (most recent call last)"
_OUTLIVED = "It left processes running when it ended; they were ended too."
_OPEN_ENDED = (
    "It ended while processes that it had started could still write its output, which may lack its end; they "
    "were ended too. Let it wait for what it starts."
)


def _why(program: Program, isolation: Isolation) -> str:
    """Return the exit status, and the end of what was printed on stderr; of a traceback, the exceptions."""
    lines = program.aside.text().splitlines()
    begin = next((n for n, line in enumerate(lines) if line.startswith(_TRACEBACK)), len(lines))
    lines[begin:] = [line for line in lines[begin:] if line[:1].strip() and not line.startswith(_TRACEBACK)]
    told = (line for line in lines if line.strip(" ^~") and not line.startswith(confine.LEFT))
    shown = one_line(" ".join(told))
    if len(shown) > _REASON_CHARACTERS:
        shown = "…" + shown[-_REASON_CHARACTERS:].split(" ", 1)[-1]
    closed = isolation != "none" and _CLOSED.search(program.aside.text())
    why = f"{_ending(program.exit_status or 0)}{f': {shown}' if shown else ' and printed nothing on stderr.'}"
    return f"{why.rstrip('.')}. {_IN_SANDBOX}" if closed else why


def _ending(status: int) -> str:
    """Return how a program ended; a sandbox gives 128 + N where signal N ended it.

    >>> _ending(3), _ending(-9), _ending(139)
    ('It ended with exit status 3', 'It was ended by SIGKILL', 'It was ended by SIGSEGV')
    """
    number = -status if status < 0 else status - 128
    known = number in {one.value for one in signal.Signals}
    return (
        f"It was ended by {signal.Signals(number).name}" if known else f"It ended with exit status {status}"
    )


def _why_no_text(content: bytes) -> str:
    """Return where a content is not text; empty where it is."""
    if b"\0" in content:
        return f"a NUL in line {content.count(_NEWLINE, 0, content.index(0)) + 1}"
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content.count(_NEWLINE, 0, error.start) + 1
        return f"the byte 0x{content[error.start]:02X} in line {line}"
    return ""


def _converse(program: Program, assignment: Assignment) -> Outcome:
    program.send(_line(assignment.data))
    said = 0
    while line := program.line():
        spoken = _heard(line)
        if spoken.done is not None:
            return Outcome(**{name: getattr(spoken.done, name) for name in Outcome.__struct_fields__})
        if spoken.say:
            said += len(line)
            program.check_length(said)
            assignment.tools.say(spoken.say)
        if spoken.call is not None:
            result = assignment.tools.call(spoken.call.tool, spoken.call.arguments)
            program.send(_line({"result": result}))
        if spoken.act is not None:
            program.send(_line({"result": _report(assignment, spoken.act)}))
    program.rest(b"", _REASON_CHARACTERS)
    return Outcome(status="FAILED")


_UNKNOWN_FIELD = re.compile(
    r"Object contains unknown field `(?P<name>.*?)`(?: - at `\$\.(?P<inside>\w+)`)?", re.DOTALL
)
"""How the decoder names a field that a line must not have."""


class _Call(msgspec.Struct, forbid_unknown_fields=True):
    tool: str
    arguments: dict[str, Any] = {}


class _Act(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    key: dict[str, Any] = {}
    check: bool = False


def _report(assignment: Assignment, act: _Act) -> Reported:
    if assignment.acts is None:
        return Reported("FAILED", "What this program does is not recorded.")
    return assignment.acts.report(act.name, act.key, only_check=act.check)


class _Done(Outcome, frozen=True, forbid_unknown_fields=True):
    pass


class _Spoken(msgspec.Struct, forbid_unknown_fields=True):
    """A line of a program."""

    call: _Call | None = None
    act: _Act | None = None
    say: str = ""
    done: _Done | None = None


def _heard(line: bytes) -> _Spoken:
    try:
        spoken = msgspec.json.decode(line, type=_Spoken)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        shown = one_line(line[:200].decode("utf-8", "replace"))
        if unknown := _UNKNOWN_FIELD.fullmatch(str(error)):
            name, inside = unknown["name"], unknown["inside"]
            where = f'in "{inside}"' if inside else "in the line"
            hint = ' It belongs inside "act".' if name in _Act.__struct_fields__ and inside != "act" else ""
            raise ExecutorFailed(
                f'The executor wrote {shown!r}: there is no field "{name}" {where}.{hint}'
            ) from error
        raise ExecutorFailed(
            f"The executor wrote {shown!r}, which is neither a call, an act nor an end ({error})."
        ) from error
    if spoken == _Spoken():
        raise ExecutorFailed('The executor wrote a line with neither "call", "act", "say" nor "done".')
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
