"""The facts of a cognitive agent: what it recognised in a message, and what became of its buffer of memories."""

from typing import Literal

import msgspec

from agentx.storage.events.types import Body, Payload

InputType = Literal["statement", "question", "feedback"]
TopicAction = Literal["create", "update", "none"]
Level = Literal["L1", "L2", "L3"]
"""L1 is how things are done and what is talked of, L2 what is known, L3 what happened."""


class Extracted(msgspec.Struct, frozen=True, omit_defaults=True):
    """A memory that was found in a message.

    Attributes:
        text: It, in a sentence.
        start: First character of the words that it rests on, in the message.
        end: One past the last.
        quote: Those words, where they are others than the text's.
        trust: Whose word it is at most; empty for that of who sent the message.
    """

    level: Level
    text: str
    start: int = 0
    end: int = 0
    quote: str = ""
    trust: str = ""


class Recognized(Payload, frozen=True):
    """A message was read: what kind it is, and what is to be remembered of it.

    Attributes:
        session: The conversation that the agent holds.
        interaction: Its number in that, from 1.
        message: Seq of the message that was read.
        second: Whether this is the pass after the answer, for what is learned about answering.
        rule: Whether the message states a rule.
        linked: Whether what is known and what happened is bound to each other.
        memories: What is to be remembered.
        utilities: How useful memories are now, from 0 to 1, by id.
        reward: What feedback says of the answer before, from -1 to 1; 0 for nothing.
        topic_action: What becomes of a topic.
        topic: Id of the topic that is updated; empty for a new one.
        topic_summary: What the topic is about.
        model: Who read it; empty for code.
    """

    session: str
    interaction: int
    message: int
    input_type: InputType
    second: bool = False
    rule: bool = False
    linked: bool = True
    memories: tuple[Extracted, ...] = ()
    utilities: dict[str, float] = msgspec.field(default_factory=dict)
    reward: float = 0.0
    topic_action: TopicAction = "none"
    topic: str = ""
    topic_summary: str = ""
    model: str = ""


class Interacted(Payload, frozen=True):
    """An interaction is over: the buffer was worked on, an answer was given, memories faded.

    Attributes:
        interaction: Its number in the session, from 1.
        message: Seq of the user's message, ``answer`` that of the answer; 0 for none.
        entered: Memories that came into the buffer, by being new or by being fetched.
        accessed: Memories that stood in the prompt of the answer; they fade all the same.
        reinforced: Of them, those that the answer used: their time begins anew, and they are stronger.
        boost: By how much; with 0, those that were used fade like the others.
        evicted: Memories that left the buffer.
        temperature: The temperature of the decay.
        judge: How well the answer rests on the buffer, from 0 to 1; -1 where it was not judged.
        metrics: All metrics of the interaction, as JSON.
        snapshot: What the modules saw and did, as JSON: for logs and the report.
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
