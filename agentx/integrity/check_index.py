"""Check that the search index has a passage for every event with text, up to its watermark."""

from collections.abc import Iterator
from pathlib import Path

from agentx.core.cache_dir import CACHE
from agentx.core.findings import Finding, Found
from agentx.search.event_chunks import MAX_TEXT_BYTES
from agentx.storage.errors import AgentXError
from agentx.storage.events.codec import Codec
from agentx.storage.events.types import AgentMessageSent, Event, ToolCallExecuted, UserMessageSent, changes_of
from agentx.storage.files import nofollow
from agentx.storage.git.checked_reader import ObjectReader
from agentx.storage.git.objects import ObjectDamaged
from agentx.storage.index.lance import LanceIndex
from agentx.storage.log.history import History, told_already
from agentx.storage.progress import Progress
from agentx.storage.text import decoded
from agentx.synthesis.chunking.passages import chunk_file

_AT_ONCE = 500
_TODO = "agentx rebuild"


def look_at_index(root: Path, codec: Codec, reader: ObjectReader, found: Found, progress: Progress) -> str:
    """Check that the first passage of everything searchable is in the index.

    Returns:
        What was checked, in a sentence.
    """
    place = root / CACHE / "index"
    if not nofollow.exists(place / "index.json"):
        return "no index was built yet; the next search builds it"
    try:
        index = LanceIndex(place)
        try:
            total = index.count()
            through, looked = int((index.read_meta("seq").split() or ["0"])[0]), 0
            for wanted in _groups(History(root, codec).read(0, told_already), through):
                held = index.get(wanted)
                looked += len(held)
                progress("Comparing the index", next(reversed(wanted.values())).seq, through)
                for passage, event in wanted.items():
                    if passage not in held and _has_text(passage, event, reader):
                        lacks = f"The index lacks the content of event {event.seq}"
                        found(Finding("index", lacks, passage, _TODO))
        finally:
            index.close()
    except AgentXError as error:
        found(Finding("index", "Index:", str(error).rstrip("."), _TODO))
        return "not compared"
    return f"{total:,} passages; the first of {looked:,} texts was looked up; up to event {through:,}"


def _groups(events: Iterator[Event], through: int) -> Iterator[dict[str, Event]]:
    """Yield batches of the first passage of each searchable thing, with its event."""
    group: dict[str, Event] = {}
    for event in events:
        if event.seq > through:
            break
        group |= dict.fromkeys(_first_passages(event), event)
        if len(group) >= _AT_ONCE:
            yield group
            group = {}
    if group:
        yield group


def _first_passages(event: Event) -> Iterator[str]:
    """Yield IDs in the form that :mod:`agentx.search.event_chunks` assigns."""
    for change in changes_of(event):
        if change.after and not change.link and change.size_bytes <= MAX_TEXT_BYTES:
            yield f"a:{event.seq}:{change.path}:0"
    if isinstance(event.data, UserMessageSent | AgentMessageSent):
        if event.data.body.text.strip():
            yield f"m:{event.seq}:0"
    elif isinstance(event.data, ToolCallExecuted) and event.data.command and event.data.output.text:
        yield f"t:{event.seq}"


def _has_text(passage: str, event: Event, reader: ObjectReader) -> bool:
    """Return whether a passage is expected: a binary or empty file has none."""
    path = passage.removeprefix(f"a:{event.seq}:").removesuffix(":0")
    change = next((change for change in changes_of(event) if change.path == path), None)
    if change is None:
        return True
    try:
        text = decoded(reader.blob(change.after)) or ""
    except ObjectDamaged:
        return False
    return any(True for _ in chunk_file(path, text))
