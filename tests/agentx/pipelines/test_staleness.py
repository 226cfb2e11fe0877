"""What is out of date, and what is done again: 12 kinds of change, each with the steps that it concerns and those that it does not."""

from pathlib import Path

import pytest

from agentx.pipelines.upkeep.out_of_date import Overview, mark, overview
from agentx.storage.events.types import Event
from agentx.synthesis.pipelines.definition.reading import read
from agentx.synthesis.pipelines.definition.steps import resolve
from tests.agentx.pipelines.conftest import Desk

NEWS = """\
pipeline: news
variables: {tone: calm}
items:
  team: [{id: a, title: Sales}, {id: b, title: Support}]
sources: {code: code}
files:
  inbox:    {path: "inbox/{{ team.id }}.md"}
  style:    {path: style.md, class: static}
  api:      {path: api.py, source: code}
  glossary: {path: glossary.md, class: append-only}
  note:     {path: "notes/{{ team.id }}.md"}
  notes:    {path: "notes/*.md"}
  review:   {path: "reviews/{{ team.id }}.md"}
  index:    {path: index.md}
  poster:   {path: poster.md}
roles:
  reporter:
    task: Report in a {{ tone }} tone.
    reads:
      - {file: inbox}
      - {file: style}
      - {file: glossary, optional: true}
      - {file: review, optional: true}
    writes: [{file: note, marker: NOTE, checks: [{sections: [News]}]}]
    appends: [{to: glossary, from: note, section: Terms, under: "{{ team.title }}"}]
  reviewer:
    agent: explore
    reads: [{file: note}]
    writes: [{file: review, marker: REVIEW, verdict: true}]
  indexer:
    reads: [{file: notes}]
    writes: [{file: index, marker: INDEX}]
  designer:
    reads: [{file: api}]
    writes: [{file: poster, marker: POSTER}]
stages:
  - loop: gather
    for_each: team
    after_previous: gather
    until: {file: review}
    stages:
      - {id: write, role: reporter}
      - {id: check, role: reviewer, after: write}
  - {id: index, role: indexer, after: gather}
  - {id: design, role: designer}
"""


def writes(path: str, prompt: str) -> str:
    """What an agent writes: it depends on the files that it was given, and on nothing else."""
    given = prompt.partition("<files>")[2]
    kind, _, rest = path.partition("/")
    if kind == "notes":
        shout = "!" * given.count("loud")
        term = f"\n## Terms\n\n- **{rest[0]}**: {'new' if 'reword' in given else 'old'} meaning\n"
        return f"# Note\n\n## News\n\nWhat {rest} says{shout}.\n{term}\n<!-- NOTE -->\n"
    if kind == "reviews":
        return "Verdict: PASS\n\nGood.\n\n<!-- REVIEW -->\n"
    return f"# {path}\n\n{given.count('What ')} notes, {given.count('!')} loud.\n\n<!-- {path[:-3].upper()} -->\n"


class News(Desk):
    """The pipeline, run once."""

    def change(self, old: str, new: str) -> None:
        """Change the pipeline's file."""
        text = self.path.read_text("utf-8")
        assert old in text
        self.path.write_text(text.replace(old, new, 1), "utf-8")

    def put(self, path: str, text: str) -> None:
        target = self.ws.artifacts / path
        target.parent.mkdir(exist_ok=True)
        target.write_text(text, "utf-8")

    def stale(self) -> Overview:
        self.ws.engine.edits.scan()
        return overview(self.ws.engine, resolve(*read(self.path)), self.path.parent)

    def told(self) -> dict[str, str]:
        """Steps that are out of date, with their state."""
        return {one.step: one.state for one in self.stale().steps}

    def redo(self) -> list[str]:
        """Do again what is out of date; return what was done, in order."""
        seq = self.ws.state.seq
        mark(self.ws.engine, resolve(*read(self.path)), self.path.parent)
        assert self.run(writes).status == "COMPLETED"
        return self.sent(seq)

    def sent(self, seq: int) -> list[str]:
        return [_key(event) for event in self.ws.events() if event.seq > seq and event.type == "Dispatched"]


def _key(event: Event) -> str:
    return f"{event.data.stage}[{event.data.item}]" if event.data.item else event.data.stage


@pytest.fixture
def news(tmp_path: Path, desk: Desk) -> News:
    path = tmp_path / "news.yaml"
    path.write_text(NEWS, "utf-8")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "api.py").write_text("def api(): ...\n", "utf-8")
    made = News(desk.ws, path)
    for item in "ab":
        made.put(f"inbox/{item}.md", "We sold shirts.\n")
    made.put("style.md", "Be brief.\n")
    assert made.run(writes).status == "COMPLETED"
    assert made.told() == {}
    return made


def test_nothing_is_out_of_date_after_a_run(news):
    assert news.stale().steps == ()
