"""`agentx trust`: a table of what would run, be called and be read, and a person's word on it."""

import json
import subprocess

import pytest


@pytest.fixture
def clone(root, call, tmp_path):
    """A clone of a workspace whose author named a model, a check, a schedule and a capability."""
    call("config", "set", "model.name", "openai/tiny", "-C", root)
    call("config", "set", "checks.tests.command", "touch ran", "-C", root)
    call("schedule", "add", "0 8 * * 1", "Read the mail.", "-C", root)
    call("agent", "capability", "add", "shell", "--command", "echo here", "-C", root)
    subprocess.run(["git", "clone", "-q", str(root), str(tmp_path / "clone")], check=True)
    return tmp_path / "clone"


def test_what_a_person_trusts_is_shown_before_they_are_asked(call, clone):
    """Setting, effect and value; schedules and capabilities of the history too."""
    shown = call("trust", "--show", "-C", clone)
    assert shown.code == 0
    assert "Restricted: it was not created here by you" in shown.out
    for row in (
        "model.name              gets your key and messages  openai/tiny",
        "checks.tests.command    runs a program              touch ran",
        "schedule read-the-mail  runs a program              have an agent do at 0 8 * * 1: Read the mail.",
        "run `echo here`",
    ):
        assert row in shown.out
    assert "Restricted" in call("trust", "--show", "-C", clone).out


def test_without_a_terminal_it_wants_a_word_on_the_command_line(call, clone):
    """Nothing is trusted by accident, and scripts can say --yes."""
    refused = call("trust", "-C", clone)
    assert (refused.code, "agentx trust --yes" in refused.err) == (2, True)
    assert call("status", "--json", "-C", clone).json["restricted"]
    assert "✓ Trusted" in call("trust", "--yes", "-C", clone).out
    assert call("status", "--json", "-C", clone).json["restricted"] == ""
    assert "[" in call("agent", "capability", "check", "--json", "-C", clone).out


def test_what_changed_since_is_marked_with_what_it_was(call, clone):
    """A pull or a hand that changes a setting is seen in the table."""
    call("trust", "--yes", "-C", clone)
    toml = clone / "agentx.toml"
    toml.write_text(toml.read_text().replace("touch ran", "curl evil") + '[tools]\nisolation = "none"\n')
    shown = call("trust", "--show", "-C", clone)
    assert "agentx.toml changed checks.tests.command, tools.isolation since you trusted it" in shown.out
    assert "changed  curl evil" in shown.out
    assert "was touch ran" in shown.out
    claims = {claim["name"]: claim for claim in call("trust", "--show", "--json", "-C", clone).json["claims"]}
    assert claims["tools.isolation"]["change"] == "new"
    assert claims["model.name"]["change"] == ""


def test_trust_can_be_taken_back_and_is_listed(call, clone, root):
    """`list` says what became of each."""
    call("trust", "--yes", "-C", clone)
    listed = {one["path"]: one["restricted"] for one in call("trust", "list", "--json").json}
    assert listed[str(clone)] == listed[str(root)] == ""
    assert "Trusted no more" in call("trust", "--revoke", "-C", clone).out
    assert call("status", "--json", "-C", clone).json["restricted"]
    assert "It was not trusted" in call("trust", "--revoke", "-C", clone).out


def test_a_restricted_workspace_says_so_in_status_run_and_doctor(call, clone, script, monkeypatch):
    """Once, with the reason, and with what to do."""
    assert call("status", "-C", clone).out.count("agentx trust") == 1
    checks = {check["name"]: check for check in call("doctor", "--json", "-C", clone).json["checks"]}
    assert (checks["trust"]["mark"], "model" in checks) == ("warning", False)
    refused = call("run", "Hello.", "-C", clone)
    assert (refused.code, refused.err.count("This workspace is restricted")) == (1, 1)
    assert "model.name" in refused.err
    own = call("run", "Hello.", "--model", script({"answer": "Hello."}), "-C", clone)
    assert (own.code, own.err.count("This workspace is restricted")) == (0, 1)


def test_commands_without_isolation_show_what_they_can_do(call, clone):
    """The sentence stands in the table and in the record."""
    shown = call("trust", "--commands", "--yes", "-C", clone)
    assert "This command can read your keys and act as you." in shown.out
    assert [one["commands"] for one in call("trust", "list", "--json").json if one["path"] == str(clone)] == [
        True
    ]


def test_an_agents_run_can_neither_trust_nor_configure(call, clone, monkeypatch):
    """Its programs run as the user and are not the user."""
    monkeypatch.setenv("AGENTX_RUN", "x")
    for words in (("trust", "--yes"), ("trust", "--revoke"), ("trust", "key", "--add", "A" * 43 + "=")):
        refused = call(*words, "-C", clone)
        assert refused.code != 0, words
    assert call("config", "set", "model.name", "openai/other", "-C", clone).code != 0
    assert "openai/tiny" in (clone / "agentx.toml").read_text()


def test_a_worker_accepts_what_a_person_issued(call, clone, root, tmp_path, monkeypatch):
    """The record goes by a file, the key by the environment."""
    line = call("trust", "issue", "--for", "1", "-C", root).out
    key = call("trust", "key", "--json").json["key"]
    assert json.loads(line)["key"] == key
    (tmp_path / "records").write_text(line)
    monkeypatch.setenv("AGENTX_STATE_DIR", str(tmp_path / "worker"))
    assert call("status", "--json", "-C", clone).json["restricted"]
    monkeypatch.setenv("AGENTX_TRUST_RECORD", str(tmp_path / "records"))
    assert "not accepted here" in call("status", "--json", "-C", clone).json["restricted"]
    monkeypatch.setenv("AGENTX_TRUSTED_KEYS", key)
    assert call("status", "--json", "-C", clone).json["restricted"] == ""
    monkeypatch.delenv("AGENTX_TRUSTED_KEYS")
    call("trust", "key", "--add", key)
    assert call("status", "--json", "-C", clone).json["restricted"] == ""


def test_what_a_hostile_setting_says_cannot_steer_the_terminal(call, root):
    """Control characters in a value are not printed."""
    (root / "agentx.toml").write_text('[checks.tests]\ncommand = "curl evil \\u001b[2K\\r echo harmless"\n')
    shown = call("trust", "--show", "-C", root)
    assert "curl evil" in shown.out
    assert "\x1b" not in shown.out
    assert "\r" not in shown.out
