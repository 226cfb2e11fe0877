"""The files of a pipeline whose class the workspace enforces."""

import re
from collections.abc import Iterator

from agentx.storage.events.pipeline_events import FileRule
from agentx.synthesis.pipelines.definition.naming import path_pattern
from agentx.synthesis.pipelines.definition.pipeline import File
from agentx.synthesis.pipelines.definition.plan import Plan


def rules_of(plan: Plan) -> Iterator[FileRule]:
    """Yield the file rules that the workspace enforces for a pipeline.

    ``*`` matches what differs between items.
    """
    for name, file in plan.pipeline.files.items():
        if file.sort != "overwritable" and not file.source:
            yield from (FileRule(path, file.sort) for path in _in_short(plan, file, plan.paths[name]))


def _in_short(plan: Plan, file: File, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return one pattern for many paths, if it matches all of them and no file of another class."""
    pattern = re.sub(r"\{\{.*?\}\}", "*", file.path.strip(), flags=re.DOTALL)
    others = {
        path
        for name, other in plan.pipeline.files.items()
        if other.sort != file.sort and not other.source
        for path in plan.paths[name]
    }
    matches = path_pattern(pattern).fullmatch
    fits = all(map(matches, paths)) and not any(map(matches, others))
    return (pattern,) if len(paths) > 1 and fits else paths
