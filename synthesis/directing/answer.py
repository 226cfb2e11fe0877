"""A director's answer, read and checked: what cannot be used is refused as a whole, with a sentence that it can mend it by."""

from typing import Annotated

import msgspec

from agentx.storage.errors import UsageError
from agentx.storage.events.direction_events import CheckpointSort, NewCheckpoint, NewKnowledge, ReusePolicy
from agentx.storage.text import one_line
from agentx.synthesis.directing.fields import RESOLVERS, fill, names, parse
from agentx.synthesis.directing.policy import CONDITIONS
from agentx.synthesis.directing.wording import without_sources
from agentx.synthesis.model.port import Reply
from agentx.synthesis.model.structured import AnswerUnreadable, object_of

TOOL = "direct"
"""The tool that a director answers with; nothing runs when it is called."""

MAX_RUNS = 50
"""A directive serves for so many runs at most."""

MAX_PROMPT = 20_000
"""Characters of an executor's prompt."""

MAX_BYTES = 8_000
"""All but the prompt, as UTF-8: it stands in one event."""

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


class _Answer(msgspec.Struct):
    analysis_summary: _WORDS
    strategy: _WORDS
    executor_system_prompt: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_PROMPT)]
    reuse_policy: _Policy
    reflection: _WORDS = ""
    checkpoints_to_create: Annotated[tuple[_Checkpoint, ...], _FEW] = ()
    knowledge_to_create: Annotated[tuple[_Knowledge, ...], _FEW] = ()


class Directive(msgspec.Struct, frozen=True, kw_only=True):
    """What a director wants; :class:`agentx.storage.events.types.DirectiveIssued` says what each part is."""

    summary: str
    strategy: str
    prompt: str
    policy: ReusePolicy
    reflection: str = ""
    checkpoints: tuple[NewCheckpoint, ...] = ()
    knowledge: tuple[NewKnowledge, ...] = ()


def read(reply: Reply) -> Directive:
    """Read a director's reply.

    Raises:
        AnswerUnreadable: It is no directive that can be carried out; the sentence can be shown to the model.
    """
    try:
        answer = msgspec.convert(object_of(reply, TOOL), _Answer)
        prompt = without_sources(answer.executor_system_prompt)
        directive = Directive(
            summary=one_line(answer.analysis_summary),
            strategy=one_line(answer.strategy),
            reflection=one_line(answer.reflection),
            prompt=prompt,
            policy=_checked(answer.reuse_policy, prompt),
            checkpoints=tuple(
                NewCheckpoint(one.type, one_line(one.text), one_line(one.actionable))
                for one in answer.checkpoints_to_create
            ),
            knowledge=tuple(
                NewKnowledge(one_line(one.topic), one_line(one.text)) for one in answer.knowledge_to_create
            ),
        )
    except msgspec.ValidationError as error:
        raise AnswerUnreadable(f"the answer of {reply.model} is no directive: {error}") from error
    except UsageError as error:
        raise AnswerUnreadable(f"the directive of {reply.model} cannot be carried out: {error}") from error
    size = len(msgspec.json.encode(msgspec.structs.replace(directive, prompt="")))
    if size > MAX_BYTES:
        raise AnswerUnreadable(
            f"the directive of {reply.model} has {size:,} bytes beside its prompt; {MAX_BYTES:,} are kept, so say less"
        )
    return directive


def _checked(policy: _Policy, prompt: str) -> ReusePolicy:
    """The policy, with the fields under their bare names.

    Raises:
        UsageError: It names a condition that nobody knows, or the prompt a field for which nothing stands.
    """
    for name in policy.invalidate_on:
        if name.partition(":")[0] not in CONDITIONS:
            raise UsageError(f"there is no condition {name!r}; there are {', '.join(sorted(CONDITIONS))}")
    given = {name.strip("{} "): one_line(text) for name, text in policy.dynamic_fields.items()}
    wanted = names(prompt)
    if not prompt or "" in wanted:
        raise UsageError("the prompt is empty or has a field without a name")
    if "{{" in fill(prompt, dict.fromkeys(wanted, "")):
        raise UsageError("the prompt has a {{ that begins no field")
    for name in wanted:
        if name not in given and name not in RESOLVERS:
            raise UsageError(f"nothing says what stands for the field {name!r}")
        parse(given.get(name, name))
    return ReusePolicy(
        policy.valid_for_runs, policy.invalidate_on, {name: given.get(name, name) for name in wanted}
    )
