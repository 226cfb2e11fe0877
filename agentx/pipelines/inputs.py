"""What has to be there before a pipeline starts: the files that its roles read and nobody writes."""

from collections.abc import Collection, Iterator

from agentx.pipelines.files import Files, PointerMissing
from agentx.synthesis.pipelines.plan import Plan, ReadFile, path_pattern


def missing(plan: Plan, files: Files, done: Collection[str] = (), *, made: bool = True) -> list[str]:
    """What cannot be read and will not be written by anyone: a sentence for each, with the role, the stage and the file.

    Args:
        plan: The pipeline.
        files: What there is to read.
        done: Keys of the steps that are proved: they need nothing more.
        made: Whether there is a workspace; without one, only source trees are looked at.
    """
    return list(_missing(plan, files, done, made=made))


def _missing(plan: Plan, files: Files, done: Collection[str], *, made: bool) -> Iterator[str]:
    written = {one.path for step in plan.steps.values() for one in step.writes}
    seen = set[tuple[str, tuple[str, ...]]]()
    for key, step in plan.steps.items():
        for read in step.reads if key not in done else ():
            place = (read.source, read.paths)
            if place in seen or not (made or read.source) or _is_written(read, written):
                continue
            seen.add(place)
            try:
                files.of(read)
            except PointerMissing as error:
                yield f"Role {step.role} (stage {key}) reads {str(error).rstrip('.')}, and no role writes it: put it there, mend its path under `files`, or let the pointer be `optional`."


def _is_written(read: ReadFile, written: Collection[str]) -> bool:
    if read.source:
        return False
    return any(
        path in written or ("*" in path and any(map(path_pattern(path).fullmatch, written)))
        for path in read.paths
    )
