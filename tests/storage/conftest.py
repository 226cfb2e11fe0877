"""A log on a disk, for the tests of what stands on it."""

from collections.abc import Callable

import pytest

from agentx.storage.events.codec import Codec
from agentx.storage.events.types import Body, Draft, UserMessageSent
from agentx.storage.log.history import History, HistoryWriter
from agentx.synthesis.memory.record_codec import record_codec


@pytest.fixture
def codec() -> Codec:
    return record_codec()


@pytest.fixture
def said() -> Callable[..., Draft]:
    """A message of the user, as a draft."""

    def make(text: str, **fields) -> Draft:
        return Draft(data=UserMessageSent(body=Body(text)), actor="user", **fields)

    return make


@pytest.fixture
def writer(tmp_path, codec):
    made = HistoryWriter(tmp_path, codec)
    made.catch_up()
    yield made
    made.close()


@pytest.fixture
def history(tmp_path, codec) -> History:
    return History(tmp_path, codec)
