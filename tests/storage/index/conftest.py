"""The backends that the contract holds; LanceDB with everything waiting, in the table, and in the table and its parts."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from agentx.storage.index.lance import LanceIndex
from agentx.storage.index.memory_index import InMemoryIndex
from agentx.storage.index.port import Chunk, MemoryIndex, Vector


@pytest.fixture(params=["memory", "lance-waiting", "lance-table", "lance-parts"])
def backend(request) -> str:
    return request.param


@pytest.fixture
def index(backend, tmp_path) -> Iterator[MemoryIndex]:
    made = InMemoryIndex() if backend == "memory" else LanceIndex(tmp_path / "index")
    yield made
    made.close()


@pytest.fixture
def settle(backend, index, directory) -> Callable[[], None]:
    """Bring what was written to where this backend is meant to have it."""

    def flush() -> None:
        if backend in ("lance-table", "lance-parts"):
            assert index.flush()
        if backend == "lance-table":
            for part in directory.glob("*.part"):
                part.unlink()

    return flush


@pytest.fixture
def message() -> Callable[..., Chunk]:
    def make(chunk_id: str, text: str, **fields) -> Chunk:
        return Chunk(id=chunk_id, text=text, **{"kind": "message", **fields})

    return make


@pytest.fixture
def unit() -> Callable[..., Vector]:
    def make(*numbers: float) -> Vector:
        array = np.array(numbers, dtype=np.float32)
        return array / np.linalg.norm(array)

    return make


@pytest.fixture
def directory(tmp_path) -> Path:
    return tmp_path / "index"
