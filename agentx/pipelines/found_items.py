"""The items of a pipeline that its file does not list: files that a pattern matches, and lists in files."""

from collections.abc import Collection, Mapping

import msgspec

from agentx.engine.engine import Engine
from agentx.pipelines.matrix import all_stages
from agentx.pipelines.pointing.pointed_files import Files, PointerMissing
from agentx.storage.events.types import Body
from agentx.synthesis.pipelines.definition.checks import body_of
from agentx.synthesis.pipelines.definition.item_lists import ItemDict, ListInvalid, items_of_paths, listed
from agentx.synthesis.pipelines.definition.pipeline import FoundItems, Pipeline


class FoundLists(msgspec.Struct, frozen=True):
    """What was found of a pipeline's items.

    Attributes:
        known: The items by name.
        missing: A sentence for each name whose items are missing and will not be written.
    """

    known: dict[str, list[ItemDict]]
    missing: tuple[str, ...] = ()


def find_items(
    pipeline: Pipeline,
    files: Files,
    proved: Collection[str],
    *,
    made: bool = True,
    before: Mapping[str, list[ItemDict]] | None = None,
) -> FoundLists:
    """Find the items of a pipeline.

    A list that a stage writes counts from when the stage is ``proved`` (keys of steps). Without a workspace,
    ``made`` is false, and only source trees are looked into. Files that matched a pattern ``before``, at the
    start of the run, stay the items.
    """
    known: dict[str, list[ItemDict]] = {}
    missing: list[str] = []
    for name, given in pipeline.items.items():
        if not isinstance(given, FoundItems):
            continue
        writers = _writers(pipeline, given.listed) if given.listed else ()
        if not (made or given.source) or (writers and not any(one in proved for one in writers)):
            continue
        try:
            if given.glob:
                known[name] = (before or {}).get(name) or _matched(given, files)
            else:
                known[name] = read_list(pipeline, files, given)
        except (ListInvalid, PointerMissing) as error:
            if not writers:  # otherwise its stage is reopened, as its file is gone
                missing.append(f"Items {name}: {error}")
    return FoundLists(known, tuple(missing))


def _writers(pipeline: Pipeline, file: str) -> list[str]:
    """Return the stages that write a file."""
    return [
        stage.id
        for stage in all_stages(pipeline)
        if file in (write.file for write in pipeline.roles[stage.role].writes)
    ]


def _matched(given: FoundItems, files: Files) -> list[ItemDict]:
    paths = files.matching(given.source, given.glob)
    if not paths:
        where = f"the source {given.source}" if given.source else "the artifacts"
        raise ListInvalid(f"no file matches {given.glob} in {where}. Add files, or fix the pattern.")
    return items_of_paths(paths, given.glob)


def read_list(pipeline: Pipeline, files: Files, given: FoundItems, text: str | None = None) -> list[ItemDict]:
    """Return the items that a file lists; ``text`` is its text, by default that of the file.

    Raises:
        ListInvalid: The file does not exist, or does not list items.
        PointerMissing: It cannot be read.
    """
    path, source = pipeline.files[given.listed].path.strip(), pipeline.files[given.listed].source
    if text is None:
        file = files.text(path, source)
        if file is None:
            raise ListInvalid(f"{path}, which lists them, does not exist, and no role writes it.")
        text = file.text
    writes = (write for role in pipeline.roles.values() for write in role.writes)
    marker = next((write.marker for write in writes if write.file == given.listed), "")
    return listed(body_of(text, marker, path), path, given.section)


def as_body(engine: Engine, known: Mapping[str, list[ItemDict]]) -> Body:
    """Return items as the text that the history keeps."""
    return engine.write_path.body(msgspec.json.encode(known).decode())


def from_text(text: str) -> dict[str, list[ItemDict]]:
    """Return items from the text that the history keeps."""
    return msgspec.json.decode(text, type=dict[str, list[ItemDict]]) if text else {}
