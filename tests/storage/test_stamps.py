"""What a process read of the working files, the next need not read; what changed since is read whatever it looks like."""

import os

import pytest

from agentx.storage import artifacts as module
from agentx.storage import stamps
from agentx.storage.artifacts import Artifacts
from agentx.storage.git.checked_reader import TreeEntry
from agentx.storage.git.objects import blob_id
from agentx.storage.git.repository import REGULAR

FILES = 80


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_RACY_NS", -(10**9))  # the files were not made just now
    root = tmp_path / "artifacts"
    for number in range(FILES):
        (root / f"d{number % 7}").mkdir(parents=True, exist_ok=True)
        (root / f"d{number % 7}" / f"f{number}").write_text(f"content {number:03}")
    return root


@pytest.fixture
def place(tmp_path):
    return tmp_path / "stamps"


@pytest.fixture
def scanned(root, place, monkeypatch):
    """Scan as a new process does; return the paths that changed and those whose content was read."""
    known = {f"d{n % 7}/f{n}": TreeEntry(blob_id(f"content {n:03}".encode()), REGULAR) for n in range(FILES)}
    read = []
    content_of = Artifacts._read
    monkeypatch.setattr(
        Artifacts, "_read", lambda self, path, *rest: read.append(path) or content_of(self, path, *rest)
    )

    def scan():
        read.clear()
        found = Artifacts(root, 1_000, stamps=place).scan(known)
        assert found.notes == ()
        return {made.path for made in found.changes}, set(read)

    return scan


def test_the_next_process_reads_no_file_again(scanned):
    assert len(scanned()[1]) == FILES
    assert scanned() == (set(), set())


def test_what_changed_since_is_read_though_size_and_time_are_the_same(root, scanned):
    scanned()
    (edited, replaced, gone, executable) = (root / "d0" / name for name in ("f0", "f7", "f14", "f21"))
    for file in (edited, replaced):
        before = file.stat()
        if file == replaced:
            (root / "beside").write_text("CONTENT 007")
            (root / "beside").rename(file)
        else:
            file.write_text("CONTENT 000")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    gone.unlink()
    executable.chmod(0o755)
    changed, read = scanned()
    assert changed == {"d0/f0", "d0/f7", "d0/f14", "d0/f21"}
    assert read == {"d0/f0", "d0/f7", "d0/f21"}


def test_few_new_files_are_kept_once_they_are_many(root, scanned):
    scanned()
    for number in range(module._READ_FILES):
        (root / f"new{number}").write_text("x")
    assert len(scanned()[1]) == module._READ_FILES
    assert scanned()[1] == set()
    (root / "one").write_text("x")
    assert scanned()[1] == scanned()[1] == {"one"}


def test_young_files_are_read_again(scanned, monkeypatch):
    monkeypatch.setattr(module, "_RACY_NS", 3_600 * 10**9)
    for _ in range(2):
        assert len(scanned()[1]) == FILES


@pytest.mark.parametrize(
    "damage",
    ["truncated", "empty", "a flipped bit", "gone", "directory", "link", "fifo", "restarted", "moved"],
)
def test_stamps_that_cannot_be_believed_are_not(root, place, scanned, monkeypatch, tmp_path, damage):
    scanned()
    content = place.read_bytes()
    if damage not in ("restarted", "moved"):
        place.unlink()
    match damage:
        case "truncated":
            place.write_bytes(content[:-9])
        case "empty":
            place.write_bytes(b"")
        case "a flipped bit":
            place.write_bytes(content[:99] + bytes([content[99] ^ 4]) + content[100:])
        case "directory":
            place.mkdir()
        case "link":
            (tmp_path / "elsewhere").write_bytes(content)
            place.symlink_to(tmp_path / "elsewhere")
        case "fifo":
            os.mkfifo(place)
        case "restarted":
            monkeypatch.setattr(stamps, "this_boot", lambda: "another boot")
        case "moved":
            stamps.keep_stamps(place, root.parent, stamps.load_stamps(place, root))
    changed, read = scanned()
    assert (changed, len(read)) == (set(), FILES)
    if damage != "directory":
        assert scanned() == (set(), set())
    if damage == "link":
        assert (tmp_path / "elsewhere").read_bytes() == content


def test_a_disk_that_cannot_be_written_is_no_error(root, scanned, monkeypatch):
    def full(*_args, **_named):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(stamps.nofollow, "write", full)
    assert len(scanned()[1]) == FILES
    assert len(scanned()[1]) == FILES
