"""Check everything that a pipeline made against its present checks and markers; nothing is changed."""

from collections.abc import Callable, Iterator

import msgspec

from agentx.engine.engine import Engine
from agentx.pipelines.pointing.pointed_files import Files
from agentx.pipelines.step_proof import Examiner
from agentx.pipelines.tracked import pipelines
from agentx.storage.errors import AgentXError
from agentx.synthesis.pipelines.definition.plan import Plan
from agentx.synthesis.pipelines.running.due_steps import Schedule


class VerifiedStage(msgspec.Struct, frozen=True, omit_defaults=True):
    """A proved step, checked again.

    Attributes:
        files: Its files.
        faults: What is wrong with them now, one sentence each; empty where they pass.
    """

    step: str
    stage: str
    files: tuple[str, ...]
    faults: tuple[str, ...] = ()


def verified(
    engine: Engine, plan: Plan, files: Files, note: Callable[[int, int], object] = lambda _done, _of: None
) -> Iterator[VerifiedStage]:
    """Yield each proved step, checked against the checks and markers of the plan.

    Args:
        engine: The workspace.
        plan: The pipeline.
        files: Reads the pipeline's files.
        note: Called with the number of steps that are checked, and of all.
    """
    schedule = Schedule(plan, pipelines(engine).of(plan.pipeline.pipeline))
    examiner = Examiner(engine, plan, files, lambda _path, _text: [])
    done = [step for key, step in plan.steps.items() if schedule.stands(key)]
    for number, step in enumerate(done):
        note(number, len(done))
        try:
            wrong = examiner.examine(step, examiner.findings(step)).wrong
        except AgentXError as error:  # an input of a check, or the file itself, cannot be read
            wrong = (str(error),)
        yield VerifiedStage(step.key, step.stage, tuple(write.path for write in step.writes), tuple(wrong))
