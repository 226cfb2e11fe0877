"""Long content beside the log: whole, named by what it is, and never taken for good when it is damaged."""

import pytest

from agentx.storage.events.codec import GENESIS, Codec
from agentx.storage.events.facts import FACTS
from agentx.storage.events.types import Body, Draft, ToolCallExecuted, UserMessageSent
from agentx.storage.log.blobs import WHOLE_BYTES, BlobDamaged, BlobStore, blob_path, named_blobs


@pytest.fixture
def store(tmp_path):
    return BlobStore(tmp_path)


def test_a_short_text_stands_in_the_event_and_makes_no_blob(store, tmp_path):
    body = store.body("x" * (WHOLE_BYTES - 2))
    assert (body.blob, body.size_bytes) == ("", 0)
    assert store.text(body) == "x" * (WHOLE_BYTES - 2)
    assert not (tmp_path / "history").exists()


@pytest.mark.parametrize(
    "text", ["x" * 100_000, "\x01" * 20_000, "日本語" * 10_000, '"\\' * 9_000, "👩\u200d🚀" * 5_000, "\n" * 7_000],
    ids=["plain", "control", "wide", "quotes", "emoji", "newlines"],
)  # fmt: skip
def test_a_long_text_comes_back_whole_and_its_extract_fits_into_an_event(store, text):
    body = store.body(text)
    assert store.text(body) == text
    assert body.size_bytes == len(text.encode())
    assert body.text.startswith(text[:100])
    assert body.text.endswith(text[-100:])
    assert "characters left out" in body.text
    data = ToolCallExecuted(call_id="1", tool="t", status="SUCCEEDED", output=body)
    Codec(FACTS).encode(Draft(data=data, actor="agent:main"), seq=1, previous=GENESIS)
    assert named_blobs(data) == [body.blob]


def test_the_same_content_lies_there_once(store, tmp_path):
    assert store.put(b"same") == store.put(b"same")
    assert len(list((tmp_path / "history").rglob("*/??/*"))) == 1


@pytest.mark.parametrize("harm", [b"", b"other", None])
def test_a_missing_or_damaged_blob_is_told_and_is_repaired_by_the_same_content(store, tmp_path, harm):
    oid = store.put(b"content")
    path = tmp_path / blob_path(oid)
    path.unlink() if harm is None else path.write_bytes(harm)
    with pytest.raises(BlobDamaged, match="git checkout"):
        store.get(oid)
    assert store.put(b"content") == oid
    assert store.get(oid) == b"content"


def test_an_id_that_is_a_path_reads_nothing_outside(store, tmp_path):
    (tmp_path / "secret").write_text("secret")
    with pytest.raises(BlobDamaged):
        store.text(Body("", blob="../../../secret"))
    with pytest.raises(BlobDamaged):
        store.get("../../secret")


def test_no_temporary_file_stays(store, tmp_path):
    store.put(b"x" * 10_000)
    assert not list(tmp_path.rglob(".agentx-tmp-*"))
    assert named_blobs(UserMessageSent(body=Body("short"))) == []
