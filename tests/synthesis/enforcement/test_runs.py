"""Commands that must follow a change: by order, arguments and success."""

import pytest

from agentx.synthesis.enforcement.evaluate import evaluate_run
from agentx.synthesis.enforcement.runs import RunStep
from agentx.synthesis.memory.checks import FollowUpCheck, ProgramCheck
from agentx.synthesis.memory.items import ConstraintDetail, MemoryItem

CHANGE = RunStep(paths=("api/a.proto",))


def rule(check):
    return MemoryItem(id="c-1", kind="constraint", text="x", detail=ConstraintDetail(checks=(check,)))


def reasons(steps, command="make generate"):
    found = evaluate_run([rule(FollowUpCheck(command=command, paths=("api/**",)))], steps, lambda _: None)
    return [one.reason for one in found.violations], found.kept


def ran(command, *, succeeded=True):
    return RunStep(command=command, succeeded=succeeded)


@pytest.mark.parametrize(
    "command",
    [
        "make generate",
        "make -j4 generate",
        "cd api && make generate",
        "timeout 60 make generate && git add .",
    ],
)
def test_the_command_is_found_by_its_program_and_arguments(command):
    assert reasons([CHANGE, ran(command)]) == ([], ("c-1",))


@pytest.mark.parametrize("command", ["make", "make test", "echo make generate", "gmake generate"])
def test_another_command_does_not_count(command):
    assert reasons([CHANGE, ran(command)])[0] == [
        "`make generate` was not run after the last change of api/a.proto."
    ]


@pytest.mark.parametrize(
    "step",
    [ran("make generate", succeeded=False), ran("make generate || true"), ran("make generate | tail -3")],
)
def test_a_failure_does_not_count_nor_a_status_that_hides_it(step):
    assert reasons([CHANGE, step])[0] == [
        "`make generate` did not succeed after the last change of api/a.proto."
    ]


def test_only_what_comes_after_the_last_change_counts():
    assert reasons([ran("make generate"), CHANGE])[0]
    assert reasons([CHANGE, ran("make generate"), CHANGE])[0]
    own = RunStep(paths=("api/a_pb2.py",))  # what a command changes is recorded before the call
    assert not reasons([CHANGE, own, ran("make generate")])[0]


def test_without_a_change_nothing_is_due():
    assert reasons([RunStep(paths=("web/a.ts",))]) == ([], ())


@pytest.mark.parametrize(
    ("ended", "broken", "kept"), [("", [], ("c-1",)), ("failed", ["`x` failed."], ()), (None, [], ())]
)
def test_a_program_is_kept_broken_or_cannot_be_checked(ended, broken, kept):
    found = evaluate_run([rule(ProgramCheck(command="x"))], [CHANGE], lambda _: ended)
    assert ([one.reason for one in found.violations], found.kept) == (broken, kept)
