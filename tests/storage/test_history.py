"""The log: sealed at 64 KB, read by anyone without a lock, and never losing a line that was acknowledged."""

import json
import os
import subprocess
import sys
import threading

import pytest

from agentx.storage.events.codec import MAX_LINE_BYTES, Codec
from agentx.storage.events.facts import FACTS
from agentx.storage.files import nofollow
from agentx.storage.files.lock import FileLock
from agentx.storage.log.history import (
    LIVE,
    ORPHANS,
    SEGMENT_BYTES,
    Damage,
    History,
    HistoryDamaged,
    HistoryRewound,
    HistoryWriteFailed,
    HistoryWriter,
    count_segments,
    segment_path,
)


def _texts(events) -> list[str]:
    return [event.data.body.text for event in events]


def _seqs(events) -> list[int]:
    return [event.seq for event in events]


def _fill(writer, said, count, size=5_000):
    for n in range(count):
        writer.append([said(f"{n}:" + "x" * size)])


def _live_lines(root) -> list[bytes]:
    return (root / LIVE).read_bytes().splitlines(keepends=True)


def test_events_are_read_in_the_order_in_which_they_were_appended(writer, history, said):
    writer.append([said("one"), said("two")])
    writer.append([said("three")])
    assert _texts(history.read()) == ["one", "two", "three"]
    assert _seqs(history.read()) == [1, 2, 3]


def test_what_append_returns_is_what_a_reader_reads(writer, history, said):
    returned = writer.append([said("one", key="k", run="r", cause=7)])
    assert returned == list(history.read())


def test_the_log_is_sealed_before_it_passes_64_kb(tmp_path, writer, history, said):
    _fill(writer, said, 40)
    sealed = sorted(str(p.relative_to(tmp_path)) for p in (tmp_path / "history").rglob("*.jsonl"))
    assert sealed == ["history/000/001.jsonl", "history/000/002.jsonl", "history/000/003.jsonl"]
    assert (tmp_path / LIVE).exists()
    for path in [*sealed, LIVE]:
        assert 0 < (tmp_path / path).stat().st_size <= SEGMENT_BYTES
    assert count_segments(tmp_path) == writer.segments == 3
    assert _seqs(history.read()) == list(range(1, 41))


def test_a_sealed_segment_never_changes(tmp_path, writer, said):
    _fill(writer, said, 14)
    before = (tmp_path / segment_path(1)).read_bytes()
    _fill(writer, said, 30)
    assert (tmp_path / segment_path(1)).read_bytes() == before


def test_the_hundredth_segment_begins_a_new_folder():
    assert [segment_path(n) for n in (1, 99, 100, 101, 12_345)] == [
        "history/000/001.jsonl",
        "history/000/099.jsonl",
        "history/001/000.jsonl",
        "history/001/001.jsonl",
        "history/123/045.jsonl",
    ]


def test_reading_behind_any_event_gives_all_that_follow(writer, history, said):
    _fill(writer, said, 45)
    for after in range(47):
        assert _seqs(history.read(after)) == list(range(after + 1, 46))


def test_reading_behind_a_late_event_opens_no_early_segment(tmp_path, writer, history, said):
    _fill(writer, said, 45)
    first = tmp_path / segment_path(1)
    first.write_bytes(b"garbage that would be noticed\n" * 10)
    assert _seqs(history.read(40)) == [41, 42, 43, 44, 45]
    with pytest.raises(HistoryDamaged, match=r"history/000/001.jsonl, line 1: .*agentx doctor"):
        list(history.read())


def test_a_reader_passes_over_a_line_without_its_newline(tmp_path, writer, history, said):
    writer.append([said("one")])
    with (tmp_path / LIVE).open("ab") as file:
        file.write(b'{"seq":2,"at":"2026')
    assert _texts(history.read()) == ["one"]


def test_a_writer_sets_a_torn_line_aside_and_goes_on(tmp_path, writer, history, said, codec):
    writer.append([said("one")])
    writer.close()
    with (tmp_path / LIVE).open("ab") as file:
        file.write(b'{"seq":2,"at":"2026\xff')
    other = HistoryWriter(tmp_path, codec)
    assert _texts(other.catch_up()) == ["one"]
    other.append([said("two")])
    other.close()
    assert _texts(history.read()) == ["one", "two"]
    orphan = json.loads((tmp_path / ORPHANS).read_text())
    assert orphan["content"].startswith('{"seq":2,"at":"2026')
    assert "torn" in orphan["why"]


@pytest.mark.parametrize("harm", ["garbled", "cut", "gone", "empty", "nul", "not utf-8"])
def test_a_damaged_or_missing_line_in_the_middle_hides_nothing_else(tmp_path, writer, history, said, harm):
    writer.append([said(str(n)) for n in range(1, 6)])
    lines = _live_lines(tmp_path)
    lines[2] = {
        "garbled": lines[2].replace(b'"3"', b'"9"'),
        "cut": lines[2][:40] + b"\n",
        "gone": b"",
        "empty": b"\n",
        "nul": b"\0" * 50 + b"\n",
        "not utf-8": lines[2].replace(b'"3"', b'"\xff\xfe"'),
    }[harm]
    (tmp_path / LIVE).write_bytes(b"".join(lines))
    damage: list[Damage] = []
    assert _seqs(history.read(on_damage=damage.append)) == [1, 2, 4, 5]
    assert damage
    assert {found.path for found in damage} == {LIVE}
    with pytest.raises(HistoryDamaged):
        list(history.read())


def test_a_damaged_line_in_a_sealed_segment_hides_nothing_else(tmp_path, writer, history, said):
    _fill(writer, said, 30)
    sealed = tmp_path / segment_path(1)
    sealed.write_bytes(sealed.read_bytes().replace(b'"4:xxx', b'"4:yyy'))
    damage: list[Damage] = []
    assert _seqs(history.read(on_damage=damage.append)) == [n for n in range(1, 31) if n != 5]
    assert (damage[0].path, damage[0].line) == (segment_path(1), 5)


def test_a_writer_goes_on_behind_a_damaged_line(tmp_path, writer, history, said, codec):
    writer.append([said("1"), said("2"), said("3")])
    lines = _live_lines(tmp_path)
    (tmp_path / LIVE).write_bytes(lines[0] + b"garbage\n" + lines[2])
    other = HistoryWriter(tmp_path, codec)
    other.catch_up(lambda _: None)
    other.append([said("4")])
    other.close()
    assert _texts(history.read(on_damage=lambda _: None)) == ["1", "3", "4"]


def test_the_loser_of_two_writers_without_a_lock_is_set_aside_once_and_told_of(
    tmp_path, writer, history, said, codec
):
    writer.append([said("first")])
    loser = HistoryWriter(tmp_path, codec)
    loser.catch_up()
    writer.append([said("winner")])
    line, _ = codec.encode(said("loser"), seq=2, previous=loser.hash)
    loser.close()
    with (tmp_path / LIVE).open("ab") as file:
        file.write(line)
    damage: list[Damage] = []
    assert writer.catch_up(damage.append) == []
    writer.append([said("third")])
    assert [found.reason for found in damage] == ["A second event 2 follows event 2."]
    told: list[Damage] = []
    assert _texts(history.read(on_damage=told.append)) == ["first", "winner", "third"]
    assert told == []  # what was set aside is out of the log
    for _ in range(3):
        again = HistoryWriter(tmp_path, codec)
        assert _texts(again.catch_up()) == ["first", "winner", "third"]
        again.close()
    orphans = (tmp_path / ORPHANS).read_text().splitlines()
    assert len(orphans) == 1
    assert "loser" in json.loads(orphans[0])["content"]


def test_a_line_of_another_history_is_set_aside(tmp_path, writer, history, said, codec):
    writer.append([said("ours")])
    foreign, _ = codec.encode(said("theirs"), seq=2, previous="ab" * 32)
    with (tmp_path / LIVE).open("ab") as file:
        file.write(foreign)
    writer.catch_up()
    writer.append([said("ours again")])
    assert _texts(history.read(on_damage=lambda _: None)) == ["ours", "ours again"]
    assert "theirs" in (tmp_path / ORPHANS).read_text()


def test_two_writers_under_a_lock_alternate_and_see_each_other(tmp_path, history, said, codec):
    writers = [HistoryWriter(tmp_path, codec) for _ in range(2)]
    locks = [FileLock(tmp_path / "lock") for _ in range(2)]
    seen: list[list[str]] = [[], []]
    for n in range(60):
        with locks[n % 2].hold():
            seen[n % 2] += [text[:4] for text in _texts(writers[n % 2].catch_up())]
            writers[n % 2].append([said(f"{n:03}:" + "x" * 4_000)])
    for writer in writers:
        writer.close()
    assert _seqs(history.read()) == list(range(1, 61))
    assert seen[0] == [f"{n:03}:" for n in range(1, 58, 2)]
    assert seen[1] == [f"{n:03}:" for n in range(0, 60, 2)]
    assert not (tmp_path / ORPHANS).exists()


_APPEND_MANY = """
import sys
from pathlib import Path
from agentx.storage.events.codec import Codec
from agentx.storage.events.types import Body, Draft, UserMessageSent
from agentx.storage.events.facts import FACTS
from agentx.storage.log.history import HistoryWriter
from agentx.storage.files.lock import FileLock

root, name = Path(sys.argv[1]), sys.argv[2]
writer, lock = HistoryWriter(root, Codec(FACTS)), FileLock(root / "lock")
for n in range(100):
    with lock.hold():
        writer.catch_up()
        body = Body(f"{name}-{n} " + "x" * 900)
        writer.append([Draft(data=UserMessageSent(body=body), actor=f"user:{name}")])
writer.close()
"""


def test_four_processes_append_and_no_event_is_lost_or_out_of_line(tmp_path, history):
    processes = [
        subprocess.Popen([sys.executable, "-c", _APPEND_MANY, str(tmp_path), name]) for name in "abcd"
    ]
    assert [process.wait() for process in processes] == [0] * 4
    events = list(history.read())
    assert _seqs(events) == list(range(1, 401))
    for name in "abcd":
        own = [event.data.body.text.split()[0] for event in events if event.actor == f"user:{name}"]
        assert own == [f"{name}-{n}" for n in range(100)]
    assert count_segments(tmp_path) > 3


def test_segments_that_are_sealed_while_a_reader_looks_for_the_first_are_no_lost_ones(
    tmp_path, writer, history, said, monkeypatch
):
    for n in range(150):
        writer.append([said(f"{n} " + "x" * 1_500)])
    sealed = tmp_path / segment_path(1)
    away = sealed.rename(tmp_path / "away")
    opened = nofollow.open_file

    def looked(path, *arguments):
        try:
            return opened(path, *arguments)
        finally:
            if path == sealed and away.exists():
                away.rename(sealed)

    monkeypatch.setattr(nofollow, "open_file", looked)
    problems = []
    assert _seqs(history.read(on_damage=problems.append)) == list(range(1, 151))
    assert not problems


def test_a_reader_sees_every_event_once_and_in_order_while_a_writer_seals(tmp_path, writer, history, said):
    done = threading.Event()
    problems: list[object] = []

    def read_on():
        last = 0
        while not done.is_set() or last < 400:
            seqs = _seqs(history.read(on_damage=problems.append))
            if seqs != list(range(1, len(seqs) + 1)) or len(seqs) < last:
                problems.append(seqs)
            last = len(seqs)
            if problems:
                return

    reader = threading.Thread(target=read_on)
    reader.start()
    for n in range(400):
        writer.append([said(f"{n} " + "x" * 1_500)])
    done.set()
    reader.join()
    assert not problems
    assert count_segments(tmp_path) > 8


def test_a_seal_that_a_crash_cut_off_is_finished_and_no_event_comes_twice(
    tmp_path, writer, history, said, codec
):
    writer.append([said("one"), said("two")])
    writer.close()
    (tmp_path / segment_path(1)).parent.mkdir(parents=True)
    os.link(tmp_path / LIVE, tmp_path / segment_path(1))
    assert _texts(history.read()) == ["one", "two"]
    other = HistoryWriter(tmp_path, codec)
    assert _texts(other.catch_up()) == ["one", "two"]
    other.append([said("three")])
    other.close()
    assert _texts(history.read()) == ["one", "two", "three"]
    assert _live_lines(tmp_path)[0].startswith(b'{"seq":3,')


def test_a_seal_that_fails_half_way_is_finished_by_the_next_append(
    tmp_path, writer, history, said, monkeypatch
):
    _fill(writer, said, 12)
    start = HistoryWriter._start_live
    monkeypatch.setattr(HistoryWriter, "_start_live", _no_space)
    with pytest.raises(HistoryWriteFailed, match="No space left"):
        _fill(writer, said, 1, size=9_000)
    monkeypatch.setattr(HistoryWriter, "_start_live", start)
    writer.catch_up()
    _fill(writer, said, 1, size=9_000)
    assert count_segments(tmp_path) == 1
    assert _seqs(history.read()) == list(range(1, 14))


def _no_space(_self):
    raise OSError(28, os.strerror(28))


def test_an_event_too_long_leaves_the_log_as_it_was(tmp_path, writer, history, said):
    writer.append([said("one")])
    before = (tmp_path / LIVE).read_bytes()
    with pytest.raises(Exception, match="over the limit"):
        writer.append([said("two"), said("x" * MAX_LINE_BYTES)])
    assert (tmp_path / LIVE).read_bytes() == before
    writer.append([said("three")])
    assert _texts(history.read()) == ["one", "three"]


def test_a_log_that_was_set_back_is_noticed(tmp_path, writer, said):
    writer.append([said("one")])
    before = (tmp_path / LIVE).read_bytes()
    writer.append([said("two")])
    (tmp_path / LIVE).write_bytes(before)
    with pytest.raises(HistoryRewound, match="no longer contains event 2"):
        writer.catch_up()


def test_a_log_that_was_set_back_and_grew_again_is_noticed(tmp_path, writer, said, codec):
    writer.append([said("one")])
    before = (tmp_path / LIVE).read_bytes()
    writer.append([said("two")])
    (tmp_path / LIVE).unlink()
    (tmp_path / LIVE).write_bytes(before)
    other = HistoryWriter(tmp_path, codec)
    other.catch_up()
    other.append([said("another two"), said("another three")])
    other.close()
    with pytest.raises(HistoryRewound):
        writer.catch_up()


def test_a_log_that_was_deleted_is_noticed(tmp_path, writer, said):
    writer.append([said("one")])
    (tmp_path / LIVE).unlink()
    with pytest.raises(HistoryRewound):
        writer.catch_up()


_LIMITED = """
import resource, signal, sys
from pathlib import Path
from agentx.storage.events.codec import Codec
from agentx.storage.events.types import Body, Draft, UserMessageSent
from agentx.storage.events.facts import FACTS
from agentx.storage.log.history import HistoryWriter, HistoryWriteFailed
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
writer = HistoryWriter(Path(sys.argv[1]), Codec(FACTS))
writer.catch_up()
def say(text):
    return writer.append([Draft(data=UserMessageSent(body=Body(text)), actor="user")])[0].seq
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
while True:
    try:
        print(say("x" * 3_000), flush=True)
    except HistoryWriteFailed as error:
        print(error, flush=True)
        break
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(say("room again"), flush=True)
"""


def test_a_full_disk_refuses_the_append_and_loses_nothing(tmp_path, history):
    told = subprocess.run(
        [sys.executable, "-c", _LIMITED, str(tmp_path)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert told[:3] == ["1", "2", "3"]
    assert "File too large" in told[3]
    assert "Nothing was recorded" in told[3]
    assert told[4] == "4"
    events = list(history.read())
    assert _seqs(events) == [1, 2, 3, 4]
    assert events[-1].data.body.text == "room again"
    assert not (tmp_path / ORPHANS).exists()


def test_an_empty_workspace_has_no_events(tmp_path, history):
    assert list(history.read()) == []
    assert list(History(tmp_path / "nowhere", Codec(FACTS)).read()) == []


def test_a_file_in_the_history_folder_that_is_no_segment_is_left_alone(tmp_path, writer, history, said):
    (tmp_path / "history" / "blobs").mkdir(parents=True)
    (tmp_path / "history" / "000").mkdir()
    (tmp_path / "history" / "000" / "notes.jsonl").write_text("mine")
    _fill(writer, said, 14)
    assert _seqs(history.read()) == list(range(1, 15))
