"""What an append costs in syncs, and what is recorded where one fails half-way."""

import errno
import os

import pytest

from agentx.storage.errors import WriterConflict
from agentx.storage.log.history import (
    LIVE,
    ORPHANS,
    SEGMENT_BYTES,
    History,
    HistoryWriteFailed,
    HistoryWriter,
    count_segments,
    segment_path,
)


@pytest.fixture
def syncs(monkeypatch):
    """The names of the sync calls that were made."""
    made = []
    for name in ("fsync", "fdatasync"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda fd, name=name, real=real: (made.append(name), real(fd))[1])
    return made


def _seqs(events):
    return [event.seq for event in events]


@pytest.mark.parametrize("count", [1, 50])
def test_an_append_costs_one_sync_however_many_events(writer, said, syncs, count):
    writer.append([said("first")])
    syncs.clear()
    writer.append([said("x" * 500)] * count)
    assert syncs == ["fdatasync"]


def test_a_large_batch_costs_one_sync_of_data_for_each_segment_it_touches(tmp_path, writer, said, syncs):
    writer.append([said("first")])
    syncs.clear()
    writer.append([said("x" * 1_000)] * 500)
    assert count_segments(tmp_path) > 5
    assert syncs.count("fdatasync") == count_segments(tmp_path) + 1


def test_a_large_batch_is_split_between_events_and_no_segment_is_too_long(tmp_path, writer, history, said):
    writer.append([said("x" * 10_000)] * 5)
    events = writer.append([said(f"{n} " + "x" * 3_000) for n in range(100)])
    assert list(history.read(5)) == events
    assert writer.segments == count_segments(tmp_path) == 5
    for path in [*map(segment_path, range(1, 6)), LIVE]:
        content = (tmp_path / path).read_bytes()
        assert 0 < len(content) <= SEGMENT_BYTES
        assert content.endswith(b"\n")
    writer.append([said("on")])
    assert _seqs(history.read(105)) == [106]


def test_a_batch_that_fits_in_one_segment_is_not_split(tmp_path, writer, said):
    writer.append([said("x" * 10_000)] * 5)
    writer.append([said("x" * 10_000)] * 5)
    sizes = [(tmp_path / path).read_bytes().count(b"\n") for path in (segment_path(1), LIVE)]
    assert sizes == [5, 5]


def test_nothing_is_acknowledged_before_everything_is_synced(tmp_path, writer, said, monkeypatch):
    order = []
    for name in ("write", "fdatasync", "fsync", "link", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda *a, name=name, real=real, **n: (order.append(name), real(*a, **n))[1]
        )
    writer.append([said("x" * 1_000)] * 130)
    assert order[:2] == ["write", "fdatasync"]
    assert order[-2:] == ["write", "fdatasync"]
    for place, name in enumerate(order):
        if name == "link":  # what gets its second name is synced, and the name too before the log begins anew
            assert "write" not in order[order[:place].index("fdatasync") if place == 2 else place - 1 : place]
            assert order[place + 1] == "fsync"
            assert order[place + 2 : place + 4] == ["replace", "fsync"]


class _Failing:
    """Lets some calls pass and fails the next."""

    def __init__(self, real, passing):
        self._real, self._left = real, passing

    def __call__(self, *args):
        self._left -= 1
        if self._left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._real(*args)


@pytest.mark.parametrize("call", ["write", "fdatasync"])
def test_a_disk_that_fills_amid_a_large_batch_leaves_what_was_synced_and_says_so(
    tmp_path, writer, history, said, codec, monkeypatch, call
):
    writer.append([said("first")])
    with monkeypatch.context() as patch:
        patch.setattr(os, call, _Failing(getattr(os, call), 2))
        with pytest.raises(
            HistoryWriteFailed, match=r"The first (\d+) of 200 events were recorded"
        ) as raised:
            writer.append([said("x" * 1_000)] * 200)
    recorded = int(str(raised.value).split("first ")[1].split()[0])
    assert 0 < recorded < 200
    assert _seqs(history.read()) == list(range(1, recorded + 2))
    assert _seqs(writer.catch_up()) == list(range(2, recorded + 2))
    assert _seqs(writer.append([said("on")])) == [recorded + 2]
    other = HistoryWriter(tmp_path, codec)
    assert len(other.catch_up()) == recorded + 2
    other.close()


def test_after_a_part_was_recorded_nothing_is_appended_before_it_is_read(writer, said, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", _Failing(os.fdatasync, 1))
        with pytest.raises(HistoryWriteFailed, match="were recorded"):
            writer.append([said("x" * 1_000)] * 100)
    with pytest.raises(HistoryWriteFailed, match="must be read again"):
        writer.append([said("blind")])
    assert writer.catch_up()
    writer.append([said("seeing")])


def test_what_cannot_be_taken_back_is_found_by_the_next_look(tmp_path, writer, history, said, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", _Failing(os.fdatasync, 0))
        patch.setattr(os, "ftruncate", _Failing(os.ftruncate, 0))
        with pytest.raises(HistoryWriteFailed, match="the next read of the log shows it"):
            writer.append([said("perhaps")])
    assert _seqs(writer.catch_up()) == [1]
    assert _seqs(writer.append([said("next")])) == [2]
    assert _seqs(history.read()) == [1, 2]


def test_of_two_that_append_at_one_moment_without_a_lock_the_second_is_told(
    tmp_path, writer, history, said, codec
):
    writer.append([said("one")])
    other = HistoryWriter(tmp_path, codec)
    other.catch_up()
    writer.append([said("winner")])
    with pytest.raises(WriterConflict, match="ignoring the lock"):
        other.append([said("loser")])
    assert [event.data.body.text for event in other.catch_up()] == ["winner"]
    other.append([said("again")])
    other.close()
    texts = [event.data.body.text for event in history.read(on_damage=lambda _: None)]
    assert texts == ["one", "winner", "again"]


def test_reading_from_a_place_checks_the_first_event_against_it(tmp_path, writer, history, said, codec):
    events = writer.append([said("one"), said("two")])
    place = history.locate(1, events[0].hash)
    assert history.holds(place)
    assert history.event_at(place) == events[0]
    foreign, _ = codec.encode(said("foreign"), seq=2, previous="ab" * 32)
    (tmp_path / LIVE).write_bytes((tmp_path / LIVE).read_bytes()[: place.offset] + foreign)
    told = []
    assert list(history.read(place, told.append)) == []
    assert [(found.line, found.reason) for found in told] == [(2, "Event 2 does not follow from event 1.")]


@pytest.mark.parametrize("segments", [3, 12])
def test_finding_an_event_opens_few_files_whatever_the_length(
    tmp_path, writer, history, said, monkeypatch, segments
):
    while writer.segments < segments:
        events = writer.append([said("x" * 9_000)] * 6)
    opened = []
    real = History._files
    monkeypatch.setattr(History, "_files", lambda *a, **k: (opened.append(1) or one for one in real(*a, **k)))
    place = history.locate(events[-1].seq, events[-1].hash)
    assert place.segment == count_segments(tmp_path) + 1
    assert history.holds(place)
    assert next(history.read(place), None) is None
    assert len(opened) <= 4


def test_after_a_seal_that_failed_nothing_is_appended_to_the_sealed_segment(
    tmp_path, writer, history, said, monkeypatch
):
    writer.append([said("x" * 10_000)] * 6)
    with monkeypatch.context() as patch:
        patch.setattr(
            os, "fsync", _Failing(os.fsync, 3)
        )  # two folders are made and filled; then the log's own fails
        with pytest.raises(HistoryWriteFailed, match="Nothing was recorded"):
            writer.append([said("x" * 10_000)])
    sealed = (tmp_path / segment_path(1)).read_bytes()
    with pytest.raises(HistoryWriteFailed, match="must be read again"):
        writer.append([said("blind")])
    assert writer.catch_up() == []
    writer.append([said("seeing")])
    assert (tmp_path / segment_path(1)).read_bytes() == sealed
    assert _seqs(history.read()) == [1, 2, 3, 4, 5, 6, 7]


def test_a_disk_that_refuses_while_others_are_read_is_an_error_of_ours(tmp_path, writer, said, codec):
    writer.append([said("one")])
    (tmp_path / "history").write_text("in the way")
    with (tmp_path / LIVE).open("ab") as file:
        file.write(b"garbage\n")
    with pytest.raises(HistoryWriteFailed, match="ready for an append: File exists"):
        writer.catch_up()
    (tmp_path / "history").unlink()
    assert writer.catch_up() == []
    assert _seqs(writer.append([said("two")])) == [2]


def test_a_line_that_holds_a_carriage_return_is_one_orphan(tmp_path, writer, said):
    writer.append([said("one")])
    with (tmp_path / LIVE).open("ab") as file:
        file.write(b"some\rgarbage\n")
    writer.catch_up()
    assert len((tmp_path / ORPHANS).read_text().splitlines()) == 1
