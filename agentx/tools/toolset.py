"""The path of every tool call: validation, the gate, approval where required, the record.

A tool is a method with a typed signature, marked with :func:`tool`. Called from Python, it returns its typed
result and raises our errors. Called by an agent (:meth:`ToolSet.call`), it returns a :class:`ToolResult`.
Either way one ``ToolCallExecuted`` is added to the history.
"""

import functools
import inspect
import json
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, get_type_hints

import msgspec
from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from agentx.engine.engine import Engine
from agentx.policy import approvals, file_policy
from agentx.policy.approvals import ApprovalNeeded, NotApproved
from agentx.policy.done_once import AlreadyDone, OutcomeUnknown
from agentx.policy.file_policy import FileRuleBroken, SecretRefused
from agentx.policy.workspace_gates import Gates, Look
from agentx.recording.staging import Content
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.events.actor import Actor
from agentx.storage.events.pipeline_events import FileAmended
from agentx.storage.events.types import (
    Draft,
    Event,
    FileChange,
    ToolCallExecuted,
    ToolCallRequested,
    ToolStatus,
    changes_of,
)
from agentx.storage.secrets.redaction import clean, clean_value
from agentx.synthesis.directing.acts import KeyedAct
from agentx.synthesis.enforcement.evaluate import MAX_CORRECTIONS, Evaluation, Violation, why_asked
from agentx.synthesis.memory.items import checks_of
from agentx.synthesis.model.port import ToolSchema
from agentx.trust.trust import Restricted

P = ParamSpec("P")
R = TypeVar("R", bound="Rendered")
S = TypeVar("S", bound="ToolSet")

ARGUMENT_CHARACTERS = 300
"""Longer arguments are truncated in the record; the content of a write is identified by its blob ID."""

IDEMPOTENCY_KEY = "idempotency_key"
"""The engine fills a parameter of this name.

The value is the same for the same call, however often it is retried.
"""

OWN_PARAMETERS = frozenset(("self", "job", IDEMPOTENCY_KEY))
"""Parameters that the engine fills; agents do not see them."""

_SHORTER = (ARGUMENT_CHARACTERS, 30, 10)
_ARGUMENTS_BYTES = 5_000
_NAME_CHARACTERS = 64
_ID_CHARACTERS = 200
_COMMAND_CHARACTERS = 1_000
_FAULTS = 10


class WriteDenied(AgentXError):
    """A rule of the user forbids the write.

    Attributes:
        violations: Each rule, with the sentence that it came from.
    """

    def __init__(self, violations: tuple[Violation, ...]) -> None:
        lines = [f'{v.reason} Rule {v.item_id}: {v.rule} (the user said: "{v.sentence}")' for v in violations]
        super().__init__("Denied. " + " ".join(lines))
        self.violations = violations

    @property
    def rules(self) -> tuple[str, ...]:
        """IDs of the rules, without duplicates."""
        return tuple(dict.fromkeys(violation.item_id for violation in self.violations))


class CallCutOff(AgentXError):
    """A call was begun, and nobody knows what came of it; its announcement stays without a result."""


_REFUSED = (NotApproved, SecretRefused, FileRuleBroken, Restricted, AlreadyDone, OutcomeUnknown)
"""Further reasons to deny a call, besides the user's rules."""


class Rendered(Protocol):
    """A result that can render itself as text for an agent."""

    def render(self) -> str:
        """Return the result as an agent reads it."""
        ...


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent gets for a call.

    Attributes:
        status: ``SUCCEEDED``, ``FAILED`` or ``DENIED``.
        output: The answer, or one sentence that states the error.
        value: The typed result, if any.
        approval_needed: The call waits for approval; it was not run.
        denied_by: IDs of the rules that denied it.
        left_out: Which acts were left out as repeats; part of the output, too.
    """

    call_id: str
    tool: str
    status: ToolStatus
    output: str
    value: Any = None
    approval_needed: bool = False
    denied_by: tuple[str, ...] = ()
    left_out: str = ""


_NOTED_RULES = 32
"""Maximum number of rules of each list in the record of a call."""


class Job(msgspec.Struct):
    """One running call of a tool. The tool stores here what the record needs besides its answer.

    Attributes:
        changes: Files that it changed.
        command: The command line that it ran.
        exit_code: Its exit status.
        failed: Whether the call counts as failed although it returns an answer.
        printed: The program's output, kept in full in place of the answer.
        report: The test runners' own reports, as JSON.
        denied_by: IDs of the rules that kept some of its changes from being applied.
        event: The event that recorded the call, if it was recorded with a write.
        given: The original arguments; the record holds them truncated and redacted.
        approved: The user has approved exactly this call.
        noted: What the agent reads with the answer.
        kept: IDs of the rules with a check that applied and was kept.
        broke: IDs of the rules that it broke without being stopped.
        acts: What it does, if its tool declares what makes two calls the same act.
        repeats: The event that did the same act, or began it, where the call was refused as a repeat.
        left_out: Which of the acts that it was to do were left out as repeats.
    """

    tools: "ToolSet"
    tool: str
    call_id: str
    arguments: dict[str, Any]
    started: float
    changes: tuple[FileChange, ...] = ()
    command: str = ""
    exit_code: int | None = None
    failed: bool = False
    printed: str = ""
    report: str = ""
    denied_by: tuple[str, ...] = ()
    event: Event | None = None
    given: Mapping[str, Any] = {}
    approved: bool = False
    noted: str = ""
    kept: tuple[str, ...] = ()
    broke: tuple[str, ...] = ()
    acts: tuple[KeyedAct, ...] = ()
    repeats: int = 0
    left_out: str = ""

    def restate(self, arguments: Mapping[str, Any]) -> None:
        """Run and record the call with other arguments than it was made with."""
        self.given = dict(arguments)
        self.arguments = bounded(self.given)

    def write(self, contents: Mapping[str, Content | None], output: str) -> tuple[FileChange, ...]:
        """Change artifacts: check the gate, then record this call and the files in one commit.

        Raises:
            WriteDenied: A rule of the user forbids it; nothing was written.
            FileRuleBroken: The class of a file forbids it, or another run holds its lease.
            ApprovalNeeded: It would change a static file, put a secret into a file, or break a rule that the
                user may have ended.
            SecretRefused: It would put a secret into a file, and the settings deny that without asking.
        """
        with self.tools.engine.write_path.exclusive():  # once for all that follows
            return self._write(self.corrected(contents), output)

    def _write(self, contents: Mapping[str, Content | None], output: str) -> tuple[FileChange, ...]:
        tools = self.tools

        def check() -> list[Draft]:
            evaluation = tools.engine.evaluate_write(contents, actor=tools.actor)
            if evaluation.stopping:
                raise WriteDenied(evaluation.stopping)
            self.evaluated(evaluation)
            amended = file_policy.check(tools.engine, contents, actor=tools.actor, run=tools.run)
            file_policy.check_marks(tools.engine.write_path, contents)
            # Ask once about both static files that would change and secrets that files would hold.
            # So are rules that the user may have ended.
            reasons = (
                file_policy.why_approval(tools.engine, contents, amended, tools.actor),
                why_asked(evaluation),
            )
            why = " ".join(filter(None, reasons))
            if why and not self.approved:
                self.ask()
                raise ApprovalNeeded(self.tool, self.call_id, f"{why} ")
            return [self._amendment(made) for made in amended]

        events = tools.engine.write_path.write(
            contents,
            lambda changes: self.payload("SUCCEEDED", output, changes),
            actor=tools.actor,
            run=tools.run,
            check=check,
        )
        self.event = events[0]
        return tuple(made for event in events for made in changes_of(event))

    def corrected(self, contents: Mapping[str, Content | None]) -> Mapping[str, Content | None]:
        """Return the contents as checks in mode ``fix`` correct them, and tell the agent."""
        engine = self.tools.engine
        if not any(check.mode == "fix" for item in engine.checked() for check in checks_of(item)):
            return contents
        made = dict(contents)
        for _ in range(MAX_CORRECTIONS):
            evaluation = engine.evaluate_write(made, actor=self.tools.actor)
            wrong = {one.path: one for one in reversed(evaluation.of("fix")) if one.correction}
            if not wrong:
                break
            for path, one in wrong.items():
                if (content := made[path]) is not None:
                    made[path] = msgspec.structs.replace(content, data=one.correction.encode())
                    told = f"[Corrected by rule {one.item_id}: {one.reason}]"
                    self.noted = "\n".join(filter(None, (self.noted, told)))
        return made

    def evaluated(self, evaluation: Evaluation) -> None:
        """Keep for the record which rules were kept and broken, and tell the agent what it is warned of."""
        self.kept = tuple(dict.fromkeys((*self.kept, *evaluation.kept)))[:_NOTED_RULES]
        self.broke = tuple(dict.fromkeys((*self.broke, *evaluation.broken)))[:_NOTED_RULES]
        if warned := evaluation.of("warn"):
            told = " ".join(f"{one.reason} Rule {one.item_id}: {one.rule}" for one in warned)
            self.noted = "\n".join(filter(None, (self.noted, f"[Warning: {told}]")))

    def _amendment(self, made: FileAmended) -> Draft:
        """Record the change of a static file with the reason that the user gave on approval."""
        allowed = self.tools.engine.log.state.pending[self.call_id]
        said = msgspec.structs.replace(made, reason=allowed.reason, call_id=self.call_id)
        return Draft(data=said, actor=self.tools.actor, run=self.tools.run, cause=allowed.seq)

    def ask(self) -> None:
        """Record the call as pending, waiting for approval."""
        # Redact before encoding as JSON, where a quotation mark can directly follow a secret.
        whole = json.dumps(clean_value(self.given), default=str)
        if whole != json.dumps(self.given, default=str):
            approvals.keep_arguments(self.tools.engine, self.call_id, self.given)
        self.announce(whole, awaits_approval=True)

    def announce(self, whole: str = "", *, awaits_approval: bool = False, again: bool = False) -> None:
        """Record the call before it runs, so that a crash leaves a trace: a call with unknown outcome.

        With ``again``, a call that is on record as pending is recorded anew.
        """
        tools = self.tools
        if self.call_id in tools.engine.log.state.pending and not again:
            return
        request = ToolCallRequested(
            call_id=self.call_id,
            tool=self.tool,
            arguments=self.arguments,
            whole=tools.engine.write_path.body(whole),
            awaits_approval=awaits_approval,
            acts=tools.engine.acts.announced(self.acts),
        )
        tools.engine.write_path.record([Draft(data=request, actor=tools.actor, run=tools.run)])

    def payload(
        self, status: ToolStatus, output: str, changes: tuple[FileChange, ...] = ()
    ) -> ToolCallExecuted:
        """Return the event of this call."""
        body = self.tools.engine.write_path.body(self.printed or _extract(output))
        return ToolCallExecuted(
            call_id=self.call_id,
            tool=self.tool,
            status=status,
            arguments=self.arguments,
            output=body,
            changes=changes,
            command=_cut(self.command, _COMMAND_CHARACTERS),
            exit_code=self.exit_code,
            denied_by=self.denied_by,
            noted="\n".join(filter(None, (self.left_out, self.noted))),
            kept=self.kept,
            broke=self.broke,
            report=self.tools.engine.write_path.body(self.report),
            repeats=self.repeats,
            duration_ms=int((time.monotonic() - self.started) * 1000),
        )


def tool(method: Callable[Concatenate[S, Job, P], R]) -> Callable[Concatenate[S, P], R]:
    """Turn a method of a :class:`ToolSet` into a tool.

    The first paragraph of the method's docstring is the description that a model sees.
    """
    name = method.__name__

    signature = inspect.signature(method)
    plain = signature.replace(parameters=list(signature.parameters.values())[2:])

    @functools.wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = self.run_tool(name, dict(plain.bind(*args, **kwargs).arguments), uuid.uuid4().hex[:12])
        return result

    _BODIES[name] = method
    return call


_BODIES: dict[str, Callable[..., Any]] = {}


class ToolSet:
    """Runs tools for one actor.

    Args:
        engine: The workspace's engine.
        actor: The caller; set by the channel.
        run: Run that the calls belong to.
        gates: Checks before each call; by default a separate set for this object.
    """

    def __init__(
        self, engine: Engine, actor: str = "agent:main", run: str = "", gates: Gates | None = None
    ) -> None:
        self.engine = engine
        self.actor = actor
        self.run = run
        self.gates = gates or Gates(engine)

    def acting(self, actor: str, run: str) -> "ToolSet":
        """Return the same tools for another actor or run."""
        return type(self)(self.engine, actor, run, self.gates)

    def names(self) -> list[str]:
        """Return the tools that this workspace allows, in a stable order."""
        config = self.engine.config
        allowed = {"run_command": config.tools.run_command, "settle": config.memory.settle}
        off = {name for name, is_allowed in allowed.items() if not is_allowed}
        return [name for name in _BODIES if hasattr(type(self), name) and name not in off]

    def body(self, name: str) -> Callable[..., Any]:
        """Return the code of a tool: it takes the tool set, the job, and the tool's arguments by name."""
        return _BODIES[name]

    def declared(self, name: str) -> Callable[..., Any]:
        """Return the function whose signature and docstring describe the tool."""
        return _BODIES[name]

    def schemas(self) -> list[ToolSchema]:
        """Return the schemas of the tools, for a model."""
        return [_schema(name, self.declared(name)) for name in self.names()]

    def call(
        self,
        name: str,
        arguments: str | Mapping[str, Any],
        *,
        call_id: str = "",
        run: str = "",
        actor: str = "",
    ) -> ToolResult:
        """Run a tool for an agent. Every AgentX error is reported in the result, never raised."""
        if run or actor:
            return self.acting(actor or self.actor, run or self.run).call(name, arguments, call_id=call_id)
        if call_id:  # another process may have recorded it, and an approval
            self.engine.write_path.refresh()
        call_id = call_id or uuid.uuid4().hex[:12]
        job = self._job(name, _parse(name, arguments), call_id)
        try:
            value = self._execute(name, job)
        except ApprovalNeeded as error:
            return ToolResult(
                call_id=call_id, tool=name, status="DENIED", output=str(error), approval_needed=True
            )
        except WriteDenied as error:
            return ToolResult(
                call_id=call_id, tool=name, status="DENIED", output=str(error), denied_by=error.rules
            )
        except _REFUSED as error:
            return ToolResult(call_id=call_id, tool=name, status="DENIED", output=str(error))
        except AgentXError as error:
            return ToolResult(call_id=call_id, tool=name, status="FAILED", output=str(error))
        status: ToolStatus = "FAILED" if getattr(value, "failed", False) else "SUCCEEDED"
        output = clean(value.render())  # a model reads the same text as the record holds
        output = "\n".join(filter(None, (output, job.left_out, job.noted)))
        return ToolResult(
            call_id=call_id, tool=name, status=status, output=output, value=value, left_out=job.left_out
        )

    def run_tool(self, name: str, arguments: dict[str, Any], call_id: str) -> Any:
        """Run a tool, record the call, and return the typed result.

        Raises:
            UsageError: The tool does not exist, or its arguments are invalid.
            ApprovalNeeded: The call waits for approval.
            AgentXError: Any error of the tool.
        """
        return self._execute(name, self._job(name, arguments, call_id))

    def _job(self, name: str, arguments: dict[str, Any], call_id: str) -> Job:
        name_told, id_told = clean(name)[:_NAME_CHARACTERS], clean(call_id)[:_ID_CHARACTERS]
        return Job(self, name_told, id_told, bounded(arguments), time.monotonic(), given=arguments)

    def _execute(self, name: str, job: Job) -> Any:
        arguments = dict(job.given)
        try:
            if name not in self.names():
                raise UsageError(f"Unknown tool {job.tool!r}. The tools are: {', '.join(self.names())}.")
            if job.call_id not in self.engine.log.state.pending:
                # do not ask the user to approve a call that cannot run
                self.checked(name, arguments)
            look = self._look(job, arguments)
            checked = self.checked(name, self._approved(job, arguments, look))
            value = self.body(name)(
                self, job, **{field: getattr(checked, field) for field in type(checked).model_fields}
            )
        except (ApprovalNeeded, CallCutOff):
            raise
        except ValidationError as error:
            wrong = UsageError(_explain(name, error))
            self._record(job, "FAILED", str(wrong))
            raise wrong from error
        except WriteDenied as error:
            job.denied_by = error.rules
            self._record(job, "DENIED", str(error))
            raise
        except _REFUSED as error:
            job.repeats = error.seq if isinstance(error, AlreadyDone | OutcomeUnknown) else 0
            self._record(job, "DENIED", str(error))
            raise
        except AgentXError as error:
            self._record(job, "FAILED", str(error))
            raise
        except OSError as error:
            wrong_file = AgentXError(f"{name} failed: {error.strerror or error}.")
            self._record(job, "FAILED", str(wrong_file))
            raise wrong_file from error
        self._finish(job, value)
        return value

    def _finish(self, job: Job, value: Any) -> None:
        if job.event is None:
            self._record(job, "FAILED" if job.failed else "SUCCEEDED", value.render())
        elif job.approved:
            self._forget(job)

    def _forget(self, job: Job) -> None:
        """Delete what was stored for the call, which has its result, and consume its approval."""
        approvals.forget_arguments(self.engine.root, job.call_id)
        if job.approved:
            self.engine.trust.used(job.call_id, job.tool, job.given)

    def _record(self, job: Job, status: ToolStatus, output: str) -> None:
        if self.engine.write_path.read_only:
            return  # read-only: nothing can be recorded
        if job.approved or job.call_id in self.engine.log.state.pending:
            self._forget(job)
        payload = job.payload(status, output, job.changes)
        with self.engine.write_path.exclusive():
            done = self._done(job) if status == "SUCCEEDED" else []
            drafts = [*done, Draft(data=payload, actor=self.actor, run=self.run)]
            job.event = self.engine.write_path.record(drafts)[-1]
        if status == "DENIED" or job.exit_code is not None:
            # A verdict gets its own commit, so that `git log` shows it with its effects.
            self.engine.write_path.commit()

    def checked(self, name: str, arguments: Mapping[str, Any]) -> BaseModel:
        """Return a tool's arguments, validated, with defaults.

        Raises:
            ValidationError: They are not what the tool takes.
        """
        return _arguments(name, self.declared(name)).model_validate(arguments)

    def _done(self, job: Job) -> list[Draft]:
        """Return the events that record what a call has done."""
        return self.engine.acts.drafts(
            job.tool, job.acts, actor=self.actor, run=self.run, call_id=job.call_id
        )

    def _look(self, job: Job, arguments: dict[str, Any]) -> Look:
        """Check the gate before the call.

        Raises:
            WriteDenied: A rule of the user forbids the call.
        """
        agent = Actor.parse(self.actor).name
        look = self.gates.before_call(job.tool, arguments, run=self.run, agent=agent)
        job.noted = look.note
        fixed = look.evaluation.fixed
        if fixed and "command" in arguments and job.call_id not in self.engine.log.state.pending:
            rules = ", ".join(look.evaluation.broken)
            told = f"[Corrected by rule{'s' * (',' in rules)} {rules}: `{arguments['command']}` → `{fixed}`]"
            arguments["command"] = fixed
            job.restate(arguments)
            look = self.gates.before_call(job.tool, arguments, run=self.run, agent=agent)
            job.noted = "\n".join(filter(None, (told, job.noted, look.note)))
        job.evaluated(look.evaluation)
        if look.violations:
            raise WriteDenied(look.violations)
        return look

    def _approved(self, job: Job, arguments: dict[str, Any], look: Look) -> dict[str, Any]:
        """Return the arguments to run; for an approved call, exactly those that the user saw."""
        pending = self.engine.log.state.pending.get(job.call_id)
        waits = pending is not None and pending.awaits_approval
        if not (look.ask or waits or job.tool in self.engine.config.tools.approve):
            return arguments
        if pending is None:
            job.ask()
        job.given = approvals.approved_arguments(self.engine, job.tool, job.call_id, look.ask, self.actor)
        job.approved = True
        self.gates.grant(self.run, look.flows)
        return job.given


@functools.cache
def _arguments(name: str, declared: Callable[..., Any]) -> type[BaseModel]:
    """Return a tool's arguments as a pydantic model, which validates them and yields their JSON schema."""
    hints = get_type_hints(declared, include_extras=True)
    fields: dict[str, Any] = {
        parameter.name: (
            hints.get(parameter.name, Any),
            ... if parameter.default is inspect.Parameter.empty else parameter.default,
        )
        for parameter in inspect.signature(declared).parameters.values()
        if parameter.name not in OWN_PARAMETERS
    }
    return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)


def arguments_of(name: str, declared: Callable[..., Any]) -> list[str]:
    """Return the names of a tool's arguments."""
    return list(_arguments(name, declared).model_fields)


@functools.cache
def _schema(name: str, declared: Callable[..., Any]) -> ToolSchema:
    description = inspect.cleandoc(declared.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
    own = getattr(declared, "schema", None)  # of a tool that is not written in Python
    return ToolSchema(name, description, own or _arguments(name, declared).model_json_schema())


def _parse(name: str, arguments: str | Mapping[str, Any]) -> dict[str, Any]:
    """Parse a model's arguments, which may not be JSON at all; the error becomes the tool's result."""
    if not isinstance(arguments, str):
        return dict(arguments)
    try:
        parsed = json.loads(arguments or "{}")
    except (ValueError, RecursionError) as error:
        return {"__malformed__": f"The arguments of {name} are not JSON: {error}."}
    return (
        parsed
        if isinstance(parsed, dict)
        else {"__malformed__": f"The arguments of {name} are not a JSON object."}
    )


def _explain(name: str, error: ValidationError) -> str:
    faults = [
        (".".join(str(part) for part in fault["loc"])[:_NAME_CHARACTERS], fault) for fault in error.errors()
    ]
    malformed = [str(fault["input"]) for where, fault in faults if where == "__malformed__"]
    if malformed:
        return malformed[0]
    told = [f"{where}: {fault['msg']}" for where, fault in faults[:_FAULTS]]
    more = [f"and {len(faults) - _FAULTS} more"] if len(faults) > _FAULTS else []
    return f"{name}: " + "; ".join([*told, *more]) + "."


def bounded(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments as recorded: long values truncated, all of them further if there are many."""
    kept: dict[str, Any] = {}
    for characters in _SHORTER:
        first = list(arguments.items())[:20]
        kept = {clean(str(key))[:characters]: _cut(value, characters) for key, value in first}
        if len(json.dumps(kept, default=str)) <= _ARGUMENTS_BYTES:
            break
    return kept


def _cut(value: Any, characters: int) -> Any:
    if isinstance(value, bool | float) or value is None:
        return value
    try:
        text = value if isinstance(value, str) else json.dumps(value, default=str)
    except (ValueError, RecursionError):  # it contains itself, or is nested too deeply
        return f"a {type(value).__name__} that is not JSON"
    if len(text) <= characters:
        return value
    text = clean(text)  # before truncation: half a secret is no longer recognised
    return f"{text[:characters]}… ({len(text):,} characters)"


def _extract(output: str) -> str:
    """Return what the record keeps of an answer that can be reproduced (a file's lines, a listing, hits)."""
    limit = 1_500
    output = clean(output)  # before truncation: half a secret is no longer recognised
    return (
        output if len(output) <= limit else f"{output[:limit]}\n[… {len(output) - limit:,} characters more]"
    )
