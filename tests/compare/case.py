"""What an operation is given: how to open the product, where, and how much to do."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.compare.driver import Driver


@dataclass
class Case:
    """One product and one operation.

    Attributes:
        folder: An empty directory.
        n: Rounds, where there are rounds.
        records: How many make a large store.
        data: The questions for recall, as JSON; nothing without data.
        limit_s: After so long an operation ends with what it has.
    """

    make: Callable[[Path, str], Driver]
    folder: Path
    endpoint: str = ""
    n: int = 20
    records: int = 10_000
    data: Path | None = None
    limit_s: float = 240.0
    started: float = field(default_factory=time.monotonic)

    def open(self, folder: Path | None = None) -> Driver:
        """Open the product in a directory, made if it is missing."""
        where = folder or self.folder
        where.mkdir(parents=True, exist_ok=True)
        driver = self.make(where, self.endpoint)
        driver.start()
        return driver

    @property
    def late(self) -> bool:
        return time.monotonic() - self.started > self.limit_s


Result = dict[str, Any]
Operation = Callable[[Case], Result]


def size_of(folder: Path) -> int:
    """Bytes of all files, as a directory listing shows them."""
    return sum(
        os.lstat(os.path.join(where, name)).st_size for where, _, names in os.walk(folder) for name in names
    )
