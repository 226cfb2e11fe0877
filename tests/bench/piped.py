"""What a pipeline costs beyond its agents: chapters by the hundred, eight roles each, and a model that answers at once.

Beside each dispatch lies what a plain ``write_file`` of the same text takes, and ``git add`` with ``git commit`` by hand. A machine
that others use too is not as fast at the end as at the beginning: what the same work of the model takes in between tells by how much.
"""

import json
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from agentx import Workspace
from agentx.pipelines.runner import Runner
from agentx.synthesis.model.port import ChatMessage, Reply, ToolCall, ToolSchema, Usage
from tests.figures import Figure

from .clock import in_turns
from .grown import settings, text
from .peers import Peers
from .scale import Scale

JOBS = 8
_ROLES = 8
_FIFTHS = 5
_WORDS_BYTES = 2_000


def pipeline(scratch: Path, scale: Scale) -> Iterator[Figure]:
    """Run one to its end; the cost of a dispatch, on the clock and of the processor, at the first chapters and the last."""
    path = scratch / "book.yaml"
    path.write_text(_BOOK.replace("CHAPTERS", str(scale.chapters)))
    author, proved = _Author(), list[tuple[str, str, float]]()
    with Workspace.create(scratch / "piped", settings=settings(scratch)) as ws:
        (ws.artifacts / "style.md").write_text(text(1))
        ws.on(
            "StageProved",
            lambda event: proved.append((event.data.stage, event.data.item, time.perf_counter())),
        )
        runner = Runner(ws.engine, path, lambda _name: author, jobs=JOBS)
        began, used = time.perf_counter(), time.process_time()
        ended = runner.run()
        took, worked = time.perf_counter() - began, time.process_time() - used
        if ended.status != "COMPLETED":
            raise RuntimeError(f"the pipeline ended with {ended.status}: {ended.reason}")
    floor = _floor(scratch, scale)
    yield from _figures(scale, proved, author, took / ended.steps, worked / ended.steps, floor)


def _floor(scratch: Path, scale: Scale) -> str:
    """The same text, written by hand in turns."""
    git = Peers(scratch, scale.few_files).git
    with Workspace.create(scratch / "by-hand", settings=settings(scratch)) as ws:
        taken = in_turns(
            {
                "write_file": lambda turn: ws.tools.write_file(f"{turn}.md", text(turn, _WORDS_BYTES)),
                "git": git,
            },
            {"write_file": scale.writes, "git": scale.peer_writes},
        )
    ours = taken["write_file"]
    return (
        f"write_file {ours.median_ms:.1f} ms (processor {ours.processor_ms:.1f}); "
        f"git add + commit {taken['git'].median_ms:.1f} ms"
    )


def _figures(
    scale: Scale,
    proved: Sequence[tuple[str, str, float]],
    author: "_Author",
    clock_s: float,
    processor_s: float,
    floor: str,
) -> Iterator[Figure]:
    ends = [
        at for stage, _, at in proved if stage == "notes"
    ]  # chapters come to their end one after the other
    each = [1e3 * (end - start) / (_ROLES - 1) for start, end in pairwise(ends)]
    fifth = max(1, len(each) // _FIFTHS)
    first, last = (statistics.median(part) for part in (each[:fifth], each[-fifth:]))
    said = f"a dispatch, the model aside: {scale.chapters} chapters, {_ROLES} roles, --jobs {JOBS}"
    beside = f"all of it {1e3 * clock_s:.1f} ms; p95 {_percentile(each, 95):.1f}; {floor}"
    yield Figure(
        "pipeline_dispatch_p50_ms", f"{said}, p50, ms", statistics.median(each), 30, 15, beside=beside
    )
    every, growth, machine = author.processor_ms(scale.chapters)
    beside = f"first fifth {first:.1f} ms, last {last:.1f}; the same work of the model {machine:.2f}"
    yield Figure(
        "pipeline_dispatch_growth",
        "  the last fifth of the chapters, times the first",
        last / first,
        1.5,
        1.2,
        beside=beside,
    )
    beside = f"p95 {_percentile(every, 95):.1f} ms; of the whole process {1e3 * processor_s:.1f} ms"
    yield Figure(
        "pipeline_processor_p50_ms",
        "  of the processor, in the thread that sends",
        statistics.median(every),
        30,
        15,
        beside=beside,
    )
    beside = ", ".join(f"{role} {times:.2f}" for role, times in growth.items())
    yield Figure(
        "pipeline_processor_growth",
        "  the last fifth of the chapters, times the first, by the speed of the machine, median of roles",
        statistics.median(growth.values()),
        1.5,
        1.2,
        beside=beside,
    )


def _percentile(values: Sequence[float], percent: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


class _Author:
    """A model that takes no time, and notes how much the thread that asks it has worked since it asked last, and it itself."""

    name = "author"

    def __init__(self) -> None:
        self._taken: list[tuple[str, float, float]] = []
        self._before = threading.local()

    def stream(
        self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = (), *, timeout_s: float = 120.0
    ) -> Iterator[Reply]:
        if messages[-1].role == "tool":
            yield Reply("Done.", (), Usage(10, 1), self.name)
            return
        (path,) = next(tool for tool in tools if tool.name == "write_file").parameters["properties"]["path"][
            "enum"
        ]
        now = time.thread_time()
        call = ToolCall("1", "write_file", json.dumps({"path": path, "content": _written(path)}))
        own = time.thread_time() - now
        if (before := getattr(self._before, "value", None)) is not None:
            self._taken.append((path, now - before, own))
        self._before.value = now + own
        yield Reply("", (call,), Usage(1_000, 500), self.name)

    def processor_ms(self, chapters: int) -> tuple[list[float], dict[str, float], float]:
        """Of each dispatch; how much more the last fifth of the chapters takes than the first, by role, and the model itself."""
        by_role: defaultdict[str, list[tuple[int, float, float]]] = defaultdict(list)
        for path, seconds, own in self._taken:
            role, _, number = path.partition("/")
            by_role[role].append((int(number.removesuffix(".md")), seconds, own))
        fifth = max(1, chapters // _FIFTHS)
        growth, machine = dict[str, float](), list[float]()
        for role, taken in by_role.items():
            last = [one for one in taken if one[0] > chapters - fifth]
            first = [one for one in taken if one[0] <= fifth]
            if first and last:
                by_now, by_then = (
                    [statistics.median(part) for part in zip(*ones, strict=True)] for ones in (last, first)
                )
                machine.append(by_now[2] / by_then[2])
                growth[role] = by_now[1] / by_then[1] / machine[-1]
        return [1e3 * seconds for _, seconds, _ in self._taken], growth, statistics.median(machine or [1.0])


def _written(path: str) -> str:
    role, _, rest = path.partition("/")
    number = rest.removesuffix(".md")
    body = f"# {role} {number}\n\n{text(int(number) + 1_000 * len(role), _WORDS_BYTES)}\n"
    if role.startswith("review"):
        body += "\nVerdict: PASS\n"
    if role == "notes":
        terms = "".join(f"- **term{name}{number}**: what it is in chapter {number}\n" for name in "abc")
        body += f"\n## Summary\n\n{text(int(number), 300)}\n## New terms\n\n{terms}"
    return f"{body}\n<!-- DONE -->\n"


_BOOK = """\
pipeline: book
items: {chapter: CHAPTERS}
files:
  style: {path: style.md, class: static}
  summaries: {path: meta/summaries.md, class: append-only}
  glossary: {path: meta/glossary.md, class: append-only}
  facts: {path: "facts/{{ chapter.id }}.md"}
  draft: {path: "draft/{{ chapter.id }}.md"}
  review1: {path: "review1/{{ chapter.id }}.md"}
  review2: {path: "review2/{{ chapter.id }}.md"}
  review3: {path: "review3/{{ chapter.id }}.md"}
  merged: {path: "merged/{{ chapter.id }}.md"}
  notes: {path: "notes/{{ chapter.id }}.md"}
  page: {path: "page/{{ chapter.id }}.md"}
roles:
  facts:
    reads: [{file: style}]
    writes: [{file: facts, marker: DONE}]
  write:
    reads:
      - {file: facts}
      - {file: style}
      - {file: summaries, fit: recent}
      - {file: glossary, fit: sections}
    writes: [{file: draft, marker: DONE, checks: [{length: {words: "300", within: 0.9}}]}]
  review1:
    reads: [{file: draft}, {file: style}]
    writes: [{file: review1, marker: DONE, verdict: true}]
  review2:
    reads: [{file: draft}, {file: glossary, fit: sections}]
    writes: [{file: review2, marker: DONE, verdict: true}]
  review3:
    reads: [{file: draft}, {file: summaries, fit: recent}]
    writes: [{file: review3, marker: DONE, verdict: true}]
  merge:
    reads: [{file: review1}, {file: review2}, {file: review3}]
    writes: [{file: merged, marker: DONE}]
  notes:
    reads: [{file: draft}, {file: merged}]
    writes: [{file: notes, marker: DONE}]
    appends:
      - {to: summaries, from: notes, section: Summary, under: "Chapter {{ chapter.id }}", topic: summary}
      - {to: glossary, from: notes, section: New terms, under: "Chapter {{ chapter.id }}", topic: glossary}
  page:
    reads: [{file: draft}]
    writes: [{file: page, marker: DONE}]
stages:
  - {id: facts, role: facts, for_each: chapter}
  - {id: write, role: write, for_each: chapter, after: facts, after_previous: notes}
  - {id: review1, role: review1, for_each: chapter, after: write}
  - {id: review2, role: review2, for_each: chapter, after: write}
  - {id: review3, role: review3, for_each: chapter, after: write}
  - {id: merge, role: merge, for_each: chapter, after: [review1, review2, review3]}
  - {id: notes, role: notes, for_each: chapter, after: merge}
  - {id: page, role: page, for_each: chapter, after: write}
"""
