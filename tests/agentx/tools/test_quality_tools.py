"""The quality tools on real commands: what fails becomes a problem, what passes ends it, and what they change is theirs."""

import os
import sys

import pytest

from agentx.policy.approvals import NotApproved
from agentx.storage.errors import UsageError
from agentx.storage.events.types import ToolCallExecuted, ToolCallRequested

TESTS = (
    '\n[tools]\nisolation = "none"\nrun_command = true\nwords = ["Kubernetes"]\n'
    f'[checks.tests]\ncommand = "{sys.executable} -m pytest -q -p no:cacheprovider -p no:randomly"\n'
)


def calls(ws):
    return [event for event in ws.events() if isinstance(event.data, ToolCallExecuted)]


@pytest.fixture
def checked(configured):
    return configured(TESTS)


def test_a_failing_test_opens_a_problem_that_closes_when_it_passes(checked):
    checked.tools.write_file("test_sum.py", "def test_sum():\n    assert 1 + 1 == 3\n")
    result = checked.tools.run_tests()
    assert result.failed
    assert result.exit_code == 1
    assert [found.check for found in result.report.failing] == ["test_sum.py::test_sum"]
    assert "FAILED test_sum.py::test_sum" in result.render()
    (problem,) = checked.memory("hot_issue")
    assert problem.detail.check == "test_sum.py::test_sum"
    assert problem.detail.failures == 1
    assert problem.id in checked.get_relevant_context("go on").text

    assert checked.tools.call("run_tests", {}).status == "FAILED"
    (again,) = checked.memory("hot_issue")
    assert (again.id, again.detail.failures) == (problem.id, 2)

    checked.tools.edit_file("test_sum.py", "3", "2")
    assert not checked.tools.run_tests().failed
    assert checked.memory("hot_issue") == []
    assert [item.status for item in checked.memory("hot_issue", status=None)] == ["closed"]


def test_a_run_that_writes_and_fails_counts_each_failure_once(checked):
    checked.tools.write_file(
        "test_sum.py",
        "from pathlib import Path\n\n\ndef test_sum():\n    Path('made.txt').write_text('x')\n    assert 0\n",
    )
    result = checked.tools.run_tests()
    assert "made.txt" in result.changed
    (problem,) = checked.memory("hot_issue")
    assert problem.detail.failures == 1


def test_a_selection_narrows_the_run_and_is_no_way_to_run_something_else(checked):
    checked.tools.write_file("test_a.py", "def test_a():\n    pass\n\n\ndef test_b():\n    assert 0\n")
    assert not checked.tools.run_tests("test_a.py::test_a").failed
    checked.tools.run_tests("; touch injected.txt; $(touch injected.txt)")
    assert not (checked.artifacts / "injected.txt").exists()


def test_what_a_command_changes_is_recorded_as_its_own_and_can_be_taken_back(checked):
    checked.tools.write_file("a.txt", "one")
    checked.tools.write_file("gone.txt", "x")
    result = checked.tools.run_command(
        "echo two > a.txt; mkdir d; echo new > d/b.txt; rm gone.txt; chmod +x d/b.txt"
    )
    assert set(result.changed) == {"a.txt", "d/b.txt", "gone.txt"}
    made, told = calls(checked)[-2:]
    assert (made.actor, {change.path for change in made.data.changes}) == (
        "tool:run_command",
        set(result.changed),
    )
    assert (told.actor, told.data.exit_code, told.data.changes) == ("agent:main", 0, ())
    assert checked.tools.read_file("d/b.txt").text == "new"
    checked.undo()
    assert checked.tools.read_file("a.txt").text == "one"
    assert checked.tools.read_file("gone.txt").text == "x"


def test_what_a_command_writes_outside_its_copy_or_under_a_bad_name_is_not_taken_over(checked):
    result = checked.tools.run_command(
        "mkdir -p .git; echo x > .git/config; printf x > 'a:b'; echo fine > fine.txt"
    )
    assert [path.name for path in checked.artifacts.iterdir()] == ["fine.txt"]
    assert any("refused" in note for note in result.notes)


def test_a_file_over_the_limit_is_left_out_and_the_verdict_stands(configured):
    ws = configured('\n[limits]\nmax_file_bytes = 1000\n[tools]\nisolation = "none"\nrun_command = true\n')
    result = ws.tools.run_command("head -c 2000 /dev/zero > big.bin; echo done")
    assert result.exit_code == 0
    assert "done" in result.output
    assert "limit" in " ".join(result.notes)
    assert not list(ws.artifacts.iterdir())


def test_a_check_that_is_not_set_says_how_to_set_it(ws):
    for name in ("run_tests", "run_lint", "run_build"):
        with pytest.raises(UsageError, match=r"agentx config set checks\."):
            getattr(ws.tools, name)()
        assert ws.tools.call(name, {}).status == "FAILED"
    assert ws.memory(status=None) == []


def test_a_command_is_off_until_it_is_allowed(ws):
    with pytest.raises((UsageError, NotApproved)):
        ws.tools.run_command("touch here.txt")
    assert not list(ws.artifacts.iterdir())


def test_a_check_that_hangs_is_ended_and_its_outcome_recorded(configured):
    ws = configured(
        '\n[tools]\nisolation = "none"\n[checks.build]\ncommand = "echo begun; sleep 60"\ntimeout_s = 0.5\n'
    )
    result = ws.tools.run_build()
    assert result.failed
    assert result.exit_code is None
    assert "ended after 0.5 s" in result.render()
    assert "begun" in result.output
    assert ws.state.pending == {}


def test_a_check_that_prints_without_end_is_cut_and_kept_bounded(configured):
    ws = configured(
        '\n[tools]\nisolation = "none"\n[checks.build]\ncommand = "yes | head -c 30000000"\nmax_output_bytes = 100000\n'
    )
    result = ws.tools.run_build()
    assert not result.failed
    assert len(result.output) < 110_000
    assert len(result.render()) < 6_000
    body = calls(ws)[-1].data.output
    assert body.blob
    assert len(ws.read_body(body)) == len(result.output)


def test_what_a_check_printed_is_kept_whole_and_without_secrets(configured):
    ws = configured(
        '\n[tools]\nisolation = "none"\nrun_command = true\n[checks.build]\ncommand = "env; echo API_KEY=x7Kp2mQ9vTb4Zr1c; exit 3"\n'
    )
    result = ws.tools.run_build()
    assert result.exit_code == 3
    assert "x7Kp2mQ9vTb4Zr1c" not in ws.read_body(calls(ws)[-1].data.output)


def test_a_program_is_announced_before_it_runs(checked):
    checked.tools.run_command("true")
    types = [type(event.data) for event in checked.events()]
    assert types[-2:] == [ToolCallRequested, ToolCallExecuted]


def test_a_very_long_command_is_run_and_recorded_in_part(checked):
    result = checked.tools.call("run_command", {"command": "echo " + "x" * 50_000 + " | wc -c"})
    assert "50001" in result.output
    assert len(calls(checked)[-1].data.command) < 1_100


def test_a_document_is_checked_for_spelling_and_links_and_is_mended(checked):
    checked.tools.write_file("doc.md", "# Title\n\nWe recieve data in Kubernetes. See [there](missing.md).\n")
    result = checked.tools.check_document("doc.md")
    assert result.failed
    assert "recieve" in result.output
    assert "missing.md" in result.output
    assert "Kubernetes" not in result.output
    assert checked.memory("hot_issue")
    checked.tools.write_file("doc.md", "# Title\n\nWe receive data in Kubernetes.\n")
    assert not checked.tools.check_document("doc.md").failed
    assert checked.memory("hot_issue") == []


@pytest.mark.parametrize("name", ["notes (final).md", "it's.md", "a; b & $c.md"])
def test_a_document_of_any_name_is_one_document(checked, name):
    checked.tools.write_file(name, "# Title\n\nWe recieve data.\n")
    checked.tools.write_file("other.md", "# Title\n")
    assert checked.tools.check_document(name).failed
    (problem,) = checked.memory("hot_issue")
    assert problem.detail.path == name
    checked.tools.check_document("other.md")
    assert checked.memory("hot_issue") == [problem]
    checked.tools.write_file(name, "# Title\n\nWe receive data.\n")
    checked.tools.check_document(name)
    assert checked.memory("hot_issue") == []


def test_a_persons_edit_made_before_a_check_is_on_record_first(checked):
    (checked.artifacts / "mine.txt").write_text("by hand")
    checked.tools.run_command("cat mine.txt")
    assert [event.type for event in checked.events()][1:] == [
        "ArtifactChanged",
        "ToolCallRequested",
        "ToolCallExecuted",
    ]


def test_a_command_in_the_default_mode_reaches_neither_the_history_nor_this_process(configured):
    """With settings as they come, a command keeps what it made in its copy, and that is all it can do."""
    ws = configured("\n[tools]\nrun_command = true\n")
    log = ws.root / "history.jsonl"
    command = f"cat {log} /proc/{os.getpid()}/environ; echo forged >> {log}; echo made > new.txt"
    done = ws.tools.run_command(command)
    if any("ran without isolation" in note for note in done.notes):
        pytest.skip("nothing isolates commands here")
    assert done.changed == ("new.txt",)
    assert "WorkspaceCreated" not in done.output
    assert "HOME=" not in done.output
    assert "forged\n" not in log.read_text()
