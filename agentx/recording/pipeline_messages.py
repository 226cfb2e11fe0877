"""Describes the events of pipelines for the user."""

from agentx.storage.events.pipeline_events import (
    Dispatched,
    PipelineEnded,
    PipelineStarted,
    StageProved,
    StageReopened,
)
from agentx.storage.events.types import Event
from agentx.synthesis.memory.items import shorten
from agentx.synthesis.pipelines.definition.naming import key_of

WORDS = 20
"""Maximum number of words quoted from a reason."""

LOOK_AT = "look at "
"""Prefix of a check's result that leaves a doubt, among the results of a stage."""


def tell_pipeline(event: Event) -> str:
    """Describe an event of a pipeline in one line; empty for other events."""
    match event.data:
        case PipelineStarted(name=name):
            return f"Start pipeline {name}"
        case PipelineEnded(name=name, status=status, reason=reason):
            return f"Pipeline {name} ends: {status}" + (f": {shorten(reason, WORDS)}" if reason else "")
        case Dispatched() as sent:
            return f"Send {sent.role} to {_key(sent)}: {_given(sent)}"
        case StageProved() as proved:
            return f"Prove {_key(proved)}: {', '.join(file.path for file in proved.outputs)}{_added(proved)}"
        case StageReopened(stage=stage, item=item, reason=reason):
            return f"Do {key_of(stage, item)} again: {shorten(reason, WORDS)}"
        case _:
            return ""


def _key(data: Dispatched | StageProved) -> str:
    part = f", part {data.part}" if isinstance(data, Dispatched) and data.part else ""
    return f"{key_of(data.stage, data.item)}{f', round {data.round}' if data.round > 1 else ''}{part}"


def _given(sent: Dispatched) -> str:
    if not sent.max_tokens:
        return "no agent is needed"
    files = f"{len(sent.reads)} file{'s' * (len(sent.reads) != 1)}"
    cut = sum(bool(one.cut) for one in sent.reads) + len(sent.left_out)
    return f"{files}, {sent.tokens:,} of {sent.max_tokens:,} tokens" + (f", {cut} cut" if cut else "")


def _added(proved: StageProved) -> str:
    verdict = f", verdict {proved.verdict}" if proved.verdict else ""
    added = f"; add to {', '.join(made.path for made in proved.changes)}" if proved.changes else ""
    doubts = "".join(f"; {one}" for one in proved.checks if one.startswith(LOOK_AT))
    return f"{verdict}{added}{doubts}"
