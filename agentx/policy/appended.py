"""What agents and the engine appended to an append-only file, so that people's versions of it keep that.

A version that a person restores or accepts may come from before an addition. Later steps rely on the addition
and memory has its facts, so it is appended to that version again.
"""

from collections.abc import Iterable, Sequence

import msgspec

from agentx.engine.engine import Engine
from agentx.policy.file_policy import is_person
from agentx.storage.events.direction_events import NewKnowledge
from agentx.storage.events.pipeline_events import FileAmended, StageProved, Superseded
from agentx.storage.events.types import WriteReverted, changes_of
from agentx.storage.git.objects import ObjectDamaged
from agentx.storage.log.history import told_already
from agentx.synthesis.memory.items import item_id
from agentx.synthesis.pipelines.proving.markdown import lines_of
from agentx.synthesis.pipelines.running.long_term_memory import corrected
from agentx.synthesis.pipelines.running.replaced import open_at_end


class Addition(msgspec.Struct, frozen=True):
    """A text that was appended to a file.

    Attributes:
        seq: The event.
        before: The content that it was appended to.
        text: The text.
        actor: Who appended it.
    """

    seq: int
    before: bytes
    text: bytes
    actor: str

    def lines(self) -> set[str]:
        """Return the lines that the file did not have before, without white space around them."""
        return _lines(self.text) - _lines(self.before)


def additions(engine: Engine, path: str, after: int = 0) -> list[Addition]:
    """Return what was appended to a file after an event, except by people."""
    found: list[Addition] = []
    reverted: set[tuple[int, str]] = set()
    for event in engine.log.history.read(after, told_already):
        if isinstance(event.data, WriteReverted):
            reverted.add((event.data.event, event.data.path))
        for made in () if is_person(event.actor) else changes_of(event):
            if made.path == path and made.after:
                before, now = _content(engine, made.before), _content(engine, made.after)
                if before is not None and now is not None and now.startswith(before) and now != before:
                    found.append(Addition(event.seq, before, now.removeprefix(before), event.actor))
    return [one for one in found if (one.seq, path) not in reverted]


def missing(engine: Engine, path: str, accepted: bytes, now: bytes) -> list[Addition]:
    """Return the latest additions that a version lacks whole, although the accepted version has them.

    A version that someone saved from an editor that was opened before them is of this kind. An addition that
    was changed, or that is followed by one that the version has, was edited on purpose.
    """
    before, after = _lines(accepted), _lines(now)
    found: list[Addition] = []
    for one in reversed(additions(engine, path)):
        lines = one.lines()
        if lines & after:
            break
        if lines & before:
            found.append(one)
    return found[::-1]


def joined(base: bytes, added: Iterable[Addition]) -> bytes:
    """Return a version of a file with the additions at its end."""
    for one in added:
        text = one.text
        was, now = (open_at_end(lines_of(version.decode(errors="replace"))) for version in (one.before, base))
        if was and not now:  # it begins with the end of a code block that this version does not have
            text = text.lstrip(b"\n").removeprefix(was.encode()).removeprefix(b"\n")
        elif now and not was:
            text = now.encode() + b"\n" + text
        base += b"\n" * (base[-1:] not in {b"", b"\n"})
        base += text if base else text.lstrip(b"\n")
    return base


def told(path: str, kept: Sequence[Addition], advice: str = "") -> str:
    """Return what a version of a file was given, and how to have it otherwise; empty for nothing."""
    if not kept:
        return ""
    lines = sum(1 for one in kept for line in one.text.splitlines() if line.strip())
    events = [f"{one.seq}" for one in kept]
    last = f" and {events.pop()}" if len(events) > 1 else ""
    advice = advice or f"To change that, edit the file and run `agentx pipeline amend {path} --reason …`."
    return (
        f"{path} is append-only, so it keeps what was appended since: {lines} line{'s' * (lines != 1)} "
        f"of event{'s' * bool(last)} {', '.join(events)}{last}. {advice}"
    )


def memory_of(
    engine: Engine, before: bytes, after: bytes
) -> tuple[tuple[NewKnowledge, ...], tuple[Superseded, ...]]:
    """Return the facts to remember, and those no longer valid, where a person changed a file."""
    facts, topics = dict[str, NewKnowledge](), dict[str, str]()
    for event in engine.log.history.read(on_damage=told_already):
        if isinstance(event.data, StageProved | FileAmended):
            for one in event.data.superseded:
                facts.pop(one.item, None)
            for number, fact in enumerate(event.data.learned):
                facts[item_id("knowledge", event.seq, number)] = fact
                topics[fact.text] = fact.topic
    texts = (version.decode(errors="replace") for version in (before, after))
    return corrected(facts, topics, *texts)


def _lines(content: bytes) -> set[str]:
    return {line for text in content.decode(errors="replace").splitlines() if (line := text.strip())}


def _content(engine: Engine, blob: str) -> bytes | None:
    """Return a content; empty for no file, ``None`` where it was purged."""
    try:
        return engine.git.repo.read_blob(blob) if blob else b""
    except ObjectDamaged:
        return None
