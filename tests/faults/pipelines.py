"""Pipelines that die again and again: each goes on where it was, and ends with the very files of one that nobody disturbed."""

import contextlib
import dataclasses
import errno
import json
import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b
from pathlib import Path

from agentx import Workspace
from agentx.core.event_bus import ALL
from agentx.pipelines.runner import Runner
from agentx.pipelines.tracked import pipelines
from agentx.storage.errors import AgentXError
from agentx.storage.events.pipeline_events import Dispatched, StageProved, StageReopened
from agentx.storage.events.types import Event, RunEnded, changes_of
from agentx.synthesis.model.port import ChatMessage, Reply, ToolCall, ToolSchema, Usage
from agentx.synthesis.pipelines.definition.checks import marker_line
from agentx.synthesis.pipelines.running.pipeline_progress import Pipelines
from agentx.trust.trust import Trust

from . import oracle
from .children import Child, Tell, start
from .disk import Disk, Fault
from .runs import Job, Outcome

BOOK = Path(__file__).parent / "book.yaml"


@dataclasses.dataclass(frozen=True)
class Moment:
    """A write to the log, behind which a pipeline dies.

    Attributes:
        says: What stands in the lines that are written.
        without: What does not.
        often: How often there is such a write, at least.
        steps: How many steps behind it are of interest.
    """

    says: str
    without: str = "\n\n"
    often: int = 1
    steps: int = 4


MOMENTS = {
    "begun": Moment('"type":"PipelineStarted"'),
    "sent": Moment('"type":"Dispatched"', often=36),
    "written": Moment('"type":"ToolCallExecuted"', often=36, steps=8),
    "ended": Moment('"type":"RunEnded"', '"type":"StageProved"', often=5),
    "proved": Moment('"type":"StageProved"', "meta/glossary.md", often=25),
    "remembered": Moment('"path":"meta/glossary.md"', often=4, steps=16),
    "noted": Moment('"tool":"append_log"', often=2, steps=8),
    "found": Moment('"type":"ItemsFound"', steps=6),
    "over": Moment('"type":"PipelineEnded"', steps=2),
}
"""By name: an agent was sent, has written, was accepted while what it did is not proved yet, and so on."""

TAKES_S = 1.8
"""About as long as the pipeline takes undisturbed; a death may come later than its end, and counts for nothing then."""

_FILLER = "\n" + "It goes on and on about what everybody knows by now. " * 50 + "\n"
"""Makes the drafts too long for one agent to read them all."""

_LOG = "meta/log.md"
_GROWING = ("meta/glossary.md", "meta/summaries.md", _LOG)
_MARKERS = {
    "outline": "OUTLINE",
    "words": "WORDS",
    "facts": "FACTS",
    "drafts": "DRAFT",
    "notes": "NOTES",
    "style.css": "SHEET",
    "parts": "PARTS",
    "pieces": "PIECE",
    "translations": "TRANSLATION",
}


# --- what runs -------------------------------------------------------------------------------------------------------


class Author:
    """A model that says the same of the same: what it writes names what it was given to read."""

    name = "author"

    def stream(
        self, messages: list[ChatMessage], tools: list[ToolSchema] = (), *, timeout_s: float = 120.0
    ) -> Iterator[Reply]:
        if messages[-1].role == "tool":
            yield Reply("Done.", (), Usage(10, 1), self.name)
            return
        prompt = messages[0].content
        paths = next(tool for tool in tools if tool.name == "write_file").parameters["properties"]["path"][
            "enum"
        ]
        calls = [
            ToolCall(str(number), "write_file", json.dumps({"path": path, "content": _text(path, prompt)}))
            for number, path in enumerate(paths)
        ]
        yield Reply("", tuple(calls), Usage(100, 10), self.name)


def _text(path: str, prompt: str) -> str:
    folder, _, name = path.partition("/")
    number = name[:2]
    heard = blake2b(prompt.partition("**Files to write")[0].encode(), digest_size=6).hexdigest()
    given = blake2b(prompt.rpartition("**Completion marker")[2].encode(), digest_size=6).hexdigest()
    text = f"# {path}\n\n## Text\n\nIt was told {heard} and given {given}.\n"
    if folder == "reviews":
        kind = name[3:-3].upper()
        fails = number == "03" and kind == "CODE" and "Round 2" not in prompt and "again" not in prompt
        return f"{text}\nVerdict: {'FAIL' if fails else 'PASS'}\n\n<!-- {kind}_DONE -->\n"
    if folder == "notes":
        text += f"\n## New terms\n\n- **term{number}**: what {number} is about\n\n## Summary\n\nIn {number} they meet.\n"
    if path == "facts/02.md" and "Attempt 2" not in prompt:
        return text  # without its marker
    if path == "parts.md":
        text += "\n- p1: One part\n- p2: Another\n- p3: The last\n"
    if folder == "drafts":
        text += _FILLER
    kind = _MARKERS.get(name) or _MARKERS.get(folder.partition(".")[0])
    marker = kind or ("INDEX" if name == "index.html" else "PAGE")
    return f"{text}\n{marker_line(f'{marker}_DONE', path)}\n"


def work(root: Path, jobs: int, tell: Tell) -> None:
    """Run the pipeline, where a copy of the workspace lies; every event is told when it is on record."""
    Trust.read(root, oracle.settings(root)).grant("trusted")
    with Workspace.open(root, settings=oracle.settings(root)) as ws:
        ws.engine.bus.subscribe(ALL, lambda event: tell({"ack": (event.seq, event.hash)}))
        tell({"open": True})
        ended = Runner(ws.engine, BOOK, lambda _name: Author(), jobs=jobs).run()
        tell({"ended": ended.status, "reason": ended.reason})


def make(place: Path) -> None:
    """A workspace that the pipeline is to run in, as ``ws``; and the files that an undisturbed run leaves, as ``calm``."""

    def making(tell: Tell) -> None:
        for name in ("ws", "run"):
            Workspace.create(place / name, title="A book", settings=oracle.settings(place / name)).close()
        work(place / "run", 2, tell)

    place.mkdir()
    told = start(making).finish()
    if not any(message.get("ended") == "COMPLETED" for message in told):
        raise RuntimeError(f"the pipeline does not run undisturbed: {told[-1]}")
    shutil.move(place / "run" / "artifacts", place / "calm")
    shutil.rmtree(place / "run")


# --- how it dies -----------------------------------------------------------------------------------------------------


def stopped(job: Job, outcome: Outcome, place: Path) -> None:
    """``4x5``: with so many jobs, killed so often, each time at a moment that is left to chance."""
    jobs, times = map(int, job.detail.split("x"))
    draw = random.Random(job.seed)

    def kill() -> None:
        child = start(partial(work, root, jobs))
        _wait_for(child, "open")
        child.listen(time.monotonic() + draw.uniform(0, TAKES_S))
        child.kill()
        _hear(outcome, child, acknowledged)

    root, acknowledged = _book(place), dict[int, str]()
    for _ in range(times):
        kill()
    _to_the_end(outcome, root, jobs, acknowledged)


def stopped_at(job: Job, outcome: Outcome, place: Path) -> None:
    """``proved+2x4``: so many steps behind the ``at``-th such moment, with so many jobs."""
    moment, _, rest = job.detail.partition("+")
    behind, jobs = rest.split("x")
    root, acknowledged = _book(place), dict[int, str]()

    def dying(tell: Tell) -> None:
        Behind(root, MOMENTS[moment], job.at, int(behind), lambda step: tell({"step": step})).install()
        work(root, int(jobs), tell)

    child = start(dying)
    child.finish()
    _hear(outcome, child, acknowledged)
    outcome.torn = int(behind) % 2
    _to_the_end(outcome, root, int(jobs), acknowledged)


class Behind(Disk):
    """Dies some steps behind a moment: before an even one, and in the middle of an odd one, where that is a write."""

    def __init__(
        self, root: Path, moment: Moment, number: int, behind: int, dies: Callable[[str], None]
    ) -> None:
        super().__init__(root, Fault(), dies=dies)
        self._moment = moment
        self._log = f"{root}/history.jsonl"
        self._left = number
        self._behind = behind

    def step(self, name, place, run, half=None):
        result = super().step(name, place, run, half)
        if self._left and name == "write" and place == self._log:
            with open(place, "rb", buffering=0) as log:
                log.seek(-result, os.SEEK_END)
                lines = log.read().decode()
            self._left -= self._moment.says in lines and self._moment.without not in lines
            if not self._left:
                self._fault = Fault("tear" if self._behind % 2 else "kill", self.steps + 1 + self._behind)
        return result


def interrupted(job: Job, outcome: Outcome, place: Path) -> None:
    """``4x1``: Ctrl-C once, which lets agents come to their end, or twice, which cuts them off."""
    jobs, times = map(int, job.detail.split("x"))
    root, acknowledged, draw = _book(place), dict[int, str](), random.Random(job.seed)

    def work_until(tell: Tell) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with contextlib.suppress(KeyboardInterrupt):
            work(root, jobs, tell)

    child = start(work_until)
    _wait_for(child, "ack")
    child.listen(time.monotonic() + draw.uniform(0.1, TAKES_S))
    for _ in range(times):
        if child.status is None:
            os.kill(child.pid, signal.SIGINT)
            child.listen(time.monotonic() + draw.uniform(0, 0.01))
    told = child.finish()
    _hear(outcome, child, acknowledged)
    outcome.survived = 1
    ends = [message["ended"] for message in told if "ended" in message]
    if times == 1 and not set(ends) <= {"INTERRUPTED", "COMPLETED"}:
        outcome.findings.append(f"one Ctrl-C ended it as {ends}")
    _to_the_end(outcome, root, jobs, acknowledged)


def starved(job: Job, outcome: Outcome, place: Path) -> None:
    """The disk is full from some step on, until the pipeline has given up; then there is room again."""
    root, acknowledged = _book(place), dict[int, str]()
    jobs = int(job.detail)

    def refused(tell: Tell) -> None:
        disk = Disk(root, Fault("refuse", job.at, errno.ENOSPC, lasting=True))
        disk.install()
        try:
            work(root, jobs, tell)
        except AgentXError as error:
            tell({"refused": f"{type(error).__name__}: {error}"})
        disk.mend()

    child = start(refused)
    child.finish()
    _hear(outcome, child, acknowledged)
    outcome.survived = 1
    _to_the_end(outcome, root, jobs, acknowledged, retry=True)


def _book(place: Path) -> Path:
    if not (place / "book").exists():
        make(place / "book")
    return place / "book" / "ws"


def _wait_for(child: Child, said: str) -> None:
    while child.status is None and not any(said in message for message in child.told):
        child.listen(time.monotonic() + 0.005)


def _hear(outcome: Outcome, child: Child, acknowledged: dict[int, str]) -> None:
    acknowledged |= outcome.hear(child)
    outcome.survived += child.status == -signal.SIGKILL


def _to_the_end(
    outcome: Outcome, root: Path, jobs: int, acknowledged: dict[int, str], *, retry: bool = False
) -> None:
    """Let it go on undisturbed, and look at everything."""
    child = start(partial(work, root, jobs))
    told = child.finish()
    acknowledged |= outcome.hear(child)
    ends = [(message["ended"], message["reason"]) for message in told if "ended" in message]
    if [status for status, _ in ends] != ["COMPLETED"]:
        outcome.findings.append(f"it did not go on to its end: {ends}")
    looking = start(lambda tell: [tell({"finding": finding}) for finding in findings(root)] and None)
    told = looking.finish()
    outcome.findings += [message["finding"] for message in told if "finding" in message]
    outcome.findings += [f"the look at it: {m['error'].strip()[-400:]}" for m in told if "error" in m]
    outcome.judge(root, acknowledged)


# --- what must hold --------------------------------------------------------------------------------------------------


def findings(root: Path) -> Iterator[str]:
    """Everything that a pipeline which was stopped and went on may not leave behind."""
    with Workspace.open(root, settings=oracle.settings(root)) as ws:
        events = list(ws.events())
        anew = Pipelines()
        for event in events:
            anew.take(event)
        progress = pipelines(ws.engine).of("book")
        if progress != anew.of("book"):
            yield "how far it is, as it is kept, is not what the history says"
        if ws.state.leases:
            yield f"leases are left: {sorted(ws.state.leases)}"
        if progress.running:
            yield f"runs are left without an end: {sorted(progress.running)}"
        yield from _grown(events, ws.engine.git.repo.read_blob)
    yield from _files(root, root.parent / "calm", progress.anomalies)
    yield from _once(events)


def _files(root: Path, calm: Path, anomalies: list[str]) -> Iterator[str]:
    ours, theirs = (_contents(place) for place in (root / "artifacts", calm))
    for path in sorted(ours.keys() | theirs.keys()):
        lines = [sorted(files.get(path, b"").splitlines()) for files in (ours, theirs)]
        if lines[0] != lines[1] or (path != _LOG and ours.get(path) != theirs.get(path)):
            yield f"{path} is not what an undisturbed run leaves: {ours.get(path, b'nothing')[-300:]!r}"
    noted = [line[2:] for line in ours.get(_LOG, b"").decode().splitlines() if line.startswith("- ")]
    if noted != anomalies:
        yield f"the log holds {noted}, and this is what went otherwise than planned: {anomalies}"


def _contents(place: Path) -> dict[str, bytes]:
    return {
        path.relative_to(place).as_posix(): path.read_bytes() for path in place.rglob("*") if path.is_file()
    }


def _once(events: list[Event]) -> Iterator[str]:
    """No step is proved twice, none is accepted twice, and none was reopened."""
    proved = [e.data for e in events if isinstance(e.data, StageProved)]
    sent = {e.run: e.data for e in events if isinstance(e.data, Dispatched)}
    done = [
        sent[e.run]
        for e in events
        if isinstance(e.data, RunEnded) and e.data.status == "COMPLETED" and e.run in sent
    ]
    for what, steps in (
        ("proved", [(one.stage, one.item, one.round) for one in proved]),
        ("accepted", [(one.stage, one.item, one.round, one.part) for one in done]),
    ):
        times = Counter(steps)
        yield from (f"{step} was {what} {count} times" for step, count in times.items() if count > 1)
    yield from (
        f"a finished stage was reopened: {e.data}" for e in events if isinstance(e.data, StageReopened)
    )
    yield from (f"{one.stage}[{one.item}] counts as found" for one in proved if one.found)


def _grown(events: list[Event], content: Callable[[str], bytes]) -> Iterator[str]:
    """What may only grow has only grown."""
    known = dict[str, bytes]()
    for event in events:
        for made in changes_of(event):
            if made.path in _GROWING:
                now = content(made.after) if made.after else b""
                if not now.startswith(known.get(made.path, b"")):
                    yield f"event {event.seq} changed what {made.path} held"
                known[made.path] = now
