"""What is out of date, and what is done again: 12 kinds of change, each with the steps that it concerns and those that it does not."""

from pathlib import Path

import msgspec
import pytest

from agentx.pipelines.pointing.changes import present_of
from agentx.pipelines.runner import Runner
from agentx.pipelines.upkeep.out_of_date import StaleOverview, mark, overview
from agentx.storage.events.pipeline_events import Basis, Dispatched, StageProved
from agentx.storage.events.types import Body, Event
from agentx.synthesis.pipelines.running.pipeline_progress import Pipelines
from agentx.synthesis.pipelines.running.staleness import Staleness, listed
from tests.agentx.pipelines.conftest import Desk
from tests.agentx.pipelines.test_resume import run

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
    agent: explore
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
    kind, _, rest = path.partition("/")
    if kind == "notes":
        shout = "!" * prompt.count("loud")
        term = f"\n## Terms\n\n- **{rest[0]}**: {'new' if 'reword' in prompt else 'old'} meaning\n"
        return f"# Note\n\n## News\n\nReport of {rest}{shout}.\n{term}\n<!-- NOTE -->\n"
    if kind == "reviews":
        return "Verdict: PASS\n\nGood.\n\n<!-- REVIEW -->\n"
    return f"# {path}\n\n{prompt.count('Report of')} notes, {prompt.count('!.')} loud.\n\n<!-- {path[:-3].upper()} -->\n"


class News(Desk):
    """The pipeline, run once."""

    def change(self, old: str, new: str) -> None:
        """Change the pipeline's file."""
        text = self.path.read_text("utf-8")
        assert old in text
        self.path.write_text(text.replace(old, new, 1), "utf-8")

    def put(self, path: str, text: str) -> None:
        target = self.ws.artifacts / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")

    def stale(self) -> StaleOverview:
        self.ws.engine.edits.scan()
        now = Runner(self.ws.engine, self.path)
        return overview(self.ws.engine, now.plan, now.files)

    def told(self) -> dict[str, str]:
        """Steps that are out of date, with their state."""
        return {one.step: one.state for one in self.stale().steps}

    def redo(self) -> list[str]:
        """Do again what is out of date; return what was done, in order."""
        seq = self.ws.state.seq
        now = Runner(self.ws.engine, self.path)
        mark(self.ws.engine, now.plan, now.files)
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


CHAIN_A = {
    "write[a]": "stale",
    "check[a]": "after",
    "write[b]": "after",
    "check[b]": "after",
    "index": "after",
}
"""What follows the note of the first team: its review, and by the glossary the second team, and the index."""

WRITES = {
    "write[a]": "stale",
    "check[a]": "after",
    "write[b]": "stale",
    "check[b]": "after",
    "index": "after",
}


def test_a_changed_input(news):
    news.put("inbox/a.md", "It was loud.\n")
    assert news.told() == CHAIN_A
    (reason,) = news.stale().steps[0].reasons
    assert (reason.kind, reason.path, reason.actor) == ("input", "inbox/a.md", "watch")
    assert reason.event == news.ws.state.seq
    assert reason.text.startswith("inbox/a.md changed (")
    assert f", by hand in event {reason.event}, 20" in reason.text
    # Its note is another, its review and what it adds to the glossary are the same
    assert news.redo() == ["write[a]", "check[a]", "index"]
    assert news.told() == {}


def test_a_changed_input_that_changes_nothing(news):
    news.put("inbox/a.md", "We sold trousers.\n")
    assert news.redo() == ["write[a]"]
    assert news.told() == {}


def test_an_input_that_is_as_before(news):
    news.put("inbox/a.md", "It was loud.\n")
    assert news.told() == CHAIN_A
    news.put("inbox/a.md", "We sold shirts.\n")
    assert news.told() == {}


def test_a_static_file(news):
    news.put("style.md", "Be loud.\n")
    assert news.told() == WRITES
    assert news.redo() == ["write[a]", "check[a]", "write[b]", "check[b]", "index"]
    assert news.told() == {}


def test_a_source(news):
    (news.path.parent / "code" / "api.py").write_text("def api2(): ...\n", "utf-8")
    assert news.told() == {"design": "stale"}
    (reason,) = news.stale().steps[0].reasons
    assert (reason.path, reason.event) == ("code:api.py", 0)
    assert news.redo() == ["design"]


def test_the_entries_of_an_earlier_step(news):
    news.put("inbox/a.md", "Please reword.\n")
    assert news.told() == CHAIN_A
    assert news.redo() == ["write[a]", "check[a]", "write[b]", "index"]
    assert news.told() == {}
    assert news.text("glossary.md").count("new meaning") == 1


def test_a_file_that_only_grows(news):
    with (news.ws.artifacts / "glossary.md").open("a") as file:
        file.write("\nA remark of mine.\n")
    assert news.told() == {}


def test_a_glossary_that_a_person_corrects(news):
    text = news.text("glossary.md")
    news.put("glossary.md", text.replace("**a**: old", "**a**: better"))
    assert news.told() == {"write[b]": "stale", "check[b]": "after", "index": "after"}


def test_a_prompt(news):
    news.change("tone: calm", "tone: warm")
    assert news.told() == WRITES
    assert news.redo() == ["write[a]", "write[b]"]
    assert news.told() == {}


def test_the_title_of_an_item(news):
    news.change("title: Support", "title: Help")
    assert news.told() == {"write[b]": "stale", "check[b]": "stale", "index": "after"}


def test_a_check_that_still_passes(news):
    news.change("sections: [News]", "sections: [News, Terms]")
    assert news.told() == WRITES
    assert news.redo() == []  # the notes pass it
    assert news.told() == {}


def test_a_check_that_fails(news):
    news.change("{sections: [News]}", "{sections: [News]}, {absent: [old]}")
    mine = Runner(news.ws.engine, news.path)
    mark(news.ws.engine, mine.plan, mine.files)
    seq = news.ws.state.seq
    done = news.run(lambda path, prompt: writes(path, prompt).replace("old", "fresh"))
    assert (done.status, news.sent(seq)) == (
        "COMPLETED",
        ["write[a]", "check[a]", "write[b]", "check[b]", "index"],
    )


def test_a_draft_that_a_person_corrects(news):
    mine = news.text("notes/a.md").replace("Report of a.md", "Report of mine")
    news.put("notes/a.md", mine)
    assert news.told() == {
        "write[a]": "changed",
        "check[a]": "stale",
        "write[b]": "after",
        "check[b]": "after",
        "index": "stale",
    }
    assert "; it counts as the result" in news.stale().steps[0].why
    assert news.redo() == ["check[a]", "index"]
    assert news.text("notes/a.md") == mine
    assert news.told() == {}


def test_a_draft_that_a_person_spoils_is_not_written_over(news):
    mine = news.text("notes/a.md").replace("## News", "## Olds")
    news.put("notes/a.md", mine)
    now = Runner(news.ws.engine, news.path)
    mark(news.ws.engine, now.plan, now.files)
    done = news.run(writes)
    assert (done.status, news.text("notes/a.md")) == ("FAILED", mine)
    assert "You changed notes/a.md, so nobody is sent to write over it" in done.failed["write[a]"]


def test_a_file_that_is_gone(news):
    (news.ws.artifacts / "index.md").unlink()
    assert news.told() == {"index": "stale"}
    assert news.redo() == ["index"]


def test_a_new_item(news):
    news.change("title: Support}", "title: Support}, {id: c, title: Repairs}")
    news.put("inbox/c.md", "All is mended.\n")
    assert news.told() == {"index": "after"}
    assert news.stale().steps[0].after == ("write[c]",)
    assert news.redo() == ["write[c]", "check[c]", "index"]
    assert "3 notes" in news.text("index.md")


def test_a_new_item_that_was_run_before_anybody_asked(news):
    news.change("title: Support}", "title: Support}, {id: c, title: Repairs}")
    news.put("inbox/c.md", "All is mended.\n")
    news.run(writes)
    assert news.told() == {"index": "stale"}
    assert news.stale().steps[0].reasons[0].text.startswith("notes/c.md is new, by agent:reporter in event ")
    assert news.redo() == ["index"]


def test_a_removed_item(news):
    news.change(", {id: b, title: Support}", "")
    found = news.stale()
    assert [one.step for one in found.steps] == []
    assert [(one.step, one.files, one.readers) for one in found.left_over] == [
        ("write[b]", ("notes/b.md",), ("index",)),
        ("check[b]", ("reviews/b.md",), ()),
    ]
    (news.ws.artifacts / "notes" / "b.md").unlink()
    assert news.told() == {"index": "stale"}
    assert news.redo() == ["index"]


def test_a_pointer(news):
    news.change("  designer:\n    reads: [", "  designer:\n    reads: [{file: style}, ")
    assert news.told() == {"design": "stale"}
    assert {one.kind for one in news.stale().steps[0].reasons} == {"added", "prompt"}


def test_a_pointer_less(news):
    news.change("      - {file: style}\n", "")
    assert news.told() == WRITES
    assert {one.kind for one in news.stale().steps[0].reasons} == {"removed", "prompt"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  designer:\n", "  designer:\n    model: other/model\n    attempts: 7\n"),
        ("  designer:\n", "  designer:\n    by: [python, draw.py]\n"),
        ("variables:", "title: All the news\nlimits: {max_dispatches: 99}\nvariables:"),
        ("variables: {", "variables: {unused: 1, "),
    ],
)
def test_what_makes_nothing_out_of_date(news, old, new):
    news.change(old, new)
    assert news.told() == {}


def without_inputs(event: Event) -> Event:
    """An event as an earlier version recorded it."""
    if isinstance(event.data, Dispatched | StageProved):
        data = msgspec.structs.replace(event.data, inputs=Body(""), basis=Basis())
        return msgspec.structs.replace(event, data=data)
    return event


def test_what_an_earlier_version_proved_is_not_known_and_never_out_of_date_by_itself(news):
    everything = Pipelines()
    for event in news.ws.events():
        everything.take(without_inputs(event))
    progress = everything.of("news")
    now = Runner(news.ws.engine, news.path)
    news.put("style.md", "Be loud.\n")
    news.ws.engine.edits.scan()
    for event in news.ws.events(after=max(proof.seq for proof in progress.proved.values())):
        everything.take(event)
    staleness = Staleness(now.plan, progress, present_of(news.ws.engine, now.files, everything.changed))
    assert staleness.all(lambda _: True) == []
    step, proof = now.plan.steps["write[a]"], progress.proved["write[a]"]
    (cause,) = staleness.causes(step, proof, unknown=True)  # one that follows a step that is done again
    assert (cause.kind, cause.path) == ("input", "style.md")
    assert not list(staleness.causes(now.plan.steps["design"], progress.proved["design"], unknown=True))


@pytest.mark.parametrize("dies_at", [(1,), (2,), (3, 4), (4, 6), (2, 5, 8)])
def test_wherever_it_dies_it_does_the_same(news, dies_at):
    news.put("style.md", "Be loud.\n")
    now = Runner(news.ws.engine, news.path)
    mark(news.ws.engine, now.plan, now.files)
    seq = news.ws.state.seq
    run(news, writes, *dies_at)
    proved = [event for event in news.ws.events() if event.seq > seq and event.type == "StageProved"]
    assert [_key(event) for event in proved] == ["write[a]", "check[a]", "write[b]", "check[b]", "index"]
    assert "md!" in news.text("notes/a.md")
    assert "md!" in news.text("notes/b.md")
    assert news.told() == {}
    assert sum(event.type == "StageKept" for event in news.ws.events()) == 0


def test_what_is_kept_is_not_asked_again(news):
    news.put("inbox/a.md", "We sold trousers.\n")
    assert news.redo() == ["write[a]"]
    kept = [_key(event) for event in news.ws.events() if event.type == "StageKept"]
    assert kept == ["check[a]", "write[b]", "check[b]", "index"]
    news.put("inbox/b.md", "It was loud.\n")
    seq = news.ws.state.seq
    news.run(writes)  # it was not asked for
    assert news.sent(seq) == []


def test_one_stage_alone(news):
    news.put("inbox/a.md", "It was loud.\n")
    (news.path.parent / "code" / "api.py").write_text("def api2(): ...\n", "utf-8")
    now = Runner(news.ws.engine, news.path)
    news.ws.engine.edits.scan()
    assert [one.step for one in mark(news.ws.engine, now.plan, now.files, "design").steps] == ["design"]
    seq = news.ws.state.seq
    news.run(writes)
    assert news.sent(seq) == ["design"]
    assert news.told() == CHAIN_A


def test_many_inputs_are_in_no_event(news):
    news.change('path: "notes/*.md"', 'path: "notes/**/*.md"')
    for number in range(60):
        news.put(f"notes/more/{number:02}.md" if number else "notes/more.md", f"What {number} says.\n")
    assert news.redo() == ["index"]
    sent = news.facts("Dispatched")[-1]
    assert (sent.inputs.text, bool(sent.inputs.blob)) == ("", True)
    assert len(listed(news.ws.read_body(sent.inputs))) == 62
    assert news.told() == {}
    news.put("notes/more/07.md", "Who?\n")
    (found,) = news.stale().steps
    assert found.why.startswith("notes/more/07.md changed (")


def test_what_depends_on_a_file_that_is_gone_stays_if_it_comes_out_the_same(news):
    (news.ws.artifacts / "notes" / "a.md").unlink()
    assert news.told() == {
        "write[a]": "stale",
        "check[a]": "stale",
        "write[b]": "after",
        "check[b]": "after",
        "index": "stale",
    }
    seq = news.ws.state.seq
    assert news.run(writes).status == "COMPLETED"
    assert news.sent(seq) == ["write[a]"]
    assert news.told() == {}


def test_a_name_that_looks_like_a_secret(news):
    news.put("notes/secret=k3y.md", "Report of it.\n")
    news.put("notes/z.md", "Report of it.\n")
    assert news.redo() == ["index"]
    assert "[redacted: secret]" in news.facts("Dispatched")[-1].inputs.text
    assert news.told() == {}


def test_the_agent_is_given_the_reason(news):
    news.put("inbox/a.md", "It was loud.\n")
    now = Runner(news.ws.engine, news.path)
    news.ws.engine.edits.scan()
    mark(news.ws.engine, now.plan, now.files, "write", "a", "The news changed")
    news.run(writes)
    (first, *_, last) = news.author.prompts
    assert "is to be done again: The news changed: inbox/a.md changed (" in first
    assert "is to be done again: notes/a.md changed (" in last


POLISHED = """\
pipeline: polished
files:
  inbox: {path: inbox.md}
  text: {path: text.md}
  page: {path: page.md}
roles:
  writer: {by: engine, reads: [{file: inbox}], writes: [{file: text, content: "Draft."}]}
  editor: {by: engine, reads: [{file: text}], writes: [{file: text, content: "{{ files.text.body }} Polished."}]}
  setter: {by: engine, reads: [{file: text}], writes: [{file: page, content: "Page: {{ files.text.body }}"}]}
stages:
  - {id: write, role: writer}
  - {id: edit, role: editor, after: write}
  - {id: set, role: setter, after: edit}
"""


def test_a_text_that_a_later_stage_polishes_is_polished_again(news):
    news.path = news.path.with_name("polished.yaml")
    news.path.write_text(POLISHED, "utf-8")
    news.put("inbox.md", "One.\n")
    assert news.run(writes).status == "COMPLETED"
    assert (news.told(), news.text("page.md")) == ({}, "Page: Draft. Polished.\n")
    news.put("inbox.md", "Two.\n")
    assert news.told() == {"write": "stale", "edit": "after", "set": "after"}
    assert news.redo() == ["write", "edit"]  # the draft is the same, but the polished text was written over
    assert (news.told(), news.text("text.md")) == ({}, "Draft. Polished.\n")
    news.put("text.md", "Mine.\n")
    assert news.told() == {"edit": "changed", "set": "stale"}
    assert news.redo() == ["set"]
    assert news.text("page.md") == "Page: Mine.\n"
