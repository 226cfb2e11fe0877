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
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from agentx.cognition import memories, recognition
from agentx.cognition.conversation import PastExchanges
from agentx.cognition.logs import Logs
from agentx.cognition.recall import recalled
from agentx.cognition.talk import ModelTalk
from agentx.cognition.telemetry import emit
from agentx.cognition.thinking import Thinking
from agentx.cognition.turn import ACTOR, MOST_NAMED, CognitiveTurn
from agentx.engine.models import named_models
from agentx.storage.errors import UsageError
from agentx.storage.events.cognition_events import Extracted, Interacted
from agentx.storage.events.types import AgentMessageSent, Body, Draft
from agentx.storage.files.lock import FileLock
from agentx.storage.secrets.redaction import clean
from agentx.synthesis.cognition import prompts
from agentx.synthesis.cognition.answers import Conversed
from agentx.synthesis.cognition.asking import Told
from agentx.synthesis.cognition.cognition_extractor import LEVELS
from agentx.synthesis.cognition.config import ExecutorConfig
from agentx.synthesis.cognition.informative_sentences import terms_of
from agentx.synthesis.cognition.metrics import Metrics, Snapshot
from agentx.synthesis.cognition.prompts import Exchange, ShownMemory, tokens_of
from agentx.synthesis.cognition.recognizer import Recognition, lesson
from agentx.synthesis.memory.items import sort_of
from agentx.synthesis.model.port import ModelClient, Usage
from agentx.synthesis.state.mind import Mind, crowded_out, purged

if TYPE_CHECKING:
    from agentx.workspace import Workspace

SESSION = "main"
"""The default session."""

USED_SHARE = 0.5
"""An answer that contains this share of a memory's terms has used it."""

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
        self.conversation = PastExchanges(ws.engine)
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
            answered = self._interact(clean(message), recorded.seq, told)
        self.last_metrics = answered.metrics
        ended = self._ws.engine.log.state.at
        emit(answered.metrics, session=self.session, interaction=answered.interaction, ended=ended)
        self._logs.write()
        return answered

    def _interact(self, message: str, seq: int, told: Told | None) -> Answer:
        turn = CognitiveTurn(self._ws, self.config, self.session, self.tally, self.conversation, message, seq)
        talk = None
        if self.responder is not None:
            talk = ModelTalk(turn, self.model or self.responder, self.responder, self.timeout_s, told)
        return _Interaction(turn, self.model, self.responder, talk).work()


class _Interaction:
    """The steps of one interaction, from the message to the purge.

    Args:
        turn: What the steps share.
        model: The model that recognises and judges, if any.
        responder: The model that answers, if any.
        talk: The calls of both; ``None`` without a responder.
    """

    def __init__(
        self,
        turn: CognitiveTurn,
        model: ModelClient | None,
        responder: ModelClient | None,
        talk: ModelTalk | None,
    ) -> None:
        self.turn, self.model, self.responder, self.talk = turn, model, responder, talk
        self.thinking = Thinking(turn)
        self.before = memories.scored(turn.state, turn.mind, turn.number, turn.config.decay_temperature)
        held = sum(one.tokens for one in self.before)
        # Only now is that a fault: later, some memories make room for others
        if held > turn.config.buffer_tokens:
            turn.metrics.faults += filter(None, [turn.fitting(turn.buffer())[1]])
        self.reward, self.judge = 0.0, -1.0
        self.support: tuple[str, ...] = ()
        self.began = time.monotonic()

    @property
    def failed(self) -> str:
        """Why the model did not answer; empty if it did, or if there is none."""
        return self.talk.failed if self.talk else ""

    def work(self) -> Answer:
        """Run all steps."""
        turn = self.turn
        guessed = recognition.guess(turn)
        if self.model is None or self.talk is None:
            buffer = [*turn.buffer(), *self.keep(guessed)]
            if reason := self.thinking.trigger(guessed, buffer):
                buffer = self.thinking.think(buffer, reason, turn.config.max_thinking_iterations)
            shown, _ = turn.fitting(buffer)
            text = self.respond(shown)
        else:
            text, buffer, seen = self.converse(self.talk, self.model.name, guessed)
            shown, buffer = tuple(seen), [*buffer, *self.catch_up(self.talk, self.model.name)]
        held, items = {one.id for one in buffer}, turn.state.items
        buffer += [
            turn.remembered(name)
            for name in dict.fromkeys(self.support)
            if name not in held and sort_of(items[name]) in LEVELS
        ]
        self.reflect(text, shown)
        return self.close(text, buffer, shown)

    def keep(
        self, guessed: Recognition, read: Recognition | None = None, model: str = ""
    ) -> list[ShownMemory]:
        """Store the content of the message, as the model read it or else as code did."""
        kept, new = recognition.keep(self.turn, guessed, read, model, failed=bool(self.failed))
        self.reward = kept.reward
        return new

    # --- the answer -----------------------------------------------------------------------------------------

    def converse(
        self, talk: ModelTalk, model: str, guessed: Recognition
    ) -> tuple[str, list[ShownMemory], Sequence[ShownMemory]]:
        """Ask a model about the message, and again after fetching what it says is missing.

        Returns:
            The answer, the buffer, and the memories that were shown for the answer.
        """
        turn, thinking = self.turn, self.thinking
        whole, most = talk.everything(), turn.config.max_thinking_iterations
        buffer = turn.buffer()
        if whole is None and (reason := thinking.trigger(guessed, buffer)):
            buffer = thinking.think(buffer, reason, min(most, 1))
        shown: Sequence[ShownMemory] = whole if whole is not None else turn.fitting(buffer)[0]
        if whole is None:  # what the message may make untrue is shown, so that the model can say so
            known = {one.id for one in shown}
            doubted = {one.memory for one in recognition.with_outdated(turn, guessed).outdated} - known
            shown = [*shown, *map(turn.remembered, sorted(doubted))]
        parts = [prompts.RECOGNIZED] if whole is not None else [prompts.ASSESSED, prompts.RECOGNIZED]
        said = talk.converse(shown, *parts, everything=whole is not None) or Conversed()
        new = self.keep(guessed, said.recognition, model)
        reason = thinking.trigger(said.recognition or guessed, [*buffer, *new])
        while said.missing and reason and turn.metrics.thinking_iterations_used < most:
            fetched = thinking.think(buffer, reason, turn.metrics.thinking_iterations_used + 1, said)
            if fetched is buffer:
                break
            buffer = fetched
            shown = turn.fitting(buffer)[0]
            again = talk.converse(shown, prompts.ASSESSED)
            if again is None:
                break
            said = again
        shown = [*shown, *new]
        text = (said.answer or self.untold(talk, shown)) if talk.answers_itself else self.respond(shown)
        if whole is not None:
            held, using = {one.id for one in buffer}, set(self.used(text, whole))
            buffer += (one for one in whole if one.id in using - held and not one.until)
        return text, [*buffer, *new], shown

    def respond(self, shown: Sequence[ShownMemory]) -> str:
        """Return the answer: the responder's, or what is remembered without one."""
        if self.talk is None:
            return self.recall(shown)
        return self.talk.respond(shown) or self.untold(self.talk, shown)

    def untold(self, talk: ModelTalk, shown: Sequence[ShownMemory]) -> str:
        """Return what the user is told if a model did not answer."""
        if talk.stopped:
            return talk.arrived
        if self.turn.metrics.input_type != "question":
            return NOT_ANSWERED
        return f"{NOT_ANSWERED} {self.recall(shown)}"

    def recall(self, shown: Sequence[ShownMemory]) -> str:
        """Return what is remembered about the message, in the original words."""
        found = recalled(self.turn, shown, self.thinking.fetched)
        self.support, self.judge = found.used, found.judge
        return found.text

    def catch_up(self, talk: ModelTalk, model: str) -> list[ShownMemory]:
        """Have the model read messages again that came while it failed; each once.

        Returns:
            The new memories.
        """
        turn = self.turn
        unread = [] if talk.failed else [seq for seq in turn.mind.unread if seq != turn.seq]
        made: list[ShownMemory] = []
        for seq in unread[:MOST_CAUGHT_UP]:
            at, text = turn.conversation.said(turn.state, [seq]).get(seq, ("", ""))
            said = talk.reread(seq, text) if text else None
            found, name = Recognition(input_type="statement"), ""
            if said is not None and (read := said.recognition) is not None:
                rest = memories.with_rest(turn.state, read)
                outdated = tuple(msgspec.structs.replace(one, since=one.since or at) for one in rest)
                found, name = msgspec.structs.replace(read, reward=0.0, outdated=outdated), model
            made += recognition.store(turn, found, name, again=(seq, text))[1]
        turn.metrics.new_memories_stored += [one.id for one in made]
        return made

    # --- after the answer -----------------------------------------------------------------------------------

    def reflect(self, text: str, shown: Sequence[ShownMemory]) -> None:
        """Judge how well the answer rests on memories, and learn from feedback, or as configured."""
        turn, sort, wanted = self.turn, self.turn.metrics.input_type, self.turn.config.reflect_on
        last = turn.mind.recent[-1:]
        before = turn.conversation.exchanges(turn.state, last, (), 1)
        blamed = sort == "feedback" and self.reward < 0
        if (
            self.model is not None
            and self.talk is not None
            and not self.failed
            and (wanted == "always" or (blamed and wanted == sort))
        ):
            used = {name for one in last for name in one.used}
            about = before[0] if before and sort == "feedback" else Exchange(turn.message, text)
            said = turn.message if sort == "feedback" else ""
            using = [one for one in shown if sort != "feedback" or one.id in used]
            learned = self.talk.reflect(about, said, using)
            if learned is not None:
                procedures = tuple(Extracted("L1", one) for one in learned.procedures)
                self.learn(procedures, self.model.name, learned.utilities)
                self.judge = learned.judge
                return
        if sort == "feedback" and before:
            warning = lesson(before[0].message, before[0].answer, turn.message)
            if warning is not None:
                self.learn((warning,))
        if sort == "question" and not self.failed and self.responder is not None:
            known = terms_of(" ".join([turn.message, *(one.text for one in shown)]))
            own = terms_of(text)
            self.judge = round(len(own & known) / len(own), 4) if own else -1.0

    def learn(
        self, procedures: tuple[Extracted, ...], model: str = "", utilities: Mapping[str, float] | None = None
    ) -> None:
        """Store what was learned from an answer."""
        sort = self.turn.metrics.input_type
        taught = Recognition(input_type=sort, memories=procedures, utilities=dict(utilities or {}))
        _, made = recognition.store(self.turn, taught, model, second=True)
        self.turn.metrics.new_memories_stored += [one.id for one in made]

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
        turn, config, mind = self.turn, self.turn.config, self.turn.mind
        entered = tuple(one.id for one in buffer if one.id not in mind.buffer)[:MOST_NAMED]
        accessed = tuple(one.id for one in shown)[:MOST_NAMED]
        done = Interacted(
            session=turn.session,
            interaction=turn.number,
            message=turn.seq,
            entered=entered,
            accessed=accessed,
            reinforced=tuple(self.used(text, shown))[:MOST_NAMED],
            boost=config.decay_reinforcement_boost if config.reinforce_decay_on_use else 0.0,
            temperature=config.decay_temperature,
            judge=self.judge,
        )
        done = msgspec.structs.replace(done, evicted=self.leaving(done))
        turn.metrics.evicted_memory_ids = list(done.evicted)
        turn.metrics.total_latency_ms = (time.monotonic() - self.began) * 1_000
        metrics = turn.measured()
        snapshot = Snapshot(
            before=self.before,
            after=memories.scored(turn.state, mind.interacted(done), turn.number, config.decay_temperature),
            decayer=tuple(self.thinking.decayer),
            activator=tuple(self.thinking.activator),
        )
        self.record(text, done, metrics, snapshot)
        return Answer(
            text,
            turn.number,
            accessed,
            metrics,
            used=done.reinforced,
            returned=tuple(name for name in entered if turn.state.items[name].status == "dormant"),
            failed=self.failed,
            stopped=self.talk is not None and self.talk.stopped,
            calls=turn.calls,
            usage=turn.usage,
        )

    def leaving(self, done: Interacted) -> tuple[str, ...]:
        """Return the memories that leave the buffer: the faded ones of little use, and those without room."""
        turn, config, now = self.turn, self.turn.config, self.turn.number
        temperature = config.decay_temperature
        after = turn.mind.interacted(done)
        faded = purged(after, now, temperature, config.purge_decay_threshold, config.purge_utility_threshold)
        after = turn.mind.interacted(msgspec.structs.replace(done, evicted=faded))
        sizes = {one.id: tokens_of(one) for one in memories.held(turn.state, after, now, temperature)}
        return (*faded, *crowded_out(after, now, temperature, sizes, config.buffer_tokens))[:MOST_NAMED]

    def record(self, text: str, done: Interacted, metrics: Metrics, snapshot: Snapshot) -> None:
        """Record the answer, if there is one, and the end of the interaction, in one step."""
        ws = self.turn.ws
        with ws.engine.write_path.exclusive():
            answered = AgentMessageSent(
                body=ws.body(text),
                final=True,
                recalled=True,
                model=self.responder.name if self.responder else "",
            )
            done = msgspec.structs.replace(
                done,
                metrics=self.beside(metrics),
                snapshot=self.beside(snapshot),
                answer=ws.engine.log.state.seq + 1 if text else 0,
                calls=self.turn.calls,
                **msgspec.structs.asdict(self.turn.usage),
            )
            said = (answered, done) if text else (done,)
            ws.record(*(Draft(data=data, actor=ACTOR) for data in said))

    def beside(self, record: Metrics | Snapshot) -> Body:
        """Return a record as JSON: inline in the event if short, else in a blob without an extract."""
        body = self.turn.ws.engine.write_path.body(msgspec.json.encode(record).decode(), INLINE_BYTES)
        return msgspec.structs.replace(body, text="") if body.blob else body
