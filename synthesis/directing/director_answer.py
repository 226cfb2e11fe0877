"""Parse and validate a director's answer.

An answer that cannot be used is rejected as a whole. The error sentence tells the model how to fix it.
"""

from typing import Annotated

import msgspec

from agentx.storage.errors import UsageError
from agentx.storage.events.direction_events import CheckpointSort, NewCheckpoint, NewKnowledge, ReusePolicy
from agentx.storage.text import one_line
from agentx.synthesis.directing.field_check import Check
from agentx.synthesis.directing.fields import RESOLVERS, fill, names, parse
from agentx.synthesis.directing.foreign_texts import without_sources
from agentx.synthesis.directing.policy import CONDITIONS
from agentx.synthesis.model.port import Reply
from agentx.synthesis.model.structured import AnswerUnreadable, object_of

TOOL = "direct"
"""Name of the tool that a director answers with; calling it runs nothing."""

MAX_RUNS = 50
"""Maximum number of runs that one directive serves."""

MAX_PROMPT = 20_000
"""Maximum length of an executor's prompt, in characters."""

MAX_BYTES = 8_000
"""Maximum size of the answer without the prompt, in UTF-8 bytes; it is stored in one event."""

_WORDS = Annotated[str, msgspec.Meta(max_length=800)]
_NOTE = Annotated[str, msgspec.Meta(min_length=1, max_length=400)]
_FEW = msgspec.Meta(max_length=8)


class _Policy(msgspec.Struct):
    valid_for_runs: Annotated[int, msgspec.Meta(ge=1, le=MAX_RUNS)]
    invalidate_on: Annotated[tuple[_NOTE, ...], msgspec.Meta(max_length=20)] = ()
    dynamic_fields: Annotated[dict[_NOTE, _NOTE], msgspec.Meta(max_length=12)] = {}


class _Checkpoint(msgspec.Struct):
    type: CheckpointSort
    text: _NOTE
    actionable: Annotated[str, msgspec.Meta(max_length=400)] = ""


class _Knowledge(msgspec.Struct):
    topic: Annotated[str, msgspec.Meta(min_length=1, max_length=60)]
    text: _NOTE


class _DirectorAnswer(msgspec.Struct):
    analysis_summary: _WORDS
    strategy: _WORDS
    executor_system_prompt: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_PROMPT)]
    reuse_policy: _Policy
    reflection: _WORDS = ""
    checkpoints_to_create: Annotated[tuple[_Checkpoint, ...], _FEW] = ()
    knowledge_to_create: Annotated[tuple[_Knowledge, ...], _FEW] = ()


class Directive(msgspec.Struct, frozen=True, kw_only=True):
    """A validated directive; :class:`agentx.storage.events.types.DirectiveIssued` documents the fields."""

    summary: str
    strategy: str
    prompt: str
    policy: ReusePolicy
    reflection: str = ""
    checkpoints: tuple[NewCheckpoint, ...] = ()
    knowledge: tuple[NewKnowledge, ...] = ()


def read(reply: Reply, check: Check = lambda _lookup: None) -> Directive:
    """Parse a director's reply, and check its resolvers.

    Raises :class:`AnswerUnreadable`, with a sentence for the model, if it cannot be carried out.
    """
    try:
        answer = msgspec.convert(object_of(reply, TOOL), _DirectorAnswer)
        prompt = without_sources(answer.executor_system_prompt)
        directive = Directive(
            summary=one_line(answer.analysis_summary),
            strategy=one_line(answer.strategy),
            reflection=one_line(answer.reflection),
            prompt=prompt,
            policy=_checked(answer.reuse_policy, prompt, check),
            checkpoints=tuple(
                NewCheckpoint(one.type, one_line(one.text), one_line(one.actionable))
                for one in answer.checkpoints_to_create
            ),
            knowledge=tuple(
                NewKnowledge(one_line(one.topic), one_line(one.text)) for one in answer.knowledge_to_create
            ),
        )
    except msgspec.ValidationError as error:
        raise AnswerUnreadable(f"the answer of {reply.model} is not a directive: {error}") from error
    except UsageError as error:
        raise AnswerUnreadable(f"the directive of {reply.model} cannot be carried out: {error}") from error
    size = len(msgspec.json.encode(msgspec.structs.replace(directive, prompt="")))
    if size > MAX_BYTES:
        raise AnswerUnreadable(
            f"the directive of {reply.model} has {size:,} bytes beside its prompt; "
            f"at most {MAX_BYTES:,} are allowed, so shorten it"
        )
    return directive


def _checked(policy: _Policy, prompt: str, check: Check) -> ReusePolicy:
    """Return the reuse policy, with bare field names."""
    for name in policy.invalidate_on:
        if name.partition(":")[0] not in CONDITIONS:
            raise UsageError(f"unknown condition {name!r}; known: {', '.join(sorted(CONDITIONS))}")
    given = {name.strip("{} "): one_line(text) for name, text in policy.dynamic_fields.items()}
    wanted = names(prompt)
    if not prompt or "" in wanted:
        raise UsageError("the prompt is empty or has a field without a name")
    if "{{" in fill(prompt, dict.fromkeys(wanted, "")):
        raise UsageError("the prompt has a {{ that does not begin a field")
    for name in wanted:
        if name not in given and name not in RESOLVERS:
            raise UsageError(f"the field {name!r} has no resolver and no description")
        if (lookup := parse(given.get(name, name)) or parse(name)) is not None:
            try:
                check(lookup)
            except UsageError as error:
                raise UsageError(f"the field {name!r} cannot be used: {error}") from error
    fields = {name: given.get(name, name) for name in wanted}
    return ReusePolicy(policy.valid_for_runs, policy.invalidate_on, fields)
