"""The part of a text for an agent on where the work stands, and on what the user said that nobody settled.

When there is more than room, what touches the message comes first, then the latest.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import chain, islice

from agentx.context.relevance import candidates, most_relevant
from agentx.context.rendering import (
    ContextItem,
    candidate_line,
    ended_run,
    memory_line,
    said,
    unknown,
)
from agentx.context.token_budget import NO_ROOM, Page
from agentx.synthesis.memory.items import MemoryItem, sort_of
from agentx.synthesis.memory.policies import POLICIES, Section, most_shown
from agentx.synthesis.state.state import RECENT_TEXT, Message, State

STATE_SHOWN = 50
"""Maximum number of items in the section of the current state."""

UNKNOWN_SHOWN = 5

_SHORT_SHARE, _SHARE = 0.25, 0.15
"""Maximum share of the budget for candidates: in a short text, before the rest of it is filled; otherwise."""

_QUOTE_TOKENS = 100
_SHORT_QUOTE_TOKENS = 50

_LEAST_TOKENS = 12
"""Size of a short fact; with less room, no more are tried."""

_END_MESSAGES = 4
"""Number of messages at the end of the conversation for which room is reserved in a short text."""

_END_SHARE = 0.25
"""Maximum share of the free tokens reserved for them."""

_END_TOKENS = 80
"""Maximum size of a message there."""


class WorkPage(Page):
    """A text with sections on the current work.

    Attributes:
        brief: Whether the text is short, so that items appear in short form.
        recalled: Events of the messages that are recalled elsewhere in the text.
        remembered: Ids of the memory items that are recalled elsewhere in the text.
        waiting: Items that had no room at first, each with its text.
        end_ids: Ids of the messages for which room is reserved at the end of the conversation.
    """

    def __init__(
        self,
        state: State,
        titles: Mapping[Section, str],
        max_tokens: int,
        *,
        brief: bool = True,
        message: str = "",
        more: str = "",
        counted: Collection[Section],
    ) -> None:
        super().__init__(state, titles, max_tokens, message=message, more=more, counted=counted)
        self.brief = brief
        self.recalled: set[int] = set()
        self.remembered: set[str] = set()
        self.waiting: list[tuple[ContextItem, str]] = []
        self.end_ids: set[str] = set()
        self._end_held = 0

    def _current(self) -> int:
        """Return the event of the message that the text is for, if it is the latest one; 0 otherwise."""
        last = self.state.messages[-1] if self.state.messages else None
        wanted = self.message.strip()
        if last is None or not wanted.startswith(last.text.strip()):
            return 0
        return last.seq if wanted == last.text.strip() or len(last.text) == RECENT_TEXT else 0

    # --- what stands now --------------------------------------------------------------------------

    def standing(self, kept: int = 0) -> None:
        """Add decisions, tasks, state, the latest checkpoint and the candidates.

        In a short text, items appear in short form except the latest of each kind: that is where the work
        continues. ``kept`` tokens stay free.
        """
        doubtful = [
            candidate_line(item, _SHORT_QUOTE_TOKENS if self.brief else _QUOTE_TOKENS)
            for item in candidates(self.state, self.message, self._current())
        ]
        room = int(self.max_tokens * (_SHORT_SHARE if self.brief else _SHARE))
        reserved = min(sum(line.tokens for line in doubtful), room, max(self.free - kept, 0) // 2)
        self.held += kept + reserved
        self._state()
        self.held -= reserved
        for line in doubtful:
            if line.tokens <= room and self.has_room(line):
                room -= line.tokens
                self.put(line)
            else:
                self.waiting.append((line, line.text))
        self.held -= kept

    def reserve_work(self) -> int:
        """Reserve at most half of the free tokens for :meth:`standing`; return their number."""
        lines = chain(
            (memory_line(item, "state", self.message, brief=True) for item in self._current_items()),
            (candidate_line(item, _SHORT_QUOTE_TOKENS) for item in candidates(self.state, self.message)),
        )
        room = max(self.free, 0) // 2
        tokens = 0
        for line in lines:
            tokens = min(tokens + line.tokens, room)
            if tokens == room:
                break
        self.held += tokens
        return tokens

    def _current_items(self) -> list[MemoryItem]:
        return [item for item in self.state.active() if POLICIES[item.kind].section == "state"]

    def _state(self) -> None:
        listed = self.listed
        shown: Counter[str] = Counter()
        for item in most_relevant(self._current_items(), self.message):
            if item.id in listed:
                continue
            sort = sort_of(item)
            if shown.total() >= STATE_SHOWN or shown[sort] >= (most_shown(item) or STATE_SHOWN):
                self.omit(
                    item.id, sort, item.text, "older than the items of the current state that are shown"
                )
                self.unshown[sort] += sort != "checkpoint"
                continue
            line = memory_line(item, "state", self.message, brief=self.brief and bool(shown[sort]))
            if self.brief and not self.has_room(line):
                line = memory_line(item, "state", self.message, brief=True)
            shown[sort] += 1
            if self.has_room(line):
                self.put(line)
            else:
                self.waiting.append((line, item.text))
        unsettled = [call for call in self.state.pending.values() if not call.awaits_approval]
        for call in unsettled[-UNKNOWN_SHOWN:]:
            self.fit(unknown(call), call.tool)

    def rest(self, *, fill: bool) -> None:
        """Add what had no room at first; to ``fill`` the budget, also the user's facts and all candidates."""
        doubtful = [one for one in self.waiting if one[0].section == "candidates"]
        for line, text in self.waiting:
            if line.section != "candidates":
                self.fit(line, text)
        if fill:
            for item in self._facts():
                if self.free < _LEAST_TOKENS:
                    break
                line = memory_line(item, "state", self.message, brief=self.brief)
                if self.has_room(line):
                    self.put(line)
        for line, text in doubtful:
            if fill and self.has_room(line):
                self.put(line)
            else:
                self.omit(line.id, line.kind, text, NO_ROOM)
                self.unshown["candidate"] += 1
        for section in ("state", "candidates"):
            self.shown[section].sort(key=self._age)

    def _age(self, line: ContextItem) -> int:
        """Sort memory items newest first, and events behind them."""
        item = self.state.items.get(line.id)
        return -item.created_seq if item else 0

    def _facts(self) -> list[MemoryItem]:
        """Return the facts that the user gave and that are not shown yet."""
        listed = self.listed | self.remembered
        known = (item for item in self.state.active("knowledge") if sort_of(item) == "knowledge")
        facts = [item for item in known if item.trust == "user" and item.id not in listed]
        return most_relevant(facts, self.message)

    # --- where we stopped -------------------------------------------------------------------------

    def reserve_end(self) -> None:
        """Reserve room for the end of the conversation, until :meth:`end` adds it."""
        latest = [line for _, line in islice(self._end(), _END_MESSAGES)]
        room = int(max(self.free, 0) * _END_SHARE)
        tokens = self._titles({"stopped"}) if latest else 0
        for line in latest:
            if tokens + line.tokens > room:
                break
            tokens += line.tokens
            self.end_ids.add(line.id)
        self.held += tokens
        self._end_held = tokens

    def reserved(self, message: Message) -> bool:
        """Return whether room is reserved for a message at the end of the conversation."""
        return f"event-{message.seq}" in self.end_ids

    def end(self) -> None:
        """Add how the last run ended if it did not complete, and the latest messages, as far back as fit."""
        self.held -= self._end_held
        run = self.state.last_run
        if run is not None and run.status not in ("RUNNING", "COMPLETED"):
            self.fit(ended_run(run), run.task)
        for _ in self.fit_latest(line for seq, line in self._end() if seq not in self.recalled):
            break

    def _end(self) -> Iterator[tuple[int, ContextItem]]:
        """Yield the latest messages except the one that the text is for, newest first, with their events."""
        current = self._current()
        for message in reversed(self.state.messages):
            if message.seq != current:
                yield message.seq, said(message, "stopped", _END_TOKENS)
