"""What 20 days of a board come to, beside the same program started by cron without the engine."""

import os
import subprocess
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from agentx import Workspace
from agentx.cli.work.samples import load_code
from agentx.storage.events.types import AgentMessageSent, RunEnded, RunStarted, UserMessageSent

HERE = Path(__file__).parent
board = load_code(HERE / "board.py")

Printed = list[tuple[str, str]]
"""What was printed: offers with their numbers."""


def compare(ws: Workspace, world: Path) -> list[dict[str, str | int]]:
    """Compare the directed runs with the same program and an ``agentx done`` that knows nothing."""
    told = "\n".join(
        ws.read_body(one.data.body) for one in ws.events() if isinstance(one.data, AgentMessageSent)
    )
    prompts = list(said(ws))
    failed = sum(isinstance(one.data, RunEnded) and one.data.status != "COMPLETED" for one in ws.events())
    everything = list(_alone(prompts, world / "alone"))
    seen: set[str] = set()
    unseen = [(line, number) for line, number in everything if not (number in seen or seen.add(number))]
    return [
        _row("with a director", prompts, _read(told), failed),
        _row("cron, no memory", prompts, everything, 0),
        _row("cron, a list of numbers", prompts, unseen, 0),
    ]


def said(ws: Workspace) -> Iterator[str]:
    """What the user had said before each run."""
    prompt = ""
    for event in ws.events():
        match event.data:
            case UserMessageSent(body=body):
                prompt += ws.read_body(body) + "\n"
            case RunStarted():
                yield prompt


def _alone(prompts: list[str], world: Path) -> Iterator[tuple[str, str]]:
    """Run the program each day, with an ``agentx`` that always says that an offer is new."""
    world.mkdir(exist_ok=True)
    stub = world / "agentx"
    stub.write_text("#!/bin/sh\n")
    stub.chmod(0o700)
    environ = os.environ | {"PATH": f"{world}{os.pathsep}{os.environ['PATH']}"}
    for day, prompt in enumerate(prompts, start=1):
        board.tools(world, day)
        words = ("sh", str(HERE / "watcher.sh"), str(world))
        done = subprocess.run(words, input=prompt, env=environ, capture_output=True, text=True, check=True)
        yield from _read(done.stdout)


def _read(printed: str) -> Printed:
    parts = (line.rpartition(" (no. ") for line in printed.splitlines())
    return [(unicodedata.normalize("NFC", line), number.rstrip(")")) for line, mark, number in parts if mark]


def _row(name: str, prompts: list[str], printed: Printed, failed: int) -> dict[str, str | int]:
    lines = [line for line, _ in printed]
    wanted = {
        board.line(one)
        for day, prompt in enumerate(prompts, start=1)
        for one in board.shown(day)
        if f"Nothing from {one['company']}" not in prompt
    }
    return {
        f"{len(prompts)} days": name,
        "offers printed": len(lines),
        "printed twice": len(lines) - len(set(lines)),
        "missed": len(wanted - set(lines)),
        "failed runs": failed,
    }
