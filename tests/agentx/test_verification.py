"""Every kind of damage, made by hand: `verify` finds exactly it, `repair` mends it byte for byte, then all is well."""

import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.core.layout import NotAWorkspace
from agentx.integrity.repair import repair
from agentx.integrity.verify import verify
from agentx.settings import Settings
from agentx.storage.errors import UsageError
from agentx.storage.events.types import Draft, UserMessageSent
from agentx.storage.git.objects import blob_id, loose_path

LIVE = "history.jsonl"
SEGMENTS = ("history/000/001.jsonl", "history/000/002.jsonl")


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A workspace with two sealed segments, long texts, a restored file, and one that is gone."""
    root = tmp_path_factory.mktemp("template") / "task"
    settings = Settings(environ=dict(os.environ), cache_dir=root.parent / "no-models")
    with Workspace.create(root, title="A task", settings=settings) as ws:
        ws.engine.write_path.defer(None)  # so that each object is a file, which can be spoiled
        for name in ("one.md", "two.md", "deep/er/three.md"):
            ws.tools.write_file(name, f"# {name}\n")
        ws.tools.write_file("one.md", "changed\n")
        ws.restore("one.md", at=2)
        ws.say("word " * 4_000)
        for batch in range(3):
            said = [UserMessageSent(body=ws.body(f"{batch} {n} " * 700)) for n in range(20)]
            ws.record(*(Draft(data=data, actor="user") for data in said))
            ws.tools.write_file(f"file{batch}", str(batch))
        ws.say(
            "From now on, never create a requirements.txt file."
        )  # concluded, so opening has nothing to read again
        ws.tools.delete_file("two.md")
        ws.tools.write_file("last", "last\n")
    assert all((root / path).exists() for path in SEGMENTS)
    return root


@pytest.fixture
def root(template, tmp_path):
    return Path(shutil.copytree(template, tmp_path / "task", symlinks=True))


@pytest.fixture
def git(root):
    def git(*arguments):
        command = ["git", "-C", str(root), "-c", "user.name=Pat", "-c", "user.email=pat@x", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    return git


def found(root, **options):
    return [(finding.check, finding.where) for finding in verify(root, **options).findings]


def spoil(path, harm, at=0.5):
    path.chmod(0o644)
    content = path.read_bytes()
    middle = int(len(content) * at)
    path.write_bytes({
        "flip": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
        "cut": content[:middle],
        "empty": b"",
        "zeros": bytes(len(content)),
        "append": content + b"more",
    }[harm])  # fmt: skip


def everything(root):
    """Every file of the record and its repository's commit, as they are."""
    files = {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.relative_to(root).parts[0].startswith(".")
    }
    command = ["git", "-C", root, "rev-parse", "main"]
    return files | {"HEAD": subprocess.run(command, capture_output=True, check=True).stdout}


def test_a_sound_workspace_gives_no_finding_and_is_not_touched(root):
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}
    looked = verify(root)
    assert looked.sound, looked.findings
    assert [check.name for check in looked.checks] == [
        "objects", "commits", "history", "artifacts", "state", "index",
    ]  # fmt: skip
    after = {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}
    assert {path for path in after if after[path] != before.get(path)} <= {root / ".git/agentx.lock"}


@pytest.mark.parametrize("harm", ["flip", "cut", "empty", "zeros", "gone", "append"])
@pytest.mark.parametrize("path", SEGMENTS)
def test_a_damaged_segment_is_found_and_comes_from_the_commits(root, path, harm):
    before = everything(root)
    (root / path).unlink() if harm == "gone" else spoil(root / path, harm)
    findings = verify(root).findings
    assert findings
    assert {finding.check for finding in findings} == {"history"}
    assert all(path in finding.where or "lacks" in finding.what for finding in findings), findings
    done = repair(root)
    assert [one.what for one in done.mended] == [path]
    assert not done.left
    assert everything(root) == before
    assert not done.aside if harm == "gone" else (root / done.aside / path).exists()


def test_one_changed_byte_is_one_finding_with_its_line(root):
    path = root / SEGMENTS[0]
    lines = path.read_bytes().splitlines(keepends=True)
    for number, old in [(2, b'"seq"'), (5, b'"at"'), (6, b'"hash"'), (9, b'"data"')]:
        changed = lines.copy()
        at = changed[number].index(old) + len(old) + 4
        changed[number] = changed[number][:at] + bytes([changed[number][at] ^ 1]) + changed[number][at + 1 :]
        path.write_bytes(b"".join(changed))
        assert found(root) == [("history", f"{SEGMENTS[0]}:{number + 1}")]


@pytest.mark.parametrize("lines", [1, 3])
def test_lines_that_were_taken_out_are_one_finding(root, lines):
    path = root / SEGMENTS[0]
    held = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(held[:5] + held[5 + lines :]))
    (finding,) = verify(root).findings
    assert f"event{'s' * (lines > 1)} 6" in finding.what


@pytest.mark.parametrize("harm", ["flip", "cut", "empty", "zeros"])
def test_a_damaged_live_log_is_restored_with_what_no_commit_holds_yet(root, harm):
    committed = (root / LIVE).read_bytes()
    with Workspace.open(root) as ws:
        ws.say("One more thing.")
        whole = (root / LIVE).read_bytes()
        late = whole[len(committed) :]
    assert late
    subprocess.run(
        ["git", "-C", root, "update-ref", "refs/heads/main", "HEAD~1"], check=True
    )  # not committed yet
    spoil(root / LIVE, harm, at=0.2)
    if harm == "flip":
        assert [where for _, where in found(root)] == [f"{LIVE}:{_line_at(whole, 0.2)}"]
    assert not repair(root).left
    assert (root / LIVE).read_bytes() == whole  # the branch had been set back, and is moved forward again


def _line_at(content, share):
    return content[: int(len(content) * share)].count(b"\n") + 1


@pytest.mark.parametrize("harm", ["flip", "empty", "gone"])
def test_a_long_text_comes_from_the_commits(root, harm):
    path = next(path for path in (root / "history/blobs").rglob("*") if path.is_file())
    before = path.read_bytes()
    path.unlink() if harm == "gone" else spoil(path, harm)
    name = path.relative_to(root).as_posix()
    assert found(root) == [("history", name)]
    assert [one.what for one in repair(root).mended] == [name]
    assert path.read_bytes() == before
    assert not found(root)


@pytest.mark.parametrize("harm", ["flip", "cut", "empty", "zeros", "gone"])
@pytest.mark.parametrize(
    "name", ["HEAD:history.jsonl", "HEAD:artifacts/last", "HEAD^{tree}", "HEAD~2^{tree}", "HEAD~3:artifacts",
             "HEAD~2:history.jsonl", "HEAD:history/000/001.jsonl", "HEAD:artifacts/deep/er/three.md"]
)  # fmt: skip
def test_a_git_object_is_made_again_from_the_files_and_the_events(root, git, name, harm):
    before, oid = everything(root), git("rev-parse", name)
    path = loose_path(root / ".git", oid)
    whole = zlib.decompress(path.read_bytes())
    path.unlink() if harm == "gone" else spoil(path, harm)
    (finding,) = verify(root).findings
    assert oid in finding.where + finding.where.replace("/", "")
    done = repair(root)
    assert not done.left
    assert any(oid in one.what and "restored from" in one.how for one in done.mended)
    assert zlib.decompress(path.read_bytes()) == whole
    assert everything(root) == before
    assert not found(root)
    assert git("fsck", "--strict", "--no-dangling") == ""
    assert not repair(root).mended


@pytest.mark.parametrize(
    ("name", "harm"),
    [*((name, harm) for name in ("refs/heads/main", "index") for harm in ("flip", "empty", "zeros")),
     ("HEAD", "empty"), ("HEAD", "zeros")],
)  # fmt: skip
def test_refs_and_the_index_are_mended(root, git, name, harm):
    head = git("rev-parse", "HEAD")
    spoil(root / ".git" / name, harm)
    # One bit makes of a digit another digit, whose commit is missing, or no digit at all.
    named = ("Git object", f".git/{name}") if (name, harm) == ("refs/heads/main", "flip") else f".git/{name}"
    assert [where for _, where in found(root) if where.startswith(named)]
    repair(root)
    with Workspace.open(root):
        pass
    assert head in git("log", "--format=%H").split()
    assert git("status", "--porcelain") == ""
    assert not found(root)


def test_a_damaged_pack_is_taken_apart(root, git):
    git("gc", "--quiet")
    before = everything(root)
    (pack,) = (root / ".git/objects/pack").glob("*.pack")
    spoil(pack, "flip")
    assert found(root)[0][1].endswith(pack.name)
    done = repair(root)
    assert any("was unpacked" in one.how for one in done.mended)
    assert not (root / ".git/objects/pack" / pack.name).exists()
    assert everything(root) | {"HEAD": b""} == before | {"HEAD": b""}
    if not done.left:
        assert git("fsck", "--strict", "--no-dangling") == ""


@pytest.mark.parametrize("harm", ["flip", "empty", "gone"])
def test_a_pack_without_its_index_is_taken_apart_whole(root, git, harm):
    git("gc", "--quiet")
    before, head = everything(root), git("rev-parse", "HEAD")
    (index,) = (root / ".git/objects/pack").glob("*.idx")
    for path in index.parent.iterdir():
        os.utime(path, (0, 0))
    index.unlink() if harm == "gone" else spoil(index, harm)
    assert found(root)
    assert not repair(root).left
    assert git("rev-parse", "HEAD") == head
    assert git("fsck", "--strict", "--no-dangling") == ""
    assert everything(root) | {"HEAD": b""} == before | {"HEAD": b""}


def test_a_file_that_differs_is_found_and_left_to_its_owner(root):
    (root / "artifacts/one.md").write_text("an edit")
    (root / "artifacts/last").unlink()
    (root / "artifacts/new").write_text("new")
    wanted = [("artifacts", f"artifacts/{name}") for name in ("last", "new", "one.md")]
    assert sorted(found(root)) == wanted
    assert not repair(root).mended
    assert (root / "artifacts/one.md").read_text() == "an edit"
    with Workspace.open(root) as ws:
        ws.status()
    assert not found(root)


def test_an_artifact_in_the_commit_that_no_event_tells_of_is_found(root, git):
    message = git("log", "-1", "--format=%B")
    (root / "artifacts/last").write_text("smuggled in")
    git("add", "-A")
    tree, parent = git("write-tree"), git("rev-parse", "HEAD~1")
    commit = git("-c", "user.email=x@agent.agentx.invalid", "commit-tree", tree, "-p", parent, "-m", message)
    git("update-ref", "refs/heads/main", commit)
    assert ("history", "artifacts/last") in found(root)


def test_a_rewritten_history_is_found_at_its_commit(root, git):
    message = git("log", "-1", "--format=%B")
    lines = (root / LIVE).read_bytes().splitlines(keepends=True)
    (root / LIVE).write_bytes(b"".join(lines[1:]))
    git("add", "-A")
    ours = ["-c", "user.email=x@agent.agentx.invalid"]
    commit = git(*ours, "commit-tree", git("write-tree"), "-p", git("rev-parse", "HEAD~1"), "-m", message)
    git("update-ref", "refs/heads/main", commit)
    assert ("commits", f"commit {commit[:12]}") in found(root)


def test_a_commit_says_which_events_it_holds(root, git):
    message = git("log", "-1", "--format=%B").replace("AgentX-Event: ", "AgentX-Event: 9")
    ours = ["-c", "user.email=x@agent.agentx.invalid"]
    tree, parent = git("rev-parse", "HEAD^{tree}"), git("rev-parse", "HEAD~1")
    commit = git(*ours, "commit-tree", tree, "-p", parent, "-m", message)
    git("update-ref", "refs/heads/main", commit)
    finding = next(finding for finding in verify(root).findings if finding.check == "commits")
    assert finding.where == f"commit {commit[:12]}"
    assert "says that it adds event" in finding.what


def test_only_what_came_after_a_commit_is_looked_at(root, git):
    spoil(root / SEGMENTS[0], "flip")
    late = git("rev-parse", "HEAD~2")
    looked = verify(root, since=late[:10])
    assert [check.what.split(" ")[0] for check in looked.checks if check.name == "commits"] == ["2"]
    assert {(f.check, f.where) for f in looked.findings} == {
        ("history", SEGMENTS[0])
    }  # its bytes, not its lines
    spoil(root / LIVE, "flip", at=0.99)
    assert any(f.where.startswith(LIVE) for f in verify(root, since=late).findings)
    with pytest.raises(UsageError, match="Unknown commit"):
        verify(root, since="abcdef0123")


def test_a_state_that_no_fold_gives_is_found(root, lexical):
    with Workspace.open(root, settings=lexical) as ws:
        state = ws.state
        assert ws.verify().sound
    state.title = "Another"
    assert found(root, states=(state,)) == [("state", f"The state after event {state.seq}")]


def test_a_content_that_no_commit_holds_is_found(root, git):
    oid = git("rev-parse", "HEAD:artifacts/last")
    text = (root / LIVE).read_bytes()
    assert oid.encode() in text
    message = git("log", "-1", "--format=%B")
    git("rm", "-q", "--cached", "artifacts/last")
    ours = ["-c", "user.email=x@agent.agentx.invalid"]
    commit = git(*ours, "commit-tree", git("write-tree"), "-p", git("rev-parse", "HEAD~1"), "-m", message)
    git("update-ref", "refs/heads/main", commit)
    assert ("commits", "artifacts/last") in found(root)


def test_an_index_that_lacks_something_is_found_and_none_is_no_finding(root, lexical):
    assert "no index was built yet" in verify(root).checks[-1].what
    with Workspace.open(root, settings=lexical) as ws:
        ws.search("word")
        ws.engine.indexer.close()  # otherwise it may write again meanwhile
        ws.engine.indexer.index.clear()
        seq = ws.state.seq
        ws.engine.indexer.index.write_meta("seq", f"{seq - 3} {'0' * 64}")
    checks = {check for check, _ in found(root)}
    assert checks == {"index"}


def test_the_passages_of_the_index_are_counted(root, lexical):
    with Workspace.open(root, settings=lexical) as ws:
        ws.tools.write_file("many.py", "\n\n".join(f"def part_{n}():\n    return {n}\n" for n in range(40)))
        ws.search("word")
        total = ws.engine.indexer.index.count()
    assert total > 40
    assert f"{total:,} passages; " in verify(root).checks[-1].what


def test_a_line_that_the_engine_set_aside_is_no_finding(root, lexical):
    other = (root / LIVE).read_bytes().splitlines(keepends=True)[-1]
    with (root / LIVE).open("ab") as file:
        file.write(other.replace(b'"actor":"', b'"actor":"x'))
    assert found(root)
    with Workspace.open(root, settings=lexical) as ws:
        ws.say("This goes on behind the last event.")
    assert not found(root)


def test_a_torn_last_line_is_not_there_yet(root):
    with (root / LIVE).open("ab") as file:
        file.write(b'{"seq":')
    assert not found(root)


def test_a_writer_beside_it_brings_no_finding(root, lexical):
    code = (
        "import sys; from agentx import Workspace\n"
        "with Workspace.open(sys.argv[1]) as ws:\n"
        "    print('on', flush=True)\n"
        "    for n in range(10_000): ws.tools.write_file(f'w{n % 5}', str(n) * 50)\n"
    )
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    with subprocess.Popen(
        [sys.executable, "-c", code, str(root)], env=environ, stdout=subprocess.PIPE
    ) as writer:
        writer.stdout.readline()
        try:
            looked = [verify(root)]
            while len(looked) < 5 or looked[-1].seq == looked[0].seq:
                looked.append(verify(root))
        finally:
            writer.kill()
    assert {one.findings for one in looked} == {()}


def test_a_dry_run_changes_nothing_and_tells(root):
    spoil(root / SEGMENTS[0], "flip")
    before = everything(root)
    done = repair(root, dry_run=True)
    assert [one.what for one in done.mended] == [SEGMENTS[0]]
    assert done.left
    assert everything(root) == before
    assert not (root / ".agentx/repaired").exists()


def test_what_nothing_holds_any_more_is_told(root):
    oid = blob_id(b"changed\n")
    loose_path(root / ".git", oid).unlink()
    done = repair(root)
    assert [finding.where for finding in done.left] == [f"Git object {oid}"]
    assert "backup" in done.left[0].todo


def test_a_directory_that_is_no_workspace_is_refused(tmp_path):
    for look in (verify, repair):
        with pytest.raises(NotAWorkspace):
            look(tmp_path)
