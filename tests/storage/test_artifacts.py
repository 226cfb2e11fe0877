"""The working files as they are: text or not, links, rights, what is ignored, and what cannot be read."""

import os
import subprocess
import sys

import pytest

from agentx.storage.artifacts import ArtifactMissing, Artifacts, FileTooLarge, entry_after
from agentx.storage.events.types import FileChange
from agentx.storage.files.durable import TEMPORARY_PREFIX
from agentx.storage.files.nofollow import LinkRefused
from agentx.storage.files.paths import PathRefused
from agentx.storage.git.checked_reader import TreeEntry
from agentx.storage.git.objects import blob_id
from agentx.storage.git.repository import EXECUTABLE, LINK, REGULAR


@pytest.fixture
def root(tmp_path):
    (tmp_path / "artifacts").mkdir()
    return tmp_path / "artifacts"


@pytest.fixture
def artifacts(root):
    return Artifacts(root, max_file_bytes=1_000)


def _paths(scan):
    return [made.path for made in scan.changes]


def _known(*paths, content=b""):
    return {path: TreeEntry(blob_id(content), REGULAR) for path in paths}


def test_what_is_new_changed_gone_and_the_same(root, artifacts):
    for name in ("new", "changed", "same"):
        (root / name).write_text(name)
    known = _known("changed", "gone") | {"same": TreeEntry(blob_id(b"same"), REGULAR)}
    found = {made.path: made for made in artifacts.scan(known).changes}
    assert found == {
        "new": FileChange("new", after=blob_id(b"new"), size_bytes=3),
        "changed": FileChange("changed", before=blob_id(b""), after=blob_id(b"changed"), size_bytes=7),
        "gone": FileChange("gone", before=blob_id(b"")),
    }


@pytest.mark.parametrize(
    "content", [b"", b"\0\1\2\xff", b"\xff\xfeU\0", b"a\r\nb\r\n", "ü".encode("latin-1")]
)
def test_a_file_is_taken_byte_for_byte(root, artifacts, content):
    (root / "f").write_bytes(content)
    assert artifacts.scan({}).changes[0].after == blob_id(content)
    assert artifacts.content("f") == content


def test_executables_and_links_are_known_as_such(root, artifacts):
    (root / "run").write_text("#!/bin/sh\n")
    (root / "run").chmod(0o755)
    (root / "link").symlink_to("run")
    (root / "broken").symlink_to("nowhere/at all")
    found = {made.path: made for made in artifacts.scan({}).changes}
    assert entry_after(found["run"]) == TreeEntry(blob_id(b"#!/bin/sh\n"), EXECUTABLE)
    assert entry_after(found["link"]) == TreeEntry(blob_id(b"run"), LINK)
    assert entry_after(found["broken"]) == TreeEntry(blob_id(b"nowhere/at all"), LINK)


def test_a_file_that_became_executable_has_changed(root, artifacts):
    (root / "f").write_text("x")
    (root / "f").chmod(0o755)
    assert _paths(artifacts.scan({"f": TreeEntry(blob_id(b"x"), REGULAR)})) == ["f"]


def test_a_link_is_never_followed(root, artifacts, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    (root / "door").symlink_to("../outside")
    (root / "leak").symlink_to("../outside/secret")
    assert {made.path: made.link for made in artifacts.scan({}).changes} == {"door": True, "leak": True}
    assert artifacts.content("leak") == b"../outside/secret"
    with pytest.raises(PathRefused):
        artifacts.content("door/secret")


def test_a_pipe_a_socket_or_a_device_is_noted_and_does_not_block(root, artifacts):
    os.mkfifo(root / "pipe")
    os.mkfifo(root / ".gitignore")
    (root / "f").write_text("x")
    scan = artifacts.scan({})
    assert _paths(scan) == ["f"]
    assert len(scan.notes) == 2
    assert all("neither a file nor a link" in note for note in scan.notes)
    with pytest.raises(PathRefused):
        artifacts.identify("pipe")


def test_a_file_over_the_limit_is_noted_and_neither_taken_nor_gone(root, artifacts):
    (root / "big").write_bytes(b"x" * 1_001)
    (root / "fits").write_bytes(b"x" * 1_000)
    scan = artifacts.scan(_known("big"))
    assert _paths(scan) == ["fits"]
    assert "over the limit of 1,000" in scan.notes[0]
    with pytest.raises(FileTooLarge, match=r"limits\.max_file_bytes"):
        artifacts.identify("big")


def test_names_that_another_system_cannot_hold_are_noted(root, artifacts):
    for name in (b"a:b", b"\xff\xfe", b"trailing.", b"line\nbreak"):
        (root / os.fsdecode(name)).write_text("x")
    scan = artifacts.scan({})
    assert scan.changes == ()
    assert len(scan.notes) == 4


_UNREADABLE = """
import os, sys
from pathlib import Path
from agentx.storage.artifacts import Artifacts
from agentx.storage.git.objects import blob_id
from agentx.storage.git.checked_reader import TreeEntry
from agentx.storage.git.repository import REGULAR
root = Path(sys.argv[1])
if os.getuid() == 0:
    os.setuid(65534)
scan = Artifacts(root, 1000).scan({p: TreeEntry(blob_id(b""), REGULAR) for p in ("closed/a", "shut", "gone")})
print([c.path for c in scan.changes], len(scan.notes))
"""


def test_what_cannot_be_read_is_not_taken_for_gone(root):
    (root / "closed").mkdir()
    (root / "closed" / "a").write_text("x")
    (root / "shut").write_text("x")
    (root / "shut").chmod(0)
    (root / "closed").chmod(0)
    for folder in (root, *root.parents):
        if folder.stat().st_uid == os.getuid() and not folder.stat().st_mode & 0o001:
            folder.chmod(0o755)
    told = subprocess.run(
        [sys.executable, "-c", _UNREADABLE, str(root)], capture_output=True, text=True, check=True
    ).stdout
    (root / "closed").chmod(0o755)
    assert told.split() == ["['gone']", "2"]


def test_a_repository_of_its_own_is_left_out_but_what_is_on_record_below_it_is_not_gone(root, artifacts):
    (root / "sub").mkdir()
    (root / "sub" / "f").write_text("x")
    subprocess.run(["git", "init", "-q", str(root / "sub")], check=True)
    assert _paths(artifacts.scan({})) == []
    assert _paths(artifacts.scan(_known("sub/f"))) == []


def test_a_directory_in_the_place_of_a_file_and_the_reverse(root, artifacts):
    (root / "was-file").mkdir()
    (root / "was-file" / "below").write_text("x")
    (root / "was-dir").write_text("x")
    assert sorted(_paths(artifacts.scan(_known("was-file", "was-dir/below")))) == [
        "was-dir", "was-dir/below", "was-file", "was-file/below",
    ]  # fmt: skip


def test_a_file_that_changed_within_one_tick_of_the_clock_is_noticed(root, artifacts):
    for n in range(200):
        (root / "f").write_bytes(b"%03d" % n)
        assert artifacts.identify("f").oid == blob_id(b"%03d" % n)


def test_what_gitignore_names_is_left_out_unless_it_is_on_record(root, artifacts):
    (root / ".gitignore").write_text("*.log\nbuild/\n!keep.log\n")
    (root / "build").mkdir()
    for name in ("a.log", "keep.log", "kept.log", "build/x", "src.py"):
        (root / name).write_text("")
    assert _paths(artifacts.scan({})) == [".gitignore", "keep.log", "src.py"]
    assert _paths(artifacts.scan(_known("kept.log", "build/x"))) == [".gitignore", "keep.log", "src.py"]


def test_a_scan_removes_the_temporary_files_that_a_crash_left(root, artifacts):
    (root / "d").mkdir()
    (root / "d" / f"{TEMPORARY_PREFIX}abc").write_text("half")
    assert artifacts.scan({}) == artifacts.scan({})
    assert list((root / "d").iterdir()) == []


def test_prepared_content_takes_its_name_in_one_step(root, artifacts):
    temporary = artifacts.prepare("a/b/run.sh", b"new", executable=True)
    assert not (root / "a/b/run.sh").exists()
    artifacts.put(temporary, "a/b/run.sh")
    assert (root / "a/b/run.sh").read_bytes() == b"new"
    assert artifacts.identify("a/b/run.sh") == TreeEntry(blob_id(b"new"), EXECUTABLE)
    artifacts.put(artifacts.prepare("link", b"a/b/run.sh", link=True), "link")
    assert os.readlink(root / "link") == "a/b/run.sh"


def test_a_directory_that_is_swapped_for_a_link_before_the_name_is_given_leads_nowhere(
    root, artifacts, tmp_path
):
    temporary = artifacts.prepare("d/f", b"new")
    (root / "d").rename(root / "moved")
    (tmp_path / "outside").mkdir()
    (root / "d").symlink_to("../outside")
    with pytest.raises(LinkRefused, match="symbolic link"):
        artifacts.put(temporary, "d/f")
    assert list((tmp_path / "outside").iterdir()) == []


def test_removing_a_file_removes_the_directories_that_become_empty_and_no_others(root, artifacts):
    for name in ("a/b/c/f", "a/other"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    artifacts.remove("a/b/c/f")
    assert sorted(str(p.relative_to(root)) for p in root.rglob("*")) == ["a", "a/other"]
    artifacts.remove("a/other")
    assert root.is_dir()
    assert list(root.iterdir()) == []
    artifacts.remove("never/was")


def test_a_file_that_is_not_there_is_said_to_be_missing(artifacts, root):
    assert artifacts.identify("x") is None
    assert artifacts.identify("x/y/z") is None
    with pytest.raises(ArtifactMissing, match="no file 'x'"):
        artifacts.content("x")
    (root / "d").mkdir()
    with pytest.raises(PathRefused, match="it is a directory"):
        artifacts.identify("d")


def test_artifacts_that_are_gone_altogether_are_all_gone(root, artifacts):
    root.rmdir()
    assert _paths(artifacts.scan(_known("a", "b/c"))) == ["a", "b/c"]
