"""An upstream of each test's own, which can change while the test runs."""

import json
import shutil
from pathlib import Path

import pytest

from api import services
from api.cache import clear_function_caches
from api.transport import DATA, Client, FileTransport


class Upstream:
    """A copy of the data, and the client that reads it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.client = Client(FileTransport(root))

    def change(self, name, content):
        """From now on the upstream answers this."""
        (self.root / f"{name}.json").write_text(json.dumps(content), "utf-8")


@pytest.fixture(autouse=True)
def upstream(tmp_path):
    shutil.copytree(DATA, tmp_path / "data")
    upstream = Upstream(tmp_path / "data")
    clear_function_caches()
    services.connect(upstream.client)
    yield upstream
    services.connect(Client(FileTransport()))
