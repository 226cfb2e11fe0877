"""Who wrote what first in a history; kept, so that a message is compared with all of it at once."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from agentx.core.cached_projection import Kept
from agentx.storage.events.actor import is_own_run
from agentx.storage.events.types import (
    AgentMessageSent,
    AgentThoughtProcess,
    Body,
    Event,
    RunEnded,
    RunStarted,
    ToolCallExecuted,
    UserMessageSent,
)
from agentx.storage.log.blobs import BlobDamaged
from agentx.storage.log.history import History, told_already
from agentx.synthesis.attribution.copies import RUN, Copied, Heard
from agentx.synthesis.demands.book import from_user
from agentx.synthesis.judgement.book import Doubts
from agentx.synthesis.memory.items import Evidence
from agentx.synthesis.scribe.harness import is_question_tool
from agentx.synthesis.state.extractor import ReadBody
from agentx.synthesis.state.state import State

VERSION = 3
"""Increase it if the same events would be read differently; a cache with another version is ignored."""

SAVE_SHARE = 0.02
"""It grows with the history, so it is saved after this share of the events: a long import saves it seldom."""


class HeardWords:
    """Who wrote what first in a workspace.

    Args:
        history: The log.
        folder: Directory that keeps it between processes; a cache.
        read: Returns the whole text of a body.
    """

    def __init__(self, history: History, folder: Path, read: ReadBody) -> None:
        self._history, self._read = history, read

        def anew(state: State) -> Heard:
            heard = Heard()
            for event in history.read(on_damage=told_already):
                if event.seq <= state.seq:
                    hear(heard, event, read)
            return heard

        self._kept = Kept(
            history,
            folder,
            str(VERSION),
            anew,
            lambda heard, event: hear(heard, event, read),
            Heard,
            save_share=SAVE_SHARE,
            newer_serves=True,  # who wrote something first does not change
        )
        self.clear = self._kept.clear

    def read_ahead(self, state: State) -> None:
        """Read what was recorded so far, so that little is left to read while the workspace's lock is held.

        Args:
            state: A state that nobody changes meanwhile.
        """
        self._kept.read_ahead(state)

    def at(self, state: State) -> Heard:
        """Return who wrote what first, up to the last event of the current state."""
        return self._kept.at(state, lambda heard: heard)

    def own_words(self, state: State, text: str) -> str:
        """Return a message of the user with line breaks in the place of what was copied into it."""
        return self.at(state).copied(text).masked(text)

    def doubts(self, state: State) -> Doubts:
        """Return what tells whether words of a message may have been copied, of those in the history."""
        heard = self.at(state)

        @cache
        def copied(seq: int) -> Copied:
            event = next(iter(self._history.read(seq - 1, told_already)), None)
            if event is None or event.seq != seq or not isinstance(event.data, UserMessageSent):
                return Copied()
            return heard.copied(_text(event.data.body, self._read))

        def doubts(evidence: Evidence) -> bool:
            found = copied(evidence.seq)
            places = (*found.quotations, *found.doubtful)
            return any(one.start < evidence.end and evidence.start < one.end for one in places)

        return doubts


def hear(heard: Heard, event: Event, read: ReadBody) -> None:
    """Read one event."""
    data = event.data
    if isinstance(data, UserMessageSent) and from_user(event.actor):
        heard.hear(_text(data.body, read))
        if data.task or data.schedule:
            heard.tasks.add(event.seq)
    elif isinstance(data, RunStarted) and is_own_run(event.run) and event.cause:
        heard.tasks.add(event.cause)
    elif isinstance(data, UserMessageSent | AgentMessageSent | AgentThoughtProcess):
        heard.hear_others(_text(data.body, read))
    elif isinstance(data, RunEnded):
        heard.hear_others(data.summary)
    elif isinstance(data, ToolCallExecuted):
        for text in _of_call(event, data, read):
            heard.hear_others(text, output=True)


def _of_call(event: Event, call: ToolCallExecuted, read: ReadBody) -> Iterator[str]:
    """Yield what a tool printed and what the agent wrote in its arguments.

    An answer to a question and the reason of a denial are the user's own words.
    """
    if call.status != "DENIED" and not is_question_tool(call.tool):
        yield _text(call.output, read)
    for value in () if from_user(event.actor) else call.arguments.values():
        if isinstance(value, str) and value.count(" ") >= RUN:
            yield value


def _text(body: Body, read: ReadBody) -> str:
    try:
        return read(body)
    except BlobDamaged:  # its beginning and its end are in the event
        return body.text
