"""A workspace with something to see in each view of the inspector, made by the real engine in a few seconds.

A small press translates fables with agents: four weeks of rules, failing tests, deployments, a directed newsletter,
a pipeline whose input changed after it was done, a conversation, candidates, and a call that waits for a person.
Models are scripted and the clock is made up; all else is what a user's workspace goes through.
"""

import contextlib
import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

from agentx import Workspace
from agentx.agents.loop import run_task
from agentx.cognition.agent import CognitiveAgent
from agentx.directing.directed_runs import run_directed
from agentx.directing.executors import Function, Outcome
from agentx.pipelines.runner import Runner
from agentx.storage import clock
from agentx.storage.events.types import Draft, RunEnded, RunStarted, TaskGraded, ToolCallExecuted
from agentx.synthesis.model.port import Reply, Usage
from agentx.synthesis.model.scripted import ScriptedModel

SAMPLES = Path(__file__).parents[4] / "sample_workspaces"
FABLES = SAMPLES / "fables"
DAYS = 29
"""Length of the story in days; it ends some hours before now."""

FAILED = """\
============================= test session starts ==============================
collected 14 items

tests/test_titles.py ..F...........                                      [100%]

=================================== FAILURES ===================================
____________________________ test_umlauts_are_kept _____________________________
tests/test_titles.py:21: AssertionError: assert 'Fuchs fur alle' == 'Fuchs für alle'
=========================== short test summary info ============================
FAILED tests/test_titles.py::test_umlauts_are_kept - AssertionError: assert 'Fuchs fur alle' == 'Fuchs für alle'
========================= 1 failed, 13 passed in 0.41s =========================
"""
PASSED = """\
============================= test session starts ==============================
collected 14 items

tests/test_titles.py ..............                                      [100%]

============================== 14 passed in 0.39s ==============================
"""
LINT = "proofs/index.py:4:1: F401 [*] `os` imported but unused\nFound 1 error.\n[*] 1 fixable with the `--fix` option.\n"

TALK = (
    "Anna is the illustrator, and she lives in Lisbon.",
    "The printer in Porto is closed in August.",
    "Ben reads the German proofs, and he is away on Fridays.",
    "Where does Anna live?",
    "The paper for the cover weighs 250 grams.",
    "The book has 64 pages.",
    "How many pages does the book have?",
    "The first edition is 1,200 copies.",
    "Clara from the museum wants forty signed copies for the opening.",
    "Who reads the German proofs?",
    "The opening at the museum is on 12 December.",
    "I raised the first edition to 1,500 copies.",
    "How many copies is the first edition?",
    "The spine is sewn, not glued.",
    "When is the printer in Porto closed?",
    "Thanks, that is right.",
    "Where does Anna live?",
)


class MadeUpClock:
    """A clock that the story moves; each look at it takes a fifth of a second."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC) - timedelta(days=DAYS, hours=1)

    def wait(self, *, days: float = 0, minutes: float = 0) -> None:
        self.now += timedelta(days=days, minutes=minutes)

    def stamp(self, moment: datetime | None = None, *, timespec: str = "microseconds") -> str:
        if moment is None:
            self.now += timedelta(milliseconds=200)
        return clock.stamp(self.now if moment is None else moment, timespec=timespec)


@contextlib.contextmanager
def made_up_time():
    """Let events, maintenance and directors take their time from a made-up clock."""
    time = MadeUpClock()
    with contextlib.ExitStack() as stack:
        for module in ("storage.events.codec", "memory.maintenance", "memory.flows", "directing.director"):
            stack.enter_context(patch(f"agentx.{module}.stamp", time.stamp))
        yield time


class DirectorModel:
    """A director whose answers were written before."""

    name = "script/director"

    def __init__(self, *answers: dict) -> None:
        self._answers = list(answers)

    def stream(self, messages, tools=(), *, timeout_s=120.0):
        yield Reply(json.dumps(self._answers.pop(0)), (), Usage(4_180, 312, 0.0172), self.name)


def build(root: Path, settings) -> Path:
    """Make the workspace of the story and return its directory."""
    with made_up_time() as time:
        with Workspace.create(
            root, title="A book of fables in two languages", from_dir=FABLES / "start", settings=settings
        ) as ws:
            ws.configure("tools.run_command", "true")
            ws.configure("embeddings.model", "none")
            ws.configure("checks.tests.command", "python -m pytest -q")
        with Workspace.open(root, settings=settings) as ws:
            _rules(ws, time)
            _problems(ws, time)
            _deployments(ws, time)
            _newsletter(ws, time)
            _talk(ws, time)
            _pipeline(ws, time, root)
            _candidates(ws, time)
            _waiting_call(ws, time, root)
    return root


def _rules(ws, time) -> None:
    ws.remember("north_star", "A book of fables that a child reads aloud to a grandparent.", score=9)
    ws.say(
        "We start on the book. Never create a requirements.txt file; use pyproject.toml instead. "
        "Always keep the moral at the end of a fable."
    )
    ws.say("Never use the word “beast” in the English texts. Keep the tone friendly in every answer.")
    ws.say("We don't use Redis here, a file is enough. No em dashes in captions until the designer is back.")
    time.wait(days=1)
    ws.remember("decision", "The book is set in Gentium, at 11 points.")
    ws.remember("decision", "Proofs are kept as PDF below proofs/.")
    ws.remember("task", "Ask the museum for the rights to the engravings.")
    ws.remember("knowledge", "The printer in Porto needs 3 mm of bleed on each side.")
    tests = ws.remember("rule", "Run the tests before each deploy.", score=7)
    ws.remember("rule", "Before every deploy, run the tests.", score=5)
    ws.remember("rule", "Read a translation aloud before you hand it in.", score=6)
    ws.remember("rule", "Verify the file, not the report.", score=9.5)
    old = ws.remember("rule", "When changing the glossary, tell the reviewers of both languages.", score=5.5)
    for day in range(9):
        time.wait(days=1)
        run = _run(
            ws,
            time,
            f"Deploy proof {day + 1}",
            ("python -m pytest -q", f"git tag proof-{day + 1}", "sh tools/publish.sh"),
        )
        kept, broke = ((tests.id,), ()) if day not in (3, 6) else ((), (tests.id,))
        graded = TaskGraded(task=f"Deploy proof {day + 1}", passed=bool(kept), kept=kept, broke=broke)
        ws.record(Draft(data=graded, actor="agent:main", run=run))
        ws.maintain()
    ws.edit_memory(
        old.id, "When changing the glossary, tell the reviewers of both languages and update the index."
    )
    ws.retire(ws.remember("rule", "Write captions in capital letters.", score=5).id)


def _run(ws, time, task, commands, *, failing=(), outputs=None, status="COMPLETED", agent="main") -> str:
    """Record a run of commands; return its id."""
    run = f"r-{ws.state.counts.get('RunStarted', 0) + 1}"
    actor = f"agent:{agent}"
    ws.record(
        Draft(data=RunStarted(task=ws.body(task), agent=agent, model="script/writer"), actor=actor, run=run)
    )
    for number, command in enumerate(commands, start=1):
        took = 900 + 1_700 * number
        time.wait(minutes=took / 60_000)
        bad = command in failing
        output = (outputs or {}).get(command, "")
        call = ToolCallExecuted(
            call_id=f"{run}-{number}", tool="run_command", status="FAILED" if bad else "SUCCEEDED",
            arguments={"command": command}, command=command, exit_code=int(bad), output=ws.body(output), duration_ms=took,
        )  # fmt: skip
        ws.record(Draft(data=call, actor=actor, run=run))
    ended = RunEnded(
        status=status, summary=f"{task}: done." if status == "COMPLETED" else "", steps=len(commands) + 1,
        prompt_tokens=2_100 + 640 * len(commands), completion_tokens=180 + 55 * len(commands), cost_usd=0.0042 * len(commands),
        reason="" if status == "COMPLETED" else "The tests do not pass.",
    )  # fmt: skip
    ws.record(Draft(data=ended, actor=actor, run=run))
    return run


def _problems(ws, time) -> None:
    tests, lint = "python -m pytest", "ruff check proofs"
    time.wait(days=2)
    _run(
        ws,
        time,
        "Keep umlauts in titles",
        (tests,),
        failing=(tests,),
        outputs={tests: FAILED},
        status="FAILED",
    )
    time.wait(days=1)
    _run(ws, time, "Mend the titles", (tests,), outputs={tests: PASSED})
    time.wait(days=3)
    _run(
        ws,
        time,
        "Sort the index by title",
        (tests,),
        failing=(tests,),
        outputs={tests: FAILED},
        status="FAILED",
    )
    _run(ws, time, "Tidy the index", (lint,), failing=(lint,), outputs={lint: LINT}, status="FAILED")


def _deployments(ws, time) -> None:
    time.wait(days=1)
    flow = ws.flows.add(
        "publish the book",
        ["Back up what is live: `sh tools/backup.sh`", "Build: `sh tools/build.sh`", "Publish: `sh tools/publish.sh`", "Wait until Ben has looked."],
        triggers=["put the book online"],
        needs_approval=True,
    )  # fmt: skip
    steps = ("sh tools/backup.sh", "sh tools/build.sh", "sh tools/publish.sh")
    for number in range(7):
        time.wait(days=0.6)
        bad = number == 2
        run = _run(
            ws,
            time,
            "Publish the book",
            steps,
            failing=steps[2:] if bad else (),
            status="FAILED" if bad else "COMPLETED",
        )
        graded = TaskGraded(task="Publish the book", passed=not bad, flow=flow.id, steps_seen=3, steps=3)
        ws.record(Draft(data=graded, actor="agent:main", run=run))
    ws.flows.edit(flow.id, steps=[*flow.detail.steps, "Write to the readers' list."])
    ws.flows.add(
        "order paper",
        ["Ask three printers for a price.", "Compare by weight.", "Order."],
        triggers=["we need paper"],
    )
    for number in (1, 2):
        time.wait(minutes=30)
        _run(
            ws,
            time,
            f"Make the audio of fable {number}",
            ("sh tools/speak.sh", "sh tools/normalise.sh", "sh tools/upload.sh"),
        )
    ws.backtest()


def _newsletter(ws, time) -> None:
    time.wait(days=1)
    ws.say("Send the readers one mail a week with a new fable, never the same fable twice.")
    sent = []

    def send_mail(fable: str) -> str:
        """Send a fable to the readers."""
        sent.append(fable)
        return f"sent {fable} to 214 readers"

    def work(assignment) -> str:
        fable = (
            "The Fox and the Grapes",
            "The Dog and the Shadow",
            "The Crow and the Pitcher",
            "The Ants and the Grasshopper",
        )[len(sent)]
        return assignment.tools.call("send_mail", {"fable": fable}).output

    def lost(assignment) -> Outcome:
        return Outcome(status="FAILED", reason="The mail server refused the address of the list.")

    model = DirectorModel(
        _directive(
            "Nothing was sent yet. The user wants one fable a week and no repetition.",
            "Choose the shortest fable that was not sent, and send it once.",
            "The list of fables is small; in five weeks it is used up.",
        ),
        _directive(
            "Two mails went out, the third was refused by the server.",
            "Try again once, then stop and report the address.",
            "The refusal named the address, not the text, so the text stays.",
        ),
    )
    for worker in (work, work, lost, work):
        time.wait(days=1)
        run_directed(
            ws.engine, Function("mailer", worker), {"send_mail": send_mail}, model=model, agent="mailer"
        )


def _directive(summary: str, strategy: str, reflection: str) -> dict:
    return {
        "analysis_summary": summary,
        "strategy": strategy,
        "reflection": reflection,
        "executor_system_prompt": f"{strategy} Sent so far: {{{{run_number}}}}.",
        "reuse_policy": {"valid_for_runs": 5, "invalidate_on": ["executor_failed"]},
    }


def _talk(ws, time) -> None:
    agent = CognitiveAgent(ws)
    for words in TALK:
        time.wait(minutes=25)
        agent.answer(words)


def _pipeline(ws, time, root: Path) -> None:
    """Run the pipeline of the sample to its end, as its readme does; then change one of its inputs."""
    time.wait(days=1)
    for name in ("fables.yaml", "model.jsonl"):
        shutil.copy(FABLES / name, root / name)
    for name in ("words", "words-first", "words-edited"):
        shutil.copytree(FABLES / name, root / name)

    def run() -> None:
        Runner(
            ws.engine, root / "fables.yaml", lambda _name: ScriptedModel(root / "model.jsonl"), jobs=2
        ).run()
        time.wait(minutes=12)

    run()
    ws.approve(_asked(ws), approved=False, reason="In French it is la Cigale, as in La Fontaine.")
    run()
    ws.approve(_asked(ws))
    run()
    time.wait(days=1)
    ws.add([FABLES / "edited" / "crow-and-pitcher.md"], to="inbox")


def _asked(ws) -> str:
    return next(
        call.call_id for call in ws.state.pending.values() if call.awaits_approval and call.approved is None
    )


CANDIDATES = (
    "Please don't create a word list by hand, the glossary has it. What is left to do?",
    "I don't like footnotes in a book for children. Can you look at page 12?",
    "don't use emojis",
    "Could you avoid passive sentences here? And how long is the foreword?",
    "No tables in the appendix please, it looks like a tax form.",
)


def _candidates(ws, time) -> None:
    for words in CANDIDATES:
        time.wait(minutes=90)
        ws.say(words)


def _waiting_call(ws, time, root: Path) -> None:
    time.wait(minutes=50)
    script = root / "turns.jsonl"
    turns = [
        {
            "thought": "The flow begins with a backup.",
            "tool_calls": [{"name": "run_command", "arguments": {"command": "sh tools/publish.sh"}}],
        },
        {"answer": "It is online."},
    ]
    script.write_text("".join(f"{json.dumps(turn)}\n" for turn in turns))
    run_task(ws, "The French proofs are in. Put the book online.", ScriptedModel(script))
