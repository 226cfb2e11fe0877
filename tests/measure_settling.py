"""``python -m tests.measure_settling LABELS [--each N]``: what settling by the agent costs, in tokens per 100 messages.

LABELS is ``coding_transcripts/labels.jsonl.gz``: messages of developers, each with what it holds. Each message is one run
of a simulated agent in one workspace. It answers at once, and settles each candidate that it is shown: it keeps, in the
quoted words, what the labels call a demand, a decision or a rejection, and drops the rest. With ``--each N``, every N-th
message adds one further candidate, as if capture proposed more.
"""

import argparse
import gzip
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agentx import Workspace
from agentx.agents.loop import SETTLE, run_task
from agentx.agents.run_types import Limits
from agentx.storage.events.types import Event
from agentx.synthesis.judgement.quotes import MAX_QUOTE, OwnWords
from agentx.synthesis.language.sentences import sentences
from agentx.synthesis.language.tokens import count_tokens
from agentx.synthesis.memory.conclusions import Add
from agentx.synthesis.memory.items import ConstraintDetail, Evidence, MemoryItem, free_id
from agentx.synthesis.model.port import ChatMessage, Reply, ToolCall, ToolSchema, Usage

LASTING = {"demand", "decision", "rejection"}


class Reader:
    """An agent that answers at once and settles as the labels say; counts what settling adds to its calls."""

    name = "simulated/reader"

    def __init__(self) -> None:
        self.lasting: set[int] = set()
        self.offered = self.steps = self.added = self.repeated = self.written = self.shown = 0

    def stream(
        self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = (), *, timeout_s: float = 120.0
    ) -> Iterator[Reply]:
        """Answer, or settle what the last message lists."""
        del timeout_s
        schema = next((tool for tool in tools if tool.name == SETTLE), None)
        if schema is not None:
            self.offered += 1
            self.added += count_tokens(
                json.dumps([schema.name, schema.description, schema.parameters], ensure_ascii=False)
            )
        last = messages[-1].content
        if "nobody has confirmed" not in last:
            yield Reply("Done.", (), Usage(), self.name)
            return
        self.steps += 1
        self.added += count_tokens(last)
        self.repeated += sum(count_tokens(one.content) for one in messages[:-1])
        self.repeated += sum(
            count_tokens(json.dumps(tool.parameters)) for tool in tools if tool is not schema
        )
        calls = tuple(self._calls(last))
        self.written += sum(count_tokens(f"{SETTLE} {call.arguments}") for call in calls)
        self.shown += len(calls)
        yield Reply("", calls, Usage(), self.name)

    def _calls(self, asked: str) -> Iterator[ToolCall]:
        for number, line in enumerate(line for line in asked.splitlines() if line.startswith("- ")):
            name = line.split()[1]
            quote = line[line.index("“") + 1 : line.index("”")]
            verdict = {"id": name, "verdict": "drop", "reason": "It was meant for that task."}
            if int(name.partition("-")[2].partition(".")[0]) in self.lasting:
                verdict = {
                    "id": name,
                    "verdict": "keep",
                    "quote": quote,
                    "text": quote,
                    "reason": "It lasts.",
                }
            yield ToolCall(f"s{self.steps}-{number}", SETTLE, json.dumps(verdict, ensure_ascii=False))


def main(arguments: Sequence[str]) -> None:
    """Print the cost."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("labels", type=Path)
    parser.add_argument("--each", type=int, default=0)
    given = parser.parse_args(arguments)
    with gzip.open(given.labels, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    reader, kept = Reader(), 0
    with tempfile.TemporaryDirectory() as place, Workspace.create(Path(place) / "task") as ws:
        numbers = iter(range(len(rows)))
        ws.on("UserMessageSent", lambda event: _heard(ws, event, reader, rows, next(numbers), given.each))
        rows = [row for row in rows if row["text"].strip()]
        for row in rows:
            run_task(ws, row["text"], reader, limits=Limits())
        kept = sum(item.worded_by != "" or item.reason.startswith("agent:") for item in ws.memory())
        settled = sum(item.reason.startswith("agent:main") for item in ws.memory(status=None))
        waiting = len(ws.memory(status="candidate"))
    each = 100 / len(rows)
    print(f"messages            {len(rows)}")
    print(f"candidates shown    {reader.shown} in {reader.steps} steps; settled {settled}, kept {kept}")
    print(f"candidates left     {waiting}")
    print(f"calls with the tool {reader.offered}")
    print("in 100 messages:")
    print(f"  added to prompts  {reader.added * each:,.0f} tokens (schema, instruction, candidates)")
    print(
        f"  prompt repeated   {reader.repeated * each:,.0f} tokens (of the further steps; cached by most providers)"
    )
    print(f"  written           {reader.written * each:,.0f} tokens (calls of settle)")


def _heard(
    ws: Workspace, event: Event, reader: Reader, rows: list[dict[str, Any]], number: int, each: int
) -> None:
    """Note whether a message is meant to last, and propose a candidate of every N-th."""
    if LASTING & set(rows[number]["labels"]):
        reader.lasting.add(event.seq)
    if each and number % each == 0:
        _propose(ws, event.seq, rows[number]["text"])


def _propose(ws: Workspace, seq: int, text: str) -> None:
    """Add a candidate on the first sentence of the user's own words."""
    own = OwnWords(text)
    span = next(iter(sentences(own.plain)), None)
    if span is None or not own.words(span):
        return
    words = text[span.start : span.end]
    if len(words) > MAX_QUOTE:
        return
    item = MemoryItem(
        id=free_id("constraint", seq, ws.state.items),
        kind="constraint",
        text=words,
        evidence=(Evidence(seq, span.start, span.start + len(words), words),),
        trust="user",
        status="candidate",
        detail=ConstraintDetail(),
    )
    ws.engine.synthesizer.record([Add(item)], "measure")


if __name__ == "__main__":
    main(sys.argv[1:])
