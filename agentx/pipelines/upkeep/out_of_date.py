"""What is out of date in a pipeline, and marking it to be done again."""

from collections.abc import Iterator, Mapping

import msgspec

from agentx.agents.turn import alone
from agentx.engine.engine import Engine
from agentx.pipelines.pointing.changes import ChangeWords, OutOfDate, present_of
from agentx.pipelines.pointing.pointed_files import Files
from agentx.pipelines.runner import named_steps
from agentx.pipelines.tracked import pipelines
from agentx.storage.events.pipeline_events import StageReopened
from agentx.storage.events.types import Draft
from agentx.synthesis.pipelines.definition.naming import path_pattern
from agentx.synthesis.pipelines.definition.plan import Plan
from agentx.synthesis.pipelines.running.due_steps import Schedule
from agentx.synthesis.pipelines.running.pipeline_progress import Changed, Proof
from agentx.synthesis.pipelines.running.staleness import Staleness


class LeftOver(msgspec.Struct, frozen=True):
    """A proved step that is not part of the pipeline any more.

    Attributes:
        files: Its files that are still there.
        readers: Stages that read them by a pattern.
    """

    step: str
    files: tuple[str, ...]
    readers: tuple[str, ...]


class StaleOverview(msgspec.Struct, frozen=True):
    """What is out of date in a pipeline.

    Attributes:
        steps: In the order in which they are done.
        proved: Number of proved steps.
        unknown: Of these, steps whose inputs were not recorded, by an earlier version.
        left_over: Proved steps that are not part of the pipeline any more, and whose files are still there.
    """

    pipeline: str
    steps: tuple[OutOfDate, ...]
    proved: int
    unknown: int
    left_over: tuple[LeftOver, ...]


def overview(engine: Engine, plan: Plan, files: Files) -> StaleOverview:
    """Return what is out of date, as the history knows the files of the workspace."""
    known = pipelines(engine)
    progress = known.of(plan.pipeline.pipeline)
    schedule = Schedule(plan, progress)
    staleness = Staleness(plan, progress, present_of(engine, files, known.changed))
    words = ChangeWords(known.changed, files)
    done = [key for key in plan.steps if schedule.stands(key)]
    return StaleOverview(
        pipeline=plan.pipeline.pipeline,
        steps=tuple(words.told(one) for one in staleness.all(schedule.stands)),
        proved=len(done),
        unknown=sum(not progress.proved[key].given.basis.prompt for key in done),
        left_over=tuple(_left_over(plan, progress.proved, known.changed)),
    )


def mark(
    engine: Engine, plan: Plan, files: Files, stage: str = "", item: str = "", reason: str = ""
) -> StaleOverview:
    """Mark what is out of date, and what depends on it, to be done again in the next run if it has changed.

    Args:
        engine: The workspace.
        plan: The pipeline.
        files: Reads the pipeline's files.
        stage: Mark only this stage; empty for all.
        item: Of this stage, mark only this item; empty for all.
        reason: ChangeWords of the user; what changed follows them.

    Returns:
        What was marked.

    Raises:
        PipelineStopped: The stage or item is unknown.
        WorkspaceBusy: The pipeline is running.
    """
    with alone(engine):
        engine.edits.scan()
        found = overview(engine, plan, files)
        keys = {step.key for step in named_steps(plan, stage, item)} if stage else set(plan.steps)
        wanted = [(plan.steps[one.step], one) for one in found.steps if one.step in keys]
        drafts = [
            Draft(
                data=StageReopened(
                    pipeline=found.pipeline,
                    stage=step.stage,
                    item=step.item,
                    reason=f"{reason}: {one.why}" if reason else one.why,
                    if_changed=True,
                ),
                actor=engine.settings.actor,
            )
            for step, one in wanted
        ]
        if drafts:
            engine.write_path.record(drafts)
    return msgspec.structs.replace(found, steps=tuple(one for _, one in wanted))


def _left_over(plan: Plan, proved: Mapping[str, Proof], changed: Mapping[str, Changed]) -> Iterator[LeftOver]:
    written = {write.path for step in plan.steps.values() for write in step.writes}
    patterns = {
        path: step.stage
        for step in plan.steps.values()
        for read in step.reads
        for path in read.paths
        if "*" in path and not read.source
    }
    for key, proof in proved.items():
        if key in plan.steps:
            continue
        paths = [output.path for output in proof.outputs if output.path not in written]
        there = [path for path in paths if path in changed and changed[path].blob]
        readers = (
            stage for pattern, stage in patterns.items() if any(map(path_pattern(pattern).fullmatch, there))
        )
        if there:
            yield LeftOver(key, tuple(there), tuple(dict.fromkeys(readers)))
