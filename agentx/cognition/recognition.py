"""The Recognizer's part of an interaction: recognise the message, and record what is new in it."""

from collections.abc import Sequence
from itertools import takewhile

import msgspec

from agentx.cognition import memories
from agentx.cognition.recall import UNSURE
from agentx.cognition.turn import ACTOR, CognitiveTurn
from agentx.storage.events.cognition_events import Outdated, Recognized
from agentx.storage.events.types import Draft
from agentx.synthesis.cognition import recognizer
from agentx.synthesis.cognition.cognition_extractor import LEVELS
from agentx.synthesis.cognition.grounds import grounded
from agentx.synthesis.cognition.prompts import ShownMemory
from agentx.synthesis.cognition.recognizer import Recognition
from agentx.synthesis.memory.items import sort_of


def guess(turn: CognitiveTurn) -> Recognition:
    """Recognise the message by code."""
    with turn.timed("recognizer_latency_ms"):
        buffer, last = turn.buffer(), turn.mind.recent[-1:]
        return recognizer.recognize(
            turn.message,
            answered=bool(last) and last[0].input_type == "question",
            rule=turn.tally.is_rule(turn.seq),
            buffer=memories.utilities(turn.mind, buffer),
            topics={topic.id: topic.summary for topic in turn.tally.topics(turn.state)},
            known=[one.text for one in buffer],
        )


def with_outdated(turn: CognitiveTurn, guessed: Recognition) -> Recognition:
    """Add to what code recognised the memories that the message makes untrue."""
    said = next((one for one in reversed(turn.state.messages) if one.seq == turn.seq), None)
    return memories.with_outdated(turn.ws.engine, turn.state, turn.tally, guessed, said) if said else guessed


def _corrected(turn: CognitiveTurn, found: Recognition) -> Recognition:
    """Return a recognition with what a short correction puts in the place of the last answer."""
    items, last = turn.state.items, turn.mind.recent[-1:]
    texts = {name: items[name].text for name in last[0].used if name in items}
    before = turn.conversation.exchanges(turn.state, last, (), 1)
    if not before or before[0].answer.startswith(UNSURE):  # what was only nearest is not what is corrected
        return found
    made = recognizer.corrected(before[0].message, texts, turn.message)
    if made is None:
        return found
    memory, old = made
    others = tuple(one for one in found.memories if not memory.start <= one.start < memory.end)
    outdated = Outdated(memory=old, by=0)
    return msgspec.structs.replace(found, memories=(memory, *others), outdated=(outdated,))


def keep(
    turn: CognitiveTurn,
    guessed: Recognition,
    read: Recognition | None = None,
    model: str = "",
    *,
    failed: bool = False,
) -> tuple[Recognition, list[ShownMemory]]:
    """Record the content of the message, as the model ``read`` it or else as code did, and measure it.

    If the model ``failed``, it reads the message again later.

    Returns:
        What was recorded, and the new memories.
    """
    with turn.timed("recognizer_latency_ms"):
        if read is None:
            found, model = _corrected(turn, guessed) if guessed.input_type == "feedback" else guessed, ""
            found = found if found.outdated else with_outdated(turn, found)
        else:
            outdated = memories.with_rest(turn.state, read)
            found = msgspec.structs.replace(
                read, rule=guessed.rule, utilities=guessed.utilities, outdated=outdated
            )
        found, stored = store(turn, found, model, failed=failed and found.input_type != "question")
        _measure(turn, found, stored)
    return found, stored


def store(
    turn: CognitiveTurn,
    found: Recognition,
    model: str,
    *,
    second: bool = False,
    failed: bool = False,
    again: tuple[int, str] | None = None,
) -> tuple[Recognition, list[ShownMemory]]:
    """Record what was recognised, as far as an event has room.

    Args:
        turn: The interaction.
        found: What was recognised.
        model: Who recognised it; empty for code.
        second: Whether it was learned from the answer.
        failed: Whether a model reads the message again later.
        again: The earlier message that was read again, if it is that: its seq and its text.

    Returns:
        What was recorded, and the new memories that follow from it.
    """
    seq, text = again or (turn.seq, turn.message)
    utilities = {name: slot.utility for name, slot in turn.mind.buffer.items()}
    found, faults = recognizer.bounded(grounded(found, text, model), utilities)
    turn.metrics.faults += faults
    recognized = Recognized(
        session=turn.session,
        interaction=turn.number,
        message=seq,
        second=second,
        model=model,
        failed=failed,
        again=again is not None,
        linked=turn.config.enable_memory_linking,
        **msgspec.structs.asdict(found),
    )
    (event,) = turn.ws.record(Draft(data=recognized, actor=ACTOR))
    turn.look()
    items = turn.state.items
    new = list(takewhile(lambda item: item.created_seq > event.seq, reversed(items.values())))
    return found, [memories.remembered(item) for item in reversed(new) if sort_of(item) in LEVELS]


def _measure(turn: CognitiveTurn, found: Recognition, stored: Sequence[ShownMemory]) -> None:
    """Copy what was recognised into the metrics."""
    metrics, items, total = turn.metrics, turn.state.items, turn.tally.links
    metrics.input_type = found.input_type
    metrics.recognizer_semantic_memories_count = sum(one.level == "L2" for one in found.memories)
    metrics.recognizer_has_episodic = any(one.level == "L3" for one in found.memories)
    metrics.recognizer_utility_updates_count = len(found.utilities)
    metrics.new_memories_stored = [one.id for one in stored]
    metrics.memory_link_stats = {"created": total - turn.linked, "total": total}
    metrics.topic_construction_action = found.topic_action
    metrics.topic_construction_summary = found.topic_summary
    new = next((one.id for one in stored if sort_of(items[one.id]) == "topic"), "")
    metrics.topic_construction_id = found.topic or new
