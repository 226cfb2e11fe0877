"""A snapshot is used where the log still holds what it was taken behind, and passed over where anything is wrong."""

import os

import pytest

from agentx.storage.log.history import LIVE, History, Position, segment_path
from agentx.storage.log.snapshots import KEPT, Snapshots


@pytest.fixture
def snapshots(tmp_path, history) -> Snapshots:
    return Snapshots(tmp_path / ".agentx" / "snapshots", history, "1-types")


def _decode(content: bytes) -> str:
    return content.decode()


def _fill(writer, said, count):
    return [writer.append([said(f"{n}:" + "x" * 5_000)])[0] for n in range(count)]


def _files(tmp_path):
    return sorted((tmp_path / ".agentx" / "snapshots").iterdir())


def test_what_was_saved_is_loaded_and_reading_goes_on_behind_it(writer, history, said, snapshots):
    events = _fill(writer, said, 5)
    assert snapshots.save(3, events[2].hash, b"folded\nto three")
    content, position = snapshots.load(_decode)
    assert content == "folded\nto three"
    assert list(history.read(position)) == events[3:]


def test_a_snapshot_of_a_log_that_was_sealed_since_is_used(tmp_path, writer, history, said, snapshots):
    events = _fill(writer, said, 5)
    snapshots.save(5, events[-1].hash, b"five")
    events += _fill(writer, said, 30)
    assert (tmp_path / segment_path(2)).exists()
    content, position = snapshots.load(_decode)
    assert (content, position.segment) == ("five", 1)
    assert list(history.read(position)) == events[5:]


def test_loading_and_reading_the_tail_opens_as_many_files_whatever_the_length_of_the_history(
    tmp_path, writer, history, said, snapshots, monkeypatch
):
    counts = []
    for _ in range(2):
        events = _fill(writer, said, 40)
        snapshots.save(events[-1].seq, events[-1].hash, b"x")
        opened = []
        read = History._files
        monkeypatch.setattr(
            History, "_files", lambda *a, **k: (opened.append(1) or one for one in read(*a, **k))
        )
        _, position = snapshots.load(_decode)
        assert list(history.read(position)) == []
        counts.append(len(opened))
        monkeypatch.undo()
    assert counts[0] == counts[1] <= 2


def test_the_newest_two_are_kept_and_nothing_else(tmp_path, writer, said, snapshots):
    events = _fill(writer, said, 4)
    (tmp_path / ".agentx" / "snapshots").mkdir(parents=True)
    (tmp_path / ".agentx" / "snapshots" / ".agentx-tmp-left").write_bytes(b"torn")
    for event in events:
        snapshots.save(event.seq, event.hash, str(event.seq).encode())
    assert [path.name[:12] for path in _files(tmp_path)] == ["000000000003", "000000000004"]
    assert len(_files(tmp_path)) == KEPT


@pytest.mark.parametrize("harm", ["torn", "empty", "garbled", "no label", "another version"])
def test_a_snapshot_with_anything_wrong_is_passed_over_for_the_one_before(
    tmp_path, writer, history, said, snapshots, harm
):
    events = _fill(writer, said, 2)
    snapshots.save(1, events[0].hash, b"first")
    if harm == "another version":
        Snapshots(tmp_path / ".agentx" / "snapshots", history, "2-types").save(2, events[1].hash, b"second")
    else:
        snapshots.save(2, events[1].hash, b"second")
    newest = _files(tmp_path)[-1]
    content = newest.read_bytes()
    newest.write_bytes({
        "torn": content[:-3], "empty": b"", "garbled": content.replace(b"second", b"SECOND"),
        "no label": b"second", "another version": content,
    }[harm])  # fmt: skip
    assert snapshots.load(_decode)[0] == "first"


def test_a_content_that_cannot_be_decoded_is_passed_over(writer, said, snapshots):
    events = _fill(writer, said, 2)
    snapshots.save(1, events[0].hash, b"first")
    snapshots.save(2, events[1].hash, b"\xff")
    assert snapshots.load(_decode)[0] == "first"


def test_a_snapshot_of_another_history_is_not_used(tmp_path, writer, said, snapshots):
    events = _fill(writer, said, 3)
    before = (tmp_path / LIVE).read_bytes()
    snapshots.save(3, events[2].hash, b"three")
    first, second, third = before.splitlines(keepends=True)
    (tmp_path / LIVE).write_bytes(first + second)
    assert snapshots.load(_decode) is None
    (tmp_path / LIVE).write_bytes(first + second + third.replace(events[2].hash.encode(), b"0" * 64))
    assert snapshots.load(_decode) is None
    (tmp_path / LIVE).write_bytes(before)
    assert snapshots.load(_decode)[0] == "three"


def test_a_snapshot_behind_a_segment_that_is_lost_is_not_used(tmp_path, writer, said, snapshots):
    events = _fill(writer, said, 20)
    snapshots.save(20, events[-1].hash, b"twenty")
    (tmp_path / segment_path(1)).unlink()
    assert snapshots.load(_decode) is None


def test_what_the_log_does_not_hold_is_not_saved(tmp_path, snapshots):
    assert not snapshots.save(7, "ab" * 32, b"seven")
    assert snapshots.load(_decode) is None


def test_an_empty_history_has_its_snapshot(snapshots, history):
    assert snapshots.save(0, "", b"nothing")
    assert snapshots.load(_decode) == ("nothing", Position())


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path, writer, said, snapshots):
    event = _fill(writer, said, 1)[0]
    (tmp_path / ".agentx").write_text("in the way")
    assert not snapshots.save(1, event.hash, b"one")
    os.unlink(tmp_path / ".agentx")
    assert snapshots.save(1, event.hash, b"one")
