"""Keys are found exactly, whatever happened to the cache, and without reading the history again."""

import sqlite3
import subprocess
import sys

import pytest

from agentx.storage.log.history import LIVE, History, HistoryWriter, segment_path
from agentx.storage.log.keys import Keys


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".agentx" / "keys.sqlite"


@pytest.fixture
def keys(path, history):
    made = Keys(path, history)
    yield made
    made.close()


def _fill(writer, said, count, size=3_000):
    return [
        writer.append([said(f"{n}:" + "x" * size, key=f"k{writer.seq}" if n % 3 == 0 else "")])[0] for n in range(count)
    ]  # fmt: skip


def _expected(events):
    return {event.key: event for event in events if event.key}


def test_every_key_is_found_with_its_event_and_no_other(writer, said, keys):
    events = _fill(writer, said, 60)
    wanted = _expected(events)
    assert keys.find([*wanted, "never", ""]) == wanted


def test_what_is_appended_later_is_found_too(writer, said, keys):
    assert keys.find(["late"]) == {}
    for n in range(40):
        event = writer.append([said("x" * 4_000, key=f"late {n}")])[0]
        assert keys.find([f"late {n}", "never"]) == {f"late {n}": event}


def _count_reads(monkeypatch):
    lines = []
    decode = History._seq_of
    monkeypatch.setattr(History, "_seq_of", lambda self, line: lines.append(line) or decode(self, line))
    files = []
    opened = History._files
    monkeypatch.setattr(
        History, "_files", lambda *a, **k: (files.append(one[0]) or one for one in opened(*a, **k))
    )
    return lines, files


def test_another_process_reads_the_tail_alone(path, writer, said, keys, history, monkeypatch):
    events = _fill(writer, said, 400)
    keys.find(["k0"])
    keys.close()
    tail = writer.append([said("tail", key="tail")])
    lines, files = _count_reads(monkeypatch)
    other = Keys(path, history)
    assert other.find(["tail", "k0"]) == _expected([events[0], *tail])
    other.close()
    assert len(files) <= 8
    assert len(lines) <= 4


def test_events_without_a_key_are_not_read_twice(writer, said, keys, monkeypatch):
    writer.append([said("x")] * 1_500)
    keys.find(["never"])
    _, files = _count_reads(monkeypatch)
    for _ in range(5):
        keys.find(["never"])
    assert len(files) <= 2 * 5


@pytest.mark.parametrize("harm", ["deleted", "garbage", "empty", "torn", "rows gone", "another event"])
def test_a_cache_that_is_gone_or_damaged_is_filled_again(path, writer, said, keys, history, harm):
    events = _fill(writer, said, 30)
    keys.catch_up()
    keys.close()
    if harm == "deleted":
        path.unlink()
    elif harm in {"garbage", "empty", "torn"}:
        content = path.read_bytes()
        path.write_bytes({"garbage": b"x" * 9_000, "empty": b"", "torn": content[:5_000]}[harm])
    else:
        table = sqlite3.connect(path)
        change = "DELETE FROM filled" if harm == "rows gone" else "UPDATE keys SET seq = 2, hash = 'none'"
        table.execute(change)
        table.commit()
        table.close()
    other = Keys(path, history)
    assert other.find(_expected(events)) == _expected(events)
    other.close()


def test_a_log_that_was_set_back_forgets_the_keys_behind(tmp_path, writer, said, keys, codec):
    _fill(writer, said, 4)
    before = (tmp_path / LIVE).read_bytes()
    writer.append([said("gone", key="gone")])
    assert set(keys.find(["k0", "gone"])) == {"k0", "gone"}
    (tmp_path / LIVE).write_bytes(before)
    assert set(keys.find(["k0", "gone"])) == {"k0"}
    other = HistoryWriter(tmp_path, codec)
    other.catch_up()
    other.append([said("another", key="another")])
    other.close()
    assert set(keys.find(["k0", "gone", "another"])) == {"k0", "another"}


def test_where_the_cache_cannot_be_written_keys_are_found_all_the_same(tmp_path, writer, said, history):
    events = _fill(writer, said, 10)
    (tmp_path / ".agentx").write_text("in the way")
    keys = Keys(tmp_path / ".agentx" / "keys.sqlite", history)
    assert keys.find(_expected(events)) == _expected(events)
    event = writer.append([said("later", key="later")])[0]
    assert keys.find(["later"]) == {"later": event}
    keys.close()


def test_keys_in_sealed_segments_are_found_after_many_were_sealed(tmp_path, writer, said, keys):
    events = []
    for _ in range(5):
        events += _fill(writer, said, 30)
        keys.catch_up()
    assert (tmp_path / segment_path(5)).exists()
    assert keys.find(_expected(events)) == _expected(events)


def test_a_segment_that_is_lost_does_not_make_every_look_read_the_whole(
    tmp_path, writer, said, keys, monkeypatch
):
    events = _fill(writer, said, 100)
    (tmp_path / segment_path(2)).unlink()
    keys.find(["never"])
    _, files = _count_reads(monkeypatch)
    assert keys.find([events[-1].key, "never"]) == _expected(events[-1:])
    assert len(files) <= 5


_APPEND_ONCE = """
import sys
from pathlib import Path
from agentx.storage.events.codec import Codec
from agentx.storage.events.types import Body, Draft, UserMessageSent
from agentx.storage.events.facts import FACTS
from agentx.storage.log.history import History, HistoryWriter
from agentx.storage.log.keys import Keys
from agentx.storage.files.lock import FileLock

root, codec = Path(sys.argv[1]), Codec(FACTS)
writer, lock, keys = HistoryWriter(root, codec), FileLock(root / "lock"), Keys(root / "keys", History(root, codec))
for n in range(40):
    with lock.hold():
        writer.catch_up()
        if not keys.find([f"key {n}"]):
            writer.append([Draft(data=UserMessageSent(body=Body("x" * 3_000)), actor="user", key=f"key {n}")])
"""


def test_of_several_processes_with_the_same_keys_one_appends_each(tmp_path, history):
    processes = [subprocess.Popen([sys.executable, "-c", _APPEND_ONCE, str(tmp_path)]) for _ in range(3)]
    assert [process.wait() for process in processes] == [0] * 3
    assert [event.key for event in history.read()] == [f"key {n}" for n in range(40)]
