"""What single commands do beyond what all of them share."""

import json
import re
import shutil
import subprocess
import sys

from agentx import Workspace


def digest_in(text):
    return re.search(r"state digest +([0-9a-f]{64})\n", text)[1]


# --- a place to work in ----------------------------------------------------------------------------------------------


def test_init_starts_on_an_existing_project_without_what_it_ignores(call, tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.py").write_text("a = 1\n")
    (project / ".gitignore").write_text("*.log\n")
    (project / "x.log").write_text("noise")
    done = call("init", tmp_path / "task", "--from", project, "--title", "Mend it")
    assert done.code == 0, done
    assert (tmp_path / "task" / "artifacts" / "a.py").read_text() == "a = 1\n"
    assert not (tmp_path / "task" / "artifacts" / "x.log").exists()
    assert call("status", "--json", "-C", tmp_path / "task").json["title"] == "Mend it"


def test_init_makes_it_below_the_directory_of_c(call, tmp_path):
    assert call("init", "task", "-C", tmp_path).code == 0
    assert (tmp_path / "task" / "history.jsonl").is_file()


def test_add_tells_what_it_left_out(call, root, tmp_path):
    call("config", "set", "limits.max_file_bytes", "1000", "-C", root)
    (tmp_path / "small.txt").write_text("small")
    (tmp_path / "large.txt").write_text("x" * 2000)
    done = call("add", tmp_path / "small.txt", tmp_path / "large.txt", "-C", root)
    assert done.code == 0, done
    assert "small.txt" in done.out
    assert "Left out" in done.err
    assert "large.txt" in done.err
    assert "Nothing changed" in call("add", tmp_path / "small.txt", "-C", root).out


# --- how it stands ---------------------------------------------------------------------------------------------------


def test_status_and_rebuild_print_the_same_digest_without_any_cache(call, root):
    before = digest_in(call("status", "-C", root).out)
    shutil.rmtree(root / ".agentx")
    rebuilt = call("rebuild", "-C", root)
    assert rebuilt.code == 0, rebuilt
    assert digest_in(rebuilt.out) == before
    assert "the same as before" in rebuilt.out
    assert digest_in(call("status", "-C", root).out) == before


def test_status_shows_what_waits_and_what_a_person_edited(call, root):
    (root / "artifacts" / "outlook.md").write_text("mine\n")
    done = call("status", "-C", root)
    assert "outlook.md: now recorded" in done.out
    assert "1 candidate to settle" in done.out


def test_log_shows_the_latest_and_all_behind_a_number(call, root):
    assert len(call("log", "-n", "2", "-C", root).out.splitlines()) == 2
    assert [event["seq"] for event in call("log", "--after", "3", "--json", "-C", root).lines][:2] == [4, 5]
    said = call("log", "--type", "UserMessageSent", "--json", "-C", root).lines
    assert [event["type"] for event in said] == ["UserMessageSent"] * 2


def test_log_follows_what_another_process_says(root, environment, call):
    with subprocess.Popen(
        [sys.executable, "-m", "agentx", "-C", str(root), "log", "-n", "1", "--follow", "--json"],
        env=environment,
        stdout=subprocess.PIPE,
    ) as running:
        assert json.loads(running.stdout.readline())
        call("say", "Something new.", "-C", root)
        assert json.loads(running.stdout.readline())["data"]["body"]["text"] == "Something new."
        running.terminate()


# --- asking ----------------------------------------------------------------------------------------------------------


def test_context_prints_what_an_agent_is_shown_and_explains_it(call, root):
    text = call("context", "the outlook", "--no-deadline", "-C", root).out
    assert "never create a requirements.txt file" in text
    done = call("context", "the outlook", "--explain", "--no-deadline", "-C", root)
    assert "the user demands it · event 3" in done.out
    assert re.search(r"\d+ of 10,000 tokens", done.err)
    assert (
        "never create" not in call("context", "the outlook", "--as-of", "2", "--no-deadline", "-C", root).out
    )


def test_more_rules_than_fit_give_as_many_as_fit_and_name_the_rest(call, root):
    with Workspace.open(root) as ws:
        for number in range(90):
            ws.remember(
                "constraint", f"Always sort table {number} by the date of its last change, newest first."
            )
    for command in (["context", "x", "--tier", "0"], ["agent", "boot"]):
        done = call(*command, "-C", root)
        shown = done.out.count("Always sort table")
        assert 20 < shown < 90
        assert "more that must not be forgotten: c-" in done.out
        roomy = call(*command, "--max-tokens", "4000", "-C", root)
        assert roomy.out.count("Always sort table") == 90
    tiny = call("context", "--max-tokens", "5", "-C", root)
    assert (tiny.code, tiny.out) == (0, "\n")


def test_boot_prints_what_every_agent_needs(call, root):
    call("memory", "add", "Ship a calm product.", "--kind", "north_star", "-C", root)
    done = call("agent", "boot", "-C", root)
    assert "## Mission and rules\n- [s-" in done.out
    assert "- [c-3] From now on, never create a requirements.txt file." in done.out
    assert done.out.partition("## The user said, not confirmed")[2].count("[c-5]") == 1
    assert "of 2,000 tokens, 5 items, after event" in done.err
    assert call("agent", "boot", "--json", "-C", root).json["text"] == done.out
    assert "the user demands it · event 3" in call("agent", "boot", "--explain", "-C", root).out
    assert "Memory has nothing yet" in call("agent", "boot", "--as-of", "1", "-C", root).out


def test_search_says_once_that_it_is_lexical(call, root):
    call("config", "set", "embeddings.model", "none", "-C", root)
    done = call("search", "revenue shrinks", "-C", root)
    assert done.out.splitlines()[0].strip().startswith("1  outlook.md:")
    assert done.err.count("lexical") == 1


def test_search_finds_what_a_person_wrote_a_moment_ago(call, root):
    (root / "artifacts" / "new.md").write_text("The zeppelin lands at noon.\n")
    hits = call("search", "zeppelin", "--path", "new.md", "--json", "-C", root).json["hits"]
    assert call("search", "zeppelin", "--files", "--path", "new.md", "-C", root).out.count("new.md") == 1
    assert [hit["path"] for hit in hits] == ["new.md"]
    assert (
        call("search", "zeppelin", "--kind", "message", "--path", "x/", "-C", root).out
        == "Nothing was found.\n"
    )


def test_search_reads_declared_sources_first(call, root, tmp_path, trusted):
    pool = tmp_path / "pool"
    pool.mkdir()
    (pool / "old.txt").write_text("The zeppelin of 1912.\n")
    with (root / "agentx.toml").open("a") as file:
        file.write(f'\n[[sources]]\nname = "pool"\npath = "{pool}"\n')
    trusted(root)
    hits = call("search", "zeppelin", "--source", "pool", "--json", "-C", root).json["hits"]
    assert [(hit["source"], hit["path"]) for hit in hits] == [("pool", "old.txt")]


# --- memory ----------------------------------------------------------------------------------------------------------


def test_an_item_lives_from_add_to_retire(call, root):
    [made] = call(
        "memory", "add", "Never create setup.py files.", "--path", "*.py", "--json", "-C", root
    ).json
    assert made["kind"] == "constraint"
    assert made["scope"]["paths"] == ["*.py"]
    [edited] = call("memory", "edit", made["id"], "Never create a setup.cfg file.", "--json", "-C", root).json
    assert edited["text"] == "Never create a setup.cfg file."
    assert call("memory", "pin", made["id"], "--json", "-C", root).json[0]["pinned"]
    assert "pinned" not in call("memory", "pin", made["id"], "--off", "--json", "-C", root).json[0]
    assert call("memory", "retire", made["id"], "--json", "-C", root).json[0]["status"] == "retired"
    assert made["id"] not in call("memory", "list", "-C", root).out
    assert made["id"] in call("memory", "list", "--all", "-C", root).out


def test_a_long_memory_is_told_kind_by_kind_with_the_way_to_the_rest(call, root):
    with Workspace.open(root) as ws:
        tasks = [ws.remember("task", f"Look at page {number}.").id for number in range(40)]
        rules = [
            ws.remember("rule", f"Check page {number}.", score=number % 5 + 5).id for number in range(10)
        ]
    shown = call("memory", "list", "-C", root).out
    lines = [line for line in shown.splitlines() if " task " in line]
    assert [line.split()[0] for line in lines[:-1]] == tasks[:-9:-1]
    assert lines[-1].split()[1:] == ["and", "32", "more:", "agentx", "memory", "list", "--kind", "task"]
    ranked = [line.split()[0] for line in shown.splitlines() if " rule " in line][:8]
    assert (ranked[:2], shown.index("c-3") < shown.index(rules[9]) < shown.index(tasks[39])) == (
        [rules[9], rules[4]],
        True,
    )
    whole = call("memory", "list", "--kind", "task", "-C", root).out
    assert all(name in whole for name in tasks)
    assert len(call("memory", "list", "--json", "-C", root).json) > 50


def test_a_former_status_is_accepted_with_a_notice_and_the_screen_still_tells_how_an_item_ended(call, root):
    with Workspace.open(root) as ws:
        before = ws.say("Always use tabs for indentation.")
        after = ws.say("From now on, use spaces for indentation.")
    done = call("memory", "list", "--status", "superseded", "-C", root)
    assert f"superseded by c-{after.seq}" in done.out
    assert "is now retired" in done.err
    assert "c-3 " not in done.out
    listed = call("memory", "list", "--status", "retired", "-C", root)
    assert (listed.out, listed.err) == (done.out, "")
    assert (
        f"retired (superseded by c-{after.seq})" in call("memory", "show", f"c-{before.seq}", "-C", root).out
    )
    assert call("memory", "list", "--status", "gone", "-C", root).code == 2


def test_a_former_kind_is_accepted_with_a_notice_and_the_screen_still_names_it(call, root):
    done = call("memory", "add", "Migrate before deploying.", "--kind", "learning", "-C", root)
    assert done.code == 0
    assert "'learning' is now part of knowledge" in done.err
    assert "knowledge (learning) · active" in done.out
    call("memory", "add", "The build takes five minutes.", "--kind", "knowledge", "-C", root)
    learned = call("memory", "list", "--kind", "learning", "-C", root)
    assert "Migrate before deploying." in learned.out
    assert "five minutes" not in learned.out
    assert "is now part of knowledge" in learned.err
    known = call("memory", "list", "--kind", "knowledge", "-C", root)
    assert ("learning" in known.out, "five minutes" in known.out) == (True, True)
    assert "is now part of" not in known.err
    assert call("memory", "add", "x", "--kind", "agent_state", "-C", root).code == 2
    assert call("memory", "list", "--kind", "wisdom", "-C", root).code == 2


def test_retiring_several_changes_none_where_one_is_unknown(call, root):
    assert call("memory", "retire", "c-3", "c-99", "-C", root).code == 2
    assert "c-3" in call("memory", "list", "-C", root).out


def test_memory_alone_lists_and_tells_of_proposals(call, root):
    done = call("memory", "-C", root)
    assert "c-3" in done.out
    assert "1 candidate to settle" in done.err


def test_a_proposal_is_settled_by_name(call, root):
    assert call("memory", "review", "--reject", "c-5", "--json", "-C", root).json[0]["status"] == "retired"
    done = call("memory", "review", "--accept", "c-5", "-C", root)
    assert done.code == 2
    assert "not a candidate" in done.err
    assert "no candidates to settle" in call("memory", "review", "-C", root).out


# --- taking back -----------------------------------------------------------------------------------------------------


def test_undo_and_restore_bring_contents_back(call, root):
    outlook = root / "artifacts" / "outlook.md"
    assert "outlook.md" in call("undo", "-C", root).out
    assert "grows" in outlook.read_text()
    (root / "artifacts" / "more.md").write_text("more\n")
    call("status", "-C", root)
    done = call("restore", ".", "--at", "2", "-C", root)
    assert "removed  more.md" in done.out
    assert not (root / "artifacts" / "more.md").exists()
    assert "Nothing changed" in call("restore", "outlook.md", "--at", "2", "-C", root).out


# --- settings --------------------------------------------------------------------------------------------------------


def test_a_setting_is_changed_on_record_and_shown_as_set(call, root):
    assert call("config", "set", "checks.tests.command", "python -m pytest -q", "-C", root).code == 0
    assert call("config", "get", "checks.tests.command", "-C", root).out == "python -m pytest -q\n"
    assert re.search(r"checks.tests.command +python -m pytest -q +set", call("config", "-C", root).out)
    status = subprocess.run(["git", "-C", root, "status", "--porcelain"], capture_output=True, check=True)
    assert status.stdout == b""


def test_a_setting_that_is_none_is_told_with_the_nearest(call, root):
    assert "Do you mean model.name?" in call("config", "set", "modle.name", "x", "-C", root).err
    before = (root / "agentx.toml").read_text()
    assert call("config", "set", "limits.max_steps", "-3", "-C", root).code == 2
    assert (root / "agentx.toml").read_text() == before


def test_models_tells_where_each_is_set(call, root, monkeypatch):
    monkeypatch.setenv("AGENTX_MODEL", "openai/gpt-4o-mini")
    assert call("models", "--json", "-C", root).json["model"] == {
        "name": "openai/gpt-4o-mini",
        "set_in": "AGENTX_MODEL",
    }
    call("config", "set", "model.name", "ollama/llama3.2", "-C", root)
    assert call("models", "--json", "-C", root).json["model"]["set_in"] == "agentx.toml"
