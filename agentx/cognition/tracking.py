"""How memories fade, and what makes the Activator fetch: two trackers over the interactions of a session."""

from collections import Counter

import msgspec

from agentx.cognition.interactions import DecayPoint, Interaction
from agentx.synthesis.cognition.metrics import DecayerSnapshot


class DecayTracker:
    """The decay of each memory, point by point.

    Attributes:
        curves: By memory, in the order in which they came; a memory that comes back goes on with its curve.
    """

    def __init__(self) -> None:
        self.curves: dict[str, list[DecayPoint]] = {}

    def take(self, one: Interaction) -> None:
        """Follow one interaction more."""
        for point in one.points:
            self.curves.setdefault(point.memory_id, []).append(point)


class Uncertainty(msgspec.Struct, frozen=True, kw_only=True):
    """What one look of the Decayer found.

    Attributes:
        iteration: Of the thinking loop, from 1.
        model_uncertainty: The first tier, from 0 to 1; ``cosine_uncertainty`` is the second.
    """

    interaction_id: int
    iteration: int
    model_uncertainty: float
    cosine_uncertainty: float
    requires_activation: bool


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """A topic, as the Decayer met it.

    Attributes:
        topic: Id of the topic item; empty for memories of none.
        assessed: How often it was looked at.
        triggered: How often memories were fetched then.
        coverage: How much of the messages it covered on average, from 0 to 1.
    """

    topic: str
    assessed: int
    triggered: int
    coverage: float


class Triggers(msgspec.Struct, frozen=True, kw_only=True):
    """How often memories were fetched, and why.

    Attributes:
        interactions: How many there were; in ``asked`` of them the Decayer ran, in ``triggered`` of them the Activator.
        activations: How often the Activator ran: more than once in an interaction, where once was not enough.
        rate: Share of all interactions in which it ran; ``rate_when_asked`` of those in which the Decayer did.
        reasons: How often the Decayer ran for each reason; ``fetched`` how often memories were fetched then.
        at: The interactions in which it ran.
        uncertainty: Every look of the Decayer.
        clusters: The topics that were looked at, the one that triggered most first.
    """

    interactions: int = 0
    asked: int = 0
    triggered: int = 0
    activations: int = 0
    rate: float = 0.0
    rate_when_asked: float = 0.0
    reasons: dict[str, int] = {}
    fetched: dict[str, int] = {}
    at: tuple[int, ...] = ()
    uncertainty: tuple[Uncertainty, ...] = ()
    clusters: tuple[Cluster, ...] = ()


class ActivatorTracker:
    """What triggers the Activator."""

    def __init__(self) -> None:
        self._interactions = self._activations = 0
        self._asked: Counter[str] = Counter()
        self._fetched: Counter[str] = Counter()
        self._at: list[int] = []
        self._looks: list[Uncertainty] = []
        self._clusters: dict[str, list[tuple[float, bool]]] = {}

    def take(self, one: Interaction) -> None:
        """Follow one interaction more."""
        measured, reason = one.metrics, one.metrics.decayer_trigger_reason or "other"
        self._interactions += 1
        self._activations += measured.activator_trigger_count
        self._asked[reason] += measured.decayer_triggered
        if measured.activator_trigger_count:
            self._at.append(one.interaction_id)
            self._fetched[reason] += 1
        for iteration, look in enumerate(one.snapshot.decayer, 1):
            self._look(one.interaction_id, iteration, look)

    def _look(self, interaction: int, iteration: int, look: DecayerSnapshot) -> None:
        self._looks.append(
            Uncertainty(
                interaction_id=interaction,
                iteration=iteration,
                model_uncertainty=look.model_uncertainty,
                cosine_uncertainty=look.cosine_uncertainty,
                requires_activation=look.requires_activation,
            )
        )
        for cluster in look.clusters:
            seen = self._clusters.setdefault(cluster.topic, [])
            seen.append((cluster.coverage, look.requires_activation))

    @property
    def triggers(self) -> Triggers:
        """What was found so far."""
        asked, triggered = self._asked.total(), len(self._at)
        clusters = [
            Cluster(
                topic=topic,
                assessed=len(seen),
                triggered=sum(fetched for _, fetched in seen),
                coverage=sum(coverage for coverage, _ in seen) / len(seen),
            )
            for topic, seen in self._clusters.items()
        ]
        return Triggers(
            interactions=self._interactions,
            asked=asked,
            triggered=triggered,
            activations=self._activations,
            rate=triggered / self._interactions if self._interactions else 0.0,
            rate_when_asked=triggered / asked if asked else 0.0,
            reasons=dict(+self._asked),
            fetched=dict(self._fetched),
            at=tuple(self._at),
            uncertainty=tuple(self._looks),
            clusters=tuple(sorted(clusters, key=lambda one: -one.triggered)),
        )
