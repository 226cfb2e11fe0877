"""How a command line is read, also one that is broken or hostile."""

import time

import pytest

from agentx.synthesis.shell.command_line import read_command, steps
from agentx.synthesis.shell.effects import effects


def test_open_quotes_and_binary_noise_are_split_somehow():
    assert [step.program for step in steps('ls a; pytest -k "open')] == ["ls", "pytest"]
    for command in ("\0", "'" * 100, "(" * 10_000, "a |" * 10_000, "\ud800", "${a:-" * 2_000):
        assert isinstance(steps(command), tuple)


@pytest.mark.parametrize(
    "command",
    [
        "xargs " * 1_600 + "rm", "find -exec " * 800 + "rm", "eval " * 2_000, "{a,b}" * 2_000, "x=$x$x;" * 1_400, "f() { f; f; }; f; " * 500,
        "for a in {1..64}; do " * 100 + "echo $a" + "; done" * 100, "find " + "a " * 1_600 + "-name b " * 700 + "-delete", "<<a " * 2_500,
    ],
)  # fmt: skip
def test_a_command_made_to_be_expanded_without_end_is_read_at_once(command):
    started = time.perf_counter()
    effects(command)
    assert time.perf_counter() - started < 5


def test_what_does_not_parse_or_is_too_much_is_not_understood():
    assert read_command("ls | head").understood
    for command in (
        "ls 'open",
        "(" * 100,
        "ls;" * 5_000,
        "for i in {1..500}; do ls $i; done",
        "eval 'eval \"eval \\'eval ls\\'\"'",
    ):
        assert not read_command(command).understood
