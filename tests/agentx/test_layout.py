"""A clone, a pull or a copied directory that leads elsewhere: nothing outside the workspace is read or written."""

import contextlib
import hashlib
import os
import shutil
import subprocess

import pytest

from agentx import Workspace
from agentx.core.layout import LayoutRefused
from agentx.integrity.repair import repair
from agentx.integrity.verify import verify
from agentx.storage.errors import AgentXError
from agentx.storage.files.nofollow import LinkRefused, NotAFile
from agentx.transfer.push_pull import RemoteRefused

PAT = ("-c", "user.name=Pat", "-c", "user.email=pat@example.org")
ENGINE = ("-c", "user.name=agentx", "-c", "user.email=engine@engine.agentx.invalid")


def git(root, *arguments, who=PAT, given=None):
    done = subprocess.run(
        ["git", *who, *arguments], cwd=root, capture_output=True, text=True, check=True, input=given
    )
    return done.stdout.strip()


def fingerprint(folder):
    """Names, kinds and contents of everything below a directory but the workspace in it."""
    digest = hashlib.sha256()
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "task")
        for name in sorted([*folders, *names]):
            path = os.path.join(place, name)
            digest.update(path.encode())
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    digest.update(file.read())
    return digest.hexdigest()


@pytest.fixture
def project(tmp_path):
    """A person's project, with a secret, into which somebody else's workspace is cloned."""
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / ".env").write_text("API_KEY=abcdefgh12345678\n")
    (folder / "src/main.py").write_text("print('mine')\n")
    return folder


def link_in(root, path, target, *, who=PAT):
    """Commit a link in the place of a file or directory of a workspace, as any Git client can."""
    git(root, "rm", "-r", "-q", "--cached", "--ignore-unmatch", "--", path)
    oid = git(root, "hash-object", "-w", "--stdin", given=target)
    git(root, "update-index", "--add", "--cacheinfo", f"120000,{oid},{path}")
    message = git(root, "log", "-1", "--format=%B")
    commit = git(root, "commit-tree", git(root, "write-tree"), "-p", "HEAD", "-m", message, who=who)
    git(root, "update-ref", "refs/heads/main", commit)


PLACES = {
    "artifacts": "..",
    ".agentx": "..",
    ".AgentX": "..",
    "history": "../src",
    "history/blobs": "../../src",
    "history/000": "../../src",
    "history.jsonl": "../.env",
    "agentx.toml": "../.env",
}


@pytest.mark.parametrize("who", [PAT, ENGINE], ids=["a person's commit", "one that looks like the engine's"])
@pytest.mark.parametrize("path", PLACES)
def test_a_clone_whose_files_lead_outside_is_refused_and_touches_nothing(ws, project, lexical, path, who):
    ws.tools.write_file("a.txt", "one\n")
    ws.close()
    link_in(ws.root, path, PLACES[path], who=who)
    git(project, "clone", "-q", str(ws.root), "task")
    before = fingerprint(project)
    for use in (
        lambda: Workspace.open(project / "task", settings=lexical).status(),
        lambda: Workspace.open(project / "task", settings=lexical).tools.write_file(".env", "x"),
    ):
        with pytest.raises(AgentXError):
            use()
        assert fingerprint(project) == before
    for look in (verify, repair):
        with contextlib.suppress(AgentXError):
            look(project / "task")
        assert fingerprint(project) == before


@pytest.mark.parametrize("path", ["artifacts", ".agentx", "history/blobs/ab/cd", "README", "agentx.toml"])
def test_a_pull_that_brings_a_link_outside_the_artifacts_is_refused(ws, project, lexical, path):
    ws.tools.write_file("a.txt", "one\n")
    ws.flush()
    git(project, "clone", "-q", str(ws.root), "task")
    with Workspace.open(project / "task", settings=lexical) as clone:
        ws.say("More words.")
        ws.close()
        link_in(ws.root, path, "..", who=ENGINE)
        before, head = fingerprint(project), git(clone.root, "rev-parse", "main")
        with pytest.raises(RemoteRefused, match=r"cannot be used|does not match"):
            clone.pull()
        assert git(clone.root, "rev-parse", "main") == head
        assert fingerprint(project) == before
        assert clone.tools.read_file("a.txt").text == "one"


def test_a_commit_of_a_person_that_makes_a_link_of_the_artifacts_stops_the_engine_until_it_is_undone(
    project, lexical
):
    with Workspace.create(project / "task", settings=lexical) as ws:
        ws.tools.write_file("a.txt", "one\n")
    link_in(ws.root, "artifacts", "..")
    git(ws.root, "reset", "-q", "--hard")
    before = fingerprint(project)
    with pytest.raises(LinkRefused, match="artifacts is not used"):
        Workspace.open(ws.root, settings=lexical)
    (ws.root / "artifacts").unlink()
    with pytest.raises(LayoutRefused, match=r"'artifacts' in it is not a directory.*git revert"):
        Workspace.open(ws.root, settings=lexical)
    assert fingerprint(project) == before
    git(ws.root, "revert", "-n", "HEAD")
    git(ws.root, "commit", "-qm", "Undo")
    with Workspace.open(ws.root, settings=lexical) as again:
        assert again.tools.read_file("a.txt").text == "one"
        assert again.rebuild().state_digest == again.state.digest


IN_GIT = [
    "",
    "/objects",
    "/objects/pack",
    "/refs",
    "/refs/heads",
    "/refs/heads/main",
    "/logs",
    "/logs/refs/heads/main",
]
IN_GIT += ["/HEAD", "/config", "/index", "/info/attributes"]


@pytest.mark.parametrize("path", IN_GIT)
def test_a_copied_workspace_whose_repository_leads_outside_is_refused(project, tmp_path, lexical, path):
    with Workspace.create(project / "task", settings=lexical) as ws:
        ws.tools.write_file("a.txt", "one\n")
    place = ws.root / f".git{path}"
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    before = fingerprint(tmp_path / "elsewhere")
    with pytest.raises(LinkRefused):
        Workspace.open(ws.root, settings=lexical)
    with pytest.raises(LinkRefused):
        verify(ws.root)
    assert fingerprint(tmp_path / "elsewhere") == before


def test_a_gitfile_is_refused(project, lexical):
    with Workspace.create(project / "task", settings=lexical) as ws:
        ws.tools.write_file("a.txt", "one\n")
    (ws.root / ".git").rename(project / "repository")
    (ws.root / ".git").write_text(f"gitdir: {project}/repository\n")
    with pytest.raises(LayoutRefused, match="needs its own repository"):
        Workspace.open(ws.root, settings=lexical)


def test_a_repository_that_names_other_working_files_is_refused(project, lexical):
    with Workspace.create(project / "task", settings=lexical) as ws:
        ws.tools.write_file("a.txt", "one\n")
    git(ws.root, "config", "core.worktree", str(project))
    with pytest.raises(LayoutRefused, match=r"--unset core.worktree"):
        Workspace.open(ws.root, settings=lexical)
    git(ws.root, "config", "core.worktree", str(ws.root))
    Workspace.open(ws.root, settings=lexical).close()


def test_a_repository_whose_configuration_includes_another_file_is_refused_before_it_is_read(
    project, tmp_path, lexical
):
    with Workspace.create(project / "task", settings=lexical) as ws:
        ws.tools.write_file("a.txt", "one\n")
    os.mkfifo(tmp_path / "waits")
    with (ws.root / ".git/config").open("a") as config:
        config.write(f"\t[Include]\n\tpath = {tmp_path}/waits\n")
    with pytest.raises(LayoutRefused, match="includes another file"):
        Workspace.open(ws.root, settings=lexical)


def test_a_repository_that_is_a_part_of_another_is_refused(project, lexical):
    with Workspace.create(project / "task", settings=lexical) as ws:
        ws.tools.write_file("a.txt", "one\n")
    (ws.root / ".git/commondir").write_text(f"{project}/.git\n")
    with pytest.raises(LayoutRefused, match="commondir"):
        Workspace.open(ws.root, settings=lexical)


def test_objects_of_another_repository_are_not_read(project, tmp_path, lexical):
    with Workspace.create(project / "task", settings=lexical) as ws:
        ws.tools.write_file("a.txt", "one\n")
    git(tmp_path, "init", "-q", "private")
    alternates = ws.root / ".git/objects/info/alternates"
    alternates.parent.mkdir(exist_ok=True)
    for line in (f"{tmp_path}/private/.git/objects", "../../../../private/.git/objects"):
        alternates.write_text(f"# a comment\n{line}\n")
        with pytest.raises(LayoutRefused, match=r"outside the workspace.*repack -a -d"):
            Workspace.open(ws.root, settings=lexical)
    alternates.write_text("# nothing\n")
    Workspace.open(ws.root, settings=lexical).close()


@pytest.mark.parametrize(
    "path", ["history.jsonl", "agentx.toml", ".git/HEAD", ".git/config", ".git/index", ".agentx/keys.sqlite3"]
)
def test_a_fifo_in_the_place_of_a_file_is_refused_and_not_waited_for(project, lexical, path):
    with Workspace.create(project / "task", settings=lexical) as ws:
        ws.tools.write_file("a.txt", "one\n")
    (ws.root / path).unlink(missing_ok=True)
    os.mkfifo(ws.root / path)
    with pytest.raises(NotAFile):
        Workspace.open(ws.root, settings=lexical)


def test_a_fifo_among_the_artifacts_is_passed_over_and_never_waited_for(ws):
    ws.tools.write_file("a.txt", "one\n")
    os.mkfifo(ws.artifacts / "pipe")
    assert ws.tools.call("read_file", {"path": "pipe"}).status == "FAILED"
    assert ws.tools.call("write_file", {"path": "pipe", "content": "x"}).status == "FAILED"
    assert any("neither a" in note for note in ws.status().notes)
    assert ws.tools.call("delete_file", {"path": "pipe"}).status == "FAILED"
    assert os.path.exists(ws.artifacts / "pipe")


def test_artifacts_that_are_swapped_for_a_link_while_a_workspace_is_open_lead_nowhere(project, lexical):
    with Workspace.create(project / "task", settings=lexical) as ws:
        ws.tools.write_file("a.txt", "one\n")
        ws.flush()
        ws.artifacts.rename(project / "moved")
        ws.artifacts.symlink_to("..")
        before = fingerprint(project)
        for name, arguments in (
            ("write_file", {"path": ".env", "content": "x"}),
            ("read_file", {"path": ".env"}),
            ("delete_file", {"path": "src/main.py"}),
        ):
            assert ws.tools.call(name, arguments).status == "FAILED"
        with pytest.raises(LinkRefused):
            ws.status()
        assert ws.tools.call("list_directory", {}).status == "FAILED"
        assert fingerprint(project) == before
        ws.artifacts.unlink()
        (project / "moved").rename(ws.artifacts)
        assert ws.tools.read_file("a.txt").text == "one"


def test_a_link_below_the_artifacts_stays_an_artifact_and_is_followed_only_inside(ws, tmp_path):
    (tmp_path / "secret").write_text("mine\n")
    ws.tools.write_file("a.txt", "one\n")
    (ws.artifacts / "in").symlink_to("a.txt")
    (ws.artifacts / "out").symlink_to(tmp_path / "secret")
    (ws.artifacts / "folder").symlink_to(tmp_path)
    ws.status()
    assert ws.tools.read_file("in").text == "one"
    for path in ("out", "folder/secret"):
        assert ws.tools.call("read_file", {"path": path}).status == "FAILED"
    assert ws.tools.call("write_file", {"path": "folder/new", "content": "x"}).status == "FAILED"
    assert sorted(p.name for p in tmp_path.iterdir() if p.name == "new") == []


def test_a_workspace_that_is_reached_through_a_link_works(ws, tmp_path, lexical):
    ws.tools.write_file("a.txt", "one\n")
    ws.close()
    (tmp_path / "door").symlink_to(ws.root)
    with Workspace.open(tmp_path / "door", settings=lexical) as again:
        assert again.root == ws.root
        assert again.tools.read_file("a.txt").text == "one"
    (tmp_path / "above").symlink_to(tmp_path)
    with Workspace.create(tmp_path / "above/new", settings=lexical) as new:
        assert new.root == tmp_path / "new"


def test_copied_caches_with_links_in_them_lead_nowhere(ws, project, tmp_path, lexical):
    ws.tools.write_file("a.txt", "one\n")
    ws.close()
    for folder in ("snapshots", "index", "waiting", "read", "meanings"):
        shutil.rmtree(ws.root / ".agentx", ignore_errors=True)
        (ws.root / ".agentx").mkdir()
        (ws.root / ".agentx" / folder).symlink_to(project)
        before = fingerprint(project)
        with pytest.raises(LinkRefused):
            Workspace.open(ws.root, settings=lexical)
        assert fingerprint(project) == before


def test_a_link_deep_in_the_index_is_refused_before_lancedb_follows_it(ws, project, lexical):
    ws.tools.write_file("a.txt", "one\n")
    ws.search("one")
    ws.close()
    place = ws.root / ".agentx/index/lance"
    place.mkdir(parents=True, exist_ok=True)
    (place / "rows.lance").symlink_to(project)
    before = fingerprint(project)
    with Workspace.open(ws.root, settings=lexical) as again, contextlib.suppress(AgentXError, OSError):
        again.search("one")
        again.engine.indexer.close()
    assert fingerprint(project) == before


def test_a_check_copies_nothing_from_behind_a_link_in_the_place_of_the_artifacts(project, lexical):
    with Workspace.create(project / "task", settings=lexical) as ws:
        ws.configure("checks.tests.command", "cat .env; ls -a")
        ws.tools.write_file("a.txt", "one\n")
        ws.flush()
        ws.artifacts.rename(project / "moved")
        ws.artifacts.symlink_to("..")
        done = ws.tools.call("run_tests", {})
        assert done.status == "FAILED"
        assert "abcdefgh12345678" not in done.output
        assert "API_KEY" not in done.output
        ws.artifacts.unlink()
        (project / "moved").rename(ws.artifacts)
