"""A push leaves a complete backup or fails; no configuration on either side makes git run anything."""

import os
import shutil
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import msgspec
import pygit2
import pytest

from agentx import Workspace
from agentx.storage.git.checking import STALE_S
from agentx.storage.git.exchange.git_program import GitMissing
from agentx.storage.git.exchange.remotes import PushRefused, Remote, RemoteFailed
from agentx.storage.git.objects import ObjectDamaged
from agentx.storage.log.history import HistoryDamaged
from agentx.transfer.push_pull import HistoriesDiverged

PAT = ("-c", "user.name=Pat", "-c", "user.email=pat@example.org")


def git(root, *arguments, **more):
    command = ["git", *PAT, *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True, **more).stdout


def make_bare(place, *options):
    place.mkdir(parents=True)
    git(place, "init", "-q", "--bare", "-b", "main", *options)
    return place


@pytest.fixture
def bare(tmp_path):
    """An empty bare repository."""
    return make_bare(tmp_path / "backup.git")


@pytest.fixture
def filled(ws):
    """A workspace in which files came, went and came back."""
    ws.tools.write_file("a.txt", "one\n")
    for name in ("tmp.txt", "x/tmp.txt", "y/z/tmp.txt"):
        ws.tools.write_file(name, "gone\n")
        ws.tools.delete_file(name)
    ws.tools.write_file("y/a.txt", "one\n")
    return ws


def is_backup(bare, ws):
    """Everything is there, a clone of it verifies, and gives the same digest."""
    assert git(bare, "fsck", "--strict", "--no-progress", "--no-dangling") == ""
    clone = bare.parent / f"clone-of-{bare.name}"
    shutil.rmtree(clone, ignore_errors=True)
    git(bare.parent, "clone", "-q", str(bare), str(clone))
    with Workspace.open(clone, settings=ws.settings) as other:
        assert other.verify().findings == ()
        assert other.state.digest == ws.state.digest


def unpacked(bare):
    """Every object in a file of its own."""
    for pack in list((bare / "objects/pack").glob("*.pack")):
        content = pack.read_bytes()
        for path in pack.parent.glob(f"{pack.stem}.*"):
            path.unlink()
        subprocess.run(["git", "unpack-objects", "-q"], cwd=bare, input=content, check=True)
    return bare


def drop(repository, oid):
    (repository / "objects" / oid[:2] / oid[2:]).unlink()


def blob_of(ws, commit, path):
    return git(ws.root, "rev-parse", f"{commit}:{path}").strip()


# --- what is pushed is complete -----------------------------------------------------------------------------


def test_files_that_came_and_went_are_in_the_backup(filled, bare):
    """What a tree holds that was seen before, under another parent, was left out."""
    filled.push(url=str(bare))
    is_backup(bare, filled)
    filled.tools.write_file("x/tmp.txt", "gone\n")
    filled.tools.delete_file("x/tmp.txt")
    filled.flush()
    gone = blob_of(filled, "main~1", "artifacts/x/tmp.txt")
    filled.push()
    is_backup(bare, filled)
    assert git(bare, "cat-file", "blob", gone) == "gone\n"


@pytest.mark.parametrize("more", [False, True])
@pytest.mark.parametrize("path", ["artifacts/y/a.txt", "artifacts", "history.jsonl", "", "commit"])
def test_the_next_push_gives_a_backup_what_an_earlier_version_left_out(filled, bare, more, path):
    filled.push(url=str(bare))
    (filled.root / ".git/agentx-backups").unlink()  # which earlier versions did not write
    drop(
        unpacked(bare), git(filled.root, "rev-parse", "main" if path == "commit" else f"main:{path}").strip()
    )
    if more:
        filled.tools.write_file("b.txt", "two\n")
    done = filled.push()
    assert (done.restored, bool(done.commits)) == (1, more)
    is_backup(bare, filled)
    assert filled.push().restored == 0


def test_what_a_backup_lost_since_the_last_push_is_sent_again(filled, bare):
    filled.push(url=str(bare))
    filled.tools.write_file("b.txt", "two\n")
    filled.push()
    newest = max((bare / "objects/pack").glob("*.pack"), key=lambda path: path.stat().st_mtime_ns)
    for path in newest.parent.glob(f"{newest.stem}.*"):
        path.unlink()
    assert filled.push().restored > 0
    is_backup(bare, filled)


def test_a_backup_that_is_known_to_be_complete_is_not_gone_through_again(filled, bare, monkeypatch):
    filled.push(url=str(bare))
    monkeypatch.setattr("agentx.storage.git.exchange.transfer.complete", None)  # calling it would fail
    assert filled.push().commits == 0
    filled.tools.write_file("b.txt", "two\n")
    assert filled.push().commits == 1
    assert git(bare, "show", "main:artifacts/b.txt") == "two\n"


def test_branches_that_others_left_in_a_backup_are_not_taken_for_complete(filled, bare):
    """Git sends and checks only what no ref there leads to."""
    filled.flush()
    git(filled.root, "push", "-q", str(bare), "main:refs/heads/other", "main:refs/tags/v1")
    drop(unpacked(bare), blob_of(filled, "main", "artifacts/a.txt"))
    filled.push(url=str(bare))
    assert git(bare, "fsck", "--strict", "--no-progress", "--no-dangling") == ""


@pytest.mark.parametrize("where", ["tip", "pack"])
def test_a_backup_that_is_damaged_is_named_and_not_pushed_to(filled, bare, where):
    filled.push(url=str(bare))
    before = git(bare, "rev-parse", "main")
    filled.tools.write_file("b.txt", "two\n")
    if where == "tip":
        tip = before.strip()
        path = unpacked(bare) / "objects" / tip[:2] / tip[2:]
    else:
        (path,) = (bare / "objects/pack").glob("*.pack")
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(
        (RemoteFailed, ObjectDamaged), match=path.name if where == "pack" else "damaged|corrupt"
    ):
        filled.push()
    assert git(bare, "rev-parse", "main") == before


def test_what_neither_side_has_is_named(filled, bare):
    filled.push(url=str(bare))
    oid = blob_of(filled, "main", "artifacts/a.txt")
    drop(unpacked(bare), oid)
    drop(unpacked(filled.root / ".git"), oid)
    with pytest.raises(ObjectDamaged, match=oid):
        filled.push()


def test_a_log_that_ends_before_its_commits_do_is_not_pushed(filled, bare):
    filled.flush()
    root = filled.root
    log = root / "history.jsonl"
    engine = ("-c", "user.email=main@agent.agentx.invalid")
    kept = log.read_bytes()
    log.write_bytes(b"".join(kept.splitlines(keepends=True)[:-1]))
    message = git(root, "log", "-1", "--format=%B")
    tree = subprocess.run(
        ["sh", "-c", "git read-tree HEAD && git add history.jsonl && git write-tree"],
        cwd=root, env=os.environ | {"GIT_INDEX_FILE": str(root.parent / "index")},
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    commit = git(root, *engine, "commit-tree", tree, "-p", "HEAD", "-m", message).strip()
    log.write_bytes(kept)
    filled.engine.settle = lambda: (commit, filled.state.seq)
    with pytest.raises(HistoryDamaged, match="nothing was pushed"):
        filled.push(url=str(bare))


# --- where it goes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["with space", 'it\'s "quoted"', "-leading", "a;b$(touch no)`touch no`", "ä\u2028", "a%20b"]
)
@pytest.mark.parametrize("how", ["path", "relative", "file"])
def test_any_directory_can_be_pushed_to_and_pulled_from(filled, tmp_path, name, how, lexical):
    bare = make_bare(tmp_path / "place" / name)
    url = {"path": str(bare), "relative": f"../place/{name}", "file": f"file://{quote(str(bare))}"}[how]
    filled.push(url=url)
    is_backup(bare, filled)
    with Workspace.open(tmp_path / "place" / f"clone-of-{name}", settings=lexical) as clone:
        clone.tools.write_file("b.txt", "two\n")
        clone.push()
    assert filled.pull().events == 1
    assert not list(tmp_path.rglob("no"))


def test_a_directory_with_a_colon_is_named_by_its_whole_path(filled, tmp_path):
    bare = make_bare(tmp_path / "host:name.git")
    assert filled.push(url=str(bare)).url == str(bare)
    is_backup(bare, filled)


def test_a_directory_in_a_project_is_not_taken_for_the_project(filled, tmp_path):
    git(tmp_path, "init", "-q", "--bare", "-b", "main", "project.git")
    (tmp_path / "project.git/backups").mkdir()
    with pytest.raises(RemoteFailed, match="could not be reached"):
        filled.push(url=str(tmp_path / "project.git/backups"))
    assert git(tmp_path / "project.git", "for-each-ref") == ""


def test_a_head_that_names_no_branch_is_set_by_any_push(filled, bare):
    """A crash may come between the branch and the head."""
    filled.push(url=str(bare))
    (bare / "HEAD").write_text("ref: refs/heads/trunk\n")
    filled.push()
    assert git(bare, "symbolic-ref", "HEAD") == "refs/heads/main\n" or filled.tools.write_file(
        "b.txt", "two\n"
    )
    filled.push()
    is_backup(bare, filled)


LOCKS = (
    *("backup.git/refs/heads/main.lock", "backup.git/HEAD.lock", "backup.git/packed-refs.lock"),
    *("task/.git/config.lock", "task/.git/refs/remotes/origin/main.lock", "task/.git/packed-refs.lock"),
)


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_that_a_killed_push_left_stops_the_next_for_a_moment_only(filled, bare, tmp_path, lock):
    filled.push(url=str(bare))
    filled.tools.write_file("b.txt", "two\n")
    filled.flush()
    (tmp_path / lock).touch()
    left = time.time() - STALE_S + 0.2
    os.utime(tmp_path / lock, (left, left))
    filled.push()
    is_backup(bare, filled)
    assert not (tmp_path / lock).exists()


def test_a_branch_whose_commit_neither_side_holds_is_said(filled, bare):
    filled.push(url=str(bare))
    (bare / "refs/heads/main").write_text(f"{'1' * 40}\n")
    for exchange in (filled.push, filled.pull):
        with pytest.raises(RemoteFailed, match="is damaged"):
            exchange()


def test_a_shallow_clone_can_be_pushed(filled, bare, tmp_path, lexical):
    filled.push(url=str(bare))
    git(tmp_path, "clone", "-q", "--depth=2", f"file://{bare}", "shallow")
    with Workspace.open(tmp_path / "shallow", settings=lexical) as clone:
        clone.tools.write_file("b.txt", "two\n")
        clone.push()
        is_backup(bare, clone)
        (clone.root / ".git/agentx-backups").unlink()
        assert clone.push().restored == 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory to another user")
def test_a_directory_of_another_user_is_refused_until_it_is_allowed(filled, bare, tmp_path):
    for path in (bare, *bare.rglob("*")):
        os.chown(path, 65534, 65534)
    for exchange in (filled.push, filled.pull):
        with pytest.raises(RemoteFailed, match=r"belongs to another user.*safe\.directory"):
            exchange(url=str(bare))
    (tmp_path / ".gitconfig").write_text(f"[safe]\ndirectory = {bare}\ndirectory = {bare}/\n")
    search, level = pygit2.settings.search_path, pygit2.enums.ConfigLevel.GLOBAL
    before, search[level] = search[level], str(tmp_path)
    try:
        filled.push(url=str(bare))
    finally:
        search[level] = before
    git(bare, "-c", f"safe.directory={bare}", "fsck", "--strict", "--no-progress", "--no-dangling")


@pytest.fixture
def small_disk(tmp_path):
    """A disk with hardly any room."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=600k", "none", str(place)]
    if os.getuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no disk can be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_is_said_and_the_next_push_completes_the_backup(filled, small_disk):
    bare = make_bare(small_disk / "backup.git", "--template=")
    filled.push(url=str(bare))
    before = git(bare, "rev-parse", "main")
    (filled.artifacts / "big.bin").write_bytes(os.urandom(700_000))
    with pytest.raises(RemoteFailed, match="No space left"):
        filled.push()
    assert git(bare, "rev-parse", "main") == before
    assert git(bare, "fsck", "--strict", "--no-progress", "--no-dangling") == ""
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    filled.push()
    is_backup(bare, filled)


def test_a_full_disk_here_is_said_and_the_next_pull_brings_it_all(filled, bare, small_disk, lexical):
    subprocess.run(["mount", "-o", "remount,size=3m", str(small_disk)], check=True)
    filled.push(url=str(bare))
    git(small_disk, "clone", "-q", "--template=", str(bare), "clone")
    with Workspace.open(small_disk / "clone", settings=lexical) as clone:
        (filled.artifacts / "big.bin").write_bytes(os.urandom(4_000_000))
        filled.push()
        with pytest.raises(RemoteFailed, match="disk was full"):
            clone.pull()
        subprocess.run(["mount", "-o", "remount,size=30m", str(small_disk)], check=True)
        clone.pull()
        assert clone.state.digest == filled.state.digest
        assert clone.verify().findings == ()


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_directory_that_may_not_be_written_is_said(filled, bare):
    (bare / "objects").chmod(0o555)
    with pytest.raises(RemoteFailed):
        filled.push(url=str(bare))
    (bare / "objects").chmod(0o755)
    filled.push()
    is_backup(bare, filled)


def test_a_branch_that_was_moved_meanwhile_is_not_overwritten(filled, bare, tmp_path, monkeypatch, lexical):
    filled.push(url=str(bare))
    git(tmp_path, "clone", "-q", str(bare), "there")
    filled.tools.write_file("b.txt", "ours\n")
    push, moved = Remote.push, []

    def late(remote, *arguments):
        if not moved:
            moved.append(True)
            with Workspace.open(tmp_path / "there", settings=lexical) as there:
                there.tools.write_file("b.txt", "theirs\n")
                there.push()
        push(remote, *arguments)

    monkeypatch.setattr(Remote, "push", late)
    with pytest.raises(HistoriesDiverged):
        filled.push()
    assert "theirs" in git(bare, "show", "main:artifacts/b.txt")


def test_without_a_git_program_it_says_what_to_do(filled, bare, tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/env").symlink_to(shutil.which("env"))
    with monkeypatch.context() as patched:
        patched.setenv("PATH", str(tmp_path / "bin"))
        for exchange in (filled.push, filled.pull):
            with pytest.raises(GitMissing, match="Install Git"):
                exchange(url=str(bare))
        with pytest.raises(GitMissing):
            filled.fork(tmp_path / "fork")
    filled.push(url=str(bare))


# --- what may not steer it ----------------------------------------------------------------------------------


HOOKS = (
    "pre-receive",
    "update",
    "post-receive",
    "post-update",
    "reference-transaction",
    "pre-push",
    "pre-auto-gc",
    "proc-receive",
)


def traps(git_dir, canary):
    """Everything in a repository that names a program."""
    script = canary.parent / "run.sh"
    script.write_text(f'#!/bin/sh\necho "$0 $*" >> {canary}\n')
    script.chmod(0o755)
    for name in HOOKS:
        (git_dir / "hooks").mkdir(exist_ok=True)
        shutil.copy(script, git_dir / "hooks" / name)
    with (git_dir / "config").open("a") as config:
        config.write(
            f"[core]\nsshCommand = {script}\nfsmonitor = {script}\ngitProxy = {script}\naskPass = {script}\n"
            f"alternateRefsCommand = {script}\neditor = {script}\npager = {script}\nhooksPath = {git_dir}/hooks\n"
            f"[uploadpack]\npackObjectsHook = {script}\n"
            f"[credential]\nhelper = !{script}\n[gpg]\nprogram = {script}\n[push]\ngpgSign = true\n"
            f'[filter "x"]\nclean = {script}\nsmudge = {script}\nrequired = true\n'
            f'[remote "origin"]\nuploadpack = {script}\nreceivepack = {script}\n[gc]\nauto = 1\nrecentObjectsHook = {script}\n'
        )  # fmt: skip
    with (git_dir / "info/attributes").open("a") as attributes:
        attributes.write("* filter=x\n")


def test_nothing_that_a_workspace_brings_is_run(filled, bare, tmp_path):
    filled.flush()
    canary = tmp_path / "canary"
    traps(filled.root / ".git", canary)
    filled.push("backup", url=str(bare))
    filled.pull("backup")
    filled.fork(tmp_path / "fork").close()
    for url in (
        "ssh://127.0.0.1:1/x.git",
        "pat@127.0.0.1:x.git",
        "git://127.0.0.1:1/x",
        "http://127.0.0.1:1/x.git",
    ):
        with pytest.raises(RemoteFailed):
            filled.push(f"r{len(url)}", url=url)
    for url in (f"--upload-pack={canary.parent}/run.sh:x", f"-oProxyCommand={canary.parent}/run.sh:x"):
        with pytest.raises(RemoteFailed):
            filled.push("dash", url=url)
    for url in (f"ext::{canary.parent}/run.sh", f"ext::sh -c {canary.parent}/run.sh%S"):
        with pytest.raises(RemoteFailed, match="not allowed"):
            filled.push("ext", url=url)
    assert not canary.exists(), canary.read_text()
    subprocess.run(
        ["git", "push", "-q", str(bare), "main"], cwd=filled.root, check=False, capture_output=True
    )
    assert canary.exists()  # the traps are live


def test_nothing_that_a_directory_brings_is_run(filled, bare, tmp_path, lexical):
    canary = tmp_path / "canary"
    (bare / "info").mkdir(exist_ok=True)
    (bare / "objects/info").mkdir(exist_ok=True)
    make_bare(tmp_path / "alternate.git")
    (bare / "objects/info/alternates").write_text(f"{tmp_path}/alternate.git/objects\n")
    traps(bare, canary)
    filled.push(url=str(bare))
    filled.tools.write_file("b.txt", "two\n")
    filled.push()
    with filled.fork(tmp_path / "fork", at=2) as fork, pytest.raises(HistoriesDiverged):
        fork.pull(url=str(bare))
    assert not canary.exists(), canary.read_text()
    subprocess.run(
        ["git", "push", "-q", str(bare), "main:x"], cwd=tmp_path / "fork", check=False, capture_output=True
    )
    assert canary.exists()  # the traps are live


def test_a_partial_clone_is_not_taken_for_a_backup(filled, bare, tmp_path):
    """Git fetches what such a clone lacks on demand, with a command that its configuration names."""
    filled.push(url=str(bare))
    git(tmp_path, "clone", "-q", "--bare", "--filter=blob:none", f"file://{bare}", "partial.git")
    for exchange in (filled.push, filled.pull):
        with pytest.raises(RemoteFailed, match="partial clone"):
            exchange("partial", url=str(tmp_path / "partial.git"))


def test_a_push_collects_no_garbage_in_the_workspace(filled, bare, tmp_path, monkeypatch):
    (tmp_path / "global").write_text("[gc]\nauto = 1\nautoPackLimit = 1\npruneExpire = now\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "global"))
    oid = filled.engine.git.repo.write_blob(b"not committed yet")
    for number in range(3):
        filled.push(url=str(bare))
        filled.pull()
        filled.tools.write_file("n.txt", f"{number}\n")
    assert filled.engine.git.repo.has_blob(oid)


def test_it_works_in_a_hook_of_another_repository(filled, bare, tmp_path):
    """Git sets its own variables there."""
    git(tmp_path, "init", "-q", "-b", "main", "project")
    hook = tmp_path / "project/.git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    code = f"from agentx import Workspace\nwith Workspace.open({str(filled.root)!r}) as ws: ws.push(url={str(bare)!r})"
    script = tmp_path / "push.py"
    script.write_text(code)
    hook.write_text(f"#!/bin/sh\nexec {sys.executable} {script}\n")
    hook.chmod(0o755)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    environ["AGENTX_CACHE_DIR"] = str(tmp_path / "no-models")
    filled.flush()
    git(tmp_path / "project", "commit", "-q", "--allow-empty", "-m", "Begin", env=environ)
    is_backup(bare, filled)
    assert git(tmp_path / "project", "count-objects").startswith("2 objects")


# --- servers that lie ---------------------------------------------------------------------------------------


class _Liar(BaseHTTPRequestHandler):
    """Says that its branch is a commit, and sends a pack that was made beforehand."""

    def do_GET(self):
        line = f"{self.server.commit} refs/heads/main\0 ofs-delta\n"
        first = "# service=git-upload-pack\n"
        self._answer(
            "advertisement", f"{len(first) + 4:04x}{first}0000{len(line) + 4:04x}{line}0000".encode()
        )

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._answer("result", b"0008NAK\n" + self.server.pack)

    def _answer(self, what, content):
        self.send_response(200)
        self.send_header("Content-Type", f"application/x-git-upload-pack-{what}")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def liar():
    """A server whose answers are set by the test."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Liar)
    server.url = f"http://127.0.0.1:{server.server_port}/x.git"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def _pack(root, oids):
    return subprocess.run(
        ["git", "pack-objects", "--stdout", "-q"], cwd=root, input="\n".join(oids).encode(), capture_output=True, check=True
    ).stdout  # fmt: skip


@pytest.mark.parametrize("lie", ["blob", "tree", "commit", "malformed", "torn", "none"])
def test_a_server_that_sends_less_than_its_branch_leads_to_is_refused(filled, liar, tmp_path, lexical, lie):
    filled.flush()
    git(tmp_path, "clone", "-q", str(filled.root), "there")
    with Workspace.open(tmp_path / "there", settings=lexical) as there:
        for text in ("two\n", "three\n"):
            there.tools.write_file("d/b.txt", text)
        there.flush()
        root = there.root
        if lie == "malformed":  # well-formed to libgit2, and not to `git fsck`
            raw = git(root, "cat-file", "commit", "main").replace("committer ", "committer x\0")
            commit = git(
                root, "hash-object", "-w", "-t", "commit", "--stdin", "--literally", input=raw
            ).strip()
            git(root, "update-ref", "refs/heads/main", commit)
        liar.commit = git(root, "rev-parse", "main").strip()
        oids = git(
            root,
            "rev-list",
            "--objects",
            "--no-object-names",
            "main",
            f"^{filled.engine.git.repo.head}",
        ).split()
        names = {"blob": "main~1:artifacts/d/b.txt", "tree": "main~1:artifacts/d", "commit": "main~1"}
        left_out = git(root, "rev-parse", names[lie]).strip() if lie in names else ""
        liar.pack = _pack(root, [oid for oid in oids if oid != left_out])
    if lie == "torn":
        liar.pack = liar.pack[:-30]
    before, files = git(filled.root, "for-each-ref"), sorted(filled.artifacts.rglob("*"))
    if lie == "none":
        assert filled.pull(url=liar.url).events == 2
        return
    with pytest.raises(RemoteFailed, match="is damaged, or does not provide all"):
        filled.pull(url=liar.url)
    assert (git(filled.root, "for-each-ref"), sorted(filled.artifacts.rglob("*"))) == (before, files)
    assert filled.verify().findings == ()


# --- credentials --------------------------------------------------------------------------------------------


def test_credentials_come_from_the_persons_own_helper_and_nobody_is_asked(
    filled, locked, tmp_path, monkeypatch
):
    url = f"http://127.0.0.1:{locked.server_port}/x.git"
    own = '[credential]\nhelper = "!echo username=workspace; echo password=wrong; #"\n'
    with (filled.root / ".git/config").open("a") as config:
        config.write(own)
    monkeypatch.setenv("GIT_ASKPASS", str(tmp_path / "asks"))
    (tmp_path / "asks").write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\n")
    (tmp_path / "asks").chmod(0o755)
    with pytest.raises(RemoteFailed, match="asks for credentials"):
        filled.push(url=url)
    assert set(locked.given) == {None}
    assert not (tmp_path / "asked").exists()
    (tmp_path / "global").write_text(own.replace("workspace", "pat").replace("wrong", "secret"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "global"))
    with pytest.raises(RemoteFailed, match="asks for credentials") as failure:
        filled.push(url=url)
    assert "Basic cGF0OnNlY3JldA==" in locked.given
    assert "secret" not in str(failure.value)


def test_a_credential_helper_gets_the_keys_of_the_environment_from_a_trusted_workspace_alone(
    filled, locked, tmp_path, monkeypatch, lexical
):
    url = f"http://127.0.0.1:{locked.server_port}/x.git"
    helper = '[credential]\nhelper = "!echo username=pat; echo password=$MY_TOKEN; #"\n'
    (tmp_path / "global").write_text(helper)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "global"))
    filled.close()
    environ = {name: value for name, value in os.environ.items() if name != "MY_TOKEN"}
    settings = msgspec.structs.replace(lexical, environ=environ, keys={"MY_TOKEN": "secret"})
    for trusted, given in ((True, "Basic cGF0OnNlY3JldA=="), (False, "Basic cGF0Og==")):
        with Workspace.open(filled.root, settings=settings) as ws:
            if not trusted:
                ws.engine.trust.revoke()
            locked.given.clear()
            with pytest.raises(RemoteFailed, match="asks for credentials"):
                ws.push(url=url)
        assert set(locked.given) - {None} == {given}


def test_nothing_is_left_in_the_directory_for_temporary_files(filled, bare, tmp_path, monkeypatch):
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    filled.push(url=str(bare))
    filled.pull()
    with pytest.raises(PushRefused):
        filled.push("other", url=str(filled.root))
    filled.fork(tmp_path / "fork").close()
    assert list(Path(tmp_path / "scratch").iterdir()) == []
