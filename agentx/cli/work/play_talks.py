"""A talk of a sample: a long conversation with a cognitive agent without a model, and what it remembers."""

from collections.abc import Set as AbstractSet
from pathlib import Path

import msgspec
from rich.text import Text

from agentx.cli.terminal import Terminal, facts
from agentx.cli.work.samples import Sample, StoryStep, TalkMessage, read_talk
from agentx.cognition.agent import Answer, CognitiveAgent
from agentx.storage.text import one_line
from agentx.workspace import Workspace

_WIDTH = 150
"""Characters shown of an answer."""


class TalkTold(msgspec.Struct, kw_only=True):
    """The result of a talk.

    Attributes:
        asked: Number of questions for which the sample states the expected content.
        held: Number of those whose answers held it.
        memories: Number of memories made from the messages, including topics.
        left: How often a memory left the buffer.
        came_back: How often a memory that had left came back with a question.
        in_buffer: Number of memories in the buffer at the end.
        missed: The questions answered without the expected content.
    """

    messages: int = 0
    asked: int = 0
    held: int = 0
    memories: int = 0
    left: int = 0
    came_back: int = 0
    in_buffer: int = 0
    missed: list[str] = []


def play_talk(terminal: Terminal, sample: Sample, step: StoryStep, root: Path) -> None:
    """Say each message of a talk to a cognitive agent, and show the questions with their answers.

    Raises:
        SampleInvalid: A line of the talk is not a message.
    """
    talk, told = read_talk(sample, step), TalkTold()
    gone = set[str]()
    with Workspace.open(root, settings=terminal.settings) as ws:
        agent = CognitiveAgent(ws)
        for said in talk:
            before = agent.mind.buffer.keys()
            answered = agent.answer(said.say)
            back = (agent.mind.buffer.keys() - before) & gone
            gone = (gone - back) | set(answered.metrics.evicted_memory_ids)
            _count(told, said, answered, back)
            _show(terminal, said, answered, len(back))
        told.in_buffer = len(agent.mind.buffer)
    if terminal.json:
        terminal.line({"type": "TalkEnded", "data": told})
        return
    rows = [
        ("  messages", f"{told.messages:,}"),
        ("  questions", f"{told.held:,} of {told.asked:,} answers hold what they should"),
        ("  memories", f"{told.memories:,} made, {told.in_buffer:,} at hand in the end"),
        ("  faded", f"{told.left:,} times one left the buffer, {told.came_back:,} times one came back"),
    ]
    terminal.show("", facts(rows))


def _holds(message: TalkMessage, answered: Answer) -> bool:
    return all(words.casefold() in answered.text.casefold() for words in message.holds)


def _count(told: TalkTold, said: TalkMessage, answered: Answer, back: AbstractSet[str]) -> None:
    told.messages += 1
    told.memories += len(answered.metrics.new_memories_stored)
    told.left += len(answered.metrics.evicted_memory_ids)
    told.came_back += len(back)
    if said.holds:
        told.asked += 1
        told.held += _holds(said, answered)
        told.missed += [] if _holds(said, answered) else [said.say]


def _show(terminal: Terminal, said: TalkMessage, answered: Answer, back: int) -> None:
    """Show a question with its answer. Other messages are shown only as JSON."""
    if terminal.json:
        row = {
            "interaction": answered.interaction,
            "say": said.say,
            "answer": answered.text,
            "input_type": answered.metrics.input_type,
            "holds": _holds(said, answered) if said.holds else None,
            "left": len(answered.metrics.evicted_memory_ids),
            "came_back": back,
        }
        terminal.line({"type": "TalkAnswered", "data": row})
        return
    if answered.metrics.input_type != "question":
        return
    mark = ("  ", "") if not said.holds else ("✓ ", "green") if _holds(said, answered) else ("✗ ", "red")
    text = one_line(answered.text)
    terminal.show(
        Text.assemble((f"{answered.interaction:4d} ", "dim"), mark, (one_line(said.say), "bold")),
        Text.assemble(
            "       ",
            text if len(text) <= _WIDTH else f"{text[:_WIDTH].rstrip()}…",
            (f"  ({back:,} had faded and came back)" if back else "", "cyan"),
        ),
    )
