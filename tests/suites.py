"""Suites of their own: tests that take long, of which `make test` runs one each, and `make SUITE` all.

They are 5% of the tests and take most of the time. ``.ci/nightly`` runs all of them.
"""

from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]


class Suite(NamedTuple):
    """What belongs to a suite.

    Attributes:
        places: Its files and directories, relative to the project.
        smoke: Names of the tests that `make test` runs of it; with ``[``, of one of its cases.
    """

    places: tuple[str, ...]
    smoke: tuple[str, ...]


SUITES = {
    "browser": Suite(
        ("tests/agentx/inspector/browser",),
        ("test_a_click_leads_from_the_timeline_to_an_event_its_cause_its_file_and_back",),
    ),
    "faults": Suite(
        ("tests/faults", "tests/test_fuzzing.py", "tests/agentx/test_state_machine.py"),
        ("test_nothing_acknowledged_is_lost[steps-0]", "test_a_write_is_torn_in_its_middle"),
    ),
    "fleet": Suite(
        ("tests/agentx/fleet",),
        (
            "test_submissions_of_several_workspaces_are_run_once_each_by_two_workers",
            "test_a_submission_that_was_changed_or_is_not_signed_is_refused_and_leaves_no_trace",
        ),
    ),
    "wheels": Suite(
        ("tests/test_distribution.py", "tests/test_plain_install.py"),
        (
            "test_the_wheel_holds_every_module_and_prompt_under_its_one_name",
            "test_no_pin_names_a_place",
            "test_whatever_is_installed_from_a_registry_is_checked_by_its_hash",
        ),
    ),
    "isolation": Suite(
        ("tests/agentx/quality/test_isolation.py",),
        ("test_every_row_of_the_table_is_attacked", "test_nothing_of_the_user_changes_under_attack"),
    ),
}

HELP = "run all but the suites of their own, of which a few tests run, and the abilities, which ran before"


def suite_of(path: Path) -> str:
    """Return the name of the suite that a file belongs to, or an empty string."""
    inner = path.relative_to(ROOT)
    for name, suite in SUITES.items():
        if any(inner.is_relative_to(place) for place in suite.places):
            return name
    return ""


def leave_out(items: list[pytest.Item]) -> list[pytest.Item]:
    """Take the tests out of ``items`` that belong to a suite and are not its smoke; return them."""
    left = [item for item in items if not _runs(item)]
    items[:] = [item for item in items if _runs(item)]
    return left


def _runs(item: pytest.Item) -> bool:
    suite = suite_of(item.path)
    return not suite or not {item.name, item.name.partition("[")[0]}.isdisjoint(SUITES[suite].smoke)
