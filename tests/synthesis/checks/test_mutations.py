"""Whatever happens to an output on its way (cuts, colours, noise, time stamps, labels), no failed run is read as passed."""

import random
import re
from collections import Counter
from collections.abc import Callable

import pytest

from agentx.synthesis.checks import parse_output
from tests.synthesis.checks.kept_outputs import Kept, kept_outputs

KEPT = [kept for kept in kept_outputs() if kept.text.strip()]
FAILED = [kept for kept in KEPT if kept.hidden == "failed"]
PASSED = [kept for kept in KEPT if kept.hidden == "passed"]
WHOLE = [kept for kept in FAILED if "|" not in kept.command]
TOLD_BY_ONE_LINE = {"pytest-ctrlc", "jest-thresh"}
"""Runs whose summary says that all passed: one line elsewhere tells that the run failed, and a cut may take it."""

NOISE = [
    "2026-01-01 10:00:00,000 INFO the application has started", "ERROR: connection reset by peer", "[info] Tests are running",
    "FAILED to reach the cache, trying again", "ok then", "warning: something is slow", "12 passed by the way", "done.",
]  # fmt: skip

Mutation = Callable[[str, random.Random], tuple[str, str]]


def head(text: str, dice: random.Random) -> tuple[str, str]:
    lines = text.splitlines(keepends=True)
    count = dice.randrange(1, len(lines) + 1)
    return "".join(lines[:count]), f"head -n {count}"


def tail(text: str, dice: random.Random) -> tuple[str, str]:
    lines = text.splitlines(keepends=True)
    count = dice.randrange(1, len(lines) + 1)
    return "".join(lines[-count:]), f"tail -n {count}"


def cut_in_the_middle(text: str, dice: random.Random) -> tuple[str, str]:
    start, end = sorted(dice.randrange(len(text) + 1) for _ in range(2))
    return f"{text[:start]}\n[… 1,234 characters left out …]\n{text[end:]}", "cat"


def colour_lines(text: str, dice: random.Random) -> tuple[str, str]:
    return "".join(
        f"\x1b[1m\x1b[{dice.choice([31, 32, 90])}m{line}\x1b[0m\n" for line in text.splitlines()
    ), "cat"


def colour_words(text: str, dice: random.Random) -> tuple[str, str]:
    if "\x1b" in text:
        return text, "cat"
    return re.sub(r"[A-Za-z]+", lambda word: f"\x1b[3{dice.randrange(8)}m{word[0]}\x1b(B\x1b[m", text), "cat"


def interleave(text: str, dice: random.Random) -> tuple[str, str]:
    lines = [
        part
        for line in text.splitlines()
        for part in (line, dice.choice(NOISE))[: 1 + (dice.random() < 0.15)]
    ]
    return "\n".join(lines) + "\n", "cat"


def stamp(text: str, dice: random.Random) -> tuple[str, str]:
    del dice
    return "".join(
        f"2026-01-01T00:00:{n % 60:02}.000Z {line}\n" for n, line in enumerate(text.splitlines())
    ), "cat"


def label(text: str, dice: random.Random) -> tuple[str, str]:
    del dice
    return "".join(f"web-1  | {line}\n" for line in text.splitlines()), "cat"


def label_beside_another(text: str, dice: random.Random) -> tuple[str, str]:
    lines = [
        f"web-1  | {line}\n" + f"db-1   | {dice.choice(NOISE)}\n" * (dice.random() < 0.3)
        for line in text.splitlines()
    ]
    return "".join(lines), "cat"


def job_and_stamp(text: str, dice: random.Random) -> tuple[str, str]:
    del dice
    return "".join(
        f"test\tRun tests\t2026-01-01T00:00:00.0000000Z {line}\n" for line in text.splitlines()
    ), "cat"


def line_ends(text: str, dice: random.Random) -> tuple[str, str]:
    del dice
    return text.replace("\n", "\r\n"), "cat"


CUTS = [head, tail, cut_in_the_middle]
DRESSES = [
    colour_lines,
    colour_words,
    interleave,
    stamp,
    label,
    label_beside_another,
    job_and_stamp,
    line_ends,
]


def outcomes(mutation: Mutation, kept: list[Kept], times: int) -> dict[str, Counter[str]]:
    """How often each output is read as what, its exit status hidden by the pipe that the mutation names."""
    found: dict[str, Counter[str]] = {}
    for case in kept:
        dice = random.Random(case.name)
        found[case.name] = Counter()
        for _ in range(times):
            text, pipe = mutation(case.text, dice)
            report = parse_output(text, command=f"({case.command}) 2>&1 | {pipe}", exit_code=0)
            found[case.name][report.outcome] += 1
    return found


@pytest.mark.parametrize("cut", CUTS, ids=lambda cut: cut.__name__)
def test_cut_output_of_a_failed_run_is_never_read_as_passed(cut):
    found = outcomes(cut, WHOLE, times=20)
    assert {name for name, counts in found.items() if counts["passed"]} <= TOLD_BY_ONE_LINE
    total = sum(found.values(), Counter())
    assert total["failed"] > 0.65 * total.total()


@pytest.mark.parametrize("dress", DRESSES, ids=lambda dress: dress.__name__)
def test_dressed_output_of_a_failed_run_is_never_read_as_passed(dress):
    total = sum(outcomes(dress, FAILED, times=3).values(), Counter())
    assert total["passed"] == 0
    assert total["failed"] > 0.85 * total.total()


@pytest.mark.parametrize("dress", DRESSES, ids=lambda dress: dress.__name__)
def test_dressed_output_of_a_passed_run_is_never_read_as_failed(dress):
    assert sum(outcomes(dress, PASSED, times=3).values(), Counter())["failed"] == 0


@pytest.mark.parametrize(
    "dress", [colour_lines, colour_words, stamp, label, line_ends], ids=lambda dress: dress.__name__
)
def test_dress_hides_no_name(dress):
    for case in FAILED:
        text, pipe = dress(case.text, random.Random(case.name))
        named = {
            item.check
            for item in parse_output(text, command=f"({case.command}) 2>&1 | {pipe}", exit_code=0).failing
        }
        assert named == set(case.fails), case.name
