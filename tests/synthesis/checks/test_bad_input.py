"""No output, however long, broken or hostile, breaks a parser, blows up its report or takes more than linear work."""

import random

import pytest

from agentx.synthesis.checks import parse_output, parse_reports
from agentx.synthesis.checks.check_report import MAX_MESSAGE, MAX_NAME, MAX_NAMES

COMMAND = "pytest -q; ruff check; mypy .; go build ./...; eslint .; gcc a.c; tsc; cargo test; npx jest"
PIECES = [
    "\x1b[", "\x1b]8;;", "a: ", "(", "[", " - ", "_ ", "=", "<testcase ", "ok ", "1 passed, ", "\r", "x:1:", "--- FAIL: ",
    "test ", "● ", "\t", "[gw0] ", " > ", "::", "a::b ", '{"', "not ok ", "# Subtest: ", "FAILED ", "✖ ", "\ud800", "\0", "...",
    "web-1  | ", "2026-01-01T00:00:00Z ", "::error file=a,", "rspec ./a:1 # ", "● a ",
]  # fmt: skip


FAILURE = "\nFAILED tests/test_a.py::test_b - no\n===== 1 failed, 2 passed in 9.00s =====\n"


def failing_in(reports):
    """What bounded reports name as failing."""
    for report in reports:
        bounded(report)
    return {item.check for report in reports for item in report.failing}


def bounded(report):
    for item in report.failing:
        assert 0 < len(item.check) <= MAX_NAME
        assert len(item.message) <= MAX_MESSAGE
        for text in (item.check, item.suite, item.path, item.message):
            assert text.isprintable()
            text.encode()
    assert len(report.failing) <= MAX_NAMES
    assert len(report.error) <= MAX_MESSAGE


@pytest.mark.parametrize("piece", PIECES)
def test_repeated_fragments_are_read_in_linear_work(piece):
    # The suite's time limit is the judge: quadratic work on these takes minutes.
    for text in (
        piece * (300_000 // len(piece)),
        (piece * (7_000 // len(piece)) + "\n") * 50,
        (piece + "\n") * 20_000,
    ):
        assert "tests/test_a.py::test_b" in failing_in(parse_reports(text + FAILURE, command=COMMAND))


def test_random_mixtures_of_fragments_raise_nothing():
    dice = random.Random(7)
    words = [
        *PIECES,
        "\n",
        "\n",
        "1 failed in 0.1s",
        "Ran 3 tests in 1s",
        "Tests: 1 failed, 2 total",
        "1..3",
        "  1 failing",
        "  1 passing",
    ]
    for _ in range(300):
        text = "".join(dice.choice(words) for _ in range(60))
        assert "tests/test_a.py::test_b" in failing_in(parse_reports(text + FAILURE, command=COMMAND))
        for exit_code in (None, 0, 1):
            bounded(
                parse_output(
                    text, command=dice.choice(["", COMMAND, "make test | tail"]), exit_code=exit_code
                )
            )


def test_hundred_megabytes_are_read_at_their_head_and_tail():
    noise = "a line of a log that says nothing\n" * 3_000_000
    text = f"===== test session starts =====\n{noise}FAILED tests/test_a.py::test_b - no\n===== 1 failed, 2 passed in 9.00s =====\n"
    assert len(text) > 100_000_000
    report = parse_output(text, command="pytest", exit_code=1)
    assert [item.check for item in report.failing] == ["tests/test_a.py::test_b"]


def test_thirty_thousand_failures_are_bounded_and_told_as_not_all():
    lines = "\n".join(f"FAILED tests/test_a.py::test_{n} - no" for n in range(30_000))
    report = parse_output(f"{lines}\n30000 failed in 9.00s\n", command="pytest")
    assert len(report.failing) == MAX_NAMES
    assert report.failed == 30_000
    assert not report.names_all_failing


@pytest.mark.parametrize(
    "noisy",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "".join(f"\x1b[31m{line}\x1b[0m\n" for line in text.split("\n")),
        lambda text: text.replace("\n", "\nprogress 10%\rprogress 100%\n"),
        lambda text: "\ufeffwarning: something\n" + text + "trailing words\n",
        lambda text: text.replace("\n", "\0\n"),
    ],
)
def test_colours_line_ends_and_progress_bars_change_nothing(noisy):
    text = "..F  [100%]\n=== short test summary info ===\nFAILED a/test_a.py::test_b - no\n1 failed, 2 passed in 0.05s\n"
    plain, other = parse_output(text), parse_output(noisy(text))
    assert other.failing == plain.failing != ()
    assert (other.outcome, other.ran) == ("failed", 3)


def test_names_that_differ_only_beyond_the_limit_stay_apart():
    long = "x" * 400
    text = (
        f"FAILED a/test_a.py::test[{long}1] - no\nFAILED a/test_a.py::test[{long}2] - no\n2 failed in 0.1s\n"
    )
    first, second = parse_output(text).failing
    assert first.check != second.check
    assert parse_output(text).failing == (first, second)


def test_truncated_outputs_of_every_length_raise_nothing():
    text = (
        "=== test session starts ===\ncollected 2 items\n\na/test_a.py .F [100%]\n\n=== FAILURES ===\n___ test_b ___\nE   no\n"
        "a/test_a.py:3: AssertionError\n=== short test summary info ===\nFAILED a/test_a.py::test_b - no\n=== 1 failed, 1 passed in 0.1s ===\n"
    )
    for end in range(len(text)):
        assert parse_output(text[:end], command="pytest").outcome in {"failed", "unknown"}
