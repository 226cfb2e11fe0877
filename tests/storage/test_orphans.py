"""Orphans are kept once each, and what was read of them is not read again."""

import json
import os
from pathlib import Path

import pytest

from agentx.storage.log.orphans import Orphans


@pytest.fixture
def path(tmp_path):
    return tmp_path / "history" / "orphans.jsonl"


def _contents(path):
    return [json.loads(entry)["content"] for entry in path.read_text().splitlines() if entry]


def test_each_is_kept_once_by_whichever_process(path):
    first, second = Orphans(path), Orphans(path)
    first.keep([(b"one\n", "why"), (b"two\n", "why"), (b"one\n", "why")])
    second.keep([(b"two\n", "why"), (b"three\xff\n", "why")])
    first.keep([(b"three\xff\n", "why")])
    assert _contents(path) == ["one", "two", "three\\xff"]


def test_what_was_read_is_not_read_again(path, monkeypatch):
    orphans = Orphans(path)
    for n in range(50):
        orphans.keep([(b"%d" % n, "why")])
    reads = []
    opened = Path.open

    def counted(self, *args):
        file = opened(self, *args)
        monkeypatch.setattr(orphans, "_known", _Counting(reads, orphans._known))
        return file

    monkeypatch.setattr(Path, "open", counted)
    orphans.keep([(b"new", "why")])
    assert reads == []


class _Counting(set):
    def __init__(self, reads, known):
        super().__init__(known)
        self._reads = reads

    def add(self, mark):
        self._reads.append(mark)
        super().add(mark)


def test_one_sync_for_all_that_are_found_at_once_and_none_for_what_is_known(path, monkeypatch):
    syncs = []
    monkeypatch.setattr(os, "fsync", syncs.append)
    orphans = Orphans(path)
    orphans.keep([(b"%d" % n, "why") for n in range(100)])
    orphans.keep([(b"%d" % n, "why") for n in range(100)])
    assert len(syncs) == 1


def test_behind_an_entry_that_a_crash_cut_off_the_next_is_whole(path):
    Orphans(path).keep([(b"one", "why")])
    with path.open("ab") as file:
        file.write(b'{"why": "x", "con')
    Orphans(path).keep([(b"two", "why")])
    lines = path.read_text().splitlines()
    assert [json.loads(line)["content"] for line in (lines[0], lines[2])] == ["one", "two"]


def test_a_file_that_was_set_back_gets_them_again(path):
    orphans = Orphans(path)
    orphans.keep([(b"one", "why"), (b"two", "why")])
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    orphans.keep([(b"one", "why"), (b"two", "why")])
    assert _contents(path) == ["one", "two"]
