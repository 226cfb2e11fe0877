"""The other samples, each played once by the command line: what they claim stands in the record."""

import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.cli.main import main
from agentx.storage.events.types import (
    AgentMessageSent,
    ApprovalDecided,
    ContextProvided,
    RunEnded,
    RunStarted,
    TaskGraded,
    ToolCallExecuted,
    UserMessageSent,
)
from agentx.synthesis.gates.action_relevance import suggests
from agentx.synthesis.memory.checks import DependencyCheck
from agentx.synthesis.memory.items import sort_of
from agentx.synthesis.state.flows import told

SHARES_WORKSPACES = True
SAMPLES = Path(__file__).parents[2] / "sample_workspaces"
STORIES = ("rejected-idea", "settled", "deploy-flow", "lesson-to-check", "recovery")
RUN = {name: f"$ agentx run --sample {name}" for name in STORIES}


class Story:
    """A sample that was played: its workspace, and what its steps printed."""

    def __init__(self, root, lines):
        self.ws = Workspace.open(root)
        self.lines = lines
        self.ended = lines[-1]["data"]
        self.record = list(self.ws.events())

    def facts(self, *types):
        return [event for event in self.record if isinstance(event.data, types)]

    def calls(self, **wanted):
        calls = [event.data for event in self.facts(ToolCallExecuted)]
        return [call for call in calls if all(getattr(call, name) == value for name, value in wanted.items())]

    def shown(self, event):
        """The text that an agent was shown, put together again."""
        return self.ws.get_relevant_context(as_of=event.seq)

    def verdicts(self):
        return [line for line in self.lines if isinstance(line, dict) and "verdict" in line]


@pytest.fixture(scope="module")
def play(tmp_path_factory):
    """Play a sample, each once."""
    played = {}

    def play(name):
        if name not in played:
            root = tmp_path_factory.mktemp("stories") / name
            out = StringIO()
            with redirect_stdout(out), pytest.MonkeyPatch.context() as patch:
                patch.chdir(SAMPLES)
                assert main(["run", "--sample", name, "--into", str(root), "--json"]) == 0, out.getvalue()[
                    -2_000:
                ]
            played[name] = Story(root, [json.loads(line) for line in out.getvalue().splitlines()])
        return played[name]

    yield play
    for story in played.values():
        story.ws.close()


# --- a rejected idea -------------------------------------------------------------------------------------------------

NO_POP_UPS = "No. Stop suggesting pop-ups: we tried one two years ago and got nothing but complaints."


def test_the_rejection_is_taken_from_the_users_words_and_stands(play):
    (rejection,) = play("rejected-idea").ws.memory("rejection")
    assert (rejection.text, rejection.trust, rejection.detail.idea) == (NO_POP_UPS, "user", "Pop-ups")


def test_it_stands_in_the_prompt_although_no_conversation_holds_it(play):
    story = play("rejected-idea")
    (rejection,) = story.ws.memory("rejection")
    said = next(event for event in story.facts(UserMessageSent) if event.seq == rejection.evidence[0].seq)
    last = story.facts(RunStarted)[-1]
    recent = [message.seq for message in story.ws.state_at(last.seq).messages]
    assert said.seq not in recent
    contexts = [event for event in story.facts(ContextProvided) if event.seq > last.seq]
    assert len(contexts) == 4
    assert all(rejection.id in event.data.items for event in contexts)
    rejected = story.shown(contexts[0]).text.partition("## What the user ruled out")[2].partition("##")[0]
    assert NO_POP_UPS in rejected


def test_the_idea_goes_back_with_the_sentence_and_the_date_and_reaches_nobody_again(play):
    story = play("rejected-idea")
    (rejection,) = story.ws.memory("rejection")
    (answer,) = story.calls(tool="answer")
    assert (answer.status, answer.denied_by) == ("DENIED", (rejection.id,))
    assert suggests(rejection.detail.idea, answer.arguments["text"])
    assert NO_POP_UPS in answer.output.text
    assert f"ruled out on {rejection.created_at[:10]}" in answer.output.text
    answers = [event for event in story.facts(AgentMessageSent) if event.data.final]
    brought_up = [suggests("Pop-ups", story.ws.read_body(event.data.body)) for event in answers]
    assert brought_up == [True] + [False] * (len(answers) - 1)  # the first one was before the no
    assert [verdict["verdict"] for verdict in story.verdicts()] == ["deny"]
    assert story.verdicts()[0]["denied_by"] == [rejection.id]


# --- a candidate that an agent settles -------------------------------------------------------------------------------


def test_a_lying_agent_is_refused_each_time_and_its_answer_is_delivered(play):
    story = play("settled")
    lies = [call for call in story.calls(tool="settle") if call.status == "FAILED"]
    assert [story.ws.read_body(call.output).partition("Refused: ")[2] for call in lies] == [
        "The quote does not stand in the user's own words of message 3.",
        "The quote does not stand in the user's own words of message 3.",
        "The user negates it (“don't”), and the sentence does not.",
        "Its until does not stand in the user's own words, nor in what they answer.",
        "No item c-99 was found.",
    ]
    first = next(event for event in story.facts(RunEnded))
    assert (first.data.status, story.ws.state_at(first.seq).items["c-3"].status) == ("COMPLETED", "candidate")


def test_a_good_reader_settles_it_and_the_next_agent_has_to_keep_it(play):
    story = play("settled")
    rule = story.ws.state.items["c-3"]
    assert (rule.status, rule.text) == ("active", "Never create a requirements.txt.")
    assert (rule.trust, rule.worded_by, rule.by_hand) == ("user", "agent:main", False)
    assert rule.evidence[0].quote.startswith("Please don't create a requirements.txt")
    (denied,) = story.calls(status="DENIED")
    assert (denied.tool, denied.denied_by) == ("write_file", ("c-3",))
    assert not (story.ws.root / "artifacts" / "requirements.txt").exists()
    assert "reportlab" in (story.ws.root / "artifacts" / "pyproject.toml").read_text()


# --- a deployment that follows its flow ------------------------------------------------------------------------------


def test_the_flow_is_in_the_prompt_and_nothing_runs_before_a_persons_word(play):
    story = play("deploy-flow")
    (flow,) = story.ws.memory("flow")
    assert [(verdict["verdict"], verdict["asked_by"]) for verdict in story.verdicts()] == [("ask", [flow.id])]
    first = story.facts(ContextProvided)[0]
    assert flow.id in first.data.items
    assert "  5. Let QA look" in story.shown(first).text
    hasty, backup, *_ = story.calls(tool="run_command")
    assert (hasty.arguments["command"], hasty.status) == ("sh tools/publish.sh", "DENIED")
    assert "Not without a backup" in hasty.output.text
    assert (backup.arguments["command"], backup.status) == ("sh tools/backup.sh", "SUCCEEDED")
    words = [event.data.approved for event in story.facts(ApprovalDecided)]
    assert words == [False, True, True, True]


def test_its_steps_are_kept_in_order_and_nothing_is_lost(play):
    story = play("deploy-flow")
    done = [call.command for call in story.calls(tool="run_command", exit_code=0)]
    assert done == [f"sh tools/{step}.sh" for step in ("backup", "build", "publish")] * 3
    live = (story.ws.root / "artifacts" / "live" / "index.html").read_text()
    assert "closed from noon, the oven is being repaired" in live
    assert "Easter bread: 6.80 €" in live


def test_each_deployment_moved_one_counter_and_the_record_says_how_sure_it_is(play):
    story = play("deploy-flow")
    (flow,) = story.ws.memory("flow")
    graded = [event.data for event in story.facts(TaskGraded)]
    assert [(grade.flow, grade.passed) for grade in graded] == [
        (flow.id, True),
        (flow.id, False),
        (flow.id, True),
    ]
    assert told(flow.detail) == "67% (2 of 3; 21–94%)"


# --- a lesson becomes a check ----------------------------------------------------------------------------------------


def test_a_lesson_that_is_only_words_is_flagged_and_the_check_is_proposed(play):
    story = play("lesson-to-check")
    first, second = (line for line in story.lines if isinstance(line, dict) and "permanent" in line)
    assert (first["permanent"], first["proposal"]["kind"]) == (False, "check")
    assert first["proposal"]["command"].startswith("agentx memory add 'Never import random;")
    assert (second["permanent"], second["proposal"]) == (True, None)
    assert first["lesson"]["id"] == second["lesson"]["id"]


def test_the_check_stops_the_same_mistake_before_a_test_can_fail(play):
    story = play("lesson-to-check")
    (rule,) = story.ws.memory("constraint")
    assert isinstance(rule.detail.checks[0], DependencyCheck)
    (denied,) = story.calls(status="DENIED")
    assert (denied.tool, denied.denied_by) == ("edit_file", (rule.id,))
    assert [call.status for call in story.calls(tool="run_tests")] == ["FAILED", "SUCCEEDED", "SUCCEEDED"]
    assert "import random" not in (story.ws.root / "artifacts" / "daily.py").read_text()
    assert story.verdicts()[0]["denied_by"] == [rule.id]
    assert not [one for one in story.ws.gates.lessons() if one.item.text == rule.text]


# --- recovery --------------------------------------------------------------------------------------------------------


def test_the_log_is_seventy_thousand_tokens_and_what_comes_back_less_than_one(play):
    story = play("recovery")
    assert 70_000 <= story.ended["log_tokens"] <= 80_000
    last = story.facts(RunStarted)[-1]
    contexts = [event.data for event in story.facts(ContextProvided) if event.seq > last.seq]
    assert {(context.tier, context.max_tokens) for context in contexts} == {(0, 1_000)}
    assert all(0 < context.tokens <= 1_000 for context in contexts)
    (context,) = (
        line for line in story.lines if isinstance(line, dict) and "omitted" in line and "seq" in line
    )
    assert (context["tier"], context["tokens"] <= 1_000) == (0, True)


def test_what_must_not_be_forgotten_is_there_and_the_work_goes_on_at_once(play):
    story = play("recovery")
    ws, last = story.ws, story.facts(RunStarted)[-1]
    before = ws.state_at(last.seq)
    kinds = ("constraint", "rejection", "hot_issue", "task", "decision", "agent_state")
    wanted = {item.id for item in before.active() if sort_of(item) in kinds}
    assert [sum(sort_of(item) == kind for item in before.active()) for kind in kinds] == [2, 2, 1, 1, 1, 1]
    first = next(event for event in story.facts(ContextProvided) if event.seq > last.seq)
    assert wanted <= set(first.data.items)
    calls = [event.data.tool for event in story.facts(ToolCallExecuted) if event.seq > last.seq]
    assert calls == ["edit_file", "run_tests"]
    assert ws.memory("hot_issue") == ws.memory("task") == []


# --- all of them -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STORIES)
def test_a_story_is_whole_and_its_readme_says_how_to_play_it(play, name):
    story = play(name)
    assert story.ws.verify().findings == ()
    assert {event.data.status for event in story.facts(RunEnded)} <= {"COMPLETED", "WAITING"}
    code = (SAMPLES / name / "README.md").read_text().partition("```console\n")[2].splitlines()
    assert code[0] == RUN[name]
