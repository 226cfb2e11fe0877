"""`agentx install` and `agentx uninstall`, as a person calls them in a project of their own."""

import json
import subprocess

import pytest

from agentx.core.beside import BESIDE


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "my project"
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n")
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    subprocess.run(["git", "add", "a.py"], cwd=folder, check=True)
    return folder


def repository(project):
    return {path: path.read_bytes() for path in sorted((project / ".git").rglob("*")) if path.is_file()}


def status(project):
    done = subprocess.run(
        ["git", "status", "--porcelain", "-uall"], cwd=project, check=True, capture_output=True, text=True
    )
    return done.stdout.splitlines()


def test_a_new_user_needs_one_command_and_gets_everything_back_by_another(call, project):
    before = repository(project)
    done = call("install", "claude-code", "--yes", "-C", project)
    assert done.code == 0, done
    assert "+" in done.out
    assert (project / BESIDE / "history.jsonl").exists()
    assert "agentx hook claude-code" in (project / ".claude" / "settings.local.json").read_text()
    assert call("status", "-C", project).code == 0  # the workspace is found from the project
    assert status(project) == ["A  a.py", "?? .claude/settings.local.json"]
    again = call("install", "claude-code", "--yes", "-C", project)
    assert "already" in again.out
    gone = call("uninstall", "claude-code", "--yes", "-C", project)
    assert "The memory stays in" in gone.out
    assert status(project) == ["A  a.py"]
    assert repository(project) == before


def test_nothing_is_written_unless_the_user_agrees(call, project):
    done = call("install", "codex", "-C", project)
    assert done.code == 2
    assert "--yes" in done.err
    assert status(project) == ["A  a.py"]
    assert not (project / ".agentx-project").exists()


def test_for_all_projects_no_memory_is_made(call, project, environment, tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    done = call("install", "gemini-cli", "--user", "--yes", "-C", project)
    assert done.code == 0, done
    assert "agentx hook gemini-cli" in (home / ".gemini" / "settings.json").read_text()
    assert not (project / ".agentx-project").exists()
    assert call("uninstall", "gemini-cli", "--user", "--yes", "-C", project).code == 0
    assert not (home / ".gemini").exists()


def test_a_second_work_tree_shares_the_memory_of_the_first(call, project, tmp_path):
    call("install", "claude-code", "--yes", "-C", project)
    second = tmp_path / "second"
    second.mkdir()
    (second / ".git").write_text("gitdir: elsewhere\n")
    done = call("install", "claude-code", "--memory", project, "--yes", "-C", second, "--json")
    assert done.json["workspace"] == str(project / BESIDE)
    assert not (second / ".agentx-project").exists()


def test_a_plugin_folder_is_written_and_no_settings(call, project, tmp_path):
    done = call("install", "claude-code", "--plugin", tmp_path / "plugin", "-C", project)
    assert done.code == 0, done
    assert json.loads((tmp_path / "plugin" / "hooks" / "hooks.json").read_text())["hooks"]
    assert status(project) == ["A  a.py"]
    refused = call("install", "codex", "--plugin", tmp_path / "other", "-C", project)
    assert refused.code == 2


def test_what_the_user_must_still_do_is_said(call, project):
    assert "trust" in call("install", "codex", "--yes", "-C", project).out


def test_the_mcp_server_comes_with_the_hooks_unless_it_is_refused(call, project, tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    without = call("install", "cursor", "--no-mcp", "--yes", "-C", project, "--json").json
    assert without["mcp"] == ""
    assert not (project / ".cursor" / "mcp.json").exists()
    done = call("install", "cursor", "--yes", "-C", project)
    assert "mcpServers" in done.out  # the diff
    assert "do not commit" in done.out
    entry = json.loads((project / ".cursor" / "mcp.json").read_text())["mcpServers"]["agentx"]
    assert entry["args"][-2:] == ["-C", str(project / BESIDE)]
    again = call("install", "cursor", "--yes", "-C", project, "--json").json
    assert again["changed"] is False
    assert call("uninstall", "cursor", "--yes", "-C", project).code == 0
    assert status(project) == ["A  a.py"]


def test_which_files_git_would_commit_is_said(call, project, tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    done = call("install", "opencode", "--yes", "-C", project, "--json").json
    assert done["do_not_commit"] == [".opencode/plugins/agentx.js", "opencode.json"]
    done = call("install", "claude-code", "--yes", "-C", project, "--json").json
    assert done["do_not_commit"] == [".claude/settings.local.json"]
    assert done["mcp"] == str(home / ".claude.json")  # its local scope, not the `.mcp.json` of the team
    assert "agentx" in json.loads((home / ".claude.json").read_text())["projects"][str(project)]["mcpServers"]
    everywhere = call("install", "codex", "--user", "--yes", "-C", project, "--json").json
    assert everywhere["do_not_commit"] == []
    assert "-C" not in (home / ".codex" / "config.toml").read_text()


def test_a_server_of_the_same_name_is_kept_and_named(call, project):
    own = {"mcpServers": {"agentx": {"command": "other"}}}
    (project / ".cursor").mkdir()
    (project / ".cursor" / "mcp.json").write_text(json.dumps(own))
    done = call("install", "cursor", "--yes", "-C", project)
    assert "which stays" in " ".join(done.out.split())
    assert json.loads((project / ".cursor" / "mcp.json").read_text()) == own
