"""Talk with the models of an agent: what they are shown, what they answer, and what happens if they fail."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from agentx.cognition import memories
from agentx.cognition.turn import MOST_NAMED, CognitiveTurn
from agentx.synthesis.cognition import asking, prompts
from agentx.synthesis.cognition.answers import Conversed, Reflection
from agentx.synthesis.cognition.asking import Asked, Told
from agentx.synthesis.cognition.cognition_extractor import LEVELS
from agentx.synthesis.cognition.prompts import Exchange, Shown, ShownMemory, tokens_of
from agentx.synthesis.directing.foreign_texts import rule
from agentx.synthesis.facts.validity import is_true, until
from agentx.synthesis.language.tokens import count_tokens
from agentx.synthesis.memory.items import sort_of
from agentx.synthesis.model.port import ModelClient

T = TypeVar("T")


class ModelTalk:
    """The calls of models in one interaction; none of them raises, not even at Ctrl-C.

    Args:
        turn: The interaction.
        model: The model that recognises and judges.
        responder: The model that answers.
        timeout_s: Time limit for one call.
        told: Called with an answer as it arrives.

    Attributes:
        arrived: The answer as far as it has arrived.
        failed: Why the last answer is missing; empty if it is not.
        stopped: Whether the user stopped a model; no further call is made.
    """

    def __init__(
        self,
        turn: CognitiveTurn,
        model: ModelClient,
        responder: ModelClient,
        timeout_s: float,
        told: Told | None,
    ) -> None:
        self._turn, self._model, self._responder = turn, model, responder
        self._timeout_s, self._told = timeout_s, told
        self.arrived, self.failed, self.stopped = "", "", False

    # --- calls ----------------------------------------------------------------------------------------------

    @property
    def answers_itself(self) -> bool:
        """Whether the model that recognises answers, too."""
        return self._responder is self._model

    def converse(
        self, shown: Sequence[ShownMemory], *parts: str, everything: bool = False
    ) -> Conversed | None:
        """Ask the model about the message; ``None`` if it fails or the user stops it."""
        turn = self._turn
        asked, module, timer = prompts.RECOGNIZE, "recognizer", "recognizer_latency_ms"
        if self.answers_itself:
            asked, module, timer = prompts.ANSWER, "response", "response_generation_latency_ms"
        with turn.timed(timer):
            made = self._unless_stopped(
                lambda: asking.converse(
                    self._model,
                    asked,
                    turn.message,
                    self._shown(shown, everything=everything),
                    *parts,
                    deadline=self._deadline,
                    temperature=turn.config.response_temperature if self.answers_itself else None,
                    told=self._arrives,
                )
            )
        turn.took(made, module)
        self.failed = "" if made.answer else made.faults[-1]
        return made.answer

    def respond(self, shown: Sequence[ShownMemory]) -> str:
        """Return the responder's answer; empty if it fails or the user stops it."""
        turn = self._turn
        with turn.timed("response_generation_latency_ms"):
            prompt = prompts.response(self._shown(shown))
            made = self._unless_stopped(
                lambda: asking.respond(
                    self._responder,
                    turn.message,
                    prompt,
                    turn.config.response_temperature,
                    self._deadline,
                    self._arrives,
                )
            )
        turn.took(made, "response")
        self.failed = "" if made.answer else made.faults[-1]
        return made.answer or ""

    def reread(self, seq: int, text: str) -> Conversed | None:
        """Ask what to remember of an earlier message; the model is shown what was remembered before that."""
        turn = self._turn
        earlier = [one for one in turn.buffer() if turn.state.items[one.id].created_seq < seq]
        held = Shown(memories=turn.fitting(earlier)[0], topics=turn.tally.topics(turn.state))
        made = self._unless_stopped(
            lambda: asking.converse(
                self._model, prompts.RECOGNIZE, text, held, prompts.RECOGNIZED, deadline=self._deadline
            )
        )
        turn.took(made, "recognizer")
        return made.answer

    def reflect(self, about: Exchange, said: str, using: Sequence[ShownMemory]) -> Reflection | None:
        """Ask what to learn from an answer and from what the user ``said`` about it."""
        made = self._unless_stopped(
            lambda: asking.reflect(self._model, about.message, about.answer, said, using, self._deadline)
        )
        self._turn.took(made, "recognizer")
        return made.answer

    @property
    def _deadline(self) -> float:
        """The time by which a model must answer."""
        return time.monotonic() + self._timeout_s

    def _unless_stopped(self, ask: Callable[[], Asked[T]]) -> Asked[T]:
        """Ask a model; a Ctrl-C stops it."""
        if self.stopped:
            return Asked(None, faults=("It was stopped.",), calls=0)
        try:
            return ask()
        except KeyboardInterrupt:
            self.stopped = True
            return Asked(None, faults=("It was stopped.",))

    def _arrives(self, text: str) -> None:
        """Pass on the answer as far as it has arrived."""
        self.arrived = text
        if self._told is not None:
            self._told(text)

    # --- what a model is shown ------------------------------------------------------------------------------

    def everything(self) -> Sequence[ShownMemory] | None:
        """Return all that is remembered, if it fits in the buffer with what was said earlier."""
        turn, state = self._turn, self._turn.state
        true = [item.id for item in state.items.values() if is_true(item, state.at)]
        said = self._exchanges(true, everything=True)
        told = {name for one in said for name in (*one.ids, *one.alike)}
        room = turn.config.buffer_tokens - sum(count_tokens(one.message) for one in said)
        found = list[ShownMemory]()
        for item in state.items.values():
            if sort_of(item) in LEVELS and (is_true(item, state.at) or until(item)):
                one = memories.remembered(item)
                room -= 0 if item.id in told else tokens_of(one)
                found.append(one)
            if room < 0 or len(found) > MOST_NAMED:
                return None
        return turn.fitting(found)[0]

    def _exchanges(self, names: Iterable[str], *, everything: bool) -> list[Exchange]:
        """Return the latest interactions, oldest first, with earlier statements if ``everything`` is shown.

        Each has the ids of the memories that rest on its message, out of those named.
        """
        turn = self._turn
        latest = min(turn.config.k_recent_context, turn.config.max_interaction_history)
        entries = turn.mind.recent if everything else turn.mind.recent[-latest:] if latest else ()
        return turn.conversation.exchanges(turn.state, entries, names, min(latest, len(entries)))

    def _shown(self, known: Sequence[ShownMemory], *, everything: bool = False) -> Shown:
        """Return what a model is shown, with what was said earlier if ``everything`` fits."""
        turn = self._turn
        return Shown(
            memories=known,
            recent=self._exchanges([one.id for one in known if not one.until], everything=everything),
            topics=turn.tally.topics(turn.state),
            demands=[rule(item) for item in turn.state.active("constraint", "rejection")],
            today=turn.state.at[:10],
        )
