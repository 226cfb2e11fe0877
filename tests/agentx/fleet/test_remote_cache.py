"""Caches beside a remote: a worker without a copy uses them if they are signed for the history it has, else not."""

import itertools
import shutil
import subprocess

import msgspec
import numpy as np
import pygit2
import pytest

from agentx import Workspace
from agentx.fleet import carrying_out, remote_cache
from agentx.fleet.local_copy import Home, bring, remote_of
from agentx.fleet.submission import Submission, bring_up, submit
from agentx.fleet.telemetry import Parts
from agentx.search.kept_vectors import KeptVectors
from agentx.settings import Settings
from agentx.storage.git.exchange.remotes import PushRefused, Remote, RemoteFailed
from agentx.transfer.push_pull import push
from agentx.trust import records
from agentx.trust.store import Store


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Histories of a few events count as long."""
    monkeypatch.setattr(remote_cache, "LEAST_SEGMENTS", 0)
    monkeypatch.setattr(remote_cache, "SNAPSHOT_EVENTS", 1)


@pytest.fixture
def worker(tmp_path):
    """Settings of a worker, by name; each has a home and a key of its own."""

    def worker(name, *keys):
        return Settings(
            state_dir=tmp_path / name, cache_dir=tmp_path / "no-models", trusted_keys=keys, environ={"PATH": "/usr/bin:/bin"}
        )  # fmt: skip

    return worker


@pytest.fixture
def first(worker):
    return worker("first")


@pytest.fixture
def second(worker, first):
    """A worker that accepts the caches of the first."""
    return worker("second", f"cache:{records.own_public_key(Store(first.state_dir))}")


@pytest.fixture
def offered(tmp_path, first):
    """The URL of a remote with a history and the caches that the first worker made of it."""
    url = str(tmp_path / "remote.git")
    with Workspace.create(tmp_path / "copy", settings=first) as ws:
        ws.say("Never use the word foo.")
        ws.tools.write_file("a.txt", "one\n")
        ws.flush()
        ws.engine.log.save_snapshot(ws.state)
        KeptVectors(ws.root / ".agentx" / "vectors", "model", 2).add(
            {b"d" * 16: np.array([1, 0], np.float32)}
        )
        ws.say("And after the snapshot, this.")
        bring_up(ws, url)
    remote_cache.offer(ws.root, remote_of(ws.root, url, first), first)
    return url


@pytest.fixture
def cloned(tmp_path):
    """Clone a remote as a worker without a copy does; why its caches were not used, and the open workspace."""
    opened, numbers = [], itertools.count()

    def cloned(url, settings):
        copy = tmp_path / f"clone-{next(numbers)}"
        Remote.clone(url, copy)
        why = remote_cache.adopt(copy, remote_of(copy, url, settings), settings)
        opened.append(Workspace.open(copy, settings=settings))
        return why, opened[-1]

    yield cloned
    for ws in opened:
        ws.close()


def test_another_worker_opens_from_the_snapshot_and_has_the_vectors(offered, cloned, second, worker):
    why, ws = cloned(offered, second)
    assert why == ""
    assert 0 < ws.engine.log.snapshot_seq < ws.state.seq
    assert KeptVectors(ws.root / ".agentx" / "vectors", "model", 2).get(b"d" * 16).tolist() == [1, 0]
    _, plain = cloned(offered, worker("alone"))
    assert plain.engine.log.snapshot_seq == 0
    assert ws.state.digest == plain.state.digest
    assert ws.verify().sound


def altered(url, settings, change):
    """Replace what a remote has by an altered form of it, as whoever can push to it could."""
    remote = Remote(settings.state_dir.parent / "copy", "origin", url)
    remote.put_files(remote_cache.REF, change(remote.files(remote_cache.REF, 1 << 20)))


def about(kept, **changes):
    found = msgspec.json.decode(kept["about"])
    return kept | {"about": msgspec.json.encode(found | changes)}


def without(files, name):
    return {key: content for key, content in files.items() if key != name}


@pytest.mark.parametrize(
    "change",
    [
        lambda files: files | {"state": files["state"].replace(b"foo", b"bar") + b" "},
        lambda files: files | {"vectors": files["vectors"][:-1] + b"\1"},
        lambda files: files | {"record": b"{}"},
        lambda files: files | {"record": b"\xff" * 99},
        lambda files: files | {"about": b"[" * 99_999},
        lambda files: about(files, seq=10**30),
        lambda files: about(files, seq=1),
        lambda files: about(files, hash="0" * 64),
        lambda files: about(files, files={}),
        lambda files: about(files, files={"state": "0" * 64, "../../evil": "0" * 64}),
        lambda files: without(files, "state"),
        lambda files: without(files, "record"),
        lambda files: files | {"more": b"x" * (1 << 20)},
        lambda _: {},
    ],
)  # fmt: skip
def test_caches_that_were_altered_are_not_used_and_change_nothing(
    offered, cloned, first, second, monkeypatch, change
):
    monkeypatch.setattr(remote_cache, "MOST_BYTES", 0)  # and a megabyte for the rest
    altered(offered, first, change)
    why, ws = cloned(offered, second)
    assert why
    assert ws.engine.log.snapshot_seq == 0
    assert not (ws.root / ".agentx" / "vectors").exists()
    assert ws.verify().sound
    assert [item.text for item in ws.memory("constraint")]


def test_a_ref_that_leads_to_something_else_changes_nothing(offered, cloned, second):
    repo = pygit2.Repository(offered)
    repo.references.create(remote_cache.REF, repo.create_blob(b"not a commit"), force=True)
    why, ws = cloned(offered, second)
    assert why
    assert ws.engine.log.snapshot_seq == 0


def test_caches_of_a_worker_whose_key_is_not_accepted_are_not_used(offered, cloned, worker):
    why, ws = cloned(offered, worker("stranger"))
    assert "a key that is not accepted here" in why
    assert ws.engine.log.snapshot_seq == 0


def test_caches_of_another_workspace_are_not_used(offered, cloned, tmp_path, first, second):
    other = str(tmp_path / "other.git")
    with Workspace.create(tmp_path / "other", settings=first) as ws:
        bring_up(ws, other)
    files = Remote(tmp_path / "copy", "origin", offered).files(remote_cache.REF, 1 << 20)
    Remote(tmp_path / "other", "origin", other).put_files(remote_cache.REF, files)
    why, ws = cloned(other, second)
    assert why == "they are of another history"
    assert ws.engine.log.snapshot_seq == 0


def test_what_was_purged_does_not_come_back_with_caches_that_were_left(
    offered, cloned, tmp_path, first, second
):
    with Workspace.open(tmp_path / "copy", settings=first) as ws:
        said = next(one.seq for one in ws.events() if one.type == "UserMessageSent")
        ws.purge(said)
        subprocess.run(["git", "-C", offered, "update-ref", "-d", "refs/heads/main"], check=True)
        push(ws.engine, "again", offered)
    why, ws = cloned(offered, second)
    assert why.startswith("their record")
    assert ws.engine.log.snapshot_seq == 0
    assert not (ws.root / ".agentx" / "vectors").exists()


def test_a_worker_s_copy_from_before_a_purge_is_deleted_and_not_set_aside(offered, tmp_path, first):
    home, submission = (
        Home(tmp_path / "home"),
        Submission(id="s" * 8, tenant="t", workspace="task", message="x"),
    )
    copy = home.copies / "task"
    Remote.clone(offered, copy)
    with Workspace.open(tmp_path / "copy", settings=first) as ws:
        said = next(one.seq for one in ws.events() if one.type == "UserMessageSent")
        ws.purge(said)
        subprocess.run(["git", "-C", offered, "update-ref", "-d", "refs/heads/main"], check=True)
        push(ws.engine, "again", offered)
    ws, _, temperature = bring(home, copy, offered, submission, first, Parts(report=False))
    with ws:
        assert temperature == "cold"
        assert "foo" not in str([one.data for one in ws.events()])
    assert home.waiting() == []


def test_caches_are_replaced_not_added_to(offered, tmp_path, first):
    with Workspace.open(tmp_path / "copy", settings=first) as ws:
        ws.say("More.")
        ws.flush()
        ws.engine.log.save_snapshot(ws.state)
    copy, repo = tmp_path / "copy", pygit2.Repository(offered)
    assert remote_cache.is_due(copy, 100)
    before = repo.references[remote_cache.REF].target
    remote_cache.offer(copy, remote_of(copy, offered, first), first)
    after = repo.references[remote_cache.REF].peel(pygit2.Commit)
    assert after.id != before
    assert after.parents == []
    assert not remote_cache.is_due(copy, ws.engine.log.snapshot_seq)


def test_a_transfer_ends_where_it_is_too_large(tmp_path, offered):
    remote = Remote(tmp_path / "copy", "origin", offered)
    remote.put_files("refs/agentx/large", {"large": np.random.default_rng(1).bytes(200_000)})
    with pytest.raises(RemoteFailed):
        remote.files("refs/agentx/large", 100_000)
    assert len(remote.files("refs/agentx/large", 300_000)["large"]) == 200_000


def test_a_key_for_caches_signs_no_runs(offered, cloned, first, second):
    _, ws = cloned(offered, second)
    record = records.Signed(
        kind="run",
        workspace=next(iter(ws.events())).hash,
        what="run",
        issued="2026-01-01T00:00:00+00:00",
        until="2999-01-01T00:00:00+00:00",
    )
    line = records.issue(Store(first.state_dir), record).encode()
    given = {"kind": "run", "workspace": record.workspace, "what": "run"}
    assert records.find_in(line, second.trusted_keys, **given)[1]
    key = second.trusted_keys[0].removeprefix("cache:")
    assert records.find_in(line, [key], **given)[1] == ""


def test_a_worker_offers_the_caches_of_a_workspace_that_grew_and_another_starts_from_them(
    fleet, tmp_path, monkeypatch
):
    monkeypatch.setattr("agentx.recording.recorded_log.SNAPSHOT_EVENTS", 1)
    fleet.worker("none")
    queue = type("Seen", (), {"enqueue": lambda *_: None})()
    settings = {}
    for name in ("one", "two"):
        keys = (
            fleet.key,
            *(f"cache:{records.own_public_key(Store(one.state_dir))}" for one in settings.values()),
        )
        settings[name] = msgspec.structs.replace(
            fleet.settings, state_dir=tmp_path / name, trusted_keys=keys, model=f"script:{fleet.script}"
        )
    with Workspace.create(fleet.root / "mine" / "task", settings=fleet.settings) as ws:
        made = [submit(ws, fleet.place, queue, f"Do {what}.") for what in ("this", "that")]
    url = fleet.place.remote_of("task")
    adopted = {}
    for one, name in zip(made, settings, strict=True):
        home = Home(tmp_path / f"home-{name}")
        [result] = carrying_out.in_process(home.root, url, one, settings[name])
        assert (result.status, result.copy) == ("COMPLETED", "cold")
        adopted[name] = (home.copies / "task" / ".agentx" / "beside-remote").exists()
        assert list(carrying_out.offer_in_process(home.root, settings[name])) == ["task"]
        assert home.offers() == []
    assert adopted == {"one": False, "two": True}
    assert fleet.runs("task") == {one.id: (1, "COMPLETED") for one in made}


# --- what a worker's copy asks of a remote ------------------------------------------------------------------


def test_a_credential_helper_gets_the_worker_s_token_for_clones_and_fetches(offered, locked, tmp_path, first):
    (tmp_path / "global").write_text(
        '[credential]\nhelper = "!echo username=pat; echo password=$MY_TOKEN; #"\n'
    )
    settings = msgspec.structs.replace(
        first,
        keys={"MY_TOKEN": "secret"},
        environ={**first.environ, "GIT_CONFIG_GLOBAL": str(tmp_path / "global")},
    )
    home, submission = (
        Home(tmp_path / "home"),
        Submission(id="s" * 8, tenant="t", workspace="task", message="x"),
    )
    url = f"http://127.0.0.1:{locked.server_port}/task.git"
    for copy in (home.copies / "missing", home.copies / "task"):
        if copy.name == "task":
            Remote.clone(offered, copy)
        with pytest.raises(RemoteFailed, match="asks for credentials"):
            bring(home, copy, url, submission, settings, Parts(report=False))
        assert "Basic cGF0OnNlY3JldA==" in locked.given
        locked.given.clear()


def test_a_copy_that_names_another_remote_is_pushed_to_the_fleet_s(offered, tmp_path, first):
    home, submission = (
        Home(tmp_path / "home"),
        Submission(id="s" * 8, tenant="t", workspace="task", message="x"),
    )
    copy = home.copies / "task"
    Remote.clone(offered, copy)
    subprocess.run(["git", "-C", copy, "remote", "set-url", "origin", "/nowhere"], check=True)
    ws, fetched, temperature = bring(home, copy, offered, submission, first, Parts(report=False))
    with ws:
        ws.say("More.")
        done = push(ws.engine, remote=remote_of(copy, offered, first), fetched=fetched)
    assert temperature == "warm"
    assert str(pygit2.Repository(offered).references["refs/heads/main"].target) == done.commit != fetched


def test_a_push_onto_a_commit_that_the_remote_has_left_is_refused(offered, tmp_path, first):
    Remote.clone(offered, tmp_path / "other")
    with (
        Workspace.open(tmp_path / "copy", settings=first) as mine,
        Workspace.open(tmp_path / "other", settings=first) as other,
    ):
        fetched = mine.pull("fleet").commit
        other.say("First.")
        other.push("origin")
        mine.say("Second.")
        with pytest.raises(Exception, match=r"diverge|newer commits") as refused:
            push(mine.engine, "fleet", fetched=fetched)
        assert not isinstance(refused.value, PushRefused)  # it says how the two histories part
    shutil.rmtree(tmp_path / "other")
