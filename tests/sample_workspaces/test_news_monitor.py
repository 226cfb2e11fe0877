"""The monitor of news: 60 directed runs, and no title is mailed twice, whatever the feed; the reader obeys its prompt alone."""

import json
import random
import re
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import msgspec
import pytest

from agentx import Workspace
from agentx.cli.main import main
from agentx.cli.work.samples import SampleInvalid, load_code
from agentx.directing.directed_runs import run_directed
from agentx.directing.executor_tools import Hands
from agentx.directing.executors import Assignment, Command, Function, Outcome
from agentx.storage.events.direction_events import DirectiveIssued
from agentx.storage.events.types import RunEnded, RunStarted

SAMPLE = Path(__file__).parents[2] / "sample_workspaces" / "news-monitor"
READER = SAMPLE / "reader.py"
FEED = json.loads((SAMPLE / "feed.json").read_text())
FIRST, SECOND = "ines@fjordpost.example", "ines@quill.example"

newsroom = load_code(SAMPLE / "newsroom.py")
reader = load_code(READER)


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """The sample, played by the command line: its workspace, its facts and the table that ends it."""
    root, out = tmp_path_factory.mktemp("news") / "copy", StringIO()
    with redirect_stdout(out), pytest.MonkeyPatch.context() as patch:
        patch.chdir(SAMPLE)
        assert main(["run", "--sample", "news-monitor", "--into", str(root), "--json"]) == 0, out.getvalue()
    with Workspace.open(root) as ws:
        ws.table = json.loads(out.getvalue().splitlines()[-1])["data"]["compared"]
        ws.mails = newsroom.outbox(root / ".agentx" / "world")
        yield ws


def facts(ws, payload):
    return [event for event in ws.events() if isinstance(event.data, payload)]


def directed_before(ws, run):
    """The directive that was written last before a run started."""
    start = next(event for event in facts(ws, RunStarted) if event.run == f"r-{run}")
    return next(event for event in facts(ws, DirectiveIssued)[::-1] if event.seq < start.seq).data


def titles(mails):
    return [title for mail in mails for title in mail["titles"]]


def source_of(title):
    return next(story["source"] for story in FEED["stories"] if story["title"] == title)


# --- the story -------------------------------------------------------------------------------------------------------


def test_in_60_runs_nothing_is_mailed_twice_and_the_director_is_asked_in_at_most_one_of_five(story):
    assert len(facts(story, RunStarted)) == 60
    assert len(titles(story.mails)) == len(set(titles(story.mails))) > 150
    assert not [title for title in titles(story.mails) if "crypto" in title.lower()]
    assert len(facts(story, DirectiveIssued)) <= 60 / 5


def test_the_address_fails_at_run_30_and_a_checkpoint_says_what_to_do_when_it_does_again(story):
    ends = {event.run: event.data for event in facts(story, RunEnded)}
    assert [run for run, end in ends.items() if end.status != "COMPLETED"] == ["r-30"]
    assert "550 no such mailbox" in ends["r-30"].reason
    directive = directed_before(story, 31)
    assert directive.why.startswith("tool_error")
    assert f'Do not call send_email with to "{FIRST}"' in story.read_body(directive.prompt)
    assert {mail["to"] for mail in story.mails if mail["run"] < 30} == {FIRST}
    assert {mail["to"] for mail in story.mails if mail["run"] >= 30} == {SECOND}
    marks = [item for item in story.memory("checkpoint") if item.detail.sort == "issue_resolved"]
    assert [(FIRST in mark.text, SECOND in mark.text, bool(mark.detail.actionable)) for mark in marks] == [
        (True, True, True)
    ]


def test_a_source_that_the_user_adds_ends_the_prompt_and_is_read_from_the_next_run_on(story):
    assert directed_before(story, 44).why != directed_before(story, 45).why
    assert directed_before(story, 45).why.startswith("user_instructions_changed")
    from_it = [mail["run"] for mail in story.mails for title in mail["titles"] if "r/M" in source_of(title)]
    assert min(from_it) == 45


def test_the_table_tells_what_the_same_program_does_without_a_director(story):
    directed, alone, whole = story.table
    assert (directed["titles mailed"], directed["mailed again"]) == (len(titles(story.mails)), 0)
    assert directed["director asked"] == len(facts(story, DirectiveIssued))
    assert (alone["mailed again"] > 100, alone["failed runs"]) == (True, 31)
    assert directed["tokens"] < whole["tokens"] / 2.5
    page = (SAMPLE.parents[1] / "docs" / "directing.md").read_text()
    for one in (directed, alone):
        assert f" {one['titles mailed']} | {one['mailed again']} | " in page.replace("**", "")


def test_the_prompts_name_no_event_no_run_and_no_memory(story):
    prompts = [
        story.read_body(event.data.task).partition("Done already")[0] for event in facts(story, RunStarted)
    ]
    assert not [text for text in prompts if re.search(r"\b(?:event|[rcmk]-)\d+\b|director|history", text)]


# --- other feeds -----------------------------------------------------------------------------------------------------


def another_feed(seed, runs):
    """A feed with other titles in another order, in which anything may come back at any time."""
    chance = random.Random(seed)
    odd = ['{} "again"', "{}  {{{{{{title}}}}}}", "{}, {}; (100 %)", "- {}", "“{}” \\n é", "crypto {}", "{}"]
    told = [story["title"] for story in FEED["stories"]]
    texts = (chance.choice(odd).format(title, title[::-1]) for title in chance.sample(told, 3 * runs))
    sources = ("Hacker News", "Lobsters", "r/MachineLearning")
    stories = [{"source": chance.choice(sources), "title": text} for text in dict.fromkeys(texts)]
    return {
        "stories": stories,
        "fetches": [chance.sample(range(len(stories)), chance.randint(0, 12)) for _ in range(runs)],
    }


def in_process(assignment):
    """The reader, without a process of its own."""
    done = reader.work(
        assignment.prompt,
        msgspec.to_builtins(assignment.tools.schemas()),
        lambda tool, arguments: msgspec.to_builtins(assignment.tools.call(tool, arguments)),
        dict(assignment.done),
    )
    return msgspec.convert(done, Outcome)


@pytest.mark.parametrize(("seed", "runs"), [(1, 12), (2, 32), (3, 56)])
def test_whatever_the_feed_each_run_mails_just_what_is_new(tmp_path, seed, runs):
    feed, sent, more = another_feed(seed, runs), set(), random.Random(seed).randint(5, runs)
    watched = {"Hacker News", "Lobsters"}
    with Workspace.create(tmp_path / "w", title="News") as ws:
        ws.say(f"Mail me what is new on Hacker News and Lobsters at {FIRST}; if that fails, at {SECOND}.")
        ws.say("If there are fewer than two, send nothing. Do not send stories about crypto.")
        for run in range(1, runs + 1):
            if run == more:
                ws.say("Also watch r/MachineLearning.")
                watched.add("r/MachineLearning")
            before = len(newsroom.outbox(tmp_path))
            made = run_directed(
                ws.engine, Function("reader", in_process), newsroom.tools(tmp_path, run, feed)
            )
            shown = [feed["stories"][place] for place in feed["fetches"][run - 1]]
            new = {story["title"] for story in shown if story["source"] in watched} - sent
            new = {title for title in new if "crypto" not in title.lower()}
            mailed = titles(newsroom.outbox(tmp_path)[before:])
            if made.outcome.status == "FAILED":
                assert (run >= 30, mailed) == (True, [])
            else:
                assert sorted(mailed) == sorted(new if len(new) > 1 else ())
            sent.update(mailed)
        failed = [run.run for run in ws.state.runs if run.status == "FAILED"]
        assert len(failed) <= (runs >= 30)
        assert ws.state.counts["DirectiveIssued"] <= runs / 5 + 3
    assert len(titles(newsroom.outbox(tmp_path))) == len(sent) > runs


# --- the reader ------------------------------------------------------------------------------------------------------


def told(prompt):
    """What the reader mails on one page of news that is told a prompt, and to whom."""
    page = {
        "Hacker News": ["One", 'A "new" thing', "Crypto"],
        "Lobsters": ["Two", "One"],
        "r/MachineLearning": ["Three"],
    }
    schema = {"properties": {"source": {"enum": list(page)}}}
    mails = []

    def call(tool, arguments):
        if tool == "fetch_feed":
            return {"status": "SUCCEEDED", "output": json.dumps(page[arguments["source"]])}
        mails.append((arguments["titles"], arguments.get("to")))
        return {"status": "SUCCEEDED", "output": ""}

    reader.work(prompt, [{"name": "fetch_feed", "parameters": schema}], call)
    return mails


@pytest.mark.parametrize(
    ("prompt", "mails"),
    [
        ("", [(["One", 'A "new" thing', "Crypto", "Two", "Three"], None)]),
        ("Hacker News, Lobsters", [(["One", 'A "new" thing', "Crypto", "Two"], None)]),
        ('"One" and Two', [(["One", 'A "new" thing', "Crypto", "Two", "Three"], None)]),
        ("Lobsters. fewer than 3: nothing", []),
        ("Lobsters. fewer than two: nothing", [(["Two", "One"], None)]),
        ("Hacker News. Do not send stories about crypto.", [(["One", 'A "new" thing'], None)]),
        ("Lobsters to a@x.example, else b@x.example", [(["Two", "One"], "a@x.example")]),
        (
            'Lobsters to a@x.example, else b@x.example. Do not call send_email with to "a@x.example"',
            [(["Two", "One"], "b@x.example")],
        ),
    ],
)
def test_the_reader_does_what_its_prompt_says(prompt, mails):
    assert told(prompt) == mails


def test_with_an_empty_prompt_the_program_mails_everything_and_the_engine_refuses_it_the_second_time(
    tmp_path,
):
    program = Command((sys.executable, "-I", str(READER)), "jsonl")
    everything = [FEED["stories"][place]["title"] for place in FEED["fetches"][0]]
    with Workspace.create(tmp_path / "w", title="News") as ws:
        for run, status in enumerate(("COMPLETED", "FAILED"), start=1):
            hands = Hands(ws.engine, newsroom.tools(tmp_path, 1), actor="agent:x", run=f"r-{run}")
            assert program.execute(Assignment(prompt="", tools=hands)).status == status
    assert [sorted(mail["titles"]) for mail in newsroom.outbox(tmp_path)] == [sorted(everything)]


@pytest.mark.parametrize(
    ("code", "says"), [("x = ", "cannot be imported"), ("tools = 3", "no function tools")]
)
def test_tools_of_a_sample_that_are_none_are_one_sentence(tmp_path, code, says):
    (tmp_path / "tools.py").write_text(code)
    with pytest.raises(SampleInvalid, match=says):
        load_code(tmp_path / "tools.py", "tools")
