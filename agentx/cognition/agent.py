"""A cognitive agent: it answers each message from a buffer of memories, and the memories fade.

The steps are always the same. The Recognizer reads the message and stores what it finds. For questions,
rules, and an empty buffer in a session with memories, the Decayer decides whether the buffer is enough. As
long as it is not, the Activator fetches what is missing. Then come the answer, a reflection on it, decay, and
purge.

With a model, one call recognises, assesses and answers. While all that is remembered fits in the buffer, it
is shown, and nothing is assessed or fetched. Otherwise code fetches first, and again for what the model says
is missing. Without a model, or if it fails, deterministic code drives the same steps. There is always an
answer, and faults are counted.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from agentx.cognition import memories
from agentx.cognition.conversation import Conversation
from agentx.cognition.logs import Logs
from agentx.cognition.memories import Retrieval
from agentx.cognition.telemetry import emit
from agentx.cognition.told import told
from agentx.engine.models import named_models
from agentx.search.background_worker import SearchLate
from agentx.storage.errors import UsageError
from agentx.storage.events.cognition_events import Extracted, Interacted, Level, Outdated, Recognized
from agentx.storage.events.types import AgentMessageSent, Body, Draft
from agentx.storage.files.lock import FileLock
from agentx.storage.index.port import Filter, Vector
from agentx.storage.secrets.redaction import clean
from agentx.storage.text import one_line
from agentx.synthesis.cognition import asking, prompts, recognizer, uncertainty
from agentx.synthesis.cognition.answers import Conversed
from agentx.synthesis.cognition.asking import Asked, Told
from agentx.synthesis.cognition.cognition_extractor import LEVELS
from agentx.synthesis.cognition.config import ExecutorConfig
from agentx.synthesis.cognition.curation import Activation, RetrievedMemory, activate, curate
from agentx.synthesis.cognition.evidence import Evidence, Question, answering, present
from agentx.synthesis.cognition.expansion import QueryGraph, SubQuery, about, deepen, expand, without_names
from agentx.synthesis.cognition.grounds import grounded
from agentx.synthesis.cognition.informative_sentences import Rarity, terms_of
from agentx.synthesis.cognition.metrics import (
    ActivatorSnapshot,
    ClusterAssessment,
    DecayerSnapshot,
    Metrics,
    QueryNode,
    Snapshot,
    TriggerReason,
)
from agentx.synthesis.cognition.prompts import Exchange, Shown, ShownMemory, fitting, tokens_of
from agentx.synthesis.directing.foreign_texts import rule
from agentx.synthesis.facts.validity import Period, asked_period, is_true, until, valid_at
from agentx.synthesis.language.dates import with_dates
from agentx.synthesis.language.tokens import count_tokens
from agentx.synthesis.memory.items import sort_of
from agentx.synthesis.model.port import ModelClient, Usage
from agentx.synthesis.state.mind import Mind, crowded_out, purged

if TYPE_CHECKING:
    from agentx.workspace import Workspace

T = TypeVar("T")

ROLE = "cognitive"
ACTOR = f"agent:{ROLE}"

SESSION = "main"
"""The default session."""

DECLINED = "I remember nothing of that."
"""The answer without a model where nothing that is remembered answers the question."""

UNSURE = "I was not told exactly that. The nearest that I remember:"
"""The beginning of an answer without a model where what is remembered may not be what is asked for."""

USED_SHARE = 0.5
"""An answer that contains this share of a memory's terms has used it."""

COMPARED_CHARACTERS = 40
"""A rejected answer is known by the beginning of a sentence, as a lesson has only that of an answer."""

MOST_NAMED = 128
"""Maximum number of memories in each list of an event, because an event is one line."""

INLINE_BYTES = 3_000
"""Metrics and snapshots larger than this are stored in a blob beside the event."""

MOST_CAUGHT_UP = 3
"""Maximum number of messages that a model reads again after one, since it failed when they came."""

NOT_ANSWERED = "The model did not answer; the message was noted only."

LOCK = "agentx-cognition.lock"
"""The lock that an interaction holds, so that those of several processes follow each other."""

LOCK_CALLS = 4
"""An interaction waits for another one as long as so many calls of a model may take."""

MOST_SESSION = 100
"""Maximum length of a session's name, in characters."""


class Answer(msgspec.Struct, frozen=True):
    """What an agent answered.

    Attributes:
        memories: Ids of the memories in its prompt.
        metrics: Metrics of this interaction.
        used: Ids of the memories that it used.
        returned: Ids of those that had left the buffer before and came back.
        failed: Why the model did not answer; empty if it did, or if there is none.
        stopped: Whether the user stopped it with Ctrl-C; the text is what had arrived.
        calls: Number of calls of models, and what they used.
    """

    text: str
    interaction: int
    memories: tuple[str, ...]
    metrics: Metrics
    used: tuple[str, ...] = ()
    returned: tuple[str, ...] = ()
    failed: str = ""
    stopped: bool = False
    calls: int = 0
    usage: Usage = Usage()


class CognitiveAgent:
    """An agent that answers from a buffer of memories.

    Args:
        ws: Its workspace.
        config: Its configuration; by default, that of ``agentx.toml``.
        model: The model that recognises, judges and answers; without one, code does.
        responder: The model that answers, if it is another one; by default, the one that ``response_model``
            names, where that is set.
        session: The conversation. Each session has its own buffer; memories are shared.
        timeout_s: Time limit for one model call.

    Attributes:
        last_metrics: Metrics of the latest interaction.
        tally: Figures on what the workspace remembers.

    Raises:
        UsageError: The name of the session is empty or too long.
        ModelError: The model that ``response_model`` names cannot be used.
    """

    def __init__(
        self,
        ws: "Workspace",
        config: ExecutorConfig | None = None,
        *,
        model: ModelClient | None = None,
        responder: ModelClient | None = None,
        session: str = SESSION,
        timeout_s: float = 60.0,
    ) -> None:
        if not 0 < len(session) <= MOST_SESSION:
            raise UsageError(f"The name of a session has 1 to {MOST_SESSION} characters.")
        self.config = config or ws.config.cognition
        self.session = session
        self.model = model
        self.responder = responder or model
        if responder is None and model is not None and "response_model" in self.config.model_fields_set:
            self.responder = named_models(ws.engine, "cognition.response_model")(self.config.response_model)
        self.timeout_s = timeout_s
        self.last_metrics = Metrics()
        self._ws = ws
        self.tally = memories.Tally(ws.engine, self)
        self.conversation = Conversation(ws.engine)
        self._logs = Logs(ws.engine, session, self.config)
        lock_s = LOCK_CALLS * timeout_s
        self._lock = FileLock(ws.engine.root / ".git" / LOCK, timeout_s=lock_s)

    @property
    def mind(self) -> Mind:
        """The state of its session, with the buffer of memories."""
        return self._ws.state.minds.get(self.session, Mind())

    def answer(self, message: str, told: Told | None = None) -> Answer:
        """Answer a message.

        A Ctrl-C while the model answers stops the model; the interaction is recorded with what had arrived.

        Args:
            message: The user's words.
            told: Called with the model's answer so far, as it arrives.

        Raises:
            UsageError: The message is empty.
            WorkspaceBusy: Other processes answer for too long.
            ReadOnly: The workspace is open for reading only.
        """
        self._ws.engine.write_path.require_writable()
        with self._lock.hold():
            recorded = self._ws.say(message)
            answered = _Turn(self, self._ws, clean(message), recorded.seq, told).work()
        self.last_metrics = answered.metrics
        ended = self._ws.engine.log.state.at
        emit(answered.metrics, session=self.session, interaction=answered.interaction, ended=ended)
        self._logs.write()
        return answered


class _Turn:
    """One interaction, from the message to the purge."""

    def __init__(
        self, agent: CognitiveAgent, ws: "Workspace", message: str, seq: int, told: Told | None
    ) -> None:
        self.agent, self.ws, self.message, self.seq = agent, ws, message, seq
        self.config, self.model = agent.config, agent.model
        self.told, self.arrived = told, ""
        self.failed, self.stopped, self.calls = "", False, 0
        self.metrics = Metrics()
        self.latencies: dict[str, float] = {}
        self.usage: dict[str, Usage] = {}
        self.look()
        self.number = self.mind.interactions + 1
        self.before = memories.scored(self.state, self.mind, self.number, self.config.decay_temperature)
        held = sum(one.tokens for one in self.before)
        # Only now is that a fault: later, some memories make room for others
        if held > self.config.buffer_tokens:
            self.metrics.faults += filter(None, [self.fitting(self.buffer())[1]])
        self.decayer: list[DecayerSnapshot] = []
        self.activator: list[ActivatorSnapshot] = []
        self.found: Activation | None = None
        self.judge = -1.0
        self.support: tuple[str, ...] = ()
        self.graph: QueryGraph | None = None
        self.began = time.monotonic()

    def look(self) -> None:
        """Copy the current state of workspace and mind; the cost grows with the number of memories."""
        self.state = self.ws.state
        self.mind = self.state.minds.get(self.agent.session, Mind())

    # --- the steps of an interaction ------------------------------------------------------------------------

    def work(self) -> Answer:
        """Run all steps."""
        guess = self.guess()
        if self.model is None:
            new = self.keep(guess)
            buffer = [*self.buffer(), *new]
            if reason := self.trigger(guess, buffer):
                buffer = self.think(buffer, reason, self.config.max_thinking_iterations)
            shown, _ = self.fitting(buffer)
            text = self.respond(shown)
        else:
            text, buffer, seen = self.converse(self.model, guess)
            shown, buffer = tuple(seen), [*buffer, *self.catch_up(self.model)]
        held = {one.id for one in buffer}
        buffer += [
            memories.remembered(self.state.items[name], self.state.items)
            for name in dict.fromkeys(self.support)
            if name not in held and sort_of(self.state.items[name]) in LEVELS
        ]
        self.reflect(text, shown)
        return self.close(text, buffer, shown)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the duration of a ``with`` body to a latency, by the name of its metric."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.latencies[name] = self.latencies.get(name, 0.0) + (time.monotonic() - start) * 1_000

    def took(self, asked: Asked[Any], module: str) -> None:
        """Count the calls, the usage and the faults of asking a model."""
        self.metrics.faults += asked.faults
        self.calls += asked.calls
        self.spent(asked.usage, module)

    def spent(self, usage: Usage, module: str) -> None:
        """Count the tokens and costs of a module."""
        self.usage[module] = self.usage.get(module, Usage()) + usage
        self.metrics.cost_usd += usage.cost_usd

    def measured(self) -> Metrics:
        """Return the metrics with the latencies and the tokens counted so far."""
        tokens = {
            f"{module}_{kind}_tokens": count
            for module, usage in self.usage.items()
            for kind, count in (("prompt", usage.prompt_tokens), ("completion", usage.completion_tokens))
        }
        return msgspec.structs.replace(self.metrics, **self.latencies, **tokens)

    @property
    def deadline(self) -> float:
        """The time by which a model must answer."""
        return time.monotonic() + self.agent.timeout_s

    def buffer(self) -> list[ShownMemory]:
        """Return the current memories of the buffer."""
        return memories.held(self.state, self.mind, self.number, self.config.decay_temperature)

    # --- the Recognizer -------------------------------------------------------------------------------------

    def guess(self) -> recognizer.Recognition:
        """Recognise the message by code."""
        with self.timed("recognizer_latency_ms"):
            buffer, tally = self.buffer(), self.agent.tally
            self.remembers, self.linked = tally.memories > 0, tally.links
            return recognizer.recognize(
                self.message,
                answered=self.mind.recent[-1:] != () and self.mind.recent[-1].input_type == "question",
                rule=tally.is_rule(self.seq),
                buffer=memories.utilities(self.mind, buffer),
                topics={topic.id: topic.summary for topic in tally.topics(self.state)},
                known=[one.text for one in buffer],
            )

    def keep(
        self, guess: recognizer.Recognition, read: recognizer.Recognition | None = None
    ) -> list[ShownMemory]:
        """Store the content of the message, as the model read it or else as code did.

        Returns:
            The new memories.
        """
        with self.timed("recognizer_latency_ms"):
            found, model = guess, ""
            if read is not None and self.model is not None:
                found = msgspec.structs.replace(
                    read,
                    rule=guess.rule,
                    utilities=guess.utilities,
                    outdated=memories.with_rest(self.state, read),
                )
                model = self.model.name
            else:
                found = self.corrected(guess) if guess.input_type == "feedback" else guess
                found = found if found.outdated else self.with_outdated(found)
            again = bool(self.failed) and found.input_type != "question"
            self.reward = found.reward
            found, stored = self.store(found, model, failed=again)
            self.measure(found, stored)
        return stored

    def with_outdated(self, guess: recognizer.Recognition) -> recognizer.Recognition:
        """Add to what code recognised the memories that the message makes untrue."""
        said = next((one for one in reversed(self.state.messages) if one.seq == self.seq), None)
        return memories.with_outdated(self.ws.engine, self.state, guess, said) if said else guess

    def catch_up(self, model: ModelClient) -> list[ShownMemory]:
        """Have the model read messages again that came while it failed; each once.

        Returns:
            The new memories.
        """
        made: list[ShownMemory] = []
        for seq in (
            () if self.failed else [seq for seq in self.mind.unread if seq != self.seq][:MOST_CAUGHT_UP]
        ):
            at, text = self.agent.conversation.said(self.state, [seq]).get(seq, ("", ""))
            found, name = recognizer.Recognition(input_type="statement"), ""
            if text:
                asked = self.unless_stopped(partial(self.reread, model, seq, text))
                self.took(asked, "recognizer")
                if asked.answer is not None and (read := asked.answer.recognition) is not None:
                    outdated = tuple(
                        msgspec.structs.replace(one, since=one.since or at)
                        for one in memories.with_rest(self.state, read)
                    )
                    found, name = msgspec.structs.replace(read, reward=0.0, outdated=outdated), model.name
            made += self.store(found, name, again=(seq, text))[1]
        self.metrics.new_memories_stored += [one.id for one in made]
        return made

    def reread(self, model: ModelClient, seq: int, text: str) -> Asked[Conversed]:
        """Ask a model what to remember of an earlier message; it is shown what was remembered before that."""
        earlier = [one for one in self.buffer() if self.state.items[one.id].created_seq < seq]
        held = Shown(memories=self.fitting(earlier)[0], topics=self.agent.tally.topics(self.state))
        return asking.converse(
            model, prompts.RECOGNIZE, text, held, prompts.RECOGNIZED, deadline=self.deadline
        )

    def corrected(self, found: recognizer.Recognition) -> recognizer.Recognition:
        """Return a recognition with what a short correction puts in the place of the last answer."""
        items, used = self.state.items, self.mind.recent[-1].used
        texts = {name: items[name].text for name in used if name in items}
        before = self.agent.conversation.exchanges(self.state, self.mind.recent[-1:], (), 1)
        if not before or (made := recognizer.corrected(before[0].message, texts, self.message)) is None:
            return found
        memory, old = made
        others = tuple(one for one in found.memories if not memory.start <= one.start < memory.end)
        outdated = Outdated(memory=old, by=0)
        return msgspec.structs.replace(found, memories=(memory, *others), outdated=(outdated,))

    def store(
        self,
        found: recognizer.Recognition,
        model: str,
        *,
        second: bool = False,
        failed: bool = False,
        again: tuple[int, str] | None = None,
    ) -> tuple[recognizer.Recognition, list[ShownMemory]]:
        """Record what was recognised, as far as an event has room.

        Args:
            found: What was recognised.
            model: Who recognised it; empty for code.
            second: Whether it was learned from the answer.
            failed: Whether a model reads the message again later.
            again: The earlier message that was read again, if it is that: its seq and its text.

        Returns:
            What was recorded, and the new memories that follow from it.
        """
        seq, text = again or (self.seq, self.message)
        utilities = {name: slot.utility for name, slot in self.mind.buffer.items()}
        found, faults = recognizer.bounded(grounded(found, text, model), utilities)
        self.metrics.faults += faults
        recognized = Recognized(
            session=self.agent.session,
            interaction=self.number,
            message=seq,
            second=second,
            model=model,
            failed=failed,
            again=again is not None,
            linked=self.config.enable_memory_linking,
            **msgspec.structs.asdict(found),
        )
        (event,) = self.ws.record(Draft(data=recognized, actor=ACTOR))
        self.look()
        new = list(takewhile(lambda item: item.created_seq > event.seq, reversed(self.state.items.values())))
        return found, [
            memories.remembered(item, self.state.items) for item in reversed(new) if sort_of(item) in LEVELS
        ]

    def measure(self, found: recognizer.Recognition, stored: Sequence[ShownMemory]) -> None:
        """Copy what was recognised into the metrics."""
        metrics = self.metrics
        metrics.input_type = found.input_type
        metrics.recognizer_semantic_memories_count = sum(one.level == "L2" for one in found.memories)
        metrics.recognizer_has_episodic = any(one.level == "L3" for one in found.memories)
        metrics.recognizer_utility_updates_count = len(found.utilities)
        metrics.new_memories_stored = [one.id for one in stored]
        items = self.state.items
        total = self.agent.tally.links
        metrics.memory_link_stats = {"created": total - self.linked, "total": total}
        metrics.topic_construction_action = found.topic_action
        metrics.topic_construction_summary = found.topic_summary
        new = next((one.id for one in stored if sort_of(items[one.id]) == "topic"), "")
        metrics.topic_construction_id = found.topic or new

    # --- the Decayer and the Activator ----------------------------------------------------------------------

    def trigger(self, found: recognizer.Recognition, buffer: Sequence[ShownMemory]) -> TriggerReason:
        """Return why the Decayer runs; empty where it does not."""
        if not self.config.max_thinking_iterations:
            return ""
        if found.input_type == "question":
            return "question"
        if found.rule:
            return "rule_statement"
        if not buffer and self.remembers:
            return "empty_buffer_with_session_memories"
        return ""

    def think(
        self,
        buffer: list[ShownMemory],
        reason: TriggerReason,
        most: int,
        judged: Conversed | None = None,
    ) -> list[ShownMemory]:
        """Assess the buffer and fetch what is missing, repeatedly up to a number of iterations.

        The first tier of uncertainty is the model's if it ``judged`` its answer.
        """
        self.metrics.decayer_triggered, self.metrics.decayer_trigger_reason = True, reason
        with self.timed("thinking_loop_latency_ms"):
            while self.metrics.thinking_iterations_used < most:
                self.metrics.thinking_iterations_used += 1
                looked = self.assess(self.fitting(buffer)[0], judged)
                self.decayer.append(looked)
                measured = {
                    "iteration": self.metrics.thinking_iterations_used,
                    "model_uncertainty": looked.model_uncertainty,
                    "cosine_uncertainty": looked.cosine_uncertainty,
                    "requires_activation": looked.requires_activation,
                }
                self.metrics.per_iteration_metrics.append(measured)
                if not looked.requires_activation:
                    break
                self.graph = self.widened(looked.missing)
                buffer = self.activate(self.graph, buffer)
                measured["nodes"] = len(self.graph.nodes)
                measured["buffer"] = len(buffer)
        self.metrics.decayer_status = "requires_activation" if self.activator else "sufficient"
        self.metrics.activator_trigger_count = len(self.activator)
        self.metrics.activator_multi_trigger = len(self.activator) > 1
        return buffer

    def assess(self, buffer: Sequence[ShownMemory], judged: Conversed | None = None) -> DecayerSnapshot:
        """Assess whether the buffer is enough, by both tiers of uncertainty.

        The first tier is the model's judgement, or that of words without a model; the second is the cosine.
        """
        with self.timed("decayer_latency_ms"):
            asked = without_names(self.message, self.agent.tally.people) or self.message
            # Embedded once, even if the buffer is later cut differently
            whole = [self.state.items[one.id].text for one in buffer]
            vectors = self.ws.engine.meanings.of([asked, *whole])
            near = [vectors[text] for text in whole if text in vectors]
            tiers = uncertainty.assess(asked, [one.text for one in buffer], vectors.get(asked), near)
            words, meaning = tiers.scaled
            missing = uncertainty.missing(asked, [one.text for one in buffer])
            if judged is not None:
                words, missing = judged.uncertainty, judged.missing
            return DecayerSnapshot(
                model_uncertainty=round(words, 4),
                cosine_uncertainty=round(meaning, 4),
                requires_activation=min(words, meaning) >= self.config.uncertainty_threshold,
                missing=missing,
                clusters=tuple(self.clusters(buffer, asked, vectors)),
            )

    def clusters(
        self, buffer: Sequence[ShownMemory], asked: str, vectors: Mapping[str, Vector]
    ) -> Iterator[ClusterAssessment]:
        """Yield how much of the question each topic of the buffer covers."""
        rarity, wanted = Rarity(one.text for one in buffer), terms_of(asked)
        all_of_it, base = rarity.of(wanted) or 1.0, vectors.get(asked)
        for topic in dict.fromkeys(one.topic for one in buffer):
            own = [one for one in buffer if one.topic == topic]
            held = {term for one in own for term in terms_of(one.text)}
            whole = [self.state.items[one.id].text for one in own]
            near = [float(vectors[text] @ base) for text in whole if base is not None and text in vectors]
            share = min(1.0, rarity.of(wanted & held) / all_of_it)
            yield ClusterAssessment(topic, len(own), round(share, 4), round(max(near, default=0.0), 4))

    def widened(self, missing: Sequence[str]) -> QueryGraph:
        """Return the graph of sub-queries to look up next; cycles are broken and counted as faults."""
        with self.timed("activator_latency_ms"):
            graph = deepen(self.graph) if self.graph else expand(self.message, self.agent.tally.people)
            known = {node.text for node in graph.nodes}
            fresh = (
                SubQuery(id=f"{memories.MISSING}{number}", text=text, why="what the Decayer found missing")
                for number, text in enumerate(missing, start=1)
                if text not in known
            )
            graph = QueryGraph.of((*graph.nodes, *fresh))
            self.metrics.faults += graph.broken
            return graph

    def activate(self, graph: QueryGraph, buffer: list[ShownMemory]) -> list[ShownMemory]:
        """Fetch the memories nearest to each sub-query, follow links, and curate and merge the buffer."""
        with self.timed("activator_latency_ms"):
            tally = self.agent.tally
            retrieval = Retrieval(self.ws.engine, self.state, tally.places)
            self.found = found = activate(
                graph,
                retrieval.search,
                about(self.message, tally.people),
                before=self.found,
                k=self.config.activation_k,
                follow=retrieval.followed if self.config.enable_memory_linking else None,
            )
            self.metrics.faults += retrieval.faults
            self.metrics.dag_node_count = len(graph.nodes)
            self.metrics.dag_edge_count = graph.edge_count
            results = {name: tuple(one.id for one in hits[:20]) for name, hits in found.results.items()}
            self.activator.append(
                ActivatorSnapshot(
                    nodes=tuple(
                        QueryNode(node.id, node.text, node.needs, results.get(node.id, ()))
                        for node in graph.nodes
                    ),
                    retrieved=tuple(one.id for one in found.ranked)[:MOST_NAMED],
                    followed=tuple(one.id for one in found.followed)[:MOST_NAMED],
                )
            )
            return self.curated(found.ranked, buffer)

    def curated(self, ranked: Sequence[RetrievedMemory], buffer: list[ShownMemory]) -> list[ShownMemory]:
        """Return the curated memories, most needed first, followed by the rest of the buffer.

        A fetched memory counts as fresh, however faded it was.
        """
        room = self.config.buffer_tokens
        fresh = {one.id: memories.remembered(self.state.items[one.id], self.state.items) for one in ranked}

        def size(found: RetrievedMemory, text: str) -> int:
            return tokens_of(msgspec.structs.replace(fresh[found.id], text=text))

        cut = curate(ranked, self.message, room, size)
        kept = [msgspec.structs.replace(fresh[one.memory.id], text=one.text) for one in cut]
        names = {one.id for one in kept}
        return [*kept, *(one for one in buffer if one.id not in names)]

    # --- the answer -----------------------------------------------------------------------------------------

    def fitting(self, buffer: Sequence[ShownMemory]) -> tuple[tuple[ShownMemory, ...], str]:
        """Return the least faded memories of the configured levels that fit, and a sentence on the others."""
        return fitting([one for one in buffer if self.included(one.level)], self.config.buffer_tokens)

    def included(self, level: Level) -> bool:
        """Return whether memories of a level are configured to be used in answers."""
        config = self.config
        return {"L1": config.include_l1, "L2": config.include_l2, "L3": config.include_l3}[level]

    def converse(
        self, model: ModelClient, guess: recognizer.Recognition
    ) -> tuple[str, list[ShownMemory], Sequence[ShownMemory]]:
        """Ask a model about the message, and again after fetching what it says is missing.

        Returns:
            The answer, the buffer, and the memories that were shown for the answer.
        """
        whole, most = self.everything(), self.config.max_thinking_iterations
        buffer = self.buffer()
        if whole is None and (reason := self.trigger(guess, buffer)):
            buffer = self.think(buffer, reason, min(most, 1))
        shown: Sequence[ShownMemory] = whole if whole is not None else self.fitting(buffer)[0]
        if whole is None:  # what the message may make untrue is shown, so that the model can say so
            known = {one.id for one in shown}
            doubted = {one.memory for one in self.with_outdated(guess).outdated} - known
            items = self.state.items
            shown = [*shown, *(memories.remembered(items[name], items) for name in sorted(doubted))]
        parts = [prompts.RECOGNIZED] if whole is not None else [prompts.ASSESSED, prompts.RECOGNIZED]
        said = self.ask(model, shown, *parts, everything=whole is not None) or Conversed()
        found = said.recognition
        new = self.keep(guess, found)
        reason = self.trigger(found or guess, [*buffer, *new])
        while said.missing and reason and self.metrics.thinking_iterations_used < most:
            fetched = self.think(buffer, reason, self.metrics.thinking_iterations_used + 1, said)
            if fetched is buffer:
                break
            buffer = fetched
            shown = self.fitting(buffer)[0]
            again = self.ask(model, shown, prompts.ASSESSED)
            if again is None:
                break
            said = again
        shown = [*shown, *new]
        text = said.answer if self.answers_itself else self.respond(shown)
        text = text or self.untold(shown)
        if whole is not None:
            held, using = {one.id for one in buffer}, set(self.used(text, whole))
            buffer += (one for one in whole if one.id in using - held and not one.until)
        return text, [*buffer, *new], shown

    @property
    def answers_itself(self) -> bool:
        """Whether the model that recognises answers, too."""
        return self.agent.responder is self.model

    def ask(
        self, model: ModelClient, shown: Sequence[ShownMemory], *parts: str, everything: bool = False
    ) -> Conversed | None:
        """Ask the model about the message; ``None`` if it fails or the user stops it."""
        asked = prompts.ANSWER if self.answers_itself else prompts.RECOGNIZE
        module, timer = "recognizer", "recognizer_latency_ms"
        if self.answers_itself:
            module, timer = "response", "response_generation_latency_ms"
        with self.timed(timer):
            made = self.unless_stopped(
                lambda: asking.converse(
                    model,
                    asked,
                    self.message,
                    self.shown(shown, everything=everything),
                    *parts,
                    deadline=self.deadline,
                    temperature=self.config.response_temperature if self.answers_itself else None,
                    told=self.tell,
                )
            )
        self.took(made, module)
        self.failed = "" if made.answer else made.faults[-1]
        return made.answer

    def unless_stopped(self, ask: Callable[[], Asked[T]]) -> Asked[T]:
        """Ask a model; a Ctrl-C stops it."""
        if self.stopped:
            return Asked(None, faults=("It was stopped.",), calls=0)
        try:
            return ask()
        except KeyboardInterrupt:
            self.stopped = True
            return Asked(None, faults=("It was stopped.",))

    def tell(self, text: str) -> None:
        """Pass on the answer as far as it has arrived."""
        self.arrived = text
        if self.told is not None:
            self.told(text)

    def everything(self) -> Sequence[ShownMemory] | None:
        """Return all that is remembered, if it fits in the buffer with what was said earlier."""
        true = [item.id for item in self.state.items.values() if is_true(item, self.state.at)]
        said = self.exchanges(true, everything=True)
        told = {name for one in said for name in (*one.ids, *one.alike)}
        room = self.config.buffer_tokens - sum(count_tokens(one.message) for one in said)
        found = list[ShownMemory]()
        for item in self.state.items.values():
            if sort_of(item) in LEVELS and (is_true(item, self.state.at) or until(item)):
                one = memories.remembered(item, self.state.items)
                room -= 0 if item.id in told else tokens_of(one)
                found.append(one)
            if room < 0 or len(found) > MOST_NAMED:
                return None
        return self.fitting(found)[0]

    def exchanges(self, names: Iterable[str], *, everything: bool = False) -> list[Exchange]:
        """Return the latest interactions, oldest first, with earlier statements if ``everything`` is shown.

        Each has the ids of the memories that rest on its message, out of those named.
        """
        latest = min(self.config.k_recent_context, self.config.max_interaction_history)
        entries = self.mind.recent if everything else self.mind.recent[-latest:] if latest else ()
        return self.agent.conversation.exchanges(self.state, entries, names, min(latest, len(entries)))

    def shown(self, known: Sequence[ShownMemory], *, everything: bool = False) -> Shown:
        """Return what a model is shown, with what was said earlier if ``everything`` fits."""
        return Shown(
            memories=known,
            recent=self.exchanges([one.id for one in known if not one.until], everything=everything),
            topics=self.agent.tally.topics(self.state),
            demands=[rule(item) for item in self.state.active("constraint", "rejection")],
            today=self.state.at[:10],
        )

    def respond(self, shown: Sequence[ShownMemory]) -> str:
        """Return the answer: the responder's, or what is remembered without one."""
        responder = self.agent.responder
        if responder is None:
            return self.remembered(shown)
        with self.timed("response_generation_latency_ms"):
            prompt = prompts.response(self.shown(shown))
            made = self.unless_stopped(
                lambda: asking.respond(
                    responder,
                    self.message,
                    prompt,
                    self.config.response_temperature,
                    self.deadline,
                    self.tell,
                )
            )
        self.took(made, "response")
        self.failed = "" if made.answer else made.faults[-1]
        return made.answer or self.untold(shown)

    def untold(self, shown: Sequence[ShownMemory]) -> str:
        """Return what the user is told if a model did not answer."""
        if self.stopped:
            return self.arrived
        if self.metrics.input_type != "question":
            return NOT_ANSWERED
        return f"{NOT_ANSWERED} {self.remembered(shown)}"

    def remembered(self, shown: Sequence[ShownMemory]) -> str:
        """Return what is remembered about the question, in the original words."""
        if self.metrics.input_type == "feedback":
            return "Thank you; I keep that in mind."
        if self.metrics.input_type == "statement":
            return "Noted." if self.metrics.new_memories_stored else "I see."
        found = self.evidence(shown)
        self.support = tuple(one.memory for one in found)
        if not found:
            return DECLINED
        self.judge = round(max(one.support for one in found), 4)
        question, items = Question(self.message), self.state.items
        said = [one_line(with_dates(one.text, items[one.memory].created_at)) for one in found]
        if self.period.sort == "now":
            said = [present(text, question) for text in said]
        begin = "I remember:" if found[0].sure else UNSURE
        if len(said) == 1:
            return f"{begin} {said[0]}"
        days = [items[one.memory].created_at[:10] for one in found]
        return "\n".join([begin, *(f"- {day}: {text}" for day, text in zip(days, said, strict=True))])

    def evidence(self, shown: Sequence[ShownMemory]) -> list[Evidence]:
        """Return the messages that answer the question; none if nothing that is remembered does."""
        items = self.state.items
        fetched = [one.id for one in self.found.ranked] if self.found else []
        names = [*(one.id for one in shown), *fetched, *self.searched()]
        sentences = [
            one
            for one in told(names, self.state)
            if self.included(LEVELS.get(sort_of(items[one.memory]), "L2"))
        ]
        question = Question(self.message)
        rejected = list(self.rejected(question, names))
        return answering(
            question,
            [
                one
                for one in sentences
                if not any(
                    one.order < seq and one.text[:COMPARED_CHARACTERS] in answer for seq, answer in rejected
                )
            ],
            self.ws.engine.meanings.of,
            past=self.period.sort in ("first", "before"),
            true=lambda name: valid_at([name], items, self.period),
        )

    def rejected(self, question: Question, names: Iterable[str]) -> Iterator[tuple[int, str]]:
        """Yield the answers to the same question that the user rejected, and in which message."""
        for name in dict.fromkeys(names):
            item = self.state.items.get(name)
            lesson = (
                recognizer.lesson_of(item.text) if item is not None and sort_of(item) == "learning" else None
            )
            if item is not None and lesson and Question(lesson[0]).words.keys() == question.words.keys():
                yield item.evidence[0].seq, lesson[1]

    def searched(self) -> list[str]:
        """Return the ids of the items nearest to the question: the whole memory is asked, too."""
        try:
            hits = self.ws.engine.search(self.message, self.config.activation_k, Filter(kinds=("memory",)))
        except SearchLate as error:
            self.metrics.faults.append(str(error))
            return []
        return [hit.symbol for hit in hits]

    @property
    def period(self) -> Period:
        """The time that the question asks about."""
        return asked_period(self.message, self.state.at)

    # --- after the answer -----------------------------------------------------------------------------------

    def reflect(self, text: str, shown: Sequence[ShownMemory]) -> None:
        """Judge how well the answer rests on memories, and learn from feedback, or as configured."""
        sort, wanted = self.metrics.input_type, self.config.reflect_on
        before = self.agent.conversation.exchanges(self.state, self.mind.recent[-1:], (), 1)
        taught, used = (
            recognizer.Recognition(input_type=sort),
            {name for one in self.mind.recent[-1:] for name in one.used},
        )
        blamed = sort == "feedback" and self.reward < 0
        if (
            (model := self.model) is not None
            and not self.failed
            and (wanted == "always" or (blamed and wanted == sort))
        ):
            question = before[0] if before and sort == "feedback" else Exchange(self.message, text)
            said = self.message if sort == "feedback" else ""
            using = [one for one in shown if sort != "feedback" or one.id in used]
            asked = self.unless_stopped(
                lambda: asking.reflect(model, question.message, question.answer, said, using, self.deadline)
            )
            self.took(asked, "recognizer")
            if asked.answer is not None:
                learned = tuple(Extracted("L1", one) for one in asked.answer.procedures)
                taught = msgspec.structs.replace(taught, memories=learned, utilities=asked.answer.utilities)
                self.learn(taught, model.name)
                self.judge = asked.answer.judge
                return
        if sort == "feedback" and before:
            lesson = recognizer.lesson(before[0].message, before[0].answer, self.message)
            if lesson is not None:
                self.learn(msgspec.structs.replace(taught, memories=(lesson,)), "")
        if sort == "question" and not self.failed and self.agent.responder is not None:
            known = terms_of(" ".join([self.message, *(one.text for one in shown)]))
            own = terms_of(text)
            self.judge = round(len(own & known) / len(own), 4) if own else -1.0

    def learn(self, taught: recognizer.Recognition, model: str) -> None:
        """Store what was learned from an answer."""
        _, made = self.store(taught, model, second=True)
        self.metrics.new_memories_stored += [one.id for one in made]

    def used(self, text: str, shown: Sequence[ShownMemory]) -> list[str]:
        """Return the ids of the memories that an answer used."""
        if self.support:
            return list(dict.fromkeys(self.support))
        terms = terms_of(text)
        return [
            one.id
            for one in shown
            if one.level != "L1" and (own := terms_of(one.text)) and len(own & terms) / len(own) >= USED_SHARE
        ]

    def close(self, text: str, buffer: Sequence[ShownMemory], shown: Sequence[ShownMemory]) -> Answer:
        """Record the answer and close the interaction: memories fade, are reinforced, or leave the buffer."""
        config, mind = self.config, self.mind
        entered = tuple(one.id for one in buffer if one.id not in mind.buffer)[:MOST_NAMED]
        accessed = tuple(one.id for one in shown)[:MOST_NAMED]
        done = Interacted(
            session=self.agent.session,
            interaction=self.number,
            message=self.seq,
            entered=entered,
            accessed=accessed,
            reinforced=tuple(self.used(text, shown))[:MOST_NAMED],
            boost=config.decay_reinforcement_boost if config.reinforce_decay_on_use else 0.0,
            temperature=config.decay_temperature,
            judge=self.judge,
        )
        done = msgspec.structs.replace(done, evicted=self.leaving(done))
        self.metrics.evicted_memory_ids = list(done.evicted)
        self.metrics.total_latency_ms = (time.monotonic() - self.began) * 1_000
        metrics = self.measured()
        snapshot = Snapshot(
            before=self.before,
            after=memories.scored(self.state, mind.interacted(done), self.number, config.decay_temperature),
            decayer=tuple(self.decayer),
            activator=tuple(self.activator),
        )
        returned = (name for name in entered if self.state.items[name].status == "dormant")
        usage = sum(self.usage.values(), Usage())
        with self.ws.engine.write_path.exclusive():
            answered = AgentMessageSent(
                body=self.ws.body(text),
                final=True,
                recalled=True,
                model=self.agent.responder.name if self.agent.responder else "",
            )
            done = msgspec.structs.replace(
                done,
                metrics=self.beside(metrics),
                snapshot=self.beside(snapshot),
                answer=self.ws.engine.log.state.seq + 1 if text else 0,
                calls=self.calls,
                **msgspec.structs.asdict(usage),
            )
            said = (answered, done) if text else (done,)
            self.ws.record(*(Draft(data=data, actor=ACTOR) for data in said))
        return Answer(
            text,
            self.number,
            accessed,
            metrics,
            used=done.reinforced,
            returned=tuple(returned),
            failed=self.failed,
            stopped=self.stopped,
            calls=self.calls,
            usage=usage,
        )

    def leaving(self, done: Interacted) -> tuple[str, ...]:
        """Return the memories that leave the buffer: the faded ones of little use, and those without room."""
        config, now = self.config, self.number
        temperature = config.decay_temperature
        after = self.mind.interacted(done)
        faded = purged(after, now, temperature, config.purge_decay_threshold, config.purge_utility_threshold)
        after = self.mind.interacted(msgspec.structs.replace(done, evicted=faded))
        sizes = {one.id: tokens_of(one) for one in memories.held(self.state, after, now, temperature)}
        return (*faded, *crowded_out(after, now, temperature, sizes, config.buffer_tokens))[:MOST_NAMED]

    def beside(self, record: Metrics | Snapshot) -> Body:
        """Return a record as JSON: inline in the event if short, else in a blob without an extract."""
        body = self.ws.engine.write_path.body(msgspec.json.encode(record).decode(), INLINE_BYTES)
        return msgspec.structs.replace(body, text="") if body.blob else body
