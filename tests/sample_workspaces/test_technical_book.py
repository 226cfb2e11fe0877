"""The technical book: agents without memory write six chapters, and what they get wrong is found by real code."""

import json
import re
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from itertools import pairwise
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.cli.main import main
from agentx.storage.events.pipeline_events import Dispatched, PipelineEnded, StageProved, key_of
from agentx.storage.events.types import RunEnded, RunStarted, ToolCallExecuted

SHARES_WORKSPACES = True
SAMPLE = Path(__file__).parents[2] / "sample_workspaces" / "technical-book"
CHAPTERS = [f"{number:02}" for number in range(1, 7)]


class Book:
    """The sample as it was played: its workspace, its artifacts, and what became of each dispatch."""

    def __init__(self, root):
        self.ws = Workspace.open(root)
        self.artifacts = root / "artifacts"
        self.record = list(self.ws.events())
        self.ends = {event.run: event for event in self.record if isinstance(event.data, RunEnded)}

    def facts(self, *types):
        return [event for event in self.record if isinstance(event.data, types)]

    def read(self, path):
        return (self.artifacts / path).read_text("utf-8")

    def sent(self, stage, item=""):
        """The dispatches of a step, in order, each with how its run ended."""
        return [
            (event, self.ends[event.run])
            for event in self.facts(Dispatched)
            if (event.data.stage, event.data.item) == (stage, item)
        ]

    def attempts(self, stage, item):
        return [(sent.data.round, end.data.status) for sent, end in self.sent(stage, item)]

    def verdicts(self, stage, item):
        proofs = [event.data for event in self.facts(StageProved)]
        return [one.verdict for one in proofs if (one.stage, one.item) == (stage, item)]

    def prompt(self, dispatch):
        started = next(e for e in self.facts(RunStarted) if e.run == dispatch.run)
        return self.ws.read_body(started.data.task)


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    root, out = tmp_path_factory.mktemp("book") / "copy", StringIO()
    with redirect_stdout(out), pytest.MonkeyPatch.context() as patch:
        patch.chdir(SAMPLE)
        status = main(["run", "--sample", "technical-book", "--into", str(root), "--json"])
        assert status == 0, out.getvalue()[-2_000:]
    played = Book(root)
    yield played
    played.ws.close()


# --- what went otherwise than planned ---------------------------------------------------------------------------------


def test_a_draft_that_breaks_off_has_no_marker_and_is_no_draft(book):
    assert book.attempts("write", "03") == [(1, "FAILED"), (1, "COMPLETED")]
    (_, failed), (second, _) = book.sent("write", "03")
    assert (
        "drafts/ch03-draft.md is unfinished. Its last line is not `<!-- DRAFT_COMPLETE -->`"
        in failed.data.reason
    )
    assert "Attempt 2" in book.prompt(second)
    assert failed.data.reason in book.prompt(second)
    assert book.read("drafts/ch03-draft.md").endswith("\n<!-- DRAFT_COMPLETE -->\n")


def test_the_metaphor_of_chapter_2_is_found_in_chapter_4_and_goes(book):
    assert book.verdicts("merge", "04") == ["FAIL", "PASS"]
    assert book.verdicts("r2", "04") == ["FAIL", "PASS"]
    first, second = (sent for sent, _ in book.sent("r2", "04"))
    assert "'pigeonhole' must not be used" in book.prompt(first)
    assert "Found by the engine" not in book.prompt(second)
    revision = book.sent("write", "04")[1][0]
    assert "reviews/ch04-review.md" in [read.path for read in revision.data.reads]
    assert "pigeonhole" not in book.read("chapters/ch04.md")
    assert "pigeonhole" in book.read("chapters/ch02.md")


def test_a_term_of_chapter_2_is_taken_in_chapter_5_against_a_reviewer_that_overlooked_it(book):
    assert book.attempts("r2", "05") == [(1, "FAILED"), (1, "COMPLETED"), (2, "COMPLETED")]
    assert book.verdicts("r2", "05") == ["FAIL", "PASS"]
    (_, overlooked), *_ = book.sent("r2", "05")
    assert "says PASS against what was found for certain" in overlooked.data.reason
    assert "'line item' must not be used" in overlooked.data.reason
    glossary = book.read("meta/glossary.md")
    assert "- **posting**:" in glossary.partition("## Chapter 02")[2].partition("## Chapter 03")[0]
    given = {read.path for read in book.sent("write", "05")[0][0].data.reads}
    assert {"meta/glossary.md", "meta/metaphor-registry.md", "meta/chapter-summaries.md"} <= given
    assert "posting" in book.read("chapters/ch05.md")
    assert "line item" not in book.read("chapters/ch05.md")


def test_the_sensitivity_check_finds_a_word_that_the_style_guide_rules_out(book):
    assert book.verdicts("r3", "06") == ["FAIL", "PASS"]
    assert "'dummy' must not be used" in book.prompt(book.sent("r3", "06")[0][0])
    assert "dummy" not in book.read("chapters/ch06.md")


def test_that_is_all_and_it_stands_in_the_log(book):
    told = re.findall(r"^- (\w+\[\d+\])", book.read("audit-log.md"), re.MULTILINE)
    reviewed = ["r2[04]", "merge[04]", "r2[05]", "r2[05]", "merge[05]", "r3[06]", "merge[06]"]
    assert told == ["write[03]", *reviewed, "typeset[06]"]
    rounds = {item: max(sent.data.round for sent, _ in book.sent("write", item)) for item in CHAPTERS}
    assert rounds == {"01": 1, "02": 1, "03": 1, "04": 2, "05": 2, "06": 2}


# --- the process -----------------------------------------------------------------------------------------------------


def test_every_step_is_proved_once_and_what_a_person_wants_again_is_done_again_alone(book):
    ends = book.facts(PipelineEnded)
    assert [event.data.status for event in ends] == ["COMPLETED", "COMPLETED"]
    done = [
        (event.seq > ends[0].seq, key_of(event.data.stage, event.data.item))
        for event in book.facts(StageProved)
        if event.data.round == 1
    ]
    assert len(done) == len(set(done)) == 3 + 13 * len(CHAPTERS) + 1
    assert [key for later, key in done if later] == ["typeset[06]"]
    assert sum(event.seq > ends[0].seq for event in book.facts(Dispatched)) == 1
    assert book.ws.verify().findings == ()


def test_a_chapter_is_begun_when_the_one_before_is_remembered_and_research_does_not_wait(book):
    proved = {(e.data.stage, e.data.item): e.seq for e in book.facts(StageProved)}
    for before, item in pairwise(CHAPTERS):
        assert book.sent("write", item)[0][0].seq > proved["memory", before]
    assert proved["research", "06"] < proved["memory", "01"]


def test_agents_write_their_own_files_and_are_given_no_others(book):
    writes = [e for e in book.facts(ToolCallExecuted) if e.run and e.data.tool == "write_file"]
    own = {event.run: set(event.data.writes) for event in book.facts(Dispatched)}
    assert writes
    assert all({change.path for change in e.data.changes} <= own[e.run] for e in writes)
    for event in book.facts(Dispatched):
        read = {given.path for given in event.data.reads}
        if event.data.role == "writer":
            assert not [path for path in read if path.startswith("code:")]
        if event.data.role == "researcher":
            assert not [path for path in read if path.startswith(("meta/", "drafts/", "research/"))]
    (research, _), *_ = book.sent("research", "06")
    read = [given.path for given in research.data.reads]
    assert read == ["source-map.md", "outline-final.md", "code:cli.py", "code:__main__.py"]


def test_what_chapter_2_calls_a_posting_is_remembered_and_found(book):
    (item,) = [item for item in book.ws.memory("knowledge") if item.text.startswith("posting:")]
    assert item.domain == "glossary"
    found = book.ws.search("what an entry leaves on one account")
    assert any("posting" in hit.text for hit in found)


# --- the book --------------------------------------------------------------------------------------------------------


def test_the_book_is_printed_and_its_contents_lead_to_every_chapter(book):
    index = book.read("publish/index.html")
    for number in CHAPTERS:
        assert f'href="ch{number}.html"' in index
        page = book.read(f"publish/ch{number}.html")
        title = book.read(f"chapters/ch{number}.md").splitlines()[0].removeprefix("# ")
        assert f"<h1>{title}</h1>" in page
        assert page.endswith("<!-- PAGE_COMPLETE -->\n")
        assert page.count("<!--") == 1
    assert "34rem" in book.read("publish/style.css")
    css = [e for e in book.facts(Dispatched) if "publish/style.css" in e.data.writes]
    assert [event.data.item for event in css] == ["01"]


def test_code_in_the_chapters_is_the_codes_own(book):
    source = "".join(path.read_text("utf-8") for path in (SAMPLE / "tally").glob("*.py"))
    for number in CHAPTERS:
        (example,) = re.findall(r"```python\n(.*?)```", book.read(f"chapters/ch{number}.md"), re.DOTALL)
        assert example in source


def test_the_code_that_the_book_is_about_works():
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tally"]
    done = subprocess.run(command, cwd=SAMPLE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    command = [sys.executable, "-B", "-m", "tally", "march.journal", "register", "assets"]
    done = subprocess.run(command, cwd=SAMPLE, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].split()[-2:] == ["2,596.60", "EUR"]


def test_the_readme_says_how_to_play_it_and_names_only_what_there_is(book):
    readme = (SAMPLE / "README.md").read_text("utf-8")
    assert "$ agentx run --sample technical-book" in readme
    for name in re.findall(r"\]\((\w[^)]*)\)", readme):
        assert (SAMPLE / name).exists()
    for name in re.findall(r"^artifacts/(\S+)", readme, re.MULTILINE):
        assert (book.artifacts / name).is_file()
    assert json.loads((SAMPLE / "model.jsonl").read_text("utf-8").splitlines()[-1]) == {"folder": "words"}
