"""Two trackers over a session's interactions: how memories fade, and what triggers the Activator."""

from collections import Counter

import msgspec

from agentx.cognition.interactions import DecayPoint, Interaction
from agentx.synthesis.cognition.metrics import DecayerSnapshot


class DecayTracker:
    """The decay of each memory, point by point.

    Attributes:
        curves: By memory, in the order of their first appearance. A memory that returns continues its curve.
    """

    def __init__(self) -> None:
        self.curves: dict[str, list[DecayPoint]] = {}

    def take(self, one: Interaction) -> None:
        """Add an interaction."""
        for point in one.points:
            self.curves.setdefault(point.memory_id, []).append(point)


class Uncertainty(msgspec.Struct, frozen=True, kw_only=True):
    """Uncertainty that the Decayer found in one assessment.

    Attributes:
        iteration: Iteration of the thinking loop, from 1.
        model_uncertainty: The first tier, from 0 to 1; ``cosine_uncertainty`` is the second.
    """

    interaction_id: int
    iteration: int
    model_uncertainty: float
    cosine_uncertainty: float
    requires_activation: bool


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """The assessments of a topic by the Decayer.

    Attributes:
        topic: Id of the topic item; empty for memories without one.
        assessed: Number of assessments.
        triggered: Number of them after which memories were fetched.
        coverage: Mean share of the messages that it covered, from 0 to 1.
    """

    topic: str
    assessed: int
    triggered: int
    coverage: float


class Triggers(msgspec.Struct, frozen=True, kw_only=True):
    """How often memories were fetched, and why.

    Attributes:
        interactions: Number of interactions. The Decayer ran in ``asked`` of them, and the Activator in
            ``triggered``.
        activations: Number of runs of the Activator; several in an interaction where one was not enough.
        rate: Share of all interactions in which it ran; ``rate_when_asked`` counts only those in which the
            Decayer ran.
        reasons: Number of times the Decayer ran, by reason; ``fetched`` counts those after which memories
            were fetched.
        at: The interactions in which the Activator ran.
        uncertainty: All assessments of the Decayer.
        clusters: The assessed topics, the one that triggered most first.
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
    """Tracks what triggers the Activator."""

    def __init__(self) -> None:
        self._interactions = self._activations = 0
        self._asked: Counter[str] = Counter()
        self._fetched: Counter[str] = Counter()
        self._at: list[int] = []
        self._looks: list[Uncertainty] = []
        self._clusters: dict[str, list[tuple[float, bool]]] = {}

    def take(self, one: Interaction) -> None:
        """Add an interaction."""
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
        """The results so far."""
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
