"""Items that are found while a pipeline runs: a list that a stage writes, and files that a pattern matches."""

from threading import Event, Thread

import pytest

from agentx.pipelines.runner import PipelineStopped, Runner, redo
from agentx.pipelines.tracked import Tracker, pipelines
from agentx.storage.errors import UsageError
from agentx.synthesis.pipelines.definition.faults import PipelineInvalid
from agentx.workspace import Workspace
from tests.agentx.pipelines.conftest import Author
from tests.agentx.pipelines.test_resume import Dying, Killed

BOOK = """\
pipeline: book
variables: {words: "50"}
items:
  chapter: {from: outline}
  lang: [de, fr]
files:
  outline: {path: outline.md}
  notes: {path: meta/notes.md, class: append-only}
  draft: {path: "drafts/{{ chapter.id }}.md"}
  text: {path: "out/{{ lang.id }}/{{ chapter.id }}.md", class: static}
  index: {path: "out/index.md"}
roles:
  architect: {writes: [{file: outline, marker: DONE}]}
  writer:
    task: "{{ words }} words on {{ chapter.title }}, one of {{ items.chapter | length }}."
    writes: [{file: draft, marker: DONE}]
    appends: [{to: notes, from: draft}]
  translator:
    reads: [{file: draft}]
    writes: [{file: text, marker: DONE}]
  indexer:
    by: engine
    writes: [{file: index, content: "{% for one in plan %}{{ one.step }}\\n{% endfor %}"}]
stages:
  - {id: outline, role: architect}
  - {id: write, role: writer, for_each: chapter, after_previous: {}}
  - {id: translate, role: translator, for_each: [chapter, lang], after: write}
  - {id: index, role: indexer, after: translate}
"""

LIST = "# Outline\n\n- intro: How it began\n- end: How it ended\n\n<!-- DONE -->\n"


def good(path, _prompt):
    return LIST if path == "outline.md" else f"About {path}.\n\n<!-- DONE -->\n"


@pytest.fixture
def book(desk):
    desk.path.write_text(BOOK, "utf-8")
    return desk


def status(desk):
    return pipelines(desk.ws.engine).of("book")


def test_what_a_stage_lists_are_the_items_of_the_stages_after_it(book):
    ended = book.run(good, jobs=3)
    assert (ended.status, ended.proved, ended.steps) == ("COMPLETED", 8, 8)
    assert book.text("out/index.md").split() == [
        *("outline", "write[intro]", "write[end]"),
        *("translate[intro,de]", "translate[intro,fr]", "translate[end,de]", "translate[end,fr]", "index"),
    ]
    assert [found.counts for found in book.facts("ItemsFound")] == [{"chapter": 2}]
    assert any("50 words on How it ended, one of 2." in prompt for prompt in book.author.prompts)
    # classes hold for files that were not known at the start
    assert book.ws.engine.snapshot().files["book"]


def test_other_agents_record_while_items_are_found(book, monkeypatch):
    """A thread that records tells the tracker; a thread that holds the tracker's lock must not record."""
    trackers, free = [], []

    class Kept(Tracker):
        def __init__(self, *given):
            super().__init__(*given)
            trackers.append(self)

    def try_lock():
        free.append(trackers[0].lock.acquire(timeout=5))
        if free[-1]:
            trackers[0].lock.release()

    def look(_event):
        other = Thread(target=try_lock)
        other.start()
        other.join()

    monkeypatch.setattr("agentx.pipelines.runner.Tracker", Kept)
    book.ws.on("ItemsFound", look)
    assert book.run(good, jobs=3).status == "COMPLETED"
    assert free == [True]


def test_a_step_that_is_at_work_again_is_not_begun_twice_when_items_are_found(book):
    retried, listed = Event(), Event()
    text = BOOK.replace("  index: {path", '  facts: {path: "facts.md"}\n  index: {path')
    text = text.replace("  translator:", "  finder: {writes: [{file: facts, marker: DONE}]}\n  translator:")
    book.path.write_text(f"{text}  - {{id: facts, role: finder}}\n", "utf-8")

    def slow(path, prompt):
        if path == "facts.md" and "Attempt 2" not in prompt:
            return "Without its marker.\n"
        if path == "facts.md":
            retried.set()
            listed.wait(10)
        if path == "outline.md":
            retried.wait(10)
        return good(path, prompt)

    book.ws.on("ItemsFound", lambda _event: listed.set())
    assert book.run(slow, jobs=3).status == "COMPLETED"
    assert sum(sent.stage == "facts" for sent in book.facts("Dispatched")) == 2


def test_a_list_that_cannot_be_used_is_not_proved_and_the_next_agent_is_told_why(book):
    def late(path, prompt):
        if path != "outline.md":
            return good(path, prompt)
        if "Attempt 3" in prompt:
            return LIST
        return "# Outline\n\nNone.\n\n<!-- DONE -->\n" if "Attempt 2" not in prompt else LIST.replace("- intro:", "-").replace("end:", "end")  # fmt: skip

    book.path.write_text(BOOK.replace("items.chapter | length", "chapter.part"), "utf-8")
    ended = book.run(late)
    assert ended.status == "FAILED"
    first, second, *_ = book.author.prompts
    assert "a line like `- intro: The title`" in first  # told beforehand
    assert "outline.md lists no items" in second
    assert "undefined key 'part'; known: id, title" in ended.failed["outline"]
    book.path.write_text(BOOK, "utf-8")
    assert book.run(good, retry=True).status == "COMPLETED"


def test_wherever_it_dies_the_items_are_known_and_it_ends_with_the_same_files(book, tmp_path, lexical):
    asked = 0
    model = Dying(good, {1, 2, 4, 7, 9})
    ended = None
    while ended is None:
        asked += 1
        try:
            ended = Runner(book.ws.engine, book.path, lambda _name: model).run()
        except Killed:
            continue
    assert (ended.status, asked) == ("COMPLETED", 6)
    with Workspace.create(tmp_path / "calm", settings=lexical) as calm:
        assert Runner(calm.engine, book.path, lambda _name: Author(good)).run().status == "COMPLETED"
        assert dict(calm.engine.git.manifest()) == dict(book.ws.engine.git.manifest())


def test_a_list_that_is_written_again_makes_other_items(book):
    book.run(good)
    runner = Runner(book.ws.engine, book.path, lambda _name: book.author)
    redo(book.ws.engine, runner.plan, "outline", "", "one more")
    longer = LIST.replace("- end", "- middle: How it went\n- end")
    ended = book.run(lambda path, prompt: longer if path == "outline.md" else good(path, prompt))
    assert (ended.status, ended.steps) == ("COMPLETED", 11)
    assert (book.ws.artifacts / "out/fr/middle.md").exists()
    assert [found.counts["chapter"] for found in book.facts("ItemsFound")] == [2, 2, 3]


def test_the_files_that_a_pattern_matches_are_items_and_new_ones_are_done_in_the_next_run(book):
    text = BOOK.replace("{from: outline}", "{glob: 'in/*.md'}").replace("chapter.title", "chapter.path")
    book.path.write_text(text, "utf-8")
    with pytest.raises(PipelineStopped, match=r"no file matches in/\*.md in the artifacts"):
        book.run(good)
    (book.ws.artifacts / "in").mkdir()
    (book.ws.artifacts / "in/one.md").write_text("One.\n")
    assert book.run(good).steps == 5
    assert any("50 words on in/one.md" in prompt for prompt in book.author.prompts)
    (book.ws.artifacts / "in/two.md").write_text("Two.\n")
    ended = book.run(good)
    assert (ended.status, ended.steps) == ("COMPLETED", 8)
    assert not any("in/one.md" in prompt for prompt in book.author.prompts)


def test_variables_given_to_a_run_replace_those_of_the_file_and_stay_for_the_next(book):
    def run(**variables):
        author = Author(good)
        runner = Runner(book.ws.engine, book.path, lambda _name: author, variables=variables)
        runner.run()
        return author.prompts

    with pytest.raises(PipelineInvalid, match="there is no variable 'word'; did you mean words"):
        run(word="70")
    assert any("70 words" in prompt for prompt in run(words="70"))
    redo(book.ws.engine, Runner(book.ws.engine, book.path).plan, "write", "intro", "")
    prompts = run()
    assert prompts
    assert all("50 words" not in prompt for prompt in prompts)


def test_only_what_is_asked_for_is_done(book):
    def run(**asked):
        return Runner(book.ws.engine, book.path, lambda _name: Author(good)).run(**asked)

    with pytest.raises(UsageError, match="There is no stage 'wrte'; did you mean write"):
        run(only=["wrte"])
    ended = run(only=["write"])
    assert (ended.status, ended.reason) == (
        "FAILED",
        "Nothing could be done: the items of write are not known yet.",
    )
    assert run(until=["outline"]).status == "PARTIAL"
    ended = run(until=["write:intro"])
    assert (ended.status, ended.proved) == ("PARTIAL", 2)
    assert (
        run(only=["translate:end"]).reason == "Nothing could be done: translate[end,de] waits for write[end]."
    )
    assert run(until=["translate:end,de"]).proved == 4
    assert run(only=["translate:fr"]).proved == 6
    with pytest.raises(UsageError, match="Stage 'translate' has no item 'it'"):
        run(only=["translate:it"])
    assert run().status == "COMPLETED"
