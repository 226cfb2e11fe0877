"""Every output that a real runner printed is read as what it was: with its exit status, without it, and behind a pipe."""

import pytest

from agentx.synthesis.checks import is_check_command, parse_output
from tests.synthesis.checks.kept_outputs import kept_outputs

KEPT = kept_outputs()


@pytest.mark.parametrize("kept", KEPT, ids=lambda kept: kept.name)
def test_each_real_output_is_read_as_what_it_was(kept):
    seen = parse_output(kept.text, command=kept.command, exit_code=kept.exit_code)
    assert (seen.runner, seen.outcome) == (kept.runner, kept.outcome)
    hidden = parse_output(kept.text, command=kept.command)
    assert (hidden.outcome, tuple(item.check for item in hidden.failing)) == (kept.hidden, kept.fails)
    if hidden.outcome == "failed":
        assert hidden.error


@pytest.mark.parametrize(
    "kept", [kept for kept in KEPT if kept.hidden == "failed"], ids=lambda kept: kept.name
)
def test_pipe_that_hides_the_exit_status_hides_no_failure(kept):
    assert parse_output(kept.text, command=f"({kept.command}) 2>&1 | cat", exit_code=0).outcome == "failed"


def test_every_runner_that_is_promised_has_outputs_that_fail_and_outputs_that_pass():
    promised = {
        "pytest", "django", "unittest", "go test", "jest", "vitest", "cargo", "mocha", "rspec", "junit", "tap",
        "mypy", "ruff", "eslint", "tsc", "gcc", "go build", "rustc", "node",
    }  # fmt: skip
    for outcome in ("failed", "passed"):
        assert promised <= {kept.runner for kept in KEPT if kept.outcome == outcome}
    assert any(kept.text.startswith("{") and kept.runner == "go test" for kept in KEPT)


def test_hardly_any_failure_goes_unread_where_its_exit_status_is_hidden():
    failed = [kept for kept in KEPT if kept.outcome == "failed"]
    unread = [kept.name for kept in failed if kept.hidden != "failed"]
    assert not [kept.name for kept in failed if kept.hidden == "passed"]
    assert len(unread) < len(failed) / 25


def test_commands_of_these_runners_are_known_as_checks():
    own = ("make ", "node a", "node test", "cargo run")
    assert not {
        kept.command
        for kept in KEPT
        if not is_check_command(kept.command) and not kept.command.startswith(own)
    }
