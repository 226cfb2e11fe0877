"""The folders of labelled data: gzipped JSON lines, one row each."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def rows(path: Path) -> Iterator[Row]:
    """The rows of ``path`` (``folder/name.jsonl.gz``), in the order of the file; of a missing file there are none."""
    if path.exists():
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, filter(str.strip, lines))
