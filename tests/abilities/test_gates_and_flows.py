"""Procedures with their record, the gates before and after an action, and agents that work on their own."""

import json
import re
import subprocess

import pytest

from agentx import Workspace

STEPS = ("Back up what is there.", "Build with `make build`.", "Hand the pages to QA.")


def listed(agentx, *words):
    return agentx.json("memory", "list", *words)


def added(agentx, text, kind, *words):
    """Add an item by hand; its identifier."""
    (item,) = agentx.json("memory", "add", text, "--kind", kind, *words)
    return item["id"]


def with_steps(agentx, name, *words, steps=STEPS):
    """Add a flow; its identifier."""
    options = [word for step in steps for word in ("--step", step)]
    return agentx.json("flow", "add", name, *options, *words)["item"]["id"]


def in_order(text, parts):
    """Whether the parts stand in the text, one after another."""
    return re.search(".*".join(map(re.escape, parts)), text, re.DOTALL) is not None


@pytest.fixture(scope="module")
def rated(tmp_path_factory):
    """A workspace in which four flows have been used for a while; its directory."""
    root = tmp_path_factory.mktemp("rated") / "task"
    with Workspace.create(root) as ws:
        flows = {
            "deploy to production": (32, 2),
            "water the orchids": (19, 1),
            "tune the piano": (4, 6),
            "wax the floor": (0, 0),
        }
        for name, (passed, failed) in flows.items():
            ws.flows.add(name, list(STEPS))
            for number in range(passed + failed):
                ws.gates.after(f"{name}, number {number}", passed=number < passed, flow=name)
    return root


@pytest.fixture
def used(agentx, rated):
    """The command line in that workspace."""
    return agentx.at(rated)


# --- flows --------------------------------------------------------------------------------------------


def test_a_flow_has_steps_triggers_an_agent_and_an_approval(agentx):
    """A flow has a name, ordered steps, trigger phrases, an agent, and whether it needs approval."""
    made = with_steps(
        agentx, "deploy to production", "--trigger", "publish the site", "--agent", "writer", "--approval"
    )
    item = agentx.json("flow", "show", made)["item"]
    assert (item["text"], item["agent"]) == ("deploy to production", "writer")
    assert tuple(item["detail"]["steps"]) == STEPS
    assert item["detail"]["triggers"] == ["publish the site"]
    assert item["detail"]["needs_approval"]


@pytest.mark.xfail(strict=True, reason="flow add takes no domain")
def test_a_flow_has_a_domain(agentx):
    """A flow has a domain."""
    agentx("flow", "add", "deploy", "--step", "Build.", "--domain", "web", ok=False)
    assert '"web"' in agentx("--json", "flow", "list").out


def test_the_name_of_a_flow_is_unique(agentx):
    """There is one flow of a name."""
    with_steps(agentx, "deploy to production")
    assert agentx("flow", "add", "deploy to production", "--step", "Pray.", ok=False).code != 0
    assert len(agentx.json("flow", "list")) == 1


@pytest.mark.parametrize(
    "task", ["deploy to production", "Please deploy the fix to production.", "publish the site"]
)
def test_a_flow_is_found_by_its_name_or_a_trigger(agentx, task):
    """A flow check before an action gives the procedure that the words call for, step by step."""
    made = with_steps(agentx, "deploy to production", "--trigger", "publish the site")
    found = agentx.json("flow", "check", task)["flow"]["item"]
    assert (found["id"], tuple(found["detail"]["steps"])) == (made, STEPS)


def test_no_flow_is_called_for_by_other_words(agentx):
    """A task that no flow is about gets none."""
    with_steps(agentx, "deploy to production")
    assert agentx.json("flow", "check", "Write a poem about rain.", ok=False)["flow"] is None
    assert "QA" not in agentx("context", "Write a poem about rain.").out


def test_an_agent_gets_the_flow_with_its_message(agentx, script):
    """The flow remembers how: an agent whose task calls for it is shown all steps in order."""
    with_steps(agentx, "deploy to production")
    assert in_order(agentx("context", "Please deploy to production.").out, STEPS)
    model = script({"expect": list(STEPS), "answer": "Done."})
    agentx("run", "Please deploy to production.", "--model", model)


def test_a_flow_can_be_read_from_a_list(agentx):
    """A procedure that is written down as a list becomes a flow."""
    text = "".join(f"{n}. {step}\n" for n, step in enumerate(STEPS, 1))
    agentx("flow", "add", "deploy", "--from", "-", stdin=text)
    assert tuple(agentx.json("flow", "show", "deploy")["item"]["detail"]["steps"]) == STEPS


def test_the_effectiveness_of_a_flow_is_its_share_of_successes(used):
    """32 successes of 34 uses are an effectiveness of 94%, shown with the counts wherever the flow is."""
    flow = used.json("flow", "show", "deploy to production")
    assert (flow["item"]["detail"]["succeeded"], flow["item"]["detail"]["failed"]) == (32, 2)
    assert round(flow["effectiveness"]["mean"], 2) == 0.94
    for text in (
        used("flow", "check", "deploy to production").out,
        used("gate", "pre", "deploy to production", ok=False).out,
        used("context", "deploy to production").out,
    ):
        assert "94%" in text
        assert "32 of 34" in text


@pytest.mark.parametrize(
    ("flow", "standing"),
    [("water the orchids", "proven"), ("tune the piano", "broken"), ("wax the floor", "unused")],
)
def test_a_flow_is_rated_by_its_record(used, flow, standing):
    """A flow at 95% is proven, one at 40% is broken, and one that nobody used is unused."""
    assert {one["item"]["text"]: one["standing"] for one in used.json("flow", "list")}[flow] == standing


def test_a_flow_to_rewrite_is_reported(used):
    """Maintenance says that a flow at 40% is to be rewritten, and says nothing of a proven one."""
    flows = {one["item"]["text"]: one["item"]["id"] for one in used.json("flow", "list")}
    out = used("memory", "maintain", "--dry-run").out
    assert f"{flows['tune the piano']}:" in out
    assert f"{flows['water the orchids']}:" not in out


def test_a_flow_to_retire_is_reported(agentx):
    """After a month maintenance says that a flow is to be retired, for nobody used it."""
    made = with_steps(agentx, "wax the floor")
    assert made not in agentx("memory", "maintain").out
    later = agentx.later(days=40)
    later("say", "Good morning.")
    assert made in later("memory", "maintain").out


def test_a_rewritten_flow_begins_a_record_of_its_own(agentx):
    """Other steps are another version, with its own record; a retired flow is not called for any more."""
    made = with_steps(agentx, "tune the piano")
    agentx("gate", "post", "Tuned it", "--fail", "--flow", made)
    agentx("flow", "edit", made, "--step", "Begin with A.", "--step", "Tune by fifths.")
    with Workspace.open(agentx.cwd) as ws:
        for number in range(5):
            ws.gates.after(f"Tuned piano {number}", passed=True, flow=made)
    shown = agentx.json("flow", "show", made)
    assert shown["item"]["detail"]["version"] == 2
    assert (shown["effectiveness"]["tries"], shown["effectiveness"]["mean"]) == (5, 1.0)
    agentx("flow", "retire", made)
    assert agentx.json("flow", "check", "tune the piano", ok=False)["flow"] is None


def test_a_run_counts_for_the_flow_that_it_followed(agentx, script):
    """The agent does not grade itself: a run that did the steps is one more success of the flow."""
    steps = ("Write the file `notes.md`.", "Write the file `index.md`.")
    made = with_steps(agentx, "publish the notes", steps=steps)
    calls = [
        {"tool_calls": [{"name": "write_file", "arguments": {"path": name, "content": f"# {name}\n"}}]}
        for name in ("notes.md", "index.md")
    ]
    agentx("run", "Please publish the notes.", "--model", script(*calls, {"answer": "Done."}))
    assert agentx.json("flow", "show", made)["item"]["detail"].get("succeeded") == 1


# --- the gate before an action ------------------------------------------------------------------------


@pytest.fixture
def blog(agentx):
    """A workspace with something of each sort that concerns the deployment of a blog."""
    made = {
        "flow": with_steps(agentx, "deploy the blog"),
        "rejections": added(agentx, "Blue-green deployments", "rejection"),
        "state": added(agentx, "The first deploy of the blog was approved.", "decision"),
        "critical": added(agentx, "Verify the file, not the report.", "rule", "--score", "10"),
    }
    agentx("agent", "capability", "add", "blog server", "--command", "echo up")
    agentx("agent", "capability", "add", "hugo", "--command", "echo no; exit 1")
    return agentx, made


def test_one_call_gives_all_that_concerns_an_action(blog):
    """Before an action one call gives flow, rejections, active state, critical rules and capabilities."""
    agentx, made = blog
    gate = agentx.json("gate", "pre", "deploy the blog with hugo", ok=False)
    lines = {section["name"]: {line["id"]: line for line in section["lines"]} for section in gate["sections"]}
    for section, item in made.items():
        assert item in lines[section]
    assert in_order(gate["text"], STEPS)
    capabilities = {line["text"]: line["good"] for line in lines["capabilities"].values()}
    assert capabilities == {"blog server": True, "hugo": False}


@pytest.mark.xfail(strict=True, reason="active state comes last, behind capabilities and lessons")
def test_the_gate_shows_its_parts_in_their_order(blog):
    """The gate's text has flow, rejections, active state, critical rules and capabilities in this order."""
    agentx, _ = blog
    text = agentx.json("gate", "pre", "deploy the blog with hugo", ok=False)["text"]
    parts = (STEPS[0], "Blue-green", "was approved", "Verify the file", "blog server")
    assert in_order(text, parts)


def test_the_gate_costs_at_most_three_thousand_tokens(tmp_path):
    """However much concerns an action, the gate gives at most 3,000 tokens and counts what it left out."""
    shelves = ", ".join(f"at shelf {number} of the store" for number in range(12))
    with Workspace.create(tmp_path / "task") as ws:
        ws.flows.add("deploy the blog", [f"Look at page {number}, {shelves}." for number in range(14)])
        for number in range(15):
            for kind in ("rule", "rejection", "decision"):
                ws.remember(kind, f"To deploy the blog with {kind} {number}, look {shelves}.")
        verdict = ws.gates.before("deploy the blog")
    assert len(verdict.text) < 3_000 * 6
    assert verdict.tokens <= 3_000
    assert verdict.omitted > 0


@pytest.mark.parametrize(
    ("action", "verdict", "code"),
    [
        ("switch to blue-green deployments", "deny", 4),
        ("deploy the blog", "ask", 3),
        ("water the orchids", "allow_with_context", 0),
        ("translate the poem", "allow", 0),
    ],
)
def test_the_gate_has_four_verdicts(agentx, action, verdict, code):
    """The gate denies, asks, allows with context or allows, and says so by its exit status, too."""
    added(agentx, "Blue-green deployments", "rejection")
    with_steps(agentx, "deploy the blog", "--approval")
    with_steps(agentx, "water the orchids")
    done = agentx("--json", "gate", "pre", action, ok=False)
    assert (done.json["verdict"], done.code) == (verdict, code)


@pytest.mark.xfail(strict=True, reason="a text about a rejected idea is denied as if it were the idea")
def test_the_gate_denies_no_text_about_a_rejected_idea(agentx):
    """To write about a rejected idea is not to do it."""
    added(agentx, "Blue-green deployments", "rejection")
    assert agentx("gate", "pre", "write about blue-green deployments", ok=False).code != 4


def test_critical_rules_are_shown_whatever_the_action_is(agentx):
    """A critical rule is shown before each action that something else touches, too."""
    rule = added(agentx, "Verify the file, not the report.", "rule", "--score", "9")
    with_steps(agentx, "water the orchids")
    assert rule in agentx.json("gate", "pre", "water the orchids")["items"]


def test_the_gate_fires_before_each_action_of_an_agent(agentx, script):
    """The agent does not choose to check: each call passes the gate, and one that breaks a rule is denied."""
    added(agentx, "Never create a requirements.txt file.", "constraint")
    write = {"name": "write_file", "arguments": {"path": "requirements.txt", "content": "flask\n"}}
    agentx("run", "Add flask.", "--model", script({"tool_calls": [write]}, {"answer": "I could not."}))
    (call,) = agentx.events("ToolCallExecuted")
    assert call["data"]["status"] == "DENIED"
    assert not (agentx.cwd / "artifacts/requirements.txt").exists()


def test_a_flow_that_needs_approval_stops_the_first_change(agentx, script):
    """A flow that needs approval waits for the user before anything is changed, and goes on afterwards."""
    with_steps(agentx, "deploy the blog", "--approval")
    write = {"tool_calls": [{"name": "write_file", "arguments": {"path": "a.md", "content": "A.\n"}}]}
    model = script(write, {"answer": "Done."})
    agentx("run", "Please deploy the blog.", "--model", model, ok=False)
    assert not (agentx.cwd / "artifacts/a.md").exists()
    waiting = agentx.json("status")["waiting"]
    call = (waiting[0] if isinstance(waiting, list) else waiting)["call_id"]
    agentx("approve", call)
    agentx("run", "--model", model)
    assert (agentx.cwd / "artifacts/a.md").read_text() == "A.\n"


def test_the_gate_shows_what_exists_already(agentx):
    """The check of existing tools: scripts and credentials whose names fit are shown, never a credential's value."""
    agentx("tool", "write_file", "path=scripts/deploy-blog.sh", "content=-", stdin="#!/bin/sh\necho deploy\n")
    agentx.environ["BLOG_TOKEN"] = "tok-5f2c9a7e41d8"
    out = agentx("--json", "gate", "pre", "deploy the blog", ok=False).out
    assert "deploy-blog.sh" in out
    assert "BLOG_TOKEN" in out
    assert "tok-5f2c9a7e41d8" not in out


@pytest.mark.parametrize(("agent", "found"), [("writer", True), ("cook", False)])
def test_the_gate_knows_whose_action_it_is(agentx, agent, found):
    """What belongs to one agent is shown before this agent's actions alone."""
    agentx("agent", "capability", "add", "newsletter", "--command", "echo ready", "--agent", "writer")
    out = agentx("gate", "pre", "send the newsletter", "--agent", agent).out
    assert ("works" in out) == found


# --- the gate after an action -------------------------------------------------------------------------


def test_a_task_passes_or_fails(agentx):
    """Gate one: a grade is pass or fail, and nothing else."""
    assert agentx("gate", "post", "Wrote it", ok=False).code == 2
    assert agentx.json("gate", "post", "Wrote it", "--pass")["passed"] is True
    assert agentx.json("gate", "post", "Sent it", "--fail")["passed"] is False
    assert [event["data"].get("passed", False) for event in agentx.events("TaskGraded")] == [True, False]


def test_a_grade_counts_for_its_flow(agentx):
    """Gate two: a grade updates the counts of the flow."""
    made = with_steps(agentx, "deploy the blog")
    for grade in ("--pass", "--pass", "--fail"):
        agentx("gate", "post", "Deployed it", grade, "--flow", made)
    detail = agentx.json("flow", "show", made)["item"]["detail"]
    assert (detail["succeeded"], detail["failed"]) == (2, 1)


def test_similar_tasks_are_one_entry(agentx):
    """Gate three: a task that is graded again is one consolidated entry, not two."""
    first = agentx.json("gate", "post", "Deployed the blog", "--fail")
    assert [item["id"] for item in listed(agentx, "--kind", "task")] == [first["task"]["id"]]
    again = agentx.json("gate", "post", "Deployed the blog", "--pass")
    assert again["task"]["id"] == first["task"]["id"]
    assert len(listed(agentx, "--kind", "task", "--all")) == 1
    assert listed(agentx, "--kind", "task") == []


@pytest.mark.parametrize(
    ("made", "permanent"),
    [
        ("rule", False),
        (None, False),
        ("script:scripts/tag.sh", True),
        ("flow:release", True),
        ("check:tests", True),
        ("script:scripts/missing.sh", False),
    ],
)
def test_a_lesson_is_permanent_once_something_enforces_it(agentx, made, permanent):
    """Gate four: a lesson is permanent if a script, flow or check was made; a rule alone is not enough."""
    agentx("tool", "write_file", "path=scripts/tag.sh", "content=echo tag")
    agentx("config", "set", "checks.tests.command", "true")
    with_steps(agentx, "release")
    words = ["--made", made.replace("release", listed(agentx, "--kind", "flow")[0]["id"])] if made else []
    done = agentx.json("gate", "post", "Released", "--pass", "--lesson", "Tag each release.", *words)
    assert done["permanent"] is permanent
    assert (done["proposal"] is not None) != permanent
    waiting = agentx.json("gate", "lessons")["lessons"]
    assert (done["lesson"]["id"] in [lesson["item"]["id"] for lesson in waiting]) != permanent


def test_a_grade_reinforces_the_rules_that_it_names(agentx):
    """A rule that a task kept gains score; one that it broke gains score and a violation."""
    kept, broken = (
        added(agentx, "Read before you delete.", "rule"),
        added(agentx, "Tag each release.", "rule"),
    )
    agentx("gate", "post", "Released", "--fail", "--kept", kept, "--broke", broken)
    rules = {item["id"]: item for item in listed(agentx, "--kind", "rule")}
    assert 5.0 < rules[kept]["score"] < rules[broken]["score"] <= 6.0
    assert rules[broken]["detail"]["violations"] == 1
    assert not rules[kept]["detail"].get("violations")


def test_the_engine_grades_each_run(agentx, script):
    """No agent need call the gate: each run is graded at its end."""
    agentx("run", "Write a poem.", "--model", script({"answer": "Roses are red."}))
    agentx("run", "Write more.", "--model", script({"expect": ["not there"], "answer": "."}), ok=False)
    assert [event["data"].get("passed", False) for event in agentx.events("TaskGraded")] == [True, False]


def test_a_run_whose_check_fails_has_not_passed(agentx, script):
    """Trust the file, not the report: an agent that says "done" while its check fails has not passed."""
    agentx("config", "set", "checks.tests.command", "false")
    turns = ({"tool_calls": [{"name": "run_tests", "arguments": {}}]}, {"answer": "All tests pass."})
    agentx("run", "Fix the tests.", "--model", script(*turns), ok=False)
    assert not agentx.events("TaskGraded")[-1]["data"].get("passed", False)


# --- capabilities, boot, missions, dispatch -----------------------------------------------------------


def test_a_capability_is_checked_by_its_command(agentx):
    """A capability is a tool with the command that checks it; the last result says whether it works."""
    agentx("agent", "capability", "add", "hugo", "--command", "echo v4")
    agentx("agent", "capability", "add", "scanner", "--command", "echo broken; exit 1")
    found = {item["text"]: item["detail"] for item in listed(agentx, "--kind", "capability")}
    assert (found["hugo"]["works"], found["hugo"]["said"]) == (True, "v4")
    assert not found["scanner"].get("works", False)
    assert agentx("agent", "capability", "check", ok=False).code == 1


def test_a_start_gives_all_agents_the_same(blog):
    """One boot for all agents: mission, rules, rejections, flows, capabilities and lessons, in at most 2,000 tokens."""
    agentx, made = blog
    added(agentx, "The blog needs Node 20.", "knowledge")
    agentx("gate", "post", "Built it", "--pass", "--lesson", "Clear the cache before a build.")
    agentx("agent", "mission", "set", "Readers find what they look for.")
    boots = [agentx.json("agent", "boot", *words) for words in ((), ("--agent", "writer"))]
    assert boots[0]["text"] == boots[1]["text"]
    assert boots[0]["tokens"] <= 2_000
    ids = [item["id"] for item in boots[0]["items"]]
    assert set(made.values()) <= set(ids)
    for text in ("Readers find", "blog server", "hugo", "Clear the cache"):
        assert text in boots[0]["text"]


def test_a_mission_comes_first_and_stays(agentx):
    """A north star comes first at each start, and no night ends it."""
    agentx("agent", "mission", "set", "Readers find what they look for.")
    added(agentx, "Verify the file, not the report.", "rule", "--score", "10")
    first = agentx.json("agent", "boot")["items"][0]
    assert (first["kind"], "Readers find" in first["text"]) == ("north_star", True)
    agentx.later(days=400)("memory", "maintain")
    assert "Readers find" in agentx("agent", "boot").out


@pytest.fixture
def crew(agentx):
    """A workspace with a shared mission and those of a writer and a cook."""
    agentx("agent", "mission", "set", "Readers find what they look for.")
    agentx("agent", "mission", "set", "Posts rank first.", "--agent", "writer")
    agentx("agent", "mission", "set", "Soup is hot.", "--agent", "cook")
    return agentx


def test_a_role_starts_with_its_own_mission(crew):
    """Each agent has its own directive: a role starts with the shared mission and its own."""
    text = crew("agent", "boot", "--agent", "writer").out
    assert "Readers find" in text
    assert "Posts rank first." in text
    assert "Soup is hot." not in text


@pytest.mark.xfail(strict=True, reason="in the context of a run each role sees the missions of all roles")
def test_a_role_works_with_its_own_mission(crew, script):
    """A run of a role sees the shared mission and its own, not those of other roles."""
    crew("run", "Write a post.", "--agent", "writer", "--model", script({"answer": "Done."}))
    shown = crew.events("ContextProvided")[0]["data"]["items"]
    missions = {item["text"]: item["id"] for item in listed(crew, "--kind", "north_star")}
    assert missions["Readers find what they look for."] in shown
    assert missions["Posts rank first."] in shown
    assert missions["Soup is hot."] not in shown


def test_a_new_mission_takes_the_place_of_the_former(crew):
    """A role has one mission: setting it again replaces it."""
    crew("agent", "mission", "set", "Posts are short.", "--agent", "writer")
    missions = [item["text"] for item in crew.json("agent", "mission", "list")["missions"]]
    assert sorted(missions) == ["Posts are short.", "Readers find what they look for.", "Soup is hot."]


@pytest.mark.parametrize("works", [True, False])
def test_dispatch_goes_from_task_to_flow_capability_and_agent(agentx, works):
    """Dispatch finds the flow of a task, the capability that it needs and the agent that has it; it starts nothing."""
    with_steps(agentx, "post the release notes", steps=("Read the changelog.", "Publish in the newsletter."))
    command = "echo ready" if works else "exit 1"
    agentx("agent", "capability", "add", "Newsletter", "--command", command, "--agent", "writer")
    found = agentx.json("agent", "dispatch", "please post the release notes", ok=False)
    assert found["flow"]["item"]["text"] == "post the release notes"
    assert found["agent"] == "writer"
    assert [need["item"]["text"] for need in found["needs"]] == ["Newsletter"]
    assert found["ready"] is works
    assert agentx.events("RunStarted") == []


# --- heartbeat ----------------------------------------------------------------------------------------


def test_an_idle_heartbeat_costs_nothing(agentx):
    """A heartbeat with nothing unfinished is HEARTBEAT_OK, without a model and without an event."""
    before = agentx.events()
    assert agentx.json("schedule", "heartbeat")["status"] == "HEARTBEAT_OK"
    assert agentx.events() == before


def test_a_heartbeat_goes_on_in_the_same_conversation(agentx, script):
    """A heartbeat resumes an interrupted run in its own conversation, with what was done and what holds now."""
    write = {"name": "write_file", "arguments": {"path": "tea.md", "content": "Tea.\n"}}
    cut_off = script({"tool_calls": [write]}, {"expect": ["never shown"], "answer": "."})
    agentx("run", "Write the note about tea.", "--model", cut_off, ok=False)
    added(agentx, "Never create a requirements.txt file.", "constraint")
    expected = ["Write the note about tea.", "tea.md", "requirements.txt"]
    turns = ({}, {"expect": expected, "answer": "The note is there."})
    rest = script(*[turn or {"answer": "unused"} for turn in turns], name="rest.jsonl")
    beat = agentx.json("schedule", "heartbeat", "--model", rest)
    assert (beat["status"], beat["result"]["status"]) == ("CONTINUED", "COMPLETED")
    assert beat["run"] == agentx.events("RunStarted")[0]["run"]
    assert agentx.json("schedule", "heartbeat")["status"] == "HEARTBEAT_OK"


@pytest.mark.parametrize("status", ["WAITING", "STOPPED"])
def test_a_heartbeat_leaves_to_the_user_what_is_the_users(agentx, script, status):
    """A heartbeat does not go on with a run that waits for approval or has used up its limits."""
    write = {"tool_calls": [{"name": "write_file", "arguments": {"path": "a.md", "content": "A.\n"}}]}
    words = ["--max-steps", "1"] if status == "STOPPED" else []
    if status == "WAITING":
        agentx("config", "set", "tools.approve", '["write_file"]')
    agentx("run", "Write a.", "--model", script(write), *words, ok=False)
    done = agentx("--json", "schedule", "heartbeat", ok=False)
    assert (done.json["status"], done.code) == (status, 1)


def test_a_heartbeat_beats_by_the_clock(agentx):
    """A heartbeat is due every five minutes by a schedule."""
    agentx("schedule", "add", "*/5 * * * *", "--heartbeat", "--id", "pulse")
    due = [one["due"] for one in agentx.json("schedule", "next", "--most", "3")]
    assert len(due) == 3
    assert all(int(at[14:16]) % 5 == 0 for at in due)
    assert agentx.later(minutes=6)("schedule", "run-due").code == 0
    assert agentx.events("RunStarted") == []


# --- audit, links, backtest ---------------------------------------------------------------------------


def test_the_audit_says_what_happened_and_what_to_do(agentx, script):
    """The morning audit: what ran, failed, was learned, is open and waits, its cost, and what to do with the command."""
    agentx("run", "Write a poem.", "--model", script({"expect": ["not there"], "answer": "."}), ok=False)
    agentx("config", "set", "checks.tests.command", "false")
    agentx("tool", "run_tests", ok=False)
    agentx("gate", "post", "Publish the menu", "--fail")
    agentx("say", "Lesson learned: run the migration on a copy first.")
    (found,) = agentx.json("schedule", "audit")["workspaces"]
    assert found["ran"][0]["ended"] == {"FAILED": 1}
    assert found["failed"]
    assert "Publish the menu" in [task["task"] for task in found["failed_tasks"]]
    assert "run the migration on a copy first" in json.dumps(found["learned"])
    assert found["open"]
    assert found["costs"][0]["component"] == "agent main"
    assert "agentx run" in [todo["command"] for todo in found["todo"]]


def test_the_audit_is_delivered(agentx):
    """The audit is delivered to a command, over several workspaces."""
    agentx.at(agentx.cwd.parent)("init", "other", "--title", "Other things")
    agentx("config", "set", "report.command", f"cat > {agentx.cwd.parent}/audit.txt")
    agentx("schedule", "audit", agentx.cwd, agentx.cwd.parent / "other", "--deliver")
    text = (agentx.cwd.parent / "audit.txt").read_text("utf-8")
    assert "Other things" in text
    assert "A task" in text


@pytest.fixture
def reader(agentx):
    """A workspace that reads the reports of another one; the reader and the other."""
    agentx.at(agentx.cwd.parent)("init", "intel")
    intel = agentx.at(agentx.cwd.parent / "intel")
    intel("tool", "write_file", "path=reports/weekly.md", "content=# Weekly\n\nSales rose.\n")
    intel("tool", "write_file", "path=secret.md", "content=Not for others.\n")
    with (agentx.cwd / "agentx.toml").open("a", encoding="utf-8") as file:
        file.write(
            '\n[[links]]\nname = "intel"\npath = "../intel"\npaths = ["reports/**"]\nmax_age_hours = 24\n'
        )
    agentx("trust", "--yes")
    return agentx, intel


def test_an_agent_reads_another_agents_reports_in_place(reader):
    """A data bridge: one agent writes a report in its workspace, another one reads it there, without a message."""
    agentx, intel = reader
    assert "Sales rose." in agentx("tool", "read_file", "path=intel:reports/weekly.md").out
    intel("tool", "write_file", "path=reports/weekly.md", "content=# Weekly\n\nSales fell.\n")
    assert "Sales fell." in agentx("tool", "read_file", "path=intel:reports/weekly.md").out


def test_a_bridge_is_read_only_and_narrow(reader):
    """Through a bridge nothing is written, and only what it shares is read."""
    agentx, intel = reader
    assert agentx("tool", "read_file", "path=intel:secret.md", ok=False).code != 0
    assert agentx("tool", "write_file", "path=intel:reports/x.md", "content=x", ok=False).code != 0
    assert not (intel.cwd / "artifacts/reports/x.md").exists()


def test_an_old_report_is_marked_as_stale(reader):
    """What another agent wrote more than a day ago is marked as stale."""
    agentx, _ = reader
    fresh = agentx("tool", "read_file", "path=intel:reports/weekly.md").out
    old = agentx.later(days=3)("tool", "read_file", "path=intel:reports/weekly.md").out
    assert "Sales rose." in old
    assert "stale" in old.lower()
    assert "stale" not in fresh.lower()


@pytest.fixture(scope="module")
def replayed(tmp_path_factory):
    """A workspace with two runs that went the same way and a third that went another; its directory."""
    from agentx.storage.events.types import Draft, RunEnded, RunStarted, ToolCallExecuted

    root = tmp_path_factory.mktemp("replayed") / "task"
    with Workspace.create(root) as ws:
        for number in (1, 2):
            calls = (
                ("python -m pytest -q", 0),
                (f"git tag v1.{number}", 0),
                ("git push --tags", 1),
                ("git pull --rebase", 0),
                ("git push --tags", 0),
            )
            done = [
                ToolCallExecuted(
                    call_id=f"{number}-{place}",
                    tool="run_command",
                    status="FAILED" if code else "SUCCEEDED",
                    command=command,
                    exit_code=code,
                )
                for place, (command, code) in enumerate(calls)
            ]
            started = RunStarted(task=ws.body(f"Cut release 1.{number}"), agent="main", model="m")
            events = (started, *done, RunEnded(status="COMPLETED"))
            ws.record(*(Draft(data=data, actor="agent:main", run=f"r-{number}") for data in events))
    return root


@pytest.fixture
def history(agentx, replayed, tmp_path):
    """The command line in a copy of that workspace."""
    subprocess.run(["cp", "-a", str(replayed), str(tmp_path / "copy")], check=True)
    return agentx.at(tmp_path / "copy")


def test_a_backtest_extracts_a_flow_from_past_runs(history):
    """Replaying past runs gives a flow of what they did alike; it waits for the user, and then is called for."""
    (flow,) = history.json("flow", "backtest")["flows"]
    assert (flow["text"], flow["status"]) == ("cut release", "candidate")
    assert in_order(" ".join(flow["detail"]["steps"]), ("pytest", "git tag", "git push --tags"))
    assert history.json("flow", "check", "cut release 1.3", ok=False)["flow"] is None
    history("memory", "review", "--accept", flow["id"])
    assert history.json("flow", "check", "cut release 1.3")["flow"]["item"]["id"] == flow["id"]


def test_a_backtest_repeats_no_step(history):
    """A flow from past runs has no two steps of the same words."""
    (flow,) = history.json("flow", "backtest", "--dry-run")["flows"]
    assert len(set(flow["detail"]["steps"])) == len(flow["detail"]["steps"])


def test_a_backtest_extracts_lessons_from_what_failed_first(history):
    """Replaying past runs gives lessons: what failed, and worked after something else."""
    lessons = json.dumps(history.json("flow", "backtest")["lessons"])
    assert "git push --tags" in lessons
    assert "git pull --rebase" in lessons


def test_a_backtest_proposes_nothing_that_is_known(history):
    """What a backtest proposed once, or the user refused, is not proposed again."""
    (flow,) = history.json("flow", "backtest")["flows"]
    history("memory", "review", "--reject", flow["id"])
    again = history.json("flow", "backtest")
    assert (again["flows"], again["lessons"]) == ([], [])
