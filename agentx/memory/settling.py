"""Settling by the agent that works anyway: which items it is shown, and what its verdicts change.

Nobody is asked one by one. The agent is shown the candidates that touch its work, and answers with verdicts;
:mod:`agentx.synthesis.judgement.settling` believes them as far as the user's words prove them.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from agentx.storage.errors import UsageError
from agentx.storage.events.actor import Actor
from agentx.storage.events.types import UserMessageSent
from agentx.storage.log.blobs import BlobDamaged
from agentx.storage.log.history import told_already
from agentx.storage.secrets.redaction import clean
from agentx.storage.text import one_line
from agentx.synthesis.judgement.judge_answer import RefusedEntry
from agentx.synthesis.judgement.settling import SettleVerdict, can_be_settled, check_verdicts
from agentx.synthesis.language.words import subject_words
from agentx.synthesis.learning.merging import proposed_for
from agentx.synthesis.memory.conclusions import AGENT
from agentx.synthesis.memory.items import MemoryItem
from agentx.synthesis.state.state import State

if TYPE_CHECKING:
    from agentx.engine.engine import Engine

MOST = 8
"""Default number of items that an agent is shown at once."""

LATEST = 6
"""Number of latest messages that count as the current work."""

_SHARED = 2
"""Number of words that an item must share with the message, if it has as many."""

_ANSWERED_CHARACTERS = 160


class Unsettled(msgspec.Struct, frozen=True, kw_only=True):
    """An item that waits to be settled, as an agent is shown it.

    Attributes:
        id: Its ID.
        kind: Its kind.
        quote: The user's words.
        answers: The agent's sentence that the words answer; empty if they stand alone.
        text: The rule that is perhaps ended; empty for a candidate.
        seq: Event of the latest of these words.
    """

    id: str
    kind: str
    quote: str
    answers: str = ""
    text: str = ""
    seq: int = 0

    def render(self) -> str:
        """Return the item as one line."""
        asked = f" (answering: “{self.answers}”)" if self.answers else ""
        if self.text:
            return f"- {self.id} [active {self.kind}] {self.text} — perhaps ended by “{self.quote}”{asked}"
        return f"- {self.id} [{self.kind}] “{self.quote}”{asked}"


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """What verdicts changed.

    Attributes:
        items: The items that they added or changed, with their current content.
        refused: Verdicts that were not accepted, each with its reason.
    """

    items: tuple[MemoryItem, ...] = ()
    refused: tuple[RefusedEntry, ...] = ()

    def render(self) -> str:
        """Return one line for each change and each refusal."""
        lines = [f"{item.id} is {item.status}: {one_line(item.text)}" for item in self.items]
        return "\n".join([*lines, *(f"{one.what} was refused: {one.why}" for one in self.refused)])


def waiting(state: State, message: str = "", *, agent: str = "") -> list[MemoryItem]:
    """Return the items that an agent may settle and that touch the work, the newest words first.

    They were said in the latest messages, or share words with the message. So what nobody settles is asked a
    few times, and then only where the work comes back to it.

    Args:
        state: The state.
        message: What the agent works on.
        agent: Role of the agent; items about another role are left out. Empty for all.
    """
    latest = list(state.messages)[-LATEST:]
    begin = latest[0].seq if latest else 0
    work = subject_words(message)
    found = [
        item
        for item in state.items.values()
        if can_be_settled(item)
        and not item.by_hand
        and (not agent or item.agent in ("", agent))
        and (_latest_seq(item) >= begin or _shares(work, _words(item)))
    ]
    return sorted(found, key=lambda item: (_latest_seq(item), item.id), reverse=True)


def to_settle(engine: "Engine", message: str = "", *, most: int = MOST, agent: str = "") -> list[Unsettled]:
    """Return what an agent is asked to settle; see :func:`waiting`. At most ``most`` items."""
    return [_shown(item) for item in waiting(engine.snapshot(), message, agent=agent)[:most]]


def settle(engine: "Engine", verdicts: Iterable[SettleVerdict], *, by: str = "agent:main") -> Settlement:
    """Apply an agent's verdicts as far as the user's words prove them.

    Args:
        engine: The workspace.
        verdicts: The verdicts.
        by: The agent's actor.

    Raises:
        UsageError: ``by`` is not an agent, or a verdict has a field of the wrong type.
        ReadOnly: The workspace was written by a newer version.
    """
    if Actor.parse(by).role != "agent":
        raise UsageError(f"Verdicts are an agent's (agent:main), not those of {by!r}; a person uses review.")
    given = [_redacted(one) for one in verdicts]
    engine.heard.read_ahead(engine.log.copy_state())
    with engine.write_path.exclusive():
        state = engine.log.state
        named = [state.items[one.id] for one in given if one.id in state.items]
        checked = check_verdicts(
            given, dict(_said(engine, named, state)), state, by, engine.heard.doubts(state)
        )
        if checked.changes:
            engine.synthesizer.record(checked.changes, AGENT, actor=by)
        items = tuple(engine.log.state.items[item.id] for item in checked.items)
    return Settlement(items=items, refused=checked.refused)


def most_useful_first(state: State) -> list[MemoryItem]:
    """Return everything that a person can settle: what touches recent work, the most repeated, the newest."""
    touching = {item.id for item in waiting(state)}
    found = [
        item
        for item in state.items.values()
        if item.status == "candidate" or _is_in_doubt(item) or proposed_for(item, state.items)
    ]
    return sorted(
        found,
        key=lambda item: (item.id in touching, _repeats(item), _latest_seq(item), item.id),
        reverse=True,
    )


def _shares(work: frozenset[str], words: frozenset[str]) -> bool:
    """Return whether an item's words touch the work: one common word alone says little."""
    return len(work & words) >= max(1, min(_SHARED, len(words)))


def _is_in_doubt(item: MemoryItem) -> bool:
    return item.status == "active" and bool(item.perhaps_ended_by)


def _repeats(item: MemoryItem) -> int:
    return len({one.seq for one in item.evidence})


def _latest_seq(item: MemoryItem) -> int:
    return max((one.seq for one in (*item.evidence, *item.perhaps_ended_by)), default=item.created_seq)


def _words(item: MemoryItem) -> frozenset[str]:
    texts = [item.text, item.scope.topic, item.answers.quote if item.answers else ""]
    return frozenset[str]().union(*map(subject_words, texts))


def _shown(item: MemoryItem) -> Unsettled:
    words: Sequence[str] = [one.quote for one in item.perhaps_ended_by or item.evidence if one.quote]
    return Unsettled(
        id=item.id,
        kind=item.kind,
        quote=one_line(words[-1]),
        answers=one_line(item.answers.quote)[-_ANSWERED_CHARACTERS:] if item.answers else "",
        text=one_line(item.text) if item.perhaps_ended_by else "",
        seq=_latest_seq(item),
    )


def _redacted(given: SettleVerdict) -> SettleVerdict:
    try:
        verdict = msgspec.convert(msgspec.to_builtins(given), SettleVerdict)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise UsageError(f"Not a verdict: {one_line(str(error))}") from error
    return msgspec.structs.replace(verdict, text=clean(verdict.text), reason=clean(verdict.reason))


def _said(engine: "Engine", items: Iterable[MemoryItem], state: State) -> Iterator[tuple[int, str]]:
    """Yield the user's messages that items rest on, by seq."""
    wanted = {one.seq for item in items for one in (*item.evidence, *item.perhaps_ended_by)}
    for seq in sorted(wanted):
        event = next(iter(engine.log.history.read(seq - 1, told_already)), None)
        if event is None or event.seq != seq or not isinstance(event.data, UserMessageSent):
            continue
        if Actor.parse(event.actor).is_user:
            with suppress(BlobDamaged):  # its text is lost
                yield seq, engine.heard.own_words(state, engine.read_body(event.data.body))
