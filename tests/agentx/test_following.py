"""The rules of followed workspaces hold here, read through with their source; nothing of them is copied or run."""

import json
import os
import socket
import subprocess

import msgspec
import pytest

from agentx import Workspace
from agentx.agents.loop import run_task
from agentx.engine import followed as following
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.events.types import ContextProvided, Draft, Followed, RunStarted, ToolCallExecuted
from agentx.synthesis.memory.checks import ProgramCheck, TextCheck
from agentx.synthesis.memory.conclusions import Add, Concluded
from agentx.synthesis.memory.items import ConstraintDetail, Evidence, MemoryItem, checks_of
from agentx.synthesis.model.scripted import ScriptedModel
from agentx.trust.trust import Trust, set_value

REVIEW = "Never push to main without a review."
WORD = "Never use the word synergy."


@pytest.fixture
def upstream(tmp_path, lexical):
    """Make workspaces whose user said something."""

    def make(name, *said, settings=lexical):
        with Workspace.create(tmp_path / name, title=name, settings=settings) as ws:
            for text in said:
                ws.say(text)
        return tmp_path / name

    return make


@pytest.fixture
def follower(tmp_path, lexical):
    """Open a workspace that follows others, by name and source; a second call with its name opens it again."""
    opened = []

    def make(name="mine", settings=lexical, **sources):
        root = tmp_path / name
        if not root.exists():
            Workspace.create(root, title=name, settings=settings).close()
        if sources:
            each = ", ".join(
                f"{json.dumps(one)} = {json.dumps(str(source))}" for one, source in sources.items()
            )
            set_value(root, settings, "follow.upstreams", f"{{ {each} }}")
        opened.append(Workspace.open(root, settings=settings))
        return opened[-1]

    yield make
    for ws in opened:
        ws.close()


def say(root, settings, text):
    with Workspace.open(root, settings=settings) as ws:
        ws.say(text)


def context(ws):
    return ws.get_relevant_context("What is next?", deadline_ms=None)


def ids(ws):
    return [item.id for item in ws.memory()]


def notes(ws):
    return {one.name: one.note for one in ws.engine.following.current().each}


def test_followed_rules_are_shown_with_their_source_and_stop_what_breaks_them(upstream, follower):
    upstream("rules", REVIEW, WORD)
    ws = follower(rules="../rules")
    shown = context(ws)
    assert (
        f"## What the user demands (holds for everything you write and say)\n- [rules:c-2] {REVIEW} (from rules, event 2)"
        in shown.text
    )
    assert [item.source.partition(" (")[0] for item in shown.items] == ["rules, event 2", "rules, event 4"]
    verdict = ws.gates.before("push", tool="run_command", arguments={"command": "git push origin main"})
    assert verdict.verdict == "deny"
    assert f"rules:c-2: {REVIEW} (followed from rules, event 2 (" in verdict.text
    denied = ws.tools.call("write_file", {"path": "a.md", "content": "Much synergy."})
    assert denied.status == "DENIED"
    assert f"Rule rules:c-4: {WORD} (followed from rules, event 4 (" in denied.output
    [broken] = ws.engine.evaluate_answer("Much synergy.").stopping
    assert (broken.item_id, broken.sentence) == ("rules:c-4", WORD)
    [call] = [event.data for event in ws.events() if isinstance(event.data, ToolCallExecuted)]
    assert call.denied_by == ("rules:c-4",)
    assert f"[rules:c-2] {REVIEW}" in ws.boot().text
    assert ws.status().followed[0].rules == 2


def test_what_holds_is_on_record_by_commit_and_hash_and_the_history_replays_without_the_upstream(
    upstream, follower, tmp_path
):
    root = upstream("rules", REVIEW)
    ws = follower(rules="../rules")
    script = tmp_path / "turns.jsonl"
    script.write_text('{"answer": "Done."}\n')
    run_task(ws, "Go on.", ScriptedModel(script))
    with Workspace.open(root, settings=ws.settings) as rules:
        last, commit = rules.state, rules.engine.git.head
    expected = (Followed(name="rules", commit=commit, seq=last.seq, hash=last.hash),)
    [started] = [event.data for event in ws.events() if isinstance(event.data, RunStarted)]
    [event] = [event for event in ws.events() if isinstance(event.data, ContextProvided)]
    assert started.followed == event.data.followed == expected
    assert "rules:c-2" in event.data.items
    assert context_at(ws, event.seq).exact
    say(root, ws.settings, WORD)
    assert "rules:c-4" in ids(ws)
    assert context_at(ws, event.seq).exact  # by the recorded commit, not by what holds now
    digest = ws.state.digest
    root.rename(tmp_path / "elsewhere")
    assert ws.rebuild().state_digest == digest
    assert REVIEW not in (ws.root / "history.jsonl").read_text().replace(event.data.digest, "")
    gone = context_at(ws, event.seq)
    assert not gone.exact
    assert "[rules:c-2] (no longer there)" in gone.text


def context_at(ws, seq):
    return ws.get_relevant_context(as_of=seq)


def test_a_rule_that_is_ended_there_ends_here_while_a_run_is_at_work(upstream, follower, lexical):
    root = upstream("rules", REVIEW, WORD)
    ws = follower(rules="../rules")
    assert ids(ws) == ["rules:c-2", "rules:c-4"]
    with Workspace.open(root, settings=lexical) as rules:
        rules.retire("c-4")
    assert ids(ws) == ["rules:c-2"]
    assert ws.tools.call("write_file", {"path": "a.md", "content": "Much synergy."}).status == "SUCCEEDED"


def test_own_words_win_over_a_followed_preference_and_never_over_a_followed_must(upstream, follower):
    upstream("rules", "I prefer tabs for indentation.", "Always write commit messages in English.")
    ws = follower(rules="../rules")
    ws.say("I prefer spaces for indentation.")
    ws.say("Never write commit messages in English.")
    [status] = ws.status().followed
    assert status.gave_way == {"rules:c-2": "c-2"}
    assert status.contrary == {"rules:c-4": "c-4"}
    text = context(ws).text
    assert "tabs" not in text
    assert (
        "- [rules:c-4] Always write commit messages in English. (from rules, event 4) (shown only) (contrary to c-4)"
        in text
    )
    assert "(contrary to rules:c-4)" in text


def test_followed_rules_cannot_be_changed_here_and_the_sentence_says_where(upstream, follower):
    root = upstream("rules", REVIEW)
    ws = follower(rules="../rules")
    for change in (
        lambda: ws.retire("rules:c-2"),
        lambda: ws.pin("rules:c-2"),
        lambda: ws.edit_memory("rules:c-2", "x"),
    ):
        with pytest.raises(UsageError, match="can only be changed there") as refused:
            change()
        assert f"`agentx -C {root} memory …`" in str(refused.value)


def test_only_what_a_user_said_there_holds_here_and_no_check_runs_or_writes_anything(
    upstream, follower, lexical
):
    root = upstream("rules", REVIEW)
    slow = TextCheck(patterns=(r"(a+)+$",))
    forged = [
        forge("c-91", "An agent wants this.", "agent", 3, ()),
        forge("c-92", "No user said this.", "user", 3, ()),  # by the engine's event
        forge("c-93", "Tests pass.", "user", 2, (ProgramCheck(command="touch /tmp/x"),)),
        forge("c-94", "No long words.", "user", 2, (slow,)),
        forge("c-95", "Use black.", "user", 2, (TextCheck(phrases=("black",), mode="fix"),)),
    ]
    with Workspace.open(root, settings=lexical) as rules:
        conclusion = Concluded(through=3, extractor="person", version=1, changes=tuple(map(Add, forged)))
        rules.record(Draft(data=conclusion, actor="engine:x"))
    ws = follower(rules="../rules")
    assert ids(ws) == ["rules:c-2", "rules:c-93", "rules:c-94", "rules:c-95"]
    found = {item.id: checks_of(item) for item in ws.memory()}
    assert found["rules:c-93"] == found["rules:c-94"] == ()
    assert [check.mode for check in found["rules:c-95"]] == ["deny"]


def forge(name, text, trust, seq, checks):
    detail = ConstraintDetail(checks=checks)
    return MemoryItem(id=name, kind="constraint", text=text, trust=trust, evidence=(Evidence(seq, quote=text),), detail=detail)  # fmt: skip


def test_a_chain_is_read_to_a_small_depth_and_only_with_trust_and_a_loop_ends(upstream, follower, lexical):
    for name, said in (
        ("team", REVIEW),
        ("company", WORD),
        ("group", "Never use tabs."),
        ("world", "Never swear."),
    ):
        upstream(name, said)
    for name, source in (("team", "company"), ("company", "group"), ("group", "world")):
        follower(name, **{source: f"../{source}", "mine": "../mine"}).close()
    ws = follower(team="../team")
    assert ids(ws) == ["team:c-2", "team/company:c-2", "team/company/group:c-2"]
    assert "to a depth of 3" in notes(ws)["team/company/group/world"]
    Trust.read(ws.root.parent / "team", lexical).revoke()
    again = follower()
    assert ids(again) == ["team:c-2"]
    assert "its settings are not trusted here" in notes(again)["team/company"]
    assert "Follow it here: `agentx follow ../company`" in context(again).text


def test_what_cannot_be_read_stays_in_force_as_last_read_and_it_is_said(upstream, follower, tmp_path):
    root = upstream("rules", WORD)
    ws = follower(rules="../rules", gone="../gone")
    assert "The rules of the followed workspace gone are missing here." in context(ws).text
    assert "is not a workspace" in ws.status().followed[0].why
    root.rename(tmp_path / "away")
    again = follower()
    assert ids(again) == ["rules:c-2"]
    assert "The followed workspace rules could not be read: its rules of " in context(again).text
    assert "(less than an hour old) hold." in notes(again)["rules"]
    assert again.tools.call("write_file", {"path": "a.md", "content": "Much synergy."}).status == "DENIED"
    (tmp_path / "away").rename(root)
    assert notes(again)["rules"] == ""


def rewind(root):
    git(root, "reset", "--hard", "HEAD~1")


def forge_line(root):
    log = root / "history.jsonl"
    log.write_text(log.read_text().replace("synergy", "harmony"))
    git(root, "commit", "-qam", "x")


def link_log(root):
    (root / "history.jsonl").rename(root / "other")
    (root / "history.jsonl").symlink_to("other")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "x")


def cut_log(root):
    (root / "history.jsonl").write_text("")
    git(root, "commit", "-qam", "x")


def lose_objects(root):
    git(root, "commit", "-q", "--allow-empty", "-m", "x")
    head = git(root, "rev-parse", "HEAD").stdout.strip()
    (root / ".git" / "objects" / head[:2] / head[2:]).write_bytes(b"\x78")


def git(root, *arguments):
    command = ["git", "-C", str(root), "-c", "user.name=x", "-c", "user.email=x@x", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True)


@pytest.mark.parametrize("harm", [rewind, forge_line, link_log, cut_log, lose_objects])
def test_a_hostile_upstream_takes_nothing_down_and_weakens_nothing(upstream, follower, lexical, harm):
    root = upstream("rules", REVIEW)
    say(root, lexical, WORD)
    assert len(ids(follower(rules="../rules"))) == 2
    harm(root)
    ws = follower()
    assert len(ids(ws)) == 2
    assert "could not be read" in notes(ws)["rules"]
    assert "The followed workspace rules could not be read" in context(ws).text


def test_another_workspace_in_the_place_of_a_followed_one_is_not_followed(upstream, follower, tmp_path):
    root = upstream("rules", WORD)
    ws = follower()
    accepted = ws.engine.following.accept("rules", following.UpstreamSection(source="../rules"))
    root.rename(tmp_path / "away")
    upstream("rules", "Always use the word synergy.")
    pinned = f'{{ rules = {{ source = "../rules", workspace = "{accepted.known.first}" }} }}'
    set_value(ws.root, ws.settings, "follow.upstreams", pinned)
    again = follower()
    assert [item.text for item in again.memory()] == [WORD]
    assert "lacks an event that was read before" in notes(again)["rules"]


def test_a_remote_is_fetched_when_it_is_due_and_stays_in_force_when_it_is_away(
    upstream, follower, lexical, tmp_path, monkeypatch
):
    root = upstream("rules", REVIEW)
    bare = tmp_path / "rules.git"
    git(root, "clone", "-q", "--bare", str(root), str(bare))
    ws = follower(rules=f"file://{bare}")
    assert ids(ws) == ["rules:c-2"]
    with Workspace.open(root, settings=lexical) as rules:
        rules.say(WORD)
        rules.push("bare", url=str(bare))
    assert ids(follower()) == ["rules:c-2"]  # not due yet
    now = following.time.time
    monkeypatch.setattr(following.time, "time", lambda: now() + 601)
    assert ids(ws) == ["rules:c-2"]  # a process at work does not wait for a remote between two calls
    ws.engine.following.refresh()
    assert ids(ws) == ["rules:c-2", "rules:c-4"]
    bare.rename(tmp_path / "away.git")
    monkeypatch.setattr(following.time, "time", lambda: now() + 1300)
    again = follower()
    assert ids(again) == ["rules:c-2", "rules:c-4"]
    assert "could not be reached" in notes(again)["rules"]


def test_a_fork_of_this_workspace_adds_only_what_it_says_itself(follower, tmp_path):
    ws = follower()
    ws.say(WORD)
    ws.fork(tmp_path / "fork").close()
    say(tmp_path / "fork", ws.settings, REVIEW)
    ws.close()
    again = follower(**{"Équipe-規則": "../fork"})
    assert [item.text for item in again.memory()] == [REVIEW, WORD]
    assert again.memory()[0].id.startswith("Équipe-規則:c-")
    again.retire("c-2")
    assert [item.text for item in again.memory()] == [WORD, REVIEW]


def test_an_untrusted_workspace_reads_no_upstream_and_says_so(upstream, follower, lexical):
    upstream("rules", REVIEW)
    ws = follower(rules="../rules")
    Trust.read(ws.root, lexical).revoke()
    again = follower()
    assert ids(again) == []
    assert "This workspace is not trusted" in context(again).text


def test_inside_a_run_nobody_follows_or_unfollows(upstream, follower, lexical):
    upstream("rules", REVIEW)
    ws = follower(rules="../rules")
    inside = msgspec.structs.replace(lexical, environ={**os.environ, "AGENTX_RUN": "r-1"})
    with pytest.raises(AgentXError, match="run"):
        set_value(ws.root, inside, "follow.upstreams", "{}")


def test_a_workspace_does_not_follow_itself(follower):
    ws = follower()
    with pytest.raises(following.FollowFailed, match="cannot follow itself"):
        ws.engine.following.accept("me", following.UpstreamSection(source="."))


@pytest.mark.parametrize(
    ("limit", "value", "why"),
    [("MOST_LOG_BYTES", 100, "more than 100 bytes"), ("MOST_ITEMS", 0, "over the limit")],
)
def test_an_upstream_that_is_too_large_is_not_read(upstream, follower, monkeypatch, limit, value, why):
    upstream("rules", REVIEW)
    monkeypatch.setattr(following, limit, value)
    ws = follower(rules="../rules")
    assert ids(ws) == []
    assert why in notes(ws)["rules"]


def test_a_fetched_repository_that_is_too_large_is_removed(
    upstream, follower, lexical, monkeypatch, tmp_path
):
    root = upstream("rules", REVIEW)
    git(root, "clone", "-q", "--bare", str(root), str(tmp_path / "rules.git"))
    monkeypatch.setattr(following, "MOST_FETCHED_BYTES", 1_000)
    ws = follower(rules="../rules.git")
    assert "over the limit of 1,000" in notes(ws)["rules"]
    kept = lexical.state_dir / "followed" / following.Place(url=str(tmp_path / "rules.git")).key
    assert [path.name for path in kept.iterdir() if path.is_dir()] == []


def test_a_context_with_a_deadline_does_not_wait_for_a_silent_remote(follower):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        ws = follower(rules=f"git://127.0.0.1:{silent.getsockname()[1]}/rules.git")
        shown = ws.get_relevant_context("What is next?", deadline_ms=200)
        assert (
            "The rules of the followed workspace rules are missing here. It was not fetched yet."
            in shown.text
        )


def test_a_workspace_that_agents_here_can_write_is_not_followed(upstream, follower):
    ws = follower(inside="artifacts/rules")
    upstream("mine/artifacts/rules", REVIEW)
    assert ids(ws) == []
    assert "within reach of this workspace's agents" in notes(ws)["inside"]
    with pytest.raises(following.FollowFailed, match="within reach"):
        ws.engine.following.accept("x", following.UpstreamSection(source="artifacts/rules"))


def test_rules_of_several_workspaces_hold_and_the_same_rule_is_shown_once(upstream, follower):
    upstream("rules", REVIEW, WORD)
    upstream("Règles d'équipe", WORD, "Never use tabs.")
    ws = follower(rules="../rules", équipe="../Règles d'équipe")
    assert [(item.id, item.text) for item in ws.memory()] == [
        ("rules:c-2", REVIEW),
        ("rules:c-4", WORD),
        ("équipe:c-4", "Never use tabs."),
    ]
    ws.say(WORD)
    assert ids(ws) == ["rules:c-2", "équipe:c-4", "c-2"]


def test_a_rejection_that_was_followed_denies_what_suggests_it_again(upstream, follower):
    upstream("rules", "Redis for sessions is off the table, ops won't run another stateful thing.")
    ws = follower(rules="../rules")
    [item] = ws.memory()
    assert item.kind == "rejection"
    assert ws.gates.before_answer("I suggest Redis for sessions.")[0].item_id == item.id
