"""The results and tokens of 60 directed runs, beside the same program with a fixed prompt."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from agentx import Workspace
from agentx.cli.work.samples import load_code
from agentx.directing.director import Director
from agentx.storage.events.direction_events import DirectiveIssued
from agentx.storage.events.types import RunStarted, UserMessageSent
from agentx.synthesis.directing import briefing
from agentx.synthesis.directing.past import Past
from agentx.synthesis.language.tokens import count_tokens
from agentx.tools.functions import FunctionTools

HERE = Path(__file__).parent


class Spent(NamedTuple):
    """What a run took, in tokens.

    Attributes:
        executor: Its prompt.
        director: What the director was shown and wrote before it; 0 if it was not asked. If code composed the
            directive: what a model would have been shown, and the directive.
        history: The prompt of a run that is given everything said and done so far instead.
    """

    executor: int
    director: int
    history: int


def spent(ws: Workspace, tools: dict[str, Callable[..., Any]]) -> Iterator[Spent]:
    """What each run of a workspace took, in order."""
    director = Director(ws.engine, tools=FunctionTools(ws.engine, tools).schemas())
    past = director.past(0)
    told = {run.run: _transcript(past, run.run, run.summary or run.reason) for run in past.runs}
    said = asked = 0
    for event in ws.events():
        match event.data:
            case UserMessageSent(body=body):
                said += count_tokens(ws.read_body(body))
            case DirectiveIssued() as issued:
                shown = director.question(ws.state_at(issued.through), issued.why)
                asked += sum(count_tokens(message.content) for message in shown) + _written(ws, issued)
            case RunStarted() as run:
                yield Spent(count_tokens(ws.read_body(run.task)), asked, said)
                said, asked = said + told.get(event.run, 0), 0


def _transcript(past: Past, run: str, came: str) -> int:
    """The tokens of a run in a conversation: its calls with their answers, and its result."""
    calls = [call for call in past.calls if call.run == run]
    return count_tokens(came) + sum(
        count_tokens(f"{call.tool} {json.dumps(call.arguments)}") + count_tokens(past.read(call.output))
        for call in calls
    )


def _written(ws: Workspace, issued: DirectiveIssued) -> int:
    """The tokens of a directive, and of the shape that it is written in."""
    left = [one.text for one in (*issued.checkpoints, *issued.knowledge)]
    words = [ws.read_body(issued.prompt), issued.summary, issued.strategy, issued.reflection, *left]
    shape = briefing.shape()
    return sum(map(count_tokens, words)) + count_tokens(json.dumps(shape.parameters))


def compare(ws: Workspace, world: Path) -> list[dict[str, str | int]]:
    """Compare the directed runs with two fixed prompts: the user's words, and the whole history."""
    newsroom = load_code(HERE / "newsroom.py")
    took = list(spent(ws, newsroom.tools(world, 1)))
    alone = world / "alone"
    alone.mkdir(exist_ok=True)
    tried = list(_without_director(ws, alone))
    return [
        {
            "60 runs": "with a director",
            **_sent(newsroom.outbox(world)),
            "failed runs": sum(run.status != "COMPLETED" for run in Director(ws.engine).past(0).runs),
            "director asked": sum(run.director > 0 for run in took),
            "tokens": sum(run.executor + run.director for run in took),
        },
        {
            "60 runs": "a fixed prompt",
            **_sent(newsroom.outbox(alone)),
            "failed runs": sum(status != "COMPLETED" for status, _ in tried),
            "director asked": 0,
            "tokens": sum(tokens for _, tokens in tried),
        },
        {"60 runs": "the whole history in each prompt", "tokens": sum(run.history for run in took)},
    ]


def _sent(mails: list[dict[str, Any]]) -> dict[str, str | int]:
    titles = [title for mail in mails for title in mail["titles"]]
    return {"titles mailed": len(titles), "mailed again": len(titles) - len(set(titles))}


def _without_director(ws: Workspace, world: Path) -> Iterator[tuple[str, int]]:
    """Status and tokens of each run of the same program on the same feed, given what the user said so far."""
    reader, newsroom = load_code(HERE / "reader.py"), load_code(HERE / "newsroom.py")
    prompt, number = "", 0
    for event in ws.events():
        match event.data:
            case UserMessageSent(body=body):
                prompt += ws.read_body(body) + "\n"
            case RunStarted():
                number += 1
                functions = newsroom.tools(world, number)
                schemas = msgspec.to_builtins(FunctionTools(ws.engine, functions).schemas())
                yield reader.work(prompt, schemas, _caller(functions, number))["status"], count_tokens(prompt)


def _caller(functions: dict[str, Callable[..., Any]], number: int) -> Callable[..., dict[str, str]]:
    """Calls tools as an executor does, but on no record."""

    def call(tool: str, arguments: dict[str, Any]) -> dict[str, str]:
        key = {"idempotency_key": f"{tool}-{number}"} if tool == "send_email" else {}
        try:
            return {"status": "SUCCEEDED", "output": json.dumps(functions[tool](**arguments, **key))}
        except ConnectionError as error:
            return {"status": "FAILED", "output": str(error)}

    return call
