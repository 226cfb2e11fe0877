"""Fleets in temporary directories; nothing that they started outlives a test."""

import pytest

from tests.agentx.fleet.fleets import Fleet


@pytest.fixture
def fleet(tmp_path):
    made = Fleet(tmp_path)
    yield made
    for one in made.workers:
        one.slay()
