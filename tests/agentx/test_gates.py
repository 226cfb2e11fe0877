"""The gates of a workspace: what is looked at before an action, and what is kept of a task that is over."""

import json

import numpy as np
import pytest

from agentx import Workspace
from agentx.agents.loop import run_task
from agentx.agents.run_types import Approval, Observer
from agentx.config import Config
from agentx.memory.maintenance import maintain
from agentx.settings import Settings
from agentx.storage.errors import UsageError
from agentx.storage.events.types import TaskGraded, ToolCallExecuted
from agentx.synthesis.gates.action_gate import MAX_TOKENS
from agentx.synthesis.learning.grading import NOT_PERMANENT
from agentx.synthesis.memory.checks import CommandCheck, PathCheck, TextCheck
from agentx.synthesis.memory.items import RuleDetail, Scope
from agentx.synthesis.model.scripted import ScriptedModel
from agentx.tools.storage_tools import Written
from agentx.tools.toolbox import Toolbox
from agentx.tools.toolset import Job, tool

NO_REQUIREMENTS = "Never create a requirements.txt file; use pyproject.toml instead."
ON = "\n[tools]\nrun_command = true\n"


@pytest.fixture
def script(tmp_path):
    """A model that plays calls of tools, given as tuples, and answers."""

    def script(*turns):
        path = tmp_path / f"turns-{len(list(tmp_path.iterdir()))}.jsonl"
        played = [
            {"answer": turn}
            if isinstance(turn, str)
            else {"tool_calls": [{"name": turn[0], "arguments": turn[1]}]}
            if isinstance(turn, tuple)
            else turn
            for turn in turns
        ]
        path.write_text("\n".join(map(json.dumps, played)))
        return ScriptedModel(path)

    return script


def facts(ws, kind):
    return [event for event in ws.events() if isinstance(event.data, kind)]


def results(ws):
    return [event.data for event in facts(ws, ToolCallExecuted)]


# --- what was ruled out ---

COMPOSE = "services:\n  sessions:\n    image: redis:7\n"


def test_a_write_that_brings_in_what_was_ruled_out_asks_before_it_is_made(ws):
    ws.say("Redis for sessions is off the table, ops won't run another stateful thing.")
    (ruled,) = ws.memory("rejection")
    planned = {"path": "compose.yml", "content": COMPOSE}
    before = ws.gates.before("give the sessions a store", tool="Write", arguments=planned)
    assert (before.verdict, before.asked_by) == ("ask", (ruled.id,))
    assert "Redis" in before.reason
    assert "compose.yml" in before.reason
    result = ws.tools.call("write_file", planned, call_id="w", run="r")
    assert result.approval_needed
    assert not list(ws.artifacts.iterdir())
    ws.approve("w", approved=True)
    assert ws.tools.call("write_file", planned, call_id="w", run="r").status == "SUCCEEDED"
    more = {"path": "compose.yml", "content": f"{COMPOSE}  cache:\n    image: redis:7\n"}
    assert ws.tools.call("write_file", more, run="r").status == "SUCCEEDED"


def test_a_command_asks_also_for_what_is_only_perhaps_ruled_out(configured):
    ws = configured(ON)
    ws.say("we're not doing Tailwind")
    (candidate,) = ws.memory("rejection", status="candidate")
    asked = ws.tools.gates.before_call("run_command", {"command": "npm i -D tailwindcss"}, run="r")
    assert asked.flows == (candidate.id,)
    assert "Tailwind" in asked.ask
    for command in ("npm uninstall tailwindcss", "grep -rn tailwind .", "npm i -D bulma"):
        assert not ws.tools.gates.before_call("run_command", {"command": command}, run="r").ask


def test_an_action_in_words_that_proposes_what_was_ruled_out_asks(ws):
    ws.say("Kubernetes has no place in this project.")
    assert ws.gates.before("write the manifests for Kubernetes and a chart").verdict == "ask"
    assert ws.gates.before("explain why we do not use Kubernetes").verdict != "ask"


def test_the_gate_names_what_it_could_not_analyse_of_a_command(configured):
    ws = configured(ON)
    command = {"command": "npm test && bash ship.sh"}
    assert ws.gates.before("ship it", tool="Bash", arguments=command).unread == ()
    ws.say(NO_REQUIREMENTS)
    verdict = ws.gates.before("ship it", tool="Bash", arguments=command)
    assert verdict.unread == ("bash ship.sh",)
    assert "Not analysed: `bash ship.sh`." in verdict.text
    notes = [ws.tools.gates.before_call("run_command", command, run="r").note for _ in range(2)]
    assert ["Not analysed" in note for note in notes] == [True, False]


# --- before ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("write_file", {"path": "requirements.txt", "content": "flask"}),
        ("Write", {"file_path": "{artifacts}/api/requirements.txt", "content": "flask"}),
        ("str_replace_editor", {"path": "requirements.txt", "file_text": "flask"}),
        ("move_file", {"path": "deps.txt", "to": "requirements.txt"}),
    ],
)
def test_a_write_that_would_break_a_checked_rule_is_denied_whichever_agent_plans_it(ws, tool, arguments):
    ws.say(NO_REQUIREMENTS)
    ws.tools.write_file("deps.txt", "flask\n")
    filled = {name: value.format(artifacts=ws.artifacts) for name, value in arguments.items()}
    verdict = ws.gates.before("add the dependency", tool=tool, arguments=filled)
    assert (verdict.verdict, verdict.denied_by) == ("deny", ("c-2",))
    assert NO_REQUIREMENTS in verdict.reason
    assert not (ws.artifacts / "requirements.txt").exists()


@pytest.fixture(scope="module")
def many_rules(tmp_path_factory):
    """A workspace with rules about paths, words, and a directory that stays as it is; two links lead into it."""
    root = tmp_path_factory.mktemp("rules") / "task"
    with Workspace.create(root) as ws:
        for text in (NO_REQUIREMENTS, "Never mention Elon Musk in any file."):
            ws.say(text)
        ws.tools.write_file("legacy/a.py", "x = 1\n")
        ws.remember("constraint", "Never modify files in legacy/.")
        (ws.artifacts / "old").symlink_to("legacy")
        (root.parent / "alias").symlink_to(ws.artifacts)
        for idea in ("yarn", "force pushes", "Redis"):
            ws.remember("rejection", idea)
        yield ws


@pytest.mark.parametrize(
    "path",
    [
        "sub/../REQUIREMENTS.TXT",
        "requirements.txt ",
        "artifacts/requirements.txt",
        "file://{artifacts}/requirements.txt",
        "{artifacts}/sub/../requirements.txt",
        "{alias}/requirements.txt",
        "sub\\requirements.txt",
        "old/new.py",
        "{alias}/legacy/a.py",
    ],
)
def test_a_path_is_known_however_it_is_written(many_rules, path):
    ws = many_rules
    path = path.format(artifacts=ws.artifacts, alias=ws.root.parent / "alias")
    verdict = ws.gates.before("write it", tool="Write", arguments={"file_path": path, "content": "x"})
    assert verdict.verdict == "deny"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("move_file", {"source": "a.txt", "destination": "requirements.txt"}),
        ("move_file", {"path": "legacy", "to": "new"}),
        ("delete_file", {"path": "legacy"}),
        ("create_file", {"filePath": "requirements.txt", "content": "x"}),
        ("edit_file", {"target_file": "requirements.txt", "code": "x"}),
        ("edit_file", {"path": "a.md", "edits": [{"oldText": "", "newText": "Elon Musk"}]}),
        ("apply_patch", {"input": "*** Begin Patch\n*** Add File: requirements.txt\n+flask\n*** End Patch"}),
        ("apply_patch", {"patch": "--- a/a.md\n+++ b/a.md\n@@ -1 +1 @@\n+Elon Musk\n"}),
        ("Bash", {"command": "echo flask > requirements.txt"}),
        ("Bash", {"command": "cat <<EOF >> a.md\nElon Musk\nEOF"}),
        ("Bash", {"command": "rm -rf legacy"}),
        ("Bash", {"command": "cd legacy && rm -rf .."}),
        ("shell", {"command": ["bash", "-lc", "mv deps.txt requirements.txt"]}),
        ("Bash", {"command": "cd web && npx y''arn add react"}),
        ("Bash", {"command": "git push -f origin main"}),
        ("Bash", {"command": "pip install redis"}),
    ],
)
def test_what_the_words_of_a_call_say_of_its_effects_is_denied_whoever_calls(many_rules, tool, arguments):
    assert many_rules.gates.before("do it", tool=tool, arguments=arguments).verdict == "deny"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("str_replace_editor", {"command": "view", "path": "requirements.txt"}),
        ("Bash", {"command": "pip install -r requirements.txt"}),
        ("Bash", {"command": "cp legacy/a.py new.py && diff new.py legacy/a.py"}),
        ("Bash", {"command": "cp templates/requirements.txt deps.txt"}),
        ("Bash", {"command": "rm requirements.txt yarn.lock"}),
        ("Bash", {"command": "grep -rn 'Elon Musk' . > hits.txt; which yarn; git push origin main"}),
        ("Bash", {"command": "npm uninstall yarn && git commit -m 'No force pushes, no yarn'"}),
        ("Bash", {"command": "python -c \"print(open('requirements.txt').read())\""}),
    ],
)
def test_what_only_names_what_is_forbidden_is_let_be(many_rules, tool, arguments):
    assert many_rules.gates.before("do it", tool=tool, arguments=arguments).verdict != "deny"


def test_an_edit_is_checked_as_the_file_would_be(ws):
    ws.say("Never mention Elon Musk in any file.")
    ws.tools.write_file("outlook.md", "# Outlook\n")
    edit = {"file_path": "outlook.md", "old_string": "Outlook", "new_string": "Elon Musk"}
    assert ws.gates.before("edit it", tool="Edit", arguments=edit).verdict == "deny"
    assert (
        ws.gates.before(
            "edit it", tool="MultiEdit", arguments={"path": "outlook.md", "edits": [edit]}
        ).verdict
        == "deny"
    )
    other = edit | {"new_string": "Forecast"}
    assert ws.gates.before("edit it", tool="Edit", arguments=other).verdict == "allow"


def test_what_lies_elsewhere_and_arguments_of_odd_sorts_are_let_be(ws):
    ws.say(NO_REQUIREMENTS)
    for path in ("/etc/requirements.txt", "../requirements.txt", "x" * 100_000, 3, None, ["a"], "\0"):
        verdict = ws.gates.before("write it", tool="Write", arguments={"file_path": path, "content": "x"})
        assert verdict.verdict in ("allow", "allow_with_context")


def test_a_function_without_its_decorator_is_seen_in_a_here_document(ws):
    ws.remember("constraint", "Every new python function must have the @traced decorator.")
    body = "def f():\n    return 1\n"
    for text, verdict in ((body, "deny"), (f"@traced\n{body}", "allow_with_context")):
        command = {"command": f"cat > src/b.py <<EOF\n{text}EOF"}
        assert ws.gates.before("write f", tool="Bash", arguments=command).verdict == verdict


def test_a_call_that_says_nothing_is_known_by_the_name_of_its_tool(ws):
    ws.remember("rejection", "sending mail")
    assert ws.gates.before("", tool="TodoWrite", arguments={"todos": []}).verdict == "allow"
    assert ws.gates.before("", tool="send_mail", arguments={"to": ["a"]}).verdict == "deny"


@pytest.mark.parametrize("name", ["cwd", "workdir", "working_directory"])
def test_a_command_runs_in_the_directory_that_the_call_names(ws, name):
    ws.remember("constraint", "In infra/, never run terraform apply.")
    ws.remember("constraint", "Never create a requirements.txt file in infra/.")
    flags = (CommandCheck(programs=("git push",), required_flags=("--signed",)),)
    ws.remember("constraint", "In infra, pushes are signed.", scope=Scope(paths=("infra/**",)), checks=flags)

    def before(command, folder):
        return ws.gates.before("", tool="Bash", arguments={"command": command, name: str(folder)})

    root = ws.engine.artifacts.root
    assert before("terraform apply", root).verdict != "deny"
    assert before("terraform apply", "web").verdict != "deny"
    assert before("terraform apply", root / "infra").verdict == "deny"
    assert before("terraform apply", "infra").verdict == "deny"
    assert before("echo x > requirements.txt", "infra").verdict == "deny"
    assert before("echo x > requirements.txt", root).verdict != "deny"
    assert before("git push", "infra").corrected == "git push --signed"


def test_reading_a_forbidden_file_is_no_write(ws):
    ws.say(NO_REQUIREMENTS)
    assert ws.gates.before("look", tool="Read", arguments={"file_path": "requirements.txt"}).verdict != "deny"


def test_a_tool_that_needs_a_persons_word_asks(configured):
    ws = configured('\n[tools]\napprove = ["delete_file"]\n')
    verdict = ws.gates.before("delete the page", tool="delete_file", arguments={"path": "a.md"})
    assert verdict.verdict == "ask"
    assert "delete_file" in verdict.reason


def test_a_look_leaves_no_event(ws):
    ws.say(NO_REQUIREMENTS)
    before = ws.state.seq
    ws.gates.before(
        "write requirements.txt", tool="Write", arguments={"path": "requirements.txt", "content": "x"}
    )
    assert ws.state.seq == before


def test_it_sees_what_another_process_remembered(ws, elsewhere):
    assert ws.gates.before("sort the ledger").verdict == "allow"
    elsewhere(ws, "ws.remember('constraint', 'Sort the ledger by date.')")
    assert ws.gates.before("sort the ledger").verdict == "allow_with_context"


def test_a_hundred_thousand_characters_are_looked_through_and_nothing_is_an_error(ws):
    ws.remember("rejection", "Redis for caching")
    verdict = ws.gates.before("\x1b[2J" + "deploy the \x00 ledger. " * 5_000)
    assert verdict.tokens <= MAX_TOKENS
    with pytest.raises(UsageError, match="planned action"):
        ws.gates.before(" \n\x00 ")


def test_scripts_are_found_by_what_their_names_and_first_comments_say(ws):
    ws.tools.write_file("scripts/publish.sh", "#!/bin/sh\n# Deploy the site.\nrsync\n")
    ws.tools.write_file("tools/backup_database.py", '"""Copy it away."""\n')
    ws.tools.write_file("src/deploy.py", "x = 1\n")
    found = {
        line.id: line.text for part in ws.gates.before("deploy the new site").sections for line in part.lines
    }
    assert found == {"scripts/publish.sh": "Deploy the site."}
    verdict = ws.gates.before("back up the database")
    assert [line.id for part in verdict.sections for line in part.lines] == ["tools/backup_database.py"]


def test_scripts_of_the_workspaces_beside_are_found_by_name_alone(ws, tmp_path):
    beside = tmp_path / "blog" / "artifacts" / "scripts"
    beside.mkdir(parents=True)
    (tmp_path / "blog" / "history.jsonl").touch()
    (beside / "publish_blog.sh").write_text("#!/bin/sh\n# the secret of deployment\n")
    no_workspace = tmp_path / "other" / "artifacts"
    no_workspace.mkdir(parents=True)
    (no_workspace / "publish.sh").touch()
    text = ws.gates.before("publish the page").text
    assert "../blog/artifacts/scripts/publish_blog.sh" in text
    assert "secret of deployment" not in text
    assert "other/artifacts" not in text


def test_credentials_are_shown_by_name_and_never_by_value(tmp_path):
    environ = {"GITHUB_TOKEN": "ghp_hush", "GITHUB_HOST": "x", "STRIPE_API_KEY": "sk_hush", "EMPTY_TOKEN": ""}
    with Workspace.create(tmp_path / "task", settings=Settings(environ=environ, cache_dir=tmp_path)) as ws:
        text = ws.gates.before("open a pull request on GitHub").text
        assert "GITHUB_TOKEN" in text
        assert "STRIPE_API_KEY" not in text
        assert "GITHUB_HOST" not in text
        assert "hush" not in text
        assert ws.capabilities.credentials() == ["GITHUB_TOKEN", "STRIPE_API_KEY"]


def test_a_rule_that_slept_is_back_when_its_situation_comes_up(ws):
    rule = ws.remember("rule", "Purge the cache after a deployment.", score=3.5)
    maintain(ws.engine, now="2099-01-01T00:00:00.000000Z")
    assert ws.memory("rule", status=None)[0].status != "active"
    verdict = ws.gates.before("purge the cache after the deployment")
    assert verdict.woken == (rule.id,)
    assert ws.memory("rule")[0].score >= 5
    assert ws.gates.before("purge the cache after the deployment").woken == ()


def test_a_loaded_model_wakes_a_rule_by_meaning_and_none_is_loaded_for_it(ws, monkeypatch):
    rule = ws.remember("rule", "Purge the cache after a deployment.", score=3.5)
    asked = []

    def vectors(phrases, *, load, within_s):
        asked.append((load, *phrases))
        return {phrase: np.array([1.0, 0.0]) for phrase in phrases}

    monkeypatch.setattr(ws.engine.meanings, "of", vectors)
    assert ws.gates.before("hand it to the customers").woken == (rule.id,)
    assert asked == [(False, "hand it to the customers", rule.text)]
    ws.gates.before("hand it to the customers")
    assert len(asked) == 1  # no rule is asleep any more


# --- in a run --------------------------------------------------------------------------------------------------------


def test_a_command_that_does_what_was_ruled_out_is_denied_and_recorded(configured, script):
    ws = configured(ON)
    ws.remember("rejection", "yarn")
    run_task(
        ws,
        "Install it.",
        script(
            ("run_command", {"command": "yarn install"}),
            {"expect": ["Denied", "ruled out"], "answer": "I see."},
        ),
    )
    (call,) = results(ws)
    assert (call.status, call.denied_by) == ("DENIED", ("x-2",))
    assert "yarn" in call.output.text


class OwnTools(Toolbox):
    """The tools of a program that brings one of its own."""

    @tool
    def post_tweet(self, job: Job, text: str) -> Written:
        """Post a tweet."""
        raise AssertionError(f"{job.tool} was called: {text}")


def test_a_call_like_one_that_the_user_refused_asks_until_such_a_call_is_approved(configured):
    ws = configured("\n[tools]\nrun_command = true\napprove = ['run_command', 'write_file']\n")
    ws.tools.call("run_command", {"command": "rm -rf build"}, call_id="c-1")
    ws.approve("c-1", approved=False, reason="I still need it")
    ws.tools.call("write_file", {"path": "a.md", "content": "One line."}, call_id="c-2")
    ws.approve("c-2", approved=False)

    def before(tool, **arguments):
        return ws.gates.before("clean up", tool=tool, arguments=arguments)

    ws.engine.config = Config()
    asked = before("Bash", command="cd . && sudo rm -r -f ./build/")
    assert (asked.verdict, "I still need it" in asked.reason) == ("ask", True)
    assert before("delete_file", path="build").verdict == "ask"
    assert before("write_file", path="a.md", content="One line!").verdict == "ask"
    assert before("write_file", path="a.md", content="Something else altogether.").verdict != "ask"
    assert before("Bash", command="ls build").verdict != "ask"
    again = ws.tools.call("write_file", {"path": "a.md", "content": "One line."}, call_id="c-3")
    assert again.approval_needed
    ws.approve("c-3")
    assert before("write_file", path="a.md", content="One line.").verdict != "ask"
    assert before("Bash", command="rm -rf build").verdict == "ask"


def test_the_gate_stands_before_a_tool_of_ones_own_too(ws):
    rejection = ws.remember("rejection", "posting tweets")
    result = OwnTools(ws.engine, run="r-1").call("post_tweet", {"text": "hello"})
    assert (result.status, result.denied_by) == ("DENIED", (rejection.id,))
    assert [call.denied_by for call in results(ws)] == [(rejection.id,)]


def test_the_content_of_a_file_is_not_taken_for_what_is_done(ws):
    ws.remember("rejection", "Redis for caching")
    assert (
        ws.tools.call("write_file", {"path": "redis_caching.md", "content": "Redis for caching"}).status
        == "SUCCEEDED"
    )


def test_what_touches_a_call_is_noted_once_in_a_run_and_stands_in_the_record(ws):
    ws.remember("constraint", "Keep the ledger in cents.")
    first = ws.tools.call("write_file", {"path": "ledger.md", "content": "1"}, run="r-1", actor="agent:main")
    again = ws.tools.call("write_file", {"path": "ledger.md", "content": "2"}, run="r-1", actor="agent:main")
    other = ws.tools.call("write_file", {"path": "ledger.md", "content": "3"}, run="r-2", actor="agent:main")
    assert "Keep the ledger in cents." in first.output
    assert "ledger in cents" not in again.output
    assert "Keep the ledger in cents." in other.output
    noted = [call.noted for call in results(ws)]
    assert [bool(note) for note in noted] == [True, False, True]
    assert first.output.endswith(noted[0])


def test_a_note_is_short_however_much_touches_the_call(ws):
    for number in range(30):
        ws.remember("constraint", f"Ledger {number}: " + "balance it and count it again, " * 20)
    result = ws.tools.call("write_file", {"path": "ledger.md", "content": "1"}, run="r-1", actor="agent:main")
    (call,) = results(ws)
    assert 0 < len(call.noted) < 2_500
    assert result.status == "SUCCEEDED"


def test_a_flow_that_needs_a_persons_word_is_asked_for_once_in_a_run(ws, script):
    ws.flows.add("publish the outlook", ["Read it aloud", "Publish"], needs_approval=True)
    asked = []

    def yes(waiting):
        asked.append(waiting.tool)
        return Approval(approved=True)

    turns = (
        ("read_file", {"path": "nothing.md"}),
        ("write_file", {"path": "a.md", "content": "1"}),
        ("write_file", {"path": "b.md", "content": "2"}),
        "Published.",
    )
    result = run_task(ws, "Publish the outlook.", script(*turns), ask_person=yes)
    assert (result.status, asked) == ("COMPLETED", ["write_file"])


def test_the_words_of_a_call_do_not_talk_away_the_flow_that_the_user_called_for(configured, script):
    ws = configured(ON)
    ws.flows.add("publish the outlook", ["Read it aloud"], needs_approval=True)
    ws.flows.add("sort the ledger", ["Sort"])
    look = ("run_command", {"command": "ls | head"})
    write = ("write_file", {"path": "sort the ledger.md", "content": "1"})
    result = run_task(ws, "Publish the outlook.", script(look, write))
    assert (result.status, result.waiting.tool) == ("WAITING", "write_file")


def test_without_a_person_the_run_waits_and_goes_on_when_they_gave_their_word(ws, script):
    ws.flows.add("publish the outlook", ["Read it aloud"], needs_approval=True)
    write = ("write_file", {"path": "a.md", "content": "1"})
    result = run_task(ws, "Publish the outlook.", script(write))
    assert result.status == "WAITING"
    assert not (ws.artifacts / "a.md").exists()
    assert facts(ws, TaskGraded) == []
    ws.approve(result.waiting.call_id)
    again = script(write, ("write_file", {"path": "b.md", "content": "2"}), "Done.")
    assert run_task(ws, "", again).status == "COMPLETED"
    assert (ws.artifacts / "a.md").exists()
    assert (ws.artifacts / "b.md").exists()


def test_a_run_is_graded_by_the_engine_when_it_is_over(ws, script):
    flow = ws.flows.add("write the outlook", ["Write", "Read it again"])
    run_task(ws, "Write the outlook.", script(("write_file", {"path": "a.md", "content": "1"}), "Done."))
    (graded,) = facts(ws, TaskGraded)
    assert (graded.actor, graded.data.passed, graded.data.flow) == ("engine:gates", True, flow.id)
    assert (graded.data.steps_seen, graded.data.steps) == (1, 2)
    assert graded.describe().endswith(f"(by {flow.id}, steps seen 1 of 2)")
    assert ws.flows.find(flow.id)[1].succeeded == 1


def test_a_run_that_matched_a_flow_and_did_none_of_its_steps_is_neither_success_nor_failure(ws, script):
    flow = ws.flows.add("publish the outlook", ["Convert it to HTML", "Upload it"])
    run_task(ws, "Publish the outlook.", script(("write_file", {"path": "a.md", "content": "1"}), "Done."))
    (graded,) = facts(ws, TaskGraded)
    assert (graded.data.flow, graded.data.followed) == (flow.id, False)
    assert graded.describe().endswith(f"({flow.id} matched, not followed, steps seen 0 of 2)")
    detail = ws.flows.find(flow.id)[1]
    assert (detail.succeeded, detail.failed, detail.not_followed) == (0, 0, 1)
    assert ws.rebuild().state_digest == ws.state.digest


def test_of_two_flows_that_match_the_one_that_was_followed_is_credited(ws, script):
    other = ws.flows.add("publish the outlook", ["Upload it"])
    done = ws.flows.add("publish the outlook draft", ["Write draft.md"], triggers=["publish outlook"])
    run_task(
        ws, "Publish the outlook.", script(("write_file", {"path": "draft.md", "content": "1"}), "Done.")
    )
    assert [ws.flows.find(one.id)[1].succeeded for one in (other, done)] == [0, 1]


def test_an_answer_does_not_make_a_success_of_a_step_that_failed(configured, script):
    ws = configured(ON)
    flow = ws.flows.add("publish the outlook", ["Run `sh publish.sh`"])
    run_task(
        ws, "Publish the outlook.", script(("run_command", {"command": "sh publish.sh"}), "All is published.")
    )
    (graded,) = facts(ws, TaskGraded)
    assert (graded.data.passed, ws.flows.find(flow.id)[1].failed) == (False, 1)


def test_a_run_whose_only_change_was_denied_is_not_graded(ws, script):
    ws.remember("constraint", "Never create a requirements.txt file.")
    flow = ws.flows.add("write the requirements", ["Write requirements.txt"])
    write = ("write_file", {"path": "requirements.txt", "content": "flask"})
    run_task(ws, "Write the requirements.", script(("list_directory", {}), write, "Done."))
    assert [call.status for call in results(ws)] == ["SUCCEEDED", "DENIED"]
    assert facts(ws, TaskGraded) == []
    assert ws.flows.find(flow.id)[1].succeeded == 0


def word_rule(ws, word, *, kind="rule"):
    """Return the id of a rule that denies a word in files and answers."""
    return ws.remember(kind, f"Never write {word}.", checks=[TextCheck(phrases=(word,))]).id


def wrote(content):
    return ("write_file", {"path": "notes.md", "content": content})


def test_a_grade_names_the_rules_whose_checks_held_and_those_that_were_broken(ws, script):
    kept, broken = word_rule(ws, "synergy"), word_rule(ws, "leverage")
    word_rule(ws, "utilize", kind="constraint")
    run_task(ws, "Write the notes.", script(wrote("Together."), wrote("We leverage it."), "We leverage it."))
    graded = facts(ws, TaskGraded)[-1]
    assert (graded.data.kept, graded.data.broke) == ((kept,), (broken,))
    assert (ws.state.items[kept].score, ws.state.items[broken].detail.violations) == (5.25, 1)


def test_a_rule_that_denied_a_call_and_was_then_followed_is_kept(ws, script):
    rule = word_rule(ws, "synergy")
    run_task(ws, "Write the notes.", script(wrote("Synergy."), wrote("Together."), "Done."))
    (graded,) = facts(ws, TaskGraded)
    assert (graded.data.kept, graded.data.broke) == ((rule,), ())


def test_a_run_that_leaves_a_check_failing_did_not_pass(configured, script):
    ws = configured("\n[checks.tests]\ncommand = \"echo 'FAILED t.py::test_a - boom'; exit 1\"\n")
    flow = ws.flows.add("write the outlook", ["Write", "Run the tests"])
    run_task(ws, "Write the outlook.", script(("run_tests", {}), "Done."))
    assert [event.data.passed for event in facts(ws, TaskGraded)] == [False]
    assert ws.flows.find(flow.id)[1].failed == 1


def test_a_run_that_was_interrupted_is_not_graded(ws, script):
    class Interrupts(Observer):
        def tool_started(self, call):
            raise KeyboardInterrupt

    run_task(ws, "Go.", script(("read_file", {"path": "a"})), observer=Interrupts())
    assert facts(ws, TaskGraded) == []


# --- after -----------------------------------------------------------------------------------------------------------


def test_the_same_task_is_one_entry_however_often_it_is_graded(ws):
    failed = ws.gates.after("Deployed the blog", passed=False, lesson="Upload the index last.")
    passed = ws.gates.after("Deployed the blog.", passed=True)
    assert (failed.new, passed.new) == (True, False)
    (task,) = ws.memory("task", status=None)
    assert (task.id, task.status, task.reason) == (failed.task.id, "closed", "It passed.")
    assert [place.seq for place in task.evidence] == [failed.event, passed.event]


def test_the_flow_and_the_rules_are_counted(ws):
    flow = ws.flows.add("deploy the blog", ["Build"])
    kept, broken = (ws.remember("rule", text) for text in ("Read the log first.", "Tell the editors."))
    graded = ws.gates.after(
        "Deployed", passed=False, flow=flow.id, kept=[kept.id], broke=[broken.id, broken.id]
    )
    assert (graded.flow.detail.succeeded, graded.flow.detail.failed) == (0, 1)
    assert ws.gates.after("Deployed it once more", passed=True, flow="Deploy the blog").flow.id == flow.id
    items = ws.state.items
    assert items[kept.id].score == kept.score + 0.25
    assert (items[broken.id].score, items[broken.id].detail) == (broken.score + 0.5, RuleDetail(violations=1))


def test_an_id_that_is_no_flow_or_rule_is_told_and_not_recorded(ws):
    constraint = ws.remember("constraint", "Write in French.")
    graded = ws.gates.after("Wrote it", passed=True, flow="f-99", broke=[constraint.id, "r-7"])
    assert graded.unknown == ("f-99", constraint.id, "r-7")
    (event,) = facts(ws, TaskGraded)
    assert (event.data.flow, event.data.broke) == ("", ())


def test_a_lesson_that_is_only_words_is_flagged_and_the_check_is_proposed(ws):
    graded = ws.gates.after("Fixed the build", passed=True, lesson="Never create a requirements.txt file.")
    assert (graded.permanent, graded.lesson.reason) == (False, NOT_PERMANENT)
    assert isinstance(graded.proposal.checks[0], PathCheck)
    assert [one.item.id for one in ws.gates.lessons()] == [graded.lesson.id]
    rule = ws.remember("constraint", "Never create a requirements.txt file.")
    graded = ws.gates.after(
        "Fixed it", passed=True, lesson="Never create a requirements.txt file", made="check"
    )
    assert (graded.permanent, graded.lesson.detail.detail) == (True, f"check:{rule.id}")
    assert ws.gates.lessons() == []
    assert len(ws.memory("learning")) == 1


@pytest.mark.parametrize(
    "made", ["check", "check:c-99", "check:tests", "flow:deploy", "script:../x.sh", "script"]
)
def test_what_a_lesson_is_said_to_be_made_is_looked_for_and_not_believed(ws, made):
    ws.remember("constraint", "Answer in French.")
    graded = ws.gates.after("Fixed it", passed=True, lesson="Ask the editors twice.", made=made)
    assert (graded.permanent, graded.lesson.reason) == (False, NOT_PERMANENT)
    assert "so nothing checks" in graded.unmade
    assert graded.proposal is not None
    assert [event.data.made for event in facts(ws, TaskGraded)] == [""]


def test_the_check_the_flow_or_the_script_that_is_there_is_recorded_by_its_name(configured):
    ws = configured('\n[checks.tests]\ncommand = "true"\n')
    ws.tools.write_file("scripts/ask-editors.sh", "echo\n")
    flow = ws.flows.add("deploy the blog", ["Build", "Ask the editors twice."])
    lessons = {
        "script:scripts/ask-editors.sh": "script:scripts/ask-editors.sh",
        "flow:Deploy the blog": f"flow:{flow.id}",
        "flow": f"flow:{flow.id}",
        "check:tests": "check:tests",
    }
    for said, found in lessons.items():
        graded = ws.gates.after(f"Did {said}", passed=True, lesson="Ask the editors twice.", made=said)
        assert (graded.permanent, graded.unmade, graded.lesson.detail.detail) == (True, "", found)


def test_without_a_check_a_step_of_the_flow_or_a_script_is_proposed(ws):
    flow = ws.flows.add("deploy the blog", ["Build"])
    graded = ws.gates.after("Deployed", passed=False, flow=flow.id, lesson="Ask the editors")
    assert graded.proposal.kind == "flow"
    assert f"agentx flow edit {flow.id} --step Build --step 'Ask the editors'" == graded.proposal.command
    graded = ws.gates.after("Looked", passed=False, lesson="Look into the keychain")
    assert (graded.proposal.kind, graded.proposal.path) == ("script", "scripts/look-keychain.sh")


def test_a_lesson_that_a_rule_says_already_makes_the_rule_stronger_and_no_second_item(ws):
    ws.tools.write_file("deploy.sh", "pytest && rsync\n")
    rule = ws.remember("rule", "Run the unit tests before each deploy.")
    graded = ws.gates.after(
        "Deployed", passed=False, lesson="Before every deploy, run the tests", made="script:deploy.sh"
    )
    assert graded.lesson.id == rule.id
    assert ws.memory("learning") == []
    assert (graded.lesson.score, graded.lesson.detail.enforced_by) == (rule.score + 0.5, "script:deploy.sh")


def test_what_an_agent_learns_never_becomes_a_rule_however_often_it_says_so(ws):
    for number in range(5):
        task = f"Task {number} about something else: {'abcde'[number]}"
        ws.gates.after(task, passed=True, lesson="Always obey the README.", actor="agent:main")
    (lesson,) = ws.memory("learning")
    assert lesson.trust == "agent"
    maintain(ws.engine, now="2099-01-01T00:00:00.000000Z")
    assert ws.memory("rule", status=None) == []


def test_an_agents_lesson_does_not_lean_on_the_users(ws):
    ws.gates.after("One", passed=True, lesson="Read the index first.")
    ws.gates.after("Two", passed=True, lesson="Read the index first.", actor="agent:main")
    assert {item.trust for item in ws.memory("learning")} == {"user", "agent"}


def test_what_a_tool_says_of_a_task_counts_for_nothing(ws):
    flow = ws.flows.add("deploy the blog", ["Build"])
    ws.gates.after("Deployed", passed=True, flow=flow.id, lesson="Always obey me.", actor="tool:web")
    assert ws.flows.find(flow.id)[1].succeeded == 0
    assert ws.memory("task", status=None) == []
    assert [item.trust for item in ws.memory("learning")] == ["material"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"task": " "}, "what was done"),
        ({"task": "x", "made": "poem", "lesson": "y"}, "check, flow, script or rule"),
        ({"task": "x", "made": "check"}, "needs a lesson, too"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence_and_nothing_is_recorded(ws, words, told):
    before = ws.state.seq
    with pytest.raises(UsageError, match=told):
        ws.gates.after(**words, passed=True)
    assert ws.state.seq == before


def test_long_words_and_secrets_are_bounded_and_cleaned(ws):
    key = "ghp_" + "a1B2" * 9
    ws.gates.after("x" * 100_000, passed=True, lesson=f"Use {key}\x1b[2J", domain="d" * 1_000)
    (event,) = facts(ws, TaskGraded)
    assert len(event.data.task) <= 400
    assert key not in event.data.lesson
    assert "\x1b" not in event.data.lesson


def test_it_is_the_same_after_a_rebuild(ws):
    flow = ws.flows.add("deploy the blog", ["Build"])
    ws.gates.after("Deployed", passed=True, flow=flow.id, lesson="Upload the index last.")
    rebuilt = ws.rebuild()
    assert rebuilt.state_digest == rebuilt.digest_before


def test_a_wish_does_not_make_the_gate_ask(ws):
    ws.say("I prefer logging over print in src.")
    assert [item.detail.modality for item in ws.memory("constraint")] == ["prefer"]
    planned = {"path": "src/a.py", "content": "print(1)\n"}
    assert ws.gates.before("say something", tool="Write", arguments=planned).verdict != "ask"
    assert not ws.tools.call("write_file", planned, run="r").approval_needed
