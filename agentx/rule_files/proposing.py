"""Record what a file of rules says, and propose what it would change in memory. Nothing is applied.

A proposal is a candidate whose trust is ``material``: it is not enforced, no agent is shown it or may settle
it, and it does not lapse. A person accepts or rejects it (:func:`agentx.memory.editing.review`).
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from agentx.engine.engine import Engine
from agentx.memory.editing import detail_of
from agentx.storage.events.rule_file_events import RulesRead
from agentx.storage.events.types import Draft
from agentx.storage.secrets.redaction import clean
from agentx.storage.text import encodable, one_line, shorten
from agentx.synthesis.memory.conclusions import Add, Change, Patch, fits
from agentx.synthesis.memory.items import (
    FOUND_IN,
    WOULD_END,
    WOULD_REWORD,
    Evidence,
    Link,
    MemoryItem,
    Scope,
    free_id,
)
from agentx.synthesis.rule_files.differences import GONE, Differences, Found

EXTRACTOR = "rule_files"
"""The ``extractor`` of proposals from files."""


BETWEEN_MARKERS = ":rules"
"""Follows the file's name where a rule was written between the markers of an export."""


def propose(
    engine: Engine, path: str, text: str, made: Differences, *, how: Literal["imported", "edited"], actor: str
) -> list[MemoryItem]:
    """Record a file that was read, and the proposals that follow; the caller holds the write path.

    Args:
        engine: The workspace.
        path: The file's name in the record.
        text: What was read.
        made: What would change.
        how: How it came to be read.
        actor: Who had it read.

    Returns:
        The new proposals. If nothing would change, nothing is recorded.
    """
    if not (made.added or made.reworded or made.removed or made.withdrawn):
        return []
    engine.write_path.raise_format()
    stated_in = path if how == "imported" else f"{path}{BETWEEN_MARKERS}"
    read = RulesRead(path=path, how=how, body=engine.write_path.body(encodable(text)))
    seq = engine.write_path.record([Draft(data=read, actor=actor)])[0].seq
    taken = dict(engine.log.state.items)
    changes: list[Change] = [
        Patch(id=item.id, status="retired", reason=f"{GONE}{path}.") for item in made.withdrawn
    ]

    def offer(item: MemoryItem) -> None:
        if fits(Add(item)):
            taken[item.id] = item
            changes.append(Add(item))

    for found in made.added:
        offer(_offered(found, stated_in, seq, taken))
    for found, item in made.reworded:
        new = _offered(found, stated_in, seq, taken, item)
        offer(msgspec.structs.replace(new, links=(*new.links, Link(WOULD_REWORD, item.id))))
    for item in made.removed:
        gone = Found(text=item.text, kind="rule", scope=item.scope, where=path, quote="")
        new = _offered(gone, stated_in, seq, taken, item)
        offer(msgspec.structs.replace(new, links=(*new.links, Link(WOULD_END, item.id))))
    engine.synthesizer.record(changes, EXTRACTOR)
    items = engine.log.state.items
    return [items[change.item.id] for change in changes if isinstance(change, Add)]


def _offered(
    found: Found, path: str, seq: int, taken: dict[str, MemoryItem], former: MemoryItem | None = None
) -> MemoryItem:
    """Return the candidate for what a file says, of the kind and scope of the item that it is about."""
    text = clean(one_line(encodable(found.text)))
    kind = former.kind if former else found.kind
    scope: Scope = former.scope if former else found.scope
    return MemoryItem(
        id=free_id(kind, seq, taken),
        kind=kind,
        text=text,
        short=shorten(text),
        scope=scope,
        evidence=(Evidence(seq, found.start, found.end, clean(encodable(found.quote))[:400]),),
        trust="material",
        status="candidate",
        links=(Link(FOUND_IN, path),),
        reason=found.where,
        detail=former.detail if former else detail_of(kind, text, scope),
    )


def offered(items: Sequence[MemoryItem], path: str) -> list[MemoryItem]:
    """Return the items that a file stated when it was last read."""
    return [item for item in items if Link(FOUND_IN, path) in item.links and not item.reason.startswith(GONE)]
