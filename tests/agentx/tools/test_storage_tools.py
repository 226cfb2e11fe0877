"""The storage tools on real files: what they read, what they write, and every path that they refuse."""

import os
import subprocess
import sys
import threading

import pytest

from agentx.storage.artifacts import ArtifactMissing, FileTooLarge
from agentx.storage.errors import UsageError
from agentx.storage.files import nofollow
from agentx.storage.files.lock import FileLock
from agentx.storage.files.paths import PathRefused
from agentx.synthesis.chunking import definitions
from agentx.tools.storage_tools import LONG_FILE_LINES, PAGE, EditRefused, NotText

REFUSED = [
    "../out",
    "a/../../out",
    "/etc/passwd",
    "~/x",
    "C:/x",
    ".git/config",
    "sub/.GIT/hooks/pre-commit",
    "git~1/config",
    ".g\u200cit/config",
    "con",
    "aux.txt",
    "a\nb",
    "a\x00b",
    "a\\b",
    "a?b",
    "dot.",
    "space ",
    "",
    ".",
    "n" * 300,
    "/".join(["n" * 200] * 6),
    "\ud800",
]


def commits(ws):
    ws.flush()  # commits follow within 50 ms
    done = subprocess.run(
        ["git", "rev-list", "--count", "HEAD"], cwd=ws.root, capture_output=True, check=True
    )
    return int(done.stdout)


@pytest.mark.parametrize("path", REFUSED)
def test_a_path_that_leads_out_or_that_some_system_cannot_hold_is_refused_by_every_tool(ws, path):
    ws.tools.write_file("mine.txt", "mine")
    for call in (
        lambda: ws.tools.read_file(path),
        lambda: ws.tools.write_file(path, "x"),
        lambda: ws.tools.edit_file(path, "a", "b"),
        lambda: ws.tools.move_file(path, "there"),
        lambda: ws.tools.move_file("mine.txt", path),
        lambda: ws.tools.delete_file(path),
    ):
        with pytest.raises(PathRefused, match="is refused"):
            call()
    assert [entry.path for entry in ws.tools.list_directory().entries] == ["mine.txt"]


@pytest.mark.parametrize("path", ["..", "./..", "../..", "/..", ".git", "a/../.."])
def test_a_directory_that_leads_out_is_refused(ws, path):
    for call in (
        lambda: ws.tools.list_directory(path),
        lambda: ws.tools.summarize_directory_purpose(path),
        lambda: ws.restore(path, 1),
    ):
        with pytest.raises(PathRefused):
            call()


def test_a_link_that_leads_out_is_neither_read_nor_written_through(ws, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret")
    os.symlink(tmp_path / "outside", ws.artifacts / "dir")
    os.symlink(tmp_path / "outside" / "secret.txt", ws.artifacts / "file")
    for call in (
        lambda: ws.tools.read_file("dir/secret.txt"),
        lambda: ws.tools.read_file("file"),
        lambda: ws.tools.write_file("dir/new.txt", "x"),
        lambda: ws.tools.write_file("file", "x"),
        lambda: ws.tools.edit_file("file", "secret", "x"),
        lambda: ws.tools.delete_file("dir/secret.txt"),
        lambda: ws.tools.list_directory("dir"),
    ):
        with pytest.raises((PathRefused, EditRefused)):
            call()
    ws.tools.delete_file("file")
    assert (tmp_path / "outside" / "secret.txt").read_text() == "secret"
    assert os.listdir(tmp_path / "outside") == ["secret.txt"]


def test_a_link_inside_is_read_and_not_replaced_by_a_file(ws):
    ws.tools.write_file("a.txt", "alpha")
    os.symlink("a.txt", ws.artifacts / "link")
    assert ws.tools.read_file("link").text == "alpha"
    with pytest.raises(EditRefused, match=r"a link to 'a\.txt'"):
        ws.tools.write_file("link", "beta")
    ws.tools.move_file("link", "moved")
    assert os.readlink(ws.artifacts / "moved") == "a.txt"
    with pytest.raises(EditRefused, match="already exists"):
        ws.tools.move_file("a.txt", "moved")


def test_a_file_over_the_limit_is_refused_and_nothing_is_left_of_it(configured):
    ws = configured("\n[limits]\nmax_file_bytes = 1000\n")
    with pytest.raises(FileTooLarge, match="limit of 1,000"):
        ws.tools.write_file("big.txt", "x" * 1001)
    assert not list(ws.artifacts.iterdir())
    (ws.artifacts / "theirs.bin").write_bytes(b"x" * 2000)
    with pytest.raises(FileTooLarge):
        ws.tools.read_file("theirs.bin")
    assert "over the limit" in " ".join(ws.status().notes)


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x00\x01", b"caf\xe9 latin-1", b"\xff\xfeh\x00i\x00"])
def test_a_file_that_is_no_text_is_named_as_such_and_left_alone(ws, data):
    (ws.artifacts / "data").write_bytes(data)
    for call in (lambda: ws.tools.read_file("data"), lambda: ws.tools.edit_file("data", "x", "y")):
        with pytest.raises(NotText, match="cannot be read as text"):
            call()
    ws.tools.move_file("data", "moved")
    assert (ws.artifacts / "moved").read_bytes() == data
    ws.tools.delete_file("moved")
    ws.undo()
    assert (ws.artifacts / "moved").read_bytes() == data


def test_a_range_of_lines_is_read_and_a_range_that_is_none_is_refused(ws):
    ws.tools.write_file("a.txt", "one\ntwo\nthree\n")
    part = ws.tools.read_file("a.txt", 2, 3)
    assert (part.text, part.start_line, part.end_line, part.total_lines) == ("two\nthree", 2, 3, 3)
    assert ws.tools.read_file("a.txt", 3, 99).text == "three"
    with pytest.raises(UsageError, match="past its end"):
        ws.tools.read_file("a.txt", 4)
    with pytest.raises(UsageError, match="before start_line"):
        ws.tools.read_file("a.txt", 3, 1)
    ws.tools.write_file("empty.txt", "")
    assert ws.tools.read_file("empty.txt").text == ""


def test_a_long_file_is_answered_with_its_outline_and_its_parts_on_request(ws):
    functions = [f"def step_{n}(value):\n    return value + {n}\n" for n in range(LONG_FILE_LINES)]
    ws.tools.write_file("steps.py", "\n".join(functions))
    whole = ws.tools.read_file("steps.py")
    assert not whole.text
    assert "step_7" in whole.render()
    entry = next(entry for entry in whole.outline if entry.symbol == "step_7")
    part = ws.tools.read_file("steps.py", entry.start_line, entry.end_line)
    assert part.text.startswith("def step_7(value):")
    assert ws.tools.read_file("steps.py", outline_only=True).outline == whole.outline


def test_without_the_grammar_of_its_language_the_reader_of_a_file_learns_why_it_has_no_outline(
    ws, monkeypatch
):
    ws.tools.write_file("a.go", "package a\n\nfunc F() {}\n")
    ws.tools.write_file("a.py", "x = 1\n")
    definitions._language.cache_clear()
    monkeypatch.setitem(sys.modules, "tree_sitter_go", None)
    read = ws.tools.read_file("a.go", outline_only=True)
    assert (read.outline, read.total_lines) == ((), 3)
    assert read.note.startswith("Definitions in C, C++, Go")
    assert "pip install 'agentx-workspace[languages]'" in read.render()
    assert ws.search("func F")[0].path == "a.go"
    monkeypatch.delitem(sys.modules, "tree_sitter_go")  # as if it were installed meanwhile
    assert ws.tools.read_file("a.go", outline_only=True).outline[0].symbol == "F"


def test_a_long_file_without_structure_is_given_in_part_and_says_so(ws):
    ws.tools.write_file("data.txt", "".join(f"{n}\n" for n in range(5000)))
    part = ws.tools.read_file("data.txt")
    assert part.cut
    assert part.total_lines == 5000
    assert ws.tools.read_file("data.txt", part.end_line + 1).text.startswith(str(part.end_line))


def test_one_endless_line_is_cut_and_says_so(ws):
    ws.tools.write_file("min.js", "x" * 1_000_000)
    part = ws.tools.read_file("min.js")
    assert part.cut
    assert len(part.text) <= 100_000
    assert "cut here" in part.render()


def test_an_edit_replaces_exactly_one_passage(ws):
    ws.tools.write_file("a.txt", "one\ntwo\none\n")
    with pytest.raises(EditRefused, match=r"2 times in .* \(lines 1, 3\)"):
        ws.tools.edit_file("a.txt", "one", "1")
    with pytest.raises(EditRefused, match="is not in"):
        ws.tools.edit_file("a.txt", "three", "3")
    ws.tools.edit_file("a.txt", "two\none", "2\\1\ntwo")
    assert ws.tools.read_file("a.txt").text == "one\n2\\1\ntwo"
    assert ws.tools.call("edit_file", {"path": "a.txt", "old": "", "new": "x"}).status == "FAILED"


def test_a_write_keeps_line_ends_and_the_executable_bit(ws):
    (ws.artifacts / "run.sh").write_bytes(b"#!/bin/sh\r\necho 1\r\n")
    (ws.artifacts / "run.sh").chmod(0o755)
    ws.tools.edit_file("run.sh", "echo 1", "echo 2")
    assert (ws.artifacts / "run.sh").read_bytes() == b"#!/bin/sh\r\necho 2\r\n"
    ws.tools.move_file("run.sh", "bin/run")
    assert os.access(ws.artifacts / "bin" / "run", os.X_OK)


def test_each_write_is_one_commit_and_a_write_that_changes_nothing_says_so(ws):
    before = commits(ws)
    first = ws.tools.write_file("a.txt", "alpha\n")
    assert commits(ws) == before + 1
    assert (first.paths, first.seq) == (("a.txt",), ws.state.seq)
    again = ws.tools.write_file("a.txt", "alpha\n")
    assert again.paths == ()
    assert "already has that content" in again.render()
    assert ws.undo().data.changes[0].path == "a.txt"
    assert not list(ws.artifacts.iterdir())


def test_a_directory_is_moved_and_deleted_with_everything_in_it(ws):
    for name in ("src/a.py", "src/sub/b.py", "srcs.py"):
        ws.tools.write_file(name, name)
    (ws.artifacts / "src" / "theirs.py").write_text("a person's, not yet on record")
    with pytest.raises(EditRefused, match="into itself"):
        ws.tools.move_file("src", "src/deeper")
    moved = ws.tools.move_file("src", "lib/core")
    assert sorted(
        path.relative_to(ws.artifacts).as_posix() for path in ws.artifacts.rglob("*") if path.is_file()
    ) == [
        "lib/core/a.py",
        "lib/core/sub/b.py",
        "lib/core/theirs.py",
        "srcs.py",
    ]
    assert len(moved.paths) == 6
    ws.tools.delete_file("lib")
    assert [path.name for path in ws.artifacts.iterdir()] == ["srcs.py"]
    ws.undo()
    assert ws.tools.read_file("lib/core/theirs.py").text == "a person's, not yet on record"


def test_what_is_missing_or_in_the_way_is_a_sentence(ws):
    ws.tools.write_file("src/a.py", "a")
    for call in (
        lambda: ws.tools.read_file("none"),
        lambda: ws.tools.read_file("src"),
        lambda: ws.tools.delete_file("none"),
        lambda: ws.tools.move_file("none", "there"),
        lambda: ws.tools.list_directory("none"),
        lambda: ws.tools.list_directory("src/a.py"),
        lambda: ws.tools.summarize_directory_purpose("none"),
    ):
        with pytest.raises(ArtifactMissing):
            call()
    with pytest.raises(PathRefused):
        ws.tools.write_file("src", "a file where a directory is")
    with pytest.raises(PathRefused, match="is a file, not a directory"):
        ws.tools.write_file("src/a.py/b.py", "a directory where a file is")
    with pytest.raises(EditRefused, match="already exists"):
        ws.tools.move_file("src/a.py", "src")


def test_a_directory_of_five_thousand_names_is_listed_in_pages(ws):
    (ws.artifacts / "many").mkdir()
    for n in range(5000):
        (ws.artifacts / "many" / f"{n:04}.txt").write_text("x" * (n % 100))
    first = ws.tools.list_directory("many")
    assert (len(first.entries), first.total, first.pages) == (PAGE, 5000, 50)
    assert "page 1 of 50" in first.render()
    last = ws.tools.list_directory("many", page=50)
    assert (last.entries[-1].path, last.entries[-1].size_bytes) == ("many/4999.txt", 99)
    with pytest.raises(UsageError, match="page 51 does not exist"):
        ws.tools.list_directory("many", page=51)
    (top,) = ws.tools.list_directory().entries
    assert (top.path, top.directory, top.files) == ("many", True, 5000)


def test_a_change_that_one_event_cannot_hold_is_taken_back_as_a_whole(ws):
    for n in range(300):
        (ws.artifacts / f"a-rather-long-name-of-a-file-{n:04}.txt").write_text(f"{n}")
    assert len(ws.status().outside) == 300
    then = ws.state.seq
    ws.tools.write_file("after.txt", "after")
    ws.undo()
    ws.undo()
    assert not list(ws.artifacts.iterdir())
    ws.restore(".", then)
    assert ws.status().files == 300


def test_a_listing_goes_as_deep_as_it_is_asked_to(ws):
    for name in ("a/b/c/d.txt", "a/e.txt", "f.txt"):
        ws.tools.write_file(name, "1234")
    assert [entry.path for entry in ws.tools.list_directory().entries] == ["a", "f.txt"]
    assert [entry.path for entry in ws.tools.list_directory(depth=2).entries] == [
        "a",
        "a/b",
        "a/e.txt",
        "f.txt",
    ]
    assert [entry.path for entry in ws.tools.list_directory("a/b", 5).entries] == ["a/b/c", "a/b/c/d.txt"]
    assert (
        ws.tools.list_directory("./").entries
        == ws.tools.list_directory(".").entries
        == ws.tools.list_directory().entries
    )


def test_edits_of_one_file_by_many_threads_all_stand_in_it(ws):
    ws.tools.write_file("list.txt", "".join(f"[{n}]\n" for n in range(12)))
    threads = [
        threading.Thread(target=ws.tools.edit_file, args=("list.txt", f"[{n}]", f"({n})")) for n in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ws.tools.read_file("list.txt").text == "\n".join(f"({n})" for n in range(12))


def test_an_edit_by_a_person_in_between_is_recorded_before_the_write_over_it(ws):
    ws.tools.write_file("a.txt", "agent")
    (ws.artifacts / "a.txt").write_text("person")
    ws.tools.write_file("a.txt", "agent again")
    assert [event.type for event in ws.events()][-2:] == ["ArtifactChanged", "ToolCallExecuted"]
    ws.undo()
    assert ws.tools.read_file("a.txt").text == "person"


def test_a_write_takes_the_lock_at_most_once_and_opens_as_much_however_many_files_there_are(ws, monkeypatch):
    counts = {"locks": 0, "opens": 0}
    acquire, opened = FileLock._acquire, nofollow._open

    def counted_lock(self, *args):
        counts["locks"] += threading.current_thread() is threading.main_thread()
        return acquire(self, *args)

    def counted_open(*args):
        counts["opens"] += threading.current_thread() is threading.main_thread()
        return opened(*args)

    def cost(path, content):
        before = dict(counts)
        ws.tools.write_file(path, content)
        return {name: counts[name] - before[name] for name in counts}

    ws.tools.write_file("a/b/c.txt", "one\n")
    monkeypatch.setattr(FileLock, "_acquire", counted_lock)
    monkeypatch.setattr(nofollow, "_open", counted_open)
    few = cost("a/b/c.txt", "two\n")
    for number in range(60):
        ws.tools.write_file(f"a/many/{number}.txt", f"{number}\n")
    many = cost("a/b/c.txt", "three\n")
    assert max(few["locks"], many["locks"]) <= 1
    assert max(few["opens"], many["opens"]) <= 40
