"""All data of a session, read from history, for the report and its pictures."""

import msgspec

from agentx.cognition.collector import Collected, MetricsCollector
from agentx.cognition.interactions import DecayPoint, Interaction, interactions, sessions
from agentx.cognition.tracking import ActivatorTracker, DecayTracker, Triggers
from agentx.engine.engine import Engine
from agentx.storage.errors import UsageError
from agentx.storage.events.cognition_events import Level
from agentx.storage.log.history import told_already
from agentx.storage.text import one_line


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """A session.

    Attributes:
        title: Title of the workspace.
        curves: The decay of each memory, in the order of their first appearance.
        texts: The text of each memory and topic, by id.
        others: The other sessions of the workspace, with their numbers of interactions.
    """

    title: str
    session: str
    interactions: tuple[Interaction, ...]
    curves: dict[str, list[DecayPoint]]
    triggers: Triggers
    collected: Collected
    texts: dict[str, str]
    others: dict[str, int] = {}

    @property
    def held(self) -> list[str]:
        """The memories in the buffer at the end."""
        last = self.interactions[-1].points if self.interactions else ()
        return [point.memory_id for point in last if not point.was_evicted]

    @property
    def levels(self) -> dict[str, Level]:
        """The level of each memory that was seen in a buffer."""
        return {
            held.id: held.level
            for one in self.interactions
            for held in (*one.snapshot.before, *one.snapshot.after)
        }

    def text(self, name: str) -> str:
        """Return the text of a memory or topic in one line; its id where the text is not known any more."""
        return one_line(self.texts.get(name, "")) or name or "no topic"


def overview(engine: Engine, session: str = "") -> Overview | None:
    """Read a session from history.

    Args:
        engine: The workspace.
        session: Name of the session; by default, the most recent one.

    Returns:
        ``None`` where no cognitive agent has answered here.

    Raises:
        UsageError: There is no such session.
    """
    history = engine.log.history
    known = sessions(history.read(on_damage=told_already))
    if session and session not in known:
        raise UsageError(f"There is no session {session!r}. Known: {', '.join(known) or 'none'}.")
    if not known:
        return None
    session = session or next(reversed(known))
    decay, activator, metrics = DecayTracker(), ActivatorTracker(), MetricsCollector()
    found = []
    for one in interactions(history.read(on_damage=told_already), session, engine.read_body):
        found.append(one)
        for follower in (decay, activator, metrics):
            follower.take(one)
    state = engine.snapshot()
    topics = {cluster.topic for cluster in activator.triggers.clusters}
    return Overview(
        title=state.title,
        session=session,
        interactions=tuple(found),
        curves=decay.curves,
        triggers=activator.triggers,
        collected=metrics.collected,
        texts={
            name: item.text
            for name in {*decay.curves, *topics}
            if (item := state.items.get(name)) is not None
        },
        others={name: count for name, count in known.items() if name != session},
    )
