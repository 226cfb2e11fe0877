"""Push and pull: a history only ever moves forward, on either side, and what does not follow from it is refused."""

import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from agentx import Workspace
from agentx.storage.git.exchange.remotes import NoRemote, PushRefused, RemoteFailed
from agentx.storage.git.objects import ObjectDamaged
from agentx.transfer.push_pull import HistoriesDiverged, RemoteAhead, RemoteRefused

PAT = ("-c", "user.name=Pat", "-c", "user.email=pat@example.org")


def git(root, *arguments):
    done = subprocess.run(["git", *PAT, *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def bare(tmp_path):
    """An empty bare repository."""
    git(tmp_path, "init", "-q", "--bare", "-b", "main", "remote.git")
    return tmp_path / "remote.git"


@pytest.fixture
def there(ws, bare, tmp_path, lexical):
    """A workspace, pushed, and a clone of the remote: both open."""
    ws.tools.write_file("a.txt", "one\n")
    ws.push(url=str(bare))
    git(tmp_path, "clone", "-q", str(bare), "there")
    with Workspace.open(tmp_path / "there", settings=lexical) as there:
        yield there


def is_sound(ws):
    assert ws.status().outside == ws.status().damage == ()
    assert ws.rebuild().state_digest == ws.state.digest
    ws.flush()
    assert git(ws.root, "fsck", "--strict", "--no-progress", "--no-dangling") == ""
    assert git(ws.root, "status", "--porcelain") == ""


def files(ws):
    return {
        path.relative_to(ws.artifacts).as_posix(): path.read_bytes()
        for path in ws.artifacts.rglob("*")
        if path.is_file()
    }


def test_what_is_pushed_comes_back_with_a_clone(ws, bare, tmp_path, lexical):
    ws.say("From now on, never create a requirements.txt file.")
    ws.tools.write_file("a.txt", "one\n")
    (ws.artifacts / "mine.txt").write_text("not on record yet\n")
    done = ws.push(url=str(bare))
    assert (done.remote, done.from_seq, done.to_seq, done.events) == ("origin", 0, ws.state.seq, ws.state.seq)
    assert git(bare, "rev-parse", "main").strip() == done.commit == git(ws.root, "rev-parse", "main").strip()
    git(tmp_path, "clone", "-q", str(bare), "clone")
    with Workspace.open(tmp_path / "clone", settings=lexical) as clone:
        assert clone.state.digest == ws.state.digest
        assert files(clone) == files(ws)
    assert ws.push().commits == ws.push().events == 0


def test_work_goes_back_and_forth(ws, there):
    there.say("From now on, never create a setup.py file.")
    there.tools.write_file("b/c.txt", "two\n")
    there.tools.delete_file("a.txt")
    (there.artifacts / "run.sh").write_bytes(b"#!/bin/sh\n")
    (there.artifacts / "run.sh").chmod(0o755)
    (there.artifacts / "link").symlink_to("run.sh")
    for number in range(16):
        there.say(f"{number} " + "word " * 1_100)
    there.push()
    known, heard = ws.state.seq, []
    ws.on("UserMessageSent", heard.append)
    done = ws.pull()
    assert (done.from_seq, done.to_seq) == (known, there.state.seq)
    assert ws.state.digest == there.state.digest
    assert files(ws) == files(there)
    assert os.access(ws.artifacts / "run.sh", os.X_OK)
    assert (ws.artifacts / "link").is_symlink()
    assert (ws.root / "history/000/001.jsonl").exists()
    assert len(heard) == 17
    is_sound(ws)
    ws.tools.write_file("a.txt/d.txt", "a directory now\n")
    ws.push()
    there.pull()
    assert files(there) == files(ws)
    is_sound(there)
    assert ws.pull().events == there.pull().events == 0


def test_other_processes_see_what_was_pulled(ws, there, elsewhere):
    there.tools.write_file("b.txt", "two\n")
    there.push()
    assert elsewhere(ws, "ws.pull(); print(ws.state.digest)") == there.state.digest
    assert ws.state.digest == there.state.digest
    ws.tools.write_file("b.txt", "three\n")
    assert ws.undo().data.changes[0].path == "b.txt"
    is_sound(ws)


def diverge(ws, there):
    common = ws.state.seq
    there.tools.write_file("b.txt", "theirs\n")
    there.push()
    ws.tools.write_file("b.txt", "ours\n")
    return common


def test_two_that_both_went_on_are_refused_in_each_direction_and_lose_nothing(ws, there, bare):
    common = diverge(ws, there)
    for exchange in (ws.push, ws.pull):
        with pytest.raises(HistoriesDiverged, match=f"diverge after event {common}") as failure:
            exchange()
        assert failure.value.common == common
        assert failure.value.ours == (ws.state.seq, ws.state.hash)
        assert failure.value.theirs == (there.state.seq, there.state.hash)
        assert "agentx fork" in str(failure.value)
    assert files(ws)["b.txt"] == b"ours\n"
    assert git(bare, "rev-parse", "main") == git(there.root, "rev-parse", "main")
    is_sound(ws)


def test_the_way_out_of_two_that_went_apart_keeps_both(ws, there, bare, tmp_path, lexical):
    diverge(ws, there)
    git(tmp_path, "init", "-q", "--bare", "-b", "main", "mine.git")
    with ws.fork(tmp_path / "mine") as mine:
        mine.push(url=str(tmp_path / "mine.git"))
        with pytest.raises(HistoriesDiverged):
            mine.push("theirs", url=str(bare))
    git(tmp_path, "clone", "-q", str(bare), "theirs")
    with Workspace.open(tmp_path / "theirs", settings=lexical) as theirs:
        assert theirs.tools.read_file("b.txt").text == "theirs"
    git(tmp_path, "clone", "-q", "mine.git", "again")
    with Workspace.open(tmp_path / "again", settings=lexical) as again:
        assert again.tools.read_file("b.txt").text == "ours"


def test_an_edit_that_was_not_on_record_is_recorded_and_keeps_a_pull_out(ws, there):
    there.tools.write_file("a.txt", "theirs\n")
    there.push()
    (ws.artifacts / "a.txt").write_text("mine\n")
    with pytest.raises(HistoriesDiverged):
        ws.pull()
    assert (ws.artifacts / "a.txt").read_text() == "mine\n"
    is_sound(ws)


def test_a_remote_that_is_ahead_is_pulled_first(ws, there):
    there.tools.write_file("b.txt", "two\n")
    there.push()
    with pytest.raises(RemoteAhead, match="agentx pull origin"):
        ws.push()
    ws.pull()
    ws.tools.write_file("b.txt", "three\n")
    assert ws.push().events == 1


def test_a_fork_never_passes_for_what_it_was_made_from(ws, there, bare, tmp_path):
    with ws.fork(tmp_path / "fork") as fork:
        fork.tools.write_file("a.txt", "fork\n")
        with pytest.raises(HistoriesDiverged):
            fork.push(url=str(bare))
        git(fork.root, "push", "-q", str(bare), "main")
    with pytest.raises(HistoriesDiverged):
        ws.pull()
    with pytest.raises(HistoriesDiverged):
        there.pull()
    assert files(ws) == {"a.txt": b"one\n"}


def test_another_workspace_and_another_project_are_refused(ws, bare, tmp_path, lexical):
    ws.push(url=str(bare))
    with Workspace.create(tmp_path / "other", settings=lexical) as other:
        for exchange in (other.push, other.pull):
            with pytest.raises(HistoriesDiverged, match="of another workspace"):
                exchange("origin", url=str(bare))
    git(tmp_path, "init", "-q", "-b", "main", "project")
    git(tmp_path / "project", "commit", "-q", "--allow-empty", "-m", "Begin")
    for exchange in (ws.push, ws.pull):
        with pytest.raises(RemoteRefused, match="does not contain a complete history"):
            exchange("project", url=str(tmp_path / "project"))


def test_a_commit_of_a_person_comes_over_and_is_recorded(ws, there, bare):
    (there.artifacts / "person.txt").write_text("by hand\n")
    git(there.root, "add", "artifacts")
    git(there.root, "commit", "-q", "-m", "Add by hand")
    git(there.root, "push", "-q", "origin", "main")
    ws.pull()
    assert (ws.artifacts / "person.txt").read_text() == "by hand\n"
    assert list(ws.events())[-1].data.noticed == "git"
    is_sound(ws)


def forged(there, change):
    """A commit that says that it is the engine's, with a tree that was tampered with."""
    there.tools.write_file("b.txt", "two\n")
    there.flush()
    root, seq = there.root, there.state.seq
    there.close()
    change(root)
    git(root, "add", "-A", ".")
    engine = ("-c", "user.email=main@agent.agentx.invalid")
    message = f"Edit b.txt\n\nAgentX-Event: {seq}\nAgentX-Actor: agent:main"
    git(root, *engine, "commit", "-q", "--amend", "-m", message, "--reset-author")
    git(root, "push", "-q", "origin", "main")


def _file(root):
    (root / "artifacts/b.txt").write_text("forged\n")


def _more(root):
    (root / "artifacts/c.txt").write_text("forged\n")


def _line(root):
    log = root / "history.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"tool":"write_file"', b'"tool":"other_file"'))


def _last_line(root):
    log = root / "history.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*lines[:-1], lines[-1].replace(b"b.txt", b"x.txt")]))


def _shorter(root):
    log = root / "history.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))


def _outside(root):
    toml = root / "agentx.toml"
    toml.write_text(toml.read_text().replace('"artifacts"', '".."'))


def _no_toml(root):
    (root / "agentx.toml").write_text("[workspace\n")


def _name(root):
    (root / "artifacts/aux.txt").write_text("a device on Windows\n")


@pytest.mark.parametrize("change", [_file, _more, _line, _last_line, _shorter, _outside, _no_toml, _name])
def test_a_remote_that_was_tampered_with_is_refused(ws, there, change):
    digest, kept = ws.state.digest, files(ws)
    forged(there, change)
    with pytest.raises(RemoteRefused, match="nothing was pulled"):
        ws.pull()
    assert (ws.state.digest, files(ws)) == (digest, kept)
    is_sound(ws)
    ws.tools.write_file("a.txt", "goes on\n")


def test_a_remote_that_lacks_objects_is_refused(ws, there, bare):
    there.tools.write_file("b.txt", "gone\n")
    done = there.push()
    oid = git(there.root, "rev-parse", f"{done.commit}:artifacts/b.txt").strip()
    for pack in list((bare / "objects/pack").glob("*.pack")):
        content = pack.read_bytes()
        pack.unlink()
        subprocess.run(["git", "unpack-objects", "-q"], cwd=bare, input=content, check=True)
    (bare / "objects" / oid[:2] / oid[2:]).unlink()
    with pytest.raises(RemoteFailed, match="is damaged"):
        ws.pull()
    is_sound(ws)


def test_remotes_are_named_once_and_where_they_are_is_said(ws, bare, tmp_path):
    with pytest.raises(NoRemote, match="agentx push origin --url"):
        ws.push()
    with pytest.raises(RemoteFailed, match="could not be reached"):
        ws.push(url=str(tmp_path / "nowhere"))
    with pytest.raises(RemoteFailed, match="has no branch main yet"):
        ws.pull(url=str(bare))
    ws.push()
    with pytest.raises(NoRemote, match="Choose another name"):
        ws.push(url=str(tmp_path / "elsewhere"))
    with pytest.raises(NoRemote, match="cannot be the name"):
        ws.push("-x", url=str(bare))
    with pytest.raises(RemoteFailed) as failure:
        ws.push("web", url="http://me:secret@127.0.0.1:1/x.git")
    assert "secret" not in str(failure.value)
    assert git(ws.root, "remote").split() == ["origin"]


def test_a_repository_with_working_files_is_not_pushed_to_but_pulled_from(ws, there, tmp_path):
    there.tools.write_file("b.txt", "two\n")
    there.flush()
    assert ws.pull("there", url=str(there.root)).events == 1
    ws.tools.write_file("b.txt", "three\n")
    with pytest.raises(PushRefused, match="has working files"):
        ws.push("there")


def test_a_bare_repository_with_another_head_can_be_cloned_after_a_push(ws, tmp_path, lexical):
    git(tmp_path, "init", "-q", "--bare", "-b", "trunk", "trunk.git")
    ws.push(url=str(tmp_path / "trunk.git"))
    git(tmp_path, "clone", "-q", "trunk.git", "clone")
    with Workspace.open(tmp_path / "clone", settings=lexical) as clone:
        assert clone.state.digest == ws.state.digest


KILLED = """
import os, sys
from agentx import Workspace
step, seen = int(sys.argv[2]), 0
def counted(event, arguments):
    global seen
    if event in ("os.rename", "os.remove", "os.link", "os.mkdir", "open") and os.path.exists(sys.argv[1] + "/.git/agentx-pull"):
        seen += 1
        if seen == step:
            os._exit(9)
ws = Workspace.open(sys.argv[1])
sys.addaudithook(counted)
ws.pull()
ws.close()
"""


@pytest.mark.parametrize("step", [1, 3, 6, 9, 12, 15, 18, 21, 24, 26, 28, 29])
def test_a_pull_that_was_cut_off_is_finished_by_whoever_comes_next(
    ws, there, step, tmp_path, lexical, in_a_process
):
    there.tools.write_file("b.txt", "two\n")
    there.tools.write_file("a.txt", "changed\n")
    for number in range(16):
        there.say(f"{number} " + "xy"[number % 2] * 6_600)
    there.say("Always write British English.")  # concluded, so opening has nothing to read again
    there.tools.delete_file("a.txt")
    there.push()
    environ = {**os.environ, "AGENTX_CACHE_DIR": str(tmp_path / "no-models")}
    done = in_a_process(KILLED, ws.root, step, environ=environ)
    assert done.returncode == 9, done.stderr
    if step % 2:  # a process that had it open all the time, or one that opens it
        assert ws.state.digest == there.state.digest
    with Workspace.open(ws.root, settings=lexical) as again:
        assert again.state.digest == there.state.digest
        is_sound(again)
        assert files(again) == files(there)
        assert git(again.root, "rev-parse", "main") == git(there.root, "rev-parse", "main")


def test_two_that_push_at_once_do_not_overwrite_each_other(ws, bare, tmp_path, elsewhere, lexical):
    ws.push(url=str(bare))
    roots = []
    for number in range(3):
        git(tmp_path, "clone", "-q", str(bare), f"clone-{number}")
        with Workspace.open(tmp_path / f"clone-{number}", settings=lexical) as clone:
            clone.tools.write_file(f"{number}.txt", "x\n")
        roots.append(tmp_path / f"clone-{number}")
    opened = [Workspace.open(root, settings=lexical) for root in roots]
    outcomes = []

    def push(one):
        try:
            one.push()
            outcomes.append("pushed")
        except (HistoriesDiverged, PushRefused):
            outcomes.append("refused")

    threads = [threading.Thread(target=push, args=(one,)) for one in opened]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in opened:
        one.close()
    assert sorted(outcomes) == ["pushed", "refused", "refused"]
    assert git(bare, "fsck", "--strict", "--no-progress", "--no-dangling") == ""


class _Backend(BaseHTTPRequestHandler):
    """Git's own smart HTTP server, as a web server runs it."""

    def do_GET(self):
        self._serve()

    def do_POST(self):
        self._serve()

    def _serve(self):
        path, _, query = self.path.partition("?")
        length = int(self.headers.get("Content-Length") or 0)
        environ = {
            **os.environ,
            "GIT_PROJECT_ROOT": str(self.server.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REMOTE_USER": "pat",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(length),
        }
        if self.headers.get("Content-Encoding"):
            environ["HTTP_CONTENT_ENCODING"] = self.headers["Content-Encoding"]
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            environ["CONTENT_LENGTH"] = str(len(body))
        else:
            body = self.rfile.read(length)
        answer = subprocess.run(
            ["git", "http-backend"], input=body, env=environ, capture_output=True, check=True
        ).stdout
        head, _, content = answer.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().splitlines())
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def served(bare):
    """The bare repository behind HTTP; its URL."""
    git(bare, "config", "http.receivepack", "true")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Backend)
    server.folder = bare.parent
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/{bare.name}"
    server.shutdown()
    server.server_close()


def test_a_server_is_pushed_to_and_pulled_from(ws, served, bare, tmp_path, lexical):
    ws.tools.write_file("a.txt", "one\n")
    told = []
    ws.push(url=served, progress=lambda *done: told.append(done[0]))
    git(tmp_path, "clone", "-q", str(bare), "there")
    with Workspace.open(tmp_path / "there", settings=lexical) as there:
        there.tools.write_file("b.txt", "two\n")
        there.push()
        assert ws.pull(progress=lambda *done: told.append(done[0])).events == 1
        assert ws.state.digest == there.state.digest
        assert {"Writing objects", "Receiving objects"} <= set(told)
        diverge(ws, there)
        for exchange in (ws.push, ws.pull):
            with pytest.raises(HistoriesDiverged):
                exchange()
    is_sound(ws)


def test_a_server_that_refuses_says_why(ws, served, bare):
    hook = bare / "hooks/update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(PushRefused, match="hook declined"):
        ws.push(url=served)
    git(bare, "config", "http.receivepack", "false")
    with pytest.raises(RemoteFailed):
        ws.push(url=served)


@pytest.mark.parametrize("where", ["directory", "server"])
def test_what_is_damaged_here_is_told_and_not_pushed(ws, served, bare, where):
    """libgit2 would read it for ever."""
    ws.engine.write_path.defer(None)  # so that the object is a file
    ws.tools.write_file("a.txt", "one\n")
    ws.tools.write_file("a.txt", "two\n")
    ws.flush()
    oid = git(ws.root, "rev-parse", "main~1:artifacts/a.txt").strip()
    path = ws.root / ".git/objects" / oid[:2] / oid[2:]
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(ObjectDamaged, match=oid):
        ws.push(url=str(bare) if where == "directory" else served)
    assert git(bare, "for-each-ref") == ""


def test_a_push_to_a_directory_copies_what_it_lacks_and_counts_it(ws, bare):
    ws.tools.write_file("a.txt", "one\n")
    ws.push(url=str(bare))
    before, told = git(ws.root, "rev-parse", "main").strip(), []
    ws.tools.write_file("a.txt", "two\n")
    done = ws.push(progress=lambda *done: told.append(done))
    fresh = git(ws.root, "rev-list", "--objects", "--no-object-names", done.commit, f"^{before}").split()
    assert ("Writing objects", len(fresh), len(fresh)) in told
    assert git(bare, "fsck", "--strict", "--no-progress", "--no-dangling") == ""
