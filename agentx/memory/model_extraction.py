"""Model extraction: a model reads new messages, takes notes, and settles candidates.

The model is asked while no lock of the workspace is held. Its answer is checked against the state at that
time, and recorded together with how far it read. So the next run makes up for one that fails, a rebuild asks
no model, and two processes never record the same twice.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import msgspec

from agentx.storage.events.actor import Actor
from agentx.storage.events.types import AgentMessageSent, UserMessageSent
from agentx.storage.files.lock import FileLock, WorkspaceBusy
from agentx.storage.log.blobs import BlobDamaged
from agentx.storage.log.history import told_already
from agentx.synthesis.judgement import judge_answer as answers
from agentx.synthesis.judgement import question
from agentx.synthesis.judgement.check import check
from agentx.synthesis.judgement.judge_answer import RefusedEntry
from agentx.synthesis.memory.conclusions import MODEL
from agentx.synthesis.memory.items import MemoryItem
from agentx.synthesis.model.port import ModelClient, Usage
from agentx.synthesis.model.structured import ask, prompt
from agentx.synthesis.state.state import RECENT_MESSAGES, RECENT_TEXT, State

if TYPE_CHECKING:
    from agentx.engine.engine import Engine

TIMEOUT_S = 60.0

MAX_REFUSED = 20
"""Maximum number of refusals reported one by one."""


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """The result of asking a model.

    Attributes:
        model: Its name; empty if there was nothing to ask.
        messages: Seqs of the messages it read.
        items: The items that it added or changed, with their current content.
        refused: Its first rejected statements.
        refusals: Number of rejected statements.
        usage: Token usage of the calls.
    """

    model: str = ""
    messages: tuple[int, ...] = ()
    items: tuple[MemoryItem, ...] = ()
    refused: tuple[RefusedEntry, ...] = ()
    refusals: int = 0
    usage: Usage = Usage()


def combined(judged: Sequence[Judged]) -> Judged:
    """Return the results of several calls as one."""
    return Judged(
        model=judged[-1].model if judged else "",
        messages=tuple(seq for one in judged for seq in one.messages),
        items=tuple({item.id: item for one in judged for item in one.items}.values()),
        refused=tuple(one for part in judged for one in part.refused)[:MAX_REFUSED],
        refusals=sum(one.refusals for one in judged),
        usage=sum((one.usage for one in judged), Usage()),
    )


class Open(Protocol):
    """An open workspace: any object with its parts."""

    @property
    def engine(self) -> "Engine":
        """The parts of the workspace."""
        ...


def judge(
    ws: Open, model: ModelClient, *, all_candidates: bool = False, timeout_s: float = TIMEOUT_S
) -> Judged:
    """Let a model read recent messages, take notes, and settle candidates.

    It makes rules only from the user's own words, and never overrides what the user decided by hand. It reads
    the first 30 messages that no model has read: on first use, the oldest ones. Messages of agents are
    included if ``scribe.capture_assistant`` is set.

    Args:
        ws: The workspace.
        model: Any model; :func:`agentx.synthesis.model.open.open_model` returns the configured one.
        all_candidates: If there are candidates, also ask without unread messages.
        timeout_s: Limit for the whole call, in seconds.

    Raises:
        ModelError: The model could not be reached, or its answer could not be read, twice; nothing was
            recorded.
        WorkspaceBusy: A model is already reading for another process.
        ReadOnly: The workspace was written by a newer version.
    """
    return judge_in(ws.engine, model, all_candidates=all_candidates, timeout_s=timeout_s)


def judge_in(
    engine: "Engine", model: ModelClient, *, all_candidates: bool = False, timeout_s: float = TIMEOUT_S
) -> Judged:
    """Like :func:`judge`, with the parts of a workspace."""
    lock = FileLock(engine.root / ".git" / "agentx-judge.lock", timeout_s=0)
    try:
        with lock.hold():
            return _judge(engine, model, time.monotonic() + timeout_s, all_candidates=all_candidates)
    except WorkspaceBusy as error:
        if lock.held:
            raise
        raise WorkspaceBusy(
            "Another process is extracting memories from the latest messages. Wait for it, and see "
            "`agentx memory list`."
        ) from error


def _judge(engine: "Engine", model: ModelClient, deadline: float, *, all_candidates: bool) -> Judged:
    state = engine.snapshot()
    batch = unread(engine, state)
    said, heard = batch.said, batch.heard
    if not batch and not (all_candidates and question.candidates(state)):
        return Judged()
    answer, usage = ask(
        model,
        question.conversation(said, state, heard),
        question.schema(),
        answers.read,
        prompt("judge_repair.md"),
        deadline=deadline,
    )
    with engine.write_path.exclusive():
        now = engine.log.state
        if now.judged != state.judged:
            return Judged(model=model.name, usage=usage)  # another process was faster
        checked = check(answer, said, now, model.name, heard, engine.heard.doubts(now))
        if batch or checked.changes:
            engine.synthesizer.record(
                checked.changes, MODEL, through=batch.through, asked=model.name, usage=usage
            )
        items = tuple(now.items[item.id] for item in checked.items)
    return Judged(
        model=model.name,
        messages=tuple(sorted((*said, *heard))),
        items=items,
        refused=checked.refused[:MAX_REFUSED],
        refusals=len(checked.refused) + answer.beyond,
        usage=usage,
    )


class Batch(msgspec.Struct, frozen=True):
    """Messages that no model has read, by seq, and the seq up to which they reach.

    Attributes:
        said: Messages of the user.
        heard: Messages of agents, as far as ``agentx.toml`` lets the scribe capture them.
        since: Time of the first message.
    """

    said: Mapping[int, str]
    heard: Mapping[int, str]
    through: int
    since: str = ""

    def __bool__(self) -> bool:
        return bool(self.said or self.heard)


def unread(engine: "Engine", state: State, most: int = RECENT_MESSAGES) -> Batch:
    """Return the first messages that no model has read, at most ``most``."""
    said: dict[int, str] = {}
    heard: dict[int, str] = {}
    listens = engine.config.scribe.auto_capture and engine.config.scribe.capture_assistant
    since = ""
    for event in engine.log.history.read(state.judged, told_already):
        if event.seq > state.seq:
            break
        who = Actor.parse(event.actor).role
        if who == "user" and isinstance(event.data, UserMessageSent):
            with suppress(BlobDamaged):  # its text is lost
                said[event.seq] = engine.heard.own_words(state, engine.read_body(event.data.body))
        elif listens and who == "agent" and isinstance(event.data, AgentMessageSent):
            heard[event.seq] = event.data.body.text[:RECENT_TEXT]
        if len(said) + len(heard) == 1:
            since = since or event.at
        if len(said) + len(heard) >= most:
            return Batch(said, heard, event.seq, since)
    return Batch(said, heard, state.seq, since)
