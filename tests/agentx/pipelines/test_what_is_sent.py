"""What an agent is sent: what all share comes first; files on demand, its own draft, changes since a verdict."""

import json
import re
from pathlib import Path

import pytest

from agentx.agents.run_types import Limits
from agentx.directing.executor_tools import Result
from agentx.directing.executors import Assignment, ModelLoop
from agentx.pipelines.costs import outlook_of
from agentx.pipelines.pointing.pointed_files import Files
from agentx.pipelines.runner import Runner
from agentx.synthesis.model.port import Reply, ToolCall, Usage
from tests.agentx.pipelines.conftest import BOOK, well

SHARED = """\
pipeline: shared
items: {part: 4}
files:
  style: {path: style.md}
  plan: {path: plan.md}
  log: {path: log.md, class: append-only}
  page: {path: "pages/{{ part.id }}.md"}
roles:
  writer:
    task: "Write part {{ part.id }}."
    reads: [{file: log, optional: true}, {file: style, purpose: rules}, {file: plan, lazy: true, purpose: the plan}]
    writes: [{file: page, marker: DONE}]
    appends: [{to: log, from: page}]
stages:
  - {id: write, role: writer, for_each: part, after_previous: {}}
"""


@pytest.fixture
def shared(desk):
    desk.path.write_text(SHARED, "utf-8")
    (desk.ws.artifacts / "style.md").write_text("# Style\n\n" + "Short sentences, plain words. " * 200 + "\n")
    (desk.ws.artifacts / "plan.md").write_text("# The plan\n\n" + "First this, then that. " * 100 + "\n")
    return desk


def good(path, _prompt):
    return f"About {path}.\n\n<!-- DONE -->\n"


def test_what_all_steps_of_a_stage_share_comes_first_so_that_providers_cache_it(shared):
    shared.run(good)
    prompts = shared.author.prompts
    common = next(n for n, signs in enumerate(zip(*prompts, strict=False)) if len(set(signs)) > 1)
    assert common / len(prompts[0]) > 0.7
    assert prompts[0].index("Short sentences") < prompts[0].index("Write part 01.") < common + 300
    plan = Runner(shared.ws.engine, shared.path).plan
    planned = outlook_of(plan, Files(shared.ws.engine.artifacts, plan.pipeline, Path())).planned
    told = planned[0].budget.shared / (planned[0].budget.prompt + planned[0].budget.reads)
    assert abs(told - common / len(prompts[0])) < 0.15


def test_a_lazy_file_is_named_with_its_size_and_heading_and_read_on_demand(shared):
    shared.run(good)
    first = shared.author.prompts[0]
    told = r"- Read when you need it, with read_file: plan.md — the plan \(about \d+ tokens, “The plan”\)"
    assert re.search(told, first)
    assert "First this, then that." not in first
    (sent, *_) = shared.facts("Dispatched")
    assert [one.path for one in sent.reads] == ["style.md"]


def test_all_that_is_checked_is_told_with_the_file_that_it_is_about(desk):
    text = BOOK.replace(
        "checks: [{sections: [Text, New terms]}]", 'checks: [{sections: [Text, New terms]}, {matches: "^About"}, {command: [test, -s]}]'
    )  # fmt: skip
    desk.path.write_text(text, "utf-8")
    desk.run()
    writer = next(prompt for prompt in desk.author.prompts if "Write: drafts/01.md" in prompt)
    assert "- A line matches the regular expression `^About`." in writer
    assert "- `test -s` with the file's path ends with exit status 0." in writer
    reviewer = next(prompt for prompt in desk.author.prompts if "Write: reviews/01.md" in prompt)
    assert "- It has one line `Verdict: PASS` or `Verdict: FAIL`." in reviewer


def test_in_a_second_round_a_writer_sees_its_draft_and_a_reviewer_what_changed(desk):
    def strict(path, prompt):
        text = well(path, prompt)
        if path.startswith("drafts/") and "Round 2" in prompt:
            return text.replace("About 01.", "All about 01.")
        return text.replace("PASS", "FAIL") if path == "reviews/01.md" and "Round 2" not in prompt else text

    desk.run(strict)
    writers = [prompt for prompt in desk.author.prompts if "Write: drafts/01.md" in prompt]
    assert "what was last written here: change it as asked" not in writers[0]
    assert "About 01." in writers[1]
    assert "what was last written here: change it as asked" in writers[1]
    reviewers = [prompt for prompt in desk.author.prompts if "Write: reviews/01.md" in prompt]
    assert "since your last verdict" not in reviewers[0]
    changes = reviewers[1].partition("Changes in drafts/01.md since your last verdict:")[2]
    assert "-About 01." in changes
    assert "+All about 01." in changes


# --- the loop -----------------------------------------------------------------------------------------------


class Said:
    """A model that gives its replies in turn, and notes what it was asked."""

    name = "said"

    def __init__(self, *replies):
        self.replies = list(replies)
        self.asked = []

    def stream(self, messages, tools=(), *, timeout_s=120.0):
        self.asked.append(messages[-1].content)
        yield self.replies.pop(0)


def reply(text, *calls, cut=False):
    made = tuple(ToolCall(f"c{n}", name, json.dumps(given) if isinstance(given, dict) else given) for n, (name, given) in enumerate(calls))  # fmt: skip
    return Reply(text, made, Usage(1, 1), "said", cut_off=cut)


class Hands:
    def schemas(self):
        return []

    def call(self, name, arguments):
        return Result(
            "FAILED" if arguments == "{" else "SUCCEEDED", "no JSON" if arguments == "{" else "Done."
        )

    def say(self, text):
        pass


def carried(*replies, missing=lambda _answer: ""):
    model = Said(*replies)
    assignment = Assignment(prompt="Do it.", tools=Hands(), missing=missing)
    return ModelLoop(model, Limits(max_steps=30)).execute(assignment), model


def test_an_answer_that_the_output_limit_cut_is_continued():
    outcome, model = carried(reply("one ", cut=True), reply("two ", cut=True), reply("three"))
    assert outcome.summary == "one two three"
    assert all("Go on exactly where it stopped" in asked for asked in model.asked[1:])


def test_an_endless_answer_fails_with_that_reason():
    with pytest.raises(Exception, match="longer than 9 times the output limit"):
        carried(*[reply("more ", cut=True)] * 20)


def test_a_call_that_the_output_limit_cut_is_told_so():
    _, model = carried(reply("", ("write_file", "{"), cut=True), reply("Done."))
    assert model.asked[1] == "no JSON The call was cut by the output limit: write a long file in several smaller calls."  # fmt: skip


def test_an_agent_that_stops_without_its_file_is_reminded_once():
    outcome, model = carried(
        reply("Done."), reply("Still done."), missing=lambda _answer: "a.md was not written."
    )
    assert model.asked == ["Begin.", "a.md was not written."]
    assert outcome.summary == "Still done."


# --- its answer and its tools -------------------------------------------------------------------------------


def scripted(desk, *turns):
    script = desk.path.with_name("script.jsonl")
    script.write_text("".join(json.dumps(turn) + "\n" for turn in turns), "utf-8")
    from agentx.engine.models import named_models

    return Runner(
        desk.ws.engine, desk.path, lambda _name: named_models(desk.ws.engine, "test")(f"script:{script}")
    )


ONE = """\
pipeline: one
files: {page: {path: page.md}, notes: {path: notes.md}}
roles: {writer: {attempts: 1, writes: [{file: page, marker: DONE}]}}
stages: [{id: write, role: writer}]
"""


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("```markdown\n# Page\n\n<!-- DONE -->\n```", "# Page\n\n<!-- DONE -->\n"),
        (
            "```md\n# Page\n\n```py\nx = 1\n```\n\n<!-- DONE -->\n```",
            "# Page\n\n```py\nx = 1\n```\n\n<!-- DONE -->\n",
        ),
    ],
)
def test_a_file_in_a_code_block_is_taken_out_of_it(desk, answer, text):
    desk.path.write_text(ONE, "utf-8")
    assert scripted(desk, {"answer": answer}).run().status == "COMPLETED"
    assert desk.text("page.md") == text


def test_done_is_no_file_and_one_reminder_says_what_is_missing(desk):
    desk.path.write_text(ONE, "utf-8")
    whole = "# Page\n\n<!-- DONE -->"
    ended = scripted(desk, {"when": ["page.md was not written. Use write_file"], "answer": whole}, {"answer": "Done."}).run()  # fmt: skip
    assert ended.status == "COMPLETED"
    assert ended.dispatches == 1


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ({"name": "need", "arguments": {"path": "figures.csv", "why": "there are no figures"}}, "It needs figures.csv: there are no figures"),
        ({"name": "blocked", "arguments": {"why": "the task contradicts itself"}}, "It is blocked: the task contradicts itself"),
    ],
)  # fmt: skip
def test_an_agent_can_say_what_it_lacks_and_nobody_else_is_sent(desk, call, told):
    desk.path.write_text(ONE.replace("attempts: 1", "attempts: 3"), "utf-8")
    ended = scripted(desk, {"tool_calls": [call]}, {"answer": "I cannot."}).run()
    assert ended.status == "FAILED"
    assert told in ended.failed["write"]
    assert ended.dispatches == 1


def test_a_part_of_a_file_is_changed_or_added_to(desk):
    desk.path.write_text(ONE, "utf-8")

    def call(name, **arguments):
        return {"tool_calls": [{"name": name, "arguments": {"path": "page.md", **arguments}}]}

    ended = scripted(
        desk,
        call("write_file", content="# Page\n\nOne.\n"),
        call("edit_file", old="Two.", new="2."),
        call("edit_file", old="One.", new="1."),
        call("edit_file", old="", new="\n<!-- DONE -->\n"),
        {"answer": "Done."},
    ).run()
    assert ended.status == "COMPLETED"
    assert desk.text("page.md") == "# Page\n\n1.\n\n<!-- DONE -->\n"
    assert any(
        "does not occur in page.md" in desk.ws.read_body(one.output) for one in desk.facts("ToolCallExecuted")
    )


def test_no_tool_is_offered_without_a_file_for_it(desk):
    desk.path.write_text(ONE, "utf-8")
    seen = []

    class Looking(Said):
        def stream(self, messages, tools=(), *, timeout_s=120.0):
            seen.extend(tools)
            yield reply("# Page\n\n<!-- DONE -->")

    Runner(desk.ws.engine, desk.path, lambda _name: Looking()).run()
    assert [tool.name for tool in seen] == ["write_file", "edit_file", "need", "blocked"]
    assert '"enum": []' not in json.dumps([tool.parameters for tool in seen])
