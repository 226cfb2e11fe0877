"""What a run changed in its copy: found, bounded, and never through a link."""

import os
import shutil
from pathlib import Path

import pytest

from agentx.quality.tree import ChangedFile, TreeCopy, TreeLimits


def test_created_changed_and_deleted_files_come_back(run):
    done = run(
        "echo 'VALUE = 2' > pkg/mod.py; rm notes.md; printf '\\000\\377' > raw; echo x > go.sh; chmod +x go.sh"
    )
    assert done.changes == (
        ChangedFile("notes.md", None, executable=False),
        ChangedFile("go.sh", b"x\n", executable=True),
        ChangedFile("pkg/mod.py", b"VALUE = 2\n", executable=False),
        ChangedFile("raw", b"\x00\xff", executable=False),
    )


def test_a_change_of_the_same_size_at_once_is_seen(tree, tmp_path):
    copy = TreeCopy(tree, tmp_path / "copy", TreeLimits())
    (copy.root / "pkg" / "mod.py").write_text("VALUE = 7\n")
    assert copy.changes() == (ChangedFile("pkg/mod.py", b"VALUE = 7\n", executable=False),)


def test_a_change_that_gives_itself_the_old_times_is_seen(tree, tmp_path):
    copy = TreeCopy(tree, tmp_path / "copy", TreeLimits())
    target = copy.root / "pkg" / "mod.py"
    before = target.stat()
    target.write_text("VALUE = 7\n")
    os.utime(target, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert [change.path for change in copy.changes()] == ["pkg/mod.py"]


def test_touching_and_rewriting_the_same_content_is_no_change(run):
    assert run("touch notes.md; cp pkg/mod.py m; mv m pkg/mod.py").changes == ()


def test_the_executable_bit_alone_is_a_change(run):
    assert run("chmod +x notes.md").changes == (ChangedFile("notes.md", b"# Notes\n", executable=True),)


def test_modes_and_times_are_those_of_the_original(tree, tmp_path):
    (tree / "run.sh").write_text("#!/bin/sh\n")
    (tree / "run.sh").chmod(0o4755)
    os.utime(tree / "run.sh", ns=(1_000_000_000, 2_000_000_000))
    made = TreeCopy(tree, tmp_path / "copy", TreeLimits()).root / "run.sh"
    assert (made.stat().st_mode & 0o7777, made.stat().st_mtime_ns) == (0o755, 2_000_000_000)


def test_caches_and_ignored_files_are_no_changes(run, tree):
    (tree / ".gitignore").write_text("*.log\nbuild/\n!build/keep\n[z-\n")
    (tree / "pkg" / ".gitignore").write_text("out\n")
    (tree / "build").mkdir()
    (tree / "build" / "keep").write_text("1")
    (tree / "old.log").write_text("1")
    done = run(
        "mkdir -p pkg/__pycache__ node_modules/x pkg/out .pytest_cache/v; touch pkg/__pycache__/m.pyc node_modules/x/i.js "
        "pkg/out/bin .pytest_cache/v/x a.log .coverage wanted; rm -r build old.log; echo '*' > pkg/.gitignore"
    )
    assert [change.path for change in done.changes] == ["pkg/.gitignore", "wanted"]


def test_a_link_that_leads_out_is_copied_as_a_link_and_never_followed(run, tree, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    (tree / "out").symlink_to(tmp_path / "outside")
    (tree / "loop").symlink_to("loop")
    done = run("test -L out && test -L loop && ln -s /etc/passwd passwd && ln -s / everything && rm loop")
    assert (done.exit_code, done.changes) == (0, ())
    assert "changed links are not kept: everything, loop, passwd" in done.notes


def test_a_file_that_became_a_link_is_not_taken_for_deleted(run):
    done = run("rm notes.md; ln -s pkg/mod.py notes.md")
    assert done.changes == ()
    assert "changed links are not kept: notes.md" in done.notes


def test_a_file_in_place_of_a_directory_comes_after_the_deletions(run):
    done = run("rm -r pkg; echo x > pkg")
    assert [(change.path, change.content) for change in done.changes] == [
        ("pkg/mod.py", None),
        ("pkg", b"x\n"),
    ]


def test_too_much_change_is_bounded_with_a_note(run):
    done = run("for i in 1 2 3 4 5 6 7 8 9; do echo $i > f$i; done", limits=TreeLimits(max_changes=3))
    assert [change.path for change in done.changes] == ["f1", "f2", "f3"]
    assert any("the run changed too much: f4, f5, f6, f7, f8 and 1 more" in note for note in done.notes)
    done = run("rm notes.md pkg/mod.py", limits=TreeLimits(max_changes=1))
    assert done.changes == (ChangedFile("notes.md", None, executable=False),)
    assert any("the run changed too much: pkg/mod.py" in note for note in done.notes)
    done = run("echo small > a; truncate -s 1T b", limits=TreeLimits(max_change_bytes=100))
    assert [change.path for change in done.changes] == ["a"]
    assert any("the run changed too much: b" in note for note in done.notes)


def test_endless_numbers_of_files_are_not_collected(run):
    done = run("mkdir many; cd many; seq 300 | xargs touch", limits=TreeLimits(max_files=200))
    assert done.changes == ()
    assert any("too many files" in note for note in done.notes)


def test_directories_nested_without_end_are_not_entered(run, python):
    make_deep = "import os\nopen('wanted', 'w').close()\nfor _ in range(1500):\n    os.mkdir('d')\n    os.chdir('d')\n"
    done = run([python, "-c", make_deep])
    assert [change.path for change in done.changes] == ["wanted"]
    assert any(note.startswith("directories more than 100 deep were left out: d/d/d") for note in done.notes)


def test_changes_are_not_collected_where_nobody_wants_them(run):
    assert run("echo x > new", collect_changes=False).changes == ()


def test_pipes_and_sockets_are_left_out_and_never_opened(run, tree):
    os.mkfifo(tree / "pipe")
    done = run("test ! -e pipe && mkfifo other && rm notes.md && mkfifo notes.md")
    assert done.exit_code == 0
    assert done.changes == (ChangedFile("notes.md", None, executable=False),)
    assert "left out of the copy, being neither files nor directories: pipe" in done.notes


@pytest.mark.skipif(not os.path.exists("/proc/sys/kernel/random/uuid"), reason="Linux alone has such files")
def test_a_file_that_gives_more_than_its_size_is_left_out(tmp_path):
    """As one that grows while it is copied; those of the kernel have no size."""
    copy = TreeCopy(Path("/proc/sys/kernel/random"), tmp_path / "copy", TreeLimits(max_file_bytes=30))
    assert any("larger than 30 bytes" in note and "uuid" in note for note in copy.notes)
    assert not (copy.root / "uuid").exists()
    assert (copy.root / "poolsize").read_text().strip().isdigit()


def test_a_file_over_the_limit_is_left_out_with_a_note(run, tree):
    (tree / "big.bin").write_bytes(b"x" * 1000)
    done = run("ls", limits=TreeLimits(max_file_bytes=999))
    assert "big.bin" not in done.output
    assert done.changes == ()
    assert "left out of the copy, being larger than 999 bytes: big.bin" in done.notes


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_cannot_be_read_is_left_out_with_a_note(run, tree):
    (tree / "locked").write_text("x")
    (tree / "locked").chmod(0)
    assert "left out of the copy, because they cannot be read: locked" in run("true").notes


def test_names_that_are_not_utf8_are_left_out_with_a_note(run):
    done = run(r"touch wanted; touch $(printf 'caf\351')")
    assert [change.path for change in done.changes] == ["wanted"]
    assert any("their names are not UTF-8: 'caf\\udce9'" in note for note in done.notes)


def test_a_directory_that_becomes_a_link_while_changes_are_read_gives_nothing_from_outside(tree, tmp_path):
    """What outlives its run, and swaps a directory for a link to the home, has no file of the home taken for its own."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "token").write_text("secret")

    class Swapped(TreeCopy):
        def _is_same(self, path, now):
            if path == "made/token":  # between the look at the directory and that at its files
                shutil.rmtree(self.root / "made")
                (self.root / "made").symlink_to(home)
            return super()._is_same(path, now)

    copy = Swapped(tree, tmp_path / "copy", TreeLimits())
    (copy.root / "made").mkdir()
    (copy.root / "made" / "token").write_text("mine")
    assert copy.changes() == ()
    assert any("cannot be read: made/token" in note for note in copy.notes)
