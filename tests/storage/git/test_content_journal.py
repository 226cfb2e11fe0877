"""The content journal gives back, after a crash, each content that it had made durable."""

import zlib

import pytest

from agentx.storage.git import content_journal
from agentx.storage.git.content_journal import LARGEST_BYTES, ContentJournal, write_back
from agentx.storage.git.objects import blob_id, loose_path, read_loose
from agentx.storage.git.repository import GitRepository


@pytest.fixture
def repo(tmp_path):
    repo = GitRepository.init(tmp_path)
    yield repo
    repo.close()


@pytest.fixture
def journal(repo):
    return repo.git_dir / content_journal.NAME


def _add(journal, *contents):
    for content in contents:
        journal.add(blob_id(content), len(content), zlib.compress(content))
    journal.sync()


def _held(repo, content):
    found = read_loose(loose_path(repo.git_dir, blob_id(content)), blob_id(content))
    return found is not None and found[1] == content


def test_contents_are_written_back_as_blobs(repo):
    _add(ContentJournal(repo.git_dir), b"one", b"", b"two" * 9_000)
    write_back(repo.git_dir)
    assert _held(repo, b"one")
    assert _held(repo, b"")
    assert _held(repo, b"two" * 9_000)


@pytest.mark.parametrize(
    "garbage", [b"\xa9A", b"\0" * 50, content_journal._MAGIC + b"\0\0\0\x40" + b"x" * 40]
)
def test_what_a_crash_tore_hides_no_other_content(repo, journal, garbage):
    first, second = ContentJournal(repo.git_dir), ContentJournal(repo.git_dir)
    _add(first, b"before")
    journal.write_bytes(journal.read_bytes() + garbage)
    _add(second, b"behind")
    write_back(repo.git_dir)
    assert _held(repo, b"before")
    assert _held(repo, b"behind")


def test_a_content_that_is_not_intact_is_not_written(repo, journal):
    _add(ContentJournal(repo.git_dir), b"intact", b"spoiled")
    content = bytearray(journal.read_bytes())
    content[-3] ^= 1
    journal.write_bytes(content)
    write_back(repo.git_dir)
    assert _held(repo, b"intact")
    assert not _held(repo, b"spoiled")


def test_it_is_emptied_once_its_contents_are_synced(repo, journal):
    oid = repo.stage_blob(b"content")
    repo.sync_contents()
    assert journal.stat().st_size
    repo.sync()
    repo.settle_contents()
    assert journal.stat().st_size == 0
    assert repo.read_blob(oid) == b"content"


def test_the_contents_of_another_process_stay_while_there_are_few(repo, journal):
    _add(ContentJournal(repo.git_dir), b"of another")
    repo.stage_blob(b"ours")
    repo.sync()
    repo.settle_contents()
    write_back(repo.git_dir)
    assert _held(repo, b"of another")


def test_the_contents_of_another_process_are_synced_before_it_is_emptied(repo, journal, monkeypatch):
    monkeypatch.setattr(content_journal, "SHARED_BYTES", 1)
    _add(ContentJournal(repo.git_dir), b"of another")
    repo.stage_blob(b"ours")
    repo.sync()
    repo.settle_contents()
    assert journal.stat().st_size == 0
    assert _held(repo, b"of another")


def test_a_large_content_is_no_part_of_it(repo, journal):
    large = bytes(range(256)) * 4
    big = b"".join(blob_id(b"%d" % number).encode() for number in range(LARGEST_BYTES // 20))
    repo.stage_blob(large)
    before = journal.stat().st_size
    repo.stage_blob(big)
    assert journal.stat().st_size == before
    assert _held(repo, big)


def test_a_full_one_takes_nothing_more(repo, journal, monkeypatch):
    repo.stage_blob(b"one")
    before = journal.stat().st_size
    monkeypatch.setattr(content_journal, "FULL_BYTES", 1)
    repo.stage_blob(b"two")
    assert journal.stat().st_size == before
    assert _held(repo, b"two")
