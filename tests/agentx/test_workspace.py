"""The face of everything, as a program uses it: each call of the documented interface, and what it promises."""

import os
import shutil
import subprocess
import sys
import threading

import pytest

from agentx import AgentXError, Workspace
from agentx.config import read_config, set_value
from agentx.core.event_bus import MemoryChanged
from agentx.core.layout import NotAWorkspace
from agentx.factory import NotEmpty
from agentx.settings import Settings, read_settings
from agentx.storage.errors import UsageError
from agentx.storage.events.types import ToolCallExecuted, UserMessageSent, changes_of

MUSK = "When writing about Tesla's future, never mention Elon Musk."


def test_the_interface_of_the_readme_works_line_by_line(tmp_path, lexical):
    ws = Workspace.create(tmp_path / "tasks" / "report", title="Quarterly report", settings=lexical)
    shown = []
    ws.on("MemoryChanged", shown.append)
    said = ws.say(MUSK)
    ws.tools.write_file("report.md", "# Outlook\n\nTesla's payment retries fell by half.\n")
    context = ws.get_relevant_context("draft the outlook on payment retries", max_tokens=4000)
    hits = ws.search("payment retries", k=10)
    rules = ws.memory(kind="constraint")
    assert ws.settle(timeout_s=30)
    before = ws.state.digest
    assert ws.rebuild().state_digest == before == ws.state.digest

    assert said.seq == 2
    assert MUSK in context.text
    assert "Quarterly report" in context.text
    assert context.tokens <= 4000
    assert {item.section for item in context.items} >= {"rules", "recalled"}
    assert all(item.source and item.why for item in context.items)
    assert isinstance(context.omitted, tuple)
    assert hits[0].path == "report.md"
    assert (hits[0].start_line, hits[0].end_line) == (1, 3)
    assert "payment retries" in hits[0].text
    assert hits[0].score > 0
    assert hits[0].seq
    assert [(rule.text, rule.status) for rule in rules] == [(MUSK, "active")]
    assert [type(one) for one in shown] == [MemoryChanged]
    assert shown[0].item == rules[0]
    assert [event.seq for event in ws.events(after=2)] == list(range(3, ws.state.seq + 1))
    ws.close()
    with Workspace.open(tmp_path / "tasks" / "report", settings=lexical) as again:
        assert again.memory(kind="constraint") == rules


def test_a_hit_in_a_message_names_its_event(ws):
    said = ws.say("What does the walrus migration need?")
    (hit,) = [hit for hit in ws.search("walrus migration") if hit.kind == "message"]
    assert (hit.seq, hit.actor, hit.path) == (said.seq, "user", "")


def test_state_and_digest_come_back_after_every_cache_was_deleted(ws, lexical, elsewhere):
    ws.say("Never create a requirements.txt file; use pyproject.toml instead.")
    ws.tools.write_file("a.md", "alpha\n")
    ws.search("alpha")
    digest = ws.state.digest
    ws.close()
    shutil.rmtree(ws.root / ".agentx")
    with Workspace.open(ws.root, settings=lexical) as again:
        rebuilt = again.rebuild()
        assert rebuilt.state_digest == rebuilt.digest_before == digest
        assert rebuilt.events == again.state.seq
        assert rebuilt.chunks
        assert not rebuilt.damage
        assert [hit.path for hit in again.search("alpha", kind="artifact")] == ["a.md"]
    assert elsewhere(ws, "print(ws.rebuild().state_digest)") == digest


def test_a_cache_that_is_deleted_under_an_open_workspace_is_made_again(ws):
    ws.tools.write_file("a.md", "alpha\n")
    ws.search("alpha")
    ws.engine.indexer._background.stop()  # it would put files back while they are deleted
    shutil.rmtree(ws.root / ".agentx")
    ws.tools.write_file("b.md", "alpha, and more of it\n")
    assert {hit.path for hit in ws.search("alpha", kind="artifact")} == {"a.md", "b.md"}
    assert ws.rebuild().state_digest == ws.state.digest
    status = subprocess.run(
        ["git", "status", "--short"], cwd=ws.root, capture_output=True, text=True, check=True
    )
    ws.flush()
    assert ".agentx" not in status.stdout


def test_events_of_another_process_arrive_once_and_in_order(ws, elsewhere):
    seen, followed, done = [], [], threading.Event()
    ws.on("*", lambda event: (seen.append(event.seq), isinstance(event.data, UserMessageSent) and done.set()))

    def follow():
        for event in ws.events(after=1, follow=True, timeout_s=60):
            followed.append(event.seq)
            if any(made.path == "mine.txt" for made in changes_of(event)):
                return

    follower = threading.Thread(target=follow)
    follower.start()
    elsewhere(
        ws, "[ws.tools.write_file(f'{n}.txt', str(n)) for n in range(20)]; ws.say('Always answer in French.')"
    )
    assert done.wait(30)
    ws.tools.write_file("mine.txt", "mine")
    follower.join()
    assert seen == followed == list(range(2, ws.state.seq + 1))
    assert [rule.text for rule in ws.memory("constraint")] == ["Always answer in French."]


def test_what_a_subscriber_raises_stops_neither_history_nor_the_others(ws, caplog):
    heard = []
    ws.on("UserMessageSent", lambda _: 1 / 0)
    stop = ws.on("UserMessageSent", heard.append)
    ws.say("one")
    stop()
    ws.say("two")
    assert [event.data.body.text for event in heard] == ["one"]
    assert "ZeroDivisionError" in caplog.text


def test_a_subscriber_may_write_and_hears_of_it_afterwards(ws):
    heard = []
    ws.on("*", lambda event: heard.append(event.type))
    ws.on("UserMessageSent", lambda _: ws.tools.write_file("reply.txt", "heard\n"))
    ws.say("hello")
    assert heard == ["UserMessageSent", "ToolCallExecuted"]


def test_when_say_returns_its_demand_is_concluded_whatever_other_threads_do(ws):
    missing = []

    def talk(name):
        for n in range(8):
            ws.say(f"Never create a {name}{n}.txt file.")
            if not any(f"{name}{n}.txt" in rule.text for rule in ws.memory("constraint")):
                missing.append((name, n))

    threads = [threading.Thread(target=talk, args=(name,)) for name in ("alpha", "bravo", "carol", "delta")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not missing
    assert len(ws.memory("constraint")) == 32


def test_two_workspaces_on_one_directory_in_one_process_share_everything(ws, lexical):
    with Workspace.open(ws.root, settings=lexical) as other:
        other.say("Never create a requirements.txt file.")
        ws.tools.write_file("a.txt", "from the first")
        other.tools.write_file("b.txt", "from the second")
        assert ws.tools.read_file("b.txt").text == "from the second"
        assert ws.state.digest == other.state.digest
        assert len(ws.memory("constraint")) == 1


def test_closing_twice_does_nothing_more(ws):
    ws.close()
    log = (ws.root / "history.jsonl").read_bytes()
    ws.close()
    assert (ws.root / "history.jsonl").read_bytes() == log


def test_a_directory_that_is_no_workspace_is_refused_with_what_to_do(tmp_path, lexical):
    with pytest.raises(NotAWorkspace, match="agentx init"):
        Workspace.open(tmp_path, settings=lexical)
    with pytest.raises(NotAWorkspace, match="not in a workspace"):
        Workspace.find(tmp_path, settings=lexical)


def test_a_workspace_is_found_from_a_directory_inside_it(ws, lexical):
    ws.tools.write_file("src/main.py", "")
    with Workspace.find(ws.artifacts / "src", settings=lexical) as found:
        assert found.root == ws.root


def test_a_directory_that_holds_something_is_not_made_a_workspace(ws, tmp_path, lexical):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    for place in ("full", "task"):
        with pytest.raises(NotEmpty):
            Workspace.create(tmp_path / place, settings=lexical)
    assert os.listdir(tmp_path / "full") == ["mine.txt"]


@pytest.mark.parametrize("title", ["two\nlines", "t" * 100_000, "\x1b[31mred", "\ud800"])
def test_any_title_makes_a_workspace_with_a_title_in_one_line(tmp_path, lexical, title):
    with Workspace.create(tmp_path / "t", title=title, settings=lexical) as ws:
        assert ws.state.title
        assert len(ws.state.title) <= 200
        assert "\n" not in ws.state.title


def test_an_empty_message_is_refused(ws):
    with pytest.raises(UsageError, match="message is empty"):
        ws.say(" \n")


def test_a_very_long_message_is_kept_whole(ws):
    text = "Look at this:\n" + "line\n" * 100_000
    event = ws.say(text)
    assert ws.read_body(event.data.body) == text
    assert ws.search("look at this")[0].seq == event.seq


def test_a_message_with_escapes_and_surrogates_is_recorded_and_told_in_one_line(ws):
    ws.say("\x1b[2J\x1b]0;evil\x07Look at this.\ud800\n\nAgentX-Event: 99")
    ws.flush()
    log = subprocess.run(["git", "log", "-1", "--format=%(trailers:key=AgentX-Event,valueonly)"], cwd=ws.root,
                         capture_output=True, text=True, check=True)  # fmt: skip
    assert log.stdout.split() == ["2"]


def test_status_tells_what_a_person_changed_meanwhile(ws):
    (ws.artifacts / "mine.txt").write_text("by hand")
    status = ws.status()
    assert [change.path for change in status.outside] == ["mine.txt"]
    assert status.files == 1
    assert status.digest == ws.state.digest
    assert not status.damage
    assert ws.status().outside == ()


def test_resynthesis_brings_back_nothing_that_a_person_ended(ws):
    ws.say("Never create a requirements.txt file.")
    (rule,) = ws.memory("constraint")
    ws.retire(rule.id)
    assert ws.resynthesize() == []
    assert ws.memory("constraint") == []


def test_as_of_shows_what_was_known_then(ws):
    ws.say("Never create a requirements.txt file.")
    ws.tools.write_file("a.md", "The walrus weighs a ton.\n")
    then = ws.state.seq
    before = ws.get_relevant_context()
    ws.say("What does the walrus weigh? Never create a setup.py file.")
    ws.retire(ws.memory("constraint")[0].id)
    ws.tools.write_file("a.md", "The otter weighs a pound.\n")
    after = ws.get_relevant_context(as_of=then)
    assert after.text == before.text
    assert after.seq == then
    assert ws.state_at(then).digest != ws.state.digest
    for seq in (-1, ws.state.seq + 1):
        with pytest.raises(UsageError, match="does not exist; the history has events"):
            ws.get_relevant_context(as_of=seq)


def test_a_tool_call_that_is_interrupted_in_another_process_shows_as_unknown(configured, elsewhere):
    ws = configured('\n[checks.tests]\ncommand = "sleep 60"\n')
    killed = (
        "import threading, time; threading.Thread(target=ws.tools.run_tests, daemon=True).start()\n"
        "    while not ws.state.pending: time.sleep(0.02)\n"
        "    os._exit(0)"
    )
    elsewhere(ws, killed)
    assert "its outcome is unknown" in ws.get_relevant_context("go on").text


def test_settings_come_from_the_environment_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("AGENTX_USER", "ada")
    assert read_settings().actor == "user:ada"
    assert read_settings({"XDG_CACHE_HOME": "/c"}).cache_dir.as_posix() == "/c/agentx"
    assert Settings().actor == "user"


def test_a_setting_keeps_the_comments_around_it_and_a_wrong_one_changes_nothing(ws):
    path = ws.root / "agentx.toml"
    path.write_text("# mine\n[model]\nname = 'old'  # why\n[limits]\nmax_steps = 3\n")
    assert set_value(ws.root, "model.name", "openai/gpt").model.name == "openai/gpt"
    assert path.read_text() == '# mine\n[model]\nname = "openai/gpt"\n[limits]\nmax_steps = 3\n'
    text = path.read_text()
    for name, value in [
        ("model.nam", "x"),
        ("limits.max_steps", "-1"),
        ("limits.max_steps", "many"),
        ("x", "1"),
        ("a.b", "1\n[z]"),
    ]:
        with pytest.raises(AgentXError):
            set_value(ws.root, name, value)
    assert path.read_text() == text
    assert read_config(ws.root).limits.max_steps == 3


@pytest.mark.parametrize(
    "toml", ["[model", "[model]\nnme = 'x'\n", "[limits]\nmax_steps = 0\n", "\ufeff\x00"]
)
def test_a_configuration_that_is_none_is_one_sentence(ws, lexical, toml):
    ws.close()
    (ws.root / "agentx.toml").write_text(toml)
    with pytest.raises(UsageError, match=r"agentx\.toml"):
        Workspace.open(ws.root, settings=lexical)


def test_history_tells_of_each_write_in_git(ws):
    ws.tools.write_file("a.md", "alpha\n")
    event = [event for event in ws.events() if isinstance(event.data, ToolCallExecuted)][-1]
    ws.flush()
    shown = subprocess.run(["git", "log", "-1", "--format=%an|%s|%(trailers:key=AgentX-Event,valueonly)"], cwd=ws.root,
                           capture_output=True, text=True, check=True)  # fmt: skip
    assert shown.stdout.strip() == f"agent:main|Create a.md|{event.seq}"


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, agentx; print([m for m in ('lancedb', 'litellm', 'onnxruntime', 'pygit2') if m in sys.modules])"
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_closed_workspace_refuses_to_write(tmp_path):
    from agentx.recording.write_path import WorkspaceClosed

    ws = Workspace.create(tmp_path / "task")
    ws.close()
    with pytest.raises(WorkspaceClosed, match="open it again"):
        ws.say("From now on never use tabs.")
    with pytest.raises(WorkspaceClosed):
        ws.tools.write_file("a.txt", "x")
    assert not (ws.root / ".git" / "index.lock").exists()


def test_what_is_asked_for_by_an_unknown_name_is_refused(tmp_path):
    from agentx.storage.errors import UsageError

    with Workspace.create(tmp_path / "task") as ws:
        with pytest.raises(UsageError, match="konstraint"):
            ws.memory(kind="konstraint")
        with pytest.raises(UsageError, match="aktive"):
            ws.memory(status="aktive")


def test_the_workspace_is_not_added_to_itself(tmp_path):
    from agentx.storage.errors import UsageError

    with Workspace.create(tmp_path / "task") as ws:
        for path in (ws.root, ws.root / "history.jsonl"):
            with pytest.raises(UsageError, match="workspace itself"):
                ws.add([path])
