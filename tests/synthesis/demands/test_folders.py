"""A folder that is to stay as it is: active where a sentence says only that, and checked where nothing limits it."""

import pytest

from agentx.synthesis.compiling.compile import compile_checks
from agentx.synthesis.demands.classify import Demand
from agentx.synthesis.enforcement.paths import matches
from agentx.synthesis.memory.checks import PathCheck
from tests.demand_findings import findings


def only(text: str) -> Demand:
    (found,) = findings(text)
    assert isinstance(found, Demand)
    return found


@pytest.mark.parametrize(
    ("said", "inside"),
    [
        ("Do not touch anything in the legacy/ folder.", "legacy/a.py"),
        ("Leave the migrations directory alone.", "app/migrations/0001.sql"),
        ("Hands off src/vendor.", "src/vendor/x/y.js"),
        ("please don't edit any files under src/generated", "src/generated/a.ts"),
        ("The legacy folder is off limits.", "legacy/a.py"),
        ("src/vendor must not be touched", "src/vendor/y.js"),
        ("Nothing under src/vendor may be changed.", "src/vendor/y.js"),
        ("Stay out of the `vendor` directory.", "vendor/y.js"),
        ("Do not touch anything in `legacy/`.", "legacy/a.py"),
    ],
)
def test_a_folder_that_is_to_be_left_alone_is_frozen(said, inside):
    demand = only(said)
    (check,) = compile_checks(demand.text, demand.modality, demand.scope)
    assert (demand.certainty, demand.modality) == ("active", "must_not")
    assert isinstance(check, PathCheck)
    assert "delete" in check.actions
    assert matches(check.paths, inside)
    assert matches(demand.scope.paths, inside)
    assert not matches(check.paths, "src/main.py")


@pytest.mark.parametrize(
    ("said", "certainty"),
    [
        ("Do not touch padding/shadows.", "candidate"),
        ("Fix the parser, but don't touch anything in legacy/.", "candidate"),
        ("When you're done, leave the docs folder alone.", "candidate"),
    ],
)
def test_what_bounds_one_task_is_proposed(said, certainty):
    assert only(said).certainty == certainty


@pytest.mark.parametrize(
    "said",
    ["Don't change anything under docs/ without asking.", "Leave the docs folder alone unless I say so."],
)
def test_what_a_person_may_allow_is_asked(said):
    demand = only(said)
    assert demand.certainty == "active"
    (check,) = compile_checks(demand.text, demand.modality, demand.scope)
    assert check.doubt
    assert matches(check.paths, "docs/index.md")


@pytest.mark.parametrize(
    "said",
    [
        "don't touch this folder",
        "don't change the folder",
        "don't touch the tests folder in this PR",
        "Do not touch anything in `page.tsx`.",
        "is src/vendor off limits?",
        "The src/vendor folder was left alone by the formatter.",
    ],
)
def test_a_file_a_folder_at_hand_and_a_question_make_no_rule(said):
    assert not [one for one in findings(said) if isinstance(one, Demand) and one.certainty == "active"]
