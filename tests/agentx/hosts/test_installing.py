"""Hooks are added to a host's settings as text, and removed again to the byte."""

import json
import os
import subprocess
import sys
import tomllib

import pytest

from agentx.core.beside import BESIDE
from agentx.hosts.host import HOSTS, load
from agentx.hosts.setup import jsonc
from agentx.hosts.setup.installing import HookInstaller, InstallRefused, claude_plugin, command, entries
from agentx.hosts.setup.mcp_entry import EntryRefused, found_in
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
    def make(host, scope="project", *, server=False, workspace=None):
        return HookInstaller(host, scope, project, environ, server=server, workspace=workspace)

    return make


def tree(folder):
    return {
        path.relative_to(folder): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
        if ".git" not in path.parts
    }


def apply(installer):
    plans = installer.install()
    for plan in plans:
        installer.apply(plan, installs=True)
    return plans


def remove(installer):
    for plan in installer.uninstall():
        installer.apply(plan, installs=False)


@pytest.mark.parametrize("server", [False, True])
@pytest.mark.parametrize("scope", ["project", "user"])
@pytest.mark.parametrize("host", TARGETS)
def test_an_uninstall_leaves_no_trace(host, scope, server, installer, project, environ, tmp_path):
    if (host, scope) == ("agents-md", "user"):
        with pytest.raises(UsageError, match="--project"):
            installer(host, scope)
        return
    (tmp_path / "home").mkdir()
    before = tree(tmp_path)
    apply(installer(host, scope, server=server))
    assert installer(host, scope).target.exists()
    gone = installer(host, scope)
    remove(gone)
    after = {path: content for path, content in tree(tmp_path).items() if path.parts[0] != "state"}
    assert after == before
    assert not list((tmp_path / "state").rglob("*.json"))


@pytest.mark.parametrize("host", TARGETS)
def test_a_second_install_changes_nothing(host, installer):
    apply(installer(host, server=True))
    again = installer(host, server=True).install()
    assert all(plan.before == plan.after for plan in again)


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
    remove(claude)
    assert claude.target.read_text("utf-8") == content


def test_of_a_file_that_was_changed_since_only_our_entries_go(installer):
    claude = installer("claude-code")
    claude.target.parent.mkdir()
    claude.target.write_text(WITH_COMMENTS)
    apply(claude)
    claude.target.write_text(claude.target.read_text().replace('"opus"', '"haiku"'))
    remove(claude)
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
    remove(claude)
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
    (plan,) = claude.install()
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
    (plan,) = installer("codex").install()
    found = json.loads(plan.after)
    assert set(found) == {"hooks"}
    for groups in found["hooks"].values():
        for group in groups:
            assert set(group) <= {"matcher", "hooks"}
            assert all(set(one) <= {"type", "command", "timeout"} for one in group["hooks"])


def test_the_plugin_for_opencode_is_javascript(installer, tmp_path):
    node = subprocess.run(["node", "--version"], capture_output=True, check=False) if _has("node") else None
    (plan,) = installer("opencode").install()
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
    remove(gone)
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
        apply(one)
        assert json.loads(one.target.read_text())["hooks"] == {
            event: [entry] for event, entry in entries("claude-code", settle=settle).items()
        }
    gone = installer("claude-code")
    remove(gone)
    assert not gone.target.exists()


# --- the MCP server -------------------------------------------------------------------------------------

PLACES = {
    ("claude-code", "project"): "home/.claude.json",
    ("claude-code", "user"): "home/.claude.json",
    ("codex", "project"): "my project/.codex/config.toml",
    ("codex", "user"): "home/.codex/config.toml",
    ("gemini-cli", "project"): "my project/.gemini/settings.json",
    ("gemini-cli", "user"): "home/.gemini/settings.json",
    ("cursor", "project"): "my project/.cursor/mcp.json",
    ("cursor", "user"): "home/.cursor/mcp.json",
    ("opencode", "project"): "my project/opencode.json",
    ("opencode", "user"): "home/.config/opencode/opencode.json",
}


def entry(installer):
    place = installer.entry_place
    return found_in(place.path.read_text("utf-8"), place)


def words(found):
    return [*found["command"]] if isinstance(found["command"], list) else [found["command"], *found["args"]]


@pytest.mark.parametrize(("host", "scope"), PLACES)
def test_the_mcp_server_is_registered_where_the_host_reads_it(host, scope, installer, project, tmp_path):
    workspace = project / BESIDE if scope == "project" else None
    one = installer(host, scope, server=True, workspace=workspace)
    apply(one)
    path = tmp_path / PLACES[host, scope]
    assert path == one.entry_place.path
    found = entry(one)
    about = ["-C", str(workspace)] if workspace else []
    assert words(found) == [sys.executable, "-P", "-m", "agentx", "mcp", *about]
    assert set(found) <= {"type", "command", "args"}  # no token
    text = path.read_text("utf-8")
    raw = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    if (host, scope) == ("claude-code", "project"):
        raw = raw["projects"][str(project)]
    assert found in [raw.get(name, {}).get("agentx") for name in ("mcpServers", "mcp_servers", "mcp")]


def test_the_registered_command_serves_the_projects_memory(project, lexical, environ, installer):
    workspace = make_beside(project, lexical)
    one = installer("codex", server=True, workspace=workspace)
    apply(one)
    asked = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    environment = {**os.environ, "AGENTX_NO_SERVER": "1", "AGENTX_STATE_DIR": environ["AGENTX_STATE_DIR"]}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(words(entry(one)), env=environment, cwd="/", **pipes) as running:
        running.stdin.write(f"{json.dumps(asked)}\n")
        running.stdin.flush()
        answer = json.loads(running.stdout.readline())
        running.stdin.close()
    assert answer["result"]["serverInfo"]["name"] == "agentx"


TOML = """\
# mine
model = "o3"   # the large one

[mcp_servers.other] # another
command = "x"

# about features
[features]
hooks = true
"""


@pytest.mark.parametrize("content", [TOML, "", "# only this", TOML.rstrip("\n"), TOML + "\n\n"])
def test_toml_stays_to_the_byte_and_comes_back(content, installer):
    one = installer("codex", server=True)
    place = one.entry_place.path
    place.parent.mkdir()
    place.write_text(content)
    apply(one)
    assert place.read_text().startswith(content)
    assert words(entry(one))
    remove(installer("codex"))
    assert place.read_text() == content


def test_of_a_toml_file_that_was_changed_since_only_our_table_goes(installer):
    one = installer("codex", server=True)
    place = one.entry_place.path
    place.parent.mkdir()
    place.write_text(TOML)
    apply(one)
    own = place.read_text() + "startup_timeout_sec = 20\n\n# last\n[profiles.a]\nmodel = 'x'\n"
    place.write_text(own)
    moved = installer("codex", server=True, workspace=one.project / "elsewhere")
    apply(moved)
    assert entry(moved)["startup_timeout_sec"] == 20
    assert words(entry(moved))[-1].endswith("elsewhere")
    place.write_text(place.read_text().replace('"o3"', '"o4"'))
    remove(installer("codex"))
    text = place.read_text()
    assert "agentx" not in text
    assert text == TOML.replace('"o3"', '"o4"') + "\n# last\n[profiles.a]\nmodel = 'x'\n"


def test_a_toml_file_in_which_the_table_cannot_be_added_is_left(installer):
    one = installer("codex", server=True)
    place = one.entry_place.path
    place.parent.mkdir()
    for content in ('mcp_servers = { other = { command = "x" } }\n', "a = ", "mcp_servers = 1\n"):
        place.write_text(content)
        with pytest.raises(EntryRefused, match=r"config\.toml"):
            one.install()
        assert place.read_text() == content


def test_an_entry_of_the_name_that_is_not_ours_stays(installer):
    for host in HOSTS:
        one = installer(host, server=True)
        place = one.entry_place.path
        place.parent.mkdir(parents=True, exist_ok=True)
        own = {"command": "agentx", "args": ["mcp", "--profile", "storage"]}
        value = {"agentx": own}
        for name in reversed(one.entry_place.names[:-1]):
            value = {name: value}
        toml = '[mcp_servers.agentx]\ncommand = "agentx"\nargs = ["mcp", "--profile", "storage"]\n'
        content = toml if place.suffix == ".toml" else json.dumps(value)
        place.write_text(content)
        assert one.keeps_other_entry()
        apply(one)
        assert entry(one) == own
        place.write_text(place.read_text() + "\n")
        remove(installer(host))
        assert entry(one) == own


@pytest.mark.parametrize("host", [host for host in HOSTS if host != "codex"])
def test_settings_with_comments_keep_them_beside_the_mcp_server(host, installer):
    one = installer(host, server=True)
    place = one.entry_place.path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(WITH_COMMENTS)
    apply(one)
    assert "// my settings" in place.read_text()
    assert words(entry(one))
    moved = installer(host, server=True, workspace=one.project / "elsewhere")
    place.write_text(place.read_text().replace('"opus"', '"haiku"'))
    apply(moved)
    assert words(entry(moved))[-1].endswith("elsewhere")
    place.write_text(place.read_text().replace('"haiku"', '"sonnet"'))
    remove(installer(host))
    assert "agentx" not in place.read_text()
    assert '"sonnet", /* the large one */' in place.read_text()


def test_claude_codes_own_file_follows_the_variable_of_its_directory(project, environ, tmp_path):
    moved = {**environ, "CLAUDE_CONFIG_DIR": str(tmp_path / "cc")}
    one = HookInstaller("claude-code", "project", project, moved, server=True)
    assert one.entry_place.path == tmp_path / "cc" / ".claude.json"


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_projects_that_share_claude_codes_file_are_uninstalled_each_alone(order, project, environ, tmp_path):
    (tmp_path / "home").mkdir()
    file = tmp_path / "home" / ".claude.json"
    file.write_text('{"numStartups": 3}\n')
    other = tmp_path / "other"
    other.mkdir()
    scopes = [("project", project), ("project", other), ("user", project)]
    installers = [
        HookInstaller("claude-code", scope, folder, environ, server=True) for scope, folder in scopes
    ]
    for one in installers:
        apply(one)
    for done, number in enumerate(order):
        assert entry(installers[number]) is not None
        remove(installers[number])
        left = [installers[one] for one in order[done + 1 :]]
        assert entry(installers[number]) is None
        assert all(entry(one) is not None for one in left)
    assert json.loads(file.read_text())["numStartups"] == 3
    assert "agentx" not in file.read_text()
