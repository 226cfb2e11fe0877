"""Memory maintenance: apply the nights since the last run, record the result, and undo it.

It runs on request, and automatically when work continues after a night. The time of an event decides that,
not a clock.
"""

import time
from collections.abc import Iterator, Sequence

import msgspec

from agentx.engine import moment_parser
from agentx.engine.engine import Engine
from agentx.recording.recorded_log import RecordedLog
from agentx.storage.clock import stamp
from agentx.storage.errors import UsageError
from agentx.storage.events.types import ContextProvided, Event, RunStarted, TaskGraded, UserMessageSent
from agentx.storage.log.history import told_already
from agentx.synthesis.gates.opportunities import outcomes
from agentx.synthesis.learning.maintenance_plan import PATCHED, Upkeep, Use, upkeep
from agentx.synthesis.learning.merging import APART, PROPOSED
from agentx.synthesis.memory.conclusions import MAINTENANCE, PERSON, Add, Concluded, Patch
from agentx.synthesis.memory.items import Link, MemoryItem
from agentx.synthesis.similarity.paraphrase import Likeness
from agentx.synthesis.state.flows import Advice, advice
from agentx.synthesis.state.rule_lifecycle import is_critical
from agentx.synthesis.state.state import State

_MEMORY = "i:"
"""Prefix of the ID of a passage that is a memory item."""


_BEFORE = 16
"""Number of events read before the last maintenance, to know the task that began just then."""


EMBED_S = 5.0
"""Longest time that one maintenance embeds rules."""


class NothingToTakeBack(UsageError):
    """No maintenance has changes that are still in effect."""


class Maintained(msgspec.Struct, frozen=True, kw_only=True):
    """The result of maintenance, or of its dry run.

    Attributes:
        upkeep: The nights, and the change of each item.
        events: Seqs of the recorded events; empty if nothing was recorded.
        active: Number of active rules afterwards.
        critical: Number of these that only the user can retire.
        dormant: Number of dormant rules afterwards.
        advice: Flows that the user should rewrite or retire.
    """

    upkeep: Upkeep
    events: tuple[int, ...]
    active: int
    critical: int
    dormant: int
    advice: tuple[Advice, ...]


def maintain(engine: Engine, *, now: str = "", dry_run: bool = False) -> Maintained:
    """Run overdue memory maintenance: what tasks did with rules, merges, promotions and archivings.

    A second call on the same day does nothing more. All changes are one conclusion. If they exceed one line
    of the history, the conclusion has several lines, which are appended together.

    Args:
        engine: The workspace.
        now: The current time, in the format of :attr:`agentx.storage.events.types.Event.at`; the clock's by
            default.
        dry_run: Only return what would be done.

    Raises:
        ReadOnly: The workspace was written by a newer version.
    """
    state = engine.snapshot()
    near = _likeness(engine)
    found, recorded = _find(engine.log, state, now, near), []
    if not dry_run and (found.nights or found.changes):
        with engine.write_path.exclusive():
            if engine.log.state.seq != state.seq:  # others wrote meanwhile
                state = engine.snapshot()
                found = _find(engine.log, state, now, near)
            if found.nights or found.changes:
                recorded = engine.synthesizer.record(found.changes, MAINTENANCE, through=state.seq)
    items = state.items | {one.item.id: one.item for one in found.done}
    rules = [item for item in items.values() if item.kind == "rule"]
    active = [item for item in rules if item.status == "active"]
    return Maintained(
        upkeep=found,
        events=tuple(event.seq for event in recorded),
        active=len(active),
        critical=sum(map(is_critical, active)),
        dormant=sum(item.status == "dormant" for item in rules),
        advice=tuple(advice(state)),
    )


def _likeness(engine: Engine) -> Likeness:
    """Return the cosine of the meanings of two texts; 0 without an embedder, or when the time is used up."""
    end = time.monotonic() + EMBED_S
    missing = False

    def near(one: str, other: str) -> float:
        nonlocal missing
        if missing:
            return 0.0
        vectors = engine.meanings.of((one, other), within_s=end - time.monotonic())
        missing = not vectors
        return float(vectors[one] @ vectors[other]) if one in vectors and other in vectors else 0.0

    return near


def _find(log: RecordedLog, state: State, now: str, near: Likeness) -> Upkeep:
    uses: dict[str, Use] = {}  # of the items that agents were shown since the last maintenance

    def read() -> Iterator[Event]:
        for event in log.history.read(max(0, state.maintained - _BEFORE), told_already):
            if isinstance(event.data, ContextProvided) and event.seq > state.maintained:
                _use(uses, event, event.data)
            yield event

    done = outcomes(state, read())
    return upkeep(state, max(now or stamp(), state.at), uses, done, near)


def _use(uses: dict[str, Use], event: Event, provided: ContextProvided) -> None:
    for name in {name.removeprefix(_MEMORY) for name in provided.recalled if name.startswith(_MEMORY)}:
        before = uses.get(name, Use(0, ""))
        uses[name] = Use(before.days + (before.at[:10] != event.at[:10]), max(before.at, event.at))


# --- of itself ----------------------------------------------------------------------------------------------


class Nightly:
    """Maintains a workspace when work continues in it after a night."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        for kind in (UserMessageSent, RunStarted, TaskGraded):
            engine.bus.subscribe(kind.__name__, self.take)

    def take(self, event: Event) -> None:
        """Run maintenance if a night lies between the last one (or the first memory item) and an event."""
        state = self._engine.log.state
        since = state.maintained_at or next((item.created_at for item in state.items.values()), event.at)
        if since[:10] >= event.at[:10] or self._engine.write_path.read_only:
            return
        done = maintain(self._engine, now=event.at)
        ended = [one.item.id for one in done.upkeep.done if one.what == "retired"]
        if ended and done.events:
            rules = f"the rule {ended[0]}" if len(ended) == 1 else f"{len(ended)} rules"
            self._engine.write_path.notes.append(
                f"Maintenance retired {rules} that tasks passed over; `agentx log --type Concluded` shows "
                "this, and `agentx memory maintain --undo` reverts it."
            )


# --- taking it back -----------------------------------------------------------------------------------------


def undo(engine: Engine, actor: str) -> list[MemoryItem]:
    """Undo the latest maintenance that is still in effect: restore each item unless it changed since.

    Nothing is rewritten: the undo is a new conclusion, by hand. Items that were merged are not merged again.

    Returns:
        The changed items, with their current content.

    Raises:
        NothingToTakeBack: The maintenance does not exist.
    """
    with engine.write_path.exclusive():
        for lines in reversed(_maintenances(engine.log)):
            if patches := _taking_back(engine, lines):
                engine.synthesizer.record(patches, PERSON, actor=actor)
                return [engine.log.state.items[patch.id] for patch in patches]
    raise NothingToTakeBack("No maintenance has changes that are still in effect, so nothing can be undone.")


def _maintenances(log: RecordedLog) -> list[list[Event]]:
    """Return the lines of each maintenance that changed something, oldest first."""
    found: list[list[Event]] = [[]]
    for event in log.history.read(on_damage=told_already):
        if isinstance(event.data, Concluded) and event.data.extractor == MAINTENANCE:
            if event.data.changes:
                found[-1].append(event)
            if event.data.through:  # its last line
                found.append([])
    return [lines for lines in found if lines]


def _taking_back(engine: Engine, lines: Sequence[Event]) -> list[Patch]:
    state = moment_parser.state_at(engine, lines[0].seq - 1)
    before = dict(state.items)
    state.apply_all(lines)
    reason = f"The maintenance of event {lines[0].seq} was taken back."
    changes = [one for line in lines if isinstance(line.data, Concluded) for one in line.data.changes]
    changed = dict.fromkeys(one.item.id if isinstance(one, Add) else one.id for one in changes)
    present = engine.log.state.items
    patches = [_back(before.get(name), state.items[name], present[name], reason) for name in changed]
    return [patch for patch in patches if patch is not None]


def _back(before: MemoryItem | None, after: MemoryItem, present: MemoryItem, reason: str) -> Patch | None:
    """Return the patch that restores an item, for the fields that are still as maintenance left them."""
    if before is None:
        lives = present.status in ("active", "dormant")
        return Patch(id=present.id, status="retired", reason=reason) if lives else None
    fields = {
        name: getattr(before, name)
        for name in PATCHED
        if getattr(before, name) != getattr(after, name) == getattr(present, name) and name != "reason"
    }
    if not fields:
        return None
    if "links" in fields:
        added = (link for link in after.links if link not in before.links and link.relation != PROPOSED)
        apart = (Link(APART, link.target) for link in added)
        fields["links"] = (*before.links, *apart)
    return Patch(id=present.id, **fields | {"reason": reason})
