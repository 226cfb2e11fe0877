"""The model form of capture at work: a model reads what the user said since it last did, and settles proposals.

The model is asked while no lock of the workspace is held; what it answers is checked against the state as it is then, and
recorded in one go with how far was read. So a run of it that fails is made up for by the next, a rebuild asks no model, and
two processes never record the same twice.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from agentx.storage.blobs import BlobDamaged
from agentx.storage.events import UserMessageSent
from agentx.storage.history import told_already
from agentx.storage.lock import FileLock, WorkspaceBusy
from agentx.synthesis.conclusions import MODEL
from agentx.synthesis.items import MemoryItem
from agentx.synthesis.judgement import answer as answers
from agentx.synthesis.judgement import question
from agentx.synthesis.judgement.answer import Answer, AnswerUnreadable, Refused
from agentx.synthesis.judgement.check import check
from agentx.synthesis.model.port import ChatMessage, ModelClient, ModelError, Reply, Usage

if TYPE_CHECKING:
    from agentx.engine import Engine
    from agentx.workspace import Workspace

TIMEOUT_S = 60.0

MAX_REFUSED = 20
"""So many refusals are told one by one."""


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What came of asking a model.

    Attributes:
        model: Its name; empty where there was nothing to ask.
        messages: Seqs of the user's messages that it read.
        items: The items that it made or changed, as they are now.
        refused: What it said and is not believed, the first of it.
        refusals: How much that is in all.
        usage: What the calls used.
    """

    model: str = ""
    messages: tuple[int, ...] = ()
    items: tuple[MemoryItem, ...] = ()
    refused: tuple[Refused, ...] = ()
    refusals: int = 0
    usage: Usage = Usage()


def judge(
    ws: "Workspace", model: ModelClient, *, all_proposals: bool = False, timeout_s: float = TIMEOUT_S
) -> Judged:
    """Have a model read what the user said lately, and settle what is only proposed.

    It makes rules of the user's own words alone, and never overturns what a person decided by hand. Read are the messages
    among the latest 30 that no model has read.

    Args:
        ws: The workspace.
        model: Any model: :func:`agentx.synthesis.model.open.open_model` gives the configured one.
        all_proposals: Ask where no message is unread, too, as long as something is proposed.
        timeout_s: Limit of the whole, in seconds.

    Raises:
        ModelError: The model could not be reached, or its answer not be read, twice; nothing was recorded.
        WorkspaceBusy: Another process has a model read just now.
        ReadOnly: The workspace was written by a newer version.
    """
    lock = FileLock(ws.root / ".git" / "agentx-judge.lock", timeout_s=0)
    try:
        with lock.hold():
            return _judge(ws.engine, model, time.monotonic() + timeout_s, all_proposals=all_proposals)
    except WorkspaceBusy as error:
        if lock.held:
            raise
        raise WorkspaceBusy(
            "Another process has a model read what was said just now; wait for it, and look at `agentx memory list`."
        ) from error


def _judge(engine: "Engine", model: ModelClient, deadline: float, *, all_proposals: bool) -> Judged:
    state = engine.snapshot()
    said = _unread(engine, state.judged)
    if not said and not (all_proposals and question.proposals(state)):
        return Judged()
    answer, usage = _ask(model, question.conversation(said, state), deadline)
    with engine.write_path.exclusive():
        now = engine.write_path.state
        if now.judged != state.judged:
            return Judged(model=model.name, usage=usage)  # another process was faster
        checked = check(answer, said, now, model.name)
        if said or checked.changes:
            engine.synthesizer.record(checked.changes, MODEL, through=state.seq)
        items = tuple(now.items[item.id] for item in checked.items)
    return Judged(
        model=model.name,
        messages=tuple(said),
        items=items,
        refused=checked.refused[:MAX_REFUSED],
        refusals=len(checked.refused) + answer.beyond,
        usage=usage,
    )


def _unread(engine: "Engine", judged: int) -> Mapping[int, str]:
    """The user's messages among the latest that no model has read, by seq."""
    said: dict[int, str] = {}
    for message in engine.snapshot().messages:
        if message.seq <= judged or message.actor.partition(":")[0] != "user":
            continue
        event = next(iter(engine.write_path.history.read(message.seq - 1, told_already)), None)
        if event is not None and event.seq == message.seq and isinstance(event.data, UserMessageSent):
            with suppress(BlobDamaged):  # its words are lost
                said[event.seq] = engine.read_body(event.data.body)
    return said


def _ask(model: ModelClient, asked: Sequence[ChatMessage], deadline: float) -> tuple[Answer, Usage]:
    """Ask, and once more where the answer cannot be read."""
    first = _reply(model, asked, deadline)
    try:
        return answers.read(first), first.usage
    except AnswerUnreadable as error:
        repair = question.prompt("judge_repair.md").format(error=error)
    wrong = first.text or "\n".join(call.arguments for call in first.tool_calls)
    again = [
        *asked,
        ChatMessage("assistant", wrong[: question.MESSAGE_CHARACTERS] or "(nothing)"),
        ChatMessage("user", repair),
    ]
    second = _reply(model, again, deadline)
    used = zip(msgspec.structs.astuple(first.usage), msgspec.structs.astuple(second.usage), strict=True)
    return answers.read(second), Usage(*map(sum, used))


def _reply(model: ModelClient, asked: Sequence[ChatMessage], deadline: float) -> Reply:
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise ModelError(
            f"{model.name} did not answer in time; run again, or allow more time", retryable=True
        )
    for part in model.stream(asked, [question.schema()], timeout_s=left_s):
        if isinstance(part, Reply):
            return part
    raise ModelError(f"{model.name} ended its stream without a reply")
