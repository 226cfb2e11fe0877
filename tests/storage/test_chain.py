"""What follows from nothing in the log is not an event of it; damage hides nothing behind it."""

import json

import pytest

from agentx.storage.events.codec import GENESIS
from agentx.storage.log.history import LIVE, ORPHANS, HistoryWriter, segment_path


def _texts(events) -> list[str]:
    return [event.data.body.text[:20] for event in events]


@pytest.fixture
def line(codec, said):
    """A line as a writer would make it that knows of an event."""

    def make(text, behind=None, seq=0) -> bytes:
        before, own_hash = (behind.seq, behind.hash) if behind else (0, GENESIS)
        return codec.encode(said(text), seq=seq or before + 1, previous=own_hash)[0]

    return make


@pytest.fixture
def put(tmp_path):
    def append(*lines):
        with (tmp_path / LIVE).open("ab") as file:
            file.writelines(lines)

    return append


def _orphans(tmp_path):
    return [json.loads(entry)["content"] for entry in (tmp_path / ORPHANS).read_text().splitlines()]


@pytest.mark.parametrize("seq", [3, 14, 1_000, 2**63 - 1])
def test_a_forged_line_makes_neither_reader_nor_writer_jump(tmp_path, writer, history, said, line, put, seq):
    writer.append([said("one"), said("two")])
    put(line("forged", seq=seq))
    told = []
    assert _texts(history.read(on_damage=told.append)) == ["one", "two"]
    assert [found.reason for found in told] == [f"Event {seq} does not follow from event 2."]
    assert writer.catch_up() == []
    assert [event.seq for event in writer.append([said("three"), said("four")])] == [3, 4]
    assert _texts(history.read(on_damage=told.append)) == ["one", "two", "three", "four"]
    assert len(_orphans(tmp_path)) == 1


def test_a_forged_line_behind_a_damaged_one_may_not_skip_more_than_that_could_hide(
    tmp_path, writer, history, said, line, put, codec
):
    writer.append([said("one")])
    put(b"garbage\n", line("forged", seq=1_000))
    other = HistoryWriter(tmp_path, codec)
    assert _texts(other.catch_up()) == ["one"]
    other.append([said("two")])
    other.close()
    assert _texts(history.read(on_damage=lambda _: None)) == ["one", "two"]


def test_all_lines_of_a_writer_that_lost_are_foreign_not_the_first_alone(
    tmp_path, writer, history, said, line, put, codec
):
    one = writer.append([said("one")])[0]
    writer.append([said("two")])
    behind, lost = one, []
    for n in range(4):
        lost.append(line(f"lost {n}", behind))
        behind = codec.decode(lost[-1])
    put(*lost)
    assert writer.catch_up() == []
    writer.append([said("three")])
    assert _texts(history.read(on_damage=lambda _: None)) == ["one", "two", "three"]
    other = HistoryWriter(tmp_path, codec)
    assert _texts(other.catch_up()) == ["one", "two", "three"]
    other.close()
    assert len(_orphans(tmp_path)) == 4


def test_what_the_winner_wrote_behind_lost_lines_is_read(writer, history, said, line, put):
    one = writer.append([said("one")])[0]
    writer.append([said("two")])
    put(line("lost", one), line("lost, far", one, seq=99))
    writer.catch_up()
    for n in range(3, 40):
        writer.append([said(f"{n} " + "x" * 4_000)])
    assert [event.seq for event in history.read(on_damage=lambda _: None)] == list(range(1, 40))


def test_a_foreign_line_that_was_sealed_hides_nothing_in_the_next_segment(
    tmp_path, writer, history, said, line, put
):
    for n in range(12):
        writer.append([said(f"{n} " + "x" * 5_000)])
    put(line("far", seq=500))
    writer.catch_up()
    writer.append([said("next " + "x" * 9_000)])
    assert (tmp_path / segment_path(1)).read_bytes().endswith(line("far", seq=500)[-3:])
    assert [event.seq for event in history.read(on_damage=lambda _: None)] == list(range(1, 14))


def test_the_last_lines_of_a_segment_behind_a_missing_one_are_events(tmp_path, writer, history, said):
    for n in range(30):
        writer.append([said(f"{n} " + "x" * 5_000)])
    sealed = tmp_path / segment_path(1)
    lines = sealed.read_bytes().splitlines(keepends=True)
    sealed.write_bytes(b"".join([*lines[:-2], lines[-1]]))
    told = []
    seqs = [event.seq for event in history.read(on_damage=told.append)]
    assert seqs == [n for n in range(1, 31) if n != len(lines) - 1]
    assert [found.reason for found in told] == [f"Events {len(lines) - 1} to {len(lines) - 1} are missing."]


def test_several_damaged_lines_hide_only_themselves(tmp_path, writer, history, said):
    writer.append([said(str(n)) for n in range(1, 10)])
    lines = (tmp_path / LIVE).read_bytes().splitlines(keepends=True)
    lines[2] = lines[3] = b"garbage\n"
    lines[5] = lines[5].replace(b'"6"', b'"9"')
    lines[7] = b""
    (tmp_path / LIVE).write_bytes(b"".join(lines))
    assert _texts(history.read(on_damage=lambda _: None)) == ["1", "2", "5", "7", "9"]


def test_a_line_that_stands_twice_is_one_event(writer, history, said, tmp_path):
    writer.append([said("one"), said("two"), said("three")])
    lines = (tmp_path / LIVE).read_bytes().splitlines(keepends=True)
    (tmp_path / LIVE).write_bytes(b"".join([*lines[:2], lines[1], lines[2], lines[0]]))
    assert _texts(history.read(on_damage=lambda _: None)) == ["one", "two", "three"]
