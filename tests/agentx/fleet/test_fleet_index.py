"""What workers publish is searched from any machine; it is what the remote has, and nobody late replaces it."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing

import pytest

from agentx import Workspace
from agentx.fleet import place as places
from agentx.fleet import published_index
from agentx.fleet.local_copy import Home
from agentx.fleet.published_index import Publisher, opened, publish, search, stand, take_from
from agentx.fleet.submission import bring_up
from agentx.settings import read_settings
from agentx.storage.errors import UsageError
from agentx.storage.files.durable import TEMPORARY_PREFIX
from agentx.storage.index.lance_table import PublishedByAnother
from agentx.storage.index.port import Filter
from agentx.storage.index.published import PublishFailed
from tests.agentx.fleet.fleets import PATIENCE_S, wait_for
from tests.agentx.test_search import Counting

slow = pytest.mark.skipif(
    not os.environ.get("FLEET_POSTGRES"), reason="needs an S3 server: make fleet-test runs it"
)
BUCKET = "fleet-index"


@pytest.fixture
def shared(fleet, tmp_path):
    """A fleet whose indexes are published in a directory."""
    fleet.index = str(tmp_path / "published")
    fleet.place = fleet.join(fleet.settings)
    return fleet


@pytest.fixture
def made(shared, tmp_path):
    """Make a workspace of the fleet, which is pushed; several at once, closed at the end."""
    kept = []

    def make(name, *texts):
        ws = Workspace.create(tmp_path / "here" / name, settings=shared.settings)
        kept.append(ws)
        return pushed(shared, ws, name, *texts)

    yield make
    for ws in kept:
        ws.close()


def pushed(fleet, ws, name, *texts):
    for text in texts:
        ws.tools.write_file(f"{len(list(ws.events()))}.md", f"{text}\n")
    bring_up(ws, str(fleet.root / "remotes" / f"{name}.git"))
    return ws


def found(fleet, query, *workspaces):
    indexes = opened(fleet.place, fleet.settings)
    return search(indexes, fleet.settings, query, 5, Filter(), workspaces)


def names(answer):
    return [one.workspace for one in answer.hits]


def test_a_worker_publishes_what_it_pushed_and_a_machine_without_a_clone_finds_it(shared):
    worker = shared.worker("a")
    ids = [*shared.submit("one", "Sum the orders of the walrus."), *shared.submit("two", "Feed the otter.")]
    worker.start("--once")
    assert worker.process.wait(PATIENCE_S) == 0
    shutil.rmtree(shared.root / "mine")
    answer = found(shared, "walrus orders")
    assert answer.hits[0].workspace == "one"
    assert "walrus" in answer.hits[0].hit.text
    assert answer.failed == {}
    for name, submitted in zip(("one", "two"), ids, strict=True):
        assert shared.runs(name) == {submitted: (1, "COMPLETED")}
        clone = shared.root / "clone" / name
        subprocess.run(
            [shared.git, "clone", "-q", str(shared.root / "remotes" / f"{name}.git"), str(clone)], check=True
        )
        with Workspace.open(clone, settings=shared.settings) as ws:
            assert [one.seq for one in answer.searched if one.workspace == name] == [ws.state.seq]
    assert not list((worker.home / "unpublished").iterdir())


def test_a_place_that_cannot_be_reached_fails_no_run_and_is_caught_up_by_the_next_worker(shared, tmp_path):
    (tmp_path / "published").write_text("a file, where a directory should be")
    shared.submit("one", "Sum the orders of the walrus.")
    worker = shared.worker("a").start("--once")
    assert worker.process.wait(PATIENCE_S) == 0
    assert shared.status().statuses == {"COMPLETED": 1}
    assert "will be tried again" in worker.said.read_text()
    (tmp_path / "published").unlink()
    worker.start("--once")
    assert worker.process.wait(PATIENCE_S) == 0
    assert names(found(shared, "walrus orders"))[:1] == ["one"]


def test_a_publishing_process_that_dies_is_told_and_not_started_again_at_once(shared, tmp_path, monkeypatch):
    told, home = [], Home(tmp_path / "home")
    monkeypatch.setattr(published_index, "in_process", dies)
    publisher = Publisher(shared.place, home, shared.settings, told.append)
    publisher.note("one")
    (tmp_path / "home" / "unpublished" / f"{TEMPORARY_PREFIX}x").touch()  # a note that is being written
    assert publisher._round()
    assert publisher._round()
    publisher._pool.close()
    assert len(told) == 1
    assert "index of one was not published" in told[0]
    assert "without a result" in told[0]


def test_a_copy_in_use_is_published_later_and_no_fault(shared, tmp_path):
    told, home = [], Home(tmp_path / "home")
    publisher = Publisher(shared.place, home, shared.settings, told.append)
    publisher.note("one")
    with home.alone("one"):
        assert publisher._round()
    assert publisher._round()
    publisher._stop.set()  # at the end nothing waits
    assert not publisher._round()
    publisher._pool.close()
    assert told == []


def dies(*_):
    os.kill(os.getpid(), signal.SIGKILL)
    yield


def test_only_what_the_remote_has_is_published(shared, made):
    ws = made("one", "The walrus sleeps.")
    ws.tools.write_file("later.md", "The otter swims.\n")
    at = publish(opened(shared.place, shared.settings), "one", ws.engine)
    assert at.seq < ws.state.seq
    assert "otter" not in str(found(shared, "otter"))
    pushed(shared, ws, "one")
    assert publish(opened(shared.place, shared.settings), "one", ws.engine).seq > at.seq
    assert "otter" in str(found(shared, "otter"))


def test_a_copy_that_is_late_replaces_nothing_and_another_history_starts_again(shared, made, tmp_path):
    ws = made("one", "The walrus sleeps.")
    late = shutil.copytree(ws.root, tmp_path / "late", symlinks=True)
    indexes = opened(shared.place, shared.settings)
    pushed(shared, ws, "one", "The otter swims.")
    at = publish(indexes, "one", ws.engine)
    with Workspace.open(late, settings=shared.settings) as old:
        assert publish(indexes, "one", old.engine).seq == at.seq
    assert "otter" in str(found(shared, "otter"))
    with Workspace.create(tmp_path / "another", settings=shared.settings) as other:
        pushed(shared, other, "other", *(f"The quagga walks {number}." for number in range(6)))
        publish(indexes, "one", other.engine)
    assert "quagga" in str(found(shared, "quagga"))
    assert "otter" not in str(found(shared, "otter"))


def test_a_purge_leaves_nothing_of_the_text_in_the_published_index(shared, made, tmp_path):
    ws = made("one", "The walrus sleeps.")
    said = ws.say("My address is zanzibar 7.").seq
    pushed(shared, ws, "one")
    indexes = opened(shared.place, shared.settings)
    publish(indexes, "one", ws.engine)
    assert "zanzibar" in str(found(shared, "zanzibar"))
    ws.purge(said)
    publish(opened(shared.place, shared.settings), "one", ws.engine)
    kept = b"".join(one.read_bytes() for one in (tmp_path / "published").rglob("*") if one.is_file())
    assert b"zanzibar" not in kept
    shutil.rmtree(
        shared.root / "remotes" / "one.git"
    )  # the remote gets the rewritten history, as docs/purge.md says
    pushed(shared, ws, "one")
    publish(opened(shared.place, shared.settings), "one", ws.engine)
    assert "zanzibar" not in str(found(shared, "zanzibar"))
    assert "walrus" in str(found(shared, "walrus"))


def test_vectors_travel_and_a_fresh_clone_embeds_nothing(shared, made, tmp_path):
    ws = made("one", *(f"The walrus number {number} sleeps." for number in range(5)))
    ws.engine.indexer._embedder = Counting()
    publish(opened(shared.place, shared.settings), "one", ws.engine)
    clone = tmp_path / "clone"
    subprocess.run(
        [shared.git, "clone", "-q", str(shared.root / "remotes" / "one.git"), str(clone)], check=True
    )
    with Workspace.open(clone, settings=shared.settings) as fresh:
        fresh.engine.indexer._embedder = embedder = Counting()
        assert take_from(opened(shared.place, shared.settings), "one", fresh.engine) == 5
        assert fresh.settle()
        assert fresh.search("walrus")[0].vector_rank
        assert embedder.given == []


def test_hits_of_all_workspaces_are_ranked_together_and_one_that_cannot_be_read_hides_no_other(
    shared, made, tmp_path
):
    """A word that one workspace is full of says nothing there: the rare word of the query decides."""
    full = [f"The orders of day {number}, and more orders." for number in range(8)]
    indexes = opened(shared.place, shared.settings)
    for name, texts in (("full", full), ("right", ["Orders wait for the walrus."]), ("broken", ["Walrus."])):
        publish(indexes, name, made(name, *texts).engine)
    assert names(found(shared, "orders walrus", "full", "right"))[0] == "right"
    for path in (tmp_path / "published" / shared.place.tenant / "broken.lance" / "data").iterdir():
        path.write_bytes(b"lies")
    answer = found(shared, "orders walrus")
    assert names(answer)[0] == "right"
    assert set(answer.failed) == {"broken"}
    assert [one.workspace for one in answer.searched] == ["full", "right"]
    assert found(shared, "walrus", "nowhere").failed == {"nowhere": "nothing is published of it"}
    assert set(stand(opened(shared.place, shared.settings))[1]) == {"broken"}


@pytest.mark.parametrize(
    "url",
    [
        "s3://key:secret@bucket/prefix",
        "s3://key@bucket",
        "https://host/secret",
        "s3://bucket?secret=1",
        "s3://",
    ],
)
def test_a_place_with_credentials_or_of_another_kind_is_refused_and_not_shown(fleet, url):
    with pytest.raises(UsageError) as refused:
        places.check_index(url)
    assert "secret" not in str(refused.value).replace("AWS_SECRET", "").replace("https://host/secret", "")


def test_a_fleet_without_an_index_says_how_to_get_one(fleet):
    with pytest.raises(UsageError, match="--index"):
        opened(fleet.place, fleet.settings)


# --- an object store ----------------------------------------------------------------------------------------


class Store:
    """An S3 server of one's own, with the access keys of its bucket."""

    def __init__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.environ = {
            "AWS_ACCESS_KEY_ID": "AKIDOFTHETEST",
            "AWS_SECRET_ACCESS_KEY": "not-to-be-shown-anywhere",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ALLOW_HTTP": "true",
        }
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

        def answers():
            with closing(socket.socket()) as tried:
                return not tried.connect_ex(("127.0.0.1", self.port))

        wait_for(answers)
        import boto3

        own = {name.lower(): value for name, value in self.environ.items()}
        client = boto3.client(
            "s3",
            endpoint_url=own["aws_endpoint_url"],
            aws_access_key_id=own["aws_access_key_id"],
            aws_secret_access_key=own["aws_secret_access_key"],
            region_name=own["aws_region"],
        )
        client.create_bucket(Bucket=BUCKET)

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None


@pytest.fixture
def store(monkeypatch):
    pytest.importorskip("moto", reason="pip install 'moto[s3]' flask flask-cors")
    made = Store()
    for name, value in made.environ.items():
        monkeypatch.setenv(name, value)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def stored(store, fleet, monkeypatch):
    """A fleet whose indexes are in a bucket."""
    fleet.index = f"s3://{BUCKET}/indexes"
    fleet.settings = read_settings({**os.environ, "AGENTX_STATE_DIR": str(fleet.root / "me"),
                                    "AGENTX_CACHE_DIR": str(fleet.root / "no-models")})  # fmt: skip
    fleet.place = fleet.join(fleet.settings)
    return fleet


@slow
def test_workers_publish_to_an_object_store_and_its_keys_are_in_no_file_and_no_output(stored, store):
    worker = stored.worker("a")
    stored.submit("one", "Sum the orders of the walrus.")
    worker.start("--once")
    assert worker.process.wait(PATIENCE_S) == 0
    answer = found(stored, "walrus orders")
    assert names(answer)[:1] == ["one"]
    for path in stored.root.rglob("*"):
        if path.is_file():
            assert store.environ["AWS_SECRET_ACCESS_KEY"].encode() not in path.read_bytes()


@slow
def test_an_object_store_that_stops_delays_no_run_and_is_caught_up_when_it_is_back(stored, store):
    worker = stored.worker("a")
    stored.submit("one", "Sum the orders of the walrus.")
    worker.start()
    wait_for(stored.all_ended)
    wait_for(lambda: names(found(stored, "walrus orders")))
    store.stop()
    began = time.monotonic()
    stored.submit("one", "Feed the otter.")
    wait_for(stored.all_ended)
    assert time.monotonic() - began < PATIENCE_S
    wait_for(lambda: "will be tried again" in worker.said.read_text())
    with pytest.raises(PublishFailed) as failed:
        found(stored, "walrus")
    assert store.environ["AWS_SECRET_ACCESS_KEY"] not in str(failed.value)
    store.start()  # empty: as if the bucket was lost
    wait_for(lambda: "otter" in str(found(stored, "otter")))
    assert worker.end() == 0


@slow
def test_of_two_machines_that_publish_to_an_object_store_at_once_one_is_refused(stored, tmp_path):
    first, second = (opened(stored.place, stored.settings) for _ in range(2))
    with Workspace.create(tmp_path / "here", settings=stored.settings) as ws:
        pushed(stored, ws, "one", "The walrus sleeps.")
        publish(first, "one", ws.engine)
        pushed(stored, ws, "one", "The otter swims.")
        late = second.open("one")
        changes = published_index.Changes(late.mark.meta)
        changes.write_meta("seq", "1 stale")
        at = publish(first, "one", ws.engine)
        with pytest.raises(PublishedByAnother):
            late.commit(changes, "2026-11-24T12:00:00Z")
    assert first.open("one").mark.seq == at.seq
