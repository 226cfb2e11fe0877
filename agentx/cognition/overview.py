"""The statistics of a session, read from history: metrics, decay curves, and what triggered the Activator."""

import math
import statistics
from collections import Counter
from collections.abc import Sequence

import msgspec

from agentx.cognition.interactions import DecayPoint, Interaction, interactions, sessions
from agentx.engine.engine import Engine
from agentx.storage.errors import UsageError
from agentx.storage.events.cognition_events import Level
from agentx.storage.log.history import told_already
from agentx.storage.text import one_line

MODULES = ("recognizer", "decayer", "activator", "response")
"""The modules that call a model, in the order of an interaction."""

BINS = 10
"""Number of equal bins from 0 to 1 in which judge scores are counted."""


# --- metrics -----------------------------------------------------------------------------------------------


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """The distribution of a metric; ``std`` is the population's, percentiles are interpolated."""

    count: int
    mean: float
    std: float
    min: float
    max: float
    p50: float
    p95: float


class Tokens(msgspec.Struct, frozen=True):
    """Tokens that a module sent to its model and received from it."""

    prompt: int = 0
    completion: int = 0

    @property
    def total(self) -> int:
        """The sum of both."""
        return self.prompt + self.completion


class Collected(msgspec.Struct, frozen=True, kw_only=True):
    """The result of :class:`MetricsCollector`.

    Attributes:
        metrics: Each numeric metric by name; parts are named ``metric.part``. ``judge_score`` where there was
            a judge.
        tokens: By module.
        cost_usd: Sum of the known costs.
        activator_trigger_rate: Share of the interactions in which memories were fetched.
        judge_distribution: Number of answers per score, in ten bins: from 0 up to 0.1, …, from 0.9 up to 1.
        faults: Each fault, with its count.
    """

    interactions: int
    metrics: dict[str, Spread]
    tokens: dict[str, Tokens]
    total_tokens: int
    cost_usd: float
    activator_trigger_rate: float
    judge_distribution: tuple[int, ...]
    faults: dict[str, int]


class MetricsCollector:
    """Collects the metrics of a session's interactions."""

    def __init__(self) -> None:
        self._values: dict[str, list[float]] = {}
        self._fetched: list[bool] = []
        self._faults: dict[str, int] = {}

    def take(self, one: Interaction) -> None:
        """Add an interaction."""
        self._fetched.append(one.metrics.activator_trigger_count > 0)
        self._gather("", msgspec.structs.asdict(one.metrics))
        if one.judge_score is not None:
            self._gather("", {"judge_score": one.judge_score})
        for fault in one.metrics.faults:
            self._faults[fault] = self._faults.get(fault, 0) + 1

    def _gather(self, prefix: str, metrics: dict[str, object]) -> None:
        for name, value in metrics.items():
            if isinstance(value, dict):
                self._gather(f"{prefix}{name}.", value)
            elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
                self._values.setdefault(prefix + name, []).append(value)

    @property
    def collected(self) -> Collected:
        """The statistics so far."""
        tokens = {
            name: Tokens(self._sum(f"{name}_prompt_tokens"), self._sum(f"{name}_completion_tokens"))
            for name in MODULES
        }
        judged = [0] * BINS
        for score in self._values.get("judge_score", ()):
            judged[min(int(score * BINS), BINS - 1)] += 1
        return Collected(
            interactions=len(self._fetched),
            metrics={name: spread(values) for name, values in self._values.items()},
            tokens=tokens,
            total_tokens=sum(one.total for one in tokens.values()),
            cost_usd=sum(self._values.get("cost_usd", ())),
            activator_trigger_rate=sum(self._fetched) / len(self._fetched) if self._fetched else 0.0,
            judge_distribution=tuple(judged),
            faults=self._faults,
        )

    def _sum(self, name: str) -> int:
        return int(sum(self._values.get(name, ())))


def spread(values: Sequence[float]) -> Spread:
    """Return the distribution of values; there must be at least one.

    >>> spread([4, 1, 2, 3]).p50, spread([10, 20, 30]).p95
    (2.5, 29.0)
    """
    cuts = statistics.quantiles(values, n=20, method="inclusive") if len(values) > 1 else [values[0]] * 19
    return Spread(
        count=len(values),
        mean=statistics.fmean(values),
        std=statistics.pstdev(values),
        min=min(values),
        max=max(values),
        p50=cuts[9],
        p95=cuts[18],
    )


# --- triggers ----------------------------------------------------------------------------------------------


class BufferAssessment(msgspec.Struct, frozen=True, kw_only=True):
    """Assessment that the Decayer found in one assessment.

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
    uncertainty: tuple[BufferAssessment, ...] = ()
    clusters: tuple[Cluster, ...] = ()


class ActivatorTracker:
    """Tracks what triggers the Activator."""

    def __init__(self) -> None:
        self._interactions = self._activations = 0
        self._asked: Counter[str] = Counter()
        self._fetched: Counter[str] = Counter()
        self._at: list[int] = []
        self._looks: list[BufferAssessment] = []
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
            self._looks.append(
                BufferAssessment(
                    interaction_id=one.interaction_id,
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


# --- a whole session ---------------------------------------------------------------------------------------


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """A session.

    Attributes:
        title: Title of the workspace.
        curves: The decay of each memory, in the order of their first appearance. A memory that returns
            continues its curve.
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
    """Read a session from history, by default the most recent one.

    Returns:
        ``None`` where no cognitive agent has answered here.

    Raises:
        UsageError: The session does not exist.
    """
    history = engine.log.history
    known = sessions(history.read(on_damage=told_already))
    if session and session not in known:
        raise UsageError(f"Unknown session {session!r}. Known: {', '.join(known) or 'none'}.")
    if not known:
        return None
    session = session or next(reversed(known))
    curves: dict[str, list[DecayPoint]] = {}
    activator, metrics, found = ActivatorTracker(), MetricsCollector(), []
    for one in interactions(history.read(on_damage=told_already), session, engine.read_body):
        found.append(one)
        activator.take(one)
        metrics.take(one)
        for point in one.points:
            curves.setdefault(point.memory_id, []).append(point)
    state = engine.snapshot()
    topics = {cluster.topic for cluster in activator.triggers.clusters}
    return Overview(
        title=state.title,
        session=session,
        interactions=tuple(found),
        curves=curves,
        triggers=activator.triggers,
        collected=metrics.collected,
        texts={name: item.text for name in {*curves, *topics} if (item := state.items.get(name)) is not None},
        others={name: count for name, count in known.items() if name != session},
    )
