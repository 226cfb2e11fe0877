"""Hooks are added to a host's settings as text, and removed again to the byte."""

import json
import os
import subprocess

import pytest

from agentx.core.beside import BESIDE
from agentx.hosts.host import HOSTS, load
from agentx.hosts.setup import jsonc
from agentx.hosts.setup.installing import HookInstaller, InstallRefused, claude_plugin, command, entries
from agentx.hosts.setup.project import known_workspace, make_beside, share
from agentx.storage.errors import UsageError

WITH_COMMENTS = """\
// my settings
{
    "model": "opus", /* the large one */
    "hooks": {
        // say hello
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "echo hi"}]},
        ],
    },
    "unknown": [1, 2,   3]
}
"""
TARGETS = [*HOSTS, "agents-md"]


@pytest.fixture
def environ(tmp_path):
    return {"HOME": str(tmp_path / "home"), "AGENTX_STATE_DIR": str(tmp_path / "state")}


@pytest.fixture
def installer(project, environ):
    def make(host, scope="project"):
        return HookInstaller(host, scope, project, environ)

    return make


def tree(folder):
    return {
        path.relative_to(folder): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
        if ".git" not in path.parts
    }


def apply(installer):
    plan = installer.install()
    installer.apply(plan, installs=True)
    return plan


@pytest.mark.parametrize("scope", ["project", "user"])
@pytest.mark.parametrize("host", TARGETS)
def test_an_uninstall_leaves_no_trace(host, scope, installer, project, environ, tmp_path):
    if (host, scope) == ("agents-md", "user"):
        with pytest.raises(UsageError, match="--project"):
            installer(host, scope)
        return
    (tmp_path / "home").mkdir()
    before = tree(tmp_path)
    apply(installer(host, scope))
    assert installer(host, scope).target.exists()
    gone = installer(host, scope)
    gone.apply(gone.uninstall(), installs=False)
    after = {path: content for path, content in tree(tmp_path).items() if path.parts[0] != "state"}
    assert after == before
    assert not list((tmp_path / "state").rglob("*.json"))


@pytest.mark.parametrize("host", TARGETS)
def test_a_second_install_changes_nothing(host, installer):
    apply(installer(host))
    again = installer(host).install()
    assert again.before == again.after


@pytest.mark.parametrize(
    "content", [WITH_COMMENTS, "", "{}", "{\n}\n", '{"a":1}', '\ufeff{"hooks": {}}', "{ // x\n}"]
)
def test_what_was_there_stays_and_comes_back_to_the_byte(content, installer):
    claude = installer("claude-code")
    claude.target.parent.mkdir()
    claude.target.write_text(content, "utf-8")
    apply(claude)
    text = claude.target.read_text("utf-8")
    for part in (
        "// my settings",
        "/* the large one */",
        "// say hello",
        '"unknown": [1, 2,   3]',
        "echo hi",
    ):
        assert (part in text) == (part in content)
    assert set(jsonc.parse(text).get("hooks").plain()) >= set(entries("claude-code"))
    claude.apply(claude.uninstall(), installs=False)
    assert claude.target.read_text("utf-8") == content


def test_of_a_file_that_was_changed_since_only_our_entries_go(installer):
    claude = installer("claude-code")
    claude.target.parent.mkdir()
    claude.target.write_text(WITH_COMMENTS)
    apply(claude)
    claude.target.write_text(claude.target.read_text().replace('"opus"', '"haiku"'))
    claude.apply(claude.uninstall(), installs=False)
    text = claude.target.read_text()
    assert "agentx" not in text
    found = jsonc.parse(text).plain()
    assert found["model"] == "haiku"
    assert found["hooks"] == {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "echo hi"}]}]
    }
    assert "// say hello" in text


def test_entries_of_another_version_or_place_are_replaced_and_removed(installer):
    claude = installer("claude-code")
    claude.target.parent.mkdir()
    old = {
        "hooks": [
            {"type": "command", "command": "'/old place/python' -P -m agentx hook claude-code", "timeout": 5}
        ]
    }
    claude.target.write_text(json.dumps({"hooks": {"Stop": [old], "Elicitation": [old]}}))
    apply(claude)
    found = json.loads(claude.target.read_text())["hooks"]
    assert found["Stop"] == [entries("claude-code")["Stop"]]
    claude.target.write_text(claude.target.read_text() + "\n")
    claude.apply(claude.uninstall(), installs=False)
    assert json.loads(claude.target.read_text()) == {}


@pytest.mark.parametrize(
    "content", ["[1]", "{", '{"hooks": []}', '{"hooks": {"Stop": {}}}', "\xff\xfe", '{"a": 1} x']
)
def test_settings_that_cannot_be_read_are_left_as_they_are(content, installer):
    claude = installer("claude-code")
    claude.target.parent.mkdir()
    claude.target.write_bytes(content.encode("latin-1"))
    with pytest.raises(InstallRefused, match=r"settings\.local\.json"):
        claude.install()
    assert claude.target.read_bytes() == content.encode("latin-1")


def test_a_file_that_changed_since_the_diff_was_shown_is_not_written(installer):
    claude = installer("claude-code")
    plan = claude.install()
    claude.target.parent.mkdir()
    claude.target.write_text('{"model": "opus"}')
    with pytest.raises(InstallRefused, match="just been changed"):
        claude.apply(plan, installs=True)
    assert claude.target.read_text() == '{"model": "opus"}'


def test_a_link_stays_a_link_and_a_mode_stays(installer, project, tmp_path):
    (project / ".claude").mkdir()
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    real.chmod(0o600)
    (project / ".claude" / "settings.local.json").symlink_to(real)
    apply(installer("claude-code"))
    assert (project / ".claude" / "settings.local.json").is_symlink()
    assert "hooks" in json.loads(real.read_text())
    assert real.stat().st_mode & 0o777 == 0o600


def test_the_command_works_from_a_place_with_spaces(monkeypatch):
    monkeypatch.setattr("sys.executable", "/opt/my python/bin/python")
    assert command("codex") == "'/opt/my python/bin/python' -P -m agentx hook codex"


@pytest.mark.parametrize("host", [host for host in HOSTS if host != "opencode"])
def test_every_event_of_the_table_is_hooked(host):
    found = entries(host)
    assert set(found) == set(load(host).events)
    assert all(command(host) in json.dumps(one) for one in found.values())


def test_codex_hooks_have_only_the_keys_that_its_file_knows(installer):
    plan = installer("codex").install()
    found = json.loads(plan.after)
    assert set(found) == {"hooks"}
    for groups in found["hooks"].values():
        for group in groups:
            assert set(group) <= {"matcher", "hooks"}
            assert all(set(one) <= {"type", "command", "timeout"} for one in group["hooks"])


def test_the_plugin_for_opencode_is_javascript(installer, tmp_path):
    node = subprocess.run(["node", "--version"], capture_output=True, check=False) if _has("node") else None
    plan = installer("opencode").install()
    text = plan.after.decode()
    assert json.dumps(command("opencode").split()[0]) in text
    assert "@COMMAND@" not in text
    if node is not None and node.returncode == 0:
        (tmp_path / "plugin.mjs").write_text(text)
        subprocess.run(["node", "--check", str(tmp_path / "plugin.mjs")], check=True)


def _has(program):
    return any(os.access(f"{folder}/{program}", os.X_OK) for folder in os.environ["PATH"].split(":"))


def test_the_plugin_folder_for_claude_code_has_the_same_hooks():
    files = claude_plugin()
    assert json.loads(files[".claude-plugin/plugin.json"])["name"] == "agentx"
    assert json.loads(files["hooks/hooks.json"])["hooks"] == {
        event: [one] for event, one in entries("claude-code").items()
    }


def test_a_block_in_agents_md_stays_between_its_marks(installer, project):
    (project / "AGENTS.md").write_text("# Ours\n\nBe brief.")
    apply(installer("agents-md"))
    text = (project / "AGENTS.md").read_text()
    assert text.startswith("# Ours\n\nBe brief.\n\n<!-- agentx:begin hosts -->")
    (project / "AGENTS.md").write_text(text + "\nMore.\n")
    gone = installer("agents-md")
    gone.apply(gone.uninstall(), installs=False)
    assert (project / "AGENTS.md").read_text() == "# Ours\n\nBe brief.\n\nMore.\n"


def test_a_second_work_tree_shares_the_memory_by_choice(project, lexical, environ, tmp_path):
    first = make_beside(project, lexical)
    second = tmp_path / "second"
    second.mkdir()
    assert known_workspace(second, environ) is None
    share(second, project, environ)
    assert known_workspace(second, environ) == first == project / BESIDE
    (second / "deep" / "er").mkdir(parents=True)
    assert known_workspace(second / "deep" / "er", environ) == first


def test_a_project_with_a_memory_of_its_own_is_not_shared_silently(project, lexical, environ, tmp_path):
    make_beside(project, lexical)
    other = tmp_path / "other"
    other.mkdir()
    make_beside(other, lexical)
    with pytest.raises(UsageError, match="memory of its own"):
        share(other, project, environ)


def test_an_option_of_the_hook_is_changed_and_removed_as_well(project, environ, installer):
    for settle in (True, False, True):
        one = HookInstaller("claude-code", "project", project, environ, settle=settle)
        one.apply(one.install(), installs=True)
        assert json.loads(one.target.read_text())["hooks"] == {
            event: [entry] for event, entry in entries("claude-code", settle=settle).items()
        }
    gone = installer("claude-code")
    gone.apply(gone.uninstall(), installs=False)
    assert not gone.target.exists()
