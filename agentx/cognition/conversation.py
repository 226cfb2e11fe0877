"""The conversation of a session as a model is shown it: the latest interactions, and earlier statements."""

from collections.abc import Iterable, Mapping, Sequence

from agentx.engine.engine import Engine
from agentx.storage.events.types import AgentMessageSent, UserMessageSent
from agentx.storage.log.history import told_already
from agentx.storage.text import folded
from agentx.synthesis.cognition.prompts import EXCHANGE_CHARACTERS, Exchange
from agentx.synthesis.memory.items import sort_of
from agentx.synthesis.state.mind import InteractionEntry
from agentx.synthesis.state.state import State

MOST_READ = 5_000
"""Maximum number of events that are read to find messages that the state no longer has."""


_TOLD = ("knowledge", "episode")
"""Sorts of memories that a message itself tells."""


class PastExchanges:
    """Reads messages of a session, each once.

    Args:
        engine: The workspace.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._said: dict[int, tuple[str, str]] = {}

    def said(self, state: State, wanted: Iterable[int]) -> Mapping[int, tuple[str, str]]:
        """Return date and text of messages by seq, of those that can be found quickly."""
        self._said |= {message.seq: (message.at[:10], message.text) for message in state.messages}
        lacking = {seq for seq in wanted if seq and seq not in self._said and state.seq - seq <= MOST_READ}
        if lacking:
            for event in self._engine.log.history.read(min(lacking) - 1, told_already):
                if event.seq in lacking and isinstance(event.data, UserMessageSent | AgentMessageSent):
                    self._said[event.seq] = event.at[:10], self._engine.read_body(event.data.body)
                if event.seq >= max(lacking):
                    break
        return self._said

    def exchanges(
        self, state: State, entries: Sequence[InteractionEntry], shown: Iterable[str], latest: int
    ) -> list[Exchange]:
        """Return interactions in words, oldest first.

        Before the ``latest`` only what the user stated is included. What was answered to a statement is left
        out, except in the last interaction. Each has the ids of the memories that rest on its message, out of
        those that are ``shown``.
        """
        old, recent = entries[: len(entries) - latest], entries[len(entries) - latest :]
        listed = [*(one for one in old if one.input_type != "question"), *recent]
        answered = {one.answer for one in recent if one.input_type != "statement" or one is recent[-1]}
        said = self.said(state, [*(one.message for one in listed), *answered])
        resting: dict[int, dict[str, list[str]]] = {}
        for item in filter(None, map(state.items.get, shown)):
            if item.evidence and sort_of(item) in _TOLD:
                texts = resting.setdefault(item.evidence[0].seq, {})
                texts.setdefault(folded(item.text), []).append(item.id)
        return [
            Exchange(
                text,
                said.get(one.answer, ("", ""))[1] if one.answer in answered else "",
                at=at,
                ids=tuple(names[0] for names in told),
                alike=tuple(name for names in told for name in names[1:]),
            )
            for one in listed
            for at, text in [said.get(one.message, ("", ""))]
            for told in [resting.get(one.message, {}).values() if len(text) <= EXCHANGE_CHARACTERS else ()]
            if text.strip()
        ]
