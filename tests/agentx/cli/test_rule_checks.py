"""``agentx memory check`` and ``memory add --check``: checks that a person writes, changes and tries."""

import io
import re
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.memory.editing import proposed
from agentx.storage.events.types import AgentMessageSent, Body, Draft
from agentx.synthesis.enforcement.check_file import KINDS
from agentx.synthesis.memory.items import Scope, checks_of

NO_PRINT = "kind: text\npatterns: ['\\bprint\\(']\npaths: src/**\n"


@pytest.fixture
def yaml_file(tmp_path):
    path = tmp_path / "check.yaml"
    path.write_text(NO_PRINT)
    return path


@pytest.fixture
def coded(root):
    """The workspace with two files that print, one of them later mended, and a user's own file."""
    with Workspace.open(root) as ws:
        ws.tools.write_file("src/a.py", "print(1)\n")
        ws.tools.write_file("src/b.py", "print(2)\n")
        ws.tools.write_file("src/b.py", "x = 2\n")
    (root / "artifacts" / "src" / "c.py").write_text("print(3)\n")
    return root


def checks(root, name):
    with Workspace.open(root) as ws:
        return checks_of(ws.state.items[name])


@pytest.mark.parametrize("kind", ["constraint", "rejection", "rule"])
def test_a_rule_is_added_with_a_check_and_denies(root, call, yaml_file, kind):
    done = call("memory", "add", "No prints.", "--kind", kind, "--check", yaml_file, "--json", "-C", root)
    assert done.code == 0, done.err
    with Workspace.open(root) as ws:
        result = ws.tools.call("write_file", {"path": "src/a.py", "content": "print(1)"})
        assert (result.status, result.denied_by) == ("DENIED", (done.json[0]["id"],))
        assert ws.tools.call("write_file", {"path": "a.py", "content": "print(1)"}).status == "SUCCEEDED"


def test_a_kind_without_checks_is_refused(root, call, yaml_file):
    done = call("memory", "add", "No prints.", "--kind", "decision", "--check", yaml_file, "-C", root)
    assert (done.code, "A decision cannot have checks" in done.err) == (2, True)


def test_what_is_shown_can_be_set_again(root, call, yaml_file, monkeypatch):
    call("memory", "check", "c-3", "--set", yaml_file, "-C", root)
    before = checks(root, "c-3")
    shown = call("memory", "check", "c-3", "-C", root).out
    assert shown.startswith("# c-3: ")
    monkeypatch.setattr("sys.stdin", io.StringIO(shown))
    assert call("memory", "check", "c-3", "--set", "-", "-C", root).code == 0
    assert checks(root, "c-3") == before


def test_an_item_shows_its_checks_in_a_line_each(root, call, tmp_path):
    path = tmp_path / "check.yaml"
    path.write_text("kind: decorator\ndecorator: login_required\nmode: warn")
    shown = call("memory", "check", "c-3", "--set", path, "-C", root).out
    assert "decorator (warn, by hand): decorator login_required" in shown


def test_the_mode_changes_and_decides(root, call):
    assert call("memory", "check", "c-3", "--mode", "observe", "-C", root).code == 0
    with Workspace.open(root) as ws:
        assert ws.tools.call("write_file", {"path": "requirements.txt", "content": "x"}).status == "SUCCEEDED"
    assert call("memory", "edit", "c-3", "Never create a setup.py file.", "-C", root).code == 0
    (check,) = checks(root, "c-3")
    assert ("setup.py" in check.paths, check.mode) == (True, "observe"), "compiled again, in the same mode"
    assert "Choose from observe" in call("memory", "check", "c-3", "--mode", "never", "-C", root).err


def test_a_check_by_hand_outlives_an_edit_of_the_text(root, call, yaml_file):
    call("memory", "check", "c-3", "--set", yaml_file, "-C", root)
    before = checks(root, "c-3")
    call("memory", "edit", "c-3", "Never create a setup.py file.", "-C", root)
    assert checks(root, "c-3") == before
    assert call("memory", "check", "c-3", "--compile", "-C", root).code == 0
    assert "setup.py" in checks(root, "c-3")[0].paths


def test_checks_can_be_removed(root, call):
    assert call("memory", "check", "c-3", "--none", "-C", root).code == 0
    assert checks(root, "c-3") == ()
    assert call("memory", "check", "c-3", "-C", root).out == "c-3 has no check: it is only shown.\n"
    assert "has no check" in call("memory", "check", "c-3", "--try", "-C", root).err


def test_a_wish_is_enforced_once_a_person_writes_its_check(root, call, yaml_file):
    with Workspace.open(root) as ws:
        ws.say("I prefer logging over print in src.")
        (wish,) = (one for one in ws.memory("constraint") if one.detail.modality == "prefer")
    call("memory", "check", wish.id, "--set", yaml_file, "-C", root)
    with Workspace.open(root) as ws:
        assert ws.tools.call("write_file", {"path": "src/a.py", "content": "print(1)"}).status == "DENIED"


def test_a_trial_names_files_writes_and_commands(coded, call, yaml_file):
    with Workspace.open(coded) as ws:
        before = ws.state.seq
    done = call("memory", "add", "No prints.", "--check", yaml_file, "--try", "-C", coded)
    assert done.out.splitlines()[-1] == (
        "Would deny 2 of 4 files today; 2 of 5 writes, 0 of 0 commands and 0 of 0 answers in history."
    )
    assert "src/a.py:1" in done.out
    assert "src/c.py:1" in done.out, "the user's own file is there, though no agent wrote it"
    with Workspace.open(coded) as ws:
        assert [event.type for event in ws.events(before)] == ["ArtifactChanged"]


def test_a_trial_names_final_answers_and_each_mode(coded, call, tmp_path):
    with Workspace.open(coded) as ws:
        for text, final in (("It prints.", True), ("Nothing.", True), ("I print now.", False)):
            ws.record(Draft(data=AgentMessageSent(Body(text), final=final), actor="agent:main"))
    path = tmp_path / "checks.yaml"
    path.write_text(
        "- kind: text\n  phrases: [prints]\n  mode: warn\n- kind: size\n  at_most: 0\n  mode: fix\n"
    )
    done = call("memory", "check", "c-3", "--set", path, "--try", "-C", coded)
    assert "correct or deny 4 of 4 files today" in done.out
    assert "1 of 2 answers in history" in done.out
    (row,) = (line for line in done.out.splitlines() if line.startswith("answer"))
    assert "It prints." in row
    assert row.rstrip().endswith("warn")


def test_a_trial_of_paths_leaves_history_out(coded, call, yaml_file):
    for path in ("src/a.py", "src", "./artifacts/src/", "**/a.py"):
        done = call("memory", "check", "c-3", path, "--set", yaml_file, "--try", "--json", "-C", coded)
        assert set(done.json["tried"]) == {"file"}
        assert done.json["broken"]["file"] >= 1
    assert "No artifact matches" in call("memory", "check", "c-3", "nope.py", "--try", "-C", coded).err
    assert checks(coded, "c-3")[0].paths == ("**/requirements.txt", "requirements.txt"), "nothing was set"


def test_a_trial_skips_binary_files(coded, call, yaml_file):
    (coded / "artifacts" / "src" / "d.py").write_bytes(b"\0print(")
    done = call("memory", "check", "c-3", "--set", yaml_file, "--try", "--json", "-C", coded)
    assert done.json["tried"]["file"] == 4


def test_place_that_the_words_name_is_the_scope_and_follows_an_edit(root, call):
    added = call("memory", "add", "In infra/, never run terraform apply.", "--json", "-C", root).json[0]
    assert added["scope"]["paths"] == ["infra/**"]
    edited = call("memory", "edit", added["id"], "In web/, never run terraform apply.", "--json", "-C", root)
    assert edited.json[0]["scope"]["paths"] == ["web/**"]
    other = call("memory", "add", "Never run terraform apply.", "--path", "a/**", "--json", "-C", root).json[
        0
    ]
    edited = call("memory", "edit", other["id"], "In web/, never run terraform.", "--json", "-C", root)
    assert edited.json[0]["scope"]["paths"] == ["a/**"]


def test_compiling_again_keeps_the_mode(root, call):
    call("memory", "check", "c-3", "--mode", "warn", "-C", root)
    call("memory", "check", "c-3", "--compile", "-C", root)
    assert [check.mode for check in checks(root, "c-3")] == ["warn"]
    call("memory", "check", "c-3", "--compile", "--mode", "deny", "-C", root)
    assert [check.mode for check in checks(root, "c-3")] == ["deny"]


def test_options_that_contradict_are_refused(root, call, yaml_file):
    for options in (("--none", "--compile"), ("--set", yaml_file, "--none"), ("a.py",), ("--none", "--try")):
        assert call("memory", "check", "c-3", *options, "-C", root).code == 2
    missing = call("memory", "check", "c-3", "--set", "nope.yaml", "-C", root)
    assert "Cannot read 'nope.yaml' as text: No such file or directory." in missing.err


def test_a_rule_says_whether_it_is_checked(root, call):
    call("memory", "add", "Be kind to readers.", "-C", root)
    listed = call("memory", "list", "--kind", "constraint", "-C", root).out
    assert [" checked " in line for line in listed.splitlines()[1:]] == [True, False]
    assert [" shown only " in line for line in listed.splitlines()[1:]] == [False, True]
    context = call("context", "write the outlook", "-C", root).out
    assert "Be kind to readers. (shown only)" in context
    assert "requirements.txt file. (shown only)" not in context
    gate = call("gate", "pre", "be kind to readers", "-C", root).out
    assert "shown only" in gate


def test_a_rejection_is_not_shown_only(root, call):
    """The gate compares each action with it."""
    call("memory", "add", "Redis for caching", "--kind", "rejection", "-C", root)
    assert "shown only" not in call("memory", "list", "-C", root).out


def test_the_status_counts_checked_rules_by_their_mode(root, call, yaml_file):
    assert "1 rule: 1 checked, 0 shown only" in call("status", "-C", root).out
    call("memory", "add", "Be kind to readers.", "-C", root)
    call("memory", "add", "No prints.", "--kind", "rule", "--check", yaml_file, "-C", root)
    call("memory", "check", "c-3", "--mode", "observe", "-C", root)
    assert "3 rules: 2 checked (1 observe), 1 shown only" in call("status", "-C", root).out
    assert call("status", "--json", "-C", root).json["rules"] == {"observe": 1, "shown_only": 1, "deny": 1}


def test_the_examples_in_the_docs_compile_to_the_kind_of_their_row():
    page = Path(__file__).parents[3] / "docs" / "constraints.md"
    rows = re.findall(r"^\| `(\w+)` \| (\".*?\") \|", page.read_text("utf-8"), re.MULTILINE)
    assert len(rows) == len(KINDS) - 1, "a program check is only written by hand"
    for kind, examples in rows:
        for example in re.findall(r'"(.*?)"', examples):
            item = proposed("constraint", example, Scope(), None)
            assert kind in {check.__struct_config__.tag for check in checks_of(item)}, example
