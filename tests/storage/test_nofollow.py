"""Files below a workspace: no symbolic link is followed, and nothing that is no file is waited for."""

import errno
import os
import socket

import pytest

from agentx.storage.files import nofollow
from agentx.storage.files.nofollow import LinkRefused, NotAFile


@pytest.fixture(params=["at once", "step by step"], autouse=True)
def way(request, monkeypatch):
    """Both ways to open a path: in one system call, and one directory after the other."""
    if request.param == "step by step":
        monkeypatch.setattr(nofollow, "_at_once", lambda: nofollow._step_by_step)
    return request.param


@pytest.fixture
def root(tmp_path):
    root = nofollow.canonical(tmp_path) / "root"
    (root / "dir").mkdir(parents=True)
    (root / "dir/file").write_bytes(b"inside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").write_bytes(b"outside")
    (root / "to-dir").symlink_to("../outside")
    (root / "to-file").symlink_to("../outside/file")
    (root / "dangling").symlink_to("../outside/new")
    os.mkfifo(root / "fifo")
    return root


LINKED = ["to-file", "dangling", "to-dir/file", "to-dir/new", "to-dir/deep/er"]

CALLS = {
    "read": nofollow.read,
    "write": lambda path: nofollow.write(path, b"x"),
    "append": lambda path: nofollow.open_file(path, "a"),
    "touch": nofollow.touch,
    "list": nofollow.names,
    "make": nofollow.make_directory,
    "make with parents": lambda path: nofollow.make_directory(path, parents=True),
}
NAMED = {
    "remove": nofollow.remove,
    "remove directory": nofollow.remove_directory,
    "remove tree": nofollow.remove_tree,
    "symlink": lambda path: nofollow.symlink("x", path),
    "look": nofollow.status,
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("path", LINKED)
def test_nothing_is_reached_through_a_link(root, tmp_path, call, path):
    with pytest.raises(LinkRefused, match="symbolic link"):
        call(root / path)
    assert [(p.name, p.read_bytes()) for p in (tmp_path / "outside").iterdir()] == [("file", b"outside")]


@pytest.mark.parametrize("call", NAMED.values(), ids=NAMED)
def test_no_name_behind_a_link_is_changed_or_looked_at(root, tmp_path, call):
    with pytest.raises(LinkRefused):
        call(root / "to-dir/file")
    assert (tmp_path / "outside/file").read_bytes() == b"outside"


def test_a_file_is_neither_moved_nor_linked_through_a_link(root, tmp_path):
    for give in (nofollow.replace, nofollow.link):
        with pytest.raises(LinkRefused):
            give(root / "dir/file", root / "to-dir/new")
        with pytest.raises(LinkRefused):
            give(root / "to-dir/file", root / "dir/new")
    assert sorted(os.listdir(tmp_path / "outside")) == ["file"]


def test_what_is_done_to_a_link_itself_is_done_to_the_link(root, tmp_path):
    assert nofollow.is_link(root / "to-file")
    assert not nofollow.is_file(root / "to-file")
    assert not nofollow.is_directory(root / "to-dir")
    assert nofollow.exists(root / "dangling")
    assert nofollow.read_link(root / "to-file") == "../outside/file"
    nofollow.replace(root / "dir/file", root / "to-file")
    assert (root / "to-file").read_bytes() == b"inside"
    nofollow.remove_tree(root / "to-dir")
    assert (tmp_path / "outside/file").read_bytes() == b"outside"


def test_a_tree_is_walked_and_removed_without_entering_links(root, tmp_path):
    found = sorted(path.relative_to(root).as_posix() for path in nofollow.tree(root))
    assert found == ["dangling", "dir/file", "fifo", "to-dir", "to-file"]
    nofollow.remove_tree(root)
    assert not root.exists()
    assert (tmp_path / "outside/file").exists()


@pytest.mark.parametrize("mode", ["r", "r+", "w", "a"])
def test_a_fifo_is_refused_at_once_and_never_waited_for(root, mode):
    with pytest.raises(NotAFile, match="neither a regular file nor a directory"):
        nofollow.open_file(root / "fifo", mode)


def test_a_socket_and_a_device_are_refused(root, monkeypatch):
    monkeypatch.chdir(root)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        for path in (root / "socket", "/dev/null"):
            with pytest.raises(NotAFile):
                nofollow.read(path)
    with pytest.raises(NotAFile):
        nofollow.require_plain_tree(root / "socket")


def test_a_directory_is_no_file_and_a_file_no_directory(root):
    with pytest.raises(IsADirectoryError):
        nofollow.read(root / "dir")
    with pytest.raises(NotADirectoryError):
        nofollow.names(root / "dir/file")
    assert not nofollow.exists(root / "dir/file/below")
    with pytest.raises(FileNotFoundError):
        nofollow.status(root / "dir/file/below")


def test_an_error_names_the_whole_path(root):
    for call in (nofollow.read, nofollow.remove, nofollow.status, nofollow.names):
        with pytest.raises(FileNotFoundError) as missing:
            call(root / "dir/none")
        assert missing.value.filename == str(root / "dir/none")
    with pytest.raises(LinkRefused) as refused:
        nofollow.read(root / "to-dir/file")
    assert (refused.value.errno, refused.value.filename) == (errno.ELOOP, str(root / "to-dir/file"))


def test_a_whole_tree_is_checked_for_what_is_no_file(root):
    with pytest.raises((LinkRefused, NotAFile)):  # whichever is met first
        nofollow.require_plain_tree(root)
    nofollow.require_plain_tree(root / "dir")
    nofollow.require_plain_tree(root / "missing")
    with pytest.raises(LinkRefused):
        nofollow.require_plain(root / "to-dir")


def test_a_descriptor_is_not_inherited(root):
    fd = nofollow.open_descriptor(root / "dir/file")
    assert not os.get_inheritable(fd)
    os.close(fd)


def test_no_descriptor_is_left_open(root):
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for path in ("to-file", "fifo", "dir", "dir/file", "dir/none", "to-dir/x"):
        for call in (nofollow.read, nofollow.status, nofollow.names, nofollow.exists):
            try:
                call(root / path)
            except OSError:
                continue
    assert not before or len(os.listdir("/proc/self/fd")) == before
