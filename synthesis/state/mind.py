"""The mind of a cognitive agent: its memory buffer, folded from history, so that replays agree.

A memory decays along Ebbinghaus' curve over interactions: ``R = exp(-t / (S T))``. Here t is the time since
it was last used, S its strength, which grows each time an answer uses it, and T the temperature of the agent.
"""

import math
from collections.abc import Mapping

import msgspec

from agentx.storage.events.cognition_events import InputType, Interacted, Recognized

FIRST_UTILITY = 0.5
"""Utility of a memory about which nothing is known yet."""

MOST_HELD = 120
"""Maximum number of memories in a buffer, however short: all that enter and leave it are recorded in one
event.
"""

MOST_RECENT = 50
"""Maximum number of interactions kept, whatever is configured."""


MOST_UNREAD = 20
"""Maximum number of messages that wait for a model to analyse them."""


class Slot(msgspec.Struct, frozen=True, omit_defaults=True):
    """A memory in the buffer.

    Attributes:
        entered: The interaction in which it entered.
        accessed: The interaction in which an answer last used and strengthened it, or in which it entered.
            Its decay starts here.
        strength: S; 1 for a new one.
        utility: How useful it is, from 0 to 1.
        reward: Feedback on the answers that used it, from -1 to 1.
    """

    entered: int
    accessed: int
    strength: float = 1.0
    utility: float = FIRST_UTILITY
    reward: float = 0.0


class InteractionEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A K-entry: one interaction, as kept in the agent's mind."""

    interaction: int
    message: int
    answer: int
    input_type: InputType
    judge: float = -1.0
    used: tuple[str, ...] = ()


class Mind(msgspec.Struct, frozen=True, omit_defaults=True):
    """One session of a cognitive agent.

    Attributes:
        interactions: Number of interactions so far.
        buffer: The memories held, by id of the memory item.
        recent: The latest interactions, oldest first.
        input_type: Type of the message being worked on.
        evicted: Number of memories that have left the buffer.
        unread: Messages, by seq, that code analysed since the model failed.
    """

    interactions: int = 0
    buffer: dict[str, Slot] = {}
    recent: tuple[InteractionEntry, ...] = ()
    input_type: InputType = "statement"
    evicted: int = 0
    unread: tuple[int, ...] = ()

    def recognized(self, read: Recognized) -> "Mind":
        """Return the mind after a message was read, with new utilities and rewards."""
        buffer = dict(self.buffer)
        for name, utility in read.utilities.items():
            if name in buffer:
                bounded = max(0.0, min(1.0, utility)) if math.isfinite(utility) else FIRST_UTILITY
                buffer[name] = msgspec.structs.replace(buffer[name], utility=bounded)
        if read.reward and self.recent:
            for name in self.recent[-1].used:
                if name in buffer:
                    reward = (buffer[name].reward + max(-1.0, min(1.0, read.reward))) / 2
                    buffer[name] = msgspec.structs.replace(buffer[name], reward=reward)
        unread = tuple(seq for seq in self.unread if seq != read.message)
        unread += (read.message,) if read.failed else ()
        kept = read.second or read.again
        return msgspec.structs.replace(
            self,
            buffer=buffer,
            input_type=self.input_type if kept else read.input_type,
            unread=unread[-MOST_UNREAD:] if read.failed or read.again else self.unread,
        )

    def interacted(self, done: Interacted) -> "Mind":
        """Return the mind after an interaction: memories entered, used and evicted."""
        now = done.interaction
        buffer = dict(self.buffer)
        for name in done.entered:
            buffer.setdefault(name, Slot(now, now))
        for name in done.reinforced:
            if (
                name in buffer and done.boost
            ):  # only use in an answer strengthens a memory, not its presence in the prompt
                slot = buffer[name]
                buffer[name] = msgspec.structs.replace(
                    slot, accessed=now, strength=slot.strength + done.boost
                )
        for name in done.evicted:
            buffer.pop(name, None)
        entry = InteractionEntry(now, done.message, done.answer, self.input_type, done.judge, done.reinforced)
        return msgspec.structs.replace(
            self,
            interactions=now,
            buffer=buffer,
            recent=(*self.recent, entry)[-MOST_RECENT:],
            evicted=self.evicted + len(done.evicted),
        )


def retention(slot: Slot, now: int, temperature: float) -> float:
    """Return the retention of a memory, from 0 to 1.

    Args:
        slot: The memory.
        now: The current interaction.
        temperature: T.

    >>> round(retention(Slot(entered=1, accessed=1), 11, 10.0), 3)
    0.368
    """
    stability = max(slot.strength * temperature, 1e-9)
    return math.exp(-max(now - slot.accessed, 0) / stability)


def purged(
    mind: Mind, now: int, temperature: float, decay_below: float, utility_below: float
) -> tuple[str, ...]:
    """Return the memories to purge from the buffer: those that have faded and are of little use."""
    return tuple(
        name
        for name, slot in mind.buffer.items()
        if retention(slot, now, temperature) < decay_below and slot.utility < utility_below
    )


def crowded_out(
    mind: Mind, now: int, temperature: float, sizes: Mapping[str, int], room: int
) -> tuple[str, ...]:
    """Return the memories that do not fit in the buffer.

    Those with the least utility times retention leave first.

    Args:
        mind: The mind that holds the buffer.
        now: The current interaction.
        temperature: T.
        sizes: Tokens by id. A memory that is not listed no longer exists, and leaves too.
        room: Token budget of the whole buffer.
    """
    worth = {
        name: slot.utility * retention(slot, now, temperature)
        for name, slot in mind.buffer.items()
        if name in sizes
    }
    kept: set[str] = set()
    for name in sorted(worth, key=lambda name: (-worth[name], -mind.buffer[name].entered))[:MOST_HELD]:
        if (room := room - sizes[name]) < 0:
            break
        kept.add(name)
    return tuple(name for name in mind.buffer if name not in kept)
