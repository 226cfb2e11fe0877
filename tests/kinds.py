"""The fields of a memory item by its kind, or by the name of a sort of it, such as ``learning``."""

from typing import Any

from agentx.synthesis.memory.items import FORMER_KINDS, NoteDetail


def fields_of(name: str) -> dict[str, Any]:
    """Return the kind of an item, with the detail that names its sort.

    >>> fields_of("task"), fields_of("learning")["kind"]
    ({'kind': 'task'}, 'knowledge')
    """
    if name not in FORMER_KINDS:
        return {"kind": name}
    kind, sort = FORMER_KINDS[name]
    return {"kind": kind, "detail": NoteDetail(sort=sort)}
