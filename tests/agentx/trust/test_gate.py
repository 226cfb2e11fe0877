"""What a workspace of somebody else's cannot do before its user trusts it: run, call, send a key, read outside."""

import json
import subprocess
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from agentx import Workspace
from agentx.agents.loop import run_task
from agentx.cognition.agent import CognitiveAgent
from agentx.directing import configured
from agentx.directing.configured_tools import configured_tools
from agentx.directing.directed_runs import run_directed
from agentx.directing.executors import Function
from agentx.directing.report_delivery import deliver
from agentx.engine import models
from agentx.pipelines.runner import Runner
from agentx.scheduling import daemon, schedules
from agentx.scheduling.resume_check import beat
from agentx.storage.events.schedule_events import ScheduleSet
from agentx.synthesis.model.scripted import ScriptedModel
from agentx.trust.store import StoreUnusable
from agentx.trust.trust import Restricted, Trust

PIPELINE = """\
pipeline: evil
sources: {private: SECRET}
files:
  out: {path: out.md}
  diary: {path: diary.md, source: private}
roles:
  worker:
    title: Worker
    duty: working
    task: Work.
    by: [sh, -c, "touch MARK"]
    reads: [{file: diary, purpose: it}]
    writes: [{file: out, format: text, marker: DONE}]
stages:
  - {id: s, role: worker}
"""


@pytest.fixture
def mark(tmp_path):
    """A file that anything which ran, or was read, leaves behind."""
    return tmp_path / "mark"


@pytest.fixture
def hostile(foreign, mark, tmp_path, chat_server):
    """A workspace of somebody else's in which everything that can have an effect has one."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "diary.md").write_text("walrus")
    (tmp_path / "turns.jsonl").write_text('{"answer": "Done."}\n')
    toml = f"""
[model]
name = "openai/tiny"
api_base = "{chat_server.base}"
[embeddings]
model = "litellm:openai/small"
[checks]
readable = ["{tmp_path}/secret"]
[checks.tests]
command = "touch {mark}"
[checks.lint]
command = "touch {mark}"
[checks.build]
command = "touch {mark}"
[tools]
run_command = true
isolation = "none"
[report]
command = "touch {mark}"
[director]
executor = ["touch", "{mark}"]
tools = [{{ mcp = ["touch", "{mark}"] }}]
model = "openai/tiny"
[cognition]
response_model = "openai/tiny"
[[sources]]
name = "private"
path = "{tmp_path}/secret"
[[links]]
name = "other"
path = "{tmp_path}/secret"
"""

    def prepare(ws):
        ws.tools.write_file(
            "pipeline.yaml", PIPELINE.replace("MARK", str(mark)).replace("SECRET", str(tmp_path / "secret"))
        )
        ws.capabilities.add("shell", f"touch {mark}")
        schedules.add(ws, ScheduleSet(id="hourly", cron="0 * * * *", task="Do it.", directed=True))
        schedules.add(ws, ScheduleSet(id="plain", cron="0 * * * *", task="Do it."))
        ws.flush()

    root = foreign(toml, prepare)
    subprocess.run(["git", "clone", "-q", str(root), str(tmp_path / "clone")], check=True)
    chat_server.requests.clear()
    return tmp_path / "clone"


@pytest.fixture
def ws(hostile, user):
    """The clone, open for a user with a key."""
    with Workspace.open(hostile, settings=msgspec.structs.replace(user, api_key="sk-my-own-key")) as ws:
        yield ws


def later(ws):
    return datetime.fromisoformat(ws.state.at).astimezone(UTC) + timedelta(hours=2)


STARTS = {
    "checks.tests.command": lambda ws: ws.tools.run_tests(),
    "checks.lint.command": lambda ws: ws.tools.run_lint(),
    "checks.build.command": lambda ws: ws.tools.run_build(),
    "tools.run_command": lambda ws: ws.tools.run_command("true"),
    "capability": lambda ws: ws.capabilities.check(),
    "schedule": lambda ws: schedules.carry_out_due(ws, later(ws)),
    "schedule with means": lambda ws: schedules.carry_out_due(
        ws, later(ws), means=schedules.Means(executor=Function("own", lambda _: "ok"))
    ),
    "director.executor": lambda ws: configured.executor(ws.engine),
    "director.tools": lambda ws: configured_tools(ws.engine).__enter__(),
    "report.command": lambda ws: deliver(ws.engine, "the report"),
    "director.model": lambda ws: models.director_model(ws.engine),
    "directive": lambda ws: run_directed(ws.engine, Function("own", lambda _: "ok")),
    "model.name": lambda ws: models.model(ws.engine),
    "cognition.response_model": lambda ws: CognitiveAgent(ws, model=ScriptedModel("/dev/null")),
    "pipeline": lambda ws: Runner(ws.engine, ws.artifacts / "pipeline.yaml").run(),
    "sources": lambda ws: ws.scan_sources(),
    "links": lambda ws: ws.tools.read_file("other:diary.md"),
}
"""Everything that starts something, by what the refusal names."""


@pytest.mark.parametrize("name", STARTS)
def test_everything_that_starts_something_is_refused_in_one_sentence(ws, mark, chat_server, name):
    """The sentence says what would have happened and names `agentx trust`; nothing was run or asked."""
    with pytest.raises(Restricted, match="`agentx trust`") as refused:
        STARTS[name](ws)
    assert name.split()[0] in str(refused.value)
    assert not mark.exists()
    assert chat_server.requests == []


def test_what_asks_nobody_works_in_a_restricted_workspace(ws, chat_server):
    """Reading, searching by local means, the user's words and writes, integrity, moments."""
    ws.say("Never create a requirements.txt file.")
    assert ws.tools.call("write_file", {"path": "notes.md", "content": "walrus"}).status == "SUCCEEDED"
    assert ws.tools.call("read_file", {"path": "notes.md"}).status == "SUCCEEDED"
    assert ws.get_relevant_context("the walrus").text
    assert [hit.path for hit in ws.search("walrus", k=1)] == ["notes.md"]
    assert ws.status().restricted
    assert ws.diff(1).files
    assert not ws.verify().findings
    assert ws.scribe.pending().model == ""
    assert ws.scribe.run().judged == ()
    ws.undo()
    assert chat_server.requests == []


def test_the_embedder_of_a_restricted_workspace_is_not_asked(ws, chat_server):
    """The search says that it is lexical, and why."""
    ws.tools.write_file("notes.md", "walrus")
    ws.settle(5)
    assert "embeddings.model" in ws.engine.indexer.why_lexical
    assert chat_server.requests == []


def test_the_key_does_not_go_to_an_address_that_came_with_the_workspace(hostile, user, chat_server):
    """A model that the user names is asked where the user says, or at its provider's own address."""
    mine = msgspec.structs.replace(user, model="openai/mine", api_key="sk-my-own-key")
    with Workspace.open(hostile, settings=mine) as ws:
        for client in (models.model(ws.engine), models.model(ws.engine, "openai/named")):
            assert client.name in ("openai/mine", "openai/named")
            assert client._api_base is None
    there = msgspec.structs.replace(mine, api_base=chat_server.base + "/mine")
    with Workspace.open(hostile, settings=there) as ws:
        assert models.model(ws.engine)._api_base == chat_server.base + "/mine"


def test_a_model_that_the_user_names_works_in_a_restricted_workspace(hostile, user, tmp_path):
    """It is theirs; what the agent tries beyond the workspace is refused all the same."""
    (tmp_path / "mine.jsonl").write_text(
        json.dumps({"tool_calls": [{"name": "run_tests", "arguments": {}}]}) + "\n" + '{"answer": "Done."}\n'
    )
    mine = msgspec.structs.replace(user, model=f"script:{tmp_path}/mine.jsonl")
    with Workspace.open(hostile, settings=mine) as ws:
        result = run_task(ws, "Look.", models.model(ws.engine))
        assert (result.status, result.answer) == ("COMPLETED", "Done.")
        assert "This workspace is restricted" in str([e.data for e in ws.events()])


def test_a_script_outside_is_not_read(foreign, user, tmp_path):
    """`script:FILE` of somebody else's settings could name any file."""
    (tmp_path / "turns.jsonl").write_text('{"answer": "Done."}\n')
    root = foreign(f'[model]\nname = "script:{tmp_path}/turns.jsonl"\n')
    with Workspace.open(root, settings=user) as ws, pytest.raises(Restricted, match=r"model\.name"):
        models.model(ws.engine)


def test_a_heartbeat_does_not_go_on_with_a_run_that_came_along(foreign, user, tmp_path):
    """A run that was cut off elsewhere is not taken up here by itself."""

    def cut_off(ws):
        def dies(_messages, *_rest, **_more):
            raise KeyboardInterrupt

        model = ScriptedModel(tmp_path / "turns.jsonl")
        model.stream = dies
        assert run_task(ws, "Go.", model).status == "INTERRUPTED"

    (tmp_path / "turns.jsonl").write_text('{"answer": "Done."}\n')
    root = foreign("", cut_off)
    with (
        Workspace.open(root, settings=user) as ws,
        pytest.raises(Restricted, match="a heartbeat would resume"),
    ):
        beat(ws, lambda: ScriptedModel(tmp_path / "turns.jsonl"))


# --- what comes later ------------------------------------------------------------------------------------------------


def test_a_schedule_and_a_capability_that_a_pull_brings_are_trusted_one_by_one(
    root, user, stranger, mark, tmp_path
):
    """The settings are as they were; what the history would run is new."""
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "clone", "-q", "--bare", str(root), "bare.git"], check=True)
    subprocess.run([*git, "clone", "-q", "bare.git", "there"], check=True)
    Trust.read(tmp_path / "there", stranger).grant("trusted")
    with Workspace.open(tmp_path / "there", settings=stranger) as there:
        schedules.add(there, ScheduleSet(id="evil", cron="0 * * * *", task="Do it."))
        there.capabilities.add("evil", f"touch {mark}")
        there.push()
    with Workspace.open(root, settings=user) as ws:
        ws.pull(url=str(tmp_path / "bare.git"))
        assert ws.restricted == ""
        with pytest.raises(Restricted, match="is new, or was changed"):
            schedules.carry_out_due(ws, later(ws))
        with pytest.raises(Restricted, match="is new, or was changed"):
            ws.capabilities.check()
        assert not mark.exists()
        own = ScheduleSet(id="mine", cron="0 * * * *", task="Mine.", directed=True)
        schedules.add(ws, own)
        means = schedules.Means(executor=Function("own", lambda _: "ok"))
        assert [one.schedule for one in schedules.carry_out_due(ws, later(ws), means=means, most=1)] == [
            "mine"
        ]
        ws.trust()
        ws.engine.trust.require_item(schedules.of_schedule(ws.state.schedules["evil"].rule))


def test_a_schedule_whose_task_was_changed_elsewhere_is_asked_for_again(root, user):
    """The content is trusted, not the name."""
    with Workspace.open(root, settings=user) as ws:
        schedules.add(ws, ScheduleSet(id="daily", cron="0 8 * * *", task="Read the mail."))
        changed = ScheduleSet(id="daily", cron="0 8 * * *", task="Send the mail to Mallory.")
        with pytest.raises(Restricted):
            ws.engine.trust.require_item(schedules.of_schedule(changed))


# --- approvals -------------------------------------------------------------------------------------------------------


ENV = {"path": "settings.env", "content": "KEY=ghp_" + "a" * 36}


def test_an_approval_in_a_cloned_history_grants_nothing(foreign, user, tmp_path):
    """It is shown as one that waits; the user's own word lets it through."""

    def approve(ws):
        assert ws.tools.call("write_file", {"path": "a.md", "content": "x"}, call_id="c-1").approval_needed
        ws.approve("c-1")
        ws.flush()

    root = foreign("[tools]\napprove = ['write_file']\n", approve)
    with Workspace.open(root, settings=user) as ws:
        refused = ws.tools.call("write_file", {}, call_id="c-1")
        assert (refused.approval_needed, "not given on this machine" in refused.output) == (True, True)
        ws.approve("c-1")
        assert ws.tools.call("write_file", {}, call_id="c-1").status == "SUCCEEDED"


def test_an_approval_is_for_one_call_with_its_arguments_and_is_used_once(root, user, copied):
    """Neither another call, nor a copy of the workspace, nor a second time."""
    with Workspace.open(root, settings=user) as ws:
        ws.tools.call("write_file", ENV, call_id="c-1")
        ws.approve("c-1")
        assert ws.tools.call("write_file", ENV, call_id="c-2").approval_needed
    with Workspace.open(copied(root), settings=user) as other:
        assert other.tools.call("write_file", {}, call_id="c-1").approval_needed
    with Workspace.open(root, settings=user) as ws:
        assert ws.tools.call("write_file", {}, call_id="c-1").status == "SUCCEEDED"
    assert list((user.state_dir / "trust").glob("approval-*")) == []


def test_an_approval_that_cannot_be_kept_is_not_recorded(root, user):
    """The error says so, and the call still waits."""
    with Workspace.open(root, settings=user) as ws:
        ws.tools.call("write_file", ENV, call_id="c-1")
        (user.state_dir / "trust").chmod(0o777)
        with pytest.raises(StoreUnusable, match="Other users can write"):
            ws.approve("c-1")
        assert ws.state.pending["c-1"].approved is None


# --- commands --------------------------------------------------------------------------------------------------------


def test_run_command_without_isolation_is_off_until_a_person_allows_it(root, user, append):
    """The refusal says what such a command can do; the word of trust is for this workspace."""
    append("[tools]\nrun_command = true\nisolation = 'none'\n[checks.tests]\ncommand = 'true'\n")
    Trust.read(root, user).grant("trusted")
    with Workspace.open(root, settings=user) as ws:
        refused = ws.tools.call("run_command", {"command": "echo hi"})
        assert refused.status == "DENIED"
        assert "This command can read your keys and act as you." in refused.output
        assert "agentx trust --commands" in refused.output
        assert ws.tools.call("run_tests", {}).status == "SUCCEEDED"
        ws.trust(commands=True)
        assert ws.tools.call("run_command", {"command": "echo hi"}).status == "SUCCEEDED"
        ws.trust()
        assert ws.tools.call("run_command", {"command": "echo hi"}).status == "DENIED"


def test_the_daemon_carries_out_nothing_in_a_restricted_workspace(ws, user, mark, monkeypatch):
    """It says why, and leaves the due times as they are until a person trusts them."""

    class Later(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(hours=2)

    monkeypatch.setattr(daemon, "datetime", Later)
    ws.flush()
    found = daemon.look(ws.root, user, most=1)
    assert found.carried == ()
    assert "would have an agent do" in found.error
    assert "`agentx trust`" in found.error
    assert not mark.exists()
