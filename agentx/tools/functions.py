"""Tools brought by a program: its own functions, called through the same gate and record as all tools."""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec
from pydantic import ValidationError

from agentx.engine.engine import Engine
from agentx.policy.act_words import declared_in
from agentx.policy.done_once import acts_of, refuse_repeat, standing
from agentx.policy.workspace_gates import Gates, Look
from agentx.storage.errors import AgentXError
from agentx.storage.secrets.redaction import clean_value
from agentx.synthesis.directing.acts import Declaration, KeyedAct, Occasion, identity
from agentx.synthesis.learning.auditing import unsettled
from agentx.synthesis.state.state import PendingCall
from agentx.tools.acts import declaration
from agentx.tools.toolset import IDEMPOTENCY_KEY, CallCutOff, Job, ToolSet, arguments_of


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
    call, so that it can distinguish a retry from a second order. A call that does the same act as one whose
    outcome is unknown counts as that call, in whatever run it is retried. Without a declaration of the act
    (:func:`agentx.act`), that is one with the same arguments.

    A function with a declaration does an act once in its window; a repeat is refused before it runs. If each
    entry of a list is an act (``titles[]``), it runs with the entries that were not done.

    Args:
        engine: The workspace's engine.
        functions: By the name of the tool. The types of the parameters become its schema, the docstring the
            description that an agent sees.
        actor: The caller; set by the channel.
        run: Run that the calls belong to.
        gates: Checks before each call; by default a separate set for this object.
        occasion: The schedule and due time of the run, for acts that are done once in a window.

    Attributes:
        declarations: What makes two calls the same act, by name of the function.

    Raises:
        UsageError: A declaration cannot be used.
    """

    def __init__(
        self,
        engine: Engine,
        functions: Mapping[str, Callable[..., Any]],
        actor: str = "agent:main",
        run: str = "",
        gates: Gates | None = None,
        occasion: Occasion | None = None,
    ) -> None:
        super().__init__(engine, actor, run, gates)
        self._functions = functions
        self._announced: set[str] = set()
        self._occasion = occasion or Occasion(run=run)
        self.declarations: dict[str, Declaration] = {}
        for name, function in functions.items():
            declared = declared_in(engine, name) or declaration(function)
            if declared is not None:
                declared.check(name, arguments_of(name, function))
                self.declarations[name] = declared

    def acting(self, actor: str, run: str) -> "FunctionTools":
        """Return the same tools for another actor or run."""
        occasion = msgspec.structs.replace(self._occasion, run=run)
        made = FunctionTools(self.engine, self._functions, actor, run, self.gates, occasion)
        made._announced = self._announced
        return made

    def names(self) -> list[str]:
        """Return the tools, in the order in which they were given."""
        return list(self._functions)

    @property
    def repeatable(self) -> list[str]:
        """The functions of which a call without a result may be made again."""
        return [name for name in self._functions if name not in self.declarations or self._takes_key(name)]

    def _takes_key(self, name: str) -> bool:
        return IDEMPOTENCY_KEY in inspect.signature(self._functions[name]).parameters

    def declared(self, name: str) -> Callable[..., Any]:
        """Return the function."""
        return self._functions[name]

    def body(self, name: str) -> Callable[..., Any]:
        """Return code that announces the call and calls the function.

        A function that only looks is not announced: nothing is unknown if it is cut off.
        """
        function = self._functions[name]

        def run(_tools: ToolSet, job: Job, **arguments: Any) -> Answered:
            if not self._only_looks(name):
                with self.engine.write_path.exclusive():
                    self._leave_out_since(job, arguments)
                    key = self._announce(name, job, arguments)
                if self._takes_key(name):
                    arguments[IDEMPOTENCY_KEY] = key
            elif self._takes_key(name):
                arguments[IDEMPOTENCY_KEY] = key_of(self.run, job.call_id, name)
            try:
                answered = Answered(function(**arguments))
                job.printed = answered.render()
            except CallCutOff:
                self._announced.discard(job.call_id)  # the next one with these arguments is the same call
                raise
            except Exception as error:
                raise ToolFailed(f"{name} failed: {error}") from error
            return answered

        return run

    def _only_looks(self, name: str) -> bool:
        return name in self.declarations and self.declarations[name].window == "never"

    def _announce(self, name: str, job: Job, arguments: dict[str, Any]) -> str:
        """Record the call before it runs, unless its act is refused as a repeat; return its key."""
        whole = json.dumps(clean_value(arguments), default=str)
        with self.engine.write_path.exclusive():
            began = self._cut_off(name, whole, job.acts)
            if began is not None:
                # The same call: its result settles the earlier one, whose outcome was unknown.
                job.call_id = began.call_id
            refuse_repeat(self.engine, name, job.acts, call_id=job.call_id)
            pending = self.engine.log.state.pending.get(job.call_id)
            # Once approved it is announced again: from here on, it is not waiting but may have been done.
            job.announce(whole, again=bool(job.acts) and pending is not None and pending.awaits_approval)
        self._announced.add(job.call_id)
        return key_of(began.run if began else self.run, job.call_id, name)

    def _leave_out_since(self, job: Job, arguments: dict[str, Any]) -> None:
        """Leave out what another process has done since the call was checked."""
        if job.call_id in self.engine.log.state.pending:
            return  # the user approved exactly this call
        changed = self._leave_out(job)
        checked = self.checked(job.tool, job.given) if changed else None
        arguments.update({name: getattr(checked, name) for name in changed})

    def _look(self, job: Job, arguments: dict[str, Any]) -> Look:
        """Refuse a repeat, or leave out what was done of several acts; then check the gate before the call.

        Raises:
            AlreadyDone: The act was done.
            OutcomeUnknown: The act was begun, and has no result.
            WriteDenied: A rule of the user forbids the call.
        """
        declared = self.declarations.get(job.tool)
        pending = self.engine.log.state.pending.get(job.call_id)
        if pending is not None:
            job.acts = tuple(self.engine.acts.begun_by(pending))
        elif declared is not None:
            values = self.checked(job.tool, arguments).model_dump(mode="json", fallback=str)
            job.acts = acts_of(job.tool, declared, values, self._occasion)
        if job.acts:
            job.call_id = self._waiting(job) or job.call_id
            if job.call_id not in self.engine.log.state.pending:
                arguments.update(self._leave_out(job))
                job.call_id = self._waiting(job) or job.call_id
            began = self._cut_off(job.tool, "", job.acts)
            refuse_repeat(self.engine, job.tool, job.acts, call_id=(began or job).call_id)
        return super()._look(job, arguments)

    def _leave_out(self, job: Job) -> dict[str, Any]:
        """Leave out of a call the entries of a list that were done, have no result, or are named twice.

        Those of a call that was cut off and may be made again as the same call stay. A call that the function
        does not take without the entries is left as it is.

        Returns:
            The argument that changes.
        """
        declared = self.declarations.get(job.tool)
        if declared is None or not declared.each or not job.acts:
            return {}
        given = self.checked(job.tool, job.given).model_dump(mode="json", fallback=str)
        named = len(declared.keys(job.tool, given))
        found = standing(self.engine, job.tool, job.acts, call_id=job.call_id)
        done = {act.id for act, _ in found.done}
        undone = tuple(act for act in job.acts if act.id not in done)
        if self._cut_off(job.tool, "", undone) is not None:
            found = msgspec.structs.replace(found, unknown=(), new=undone)
        wanted = {act.id for act in found.new}
        if len(wanted) in (0, named):
            return {}

        def kept(key: dict[str, Any]) -> bool:
            own = identity(job.tool, key, job.acts[0].window)
            is_first = own in wanted
            wanted.discard(own)
            return is_first

        changed = declared.only(job.tool, given, kept)
        try:
            self.checked(job.tool, {**job.given, **changed})
        except ValidationError:
            return {}
        twice = named - len(job.acts)
        repeated = f"Left out, named twice: {twice}." if twice else ""
        job.left_out = " ".join(filter(None, (job.left_out, found.left_out, repeated)))
        job.acts = found.new
        job.restate({**job.given, **changed})
        return changed

    def _waiting(self, job: Job) -> str:
        """Return the id of a call of the same act that waits for approval, in whatever run it was made."""
        wanted = [act.id for act in job.acts]
        calls = self.engine.log.state.pending.values()
        same = (
            call.call_id
            for call in calls
            if call.awaits_approval and [act.id for act in self.engine.acts.begun_by(call)] == wanted
        )
        return next(same, "")

    def _cut_off(self, name: str, whole: str, acts: Sequence[KeyedAct]) -> PendingCall | None:
        """Find an unfinished call that another process began and that may be made again as the same call.

        It is the same act or, without a declaration, has the same arguments. A declared function is called
        again only if it takes an idempotency key.
        """
        if name not in self.repeatable:
            return None
        wanted = [act.id for act in acts]
        return next(
            (
                call
                for call in unsettled(self.engine.snapshot(), self.run)
                if call.tool == name
                and call.call_id not in self._announced
                and (
                    [act.id for act in self.engine.acts.begun_by(call)] == wanted
                    if wanted
                    else self.engine.read_body(call.whole) == whole
                )
            ),
            None,
        )


def key_of(run: str, call_id: str, tool: str) -> str:
    """Return the key of a call, 32 hexadecimal digits: the same for every retry of the call."""
    return blake2b(f"{run}\0{call_id}\0{tool}".encode(), digest_size=16).hexdigest()
