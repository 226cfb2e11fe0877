"""A long log is folded by several processes, and nobody can tell but by the clock."""

import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agentx.storage.events.codec import GENESIS, Codec, purge
from agentx.storage.events.facts import FACTS
from agentx.storage.events.types import (
    AgentMessageSent,
    ApprovalDecided,
    Body,
    ContextProvided,
    Draft,
    Payload,
    RunEnded,
    RunStarted,
    ToolCallExecuted,
    ToolCallRequested,
    UserMessageSent,
    WorkspaceCreated,
)
from agentx.storage.log.history import LIVE, SEGMENT_BYTES, History, HistoryDamaged, Position, segment_path
from agentx.synthesis.memory.conclusions import CONCLUSIONS, Add, Concluded, Patch
from agentx.synthesis.memory.items import Evidence, MemoryItem
from agentx.synthesis.memory.record_codec import record_codec
from agentx.synthesis.state import parallel_fold
from agentx.synthesis.state.parallel_fold import SHORT_SEGMENTS, STRETCH_SEGMENTS, fold
from agentx.synthesis.state.state import State


class Novelty(Payload, frozen=True):
    """Of a version to come."""


CODEC = record_codec()
NEWER = Codec(FACTS | CONCLUSIONS | {"Novelty": Novelty})
SEGMENTS = SHORT_SEGMENTS + 10
STRETCHES = -(-SEGMENTS // STRETCH_SEGMENTS)


def _payload(seq):
    """Runs, calls that wait across any border, and memory, among messages that fill the segments."""
    known = Evidence(seq=1, quote="Why.")
    match seq % 12:
        case 0:
            return ToolCallRequested(call_id=f"c{seq}", tool="deploy", awaits_approval=seq % 24 == 0)
        case 2:
            return ApprovalDecided(call_id=f"c{seq - 2}", approved=True)
        case 4 if seq % 5:
            return ToolCallExecuted(call_id=f"c{seq - 28}", tool="deploy", status="SUCCEEDED")
        case 4:
            return ToolCallExecuted(call_id=f"c{seq - 28}", tool="another", status="FAILED")
        case 6:
            item = MemoryItem(id=f"i{seq}", kind="knowledge", text="Known.", evidence=(known,))
            return Concluded(extractor="x", version=1, through=seq - 1, changes=(Add(item),))
        case 8:
            gone = (Patch(id=f"i{seq - 2 - 12 * 7}", status="retired"),)
            return Concluded(extractor="x", version=1, through=seq - 1, changes=gone)
        case 9 if seq % 2:
            return ContextProvided(tokens=seq)
        case 9:
            return RunStarted(task=Body("Go on."), agent="main", model="m")
        case 10:
            return RunEnded(status="COMPLETED") if seq % 7 else Novelty()
        case 11:
            return UserMessageSent(body=Body(f"{seq}:" + "u" * 14_000))
        case _:
            return AgentMessageSent(body=Body(f"{seq}:" + "a" * 14_000), final=seq % 3 == 0)


def _lines():
    at, previous = datetime(2026, 11, 20, tzinfo=UTC), GENESIS
    seq = 0
    while True:
        seq += 1
        data = WorkspaceCreated(title="Long", format=1) if seq == 1 else _payload(seq)
        draft = Draft(data=data, actor="user", run=f"r-{seq // 24}")
        line, event = NEWER.encode(draft, seq=seq, previous=previous, at=at + timedelta(seconds=seq))
        previous = event.hash
        yield line


@pytest.fixture(scope="module")
def long_log(tmp_path_factory):
    root, lines, held = tmp_path_factory.mktemp("long"), _lines(), b""
    for segment in range(1, SEGMENTS + 2):
        content = held
        while len(content) + len(held := next(lines)) <= SEGMENT_BYTES:
            content += held
        path = root / (segment_path(segment) if segment <= SEGMENTS else LIVE)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


@pytest.fixture
def log(long_log, tmp_path, monkeypatch):
    monkeypatch.setattr(parallel_fold, "_processors", lambda: 2)
    return Path(shutil.copytree(long_log, tmp_path / "log"))


@pytest.fixture
def passed(monkeypatch):
    """The stretches that a state passed over."""
    found, kept = [], State.pass_over

    def counting(state, stretch, decode):
        found.append(stretch)
        kept(state, stretch, decode)

    monkeypatch.setattr(State, "pass_over", counting)
    return found


def _by_line(root, codec=CODEC):
    damage = []
    return State().apply_all(History(root, codec).read(on_damage=damage.append)), damage


def _assert_same(root, codec=CODEC):
    damage = []
    state, expected = fold(root, codec, damage.append), _by_line(root, codec)
    assert state.dump() == expected[0].dump()
    assert damage == expected[1]
    return damage


def _edit(root, segment, change):
    path = root / segment_path(segment)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(change(lines)))


def _flip(line):
    middle = line.index(b'"data":') + 15
    return line[:middle] + bytes([line[middle] ^ 1]) + line[middle + 1 :]


def test_a_long_log_is_passed_over_in_stretches(log, passed):
    assert not _assert_same(log)
    assert len(passed) == STRETCHES
    assert passed[-1].seq < fold(log, CODEC).seq
    assert sum(sum(stretch.counts.values()) for stretch in passed[:STRETCHES]) == passed[STRETCHES - 1].seq


def test_little_of_a_stretch_is_sent(log, passed):
    fold(log, CODEC)
    for stretch in passed:
        assert len(stretch.lines) + len(stretch.messages) < sum(stretch.counts.values())


def test_a_short_log_is_read_by_line(log, passed):
    for segment in range(SHORT_SEGMENTS, SEGMENTS + 1):
        (log / segment_path(segment)).unlink()
    _assert_same(log)
    assert not passed


def test_one_processor_reads_by_line(log, passed, monkeypatch):
    monkeypatch.setattr(parallel_fold, "_processors", lambda: 1)
    assert not _assert_same(log)
    assert not passed


def _foreign(lines):
    """A line of another history, which goes on from the same event."""
    event = CODEC.decode(lines[-2])
    draft = Draft(data=UserMessageSent(body=Body("Not ours.")), actor="user")
    return [*lines[:-1], CODEC.encode(draft, seq=event.seq + 1, previous=event.hash)[0], lines[-1]]


DAMAGES = {
    "bytes flipped here and there": lambda root: [
        _edit(root, segment, lambda lines: [lines[0], _flip(lines[1]), *lines[2:]])
        for segment in (40, 41, 80, SEGMENTS)
    ],
    "the first line": lambda root: _edit(root, 1, lambda lines: [_flip(lines[0]), *lines[1:]]),
    "the last line of a stretch": lambda root: _edit(
        root, STRETCH_SEGMENTS, lambda lines: [*lines[:-1], _flip(lines[-1])]
    ),
    "the first line of a stretch": lambda root: _edit(
        root, STRETCH_SEGMENTS + 1, lambda lines: [b"{}\n", *lines[1:]]
    ),
    "a line cut out": lambda root: _edit(root, 70, lambda lines: [*lines[:1], *lines[2:]]),
    "a line twice": lambda root: _edit(root, 50, lambda lines: [*lines[:2], *lines[1:]]),
    "a torn segment": lambda root: _edit(root, 50, lambda lines: [*lines[:-1], lines[-1][:99]]),
    "an empty segment": lambda root: _edit(root, 2 * STRETCH_SEGMENTS, lambda _lines: []),
    "a foreign line": lambda root: _edit(root, 60, _foreign),
    "a lost segment": lambda root: (root / segment_path(50)).unlink(),
    "the first segment lost": lambda root: (root / segment_path(1)).unlink(),
    "the last segment of a stretch lost": lambda root: (root / segment_path(STRETCH_SEGMENTS)).unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_told_as_by_line(log, damage):
    DAMAGES[damage](log)
    told = _assert_same(log)
    if told:
        with pytest.raises(HistoryDamaged):
            fold(log, CODEC)


def test_what_stands_before_damage_is_passed_over(log, passed):
    DAMAGES["bytes flipped here and there"](log)
    assert _assert_same(log)
    assert len(passed) == 1


def test_a_segment_sealed_twice_is_taken_once(log):
    os.link(log / LIVE, log / segment_path(SEGMENTS + 1))
    shutil.copy(log / segment_path(SEGMENTS + 1), log / segment_path(SEGMENTS + 2))
    _assert_same(log)


def test_purged_events_and_unknown_types_stop_no_stretch(log, passed):
    _edit(log, 10, lambda lines: [purge(line) for line in lines])
    assert not _assert_same(log)
    assert len(passed) == STRETCHES
    assert fold(log, CODEC).unknown > 1


@pytest.mark.parametrize("program", ["/bin/true", "/bin/echo", "/nonexistent/python", ""])
def test_without_other_processes_the_log_is_read_by_line(log, passed, monkeypatch, program):
    monkeypatch.setattr(sys, "executable", program)
    assert not _assert_same(log)
    assert not passed


def test_processes_that_know_other_types_are_not_asked(log, passed):
    codec = Codec(FACTS)
    assert not _assert_same(log, codec)
    assert _by_line(log, codec)[0].unknown
    assert not passed


def test_a_caller_that_stops_leaves_no_process(log, monkeypatch):
    started = []

    class Watched(subprocess.Popen):
        def __init__(self, *words, **options):
            super().__init__(*words, **options)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Watched)
    with pytest.raises(ZeroDivisionError):
        fold(log, CODEC, told=lambda _seq: 1 / 0)
    assert started
    assert all(process.returncode is not None for process in started)


def test_progress_is_told_of_each_stretch(log):
    told = []
    fold(log, CODEC, told=told.append)
    assert len(told) == STRETCHES
    assert told == sorted(told)


def test_the_start_of_a_segment_stands_behind_the_one_before(log):
    history = History(log, CODEC)
    assert history.start_of(1) == Position()
    start = history.start_of(51)
    assert next(history.read(start)).seq == start.seq + 1
    assert (start.segment, start.offset) == (51, 0)
