"""No path that an agent gives leads out of the artifacts, into Git, or to a name that another system cannot hold."""

import os
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.storage.files.nofollow import LinkRefused, canonical
from agentx.storage.files.paths import PathRefused, check_path, resolve_file, resolve_inside

_HOSTILE = """
..  ../x  a/..  a/../b  a/../../b  ./../x  ....//..  /  /etc/passwd  //x  ~/x  ~root/x  C:/x  c:x  C:\\x  \\\\server\\share
..\\x  a\\b  .  ./  ./.  //
.git  .GIT  .Git/config  a/.git  a/.git/hooks/post-commit  .git/  .git.  .git..  a/.git.  git~1  GIT~1  GiT~2/config
.git::$INDEX_ALLOCATION/config  .git:x  a:b  file.txt:stream
.g\u200cit  .\u200dgit  .gi\ufefft  \u202e.git  .git\u200f/config  .g\u206ait
con  CON  con.txt  nul  NUL.tar.gz  aux  prn.md  com1  COM9.log  lpt0  a/lpt1.txt/b  conin$  CONOUT$.txt  com\u00b9  lpt\u00b2.txt
a.  a..  dir./x  trailing.  x<y  x>y  x"y  x|y  x?y  x*y
a\x00b  a\x01b  a\x1fb  a\x7fb  \r  a\tb
.agentx-tmp-1  a/.agentx-tmp-x/b
"""
_TABLE = [path for path in _HOSTILE.replace("\n", "  ").split("  ") if path]
_TABLE += [
    "a ",
    "dir /x",
    " ",
    "a\nb",
    "..\n",
    "a/..\n/b",
    "\udcff",
    "a/\ud800",
    "x" * 256,
    "ü" * 128,
    "d/" * 600 + "f",
]


@pytest.mark.parametrize("path", _TABLE, ids=ascii)
def test_a_hostile_path_is_refused_with_a_sentence(path):
    with pytest.raises(PathRefused, match=r"^The path .* is refused: .*\.$"):
        check_path(path)


@pytest.mark.parametrize(
    ("path", "clean"),
    [
        ("a", "a"),
        ("./a//b/", "a/b"),
        ("a/./b", "a/b"),
        (".gitignore", ".gitignore"),
        (".github/workflows/x.yml", ".github/workflows/x.yml"),
        ("...", None),
        ("a..b", "a..b"),
        ("..a", "..a"),
        ("gitignore", "gitignore"),
        ("git~x", "git~x"),
        ("console.py", "console.py"),
        ("com10", "com10"),
        ("auxiliary/nullable.txt", "auxiliary/nullable.txt"),
        ("naïve/日本語.md", "naïve/日本語.md"),
        ("emoji 👩\u200d🚀.txt", "emoji 👩\u200d🚀.txt"),
        (" leading", " leading"),
        ("x" * 255, "x" * 255),
        ("a'b(c)[d]{e}$f&g;h!i@j#k%l^m=n+o,p`q", "a'b(c)[d]{e}$f&g;h!i@j#k%l^m=n+o,p`q"),
    ],
)
def test_a_harmless_path_is_brought_into_one_form(path, clean):
    if clean is None:
        with pytest.raises(PathRefused):
            check_path(path)
    else:
        assert check_path(path) == clean


_WORDS = st.sampled_from(
    ["..", ".", "", "a", ".git", "/", "//", "~", "C:", "\\", "\x00", ".gi\u200ct", "con", "x ", "..\n"]
)


@given(st.lists(_WORDS | st.text(max_size=6), max_size=6).map("/".join) | st.text(max_size=40))
def test_what_passes_stays_inside_and_passes_again(path):
    try:
        clean = check_path(path)
    except PathRefused:
        return
    root = PurePosixPath("/root/artifacts")
    normal = PurePosixPath(os.path.normpath(root / clean))
    assert normal.is_relative_to(root)
    assert normal != root
    assert normal == root / clean
    assert ".git" not in {part.lower().rstrip(". ") for part in normal.parts}
    assert check_path(clean) == clean


def test_a_path_that_holds_a_secret_is_refused_without_repeating_it():
    with pytest.raises(PathRefused, match="possible secret") as refused:
        check_path("keys/AKIAIOSFODNN7EXAMPLE.txt")
    assert "AKIAIOSFODNN7EXAMPLE" not in str(refused.value)


@pytest.fixture
def root(tmp_path) -> Path:
    (tmp_path / "artifacts" / "dir").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret")
    (tmp_path / "artifacts" / "file.txt").write_text("x")
    return tmp_path / "artifacts"


@pytest.mark.parametrize("target", ["../outside", "/etc", "..", "../artifacts-2", "dir/../../outside"])
def test_a_directory_link_that_leads_out_is_refused(root, target):
    (root.parent / "artifacts-2").mkdir()
    (root / "way").symlink_to(target)
    for path in ("way/secret.txt", "way/deep/new.txt"):
        with pytest.raises(PathRefused, match="leads out"):
            resolve_inside(root, path)


def test_a_directory_link_that_stays_inside_is_refused_with_the_path_to_use(root):
    (root / "way").symlink_to("dir")
    with pytest.raises(PathRefused, match=r"own path is 'dir/new\.txt'"):
        resolve_inside(root, "way/new.txt")


def test_a_link_chain_or_loop_is_refused(root):
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("../outside")
    (root / "loop").symlink_to("loop")
    with pytest.raises(PathRefused):
        resolve_inside(root, "one/secret.txt")
    with pytest.raises(PathRefused):
        resolve_inside(root, "loop/x")


def test_a_file_link_that_leads_out_may_be_handled_but_not_read(root):
    (root / "leak").symlink_to("../outside/secret.txt")
    assert resolve_inside(root, "leak") == root / "leak"
    with pytest.raises(PathRefused, match="leads out"):
        resolve_file(root, "leak")


def test_a_link_that_is_swapped_later_is_looked_at_again_each_time(root):
    (root / "way").mkdir()
    assert resolve_inside(root, "way/x") == root / "way/x"
    (root / "way").rmdir()
    (root / "way").symlink_to("../outside")
    with pytest.raises(PathRefused):
        resolve_inside(root, "way/x")


def test_a_path_through_a_file_is_refused(root):
    with pytest.raises(PathRefused, match="is a file, not a directory"):
        resolve_inside(root, "file.txt/below/deep")


def test_a_root_that_is_itself_a_link_is_refused_unless_made_canonical(root, tmp_path):
    (tmp_path / "door").symlink_to(root)
    with pytest.raises(LinkRefused):
        resolve_inside(tmp_path / "door", "dir/new.txt")
    assert resolve_file(canonical(tmp_path / "door"), "file.txt").read_text() == "x"
