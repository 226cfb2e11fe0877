"""Which workspaces are trusted: those that this user made, as long as their settings with an effect stay."""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import msgspec
import pytest

from agentx import Workspace
from agentx.config import Config, executable, read_config
from agentx.recording.write_path import ReadOnly
from agentx.storage.errors import AgentXError
from agentx.trust.store import StoreUnusable
from agentx.trust.trust import Trust, set_value, trusted_workspaces

MODEL = '[model]\nname = "openai/gpt"\n'
RELEASED = Path(__file__).resolve().parents[2] / "workspaces" / "0.1.0.tar.gz"


# --- where it comes from ---------------------------------------------------------------------------------------------


def test_a_workspace_that_the_user_made_is_trusted_now_and_later(root, user, why):
    """Created here is trusted."""
    assert why(root) == ""
    with Workspace.open(root, settings=user) as ws:
        assert ws.restricted == ws.status().restricted == ""


@pytest.mark.parametrize("way", ["clone", "copy", "move"])
def test_a_workspace_that_came_otherwise_is_restricted(root, tmp_path, why, way):
    """A clone, a copy and what was moved: the path is not the one that was trusted."""
    place = tmp_path / "other"
    if way == "clone":
        subprocess.run(["git", "clone", "-q", str(root), str(place)], check=True)
    elif way == "copy":
        shutil.copytree(root, place, symlinks=True)
    else:
        root.rename(place)
    assert "was not created here by you" in why(place)


def test_another_user_of_the_machine_is_asked_for_themselves(root, why, stranger):
    """Trust is one user's."""
    assert "was not created here by you" in why(root, stranger)


def test_a_link_to_a_workspace_is_that_workspace(root, tmp_path, why):
    """The real path counts."""
    (tmp_path / "link").symlink_to(root)
    assert why(tmp_path / "link") == ""


def test_a_backup_that_is_put_back_is_trusted(root, tmp_path, why, copied):
    """The same history with the same settings at the same path."""
    backup = copied(root)
    shutil.rmtree(root)
    backup.rename(root)
    assert why(root) == ""


def test_another_workspace_at_a_trusted_path_is_restricted(root, user, why, foreign):
    """The first event is another one."""
    theirs = foreign("")
    shutil.rmtree(root)
    theirs.rename(root)
    assert "a different workspace was at this path" in why(root)


def test_a_workspace_of_an_earlier_version_asks_once(tmp_path, user, why):
    """It has no record; after a word of trust it is like any other."""
    with tarfile.open(RELEASED) as archive:
        archive.extractall(tmp_path / "old", filter="data")
    (root,) = (path.parent for path in (tmp_path / "old").rglob("agentx.toml"))
    assert "from an earlier version" in why(root)
    Trust.read(root, user).grant("trusted")
    assert why(root) == ""


def test_a_directory_with_no_event_is_not_trusted(root, user, why):
    """There is nothing that the trust could be bound to."""
    (root / "history.jsonl").write_text("")
    assert why(root)
    with pytest.raises(StoreUnusable, match="no first event"):
        Trust.read(root, user).grant("trusted")


# --- what is changed -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        MODEL,
        "[model]\napi_base = 'http://x'\n",
        "[tools]\nisolation = 'none'\n",
        "[checks.tests]\ncommand = 'x'\n",
        "checks = {tests = {command = 'x'}}\n",
        "[[sources]]\nname = 'a'\npath = '/'\n",
        "[limits]\nmax_cost_usd = 900\n",
        "[director]\nexecutor = ['sh']\n",
        "[cognition]\nresponse_model = 'openai/x'\n",
    ],
)
def test_a_setting_with_an_effect_that_is_changed_by_hand_restricts(root, why, append, text):
    """Whatever the form in which TOML says it; the reason names the setting."""
    if text.startswith("checks ="):
        (root / "agentx.toml").write_text(text)
    else:
        append(text)
    name = next(iter(executable(read_config(root))))
    assert f"agentx.toml changed {name}" in why(root)


@pytest.mark.parametrize(
    "text",
    [
        "# a comment\n\n",
        "[tools]\nwords = ['colour']\n",
        "[memory]\njudge = false\n",
        "[tools]\nisolation = 'auto'\n",
    ],
)
def test_what_has_no_effect_and_a_default_that_is_written_out_keep_trust(root, why, append, text):
    """Trust is bound to what is said, not to how."""
    append(text)
    assert why(root) == ""


@pytest.mark.parametrize(
    "text",
    ["[Model]\nname = 'x'\n", "[model]\nNAME = 'x'\n", "[model]\nname = 'x'\nname = 'y'\n", "[nodel]\n"],
)
def test_other_spellings_and_unknown_settings_are_no_way_round(root, user, append, text):
    """What is no setting is refused by the schema, so nothing can hide behind it."""
    append(text)
    with pytest.raises(AgentXError, match=r"agentx\.toml"):
        Workspace.open(root, settings=user)


def test_the_users_own_change_keeps_trust(root, user, why):
    """`agentx config set` and `Workspace.configure` are the user's word."""
    with Workspace.open(root, settings=user) as ws:
        ws.configure("model.name", "openai/gpt")
        ws.configure("model.name", "openai/other")
    assert why(root) == ""


def test_the_users_change_does_not_bless_what_somebody_else_changed_before(root, user, why, append):
    """An agent's edit in an outer work tree is not trusted by the next `agentx config set`."""
    append("[tools]\nisolation = 'none'\n")
    with Workspace.open(root, settings=user) as ws:
        ws.configure("limits.max_steps", "3")
    assert "tools.isolation" in why(root)


def test_a_change_to_a_restricted_workspace_leaves_it_restricted(root, user, why, copied):
    """One setting that the user sets says nothing of the others."""
    with Workspace.open(place := copied(root), settings=user) as ws:
        ws.configure("model.name", "openai/gpt")
    assert why(place)


def test_an_invalid_file_that_is_set_right_is_not_trusted_by_that(root, user, why):
    """What stood in it was read by nobody."""
    (root / "agentx.toml").write_text("[tools]\nisolation = 'nonsense'\nrun_command = true\n")
    set_value(root, user, "tools.isolation", "none")
    assert "tools.isolation" in why(root)


# --- while it is open ------------------------------------------------------------------------------------------------


def test_an_edit_between_the_check_and_the_use_changes_nothing(root, user, append):
    """What is used is what was checked: the configuration that the process read when it opened."""
    with Workspace.open(root, settings=user) as ws:
        append("[checks.tests]\ncommand = 'touch /tmp/never'\n")
        assert ws.restricted == ""
        assert "No command is set" in ws.tools.call("run_tests", {}).output
    with Workspace.open(root, settings=user) as ws:
        refused = ws.tools.call("run_tests", {})
        assert (refused.status, "checks.tests.command" in refused.output) == ("DENIED", True)


def test_what_is_trusted_is_what_was_shown(root, user, why, append):
    """An edit between the table and the word of trust is not covered by it."""
    append(MODEL)
    with Workspace.open(root, settings=user) as ws:
        append("api_base = 'http://evil'\n")
        ws.trust()
    assert "model.api_base" in why(root)


def test_trust_that_is_revoked_ends_at_once_in_an_open_process(root, user, append):
    """Each use looks at the record."""
    append("[checks.tests]\ncommand = 'true'\n")
    Trust.read(root, user).grant("trusted")
    with Workspace.open(root, settings=user) as ws:
        assert ws.tools.call("run_tests", {}).status == "SUCCEEDED"
        assert Trust.read(root, user).revoke()
        assert ws.tools.call("run_tests", {}).status == "DENIED"


def test_a_pull_that_changes_a_setting_restricts_from_the_next_open_on(root, user, why, tmp_path):
    """The open process goes on with what it checked; nothing of what came is used."""
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "clone", "-q", "--bare", str(root), "bare.git"], check=True)
    subprocess.run([*git, "clone", "-q", "bare.git", "there"], check=True)
    with Workspace.open(tmp_path / "there", settings=user) as there:
        there.configure("checks.tests.command", "touch /tmp/never")
        there.say("Hello.")
        there.push()
    with Workspace.open(root, settings=user) as ws:
        assert ws.pull(url=str(tmp_path / "bare.git")).settings
        assert "No command is set" in ws.tools.call("run_tests", {}).output
    assert "checks.tests.command" in why(root)


# --- forks -----------------------------------------------------------------------------------------------------------


def test_a_fork_of_a_trusted_workspace_is_trusted(root, user, tmp_path, append):
    """It has the same settings and was made by the same user."""
    append(MODEL)
    Trust.read(root, user).grant("trusted")
    with Workspace.open(root, settings=user) as ws, ws.fork(tmp_path / "fork") as fork:
        assert fork.restricted == ""


def test_a_fork_of_a_restricted_workspace_is_restricted(user, tmp_path, foreign):
    """A fork is no way to trust."""
    with Workspace.open(foreign(MODEL), settings=user) as ws, ws.fork(tmp_path / "fork") as fork:
        assert fork.restricted


def test_a_fork_with_the_settings_of_an_earlier_moment_is_restricted(root, user, tmp_path):
    """What the user removed since does not come back by itself."""
    with Workspace.open(root, settings=user) as ws:
        ws.configure("tools.isolation", "none")
        ws.say("One.")
    with Workspace.open(root, settings=user) as ws:
        earlier = ws.state.seq
        ws.configure("tools.isolation", "auto")
    with Workspace.open(root, settings=user) as ws:
        ws.say("Two.")
        ws.flush()
        with ws.fork(tmp_path / "fork", at=earlier) as fork:
            assert fork.restricted


# --- where nothing may be trusted ------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["task/artifacts/state", "task/.agentx", "state"])
def test_a_state_directory_within_an_agents_reach_is_no_place_for_trust(tmp_path, user, place):
    """Agents write artifacts; with an outer work tree these are all around the workspace."""
    reach = msgspec.structs.replace(user, state_dir=tmp_path / place)
    outer = ".." if place == "state" else "artifacts"
    Workspace.create(tmp_path / "task", artifacts=outer, settings=reach).close()
    assert "within reach of this workspace's agents" in Trust.read(tmp_path / "task", reach).why_restricted()
    with pytest.raises(StoreUnusable, match="AGENTX_STATE_DIR"):
        Trust.read(tmp_path / "task", reach).grant("trusted")


def test_a_program_of_an_agents_run_can_neither_trust_nor_approve(root, user):
    """It is not the user, though it runs as them."""
    inside = msgspec.structs.replace(user, environ={**user.environ, "AGENTX_RUN": "x"})
    trust = Trust.read(root, inside)
    for act in (
        lambda: trust.grant("trusted"),
        trust.revoke,
        lambda: trust.approve("c", "t", {}),
        lambda: trust.issue(1),
    ):
        with pytest.raises(StoreUnusable, match="the user must do that outside the run"):
            act()
    with pytest.raises(StoreUnusable):
        set_value(root, inside, "tools.isolation", "none")
    assert read_config(root) == Config()


def test_what_is_trusted_is_listed_with_what_became_of_it(root, user, tmp_path, append):
    """Also what was changed or is gone."""
    Workspace.create(tmp_path / "gone", settings=user).close()
    shutil.rmtree(tmp_path / "gone")
    append(MODEL)
    whys = {Path(record.path).name: why for record, why in trusted_workspaces(user)}
    assert "model.name" in whys["task"]
    assert "nothing exists at its path" in whys["gone"]


# --- guards and the outer work tree ----------------------------------------------------------------------------------


def test_a_restricted_workspace_loosens_no_guard(user, foreign):
    """Limits, secrets and isolation are not looser than the defaults; what tightens one stays."""
    toml = "[limits]\nmax_cost_usd = 900\nmax_steps = 3\n[secrets]\nartifacts = 'allow'\n[tools]\nisolation = 'none'\n"
    with Workspace.open(foreign(toml), settings=user) as ws:
        assert (ws.config.limits.max_cost_usd, ws.config.limits.max_steps) == (5.0, 3)
        assert (ws.config.secrets.artifacts, ws.config.tools.isolation) == ("confirm", "auto")
        assert ws.tools.call(
            "write_file", {"path": "a.env", "content": "KEY=ghp_" + "a" * 36}
        ).approval_needed


def test_an_approval_that_was_dropped_by_hand_is_asked_for_still(root, user, append):
    """A pull or an edit that takes a tool out of tools.approve is not followed until a person agrees."""
    append("[tools]\napprove = ['write_file']\n")
    Trust.read(root, user).grant("trusted")
    (root / "agentx.toml").write_text("")
    with Workspace.open(root, settings=user) as ws:
        assert "tools.approve" in ws.restricted
        assert ws.tools.call("write_file", {"path": "a", "content": "x"}).approval_needed


def test_artifacts_outside_of_a_restricted_workspace_are_neither_read_nor_recorded(
    tmp_path, user, stranger, why
):
    """An archive that is unpacked in a project must not commit the project's files by a look at its status."""
    (tmp_path / "project").mkdir()
    Workspace.create(tmp_path / "project" / ".task", artifacts="..", settings=stranger).close()
    (tmp_path / "project" / ".env").write_text("KEY=secret")
    with Workspace.open(tmp_path / "project" / ".task", settings=user) as ws:
        assert ws.status().outside == ()
        assert ws.tools.call("read_file", {"path": ".env"}).status == "FAILED"
        with pytest.raises(ReadOnly, match="its files are outside"):
            ws.say("Hello.")
        head = ws.engine.git.head
        ws.trust()
    with Workspace.open(tmp_path / "project" / ".task", settings=user) as ws:
        assert [change.path for change in ws.status().outside] == [".env"]
        assert ws.engine.git.head != head


# --- odd values and places -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["inf", "1e308", "1" + "0" * 30])
def test_a_number_of_any_size_is_kept_exactly(root, user, why, append, value):
    """No number is beyond the record, and another one is another setting."""
    append(f"[limits]\nmax_cost_usd = {value}\n")
    Trust.read(root, user).grant("trusted")
    assert why(root) == ""
    (root / "agentx.toml").write_text("[limits]\nmax_cost_usd = 7.0\n")
    assert why(root)


def test_settings_that_are_too_large_are_not_trusted(root, user, append):
    """In a sentence; nothing is written that could not be read again."""
    append(f"[checks.tests]\ncommand = '{'x' * 2_000_000}'\n")
    with pytest.raises(StoreUnusable, match="too large"):
        Trust.read(root, user).grant("trusted")


def test_a_path_that_is_not_utf_8_is_a_path_like_any_other(tmp_path, user, why):
    """File names are bytes."""
    try:
        (place := Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))).mkdir()
    except OSError:
        pytest.skip("this file system takes only UTF-8")
    Workspace.create(place / "task", settings=user).close()
    assert why(place / "task") == ""
    assert len(trusted_workspaces(user)) == 1
