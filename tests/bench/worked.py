"""A workspace in which people and agents have worked for two months: what they said, did, ruled out and learned.

All of it goes through the face of the package, in bulk mode, and is concluded as it comes. Only the clock is made up: it
moves on by a few minutes with each event and ends yesterday, so that there are nights in between. The same scale gives
the same events, but for their dates.
"""

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest import mock

from agentx import Workspace
from agentx.storage.events.types import (
    AgentMessageSent,
    AgentThoughtProcess,
    ContextProvided,
    Draft,
    Payload,
    RunEnded,
    RunStarted,
    ToolCallExecuted,
    ToolCallRequested,
)

from .grown import settings

DAYS = 66
_VOCABULARY = json.loads((Path(__file__).parent / "worked.json").read_text("utf-8"))
_FLOWS, _RULES, _TOOLS = 30, 80, 12
_OUTCOMES = ("COMPLETED", "COMPLETED", "COMPLETED", "FAILED", "LIMIT_REACHED")


def worked(scratch: Path, events: int, name: str = "worked") -> Path:
    """Make it, with at least so many events, and close it; its directory."""
    root = scratch / f"{name}-{events}"
    clock = _Clock(events)
    with clock.set(), Workspace.create(root, title="Shop and billing", settings=settings(scratch)) as ws:
        person = _Person(ws, clock)
        with ws.bulk():
            person.set_up()
            while ws.state.seq < events:
                person.ask()
    return root


class _Clock:
    """What is told for the present: office hours, and a step for each event."""

    def __init__(self, events: int) -> None:
        today = datetime.now(UTC).replace(hour=8, minute=0, second=0, microsecond=0)
        self._now = today - timedelta(days=DAYS + 1)
        self._step = timedelta(hours=10) * DAYS / events

    def now(self, _zone: object = UTC) -> datetime:
        self._now += self._step
        if self._now.hour >= 18:
            self._now += timedelta(hours=14)
        return self._now

    @contextmanager
    def set(self) -> Iterator[None]:
        with mock.patch("agentx.storage.clock.datetime", self):
            yield


class _Person:
    """Somebody who has agents work, day after day."""

    def __init__(self, ws: Workspace, clock: _Clock) -> None:
        self._ws = ws
        self._rng = random.Random(5)
        self._clock = clock
        self._runs = 0
        self._calls = 0
        self._flows: list[str] = []
        self._rules: list[str] = []

    # --- once --------------------------------------------------------------------------------------------------------

    def set_up(self) -> None:
        """What a person writes down at the beginning: procedures, rules, tools and the mission."""
        ws, words = self._ws, _VOCABULARY
        ws.remember("north_star", "Ship a shop that never loses an order and never charges twice.")
        for number in range(_FLOWS):
            place = words["places"][(7 * number + number // 10) % len(words["places"])]
            name = words["procedures"][number % len(words["procedures"])].format(place=place)
            steps = self._rng.sample(words["steps"], k=self._rng.randint(3, 7))
            steps = [step.format(place=place) for step in steps]
            approval = name.startswith("deploy")
            flow = ws.flows.add(name, steps, triggers=[f"{name} again"], needs_approval=approval)
            self._flows.append(flow.id)
        for number in range(_RULES):
            text = self._sentence("rules")
            self._rules.append(
                ws.remember("rule", text, score=9.0 if number % 16 == 0 else 5.0 + number % 4).id
            )
        for number in range(_TOOLS):
            ws.capabilities.add(f"{words['tools'][number]} access", f"{words['tools'][number]} --version")

    # --- again and again ---------------------------------------------------------------------------------------------

    def ask(self) -> None:
        """A message and all that answers it; now and then what it says is to hold for good."""
        rng = self._rng
        self._runs += 1
        said = self._sentence("tasks")
        for kind, often in (("demands", 0.04), ("rejections", 0.03), ("decisions", 0.12), ("facts", 0.1)):
            if rng.random() < often:
                said += " " + self._sentence(kind)
        self._ws.say(said)
        run = f"r-{self._runs}"
        worked = self._work(run, said)
        if rng.random() < 0.6:
            self._grade(run, said, passed=worked)

    def _work(self, run: str, task: str) -> bool:
        rng, ws = self._rng, self._ws
        self._record(run, RunStarted(task=ws.body(task), agent="main", model="some/model"))
        self._record(run, self._shown())
        if rng.random() < 0.06:
            self._refuse(run)
        check = rng.choice(_VOCABULARY["checks"])
        tools = ws.tools.acting("agent:main", run)
        for _ in range(rng.randint(2, 6)):
            self._record(run, AgentThoughtProcess(body=ws.body(self._sentence("thoughts"))))
            if rng.random() < 0.4:
                path = f"src/{rng.choice(_VOCABULARY['places'])}/{rng.choice(_VOCABULARY['objects'])}.py"
                tools.write_file(path, self._content())
            self._run(run, rng.choice(_VOCABULARY["commands"]), works=rng.random() < 0.85)
            if rng.random() < 0.3:
                self._run(run, rng.choice(_VOCABULARY["setups"]), works=True)
        passed = rng.random() < 0.75
        self._check(run, check, passed=passed)
        self._record(run, AgentMessageSent(body=ws.body(self._sentence("answers")), final=True))
        status = "COMPLETED" if passed else rng.choice(_OUTCOMES)
        self._record(run, RunEnded(status=status, reason="", steps=5))
        return passed

    def _shown(self) -> Payload:
        items = [item.id for item in self._ws.engine.log.state.active("knowledge", "rule")]
        shown = tuple(self._rng.sample(items, k=min(5, len(items))))
        return ContextProvided(items=shown, recalled=tuple(f"i:{name}" for name in shown), tokens=900)

    def _run(self, run: str, command: str, *, works: bool) -> None:
        place = self._rng.choice(_VOCABULARY["places"])
        command = command.format(place=place)
        said = (
            "\n".join(self._sentence("thoughts") for _ in range(3))
            if works
            else f"error: {place} is not there"
        )
        self._called(run, command, said, 0 if works else 1)

    def _check(self, run: str, command: str, *, passed: bool) -> None:
        name = self._rng.choice(_VOCABULARY["objects"])
        command = f"{command} tests/test_{name}.py" if command.endswith("-q") else command
        if passed:
            said = "............ [100%]\n============ 12 passed in 0.53s ============"
        else:
            said = (
                f"FAILED tests/test_{name}.py::test_{name}_is_kept - AssertionError: assert 3 == 4\n"
                "============ 1 failed, 11 passed in 0.61s ============"
            )
        self._called(run, command, said, 0 if passed else 1)

    def _called(self, run: str, command: str, said: str, exit_code: int) -> None:
        self._calls += 1
        call, arguments = f"c-{self._calls}", {"command": command}
        self._record(
            run,
            ToolCallRequested(call_id=call, tool="run_command", arguments=arguments),
            ToolCallExecuted(
                call_id=call,
                tool="run_command",
                status="FAILED" if exit_code else "SUCCEEDED",
                arguments=arguments,
                command=command,
                exit_code=exit_code,
                output=self._ws.body(said),
            ),
        )

    def _refuse(self, run: str) -> None:
        """A call waits for the person's word, who says no."""
        self._calls += 1
        call, arguments = f"c-{self._calls}", {"command": self._rng.choice(_VOCABULARY["dangerous"])}
        reason = self._sentence("reasons")
        self._record(
            run,
            ToolCallRequested(call_id=call, tool="run_command", arguments=arguments, awaits_approval=True),
        )
        self._ws.approve(call, approved=False, reason=reason)
        denied = ToolCallExecuted(
            call_id=call,
            tool="run_command",
            status="DENIED",
            arguments=arguments,
            output=self._ws.body(reason),
        )
        self._record(run, denied)

    def _grade(self, run: str, task: str, *, passed: bool) -> None:
        rng = self._rng
        followed = rng.choice(self._flows) if rng.random() < 0.5 else ""
        self._ws.gates.after(
            task.partition(".")[0],
            passed=passed,
            flow=followed,
            lesson=self._sentence("lessons") if rng.random() < 0.75 else "",
            kept=rng.sample(self._rules, k=3),
            broke=() if passed else rng.sample(self._rules, k=1),
            domain=rng.choice(_VOCABULARY["places"]),
            run=run,
        )

    # --- words -------------------------------------------------------------------------------------------------------

    def _sentence(self, kind: str) -> str:
        pattern = self._rng.choice(_VOCABULARY[kind])
        words = {
            name: self._rng.choice(_VOCABULARY[f"{name}s"])
            for name in ("verb", "object", "place", "why", "way")
        }
        return pattern.format(**words, number=self._rng.randint(2, 900))

    def _content(self) -> str:
        return "\n".join(f"# {self._sentence('thoughts')}" for _ in range(8)) + "\n"

    def _record(self, run: str, *facts: Payload) -> Sequence[object]:
        return self._ws.record(*(Draft(data=fact, actor="agent:main", run=run) for fact in facts))
