"""What ``.gitignore`` files leave out is what Git would leave out."""

import subprocess

import pytest

from agentx.storage.files.ignore import IgnoreRules

_FILES = [
    "a.log", "keep.log", "sub/a.log", "sub/keep.log", "build/x", "sub/build/x", "src/build.py", "docs/a.txt",
    "docs/deep/a.txt", "#note", "!bang", "space file", "x.pyc", "sub/deep/only.me", "Ünï.tmp", "star/abc", "a[1].c",
    "sub/.hidden", "foo/bar/baz", "bar/baz",
]  # fmt: skip
_RULES = {
    "": "*.log\n!keep.log\n/build/\ndocs/**/a.txt\n\\#note\n\\!bang\nspace file\n# comment\n*.py[cod]\nÜnï.tmp\n\n!\n/\n[\nstar/a?c\na\\[1\\].c\nfoo/bar\r\n",
    "sub": "keep.log\n!a.log\nbuild\ndeep/*\n!.hidden\n",
}


@pytest.fixture
def tree(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for name in _FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    for folder, lines in _RULES.items():
        (tmp_path / folder / ".gitignore").write_bytes(lines.encode())
    return tmp_path


def _walk(rules, root, folder=""):
    for entry in sorted((root / folder).iterdir()):
        path = f"{folder}/{entry.name}" if folder else entry.name
        if entry.name == ".git" or rules.ignores(path, directory=entry.is_dir()):
            continue
        if entry.is_dir():
            yield from _walk(rules, root, path)
        else:
            yield path


def test_the_same_files_are_left_out_as_git_leaves_out(tree):
    git = subprocess.run(
        ["git", "-C", str(tree), "ls-files", "-z", "--others", "--exclude-standard"],
        capture_output=True, check=True,
    ).stdout.decode().split("\0")[:-1]  # fmt: skip
    assert sorted(_walk(IgnoreRules(tree), tree)) == sorted(git)


@pytest.mark.parametrize(
    "lines", [b"\xff\xfe\0*", b"[z-a]\n!\n", b"***/**/***\n", b"a" * 100_000, b"\0" * 1_000, b"*a" * 60]
)
def test_a_file_of_nonsense_ignores_nothing_and_breaks_nothing(tmp_path, lines):
    (tmp_path / ".gitignore").write_bytes(lines)
    assert not IgnoreRules(tmp_path).ignores("a" * 120 + "b.py")


def test_a_directory_of_that_name_is_no_rule(tmp_path):
    (tmp_path / ".gitignore").mkdir()
    assert not IgnoreRules(tmp_path).ignores("x")
