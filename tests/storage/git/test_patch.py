"""Comparing contents: what `git diff` says of them, line by line."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.storage.git.patch import FilePatch, compare


@pytest.mark.parametrize(
    ("before", "after", "added", "removed"),
    [
        (b"one\ntwo\n", b"one\n2\nthree\n", 2, 1),
        (None, b"one\ntwo", 2, 0),
        (b"one\n", None, 0, 1),
        (b"", b"one\n", 1, 0),
        (None, b"", 0, 0),
        (b"no end", b"no end\n", 1, 1),
    ],
)
def test_lines_are_counted_as_git_counts_them(before, after, added, removed):
    made = compare(before, after, "a.txt", "a.txt")
    assert (made.added, made.removed, made.binary) == (added, removed, False)


def test_a_patch_is_one_that_git_applies(tmp_path):
    before, after = b"one\n@@ two\nthree\n", b"one\nTWO\nthree"
    (tmp_path / "a b.txt").write_bytes(before)
    patch = compare(before, after, "a b.txt", "a b.txt").text
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch.encode(), check=True)
    assert (tmp_path / "a b.txt").read_bytes() == after


def test_a_file_that_comes_or_goes_is_nothing_on_the_other_side():
    assert compare(None, b"x\n", "a", "a").text.startswith("--- /dev/null\n+++ b/a\n@@")
    assert compare(b"x\n", None, "a", "a").text.startswith("--- a/a\n+++ /dev/null\n@@")


def test_what_is_binary_is_said_to_be():
    assert compare(b"\0", b"text", "a", "a") == FilePatch(binary=True)
    assert compare(b"text", b"te\0xt", "a", "a") == FilePatch(binary=True)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_contents_can_be_compared(before, after):
    made = compare(before, after, "a", "b")
    assert (made == FilePatch()) == (before == after)
