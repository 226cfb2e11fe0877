"""The parts of an open workspace, wired together: write path, bus, synthesis, index.

Used by tools, context and agents; :class:`agentx.workspace.Workspace` is the public interface.
"""

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from agentx.config import Config
from agentx.core.event_bus import Bus
from agentx.engine.commit_index import CommitIndex
from agentx.engine.daily_recap import Recaps
from agentx.engine.done_acts import DoneActIndex
from agentx.engine.event_index import EventIndex
from agentx.engine.followed import Following, Upstreams
from agentx.engine.heard_words import HeardWords
from agentx.engine.past_runs import PastRuns
from agentx.engine.synthesizer import Synthesizer
from agentx.recording.staging import Content
from agentx.recording.write_path import WritePath
from agentx.search.background_worker import SearchLate, done_by
from agentx.search.indexer import Indexer
from agentx.search.phrase_vectors import Meanings
from agentx.settings import Settings
from agentx.storage.events.actor import Actor
from agentx.storage.events.types import Body
from agentx.storage.files.lock import WorkspaceBusy
from agentx.storage.index.port import Filter
from agentx.storage.text import decoded
from agentx.synthesis.enforcement.breaches import CheckedChange
from agentx.synthesis.enforcement.evaluate import (
    Evaluation,
    evaluate_answer,
    evaluate_changes,
    evaluate_command,
)
from agentx.synthesis.memory.items import MemoryItem, checks_of
from agentx.synthesis.recall.retrieval import SearchHit
from agentx.synthesis.state.schedule_items import of_schedule
from agentx.synthesis.state.state import State
from agentx.trust.trust import Trust

EMBED_S = 2.0
"""How long a search embeds new texts where no background thread does so."""

EMBED_SHARE = 0.3
"""Share of the time until a deadline that is spent on embedding."""

READ_SHARE = 0.6
"""Share of the time until a deadline that is spent on reading new events into the index."""


class _Standing(NamedTuple):
    """The active demands, rejections and rules of a state, and what they were read from."""

    state: State
    concluded: int
    serves: str | None
    followed: Upstreams
    rules: tuple[MemoryItem, ...]
    checked: tuple[MemoryItem, ...]


class Engine:
    """One open workspace.

    Attributes:
        root: Its directory.
        config: The settings from ``agentx.toml``.
        settings: The settings from the environment.
        trust: Whether what the workspace brings along may be run, called or read outside it.
        write_path: Makes every change to log, repository and working files.
        log: The recorded events, and the state that they fold into.
        git: The commits, and the recorded entries of the artifacts.
        edits: Records what the user changed.
        health: Whether the log is sound.
        artifacts: The working files.
        synthesizer: Draws conclusions from each fact.
        indexer: Feeds and queries the memory index.
        summaries: Summaries of directories by tree id, path and rules; a change to any of them makes a new
            key.
        meanings: Vectors of short phrases.
        recaps: What happened in the last day.
        past_runs: The runs of the whole history.
        heard: Who wrote what first.
        links: What leads from one event to others.
        acts: The acts that were done.
        following: The workspaces whose rules hold here, too.
    """

    def __init__(
        self,
        root: Path,
        config: Config,
        settings: Settings,
        trust: Trust,
        bus: Bus,
        write_path: WritePath,
        synthesizer: Synthesizer,
        indexer: Indexer,
    ) -> None:
        self.root = root
        self.config = config
        self.settings = settings
        self.trust = trust
        self.bus = bus
        self.write_path = write_path
        self.log = write_path.log
        self.git = write_path.git
        self.edits = write_path.edits
        self.health = write_path.health
        self.artifacts = write_path.artifacts
        self.synthesizer = synthesizer
        self.indexer = indexer
        self.summaries: OrderedDict[tuple[str, str, str], str] = OrderedDict()
        self.meanings = Meanings(indexer, root, write_path.cache / "meanings")
        self.recaps = Recaps(self.log.history, write_path.cache / "recap")
        self.past_runs = PastRuns(self.log.history, write_path.cache / "runs", self.read_body)
        self.heard = HeardWords(self.log.history, write_path.cache / "heard", self.read_body)
        self.links = EventIndex(self.log.history, write_path.cache / "links")
        self.acts = DoneActIndex(write_path)
        self.commits = CommitIndex(self.git.repo, write_path.cache / "commits")
        self.following = Following(root, config.follow, settings, trust, self._has_event, self.artifacts.root)
        self._answered = threading.local()
        self._rules = _Standing(State(), -1, None, Upstreams(), (), ())
        self.serves: str | None = None
        """The schedule whose directed run is in progress in this process; ``None`` outside directed runs."""

    @property
    def state(self) -> State:
        """A copy of the state after everything that any process recorded; see :meth:`snapshot`."""
        return self.snapshot()

    def settle(self) -> tuple[str, int]:
        """Record and commit everything, including the user's edits; return the commit and the last event.

        Raises:
            ReadOnly: The workspace is read-only.
            HistoryDamaged: The log is damaged.
        """
        self.write_path.require_writable()
        with self.write_path.exclusive():
            self.health.refuse_damaged()
            self.edits.scan()
            self.write_path.flush()
            return self.git.head, self.log.state.seq

    def read_body(self, body: Body) -> str:
        """Return the whole text of a body."""
        return self.log.blobs.text(body)

    def snapshot(self) -> State:
        """Return a copy of the state that no other thread changes; waits only if others wrote."""
        if not self.write_path.is_current:
            self.write_path.refresh()
        return self.log.copy_state()

    def snapshot_by(self, deadline: float) -> tuple[State, bool]:
        """Return a copy of the state; if the lock is not free in time, of what this process has read.

        Args:
            deadline: ``time.monotonic()`` by which this returns.

        Returns:
            The state, and whether it holds what every process recorded.
        """
        try:
            return done_by(deadline, self.snapshot), True
        except (SearchLate, WorkspaceBusy):
            return self.log.state.copy(), False

    def search(
        self,
        query: str,
        k: int,
        where: Filter,
        *,
        deadline: float | None = None,
        files: bool = False,
        grouped: bool = False,
    ) -> list[SearchHit]:
        """Return the passages nearest to a query, fresh writes included.

        Args:
            query: Words in any form.
            k: Maximum number of hits.
            where: What to search.
            deadline: ``time.monotonic()`` by which there is an answer; what has no vector yet is found by its
                words.
            files: Return one hit for each file.
            grouped: Return the passages of a file as one hit.

        Raises:
            SearchLate: The index is still being loaded or filled at the deadline; the error holds the partial
                hits.
        """
        left_s = math.inf if deadline is None else max(0.0, deadline - time.monotonic())
        embed_s = min(EMBED_S, left_s * EMBED_SHARE)
        read_by = None if deadline is None else time.monotonic() + left_s * READ_SHARE

        def with_commits(hits: Sequence[SearchHit]) -> list[SearchHit]:
            self.commits.extend(self.git.head)
            commits = {seq: self.commits.find(seq) for seq in {hit.seq for hit in hits if not hit.source}}
            return [
                hit
                if hit.source or not commits[hit.seq]
                else msgspec.structs.replace(hit, commit=commits[hit.seq])
                for hit in hits
            ]

        def ask() -> list[SearchHit]:
            try:
                hits = self.indexer.search(
                    query, k, where, embed_s=embed_s, files=files, grouped=grouped, deadline=read_by
                )
            except SearchLate as late:
                raise SearchLate(str(late), with_commits(late.found)) from late
            return with_commits(hits)

        if deadline is not None:
            self.indexer.start()  # continues with what this search has no time for
        return done_by(deadline, ask)

    def commit_of(self, seq: int) -> str:
        """Return the first commit that holds an event; empty if it is not committed or not indexed yet."""
        self.commits.extend(self.git.head)
        return self.commits.find(seq)

    # --- the gate ---------------------------------------------------------------------------------

    @contextmanager
    def serving(self, schedule: str) -> Iterator[None]:
        """Apply only what concerns the runs of a schedule, or those without one, during a directed run."""
        self.serves = schedule
        try:
            yield
        finally:
            self.serves = None

    def applying(self, state: State, followed: Upstreams | None = None) -> State:
        """Return a state with the memory that applies now: its own, and the rules of followed workspaces.

        Args:
            state: The state.
            followed: The followed workspaces; as they are now by default.
        """
        followed = self.following.current() if followed is None else followed
        return followed.merged(self._served(state)).state

    def told(self, state: State) -> State:
        """Return a state as agents are shown it: with followed rules, and notes on what cannot be read."""
        return self.following.current().told(state)

    def _served(self, state: State) -> State:
        return state if self.serves is None else of_schedule(state, self.serves)

    def _has_event(self, seq: int, own_hash: str) -> bool:
        return self.log.history.locate(seq, own_hash) is not None

    def demands(self) -> list[MemoryItem]:
        """Return the user's active demands and rejections; cached until memory changes."""
        return [item for item in self._standing().rules if item.kind != "rule"]

    def checked(self) -> list[MemoryItem]:
        """Return the active items with checks; cached until memory changes."""
        return list(self._standing().checked)

    @property
    def standing_rules(self) -> int:
        """The number of active demands, rejections and rules."""
        return len(self._standing().rules)

    def _standing(self) -> "_Standing":
        followed = self.following.current()
        with self.write_path.exclusive():
            state = self.log.state
            concluded = state.counts.get("Concluded", 0)
            if self._rules.state is not state or self._rules[1:4] != (concluded, self.serves, followed):
                rules = tuple(self.applying(state, followed).active("constraint", "rejection", "rule"))
                checked = tuple(item for item in rules if checks_of(item))
                self._rules = _Standing(state, concluded, self.serves, followed, rules, checked)
            return self._rules

    def evaluate_write(self, contents: Mapping[str, Content | None], *, actor: str = "") -> Evaluation:
        """Evaluate the checks of the user's rules on a write.

        Args:
            contents: By path, the new content; ``None`` for a file that is deleted or moved away.
            actor: Who writes; empty if unknown.
        """
        return self.evaluate_changes(self.changes(contents, actor)) if self.checked() else Evaluation()

    def evaluate_changes(self, changes: Sequence[CheckedChange]) -> Evaluation:
        """Evaluate the checks of the user's rules on changes of files."""
        items = self.checked() if changes else ()
        return evaluate_changes(items, changes) if items else Evaluation()

    def changes(self, contents: Mapping[str, Content | None], actor: str = "") -> tuple[CheckedChange, ...]:
        """Return what a write would change; arguments as for :meth:`evaluate_write`."""
        return tuple(self._changes(contents, actor)) if contents else ()

    def _changes(self, contents: Mapping[str, Content | None], actor: str) -> Iterator[CheckedChange]:
        known, message = self.git.tracked_all(contents), self.last_user_message()
        for path, content in contents.items():
            tracked = known[path]
            before = decoded(self.git.repo.read_blob(tracked.oid)) if tracked else None
            after = None if content is None else decoded(content.data)
            yield CheckedChange(
                path=path,
                before=before,
                after=after,
                removes=content is None,
                actor=actor,
                message=message,
            )

    def evaluate_command(self, command: str) -> Evaluation:
        """Evaluate the checks of the user's rules on a command line."""
        items = self.checked() if command.strip() else ()
        return evaluate_command(items, command, message=self.last_user_message()) if items else Evaluation()

    def evaluate_answer(self, text: str, message: str = "") -> Evaluation:
        """Evaluate the checks of the user's rules on an answer."""
        return evaluate_answer(self.checked(), text, message=message or self.last_user_message())

    def last_user_message(self) -> str:
        """Return the message that is answered: that of this thread's session, or else the user's latest."""
        own: str | None = getattr(self._answered, "message", None)
        return last_user_message(self._served(self.log.state)) if own is None else own

    @contextmanager
    def answering(self, message: str | None) -> Iterator[None]:
        """Let what this thread judges count for the answer to a message.

        Several sessions work in one workspace: the latest message may be another one's. ``None`` means that.
        """
        before = getattr(self._answered, "message", None)
        self._answered.message = message
        try:
            yield
        finally:
            self._answered.message = before


def last_user_message(state: State) -> str:
    """Return the latest message of the user in a state; empty if there is none."""
    said = (m.text for m in reversed(state.messages) if Actor.parse(m.actor).is_user)
    return next(said, "")
