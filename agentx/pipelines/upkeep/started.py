"""The pipelines that were started in a workspace: as they were started, and as their files are now."""

import functools
import os
from pathlib import Path

from agentx.engine.engine import Engine
from agentx.pipelines.found_items import from_text
from agentx.pipelines.runner import Runner
from agentx.pipelines.tracked import pipelines
from agentx.storage.errors import UsageError
from agentx.synthesis.pipelines.definition.plan import Plan
from agentx.synthesis.pipelines.definition.reading import parse, with_variables
from agentx.synthesis.pipelines.definition.steps import resolve
from agentx.synthesis.pipelines.running.pipeline_progress import Progress


def started(engine: Engine, name: str = "") -> list[Progress]:
    """Return the pipelines that were started, the latest one last; with a name, only that one."""
    known = pipelines(engine).known.values()
    found = [one for one in known if one.started_at and name in ("", one.name)]
    return sorted(found, key=lambda one: one.started_at)


def started_plan(engine: Engine, name: str = "") -> Plan:
    """Return a pipeline as its file was when it was last started; by default the one started last.

    Raises:
        UsageError: It was never started here.
    """
    if found := started(engine, name):
        return plan_of(engine, found[-1])
    names = ", ".join(one.name for one in started(engine))
    there = f"; there are: {names}" if names else " yet: `agentx pipeline run FILE` starts one"
    raise UsageError(f"No pipeline{f' {name!r}' if name else ''} was started here{there}.")


def plan_of(engine: Engine, progress: Progress) -> Plan:
    """Return the plan of a started pipeline, with the items that were found so far."""
    texts = [engine.read_body(body) for body in (progress.definition, progress.items)]
    return _resolved(progress.name, *texts, tuple(progress.variables.items()))


@functools.lru_cache(maxsize=1)
def _resolved(name: str, definition: str, items: str, variables: tuple[tuple[str, str], ...]) -> Plan:
    pipeline, source = parse(definition, f"{name} as it was started")
    return resolve(with_variables(pipeline, source, dict(variables)), source, from_text(items))


def present(engine: Engine, name: str = "", file: Path | None = None) -> Runner:
    """Return a started pipeline as its file is now; by default the one started last.

    Raises:
        UsageError: No pipeline was started here, or its file is not where it was.
        PipelineInvalid: The file does not define a valid pipeline.
    """
    if file is not None:
        return Runner(engine, file)
    found = started(engine, name)
    if not found:
        named = f" {name!r}" if name else ""
        raise UsageError(f"No pipeline{named} was started here: `agentx pipeline run FILE` starts one.")
    latest = found[-1]
    path = Path(os.path.normpath(engine.root / latest.file))
    if not latest.file or not path.is_file():
        where = f" at {path}" if latest.file else ""
        raise UsageError(f"The file of pipeline {latest.name!r} was not found{where}; name it: --file FILE.")
    return Runner(engine, path)
