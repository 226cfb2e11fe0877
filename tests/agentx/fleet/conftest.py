"""Fleets in temporary directories; nothing that they started outlives a test.

The queue is a SQLite file. With ``FLEET_POSTGRES`` in the environment (``make fleet-test``) it is a schema of a private
Postgres server.
"""

import os
import tempfile
import uuid
from pathlib import Path

import pytest

from tests.agentx.fleet.fleets import Fleet
from tests.agentx.fleet.postgres import Postgres, programs


@pytest.fixture(scope="session")
def postgres():
    if not os.environ.get("FLEET_POSTGRES"):
        pytest.skip("needs a Postgres server: make fleet-test starts one")
    if programs() is None:
        pytest.skip("Postgres is not installed here: apt-get install postgresql")
    # Not below pytest's own directory, which the server's user may not enter.
    folder = Path(tempfile.mkdtemp(prefix="agentx-pg-"))
    folder.chmod(0o755)
    server = Postgres(folder / "server")
    yield server
    server.remove()
    folder.rmdir()


@pytest.fixture
def fleet(tmp_path, request):
    if os.environ.get("FLEET_POSTGRES"):
        server = request.getfixturevalue("postgres")
        made = Fleet(tmp_path, server.url, f"t{uuid.uuid4().hex[:12]}")
    else:
        made = Fleet(tmp_path)
    yield made
    for one in made.workers:
        one.slay()
