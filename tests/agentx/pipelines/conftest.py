"""Pipelines for tests: a model that writes what it is asked for at once, and a workspace with a pipeline's file."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from agentx.pipelines.runner import Ended, Runner
from agentx.synthesis.model.port import ChatMessage, Reply, ToolCall, ToolSchema, Usage
from agentx.workspace import Workspace

BOOK = """\
pipeline: book
items:
  chapter: 3
files:
  outline:  {path: outline.md, class: static}
  glossary: {path: meta/glossary.md, class: append-only}
  draft:    {path: "drafts/{{ chapter.id }}.md"}
  review:   {path: "reviews/{{ chapter.id }}.md"}
roles:
  architect:
    writes: [{file: outline, marker: OUTLINE_DONE}]
  writer:
    reads:
      - {file: outline, purpose: what to say}
      - {file: glossary, purpose: terms, optional: true}
      - {file: review, purpose: what to mend, optional: true}
    writes: [{file: draft, marker: DRAFT_DONE, checks: [{sections: [Text, New terms]}]}]
    appends: [{to: glossary, from: draft, section: New terms, under: "Chapter {{ chapter.id }}", topic: glossary}]
  reviewer:
    agent: explore
    reads: [{file: draft}]
    writes: [{file: review, marker: REVIEW_DONE, verdict: true}]
stages:
  - {id: outline, role: architect}
  - loop: revise
    for_each: chapter
    after: outline
    after_previous: revise
    until: {file: review}
    at_most: 2
    stages:
      - {id: write, role: writer}
      - {id: review, role: reviewer, after: write}
"""


class Author:
    """A model that writes each file that it may write, and then says that it is done.

    Args:
        write: Gives the content for a path, from the prompt; ``None`` writes nothing.
    """

    name = "author"

    def __init__(self, write: Callable[[str, str], str | None]) -> None:
        self.write = write
        self.prompts: list[str] = []
        self._lock = threading.Lock()

    def stream(
        self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = (), *, timeout_s: float = 120.0
    ) -> Iterator[Reply]:
        if messages[-1].role == "tool":
            yield Reply("Done.", (), Usage(10, 1), self.name)
            return
        with self._lock:
            self.prompts.append(messages[0].content)
        paths = next(tool for tool in tools if tool.name == "write_file").parameters["properties"]["path"][
            "enum"
        ]
        texts = [
            (path, text) for path in paths if (text := self.write(path, messages[0].content)) is not None
        ]
        calls = tuple(
            ToolCall(f"c{number}", "write_file", json.dumps({"path": path, "content": text}))
            for number, (path, text) in enumerate(texts)
        )
        yield Reply("" if calls else "Nothing.", calls, Usage(100, 10), self.name)


def well(path: str, prompt: str) -> str:
    """What a good agent writes."""
    kind, _, rest = path.partition("/")
    number = rest.partition(".")[0]
    if kind == "drafts":
        return f"# {number}\n\n## Text\n\nAbout {number}.\n\n## New terms\n\n- **term{number}**: what {number} is about\n\n<!-- DRAFT_DONE -->\n"
    if kind == "reviews":
        return "Verdict: PASS\n\nIt is good.\n\n<!-- REVIEW_DONE -->\n"
    return "# Outline\n\nThree chapters.\n\n<!-- OUTLINE_DONE -->\n"


class Desk:
    """A workspace with a pipeline's file beside it."""

    def __init__(self, ws: Workspace, path: Path) -> None:
        self.ws = ws
        self.path = path

    def run(
        self,
        write: Callable[[str, str], str | None] = well,
        *,
        jobs: int = 1,
        retry: bool = False,
        note: Callable[[str], object] = str,
    ) -> Ended:
        self.author = Author(write)
        runner = Runner(self.ws.engine, self.path, lambda _name: self.author, jobs=jobs, note=note)
        return runner.run(retry=retry)

    def text(self, path: str) -> str:
        return (self.ws.artifacts / path).read_text("utf-8")

    def facts(self, name: str) -> list:
        return [event.data for event in self.ws.events() if event.type == name]


@pytest.fixture
def desk(tmp_path: Path, lexical) -> Iterator[Desk]:
    path = tmp_path / "book.yaml"
    path.write_text(BOOK, "utf-8")
    with Workspace.create(tmp_path / "ws", title="Book", settings=lexical) as ws:
        yield Desk(ws, path)
