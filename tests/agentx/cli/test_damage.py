"""Over a damaged record, a command that only reads changes nothing; one that writes heals it first."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.integrity.verify import verify
from agentx.settings import Settings, read_settings
from agentx.trust import caches
from agentx.trust.store import Store

LIVE = "history.jsonl"
SEALED = "history/000/001.jsonl"


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A workspace with a sealed segment, a long text, a rule and an index; nothing waits to be written."""
    root = tmp_path_factory.mktemp("damage") / "task"
    settings = Settings(environ=dict(os.environ), cache_dir=root.parent / "no-models")
    with Workspace.create(root, title="A task", settings=settings) as ws:
        ws.say("From now on, never create a requirements.txt file.")
        ws.say("a long text " * 2_000)
        for number in range(30):
            ws.tools.write_file(f"file{number % 3}.md", f"{number} " + "some words\n" * 9)
            ws.say(f"{number} " + "a word and another " * 120)
        for number in range(4):
            ws.tools.write_file("report.md", f"version {number}\n")
        ws.search("version")
    assert (root / SEALED).exists()
    return root


@pytest.fixture
def root(template, tmp_path):
    """A copy of it, whose caches pass for made here."""
    copy = Path(shutil.copytree(template, tmp_path / "task", symlinks=True))
    key = Store(read_settings().state_dir).key(caches._KEY)
    (copy / ".agentx" / caches._MARK).write_bytes(caches._mark(copy, key))
    return copy


def fingerprint(root):
    """Path, kind, mode and content of everything below a directory, `.git` and `.agentx` too."""
    found = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
            found[path.relative_to(root).as_posix()] = (path.lstat().st_mode, content)
    return found


def changed(before, after):
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def flip(path, at, into=None):
    content = bytearray(path.read_bytes())
    content[at] = content[at] ^ 1 if into is None else into
    path.write_bytes(content)


def lines_of(root, name=LIVE):
    return (root / name).read_bytes().splitlines(keepends=True)


def _in_line(number, mark, offset):
    """Flip a byte of a line of the live log."""

    def harm(root):
        lines = lines_of(root)
        start = sum(map(len, lines[: number % len(lines)]))
        line = lines[number]
        at = len(line) - 1 if mark is None else line.index(mark) + offset
        flip(root / LIVE, start + at)

    return harm


def _swapped(root):
    lines = lines_of(root)
    (root / LIVE).write_bytes(b"".join([lines[1], lines[0], *lines[2:]]))


def _twice(root):
    lines = lines_of(root)
    (root / LIVE).write_bytes(b"".join([*lines[:2], lines[1], *lines[2:]]))


def _foreign(root):
    lines = lines_of(root)
    (root / LIVE).write_bytes(b"".join([lines[0], b'{"a person":"wrote this"}\n', *lines[1:]]))


def _live(change):
    return lambda root: (root / LIVE).write_bytes(change((root / LIVE).read_bytes()))


def _blob(root):
    path = next(path for path in (root / "history/blobs").rglob("*") if path.is_file())
    flip(path, 100)


HARMS = {
    "first line, header": _in_line(0, b'"actor"', 10),
    "first line, data": _in_line(0, b'"data"', 20),
    "first line, hash": _in_line(0, b'"hash"', 12),
    "first line, newline": _in_line(0, None, 0),
    "middle line, header": _in_line(2, b'"at"', 9),
    "middle line, seq": _in_line(2, b'"seq"', 6),
    "middle line, data": _in_line(2, b'"data"', 30),
    "middle line, hash": _in_line(2, b'"hash"', 20),
    "middle line, newline": _in_line(2, None, 0),
    "last line, header": _in_line(-1, b'"actor"', 10),
    "last line, data": _in_line(-1, b'"data"', 20),
    "last line, hash": _in_line(-1, b'"hash"', 30),
    "last line, newline": _in_line(-1, None, 0),
    "lines swapped": _swapped,
    "a line twice": _twice,
    "a foreign line in the middle": _foreign,
    "carriage returns": _live(lambda content: content.replace(b"\n", b"\r\n")),
    "byte order mark": _live(lambda content: b"\xef\xbb\xbf" + content),
    "zeros at the end": _live(lambda content: content[:-500] + bytes(500)),
    "zeros in the middle": _live(lambda content: content[:900] + bytes(300) + content[1_200:]),
    "cut in the middle of a line": _live(lambda content: content[:-100]),
    "cut at the end of a line": _live(lambda content: content[: content.rindex(b"\n", 0, -1) + 1]),
    "a part missing": _live(lambda content: content[:700] + content[1_300:]),
    "empty": _live(lambda content: b""),
    "a huge line": _live(lambda content: b"x" * 1_000_000 + b"\n" + content),
    "a sealed segment": lambda root: flip(root / SEALED, 3_000),
    "a sealed segment is gone": lambda root: (root / SEALED).unlink(),
}

_KEPT = {"a foreign line in the middle": b"wrote this", "a huge line": b"x" * 1_000_000}

READING = (
    ["status"], ["search", "version"], ["log"], ["context"], ["memory", "list"], ["verify"], ["doctor"],
    ["diff"], ["repair", "--dry-run"], ["bisect", "c-3"], ["agent", "boot"],
)  # fmt: skip
FIRST = 2
THOROUGH = ("middle line, data", "cut in the middle of a line", "a sealed segment")
"""Over these every command is tried; over the others the first ones."""


@pytest.mark.parametrize("harm", HARMS)
def test_a_command_that_only_reads_changes_nothing_over_damage(root, call, harm, monkeypatch):
    """Not a byte below the directory differs, with an edit of a person and a search waiting."""
    monkeypatch.setenv("AGENTX_CACHE_DIR", str(root.parent / "no-models"))
    HARMS[harm](root)
    (root / "artifacts/report.md").write_text("edited by hand\n")
    before = fingerprint(root)
    for words in READING if harm in THOROUGH else READING[:FIRST]:
        done = call("-C", root, *words)
        assert "Traceback" not in done.err, words
        assert not changed(before, fingerprint(root)), words


@pytest.mark.parametrize(
    "harm",
    [
        *THOROUGH,
        "last line, newline",
        "lines swapped",
        "a foreign line in the middle",
        "a sealed segment is gone",
    ],
)
def test_a_command_that_writes_restores_the_log_first(root, call, harm, template):
    """The log is what it was, with the new event behind it, and the next commit holds all of it."""
    HARMS[harm](root)
    done = call("-C", root, "memory", "add", "Say what was done.")
    assert done.code == 0, done.err
    assert "restored from" in done.err or "cleared of" in done.err
    names = (SEALED, LIVE)
    whole = b"".join((template / name).read_bytes() for name in names)
    now = b"".join((root / name).read_bytes() for name in names)
    assert now.startswith(whole)
    assert len(now) > len(whole)
    assert any((root / ".agentx/repaired").rglob("*.jsonl")) or "gone" in harm
    assert verify(root).sound, verify(root).findings


@pytest.mark.parametrize("harm", [*HARMS, "a long text"])
def test_repair_restores_it_byte_for_byte(root, call, harm, template):
    """The commits stay as they are."""
    (HARMS | {"a long text": _blob})[harm](root)
    head = subprocess.run(["git", "-C", root, "rev-parse", "HEAD"], capture_output=True, check=True).stdout
    assert not verify(root).sound
    done = call("-C", root, "repair")
    assert done.code == 0, done.out
    for name in (SEALED, LIVE):
        assert (root / name).read_bytes() == (template / name).read_bytes()
    assert verify(root).sound
    if harm in {"a foreign line in the middle", "a huge line"}:
        assert _KEPT[harm] in (root / "history/orphans.jsonl").read_bytes()
    else:
        assert (
            head
            == subprocess.run(
                ["git", "-C", root, "rev-parse", "HEAD"], capture_output=True, check=True
            ).stdout
        )
        assert not (root / "history/orphans.jsonl").exists()
