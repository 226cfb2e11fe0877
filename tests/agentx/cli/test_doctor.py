"""What the doctor finds, on workspaces that are really broken."""

import os

import pytest

from agentx.quality import confine
from agentx.settings import read_settings
from agentx.storage.extras import EXTRAS, Extra


def marks(done):
    return {check["name"]: check["mark"] for check in done.json["checks"]}


def test_a_whole_workspace_is_well(call, root):
    done = call("doctor", "--json", "-C", root)
    assert done.code == 0, done
    assert done.json["healthy"]
    found = marks(done)
    for name in ("python", "git", "workspace", "rights", "config", "history", "objects", "state", "index"):
        assert found[name] == "ok", (name, done.json)


def test_it_speaks_where_there_is_no_workspace(call):
    done = call("doctor", "--json")
    assert done.code == 0
    assert marks(done)["workspace"] == "warning"


def test_each_extra_is_listed_with_the_command_where_it_is_missing(call, monkeypatch):
    done = call("doctor", "--json")
    (*found,) = (one for one in done.json["checks"] if one["name"] == "extra")
    assert [(one["mark"], one["todo"]) for one in found] == [("ok", "")] * len(EXTRAS)
    monkeypatch.setattr(Extra, "missing", lambda extra: extra.packages)
    done = call("doctor", "--json")
    (*found,) = (one for one in done.json["checks"] if one["name"] == "extra")
    assert [(one["mark"], one["todo"]) for one in found] == [("absent", extra.command) for extra in EXTRAS]
    assert all(extra.without in one["what"] for extra, one in zip(EXTRAS, found, strict=True))
    assert (done.code, "embeddings" in marks(done)) == (0, False)  # nothing is wrong with that


def test_a_runtime_directory_that_others_can_enter_is_named_with_the_command_that_closes_it(
    call, tmp_path, monkeypatch
):
    place = tmp_path / "open"
    place.mkdir(mode=0o755)
    monkeypatch.setenv("AGENTX_RUNTIME_DIR", str(place))
    monkeypatch.setenv("AGENTX_NO_SERVER", "")
    (found,) = (one for one in call("doctor", "--json").json["checks"] if one["name"] == "server")
    assert found["mark"] == "warning"
    assert f"chmod 700 {place}" in found["what"]
    place.chmod(0o700)
    assert marks(call("doctor", "--json"))["server"] == "ok"


def test_a_damaged_line_of_the_history_is_found_and_named(call, root):
    log = root / "history.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"requirements", b"requirementz")
    log.write_bytes(b"".join(lines))
    done = call("doctor", "-C", root)
    assert done.code == 1
    assert "✗ history" in done.out
    assert "history.jsonl:3" in done.out
    assert "→ " in done.out


def test_a_damaged_object_is_found_before_it_can_stop_the_engine(call, root):
    objects = sorted(path for path in (root / ".git" / "objects").glob("??/*") if path.stat().st_size > 40)
    objects[0].chmod(0o644)
    objects[0].write_bytes(objects[0].read_bytes()[:20])
    done = call("doctor", "--json", "-C", root)
    assert done.code == 1
    assert marks(done)["objects"] == "failure"
    assert "index" not in marks(done)


@pytest.mark.parametrize("text", ["model = ", "[model]\nnmae = 3\n"])
def test_settings_that_cannot_be_read_are_found(call, root, text):
    (root / "agentx.toml").write_text(text)
    done = call("doctor", "--json", "-C", root)
    assert done.code == 1
    assert marks(done)["config"] == "failure"


def test_a_source_that_is_not_there_is_found(call, root, trusted):
    with (root / "agentx.toml").open("a") as file:
        file.write('\n[[sources]]\nname = "pool"\npath = "/nowhere/at/all"\n')
    trusted(root)
    assert marks(call("doctor", "--json", "-C", root))["source"] == "failure"


def test_a_model_without_its_key_and_a_script_that_is_not_there_are_found(call, root, monkeypatch):
    call("config", "set", "model.name", "openai/gpt-4o-mini", "-C", root)
    assert marks(call("doctor", "--json", "-C", root))["model"] == "warning"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0")
    assert marks(call("doctor", "--json", "-C", root))["model"] == "ok"
    call("config", "set", "model.name", "script:nowhere.jsonl", "-C", root)
    assert marks(call("doctor", "--json", "-C", root))["model"] == "failure"


def test_without_git_and_without_a_model_there_are_hints_and_no_failure(call, root, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("AGENTX_CACHE_DIR", str(tmp_path / "cache"))
    done = call("doctor", "--json", "-C", root)
    assert done.code == 0, done
    found = marks(done)
    assert (found["git"], found["embeddings"]) == ("warning",) * 2
    todo = {check["name"]: check["todo"] for check in done.json["checks"]}
    assert todo["embeddings"] == "agentx models install minilm"


def test_a_git_program_that_does_not_work_is_a_warning(call, root, monkeypatch, tmp_path):
    broken = tmp_path / "bin" / "git"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho 'libz.so is missing' >&2\nexit 127\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(broken.parent))
    (check,) = [one for one in call("doctor", "--json", "-C", root).json["checks"] if one["name"] == "git"]
    assert (check["mark"], "libz.so is missing" in check["what"]) == ("warning", True)


def test_the_isolation_of_commands_is_found(call, root, monkeypatch):
    """Without bubblewrap Landlock is found, where there is one; without both, that commands can do what the user can."""
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(confine, "why_unavailable", lambda: None)
    monkeypatch.setattr(confine, "landlock_abi", lambda: 7)
    assert marks(call("doctor", "--json", "-C", root))["isolation"] == "ok"
    monkeypatch.setattr(confine, "landlock_abi", lambda: 4)
    assert marks(call("doctor", "--json", "-C", root))["isolation"] == "warning"
    monkeypatch.setattr(confine, "why_unavailable", lambda: "this system has no Landlock")
    done = call("doctor", "--json", "-C", root)
    (found,) = [check for check in done.json["checks"] if check["name"] == "isolation"]
    assert (found["mark"], "commands can do what you can" in found["what"]) == ("warning", True)


def test_lines_that_were_set_aside_are_told(call, root):
    (root / "history").mkdir(exist_ok=True)
    (root / "history" / "orphans.jsonl").write_text("{}\n")
    assert marks(call("doctor", "--json", "-C", root))["orphans"] == "warning"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_missing_rights_are_found(call, root):
    (root / "history.jsonl").chmod(0o444)
    assert marks(call("doctor", "--json", "-C", root))["rights"] == "failure"


def test_the_environment_says_whether_tracebacks_are_shown():
    assert read_settings({"AGENTX_DEBUG": "1"}).debug
    assert not read_settings({"AGENTX_DEBUG": "0"}).debug
    assert not read_settings({}).debug
