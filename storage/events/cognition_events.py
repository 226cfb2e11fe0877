"""The facts of a cognitive agent: what it recognised in a message, and how its memory buffer changed."""

from typing import Literal

import msgspec

from agentx.storage.events.types import Body, Payload

InputType = Literal["statement", "question", "feedback"]
TopicAction = Literal["create", "update", "none"]
Level = Literal["L1", "L2", "L3"]
"""L1 is procedures and topics of conversation, L2 is knowledge, L3 is what happened."""


class Extracted(msgspec.Struct, frozen=True, omit_defaults=True):
    """A memory extracted from a message.

    Attributes:
        text: The memory, as one sentence.
        start: Offset of the first character of the supporting passage in the message.
        end: Offset after its last character.
        quote: The supporting passage, if its wording differs from ``text``.
        trust: Upper limit for the trust in this memory; empty for that of the message's sender.
    """

    level: Level
    text: str
    start: int = 0
    end: int = 0
    quote: str = ""
    trust: str = ""


class Outdated(msgspec.Struct, frozen=True, omit_defaults=True):
    """A memory that is no longer true, at least in part, because of what a message says.

    Attributes:
        memory: Its id.
        by: Index of the memory of the message that takes its place, from 0.
        since: When that became true, or will: a date or time in ISO 8601; empty for the time of the message.
        rest: What is still true of it, as one sentence; empty for nothing.
    """

    memory: str
    by: int = 0
    since: str = ""
    rest: str = ""


class Recognized(Payload, frozen=True):
    """A message was analysed: its kind, and what to remember from it.

    Attributes:
        session: The conversation that the agent holds.
        interaction: Number of the interaction in the session, from 1.
        message: Seq of the analysed message.
        second: Whether this is the pass after the answer, which learns about answering.
        rule: Whether the message states a rule.
        linked: Whether knowledge (L2) and events (L3) are linked to each other.
        memories: The memories to store.
        outdated: Earlier memories that they take the place of.
        utilities: Current utility of memories, from 0 to 1, by id.
        reward: Feedback on the previous answer, from -1 to 1; 0 for none.
        topic_action: What to do with a topic.
        topic: Id of the topic to update; empty for a new one.
        topic_summary: Summary of the topic.
        model: Name of the model that analysed the message; empty if code did.
        failed: Whether code did since the model failed; a model analyses the message again later, once.
        again: Whether this is that second analysis. Its memories replace those of the first; without a
            model, it failed too.
    """

    session: str
    interaction: int
    message: int
    input_type: InputType
    second: bool = False
    rule: bool = False
    linked: bool = True
    memories: tuple[Extracted, ...] = ()
    outdated: tuple[Outdated, ...] = ()
    utilities: dict[str, float] = msgspec.field(default_factory=dict)
    reward: float = 0.0
    topic_action: TopicAction = "none"
    topic: str = ""
    topic_summary: str = ""
    model: str = ""
    failed: bool = False
    again: bool = False


class Interacted(Payload, frozen=True):
    """An interaction ended: the buffer was updated, an answer was given, memories decayed.

    Attributes:
        interaction: Its number in the session, from 1.
        message: Seq of the user's message; ``answer`` is that of the answer, 0 for none.
        entered: Memories that entered the buffer, because they are new or were retrieved.
        accessed: Memories included in the prompt of the answer; they decay all the same.
        reinforced: Those of them that the answer used: their decay restarts, and they are strengthened.
        boost: By how much they are strengthened; with 0, used memories decay like the others.
        evicted: Memories that left the buffer.
        temperature: The temperature of the decay.
        judge: How well the answer is grounded in the buffer, from 0 to 1; -1 if it was not judged.
        metrics: All metrics of the interaction, as JSON.
        snapshot: Input and output of the modules, as JSON, for logs and the report.
        calls: Number of calls of models, with their tokens and cost.
    """

    session: str
    interaction: int
    message: int
    answer: int = 0
    entered: tuple[str, ...] = ()
    accessed: tuple[str, ...] = ()
    reinforced: tuple[str, ...] = ()
    boost: float = 0.0
    evicted: tuple[str, ...] = ()
    temperature: float = 10.0
    judge: float = -1.0
    metrics: Body = Body("")
    snapshot: Body = Body("")
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
